"""Decoding: probabilities, draws that can be followed, and beam search against all possible answers."""

import math
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.decoding import DeadEnd, beam_search, encode_prefix, greedy, next_token_probabilities, sample, with_state
from engine.notes import Note
from engine.text.tokenizers import tokenize
from engine.text.vocabulary import Vocabulary
from tests.support import seeded, uniform

scores_of = st.lists(st.floats(-30, 30), min_size=1, max_size=9)


def markov(start, transition):
    """A model whose next token depends on the last one only. Token -1 stands for the beginning."""
    start, transition = (torch.tensor(each, dtype=torch.float64).log() for each in (start, transition))
    return lambda ids: start if len(ids) == 1 else transition[ids[-1]]


def table(seed, size=5):
    """A model whose scores depend on the whole prefix, different for each."""
    return lambda ids: uniform(size, seed=hash(ids) % 100_000 + seed, low=-3, high=3)


# Probabilities


def test_smp_01_temperature_0_takes_the_largest():
    assert next_token_probabilities(torch.tensor([1.0, 2.0]), 0).tolist() == [0.0, 1.0]
    assert next_token_probabilities(torch.tensor([2.0, 2.0]), 0).tolist() == [1.0, 0.0]


def test_smp_02_each_row_has_its_own_largest():
    rows = next_token_probabilities(torch.tensor([[1.0, 3.0, 2.0], [5.0, 0.0, 1.0]]), 0)
    assert rows.argmax(dim=-1).tolist() == [1, 0]


def test_smp_04_the_scores_are_not_changed_by_drawing():
    scores = torch.tensor([2.0, 1.0, 0.0])
    for _ in range(3):
        probabilities = next_token_probabilities(scores, 0.5, top_k=3, top_p=0.9999)
        assert probabilities.tolist() == pytest.approx([0.866813332197, 0.117310427826, 0.0158762399765], abs=1e-9)
    steps = sample(lambda ids: scores, [0], 3, seeded(0), temperature=0.5).steps
    for step in steps:
        np.testing.assert_allclose(step.probabilities, [0.866813332197, 0.117310427826, 0.0158762399765], rtol=0, atol=1e-9)
    assert scores.tolist() == [2.0, 1.0, 0.0]


def test_smp_05_top_k_beyond_the_vocabulary_keeps_everything_with_a_note():
    scores = torch.tensor([0.0, 1.0, 2.0, 3.0, 4.0])
    right = [0.011656230956, 0.0316849207961, 0.0861285444363, 0.234121657253, 0.636408646559]
    assert next_token_probabilities(scores, top_k=6).tolist() == pytest.approx(right, abs=1e-9)
    notes = sample(lambda ids: scores, [0], 2, seeded(0), top_k=6).notes
    assert notes == (Note("decoding.top_k_is_all", {"top_k": 6, "size": 5}),)
    assert sample(lambda ids: scores, [0], 2, seeded(0), top_k=5).notes == ()


@pytest.mark.parametrize("top_k", [0, -1, 1.5, True, math.nan])
def test_smp_06_top_k_below_1_is_refused(top_k):
    with pytest.raises(ValueError, match="top_k must be a whole number of at least 1"):
        next_token_probabilities(torch.tensor([1.0, 2.0]), top_k=top_k)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("temperature", value) for value in (-0.1, math.nan, math.inf)),
        *(("top_p", value) for value in (0, -1, 1.01, math.nan)),
    ],
)
def test_smp_06_kind_options_outside_their_range_are_refused(option, value):
    with pytest.raises(ValueError, match=f"{option} must be"):
        next_token_probabilities(torch.tensor([1.0, 2.0]), **{option: value})
    with pytest.raises(ValueError, match=f"{option} must be"):
        sample(lambda ids: torch.tensor([1.0, 2.0]), [0], 1, seeded(0), **{option: value})


