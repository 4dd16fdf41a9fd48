"use strict";
(() => {
  const FIRST = 25;
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const value = (cell) => cell.dataset.value ?? cell.textContent.trim();
  const number = (text) => (text === "" || Number.isNaN(Number(text)) ? null : Number(text));

  const save = (blob, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
  const make = (tag, text, parent) => {
    const node = document.createElement(tag);
    node.textContent = text;
    parent.append(node);
    return node;
  };

  // Navigation: the section that is being read.
  const links = all("nav a"), bar = document.querySelector("nav ul");
  const sections = links.map((link) => document.getElementById(link.hash.slice(1)));
  let present = null;
  const mark = () => {
    const end = scrollY + innerHeight >= document.documentElement.scrollHeight - 2;
    const read = sections.filter((section) => section.getBoundingClientRect().top < innerHeight / 3);
    const link = links[end && scrollY > 0 ? links.length - 1 : Math.max(read.length - 1, 0)];
    if (!link || link === present) return;
    present?.removeAttribute("aria-current");
    link.setAttribute("aria-current", "true");
    present = link;
    bar.scrollLeft = link.offsetLeft - bar.offsetLeft - (bar.clientWidth - link.offsetWidth) / 2;
  };
  addEventListener("scroll", () => requestAnimationFrame(mark), { passive: true });
  mark();

  // Figures: as on paper, on white and in the light colours, which the first rule of the page has.
  const paper = document.styleSheets[0].cssRules[0].style;
  for (const figure of all(".figure")) {
    const svg = figure.querySelector("svg"), files = figure.querySelector(".files");
    const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
    const source = () => {
      const copy = svg.cloneNode(true);
      copy.setAttribute("width", `${width}pt`);
      copy.setAttribute("height", `${height}pt`);
      copy.style.cssText = "background: #ffffff";
      const text = new XMLSerializer().serializeToString(copy);
      return text.replace(/var\((--fig-[a-z]+)\)/g, (_, name) => paper.getPropertyValue(name).trim());
    };
    const button = (type, action) => {
      const made = make("button", type, files);
      made.type = "button";
      made.setAttribute("aria-label", `${type}: ${svg.getAttribute("aria-label").split(".")[0]}`);
      made.addEventListener("click", action);
    };
    button("SVG", () => save(new Blob([source()], { type: "image/svg+xml" }), `${figure.id}.svg`));
    button("PNG", () => {
      const image = new Image(), canvas = document.createElement("canvas"), scale = 300 / 72;
      image.addEventListener("load", () => {
        canvas.width = width * scale;
        canvas.height = height * scale;
        const context = canvas.getContext("2d");
        context.fillStyle = "#ffffff";
        context.fillRect(0, 0, canvas.width, canvas.height);
        context.drawImage(image, 0, 0, canvas.width, canvas.height);
        canvas.toBlob((blob) => save(blob, `${figure.id}.png`), "image/png");
      });
      image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(source())}`;
    });
  }

  // The table of features: sorted, filtered, downloaded.
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
  const kind = (cell) => cell.dataset.kind ?? cell.textContent.trim();

  for (const block of all(".ranked")) {
    const table = block.querySelector("table"), body = table.tBodies[0];
    const headers = [...table.tHead.rows[0].cells];
    const tools = block.querySelector(".tools"), search = block.querySelector("input");
    const count = block.querySelector(".count"), none = block.querySelector(".none");
    const more = block.querySelector(".more");
    const rows = [...body.rows];
    let whole = false;

    const filters = headers.flatMap((header, column) => {
      if (!header.dataset.filter) return [];
      const kinds = [...new Set(rows.map((row) => kind(row.cells[column])))].filter(Boolean);
      const label = document.createElement("label");
      tools.insertBefore(label, block.querySelector(".download"));
      label.append(`${header.dataset.filter} `);
      const select = make("select", "", label);
      make("option", "all", select).value = "";
      for (const name of kinds.sort((a, b) => a.localeCompare(b, undefined, { numeric: true }))) {
        make("option", name, select).value = name;
      }
      return [{ column, select }];
    });
    const matching = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      const picked = filters.filter(({ select }) => select.value);
      return rows.filter((row) => {
        const text = [row.cells[1].textContent, row.cells[2].textContent, value(row.cells[2])].join(" ").toLowerCase();
        return words.every((word) => text.includes(word))
          && picked.every(({ column, select }) => kind(row.cells[column]) === select.value);
      });
    };
    const show = () => {
      const found = matching();
      body.replaceChildren(...(whole ? found : found.slice(0, FIRST)));
      more.hidden = whole || found.length <= FIRST;
      more.textContent = `Show all ${found.length}`;
      none.hidden = found.length > 0;
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
    filters.forEach(({ select }) => select.addEventListener("change", show));
    block.querySelector(".clear").addEventListener("click", () => {
      search.value = "";
      filters.forEach(({ select }) => { select.value = ""; });
      show();
    });
    more.addEventListener("click", () => { whole = true; show(); });
    block.querySelector(".download").addEventListener("click", () => {
      const lines = [headers.map((header) => quoted(header.textContent.trim().toLowerCase()))];
      for (const row of matching()) lines.push([...row.cells].map((cell) => quoted(value(cell))));
      const text = lines.map((line) => line.join(",") + "\r\n").join("");
      save(new Blob([text], { type: "text/csv;charset=utf-8" }), `ranking-${block.dataset.name}.csv`);
    });
    tools.hidden = false;
    show();
  }
  // Closed details do not print.
  addEventListener("beforeprint", () => all("details").forEach((d) => { d.open = true; }));
})();
