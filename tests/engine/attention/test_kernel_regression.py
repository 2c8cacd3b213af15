"""Kernel regression against NumPy, the cases of others by their id, and the figures of learning its width."""

import itertools
import math
import statistics

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.attention.kernel_regression import KERNELS, fit, learned_trace, losses, optimum, regress, textbook_points, truth
from engine.attention.scores import attention, dot_product
from tests.engine.recurrent.models import ATOL, seeded, uniform

T, S = 5, 7
X, KEYS, VALUES = uniform(T, seed=1) * 3, uniform(S, seed=2) * 3, uniform(S, seed=3)


def kernel_by_hand(kind, distance, width):
    u = distance / width
    return {
        "average": np.ones_like(u),
        "gaussian": np.exp(-(u**2) / 2),
        "boxcar": (np.abs(u) <= 1) * 1.0,
        "triangular": np.clip(1 - np.abs(u), 0, None),
    }[kind]


def weights_by_hand(kind, x, keys, width, hidden=None):
    distance = np.subtract.outer(np.asarray(x), np.asarray(keys))
    kernel = kernel_by_hand(kind, distance, width)
    if hidden is not None:
        kernel, distance = np.where(hidden, 0, kernel), np.where(hidden, np.inf, distance)
    for row, (values, far) in enumerate(zip(kernel, np.abs(distance), strict=True)):
        if values.sum() == 0:
            kernel[row] = far == far.min()
    return kernel / kernel.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("width", [0.05, 0.7, 2.0, 50.0])
@pytest.mark.parametrize("kind", KERNELS)
def test_every_symbol_is_its_equation(kind, width):
    trace = regress(X, KEYS, VALUES, kind, width)
    weights = weights_by_hand(kind, X, KEYS, width)
    by_hand = {"D": np.subtract.outer(X.numpy(), KEYS.numpy()), "A": weights, "f": weights.dot(VALUES.numpy())}
    assert set(trace) == {*by_hand, "S"}
    for name, value in by_hand.items():
        np.testing.assert_allclose(trace[name], value, rtol=0, atol=ATOL, err_msg=name)
    np.testing.assert_allclose(np.exp(trace["S"]), kernel_by_hand(kind, by_hand["D"], width), rtol=0, atol=ATOL)


@pytest.mark.parametrize("kind", KERNELS)
def test_each_point_can_be_hidden_from_itself(kind):
    trace = regress(KEYS, KEYS, VALUES, kind, 0.6, leave_one_out=True)
    np.testing.assert_allclose(trace["A"], weights_by_hand(kind, KEYS, KEYS, 0.6, np.eye(S, dtype=bool)), rtol=0, atol=ATOL)
    assert (np.diag(trace["A"]) == 0).all()
    for wrong in ((X[:S], KEYS, VALUES), ([1.0], [1.0], [2.0])):
        with pytest.raises(ValueError, match=r"hidden from itself|at least two"):
            regress(*wrong, kind, leave_one_out=True)


# --------------------------------------------------------------------------------------------------- cases by their id


def test_nw_01_a_query_far_from_all_keys():
    trace = regress([100.0], [0.0, 1.0, 2.0], [5.0, 7.0, 9.0], "gaussian", 1.0)
    np.testing.assert_allclose(trace["f"], [9.0], atol=1e-9)
    np.testing.assert_allclose(trace["A"], [[1.02256890712e-86, 1.66722238426e-43, 1.0]], rtol=1e-9)
    assert np.exp(-(trace["D"] ** 2) / 2).sum() == 0  # the naive form is 0/0 here


@pytest.mark.parametrize("kind", ["boxcar", "triangular"])
def test_nw_02_no_key_within_reach(kind):
    trace = regress([10.0, 0.5], [0.0, 1.0], [3.0, 4.0], kind, 1.0)
    assert np.exp(trace["S"])[0].tolist() == [0, 0]
    assert [(note.key, note.values) for note in trace.notes] == [("kernel.out_of_reach", {"count": 1, "queries": [0]})]
    np.testing.assert_array_equal(trace["A"][0], [0, 1])  # the nearest key alone, as a Gaussian does
    assert trace["f"].tolist() == [4.0, 3.5]
    between = regress([5.0], [0.0, 10.0, 10.0], [3.0, 4.0, 8.0], kind, 1.0)
    np.testing.assert_allclose(between["A"], [[1 / 3] * 3])


def test_nw_04_negative_values():
    assert regress([0.5], [0.0, 1.0], [-2.0, 4.0])["f"][0] == pytest.approx(1.0, abs=1e-9)


# ---------------------------------------------------------------------------------------------- the whole of the kind

FINITE = st.floats(-1e6, 1e6, allow_subnormal=False)


