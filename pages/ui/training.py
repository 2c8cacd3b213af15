"""Lesson 9: its config, the texts that can be trained on, and the service that trains."""

import atexit
import math
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, ClassVar

import streamlit as st

from engine.data.corpora import CORPORA, CorpusMissing
from engine.notes import Note
from engine.training.files import ID, Sampling
from engine.training.jobs import Seen, Service
from engine.training.models import KINDS
from engine.training.spec import MOST_MEMBERS, Limits, Material, Member, RunSpec, material
from engine.training.viewing import PROBE_TOKENS
from pages.ui import opened
from pages.ui.config import MAX_SEED, LessonConfig, choice, given_text, number
from pages.ui.source import whole

MEMBER = re.compile(r"([a-z]{2,12})\.([0-9]{1,4})\.([0-9])")
WIDTHS = (4, 512)
LAYERS = (1, 4)
USED = 300_000  # characters of a text that ships with a package
HELD_EVERY = 10
BOUNDS = {"rows": (1, 256), "piece": (1, 256), "total": (1, 50_000), "patience": (0, 50), "top_k": (0, 999), "beam": (1, 8)}
BOUNDS |= {"seed": (0, MAX_SEED)}


@dataclass(frozen=True, kw_only=True)
class LanguageModelConfig(LessonConfig):
    """Lesson 9. ``rows`` of ``piece`` steps make a minibatch, ``total`` steps a run, whose id is ``run``.

    ``clip`` 0 clips nothing, ``top_k`` 0 keeps everything, ``patience`` 0 never stops early.
    """

    corpus: str = "king_james"
    members: tuple[Member, ...] = (Member(kind="gru", width=128), Member(kind="rnn", width=128))
    optimizer: str = "adam"
    rate: float = 0.005
    clip: float = 1.0
    rows: int = 32
    piece: int = 35
    sampling: str = "sequential"
    total: int = 2000
    seed: int = 0
    patience: int = 0
    prefix: str = ""
    temperature: float = 0.8
    top_k: int = 0
    top_p: float = 1.0
    beam: int = 1
    run: str = ""

    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "corpus": ("king_james", "python_topics", "docstrings", "own"),
        "optimizer": ("adam", "sgd"),
        "sampling": ("sequential", "random"),
    }

    @classmethod
    def read(cls, params: Mapping[str, str], notes: list[Note]) -> "LanguageModelConfig":
        chosen: dict[str, Any] = {name: choice(name, params, known, notes) for name, known in cls.choices.items()}
        for name, (low, high) in BOUNDS.items():
            given = {name: params.get(name, str(getattr(cls, name)))}
            chosen[name] = max(number(name, given, high, notes), low)
        run = params.get("run", "")
        if run and not ID.fullmatch(run):
            notes.append(Note("link.run"))
            run = ""
        return cls(
            text=given_text(params, notes),
            members=_members(params.get("members", ""), notes) or cls.members,
            rate=_real("rate", params, cls.rate, (-1e12, 1e12), notes),
            clip=_real("clip", params, cls.clip, (0.0, 1e6), notes),
            temperature=_real("temperature", params, cls.temperature, (0.0, 5.0), notes),
            top_p=_real("top_p", params, cls.top_p, (0.01, 1.0), notes),
            prefix="".join(sign for sign in params.get("prefix", "") if sign.isprintable() or sign == "\n")[:24],
            run=run,
            **chosen,
        )

    @property
    def probe(self) -> str:
        """The sentence on which gates and states are watched."""
        return self.text[:PROBE_TOKENS]

    @property
    def begun(self) -> str:
        """What the models continue: as asked, or the first word of the probe."""
        return self.prefix or (self.text.split() or [""])[0][:20] + " "

    @property
    def how(self) -> Sampling:
        """How a text is continued."""
        return Sampling(
            temperature=self.temperature,
            top_k=self.top_k or None,
            top_p=None if self.top_p == 1 else self.top_p,
            beam=self.beam,
            seed=self.seed,
        )

    def spec(self) -> RunSpec:
        """The run that is asked for. A rate that no run can have is kept at 0 here; ``examine`` judges the asked one."""
        rate = self.rate if math.isfinite(self.rate) and self.rate >= 0 else 0.0
        spec = RunSpec(
            members=self.members,
            batch_size=self.rows,
            num_steps=self.piece,
            sampling=self.sampling,
            seed=self.seed,
            patience=self.patience,
            probe=self.probe,
            prefix=self.begun,
        )
        return spec.with_training(
            steps=self.total,
            optimizer=self.optimizer,
            learning_rate=rate,
            max_norm=self.clip or math.inf,
            held_out_every=HELD_EVERY,
        )


