/**
 * Answering an alert or a cluster: normal, an attack, mute, undo; and what came of it.
 *
 * `answerBar({target, alert, labels, mutedBy, settles, onDone})` gives the element; its `update({...})` tells it what has
 * changed since. The keys n, a, m and u work as long as its page is shown.
 */

import { del, events, explain, get, post } from "./api.js";
import { goToNext, soon } from "./backlog.js";
import { attackDialog, muteDialog } from "./answer_dialogs.js";
import { clear, fill, h } from "./dom.js";
import { counted } from "./format.js";
import { bindPage } from "./keys.js";
import { labelOutcome, muteOutcome, refusal } from "./outcome.js";
import { ready, refused } from "./signin.js";
import { dropActions, toast } from "./toast.js";

const POLL_MS = 1000;

/** The bar. */
export function answerBar({ target, alert = null, labels = [], mutedBy = "", settles = null, onDone = () => {} }) {
  const facts = { alert, labels, mutedBy, settles, answer: null };
  const inForce = () => standing(facts.labels) ?? facts.answer;
  const outcome = h("div", { "aria-live": "polite" });
  const note = h("span", { class: "note" });
  const undoButton = button("Undo", "u", () => undo());
  const buttons = [
    button("Normal", "n", () => say("normal")),
    button("Attack…", "a", () => attackDialog(target, facts.alert, (name) => say(`attack:${name}`))),
    button("Mute…", "m", () => muteDialog(target, facts.alert, mute)),
    undoButton,
  ];
  const element = h(
    "section", { class: "panel answer", "aria-label": "Answer" },
    h("div", { class: "answer-buttons" }, h("span", { class: "says" }, "What is it?"), buttons, note), outcome,
  );
  const next = () => goToNext(target);
  let busy = false;

  /** Do something that needs a name and a token, one at a time; what goes wrong is told here. */
  async function act(work) {
    if (busy) return;
    setBusy(true);
    try {
      const by = await ready();
      if (by) await work(by);
    } catch (error) {
      clear(outcome).append(refusal(explain(error)));
      if (error.status === 401) refused(explain(error));
    } finally {
      setBusy(false);
      soon();
    }
  }

  /** Count a label at once, before it is fetched with the rest. */
  function keep(row) {
    const isUndone = (other) => row.target_kind === "undo" && String(other.label_seq) === row.target;
    const known = facts.labels.map((other) => (isUndone(other) ? { ...other, undone_by: row.label_seq } : other));
    facts.labels = [...known, row];
    paint();
  }

  function setBusy(now) {
    busy = now;
    element.setAttribute("aria-busy", String(now));
  }

  const say = (label) => act(async (by) => {
    if (inForce()?.label === label) return toast(`It is answered ${label} already.`);
    const { label: row } = await post("labels", { target, label, by, why: "" });
    toast(`Answered: ${label}.`, { action: { text: "Undo", run: () => undo(row.label_seq) } });
    keep(row);
    return follow(row);
  });

  const undo = (seq = inForce()?.label_seq) => act(async (by) => {
    if (seq === undefined) return;
    const { label: row } = await post(`labels/${seq}/undo`, { by, why: "" });
    dropActions();
    toast(`Label ${seq} is being taken back.`);
    keep(row);
    follow(row);
  });

  const mute = (rule) => act(async (by) => {
    const { suppression } = await post("suppressions", { ...rule, by });
    clear(outcome).append(muteOutcome(suppression, { remove: () => unmute(suppression.id), next }));
    onDone();
  });

  const unmute = (id) => act(async (by) => {
    await del(`suppressions/${encodeURIComponent(id)}`, { by, why: "" });
    clear(outcome).append(h("div", { class: "outcome done" }, `Rule ${id} is removed. What it hid will be heard of again.`));
    onDone();
  });

  /** Show what came of a label, now and until the daemon has taken it up. */
  function follow(row) {
    const seq = row.label_seq;
    const paintOutcome = (said) => clear(outcome).append(labelOutcome(said, { undo: () => undo(seq), next }));
    paintOutcome({ label: row, closed: [], pinned: 0 });
    onDone();
    const stop = () => {
      clearInterval(timer);
      off();
    };
    const look = async () => {
      if (!element.isConnected) return stop();
      const now = await get(`labels/${seq}`).catch(() => null);
      if (!now || now.label.status === "pending") return undefined;
      stop();
      paintOutcome(now);
      onDone();
      return undefined;
    };
    const timer = setInterval(look, POLL_MS);
    const off = events.on("label", (changed) => changed.label_seq === seq && look());
  }

  function paint() {
    const last = inForce();
    undoButton.disabled = !last;
    undoButton.title = last ? `Take back label ${last.label_seq} (${last.label})` : "There is no answer to take back";
    fill(note, words(facts, last, unmute));
  }

  element.update = (changed) => {
    Object.assign(facts, changed);
    paint();
  };
  paint();
  bindPage("n", "Answer: normal", () => buttons[0].click());
  bindPage("a", "Answer: attack", () => buttons[1].click());
  bindPage("m", "Mute", () => buttons[2].click());
  bindPage("j", "Next alert to answer", next);
  bindPage("u", "Undo the answer", () => undoButton.click());
  return element;
}

function button(text, key, run) {
  return h("button", { type: "button", onclick: run, "aria-keyshortcuts": key }, text, h("kbd", { "aria-hidden": "true" }, key));
}

/** The label in force: the newest that is neither refused, nor undone, nor itself an undo. */
export function standing(labels) {
  return [...labels]
    .sort((a, b) => b.label_seq - a.label_seq)
    .find((row) => row.target_kind !== "undo" && row.status !== "refused" && row.undone_by === null);
}

function words({ settles, mutedBy }, last, unmute) {
  if (mutedBy) {
    const remove = h("button", { type: "button", class: "small", onclick: () => unmute(mutedBy) }, "Remove the mute");
    return [`Muted by rule ${mutedBy}. `, /^s-\d+$/.test(mutedBy) ? remove : "It is in the configuration."];
  }
  if (last) return [`Answered ${last.label} by ${last.by}. A new answer counts from the next record on.`];
  if (!settles?.settles_alerts) return [];
  return [`One answer settles ${counted(settles.settles_alerts, "alert")}, ${counted(settles.settles_records, "record")}.`];
}
