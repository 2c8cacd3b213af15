"""Lesson 9 without a browser: its config, bad input, a training from the button to the lessons, its questions."""

import json
import math
import re
import time
from urllib.parse import parse_qsl

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from engine.questions import QUESTIONS
from engine.training import replay
from engine.training.files import ALIVE, RunFolder
from engine.training.kept import checkpoint_of
from engine.training.questions import Progress
from engine.training.spec import Member
from pages.ui import opened, runs, texts, training_stage
from pages.ui.config import GRUConfig, from_query, to_query
from pages.ui.horizon import TruncationConfig
from pages.ui.horizon import opened as model_of_lesson_5
from pages.ui.memory import DeepConfig, RNNConfig
from pages.ui.training import LanguageModelConfig
from pages.ui.words import LANGUAGES, messages, words
from tests.lessons import link_of, sound, without_browser

SMALL = {
    "members": "gru.12.1;relu.8.1;lstm.8.2;transformer.8.1",
    "rows": "4",
    "piece": "12",
    "total": "50",
    "corpus": "python_topics",
}


def texts_of(page: AppTest) -> str:
    return "\n".join(each.value for each in [*page.text, *page.caption, *page.markdown])


def says(page: AppTest, key: str) -> bool:
    """Whether a page shows a message, whatever the values in it."""
    pattern = re.sub(r"\\\{[^}]*\}", ".*", re.escape(messages("en").by_key[key][0]))
    return bool(re.search(pattern, texts_of(page)))


def open_tab(page: AppTest, name: str) -> AppTest:
    page.session_state["more"] = words(f"tab.{name}")
    return sound(page.run())


def ended(folder: RunFolder) -> None:
    """Wait until a run has come to its end."""
    end = time.monotonic() + 120
    while folder.said.state in ("queued", *ALIVE) or folder.alive() or not folder.last.exists():
        assert time.monotonic() < end, folder.status
        folder.watch()
        time.sleep(0.05)


@pytest.fixture(scope="module")
def trained() -> tuple[AppTest, str]:
    """A page on which somebody has trained four small models to the end, and the id of the run."""
    page = without_browser("language_model", text="9 green bottles", **SMALL)
    sound(page.button(key="train").click().run())
    run = link_of(page)["run"]
    ended(RunFolder(opened.root() / run))
    return sound(page.run()), run


# ----------------------------------------------------------------------------------------------------------------- config


@given(
    st.dictionaries(
        st.sampled_from(
            ["members", "rate", "clip", "rows", "top_p", "temperature", "run", "corpus", "beam", "prefix", "patience"]
        ),
        st.one_of(st.text(max_size=12), st.sampled_from(["nan", "-inf", "1e9", "-1", "gru.9.9;x", "0", "gru.128.1;gru.128.1"])),
    )
)
def test_whatever_a_link_asks_for_there_is_a_config_that_is_its_own_link(params):
    config, _ = from_query(LanguageModelConfig, params)
    assert 1 <= len(config.members) <= 4
    assert math.isfinite(config.rate)
    again, notes = from_query(LanguageModelConfig, to_query(config))
    assert (again, notes) == (config, ())
    config.spec()


def test_what_a_link_says_is_what_is_trained():
    asked = {
        "members": "lstm.32.2;rnn.16.1",
        "rate": "0.5",
        "optimizer": "sgd",
        "clip": "0",
        "rows": "7",
        "piece": "9",
        "patience": "3",
    }
    config, notes = from_query(LanguageModelConfig, asked)
    spec = config.spec()
    assert notes == ()
    assert spec.members == (Member(kind="lstm", width=32, layers=2), Member(kind="rnn", width=16))
    assert (spec.training.learning_rate, spec.training.optimizer, spec.training.max_norm) == (0.5, "sgd", math.inf)
    assert (spec.batch_size, spec.num_steps, spec.patience) == (7, 9, 3)


STEPS = [name for name in texts.sections("language_model", "en") if name.startswith("try.")]


@pytest.mark.parametrize("name", STEPS)
def test_a_step_of_the_walk_sets_up_the_same_in_every_language(name):
    found = set()
    for lang in LANGUAGES:
        address, _, _ = texts.sections("language_model", lang)[name].partition("\n")
        config, notes = from_query(LanguageModelConfig, dict(parse_qsl(address.removeprefix("link: "), strict_parsing=True)))
        assert notes == ()
        found.add(config)
    assert len(found) == 1


# --------------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("link", "key"),
    [
        ({"rate": "-0.5"}, "rate_negative"),
        ({"rate": "1e9"}, "rate_large"),
        ({"members": "lstm.512.4"}, "parameters"),
        ({"rows": "256", "piece": "256"}, "batch_tokens"),
        ({"corpus": "own", "text": "x" * 200}, "vocabulary_one"),
        ({"corpus": "own", "text": "x"}, "text_one"),
        ({"corpus": "own"}, "text_short"),
    ],
)
def test_bad_input_gets_a_sentence_and_no_training(link, key):
    page = without_browser("language_model", **link)
    assert says(page, f"training.{key}")
    assert page.button(key="train").disabled


