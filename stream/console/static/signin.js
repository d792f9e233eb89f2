/** Who is at the keyboard: the token that changes need (kept for this tab), and a name (kept for good). */

import { ApiError, explain, get, hasToken, setToken, tryToken } from "./api.js";
import { h, say } from "./dom.js";

const NAME = "netclust.by";
const LONGEST_NAME = 128;
const NO_TOKEN = "the daemon has no token_file, so nothing can be changed here. Set one in its configuration.";
const listeners = new Set();

/** What the daemon says about this session; null before it was asked. */
export let session = null;

/** Call `fn({signedIn, by})` now and whenever it changes. */
export function onAccount(fn) {
  listeners.add(fn);
  fn(who());
  return () => listeners.delete(fn);
}

/** Ask the daemon whether the token is right. */
export async function account() {
  try {
    session = await get("session");
  } catch (error) {
    if (error.status === 401) setToken("");
  }
  tell();
}

function who() {
  return { signedIn: hasToken(), by: localStorage.getItem(NAME) ?? "" };
}

function tell() {
  for (const fn of [...listeners]) fn(who());
}

/** The name to sign an answer with, asking for token and name if need be; null: the person gave up. */
export async function ready() {
  if (session && !session.changes) throw new ApiError(403, "no_token", NO_TOKEN);
  const { signedIn, by } = who();
  if (signedIn && by) return by;
  return (await signIn()) ? who().by : null;
}

/** The token was refused: forget it and ask for another. */
export function refused(why) {
  setToken("");
  tell();
  return signIn({ why });
}

let open = null;

/** The dialog; true once there are a token and a name. */
export function signIn({ asked = false, why = "" } = {}) {
  open ??= new Promise((resolve) => show(asked, why, resolve)).finally(() => { open = null; });
  return open;
}

function show(asked, why, resolve) {
  const { signedIn, by } = who();
  const token = h("input", { type: "password", id: "token", autocomplete: "off", spellcheck: "false", required: !signedIn });
  const name = h("input", { type: "text", id: "name", value: by, maxlength: LONGEST_NAME, autocomplete: "name", required: true });
  const trouble = h("p", { class: "trouble", role: "alert" }, why);
  let done = false;
  const submit = async (event) => {
    event.preventDefault();
    trouble.textContent = "";
    try {
      if (token.value.trim()) await take(token.value.trim());
      localStorage.setItem(NAME, name.value.trim());
      done = true;
      tell();
      dialog.close();
    } catch (error) {
      say(trouble, error.status === 401 ? "That token is not the daemon's. It is in its token_file, or at the end of the address that watch --console printed." : explain(error));
      token.select();
    }
  };
  const out = () => {
    setToken("");
    tell();
    dialog.close();
  };
  const dialog = h(
    "dialog", { class: "dialog", "aria-labelledby": "signin-title", onclose: () => { dialog.remove(); resolve(done); } },
    h("form", { onsubmit: submit },
      h("h2", { id: "signin-title" }, signedIn ? (by ? "You" : "Your name") : "Sign in"),
      signedIn ? null : [
        h("p", null, "Answers, mutes and packets need the daemon's token: it is in the file that the configuration calls ",
          h("code", null, "token_file"), ", or at the end of the address that ", h("code", null, "watch --console"),
          " printed. It is kept for this tab only."),
        h("label", { for: "token" }, "Token"), token,
      ],
      h("label", { for: "name" }, "Your name, kept with your decisions"), name,
      trouble,
      h("div", { class: "dialog-actions" },
        signedIn && asked && h("button", { type: "button", class: "quiet", onclick: out }, "Sign out"),
        h("button", { type: "button", class: "quiet", onclick: () => dialog.close() }, "Cancel"),
        h("button", { type: "submit", class: "primary" }, signedIn ? "Save" : "Sign in"))),
  );
  document.body.append(dialog);
  dialog.showModal();
  (signedIn ? name : token).focus();
}

/** Keep a token if the daemon says that it is right. */
async function take(token) {
  const said = await tryToken(token);
  if (!said.changes) throw new ApiError(403, "no_token", NO_TOKEN);
  if (!said.authenticated) throw new ApiError(401, "token", "wrong token");
  session = said;
  setToken(token);
}
