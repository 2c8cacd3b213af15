r"""A language model made of attention: a Transformer decoder without a second sequence, as GPT.

X_0 = sqrt(d) E + P,  X_l = Block_l(X_{l-1}) with each position seeing itself and what came before,  H = norm(X_L),
Y = H W_hq + b_q,  P = softmax(Y)

The input of token i is its one-hot row, so that E = X W_e is row i of W_e. Rows of W_e are drawn with the deviation
1 / sqrt(d), as Vaswani et al. 2017 take for granted when they multiply by sqrt(d): vectors and position codes then have the
same size. (Drawn with deviation 1, as an embedding layer of torch is, they would drown the positions.)

Departures from other texts, beside those of ``engine.transformer.blocks``: the output layer has a matrix of its own, not that
of the embeddings; a last norm follows the blocks, as in every pre-norm Transformer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional

from engine.attention.masks import fitted, keep_past
from engine.attention.positions import (
    LEARNED_TABLE,
    SINUSOIDAL,
    LearnedPositions,
    P_learned,
    position_table,
    sinusoidal_inputs,
    table_rows,
)
from engine.equation import Circuit, Interventions, Nested, Values, equation
from engine.operations import sqrt
from engine.recurrent.language_model import P, Y, checked_ids
from engine.recurrent.stack import fresh_generator, uniform_parameters
from engine.symbols import GATE, Symbol, symbol, table
from engine.trace import Trace
from engine.transformer.blocks import ACTIVATIONS, Block, Norm, block_circuit, block_tables
from engine.transformer.norms import EPS, LAYER_NORM, norm_table

MAX_LAYERS = 12
POSITIONS: Mapping[str, Circuit] = {"sinusoidal": SINUSOIDAL, "learned": Circuit(P_learned)}


@equation
def E(X, W_e):
    """The vector of each token: its row of the table."""
    return X @ W_e


@equation
def X_0(E, d, P_pos):
    """What the first block reads: each token's vector, and the code of its position."""
    return sqrt(d) * E + P_pos


@cache
def language_model_circuit(layers: int, activation: str, positions: str) -> Circuit:
    """The equations of the whole model: ``positions``, ``blocks.0``, ``blocks.1``, ..., ``norm`` inside."""
    block = block_circuit(activation)
    shared = {name: name for name in ("M", "N", "d_k", "eps")}
    members: list[Nested] = [
        block.inside(f"blocks.{n}", reads={"X": f"X_{n}", **shared}, gives={f"X_{n + 1}": "Y"}) for n in range(layers)
    ]
    norm = LAYER_NORM.inside("norm", reads={"X": f"X_{layers}", "eps": "eps"}, gives={"H": "Y"})
    return Circuit(E, POSITIONS[positions].inside("positions", reads={}, gives={"P_pos": "P"}), X_0, *members, norm, Y, P)


@cache
def language_model_tables(layers: int, positions: str) -> Mapping[str, Mapping[str, Symbol]]:
    """The symbols of the model, by scope."""
    own = table(
        symbol("X", "BTV", "input_value"),
        symbol("W_e", "VD", "weight"),
        symbol("E", "BTD", "state"),
        Symbol(name="P_pos", letter="P", subscript="pos", axes="TD", role="position"),
        *(symbol(f"X_{n}", "BTD", "state") for n in range(layers + 1)),
        symbol("H", "BTD", "state"),
        symbol("W_hq", "DV", "weight"),
        symbol("b_q", "V", "weight"),
        symbol("Y", "BTV", "score"),
        symbol("P", "BTV", "probability", GATE),
        symbol("M", "BNTS", "mask", GATE),
        *(symbol(name, "", "size") for name in ("d", "N", "d_k")),
        Symbol(name="eps", letter="ε", axes="", role="size"),
        whole=True,
    )
    scopes: dict[str, Mapping[str, Symbol]] = {
        "": own,
        "positions.": position_table() if positions == "sinusoidal" else LEARNED_TABLE,
        "norm.": norm_table(),
    }
    for n in range(layers):
        scopes |= block_tables(f"blocks.{n}.")
    return scopes


