"""The Transformer that foretells the next token: its equations against NumPy and torch, its fast path against its equations."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from engine.diagram import wires
from engine.equation import set_to
from engine.language_models import KINDS, language_model
from engine.training.batch import TextBatches
from engine.training.loop import Training, TrainingConfig, mean_loss, train
from engine.training.trainee import Windows, trainee
from engine.transformer.blocks import block_circuit
from engine.transformer.language_model import TransformerLanguageModel
from tests.support import seeded

V, HEADS, K, HIDDEN, CONTEXT, T, B, LAYERS = 11, 5, 3, 13, 17, 7, 2, 3
D = HEADS * K
ATOL = 1e-10
CHOICES = [("sinusoidal", "relu"), ("learned", "gelu")]


def made(positions="sinusoidal", activation="relu", context=CONTEXT, layers=LAYERS):
    """A float64 model in which no number is 0 or 1 by itself: a fault in a bias or a norm must show."""
    model = TransformerLanguageModel(
        V, D, layers, HEADS, HIDDEN, context=context, positions=positions, activation=activation, generator=seeded(3)
    ).double()
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter.add_(torch.rand(parameter.shape, generator=seeded(50 + number), dtype=torch.float64) - 0.5)
    return model


def tokens(steps=T, batch=B, seed=1):
    return torch.randint(V, (steps, batch), generator=seeded(seed))


# --------------------------------------------------------------------------------------------------------- by hand


def norm_by_hand(found, scope, W, X):
    found[f"{scope}mean"] = X.mean(-1, keepdims=True)
    found[f"{scope}variance"] = ((X - X.mean(-1, keepdims=True)) ** 2).mean(-1, keepdims=True)
    found[f"{scope}X_hat"] = (X - found[f"{scope}mean"]) / np.sqrt(found[f"{scope}variance"] + 1e-5)
    found[f"{scope}Y"] = W[f"{scope}gamma"] * found[f"{scope}X_hat"] + W[f"{scope}beta"]
    return found[f"{scope}Y"]


def attention_by_hand(found, scope, W, X):
    batch, steps, _ = X.shape
    for name in "QKV":
        found[f"{scope}{name}"] = np.zeros((batch, HEADS, steps, K))
    for name in "SA":
        found[f"{scope}{name}"] = np.zeros((batch, HEADS, steps, steps))
    found[f"{scope}Z"], found[f"{scope}O_n"] = np.zeros((batch, HEADS, steps, K)), np.zeros((batch, HEADS, steps, D))
    for b in range(batch):
        for n in range(HEADS):
            own = slice(n * K, (n + 1) * K)
            q, k, v = (X[b] @ W[f"{scope}W_{letter}"][:, own] for letter in "qkv")
            scores = q @ k.T / np.sqrt(K)
            weights = np.zeros((steps, steps))
            for t in range(steps):
                row = np.exp(scores[t, : t + 1] - scores[t, : t + 1].max())
                weights[t, : t + 1] = row / row.sum()
            parts = {"Q": q, "K": k, "V": v, "S": scores, "A": weights, "Z": weights @ v}
            parts["O_n"] = parts["Z"] @ W[f"{scope}W_o"][own]
            for name, value in parts.items():
                found[f"{scope}{name}"][b, n] = value
    found[f"{scope}O"] = found[f"{scope}O_n"].sum(1)
    return found[f"{scope}O"]


def by_hand(model, ids, positions, activation):
    W = {name: value.detach().numpy() for name, value in model.named_parameters()}
    found = {"E": W["W_e"][ids.t().numpy()]}
    if positions == "sinusoidal":
        angle = [[t / 10000 ** (2 * (c // 2) / D) for c in range(D)] for t in range(len(ids))]
        P = np.where(np.arange(D) % 2 == 0, np.sin(angle), np.cos(angle))
        found |= {"positions.P_sin": P[:, ::2], "positions.P_cos": P[:, 1::2], "positions.P": P}
    else:
        found["positions.P"] = P = W["positions.W_p"][: len(ids)]
    X = found["X_0"] = np.sqrt(D) * found["E"] + P
    for layer in range(LAYERS):
        scope = f"blocks.{layer}."
        normed = norm_by_hand(found, f"{scope}norm_1.", W, X)
        found[f"{scope}R"] = X + attention_by_hand(found, f"{scope}attention.", W, normed)
        normed = norm_by_hand(found, f"{scope}norm_2.", W, found[f"{scope}R"])
        U = normed @ W[f"{scope}feed_forward.W_1"] + W[f"{scope}feed_forward.b_1"]
        U = np.maximum(U, 0) if activation == "relu" else functional.gelu(torch.tensor(U)).numpy()
        found[f"{scope}feed_forward.U"] = U
        F = found[f"{scope}feed_forward.F"] = U @ W[f"{scope}feed_forward.W_2"] + W[f"{scope}feed_forward.b_2"]
        X = found[f"{scope}Y"] = found[f"{scope}R"] + F
    H = norm_by_hand(found, "norm.", W, X)
    Y = found["Y"] = H @ W["W_hq"] + W["b_q"]
    found["P"] = np.exp(Y) / np.exp(Y).sum(-1, keepdims=True)
    return found


@pytest.mark.parametrize(("positions", "activation"), CHOICES)
def test_every_symbol_is_its_equation(positions, activation):
    model, ids = made(positions, activation), tokens()
    trace, hand = model.trace(ids), by_hand(model, ids, positions, activation)
    assert set(trace) == set(hand)
    for name, value in hand.items():
        np.testing.assert_allclose(trace[name], value, rtol=0, atol=ATOL, err_msg=name)
    # Names of the outer circuit for what the inner ones give.
    for outer, inner in {
        "P_pos": "positions.P",
        "X_1": "blocks.0.Y",
        "blocks.1.O": "blocks.1.attention.O",
        "H": "norm.Y",
    }.items():
        assert np.array_equal(trace[outer], trace[inner])
    assert np.array_equal(trace["X"], functional.one_hot(ids.t(), V))
    assert len(trace) == T


def test_every_formula_can_be_written_with_its_numbers():
    trace = made().trace(tokens())
    for name in trace:
        assert trace.latex(name)
        assert trace.mathml(name).startswith("<math")
        assert "=" in trace.plugged(name)
    assert trace.latex("X_0") == r"\mathbf X_0 = \sqrt{d}\, \mathbf E + \mathbf P_{pos}"


def test_the_diagram_follows_from_the_equations():
    model = made()
    whole, block = wires(model.circuit, model.tables[""]), wires(block_circuit("relu"), model.tables["blocks.0."])
    carried = {(wire.source, wire.target): wire.carries for wire in whole.wires}
    assert carried["blocks.0", "blocks.1"] == "X_1"
    assert carried["norm", "Y:0"] == "H"
    carried = {(wire.source, wire.target): wire.carries for wire in block.wires}
    assert carried["X", "R:0"] == "X"  # LN-08: the residual is the input as it came in
    assert carried["norm_1", "attention"] == "X_n"
    assert carried["R:0", "Y:0"] == "R"


@pytest.mark.parametrize(("positions", "activation"), CHOICES)
def test_the_fast_path_gives_the_equations_values_and_gradients(positions, activation):
    model, ids = made(positions, activation), tokens()
    targets = tokens(seed=2)
    results, _ = model.circuit.run({**model.given(ids), **model.weights()})
    slow, fast = results["Y"].transpose(0, 1), model(ids)
    torch.testing.assert_close(fast, slow, rtol=0, atol=ATOL)
    gradients = [
        torch.autograd.grad(functional.cross_entropy(Y.flatten(0, 1), targets.flatten()), list(model.parameters()))
        for Y in (slow, fast)
    ]
    for name, one, other in zip(model.weights(), *gradients, strict=True):
        torch.testing.assert_close(other, one, rtol=0, atol=ATOL, msg=name)
        # LN-11: no parameter is without influence. (A learned code of a position that was not read is.)
        assert float(one.abs().max()) > 1e-6, name


def test_float32_and_float64_follow_each_other():
    model, ids = made(), tokens()
    wide = model(ids)
    assert torch.allclose(model.float()(ids).double(), wide, atol=1e-4)
    assert model.float()(ids).dtype == torch.float32  # the codes are made again in the new dtype
    assert model.trace(ids)["X_1"].dtype == np.float32


def torch_encoder(model, activation):
    """torch's own layers with the same weights; the biases of its attention, which we do not have, are 0."""
    layer = nn.TransformerEncoderLayer(D, HEADS, HIDDEN, 0.0, activation, batch_first=True, norm_first=True)
    encoder = nn.TransformerEncoder(layer, LAYERS, nn.LayerNorm(D), enable_nested_tensor=False).double()
    W = {name: value.detach() for name, value in model.named_parameters()}
    with torch.no_grad():
        for n, own in enumerate(encoder.layers):
            scope = f"blocks.{n}."
            own.self_attn.in_proj_weight.copy_(torch.cat([W[f"{scope}attention.W_{k}"].T for k in "qkv"]))
            own.self_attn.in_proj_bias.zero_()
            own.self_attn.out_proj.weight.copy_(W[f"{scope}attention.W_o"].T)
            own.self_attn.out_proj.bias.zero_()
            for linear, k in ((own.linear1, 1), (own.linear2, 2)):
                linear.weight.copy_(W[f"{scope}feed_forward.W_{k}"].T)
                linear.bias.copy_(W[f"{scope}feed_forward.b_{k}"])
            for norm, k in ((own.norm1, 1), (own.norm2, 2)):
                norm.weight.copy_(W[f"{scope}norm_{k}.gamma"])
                norm.bias.copy_(W[f"{scope}norm_{k}.beta"])
        encoder.norm.weight.copy_(W["norm.gamma"])
        encoder.norm.bias.copy_(W["norm.beta"])
    return encoder


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_torch_gives_the_same_from_the_same_weights(activation):
    model, ids = made(activation=activation), tokens()
    trace = model.trace(ids)
    later = torch.ones(T, T, dtype=torch.bool).triu(1)
    H = torch_encoder(model, activation)(torch.tensor(trace["X_0"]), mask=later)
    np.testing.assert_allclose(trace["H"], H.detach().numpy(), rtol=0, atol=ATOL)


