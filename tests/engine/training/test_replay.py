"""Recordings: they leave the training as it was, give its events back exactly, and open the model at any step that was kept."""

import json
import math
from dataclasses import replace

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save as tensor_bytes

from engine.language_models import language_model
from engine.text.vocabulary import Vocabulary
from engine.training import bake, checkpoints, recording, replay
from engine.training.batch import TextBatches
from engine.training.checkpoints import CheckpointError
from engine.training.loop import TrainingConfig, mean_loss, train
from tests.support import seeded

TEXT = "the cat sat on the mat. " * 20
STEPS = 23
RECORDED = sorted(name for name, recipe in bake.RECIPES.items() if recipe.recorded)


def tiny_task(**batches):
    vocabulary = Vocabulary(TEXT)
    ids = bake.ids_of(TEXT, vocabulary)
    return bake.Task(
        vocabulary=vocabulary,
        source=TextBatches(ids=ids, batch_size=3, num_steps=7, sampling="sequential", unknown_share=0.1),
        batches=batches,
        data={"name": "tiny"},
        judge=lambda model: {"held_out": mean_loss(model, ids, rows=2)},
        held_out=lambda model: mean_loss(model, ids, rows=2),
    )


TRAINING = TrainingConfig(
    steps=STEPS, learning_rate=0.02, schedule="cosine", warmup=4, max_norm=0.5, held_out_every=5, final_rate=0.1
)
RECIPES = {
    "cell": bake.Recipe(model={"cell": "lstm", "hidden_size": 5}, training=TRAINING, task="tiny", recorded=True),
    "attention": bake.Recipe(
        model={"cell": "transformer", "width": 6, "heads": 2, "num_layers": 1, "context": 7},
        training=TRAINING,
        task="tiny",
        recorded=True,
    ),
}


@pytest.fixture
def baked(tmp_path, monkeypatch):
    """A function that bakes one of the two recipes, and the events that passed by."""
    monkeypatch.setattr(bake, "TASKS", {"tiny": tiny_task})

    def bake_it(name, folder="one", **changed):
        monkeypatch.setattr(bake, "RECIPES", {name: replace(RECIPES[name], **changed)})
        events = []
        checkpoint = bake.bake(name, tmp_path / folder, events.append)
        return checkpoint, events, tmp_path / folder

    return bake_it


@pytest.mark.parametrize("name", RECIPES)
def test_a_recording_changes_nothing_and_gives_the_events_back_exactly(baked, name):
    checkpoint, events, folder = baked(name)
    plain, _, other = baked(name, "other", recorded=False)
    assert checkpoint.weights_sha256 == plain.weights_sha256
    assert not (other / recording.FOLDER).exists()
    found = replay.read(name, folder)
    assert replay.names(folder) == [name]
    assert checkpoints.names(folder) == [name]
    assert len(found.events) == STEPS
    # The recording has more measurements than the run asked for itself; all that the run had is the same, to the last bit.
    for recorded, event in zip(found.events, events, strict=True):
        assert replace(recorded, held_out=event.held_out) == event
        assert event.held_out is None or recorded.held_out == event.held_out
    assert found.events[-1].held_out == checkpoint.losses["held_out"] == found.held_out[STEPS]
    assert found.events[2:4] == [found.events[2], found.events[3]]
    with pytest.raises(IndexError):
        found.events[STEPS]
    assert found.training["held_out_every"] == 5
    assert replay.training_config(found.training) == TRAINING


@pytest.mark.parametrize("name", RECIPES)
def test_the_model_opens_as_it_was_at_every_step_that_was_kept(baked, name):
    checkpoint, _, folder = baked(name)
    found = replay.read(name, folder)
    assert found.steps == (0, 10, 20, STEPS)
    generator = seeded(0)
    model = language_model(**checkpoint.config, generator=generator)
    states = {0: {key: value.clone() for key, value in model.state_dict().items()}}
    for event in train(model, tiny_task().source, TRAINING, generator):
        states[event.step] = {key: value.clone() for key, value in model.state_dict().items()}
    for step in found.steps:
        opened = found.model_at(step)
        assert not any(parameter.requires_grad for parameter in opened.parameters())
        for key, value in opened.state_dict().items():
            exact = states[step][key]
            assert value.dtype == torch.float32
            assert torch.equal(value, exact if step == STEPS else exact.half().float()), (step, key)
    with torch.no_grad():
        next(found.model_at(10).parameters()).add_(1)  # a copy of its own
    assert torch.equal(next(found.model_at(10).parameters()), next(iter(states[10].values())).half().float())
    assert [found.nearest(step) for step in (-3, 0, 9, 10, 22, STEPS, 99)] == [0, 0, 0, 10, 20, STEPS, STEPS]
    with pytest.raises(ValueError, match=r"not kept at step 11, only at 0, 10, 20, 23"):
        found.model_at(11)


