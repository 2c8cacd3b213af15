"""A look into a model in training: its gates and states on a fixed sentence, and how it continues a fixed beginning.

It draws no number of the training and changes nothing; it is made for whoever looks, not for the record.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as tensor_bytes
from torch import Tensor

from engine.decoding import Step, beam_search, encode_prefix, greedy, next_token_probabilities, with_state
from engine.language_models import LanguageModel
from engine.text.vocabulary import Vocabulary
from engine.training.files import Sampling
from engine.transformer.language_model import TransformerLanguageModel

PROBE_TOKENS = 48
PROBE_UNITS = 24
HEADS_SHOWN = 4
SAMPLE_TOKENS = 64
UNKNOWN_ID = 0
# What is shown of a cell, with the interval its values lie in.
SHOWN: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "rnn": {"H": (-1, 1)},
    "gru": {"R": (0, 1), "Z": (0, 1), "H": (-1, 1)},
    "relu": {"H": (0, 4)},
    "lstm": {"F": (0, 1), "I": (0, 1), "O": (0, 1), "H": (-1, 1)},
    "transformer": {f"A{head + 1}": (0, 1) for head in range(HEADS_SHOWN)},
}


@dataclass(frozen=True, kw_only=True)
class Look:
    """One member at one moment: values (T, units) by symbol, of the top layer, and the characters it added.

    Of a Transformer the weights (T, S) of the first heads of its last block.
    """

    step: int
    values: Mapping[str, Tensor] = field(repr=False)
    added: str


@dataclass(frozen=True, kw_only=True)
class View:
    """All members of a run at one moment. ``read``: the probe as it was read; ``prefix``: what is continued."""

    read: tuple[str, ...]
    prefix: str
    members: tuple[Look, ...]


def probe_values(model: LanguageModel, ids: Sequence[int]) -> dict[str, Tensor]:
    """Values (T, units) of the symbols that are shown, on one sequence; nothing for a model that has none of them."""
    if not ids:
        return {}
    if isinstance(model, TransformerLanguageModel):
        A = model.trace(torch.tensor(ids[: model.context])[:, None])[f"blocks.{model.num_layers - 1}.attention.A"]
        return {f"A{head + 1}": torch.tensor(A[0, head]) for head in range(min(model.heads, HEADS_SHOWN))}
    with torch.no_grad():
        passes = model.recurrent.unroll(model.one_hot(torch.tensor(ids)[:, None]), None, {}, record=False)
    steps = passes[-1].results
    names = SHOWN[model.recurrent.kind]
    return {name: torch.stack([step[name][0, :PROBE_UNITS] for step in steps]) for name in names}


def reader(model: LanguageModel) -> Callable[[Tensor, Any], tuple[Tensor, Any]]:
    """Ids (T, B) and a state in, scores (T, B, V) and the state after them out."""
    return model.read if isinstance(model, TransformerLanguageModel) else model


def stepper(model: LanguageModel) -> Step:
    """The model as ``engine.decoding`` asks it: scores of the next token, its state carried on."""
    read = reader(model)

    def advance(ids: tuple[int, ...], state: Any) -> tuple[Tensor, Any]:
        with torch.no_grad():
            scores, state = read(torch.tensor(ids)[:, None], state)
        return scores[-1, 0], state

    return with_state(advance)


def continued(model: LanguageModel, vocabulary: Vocabulary, prefix: str, how: Sampling, count: int = SAMPLE_TOKENS) -> str:
    """What the model adds to a beginning. The same settings give the same text, however often one looks."""
    start, _ = encode_prefix(list(prefix), vocabulary)
    forbidden = (UNKNOWN_ID,)
    if how.beam > 1:
        tokens = beam_search(stepper(model), start, count, how.beam, forbidden=forbidden).best.tokens
    elif how.temperature == 0:
        tokens = greedy(stepper(model), start, count, forbidden=forbidden).tokens
    else:
        tokens = quick_sample(model, start, count, how)
    return "".join(vocabulary.to_tokens(list(tokens)))


def quick_sample(model: LanguageModel, start: Sequence[int], count: int, how: Sampling) -> tuple[int, ...]:
    """The tokens that ``engine.decoding.sample`` would draw, without keeping how each was chosen."""
    generator, state, tokens = torch.Generator().manual_seed(how.seed), None, list[int]()
    read, fresh = reader(model), torch.tensor(start)[:, None]
    with torch.no_grad():
        for _ in range(count):
            scores, state = read(fresh, state)
            last = scores[-1, 0].double()
            last[UNKNOWN_ID] = -math.inf
            chances = next_token_probabilities(last, how.temperature, how.top_k, how.top_p)
            draw = torch.rand((), generator=generator, dtype=torch.float64)
            place = int(torch.searchsorted(chances.cumsum(0), draw, right=True))
            tokens.append(place if place < len(chances) else int(chances.nonzero()[-1]))
            fresh = torch.tensor([[tokens[-1]]])
    return tuple(tokens)


def look(model: LanguageModel, vocabulary: Vocabulary, probe: str, prefix: str, how: Sampling, step: int) -> Look:
    """Look into one member."""
    ids = vocabulary[list(probe[:PROBE_TOKENS])]
    try:
        added = continued(model, vocabulary, prefix, how)
    except ValueError:  # on some text the scores of a model that is about to diverge are no numbers any more
        added = ""
    return Look(step=step, values=probe_values(model, ids), added=added)


def view_to_bytes(view: View) -> bytes:
    """A view as a file."""
    tensors = {
        f"{place}/{name}": values.contiguous() for place, one in enumerate(view.members) for name, values in one.values.items()
    }
    about = {
        "read": list(view.read),
        "prefix": view.prefix,
        "members": [{"step": one.step, "added": one.added} for one in view.members],
        "made": time.time(),
    }
    return tensor_bytes(tensors or {"none": torch.zeros(1)}, metadata={"about": json.dumps(about)})


def read_view(path: Path) -> View | None:
    """The view in a file; None where there is none."""
    try:
        with safe_open(path, framework="pt") as file:
            about = json.loads((file.metadata() or {})["about"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 no dictionary
    except (OSError, SafetensorError, KeyError, ValueError):
        return None
    members = tuple(
        Look(
            step=one["step"],
            added=one["added"],
            values={n.partition("/")[2]: v for n, v in tensors.items() if n.startswith(f"{place}/")},
        )
        for place, one in enumerate(about["members"])
    )
    return View(read=tuple(about["read"]), prefix=about["prefix"], members=members)
