"""Features of a text, and the units that follow them."""

import numpy as np
import pytest

from engine.recurrent.units import (
    FEATURES,
    bracket_depth,
    capital,
    correlate,
    in_quotes,
    line_position,
    token_features,
    word_position,
)
from tests.support import uniform


def marks(values):
    return "".join(f"{value:.0f}" for value in values)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('a "bc" d', "00011000"),
        ("“ab” c", "011000"),
        ("«d» 「e」", "0100010"),
        ("„ab“ c", "011000"),
        ('"ab\n\ncd"e', "011100001"),  # never closed before the paragraph ends: the next mark opens
        ('""a', "000"),
        ("no", "00"),
    ],
)
def test_inside_quotes(text, expected):
    assert marks(in_quotes(text)) == expected


def test_brackets_lines_words_and_capitals():
    assert marks(bracket_depth("a(b[c]d)e)f(")) == "001121100000"
    assert line_position("ab\nc\n\nd") == [0, 1, 2, 0, 1, 0, 0]
    assert word_position("It's a-b 42!") == [1, 2, 3, 4, 0, 1, 2, 3, 0, 1, 2, 0]
    assert capital("aBÄ中") == [0, 1, 1, 0]
    for feature in FEATURES.values():
        assert feature("") == []


def test_a_token_has_the_feature_of_its_last_character():
    tokens = ["ab", "\n", "c", "(d", ")"]
    found = token_features(tokens)
    assert found.keys() == FEATURES.keys()
    assert found["line_position"].tolist() == [1, 2, 0, 2, 3]
    assert found["bracket_depth"].tolist() == [0, 0, 0, 1, 0]
    with pytest.raises(ValueError, match="at least one character"):
        token_features(["a", ""])


def test_a_unit_that_follows_a_feature_is_found():
    text = 'She said "yes, (of course)" and left.\n' * 6
    states = uniform(len(text), 11, seed=3).numpy()
    states[:, 4] = -0.3 * np.array(in_quotes(text)) + 0.1
    states[:, 7] = np.tanh(0.05 * np.array(line_position(text))) + 0.02 * states[:, 0]
    states[:, 9] = 0.25
    found, constant = correlate(states, list(text))
    assert constant == ()
    assert (found["in_quotes"].unit, found["in_quotes"].best) == (4, pytest.approx(-1))
    assert found["line_position"].unit == 7
    assert found["line_position"].best > 0.9
    assert found["in_quotes"].correlations[9] == 0
    assert found["in_quotes"].ranked()[0] == 4
    expected = np.corrcoef(states[:, 2], in_quotes(text))[0, 1]
    assert found["in_quotes"].correlations[2] == pytest.approx(expected, abs=1e-12)
    noise = [abs(found["in_quotes"].correlations[unit]) for unit in (0, 1, 2, 3, 5, 6, 8, 10)]
    assert max(noise) < found["in_quotes"].by_chance < 0.3


def test_what_a_text_cannot_show_is_said():
    found, constant = correlate(uniform(4, 3, seed=1).numpy(), list("abab"))
    assert {"in_quotes", "bracket_depth", "capital"} == set(constant)
    assert set(found) == {"line_position", "word_position"}
    with pytest.raises(ValueError, match="one row a token"):
        correlate(np.zeros((3, 2)), list("abab"))
