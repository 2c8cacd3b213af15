"""The script that a learner copies: it runs alone, gives the trace's numbers, and text cannot become code in it."""

import ast
import subprocess
import sys

import numpy as np
import pytest
import torch

from engine.equation import add_to, scale_by, set_to
from engine.export import formula, script
from engine.recurrent.language_model import RecurrentLanguageModel
from tests.support import seeded

H = 7
NASTY = [
    "'''",
    '"""',
    "\\",
    "\\n",
    "\n",
    "\r",
    "\x00",
    "'",
    '"',
    "{}",
    "%s",
    "$step",
    "\u200f",
    "\u202e",
    "\ud800",
    "👩‍👩‍👧",
    "́",
    "字",
    "שלום",
    '"]; import os; os.system("echo broken"); ["',
    "<unknown>",
]
VOCABULARY = ["<unk>", *NASTY[:-1], "a", "b"]


def traced(cell, tokens, do=None, state=False, **switches):
    model = RecurrentLanguageModel(cell, len(VOCABULARY), H, generator=seeded(3), **switches)
    ids = torch.tensor([[VOCABULARY.index(token) if token in VOCABULARY else 0] for token in tokens])
    start = None
    if state:
        parts = [torch.randn(1, 1, H, generator=seeded(seed)) for seed in (5, 6)]
        start = tuple(parts) if cell == "lstm" else parts[0]
    return model.trace(ids, start, do=do)


def steps_of(text):
    """Run a script's own functions without its printing."""
    space = {"__name__": "copied"}
    exec(compile(text, "copied.py", "exec"), space)
    return space, space["run"](space["TOKENS"])


@pytest.mark.parametrize(
    ("cell", "switches", "do"),
    [
        ("rnn", {}, None),
        ("rnn", {"activation": "relu"}, {"H": scale_by(0.5, step=(2, None))}),
        ("lstm", {}, None),
        (
            "lstm",
            {"forget_bias": 2.0},
            {"F": (set_to(1.0, step=(3, 9)), add_to(-0.3, step=1, unit=(2, 5))), "C": scale_by(2, unit=4)},
        ),
        ("gru", {}, None),
        ("gru", {"reset": "after", "update": "replaces"}, {"Z": set_to(0.25, step=4), "Y": add_to(1.5, unit=3)}),
    ],
)
@pytest.mark.parametrize("state", [False, True])
def test_the_script_computes_every_symbol_of_the_trace(cell, switches, do, state):
    trace = traced(cell, NASTY, do, state, **switches)
    _, steps = steps_of(script(trace, NASTY, VOCABULARY, model=cell))
    assert len(steps) == len(NASTY)
    for t, now in enumerate(steps):
        assert now.keys() == trace.symbols.keys()
        for name, value in now.items():
            np.testing.assert_allclose(value[0], trace[name][t, 0], rtol=0, atol=2e-6, err_msg=name)


def printed(text, tmp_path):
    path = tmp_path / "copied.py"
    path.write_text(text, encoding="utf-8")
    command = [sys.executable, "-I", path.name]
    done = subprocess.run(command, check=False, cwd=tmp_path, capture_output=True, encoding="utf-8", timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_the_script_runs_alone_and_prints_the_pages_numbers(tmp_path):
    do = {"F": set_to(1.0, step=(3, None)), "H": add_to(0.25, step=2, unit=(1, 4))}
    trace = traced("lstm", NASTY, do)
    unit, step = 4, 6
    lines = printed(script(trace, NASTY, VOCABULARY, model="lstm", unit=unit, step=step), tmp_path).split("\n")
    symbols = ["F", "I", "O", "C_tilde", "C", "H"]
    assert lines[0].split() == ["unit", str(unit), *symbols]
    for t, token in enumerate(NASTY):
        number, _, rest = lines[1 + t].strip().partition(" ")
        assert int(number) == t + 1
        assert rest.startswith(repr(token))
        np.testing.assert_allclose([float(x) for x in rest.split()[-6:]], [trace[s][t, 0, unit] for s in symbols], atol=2e-6)
    whole = lines[1 + len(NASTY) :]
    for t, token in enumerate(NASTY):
        at = whole.index(f"next token after step {t + 1} {token!r}")
        count = len(VOCABULARY) if t == step else 5
        rows = [line.strip().rsplit(maxsplit=1) for line in whole[at + 1 : at + 1 + count]]
        P = trace["P"][t, 0]
        np.testing.assert_allclose([float(p) for _, p in rows], np.sort(P)[::-1][:count], atol=2e-6)
        for name, p in rows:
            assert P[VOCABULARY.index(ast.literal_eval(name))] == pytest.approx(float(p), abs=2e-6)
        assert whole[at + 1 + count] == ""


def skeleton(text):
    """The syntax of a script without the contents of its literals, and those of the three that hold the user's text."""
    tree = ast.parse(text)
    literals = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.List | ast.Dict):
            literals[statement.targets[0].id] = ast.literal_eval(statement.value)
            statement.value = ast.Constant(0)
        elif isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
            statement.value = ast.Constant(0)
    return ast.dump(tree), literals


