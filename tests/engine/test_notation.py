"""The printed formula of every symbol equals the lesson's (golden list), and is generated from the function that runs."""

import ast
import re
from decimal import Decimal
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from engine.equation import Circuit, EquationError, equation, set_to
from engine.notation import format_number
from engine.operations import FUNCTIONS, sigmoid
from engine.recurrent.gru import GRU
from engine.recurrent.language_model import RecurrentLanguageModel
from engine.recurrent.lstm import LSTM
from engine.recurrent.rnn import RNN
from tests.engine.recurrent.models import B, H, T, made, uniform

X = uniform(T, B, 5, seed=4)
GATE = r"\sigma(\mathbf X_t\mathbf W_{x%s} + \mathbf H_{t-1}\mathbf W_{h%s} + \mathbf b_%s)"
GOLDEN_LSTM = {
    "F": r"\mathbf F_t = " + GATE % ("f", "f", "f"),
    "I": r"\mathbf I_t = " + GATE % ("i", "i", "i"),
    "O": r"\mathbf O_t = " + GATE % ("o", "o", "o"),
    "C_tilde": r"\tilde{\mathbf C}_t = " + (GATE % ("c", "c", "c")).replace("sigma", "tanh"),
    "C": r"\mathbf C_t = \mathbf F_t \odot \mathbf C_{t-1} + \mathbf I_t \odot \tilde{\mathbf C}_t",
    "H": r"\mathbf H_t = \mathbf O_t \odot \tanh(\mathbf C_t)",
}
GOLDEN_GRU = {
    "R": r"\mathbf R_t = " + GATE % ("r", "r", "r"),
    "Z": r"\mathbf Z_t = " + GATE % ("z", "z", "z"),
    "H_tilde": r"\tilde{\mathbf H}_t = "
    r"\tanh(\mathbf X_t\mathbf W_{xh} + (\mathbf R_t \odot \mathbf H_{t-1})\mathbf W_{hh} + \mathbf b_h)",
    "H": r"\mathbf H_t = \mathbf Z_t \odot \mathbf H_{t-1} + (1 - \mathbf Z_t) \odot \tilde{\mathbf H}_t",
}
RESET_AFTER = (
    r"\tilde{\mathbf H}_t = "
    r"\tanh(\mathbf X_t\mathbf W_{xh} + \mathbf b_h + \mathbf R_t \odot (\mathbf H_{t-1}\mathbf W_{hh} + \mathbf b_{hh}))"
)
REPLACES = r"\mathbf H_t = (1 - \mathbf Z_t) \odot \mathbf H_{t-1} + \mathbf Z_t \odot \tilde{\mathbf H}_t"
GOLDEN = [
    (made(LSTM), GOLDEN_LSTM),
    (made(GRU), GOLDEN_GRU),
    (made(GRU, reset="after"), GOLDEN_GRU | {"H_tilde": RESET_AFTER}),
    (made(GRU, update="replaces"), GOLDEN_GRU | {"H": REPLACES}),
    (made(RNN), {"H": r"\mathbf H_t = " + (GATE % ("h", "h", "h")).replace("sigma", "tanh").replace("W_{xh}", "W_{xh}")}),
]


@pytest.mark.parametrize(("model", "golden"), GOLDEN, ids=["lstm", "gru", "gru after", "gru replaces", "rnn"])
def test_the_printed_formulas_are_the_lessons(model, golden):
    trace = model.trace(X)
    assert {name: trace.latex(name) for name in trace.symbols} == golden


def test_the_output_layer_is_printed_too():
    trace = RecurrentLanguageModel("lstm", 5, 7).trace(torch.tensor([[1], [2]]))
    assert trace.latex("Y") == r"\mathbf Y_t = \mathbf H_t\mathbf W_{hq} + \mathbf b_q"
    assert trace.latex("P") == r"\mathbf P_t = \operatorname{softmax}(\mathbf Y_t)"


def test_another_function_prints_another_formula():
    @equation
    def F(X, W_xf):
        """Something else."""
        return 1 - sigmoid(-X @ W_xf) / (X * X - X)

    from engine.notation import latex
    from engine.symbols import symbol, table

    names = table(symbol("F", "TBH", "forget"), symbol("X", "TBD", "input_value"), symbol("W_xf", "DH", "weight"))
    assert latex(F, names) == (
        r"\mathbf F_t = 1 - \frac{\sigma((-\mathbf X_t)\mathbf W_{xf})}{\mathbf X_t \odot \mathbf X_t - \mathbf X_t}"
    )


@pytest.mark.parametrize("model", [model for model, _ in GOLDEN])
def test_every_symbol_of_the_mathml_can_be_found_and_coloured(model):
    trace = model.trace(X)
    for name in trace.symbols:
        root = ElementTree.fromstring(trace.mathml(name))
        found = [element.get("data-symbol") for element in root.iter() if element.get("data-symbol")]
        assert found[0] == name
        assert set(found[1:]) == set(trace.equations[name].operands)
        assert all(e.get("data-role") == trace.symbol(e.get("data-symbol")).role for e in root.iter() if e.get("data-symbol"))


