/** The tiles of the overview: one measure each, its value now and how it has gone. */

import { chart } from "./charts.js";
import { clear, h, say } from "./dom.js";
import { counted, number, percent, rate, score, span } from "./format.js";
import { colours, onTheme } from "./theme.js";
import { SEVERITIES, when } from "./widgets.js";

const OLD_CHECKPOINT_S = 900;

/** What each tile is called, says and draws. `past`: names of the samples; `at`: the same of an overview. */
const MEASURES = [
  {
    name: "Records", kind: "line", series: [["records", "accent"]], format: rate, past: ["records"],
    value: (o) => rate(o.records_per_second), detail: (o) => `${number(o.records)} in all`, at: (o) => [o.records_per_second],
  },
  {
    name: "Verdicts a second", kind: "stack", double: true, format: rate, past: ["normal", "known_attack", "novel"],
    series: [["normal", "normal"], ["known attack", "known"], ["new", "novel"]],
    value: (o) => percent(o.anomalous_share), detail: () => "not normal",
    legend: (o) => [o.rates?.normal, o.rates?.known_attack, o.rates?.novel].map(rate),
    at: (o) => [o.rates?.normal, o.rates?.known_attack, o.rates?.novel],
  },
  {
    name: "Open alerts", kind: "line", series: [["open", "high"]], format: number, past: ["open_alerts"],
    value: (o) => number(o.alerts?.open), detail: (o) => `${number(o.alerts?.opened)} opened so far`, at: (o) => [o.alerts?.open],
  },
  {
    name: "Linked to the root", kind: "line", series: [["share", "novel"]], format: percent, past: ["root"],
    value: (o) => percent(o.root_rate), detail: () => "of records are like nothing known", at: (o) => [o.root_rate],
  },
  {
    name: "Drift", kind: "line", series: [["score", "medium"]], format: score, past: ["drift"],
    value: (o) => (o.drift_watched ? score(farthest(o)) : "–"),
    detail: (o) => (o.drift_watched ? "deviations from what was usual" : "not watched"), at: (o) => [farthest(o)],
  },
  {
    name: "Lost", kind: "stack", series: [["dropped", "critical"], ["shed", "high"]], format: rate, past: ["drops", "shed"],
    value: (o) => rate((o.drops_per_second ?? 0) + (o.shed_per_second ?? 0)),
    detail: (o) => `${number(o.drops)} dropped, ${number(o.shed)} shed, ${number(o.skipped)} unreadable`,
    at: (o) => [o.drops_per_second, o.shed_per_second], warn: (o) => o.drops_per_second > 0 || o.shed_per_second > 0,
  },
  {
    name: "Referent window", kind: "line", series: [["full", "accent"]], format: percent, past: ["window"], most: 1,
    value: (o) => percent(fullness(o)), detail: (o) => `${number(o.window?.referents)} of ${number(o.window?.capacity)} referents`,
    at: (o) => [fullness(o)],
  },
  {
    name: "Latency", kind: "line", series: [["latency", "accent"]], format: (s) => span(s * 1e9),
    value: (o) => span(o.latency * 1e9), detail: (o) => `${counted(o.queue, "record")} waiting`, at: (o) => [o.latency],
  },
  {
    name: "Checkpoint age", kind: "line", series: [["age", "muted"]], format: (s) => span(s * 1e9),
    value: (o) => (o.checkpoint_age === null ? "none yet" : span(o.checkpoint_age * 1e9)),
    detail: () => "what a crash would replay", at: (o) => [o.checkpoint_age ?? 0], warn: (o) => o.checkpoint_age > OLD_CHECKPOINT_S,
  },
];

/** All tiles for a span of `seconds`: `{element, now, past, timeline, end}`. */
export function tiles(seconds) {
  const all = MEASURES.map((measure) => tile(measure, seconds));
  const alerts = timelineTile();
  const sources = sourcesTile();
  const daemon = daemonTile();
  const [records, verdicts, ...others] = all;
  const shown = [records, verdicts, alerts, ...others, sources, daemon];
  const element = h("div", { class: "tiles" }, shown.map((one) => one.element));
  return {
    element,
    /** Show an overview; `live`: add it to the charts too. */
    now(overview, live) {
      for (const one of all) one.now(overview, live);
      alerts.now(overview);
      sources.now(overview);
      daemon.now(overview);
    },
    past: (samples) => all.forEach((one) => one.past(samples)),
    timeline: alerts.timeline,
    end: () => [...all, alerts].forEach((one) => one.end()),
  };
}

