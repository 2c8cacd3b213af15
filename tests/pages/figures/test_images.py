"""Figures as files: PNG and SVG without a browser, transparent, with nothing in them that only answers a pointer."""

import io
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL.Image import open as read_image

from pages.figures.gates import gate_strips
from pages.figures.images import png, still, svg
from tests.pages.figures.drawing import WORDS, run, written

NASTY = ["<b>", "&", '"', "'", "\u202e", "שלום", "字", "👩‍👩‍👧", "", "]]>"]


@pytest.fixture(scope="module")
def figure():
    trace, _ = run(tokens="0123456789")
    return gate_strips(
        trace, NASTY, names={"F": "forget gate"}, hover=WORDS, title="Gates & more", symbols=["F", "C"], selected=3
    )


def test_a_png_has_the_figures_size_and_no_background(figure):
    image = read_image(io.BytesIO(png(figure, scale=2.0)))
    assert image.format == "PNG"
    assert abs(image.width - 2 * 720) <= 4
    alpha = np.asarray(image.convert("RGBA"))[..., 3]
    assert alpha[0, 0] == 0
    assert (alpha == 255).mean() > 0.3
    assert len(np.unique(np.asarray(image.convert("RGB")).reshape(-1, 3), axis=0)) > 50


def test_an_svg_keeps_its_text_and_runs_nothing(figure):
    tree = ElementTree.fromstring(svg(figure))
    tags = {element.tag.rpartition("}")[2] for element in tree.iter()}
    assert tags <= {"svg", "g", "path", "image", "text", "line", "rect", "defs", "clipPath", "circle", "tspan"}
    assert not [name for element in tree.iter() for name in element.attrib if name.lower().startswith("on")]
    found = written(figure)
    assert found[: len(NASTY)] == ["<b>", "&", '"', "'", "‹RLO›", "שלום", "字", "👩‍👩‍👧", "∅", "]]>"]
    assert "Gates & more" in found
    hrefs = [value for element in tree.iter() for name, value in element.attrib.items() if name.endswith("href")]
    assert hrefs
    assert all(value.startswith("data:image/png;base64,") for value in hrefs)


def test_what_only_answers_a_pointer_is_left_out_of_files_and_stays_on_the_page(figure):
    assert any(layer.get("name") == "hover" for layer in figure.spec["layer"])
    assert not any(layer.get("name") == "hover" for layer in still(figure)["layer"])
    assert b"tooltip" not in svg(figure)


def test_the_same_figure_gives_the_same_file(figure):
    assert svg(figure) == svg(figure)
