"""Minibatches: what is cut where, that nothing is silently lost, and what a state may do between them."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.text.batches import (
    Plan,
    TooLittleText,
    carry,
    last_valid,
    minibatches,
    random_sampling,
    reverse_valid,
    sequential_partition,
    without_empty,
)
from tests.support import seeded, uniform

BOTH = pytest.mark.parametrize("cut", [random_sampling, sequential_partition])
sizes = {"batch_size": st.integers(1, 7), "num_steps": st.integers(1, 9), "seed": st.integers(0, 99)}


@BOTH
def test_bat_01_the_offset_is_below_the_piece_length(cut):
    seen = [cut(range(35), 2, 5, seeded(seed)).plan.offset for seed in range(80)]
    assert set(seen) == {0, 1, 2, 3, 4}


def test_bat_01_coverage_for_each_offset():
    plans = [Plan(length=35, batch_size=2, num_steps=5, offset=offset) for offset in range(6)]
    assert [plan.batches for plan in plans] == [3, 3, 3, 3, 3, 2]
    assert [plan.unused for plan in plans] == [5, 5, 5, 5, 5, 15]
    assert list(plans[0].offsets) == [0, 1, 2, 3, 4]


@BOTH
def test_bat_01_an_offset_of_a_whole_piece_is_refused(cut):
    with pytest.raises(ValueError, match="one of 0 to 4, got 5"):
        cut(range(35), 2, 5, seeded(0), offset=5)


@BOTH
@given(extra=st.integers(0, 60), **sizes)
def test_the_plan_is_what_comes_out(cut, extra, batch_size, num_steps, seed):
    length = batch_size * num_steps + 1 + extra
    batches = cut(torch.arange(length), batch_size, num_steps, seeded(seed))
    pairs = list(batches)
    assert len(pairs) == len(batches) == batches.plan.batches >= 1
    inputs = torch.cat([X.flatten() for X, _ in pairs])
    assert len(inputs.unique()) == len(inputs) == batches.plan.used, "no token is an input twice"
    assert batches.plan.used + batches.plan.unused == length
    for X, Y in pairs:
        assert X.shape == Y.shape == (batch_size, num_steps)
        assert torch.equal(X + 1, Y), "the target is the next token"
        assert torch.equal(X, X[:, :1] + torch.arange(num_steps)), "a row is one piece of the text"
    room = length - 1 - batches.plan.offset - batches.plan.used
    assert room < batch_size * num_steps, "every minibatch that fits is there"


@given(extra=st.integers(0, 60), **sizes)
def test_rows_of_sequential_batches_continue(extra, batch_size, num_steps, seed):
    batches = list(sequential_partition(torch.arange(batch_size * num_steps + 1 + extra), batch_size, num_steps, seeded(seed)))
    for (_, targets), (inputs, _) in pairwise(batches):
        assert torch.equal(targets[:, -1], inputs[:, 0])


def test_random_batches_do_not_continue_and_come_in_another_order_each_epoch():
    generator = seeded(5)
    first, second = (torch.cat([X[:, 0] for X, _ in random_sampling(range(400), 3, 7, generator, offset=2)]) for _ in range(2))
    assert not torch.equal(first, second)
    assert sorted(first.tolist()) != first.tolist()


@BOTH
def test_the_same_generator_gives_the_same_batches(cut):
    one, two = (list(cut(range(200), 3, 7, seeded(9))) for _ in range(2))
    assert all(torch.equal(a[0], b[0]) for a, b in zip(one, two, strict=True))
    assert len(one) == len(two)


@BOTH
def test_the_global_generator_is_not_touched(cut):
    before = torch.get_rng_state()
    list(cut(range(100), 3, 7, seeded(1)))
    assert torch.equal(before, torch.get_rng_state())


def test_sequential_batches_without_generator_start_at_the_beginning():
    assert sequential_partition(range(100), 3, 7).plan.offset == 0


def test_starts_say_where_each_row_lies():
    batches = sequential_partition(range(35), 2, 5, offset=3)
    assert batches.starts.tolist() == [[3, 18], [8, 23], [13, 28]]
    assert [X[:, 0].tolist() for X, _ in batches] == batches.starts.tolist()


def test_bat_02_a_state_of_another_batch_size_is_not_carried():
    H = torch.ones(1, 16, 3)
    assert carry(H, 3) is None
    assert carry((H, H), 3) is carry([H, H], 3) is None
    assert [part.shape for part in carry([H, H], 16)] == [H.shape] * 2
    assert carry(None, 3) is None
    assert torch.equal(carry(H, 16), H)


@BOTH
def test_bat_02_all_batches_have_the_same_size(cut):
    assert {tuple(X.shape) for X, _ in cut(range(16 * 5 + 3 * 5 + 1), 16, 5, seeded(0))} == {(16, 5)}


@pytest.mark.parametrize("kind", [torch.nn.GRU, torch.nn.LSTM])
def test_bat_05_a_carried_state_is_cut_from_the_graph(kind):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = kind(4, 3)
    state = None
    for seed in range(3):
        output, state = model(uniform(5, 2, 4, seed=seed, dtype=torch.float32), carry(state, 2))
        output.sum().backward()
        assert all(part.grad_fn is not None for part in (state if isinstance(state, tuple) else (state,)))
    parts = carry(state, 2)
    assert all(not part.requires_grad for part in (parts if isinstance(parts, tuple) else (parts,)))


@BOTH
def test_bat_08_too_little_text_is_refused_with_what_is_needed(cut):
    with pytest.raises(TooLittleText, match="need 2501 tokens, the text has 400") as refused:
        cut(range(400), 50, 50, seeded(0))
    plan = refused.value.plan
    assert (plan.batches, plan.needed, plan.enough, plan.unused) == (0, 2501, False, 400)
    assert (plan.largest_steps, plan.largest_batch) == (7, 7)


@BOTH
@given(length=st.integers(0, 80), **sizes)
def test_bat_08_kind_what_the_plan_calls_possible_is_possible(cut, length, batch_size, num_steps, seed):
    plan = Plan(length=length, batch_size=batch_size, num_steps=num_steps)
    if plan.enough:
        assert len(cut(range(length), batch_size, num_steps, seeded(seed))) >= 1
    else:
        with pytest.raises(TooLittleText):
            cut(range(length), batch_size, num_steps, seeded(seed))
    if plan.largest_steps:
        assert len(cut(range(length), batch_size, plan.largest_steps, seeded(seed))) == 1
    if plan.largest_batch:
        assert len(cut(range(length), plan.largest_batch, num_steps, seeded(seed))) == 1
    assert not Plan(length=length, batch_size=batch_size, num_steps=plan.largest_steps + 1).enough
    assert not Plan(length=length, batch_size=plan.largest_batch + 1, num_steps=num_steps).enough


def test_bat_09_a_text_shorter_than_the_context_is_refused_with_the_longest_possible():
    with pytest.raises(TooLittleText) as refused:
        random_sampling(range(3), 1, 8, seeded(0))
    assert refused.value.plan.largest_steps == 2
    X, Y = next(iter(random_sampling(range(3), 1, 2, seeded(0))))
    assert (X.tolist(), Y.tolist()) == ([[0, 1]], [[1, 2]])


@BOTH
@pytest.mark.parametrize("text", [[], [4]])
def test_bat_16_an_empty_text_is_refused_like_any_short_one(cut, text):
    with pytest.raises(TooLittleText) as refused:
        cut(text, 1, 1, seeded(0))
    assert refused.value.plan.largest_steps == 0


@pytest.mark.parametrize("wrong", [0, -1, 2.5, True, "3", None])
def test_sizes_are_whole_numbers_above_0(wrong):
    for sizes in ((wrong, 5), (2, wrong)):
        with pytest.raises(ValueError, match="must be a whole number of at least 1"):
            random_sampling(range(50), *sizes, seeded(0))


def test_bat_08_kind_sizes_may_be_numpys():
    plan = Plan(length=np.int64(35), batch_size=np.int8(100), num_steps=np.int8(100))
    assert plan.needed == 10_001
    assert type(plan.needed) is int


@BOTH
def test_token_numbers_are_whole(cut):
    for fractions in ([0.0, 1.5, 2.0], torch.tensor([0.0, 1.0, 2.0])):
        with pytest.raises(ValueError, match="whole numbers"):
            cut(fractions, 1, 1, seeded(0))


def test_a_text_is_one_row():
    with pytest.raises(ValueError, match=r"one row of token numbers, got the shape \(2, 2\)"):
        random_sampling([[1, 2], [3, 4]], 1, 1, seeded(0))


def test_bat_10_the_only_batch_is_never_dropped():
    assert [len(batch) for batch in minibatches(5, 8, drop_last=True)] == [5]
    assert [len(batch) for batch in minibatches(13, 8, drop_last=True)] == [8]
    assert [len(batch) for batch in minibatches(16, 8, drop_last=True)] == [8, 8]
    assert [len(batch) for batch in minibatches(13, 8)] == [8, 5]
    assert minibatches(0, 8) == []


@given(st.integers(0, 40), st.integers(1, 9), st.integers(0, 99))
def test_bat_10_kind_every_example_once(count, batch_size, seed):
    assert sorted(torch.cat([torch.empty(0), *minibatches(count, batch_size, seeded(seed))]).tolist()) == list(range(count))


@pytest.mark.parametrize(("count", "batch_size"), [(-1, 2), (3, 0)])
def test_examples_and_batch_size_are_checked(count, batch_size):
    with pytest.raises(ValueError, match="cannot cut"):
        minibatches(count, batch_size)


def test_bat_11_empty_lines_are_left_out_and_counted():
    assert without_empty([["a", "b", "c"], []]) == ([["a", "b", "c"]], 1)
    assert without_empty([[], []]) == ([], 2)
    assert without_empty([]) == ([], 0)


def recurrence(values):
    """The case's one-unit RNN, step by step."""
    W, U, b = 0.8, 0.5, 0.3
    states, h = [], torch.zeros(1, dtype=torch.float64)
    for x in values:
        h = torch.tanh(W * x + U * h + b)
        states.append(h)
    return torch.stack(states)


