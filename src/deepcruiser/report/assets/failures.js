"use strict";
// The failing tests: a table to sort, filter and page through, with details for each test. The address of the page
// says what is shown: #test-191 for one test, and #failures&q=door&change=Trim for filters.

const PAGE = 25;
const ELSEWHERE = { new: "only here", gone: "only here", both: "in both" };
/** The filters by the names that they have in the address. */
const NOTHING = { q: "", kind: "", change: "", where: "", finding: "", cell: "" };
const table = { sort: "score", down: true, page: 0, once: true, open: new Set(), filters: { ...NOTHING } };

function drawFailures(data, sounds) {
  const lead = document.getElementById("failures-lead");
  const total = data.campaigns.reduce((sum, campaign) => sum + campaign.failing_tests, 0);
  const place = document.getElementById("failures-table");
  if (!total) {
    lead.textContent = "No failing tests.";
    for (const part of ["table", "tools", "pager"]) document.getElementById(`failures-${part}`).replaceChildren();
    return;
  }
  const folders = data.campaigns.map((campaign) => `${campaign.folder}/failed`).join(", ");
  lead.textContent =
    "The system gets these inputs wrong although the changes keep their meaning. " +
    (data.failures.some((test) => test.input.form === "sound")
      ? "Listen to them and replay them."
      : "Look at them and replay them.") +
    (data.failures.length < total
      ? ` The page holds the worst ${number.format(data.failures.length)} of ${number.format(total)}; all are in ${folders}.`
      : "");
  const tools = document.getElementById("failures-tools");
  const first = !table.data;
  if (first) readAddress(data);
  if (first && !data.live && !table.open.size && data.failures.length) table.open.add(idOf(selected(data)[0] || data.failures[0]));
  if (!tools.childElementCount || table.data !== data) filters(data, sounds, tools);
  table.data = data;
  table.draw = () => drawFailures(data, sounds);
  const matches = selected(data);
  const pages = Math.max(1, Math.ceil(matches.length / PAGE));
  table.page = Math.min(table.page, pages - 1);
  const rows = matches.slice(table.page * PAGE, (table.page + 1) * PAGE).map((test) => oneTest(test, data, sounds));
  place.replaceChildren(
    element(
      "table",
      { class: "tests" },
      element("caption", { class: "hidden" }, "Failing tests"),
      head(data),
      element("tbody", {}, ...rows),
    ),
  );
  const shown = matches.length
    ? `${number.format(table.page * PAGE + 1)}–${number.format(Math.min(matches.length, (table.page + 1) * PAGE))} of ${number.format(matches.length)}`
    : "no matches";
  const turn = (by) => () => {
    table.page += by;
    table.draw();
    document.getElementById("failures").scrollIntoView();
  };
  const button = (text, disabled, onclick) =>
    element("button", { type: "button", class: "quiet", disabled, onclick }, text);
  document
    .getElementById("failures-pager")
    .replaceChildren(
      button("← Previous", table.page === 0, turn(-1)),
      element("span", { role: "status" }, shown),
      button("Next →", table.page >= pages - 1, turn(1)),
      button("Save as CSV", !matches.length, () => saveCsv(data)),
    );
}

/** Makes the address say what is shown; the browser's history stays as it is. */
function writeAddress(place = "failures") {
  const set = Object.entries(table.filters).filter(([, value]) => value);
  const query = set.length ? `&${new URLSearchParams(set)}` : "";
  history.replaceState(null, "", `#${place}${query}`);
}

/** Takes filters and the test to open from the address; whether it is for this table. */
function readAddress(data) {
  const [place, ...query] = location.hash.slice(1).split("&");
  const test = data.failures.find((each) => idOf(each) === place);
  if (place !== "failures" && !test) return false;
  const wanted = Object.fromEntries(new URLSearchParams(query.join("&")));
  for (const name of Object.keys(NOTHING)) table.filters[name] = wanted[name] || "";
  if (!test) return true;
  if (test.again) table.once = false;
  if (!selected(data).includes(test)) Object.assign(table.filters, NOTHING);
  table.open.clear();
  table.open.add(idOf(test));
  table.page = Math.floor(selected(data).indexOf(test) / PAGE);
  return true;
}

function setFilter(name, value) {
  table.filters[name] = value;
  table.page = 0;
  table.draw();
  writeAddress();
}

function filters(data, sounds, tools) {
  const of = (values) => [...new Set(values)].sort();
  const options = (all, values) => [["", all], ...values.map((value) => [value, value])];
  const list = (label, name, choices) => tools.append(choice(label, choices, table.filters[name], (value) => setFilter(name, value)));
  let waiting;
  const search = element("input", {
    type: "search",
    placeholder: "Search texts, seeds, recipes",
    "aria-label": "Search the failing tests",
    value: table.filters.q,
    oninput: () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => setFilter("q", search.value), 120);
    },
  });
  tools.replaceChildren(search);
  const kinds = of(data.failures.map((test) => test.kind));
  if (kinds.length > 1) list("Kind of failure", "kind", options("all kinds", kinds));
  list("Transformation", "change", options("all transformations", of(data.failures.flatMap((test) => test.kinds))));
  const findings = (data.findings || []).map((each) => [each.id, each.title.slice(0, 70)]);
  if (findings.length > 1) list("Finding", "finding", [["", "all findings"], ...findings]);
  if (data.campaigns.length > 1) {
    const [one, ...others] = data.campaigns.map((campaign) => campaign.name);
    list("Found in", "where", [
      ["", "all campaigns"],
      ["new", `only in ${others.join(", ")}`],
      ["both", "in both"],
      ["gone", `only in ${one}`],
    ]);
  }
  const change = (checked) => {
    table.once = checked;
    table.draw();
  };
  if (data.failures.some((test) => test.again)) {
    const box = element("input", { type: "checkbox", checked: table.once, onchange: () => change(box.checked) });
    tools.append(element("label", { class: "toggle" }, box, "show each input once"));
  }
  if (table.filters.cell) {
    const drop = () => {
      setFilter("cell", "");
      filters(data, sounds, tools);
    };
    const { count, numbers, text } = testsThrough(data, table.filters.cell);
    const some = count > numbers.length ? `the worst ${numbers.length} of ${number.format(count)} ` : "";
    tools.append(element("button", { type: "button", class: "quiet", onclick: drop }, `${some}through ${text} ✕`));
  }
}

