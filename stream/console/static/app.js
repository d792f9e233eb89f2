/** The shell: which page is shown, whether the daemon can be reached, who is signed in, how many alerts wait. */

import { colours, theme, toggleTheme } from "./theme.js";
import { events, explain, setToken } from "./api.js";
import { clear, clean, fill, h } from "./dom.js";
import { startAnnouncing } from "./announce.js";
import { bindGlobal, clearPage, showKeys, startKeys } from "./keys.js";
import { clock, number } from "./format.js";
import { account, signIn, onAccount } from "./signin.js";
import { onBacklog, startBacklog } from "./backlog.js";

const ROUTES = [
  [/^\/$/, "overview", () => import("./overview.js")],
  [/^\/alerts$/, "alerts", () => import("./alerts.js")],
  [/^\/alerts\/(?<id>[^/]+)$/, "alerts", () => import("./alert.js")],
  [/^\/clusters$/, "clusters", () => import("./clusters.js")],
  [/^\/clusters\/(?<id>[^/]+)$/, "clusters", () => import("./cluster.js")],
  [/^\/decisions$/, "decisions", () => import("./decisions.js")],
];
const LOST_AFTER_MS = 1500;

const main = document.getElementById("main");
let unmount = null;
let shown = 0;
let shownPath = "";
let title = "";
let waiting = 0;

/** Show the page that the address names. */
async function route() {
  if (takeToken()) return;
  const [path, search = ""] = (location.hash.slice(1) || "/").split("?", 2);
  const query = Object.fromEntries(new URLSearchParams(search));
  const turn = ++shown;
  leave();
  const [page, params, load] = find(path);
  for (const link of document.querySelectorAll("nav a[data-page]")) {
    if (link.dataset.page === page) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const place = h("div", { class: `page page-${page || "none"}` });
  clear(main).append(place);
  try {
    const module = await load();
    if (turn !== shown) return;
    setTitle(module.title);
    const ended = await module.mount(place, { params, query, setTitle });
    if (turn === shown) unmount = ended;
    else ended?.();
  } catch (error) {
    if (turn !== shown) return;
    clear(place).append(h("h1", null, "This page could not be shown"), h("p", null, explain(error)));
  }
  if (turn === shown && shownPath !== path) focusHeading(place);
  shownPath = path;
}

function find(path) {
  for (const [pattern, page, load] of ROUTES) {
    const found = pattern.exec(path);
    if (found) return [page, decoded(found.groups ?? {}), load];
  }
  return ["", {}, () => Promise.reject(new Error("there is no such page"))];
}

function decoded(groups) {
  return Object.fromEntries(Object.entries(groups).map(([name, value]) => {
    try {
      return [name, decodeURIComponent(value)];
    } catch {
      return [name, value];
    }
  }));
}

function leave() {
  clearPage();
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
  const end = unmount;
  unmount = null;
  end?.();
}

/** Moves the focus to where the new page begins, for those who do not see it change; not on the first page. */
function focusHeading(place) {
  if (!shownPath) return;
  const heading = place.querySelector("h1") ?? main;
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
  scrollTo(0, 0);
}

function setTitle(text) {
  title = text;
  document.title = `${waiting ? `(${number(waiting)}) ` : ""}${title ? `${clean(title)} · ` : ""}netclust`;
}

/** A token in the address is taken and removed from it at once. */
function takeToken() {
  if (!location.hash.startsWith("#token=")) return false;
  const given = location.hash.slice("#token=".length);
  history.replaceState(null, "", `${location.pathname}#/`);
  setToken(decoded({ given }).given);
  account();
  route();
  return true;
}

function showConnection() {
  const place = document.getElementById("connection");
  const lost = document.getElementById("lost");
  place.dataset.state = events.state;
  place.textContent = { live: "Live", waiting: "Connecting", refused: "Signed out" }[events.state];
  const since = events.since;
  const telling = events.state === "waiting" && Date.now() - since >= LOST_AFTER_MS;
  lost.hidden = !telling && events.state !== "refused";
  const words = events.state === "refused" ? refusedWords() : lostWords(since);
  if (!lost.hidden && lost.dataset.said !== events.state + since) {
    lost.dataset.said = events.state + since;
    fill(lost, words);
  }
  if (events.state === "waiting" && !telling) setTimeout(showConnection, LOST_AFTER_MS);
}

function lostWords(since) {
  const time = clock(since * 1e6);
  const what = events.reason
    ? `Not live since ${time}: ${events.reason} Trying again.`
    : `Daemon not reachable since ${time}, trying again.`;
  return [`${what} What is shown may be out of date.`];
}

function refusedWords() {
  const button = h("button", { type: "button", onclick: () => signIn() }, "Sign in");
  return [`${events.reason} `, button];
}

function showTheme() {
  const button = document.getElementById("theme");
  const other = theme() === "dark" ? "light" : "dark";
  button.title = `Change to the ${other} theme`;
  button.setAttribute("aria-label", button.title);
  colours();
}

function showBacklog({ unanswered }) {
  waiting = unanswered;
  const badge = document.getElementById("unanswered");
  badge.hidden = !unanswered;
  badge.textContent = number(unanswered);
  badge.title = `${number(unanswered)} to answer`;
  setTitle(title);
}

function showAccount({ signedIn, by }) {
  const button = document.getElementById("account");
  button.textContent = signedIn ? clean(by || "Signed in") : "Sign in";
  button.title = signedIn ? "Signed in: change your name or sign out" : "Answering needs the daemon's token";
}

function start() {
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
  document.getElementById("theme").addEventListener("click", () => {
    toggleTheme();
    showTheme();
  });
  document.getElementById("help").addEventListener("click", showKeys);
  document.getElementById("account").addEventListener("click", () => signIn({ asked: true }));
  startKeys();
  for (const page of ["overview", "alerts", "clusters", "decisions"]) {
    bindGlobal(`g ${page[0]}`, `Go to ${page}`, () => { location.hash = page === "overview" ? "#/" : `#/${page}`; });
  }
  onAccount(showAccount);
  onBacklog(showBacklog);
  events.on("state", showConnection);
  addEventListener("hashchange", route);
  showTheme();
  showConnection();
  route();
  account();
  events.start();
  startBacklog();
  startAnnouncing();
}

start();
