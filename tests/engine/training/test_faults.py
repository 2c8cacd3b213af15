"""What the machine may do to a live run: a full disk, too little memory, nobody looking, thirty runs in a row, no fork."""

import errno
import time
from pathlib import Path

import pytest
import torch

from engine.decoding import encode_prefix, sample
from engine.training import worker
from engine.training.files import Control, RunFolder, Sampling, Status
from engine.training.jobs import Refused, Service
from engine.training.models import build, config_of
from engine.training.spec import Limits, Member
from engine.training.viewing import continued, probe_values, quick_sample, stepper
from tests.engine.training.live import TEXT, by_itself, over, past, processes, resident, same, service_in, spec, weights

LONG = 40_000


def full(*_arguments, **_options):
    raise OSError(errno.ENOSPC, "No space left on device")


def folder_in(path: Path, **changes) -> RunFolder:
    return RunFolder.create(path, "0123456789abcdef", spec(**changes), TEXT)


def test_a_full_disk_interrupts_a_run_which_goes_on_when_there_is_room(tmp_path, monkeypatch, capfd):
    folder = folder_in(tmp_path, steps=40)
    monkeypatch.setattr(worker, "SAVE", 0.0)
    original, calls = worker.write_whole, []

    def fills(path, content, **options):
        calls.append(path)
        (original if len(calls) < 9 else full)(path, content, **options)

    with monkeypatch.context() as patch:
        patch.setattr(worker, "write_whole", fills)
        patch.setattr(worker.Worker, "_show", lambda self: None)
        assert worker.guarded(folder, Limits()) == 1
    assert folder.status == Status(state="interrupted", reason="disk", step=folder.said.step, seconds=folder.said.seconds)
    assert "No space left" in capfd.readouterr().err
    assert not list(folder.path.rglob(".*"))  # nothing half written
    assert worker.guarded(folder, Limits()) == 0
    assert folder.status.state == "finished"
    service = Service(tmp_path)
    try:
        seen = service.see(folder.id)
        assert list(seen.log.steps) == list(range(1, 41))
        assert same(weights(service, folder.id), by_itself(spec(steps=40), TEXT)[0])
    finally:
        service.close()


def test_a_disk_that_takes_not_even_the_log_leaves_an_interrupted_run(tmp_path, monkeypatch, capfd):
    folder = folder_in(tmp_path)
    monkeypatch.setattr(RunFolder, "append", full)
    monkeypatch.setattr(RunFolder, "write_status", full)
    assert worker.guarded(folder, Limits()) == 1
    monkeypatch.undo()
    folder.write_status(Status(state="running"))  # what a worker had said before
    assert folder.status.state == "interrupted"
    capfd.readouterr()


def test_a_new_run_on_a_full_disk_is_refused_and_leaves_nothing(tmp_path, monkeypatch):
    service = Service(tmp_path)
    try:
        monkeypatch.setattr("engine.training.files.write_whole", full)
        with pytest.raises(Refused) as refused:
            service.start(spec(), TEXT, "me")
        assert refused.value.note.key == "training.disk"
        assert list(tmp_path.iterdir()) == []
    finally:
        service.close()


def test_a_run_that_needs_too_much_memory_ends_and_says_so(tmp_path):
    service = service_in(tmp_path, memory=40_000_000)
    try:
        run = service.start(spec(members=(Member(kind="gru", width=1500),)), TEXT, "me")
        assert over(service, run) == "failed"
        assert service.see(run).status.reason == "memory"
    finally:
        service.close()


def test_ses_07_a_run_that_nobody_looks_at_ends_and_can_be_resumed(tmp_path):
    service = service_in(tmp_path, idle=1.0)
    try:
        run = service.start(spec(steps=LONG), TEXT, "me")
        past(service, run, 1)
        folder, end = RunFolder(tmp_path / run), time.monotonic() + 60
        while folder.status.state != "idle":
            assert time.monotonic() < end
            time.sleep(0.05)
        assert folder.last.exists()
        step = folder.said.step
        service.resume(run, "me")
        past(service, run, step + 1)
    finally:
        service.close()


def test_a_run_does_not_train_longer_than_it_may(tmp_path):
    folder = folder_in(tmp_path, steps=LONG)
    assert worker.guarded(folder, Limits(seconds=0.2)) == 0
    assert (folder.status.state, folder.status.reason) == ("stopped", "seconds")
    step = folder.status.step
    assert worker.guarded(folder, Limits(seconds=0.2)) == 0  # asked again, it goes on as long again
    assert folder.status.step > step


def test_a_folder_that_somebody_removes_ends_its_run(tmp_path):
    service = service_in(tmp_path)
    try:
        run = service.start(spec(steps=LONG), TEXT, "me")
        past(service, run, 1)
        RunFolder(tmp_path / run).delete()
        end = time.monotonic() + 60
        while run in service.launcher.working:
            assert time.monotonic() < end
            time.sleep(0.02)
        assert service.see(run) is None
    finally:
        service.close()


