"""What a live run is: which models, how they are trained, on how much text; and what is refused before anything begins.

Every refusal and remark is a ``Note``; the words stand in assets/locale. A run is stored as JSON in its folder.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, replace
from typing import Any

from engine.data.corpora import split
from engine.notes import Note
from engine.text.batches import Plan
from engine.text.vocabulary import Vocabulary
from engine.training.loop import TrainingConfig
from engine.training.models import count

MOST_MEMBERS = 4
HELD_OUT_PARTS = 40  # blocks of a text, of which one in ten is held out
LEAST_BLOCK = 200  # characters
LEAST_HELD_OUT = 40  # characters that are worth measuring on
HIGHEST_RATE = 100.0
UNKNOWN_SHARE = 0.005
TRAINING = TrainingConfig(steps=2_000, learning_rate=5e-3, held_out_every=10)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one visitor, and all of them together, may ask of the machine."""

    per_visitor: int = 2  # runs that have a process
    total: int = 4
    queue: int = 24  # runs that wait for one
    seconds: float = 1800.0  # of training without asking again
    idle: float = 300.0  # seconds after which a run that nobody looks at is ended
    keep: float = 24 * 3600.0  # seconds for which the files of a run that has ended stay
    steps: int = 50_000
    parameters: int = 1_000_000  # of one model
    characters: int = 1_000_000  # of the text; of a longer one the beginning is used
    batch_tokens: int = 16_384  # of one minibatch
    memory: int = 1_500_000_000  # bytes that training may add to a fresh worker
    run_bytes: int = 160_000_000  # that the kept states of a run may take
    disk_bytes: int = 4_000_000_000  # that all runs may take
    nice: int = 15  # how far a worker stands back behind everybody else


@dataclass(frozen=True, kw_only=True)
class Member:
    """One model of a run. ``width``: hidden units, or the model width of a Transformer."""

    kind: str = "gru"
    width: int = 128
    layers: int = 1

    def __str__(self) -> str:
        return f"{self.kind}.{self.width}.{self.layers}"


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """Everything that decides the numbers of a run, beside its text."""

    members: tuple[Member, ...] = (Member(),)
    training: TrainingConfig = TRAINING
    batch_size: int = 32
    num_steps: int = 35
    sampling: str = "sequential"
    seed: int = 0
    patience: int = 0  # measurements without a better one after which a model stops; 0 for never
    probe: str = "In the beginning God created"
    prefix: str = "And "

    def to_json(self) -> str:
        """As it is stored; infinity is the string JSON has no number for."""
        values = asdict(self)
        values["training"] = {k: str(v) if v == math.inf else v for k, v in values["training"].items()}
        return json.dumps(values, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, content: str) -> RunSpec:
        """Raises ``ValueError``, ``KeyError`` or ``TypeError`` for what was not written by ``to_json``."""
        values = json.loads(content)
        training: dict[str, Any] = {k: math.inf if v == "inf" else v for k, v in values.pop("training").items()}
        members = tuple(Member(**each) for each in values.pop("members"))
        return cls(members=members, training=TrainingConfig(**training), **values)

    def with_training(self, **changes: Any) -> RunSpec:
        """The same run with other settings of the loop."""
        return replace(self, training=replace(self.training, **changes))


@dataclass(frozen=True, kw_only=True)
class Material:
    """A text as a run takes it: the part that is learned, and a part that shares no character with it."""

    train: str
    held_out: str
    vocabulary: Vocabulary
    notes: tuple[Note, ...] = ()


