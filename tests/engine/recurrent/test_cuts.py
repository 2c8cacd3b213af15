"""A cut at every place at once, against cutting there; the chain of factors; and the lesson's questions."""

import numpy as np
import pytest
import torch

from engine.notes import Note
from engine.recurrent.asking import Answer
from engine.recurrent.cuts import between_states, cuts, step_factors
from engine.recurrent.language_model import RecurrentLanguageModel
from engine.recurrent.truncated import compare
from engine.recurrent.truncation import chunks, cut_at, gradient_flow, shares
from engine.recurrent.truncation_questions import TRUNCATION, FlowRun
from tests.engine.recurrent.models import seeded

LENGTH = 24


def run_of(cell: str = "rnn", steps: int = LENGTH, step: int = 20, scale: float = 1.0) -> FlowRun:
    model = RecurrentLanguageModel(cell, 7, 6, generator=seeded(3))
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(scale)
    ids = torch.randint(7, (steps + 1,), generator=seeded(4))
    return FlowRun(model=model, ids=ids, flow=gradient_flow(model, ids), step=step)


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_every_place_is_what_cutting_there_gives(cell):
    flow = run_of(cell).flow
    found = cuts(flow)
    assert (found.cosines[0], found.lengths[0]) == pytest.approx((1, 1))
    assert not found.crossing[:, 0].any()
    for place in (1, 5, LENGTH - 1):
        one = compare(flow, cut_at(place))
        assert found.cosines[place] == pytest.approx(one.cosine, abs=1e-12)
        assert found.lengths[place] == pytest.approx(one.length, abs=1e-12)
        left = flow.full_norms["H"] - flow.under(cut_at(place)).norms["H"]
        np.testing.assert_allclose(found.crossing[:, place], left[:, place - 1], atol=1e-15)


def test_a_cut_comes_on_top_of_the_truncation():
    flow = run_of("gru").flow.under(chunks(8))
    found = cuts(flow)
    assert found.cosines[8] == pytest.approx(compare(flow, chunks(8)).cosine)
    assert not found.crossing[:, 8].any()
    left = (flow.shares * shares(cut_at(5), LENGTH)[0].numpy())[None] / LENGTH
    parts = [flow.uses[name].gradient(torch.tensor(left)).flatten() for name in between_states(flow)]
    exact = torch.cat(
        [
            torch.tensor(gradient_flow(run_of("gru").model, run_of("gru").ids).gradient(n)).flatten()
            for n in between_states(flow)
        ]
    )
    assert found.lengths[5] == pytest.approx(float(torch.cat(parts).norm() / exact.norm()))


def test_factors_of_single_steps_multiply_to_the_map():
    norms = run_of("lstm").flow.full_norms["C"]
    factors = step_factors(norms)
    for k, t in ((20, 3), (7, 6), (23, 0)):
        assert norms[k, k] * np.prod(factors[k, t:k]) == pytest.approx(norms[k, t], rel=1e-9)
    assert np.isnan(factors[np.triu_indices(LENGTH)]).all()


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_every_question_is_answered_and_the_short_text_is_told(cell):
    answers = {question.id.partition(".")[2]: question.ask(run_of(cell, scale=2.0)) for question in TRUNCATION}
    assert len(answers) == 6
    for name, answer in answers.items():
        assert isinstance(answer, Answer), name
        assert answer.choice in answer.options
    horizon, clip = answers["horizon"], answers["clip"]
    assert isinstance(horizon, Answer)
    assert isinstance(clip, Answer)
    assert (horizon.choice, horizon.values["reached"]) == ("rest", 5)  # steps 16 to 20
    assert clip.choice == "same"
    assert all(isinstance(question.ask(run_of(cell, steps=1, step=0)), Note) for question in TRUNCATION)


def test_what_the_answers_say_is_so():
    run = run_of("rnn", scale=2.0)
    answers = {question.id.partition(".")[2]: question.ask(run) for question in TRUNCATION}
    fading, direction, draws = answers["fading"], answers["direction"], answers["draws"]
    assert isinstance(fading, Answer)
    assert isinstance(direction, Answer)
    assert isinstance(draws, Answer)
    norms = run.flow.full_norms["H"][-1]
    assert fading.values["share"] == pytest.approx(norms[0] / norms[-1])
    assert direction.values["cosine"] == pytest.approx(compare(run.flow, chunks(8)).cosine)
    assert draws.choice == "half"
    assert draws.values["half"] > draws.values["nine"]