@pytest.mark.parametrize(("rate", "key"), [("nan", "link.training.rate"), ("0", "training.rate_zero")])
def test_opt_08_what_is_strange_but_possible_is_said(rate, key):
    page = without_browser("language_model", rate=rate)
    assert says(page, key)
    assert not page.button(key="train").disabled


def test_a_text_that_is_too_short_can_be_made_to_fit():
    page = without_browser("language_model", corpus="own", text="A text of some fifty characters, no more than that.")
    sound(page.button(key="training-fit").click().run())
    assert not page.button(key="train").disabled
    assert int(link_of(page)["rows"]) * int(link_of(page).get("piece", 35)) < 51


def test_a_run_that_there_is_not_is_said():
    for run in ("0" * 16, "../../etc"):
        page = without_browser("language_model", run=run)
        assert says(page, "training.gone" if run[0] == "0" else "link.run")


# ----------------------------------------------------------------------------------------------------------------- a run


def test_opt_11_a_diverged_run_is_taken_back_and_clipped():
    small = {"members": "relu.64.1", "optimizer": "sgd", "rate": "1", "clip": "0", "corpus": "python_topics", "total": "40"}
    page = without_browser("language_model", text="9 green bottles", **small)
    sound(page.button(key="train").click().run())
    run = link_of(page)["run"]
    folder = RunFolder(opened.root() / run)
    ended(folder)
    assert folder.status.state == "diverged"
    sound(page.run())
    assert says(page, "training.diverged.loss")
    sound(page.button(key="training-clipped-0").click().run())
    assert "clip" not in link_of(page)
    ended(folder)
    assert folder.spec.training.max_norm == 1.0
    assert folder.status.state == "finished"
    assert not says(sound(page.run()), "training.diverged.loss")


def test_the_end_of_a_run_is_shown_and_the_next_one_can_begin(trained):
    page, run = trained
    assert link_of(page)["run"] == run
    assert words("training.state.finished") in texts_of(page)
    assert [each.label for each in page.button if each.key == "train"] == [words("training.anew")]
    for name in ("kept", "write", "data"):
        open_tab(page, name)
    assert page.download_button[0].label == words("download.training")


def test_ses_02_a_new_session_sees_the_same_run(trained):
    _, run = trained
    page = without_browser("language_model", run=run)
    assert words("training.state.finished") in texts_of(page)
    assert words("training.progress", step=50, steps=50, seconds="")[:13] in page.get("progress")[0].proto.text


@pytest.mark.parametrize(
    ("lesson", "kind", "member"),
    [("gru", GRUConfig, 0), ("rnn", RNNConfig, 1), ("deep_rnn", DeepConfig, 2), ("deep_rnn", DeepConfig, 0)],
)
def test_a_kept_state_opens_in_the_lessons_with_its_own_numbers(trained, lesson, kind, member):
    _, run = trained
    folder = RunFolder(opened.root() / run)
    step = folder.kept()[-1]
    name = opened.name_of(run, step, member)
    page = without_browser(lesson, model=name, text="9 green bottles", activation="relu")
    assert page.selectbox(key="control-model").value == name
    assert words("model.run", step=step) in page.selectbox(key="control-model").options
    config, notes = from_query(kind, {"model": name, "text": "9 green bottles", "activation": "relu"})
    assert notes == ()
    cell = config.shape[0] if isinstance(config, DeepConfig) else lesson
    trace = runs.run(cell, config).trace
    found = checkpoint_of(folder, step, member)
    ids = torch.tensor(found.vocabulary[list("9 green bottles")])[:, None]
    np.testing.assert_array_equal(trace["P"], found.model.trace(ids)["P"])


def test_a_kept_state_opens_in_lesson_5_and_a_state_that_is_gone_nowhere(trained):
    _, run = trained
    name = opened.name_of(run, 50, 0)
    without_browser("truncation", model=name, network="gru", text="9 green bottles")
    config, notes = from_query(TruncationConfig, {"model": name, "network": "gru"})
    assert notes == ()
    assert model_of_lesson_5(config)[0].recurrent.hidden_size == 12
    for lesson, model in (
        ("gru", f"run.{run}.7.0"),
        ("gru", f"run.{run}.50.2"),
        ("gru", "run." + "0" * 16 + ".1.0"),
        ("lstm", name),
    ):
        page = without_browser(lesson, model=model)
        assert words("link.opened") in texts_of(page)
        assert page.selectbox(key="control-model").value == "trained"


def test_a_step_of_a_recorded_training_opens_in_its_lesson():
    page = without_browser("gru", model="recorded.gru.500")
    assert page.selectbox(key="control-model").value == "recorded.gru.500"
    config, _ = from_query(GRUConfig, {"model": "recorded.gru.500"})
    model, vocabulary = replay.read("gru").model_at(500), replay.read("gru").vocabulary
    trace = model.trace(torch.tensor(vocabulary[list(config.text)])[:, None])
    np.testing.assert_array_equal(runs.run("gru", config).trace["H"], trace["H"])


