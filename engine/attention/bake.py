"""Train the models of the lesson on many heads: ``python -m engine.attention.bake``. About a minute each on one core.

All have the same number of parameters; only the split into heads differs. Data and vocabulary are those of the recurrent
checkpoints, so that their losses may be compared.
"""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass

import torch

from engine.attention.character_model import FOLDER, HEADS, WIDTH, CharacterModel, held_out_loss, train
from engine.data.corpora import king_james, split
from engine.training import checkpoints


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How a model is trained."""

    steps: int = 3000
    batch: int = 32
    rate: float = 4e-3
    seed: int = 7
    unknown: float = 0.005  # share of characters that become <unk>, so that it is trained


def bake(heads: int, plan: Plan) -> None:
    """Train one model and write its checkpoint."""
    generator = torch.Generator().manual_seed(plan.seed)
    vocabulary = checkpoints.load("lstm").vocabulary
    text = king_james()
    training, held_out = (torch.tensor(vocabulary[list(part)]) for part in split(text))
    hidden = torch.rand(len(training), generator=generator) < plan.unknown
    training = torch.where(hidden, 0, training)
    model = CharacterModel(len(vocabulary), heads, generator=generator)
    recent: list[float] = []
    for step, loss in enumerate(
        train(model, training, steps=plan.steps, batch=plan.batch, rate=plan.rate, generator=generator)
    ):
        recent.append(loss)
        if step % 500 == 499:
            sys.stdout.write(f"{heads} heads, step {step + 1}: {sum(recent[-100:]) / 100:.4f}\n")
            sys.stdout.flush()
    losses = {"training": sum(recent[-100:]) / 100, "held_out": held_out_loss(model.eval(), held_out[:200_000])}
    checkpoints.save(
        f"heads-{heads}",
        model,  # type: ignore[arg-type]
        vocabulary,
        config={"vocabulary_size": len(vocabulary), "heads": heads, "width": WIDTH},
        data={"name": "King James Version, prose", "sha256": checkpoints.sha256(text)},
        training=asdict(plan),
        losses=losses,
        folder=FOLDER,
    )
    sys.stdout.write(f"{heads} heads: {losses}\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    for number in map(int, sys.argv[1:]) if sys.argv[1:] else HEADS:
        bake(number, Plan())
