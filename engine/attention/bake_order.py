"""Train the models of the lesson on positions: the characters' (``positions-learned``, rotary, alibi, none) and those that
reverse digits (``reverse-sinusoidal``, learned, rotary, alibi, none, scaled).

``make bake reverse-learned``; half a minute to two minutes each on one core. Data, vocabulary and plan of the first are those
of the lesson on many heads, so that their losses may be compared; the digits are drawn as ``engine.attention.reversing`` says.
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

import torch

from engine.attention import character_model, order_model, reversing
from engine.attention.bake import Plan
from engine.attention.character_model import held_out_loss
from engine.attention.order_model import OrderModel
from engine.attention.reversing import ReversingModel
from engine.data.corpora import king_james, split
from engine.text.vocabulary import Vocabulary
from engine.training import checkpoints

EXCERPT = checkpoints.SHIPPED / "held_out.txt"
CHARACTERS, DIGITS = "positions-", "reverse-"
NAMES = (*(CHARACTERS + kind for kind in order_model.BAKED), *(DIGITS + variant for variant in reversing.VARIANTS))
CHARACTER_PLAN = Plan()
DIGIT_PLAN = Plan(steps=3000, batch=64, rate=3e-3, unknown=0.0)


def bake(name: str, folder: Path = order_model.FOLDER) -> None:
    """Train one of ``NAMES`` and write its checkpoint."""
    start, kind = name.split("-")
    if f"{start}-" == DIGITS:
        bake_digits(kind, DIGIT_PLAN, folder)
    else:
        bake_characters(kind, CHARACTER_PLAN, folder)


def said(name: str, step: int, recent: list[float]) -> None:
    """Tell every 500 steps how far it is."""
    if step % 500 == 499:
        sys.stdout.write(f"{name}, step {step + 1}: {sum(recent[-100:]) / 100:.4f}\n")
        sys.stdout.flush()


def excerpt_ids(vocabulary: Vocabulary) -> torch.Tensor:
    """The shipped excerpt of the held-out text as numbers."""
    return torch.tensor(vocabulary[list(EXCERPT.read_text(encoding="utf-8"))])


def bake_characters(kind: str, plan: Plan, folder: Path) -> None:
    """Train one model of characters and write its checkpoint."""
    generator = torch.Generator().manual_seed(plan.seed)
    vocabulary = checkpoints.load("lstm").vocabulary
    text = king_james()
    training, held_out = (torch.tensor(vocabulary[list(part)]) for part in split(text))
    hidden = torch.rand(len(training), generator=generator) < plan.unknown
    training = torch.where(hidden, 0, training)
    config = {"vocabulary_size": len(vocabulary), "kind": kind}
    model = OrderModel(len(vocabulary), kind=kind, generator=generator)
    recent: list[float] = []
    run = character_model.train(model, training, steps=plan.steps, batch=plan.batch, rate=plan.rate, generator=generator)
    for step, loss in enumerate(run):
        recent.append(loss)
        said(kind, step, recent)
    model.eval()
    losses = {
        "training": sum(recent[-100:]) / 100,
        "held_out": held_out_loss(model, held_out[:200_000]),
        "excerpt": held_out_loss(model, excerpt_ids(vocabulary)),
    }
    checkpoints.save(
        kind,
        model,  # type: ignore[arg-type]
        vocabulary,
        config=config,
        data={"name": "King James Version, prose", "sha256": checkpoints.sha256(text)},
        training=asdict(plan),
        losses=losses,
        folder=folder,
    )
    sys.stdout.write(f"{kind}: {losses}\n")


def bake_digits(variant: str, plan: Plan, folder: Path) -> None:
    """Train one model that reverses digits and write its checkpoint."""
    generator = torch.Generator().manual_seed(plan.seed)
    model = ReversingModel(variant, generator=generator)
    recent: list[float] = []
    run = reversing.train(model, steps=plan.steps, batch=plan.batch, rate=plan.rate, generator=generator)
    for step, loss in enumerate(run):
        recent.append(loss)
        said(f"reverse {variant}", step, recent)
    model.eval()
    losses = {"training": sum(recent[-100:]) / 100, "fixed": reversing.fixed_loss(model)}
    checkpoints.save(
        f"{DIGITS}{variant}",
        model,  # type: ignore[arg-type]
        Vocabulary(list("0123456789")),
        config={"variant": variant},
        data={
            "name": "random digits to be reversed",
            "lengths": [reversing.SHORTEST, reversing.LONGEST],
            "digits": reversing.DIGITS,
        },
        training=asdict(plan),
        losses=losses,
        folder=folder,
    )
    sys.stdout.write(f"{DIGITS}{variant}: {losses}\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    for given in sys.argv[1:] or NAMES:
        bake(given)
