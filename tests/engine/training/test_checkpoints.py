"""Checkpoints: what is written is read back, what was changed is refused, and the shipped ones are what they say."""

import json
import re

import pytest
import torch
from safetensors.torch import load as read_tensors
from safetensors.torch import save as tensor_bytes

from engine.data import corpora, recall
from engine.language_models import language_model
from engine.recurrent.language_model import RecurrentLanguageModel
from engine.text.vocabulary import Vocabulary
from engine.training import bake, checkpoints
from engine.training.checkpoints import CheckpointError
from engine.training.loop import TrainingConfig, mean_loss
from engine.transformer.language_model import TransformerLanguageModel
from tests.support import seeded

VOCABULARY = Vocabulary(list("hello 漢字\n"))
CONFIG = {"cell": "gru", "vocabulary_size": len(VOCABULARY), "hidden_size": 5, "reset": "after"}
CHARACTER_MODELS = ["rnn", "lstm", "gru", "transformer"]


def reader(model):
    """Scores and the state to go on from, of a model of any kind."""
    return model.read if isinstance(model, TransformerLanguageModel) else model


def written(folder, name="one", config=CONFIG, **changed):
    model = RecurrentLanguageModel(**config, generator=seeded(1))
    parts = {"config": config, "data": {"name": "none"}, "training": {"steps": 3}, "losses": {"train": 1.5}} | changed
    checkpoints.save(name, model, VOCABULARY, **parts, folder=folder)
    return model


def edited(path, change):
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")


def test_what_is_written_is_read_back(tmp_path):
    model = written(tmp_path)
    found = checkpoints.load("one", tmp_path)
    assert found.model.state_dict().keys() == model.state_dict().keys()
    assert all(torch.equal(value, model.state_dict()[name]) for name, value in found.model.state_dict().items())
    assert found.vocabulary == VOCABULARY
    assert found.config == CONFIG
    assert found.model.recurrent.reset == "after"
    assert (found.data, found.training, found.losses) == ({"name": "none"}, {"steps": 3}, {"train": 1.5})
    assert found.versions["torch"] == torch.__version__
    assert found.weights_sha256 == checkpoints.sha256((tmp_path / "one.safetensors").read_bytes())
    assert not found.model.training
    assert not any(parameter.requires_grad for parameter in found.model.parameters())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.json", "one.safetensors"]
    assert checkpoints.names(tmp_path) == ["one"]


def test_two_readers_do_not_share_their_weights(tmp_path):
    written(tmp_path)
    one, other = checkpoints.load("one", tmp_path), checkpoints.load("one", tmp_path)
    one.model.recurrent.W_hh.add_(1)
    assert not torch.equal(one.model.recurrent.W_hh, other.model.recurrent.W_hh)


def test_a_file_that_fails_half_way_leaves_the_old_one(tmp_path, monkeypatch):
    before = written(tmp_path)
    monkeypatch.setattr(
        checkpoints.os, "fsync", lambda _descriptor: (_ for _ in ()).throw(OSError(28, "No space left on device"))
    )
    with pytest.raises(OSError, match="No space left"):
        written(tmp_path, config=CONFIG | {"hidden_size": 6})
    monkeypatch.undo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.json", "one.safetensors"]
    assert torch.equal(checkpoints.load("one", tmp_path).model.recurrent.W_hh, before.recurrent.W_hh)


def test_nothing_is_written_that_json_has_no_number_for(tmp_path):
    with pytest.raises(ValueError, match="JSON compliant"):
        written(tmp_path, losses={"train": float("nan")})
    assert checkpoints.described(TrainingConfig(steps=1, max_norm=float("inf")))["max_norm"] == "inf"


