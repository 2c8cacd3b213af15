"""How the tests look at a figure: checked against Altair's schema, its layers, its images pixel by pixel, its rendered file."""

import base64
import io
import json
from functools import cache
from xml.etree import ElementTree

import numpy as np
import torch
from PIL.Image import open as read_image

from engine.recurrent.language_model import RecurrentLanguageModel
from pages.figures.images import svg
from tests.support import seeded

WORDS = ("step", "token")


def checked(figure):
    """The figure, once Altair's own schema has accepted it; it is plain JSON without NaN, and it is transparent."""
    import altair

    spec = json.loads(json.dumps(figure.spec, allow_nan=False))
    altair.Chart.from_dict(spec)
    assert spec["background"] == "transparent"
    assert isinstance(spec["padding"], dict)  # Streamlit writes into it
    assert figure.rows[0]
    assert len({len(row) for row in figure.rows}) == 1
    return figure


def layers(figure, kind, field=None):
    """The layers with this mark, and with this field in their data."""
    found = [layer for layer in figure.spec["layer"] if layer["mark"]["type"] == kind]
    return [layer for layer in found if field is None or any(field in row for row in layer["data"]["values"])]


def hovered(figure):
    """What answers the pointer."""
    (layer,) = (layer for layer in figure.spec["layer"] if layer.get("name") == "hover")
    return layer["data"]["values"]


def texts(figure):
    """Every text that marks of the figure write."""
    found = []
    for layer in layers(figure, "text"):
        field = layer["encoding"].get("text", {}).get("field")
        found += [row[field] for row in layer["data"]["values"]] if field else [layer["mark"]["text"]]
    return found


def pictures(figure):
    """The images of the first image layer, as arrays (height, width, 3) of colours."""
    rows = layers(figure, "image")[0]["data"]["values"]
    return [pixels(row["url"]) for row in rows]


def pixels(url):
    head, _, code = url.partition(",")
    assert head == "data:image/png;base64"
    return np.asarray(read_image(io.BytesIO(base64.b64decode(code))).convert("RGB"))


def cells(picture, rows, columns):
    """The cells of a picture (rows, columns, height, width, 3)."""
    high, wide = picture.shape[0] // rows, picture.shape[1] // columns
    return picture.reshape(rows, high, columns, wide, 3).swapaxes(1, 2)


def rendered(figure):
    """The SVG file as a tree."""
    return ElementTree.fromstring(svg(figure))


def written(figure):
    """The texts of the rendered file, in order."""
    return ["".join(element.itertext()) for element in rendered(figure).iter("{http://www.w3.org/2000/svg}text")]


@cache
def run(cell="lstm", tokens="the cat", hidden=7, do=None, seed=3, scale=3.0):
    """A trace over the characters of a text, and its tokens."""
    vocabulary = ["<unk>", *sorted(set(tokens))]
    model = RecurrentLanguageModel(cell, len(vocabulary), hidden, generator=seeded(seed))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(scale)
    ids = torch.tensor([[vocabulary.index(token)] for token in tokens])
    return model.trace(ids, do=dict(do) if do else None), list(tokens)
