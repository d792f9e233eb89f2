/** The list of alerts: those to answer, the most telling first, or all of them, searched and filtered by the address. */

import { events, explain, get } from "./api.js";
import { clear, h } from "./dom.js";
import { counted, number } from "./format.js";
import { bindPage } from "./keys.js";
import { SEVERITIES, alertRow, failed, throttled } from "./widgets.js";

export const title = "Alerts";

const LIMIT = 200;
const TYPING_MS = 250;
const REFRESH_MS = 1500;
const STATES = [["", "any state"], ["open", "open"], ["closed", "closed"]];
const SINCE = [["", "any time"], ["1h", "last hour"], ["24h", "last 24 hours"], ["7d", "last 7 days"], ["30d", "last 30 days"]];

/** Show the page. */
export async function mount(main, { query }) {
  const view = query.view === "all" ? "all" : "backlog";
  const filters = { text: "", state: "", severity: "", since: "", ...query };
  const news = h("button", { type: "button", class: "news primary", hidden: true, onclick: () => show(coming) });
  const list = h("ol", { class: "rows" });
  const summary = h("p", { class: "note", role: "status" });
  const panel = h("section", { class: "panel", "aria-label": "Alerts" }, list);
  let rows = new Map();
  let coming = [];

  async function fetchEntries() {
    if (view === "backlog") {
      const { backlog } = await get("backlog", { limit: LIMIT });
      return backlog.filter((entry) => matches(entry.alert, filters));
    }
    const { text, state, severity, since } = filters;
    const found = await get("alerts", { text, state: state || "all", severity, since, limit: LIMIT, brief: "true" });
    return found.alerts.map((alert) => ({ alert }));
  }

  function show(entries) {
    rows = new Map(entries.map((entry) => [entry.alert.id, { entry, element: rowOf(entry) }]));
    clear(list).append(...[...rows.values()].map((row) => row.element));
    if (!entries.length) list.append(h("li", { class: "empty" }, nothing(view, filters)));
    coming = entries;
    news.hidden = true;
    summary.textContent = `${entries.length >= LIMIT ? `the first ${number(LIMIT)} alerts` : counted(entries.length, "alert")}`;
  }

  /** Update rows where they stand; what is new waits behind a button, what is gone stays until it is pressed. */
  function merge(entries) {
    const ids = new Set(entries.map((entry) => entry.alert.id));
    for (const [id, row] of rows) row.element.classList.toggle("gone", !ids.has(id));
    for (const entry of entries) if (rows.has(entry.alert.id)) replace(entry);
    coming = entries;
    const fresh = entries.filter((entry) => !rows.has(entry.alert.id)).length;
    if (!rows.size) return show(entries);
    news.hidden = !fresh;
    news.textContent = `Show ${number(fresh)} new`;
    return undefined;
  }

  function replace(entry) {
    const row = rows.get(entry.alert.id);
    if (JSON.stringify(row.entry) === JSON.stringify(entry)) return;
    const element = rowOf(entry);
    const focused = row.element.contains(document.activeElement);
    element.classList.add("changed");
    row.element.replaceWith(element);
    if (focused) element.querySelector("a").focus({ preventScroll: true });
    rows.set(entry.alert.id, { entry, element });
  }

  async function load() {
    try {
      show(await fetchEntries());
    } catch (error) {
      clear(list).append(h("li", null, failed(explain(error), load)));
    }
  }

  const refresh = throttled(() => fetchEntries().then(merge, () => {}), REFRESH_MS);
  const onAlert = ({ action, alert }) => {
    const row = rows.get(alert.id);
    if (row) replace({ ...row.entry, alert: withDecisions(alert, row.entry.alert) });
    if (view === "backlog" || !row || action === "close") refresh();
  };
  const ends = [events.on("alert", onAlert), ...["label", "rules", "fresh"].map((type) => events.on(type, refresh)), refresh.end];

  main.append(
    h("div", { class: "page-head" }, h("h1", null, "Alerts"), viewSwitch(view, filters)),
    filterBar(view, filters, load), summary, news, panel,
  );
  bindMoves(list);
  await load();
  return () => ends.forEach((end) => end());
}

/** An event does not say what people decided: that stays as it was fetched. */
function withDecisions(alert, known) {
  return { ...alert, answer: alert.answer ?? known.answer, muted_by: alert.muted_by || known.muted_by };
}

function rowOf(entry) {
  return alertRow(entry.alert, entry.settles_alerts === undefined ? null : entry);
}

function nothing(view, filters) {
  const filtered = filters.text || filters.severity || filters.since || filters.state;
  if (filtered) return "No alert is like that. Take a filter away to see more.";
  return view === "backlog" ? "Nothing to answer." : "No alerts yet.";
}

/** Whether an alert of the backlog is one that the filters ask for. */
function matches(alert, { text, severity }) {
  const words = `${alert.id} ${alert.summary} ${alert.label} ${alert.entity}`.toLowerCase();
  return (!severity || alert.severity === severity) && words.includes(text.trim().toLowerCase());
}

function viewSwitch(view, filters) {
  const go = (name) => () => { location.hash = address(name, filters); };
  const button = (name, text) => h("button", { type: "button", "aria-pressed": String(view === name), onclick: go(name) }, text);
  return h("div", { class: "switch", role: "group", "aria-label": "Which alerts" }, button("backlog", "To answer"), button("all", "All"));
}

function address(view, { text, state, severity, since }) {
  const given = Object.entries({ view: view === "all" ? "all" : "", text, severity, ...(view === "all" ? { state, since } : {}) });
  const query = new URLSearchParams(given.filter(([, value]) => value)).toString();
  return query ? `#/alerts?${query}` : "#/alerts";
}

/** Search and filters. They change the address in place, so that it can be kept and sent to others. */
function filterBar(view, filters, load) {
  let typing = 0;
  const change = (name, value) => {
    filters[name] = value;
    history.replaceState(null, "", address(view, filters));
    load();
  };
  const search = h("input", {
    type: "search", placeholder: "Search: address, label, words", "aria-label": "Search alerts", value: filters.text, maxlength: 200,
  });
  search.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => search.isConnected && change("text", search.value), TYPING_MS);
  });
  bindPage("/", "Search", () => search.focus());
  const choice = (name, label, options) => h(
    "label", null, label,
    h("select", { onchange: (event) => change(name, event.target.value) },
      options.map(([value, text]) => h("option", { value, selected: filters[name] === value }, text))));
  return h(
    "div", { class: "filters", role: "search" }, search,
    choice("severity", "Severity", [["", "any"], ...SEVERITIES.map((name) => [name, name])]),
    view === "all" && choice("state", "State", STATES),
    view === "all" && choice("since", "Since", SINCE),
  );
}

/** j and k go down and up the list. */
function bindMoves(list) {
  const move = (by) => () => {
    const links = [...list.querySelectorAll(".what a")];
    const at = links.indexOf(document.activeElement);
    const next = at < 0 ? (by > 0 ? 0 : links.length - 1) : Math.min(links.length - 1, Math.max(0, at + by));
    links[next]?.focus();
  };
  bindPage("j", "Next alert; Enter opens it", move(1));
  bindPage("k", "Alert before", move(-1));
}
