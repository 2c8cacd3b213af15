"""Multi-head attention: every symbol against NumPy, torch's layer, the sum of the heads, and their spectra."""

import numpy as np
import pytest
import torch

from engine.attention.masks import keep_all_of, keep_past, keep_valid
from engine.attention.multihead import MultiHeadAttention, only_heads, without_heads
from engine.attention.scores import attend
from engine.attention.spectra import effective_rank, head_columns, head_spectra, participation_ratio
from engine.equation import set_to
from tests.engine.attention.by_hand import numpy_multihead
from tests.engine.recurrent.models import ATOL, seeded, uniform, weights

B, N, T, S, K, D, DK, DV = 2, 3, 5, 7, 11, 13, 17, 19  # all different, so that no axis can stand for another
WIDE = N * K


def made(bias=False, cross=True, **switches):
    widths = {"key_width": DK, "value_width": DV} if cross else {}
    layer = MultiHeadAttention(D, N, **widths, bias=bias, head_width=K, generator=seeded(1), **switches).double()
    with torch.no_grad():
        for number, parameter in enumerate(layer.parameters()):
            parameter.copy_(uniform(*parameter.shape, seed=100 + number))
    return layer


X, KEYS, VALUES = uniform(B, T, D, seed=1), uniform(B, S, DK, seed=2), uniform(B, S, DV, seed=3)
MASK = torch.rand(B, T, S, generator=seeded(4)) < 0.6
MASKS = {"none": None, "own": MASK, "lengths": keep_valid([3, 0], S), "causal": keep_past(T, S)}


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("bias", [False, True])
def test_every_symbol_is_its_equation(bias, mask):
    layer = made(bias)
    trace = layer.trace(X, KEYS, VALUES, mask)
    by_hand = numpy_multihead(
        weights(layer), X.numpy(), KEYS.numpy(), VALUES.numpy(), N, None if mask is None else mask.numpy()
    )
    assert set(trace) == by_hand.keys()
    for name, value in by_hand.items():
        np.testing.assert_allclose(trace[name], value, rtol=0, atol=ATOL, err_msg=name)
    np.testing.assert_allclose(layer(X, KEYS, VALUES, mask).detach(), by_hand["O"], rtol=0, atol=ATOL)


@pytest.mark.parametrize("bias", [False, True])
def test_self_attention_reads_one_sequence_three_times(bias):
    layer = made(bias, cross=False)
    mask = keep_all_of(keep_past(T), keep_valid([2, 5], T))
    trace = layer.trace(X, mask=mask)
    by_hand = numpy_multihead(weights(layer), *[X.numpy()] * 3, N, mask.numpy())
    for name, value in by_hand.items():
        np.testing.assert_allclose(trace[name], value, rtol=0, atol=ATOL, err_msg=name)
    one = layer.trace(X[1], mask=mask[1])
    assert one.axes("S") == "NTS"
    for name in trace:
        np.testing.assert_allclose(one[name], trace[name][1], rtol=0, atol=ATOL, err_msg=name)