@given(scores_of, st.floats(0, 50), st.integers(1, 12), st.floats(0.01, 1))
def test_smp_01_kind_probabilities_are_probabilities(scores, temperature, top_k, top_p):
    probabilities = next_token_probabilities(torch.tensor(scores, dtype=torch.float64), temperature, top_k, top_p)
    assert probabilities.isfinite().all()
    assert (probabilities >= 0).all()
    assert probabilities.sum().item() == pytest.approx(1)
    assert 1 <= (probabilities > 0).sum() <= max(1, min(top_k, len(scores)))


@pytest.mark.parametrize("temperature", [1e-300, 1e-12, 1e-3, 1e300])
def test_smp_01_kind_extreme_temperatures_stay_finite(temperature):
    probabilities = next_token_probabilities(torch.tensor([1e30, -1e30, 3.0]), temperature)
    assert probabilities.isfinite().all()
    if temperature < 1:
        assert probabilities.tolist() == [1, 0, 0]


def test_top_k_and_top_p_take_the_first_of_equals():
    equal = torch.zeros(10)
    assert next_token_probabilities(equal, top_k=3).nonzero().flatten().tolist() == [0, 1, 2]
    assert next_token_probabilities(equal, top_p=0.3).nonzero().flatten().tolist() == [0, 1, 2]
    assert next_token_probabilities(equal, top_p=0.31).nonzero().flatten().tolist() == [0, 1, 2, 3]


def test_top_p_keeps_the_smallest_set_that_reaches_p():
    scores = torch.tensor([0.1, 0.5, 0.15, 0.25], dtype=torch.float64).log()
    assert next_token_probabilities(scores, top_p=0.5).tolist() == [0, 1, 0, 0]
    assert next_token_probabilities(scores, top_p=0.6).tolist() == pytest.approx([0, 2 / 3, 0, 1 / 3])
    for tiny in (1e-9, 1e-13, 1e-300):
        assert next_token_probabilities(scores, top_p=tiny).tolist() == [0, 1, 0, 0]
        assert next_token_probabilities(scores[:1], top_k=1, top_p=tiny).tolist() == [1]
    assert next_token_probabilities(scores, top_k=2, top_p=0.6).tolist() == [0, 1, 0, 0], "p counts what top-k has left"


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_score_that_is_no_number_is_named(bad):
    with pytest.raises(ValueError, match="the model has diverged"):
        next_token_probabilities(torch.tensor([0.0, bad]))


def test_forbidden_tokens_have_no_probability():
    assert next_token_probabilities(torch.tensor([0.0, -math.inf, 0.0])).tolist() == [0.5, 0, 0.5]
    with pytest.raises(ValueError, match="no token is allowed"):
        next_token_probabilities(torch.full((3,), -math.inf))
    with pytest.raises(ValueError, match=r"got the shape \(0,\)"):
        next_token_probabilities(torch.zeros(0))


# One token after the other


def test_smp_12_the_draw_can_be_followed():
    model = table(3)
    generation = sample(model, [1], 40, seeded(7), temperature=1.3, top_k=4)
    again = seeded(7)
    for step in generation.steps:
        assert step.draw == torch.rand((), generator=again, dtype=torch.float64).item()
        np.testing.assert_allclose(step.cumulative, np.cumsum(step.probabilities), rtol=0, atol=1e-12)
        assert step.token == next(k for k, total in enumerate(step.cumulative) if total > step.draw)
        assert step.probability == step.probabilities[step.token] > 0
        assert not step.probabilities.flags.writeable
        assert not step.cumulative.flags.writeable
    assert any(step.token != step.probabilities.argmax() for step in generation.steps), "the less likely is drawn at times"
    assert generation.log_probability == pytest.approx(sum(step.log_probability for step in generation.steps))


