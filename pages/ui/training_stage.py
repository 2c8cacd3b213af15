"""The stage of lesson 9: a live or a recorded run as bytes for the browser, and its component."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from engine.metrics import perplexity_text
from engine.text.display import visible
from engine.training.files import Sampling
from engine.training.jobs import Seen
from engine.training.models import count
from engine.training.replay import Replay, read
from engine.training.spec import Member
from engine.training.viewing import SHOWN, Look, View, look
from pages.ui.stage import bundle, stage_words, style, symbol_names
from pages.ui.words import words

ROLES = {"rnn": "weights", "gru": "update", "lstm": "cell", "relu": "forget", "transformer": "query"}
SPARE = ("input", "candidate", "reset", "state")
STRIPS = {"F": "forget", "I": "input", "O": "output", "R": "reset", "Z": "update", "H": "state", "A": "key"}
RECORDED = ("rnn", "gru", "lstm", "transformer")
FIRST = ("gru", "rnn")  # what is replayed where none of the chosen models was recorded
OWN = "training_"
MOMENTS = 8  # of a replay

_component = st.components.v2.component("unrolled.training", css=style(), js=bundle("training"), isolate_styles=True)


def mount(data: bytes, *, key: str) -> None:
    """Show the stage."""
    _component(key=key, data=data)


@dataclass
class _Packing:
    """Arrays of float32 with their places, and the bytes of strips behind them."""

    floats: list[NDArray[np.float32]] = field(default_factory=list)
    strips: bytearray = field(default_factory=bytearray)
    length: int = 0

    def add(self, values: Sequence[float] | NDArray[Any]) -> list[int]:
        row = np.asarray(values, dtype="<f4")
        self.floats.append(row)
        self.length += len(row)
        return [self.length - len(row), len(row)]

    def strip(self, values: NDArray[Any], low: float, high: float) -> int:
        """Values (T, units) as bytes from ``low`` to ``high``: a strip is looked at, not read off."""
        at = len(self.strips)
        scaled = (np.nan_to_num(values, nan=low, posinf=high, neginf=low) - low) / (high - low)
        self.strips += np.clip(np.round(255 * scaled), 0, 255).astype(np.uint8).tobytes()
        return at

    def to_bytes(self, header: Mapping[str, Any]) -> bytes:
        text = json.dumps({**header, "floats": self.length}, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        head = text.encode("utf-8", "replace")
        head += b" " * (-len(head) % 4)
        return len(head).to_bytes(4, "little") + head + b"".join(row.tobytes() for row in self.floats) + bytes(self.strips)


def name_of(member: Member) -> str:
    """A member as it is called on the page: "GRU 128", "LSTM 64 × 2"."""
    return f"{words(f'member.{member.kind}')} {member.width}" + (f" × {member.layers}" if member.layers > 1 else "")


def names_of(members: Sequence[Member]) -> list[str]:
    """Names of all members; equal ones are numbered."""
    names = [name_of(member) for member in members]
    return [name if names.count(name) == 1 else f"{name} ({place})" for place, name in enumerate(names, 1)]


def roles_of(members: Sequence[Member]) -> list[str]:
    """A colour for each member: its kind's, or a spare one where that is taken."""
    found: list[str] = []
    for member in members:
        role = ROLES[member.kind]
        found.append(role if role not in found else next(spare for spare in SPARE if spare not in found))
    return found


@cache
def _own_words(lang: str) -> dict[str, str]:
    return {key: text for key, text in stage_words(lang).items() if key.startswith(OWN) or key in ("play", "pause", "controls")}


def _frame(packing: _Packing, view: View, kinds: Sequence[str]) -> dict[str, Any]:
    """One moment: what each member writes, and its strips."""
    letters, members = symbol_names(), []
    for one, kind in zip(view.members, kinds, strict=True):
        strips = []
        for symbol, (low, high) in SHOWN[kind].items():
            if symbol not in one.values:  # a Transformer may have fewer heads
                continue
            array = one.values[symbol].numpy()
            plain = symbol.rstrip("0123456789")
            strips.append(
                {
                    "symbol": symbol,
                    "name": letters.get(plain, words("training.weights_of_head", head=symbol[1:])),
                    "role": STRIPS[plain],
                    "offset": packing.strip(array, low, high),
                    "steps": array.shape[0],
                    "units": array.shape[1],
                    "low": low,
                    "high": high,
                }
            )
        members.append({"step": one.step, "added": _shown(one.added), "strips": strips})
    return {
        "step": max((one.step for one in view.members), default=0),
        "read": [visible(token) for token in view.read],
        "prefix": _shown(view.prefix),
        "members": members,
    }


def _shown(text: str) -> str:
    """A text as it is written on the stage: line ends and other marks are seen, blanks are blanks."""
    return "".join(sign if sign == " " else visible(sign) for sign in text)


