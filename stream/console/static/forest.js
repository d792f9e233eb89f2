/**
 * The forest of links as a picture. Every mark is a record, every line the link to the record that it resembles most; what
 * resembles nothing hangs on the root, the trunk at the left. Time runs to the right, the newest at the edge; a row is a
 * cluster; bands are what is novel, known attacks and normal. It fetches nothing: give it answers of the daemon by `add`.
 *
 * Lengths are units, as high as a CSS pixel where text has its usual size and larger on large screens; `ratio` is how many
 * pixels of the image are one unit.
 *
 * `window.netclustForest` is a probe for tests: records kept, frames drawn so far, milliseconds that the last one took.
 */

import { colours, onTheme } from "./theme.js";
import { h } from "./dom.js";
import { clock, counted, number } from "./format.js";
import { KNOWN, NORMAL, NOVEL, Nodes } from "./forest_nodes.js";
import { Raster, mark, mixed, packed } from "./forest_raster.js";
import { BANDS, layout } from "./forest_layout.js";
import { drawAxis, drawPath, drawRows } from "./forest_ink.js";
import { locate, paintBands, paintLinks, paintNodes, paintStems } from "./forest_paint.js";
import { listen } from "./forest_input.js";

const AXIS = 22;
const FINEST = 2; // pixels of the image by which a CSS pixel is drawn
const SLOW_MS = 20;
const SLOW_FRAMES = 20;
const MOST_PIXELS = 6e6;
const STILL = 1 / 8; // of a pixel: less motion is not drawn
const EASE_MS = 110; // in which a row moves most of its way
const SLOWEST_FLOW_MS = 1500;
const CALM_MS = 3000; // rows are not moved more often, if it can be helped
const NEAR = 12;
const SHAPES = ["circle", "square", "diamond"];
const RADII = [[1.25, 1.6, 2, 2.3], [2.1, 2.6, 3.2, 4], [2.4, 3, 3.7, 4.6]];
const DENSEST = 10; // records a unit of width that are shown unless one asks for more
const NARROW = 600;
const GOLDEN = 0.618033988749895; // multiples of it, without their whole part, spread evenly

const still = matchMedia("(prefers-reduced-motion: reduce)");
const probe = (window.netclustForest = { nodes: 0, frames: 0, drawMilliseconds: 0 });

export class Forest {
  /** `open(cluster)` is called for what is clicked, `hover(place, x, y)` for what is pointed at, `moved()` when the view is changed by hand. */
  constructor({ open, hover, moved, rows = true, label = "Link forest" }) {
    this.frame = this.frame.bind(this);
    this.nodes = new Nodes();
    this.raster = new Raster();
    this.open = open;
    this.hover = hover;
    this.moved = moved;
    this.withRows = rows;
    this.name = label;
    this.wanted = "time";
    this.text = "";
    this.bandsShown = BANDS;
    this.finest = FINEST;
    this.bounds = null;
    this.bands = [];
    this.pointed = -1;
    this.marked = -1;
    const slots = this.nodes.capacity;
    this.top = new Float32Array(slots);
    this.high = new Float32Array(slots);
    this.foldedLane = new Float32Array(slots).fill(-1); // of clusters that share a row: a lane for each
    this.seated = new Float64Array(slots).fill(-1); // whose row it is
    this.glowed = new Float32Array(slots);
    this.crowd = new Float32Array(slots); // share of its row that a cluster's marks would cover
    this.xs = new Float32Array(slots); // of records, as drawn
    this.ys = new Float32Array(slots);
    this.topTo = new Float32Array(slots);
    this.highTo = new Float32Array(slots);
    this.canvas = h("canvas", { role: "img", tabindex: "0", "aria-label": label });
    this.element = h("div", { class: "forest" }, this.canvas);
    this.pen = this.canvas.getContext("2d", { alpha: false });
    this.margin = document.createElement("canvas");
    this.reset();
    this.repaint();
    this.resized = new ResizeObserver(() => this.resize());
    this.resized.observe(this.element);
    const seen = () => document.visibilityState === "visible" && this.change();
    document.addEventListener("visibilitychange", seen);
    this.endings = [
      onTheme(() => this.repaint()), listen(this), () => this.resized.disconnect(),
      () => document.removeEventListener("visibilitychange", seen), () => cancelAnimationFrame(this.waiting),
    ];
  }