# ----------------------------------------------------------------------------------------------- what comes before


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_a_later_token_changes_nothing_before_it(positions):
    model, ids = made(positions), tokens()
    for place in (1, T - 1):
        other = ids.clone()
        other[place:] = (other[place:] + 1 + tokens(seed=9)[place:] % (V - 1)) % V
        assert not torch.equal(model(other)[place:], model(ids)[place:])
        assert torch.allclose(model(other)[:place], model(ids)[:place], rtol=0, atol=1e-13)
        before, after = model.trace(ids), model.trace(other)
        for name, s in before.symbols.items():
            if s.axes[:1] == "B" and "T" in s.axes:
                rows = (
                    np.moveaxis(before[name], s.axes.index("T"), 0)[:place],
                    np.moveaxis(after[name], s.axes.index("T"), 0)[:place],
                )
                if name.endswith("attention.S"):  # scores of keys to come are there, and have the weight 0
                    rows = rows[0][..., :place], rows[1][..., :place]
                np.testing.assert_allclose(*rows, rtol=0, atol=1e-13, err_msg=name)


def test_att_06_att_11_nobody_sees_the_future_and_the_first_token_sees_itself():
    trace = made().trace(tokens())
    for layer in range(LAYERS):
        A = trace[f"blocks.{layer}.attention.A"]
        assert (np.triu(A, 1) == 0).all()
        np.testing.assert_allclose(A.sum(-1), 1, atol=1e-12)
        assert (A[:, :, 0, 0] == 1).all()
    assert (made().trace(tokens(1))["blocks.0.attention.A"] == 1).all()