PADDED = torch.tensor([1.0, -1.0, 0.0, 0.0], dtype=torch.float64).reshape(4, 1, 1)


def test_bat_13_the_last_state_stands_at_length_minus_1():
    state = last_valid(recurrence(PADDED), torch.tensor([2]))
    assert state.item() == pytest.approx(-0.0994209561749, abs=1e-9)
    values = uniform(7, 3, 5, seed=1)
    assert torch.equal(last_valid(values, torch.tensor([7, 1, 4])), torch.stack([values[6, 0], values[0, 1], values[3, 2]]))


def test_bat_14_the_reverse_direction_starts_at_the_last_real_step():
    length = torch.tensor([2])
    backward = reverse_valid(recurrence(reverse_valid(PADDED, length)), length)
    right = torch.tensor([0.700835894894, -0.46211715726], dtype=torch.float64)
    torch.testing.assert_close(backward[:2, 0, 0], right, rtol=0, atol=1e-9)


def test_bat_14_kind_padding_changes_no_state_at_a_real_step():
    lengths = torch.tensor([3, 1, 6])
    X = uniform(6, 3, 2, seed=2)
    padded = torch.cat([X, uniform(4, 3, 2, seed=3)])
    one, two = (reverse_valid(recurrence(reverse_valid(values, lengths)), lengths) for values in (X, padded))
    for row, length in enumerate(lengths):
        assert torch.equal(one[:length, row], two[:length, row])
    assert torch.equal(reverse_valid(reverse_valid(X, lengths), lengths), X)


def test_bat_13_kind_lengths_are_a_list_or_a_row_of_whole_numbers():
    values = uniform(4, 2, 3, seed=5)
    for form in (list, lambda row: torch.tensor(row, dtype=torch.int32), lambda row: torch.tensor(row, dtype=torch.float64)):
        torch.testing.assert_close(last_valid(values, form([4, 1])), torch.stack((values[3, 0], values[0, 1])))
        torch.testing.assert_close(reverse_valid(values, form([4, 1]))[:, 0], values[:, 0].flip(0))
    with pytest.raises(ValueError, match="between 1 and 4"):
        last_valid(values, [1.5, 2])
    assert last_valid(values[:, :0], []).shape == (0, 3)


@pytest.mark.parametrize("lengths", [[0, 1], [1, 5], [1], [[1, 2]]])
def test_bat_13_kind_lengths_outside_the_steps_are_refused(lengths):
    for function in (last_valid, reverse_valid):
        with pytest.raises(ValueError, match="between 1 and 4"):
            function(uniform(4, 2, 3, seed=0), torch.tensor(lengths))
