/** What is said of the record pointed at: at once what the picture knows, and soon what the daemon keeps of it. */

import { get } from "./api.js";
import { clear, h } from "./dom.js";
import { number, score, stamp } from "./format.js";
import { REFERENCE, ROOT, VERDICTS } from "./forest_nodes.js";

const REST_MS = 140;
const MOST_RECORDS = 256;
const MOST_VALUES = 9;
export const ENDLESS = 2e300; // a score without end, as `score` writes it
const FIRST = ["source", "source_port", "destination", "destination_port", "service", "name"];

export class Tip {
  /** A tip within the element of a forest. */
  constructor(forest) {
    this.forest = forest;
    this.records = new Map(); // oldest use first
    this.element = h("div", { class: "forest-tip", hidden: true });
    this.tick = -1;
    forest.element.append(this.element);
    forest.hover = (i, x, y) => this.show(i, x, y);
  }

  show(i, x, y) {
    if (i < 0) {
      this.element.hidden = true;
      this.tick = -1;
      clearTimeout(this.timer);
      return;
    }
    const tick = this.forest.nodes.tick[i];
    if (tick !== this.tick) {
      this.tick = tick;
      clearTimeout(this.timer);
      this.fill(i);
      if (!this.records.has(tick)) this.timer = setTimeout(() => this.fetch(tick), REST_MS);
    }
    this.element.hidden = false;
    this.place(x, y);
  }

  fill(i) {
    const { nodes } = this.forest;
    const kind = nodes.verdict[i];
    const cluster = nodes.slots[nodes.slot[i]];
    const record = this.known(nodes.tick[i]);
    const rows = [
      ["cluster", `#${cluster.id}, ${number(cluster.records)} records`], ["label", nodes.labels[nodes.label[i]]],
      ["score", score(Math.min(nodes.score[i], ENDLESS))], ["links to", linkText(nodes.link[i], nodes.hops[i])],
      ...(record ? valuesOf(record) : []),
    ];
    clear(this.element).append(
      h("p", { class: `forest-tip-head verdict-${kind}` }, h("b", null, VERDICTS[kind]), ` record ${record?.record ?? number(nodes.tick[i])}`),
      h("p", { class: "forest-tip-time" }, stamp(nodes.timed ? nodes.time[i] : -1).replace(/ \(.*/, "")),
      h("dl", null, rows.map(([name, value]) => [h("dt", null, name), h("dd", null, value)])),
    );
  }

  async fetch(tick) {
    try {
      this.keep(tick, (await get(`records/${tick}`)).record);
    } catch {
      return; // the record is not kept any more: what the picture knows stays
    }
    const i = this.forest.nodes.find(tick);
    if (this.tick === tick && i >= 0) this.fill(i);
  }

  known(tick) {
    const record = this.records.get(tick);
    if (record) this.keep(tick, record);
    return record;
  }

  keep(tick, record) {
    this.records.delete(tick);
    this.records.set(tick, record);
    if (this.records.size > MOST_RECORDS) this.records.delete(this.records.keys().next().value);
  }

  place(x, y) {
    const { unit } = this.forest;
    const { clientWidth, clientHeight } = this.forest.element;
    const { offsetWidth, offsetHeight } = this.element;
    const right = x * unit + 16;
    const left = right + offsetWidth < clientWidth ? right : Math.max(4, x * unit - 16 - offsetWidth);
    this.element.style.left = `${left}px`;
    this.element.style.top = `${Math.max(4, Math.min(y * unit + 14, clientHeight - offsetHeight - 4))}px`;
  }
}

/** What a record links to, in words. */
export function linkText(link, hops) {
  if (link === ROOT) return "the root: like nothing before";
  if (link === REFERENCE) return "a reference of the model";
  if (link < 0) return "a record that is not kept any more";
  return `record ${number(link)}${hops > 1 ? `, ${number(hops)} links back` : ""}`;
}

/** Values of a record: where from and where to first. */
export function valuesOf(record, most = MOST_VALUES) {
  const entries = Object.entries(record.values ?? {});
  const rank = ([name]) => (FIRST.includes(name) ? FIRST.indexOf(name) : FIRST.length);
  return entries.sort((a, b) => rank(a) - rank(b)).slice(0, most).map(([name, value]) => [name, written(value)]);
}

function written(value) {
  if (value === null) return "–";
  if (typeof value === "number" && !Number.isInteger(value)) return score(value);
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
