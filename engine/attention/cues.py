"""Where one looks, as attention: what stands out by itself (a key), and what one looks for (a query). After William James.

A coffee cup that is red draws the eye of somebody who wants nothing; somebody who wants to read sees the book. The table's
numbers are set by hand, as a picture of the idea; scores and weights come from the equations of ``engine.attention.scores``.
"""

from __future__ import annotations

from typing import Final

import torch

from engine.attention.scores import attend
from engine.trace import Trace

OBJECTS: Final = ("newspaper", "paper", "cup", "notebook", "book")
FEATURES: Final = ("stands_out", "reading", "drinking", "writing")
WISHES: Final = ("nothing", "read", "drink", "write")
KEYS: Final = (  # how strongly each object has each feature
    (0.5, 1.5, 0.0, 0.2),
    (0.2, 0.5, 0.0, 1.5),
    (2.5, 0.0, 2.0, 0.0),
    (0.4, 0.6, 0.0, 2.0),
    (0.6, 2.0, 0.0, 0.1),
)
WILL = 2.0  # how strongly one looks for what one wants; what stands out counts 1 for everybody


def look() -> Trace:
    """Four wishes (T) over five objects (S): scores q . k, weights, and the features that are taken in."""
    Q = torch.zeros(len(WISHES), len(FEATURES), dtype=torch.float64)
    Q[:, 0] = 1.0
    for wish in range(1, len(WISHES)):
        Q[wish, wish] = WILL
    K = torch.tensor(KEYS, dtype=torch.float64)
    return attend(Q, K, K, "dot_product")
