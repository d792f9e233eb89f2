/** The page of one cluster: what it is, an answer to it, its links as a picture, its alerts, records and labels. */

import { events, explain, get } from "./api.js";
import { clear, fill, h } from "./dom.js";
import { ago, counted, number, score, span } from "./format.js";
import { Forest } from "./forest.js";
import { KNOWN, NORMAL, NOVEL, REFERENCE, ROOT } from "./forest_nodes.js";
import { ENDLESS, Tip, linkText, valuesOf } from "./forest_tip.js";
import { alertRow, failed, table, when } from "./widgets.js";

export const title = "Cluster";

const POLL_MS = 2000;
const REFRESH_MS = 10_000;
const LIMIT = 10_000;
const COLUMNS = 8; // of a record's values in the table
const VERDICT = { normal: NORMAL, known_attack: KNOWN, novel: NOVEL };
const WORDS = { normal: "Normal", known_attack: "Known attack", novel: "Novel" };

/** Show the page; returns what ends it. */
export async function mount(main, { params }) {
  const page = new Page(main, params.id);
  await page.start();
  return () => page.end();
}

class Page {
  constructor(main, id) {
    this.main = main;
    this.id = id;
    this.newest = -1;
    this.forest = null;
    this.timers = [];
    this.off = [];
  }

  async start() {
    clearTimeout(this.soon);
    this.soon = 0;
    const found = await this.fetch();
    if (!found || this.ended) return;
    this.build(found);
    await this.grow();
    this.timers = [setInterval(() => this.grow(), POLL_MS), setInterval(() => this.refresh(), REFRESH_MS)];
    this.off = ["fresh", "label", "alert"].map((type) => events.on(type, (data) => this.heard(type, data)));
  }

  end() {
    this.ended = true;
    this.timers.forEach(clearInterval);
    clearTimeout(this.soon);
    for (const off of this.off) off();
    this.forest?.end();
  }

  async fetch() {
    try {
      return await get(`clusters/${encodeURIComponent(this.id)}`);
    } catch (error) {
      if (this.forest || this.ended) return null;
      clear(this.main).append(h("h1", null, `Cluster #${this.id}`), failed(explain(error), () => this.start()));
      // The picture shows a cluster some seconds before the store has it.
      if (error.status === 404) this.soon = setTimeout(() => !this.ended && this.start(), POLL_MS);
      return null;
    }
  }

  build(found) {
    const ident = found.cluster.ident ?? found.cluster.id;
    this.head = h("div", { class: "cluster-head" });
    this.answer = h("div");
    this.alerts = h("section", { class: "panel" });
    this.records = h("section", { class: "panel" });
    this.labels = h("section", { class: "panel" });
    this.forest = new Forest({ rows: false, label: `Links of cluster ${ident}` });
    this.forest.home = () => this.forest.follow();
    this.forest.element.classList.add("forest-small");
    this.tip = new Tip(this.forest);
    clear(this.main).append(this.head, this.answer, this.forest.element, this.alerts, this.records, this.labels);
    this.fill(found);
    this.addAnswer(ident, found);
  }

  fill({ cluster, alerts, records, labels }) {
    const kind = cluster.label === "normal" ? "normal" : cluster.label === "novel" ? "novel" : "known";
    clear(this.head).append(
      h("p", null, h("a", { href: "#/clusters" }, "Clusters")),
      h("h1", { class: "wrap" }, `Cluster #${this.id}: `, h("span", { class: `${kind}-text` }, cluster.label)),
      h("p", { class: "alert-facts" },
        fact(counted(cluster.records, "record")), fact(number(cluster.anomalous), " anomalous"),
        h("span", null, "since ", h("strong", null, when(cluster.first_time)), lasting(cluster)),
        h("span", null, "last ", h("strong", null, when(cluster.last_time)), ` (${ago(cluster.last_time)})`),
        fact(score(cluster.top_score ?? ENDLESS), " top score")),
    );
    put(this.alerts, h("h2", null, `Alerts (${number(alerts.length)})`), alerts.length
      ? h("ul", { class: "rows" }, alerts.map((alert) => alertRow(alert))) : h("p", { class: "empty" }, "No alert is about this cluster."));
    put(this.records, h("h2", null, `Newest records (${number(records.length)})`), records.length
      ? recordTable(records) : h("p", { class: "empty" }, "None of its records is kept."));
    put(this.labels, h("h2", null, "What people said of it"), labels.length
      ? labelTable(labels) : h("p", { class: "empty" }, "No one has answered yet."));
    if (!this.forest.nodes.size) this.addRecords(records, cluster);
  }

  async addAnswer(ident, { labels }) {
    try {
      const { answerBar } = await import("./answer.js");
      if (this.ended) return;
      this.bar = answerBar({ target: `cluster:${ident}`, labels, onDone: () => this.refresh() });
      this.answer.append(this.bar);
    } catch (error) {
      this.answer.append(h("p", { class: "note" }, explain(error)));
    }
  }

