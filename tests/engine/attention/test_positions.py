"""Position codes against NumPy, the cases of others by their id, rotations, tables that end, and where codes are added."""

import math

import numpy as np
import pytest
import torch

from engine.attention.masks import keep_past
from engine.attention.multihead import MultiHeadAttention
from engine.attention.placement import PLACES, trace_with_positions
from engine.attention.positions import (
    LearnedPositions,
    alibi,
    alibi_trace,
    binary_code,
    frequencies,
    learned,
    rotary,
    rotary_trace,
    shift,
    sinusoidal,
    sinusoidal_trace,
    slopes,
    turning_angles,
    wavelengths,
)
from engine.attention.scores import attend
from tests.engine.recurrent.models import ATOL, seeded, uniform

B, N, T, K, D = 2, 3, 5, 11, 13


def close(given, expected, atol=1e-9):
    np.testing.assert_allclose(np.asarray(given), np.asarray(expected), rtol=0, atol=atol)


def by_hand(positions, width, base=10000.0):
    P = np.zeros((len(positions), width))
    for row, i in enumerate(positions):
        for column in range(width):
            angle = i / base ** (2 * (column // 2) / width)
            P[row, column] = math.cos(angle) if column % 2 else math.sin(angle)
    return P


# --------------------------------------------------------------------------------------------------- cases by their id


def test_pe_01_odd_width_29():
    P = sinusoidal(2, 29)
    assert P.shape == (2, 29)
    assert P[1, -1].item() == pytest.approx(0.000137382379156, abs=1e-12)


def test_pe_03_widths_3_and_1():
    d3 = [
        [0.0, 1.0, 0.0],
        [0.841470984808, 0.540302305868, 0.00215443302337],
        [0.909297426826, -0.416146836547, 0.00430885604674],
        [0.14112000806, -0.9899924966, 0.00646325907019],
    ]
    close(sinusoidal(4, 3), d3)
    close(sinusoidal(4, 1), [[0.0], [0.841470984808], [0.909297426826], [0.14112000806]])


def test_pe_04_positions_beyond_a_prepared_table():
    row = [-0.974641903125, 0.223770330187, 0.882707350816, -0.469923113728]
    close(sinusoidal(207, 4)[206], row)
    close(sinusoidal(torch.tensor([206]), 4)[0], row)
    table = torch.zeros(200, 4)
    with pytest.raises(ValueError, match=r"207 positions are needed.*ends after 200"):
        learned(207, table)
    assert learned(200, table).shape == (200, 4)
    assert learned([], table).shape == sinusoidal([], 4).shape == (0, 4)


@pytest.mark.parametrize("base", [0.0, -10000.0, math.nan, math.inf])
def test_pe_06_kind_a_base_without_waves_is_refused(base):
    for ask in (lambda: sinusoidal(3, 4, base=base), lambda: rotary(torch.ones(2, 4), base=base), lambda: frequencies(4, base)):
        with pytest.raises(ValueError, match="base of the wavelengths"):
            ask()


def test_pe_06_the_frequencies_are_the_papers():
    close(frequencies(8), [1.0, 0.1, 0.01, 0.001])
    row = [0.841470984808, 0.540302305868, 0.0998334166468, 0.995004165278, 0.00999983333417, 0.999950000417]
    close(sinusoidal(2, 8)[1], [*row, 0.000999999833333, 0.9999995])


def test_pe_07_a_code_that_is_added_makes_order_matter():
    X = torch.tensor([[1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0]], dtype=torch.float64)
    order = [2, 0, 1]
    for P, change in ((torch.zeros(3, 4), 0.0), (sinusoidal(3, 4), 0.418870136726)):
        O, moved = (attend(x + P, x + P, x + P)["O"] for x in (X, X[order]))
        assert np.abs(moved - O[order]).max() == pytest.approx(change, abs=1e-9)


def test_pe_08_equal_samples_of_a_batch_get_equal_codes():
    layer = MultiHeadAttention(4, 2, generator=seeded(1)).double()
    X = uniform(1, 3, 4, seed=2).expand(2, 3, 4)
    trace = trace_with_positions(layer, X, sinusoidal(3, 4))
    for name in trace:
        np.testing.assert_array_equal(trace[name][0], trace[name][1])
    assert (sinusoidal(2, 4)[0] - sinusoidal(2, 4)[1]).abs().max().item() == pytest.approx(0.841470984808, abs=1e-9)


# ---------------------------------------------------------------------------------------------- the whole of the kind


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 7, 16, 29, 31, 64, 129])
def test_codes_of_every_width_are_the_formula(width):
    close(sinusoidal(13, width), by_hand(range(13), width), ATOL)
    places = [0, 1, 5.5, -3, 1000, 123456]
    close(sinusoidal(torch.tensor(places), width), by_hand(places, width), 1e-9)
    close(sinusoidal(7, width, base=500.0), by_hand(range(7), width, 500.0), ATOL)
    close(sinusoidal(13, width, dtype=torch.float32), by_hand(range(13), width), 1e-6)