  /** Stop: nothing is drawn any more. */
  end() {
    this.ended = true;
    for (const end of this.endings) end();
  }

  /** Forget all records; the view is fitted to what comes next. */
  reset() {
    this.nodes.clear();
    this.high.fill(0);
    this.highTo.fill(0);
    this.left = 0;
    this.right = 1;
    this.span = 0; // chosen by hand; 0: all that is kept
    this.following = true;
    this.flow = null;
    this.pointed = -1;
    this.hover?.(-1);
    this.bands = [];
    this.change();
  }

  /** Add an answer of the daemon. */
  add(answer) {
    const first = !this.nodes.size;
    this.nodes.add(answer);
    if (this.pointed >= 0 && this.nodes.tick[this.pointed] !== this.pointedTick) this.point(-1);
    probe.nodes = this.nodes.size;
    if (first || !this.calm()) this.arrange(first);
    if (this.following) this.go(first);
    this.describe();
    this.change();
  }

  /** Show only clusters whose number or label holds the text, and these bands. */
  filter(text, bandsShown = this.bandsShown) {
    this.text = text.trim().toLowerCase();
    this.bandsShown = bandsShown;
    this.arrange(false);
    this.describe();
    this.change();
  }

  /** Lie along "time" or "tick", the number of arrival; then `follow` or `show` is due. */
  lieAlong(wanted) {
    this.wanted = wanted;
  }

  /** Show the newest, and go on doing so. */
  follow() {
    this.bounds = null;
    this.span = 0;
    this.following = true;
    this.go(true);
    this.change();
  }

  /** Show a part of the past; `bounds` is as far as one can go. */
  show(left, right, bounds) {
    this.following = false;
    this.flow = null;
    this.bounds = bounds;
    this.left = left;
    this.right = right;
    this.change();
  }

  /** Light up the row of a cluster; null: none. */
  light(id) {
    this.marked = this.nodes.clusters.get(id)?.slot ?? -1;
    this.change();
  }

  /** The clusters that pass the filter. */
  shown() {
    return [...this.nodes.clusters.values()].filter((one) => this.passes(one));
  }

  get timed() {
    return this.nodes.along(this.wanted) === this.nodes.time;
  }

  /** The oldest kept and the newest; and from where on there are not too many to see, nor a few old ones that lie far off. */
  extent() {
    const { nodes } = this;
    const along = nodes.along(this.wanted);
    let oldest = Infinity;
    let newest = -Infinity;
    for (let k = 0; k < nodes.size; k++) {
      const at = along[nodes.at(k)];
      if (at < oldest) oldest = at;
      if (at > newest) newest = at;
    }
    const nth = (k) => along[nodes.at(Math.max(0, Math.min(nodes.size - 1, Math.floor(k))))];
    const early = nth(nodes.size / 20);
    const most = newest - early < (newest - oldest) / 4 ? early : oldest;
    const from = Math.max(most, nth(nodes.size - DENSEST * (this.width - this.gutter)));
    return { oldest, newest, from: Math.min(from, newest) };
  }

  /** Move to the newest: by and by, in the time until more is expected. */
  go(atOnce) {
    if (!this.nodes.size || !this.height) return;
    const { oldest, newest, from } = this.extent();
    const span = Math.max(this.leastSpan(), this.span ? Math.min(this.span, newest - oldest) : newest - from);
    const now = performance.now();
    const to = { left: newest - span * 1.01, right: newest + span * 0.012 };
    const period = Math.min(now - (this.wentAt ?? 0), SLOWEST_FLOW_MS);
    this.wentAt = now;
    if (atOnce || still.matches || to.left > this.right || to.right < this.left) {
      this.flow = null;
      [this.left, this.right] = [to.left, to.right];
    } else this.flow = { from: { left: this.left, right: this.right }, to, start: now, period };
  }

