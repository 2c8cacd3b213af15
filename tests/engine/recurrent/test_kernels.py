"""The fast path against the equations (values and all gradients, float64), torch's layers, and finite differences."""

from __future__ import annotations

import threading
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from engine.recurrent import kernels
from engine.recurrent.gru import GRU
from engine.recurrent.kernel_parts import Work
from engine.recurrent.lstm import LSTM
from engine.recurrent.rnn import RNN
from tests.support import seeded, uniform

T, B, D, H = 11, 3, 5, 7
ATOL = 1e-10

CASES = [
    *(("rnn", {"activation": activation}) for activation in ("tanh", "relu", "sigmoid")),
    *(("gru", {"reset": reset, "update": update}) for reset, update in product(("before", "after"), ("keeps", "replaces"))),
    ("lstm", {}),
]
NAMES = ["-".join((kind, *switches.values())) for kind, switches in CASES]
MODELS: dict[str, Any] = {"rnn": RNN, "gru": GRU, "lstm": LSTM}
LETTERS = {"rnn": "h", "gru": "rzh", "lstm": "ifoc"}


def parameters(kind: str, switches: dict[str, str], inputs: int = D, hidden: int = H, dtype=torch.float64) -> dict[str, Tensor]:
    shapes: dict[str, tuple[int, ...]] = {}
    for letter in LETTERS[kind]:
        shapes |= {f"W_x{letter}": (inputs, hidden), f"W_h{letter}": (hidden, hidden), f"b_{letter}": (hidden,)}
    if switches.get("reset") == "after":
        shapes["b_hh"] = (hidden,)
    # Some arguments of the gates are large on purpose, so that flat parts of the functions are met as well.
    return {
        name: uniform(*shape, seed=number, low=-1.5, high=1.5, dtype=dtype).requires_grad_()
        for number, (name, shape) in enumerate(shapes.items())
    }


def states(kind: str, batch: int = B, hidden: int = H, dtype=torch.float64) -> list[Tensor]:
    count = 2 if kind == "lstm" else 1
    return [uniform(batch, hidden, seed=50 + k, dtype=dtype).requires_grad_() for k in range(count)]


def packed(parts: list[Tensor]) -> Any:
    return tuple(parts) if len(parts) > 1 else parts[0]


def unpacked(state: Any) -> list[Tensor]:
    return [state] if isinstance(state, Tensor) else list(state)


def by_equations(kind: str, X: Tensor, W: dict[str, Tensor], state: list[Tensor], switches: dict[str, str]):
    """The circuit of the model, step by step, with torch's autograd through every operation."""
    model = MODELS[kind](X.shape[-1], W[f"W_h{LETTERS[kind][0]}"].shape[0], **switches)
    begin = dict(zip(model.circuit.carry, state, strict=True))
    results, _ = model.circuit.unroll([{"X": x} for x in X.unbind(0)], W, begin, do={}, record=False)
    return torch.stack([step["H"] for step in results]), [results[-1][name] for name in model.circuit.carry]


def by_kernel(kind: str, X: Tensor, W: dict[str, Tensor], state: Any, switches: dict[str, str]):
    H_all, end = kernels.run(kind, X, W, state, **switches)
    return H_all, unpacked(end)


def gradients(H_all: Tensor, end: list[Tensor], leaves: list[Tensor]) -> list[Tensor]:
    """Of one number that depends on every state, and on the end state once more."""
    total = (H_all * uniform(*H_all.shape, seed=77)).sum()
    for number, part in enumerate(end):
        total = total + (part * uniform(*part.shape, seed=80 + number)).sum()
    found = torch.autograd.grad(total, leaves, allow_unused=True)
    return [torch.zeros_like(leaf) if each is None else each for each, leaf in zip(found, leaves, strict=True)]


def close(one: Tensor, other: Tensor, name: str, atol: float = ATOL) -> None:
    torch.testing.assert_close(one, other, rtol=0, atol=atol, msg=lambda text: f"{name}: {text}")


