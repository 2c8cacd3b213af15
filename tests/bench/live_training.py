"""Live training: how soon the first step comes, and how another visitor's page answers while four runs train and are watched.

A visitor's page is asked in turns while nobody trains and while four runs do, on the same server, so that a busy neighbour
disturbs both sides alike. Who watches a run asks again as the browser does, for the fragment that the server names.
"""

import asyncio
import os
import statistics
import tempfile
import time
from pathlib import Path
from urllib.parse import urlencode

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from engine.training.files import RunFolder
from engine.training.jobs import Service
from engine.training.loop import TrainingConfig
from engine.training.spec import Limits, Member, RunSpec, material
from tests.bench.served import Served
from tests.clients import Client, together

RUNS, ROUNDS, ASKED, STARTS = 4, 3, 8, 5
MOST = 2.0  # times the idle answer
SOON = 2.0  # seconds until the first step
EVERY = 0.4
TEXT = "".join(f"{n} green bottles hanging on the wall, and if {n} should fall, {n - 1} are left.\n" for n in range(900, 0, -1))
SPEC = RunSpec(members=(Member(width=128),), training=TrainingConfig(steps=50_000, learning_rate=5e-3, held_out_every=10))


class Watcher(Client):
    """A visitor who has a run on the screen."""

    fragment = ""

    async def look_at(self, run: str, pages: dict[str, str]) -> None:
        """Open the page; the server names the fragment that is to be asked for again."""
        message = BackMsg()
        self.page, self.pages, self.query = "language_model", pages, urlencode({"run": run})
        message.rerun_script.query_string = self.query
        message.rerun_script.page_script_hash = self.pages[self.page]
        await self.socket.send(message.SerializeToString())
        while not self.fragment:
            found = ForwardMsg.FromString(bytes(await self.socket.recv(decode=False)))
            if found.WhichOneof("type") == "auto_rerun":
                self.fragment = found.auto_rerun.fragment_id

    async def look(self, until: asyncio.Event) -> None:
        """Ask again and again, and read what comes."""

        async def read() -> None:
            async for _ in self.socket:
                pass

        reading = asyncio.create_task(read())
        while not until.is_set():
            message = BackMsg()
            message.rerun_script.query_string = self.query
            message.rerun_script.page_script_hash = self.pages[self.page]
            message.rerun_script.fragment_id = self.fragment
            await self.socket.send(message.SerializeToString())
            await asyncio.sleep(EVERY)
        reading.cancel()


async def answers(client: Client, pager: str) -> list[float]:
    """Seconds of some reruns of a lesson page."""
    found = []
    for number in range(ASKED):
        found.append((await client.turn(pager, 1 + number % 3)).seconds)
        await asyncio.sleep(0.1)
    return found


async def beside(url: str, service: Service) -> tuple[list[float], list[float]]:
    """Answers while nobody trains, and while four runs train and four people watch them."""
    idle, busy = [], []
    async with Client(url) as client:
        pager = (await client.run("lstm")).pagination("try")
        await answers(client, pager)
        for _ in range(ROUNDS):
            idle += await answers(client, pager)
            runs = [service.start(SPEC, material(TEXT), "bench") for _ in range(RUNS)]
            watchers = [Watcher(url) for _ in runs]
            for run in runs:
                while not RunFolder(service.root / run).last.exists() or service.see(run).log.step < 3:
                    await asyncio.sleep(0.05)
            over = asyncio.Event()
            for watcher, run in zip(watchers, runs, strict=True):
                await watcher.__aenter__()
                await watcher.look_at(run, client.pages)
            looking = [asyncio.create_task(watcher.look(over)) for watcher in watchers]
            await asyncio.sleep(1)
            busy += await answers(client, pager)
            over.set()
            await asyncio.gather(*looking)
            for watcher in watchers:
                await watcher.__aexit__(None, None, None)
            for run in runs:
                service.stop(run)
            while service.launcher.working:
                await asyncio.sleep(0.05)
    return idle, busy


def first_steps(service: Service) -> list[float]:
    """Seconds from asking for a run to its first step in the log, with a warm process."""
    found = []
    for _ in range(STARTS + 1):
        text, start = material(TEXT), time.perf_counter()
        run = service.start(SPEC, text, "bench")
        while (seen := service.see(run)) is None or not seen.log.step:
            time.sleep(0.002)
        found.append(time.perf_counter() - start)
        service.stop(run)
        while service.launcher.working:
            time.sleep(0.02)
    return found[1:]  # the first one waits for the warm process


def run() -> list[str]:
    """Measure and report, a line for each target."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["UNROLLED_RUNS"] = folder
        service = Service(Path(folder), Limits(per_visitor=RUNS, total=RUNS))
        try:
            with Served("app") as server:
                idle, busy = together(beside(server.url, service))
            starts = first_steps(service)
        finally:
            service.close()
            del os.environ["UNROLLED_RUNS"]
    ratio = statistics.median(busy) / statistics.median(idle)
    first = statistics.median(starts)
    return [
        f"another visitor's rerun: idle {1000 * statistics.median(idle):.0f} ms, beside {RUNS} watched runs "
        f"{1000 * statistics.median(busy):.0f} ms ({ratio:.1f} x, at most {MOST:.1f}){'' if ratio <= MOST else ' MISSED'}",
        f"first step of a run: {first:.2f} s (at most {SOON:.1f}){'' if first <= SOON else ' MISSED'}",
    ]
