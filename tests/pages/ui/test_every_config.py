"""Every lesson's config: whatever a link says becomes a config that can be run, and its own link gives it back unchanged."""

import importlib
import pkgutil
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pages.ui
from pages.ui.config import LessonConfig, RecurrentConfig, from_query, to_query

for module in pkgutil.iter_modules(pages.ui.__path__):
    if module.name != "main":  # the frame, which runs the application
        importlib.import_module(f"pages.ui.{module.name}")


def kinds(of=LessonConfig):
    """The configs of all lessons."""
    return [kind for each in of.__subclasses__() for kind in (each, *kinds(each)) if kind is not RecurrentConfig]


NUMBERS = (
    *"0 -0 1 -1 7 64 256 99999 1e5 1e400 -1e400 1e-400 nan NaN inf -inf 1.5 .5 5. 1_000 １２ ٣ 0x10 +5".split(),
    *(" 5", "9" * 5000),
)
WORDS = (
    *"trained untrained word character bpe True None null [1] {} <b> %00 é".split(),
    *("", " ", "\n", "a\0b", "\u202e", "\ud800"),
)
SEVERAL = [
    "1,2",
    "1;2",
    "1:2",
    "1:nan;2:inf",
    "0:1e308;1:-1e308",
    "1,1;1,1",
    "5-3",
    "@",
    "#",
    ";;",
    "F=1",
    "F=nan@1-#2",
    "H=1@0-5#1.2",
]
TEXTS = [
    "",
    " ",
    "a",
    "ab",
    "the cat the",
    "\n\n",
    "😀",
    "\ud800",
    "x" * 300,
    "1 2 10",
    "<b>",
    "你好，世界",
    "\0",
    "e\u0301",
    "שלום",
]
VALUES = st.sampled_from([*NUMBERS, *WORDS, *SEVERAL]) | st.text(max_size=12)


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_any_link_is_read_and_its_config_is_written_and_read_back(kind, data):
    names = [each.name for each in fields(kind)]
    asked = data.draw(st.dictionaries(st.sampled_from(names), VALUES)) | {"text": data.draw(st.sampled_from(TEXTS))}
    config, _ = from_query(kind, asked)
    again, notes = from_query(kind, to_query(config))
    assert again == config
    assert hash(again) == hash(config)
    assert [note.key for note in notes if not note.key.startswith("text.")] == []


def test_every_lesson_is_among_them():
    assert len(kinds()) >= 13