def torch_layer(layer):
    theirs = torch.nn.MultiheadAttention(WIDE, N, kdim=DK, vdim=DV, bias=layer.bias, batch_first=True).double()
    with torch.no_grad():
        theirs.q_proj_weight.copy_(layer.W_q.T)
        theirs.k_proj_weight.copy_(layer.W_k.T)
        theirs.v_proj_weight.copy_(layer.W_v.T)
        theirs.out_proj.weight.copy_(layer.W_o.T)
        if layer.bias:
            theirs.in_proj_bias.copy_(torch.cat([layer.b_q, layer.b_k, layer.b_v]))
            theirs.out_proj.bias.copy_(layer.b_o)
    return theirs


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_it_is_torchs_layer_values_and_gradients(bias, masked):
    layer = MultiHeadAttention(WIDE, N, DK, DV, bias=bias, generator=seeded(1)).double()
    with torch.no_grad():
        for number, parameter in enumerate(layer.parameters()):
            parameter.copy_(uniform(*parameter.shape, seed=100 + number))
    theirs = torch_layer(layer)
    mask = (MASK | (torch.arange(S) == 2)) if masked else None
    ours, given = ([t.clone().requires_grad_() for t in (uniform(B, T, WIDE, seed=5), KEYS, VALUES)] for _ in range(2))
    hides = None if mask is None else (~mask).repeat_interleave(N, dim=0)  # torch's mask hides, per head
    reference, shown = theirs(*given, attn_mask=hides, average_attn_weights=False)
    trace = layer.trace(*(t.detach() for t in ours), mask)
    np.testing.assert_allclose(trace["O"], reference.detach(), rtol=0, atol=ATOL)
    np.testing.assert_allclose(trace["A"], shown.detach(), rtol=0, atol=ATOL)
    mine = layer(*ours, mask)
    ahead = uniform(*mine.shape, seed=9)
    (mine * ahead).sum().backward()
    (reference * ahead).sum().backward()
    for a, b in zip(ours, given, strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=0, atol=ATOL)
    for name, weight in (("W_q", theirs.q_proj_weight), ("W_k", theirs.k_proj_weight), ("W_v", theirs.v_proj_weight)):
        torch.testing.assert_close(layer.get_parameter(name).grad, weight.grad.T, rtol=0, atol=ATOL)
    torch.testing.assert_close(layer.W_o.grad, theirs.out_proj.weight.grad.T, rtol=0, atol=ATOL)
    if bias:
        together = torch.cat([layer.b_q.grad, layer.b_k.grad, layer.b_v.grad])
        torch.testing.assert_close(together, theirs.in_proj_bias.grad, rtol=0, atol=ATOL)


def test_the_layer_of_one_packed_matrix_is_the_same():
    layer = MultiHeadAttention(WIDE, N, bias=True, generator=seeded(1)).double()
    theirs = torch.nn.MultiheadAttention(WIDE, N, batch_first=True).double()
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([layer.W_q.T, layer.W_k.T, layer.W_v.T]))
        theirs.out_proj.weight.copy_(layer.W_o.T)
        given = uniform(B, T, WIDE, seed=5)
        torch.testing.assert_close(layer(given), theirs(given, given, given)[0], rtol=0, atol=ATOL)


@pytest.mark.parametrize("relative", [None, "rotary", "alibi"])
@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_the_fast_path_has_the_gradients_of_the_equations(mask, relative):
    layer = made(bias=True)
    circuit, inputs = layer.given(X, KEYS, VALUES, mask, relative)
    by_equation = torch.autograd.grad(
        circuit.run({**inputs, **layer.weights()})[0]["O"].square().sum(), list(layer.parameters()), allow_unused=True
    )
    fast = torch.autograd.grad(layer(X, KEYS, VALUES, mask, relative=relative).square().sum(), list(layer.parameters()))
    for a, b in zip(by_equation, fast, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-9)


# -------------------------------------------------------------------------------------------------------------- heads


@pytest.mark.parametrize("bias", [False, True])
def test_the_heads_parts_add_up_to_the_output(bias):
    layer = made(bias)
    trace = layer.trace(X, KEYS, VALUES)
    assert trace["O_n"].shape == (B, N, T, D)
    rest = layer.b_o.detach().numpy() if bias else 0
    np.testing.assert_allclose(trace["O_n"].sum(axis=1) + rest, trace["O"], rtol=0, atol=ATOL)


def test_each_head_is_one_attention_over_its_own_columns():
    layer = made()
    trace = layer.trace(X, KEYS, VALUES)
    columns = head_columns(layer)
    for n in range(N):
        own = columns == n
        alone = attend(X @ layer.W_q[:, own].detach(), KEYS @ layer.W_k[:, own].detach(), VALUES @ layer.W_v[:, own].detach())
        np.testing.assert_allclose(alone["A"], trace["A"][:, n], rtol=0, atol=ATOL)
        np.testing.assert_allclose(alone["O"], trace["Z"][:, n], rtol=0, atol=ATOL)


