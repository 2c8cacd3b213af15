"""The folder of a live run: all that its worker and the server say to each other, and all that survives both.

==================  ===============================================================================================
file                what
==================  ===============================================================================================
spec.json           the run (``RunSpec``)
text.json           its text, split (``Material``)
log.jsonl           one line for each step and each thing that happened, only ever appended to
status.json         the worker's last word: state, reason, seconds trained
control.json        the server's last word: run, pause or stop; how far; how to sample
last.safetensors    the newest state from which the run can go on
kept/N.safetensors  the states after step N that are kept
view.safetensors    probe and samples of a moment, for whoever is looking
watched             touched when somebody looks
lock                held by the worker while it lives
==================  ===============================================================================================

Every file but the log is written whole or not at all.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from safetensors import safe_open
from safetensors.torch import save as tensor_bytes
from torch import Tensor

from engine.text.vocabulary import Vocabulary
from engine.training.loop import Snapshot
from engine.training.spec import Material, RunSpec

# Not on every system; the launcher knows its own workers there.
fcntl: Any = importlib.import_module("fcntl") if importlib.util.find_spec("fcntl") else None

ID = re.compile(r"[0-9a-f]{16}")
State = Literal["queued", "starting", "running", "paused", "stopped", "finished", "diverged", "failed", "interrupted", "idle"]
ALIVE: tuple[State, ...] = ("starting", "running", "paused")  # what only a living worker can be


@dataclass(frozen=True, kw_only=True)
class Status:
    """``reason`` says more about a state: "seconds", "disk", "memory", "turned", "fault"."""

    state: State = "queued"
    reason: str = ""
    step: int = 0
    seconds: float = 0.0  # of training, pauses left out


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How a text is continued: greedy at temperature 0, by beam search where ``beam`` is above 1."""

    temperature: float = 0.8
    top_k: int | None = None
    top_p: float | None = None
    beam: int = 1
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class Control:
    """What a worker is asked to do. ``until``: pause after this step."""

    go: Literal["run", "pause", "stop"] = "run"
    until: int | None = None
    sampling: Sampling = Sampling()


def write_whole(path: Path, content: bytes, *, sync: bool = False) -> None:
    """Write a file whole or not at all: a reader sees the old one or the new one. ``sync``: also after a power cut."""
    descriptor, part = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        Path(part).replace(path)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise


