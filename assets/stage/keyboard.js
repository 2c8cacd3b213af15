// Keys of the stage: arrows step and change the unit, space plays, Home and End jump.

/** What a key asks for, or null. Buttons keep space and Enter, fields keep every key. */
export function keyAction(key, target, actions, playing) {
  const tag = target?.tagName?.toLowerCase() ?? "";
  if (tag === "input" || tag === "select" || tag === "textarea") return null;
  switch (key) {
    case "ArrowRight":
      return () => actions.moveBy(1);
    case "ArrowLeft":
      return () => actions.moveBy(-1);
    case "ArrowUp":
      return () => actions.unitBy(-1);
    case "ArrowDown":
      return () => actions.unitBy(1);
    case "PageUp":
      return actions.headBy ? () => actions.headBy(-1) : null;
    case "PageDown":
      return actions.headBy ? () => actions.headBy(1) : null;
    case "Home":
      return actions.first;
    case "End":
      return actions.last;
    case " ":
      return tag === "button" || tag === "a" ? null : () => actions.play(!playing());
    default:
      return null;
  }
}

const STEPPING = new Set(["ArrowRight", "ArrowLeft"]);

/**
 * Listen on the stage, and for the two stepping keys also on the page while nothing has the focus: a learner who has just
 * opened the lesson can step at once (`page`: not for a stage that stands beside another one). Returns what undoes it.
 */
export function listen(root, actions, playing, page = true) {
  const act = (event, target) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    const action = keyAction(event.key, target, actions, playing);
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  };
  root.onkeydown = (event) => act(event, event.target);
  const onPage = (event) => {
    const idle = document.activeElement === document.body || document.activeElement === null;
    if (idle && STEPPING.has(event.key) && root.isConnected) act(event, null);
  };
  if (page) document.addEventListener("keydown", onPage);
  return () => document.removeEventListener("keydown", onPage);
}

const SOON = 250; // ms after the last step: a key held down makes one entry
const LATER = 1500; // ms: by then the server has written its own part of the address

/**
 * Write where the learner is into the address, without a word to the server. Names as in pages/ui/config.py.
 * `root` is the stage: once it has left the page, the address belongs to another one.
 */
export function createAddress(root) {
  let timers = [];
  const stop = () => {
    for (const timer of timers) clearTimeout(timer);
    timers = [];
  };

  function put(place) {
    if (!root.isConnected) return;
    const address = new URL(window.location.href);
    for (const [name, value] of Object.entries(place)) address.searchParams.set(name, String(value));
    if (address.href !== window.location.href) window.history.replaceState(window.history.state, "", address);
  }

  return {
    stop,
    write(place) {
      stop();
      timers = [setTimeout(put, SOON, place)];
    },
    /** Put the place back where the server has just written an address without it. */
    restore(place) {
      stop();
      timers = [setTimeout(put, SOON, place), setTimeout(put, LATER, place)];
    },
  };
}
