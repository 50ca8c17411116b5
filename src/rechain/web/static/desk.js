// Labelling by keyboard: picks evidence, or judges one pair; a verdict saves and opens what comes next.
const desk = document.querySelector(".desk");
const problem = desk.querySelector(".problem");
const status = desk.querySelector("[role=status]");
const picks = [...desk.querySelectorAll(".pick")];
const nothing = desk.querySelector(".nothing");
const shapes = [...desk.querySelectorAll("button[data-shape]")];
const verdicts = [...desk.querySelectorAll("[data-value]")];
const TEN = 10;
const known = new Set(picks.map((button) => button.dataset.passage));
let picked = JSON.parse(desk.dataset.picked ?? "[]").filter((name) => known.has(name));
let shape = desk.dataset.shape === "single" ? "chain" : desk.dataset.shape ?? "chain";
let first = 0; // of the ten passages that numbers pick
let isBusy = false;

function show() {
  picks.forEach((button, number) => {
    const place = picked.indexOf(button.dataset.passage);
    const key = number >= first && number < first + TEN ? String((number + 1) % TEN) : "";
    button.querySelector("kbd").textContent = key;
    button.querySelector("kbd").hidden = !key;
    button.querySelector(".place-in").textContent = place < 0 ? "" : shape === "chain" ? ` ${place + 1}.` : " ✓";
    button.setAttribute("aria-pressed", String(place >= 0));
    button.closest("li").classList.toggle("is-picked", place >= 0);
  });
  const row = desk.querySelector("[data-shapes]");
  if (row) row.hidden = picked.length < 2;
  for (const button of shapes) button.setAttribute("aria-pressed", String(button.dataset.shape === shape));
  if (!picks.length) return;
  const isNothing = nothing.getAttribute("aria-pressed") === "true";
  const names = picked.map((name) => picks.findIndex((button) => button.dataset.passage === name) + 1);
  if (picked.length) status.textContent = `passage ${names.join(shape === "chain" ? " → " : " | ")}`;
  else status.textContent = isNothing ? "nothing supports it" : "Pick the passages that support the answer.";
}

function pick(name) {
  picked = picked.includes(name) ? picked.filter((one) => one !== name) : [...picked, name];
  nothing.setAttribute("aria-pressed", "false");
  show();
}

function pickNothing() {
  picked = [];
  nothing?.setAttribute("aria-pressed", "true");
  show();
}

function turnShape() {
  const names = shapes.map((button) => button.dataset.shape);
  shape = names[(names.indexOf(shape) + 1) % names.length];
  show();
}

function turnTen(step) {
  const next = first + step * TEN;
  if (next < 0 || next >= picks.length) return;
  first = next;
  show();
  picks[first].closest("li").scrollIntoView({ block: "start" });
}

async function send(path, body) {
  let response;
  try {
    const headers = { "Content-Type": "application/json", Accept: "application/json" };
    response = await fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
  } catch {
    throw new Error("the server does not answer.");
  }
  const answer = await response.json().catch(() => {
    throw new Error("the server sent something other than JSON.");
  });
  if (!response.ok) throw new Error(answer.error.message);
  return answer;
}

const who = { annotator: desk.dataset.annotator, changes: Number(desk.dataset.changes) };

// One request at a time; the page changes once the server has answered, so that nothing is left unsaved.
async function busy(work, what) {
  if (isBusy) return;
  isBusy = true;
  problem.hidden = true;
  try {
    await work();
  } catch (error) {
    problem.textContent = `${what}: ${error.message}`;
    problem.hidden = false;
    isBusy = false;
  }
}

function label(value) {
  if (picks.length && !picked.length && (value === "supported" || value === "partly")) {
    problem.textContent = "Pick the passages first, or choose another verdict.";
    problem.hidden = false;
    return;
  }
  const evidence = picked.length ? [{ shape: picked.length > 1 ? shape : "single", passages: picked }] : [];
  const unit = JSON.parse(desk.dataset.unit ?? "{}");
  const note = desk.querySelector("[name=note]").value.trim() || null;
  const settles = "settles" in desk.dataset;
  for (const button of verdicts) button.setAttribute("aria-pressed", String(button.dataset.value === value));
  busy(async () => {
    await send("/labels", [{ ...who, question: desk.dataset.question, ...unit, value, evidence, note, settles }]);
    location.assign(desk.dataset.next);
  }, "Not saved");
}

function undo() {
  busy(async () => {
    const taken = await send("/labels/undo", who);
    if (!taken) throw new Error("there is no label to undo.");
    const { question, passages } = taken.unit;
    const mode = passages.length ? "&mode=pairs" : "";
    location.assign(taken.settles ? "/label/disagreements" : `/label/question?id=${encodeURIComponent(question)}${mode}`);
  }, "Not undone");
}

const keys = { z: undo, b: turnShape, n: pickNothing, ArrowRight: () => turnTen(1), ArrowLeft: () => turnTen(-1) };
for (const link of desk.querySelectorAll("a[aria-keyshortcuts]")) keys[link.getAttribute("aria-keyshortcuts").toLowerCase()] = () => link.click();
for (const button of verdicts) {
  keys[button.getAttribute("aria-keyshortcuts").toLowerCase()] = () => label(button.dataset.value);
  button.addEventListener("click", () => label(button.dataset.value));
}
picks.forEach((button) => button.addEventListener("click", () => pick(button.dataset.passage)));
for (const button of shapes) button.addEventListener("click", () => { shape = button.dataset.shape; show(); });
nothing?.addEventListener("click", pickNothing);
desk.querySelector(".undo").addEventListener("click", undo);

document.addEventListener("keydown", (event) => {
  const areOff = document.documentElement.dataset.keys === "off" || Boolean(document.querySelector("dialog[open]"));
  const isTyping = event.target.matches("input, textarea, select");
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || areOff || isTyping || isBusy) return;
  const digit = "1234567890".indexOf(event.key);
  const act = digit >= 0 && picks.length ? () => picks[first + digit]?.click() : keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

window.addEventListener("pageshow", () => { isBusy = false; });
show();
desk.dataset.ready = "yes";
