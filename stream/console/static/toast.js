/** Short messages at the edge of the page, told to screen readers too. */

import { h } from "./dom.js";

const SHOWN_MS = 6000;
const WITH_ACTION_MS = 12_000;
const MOST = 4;

/** Take back messages that offer something which is no longer to be had. */
export function dropActions() {
  for (const item of document.querySelectorAll("#toasts .offers")) item.remove();
}

/** Show a message; `action` is `{text, run}`: a button in it. `kind` "error" stays until it is dismissed. */
export function toast(text, { action = null, kind = "" } = {}) {
  const place = document.getElementById("toasts");
  const act = () => {
    item.remove();
    action.run();
  };
  const item = h(
    "div", { class: `toast ${kind} ${action ? "offers" : ""}` },
    h("span", null, text),
    action && h("button", { type: "button", onclick: act }, action.text),
    h("button", { type: "button", class: "quiet icon", "aria-label": "Dismiss", onclick: () => item.remove() }, "×"),
  );
  place.append(item);
  while (place.children.length > MOST) place.firstElementChild.remove();
  if (kind !== "error") setTimeout(() => item.remove(), action ? WITH_ACTION_MS : SHOWN_MS);
  return item;
}
