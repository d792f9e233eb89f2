/** One alert: what happened, who and where, why it was told, and what to do about it. */

import { answerBar, standing } from "./answer.js";
import { blob, events, explain, get } from "./api.js";
import { decisionRows } from "./decision_tables.js";
import { clear, fill, h, pre } from "./dom.js";
import { contributions, examples, explanationWords, linkPath } from "./evidence.js";
import { counted, score, span } from "./format.js";
import { ready, refused } from "./signin.js";
import { toast } from "./toast.js";
import {
  SHORTEST, clusterHref, copyButton, copyable, countBars, failed, severity, shortTitle, stateTags, throttled, when,
} from "./widgets.js";

export const title = "Alert";

const REFRESH_MS = 1500;
const PCAPNG = 0x0a0d0d0a;

/** Show the page of `params.id`. */
export async function mount(main, { params, setTitle = () => {} }) {
  const path = `alerts/${encodeURIComponent(params.id)}`;
  let page = null;

  async function load() {
    try {
      const facts = await get(path);
      setTitle(shortTitle(facts.alert.summary));
      if (!page) {
        page = makePage(facts, refresh);
        clear(main).append(...page.elements);
      }
      page.show(facts);
    } catch (error) {
      if (!page) clear(main).append(h("h1", null, "Alert"), failed(explain(error), load));
    }
  }

  const refresh = throttled(load, REFRESH_MS);
  const ends = [
    events.on("alert", ({ alert }) => alert.id === params.id && refresh()),
    events.on("label", refresh),
    events.on("rules", refresh),
    events.on("fresh", refresh),
    refresh.end,
  ];
  await load();
  return () => ends.forEach((end) => end());
}

/** The sections of the page, each drawn anew only when what it shows has changed. */
function makePage(facts, refresh) {
  const { alert } = facts;
  const answer = answerBar({ target: alert.id, alert, onDone: refresh });
  const sections = [
    section("", "alert-head", (f) => [f.alert, f.muted_by, answerTo(f)], head),
    section("Who and where", "panel", ({ alert: a }) => [a.sources, a.destinations, a.ports, a.labels, a.clusters], whoAndWhere),
    section("Why it was told", "panel", (f) => [f.alert.parts, f.alert.margin, f.alert.normal_record], contributions),
    section("In words", "panel", (f) => [f.alert.explanation], explanationWords),
    section("From its newest told record to the root", "panel", (f) => [f.path], linkPath),
    section("Filters to look further", "panel", (f) => [f.filters, f.packets], tools),
    section("Decisions on it", "panel", (f) => [f.labels], (f) => decisionRows(f.labels)),
    section("Example records", "panel", (f) => [f.alert.examples, f.alert.example], examples),
    section("Raw", "panel raw", (f) => [f.alert], raw),
  ];
  const [top, who, why, words, path, filters, decisions, records, json] = sections.map((one) => one.element);
  return {
    elements: [
      top, answer,
      h("div", { class: "columns" },
        h("div", { class: "column" }, why, words),
        h("div", { class: "column" }, who, path),
        h("div", { class: "column" }, filters, decisions)),
      records, json,
    ],
    show(now) {
      for (const one of sections) one.show(now);
      answer.update({ alert: now.alert, labels: now.labels, mutedBy: now.muted_by, settles: now, answer: answerTo(now) });
    },
  };
}

/** What was said of the alert itself, or else of the clusters that it is about. */
function answerTo({ labels, answer }) {
  return standing(labels) ?? answer ?? null;
}

function section(name, className, part, draw) {
  const body = h("div", { class: "stack" });
  let said = "";
  return {
    element: h("section", { class: className, "aria-label": name || "What happened" }, name && h("h2", null, name), body),
    show(facts) {
      const next = JSON.stringify(part(facts));
      if (next === said) return;
      said = next;
      const open = body.querySelector("details")?.open;
      fill(body, draw(facts));
      if (open) body.querySelector("details").open = true;
    },
  };
}

function head(facts) {
  const { alert, muted_by: mutedBy } = facts;
  const lasted = alert.first_seen >= 0 && alert.last_seen - alert.first_seen >= SHORTEST;
  return [
    h("h1", null, alert.summary),
    h("div", { class: "alert-facts" },
      severity(alert.severity), h("span", null, `${alert.severity_score} of 100`),
      stateTags({ ...alert, muted_by: mutedBy, answer: answerTo(facts) }),
      h("span", null, "since ", h("strong", null, when(alert.first_seen))),
      lasted && h("span", null, "for ", h("strong", null, span(alert.last_seen - alert.first_seen))),
      h("span", null, h("strong", null, counted(alert.records, "record"))),
      h("span", null, "top score ", h("strong", null, score(alert.top_score))),
      h("span", { class: "mono" }, alert.id)),
  ];
}

function whoAndWhere({ alert }) {
  const group = (name, counts, total) => counts?.length ? [h("h3", null, name), countBars(counts, total ?? 0)] : null;
  const also = [alert.protocol, alert.service].filter(Boolean).join(", ");
  const found = [
    group(counted(alert.source_count, "source"), alert.sources, alert.source_count),
    group(counted(alert.destination_count, "destination"), alert.destinations, alert.destination_count),
    group(counted(alert.port_count, "port"), alert.ports, alert.port_count),
    alert.labels?.length > 1 && group("Taken for", alert.labels),
    also && h("p", { class: "note" }, also),
    alert.clusters?.length && h("p", { class: "note" }, "Clusters: ", clusterLinks(alert.clusters)),
  ];
  return found.some(Boolean) ? found : h("p", { class: "note" }, "Its records carry no addresses.");
}

function clusterLinks(ids) {
  return ids.map((id, i) => [i ? ", " : "", h("a", { href: clusterHref(id) }, String(id))]);
}

function tools({ alert, filters, packets }) {
  const names = [["bpf", "BPF (tcpdump)"], ["wireshark", "Wireshark"], ["zeek", "Zeek (conn.log)"]];
  const given = names.filter(([key]) => filters?.[key]);
  return [
    given.length
      ? given.map(([key, name]) => [h("h3", null, name), copyable(`the ${name} filter`, filters[key])])
      : h("p", { class: "note" }, "There is no address to filter by."),
    h("h3", null, "Packets"),
    packets?.available
      ? h("p", null, h("button", { type: "button", onclick: () => download(alert.id) }, "Download packets"))
      : h("p", { class: "note" }, `No packets: ${packets?.why || "none are at hand"}`),
  ];
}

/** Packets hold what people sent, so they need the token even here. */
async function download(id) {
  if (!(await ready())) return;
  try {
    const packets = await blob(`alerts/${encodeURIComponent(id)}/packets`);
    const url = URL.createObjectURL(packets);
    h("a", { href: url, download: `${id.replace(/[^\w-]/g, "_")}.${await format(packets)}` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  } catch (error) {
    toast(explain(error), { kind: "error" });
    if (error.status === 401) refused(explain(error));
  }
}

/** Which of the two formats of captures it is, by its first bytes. */
async function format(packets) {
  const first = new DataView(await packets.slice(0, 4).arrayBuffer());
  return first.byteLength === 4 && first.getUint32(0) === PCAPNG ? "pcapng" : "pcap";
}

function raw({ alert }) {
  const text = JSON.stringify(alert, null, 2);
  const shown = pre(text, { tabindex: "0", role: "region", "aria-label": "The alert as JSON" });
  return h("details", null, h("summary", null, "The alert as JSON"), copyButton("the JSON", text, shown), shown);
}
