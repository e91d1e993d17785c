"use strict";
// The failing tests: a table to sort, filter and page through, with details for each test.

const PAGE = 25;
const table = {
  sort: "score",
  down: true,
  page: 0,
  query: "",
  kind: "",
  change: "",
  where: "",
  once: true,
  open: new Set(),
};

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
  if (!tools.childElementCount || table.data !== data) filters(data, sounds, tools);
  if (!table.data && !data.live && data.failures.length) table.open.add(idOf(selected(data)[0]));
  table.data = data;
  const matches = selected(data);
  const pages = Math.max(1, Math.ceil(matches.length / PAGE));
  table.page = Math.min(table.page, pages - 1);
  forgetWaves();
  const again = () => drawFailures(data, sounds);
  const rows = matches.slice(table.page * PAGE, (table.page + 1) * PAGE).flatMap((test) => oneTest(test, data, sounds));
  place.replaceChildren(
    element(
      "table",
      { class: "tests" },
      element("caption", { class: "hidden" }, "Failing tests"),
      head(data, again),
      element("tbody", {}, ...rows),
    ),
  );
  const shown = matches.length
    ? `${number.format(table.page * PAGE + 1)}–${number.format(Math.min(matches.length, (table.page + 1) * PAGE))} of ${number.format(matches.length)}`
    : "no matches";
  const turn = (by) => {
    table.page += by;
    again();
    document.getElementById("failures").scrollIntoView();
  };
  document
    .getElementById("failures-pager")
    .replaceChildren(
      element(
        "button",
        { type: "button", class: "quiet", disabled: table.page === 0, onclick: () => turn(-1) },
        "← Previous",
      ),
      element("span", { role: "status" }, shown),
      element(
        "button",
        { type: "button", class: "quiet", disabled: table.page >= pages - 1, onclick: () => turn(1) },
        "Next →",
      ),
    );
}

function filters(data, sounds, tools) {
  const again = () => {
    table.page = 0;
    drawFailures(data, sounds);
  };
  const of = (values) => [...new Set(values)].sort();
  const set = (name) => (value) => {
    table[name] = value;
    again();
  };
  let waiting;
  const search = element("input", {
    type: "search",
    placeholder: "Search texts, seeds, recipes",
    "aria-label": "Search the failing tests",
    value: table.query,
    oninput: () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => set("query")(search.value), 120);
    },
  });
  const kinds = of(data.failures.map((test) => test.kind));
  const changes = of(data.failures.flatMap((test) => test.kinds));
  tools.replaceChildren(search);
  if (kinds.length > 1)
    tools.append(
      choice("Kind of failure", [["", "all kinds"], ...kinds.map((kind) => [kind, kind])], table.kind, set("kind")),
    );
  tools.append(
    choice(
      "Transformation",
      [["", "all transformations"], ...changes.map((name) => [name, name])],
      table.change,
      set("change"),
    ),
  );
  if (data.campaigns.length > 1) {
    const [first, ...others] = data.campaigns.map((campaign) => campaign.name);
    const options = [
      ["", "all campaigns"],
      ["new", `only in ${first}`],
      ["both", "in both"],
      ["gone", `only in ${others.join(", ")}`],
    ];
    tools.append(choice("Found in", options, table.where, set("where")));
  }
  if (data.failures.some((test) => test.again)) {
    const box = element("input", { type: "checkbox", checked: table.once, onchange: () => set("once")(box.checked) });
    tools.append(element("label", { class: "toggle" }, box, "show each input once"));
  }
}

function selected(data) {
  const words = table.query.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = data.failures.filter((test) => {
    if (table.once && test.again) return false;
    if (table.kind && test.kind !== table.kind) return false;
    if (table.change && !test.kinds.includes(table.change)) return false;
    if (table.where && test.elsewhere !== table.where) return false;
    test.text ??= [
      test.number,
      test.seed,
      ...[test.reference, test.output, test.seed_output].map(plain),
      ...test.recipe,
      textOf(test) || "",
    ]
      .join(" ")
      .toLowerCase();
    return words.every((word) => test.text.includes(word));
  });
  const key = {
    number: (test) => test.number,
    score: (test) => test.score,
    seed: (test) => test.seed,
    what: (test) => plain(test.reference),
    steps: (test) => test.recipe.length,
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

function head(data, again) {
  const measure = data.campaigns[0].measure;
  const column = (name, text, more = {}) => {
    const sorted = table.sort === name;
    const arrow = sorted ? (table.down ? " ↓" : " ↑") : "";
    return element(
      "th",
      { scope: "col", "aria-sort": sorted ? (table.down ? "descending" : "ascending") : null, ...more },
      element(
        "button",
        {
          type: "button",
          onclick: () => {
            table.down = sorted ? !table.down : name === "score";
            table.sort = name;
            again();
            document.querySelector(`.sortable [aria-sort] button`)?.focus();
          },
        },
        text + arrow,
      ),
    );
  };
  return element(
    "thead",
    { class: "sortable" },
    element(
      "tr",
      {},
      column("number", "Run"),
      column("score", measure || "Kind"),
      column("what", "Expected → got"),
      data.campaigns.length > 1 ? element("th", { scope: "col", class: "where" }, "Campaign") : null,
      column("seed", "Seed", { class: "seed" }),
      element("th", { scope: "col", class: "more" }, element("span", { class: "hidden" }, "Details")),
    ),
  );
}

registerSection("failures", drawFailures, {
  inUse: () =>
    Boolean(document.activeElement?.closest("#failures")) ||
    [...document.querySelectorAll("audio")].some((audio) => !audio.paused),
  chart: false,
});
