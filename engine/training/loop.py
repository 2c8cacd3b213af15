"""Training as a generator of events: each ``next`` is one step of the optimiser, and nothing happens in between.

The loop owns its random stream (the generator that is passed in), so the same seed gives the same weights bit for bit,
however the steps are asked for and whoever else trains meanwhile. A run whose loss or gradient is no longer a number stops
with that step, says why, and leaves the weights as they were before the step that broke them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from engine.metrics import clip_by_norm, perplexity
from engine.text.batches import carry
from engine.training.batch import IGNORED, Batch
from engine.training.optimizers import SGD, Adam, Optimizer
from engine.training.trainee import mean_loss_of, trainee
from engine.transformer.language_model import TransformerLanguageModel

Source = Callable[[torch.Generator], Iterator[Batch]]


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """How to train. Steps, rates and sizes are checked when the config is made."""

    steps: int
    optimizer: Literal["sgd", "adam"] = "adam"
    learning_rate: float = 1e-3  # 0 is allowed: nothing is learned, and whoever asks is told so
    schedule: Literal["constant", "cosine"] = "constant"
    warmup: int = 0  # steps over which the rate rises to learning_rate
    final_rate: float = 0.0  # where the cosine ends, as a share of learning_rate
    max_norm: float = 1.0  # clipping of the gradient; infinity for none
    held_out_every: int = 0  # steps between measurements on held-out text; 0 for the last step only

    def __post_init__(self) -> None:
        if self.optimizer not in ("sgd", "adam") or self.schedule not in ("constant", "cosine"):
            raise ValueError(f"no such optimizer or schedule: {self.optimizer!r}, {self.schedule!r}")
        counts = (self.steps, self.warmup, self.held_out_every)
        if any(isinstance(count, bool) or not isinstance(count, int) or count < 0 for count in counts):
            raise ValueError(f"numbers of steps must be whole and not negative, not {counts}")
        if not 0 <= self.learning_rate < math.inf or not self.max_norm > 0 or not 0 <= self.final_rate <= 1:
            raise ValueError("learning_rate must not be below 0, max_norm must be above 0, final_rate must lie in 0..1")

    def rate(self, step: int) -> float:
        """The learning rate of a step, counted from 1."""
        if step <= self.warmup:
            return self.learning_rate * step / self.warmup
        if self.schedule == "constant":
            return self.learning_rate
        done = (step - self.warmup) / max(1, self.steps - self.warmup)
        share = self.final_rate + (1 - self.final_rate) * (1 + math.cos(math.pi * done)) / 2
        return self.learning_rate * share


@dataclass(frozen=True, kw_only=True)
class TrainingEvent:
    """What one step did. The model holds the weights after it.

    ``loss`` is the mean over the batch before the update, nats per token; ``gradient_norm`` is taken before clipping.
    ``held_out`` is the mean loss on held-out text after the update, where it was measured. ``diverged`` says what was not
    finite: "loss", "gradient" or "weights", and ``tensor`` which tensor was so first; the weights are then those of the last
    good step, and no event follows.
    """

    step: int
    tokens: int  # predicted tokens, this step included
    loss: float
    perplexity: float
    gradient_norm: float
    learning_rate: float
    held_out: float | None = None
    diverged: Literal["", "loss", "gradient", "weights"] = ""
    tensor: str = ""


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A run laid down between two steps: what it needs to go on with the very same numbers, beside its source and its seed.

    ``weights`` by their names in the model, ``optimizer`` by names of its own, ``state`` what sequential minibatches carry.
    """

    step: int
    tokens: int
    weights: Mapping[str, Tensor] = field(repr=False)
    optimizer: Mapping[str, Tensor] = field(repr=False)
    state: tuple[Tensor, ...] = field(repr=False)


