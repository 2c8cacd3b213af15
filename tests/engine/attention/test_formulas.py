"""The printed formulas of attention are the lessons' (golden list), and the diagrams follow from them."""

import pytest
import torch

from engine.attention.heads import multihead_circuit, multihead_table
from engine.attention.placement import placement_circuit, placement_table
from engine.attention.positions import LearnedPositions, alibi_trace, rotary_trace, sinusoidal_trace
from engine.attention.scores import SCORES, attention_circuit, score_table
from engine.diagram import wires
from engine.notation import latex

A_KEPT = r"\mathbf A = \operatorname{softmax}_{\mathbf M}(\mathbf S)"
SCALED = r"\mathbf S = \frac{\mathbf Q\mathbf K^{\top}}{\sqrt{d_k}}"
GOLDEN_SCORES = {
    "dot_product": r"\mathbf S = \mathbf Q\mathbf K^{\top}",
    "scaled_dot_product": SCALED,
    "bilinear": r"\mathbf S = \mathbf Q\mathbf W\mathbf K^{\top}",
    "additive": r"\mathbf S_{ts} = \tanh((\mathbf Q\mathbf W_q)_{t} + (\mathbf K\mathbf W_k)_{s})\mathbf w_v",
}
SELF = {
    "Q": r"\mathbf Q = \operatorname{heads}_{N}(\mathbf X\mathbf W_q)",
    "K": r"\mathbf K = \operatorname{heads}_{N}(\mathbf X\mathbf W_k)",
    "V": r"\mathbf V = \operatorname{heads}_{N}(\mathbf X\mathbf W_v)",
    "S": SCALED,
    "A": r"\mathbf A = \operatorname{softmax}(\mathbf S)",
    "Z": r"\mathbf Z = \mathbf A\mathbf V",
    "O_n": r"\mathbf O_n = \mathbf Z\operatorname{blocks}_{N}(\mathbf W_o)",
    "O": r"\mathbf O = \operatorname{concat}(\mathbf Z)\mathbf W_o",
}
CROSS_BIASED = {
    **SELF,
    "Q": r"\mathbf Q = \operatorname{heads}_{N}(\mathbf X_q\mathbf W_q + \mathbf b_q)",
    "K": r"\mathbf K = \operatorname{heads}_{N}(\mathbf X_k\mathbf W_k + \mathbf b_k)",
    "V": r"\mathbf V = \operatorname{heads}_{N}(\mathbf X_v\mathbf W_v + \mathbf b_v)",
    "A": A_KEPT,
    "O": r"\mathbf O = \operatorname{concat}(\mathbf Z)\mathbf W_o + \mathbf b_o",
}
TURNED = (
    r"\mathbf %s_r = \mathbf %s \odot \cos(\boldsymbol \Theta_%s)"
    r" + \operatorname{turn}(\mathbf %s) \odot \sin(\boldsymbol \Theta_%s)"
)
ROTARY = {
    **SELF,
    "Q_r": TURNED % ("Q", "Q", "q", "Q", "q"),
    "K_r": TURNED % ("K", "K", "k", "K", "k"),
    "S": r"\mathbf S = \frac{\mathbf Q_r\mathbf K_r^{\top}}{\sqrt{d_k}}",
}
ALIBI = {**SELF, "S": r"\mathbf S = \frac{\mathbf Q\mathbf K^{\top}}{\sqrt{d_k}} + \mathbf B"}
MULTIHEAD = {"self": ({}, SELF), "cross": ({"cross": True, "bias": True, "masked": True}, CROSS_BIASED)} | {
    "rotary": ({"relative": "rotary"}, ROTARY),
    "alibi": ({"relative": "alibi"}, ALIBI),
    "unscaled": ({"scaled": False}, {**SELF, "S": GOLDEN_SCORES["dot_product"]}),
}
GOLDEN_POSITIONS = {
    "P_sin": r"\mathbf P_{i,2j} = \sin(\frac{i}{10000^{\frac{2\, j}{d}}})",
    "P_cos": r"\mathbf P_{i,2j+1} = \cos(\frac{i}{10000^{\frac{2\, j}{d}}})",
    "P": r"\mathbf P = \operatorname{interleave}(\mathbf P_{i,2j}, \mathbf P_{i,2j+1})",
}


def printed(circuit, table):
    return {name: latex(e, table) for name, e in circuit.equations.items()}


