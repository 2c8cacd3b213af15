"""Record a training while it runs, so that it can be replayed: every event, and the model as it was at some of the steps.

A recording is one safetensors file beside the checkpoint (``replays/name.safetensors``), written by ``engine.training.bake``
and read by ``engine.training.replay``. It only looks: nothing of it draws a random number or touches the model.

================  ==================  ======================================================================================
tensor            shape, dtype        what
================  ==================  ======================================================================================
loss              (steps,) float32    the loss of each step, as the training had it
gradient_norm     (steps,) float32    the gradient's norm before clipping, likewise
measured          (n,) int32          steps at which held-out text was read, 0 (before the first step) and the last among them
held_out          (n,) float64        its mean loss there, nats per token, of the unrounded model
kept              (m,) int32          steps whose parameters were kept, 0 first; those of the last step are the checkpoint
model.NAME        (m, ...) float16    a parameter at each of these steps
================  ==================  ======================================================================================

Learning rates and numbers of tokens are not stored: the config gives them. A header says which checkpoint, by its sha256, the
recording belongs to.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import torch
from safetensors.torch import save as tensor_bytes
from torch import Tensor, nn

from engine.training.loop import TrainingEvent

FORMAT = 1
FOLDER = "replays"
HEADER = "recording"
MEASUREMENTS = 50  # evenly spaced over the run, beside those at the steps that are kept


def kept_steps(steps: int) -> list[int]:
    """Round numbers below ``steps`` that grow geometrically: 0 (untrained), 10, 20, 50, 100, 200, 300, 500, 700, 1000, ...

    Most of what can be seen of a training happens early.
    """
    found = [0, 10, 20, 50]
    power = 100
    while power < steps:
        found += [power, power * 2, power * 3, power * 5, power * 7]
        power *= 10
    return [step for step in found if step < steps]


class Recorder:
    """Called with each event of a training; holds what a recording needs of it.

    Args:
        model: the model in training, before its first step.
        steps: how many there will be.
        measure: its loss on held-out text.
    """

    def __init__(self, model: nn.Module, steps: int, measure: Callable[[nn.Module], float]) -> None:
        self.model, self.steps, self.measure = model, steps, measure
        self.kept = kept_steps(steps)
        between = {round(number * steps / MEASUREMENTS) for number in range(1, MEASUREMENTS + 1)}
        self.due = {*self.kept, *between, steps}
        self.losses: list[float] = []
        self.norms: list[float] = []
        self.held_out: dict[int, float] = {}
        self.states: list[dict[str, Tensor]] = []
        self._look(0, None)

    def __call__(self, event: TrainingEvent) -> None:
        self.losses.append(event.loss)
        self.norms.append(event.gradient_norm)
        self._look(event.step, event.held_out)

    def _look(self, step: int, held_out: float | None) -> None:
        if held_out is not None or step in self.due:
            self.held_out[step] = self.measure(self.model) if held_out is None else held_out
        if step in self.kept:
            state = self.model.state_dict()
            self.states.append({name: value.detach().to(torch.float16, copy=True) for name, value in state.items()})

    def content(self, header: Mapping[str, Any]) -> bytes:
        """The file. ``header``: what is to be read back beside the tensors."""
        tensors = {
            "loss": torch.tensor(self.losses, dtype=torch.float32),
            "gradient_norm": torch.tensor(self.norms, dtype=torch.float32),
            "measured": torch.tensor(list(self.held_out), dtype=torch.int32),
            "held_out": torch.tensor(list(self.held_out.values()), dtype=torch.float64),
            "kept": torch.tensor(self.kept, dtype=torch.int32),
        }
        for name in self.states[0]:
            tensors[f"model.{name}"] = torch.stack([state[name] for state in self.states]).contiguous()
        text = json.dumps({"format": FORMAT, **header}, ensure_ascii=False, sort_keys=True, allow_nan=False)
        return tensor_bytes(tensors, metadata={HEADER: text})
