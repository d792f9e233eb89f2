/** Small parts that several pages show: severities, times, alerts in a row, tables, bars, things to copy. */

import { clean, h, svg } from "./dom.js";
import { clock, counted, number, span, stamp } from "./format.js";
import { toast } from "./toast.js";

export const SEVERITIES = ["low", "medium", "high", "critical"];
const CLOSED = { quiet: "went quiet", stopped: "daemon stopped", label: "answered", limit: "too many alerts" };
const SHAPES = {
  low: () => svg("circle", { class: "hollow", cx: 8, cy: 8, r: 5.5 }),
  medium: () => svg("path", { d: "M8 2.5 14 13.5H2Z" }),
  high: () => svg("path", { d: "M8 1.5 14.5 8 8 14.5 1.5 8Z" }),
  critical: () => [
    svg("path", { d: "M5 1.5h6L14.5 5v6L11 14.5H5L1.5 11V5Z" }),
    svg("path", { class: "cutout", d: "M7 3.5h2v6H7zM7 10.7h2v2H7z" }),
  ],
};
const COPIED_MS = 1800;
export const SHORTEST = 1e6; // ns that are worth telling as a duration

/** A severity as a shape and a word. */
export function severity(name) {
  const known = SEVERITIES.includes(name) ? name : "low";
  const shape = svg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, SHAPES[known]());
  return h("span", { class: `severity ${known}` }, shape, name);
}

/** The worst severity of some. */
export function worst(names) {
  return SEVERITIES[Math.max(-1, ...names.map((name) => SEVERITIES.indexOf(name)))] ?? "";
}

/** A time: short, with the whole of it on hover. */
export function when(ns) {
  return h("time", { class: "nowrap", title: stamp(ns), datetime: ns >= 0 ? new Date(ns / 1e6).toISOString() : null }, clock(ns));
}

/** Where the page of an alert is. */
export function alertHref(id) {
  return `#/alerts/${encodeURIComponent(id)}`;
}

/** Where the page of a cluster is. */
export function clusterHref(id) {
  return `#/clusters/${encodeURIComponent(id)}`;
}

/** Whether an alert is open, closed, answered or muted. */
export function stateTags(alert) {
  const { answer } = alert;
  return [
    alert.state === "open"
      ? h("span", { class: "tag open" }, "open")
      : h("span", { class: "tag" }, `closed: ${CLOSED[alert.closed_by] ?? "over"}`),
    answer && h("span", { class: answer.status === "refused" ? "tag bad" : "tag done", title: `by ${answer.by}` }, answerWords(answer)),
    alert.muted_by && h("span", { class: "tag" }, `muted by ${alert.muted_by}`),
  ];
}

function answerWords({ status, label }) {
  const names = { pending: "being answered", refused: "answer refused" };
  return `${names[status] ?? "answered"}: ${label}`;
}

/** An alert as a row of a list; `settles` is an entry of the backlog. */
export function alertRow(alert, settles = null) {
  return h(
    "li", { class: "row", "data-id": alert.id },
    severity(alert.severity),
    h("div", { class: "what" },
      h("a", { class: "cut", href: alertHref(alert.id), title: alert.summary }, alert.summary),
      h("div", { class: "sub" },
        h("span", { class: "cut", title: alert.label }, alert.kind === "novel" ? "new, like nothing known" : `known attack: ${alert.label}`),
        stateTags(alert).slice(settles && alert.state === "open" ? 1 : 0))),
    h("div", { class: "settles" }, settles
      ? settlesWords(settles)
      : h("strong", null, counted(alert.records, "record"))),
    h("div", { class: "when" }, "since ", h("strong", null, when(alert.first_seen)), lasting(alert)),
  );
}

function settlesWords({ settles_alerts: alerts, settles_records: records }) {
  return ["settles ", h("strong", null, counted(alerts, "alert")), ",", h("br"), ` ${counted(records, "record")}`];
}

function lasting({ first_seen: first, last_seen: last }) {
  return first >= 0 && last - first >= SHORTEST ? [h("br"), ` for ${span(last - first)}`] : null;
}

/** A table in a region of its own that scrolls sideways. Columns: `{name, cell(row), class}`. */
export function table(name, columns, rows, { cards = false, className = "" } = {}) {
  const within = (content) => (cards ? h("div", null, content) : content); // beside its name, on narrow screens
  return h(
    "div", { class: "region", role: "region", tabindex: "0", "aria-label": `${name}, as a table` },
    h("table", { class: `${cards ? "cards" : ""} ${className}` },
      h("thead", null, h("tr", null, columns.map((column) => h("th", { scope: "col", class: column.class, title: column.title }, column.name)))),
      h("tbody", null, rows.map((row) =>
        h("tr", null, columns.map((column) => h("td", { class: column.class, "data-name": column.name }, within(column.cell(row)))))))),
  );
}

/** Values and how often each occurred, as bars. */
export function countBars(counts, total) {
  const most = Math.max(1, ...counts.map((count) => count.records));
  const more = total - counts.length;
  return [
    h("ul", { class: "bars" }, counts.map((count) => h(
      "li", null,
      h("span", { class: "cut mono", title: count.value }, count.value),
      h("span", { class: "bar-track" }, fill(count.records / most)),
      h("span", { class: "num" }, number(count.records))))),
    more > 0 && h("p", { class: "note" }, `and ${number(more)} more`),
  ];
}

function fill(share) {
  const bar = h("span", { class: "bar-fill" });
  bar.style.display = "block";
  bar.style.width = `${100 * share}%`;
  return bar;
}

/** A text with a button that copies it. */
export function copyable(name, text) {
  const code = h("code", { tabindex: "0", role: "group", "aria-label": name }, text);
  return h("div", { class: "copyable" }, code, copyButton(name, text, code));
}

/** A button that copies a text; where the browser does not allow it, the text is selected instead. */
export function copyButton(name, text, shown) {
  const button = h("button", { type: "button", class: "small", "aria-label": `Copy ${name}` }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, COPIED_MS);
    } catch {
      getSelection().selectAllChildren(shown);
      toast("The browser does not allow copying here. The text is selected: press Ctrl+C.");
    }
  });
  return button;
}

/** Something went wrong on a page: words, and a way to try again. */
export function failed(words, again) {
  return h("div", { class: "panel" }, h("p", { class: "trouble" }, words), h("button", { type: "button", onclick: again }, "Try again"));
}

/** Run `fn` soon after it was asked for, once however often that is, and not while it still runs. */
export function throttled(fn, ms) {
  let timer = 0;
  let running = false;
  let ended = false;
  const run = async () => {
    timer = 0;
    running = true;
    await fn();
    running = false;
  };
  const ask = () => {
    if (ended || timer) return;
    timer = setTimeout(() => (running ? (timer = 0, ask()) : run()), ms);
  };
  ask.end = () => {
    ended = true;
    clearTimeout(timer);
  };
  return ask;
}

/** A title for the browser's tab, from text of any length. */
export function shortTitle(text) {
  const cleaned = clean(text);
  return cleaned.length > 80 ? `${cleaned.slice(0, 79)}…` : cleaned;
}
