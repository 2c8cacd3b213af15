"""The worker of one live run: a process of its own that trains, writes down what happens, and does what it is asked.

It says everything through the run's folder (``engine.training.files``), so it can be killed at any moment: whoever takes the
run up again goes on from the last state that was written, a few seconds back at most, with the same numbers.

``python -m engine.training.worker FOLDER`` works one run; the launcher calls ``work`` in a fork.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from engine.language_models import LanguageModel
from engine.text.ngrams import ngram_losses
from engine.training.batch import TextBatches
from engine.training.files import Control, RunFolder, Sampling, State, Status, read_states, states_to_bytes, write_whole
from engine.training.loop import Snapshot, Training, TrainingEvent, mean_loss
from engine.training.models import build, config_of
from engine.training.spec import UNKNOWN_SHARE, Limits
from engine.training.viewing import PROBE_TOKENS, View, look, view_to_bytes

resource: Any = importlib.import_module("resource") if importlib.util.find_spec("resource") else None  # not on every system

HELD_OUT_TOKENS = 8_000  # of the held-out part that are measured each time
HELD_OUT_ROWS = 32
FLUSH, VIEW, SAVE = 0.15, 0.4, 2.0  # seconds between two writings
SHARE = 0.25  # of the time that looking and saving may take each
FIRST = 3  # steps before the lines to beat are counted: nobody waits for the first point
LOOKING = 3.0  # seconds since somebody looked, within which a view is worth making
NAP = 0.02
MOST_KEPT = 24


class Worker:
    """One run in this process. ``terminated`` says whether it has been asked from outside to end (a signal)."""

    def __init__(self, folder: RunFolder, limits: Limits, terminated: Callable[[], bool] = lambda: False) -> None:
        self.folder, self.limits, self.terminated = folder, limits, terminated
        self.folder_said = folder.said
        self.spec, text = folder.spec, folder.text
        self.vocabulary = text.vocabulary
        self.ids, self.held_ids = (torch.tensor(self.vocabulary[list(part)]) for part in (text.train, text.held_out))
        self.models: list[LanguageModel] = []
        self.members = [self._training(place) for place in range(len(self.spec.members))]
        self.best: dict[int, tuple[float, int]] = {}  # member -> the best held-out loss, and its step
        self.worse: dict[int, int] = {}  # member -> measurements since then
        self.waiting: dict[int, bytes] = {}  # states to be kept, not yet written
        self.lines: list[Mapping[str, Any]] = []
        self.control, self.control_seen = Control(), (0, 0)
        self.step, self.seconds, self.counted = 0, 0.0, False
        self.parent = os.getppid()
        self.flushed = self.viewed = self.saved = time.monotonic()
        self.view_wait, self.save_wait, self.view_of = VIEW, SAVE, (-1, Sampling())
        self.begun = 0.0  # seconds trained before this worker
        self._take_up()

    def _training(self, place: int) -> Training:
        """A member with weights and batches of its own; all members draw the same batches."""
        spec, member = self.spec, self.spec.members[place]
        config = config_of(member.kind, member.width, member.layers, len(self.vocabulary), spec.num_steps)
        source = TextBatches(
            ids=self.ids,
            batch_size=spec.batch_size,
            num_steps=spec.num_steps,
            sampling=spec.sampling,  # type: ignore[arg-type]
            unknown_share=UNKNOWN_SHARE,
        )
        model = build(config, torch.Generator().manual_seed(spec.seed))
        self.models.append(model)
        return Training(model, source, spec.training, torch.Generator().manual_seed(spec.seed + 1))

    def _take_up(self) -> None:
        """Go on from the last state, or begin."""
        if not self.folder.last.exists():
            self._keep(self._bytes())
            self._measure()
            return
        states, about = read_states(self.folder.last)
        for member, state in zip(self.members, states, strict=True):
            member.restore(state)
        self.step, self.seconds, self.counted = about["step"], about["seconds"], about["counted"]
        self.best = {int(place): (loss, step) for place, (loss, step) in about["best"].items()}
        self.worse = {int(place): count for place, count in about["worse"].items()}
        for place in about["ended"]:
            self.members[place].ended = True
        self.begun = self.seconds
        self.lines.append({"k": "resume", "s": self.step})

    # ------------------------------------------------------------------------------------------------------ training

    def run(self) -> Status:
        """Train until the end, or until told otherwise. Returns the last word, which is already written."""
        self._say("running")
        while True:
            end = self._obey()
            if end is not None:
                return self._end(*end)
            if self.control.go == "pause" or (self.control.until is not None and self.step >= self.control.until):
                self._rest()
                continue
            if self.folder_said.state != "running":
                self._say("running")
            self._round()
            if all(member.ended for member in self.members):
                return self._end(*self._why())
            if self.step >= self.spec.training.steps:
                return self._end("finished", "")
            self._write()

    def _round(self) -> None:
        """One step of every member that still trains, on the same batch."""
        start = time.perf_counter()
        self.step += 1
        events, took = [], []
        for member in self.members:
            at = time.perf_counter()
            events.append(member.advance() if not member.ended else None)
            took.append(round(1000 * (time.perf_counter() - at), 2))
        self._note(events, took)
        every = self.spec.training.held_out_every
        if self.step >= self.spec.training.steps or (every and self.step % every == 0):
            self._measure()
        if not self.counted and self.step > FIRST:
            self._count()
        self.seconds += time.perf_counter() - start

    def _note(self, events: list[TrainingEvent | None], took: list[float]) -> None:
        self.lines.append(
            {
                "s": self.step,
                "t": round(self.seconds, 3),
                "l": [None if event is None else _number(event.loss) for event in events],
                "g": [None if event is None else _number(event.gradient_norm) for event in events],
                "d": took,
            }
        )
        for place, event in enumerate(events):
            if event is not None and event.diverged:
                self.lines.append(
                    {"k": "diverged", "s": event.step, "m": place, "what": event.diverged, "tensor": event.tensor}
                )

    def _measure(self) -> None:
        """The held-out loss of each member; the state of its best one is kept."""
        if len(self.held_ids) < 2:
            self._consider()
            return
        ids = self.held_ids[:HELD_OUT_TOKENS]
        rows = min(HELD_OUT_ROWS, max(1, (len(ids) - 1) // 20))
        losses = [
            None if member.ended and member.step < self.step else _number(mean_loss(member.model, ids, rows))
            for member in self.members
        ]
        self.lines.append({"k": "held", "s": self.step, "h": losses, "n": (len(ids) - 1) // rows * rows})
        for place, loss in enumerate(losses):
            if loss is None:
                continue
            if place not in self.best or loss < self.best[place][0]:
                self.best[place], self.worse[place] = (loss, self.step), 0
                if self.step:
                    self.waiting[self.step] = b""
            else:
                self.worse[place] += 1
                if self.spec.patience and self.worse[place] >= self.spec.patience:
                    self.members[place].ended = True
                    self.lines.append({"k": "turned", "s": self.step, "m": place, "best": self.best[place][1]})
        self._consider()

    def _consider(self) -> None:
        """Lay the present state aside where it is a best one or its turn to be kept has come."""
        wanted = {step for _, step in self.best.values()}
        self.waiting = {step: content for step, content in self.waiting.items() if step in wanted or content}
        if self.waiting.get(self.step) == b"" or self.step % self._spacing() == 0:
            self.waiting[self.step] = self._bytes()

    def _spacing(self) -> int:
        """Steps between two states that are kept: so few that they have room, at measurements."""
        every = self.spec.training.held_out_every or 10
        wanted = max(self.spec.training.steps // self._room(), 1)
        return every * math.ceil(wanted / every)

    def _room(self) -> int:
        size = self.folder.last.stat().st_size if self.folder.last.exists() else 1
        return max(4, min(MOST_KEPT, self.limits.run_bytes // max(size, 1)))

    def _count(self) -> None:
        """The lines to beat, once."""
        self.counted = True
        size = len(self.vocabulary)
        line: dict[str, Any] = {"k": "lines", "uniform": math.log(size), "ngrams": []}
        if len(self.held_ids) > 1:
            asked = self.held_ids[:HELD_OUT_TOKENS]
            line["ngrams"] = [_number(loss) for loss in ngram_losses(self.ids.tolist(), asked.tolist(), size)]
        self.lines.append(line)

    # ------------------------------------------------------------------------------------------------ asked and told

    def _obey(self) -> tuple[State, str] | None:
        """Read what is asked; the state and reason in which to end, or None to go on."""
        path = self.folder.path / "control.json"
        try:
            found = path.stat()
        except OSError:
            return "stopped", "gone"  # somebody has removed the run
        if (found.st_ino, found.st_mtime_ns) != self.control_seen:
            self.control_seen = (found.st_ino, found.st_mtime_ns)
            self.control = self.folder.control
        if self.terminated() or os.getppid() != self.parent:
            return "interrupted", ""
        if self.control.go == "stop":
            return "stopped", ""
        if self.seconds - self.begun > self.limits.seconds:
            return "stopped", "seconds"
        if self.folder.unwatched() > self.limits.idle:
            return "idle", ""
        return None

    def _why(self) -> tuple[State, str]:
        if any(self.spec.patience and self.worse.get(place, 0) >= self.spec.patience for place in range(len(self.members))):
            return "stopped", "turned"
        return "diverged", ""

    def _rest(self) -> None:
        """Paused: write everything once, then wait."""
        if self.folder_said.state != "paused":
            self._flush()
            self._save()
            self._say("paused")
        self._show()
        time.sleep(NAP)

    # -------------------------------------------------------------------------------------------------------- writing

    def _write(self) -> None:
        """What is due."""
        now = time.monotonic()
        if now - self.flushed > FLUSH or self.step <= FIRST:
            self._flush()
            self.flushed = now
        if now - self.saved > self.save_wait:
            self._save()
        self._show()

    def _flush(self) -> None:
        self.folder.append(self.lines)
        self.lines.clear()

    def _show(self, *, last: bool = False) -> None:
        """A view for whoever looks, not more often than the time for it allows; the last one for whoever comes later."""
        now, moment = time.monotonic(), (self.step, self.control.sampling)
        idle = now - self.viewed < self.view_wait or self.folder.unwatched() > LOOKING
        if moment == self.view_of or (idle and not last):
            return
        probe, prefix, how = self.spec.probe[:PROBE_TOKENS], self.spec.prefix, self.control.sampling
        members = tuple(
            look(model, self.vocabulary, probe, prefix, how, one.step)
            for one, model in zip(self.members, self.models, strict=True)
        )
        write_whole(self.folder.view, view_to_bytes(View(read=tuple(probe), prefix=prefix, members=members)))
        self.viewed, self.view_of = time.monotonic(), moment
        self.view_wait = max(VIEW, (self.viewed - now) / SHARE)
        self._say(self.folder_said.state)

    def _bytes(self) -> bytes:
        states: list[Snapshot] = [member.snapshot() for member in self.members]
        return states_to_bytes(
            states,
            {
                "step": self.step,
                "seconds": round(self.seconds, 3),
                "counted": self.counted,
                "best": self.best,
                "worse": self.worse,
                "ended": [place for place, member in enumerate(self.members) if member.ended],
            },
        )

    def _keep(self, content: bytes) -> None:
        write_whole(self.folder.kept_file(self.step), content)

    def _save(self) -> None:
        """Write the present state, and the states that wait to be kept; let go of the older ones that are too many."""
        start = time.monotonic()
        self._flush()
        for step, content in sorted(self.waiting.items()):
            if content:
                write_whole(self.folder.kept_file(step), content)
        self.waiting.clear()
        write_whole(self.folder.last, self._bytes(), sync=True)
        spacing, best = self._spacing(), {step for _, step in self.best.values()}
        for step in self.folder.kept():
            if step % spacing and step not in best and step != self.step:
                self.folder.kept_file(step).unlink(missing_ok=True)
        self.saved = time.monotonic()
        self.save_wait = max(SAVE, (self.saved - start) / SHARE)

    def _say(self, state: State, reason: str = "") -> None:
        self.folder_said = Status(state=state, reason=reason, step=self.step, seconds=round(self.seconds, 3))
        self.folder.write_status(self.folder_said)

    def _end(self, state: State, reason: str) -> Status:
        """Write everything and the last word."""
        if not self.counted:
            self._count()
        if self.folder.path.exists():
            self.lines.append({"k": "end", "s": self.step, "state": state, "reason": reason})
            self.waiting.setdefault(self.step, self._bytes())
            self._save()
            self._show(last=True)
            self._say(state, reason)
        return self.folder_said


def _number(value: float) -> float | None:
    """A number as the log holds it: six digits, None where it is none."""
    return float(f"{value:.6g}") if math.isfinite(value) else None


def work(path: str, limits: Limits) -> int:
    """Work one run to its end in a process of its own; returns its exit status."""
    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: asked.append(number))
    torch.set_num_threads(1)
    _bounded(limits)
    return guarded(RunFolder(Path(path)), limits, lambda: bool(asked))


def guarded(folder: RunFolder, limits: Limits, terminated: Callable[[], bool] = lambda: False) -> int:
    """Work one run; what goes wrong becomes its last word, so that nobody waits for a run that is not there any more."""
    with folder.held():
        reason, status = "fault", None
        try:
            status = Worker(folder, limits, terminated).run()
        except OSError as error:
            print(f"run {folder.id}: {error}", file=sys.stderr)
            reason = "disk"
        except MemoryError:
            reason = "memory"
        except RuntimeError as error:
            if "alloc" not in str(error) and "memory" not in str(error):
                raise
            reason = "memory"
        finally:
            if status is None:
                _last_word(folder, "interrupted" if reason == "disk" else "failed", reason)
    return int(status is None)


def _last_word(folder: RunFolder, state: State, reason: str) -> None:
    """Say how it ended where it cannot be written down in full; a full disk may not take even this."""
    try:
        folder.write_status(replace(folder.said, state=state, reason=reason))
    except OSError as error:
        print(f"run {folder.id}: {error}", file=sys.stderr)


def _bounded(limits: Limits) -> None:
    """Take no more of the machine than is allowed: memory, the size of a file, and the processor after everybody else."""
    if hasattr(os, "nice"):
        os.nice(limits.nice)
    if limits.nice and hasattr(os, "SCHED_BATCH"):  # it does not take the processor from a page that is about to answer
        with contextlib.suppress(OSError):  # not everywhere is it allowed
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    if resource is None:
        return
    status = Path("/proc/self/statm")
    if status.exists():
        used = int(status.read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + limits.memory,) * 2)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2 * limits.run_bytes,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main(arguments: list[str]) -> int:
    """The command line: the folder, and the limits as JSON."""
    return work(arguments[0], Limits(**json.loads(arguments[1])) if len(arguments) > 1 else Limits())


def limits_to_json(limits: Limits) -> str:
    """Limits as an argument of the command line."""
    return json.dumps(asdict(limits))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