def test_a_removed_head_takes_its_part_away_and_nothing_else():
    layer = made(bias=True)
    free = layer.trace(X, KEYS, VALUES)
    for n in range(N):
        cut = layer.trace(X, KEYS, VALUES, do=without_heads(n))
        np.testing.assert_allclose(free["O"] - cut["O"], free["O_n"][:, n], rtol=0, atol=ATOL)
        np.testing.assert_array_equal(cut["A"], free["A"])
        assert (cut["O_n"][:, n] == 0).all()
        only = layer.trace(X, KEYS, VALUES, do=only_heads(n, heads=N))
        np.testing.assert_allclose(only["O"], free["O_n"][:, n] + layer.b_o.detach().numpy(), rtol=0, atol=ATOL)
    np.testing.assert_array_equal(layer.trace(X, KEYS, VALUES, do=only_heads(*range(N), heads=N))["O"], free["O"])
    with pytest.raises(IndexError):
        layer.trace(X, KEYS, VALUES, do=without_heads(N))
    with pytest.raises(KeyError, match="change Z"):
        layer.trace(X, KEYS, VALUES, do={"O_n": set_to(0.0)})


def test_equal_blocks_make_equal_heads():
    layer = made()
    with torch.no_grad():
        for weight in (layer.W_q, layer.W_k):
            weight.copy_(weight[:, :K].repeat(1, N))
    A = layer.trace(X, KEYS, VALUES)["A"]
    for n in range(1, N):
        np.testing.assert_allclose(A[:, n], A[:, 0], rtol=0, atol=ATOL)


def test_the_number_of_parameters_does_not_depend_on_the_number_of_heads():
    for heads in (1, 2, 4, 8, 16):
        assert sum(p.numel() for p in MultiHeadAttention(16, heads).parameters()) == 1024


def test_without_scale_the_scores_are_the_dot_products():
    layer = made(scaled=False)
    trace = layer.trace(X, KEYS, VALUES)
    np.testing.assert_allclose(trace["S"], made().trace(X, KEYS, VALUES)["S"] * K**0.5, rtol=0, atol=ATOL)
    np.testing.assert_allclose(layer(X, KEYS, VALUES).detach(), trace["O"], rtol=0, atol=ATOL)
    assert trace.latex("S") == r"\mathbf S = \mathbf Q\mathbf K^{\top}"
    with pytest.raises(ValueError, match="scaled"):
        layer.trace(X, KEYS, VALUES, relative="alibi")


def test_masks_of_every_rank():
    layer = made()
    for mask in (
        MASK[0],
        MASK,
        MASK[:, :1],
        MASK[:, None].repeat(1, N, 1, 1),
        torch.rand(B, N, T, S, generator=seeded(6)) < 0.5,
    ):
        A = layer.trace(X, KEYS, VALUES, mask)["A"]
        wide = mask if mask.ndim != 3 else mask[:, None]
        assert (A[~wide.expand(B, N, T, S)] == 0).all()
        assert (A.sum(-1)[wide.expand(B, N, T, S).any(-1)] > 0.999).all()
    for wrong in (MASK[:, :, :-1], torch.ones(B, S + 1, dtype=torch.bool), torch.ones(N, T, S, dtype=torch.bool)):
        with pytest.raises(ValueError, match="does not fit"):
            layer.trace(X, KEYS, VALUES, wrong)


def test_what_does_not_fit_is_refused_in_words():
    layer = made()
    for given in (
        (X[..., :-1], KEYS, VALUES),
        (X, KEYS[..., 1:], VALUES),
        (X, KEYS, VALUES[:, 1:]),
        (X[0], KEYS, VALUES),
        (X[:1], KEYS, VALUES),
    ):
        with pytest.raises(ValueError, match=r"must be|its own"):
            layer.trace(*given)
    for arguments in ((0, 1), (4, 0), (4, -2)):
        with pytest.raises(ValueError, match="at least 1"):
            MultiHeadAttention(*arguments)
    with pytest.raises(FloatingPointError, match="no number"):
        layer.trace(X * float("inf"), KEYS, VALUES)
    with pytest.raises(ValueError, match="relative is one of"):
        layer.trace(X, KEYS, VALUES, relative="learned")


