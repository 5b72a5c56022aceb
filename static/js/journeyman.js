// What plain HTML and htmx cannot do: keys, copying, the colour scheme, guarding unsaved text.
(() => {
  "use strict";

  const root = document.documentElement;

  // --- Saying something to those who cannot see it ------------------------------------
  const say = (words) => {
    const place = document.getElementById("spoken");
    if (place) place.textContent = words;
  };

  // --- Colour scheme ------------------------------------------------------------------
  const THEMES = ["system", "light", "dark"];

  const showTheme = () => {
    for (const button of document.querySelectorAll("[data-theme-switch]")) {
      button.textContent = `Theme: ${root.dataset.theme || "system"}`;
    }
  };

  const nextTheme = () => {
    const now = root.dataset.theme || "system";
    const next = THEMES[(THEMES.indexOf(now) + 1) % THEMES.length];
    if (next === "system") delete root.dataset.theme;
    else root.dataset.theme = next;
    try {
      if (next === "system") localStorage.removeItem("theme");
      else localStorage.setItem("theme", next);
    } catch {
      // Storage is blocked: the choice holds for this page only.
    }
    showTheme();
    say(`Theme: ${next}`);
  };

  // --- Copying ------------------------------------------------------------------------
  const copy = async (button) => {
    const source = button.dataset.copy;
    const element = button.dataset.copyFrom && document.getElementById(button.dataset.copyFrom);
    const text = source || (element ? element.value || element.textContent : "");
    const label = button.dataset.label || (button.dataset.label = button.textContent);
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
      say("Copied");
    } catch {
      // No clipboard without HTTPS or permission: select it, so that Ctrl-C does it.
      const shown = button.closest(".copyable")?.firstElementChild || element;
      if (shown) getSelection().selectAllChildren(shown);
      button.textContent = "Press Ctrl-C";
    }
    setTimeout(() => {
      button.textContent = label;
    }, 2000);
  };

  // --- Keys ---------------------------------------------------------------------------
  const rows = () => [...document.querySelectorAll("table.list tbody tr")].filter((row) => row.querySelector("a[href]"));

  const move = (step) => {
    const all = rows();
    if (!all.length) return;
    const at = all.findIndex((row) => row.classList.contains("here"));
    const to = at < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + step));
    all[at]?.classList.remove("here");
    all[to].classList.add("here");
    all[to].querySelector("th a[href], a[href]").focus({ preventScroll: true });
    all[to].scrollIntoView({ block: "nearest" });
  };

  const KEYS = {
    "/": () => {
      document.getElementById("q")?.focus();
      document.getElementById("q")?.select();
    },
    j: () => move(1),
    k: () => move(-1),
    Enter: () => document.querySelector("table.list tr.here :is(th a[href], a[href])")?.click(),
    e: () => document.querySelector("a[data-key='e']")?.click(),
    "?": () => document.getElementById("keys")?.showModal(),
  };

  const typing = (element) => element.closest("input, textarea, select, [contenteditable], dialog[open]");

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.key === "Escape" && document.activeElement?.id === "q") document.activeElement.blur();
    if (typing(event.target) || !Object.hasOwn(KEYS, event.key)) return;
    // A focused link or button keeps its own Enter.
    if (event.key === "Enter" && event.target.closest("a, button, summary")) return;
    event.preventDefault();
    KEYS[event.key]();
  });

  // --- Unsaved text -------------------------------------------------------------------
  const changed = new Set();

  document.addEventListener("input", (event) => {
    const form = event.target.form;
    if (form?.hasAttribute("data-guard")) changed.add(form);
  });
  document.addEventListener("submit", (event) => changed.delete(event.target), true);
  window.addEventListener("beforeunload", (event) => {
    for (const form of changed) if (form.isConnected) return event.preventDefault();
  });

  // --- A private key pasted into a search ---------------------------------------------
  // Stopped here, before it would be sent; the server refuses it as well.
  const secret = (form) => [...form.elements].find((field) => field.type === "search" && /nsec1/i.test(field.value));

  const refuseSecret = (event) => {
    const form = event.type === "submit" ? event.target : event.detail.ctx.request.form;
    const field = form && secret(form);
    if (!field) return;
    event.preventDefault();
    event.stopPropagation();
    field.value = "";
    const words = "That was a private key (nsec). It was not sent. Never paste it into a search.";
    field.setCustomValidity(words);
    field.reportValidity();
    field.addEventListener("input", () => field.setCustomValidity(""), { once: true });
  };
  document.addEventListener("submit", refuseSecret, true);
  document.addEventListener("htmx:config:request", refuseSecret, true);

  // --- Clicks -------------------------------------------------------------------------
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.matches("[data-theme-switch]")) nextTheme();
    else if (button.matches("[data-copy], [data-copy-from]")) copy(button);
    else if (button.matches("[data-show-keys]")) document.getElementById("keys")?.showModal();
    else if (button.matches("[data-insert]")) insert(button);
  });

  // --- Chips that put a variable where the cursor stands --------------------------------
  const insert = (button) => {
    const area = document.getElementById(button.dataset.into);
    if (!area) return;
    area.setRangeText(button.dataset.insert, area.selectionStart, area.selectionEnd, "end");
    area.dispatchEvent(new Event("input", { bubbles: true }));
    area.focus();
  };

  // Facts stand open beside the content, and fold under the title where there is no room.
  const wide = matchMedia("(min-width: 960px)");
  const foldFacts = () => {
    for (const details of document.querySelectorAll(".facts > details")) details.open = wide.matches;
  };
  wide.addEventListener("change", foldFacts);
  foldFacts();
  showTheme();

  document.addEventListener("htmx:after:swap", () => {
    const count = document.querySelector("[data-spoken]");
    if (count) say(count.dataset.spoken);
  });
  document.addEventListener("htmx:error", () => say("The page did not answer. What you see may be out of date."));
})();