def _members(given: str, notes: list[Note]) -> tuple[Member, ...]:
    """The models of a link: ``gru.128.1;lstm.64.2``; none where nothing is asked for."""
    found = []
    parts = [part for part in given.split(";", 20) if part]
    for part in parts[:MOST_MEMBERS]:
        match = MEMBER.fullmatch(part)
        if match and match[1] in KINDS:
            width = min(max(int(match[2]), WIDTHS[0]), WIDTHS[1])
            layers = min(max(int(match[3]), LAYERS[0]), LAYERS[1])
            found.append(Member(kind=match[1], width=width, layers=layers))
    if [str(one) for one in found] != parts:
        notes.append(Note("link.members", {"most": MOST_MEMBERS, "low": WIDTHS[0], "high": WIDTHS[1], "layers": LAYERS[1]}))
    return tuple(found)


def _real(name: str, params: Mapping[str, str], default: float, bounds: tuple[float, float], notes: list[Note]) -> float:
    """A number within bounds; what is none, or outside, is said."""
    given = params.get(name)
    if given is None:
        return default
    try:
        asked = float(given[:40])
    except ValueError:
        asked = math.nan
    low, high = bounds
    used = default if math.isnan(asked) else min(max(asked, low), high)
    if used != asked:
        notes.append(Note(f"link.training.{name}", {"low": low, "high": high, "used": used}))
    return used + 0.0


# ------------------------------------------------------------------------------------------------------------------ texts


@st.cache_resource(max_entries=4, show_spinner=False)
def _shipped(corpus: str) -> Material:
    text = CORPORA[corpus]()
    end = text.rfind("\n", 0, USED) + 1 or USED
    found = material(text[:end])
    cut = () if len(text) <= end else (Note("training.first_part", {"total": len(text), "used": end}),)
    return replace(found, notes=(*cut, *found.notes))


@st.cache_resource(max_entries=8, show_spinner=False)
def _own(digest: str, _text: str) -> Material:  # noqa: ARG001 the digest is the cache's
    return material(_text)


def material_of(config: LanguageModelConfig) -> Material:
    """The text that a config means. Where a package is not installed, Python's own help texts stand in, and that is said."""
    if config.corpus == "own":
        text = whole(config.text)
        return _own(blake2b(text.encode(), digest_size=12).hexdigest(), text)
    try:
        return _shipped(config.corpus)
    except CorpusMissing:
        found = _shipped("python_topics")
        return replace(found, notes=(Note("training.corpus_missing"), *found.notes))


# ---------------------------------------------------------------------------------------------------------------- service


@st.cache_resource(show_spinner=False)
def service() -> Service:
    """The one service of this server process."""
    made = Service(opened.root(), Limits())
    atexit.register(made.close)
    return made


def visitor() -> str:
    """Who is asking: one browser, by its cookie; one session where it takes none."""
    cookie = str(st.context.cookies.get("visitor", ""))
    own: str = st.session_state.setdefault("visitor", secrets.token_hex(8))
    return cookie if re.fullmatch(r"[0-9a-f]{16}", cookie) else own


def seen_of(config: LanguageModelConfig) -> Seen | None:
    """The run in the link, as it is now."""
    return service().see(config.run) if config.run else None
