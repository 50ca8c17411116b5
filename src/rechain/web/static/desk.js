// Labelling by keyboard. Every label is sent at once, in order; what could not be saved says so.
const desk = document.querySelector(".desk");
const units = [...desk.querySelectorAll(".unit")];
const status = desk.querySelector("[role=status]");
const problem = desk.querySelector(".problem");
const bar = desk.querySelector("progress");
const isSettling = Boolean(desk.dataset.settles);
const inSight = desk.querySelector(".in-sight");
const isNarrow = matchMedia("(max-width: 40rem)");
const places = [...desk.querySelectorAll(".places button")];
// what the server knows of the units on other pages
const elsewhere = {
  total: Number(desk.dataset.total ?? units.length) - units.length,
  done: Number(desk.dataset.done ?? 0),
  waiting: Number(desk.dataset.waiting ?? 0),
  wrong: JSON.parse(desk.dataset.wrong ?? "[]"),
};
const openCount = document.querySelector(".open");
const openElsewhere = openCount ? openCount.dataset.open - units.filter(isOpen).length : 0;
const chains = new Map(units.map((unit) => [unit, JSON.parse(unit.dataset.chains)]));
const saved = new Map(units.map((unit) => [unit, unit.dataset.value]));
const settledNow = new Set();
let saving = Promise.resolve();
let isLeaving = false;
let current = Math.max(units.findIndex(isWaiting), 0);

function isOpen(unit) {
  return !unit.dataset.value || unit.dataset.value === "unsure";
}

// A pair whose chains are all wrong already need not be labelled.
function wrongChains() {
  const wrong = units.filter((unit) => unit.dataset.value === "no").flatMap((unit) => chains.get(unit));
  return new Set(isSettling ? [] : [...elsewhere.wrong, ...wrong]);
}

function isNeeded(unit, wrong = wrongChains()) {
  const own = chains.get(unit);
  return !own.length || own.some((chain) => !wrong.has(chain));
}

function isWaiting(unit) {
  if (isSettling) return isOpen(unit) && !settledNow.has(unit);
  return !unit.dataset.value && isNeeded(unit);
}

function counted(unneededHere) {
  const done = elsewhere.done + units.filter((unit) => (isSettling ? !isOpen(unit) : unit.dataset.value)).length;
  const unneeded = unneededHere + elsewhere.total - elsewhere.done - elsewhere.waiting;
  if (bar) bar.value = done + unneeded;
  const spared = unneeded ? `, ${unneeded.toLocaleString("en")} no longer needed` : "";
  return `${done.toLocaleString("en")} of ${(units.length + elsewhere.total).toLocaleString("en")} done${spared}.`;
}

// The row of numbers tells which unit is shown and what was said of the others.
function showPlace(button, unit, isCurrent, isUnneeded) {
  button.dataset.value = unit.dataset.value;
  button.classList.toggle("failed", unit.classList.contains("failed"));
  button.classList.toggle("unneeded", isUnneeded);
  button.querySelector(".hidden").textContent = unit.dataset.value ? `: ${unit.dataset.value}` : "";
  if (isCurrent) button.setAttribute("aria-current", "true");
  else button.removeAttribute("aria-current");
  if (isCurrent) button.parentElement.parentElement.scrollLeft = button.offsetLeft - 100;
}

function show(text = "") {
  const wrong = wrongChains();
  let unneeded = 0;
  units.forEach((unit, number) => {
    const isUnneeded = !unit.dataset.value && !isNeeded(unit, wrong);
    unneeded += isUnneeded;
    unit.classList.toggle("unneeded", isUnneeded);
    unit.querySelector(".needless").hidden = !isUnneeded;
    unit.classList.toggle("current", number === current);
    if (places[number]) showPlace(places[number], unit, number === current, isUnneeded);
    for (const button of unit.querySelectorAll("[data-value]"))
      button.setAttribute("aria-pressed", String(button.dataset.value === unit.dataset.value));
  });
  const open = openElsewhere + units.filter(isOpen).length;
  if (openCount) openCount.textContent = `${open} of ${openCount.dataset.found} wait to be settled.`;
  const count = counted(unneeded);
  if (status) status.textContent = `${text} ${count}`.trim();
}

