"""Check yourself: questions whose right answer is computed on the learner's own run, never typed in.

A question offers options by id; the words stand in assets. ``ask`` runs the model with and without the change that the
question speaks of and finds out of every option whether it is true of this run. What cannot be told apart here (a difference
that three decimals would not show) is left out of the options; where less than three remain, a note says so instead.

====================  ==========================================================  =============================================
question              options                                                     values
====================  ==========================================================  =============================================
lstm.carry            zero, constant, grows, same                                 step, unit, steps, before, after, baseline
lstm.mute             erased, nothing, silent_then_different, silent_once         step, unit, hidden, cell, later, token_before,
                                                                                  p_before, token_after, p_after
lstm.erase            same, candidate, zero, written                              step, unit, before, input, candidate, after
lstm.bounds           state, neither, cell, both                                  cell, cell_step, cell_unit, hidden,
                                                                                  hidden_step, hidden_unit
lstm.forget_bias      under_1, to_10, to_50, over_50                              kept_0, kept_1, kept_2, gate_0, gate_1,
                                                                                  gate_2, steps
lstm.left, gru.left   under_1, to_10, to_50, over_50                              share, steps, from_step, step, unit
*.influence           step:0, step:1, ... (three or four characters of the text)  step, token, p; each option: step, token,
                                                                                  p_without, change
*.parameters          two, three, four, six                                       own, plain, ratio, inputs, units
gru.hold              zero, same, candidate, frozen                               step, unit, before, after, candidate, baseline
gru.plain             r0_z0, r1_z0, r1_z1, r1                                     each option: gap
gru.convention        never, second, first                                        step, unit, difference, before, after, first
gru.merged            forget_output, forget_input, input_output, forget           each option: gap
====================  ==========================================================  =============================================

carry: F = 1 and I = 0 from ``step`` on; what does C do? mute: O = 0 at ``step``; what of C, H and the steps after? erase: F = 0
at ``step``; what is C there? bounds: which of abs(C) and abs(H) exceeds 1 in this run? forget_bias: with b_f = 2 and nothing
else speaking, what share of C is left after ten steps? left: what share of the memory of ``from_step`` is left in this unit
at ``step`` on the direct path? influence: which earlier character, made unknown, changes the likeliest next token's
log-probability most? parameters: how many times those of a plain network? hold: Z = 1 from ``step`` on. plain: which setting
makes a GRU a plain network (same W_xh, W_hh, b_h)? convention: reset before or after the product, same weights: from which
step do the states differ, and by how much? merged: the LSTM gates whose work the update gate does.

Steps, units and tokens are numbers from 0.
"""

from __future__ import annotations

import copy
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from engine.equation import set_to
from engine.notes import Note
from engine.operations import tanh
from engine.recurrent.asking import (
    SAME,
    SEEN,
    UNDECIDED,
    Answer,
    Number,
    Question,
    Run,
    alike,
    floats,
    gap,
    settled,
    shares,
    telling_unit,
    too_short,
)
from engine.recurrent.deep_questions import ASKED as DEEP
from engine.recurrent.gru import GRU
from engine.recurrent.lstm import LSTM, LSTM_STEP
from engine.recurrent.plain_questions import ASKED as PLAIN
from engine.recurrent.rnn import RNN

# --------------------------------------------------------------------------------------------------------------- LSTM


def carry(run: Run) -> Answer | Note:
    """F = 1 and I = 0 from a step on."""
    if run.last < 1:
        return too_short(2)
    step = max(run.step, 1)
    base, changed = run.trace(), run.trace({"F": set_to(1.0, step=(step, None)), "I": set_to(0.0, step=(step, None))})
    before, after, was = base["C"][step - 1, 0], changed["C"][step:, 0], base["C"][step:, 0]
    unit = telling_unit(run, before)
    truths = {
        "zero": alike(gap(after, 0.0)),
        "constant": alike(gap(after, before)),
        "grows": bool((np.abs(after[-1]) > np.abs(before) + SAME).any()),
        "same": alike(gap(after, was)),
    }
    values = {"step": step, "unit": unit, "steps": run.last - step + 1}
    numbers = {"before": before[unit], "after": after[-1, unit], "baseline": was[-1, unit]}
    return settled(truths, values | floats(numbers), prefer="constant")


