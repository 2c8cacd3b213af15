"""Lesson 2: its config, the text it cuts, and what the stage is told about it."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, ClassVar

import streamlit as st

from engine.data.corpora import CorpusMissing, king_james, python_topics
from engine.notes import Note
from engine.text.batches import Plan
from engine.text.cutting import RESERVED, WAYS, Cutting, cut, every_start
from engine.text.display import visible
from pages.ui.config import MAX_SEED, WHOLE, LessonConfig, choice, given_text, number
from pages.ui.source import whole

MOST_CHARACTERS = 200_000  # of a long text are split and counted
SAMPLE_CHARACTERS = 60_000
ON_STAGE = 1200  # tokens are drawn, and cut into minibatches
LISTED = 400  # entries of the vocabulary on the stage
LIMITS = {"min_freq": (1, 50), "pieces": (16, 8192), "size": (1, 32), "steps": (1, 64)}


@dataclass(frozen=True, kw_only=True)
class TokensConfig(LessonConfig):
    """Lesson 2. ``size`` is B and ``steps`` T of a minibatch; ``view``, ``way``, ``offset``, ``step`` and ``batch`` are places.

    The stage moves between places by itself and writes them into the address.
    """

    material: str = "own"
    level: str = "character"
    min_freq: int = 1
    pieces: int = 40
    blanks: str = "without"
    reserved: str = "none"
    size: int = 2
    steps: int = 5
    seed: int = 0
    view: str = "split"
    way: str = "sequential"
    offset: int = 0
    step: int = 0
    batch: int = 0

    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "material": ("own", "long"),
        "level": ("character", "word", "bpe", "chinese", "grapheme"),
        "blanks": ("without", "with"),
        "reserved": ("none", "three"),
        "view": ("split", "number", "batch"),
        "way": ("sequential", "random"),
    }
    places: ClassVar[tuple[str, ...]] = ("view", "way", "offset", "step", "batch")

    @classmethod
    def read(cls, params: Mapping[str, str], notes: list[Note]) -> "TokensConfig":
        chosen: dict[str, Any] = {name: choice(name, params, known, notes) for name, known in cls.choices.items()}
        numbers: dict[str, Any] = {name: _between(name, params, notes) for name in LIMITS}
        text = given_text(params, notes)
        return cls(
            text=text,
            seed=number("seed", params, MAX_SEED, notes),
            offset=number("offset", params, numbers["steps"] - 1, notes),
            step=number("step", params, ON_STAGE - 1, notes, shift=1, said="link.place"),
            batch=number("batch", params, ON_STAGE - 1, notes, shift=1),
            **chosen,
            **numbers,
        )

    @property
    def run(self) -> "TokensConfig":
        """The config of the cutting alone: where the learner looks does not change a number of it."""
        elsewhere: dict[str, Any] = {each.name: each.default for each in fields(self) if each.name in self.places}
        return replace(self, **elsewhere)

    @property
    def reserved_tokens(self) -> tuple[str, ...]:
        return RESERVED if self.reserved == "three" else ()

    @property
    def kept_blanks(self) -> bool:
        return self.blanks == "with"


def _between(name: str, params: Mapping[str, str], notes: list[Note]) -> int:
    """A whole number within ``LIMITS``, the config's default where none is asked for."""
    low, high = LIMITS[name]
    default = int(getattr(TokensConfig, name))
    given = params.get(name, str(default))
    asked = int(given) if WHOLE.fullmatch(given) else None
    used = default if asked is None else min(max(asked, low), high)
    if used != asked:
        notes.append(Note(f"link.{name}", {"low": low, "high": high, "used": used}))
    return used


@dataclass(frozen=True, kw_only=True)
class Material:
    """The text that is cut: the learner's own, whole, or a longer sample; ``total`` is its length before it was cut short."""

    text: str
    total: int


