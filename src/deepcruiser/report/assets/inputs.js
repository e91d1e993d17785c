"use strict";
// The input of a failing test: sounds to compare, texts, lines for series, heat maps for small arrays.

/** The input as an element; `pair` is the player where it is a sound. */
function showInput(test, data, sounds) {
  const input = test.input;
  if (input.form === "text") {
    const parts = [element("h4", {}, "Input"), element("p", { class: "answer raw" }, textOf(test))];
    if (input.pieces?.some((piece) => piece[0] !== piece[1]))
      parts.push(element("h4", {}, "Changes to the seed"), element("p", { class: "answer raw" }, ...marked(input.pieces)));
    return { node: element("div", {}, ...parts) };
  }
  if (input.form === "sound" || input.seed.form === "sound") {
    const pair = soundPair(test, data, sounds);
    return { node: pair.node, pair };
  }
  if (input.form === "series") return { node: element("div", {}, ...showArray(input)) };
  const problems = [
    ["Seed", input.seed],
    ["Failing test", input.mutant],
  ].filter(([, about]) => about.form === "missing");
  const missing = problems.map(([title, about]) => element("p", { class: "problem" }, `${title}: ${about.problem}.`));
  return { node: element("div", {}, ...missing) };
}

/** Two texts in one line: what was removed is struck out, what was added is marked. */
function marked(pieces, between = "") {
  const shown = [];
  for (const [before, now] of pieces) {
    if (shown.length && between) shown.push(between);
    if (before === now) {
      shown.push(now);
      continue;
    }
    if (before) shown.push(element("del", { "aria-label": `instead of ${before}` }, before));
    if (before && now && between) shown.push(between);
    if (now) shown.push(element("ins", {}, now));
  }
  return shown;
}

function showArray(input) {
  const { seed, mutant } = input;
  const both = Boolean(mutant.table ? seed.table : seed.lines?.length);
  const shape = mutant.shape.join(" × ");
  if (mutant.table) {
    const parts = [...(both ? [["Seed", seed.table]] : []), ["Failing test", mutant.table]];
    const [low, high] = [Math.min, Math.max].map((pick, i) =>
      pick(...parts.map(([, table]) => [table.low, table.high][i])),
    );
    const scale = `${low.toPrecision(4)} (dark) to ${high.toPrecision(4)} (light)`;
    const maps = parts.map(([title, table]) =>
      element("div", {}, element("h4", {}, title), heatCanvas(table, low, high, `${title}: ${shape} numbers`)),
    );
    return [element("h4", {}, `Input: ${shape} numbers, ${scale}`), element("div", { class: "pair" }, ...maps)];
  }
  if (!mutant.lines.length)
    return [element("p", { class: "problem" }, `An array of shape ${shape}, which cannot be drawn.`)];
  const more = mutant.channels > mutant.lines.length ? `; the first ${mutant.lines.length} of ${mutant.channels}` : "";
  const key = mutant.lines.map((_, k) => {
    const patch = element("i", { class: "line" });
    patch.style.background = lineColour(k);
    return element("span", { class: "toggle" }, patch, `channel ${k + 1}`);
  });
  return [
    element("h4", {}, `Input: the failing test${both ? " and its seed (dashed)" : ""}${more}`),
    element("div", { class: "tools" }, ...key),
    seriesChart(mutant, both ? seed : null, shape),
  ];
}

/** Numbers as colours; rows of the array run from left to right, as time does. */
function heatCanvas({ rows, columns, low, high, bytes }, least, most, label) {
  const canvas = element("canvas", { class: "array", role: "img", "aria-label": label });
  [canvas.width, canvas.height] = [rows, columns];
  const values = atob(bytes);
  const span = most - least || 1;
  paintSpectrogram(canvas, (i) => {
    const at = (i % rows) * columns + (columns - 1 - Math.floor(i / rows));
    return heat((low + (values.charCodeAt(at) / 255) * (high - low) - least) / span);
  });
  return canvas;
}

function lineColour(k) {
  return LINES[(k + 1) % LINES.length];
}

function seriesChart(mutant, seed, shape) {
  const place = element("div", { class: "chart" });
  requestAnimationFrame(() => {
    if (!place.isConnected) return;
    const parts = [[mutant], ...(seed ? [[seed, [4, 4]]] : [])];
    const at = [...new Set(parts.flatMap(([part]) => part.at))].sort((a, b) => a - b);
    const lines = parts.flatMap(([part, dash]) =>
      part.lines.map((line, k) => {
        const known = new Map(part.at.map((x, i) => [x, line[i]]));
        return { values: at.map((x) => known.get(x)), stroke: lineColour(k), dash };
      }),
    );
    const chart = new uPlot(
      {
        width: widthOf(place) || 500,
        height: 200,
        legend: { show: false },
        scales: { x: { time: false } },
        axes: [axis("step", { size: 30, incrs: WHOLE }), axis("value", { size: 60 })],
        series: [
          {},
          ...lines.map(({ stroke, dash }) => ({ stroke, width: 1.5, dash, spanGaps: true, points: { show: false } })),
        ],
      },
      [at, ...lines.map((line) => line.values)],
      place,
    );
    chart.root.setAttribute("role", "img");
    chart.root.setAttribute(
      "aria-label",
      `The series of the failing test${seed ? " and of its seed" : ""}, ${shape} numbers`,
    );
    fit(chart, place, () => 200);
  });
  return place;
}
