/**
 * Making elements safely. Everything that comes from the daemon may have been chosen by an attacker, so text only ever
 * goes in as text, and characters that cannot be seen or that turn writing around are shown as what they are.
 */

const SVG = "http://www.w3.org/2000/svg";
const INVISIBLE =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffc\u{e0000}-\u{e0fff}]/gu;

/** Text in which control, direction and other invisible characters stand as visible placeholders. */
export function clean(text) {
  return String(text ?? "").replace(INVISIBLE, placeholder);
}

function placeholder(character) {
  return `[U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}]`;
}

/** Text of several lines: cleaned, with its line ends kept. For `pre` and the like. */
export function cleanLines(text) {
  return String(text ?? "").split(/\r?\n/).map(clean).join("\n");
}

/** An HTML element. `attrs`: attributes, `on<event>` functions, `class`; null, undefined and false are left out. */
export function h(tag, attrs, ...children) {
  return build(document.createElement(tag), attrs, children);
}

/** An SVG element. */
export function svg(tag, attrs, ...children) {
  return build(document.createElementNS(SVG, tag), attrs, children);
}

/** A `pre` that keeps the lines of a text. */
export function pre(text, attrs) {
  const element = h("pre", attrs);
  element.textContent = cleanLines(text);
  return element;
}

/** Put text into a node, if it is another one than it has. */
export function say(node, text) {
  const shown = clean(text);
  if (node.textContent !== shown) node.textContent = shown;
}

/** Put children into a node in place of those it has. */
export function fill(node, ...children) {
  return build(clear(node), null, children);
}

/** Take out everything that is within a node. */
export function clear(node) {
  node.replaceChildren();
  return node;
}

function build(element, attrs, children) {
  for (const [name, value] of Object.entries(attrs ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.replace(/^on/, "").toLowerCase(), value);
    else element.setAttribute(name, attribute(name, value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : clean(child));
  }
  return element;
}

function attribute(name, value) {
  if (name.startsWith("on") || name === "style" || name === "srcdoc") throw new Error(`${name} is not set as text`);
  if ((name === "href" || name === "src") && !/^(#|\/(?!\/)|blob:)/.test(value)) throw new Error("a link leads elsewhere");
  return value === true ? "" : clean(value);
}
