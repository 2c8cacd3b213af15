"""What the stage shows and what its keys and controls do, each module by itself in Chromium."""

import pytest

from engine.text.display import visible
from tests.stage.runs import Payload, packed, trace_of

pytestmark = pytest.mark.browser


@pytest.mark.parametrize(
    ("room", "steps", "strip", "token"), [(600, 1, 34, 34), (600, 40, 15, 15), (600, 100, 6, 11), (600, 256, 4, 11)]
)
def test_columns_shrink_to_four_pixels_and_tokens_stay_readable(run, room, steps, strip, token):
    assert run("timeline", "(m, a) => m.columnWidths(...a)", [room, steps]) == {"strip": strip, "token": token}


def test_tokens_are_told_apart_by_what_one_sees(run):
    tokens = ["a", " ", "\n", "\u200d", "é", "e\u0301", "👩\u200d👩\u200d👧", "你", "ab", "", "🇵🇱"]
    kinds = run("timeline", "(m, tokens) => tokens.map(m.tokenKind)", [visible(token) for token in tokens])
    assert kinds == ["", "blank", "sign", "long", "", "", "", "", "long", "sign", ""]


def test_the_cell_under_the_pointer_is_found_by_its_place(run):
    cells = [{"offsetLeft": x} for x in (34, 48, 62, 100, 114)]
    found = run("timeline", "(m, [cells, xs]) => xs.map((x) => m.cellAt(cells, x))", [cells, [-5, 0, 13, 14, 40, 66, 80, 999]])
    assert found == [0, 0, 0, 1, 2, 3, 4, 4]


def test_chosen_units_are_outlined_in_runs(run):
    assert run("strips", "(m) => [m.runs([3, 4, 7], 9), m.runs(null, 9), m.runs([0], 9)]") == [
        [[3, 5], [7, 8]],
        [[0, 9]],
        [[0, 1]],
    ]


def test_a_strip_shows_changed_baseline_or_difference(run):
    changed = {"F": 0.75}
    shown = """(m) => { const trace = {value: (name, step, unit, baseline) => baseline ? 0.5 : 0.75};
        return ["changed", "baseline", "difference"].map((view) => m.shown(trace, "F", 0, 0, view)); }"""
    assert run("strips", shown) == [changed["F"], 0.5, 0.25]


def test_the_largest_probabilities_come_first_and_ties_in_order(run):
    assert run("distribution", "(m) => m.largest([0.1, 0.3, 0.3, 0.2, 0.1], 4)") == [1, 2, 3, 0]


def test_the_actual_next_token_is_always_shown_with_its_rank(run):
    row = [0.3, 0.25, 0.2, 0.1, 0.1, 0.05]
    bars = "(m, [row, actual, count]) => m.bars(row, actual, count)"
    assert run("distribution", bars, [row, 5, 3]) == {"shown": [0, 1, 5], "rank": 6}
    assert run("distribution", bars, [row, 1, 3]) == {"shown": [0, 1, 2], "rank": 2}
    assert run("distribution", bars, [row, None, 3]) == {"shown": [0, 1, 2], "rank": None}
    assert run("distribution", bars, [row, 4, 8]) == {"shown": [0, 1, 2, 3, 4, 5], "rank": 5}


# ------------------------------------------------------------------------------------------------- formulas and what if

FORMULA = """(m, [source, values]) => {
    const formula = m.importMath(source);
    m.fillSlots(formula, (slot) => values[slot]);
    return formula.textContent;
}"""


def test_numbers_are_plugged_into_the_engines_formula(run):
    header = Payload.read(packed(trace_of())).header
    plugged = {equation["name"]: equation["plugged"] for equation in header["equations"]}
    values = {
        "F:2": -2.07,
        "F:3": -2.63,
        "b_f": -0.07,
        "F:0": 0.01,
        "F": -0.5,
        "C_prev": -2,
        "I": 0.25,
        "C_tilde": -1,
        "C:0": 0.75,
    }
    assert run("formula", FORMULA, [plugged["F"], values]) == "σ(−2.070−2.630−0.070)=0.010"
    assert run("formula", FORMULA, [plugged["F"], values | {"F:3": 2.63, "b_f": 0}]) == "σ(−2.070+2.630+0.000)=0.010"
    assert run("formula", FORMULA, [plugged["C"], values]) == "−0.500·(−2.000)+0.250·(−1.000)=0.750"


def test_letters_get_their_face(run):
    faces = """(m, source) => [...m.importMath(source).querySelectorAll("mi")]
        .map((mi) => [mi.textContent, mi.getAttribute("class")])"""
    found = run("formula", faces, trace_of().mathml("C_tilde"))
    assert found[:2] == [["C", "bold"], ["t", "variable"]]
    assert ["tanh", "upright"] in found


def test_a_broken_formula_is_a_mark_and_not_an_error(run):
    assert run("formula", "(m) => m.importMath('<math><mi>').textContent") == "?"


@pytest.mark.parametrize(("steps", "span"), [("one", [4, 5]), ("on", [4, None]), ("all", [0, None])])
@pytest.mark.parametrize(("units", "list_"), [("one", [6]), ("all", None), ("chosen", [1, 2])])
def test_the_controls_describe_a_change(run, steps, span, units, list_):
    given = {"symbol": "F", "value": 1, "steps": steps, "step": 4, "units": units, "unit": 6, "chosen": [1, 2]}
    change = run("whatif", "(m, given) => m.describeChange(given)", given)
    assert change == {"symbol": "F", "value": 1, "from": span[0], "to": span[1], "units": list_}