# ----------------------------------------------------------------------------------------------------- what if


def test_a_head_that_is_silenced_is_one_whose_rows_of_w_o_are_zero():
    model, ids = made(), tokens()
    silent = model.trace(ids, do={"blocks.1.attention.Z": set_to(0.0, head=2)})
    assert silent.interventions.keys() == {"blocks.1.attention.Z"}
    with torch.no_grad():
        model.blocks[1].attention.W_o[2 * K : 3 * K] = 0
    np.testing.assert_allclose(silent["Y"], model.trace(ids)["Y"], rtol=0, atol=ATOL)


def test_without_positions_the_order_of_what_came_before_does_not_matter():
    model, ids = made(layers=1), tokens()
    turned = ids.clone()
    turned[: T - 1] = ids[: T - 1].flip(0)
    plain, other = (model.trace(each, do={"P_pos": set_to(0.0)})["Y"][:, -1] for each in (ids, turned))
    np.testing.assert_allclose(plain, other, rtol=0, atol=ATOL)
    assert np.abs(model.trace(ids)["Y"][:, -1] - model.trace(turned)["Y"][:, -1]).max() > 1e-3


def test_a_block_that_adds_nothing_hands_its_input_on():
    trace = made().trace(tokens(), do={"blocks.1.O": set_to(0.0), "blocks.1.F": set_to(0.0)})
    assert np.array_equal(trace["X_2"], trace["X_1"])
    assert not np.array_equal(trace["X_3"], trace["X_2"])