function tile(measure, seconds) {
  const value = h("span");
  const detail = h("span");
  const legend = measure.legend ? makeLegend(measure.series) : null;
  const graph = chart({
    title: measure.name, kind: measure.kind, format: measure.format, most: measure.most,
    series: measure.series.map(([name, colour]) => ({ name, colour })),
  });
  const element = h(
    "section", { class: `panel tile${measure.double ? " double" : ""}`, "aria-label": measure.name },
    h("h3", null, measure.name), h("p", { class: "value" }, value), h("p", { class: "note" }, detail), legend?.element, graph.element,
  );
  return {
    element,
    now(overview, live) {
      say(value, measure.value(overview));
      say(detail, measure.detail(overview));
      legend?.now(measure.legend(overview));
      element.classList.toggle("warn", Boolean(measure.warn?.(overview)));
      if (live || !measure.past) graph.push(overview.time, measure.at(overview), seconds * 1e9);
    },
    past(samples) {
      if (measure.past) graph.set(samples.time, measure.past.map((name) => samples[name]));
    },
    end: () => {
      graph.end();
      legend?.end();
    },
  };
}

/** Names of the series with their colours, and what each is now. */
function makeLegend(series) {
  const swatches = series.map(() => h("span", { class: "swatch" }));
  const values = series.map(() => h("strong"));
  const paint = () => swatches.forEach((swatch, i) => { swatch.style.background = colours()[series[i][1]]; });
  paint();
  return {
    element: h("ul", { class: "legend" }, series.map(([name], i) => h("li", null, swatches[i], name, values[i]))),
    now: (said) => said.forEach((text, i) => say(values[i], text)),
    end: onTheme(paint),
  };
}

/** Alerts by when they began, on traffic time. */
function timelineTile() {
  const series = SEVERITIES.map((name) => [name, name]);
  const legend = makeLegend(series);
  const graph = chart({
    title: "Alerts over time", kind: "bars", format: number, series: SEVERITIES.map((name) => ({ name, colour: name })),
  });
  const value = h("span");
  const element = h(
    "section", { class: "panel tile double", "aria-label": "Alerts over time" },
    h("h3", null, "Alerts over time"), h("p", { class: "value" }, value),
    h("p", { class: "note" }, "by when they began; open now:"),
    legend.element, graph.element,
  );
  return {
    element,
    now: (overview) => legend.now(SEVERITIES.map((name) => number(overview.alerts?.by_severity?.[name] ?? 0))),
    timeline({ from, step, counts }) {
      const columns = SEVERITIES.map((name) => counts[name] ?? []);
      say(value, counted(columns.flat().reduce((sum, n) => sum + n, 0), "alert"));
      const any = from >= 0 && columns.flat().some((n) => n > 0);
      graph.set((any ? columns[0] : []).map((_, i) => from + i * step), columns, step);
    },
    end: () => {
      graph.end();
      legend.end();
    },
  };
}

/** Where records come from, where events go, and what is wrong with either. */
function sourcesTile() {
  const place = h("div");
  const element = h("section", { class: "panel tile", "aria-label": "Sources and troubles" }, h("h3", null, "Sources and troubles"), place);
  let said = "";
  return {
    element,
    now({ sources = {}, troubles = {} }) {
      const next = JSON.stringify([sources, troubles]);
      if (next === said) return;
      said = next;
      const bad = Object.entries(troubles).filter(([, text]) => text);
      element.classList.toggle("warn", bad.length > 0 || Object.values(sources).some((source) => source.trouble));
      clear(place).append(
        h("dl", { class: "facts" },
          Object.entries(sources).map(([name, source]) => [named(name), h("dd", null, sourceWords(source))]),
          bad.map(([name, text]) => [named(name), h("dd", { class: "trouble" }, text)])),
        bad.length ? "" : h("p", { class: "note" }, "Every sink takes what it is told."),
      );
    },
  };
}

function named(name) {
  return h("dt", { class: "cut", title: name }, name);
}

function sourceWords({ kind, ended, waiting, trouble }) {
  if (trouble) return h("span", { class: "trouble" }, `${kind}, ${trouble}`);
  const queue = waiting > 0 ? `, ${counted(waiting, "record")} waiting` : "";
  return `${kind}, ${ended ? "ended" : "running"}${queue}`;
}

/** What runs. */
function daemonTile() {
  const place = h("dl", { class: "facts" });
  let said = "";
  return {
    element: h("section", { class: "panel tile", "aria-label": "Daemon" }, h("h3", null, "Daemon"), place),
    now(o) {
      const next = JSON.stringify([o.phase, o.version, o.model, o.schema, Math.floor(o.traffic_time / 1e9)]);
      if (next === said) return;
      said = next;
      const facts = [["phase", o.phase], ["version", o.version], ["model", o.model], ["schema", o.schema]];
      clear(place).append(
        ...facts.filter(([, text]) => text).flatMap(([name, text]) => [h("dt", null, name), h("dd", { class: "cut", title: text }, text)]),
        h("dt", null, "traffic time"), h("dd", null, when(o.traffic_time)),
      );
    },
  };
}

/** The largest of the measures of drift: one that moves is enough. */
function farthest({ drift }) {
  return Math.max(0, ...Object.values(drift ?? {}).map(Math.abs));
}

function fullness({ window }) {
  return window?.capacity ? window.referents / window.capacity : 0;
}
