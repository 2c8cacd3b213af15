"""Reading: whatever bytes a learner brings, there is a text, or a choice, or a refusal, and a report; never a traceback."""

import codecs
import io
import re
import subprocess
import sys
import time
import tracemalloc
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import engine.text.reading as reading_module
from engine.notes import Note
from engine.text.reading import ENCODINGS, LIMIT_BYTES, read_bytes, read_file, read_stream, read_text
from engine.text.tokenizers import tokenize
from engine.text.vocabulary import Vocabulary

ROOT = Path(__file__).resolve().parents[3]
SAMPLES = {
    "western": "Größe, naïve façade",
    "cyrillic": "Пример текста с пробелами",
    "chinese": "你好 世界，早上好",
    "japanese": "日本語 テキスト 😀 です",
    "hebrew": "שלום עולם טוב",
}


TABLE = {
    key: set() if values == "(none)" else set(values.split(", "))
    for key, values in re.findall(r"^(text\.\w+) +(\S.*?)  ", reading_module.__doc__ or "", re.MULTILINE)
}


def documented(reading):
    """Every note is in the module's table, with exactly the values that stand there."""
    return all(set(note.values) == TABLE.get(note.key) for note in reading.notes)


def previews(reading):
    return {candidate.encoding: candidate.preview for candidate in reading.candidates}


def test_txt_01_one_bad_byte_is_named_and_encodings_are_offered():
    reading = read_bytes(bytes.fromhex("74656d70203235b04320b56d"))
    assert reading.text is None
    assert reading.notes == (Note("text.not_utf8", {"byte": 7}),)
    assert previews(reading)["latin_1"] == "temp 25°C µm"


def test_txt_02_chinese_in_gbk_is_not_read_as_western_letters():
    data = bytes.fromhex("c4e3bac3a3accac0bde7")
    reading = read_bytes(data)
    assert reading.text is None
    assert reading.notes == (Note("text.not_utf8", {"byte": 0}),)
    assert previews(reading)["gb18030"] == "你好，世界"
    assert previews(reading)["latin_1"] == "ÄãºÃ£¬ÊÀ½ç"
    chosen = read_bytes(data, encoding="GB18030")
    assert chosen.text == "你好，世界"
    assert chosen.notes == (Note("text.encoding", {"encoding": "gb18030"}),)
    assert len(tokenize(chosen.text)) == 5
    assert len(tokenize(read_bytes(data, encoding="latin-1").text)) == 10


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("big5", "中文文本很好，這裡有更多"),
        ("shift_jis", "日本語のテキストです"),
        ("euc_jp", "日本語のテキストです"),
        ("euc_kr", "한국어 문장입니다"),
        ("cp1251", "Пример текста с пробелами"),
        ("koi8_r", "Пример текста с пробелами"),
        ("cp1252", "“Größe” – façade"),
        ("utf_16_le", "你好世界早上好，繁體"),
        ("gb18030", "你好，世界"),
    ],
)
def test_txt_02_kind_the_right_encoding_is_among_the_offered_ones(encoding, text):
    reading = read_bytes(text.encode(encoding))
    assert reading.text is None
    assert text in previews(reading).values()
    assert read_bytes(text.encode(encoding), encoding=encoding).text == text


def test_the_preview_shows_the_place_that_is_not_utf8():
    data = b"plain " * 2000 + "Größe".encode("latin-1") + b" plain" * 2000
    reading = read_bytes(data)
    assert reading.note("text.not_utf8").values["byte"] == 12002
    assert "Größe" in previews(reading)["latin_1"]
    assert len(previews(reading)["latin_1"]) <= 120


def test_a_chosen_encoding_that_does_not_fit_is_named_and_the_choice_stays():
    reading = read_bytes(b"caf\xe9 \x81\xff", encoding="gb18030")
    assert reading.text is None
    assert reading.notes[0].key == "text.not_decodable"
    assert reading.notes[0].values["encoding"] == "gb18030"
    assert "latin_1" in previews(reading)


