"""The clock of Play: whatever a tick moves, one clock runs."""

import pytest

pytestmark = pytest.mark.browser

PLAY = """(m, [steps, loops, tick]) => {
    const pending = [];
    const [set, clear] = [window.setTimeout, window.clearTimeout];
    window.setTimeout = (act, wait) => pending.push({ act, wait, id: pending.length + 1 }) && pending.length;
    window.clearTimeout = (id) => { if (pending[id - 1]) pending[id - 1].act = null; };
    let state = { step: 0, speed: 2, playing: true };
    const store = { get: () => state, set: (patch) => { state = { ...state, ...patch }; player.update(state); } };
    const actions = { moveBy: (by) => store.set({ step: state.step + by }), moveTo: (step) => store.set({ step }) };
    const player = m.createPlayer(document.body, store, () => (tick ? { steps, header: { tick } } : { steps }), actions, loops);
    player.update(state);
    const seen = [];
    for (let at = 0; at < pending.length && seen.length < 12; at += 1) {
        const { act, wait } = pending[at];
        if (!act) continue;
        const open = pending.slice(at + 1).filter((one) => one.act).length;
        act();
        seen.push([state.step, wait, open]);
    }
    window.setTimeout = set;
    window.clearTimeout = clear;
    return [seen, state.playing];
}"""


def test_each_tick_is_one_step_and_only_one_clock_runs(run):
    seen, playing = run("player", PLAY, [6, False, 100])
    assert seen == [[1, 25, 0], [2, 50, 0], [3, 50, 0], [4, 50, 0], [5, 50, 0]]
    assert not playing
    seen, playing = run("player", PLAY, [3, True, 100])
    assert [step for step, _, _ in seen] == [1, 2, 0] * 4
    assert all(others == 0 for _, _, others in seen)
    assert playing


def test_what_is_played_need_not_name_a_pace(run):
    seen, playing = run("player", PLAY, [3, False, None])
    assert [step for step, _, _ in seen] == [1, 2]
    assert not playing
