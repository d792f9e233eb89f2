/** Tells of alerts that have just opened: aloud to screen readers, and, if they are grave, on pages that do not list them. */

import { events } from "./api.js";
import { clean, h } from "./dom.js";
import { counted } from "./format.js";
import { toast } from "./toast.js";
import { alertHref, worst } from "./widgets.js";

const GATHER_MS = 2000;
const GRAVE = ["high", "critical"];
const LISTING = /^#?(\/|\/alerts)?(\?|$)/;

/** Begin to tell. */
export function startAnnouncing() {
  const place = h("div", { class: "unseen", "aria-live": "polite" });
  document.body.append(place);
  let opened = [];
  let timer = 0;
  const tell = () => {
    timer = 0;
    const level = worst(opened.map((alert) => alert.severity));
    const first = opened.find((alert) => alert.severity === level);
    const count = opened.length === 1 ? `New alert, ${level}` : `${counted(opened.length, "new alert")}, the worst ${level}`;
    const words = `${count}: ${first.summary}`;
    opened = [];
    const here = location.hash === alertHref(first.id);
    if (!GRAVE.includes(level) || here || LISTING.test(location.hash)) place.textContent = clean(words);
    else toast(words, { action: { text: "Look", run: () => { location.hash = alertHref(first.id); } } });
  };
  events.on("alert", ({ action, alert }) => {
    if (action !== "open" || opened.length >= 1000) return;
    opened.push(alert);
    timer ||= setTimeout(tell, GATHER_MS);
  });
}