@pytest.mark.parametrize("kind", SCORES)
def test_the_printed_scores_are_the_lessons(kind):
    circuit = attention_circuit(SCORES[kind], True, False)
    golden = {"S": GOLDEN_SCORES[kind], "A": A_KEPT.replace("S", "S_{ts}") if kind == "additive" else A_KEPT}
    assert printed(circuit, score_table("B", kind)) == golden | {"O": r"\mathbf O = \mathbf A\mathbf V"}


def test_the_printed_weights_say_what_they_are_over():
    tables = score_table("B")
    both = [printed(attention_circuit(None, masked, True), tables)["A"] for masked in (False, True)]
    fraction = r"\frac{\mathbf S}{\tau}"
    assert both == [
        rf"\mathbf A = \operatorname{{softmax}}({fraction})",
        rf"\mathbf A = \operatorname{{softmax}}_{{\mathbf M}}({fraction})",
    ]


@pytest.mark.parametrize(("switches", "golden"), MULTIHEAD.values(), ids=MULTIHEAD)
def test_the_printed_heads_are_the_lessons(switches, golden):
    assert printed(multihead_circuit(**switches), multihead_table()) == golden


def test_the_printed_positions_are_the_lessons():
    trace = sinusoidal_trace(3, 4)
    assert {name: trace.latex(name) for name in trace} == GOLDEN_POSITIONS
    assert sinusoidal_trace(3, 4, base=500.0).latex("P_sin") == GOLDEN_POSITIONS["P_sin"].replace("10000", "500")
    assert LearnedPositions(3, 4).trace(2).latex("P") == r"\mathbf P = \operatorname{row}_{i}(\mathbf W_p)"
    assert alibi_trace(2, 3).latex("B") == r"\mathbf B = -m\, \left|i - j\right|"
    assert rotary_trace(torch.ones(2, 4)).latex("X_r") == (TURNED % ("X", "X", "q", "X", "q")).replace("_q", "")
    circuit = placement_circuit("qk", multihead_circuit(cross=True))
    assert {n: latex(circuit.equations[n], placement_table("B")) for n in ("X_p", "X_s")} == {
        "X_p": r"\mathbf X_p = s\, \mathbf X + \mathbf P",
        "X_s": r"\mathbf X_s = s\, \mathbf X",
    }


def chain(diagram):
    return {(wire.source, wire.target) for wire in diagram.wires}


def test_the_diagram_of_scaled_dot_product_attention_is_the_papers():
    """Product, scale, masked softmax, product: figure 2 of Vaswani et al. 2017."""
    diagram = wires(attention_circuit(SCORES["scaled_dot_product"], True, False), score_table(""))
    assert {node.id: node.kind for node in diagram.nodes} == {
        **dict.fromkeys("QKMV", "input"),
        "S:1": "matmul",
        "S:0": "scale",
        "A:0": "function",
        "O:0": "matmul",
        "O": "output",
    }
    ends = {
        ("Q", "S:1"),
        ("K", "S:1"),
        ("S:1", "S:0"),
        ("S:0", "A:0"),
        ("M", "A:0"),
        ("A:0", "O:0"),
        ("V", "O:0"),
        ("O:0", "O"),
    }
    assert chain(diagram) == ends


def test_the_diagram_of_the_additive_score_is_a_network_with_one_hidden_layer():
    diagram = wires(attention_circuit(SCORES["additive"], False, False), score_table("", "additive"))
    kinds = {node.id: node.kind for node in diagram.nodes}
    assert (kinds["S:1"], kinds["S:0"]) == ("function", "affine")
    assert {("Q", "S:1"), ("K", "S:1"), ("S:1", "S:0")} <= chain(diagram)


def test_the_diagram_of_many_heads():
    diagram = wires(multihead_circuit(masked=True), multihead_table())
    kinds = {node.id: node.kind for node in diagram.nodes}
    assert [kinds[node] for node in ("X", "Q:1", "Q:0", "S:0", "A:0", "Z:0", "O:1", "O:0", "O")] == [
        *("input", "affine", "function", "scale", "function", "matmul", "function", "affine", "output")
    ]
    nested = wires(placement_circuit("input", multihead_circuit(cross=True)), placement_table("B"))
    assert ("X_p:0", "attention") in chain(nested)
    assert ("attention", "O") in chain(nested)