@pytest.mark.parametrize("encoding", ["no-such", "hex", "rot13", "zlib", "", "\0"])
def test_an_encoding_that_is_none_is_refused(encoding):
    with pytest.raises(ValueError, match="encoding"):
        read_bytes(b"abc", encoding=encoding)


def test_txt_03_files_are_utf8_whatever_the_machine_says(tmp_path):
    file = tmp_path / "book.txt"
    file.write_bytes("naïve 你好\n".encode())
    code = (
        "import sys; from pathlib import Path; from engine.text.reading import read_file;"
        "sys.stdout.buffer.write(read_file(Path(sys.argv[1])).text.encode())"
    )
    for utf8_mode in ("utf8=0", "utf8=1"):  # with utf8=0 this machine's default is ASCII
        done = subprocess.run(
            [sys.executable, "-X", utf8_mode, "-c", code, str(file)],
            cwd=ROOT,
            env={"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"},
            capture_output=True,
            check=True,
        )
        assert done.stdout.decode() == "naïve 你好\n"


def test_txt_04_a_byte_order_mark_is_removed_and_reported():
    reading = read_bytes(bytes.fromhex("efbbbf6162"))
    assert reading.text == "ab"
    assert reading.notes == (Note("text.bom_removed", {"count": 1}),)


@pytest.mark.parametrize("text", ["\ufeffab", "\ufeff\ufeffab", "a\ufeffb", "ab\ufeff"])
def test_txt_04_kind_no_mark_stays_anywhere(text):
    for reading in (read_text(text), read_bytes(text.encode()), read_bytes(text.encode("utf-16"))):
        assert reading.text == "ab"
        assert "\ufeff" not in Vocabulary(reading.text)
        assert reading.note("text.bom_removed")


@pytest.mark.parametrize(
    ("text", "lines", "count"),
    [
        ("a\r\nb\r\n", "a\nb\n", 2),
        ("a\rb", "a\nb", 1),
        ("a\r\r\nb", "a\n\nb", 2),
        ("a\n\r\nb", "a\n\nb", 1),
        ("a\nb", "a\nb", 0),
    ],
)
def test_txt_06_line_ends_become_newlines_and_are_counted(text, lines, count):
    for reading in (read_text(text), read_bytes(text.encode())):
        assert reading.text == lines
        assert reading.notes == ((Note("text.line_ends", {"count": count}),) if count else ())


def test_txt_08_zero_bytes_are_removed_with_a_count():
    reading = read_bytes(bytes.fromhex("610062"))
    assert reading.text == "ab"
    assert reading.notes == (Note("text.nul_removed", {"count": 1}),)


@pytest.mark.parametrize(
    ("data", "text"), [(b"foo\0bar\0", "foobar"), (b"\0\0\0\0", ""), (b"ab\0cd\0\0e", "abcde"), (b"a\0", "a")]
)
def test_txt_08_kind_zero_bytes_in_plain_text(data, text):
    reading = read_bytes(data)
    assert reading.text == text
    assert reading.note("text.nul_removed").values["count"] == data.count(0)


