"""A checkpoint that is not one: whatever is wrong with it, the reader hears of one kind of error."""

import json

import pytest
import torch

from engine.recurrent.language_model import RecurrentLanguageModel
from engine.text.vocabulary import Vocabulary
from engine.training import checkpoints
from engine.training.checkpoints import CheckpointError
from tests.support import seeded

VOCABULARY = Vocabulary(list("hello 漢字\n"))
CONFIG = {"cell": "gru", "vocabulary_size": len(VOCABULARY), "hidden_size": 5}


def written(folder):
    model = RecurrentLanguageModel(**CONFIG, generator=seeded(3))
    return checkpoints.save("one", model, VOCABULARY, config=CONFIG, data={}, training={}, losses={}, folder=folder)


@pytest.mark.parametrize(
    "change",
    [
        {"config": CONFIG | {"hidden_size": -1}},
        {"config": CONFIG | {"hidden_size": 5.0}},
        {"config": CONFIG | {"hidden_size": None}},
        {"config": CONFIG | {"cell": "parrot"}},
        {"config": "gru"},
        {"vocabulary": [*VOCABULARY.tokens, "h"]},
        {"vocabulary": [*VOCABULARY.tokens[:-1], 7]},
        {"vocabulary": "hello"},
        {"weights": None},
        {"format": None},
    ],
)
def test_every_fault_of_the_description_is_one_error(tmp_path, change):
    path = written(tmp_path)
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | change), encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"^one: "):
        checkpoints.load("one", tmp_path)


@pytest.mark.parametrize("content", ["", "null", "[]", "7", "[" * 100_000, "\ufeff{}", '{"format": NaN}'])
def test_every_file_that_is_no_description_is_one_error(tmp_path, content):
    written(tmp_path).write_text(content, encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"^one: "):
        checkpoints.load("one", tmp_path)


@pytest.mark.parametrize("name", ["", "one\0", "one/", "o" * 5000, "\ud800"])
def test_a_name_that_no_file_can_have_is_one_error(tmp_path, name):
    written(tmp_path)
    with pytest.raises(CheckpointError):
        checkpoints.load(name, tmp_path)


def test_what_is_whole_is_read(tmp_path):
    written(tmp_path)
    assert torch.isfinite(checkpoints.load("one", tmp_path).model(torch.tensor([[1]]))[0]).all()
