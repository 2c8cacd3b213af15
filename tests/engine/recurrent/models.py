"""Models and inputs of the recurrent tests. All sizes differ and are prime, so that no axis can stand for another."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from engine.recurrent.gru import GRU
from engine.recurrent.lstm import LSTM
from engine.recurrent.rnn import RNN
from engine.recurrent.stack import RecurrentModel

T, B, D, H = 11, 2, 5, 7
ATOL = 1e-10


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def uniform(*shape: int, seed: int) -> Tensor:
    return torch.rand(*shape, generator=seeded(seed), dtype=torch.float64) * 2 - 1


def made(kind: type[RecurrentModel], seed: int = 3, **switches: Any) -> Any:
    """A float64 model whose biases are not 0 (a fault in one of them must show)."""
    model = kind(D, H, generator=seeded(seed), **switches).double()
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter.copy_(uniform(*parameter.shape, seed=100 + number))
    return model


def weights(model: torch.nn.Module) -> dict[str, Any]:
    return {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}


def start(seed: int, count: int = 1, batch: int = B) -> Tensor:
    return uniform(count, batch, H, seed=seed)


def torch_lstm(model: LSTM) -> torch.nn.LSTM:
    """torch's layer with the same weights: blocks in the order i, f, g, o, the second bias 0."""
    layer = torch.nn.LSTM(D, H).double()
    w = {name: parameter.detach() for name, parameter in model.named_parameters()}
    with torch.no_grad():
        layer.weight_ih_l0.copy_(torch.cat([w[f"W_x{k}"].T for k in "ifco"]))
        layer.weight_hh_l0.copy_(torch.cat([w[f"W_h{k}"].T for k in "ifco"]))
        layer.bias_ih_l0.copy_(torch.cat([w[f"b_{k}"] for k in "ifco"]))
        layer.bias_hh_l0.zero_()
    return layer


def torch_gru(model: GRU) -> torch.nn.GRU:
    """torch's layer: reset after the product, blocks in the order r, z, n."""
    layer = torch.nn.GRU(D, H).double()
    w = {name: parameter.detach() for name, parameter in model.named_parameters()}
    with torch.no_grad():
        layer.weight_ih_l0.copy_(torch.cat([w[f"W_x{k}"].T for k in "rzh"]))
        layer.weight_hh_l0.copy_(torch.cat([w[f"W_h{k}"].T for k in "rzh"]))
        layer.bias_ih_l0.copy_(torch.cat([w["b_r"], w["b_z"], w["b_h"]]))
        layer.bias_hh_l0.copy_(torch.cat([torch.zeros(2 * H, dtype=torch.float64), w["b_hh"]]))
    return layer


def torch_rnn(model: RNN) -> torch.nn.RNN:
    layer = torch.nn.RNN(D, H, nonlinearity=model.activation).double()
    w = {name: parameter.detach() for name, parameter in model.named_parameters()}
    with torch.no_grad():
        layer.weight_ih_l0.copy_(w["W_xh"].T)
        layer.weight_hh_l0.copy_(w["W_hh"].T)
        layer.bias_ih_l0.copy_(w["b_h"])
        layer.bias_hh_l0.zero_()
    return layer


def blocks_of_torch(layer: torch.nn.RNNBase, letters: str) -> dict[str, np.ndarray]:
    """torch's gradients under our names: W_x*, W_h* and the bias of each block."""
    grads = {}
    for side, packed in (("x", layer.weight_ih_l0.grad), ("h", layer.weight_hh_l0.grad)):
        for letter, block in zip(letters, packed.split(H), strict=True):
            grads[f"W_{side}{letter}"] = block.T.numpy()
    for letter, block in zip(letters, layer.bias_ih_l0.grad.split(H), strict=True):
        grads[f"b_{letter}"] = block.numpy()
    return grads