@pytest.mark.parametrize(
    "data", [bytes(range(256)) * 4, b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x10\0\0\0\x10\x08\x06\0\0\0\x1f\xf3\xffa"]
)
def test_txt_08_kind_a_binary_file_is_not_read_in_silence(data):
    reading = read_bytes(data)
    assert reading.text is None
    assert reading.note("text.not_utf8")


def test_txt_10_utf16_and_utf32_with_a_mark_are_text():
    assert read_bytes(bytes.fromhex("fffe61006200")).text == "ab"
    assert read_bytes(bytes.fromhex("fffe00006100000062000000")).text == "ab"


@pytest.mark.parametrize("text", SAMPLES.values(), ids=SAMPLES)
@pytest.mark.parametrize("order", ["le", "be"])
@pytest.mark.parametrize("width", [16, 32])
@pytest.mark.parametrize("mark", [True, False], ids=["mark", "no mark"])
def test_txt_10_kind_wide_encodings_are_recognised_and_named(text, width, order, mark):
    sign = getattr(codecs, f"BOM_UTF{width}_{order.upper()}") if mark else b""
    reading = read_bytes(sign + text.encode(f"utf-{width}-{order}"))
    assert reading.text == text
    assert reading.encoding == f"utf_{width}_{order}"
    assert reading.note("text.encoding" if mark else "text.encoding_by_zeros").values == {"encoding": reading.encoding}


def test_a_marked_file_that_breaks_off_is_reported_not_guessed():
    reading = read_bytes(b"\xfe\xff\x00a\x00")
    assert reading.text is None
    assert reading.notes == (Note("text.not_decodable", {"encoding": "utf_16_be", "byte": 4}),)
    assert reading.candidates


def test_txt_12_two_spellings_become_one_entry():
    composed, decomposed = "y\u1ebfu", "ye\u0302\u0301u"
    readings = [read_text(composed), read_text(decomposed)]
    assert [reading.text for reading in readings] == [composed, composed]
    assert [reading.notes for reading in readings] == [(), (Note("text.composed", {"count": 1}),)]
    assert len(Vocabulary([tokenize(reading.text, "word") for reading in readings])) == 1 + 1


@pytest.mark.parametrize(("text", "count"), [("e\u0301e\u0301 a", 2), ("\u1112\u1161\u11ab", 1), ("\uf900", 1), ("\u212b", 1)])
def test_txt_12_kind_every_other_spelling_is_counted(text, count):
    reading = read_text(text)
    assert reading.text == unicodedata.normalize("NFC", text)
    assert reading.note("text.composed").values["count"] == count


@pytest.mark.parametrize(
    ("text", "clean", "key"),
    [
        ("a\ud800b", "a\ufffdb", "text.surrogates_replaced"),
        ("\udc00\ud800", "\ufffd\ufffd", "text.surrogates_replaced"),
        ("\ud83d\ude00", "😀", "text.surrogates_joined"),
    ],
)
def test_lone_surrogates_are_replaced_and_pairs_joined(text, clean, key):
    reading = read_text(text)
    assert reading.text == clean
    assert reading.note(key).values["count"] == (2 if text == "\udc00\ud800" else 1)


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("", Note("text.empty")),
        ("\ufeff", Note("text.empty")),
        (" ", Note("text.blank", {"count": 1})),
        (" \n\t\u3000", Note("text.blank", {"count": 4})),
        ("a", Note("text.one_character")),
        ("你", Note("text.one_character")),
    ],
)
def test_bat_16_texts_too_short_to_learn_from_are_reported(text, note):
    for reading in (read_text(text), read_bytes(text.encode())):
        assert reading.text is not None
        assert reading.notes[-1] == note


def test_the_table_of_notes_is_complete():
    assert len(TABLE) == 16
    assert documented(read_bytes(b"a" * 9, limit=5))
    assert documented(read_bytes(b"a" * 9, limit=5, first_part=True))


def test_control_characters_stay_and_are_counted():
    reading = read_text("a\x1b[0m\tb\n")
    assert reading.text == "a\x1b[0m\tb\n"
    assert reading.notes == (Note("text.control_characters", {"count": 1}),)


class Unreadable(io.RawIOBase):
    """A stream that must not be touched."""

    def read(self, size=-1):
        raise AssertionError("read although its size is beyond the limit")


def test_txt_15_a_file_of_gigabytes_is_refused_by_its_size():
    reading = read_stream(Unreadable(), 3_200_000_000)
    assert reading.text is None
    assert reading.notes == (Note("text.too_large", {"size": 3_200_000_000, "limit": LIMIT_BYTES}),)


def test_txt_15_a_sparse_file_of_gigabytes_is_refused_quickly(tmp_path):
    file = tmp_path / "huge.txt"
    with file.open("wb") as stream:
        stream.truncate(3_200_000_000)
    assert read_file(file).note("text.too_large")
    begin = read_file(file, first_part=True, limit=1000)
    assert begin.notes[0] == Note("text.first_part", {"size": 3_200_000_000, "kept": 1000})


@pytest.mark.parametrize("size", [0, 10, LIMIT_BYTES])
def test_txt_15_kind_a_stream_that_lies_about_its_size_is_refused_all_the_same(size):
    reading = read_stream(io.BytesIO(b"a" * (LIMIT_BYTES + 50)), size)
    assert reading.text is None
    assert reading.note("text.too_large")


