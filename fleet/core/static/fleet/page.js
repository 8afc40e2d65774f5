// Small comforts; every page works without them.
(() => {
  "use strict";

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const source = document.getElementById(button.dataset.copy);
    const text = (source.value ?? source.textContent).trim();
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch (error) {
      // No clipboard (plain HTTP): mark the text, so that the user's own copy key works.
      getSelection().selectAllChildren(source);
      button.textContent = "Selected: press Ctrl+C";
    }
  });

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-line]");
    if (!button) return;
    const area = document.getElementById(button.dataset.in);
    const lines = area.value.split("\n");
    const line = Math.min(Number(button.dataset.line), lines.length);
    const start = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
    area.focus();
    area.setSelectionRange(start, start + lines[line - 1].length);
    area.scrollTop = (area.scrollHeight / lines.length) * (line - 4);
  });

  // In a manifest, Tab indents by two spaces; Escape first gives Tab back its usual meaning.
  document.querySelectorAll("textarea[data-manifest]").forEach((area) => {
    let free = false;
    area.addEventListener("keydown", (event) => {
      if (event.key === "Escape") free = true;
      if (event.key !== "Tab" || event.shiftKey || free) return;
      event.preventDefault();
      area.setRangeText("  ", area.selectionStart, area.selectionEnd, "end");
    });
    area.addEventListener("blur", () => { free = false; });
  });
})();
