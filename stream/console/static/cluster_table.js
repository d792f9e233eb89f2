/**
 * The clusters of the picture as a table: the same for who does not see it, or wants numbers. Cells change in place; rows
 * change places only now and then, and never under the pointer or the focus.
 */

import { clean, h, say } from "./dom.js";
import { clock, counted, number, score, stamp } from "./format.js";
import { VERDICTS } from "./forest_nodes.js";
import { ENDLESS } from "./forest_tip.js";

const MOST_ROWS = 100;
const SORT_MS = 5000;
const time = (ns) => ({ text: clock(ns), title: stamp(ns) });
const COLUMNS = [
  { key: "id", name: "Cluster", of: (one) => one.id },
  { key: "verdict", name: "Verdict", of: (one) => one.verdict, show: (one) => ({ text: VERDICTS[one.verdict] }) },
  { key: "label", name: "Label", of: (one) => one.label, show: (one) => ({ text: one.label, title: one.label }) },
  { key: "entity", name: "Who", of: (one) => one.entity, show: (one) => ({ text: one.entity, title: one.entity }) },
  { key: "records", name: "Records", right: true, of: (one) => one.records, show: (one) => ({ text: number(one.records) }) },
  { key: "anomalous", name: "Anomalous", right: true, of: (one) => one.anomalous, show: (one) => ({ text: number(one.anomalous) }) },
  { key: "top", name: "Top score", right: true, of: (one) => one.top ?? Infinity, show: (one) => ({ text: score(one.top ?? ENDLESS) }) },
  { key: "first", name: "First", right: true, of: (one) => one.first, show: (one) => time(one.first) },
  { key: "last", name: "Last", right: true, of: (one) => one.last, show: (one) => time(one.last) },
];

export class ClusterTable {
  /** `pointed(id)` is called with the cluster of the row under the pointer, and with null. */
  constructor({ pointed }) {
    this.by = COLUMNS[1];
    this.down = true;
    this.rows = new Map();
    this.sortedAt = -Infinity;
    this.body = h("tbody", { onpointerleave: () => pointed(null) });
    this.body.addEventListener("pointerover", (event) => {
      const row = event.target.closest("tr");
      if (row) pointed(Number(row.dataset.cluster));
    });
    this.heads = COLUMNS.map((column) => h(
      "th", { scope: "col", class: column.right ? "right" : null },
      h("button", { type: "button", class: "sort", onclick: () => this.sortBy(column) }, column.name),
    ));
    this.more = h("p", { class: "cluster-table-more muted" });
    this.element = h(
      "div", { class: "cluster-table" },
      h("h2", { id: "cluster-table-title" }, "Clusters shown"),
      h("div", { class: "cluster-table-scroll", tabindex: "0", role: "region", "aria-labelledby": "cluster-table-title" },
        h("table", { class: "table" }, h("thead", null, h("tr", null, this.heads)), this.body)),
      this.more,
    );
    this.markSorted();
  }

  sortBy(column) {
    this.down = this.by === column ? !this.down : !["id", "label", "entity"].includes(column.key);
    this.by = column;
    this.markSorted();
    this.update(this.clusters ?? [], true);
  }

  markSorted() {
    COLUMNS.forEach((column, k) => {
      if (column === this.by) this.heads[k].setAttribute("aria-sort", this.down ? "descending" : "ascending");
      else this.heads[k].removeAttribute("aria-sort");
    });
  }

  /** Show these clusters; `sort`: put them in order now. */
  update(clusters, sort = false) {
    this.clusters = clusters;
    const now = performance.now();
    const busy = this.body.matches(":hover, :focus-within");
    if (sort || !this.rows.size || (now - this.sortedAt > SORT_MS && !busy)) {
      this.sortedAt = now;
      this.order(clusters);
    }
    for (const one of clusters) {
      const row = this.rows.get(one.id);
      if (row) fill(row, one);
    }
  }

  order(clusters) {
    const { of } = this.by;
    const sign = this.down ? -1 : 1;
    const sorted = [...clusters].sort((a, b) => sign * compare(of(a), of(b)) || b.records - a.records || b.id - a.id).slice(0, MOST_ROWS);
    const rows = new Map(sorted.map((one) => [one.id, this.rows.get(one.id) ?? rowOf(one)]));
    for (const [id, row] of this.rows) if (!rows.has(id)) row.remove();
    let after = null;
    for (const row of rows.values()) {
      const next = after ? after.nextSibling : this.body.firstChild;
      if (next !== row) this.body.insertBefore(row, next);
      after = row;
    }
    this.rows = rows;
    const hidden = clusters.length - sorted.length;
    this.more.textContent = hidden > 0 ? `${counted(hidden, "more cluster")}: narrow them down by the filter.` : "";
    if (!clusters.length) this.more.textContent = "No cluster to show.";
  }
}

function rowOf(one) {
  const cells = COLUMNS.slice(1).map((column) => h("td", { class: column.right ? "right" : null }));
  cells[0].append(h("span", { class: "verdict-mark", "aria-hidden": "true" }), h("span"));
  cells[1].classList.add("cluster-label");
  const link = h("th", { scope: "row" }, h("a", { href: `#/clusters/${one.id}` }, `#${one.id}`));
  return h("tr", { "data-cluster": one.id }, link, cells);
}

function fill(row, one) {
  row.dataset.verdict = one.verdict;
  COLUMNS.slice(1).forEach((column, k) => {
    const { text, title } = column.show(one);
    const cell = row.cells[k + 1];
    const place = k === 0 ? cell.lastChild : cell;
    say(place, text);
    if (title && cell.title !== clean(title)) cell.title = clean(title);
  });
}

function compare(a, b) {
  return typeof a === "string" ? a.localeCompare(b) : a - b;
}
