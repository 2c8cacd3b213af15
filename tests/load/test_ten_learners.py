"""Ten learners at once, each a rerun a second: everybody gets every answer, and only their own numbers."""

import asyncio
import random
from urllib.parse import urlencode

import numpy as np
import pytest

from tests.browsing import LiveServer
from tests.clients import Answer, Client, together
from tests.lessons import engine_run
from tests.stage.runs import Payload

LEARNERS, SECONDS = 10, 4
TEXTS = [f"Learner {k} writes a line of {'many ' * k}words." for k in range(LEARNERS)]


def own(answer: Answer, cell: str, params: dict[str, str]) -> bool:
    """Whether an answer brought the trace of these parameters, whole and with the engine's numbers."""
    data = answer.stage()
    if data is None:
        return False
    payload, trace = Payload.read(data), engine_run(cell, params).trace
    assert "".join(payload.header["raw"]) == params["text"]
    for name in ("H", "P"):
        np.testing.assert_allclose(payload.array(name), trace[name][:, 0], rtol=0, atol=1e-6)
    return True


async def learner(url: str, number: int, start: asyncio.Event) -> int:
    """One of them: opens a lesson, turns the pages of the walk, changes a gate, goes on to the next lesson."""
    cell, other = ("lstm", "gru") if number % 2 else ("gru", "lstm")
    gate = {"lstm": "F", "gru": "Z"}
    answers = 0
    async with Client(url) as client:
        await start.wait()
        await asyncio.sleep(random.Random(number).random())
        opened = await client.run(cell, urlencode({"text": TEXTS[number]}))
        answers += 1
        assert opened.exceptions() == []
        assert own(opened, cell, {"text": TEXTS[number]})
        pager = opened.pagination("try")
        for second in range(SECONDS):
            await asyncio.sleep(1)
            answer = await client.turn(pager, 1 + (second + 1) % 3)
            assert answer.exceptions() == []
            answers += 1
        params = {"text": TEXTS[number], "do": f"{gate[other]}=0.{number}@3-"}
        changed = await client.run(other, urlencode(params))
        assert changed.exceptions() == []
        assert own(changed, other, params)
        return answers + 1


async def everybody(url: str) -> list[int]:
    start = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(learner(url, number, start)) for number in range(LEARNERS)]
        start.set()
    return [task.result() for task in tasks]


@pytest.mark.parametrize("again", [False, True])
def test_ten_learners_get_every_answer_and_only_their_own_numbers(server: LiveServer, again: bool):
    """The second time everybody's runs are in the caches: they must still be everybody's own."""
    assert together(everybody(server.url)) == [SECONDS + 2] * LEARNERS
    assert server.faults() == []
