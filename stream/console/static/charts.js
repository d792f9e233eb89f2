/**
 * Small charts on a canvas: a line, areas on top of each other, or bars on top of each other, over time. They keep a
 * bounded number of points and draw at most once a frame, so a page that is open for days stays as it is.
 */

import { h } from "./dom.js";
import { clock } from "./format.js";
import { colours, onTheme } from "./theme.js";

const CAPACITY = 3000;
const GAP = 3.5; // steps without a sample that break a line
const STEPS = 50;
const FAINT = 0.14;
const SOLID = 0.55;

/**
 * A chart. `series`: `{name, colour}` (a name of a theme colour); `kind`: "line", "stack" or "bars"; `format`: numbers
 * for people; `most`: the top of the scale, if it is fixed. Returns `{element, set, push, end}`.
 */
export function chart({ title, series, kind = "line", format, most = 0 }) {
  const canvas = h("canvas", { role: "img", "aria-label": title });
  const from = h("span");
  const reading = h("span");
  const to = h("span");
  const element = h("div", { class: "chart" }, canvas, h("div", { class: "chart-scale", "aria-hidden": "true" }, from, reading, to));
  let times = [];
  let columns = series.map(() => []);
  let step = 0;
  let pointer = null;
  let frame = 0;

  const ask = () => { frame ||= requestAnimationFrame(draw); };

  function draw() {
    frame = 0;
    const { clientWidth: width, clientHeight: height } = canvas;
    if (!width || !height) return;
    const scale = devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * scale)) canvas.width = Math.round(width * scale);
    if (canvas.height !== Math.round(height * scale)) canvas.height = Math.round(height * scale);
    const context = canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    const tops = stackTops(columns, kind);
    const peak = highest(tops);
    const top = Math.max(most || 0, peak) || 1;
    const x = placer(times, width, kind === "bars" ? step : 0);
    const view = { context, width, height, x, y: (v) => height - 1 - (height - 3) * (v / top) };
    ground(view);
    if (kind === "bars") drawBars(view, times, tops, series, step);
    else drawAreas(view, times, tops, series, kind, step);
    say(view, peak);
  }

  function say(view, peak) {
    const last = times.length - 1;
    const at = pointer === null || last < 0 ? -1 : nearest(times, view.x, pointer);
    if (at >= 0) mark(view, times[at], kind === "bars" ? step : 0);
    from.textContent = last >= 0 ? clock(times[0]) : "nothing yet";
    to.textContent = last >= 0 ? clock(times[last] + (kind === "bars" ? step : 0)) : "";
    reading.textContent = at >= 0 ? readingAt(at) : `max ${format(peak)}`;
    if (at >= 0) [from.textContent, to.textContent] = ["", ""];
    const now = last >= 0 ? series.map(({ name }, i) => `${name} ${format(columns[i][last])}`).join(", ") : "nothing yet";
    canvas.setAttribute("aria-label", `${title}: last ${now}; highest ${format(peak)}`);
  }

  function readingAt(at) {
    const values = series.map(({ name }, i) => (series.length > 1 ? `${name} ${format(columns[i][at])}` : format(columns[i][at])));
    return `${clock(times[at])}: ${values.join(", ")}`;
  }

  const watcher = new ResizeObserver(ask);
  watcher.observe(canvas);
  const endTheme = onTheme(ask);
  canvas.addEventListener("pointermove", (event) => { pointer = event.offsetX; ask(); });
  canvas.addEventListener("pointerleave", () => { pointer = null; ask(); });

  return {
    element,
    /** Show these points instead; `size` is the width of a step in ns, where it is known. */
    set(newTimes, newColumns, size = 0) {
      times = newTimes.slice(-CAPACITY);
      columns = series.map((_, i) => (newColumns[i] ?? newTimes.map(() => NaN)).slice(-CAPACITY));
      step = size || typicalStep(times);
      ask();
    },
    /** Add a point, and let go of the oldest if there are too many or it is older than `keep` ns. */
    push(time, values, keep = Infinity) {
      if (times.length && time <= times[times.length - 1]) return;
      times.push(time);
      columns.forEach((column, i) => column.push(values[i]));
      let old = Math.max(0, times.length - CAPACITY);
      while (times[old] < time - keep) old += 1;
      if (old) [times, ...columns].forEach((list) => list.splice(0, old));
      step = typicalStep(times);
      ask();
    },
    end() {
      cancelAnimationFrame(frame);
      watcher.disconnect();
      endTheme();
    },
  };
}

