"""Lesson 10's config and page: whatever a link says becomes a run, points come and go, and the walk holds true."""

from urllib.parse import parse_qsl

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.attention.kernel_regression import optimum, regress
from engine.data.points import MOST, Point
from pages.ui import kernels
from pages.ui.config import from_query, to_query
from pages.ui.kernels import KernelConfig
from pages.ui.texts import sections
from tests.lessons import without_browser
from tests.stage.runs import Payload

FIVE = tuple(Point(float(x), float(y)) for x, y in ((0, 0), (1, 2), (1, -1), (2, 3), (4, 0.5)))


def read(**params: str) -> tuple[KernelConfig, list[str]]:
    config, notes = from_query(KernelConfig, params)
    return config, [note.key for note in notes]


def test_a_link_is_read_back_as_it_was_written():
    config = KernelConfig(
        kernel="boxcar",
        width=0.35,
        points=FIVE,
        rate=0.02,
        epochs=9,
        start=2.5,
        others="with",
        step=12,
        key=3,
        symbol="S",
    )
    again, notes = read(**to_query(config))
    assert again == config
    assert notes == []
    assert to_query(KernelConfig()) == {}
    drawn = KernelConfig(count=64, noise=0.25, seed=7)
    assert read(**to_query(drawn)) == (drawn, [])


def test_what_is_not_there_is_clamped_and_told():
    config, notes = read(width="0", noise="nan", count="1000", epochs="0", rate="9", start="-3", kernel="square", step="99")
    assert (config.width, config.noise, config.count, config.epochs) == (0.01, 0.5, MOST, 1)
    assert (config.rate, config.start, config.kernel, config.step) == (1.0, 0.01, "gaussian", 70)
    told = {f"kernel.bad.{name}" for name in ("width", "noise", "count", "epochs", "rate", "start")}
    assert told | {"link.kernel", "link.step"} <= set(notes)
    config, notes = read(points="1,2;x,3;4;1e99,0;5,6", key="9")
    assert [str(point) for point in config.points] == ["1,2", "5,6"]
    assert config.key == 1
    assert {"link.points", "link.key"} <= set(notes)
    config, notes = read(points=";".join(["1,1"] * 120))
    assert len(config.points) == MOST
    assert "points.first" in notes


@given(
    st.dictionaries(
        st.sampled_from(["width", "noise", "points", "count", "step", "key", "rate", "epochs"]), st.text(max_size=20)
    )
)
def test_any_link_gives_a_run(params):
    config, _ = from_query(KernelConfig, params)
    x, y = kernels.points_of(config)
    assert len(x) == len(y) <= MOST
    assert 0 <= config.key < len(x)
    assert np.isfinite(kernels.queries_of(config).numpy()).all()


@pytest.mark.parametrize("count", [1, 64])
@pytest.mark.parametrize("kernel", KernelConfig.choices["kernel"])
def test_the_payload_is_the_run(kernel, count):
    config = KernelConfig(kernel=kernel, width=0.3, count=count)
    payload, trace = Payload.read(kernels.packed(config, "zh")), kernels.traced(config)
    for name in ("A", "f", "D"):
        entry = payload.header["arrays"][name]
        found = payload.block[entry["offset"] : entry["offset"] + trace[name].size]
        assert found.tolist() == trace[name].astype(np.float32).ravel().tolist()
    np.testing.assert_allclose(trace["A"].sum(-1), 1, rtol=0, atol=1e-12)
    assert len(payload.header["labels"]["S"]) == count


def test_what_the_learning_board_shows_is_the_engines():
    config = KernelConfig(rate=0.1, epochs=12)
    found = kernels.learned(config)
    assert found is not None
    assert (found.best, found.least) == optimum(*kernels.points_of(config), reach=kernels.STEEPEST)
    assert len(found.path) == 13
    assert found.best in found.ws.tolist()
    payload = Payload.read(kernels.packed_learning(config, "en") or b"")
    assert payload.header["aside"]
    assert kernels.learned(KernelConfig(points=FIVE[:2])) is None
    forever = kernels.learned(KernelConfig(others="with"))
    assert forever is not None
    assert forever.at_end


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"points": "1,1", "kernel": "triangular"},
        {"points": "1,1;1,1;1,2", "lang": "zh"},
        {"kernel": "average", "lang": "zh", "others": "with"},
        {"count": "64", "kernel": "boxcar", "width": "0.05"},
    ],
)
def test_the_page_runs_without_a_fault(params):
    page = without_browser("kernel_regression", **params)
    assert page.title[0].value
    assert len(page.tabs) == 7


def test_typed_points_become_the_runs_and_a_bad_text_changes_nothing():
    page = without_browser("kernel_regression")
    page.text_area(key="points-typed").set_value("x;y\n1,5;2\n3;4").run()
    assert [str(point) for point in page.session_state["config"].points] == ["1.5,2", "3,4"]
    page.text_area(key="points-typed").set_value("hello").run()
    assert len(page.session_state["config"].points) == 2
    assert any("Two columns" in text.value for text in page.text)


# ------------------------------------------------------------------------------------------------- the walk holds true


def followed(number: int) -> KernelConfig:
    """What a step of the walk sets up; its link asks for nothing that is not there, in both languages."""
    texts = {sections("kernel_regression", lang)[f"try.{number}"].partition("\n")[0] for lang in ("en", "zh")}
    assert len(texts) == 1
    config, notes = from_query(KernelConfig, dict(parse_qsl(texts.pop().removeprefix("link: "), strict_parsing=True)))
    assert notes == ()
    return config


def test_every_step_of_the_walk_can_be_set_up():
    for number in range(1, 8):
        assert kernels.traced(followed(number))["f"].shape == (71,)


def test_what_the_walk_says_is_so():
    averaged = kernels.traced(followed(1))["A"]
    assert (averaged == averaged[0]).all()
    wide, narrow = kernels.traced(followed(2))["A"], kernels.traced(followed(3))["A"]
    assert narrow.max(-1).min() > wide.max(-1).max()
    far = followed(4)
    assert kernels.traced(far)["A"][far.step].argmax() == far.key
    boxes = kernels.traced(followed(5))["A"]
    assert all(len(set(row[row > 0].round(9))) == 1 for row in boxes)
    config = followed(6)
    found = kernels.learned(config)
    assert found is not None
    assert abs(found.path[1].w) > 2 * found.best > 2 * config.start
    x, y = kernels.points_of(followed(7))
    assert len(x) == 6
    twins = regress([0.7], [*x.tolist(), 1.0], [*y.tolist(), 5.0], "gaussian", 0.4)["A"][0]
    assert twins[1] == twins[-1]
