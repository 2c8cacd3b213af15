"""Live runs in processes of their own: the same numbers as without, steering, and every way in which one may be lost."""

import os
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.training.files import RunFolder, Sampling
from engine.training.jobs import Refused, Service
from engine.training.kept import checkpoint_of
from engine.training.spec import Limits, Member
from tests.engine.training.live import TEXT, by_itself, over, past, same, service_in, spec, state, until, weights

LONG = 40_000  # steps that no test waits for


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    live = Service(tmp_path_factory.mktemp("runs"), Limits(per_visitor=9, total=9, nice=0))
    yield live
    live.close()


def worker_of(service: Service, run: str) -> int:
    """The process that holds a run's lock."""
    inode = (service.root / run / "lock").stat().st_ino
    for line in Path("/proc/locks").read_text(encoding="ascii").splitlines():
        fields = line.split()
        if "WRITE" in fields and fields[-3].endswith(f":{inode}"):
            return int(fields[-4])
    raise AssertionError("nobody holds the run")


def same_until(service: Service, run: str, end: int) -> None:
    """Let a run of spec(LONG) go on to a step; its weights there must be those of one that was never interrupted."""
    service.resume(run, "me", until=end)
    until(lambda: state(service, run) == "paused" and service.see(run).status.step == end)
    assert same(weights(service, run), by_itself(spec(steps=end), TEXT)[0])


def test_a_run_has_the_numbers_of_the_loop_alone_beside_others_and_after_an_end(service):
    members = tuple(Member(kind=kind, width=8) for kind in ("rnn", "gru", "lstm", "transformer"))
    asked = spec(steps=20, members=members)
    beside = [service.start(spec(steps=LONG), TEXT, "other")]
    run = service.start(asked, TEXT, "me")
    assert over(service, run) == "finished"
    for other in beside:
        service.stop(other)
    seen = service.see(run)
    for place in range(4):
        found, losses = by_itself(asked, TEXT, place)
        assert same(weights(service, run, place), found)
        np.testing.assert_allclose(seen.log.losses[place], losses, rtol=1e-5)
        assert len(seen.log.held[place]) == 3
    assert list(seen.log.steps) == list(range(1, 21))
    assert seen.log.uniform == pytest.approx(np.log(len(TEXT.vocabulary)))
    assert len(seen.log.ngrams) == 5
    assert {0, 20} <= set(seen.kept)
    assert [one.kind for one in seen.log.happened] == ["end"]
    assert seen.view is not None
    assert set(seen.view.members[2].values) == {"F", "I", "O", "H"}
    torch.testing.assert_close(seen.view.members[3].values["A1"].sum(1), torch.ones(9))
    assert [over(service, other) for other in beside] == ["stopped"]


def test_ses_04_ses_05_pause_step_resume_stop_and_start_again(service):
    run = service.start(spec(steps=LONG), TEXT, "me")
    past(service, run, 3)
    service.pause(run)
    until(lambda: state(service, run) == "paused")
    until(lambda: service.see(run).log.step == service.see(run).status.step)
    at = service.see(run).log.step
    service.step(run, "me")
    until(lambda: service.see(run).log.step == at + 1 and state(service, run) == "paused")
    service.resume(run, "me")
    past(service, run, at + 5)
    service.stop(run)
    assert over(service, run) == "stopped"
    last = service.see(run).log.step
    assert service.see(run).status.step == last
    service.step(run, "me")  # a run without a worker gets one
    until(lambda: service.see(run).log.step == last + 1 and state(service, run) == "paused")
    service.stop(run)
    assert over(service, run) == "stopped"


def test_ses_09_the_same_seed_gives_the_same_weights_and_another_seed_others(service):
    runs = [service.start(replace(spec(steps=20), seed=seed), TEXT, "me") for seed in (0, 1, 0, 1)]
    assert [over(service, run) for run in runs] == ["finished"] * 4
    found = [weights(service, run) for run in runs]
    assert same(found[0], found[2])
    assert same(found[1], found[3])
    assert not same(found[0], found[1])


