/** Keyboard shortcuts: single keys, off while someone types, listed by `?`, and to be switched off by who does not want them. */

import { h } from "./dom.js";

const OFF = "netclust.keys";
const SEQUENCE_MS = 1200;
const everywhere = new Map();
const page = new Map();
let leader = "";
let leaderAt = 0;

/** A shortcut for all pages. Two keys after each other are written with a space: "g a". */
export function bindGlobal(keys, says, run) {
  everywhere.set(keys, { says, run });
}

/** A shortcut of the page that is shown; it ends with the page. */
export function bindPage(keys, says, run) {
  page.set(keys, { says, run });
}

/** Forget what the page bound. */
export function clearPage() {
  page.clear();
}

/** Listen. */
export function startKeys() {
  bindGlobal("?", "Show these shortcuts", showKeys);
  document.addEventListener("keydown", pressed);
}

/** The list, in a dialog. */
export function showKeys() {
  const enabled = h("input", { type: "checkbox", checked: !isOff(), onchange: (event) => setOff(!event.target.checked) });
  const dialog = h(
    "dialog", { class: "dialog", "aria-labelledby": "keys-title", onclose: () => dialog.remove() },
    h("h2", { id: "keys-title" }, "Keyboard shortcuts"),
    h("dl", { class: "keys" }, rows(page), rows(everywhere)),
    h("label", { class: "check" }, enabled, " Use single-key shortcuts"),
    h("div", { class: "dialog-actions" }, h("button", { type: "button", onclick: () => dialog.close() }, "Close")),
  );
  document.body.append(dialog);
  dialog.showModal();
}

function rows(bindings) {
  return [...bindings].map(([keys, { says }]) =>
    h("div", null, h("dt", null, keys.split(" ").map((key) => h("kbd", null, key))), h("dd", null, says)));
}

function pressed(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isOff()) return;
  if (document.querySelector("dialog[open]") || typing(event.target)) return;
  const sequence = leader && event.timeStamp - leaderAt < SEQUENCE_MS ? `${leader} ${event.key}` : event.key;
  leader = "";
  const found = page.get(sequence) ?? everywhere.get(sequence);
  if (found) {
    event.preventDefault();
    found.run(event);
  } else if ([...page.keys(), ...everywhere.keys()].some((keys) => keys.startsWith(`${event.key} `))) {
    [leader, leaderAt] = [event.key, event.timeStamp];
  }
}

function typing(target) {
  return target instanceof Element && (target.closest("input, textarea, select") || target.isContentEditable);
}

function isOff() {
  return localStorage.getItem(OFF) === "off";
}

function setOff(off) {
  if (off) localStorage.setItem(OFF, "off");
  else localStorage.removeItem(OFF);
}
