// Ask the server for other changes, and wait for its answer: once, and never without end.

const PATIENCE = 4000; // ms after which a view can be used again although no answer came (a lost connection, nothing new to show)

/** `ask(trace, interventions)` sends what is not there already and marks `node` as waiting; `settle()` is for the answer. */
export function createAsking(node, context, patience = PATIENCE) {
  let timer = 0;

  function settle() {
    clearTimeout(timer);
    node.classList.remove("waiting");
    node.removeAttribute("aria-busy");
  }

  function ask(trace, interventions) {
    // The same again would bring the same trace back, and of that the stage is not told.
    if (JSON.stringify(interventions) === JSON.stringify(trace.header.interventions)) return;
    node.classList.add("waiting");
    node.setAttribute("aria-busy", "true");
    clearTimeout(timer);
    timer = setTimeout(settle, patience);
    context.send("change", { key: trace.key, interventions });
  }

  return { ask, settle };
}
