"""Servers for the benchmarks: the app or a bare script, each served in the same way; and a wire that counts bytes."""

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from types import TracebackType
from typing import Self

from tests.browsing import ROOT, START_LIMIT

SCRIPTS = ROOT / "tests" / "bench" / "scripts"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Served:
    """The app ("app") or one of tests/bench/scripts on a port of its own, for the length of a ``with``.

    A script is served as the app is (``uvicorn``, our settings), or ``plain``: as Streamlit's manual says (``streamlit run``,
    its own settings).
    """

    def __init__(self, name: str, *, plain: bool = False, wait: bool = True) -> None:
        self.name, self.plain, self.wait, self.port = name, plain, wait, free_port()
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        target = "app:app" if self.name == "app" else "tests.bench.scripts.serve:app"
        command = ["uvicorn", target, "--port", str(self.port), "--log-level", "warning"]
        folder, quiet = ROOT, subprocess.DEVNULL
        if self.plain:
            options = {"server.port": self.port, "server.headless": "true", "browser.gatherUsageStats": "false"}
            command = ["streamlit", "run", f"{self.name}.py", *(f"--{name}={value}" for name, value in options.items())]
            folder = SCRIPTS
        environment = os.environ | {"SCRIPT": self.name, "OMP_NUM_THREADS": "1"}
        self.started = time.perf_counter()
        command = [sys.executable, "-m", *command]
        self.process = subprocess.Popen(command, cwd=folder, env=environment, stdout=quiet, stderr=quiet)
        if self.wait:
            self.answers()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.process.terminate()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def age(self) -> float:
        """Seconds since the process was started."""
        return time.perf_counter() - self.started

    def answers(self) -> None:
        """Wait until the port takes connections."""
        while self.age() < START_LIMIT and self.process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            time.sleep(0.005)
        raise RuntimeError(f"{self.name} did not come up")


class Counter:
    """A wire to a port that counts the bytes that come from there."""

    def __init__(self, target: int) -> None:
        self.target, self.bytes = target, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self.listener.getsockname()[1])
        self.open: list[socket.socket] = []

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for each in (self.listener, *self.open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self.target))
            self.open += [near, far]
            threading.Thread(target=self._pass, args=(near, far, False), daemon=True).start()
            threading.Thread(target=self._pass, args=(far, near, True), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, count: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if count:
                    self.bytes += len(data)
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)
