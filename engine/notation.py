"""From the syntax tree of an equation to LaTeX, MathML and the same formula with numbers plugged in.

Products of matrices are written side by side, elementwise products with a circled dot, as in the lessons' texts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from itertools import pairwise
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from engine.operations import OPERATIONS, Operation
from engine.symbols import Symbol
from engine.syntax import Node

if TYPE_CHECKING:
    from engine.equation import Equation

Table = Mapping[str, Symbol]

# How tightly each kind binds; a looser part inside a tighter one gets parentheses.
BINDING = {"sum": 1, "negate": 2, "product": 3, "quotient": 4, "matmul": 4, "power": 5, "transpose": 5}


def binding(node: Node) -> int:
    """How tightly a part binds; leaves and calls bind tightest."""
    return BINDING.get(node.kind, 9)


def scalar(node: Node, table: Table) -> bool:
    """Whether a part is one number (a constant, or symbols written as such), so that its product is an ordinary one."""
    return node.kind == "number" or not any(table[name].bold for name in node.names())


def main_arguments(node: Node, operation: Operation) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """The arguments of a call that stand in its parentheses, and those that are written as its index."""
    return node.children[: operation.main], () if operation.main is None else node.children[operation.main :]


HUGE = Decimal(10) ** 7
EXACT = 7  # digits that float32 has


def format_number(x: float, digits: int = 3, minus: str = "-") -> str:
    """A number as it is shown: ties away from zero, ``digits`` after the point, but from 1e4 on no more than float32 has.

    An exponent where that would give 0 (with one digit after the point), and from 1e7 on (with ``digits``).
    """
    if x != x or x in (float("inf"), float("-inf")):
        return "NaN" if x != x else ("∞" if x > 0 else f"{minus}∞")
    exact = Decimal(x)
    if x != 0 and (abs(exact) < Decimal(5).scaleb(-digits - 1) or abs(exact) >= HUGE):
        exponent, places = exact.adjusted(), digits if abs(exact) >= HUGE else 1
        head = exact.scaleb(-exponent).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
        if abs(head) >= 10:
            head, exponent = head / 10, exponent + 1
        text = f"{head:.{places}f}e{exponent}"
    else:
        places = digits if abs(exact) < 10_000 else min(digits, EXACT - len(str(int(abs(exact)))))
        text = f"{exact.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP):f}"
        if not float(text):
            text = text.lstrip("-")
    return text.replace("-", minus)


# ---------------------------------------------------------------------------------------------------------- LaTeX


GREEK = {"α": r"\alpha", "β": r"\beta", "γ": r"\gamma", "δ": r"\delta", "ε": r"\epsilon", "θ": r"\theta"} | {
    "λ": r"\lambda",
    "μ": r"\mu",
    "σ": r"\sigma",
    "τ": r"\tau",
    "ω": r"\omega",
    "Θ": r"\Theta",
}


def symbol_latex(s: Symbol) -> str:
    r"""One symbol: bold, with its index: ``\mathbf F_t``, ``\mathbf H_{t-1}``, ``\tilde{\mathbf C}_t``."""
    letter = GREEK.get(s.letter, s.letter)
    face = r"\boldsymbol" if s.letter in GREEK else r"\mathbf"
    body = rf"{face} {letter}" if s.bold else letter
    if s.tilde:
        body = rf"\tilde{{{face} {letter}}}"
    elif s.hat:
        body = rf"\hat{{{body}}}"
    if s.superscript:
        body += f"^{{{s.superscript}}}"
    index = s.subscript + ((f",t-{s.lag}" if s.subscript else f"t-{s.lag}") if s.lag else "t" if s.timed else "")
    return body + (f"_{{{index}}}" if len(index) > 1 else f"_{index}" if index else "")


SUBSCRIPTS = str.maketrans("aehijklmnoprstuvx0123456789+-", "ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ₀₁₂₃₄₅₆₇₈₉₊₋")


def symbol_text(s: Symbol) -> tuple[str, str] | None:
    """One symbol in plain characters, letter and index: ``("F", "ₜ")``; None where Unicode has no such index (``b_f``)."""
    index = s.subscript + ("," if s.subscript and s.timed else "") + ("t" + (f"-{s.lag}" if s.lag else "") if s.timed else "")
    lowered = index.translate(SUBSCRIPTS)
    if (
        len(s.letter) > 1
        or not s.bold
        or s.superscript
        or s.hat
        or any(mark == plain for mark, plain in zip(lowered, index, strict=True))
    ):
        return None
    return (f"{s.letter}\N{COMBINING TILDE}" if s.tilde else s.letter), lowered


def expression_latex(node: Node, table: Table) -> str:
    """One part of an equation as LaTeX."""

    def inner(child: Node, least: int) -> str:
        text = expression_latex(child, table)
        return text if binding(child) >= least else f"({text})"

    c = node.children
    match node.kind:
        case "name":
            return symbol_latex(table[node.text])
        case "number":
            return node.text
        case "sum":
            terms = [inner(child, 2 if i else 1) for i, child in enumerate(c)]
            signs = [" - " if sign < 0 else " + " for sign in node.signs]
            return terms[0] + "".join(sign + term for sign, term in zip(signs[1:], terms[1:], strict=True))
        case "negate":
            return "-" + inner(c[0], 3)
        case "product":
            text = inner(c[0], 3)
            for before, child in pairwise(c):
                text += (r"\, " if scalar(before, table) or scalar(child, table) else r" \odot ") + inner(child, 3)
            return text
        case "matmul":
            return inner(c[0], 4) + inner(c[1], 5)
        case "quotient":
            return rf"\frac{{{expression_latex(c[0], table)}}}{{{expression_latex(c[1], table)}}}"
        case "power":
            return f"{inner(c[0], 6)}^{{{expression_latex(c[1], table)}}}"
        case "transpose":
            return rf"{inner(c[0], 6)}^{{\top}}"
        case _:
            operation = OPERATIONS[node.text]
            if operation.style == "index":
                return f"{inner(c[0], 9)}_{{{operation.latex}}}"
            shown, index = main_arguments(node, operation)
            arguments = ", ".join(expression_latex(child, table) for child in shown)
            name = operation.latex
            if index:
                name += f"_{{{', '.join(expression_latex(child, table) for child in index)}}}"
            match operation.style:
                case "root":
                    return rf"{name}{{{arguments}}}"
                case "bars":
                    return rf"\left|{arguments}\right|"
                case _:
                    return f"{name}({arguments})"


def latex(equation: Equation, table: Table) -> str:
    """A whole equation as LaTeX, generated from the function that runs."""
    return f"{symbol_latex(table[equation.name])} = {expression_latex(equation.tree, table)}"


# --------------------------------------------------------------------------------------------------------- MathML


def bold(letter: str) -> str:
    """The mathematical bold form of a Latin letter (browsers ignore ``mathvariant="bold"``)."""
    if letter.isascii() and letter.isupper():
        return chr(0x1D400 + ord(letter) - ord("A"))
    return chr(0x1D41A + ord(letter) - ord("a")) if letter.isascii() and letter.islower() else letter


def symbol_mathml(s: Symbol) -> str:
    """One symbol as an element that carries its name and role."""
    # An italic letter for a number, a bold one for a vector or matrix.
    body = f"<mi>{escape(bold(s.letter) if s.bold else s.letter)}</mi>"
    if s.tilde or s.hat:
        body = f'<mover accent="true">{body}<mo stretchy="false">{"~" if s.tilde else "^"}</mo></mover>'
    index = "".join(character_mathml(character) for character in s.subscript)
    if s.timed:
        index += "<mi>t</mi>" + (f"<mo>−</mo><mn>{s.lag}</mn>" if s.lag else "")
    marks = f"data-symbol={quoteattr(s.name)} data-role={quoteattr(s.role)}"
    if s.superscript:
        power = "".join(character_mathml(character) for character in s.superscript)
        return f"<msubsup {marks}>{body}<mrow>{index}</mrow><mrow>{power}</mrow></msubsup>"
    return f"<msub {marks}>{body}<mrow>{index}</mrow></msub>" if index else f"<mrow {marks}>{body}</mrow>"


def character_mathml(character: str) -> str:
    """One character of an index: a letter, a digit or a sign."""
    kind = "mi" if character.isalpha() else "mn" if character.isdigit() else "mo"
    return f"<{kind}>{escape(character)}</{kind}>"


@dataclass(frozen=True, kw_only=True)
class Writer:
    """Writes a tree as MathML; ``leaf`` decides what stands for a part, or None to go on into it."""

    table: Table
    leaf: Callable[[Node], str | None] = field(default=lambda _: None)
    sign_of: Callable[[Node], str | None] = field(default=lambda _: None)
    product: str = "⊙"

    def fenced(self, child: Node, least: int) -> str:
        text = self.write(child)
        return text if binding(child) >= least or self.leaf(child) is not None else f"<mo>(</mo>{text}<mo>)</mo>"

    def write(self, node: Node) -> str:
        c = node.children
        if (instead := self.leaf(node)) is not None:
            return instead
        match node.kind:
            case "name":
                return symbol_mathml(self.table[node.text])
            case "number":
                return f"<mn>{node.text}</mn>"
            case "sum":
                text = self.fenced(c[0], 1)
                for sign, child in zip(node.signs[1:], c[1:], strict=True):
                    mark = self.sign_of(child) if sign > 0 else None
                    operator = f"<mo data-sign-of={quoteattr(mark)}>+</mo>" if mark else f"<mo>{'+' if sign > 0 else '−'}</mo>"
                    text += operator + self.fenced(child, 2)
                return text
            case "negate":
                return f'<mo form="prefix">−</mo>{self.fenced(c[0], 3)}'
            case "product":
                text = self.fenced(c[0], 3)
                for before, child in pairwise(c):
                    plain = scalar(before, self.table) or scalar(child, self.table)
                    text += f"<mo>{'·' if plain else self.product}</mo>" + self.fenced(child, 3)
                return text
            case "matmul":
                return self.fenced(c[0], 4) + '<mspace width="0.1em"></mspace>' + self.fenced(c[1], 5)
            case "quotient":
                return f"<mfrac><mrow>{self.write(c[0])}</mrow><mrow>{self.write(c[1])}</mrow></mfrac>"
            case "power":
                return f"<msup><mrow>{self.fenced(c[0], 6)}</mrow><mrow>{self.write(c[1])}</mrow></msup>"
            case "transpose":
                return f"<msup><mrow>{self.fenced(c[0], 6)}</mrow><mo>⊤</mo></msup>"
            case _:
                return self.call(node, OPERATIONS[node.text])

    def call(self, node: Node, operation: Operation) -> str:
        c = node.children
        if operation.style == "index":
            return f"<msub><mrow>{self.fenced(c[0], 9)}</mrow><mi>{operation.text}</mi></msub>"
        shown, index = main_arguments(node, operation)
        arguments = "<mo>,</mo>".join(self.write(child) for child in shown)
        if operation.style == "root":
            return f"<msqrt><mrow>{arguments}</mrow></msqrt>"
        if operation.style == "bars":
            return f"<mrow><mo>|</mo>{arguments}<mo>|</mo></mrow>"
        name = f"<mi data-operation={quoteattr(operation.name)}>{operation.text}</mi>"
        if index:
            name = f"<msub>{name}<mrow>{'<mo>,</mo>'.join(self.write(child) for child in index)}</mrow></msub>"
        if operation.style == "row" and self.leaf(c[0]) is not None:
            arguments = f"<mo>…</mo><mo>,</mo>{arguments}<mo>,</mo><mo>…</mo>"
        return f"<mrow>{name}<mo>(</mo>{arguments}<mo>)</mo></mrow>"


def math(content: str) -> str:
    """Content as one MathML formula."""
    return f'<math xmlns="http://www.w3.org/1998/Math/MathML"><mrow>{content}</mrow></math>'


def part_mathml(node: Node, table: Table) -> str:
    """A part of an equation as MathML, in short: of a function its name."""
    short = node.kind == "call" and OPERATIONS[node.text].style != "index"
    return math(f"<mi>{OPERATIONS[node.text].text}</mi>" if short else Writer(table=table).write(node))


def mathml(equation: Equation, table: Table) -> str:
    """A whole equation as MathML, each symbol an element with ``data-symbol`` and ``data-role``."""
    return math(f"{symbol_mathml(table[equation.name])}<mo>=</mo>{Writer(table=table).write(equation.tree)}")


# ------------------------------------------------------------------------------------------------ numbers plugged in


def contraction(node: Node) -> bool:
    """Whether a part makes one number of many, so that for one cell it is shown as that number."""
    return node.kind in ("matmul", "transpose") or (node.kind == "call" and OPERATIONS[node.text].cells == "sum")


def slot_of(node: Node) -> str | None:
    """The name under which the number of a part is found: an operand's name or a part's id; None for what has parts to show."""
    if node.kind == "name":
        return node.text
    return node.id if contraction(node) else None


def plugged_mathml(equation: Equation, table: Table) -> str:
    """The equation with a slot for each number: ``<mn data-slot="F:2"/>``, to be filled in the browser from the trace.

    ``data-wrap="1"`` marks a slot that needs parentheses when negative; an operator with ``data-sign-of`` becomes a minus,
    and its slot shows the absolute value, when that number is negative.
    """
    signed = {
        slot_of(child)
        for node in equation.tree.walk()
        if node.kind == "sum"
        for sign, child in zip(node.signs[1:], node.children[1:], strict=True)
        if sign > 0
    }

    def leaf(node: Node) -> str | None:
        slot = slot_of(node)
        if slot is None:
            return None
        role = (
            f" data-role={quoteattr(table[node.text].role)} data-symbol={quoteattr(node.text)}" if node.kind == "name" else ""
        )
        wrap = "" if slot in signed else ' data-wrap="1"'
        return f"<mn data-slot={quoteattr(slot)}{wrap}{role}></mn>"

    writer = Writer(table=table, leaf=leaf, sign_of=slot_of, product="·")
    s = table[equation.name]
    result = f"<mn data-slot={quoteattr(equation.tree.id)} data-role={quoteattr(s.role)} data-symbol={quoteattr(s.name)}></mn>"
    return math(f"{writer.write(equation.tree)}<mo>=</mo>{result}")


Terms = tuple[list[tuple[float, ...]], bool]  # the first numbers that a part sums over, and whether there are more


def plugged(
    equation: Equation,
    value: Callable[[str], float],
    digits: int = 2,
    terms: Callable[[Node], Terms | None] = lambda _: None,
) -> str:
    """The right-hand side with numbers, as text that is also an expression: ``sigmoid(2.07 + 2.63 - 0.07)``.

    ``terms`` gives what a part is a sum over (pairs of factors of a product of matrices, the row of a mean), or None for its
    number alone. An operation's index stands in brackets: ``masked_softmax[1](..., 0.31, ...)``.
    """

    def shown(number: float, least: int) -> str:
        text = format_number(number, digits)
        return f"({text})" if least > 1 and text.startswith("-") else text

    def many(node: Node, found: Terms, least: int) -> str:
        numbers, more = found
        if node.kind == "call":
            return f"{node.text}({', '.join([*(shown(n, 0) for (n,) in numbers), *(['...'] if more else [])])})"
        text = " + ".join([*(" * ".join(shown(n, 3) for n in factors) for factors in numbers), *(["..."] if more else [])])
        return f"({text})" if least > 1 else text

    def write(node: Node, least: int = 0) -> str:
        slot = slot_of(node)
        if slot is not None:
            found = terms(node)
            return many(node, found, least) if found is not None else shown(value(slot), least)
        c = node.children
        match node.kind:
            case "number":
                return node.text
            case "sum":
                text = write(c[0], 1)
                for sign, child in zip(node.signs[1:], c[1:], strict=True):
                    term = write(child, 1 if slot_of(child) and sign > 0 else 2)
                    negative = sign < 0 or term.startswith("-")
                    text += (" - " if negative else " + ") + term.removeprefix("-" if sign > 0 else "")
            case "negate":
                text = "-" + write(c[0], 3)
            case "product":
                text = " * ".join(write(child, 3) for child in c)
            case "quotient":
                text = f"{write(c[0], 3)} / {write(c[1], 5)}"
            case "power":
                text = f"{write(c[0], 6)} ** {write(c[1], 5)}"
            case _:
                return call(node)
        return text if binding(node) >= least else f"({text})"

    def call(node: Node) -> str:
        operation = OPERATIONS[node.text]
        main, index = main_arguments(node, operation)
        arguments = [write(child) for child in main]
        if operation.cells == "move":  # the cell comes from one of them
            arguments = [argument if argument != "NaN" else "..." for argument in arguments]
        inside = ", ".join(arguments)
        name = node.text + (f"[{', '.join(write(child) for child in index)}]" if index else "")
        # One cell of a whole row's function: its own number stands among the others.
        return f"{name}(..., {inside}, ...)" if operation.style == "row" else f"{name}({inside})"

    return write(equation.tree)
