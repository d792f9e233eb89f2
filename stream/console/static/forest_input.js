/** Pointer, wheel, touch and keys on the forest: pan, zoom, point at a record, open its cluster. */

const CLICK = 5; // pixels that a hand may tremble
const STEP = 0.1;
const ZOOM = 1.25;

/** Listen to what is done to the picture; returns what ends that. */
export function listen(forest) {
  const { canvas } = forest;
  const down = new Map(); // pointers that are pressed, by id: where they are
  let travelled = 0;
  let touched = -1;

  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return { x: (event.clientX - box.left) / forest.unit, y: (event.clientY - box.top) / forest.unit };
  };
  const part = (x) => Math.min(1, Math.max(0, (x - forest.gutter) / (forest.width - forest.gutter)));

  function pressed(event) {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    down.set(event.pointerId, place(event));
    if (down.size === 1) travelled = 0;
  }

  function moved(event) {
    const here = place(event);
    const before = down.get(event.pointerId);
    if (!before) {
      look(here);
      return;
    }
    if (down.size === 2) pinch(event.pointerId, here);
    else if (down.size === 1) {
      travelled += Math.abs(here.x - before.x) + Math.abs(here.y - before.y);
      if (travelled > CLICK) {
        forest.point(-1);
        forest.pan((before.x - here.x) / (forest.width - forest.gutter));
      }
    }
    down.set(event.pointerId, here);
  }

  function pinch(id, here) {
    const [other] = [...down].filter(([key]) => key !== id).map(([, at]) => at);
    const before = Math.abs(down.get(id).x - other.x);
    const after = Math.abs(here.x - other.x);
    travelled = Infinity;
    if (before > 8 && after > 8) forest.zoom(before / after, part((here.x + other.x) / 2));
  }

  function released(event) {
    if (!down.delete(event.pointerId) || travelled > CLICK || event.type === "pointercancel") return;
    const here = place(event);
    const found = forest.nearest(here.x, here.y);
    const tick = found < 0 ? -1 : forest.nodes.tick[found];
    const cluster = found < 0 ? inMargin(here) : forest.nodes.slots[forest.nodes.slot[found]];
    if (event.pointerType === "touch" && found < 0) forest.point(-1);
    if (event.pointerType === "touch" && found >= 0 && touched !== tick) forest.point(found, here.x, here.y);
    else if (cluster) forest.open?.(cluster.id);
    touched = tick;
  }

  const inMargin = ({ x, y }) => (x < forest.gutter && forest.withRows ? forest.rowAt(y) : null);

  function look({ x, y }) {
    const found = x < forest.gutter ? -1 : forest.nearest(x, y);
    canvas.classList.toggle("pointing", found >= 0 || Boolean(inMargin({ x, y })));
    forest.point(found, x, y);
  }

  function wheeled(event) {
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (!sideways && event.deltaY > 0 && !forest.canWiden()) return; // all is shown: the page may scroll
    event.preventDefault();
    if (sideways) forest.pan(event.deltaX / forest.width);
    else forest.zoom(Math.exp(Math.sign(event.deltaY) * Math.min(Math.abs(event.deltaY), 120) / 500), part(place(event).x));
  }

  const keys = {
    ArrowLeft: () => forest.pan(-STEP), ArrowRight: () => forest.pan(STEP),
    PageUp: () => forest.pan(-1), PageDown: () => forest.pan(1),
    "+": () => forest.zoom(1 / ZOOM, 0.5), "=": () => forest.zoom(1 / ZOOM, 0.5), "-": () => forest.zoom(ZOOM, 0.5),
    Home: () => forest.home?.(), 0: () => forest.home?.(), Escape: () => forest.point(-1),
  };

  function typed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    event.stopPropagation();
    keys[event.key]();
  }

  const left = (event) => event.pointerType !== "touch" && down.size === 0 && forest.point(-1);
  const reset = () => forest.home?.();
  const heard = [
    ["pointerdown", pressed], ["pointermove", moved], ["pointerup", released], ["pointercancel", released],
    ["pointerleave", left], ["wheel", wheeled, { passive: false }], ["dblclick", reset], ["keydown", typed],
  ];
  for (const [type, fn, options] of heard) canvas.addEventListener(type, fn, options);
  return () => heard.forEach(([type, fn, options]) => canvas.removeEventListener(type, fn, options));
}