def test_thirty_runs_leave_no_process_no_file_and_no_growing_memory(tmp_path):
    service = service_in(tmp_path, per_visitor=4, total=4)
    try:
        sizes = []
        for _ in range(3):
            runs = [service.start(spec(steps=6, held_out_every=0), TEXT, "me") for _ in range(10)]
            assert {over(service, run) for run in runs} == {"finished"}
            launcher = service.launcher._warm.pid
            sizes.append(
                (
                    resident(launcher),
                    len(list(Path(f"/proc/{launcher}/fd").iterdir())),
                    len(list(Path("/proc/self/fd").iterdir())),
                )
            )
        assert service.launcher.working == set()
        assert [
            int(pid) for pid in Path(f"/proc/{launcher}/task/{launcher}/children").read_text(encoding="ascii").split()
        ] == []
        assert sizes[2][0] - sizes[0][0] < 4_000_000
        assert sizes[2][1:] == sizes[0][1:]
        service.limits = Limits(keep=0.0)
        time.sleep(0.01)
        service.sweep()
        assert list(tmp_path.iterdir()) == []
    finally:
        service.close()
    assert processes(str(tmp_path)) == []
    assert not Path(f"/proc/{launcher}").exists()


def test_when_files_take_too_much_room_the_oldest_go_first(tmp_path):
    service = service_in(tmp_path)
    try:
        runs = [service.start(spec(steps=2), TEXT, "me") for _ in range(3)]
        for run in runs:
            assert over(service, run) == "finished"
        for run in runs:
            service.touch(run)
            time.sleep(0.02)
        sizes = [RunFolder(tmp_path / run).size() for run in runs]
        service.limits = Limits(disk_bytes=sizes[1] + sizes[2])
        service.sweep()
        assert {path.name for path in tmp_path.iterdir()} == set(runs[1:])
    finally:
        service.close()


def test_without_fork_a_worker_is_started_anew(tmp_path):
    service = Service(tmp_path, Limits(nice=0), forks=False)
    try:
        run = service.start(spec(steps=12), TEXT, "me")
        assert over(service, run) == "finished"
        assert same(weights(service, run), by_itself(spec(steps=12), TEXT)[0])
    finally:
        service.close()


def test_a_worker_whose_server_is_gone_ends_with_its_last_state(tmp_path):
    folder = folder_in(tmp_path, steps=LONG)
    steps = []

    def terminated():
        steps.append(1)
        return len(steps) > 12

    assert worker.guarded(folder, Limits(), terminated) == 0
    assert (folder.status.state, folder.status.step) == ("interrupted", 12)


# --------------------------------------------------------------------------------------------------------------- looking


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm", "relu"])
def test_the_probe_shows_the_values_of_the_trace(kind):
    model = build(config_of(kind, 9, 2, 11, 5), torch.Generator().manual_seed(1))
    ids = [1, 5, 2, 2, 7]
    trace = model.trace(torch.tensor(ids)[:, None])
    for name, values in probe_values(model, ids).items():
        torch.testing.assert_close(values, torch.tensor(trace[f"layers.1.forward.{name}"])[:, 0], rtol=0, atol=1e-6)
    assert probe_values(model, []) == {}


@pytest.mark.parametrize("how", [Sampling(), Sampling(temperature=1.3, top_k=4, seed=3), Sampling(temperature=0.5, top_p=0.7)])
def test_the_quick_sample_is_the_one_that_is_explained(how):
    model = build(config_of("gru", 9, 1, len(TEXT.vocabulary), 9), torch.Generator().manual_seed(1))
    start, _ = encode_prefix(list("9 bo"), TEXT.vocabulary)
    slow = sample(
        stepper(model),
        start,
        40,
        torch.Generator().manual_seed(how.seed),
        temperature=how.temperature,
        top_k=how.top_k,
        top_p=how.top_p,
        forbidden=(0,),
    )
    assert quick_sample(model, start, 40, how) == slow.tokens
    again = [continued(model, TEXT.vocabulary, "9 bo", how) for _ in range(2)]
    assert again[0] == again[1]


def test_a_text_is_also_continued_greedily_by_beams_and_from_strange_beginnings():
    model = build(config_of("gru", 9, 1, len(TEXT.vocabulary), 9), torch.Generator().manual_seed(1))
    for how in (Sampling(temperature=0), Sampling(beam=3)):
        for prefix in ("9", "", "你好"):
            assert len(continued(model, TEXT.vocabulary, prefix, how, 12)) == 12


def test_what_is_asked_is_read_back(tmp_path):
    folder = folder_in(tmp_path)
    for control in (
        Control(),
        Control(go="pause", until=7, sampling=Sampling(temperature=0, top_k=3, top_p=0.5, beam=2, seed=9)),
    ):
        folder.write_control(control)
        assert folder.control == control
