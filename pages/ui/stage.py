"""The stage: the component that plays a trace in the browser. Register once, mount with bytes made by ``pages.ui.payload``.

``assets/stage/*.js`` are ordinary ES modules. Components v2 wants one module as a string, so they are joined here: each
module becomes a function that returns its exports, in the order in which they need each other.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeGuard

import streamlit as st

from engine.equation import Intervention, set_to
from pages.ui.theme import roles
from pages.ui.words import language, messages

FOLDER = Path(__file__).resolve().parents[2] / "assets" / "stage"
IMPORT = re.compile(r'^import \{([^}]*)\} from "\./(\w+)\.js";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?:async )?(?:function|const|class) (\w+)", re.MULTILINE)
COMMENT = re.compile(r"^[ \t]*(?://.*|/\*(?:[^*]|\*(?!/))*\*/)\n", re.MULTILINE)
INDENT = re.compile(r"^[ \t]+", re.MULTILINE)
SHEETS = (
    "stage",
    "formulas",
    "diagram",
    "chain",
    "timeline",
    "panels",
    "maps",
    "board",
    "series",
    "scene",
    "text",
    "embedding",
    "training",
    "narrow",
)
PREFIX = "stage."
MOST_CHANGES = 32
# Names of roles in the engine that share a colour of assets/theme/roles.json.
ALIASES = {"weight": "weights", "input_value": "state", "probability": "state", "score": "weights"}


@dataclass(frozen=True, kw_only=True)
class Change:
    """One change that the learner asks for: ``symbol`` set to ``value`` on steps first..end-1, units and heads.

    ``end`` None: to the end. ``units`` or ``heads`` None: all of them.
    """

    symbol: str
    value: float
    first: int = 0
    end: int | None = None
    units: tuple[int, ...] | None = None
    heads: tuple[int, ...] | None = None

    def intervention(self) -> Intervention:
        """What the engine runs. It raises ``IndexError`` for steps and units that are not there."""
        every = self.first == 0 and self.end is None
        return set_to(self.value, step=None if every else (self.first, self.end), unit=self.units, head=self.heads)


def parse_changes(value: Any) -> tuple[Change, ...]:
    """The changes in a message of the stage. What a browser sends may be anything: malformed parts are left out."""
    listed = value.get("interventions") if isinstance(value, dict) else None
    found = (_parse_change(one) for one in listed[:MOST_CHANGES]) if isinstance(listed, list) else ()
    return tuple(change for change in found if change is not None)


def _parse_change(one: Any) -> Change | None:
    if not isinstance(one, dict):
        return None
    symbol, value, first, end, units = (one.get(name) for name in ("symbol", "value", "from", "to", "units"))
    if not isinstance(symbol, str) or isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    if not _is_count(first) or not (end is None or (_is_count(end) and end > first)):
        return None
    chosen = {}
    for word, given in (("units", units), ("heads", one.get("heads"))):
        if given is not None and not (isinstance(given, list) and given and all(map(_is_count, given))):
            return None
        chosen[word] = None if given is None else tuple(sorted(set(given)))
    return Change(symbol=symbol, value=float(value), first=first, end=end, **chosen)


def _is_count(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def bundle(entry: str = "main") -> str:
    """The modules of the stage that ``entry`` needs, as one. Raises ``ValueError`` for what it does not know how to join."""
    joined: dict[str, str] = {}

    def join(name: str) -> None:
        if name in joined:
            return
        source = (FOLDER / f"{name}.js").read_text(encoding="utf-8")
        for _, other in IMPORT.findall(source):
            join(other)
        exports = EXPORT.findall(source)
        body = IMPORT.sub(lambda found: f"const {{{found[1]}}} = module_{found[2]};\n", source)
        body = re.sub(r"^export default ", "const main = ", body, flags=re.MULTILINE)
        body = re.sub(r"^export ", "", body, flags=re.MULTILINE)
        if re.search(r"^(import|export)\b", body, re.MULTILINE):
            raise ValueError(f"{name}.js has an import or export that cannot be joined")
        if body != source and "const main = " in body:
            exports = [*exports, "main"]
        body = INDENT.sub("", COMMENT.sub("", body))
        joined[name] = f"const module_{name} = (() => {{\n{body}return {{ {', '.join(exports)} }};\n}})();\n"

    join(entry)
    return "".join(joined.values()) + f"export default module_{entry}.main;\n"


def style() -> str:
    """The style sheet, with the role colours of assets/theme/roles.json as variables for light and dark."""
    colours = roles() | {alias: roles()[role] for alias, role in ALIASES.items()}
    rules = []
    for shade in ("light", "dark"):
        variables = "".join(
            f"--role-{role}:{colour[shade]};--text-{role}:{colour[f'{shade}Text']};" for role, colour in colours.items()
        )
        rules.append(f'.stage[data-theme="{shade}"]{{{variables}}}\n')
    return "".join(rules) + "".join((FOLDER / f"{name}.css").read_text(encoding="utf-8") for name in SHEETS)


_component = st.components.v2.component("unrolled.stage", css=style(), js=bundle(), isolate_styles=True)


@cache
def _words(lang: str) -> dict[str, str]:
    found = messages(lang).by_key
    return {key.removeprefix(PREFIX): forms[0] for key, forms in found.items() if key.startswith(PREFIX)}


def stage_words(lang: str | None = None, lesson: str = "") -> dict[str, str]:
    """The interface's strings for ``pack(words=...)``, with their places for numbers left open.

    A lesson whose rows and columns are no queries and keys says them in its own words: ``stage.lesson.<lesson>.at_step``.
    """
    found, own = _words(lang or language()), f"lesson.{lesson}."
    shared = {key: text for key, text in found.items() if not key.startswith(("name.", "doc.", "lesson."))}
    return shared | {key.removeprefix(own): text for key, text in found.items() if key.startswith(own)}


def symbol_names(lang: str | None = None) -> dict[str, str]:
    """A short name for each symbol, for ``pack(names=...)``."""
    found = _words(lang or language())
    return {key.removeprefix("name."): text for key, text in found.items() if key.startswith("name.")}


def position_names(lang: str | None = None) -> dict[str, str]:
    """A short name for each symbol of attention, for ``pages.ui.positions.pack(names=...)``."""
    start = "name.attention."
    return {key.removeprefix(start): text for key, text in _words(lang or language()).items() if key.startswith(start)}


def symbol_docs(model: str, lang: str | None = None) -> dict[str, str]:
    """What each symbol of a model ("lstm", "gru", "rnn") does, one sentence each, for ``pack(docs=...)``."""
    found, start = _words(lang or language()), f"doc.{model}."
    shared = {key.removeprefix("doc.output."): text for key, text in found.items() if key.startswith("doc.output.")}
    return shared | {key.removeprefix(start): text for key, text in found.items() if key.startswith(start)}


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where the learner looks, when they ask for it below the stage."""

    step: int
    unit: int
    symbol: str


