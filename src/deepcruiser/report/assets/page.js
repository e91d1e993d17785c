"use strict";
// Draws the sections, switches the colours, and keeps a live page up to date.

(function start() {
  let data = JSON.parse(document.getElementById("data").textContent);
  const sounds = JSON.parse(document.getElementById("sounds").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const stored = {
    get: () => {
      try {
        return localStorage.getItem("deepcruiser-theme");
      } catch {
        return null;
      }
    },
    set: (theme) => {
      try {
        localStorage.setItem("deepcruiser-theme", theme);
      } catch {
        /* not every browser stores anything for a file */
      }
    },
  };

  function drawAll(wanted = () => true) {
    for (const [name, section] of drawnSections) {
      if (document.getElementById(name) && wanted(section)) section.draw(data, sounds);
    }
  }

  function setTheme(theme) {
    if (theme) document.documentElement.dataset.theme = theme;
    drawAll();
  }

  document.getElementById("theme").addEventListener("click", () => {
    const now = document.documentElement.dataset.theme || (dark.matches ? "dark" : "light");
    const next = now === "dark" ? "light" : "dark";
    stored.set(next);
    setTheme(next);
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest(".command .copy");
    if (button) copy(button, button.previousElementSibling.textContent);
  });
  dark.addEventListener("change", () => drawAll());
  let beforePrint = null;
  addEventListener("beforeprint", () => {
    beforePrint = document.documentElement.dataset.theme || "";
    document.documentElement.dataset.theme = "light"; // on paper
    drawAll((section) => section.chart);
  });
  addEventListener("afterprint", () => {
    if (beforePrint) document.documentElement.dataset.theme = beforePrint;
    else delete document.documentElement.dataset.theme;
    drawAll((section) => section.chart);
  });
  setTheme(["light", "dark"].includes(stored.get()) ? stored.get() : "");
  // What the address names is there only now.
  if (location.hash) setTimeout(() => document.getElementById(location.hash.slice(1).split("&")[0])?.scrollIntoView());

  if (!data.live) return;
  async function poll() {
    let wait = 2000;
    try {
      const { runs, state } = data.campaigns[0];
      const answer = await fetch(`data.json?runs=${runs}&state=${state}`, { cache: "no-store" });
      if (answer.status === 200) {
        const { page, html, sections } = await answer.json();
        data = { ...data, ...page };
        // The first failing test brings sections that the page does not have yet; the address keeps its filters.
        const inUse = [...drawnSections.values()].some((section) => section.inUse());
        if (!inUse && sections.some((name) => !document.getElementById(name))) return location.reload();
        // Rendered by the same templates as this page, where every text is escaped.
        for (const [name, text] of Object.entries(html)) {
          const place = document.getElementById(name);
          if (place) place.innerHTML = text;
        }
        drawAll((section) => !section.inUse()); // what someone is looking at stays as it is
      } else if (answer.status !== 204) throw new Error(answer.statusText);
    } catch {
      document.querySelector(".status").textContent =
        "The campaign has ended or cannot be reached; the page shows the last data received.";
      wait = 10000;
    }
    setTimeout(poll, wait);
  }
  setTimeout(poll, 1000);
})();