def test_a_change_on_the_same_cells_replaces_the_old_one(run):
    old = [
        {"symbol": "F", "value": 1, "from": 0, "to": None, "units": [3]},
        {"symbol": "I", "value": 1, "from": 0, "to": None, "units": [3]},
    ]
    new = old[0] | {"value": 0}
    add = "(m, [list, change]) => m.withChange(list, change)"
    assert run("whatif", add, [old, new]) == [old[1], new]
    assert run("whatif", add, [old, new | {"units": None}]) == [*old, new | {"units": None}]


def test_only_something_new_is_asked_for_and_no_waiting_is_without_end(run):
    """The same changes bring the same trace, of which the stage hears nothing; a lost connection brings no answer at all."""
    ask = """async (m, [list, wanted]) => {
        const node = document.createElement("div"), sent = [];
        const asking = m.createAsking(node, {send: (name, value) => sent.push(value.interventions)}, 50);
        asking.ask({key: "k", header: {interventions: list}}, wanted);
        const at_once = node.className;
        await new Promise((done) => setTimeout(done, 200));
        return [sent, at_once, node.className]; }"""
    change = {"symbol": "F", "value": 1, "from": 0, "to": None, "units": [3]}
    assert run("asking", ask, [[change], [change]]) == [[], "", ""]
    assert run("asking", ask, [[], []]) == [[], "", ""]
    assert run("asking", ask, [[change], []]) == [[[]], "waiting", ""]


def test_a_change_is_told_in_words(run):
    words = {
        "all_steps": "all steps",
        "steps_from": "from {first}",
        "steps_some": "{first} to {last}",
        "step_one": "step {step}",
        "all_units": "all units",
        "units_some": "units {units}",
        "comma": ", ",
    }
    told = [
        run("whatif", "(m, [change, words]) => m.describeScope(change, words)", [change, words])
        for change in (
            {"from": 0, "to": None, "units": None},
            {"from": 4, "to": None, "units": [1, 2]},
            {"from": 4, "to": 5, "units": None},
            {"from": 4, "to": 9, "units": None},
        )
    ]
    assert told == ["all steps, all units", "from 5, units 1, 2", "step 5, all units", "5 to 9, all units"]


# ------------------------------------------------------------------------------------------------------ keys and state


@pytest.mark.parametrize(
    ("key", "tag", "done"),
    [
        ("ArrowRight", "DIV", "by 1"),
        ("ArrowLeft", "BUTTON", "by -1"),
        ("ArrowUp", "DIV", "unit -1"),
        ("ArrowDown", "DIV", "unit 1"),
        ("Home", "DIV", "first"),
        ("End", "DIV", "last"),
        (" ", "DIV", "play true"),
        (" ", "BUTTON", None),
        ("ArrowRight", "INPUT", None),
        ("ArrowRight", "SELECT", None),
        ("a", "DIV", None),
        ("Enter", "DIV", None),
    ],
)
def test_keys(run, key, tag, done):
    ask = """(m, [key, tag]) => {
        const log = [];
        const actions = {moveBy: (by) => log.push(`by ${by}`), unitBy: (by) => log.push(`unit ${by}`),
            first: () => log.push("first"), last: () => log.push("last"), play: (on) => log.push(`play ${on}`)};
        const action = m.keyAction(key, {tagName: tag}, actions, () => false);
        action?.();
        return log[0] ?? null;
    }"""
    assert run("keyboard", ask, [key, tag]) == done


TRACE = '{steps: 5, units: 4, has: (s) => s !== "Y", header: {symbols: {F: {}, H: {}, Y: {}}, layout: {strips: ["F"]}}}'


@pytest.mark.parametrize(
    ("state", "fitted"),
    [
        ({"step": 3, "unit": 2, "symbol": "H"}, {"step": 3, "unit": 2, "symbol": "H"}),
        ({"step": 9, "unit": -2, "symbol": "Q"}, {"step": 4, "unit": 0, "symbol": "F"}),
        ({"step": "x", "unit": 1.9, "symbol": "Y"}, {"step": 0, "unit": 1, "symbol": "F"}),
        ({}, {"step": 0, "unit": 0, "symbol": "F"}),
    ],
)
def test_a_place_is_kept_when_it_is_there_and_clamped_when_not(run, state, fitted):
    assert run("store", f"(m, state) => m.fit(state, {TRACE})", state) == fitted


def test_a_store_tells_only_of_what_has_changed(run):
    assert run(
        "store",
        """(m) => { let told = 0; const store = m.createStore({a: 1}); store.subscribe(() => { told += 1; });
        store.set({a: 1}); store.set({a: 2}); store.set({b: undefined}); return [told, store.get().a]; }""",
    ) == [1, 2]


def test_play_at_the_end_starts_again_and_a_single_step_does_not_play(run):
    play = """(m, steps) => { const trace = {steps, units: 1}; const store = m.createStore({step: steps - 1, playing: false});
        m.createActions(store, () => trace).play(true); return store.get(); }"""
    assert run("store", play, 5) == {"step": 0, "playing": True}
    assert run("store", play, 1) == {"step": 0, "playing": False}


def test_the_unit_goes_round(run):
    turn = """(m) => { const store = m.createStore({unit: 0});
        const actions = m.createActions(store, () => ({steps: 1, units: 4}));
        actions.unitBy(-1); const up = store.get().unit; actions.unitBy(1); return [up, store.get().unit]; }"""
    assert run("store", turn) == [3, 0]


def test_a_sentence_is_filled_and_shows_what_is_missing(run):
    assert run("dom", '(m) => m.sentence("step {step} of {steps}", {step: 3})') == "step 3 of {steps}"


def test_the_text_of_a_token_never_becomes_markup(run):
    text = "<img src=x onerror=alert(1)>"
    assert run("dom", "(m, text) => m.element('span', {text}).childElementCount", text) == 0
