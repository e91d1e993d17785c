"use strict";
// A failing test: its row in the table, and the details that open below it.

function idOf(test) {
  return `test-${test.campaign}-${test.number}`;
}

function oneTest(test, data, sounds) {
  const campaign = data.campaigns[test.campaign];
  const id = idOf(test);
  const difference = test.pieces
    ? marked(test.pieces, " ")
    : test.kind === "wrong"
      ? [element("del", {}, plain(test.reference)), " ", element("ins", {}, plain(test.output))]
      : [plain(test.output)];
  const button = element(
    "button",
    { type: "button", class: "quiet", "aria-expanded": "false", "aria-controls": id },
    "Details",
  );
  const row = element(
    "tr",
    { class: "row" },
    element("td", {}, number.format(test.number)),
    element("td", {}, campaign.measure && test.kind === "wrong" ? `${Math.round(test.score * 100)}%` : test.kind),
    element(
      "td",
      { class: "what" },
      textOf(test) == null ? null : element("div", { class: "clamp input" }, textOf(test)),
      element("div", { class: "clamp" }, ...difference),
    ),
    data.campaigns.length > 1
      ? element(
          "td",
          {},
          campaign.name,
          element("span", { class: "mark" }, { new: "only here", gone: "only here", both: "in both" }[test.elsewhere]),
        )
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
      detail = element("tr", { class: "detail", id }, element("td", { colspan: columns }, details(test, data, sounds)));
      row.after(detail);
    } else if (!open && detail) {
      for (const audio of detail.querySelectorAll("audio")) audio.pause();
      detail.remove();
      detail = null;
    }
  };
  row.addEventListener("click", (event) => {
    if (event.target === button || !String(getSelection())) set(!detail);
  });
  if (table.open.has(id)) queueMicrotask(() => row.isConnected && set(true));
  return [row];
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

/** Code that reads the failing input, and runs the system on it where the campaign's folder says which that is. */
function pythonCode(test, campaign) {
  const text = JSON.stringify;
  const read = {
    sound: () => `dc.Audio.read(${text(`${campaign.folder}/${test.input.mutant.file}`)})`,
    text: () => "test.text",
    series: () => `np.load(${text(`${campaign.folder}/${test.input.mutant.file}`)})`,
  }[test.input.form];
  const runs = read && campaign.system;
  const lines = [
    test.input.form === "series" ? "import numpy as np\n" : null,
    "import deepcruiser as dc",
    runs ? "from deepcruiser.cli.resolve import system_from" : null,
    "",
    `test = dc.CampaignRecord.open(${text(campaign.folder)})[${test.number}]`,
    "print(test)",
    read ? `value = ${read()}` : null,
    runs ? `print(system_from(${text(campaign.system)}).run([value])[0].output)` : null,
    read && !runs ? "# with your system: print(system.run([value])[0].output)" : null,
  ];
  return lines.filter((line) => line !== null).join("\n");
}

function details(test, data, sounds) {
  const campaign = data.campaigns[test.campaign];
  const parts = [];
  if (test.kind === "wrong") {
    parts.push(
      element(
        "div",
        { class: "pair" },
        element("div", {}, element("h4", {}, "Expected"), element("p", { class: "answer" }, ...oneSide(test, 0))),
        element(
          "div",
          {},
          element("h4", {}, "Got" + (campaign.measure ? `, ${campaign.measure} ${Math.round(test.score * 100)}%` : "")),
          element("p", { class: "answer" }, ...oneSide(test, 1)),
        ),
      ),
    );
  } else {
    parts.push(element("h4", {}, test.kind), element("p", { class: "answer raw" }, plain(test.output)));
  }
  parts.push(
    element("h4", {}, "Answer to the unchanged seed"),
    element("p", { class: "answer" }, plain(test.seed_output) || "(empty)"),
    showInput(test, data, sounds),
  );
  parts.push(
    element("h4", {}, `Recipe: changes to the seed ${test.seed}, in order`),
    element("ol", { class: "recipe" }, ...test.recipe.map((step) => element("li", {}, element("code", {}, step)))),
  );
  if (test.replay) parts.push(element("h4", {}, "Replay it"), commandBox(test.replay));
  parts.push(element("h4", {}, "In Python"), commandBox(pythonCode(test, campaign)));
  return element("div", {}, ...parts);
}
