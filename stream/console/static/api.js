/**
 * Talking to the daemon: requests with the token, and its stream of events, which comes back by itself.
 *
 * Events are those of the daemon (hello, overview, alert, label, rules, lagged, bye), and two of our own:
 * `state` ("live", "waiting": trying to connect, "refused": a token is needed) and `fresh`: something may have been
 * missed (another connection, another daemon, a lag), so whatever is shown should be fetched anew.
 */

const BASE = "/api/v1/";
const TOKEN = "netclust.token";
const ANSWER_MS = 20_000;
const SILENCE_MS = 25_000; // a sign of life comes every ten seconds at the latest
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 5000;
const HIDDEN_MS = 20_000; // browsers allow few connections to one host: pages in the background give theirs up
const LONGEST_EVENT = 4 << 20;

/** A request that was not answered as asked. `status` 0: the daemon could not be reached. */
export class ApiError extends Error {
  constructor(status, code, detail, retryAfter = 0) {
    super(detail);
    this.status = status;
    this.code = code;
    this.detail = detail;
    this.retryAfter = retryAfter;
  }
}

/** What went wrong and what to do, for people. */
export function explain(error) {
  if (!(error instanceof ApiError)) return `The page made a mistake: ${error.message}`;
  const wait = error.retryAfter ? `${error.retryAfter} seconds` : "a minute";
  switch (error.status) {
    case 0: return "The daemon does not answer. Is it running? Nothing was changed as far as we know.";
    case 401: return "The token is missing or wrong. Sign in with the token from the daemon's token_file.";
    case 403: return `Not allowed: ${error.detail}`;
    case 404: return `Not found: ${error.detail}`;
    case 429: return `Too many attempts, or too many wrong tokens. Wait ${wait}, then try again.`;
    default: return error.detail || `The daemon answered with status ${error.status}.`;
  }
}

export function hasToken() {
  return Boolean(sessionStorage.getItem(TOKEN));
}

/** Keep the token for this tab; empty: forget it. The event stream is opened anew with it. */
export function setToken(token) {
  if (token) sessionStorage.setItem(TOKEN, token);
  else sessionStorage.removeItem(TOKEN);
  if (wanted) restart();
}

/** Fetch JSON. Empty and missing parameters are left out. */
export function get(path, params) {
  const given = Object.entries(params ?? {}).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const query = new URLSearchParams(given).toString();
  return json("GET", query ? `${path}?${query}` : path);
}

export function post(path, body) {
  return json("POST", path, body ?? {});
}

export function del(path, body) {
  return json("DELETE", path, body ?? {});
}

/** Fetch a file. */
export async function blob(path) {
  return (await ask("GET", path)).blob();
}

/** Ask with another token than the one kept: whether it is right. */
export async function tryToken(token) {
  return (await ask("GET", "session", undefined, token)).json();
}

async function json(method, path, body) {
  const response = await ask(method, path, body);
  return response.json().catch(() => {
    throw new ApiError(response.status, "answer", "The daemon's answer could not be read.");
  });
}

async function ask(method, path, body, token) {
  const headers = authorization(token);
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(BASE + path, {
      method, headers, body: body === undefined ? undefined : JSON.stringify(body),
      cache: "no-store", credentials: "omit", redirect: "error", signal: AbortSignal.timeout(ANSWER_MS),
    });
  } catch {
    throw new ApiError(0, "unreachable", "The daemon does not answer.");
  }
  if (!response.ok) throw await failure(response);
  return response;
}

function authorization(token = sessionStorage.getItem(TOKEN)) {
  return token ? { Authorization: `Bearer ${token}` } : {};
}

async function failure(response) {
  const said = await response.json().catch(() => ({}));
  const retryAfter = Number(response.headers.get("Retry-After")) || 0;
  return new ApiError(response.status, String(said.error ?? "http"), String(said.detail ?? ""), retryAfter);
}

// The event stream.

const listeners = new Map();
const latest = new Map();
let wanted = false;
let controller = null;
let attempts = 0; // since it was last live
let tried = false; // whether there was any connection before this one
let timer = 0;
let hiding = 0;

export const events = {
  /** "live", "waiting" or "refused", and since when (ms) and why it is not live. */
  state: "waiting",
  since: Date.now(),
  reason: "",

  /** Call `fn(data)` for every event of a type; returns what ends that. */
  on(type, fn) {
    if (!listeners.has(type)) listeners.set(type, new Set());
    listeners.get(type).add(fn);
    return () => listeners.get(type).delete(fn);
  },

  /** The last event of a type, so that a page need not wait for the next one. */
  latest(type) {
    return latest.get(type);
  },

  /** Open the stream, and keep it open while the page can be seen. */
  start() {
    if (wanted) return;
    wanted = true;
    document.addEventListener("visibilitychange", seen);
    if (document.visibilityState === "visible") connect();
  },
};

function emit(type, data) {
  for (const fn of [...(listeners.get(type) ?? [])]) fn(data);
}

function become(state, reason = "") {
  events.reason = reason;
  if (events.state === state) return;
  events.state = state;
  events.since = Date.now();
  emit("state", state);
}

function seen() {
  clearTimeout(hiding);
  if (document.visibilityState === "hidden") hiding = setTimeout(stop, HIDDEN_MS);
  else if (!controller && events.state !== "refused") connect();
}

function stop() {
  clearTimeout(timer);
  controller?.abort();
  controller = null;
}

function restart() {
  stop();
  attempts = 0;
  connect();
}

async function connect() {
  clearTimeout(timer);
  const mine = new AbortController();
  controller = mine;
  let reason = "";
  try {
    const response = await fetch(`${BASE}events`, {
      headers: { ...authorization(), Accept: "text/event-stream" },
      cache: "no-store", credentials: "omit", redirect: "error", signal: mine.signal,
    });
    if (!response.ok) throw await failure(response);
    await listen(response.body, mine);
  } catch (error) {
    reason = error instanceof ApiError ? explain(error) : "";
    if (controller === mine && (error.status === 401 || error.status === 403)) {
      controller = null;
      tried = true;
      become("refused", reason);
      return;
    }
  }
  tried = true;
  if (controller === mine) again(reason);
}

function again(reason) {
  const wait = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(attempts, 10));
  attempts += 1;
  become("waiting", reason);
  timer = setTimeout(connect, wait);
}

/** Read the stream until it ends, or is silent for too long. */
async function listen(body, mine) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let silence = setTimeout(() => mine.abort(), SILENCE_MS);
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(silence);
      silence = setTimeout(() => mine.abort(), SILENCE_MS);
      const blocks = (rest + value).replaceAll("\r\n", "\n").split("\n\n");
      rest = blocks.pop();
      if (rest.length > LONGEST_EVENT) return;
      for (const block of blocks) if (controller === mine) receive(block);
    }
  } finally {
    clearTimeout(silence);
    reader.cancel().catch(() => {});
  }
}

function receive(block) {
  let type = "message";
  const data = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("event:")) type = line.slice(6).trim();
    else if (line.startsWith("data:")) data.push(line.slice(5).trimStart());
  }
  if (!data.length) return;
  let said;
  try {
    said = JSON.parse(data.join("\n"));
  } catch {
    return;
  }
  if (type === "hello" || type === "overview") latest.set(type, said);
  if (type === "hello") welcome(said);
  else emit(type, said);
  if (type === "lagged") emit("fresh", said);
}

function welcome(said) {
  const missed = tried;
  tried = true;
  attempts = 0;
  become("live");
  emit("hello", said);
  if (missed) emit("fresh", said);
}
