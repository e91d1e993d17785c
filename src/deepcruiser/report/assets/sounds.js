"use strict";
// Seed and failing test as sounds on one time axis and one scale: waveforms, spectrograms, and one cursor for both.

const blobs = new Map();
/** What can play at this moment; only one of them does. */
const players = new Set();
/** Decibels below the loudest that a spectrogram shows, and the difference at which a colour is full. */
const [DEPTH, FULL] = [70, 30];
const HEAT = [
  [0, 0, 4],
  [81, 18, 124],
  [183, 55, 121],
  [252, 137, 97],
  [252, 253, 191],
];

/** The bytes of a sound that is inside the page; null of one beside it. */
function soundBytes(name, sounds) {
  const body = sounds[name]?.split(",")[1];
  return body ? Uint8Array.from(atob(body), (char) => char.charCodeAt(0)) : null;
}

/** Where a sound can be played from. */
function soundUrl(test, file, data, sounds) {
  const name = `${test.campaign}/${file}`;
  if (!sounds[name]) return data.links[test.campaign] + file;
  if (!blobs.has(name)) {
    const type = sounds[name].slice(5).split(";")[0];
    blobs.set(name, URL.createObjectURL(new Blob([soundBytes(name, sounds)], { type })));
  }
  return blobs.get(name);
}

function playAlone(audio) {
  for (const other of players) {
    if (!other.isConnected) players.delete(other);
    if (other !== audio) other.pause();
  }
  players.add(audio);
  audio.play().catch(() => {}); // the error event says why
}

/** A button that plays one sound from its beginning, or stops it. */
function playButton(text, url) {
  const audio = element("audio", { preload: "none", src: url });
  const button = element("button", { type: "button", class: "quiet" }, `▶ ${text}`, audio);
  const show = (sign) => () => {
    button.firstChild.textContent = `${sign} ${text}`;
  };
  audio.addEventListener("play", show("■"));
  for (const event of ["pause", "ended", "error"]) audio.addEventListener(event, show("▶"));
  button.addEventListener("click", () => {
    if (!audio.paused) return audio.pause();
    audio.currentTime = 0;
    playAlone(audio);
  });
  return button;
}

/**
 * Both sounds to compare. `moved` are functions that are called with 0 (seed) or 1 (failing test) and the time in
 * seconds whenever the cursor moves; `seek(which, seconds)` moves it.
 */
function soundPair(test, data, sounds) {
  const sides = [
    ["seed", "Seed", "seeds"],
    ["mutant", "Failing test", "mutants"],
  ].map(([which, title, tint]) => soundSide(test, test.input[which], title, tint, data, sounds));
  const heard = sides.filter((side) => side.audio);
  const length = Math.max(...heard.map((side) => side.about.seconds), 0.01);
  const moved = [];
  let current = heard[heard.length - 1];
  const play = element("button", { type: "button", class: "quiet play" }, "Play");
  const loop = element("input", { type: "checkbox" });
  const at = element("input", { type: "range", min: 0, max: length, step: 0.01, value: 0, "aria-label": "Position" });
  const clockText = element("span", { class: "time" });
  const cursor = element("div", { class: "cursor" });
  const rows = element("div", { class: "rows" }, cursor);
  const show = (seconds) => {
    cursor.style.setProperty("--at", seconds / length);
    at.value = seconds;
    clockText.textContent = `${seconds.toFixed(2)} of ${length.toFixed(2)} s`;
    for (const each of moved) each(sides.indexOf(current), seconds);
  };
  const tick = () => {
    if (!rows.isConnected) return current.audio.pause();
    show(current.audio.currentTime);
    if (!current.audio.paused) requestAnimationFrame(tick);
  };
  const choose = (side) => {
    const [was, playing] = [current.audio, !current.audio.paused];
    current = side;
    for (const each of heard) each.button.setAttribute("aria-pressed", String(each === side));
    if (was === side.audio) return;
    was.pause();
    side.audio.currentTime = Math.min(was.currentTime, side.about.seconds);
    if (playing) playAlone(side.audio);
    else show(side.audio.currentTime);
  };
  const seek = (seconds) => {
    current.audio.currentTime = Math.min(Math.max(0, seconds), current.about.seconds);
    show(current.audio.currentTime);
  };
  play.addEventListener("click", () => {
    if (!current.audio.paused) return current.audio.pause();
    if (current.audio.ended) current.audio.currentTime = 0;
    playAlone(current.audio);
  });
  at.addEventListener("input", () => seek(Number(at.value)));
  rows.addEventListener("click", (event) => {
    const box = event.target.closest("canvas")?.getBoundingClientRect();
    if (box) seek(((event.clientX - box.left) / box.width) * length);
  });
  for (const side of heard) {
    side.button.addEventListener("click", () => choose(side));
    side.audio.addEventListener("play", () => {
      play.textContent = "Pause";
      tick();
    });
    side.audio.addEventListener("pause", () => {
      play.textContent = "Play";
    });
    side.audio.addEventListener("ended", () => loop.checked && playAlone(side.audio));
  }
  for (const side of sides) {
    if (side.problem) rows.append(element("p", { class: "problem" }, `${side.title}: ${side.problem}`));
    else {
      const range = side === heard[0] ? element("small", {}, `0 to ${length.toFixed(2)} s`) : null;
      rows.append(element("span", { class: "name" }, side.title, range), side.wave, side.audio, side.status);
    }
  }
  if (!heard.length) return { node: rows, moved, seek: () => {} };
  choose(current);
  clockText.textContent = `0.00 of ${length.toFixed(2)} s`;
  const controls = element(
    "div",
    { class: "tools" },
    play,
    ...heard.map((side) => side.button),
    element("label", { class: "toggle" }, loop, "loop"),
    at,
    clockText,
    ...heard.map((side) => side.save),
  );
  requestAnimationFrame(() => drawSounds(heard, rows, length, test, data, sounds));
  return {
    node: element("div", { class: "sounds" }, controls, rows),
    moved,
    seek: (which, seconds) => {
      if (sides[which].audio) choose(sides[which]);
      seek(seconds);
    },
  };
}

