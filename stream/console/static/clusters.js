/** The page of all clusters: the forest of links, live or as it was, and the same as a table. */

import { events, explain, get } from "./api.js";
import { h, say } from "./dom.js";
import { counted, number } from "./format.js";
import { Forest } from "./forest.js";
import { BANDS } from "./forest_layout.js";
import { KNOWN, NOVEL } from "./forest_nodes.js";
import { Tip } from "./forest_tip.js";
import { Scrubber } from "./scrubber.js";
import { ClusterTable } from "./cluster_table.js";

export const title = "Clusters";

const POLL_MS = 1000;
const EXTENT_MS = 30_000;
const SETTLE_MS = 250; // after the window was moved, before its records are asked for
const LIMIT = 10_000;
const NEW_NS = 60e9;
const MUCH = 0.8; // of what was fetched: less is fetched anew, if there was more than the limit
const BUCKETS = 160;

/** Show the page; returns what ends it. */
export async function mount(main, { query }) {
  const page = new Page(main, query.text ?? "");
  await page.start();
  return () => page.end();
}

class Page {
  constructor(main, text) {
    this.instance = null;
    this.turn = 0; // answers asked for before the last change of what is shown are not taken
    this.past = null; // the window of the past that is shown, or null: live
    this.loaded = null; // the window that was fetched last
    this.forest = new Forest({ open: (id) => { location.hash = `#/clusters/${id}`; }, moved: () => this.steered() });
    this.forest.home = () => this.goLive();
    this.tip = new Tip(this.forest);
    this.table = new ClusterTable({ pointed: (id) => this.forest.light(id) });
    this.scrubber = new Scrubber({ moved: (left, right) => this.goTo(left, right), live: () => this.goLive() });
    this.scrubber.element.hidden = true;
    this.says = h("p", { class: "forest-says muted" });
    this.notice = h("p", { class: "forest-notice", role: "status" });
    main.append(this.head(text), this.says, this.notice, this.forest.element, this.scrubber.element, keysHelp(), this.table.element);
    this.filter();
  }

  head(text) {
    this.text = h("input", { type: "search", placeholder: "Label or number", "aria-label": "Filter clusters by label or number", value: text, oninput: () => this.filter() });
    this.normal = h("input", { type: "checkbox", checked: true, onchange: () => this.filter() });
    this.along = h(
      "select", { "aria-label": "Records lie along", onchange: () => { this.forest.lieAlong(this.along.value); this.goLive(); } },
      h("option", { value: "time" }, "by time"), h("option", { value: "tick" }, "by arrival"),
    );
    return h(
      "div", { class: "forest-head" }, h("h1", null, "Clusters"),
      h("div", { class: "forest-tools" }, this.text, h("label", { class: "check" }, this.normal, " Normal"), this.along),
    );
  }

  async start() {
    const seen = () => document.visibilityState === "visible" && this.poll();
    document.addEventListener("visibilitychange", seen);
    this.endings = [
      () => document.removeEventListener("visibilitychange", seen), events.on("fresh", () => this.poll()),
      () => this.forest.end(), () => this.scrubber.end(),
      every(POLL_MS, () => this.poll()), every(EXTENT_MS, () => this.measure()),
    ];
    this.measure();
    await this.poll();
  }

  end() {
    this.ended = true;
    clearTimeout(this.settling);
    for (const end of this.endings) end();
  }

  filter() {
    this.forest.filter(this.text.value, this.normal.checked ? BANDS : [NOVEL, KNOWN]);
    this.table.update(this.forest.shown(), true);
    this.count();
  }

  /** Fetch what is new, unless the past is looked at or no one looks. */
  async poll() {
    if (this.past || this.polling || document.visibilityState !== "visible") return;
    this.polling = true;
    try {
      const { turn } = this;
      const newest = this.forest.nodes.newest;
      const answer = await get("forest", { after: newest >= 0 ? newest : undefined, limit: LIMIT });
      if (this.ended || turn !== this.turn) return;
      const other = this.instance !== null && answer.instance !== this.instance;
      this.instance = answer.instance;
      if (other) {
        this.forest.reset();
        return;
      }
      this.take(answer);
    } catch (error) {
      this.tell(explain(error));
    } finally {
      this.polling = false;
    }
  }

  take(answer) {
    this.forest.add(answer);
    this.table.update(this.forest.shown());
    this.placeWindow();
    this.count();
    if (!this.past && !this.forest.following) this.steered();
    this.tell(this.past && this.full() ? `More than ${counted(LIMIT, "record")} in this window: not all of them are shown.` : "");
  }

