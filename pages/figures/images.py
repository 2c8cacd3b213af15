"""A figure as a file, made on the server without a browser (vl-convert carries Vega itself; nothing is fetched).

Altair's format was chosen over Plotly's for this: Plotly needs a Chrome beside the server for PNG and SVG. What cannot be seen
(the marks that answer the pointer) is left out of files.
"""

import copy

from pages.figures.figure import Figure, Spec

VERSION = "6.4"  # of Vega-Lite: the newest that vl-convert carries
SCALE = 2.0  # pixels of a PNG per pixel of the figure


def still(figure: Figure) -> Spec:
    """The specification without what only answers a pointer."""
    spec = copy.deepcopy(figure.spec)
    spec["layer"] = [layer for layer in spec["layer"] if layer.get("name") != "hover"]
    return spec


def svg(figure: Figure) -> bytes:
    """An SVG file, transparent; its text stays text."""
    import vl_convert

    return str(vl_convert.vegalite_to_svg(still(figure), vl_version=VERSION)).encode("utf-8")


def png(figure: Figure, scale: float = SCALE) -> bytes:
    """A PNG file, transparent, ``scale`` times as many pixels as the figure has."""
    import vl_convert

    return bytes(vl_convert.vegalite_to_png(still(figure), vl_version=VERSION, scale=scale))