def test_smp_12_a_rarer_token_can_be_drawn_and_greedy_never_draws():
    scores = torch.tensor([0.35, 0.04, 0.61], dtype=torch.float64).log()
    drawn = [step.token for step in sample(lambda ids: scores, [0], 2000, seeded(1)).steps]
    assert np.bincount(drawn) / 2000 == pytest.approx([0.35, 0.04, 0.61], abs=0.04)
    chosen = greedy(lambda ids: scores[:2], [0], 3)
    assert chosen.tokens == (0, 0, 0)
    assert [step.draw for step in chosen.steps] == [None] * 3


def test_smp_01_sampling_at_temperature_0_is_greedy_and_says_so():
    generator = seeded(3)
    before = generator.get_state()
    cold, best = sample(table(1), [2], 8, generator, temperature=0), greedy(table(1), [2], 8)
    assert cold.tokens == best.tokens
    assert cold.notes == (Note("decoding.greedy"),)
    assert best.notes == ()
    assert torch.equal(before, generator.get_state())


def test_the_same_seed_gives_the_same_text_and_the_global_generator_is_left_alone():
    before = torch.get_rng_state()
    one, two, three = (sample(table(2), [0], 30, seeded(seed)).tokens for seed in (5, 5, 6))
    assert one == two != three
    assert torch.equal(before, torch.get_rng_state())


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8).filter(lambda p: sum(p) > 1e-6), st.integers(0, 500))
def test_smp_08_kind_what_has_no_probability_is_never_drawn(weights, seed):
    probabilities = torch.tensor(weights, dtype=torch.float64)
    generation = sample(lambda ids: probabilities.log(), [0], 5, seeded(seed))
    assert all(probabilities[token] > 0 for token in generation.tokens)


def test_generation_ends_with_a_stop_token():
    generation = greedy(markov([0.2, 0.8, 0.0], [[0, 0, 1.0], [1.0, 0, 0], [0.1, 0.8, 0.1]]), [9], 10, stop={2})
    assert generation.tokens == (1, 0, 2)
    assert generation.stopped
    assert not greedy(table(0), [9], 4).stopped
    assert greedy(table(0), [9], 0).tokens == ()


def test_forbidden_tokens_are_not_generated():
    model = lambda ids: torch.tensor([9.0, 1.0, 0.0])  # noqa: E731
    assert set(greedy(model, [0], 5, forbidden={0}).tokens) == {1}
    assert 0 not in sample(model, [0], 50, seeded(0), forbidden=[0]).tokens
    search = beam_search(model, [0], 3, 8, forbidden=[0])
    assert len(search.hypotheses) == 8
    assert all(0 not in each.tokens for each in search.hypotheses)


def test_smp_13_a_token_number_is_always_below_the_number_of_scores():
    generation = sample(lambda ids: uniform(65, seed=len(ids)), [0], 300, seeded(0), temperature=3.0)
    assert max(generation.tokens) < 65
    assert all(step.probabilities.shape == (65,) for step in generation.steps)


def test_the_beginning_is_checked():
    for function in (greedy, lambda *a: sample(*a, seeded(0)), lambda *a: beam_search(*a, 2)):
        with pytest.raises(ValueError, match="at least one token to begin with"):
            function(table(0), [], 3)
        for wrong in (-1, 2.5, True):
            with pytest.raises(ValueError, match="max_tokens must be a whole number of at least 0"):
                function(table(0), [0], wrong)


def test_smp_13_kind_scores_are_one_row_and_a_token_that_does_not_exist_is_named():
    with pytest.raises(ValueError, match=r"one score per token .* not the shape \(1, 3\)"):
        greedy(lambda ids: torch.zeros(1, 3), [0], 1)
    for wrong in (5, -1):
        with pytest.raises(ValueError, match=f"token number {wrong} cannot be forbidden: the vocabulary has 5 tokens"):
            greedy(table(0), [0], 1, forbidden=(wrong,))


# Beam search

CASE = markov([0.6, 0.4], [[0.7, 0.3], [0.2, 0.8]])


