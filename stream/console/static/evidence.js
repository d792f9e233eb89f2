/** Why an alert was told: contributions that add up, the chain of links, the words, the records themselves. */

import { h } from "./dom.js";
import { counted, number, score, value } from "./format.js";
import { clusterHref, table, when } from "./widgets.js";

const CONTEXT = ["source", "source_port", "destination", "destination_port"];
const TIMES = new Set(["start", "end", "time"]);
const VERDICTS = { normal: "normal", known_attack: "known attack", novel: "new" };
const PART_NAMES = { "(root)": "the root itself", "(rest)": "all others" };

/** What each attribute adds to the margin, beside its value in the nearest normal record. */
export function contributions({ alert }) {
  const parts = alert.parts ?? [];
  if (!parts.length) return h("p", { class: "note" }, "No contributions were kept for it.");
  const most = Math.max(...parts.map((part) => size(part.contribution))) || 1;
  const columns = [
    { name: "Attribute", cell: (part) => PART_NAMES[part.name] ?? part.name },
    { name: "Against | for", cell: (part) => diverging(part.contribution, most), class: "diverging" },
    { name: "Adds", cell: (part) => signed(part.contribution), class: "num" },
    { name: "Here", cell: (part) => valueOf(part.value), class: "value" },
    { name: "Nearest normal", cell: (part) => valueOf(part.normal), class: "value" },
  ];
  const drawn = table("Contributions", columns, parts, { className: "parts" });
  drawn.querySelector("table").append(h("tfoot", null, h("tr", null,
    h("th", { scope: "row", colspan: 2 }, "Sum: the margin"), h("td", { class: "num" }, score(alert.margin)), h("td", { colspan: 2 }))));
  const against = alert.normal_record
    ? `The nearest normal record is ${alert.normal_record}.`
    : "There was no normal record to compare with.";
  return [h("p", { class: "note" }, `Bars to the right speak for the verdict, hatched ones to the left against it. ${against}`), drawn];
}

function size(n) {
  return Math.min(Math.abs(n) || 0, 1e300);
}

function diverging(contribution, most) {
  const bar = h("span", { class: contribution < 0 ? "against" : "for" });
  bar.style.width = `${50 * (size(contribution) / most)}%`;
  return h("div", { class: "diverge", "aria-hidden": "true" }, bar);
}

function signed(n) {
  return n > 0 ? `+${score(n)}` : score(n).replace("-", "−");
}

function valueOf(given) {
  if (given === null || given === undefined || given === "") return h("span", { class: "muted" }, "none");
  const text = typeof given === "number" ? value(given) : given;
  return h("span", { class: "cut mono", title: String(given) }, text);
}

/** The chain of links, newest record first, down to the root or a reference. */
export function linkPath({ path }) {
  if (!path?.length) return h("p", { class: "note" }, "Its records are not kept any more, so their links cannot be shown.");
  return h("ol", { class: "path" }, path.map((step, i) => [stepOf(step), i < path.length - 1 && hopsOf(step)]));
}

function stepOf(step) {
  if (step.kind === "root") {
    return h(
      "li", { class: "step root" }, h("span", { class: "name" }, "Root"),
      h("span", { class: "about" }, "Nothing earlier was alike enough: this is where something new begins."),
    );
  }
  const verdict = VERDICTS[step.verdict] ? step.verdict : "";
  const about = [
    verdict && h("span", { class: `${{ normal: "normal", known_attack: "known", novel: "novel" }[verdict]}-text` }, VERDICTS[verdict]),
    step.label && step.label !== step.verdict && ` ${step.label}`,
    Number.isFinite(step.score) && step.kind === "record" && `, score ${score(step.score)}`,
    step.cluster >= 0 && [", cluster ", h("a", { href: clusterHref(step.cluster) }, String(step.cluster))],
  ];
  return h(
    "li", { class: `step ${verdict}` },
    h("span", { class: "name cut", title: step.record }, step.kind === "reference" ? `Pinned ${step.record}` : `Record ${step.record}`),
    step.time >= 0 ? when(step.time) : h("span", { class: "muted" }, step.tick >= 0 ? `no. ${number(step.tick)}` : ""),
    h("span", { class: "about" }, about),
  );
}

function hopsOf({ hops }) {
  const words = hops > 1 ? counted(hops, "link") : "links that are not kept any more";
  return h("li", { class: hops === 1 ? "hops" : "hops many" }, hops === 1 ? "" : words);
}

/** The explanation, line by line. */
export function explanationWords({ alert }) {
  const lines = String(alert.explanation ?? "").split(/\r?\n/).filter((line) => line.trim());
  if (!lines.length) return h("p", { class: "note" }, "No explanation was kept for it.");
  return h("div", { class: "words stack" }, lines.map((line) => h("p", { class: /^\s/.test(line) ? "indent" : "" }, line.trim())));
}

/** Its example records: where from and to first, then what differs; what is the same in all is said once. */
export function examples({ alert }) {
  const rows = alert.examples?.length ? alert.examples : [alert.example ?? {}].filter((row) => Object.keys(row).length);
  if (!rows.length) return h("p", { class: "note" }, "No records were kept for it.");
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const context = CONTEXT.filter((name) => names.includes(name));
  const others = names.filter((name) => !CONTEXT.includes(name));
  const differs = (name) => rows.length === 1 || rows.some((row) => row[name] !== rows[0][name]);
  const same = others.filter((name) => !differs(name));
  const numeric = (name) => !TIMES.has(name) && rows.some((row) => typeof row[name] === "number");
  const column = (name) => ({ name, cell: (row) => cell(name, row[name]), class: numeric(name) ? "num" : "" });
  const columns = [...context, ...others.filter(differs)].map(column);
  return [
    table("Example records", columns, rows, { className: "examples" }),
    same.length > 0 && h("p", { class: "note wrap" }, `The same in all: ${same.map((name) => `${name} ${plain(name, rows[0][name])}`).join(", ")}`),
  ];
}

function cell(name, given) {
  if (given === undefined || given === null) return h("span", { class: "muted", title: "0 or none" }, "·");
  if (TIMES.has(name) && given > 1e15) return when(given);
  const text = plain(name, given);
  return h("span", { title: text }, text);
}

function plain(name, given) {
  if (typeof given !== "number") return String(given ?? "none");
  return name.endsWith("port") ? String(given) : value(given);
}
