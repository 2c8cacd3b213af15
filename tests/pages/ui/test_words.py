"""Words: every key in every language, values put in, plural forms, and an error for what is missing."""

import re
import string

import pytest

from pages.catalog import LESSONS, ROAD
from pages.ui import words as module
from pages.ui.words import LANGUAGES, messages, words


def places(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def test_all_languages_have_the_same_keys_and_values():
    catalogs = {lang: messages(lang).by_key for lang in LANGUAGES}
    for lang, found in catalogs.items():
        assert found.keys() == catalogs["en"].keys(), lang
        for key, forms in found.items():
            assert all(form.strip() for form in forms), key
            assert set().union(*map(places, forms)) == set().union(*map(places, catalogs["en"][key])), key


def test_chinese_is_chinese():
    untranslated = {key for key, forms in messages("zh").by_key.items() if not re.search("[\u4e00-\u9fff]", "".join(forms))}
    english = messages("en").by_key
    same = {key for key in untranslated if messages("zh").by_key[key] == english[key]}
    assert {key for key in same if re.search(r"[a-z]{3,} [a-z]{3,}", english[key][0])} == set()


def test_every_lesson_and_chapter_has_words():
    for lang in LANGUAGES:
        for lesson in LESSONS:
            assert words(f"lesson.{lesson.key}.title", lang=lang)
            assert words(f"lesson.{lesson.key}.idea", lang=lang)
        for chapter in ROAD:
            assert words(f"chapter.{chapter}.title", lang=lang)
            assert words(f"chapter.{chapter}.idea", lang=lang)


def test_values_and_plural_forms():
    assert words("source.length", lang="en", count=1) == "1 character"
    assert words("source.length", lang="en", count=2) == "2 characters"
    assert words("source.length", lang="zh", count=2) == "2 个字符"
    assert "12,345" in words("source.part", lang="zh", first=1, last=256, total=12345)


def test_what_is_missing_is_an_error():
    with pytest.raises(KeyError):
        words("no.such.key")
    with pytest.raises(KeyError):
        words("source.part", first=1)


def test_a_key_defined_twice_is_an_error(tmp_path, monkeypatch):
    (tmp_path / "en").mkdir()
    for name in ("a.po", "b.po"):
        (tmp_path / "en" / name).write_text('msgid "x"\nmsgstr "y"\n', encoding="utf-8")
    monkeypatch.setattr(module, "LOCALE", tmp_path)
    with pytest.raises(ValueError, match=r"b\.po defines x a second time"):
        messages.__wrapped__("en")
