r"""How a matrix that is applied again and again makes gradients grow or fade.

Back through time a gradient passes the product of the Jacobians of all steps. For H_t = phi(X_t W_xh + H_{t-1} W_hh + b_h) one
step is J_t = dH_t / dH_{t-1} = diag(phi'_t) W_hh^T. Three statements that are often confused:

* the spectral radius of W_hh (the largest *modulus* of its eigenvalues) decides, in the linear case and in the long run;
* until then the singular values bound each step: a non-normal matrix with radius below 1 can grow a gradient for a long while;
* above 1 a gradient *can* explode: phi' is at most 1 for tanh, and near 0 where it saturates, so it may vanish all the same.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.recurrent.language_model import RecurrentLanguageModel
from engine.recurrent.stack import State
from engine.trace import Array, frozen

Model = TypeVar("Model", bound=torch.nn.Module)


def non_normal(diagonal: float = 0.9, off: float = 5.0) -> Array:
    """[[a, b], [0, a]]: spectral radius a, and yet its powers grow before they fade, ||W^k|| ~ k |b| a^(k-1)."""
    return np.array([[diagonal, off], [0.0, diagonal]])


@dataclass(frozen=True, kw_only=True)
class Spectrum:
    """The eigenvalues (H,), largest modulus first, and singular values (H,) of a square matrix, largest first.

    ``departure`` is how far the matrix is from normal (Henrici): sqrt(||W||_F^2 - sum |lambda|^2), 0 for a normal one.
    """

    eigenvalues: NDArray[np.complex128] = field(repr=False)
    singular_values: Array = field(repr=False)
    departure: float

    @property
    def radius(self) -> float:
        """The spectral radius: the growth of a power by each further step, in the long run."""
        return float(np.abs(self.eigenvalues[0]))

    @property
    def largest_step(self) -> float:
        """The largest singular value: the most that one step can grow a gradient."""
        return float(self.singular_values[0])


def spectrum(W: Tensor | Array) -> Spectrum:
    """Eigenvalues and singular values of W (H, H), in float64. Raises ``ValueError`` unless square and finite."""
    matrix = _square(W)
    eigenvalues = np.linalg.eigvals(matrix).astype(np.complex128)
    order = np.lexsort((-eigenvalues.imag, -eigenvalues.real, -np.round(np.abs(eigenvalues), 12)))
    left = float(np.square(matrix).sum() - np.square(np.abs(eigenvalues)).sum())
    return Spectrum(
        eigenvalues=eigenvalues[order],
        singular_values=np.linalg.svd(matrix, compute_uv=False),
        departure=float(np.sqrt(max(0.0, left))),
    )


def scaled_to_radius(W: Tensor | Array, radius: float) -> Array:
    """W times the one positive number that gives it this spectral radius; its eigenvectors stay.

    Raises ``ValueError`` for a matrix all of whose eigenvalues are 0: no factor can change that.
    """
    if not (np.isfinite(radius) and radius >= 0):
        raise ValueError(f"a spectral radius is a number of at least 0, not {radius}")
    matrix = _square(W)
    now = spectrum(matrix).radius
    if now == 0:
        raise ValueError("all eigenvalues are 0: no scaling gives another spectral radius")
    return np.asarray(matrix * (radius / now))


def with_radius(model: Model, radius: float) -> Model:
    """A copy of a recurrent model in which every matrix from state to state (W_h*) has this spectral radius."""
    changed = copy.deepcopy(model)
    with torch.no_grad():
        for name, parameter in changed.named_parameters():
            last = name.rpartition(".")[2]
            if last.startswith("W_h") and last != "W_hq":
                parameter.copy_(torch.tensor(scaled_to_radius(parameter, radius)))
    return changed


def _square(W: Tensor | Array) -> Array:
    matrix = np.asarray(W.detach().cpu() if isinstance(W, Tensor) else W, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not len(matrix):
        raise ValueError(f"a matrix from state to state is square, not {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise ValueError("the matrix holds a number that is not finite")
    return matrix


def _norm(matrix: Array) -> float:
    """The largest singular value, from the eigenvalues of M^T M: a third of the time of a singular value decomposition."""
    largest = float(np.abs(matrix).max())
    if largest == 0:
        return 0.0
    scaled = matrix / largest  # so that the square of a tiny matrix does not fall to 0
    return largest * float(np.sqrt(max(0.0, np.linalg.eigvalsh(scaled.T @ scaled)[-1])))


# ------------------------------------------------------------------------------------------- the linear case, exactly


def power_norms(W: Tensor | Array, steps: int) -> Array:
    """||W^k|| (largest singular value) for k = 0, ..., steps: the growth of a gradient in a linear network, exactly."""
    matrix = _square(W)
    power, norms = np.eye(len(matrix)), [1.0]
    for _ in range(steps):
        power = power @ matrix
        norms.append(_norm(power))
    return np.array(norms)


def power_alignment(W: Tensor | Array, vector: Array, steps: int) -> Array:
    """abs(cosine) of the row vector x W^k with the dominant left eigenvector, k = 0, ..., steps.

    For a symmetric W it goes to 1: after many steps every gradient points the same way. Complex leading eigenvalues turn the
    vector for ever; then the cosine with the plane that they span is given.
    """
    matrix = _square(W)
    values, vectors = np.linalg.eig(matrix.T)
    top = np.argmax(np.abs(values))
    plane = np.stack([vectors[:, top].real, vectors[:, top].imag], axis=1)
    basis, sizes, _ = np.linalg.svd(plane, full_matrices=False)
    basis = basis[:, sizes > 1e-12 * sizes[0]]
    x, cosines = np.asarray(vector, dtype=np.float64), []
    for _ in range(steps + 1):
        size = np.linalg.norm(x)
        cosines.append(float(np.linalg.norm(basis.T @ x) / size) if size > 0 else 0.0)
        x = x @ matrix / (size if size > 0 else 1.0)
    return np.array(cosines)


# ------------------------------------------------------------------------------------- the product along a live run


@dataclass(frozen=True, kw_only=True)
class Growth:
    """The product of Jacobians of a run, back from its last step.

    ``steps`` (T, S, S): J_t = d state_t / d state_{t-1}, S the width of the state (for the LSTM H and C side by side).
    ``products`` (T + 1,): spectral norm of J_T ... J_{t+1} for t = T, ..., 0, that is by distance 0, ..., T.
    ``bound`` (T + 1,): the product of the steps' own norms, which no product exceeds.
    """

    steps: Array = field(repr=False)
    products: Array = field(repr=False)
    bound: Array = field(repr=False)

    @property
    def step_norms(self) -> Array:
        """(T,) the largest singular value of each step's Jacobian."""
        return np.array([_norm(jacobian) for jacobian in self.steps])