def material(config: TokensConfig) -> Material:
    """The text that a config means."""
    text = whole(config.text) if config.material == "own" else sample()
    return Material(text=text[:MOST_CHARACTERS], total=len(text))


@st.cache_resource(show_spinner=False)
def sample() -> str:
    """A longer text: the beginning of the King James Bible, or of Python's help where its package is not installed."""
    try:
        text = king_james()
    except CorpusMissing:
        text = python_topics()
    return text[: text.find("\n", SAMPLE_CHARACTERS) + 1]


def key(config: TokensConfig, text: str) -> str:
    """What decides the numbers of a cutting, as one string."""
    digest = hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
    return f"{digest} { ({name: value for name, value in asdict(config.run).items() if name != 'text'}) }"


def cutting(config: TokensConfig, text: str) -> Cutting:
    """The text as the config splits and numbers it."""
    return _cut(key(config, text), text, config)


@st.cache_resource(max_entries=32, show_spinner=False)
def _cut(key: str, _text: str, _config: TokensConfig) -> Cutting:  # noqa: ARG001 the key is the cache's
    return cut(
        _text,
        _config.level,
        min_freq=_config.min_freq,
        reserved=_config.reserved_tokens,
        pieces=_config.pieces,
        keep_blanks=_config.kept_blanks,
    )


def plan(config: TokensConfig, found: Cutting, offset: int = 0) -> Plan:
    """What an epoch over the tokens on the stage consists of."""
    length = min(len(found.tokens), ON_STAGE)
    return Plan(length=length, batch_size=config.size, num_steps=config.steps, offset=offset)


def placed(config: TokensConfig, found: Cutting) -> Plan:
    """The same at the config's offset, or at the largest one there is."""
    return plan(config, found, min(config.offset, max(len(plan(config, found).offsets) - 1, 0)))


def packed(config: TokensConfig, text: str, words: Mapping[str, str], move: int) -> dict[str, Any]:
    """What the stage shows, as plain data."""
    shown = _packed(key(config, text), cutting(config, text), config)
    start = {name: getattr(config, name) for name in config.places} | {"move": move}
    return shown | {"words": dict(words), "start": start}


@st.cache_resource(max_entries=32, show_spinner=False)
def _packed(key: str, _found: Cutting, _config: TokensConfig) -> dict[str, Any]:
    found, whole_plan = _found, plan(_config, _found)
    ids = found.ids[: whole_plan.length]
    counts = found.vocabulary.counts
    entries = found.vocabulary.tokens[:LISTED]
    # A listed number must be there for every token on the stage.
    later = sorted({index for index in ids if index >= LISTED})
    return {
        "key": key,
        "level": found.level,
        "tokens": [visible(token) for token in found.tokens[: whole_plan.length]],
        "points": [len(token) for token in found.tokens[: whole_plan.length]],
        "bytes": [len(token.encode()) for token in found.tokens[: whole_plan.length]],
        "ids": list(ids),
        "vocabulary": [
            [index, visible(found.vocabulary.tokens[index]), _count(found, index), index <= len(_config.reserved_tokens)]
            for index in (*range(len(entries)), *later)
        ],
        "totals": {
            "characters": len(found.text),
            "tokens": len(found.tokens),
            "distinct": len(counts),
            "size": len(found.vocabulary),
            "left_out": found.left_out,
            "unknown": found.unknown,
        },
        "min_freq": _config.min_freq,
        "plan": {
            "batch": whole_plan.batch_size,
            "steps": whole_plan.num_steps,
            "length": whole_plan.length,
            "needed": whole_plan.needed,
            "largest_steps": whole_plan.largest_steps,
            "largest_batch": whole_plan.largest_batch,
        },
        "ways": {way: every_start(ids, way, whole_plan, _config.seed) for way in WAYS},
    }


def _count(found: Cutting, index: int) -> int:
    """How often the text has what is read as this number."""
    return found.unknown if index == 0 else found.vocabulary.counts.get(found.vocabulary.tokens[index], 0)
