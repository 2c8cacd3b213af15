"""The training loop: its events, its random stream and its arithmetic."""

import math
from dataclasses import FrozenInstanceError, fields

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from engine.metrics import clip_by_norm
from engine.recurrent.language_model import RecurrentLanguageModel
from engine.text.batches import TooLittleText
from engine.training.batch import TextBatches
from engine.training.loop import Training, TrainingConfig, TrainingEvent, clip, mean_loss, train
from tests.support import seeded, uniform

TEXT = torch.randint(1, 11, (500,), generator=seeded(1))
CELLS = ["rnn", "gru", "lstm"]


def model_of(cell="gru", dtype=torch.float32, seed=3):
    return RecurrentLanguageModel(cell, 11, 7, generator=seeded(seed)).to(dtype)


def source(sampling="sequential", **changed):
    return TextBatches(**({"ids": TEXT, "batch_size": 3, "num_steps": 5, "sampling": sampling} | changed))


def weights(model):
    return {name: value.clone() for name, value in model.state_dict().items()}


def same(one, other):
    return all(torch.equal(one[name], other[name]) for name in one.keys() | other.keys())


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("sampling", ["random", "sequential"])
def test_twenty_steps_at_once_or_in_pieces_give_the_same_weights(cell, optimizer, sampling):
    config = TrainingConfig(steps=20, optimizer=optimizer, learning_rate=0.01, schedule="cosine", warmup=3)
    whole, pieces, other = model_of(cell), model_of(cell), model_of(cell, seed=9)
    at_once = list(train(whole, source(sampling, unknown_share=0.1), config, seeded(5)))
    events, run = [], train(pieces, source(sampling, unknown_share=0.1), config, seeded(5))
    neighbour = train(other, source(), config, seeded(6))
    for count in (1, 5, 2, 12):
        events += [next(run) for _ in range(count)]
        # Whatever others do in between: another run, and draws from the generator that everybody shares.
        next(neighbour)
        torch.default_generator.manual_seed(count)
    assert events == at_once
    assert same(weights(whole), weights(pieces))
    assert next(run, None) is None
    assert [event.step for event in events] == list(range(1, 21))
    assert events[-1].tokens == 20 * 15


def test_another_seed_gives_other_weights():
    runs = []
    for seed in (5, 6):
        model = model_of()
        list(train(model, source("random"), TrainingConfig(steps=3), seeded(seed)))
        runs.append(weights(model))
    assert not same(*runs)


def test_the_shared_generator_is_neither_read_nor_moved():
    before = torch.default_generator.get_state()
    list(train(model_of(), source("random", unknown_share=0.5), TrainingConfig(steps=3), seeded(5)))
    assert torch.equal(torch.default_generator.get_state(), before)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_steps_are_those_of_torchs_own_training(cell, optimizer):
    """The same training written with torch's optimiser and autograd over the recorded equations, in float64."""
    config = TrainingConfig(steps=6, optimizer=optimizer, learning_rate=0.05, schedule="cosine", warmup=2, max_norm=0.3)
    ours, theirs = model_of(cell, torch.float64), model_of(cell, torch.float64)
    events = list(train(ours, source(), config, seeded(5)))
    make = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[optimizer]
    optimiser, state = make(theirs.parameters(), lr=0.05), None
    for event, batch in zip(events, source()(seeded(5)), strict=False):
        parts = () if state is None or not batch.carries else state if isinstance(state, tuple) else (state,)
        begin = tuple(part.detach() for part in parts)
        passes, outputs, _ = theirs.unroll(batch.X, (begin if len(begin) > 1 else begin[0]) if begin else None)
        scores = torch.stack([step["Y"] for step in outputs])
        loss = functional.cross_entropy(scores.flatten(0, 1), batch.Y.flatten())
        ends = [passes[0].results[-1][name][None] for name in theirs.recurrent.circuit.carry]
        state = tuple(ends) if len(ends) > 1 else ends[0]
        optimiser.zero_grad()
        loss.backward()
        norm = torch.cat([parameter.grad.flatten() for parameter in theirs.parameters()]).norm()
        for parameter in theirs.parameters():  # not torch's clipping, which divides by norm + 1e-6
            parameter.grad *= min(1, 0.3 / norm.item())
        for group in optimiser.param_groups:
            group["lr"] = event.learning_rate
        optimiser.step()
        assert event.loss == pytest.approx(loss.item(), abs=1e-10)
        assert event.perplexity == pytest.approx(math.exp(loss.item()), abs=1e-9)
        assert event.gradient_norm == pytest.approx(norm.item(), abs=1e-10)
    for (name, one), other in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10, msg=lambda text, name=name: f"{name}: {text}")


def test_training_learns_a_text_that_repeats():
    ids = torch.tensor([1, 2, 3, 4, 5, 6, 7] * 60)
    model, config = model_of("gru"), TrainingConfig(steps=150, learning_rate=0.02, held_out_every=50)
    events = list(train(model, source(ids=ids), config, seeded(5), lambda model: mean_loss(model, ids, rows=2)))
    assert events[0].loss > 2
    assert events[-1].loss < 0.1
    assert [event.step for event in events if event.held_out is not None] == [50, 100, 150]
    assert events[-1].held_out == pytest.approx(mean_loss(model, ids, rows=2))