def pack_live(seen: Seen, lang: str) -> bytes:
    """A live run as it is now."""
    packing, spec, log = _Packing(), seen.spec, seen.log
    size = round(np.exp(log.uniform)) if log.uniform is not None else 0
    members = []
    tokens = spec.batch_size * spec.num_steps
    broken = {one.values["m"]: one for one in log.happened if one.kind == "diverged"}
    for place, (member, name, role) in enumerate(
        zip(spec.members, names_of(spec.members), roles_of(spec.members), strict=True)
    ):
        curve, best = log.curve(place), log.best(place)
        members.append(
            {
                "name": name,
                "role": role,
                "about": words("training.parameters_of", count=count(member.kind, member.width, member.layers, size))
                if size
                else "",
                "steps": packing.add(curve.steps),
                "losses": packing.add(curve.losses),
                "norms": packing.add(curve.norms),
                "held_steps": packing.add(curve.held_steps),
                "held": packing.add(curve.held),
                "speed": log.speed(place, tokens),
                "best": None if best is None else {"step": best[0], "loss": best[1]},
                "broken": {"step": broken[place].step} if place in broken else None,
            }
        )
    frames = [] if seen.view is None else [_frame(packing, seen.view, [member.kind for member in spec.members])]
    limit = spec.training.max_norm
    return packing.to_bytes(
        {
            "run": seen.id,
            "words": _own_words(lang),
            "step": log.step,
            "steps": spec.training.steps,
            "limit": limit if np.isfinite(limit) else None,
            "members": members,
            "lines": lines_of(seen),
            "frames": frames,
            "title": None,
        }
    )


def lines_of(seen: Seen) -> list[dict[str, Any]]:
    """The lines to beat: knowing nothing, and counting."""
    log = seen.log
    if log.uniform is None:
        return []
    found = [{"value": log.uniform, "label": words("training.line.uniform", perplexity=perplexity_text(log.uniform))}]
    if log.ngrams:
        loss, n = min((loss, n) for n, loss in enumerate(log.ngrams, 1))
        found.append({"value": loss, "label": words("training.line.counting", n=n, perplexity=perplexity_text(loss))})
    return found


@st.cache_resource(max_entries=8, show_spinner=False)
def recording(name: str) -> Replay:
    """A recorded training."""
    return read(name)


def recorded_of(members: Sequence[Member]) -> tuple[str, ...]:
    """The shipped models whose recorded training stands for these members: those of their kinds."""
    return tuple(dict.fromkeys(member.kind for member in members if member.kind in RECORDED)) or FIRST


def recorded_member(name: str) -> Member:
    """A shipped model as a member of a run."""
    config = recording(name).config
    return Member(kind=name, width=config.get("hidden_size") or config["width"], layers=config.get("num_layers", 1))


@st.cache_resource(max_entries=8, show_spinner=False)
def pack_recorded(names: tuple[str, ...], probe: str, prefix: str, lang: str) -> bytes:
    """The recorded trainings of shipped models, with some of the moments at which one of them was kept, and all ends.

    A model whose training was shorter stays as it was at its end.
    """
    packing, replays = _Packing(), [recording(name) for name in names]
    ends = [len(replay.events) for replay in replays]
    kept = sorted(set.union(*(set(replay.steps) for replay in replays)))
    kept = sorted({*kept[:: -(-len(kept) // MOMENTS)], *ends})  # each moment costs the server up to half a second, once
    own = [recorded_member(name) for name in names]
    members = []
    for name, role, replay in zip(names_of(own), roles_of(own), replays, strict=True):
        stretches, held = replay.curve(240), sorted(replay.held_out.items())
        best = min(held, key=lambda each: each[1])
        members.append(
            {
                "name": name,
                "role": role,
                "about": "",
                "steps": packing.add([part.last for part in stretches]),
                "losses": packing.add([part.loss for part in stretches]),
                "norms": packing.add([part.gradient_norm for part in stretches]),
                "held_steps": packing.add([step for step, _ in held]),
                "held": packing.add([loss for _, loss in held]),
                "speed": None,
                "best": {"step": best[0], "loss": best[1]},
                "broken": None,
            }
        )
    frames: list[dict[str, Any]] = []
    found: dict[tuple[str, int], Look] = {}
    for step in kept:
        looks: list[Look] = []
        for replay in replays:
            place = replay.name, replay.nearest(step)
            if place not in found:
                model, how = replay.model_at(place[1]), Sampling(temperature=0.5)
                found[place] = look(model, replay.vocabulary, probe, prefix, how, place[1])
            looks.append(found[place])
        frames.append(_frame(packing, View(read=tuple(probe), prefix=prefix, members=tuple(looks)), names) | {"step": step})
    size, steps = len(replays[0].vocabulary), max(ends)
    uniform = float(np.log(size))
    limits = {replay.events.config.max_norm for replay in replays}
    return packing.to_bytes(
        {
            "run": "recorded",
            "words": _own_words(lang),
            "step": steps,
            "steps": steps,
            "limit": limits.pop() if len(limits) == 1 else None,
            "members": members,
            "lines": [{"value": uniform, "label": words("training.line.uniform", perplexity=perplexity_text(uniform))}],
            "frames": frames,
            "title": words("training.recorded", steps=steps),
        }
    )
