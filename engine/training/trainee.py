"""What a training loop needs of a model: the tensors to change, and the loss of a minibatch. Three ways to the same numbers.

Any module gives scores, and torch's cross-entropy judges them. A recurrent language model gives its states to a loss that has
the output layer in it. A small LSTM is trained in the form in which torch's kernel holds its parameters.
"""

from __future__ import annotations

from typing import Any, Protocol

from torch import Tensor, nn
from torch.nn import functional

from engine.recurrent.kernel_lstm import WholeLSTM, fused
from engine.recurrent.language_model import RecurrentLanguageModel
from engine.recurrent.next_token import IGNORED, next_token_loss
from engine.training.batch import Batch


class Trainee(Protocol):
    """A model as the training loop sees it."""

    parameters: list[Tensor]

    def loss(self, batch: Batch, state: Any) -> tuple[Tensor, Any]:
        """Mean loss of the targets that count, nats per token, and the state after the last step."""


class Scores:
    """Any module: ids (T, B), state -> scores (T, B, V), state."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.parameters: list[Tensor] = [parameter for parameter in model.parameters() if parameter.requires_grad]

    def loss(self, batch: Batch, state: Any) -> tuple[Tensor, Any]:
        scores, state = self.model(batch.X, state)
        return functional.cross_entropy(scores.flatten(0, 1), batch.Y.flatten(), ignore_index=IGNORED), state


class States:
    """A recurrent language model: its states go straight to the loss of the next token."""

    def __init__(self, model: RecurrentLanguageModel) -> None:
        self.model = model
        self.parameters: list[Tensor] = [parameter for parameter in model.parameters() if parameter.requires_grad]

    def loss(self, batch: Batch, state: Any) -> tuple[Tensor, Any]:
        H_all, state = self.run(self.model.checked(batch.X), state)
        output = self.model.output_weights()
        return next_token_loss(H_all, output["W_hq"], output["b_q"], batch.Y), state

    def run(self, ids: Tensor, state: Any) -> tuple[Tensor, Any]:
        """All states (T, B, H) of the top layer, and the state after the last step."""
        return self.model.recurrent(ids, state)  # type: ignore[no-any-return]


class Whole(States):
    """A language model of one LSTM layer that torch's kernel is faster for."""

    def __init__(self, model: RecurrentLanguageModel) -> None:
        super().__init__(model)
        self.lstm = WholeLSTM(model.recurrent.weights()[""])
        self.parameters = [*self.lstm.tensors, *model.output_weights().values()]

    def run(self, ids: Tensor, state: Any) -> tuple[Tensor, Any]:
        return self.lstm.run(ids, state)


def trainee(model: nn.Module) -> Trainee:
    """The way to train this model that was measured to be the fastest."""
    if not isinstance(model, RecurrentLanguageModel):
        return Scores(model)
    one_lstm = model.recurrent.kind == "lstm" and model.recurrent.scopes == [""]
    everything = all(parameter.requires_grad for parameter in model.parameters())
    whole = one_lstm and everything and fused(model.recurrent.weights()[""], ids=True)
    return Whole(model) if whole else States(model)