def flipped(folder):
    path = folder / "one.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def replaced(folder, **tensors):
    """Other weights, with the right sha256: only the check of what is inside can notice."""
    path = folder / "one.safetensors"
    content = tensor_bytes(read_tensors(path.read_bytes()) | tensors)
    path.write_bytes(content)
    edited(folder / "one.json", lambda j: j["weights"].update(sha256=checkpoints.sha256(content)))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "one.json").unlink(), "No such file"),
        (lambda f: (f / "one.safetensors").unlink(), "No such file"),
        (flipped, "sha256 differs"),
        (lambda f: (f / "one.json").write_text("{", encoding="utf-8"), "not a checkpoint"),
        (lambda f: (f / "one.json").write_bytes(b"\xff\xfe"), "not a checkpoint"),
        (lambda f: edited(f / "one.json", lambda j: j.pop("weights")), "not a checkpoint"),
        (lambda f: edited(f / "one.json", lambda j: j.update(format=2)), "format 2"),
        (lambda f: edited(f / "one.json", lambda j: j["config"].update(hidden_size=6)), "do not fit the model"),
        (lambda f: edited(f / "one.json", lambda j: j["config"].update(reset="before")), "recurrent.b_hh"),
        (lambda f: edited(f / "one.json", lambda j: j["config"].update(cell="parrot")), "cell is one of"),
        (lambda f: edited(f / "one.json", lambda j: j["config"].update(colour="red")), "not a checkpoint"),
        (lambda f: edited(f / "one.json", lambda j: j["vocabulary"].pop()), "tokens in the vocabulary"),
        (lambda f: edited(f / "one.json", lambda j: j["vocabulary"].reverse()), "stored vocabulary"),
        (lambda f: replaced(f, more=torch.zeros(2)), "do not fit the model of its config: more"),
        (lambda f: replaced(f, **{"output.b_q": torch.zeros(3)}), "output.b_q"),
        (lambda f: replaced(f, **{"output.b_q": torch.full((len(VOCABULARY),), float("nan"))}), "not numbers in output.b_q"),
    ],
)
def test_what_was_changed_is_refused(tmp_path, damage, message):
    written(tmp_path)
    damage(tmp_path)
    with pytest.raises(ValueError, match=message):
        checkpoints.load("one", tmp_path)


def test_weights_that_are_no_safetensors_are_refused(tmp_path):
    written(tmp_path)
    (tmp_path / "one.safetensors").write_bytes(b"cos\nsystem\n")
    edited(tmp_path / "one.json", lambda j: j["weights"].update(sha256=checkpoints.sha256(b"cos\nsystem\n")))
    with pytest.raises(CheckpointError, match="not a checkpoint"):
        checkpoints.load("one", tmp_path)


@pytest.mark.parametrize("name", ["../one", "nested/one", "/one", ".."])
def test_a_name_does_not_lead_out_of_its_folder(tmp_path, name):
    (tmp_path / "nested").mkdir()
    written(tmp_path)
    with pytest.raises(CheckpointError):
        checkpoints.load(name, tmp_path / "nested")


# ------------------------------------------------------------------------------------------------- what is shipped


def test_the_shipped_checkpoints_are_those_of_the_recipes():
    assert checkpoints.names() == sorted(bake.RECIPES)
    for name, recipe in bake.RECIPES.items():
        found = checkpoints.load_any(name)
        assert found.config == {"vocabulary_size": len(found.vocabulary), **recipe.model}
        assert found.training["seed"] == recipe.seed
        assert found.training.items() >= checkpoints.described(recipe.training).items()
        assert (checkpoints.SHIPPED / f"{name}.safetensors").stat().st_size < 400_000


def test_the_excerpt_is_held_out_text():
    text = bake.EXCERPT.read_text(encoding="utf-8")
    train, held_out = corpora.split(corpora.king_james())
    assert 15_000 < len(text) < 25_000
    assert text in held_out
    assert not set(text.splitlines()) & set(train.splitlines())


