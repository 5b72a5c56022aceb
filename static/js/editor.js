// Chips put their text where the cursor stands; without this file they are a list to read.
document.addEventListener("click", (event) => {
  const chip = event.target.closest("button[data-chip]");
  if (!chip) return;
  const field = document.getElementById(chip.dataset.into);
  const text = chip.dataset.chip;
  if (field.tagName === "INPUT") {
    const names = field.value.split(",").map((name) => name.trim()).filter(Boolean);
    if (!names.includes(text)) names.push(text);
    field.value = names.join(", ");
  } else {
    field.setRangeText(text, field.selectionStart, field.selectionEnd, "end");
  }
  field.dispatchEvent(new Event("input", { bubbles: true }));
  field.focus();
});

// Leaving with unsaved text asks once: saving while typing may still be on its way.
const form = document.getElementById("skill-form");
if (form) {
  let unsaved = false;
  form.addEventListener("input", () => { unsaved = true; });
  form.addEventListener("submit", () => { unsaved = false; });
  document.addEventListener("htmx:after:swap", () => {
    if (document.querySelector("#draft-state [data-saved]")) unsaved = false;
  });
  addEventListener("beforeunload", (event) => { if (unsaved) event.preventDefault(); });
}
