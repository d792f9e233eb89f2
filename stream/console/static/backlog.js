/** What waits for an answer: fetched when something changed, seldom while the page is not looked at. */

import { events, get } from "./api.js";

const SOON_MS = 1000;
const HIDDEN_MS = 30_000;
const TOP = 100;
const listeners = new Set();
let known = null;
let due = 0;
let running = false;
let stale = false;

/** Call `fn({unanswered, backlog})`, the first hundred of it, now if known and after each change. */
export function onBacklog(fn) {
  listeners.add(fn);
  if (known) fn(known);
  return () => listeners.delete(fn);
}

/** Begin to watch. */
export function startBacklog() {
  for (const type of ["alert", "label", "rules", "fresh"]) events.on(type, soon);
  setInterval(() => document.hidden && fetchNow(), HIDDEN_MS);
  fetchNow();
}

/** Something was answered: ask again shortly. */
export function soon() {
  if (!due) due = setTimeout(fetchNow, SOON_MS);
}

/** Go to the alert to answer next, other than this one; to the list if there is none. */
export async function goToNext(except) {
  const found = await get("backlog", { limit: 2 }).catch(() => ({ backlog: [] }));
  const next = found.backlog.find((entry) => entry.alert.id !== except);
  location.hash = next ? `#/alerts/${encodeURIComponent(next.alert.id)}` : "#/alerts";
}

async function fetchNow() {
  clearTimeout(due);
  due = 0;
  if (running) {
    stale = true;
    return;
  }
  running = true;
  try {
    known = await get("backlog", { limit: TOP });
    for (const fn of [...listeners]) fn(known);
  } catch {
    // The shell says that the daemon is away; what was known stays until it is back.
  }
  running = false;
  if (stale) {
    stale = false;
    soon();
  }
}
