"""Stacks of blocks: every symbol against NumPy, where the residual goes, and how sizes grow with depth."""

import itertools

import numpy as np
import pytest
import torch
from torch.nn import functional

from engine.diagram import wires
from engine.equation import set_to
from engine.transformer.residual_norm import (
    ACTIVATIONS,
    ResidualStack,
    add_norm,
    batch_norm,
    block_circuit,
    layer_norm,
    rms_norm,
    stack_tables,
)
from tests.engine.recurrent.models import ATOL, seeded, uniform

B, T, D, L = 2, 5, 7, 3
X = uniform(B, T, D, seed=1)
TORCH = {"relu": torch.relu, "gelu": functional.gelu, "tanh": torch.tanh, "sigmoid": torch.sigmoid, "linear": lambda a: a}
NORMS = {"layer": layer_norm, "rms": rms_norm, "batch": batch_norm}
VARIANTS = [
    (norm, place, residual)
    for norm, place, residual in itertools.product((None, *NORMS), ("pre", "post"), (True, False))
    if norm or place == "pre"
]


def made(**switches):
    stack = ResidualStack(D, L, generator=seeded(1), **switches).double()
    with torch.no_grad():
        for number, parameter in enumerate(stack.parameters()):
            parameter.copy_(uniform(*parameter.shape, seed=100 + number))
    return stack


def stack_by_hand(stack, X, norm, place, residual, phi):
    """The blocks once more, written as a loop."""
    outputs = [X]
    for block in stack.blocks:

        def normed(v, block=block):
            given = {"gamma": block.norm.gamma} | ({} if norm == "rms" else {"beta": block.norm.beta})
            return NORMS[norm](v, **given)

        x = outputs[-1]
        f = phi((normed(x) if norm and place == "pre" else x) @ block.W)
        y = x + f if residual else f
        outputs.append(normed(y) if norm and place == "post" else y)
    return outputs


@pytest.mark.parametrize(("norm", "place", "residual"), VARIANTS)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_layer_is_its_equation(norm, place, residual, activation):
    stack = made(norm=norm, place=place, residual=residual, activation=activation)
    by_hand = stack_by_hand(stack, X, norm, place, residual, TORCH[activation])
    trace = stack.trace(X)
    for layer, value in enumerate(by_hand[1:], start=1):
        np.testing.assert_allclose(trace[f"X_{layer}"], value.detach(), rtol=0, atol=ATOL)
    torch.testing.assert_close(stack(X), by_hand[-1], rtol=0, atol=ATOL)
    one = stack.trace(X[0]) if norm != "batch" else None
    if one is not None:
        np.testing.assert_allclose(one["X_3"], trace["X_3"][0], rtol=0, atol=ATOL)


@pytest.mark.parametrize(("norm", "place", "residual"), VARIANTS)
def test_sizes_are_those_of_autograd(norm, place, residual):
    stack = made(norm=norm, place=place, residual=residual)
    target = uniform(B, T, D, seed=2)
    by_hand = stack_by_hand(stack, X.clone().requires_grad_(), norm, place, residual, torch.relu)
    loss = functional.mse_loss(by_hand[-1], target)
    gradients = torch.autograd.grad(loss, [*by_hand, *(block.W for block in stack.blocks)])
    flow = stack.flow(X, target)
    assert flow.loss == pytest.approx(loss.item(), abs=ATOL)
    assert flow.overflow is None
    for found, tensors in ((flow.forward, by_hand), (flow.backward, gradients[: L + 1])):
        np.testing.assert_allclose(found, [t.detach().square().mean().sqrt() for t in tensors], rtol=1e-9)
    np.testing.assert_allclose(flow.gradients, [g.norm() for g in gradients[: L + 1]], rtol=1e-9)
    np.testing.assert_allclose(flow.weights, [g.norm() for g in gradients[L + 1 :]], rtol=1e-9)
    np.testing.assert_allclose(flow.spread, [t.detach().std(correction=0) for t in by_hand], rtol=1e-9)


@pytest.mark.parametrize(("norm", "place", "residual"), VARIANTS)
def test_ln_11_every_parameter_has_an_influence(norm, place, residual):
    stack = made(norm=norm, place=place, residual=residual, activation="gelu")
    (stack(X) * uniform(B, T, D, seed=3)).sum().backward()
    for name, parameter in stack.named_parameters():
        assert parameter.grad.abs().max() > 0, name


