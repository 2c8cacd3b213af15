"""Circuits inside circuits, cells found by their axes, and changes of one head, key or query."""

import numpy as np
import pytest
import torch

from engine.diagram import wires
from engine.equation import Circuit, EquationError, equation, set_to
from engine.operations import concat, heads, masked_softmax, mean, sqrt, tanh
from engine.recurrent.lstm import LSTM
from engine.symbols import symbol, table
from tests.engine.recurrent.models import made, seeded, uniform

B, N, T, K = 2, 3, 5, 7


@equation
def Q(X, W_q, N):
    """Queries."""
    return heads(X @ W_q, N)


@equation
def S(Q, d_k):
    """Scores of each position with each."""
    return Q @ Q.mT / sqrt(d_k)


@equation
def A(S):
    """Weights."""
    return masked_softmax(S)


@equation("O")
def read(A, Q):
    """What is read."""
    return concat(A @ Q)


@equation
def Y(X, F):
    """The input, and what was made of it."""
    return X + F


@equation
def G(X, Y):
    """Something that reads both."""
    return tanh(Y - X)


INNER = Circuit(Q, S, A, read)
INNER_TABLE = table(
    *(symbol(name, axes, "state") for name, axes in {"X": "BTD", "Q": "BNTK", "S": "BNTS", "A": "BNTS", "O": "BTD"}.items()),
    *(symbol("W_q", "DD", "weight"), symbol("N", "", "size"), symbol("d_k", "", "size")),
    whole=True,
)
OUTER_TABLE = table(*(symbol(name, "BTD", "state") for name in "XFYG"), whole=True)
OUTER = Circuit(INNER.inside("attention", reads={"X": "X"}, gives={"F": "O"}), Y, G)
TWICE = Circuit(OUTER.inside("0", reads={"X": "X"}, gives={"Y": "Y"}), OUTER.inside("1", reads={"X": "Y"}, gives={"G": "G"}))
SIZES = {"N": torch.tensor(N), "d_k": torch.tensor(float(K))}


def run(do=None):
    X = uniform(B, T, N * K, seed=1)
    inputs = {"X": X} | {f"attention.{name}": size for name, size in SIZES.items()}
    weights = {"attention.W_q": uniform(N * K, N * K, seed=2)}
    return OUTER.trace(inputs, weights, {"": OUTER_TABLE, "attention.": INNER_TABLE}, do=do)


def test_names_of_a_nested_circuit_have_its_name_before_them():
    trace = run()
    assert list(trace) == ["attention.Q", "attention.S", "attention.A", "attention.O", "Y", "G"]
    assert OUTER.inputs == ("X", "attention.W_q", "attention.N", "attention.d_k")
    np.testing.assert_array_equal(trace["F"], trace["attention.O"])  # one value under two names
    np.testing.assert_array_equal(trace["attention.X"], trace["X"])
    assert (trace.latex("Y"), trace.latex("attention.S")) == (
        r"\mathbf Y = \mathbf X + \mathbf F",
        r"\mathbf S = \frac{\mathbf Q\mathbf Q^{\top}}{\sqrt{d_k}}",
    )
    assert trace.axes("attention.S") == "BNTS"
    assert len(trace) == T


def test_a_nested_circuit_computes_what_it_computes_alone():
    inner = INNER.trace({"X": uniform(B, T, N * K, seed=1), **SIZES}, {"W_q": uniform(N * K, N * K, seed=2)}, {"": INNER_TABLE})
    trace = run()
    for name in inner:
        np.testing.assert_array_equal(trace[f"attention.{name}"], inner[name])


def test_circuits_nest_in_circuits_that_nest():
    X, w = uniform(B, T, N * K, seed=1), uniform(N * K, N * K, seed=2)
    given = {f"{block}.attention.{name}": value for block in "01" for name, value in {**SIZES, "W_q": w}.items()}
    results, parts = TWICE.run({"X": X, **given}, record=True)
    first = OUTER.run({"X": X, **{f"attention.{n}": v for n, v in {**SIZES, "W_q": w}.items()}})[0]
    torch.testing.assert_close(results["0.Y"], first["Y"])
    assert "1.attention.S:2" in parts
    assert TWICE.canonical("1.attention.X") == "0.Y"


