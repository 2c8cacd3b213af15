"""The payload of a model with several layers and directions, and how the stage reads it; the unrolled model's columns."""

import numpy as np
import pytest
import torch

from engine.equation import set_to
from engine.recurrent.language_model import RecurrentLanguageModel
from tests.stage.runs import TEXT, VOCABULARY, Payload, ids_of, packed
from tests.support import seeded

SCOPES = ("layers.0.forward.", "layers.0.backward.", "layers.1.forward.", "layers.1.backward.")


def trace_of(do=None):
    model = RecurrentLanguageModel("gru", len(VOCABULARY), 7, 2, bidirectional=True, generator=seeded(5))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)
    return model.trace(ids_of(TEXT), do=do)


def test_every_layer_is_packed_under_its_own_name():
    trace = trace_of()
    payload = Payload.read(packed(trace, model="gru", chain=True))
    assert [layer["scope"] for layer in payload.header["layers"]] == list(SCOPES)
    assert [layer["back"] for layer in payload.header["layers"]] == [False, True, False, True]
    assert [layer["depth"] for layer in payload.header["layers"]] == [0, 0, 1, 1]
    for scope in SCOPES:
        for name in ("R", "Z", "H_tilde", "H"):
            np.testing.assert_array_equal(payload.array(scope + name), trace[scope + name][:, 0].astype(np.float32))
        for part in ("R:2", "R:3", "H_tilde:4"):
            np.testing.assert_array_equal(payload.array(scope + part), trace.terms[scope + part][:, 0].astype(np.float32))
        np.testing.assert_array_equal(payload.array(f"{scope}start.H"), np.zeros(7))
        np.testing.assert_array_equal(payload.array(f"{scope}b_r"), trace.weights[f"{scope}b_r"])
    np.testing.assert_array_equal(payload.array("P"), trace["P"][:, 0].astype(np.float32))
    assert [equation["name"] for equation in payload.header["equations"]] == ["R", "Z", "H_tilde", "H", "Y", "P"]


def test_changes_name_their_layer():
    do = {"layers.1.backward.Z": set_to(0.25, step=3, unit=2)}
    payload = Payload.read(packed(trace_of(do), model="gru", baseline=trace_of()))
    (change,) = payload.header["interventions"]
    assert (change["symbol"], change["from"], change["units"]) == ("layers.1.backward.Z", 3, [2])
    assert "Z:0" not in payload.header["slots"], "in that layer what the equation gave is not what is used"
    assert "layers.1.backward.Z:0" in payload.header["arrays"]
    assert "baseline/layers.0.forward.H" in payload.header["arrays"]


@pytest.mark.browser
@pytest.mark.parametrize(
    ("width", "step", "steps", "found"),
    [
        (700, 0, 54, (7, 0)),
        (700, 20, 54, (7, 17)),
        (700, 53, 54, (7, 47)),
        (260, 5, 54, (3, 4)),
        (700, 2, 3, (3, 0)),
        (50, 0, 1, (1, 0)),
    ],
)
def test_an_odd_number_of_steps_around_the_present_one(run, width, step, steps, found):
    count, first = found
    assert run("chain", "(m, a) => m.columns(...a)", [width, step, steps]) == {"count": count, "first": first}


@pytest.mark.browser
def test_a_number_fits_its_box(run):
    values = [0.5, -0.126, 999.9, 1000, -42848.45, 99999, 1e-5]
    assert run("chain", "(m, a) => a.map(m.brief)", values) == [
        "0.50",
        "−0.13",
        "999.90",
        "1.0e3",
        "−4.3e4",
        "10.0e4",
        "1.0e−5",
    ]