def test_ln_08_the_residual_carries_the_input_without_its_norm():
    x = torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64)
    right = add_norm(x, lambda v: 2 * v, "pre")
    np.testing.assert_allclose(right, [-1.1380830629, 1.46547923427, 6.67260382863], atol=1e-9)
    wrong = layer_norm(x) + 2 * layer_norm(x)
    np.testing.assert_allclose(wrong, [-3.20712459435, -0.801781148588, 4.00890574294], atol=1e-9)


def test_ln_09_before_and_after():
    x = torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64)
    for place, numbers in {
        "pre": [-1.1380830629, 1.46547923427, 6.67260382863],
        "post": [-1.06904458585, -0.267261146462, 1.33630573231],
    }.items():
        np.testing.assert_allclose(add_norm(x, lambda v: 2 * v, place), numbers, atol=1e-9)
        stack = ResidualStack(3, 1, place=place, activation="linear").double()
        with torch.no_grad():
            stack.blocks[0].W.copy_(2 * torch.eye(3))
        np.testing.assert_allclose(stack(x[None])[0].detach(), numbers, atol=1e-9)
    np.testing.assert_allclose(add_norm(x, lambda v: 2 * v, norm=None), 3 * x)
    with pytest.raises(ValueError, match="pre, post"):
        add_norm(x, lambda v: v, "mid")
    with pytest.raises(ValueError, match="input's shape"):
        add_norm(x, lambda v: v[:1])


def test_a_block_that_computes_nothing_hands_on_its_input():
    stack = made(norm="layer")
    trace = stack.trace(X, do={f"blocks.{layer}.F": set_to(0.0) for layer in range(L)})
    np.testing.assert_array_equal(trace["X_3"], X)
    one = stack.trace(X, do={"blocks.1.F": set_to(0.0, query=2, unit=4)})
    free = stack.trace(X)
    np.testing.assert_array_equal(one["X_1"], free["X_1"])
    assert set(np.argwhere(one["X_2"] != free["X_2"])[:, 1:].ravel().tolist()) == {2, 4}


@pytest.mark.parametrize("norm", NORMS)
def test_constant_and_empty_rows_stay_numbers_through_64_blocks(norm):
    for place in ("pre", "post"):
        stack = ResidualStack(D, 64, norm=norm, place=place, generator=seeded(1))
        for rows in (torch.zeros(T, D), torch.full((T, D), 1e4), torch.ones(1, D)):
            flow = stack.flow(rows)
            assert flow.overflow is None
            assert all(np.isfinite([*flow.forward, *flow.backward, *flow.weights]))


# ------------------------------------------------------------------------------------------------------- sizes over depth

STACKS = {"plain": {"residual": False, "norm": None}, "residual": {"norm": None}, "post": {"place": "post"}, "pre": {}}


def flows(width=16, tokens=128, depth=24, seeds=20):
    """The four stacks of ``STACKS`` on random inputs and targets, with many seeds."""
    found = {name: [] for name in STACKS}
    for seed, (name, switches) in itertools.product(range(seeds), STACKS.items()):
        generator = seeded(seed)
        given = torch.randn(tokens, width, generator=generator)
        found[name].append(ResidualStack(width, depth, generator=generator, **switches).flow(given, generator=generator))
    return found


