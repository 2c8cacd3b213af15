// A symbol is one thing wherever it stands: in a formula, as a label of a strip, on a wire. Here all its places are kept
// together, so that they light up together.

export function createLinks(root) {
  const places = new Map();
  let lit = null;
  let chosen = null;

  function mark(symbol, name, on) {
    for (const place of places.get(symbol) ?? []) place.classList.toggle(name, on);
  }

  return {
    add(symbol, place) {
      if (!places.has(symbol)) places.set(symbol, new Set());
      places.get(symbol).add(place);
    },
    /** Forget the places inside these parents, before they are drawn anew. */
    forget(...parents) {
      for (const set of places.values()) {
        for (const place of set) if (parents.some((parent) => parent.contains(place))) set.delete(place);
      }
    },
    show(hover, symbol) {
      if (hover !== lit) {
        if (lit !== null) mark(lit, "lit", false);
        lit = hover;
        if (lit !== null) mark(lit, "lit", true);
        root.classList.toggle("hovering", lit !== null && places.has(lit));
      }
      if (symbol !== chosen) {
        if (chosen !== null) mark(chosen, "chosen", false);
        chosen = symbol;
        mark(chosen, "chosen", true);
      }
    },
    /** Mark newly drawn places like the old ones. */
    refresh() {
      if (lit !== null) mark(lit, "lit", true);
      if (chosen !== null) mark(chosen, "chosen", true);
    },
  };
}
