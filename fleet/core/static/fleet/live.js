// Keeps the parts of a page true without reloading it.
//
// <div data-live="URL" data-live-seconds="2"> holds elements with data-part="name". The URL answers HTML with the same
// parts; only those that differ are replaced, and focus and open details are kept. A part with data-live-done is the last.
(() => {
  "use strict";

  const root = document.querySelector("[data-live]");
  if (!root) return;

  const seconds = Number(root.dataset.liveSeconds) || 2;
  const note = document.querySelector("[data-live-note]");
  let failures = 0;
  let timer = 0;

  const parts = (element) => new Map([...element.querySelectorAll("[data-part]")].map((part) => [part.dataset.part, part]));

  function say(text, bad) {
    if (!note) return;
    note.textContent = text;
    note.classList.toggle("hf-bad", bad);
  }

  function keepOpen(before, after) {
    const open = [...before.querySelectorAll("details[open]")].map((each) => each.dataset.name);
    after.querySelectorAll("details").forEach((each) => { each.open = open.includes(each.dataset.name); });
  }

  // A selector for what has the focus in this part, if anything has.
  function focusIn(part) {
    const element = document.activeElement;
    if (!part.contains(element)) return "";
    if (element.matches("summary")) return `details[data-name="${CSS.escape(element.parentElement.dataset.name)}"] > summary`;
    return element.hasAttribute("href") ? `a[href="${CSS.escape(element.getAttribute("href"))}"]` : "";
  }

  // Compared are texts as they came, because scripts of the frame may touch what is in the page.
  const sources = new Map();
  parts(root).forEach((part, name) => sources.set(name, part.outerHTML));

  function show(html) {
    const fresh = parts(new DOMParser().parseFromString(html, "text/html"));
    if (fresh.size === 0) throw new Error("the answer has no parts");
    parts(root).forEach((part, name) => {
      const next = fresh.get(name);
      if (!next || sources.get(name) === next.outerHTML) return;
      sources.set(name, next.outerHTML);
      const adopted = document.importNode(next, true);
      keepOpen(part, adopted);
      const again = focusIn(part);
      part.replaceWith(adopted);
      if (again) adopted.querySelector(again)?.focus();
    });
  }

  async function refresh() {
    try {
      const answer = await fetch(root.dataset.live || location.href, {
        credentials: "same-origin",
        headers: { "X-Requested-With": "fetch" },
        signal: AbortSignal.timeout(15000),
      });
      if (answer.status === 403 || answer.redirected) return say("You are signed out. Reload the page to sign in.", true);
      if (answer.status === 404) return say("This object is gone.", true);
      if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
      show(await answer.text());
      failures = 0;
      if (root.querySelector("[data-live-done]")) return say("", false);
      say("Live", false);
    } catch (error) {
      failures += 1;
      say(`Not up to date: no answer since ${failures} tries`, true);
    }
    plan();
  }

  function plan() {
    clearTimeout(timer);
    // Failing servers are asked less and less often, up to every 30 s.
    timer = setTimeout(refresh, 1000 * Math.min(30, seconds * 2 ** Math.min(failures, 4)));
  }

  // A hidden tab asks nothing; it catches up when it is seen again.
  document.addEventListener("visibilitychange", () => {
    clearTimeout(timer);
    if (!document.hidden) refresh();
  });
  if (!document.hidden) plan();
  say("Live", false);
})();
