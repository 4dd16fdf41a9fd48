"use strict";
// Buttons that copy code: of a session without prompts and without what it printed.
addEventListener("DOMContentLoaded", () => {
  for (const pre of document.querySelectorAll("div.highlight pre")) {
    const block = pre.parentNode, session = block.closest(".highlight-pycon, .highlight-default");
    pre.tabIndex = 0; // long lines are pushed by the keyboard, too
    if (block.closest(".highlight-text, .highlight-none")) continue;
    const code = () => {
      const lines = pre.textContent.replace(/\n$/, "").split("\n");
      const asked = lines.filter((line) => /^(>>>|\.\.\.)( |$)/.test(line));
      return (session && asked.length ? asked.map((line) => line.slice(4)) : lines).join("\n");
    };
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(code() + "\n");
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
    block.append(button);
  }
  // Names and roles that the theme and the gallery give wrongly or not at all.
  for (const button of document.querySelectorAll(".search-button-field")) button.removeAttribute("aria-label");
  for (const entry of document.querySelectorAll("div.citation")) entry.setAttribute("role", "listitem");
  for (const cell of document.querySelectorAll("th:empty")) cell.setAttribute("role", "presentation");
  for (const link of document.querySelectorAll(".sphx-glr-thumbcontainer a")) {
    if (link.textContent.trim()) link.setAttribute("aria-label", link.textContent);
    else link.tabIndex = -1, link.setAttribute("aria-hidden", "true");
  }
  for (const summary of document.querySelectorAll("summary")) {
    if (!summary.textContent.trim()) summary.setAttribute("aria-label", "Subpages");
  }
});
