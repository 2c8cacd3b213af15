"""The stage's own page, served for the browser tests; and what these tests ask of the stage in it."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import Locator, Page

from engine.notation import format_number
from engine.trace import Trace
from tests.browsing import ROOT, LiveServer, settle


class StageServer(LiveServer):
    """A script of this folder (``page.py``) on a free port, with its log kept in a file."""

    def __init__(self, log: Path, name: str = "page.py") -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = log
        environment = os.environ | {"PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
        script = ROOT / "tests" / "stage" / name
        command = [sys.executable, "-m", "streamlit", "run", str(script), "--server.port", str(self.port)]
        with log.open("wb") as out:
            self.process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=out, stderr=subprocess.STDOUT)
        try:
            self._wait()
        except BaseException:
            self.stop()
            raise


class Stage:
    """The stage on an open page."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.root = page.locator(".stage")

    @classmethod
    def visit(cls, server: LiveServer, new_context: Callable[..., Any], *, context: Any = None, **link: Any) -> "Stage":
        options = link.pop("options", {})
        page = (context or new_context(**options)).new_page()
        page.goto(f"{server.url}/?{urlencode(link)}")
        settle(page)
        stage = cls(page)
        stage.root.locator(".diagram .label").first.wait_for(state="attached")
        return stage

    def find(self, selector: str) -> Locator:
        return self.root.locator(selector)

    def number(self, carries: str) -> str:
        """The number on the wire that carries a symbol or part."""
        return self.find(f'[data-value="{carries}"]').inner_text()

    def numbers(self) -> dict[str, str]:
        """Every number of the diagram, by what the wire carries."""
        return dict(self.find("[data-value]").evaluate_all("(all) => all.map((e) => [e.dataset.value, e.textContent])"))

    def table(self) -> dict[str, str]:
        """The numbers of the text alternative."""
        return dict(self.find("[data-cell]").evaluate_all("(all) => all.map((e) => [e.dataset.cell, e.textContent])"))

    def position(self) -> str:
        return self.find(".position").inner_text()

    def pressed(self) -> str:
        """The accessible name of the selected equation."""
        return self.find('.equation[aria-pressed="true"]').get_attribute("aria-label") or ""

    def go(self, step: int, unit: int, symbol: str, steps: int, units: int) -> None:
        """Click the cell of a heat strip."""
        field = self.find(f'[data-strip-box="{symbol}"]')
        width = field.bounding_box()["width"]  # type: ignore[index]
        field.click(position={"x": (step + 0.5) * width / steps, "y": (unit + 0.5) * 34 / units})

    def wait_for_changes(self, count: int) -> None:
        self.page.get_by_text(f", {count} changes").wait_for()
        settle(self.page)


def shown(value: float) -> str:
    return format_number(float(value), digits=3, minus="−")


def expected(trace: Trace, carries: str, step: int, unit: int) -> str:
    """What the wire must show: read from the trace, not from the payload."""
    if carries.endswith("_prev"):
        name = carries.removesuffix("_prev")
        return shown(trace[name][step - 1, 0, unit] if step else trace.start[name][0, unit])
    return shown((trace.terms if ":" in carries else trace)[carries][step, 0, unit])


def frames(page: Any) -> list[str]:
    """From now on, every websocket frame in either direction is written down here."""
    seen: list[str] = []

    def listen(socket: Any) -> None:
        socket.on("framesent", lambda _: seen.append("sent"))
        socket.on("framereceived", lambda _: seen.append("received"))

    page.on("websocket", listen)
    return seen
