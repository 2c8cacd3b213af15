"""Each answer of "Check yourself" once more, a second way; wrong options are wrong for the run, ties are not offered."""

import math

import numpy as np
import pytest
import torch

from engine.notes import Note
from engine.recurrent.asking import Answer, Run, alike, settled, shares
from engine.recurrent.language_model import RecurrentLanguageModel
from engine.recurrent.questions import QUESTIONS
from tests.engine.recurrent.by_hand import numpy_gru, numpy_lstm, numpy_rnn
from tests.support import seeded, uniform

V, H, T = 5, 7, 13
STEP, UNIT = 6, 4
IDS = torch.randint(1, V, (T, 1), generator=seeded(8))
X = np.eye(V)[IDS[:, 0].numpy()][:, None]
H0 = np.zeros((1, H))


def run_of(cell, step=STEP, unit=UNIT, steps=T, scale=1.0, **switches):
    model = RecurrentLanguageModel(cell, V, H, generator=seeded(3), **switches).double()
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter.copy_(scale * uniform(*parameter.shape, seed=200 + number))
    return Run(model=model, ids=IDS[:steps], step=step, unit=unit)


def by_hand(run, change=lambda _name, _t, value: value, **switches):
    w = {name: p.detach().numpy() for name, p in run.model.recurrent.named_parameters()}
    if run.model.recurrent.kind == "lstm":
        return numpy_lstm(w, X, H0, H0, change)
    switches = {"reset": run.model.recurrent.reset, "update": run.model.recurrent.update} | switches
    return numpy_gru(w, X, H0, change=change, **switches)


def clamp(**values):
    """A change by hand: ``clamp(F=(1.0, 6, None))`` sets F to 1 from step 6 on."""

    def change(name, t, value):
        if name not in values:
            return value
        number, first, end = values[name]
        return np.full_like(value, number) if first <= t < (T if end is None else end) else value

    return change


def ask(question_id, run):
    (question,) = (q for q in QUESTIONS[question_id.split(".")[0]] if q.id == question_id)
    answer = question.ask(run)
    assert isinstance(answer, Answer), answer
    assert answer.choice in answer.options
    assert len(answer.options) == len(set(answer.options)) >= 3
    return answer


def test_there_are_enough_questions_and_every_one_can_be_asked():
    for lesson, questions in QUESTIONS.items():
        assert len(questions) >= 5
        assert all(q.id.startswith(f"{lesson}.") for q in questions)
        for q in questions if lesson in ("lstm", "gru") else ():  # the others: test_road_questions
            ask(q.id, run_of(lesson))


def test_carry():
    run = run_of("lstm")
    answer, kept, was = ask("lstm.carry", run), by_hand(run, clamp(F=(1.0, STEP, None), I=(0.0, STEP, None))), by_hand(run)
    assert answer.choice == "constant"
    assert set(answer.options) == {"zero", "constant", "grows", "same"}
    np.testing.assert_array_equal(kept["C"][STEP:], np.broadcast_to(was["C"][STEP - 1], kept["C"][STEP:].shape))
    assert answer.values["steps"] == T - STEP
    for name, value in {"before": was["C"][STEP - 1], "after": kept["C"][-1], "baseline": was["C"][-1]}.items():
        assert answer.values[name] == pytest.approx(value[0, UNIT], abs=1e-10)
    assert np.abs(kept["C"][STEP:] - was["C"][STEP:]).max() > 5e-4
    assert np.abs(kept["C"][STEP:]).max() > 5e-4


def test_carry_at_the_first_step_starts_one_later_and_shows_a_unit_that_holds_something():
    answer = ask("lstm.carry", run_of("lstm", step=0))
    assert answer.values["step"] == 1
    assert abs(answer.values["before"]) >= 5e-4
    assert "zero" in answer.options


def test_mute():
    run = run_of("lstm")
    answer, was, changed = ask("lstm.mute", run), by_hand(run), by_hand(run, clamp(O=(0.0, STEP, STEP + 1)))
    assert answer.choice == "silent_then_different"
    assert set(answer.options) == {"erased", "nothing", "silent_then_different", "silent_once"}
    assert (changed["H"][STEP] == 0).all()
    np.testing.assert_array_equal(changed["C"][STEP], was["C"][STEP])
    assert answer.values["later"] == pytest.approx(np.abs(changed["H"] - was["H"])[STEP + 1 :].max(), abs=1e-10)
    assert answer.values["later"] > 5e-4
    w = {name: p.detach().numpy() for name, p in run.model.output.named_parameters()}
    for name, state in (("before", was["H"][STEP, 0]), ("after", changed["H"][STEP, 0])):
        scores = state @ w["W_hq"] + w["b_q"]
        p = np.exp(scores) / np.exp(scores).sum()
        assert answer.values[f"token_{name}"] == p.argmax()
        assert answer.values[f"p_{name}"] == pytest.approx(p.max(), abs=1e-10)


