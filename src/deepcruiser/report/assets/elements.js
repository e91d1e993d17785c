"use strict";
// What the scripts of the sections share. Data become text nodes only: no script here sets HTML from data.

/** The sections that scripts draw, by name. */
const drawnSections = new Map();

/**
 * Adds a section that `draw(data, sounds)` draws. A live page does not draw it again while it is `inUse()`;
 * a `chart` is drawn again in light colours for paper.
 */
function registerSection(name, draw, options = {}) {
  const hovered = () => Boolean(document.querySelector(`#${name} .chart:hover`));
  drawnSections.set(name, { draw, inUse: hovered, chart: true, ...options });
}

/** An element with attributes, listeners (on...) and children, which are elements or texts. */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value != null) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child != null));
  return made;
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function share(value) {
  if (value == null) return "–";
  return (value * 100).toFixed(value >= 0.0995 || value === 0 ? 1 : 2) + "%";
}

function capitalised(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function clock(seconds) {
  const whole = Math.floor(seconds);
  const two = (number) => String(number).padStart(2, "0");
  return `${Math.floor(whole / 3600)}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
}

/** The colours of the lines in charts. */
const LINES = ["#1f77b4", "#e8590c", "#2b8a3e", "#9c36b5", "#b08900", "#0b7285", "#5f6b76", "#c2255c"];

const number = new Intl.NumberFormat("en");

/** A labelled list to choose from; `options` are pairs of a value and a text. */
function choice(label, options, chosen, change) {
  const list = element(
    "select",
    { "aria-label": label, onchange: () => change(list.value) },
    ...options.map(([value, text]) => element("option", { value, selected: String(value) === String(chosen) }, text)),
  );
  return list;
}

/** A check box with a patch of its colour. */
function toggle(text, look, checked, change) {
  const box = element("input", { type: "checkbox", checked, onchange: () => change(box.checked) });
  const patch = element("i", { class: look.line ? "line" : "" });
  patch.style.background = look.fill;
  patch.style.borderColor = look.edge || "transparent";
  return element("label", { class: "toggle" }, box, patch, text);
}

/** A command in a box; page.js makes the button copy it. */
function commandBox(text) {
  const button = element("button", { type: "button", class: "copy quiet" }, "Copy");
  return element("div", { class: "command" }, element("code", {}, text), button);
}

async function copy(button, text) {
  let done = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = element("textarea", { readonly: true }, text);
    document.body.append(area);
    area.select();
    done = document.execCommand("copy"); // some browsers have no clipboard for pages from disk
    area.remove();
  }
  button.textContent = done ? "Copied" : "Select and copy";
  setTimeout(() => {
    button.textContent = "Copy";
  }, 1500);
}

/** Distances of the marks on axes that count. */
const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000];

/** The looks that all charts share. */
function axis(label, more = {}) {
  return {
    label,
    labelSize: 20,
    labelGap: 0,
    labelFont: "12px system-ui, sans-serif",
    font: "12px system-ui, sans-serif",
    stroke: colour("soft"),
    grid: { stroke: colour("line"), width: 1 },
    ticks: { stroke: colour("line"), width: 1, size: 4 },
    ...more,
  };
}

/** Keeps a chart as wide as its place. */
function fit(chart, place, height) {
  const watcher = new ResizeObserver(() => {
    const width = widthOf(place);
    if (!document.contains(chart.root)) watcher.disconnect();
    else if (width > 0 && width !== chart.width) chart.setSize({ width, height: height(width) });
  });
  watcher.observe(place);
}

function widthOf(place) {
  const look = getComputedStyle(place);
  return Math.floor(place.clientWidth - parseFloat(look.paddingLeft) - parseFloat(look.paddingRight));
}