def test_what_a_nested_circuit_does_not_have_is_an_error():
    with pytest.raises(EquationError, match="nothing called"):
        Circuit(INNER.inside("attention", reads={"X": "X"}, gives={"F": "Z"}))
    with pytest.raises(EquationError, match="nothing called"):
        Circuit(INNER.inside("attention", reads={"V": "X"}, gives={"F": "O"}))
    with pytest.raises(EquationError, match="before they are defined"):
        Circuit(G, OUTER.inside("block", reads={"X": "X"}, gives={"Y": "Y"}))


def test_a_nested_circuit_is_one_node_of_the_diagram_and_has_its_own():
    outer = wires(OUTER, OUTER_TABLE)
    assert {node.id: node.kind for node in outer.nodes}["attention"] == "circuit"
    ends = {(w.source, w.target, w.carries) for w in outer.wires}
    assert ("X", "attention", "X") in ends
    assert ("attention", "Y:0", "F") in ends
    inner = wires(INNER, INNER_TABLE)
    assert [(node.id, node.kind) for node in inner.nodes] == [
        *(("X", "input"), ("Q:1", "affine"), ("Q:0", "function")),
        *(("S:1", "matmul"), ("S:0", "scale"), ("A:0", "function")),
        *(("O:1", "matmul"), ("O:0", "function"), ("O", "output")),
    ]


def test_a_place_is_found_by_the_words_for_its_axes():
    trace = run()
    S_, Q_ = trace["attention.S"], trace["attention.Q"]
    assert trace.at("attention.S", batch=1, head=2, query=3, key=4) == S_[1, 2, 3, 4]
    np.testing.assert_array_equal(trace.at("attention.Q", batch=1, head=2, query=3, key=4), Q_[1, 2, 3])
    np.testing.assert_array_equal(trace.at("attention.S", head=2), S_[:, 2])
    for wrong in ({"head": N}, {"query": T}, {"key": -T - 1}, {"batch": 2}):
        with pytest.raises(IndexError, match=next(iter(wrong)).replace("query", "step|query")):
            trace.at("attention.S", **wrong)
    with pytest.raises(TypeError, match="not by row"):
        trace.at("attention.S", row=1)


def test_plugged_numbers_are_those_of_the_cell():
    trace = run()
    where = {"batch": 1, "head": 2, "query": 3, "key": 4}
    text = trace.plugged("attention.S", digits=6, **where)
    assert text == f"({trace.terms['attention.S:1'][1, 2, 3, 4]:.6f}) / sqrt(7.000000) = {trace['attention.S'][1, 2, 3, 4]:.6f}"
    score, weight = trace["attention.S"][1, 2, 3, 4], trace["attention.A"][1, 2, 3, 4]
    assert trace.plugged("attention.A", digits=6, **where) == f"masked_softmax(..., {score:.6f}, ...) = {weight:.6f}"
    # A unit of head 1 stands in another column of the product that the heads were cut from.
    moved = trace.plugged("attention.Q", batch=1, head=1, query=3, unit=4, digits=6)
    assert moved.startswith(f"heads[3.000000]({trace.terms['attention.Q:1'][1, 3, K + 4]:.6f})")
    together = trace.plugged("attention.O", batch=1, query=3, unit=K + 4, digits=6)
    assert together.startswith(f"concat({trace.terms['attention.O:1'][1, 1, 3, 4]:.6f})")


def test_a_product_can_be_written_out_and_its_text_is_an_expression():
    trace = run()
    where = {"batch": 1, "head": 2, "query": 3, "key": 4}
    left, right = trace.plugged("attention.S", digits=9, expand=K, **where).split(" = ")
    assert left.count(" * ") == K
    assert eval(left, {"sqrt": np.sqrt}) == pytest.approx(float(right), abs=1e-7)
    assert trace.plugged("attention.S", expand=2, **where).count("...") == 1
    row, column = trace.products("attention.S:1", 1, 2, 3, 4)
    np.testing.assert_array_equal(row, trace["attention.Q"][1, 2, 3])
    assert row @ column == pytest.approx(trace.terms["attention.S:1"][1, 2, 3, 4], abs=1e-14)


