/**
 * The stored past as a bar: how many records there were and how many of them anomalous, and the window that is looked
 * at, which can be dragged, made wider at its edges, moved by keys, or played.
 */

import { h } from "./dom.js";
import { clock, counted, span as lasting } from "./format.js";
import { colours, onTheme } from "./theme.js";

const LEAST_NS = 1e6;
const LEAST_PIXELS = 10;
const LEAD = 10; // windows that playing goes back from the end
const SPEEDS = [["slow", 30], ["medium", 12], ["fast", 4]]; // seconds in which a window passes

export class Scrubber {
  /** `moved(left, right)` is called when the window is moved by hand or played, `live()` when the newest is wanted. */
  constructor({ moved, live }) {
    this.moved = moved;
    this.live = live;
    this.extent = null;
    this.left = this.right = 0;
    this.isLive = true;
    this.build();
    this.resized = new ResizeObserver(() => this.draw());
    this.resized.observe(this.track);
    this.endings = [onTheme(() => this.draw()), () => this.resized.disconnect(), () => this.pause()];
  }

  end() {
    for (const end of this.endings) end();
  }

  build() {
    this.canvas = h("canvas", { "aria-hidden": "true" });
    this.thumb = h(
      "div", { class: "scrubber-window", role: "slider", tabindex: "0", "aria-label": "Time shown", onkeydown: (event) => this.typed(event) },
      h("span", { class: "scrubber-edge", "data-edge": "left" }), h("span", { class: "scrubber-edge", "data-edge": "right" }),
    );
    this.track = h("div", { class: "scrubber-track", onpointerdown: (event) => this.grab(event) }, this.canvas, this.thumb);
    this.liveButton = h("button", { type: "button", class: "scrubber-live", onclick: () => this.live() }, "Live");
    this.playButton = h("button", { type: "button", onclick: () => (this.playing ? this.pause() : this.play()) }, "Play");
    this.speed = h(
      "select", { "aria-label": "Speed of playing" },
      SPEEDS.map(([name, seconds]) => h("option", { value: String(seconds), selected: name === "medium" }, name)),
    );
    this.says = h("p", { class: "scrubber-says" });
    this.element = h(
      "section", { class: "scrubber", "aria-label": "The past" }, this.track,
      h("div", { class: "scrubber-controls" }, this.liveButton, this.playButton, this.speed, this.says),
    );
  }

  /** What is stored, as the daemon answers. */
  show(extent) {
    this.extent = extent.nodes && extent.to > extent.from ? extent : null;
    this.element.hidden = !this.extent;
    this.draw();
  }

  /** The window that is shown. */
  place(left, right, isLive) {
    if (isLive) this.pause();
    this.isLive = isLive;
    this.left = left;
    this.right = right;
    this.put();
  }

  /** Move the window; it keeps to what is stored. */
  set(left, right) {
    const { from, to } = this.extent;
    const span = Math.min(Math.max(right - left, LEAST_NS), to - from);
    this.left = Math.min(Math.max(left, from), to - span);
    this.right = this.left + span;
    this.isLive = false;
    this.put();
    this.moved(this.left, this.right);
  }

  put() {
    if (!this.extent) return;
    const { from, to } = this.extent;
    const whole = to - from;
    const left = Math.min(1, Math.max(0, (this.left - from) / whole));
    const right = Math.min(1, Math.max(left, (this.right - from) / whole));
    const least = LEAST_PIXELS / Math.max(1, this.track.clientWidth);
    const wide = Math.max(least, right - left);
    this.thumb.style.left = `${Math.min(left, 1 - wide) * 100}%`;
    this.thumb.style.width = `${wide * 100}%`;
    this.thumb.dataset.live = String(this.isLive);
    const said = `${clock(this.left)} to ${clock(this.right)}, ${lasting(this.right - this.left)}`;
    const says = this.isLive ? `Live: the last ${lasting(this.right - this.left)}` : said;
    for (const [name, value] of [["valuemin", 0], ["valuemax", 1000], ["valuenow", Math.round(((left + right) / 2) * 1000)], ["valuetext", says]]) {
      this.thumb.setAttribute(`aria-${name}`, String(value));
    }
    this.liveButton.setAttribute("aria-pressed", String(this.isLive));
    this.says.textContent = `${says} · ${counted(this.extent.nodes, "record")} stored`;
  }

