// The clock of Play: one step a tick; it stops at the end, or starts again where that is wanted.

const TICK = 700; // ms a step at speed 1, where the run has no pace of its own

export function createPlayer(root, store, trace, actions, loops) {
  let timer = 0;
  const pace = () => trace().header.tick ?? TICK;

  function tick() {
    timer = 0;
    if (!root.isConnected) return;
    const { step, speed, playing } = store.get();
    if (!playing) return;
    if (step < trace().steps - 1) actions.moveBy(1);
    else if (loops) actions.moveTo(0);
    const atEnd = store.get().step >= trace().steps - 1;
    if (atEnd && !loops) store.set({ playing: false });
    else timer = setTimeout(tick, pace() / speed);
  }

  return {
    update({ playing, speed }) {
      if (playing && !timer) timer = setTimeout(tick, pace() / speed / 2);
      if (!playing && timer) {
        clearTimeout(timer);
        timer = 0;
      }
    },
    stop() {
      clearTimeout(timer);
      timer = 0;
    },
  };
}