class TransformerLanguageModel(nn.Module):
    """Scores of the next token after each token, from that token and those before it.

    ``context`` is how many tokens it reads at once: what it is trained on, and the size of the learned table of positions
    (sinusoidal codes exist beyond it, but nothing was learned there). ``feed_forward`` is 4 x ``width`` unless given;
    ``activation`` "relu" or "gelu"; ``positions`` "sinusoidal" or "learned". Raises ``ValueError`` for what does not fit.

    Shape:
        ids (T, B) of int64, time first as in ``RecurrentLanguageModel`` -> Y (T, B, V).
        In the trace the batch comes first, as in every trace of attention: X (B, T, V), E, H (B, T, width), Y, P (B, T, V),
        ``blocks.0.attention.A`` (B, N, T, S), ``blocks.0.feed_forward.U`` (B, T, feed_forward).
        Parameters: W_e (V, width), ``blocks.0.attention.W_q`` ..., ``norm.gamma``, W_hq (width, V), b_q (V,).
    """

    W_hq: nn.Parameter
    b_q: nn.Parameter

    def __init__(
        self,
        vocabulary_size: int,
        width: int,
        num_layers: int = 2,
        heads: int = 4,
        feed_forward: int | None = None,
        *,
        context: int = 64,
        positions: str = "sinusoidal",
        activation: str = "relu",
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if vocabulary_size < 1 or not 1 <= num_layers <= MAX_LAYERS or context < 1:
            raise ValueError(
                f"a vocabulary and a context of at least 1 and 1 to {MAX_LAYERS} layers, "
                f"not {vocabulary_size}, {context} and {num_layers}"
            )
        for name, value, known in (("positions", positions, POSITIONS), ("activation", activation, ACTIVATIONS)):
            if value not in known:
                raise ValueError(f"{name} is one of {', '.join(known)}, not {value!r}")
        generator = generator or fresh_generator()
        self.vocabulary_size, self.width, self.num_layers, self.heads = vocabulary_size, width, num_layers, heads
        self.context, self.eps = context, EPS
        self.hidden = 4 * width if feed_forward is None else feed_forward
        if self.hidden < 1:
            raise ValueError(f"a feed-forward network has at least one unit, not {self.hidden}")
        self.blocks = nn.ModuleList(Block(width, heads, self.hidden, activation, generator) for _ in range(num_layers))
        deviation = 1 / math.sqrt(width)
        self.W_e = nn.Parameter(torch.empty(vocabulary_size, width).normal_(std=deviation, generator=generator))
        # A learned code begins with the size that sines and cosines have.
        learned = LearnedPositions(context, width, math.sqrt(0.5), generator) if positions == "learned" else None
        self.positions = learned
        self.norm = Norm(width)
        for name, weight in uniform_parameters(
            {"W_hq": (width, vocabulary_size), "b_q": (vocabulary_size,)}, width, generator
        ).items():
            self.register_parameter(name, weight)
        self.circuit = language_model_circuit(num_layers, activation, positions)
        self.tables = language_model_tables(num_layers, positions)
        self._codes = torch.empty(0)

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the parameters."""
        return self.W_e.dtype

    def weights(self) -> Values:
        """The parameters by their dotted names, as the equations read them."""
        return dict(self.named_parameters())

    def checked(self, ids: Tensor) -> Tensor:
        """The ids as int64. Raises ``ValueError`` unless they are (steps, batch) whole numbers from 0 to V - 1."""
        return checked_ids(ids, self.vocabulary_size)

    # ------------------------------------------------------------------------------------------------------ equations

    def given(self, ids: Tensor) -> Values:
        """What the equations read beside the weights."""
        ids, dtype = self.checked(ids), self.dtype
        steps = ids.shape[0]
        given: Values = {
            "X": functional.one_hot(ids.t(), self.vocabulary_size).to(dtype),
            "d": torch.tensor(float(self.width), dtype=dtype),
            "M": fitted(keep_past(steps), (ids.shape[1], self.heads, steps, steps)),
            "N": torch.tensor(self.heads),
            "d_k": torch.tensor(float(self.width // self.heads), dtype=dtype),
            "eps": torch.tensor(self.eps, dtype=dtype),
        }
        return given | {f"positions.{name}": value for name, value in self.position_inputs(steps).items()}

    def position_inputs(self, steps: int) -> Values:
        """What the equations of the positions read. Raises ``ValueError`` beyond the end of a learned table."""
        if self.positions is not None:
            return {"i": table_rows(steps, self.context)}
        return {name: value.to(self.dtype) for name, value in sinusoidal_inputs(steps, self.width).items()}

    def trace(self, ids: Tensor, do: Interventions | None = None) -> Trace:
        """Run every equation on ids (T, B) and keep every result and part, batch first.

        ``do`` replaces any result by its dotted name, for instance ``{"blocks.0.attention.Z": set_to(0.0, head=1)}`` or
        ``{"P_pos": set_to(0.0)}``; all but ``O_n`` of an attention, which only shows what its heads add.
        """
        idle = [name for name in do or {} if name.endswith(".O_n")]
        if idle:
            raise KeyError(f"{idle[0]} shows what Z and W_o give, and nothing reads it: change Z")
        return self.circuit.trace(self.given(ids), self.weights(), self.tables, do=do)

    # ------------------------------------------------------------------------------------------------------ fast path

    def codes(self, steps: int) -> Tensor:
        """The position codes (steps, width) in the model's dtype; those of sines are computed once."""
        if self.positions is not None:
            table_rows(steps, self.context)
            return self.positions.W_p[:steps]
        codes = self._codes  # whoever shares the model may put others there meanwhile
        if len(codes) < steps or codes.dtype != self.dtype:
            with torch.no_grad():
                codes = self._codes = SINUSOIDAL.run(self.position_inputs(max(steps, self.context)))[0]["P"]
        return codes[:steps]

    def forward(self, ids: Tensor) -> Tensor:
        """The fast path: scores Y (T, B, V), the same numbers as the equations give, values and gradients."""
        ids = self.checked(ids)
        steps, batch = ids.shape
        vectors = functional.embedding(ids.t(), self.W_e) * math.sqrt(self.width)
        X = (vectors + self.codes(steps)).flatten(0, 1)
        for block in self.blocks:
            X = block(X, (batch, steps), self.eps)
        H = self.norm(X, self.eps).view(batch, steps, -1).transpose(0, 1).flatten(0, 1)
        return torch.addmm(self.b_q, H, self.W_hq).view(steps, batch, -1)

    def read(self, ids: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Go on reading: scores (T, B, V) of new ids (T, B) after those of ``state``, and the state after them.

        The counterpart of ``RecurrentLanguageModel``'s call, for sampling and for texts longer than the context. The state are
        the tokens (B, n) that the model still sees, at most ``context``; when they are full, the older half is let go. So every
        token is read with at least half a context before it (but for the first ones), and how a text is cut into calls changes
        nothing.
        """
        fresh = self.checked(ids).t()
        if state is not None and state.shape[0] != fresh.shape[0]:
            raise ValueError(f"a state of {state.shape[0]} rows does not go with {fresh.shape[0]} new ones")
        seen = fresh if state is None else torch.cat((state, fresh), dim=1)
        length = seen.shape[1]
        done = length - fresh.shape[1]
        starts = [0]
        while starts[-1] + self.context < length:
            starts.append(starts[-1] + max(1, self.context // 2))
        last = starts[-1]
        if done == self.context:
            del starts[0]  # a full window that has been read to its end
        span = min(length, self.context)
        filled = functional.pad(seen, (0, span))  # nothing that is read sees what comes after it
        windows = torch.cat([filled[:, start : start + span] for start in starts])
        Y = self(windows.t()).unflatten(1, (len(starts), -1))
        pieces = []
        for number, start in enumerate(starts):
            end = min(start + span, length)
            pieces.append(Y[done - start : end - start, number])
            done = end
        return torch.cat(pieces), seen[:, last:]
