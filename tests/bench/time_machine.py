"""How well a GRU of 256 units foretells text that it has not learnt, with early stopping, trained as a visitor's run.

``TEXT=path make bench ARGS=time_machine`` takes a text as a visitor would upload it, for instance Wells's *The Time Machine*
(the textbook's corpus); without one, a part of the installed King James Bible of the same length. Twice: as the textbook cuts
it (letters and blanks of the first 10,000 characters, judged on the next 10,000), and the whole text as the lesson splits it.
"""

import math
import os
import re
import tempfile
import time
from pathlib import Path

from engine.data.corpora import king_james
from engine.metrics import perplexity_text
from engine.text.reading import read_file
from engine.text.vocabulary import Vocabulary
from engine.training.jobs import Service
from engine.training.loop import TrainingConfig
from engine.training.spec import Limits, Material, Member, RunSpec, material

LENGTH = 180_000
PIECE = 10_000
MOST = 8.3  # the textbook's settings reach 8.0 at best; what it prints, 1.0, is perplexity on what is learnt by heart
LIMIT = 900.0  # seconds that one run may take
GRU = (Member(kind="gru", width=256),)


def text() -> tuple[str, str]:
    """The name of the text, and the text."""
    path = os.environ.get("TEXT")
    if not path:
        return "King James Bible", king_james()[:LENGTH]
    reading = read_file(Path(path), first_part=True)
    if reading.text is None:
        raise SystemExit(f"{path} cannot be read: {', '.join(note.key for note in reading.notes)}")
    return Path(path).stem, reading.text


def as_the_textbook(whole: str) -> Material:
    """Small letters and blanks, the lines joined without one; 10,000 characters to learn, the next 10,000 to judge."""
    lines = (re.sub("[^A-Za-z]+", " ", line).strip().lower() for line in whole.splitlines())
    letters = "".join(lines)
    return Material(train=letters[:PIECE], held_out=letters[PIECE : 2 * PIECE], vocabulary=Vocabulary(letters))


def trained(service: Service, spec: RunSpec, of: Material) -> str:
    """One run to its early stop, as a line without its verdict; the best loss is what counts."""
    run, start = service.start(spec, of, "bench"), time.monotonic()
    while True:
        seen = service.see(run)
        assert seen is not None
        late = time.monotonic() - start > LIMIT
        if late:
            service.stop(run)
        if run not in service.launcher.working and seen.status.state not in ("queued", "starting", "running"):
            break
        time.sleep(0.2)
    best = seen.log.best(0)
    assert best is not None
    step, loss = best
    at = int(step) - 1
    train = sum(seen.log.losses[0][max(at - 8, 0) : at]) / max(1, min(at, 8))
    count = min(seen.log.ngrams)
    missed = "" if math.exp(loss) <= MOST else " MISSED"
    return (
        f"held out {perplexity_text(loss)} at step {step} (training {perplexity_text(train)}; best of counting "
        f"{perplexity_text(count)}; at most {MOST}), {time.monotonic() - start:.0f} s{missed}"
    )


def run() -> list[str]:
    """Train both ways and report, a line each."""
    name, whole = text()
    training = TrainingConfig(steps=1500, learning_rate=2e-3, held_out_every=10)
    book = RunSpec(members=GRU, training=training, patience=15)
    lesson = RunSpec(members=GRU, training=TrainingConfig(steps=1500, learning_rate=5e-3, held_out_every=10), patience=15)
    with tempfile.TemporaryDirectory() as folder:
        service = Service(Path(folder), Limits(nice=0))
        try:
            lines = [f"{name}, {PIECE:,} letters: {trained(service, book, as_the_textbook(whole))}"]
            lines.append(f"{name}, {len(whole):,} characters: {trained(service, lesson, material(whole))}")
        finally:
            service.close()
    return lines