def test_a_killed_worker_leaves_an_interrupted_run_that_goes_on_with_the_same_numbers(service):
    run = service.start(spec(steps=LONG), TEXT, "me")
    past(service, run, 10)
    service.pause(run)  # so that there is a state to lose something after
    until(lambda: state(service, run) == "paused")
    service.resume(run, "me")
    past(service, run, service.see(run).log.step + 5)
    os.kill(worker_of(service, run), signal.SIGKILL)
    assert over(service, run) == "interrupted"
    end = 10 * (service.see(run).log.step // 10 + 3)
    same_until(service, run, end)
    seen = service.see(run)
    assert list(seen.log.steps) == list(range(1, end + 1))
    assert list(seen.log.held_steps) == list(range(0, end + 1, 10))
    service.stop(run)


def test_a_new_server_finds_the_runs_of_the_old_one(tmp_path):
    first = service_in(tmp_path, total=1)
    run, waiting = first.start(spec(steps=LONG), TEXT, "me"), first.start(spec(), TEXT, "you")
    past(first, run, 10)
    assert first.see(waiting).place == 1
    first.close()
    second = service_in(tmp_path, total=1)
    try:
        assert state(second, run) == "interrupted"
        assert state(second, waiting) == "interrupted"
        step = second.see(run).log.step
        assert step >= 10
        assert second.see(run).status.step == step  # asked to end, a worker loses nothing
        same_until(second, run, step + 20)
    finally:
        second.close()


def test_a_run_can_be_taken_back_and_goes_the_same_way_or_another(service):
    asked = spec(steps=60)
    run = service.start(asked, TEXT, "me")
    assert over(service, run) == "finished"
    end, kept = weights(service, run), service.see(run).kept
    assert len(kept) > 3
    assert not service.rewind(run, 7, "me")
    back = kept[len(kept) // 2]
    assert service.rewind(run, back, "me")
    until(lambda: state(service, run) == "paused")
    seen = service.see(run)
    assert (seen.log.step, seen.status.step, max(seen.kept)) == (back, back, back)
    service.resume(run, "me")
    assert over(service, run) == "finished"
    assert same(weights(service, run), end)
    assert service.rewind(run, back, "me", asked.with_training(learning_rate=0.001), go=True)
    assert over(service, run) == "finished"
    assert not same(weights(service, run), end)
    assert service.see(run).spec.training.learning_rate == 0.001
    assert [one.kind for one in service.see(run).log.happened].count("end") == 1


def test_opt_11_a_diverged_run_says_where_and_goes_on_with_clipping(service):
    members = (Member(kind="relu", width=16), Member(kind="gru", width=8))
    asked = spec(steps=60, members=members, learning_rate=100.0, max_norm=float("inf"))
    run = service.start(asked, TEXT, "me")
    assert over(service, run) == "finished"  # the other model goes on
    seen = service.see(run)
    broken = seen.log.last("diverged")
    assert broken.values == {"m": 0, "what": "loss", "tensor": "Y"}
    assert np.isnan(seen.log.losses[0][broken.step - 1])
    assert not np.isnan(seen.log.losses[0][: broken.step - 1]).any()
    assert all(bool(value.isfinite().all()) for value in weights(service, run).values())
    start = max(step for step in seen.kept if step < broken.step)
    assert service.rewind(run, start, "me", asked.with_training(learning_rate=0.1, max_norm=1.0), go=True)
    assert over(service, run) == "finished"
    assert service.see(run).log.last("diverged") is None


def test_early_stopping_ends_a_model_after_its_best(service):
    asked = replace(spec(steps=LONG, learning_rate=0.05, held_out_every=5, members=(Member(width=24),)), patience=6)
    run = service.start(asked, TEXT, "me")
    assert over(service, run) == "stopped"
    seen = service.see(run)
    assert seen.status.reason == "turned"
    best, _ = seen.log.best(0)
    assert seen.log.last("turned").values == {"m": 0, "best": best}
    assert best in seen.kept
    assert seen.log.step == best + 30


def test_a_kept_state_is_a_checkpoint(service):
    run = service.start(spec(steps=20), TEXT, "me")
    assert over(service, run) == "finished"
    folder = service.find(run)
    found = checkpoint_of(folder, 20, 0)
    assert same(dict(found.model.state_dict()), weights(service, run))
    assert found.vocabulary == TEXT.vocabulary
    assert not same(dict(checkpoint_of(folder, 0, 0).model.state_dict()), weights(service, run))
    for step, member in ((7, 0), (20, 3)):
        with pytest.raises(ValueError, match="cannot be opened"):
            checkpoint_of(folder, step, member)


def test_samples_follow_what_is_asked_while_the_run_rests(service):
    run = service.start(spec(steps=LONG), TEXT, "me", paused=True)
    until(lambda: state(service, run) == "paused" and service.see(run).view is not None)
    assert service.see(run).log.step == 0
    seen = service.see(run).view.members[0].added
    service.sampling(run, Sampling(temperature=0))
    until(lambda: service.see(run).view.members[0].added != seen)
    service.stop(run)
    assert over(service, run) == "stopped"


def test_the_queue_has_places_and_one_visitor_does_not_hold_up_another(tmp_path):
    service = service_in(tmp_path, per_visitor=1, total=2, queue=2)
    try:
        first = service.start(spec(steps=LONG), TEXT, "me")
        second = service.start(spec(), TEXT, "me")
        third = service.start(spec(steps=LONG), TEXT, "you")
        past(service, third, 1)
        assert (service.see(second).place, service.see(second).status.state) == (1, "queued")
        fourth = service.start(spec(), TEXT, "she")
        assert service.see(fourth).place == 2
        with pytest.raises(Refused) as refused:
            service.start(spec(), TEXT, "he")
        assert refused.value.note.key == "training.queue_full"
        service.stop(fourth)
        assert state(service, fourth) == "stopped"
        service.stop(first)
        assert over(service, second) == "finished"
        service.stop(third)
        assert over(service, third) == "stopped"
    finally:
        service.close()


def test_what_is_no_run_is_no_run(service):
    for name in ("", "0" * 16, "../etc", "x", "." * 16):
        assert service.see(name) is None
        service.pause(name)
        service.resume(name, "me")
        service.step(name, "me")
        assert not service.rewind(name, 0, "me")
    assert not any("0" * 16 in path.name for path in service.root.iterdir())
    assert RunFolder(service.root / ("0" * 16)).status.state == "interrupted"
