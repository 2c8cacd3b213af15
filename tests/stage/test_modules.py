"""Numbers, bytes, colours and lines of the stage, each module by itself in Chromium."""

import itertools
import math

import numpy as np
import pytest

from engine.notation import format_number
from pages.ui.stage import FOLDER
from tests.stage.runs import Payload, packed, trace_of

pytestmark = pytest.mark.browser


def test_every_module_can_be_imported_by_itself(run):
    for path in sorted(FOLDER.glob("*.js")):
        assert run(path.stem, "(m) => Object.keys(m).length") > 0


# ------------------------------------------------------------------------------------------------------------- numbers


def test_numbers_are_written_as_the_engine_writes_them(run):
    draw = np.random.default_rng(3)
    values = [
        *(0.0, -0.0, 0.0005, -0.0005, 0.00049999, 0.0625, -0.0625, 0.1875, 2.5, 999.9995, 1e-30, 9.96e-5, -9.96e-5, 1e9),
        *(9999.9994, 12345.675, 99999.96, 123456.75, 9999999.5, 1e7, -331038656.0, 3.4e38),
        *draw.normal(size=400).astype(np.float32).tolist(),
        *(draw.normal(size=200) * 10.0 ** draw.integers(-12, 6, size=200)).astype(np.float32).tolist(),
    ]
    written = run("numbers", "(m, values) => values.map((value) => m.formatNumber(value))", values)
    assert written == [format_number(value, digits=3, minus="−") for value in values]


def test_numbers_that_are_none_are_written_too(run):
    assert run("numbers", "(m) => [NaN, Infinity, -Infinity].map((x) => m.formatNumber(x))") == ["NaN", "∞", "−∞"]


def test_differences_show_their_sign(run):
    assert run("numbers", "(m) => [0.25, -0.25, 0, 0.00001].map((x) => m.formatDifference(x))") == [
        "+0.250",
        "−0.250",
        "0.000",
        "+1.0e−5",
    ]


def test_percents_and_limits(run):
    assert run("numbers", "(m) => [0, 0.0001, 0.0006, 0.5, 1].map(m.formatPercent)") == ["0.0", "<0.1", "0.1", "50.0", "100.0"]
    assert run("numbers", "(m) => [-8, 1, 0.5].map(m.formatShort)") == ["−8", "1", "0.5"]
    large = run("numbers", "(m) => [331050000, -2e6, 999999, 1e29, -1e-7].map(m.formatShort)")
    assert large == ["3.3105e8", "−2e6", "999999", "1e29", "−1e−7"]


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("3, 7", [3, 7]),
        ("7;3 3", [3, 7]),
        ("2-4,9", [2, 3, 4, 9]),
        ("0", [0]),
        ("9", [9]),
        ("10", None),
        ("4-2", None),
        ("8-10", None),
        ("", None),
        (" , ", None),
        ("a", None),
        ("-1", None),
        ("1e1", None),
        ("3.7", [3, 7]),
        ("99999999999", None),
    ],
)
def test_unit_lists_are_read_or_refused(run, text, units):
    assert run("numbers", "(m, text) => m.parseUnits(text, 10)", text) == units


# -------------------------------------------------------------------------------------------------------------- reader

READ = """(m, {bytes, ask}) => {
    const padded = new Uint8Array(bytes.length + 1);
    padded.set(bytes, 1);
    return [new Uint8Array(bytes), padded.subarray(1)].map((data) => {
        const trace = m.readTrace(data);
        return ask.map(([name, step, unit, baseline]) => trace.value(name, step, unit, baseline));
    });
}"""


def test_the_reader_gives_the_traces_numbers_wherever_the_bytes_lie(run):
    """Bytes arrive as a piece of a larger buffer, at any offset."""
    trace = trace_of(text="abcabca")
    payload = packed(trace, "abcabca", baseline=trace_of(text="abcabca"))
    ask = [
        [name, step, unit, False] for name in ("F", "C", "H", "C:1", "F:2", "b_f", "P") for step in (0, 3, 6) for unit in (0, 5)
    ]
    wanted = []
    for name, step, unit, _ in ask:
        source = trace.terms if ":" in name else trace
        array = trace.weights[name] if name in trace.weights else source[name][step, 0]
        wanted.append(float(array[unit]))
    for answer in run("reader", READ, {"bytes": list(payload), "ask": ask}):
        assert answer == wanted


def test_the_step_before_and_the_start(run):
    trace = trace_of()
    ask = [["C_prev", 0, 2, False], ["C_prev", 5, 2, False], ["H_prev", 39, 6, False], ["F:0", 4, 1, False]]
    wanted = [trace.start["C"][0, 2], trace["C"][4, 0, 2], trace["H"][38, 0, 6], trace["F"][4, 0, 1]]
    assert run("reader", READ, {"bytes": list(packed(trace)), "ask": ask})[0] == [float(x) for x in wanted]


def test_what_is_not_there_is_no_number_and_not_zero(run):
    ask = [["nothing", 0, 0, False], ["F", 0, 0, True], ["C:1", 0, 0, True]]
    answers = run("reader", READ, {"bytes": list(packed(trace_of())), "ask": ask})[0]
    assert all(math.isnan(x) for x in answers)


