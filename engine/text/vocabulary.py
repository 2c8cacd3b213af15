"""Tokens to numbers and back. Index 0 is ``<unk>``, the token of everything unknown."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType
from typing import Any, overload

UNKNOWN = "<unk>"


class Vocabulary:
    """The distinct tokens of a text, numbered: ``<unk>``, the reserved tokens, then by frequency and alphabet.

    Equally frequent tokens are ordered by code point, so the same text always gives the same numbers.

    Args:
        tokens: tokens, or lists of tokens (lines, sentences). A plain string counts as its characters.
        min_freq: tokens that occur less often are left out and read as ``<unk>``.
        reserved: tokens that must be there, in this order, whether or not the text has them; a string is one token.
        max_size: keep at most this many entries in all, the most frequent ones.

    ``counts`` holds how often each token occurs in the text, most frequent first, also those left out.
    """

    def __init__(
        self,
        tokens: Iterable[str] | Iterable[Iterable[str]] = (),
        min_freq: int = 0,
        reserved: Iterable[str] = (),
        *,
        max_size: int | None = None,
    ) -> None:
        counted = Counter(_flat(tokens))
        ranked = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
        first = list(dict.fromkeys((UNKNOWN, *((reserved,) if isinstance(reserved, str) else reserved))))
        kept = [token for token, count in ranked if count >= min_freq and token not in first]
        if max_size is not None:
            if max_size < len(first):
                raise ValueError(f"max_size {max_size} is less than the {len(first)} tokens that must be there")
            kept = kept[: max_size - len(first)]
        self._set((*first, *kept), dict(ranked))

    def _set(self, tokens: tuple[str, ...], counts: dict[str, int]) -> None:
        self.tokens = tokens
        self.counts: Mapping[str, int] = MappingProxyType(counts)
        self._index = {token: index for index, token in enumerate(tokens)}

    @classmethod
    def from_tokens(cls, tokens: Sequence[str], counts: Mapping[str, int] | None = None) -> "Vocabulary":
        """The vocabulary stored with a checkpoint: its tokens in order, ``<unk>`` first.

        Raises:
            ValueError: the list does not start with ``<unk>``, repeats a token, or holds something else than strings.
        """
        if not tokens or tokens[0] != UNKNOWN:
            raise ValueError(f"a stored vocabulary starts with {UNKNOWN!r}, this one with {next(iter(tokens), None)!r}")
        strange = [token for token in tokens if not isinstance(token, str)]
        if strange:
            raise ValueError(f"tokens are strings, got {strange[0]!r}")
        twice = [token for token, count in Counter(tokens).items() if count > 1]
        if twice:
            raise ValueError(f"token {twice[0]!r} stands in the list more than once")
        vocabulary = cls.__new__(cls)
        vocabulary._set(tuple(tokens), dict(counts or {}))
        return vocabulary

    @overload
    def __getitem__(self, tokens: str) -> int: ...
    @overload
    def __getitem__(self, tokens: list[str] | tuple[str, ...]) -> list[int]: ...
    @overload
    def __getitem__(self, tokens: list[list[str]]) -> list[list[int]]: ...
    def __getitem__(self, tokens: Any) -> Any:
        """The number of a token, or the numbers of a list of tokens, nested as the list is. Unknown tokens have 0."""
        if isinstance(tokens, str):
            return self._index.get(tokens, 0)
        if not isinstance(tokens, Iterable):
            raise TypeError(f"a token is a string, got {tokens!r}; to_tokens goes from numbers to tokens")
        index = self._index
        return [index.get(token, 0) if type(token) is str else self[token] for token in tokens]

    def to_tokens(self, ids: Any) -> Any:
        """The token of a number, or the tokens of a list, array or tensor of numbers, nested as that is.

        Raises:
            IndexError: a number outside 0..len-1; the message names it and the size.
        """
        if hasattr(ids, "tolist"):
            ids = ids.tolist()
        if isinstance(ids, Iterable) and not isinstance(ids, str):
            return [self.to_tokens(each) for each in ids]
        if not isinstance(ids, int):
            raise TypeError(f"a token number is a whole number, got {ids!r}")
        if not 0 <= ids < len(self.tokens):
            raise IndexError(f"token number {ids} does not exist: the vocabulary has {len(self.tokens)} (0 to {len(self) - 1})")
        return self.tokens[ids]

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: object) -> bool:
        return token in self._index

    def __iter__(self) -> Iterator[str]:
        return iter(self.tokens)

    def __eq__(self, other: object) -> bool:
        return self.tokens == other.tokens if isinstance(other, Vocabulary) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.tokens)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} tokens: {', '.join(map(repr, self.tokens[:8]))}{' ...' if len(self) > 8 else ''})"


@dataclass(frozen=True, kw_only=True)
class VocabularyCost:
    """What a vocabulary asks of a model, known before anything is allocated."""

    one_hot_bytes: int  # one minibatch of one-hot rows, float32
    output_parameters: int  # W_hq and b_q


def vocabulary_cost(size: int, *, hidden_size: int, num_steps: int, batch_size: int) -> VocabularyCost:
    """Memory of one-hot inputs and parameters of the output layer for a vocabulary of `size` tokens."""
    return VocabularyCost(
        one_hot_bytes=4 * size * num_steps * batch_size,
        output_parameters=hidden_size * size + size,
    )


def _flat(tokens: Any) -> Iterable[str]:
    """Tokens from tokens or from lists of tokens, however deep; a plain string counts as its characters."""
    if isinstance(tokens, str):
        return tokens
    return chain.from_iterable((each,) if isinstance(each, str) else _flat(each) for each in tokens)