def test_mute_at_the_last_step_asks_about_the_step_before():
    assert ask("lstm.mute", run_of("lstm", step=T - 1)).values["step"] == T - 2


def test_erase():
    run = run_of("lstm")
    answer, was, changed = ask("lstm.erase", run), by_hand(run), by_hand(run, clamp(F=(0.0, STEP, STEP + 1)))
    written = changed["I"][STEP, 0] * changed["C_tilde"][STEP, 0]
    np.testing.assert_allclose(changed["C"][STEP, 0], written, rtol=0, atol=1e-12)
    assert (answer.choice, set(answer.options)) == ("written", {"same", "candidate", "zero", "written"})
    assert answer.values["after"] == pytest.approx(written[UNIT], abs=1e-10)
    assert answer.values["before"] == pytest.approx(was["C"][STEP - 1, 0, UNIT], abs=1e-10)
    for other in (was["C"][STEP, 0], changed["C_tilde"][STEP, 0], 0.0):
        assert np.abs(written - other).max() > 5e-4


@pytest.mark.parametrize(("scale", "choice"), [(0.2, "neither"), (2.0, "cell")])
def test_bounds_are_those_of_this_run(scale, choice):
    run = run_of("lstm", scale=scale)
    answer, was = ask("lstm.bounds", run), by_hand(run)
    assert answer.choice == choice
    assert (np.abs(was["C"]).max() > 1) == (choice == "cell")
    assert np.abs(was["H"]).max() < 1
    assert abs(answer.values["cell"]) == pytest.approx(np.abs(was["C"]).max(), abs=1e-10)
    assert abs(answer.values["hidden"]) == pytest.approx(np.abs(was["H"]).max(), abs=1e-10)


def test_forget_bias_keeps_what_the_public_case_says():
    answer = ask("lstm.forget_bias", run_of("lstm"))
    assert answer.choice == "to_50"
    for bias, kept in ((0, 0.0009765625), (1, 0.0436035427941), (2, 0.281033862321)):
        assert answer.values[f"kept_{bias}"] == pytest.approx(kept, abs=1e-9)
        assert answer.values[f"gate_{bias}"] == pytest.approx(1 / (1 + math.exp(-bias)), abs=1e-12)


@pytest.mark.parametrize(("cell", "switches"), [("lstm", {}), ("gru", {}), ("gru", {"update": "replaces"})])
@pytest.mark.parametrize("step", [0, 5, T - 1])
def test_left_is_the_product_of_the_gates(cell, switches, step):
    run = run_of(cell, step=step, **switches)
    answer, was = ask(f"{cell}.left", run), by_hand(run)
    gate = {"lstm": "F", "gru": "Z"}[cell]
    at = step if step >= 2 else T - 1
    share = 1.0
    for t in range(max(at - 10, 0) + 1, at + 1):
        g = was[gate][t, 0, UNIT]
        share *= 1 - g if switches.get("update") == "replaces" else g
    assert answer.values["share"] == pytest.approx(share, abs=1e-12)
    low, high = {"under_1": (0, 0.01), "to_10": (0.01, 0.1), "to_50": (0.1, 0.5), "over_50": (0.5, 2)}[answer.choice]
    assert low <= share < high
    assert answer.values["steps"] == min(at, 10)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("step", [1, STEP, T - 1])
