"""A learner's file or paste becomes text, and a report says what was done to it. Nothing is guessed in silence.

The report is a tuple of ``Note`` (a key and its values; the words stand in assets/locale). What may come:

=========================  =============================  ==========================================================
key                        values                         meaning
=========================  =============================  ==========================================================
text.too_large             size, limit                    refused by its size in bytes, before anything was decoded
text.first_part            size, kept                     only the first `kept` bytes of `size` were read
text.encoding              encoding                       read in an encoding other than UTF-8: by mark, or as chosen
text.encoding_by_zeros     encoding                       no mark; its zero bytes show that it is this encoding
text.not_utf8              byte                           not UTF-8 at this byte (from 0): choose among the candidates
text.not_decodable         encoding, byte                 the chosen or marked encoding does not fit at this byte
text.bom_removed           count                          byte-order marks removed
text.line_ends             count                          CR LF or CR turned into a newline
text.nul_removed           count                          NUL characters removed: a binary file, or damaged text
text.surrogates_joined     count                          halves of one character put together
text.surrogates_replaced   count                          lone halves replaced by U+FFFD
text.composed              count                          characters brought to their composed spelling (NFC)
text.control_characters    count                          control characters that are kept (and shown by name)
text.empty                 (none)                         no character at all
text.blank                 count                          nothing but blanks and line ends
text.one_character         (none)                         a single character: there is no next one to predict
=========================  =============================  ==========================================================
"""

import codecs
import os
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import regex

from engine.notes import Note
from engine.text.display import graphemes

