"""The script of a model with several layers or directions runs alone and computes the numbers of the trace."""

import json
import subprocess
import sys

import pytest
import torch

from engine.equation import set_to
from engine.export_layers import script
from engine.recurrent.language_model import RecurrentLanguageModel
from engine.text.vocabulary import Vocabulary
from tests.support import seeded

TEXT = list("ab'a\"\nb<{$x}")
VOCABULARY = Vocabulary(TEXT)
IDS = torch.tensor(VOCABULARY[TEXT]).unsqueeze(1)


@pytest.mark.parametrize(
    ("cell", "shape"),
    [("gru", {"num_layers": 2}), ("lstm", {"bidirectional": True}), ("rnn", {"num_layers": 3, "bidirectional": True})],
)
def test_it_computes_the_numbers_of_the_trace(cell, shape, tmp_path):
    model = RecurrentLanguageModel(cell, len(VOCABULARY), 7, generator=seeded(3), **shape)
    last = model.recurrent.scopes[-1]
    do = {last + "H": (set_to(0.5, step=(2, 5), unit=(1, 4)), set_to(-0.25, step=8))}
    trace = model.trace(IDS, do=do)
    path = tmp_path / "model.py"
    path.write_text(script(trace, TEXT, VOCABULARY.tokens, model=cell, unit=4, step=3), encoding="utf-8")
    compared = (
        "import model, json; print(json.dumps([{k: v[0].tolist() for k, v in s.items()} for s in model.run(model.TOKENS)]))"
    )
    run = subprocess.run(
        [sys.executable, "-c", compared], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120
    )
    steps = json.loads(run.stdout)
    assert steps[0].keys() == set(trace)
    for t, now in enumerate(steps):
        for name, values in now.items():
            assert values == pytest.approx(trace[name][t, 0].tolist(), abs=1e-5), (t, name)
    if cell != "gru":
        return
    alone = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True, timeout=120)
    assert f"{trace[last + 'H'][3, 0, 4]:10.6f}" in alone.stdout


def test_what_does_not_fit_is_refused():
    flat = RecurrentLanguageModel("gru", len(VOCABULARY), 7, generator=seeded(3)).trace(IDS)
    with pytest.raises(ValueError, match="several layers"):
        script(flat, TEXT, VOCABULARY.tokens)
    deep = RecurrentLanguageModel("gru", len(VOCABULARY), 7, 2, generator=seeded(3)).trace(IDS)
    with pytest.raises(ValueError, match="do not fit"):
        script(deep, TEXT[1:], VOCABULARY.tokens)
    with pytest.raises(IndexError):
        script(deep, TEXT, VOCABULARY.tokens, unit=7)