def material(text: str, limits: Limits = Limits()) -> Material:
    """Split a text: whole lines in blocks, one in ten held out; without lines the last tenth; of a short text nothing."""
    notes: list[Note] = []
    if len(text) > limits.characters:
        notes.append(Note("training.first_part", {"total": len(text), "used": limits.characters}))
        text = text[: limits.characters]
    train, held_out = split(text, max(len(text) // HELD_OUT_PARTS, LEAST_BLOCK), every=10)
    if not len(text) // 25 <= len(held_out) <= len(text) // 4:  # lines of very different lengths, or none
        border = len(text) - len(text) // 10
        train, held_out = text[:border], text[border:]
    if len(held_out) < LEAST_HELD_OUT:
        train, held_out = text, ""
        notes.append(Note("training.no_held_out", {"least": 10 * LEAST_HELD_OUT}))
    return Material(train=train, held_out=held_out, vocabulary=Vocabulary(text), notes=tuple(notes))


@dataclass(frozen=True, kw_only=True)
class Examined:
    """What can be said of a run before it begins. Without ``refusals`` it can be trained; ``notes`` are remarks."""

    refusals: tuple[Note, ...]
    notes: tuple[Note, ...]
    parameters: tuple[int, ...]
    plan: Plan


def rate_faults(rate: float) -> tuple[Note, ...]:
    """What is wrong with a learning rate."""
    if math.isnan(rate) or math.isinf(rate):
        return (Note("training.rate_no_number"),)
    if rate < 0:
        return (Note("training.rate_negative"),)
    if rate > HIGHEST_RATE:
        return (Note("training.rate_large", {"limit": HIGHEST_RATE}),)
    return ()


def examine(spec: RunSpec, text: Material, limits: Limits = Limits()) -> Examined:
    """Look at a run before it begins."""
    length, size = len(text.train), len(text.vocabulary)
    plan = Plan(length=length, batch_size=spec.batch_size, num_steps=spec.num_steps)
    refusals = list(text_faults(text, plan))
    refusals += rate_faults(spec.training.learning_rate)
    notes = list(text.notes)
    if spec.training.learning_rate == 0:
        notes.append(Note("training.rate_zero"))
    if not 1 <= len(spec.members) <= MOST_MEMBERS:
        refusals.append(Note("training.members", {"most": MOST_MEMBERS}))
    if spec.training.steps > limits.steps or spec.training.steps < 1:
        refusals.append(Note("training.steps", {"most": limits.steps}))
    if spec.batch_size * spec.num_steps > limits.batch_tokens:
        asked = spec.batch_size * spec.num_steps
        refusals.append(Note("training.batch_tokens", {"asked": asked, "most": limits.batch_tokens}))
    counted = tuple(count(member.kind, member.width, member.layers, size) for member in spec.members)
    for found in counted:
        if found > limits.parameters:
            refusals.append(Note("training.parameters", {"asked": found, "most": limits.parameters}))
    return Examined(
        refusals=tuple(note for place, note in enumerate(refusals) if note not in refusals[:place]),
        notes=tuple(notes),
        parameters=counted,
        plan=plan,
    )


def text_faults(text: Material, plan: Plan) -> tuple[Note, ...]:
    """What is wrong with a text for minibatches of this size."""
    length = len(text.train)
    if length == 0:
        return (Note("training.text_empty"),)
    if length == 1:
        return (Note("training.text_one"),)
    if len(text.vocabulary.counts) < 2:
        return (Note("training.vocabulary_one"),)
    if plan.enough:
        return ()
    return (
        Note(
            "training.text_short",
            {
                "needed": plan.needed,
                "length": length,
                "steps": plan.largest_steps,
                "rows": plan.largest_batch,
                "batch": plan.batch_size,
                "piece": plan.num_steps,
            },
        ),
    )


def fitting(spec: RunSpec, length: int) -> RunSpec | None:
    """The same run with minibatches small enough for a training text of this length; None where no text is long enough.

    Pieces are shortened first to no less than 8, then rows are taken away, then pieces are shortened further.
    """
    rows, steps = spec.batch_size, spec.num_steps
    if length < 2:
        return None
    steps = min(steps, max((length - 1) // rows, min(steps, 8)))
    rows = max(1, min(rows, (length - 1) // steps))
    steps = min(steps, (length - 1) // rows)
    return replace(spec, batch_size=rows, num_steps=steps)