def growth(jacobians: Array) -> Growth:
    """The growth along the Jacobians (T, S, S) of a run's steps, first step first."""
    steps = np.asarray(jacobians, dtype=np.float64)
    product, norms = np.eye(steps.shape[1]), [1.0]
    for jacobian in steps[::-1]:
        product = product @ jacobian
        norms.append(_norm(product))
    own = np.array([_norm(jacobian) for jacobian in steps[::-1]])
    return Growth(steps=frozen(steps), products=frozen(np.array(norms)), bound=frozen(np.append(1.0, np.cumprod(own))))


def step_jacobians(
    model: RecurrentLanguageModel, ids: Tensor, *, state: State | None = None, scope: str | None = None, batch: int = 0
) -> Array:
    """J_t (T, S, S) of one layer (the top one unless named) on ids (T, B): d state_t / d state_{t-1}, in float64.

    All steps at once: in a finished run each step depends on the state before it alone. Row i, column j: how unit i follows
    unit j of the state before. Raises ``KeyError`` for a layer that is not there.
    """
    model = copy.deepcopy(model).double().requires_grad_(requires_grad=False)
    recurrent, carry = model.recurrent, model.recurrent.circuit.carry
    scope = recurrent.scopes[-len(recurrent.directions)] if scope is None else scope
    if scope not in recurrent.scopes:
        raise KeyError(f"no layer {scope!r}; there are {', '.join(map(repr, recurrent.scopes))}")
    with torch.no_grad():
        X = model.one_hot(ids)
        passes = {p.scope: p for p in recurrent.unroll(X, state)}
        layer = recurrent.scopes.index(scope) // len(recurrent.directions)
        if layer:
            below = recurrent.scopes[(layer - 1) * len(recurrent.directions) : layer * len(recurrent.directions)]
            X = torch.cat([torch.stack([step["H"] for step in passes[name].results]) for name in below], dim=-1)
    p, leaves = passes[scope], {}
    for name in carry:
        states, begin = [step[name][batch] for step in p.results], p.start[name][batch]
        before = [*states[1:], begin] if scope.endswith("backward.") else [begin, *states[:-1]]
        leaves[f"{name}_prev"] = torch.stack(before).requires_grad_()
    with torch.enable_grad():
        results, _ = recurrent.circuit.run({**recurrent.weights()[scope], "X": X[:, batch], **leaves})
        after = torch.cat([results[name] for name in carry], dim=-1)
        each = torch.eye(after.shape[-1], dtype=after.dtype)[:, None].expand(-1, *after.shape)
        found = torch.autograd.grad(after, list(leaves.values()), grad_outputs=each, is_grads_batched=True)
    return frozen(torch.cat(found, dim=-1).transpose(0, 1))


def tanh_run(W: Tensor | Array, start: Array, steps: int, inputs: Array | None = None) -> tuple[Array, Array]:
    """States (steps + 1, H) of h_t = tanh(h_{t-1} W + x_t) from ``start``, and the Jacobians (steps, H, H) for ``growth``.

    Without inputs (steps, H) it runs on its own. Beside ``power_norms`` of the same W: the linear network with that matrix.
    """
    matrix = _square(W)
    states, jacobians = [np.asarray(start, dtype=np.float64)], []
    for t in range(steps):
        state = np.tanh(states[-1] @ matrix + (0.0 if inputs is None else inputs[t]))
        jacobians.append((1 - state**2)[:, None] * matrix.T)
        states.append(state)
    return frozen(np.stack(states)), frozen(np.stack(jacobians))


def rotation(size: int, radius: float, generator: torch.Generator) -> Array:
    """A random orthogonal matrix times ``radius``: every eigenvalue and every singular value has exactly this modulus."""
    Q, R = np.linalg.qr(torch.randn(size, size, generator=generator, dtype=torch.float64).numpy())
    return np.asarray(Q * np.sign(np.diag(R)) * radius)