@pytest.mark.parametrize(("kind", "switches"), CASES, ids=NAMES)
@pytest.mark.parametrize("steps", [1, 2, T])
@pytest.mark.parametrize("given", ["numbers", "ids"])
@pytest.mark.parametrize("begin", ["state", "zeros", "zeros with gradient", "none"])
def test_values_and_every_gradient_are_those_of_the_equations(kind, switches, steps, given, begin):
    W = parameters(kind, switches)
    ids = torch.randint(D, (steps, B), generator=seeded(5))
    rows = torch.nn.functional.one_hot(ids, D).double() if given == "ids" else uniform(steps, B, D, seed=6).requires_grad_()
    state = states(kind)
    if begin != "state":
        state = [torch.zeros_like(part, requires_grad=begin == "zeros with gradient") for part in state]
    leaves = [*W.values(), *(part for part in [rows, *state] if part.requires_grad)]
    H_all, end = by_equations(kind, rows, W, state, switches)
    wanted = gradients(H_all, end, leaves)
    fast, fast_end = by_kernel(kind, ids if given == "ids" else rows, W, None if begin == "none" else packed(state), switches)
    found = gradients(fast, fast_end, leaves)
    close(fast, H_all, "H_all")
    for name, one, other in zip(("H", "C"), fast_end, end, strict=False):
        close(one, other, f"last {name}")
    for number, (one, other) in enumerate(zip(found, wanted, strict=True)):
        close(one, other, f"gradient {[*W, 'X or state', 'state', 'state'][min(number, len(W) + 2)]}")


@pytest.mark.parametrize(("kind", "switches"), CASES, ids=NAMES)
def test_gradients_are_those_of_finite_differences(kind, switches):
    W, X, state = parameters(kind, switches, 2, 3), uniform(3, 2, 2, seed=8).requires_grad_(), states(kind, 2, 3)

    def function(X: Tensor, *rest: Tensor) -> tuple[Tensor, ...]:
        H_all, end = by_kernel(kind, X, dict(zip(W, rest, strict=False)), packed(list(rest[len(W) :])), switches)
        return (H_all, *end)

    assert torch.autograd.gradcheck(function, (X, *W.values(), *state), atol=1e-7)


@pytest.mark.parametrize(("kind", "switches"), CASES, ids=NAMES)
def test_float32_differs_from_float64_by_rounding_only(kind, switches):
    W, ids, state = parameters(kind, switches), torch.randint(D, (T, B), generator=seeded(5)), states(kind)
    exact, _ = by_kernel(kind, ids, W, packed(state), switches)
    single = {name: value.detach().float() for name, value in W.items()}
    rough, _ = by_kernel(kind, ids, single, packed([part.detach().float() for part in state]), switches)
    assert rough.dtype == torch.float32
    torch.testing.assert_close(rough.double(), exact, rtol=3e-5, atol=3e-6)


@pytest.mark.parametrize(("kind", "switches"), CASES, ids=NAMES)
def test_a_frozen_model_gives_no_gradient_and_the_same_values(kind, switches):
    W, ids = parameters(kind, switches), torch.randint(D, (T, B), generator=seeded(5))
    trained, _ = by_kernel(kind, ids, W, None, switches)
    with torch.no_grad():
        frozen, end = by_kernel(kind, ids, W, None, switches)
    assert trained.requires_grad
    assert not frozen.requires_grad
    assert not any(part.requires_grad for part in end)
    close(frozen, trained.detach(), "H_all", atol=0)


@pytest.mark.parametrize(("kind", "switches"), CASES, ids=NAMES)
def test_a_second_backward_pass_through_the_same_run_finds_the_same(kind, switches):
    W, ids, state = parameters(kind, switches), torch.randint(D, (T, B), generator=seeded(5)), states(kind)
    total = by_kernel(kind, ids, W, packed(state), switches)[0].sum()
    leaves = [*W.values(), *state]
    first = torch.autograd.grad(total, leaves, retain_graph=True)
    second = torch.autograd.grad(total, leaves)
    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
def test_a_gradient_of_a_gradient_is_refused(kind):
    W, ids = parameters(kind, {}), torch.randint(D, (T, B), generator=seeded(5))
    total = by_kernel(kind, ids, W, None, {})[0].sum()
    with pytest.raises(RuntimeError, match="differentiated once only"):
        torch.autograd.grad(total, list(W.values()), create_graph=True)


