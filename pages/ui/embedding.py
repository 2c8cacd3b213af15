"""Lesson 3: its config, the embedding it looks at, and what the stage is told about it."""

import hashlib
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import streamlit as st

from engine.data.corpora import CorpusMissing, king_james, python_topics
from engine.embedded import (
    CELLS,
    Dimensions,
    Embedded,
    dimensions,
    maps,
    nearest,
    of_model,
    of_pretrained,
    of_words,
    one_hot_dimensions,
)
from engine.embeddings import ANALOGIES, one_hot_product, pretrained
from engine.notes import Note
from engine.text.display import visible
from engine.text.tokenizers import tokenize
from engine.trace import Array
from engine.training import checkpoints
from pages.ui.config import MAX_SEED, WHOLE, LessonConfig, choice, given_text, number
from pages.ui.source import whole

SAMPLE_CHARACTERS = 600_000
LARGEST = 800  # words that get a vector
SHOWN = 160  # tokens of the text on the stage
NEAREST = 6
LIMITS = {"width": (2, 128), "window": (1, 20)}


@dataclass(frozen=True, kw_only=True)
class EmbeddingsConfig(LessonConfig):
    """Lesson 3. ``width`` and ``window`` are of word vectors; ``state``, ``dims``, ``step`` and ``unit`` are places."""

    embedding: str = "gru"
    material: str = "long"
    width: int = 32
    window: int = 5
    seed: int = 0
    state: str = "after"
    dims: str = "2"
    step: int = 0
    unit: int = 0

    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "embedding": ("gru", "lstm", "rnn", "words", "pretrained"),
        "material": ("long", "own"),
        "state": ("after", "before"),
        "dims": ("2", "3"),
    }

    @classmethod
    def read(cls, params: Mapping[str, str], notes: list[Note]) -> "EmbeddingsConfig":
        chosen: dict[str, Any] = {name: choice(name, params, known, notes) for name, known in cls.choices.items()}
        numbers: dict[str, Any] = {name: _between(name, params, notes) for name in LIMITS}
        return cls(
            text=given_text(params, notes),
            seed=number("seed", params, MAX_SEED, notes),
            step=number("step", params, SHOWN - 1, notes, shift=1, said="link.place"),
            unit=number("unit", params, 1023, notes),
            **chosen,
            **numbers,
        )

    @property
    def run(self) -> "EmbeddingsConfig":
        """The config of the matrix and the text alone: where the learner looks does not change a number of it."""
        return replace(self, state="after", dims="2", step=0, unit=0)


def _between(name: str, params: Mapping[str, str], notes: list[Note]) -> int:
    low, high = LIMITS[name]
    default = int(getattr(EmbeddingsConfig, name))
    given = params.get(name, str(default))
    asked = int(given) if WHOLE.fullmatch(given) else None
    used = default if asked is None else min(max(asked, low), high)
    if used != asked:
        notes.append(Note(f"link.{name}", {"low": low, "high": high, "used": used}))
    return used


def embedded(config: EmbeddingsConfig) -> Embedded:
    """The embedding that a config means. Raises ``PretrainedMissing`` where its package is not installed."""
    own = whole(config.text) if config.embedding == "words" and config.material == "own" else config.text
    decides = (config.run.embedding, config.material, config.width, config.window, config.seed, config.text)
    key = hashlib.blake2b(repr((decides, own)).encode(), digest_size=12).hexdigest()
    return _embedded(key, config, own)


@st.cache_resource(max_entries=16, show_spinner=False)
def _embedded(key: str, _config: EmbeddingsConfig, _own: str) -> Embedded:
    source, seed = _config.embedding, _config.seed
    if source in CELLS:
        stored = checkpoints.load(source)
        return of_model(key, source, stored.model, stored.vocabulary, tuple(_config.text), seed)
    if source == "pretrained":
        return of_pretrained(key, pretrained(), [token.lower() for token in tokenize(_config.text, "word")], seed)
    tokens = _words(_own) if _config.material == "own" else sample()
    found = of_words(key, tokens, width=_config.width, window=_config.window, seed=seed, largest=LARGEST)
    if _config.material == "own":
        return found
    text = [token for token in _words(_config.text) if found.index(token) is not None]
    return replace(found, text=tuple(text), ids=tuple(found.index(token) or 0 for token in text))


def _words(text: str) -> list[str]:
    return [word.lower() for word in tokenize(text, "word") if word != "\n"]


