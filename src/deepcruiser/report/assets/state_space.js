"use strict";
// The state space: the cells along two components, coloured by who visited them. uPlot does axes, zoom and cursor.

const LAYERS = [
  { key: "training", text: "training", edge: true },
  { key: "boundary", text: "boundary", edge: true },
  { key: "seeds", text: "covered by seeds" },
  { key: "mutants", text: "added by mutants" },
  { key: "failing", text: "failing tests" },
];
/** The columns of a row. */
const [X, Y, TRAINING, BOUNDARY, SEEDS, PASSED, FAILED, SEEDS_BEYOND, PASSED_BEYOND] = Array(9).keys();
const stateSpaceView = { campaign: 1, pair: 0, hidden: new Set() }; // the one that is judged, if there are several

function drawStateSpace(data) {
  const place = document.getElementById("state-space-chart");
  const tools = document.getElementById("state-space-tools");
  const lead = document.getElementById("state-space-lead");
  const drawn = data.state_space.map((space, i) => [space, i]).filter(([space]) => space);
  place.replaceChildren();
  tools.replaceChildren();
  place.classList.toggle("empty", !drawn.length);
  document.getElementById("state-space-note").textContent = "";
  if (!drawn.length) {
    lead.textContent = "";
    place.append(
      data.campaigns.some((campaign) => campaign.model_fingerprint)
        ? "The states of this campaign cannot be drawn without its model."
        : "This campaign has no abstract model, so there are no states to draw.",
    );
    return;
  }
  if (!data.state_space[stateSpaceView.campaign]) stateSpaceView.campaign = drawn[0][1];
  const space = data.state_space[stateSpaceView.campaign];
  const pair = space.pairs[Math.min(stateSpaceView.pair, space.pairs.length - 1)];
  lead.textContent =
    "Each square stands for the cells of the abstract model at two components; its filling shows how many are covered. " +
    `The boundary consists of the cells up to ${space.steps} steps from those of training. ` +
    "Click on a square to list the failing tests that pass through it. Drag to zoom, double-click to reset.";
  stateSpaceTools(data, space, drawn, tools);
  const height = (width) => Math.max(300, Math.min(520, Math.round(width * 0.62)));
  const chart = cellChart(place, space, pair, { height, hidden: stateSpaceView.hidden, campaign: stateSpaceView.campaign });
  const cells = space.cells;
  const summary =
    `Training visited ${number.format(cells.training)} cells. The seeds visit ${number.format(cells.seeds)}, passing mutants ` +
    `${number.format(cells.passed)} more (${number.format(space.outside)} of them outside training), failing tests ${number.format(cells.failed)}.`;
  document.getElementById("state-space-note").textContent =
    summary + (pair.coarse > 1 ? ` Each square stands for ${pair.coarse} × ${pair.coarse} intervals.` : "");
  chart.root.setAttribute("aria-label", `Map of the state space: ${summary}`);
}

function stateSpaceTools(data, space, drawn, tools) {
  const set = (name) => (chosen) => {
    stateSpaceView[name] = Number(chosen);
    drawStateSpace(data);
  };
  if (drawn.length > 1) {
    const names = drawn.map(([, i]) => [i, data.campaigns[i].name]);
    tools.append(choice("Campaign", names, stateSpaceView.campaign, set("campaign")));
  }
  if (space.pairs.length > 1) tools.append(choice("Components", pairNames(space), stateSpaceView.pair, set("pair")));
  for (const layer of LAYERS) {
    const look = { fill: colour(layer.key), edge: layer.edge ? colour("soft") : "" };
    tools.append(
      toggle(layer.text, look, !stateSpaceView.hidden.has(layer.key), (on) => {
        stateSpaceView.hidden[on ? "delete" : "add"](layer.key);
        drawStateSpace(data);
      }),
    );
  }
}

function pairNames(space) {
  return space.pairs.map((pair, i) => [i, `components ${pair.x + 1} and ${pair.y + 1}`]);
}

