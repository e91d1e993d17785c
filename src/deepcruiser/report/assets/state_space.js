"use strict";
// The state space: the cells along two components, coloured by who visited them. uPlot does axes, zoom and cursor.

const LAYERS = [
  { key: "training", text: "training only", index: 2, edge: true },
  { key: "boundary", text: "boundary", index: 3, edge: true },
  { key: "seeds", text: "seeds", index: 4 },
  { key: "mutants", text: "new by mutants", index: 5 },
  { key: "failing", text: "failing tests", index: 6, dot: true },
];
const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000];
const stateSpaceView = { campaign: 0, pair: 0, hidden: new Set() };

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
    "Each square is a cell of the abstract model, projected onto two components. The cells around those that training " +
    `visited are the boundary, ${space.steps} steps wide. Drag to zoom, double-click to reset.`;
  stateSpaceTools(data, space, drawn, tools);
  const ys = pair.rows.map((row) => row[1]);
  const xs = pair.rows.map((row) => row[0]);
  const bounds = { x: minMax(xs), y: minMax(ys) };
  const height = (width) => Math.max(300, Math.min(520, Math.round(width * 0.62)));
  const tip = element("div", { class: "tip", hidden: true });
  const known = new Map(pair.rows.map((row) => [`${row[0]},${row[1]}`, row]));
  const named = (c) =>
    `component ${c + 1}` + (space.explained.length ? ` (${share(space.explained[c])} of the variance)` : "");
  const chart = new uPlot(
    {
      mode: 2,
      width: widthOf(place) || 600,
      height: height(widthOf(place)),
      legend: { show: false },
      scales: {
        x: { time: false, range: (u, a, b) => (a == null || !u.zoomed ? bounds.x : [a, b]) },
        y: { range: (u, a, b) => (a == null || !u.zoomed ? bounds.y : [a, b]) },
      },
      axes: [
        axis(`${named(pair.x)}`, { size: 30, incrs: WHOLE }),
        axis(pair.x === pair.y ? "" : named(pair.y), { size: 46, incrs: WHOLE }),
      ],
      cursor: { drag: { x: true, y: true, uni: 20 }, points: { show: false }, x: false, y: false },
      series: [
        null,
        {
          facets: [
            { scale: "x", auto: true },
            { scale: "y", auto: true },
          ],
          paths: (u) => paintCells(u, pair),
        },
      ],
      hooks: {
        setCursor: [(u) => stateSpaceTip(u, tip, known, space, pair)],
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
  chart.over.addEventListener("dblclick", () => {
    chart.zoomed = false;
    chart.setData(chart.data);
  });
  chart.over.append(tip);
  fit(chart, place, height);
  const cells = space.cells;
  const summary =
    `Training visited ${number.format(cells.training)} cells. The seeds visit ${number.format(cells.seeds)}, passing mutants ` +
    `${number.format(cells.passed)} more (${number.format(space.outside)} of them outside training), failing tests ${number.format(cells.failed)}.`;
  document.getElementById("state-space-note").textContent =
    summary + (pair.coarse > 1 ? ` Each square stands for ${pair.coarse} × ${pair.coarse} cells.` : "");
  chart.root.setAttribute("role", "img");
  chart.root.setAttribute("aria-label", `Map of the state space: ${summary}`);
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

function stateSpaceTools(data, space, drawn, tools) {
  const again = () => drawStateSpace(data);
  if (drawn.length > 1) {
    tools.append(
      choice(
        "Campaign",
        drawn.map(([, i]) => [i, data.campaigns[i].name]),
        stateSpaceView.campaign,
        (chosen) => {
          stateSpaceView.campaign = Number(chosen);
          again();
        },
      ),
    );
  }
  if (space.pairs.length > 1) {
    tools.append(
      choice(
        "Components",
        space.pairs.map((pair, i) => [i, `components ${pair.x + 1} and ${pair.y + 1}`]),
        stateSpaceView.pair,
        (chosen) => {
          stateSpaceView.pair = Number(chosen);
          again();
        },
      ),
    );
  }
  for (const layer of LAYERS) {
    const look = { fill: colour(layer.key), edge: layer.edge ? colour("soft") : "" };
    tools.append(
      toggle(layer.text, look, !stateSpaceView.hidden.has(layer.key), (on) => {
        stateSpaceView.hidden[on ? "delete" : "add"](layer.key);
        again();
      }),
    );
  }
}

/** The layer whose colour a square has. */
function layerOf(row) {
  for (const key of ["seeds", "mutants", "training", "boundary"]) {
    const layer = LAYERS.find((each) => each.key === key);
    if (row[layer.index] && !stateSpaceView.hidden.has(key)) return key;
  }
  return null;
}

function paintCells(u, pair) {
  const paths = Object.fromEntries(LAYERS.map((layer) => [layer.key, new Path2D()]));
  const side = Math.min(
    Math.abs(u.valToPos(1, "x", true) - u.valToPos(0, "x", true)),
    Math.abs(u.valToPos(1, "y", true) - u.valToPos(0, "y", true)),
  );
  const gap = side > 8 ? 1 : side > 4 ? 0.5 : 0;
  for (const row of pair.rows) {
    const left = u.valToPos(row[0], "x", true),
      right = u.valToPos(row[0] + 1, "x", true);
    const bottom = u.valToPos(row[1], "y", true),
      top = u.valToPos(row[1] + 1, "y", true);
    if (
      right < u.bbox.left ||
      left > u.bbox.left + u.bbox.width ||
      bottom < u.bbox.top ||
      top > u.bbox.top + u.bbox.height
    )
      continue;
    const layer = layerOf(row);
    if (layer)
      paths[layer].rect(
        left + gap,
        top + gap,
        Math.max(0.8, right - left - 2 * gap),
        Math.max(0.8, bottom - top - 2 * gap),
      );
    if (row[6] && !stateSpaceView.hidden.has("failing")) {
      const radius = Math.max(1.2, side * 0.22),
        x = (left + right) / 2,
        y = (top + bottom) / 2;
      paths.failing.moveTo(x + radius, y);
      paths.failing.arc(x, y, radius, 0, 2 * Math.PI);
    }
  }
  u.ctx.save();
  u.ctx.beginPath();
  u.ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
  u.ctx.clip();
  for (const key of ["boundary", "training", "seeds", "mutants", "failing"]) {
    u.ctx.fillStyle = colour(key);
    u.ctx.fill(paths[key]);
    if (key === "failing") {
      u.ctx.strokeStyle = colour("paper");
      u.ctx.lineWidth = 1;
      u.ctx.stroke(paths[key]);
    }
    if (key === "boundary" && side > 5) {
      u.ctx.strokeStyle = colour("line");
      u.ctx.lineWidth = 1;
      u.ctx.stroke(paths[key]);
    }
  }
  u.ctx.restore();
  return null;
}

function stateSpaceTip(u, tip, known, space, pair) {
  const { left, top } = u.cursor;
  const row = left < 0 ? null : known.get(`${Math.floor(u.posToVal(left, "x"))},${Math.floor(u.posToVal(top, "y"))}`);
  tip.hidden = !row;
  if (!row) return;
  const width = (c) => ((space.upper[c] - space.lower[c]) / space.partitions) * pair.coarse;
  const range = (c, i) =>
    `${(space.lower[c] + i * width(c)).toFixed(2)} to ${(space.lower[c] + (i + 1) * width(c)).toFixed(2)}`;
  const counts = [
    [row[2], "visited in training"],
    [row[3], "in the boundary"],
    [row[4], "visited by seeds"],
    [row[5], "new by mutants"],
    [row[6], "visited by failing tests"],
  ];
  tip.replaceChildren(
    element("b", {}, pair.x === pair.y ? `cell ${row[0]}` : `cell (${row[0]}, ${row[1]})`),
    element("div", {}, `component ${pair.x + 1}: ${range(pair.x, row[0])}`),
    pair.x === pair.y ? null : element("div", {}, `component ${pair.y + 1}: ${range(pair.y, row[1])}`),
    ...counts.filter(([count]) => count).map(([count, what]) => element("div", {}, `${number.format(count)} ${what}`)),
  );
  placeTip(u, tip);
}

registerSection("state_space", drawStateSpace);