def mute(run: Run) -> Answer | Note:
    """O = 0 at one step."""
    if run.last < 1:
        return too_short(2)
    step = min(run.step, run.last - 1)
    base, changed = run.trace(), run.trace({"O": set_to(0.0, step=step)})
    later = gap(changed["H"][step + 1 :], base["H"][step + 1 :])
    unit = telling_unit(run, base["H"][step, 0])
    silent = gap(changed["H"][step], 0.0) <= SAME and gap(changed["C"][step], base["C"][step]) <= SAME
    same_later = alike(later)
    truths = {
        "erased": alike(gap(changed["C"][step], 0.0)),
        "nothing": alike(gap(changed["H"], base["H"])),
        "silent_then_different": None if same_later is None else silent and not same_later,
        "silent_once": None if same_later is None else silent and same_later,
    }
    P, P_changed = base["P"][step, 0], changed["P"][step, 0]
    values = {"step": step, "unit": unit, "token_before": int(P.argmax()), "token_after": int(P_changed.argmax())}
    numbers = {"hidden": base["H"][step, 0, unit], "cell": base["C"][step, 0, unit], "later": later}
    return settled(truths, values | floats(numbers | {"p_before": P.max(), "p_after": P_changed.max()}))


def erase(run: Run) -> Answer | Note:
    """F = 0 at one step."""
    if run.last < 1:
        return too_short(2)
    step = max(run.step, 1)
    base, changed = run.trace(), run.trace({"F": set_to(0.0, step=step)})
    before, after = base["C"][step - 1, 0], changed["C"][step, 0]
    given, candidate = changed["I"][step, 0], changed["C_tilde"][step, 0]
    truths = {
        "same": alike(gap(after, base["C"][step, 0])),
        "candidate": alike(gap(after, candidate)),
        "zero": alike(gap(after, 0.0)),
        "written": alike(gap(after, given * candidate)),
    }
    unit = telling_unit(run, before)
    numbers = {"before": before[unit], "input": given[unit], "candidate": candidate[unit], "after": after[unit]}
    return settled(truths, {"step": step, "unit": unit} | floats(numbers), prefer="written")


def bounds(run: Run) -> Answer | Note:
    """Which of C and H leaves the interval from -1 to 1 in this run."""
    trace = run.trace()
    values: dict[str, Number] = {}
    for symbol, name in (("C", "cell"), ("H", "hidden")):
        size = np.abs(trace[symbol][:, 0])
        step, unit = np.unravel_index(int(size.argmax()), size.shape)
        values |= {name: float(trace[symbol][step, 0, unit]), f"{name}_step": int(step), f"{name}_unit": int(unit)}
    if abs(abs(values["cell"]) - 1) < SEEN:
        return UNDECIDED
    cell, hidden = abs(values["cell"]) > 1, abs(values["hidden"]) > 1
    truths = {
        "state": hidden and not cell,
        "neither": not hidden and not cell,
        "cell": cell and not hidden,
        "both": cell and hidden,
    }
    return settled(truths, values)


def forget_bias(_run: Run) -> Answer | Note:
    """What ten steps leave of a cell when nothing but the forget bias speaks (X = 0, H = 0): a run of the equations."""
    steps, values = 10, {"steps": 10.0}
    for bias in (0, 1, 2):
        model = LSTM(1, 1, forget_bias=bias).double()
        start = (torch.zeros(1, 1, 1), torch.ones(1, 1, 1))
        trace = model.trace(torch.zeros(steps, 1, 1), start, do={"H": set_to(0.0), "I": set_to(0.0)})
        values |= {f"kept_{bias}": float(trace["C"][-1, 0, 0]), f"gate_{bias}": float(trace["F"][0, 0, 0])}
    return settled(shares(values["kept_2"]), values | {"steps": steps})


# ---------------------------------------------------------------------------------------------------------- both cells


def left(run: Run) -> Answer | Note:
    """The share of a unit's memory that the direct path has kept over the last ten steps (or since the first)."""
    if run.last < 2:
        return too_short(3)
    step = run.step if run.step >= 2 else run.last
    start = max(step - 10, 0)
    trace, cell = run.trace(), run.model.recurrent
    gate = trace["F" if isinstance(cell, LSTM) else "Z"][start + 1 : step + 1, 0, run.unit].astype(np.float64)
    kept = 1 - gate if isinstance(cell, GRU) and cell.update == "replaces" else gate
    values = {"share": float(kept.prod()), "steps": step - start, "from_step": start, "step": step, "unit": run.unit}
    return settled(shares(float(kept.prod())), values)


