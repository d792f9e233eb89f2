/**
 * Where things go: which clusters get a row of their own, how high rows and bands are, and where the marks of the time
 * axis stand. Pure functions of numbers; lengths are those of the forest.
 */

import { KNOWN, NORMAL, NOVEL } from "./forest_nodes.js";

export const BANDS = [NOVEL, KNOWN, NORMAL]; // from the top
const SHARE = { [NOVEL]: 0.5, [KNOWN]: 0.25, [NORMAL]: 0.25 };
const HEAD = 22;
const LEAST_ROW = 14;
const GROWTH = { [NOVEL]: 3, [KNOWN]: 3, [NORMAL]: 5 }; // by which a row is higher when its records double
const SQUEEZE = 0.3; // of what a row wishes beyond the least stays before rows are folded
const MOST_ROWS = 40;
const MOST_HEIGHT = 260;
const GAP = 6;
const EMPTY = HEAD + 4;

/**
 * Rows for clusters (`{slot, verdict, kept, weight, first}`) within `height`. Gives bands
 * `{verdict, top, bottom, clusters, records, rows}` and rows `{cluster, top, height}`; the last row of a band may be
 * `{folded: [clusters], top, height}`. The weightiest clusters get rows; rows stand with the newest cluster on top, so a
 * row keeps its place among the others for as long as it is there. `head` is the height of a band's name.
 */
export function layout(clusters, height, shown = BANDS, head = HEAD) {
  const bands = BANDS.filter((verdict) => shown.includes(verdict)).map((verdict) => wished(verdict, clusters, head));
  share(bands, height - GAP * (bands.length - 1));
  let top = 0;
  for (const band of bands) {
    place(band, top, head);
    top = band.bottom + GAP;
  }
  return bands;
}

/** The height that a row should have: more for more records, in steps, so that it seldom changes. */
export function rowHeight({ kept, verdict }) {
  return LEAST_ROW + GROWTH[verdict] * Math.floor(Math.log2(Math.max(1, kept)));
}

/** Marks of an axis from `left` to `right`, at most `most` of them, at round times (nanoseconds) or round numbers. */
export function ticks(left, right, most, timed) {
  const step = roundStep((right - left) / Math.max(1, most), timed);
  const shift = timed ? new Date(right / 1e6).getTimezoneOffset() * 6e10 : 0;
  const marks = [];
  for (let at = Math.ceil((left - shift) / step) * step + shift; at <= right; at += step) marks.push(at);
  return { marks, step };
}

const SECOND = 1e9;
const CLOCK_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400];

function roundStep(least, timed) {
  if (timed && least > SECOND / 2 && least <= 86_400 * SECOND) return CLOCK_STEPS.find((s) => s * SECOND >= least) * SECOND;
  const unit = timed && least > SECOND ? 86_400 * SECOND : 1;
  const power = 10 ** Math.floor(Math.log10(Math.max(least / unit, 1)));
  const factor = [1, 2, 5, 10].find((f) => f * power * unit >= least);
  return factor * power * unit;
}

function wished(verdict, clusters, head) {
  const mine = clusters.filter((one) => one.verdict === verdict).sort((a, b) => b.weight - a.weight);
  const records = mine.reduce((sum, one) => sum + one.kept, 0);
  let wish = head;
  for (let k = 0; k < Math.min(mine.length, MOST_ROWS); k++) wish += rowHeight(mine[k]);
  if (mine.length > MOST_ROWS) wish += foldedHeight(mine.length - MOST_ROWS);
  return { verdict, mine, clusters: mine.length, records, wish: mine.length ? wish : EMPTY, height: 0 };
}

/** Every band gets what it wishes where that is less than its share; what is left over goes to the others. */
function share(bands, height) {
  let open = bands.filter((band) => band.clusters);
  let left = height;
  for (const band of bands) {
    if (!band.clusters) left -= band.height = EMPTY;
  }
  const modest = (band, total) => band.wish <= (left * SHARE[band.verdict]) / total;
  while (open.length) {
    const total = sumOf(open, (band) => SHARE[band.verdict]);
    const content = open.filter((band) => modest(band, total));
    if (!content.length) {
      for (const band of open) band.height = (left * SHARE[band.verdict]) / total;
      return;
    }
    for (const band of content) left -= band.height = band.wish;
    open = open.filter((band) => !content.includes(band));
  }
  const filled = bands.filter((band) => band.clusters);
  const wishes = sumOf(filled, (band) => band.wish);
  for (const band of filled) {
    const most = Math.max(band.wish, HEAD + MOST_HEIGHT * band.clusters);
    band.height = Math.min(most, band.height + (left * band.wish) / wishes);
  }
}

function place(band, top, head) {
  band.top = top;
  band.bottom = top + band.height;
  const room = band.height - head;
  const own = fitting(band.mine, room);
  const folded = band.mine.slice(own.length);
  own.sort((a, b) => b.first - a.first || b.id - a.id);
  const rows = own.map((cluster) => ({ cluster, least: squeezed(cluster), wish: rowHeight(cluster) }));
  if (folded.length) rows.push({ folded, least: foldedHeight(folded.length), wish: foldedHeight(folded.length) });
  const least = sumOf(rows, (row) => row.least);
  const wish = sumOf(rows, (row) => row.wish);
  const part = Math.min(1, Math.max(0, (room - least) / Math.max(1, wish - least)));
  const stretch = room / Math.max(1, least + (wish - least) * part);
  let y = top + head;
  for (const row of rows) {
    row.top = y;
    row.height = (row.least + (row.wish - row.least) * part) * stretch;
    y += row.height;
  }
  band.rows = rows;
  delete band.mine;
}

/** As many of the weightiest as fit when rows are squeezed. */
function fitting(clusters, room) {
  let used = 0;
  let count = 0;
  while (count < Math.min(clusters.length, MOST_ROWS)) {
    const next = used + squeezed(clusters[count]);
    const rest = clusters.length - count - 1;
    if (count && next + (rest ? foldedHeight(rest) : 0) > room) break;
    used = next;
    count += 1;
  }
  return clusters.slice(0, count);
}

function squeezed(cluster) {
  return LEAST_ROW + (rowHeight(cluster) - LEAST_ROW) * SQUEEZE;
}

function foldedHeight(count) {
  return LEAST_ROW + 5 * Math.floor(Math.log2(count));
}

function sumOf(list, value) {
  return list.reduce((sum, one) => sum + value(one), 0);
}
