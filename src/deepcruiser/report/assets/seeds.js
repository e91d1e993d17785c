"use strict";
(() => {
  const body = document.querySelector("#seeds tbody");
  const headings = [...document.querySelectorAll("#seeds th")];
  const boxes = [...document.querySelectorAll("#seeds input")];

  const chosen = () => boxes.filter((box) => box.checked).map((box) => box.dataset.seed);

  const count = () => {
    document.querySelector("#count").textContent = `${chosen().length} of ${boxes.length} left out`;
  };

  const value = (row, column) => {
    const cell = row.cells[column];
    const box = cell.querySelector("input");
    return box ? String(Number(!box.checked)) : cell.textContent.trim();
  };

  // Numbers by size, words by letter, and what is not known last.
  const compare = (one, other) => {
    if (!one || !other) return Number(!one) - Number(!other);
    const numbers = [Number(one), Number(other)];
    return numbers.some(Number.isNaN) ? one.localeCompare(other) : numbers[0] - numbers[1];
  };

  headings.forEach((heading, column) => {
    heading.querySelector("button")?.addEventListener("click", () => {
      const falling = heading.getAttribute("aria-sort") === "ascending";
      headings.forEach((each) => each.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", falling ? "descending" : "ascending");
      const rows = [...body.rows].sort((a, b) => compare(value(a, column), value(b, column)) * (falling ? -1 : 1));
      body.append(...rows);
    });
  });

  document.querySelector("#save").addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([chosen().map((name) => `${name}\n`).join("")], { type: "text/plain" }));
    link.download = "leave-out.txt";
    link.click();
    URL.revokeObjectURL(link.href);
  });

  boxes.forEach((box) => box.addEventListener("change", count));
  count();
})();
