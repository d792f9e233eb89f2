/** The two answers that need more than a click: which attack it is, and what to mute for how long. */

import { get } from "./api.js";
import { h } from "./dom.js";

const NAME = "[A-Za-z0-9_.\\-]{1,64}";
const UNTIL = [["1h", "1 hour"], ["8h", "8 hours"], ["1d", "1 day"], ["7d", "7 days"], ["", "until removed"]];
const DEFAULT_UNTIL = "8h";
const LONGEST_REASON = 500;
const ADDRESS = /^[0-9A-Fa-f:.]+$/;

/** Ask for the attack's name. */
export function attackDialog(target, alert, done) {
  const known = alert?.kind === "known_attack" ? alert.label : "";
  const name = h("input", {
    id: "attack-name", list: "attack-names", required: true, pattern: NAME, value: known, autocomplete: "off", spellcheck: "false",
    title: "1 to 64 letters, digits, _ . or -", "aria-describedby": "attack-hint",
  });
  const names = h("datalist", { id: "attack-names" });
  suggest(names, alert);
  show("What attack is it?", [
    h("label", { for: "attack-name" }, "Name"), name, names,
    h("p", { class: "note", id: "attack-hint" }, "Letters, digits, _ . or -. Later records that link to these are then told as this attack."),
  ], "Save", () => done(name.value.trim()));
  name.select();
}

/** Names that are in use already. */
async function suggest(list, alert) {
  const found = new Set((alert?.labels ?? []).map((count) => count.value));
  try {
    for (const cluster of (await get("clusters", { limit: 200 })).clusters) found.add(cluster.label);
  } catch {
    // Suggestions only: without them a name can be typed all the same.
  }
  const good = [...found].filter((name) => new RegExp(`^${NAME}$`).test(name) && !["normal", "novel"].includes(name));
  list.append(...good.map((name) => h("option", { value: name })));
}

/** Ask what to mute, until when, and why. */
export function muteDialog(target, alert, done) {
  const conditions = possible(target, alert).map(condition);
  const radio = (value) => h("input", { type: "radio", name: "until", value, checked: value === DEFAULT_UNTIL });
  const until = UNTIL.map(([value, text]) => h("label", { class: "check" }, radio(value), text));
  const reason = h("input", { id: "mute-reason", required: true, maxlength: LONGEST_REASON, autocomplete: "off" });
  const trouble = h("p", { class: "trouble", role: "alert" });
  const fields = h(
    "fieldset", null, h("legend", null, "Hide records that match all of"),
    conditions.map((one) => one.element),
  );
  const dialog = show("Mute", [
    fields, trouble,
    h("fieldset", null, h("legend", null, "Until"), h("div", { class: "choices" }, until)),
    h("label", { for: "mute-reason" }, "Reason"), reason,
    h("p", { class: "note" }, "For those who come later: why is it not worth hearing of?"),
  ], "Mute", () => {
    const rule = Object.fromEntries(conditions.filter((one) => one.chosen()).map((one) => [one.name, one.value()]));
    if (!Object.keys(rule).length) {
      trouble.textContent = "Tick what to match: a rule for everything is not allowed.";
      return false;
    }
    done({ ...rule, until: dialog.querySelector("[name=until]:checked").value, reason: reason.value.trim() });
    return true;
  });
  reason.focus();
}

/** What a rule could match, and whether that is a sensible start: the entity and the label. */
function possible(target, alert) {
  const cluster = target.startsWith("cluster:") ? target.slice("cluster:".length) : alert?.clusters?.[0];
  const found = [];
  for (const kind of ["source", "destination"]) {
    const entity = alert?.entity_kind === kind;
    const value = entity ? alert.entity : alert?.[`${kind}s`]?.[0]?.value;
    if (value && ADDRESS.test(value)) found.push({ name: kind, value, chosen: entity });
  }
  const byAddress = found.some((one) => one.chosen);
  if (cluster !== undefined) found.push({ name: "cluster", value: String(cluster), chosen: !byAddress });
  if (alert?.label) found.push({ name: "label", value: alert.label, chosen: true });
  return found;
}

function condition({ name, value, chosen }) {
  const tick = h("input", { type: "checkbox", checked: chosen });
  const input = h("input", { value, "aria-label": `${name} to match`, spellcheck: "false", oninput: () => { tick.checked = true; } });
  return {
    name,
    element: h("div", { class: "condition" }, h("label", { class: "check" }, tick, name), input),
    chosen: () => tick.checked && input.value.trim() !== "",
    value: () => (name === "cluster" ? Number(input.value) : input.value.trim()),
  };
}

/** A dialog with a form; it closes when `done` does not say false. */
function show(name, content, action, done) {
  const submit = (event) => {
    event.preventDefault();
    if (done() !== false) dialog.close();
  };
  const dialog = h(
    "dialog", { class: "dialog", "aria-labelledby": "dialog-title", onclose: () => dialog.remove() },
    h("form", { onsubmit: submit },
      h("h2", { id: "dialog-title" }, name), content,
      h("div", { class: "dialog-actions" },
        h("button", { type: "button", class: "quiet", onclick: () => dialog.close() }, "Cancel"),
        h("button", { type: "submit", class: "primary" }, action))),
  );
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}