def test_every_symbol_of_the_codes_is_its_equation():
    trace = sinusoidal_trace(7, 5)
    assert set(trace) == {"P_sin", "P_cos", "P"}
    close(trace["P_sin"], by_hand(range(7), 5)[:, ::2], ATOL)
    close(trace["P_cos"], by_hand(range(7), 5)[:, 1::2], ATOL)
    close(trace["P"], by_hand(range(7), 5), ATOL)
    assert trace.plugged("P_sin", query=3, unit=1) == f"sin(3.00 / 10000.00 ** (2 * 1.00 / 5.00)) = {trace['P_sin'][3, 1]:.2f}"
    assert trace.plugged("P", query=3, unit=2) == f"interleave({trace['P'][3, 2]:.2f}, ...) = {trace['P'][3, 2]:.2f}"
    assert trace.plugged("P", query=3, unit=3).startswith("interleave(..., ")


def test_positions_go_on_where_a_cache_ended():
    """The defect D3 of the textbook: each generated token must get its own position, not 0."""
    close(torch.cat([sinusoidal(torch.tensor([i]), 8) for i in range(11)]), sinusoidal(11, 8), 0)


def test_a_count_may_come_from_anywhere():
    for count in (3, np.int64(3), torch.tensor(3), 3.0):
        close(sinusoidal(count, 4), by_hand(range(3), 4), ATOL)


@pytest.mark.parametrize("wrong", [0, -1, 2.5, math.inf, torch.tensor([]), torch.ones(2, 2), torch.tensor([1.0, math.nan])])
def test_no_positions_are_refused(wrong):
    if isinstance(wrong, torch.Tensor) and wrong.numel() == 0:
        assert sinusoidal(wrong, 4).shape == (0, 4)
        return
    with pytest.raises(ValueError, match="position"):
        sinusoidal(wrong, 4)


@pytest.mark.parametrize("width", [0, -3])
def test_a_width_below_1_is_refused(width):
    for make in (
        lambda: sinusoidal(3, width),
        lambda: frequencies(width),
        lambda: LearnedPositions(3, width),
        lambda: shift(1, width),
    ):
        with pytest.raises(ValueError, match="at least 1"):
            make()


def test_the_products_of_two_codes_depend_on_their_distance_only():
    """Figures of the reference at width 32: 16, 15.3, 13.7, 12.3, 11.66, 11.78, 11.89; neighbours 1.17 apart, 50 on 4.49."""
    P = sinusoidal(200, 32)
    G = P @ P.T
    for k, figure in enumerate([16, 15.3, 13.7, 12.3, 11.66, 11.78, 11.89]):
        close(G.diagonal(k), np.full(200 - k, G[0, k]), 1e-10)
        assert G[0, k].item() == pytest.approx(figure, abs=0.05)
    assert (P[0] - P[1]).norm().item() == pytest.approx(1.17, abs=0.005)
    assert (P[0] - P[50]).norm().item() == pytest.approx(4.49, abs=0.005)


@pytest.mark.parametrize("width", [2, 4, 10, 32])
@pytest.mark.parametrize("delta", [1, 7, -3, 0.5, 1000])
def test_one_rotation_carries_every_code_to_the_one_delta_on(width, delta):
    R = shift(delta, width)
    places = torch.arange(50.0)
    close(sinusoidal(places, width) @ R, sinusoidal(places + delta, width), 1e-10)
    close(R @ R.T, np.eye(width), 1e-12)
    with pytest.raises(ValueError, match="one column over"):
        shift(delta, width + 1)