def test_which_change_decides_a_cell(run):
    covers = "(m, {change, step, unit}) => m.covers(change, step, unit)"
    change = {"symbol": "F", "value": 1, "from": 3, "to": 6, "units": [2, 4]}
    inside = {
        (step, unit)
        for step in range(8)
        for unit in range(6)
        if run("reader", covers, {"change": change, "step": step, "unit": unit})
    }
    assert inside == {(step, unit) for step in (3, 4, 5) for unit in (2, 4)}
    open_end = {"symbol": "F", "value": 1, "from": 3, "to": None, "units": None}
    assert run("reader", covers, {"change": open_end, "step": 200, "unit": 5})
    assert not run("reader", covers, {"change": open_end, "step": 2, "unit": 5})


# -------------------------------------------------------------------------------------------------------------- scales


def test_colours_are_read_in_every_form_the_theme_uses(run):
    texts = ["#fff", "#1D1E22", "rgb(1, 2, 3)", " #abcdef ", "nonsense"]
    assert run("scales", "(m, texts) => texts.map(m.parseColour)", texts) == [
        [255, 255, 255],
        [29, 30, 34],
        [1, 2, 3],
        [171, 205, 239],
        [128, 128, 128],
    ]


def test_a_ramp_ends_where_its_colours_are_and_passes_paper_at_zero(run):
    ramp = """(m) => {
        const ramp = m.createRamp([-2, 2], [[0, 0, 255], [250, 250, 250], [255, 0, 0]]);
        const gate = m.createRamp([0, 1], [[250, 250, 250], [0, 100, 0]]);
        return [ramp.css(-2), ramp.css(2), ramp.css(-99), ramp.css(NaN), gate.css(0), gate.css(1), ramp.css(0.001)];
    }"""
    low, high, clipped, none, paper, full, middle = run("scales", ramp)
    assert (low, high, clipped, none) == ("rgb(0, 0, 255)", "rgb(255, 0, 0)", "rgb(0, 0, 255)", "transparent")
    assert (paper, full) == ("rgb(250, 250, 250)", "rgb(0, 100, 0)")
    assert min(int(x) for x in middle[4:-1].split(",")) > 240


def test_a_ramp_is_monotone_in_lightness(run):
    light = run(
        "scales",
        """(m) => { const ramp = m.createRamp([0, 1], [[253, 252, 250], [185, 68, 15]]);
        return Array.from({length: 101}, (_, i) => m.luminance(m.parseColour(ramp.css(i / 100)))); }""",
    )
    assert all(a >= b - 1e-9 for a, b in itertools.pairwise(light))


def test_the_width_of_a_band_follows_the_size_of_a_value(run):
    assert run("scales", "(m) => [0, 0.5, -4, 9, NaN].map((x) => m.strength(x, [-4, 4]))") == [0, 0.125, 1, 1, 0]


# ------------------------------------------------------------------------------------------------------------ geometry


def test_a_line_enters_a_box_straight_and_a_circle_towards_its_middle(run):
    border = "(m, [centre, half, from]) => m.border(centre, half, from)"
    assert run("geometry", border, [[100, 100], [20, 14], [92, 300]]) == [92, 114]
    assert run("geometry", border, [[100, 100], [20, 14], [10, 100]]) == [80, 100]
    assert run("geometry", border, [[100, 100], [11, 11], [100, 300]]) == [100, 111]
    x, y = run("geometry", border, [[0, 0], [10, 10], [30, 40]])
    assert math.hypot(x, y) == pytest.approx(10)


def test_a_path_keeps_its_ends_and_rounds_its_corners(run):
    assert run("geometry", "(m) => m.roundedPath([[0, 0], [50, 0], [50, 50]], 10, 7)") == "M0 0L40 0Q50 0 50 10L50 43"
    assert run("geometry", "(m) => m.roundedPath([[0, 0], [0, 0]], 10)") == ""


@pytest.mark.parametrize("width", [300, 358, 600, 1000])
@pytest.mark.parametrize("name", ["rnn", "lstm", "gru", "gru-after-replaces"])
def test_no_two_nodes_of_a_diagram_touch(run, name, width):
    header = Payload.read(packed(trace_of(name), model=name.partition("-")[0])).header
    layout = header["layout"]
    height = max(width * layout["height"] / layout["width"], layout["least"])
    nodes = run(
        "geometry",
        "(m, [d, l, w, h]) => [...m.placeDiagram(d, l, w, h).nodes.values()].map(({at, half}) => [...at, ...half])",
        [header["diagram"], layout, width, height],
    )
    for i, (x, y, w, h) in enumerate(nodes):
        for u, v, s, t in nodes[:i]:
            assert abs(x - u) > w + s or abs(y - v) > h + t


# ---------------------------------------------------------------------------------------------------------------- maps


@pytest.mark.parametrize(
    ("count", "step", "kept"), [(5, 20, [0, 1, 2, 3, 4]), (5, 8, [0, 2, 4]), (64, 6.5, list(range(0, 64, 2))), (1, 1, [0])]
)
def test_labels_without_room_are_left_out_evenly(run, count, step, kept):
    assert run("map", "(m, [count, step]) => m.thinned(count, step, 12)", [count, step]) == kept
