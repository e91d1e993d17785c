"use strict";
// The trace of a failing test: its path and that of its seed through the cells, step by step, in time with the sound.

/** Steps per second where there is no sound. */
const PACE = 12;
/** Symbols quoted of what was read up to a step. */
const READ = 20;
const traceView = { pair: 0 };

/** The viewer as an element; `pair` is the player of the sounds, if there is one. */
function showTrace(test, data, pair) {
  const space = data.state_space?.[test.campaign];
  if (!test.path || !space) return element("p", { class: "note" }, whyNoPath(test, data, space));
  const paths = [test.path.seed, test.path.test];
  const last = paths.map((path) => path.cells.length - 1);
  const chart = element("div", { class: "chart" });
  const texts = element("div", { class: "pair" });
  const at = element("input", { type: "range", min: 0, max: last[1], step: 1, value: 0, "aria-label": "Step" });
  const where = element("span", { class: "time", role: "status" });
  const button = (text, onclick, more = {}) => element("button", { type: "button", class: "quiet", onclick, ...more }, text);
  let [step, timer, plot] = [0, null, null];
  const seconds = (i, which = 1) => (pair ? (i / last[which]) * test.input[which ? "mutant" : "seed"].seconds : null);
  const partner = () => Math.round((step * last[0]) / Math.max(1, last[1]));
  const show = (to) => {
    step = Math.min(last[1], Math.max(0, Math.round(to)));
    at.value = step;
    where.textContent = `step ${step} of ${last[1]}` + (pair ? `, ${seconds(step).toFixed(2)} s` : "");
    const steps = [partner(), step];
    texts.replaceChildren(...[0, 1].map((i) => soFar(test, i, steps[i])));
    plot?.redraw(false);
  };
  const go = (to) => {
    clearInterval(timer);
    timer = null;
    if (pair?.seek(1, seconds(to)) === false || !pair) show(to);
  };
  const play = button("Play the steps", () => {
    if (timer) return go(step);
    timer = setInterval(() => (chart.isConnected && step < last[1] ? show(step + 1) : go(step)), 1000 / PACE);
  });
  at.addEventListener("input", () => go(Number(at.value)));
  pair?.moved.push((which, time) => {
    const about = test.input[which ? "mutant" : "seed"];
    show((time / Math.max(0.001, about.seconds)) * last[1]);
  });
  const draw = (chosen) => {
    traceView.pair = Number(chosen);
    const components = space.pairs[Math.min(traceView.pair, space.pairs.length - 1)];
    chart.replaceChildren();
    plot = cellChart(chart, space, components, {
      height: (width) => Math.max(260, Math.min(420, Math.round(width * 0.5))),
      hidden: new Set(["seeds", "mutants", "failing"]),
      campaign: test.campaign,
      over: (u) => paintPaths(u, paths, [partner(), step], components),
    });
    plot.root.setAttribute("aria-label", `Paths of the seed and the failing test. ${partingText(test, seconds)}`);
  };
  const [parting, unknown, word] = [test.path.parting, test.path.test.known.indexOf("0"), otherWord(test.path)];
  const tools = element(
    "div",
    { class: "tools" },
    pair ? null : play,
    button("◀", () => go(step - 1), { "aria-label": "Step back" }),
    button("▶", () => go(step + 1), { "aria-label": "Step forward" }),
    at,
    where,
    parting == null ? null : button("Where they diverge", () => go(parting)),
    unknown < 0 ? null : button("First unknown cell", () => go(unknown)),
    word ? button("First other word", () => go(word.step)) : null,
    space.pairs.length > 1 ? choice("Components", pairNames(space), traceView.pair, draw) : null,
  );
  requestAnimationFrame(() => {
    if (!chart.isConnected) return;
    draw(traceView.pair);
    show(parting ?? 0);
  });
  return element(
    "div",
    { class: "trace" },
    element("h4", {}, "Path through the states: seed (blue) and failing test (orange) over the cells of training (grey)"),
    element("p", { class: "answer" }, partingText(test, seconds)),
    tools,
    chart,
    texts,
  );
}

function whyNoPath(test, data, space) {
  if (!space || test.kind !== "wrong") return "There is no path through the states to show.";
  const campaign = data.campaigns[test.campaign];
  return campaign.system
    ? `To see its path through the states, replay it, then write the report again: ${test.replay}`
    : "To see its path through the states: deepcruiser.campaign.paths.keep_paths(campaign, system, [test]), where campaign is the result of fuzz().";
}