@pytest.mark.parametrize("name", CHARACTER_MODELS)
def test_the_losses_of_the_shipped_models_are_theirs(name):
    """On the excerpt, which is in the repository, and on all held-out text, which the test set-up installs."""
    found = checkpoints.load_any(name)
    train, held_out = corpora.split(corpora.king_james())
    assert found.data["sha256"] == checkpoints.sha256(train)
    assert found.data["held_out_sha256"] == checkpoints.sha256(held_out)
    assert found.data["excerpt_sha256"] == checkpoints.sha256(bake.EXCERPT.read_bytes())
    assert bake.excerpt_loss(found.model, found.vocabulary) == pytest.approx(found.losses["excerpt"], abs=1e-4)
    assert mean_loss(found.model, bake.ids_of(held_out, found.vocabulary)) == pytest.approx(found.losses["held_out"], abs=1e-4)


@pytest.mark.parametrize("name", CHARACTER_MODELS)
def test_the_vocabulary_is_that_of_the_training_text(name):
    found = checkpoints.load_any(name)
    train, held_out = corpora.split(corpora.king_james())
    assert found.vocabulary == Vocabulary(train)
    assert found.vocabulary.tokens[0] == "<unk>"
    assert set(held_out) <= set(found.vocabulary.tokens)
    # Unknown characters were met in training and are never foretold.
    ids = torch.tensor(found.vocabulary[list("And God said, Let there be")])[:, None]
    probabilities = reader(found.model)(ids)[0].softmax(-1)
    assert float(probabilities[..., 0].max()) < 1e-3
    start = language_model(**found.config, generator=seeded(bake.RECIPES[name].seed))
    key = {"rnn": "recurrent.W_xh", "lstm": "recurrent.W_xi", "gru": "recurrent.W_xr", "transformer": "W_e"}[name]
    assert not torch.equal(found.model.state_dict()[key][0], start.state_dict()[key][0])


@pytest.mark.parametrize("name", CHARACTER_MODELS)
def test_the_shipped_models_complete_english_words(name):
    found = checkpoints.load_any(name)
    read = reader(found.model)
    words = set(re.findall(r"[a-z]+", corpora.king_james().lower()))
    prefix = "And the king said unto the peop"
    scores, state = read(torch.tensor(found.vocabulary[list(prefix)])[:, None])
    written = []
    for _ in range(200):
        token = int(scores[-1, 0].argmax())
        written.append(found.vocabulary.to_tokens(token))
        scores, state = read(torch.tensor([[token]]), state)
    text = prefix + "".join(written)
    assert text.startswith("And the king said unto the people")
    made = re.findall(r"[a-z]+", text.lower())[:-1]
    assert sum(word in words for word in made) >= 0.95 * len(made)


def test_a_recipe_can_be_baked_again_and_gives_the_same_weights(tmp_path, monkeypatch):
    small = bake.Recipe(
        model={"cell": "lstm", "hidden_size": 8, "forget_bias": 2.0}, training=TrainingConfig(steps=5), task="recall", seed=4
    )
    monkeypatch.setattr(bake, "RECIPES", {"small": small})
    events = []
    one = bake.bake("small", tmp_path / "one", events.append)
    other = bake.bake("small", tmp_path / "other")
    assert len(events) == 5
    assert one.weights_sha256 == other.weights_sha256
    assert one.losses == other.losses
    assert one.losses["chance"] == 1 / len(recall.SYMBOLS)
    assert one.training["seed"] == 4


def test_a_training_that_breaks_leaves_no_checkpoint(tmp_path, monkeypatch):
    recipe = bake.Recipe(
        model={"cell": "rnn", "hidden_size": 8},
        training=TrainingConfig(steps=50, optimizer="sgd", learning_rate=3e38),
        task="recall",
    )
    monkeypatch.setattr(bake, "RECIPES", {"broken": recipe})
    with pytest.raises(ArithmeticError, match="is not finite"):
        bake.bake("broken", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_command_line_names_its_recipes(capsys):
    with pytest.raises(SystemExit):
        bake.main(["unheard-of"])
    assert "recall-bias-2" in capsys.readouterr().err