function selected(data) {
  const wanted = table.filters;
  const words = wanted.q.toLowerCase().split(/\s+/).filter(Boolean);
  const finding = (data.findings || []).find((each) => each.id === wanted.finding);
  const through = wanted.cell && testsThrough(data, wanted.cell);
  const matches = data.failures.filter((test) => {
    if (table.once && !through && test.again) return false;
    if (wanted.kind && test.kind !== wanted.kind) return false;
    if (wanted.change && !test.kinds.includes(wanted.change)) return false;
    if (wanted.where && test.elsewhere !== wanted.where) return false;
    if (finding && !(test.campaign === finding.campaign && finding.tests.includes(test.number))) return false;
    if (through && !(test.campaign === through.campaign && through.numbers.includes(test.number))) return false;
    test.words ??= [
      test.number,
      test.seed,
      ...[test.reference, test.output, test.seed_output].map(plain),
      ...test.recipe,
      textOf(test) || "",
    ]
      .join(" ")
      .toLowerCase();
    return words.every((word) => test.words.includes(word));
  });
  const key = {
    number: (test) => test.number,
    score: (test) => test.score,
    seed: (test) => test.seed,
    what: (test) => plain(test.reference),
  }[table.sort];
  const way = table.down ? -1 : 1;
  return matches
    .map((test, i) => [key(test), i, test])
    .sort((a, b) => (a[0] < b[0] ? -way : a[0] > b[0] ? way : a[1] - b[1]))
    .map((each) => each[2]);
}

function plain(value) {
  if (typeof value === "string") return value;
  return JSON.stringify(value, (_, part) => (typeof part === "number" ? Number(part.toPrecision(6)) : part));
}

/** The input of a failing test, if it is a text. */
function textOf(test) {
  if (test.input.form !== "text") return null;
  return test.input.pieces ? test.input.pieces.map((piece) => piece[1]).join("") : test.input.mutant.text;
}

/** The tests that the filters leave, as a file for a spreadsheet. */
function saveCsv(data) {
  const heads = ["test", "campaign", "kind", "score", "seed", "recipe", "expected", "unchanged seed", "got", "input"];
  const rows = selected(data).map((test) => [
    test.number,
    data.campaigns[test.campaign].name,
    test.kind,
    test.score,
    test.seed,
    test.recipe.join(" -> "),
    plain(test.reference),
    plain(test.seed_output),
    plain(test.output),
    textOf(test) ?? test.input.mutant?.file ?? "",
  ]);
  // A spreadsheet must not take a text for a formula.
  const safe = (value) => (typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value));
  const lines = [heads, ...rows].map((row) => row.map((value) => `"${safe(value).replaceAll('"', '""')}"`).join(","));
  const link = element("a", {
    href: URL.createObjectURL(new Blob([`${lines.join("\r\n")}\r\n`], { type: "text/csv" })),
    download: "failing-tests.csv",
  });
  link.click();
  URL.revokeObjectURL(link.href);
}

function head(data) {
  const column = (name, text, more = {}) => {
    const sorted = table.sort === name;
    const arrow = sorted ? (table.down ? " ↓" : " ↑") : "";
    const onclick = () => {
      table.down = sorted ? !table.down : name === "score";
      table.sort = name;
      table.draw();
      document.querySelector(`.sortable [aria-sort] button`)?.focus();
    };
    return element(
      "th",
      { scope: "col", "aria-sort": sorted ? (table.down ? "descending" : "ascending") : null, ...more },
      element("button", { type: "button", onclick }, text + arrow),
    );
  };
  return element(
    "thead",
    { class: "sortable" },
    element(
      "tr",
      {},
      column("number", "Run"),
      column("score", data.campaigns[0].measure || "Kind"),
      column("what", "Expected → got"),
      data.campaigns.length > 1 ? element("th", { scope: "col", class: "where" }, "Campaign") : null,
      column("seed", "Seed and recipe", { class: "seed" }),
      element("th", { scope: "col", class: "more" }, element("span", { class: "hidden" }, "Details")),
    ),
  );
}

function isPlaying() {
  return [...document.querySelectorAll("audio")].some((audio) => !audio.paused);
}

function followAddress() {
  if (!table.data || !readAddress(table.data)) return;
  document.getElementById("failures-tools").replaceChildren();
  table.draw();
  document.getElementById(location.hash.slice(1).split("&")[0])?.scrollIntoView();
}

addEventListener("hashchange", followAddress);
registerSection("failures", drawFailures, {
  inUse: () => Boolean(document.activeElement?.closest("#failures")) || isPlaying(),
  chart: false,
});