def test_smp_08_a_beam_wider_than_the_vocabulary_keeps_what_there_is():
    search = beam_search(CASE, [-1], 3, 5, alpha=0)
    right = [((0, 0, 0), 0.294), ((1, 1, 1), 0.256), ((0, 1, 1), 0.144), ((0, 0, 1), 0.126), ((1, 1, 0), 0.064)]
    assert [each.tokens for each in search.hypotheses] == [tokens for tokens, _ in right]
    assert [math.exp(each.log_probability) for each in search.hypotheses] == pytest.approx([p for _, p in right])
    assert [sum(branch.kept for branch in step) for step in search.steps] == [2, 4, 5]


def test_smp_08_equal_width_lets_no_impossible_token_through():
    search = beam_search(markov([0.5, 0.5, 0.0], [[0.9, 0.1, 0]] * 3), [-1], 3, 3, alpha=0)
    assert all(2 not in each.tokens for each in search.hypotheses)
    assert all(branch.token != 2 for step in search.steps for branch in step)


def test_the_textbooks_example_greedy_is_not_the_best():
    def step(ids):
        """d2l, section 9.8: A B C <eos>, where the best first token leads to the worse sentence."""
        words = ids[1:]
        after_c = {1: [0.1, 0.6, 0.2, 0.1], 0: [0.1, 0.4, 0.4, 0.1]}
        rows = {0: [0.5, 0.2, 0.2, 0.1], 1: [0.1, 0.4, 0.3, 0.2], 2: [0.2, 0.2, 0.4, 0.2], 3: [0, 0.2, 0.2, 0.6]}
        other = {2: after_c[1], 3: [0.1, 0.2, 0.1, 0.6]}
        chosen = other if len(words) > 1 and words[1] == 2 else rows
        return torch.tensor(chosen[len(words)], dtype=torch.float64).log()

    best = greedy(step, [9], 4, stop={3})
    assert best.tokens == (0, 1, 2, 3)
    assert math.exp(best.log_probability) == pytest.approx(0.048)
    wide = beam_search(step, [9], 4, 2, alpha=0, stop={3}).best
    assert wide.tokens == (0, 2, 1, 3)
    assert math.exp(wide.log_probability) == pytest.approx(0.054)


def every_answer(step, start, max_tokens, size, stop):
    """All complete answers and their log-probability, by going through every sequence."""
    found = {}
    for tokens in product(range(size), repeat=max_tokens):
        end = next((k + 1 for k, token in enumerate(tokens) if token in stop), max_tokens)
        found[tokens[:end]] = sum(torch.log_softmax(step(start + tokens[:k]), 0)[tokens[k]].item() for k in range(end))
    return found


@pytest.mark.parametrize("alpha", [0.0, 0.75, 1.5])
@pytest.mark.parametrize("stop", [(), (1,)])
def test_a_wide_beam_finds_what_going_through_every_answer_finds(alpha, stop):
    step = table(11, size=3)
    search = beam_search(step, [0], 4, 81, alpha=alpha, stop=stop)
    right = every_answer(step, (0,), 4, 3, stop)
    assert {each.tokens for each in search.hypotheses} == right.keys()
    for each in search.hypotheses:
        assert each.log_probability == pytest.approx(right[each.tokens])
        assert each.score == pytest.approx(right[each.tokens] / len(each.tokens) ** alpha)
        assert each.stopped == (each.tokens[-1] in stop)
    assert search.best.score == pytest.approx(max(value / len(tokens) ** alpha for tokens, value in right.items()))


@given(st.integers(0, 300))
def test_width_1_is_greedy(seed):
    assert beam_search(table(seed), [2], 6, 1, stop={0}).best.tokens == greedy(table(seed), [2], 6, stop={0}).tokens


