"""Models that are not of a lesson's own list: a state of a live run, or a shipped model at a step of its recorded training.

In a link: ``model=run.<id>.<step>.<member>`` (and a mark of the file, so that another state of the same step is another model)
or ``model=recorded.gru.500``. What a name means is found without torch, so that a page's head needs none.
"""

import json
import os
import re
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from engine.notes import Note

if TYPE_CHECKING:
    from engine.recurrent.language_model import RecurrentLanguageModel
    from engine.text.vocabulary import Vocabulary

NAME = re.compile(
    r"run\.(?P<run>[0-9a-f]{16})\.(?P<step>[0-9]{1,6})\.(?P<member>[0-3])(?:\.[0-9a-f]{1,16})?"
    r"|recorded\.(?P<name>rnn|gru|lstm)\.(?P<at>[0-9]{1,6})"
)
CELLS = {"rnn": "rnn", "relu": "rnn", "gru": "gru", "lstm": "lstm"}
RECORDED_WIDTH = 64


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What a lesson must know of a model before it is loaded."""

    kind: str
    width: int
    layers: int
    step: int

    @property
    def cell(self) -> str:
        return CELLS.get(self.kind, "")


def root() -> Path:
    """The folder of all runs: $UNROLLED_RUNS, or one of this user's own in the system's place for such files."""
    named = os.environ.get("UNROLLED_RUNS")
    return Path(named) if named else _own_root()


@cache
def _own_root() -> Path:
    """The folder of this user; a fresh one where somebody else has taken its name."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    path = Path(tempfile.gettempdir()) / f"unrolled-runs-{user}"
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    mine = not hasattr(os, "getuid") or path.stat().st_uid == user
    return path if mine else Path(tempfile.mkdtemp(prefix="unrolled-runs-"))


def interested(run: str) -> None:
    """Say that somebody who has this run open is still there, on whatever page: it is not ended as one that nobody wants."""
    watched = root() / run / "watched"
    if re.fullmatch(r"[0-9a-f]{16}", run) and watched.exists():
        watched.touch()


def name_of(run: str, step: int, member: int) -> str:
    """The name of a kept state of a run, or "" where it is not kept (any more)."""
    try:
        mark = (root() / run / "kept" / f"{step}.safetensors").stat().st_mtime_ns
    except OSError:
        return ""
    return f"run.{run}.{step}.{member}.{mark:x}"[:70]


def shape_of(name: str) -> Shape | None:
    """The shape of the model with this name; None where there is none."""
    match = NAME.fullmatch(name)
    if match is None:
        return None
    if match["name"]:
        return Shape(kind=match["name"], width=RECORDED_WIDTH, layers=1, step=int(match["at"]))
    folder = root() / match["run"]
    try:
        member = json.loads((folder / "spec.json").read_bytes())["members"][int(match["member"])]
        kept = (folder / "kept" / f"{int(match['step'])}.safetensors").exists()
    except (OSError, ValueError, IndexError, KeyError):
        return None
    if not kept:
        return None
    return Shape(kind=member["kind"], width=member["width"], layers=member["layers"], step=int(match["step"]))


def choose(given: str, known: tuple[str, ...], kinds: tuple[str, ...], notes: list[Note], *, layers: int | None = 1) -> str:
    """One of ``known``, or a model from outside that is of one of these kinds and has so many layers (None for any)."""
    if given in known:
        return given
    shape = shape_of(given)
    if shape is not None and shape.kind in kinds and layers in (None, shape.layers):
        return given
    notes.append(Note("link.opened") if given.startswith(("run.", "recorded.")) else Note("link.model"))
    return known[0]


def find(name: str) -> "tuple[RecurrentLanguageModel, Vocabulary]":
    """The model with this name and its vocabulary. Raises ``CheckpointError`` where it is gone."""
    from engine.recurrent.language_model import RecurrentLanguageModel
    from engine.training import replay
    from engine.training.checkpoints import CheckpointError
    from engine.training.files import RunFolder
    from engine.training.kept import checkpoint_of

    match = NAME.fullmatch(name)
    if match is None:
        raise CheckpointError(f"{name!r} is no model")
    if match["name"]:
        recorded = replay.read(match["name"])
        model, vocabulary = recorded.model_at(recorded.nearest(int(match["at"]))), recorded.vocabulary
    else:
        found = checkpoint_of(RunFolder(root() / match["run"]), int(match["step"]), int(match["member"]))
        model, vocabulary = found.model, found.vocabulary
    if not isinstance(model, RecurrentLanguageModel):
        raise CheckpointError(f"{name} is no recurrent model")
    return model, vocabulary
