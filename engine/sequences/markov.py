r"""Markov chains on tokens: what comes next depends on the last k tokens alone.

A state is a run of k tokens that occurs in the text, a transition moves it by one token. The transition matrix has rows that
sum to 1; n steps ahead are its n-th power, P(x_{t+n} | x_t) = sum over what lies between (Chapman and Kolmogorov).

The text is read as a ring: after its last token comes its first again. So every state has a next one, the chain can go from
every state to every other, and its stationary distribution is, exactly, how often each state occurs in the text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from engine.trace import Array, frozen

DENSE_STATES = 512  # a matrix of more states is not written out
Numbers = NDArray[np.int64]
Item = TypeVar("Item", str, tuple[str, ...])


@dataclass(frozen=True, kw_only=True)
class MarkovChain:
    """The chain of order ``order`` of a text.

    ``tokens`` (V,) the distinct tokens, most frequent first; ``states`` the runs of ``order`` tokens, most frequent first, with
    ``counts`` (S,). Transitions one by one: ``source`` and ``target`` (E,), ``next_token`` (E,), ``chance`` (E,).
    """

    order: int
    tokens: tuple[str, ...] = field(repr=False)
    states: tuple[tuple[str, ...], ...] = field(repr=False)
    counts: Numbers = field(repr=False)
    source: Numbers = field(repr=False)
    target: Numbers = field(repr=False)
    next_token: Numbers = field(repr=False)
    chance: Array = field(repr=False)

    def __len__(self) -> int:
        """The number of states S."""
        return len(self.states)

    def state(self, tokens: Sequence[str]) -> int:
        """The number of the state that ends these tokens. Raises ``KeyError`` when the text never has it."""
        wanted = tuple(tokens[-self.order :])
        if wanted not in self.states:
            raise KeyError(f"{''.join(wanted)!r} is no run of {self.order} tokens of this text")
        return self.states.index(wanted)

    def matrix(self, steps: int = 1) -> Array:
        """P^steps (S, S): row = state now, column = state after ``steps`` steps. Raises ``ValueError`` for too many states."""
        if len(self) > DENSE_STATES:
            raise ValueError(f"a matrix of {len(self)} states is not written out (at most {DENSE_STATES}); use ahead()")
        if steps < 0:
            raise ValueError(f"steps must be at least 0, not {steps}")
        matrix = np.zeros((len(self), len(self)))
        np.add.at(matrix, (self.source, self.target), self.chance)
        return frozen(np.linalg.matrix_power(matrix, steps))

    def ahead(self, state: int, steps: int) -> Array:
        """Where the chain is, 0, 1, ..., ``steps`` steps after it stood in ``state``: (steps + 1, S), each row sums to 1."""
        now: Array = np.zeros(len(self))
        now[state] = 1.0
        rows = [now]
        for _ in range(steps):
            now = np.bincount(self.target, weights=now[self.source] * self.chance, minlength=len(self)).astype(np.float64)
            rows.append(now)
        return frozen(np.stack(rows))

    def tokens_ahead(self, state: int, steps: int) -> Array:
        """The distribution of the token 1, ..., ``steps`` steps after ``state``: (steps, V)."""
        places = self.ahead(state, steps)[:-1]
        rows = [np.bincount(self.next_token, weights=p[self.source] * self.chance, minlength=len(self.tokens)) for p in places]
        return frozen(np.stack(rows))

    def stationary(self) -> Array:
        """The one distribution (S,) that a step leaves as it is: the share of each state in the text."""
        return frozen(self.counts / self.counts.sum())

    def forgetting(self, state: int, steps: int) -> Array:
        """Half the summed difference to the stationary distribution (total variation, 0 to 1) after 0, ..., ``steps`` steps.

        A periodic chain ("abab") never forgets where it stood.
        """
        return np.asarray(0.5 * np.abs(self.ahead(state, steps) - self.stationary()).sum(axis=1))

    def second_eigenvalue(self) -> float:
        """The largest modulus of an eigenvalue beside the 1: the pace at which the chain forgets, 1 for a periodic one."""
        moduli = np.sort(np.abs(np.linalg.eigvals(self.matrix())))
        return float(moduli[-2]) if len(moduli) > 1 else 0.0

    def sample(self, length: int, generator: torch.Generator, start: int = 0) -> list[str]:
        """``length`` tokens that the chain says after ``state`` number ``start``."""
        first = np.searchsorted(self.source, np.arange(len(self) + 1))
        drawn = torch.rand(length, generator=generator, dtype=torch.float64).numpy()
        said, state = [], start
        for number in drawn:
            low, high = first[state], first[state + 1]
            place = min(high - 1, low + int(np.searchsorted(np.cumsum(self.chance[low:high]), number, side="right")))
            said.append(self.tokens[self.next_token[place]])
            state = int(self.target[place])
        return said

    def log_loss(self, tokens: Sequence[str]) -> tuple[float, int]:
        """Mean of -log P over the tokens that the chain can predict, and how many it cannot (a state or step it never saw)."""
        known = {
            (self.states[source], self.tokens[token]): float(np.log(chance))
            for source, token, chance in zip(self.source, self.next_token, self.chance, strict=True)
        }
        logs = [known.get((tuple(tokens[t - self.order : t]), tokens[t])) for t in range(self.order, len(tokens))]
        seen = [log for log in logs if log is not None]
        return (-float(np.mean(seen)) if seen else float("nan")), len(logs) - len(seen)


def markov_chain(tokens: Sequence[str], order: int = 1) -> MarkovChain:
    """The chain of a text cut into tokens. Raises ``ValueError`` for an order below 1 or a text shorter than order + 1."""
    if order < 1:
        raise ValueError(f"the order must be at least 1, not {order}")
    if len(tokens) <= order:
        raise ValueError(f"a chain of order {order} needs at least {order + 1} tokens, not {len(tokens)}")
    ring = [*tokens, *tokens[:order]]
    runs = [tuple(ring[t : t + order]) for t in range(len(tokens))]
    states = _ranked(runs)
    vocabulary = _ranked(tokens)
    number = {state: n for n, state in enumerate(states)}
    token_number = {token: n for n, token in enumerate(vocabulary)}
    steps = Counter((number[run], token_number[ring[t + order]]) for t, run in enumerate(runs))
    order_of_steps = sorted(steps)
    source = np.array([pair[0] for pair in order_of_steps])
    said = np.array([pair[1] for pair in order_of_steps])
    target = np.array([number[(*states[s], vocabulary[n])[1:]] for s, n in order_of_steps])
    counted = Counter(runs)
    counts = np.array([counted[state] for state in states])
    chance = np.array([steps[pair] for pair in order_of_steps]) / counts[source]
    return MarkovChain(
        order=order,
        tokens=vocabulary,
        states=states,
        counts=counts,
        source=source,
        target=target,
        next_token=said,
        chance=frozen(chance),
    )


def _ranked(items: Sequence[Item]) -> tuple[Item, ...]:
    """The distinct items, most frequent first, equals in their own order."""
    return tuple(item for item, _ in sorted(Counter(items).items(), key=lambda pair: (-pair[1], pair[0])))