/** The squares of two components on axes; `over(u)` draws on top of them. */
function cellChart(place, space, pair, { height, hidden, campaign, over = () => {} }) {
  const [xs, ys] = [X, Y].map((column) => pair.rows.map((row) => row[column]));
  const bounds = { x: minMax(xs), y: minMax(ys) };
  const known = new Map(pair.rows.map((row) => [`${row[X]},${row[Y]}`, row]));
  const tip = element("div", { class: "tip", hidden: true });
  const named = (c) =>
    `component ${c + 1}` + (space.explained.length ? ` (${share(space.explained[c])} of the variance)` : "");
  const range = (axis) => (u, a, b) => (a == null || !u.zoomed ? bounds[axis] : [a, b]);
  const facet = (scale) => ({ scale, auto: true });
  const chart = new uPlot(
    {
      mode: 2,
      width: widthOf(place) || 600,
      height: height(widthOf(place) || 600),
      legend: { show: false },
      scales: { x: { time: false, range: range("x") }, y: { range: range("y") } },
      axes: [
        axis(named(pair.x), { size: 30, incrs: WHOLE }),
        pair.x === pair.y ? { show: false } : axis(named(pair.y), { size: 46, incrs: WHOLE }),
      ],
      cursor: { drag: { x: true, y: true, uni: 20 }, points: { show: false }, x: false, y: false },
      series: [null, { facets: [facet("x"), facet("y")], paths: (u) => paintCells(u, pair, hidden, over) }],
      hooks: {
        setCursor: [(u) => cellTip(u, tip, known, space, pair)],
        setSelect: [
          (u) => {
            u.zoomed = true;
          },
        ],
      },
    },
    [null, [xs, ys]],
    place,
  );
  let [pressed, waiting] = [[0, 0], 0];
  chart.over.addEventListener("mousedown", (event) => {
    pressed = [event.clientX, event.clientY];
  });
  chart.over.addEventListener("click", (event) => {
    const row = rowAt(chart, known);
    const moved = Math.abs(event.clientX - pressed[0]) + Math.abs(event.clientY - pressed[1]) > 4;
    clearTimeout(waiting); // a double click resets the zoom
    if (event.detail === 1 && row && !moved && pair.through[`${row[X]},${row[Y]}`])
      waiting = setTimeout(() => showThrough(campaign, pair, row), 250);
  });
  chart.over.addEventListener("dblclick", () => {
    chart.zoomed = false;
    chart.setData(chart.data);
  });
  chart.over.append(tip);
  chart.root.setAttribute("role", "img");
  place.cells = chart; // so that the tests can find a cell
  fit(chart, place, height);
  return chart;
}

function minMax(values) {
  let low = Infinity,
    high = -Infinity;
  for (const value of values) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return [low - 0.5, high + 1.5];
}

/** Shows the failing tests that pass through a square. */
function showThrough(campaign, pair, row) {
  table.filters = { ...NOTHING };
  setFilter("cell", `${campaign}/${pair.x + 1}-${pair.y + 1}/${row[X]},${row[Y]}`);
  document.getElementById("failures-tools").replaceChildren();
  table.draw();
  document.getElementById("failures").scrollIntoView();
}

/** The failing tests of a place in the address, "campaign/components/place": how many, and the worst by number. */
function testsThrough(data, cell) {
  const [campaign, components, place] = cell.split("/");
  const pair = data.state_space?.[campaign]?.pairs.find((each) => `${each.x + 1}-${each.y + 1}` === components);
  const [count, ...numbers] = pair?.through[place] || [0];
  return { campaign: Number(campaign), count, numbers, text: `components ${components} at (${place})` };
}