/** Where the two part, where training never was, and what was read or being written there. */
function partingText(test, seconds) {
  const { parting, seed, test: path } = test.path;
  if (parting == null) return "Seed and failing test visit the same cells.";
  const when = (step) => {
    const [time, read] = [seconds(step), symbolsOf(test, 1)];
    const there = `step ${step}, in cell (${path.cells[step].join(", ")})`;
    if (read) return step ? `${there}, after “${read.slice(Math.max(0, step - READ), step).join("")}”` : there;
    if (time == null) return there;
    const word = wordAt(seed, Math.round((step * (seed.cells.length - 1)) / Math.max(1, path.cells.length - 1)));
    return `${there}, at ${time.toFixed(2)} s${word ? `, around “${word}”` : ""}`;
  };
  const unknown = path.known.indexOf("0");
  const word = otherWord(test.path);
  const at = word && `step ${word.step}${seconds(word.step) == null ? "" : `, at ${seconds(word.step).toFixed(2)} s`}`;
  const other = word ? ` The first other word is “${word.got}” instead of “${word.wanted}”, written at ${at}.` : "";
  if (unknown === parting) return `They diverge at ${when(parting)}. Training never visited that cell.${other}`;
  const outside =
    unknown < 0
      ? "Every cell of the failing test is known from training."
      : `The first cell that training never visited comes at ${when(unknown)}.`;
  return `They diverge at ${when(parting)}. ${outside}${other}`;
}

const wordsOf = (text) => text.split(/\s+/).filter(Boolean);

/** The first word that the failing test writes and its seed does not, and the step; null if there is none. */
function otherWord({ seed, test }) {
  const [before, now] = [seed, test].map((path) => wordsOf(path.texts[path.texts.length - 1]?.[1] || ""));
  const place = now.findIndex((word, i) => word !== before[i]);
  const written = place < 0 ? null : test.texts.find(([, text]) => wordsOf(text).length > place);
  return written ? { step: written[0], got: now[place], wanted: before[place] ?? "nothing" } : null;
}

/** The symbols of a text that was read one by one: a state for each. */
function symbolsOf(test, which) {
  const read = test.input.pieces?.map((piece) => piece[which]).join("");
  const symbols = read && [...read];
  return symbols && symbols.length === (which ? test.path.test : test.path.seed).cells.length - 1 ? symbols : null;
}

/** The word of the path's whole text that is being written at a step. */
function wordAt(path, step) {
  if (!path.texts.length) return "";
  const whole = path.texts[path.texts.length - 1][1];
  const next = path.texts.find(([from, text]) => from >= step && text.trim()) || [0, whole];
  return wordsOf(whole)[wordsOf(next[1]).length - 1] || "";
}

/** What one of the two has read by a step, of a text that is read symbol by symbol, and what it answers so far. */
function soFar(test, which, step) {
  const path = which ? test.path.test : test.path.seed;
  const written = path.texts.filter(([from]) => from <= step).pop();
  const cell = `cell (${path.cells[step].join(", ")})${path.known[step] === "0" ? ", unknown to training" : ""}`;
  const parts = [element("h4", {}, `${which ? "Failing test" : "Seed"} at step ${step}`), element("p", { class: "mark" }, cell)];
  const symbols = symbolsOf(test, which);
  if (symbols)
    parts.push(
      element(
        "p",
        { class: "answer raw" },
        symbols.slice(0, Math.max(0, step - 1)).join(""),
        element("ins", {}, symbols[step - 1] || ""),
        element("span", { class: "ahead" }, symbols.slice(step).join("")),
      ),
    );
  if (path.texts.length) {
    parts.push(element("p", { class: "mark" }, "answer so far"));
    parts.push(element("p", { class: "answer" }, written ? written[1] || "(nothing)" : "(nothing)"));
  }
  return element("div", {}, ...parts);
}

/** Both paths up to their steps, the rest of them pale, and a dot where they are. */
function paintPaths(u, paths, steps, { x, y, coarse }) {
  const { ctx } = u;
  const scale = devicePixelRatio || 1;
  paths.forEach((path, which) => {
    const shift = which ? 0.12 : -0.12; // so that both can be seen
    const points = path.cells.map((cell) => [
      u.valToPos(Math.floor(cell[x] / coarse) + 0.5 + shift, "x", true),
      u.valToPos(x === y ? 0.5 + shift : Math.floor(cell[y] / coarse) + 0.5 + shift, "y", true),
    ]);
    const line = (some, alpha, width) => {
      ctx.globalAlpha = alpha;
      ctx.lineWidth = width * scale;
      ctx.beginPath();
      for (const point of some) ctx.lineTo(...point);
      ctx.stroke();
      ctx.globalAlpha = 1;
    };
    ctx.strokeStyle = ctx.fillStyle = colour(which ? "mutants" : "seeds");
    ctx.lineJoin = "round";
    line(points, 0.3, 1.5);
    line(points.slice(0, steps[which] + 1), 1, 2);
    ctx.beginPath();
    ctx.arc(...points[steps[which]], 6 * scale, 0, 2 * Math.PI);
    ctx.fill();
    ctx.strokeStyle = colour("paper");
    ctx.lineWidth = 2 * scale;
    ctx.stroke();
  });
}
