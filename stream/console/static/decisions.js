/** What people decided: labels and how to undo them, mutes and how to remove them, and the whole trail. */

import { del, events, explain, get, post } from "./api.js";
import { auditRows, decisionRows, ruleRows } from "./decision_tables.js";
import { clear, h } from "./dom.js";
import { ready, refused } from "./signin.js";
import { toast } from "./toast.js";
import { failed, throttled } from "./widgets.js";

export const title = "Decisions";

const FIRST = 25;
const MOST = 1000;
const REFRESH_MS = 1000;

/** Show the page. */
export async function mount(main) {
  const labels = panel("Labels", (found) => decisionRows(found.labels, undo), (limit) => get("labels", { newest: "true", limit }));
  const past = h("input", { type: "checkbox", onchange: () => rules.load() });
  const fetchRules = (limit) => get("suppressions", { all: past.checked ? "true" : "", limit });
  const rules = panel("Mutes", (found) => ruleRows(found.suppressions, remove), fetchRules);
  rules.head.append(h("label", { class: "check" }, past, "those that are over, too"));
  const audit = panel("Audit trail", (found) => auditRows(found.audit), (limit) => get("audit", { limit }));
  const load = () => Promise.all([labels.load(), rules.load(), audit.load()]);

  async function change(work, words) {
    const by = await ready();
    if (!by) return;
    try {
      await work(by);
      toast(words);
    } catch (error) {
      toast(explain(error), { kind: "error" });
      if (error.status === 401) refused(explain(error));
    }
    refresh();
  }
  function undo(row) {
    change((by) => post(`labels/${row.label_seq}/undo`, { by, why: "" }), `Label ${row.label_seq} is being taken back.`);
  }
  function remove(rule) {
    change((by) => del(`suppressions/${encodeURIComponent(rule.id)}`, { by, why: "" }), `Rule ${rule.id} is removed.`);
  }

  const refresh = throttled(load, REFRESH_MS);
  const ends = [events.on("label", refresh), events.on("rules", refresh), events.on("fresh", refresh), refresh.end];
  main.append(h("h1", null, "Decisions"), labels.element, rules.element, audit.element);
  await load();
  return () => ends.forEach((end) => end());
}

/** A part of the page that fetches what it shows; drawn anew only when that has changed. */
function panel(name, draw, fetchIt) {
  const body = h("div", null, h("p", { class: "loading" }, "Loading…"));
  const head = h("div", { class: "panel-head" }, h("h2", null, name));
  const extend = () => {
    limit = Math.min(MOST, limit * 4);
    load();
  };
  const more = h("button", { type: "button", class: "small", hidden: true, onclick: extend }, "Show more");
  let limit = FIRST;
  let said = "";
  const load = async () => {
    try {
      const found = await fetchIt(limit);
      const next = JSON.stringify(found);
      if (next !== said) clear(body).append(draw(found));
      more.hidden = limit >= MOST || Object.values(found)[0].length < limit;
      said = next;
    } catch (error) {
      said = "";
      clear(body).append(failed(explain(error), load));
    }
  };
  return { element: h("section", { class: "panel", "aria-label": name }, head, body, more), head, load };
}
