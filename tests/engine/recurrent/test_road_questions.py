"""Questions on plain and deep networks: each answer a second way, on runs where it must come out one way or the other."""

import numpy as np
import pytest
import torch

from engine.notes import Note
from engine.recurrent.asking import Answer, Run
from engine.recurrent.language_model import RecurrentLanguageModel
from engine.recurrent.questions import QUESTIONS
from tests.support import seeded, uniform

V, H, T = 5, 7, 13
IDS = torch.randint(1, V, (T, 1), generator=seeded(8))


def run_of(cell="rnn", steps=T, step=6, scale=1.0, **switches):
    model = RecurrentLanguageModel(cell, V, H, generator=seeded(3), **switches).double()
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter.copy_(scale * uniform(*parameter.shape, seed=400 + number))
    return Run(model=model, ids=IDS[:steps], step=step, unit=4)


def ask(name, run):
    (question,) = (q for q in QUESTIONS[name.split(".")[0]] if q.id == name)
    answer = question.ask(run)
    assert isinstance(answer, Answer), answer
    assert answer.choice in answer.options
    return answer


@pytest.mark.parametrize("lesson", ["rnn", "deep_rnn"])
def test_every_question_is_asked_or_says_why_not(lesson):
    shapes = [{}] if lesson == "rnn" else [{"num_layers": 2}, {"bidirectional": True}, {"num_layers": 3, "bidirectional": True}]
    assert len(QUESTIONS[lesson]) >= 5
    for shape in shapes:
        for steps in (1, 2, 5, T):
            for question in QUESTIONS[lesson]:
                answer = question.ask(run_of("rnn" if lesson == "rnn" else "gru", steps=steps, step=min(6, steps - 1), **shape))
                assert isinstance(answer, Answer | Note)


def test_an_erased_state_is_a_fresh_start():
    run = run_of()
    answer = ask("rnn.fresh", run)
    assert answer.choice == "fresh"
    begun = run.model.trace(IDS[7:])["H"][0, 0]
    assert answer.values["after"] == pytest.approx(begun[int(answer.values["unit"])], abs=1e-10)


def test_without_a_matrix_from_state_to_state_only_the_present_counts():
    answer = ask("rnn.memoryless", run_of())
    assert answer.choice == "current"
    weights = run_of().model.recurrent.get_parameter("W_hh").detach().numpy()
    assert answer.values["radius"] == pytest.approx(np.abs(np.linalg.eigvals(weights)).max(), abs=1e-9)


@pytest.mark.parametrize(("scale", "choice"), [(0.05, "under_1"), (1.0, "under_1")])
def test_the_influence_over_ten_steps_is_a_product_of_jacobians(scale, choice):
    run = run_of(scale=scale, step=12)
    answer = ask("rnn.fade", run)
    H_all = run.trace()["H"][:, 0]
    W = run.model.recurrent.get_parameter("W_hh").detach().numpy()
    product = np.eye(H)
    for t in range(12, 2, -1):
        product = product @ ((1 - H_all[t] ** 2)[:, None] * W.T)
    assert answer.values["far"] == pytest.approx(np.linalg.norm(product, 2), abs=1e-10)
    assert answer.values["far"] / answer.values["near"] == pytest.approx(answer.values["share"])
    if scale < 1:
        assert answer.choice == choice


def test_relu_leaves_the_interval_and_tiny_weights_do_not():
    assert ask("rnn.relu", run_of(scale=2.0)).choice == "outside"
    assert ask("rnn.relu", run_of(scale=0.1)).choice == "inside"


def test_the_length_of_a_text_costs_no_parameters():
    answer = ask("rnn.cost", run_of())
    assert (answer.choice, answer.values["parameters"], answer.values["twice"]) == ("same", V * H + H * H + H, 2 * T)


@pytest.mark.parametrize(
    ("shape", "choice"),
    [({"num_layers": 2}, "none"), ({"bidirectional": True}, "backward"), ({"num_layers": 2, "bidirectional": True}, "both")],
)
def test_who_has_read_what_comes_after(shape, choice):
    answer = ask("deep_rnn.ahead", run_of("gru", **shape))
    assert answer.choice == choice
    assert (answer.values["moved_forward"] > 0) == (choice == "both")


def test_a_further_direction_doubles_a_layer_and_a_further_layer_does_not():
    both, deep = ask("deep_rnn.size", run_of("gru", bidirectional=True)), ask("deep_rnn.size", run_of("gru", num_layers=2))
    assert both.choice == "twice"
    assert deep.values["own"] == 3 * (V * H + H * H + H) + 3 * (2 * H * H + H)
    assert deep.choice == "more", "here a state is wider than a token"


def test_a_silent_lowest_layer_lets_nothing_of_the_text_through():
    assert ask("deep_rnn.silence", run_of("gru", num_layers=2)).choice == "mute"
    assert ask("deep_rnn.silence", run_of("gru", bidirectional=True)).choice == "still"
