"""Loss, perplexity, BLEU and clipping: the cases that others got wrong, and the properties behind them."""

import math
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU

from engine.metrics import (
    TokenLoss,
    bits_per_token,
    bleu,
    bleu_textbook,
    clip_by_norm,
    clip_by_value,
    corpus_bleu,
    mean_of_sequence_perplexities,
    perplexity,
    perplexity_text,
    predictions,
    textbook_sequence_loss,
)
from engine.text.tokenizers import tokenize
from tests.support import seeded, uniform

PADDED = [[1.0, 1.0, 9.0, 9.0], [2.0, 2.0, 2.0, 2.0]]
FOX = "a quick brown fox jumped over the lazy dog".split()

# Loss and perplexity


@pytest.mark.parametrize(
    ("mean_nll", "value", "text"),
    [
        (1000.0, math.inf, "10^434.29"),
        (709.0, 8.21840746155e307, "10^307.91"),
        (710.0, math.inf, "10^308.35"),
        (4.0, 54.5981500331, "54.60"),
        (0.0, 1.0, "1.00"),
        (math.inf, math.inf, "∞"),
        (-math.inf, 0.0, "0.00"),
    ],
)
def test_ppl_01_a_large_loss_does_not_overflow(mean_nll, value, text):
    assert perplexity(mean_nll) == pytest.approx(value, rel=1e-9)
    assert perplexity_text(mean_nll) == text


def test_ppl_01_kind_what_is_no_number_says_so():
    assert math.isnan(perplexity(math.nan))
    assert perplexity_text(math.nan) == "NaN"
    assert perplexity(torch.tensor(800.0)) == math.inf


def test_ppl_01_kind_nor_does_a_sum_or_a_mean_of_large_ones():
    assert mean_of_sequence_perplexities([[709.7], [709.7], [709.7]]) == math.inf
    assert TokenLoss.of([[1e308, 1e308]]).mean == math.inf
    assert math.isnan(TokenLoss.of([[math.inf, -math.inf]]).mean)


def test_ppl_02_the_base_is_e():
    assert perplexity(4.25714770133) == pytest.approx(70.6083, abs=1e-3)
    assert 2 ** bits_per_token(4.25714770133) == pytest.approx(70.6083, abs=1e-3)


@pytest.mark.parametrize("size", [1, 27, 65, 10012])
def test_ppl_04_a_uniform_model_reads_the_vocabulary_size(size):
    assert perplexity(4.0) == pytest.approx(54.5981500331, abs=1e-9)
    assert perplexity(math.log(size)) == pytest.approx(size)


def test_ppl_05_per_token_and_mean_of_sequences_are_two_things():
    nll = [[0.1, 0.2, 0.1], [0.3, 0.5, 0.1, 0.4, 0.2]]
    assert TokenLoss.of(nll).perplexity == pytest.approx(1.26807499679, abs=1e-9)
    assert mean_of_sequence_perplexities(nll) == pytest.approx(1.24624480969, abs=1e-9)


def test_ppl_06_chunks_weigh_by_their_tokens():
    loss = TokenLoss.of_mean(2.0, 512) + TokenLoss.of_mean(5.0, 12)
    assert loss.perplexity == pytest.approx(7.91454566626, abs=1e-9)


def test_ppl_06_kind_a_chunk_of_no_tokens_weighs_nothing():
    """Its mean is 0/0, which torch's cross-entropy gives for a row of nothing but padding."""
    loss = TokenLoss.of_mean(math.nan, 0) + TokenLoss.of_mean(2.0, 3)
    assert (loss.mean, loss.tokens) == (2.0, 3)
    assert TokenLoss.of_mean(math.nan, 0).mean is None
    with pytest.raises(ValueError, match="at least 0 tokens"):
        TokenLoss.of_mean(1.0, -1)