def parse_place(value: Any) -> Place | None:
    """The place in a message of the stage, or None where it is malformed."""
    step, unit, symbol = (value.get(name) for name in ("step", "unit", "symbol")) if isinstance(value, dict) else (None,) * 3
    if not (_is_count(step) and _is_count(unit) and isinstance(symbol, str)):
        return None
    return Place(step=step, unit=unit, symbol=symbol)


@dataclass(frozen=True, kw_only=True)
class Touch:
    """What the learner has clicked at, where a view can be edited: ``add`` a point at (x, y), ``remove`` the point ``at``, turn
    the ``cell`` of a mask in ``row`` and column ``at``.
    """

    kind: str
    x: float = 0.0
    y: float = 0.0
    at: int = 0
    row: int = 0


def parse_touch(value: Any) -> Touch | None:
    """The click in a message of the stage, or None where it is malformed."""
    if not isinstance(value, dict):
        return None
    kind, at = value.get("kind"), value.get("at")
    if kind == "remove" and _is_count(at):
        return Touch(kind="remove", at=at)
    row = value.get("row")
    if kind == "cell" and _is_count(row) and _is_count(at):
        return Touch(kind="cell", row=row, at=at)
    x, y = value.get("x"), value.get("y")
    if kind == "add" and _is_number(x) and _is_number(y):
        return Touch(kind="add", x=float(x), y=float(y))
    return None


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e100


def mount(
    payload: bytes,
    *,
    key: str,
    on_change: Callable[[tuple[Change, ...]], None] | None = None,
    on_place: Callable[[Place], None] | None = None,
    on_touch: Callable[[Touch], None] | None = None,
) -> None:
    """Show the stage. ``on_change`` is called, before the page runs again, with all changes the learner now wants.

    An empty tuple means: back to the baseline. ``on_place`` is called when the learner asks for the place they look at to be
    used below the stage (offered where the header's start says ``follows``), ``on_touch`` when they click at a view that can be
    edited. Nothing else ever comes from the stage: it writes step, unit and symbol into the address by itself.
    """

    def told() -> None:
        asked = st.session_state[key].get("change")
        if asked is not None and on_change is not None:
            on_change(parse_changes(asked))

    def placed() -> None:
        place = parse_place(st.session_state[key].get("place"))
        if place is not None and on_place is not None:
            on_place(place)

    def touched() -> None:
        touch = parse_touch(st.session_state[key].get("touch"))
        if touch is not None and on_touch is not None:
            on_touch(touch)

    _component(key=key, data=payload, on_change_change=told, on_place_change=placed, on_touch_change=touched)