def test_wavelengths_and_the_binary_counter():
    """Figures of the reference at width 32: 6.28 to 35 333, each 1.78 times the one before; a binary digit has 2."""
    waves = wavelengths(32)
    assert waves[0].item() == pytest.approx(2 * math.pi)
    assert waves[-1].item() == pytest.approx(35333, abs=1)
    close(waves[1:] / waves[:-1], np.full(15, 10000 ** (2 / 32)))
    assert (waves[1] / waves[0]).item() == pytest.approx(1.78, abs=0.005)
    assert wavelengths(1).tolist() == [2 * math.pi]
    code = binary_code(8, 3)
    assert code.tolist() == [[i & 1, i >> 1 & 1, i >> 2 & 1] for i in range(8)]
    assert [int((code[1:, bit] != code[:-1, bit]).sum()) for bit in range(3)] == [7, 3, 1]


# ------------------------------------------------------------------------------------------------------------- learned


def test_learned_codes_are_rows_of_a_table():
    positions = LearnedPositions(7, 5, generator=seeded(1))
    torch.testing.assert_close(positions(3), positions.W_p[:3])
    torch.testing.assert_close(positions(torch.tensor([6, 0])), positions.W_p[[6, 0]])
    positions(torch.tensor([2, 2])).sum().backward()
    assert positions.W_p.grad[:, 0].tolist() == [0, 0, 2, 0, 0, 0, 0]
    close(positions.trace(4)["P"], positions.W_p[:4].detach())
    assert positions.W_p.std().item() == pytest.approx(0.02, rel=0.3)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (8, "8 positions.*after 7"),
        (torch.tensor([2, 900]), "901 positions"),
        (torch.tensor([-1]), "whole number from 0"),
        (torch.tensor([0.5]), "whole number"),
    ],
)
def test_a_table_does_not_reach_beyond_its_end(wrong, words):
    positions = LearnedPositions(7, 5)
    for ask in (positions, positions.trace):
        with pytest.raises(ValueError, match=words):
            ask(wrong)


# ---------------------------------------------------------------------------------------------------- rotary and ALiBi