  leastSpan() {
    return this.timed ? 1e6 : 8;
  }

  /** Move the view by a part of its width, to the right if positive. */
  pan(part) {
    const by = part * (this.right - this.left);
    this.steer(this.left + by, this.right + by);
  }

  /** Show `factor` times as much, with what is at part `at` of the width (0..1) staying in its place. */
  zoom(factor, at = 1) {
    const span = this.right - this.left;
    const next = Math.max(span * factor, this.leastSpan());
    if (this.following) {
      this.span = next;
      this.go(true);
      this.change();
      this.moved?.();
      return;
    }
    const middle = this.left + at * span;
    this.steer(middle - at * next, middle + (1 - at) * next);
  }

  /** Whether one could see more by zooming out. */
  canWiden() {
    const { oldest, newest } = this.bounds ? { oldest: this.bounds.from, newest: this.bounds.to } : this.extent();
    return this.right - this.left < newest - oldest;
  }

  steer(left, right) {
    if (!this.nodes.size && !this.bounds) return;
    const { oldest, newest } = this.bounds ? { oldest: this.bounds.from, newest: this.bounds.to } : this.extent();
    const span = Math.min(right - left, Math.max((newest - oldest) * 1.03, this.leastSpan()));
    const most = newest + span * 0.012;
    const least = this.bounds ? oldest - span * 0.012 : oldest - span * 0.5;
    this.flow = null;
    this.right = Math.min(Math.max(right, least + span), Math.max(most, least + span));
    this.left = this.right - span;
    if (!this.bounds) {
      this.following = right >= most;
      this.span = span;
    }
    this.change();
    this.moved?.();
  }

  passes({ id, label, entity, verdict }) {
    if (!this.bandsShown.includes(verdict)) return false;
    return !this.text || `#${id}`.includes(this.text) || `${label} ${entity}`.toLowerCase().includes(this.text);
  }

  /** Whether rows can stay as they are for now: none is of a cluster that is gone, and what is new finds room in a shared row. */
  calm() {
    if (performance.now() - this.arrangedAt > CALM_MS) return false;
    if (this.bands.some((band) => band.rows.some((row) => row.cluster && !row.cluster.kept))) return false;
    const shared = new Map(this.bands.map((band) => [band.verdict, band.rows.find((row) => row.folded)]));
    for (const one of this.shown()) {
      if (this.highTo[one.slot] > 0 && this.seated[one.slot] === one.id) continue;
      const row = shared.get(one.verdict);
      if (!row) return false;
      row.folded.push(one);
      this.seat(one, row, true);
    }
    return true;
  }

  /** Give clusters their rows; `atOnce`: without motion. */
  arrange(atOnce) {
    if (!this.height) return;
    const newest = this.nodes.newest;
    const oldest = this.nodes.tick[this.nodes.start];
    const clusters = this.shown();
    for (const one of clusters) {
      const recent = (this.nodes.tick[one.newest] - oldest) / Math.max(1, newest - oldest);
      const kept = this.highTo[one.slot] > 0 && !one.folded ? 0.5 : 0; // a row is not given up for a little more
      one.weight = Math.log2(1 + one.kept) + 5 * recent + kept;
    }
    const verdicts = new Set(clusters.map((one) => one.verdict));
    this.bands = this.withRows
      ? layout(clusters, this.height - AXIS, this.bandsShown)
      : layout(clusters, this.height - AXIS, [...verdicts], 0);
    this.highTo.fill(0);
    for (const band of this.bands) {
      for (const row of band.rows) {
        for (const cluster of row.folded ?? [row.cluster]) this.seat(cluster, row, atOnce);
      }
    }
    this.arrangedAt = performance.now();
    this.settled = false;
    this.marginStale = true;
  }