@pytest.mark.parametrize("form", [list, np.array, torch.tensor])
def test_ppl_07_padding_does_not_count(form):
    loss = TokenLoss.of(form(PADDED), form([2, 4]))
    assert loss.mean == pytest.approx(1.66666666667, abs=1e-9)
    assert loss.tokens == 6


def test_ppl_07_kind_padding_may_hold_anything():
    assert TokenLoss.of([[1.0, math.inf], [2.0, math.nan]], [1, 1]).mean == 1.5


def test_ppl_10_predictions_are_one_less_than_tokens():
    assert TokenLoss(6.0, predictions(5)).mean == pytest.approx(1.5, abs=1e-9)
    assert predictions(5, start_mark=True) == 5


def test_ppl_11_the_textbooks_sequence_loss_is_too_small_by_the_steps():
    assert TokenLoss.of(PADDED, [2, 4]).mean == pytest.approx(1.66666666667, abs=1e-9)
    assert textbook_sequence_loss(PADDED, [2, 4]) == pytest.approx(0.416666666667, abs=1e-9)
    assert textbook_sequence_loss([], []) is None
    assert textbook_sequence_loss([[1.0]], [0]) is None


def test_ppl_12_a_uniform_model_reads_the_same_at_every_length():
    for length in (1, 10, 100):
        row = [math.log(26)] * length + [0.0] * (100 - length)
        assert TokenLoss.of([row], [length]).mean == pytest.approx(3.25809653802, abs=1e-9)


def test_ppl_14_one_token_without_start_mark_has_no_perplexity():
    assert predictions(1) == 0
    assert predictions(0) == 0
    loss = TokenLoss(0.0, predictions(1))
    assert loss.mean is None
    assert loss.perplexity is None
    assert TokenLoss(2.0, predictions(1, start_mark=True)).perplexity == pytest.approx(math.exp(2))
    assert mean_of_sequence_perplexities([[], []]) is None
    assert mean_of_sequence_perplexities([[], [1.0]]) == pytest.approx(math.e)


def test_ppl_15_an_epoch_is_sums_and_counts():
    assert (TokenLoss(10.0, 2) + TokenLoss(10.0, 10)).mean == pytest.approx(1.66666666667, abs=1e-9)
    assert sum([TokenLoss(1.0, 1), TokenLoss(2.0, 1)], TokenLoss()).mean == 1.5


@pytest.mark.parametrize("lengths", [[2], [2, 5], [-1, 2], [2, 4, 1]])
def test_ppl_07_kind_lengths_that_do_not_fit_are_refused(lengths):
    with pytest.raises(ValueError, match="do not have the lengths"):
        TokenLoss.of(PADDED, lengths)


# BLEU


def all_bleus(candidate, reference):
    return [
        bleu(candidate, reference, 2),
        bleu(candidate, reference, definition="standard"),
        bleu(candidate, reference, definition="standard", effective_order=True),
        bleu(candidate, reference, definition="standard", smoothing="exp", effective_order=True),
    ]


@pytest.mark.parametrize(
    ("candidate", "reference", "scores"),
    [
        pytest.param(["a"], FOX, [0.000335462627903, 0, 0.0335462627903, 0.0335462627903], id="bleu_01_one_word"),
        pytest.param(["let", "go", "it"], ["let", "it", "go"], [0, 0, 0, 39.6850262992], id="bleu_03_order_matters"),
        pytest.param(["left", "right"], ["left", "right"], [1, 0, 100, 100], id="bleu_05_identical_short_sentences"),
        pytest.param(["yes"], ["no"], [0, 0, 0, 0], id="bleu_06_no_match_is_0_in_every_variant"),
        pytest.param([], "this is what you want".split(), [0, 0, 0, 0], id="bleu_08_empty_prediction"),
        pytest.param(["Paris"], ["Paris"], [1, 0, 100, 100], id="bleu_14_an_exact_word"),
        pytest.param([], [], [0, 0, 0, 0], id="bleu_08_kind_nothing_at_all"),
        pytest.param(["a"], [], [0, 0, 0, 0], id="bleu_08_kind_nothing_to_match"),
    ],
)
def test_bleu(candidate, reference, scores):
    assert all_bleus(candidate, reference) == pytest.approx(scores, abs=1e-9)


