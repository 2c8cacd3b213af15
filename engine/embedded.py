"""An embedding before and after training, and what a lesson asks of it: rows, neighbours, maps, dimensions, the last layer.

==========  =================================================================================================================
source      the matrix, one row a token
==========  =================================================================================================================
rnn, gru,   the input matrices of the trained character models side by side: W_xh, or those of all gates. What a token adds
lstm        to every gate is its row
words       vectors of the words of a text from the company that they keep (``engine.text.word_vectors``)
pretrained  the input matrix of a pretrained encoder, its whole words (``engine.embeddings.pretrained``)
==========  =================================================================================================================

Before training: the same model with random weights of its own kind; for words and the pretrained matrix, normal numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from engine.embeddings import Pca, Pretrained, participation_ratio, pca
from engine.recurrent.language_model import RecurrentLanguageModel
from engine.text.vocabulary import Vocabulary
from engine.text.word_vectors import LARGEST, word_vectors
from engine.trace import Array

SOURCES = ("rnn", "gru", "lstm", "words", "pretrained")
CELLS = ("rnn", "gru", "lstm")


@dataclass(frozen=True, kw_only=True)
class Embedded:
    """A vocabulary of V ``tokens``, its matrix ``after`` training and ``before``, both (V, D), and a text's ``ids`` in it.

    ``key`` says what decides all of it.
    """

    key: str
    source: str
    tokens: tuple[str, ...] = field(repr=False)
    after: Array = field(repr=False)
    before: Array = field(repr=False)
    text: tuple[str, ...] = field(repr=False)
    ids: tuple[int, ...] = field(repr=False)

    def matrix(self, state: str) -> Array:
        """The matrix ``before`` or ``after`` training."""
        return self.after if state == "after" else self.before

    @property
    def width(self) -> int:
        return int(self.after.shape[1])

    def index(self, token: str) -> int | None:
        """The number of a token; None where the vocabulary does not have it."""
        return self._numbers.get(token)

    @property
    def _numbers(self) -> dict[str, int]:
        return {token: number for number, token in enumerate(self.tokens)}


def input_matrix(model: RecurrentLanguageModel) -> Array:
    """What each token adds to the model's gates: its W_x matrices side by side, (V, blocks * H), float32."""
    named = {name: value for name, value in model.recurrent.named_parameters() if name.rpartition(".")[2].startswith("W_x")}
    return np.asarray(torch.cat([value.detach() for value in named.values()], dim=1).float().numpy())


def untrained(shape: tuple[int, ...], seed: int, scale: float = 1.0) -> Array:
    """A random matrix, normal with standard deviation ``scale``, float32."""
    drawn = torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * scale
    return np.asarray(drawn.numpy())


def of_model(
    key: str, cell: str, trained: RecurrentLanguageModel, vocabulary: Vocabulary, text: Sequence[str], seed: int
) -> Embedded:
    """The input matrices of a trained character model beside those of the same model with random weights."""
    sizes = trained.vocabulary_size, trained.recurrent.hidden_size
    fresh = RecurrentLanguageModel(cell, *sizes, generator=torch.Generator().manual_seed(seed))
    return Embedded(
        key=key,
        source=cell,
        tokens=vocabulary.tokens,
        after=input_matrix(trained),
        before=input_matrix(fresh),
        text=tuple(text),
        ids=tuple(vocabulary[list(text)]),
    )


def of_words(key: str, tokens: Sequence[str], *, width: int, window: int, seed: int, largest: int = LARGEST) -> Embedded:
    """Vectors of a text's own words; of a text with more different words than ``largest`` the most frequent ones."""
    vocabulary = Vocabulary(tokens, max_size=largest)
    ids = vocabulary[list(tokens)]
    columns = min(width, len(vocabulary))
    after = word_vectors(ids, len(vocabulary), columns, window).astype(np.float32)
    before = untrained(after.shape, seed, float(after.std()) or 1.0)
    return Embedded(
        key=key,
        source="words",
        tokens=vocabulary.tokens,
        after=after,
        before=before,
        text=tuple(tokens),
        ids=tuple(ids),
    )