class Training:
    """One run of the loop, step by step, that can be laid down and taken up again.

    Args:
        model: ids (T, B), state -> scores (T, B, V), state. Trained in place; its parameters may be moved (``trainee``).
        source: makes the minibatches from the generator, for instance a ``TextBatches``.
        generator: the run's own random numbers; the loop draws no others.
        held_out: measures the model, for instance with ``mean_loss``; asked as ``config.held_out_every`` says.
    """

    def __init__(
        self,
        model: nn.Module,
        source: Source,
        config: TrainingConfig,
        generator: torch.Generator,
        held_out: Callable[[nn.Module], float] | None = None,
    ) -> None:
        self.model, self.config, self.held_out = model, config, held_out
        self.trained = trainee(model)
        self.optimizer: Optimizer = SGD() if config.optimizer == "sgd" else Adam(self.trained.parameters)
        self.good = [parameter.detach().clone() for parameter in self.trained.parameters]
        self.batches = source(generator)
        self.state: Any = None
        self.step, self.tokens, self.ended = 0, 0, False

    def advance(self) -> TrainingEvent | None:
        """One step; None where the run has come to its end or has diverged. Raises ``ValueError`` where nothing is asked."""
        if self.ended or self.step >= self.config.steps or (batch := next(self.batches, None)) is None:
            return None
        self.step += 1
        parameters, config = self.trained.parameters, self.config
        rate, targets = config.rate(self.step), int((batch.Y != IGNORED).sum())
        if not targets:
            raise ValueError(f"the minibatch of step {self.step} has no target that counts: it is nothing but padding")
        self.tokens += targets
        begin = carry(self.state, batch.X.shape[1]) if batch.carries else None
        scores, self.state = self.trained.scores(batch.X, begin)
        mean = mean_loss_of(scores, batch)
        loss, gradients = mean.item(), list(torch.autograd.grad(mean, parameters))
        norm = math.nan

        def event(diverged: Literal["", "loss", "gradient", "weights"] = "", **values: Any) -> TrainingEvent:
            self.ended = bool(diverged)
            return TrainingEvent(
                step=self.step,
                tokens=self.tokens,
                loss=loss,
                perplexity=perplexity(loss),
                gradient_norm=norm,
                learning_rate=rate,
                diverged=diverged,
                **values,
            )

        if not math.isfinite(loss):
            tensor = self.trained.first_broken(parameters) or ("loss" if bool(scores.isfinite().all()) else "Y")
            _restore(parameters, self.good)  # the step before broke the weights
            return event("loss", tensor=tensor)
        norm = clip(gradients, config.max_norm)
        if not math.isfinite(norm):
            again = mean_loss_of(self.trained.scores(batch.X, begin)[0], batch)  # clipping has left nothing of them
            return event("gradient", tensor=self.trained.first_broken(torch.autograd.grad(again, parameters)))
        with torch.no_grad():
            torch._foreach_copy_(self.good, parameters)
            self.optimizer.step(parameters, gradients, rate)
        last = self.step == config.steps
        if last and (tensor := self.trained.first_broken(parameters)):
            _restore(parameters, self.good)
            return event("weights", tensor=tensor)
        due = last or (config.held_out_every and self.step % config.held_out_every == 0)
        return event(held_out=self.held_out(self.model) if self.held_out is not None and due else None)

    def snapshot(self) -> Snapshot:
        """Copies of everything that the steps to come depend on."""
        parts = () if self.state is None else self.state if isinstance(self.state, tuple) else (self.state,)
        return Snapshot(
            step=self.step,
            tokens=self.tokens,
            weights={name: _copied(value) for name, value in self.model.state_dict().items()},
            optimizer={name: _copied(value) for name, value in self.optimizer.tensors().items()},
            state=tuple(_copied(part) for part in parts),
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Go on where a snapshot was taken, in a run that has not begun: its source is read up to there first."""
        if self.step:
            raise ValueError("a snapshot is taken up by a run that has not begun")
        with torch.no_grad():
            for name, value in self.model.state_dict().items():
                value.copy_(snapshot.weights[name])
            for name, value in self.optimizer.tensors().items():
                value.copy_(snapshot.optimizer[name])
        self.optimizer.steps = snapshot.step
        _restore(self.good, self.trained.parameters)
        self.state = None if not snapshot.state else snapshot.state if len(snapshot.state) > 1 else snapshot.state[0]
        for _ in range(snapshot.step):
            next(self.batches)
        self.step, self.tokens = snapshot.step, snapshot.tokens


def train(
    model: nn.Module,
    source: Source,
    config: TrainingConfig,
    generator: torch.Generator,
    held_out: Callable[[nn.Module], float] | None = None,
) -> Iterator[TrainingEvent]:
    """Train ``model`` in place, one event a step; the arguments are those of ``Training``."""
    run = Training(model, source, config, generator, held_out)
    while (event := run.advance()) is not None:
        yield event


def mean_loss(model: nn.Module, ids: Tensor, rows: int = 32, num_steps: int = 256) -> float:
    """Mean loss in nats per token of a text (N,), read in ``rows`` rows, the state of each carried from its start to its end.

    The few tokens that do not fill the rows are left out. The same ``rows`` always gives the same number; ``num_steps`` only
    says how much is held in memory at a time. A Transformer carries what it still sees, as its ``read`` says.
    """
    read = model.read if isinstance(model, TransformerLanguageModel) else model
    length = (len(ids) - 1) // rows
    if length < 1:
        raise ValueError(f"{len(ids)} tokens are too few for {rows} rows")
    X, Y = (part[: rows * length].view(rows, length).t() for part in (ids, ids[1:]))
    state, total = None, 0.0
    with torch.no_grad():
        for start in range(0, length, num_steps):
            scores, state = read(X[start : start + num_steps].contiguous(), state)
            wanted = Y[start : start + num_steps].flatten()
            total += float(functional.cross_entropy(scores.flatten(0, 1).double(), wanted, reduction="sum"))
    return total / (rows * length)


def clip(gradients: list[Tensor], max_norm: float) -> float:
    """Scale gradients in place so that their one norm is at most ``max_norm``; returns the norm before.

    ``engine.metrics.clip_by_norm`` in one pass over the numbers; where that pass leaves the range of the dtype, the norm is
    not an ordinary number and the careful way is taken instead.
    """
    norm = float(torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients))))
    tiny = 1e-15 if gradients[0].dtype == torch.float32 else 1e-150  # below it squares lose digits
    if not tiny < norm < math.inf:
        clipped, norm = clip_by_norm(gradients, max_norm)
        torch._foreach_copy_(gradients, [value for value in clipped if value is not None])
    elif norm > max_norm:
        torch._foreach_mul_(gradients, max_norm / norm)
    return norm


def _copied(value: Tensor) -> Tensor:
    return value.detach().clone(memory_format=torch.contiguous_format)


def _restore(parameters: list[Tensor], good: list[Tensor]) -> None:
    with torch.no_grad():
        torch._foreach_copy_(parameters, good)