@st.cache_resource(show_spinner=False)
def sample() -> tuple[str, ...]:
    """The words of a long text that the installation brings."""
    try:
        text = king_james()
    except CorpusMissing:
        text = python_topics()
    return tuple(_words(text[:SAMPLE_CHARACTERS]))


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The effective dimensions of one-hot rows and of the matrix before and after training."""

    one_hot: Dimensions
    before: Dimensions
    after: Dimensions


def measured(found: Embedded) -> Measured:
    """Computed once for each matrix."""
    return _measured(found.key, found)


@st.cache_resource(max_entries=16, show_spinner=False)
def _measured(key: str, _found: Embedded) -> Measured:  # noqa: ARG001 the key is the cache's
    return Measured(
        one_hot=one_hot_dimensions(len(_found.tokens)), before=dimensions(_found.before), after=dimensions(_found.after)
    )


def packed(config: EmbeddingsConfig, found: Embedded, words: Mapping[str, str], lang: str, move: int) -> bytes:
    """What the stage shows: uint32 header length, JSON header, one float32 block."""
    start = {name: getattr(config, name) for name in ("state", "dims", "step", "unit")} | {"move": move}
    return _packed(found.key, json.dumps(start), lang, found, words)


@st.cache_resource(max_entries=16, show_spinner=False)
def _packed(key: str, start: str, lang: str, _found: Embedded, _words: Mapping[str, str]) -> bytes:  # noqa: ARG001 the cache's
    header, arrays = _drawn(key, _found)
    return block(header | {"words": dict(_words), "start": json.loads(start)}, arrays)


@st.cache_resource(max_entries=16, show_spinner=False)
def _drawn(key: str, _found: Embedded) -> tuple[dict[str, Any], dict[str, Array]]:
    found, sizes = _found, measured(_found)
    ids = found.ids[:SHOWN]
    drawn = listed(found)
    place = {index: at for at, index in enumerate(drawn)}
    distinct = list(dict.fromkeys(ids))
    arrays: dict[str, Array] = {}
    names: dict[int, str] = {}
    shares, differences, limits = {}, {}, {}
    for state, points in maps(found).items():
        matrix = found.matrix(state)
        product = one_hot_product(distinct, matrix)
        order, cosines = nearest(matrix, drawn, NEAREST)
        names |= {int(index): visible(found.tokens[int(index)]) for index in order.ravel() if int(index) not in place}
        arrays[f"{state}/W"] = matrix[drawn]
        arrays[f"{state}/product"] = product.product
        arrays[f"{state}/row"] = product.rows
        arrays[f"{state}/map"] = points.coordinates[drawn]
        arrays[f"{state}/near"], arrays[f"{state}/cosine"] = order.astype(np.float32), cosines
        shares[state] = [float(share) for share in points.shares]
        differences[state] = product.difference if distinct else 0.0
        # Colours end at a power of two that hardly any number exceeds: a few large ones would pale all the others.
        limits[state] = float(np.exp2(np.ceil(np.log2(max(float(np.quantile(np.abs(matrix[drawn]), 0.98)), 1e-6)))))
    return {
        "key": key,
        "source": found.source,
        "tokens": [visible(token) for token in found.text[:SHOWN]],
        "ids": list(ids),
        "distinct": [distinct.index(index) for index in ids],
        "listed": drawn,
        "names": [visible(found.tokens[index]) for index in drawn],
        "others": names,
        "rows": len(found.tokens),
        "width": found.width,
        "total": len(found.ids),
        "shares": shares,
        "difference": differences,
        "limit": limits,
        "effective": {name: getattr(sizes, name).effective for name in ("one_hot", "before", "after")},
    }, arrays


def listed(found: Embedded) -> list[int]:
    """The rows that are drawn: all of them, or of a large vocabulary the text's, their neighbours and those of analogies."""
    if len(found.tokens) <= LARGEST:
        return list(range(len(found.tokens)))
    asked = [index for four in ANALOGIES for word in four if (index := found.index(word)) is not None]
    ids = list(dict.fromkeys(found.ids[:SHOWN]))
    around = nearest(found.after, ids, NEAREST)[0].ravel().tolist() if ids else []
    return sorted({*ids, *asked, *map(int, around)})


def block(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """Header and arrays as bytes; the header says where each array lies."""
    places: dict[str, Any] = {}
    offset = 0
    for name, values in arrays.items():
        places[name] = {"offset": offset, "shape": list(values.shape)}
        offset += int(values.size)
    text = json.dumps({**header, "arrays": places}, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 4)
    body = b"".join(np.ascontiguousarray(values, dtype="<f4").tobytes() for values in arrays.values())
    return struct.pack("<I", len(text)) + text + body
