"""What the engine has to say about an input, without words: a key and its values. The words stand in assets/locale."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Note:
    """One remark. ``Note("text.line_ends", {"count": 3})`` becomes a sentence in the learner's language on the page."""

    key: str
    values: Mapping[str, Any] = field(default_factory=dict)
