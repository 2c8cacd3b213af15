"""Vocabulary: a fixed numbering, nothing lost, faults named."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.text.tokenizers import tokenize
from engine.text.vocabulary import UNKNOWN, Vocabulary, vocabulary_cost

token_lists = st.lists(st.text(max_size=3), max_size=40)


def test_txt_21_ties_are_ordered_by_alphabet():
    vocabulary = Vocabulary(tokenize("b a b a c", "word"))
    assert list(vocabulary) == [UNKNOWN, "a", "b", "c"]
    assert list(vocabulary.counts.values()) == [2, 2, 1]


@given(token_lists, st.randoms(use_true_random=False))
def test_txt_21_kind_the_order_of_the_text_never_matters(tokens, random):
    shuffled = list(tokens)
    random.shuffle(shuffled)
    assert Vocabulary(tokens) == Vocabulary(shuffled)


@given(token_lists)
def test_known_tokens_come_back(tokens):
    vocabulary = Vocabulary(tokens)
    assert vocabulary.to_tokens(vocabulary[tokens]) == tokens


def test_unknown_tokens_are_number_0():
    vocabulary = Vocabulary("abca")
    assert vocabulary["z"] == 0
    assert vocabulary[["a", "z", "c"]] == [1, 0, 3]
    assert vocabulary.to_tokens(0) == UNKNOWN
    assert "z" not in vocabulary
    assert "a" in vocabulary


def test_lists_keep_their_nesting():
    vocabulary = Vocabulary([["the", "end"], ["the"], []])
    assert list(vocabulary) == [UNKNOWN, "the", "end"]
    assert vocabulary[[["the"], ["end", "?"], []]] == [[1], [2, 0], []]
    assert vocabulary[("the", "end")] == [1, 2]
    assert vocabulary.to_tokens([[1], [2, 0], []]) == [["the"], ["end", UNKNOWN], []]


def test_a_string_is_one_token_not_its_letters():
    assert Vocabulary(["ab", "a"])["ab"] == 2


def test_numbers_may_come_as_tensor_or_array():
    vocabulary = Vocabulary("aab")
    assert vocabulary.to_tokens(torch.tensor([[1, 2], [0, 1]])) == [["a", "b"], [UNKNOWN, "a"]]
    assert vocabulary.to_tokens(np.array([2, 1])) == ["b", "a"]
    assert vocabulary.to_tokens(torch.tensor(2)) == "b"
    assert vocabulary.to_tokens(np.int64(2)) == "b"


def test_reserved_tokens_follow_unknown_in_their_order():
    vocabulary = Vocabulary("banana", reserved=["<pad>", "<bos>", "<eos>"])
    assert list(vocabulary) == [UNKNOWN, "<pad>", "<bos>", "<eos>", "a", "n", "b"]
    assert list(Vocabulary("ab", reserved="<pad>")) == [UNKNOWN, "<pad>", "a", "b"]


def test_reserved_tokens_that_stand_in_the_text_are_not_doubled():
    vocabulary = Vocabulary(["x", "<pad>", "<unk>", "<pad>"], reserved=["<pad>", "<pad>", UNKNOWN])
    assert list(vocabulary) == [UNKNOWN, "<pad>", "x"]
    assert vocabulary[UNKNOWN] == 0
    assert vocabulary.counts["<pad>"] == 2


def test_rare_tokens_are_left_out_but_still_counted():
    vocabulary = Vocabulary("aaabbc", min_freq=2)
    assert list(vocabulary) == [UNKNOWN, "a", "b"]
    assert vocabulary["c"] == 0
    assert dict(vocabulary.counts) == {"a": 3, "b": 2, "c": 1}
    with pytest.raises(TypeError):
        vocabulary.counts["a"] = 5


@pytest.mark.parametrize("min_freq", [0, 1])
def test_min_freq_0_and_1_keep_everything(min_freq):
    assert len(Vocabulary("abc", min_freq=min_freq)) == 4


@pytest.mark.parametrize("tokens", [[], "", [[]], [[], []]])
def test_bat_16_an_empty_text_has_only_the_unknown_token(tokens):
    vocabulary = Vocabulary(tokens)
    assert list(vocabulary) == [UNKNOWN]
    assert vocabulary[[]] == []


def test_smp_10_a_text_without_blanks_has_no_blank():
    vocabulary = Vocabulary("Helloworld!")
    assert len(vocabulary) == 8 + 1
    assert " " not in vocabulary
    assert vocabulary[" "] == 0


def test_txt_12_13_one_entry_per_letter():
    assert len(Vocabulary("café")) == 4 + 1


@pytest.mark.parametrize("number", [65, 100, -1])
def test_smp_13_a_number_that_does_not_exist_is_named_with_the_size(number):
    vocabulary = Vocabulary([chr(ord("!") + k) for k in range(64)])
    assert len(vocabulary) == 65
    with pytest.raises(IndexError, match=rf"{number} does not exist: the vocabulary has 65 \(0 to 64\)"):
        vocabulary.to_tokens([0, number])


def test_wrong_types_are_named():
    vocabulary = Vocabulary("ab")
    with pytest.raises(TypeError, match="to_tokens goes from numbers to tokens"):
        vocabulary[3]
    with pytest.raises(TypeError, match=r"whole number, got 1\.0"):
        vocabulary.to_tokens(1.0)
    with pytest.raises(TypeError, match="whole number, got 'a'"):
        vocabulary.to_tokens("a")


def test_txt_14_the_cost_is_known_before_anything_is_allocated():
    cost = vocabulary_cost(180128, hidden_size=256, num_steps=35, batch_size=32)
    assert cost.one_hot_bytes == 806973440
    assert cost.output_parameters == 46292896


def test_txt_14_only_the_most_frequent_may_be_kept():
    vocabulary = Vocabulary("aaabbc", reserved=["<pad>"], max_size=4)
    assert list(vocabulary) == [UNKNOWN, "<pad>", "a", "b"]
    assert vocabulary["c"] == 0
    with pytest.raises(ValueError, match="max_size 1 is less than the 2 tokens"):
        Vocabulary("a", reserved=["<pad>"], max_size=1)


@given(token_lists)
def test_a_stored_list_gives_the_same_vocabulary(tokens):
    vocabulary = Vocabulary(tokens, reserved=["<pad>"])
    stored = Vocabulary.from_tokens(list(vocabulary), vocabulary.counts)
    assert stored == vocabulary
    assert hash(stored) == hash(vocabulary)
    assert stored.counts == vocabulary.counts
    assert stored[tokens] == vocabulary[tokens]


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ([], "starts with '<unk>', this one with None"),
        (["a", UNKNOWN], "starts with '<unk>', this one with 'a'"),
        ([UNKNOWN, "a", "b", "a"], "'a' stands in the list more than once"),
        ([UNKNOWN, 3], "strings, got 3"),
    ],
)
def test_a_broken_stored_list_is_refused(tokens, message):
    with pytest.raises(ValueError, match=message):
        Vocabulary.from_tokens(tokens)


def test_it_prints_its_size_and_first_tokens():
    assert repr(Vocabulary("abcdefghij")) == ("Vocabulary(11 tokens: '<unk>', 'a', 'b', 'c', 'd', 'e', 'f', 'g' ...)")
    assert Vocabulary("a") != ["<unk>", "a"]