def influence(run: Run) -> Answer | Note:
    """The earlier character whose absence changes the prediction most: each is made unknown once, in one batch of runs."""
    step = run.step if run.step >= 3 else run.last
    if step < 3:
        return too_short(4)
    ids = run.ids[: step + 1, :1]
    variants = ids.repeat(1, step + 1)
    places = torch.arange(step)
    variants[places, places] = 0  # <unk>; the last column stays as it is
    with torch.no_grad():
        scores, _ = run.model(variants)
        log_p = torch.log_softmax(scores[step].double(), dim=-1)
    token = int(log_p[-1].argmax())
    change = (log_p[:-1, token] - log_p[-1, token]).abs().numpy()
    best = int(change.argmax())
    clear = [j for j in range(step) if change[j] <= 0.9 * change[best] and change[best] - change[j] >= 0.01 and ids[j] != 0]
    # The nearest two and the first are what a learner would think of.
    wanted = sorted(clear, key=lambda j: (j not in (step - 1, step - 2), j != 0, -change[j]))[:3]
    offered = sorted([best, *wanted])
    each = {
        f"step:{j}": {
            "step": j,
            "token": int(ids[j, 0]),
            "p_without": float(log_p[j, token].exp()),
            "change": float(change[j]),
        }
        for j in offered
    }
    values: dict[str, Number] = {"step": step, "token": token, "p": float(log_p[-1, token].exp())}
    return settled({f"step:{j}": j == best for j in offered}, values, each=each)


def parameters(run: Run) -> Answer | Note:
    """How many times the parameters of a plain network with the same sizes."""
    cell = run.model.recurrent
    own, plain = (sum(p.numel() for p in m.parameters()) for m in (cell, RNN(cell.input_size, cell.hidden_size)))
    blocks = {"two": 2, "three": 3, "four": 4, "six": 6}
    values: dict[str, Number] = {"own": own, "plain": plain, "ratio": own / plain}
    return settled(
        {name: round(own / plain) == count for name, count in blocks.items()},
        values | {"inputs": cell.input_size, "units": cell.hidden_size},
    )


# ---------------------------------------------------------------------------------------------------------------- GRU


def hold(run: Run) -> Answer | Note:
    """Z = 1 from a step on, in the convention that is switched on."""
    if run.last < 1:
        return too_short(2)
    step = max(run.step, 1)
    base, changed = run.trace(), run.trace({"Z": set_to(1.0, step=(step, None))})
    before, after, candidate = base["H"][step - 1, 0], changed["H"][step:, 0], changed["H_tilde"][step:, 0]
    truths = {
        "zero": alike(gap(after, 0.0)),
        "same": alike(gap(after, base["H"][step:, 0])),
        "candidate": alike(gap(after, candidate)),
        "frozen": alike(gap(after, before)),
    }
    unit = telling_unit(run, before)
    numbers = {"before": before[unit], "after": after[-1, unit], "candidate": candidate[-1, unit]}
    values = {"step": step, "unit": unit} | floats(numbers | {"baseline": base["H"][-1, 0, unit]})
    return settled(truths, values, prefer="candidate" if _gru(run).update == "replaces" else "frozen")


def plain(run: Run) -> Answer | Note:
    """Which setting of the gates makes the GRU a plain network with the same weights: each is run beside one."""
    if run.last < 1:
        return too_short(2)
    cell = copy.deepcopy(_gru(run)).double()
    network = RNN(cell.input_size, cell.hidden_size).double()
    with torch.no_grad():
        given = dict(cell.named_parameters())
        for name, parameter in network.named_parameters():
            parameter.copy_(given[name])
        if "b_hh" in given:
            network.get_parameter("b_h").add_(given["b_hh"])
    X = run.model.one_hot(run.ids[:, :1])
    H = network.trace(X)["H"]
    settings: dict[str, dict[str, Any]] = {
        "r0_z0": {"R": set_to(0.0), "Z": set_to(0.0)},
        "r1_z0": {"R": set_to(1.0), "Z": set_to(0.0)},
        "r1_z1": {"R": set_to(1.0), "Z": set_to(1.0)},
        "r1": {"R": set_to(1.0)},
    }
    gaps = {name: gap(cell.trace(X, do=do)["H"], H) for name, do in settings.items()}
    truths, each = {n: alike(g) for n, g in gaps.items()}, {n: {"gap": g} for n, g in gaps.items()}
    return settled(truths, {}, each=each, prefer="r1_z1" if cell.update == "replaces" else "r1_z0")