def test_txt_16_two_megabytes_are_the_limit_and_a_byte_more_is_refused():
    assert LIMIT_BYTES == 2 * 1024 * 1024
    assert len(read_bytes(b"a" * LIMIT_BYTES).text) == LIMIT_BYTES
    for reading in (read_bytes(b"a" * (LIMIT_BYTES + 1)), read_text("a" * (LIMIT_BYTES + 1)), read_bytes(b"a" * 2_100_000)):
        assert reading.text is None
        assert reading.notes[0].key == "text.too_large"


def test_txt_16_memory_returns_after_fifty_uploads():
    data = "größe ".encode() * 50_000
    kept = read_bytes(data)
    tracemalloc.start()
    try:
        for _ in range(50):
            kept = read_bytes(data)
        now, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert now < 3 * sys.getsizeof(kept.text)


@pytest.mark.parametrize(
    ("text", "encoding", "limit", "begin"),
    [
        ("abcdé", None, 5, "abc"),  # the cut goes through é: it is left out, and so is the cluster before it
        ("a你好", None, 5, "a"),
        ("ab\r\nc", None, 3, "ab"),
        ("x" + "👨\u200d👩\u200d👧", None, 15, "x"),
        ("ab你好", "gb18030", 5, "ab"),
        ("abcd", "utf-16", 7, "a"),
    ],
)
def test_the_first_part_ends_between_two_characters(text, encoding, limit, begin):
    data = text.encode(encoding or "utf-8")
    reading = read_bytes(data, encoding=None if encoding == "utf-16" else encoding, limit=limit, first_part=True)
    assert reading.text is not None
    assert begin.startswith(reading.text)
    assert reading.notes[0] == Note("text.first_part", {"size": len(data), "kept": limit})


def test_the_first_part_of_a_paste():
    reading = read_text("é" * 10, limit=5, first_part=True)
    assert reading.text == "é"
    assert reading.notes == (Note("text.first_part", {"size": 20, "kept": 5}),)


def test_txt_18_marks_of_markup_stay_letter_for_letter():
    text = "a $x$ b __pad__ ~~s~~ :smile: *c* [d](e) <b>&amp;</b>"
    assert read_text(text).text == text
    assert read_text(text).notes == ()


@given(st.binary(max_size=80), st.sampled_from([None, *ENCODINGS]))
def test_no_bytes_bring_it_down(data, encoding):
    reading = read_bytes(data, encoding=encoding)
    assert documented(reading)
    if reading.text is None:
        assert reading.notes
        assert reading.candidates, "latin-1 takes any bytes, so there is always a choice"
    else:
        assert read_text(reading.text).text == reading.text
        assert {"\0", "\r", "\ufeff"}.isdisjoint(reading.text)
        reading.text.encode("utf-8")


@given(st.text(st.characters(codec=None), max_size=60))
def test_cleaning_twice_changes_nothing_more(text):
    once = read_text(text)
    assert documented(once)
    assert read_text(once.text).text == once.text
    assert unicodedata.is_normalized("NFC", once.text)


@given(st.text(st.characters(codec="utf-8"), max_size=60), st.integers(0, 60))
def test_any_first_part_is_readable(text, limit):
    reading = read_bytes(text.encode(), limit=limit, first_part=True)
    assert reading.text is not None or reading.note("text.not_utf8") or reading.note("text.not_decodable")


def test_a_heap_of_marks_is_read_in_time_and_left_as_it_is():
    """Two kinds of marks in turn: to order half a million of them takes a quarter of an hour."""
    heap = "o" + "\u0301\u0316" * 500_000
    start = time.process_time()
    found = read_text(f"cafe\u0301 {heap}", first_part=True)
    assert time.process_time() - start < 10
    assert found.text == f"café {heap}"[: len(found.text or "")]
    assert {note.key: note.values for note in found.notes}["text.composed"] == {"count": 1}
    assert read_text("e" + "\u0301" * 40).text == "é" + "\u0301" * 39