def test_recurrent_models_can_be_written_out_too():
    trace = made(LSTM).trace(uniform(11, 2, 5, seed=4))
    text = trace.plugged("F", step=3, batch=1, unit=2, digits=9, expand=7)
    left, right = text.split(" = ")
    assert left.count(" * ") == 12
    assert eval(left, {"sigmoid": lambda a: 1 / (1 + np.exp(-a))}) == pytest.approx(float(right), abs=1e-7)


def test_aligned_numbers_are_those_of_every_cell():
    trace = run()
    for name in trace:
        result = np.broadcast_shapes(*(array.shape for array in trace.aligned(name).values()), trace[name].shape)
        assert result == trace[name].shape, name
    scores = trace.aligned("attention.S")
    np.testing.assert_array_equal(scores["S:1"] / np.sqrt(scores["d_k"]), trace["attention.S"])
    moved = trace.aligned("attention.Q")
    np.testing.assert_array_equal(moved["Q:1"], trace["attention.Q"])
    cell = made(LSTM).trace(uniform(11, 2, 5, seed=4))
    slots = cell.aligned("C")
    np.testing.assert_array_equal(slots["F"] * slots["C_prev"] + slots["I"] * slots["C_tilde"], cell["C"])


def test_a_mean_is_written_with_its_row():
    @equation("m")
    def mean_of(X):
        """Mean of a row."""
        return mean(X)

    names = table(symbol("X", "BTD", "state"), symbol("m", "BT1", "state"), whole=True)
    trace = Circuit(mean_of).trace({"X": torch.tensor([[[1.0, 2.0, 6.0], [0.0, 0.0, 3.0]]])}, {}, {"": names})
    assert trace.plugged("m", query=1, expand=8) == "mean(0.00, 0.00, 3.00) = 1.00"
    assert trace.plugged("m", query=0, expand=2) == "mean(1.00, 2.00, ...) = 3.00"
    assert trace.plugged("m", query=0) == "3.00 = 3.00"


def test_a_change_acts_on_the_chosen_head_query_and_key_and_on_what_follows():
    free, changed = run(), run({"attention.A": set_to(0.25, head=1, query=(2, None), key=(0, 3))})
    mask = np.zeros(free["attention.A"].shape, dtype=bool)
    mask[:, 1, 2:, 0] = mask[:, 1, 2:, 3] = True
    assert (changed["attention.A"][mask] == 0.25).all()
    np.testing.assert_array_equal(changed["attention.A"][~mask], free["attention.A"][~mask])
    np.testing.assert_array_equal(changed["attention.S"], free["attention.S"])
    assert np.abs(changed["Y"] - free["Y"]).max() > 1e-3
    assert changed.plugged("attention.A", head=1, query=2).endswith("-> 0.25")


def test_a_change_of_an_axis_that_is_not_there_is_refused():
    for change in (set_to(1.0, unit=2), set_to(1.0, head=N), set_to(1.0, key=T), set_to(1.0, query=(3, T + 1))):
        with pytest.raises((ValueError, IndexError)):
            run({"attention.A": change})
    with pytest.raises(ValueError, match="no head"):
        run({"Y": set_to(1.0, head=0)})
    with pytest.raises(ValueError, match="same axis"):
        set_to(1.0, step=1, query=2)
    with pytest.raises(ValueError, match="no head"):
        made(LSTM).trace(uniform(11, 2, 5, seed=4), do={"F": set_to(1.0, head=0)})


def test_one_sequence_of_a_batch_can_be_changed():
    model, X = LSTM(5, 7, generator=seeded(1)).double(), uniform(11, 2, 5, seed=4)
    free, changed = model.trace(X), model.trace(X, do={"F": set_to(1.0, step=3, batch=1)})
    np.testing.assert_array_equal(free["H"][:, 0], changed["H"][:, 0])
    assert (changed["F"][3, 1] == 1).all()
    assert not np.array_equal(free["H"][:, 1], changed["H"][:, 1])
