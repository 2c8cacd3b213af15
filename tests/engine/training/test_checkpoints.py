"""Shipped checkpoints give the losses that stand beside them, and a checkpoint that was changed is refused."""

import json
import shutil
from functools import cache

import pytest
import torch

from engine.data import corpora
from engine.recurrent.language_model import RecurrentLanguageModel
from engine.text.vocabulary import Vocabulary
from engine.training import checkpoints
from engine.training.bake import EXCERPT, RECIPES, TASKS, Task


@cache
def task(name: str) -> Task:
    return TASKS[name]()


@pytest.mark.parametrize("name", RECIPES)
def test_the_stored_losses_are_those_of_the_stored_weights(name):
    shipped = checkpoints.load(name)
    found = task(RECIPES[name].task).judge(shipped.model)
    for key, value in found.items():
        assert shipped.losses[key] == pytest.approx(value, rel=1e-5), key


def test_the_forget_bias_decides_what_is_recalled():
    lost, kept = (checkpoints.load(f"recall-bias-{bias}").losses for bias in (0, 2))
    assert lost["accuracy"] < 0.25
    assert kept["accuracy"] > 0.95


def test_the_data_is_the_text_it_was_trained_on():
    text, held_out = corpora.split(corpora.king_james())
    data = checkpoints.load("lstm").data
    assert data["sha256"] == checkpoints.sha256(text)
    assert data["held_out_sha256"] == checkpoints.sha256(held_out)
    assert data["excerpt_sha256"] == checkpoints.sha256(EXCERPT.read_bytes())
    assert EXCERPT.read_text(encoding="utf-8")[:200] in held_out


@pytest.fixture
def folder(tmp_path):
    for ending in ("json", "safetensors"):
        shutil.copy(checkpoints.SHIPPED / f"recall-bias-2.{ending}", tmp_path)
    return tmp_path


def test_changed_weights_are_refused(folder):
    path = folder / "recall-bias-2.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(checkpoints.CheckpointError, match="sha256"):
        checkpoints.load("recall-bias-2", folder)


@pytest.mark.parametrize(
    "change", [{"config": {"cell": "gru", "vocabulary_size": 18, "hidden_size": 32}}, {"vocabulary": ["<unk>"]}, {"format": 9}]
)
def test_what_does_not_fit_is_refused(folder, change):
    path = folder / "recall-bias-2.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | change), encoding="utf-8")
    with pytest.raises(checkpoints.CheckpointError):
        checkpoints.load("recall-bias-2", folder)


@pytest.mark.parametrize("name", ["../lstm", "nothing", "lstm/../lstm"])
def test_a_name_is_not_a_path(folder, name):
    with pytest.raises(checkpoints.CheckpointError):
        checkpoints.load(name, folder)


def test_a_half_written_checkpoint_is_none(folder):
    (folder / "recall-bias-2.json").write_bytes((folder / "recall-bias-2.json").read_bytes()[:100])
    with pytest.raises(checkpoints.CheckpointError):
        checkpoints.load("recall-bias-2", folder)


def test_what_is_saved_is_read_back(tmp_path):
    vocabulary = Vocabulary("abc")
    config = {"cell": "gru", "vocabulary_size": len(vocabulary), "hidden_size": 3}
    model = RecurrentLanguageModel(**config, generator=torch.Generator().manual_seed(1))
    checkpoints.save("own", model, vocabulary, config=config, data={}, training={}, losses={}, folder=tmp_path)
    again = checkpoints.load("own", tmp_path)
    assert again.vocabulary.tokens == vocabulary.tokens
    for key, value in model.state_dict().items():
        assert torch.equal(again.model.state_dict()[key], value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["own.json", "own.safetensors"]