def test_the_tree_leads_to_the_answers():
    search = beam_search(table(4), [0], 5, 3, stop={2})
    beam, answers = [()], set()
    for step in search.steps:
        kept = sorted((branch for branch in step if branch.kept), key=lambda branch: -branch.log_probability)
        grown = [((*beam[branch.parent], branch.token), branch.stopped) for branch in kept]
        answers |= {tokens for tokens, stopped in grown if stopped}
        beam = [tokens for tokens, stopped in grown if not stopped]
    assert answers | set(beam) == {each.tokens for each in search.hypotheses}
    assert len(search.hypotheses) == 3


@pytest.mark.parametrize(("option", "value"), [("width", 0), ("width", 2.5), ("alpha", -1), ("alpha", math.nan)])
def test_beam_options_are_checked(option, value):
    with pytest.raises(ValueError, match=f"{option} must be"):
        beam_search(table(0), [0], 3, **({"width": 2} | {option: value}))


def test_smp_08_kind_a_hypothesis_without_a_way_on_falls_out_of_the_beam():
    search = beam_search(markov([0.6, 0.4], [[0, 0], [0.5, 0.5]]), [-1], 2, 2, alpha=0)
    assert [each.tokens for each in search.hypotheses] == [(1, 0), (1, 1)]
    ended = beam_search(markov([0.6, 0.4], [[0, 0], [0, 0]]), [-1], 3, 2, stop={1})
    assert [(each.tokens, each.stopped) for each in ended.hypotheses] == [((1,), True)]
    with pytest.raises(DeadEnd, match="no token is allowed"):
        beam_search(markov([0.6, 0.4], [[0, 0], [0, 0]]), [-1], 3, 2)


def test_smp_08_kind_whole_numbers_may_be_numpys():
    assert beam_search(table(0), [0], np.int64(2), np.int64(2)) == beam_search(table(0), [0], 2, 2)
    assert next_token_probabilities(torch.tensor([1.0, 2.0]), top_k=np.int64(1)).tolist() == [0, 1]


def test_beam_search_of_no_tokens_gives_the_empty_answer():
    assert beam_search(table(0), [0], 0, 3).best.tokens == ()


# Beginning and continuing


def test_smp_10_a_start_that_the_text_lacks_becomes_unknown_and_is_named():
    vocabulary = Vocabulary(tokenize("Helloworld!"))
    assert encode_prefix([" "], vocabulary) == ((0,), (Note("prefix.unknown", {"tokens": [" "], "positions": [0]}),))
    ids, notes = encode_prefix(list("lo?o?"), vocabulary)
    assert ids == (*vocabulary[list("lo")], 0, vocabulary["o"], 0)
    assert notes == (Note("prefix.unknown", {"tokens": ["?"], "positions": [2, 4]}),)
    assert encode_prefix(["l"], vocabulary)[1] == ()


@pytest.mark.parametrize(
    ("vocabulary", "token"),
    [
        (Vocabulary("Helloworld!"), "l"),
        (Vocabulary(["<unk>", "<unk>", "a"]), "a"),
        (Vocabulary([]), "<unk>"),
        (Vocabulary.from_tokens(["<unk>", "x"]), "x"),
    ],
)
def test_smp_10_no_start_begins_with_a_token_of_the_text(vocabulary, token):
    assert encode_prefix([], vocabulary) == ((vocabulary[token],), (Note("prefix.empty", {"token": token}),))


def test_a_carried_state_gives_the_same_as_the_whole_prefix():
    calls = []

    def advance(ids, state):
        calls.append(len(ids))
        total = (state or 0) + sum((k + 1) * 7 for k in ids)
        return uniform(5, seed=total, low=-3, high=3), total

    whole = lambda ids: advance(ids, None)[0]  # noqa: E731
    prefix = [1, 2, 3, 4]
    right = beam_search(whole, prefix, 6, 3)
    calls.clear()
    assert beam_search(with_state(advance), prefix, 6, 3) == right
    assert calls[0] == 4
    assert set(calls[1:]) == {1}, "each further token costs one step"
    assert greedy(with_state(advance, keep=1), prefix, 6).tokens == greedy(whole, prefix, 6).tokens
