"""What the lessons' walks say happens is what happens: each step's link is followed on the shipped models, and looked at."""

from urllib.parse import parse_qsl

import numpy as np
import pytest

from engine.trace import Array, Trace
from engine.training import checkpoints
from pages.ui import runs
from pages.ui.config import SAMPLE, GRUConfig, LSTMConfig, RecurrentConfig, from_query
from pages.ui.texts import sections
from pages.ui.words import LANGUAGES

KINDS: dict[str, type[RecurrentConfig]] = {"lstm": LSTMConfig, "gru": GRUConfig}
STEPS = {lesson: sorted(name for name in sections(lesson, "en") if name.startswith("try.")) for lesson in KINDS}


def followed(lesson: str, name: str, lang: str = "en") -> RecurrentConfig:
    """The config that a step sets up on the sample text; its link asks for nothing that is not there."""
    address, _, _ = sections(lesson, lang)[name].partition("\n")
    assert address.startswith("link: ")
    config, notes = from_query(
        KINDS[lesson], {"text": SAMPLE} | dict(parse_qsl(address.removeprefix("link: "), strict_parsing=True))
    )
    assert notes == ()
    return config


def traced(lesson: str, config: RecurrentConfig) -> Trace:
    return runs.run(lesson, config).trace


def values(trace: Trace, name: str) -> Array:
    return trace[name][:, 0]


@pytest.mark.parametrize(("lesson", "name"), [(lesson, name) for lesson, names in STEPS.items() for name in names])
def test_a_step_sets_up_the_same_in_every_language_and_shows_the_symbol_it_speaks_of(lesson: str, name: str):
    configs = {followed(lesson, name, lang) for lang in LANGUAGES}
    assert len(configs) == 1
    config = configs.pop()
    assert config.symbol in KINDS[lesson].shown
    assert config.step < len(config.text)


def test_lstm_gates_open_and_close_per_unit():
    config = followed("lstm", "try.1")
    F = values(traced("lstm", config), "F")
    blanks = [step for step, character in enumerate(config.text) if character == " "]
    assert config.unit == 55
    assert F[blanks, config.unit].max() < 0.1
    assert np.median(np.delete(F[:, config.unit], blanks)) > 0.9
    assert checkpoints.load("lstm").config["forget_bias"] == 0


def test_lstm_frozen_memory():
    config = followed("lstm", "try.3")
    trace = traced("lstm", config)
    C, H = values(trace, "C"), values(trace, "H")
    assert np.array_equal(C[config.step :], np.broadcast_to(C[config.step - 1], C[config.step :].shape))
    assert np.ptp(H[config.step :], axis=0).max() > 0.1


def test_lstm_silent_but_remembering():
    trace = traced("lstm", followed("lstm", "try.4"))
    silent, first_after = slice(12, 18), 18
    assert not values(trace, "H")[silent].any()
    assert np.array_equal(values(trace, "P")[silent], np.broadcast_to(values(trace, "P")[12], (6, trace["P"].shape[-1])))
    assert np.abs(values(trace, "C")[silent]).mean() > 0.1
    assert np.abs(values(trace, "H")[first_after]).mean() > 0.1


def test_lstm_saturation_comes_from_training():
    config = followed("lstm", "try.5")
    untrained, _ = from_query(LSTMConfig, {"model": "untrained"})
    assert (values(traced("lstm", config), "F") > 0.9).mean() > 0.1
    undecided = values(traced("lstm", untrained), "F")
    assert undecided.min() > 0.1
    assert undecided.max() < 0.9


def test_lstm_forget_bias():
    config = followed("lstm", "try.6")
    assert len(config.text) == 22
    answers: dict[str, list[str]] = {}
    for model in ("recall-bias-0", "recall-bias-2"):
        for first in "ABCDEFGH":
            asked, _ = from_query(LSTMConfig, {"model": model, "text": first + config.text[1:]})
            run = runs.run("lstm", asked)
            answers.setdefault(model, []).append(run.vocabulary.tokens[int(values(run.trace, "P")[-1].argmax())])
    assert len(set(answers["recall-bias-0"])) == 1
    assert answers["recall-bias-2"] == list("ABCDEFGH")


def test_gru_writes_its_state_anew_at_blanks():
    config = followed("gru", "try.1")
    trace = traced("gru", config)
    blanks = [step for step, character in enumerate(config.text) if character == " "]
    for gate in ("R", "Z"):
        assert (values(trace, gate)[blanks] < 0.1).mean() > 0.5
        assert values(trace, gate)[blanks].mean() < 0.5 * values(trace, gate).mean()


def test_gru_carries_its_state():
    config = followed("gru", "try.2")
    trace = traced("gru", config)
    for name in ("H", "P"):
        found = values(trace, name)
        assert np.array_equal(found[config.step :], np.broadcast_to(found[config.step - 1], found[config.step :].shape))
    assert np.ptp(values(trace, "H_tilde")[config.step :], axis=0).max() > 0.5


def test_gru_as_a_plain_network():
    config = followed("gru", "try.3")
    trace = traced("gru", config)
    assert np.array_equal(trace["H"], trace["H_tilde"])
    reset_only, _ = from_query(GRUConfig, {"text": config.text, "do": "R=1"})
    assert np.abs(traced("gru", reset_only)["H"] - traced("gru", reset_only)["H_tilde"]).max() > 0.5


def test_gru_reset_after_the_product_differs_from_the_second_step_on():
    config = followed("gru", "try.4")
    base, _ = from_query(GRUConfig, {"text": config.text})
    apart = np.abs(values(traced("gru", config), "H") - values(traced("gru", base), "H")).max(axis=-1)
    assert apart[0] == 0
    assert (apart[1:] > 1e-3).all()


def test_gru_other_meaning_of_the_update_gate_breaks_the_predictions():
    config = followed("gru", "try.5")
    base, _ = from_query(GRUConfig, {"text": config.text})
    run, plain = runs.run("gru", config), runs.run("gru", base)
    following = run.ids[1:, 0].numpy()
    places = np.arange(len(following))
    worse, usual = (-np.log(values(each.trace, "P")[places, following]).mean() for each in (run, plain))
    assert worse > usual + 1
