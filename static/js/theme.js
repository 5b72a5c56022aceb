// Runs before the first paint, so that a chosen colour scheme never flashes.
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  let theme = null;
  try {
    theme = localStorage.getItem("theme");
  } catch {
    // Storage is blocked: the system's scheme holds.
  }
  if (theme === "light" || theme === "dark") root.dataset.theme = theme;
})();
