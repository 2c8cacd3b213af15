"""Long texts: windows that cover all of them, and a store with a bound."""

from hypothesis import given
from hypothesis import strategies as st

from pages.ui import documents
from pages.ui.config import WINDOW


@given(st.text(alphabet="ab é👩\u200d🇵🇱\n", min_size=WINDOW + 1, max_size=5 * WINDOW))
def test_the_windows_put_together_are_the_text(text: str):
    document = documents.find(documents.keep(text))
    assert document is not None
    parts = [document.part(number) for number in range(len(document.starts))]
    assert "".join(parts) == text
    assert all(1 <= len(part) <= WINDOW for part in parts)
    for number, start in enumerate(document.starts):
        assert document.number_at(start) == number


def test_any_character_of_a_link_finds_a_window():
    document = documents.Document("x" * 1000, (0, 256, 512, 768))
    assert [document.number_at(character) for character in (-5, 0, 255, 256, 999, 10**9)] == [0, 0, 0, 1, 3, 3]


def test_the_same_text_has_the_same_name_and_an_unknown_name_finds_nothing():
    assert documents.keep("y" * 300) == documents.keep("y" * 300)
    assert documents.find("no such document") is None


def test_the_store_is_bounded_and_forgets_what_was_used_longest_ago(monkeypatch):
    monkeypatch.setattr(documents, "LIMIT_CHARACTERS", 1000)
    names = [documents.keep(letter * 400) for letter in "abc"]
    assert [documents.find(name) is not None for name in names] == [False, True, True]
    documents.find(names[1])
    documents.keep("d" * 400)
    assert [documents.find(name) is not None for name in names] == [False, True, False]


def test_one_document_beyond_the_bound_is_still_kept(monkeypatch):
    monkeypatch.setattr(documents, "LIMIT_CHARACTERS", 1000)
    assert documents.find(documents.keep("z" * 3000)) is not None
