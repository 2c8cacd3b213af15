"""Training as a service: runs that live in processes of their own, found by their id, for several visitors at once.

A ``Service`` starts them, queues what is too much, ends what nobody looks at, and removes old files. It holds nothing that
would be lost with it: after a restart every run is found in its folder, the unfinished ones as interrupted, and goes on from
its last state when it is asked to.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path

from engine.notes import Note
from engine.training.files import ALIVE, ID, Control, RunFolder, Sampling, Status, write_whole
from engine.training.launcher import FORKS, Launcher
from engine.training.runlog import RunLog
from engine.training.spec import Limits, Material, RunSpec
from engine.training.viewing import View, read_view

PULSE = 0.2  # seconds between two looks at the queue
SWEEP = 60.0  # seconds between two sweeps of old files
LOGS = 32  # logs that are held in memory


class Refused(Exception):
    """A run that cannot be started now; ``note`` says why."""

    def __init__(self, note: Note) -> None:
        super().__init__(note.key)
        self.note = note


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A run as it is now. ``place``: in the queue, from 1; 0 outside it. ``ahead``: runs of the same visitor that train."""

    id: str
    spec: RunSpec
    status: Status
    place: int
    log: RunLog
    view: View | None
    kept: tuple[int, ...]


@dataclass
class _Waiting:
    """A run in the queue."""

    id: str
    visitor: str
    since: float


