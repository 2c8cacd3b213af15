"""The questions of the lesson on tokens. Each is answered by cutting the learner's own text, now and with one thing changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from engine.notes import Note
from engine.recurrent.asking import SHARES, UNDECIDED, Answer, Question, settled, shares
from engine.text.batches import Plan
from engine.text.blocks import block_layout
from engine.text.cutting import Cutting, batches, cut
from engine.text.frequencies import rank_frequency

TOO_SHORT: Final = "question.few_tokens"
BATCH: Final = "question.no_batch"
LEVELS: Final = ("character", "word", "bpe")
GRAMS: Final = (1, 2, 3)


@dataclass(frozen=True, kw_only=True)
class Run:
    """What the learner is looking at: a cutting, the sizes of its minibatches, and the seed of their random order.

    ``shown`` tokens of the cutting are those from which the minibatches are made; ``pieces`` is what byte pairs were given.
    """

    cutting: Cutting = field(repr=False)
    plan: Plan
    seed: int
    pieces: int

    def same(self, other: Run) -> bool:
        """Whether the other asks about the same text, cut and numbered alike."""
        sizes = (self.plan, self.seed, self.pieces) == (other.plan, other.seed, other.pieces)
        return sizes and self.cutting.ids == other.cutting.ids and self.cutting.tokens == other.cutting.tokens

    @property
    def ids(self) -> tuple[int, ...]:
        """The numbers from which the minibatches are made."""
        return self.cutting.ids[: self.plan.length]


def number(run: Run) -> Answer | Note:
    """Which of four tokens has the lowest number: the most frequent one, and of equals the first in the alphabet."""
    known = [run.cutting.vocabulary[token] for token in dict.fromkeys(run.cutting.tokens)]
    ranked = sorted(index for index in known if index)
    if len(ranked) < 3:
        return Note(TOO_SHORT, {"count": 3})
    chosen = dict.fromkeys((ranked[0], ranked[len(ranked) // 2], ranked[-1]))
    options = sorted(chosen, key=lambda index: run.cutting.tokens.index(run.cutting.vocabulary.tokens[index]))
    counts = run.cutting.vocabulary.counts
    count = counts[run.cutting.vocabulary.tokens[ranked[0]]]
    ties = sum(counts[run.cutting.vocabulary.tokens[index]] == count for index in ranked)
    return Answer(
        choice=f"token:{ranked[0]}",
        options=tuple(f"token:{index}" for index in options),
        values={"count": count, "ties": ties, "number": ranked[0]},
        each={f"token:{index}": {"token": index} for index in options},
    )


def fewest(run: Run) -> Answer | Note:
    """Which level cuts this text into the fewest tokens."""
    found = {level: len(cut(run.cutting.text, level, pieces=run.pieces).tokens) for level in LEVELS}
    least = min(found.values())
    if sorted(found.values())[1] == least:
        return UNDECIDED
    return settled({level: count == least for level, count in found.items()}, found)


def rare(run: Run) -> Answer | Note:
    """What share of the text becomes ``<unk>`` where a token must occur twice to get a number."""
    counts = run.cutting.vocabulary.counts
    if not counts:
        return Note(TOO_SHORT, {"count": 1})
    once = sum(count for count in counts.values() if count < 2)
    share = once / sum(counts.values())
    values = {"percent": 100 * share, "once": once, "distinct": len(counts)}
    return settled(shares(share), values) if share <= max(high for _, high in SHARES.values()) else UNDECIDED


def needed(run: Run) -> Answer | Note:
    """How many tokens one minibatch needs: one more than it has inputs."""
    plan = run.plan
    inputs = plan.batch_size * plan.num_steps
    offers = dict.fromkeys((inputs, plan.needed, inputs + plan.batch_size, 2 * inputs))
    if len(offers) < 3:
        return UNDECIDED
    values = {"rows": plan.batch_size, "steps": plan.num_steps, "inputs": inputs, "needed": plan.needed}
    return Answer(
        choice=f"count:{plan.needed}",
        options=tuple(f"count:{count}" for count in sorted(offers)),
        values=values,
        each={f"count:{count}": {"count": count} for count in offers},
    )


def shift(run: Run) -> Answer | Note:
    """What the last input of the first row must predict: the token after it, which no input of that row is."""
    if not run.plan.enough:
        return no_batch(run.plan)
    inputs, targets = next(iter(batches(run.ids, "sequential", run.plan, run.seed)))
    target, last, first = int(targets[0, -1]), int(inputs[0, -1]), int(inputs[0, 0])
    known = run.cutting.vocabulary
    others = [index for index in dict.fromkeys((last, first, *inputs[0].tolist(), *range(len(known)))) if index != target]
    if len(others) < 2:
        return Note(TOO_SHORT, {"count": 3})
    options = sorted((target, *others[:2]))
    return Answer(
        choice=f"token:{target}",
        options=tuple(f"token:{index}" for index in options),
        values={"token_last": last, "token_first": first, "steps": run.plan.num_steps},
        each={f"token:{index}": {"token": index} for index in options},
    )


def carry(run: Run) -> Answer | Note:
    """In which of the two ways a row goes on where the same row of the minibatch before has ended."""
    if run.plan.batches < 2:
        return Note(BATCH, {"needed": 2 * run.plan.needed - 1, "length": run.plan.length})
    goes = {}
    for way in ("sequential", "random"):
        blocks = [block for block in block_layout(batches(run.ids, way, run.plan, run.seed)).blocks if block.batch]
        goes[way] = sum(block.continues for block in blocks) / len(blocks)
    if goes["random"] == 1:  # a short text in lucky order
        return UNDECIDED
    truths = {"sequential": goes["random"] < 1, "random": False, "both": False, "neither": False}
    return settled(truths, {"percent_sequential": 100 * goes["sequential"], "percent_random": 100 * goes["random"]})


def grams(run: Run) -> Answer | Note:
    """Whether runs of three tokens fall off faster or slower with their rank than single tokens."""
    found = [rank_frequency(run.cutting.tokens, n).exponent for n in GRAMS]
    if any(exponent is None for exponent in found):
        return Note(TOO_SHORT, {"count": 200})
    one, two, three = (float(exponent or 0.0) for exponent in found)
    if abs(three - one) < 0.02:
        return UNDECIDED
    truths = {"slower": three < one, "faster": three > one, "same": False}
    return settled(truths, {"one": one, "two": two, "three": three})


def no_batch(plan: Plan) -> Note:
    """The note that a text is too short for a single minibatch."""
    return Note(BATCH, {"needed": plan.needed, "length": plan.length})


TOKENS: Final = tuple(
    Question(id=f"tokens.{name}", ask=ask)
    for name, ask in {
        "number": number,
        "fewest": fewest,
        "rare": rare,
        "shift": shift,
        "needed": needed,
        "carry": carry,
        "grams": grams,
    }.items()
)
