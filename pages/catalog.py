"""The one list of lessons: chapter, order, key. The frame, the home page and the tests read it.

A lesson's key is its address (``/lstm``), its script (``pages/lstm.py``), the name of its texts
(``assets/lessons/en/lstm.md``) and the stem of its words (``lesson.lstm.title``).
"""

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent

ROAD: dict[str, tuple[str, ...]] = {
    "sequences": ("autoregression", "tokens", "embeddings"),
    "memory": ("rnn", "truncation", "lstm", "gru", "deep_rnn", "language_model"),
    "attention": ("kernel_regression", "scoring", "seq2seq", "bahdanau", "multihead", "positions"),
    "transformer": ("residual_norm", "transformer", "cost", "pretrained", "questions"),
}


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """One stop of the road. ``number`` counts from 1 over all chapters."""

    number: int
    key: str
    chapter: str

    @property
    def script(self) -> Path:
        """Its page script; absolute, because pages stand outside the frame script's folder."""
        return FOLDER / f"{self.key}.py"

    @property
    def ready(self) -> bool:
        """Whether it is built; if not, it is shown as coming and has no page."""
        return self.script.is_file()


LESSONS: tuple[Lesson, ...] = tuple(
    Lesson(number=number, key=key, chapter=chapter)
    for number, (chapter, key) in enumerate(((c, k) for c, keys in ROAD.items() for k in keys), start=1)
)


def chapters() -> dict[str, tuple[Lesson, ...]]:
    """The lessons of each chapter, in order."""
    return {chapter: tuple(lesson for lesson in LESSONS if lesson.chapter == chapter) for chapter in ROAD}


def near(key: str) -> tuple[Lesson, ...]:
    """The lessons that are ready around the one with this key: the one before, itself, the one after."""
    ready = [lesson for lesson in LESSONS if lesson.ready]
    place = next((number for number, lesson in enumerate(ready) if lesson.key == key), None)
    return () if place is None else tuple(ready[max(place - 1, 0) : place + 2])
