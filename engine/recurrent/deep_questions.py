"""Questions on networks of several layers and directions (see ``engine.recurrent.questions`` for how they are settled).

==============  =========================================================  ===================================================
question        options                                                    values
==============  =========================================================  ===================================================
ahead           none, forward, backward, both                              step, next_step, moved_forward, moved_backward
blind           same, little, much, most                                   seen, blind, seen_perplexity, blind_perplexity
size            same, less, twice, more                                    own, single, ratio, inputs, units
half_life       under_1, to_2, to_5, over_5                                steps, layers, step
goes_on         few, some, many                                            different, count
silence         same, mute, still                                          gap, apart
==============  =========================================================  ===================================================

ahead: which of the top states at ``step`` change with the token after it? blind: the share of next tokens that are guessed when
the whole text lies before the model, and when it ends where one asks. size: the parameters beside one layer in one direction.
half_life: after how many steps half of an input's influence on the top layer is gone. goes_on: how many different characters
the model writes when it goes on by itself. silence: the lowest layer says 0 at every step; what do the predictions do?

Steps, units and tokens are numbers from 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import torch

from engine.equation import set_to
from engine.notes import Note
from engine.recurrent.asking import SAME, SEEN, UNDECIDED, Answer, Run, alike, floats, gap, settled, too_short
from engine.recurrent.generation import go_on
from engine.recurrent.reach import layer_influence, leak

LONG: Final = 40  # characters that the model adds
LOSSES: Final = {"same": (-1.0, 0.005), "little": (0.005, 0.15), "much": (0.15, 0.5), "most": (0.5, 1.1)}
HALVES: Final = {"under_1": (0.0, 1.0), "to_2": (1.0, 2.0), "to_5": (2.0, 5.0), "over_5": (5.0, float("inf"))}
WRITTEN: Final = {"few": (0, 4), "some": (4, 11), "many": (11, 1000)}


def ahead(run: Run) -> Answer | Note:
    """Which of the top states at a step change with the token that comes after it."""
    if run.last < 1:
        return too_short(2)
    step = min(run.step, run.last - 1)
    text = run.ids[:, :1]
    other = text.clone()
    other[step + 1] = (text[step + 1] + 1) % run.model.vocabulary_size
    recurrent = run.model.recurrent
    moved = dict.fromkeys(("forward", "backward"), 0.0)
    with torch.no_grad():
        before, after = (recurrent(ids)[0][step, 0].unflatten(-1, (len(recurrent.directions), -1)) for ids in (text, other))
    for direction, difference in zip(recurrent.directions, (after - before).norm(dim=-1).tolist(), strict=True):
        moved[direction] = float(difference)
    forward, backward = (None if SAME < moved[way] < SEEN else moved[way] >= SEEN for way in ("forward", "backward"))
    if forward is None or backward is None:
        return UNDECIDED
    truths = {
        "none": not forward and not backward,
        "forward": forward and not backward,
        "backward": backward and not forward,
        "both": forward and backward,
    }
    values = {"step": step, "next_step": step + 1, "token": int(text[step + 1, 0])}
    return settled(truths, values | floats({f"moved_{way}": size for way, size in moved.items()}))


def blind(run: Run) -> Answer | Note:
    """How many of the next tokens are guessed with the whole text there, and with nothing after the step."""
    if run.last < 9:
        return too_short(10)
    found = leak(run.model, run.ids[:, 0])
    seen, shut = float(found.seen_right.mean()), float(found.blind_right.mean())
    numbers = {
        "seen": seen,
        "blind": shut,
        "seen_perplexity": found.seen_perplexity,
        "blind_perplexity": found.blind_perplexity,
    }
    return settled(_within(seen - shut, LOSSES), {"steps": run.last} | floats(numbers))


def size(run: Run) -> Answer | Note:
    """The parameters beside those of one layer in one direction, of the same cell and width."""
    cell = run.model.recurrent
    one = type(cell)(cell.input_size, cell.hidden_size)
    own, single = (sum(parameter.numel() for parameter in each.parameters()) for each in (cell, one))
    ratio = own / single
    truths = {"same": own == single, "less": 1 < ratio < 1.99, "twice": 1.99 <= ratio <= 2.01, "more": ratio > 2.01}
    values = {"own": own, "single": single, "ratio": ratio, "inputs": cell.input_size, "units": cell.hidden_size}
    return settled(truths, values)


def half_life(run: Run) -> Answer | Note:
    """After how many steps half of an input's influence on the top layer's state is gone, in the mean over distances."""
    if run.last < 9:
        return too_short(10)
    found = layer_influence(run.model, run.ids[:, :1])
    scope = next(name for name in reversed(found.scopes) if "backward" not in name)
    steps = found.half_life(scope)
    if steps is None:
        return UNDECIDED
    return settled(_within(steps, HALVES), {"steps": steps, "last_step": run.last})


def goes_on(run: Run) -> Answer | Note:
    """How many different characters the model writes when its own guesses are all it reads."""
    if run.last < 1:
        return too_short(2)
    written = go_on(run.model, run.ids[:, 0].tolist(), LONG)
    different = len(set(written))
    return settled(_within(different, WRITTEN), {"different": different, "count": LONG})


def silence(run: Run) -> Answer | Note:
    """H of the lowest layer, in its forward direction, set to 0 at every step: what reaches the prediction?"""
    if run.last < 2:
        return too_short(3)
    recurrent = run.model.recurrent
    do = {recurrent.scopes[0] + "H": set_to(0.0)}
    base, changed = run.trace()["P"], run.trace(do)["P"]
    other = run.model.trace(run.ids.flip(0)[:, :1], do=do)["P"]
    # A text that says nothing any more: the same predictions for the text read backwards.
    mute = alike(gap(changed, other))
    same = alike(gap(changed, base))
    truths = {
        "same": same,
        "mute": mute,
        "still": None if mute is None or same is None else not mute and not same,
    }
    return settled(truths, floats({"gap": gap(changed, base), "apart": gap(changed, other)}), prefer="mute")


def _within(value: float, ranges: Mapping[str, tuple[float, float]]) -> dict[str, bool | None]:
    """In which range a value lies; a neighbour whose border is too close to tell is left open."""

    def truth(low: float, high: float) -> bool | None:
        if low <= value < high:
            return True
        return None if min(abs(value - low), abs(value - high)) < SEEN else False

    return {name: truth(*bounds) for name, bounds in ranges.items()}


ASKED: Final[dict[str, Callable[[Run], Answer | Note]]] = {
    "ahead": ahead,
    "blind": blind,
    "goes_on": goes_on,
    "half_life": half_life,
    "size": size,
    "silence": silence,
}