def test_what_shows_only_cannot_be_changed():
    with pytest.raises(KeyError, match="change Z"):
        made().trace(tokens(), do={"blocks.0.attention.O_n": set_to(0.0)})
    with pytest.raises(KeyError, match="is not a result"):
        made().trace(tokens(), do={"nonsense": set_to(0.0)})


# ------------------------------------------------------------------------------------------------ limits and reading


def test_what_does_not_fit_is_refused_with_its_numbers():
    model = made("learned")
    for wrong, message in (
        (torch.tensor([[V]]), f"token number {V} is outside the vocabulary of {V}"),
        (torch.tensor([[-1]]), "token number -1"),
        (torch.tensor([1, 2]), "time first"),
        (torch.ones(2, 2), "whole numbers"),
        (torch.ones(2, 2, dtype=torch.bool), "whole numbers"),
        (tokens(CONTEXT + 1), f"ends after {CONTEXT}"),
    ):
        with pytest.raises(ValueError, match=message):
            model(wrong)
        with pytest.raises(ValueError, match=message):
            model.trace(wrong)
    for change, message in (
        ({"num_layers": 0}, "layers"),
        ({"heads": 4}, "does not split into 4 heads"),
        ({"positions": "rotary"}, "positions is one of"),
        ({"activation": "tanh"}, "activation is one of"),
        ({"feed_forward": 0}, "at least one unit"),
        ({"context": 0}, "context"),
    ):
        with pytest.raises(ValueError, match=message):
            TransformerLanguageModel(V, D, **{"heads": HEADS, **change})
    assert made()(tokens(CONTEXT + 5)).shape == (CONTEXT + 5, B, V)


def test_a_fresh_model_is_drawn_from_its_generator_and_guesses_evenly():
    models = [TransformerLanguageModel(V, 64, generator=seeded(4)) for _ in range(2)]
    assert all(torch.equal(a, b) for a, b in zip(models[0].parameters(), models[1].parameters(), strict=True))
    trace = models[0].trace(tokens(40, 3))
    # Vectors and position codes have the same size: neither drowns the other.
    ratio = np.sqrt(((8 * trace["E"]) ** 2).mean() / (trace["P_pos"] ** 2).mean())
    assert 0.8 < ratio < 2.5
    assert mean_loss(models[0], tokens(200, 1)[:, 0], rows=3) == pytest.approx(np.log(V), abs=0.5)


