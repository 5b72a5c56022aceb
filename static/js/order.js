// Drag a row of an ordered list to its place; the buttons in each row do the same without this file.
let dragged = null;

const rowOf = (event) => event.target.closest?.(".order > li");

document.addEventListener("dragstart", (event) => {
  const row = rowOf(event);
  if (!row) return;
  dragged = row;
  event.dataTransfer.effectAllowed = "move";
  event.dataTransfer.setData("text/plain", row.dataset.address);
  row.classList.add("dragged");
});

document.addEventListener("dragover", (event) => {
  const row = rowOf(event);
  if (!dragged || !row || row.parentNode !== dragged.parentNode) return;
  event.preventDefault();
  for (const other of row.parentNode.children) other.classList.toggle("over", other === row && row !== dragged);
});

document.addEventListener("drop", (event) => {
  const row = rowOf(event);
  if (!dragged || !row || row === dragged || row.parentNode !== dragged.parentNode) return;
  event.preventDefault();
  const box = row.getBoundingClientRect();
  row.parentNode.insertBefore(dragged, event.clientY > box.top + box.height / 2 ? row.nextSibling : row);
  const form = document.getElementById("order-form");
  form.replaceChildren(...[...form.children].filter((field) => field.name !== "address"));
  for (const item of row.parentNode.children) {
    const field = document.createElement("input");
    field.type = "hidden";
    field.name = "address";
    field.value = item.dataset.address;
    form.append(field);
  }
  form.requestSubmit();
});

document.addEventListener("dragend", () => {
  for (const row of document.querySelectorAll(".order > li")) row.classList.remove("dragged", "over");
  dragged = null;
});