  /** Say how many there are. */
  count() {
    if (!this.forest.nodes.size) {
      this.says.textContent = this.past ? "No record in this window." : "No record has been linked yet.";
      return;
    }
    const clusters = this.forest.shown();
    const of = (verdict) => clusters.filter((one) => one.verdict === verdict).length;
    const records = clusters.reduce((sum, one) => sum + one.kept, 0);
    this.says.textContent = `${counted(records, "record")} shown, of ${counted(clusters.length, "cluster")}: `
      + `${number(of(NOVEL))} novel${this.fresh(clusters)}, ${number(of(KNOWN))} of known attacks.`;
  }

  /** How many novel clusters began within the last minute of traffic, in words. */
  fresh(clusters) {
    if (this.past || !this.forest.nodes.timed) return "";
    const since = this.forest.nodes.lastTime - NEW_NS;
    const count = clusters.filter((one) => one.verdict === NOVEL && one.first >= since).length;
    return count ? ` (${number(count)} in the last minute)` : "";
  }

  /** Whether there may be more records than are shown. */
  full() {
    return this.forest.nodes.size >= LIMIT;
  }

  tell(text) {
    say(this.notice, text);
  }

  async measure() {
    if (document.visibilityState !== "visible" || this.scrubber.playing) return;
    try {
      const extent = await get("forest/extent", { buckets: BUCKETS });
      if (this.ended) return;
      this.scrubber.show(extent);
      this.placeWindow();
    } catch {
      this.scrubber.element.hidden = true; // without a stored past the picture is live only
    }
  }

  /** The view was moved by hand: beyond what is kept, the past is fetched. */
  steered() {
    const { forest } = this;
    const { extent } = this.scrubber;
    const stored = extent && forest.timed && forest.left > extent.from && forest.right <= extent.to;
    const beyond = stored && !forest.following && forest.left < forest.extent().oldest;
    if (this.past || beyond) this.goTo(forest.left, forest.right);
    else this.placeWindow();
  }

  placeWindow() {
    const { forest } = this;
    if (!forest.nodes.size && !this.past) return;
    if (this.past) this.scrubber.place(this.past.left, this.past.right, false);
    else if (forest.timed) this.scrubber.place(forest.left, forest.right, forest.following);
  }

  goLive() {
    const wasPast = this.past !== null;
    this.past = this.loaded = null;
    this.turn += 1;
    clearTimeout(this.settling);
    if (wasPast) {
      this.forest.reset();
      this.poll();
    }
    this.forest.follow();
    this.placeWindow();
  }

  /** Look at a part of the past. */
  goTo(left, right) {
    if (!this.past) this.turn += 1;
    this.past = { left, right };
    this.forest.show(left, right, this.scrubber.extent);
    this.scrubber.place(left, right, false);
    const { loaded } = this;
    const inside = loaded && left >= loaded.left && right <= loaded.right;
    if (inside && (!this.full() || right - left > (loaded.right - loaded.left) * MUCH)) return;
    if (this.scrubber.playing && this.settling) return;
    clearTimeout(this.settling);
    this.settling = setTimeout(() => this.load(), SETTLE_MS);
  }

  /** How much more to fetch while it plays: so much as there may be room for. */
  ahead(span) {
    const known = this.loaded ? (this.loaded.right - this.loaded.left) / Math.max(1, this.forest.nodes.size) : Infinity;
    return Math.min(span, Math.max(span / 8, known * LIMIT * 0.9 - span));
  }

  async load() {
    const { left, right } = this.past;
    const turn = ++this.turn;
    const ahead = this.scrubber.playing ? this.ahead(right - left) : 0;
    try {
      const until = Math.ceil(right + ahead);
      const answer = await get("forest", { until, span: Math.ceil(until - left), limit: LIMIT });
      if (this.ended || turn !== this.turn) return;
      this.loaded = { left, right: right + ahead };
      const now = this.past;
      this.forest.reset();
      this.forest.show(now.left, now.right, this.scrubber.extent);
      this.take(answer);
    } catch (error) {
      this.tell(explain(error));
    } finally {
      if (turn === this.turn) this.settling = 0;
    }
  }
}

function keysHelp() {
  return h(
    "p", { class: "forest-help muted" },
    "Drag or ", h("kbd", null, "←"), " ", h("kbd", null, "→"), " to move, wheel or ", h("kbd", null, "+"), " ", h("kbd", null, "−"),
    " to zoom, double click or ", h("kbd", null, "Home"), " for all. What hangs on the trunk at the left, the root, is like nothing before; a dashed line leaves records out.",
  );
}

function every(milliseconds, fn) {
  const timer = setInterval(fn, milliseconds);
  return () => clearInterval(timer);
}
