"use strict";
// A failing test: its row in the table, and the details that open below it.

function idOf(test) {
  return test.campaign ? `test-${test.campaign}-${test.number}` : `test-${test.number}`;
}

/** What was expected and what came, in one line. */
function differenceOf(test) {
  if (test.pieces) return marked(test.pieces, " ");
  if (test.kind !== "wrong") return [plain(test.output)];
  return [element("del", {}, plain(test.reference)), " ", element("ins", {}, plain(test.output))];
}

function oneTest(test, data, sounds) {
  const campaign = data.campaigns[test.campaign];
  const id = idOf(test);
  const button = element(
    "button",
    { type: "button", class: "quiet", "aria-expanded": "false", "aria-controls": `${id}-details` },
    "Details",
  );
  const row = element(
    "tr",
    { class: "row", id },
    element("td", {}, number.format(test.number)),
    element("td", {}, campaign.measure && test.kind === "wrong" ? `${Math.round(test.score * 100)}%` : test.kind),
    element(
      "td",
      { class: "what" },
      textOf(test) == null ? null : element("div", { class: "clamp input" }, textOf(test)),
      element("div", { class: "clamp" }, ...differenceOf(test)),
    ),
    data.campaigns.length > 1
      ? element("td", { class: "where" }, campaign.name, element("span", { class: "mark" }, ELSEWHERE[test.elsewhere]))
      : null,
    element(
      "td",
      { class: "seed" },
      element("span", { class: "seedname" }, test.seed),
      element("div", { class: "steps" }, test.kinds.join(" → ")),
    ),
    element("td", { class: "more" }, button),
  );
  const columns = row.childElementCount;
  let detail = null;
  const set = (open) => {
    row.classList.toggle("open", open);
    button.setAttribute("aria-expanded", String(open));
    button.textContent = open ? "Close" : "Details";
    table.open[open ? "add" : "delete"](id);
    if (open && !detail) {
      const cell = element("td", { colspan: columns }, details(test, data, sounds));
      detail = element("tr", { class: "detail", id: `${id}-details` }, cell);
      row.after(detail);
    } else if (!open && detail) {
      for (const audio of detail.querySelectorAll("audio")) audio.pause();
      detail.remove();
      detail = null;
    }
  };
  row.addEventListener("click", (event) => {
    if (event.target !== button && String(getSelection())) return;
    set(!detail);
    writeAddress(detail ? id : "failures");
  });
  if (table.open.has(id)) queueMicrotask(() => row.isConnected && set(true));
  return row;
}

/** One of the two texts, expected (0) or got (1), with the differences marked. */
function oneSide(test, side) {
  const text = plain(side ? test.output : test.reference);
  if (!text) return ["(empty)"];
  if (!test.pieces) return [text];
  const parts = test.pieces.filter((piece) => piece[side]);
  return parts.flatMap((piece, i) => [
    i ? " " : "",
    piece[0] === piece[1] ? piece[side] : element(side ? "ins" : "del", { class: "plain" }, piece[side]),
  ]);
}

function details(test, data, sounds) {
  const campaign = data.campaigns[test.campaign];
  const part = (title, ...content) =>
    element("div", {}, element("h4", {}, title), element("p", { class: "answer" }, ...content));
  const wrong = test.kind === "wrong";
  const got = wrong ? "Got" + (campaign.measure ? `, ${campaign.measure} ${Math.round(test.score * 100)}%` : "") : test.kind;
  const input = showInput(test, data, sounds);
  return element(
    "div",
    {},
    element(
      "div",
      { class: "pair" },
      wrong ? part("Expected", ...oneSide(test, 0)) : null,
      part("Answer to the unchanged seed", plain(test.seed_output) || "(empty)"),
      part(got, ...(wrong ? oneSide(test, 1) : [plain(test.output)])),
    ),
    input.node,
    showTrace(test, data, input.pair),
    element("h4", {}, `Recipe: changes to the seed ${test.seed}, in order`),
    element("ol", { class: "recipe" }, ...test.recipe.map((step) => element("li", {}, element("code", {}, step)))),
    ...(test.replay ? [element("h4", {}, "Replay it"), commandBox(test.replay)] : []),
    element("h4", {}, "In Python"),
    commandBox(pythonCode(test, campaign)),
  );
}

/** Code that reads the failing input, and runs the system on it where the campaign's folder says which that is. */
function pythonCode(test, campaign) {
  const text = JSON.stringify;
  const { form, mutant } = test.input;
  const read = {
    sound: () => `dc.Audio.read(${text(`${campaign.folder}/${mutant.file}`)})`,
    text: () => "test.text",
    series: () => `np.load(${text(`${campaign.folder}/${mutant.file}`)})`,
  }[form];
  const runs = read && campaign.system;
  const lines = [
    form === "series" ? "import numpy as np\n" : null,
    "import deepcruiser as dc",
    "",
    `test = dc.CampaignRecord.open(${text(campaign.folder)})[${test.number}]`,
    "print(test)",
    read ? `value = ${read()}` : null,
    runs ? `print(dc.load_system(${text(campaign.system)}).run([value])[0].output)` : null,
    read && !runs ? "# with your system: print(system.run([value])[0].output)" : null,
  ];
  return lines.filter((line) => line !== null).join("\n");
}
