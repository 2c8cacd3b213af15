"""The questions of the lesson on many heads, each answered by running the learner's own layer, now and changed."""

from __future__ import annotations

import dataclasses
from typing import Final

import numpy as np
import torch

from engine.attention.heads_at_work import Run, map_rank, with_shared_blocks, worths
from engine.attention.multihead import MultiHeadAttention
from engine.notes import Note
from engine.recurrent.asking import SEEN, UNDECIDED, Answer, Question, gap, settled

ONE_HEAD: Final = Note("question.one_head")


def parameters(run: Run) -> Answer | Note:
    """What twice as many heads cost at the same width."""
    width, heads = run.attention.width, run.attention.heads
    if width % (2 * heads):
        return UNDECIDED
    counts = [
        sum(p.numel() for p in MultiHeadAttention(width, n, generator=torch.Generator().manual_seed(0)).parameters())
        for n in (heads, 2 * heads)
    ]
    truths = {"same": counts[0] == counts[1], "double": counts[1] == 2 * counts[0], "half": 2 * counts[1] == counts[0]}
    return settled(dict(truths), {"heads": heads, "twice": 2 * heads, "before": counts[0], "after": counts[1]})


def combination(run: Run) -> Answer | Note:
    """How the heads' parts make the output: their sum, their mean, or the largest of them."""
    if run.attention.heads == 1:
        return ONE_HEAD
    trace = run.trace(())
    parts, whole = trace["O_n"][:, run.step].astype(np.float64), trace["O"][run.step].astype(np.float64)
    largest = parts[np.linalg.norm(parts, axis=-1).argmax()]
    close = {"sum": parts.sum(axis=0), "mean": parts.mean(axis=0), "largest": largest}
    truths = {
        name: True if gap(value, whole) < 1e-4 else False if gap(value, whole) > SEEN else None for name, value in close.items()
    }
    values = {"sum": gap(close["sum"], whole), "mean": gap(close["mean"], whole), "step": run.step}
    return settled(truths, values, prefer="sum")


def strongest(run: Run) -> Answer | Note:
    """Whose removal moves the output most, over the whole text."""
    heads = run.attention.heads
    if heads == 1:
        return ONE_HEAD
    if heads < 3:
        return UNDECIDED
    found = sorted(worths(run), key=lambda worth: -worth.change)
    if found[0].change - found[1].change < SEEN:
        return UNDECIDED
    offered = sorted((found[0], found[len(found) // 2], found[-1]), key=lambda worth: worth.head)
    return Answer(
        choice=f"head:{found[0].head}",
        options=tuple(f"head:{worth.head}" for worth in offered),
        values={"change": found[0].change, "least": found[-1].change},
        each={f"head:{worth.head}": {"head": worth.head + 1, "own": worth.change} for worth in offered},
    )


def window(run: Run) -> Answer | Note:
    """The rank of a head's W_q W_k^T: through how many directions of the input its scores see."""
    rank, width, own = map_rank(run.attention, run.head), run.attention.width, run.attention.head_width
    values = {"rank": rank, "width": width, "own": own, "head": run.head + 1, "heads": run.attention.heads}
    if run.attention.heads == 1:
        return ONE_HEAD
    truths = {"own": rank <= own, "width": rank == width, "one": rank == 1}
    return settled(dict(truths), values, prefer="own")


def sharing(run: Run) -> Answer | Note:
    """What becomes of the maps when every head gets the first head's query and key weights."""
    if run.attention.heads == 1:
        return ONE_HEAD
    own, model = run.trace(()), run.model
    shared = with_shared_blocks(run.attention).trace(model.vectors(run.ids), mask=run.mask)
    between = gap(shared["A"][1:], shared["A"][:1])
    before = gap(own["A"][1:], own["A"][:1])
    if before < SEEN:
        return UNDECIDED
    truths = {"identical": between < 1e-6, "alike": 1e-6 <= between < before, "apart": between >= before}
    return settled(dict(truths), {"between": between, "before": before, "heads": run.attention.heads})


def later(run: Run) -> Answer | Note:
    """Where the chosen head's row changes when the last character becomes another one."""
    if len(run.ids) < 4:
        return Note("question.too_short", {"steps": 4})
    changed = run.ids.clone()
    changed[-1] = (changed[-1] + 1) % run.model.E.shape[0]
    before, after = run.trace(()), dataclasses.replace(run, ids=changed).trace(())
    moved = np.abs(after["A"] - before["A"]).max(axis=(0, 2)) > 1e-7
    count, length = int(moved.sum()), len(run.ids)
    truths = {"none": count == 0, "last": bool(moved[-1]) and count == 1, "all": count == length}
    return settled(dict(truths), {"count": count, "length": length})


HEADS: Final = tuple(
    Question(id=f"multihead.{name}", ask=ask)
    for name, ask in (
        ("combination", combination),
        ("parameters", parameters),
        ("strongest", strongest),
        ("window", window),
        ("sharing", sharing),
        ("later", later),
    )
)
