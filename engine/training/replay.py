"""Replay the training of a shipped model: its events as they were, and the model as it stood at some of the steps.

Reads what ``engine.training.recording`` wrote. Events are exact: the numbers that the training had. Models before the last step
were kept in half precision (float16): their parameters are rounded to 11 significant bits, which changes the loss on held-out
text by less than 0.0001 nats (measured: 0.00002). The model after the last step is the checkpoint itself.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import pairwise
from pathlib import Path
from typing import Any, overload

from safetensors import SafetensorError, safe_open
from torch import Tensor

from engine.language_models import LanguageModel, language_model
from engine.metrics import perplexity
from engine.text.vocabulary import Vocabulary
from engine.training.checkpoints import SHIPPED, Checkpoint, CheckpointError, load_any
from engine.training.loop import TrainingConfig, TrainingEvent
from engine.training.recording import FOLDER, FORMAT, HEADER


class Events(Sequence[TrainingEvent]):
    """All events of a run, each made when it is asked for. The event of step s is ``events[s - 1]``; slices are lists."""

    def __init__(
        self, config: TrainingConfig, loss: Tensor, gradient_norm: Tensor, tokens: int, held_out: Mapping[int, float]
    ) -> None:
        self.config, self.loss, self.gradient_norm = config, loss, gradient_norm
        self.tokens, self.held_out = tokens, held_out

    def __len__(self) -> int:
        return len(self.loss)

    @overload
    def __getitem__(self, index: int) -> TrainingEvent: ...

    @overload
    def __getitem__(self, index: slice) -> list[TrainingEvent]: ...

    def __getitem__(self, index: int | slice) -> TrainingEvent | list[TrainingEvent]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        step = range(1, len(self) + 1)[index]
        loss = float(self.loss[step - 1])
        return TrainingEvent(
            step=step,
            tokens=step * self.tokens,
            loss=loss,
            perplexity=perplexity(loss),
            gradient_norm=float(self.gradient_norm[step - 1]),
            learning_rate=self.config.rate(step),
            held_out=self.held_out.get(step),
        )


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """Steps ``first`` to ``last`` of a run as one point of a curve.

    ``loss`` and ``gradient_norm`` are means over them, ``clipped`` is the share of them whose gradient was clipped;
    ``tokens`` and ``learning_rate`` are those of the last step, ``held_out`` the last measurement among them, if any.
    """

    first: int
    last: int
    tokens: int
    loss: float
    gradient_norm: float
    clipped: float
    learning_rate: float
    held_out: float | None


@dataclass(frozen=True, kw_only=True)
class Replay:
    """A recorded training.

    ``training`` and ``data`` say what was done, as the checkpoint stores them; ``config`` makes the model. ``steps``: where the
    model was kept, 0 (untrained) first and the last step last. ``held_out``: mean loss on held-out text by step, nats per
    token, 0 included. ``cpu_seconds``: what the training took on one core, measuring and all.
    """

    name: str
    config: Mapping[str, Any]
    vocabulary: Vocabulary = field(repr=False)
    training: Mapping[str, Any]
    data: Mapping[str, Any]
    events: Events = field(repr=False)
    steps: tuple[int, ...]
    held_out: Mapping[int, float] = field(repr=False)
    cpu_seconds: int
    kept: Mapping[str, Tensor] = field(repr=False)  # (steps, ...) by parameter, all steps but the last
    final: LanguageModel = field(repr=False)

    def model_at(self, step: int) -> LanguageModel:
        """A model of its own with the parameters after a step, in evaluation mode, without gradients. Takes milliseconds.

        Raises:
            ValueError: the model was not kept at this step; ``nearest`` says at which it was.
        """
        if step not in self.steps:
            raise ValueError(f"{self.name} was not kept at step {step}, only at {', '.join(map(str, self.steps))}")
        place = self.steps.index(step)
        last = place == len(self.steps) - 1
        state = self.final.state_dict() if last else {name: parts[place] for name, parts in self.kept.items()}
        model = language_model(**self.config)
        model.load_state_dict(state)
        return model.eval().requires_grad_(False)

    def nearest(self, step: int) -> int:
        """The last step up to this one at which the model was kept."""
        return max(kept for kept in self.steps if kept <= max(0, step))

    def curve(self, points: int = 300, until: int | None = None) -> list[Stretch]:
        """The run, or its beginning up to a step, in at most so many stretches of (nearly) equal length."""
        whole = len(self.events) if until is None else max(0, min(until, len(self.events)))
        count = min(points, whole)
        ends = [round(number * whole / count) for number in range(count + 1)] if count else []
        return [self._stretch(begin, end) for begin, end in pairwise(ends)]

    def _stretch(self, begin: int, end: int) -> Stretch:
        norms = self.events.gradient_norm[begin:end].double()
        last = self.events[end - 1]
        measured = [step for step in range(begin + 1, end + 1) if step in self.held_out]
        return Stretch(
            first=begin + 1,
            last=end,
            tokens=last.tokens,
            loss=float(self.events.loss[begin:end].double().mean()),
            gradient_norm=float(norms.mean()),
            clipped=float((norms > self.events.config.max_norm).double().mean()),
            learning_rate=last.learning_rate,
            held_out=self.held_out[measured[-1]] if measured else None,
        )


def names(folder: Path = SHIPPED) -> list[str]:
    """The models whose training can be replayed."""
    return sorted(path.stem for path in (folder / FOLDER).glob("*.safetensors"))


def read(name: str, folder: Path = SHIPPED) -> Replay:
    """Read a recording and the checkpoint it led to. Takes milliseconds; callers that share it cache it.

    Raises:
        CheckpointError: a file is missing or damaged, or the recording is that of another checkpoint.
    """
    checkpoint = load_any(name, folder)
    path = folder / FOLDER / f"{name}.safetensors"
    try:
        with safe_open(path, framework="pt") as file:
            header = json.loads((file.metadata() or {})[HEADER])
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 it is no dictionary
        return _made(checkpoint, header, tensors)
    except OSError as error:
        raise CheckpointError(f"{name}: {error.strerror or error} ({path})") from error
    except (json.JSONDecodeError, SafetensorError, KeyError, TypeError) as error:
        raise CheckpointError(f"{name}: not a recording ({type(error).__name__}: {error})") from error


def training_config(stored: Mapping[str, Any]) -> TrainingConfig:
    """The config of a training as ``checkpoints.described`` stored it; what else is stored beside it is left aside."""
    known = {each.name for each in fields(TrainingConfig)}
    given: dict[str, Any] = {key: math.inf if value == "inf" else value for key, value in stored.items() if key in known}
    return TrainingConfig(**given)


def _made(checkpoint: Checkpoint[LanguageModel], header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Replay:
    name = checkpoint.name
    if header["format"] != FORMAT:
        raise CheckpointError(f"{name}: a recording in format {header['format']!r}, not {FORMAT}")
    if header["weights_sha256"] != checkpoint.weights_sha256:
        raise CheckpointError(f"{name}: the recording led to other weights than those of the checkpoint (sha256 differs)")
    held_out = dict(zip(tensors["measured"].tolist(), tensors["held_out"].tolist(), strict=True))
    config = training_config(checkpoint.training)
    kept = {key.removeprefix("model."): value for key, value in tensors.items() if key.startswith("model.")}
    steps = (*tensors["kept"].tolist(), config.steps)
    wanted = {key: (len(steps) - 1, *value.shape) for key, value in checkpoint.model.state_dict().items()}
    if {key: tuple(value.shape) for key, value in kept.items()} != wanted:
        raise CheckpointError(f"{name}: the kept parameters are not those of the checkpoint's model")
    if not len(tensors["loss"]) == len(tensors["gradient_norm"]) == config.steps:
        raise CheckpointError(f"{name}: {len(tensors['loss'])} events for a training of {config.steps} steps")
    if not all(bool(value.isfinite().all()) for value in tensors.values()):
        raise CheckpointError(f"{name}: a recording of what is not a number")
    events = Events(config, tensors["loss"], tensors["gradient_norm"], int(header["tokens_per_step"]), held_out)
    return Replay(
        name=name,
        config=checkpoint.config,
        vocabulary=checkpoint.vocabulary,
        training=checkpoint.training,
        data=checkpoint.data,
        events=events,
        steps=steps,
        held_out=held_out,
        cpu_seconds=int(header["cpu_seconds"]),
        kept=kept,
        final=checkpoint.model,
    )
