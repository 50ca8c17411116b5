// Keys of all pages: / searches, j and k go on and back, ? helps. A page's own script comes first and may take a key.
const KEYS = [
  [["/"], "search"],
  [["J", "K"], "next and previous: entry of a list, question, page"],
  [["Enter"], "open the entry"],
  [["?"], "this help; Esc closes it"],
];
const TYPING = "input, textarea, select, [contenteditable]";
const OFF = "rechain.keys.off"; // what is spoken to a browser may arrive as keys, so they can be turned off
let help = null;

function areOff() {
  try {
    return Boolean(localStorage.getItem(OFF));
  } catch {
    return false; // no storage: the keys are on in every new page
  }
}

function turn(isOn) {
  document.documentElement.dataset.keys = isOn ? "on" : "off"; // for the keys of a page itself
  try {
    if (isOn) localStorage.removeItem(OFF);
    else localStorage.setItem(OFF, "yes");
  } catch { /* nothing to keep it in */ }
}

function search() {
  const field = document.querySelector("input[type=search][name=text]") || document.querySelector("input[type=search]");
  if (field) field.select();
  else location.assign("/#search");
}

function follow(relation) {
  document.querySelector(`main a[rel=${relation}]`)?.click();
}

// In a list the keys go from entry to entry, and past its ends to the next page or the one before.
function move(step, isHeld) {
  const links = [...document.querySelectorAll("main :is(.questions > li, .questions > tbody > tr)")].map((one) => one.querySelector("a")).filter(Boolean);
  const here = links.findIndex((one) => one.closest("li, tr").contains(document.activeElement));
  const wanted = links[here < 0 && step < 0 ? -1 : here + step];
  if (wanted) wanted.focus();
  else if (!isHeld) follow(step > 0 ? "next" : "prev");
}

function element(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

// What the page itself says of its own keys, as the desk does, is part of the help.
function keyList() {
  const rows = KEYS.flatMap(([keys, text]) => [
    element("dt", {}, ...keys.flatMap((key) => [element("kbd", { textContent: key }), " "])),
    element("dd", { textContent: text }),
  ]);
  const own = [...document.querySelectorAll(".keyboard .keys > *")].map((one) => one.cloneNode(true));
  return element("dl", { className: "keys" }, ...rows, ...own);
}

function makeHelp() {
  const heading = element("h2", { id: "help-heading", textContent: "Keys" });
  const box = element("input", { type: "checkbox" });
  const form = element("form", { method: "dialog" }, element("button", { textContent: "Close" }));
  const choice = element("label", {}, box, " Keys without Ctrl or Alt are on");
  const dialog = element("dialog", { id: "help" }, heading, keyList(), element("p", {}, choice), form);
  dialog.setAttribute("aria-labelledby", heading.id);
  box.addEventListener("change", () => turn(box.checked));
  document.body.append(dialog);
  return dialog;
}

function showHelp() {
  help ||= makeHelp();
  help.querySelector("input").checked = !areOff();
  help.showModal();
}

const actions = { "/": search, j: (isHeld) => move(1, isHeld), k: (isHeld) => move(-1, isHeld), "?": showHelp };

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (help?.open || event.target.matches(TYPING) || areOff()) return;
  const act = actions[event.key];
  if (!act || (event.repeat && act !== actions.j && act !== actions.k)) return;
  event.preventDefault();
  act(event.repeat);
});

const opener = element("button", { type: "button", className: "as-link" }, "Keys ", element("kbd", { textContent: "?" }));
opener.addEventListener("click", showHelp);
document.querySelector("footer").append(" ", opener);
document.documentElement.dataset.keys = areOff() ? "off" : "on";
if (location.hash === "#search") search();