@given(st.lists(FINITE, min_size=1, max_size=6), FINITE, st.floats(1e-8, 1e8), st.sampled_from(list(KERNELS)))
def test_weights_are_shares_wherever_the_query_and_whatever_the_width(keys, query, width, kind):
    values = [float(n) - 2 for n in range(len(keys))]
    trace = regress([query], keys, values, kind, width)
    assert (trace["A"] >= 0).all()
    assert trace["A"].sum() == pytest.approx(1, abs=1e-12)
    assert min(values) - 1e-9 <= trace["f"][0] <= max(values) + 1e-9
    assert bool(trace.notes) <= (kind in ("boxcar", "triangular"))


def test_extremes_are_answered_or_refused():
    assert regress([1e50], [0.0, 1.0], [1.0, 2.0], width=1e-50)["A"].sum() == 1
    assert regress([3.0], [2.0], [7.0], "triangular", 0.1)["f"].tolist() == [7.0]
    for width in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="width"):
            regress([1.0], [0.0], [1.0], width=width)
    for keys, values in (([], []), ([1.0], [1.0, 2.0]), ([math.nan], [1.0]), ([1.0], [math.inf])):
        with pytest.raises(ValueError, match="key"):
            regress([1.0], keys, values)
    with pytest.raises(ValueError, match="queries are finite"):
        regress([math.nan], [1.0], [1.0])
    with pytest.raises(ValueError, match="kernel is one of"):
        regress([1.0], [1.0], [1.0], "epanechikov")


def test_it_is_attention():
    """The same three lines: for keys of one length, a Gaussian kernel is a dot product."""
    turned = torch.stack([KEYS.cos(), KEYS.sin()], -1), torch.stack([X.cos(), X.sin()], -1)
    O = attention(turned[1], turned[0], VALUES.unsqueeze(-1), lambda Q, K: -(torch.cdist(Q, K) ** 2) / 2)["O"]
    torch.testing.assert_close(O, attention(turned[1], turned[0], VALUES.unsqueeze(-1), dot_product)["O"])


def test_the_gradient_of_what_is_read_is_the_covariance_of_the_keys():
    """With keys as values: d O / d q = Cov_p(k), p the weights."""
    K, q = uniform(S, 3, seed=4), uniform(1, 3, seed=5)
    jacobian = torch.func.jacrev(lambda q: attention(q, K, K, dot_product)["O"][0])(q)[:, 0]
    p = attention(q, K, K, dot_product)["A"][0]
    centred = K - p @ K
    torch.testing.assert_close(jacobian, (p.unsqueeze(-1) * centred).T @ centred)


# --------------------------------------------------------------------------------------------------- learning the width


def loss_by_hand(x, y, w, include_self=False):
    total = 0.0
    for i in range(len(x)):
        others = [j for j in range(len(x)) if include_self or j != i]
        weights = np.array([math.exp(-((w * (x[i] - x[j])) ** 2) / 2) for j in others])
        total += (weights.dot([y[j] for j in others]) / weights.sum() - y[i]) ** 2
    return total


@pytest.mark.parametrize("include_self", [False, True])
def test_the_loss_over_w_is_its_equation_and_its_path_follows_the_gradient(include_self):
    x, y = textbook_points(seeded(3), 11)
    by_hand = [loss_by_hand(x.tolist(), y.tolist(), w, include_self) for w in (0.0, 0.4, 3.0, -3.0)]
    np.testing.assert_allclose(losses(x, y, [0.0, 0.4, 3.0, -3.0], include_self=include_self), by_hand, rtol=1e-10)
    trace = learned_trace(x, y, 3.0, include_self=include_self)
    assert float(trace["L"]) == pytest.approx(by_hand[2], rel=1e-10)
    path = fit(x, y, 0.4, learning_rate=0.01, epochs=3, include_self=include_self)
    assert [step.epoch for step in path] == [0, 1, 2, 3]
    for step, after in itertools.pairwise(path):
        slope = (losses(x, y, [step.w + 1e-6, step.w - 1e-6], include_self=include_self)).tolist()
        assert step.gradient == pytest.approx((slope[0] - slope[1]) / 2e-6, rel=1e-5)
        assert after.w == pytest.approx(step.w - 0.01 * step.gradient)
        assert step.loss == pytest.approx(loss_by_hand(x.tolist(), y.tolist(), step.w, include_self))


def test_the_optimum_is_where_no_other_width_is_better():
    x, y = textbook_points(seeded(3))
    w, loss = optimum(x, y)
    assert loss == pytest.approx(losses(x, y, [w]).item())
    assert (losses(x, y, torch.logspace(-2, 2, 997)) >= loss - 1e-9).all()
    near = losses(x, y, [w * 0.999, w * 1.001])
    assert (near > loss).all()


