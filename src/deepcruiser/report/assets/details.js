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
    element("td", { class: "what" }, element("div", { class: "clamp" }, ...difference)),
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
  parts.push(showInput(test, data, sounds));
  parts.push(
    element("h4", {}, `Recipe: changes to the seed ${test.seed}, in order`),
    element("ol", { class: "recipe" }, ...test.recipe.map((step) => element("li", {}, element("code", {}, step)))),
  );
  if (test.replay) parts.push(element("h4", {}, "Replay it"), commandBox(test.replay));
  return element("div", {}, ...parts);
}