def test_a_curve_has_no_more_points_than_asked_and_covers_every_step(baked):
    _, events, folder = baked("cell")
    found = replay.read("cell", folder)
    for points, until in ((5, None), (300, None), (1, 9), (4, 999), (3, 0), (3, -1)):
        curve, whole = found.curve(points, until), STEPS if until is None else max(0, min(until, STEPS))
        assert len(curve) == min(points, whole)
        assert [step for each in curve for step in range(each.first, each.last + 1)] == list(range(1, whole + 1))
        for each in curve:
            part = events[each.first - 1 : each.last]
            assert each.loss == pytest.approx(sum(event.loss for event in part) / len(part), abs=1e-9)
            assert each.clipped == pytest.approx(sum(event.gradient_norm > 0.5 for event in part) / len(part), abs=1e-9)
            assert (each.tokens, each.learning_rate) == (part[-1].tokens, part[-1].learning_rate)
    assert found.curve(1)[0].held_out == found.held_out[STEPS]


def rewritten(folder, header=None, **tensors):
    path = folder / recording.FOLDER / "cell.safetensors"
    with safe_open(path, framework="pt") as file:
        said = json.loads(file.metadata()[recording.HEADER]) | (header or {})
        found = {key: file.get_tensor(key) for key in file.keys()} | tensors  # noqa: SIM118
    path.write_bytes(tensor_bytes(found, metadata={recording.HEADER: json.dumps(said)}))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "replays" / "cell.safetensors").unlink(), "cell.safetensors"),
        (lambda f: (f / "replays" / "cell.safetensors").write_bytes(b"cos\nsystem\n"), "not a recording"),
        (lambda f: (f / "replays" / "cell.safetensors").write_bytes(tensor_bytes({"loss": torch.ones(1)})), "not a recording"),
        (lambda f: (f / "cell.json").unlink(), "No such file"),
        (lambda f: rewritten(f, {"format": 2}), "format 2"),
        (lambda f: rewritten(f, {"weights_sha256": "0" * 64}), "other weights"),
        (lambda f: rewritten(f, loss=torch.ones(3)), "3 events for a training of 23 steps"),
        (lambda f: rewritten(f, loss=torch.full((STEPS,), float("nan"))), "not a number"),
        (lambda f: rewritten(f, **{"model.output.b_q": torch.ones(3, 2)}), "not those of the checkpoint's model"),
    ],
)
def test_what_was_changed_is_refused(baked, damage, message):
    _, _, folder = baked("cell")
    damage(folder)
    with pytest.raises(CheckpointError, match=message):
        replay.read("cell", folder)


def test_steps_that_are_kept_are_round_and_grow():
    assert recording.kept_steps(1) == [0]
    assert recording.kept_steps(120) == [0, 10, 20, 50, 100]
    kept = recording.kept_steps(50_000)
    assert kept[-3:] == [10_000, 20_000, 30_000]
    assert kept == sorted(set(kept))


# ------------------------------------------------------------------------------------------------- what is shipped


def test_every_character_model_can_be_replayed():
    assert replay.names() == RECORDED
    sizes = [(checkpoints.SHIPPED / recording.FOLDER / f"{name}.safetensors").stat().st_size for name in RECORDED]
    assert sum(sizes) < 6_000_000


@pytest.mark.parametrize("name", RECORDED)
def test_a_recording_begins_as_its_recipe_does_today(name):
    recipe, found = bake.RECIPES[name], replay.read(name)
    generator = seeded(recipe.seed)
    model = language_model(**found.config, generator=generator)
    source = bake.TASKS[recipe.task](**recipe.batches).source
    for event, recorded in zip(train(model, source, recipe.training, generator), found.events[:12], strict=False):
        assert event.loss == pytest.approx(recorded.loss, rel=1e-4)
        assert event.gradient_norm == pytest.approx(recorded.gradient_norm, rel=1e-3)
        assert (event.tokens, event.learning_rate) == (recorded.tokens, recorded.learning_rate)


@pytest.mark.parametrize("name", RECORDED)
def test_the_shipped_recordings_are_those_of_the_shipped_models(name):
    found, checkpoint = replay.read(name), checkpoints.load_any(name)
    assert found.events[-1].tokens == checkpoint.training["tokens"]
    assert found.held_out[found.steps[-1]] == checkpoint.losses["held_out"]
    for point in checkpoint.training["curve"]:
        assert found.held_out[point["step"]] == pytest.approx(point["held_out"], abs=1e-4)
    assert set(found.held_out) >= set(found.steps)
    assert all(
        torch.equal(a, b)
        for a, b in zip(found.model_at(found.steps[-1]).parameters(), checkpoint.model.parameters(), strict=True)
    )
    # The first one is the model as its seed draws it, and knows nothing.
    seed = bake.RECIPES[name].seed
    fresh = language_model(**checkpoint.config, generator=seeded(seed)).state_dict()
    assert all(torch.equal(value, fresh[key].half().float()) for key, value in found.model_at(0).state_dict().items())
    # What is opened has the loss that was measured, up to the rounding to half precision.
    held_out = bake.ids_of(bake.corpora.split(bake.corpora.king_james())[1], found.vocabulary)
    step = found.steps[-4]
    assert mean_loss(found.model_at(step), held_out) == pytest.approx(found.held_out[step], abs=1e-4)
    losses = [found.held_out[step] for step in found.steps]
    assert losses[0] == pytest.approx(math.log(len(found.vocabulary)), abs=0.3)
    assert min(losses) == losses[-1]