def rotary_by_hand(X, positions):
    turned = X.copy()
    for i, place in enumerate(positions):
        for j in range(X.shape[-1] // 2):
            angle = place * 10000.0 ** (-2 * j / X.shape[-1])
            a, b = X[i, 2 * j], X[i, 2 * j + 1]
            turned[i, 2 * j] = a * math.cos(angle) - b * math.sin(angle)
            turned[i, 2 * j + 1] = a * math.sin(angle) + b * math.cos(angle)
    return turned


@pytest.mark.parametrize("width", [1, 2, 6, 11])
def test_rotary_turns_each_pair_by_its_angle(width):
    X = uniform(T, width, seed=1)
    close(rotary(X), rotary_by_hand(X.numpy(), range(T)), ATOL)
    close(rotary(X, torch.tensor([4, 0, 2.5, 9, 1])), rotary_by_hand(X.numpy(), [4, 0, 2.5, 9, 1]), ATOL)
    close(rotary_trace(X)["X_r"], rotary(X), 0)
    batch = uniform(B, N, T, width, seed=2)
    close(rotary(batch)[1, 2], rotary(batch[1, 2]), 1e-15)
    close(rotary(X).norm(dim=-1), X.norm(dim=-1), ATOL)


def test_products_of_turned_vectors_depend_on_the_difference_of_their_positions_only():
    q, k = uniform(1, 8, seed=1), uniform(1, 8, seed=2)
    for distance in (0, 1, 6):
        products = [rotary(q, [i]) @ rotary(k, [i + distance]).T for i in (0, 3, 100)]
        close(torch.cat(products), torch.cat([products[0]] * 3), 1e-12)


def test_both_ways_to_pair_columns_are_the_same_up_to_their_order():
    X = uniform(T, 6, seed=1)
    order = [0, 3, 1, 4, 2, 5]  # column j beside column j + 3
    halves = rotary(X, pairs="halves")
    close(halves[:, order], rotary(X[:, order]), ATOL)
    angles = turning_angles(T, 6)[:, ::2].repeat(1, 2)
    close(halves, X * angles.cos() + torch.cat([-X[:, 3:], X[:, :3]], -1) * angles.sin(), ATOL)
    with pytest.raises(ValueError, match="neighbours or halves"):
        rotary(X, pairs="thirds")
    with pytest.raises(ValueError, match="4 positions for 5 rows"):
        rotary(X, 4)


def test_alibi_takes_the_slope_times_the_distance():
    close(slopes(8), [2.0**-n for n in range(1, 9)])
    close(slopes(6), [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3])  # between powers of 2: as in the paper's code
    assert slopes(1).tolist() == [2**-8]
    bias = alibi(N, T, 7)
    for n in range(N):
        for t in range(T):
            for s in range(7):
                assert bias[n, t, s].item() == pytest.approx(-slopes(N)[n].item() * abs(t + 2 - s), abs=1e-15)
    close(alibi_trace(N, T)["B"], alibi(N, T), 0)
    with pytest.raises(ValueError, match="at least one head"):
        alibi(0, 3)


@pytest.mark.parametrize("relative", ["rotary", "alibi"])
def test_relative_positions_are_in_the_scores_of_the_layer(relative):
    layer = MultiHeadAttention(D, N, head_width=K, bias=True, generator=seeded(1)).double()
    X = uniform(B, T, D, seed=2)
    trace = layer.trace(X, mask=keep_past(T), relative=relative)
    Q, K_ = (torch.tensor(trace[name]) for name in "QK")
    scores = rotary(Q) @ rotary(K_).mT / K**0.5 if relative == "rotary" else Q @ K_.mT / K**0.5 + alibi(N, T)
    close(trace["S"], scores, ATOL)
    close(layer(X, mask=keep_past(T), relative=relative).detach(), trace["O"], ATOL)
    # They are relative: the sequence alone decides, not where it stands. The first token removed, the others see what is left.
    later = layer.trace(X[:, 1:], mask=keep_past(T - 1), relative=relative)
    close(later["S"], trace["S"][:, :, 1:, 1:], ATOL)
    order = torch.tensor([2, 0, 4, 1, 3])
    assert (
        np.abs(layer.trace(X[:, order], relative=relative)["O"] - layer.trace(X, relative=relative)["O"][:, order]).max() > 1e-3
    )


# -------------------------------------------------------------------------------------------------------- where to add


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("scale", [1.0, 5.0])
def test_codes_reach_what_they_are_added_to(where, scale):
    layer = MultiHeadAttention(D, N, head_width=K, generator=seeded(1)).double()
    X, P = uniform(B, T, D, seed=2), sinusoidal(T, D)
    trace = trace_with_positions(layer, X, P, where, scale=scale, mask=keep_past(T))
    given = {of: scale * X + (P if of in PLACES[where] else 0) for of in "qkv"}
    alone = layer.trace(given["q"], given["k"], given["v"], keep_past(T))
    for name in alone:
        close(trace[f"attention.{name}"], alone[name], ATOL)
    close(trace["O"], alone["O"], ATOL)


def test_added_to_the_values_alone_positions_leave_the_weights_blind_to_the_order():
    layer = MultiHeadAttention(D, N, head_width=K, generator=seeded(1)).double()
    X, P, order = uniform(B, T, D, seed=2), sinusoidal(T, D), torch.tensor([2, 0, 4, 1, 3])
    for where in PLACES:
        A, moved = (trace_with_positions(layer, x, P, where)["attention.A"] for x in (X, X[:, order]))
        change = np.abs(moved - A[:, :, order][..., order]).max()
        assert (change < 1e-12) == (where in ("v", "nowhere"))


def test_embeddings_of_the_textbooks_scale_drown_the_codes():
    """The defect D4: sqrt(d) times embeddings from N(0, 1) are about 32 long at width 32, the codes 4."""
    X = torch.randn(100, 32, generator=seeded(1)) * 32**0.5
    assert X.norm(dim=-1).mean().item() == pytest.approx(32, rel=0.03)
    close(sinusoidal(100, 32).norm(dim=-1), np.full(100, 4.0))


def test_what_does_not_fit_is_refused_in_words():
    layer = MultiHeadAttention(D, N, head_width=K).double()
    X = uniform(T, D, seed=2)
    assert trace_with_positions(layer, X, sinusoidal(T, D)).axes("attention.A") == "NTS"
    with pytest.raises(ValueError, match="one code"):
        trace_with_positions(layer, X, sinusoidal(T + 1, D))
    with pytest.raises(ValueError, match="one of input, qk, v, nowhere"):
        trace_with_positions(layer, X, sinusoidal(T, D), "k")