function soundSide(test, about, title, tint, data, sounds) {
  if (about.form !== "sound") return { title, problem: `${about.problem || "this kind of input cannot be shown"}.` };
  const url = soundUrl(test, about.file, data, sounds);
  const audio = element("audio", { preload: "metadata", src: url, "aria-label": title });
  const status = element("p", { class: "problem", role: "status", hidden: true });
  const inside = url.startsWith("blob:");
  audio.addEventListener("error", () => {
    if (audio.currentTime > 0) return audio.load(); // Chromium cannot seek in FLAC files of less than a second
    status.hidden = false;
    status.textContent = inside ? "This browser cannot play the audio." : `The audio file is missing: ${url}`;
  });
  const ending = inside ? sounds[`${test.campaign}/${about.file}`].match(/audio\/(\w+)/)[1].replace("mpeg", "mp3") : "flac";
  return {
    title,
    tint,
    about,
    audio,
    status,
    wave: element("canvas", { class: "wave", role: "img", "aria-label": `Waveform: ${title}, ${about.seconds} s` }),
    button: element("button", { type: "button", class: "quiet" }, title),
    save: element(
      "a",
      { href: url, download: `${title === "Seed" ? "seed-of-" : "test-"}${test.number}.${ending}` },
      `Save ${title.toLowerCase()}`,
    ),
  };
}

/** Waveforms at once from their outlines, then in detail with spectrograms where the sounds can be read. */
async function drawSounds(sides, rows, length, test, data, sounds) {
  for (const side of sides) side.peaks = Uint8Array.from(atob(side.about.outline), (char) => char.charCodeAt(0));
  const paint = () => {
    const loudest = Math.max(0.01, ...sides.flatMap((side) => [...side.peaks])) / 0.95;
    for (const side of sides) drawWave(side, loudest, length);
  };
  paint();
  const files = await Promise.all(sides.map((side) => fileOf(side, test, data, sounds)));
  if (files.some((file) => !file)) {
    return rows.append(element("p", { class: "note" }, "Spectrograms need sounds inside the page: deepcruiser report --embed N."));
  }
  let samples;
  const rate = Math.max(...sides.map((side) => side.about.rate));
  try {
    const context = new OfflineAudioContext(1, 1, rate);
    samples = (await Promise.all(files.map((file) => context.decodeAudioData(file)))).map((read) => read.getChannelData(0));
  } catch {
    return; // the players say so
  }
  if (!rows.isConnected) return;
  sides.forEach((side, i) => {
    side.peaks = peaksOf(samples[i], Math.ceil((side.wave.clientWidth || 600) * (side.about.seconds / length)));
  });
  paint();
  const columns = Math.min(600, rows.clientWidth || 600);
  const powers = samples.map((each) => spectrogram(each, rate, length, columns));
  const top = powers.reduce((most, { values }) => values.reduce((a, b) => Math.max(a, b), most), -Infinity);
  const range = `0 to ${+(rate / 2000).toFixed(1)} kHz`;
  const add = (title, paint) => {
    const canvas = element("canvas", { class: "spectrogram", role: "img", "aria-label": `${title}, ${range}` });
    canvas.width = columns;
    canvas.height = powers[0].bands;
    paintSpectrogram(canvas, paint);
    rows.append(element("span", { class: "name" }, title, element("small", {}, range)), canvas);
  };
  const level = (power, i) => Math.max(0, power.values[i] - top + DEPTH);
  powers.forEach((power, k) => add(`Spectrogram of ${sides[k].title.toLowerCase()}`, (i) => heat(level(power, i) / DEPTH)));
  if (powers.length < 2) return;
  const tints = ["seeds", "mutants"].map((name) => rgb(colour(name)));
  add("Difference: louder in seed (blue), in failing test (orange)", (i) => {
    const difference = level(powers[1], i) - level(powers[0], i);
    return [...tints[difference < 0 ? 0 : 1], 255 * Math.min(1, Math.abs(difference) / FULL)];
  });
}

