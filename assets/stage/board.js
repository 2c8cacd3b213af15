// The views of a run that has all positions at once, in the order and the areas that its header asks for.

import { createCurves } from "./curves.js";
import { createDiagram } from "./diagram.js";
import { element } from "./dom.js";
import { createMatrix } from "./matrix.js";
import { createMultiples } from "./multiples.js";
import { createPanel } from "./panel.js";
import { createReadout } from "./readout.js";
import { createSeries } from "./series.js";
import { createScene } from "./scene.js";
import { createSum } from "./sum.js";
import { createTerms } from "./terms.js";
import { createVectors } from "./vectors.js";

const VIEWS = {
  curves: createCurves,
  diagram: createDiagram,
  matrix: createMatrix,
  multiples: createMultiples,
  panel: createPanel,
  readout: createReadout,
  scene: createScene,
  series: createSeries,
  sum: createSum,
  terms: createTerms,
  vectors: createVectors,
};

/** Make the views of `asked`, a list of {view, area, ...}; `area(name)` gives the box of an area. */
export function createBoard(asked, area, context) {
  return asked.map((spec) => {
    const box = area(spec.area).appendChild(element("div", { class: `view of-${spec.view}` }));
    return VIEWS[spec.view](box, context, spec);
  });
}
