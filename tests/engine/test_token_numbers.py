"""Token numbers as they come: every language model takes any whole dtype and names what is no token (cases of kind SMP-13)."""

import numpy as np
import pytest
import torch

from engine.recurrent.language_model import RecurrentLanguageModel
from engine.transformer.language_model import TransformerLanguageModel
from tests.support import seeded

V = 5
MODELS = {
    **{cell: RecurrentLanguageModel(cell, V, 4, generator=seeded(1)) for cell in ("rnn", "gru", "lstm")},
    "deep": RecurrentLanguageModel("gru", V, 4, 2, True, seeded(1)),
    "transformer": TransformerLanguageModel(V, 6, 1, 2, generator=seeded(1)),
}
EVERY = pytest.mark.parametrize("name", MODELS)


def scores(model, ids):
    given = model(ids)
    return given[0] if isinstance(given, tuple) else given


@EVERY
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32])
def test_smp_13_kind_numbers_of_every_whole_dtype_are_read(name, dtype):
    ids = torch.tensor([[1, 4], [0, 2], [3, 3]])
    model = MODELS[name]
    assert torch.equal(scores(model, ids.to(dtype)), scores(model, ids))
    np.testing.assert_array_equal(model.trace(ids.to(dtype))["P"], model.trace(ids)["P"])


@EVERY
@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (torch.tensor([[V]]), f"token number {V} is outside the vocabulary of {V} tokens"),
        (torch.tensor([[-1]]), "token number -1"),
        (torch.tensor([[1.0]]), "whole numbers"),
        (torch.tensor([[True]]), "whole numbers"),
        (torch.tensor([1, 2]), "time first"),
        (torch.zeros(0, 1).long(), "steps >= 1"),
        (torch.zeros(1, 0).long(), "batch >= 1"),
    ],
)
def test_smp_13_what_is_no_token_is_named(name, ids, message):
    for read in (MODELS[name], MODELS[name].trace):
        with pytest.raises(ValueError, match=message):
            read(ids)