@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_runs_hand_on_their_memory_without_touching_each_other(kind):
    """Two runs alive at once, backward in the order they began and in the other; then in threads at the same time."""
    X = [torch.randint(D, (T, B), generator=seeded(seed)) for seed in range(4)]
    W = parameters(kind, {})

    def alone(ids: Tensor) -> list[Tensor]:
        H_all, end = by_kernel(kind, ids, W, None, {})
        return gradients(H_all, end, list(W.values()))

    wanted = [alone(ids) for ids in X]
    for order in ([0, 1, 2, 3], [3, 1, 0, 2]):
        runs = [by_kernel(kind, ids, W, None, {}) for ids in X]
        found = {k: gradients(*runs[k], list(W.values())) for k in order}
        assert all(torch.equal(a, b) for k in order for a, b in zip(found[k], wanted[k], strict=True))

    results: list[list[Tensor]] = [[] for _ in X]

    def work(k: int) -> None:
        for _ in range(20):
            results[k] = alone(X[k])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(X))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(a, b) for k in range(len(X)) for a, b in zip(results[k], wanted[k], strict=True))


def test_memory_that_runs_hand_on_is_limited():
    small, large = torch.zeros(1), torch.zeros(1, dtype=torch.float64)
    Work._free.clear()
    work = [Work(6, (5, 3, 7), small) for _ in range(9)]
    assert work[0].values.shape == (6, 5, 3, 7)
    blocks = {each.values.data_ptr() for each in work}
    assert len(blocks) == 9
    del work
    assert len(Work._free) == 4
    again = Work(3, (5, 3, 7), large)
    assert again.values.dtype == torch.float64
    assert again.values.data_ptr() in blocks
    del again
    huge = Work(1, (Work.LARGEST // 4 + 1,), small)
    del huge
    assert all(block.numel() < 10_000 for block in Work._free)


def test_inputs_of_any_layout_are_read_rightly():
    W, state = parameters("gru", {}), states("gru")
    X = uniform(B, T, D, seed=6).transpose(0, 1)
    turned = {name: value.detach().t().contiguous().t() if value.ndim == 2 else value.detach() for name, value in W.items()}
    wanted, _ = by_kernel("gru", X.contiguous(), W, packed(state), {})
    found, _ = by_kernel("gru", X, turned, packed([part.detach().t().contiguous().t() for part in state]), {})
    close(found, wanted.detach(), "H_all", atol=1e-14)


def test_nothing_that_was_passed_in_is_changed() -> None:
    for kind, switches in CASES:
        W, X, state = parameters(kind, switches), uniform(T, B, D, seed=6).requires_grad_(), states(kind)
        passed = [*W.values(), X, *state]
        before = [value.detach().clone() for value in passed]
        H_all, end = by_kernel(kind, X, W, packed(state), switches)
        kept = H_all.detach().clone()
        gradients(H_all, end, passed)
        assert all(torch.equal(one, other) for one, other in zip(before, passed, strict=True)), kind
        assert torch.equal(kept, H_all), kind


def test_numbers_that_are_none_are_not_hidden():
    W = parameters("lstm", {})
    with torch.no_grad():
        W["b_f"][2] = float("nan")
    H_all, _ = kernels.run(
        "lstm", torch.zeros(2, 1, dtype=torch.int64), W, (torch.ones(1, H).double(), torch.ones(1, H).double())
    )
    assert H_all.isnan().any()


@pytest.mark.parametrize(
    ("kind", "switches", "message"),
    [
        ("transformer", {}, "kind is rnn, gru or lstm"),
        ("rnn", {"activation": "step"}, "activation is one of"),
        ("gru", {"reset": "never"}, "reset is before or after"),
        ("gru", {"update": "never"}, "reset is before or after"),
    ],
)
def test_unknown_kinds_and_switches_are_refused(kind, switches, message):
    with pytest.raises(ValueError, match=message):
        kernels.run(kind, torch.zeros(1, 1, dtype=torch.int64), {}, None, **switches)


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
def test_an_id_outside_the_table_is_refused(kind):
    with pytest.raises((IndexError, RuntimeError)):
        kernels.run(kind, torch.full((2, 1), D), parameters(kind, {}))
