// Steer: controls of the crawl. Each control says what came of it, or what the server says is wrong.

import { by, choices, say } from "./dom.js";
import { brief, count, harmless, OVER, typed as given } from "./words.js";
import { ask, hasToken, whenTokenComes } from "./wire.js";

const NO_TOKEN = "Controls are off. Open the address that gossamer printed, with its token, or put #token=… behind this one: the token is the line in state/console.token of the crawl’s directory.";
const WORDS = { none: null };
let state = "", isOver = false, canResume = false, live = {}, changedAt = -1;
// Whether the field of the settings has text that is not sent yet, or was refused.
let typed = false;

// A server of many crawls can begin them anew; a crawl's own console ends with it.
const isOneOfMany = /\/crawls\/[^/]+\/$/.test(location.pathname);

export function begin() {
  by("all").hidden = !isOneOfMany;
  press("pause", "pause", {}, () => "Paused: no new requests; fetches in flight finish.");
  press("unpause", "unpause", {}, () => "Resumed.");
  continuing();
  press("checkpoint", "checkpoint", {}, (answer) => `A checkpoint is in ${answer.checkpoint}.`);
  const dialog = by("stopping");
  by("stop").addEventListener("click", () => dialog.showModal());
  by("stop-no").addEventListener("click", () => dialog.close());
  for (const [id, now] of [["stop-yes", false], ["stop-now", true]]) {
    by(id).addEventListener("click", () => {
      dialog.close();
      act(by("said"), "stop", { now }, () => "Stopping: fetches in flight finish, and everything is saved.");
    });
  }
  submit("seed", (form) => ({ urls: lines(form.elements.urls.value) }),
    (answer) => `${count(answer.added)} new, ${count(answer.known)} known, ${count(answer.rejected)} rejected by filters. Known URLs are not fetched again.`);
  submit("exclude", (form) => ({ hosts: lines(form.elements.hosts.value) }), (answer) => `${answer.excluded.join(", ")}: no more requests.`);
  submit("host", (form) => ({ host: form.elements.host.value.trim(), values: values(form) }), changed);
  submit("set", assigned, changed);
  by("set-key").addEventListener("change", chosen);
  by("set-value").addEventListener("input", () => { typed = true; });
  whenTokenComes(() => allow());
  allow();
}

// Take up how the crawl stands.
export function stands(status, resumable) {
  const newest = status.changes?.at(-1)?.at ?? 0;
  if (newest > changedAt && changedAt >= 0) keys();  // Perhaps in another tab.
  changedAt = newest;
  if (status.state === state && resumable === canResume) return;
  state = status.state;
  canResume = resumable;
  const [shows, hides] = state === "paused" ? ["unpause", "pause"] : ["pause", "unpause"];
  const hadFocus = document.activeElement === by(hides);
  by(shows).hidden = false;
  by(hides).hidden = true;
  if (hadFocus) by(shows).focus();  // A hidden button would leave the keyboard at the top of the page.
  isOver = OVER.has(state);
  allow();
}

export async function keys() {
  try {
    const answer = await ask("api/config");
    live = Object.fromEntries(answer.keys.filter((one) => one.live).map((one) => [one.key, one]));
  } catch {
    live = {};
  }
  const select = by("set-key"), before = select.value || "crawl.concurrency";
  choices(select, Object.keys(live));
  if (before in live) select.value = before;
  // The answer to one change may come while the next is being typed.
  if (!typed) chosen();
}

function chosen() {
  const found = live[by("set-key").value];
  by("set-value").value = found?.text ?? "";
  typed = false;
  say(by("set-says"), harmless(found?.says ?? ""));
}

// A crawl that does not run goes on where it ended, if need be with a higher limit.
function continuing() {
  const dialog = by("continuing"), pages = by("continue-pages");
  by("resume").addEventListener("click", () => {
    dialog.returnValue = "";
    dialog.showModal();
  });
  dialog.addEventListener("close", () => {
    if (dialog.returnValue !== "yes") return;
    const text = pages.value.trim(), values = text === "" ? {} : { "limits.max_pages": given(text) };
    act(by("said"), "resume", { values }, () => "The crawl continues.");
  });
  if (isOneOfMany) {
    by("compare-term").hidden = by("compare-place").hidden = false;
    by("compare-link").href = `../../#compare=${location.pathname.split("/").at(-2)}`;
  }
}

function allow() {
  const off = !hasToken() || isOver;
  for (const button of document.querySelectorAll("button.control")) button.disabled = off;
  by("resume").hidden = !(canResume && isOneOfMany);
  by("resume").disabled = !hasToken();
  const hint = by("hint");
  hint.hidden = hasToken() || (isOver && !isOneOfMany);
  say(hint, NO_TOKEN);
}

function press(id, verb, body, says) {
  by(id).addEventListener("click", () => act(by("said"), verb, body, says));
}

function submit(id, body, says) {
  const form = by(id), place = form.parentElement.querySelector(".said");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (await act(place, id, body(form), says)) {
      if (id === "set" || id === "host") await keys();
      else form.reset();
    } else if (id === "set") {
      typed = true;
    }
  });
}

async function act(place, verb, body, says) {
  say(place, "…");
  try {
    say(place, harmless(says(await ask(`api/${verb}`, body))), "good");
    return true;
  } catch (error) {
    say(place, harmless(error.message), "bad");
    return false;
  }
}

function assigned(form) {
  typed = false;
  return { assignments: [`${form.elements.key.value}=${form.elements.value.value}`] };
}

const lines = (text) => text.split(/\s+/).filter(Boolean);

function values(form) {
  const found = {};
  for (const name of ["delay_s", "per_host", "pages"]) {
    const text = form.elements[name].value.trim();
    if (text === "") continue;
    found[name] = text in WORDS ? WORDS[text] : given(text);
  }
  return found;
}

function changed(answer) {
  const changes = answer.changed ?? [];
  if (!changes.length) return "No change: that is the value already.";
  return changes.map((one) => `${one.key}: ${brief(one.before || "none")} → ${brief(one.after || "none")}`).join("\n");
}