def test_influence_by_running_each_text_on_its_own(cell, step):
    run = run_of(cell, step=step, scale=1.5)
    answer = ask(f"{cell}.influence", run)
    at = step if step >= 3 else T - 1
    log_p = np.log(run.trace()["P"][at, 0])
    token = int(log_p.argmax())
    change = []
    for j in range(at):
        ids = IDS[: at + 1].clone()
        ids[j] = 0
        change.append(abs(np.log(run.model.trace(ids)["P"][at, 0, token]) - log_p[token]))
    assert answer.choice == f"step:{int(np.argmax(change))}"
    assert answer.values == {"step": at, "token": token, "p": pytest.approx(math.exp(log_p[token]), abs=1e-10)}
    assert [*answer.each] == [*answer.options]
    for option in answer.options:
        j = int(option.removeprefix("step:"))
        assert answer.each[option]["change"] == pytest.approx(change[j], abs=1e-10)
        assert answer.each[option]["token"] == IDS[j, 0]
        if option != answer.choice:
            assert change[j] <= 0.9 * max(change)
    positions = [int(option.removeprefix("step:")) for option in answer.options]
    assert positions == sorted(positions)


@pytest.mark.parametrize(
    ("cell", "switches", "choice", "counts"),
    [
        ("lstm", {}, "four", (4 * (V * H + H * H + H), V * H + H * H + H)),
        ("gru", {}, "three", (3 * (V * H + H * H + H), V * H + H * H + H)),
        ("gru", {"reset": "after"}, "three", (3 * (V * H + H * H + H) + H, V * H + H * H + H)),
    ],
)
def test_parameters_are_blocks(cell, switches, choice, counts):
    answer = ask(f"{cell}.parameters", run_of(cell, **switches))
    assert answer.choice == choice
    assert (answer.values["own"], answer.values["plain"]) == counts
    assert (answer.values["inputs"], answer.values["units"]) == (V, H)


@pytest.mark.parametrize(("update", "choice"), [("keeps", "frozen"), ("replaces", "candidate")])
def test_hold(update, choice):
    run = run_of("gru", update=update)
    answer, was, changed = ask("gru.hold", run), by_hand(run), by_hand(run, clamp(Z=(1.0, STEP, None)))
    right = was["H"][STEP - 1] if update == "keeps" else changed["H_tilde"][STEP:]
    np.testing.assert_allclose(changed["H"][STEP:] - right, 0.0, rtol=0, atol=1e-12)
    assert (answer.choice, set(answer.options)) == (choice, {"zero", "same", "candidate", "frozen"})
    assert answer.values["after"] == pytest.approx(changed["H"][-1, 0, UNIT], abs=1e-10)
    assert answer.values["baseline"] == pytest.approx(was["H"][-1, 0, UNIT], abs=1e-10)


@pytest.mark.parametrize("reset", ["before", "after"])
@pytest.mark.parametrize(("update", "choice"), [("keeps", "r1_z0"), ("replaces", "r1_z1")])
def test_plain_setting_gives_the_plain_network(reset, update, choice):
    run = run_of("gru", reset=reset, update=update)
    answer = ask("gru.plain", run)
    assert (answer.choice, set(answer.options)) == (choice, {"r0_z0", "r1_z0", "r1_z1", "r1"})
    w = {name: p.detach().numpy() for name, p in run.model.recurrent.named_parameters()}
    own = {"W_xh": w["W_xh"], "W_hh": w["W_hh"], "b_h": w["b_h"] + w.get("b_hh", 0.0)}
    network = numpy_rnn(own, X, H0)["H"]
    for option, change in {
        "r0_z0": clamp(R=(0.0, 0, None), Z=(0.0, 0, None)),
        "r1_z0": clamp(R=(1.0, 0, None), Z=(0.0, 0, None)),
        "r1_z1": clamp(R=(1.0, 0, None), Z=(1.0, 0, None)),
        "r1": clamp(R=(1.0, 0, None)),
    }.items():
        distance = np.abs(by_hand(run, change)["H"] - network).max()
        assert answer.each[option]["gap"] == pytest.approx(distance, abs=1e-10)
        assert (distance < 1e-10) == (option == choice)


@pytest.mark.parametrize("update", ["keeps", "replaces"])
def test_convention_differs_from_the_second_step_on(update):
    run = run_of("gru", update=update)
    answer = ask("gru.convention", run)
    w = {name: p.detach().numpy() for name, p in run.model.recurrent.named_parameters()} | {"b_hh": np.zeros(H)}
    before, after = (numpy_gru(w, X, H0, reset, update)["H"][:, 0] for reset in ("before", "after"))
    assert (answer.choice, answer.values["first"]) == ("second", 1)
    assert (before[0] == after[0]).all()
    assert answer.values["difference"] == pytest.approx(np.abs(before - after).max(), abs=1e-10)
    at = (answer.values["step"], answer.values["unit"])
    assert (answer.values["before"], answer.values["after"]) == pytest.approx((before[at], after[at]), abs=1e-10)