def test_bleu_08_an_empty_text_has_no_tokens():
    assert tokenize("", "word") == []
    assert len("".split(" ")) == 1


@pytest.mark.parametrize("max_n", [1, 2, 4])
def test_bleu_02_every_score_is_in_its_range(max_n):
    sentences = [list(words) for length in range(5) for words in product("xyz", repeat=length)]
    for candidate in sentences:
        for reference in sentences[1:]:
            assert 0 <= bleu(candidate, reference, max_n) <= 1
    for candidate in sentences[::5]:
        for reference in sentences[1::7]:
            for smoothing in ("none", "exp"):
                for effective in (False, True):
                    score = bleu(candidate, reference, max_n, "standard", smoothing=smoothing, effective_order=effective)
                    assert 0 <= score <= 100


@pytest.mark.parametrize("length", range(1, 9))
def test_bleu_14_kind_an_exact_match_is_1_at_every_length(length):
    for max_n in (1, 2, 4):
        assert bleu(FOX[:length], FOX[:length], max_n) == 1
        assert bleu(FOX[:length], FOX[:length], max_n, "standard", effective_order=True) == 100


def test_bleu_07_a_corpus_pairs_each_candidate_with_its_own_references():
    references = [list("ABC"), list("BCD"), list("CDE")]
    assert corpus_bleu(references, references, effective_order=True).score == pytest.approx(100, abs=1e-9)
    first_empty = corpus_bleu([[], *references[1:]], references, effective_order=True)
    assert first_empty.score == pytest.approx(60.6530659713, abs=1e-9)
    with pytest.raises(ValueError, match="2 candidates cannot be compared with the references of 3"):
        corpus_bleu(references[1:], references)


def test_bleu_11_a_full_stop_is_a_token():
    candidate = ["This", "is", "cat", "."]
    references = [["This", "is", "a", "cat", "."], ["This", "is", "a", "bad", "cat", "."]]
    with_stop = bleu(candidate, references, definition="standard", smoothing="exp")
    without = bleu(candidate[:-1], [each[:-1] for each in references], definition="standard", smoothing="exp")
    assert with_stop == pytest.approx(35.1862973998, abs=1e-6)
    assert without == 0


def test_bleu_12_the_precisions_say_why_the_score_is_0():
    score = corpus_bleu([["a"], ["b"], ["c"]], [["a"], ["b"], ["x"]])
    assert score.score == 0
    assert score.precisions == pytest.approx((66.6666666667, 0, 0, 0), abs=1e-9)
    assert (score.brevity_penalty, score.candidate_length, score.reference_length) == (1, 3, 3)


@pytest.mark.parametrize(
    ("candidate", "reference", "max_n", "right"),
    [
        (["he", "is"], ["they", "are", "this"], 1, 0.0),
        (["ab", "c", "bc", "a"], ["a", "bc", "c", "ab"], 2, 0.0),
        (["the"] * 4, ["the", "cat"], 1, 0.5),
    ],
)
def test_bleu_13_tokens_are_compared_whole_and_clipped(candidate, reference, max_n, right):
    assert bleu(candidate, reference, max_n) == pytest.approx(right, abs=1e-9)


@pytest.mark.parametrize("form", [np.array, torch.tensor])
def test_bleu_13_kind_tokens_may_stand_in_an_array(form):
    assert bleu(form([1, 2, 5]), form([1, 2, 4]), 2) == bleu([1, 2, 5], [1, 2, 4], 2) > 0


def test_bleu_08_kind_a_text_instead_of_tokens_is_refused():
    for candidate, reference in (("a b", ["a", "b"]), (["a", "b"], "a b")):
        for definition in ("textbook", "standard"):
            with pytest.raises(TypeError, match="lists of tokens"):
                bleu(candidate, reference, definition=definition)


