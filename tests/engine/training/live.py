"""What the tests of live runs share: small runs, waiting for them, and the same run without any process."""

import time
from collections.abc import Callable
from pathlib import Path

import torch

from engine.training.batch import TextBatches
from engine.training.files import RunFolder, read_states
from engine.training.jobs import Service
from engine.training.loop import Training, TrainingConfig
from engine.training.models import build, config_of
from engine.training.spec import UNKNOWN_SHARE, Limits, Material, Member, RunSpec, material

TEXT = material("".join(f"{number} bottles of beer on the wall, {number} bottles of beer.\n" for number in range(120)))
OVER = ("stopped", "finished", "diverged", "failed", "interrupted", "idle")
PATIENCE = 90.0  # seconds; a busy machine is slow


def spec(steps: int = 40, members: tuple[Member, ...] = (Member(kind="gru", width=8),), **training: object) -> RunSpec:
    """A run of milliseconds a step."""
    config = TrainingConfig(**({"steps": steps, "learning_rate": 0.01, "held_out_every": 10} | training))  # type: ignore[arg-type]
    return RunSpec(members=members, training=config, batch_size=4, num_steps=9, prefix="9", probe="10 bottles")


def until(true: Callable[[], bool]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, "it did not come to be"
        time.sleep(0.01)


def state(service: Service, run: str) -> str:
    seen = service.see(run)
    assert seen is not None
    return seen.status.state


def over(service: Service, run: str) -> str:
    """The state in which a run ends."""
    until(lambda: state(service, run) in OVER and run not in service.launcher.working)
    return state(service, run)


def past(service: Service, run: str, step: int) -> None:
    """Wait until a run has done this step."""

    def done() -> bool:
        seen = service.see(run)
        return seen is not None and seen.log.step >= step

    until(done)


def weights(service: Service, run: str, member: int = 0) -> dict[str, torch.Tensor]:
    """The weights in a run's last state."""
    states, _ = read_states(RunFolder(service.root / run).last)
    return dict(states[member].weights)


def by_itself(of: RunSpec, text: Material, member: int = 0) -> tuple[dict[str, torch.Tensor], list[float]]:
    """The same training in this process, by the loop alone: its weights and its losses."""
    one = of.members[member]
    config = config_of(one.kind, one.width, one.layers, len(text.vocabulary), of.num_steps)
    model = build(config, torch.Generator().manual_seed(of.seed))
    ids = torch.tensor(text.vocabulary[list(text.train)])
    source = TextBatches(
        ids=ids,
        batch_size=of.batch_size,
        num_steps=of.num_steps,
        sampling=of.sampling,  # type: ignore[arg-type]
        unknown_share=UNKNOWN_SHARE,
    )
    run = Training(model, source, of.training, torch.Generator().manual_seed(of.seed + 1))
    losses = [event.loss for event in iter(run.advance, None)]
    return dict(model.state_dict()), losses


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def service_in(folder: Path, **limits: object) -> Service:
    return Service(folder, Limits(**({"nice": 0} | limits)))  # type: ignore[arg-type]


def processes(marker: str) -> list[int]:
    """The processes whose command line names this, by number (Linux)."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes()
        except OSError:
            continue
        if marker.encode() in command:
            found.append(int(path.parent.name))
    return found


def resident(pid: int) -> int:
    """Bytes that a process has in memory."""
    return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * 4096
