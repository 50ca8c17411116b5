// Shows a candidate in the graph while somebody points at it, or has the focus on it: its lines, and their passages.
const graph = document.querySelector(".graph");

function light(lines, isOn) {
  for (const number of lines) {
    graph.querySelector(`[data-line="${number}"]`)?.classList.toggle("lit", isOn);
  }
}

function follow(event, isOn) {
  const target = event.target.closest?.("[data-lines]");
  if (target) light(target.dataset.lines.split(" "), isOn);
}

if (graph) {
  for (const kind of ["pointerover", "focusin"]) document.addEventListener(kind, (event) => follow(event, true));
  for (const kind of ["pointerout", "focusout"]) document.addEventListener(kind, (event) => follow(event, false));
}