def test_the_textbooks_own_examples():
    parts = bleu_textbook(list("ABBCD"), list("ABCDEF"), 4)
    assert (parts.matches, parts.totals) == ((4, 3, 1, 0), (5, 4, 3, 2))
    assert bleu(list("AB"), list("ABCDEF"), 2) == pytest.approx(math.exp(-2))
    assert bleu("il est riche .".split(), "il est calme .".split(), 2) == pytest.approx(0.658, abs=5e-4)
    assert bleu("il est riche .".split(), "il est calme .".split(), 2, "standard") == pytest.approx(50.0)
    assert bleu("il est riche .".split(), "il est calme .".split(), 4, "standard") == 0
    assert bleu("va ! feu".split(), "va !".split(), 2) == pytest.approx(0.687, abs=5e-4)


sentences = st.lists(st.sampled_from("abc"), max_size=7)


@given(
    st.lists(st.tuples(sentences, st.lists(sentences, min_size=1, max_size=3)), min_size=1, max_size=4),
    st.integers(1, 5),
    st.sampled_from(["none", "exp"]),
    st.booleans(),
)
def test_the_standard_is_sacrebleus(pairs, max_n, smoothing, effective_order):
    candidates, references = [list(each) for each in zip(*pairs, strict=True)]
    judge = BLEU(tokenize="none", smooth_method=smoothing, max_ngram_order=max_n, effective_order=effective_order, force=True)
    most = max(map(len, references))
    columns = [[" ".join((each * most)[k]) for each in references] for k in range(most)]
    right = judge.corpus_score([" ".join(each) for each in candidates], columns)
    ours = corpus_bleu(candidates, references, max_n, smoothing=smoothing, effective_order=effective_order)
    assert ours.score == pytest.approx(right.score, abs=1e-9)
    assert (list(ours.matches), list(ours.totals)) == (right.counts, right.totals)
    assert ours.precisions == pytest.approx(right.precisions, abs=1e-9)
    assert ours.brevity_penalty == pytest.approx(right.bp)
    assert (ours.candidate_length, ours.reference_length) == (right.sys_len, right.ref_len)


def test_wrong_options_are_named():
    with pytest.raises(ValueError, match="'textbook' or 'standard', got 'book'"):
        bleu(["a"], ["a"], definition="book")
    with pytest.raises(ValueError, match="at least 1, got 0"):
        bleu(["a"], ["a"], 0)
    with pytest.raises(ValueError, match="'none' or 'exp', got 'floor'"):
        corpus_bleu([["a"]], [["a"]], smoothing="floor")


# Clipping


def test_opt_01_large_gradients_do_not_overflow():
    clipped, norm = clip_by_norm([[1e20] * 100], 1.0)
    assert norm == pytest.approx(1e21, rel=1e-9)
    assert clipped[0].tolist() == pytest.approx([0.1] * 100, abs=1e-9)


@pytest.mark.parametrize(
    ("dtype", "size"), [(torch.float32, 1e20), (torch.float32, 3e38), (torch.float64, 1e300), (torch.bfloat16, 1e38)]
)
def test_opt_01_kind_nor_in_any_precision(dtype, size):
    gradients = [torch.full((100,), size, dtype=dtype), torch.full((5, 7), -size, dtype=dtype)]
    clipped, norm = clip_by_norm(gradients, 1.0)
    assert norm == pytest.approx(float(gradients[0][0]) * math.sqrt(135), rel=1e-6)
    assert [each.dtype for each in clipped] == [dtype, dtype]
    assert clip_by_norm(clipped, math.inf)[1] == pytest.approx(1, rel=1e-2 if dtype == torch.bfloat16 else 1e-6)


def test_opt_01_kind_a_norm_beyond_float64_is_still_a_direction():
    clipped, norm = clip_by_norm([torch.full((100,), 1e308, dtype=torch.float64)], 1.0)
    assert math.isfinite(norm)
    assert clipped[0].tolist() == pytest.approx([0.1] * 100)


