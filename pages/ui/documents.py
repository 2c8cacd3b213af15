"""Texts too long for the stage, kept by this server process so that a refresh finds them again.

A document is named by a digest of its text, so nobody finds one without having it. The store is bounded: the document
that was used longest ago goes first. A link opened on another server has only the window that it carries itself.
"""

import threading
from collections import OrderedDict
from dataclasses import dataclass
from hashlib import blake2b

from pages.ui.config import window

LIMIT_CHARACTERS = 16_000_000

_lock = threading.Lock()
_documents: OrderedDict[str, "Document"] = OrderedDict()


@dataclass(frozen=True)
class Document:
    """A long text and the characters (from 0) at which its windows begin."""

    text: str
    starts: tuple[int, ...]

    def part(self, number: int) -> str:
        """The window with this number, from 0."""
        return window(self.text, self.starts[number])

    def number_at(self, character: int) -> int:
        """The number of the window that holds this character; the last one for a character beyond the end."""
        return max(number for number, start in enumerate(self.starts) if start <= max(character, 0))


def keep(text: str, *, cut: bool = True) -> str:
    """Store a text and return its name. One that is no prose (a table) is not cut into windows."""
    name = blake2b(text.encode(), digest_size=12).hexdigest()
    starts = [0]
    while cut and (end := starts[-1] + len(window(text, starts[-1]))) < len(text):
        starts.append(end)
    with _lock:
        _documents[name] = Document(text, tuple(starts))
        _documents.move_to_end(name)
        while len(_documents) > 1 and sum(len(each.text) for each in _documents.values()) > LIMIT_CHARACTERS:
            _documents.popitem(last=False)
    return name


def find(name: str) -> Document | None:
    """The document with this name, or None if this server does not have it (any more)."""
    with _lock:
        if name in _documents:
            _documents.move_to_end(name)
        return _documents.get(name)
