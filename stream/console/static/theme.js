/** Light or dark: what the system says, unless the reader has chosen. Charts ask here for colours as they are now. */

const KEY = "netclust.theme";
const NAMES = [
  "bg", "panel", "text", "muted", "line", "accent", "normal", "known", "novel", "low", "medium", "high", "critical",
];
const dark = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set();
let cached = null;

/** The colours in force, by name. */
export function colours() {
  if (!cached) {
    const style = getComputedStyle(document.documentElement);
    cached = Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  }
  return cached;
}

/** Call `fn` whenever colours change; returns what ends that. */
export function onTheme(fn) {
  listeners.add(fn);
  return () => listeners.delete(fn);
}

/** "light" or "dark": what is shown. */
export function theme() {
  return document.documentElement.dataset.theme || (dark.matches ? "dark" : "light");
}

/** Change to the other one, and remember it unless it is the system's. */
export function toggleTheme() {
  const next = theme() === "dark" ? "light" : "dark";
  const system = dark.matches ? "dark" : "light";
  if (next === system) {
    localStorage.removeItem(KEY);
    delete document.documentElement.dataset.theme;
  } else {
    localStorage.setItem(KEY, next);
    document.documentElement.dataset.theme = next;
  }
  changed();
  return next;
}

function changed() {
  cached = null;
  for (const fn of [...listeners]) fn();
}

const chosen = localStorage.getItem(KEY);
if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
dark.addEventListener("change", changed);
