// Completes /names of skills while a message is typed, and sends it with Ctrl+Enter.
(() => {
  "use strict";
  const area = document.querySelector("textarea[data-names]");
  if (!area) return;
  const names = [...document.querySelectorAll("#names [data-name]")].map((term) => term.dataset.name);
  const list = document.createElement("ul");
  list.className = "completions";
  list.id = "completions";
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Skills");
  list.hidden = true;
  area.after(list);
  area.setAttribute("aria-controls", list.id);
  let at = 0;

  const typed = () => /(?:^|\s)\/([^\s/]*)$/u.exec(area.value.slice(0, area.selectionStart));
  const options = () => [...list.children];
  const mark = () => options().forEach((option, index) => option.setAttribute("aria-selected", String(index === at)));

  const suggest = () => {
    const word = typed();
    const found = word ? names.filter((name) => name.startsWith(word[1])).slice(0, 20) : [];
    list.replaceChildren(
      ...found.map((name) => {
        const option = document.createElement("li");
        option.setAttribute("role", "option");
        option.textContent = `/${name}`;
        return option;
      }),
    );
    at = 0;
    list.hidden = !found.length;
    mark();
  };

  const choose = (option) => {
    const start = area.selectionStart - typed()[1].length - 1;
    area.setRangeText(`${option.textContent} `, start, area.selectionStart, "end");
    list.hidden = true;
    area.focus();
  };

  area.addEventListener("input", suggest);
  area.addEventListener("blur", () => setTimeout(() => { list.hidden = true; }, 200));
  list.addEventListener("mousedown", (event) => {
    event.preventDefault();
    const option = event.target.closest("li");
    if (option) choose(option);
  });
  area.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) return area.form.requestSubmit();
    if (list.hidden) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) at = (at + step + options().length) % options().length;
    else if (event.key === "Enter" || event.key === "Tab") choose(options()[at]);
    else if (event.key === "Escape") list.hidden = true;
    else return;
    event.preventDefault();
    mark();
  });
})();
