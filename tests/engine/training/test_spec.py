"""What a run is, what is refused before it begins, and how a text is split."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.training.loop import TrainingConfig
from engine.training.models import KINDS, build, config_of, count
from engine.training.spec import Limits, Member, RunSpec, examine, fitting, material, rate_faults
from tests.engine.training.live import by_itself
from tests.support import seeded

PROSE = "".join(f"Line {number} of a text that goes on for quite a while, with some words in it.\n" for number in range(200))


def keys(notes):
    return [note.key for note in notes]


def found(text, **changes):
    training = {"steps": 5} | {name: changes.pop(name) for name in ("steps", "learning_rate") if name in changes}
    spec = RunSpec(training=TrainingConfig(**training), **changes)
    return examine(spec, material(text), Limits(parameters=100_000, steps=1000, batch_tokens=4096))


def test_a_spec_is_read_back_as_it_was_written():
    spec = RunSpec(members=(Member(kind="lstm", width=9, layers=2), Member()), sampling="random", seed=3, patience=4, probe="…")
    spec = spec.with_training(max_norm=math.inf, optimizer="sgd", learning_rate=0.25)
    assert RunSpec.from_json(spec.to_json()) == spec
    assert RunSpec.from_json(RunSpec().to_json()) == RunSpec()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layers", [1, 2])
def test_parameters_are_counted_as_the_model_has_them(kind, layers):
    model = build(config_of(kind, 8, layers, 11, 5), seeded(1))
    assert count(kind, 8, layers, 11) == sum(parameter.numel() for parameter in model.parameters())
    with pytest.raises(ValueError, match="one of"):
        config_of("markov", 8, 1, 11, 5)


@given(st.text(alphabet="ab \nc", max_size=9000), st.sampled_from(["", PROSE]))
def test_held_out_and_training_share_no_character(start, rest):
    text = start + rest
    split = material(text)
    if split.held_out:
        assert sorted(split.train + split.held_out) == sorted(text)
        assert len(text) // 25 <= len(split.held_out) <= len(text) // 4 + 1
    else:
        assert split.train == text


def test_held_out_lines_are_whole_and_come_from_all_parts():
    split = material(PROSE)
    lines = split.held_out.splitlines()
    assert set(lines) <= set(PROSE.splitlines())
    assert not set(lines) & set(split.train.splitlines())
    numbers = [int(line.split()[1]) for line in lines]
    assert numbers[0] < 60
    assert numbers[-1] > 140
    assert split.vocabulary == material(PROSE).vocabulary


def test_a_text_without_lines_is_cut_at_its_end_and_a_short_one_not_at_all():
    split = material("ab" * 1000)
    assert (len(split.train), len(split.held_out)) == (1800, 200)
    short = material("a short text")
    assert (short.held_out, keys(short.notes)) == ("", ["training.no_held_out"])


@pytest.mark.parametrize(
    ("text", "key"),
    [("", "training.text_empty"), ("x", "training.text_one"), ("x" * 5000, "training.vocabulary_one")],
)
def test_bat_16_texts_from_which_nothing_can_be_learnt_are_refused(text, key):
    assert keys(found(text).refusals) == [key]


@pytest.mark.parametrize("length", [2, 50, 400])
def test_bat_08_a_text_too_short_for_the_minibatches_is_refused_with_what_would_do(length):
    text = ("ab" * length)[:length]
    note = found(text, batch_size=50, num_steps=50).refusals[0]
    kept = len(material(text).train)
    assert note.key == "training.text_short"
    assert note.values["needed"] == 2501
    assert note.values["length"] == kept
    assert (note.values["steps"], note.values["rows"]) == ((kept - 1) // 50, (kept - 1) // 50)


@given(st.integers(2, 3000), st.integers(1, 128), st.integers(1, 128))
def test_what_fits_fits(length, rows, steps):
    spec = fitting(RunSpec(batch_size=rows, num_steps=steps), length)
    assert spec is not None
    assert spec.batch_size * spec.num_steps < length
    assert 1 <= spec.batch_size <= rows
    assert 1 <= spec.num_steps <= steps
    assert fitting(RunSpec(), 1) is None


def test_a_text_of_20_megabytes_is_used_in_part_and_that_is_said():
    split = material("ab\n" * 7_000_000, Limits(characters=10_000))
    assert len(split.train) + len(split.held_out) == 10_000
    note = split.notes[0]
    assert (note.key, note.values) == ("training.first_part", {"total": 21_000_000, "used": 10_000})


@pytest.mark.parametrize(
    ("rate", "key"),
    [
        (math.nan, "rate_no_number"),
        (math.inf, "rate_no_number"),
        (-0.1, "rate_negative"),
        (1e9, "rate_large"),
        (0.0, ""),
        (1e-3, ""),
    ],
)
def test_opt_08_learning_rates_are_judged_in_words(rate, key):
    assert keys(rate_faults(rate)) == ([f"training.{key}"] if key else [])


def test_opt_08_a_rate_of_0_is_allowed_and_said():
    result = found(PROSE, learning_rate=0.0)
    assert result.refusals == ()
    assert "training.rate_zero" in keys(result.notes)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"members": ()}, "members"),
        ({"members": (Member(),) * 5}, "members"),
        ({"members": (Member(width=4000),)}, "parameters"),
        ({"steps": 2000}, "steps"),
        ({"batch_size": 400, "num_steps": 16}, "batch_tokens"),
    ],
)
def test_what_is_too_much_is_refused(changes, key):
    assert f"training.{key}" in keys(found(PROSE, **changes).refusals)


@pytest.mark.parametrize("kind", KINDS)
def test_opt_09_the_preset_stays_finite_for_every_kind(kind):
    asked = RunSpec(members=(Member(kind=kind, width=64),)).with_training(steps=15)
    weights, losses = by_itself(asked, material(PROSE))
    assert losses[-1] < losses[0]
    assert all(bool(value.isfinite().all()) for value in weights.values())


def test_what_is_asked_is_counted():
    result = found(PROSE, members=(Member(kind="rnn", width=8), Member(kind="lstm", width=8)), batch_size=4, num_steps=9)
    assert result.refusals == ()
    assert result.parameters == tuple(count(kind, 8, 1, len(material(PROSE).vocabulary)) for kind in ("rnn", "lstm"))
    assert result.plan.batches == (len(material(PROSE).train) - 1) // 36