@pytest.mark.parametrize("lang", LANGUAGES)
def test_tabs_and_questions_without_a_run(lang):
    page = without_browser("language_model", lang=lang)
    for name in ("kept", "write", "data"):
        page.session_state["more"] = words(f"tab.{name}", lang=lang)
        sound(page.run())
    assert words("training.check.recorded", lang=lang) in texts_of(page)


def test_the_recorded_trainings_are_those_of_the_chosen_kinds():
    assert training_stage.recorded_of([Member(kind="relu")]) == training_stage.FIRST
    chosen = [Member(kind=kind) for kind in ("transformer", "gru", "gru", "relu")]
    names = training_stage.recorded_of(chosen)
    assert names == ("transformer", "gru")
    replays = [replay.read(name) for name in names]
    packed = training_stage.pack_recorded(names, "In the", "In", "en")
    header = json.loads(packed[4 : 4 + int.from_bytes(packed[:4], "little")])
    assert header["steps"] == max(len(each.events) for each in replays) == header["frames"][-1]["step"]
    for frame in header["frames"]:
        assert [one["step"] for one in frame["members"]] == [each.nearest(frame["step"]) for each in replays]
    page = without_browser("language_model", members="transformer.64.2;lstm.64.1")
    for name in ("kept", "write"):
        page.session_state["more"] = words(f"tab.{name}")
        sound(page.run())


@pytest.mark.parametrize("number", range(1, len(QUESTIONS["language_model"]) + 1))
def test_every_question_can_be_answered_about_the_run(trained, number):
    page, _ = trained
    page.session_state["question"] = number
    sound(page.run())
    radio = page.radio[-1]
    sound(radio.set_value(radio.options[0]).run()) if radio.value is None else None
    sound(next(button for button in page.button if button.label == words("check.reveal")).click().run())
    assert any(words(key) in each.value for each in page.markdown for key in ("check.right", "check.wrong"))


# --------------------------------------------------------------------------------------------------------------- questions


def progress(held, losses=(), norms=(), size=64, **more):
    rows = [np.array(row, dtype=float) for row in held]
    steps = np.arange(len(rows[0])) * 10.0
    train = [np.array(row, dtype=float) for row in losses] or [np.full(100, 2.0) for _ in rows]
    lengths = [np.array(row, dtype=float) for row in norms] or train
    return Progress(run="x", size=size, losses=train, norms=lengths, held_steps=steps, held=rows, **more)


FALLING = [math.log(64) - 0.02, 3.0, 2.5, 2.2, 2.0, 1.9, 1.85, 1.8]


@pytest.mark.parametrize(
    ("name", "run", "choice"),
    [
        ("nothing", progress([FALLING]), "vocabulary"),
        ("counting", progress([FALLING], ngrams=(3.0, 1.75)), "close"),
        ("counting", progress([FALLING], ngrams=(3.0, 2.75)), "beaten"),
        ("counting", progress([FALLING], ngrams=(3.0, 1.2)), "far"),
        ("ahead", progress([FALLING, [x + 0.1 for x in FALLING]]), "model:0"),
        ("ahead", progress([FALLING, [x - 0.1 for x in FALLING]]), "model:1"),
        ("memory", progress([FALLING], losses=[[1.78] * 50]), "same"),
        ("memory", progress([FALLING], losses=[[1.5] * 50]), "some"),
        ("memory", progress([FALLING], losses=[[0.5] * 50]), "much"),
        ("clipped", progress([FALLING], norms=[[0.5] * 100], limit=1.0), "never"),
        ("clipped", progress([FALLING], norms=[[0.5] * 90 + [2.0] * 10], limit=1.0), "seldom"),
        ("clipped", progress([FALLING], norms=[[0.5] * 50 + [2.0] * 50], limit=1.0), "often"),
        ("half", progress([FALLING]), "quarter"),
        ("half", progress([[4.0] * 6 + [1.0]]), "late"),
        ("half", progress([[4.0] + [1.0] * 12]), "early"),
    ],
)
def test_questions_are_answered_from_the_curves(name, run, choice):
    (question,) = (one for one in QUESTIONS["language_model"] if one.id == f"language_model.{name}")
    assert question.ask(run).choice == choice
    assert run.same(run)


def test_questions_say_why_they_cannot_be_asked_yet():
    for question in QUESTIONS["language_model"]:
        note = question.ask(progress([[]], losses=[[]]))
        assert note.key == "question.training.not_yet"
    asked = {one.id.partition(".")[2]: one.ask for one in QUESTIONS["language_model"]}
    assert asked["ahead"](progress([FALLING])).key == "question.training.one_model"
    assert asked["clipped"](progress([FALLING])).key == "question.training.no_limit"