def test_a_point_among_its_own_neighbours_copies_its_label():
    x, y = textbook_points(seeded(3))
    assert optimum(x, y, include_self=True)[0] == pytest.approx(100.0, rel=1e-6)
    path = fit(x, y, 0.5, include_self=True)
    assert path[-1].loss < path[0].loss / 4
    assert losses(x, y, [1e6], include_self=True).item() < 1e-9


def test_a_learning_rate_out_of_all_measure_stops_the_path():
    path = fit(*textbook_points(seeded(3), 11), 0.4, learning_rate=1e60, epochs=9)
    assert len(path) < 10
    assert all(math.isfinite(step.loss) for step in path)


def test_the_figures_of_the_textbooks_example():
    """Figures of the reference: means over 20 seeds of the squared error against the curve.

    Average .909, Gaussian of width 1 .422, w learned as in the book .185 (median .140, |w| up to 29.7), at the exact optimum
    .072 with w 4.1 (3.1 to 7.3).
    """
    at = torch.arange(0, 5, 0.1, dtype=torch.float64)
    found = {name: [] for name in ("average", "plain", "book", "best", "w", "book_w")}
    for seed in range(20):
        generator = seeded(seed)
        x, y = textbook_points(generator)
        path = fit(x, y, torch.rand(1, generator=generator).item())
        found["w"].append(optimum(x, y, grid=100)[0])
        found["book_w"].append(abs(path[-1].w))
        widths = {"plain": 1.0, "book": 1 / found["book_w"][-1], "best": 1 / found["w"][-1]}
        found["average"].append(((torch.tensor(regress(at, x, y, "average")["f"]) - truth(at)) ** 2).mean().item())
        for name, width in widths.items():
            error = torch.tensor(regress(at, x, y, "gaussian", width)["f"]) - truth(at)
            found[name].append((error**2).mean().item())
    mean = {name: statistics.mean(values) for name, values in found.items()}
    assert mean["average"] == pytest.approx(0.909, abs=0.05)
    assert mean["plain"] == pytest.approx(0.422, abs=0.05)
    assert mean["best"] == pytest.approx(0.072, abs=0.02)
    assert mean["w"] == pytest.approx(4.1, abs=0.5)
    assert 2.5 < min(found["w"]) < max(found["w"]) < 7.5
    assert statistics.median(found["book"]) == pytest.approx(0.140, abs=0.03)
    assert max(found["book_w"]) > 20  # one step of 0.5 on the summed loss jumps over the minimum
    assert mean["best"] < mean["book"] < mean["plain"] < mean["average"]


# ------------------------------------------------------------------------------------------------------------ formulas


def test_the_printed_formulas_are_the_lessons():
    scores = {
        "average": r"0\, \mathbf D",
        "gaussian": r"-\frac{(\frac{\mathbf D}{h})^{2}}{2}",
        "boxcar": r"\log(\mathbb 1_{h}(\mathbf D))",
        "triangular": r"\log(\operatorname{ReLU}(1 - \frac{\left|\mathbf D\right|}{h}))",
    }
    for kind, formula in scores.items():
        trace = regress(X, KEYS, VALUES, kind)
        assert trace.latex("S") == rf"\mathbf S = {formula}"
        assert trace.latex("D") == r"\mathbf D = x - x_i"
        assert trace.latex("f") == r"\mathbf f = \mathbf A\mathbf y"
    assert regress(X, KEYS, VALUES).latex("A") == r"\mathbf A = \operatorname{softmax}(\mathbf S)"
    nearest = r"\mathbf A = \operatorname{nearest}_{\mathbf D}(\operatorname{softmax}(\mathbf S))"
    assert regress(X, KEYS, VALUES, "boxcar").latex("A") == nearest
    learned = learned_trace(KEYS, VALUES, 2.0)
    assert learned.latex("S") == r"\mathbf S = -\frac{(w\, \mathbf D)^{2}}{2}"
    assert learned.latex("A") == r"\mathbf A = \operatorname{softmax}_{\mathbf M}(\mathbf S)"
    assert learned.latex("L") == r"L = \sum((\mathbf f - \mathbf y)^{2})"


def test_the_numbers_of_a_cell():
    trace = regress(X, KEYS, VALUES, "gaussian", 0.5)
    assert trace.plugged("D", query=2, key=3) == f"{X[2]:.2f} - {KEYS[3]:.2f} = {trace['D'][2, 3]:.2f}".replace("- -", "+ ")
    text = trace.plugged("f", query=2, expand=S, digits=9)
    assert eval(text.split(" = ")[0]) == pytest.approx(trace["f"][2], abs=1e-7)