/** For each series the top edge of what is drawn for it: on top of those before it, except for lines. */
function stackTops(columns, kind) {
  if (kind === "line") return columns;
  const tops = [];
  for (const column of columns) {
    const below = tops[tops.length - 1];
    tops.push(column.map((value, i) => (Number.isFinite(value) ? value : 0) + (below ? below[i] : 0)));
  }
  return tops;
}

function highest(lists) {
  let top = 0;
  for (const list of lists) for (const value of list) if (value > top && value < 1e300) top = value;
  return top;
}

/** The median of the last steps: one long gap says nothing. */
function typicalStep(times) {
  const last = times.slice(-STEPS);
  const steps = last.slice(1).map((time, i) => time - last[i]).sort((a, b) => a - b);
  return steps.length ? steps[steps.length >> 1] : 0;
}

function placer(times, width, extra) {
  const [first, last] = [times[0] ?? 0, (times[times.length - 1] ?? 1) + extra];
  const length = last - first || 1;
  return (time) => 1 + (width - 2) * ((time - first) / length);
}

function nearest(times, x, pointer) {
  let best = 0;
  for (let i = 1; i < times.length; i += 1) {
    if (Math.abs(x(times[i]) - pointer) <= Math.abs(x(times[best]) - pointer)) best = i;
  }
  return best;
}

function ground({ context, width, height }) {
  context.strokeStyle = colours().line;
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(0, height - 0.5);
  context.lineTo(width, height - 0.5);
  context.stroke();
}

function mark({ context, height, x }, time, size) {
  context.strokeStyle = colours().muted;
  context.beginPath();
  const at = x(time + size / 2);
  context.moveTo(at, 0);
  context.lineTo(at, height);
  context.stroke();
}

function drawAreas(view, times, tops, series, kind, step) {
  const runs = unbroken(times, step);
  for (let i = series.length - 1; i >= 0; i -= 1) {
    const colour = colours()[series[i].colour];
    for (const [start, end] of runs) {
      drawArea(view, times, tops[i], kind === "stack" && i ? tops[i - 1] : null, start, end, colour, kind);
    }
  }
}

function drawArea({ context, x, y }, times, top, below, start, end, colour, kind) {
  context.beginPath();
  for (let i = start; i < end; i += 1) context.lineTo(x(times[i]), y(finite(top[i])));
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  if (kind === "line" || end - start > 1) context.stroke();
  for (let i = end - 1; i >= start; i -= 1) context.lineTo(x(times[i]), y(below ? below[i] : 0));
  context.closePath();
  context.fillStyle = colour;
  context.globalAlpha = kind === "stack" ? SOLID : FAINT;
  context.fill();
  context.globalAlpha = 1;
}

function drawBars({ context, width, height, x, y }, times, tops, series, step) {
  const space = times.length ? Math.max(1, Math.min(width / 3, x(times[0] + step) - x(times[0]))) : 1;
  for (let i = series.length - 1; i >= 0; i -= 1) {
    context.fillStyle = colours()[series[i].colour];
    times.forEach((time, j) => {
      const top = y(tops[i][j]);
      if (tops[i][j] > 0) context.fillRect(x(time), top, Math.max(1, space - 1), height - 1 - top);
    });
  }
}

/** The stretches in which samples follow each other, as [start, end). */
function unbroken(times, step) {
  const runs = [];
  let start = 0;
  for (let i = 1; i <= times.length; i += 1) {
    if (i < times.length && (!step || times[i] - times[i - 1] <= GAP * step)) continue;
    runs.push([start, i]);
    start = i;
  }
  return times.length ? runs : [];
}

function finite(value) {
  return Number.isFinite(value) ? value : 0;
}