def convention(run: Run) -> Answer | Note:
    """From which step on the reset before and after the product give other states, with the same weights."""
    if run.last < 1:
        return too_short(2)
    cell, states = _gru(run), {}
    for reset in ("before", "after"):
        other = GRU(cell.input_size, cell.hidden_size, reset=reset, update=cell.update).to(cell.dtype)
        given = dict(cell.named_parameters())
        with torch.no_grad():
            for name, parameter in other.named_parameters():
                parameter.copy_(given.get(name, torch.zeros_like(parameter)))
            if reset == "before" and "b_hh" in given:  # a bias of its own inside the reset has no place there
                other.get_parameter("b_h").add_(given["b_hh"])
        states[reset] = other.trace(run.model.one_hot(run.ids[:, :1]))["H"][:, 0]
    apart = np.abs(states["before"] - states["after"])
    step, unit = (int(i) for i in np.unravel_index(int(apart.argmax()), apart.shape))
    first_same, all_same = alike(float(apart[0].max())), alike(float(apart.max()))
    truths = {
        "never": all_same,
        "second": None if first_same is None or all_same is None else first_same and not all_same,
        "first": None if first_same is None else not first_same,
    }
    differing = np.flatnonzero(apart.max(-1) > SAME)
    numbers = {"difference": apart.max(), "before": states["before"][step, unit], "after": states["after"][step, unit]}
    first = int(differing[0]) if len(differing) else -1
    return settled(truths, {"step": step, "unit": unit, "first": first} | floats(numbers))


def merged(run: Run) -> Answer | Note:
    """The LSTM's own equations with its gates tied to Z in four ways: which of them gives the GRU's state?"""
    cell = copy.deepcopy(_gru(run)).double()
    trace = cell.trace(run.model.one_hot(run.ids[:, :1]))
    before = torch.from_numpy(np.concatenate([trace.start["H"][None], trace["H"][:-1]]))
    candidate, Z = (torch.from_numpy(trace[name].copy()) for name in ("H_tilde", "Z"))
    kept = 1 - Z if cell.update == "replaces" else Z
    one = torch.ones_like(kept)
    C = LSTM_STEP.equations["C"]

    def cells(F: Tensor, I: Tensor) -> Tensor:
        return C(F=F, C_prev=before, I=I, C_tilde=candidate)

    ways = {
        "forget_output": (1 - kept) * tanh(cells(kept, one)),
        "forget_input": cells(kept, 1 - kept),
        "input_output": kept * tanh(cells(one, 1 - kept)),
        "forget": cells(kept, one),
    }
    gaps = {name: gap(value.numpy(), trace["H"]) for name, value in ways.items()}
    truths, each = {n: alike(g) for n, g in gaps.items()}, {n: {"gap": g} for n, g in gaps.items()}
    return settled(truths, {}, each=each, prefer="forget_input")


def _gru(run: Run) -> GRU:
    cell = run.model.recurrent
    if not isinstance(cell, GRU):
        raise TypeError(f"this question is about a GRU, not about {type(cell).__name__}")
    return cell


QUESTIONS: Final[dict[str, tuple[Question, ...]]] = {
    "lstm": tuple(
        Question(id=f"lstm.{name}", ask=ask)
        for name, ask in {
            "carry": carry,
            "mute": mute,
            "influence": influence,
            "forget_bias": forget_bias,
            "bounds": bounds,
            "erase": erase,
            "left": left,
            "parameters": parameters,
        }.items()
    ),
    "gru": tuple(
        Question(id=f"gru.{name}", ask=ask)
        for name, ask in {
            "convention": convention,
            "hold": hold,
            "merged": merged,
            "plain": plain,
            "influence": influence,
            "left": left,
            "parameters": parameters,
        }.items()
    ),
    "deep_rnn": tuple(Question(id=f"deep_rnn.{name}", ask=ask) for name, ask in DEEP.items()),
    "rnn": tuple(Question(id=f"rnn.{name}", ask=ask) for name, ask in (PLAIN | {"influence": influence}).items()),
}
