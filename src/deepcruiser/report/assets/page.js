"use strict";
// Puts the page together, switches its colours, and lets it grow while a campaign runs.

(function start() {
  let data = JSON.parse(document.getElementById("data").textContent);
  const sounds = JSON.parse(document.getElementById("sounds").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const kept = {
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
        /* then it is not kept */
      }
    },
  };

  function drawAll() {
    drawCoverage(data);
    drawSpace(data);
    drawFailures(data, sounds);
    for (const button of document.querySelectorAll("#reproduce .copy")) {
      button.onclick = () => copy(button, button.previousElementSibling.textContent);
    }
  }

  function setTheme(theme) {
    if (theme) document.documentElement.dataset.theme = theme;
    drawAll();
  }

  document.getElementById("theme").addEventListener("click", () => {
    const now = document.documentElement.dataset.theme || (dark.matches ? "dark" : "light");
    const next = now === "dark" ? "light" : "dark";
    kept.set(next);
    setTheme(next);
  });
  dark.addEventListener("change", drawAll);
  let beforePrint = null;
  addEventListener("beforeprint", () => {
    beforePrint = document.documentElement.dataset.theme || "";
    document.documentElement.dataset.theme = "light"; // on paper
    drawCoverage(data);
    drawSpace(data);
  });
  addEventListener("afterprint", () => {
    if (beforePrint) document.documentElement.dataset.theme = beforePrint;
    else delete document.documentElement.dataset.theme;
    drawCoverage(data);
    drawSpace(data);
  });
  setTheme(["light", "dark"].includes(kept.get()) ? kept.get() : "");

  if (!data.live) return;
  const badge = () => document.querySelector(".status");
  async function poll() {
    let wait = 2000;
    try {
      const answer = await fetch(`data.json?runs=${data.campaigns[0].runs}&state=${data.campaigns[0].state}`, {
        cache: "no-store",
      });
      if (answer.status === 200) {
        const { page, html } = await answer.json();
        data = { ...data, ...page };
        // Rendered by the same templates as this page, where every text is escaped.
        for (const [name, text] of Object.entries(html)) {
          const place = document.getElementById(name);
          if (place) place.innerHTML = text;
        }
        const playing = [...document.querySelectorAll("audio")].some((audio) => !audio.paused);
        // What someone is looking into stays as it is.
        if (!document.querySelector("#coverage-chart:hover")) drawCoverage(data);
        if (!document.querySelector("#space-chart:hover")) drawSpace(data);
        if (!playing && !document.activeElement?.closest("#failures")) drawFailures(data, sounds);
      } else if (answer.status !== 204) throw new Error(answer.statusText);
    } catch {
      badge().textContent = "The campaign has ended, or cannot be reached any more: this is the last that was seen.";
      wait = 10000;
    }
    setTimeout(poll, wait);
  }
  setTimeout(poll, 1000);
})();