@pytest.mark.parametrize("model", [model for model, _ in GOLDEN])
def test_plugged_numbers_are_the_cells_and_give_its_value(model):
    """The text with numbers is an expression: evaluated, it gives the number after the sign of equality."""
    trace = model.trace(X)
    scope = {name: lambda a, f=f: f(torch.tensor(a, dtype=torch.float64)).item() for name, f in FUNCTIONS.items()}
    for name in trace.symbols:
        for step, batch, unit in ((0, 0, 0), (3, 1, 2), (T - 1, 0, H - 1)):
            text = trace.plugged(name, step=step, batch=batch, unit=unit, digits=9)
            left, right = text.split(" = ")
            assert float(right) == pytest.approx(trace[name][step, batch, unit], abs=1e-9)
            assert eval(left, scope) == pytest.approx(float(right), abs=1e-7), text


def test_plugged_numbers_are_those_of_the_operands():
    model = made(LSTM)
    trace = model.trace(X)
    numbers = [float(n) for n in re.findall(r"-?\d\.\d+", trace.plugged("C", step=3, batch=1, unit=2, digits=6))]
    operands = [trace["F"][3, 1, 2], trace["C"][2, 1, 2], trace["I"][3, 1, 2], trace["C_tilde"][3, 1, 2], trace["C"][3, 1, 2]]
    np.testing.assert_allclose(numbers, operands, atol=1e-6)
    at_start = trace.plugged("C", step=0, batch=1, unit=2, digits=6)
    assert at_start.startswith(f"{trace['F'][0, 1, 2]:.6f} * 0.000000 + ")


def test_plugged_text_says_what_an_intervention_did():
    text = made(LSTM).trace(X, do={"F": set_to(1.0, step=3)}).plugged("F", step=3, unit=2)
    assert re.fullmatch(r"sigmoid\(.*\) = 0\.\d\d -> 1\.00", text)


def test_slots_of_the_plugged_mathml_are_found_in_the_trace():
    for model, _ in GOLDEN:
        trace = model.trace(X)
        for name in trace.symbols:
            root = ElementTree.fromstring(trace.plugged_mathml(name))
            slots = [element.get("data-slot") for element in root.iter() if element.get("data-slot")]
            assert slots[-1] == f"{name}:0"
            assert all(np.isfinite(trace.operand("", slot, 2, 0, 1)) for slot in slots)
            assert {e.get("data-sign-of") for e in root.iter() if e.get("data-sign-of")} <= set(slots)


def test_recorded_parts_are_the_parts_of_the_whole():
    trace = made(LSTM).trace(X)
    np.testing.assert_array_equal(trace.terms["C:1"] + trace.terms["C:2"], trace["C"])
    np.testing.assert_array_equal(trace.terms["F:2"] + trace.terms["F:3"] + trace.weights["b_f"], trace.terms["F:1"])
    np.testing.assert_allclose(1 / (1 + np.exp(-trace.terms["F:1"])), trace["F"], rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("x", "digits", "text"),
    [
        (0.0, 3, "0.000"),
        (-0.0, 3, "0.000"),
        (0.0625, 3, "0.063"),  # a tie goes away from zero, as in the browser
        (-0.0625, 3, "−0.063"),
        (0.0004, 3, "4.0e−4"),
        (0.0005, 3, "0.001"),
        (9.96e-5, 3, "1.0e−4"),
        (-1.26e-7, 2, "−1.3e−7"),
        (12.3456, 2, "12.35"),
        (999_999_999.0, 1, "1.0e9"),
        (-1.25e9, 3, "−1.250e9"),
        (331038656.0, 3, "3.310e8"),
        (10665.1953, 3, "10665.20"),
        (123456.78, 3, "123456.8"),
        (9999999.4, 3, "9999999"),
        (9999.9996, 3, "10000.000"),
        (9.9996e40, 3, "1.000e41"),
        (float("nan"), 3, "NaN"),
        (float("-inf"), 3, "−∞"),
    ],
)
def test_numbers_are_written_alike_everywhere(x, digits, text):
    assert format_number(x, digits, minus="−") == text


def test_a_number_is_never_shown_as_zero_when_it_is_not():
    for exponent in range(-30, 3):
        assert Decimal(format_number(3 * 10.0**exponent, 3)) != 0


def test_what_cannot_be_printed_is_an_error_at_import():
    def many(X):
        """Two statements."""
        state = -X
        return state * X

    def unknown(X):
        """An operation nobody knows."""
        return torch.erf(X)

    def foreign(X):
        """A name that is no operand."""
        return X + T

    def unused(X, H_prev):
        """An operand that is not read."""
        return X

    def default(X, scale=2):
        """A hidden number."""
        return X * scale

    def condition(X):
        """A branch."""
        return X if True else -X

    for function in (many, unknown, foreign, unused, default, condition):
        with pytest.raises(EquationError):
            equation(function)


def test_an_operation_is_the_engines_own_and_not_one_of_the_same_name():
    namespace = {"tanh": lambda a: a, "__name__": "elsewhere"}
    source = "def H(X):\n    'Not the tanh it says.'\n    return tanh(X)\n"
    import linecache

    linecache.cache["<elsewhere>"] = (len(source), None, source.splitlines(True), "<elsewhere>")
    exec(compile(ast.parse(source), "<elsewhere>", "exec"), namespace)
    with pytest.raises(EquationError, match="not an operation"):
        equation(namespace["H"])


def test_a_circuit_refuses_what_it_cannot_run():
    with pytest.raises(EquationError):
        Circuit(*LSTM(1, 1).circuit.equations.values(), carry=("Q",))
    late = list(LSTM(1, 1).circuit.equations.values())[::-1]
    with pytest.raises(EquationError, match="before they are defined"):
        Circuit(*late, carry=("H", "C"))
