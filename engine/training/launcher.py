"""Where workers come from: a warm process that has loaded torch and done a step of everything, and forks.

A forked worker is at its first step within a tenth of a second and shares most of its memory with the others; a process that
is started anew needs seconds. Where there is no fork (or none that is safe), a worker is started anew.

The warm process (``python -m engine.training.launcher``) reads orders from its standard input, one JSON object a line
(``{"work": folder, "limits": {...}}``), and says on its standard output when a worker has ended. It ends, and asks its workers
to, when its input does: with the server. It is not ``multiprocessing``'s fork server, which would run the main script
of a Streamlit session in every worker.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from engine.training.spec import Limits

ROOT = Path(__file__).resolve().parents[2]
FORKS = hasattr(os, "fork") and sys.platform != "darwin"  # Apple's frameworks do not survive a fork
LAST = 5.0  # seconds that workers get to write their last state


class Launcher:
    """The server's side: starts workers and hears of their end. ``ended(folder name)`` is called from a thread of its own."""

    def __init__(self, ended: Callable[[str], None], *, forks: bool = FORKS) -> None:
        self.ended, self.forks = ended, forks
        self._lock = threading.Lock()
        self._warm: subprocess.Popen[bytes] | None = None
        self._working: set[str] = set()
        self._alone: dict[str, subprocess.Popen[bytes]] = {}

    def warm(self) -> None:
        """Start the warm process, if it does not run; it is ready some seconds later, orders wait for it."""
        if not self.forks:
            return
        with self._lock:
            if self._warm is not None and self._warm.poll() is None:
                return
            self._warm = _python("engine.training.launcher", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            threading.Thread(target=self._hear, args=(self._warm,), name="launcher", daemon=True).start()

    def start(self, folder: Path, limits: Limits) -> None:
        """Start the worker of a run. Raises ``OSError`` where no process can be made."""
        if not self.forks:
            process = _python("engine.training.worker", str(folder), json.dumps(asdict(limits)), stdin=subprocess.DEVNULL)
            self._working.add(folder.name)
            self._alone[folder.name] = process
            threading.Thread(target=self._await, args=(folder.name, process), daemon=True).start()
            return
        self.warm()
        order = json.dumps({"work": str(folder), "limits": asdict(limits)}) + "\n"
        with self._lock:
            assert self._warm is not None
            assert self._warm.stdin is not None
            self._working.add(folder.name)
            self._warm.stdin.write(order.encode())
            self._warm.stdin.flush()

    @property
    def working(self) -> set[str]:
        """The names of the runs that have a worker, or have been promised one."""
        return set(self._working)

    def _hear(self, process: subprocess.Popen[bytes]) -> None:
        """Until the warm process ends; then its workers have ended, or will within seconds."""
        assert process.stdout is not None
        for line in process.stdout:
            self._gone(json.loads(line)["ended"])
        process.wait()
        if process is self._warm:
            for name in self.working - self._alone.keys():
                self._gone(name)

    def _await(self, name: str, process: subprocess.Popen[bytes]) -> None:
        process.wait()
        self._alone.pop(name, None)
        self._gone(name)

    def _gone(self, name: str) -> None:
        self._working.discard(name)
        self.ended(name)

    def close(self) -> None:
        """End the warm process and all workers; they write their last state first."""
        with self._lock:
            warm, self._warm = self._warm, None
        for process in list(self._alone.values()):
            process.terminate()
        if warm is not None:
            assert warm.stdin is not None
            with contextlib.suppress(OSError):
                warm.stdin.close()
            try:
                warm.wait(LAST + 2)
            except subprocess.TimeoutExpired:
                warm.kill()
                warm.wait()
            assert warm.stdout is not None
            warm.stdout.close()


def _python(module: str, *arguments: str, **streams: Any) -> subprocess.Popen[bytes]:
    """Python running a module of this project, one thread, in a group of its own: Ctrl+C in a terminal is the server's."""
    environment = os.environ | dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.Popen(command, cwd=ROOT, env=environment, start_new_session=True, **streams)  # noqa: S603 our own module


# ------------------------------------------------------------------------------------------------------ the warm process


def prepare() -> None:
    """Load what workers need, and do a step of everything, so that a fork finds it done."""
    import torch

    from engine.training import worker
    from engine.training.batch import TextBatches
    from engine.training.loop import Training, TrainingConfig
    from engine.training.models import KINDS, build, config_of

    torch.set_num_threads(1)
    assert callable(worker.work)
    ids = torch.arange(200) % 7
    for kind in KINDS:
        model = build(config_of(kind, 8, 1, 7, 5), torch.Generator().manual_seed(0))
        source = TextBatches(ids=ids, batch_size=2, num_steps=5, sampling="sequential")
        Training(model, source, TrainingConfig(steps=2), torch.Generator().manual_seed(0)).advance()
    gc.collect()
    gc.freeze()


def main() -> int:
    """Fork a worker for each order until the input ends."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    prepare()
    workers: dict[int, str] = {}
    orders = b""
    while True:
        found, _, _ = select.select([0, reading], [], [])
        if reading in found:
            os.read(reading, 4096)
        _bury(workers)
        if 0 in found:
            data = os.read(0, 65536)
            if not data:
                break
            *lines, orders = (orders + data).split(b"\n")
            for line in lines:
                order = json.loads(line)
                workers[_fork(order, (reading, writing))] = Path(order["work"]).name
    _end(workers, signal.SIGTERM)
    signal.setitimer(signal.ITIMER_REAL, LAST)
    signal.signal(signal.SIGALRM, lambda *_: _end(workers, signal.SIGKILL))
    while workers:
        pid, _ = os.waitpid(-1, 0)
        workers.pop(pid, None)
    return 0


def _end(workers: dict[int, str], how: signal.Signals) -> None:
    """Ask all workers to end, or end them."""
    for pid in workers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, how)


def _bury(workers: dict[int, str]) -> None:
    """Say which workers have ended."""
    for pid, name in list(workers.items()):
        if os.waitpid(pid, os.WNOHANG) != (0, 0):
            del workers[pid]
            with contextlib.suppress(BrokenPipeError):
                os.write(1, (json.dumps({"ended": name}) + "\n").encode())


def _fork(order: dict[str, Any], pipe: tuple[int, int]) -> int:
    """A worker for an order; returns its process number."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        with Path(os.devnull).open("r+b") as nothing:
            os.dup2(nothing.fileno(), 0)
            os.dup2(nothing.fileno(), 1)
        for descriptor in pipe:
            os.close(descriptor)
        from engine.training.worker import work

        code = work(order["work"], Limits(**order["limits"]))
    finally:
        if code:
            sys.excepthook(*sys.exc_info()) if sys.exc_info()[0] else None
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
