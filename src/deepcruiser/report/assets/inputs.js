"use strict";
// The input of a failing test: players for audio, marked differences for texts, lines for series.

const waves = new Set();

function showInput(test, data, sounds) {
  const input = test.input;
  if (input.form === "text") {
    return element(
      "div",
      {},
      element("h4", {}, "Input: insertions and deletions"),
      element("p", { class: "answer raw" }, ...marked(input.pieces)),
    );
  }
  if (input.form === "series") {
    return element("div", {}, element("h4", {}, "Input: the seed (dashed) and the failing test"), seriesChart(input));
  }
  const part = (which, title) =>
    element("div", { class: "player" }, element("h4", {}, title), ...oneInput(test, input[which], title, data, sounds));
  return element(
    "div",
    { class: "pair" },
    part("seed", `Seed ${test.seed}`),
    part("mutant", `Failing test ${test.number}`),
  );
}

function oneInput(test, about, title, data, sounds) {
  if (about.form === "text") return [element("p", { class: "answer raw" }, about.text)];
  if (about.form !== "sound")
    return [element("p", { class: "problem" }, `Missing: ${about.problem || "this kind of input cannot be shown"}.`)];
  const name = `${test.campaign}/${about.file}`;
  const audio = element("audio", { controls: true, preload: "metadata", "aria-label": title });
  const problem = element("p", { class: "problem", role: "status", hidden: true });
  const wave = element("div", { class: "wave", "aria-hidden": "true" });
  audio.src = sounds[name] ? blobUrl(sounds, name) : data.links[test.campaign] + about.file;
  audio.addEventListener("error", () => {
    problem.hidden = false;
    problem.textContent = sounds[name]
      ? "This browser cannot play the audio."
      : `The audio file is missing: ${data.links[test.campaign] + about.file}`;
  });
  audio.addEventListener("play", () => {
    // one at a time
    for (const other of document.querySelectorAll("audio")) if (other !== audio) other.pause();
  });
  const peaks = Float32Array.from(atob(about.outline), (char) => char.charCodeAt(0) / 255);
  const loudest = Math.max(0.02, ...peaks);
  requestAnimationFrame(() => {
    if (!wave.isConnected) return;
    const made = WaveSurfer.create({
      container: wave,
      media: audio,
      peaks: [peaks.map((peak) => peak / loudest)],
      duration: about.seconds,
      height: 64,
      cspNonce: data.nonce,
      waveColor: colour(title.startsWith("Seed") ? "seeds" : "mutants"),
      progressColor: colour("ink"),
      cursorColor: colour("soft"),
      barWidth: 2,
      barGap: 1,
      barRadius: 1,
      dragToSeek: true,
    });
    waves.add(made);
  });
  return [wave, audio, problem];
}

const blobs = new Map();

function blobUrl(sounds, name) {
  if (!blobs.has(name)) {
    const [head, body] = sounds[name].split(",");
    const bytes = Uint8Array.from(atob(body), (char) => char.charCodeAt(0));
    blobs.set(name, URL.createObjectURL(new Blob([bytes], { type: head.slice(5).split(";")[0] })));
  }
  return blobs.get(name);
}

function forgetWaves() {
  for (const wave of waves) wave.destroy();
  waves.clear();
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

function seriesChart(input) {
  const place = element("div", { class: "chart" });
  const { seed, mutant } = input;
  if (!mutant.lines || !mutant.lines.length)
    return element("p", { class: "problem" }, `An array of shape ${mutant.shape}, which cannot be drawn.`);
  requestAnimationFrame(() => {
    if (!place.isConnected) return;
    const both = seed.form === "series" && seed.lines.length;
    const at = [...new Set([...mutant.at, ...(both ? seed.at : [])])].sort((a, b) => a - b);
    const column = (part, line) => {
      const known = new Map(part.at.map((x, i) => [x, line[i]]));
      return at.map((x) => known.get(x));
    };
    const lines = mutant.lines.map((line, k) => ({
      values: column(mutant, line),
      colour: LINES[(k + 1) % LINES.length],
    }));
    if (both)
      seed.lines.forEach((line, k) =>
        lines.push({ values: column(seed, line), colour: LINES[(k + 1) % LINES.length], dash: [4, 4] }),
      );
    const chart = new uPlot(
      {
        width: widthOf(place) || 500,
        height: 200,
        legend: { show: false },
        scales: { x: { time: false } },
        axes: [axis("step", { size: 30 }), axis("value", { size: 60 })],
        series: [
          {},
          ...lines.map((line) => ({
            stroke: line.colour,
            width: 1.5,
            dash: line.dash,
            spanGaps: true,
            points: { show: false },
          })),
        ],
      },
      [at, ...lines.map((line) => line.values)],
      place,
    );
    chart.root.setAttribute("role", "img");
    chart.root.setAttribute(
      "aria-label",
      `The series of the failing test${both ? " and of its seed" : ""}, ${mutant.shape.join(" × ")} numbers`,
    );
    fit(chart, place, () => 200);
  });
  return place;
}