def sliding(model, row):
    """Scores of one row, each token read with what a window that moves by half a context shows it."""
    scores = []
    for t in range(len(row)):
        start = 0
        while t - start >= model.context:
            start += model.context // 2
        scores.append(model(row[start : t + 1, None])[-1, 0])
    return torch.stack(scores)


@pytest.mark.parametrize("context", [CONTEXT, 6])
def test_a_long_text_is_read_in_windows_however_it_is_cut(context):
    model, ids = made("learned", context=context), tokens(43, 3)
    whole, end = model.read(ids)
    for row in range(3):
        torch.testing.assert_close(whole[:, row], sliding(model, ids[:, row]), rtol=0, atol=ATOL)
    for cuts in ([1] * 43, [5, 1, 17, 1, 1, 18]):
        state, pieces = None, []
        for part in ids.split(cuts):
            Y, state = model.read(part, state)
            pieces.append(Y)
        torch.testing.assert_close(torch.cat(pieces), whole, rtol=0, atol=ATOL)
        assert torch.equal(state, end)
    assert end.shape[1] <= context
    with pytest.raises(ValueError, match="3 rows does not go with 2"):
        model.read(tokens(2), end)


# -------------------------------------------------------------------------------------------------------- training


def test_it_learns_and_the_same_seed_gives_the_same_weights():
    text = torch.tensor([1, 2, 3, 5, 8] * 60)
    source = TextBatches(ids=text, batch_size=4, num_steps=8, unknown_share=0.01)
    ends = []
    for _ in range(2):
        generator = seeded(5)
        model = language_model("transformer", V, generator=generator, width=16, num_layers=1, context=8)
        events = list(
            train(model, source, TrainingConfig(steps=60, learning_rate=1e-2), generator, lambda m: mean_loss(m, text))
        )
        assert events[0].loss > 1.5
        assert events[-1].held_out < 0.4
        ends.append([parameter.clone() for parameter in model.parameters()])
    assert all(torch.equal(one, other) for one, other in zip(*ends, strict=True))


def test_a_training_step_carries_nothing_over_and_leaves_what_is_frozen():
    model = made()
    model.W_e.requires_grad_(False)
    way = trainee(model)
    assert type(way) is Windows
    assert len(way.parameters) == len(list(model.parameters())) - 1
    scores, state = way.scores(tokens(), None)
    assert torch.equal(scores, model(tokens()))
    assert state is None


def test_models_are_made_by_name():
    assert set(KINDS) == {"rnn", "gru", "lstm", "transformer"}
    assert language_model("gru", V, hidden_size=3)(tokens())[0].shape == (T, B, V)
    with pytest.raises(ValueError, match="cell is one of"):
        language_model("parrot", V)
    with pytest.raises(TypeError):
        language_model("transformer", V, hidden_size=3)


def test_a_training_that_is_taken_up_again_goes_on_with_the_same_numbers():
    def begun(seed):
        model = TransformerLanguageModel(V, 8, 1, 2, context=7, positions="learned", generator=seeded(seed))
        source = TextBatches(ids=tokens(200, 1)[:, 0], batch_size=3, num_steps=7, sampling="sequential")
        return Training(model, source, TrainingConfig(steps=9, learning_rate=0.01), seeded(6))

    whole, first, second = begun(1), begun(1), begun(2)
    losses = [whole.advance().loss for _ in range(9)]
    assert [first.advance().loss for _ in range(4)] == losses[:4]
    second.restore(first.snapshot())
    assert [second.advance().loss for _ in range(5)] == losses[4:]
    assert all(torch.equal(*pair) for pair in zip(whole.model.parameters(), second.model.parameters(), strict=True))
