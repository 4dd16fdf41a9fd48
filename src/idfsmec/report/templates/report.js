"use strict";
(() => {
  const FIRST = 25;
  const value = (cell) => cell.dataset.value ?? cell.textContent.trim();
  const number = (text) => (text === "" || Number.isNaN(Number(text)) ? null : Number(text));

  // A spreadsheet runs a cell that starts like a formula: an apostrophe makes it text again.
  const quoted = (text) => {
    const safe = number(text) === null && /^[=+\-@\t\r]/.test(text) ? "'" + text : text;
    return /[",\n\r]/.test(safe) ? '"' + safe.replaceAll('"', '""') + '"' : safe;
  };

  const compare = (column, direction) => (one, other) => {
    const a = value(one.cells[column]), b = value(other.cells[column]);
    const x = number(a), y = number(b);
    if (x !== null && y !== null) return direction * (x - y);
    if (a === "" || b === "") return a === b ? 0 : a === "" ? 1 : -1;
    return direction * a.localeCompare(b, undefined, { numeric: true });
  };

  for (const block of document.querySelectorAll(".ranked")) {
    const table = block.querySelector("table"), body = table.tBodies[0];
    const headers = [...table.tHead.rows[0].cells];
    const search = block.querySelector("input"), count = block.querySelector(".count");
    const more = block.querySelector(".more");
    let rows = [...body.rows], all = false;

    const matching = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      return rows.filter((row) => {
        const text = [row.cells[1].textContent, row.cells[2].textContent, value(row.cells[2])].join(" ").toLowerCase();
        return words.every((word) => text.includes(word));
      });
    };
    const show = () => {
      const found = matching();
      body.replaceChildren(...(all ? found : found.slice(0, FIRST)));
      more.hidden = all || found.length <= FIRST;
      more.textContent = `Show all ${found.length}`;
      count.textContent = `${found.length} of ${rows.length} features`;
    };
    headers.forEach((header, column) => {
      header.querySelector("button").addEventListener("click", () => {
        const sorted = header.getAttribute("aria-sort");
        // Numbers other than the rank are read from the top: largest first.
        const first = header.classList.contains("number") && column > 0 ? "descending" : "ascending";
        const next = !sorted ? first : sorted === "ascending" ? "descending" : "ascending";
        headers.forEach((other) => other.removeAttribute("aria-sort"));
        header.setAttribute("aria-sort", next);
        rows.sort(compare(column, next === "ascending" ? 1 : -1));
        show();
      });
    });
    search.addEventListener("input", show);
    more.addEventListener("click", () => { all = true; show(); });
    block.querySelector(".download").addEventListener("click", () => {
      const lines = [headers.map((header) => quoted(header.textContent.trim().toLowerCase()))];
      for (const row of matching()) lines.push([...row.cells].map((cell) => quoted(value(cell))));
      const text = lines.map((line) => line.join(",") + "\r\n").join("");
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
      link.download = `ranking-${block.dataset.name}.csv`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    });
    show();
  }
  // Closed details do not print.
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((d) => { d.open = true; }));
})();