function paintCells(u, pair, hidden, over) {
  const { ctx, bbox } = u;
  const side = Math.min(
    Math.abs(u.valToPos(1, "x", true) - u.valToPos(0, "x", true)),
    Math.abs(u.valToPos(1, "y", true) - u.valToPos(0, "y", true)),
  );
  const gap = side > 8 ? 1 : side > 4 ? 0.5 : 0;
  const tints = Object.fromEntries(LAYERS.map((layer) => [layer.key, colour(layer.key)]));
  const line = colour("line");
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  const dots = new Path2D();
  for (const row of pair.rows) {
    const [left, right] = [row[X], row[X] + 1].map((value) => u.valToPos(value, "x", true));
    const [bottom, top] = [row[Y], row[Y] + 1].map((value) => u.valToPos(value, "y", true));
    if (right < bbox.left || left > bbox.left + bbox.width || bottom < bbox.top || top > bbox.top + bbox.height) continue;
    const box = [left + gap, top + gap, Math.max(0.8, right - left - 2 * gap), Math.max(0.8, bottom - top - 2 * gap)];
    const known = row[TRAINING] > 0;
    const base = known ? "training" : "boundary";
    if (!hidden.has(base)) {
      ctx.fillStyle = tints[base];
      ctx.fillRect(...box);
    }
    // Filled from below, as far as its cells are covered.
    const all = known ? row[TRAINING] : row[BOUNDARY];
    let filled = 0;
    for (const [key, count] of [
      ["seeds", row[known ? SEEDS : SEEDS_BEYOND]],
      ["mutants", row[known ? PASSED : PASSED_BEYOND]],
    ]) {
      if (!count || hidden.has(key)) continue;
      const part = Math.min(count / (all || count), 1 - filled) * box[3];
      ctx.fillStyle = tints[key];
      ctx.fillRect(box[0], box[1] + box[3] * (1 - filled) - part, box[2], part);
      filled += part / box[3];
    }
    if (!row[TRAINING] && side > 5 && !hidden.has("boundary")) {
      ctx.strokeStyle = line;
      ctx.strokeRect(...box);
    }
    if (row[FAILED] && !hidden.has("failing")) {
      const radius = Math.max(1.2, Math.min(6, side * 0.22));
      dots.moveTo((left + right) / 2 + radius, (top + bottom) / 2);
      dots.arc((left + right) / 2, (top + bottom) / 2, radius, 0, 2 * Math.PI);
    }
  }
  ctx.fillStyle = tints.failing;
  ctx.fill(dots);
  ctx.strokeStyle = colour("paper");
  ctx.stroke(dots);
  over(u);
  ctx.restore();
  return null;
}

function rowAt(u, known) {
  const { left, top } = u.cursor;
  if (left == null || left < 0) return null;
  return known.get(`${Math.floor(u.posToVal(left, "x"))},${Math.floor(u.posToVal(top, "y"))}`);
}

function cellTip(u, tip, known, space, pair) {
  const row = rowAt(u, known);
  tip.hidden = !row;
  if (!row) return;
  const width = (c) => ((space.upper[c] - space.lower[c]) / space.partitions) * pair.coarse;
  const range = (c, i) => {
    const [low, high] = [i, i + 1].map((place) => (space.lower[c] + place * width(c)).toFixed(2));
    return element("div", {}, `component ${c + 1}: ${low} to ${high}`);
  };
  const counted = (count, one, many = `${one}s`) => `${number.format(count)} ${count === 1 ? one : many}`;
  const covered = row[SEEDS] + row[PASSED];
  const through = pair.through[`${row[X]},${row[Y]}`]?.[0] || 0;
  const lines = [
    row[TRAINING] ? `${counted(row[TRAINING], "cell")} of training, ${share(covered / row[TRAINING])} covered` : "not visited by training",
    row[SEEDS] ? `${counted(row[SEEDS], "cell")} covered by seeds` : "",
    row[PASSED] ? `${counted(row[PASSED], "cell")} added by mutants` : "",
    row[BOUNDARY] ? `${counted(row[BOUNDARY], "cell")} of the boundary` : "",
    row[SEEDS_BEYOND] ? `${counted(row[SEEDS_BEYOND], "cell")} outside training visited by seeds` : "",
    row[PASSED_BEYOND] ? `${counted(row[PASSED_BEYOND], "cell")} outside training visited by mutants alone` : "",
    through ? `${counted(through, "failing test")}: click to list` : "",
  ];
  tip.replaceChildren(
    element("b", {}, pair.x === pair.y ? `cell ${row[X]}` : `cell (${row[X]}, ${row[Y]})`),
    range(pair.x, row[X]),
    ...(pair.x === pair.y ? [] : [range(pair.y, row[Y])]),
    ...lines.filter(Boolean).map((line) => element("div", {}, line)),
  );
  placeTip(u, tip);
}

registerSection("state_space", drawStateSpace);