  /** The records at hand, as the picture wants them: older ones than the daemon's memory may be among them. */
  addRecords(records, cluster) {
    const sorted = [...records].sort((a, b) => a.tick - b.tick);
    const labels = [...new Set(sorted.map((record) => record.label))];
    const column = (of) => sorted.map(of);
    const nodes = {
      tick: column((r) => r.tick), link: column((r) => r.link), hops: column((r) => r.hops), cluster: column((r) => r.cluster),
      label: column((r) => labels.indexOf(r.label)), verdict: column((r) => VERDICT[r.verdict] ?? NORMAL),
      score: column((r) => r.score), time: column((r) => r.time),
    };
    this.spare = { nodes, labels, clusters: [{ ...cluster, id: cluster.ident ?? cluster.id }] };
  }

  /** Fetch the links that are new, and take those of this cluster. */
  async grow() {
    if (this.growing || document.visibilityState !== "visible") return;
    this.growing = true;
    try {
      const answer = await get("forest", { after: this.newest >= 0 ? this.newest : undefined, limit: LIMIT });
      if (this.ended) return;
      if (this.instance && this.instance !== answer.instance) this.forest.reset();
      this.instance = answer.instance;
      this.newest = answer.newest;
      const mine = only(answer, (k) => answer.nodes.cluster[k] === Number(this.id));
      const first = mine.nodes.tick[0] ?? Infinity;
      if (!this.forest.nodes.size) this.forest.add(only(this.spare, (k) => this.spare.nodes.tick[k] < first));
      if (first < Infinity) this.forest.add(mine);
      this.forest.element.hidden = !this.forest.nodes.size;
    } catch {
      this.forest.element.hidden = !this.forest.nodes.size; // the shell tells that the daemon cannot be reached
    } finally {
      this.growing = false;
    }
  }

  heard(type, data) {
    const mine = type !== "alert" || data.alert.clusters.includes(Number(this.id));
    if (!mine || this.soon) return;
    this.soon = setTimeout(() => this.refresh(), 500);
  }

  async refresh() {
    this.soon = 0;
    if (document.visibilityState !== "visible") return;
    const found = await this.fetch();
    if (!found || this.ended) return;
    this.fill(found);
    this.bar?.update?.({ labels: found.labels });
  }
}

/** The records of an answer that pass. */
function only({ nodes, labels, clusters }, passes) {
  const kept = [...nodes.tick.keys()].filter(passes);
  const columns = Object.fromEntries(Object.entries(nodes).map(([name, values]) => [name, kept.map((k) => values[k])]));
  return { nodes: columns, labels, clusters };
}

/** Show something else in a section, unless someone is at work in it. */
function put(section, ...children) {
  if (!section.matches(":focus-within")) fill(section, children);
}

function recordTable(records) {
  const names = [...new Set(records.slice(0, 20).flatMap((record) => valuesOf(record, COLUMNS).map(([name]) => name)))].slice(0, COLUMNS + 2);
  const values = new Map(records.map((record) => [record, Object.fromEntries(valuesOf(record, Infinity))]));
  const columns = [
    { name: "Record", cell: (r) => r.record }, { name: "Time", cell: (r) => when(r.time) },
    ...names.map((name) => ({ name, cell: (r) => h("span", { title: values.get(r)[name] }, values.get(r)[name] ?? "") })),
    { name: "Verdict", cell: (r) => WORDS[r.verdict] ?? r.verdict }, { name: "Score", class: "num", cell: (r) => score(r.score ?? ENDLESS) },
    { name: "Links to", cell: (r) => h("span", { title: linkText(r.link, r.hops) }, shortLink(r)) },
  ];
  return table("Records of the cluster", columns, records, { className: "examples" });
}

function shortLink({ link, hops }) {
  if (link < 0) return { [ROOT]: "the root", [REFERENCE]: "a reference" }[link] ?? "not kept";
  return `${number(link)}${hops > 1 ? ` (${number(hops)} links)` : ""}`;
}

function labelTable(labels) {
  const columns = [
    { name: "When", cell: (l) => when(l.created) }, { name: "Label", cell: (l) => l.label }, { name: "By", cell: (l) => l.by },
    { name: "Why", cell: (l) => l.why }, { name: "Status", cell: (l) => `${l.status}${l.reason ? `: ${l.reason}` : ""}${l.undone_by ? ", undone" : ""}` },
    { name: "Records covered", class: "num", cell: (l) => number(l.covered ?? NaN) },
  ];
  return table("Labels of the cluster", columns, labels, { cards: true });
}

function fact(strong, rest = "") {
  return h("span", null, h("strong", null, strong), rest);
}

function lasting({ first_time: first, last_time: last }) {
  return first >= 0 && last > first ? ` for ${span(last - first)}` : null;
}
