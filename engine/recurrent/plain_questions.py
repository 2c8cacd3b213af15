"""Questions on the plain recurrent network (see ``engine.recurrent.questions`` for how they are asked and settled).

============  ===========================================================  =================================================
question      options                                                      values
============  ===========================================================  =================================================
fresh         same, fresh, zero, last                                      step, unit, steps, before, after, fresh
memoryless    nothing, current, two, same                                  step, gap, radius
fade          under_1, to_10, to_50, over_50                               share, near, far, steps, step
order         same, little, some, much                                     most, token, p_before, p_after, count
perplexity    best, good, fair, poor, worse                                perplexity, uniform, steps
relu          inside, outside, zero                                        largest, step, unit, before
cost          same, twice, square                                          parameters, steps, twice
============  ===========================================================  =================================================

fresh: H = 0 at ``step``, all units; what are the states after it? memoryless: W_hh scaled to radius 0; on what does a
prediction depend? fade: how much weaker is dH_t / dH_{t-10} than dH_t / dH_{t-1} (largest singular values)? order: the past
in another order, the last token in its place; how much does the likeliest token's probability move? perplexity: of this
text, beside a uniform guess. relu: the same weights under ReLU; where are the states? cost: parameters for twice the text.

Steps, units and tokens are numbers from 0.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Final

import numpy as np
import torch

from engine.equation import set_to
from engine.notes import Note
from engine.recurrent.asking import SAME, UNDECIDED, Answer, Run, alike, floats, gap, settled, shares, telling_unit, too_short
from engine.recurrent.reading import text_perplexity
from engine.recurrent.rnn import RNN
from engine.recurrent.spectrum import growth, spectrum, step_jacobians

BACK: Final = 10  # steps
ORDERS: Final = {"same": (0.0, 0.005), "little": (0.005, 0.05), "some": (0.05, 0.2), "much": (0.2, 1.1)}
FITS: Final = {"best": (0.0, 2.0), "good": (2.0, 5.0), "fair": (5.0, 15.0)}
MOST: Final = 1e6  # a state that grows beyond is said to be this large
CLEAR: Final = 0.02  # share of a border's own value within which a learner could not tell


def fresh(run: Run) -> Answer | Note:
    """H = 0 at one step: from the next one on the network is where it would be had the text begun there."""
    if run.last < 2:
        return too_short(3)
    step = min(max(run.step, 1), run.last - 1)
    base, changed = run.trace(), run.trace({"H": set_to(0.0, step=step)})
    later = slice(step + 1, None)
    with torch.no_grad():
        begun = run.model.trace(run.ids[step + 1 :, :1])["H"]
    truths = {
        "same": alike(gap(changed["H"][later], base["H"][later])),
        "zero": alike(gap(changed["H"][later], 0.0)),
        "fresh": alike(gap(changed["H"][later], begun)),
        "last": alike(gap(changed["H"][later], base["H"][step - 1])),
    }
    unit = telling_unit(run, begun[0, 0])
    numbers = {"before": base["H"][step + 1, 0, unit], "after": changed["H"][step + 1, 0, unit], "fresh": begun[0, 0, unit]}
    return settled(truths, {"step": step, "next_step": step + 1, "unit": unit} | floats(numbers), prefer="fresh")


def memoryless(run: Run) -> Answer | Note:
    """W_hh scaled to spectral radius 0, that is to 0: each state is that of a text of its own token alone."""
    if run.last < 2:
        return too_short(3)
    model = copy.deepcopy(run.model)
    with torch.no_grad():
        model.recurrent.get_parameter("W_hh").zero_()
    changed, base = model.trace(run.ids[:, :1])["P"][:, 0], run.trace()["P"][:, 0]
    # Each token alone, and each pair of neighbours, as rows of one batch.
    alone = model.trace(run.ids[:, 0][None])["P"][0]
    pairs = torch.stack([run.ids[:-1, 0], run.ids[1:, 0]])
    two = run.model.trace(pairs)["P"][1]
    truths = {
        "nothing": alike(gap(changed, changed[:1])),
        "current": alike(gap(changed, alone)),
        "two": alike(gap(changed[1:], two)),
        "same": alike(gap(changed, base)),
    }
    radius = spectrum(run.model.recurrent.get_parameter("W_hh")).radius
    return settled(truths, floats({"gap": gap(changed, alone), "radius": radius}), prefer="current")


def fade(run: Run) -> Answer | Note:
    """How much weaker the state follows the one ten steps earlier than the one a step earlier."""
    if run.last < 3:
        return too_short(4)
    step = run.step if run.step >= 3 else run.last
    jacobians = step_jacobians(run.model, run.ids[: step + 1, :1])
    products = growth(jacobians).products
    steps = min(BACK, step)
    near, far = float(products[1]), float(products[steps])
    if near <= 0:
        return UNDECIDED
    values = {"share": far / near, "near": near, "far": far, "steps": steps, "step": step, "from_step": step - steps}
    return settled(shares(min(far / near, 1.9)), values)


def order(run: Run) -> Answer | Note:
    """The past in another order, the last token where it was."""
    if run.last < 4:
        return too_short(5)
    text = run.ids[:, 0]
    if len(set(text[:-1].tolist())) < 2:
        return UNDECIDED
    turned = text.clone()
    turned[:-1] = text[:-1].flip(0)
    before, after = (run.model.trace(ids[:, None])["P"][-1, 0] for ids in (text, turned))
    token = int(before.argmax())
    moved = abs(float(after[token]) - float(before[token]))
    values = {"token": token, "moved": moved, "token_after": int(after.argmax()), "count": run.last}
    numbers = {"p_before": before[token], "p_after": after[token]}
    return settled(_ranged(moved, ORDERS), values | floats(numbers))


def perplexity(run: Run) -> Answer | Note:
    """The perplexity of the text, beside that of a guess among all tokens."""
    if run.last < 1:
        return too_short(2)
    found = text_perplexity(run.trace(), run.ids)
    assert found is not None
    uniform = run.model.vocabulary_size
    ranges = FITS | {"poor": (15.0, float(uniform)), "worse": (float(uniform), float("inf"))}
    return settled(_ranged(found, ranges), {"perplexity": found, "uniform": uniform, "steps": run.last})


def relu(run: Run) -> Answer | Note:
    """The same weights with ReLU in place of the present activation."""
    model = copy.deepcopy(run.model)
    cell = model.recurrent
    if not isinstance(cell, RNN):
        raise TypeError(f"this question is about a plain network, not about {type(cell).__name__}")
    before = cell.activation
    cell.activation = "relu"
    states = model.trace(run.ids[:, :1])["H"][:, 0].astype(np.float64)
    states = np.nan_to_num(states, nan=np.inf)
    step, unit = (int(i) for i in np.unravel_index(int(states.argmax()), states.shape))
    largest = float(states.max())
    close = abs(largest - 1) < 5e-4
    truths = {
        "inside": None if close else SAME < largest < 1,
        "outside": None if close else largest > 1,
        "zero": largest <= SAME,
    }
    values = {"largest": min(largest, MOST), "step": step, "unit": unit, "was_relu": float(before == "relu")}
    return settled(truths, values)


def cost(run: Run) -> Answer | Note:
    """What a text twice as long asks of the model: the very same parameters run on it."""
    count = sum(parameter.numel() for parameter in run.model.recurrent.parameters())
    with torch.no_grad():
        scores, _ = run.model(run.ids[:, :1].repeat(2, 1))
    steps, twice = len(run.ids), len(scores)
    after = sum(parameter.numel() for parameter in run.model.recurrent.parameters())
    truths = {"same": after == count, "twice": after == 2 * count, "square": after == 4 * count}
    return settled(truths, {"parameters": count, "steps": steps, "twice": twice})


def _ranged(value: float, ranges: dict[str, tuple[float, float]]) -> dict[str, bool | None]:
    """In which range a value lies; a neighbour whose border is too close to tell is left open."""

    def truth(low: float, high: float) -> bool | None:
        if low <= value < high:
            return True
        return None if min(abs(value - low), abs(value - high)) < CLEAR * max(value, 1e-3) else False

    return {name: truth(*bounds) for name, bounds in ranges.items()}


ASKED: Final[dict[str, Callable[[Run], Answer | Note]]] = {
    "fresh": fresh,
    "order": order,
    "memoryless": memoryless,
    "fade": fade,
    "perplexity": perplexity,
    "relu": relu,
    "cost": cost,
}