@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan])
def test_opt_01_what_is_not_finite_gives_no_step(bad):
    gradients = [torch.tensor([1.0, bad]), torch.tensor([2.0]), None]
    clipped, norm = clip_by_norm(gradients, 1.0)
    assert not math.isfinite(norm)
    assert math.isnan(norm) == math.isnan(bad)
    assert [each if each is None else each.tolist() for each in clipped] == [[0.0, 0.0], [0.0], None]


def test_opt_04_by_norm_and_by_value_differ():
    entries = torch.full((1000,), 99.0, dtype=torch.float64)
    clipped, norm = clip_by_norm([entries], 100.0)
    assert norm == pytest.approx(3130.65488357, abs=1e-8)
    assert clipped[0][0].item() == pytest.approx(3.16227766017, abs=1e-9)
    assert torch.equal(clip_by_value([entries], 100.0)[0], entries)
    assert clip_by_norm([[3.0, 0.4]], 1.0)[0][0].tolist() == pytest.approx([0.991227900683, 0.132163720091], abs=1e-9)
    assert clip_by_value([[3.0, 0.4], None], 1.0)[0].tolist() == [1.0, 0.4]
    assert clip_by_value([None], 1.0) == [None]


def test_opt_05_small_gradients_stay_as_they_are():
    clipped, norm = clip_by_norm([[0.0003, 0.0004]], 1.0)
    assert norm == pytest.approx(0.0005, abs=1e-9)
    assert clipped[0].tolist() == [0.0003, 0.0004]


def test_opt_06_clipping_is_visible_and_skips_what_has_no_gradient():
    clipped, norm = clip_by_norm([[3.0, 4.0], None], 1.0)
    assert norm == pytest.approx(5, abs=1e-9)
    assert clipped[0].tolist() == pytest.approx([0.6, 0.8], abs=1e-9)
    assert clipped[1] is None
    assert clip_by_norm(clipped, 1.0)[1] == pytest.approx(1, abs=1e-9)
    for nothing in ([], [None, None], [torch.zeros(0)], [torch.zeros(3)]):
        assert clip_by_norm(nothing, 1.0)[1] == 0


def test_opt_06_kind_whole_numbers_are_clipped_to_fractions():
    for whole in (torch.tensor([3, 4]), np.array([3, 4]), [3, 4]):
        assert clip_by_norm([whole], 1.0)[0][0].tolist() == pytest.approx([0.6, 0.8], abs=1e-9)
        assert clip_by_value([whole], 0.5)[0].tolist() == [0.5, 0.5]


def test_one_norm_over_all_as_torch_computes_it():
    gradients = [uniform(3, 5, seed=1), uniform(7, seed=2), uniform(2, 1, 3, seed=4)]
    parameters = [torch.nn.Parameter(each.clone()) for each in gradients]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient.clone()
    right = torch.nn.utils.clip_grad_norm_(parameters, 0.7)
    clipped, norm = clip_by_norm(gradients, 0.7)
    assert norm == pytest.approx(right.item(), abs=1e-12)
    for ours, parameter in zip(clipped, parameters, strict=True):
        torch.testing.assert_close(ours, parameter.grad, rtol=1e-5, atol=0)


def test_the_given_gradients_are_not_changed():
    gradient = torch.randn(50, generator=seeded(3), dtype=torch.float64) * 100
    before = gradient.clone()
    clipped, _ = clip_by_norm([gradient], 1.0)
    kept, _ = clip_by_norm([gradient], 1e9)
    kept[0].zero_()
    clipped[0].zero_()
    assert torch.equal(gradient, before)


@pytest.mark.parametrize("limit", [0, -1, math.nan])
def test_the_threshold_is_above_0(limit):
    with pytest.raises(ValueError, match="above 0"):
        clip_by_norm([[1.0]], limit)
    with pytest.raises(ValueError, match="above 0"):
        clip_by_value([[1.0]], limit)