  draw() {
    const { clientWidth: width, clientHeight: height } = this.track;
    if (!this.extent || !width) return;
    const ratio = Math.min(devicePixelRatio, 2);
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    const pen = this.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const { counts, anomalous } = this.extent;
    const { muted, novel } = colours();
    const most = Math.sqrt(Math.max(1, ...counts));
    const wide = width / counts.length;
    const bar = (k, n, colour) => {
      const high = (Math.sqrt(n) / most) * (height - 4);
      pen.fillStyle = colour;
      pen.fillRect(k * wide, height - high, Math.max(1, wide - 1), high);
    };
    for (let k = 0; k < counts.length; k++) {
      pen.globalAlpha = 0.35;
      bar(k, counts[k], muted);
      pen.globalAlpha = 1;
      if (anomalous[k]) bar(k, anomalous[k], novel);
    }
    this.put();
  }

  grab(event) {
    if (!this.extent || event.button !== 0) return;
    const box = this.track.getBoundingClientRect();
    const { from, to } = this.extent;
    const at = (x) => from + ((x - box.left) / box.width) * (to - from);
    const edge = event.target.dataset.edge;
    const start = at(event.clientX);
    const span = this.right - this.left;
    const least = at(LEAST_PIXELS) - at(0);
    const inside = edge || this.thumb.contains(event.target);
    const [left, right] = inside ? [this.left, this.right] : [start - span / 2, start + span / 2];
    this.pause();
    if (!inside) this.set(left, right);
    event.preventDefault();
    this.thumb.focus({ preventScroll: true });
    this.track.setPointerCapture(event.pointerId);
    const drag = (moving) => {
      const by = at(moving.clientX) - start;
      if (edge === "left") this.set(Math.min(left + by, right - least), right);
      else if (edge === "right") this.set(left, Math.max(right + by, left + least));
      else this.set(left + by, right + by);
    };
    const drop = () => {
      this.track.removeEventListener("pointermove", drag);
      this.track.removeEventListener("pointerup", drop);
      this.track.removeEventListener("pointercancel", drop);
    };
    this.track.addEventListener("pointermove", drag);
    this.track.addEventListener("pointerup", drop);
    this.track.addEventListener("pointercancel", drop);
  }

  typed(event) {
    if (!this.extent || event.ctrlKey || event.metaKey || event.altKey) return;
    const span = this.right - this.left;
    const { from, to } = this.extent;
    const moves = {
      ArrowLeft: [-span / 10, -span / 10], ArrowDown: [-span / 10, -span / 10],
      ArrowRight: [span / 10, span / 10], ArrowUp: [span / 10, span / 10],
      PageDown: [-span, -span], PageUp: [span, span],
      Home: [from - this.left, from - this.left], End: [to - this.right, to - this.right],
      "+": [span / 8, -span / 8], "=": [span / 8, -span / 8], "-": [-span / 8, span / 8],
    };
    if (!Object.hasOwn(moves, event.key)) return;
    event.preventDefault();
    event.stopPropagation();
    this.pause();
    const [left, right] = moves[event.key];
    this.set(this.left + left, this.right + right);
  }

  /** Move through the past until its end. */
  play() {
    if (!this.extent) return;
    const span = this.right - this.left;
    if (this.right >= this.extent.to - span / 1000) this.set(this.extent.to - (LEAD + 1) * span, this.extent.to - LEAD * span);
    this.playing = true;
    this.playButton.textContent = "Pause";
    let before = performance.now();
    const step = (now) => {
      if (!this.playing) return;
      const by = ((this.right - this.left) * (now - before)) / 1000 / Number(this.speed.value);
      before = now;
      this.set(this.left + by, this.right + by);
      if (this.right >= this.extent.to) this.pause();
      else this.step = requestAnimationFrame(step);
    };
    this.step = requestAnimationFrame(step);
  }

  pause() {
    this.playing = false;
    cancelAnimationFrame(this.step);
    this.playButton.textContent = "Play";
  }
}
