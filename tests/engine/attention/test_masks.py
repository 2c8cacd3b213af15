"""Masks and weights: the cases in which others' attention went wrong, by their id, and the whole kind of each."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from engine.attention.masks import empty_rows, fitted, keep_all_of, keep_past, keep_valid, kept
from engine.attention.multihead import MultiHeadAttention, head_choices
from engine.attention.scores import attend, attention, masked_softmax
from tests.engine.attention.by_hand import softmax_over_kept
from tests.engine.recurrent.models import seeded, uniform

INF = math.inf
SCORES = [[0.3, -1.2, 2.0], [1.0, 1.0, 1.0]]
KEEP = [[0, 0, 0], [1, 1, 0]]
VALUES = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]


def double(rows):
    return torch.tensor(rows, dtype=torch.float64)


def close(given, expected, atol=1e-9):
    np.testing.assert_allclose(np.asarray(given), np.asarray(expected), rtol=0, atol=atol)


# --------------------------------------------------------------------------------------------------- cases by their id


def test_att_01_a_query_whose_keys_are_all_padding():
    weights = masked_softmax(double(SCORES), torch.tensor(KEEP))
    close(weights, [[0, 0, 0], [0.5, 0.5, 0]])
    close(weights @ double(VALUES), [[0, 0], [2, 3]])
    trace = attend(torch.eye(2), double(SCORES).T, double(VALUES), lambda Q, K: Q.double() @ K.mT, KEEP)
    assert [(note.key, note.values["rows"]) for note in trace.notes] == [("attention.empty_rows", [(0,)])]
    assert empty_rows(weights).tolist() == [True, False]


def test_att_02_gradients_stay_finite_beside_a_fully_masked_row():
    scores, values = double(SCORES).requires_grad_(), double(VALUES).requires_grad_()
    (masked_softmax(scores, torch.tensor(KEEP)) @ values)[1].sum().backward()
    close(scores.grad, [[0, 0, 0], [-1, 1, 0]])
    assert values.grad.isfinite().all()
    scores.grad = None
    (masked_softmax(scores, torch.tensor(KEEP)) @ double(VALUES)).sum().backward()
    close(scores.grad[0], [0, 0, 0])


def test_att_04_a_valid_length_of_0():
    scores = double([[0.2, 0.9, -0.4, 1.3]])
    close(masked_softmax(scores, keep_valid(0, 4)), [[0, 0, 0, 0]])
    close(torch.softmax(scores.masked_fill(~keep_valid(0, 4), -1e6), -1), [[0.25] * 4])  # the textbook's fill: an artefact


def test_att_05_masking_is_not_multiplying_with_0_nor_filling():
    scores = double([-3.0, -1.0, 0.5])
    close(masked_softmax(scores, [1, 1, 0]), [0.119202922022, 0.880797077978, 0])
    close(torch.softmax(scores * double([1, 1, 0]), -1), [0.0351190269593, 0.259496460342, 0.705384512698])
    deep = double([-2000000.0, -2000000.0])
    close(torch.softmax(deep.masked_fill(torch.tensor([False, True]), -1e6), -1), [0, 1])
    close(masked_softmax(deep, [1, 0]), [1, 0])


def test_att_06_true_keeps():
    causal = [[1, 0, 0], [0.5, 0.5, 0], [1 / 3, 1 / 3, 1 / 3]]
    close(masked_softmax(torch.zeros(3, 3, dtype=torch.float64), keep_past(3)), causal)
    trace = attend(torch.zeros(3, 2), torch.zeros(3, 2), torch.eye(3), mask=keep_past(3))
    assert (trace["A"][np.triu_indices(3, 1)] == 0).all()
    close(masked_softmax(torch.zeros(3, 3, dtype=torch.float64), ~keep_past(3)), [[0, 0.5, 0.5], [0, 0, 1], [0, 0, 0]])


def test_att_07_padding_masks_keys_and_not_queries():
    mask = keep_all_of(keep_past(4), keep_valid(3, 4))
    third = [1 / 3, 1 / 3, 1 / 3, 0]
    close(masked_softmax(torch.zeros(4, 4, dtype=torch.float64), mask), [[1, 0, 0, 0], [0.5, 0.5, 0, 0], third, third])


def test_att_09_a_row_that_keeps_nothing():
    Q = K = torch.ones(2, 2, dtype=torch.float64)
    V = double([[1, 2], [3, 4]])
    close(attend(Q, K, V, mask=[[0, 0], [1, 1]])["O"], [[0, 0], [2, 3]])
    fused = functional.scaled_dot_product_attention(Q[None], K[None], V[None], attn_mask=torch.tensor([[0, 0], [1, 1]]).bool())
    close(fused[0], [[0, 0], [2, 3]])  # on which the fast path relies


@pytest.mark.parametrize("train", [True, False])
def test_att_10_and_11_shown_weights_sum_to_1_in_every_mode_also_for_one_key(train):
    layer = MultiHeadAttention(6, 2, generator=seeded(1)).train(train)
    for keys in (1, 5):
        A = layer.trace(torch.randn(2, 3, 6, generator=seeded(2)), torch.randn(2, keys, 6, generator=seeded(3)))["A"]
        close(A.sum(-1), np.ones(A.shape[:-1]), 1e-6)
        assert 0 <= A.min() <= A.max() <= 1
        if keys == 1:
            assert (A == 1).all()


def identity(width, heads):
    layer = MultiHeadAttention(width, heads).double()
    with torch.no_grad():
        for weight in layer.weights().values():
            weight.copy_(torch.eye(width))
    return layer


def test_att_12_heads_are_shown_each_for_itself():
    trace = identity(2, 2).trace(double([[20.0, 20.0]]), double([[1.0, -1.0], [-1.0, 1.0]]))
    close(trace["A"], [[[1.0, 4.24835425529e-18]], [[4.24835425529e-18, 1.0]]])
    assert trace["A"][0, 0, 1] == pytest.approx(4.24835425529e-18, rel=1e-9)
    close(trace["A"].mean(axis=0), [[0.5, 0.5]])


def test_att_13_the_scale_is_that_of_a_head():
    layer = identity(8, 4)
    X = torch.zeros(3, 8, dtype=torch.float64)
    X[0, :2] = double([2.0, 0.0])
    X[1, :2] = double([1.0, 0.0])
    trace = layer.trace(X[:1], X[1:])
    assert trace.inputs["d_k"] == 2
    close(trace["S"][0], [[2 / math.sqrt(2), 0]])
    close(trace["A"][0], [[0.804429682507, 0.195570317493]])


def test_att_14_d_k_is_the_width_and_not_the_number_of_keys():
    Q, K = double([[1, 0, 1, 0]]), double([[1, 1, 1, 1], [0, 0, 0, 0], [2, 0, 0, 0]])
    trace = attend(Q, K, torch.eye(3))
    close(trace["A"], [[0.422318798252, 0.155362403497, 0.422318798252]])
    assert "sqrt(4.00)" in trace.plugged("S")


def test_att_16_heads_that_do_not_divide_the_width():
    with pytest.raises(ValueError, match=r"1600 does not split into 48 heads: 1600 = 33 x 48 \+ 16.*20, 25, 32, 40, 50, 64"):
        MultiHeadAttention(1600, 48)
    assert head_choices(1600, 48) == [20, 25, 32, 40, 50, 64]
    assert head_choices(12) == [1, 2, 3, 4, 6, 12]
    for width, heads in itertools.product(range(1, 13), repeat=2):
        if heads in head_choices(width):
            assert MultiHeadAttention(width, heads).head_width * heads == width
        else:
            with pytest.raises(ValueError, match="does not split"):
                MultiHeadAttention(width, heads)


def test_att_17_no_weight_falls_on_padding():
    scores = double([1.0, 2.0, 0.5, 1.5, 1.0, 0.0, 2.5, 5.0, 5.0, 5.0])
    real = [0.0845801700037, 0.229912739169, 0.051300466311, 0.139449125365, 0.0845801700037, 0.0311153056751, 0.379062023473]
    close(masked_softmax(scores, keep_valid(7, 10)), [*real, 0, 0, 0])
    assert masked_softmax(scores)[7:].sum().item() == pytest.approx(0.932676989795, abs=1e-9)


# ---------------------------------------------------------------------------------------------- the whole of the kind

ANY = st.one_of(st.floats(-1e308, 1e308), st.sampled_from([INF, -INF, 0.0, 1e30, -1e30]))
ROWS = st.integers(1, 6).flatmap(
    lambda n: st.lists(
        st.tuples(st.lists(ANY, min_size=n, max_size=n), st.lists(st.booleans(), min_size=n, max_size=n)),
        min_size=1,
        max_size=4,
    )
)


@given(ROWS)
def test_weights_are_shares_of_what_is_kept_whatever_the_scores(rows):
    scores = double([row for row, _ in rows]).requires_grad_()
    mask = torch.tensor([keep for _, keep in rows])
    before, mask_before = scores.detach().clone(), mask.clone()
    weights = masked_softmax(scores, mask)
    assert torch.equal(scores, before)
    assert torch.equal(mask, mask_before)
    assert (weights >= 0).all()
    assert (weights[~mask] == 0).all()
    something = (mask & (scores > -INF)).any(dim=-1)
    close(weights.sum(-1).detach(), something.double().detach(), 1e-12)
    (weights * torch.arange(1.0, weights.shape[-1] + 1)).sum().backward()
    assert scores.grad.isfinite().all()
    assert (scores.grad[~mask] == 0).all()


@given(ROWS)
def test_weights_are_those_by_hand(rows):
    finite = [([max(-50.0, min(50.0, s)) for s in row], keep) for row, keep in rows]
    weights = masked_softmax(double([row for row, _ in finite]), torch.tensor([keep for _, keep in finite]))
    close(weights, softmax_over_kept([row for row, _ in finite], [keep for _, keep in finite]), 1e-10)


def test_endless_scores_share_the_weight():
    close(
        masked_softmax(double([[INF, 1.0, INF], [-INF, -INF, -INF], [-INF, 3.0, -INF]])), [[0.5, 0, 0.5], [0, 0, 0], [0, 1, 0]]
    )
    close(masked_softmax(double([INF, 1.0, 2.0]), [0, 1, 1]), [0, *torch.softmax(double([1.0, 2.0]), 0)])
    for dtype, big in ((torch.float32, 3e38), (torch.float64, 1e308), (torch.bfloat16, 3e38), (torch.float16, 6e4)):
        close(masked_softmax(torch.tensor([big, -big, 0.0], dtype=dtype)).float(), [1, 0, 0])


def test_a_hidden_score_or_value_that_is_no_number_does_no_harm():
    scores = double([[math.nan, 1.0, 1.0]]).requires_grad_()
    weights = masked_softmax(scores, [0, 1, 1])
    close(weights.detach(), [[0, 0.5, 0.5]])
    weights[0, 1].backward()
    close(scores.grad, [[0, 0.25, -0.25]])
    Q, K, V = (uniform(3, 4, seed=n) for n in (1, 2, 3))
    V[2] = math.nan
    K[2] = INF
    O = attend(Q, K, V, mask=keep_valid(2, 3))["O"]
    close(O, attend(Q, K[:2], V[:2])["O"], 1e-12)


@pytest.mark.parametrize("bad", [math.nan, INF])
def test_att_02_kind_rows_that_take_no_part_give_no_gradient_that_is_no_number(bad):
    """A key and a value hidden from all, and a query that sees nothing, may hold anything."""
    mask = torch.tensor([[0, 0, 0], [1, 1, 0], [1, 1, 0]])
    Q, K, V = (uniform(3, 4, seed=n) for n in (1, 2, 3))
    for spoilt, row in ((Q, 0), (K, 2), (V, 2)):
        spoilt[row] = bad
    live = [tensor.requires_grad_() for tensor in (Q, K, V)]
    gradients = torch.autograd.grad(attention(*live, mask=mask)["O"].sum(), live)
    sound = [tensor.detach().nan_to_num(0.5, 0.5).requires_grad_() for tensor in live]
    wanted = torch.autograd.grad(attention(*sound, mask=mask)["O"].sum(), sound)
    for found, right in zip(gradients, wanted, strict=True):
        close(found, right, 1e-12)


def test_a_score_or_value_that_counts_and_is_no_number_is_an_error():
    Q, K, V = (uniform(3, 4, seed=n) for n in (1, 2, 3))
    for tensor in (Q, K, V):
        spoilt = [t.clone() for t in (Q, K, V)]
        spoilt[[id(t) for t in (Q, K, V)].index(id(tensor))][1] = math.nan
        with pytest.raises(FloatingPointError, match="reads is no number"):
            attend(*spoilt)


def test_no_keys_at_all():
    assert masked_softmax(torch.zeros(2, 0)).shape == (2, 0)
    trace = attend(torch.ones(2, 3), torch.ones(0, 3), torch.ones(0, 5))
    close(trace["O"], np.zeros((2, 5)))
    assert trace.notes[0].values["count"] == 2


def test_whole_numbers_lists_and_arrays_are_taken_as_scores():
    close(masked_softmax([1.0, 1.0], np.array([True, True])), [0.5, 0.5])
    close(masked_softmax(np.zeros((2, 2)), torch.tensor([[0, 1], [1, 1]], dtype=torch.uint8)), [[0, 1], [0.5, 0.5]])
    close(masked_softmax(torch.tensor([1, 1, 5]), [1, 1, 0]), [0.5, 0.5, 0])


@pytest.mark.parametrize(
    "mask", [torch.tensor([2, 3]), torch.tensor([0.0, -INF]), torch.tensor([[-1, 1]]), torch.tensor([0.0, -1e9]), [0.5, 1.0]]
)
def test_a_mask_to_be_added_or_a_list_of_lengths_is_refused(mask):
    for take in (kept, lambda m: masked_softmax(torch.zeros(2, 2), torch.as_tensor(m)), lambda m: fitted(m, (2, 2))):
        with pytest.raises(ValueError, match="a mask says True"):
            take(mask)


def test_lengths_of_a_batch_and_of_each_query():
    assert keep_valid([2, 0], 3).tolist() == [[[True, True, False]], [[False] * 3]]
    assert keep_valid([[1, 3], [2, 2]], 4).sum(-1).tolist() == [[1, 3], [2, 2]]
    rows = torch.softmax(torch.zeros(2, 2, 3), -1)
    assert masked_softmax(rows, keep_valid(torch.tensor([[1, 3], [2, 2]]), 3)).sum(-1).tolist() == [[1, 1], [1, 1]]
    for wrong in (-1, 5, [2, 9], 1.5, [[[1]]]):
        with pytest.raises(ValueError, match="length"):
            keep_valid(wrong, 4)


def test_the_last_query_meets_the_last_key():
    assert keep_past(2, 5).tolist() == [[True] * 4 + [False], [True] * 5]
    assert keep_past(2, 5, offset=0).tolist() == [[True] + [False] * 4, [True] * 2 + [False] * 3]
    assert torch.equal(keep_past(4), torch.ones(4, 4).tril().bool())


def test_the_same_in_a_layer_and_for_gradients_of_shared_weights():
    """A sentence of padding only: its rows are 0, and no weight gets a gradient that is no number."""
    layer = MultiHeadAttention(6, 2, generator=seeded(1)).double()
    X = uniform(3, 4, 6, seed=2).requires_grad_()
    mask = keep_valid([2, 0, 4], 4)
    trace = layer.trace(X, mask=mask)
    assert (trace["A"][1] == 0).all()
    assert trace.notes[0].values["count"] == 2 * 4
    output = layer(X, mask=mask)
    close(output.detach(), trace["O"], 1e-12)
    output.square().sum().backward()
    gradients = [X.grad, *(weight.grad for weight in layer.parameters())]
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert (X.grad[1] == 0).all()
    live = attention(uniform(3, 4, 6, seed=5).requires_grad_(), X, X, mask=mask)["O"]
    assert (live[1] == 0).all()
