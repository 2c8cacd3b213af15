// The clock of Play: one step a tick; it stops at the end, or starts again where that is wanted.

const TICK = 700; // ms a step at speed 1, where the run has no pace of its own

export function createPlayer(root, store, trace, actions, loops) {
  let timer = 0; // not 0 while a tick is under way: the move that it makes must not start a second clock
  const pace = () => trace().header?.tick ?? TICK;

  function tick() {
    const { step, playing } = store.get();
    if (!root.isConnected || !playing) {
      timer = 0;
      return;
    }
    if (step < trace().steps - 1) actions.moveBy(1);
    else if (loops) actions.moveTo(0);
    const now = store.get();
    const atEnd = now.step >= trace().steps - 1;
    if (atEnd && !loops) {
      timer = 0;
      store.set({ playing: false });
    } else timer = now.playing ? setTimeout(tick, pace() / now.speed) : 0;
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