function moveTo(number) {
  if (!units.length) return;
  current = Math.min(Math.max(number, 0), units.length - 1);
  show();
  units[current].focus({ preventScroll: true });
  bringIntoView(units[current]);
}

// The question's place when it does not stick: under what comes before it.
function questionTop() {
  return inSight.previousElementSibling.getBoundingClientRect().bottom + scrollY;
}

// At the desk one unit is shown, and its question stands above it: on a phone first of all, as there is little room.
// In a list each has a question of its own.
function bringIntoView(unit) {
  const whole = unit.closest("section");
  if (!isSettling || !whole) return scrollTo(0, isNarrow.matches ? questionTop() : 0);
  const { top, bottom } = whole.getBoundingClientRect();
  if (top < inSight.getBoundingClientRect().bottom || bottom > innerHeight) whole.scrollIntoView({ block: "start" });
}

function moveOn() {
  const after = units.findIndex((unit, number) => number > current && isWaiting(unit));
  const any = after < 0 ? units.findIndex(isWaiting) : after;
  if (any >= 0) return moveTo(any);
  current = units.length; // a key too many changes nothing
  sayAllDone();
  desk.querySelector(".next").focus();
}

function sayAllDone() {
  if (isSettling) return show("All looked at.");
  const where = elsewhere.waiting ? "labelled on this page: Enter for the next page." : "labelled: Enter for the next question.";
  show(`All that is needed is ${where}`);
}

async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Error("the server does not answer.");
  }
  const answer = await response.json().catch(() => {
    throw new Error("the server does not answer as it should.");
  });
  if (!response.ok) throw new Error(answer.error.message);
  return answer;
}

function send(path, body) {
  const headers = { "Content-Type": "application/json", Accept: "application/json" };
  return ask(path, { method: "POST", headers, body: JSON.stringify(body) });
}

function hasFailed() {
  return units.some((unit) => unit.classList.contains("failed"));
}

function inOrder(work, describe) {
  saving = saving.then(work).then(
    () => { problem.hidden = !hasFailed(); },
    (error) => {
      problem.textContent = describe(error.message);
      problem.hidden = false;
    },
  );
  return saving;
}

function label(unit, value) {
  if (!unit || isLeaving) return;
  settledNow.add(unit);
  save(unit, value);
  moveOn();
}

function save(unit, value) {
  const given = {
    annotator: desk.dataset.annotator,
    changes: Number(desk.dataset.changes),
    question: unit.dataset.question,
    passages: JSON.parse(unit.dataset.passages),
    entities: JSON.parse(unit.dataset.entities),
    value,
    note: noteOf(unit).value.trim() || null,
    settles: isSettling,
  };
  unit.dataset.value = value;
  unit.classList.add("saving");
  noteOf(unit).dataset.sent = noteOf(unit).value;
  inOrder(() => sendLabel(unit, given), (why) => `Not saved: ${why} Label it again.`);
}

async function sendLabel(unit, given) {
  try {
    await send("/labels", [given]);
    saved.set(unit, given.value);
    unit.dataset.value = given.value;
    unit.classList.remove("failed");
    if (units.some(isWaiting)) show(`Saved “${given.value}”.`);
    else sayAllDone();
  } catch (error) {
    unit.dataset.value = saved.get(unit);
    unit.classList.add("failed");
    settledNow.delete(unit);
    moveTo(units.findIndex((one) => one.classList.contains("failed")));
    throw error;
  } finally {
    unit.classList.remove("saving");
  }
}

