/** What is written and drawn over the marks of the forest: names of rows, the trunk, the axis of time, a path of links. */

import { clock, number } from "./format.js";
import { KNOWN, NOVEL, ROOT, VERDICTS } from "./forest_nodes.js";
import { ticks } from "./forest_layout.js";

const FONT = "system-ui, sans-serif";
const TRUNK = 11; // pixels left of the plot
const ROOMY = 130; // a margin as wide has room for numbers of records
const LONGEST_PATH = 64;
const DAY = 86_400e9;
const minute = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const second = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

/** Names of bands and rows and the trunk, on the margin's own canvas: they change seldom. */
export function drawRows(forest) {
  const { margin, ratio } = forest;
  const pen = margin.getContext("2d");
  pen.setTransform(1, 0, 0, 1, 0, 0);
  pen.clearRect(0, 0, margin.width, margin.height);
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.textBaseline = "middle";
  drawTrunk(pen, forest);
  if (!forest.withRows) return;
  for (const band of forest.bands) {
    drawHead(pen, band, forest);
    for (const row of band.rows) drawName(pen, row, band, forest);
  }
}

function drawHead(pen, band, { css, gutter }) {
  const y = band.top + 12;
  pen.fillStyle = css.verdicts[band.verdict];
  shape(pen, band.verdict, 12, y, 5);
  pen.fillStyle = css.text;
  pen.font = `600 12px ${FONT}`;
  pen.textAlign = "left";
  const roomy = gutter >= ROOMY;
  pen.fillText(band.verdict === KNOWN ? (roomy ? "Known attacks" : "Known") : VERDICTS[band.verdict], 23, y);
  if (!roomy) return;
  pen.fillStyle = css.muted;
  pen.font = `11px ${FONT}`;
  pen.textAlign = "right";
  pen.fillText(band.clusters ? number(band.clusters) : "none", gutter - 22, y);
}

function drawName(pen, row, band, forest) {
  const { css, gutter, top, high } = forest;
  const [y, room] = row.cluster
    ? [top[row.cluster.slot] + high[row.cluster.slot] / 2, high[row.cluster.slot]]
    : [row.top + row.height / 2, row.height];
  if (room < 9) return;
  pen.font = `11px ${FONT}`;
  const end = gutter - 22;
  if (row.folded) {
    pen.fillStyle = css.muted;
    pen.textAlign = "left";
    pen.fillText(`${number(row.folded.length)} more`, 12, y);
    return;
  }
  const { id, label, entity, records } = row.cluster;
  const count = gutter >= ROOMY ? number(records) : "";
  pen.fillStyle = css.muted;
  pen.textAlign = "right";
  pen.fillText(count, end, y);
  pen.textAlign = "left";
  pen.fillStyle = css.text;
  const name = `#${id} ${band.verdict === NOVEL && label === "novel" ? entity : label.replace(/^attack:/, "")}`;
  pen.fillText(cut(pen, name, end - pen.measureText(count).width - (count ? 20 : 8)), 12, y);
}

/** The root, and a branch to every row that hangs on it; other rows are held by references, shown as a pin. */
function drawTrunk(pen, forest) {
  const { css, gutter, nodes } = forest;
  const x = gutter - TRUNK;
  const hung = [];
  for (const band of forest.bands) {
    for (const { cluster, folded, top, height } of band.rows) {
      const y = cluster ? forest.top[cluster.slot] + forest.high[cluster.slot] / 2 : top + height / 2;
      const onRoot = folded ? band.verdict === NOVEL : cluster.verdict === NOVEL || nodes.link[cluster.oldest] === ROOT;
      if (onRoot) hung.push([y, band.verdict]);
      else {
        pen.fillStyle = css.verdicts[band.verdict];
        pen.fillRect(gutter - 6, y - 3, 2, 6);
        pen.fillRect(gutter - 4, y - 0.75, 4, 1.5);
      }
    }
  }
  if (!hung.length) return;
  const top = forest.bands[0].top + (forest.withRows ? 12 : 8);
  const lowest = Math.max(...hung.map(([y]) => y));
  pen.lineWidth = 2;
  pen.strokeStyle = css.muted;
  pen.beginPath();
  pen.moveTo(x, top + 4);
  pen.lineTo(x, lowest - 5);
  pen.stroke();
  pen.lineWidth = 1.5;
  for (const [y, verdict] of hung) {
    pen.strokeStyle = css.verdicts[verdict];
    pen.beginPath();
    pen.moveTo(x, y - 5);
    pen.quadraticCurveTo(x, y, x + 5, y);
    pen.lineTo(gutter, y);
    pen.stroke();
  }
  pen.lineWidth = 2;
  pen.strokeStyle = css.text;
  pen.fillStyle = css.panel;
  pen.beginPath();
  pen.arc(x, top, 4, 0, 2 * Math.PI);
  pen.fill();
  pen.stroke();
}

