/**
 * Pixels drawn by hand. Ten thousand small marks and lines are slow to stroke one by one where there is no graphics
 * processor; written into an image they take a few milliseconds, and as long on every machine.
 *
 * Colours are packed as the image keeps them (0xAABBGGRR), the image is opaque, and alpha is 0..256. Everything is
 * clipped to `left`..`right`; callers keep to the height.
 */

const PHASES = 8; // places of a mark between two pixels: slow motion does not tremble
const BEND = 10; // segments of a curve at most

export class Raster {
  /** Give the image a size in pixels; nothing is drawn left of `left`. */
  resize(width, height, left, thick) {
    this.width = width;
    this.height = height;
    this.left = left;
    this.right = width;
    this.thick = thick;
    this.image = new ImageData(width, height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.railed = new Float64Array(height);
  }

  /** Begin a picture: no line of it has a rail yet. */
  begin() {
    this.railed.fill(-Infinity);
  }

  /** Fill whole lines of the image. */
  fill(top, bottom, colour) {
    const from = Math.max(0, Math.round(top));
    this.pixels.fill(colour, from * this.width, Math.min(this.height, Math.round(bottom)) * this.width);
  }

  /** Fill a rectangle, mixed with what is there. */
  shade(left, right, top, bottom, colour, alpha) {
    const from = Math.max(0, Math.round(left));
    const to = Math.min(this.width, Math.round(right));
    const end = Math.min(this.height, Math.round(bottom));
    for (let y = Math.max(0, Math.round(top)); y < end; y++) {
      for (let at = y * this.width + from; at < y * this.width + to; at++) blend(this.pixels, at, colour, alpha);
    }
  }

  /** A straight line; `dash` is 0 or how many pixels it is drawn and left out in turn. */
  line(x0, y0, x1, y1, colour, alpha, dash) {
    if (x1 < x0) [x0, y0, x1, y1] = [x1, y1, x0, y0];
    if (x1 < this.left || x0 >= this.right) return;
    const dx = x1 - x0;
    const dy = y1 - y0;
    if (dx >= Math.abs(dy)) this.flat(x0, y0, x1, dy / (dx || 1), colour, alpha, dash);
    else if (dy > 0) this.steep(x0, y0, y1, dx / dy, colour, alpha, dash);
    else this.steep(x1, y1, y0, dx / dy, colour, alpha, dash);
  }

  /**
   * A level line, to the pixel. Where a line of the image has one already, none is drawn over it: rails come from the left
   * to the right, so that a picture of however many costs no more than its pixels.
   */
  rail(x0, x1, y, colour, alpha) {
    const row = Math.round(y);
    if (row < 0 || row >= this.height - 1) return;
    const from = Math.max(this.left, Math.ceil(x0), this.railed[row]);
    const to = Math.min(this.right, Math.floor(x1));
    if (from >= to) return;
    this.railed[row] = to;
    const start = row * this.width;
    for (let at = start + from; at < start + to; at++) blend(this.pixels, at, colour, alpha);
    if (!this.thick) return;
    for (let at = start + this.width + from; at < start + this.width + to; at++) blend(this.pixels, at, colour, alpha >> 1);
  }

  /** From one height to another, level at both ends. */
  curve(x0, y0, x1, y1, colour, alpha, dash) {
    const dx = x1 - x0;
    const dy = y1 - y0;
    const parts = Math.min(BEND, 1 + (Math.min(Math.abs(dy), dx) >> 1));
    let x = x0;
    let y = y0;
    for (let k = 1; k <= parts; k++) {
      const t = k / parts;
      const nextX = x0 + dx * t;
      const nextY = y0 + dy * t * t * (3 - 2 * t);
      this.line(x, y, nextX, nextY, colour, alpha, dash);
      x = nextX;
      y = nextY;
    }
  }

  /** A mark with its centre at (x, y): only the pixels that it covers are visited. */
  stamp(mark, x, y, colour, alpha) {
    const { half, masks } = mark;
    const column = Math.floor(x);
    const row = Math.round(y);
    const { dx, dy, cover } = masks[((x - column) * PHASES) | 0];
    const { pixels, width } = this;
    const whole = column - half >= this.left && column + half < this.right && row >= half && row + half < this.height;
    const rb = colour & 0xff00ff;
    const g = colour & 0x00ff00;
    for (let k = 0; k < cover.length; k++) {
      if (!whole && !this.holds(column + dx[k], row + dy[k])) continue;
      const at = (row + dy[k]) * width + column + dx[k];
      const a = (cover[k] * alpha) >> 8;
      const b = 256 - a;
      const under = pixels[at];
      pixels[at] = 0xff000000
        | (((Math.imul(under & 0xff00ff, b) + Math.imul(rb, a)) >>> 8) & 0xff00ff)
        | (((Math.imul(under & 0x00ff00, b) + Math.imul(g, a)) >>> 8) & 0x00ff00);
    }
  }

  holds(x, y) {
    return x >= this.left && x < this.right && y >= 0 && y < this.height;
  }

  /** A line that is wider than high: two (or three) pixels of every column share its weight. */
  flat(x0, y0, x1, slope, colour, alpha, dash) {
    const { pixels, width, thick } = this;
    const from = Math.max(this.left, Math.ceil(x0));
    const to = Math.min(this.right - 1, Math.floor(x1));
    const last = this.height - 3;
    for (let x = from; x <= to; x++) {
      if (dash && ((x - x0) / dash) & 1) continue;
      const y = y0 + (x - x0) * slope;
      const row = y | 0;
      if (row < 0 || row > last) continue;
      const share = ((y - row) * alpha) | 0;
      const at = row * width + x;
      blend(pixels, at, colour, alpha - share);
      blend(pixels, at + width, colour, thick ? alpha : share);
      if (thick) blend(pixels, at + 2 * width, colour, share);
    }
  }

  /** A line that is higher than wide. */
  steep(x0, y0, y1, slope, colour, alpha, dash) {
    const { pixels, width, thick } = this;
    const from = Math.max(0, Math.ceil(y0));
    const to = Math.min(this.height - 1, Math.floor(y1));
    const last = this.right - 3;
    for (let y = from; y <= to; y++) {
      if (dash && ((y - y0) / dash) & 1) continue;
      const x = x0 + (y - y0) * slope;
      const column = x | 0;
      if (column < this.left || column > last) continue;
      const share = ((x - column) * alpha) | 0;
      const at = y * width + column;
      blend(pixels, at, colour, alpha - share);
      blend(pixels, at + 1, colour, thick ? alpha : share);
      if (thick) blend(pixels, at + 2, colour, share);
    }
  }
}

/** A mark of a shape ("circle", "square", "diamond", "glow") and radius, drawn once for each place between two pixels. */
export function mark(shape, radius) {
  const half = Math.ceil(radius + 1);
  return { half, masks: Array.from({ length: PHASES }, (_, phase) => maskOf(shape, radius, half, phase / PHASES)) };
}

/** A CSS colour as the image keeps it. */
export function packed(css) {
  const pen = probe();
  pen.clearRect(0, 0, 1, 1);
  pen.fillStyle = css;
  pen.fillRect(0, 0, 1, 1);
  return new Uint32Array(pen.getImageData(0, 0, 1, 1).data.buffer)[0];
}

/** Two packed colours mixed: so much of the second, 0..1. */
export function mixed(one, other, share) {
  const pixel = new Uint32Array([one]);
  blend(pixel, 0, other, Math.round(share * 256));
  return pixel[0];
}

let pen = null;

function probe() {
  if (!pen) {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = 1;
    pen = canvas.getContext("2d", { willReadFrequently: true });
  }
  return pen;
}

function blend(pixels, at, colour, a) {
  const under = pixels[at];
  const b = 256 - a;
  pixels[at] = 0xff000000
    | (((Math.imul(under & 0xff00ff, b) + Math.imul(colour & 0xff00ff, a)) >>> 8) & 0xff00ff)
    | (((Math.imul(under & 0x00ff00, b) + Math.imul(colour & 0x00ff00, a)) >>> 8) & 0x00ff00);
}

/** Which pixels around its centre the shape covers, and how much of each, 0..256, from 4 x 4 points a pixel. */
function maskOf(shape, radius, half, shift) {
  const inside = INSIDE[shape];
  const found = [];
  for (let y = -half; y <= half; y++) {
    for (let x = -half; x <= half; x++) {
      let sum = 0;
      for (let k = 0; k < 16; k++) {
        const px = x - shift + ((k & 3) - 1.5) / 4;
        const py = y + ((k >> 2) - 1.5) / 4;
        sum += inside(Math.abs(px) / radius, Math.abs(py) / radius);
      }
      if (sum >= 0.25) found.push([x, y, Math.round(sum * 16)]);
    }
  }
  return {
    dx: Int16Array.from(found, ([x]) => x), dy: Int16Array.from(found, ([, y]) => y),
    cover: Uint16Array.from(found, ([, , cover]) => cover),
  };
}

const INSIDE = {
  circle: (x, y) => (x * x + y * y <= 1 ? 1 : 0),
  square: (x, y) => (Math.max(x, y) <= 0.86 ? 1 : 0),
  diamond: (x, y) => (x + y <= 1.25 ? 1 : 0),
  glow: (x, y) => Math.max(0, 1 - Math.sqrt(x * x + y * y)) ** 2,
};