class Service:
    """All live runs below one folder. Thread-safe; ``close`` ends what it has started."""

    def __init__(self, root: Path, limits: Limits = Limits(), *, forks: bool = FORKS) -> None:  # noqa: B008 frozen
        self.root, self.limits = root, limits
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.launcher = Launcher(self._ended, forks=forks)
        self._lock = threading.RLock()
        self._queue: list[_Waiting] = []
        self._visitors: dict[str, str] = {}  # run -> who has started it
        self._logs: dict[str, tuple[RunLog, RunSpec]] = {}
        self._wake, self._closed, self._swept = threading.Event(), threading.Event(), 0.0
        self._thread = threading.Thread(target=self._pulse, name="runs", daemon=True)
        self._thread.start()

    def warm(self) -> None:
        """Have the warm process ready before the first run."""
        self.launcher.warm()

    # ------------------------------------------------------------------------------------------------- starting, asking

    def start(self, spec: RunSpec, text: Material, visitor: str, *, paused: bool = False) -> str:
        """Begin a run and return its id. Raises ``Refused`` where the queue is full or nothing can be written."""
        with self._lock:
            if len(self._queue) >= self.limits.queue:
                raise Refused(Note("training.queue_full", {"most": self.limits.queue}))
        name = secrets.token_hex(8)
        try:
            folder = RunFolder.create(self.root, name, spec, text)
            if paused:
                folder.write_control(Control(go="pause"))
        except OSError as error:
            raise Refused(Note("training.disk")) from error
        self._enqueue(name, visitor)
        return name

    def find(self, name: str) -> RunFolder | None:
        """The folder of a run; None for what is no id, or no run (any more)."""
        folder = RunFolder(self.root / name) if ID.fullmatch(name) else None
        return folder if folder is not None and (folder.path / "spec.json").exists() else None

    def _enqueue(self, name: str, visitor: str) -> None:
        with self._lock:
            if any(one.id == name for one in self._queue):
                return
            self._queue.append(_Waiting(name, visitor, time.monotonic()))
            RunFolder(self.root / name).watch()
        self._fill()

    def _fill(self) -> None:
        """Start what may start, in the order in which it was asked for."""
        with self._lock:
            for one in list(self._queue):
                working = self.launcher.working
                own = sum(self._visitors.get(name) == one.visitor for name in working)
                if self._closed.is_set() or len(working) >= self.limits.total:
                    return
                if own >= self.limits.per_visitor:
                    continue
                folder = RunFolder(self.root / one.id)
                if one.id in working or folder.alive():  # its worker is about to end
                    continue
                self._queue.remove(one)
                self._visitors[one.id] = one.visitor
                try:
                    folder.write_status(replace(folder.said, state="starting", reason=""))
                    self.launcher.start(folder.path, self.limits)
                except OSError:
                    with contextlib.suppress(OSError):
                        folder.write_status(replace(folder.said, state="failed", reason="disk"))

    def _ended(self, name: str) -> None:
        """A worker has ended; where it was asked to go on while it was ending, another one takes its run up."""
        folder = RunFolder(self.root / name)
        said = folder.said
        ended = said.state in ("stopped", "idle") and not said.reason
        wanted = folder.control.go == "run" and folder.unwatched() < self.limits.idle
        if ended and wanted and not self._closed.is_set():
            self._enqueue(name, self._visitors.get(name, name))
        self._wake.set()

    def _pulse(self) -> None:
        """Look after the queue and the files."""
        while not self._closed.is_set():
            self._wake.wait(PULSE if self._queue or self.launcher.working else SWEEP)
            self._wake.clear()
            if self._closed.is_set():
                return
            self._leave()
            self._fill()
            if time.monotonic() - self._swept > SWEEP:
                self._swept = time.monotonic()
                self.sweep()

    def _leave(self) -> None:
        """Take out of the queue what nobody waits for any more."""
        with self._lock:
            for one in list(self._queue):
                folder = RunFolder(self.root / one.id)
                if folder.unwatched() > self.limits.idle:
                    self._queue.remove(one)
                    with contextlib.suppress(OSError):
                        folder.write_status(replace(folder.said, state="idle"))

    def sweep(self) -> None:
        """Remove the files of runs that ended long ago; where all take too much room, those looked at longest ago first."""
        idle = []
        for path in self.root.iterdir():
            folder = RunFolder(path)
            if not ID.fullmatch(path.name) or path.name in self.launcher.working or folder.alive():
                continue
            if any(one.id == path.name for one in self._queue):
                continue
            with contextlib.suppress(OSError):  # another server may sweep the same folder
                idle.append((folder.unwatched(), folder.size(), folder))
        room = self.limits.disk_bytes
        for age, size, folder in sorted(idle, key=lambda each: each[0]):
            room -= size
            if age > self.limits.keep or room < 0:
                folder.delete()
                self._logs.pop(folder.id, None)

    # --------------------------------------------------------------------------------------------------------- seeing

    def touch(self, name: str) -> None:
        """Say that somebody is interested in a run."""
        folder = self.find(name)
        if folder is not None:
            with contextlib.suppress(OSError):
                folder.watch()

    def see(self, name: str) -> Seen | None:
        """A run as it is now; None for one that there is not (any more)."""
        folder = self.find(name)
        if folder is None:
            return None
        with self._lock:
            try:
                folder.watch()
                if name not in self._logs:
                    spec = folder.spec
                    self._logs[name] = RunLog(folder.log, len(spec.members)), spec
                    while len(self._logs) > LOGS:
                        self._logs.pop(next(iter(self._logs)))
            except OSError:
                return None
            log, spec = self._logs[name]
            log.update()
            place = next((number for number, one in enumerate(self._queue, 1) if one.id == name), 0)
        return Seen(
            id=name,
            spec=spec,
            status=Status(state="queued") if place else self._status(folder),
            place=place,
            log=log,
            view=read_view(folder.view),
            kept=tuple(folder.kept()),
        )

    def _status(self, folder: RunFolder) -> Status:
        """What is so, in the moments, too, in which a worker has been promised and does not hold its run yet."""
        if folder.id in self.launcher.working:
            said = folder.said
            if said.state in ALIVE:
                return said
        status = folder.status
        return replace(status, state="interrupted") if status.state == "queued" else status

    # -------------------------------------------------------------------------------------------------------- steering

    def resume(self, name: str, visitor: str, *, until: int | None = None) -> None:
        """Go on, also after an end that was not the run's own; to pause after the step ``until``."""
        self._go(name, visitor, Control(go="run", until=until))

    def step(self, name: str, visitor: str) -> None:
        """One step, then pause."""
        folder = self.find(name)
        if folder is not None:
            self._go(name, visitor, Control(go="run", until=folder.said.step + 1))

    def _go(self, name: str, visitor: str, control: Control) -> None:
        folder = self.find(name)
        if folder is None:
            return
        with contextlib.suppress(OSError):
            folder.watch()
            folder.write_control(replace(control, sampling=folder.control.sampling))
            if not self._running(folder) or folder.said.state not in ALIVE:
                self._enqueue(name, visitor)

    def _running(self, folder: RunFolder) -> bool:
        return folder.id in self.launcher.working or folder.alive()

    def pause(self, name: str) -> None:
        """Pause after the step that is being done."""
        self._ask(name, go="pause", until=None)

    def stop(self, name: str) -> None:
        """End after the step that is being done; the run can be resumed."""
        with self._lock:
            waiting = [one for one in self._queue if one.id == name]
            for one in waiting:
                self._queue.remove(one)
        folder = self.find(name)
        if folder is not None and waiting:
            with contextlib.suppress(OSError):
                folder.write_status(replace(folder.said, state="stopped"))
        self._ask(name, go="stop", until=None)

    def sampling(self, name: str, how: Sampling) -> None:
        """Sample in another way from now on."""
        self._ask(name, sampling=how)

    def _ask(self, name: str, **changes: object) -> None:
        folder = self.find(name)
        if folder is not None:
            with contextlib.suppress(OSError):
                folder.write_control(replace(folder.control, **changes))  # type: ignore[arg-type]

    def rewind(self, name: str, step: int, visitor: str, spec: RunSpec | None = None, *, go: bool = False) -> bool:
        """Go back to a kept step, with other settings of the loop where ``spec`` is given; what came later is forgotten.

        The run waits there, or with ``go`` trains on. False where that step is not kept.
        """
        folder = self.find(name)
        if folder is None or step not in folder.kept():
            return False
        self.stop(name)
        end = time.monotonic() + 10
        while self._running(folder) and time.monotonic() < end:
            time.sleep(0.01)
        if self._running(folder):
            return False
        try:
            with folder.held():
                if spec is not None:
                    folder.write_spec(replace(spec, members=folder.spec.members, seed=folder.spec.seed))
                write_whole(folder.last, folder.kept_file(step).read_bytes(), sync=True)
                for later in folder.kept():
                    if later > step:
                        folder.kept_file(later).unlink(missing_ok=True)
                folder.append([{"k": "rewind", "s": step}])
                folder.view.unlink(missing_ok=True)
                folder.write_status(Status(state="stopped", step=step, seconds=folder.said.seconds))
                folder.write_control(replace(folder.control, go="run" if go else "pause", until=None))
        except OSError:
            return False
        with self._lock:
            self._logs.pop(name, None)
        self._enqueue(name, visitor)
        return True

    def close(self) -> None:
        """End all workers; they write their last state. Their runs are found as interrupted and can be resumed."""
        self._closed.set()
        self._wake.set()
        self.launcher.close()
        self._thread.join(5)