LIMIT_BYTES = 2 * 1024 * 1024
PREVIEW_CHARACTERS = 120
# Offered whenever the bytes are not UTF-8. The first accepts any bytes at all.
ENCODINGS = (
    "latin_1",
    "cp1252",
    "gb18030",
    "big5",
    "shift_jis",
    "euc_jp",
    "euc_kr",
    "cp1251",
    "koi8_r",
    "utf_16_le",
    "utf_16_be",
)
_MARKS = (  # longest first: a UTF-32 mark begins with the UTF-16 one
    (codecs.BOM_UTF32_LE, "utf_32_le"),
    (codecs.BOM_UTF32_BE, "utf_32_be"),
    (codecs.BOM_UTF8, "utf_8"),
    (codecs.BOM_UTF16_LE, "utf_16_le"),
    (codecs.BOM_UTF16_BE, "utf_16_be"),
)
_SAMPLE_BYTES = 20_000  # enough for charset-normalizer, and quick
_BREAKS = regex.compile("\r\n|\r")
_PAIRS = regex.compile("[\ud800-\udbff][\udc00-\udfff]")
_LONE = regex.compile("[\ud800-\udfff]")
_CONTROLS = regex.compile(r"[\p{Cc}--[\t\n]]", regex.V1)
# More marks on one letter than in any writing. To put them in order takes time that grows with the square of their number.
_HEAP = regex.compile(r"(\p{M}{64,})")
_STRANGE = regex.compile(r"[\p{Cc}\p{Cn}\p{Co}\p{Cs}--[\t\n\r\f]]", regex.V1)  # hardly ever meant in a text


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """An encoding in which the bytes make text, and how that text looks around the first byte that is not UTF-8."""

    encoding: str
    preview: str


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What became of an input.

    ``text`` is None when it was refused or when the reader must first choose one of the ``candidates``.
    """

    text: str | None
    notes: tuple[Note, ...] = ()
    encoding: str | None = None
    candidates: tuple[Candidate, ...] = ()

    def note(self, key: str) -> Note | None:
        """The note with this key, if there is one."""
        return next((note for note in self.notes if note.key == key), None)


def read_file(path: Path, *, encoding: str | None = None, limit: int = LIMIT_BYTES, first_part: bool = False) -> Reading:
    """Read a file; of a file beyond the limit not a byte is read unless ``first_part`` asks for its beginning."""
    with path.open("rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        return read_stream(stream, size, encoding=encoding, limit=limit, first_part=first_part)


def read_stream(
    stream: BinaryIO, size: int, *, encoding: str | None = None, limit: int = LIMIT_BYTES, first_part: bool = False
) -> Reading:
    """Read an upload of `size` bytes; of one beyond the limit not a byte is read unless ``first_part`` asks for it."""
    if size > limit and not first_part:
        return Reading(text=None, notes=(Note("text.too_large", {"size": size, "limit": limit}),))
    data = stream.read(limit + 1)
    return _read(data[:limit], max(size, len(data)), encoding, limit, first_part)


def read_bytes(data: bytes, *, encoding: str | None = None, limit: int = LIMIT_BYTES, first_part: bool = False) -> Reading:
    """Read bytes as text.

    UTF-8 comes first, marks are obeyed, UTF-16 and UTF-32 without a mark are known by their zeros. Anything else is
    not read: ``candidates`` holds the encodings that fit, with previews, and the reader's choice comes back as `encoding`.

    Raises:
        ValueError: `encoding` is not the name of a text encoding.
    """
    return _read(data[:limit], len(data), encoding, limit, first_part)


def _read(data: bytes, size: int, encoding: str | None, limit: int, first_part: bool) -> Reading:
    if size > limit and not first_part:
        return Reading(text=None, notes=(Note("text.too_large", {"size": size, "limit": limit}),))
    cut = size > len(data)
    notes = [Note("text.first_part", {"size": size, "kept": len(data)})] if cut else []
    if encoding is not None:
        used, how = _known(encoding), "text.encoding"
    else:
        used, how = _recognise(data, cut)
    try:
        text = _decode(data, used, cut)
    except UnicodeDecodeError as error:
        fault = (
            Note("text.not_utf8", {"byte": error.start})
            if how == "text.utf8"
            else Note("text.not_decodable", {"encoding": used, "byte": error.start})
        )
        return Reading(text=None, notes=(*notes, fault), candidates=tuple(_candidates(data, error.start, cut)))
    if how != "text.utf8":
        notes.append(Note(how, {"encoding": used}))
    clean, cleaning = _clean(text)
    if cut:  # the cut may have gone through the middle of a character that is written with several code points
        clean = "".join(graphemes(clean)[:-1]) or clean
    return Reading(text=clean, notes=(*notes, *cleaning), encoding=used)


def read_text(text: str, *, limit: int = LIMIT_BYTES, first_part: bool = False) -> Reading:
    """Read typed or pasted text: the same limit and the same cleaning as for a file."""
    size = len(text.encode("utf-8", "surrogatepass"))
    if size <= limit:
        clean, notes = _clean(text)
        return Reading(text=clean, notes=notes)
    if not first_part:
        return Reading(text=None, notes=(Note("text.too_large", {"size": size, "limit": limit}),))
    begin = text.encode("utf-8", "surrogatepass")[:limit]
    clean, notes = _clean(begin.decode("utf-8", "ignore"))
    return Reading(
        text="".join(graphemes(clean)[:-1]) or clean,
        notes=(Note("text.first_part", {"size": size, "kept": len(begin)}), *notes),
    )


def _known(encoding: str) -> str:
    """The codec's name in one spelling. Text encodings only: "hex" or "rot13" come from no honest link."""
    try:
        found = codecs.lookup(encoding)
    except (LookupError, ValueError) as error:  # ValueError: the name holds a NUL
        raise ValueError(f"unknown encoding {encoding!r}") from error
    if not found._is_text_encoding:
        raise ValueError(f"{encoding!r} is no encoding of text")
    return found.name.replace("-", "_")


def _recognise(data: bytes, cut: bool) -> tuple[str, str]:
    """The encoding to try and the note that says how it was found; ``text.utf8`` stands for the ordinary case."""
    for mark, encoding in _MARKS:
        if data.startswith(mark) and (encoding != "utf_32_le" or _fitting(data, encoding, cut) is not None):
            return encoding, "text.utf8" if encoding == "utf_8" else "text.encoding"
    if b"\0" in data:
        for encoding in _by_zeros(data, cut):
            text = _fitting(data, encoding, cut)
            if text is not None and not _STRANGE.search(text):
                return encoding, "text.encoding_by_zeros"
    return "utf_8", "text.utf8"


