// Keys of all pages: / searches, j and k go on and back, ? helps. A page's own script comes first and may take a key.
"use strict";
const help = document.querySelector("#help");
const opener = document.querySelector(".keys-button");
const switcher = document.querySelector("#keys-on");
const TYPING = "input, textarea, select, [contenteditable]";
const OFF = "rechain.keys.off"; // what is spoken to a browser arrives as keys too, so they can be turned off

function areOff() {
  try {
    return Boolean(localStorage.getItem(OFF));
  } catch {
    return false; // no storage: the keys are on in each new page
  }
}

function turn(isOn) {
  try {
    if (isOn) localStorage.removeItem(OFF);
    else localStorage.setItem(OFF, "1");
  } catch { /* it lasts as long as this page */ }
}

function search() {
  const field = document.querySelector("input[type=search][aria-keyshortcuts], input[type=search]");
  if (field) field.select();
  else location.assign("/#search");
}

function follow(relation) {
  document.querySelector(`main a[rel=${relation}]`)?.click();
}

// In a list the keys go from entry to entry, and past its ends to the next page or the one before.
function move(step, isHeld) {
  const entries = [...document.querySelectorAll("main .questions > li")].map((one) => one.querySelector("a"));
  const links = entries.filter(Boolean);
  const relation = step > 0 ? "next" : "prev";
  if (!links.length) return isHeld ? undefined : follow(relation);
  const here = links.findIndex((one) => one.closest("li").contains(document.activeElement));
  const wanted = here < 0 ? (step > 0 ? 0 : links.length - 1) : here + step;
  if (links[wanted]) links[wanted].focus();
  else if (!isHeld) follow(relation);
}

function showHelp() {
  switcher.checked = !areOff();
  help.showModal();
}

const actions = {
  "/": search,
  j: (isHeld) => move(1, isHeld),
  k: (isHeld) => move(-1, isHeld),
  "?": showHelp,
};

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (help.open || event.target.matches(TYPING) || areOff()) return;
  const act = actions[event.key];
  if (!act || (event.repeat && !["j", "k"].includes(event.key))) return;
  event.preventDefault();
  act(event.repeat);
});

opener.hidden = false;
opener.addEventListener("click", showHelp);
switcher.addEventListener("change", () => turn(switcher.checked));
if (location.hash === "#search") search();
