"use strict";
// Coverage over runs: a line per criterion, or per campaign if there are several.

const LINES = ["#1f77b4", "#e8590c", "#2b8a3e", "#9c36b5", "#b08900", "#0b7285", "#5f6b76", "#c2255c"];
const coverageView = { over: "runs", criterion: null, hidden: new Set() };

function drawCoverage(data) {
  const place = document.getElementById("coverage-chart");
  const campaigns = data.campaigns;
  const names = [...new Set(data.coverage.flatMap((course) => course.criteria))];
  place.replaceChildren();
  place.classList.toggle("empty", !names.length);
  document.getElementById("coverage-tools").replaceChildren();
  if (!names.length) {
    place.append(data.campaigns.some((campaign) => campaign.model_fingerprint)
        ? "The coverage of this campaign cannot be shown without its model."
        : "This campaign has no abstract model, so there is no coverage to show.");
    return;
  }
  const several = campaigns.length > 1;
  if (!names.includes(coverageView.criterion)) {
    const guide = campaigns[0].coverage.find((each) => each.queue != null);
    coverageView.criterion = guide ? guide.name : names[0];
  }
  const lines = [];
  campaigns.forEach((campaign, i) =>
    data.coverage[i].criteria.forEach((name, k) => {
      if (several && name !== coverageView.criterion) return;
      const colour = LINES[(several ? i : names.indexOf(name)) % LINES.length];
      const points = data.coverage[i].moments.map((row) => [row[coverageView.over], row.values[k]]);
      const guide = campaign.coverage.some((each) => each.name === name && each.queue != null);
      lines.push({ label: several ? campaign.name : name, colour, points, dash: several && i > 0, wide: guide });
    }),
  );
  coverageTools(data, names, lines, several);
  const at = [...new Set(lines.flatMap((line) => line.points.map((point) => point[0])))].sort((a, b) => a - b);
  const columns = lines.map((line) => {
    const known = new Map(line.points);
    const last = line.points[line.points.length - 1][0];
    let value = null;
    return at.map((x) => {
      value = known.has(x) ? known.get(x) : value;
      return x > last ? null : value;
    });
  });
  const height = (width) => (width < 500 ? 260 : 340);
  const form = coverageView.over === "runs" ? (x) => number.format(x) : clock;
  const tip = element("div", { class: "tip", hidden: true });
  const chart = new uPlot(
    {
      width: widthOf(place) || 600,
      height: height(widthOf(place)),
      legend: { show: false },
      scales: {
        x: { time: false },
        y: { range: (u, low, high) => [0, Math.min(1, Math.max(0.02, (high || 0) * 1.08))] },
      },
      axes: [
        axis(coverageView.over === "runs" ? "runs" : "time", {
          values: (u, ticks) => ticks.map(form),
          space: 70,
          size: 30,
        }),
        axis("coverage", { values: (u, ticks) => ticks.map((y) => `${+(y * 100).toFixed(1)}%`), size: 56 }),
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
      hooks: { setCursor: [(u) => coverageTip(u, tip, lines, form)] },
    },
    [at, ...columns],
    place,
  );
  chart.over.append(tip);
  fit(chart, place, height);
  const ends = lines.map((line) => {
    const [first, last] = [line.points[0], line.points[line.points.length - 1]];
    return `${line.label} from ${share(first[1])} to ${share(last[1])}`;
  });
  chart.root.setAttribute("role", "img");
  chart.root.setAttribute("aria-label", `Line chart of coverage over ${coverageView.over}: ${ends.join("; ")}`);
  document.getElementById("coverage-note").textContent = several
    ? `${coverageView.criterion}: ${ends.join("; ")}.`
    : "";
}

function coverageTools(data, names, lines, several) {
  const again = () => drawCoverage(data);
  const tools = document.getElementById("coverage-tools");
  if (several) {
    tools.append(
      choice(
        "Criterion",
        names.map((name) => [name, name]),
        coverageView.criterion,
        (chosen) => {
          coverageView.criterion = chosen;
          again();
        },
      ),
    );
  }
  tools.append(
    choice(
      "Over",
      [
        ["runs", "over runs"],
        ["seconds", "over time"],
      ],
      coverageView.over,
      (chosen) => {
        coverageView.over = chosen;
        again();
      },
    ),
  );
  for (const line of lines) {
    tools.append(
      toggle(line.label, { fill: line.colour, line: true }, !coverageView.hidden.has(line.label), (on) => {
        coverageView.hidden[on ? "delete" : "add"](line.label);
        again();
      }),
    );
  }
}

function coverageTip(u, tip, lines, form) {
  const i = u.cursor.idx;
  tip.hidden = i == null || u.cursor.left < 0;
  if (tip.hidden) return;
  const rows = lines
    .map((line, k) => [line, u.data[k + 1][i]])
    .filter(([line, value]) => value != null && !coverageView.hidden.has(line.label));
  tip.replaceChildren(
    element("b", {}, coverageView.over === "runs" ? `run ${form(u.data[0][i])}` : form(u.data[0][i])),
    ...rows.map(([line, value]) => element("div", {}, `${line.label} ${share(value)}`)),
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