def test_convention_of_a_model_with_a_bias_inside_the_reset_differs_at_once():
    run = run_of("gru", reset="after")
    answer = ask("gru.convention", run)
    w = {name: p.detach().numpy() for name, p in run.model.recurrent.named_parameters()}
    after = numpy_gru(w, X, H0, "after")["H"][:, 0]
    before = numpy_gru(w | {"b_h": w["b_h"] + w["b_hh"]}, X, H0, "before")["H"][:, 0]
    assert answer.choice == "first"
    assert answer.values["difference"] == pytest.approx(np.abs(before - after).max(), abs=1e-10)


@pytest.mark.parametrize("update", ["keeps", "replaces"])
def test_merged_ties_forget_and_input(update):
    run = run_of("gru", update=update)
    answer, was = ask("gru.merged", run), by_hand(run)
    Z = 1 - was["Z"] if update == "replaces" else was["Z"]
    past = np.concatenate([H0[None], was["H"][:-1]])
    new = was["H_tilde"]
    distance = {
        "forget_output": np.abs((1 - Z) * np.tanh(Z * past + new) - was["H"]).max(),
        "forget_input": np.abs(Z * past + (1 - Z) * new - was["H"]).max(),
        "input_output": np.abs(Z * np.tanh(past + (1 - Z) * new) - was["H"]).max(),
        "forget": np.abs(Z * past + new - was["H"]).max(),
    }
    assert (answer.choice, set(answer.options)) == ("forget_input", set(distance))
    assert {name: each["gap"] for name, each in answer.each.items()} == pytest.approx(distance, abs=1e-10)
    assert all(far > 5e-4 for name, far in distance.items() if name != "forget_input")


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_a_text_that_is_too_short_gets_a_note(cell):
    for question in QUESTIONS[cell]:
        answer = question.ask(run_of(cell, step=0, steps=1))
        name = question.id.split(".")[1]
        if name in ("parameters", "forget_bias"):
            assert isinstance(answer, Answer)
        elif isinstance(answer, Note):
            assert answer.key in ("question.too_short", "question.undecided")
            assert answer.values.get("steps", 2) >= 2


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5, T])
@pytest.mark.parametrize("scale", [0.0, 1e-3, 1.0, 20.0])
def test_no_run_makes_a_question_fail_or_lets_two_options_be_right(cell, steps, scale):
    """Models that hold nothing, or only the extremes: what cannot be told apart is not asked."""
    for step in {0, steps // 2, steps - 1}:
        run = run_of(cell, step=step, steps=steps, scale=scale)
        for question in QUESTIONS[cell]:
            answer = question.ask(run)
            if isinstance(answer, Answer):
                assert answer.choice in answer.options
                assert len(answer.options) >= 3
                assert all(math.isfinite(value) for value in answer.values.values())
            else:
                assert answer.key.startswith("question.")


def test_a_model_that_holds_nothing_is_not_asked_what_happens_to_it():
    run = run_of("lstm", scale=0.0)
    answers = {q.id: q.ask(run) for q in QUESTIONS["lstm"]}
    for name in ("carry", "mute", "erase", "influence"):
        assert isinstance(answers[f"lstm.{name}"], Note)


def test_options_that_are_true_too_are_not_offered():
    answer = settled({"a": True, "b": False, "c": True, "d": None, "e": False}, {}, prefer="c")
    assert (answer.choice, answer.options) == ("c", ("b", "c", "e"))
    assert settled({"a": False, "b": False, "c": False}, {}) == Note("question.undecided")
    assert settled({"a": True, "b": False, "c": None}, {}) == Note("question.undecided")


def test_what_three_decimals_do_not_show_is_undecided():
    assert [alike(x) for x in (0.0, 1e-6, 1e-5, 4e-4, 5e-4, 1.0)] == [True, True, None, None, False, False]
    assert shares(0.0999) == {"under_1": False, "to_10": True, "to_50": None, "over_50": False}
    assert shares(0.3) == {"under_1": False, "to_10": False, "to_50": True, "over_50": False}


def test_the_question_is_asked_of_the_right_cell():
    with pytest.raises(TypeError, match="GRU"):
        QUESTIONS["gru"][0].ask(run_of("lstm"))
