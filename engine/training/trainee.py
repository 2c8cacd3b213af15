"""What a training loop needs of a model: the tensors to change, and the loss of a minibatch.

Any module gives scores, and cross-entropy judges them. A small LSTM is trained in the form in which torch's kernel holds its
parameters: the same numbers, with nothing copied in a step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from engine.recurrent.kernel_lstm import FUSED_ORDER, KINDS, WholeLSTM, fused
from engine.recurrent.language_model import RecurrentLanguageModel
from engine.training.batch import IGNORED, Batch
from engine.transformer.language_model import TransformerLanguageModel


class Trainee(Protocol):
    """A model as the training loop sees it."""

    parameters: list[Tensor]

    def scores(self, ids: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Scores (T, B, V) of the tokens that follow the ids (T, B), and the state after the last step."""

    def first_broken(self, tensors: Sequence[Tensor]) -> str:
        """Of tensors that lie as ``parameters`` do, the first in the model that is not all finite, by name; "" for none."""


class Parts:
    """Any module: ids (T, B), state -> scores (T, B, V), state. Frozen parameters stay as they are."""

    def __init__(self, model: nn.Module) -> None:
        self.scores: Callable[[Tensor, Any], tuple[Tensor, Any]] = model
        trained = {name: value for name, value in model.named_parameters() if value.requires_grad}
        self.names, self.parameters = list(trained), list[Tensor](trained.values())

    def first_broken(self, tensors: Sequence[Tensor]) -> str:
        found = (name for name, value in zip(self.names, tensors, strict=True) if not bool(value.isfinite().all()))
        return _symbol(next(found, ""))


class Windows(Parts):
    """A Transformer: each minibatch is read by itself, nothing is carried into it."""

    def __init__(self, model: TransformerLanguageModel) -> None:
        super().__init__(model)
        self.model, self.scores = model, self._alone

    def _alone(self, ids: Tensor, state: Any) -> tuple[Tensor, Any]:  # noqa: ARG002 there is none to go on from
        return self.model(ids), None


class Whole:
    """A language model of one LSTM layer for which torch's kernel is the fastest."""

    def __init__(self, model: RecurrentLanguageModel) -> None:
        self.model = model
        self.lstm = WholeLSTM(model.recurrent.weights()[""])
        self.output = model.output_weights()
        self.parameters = [*self.lstm.tensors, *self.output.values()]

    def scores(self, ids: Tensor, state: Any) -> tuple[Tensor, Any]:
        H_all, state = self.lstm.run(self.model.checked(ids), state)
        Y = torch.addmm(self.output["b_q"], H_all.flatten(0, 1), self.output["W_hq"])
        return Y.view(*ids.shape, -1), state

    def first_broken(self, tensors: Sequence[Tensor]) -> str:
        count = len(self.lstm.tensors)
        whole = (
            f"{kind}{block}"
            for kind, value in zip(KINDS, tensors[:count], strict=True)
            for block, part in zip(FUSED_ORDER, value.chunk(len(FUSED_ORDER)), strict=True)
            if not bool(part.isfinite().all())
        )
        output = (name for name, value in zip(self.output, tensors[count:], strict=True) if not bool(value.isfinite().all()))
        return next(chain(whole, output), "")


def _symbol(name: str) -> str:
    """A parameter's name without the module that holds it: ``W_hh``, or ``layers.0.forward.W_hh`` of several layers."""
    return name.removeprefix("recurrent.").removeprefix("output.")


def trainee(model: nn.Module) -> Trainee:
    """The way to train this model that was measured to be the fastest."""
    if isinstance(model, TransformerLanguageModel):
        return Windows(model)
    if not isinstance(model, RecurrentLanguageModel):
        return Parts(model)
    with torch.no_grad():
        # W_hq (H, V) is tall and narrow. The product that makes its gradient is twice as fast when its columns are contiguous.
        W_hq = model.output_weights()["W_hq"]
        W_hq.data = W_hq.t().contiguous().t()
    one_lstm = model.recurrent.kind == "lstm" and model.recurrent.scopes == [""]
    everything = all(parameter.requires_grad for parameter in model.parameters())
    whole = one_lstm and everything and fused(model.recurrent.weights()[""], ids=True)
    return Whole(model) if whole else Parts(model)


def mean_loss_of(scores: Tensor, batch: Batch) -> Tensor:
    """Mean negative log-probability of the targets that count, nats per token."""
    return functional.cross_entropy(scores.flatten(0, 1), batch.Y.flatten(), ignore_index=IGNORED)
