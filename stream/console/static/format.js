/** Numbers and times for people: the same everywhere. Times come as nanoseconds since the epoch, -1 if unknown. */

const whole = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 0 });
const precise = new Intl.NumberFormat("en-GB", { maximumSignificantDigits: 3 });
const exact = new Intl.NumberFormat("en-GB", { maximumSignificantDigits: 6 });
const time = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const dayAndYear = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
const full = new Intl.DateTimeFormat("en-GB", {
  weekday: "short", day: "numeric", month: "short", year: "numeric",
  hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short",
});
const UNITS = [["d", 86_400], ["h", 3600], ["min", 60]];
const UNKNOWN = "unknown";
const ENDLESS = 1e300; // how the daemon writes a score that has no end

/** 1,204; of small numbers three digits: 0.0312. */
export function number(n) {
  if (!Number.isFinite(n)) return "–";
  return Math.abs(n) >= 100 || Number.isInteger(n) ? whole.format(n) : precise.format(n);
}

/** A score or margin; without a normal record to compare with it has no end. */
export function score(n) {
  if (!Number.isFinite(n)) return "–";
  if (Math.abs(n) > ENDLESS) return n > 0 ? "∞" : "−∞";
  return precise.format(n);
}

/** A value of an attribute: as exact as people need it. */
export function value(n) {
  return Number.isInteger(n) ? whole.format(n) : exact.format(n);
}

/** 0..1 as a percentage. */
export function percent(x) {
  if (!Number.isFinite(x)) return "–";
  return `${precise.format(x >= 0.0995 ? Math.round(x * 1000) / 10 : x * 100)}%`;
}

/** So many a second. */
export function rate(n) {
  return Number.isFinite(n) ? `${number(n)}/s` : "–";
}

/** "1 record", "2 records", with the number written out. */
export function counted(n, noun, plural = `${noun}s`) {
  return `${number(n)} ${n === 1 ? noun : plural}`;
}

/** The time of day in the viewer's zone; with the date unless it is today's. */
export function clock(ns) {
  const date = moment(ns);
  if (!date) return UNKNOWN;
  const now = new Date();
  if (date.toDateString() === now.toDateString()) return time.format(date);
  const written = date.getFullYear() === now.getFullYear() ? day.format(date) : dayAndYear.format(date);
  return `${written}, ${time.format(date)}`;
}

/** The whole time, in the viewer's zone and in UTC. */
export function stamp(ns) {
  const date = moment(ns);
  return date ? `${full.format(date)} (${date.toISOString()})` : "time unknown";
}

/** How long ago, in the largest unit that fits. */
export function ago(ns) {
  if (!moment(ns)) return UNKNOWN;
  const past = Date.now() * 1e6 - ns;
  return past < 1e9 ? "just now" : `${span(past)} ago`;
}

/** A duration. */
export function span(ns) {
  const seconds = ns / 1e9;
  if (!Number.isFinite(seconds) || seconds < 0) return UNKNOWN;
  for (const [unit, size] of UNITS) {
    if (seconds >= size) return withRest(seconds, unit, size);
  }
  if (seconds >= 10) return `${Math.round(seconds)} s`;
  if (seconds >= 1 || seconds === 0) return `${precise.format(seconds)} s`;
  return seconds >= 1e-3 ? `${precise.format(seconds * 1e3)} ms` : `${precise.format(seconds * 1e6)} µs`;
}

function withRest(seconds, unit, size) {
  const [next, small] = { d: ["h", 3600], h: ["min", 60], min: ["s", 1] }[unit];
  const total = Math.round(seconds / small) * small;
  const most = Math.floor(total / size);
  const rest = Math.round((total - most * size) / small);
  return most < 10 && rest ? `${most} ${unit} ${rest} ${next}` : `${Math.round(total / size)} ${unit}`;
}

function moment(ns) {
  if (!Number.isFinite(ns) || ns < 0) return null;
  const date = new Date(ns / 1e6);
  return Number.isNaN(date.getTime()) ? null : date;
}
