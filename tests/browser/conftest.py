"""Fixtures of the stage's browser tests: its own small page, served once."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.stage.serving import Stage, StageServer


@pytest.fixture(scope="session")
def page_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StageServer]:
    live = StageServer(tmp_path_factory.mktemp("stage") / "server.log")
    yield live
    live.stop()
    assert live.faults() == []


@pytest.fixture
def open_stage(page_server: StageServer, new_context: Callable[..., Any]) -> Callable[..., Stage]:
    return lambda **link: Stage.visit(page_server, new_context, **link)
