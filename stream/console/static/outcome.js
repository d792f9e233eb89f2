/** What came of an answer, in words: which records it counts for, what it changed, which alerts it closed. */

import { h } from "./dom.js";
import { counted, number } from "./format.js";
import { alertHref, when } from "./widgets.js";

const SHOWN = 5;

/** Of a label: `{label, closed, pinned}`. */
export function labelOutcome({ label, closed = [], pinned = 0 }, { undo, next }) {
  if (label.status === "pending") {
    return h("div", { class: "outcome" }, `Label ${label.label_seq} is sent. Waiting for the daemon to take it up with its next records…`);
  }
  if (label.status === "refused") {
    return refusal(`Label ${label.label_seq} was refused: ${label.reason || "no reason was given"}.`);
  }
  const undoes = label.target_kind === "undo";
  return h(
    "div", { class: "outcome done" },
    h("strong", null, undoes ? `Label ${label.target} is taken back` : `Label ${label.label_seq}: ${label.label}`),
    h("ul", null,
      h("li", null, `It counts from record ${number(label.from_tick)} on. Verdicts before that stay as they are.`),
      !undoes && h("li", null, `${counted(label.covered ?? 0, "referent")} relabelled; ${counted(pinned, "record")} kept as examples of it (pinned).`),
      !undoes && h("li", null, closed.length ? closedLinks(closed) : "No alert was closed by it.")),
    h("div", { class: "outcome-actions" },
      !undoes && label.undone_by === null && h("button", { type: "button", class: "small", onclick: undo }, "Undo"),
      h("button", { type: "button", class: "small", onclick: next }, "Next to answer")),
  );
}

function closedLinks(closed) {
  const more = closed.length - SHOWN;
  return [
    `${counted(closed.length, "alert")} closed:`,
    closed.slice(0, SHOWN).map((alert) => h("a", { class: "cut", href: alertHref(alert.id), title: alert.summary }, alert.summary)),
    more > 0 && `and ${number(more)} more`,
  ];
}

/** Of a mute. */
export function muteOutcome(rule, { remove, next }) {
  return h(
    "div", { class: "outcome done" },
    h("strong", null, `Rule ${rule.id} hides this `, rule.until < 0 ? "until it is removed" : ["until ", when(rule.until)]),
    h("p", null, `It matches ${ruleWords(rule)}. What it hides is counted.`),
    h("div", { class: "outcome-actions" },
      h("button", { type: "button", class: "small", onclick: remove }, "Remove"),
      h("button", { type: "button", class: "small", onclick: next }, "Next to answer")),
  );
}

/** What a rule matches, in words. */
export function ruleWords(rule) {
  const names = ["source", "destination", "address", "port", "cluster", "label", "attribute"];
  const given = names.filter((name) => rule[name] !== "" && rule[name] !== null && rule[name] !== undefined);
  return given.map((name) => `${name} ${rule[name]}`).join(" and ");
}

/** Why something was not done. */
export function refusal(words) {
  return h("div", { class: "outcome bad", role: "alert" }, h("strong", null, "Not done"), h("p", null, words));
}