def test_the_figures_of_24_layers():
    """Gradients of the first weights in the reference: 3.6e-6, 2.8e7, .42, 11; activations 4580. All within the spread."""
    found = flows()
    figures = {"plain": 3.6e-6, "residual": 2.8e7, "post": 0.42, "pre": 11}
    typical = {}
    for name, figure in figures.items():
        sizes = sorted(flow.weights[0] for flow in found[name])
        typical[name] = sizes[len(sizes) // 2]
        assert sizes[0] <= figure <= sizes[-1], name
    activations = sorted(flow.spread[-1] for flow in found["residual"])
    assert activations[0] <= 4580 <= activations[-1]
    assert typical["plain"] < 1e-4 < 0.1 < typical["post"] < typical["pre"] < 100 < 1e6 < typical["residual"]


def test_a_residual_alone_makes_sizes_grow_and_none_makes_them_vanish():
    deep = {
        name: np.mean([np.log(flow.backward[0] / flow.backward[-1]) for flow in found])
        for name, found in flows(seeds=5).items()
    }
    assert deep["plain"] < -5
    assert deep["residual"] > 5
    assert abs(deep["pre"]) < 3
    assert abs(deep["post"]) < 3


def test_each_size_is_that_of_its_own_layer():
    flow = flows(depth=64, seeds=1)["residual"][0]
    assert len(flow.forward) == len(flow.backward) == 65
    assert len(flow.weights) == 64
    assert all(after > before for before, after in itertools.pairwise(flow.forward))
    assert flow.forward[-1] > 1e8
    assert flow.overflow is None


def test_what_leaves_all_numbers_is_named():
    given = torch.randn(T, D, generator=seeded(1))
    flow = ResidualStack(D, 64, norm=None, init_scale=1e6, generator=seeded(1)).flow(given)
    assert flow.overflow is not None
    assert np.isfinite(flow.forward[: flow.overflow]).all()
    assert ResidualStack(D, 64, norm="layer", init_scale=1e6, generator=seeded(1)).flow(given).overflow is None


def test_other_choices_are_refused_in_words():
    for wrong, words in (
        ({"depth": 0}, "1 to 64"),
        ({"depth": 65}, "1 to 64"),
        ({"width": 0}, "1 to 64"),
        ({"norm": "group"}, "norm is one of"),
        ({"place": "mid"}, "place is one of"),
        ({"activation": "swish"}, "activation is one of"),
        ({"init_scale": float("nan")}, "scale"),
        ({"eps": 0.0}, "above 0"),
    ):
        with pytest.raises(ValueError, match=words):
            ResidualStack(**({"width": 4, "depth": 2} | wrong))
    for given in (torch.zeros(3, 5), torch.zeros(4), torch.zeros(0, 4)):
        with pytest.raises(ValueError, match="X must be"):
            ResidualStack(4, 2)(given)


def test_weights_come_from_the_generator_that_is_passed():
    state = torch.random.get_rng_state()
    a, b = (ResidualStack(16, 2, init_scale=3.0, generator=seeded(5)) for _ in range(2))
    assert all(torch.equal(a.state_dict()[name], b.state_dict()[name]) for name in a.state_dict())
    assert list(a.state_dict())[:3] == ["blocks.0.W", "blocks.0.norm.gamma", "blocks.0.norm.beta"]
    assert a.blocks[0].W.std().item() == pytest.approx(3 / 4, rel=0.2)
    assert torch.equal(torch.random.get_rng_state(), state)


# -------------------------------------------------------------------------------------------------- formulas and diagrams


def test_the_printed_formulas_are_the_lessons():
    both = {place: made(place=place).trace(X) for place in ("pre", "post")}
    pre, post = both["pre"], both["post"]
    assert pre.latex("blocks.1.F") == r"\mathbf F = \operatorname{ReLU}(\mathbf X_n\mathbf W)"
    assert pre.latex("blocks.1.Y") == r"\mathbf Y = \mathbf X + \mathbf F"
    assert post.latex("blocks.1.F") == r"\mathbf F = \operatorname{ReLU}(\mathbf X\mathbf W)"
    assert post.latex("blocks.1.R") == r"\mathbf R = \mathbf X + \mathbf F"
    assert post.latex("blocks.1.norm.Y") == r"\mathbf Y = \boldsymbol \gamma \odot \hat{\mathbf X} + \boldsymbol \beta"
    plain = made(norm=None, residual=False, activation="tanh").trace(X)
    assert [plain.latex(f"blocks.0.{name}") for name in "FY"] == [
        r"\mathbf F = \tanh(\mathbf X\mathbf W)",
        r"\mathbf Y = \mathbf F",
    ]
    text = pre.plugged("blocks.1.Y", batch=1, query=2, unit=3, digits=6)
    numbers = [pre["X_1"][1, 2, 3], pre["blocks.1.F"][1, 2, 3], pre["X_2"][1, 2, 3]]
    assert text == "{:.6f} + {:.6f} = {:.6f}".format(*numbers).replace("+ -", "- ")


def test_the_bypass_is_drawn_from_before_the_norm():
    table = stack_tables(1, "layer", "BTD")["blocks.0."]
    pre = wires(block_circuit("relu", True, "layer", "pre"), table)
    ends = {(wire.source, wire.target) for wire in pre.wires}
    assert {("X", "norm"), ("norm", "F:0"), ("X", "Y:0"), ("F:0", "Y:0"), ("Y:0", "Y")} == ends
    post = wires(block_circuit("relu", True, "layer", "post"), table)
    ends = {(wire.source, wire.target) for wire in post.wires}
    assert {("X", "F:0"), ("X", "R:0"), ("F:0", "R:0"), ("R:0", "norm"), ("norm", "Y")} == ends