  seat(cluster, row, atOnce) {
    const { slot } = cluster;
    if (this.seated[slot] !== cluster.id) this.high[slot] = 0;
    this.seated[slot] = cluster.id;
    cluster.folded = Boolean(row.folded);
    this.foldedLane[slot] = row.folded ? (cluster.id * GOLDEN) % 1 : -1;
    this.crowd[slot] = (cluster.kept * 12) / (row.height * (this.width - this.gutter));
    this.topTo[slot] = row.top;
    this.highTo[slot] = row.height;
    if (!atOnce && !still.matches && this.high[slot] > 0) return;
    this.top[slot] = row.top;
    this.high[slot] = row.height;
  }

  /** Rows go a part of their way; true while they are not there yet. */
  ease(milliseconds) {
    const part = 1 - Math.exp(-milliseconds / EASE_MS);
    let moving = false;
    for (const { slot } of this.nodes.clusters.values()) {
      const far = this.topTo[slot] - this.top[slot];
      const more = this.highTo[slot] - this.high[slot];
      if (this.highTo[slot] === 0 || Math.abs(far) + Math.abs(more) < 0.3) {
        this.top[slot] = this.topTo[slot];
        this.high[slot] = this.highTo[slot];
        continue;
      }
      moving = true;
      this.top[slot] += far * part;
      this.high[slot] += more * part;
    }
    return moving;
  }

  /** Something is different: draw when the browser is ready. */
  change() {
    this.stale = true;
    if (this.waiting || this.ended) return;
    this.waiting = requestAnimationFrame(this.frame);
  }

  frame(now) {
    this.waiting = 0;
    if (document.visibilityState !== "visible" || !this.height) return;
    const { left, right } = this.drawn ?? {};
    this.advance(now);
    if (!this.settled) {
      this.settled = !this.ease(Math.min(100, now - (this.lastFrame ?? now)));
      this.stale = this.marginStale = true;
    }
    this.lastFrame = now;
    const shift = (Math.abs(this.right - right) + Math.abs(this.left - left)) / (this.right - this.left);
    if (this.stale || !(shift * this.raster.width < STILL)) this.draw();
    this.stale = false;
    if (this.flow || !this.settled) this.waiting = requestAnimationFrame(this.frame);
  }

  advance(now) {
    if (!this.flow) return;
    const { from, to, start, period } = this.flow;
    const part = Math.min(1, Math.max(0, (now - start) / period));
    this.left = from.left + (to.left - from.left) * part;
    this.right = from.right + (to.right - from.right) * part;
    if (part === 1) this.flow = null;
  }

  resize() {
    const { width, height } = this.element.getBoundingClientRect();
    if (!width || !height || this.ended) return;
    const fine = Math.min(devicePixelRatio, this.finest, Math.sqrt(MOST_PIXELS / (width * height)));
    this.unit = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
    const ratio = fine * this.unit;
    this.width = width / this.unit;
    this.height = height / this.unit;
    this.ratio = ratio;
    this.gutter = this.withRows ? Math.round(Math.min(210, Math.max(86, this.width * 0.17))) : 26;
    this.canvas.width = Math.round(width * fine);
    this.canvas.height = Math.round(height * fine);
    this.margin.width = Math.ceil(this.gutter * ratio);
    this.margin.height = this.canvas.height;
    this.raster.resize(this.canvas.width, this.canvas.height, Math.ceil(this.gutter * ratio), ratio >= 1.5);
    const grown = this.width < NARROW ? ratio * 0.8 : ratio;
    this.marks = SHAPES.map((shape, verdict) => RADII[verdict].map((radius) => mark(shape, radius * grown)));
    this.glow = mark("glow", 13 * ratio);
    this.arrange(true);
    if (this.following) this.go(true);
    this.drawn = null;
    this.change();
  }

  /** Take the colours of the theme. */
  repaint() {
    const css = colours();
    const panel = packed(css.panel);
    const inks = [packed(css.normal), packed(css.known), packed(css.novel)];
    const line = packed(css.line);
    this.css = { ...css, verdicts: [css.normal, css.known, css.novel] };
    this.paint = {
      bg: packed(css.bg), panel, line, inks, text: packed(css.text),
      bands: inks.map((ink, verdict) => mixed(panel, ink, verdict === NORMAL ? 0.025 : 0.05)),
    };
    this.marginStale = true;
    this.change();
  }

