"use strict";
// The findings as cards: what goes wrong, how often, and the worst example to see and to hear.

const CARDS = 6;
const findingsView = { all: false };

function drawFindings(data, sounds) {
  const tests = new Map(data.failures.map((test) => [`${test.campaign} ${test.number}`, test]));
  const linked = data.findings.findIndex((finding) => location.hash === `#finding-${finding.id}`);
  findingsView.all ||= linked >= CARDS;
  findingsView.draw = () => drawFindings(data, sounds);
  const shown = findingsView.all ? data.findings : data.findings.slice(0, CARDS);
  const cards = shown.map((finding) => findingCard(finding, tests, data, sounds));
  document.getElementById("findings-cards").replaceChildren(...cards);
  const more = element(
    "button",
    {
      type: "button",
      class: "quiet",
      onclick: () => {
        findingsView.all = true;
        findingsView.draw();
      },
    },
    `Show all ${number.format(data.findings.length)}`,
  );
  document.getElementById("findings-pager").replaceChildren(...(shown.length < data.findings.length ? [more] : []));
}

function findingCard(finding, tests, data, sounds) {
  const campaign = data.campaigns[finding.campaign];
  const test = tests.get(`${finding.campaign} ${finding.tests[0]}`);
  const count = finding.tests.length;
  const facts = [
    `Severity ${finding.mildest.toPrecision(2)}`,
    `${number.format(finding.seeds)} seed${finding.seeds === 1 ? "" : "s"}`,
    data.campaigns.length > 1 ? campaign.name : null,
  ].filter(Boolean);
  const words = Object.entries(finding.counts.words); // those with + were answered though nobody said them
  const counts = [
    ["Transformations", Object.entries(finding.counts.transformations)],
    ["Labels", Object.entries(finding.counts.labels ?? {})],
    ["Words wrong", words.filter(([word]) => !word.startsWith("+"))],
    ["Words added", words.filter(([word]) => word.startsWith("+")).map(([word, times]) => [word.slice(1), times])],
  ]
    .filter(([, some]) => some.length > 1)
    .map(([what, some]) => {
      const most = some.slice(0, 6);
      return element("p", { class: "names" }, `${what}: ${most.map(([name, times]) => `${name} ${times}`).join(", ")}`);
    });
  const parts = [
    element("h3", {}, element("a", { href: `#finding-${finding.id}` }, capitalised(finding.title))),
    element("p", { class: "facts" }, facts.join(" · ")),
    element("p", { class: "names" }, finding.explanation),
  ];
  if (test) parts.push(...example(test, data, sounds));
  if (finding.shrunk) parts.push(element("p", { class: "names" }, `Mildest: ${finding.shrunk.join(" → ")}`));
  const link = element("a", { href: `#failures&finding=${finding.id}` }, count === 1 ? "The failing test" : `All ${number.format(count)} failing tests`);
  return element("article", { id: `finding-${finding.id}` }, ...parts, ...counts, link);
}

/** The worst test of a finding in short. */
function example(test, data, sounds) {
  const parts = [];
  const text = textOf(test);
  if (text != null) parts.push(element("p", { class: "clamp input" }, text));
  parts.push(element("p", { class: "answer clamp" }, ...differenceOf(test)));
  const buttons = ["mutant", "seed"]
    .filter((which) => test.input[which]?.form === "sound")
    .map((which) =>
      playButton(which === "seed" ? "Seed" : "Failing test", soundUrl(test, test.input[which].file, data, sounds)),
    );
  const worst = element("a", { href: `#${idOf(test)}` }, `Worst: test ${number.format(test.number)}`);
  parts.push(element("div", { class: "tools" }, ...buttons, worst));
  return parts;
}

addEventListener("hashchange", () => {
  const place = location.hash.slice(1);
  if (!place.startsWith("finding-") || !findingsView.draw) return;
  if (!document.getElementById(place)) findingsView.draw();
  document.getElementById(place)?.scrollIntoView();
});
registerSection("findings", drawFindings, {
  inUse: () => Boolean(document.activeElement?.closest("#findings")) || isPlaying(),
  chart: false,
});
