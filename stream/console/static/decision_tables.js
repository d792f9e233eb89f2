/** Labels, rules and the audit trail as tables. */

import { h } from "./dom.js";
import { number } from "./format.js";
import { ruleWords } from "./outcome.js";
import { alertHref, clusterHref, table, when } from "./widgets.js";

/** Labels; with `undo(row)` each that is in force has a button. */
export function decisionRows(labels, undo = null) {
  if (!labels?.length) return h("p", { class: "note" }, "None so far.");
  const columns = [
    { name: "When", cell: (row) => when(row.created), class: "nowrap" },
    { name: "Label", class: "nowrap", cell: (row) => h("strong", null, row.target_kind === "undo" ? `undo of ${row.target}` : row.label) },
    undo && { name: "Of", cell: targetLink, class: "nowrap" },
    { name: "By", cell: (row) => row.by, class: "wrap" },
    { name: "Came of it", cell: cameOfIt },
    undo && { name: "Why", cell: (row) => row.why, class: "wrap" },
    undo && { name: "Change", cell: (row) => canUndo(row) && button("Undo", `label ${row.label_seq}`, () => undo(row)) },
  ].filter(Boolean);
  return table("Labels", columns, labels, { cards: true });
}

function button(text, what, run) {
  return h("button", { type: "button", class: "small", "aria-label": `${text} ${what}`, onclick: run }, text);
}

function canUndo(row) {
  return row.target_kind !== "undo" && row.undone_by === null && row.status !== "refused";
}

function targetLink({ target_kind: kind, target }) {
  if (kind === "alert") return h("a", { href: alertHref(target) }, target);
  if (kind === "cluster") return h("a", { href: clusterHref(target) }, `cluster ${target}`);
  return kind === "undo" ? `label ${target}` : `record ${target}`;
}

function cameOfIt(row) {
  if (row.status === "pending") return h("span", { class: "tag" }, "waiting");
  if (row.status === "refused") return [h("span", { class: "tag bad" }, "refused"), ` ${row.reason}`];
  const stands = row.undone_by === null;
  const words = ` from record ${number(row.from_tick)} on, ${number(row.covered ?? 0)} referents`;
  return [
    h("span", { class: stands ? "tag done" : "tag" }, stands ? "applied" : "undone"),
    words, !stands && `, undone by ${row.undone_by}`,
  ];
}

/** Rules that hide alerts; `remove(rule)` for those that can be. */
export function ruleRows(rules, remove) {
  if (!rules?.length) return h("p", { class: "note" }, "Nothing is muted.");
  const columns = [
    { name: "Rule", cell: (rule) => h("strong", null, rule.id) },
    { name: "Matches", cell: ruleWords, class: "wrap" },
    { name: "Until", cell: (rule) => (rule.until < 0 ? "it is removed" : when(rule.until)), class: "nowrap" },
    { name: "Reason", cell: (rule) => rule.reason, class: "wrap" },
    { name: "By", cell: (rule) => rule.by, class: "wrap" },
    { name: "Hidden", cell: (rule) => number(rule.hidden), class: "num" },
    { name: "Change", cell: (rule) => (rule.active
      ? button("Remove", `rule ${rule.id}`, () => remove(rule))
      : h("span", { class: "tag" }, rule.removed_at === null ? "over" : "removed")) },
  ];
  return table("Rules", columns, rules, { cards: true });
}

/** Who did what. */
export function auditRows(rows) {
  if (!rows?.length) return h("p", { class: "note" }, "Nothing yet.");
  const columns = [
    { name: "When", cell: (row) => when(row.created), class: "nowrap" },
    { name: "What", cell: (row) => row.what, class: "wrap" },
    { name: "By", cell: (row) => row.by, class: "wrap" },
    { name: "Why", cell: (row) => row.why, class: "wrap" },
    { name: "Result", cell: (row) => row.result, class: "wrap" },
  ];
  return table("Audit trail", columns, rows, { cards: true });
}