  /** Where a place along the axis is, in pixels of the image. */
  scale() {
    const from = this.raster.left;
    const factor = (this.raster.width - from) / (this.right - this.left);
    return { from, factor };
  }

  yOf(i) {
    const slot = this.nodes.slot[i];
    const room = this.high[slot];
    const edge = Math.min(5, room * 0.22);
    const lane = this.foldedLane[slot] >= 0 ? this.foldedLane[slot] : this.nodes.lane[i];
    return (this.top[slot] + edge + lane * (room - 2 * edge)) * this.ratio;
  }

  xOf(i) {
    const { from, factor } = this.scale();
    return from + (this.nodes.along(this.wanted)[i] - this.left) * factor;
  }

  draw() {
    const started = performance.now();
    this.drawn = { left: this.left, right: this.right };
    locate(this);
    paintBands(this);
    paintStems(this);
    paintLinks(this);
    paintNodes(this);
    if (this.marginStale) drawRows(this);
    this.marginStale = false;
    this.pen.putImageData(this.raster.image, 0, 0);
    this.pen.drawImage(this.margin, 0, 0);
    drawAxis(this, AXIS);
    if (this.pointed >= 0) drawPath(this);
    probe.frames += 1;
    probe.drawMilliseconds = performance.now() - started;
    this.spare(probe.drawMilliseconds);
  }

  /** Where drawing is slow for a while, do with fewer pixels. */
  spare(milliseconds) {
    this.slow = milliseconds > SLOW_MS ? (this.slow ?? 0) + 1 : 0;
    if (this.slow < SLOW_FRAMES || this.finest <= 1) return;
    this.finest = 1;
    this.resize();
  }

  /** The record that is nearest to a point and near enough, or -1. All are looked at: it takes a twentieth of a millisecond. */
  nearest(x, y) {
    const { nodes, ratio } = this;
    const along = nodes.along(this.wanted);
    const { from, factor } = this.scale();
    const [px, py] = [x * ratio, y * ratio];
    let best = (NEAR * ratio) ** 2;
    let found = -1;
    for (let k = 0; k < nodes.size; k++) {
      const i = nodes.at(k);
      const dx = from + (along[i] - this.left) * factor - px;
      if (Math.abs(dx) > NEAR * ratio || this.high[nodes.slot[i]] === 0) continue;
      const dy = this.yOf(i) - py;
      if (dx * dx + dy * dy <= best) {
        best = dx * dx + dy * dy;
        found = i;
      }
    }
    return found;
  }

  /** The cluster whose row is at a height, or null. */
  rowAt(y) {
    for (const band of this.bands) {
      for (const row of band.rows) {
        if (y >= row.top && y < row.top + row.height) return row.cluster ?? null;
      }
    }
    return null;
  }

  point(i, x, y) {
    if (i === this.pointed && i < 0) return;
    this.pointed = i;
    this.pointedTick = i < 0 ? -1 : this.nodes.tick[i];
    this.hover?.(i, x, y);
    this.change();
  }

  /** Say in words what the picture shows. */
  describe() {
    if (document.activeElement === this.canvas) return; // it would be read out every time
    const { nodes } = this;
    const clusters = this.shown();
    const of = (verdict) => clusters.filter((one) => one.verdict === verdict).length;
    const newest = nodes.size ? nodes.time[nodes.at(nodes.size - 1)] : -1;
    const records = clusters.reduce((sum, one) => sum + one.kept, 0);
    const said = `${this.name}: ${counted(records, "record")} of ${counted(clusters.length, "cluster")}, `
      + `${number(of(NOVEL))} novel, ${number(of(KNOWN))} known attacks, ${number(of(NORMAL))} normal`
      + `${newest >= 0 ? `; newest ${clock(newest)}` : ""}. The same is in the table.`;
    this.canvas.setAttribute("aria-label", said);
  }
}