def test_weights_come_from_the_generator_that_is_passed():
    state = torch.random.get_rng_state()
    a, b = (MultiHeadAttention(12, 3, bias=True, generator=seeded(5)) for _ in range(2))
    assert all(torch.equal(a.state_dict()[name], b.state_dict()[name]) for name in a.state_dict())
    assert list(a.state_dict()) == ["W_q", "W_k", "W_v", "W_o", "b_q", "b_k", "b_v", "b_o"]
    assert list(MultiHeadAttention(12, 3).state_dict()) == ["W_q", "W_k", "W_v", "W_o"]
    assert torch.equal(torch.random.get_rng_state(), state)


# ---------------------------------------------------------------------------------------------------------------- hover


def test_one_cell_from_query_to_weight():
    """What hovering a cell of a head's map shows: q, k, the products, the scale, the mask and the softmax."""
    layer = made()
    trace = layer.trace(X, KEYS, VALUES, MASK)
    place = {"batch": 1, "head": 2, "query": 3, "key": 4}
    q, k = trace.at("Q", **place), trace.at("K", **place)
    assert q.shape == k.shape == (K,)
    assert q @ k / np.sqrt(trace.inputs["d_k"]) == pytest.approx(trace.at("S", **place), abs=ATOL)
    row, column = trace.products("S:1", 1, 2, 3, 4)
    np.testing.assert_array_equal(row, q)
    np.testing.assert_array_equal(column, k)
    text = trace.plugged("S", digits=9, expand=K, **place)
    assert eval(text.split(" = ")[0], {"sqrt": np.sqrt}) == pytest.approx(trace.at("S", **place), abs=1e-7)
    keeps = int(MASK[1, 3, 4])
    assert trace.plugged("A", **place).startswith(f"masked_softmax[{keeps}.00](..., ")
    parts = trace.plugged("Z", digits=9, expand=S, batch=1, head=2, query=3, unit=5).split(" = ")
    assert eval(parts[0]) == pytest.approx(float(parts[1]), abs=1e-7)


def test_order_is_not_seen_without_positions():
    layer = made(cross=False)
    order = torch.tensor([2, 0, 4, 1, 3])
    torch.testing.assert_close(layer(X[:, order]), layer(X)[:, order], rtol=0, atol=1e-12)
    A, moved = layer.trace(X)["A"], layer.trace(X[:, order])["A"]
    np.testing.assert_allclose(moved, A[:, :, order][..., order], rtol=0, atol=1e-12)


# -------------------------------------------------------------------------------------------------------------- spectra


def test_spectra_are_the_singular_values_of_the_heads_matrices():
    layer = made()
    spectra = head_spectra(layer)
    for n in range(N):
        own = head_columns(layer) == n
        matrix = (layer.W_q[:, own] @ layer.W_k[:, own].T).detach().numpy()
        values = np.linalg.svd(matrix, compute_uv=False)
        np.testing.assert_allclose(spectra.singular[n], values[:K], rtol=0, atol=ATOL)
        np.testing.assert_allclose(values[K:], 0, atol=1e-9)
        shares = values[:K] / values[:K].sum()
        assert spectra.effective_rank[n] == pytest.approx(np.exp(-(shares * np.log(shares)).sum()), abs=1e-9)
        assert spectra.participation_ratio[n] == pytest.approx((values**2).sum() ** 2 / (values**4).sum(), abs=1e-9)


def test_measures_of_rank_count_equal_values_and_survive_zeros():
    for measure in (effective_rank, participation_ratio):
        for count in (1, 3, 5):
            values = torch.tensor([2.0] * count + [0.0] * (5 - count), dtype=torch.float64)
            assert measure(values).item() == pytest.approx(count)
            assert measure(values * 1e-200).item() == pytest.approx(count)
        assert measure(torch.zeros(2, 5)).tolist() == [0, 0]
    narrow = MultiHeadAttention(4, 2, head_width=7)
    assert head_spectra(narrow).singular.shape[-1] == 4
