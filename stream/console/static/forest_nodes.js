/**
 * The records of the picture, kept in typed arrays: a ring that forgets the oldest, so that memory stays flat for as long
 * as the page is open. A record is a place in the ring (0..capacity-1); clusters are few and are plain objects.
 */

import { clean } from "./dom.js";

export const ROOT = -1;
export const REFERENCE = -2;
export const NORMAL = 0;
export const KNOWN = 1;
export const NOVEL = 2;
export const VERDICTS = ["Normal", "Known attack", "Novel"];

const ENDLESS = 1e300; // how the daemon writes a score that has no end
const DRIFT = 0.45; // how far a record may lie from the one that it links to, in parts of its row

export class Nodes {
  constructor(capacity = 10_000) {
    this.capacity = capacity;
    this.tick = new Float64Array(capacity);
    this.link = new Float64Array(capacity);
    this.time = new Float64Array(capacity);
    this.score = new Float32Array(capacity);
    this.lane = new Float32Array(capacity); // place within the row, 0..1
    this.hops = new Uint16Array(capacity);
    this.slot = new Uint16Array(capacity); // of its cluster
    this.label = new Uint16Array(capacity);
    this.verdict = new Uint8Array(capacity);
    this.parent = new Int32Array(capacity); // where the record that it links to is kept, or -1
    this.heir = new Int32Array(capacity); // where the newest record that links to it is kept, or -1
    this.clear();
  }

  /** Forget everything. */
  clear() {
    this.start = 0;
    this.size = 0;
    this.newest = -1;
    this.timed = 0; // kept records whose time is known
    this.lastTime = -1;
    this.topScore = 1;
    this.clusters = new Map();
    this.slots = new Array(this.capacity).fill(null);
    this.free = Array.from({ length: this.capacity }, (_, i) => this.capacity - 1 - i);
    this.labels = [];
    this.labelOf = new Map();
  }

  /** Add what the daemon answered; returns how many records are new. */
  add({ nodes, clusters, labels }) {
    const names = labels.map((name) => this.intern(name));
    let added = 0;
    for (let k = 0; k < nodes.tick.length; k++) {
      if (nodes.tick[k] <= this.newest) continue;
      this.push(nodes, k, names[nodes.label[k]] ?? 0);
      added += 1;
    }
    for (const one of clusters) this.describe(one);
    if (added) this.survey();
    return added;
  }

  /** The place of the k-th oldest record. */
  at(k) {
    const place = this.start + k;
    return place < this.capacity ? place : place - this.capacity;
  }

  /** The place of a record by its tick, or -1: ticks ascend. */
  find(tick) {
    let low = 0;
    let high = this.size - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      const place = this.at(middle);
      if (this.tick[place] === tick) return place;
      if (this.tick[place] < tick) low = middle + 1;
      else high = middle - 1;
    }
    return -1;
  }

  /** The place that record `i` links to if it is still kept, or -1. */
  parentOf(i) {
    const p = this.parent[i];
    return p >= 0 && this.tick[p] === this.link[i] ? p : -1;
  }

  /** What records lie along: their time, or, where no time is known, their number of arrival. */
  along(wanted = "time") {
    return wanted === "time" && this.timed ? this.time : this.tick;
  }

  push(nodes, k, label) {
    if (this.size === this.capacity) this.drop();
    const i = this.at(this.size);
    const { tick, link } = this;
    tick[i] = nodes.tick[k];
    link[i] = nodes.link[k];
    this.hops[i] = Math.min(nodes.hops[k] || 1, 65_535);
    this.verdict[i] = nodes.verdict[k];
    this.score[i] = finite(nodes.score[k]);
    this.label[i] = label;
    if (nodes.time[k] >= 0) this.lastTime = nodes.time[k];
    this.time[i] = this.lastTime;
    if (this.lastTime >= 0) this.timed += 1;
    this.parent[i] = link[i] >= 0 ? this.find(link[i]) : -1;
    this.heir[i] = -1;
    if (this.parent[i] >= 0) this.heir[this.parent[i]] = i;
    this.lane[i] = this.laneOf(i);
    this.size += 1;
    this.newest = tick[i];
    this.join(i, nodes.cluster[k], nodes.time[k], label);
  }

  /** Near the record that it links to, so that a line of records reads as a line; where it is of the root, in the middle. */
  laneOf(i) {
    if (this.link[i] === ROOT) return 0.5;
    const chance = scatter(this.tick[i]);
    if (this.parent[i] < 0) return chance;
    const lane = this.lane[this.parent[i]] + (chance - 0.5) * DRIFT;
    if (lane < 0) return -lane;
    return lane > 1 ? 2 - lane : lane;
  }

  join(i, id, time, label) {
    let cluster = this.clusters.get(id);
    if (!cluster) {
      const name = this.labels[label] ?? "";
      cluster = {
        id, slot: this.free.pop(), label: name, entity: "", records: 0, anomalous: 0, first: time, last: time, top: this.score[i],
        kept: 0, verdict: NORMAL, oldest: i, newest: i,
      };
      this.clusters.set(id, cluster);
      this.slots[cluster.slot] = cluster;
    }
    cluster.kept += 1;
    cluster.records = Math.max(cluster.records, cluster.kept);
    cluster.verdict = this.verdict[i];
    cluster.last = Math.max(cluster.last, time);
    cluster.newest = i;
    this.slot[i] = cluster.slot;
  }

  describe(one) {
    const cluster = this.clusters.get(one.id);
    if (!cluster) return;
    cluster.label = clean(one.label);
    cluster.entity = clean(one.entity);
    cluster.records = one.records;
    cluster.anomalous = one.anomalous;
    cluster.first = one.first_time;
    cluster.last = one.last_time;
    cluster.top = one.top_score;
  }

  drop() {
    const i = this.start;
    const cluster = this.slots[this.slot[i]];
    cluster.kept -= 1;
    if (!cluster.kept) {
      this.clusters.delete(cluster.id);
      this.slots[cluster.slot] = null;
      this.free.push(cluster.slot);
    }
    if (this.time[i] >= 0) this.timed -= 1;
    this.tick[i] = -1;
    this.start = this.at(1);
    this.size -= 1;
  }

  /** What is known only of all records together: the highest score, and the oldest one kept of every cluster. */
  survey() {
    let top = 0;
    for (let k = this.size - 1; k >= 0; k--) {
      const i = this.at(k);
      if (this.score[i] > top && this.score[i] < Infinity) top = this.score[i];
      this.slots[this.slot[i]].oldest = i;
    }
    this.topScore = top || 1;
  }

  intern(name) {
    const shown = clean(name);
    if (!this.labelOf.has(shown)) {
      this.labelOf.set(shown, this.labels.length);
      this.labels.push(shown);
    }
    return this.labelOf.get(shown);
  }
}

function finite(score) {
  if (score === null || score === undefined || score > ENDLESS) return Infinity;
  return Number.isFinite(score) ? score : 0;
}

/** A number in 0..1 that looks like chance and is always the same for a tick. */
function scatter(tick) {
  let x = Math.imul((tick | 0) + 0x9e3779b9, 0x85ebca6b);
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
  return ((x ^ (x >>> 16)) >>> 0) / 4294967296;
}
