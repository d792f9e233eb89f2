/** The first page: is anything wrong, what to answer first, and how the daemon is doing, live. */

import { events, get } from "./api.js";
import { onBacklog } from "./backlog.js";
import { clear, h } from "./dom.js";
import { counted, number } from "./format.js";
import { tiles } from "./tiles.js";
import { alertHref, alertRow, throttled, when, worst } from "./widgets.js";

export const title = "Overview";

const TOP = 5;
const RANGES = [["10 min", 600], ["1 h", 3600], ["24 h", 86_400], ["7 days", 604_800]];
const NOTHING_KNOWN = {
  live: "Looking for alerts…", waiting: "Waiting for the daemon…", refused: "Sign in to see how things are",
};
const LIVE_SECONDS = 600;
const REFETCH_MS = 60_000;
const TIMELINE_MS = 3000;

/** Show the page. */
export async function mount(main, { query }) {
  const range = RANGES.some(([, seconds]) => seconds === Number(query.range)) ? Number(query.range) : LIVE_SECONDS;
  const headline = h("section", { class: "headline", "aria-label": "Is anything wrong" });
  const backlog = h("div");
  const board = tiles(range);
  main.append(headline, backlog, rangeHead(range), board.element);

  const state = { waiting: null, now: events.latest("overview") ?? null, said: "" };
  const paint = () => sayHeadline(headline, state);
  const show = (overview) => {
    state.now = overview;
    board.now(overview, range === LIVE_SECONDS);
    paint();
  };
  const load = async () => {
    try {
      const answer = await get("overview", { seconds: range });
      board.past(answer.samples);
      if (answer.now) show(answer.now);
    } catch {
      // The shell says that the daemon is away, and `fresh` comes when it is back.
    }
  };
  const timeline = throttled(() => get("alerts/timeline", { buckets: 60 }).then(board.timeline, () => {}), TIMELINE_MS);
  const fresh = () => {
    load();
    timeline();
  };
  const ends = [
    onBacklog((found) => {
      state.waiting = found;
      paint();
      showBacklog(backlog, found);
    }),
    events.on("overview", show),
    events.on("alert", timeline),
    events.on("fresh", fresh),
    events.on("state", paint),
    timeline.end,
    board.end,
  ];
  const timer = range === LIVE_SECONDS ? 0 : setInterval(load, REFETCH_MS);
  paint();
  load();
  get("alerts/timeline", { buckets: 60 }).then(board.timeline, () => {});
  return () => {
    clearInterval(timer);
    for (const end of ends) end();
  };
}

function rangeHead(range) {
  const choose = (seconds) => () => { location.hash = seconds === LIVE_SECONDS ? "#/" : `#/?range=${seconds}`; };
  return h(
    "div", { class: "page-head" },
    h("h2", null, "How it is going"),
    h("div", { class: "switch", role: "group", "aria-label": "How far back" },
      RANGES.map(([name, seconds]) => h(
        "button",
        { type: "button", class: "small", "aria-pressed": String(seconds === range), onclick: choose(seconds) },
        name,
      ))),
  );
}

/** The answer to "is anything wrong?"; written anew only when it changed, since it is read aloud. */
function sayHeadline(place, state) {
  const { waiting, now } = state;
  const alerts = (waiting?.backlog ?? []).map((entry) => entry.alert);
  const troubles = daemonTroubles(now);
  const level = worst([...alerts.map((alert) => alert.severity), ...(troubles.length ? ["medium"] : [])]);
  const shown = alerts.map((alert) => [alert.id, alert.severity, alert.summary]);
  const said = JSON.stringify([waiting?.unanswered, shown, troubles, warm(now), Boolean(now), now?.alerts?.open === 0, allEnded(now), events.state]);
  place.dataset.worst = waiting && now ? level : "unknown";
  if (said !== state.said) {
    state.said = said;
    clear(place).append(h("h1", null, sentence(waiting, alerts, troubles, now)), ...notes(now, troubles));
    if (now?.warming_up) place.append(warming(now));
  }
}

function sentence(waiting, alerts, troubles, now) {
  if (!waiting) return NOTHING_KNOWN[events.state];
  if (!waiting.unanswered) {
    return troubles.length ? "Nothing unanswered, but the daemon has troubles" : "All quiet: nothing unanswered";
  }
  const level = worst(alerts.map((alert) => alert.severity));
  const worstOnes = alerts.filter((alert) => alert.severity === level);
  const first = worstOnes[0];
  const all = worstOnes.length === waiting.unanswered;
  const share = all && worstOnes.length === 1 ? level : `${all ? "all" : worstOnes.length} ${level}`;
  const need = waiting.unanswered === 1 ? "needs" : "need";
  const link = h("a", { href: alertHref(first.id) }, first.summary);
  const over = now?.alerts?.open === 0 ? ", none going on now" : "";
  return [`${counted(waiting.unanswered, "alert")} ${need} an answer, ${share}${over}: `, link];
}

/** What is wrong with the daemon itself, in words. */
function daemonTroubles(now) {
  if (!now) return [];
  const found = [];
  for (const [name, source] of Object.entries(now.sources ?? {})) {
    if (source.trouble) found.push(`source ${name}: ${source.trouble}`);
  }
  for (const [name, text] of Object.entries(now.troubles ?? {})) if (text) found.push(`${name}: ${text}`);
  if (now.drops_per_second > 0) found.push(`packets are being lost before they are read`);
  if (now.shed_per_second > 0) found.push(`records are being shed: more come than can be judged`);
  return found;
}

function notes(now, troubles) {
  if (troubles.length) return [h("p", { class: "trouble" }, `The daemon has troubles: ${troubles.join("; ")}.`)];
  if (!now) return [];
  const names = Object.keys(now.sources ?? {});
  const old = now.traffic_time >= 0 && now.time - now.traffic_time > 300e9;
  const newest = old ? [" The newest traffic is from ", when(now.traffic_time), "."] : null;
  const watching = allEnded(now) ? "Everything has been read: nothing more comes." : `Watching ${counted(names.length, "source")}.`;
  return [h("p", { class: "muted" }, watching, newest)];
}

function allEnded(now) {
  const sources = Object.values(now?.sources ?? {});
  return sources.length > 0 && sources.every((source) => source.ended);
}

function warm(now) {
  return now?.warming_up ? Math.round(now.warmth * 100) : null;
}

function warming(now) {
  const share = warm(now);
  return h(
    "div", { class: "warm" },
    h("p", null, `Warming up, ${share}%: it is learning what is usual here. Known attacks are told already, what is new only afterwards.`),
    h("progress", { class: "progress", max: 100, value: share, "aria-label": "Warm-up" }),
  );
}

function showBacklog(place, { unanswered, backlog }) {
  const said = JSON.stringify(backlog.slice(0, TOP)) + unanswered;
  if (place.dataset.said === said || place.contains(document.activeElement)) return;
  place.dataset.said = said;
  clear(place);
  if (!backlog.length) return;
  place.append(h(
    "section", { class: "panel", "aria-labelledby": "top-title" },
    h("div", { class: "panel-head" },
      h("h2", { id: "top-title" }, "Answer these first"),
      h("a", { href: "#/alerts" }, unanswered > TOP ? `All ${number(unanswered)} to answer` : "To the alerts")),
    h("ol", { class: "rows" }, backlog.slice(0, TOP).map((entry) => alertRow(entry.alert, entry))),
  ));
}