class RunFolder:
    """One run's folder. Reading never fails for what is not there (yet)."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.log, self.last, self.view = path / "log.jsonl", path / "last.safetensors", path / "view.safetensors"

    @property
    def id(self) -> str:
        return self.path.name

    @classmethod
    def create(cls, root: Path, name: str, spec: RunSpec, text: Material) -> RunFolder:
        """Make the folder of a new run. Raises ``OSError`` where it cannot be written; then nothing is left of it."""
        folder = cls(root / name)
        try:
            (folder.path / "kept").mkdir(parents=True)
            folder.write_material(text)
            folder.write_spec(spec)
            folder.write_control(Control())
            folder.write_status(Status())
            folder.watch()
        except OSError:
            folder.delete()
            raise
        return folder

    def delete(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.path, ignore_errors=True)

    # ------------------------------------------------------------------------------------------------ small files

    def _read(self, name: str) -> Any:
        try:
            return json.loads((self.path / name).read_bytes())
        except (OSError, ValueError):
            return None

    def _write(self, name: str, content: Any) -> None:
        write_whole(self.path / name, json.dumps(content, ensure_ascii=False, allow_nan=False).encode())

    def write_spec(self, spec: RunSpec) -> None:
        write_whole(self.path / "spec.json", spec.to_json().encode())

    @property
    def spec(self) -> RunSpec:
        """Raises ``OSError`` where the run is gone."""
        return RunSpec.from_json((self.path / "spec.json").read_text(encoding="utf-8"))

    def write_material(self, text: Material) -> None:
        self._write("text.json", {"train": text.train, "held_out": text.held_out, "vocabulary": list(text.vocabulary.tokens)})

    @property
    def text(self) -> Material:
        """Raises ``OSError`` where the run is gone."""
        content = json.loads((self.path / "text.json").read_bytes())
        vocabulary = Vocabulary.from_tokens(content["vocabulary"])
        return Material(train=content["train"], held_out=content["held_out"], vocabulary=vocabulary)

    def write_status(self, status: Status) -> None:
        self._write("status.json", asdict(status))

    @property
    def said(self) -> Status:
        """The worker's last word, whether it still lives or not."""
        content = self._read("status.json")
        return Status(**content) if isinstance(content, dict) else Status(state="interrupted")

    @property
    def status(self) -> Status:
        """What is so: a run whose worker is gone in the middle of it is interrupted."""
        said = self.said
        if said.state in ALIVE and not self.alive():
            said = self.said  # it may have ended between the two looks
            if said.state in ALIVE and not self.alive():
                return replace(said, state="interrupted")
        return said

    def write_control(self, control: Control) -> None:
        self._write("control.json", asdict(control))

    @property
    def control(self) -> Control:
        content = self._read("control.json")
        if not isinstance(content, dict):
            return Control()
        return Control(**content | {"sampling": Sampling(**content["sampling"])})

    def watch(self) -> None:
        """Say that somebody is looking."""
        (self.path / "watched").touch()

    def unwatched(self) -> float:
        """Seconds since somebody looked."""
        try:
            return max(0.0, time.time() - (self.path / "watched").stat().st_mtime)
        except OSError:
            return float("inf")

    # ------------------------------------------------------------------------------------------------------- lock

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold the run for as long as the ``with`` lasts: by the worker. It waits until nobody else does."""
        with (self.path / "lock").open("ab") as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def alive(self) -> bool:
        """Whether a worker holds the run."""
        try:
            with (self.path / "lock").open("rb") as file:
                if fcntl is not None:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    # -------------------------------------------------------------------------------------------------------- log

    def append(self, lines: Iterable[Mapping[str, Any]], *, sync: bool = False) -> None:
        """Append to the log. A line that a killed worker left unfinished is closed first; readers pass over it."""
        content = "".join(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n" for line in lines).encode()
        with self.log.open("ab+") as file:
            end = file.seek(0, os.SEEK_END)
            if end:
                file.seek(end - 1)
                if file.read(1) != b"\n":
                    content = b"\n" + content
            file.write(content)
            if sync:
                file.flush()
                os.fsync(file.fileno())

    # ------------------------------------------------------------------------------------------------------ states

    def kept(self) -> list[int]:
        """The steps whose states are kept, in order."""
        return sorted(int(path.stem) for path in (self.path / "kept").glob("*.safetensors") if path.stem.isdecimal())

    def kept_file(self, step: int) -> Path:
        return self.path / "kept" / f"{step}.safetensors"

    def nearest_kept(self, step: int) -> int | None:
        """The last kept step that is not after this one, or else the first there is."""
        steps = self.kept()
        return max((each for each in steps if each <= step), default=min(steps, default=None))

    def size(self) -> int:
        """Bytes on disk."""
        return sum(path.stat().st_size for path in self.path.rglob("*") if path.is_file())


def states_to_bytes(states: Sequence[Snapshot], extra: Mapping[str, Any]) -> bytes:
    """The states of all members in one file; ``extra`` is small and JSON."""
    tensors: dict[str, Tensor] = {}
    for place, state in enumerate(states):
        tensors |= {f"{place}/w/{name}": value for name, value in state.weights.items()}
        tensors |= {f"{place}/o/{name}": value for name, value in state.optimizer.items()}
        tensors |= {f"{place}/s/{number}": value for number, value in enumerate(state.state)}
    about = {"members": [{"step": state.step, "tokens": state.tokens} for state in states], **extra}
    return tensor_bytes(tensors, metadata={"about": json.dumps(about, allow_nan=False)})


def read_states(path: Path) -> tuple[tuple[Snapshot, ...], dict[str, Any]]:
    """What ``states_to_bytes`` wrote. Raises ``OSError`` or ``SafetensorError`` for what is no such file."""
    with safe_open(path, framework="pt") as file:
        about = json.loads((file.metadata() or {})["about"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 no dictionary

    def of(place: int, kind: str) -> dict[str, Tensor]:
        start = f"{place}/{kind}/"
        return {name.removeprefix(start): value for name, value in tensors.items() if name.startswith(start)}

    states = tuple(
        Snapshot(
            step=member["step"],
            tokens=member["tokens"],
            weights=of(place, "w"),
            optimizer=of(place, "o"),
            state=tuple(value for _, value in sorted(of(place, "s").items())),
        )
        for place, member in enumerate(about["members"])
    )
    return states, about