function undo() {
  if (isLeaving) return;
  inOrder(async () => {
    const taken = await send("/labels/undo", { annotator: desk.dataset.annotator, changes: Number(desk.dataset.changes) });
    if (!taken) return show("Nothing to undo.");
    const number = units.findIndex((unit) => isOf(unit, taken));
    if (number < 0) return leave(whereOf(taken));
    await refresh(units[number], taken);
    moveTo(number);
    show("Undone.");
  }, (why) => `Not undone: ${why}`);
}

function isOf(unit, taken) {
  const isSame = (told, parts) => JSON.stringify(JSON.parse(told)) === JSON.stringify(parts);
  return unit.dataset.question === taken.unit.question && taken.settles === isSettling &&
    isSame(unit.dataset.passages, taken.unit.passages) && isSame(unit.dataset.entities, taken.unit.entities);
}

async function refresh(unit, taken) {
  const told = await ask(`/labels?question=${encodeURIComponent(taken.unit.question)}`);
  const held = told.filter((one) => isOf(unit, one) && (isSettling || one.annotator === taken.annotator)).pop();
  unit.dataset.value = held ? held.value : "";
  noteOf(unit).value = (held && held.annotator === taken.annotator && held.note) || "";
  noteOf(unit).dataset.sent = noteOf(unit).value;
  saved.set(unit, unit.dataset.value);
  settledNow.delete(unit);
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
    isLeaving = !hasFailed();
    if (isLeaving) location.assign(path);
  });
}

function goOn() {
  const left = units.filter(isWaiting).length;
  if (isSettling || !left) return leave(elsewhere.waiting ? desk.dataset.rest : desk.dataset.next);
  show(`${left} left here; S skips this question for now.`);
}

function skip() {
  if (!isSettling) leave(desk.dataset.next);
}

function noteOf(unit) {
  return unit.querySelector(".note textarea");
}

// A note that changes goes with the label that was given already; without one it waits for it.
function saveNote(unit) {
  const note = noteOf(unit);
  if (unit.dataset.value && note.value !== (note.dataset.sent ?? note.defaultValue)) save(unit, unit.dataset.value);
}

const keys = {
  y: () => label(units[current], "yes"),
  n: () => label(units[current], "no"),
  u: () => label(units[current], "unsure"),
  j: () => moveTo(current + 1),
  k: () => moveTo(current - 1),
  ArrowRight: () => moveTo(current + 1),
  ArrowLeft: () => moveTo(current - 1),
  z: undo,
  s: skip,
  Enter: goOn,
};

document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing && event.target.matches(".note textarea")) {
    event.preventDefault();
    event.target.closest(".unit").focus();
    return;
  }
  const areOff = document.documentElement.dataset.keys === "off" || Boolean(document.querySelector("dialog[open]"));
  const isTyping = event.target.matches("input, textarea, select");
  const isPressing = event.key === "Enter" && event.target.matches("a, button, summary");
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || areOff || isTyping || isPressing) return;
  const act = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!act || !desk.dataset.annotator || (!units.length && !["Enter", "z", "s"].includes(event.key))) return;
  event.preventDefault();
  act();
});

units.forEach((unit, number) => {
  for (const button of unit.querySelectorAll("[data-value]"))
    button.addEventListener("click", () => {
      current = number;
      if (desk.dataset.annotator) label(unit, button.dataset.value);
    });
  noteOf(unit).addEventListener("change", () => {
    if (desk.dataset.annotator) saveNote(unit);
  });
});
places.forEach((button, number) => button.addEventListener("click", () => moveTo(number)));
desk.querySelector(".undo")?.addEventListener("click", undo);
desk.querySelector(".pass")?.addEventListener("click", skip);
desk.querySelector(".next")?.addEventListener("click", (event) => {
  event.preventDefault();
  goOn();
});

window.addEventListener("pageshow", () => { isLeaving = false; });

show();
if (units.length) moveTo(current);
