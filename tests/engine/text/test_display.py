"""Every token has a form that can be seen."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.text.display import EMPTY, graphemes, shorten, visible

FAMILY = "👨\u200d👩\u200d👧"


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        ("", EMPTY),
        (" ", "␣"),
        ("\n", "↵"),
        ("\t", "⇥"),
        ("\r\n", "‹CR›↵"),
        ("a b", "a␣b"),
        ("\x00", "‹NUL›"),
        ("\x1b", "‹ESC›"),
        ("\x7f", "‹DEL›"),
        ("\u00a0", "‹NBSP›"),
        ("\u3000", "‹IDSP›"),
        ("\ufeff", "‹BOM›"),
        ("\u200d", "‹ZWJ›"),
        ("\ufe0f", "‹VS16›"),
        ("\u202e", "‹RLO›"),
        ("\u3164", "‹U+3164›"),
        ("\u2800", "‹U+2800›"),
        ("\ue000", "‹U+E000›"),
        ("\ud800", "‹U+D800›"),
        ("\U000e0067", "‹U+E0067›"),
        ("\u0301", "◌\u0301"),
        ("\u0302\u0301", "◌\u0302\u0301"),
        ("e\u0301", "e\u0301"),
        ("a\u200d", "a‹ZWJ›"),
        (FAMILY, FAMILY),
        ("❤\ufe0f", "❤\ufe0f"),
        ("\u0600", "\u0600"),
        ("שלום", "שלום"),
        ("<b>", "<b>"),
        ("$x$", "$x$"),
        ("12", "12"),
        ("你好", "你好"),
    ],
)
def test_tokens_are_shown(token, shown):
    assert visible(token) == shown


def test_txt_19_a_newline_has_a_sign():
    assert [visible(token) for token in "a\nb"] == ["a", "↵", "b"]


@given(st.text(st.characters(codec=None), max_size=8))
def test_nothing_unseen_is_left(token):
    shown = visible(token)
    assert shown
    for cluster in graphemes(shown):
        assert unicodedata.category(cluster[0]) not in ("Cc", "Cs", "Co", "Zs", "Zl", "Zp"), ascii(token)


def test_txt_11_labels_are_never_cut_inside_a_character():
    assert shorten(FAMILY * 3, 2) == FAMILY + "…"
    assert shorten("cafe\u0301s", 5) == "cafe\u0301s"
    assert shorten("cafe\u0301s", 4) == "caf…"
    assert shorten("abc", 1) == "…"
    with pytest.raises(ValueError, match="at least 1"):
        shorten("abc", 0)


@pytest.mark.parametrize(("token", "shown"), [("\u200d", "‹ZWJ›"), ("\ufe0f", "‹VS16›"), ("\u034f", "‹U+034F›")])
def test_thousands_of_unseen_marks_are_shown_one_by_one(token, shown):
    assert visible(token * 5000) == shown * 5000
    assert visible(token * 3 + "\u0301") == shown * 3 + "◌\u0301"
