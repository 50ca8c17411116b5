// Labelling by keyboard. Every label is sent at once, in order; what could not be saved says so.
"use strict";
const desk = document.querySelector(".desk");
const units = [...desk.querySelectorAll(".unit")];
const status = desk.querySelector("[role=status]");
const problem = desk.querySelector(".problem");
const bar = desk.querySelector("progress");
let current = Math.max(units.findIndex((unit) => !unit.dataset.value), 0);
const saved = new Map(units.map((unit) => [unit, unit.dataset.value]));
let saving = Promise.resolve();
let isLeaving = false;

function show(text = "") {
  const done = units.filter((unit) => unit.dataset.value).length;
  if (bar) bar.value = done;
  if (status) status.textContent = `${text} ${done} of ${units.length} done.`.trim();
  units.forEach((unit, number) => {
    unit.classList.toggle("current", number === current);
    for (const button of unit.querySelectorAll("[data-value]"))
      button.setAttribute("aria-pressed", String(button.dataset.value === unit.dataset.value));
  });
}

function moveTo(number) {
  if (!units.length) return;
  current = Math.min(Math.max(number, 0), units.length - 1);
  show();
  units[current].focus({ preventScroll: true });
  units[current].scrollIntoView({ block: "nearest" });
}

function moveOn() {
  const waiting = (unit) => !unit.dataset.value;
  const after = units.findIndex((unit, number) => number > current && waiting(unit));
  const any = after < 0 ? units.findIndex(waiting) : after;
  if (any >= 0) return moveTo(any);
  current = units.length; // a key too many changes nothing
  show("All labelled.");
  desk.querySelector(".next").focus();
}

async function send(path, body) {
  const response = await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: "application/json" },
    body: JSON.stringify(body),
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error.message);
  return answer;
}

function inOrder(work) {
  saving = saving.then(work).then(
    () => { problem.hidden = !units.some((unit) => unit.classList.contains("failed")); },
    (error) => {
      problem.textContent = `Not saved: ${error.message} Label it again.`;
      problem.hidden = false;
    },
  );
  return saving;
}

function label(unit, value) {
  if (!unit || isLeaving) return;
  const given = {
    annotator: desk.dataset.annotator,
    question: unit.dataset.question,
    passages: JSON.parse(unit.dataset.passages),
    entities: JSON.parse(unit.dataset.entities),
    value,
    settles: Boolean(desk.dataset.settles),
  };
  unit.dataset.value = value;
  unit.classList.add("saving");
  moveOn();
  inOrder(async () => {
    try {
      await send("/labels", [given]);
      saved.set(unit, value);
      unit.dataset.value = value;
      unit.classList.remove("failed");
      show(`Saved “${value}”.`);
    } catch (error) {
      unit.dataset.value = saved.get(unit);
      unit.classList.add("failed");
      show();
      throw error;
    } finally {
      unit.classList.remove("saving");
    }
  });
}

function undo() {
  if (isLeaving) return;
  inOrder(async () => {
    const taken = await send("/labels/undo", { annotator: desk.dataset.annotator });
    if (!taken) return show("Nothing to undo.");
    const number = units.findIndex((unit) => isOf(unit, taken));
    if (number < 0) return leave(whereOf(taken));
    await refresh(number, taken);
    moveTo(number);
    show("Undone.");
  });
}

function isOf(unit, taken) {
  const isSame = (told, parts) => JSON.stringify(JSON.parse(told)) === JSON.stringify(parts);
  return unit.dataset.question === taken.unit.question && taken.settles === Boolean(desk.dataset.settles) &&
    isSame(unit.dataset.passages, taken.unit.passages) && isSame(unit.dataset.entities, taken.unit.entities);
}

async function refresh(number, taken) {
  const response = await fetch(`/labels?question=${encodeURIComponent(taken.unit.question)}`);
  const held = (await response.json()).find((one) =>
    one.annotator === taken.annotator && one.settles === taken.settles && isOf(units[number], one));
  units[number].dataset.value = held ? held.value : "";
  saved.set(units[number], units[number].dataset.value);
}

function whereOf(taken) {
  if (taken.settles) return "/label/disagreements";
  const mode = taken.unit.passages.length === 1 ? "pairs" : "chains";
  return `/label/question?id=${encodeURIComponent(taken.unit.question)}&mode=${mode}`;
}

function leave(path) {
  if (isLeaving) return;
  isLeaving = true;
  saving.then(() => {
    isLeaving = problem.hidden;
    if (problem.hidden) location.assign(path);
  });
}

const keys = {
  y: () => label(units[current], "yes"),
  n: () => label(units[current], "no"),
  u: () => label(units[current], "unsure"),
  j: () => moveTo(current + 1),
  k: () => moveTo(current - 1),
  ArrowDown: () => moveTo(current + 1),
  ArrowUp: () => moveTo(current - 1),
  z: undo,
  Enter: () => leave(desk.dataset.next),
};

document.addEventListener("keydown", (event) => {
  const isTyping = event.target.matches("input, textarea, select");
  const isPressing = event.key === "Enter" && event.target.matches("a, button, summary");
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || isTyping || isPressing) return;
  const act = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!act || !desk.dataset.annotator || (!units.length && event.key !== "Enter" && event.key !== "z")) return;
  event.preventDefault();
  act();
});

units.forEach((unit, number) => {
  for (const button of unit.querySelectorAll("[data-value]"))
    button.addEventListener("click", () => {
      current = number;
      if (desk.dataset.annotator) label(unit, button.dataset.value);
    });
});
desk.querySelector(".undo")?.addEventListener("click", undo);
desk.querySelector(".next")?.addEventListener("click", (event) => {
  event.preventDefault();
  leave(event.currentTarget.href);
});

window.addEventListener("pageshow", () => { isLeaving = false; });

show();
if (units.length) moveTo(current);
