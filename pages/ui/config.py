"""The config of a recurrent-cell lesson: at once the widgets' values, the cache key, the link and the test case.

``from_query`` is the only way in: links and widgets both pass it. Whatever it is given, it returns a config that a model
can run, and a note (a word key with values) for everything it had to change. Notes hold numbers and names of our own,
never a text from outside. Steps and units count from 0 here and in links; notes and screen count steps from 1.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from engine.notes import Note
from engine.symbols import GATE, SIGNED
from engine.text.display import graphemes
from engine.text.reading import read_text
from pages.ui import opened

if TYPE_CHECKING:
    from engine.equation import Intervention
    from pages.ui.stage import Change

SAMPLE = "In the beginning God created the heaven and the earth."
WINDOW = 256  # tokens on the stage
MAX_SEED = 9999
MAX_EDITS = 16
OUTPUT = ("Y", "P")  # what every model has beside its cell
CELL = (-100.0, 100.0)  # a memory cell has no bounds of its own; beyond this tanh(C) has long been 1

WHOLE = re.compile(r"[0-9]{1,9}")
TOO_LONG = re.compile(r"[0-9]{10,}")
EDIT = re.compile(
    r"(?P<symbol>(?:layers\.[0-9]\.(?:forward|backward)\.)?[A-Za-z_]{1,12})="
    r"(?P<value>[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?inf|nan)"
    r"(?:@(?P<first>[0-9]{1,9})(?P<range>-(?P<last>[0-9]{1,9})?)?)?(?:#(?P<units>[0-9]{1,9}(?:\.[0-9]{1,9})*))?"
)


@dataclass(frozen=True, kw_only=True)
class Edit:
    """One what-if: ``symbol`` is set to ``value`` from step ``first`` to ``last``, both counted in, in ``units`` (none: all).

    ``first`` None means every step; ``last`` None means to the end. In a link: ``F=1``, ``F=1@5``, ``F=1@5-``,
    ``F=1@5-9``, ``F=1@5-#3.7``.
    """

    symbol: str
    value: float
    first: int | None = None
    last: int | None = None
    units: tuple[int, ...] = ()

    def __str__(self) -> str:
        steps = ""
        if self.first is not None:
            steps = f"@{self.first}" + ("" if self.last == self.first else f"-{'' if self.last is None else self.last}")
        units = "#" + ".".join(map(str, self.units)) if self.units else ""
        value = repr(self.value).removesuffix(".0")
        return f"{self.symbol}={value}{steps}{units}"

    @classmethod
    def of(cls, change: "Change") -> "Edit":
        """The edit that the stage asks for; its ranges end before their second number."""
        last = None if change.end is None else change.end - 1
        first = None if change.first == 0 and last is None else change.first
        return cls(symbol=change.symbol, value=change.value, first=first, last=last, units=change.units or ())

    def within(self, steps: int) -> "Edit | None":
        """The same in a run of ``steps`` steps; None where that ends before it begins."""
        if (self.first or 0) >= steps:
            return None
        return self if self.last is None or self.last < steps else replace(self, last=steps - 1)

    def intervention(self) -> "Intervention":
        """The same for the engine, whose ranges end before their second number."""
        from engine.equation import set_to

        if self.first == self.last:  # every step, or one
            step: int | tuple[int, int | None] | None = self.first
        else:
            step = (self.first or 0, None if self.last is None else self.last + 1)
        return set_to(self.value, step=step, unit=self.units or None)


Config = TypeVar("Config", bound="LessonConfig")
Recurrent = TypeVar("Recurrent", bound="RecurrentConfig")


@dataclass(frozen=True, kw_only=True)
class LessonConfig:
    """What every lesson knows: the text that travels from one to the next. A field is a parameter of the link."""

    text: str = SAMPLE

    @classmethod
    def read(cls: type[Config], params: Mapping[str, str], notes: list[Note]) -> Config:
        """The config nearest to what ``params`` ask for; what had to be changed is added to ``notes``."""
        return cls(text=given_text(params, notes))


@dataclass(frozen=True, kw_only=True)
class RecurrentConfig(LessonConfig):
    """What every recurrent-cell lesson knows. ``symbol`` "" is the one the page begins with."""

    model: str = "trained"
    seed: int = 0
    do: tuple[Edit, ...] = ()
    reset: str = "before"
    update: str = "keeps"
    step: int = 0
    unit: int = 0
    symbol: str = ""

    # Of each lesson: hidden width by model name, the interval of each symbol that may be edited, the others that may be shown.
    models: ClassVar[Mapping[str, int]] = {"trained": 64, "untrained": 64}
    editable: ClassVar[Mapping[str, tuple[float, float]]] = {"H": SIGNED}
    shown: ClassVar[tuple[str, ...]] = ("H",)
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {"reset": ("before",), "update": ("keeps",)}
    opens: ClassVar[tuple[str, ...]] = ("rnn", "relu")  # kinds of models from outside (pages.ui.opened) that can be shown
    open_layers: ClassVar[int | None] = 1
    chain: ClassVar[bool] = False  # whether the stage draws the unrolled model above the cell

    @classmethod
    def read(cls: type[Recurrent], params: Mapping[str, str], notes: list[Note]) -> Recurrent:
        text = given_text(params, notes)
        model = opened.choose(params.get("model", cls.model), tuple(cls.models), cls.opens, notes, layers=cls.open_layers)
        units = cls.units_of(model)
        own = cls.more(params, notes)
        bounds = cls.bounds({"model": model, **own})
        return cls(
            text=text,
            model=model,
            seed=number("seed", params, MAX_SEED, notes),
            do=_edits(bounds, params.get("do", ""), len(text), units, notes),
            reset=choice("reset", params, cls.choices["reset"], notes),
            update=choice("update", params, cls.choices["update"], notes),
            step=number("step", params, len(text) - 1, notes, shift=1),
            unit=number("unit", params, units - 1, notes),
            symbol=choice("symbol", params, ("", *cls.shown, *OUTPUT), notes),
            **own,
        )

    def interventions(self, steps: int | None = None) -> dict[str, tuple["Intervention", ...]]:
        """The edits by symbol, in the order they were made, as ``model.trace(do=...)`` takes them.

        Of a run that ends after ``steps`` steps: those that begin before its end, and no longer than it.
        """
        edits = [edit if steps is None else edit.within(steps) for edit in self.do]
        kept = [edit for edit in edits if edit is not None]
        symbols = dict.fromkeys(edit.symbol for edit in kept)
        return {name: tuple(edit.intervention() for edit in kept if edit.symbol == name) for name in symbols}

    @property
    def tokens(self) -> tuple[str, ...]:
        """What is fed in, token by token."""
        return tuple(self.text)

    @property
    def looks(self) -> dict[str, Any]:
        """Where the stage opens."""
        return {"step": self.step, "unit": self.unit} | ({"symbol": self.symbol} if self.symbol else {})

    @property
    def pins(self) -> tuple[tuple[int, str], ...]:
        """Units that the learner has pinned, with their names."""
        return ()

    def switches(self, cell: str) -> dict[str, Any]:
        """The conventions of a cell on this page, as its model takes them."""
        return {"reset": self.reset, "update": self.update} if cell == "gru" else {}

    def radius_of(self, cell: str) -> float | None:  # noqa: ARG002 other lessons scale one cell of several
        """The spectral radius to which the matrix from state to state is scaled; None leaves it as it is."""
        return None

    @classmethod
    def more(cls, params: Mapping[str, str], notes: list[Note]) -> dict[str, Any]:  # noqa: ARG003 each lesson takes its own
        """The fields that only this lesson has, checked; what had to be changed is added to ``notes``."""
        return {}

    @classmethod
    def bounds(cls, fields: Mapping[str, Any]) -> Mapping[str, tuple[float, float]]:  # noqa: ARG003 they may depend on the lesson's fields
        """The interval of each symbol that may be edited."""
        return cls.editable

    @property
    def run(self: Recurrent) -> Recurrent:
        """The config of the run alone, for caches: where the learner looks does not change a number of it."""
        return replace(self, step=0, unit=0, symbol="")

    def plain(self: Recurrent) -> Recurrent:
        """The same run without its edits, looked at from the start: the baseline."""
        return replace(self, do=(), step=0, unit=0, symbol="")

    def with_switches(self: Recurrent, **switches: Any) -> Recurrent:
        """The same run under other conventions."""
        return replace(self, **switches)

    @property
    def hidden_size(self) -> int:
        """Hidden width of the model that is chosen."""
        return self.units_of(self.model)

    @classmethod
    def units_of(cls, model: str) -> int:
        """Hidden width of a model of this lesson, or of one from outside."""
        shape = None if model in cls.models else opened.shape_of(model)
        return cls.models.get(model, 64) if shape is None else shape.width


@dataclass(frozen=True, kw_only=True)
class LSTMConfig(RecurrentConfig):
    """Lesson 6."""

    opens: ClassVar[tuple[str, ...]] = ("lstm",)
    models: ClassVar[Mapping[str, int]] = {"trained": 64, "untrained": 64, "recall-bias-0": 32, "recall-bias-2": 32}
    editable: ClassVar[Mapping[str, tuple[float, float]]] = {
        "F": GATE,
        "I": GATE,
        "O": GATE,
        "C_tilde": SIGNED,
        "C": CELL,
        "H": SIGNED,
    }
    shown: ClassVar[tuple[str, ...]] = tuple(editable)


@dataclass(frozen=True, kw_only=True)
class GRUConfig(RecurrentConfig):
    """Lesson 7."""

    opens: ClassVar[tuple[str, ...]] = ("gru",)
    editable: ClassVar[Mapping[str, tuple[float, float]]] = {"R": GATE, "Z": GATE, "H_tilde": SIGNED, "H": SIGNED}
    shown: ClassVar[tuple[str, ...]] = tuple(editable)
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {"reset": ("before", "after"), "update": ("keeps", "replaces")}


def to_query(config: LessonConfig) -> dict[str, str]:
    """The parameters of a link to ``config``, defaults left out."""

    def text(value: object) -> str:
        return ";".join(map(str, value)) if isinstance(value, tuple) else str(value)

    return {
        each.name: text(getattr(config, each.name)) for each in fields(config) if getattr(config, each.name) != each.default
    }


def from_query(kind: type[Config], params: Mapping[str, str]) -> tuple[Config, tuple[Note, ...]]:
    """The config nearest to what ``params`` ask for, and what had to be changed. Takes any strings; raises nothing."""
    notes: list[Note] = []
    return kind.read(params, notes), tuple(notes)


def window(text: str, start: int = 0) -> str:
    """At most ``WINDOW`` tokens from ``start`` on; a character written with several code points is not cut in two."""
    piece, beyond = text[start : start + WINDOW], text[start : start + 2 * WINDOW]
    if len(beyond) == len(piece):
        return piece
    whole = ""
    for character in graphemes(beyond):
        if len(whole) + len(character) > WINDOW:
            break
        whole += character
    return whole or piece


def given_text(params: Mapping[str, str], notes: list[Note]) -> str:
    """The text of a link, cleaned and cut to the window; the sample where there is none."""
    given = params.get("text", SAMPLE)
    reading = read_text(given, first_part=True)
    text = window(reading.text or "")
    notes.extend(reading.notes)
    if len(text) < len(reading.text or ""):
        notes.append(Note("text.window", {"first": 1, "last": len(text), "total": len(reading.text or "")}))
    return text or SAMPLE


def choice(name: str, params: Mapping[str, str], known: tuple[str, ...], notes: list[Note]) -> str:
    """One of ``known``, the first where nothing or something else is asked for."""
    given = params.get(name, known[0])
    if given in known:
        return given
    notes.append(Note(f"link.{name}"))
    return known[0]


def number(name: str, params: Mapping[str, str], highest: int, notes: list[Note], shift: int = 0, said: str = "") -> int:
    """A whole number from 0 to ``highest``; the note counts from ``shift``, and has the key ``said`` or that of the name."""
    given = params.get(name, "0")
    number = int(given) if WHOLE.fullmatch(given) else highest + 1 if TOO_LONG.fullmatch(given) else 0
    used = 0 if given.startswith("-") else min(number, highest)
    if not WHOLE.fullmatch(given) or used != number:
        notes.append(Note(said or f"link.{name}", {"low": shift, "high": highest + shift, "used": used + shift}))
    return used


def _edits(
    bounds: Mapping[str, tuple[float, float]], given: str, steps: int, units: int, notes: list[Note]
) -> tuple[Edit, ...]:
    edits: list[Edit] = []
    unreadable = 0
    parts = [part for part in given.split(";", 4 * MAX_EDITS) if part]
    for part in parts[:MAX_EDITS]:
        match = EDIT.fullmatch(part)
        if match is None or match["symbol"] not in bounds:
            unreadable += 1
            continue
        low, high = bounds[match["symbol"]]
        value = float(match["value"])
        if not low <= value <= high:
            used = min(max(value, low), high) if math.isfinite(value) else None
            notes.append(
                Note("link.do_value", {"symbol": match["symbol"], "low": low, "high": high})
                if used is not None
                else Note("link.do_not_finite", {"symbol": match["symbol"]})
            )
            if used is None:
                continue
            value = used
        edit = _placed(match, value, steps, units, notes)
        if edit is not None:
            edits.append(edit)
    if unreadable:
        notes.append(Note("link.do", {"count": unreadable}))
    if len(parts) > MAX_EDITS:
        notes.append(Note("link.do_limit", {"limit": MAX_EDITS}))
    return tuple(edits)


def _placed(match: re.Match[str], value: float, steps: int, units: int, notes: list[Note]) -> Edit | None:
    """The edit at the steps and units that exist; None, with a note, if none does."""
    first = None if match["first"] is None else int(match["first"])
    last = first if match["range"] is None else None if match["last"] is None else int(match["last"])
    if (first is not None and first >= steps) or (last is not None and last < (first or 0)):
        notes.append(Note("link.do_step", {"symbol": match["symbol"], "high": steps}))
        return None
    if last is not None and last >= steps - 1 and last != first:
        last = None  # to the end
    if first == 0 and last is None:
        first = None  # every step
    asked = sorted({int(unit) for unit in match["units"].split(".")}) if match["units"] else []
    found = tuple(unit for unit in asked if unit < units)
    if len(found) < len(asked):
        notes.append(Note("link.do_unit", {"symbol": match["symbol"], "high": units}))
        if not found:
            return None
    return Edit(symbol=match["symbol"], value=value + 0.0, first=first, last=last, units=found)