/** Round times, or numbers of arrival, below the rows. */
export function drawAxis(forest, high) {
  const { pen, ratio, css, gutter, width, height, left, right, timed } = forest;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  const wide = width - gutter;
  const { marks, step } = ticks(left, right, Math.max(2, wide / 110), timed);
  const write = timed ? timeWriter(step) : (at) => number(at);
  pen.font = `11px ${FONT}`;
  pen.textBaseline = "middle";
  pen.textAlign = "center";
  const floor = height - high;
  for (const at of marks) {
    const x = gutter + ((at - left) / (right - left)) * wide;
    pen.globalAlpha = 0.5;
    pen.fillStyle = css.line;
    pen.fillRect(Math.round(x), 0, 1, floor + 4);
    pen.globalAlpha = 1;
    if (x < gutter + 26 || x > width - 26) continue;
    pen.fillStyle = css.muted;
    pen.fillText(write(at), x, floor + 13);
  }
  if (forest.withRows) {
    pen.textAlign = "left";
    pen.fillStyle = css.muted;
    pen.fillText(timed ? dateOf(left, right) : "arrival", 12, floor + 13, gutter - 16);
  }
  pen.setTransform(1, 0, 0, 1, 0, 0);
}

/** The record pointed at and what it hangs on, link by link. */
export function drawPath(forest) {
  const { pen, ratio, css, nodes, raster } = forest;
  pen.save();
  pen.beginPath();
  pen.rect(raster.left, 0, raster.width - raster.left, raster.height);
  pen.clip();
  pen.lineWidth = 2 * ratio;
  pen.strokeStyle = css.text;
  let i = forest.pointed;
  for (let step = 0; step < LONGEST_PATH; step++) {
    const [x, y] = [forest.xOf(i), forest.yOf(i)];
    const p = nodes.parentOf(i);
    pen.beginPath();
    pen.moveTo(x, y);
    pen.setLineDash(nodes.hops[i] > 1 || (p < 0 && nodes.link[i] < ROOT) ? [4 * ratio, 4 * ratio] : []);
    if (p < 0) {
      const slot = nodes.slot[i];
      const end = nodes.link[i] === ROOT ? raster.left : Math.max(raster.left, x - 60 * ratio);
      pen.lineTo(end, nodes.link[i] === ROOT ? (forest.top[slot] + forest.high[slot] / 2) * ratio : y);
      pen.stroke();
      break;
    }
    const [px, py] = [forest.xOf(p), forest.yOf(p)];
    const turn = Math.max(px, x - 8 * ratio - Math.abs(y - py) * 0.9);
    pen.bezierCurveTo((x + turn) / 2, y, (x + turn) / 2, py, turn, py);
    pen.lineTo(px, py);
    pen.stroke();
    ring(pen, px, py, 4 * ratio);
    i = p;
  }
  pen.setLineDash([]);
  ring(pen, forest.xOf(forest.pointed), forest.yOf(forest.pointed), 7 * ratio);
  pen.restore();
}

function ring(pen, x, y, radius) {
  pen.setLineDash([]);
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
  pen.stroke();
}

function shape(pen, verdict, x, y, r) {
  pen.beginPath();
  if (verdict === 0) pen.arc(x, y, r * 0.9, 0, 2 * Math.PI);
  else if (verdict === 1) pen.rect(x - r * 0.8, y - r * 0.8, r * 1.6, r * 1.6);
  else for (const [dx, dy] of [[0, -r], [r, 0], [0, r], [-r, 0]]) pen.lineTo(x + dx * 1.1, y + dy * 1.1);
  pen.fill();
}

function cut(pen, text, width) {
  const whole = pen.measureText(text).width;
  if (whole <= width) return text;
  return `${text.slice(0, Math.max(1, Math.floor((text.length * width) / whole) - 1))}…`;
}

function timeWriter(step) {
  const date = (ns) => new Date(ns / 1e6);
  if (step >= DAY) return (ns) => day.format(date(ns));
  if (step >= 60e9) return (ns) => minute.format(date(ns));
  if (step >= 1e9) return (ns) => second.format(date(ns));
  const digits = Math.min(6, Math.ceil(-Math.log10(step / 1e9)));
  return (ns) => `${second.format(date(ns))}${((ns / 1e9) % 1).toFixed(digits).slice(1)}`;
}

function dateOf(left, right) {
  const [from, to] = [left, right].map((ns) => day.format(new Date(ns / 1e6)));
  return from === to || clock(left) === "unknown" ? to : `${from} – ${to}`;
}
