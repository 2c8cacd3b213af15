"""Every score, weight and output against NumPy float64 and against torch, values and gradients."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from engine.attention.saturation import entropy, jacobian_size, saturation, score_cost, softmax_jacobian
from engine.attention.scores import (
    SCORES,
    additive,
    attend,
    attention,
    bilinear,
    dot_product,
    keep_valid,
    masked_softmax,
    scaled_dot_product,
)
from engine.equation import scale_by, set_to
from tests.engine.attention.by_hand import scores_by_hand, softmax_over_kept
from tests.engine.recurrent.models import ATOL, seeded, uniform

B, N, T, S, K, U, H, KEYS = 2, 3, 5, 7, 11, 13, 17, 19  # all different, so that no axis can stand for another
WEIGHTS = {
    "dot_product": {},
    "scaled_dot_product": {},
    "bilinear": {"W": uniform(K, KEYS, seed=4)},
    "additive": {"W_q": uniform(K, H, seed=5), "W_k": uniform(KEYS, H, seed=6), "w_v": uniform(H, seed=7)},
}
LEADS = {"one": (), "batch": (B,), "heads": (B, N)}


def tensors(kind, lead=(B,)):
    width = KEYS if WEIGHTS[kind] else K
    return uniform(*lead, T, K, seed=1), uniform(*lead, S, width, seed=2), uniform(*lead, S, U, seed=3)


def half(lead=()):
    return torch.rand(*lead, T, S, generator=seeded(8)) < 0.6


@pytest.mark.parametrize("lead", LEADS.values(), ids=LEADS)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("kind", SCORES)
def test_every_symbol_is_its_equation(kind, masked, lead):
    Q, K_, V = tensors(kind, lead)
    mask = half(lead) if masked else None
    trace = attend(Q, K_, V, score=kind, mask=mask, **WEIGHTS[kind])
    assert set(trace) == {"S", "A", "O"}
    scores = scores_by_hand(kind, Q.numpy(), K_.numpy(), **{n: w.numpy() for n, w in WEIGHTS[kind].items()})
    weights = softmax_over_kept(scores, None if mask is None else mask.numpy())
    by_hand = {"S": scores, "A": weights, "O": np.einsum("...ts,...su->...tu", weights, V.numpy())}
    for name, value in by_hand.items():
        np.testing.assert_allclose(trace[name], value, rtol=0, atol=ATOL, err_msg=name)
    assert trace.axes("S") == {0: "TS", 1: "BTS", 2: "BNTS"}[len(lead)]


@pytest.mark.parametrize("masked", [False, True])
def test_scaled_dot_product_attention_is_torchs_values_and_gradients(masked):
    mask = (half((B, N)) | (torch.arange(S) == 2)) if masked else None  # no empty row: those are tested apart
    ours, theirs = ([t.clone().requires_grad_() for t in tensors("dot_product", (B, N))] for _ in range(2))
    mine = attention(*ours, mask=mask)["O"]
    reference = functional.scaled_dot_product_attention(*theirs, attn_mask=mask)
    torch.testing.assert_close(mine, reference, rtol=0, atol=ATOL)
    ahead = uniform(*mine.shape, seed=9)
    (mine * ahead).sum().backward()
    (reference * ahead).sum().backward()
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=0, atol=ATOL)


@pytest.mark.parametrize("kind", SCORES)
def test_gradients_are_those_of_finite_differences(kind):
    inputs = [t.requires_grad_() for t in (*tensors(kind, ()), *(w.clone() for w in WEIGHTS[kind].values()))]
    mask = half()

    def run(Q, K_, V, *weights):
        named = dict(zip(WEIGHTS[kind], weights, strict=True))
        return attention(Q, K_, V, kind, mask, temperature=0.7, **named)["O"]

    assert torch.autograd.gradcheck(run, inputs)


def test_scores_alone_are_functions_of_queries_and_keys():
    Q, K_, _ = tensors("dot_product")
    np.testing.assert_allclose(dot_product(Q, K_), scores_by_hand("dot_product", Q.numpy(), K_.numpy()), atol=ATOL)
    torch.testing.assert_close(scaled_dot_product(Q, K_), dot_product(Q, K_) / K**0.5)
    Q, K_, _ = tensors("additive")
    by_name, in_order = additive(Q, K_, **WEIGHTS["additive"]), additive(Q, K_, *WEIGHTS["additive"].values())
    torch.testing.assert_close(by_name, in_order)
    assert by_name.shape == (B, T, S)
    assert bilinear(Q, K_, WEIGHTS["bilinear"]["W"]).shape == (B, T, S)


def test_a_score_of_ones_own_is_taken_as_it_is():
    Q, K_, V = tensors("dot_product")
    trace = attend(Q, K_, V, score=lambda Q, K: -torch.cdist(Q, K))
    np.testing.assert_allclose(trace["A"], softmax_over_kept(-torch.cdist(Q, K_).numpy()), atol=ATOL)
    assert "S" not in trace  # it has no equation
    np.testing.assert_allclose(trace["S"], -torch.cdist(Q, K_).numpy())


def test_only_two_scores_need_equal_widths():
    Q, K_, V = tensors("additive")
    for kind in ("dot_product", "scaled_dot_product"):
        with pytest.raises(ValueError, match="one width, not 11 and 19"):
            attend(Q, K_, V, score=kind)
    for kind in ("additive", "bilinear"):
        assert attend(Q, K_, V, score=kind, **WEIGHTS[kind])["O"].shape == (B, T, U)


def test_what_does_not_fit_is_refused_in_words():
    Q, K_, V = tensors("additive")
    weights = WEIGHTS["additive"]
    with pytest.raises(ValueError, match="has W_q, W_k, w_v, not W_k"):
        additive(Q, K_, W_k=weights["W_k"])
    with pytest.raises(ValueError, match=r"W_q of the additive score must be \(11, 17\)"):
        additive(Q, K_, **(weights | {"W_q": weights["W_k"]}))
    Q, K_, V = tensors("dot_product")
    with pytest.raises(ValueError, match="score is one of"):
        attend(Q, K_, V, score="cosine")
    with pytest.raises(ValueError, match="each key has one value"):
        attend(Q, K_, V[:, :-1])
    with pytest.raises(ValueError, match="above 0"):
        attend(Q, K_, V, temperature=0.0)
    with pytest.raises(ValueError, match="does not fit"):
        attend(Q, K_, V, mask=torch.ones(T, S + 1, dtype=torch.bool))
    with pytest.raises(ValueError, match="does not fit"):  # it would make more rows of the scores
        attend(Q, K_, V, mask=torch.ones(N, B, T, S, dtype=torch.bool))


def test_the_textbooks_two_examples():
    """Constant keys: the mean of the valid values, (2, 3, 4, 5) and (10, 11, 12, 13)."""
    values = torch.arange(40.0).reshape(1, 10, 4).repeat(2, 1, 1)
    mask = keep_valid([2, 6], 10)
    named = {"W_q": uniform(20, 8, seed=1), "W_k": uniform(2, 8, seed=2), "w_v": uniform(8, seed=3)}
    trace = attend(uniform(2, 1, 20, seed=4), torch.ones(2, 10, 2), values, additive, mask, **named)
    np.testing.assert_allclose(trace["O"][:, 0], [[2, 3, 4, 5], [10, 11, 12, 13]], atol=1e-5)
    trace = attend(uniform(2, 1, 2, seed=5), torch.ones(2, 10, 2), values, mask=mask)
    np.testing.assert_allclose(trace["O"][:, 0], [[2, 3, 4, 5], [10, 11, 12, 13]], atol=1e-5)


def test_the_additive_score_is_bounded_and_a_network_of_one_hidden_layer():
    Q, K_, _ = tensors("additive")
    w = WEIGHTS["additive"]
    assert additive(1e6 * Q, 1e6 * K_, **w).abs().max() <= w["w_v"].abs().sum()
    assert dot_product(1e6 * Q, 1e6 * Q).abs().max() > 1e6
    together = torch.cat([Q[0, 3], K_[0, 4]]) @ torch.cat([w["W_q"], w["W_k"]])
    torch.testing.assert_close(torch.tanh(together) @ w["w_v"], additive(Q, K_, **w)[0, 3, 4])


def test_temperature_sharpens_and_flattens():
    Q, K_, V = tensors("dot_product")
    sharp, plain, flat = (attend(Q, K_, V, temperature=t) for t in (0.2, None, 5.0))
    assert (entropy(torch.tensor(sharp["A"])) < entropy(torch.tensor(plain["A"]))).all()
    assert (entropy(torch.tensor(flat["A"])) > entropy(torch.tensor(plain["A"]))).all()
    np.testing.assert_allclose(sharp["A"], softmax_over_kept(sharp["S"] / 0.2), atol=ATOL)


def test_weights_can_be_overwritten_and_what_is_read_follows():
    Q, K_, V = tensors("dot_product")
    row = {"A": (set_to(0.0, query=2), set_to(1.0, query=2, key=6))}
    changed, free = attend(Q, K_, V, do=row), attend(Q, K_, V)
    np.testing.assert_array_equal(changed["O"][:, 2], V[:, 6])
    np.testing.assert_array_equal(changed["O"][:, 3], free["O"][:, 3])
    unscaled = attend(Q, K_, V, do={"S": scale_by(K**0.5)})
    np.testing.assert_allclose(unscaled["A"], attend(Q, K_, V, score=dot_product)["A"], atol=ATOL)


# ------------------------------------------------------------------------------------------------------ why sqrt(d)


def test_entropy_and_jacobian_are_their_definitions():
    A = masked_softmax(uniform(T, S, seed=1) * 4, half())
    A[0] = 0
    by_hand = [-sum(a * np.log(a) for a in row if a > 0) for row in A.numpy()]
    np.testing.assert_allclose(entropy(A), by_hand, atol=ATOL)
    scores = uniform(S, seed=2)
    torch.testing.assert_close(softmax_jacobian(masked_softmax(scores)), torch.func.jacrev(masked_softmax)(scores))
    torch.testing.assert_close(jacobian_size(A), softmax_jacobian(A).abs().mean(dim=(-1, -2)))


def test_variance_grows_like_the_width_and_the_softmax_saturates():
    """Figures of the reference: variances 4.0, 63, 519; at 512 largest weight .95, entropy .12, a Jacobian 11 times smaller."""
    widths = [4, 64, 512]
    for width, (plain, scaled) in zip(widths, saturation(widths, seeded(0)), strict=True):
        assert plain.variance == pytest.approx(width, rel=0.05)
        assert scaled.variance == pytest.approx(1, rel=0.05)
    assert plain.largest_weight == pytest.approx(0.95, abs=0.01)
    assert plain.entropy == pytest.approx(0.12, abs=0.02)
    assert scaled.jacobian / plain.jacobian == pytest.approx(11, rel=0.15)


def test_costs_of_the_scores():
    additive_cost, dot_cost = (score_cost(kind, 512, 512, 64, 64) for kind in ("additive", "dot_product"))
    assert additive_cost.numbers * 4 / 1e6 == pytest.approx(67, abs=2)  # megabytes in float32
    assert dot_cost == score_cost("scaled_dot_product", 512, 512, 64)
    assert additive_cost.numbers > 60 * dot_cost.numbers
    assert score_cost("bilinear", 2, 3, 5).multiplications == 2 * 25 + 6 * 5
    with pytest.raises(ValueError, match="no score"):
        score_cost("cosine", 1, 1, 1)
