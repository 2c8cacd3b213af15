// The one state of a stage: where the learner is. Views read it and are told what changed.

import { clamp } from "./numbers.js";

export const SPEEDS = [0.5, 1, 2, 4];

export function createStore(initial) {
  let state = { ...initial };
  const listeners = [];
  return {
    get: () => state,
    subscribe: (listener) => listeners.push(listener),
    set(patch) {
      const previous = state;
      state = { ...state, ...patch };
      if (Object.keys(patch).some((name) => previous[name] !== state[name])) {
        for (const listener of listeners) listener(state, previous);
      }
    },
  };
}

/** The step, unit, symbol and layer to show for a trace: kept when still in range, clamped when not. */
export function fit(state, trace) {
  if (trace.fit) return trace.fit(state);
  const known = trace.header.symbols[state.symbol] && trace.has(state.symbol);
  const layers = trace.layers?.length ?? 1;
  return {
    step: clamp(Math.trunc(Number(state.step)) || 0, 0, trace.steps - 1),
    unit: clamp(Math.trunc(Number(state.unit)) || 0, 0, trace.units - 1),
    symbol: known ? state.symbol : trace.header.layout.strips[0],
    ...(layers > 1 ? { layer: clamp(Math.trunc(Number(state.layer)) || 0, 0, layers - 1) } : {}),
  };
}

/** What a learner can do, whichever key, button or drag asks for it. */
export function createActions(store, trace) {
  const moveTo = (step) => store.set({ step: clamp(step, 0, trace().steps - 1) });
  return {
    moveTo,
    moveBy: (by) => moveTo(store.get().step + by),
    first: () => moveTo(0),
    last: () => moveTo(trace().steps - 1),
    unitBy: (by) => store.set({ unit: (store.get().unit + by + trace().units) % trace().units }),
    select: (symbol) => trace().header.symbols[symbol] && trace().has(symbol) && store.set({ symbol }),
    pick: (place) => store.set({ ...fit({ ...store.get(), ...place }, trace()) }),
    hover: (symbol) => store.set({ hover: symbol }),
    show: (view) => store.set({ view }),
    faster: (speed) => store.set({ speed }),
    play: (playing) => {
      const { step } = store.get();
      const atEnd = step >= trace().steps - 1;
      store.set(playing && atEnd ? { playing: trace().steps > 1, step: 0 } : { playing });
    },
  };
}