# ------------------------------------------------------------------------------------------------- laid down and taken up


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("sampling", ["random", "sequential"])
def test_a_run_that_is_taken_up_again_goes_on_with_the_same_numbers(cell, optimizer, sampling):
    config = TrainingConfig(steps=50, optimizer=optimizer, learning_rate=0.01, schedule="cosine", warmup=3)
    parts = source(sampling, unknown_share=0.1), config
    whole, first, second = model_of(cell), model_of(cell), model_of(cell, seed=8)
    events = list(train(whole, *parts, seeded(5)))
    run = Training(first, *parts, seeded(5))
    begun = [run.advance() for _ in range(40)]  # beyond the end of an epoch
    taken = run.snapshot()
    ahead = [run.advance() for _ in range(10)]
    again = Training(second, *parts, seeded(5))
    again.restore(taken)
    assert [*begun, *ahead] == events
    assert [again.advance() for _ in range(10)] == ahead
    assert same(weights(whole), weights(second))
    assert again.advance() is None
    with pytest.raises(ValueError, match="not begun"):
        again.restore(taken)


# ------------------------------------------------------------------------------------------- rates, clipping, losses


def test_learning_rates_rise_and_fall_as_the_schedule_says():
    config = TrainingConfig(steps=110, learning_rate=0.4, schedule="cosine", warmup=10, final_rate=0.1)
    assert config.rate(1) == pytest.approx(0.04)
    assert config.rate(10) == pytest.approx(0.4)
    assert config.rate(60) == pytest.approx(0.4 * 0.55)
    assert config.rate(110) == pytest.approx(0.04)
    assert TrainingConfig(steps=9, learning_rate=0.4).rate(7) == 0.4


@pytest.mark.parametrize(
    "bad",
    [
        {"steps": -1},
        {"optimizer": "newton"},
        {"schedule": "steps"},
        {"learning_rate": -1e-3},
        {"learning_rate": math.inf},
        {"learning_rate": math.nan},
        {"max_norm": 0.0},
        {"max_norm": math.nan},
        {"final_rate": 1.5},
        {"warmup": -1},
        {"held_out_every": -1},
        {"steps": 2.5},
        {"steps": math.nan},
        {"steps": True},
        {"warmup": 0.5},
    ],
)
def test_a_config_that_cannot_be_meant_is_refused(bad):
    with pytest.raises(ValueError, match=r"no such|negative|below 0"):
        TrainingConfig(**({"steps": 5} | bad))


def test_events_and_configs_are_frozen_and_named():
    with pytest.raises(FrozenInstanceError):
        TrainingConfig(steps=3).steps = 4
    with pytest.raises(TypeError):
        TrainingEvent(1, 2, 3.0, 4.0, 5.0, 6.0)
    assert fields(TrainingEvent)[0].kw_only


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1e-12, 0.0, 1.0, 1e15, 1e30, 1e200, math.inf, math.nan])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("max_norm", [1e-3, 1.0, math.inf])
def test_clipping_is_that_of_the_metrics_at_every_scale(scale, dtype, max_norm):
    gradients = [uniform(3, 5, seed=1, dtype=dtype) * scale, uniform(7, seed=2, dtype=dtype) * scale]
    wanted, wanted_norm = clip_by_norm(gradients, max_norm)
    norm = clip(gradients, max_norm)
    assert norm == pytest.approx(wanted_norm, rel=1e-5, nan_ok=True)
    for one, other in zip(gradients, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=0)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("num_steps", [1, 4, 1000])
def test_mean_loss_is_that_of_each_row_read_from_end_to_end(cell, num_steps):
    model, ids = model_of(cell, torch.float64), TEXT[:102]
    total = 0.0
    for row in range(5):
        part = ids[row * 20 : row * 20 + 21]
        scores, _ = model(part[:-1, None])
        total += functional.cross_entropy(scores[:, 0], part[1:], reduction="sum").item()
    assert mean_loss(model, ids, rows=5, num_steps=num_steps) == pytest.approx(total / 100, abs=1e-10)


def test_mean_loss_of_too_short_a_text_is_refused():
    with pytest.raises(ValueError, match="too few"):
        mean_loss(model_of(), TEXT[:5], rows=5)


# ---------------------------------------------------------------------------------------------------------- batches


@pytest.mark.parametrize("sampling", ["random", "sequential"])
def test_targets_are_the_next_tokens_and_rows_go_on_where_they_say(sampling):
    ids, before, epochs = torch.arange(101), None, 0
    for _, batch in zip(range(40), TextBatches(ids=ids, batch_size=3, num_steps=5, sampling=sampling)(seeded(1)), strict=False):
        assert batch.X.shape == batch.Y.shape == (5, 3)
        assert torch.equal(batch.Y, batch.X + 1)
        assert torch.equal(batch.Y[:-1], batch.X[1:])
        if batch.carries:
            assert sampling == "sequential"
            assert torch.equal(batch.X[0], before.X[-1] + 1)
        else:
            epochs += 1
        before = batch
    assert epochs == (40 if sampling == "random" else 7)  # six minibatches an epoch


@given(st.floats(0.05, 0.95))
def test_a_share_of_the_inputs_becomes_unknown_and_no_target_does(share):
    ids = torch.arange(1, 20_002) % 50 + 1
    batch = next(TextBatches(ids=ids, batch_size=40, num_steps=500, sampling="sequential", unknown_share=share)(seeded(1)))
    assert float((batch.X == 0).double().mean()) == pytest.approx(share, abs=0.02)
    assert (batch.Y > 0).all()
    read = batch.X > 0
    assert torch.equal((batch.X % 50 + 1)[read], batch.Y[read])


def test_batches_that_cannot_be_meant_are_refused():
    with pytest.raises(ValueError, match="random or sequential"):
        source("shuffled")
    with pytest.raises(ValueError, match="unknown_share"):
        source(unknown_share=1.0)
    with pytest.raises(TooLittleText):
        next(source(ids=TEXT[:15])(seeded(1)))