def _by_zeros(data: bytes, cut: bool) -> Iterator[str]:
    """Encodings of two or four bytes a character in which zeros would stand where they do stand."""
    share = [data[k::4].count(0) / max(1, len(data[k::4])) for k in range(4)]
    if share[3] == 1 and share[2] > 0.5:
        yield "utf_32_le"
    if share[0] == 1 and share[1] > 0.5:
        yield "utf_32_be"
    if len(data) < 4:
        return
    even, odd = (share[0] + share[2]) / 2, (share[1] + share[3]) / 2
    # Western text has a zero in nearly every character. In other scripts hardly more than the blanks have one; then the
    # bytes must also make no sense as UTF-8.
    text = _fitting(data, "utf_8", cut)
    senseless = text is None or bool(_STRANGE.search(text.replace("\0", "")))
    if even < 0.5 * odd and (odd > 0.7 or senseless):
        yield "utf_16_le"
    if odd < 0.5 * even and (even > 0.7 or senseless):
        yield "utf_16_be"


def _decode(data: bytes, encoding: str, cut: bool) -> str:
    """Strict decoding; when the data was cut, an unfinished character at its end is left out."""
    return codecs.getincrementaldecoder(encoding)("strict").decode(data, final=not cut)


def _fitting(data: bytes, encoding: str, cut: bool) -> str | None:
    try:
        return _decode(data, encoding, cut)
    except UnicodeDecodeError:
        return None


def _candidates(data: bytes, byte: int, cut: bool) -> list[Candidate]:
    """Every encoding that fits all of the data, the likeliest first; of those that give the same text, one is named."""
    from charset_normalizer import from_bytes

    names: dict[str, list[str]] = {}
    for encoding in ENCODINGS:
        text = _fitting(data, encoding, cut)
        if text is not None:
            names.setdefault(text, []).append(encoding)
    start = byte if byte > _SAMPLE_BYTES // 2 else 0
    likely = [match.encoding for match in from_bytes(data[start : start + _SAMPLE_BYTES])]

    def rank(item: tuple[str, list[str]]) -> tuple[bool, int]:
        text, encodings = item
        return bool(_STRANGE.search(text)), min((likely.index(name) for name in encodings if name in likely), default=99)

    candidates = []
    for text, (encoding, *_) in sorted(names.items(), key=rank):
        before = len(_fitting(data[:byte], encoding, cut=True) or "")
        first = max(0, before - PREVIEW_CHARACTERS // 4)
        candidates.append(Candidate(encoding=encoding, preview=text[first : first + PREVIEW_CHARACTERS]))
    return candidates


def _clean(text: str) -> tuple[str, tuple[Note, ...]]:
    """Bring a text into the one form that the tokenizers expect, and say what was changed."""
    counts = {"text.bom_removed": text.count("\ufeff")}
    text = text.replace("\ufeff", "")
    text, counts["text.line_ends"] = _BREAKS.subn("\n", text)
    counts["text.nul_removed"] = text.count("\0")
    text = text.replace("\0", "")
    text, counts["text.surrogates_joined"] = _PAIRS.subn(_join, text)
    text, counts["text.surrogates_replaced"] = _LONE.subn("\ufffd", text)
    text, counts["text.composed"] = _composed(text)
    counts["text.control_characters"] = len(_CONTROLS.findall(text))
    notes = [Note(key, {"count": count}) for key, count in counts.items() if count]
    if not text:
        notes.append(Note("text.empty"))
    elif not text.strip():
        notes.append(Note("text.blank", {"count": len(text)}))
    elif len(text) == 1:
        notes.append(Note("text.one_character"))
    return text, tuple(notes)


def _composed(text: str) -> tuple[str, int]:
    """The composed spelling of a text, and how many of its characters it changed. A heap of marks stays as it is."""
    parts, count = _HEAP.split(text), 0
    for at in range(0, len(parts), 2):
        if not unicodedata.is_normalized("NFC", parts[at]):
            count += sum(not unicodedata.is_normalized("NFC", each) for each in graphemes(parts[at])) or 1
            parts[at] = unicodedata.normalize("NFC", parts[at])
    return "".join(parts), count


def _join(pair: "regex.Match[str]") -> str:
    halves: str = pair.group()
    return halves.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