async function fileOf(side, test, data, sounds) {
  const bytes = soundBytes(`${test.campaign}/${side.about.file}`, sounds);
  if (bytes) return bytes.buffer;
  if (!data.live) return null; // a page from disk must not read other files
  const answer = await fetch(side.audio.src);
  return answer.ok ? answer.arrayBuffer() : null;
}

function peaksOf(samples, count) {
  const peaks = new Float32Array(Math.max(1, count));
  samples.forEach((value, i) => {
    const place = Math.floor((i / samples.length) * peaks.length);
    peaks[place] = Math.max(peaks[place], Math.abs(value) * 255);
  });
  return peaks;
}

function drawWave(side, loudest, length) {
  const [canvas, { peaks }] = [side.wave, side];
  const scale = devicePixelRatio || 1;
  canvas.width = (canvas.clientWidth || 600) * scale;
  canvas.height = (canvas.clientHeight || 56) * scale;
  const context = canvas.getContext("2d");
  const step = (canvas.width * (side.about.seconds / length)) / peaks.length;
  context.fillStyle = colour(side.tint);
  peaks.forEach((peak, i) => {
    const high = Math.max(scale, (peak / loudest) * canvas.height);
    context.fillRect(Math.floor(i * step), (canvas.height - high) / 2, Math.ceil(step), high);
  });
}

/** The power in decibels of bands up to half the rate, at moments evenly spread over `length` seconds. */
function spectrogram(samples, rate, length, columns) {
  const size = 2 ** Math.round(Math.log2(rate * 0.032));
  const bands = size / 2;
  const values = new Float32Array(columns * bands);
  const [real, imaginary] = [new Float32Array(size), new Float32Array(size)];
  for (let column = 0; column < columns; column++) {
    const start = Math.round(((column + 0.5) / columns) * length * rate - size / 2);
    for (let i = 0; i < size; i++) {
      real[i] = (samples[start + i] || 0) * (0.5 - 0.5 * Math.cos((2 * Math.PI * i) / size));
      imaginary[i] = 0;
    }
    fourier(real, imaginary);
    for (let band = 0; band < bands; band++) {
      values[(bands - 1 - band) * columns + column] = 10 * Math.log10(real[band] ** 2 + imaginary[band] ** 2 + 1e-9);
    }
  }
  return { bands, values };
}

/** The Fourier transform in place; the length is a power of two. */
function fourier(real, imaginary) {
  const size = real.length;
  for (let i = 1, j = 0; i < size; i++) {
    let bit = size >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) {
      [real[i], real[j]] = [real[j], real[i]];
      [imaginary[i], imaginary[j]] = [imaginary[j], imaginary[i]];
    }
  }
  for (let width = 2; width <= size; width *= 2) {
    for (let k = 0; k < width / 2; k++) {
      const [cos, sin] = [Math.cos((2 * Math.PI * k) / width), -Math.sin((2 * Math.PI * k) / width)];
      for (let i = k; i < size; i += width) {
        const j = i + width / 2;
        const [a, b] = [real[j] * cos - imaginary[j] * sin, real[j] * sin + imaginary[j] * cos];
        [real[j], imaginary[j]] = [real[i] - a, imaginary[i] - b];
        [real[i], imaginary[i]] = [real[i] + a, imaginary[i] + b];
      }
    }
  }
}

function paintSpectrogram(canvas, paint) {
  const context = canvas.getContext("2d");
  const image = context.createImageData(canvas.width, canvas.height);
  for (let i = 0; i < canvas.width * canvas.height; i++) image.data.set(paint(i), 4 * i);
  context.putImageData(image, 0, 0);
}

/** A colour for a share from 0 to 1. */
function heat(share) {
  const place = Math.min(0.9999, Math.max(0, share)) * (HEAT.length - 1);
  const [low, part] = [Math.floor(place), place % 1];
  return [...HEAT[low].map((value, i) => value + part * (HEAT[low + 1][i] - value)), 255];
}

function rgb(text) {
  return [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
}
