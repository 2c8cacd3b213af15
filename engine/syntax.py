"""The syntax tree of an equation: one tree for the printer, the diagram and the recorder."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any, cast

from engine.operations import FUNCTIONS, OPERATIONS


class EquationError(TypeError):
    """An equation that could not be printed as what it runs; raised when its module is imported."""


@dataclass(frozen=True)
class Node:
    """One part of an equation.

    ``kind`` is one of name, number, sum, product, matmul, quotient, power, negate, transpose, call. ``text`` holds the
    name of a leaf or of a call's operation, ``signs`` the +1/-1 of a sum's terms. ``id`` is ``"F:2"``: the equation's name
    and the part's place in reading order (0 is the whole); leaves have none.
    """

    kind: str
    children: tuple[Node, ...] = ()
    text: str = ""
    signs: tuple[int, ...] = ()
    id: str = ""

    def walk(self) -> Iterator[Node]:
        """This node and all below it, in reading order."""
        yield self
        for child in self.children:
            yield from child.walk()

    def names(self) -> set[str]:
        """The operands that appear in this part."""
        return {node.text for node in self.walk() if node.kind == "name"}


BINARY: dict[type[ast.operator], str] = {
    ast.MatMult: "matmul",
    ast.Mult: "product",
    ast.Div: "quotient",
    ast.Pow: "power",
    ast.Add: "sum",
    ast.Sub: "sum",
}


def return_expression(function: Callable[..., Any]) -> ast.expr:
    """The one expression a function returns. Raises ``EquationError`` when its body is anything more."""
    source = textwrap.dedent(inspect.getsource(function))
    definition = ast.parse(source).body[0]
    if not isinstance(definition, ast.FunctionDef):
        raise EquationError(f"{function.__qualname__}: an equation is a plain function")
    statements = [s for s in definition.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    if len(statements) != 1 or not isinstance(statements[0], ast.Return) or statements[0].value is None:
        raise EquationError(f"{function.__name__}: an equation is a docstring and one return expression")
    return statements[0].value


def operand_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """The parameters of an equation, which are the symbols it reads."""
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is not p.POSITIONAL_OR_KEYWORD or p.default is not p.empty for p in parameters):
        raise EquationError(f"{function.__name__}: operands are plain parameters without defaults")
    return tuple(p.name for p in parameters)


def parse(function: FunctionType, symbol: str) -> tuple[Node, Callable[..., Any]]:
    """The numbered tree of an equation, and its recorder: the same expression with every part reported.

    ``symbol`` is what it defines. The recorder is called as the equation, with ``record(id, value)`` as one more, last
    argument. It is compiled from the very source that ``function`` runs, so the parts that are shown are the parts that
    were computed. Sums and products are flattened along their left side only, to keep the order of evaluation.
    """
    operands = operand_names(function)
    places: dict[int, str] = {}
    counter = iter(range(10_000))

    def number(expression: ast.expr) -> str:
        places[id(expression)] = name = f"{symbol}:{next(counter)}"
        return name

    def spine(expression: ast.expr, wanted: tuple[type[ast.operator], ...]) -> list[tuple[int, ast.expr]]:
        if isinstance(expression, ast.BinOp) and isinstance(expression.op, wanted):
            sign = -1 if isinstance(expression.op, ast.Sub) else 1
            return [*spine(expression.left, wanted), (sign, expression.right)]
        return [(1, expression)]

    def build(expression: ast.expr) -> Node:
        match expression:
            case ast.Name(id=name):
                if name not in operands:
                    raise EquationError(f"{function.__name__}: {name} is not one of its operands {operands}")
                return Node("name", text=name)
            case ast.Constant(value=int() | float() as value):
                return Node("number", text=repr(value))
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                place = number(expression)
                return Node("negate", (build(inner),), id=place)
            case ast.BinOp(op=ast.Add() | ast.Sub()):
                place = number(expression)
                terms = spine(expression, (ast.Add, ast.Sub))
                children = tuple(build(term) for _, term in terms)
                return Node("sum", children, signs=tuple(sign for sign, _ in terms), id=place)
            case ast.BinOp(op=ast.Mult()):
                place = number(expression)
                return Node("product", tuple(build(f) for _, f in spine(expression, (ast.Mult,))), id=place)
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in BINARY:
                place = number(expression)
                return Node(BINARY[type(operator)], (build(left), build(right)), id=place)
            case ast.Attribute(value=inner, attr="mT"):
                place = number(expression)
                return Node("transpose", (build(inner),), id=place)
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                if name not in OPERATIONS or function.__globals__.get(name) is not FUNCTIONS[name]:
                    raise EquationError(f"{function.__name__}: {name} is not an operation of engine.operations")
                place = number(expression)
                return Node("call", tuple(build(a) for a in arguments), text=name, id=place)
        raise EquationError(f"{function.__name__}: cannot print {ast.unparse(expression)}")

    expression = return_expression(function)
    root = build(expression)
    if not root.id:  # a bare name is still a whole
        root = replace(root, id=number(expression))
    unused = set(operands) - root.names()
    if unused:
        raise EquationError(f"{function.__name__}: operands that it does not use: {sorted(unused)}")
    return root, _recorder(function, expression, places)


def _recorder(function: FunctionType, expression: ast.expr, places: dict[int, str]) -> Callable[..., Any]:
    """Compile ``expression`` with each syntax node in ``places`` wrapped in a call to its last argument."""

    class Report(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            place = places.get(id(node))
            inner = self.generic_visit(node)
            if place is None:
                return inner
            assert isinstance(inner, ast.expr)
            call = ast.Call(func=ast.Name(id="record_", ctx=ast.Load()), args=[ast.Constant(place), inner], keywords=[])
            return ast.copy_location(call, node)

    body = cast(ast.expr, Report().visit(expression))
    parameters = [ast.arg(arg=name) for name in (*operand_names(function), "record_")]
    arguments = ast.arguments(posonlyargs=[], args=parameters, kwonlyargs=[], kw_defaults=[], defaults=[])
    whole = ast.fix_missing_locations(ast.Expression(ast.Lambda(args=arguments, body=body)))
    compiled: Callable[..., Any] = eval(compile(whole, f"<{function.__name__}>", "eval"), function.__globals__)  # noqa: S307
    return compiled
