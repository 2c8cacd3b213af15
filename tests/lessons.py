"""What the tests of the lesson pages share: the engine's own run of a link, and a lesson page without a browser.

The runs here are made from a checkpoint and a link alone, without the pages' caches, so that a page can be held to them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import torch
from streamlit.testing.v1 import AppTest

from engine.notation import format_number
from engine.recurrent.language_model import RecurrentLanguageModel
from engine.recurrent.spectrum import with_radius
from engine.text.vocabulary import Vocabulary
from engine.trace import Trace
from engine.training import checkpoints
from pages import catalog
from pages.ui.config import GRUConfig, LSTMConfig, RecurrentConfig, from_query
from pages.ui.memory import RNNConfig

FRAME = catalog.FOLDER / "ui" / "main.py"
KINDS: dict[str, type[RecurrentConfig]] = {"rnn": RNNConfig, "lstm": LSTMConfig, "gru": GRUConfig}
STRANGE = {
    "one character": "x",
    "repeated": "the the the the",
    "digits": "1 2 10 007 1E1 2024-01-01",
    "markup": "a<b<c <img src=x onerror=alert(1)> <script>alert(1)</script>",
    "signs": "a $x$ b __pad__ ~~s~~ :smile: *c* [d](e)",
    "emoji": "ok 👨‍👩‍👧 🇵🇱 🏳️‍🌈",
    "Chinese": "你好，世界。你好",
    "right to left": "שלום עולם مرحبا",
    "combining marks": "x̂ y̆́ z̈",
    "256 characters": ("In the beginning God created the heaven and the earth. " * 5)[:256],
}


@dataclass(frozen=True)
class EngineRun:
    """A run as the engine alone makes it."""

    config: RecurrentConfig
    model: RecurrentLanguageModel
    vocabulary: Vocabulary
    trace: Trace
    baseline: Trace

    def next_tokens(self, step: int, count: int = 8) -> list[tuple[int, float]]:
        """The likeliest tokens after a step (0-based), as (index, probability)."""
        row = self.trace["P"][step, 0]
        return [(int(index), float(row[index])) for index in (-row).argsort(kind="stable")[:count]]


def query(url: str) -> dict[str, str]:
    """The parameters in an address."""
    return {name: values[-1] for name, values in parse_qs(urlsplit(url).query, keep_blank_values=True).items()}


def engine_run(cell: str, params: Mapping[str, str] | str = "") -> EngineRun:
    """What a link to a lesson describes, run by the engine; the link may be a whole address."""
    return _run(cell, params if isinstance(params, str) else "?" + urlencode(params))


@cache
def _run(cell: str, address: str) -> EngineRun:
    config, _ = from_query(KINDS[cell], query(address))
    name = cell if config.model in ("trained", "untrained") else config.model
    checkpoint = checkpoints.load(name)
    switches: dict[str, Any] = config.switches(cell)
    generator = torch.Generator().manual_seed(config.seed)
    sizes = len(checkpoint.vocabulary), checkpoint.model.recurrent.hidden_size
    model = RecurrentLanguageModel(cell, *sizes, generator=generator, **switches)
    if config.model != "untrained":
        weights = dict(checkpoint.model.state_dict())
        if "recurrent.b_hh" in model.state_dict():  # the bias that only this convention has is 0
            weights["recurrent.b_hh"] = torch.zeros(sizes[1])
        model.load_state_dict(weights)
    radius = config.radius_of(cell)
    if radius is not None:
        model = with_radius(model, radius)
    ids = torch.tensor(checkpoint.vocabulary[list(config.tokens)]).unsqueeze(1)
    trace = model.trace(ids, do=config.interventions())
    return EngineRun(config, model, checkpoint.vocabulary, trace, model.trace(ids) if config.do else trace)


def shown(value: float) -> str:
    """A number as the stage writes it."""
    return format_number(float(value), digits=3, minus="−")


def without_browser(lesson: str, **params: str) -> AppTest:
    """A page of the app, run once without a browser ("" is the home page)."""
    page = AppTest.from_file(FRAME, default_timeout=120)
    if lesson:
        page.switch_page(str(catalog.FOLDER / f"{lesson}.py"))
    for name, value in params.items():
        page.query_params[name] = value
    return sound(page.run())


def sound(page: AppTest) -> AppTest:
    """The page, which must show no exception."""
    assert not page.exception, [each.message for each in page.exception]
    return page


def link_of(page: AppTest) -> dict[str, str]:
    """The address of a page without a browser."""
    return {name: value[-1] if isinstance(value, list) else value for name, value in page.query_params.items()}
