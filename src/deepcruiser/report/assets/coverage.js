"use strict";
// Coverage over runs, a line per criterion or per campaign, and beside it the failing tests.

const coverageView = { over: "runs", criterion: null, hidden: new Set() };

function drawCoverage(data) {
  const campaigns = data.campaigns;
  const names = [...new Set(data.coverage.flatMap((course) => course.criteria))];
  const several = campaigns.length > 1;
  if (!names.includes(coverageView.criterion)) {
    const guide = campaigns[0].coverage.find((each) => each.queue != null);
    coverageView.criterion = guide ? guide.name : names[0];
  }
  const lines = campaigns.flatMap((campaign, i) =>
    data.coverage[i].criteria.flatMap((name, k) => {
      if (several && name !== coverageView.criterion) return [];
      return {
        label: several ? campaign.name : name,
        colour: LINES[(several ? i : names.indexOf(name)) % LINES.length],
        points: pointsOf(data.coverage[i], (row) => row.values[k]),
        dash: several && i > 0,
        wide: campaign.coverage.some((each) => each.name === name && each.queue != null),
      };
    }),
  );
  const failing = campaigns.map((campaign, i) => ({
    label: several ? campaign.name : "failing tests",
    colour: several ? LINES[i % LINES.length] : colour("failing"),
    points: pointsOf(data.coverage[i], (row) => row.failed),
    dash: several && i > 0,
  }));
  coverageTools(data, names, lines, several);
  const place = document.getElementById("coverage-chart");
  place.replaceChildren();
  place.classList.toggle("empty", !names.length);
  if (names.length) {
    courseChart(place, lines, "coverage", share, (y) => `${+(y * 100).toFixed(2)}%`);
  } else {
    place.append(
      data.campaigns.some((campaign) => campaign.model_fingerprint)
        ? "The coverage of this campaign cannot be shown without its model."
        : "This campaign has no abstract model, so there is no coverage to show.",
    );
  }
  const beside = document.getElementById("failing-chart");
  beside.replaceChildren();
  courseChart(beside, failing, "failing tests", (y) => number.format(y), (y) => (y % 1 ? "" : number.format(y)));
  document.getElementById("coverage-note").textContent =
    several && names.length ? `${coverageView.criterion}: ${endsOf(lines, share)}.` : "";
}

function pointsOf(course, value) {
  return course.moments.map((row) => [row[coverageView.over], value(row)]);
}

function endsOf(lines, text) {
  return lines
    .filter((line) => line.points.length)
    .map(({ label, points }) => `${label} from ${text(points[0][1])} to ${text(points[points.length - 1][1])}`)
    .join("; ");
}

/** Lines over runs or time; the values run from the least to the greatest of those that are shown. */
function courseChart(place, lines, what, text, tick) {
  const at = [...new Set(lines.flatMap((line) => line.points.map((point) => point[0])))].sort((a, b) => a - b);
  const columns = lines.map((line) => {
    const known = new Map(line.points);
    const last = line.points.length ? line.points[line.points.length - 1][0] : -Infinity;
    let value = null;
    return at.map((x) => {
      value = known.has(x) ? known.get(x) : value;
      return x > last ? null : value;
    });
  });
  const height = (width) => (width < 500 ? 240 : 320);
  const form = coverageView.over === "runs" ? (x) => number.format(x) : clock;
  const tip = element("div", { class: "tip", hidden: true });
  const range = (u, low, high) => {
    const room = Math.max(0.05 * ((high ?? 0) - (low ?? 0)), 0.005);
    return [Math.max(0, (low ?? 0) - room), (high ?? 1) + room];
  };
  const chart = new uPlot(
    {
      width: widthOf(place) || 600,
      height: height(widthOf(place)),
      legend: { show: false },
      scales: { x: { time: false }, y: { range } },
      axes: [
        axis(coverageView.over, { values: (u, ticks) => ticks.map(form), space: 70, size: 30 }),
        axis(what, { values: (u, ticks) => ticks.map(tick), size: 60 }),
      ],
      cursor: { drag: { x: true, y: false }, points: { size: 7 } },
      series: [
        {},
        ...lines.map((line) => ({
          label: line.label,
          stroke: line.colour,
          width: line.wide ? 2.5 : 1.5,
          dash: line.dash ? [6, 4] : undefined,
          show: !coverageView.hidden.has(line.label),
          points: { show: at.length < 3 },
        })),
      ],
      hooks: { setCursor: [(u) => coverageTip(u, tip, lines, form, text)] },
    },
    [at, ...columns],
    place,
  );
  chart.over.append(tip);
  fit(chart, place, height);
  chart.root.setAttribute("role", "img");
  chart.root.setAttribute("aria-label", `Line chart of ${what} over ${coverageView.over}: ${endsOf(lines, text)}`);
}

function coverageTools(data, names, lines, several) {
  const tools = document.getElementById("coverage-tools");
  const set = (name) => (chosen) => {
    coverageView[name] = chosen;
    drawCoverage(data);
  };
  tools.replaceChildren();
  if (several && names.length)
    tools.append(choice("Criterion", names.map((name) => [name, name]), coverageView.criterion, set("criterion")));
  const over = [
    ["runs", "over runs"],
    ["seconds", "over time"],
  ];
  tools.append(choice("Over", over, coverageView.over, set("over")));
  for (const line of lines) {
    tools.append(
      toggle(line.label, { fill: line.colour, line: true }, !coverageView.hidden.has(line.label), (on) => {
        coverageView.hidden[on ? "delete" : "add"](line.label);
        drawCoverage(data);
      }),
    );
  }
}

function coverageTip(u, tip, lines, form, text) {
  const i = u.cursor.idx;
  tip.hidden = i == null || u.cursor.left < 0;
  if (tip.hidden) return;
  const rows = lines
    .map((line, k) => [line, u.data[k + 1][i]])
    .filter(([line, value]) => value != null && !coverageView.hidden.has(line.label));
  tip.replaceChildren(
    element("b", {}, coverageView.over === "runs" ? `run ${form(u.data[0][i])}` : form(u.data[0][i])),
    ...rows.map(([line, value]) => element("div", {}, `${line.label} ${text(value)}`)),
  );
  placeTip(u, tip);
}

function placeTip(u, tip) {
  const { left, top } = u.cursor;
  const across = left > u.over.clientWidth / 2;
  tip.style.left = across ? "auto" : `${left + 14}px`;
  tip.style.right = across ? `${u.over.clientWidth - left + 14}px` : "auto";
  tip.style.top = `${Math.max(0, Math.min(top, u.over.clientHeight - tip.offsetHeight))}px`;
}

registerSection("coverage", drawCoverage);