def of_pretrained(key: str, found: Pretrained, text: Sequence[str], seed: int) -> Embedded:
    """The pretrained matrix and the words of a text that it has; others are left out."""
    numbers = [(token, found.index(token)) for token in text]
    known = [(token, number) for token, number in numbers if number is not None]
    return Embedded(
        key=key,
        source="pretrained",
        tokens=found.tokens,
        after=found.matrix,
        before=untrained(found.matrix.shape, seed, float(found.matrix.std())),
        text=tuple(token for token, _ in known),
        ids=tuple(number for _, number in known),
    )


# --------------------------------------------------------------------------------------------------- what is asked of it


def unit_rows(matrix: Array) -> Array:
    """The rows at length 1; a row of zeros stays."""
    sizes = np.linalg.norm(matrix, axis=1, keepdims=True)
    return np.asarray(matrix / np.where(sizes > 0, sizes, 1))


def nearest(matrix: Array, ids: Sequence[int], count: int) -> tuple[NDArray[np.int64], Array]:
    """For each of ``ids`` (n) the ``count`` nearest other rows by cosine and those cosines, (n, count); equals by number."""
    rows = unit_rows(matrix)
    wanted = np.asarray(ids, dtype=np.int64)
    cosines = rows[wanted] @ rows.T
    cosines[np.arange(len(wanted)), wanted] = -np.inf
    order = np.argsort(-cosines, axis=1, kind="stable")[:, : min(count, len(rows) - 1)]
    return order, np.take_along_axis(cosines, order, axis=1)


@dataclass(frozen=True, kw_only=True)
class Dimensions:
    """The effective dimension of a matrix (V, D): the participation ratio of its centred rows; ``shares`` (k,) of variance."""

    rows: int
    width: int
    effective: float
    shares: Array = field(repr=False)


def dimensions(matrix: Array) -> Dimensions:
    """How many dimensions the rows of a matrix really use, and the variance along each principal direction."""
    shares = pca(matrix, min(matrix.shape)).shares
    effective = participation_ratio(matrix, centred=True)
    return Dimensions(rows=len(matrix), width=matrix.shape[1], effective=effective, shares=shares)


def one_hot_dimensions(size: int) -> Dimensions:
    """Those of one-hot rows, without writing the matrix: V - 1 equal directions around their mean."""
    if size < 2:
        return Dimensions(rows=size, width=size, effective=0.0, shares=np.zeros(size))
    shares = np.full(size, 1 / (size - 1))
    shares[-1] = 0.0
    return Dimensions(rows=size, width=size, effective=float(size - 1), shares=shares)


def maps(found: Embedded) -> dict[str, Pca]:
    """The map onto three principal components, before and after training."""
    return {state: pca(found.matrix(state), 3) for state in ("before", "after")}


@dataclass(frozen=True, kw_only=True)
class LastLayer:
    """Scores of the next token at a step, Y = H W_hq + b_q, all (V,): the product, the bias, their sum, and P = softmax(Y)."""

    product: Array = field(repr=False)
    bias: Array = field(repr=False)
    scores: Array = field(repr=False)
    shares: Array = field(repr=False)
    formulas: tuple[str, ...]  # LaTeX, printed from the equations


def last_layer(model: RecurrentLanguageModel, ids: Sequence[int], step: int) -> LastLayer:
    """The last layer of a character model at a step of a text, by hand from the state that its trace holds."""
    trace = model.trace(torch.tensor(ids)[:, None])
    state = np.asarray(trace["H"][step, 0], dtype=np.float64)
    weight, bias = (np.asarray(trace.weights[name], dtype=np.float64) for name in ("W_hq", "b_q"))
    product = state @ weight
    scores = product + bias
    powers = np.exp(scores - scores.max())
    printed = tuple(trace.latex(name) for name in ("Y", "P"))
    return LastLayer(product=product, bias=bias, scores=scores, shares=powers / powers.sum(), formulas=printed)