@pytest.mark.parametrize("token", NASTY)
def test_text_stays_text(token):
    tokens = [token, "a", token]
    text = script(traced("gru", tokens), tokens, VOCABULARY, model="gru")
    plain, _ = skeleton(script(traced("gru", ["b", "a", "b"]), ["b", "a", "b"], VOCABULARY, model="gru"))
    shape, literals = skeleton(text)
    assert shape == plain
    assert literals["TOKENS"] == tokens
    assert literals["NEXT"] == VOCABULARY
    assert literals["ROW"] == {token: 0, "a": 1}
    text.encode("utf-8")  # also with a lone surrogate in the text
    assert not set("\u200f\u202e\x00\r") & set(text)  # nothing that turns the reading order or ends a line unseen


def test_functions_are_the_equations_and_comments_their_formulas():
    trace = traced("gru", ["a", "b"])
    text = script(trace, ["a", "b"], VOCABULARY, model="gru")
    found = {f.name: f for f in ast.parse(text).body if isinstance(f, ast.FunctionDef)}
    for name, e in trace.equations.items():
        assert tuple(a.arg for a in found[name].args.args) == e.operands
        assert ast.get_docstring(found[name]) == e.doc
        assert f"# {formula(e, trace.tables[''])}\ndef {name}(" in text
    assert "# H~_t = tanh(X_t W_xh + (R_t ⊙ H_{t-1}) W_hh + b_h)\n" in text
    assert "# H_t = Z_t ⊙ H_{t-1} + (1 - Z_t) ⊙ H~_t\n" in text
    assert "# P_t = softmax(Y_t)\n" in text
    assert "relu" not in text
    assert "CHANGES" not in text


def test_a_learner_can_change_what_the_script_says():
    tokens = ["a", "b", "a"]
    text = script(traced("lstm", tokens), tokens, VOCABULARY)
    space, steps = steps_of(text.replace("TOKENS = ['a', 'b', 'a']", "TOKENS = ['b', 'b']"))
    other = traced("lstm", ["b", "b"])
    np.testing.assert_allclose(torch.cat([now["H"] for now in steps]), other["H"][:, 0], rtol=0, atol=2e-6)
    assert space["STEP"] == 1


def test_only_the_rows_of_the_text_are_embedded():
    tokens = ["a", "b", "a"]
    space, _ = steps_of(script(traced("lstm", tokens), tokens, VOCABULARY))
    assert space["SHAPES"]["W_xf"] == (2, H)
    assert space["SHAPES"]["W_hq"] == (H, len(VOCABULARY))


def test_a_page_of_text_stays_small():
    model = RecurrentLanguageModel("lstm", 80, 64, generator=seeded(1))
    ids = torch.randint(80, (60, 1), generator=seeded(2))
    names = [chr(0x21 + i) for i in range(80)]
    text = script(model.trace(ids), [names[i] for i in ids[:, 0]], names)
    assert len(text) < 200_000
    assert max(map(len, text.split("\n"))) <= 128


def test_what_does_not_fit_is_refused():
    trace = traced("lstm", ["a", "b"])
    with pytest.raises(ValueError, match="do not fit"):
        script(trace, ["a"], VOCABULARY)
    with pytest.raises(ValueError, match="do not fit"):
        script(trace, ["a", "b"], VOCABULARY[:-1])
    with pytest.raises(IndexError):
        script(trace, ["a", "b"], VOCABULARY, unit=H)
    with pytest.raises(ValueError, match="one layer"):
        script(traced("lstm", ["a", "b"], num_layers=2), ["a", "b"], VOCABULARY)
