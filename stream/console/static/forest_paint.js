/** The forest in pixels: bands, the lines on which rows hang, links and marks. Everything that is drawn for every record. */

import { NORMAL, REFERENCE, ROOT } from "./forest_nodes.js";

const LINK_ALPHA = [58, 120, 150];
const RAIL = 0.65; // of that, where links share a line
const GLOW = 90; // pixels from the right edge within which what is anomalous glows
const GLOW_ALPHA = [0, 90, 190];
const GLOW_APART = 7;
const CROWDED = 0.4;

/** The bands and the lines between rows. */
export function paintBands(forest) {
  const { raster, paint, ratio } = forest;
  raster.begin();
  let end = 0;
  for (const band of forest.bands) {
    raster.fill(end, band.top * ratio, paint.bg);
    raster.fill(band.top * ratio, band.bottom * ratio, paint.bands[band.verdict]);
    end = band.bottom * ratio;
  }
  raster.fill(end, raster.height, paint.bg);
  for (const band of forest.bands) {
    for (const row of band.rows) {
      const y = Math.round(row.top * ratio);
      raster.shade(0, raster.width, y, y + 1, paint.line, 90);
      const lit = row.cluster && row.cluster.slot === forest.marked;
      if (lit) raster.shade(0, raster.width, y, y + row.height * ratio, paint.inks[band.verdict], 36);
    }
  }
}

/** The lines on which rows hang: from the trunk to the first record that is kept; dashed where some in between are not. */
export function paintStems(forest) {
  const { nodes, raster, paint } = forest;
  for (const band of forest.bands) {
    for (const { cluster } of band.rows) {
      if (!cluster) continue;
      const i = cluster.oldest;
      const x = forest.xOf(i);
      if (x <= raster.left) continue;
      const middle = (forest.top[cluster.slot] + forest.high[cluster.slot] / 2) * forest.ratio;
      const direct = nodes.link[i] === ROOT || nodes.link[i] === REFERENCE;
      const turn = Math.max(raster.left, x - 40 * forest.ratio);
      const dash = direct ? 0 : 3 * forest.ratio;
      const ink = paint.inks[nodes.verdict[i]];
      raster.line(raster.left, middle, turn, middle, ink, 110, dash);
      raster.curve(turn, middle, x, forest.yOf(i), ink, 110, dash);
    }
  }
}

/** Where every record is, in pixels of the image: once a picture. */
export function locate(forest) {
  const { nodes, xs, ys } = forest;
  const along = nodes.along(forest.wanted);
  const { from, factor } = forest.scale();
  for (let k = 0; k < nodes.size; k++) {
    const i = nodes.at(k);
    xs[i] = from + (along[i] - forest.left) * factor;
    ys[i] = forest.yOf(i);
  }
}

/** What links to a record shares its line to the right, and leaves it shortly before its own place. */
export function paintLinks(forest) {
  const { nodes, raster, paint, high, ratio, xs, ys } = forest;
  const { slot, heir, verdict, hops } = nodes;
  const along = nodes.along(forest.wanted);
  const fade = fading(forest, along);
  const edge = raster.width;
  const dash = Math.max(2, Math.round(2 * ratio));
  for (let k = 0; k < nodes.size; k++) {
    const i = nodes.at(k);
    const x = xs[i];
    if (x >= edge || high[slot[i]] < 3) continue;
    const y = ys[i];
    const ink = paint.inks[verdict[i]];
    const alpha = (LINK_ALPHA[verdict[i]] * fade(along[i])) | 0;
    const last = heir[i];
    if (last >= 0 && xs[last] > raster.left) {
      const end = xs[last] - reach(xs[last] - x, ys[last] - y, ratio);
      if (end > x + 1) raster.rail(x, end, y, ink, (alpha * RAIL) | 0);
    }
    const p = x < raster.left ? -1 : nodes.parentOf(i);
    if (p < 0) continue;
    const start = x - reach(x - xs[p], y - ys[p], ratio);
    if (x - start < 1 && Math.abs(y - ys[p]) < 1) continue;
    raster.curve(start, ys[p], x, y, ink, alpha, hops[i] > 1 ? dash : 0);
  }
}

/** The marks, what is newest last and, if it is anomalous, in a glow. */
export function paintNodes(forest) {
  const { nodes, raster, paint, high, marks, glowed, crowd, foldedLane: folded, xs, ys } = forest;
  const { slot, verdict } = nodes;
  glowed.fill(-1e9);
  const along = nodes.along(forest.wanted);
  const fade = fading(forest, along);
  const edge = raster.width;
  const glowFrom = forest.following ? edge - GLOW * forest.ratio : Infinity;
  for (let k = 0; k < nodes.size; k++) {
    const i = nodes.at(k);
    const x = xs[i];
    if (x < raster.left - 4 || x >= edge || high[slot[i]] === 0) continue;
    const kind = verdict[i];
    if (kind !== NORMAL && x > glowFrom && Math.abs(x - glowed[slot[i]]) > GLOW_APART * forest.ratio) {
      glowed[slot[i]] = x;
      const strength = (folded[slot[i]] >= 0 ? 0.4 : 1) * (x - glowFrom) / (edge - glowFrom);
      raster.stamp(forest.glow, x, ys[i], paint.inks[kind], (GLOW_ALPHA[kind] * strength) | 0);
    }
    const alpha = ((kind === NORMAL ? normalAlpha(crowd[slot[i]]) : 256) * fade(along[i])) | 0;
    raster.stamp(marks[kind][sizeOf(forest, i)], x, ys[i], paint.inks[kind], alpha);
  }
}

/** How large a mark is, 0..3: by how far from normal, smaller in a crowd; what began a cluster is at least middling. */
function sizeOf(forest, i) {
  const { verdict, score, link, slot, topScore } = forest.nodes;
  const crowded = forest.crowd[slot[i]] > CROWDED;
  if (verdict[i] === NORMAL) return crowded ? 0 : 2;
  const size = Math.min(3, Math.floor(Math.sqrt(Math.min(1, Math.max(0, score[i] / topScore))) * 4));
  if (link[i] === ROOT) return Math.max(2, size);
  return crowded ? size >> 1 : size;
}

/** How strongly a record is drawn by its age; the past, when it is looked at, is not faded. */
function fading(forest, along) {
  const { nodes } = forest;
  if (!nodes.size || forest.bounds) return () => 1;
  const oldest = along[nodes.start];
  const whole = along[nodes.at(nodes.size - 1)] - oldest;
  if (!(whole > 0)) return () => 1;
  return (at) => 0.4 + 0.6 * Math.min(1, Math.max(0, (at - oldest) / whole));
}

/** The denser a row, the fainter each mark: together they show how dense. */
function normalAlpha(crowd) {
  return crowd > CROWDED ? Math.max(90, (200 * CROWDED) / crowd) : 200;
}

/** How long before its own place a link leaves the line of the record that it leads to. */
function reach(dx, dy, ratio) {
  return Math.min(Math.max(0, dx), 8 * ratio + Math.abs(dy) * 0.9);
}
