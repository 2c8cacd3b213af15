"""Text to tokens, at five levels. A token is a string; joining the tokens gives the text back.

``word`` and ``chinese`` are the exception: blanks between words are left out, as in the textbook, unless ``keep_blanks=True``.
"""

from itertools import groupby
from typing import TYPE_CHECKING, Literal, get_args

import regex

from engine.text.display import graphemes

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Level = Literal["character", "grapheme", "word", "bpe", "chinese"]
LEVELS: tuple[Level, ...] = get_args(Level)

# The Unicode Standard's own word boundaries (Annex 29): "can't" and "3.14" are one word, each Chinese character is one.
_WORD_BOUNDARY = regex.compile(r"\b", regex.V1 | regex.WORD)
_HAN = regex.compile(r"(\p{Han}+)")
_BLANKS = regex.compile(r"[^\S\n]+")
_LINE_BREAKS = regex.compile(r"(\n)")
# Words keep the blank before them and no merge crosses a word, so that a piece stays readable. One without an end is cut:
# to join its pieces takes time that grows with the square of its length.
_BPE_WORDS = r" ?\p{L}[\p{L}\p{M}]{0,63}| ?\p{N}{1,64}| ?[^\s\p{L}\p{N}]{1,64}|\s{1,64}(?!\S)|\s{1,64}"


def tokenize(
    text: str, level: str = "character", *, lower: bool = False, keep_blanks: bool = False, vocabulary_size: int = 512
) -> list[str]:
    """Cut a text into tokens.

    Args:
        text: any text; the empty text has no tokens.
        level: ``character`` (code points), ``grapheme`` (what a reader calls a character), ``word`` (Unicode word
            boundaries; marks and newlines are tokens; each Chinese character is a word), ``bpe`` (byte-pair encoding
            trained on this very text), ``chinese`` (as ``word``, but Chinese is cut into words by a dictionary, jieba's).
        lower: lower-case first.
        keep_blanks: at the levels ``word`` and ``chinese``, keep the blanks between words as tokens, so that joining gives
            the text back.
        vocabulary_size: at level ``bpe``, how many different tokens at most (never fewer than the text's characters).

    Raises:
        ValueError: an unknown level; or ``bpe`` on a text with lone surrogates (``engine.text.reading`` removes them).
    """
    if lower:
        text = text.lower()
    match level:
        case "character":
            return list(text)
        case "grapheme":
            return graphemes(text)
        case "word":
            return _words(text, keep_blanks)
        case "bpe":
            return _byte_pairs(text, vocabulary_size)
        case "chinese":
            return _chinese_words(text, keep_blanks)
    raise ValueError(f"unknown level {level!r}; there are {', '.join(LEVELS)}")


def _words(text: str, keep_blanks: bool) -> list[str]:
    pieces = [part for piece in _WORD_BOUNDARY.split(text) for part in _LINE_BREAKS.split(piece) if part]
    return pieces if keep_blanks else [piece for piece in pieces if not _BLANKS.fullmatch(piece)]


def _chinese_words(text: str, keep_blanks: bool) -> list[str]:
    from rjieba import cut

    pieces: list[str] = []
    for number, part in enumerate(_HAN.split(text)):  # every second part is Chinese
        pieces += cut(part) if number % 2 else _words(part, keep_blanks)
    return pieces


def tokenize_like(
    other: str, text: str, level: str = "character", *, keep_blanks: bool = False, vocabulary_size: int = 512
) -> list[str]:
    """Cut another text as ``tokenize`` cuts ``text``: with its byte pairs, where the level is that; else the same.

    A character that the byte pairs have never seen is a token of its own, so joining the tokens gives the text back.
    """
    if level != "bpe":
        return tokenize(other, level, keep_blanks=keep_blanks)
    if not text:
        return list(other)
    known = frozenset(text)
    tokenizer = _trained(text, vocabulary_size)
    tokens: list[str] = []
    for seen, characters in groupby(other, known.__contains__):
        run = "".join(characters)
        tokens += tokenizer.encode(run).tokens if seen else list(run)
    return tokens


def _byte_pairs(text: str, vocabulary_size: int) -> list[str]:
    if not text:
        return []
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(f"the text holds a lone surrogate at character {error.start}") from error
    tokens: list[str] = _trained(text, vocabulary_size).encode(text).tokens
    return tokens


def _trained(text: str, vocabulary_size: int) -> "Tokenizer":
    """Byte pairs of this very text."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(_BPE_WORDS), behavior="isolated")
    tokenizer.train_from_iterator([text], trainers.BpeTrainer(vocab_size=max(0, vocabulary_size), show_progress=False))
    return tokenizer
