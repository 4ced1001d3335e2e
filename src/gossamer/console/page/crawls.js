// Crawls: the list of a server of many crawls, and their controls.

import * as compare from "./compare.js";
import { by, cell, choices, fill, make, prose, say, text } from "./dom.js";
import { count, counted, decimal, harmless, typed } from "./words.js";
import { ask, hasToken, lost, SILENCE_MS, whenTokenComes } from "./wire.js";

const LOOK_MS = 2_000;
const WITHOUT_REASON = { created: "not started yet", reading: "reading its figures", stopped: "ended unexpectedly; everything up to its last commit is saved" };
// The actions in each state, with the text of the button.
const VERBS = {
  created: [["start", "Start"]], running: [["pause", "Pause"], ["stop", "Stop"]], paused: [["unpause", "Resume"], ["stop", "Stop"]],
  stopped: [["resume", "Continue…"]], finished: [["resume", "Continue…"]], failed: [["resume", "Continue…"]],
};
// A crawl is deleted only while nothing runs.
const IDLE = new Set(["created", "stopped", "finished", "failed"]);
// What the form of a new crawl has fields for, or the server sets.
const FIELDS = new Set(["seeds.urls", "operator.contact", "limits.max_pages", "scope.scope", "scope.depth_max", "politeness.delay_s_min",
  "output.directory", "console.port"]);
const inOrder = new Intl.Collator("en", { numeric: true }).compare;
let keys = {}, dialogOf = null, opener = "", last = null, failures = 0;

async function look() {
  try {
    if (!document.hidden) show(await ask("api/crawls", undefined, SILENCE_MS));
    failures = 0;
    stand("live", "live");
  } catch (error) {
    stand("lost", lost(error.message, failures));
    failures += 1;
    if (!by("crawls").rows.length) say(by("counts"), "Not known.");
  }
  setTimeout(look, LOOK_MS);
}

function stand(state, says) {
  by("link").className = `link ${state}`;
  say(by("link"), says);
}

function show(answer) {
  say(by("counts"), `${counted(answer.crawls.length, "crawl")}, ${count(answer.running)} running. At most ${count(answer.crawls_max)} run at once.`);
  say(by("unlisted"), unlisted(answer.unlisted ?? []));
  say(by("zone"), harmless(answer.zone));
  last = answer;
  const key = by("sort").value;
  const differ = (one, other) => (key === "state" ? inOrder(one.state, other.state) : key === "name" ? 0 : other[key] - one[key]);
  answer.crawls.sort((one, other) => differ(one, other) || inOrder(one.name, other.name));
  const rows = answer.crawls.map((crawl) => {
    const isOver = crawl.state === "finished" || crawl.state === "stopped";
    const says = crawl.problem || (isOver ? crawl.ended : !(crawl.pages_s > 0) && crawl.waiting_for && `waiting for ${crawl.waiting_for}`) || WITHOUT_REASON[crawl.state] || "";
    return make("tr", {},
      make("th", { scope: "row" }, make("a", { href: `crawls/${encodeURIComponent(crawl.name)}/` }, harmless(crawl.name))),
      text(make("span", { class: `badge ${/^[a-z]+$/.test(crawl.state) ? crawl.state : ""}` }, harmless(crawl.state))),
      ...[count(crawl.pages), decimal(crawl.pages_s), count(crawl.queued)].map((figure) => cell(crawl.state === "reading" ? "" : figure)),
      cell(make("span", {}, ...prose(says), ...planned(crawl, says)), crawl.problem ? "text bad-text" : "text"), cell(buttons(crawl)));
  });
  fill(by("crawls"), ["<crawl", "<state", "pages", "pages/s", "queued", "<details", "!actions"], rows, "None so far.");
  compare.crawls(answer.crawls.filter((crawl) => crawl.begun).map((crawl) => crawl.name));
}

// Folders with crawls whose names cannot be shown, or beyond the number that the server lists.
function unlisted(names) {
  if (!names.length) return "";
  const more = names.length > 5 ? ` and ${count(names.length - 5)} more` : "";
  return `Not listed: ${names.slice(0, 5).map((name) => `“${harmless(name)}”`).join(", ")}${more}. A name needs characters that can be shown, at most 240 bytes in UTF-8; a server lists 1,000 crawls.`;
}

// When a crawl runs again, and what became of the last time.
function planned(crawl, says) {
  if (!crawl.schedule) return [];
  const at = crawl.due_at ? new Date(1000 * crawl.due_at).toLocaleString("en-GB", { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" }) : "";
  const more = [crawl.schedule, at && `next ${at} here`, crawl.skipped, crawl.last_run && `last ${crawl.last_run}`].filter(Boolean).join("; ");
  return [...(says ? [make("br")] : []), make("small", {}, harmless(more))];
}

// Ask in a dialog before something is sent; `send` gets its form.
function inDialog(id, send) {
  const dialog = by(id);
  dialog.addEventListener("close", async () => {
    if (dialog.returnValue === "yes") await send(dialog.querySelector("form").elements, dialogOf);
    // The list has been drawn anew, perhaps with other buttons for the crawl.
    const buttons = [...by("crawls").querySelectorAll("button")], ends = (text) => (one) => one.getAttribute("aria-label").endsWith(text);
    (buttons.find(ends(opener)) ?? buttons.find(ends(` ${harmless(dialogOf.name)}`)))?.focus();
  });
}

// The button, and Enter, work once the name is there letter by letter.
function confirmed() {
  const { name } = by("delete").elements;
  by("delete").querySelector(".danger").disabled = name.value !== dialogOf?.name;
}

function open(id, crawl) {
  dialogOf = crawl;
  say(by(id).querySelector(".which"), harmless(crawl.name));
  by(id).returnValue = "";
  by(id).showModal();
}

const pathOf = (crawl, verb) => `api/crawls/${encodeURIComponent(crawl.name)}/${verb}`;

function act(crawl, verb, title) {
  if (verb === "resume") return open("continuing", crawl);
  if (verb === "delete") {
    by("delete").reset();
    confirmed();
    return open("deleting", crawl);
  }
  if (verb === "schedule") {
    by("schedule").elements.when.value = crawl.schedule;
    return open("scheduling", crawl);
  }
  return tell(by("said"), pathOf(crawl, verb), {}, () => `${crawl.name}: ${title.toLowerCase()}.`);
}

function buttons(crawl) {
  const all = VERBS[crawl.begun || crawl.state !== "failed" ? crawl.state : "created"] ?? [];
  const verbs = all.filter(([verb]) => verb !== "resume" || crawl.resumable);
  const made = [...verbs, ["schedule", "Schedule…"], ...(IDLE.has(crawl.state) ? [["delete", "Delete…"]] : [])].map(([verb, title]) =>
    make("button", { type: "button", class: "plain", "aria-label": `${title} ${harmless(crawl.name)}`, ...(hasToken() ? {} : { disabled: "" }),
      onclick: (event) => {
        opener = event.currentTarget.getAttribute("aria-label");
        event.currentTarget.blur();
        act(crawl, verb, title);
      } }, title));
  return make("span", { class: "actions" }, ...made);
}

async function tell(place, path, body, says) {
  say(place, "…");
  try {
    say(place, harmless(says(await ask(path, body))), "good");
    show(await ask("api/crawls"));
    return true;
  } catch (error) {
    say(place, harmless(error.message), "bad");
    return false;
  }
}

function configuration(form) {
  const { seeds, contact, pages, scope, depth, delay } = form.elements, config = {};
  const put = (key, value) => {
    const [section, name] = key.split(/\.(.*)/s);
    config[section] = { ...config[section], [name]: value };
  };
  put("seeds.urls", seeds.value.split(/\s+/).filter(Boolean));
  if (scope.value !== "host") put("scope.scope", scope.value);
  if (contact.value.trim()) put("operator.contact", contact.value.trim());
  for (const [key, field] of [["limits.max_pages", pages], ["scope.depth_max", depth], ["politeness.delay_s_min", delay]]) {
    if (field.value.trim()) put(key, typed(field.value));
  }
  for (const row of by("added").children) put(row.dataset.key, valueOf(row.dataset.value));
  return config;
}

// A number as in a field of its own, true, a list … as in a configuration file; anything else is a text.
function valueOf(text) {
  try {
    const value = JSON.parse(text);
    return typeof value === "number" ? typed(text) : value;
  } catch {
    return text;
  }
}

async function settings() {
  const answer = await ask("api/config").catch(() => ({ keys: [] }));
  keys = Object.fromEntries(answer.keys.filter((one) => !FIELDS.has(one.key)).map((one) => [one.key, one]));
  choices(by("add-key"), Object.keys(keys));
  chosen();
}

function chosen() {
  const found = keys[by("add-key").value];
  by("add-value").value = found && found.value !== null ? JSON.stringify(found.value) : "";
  say(by("add-says"), harmless(found?.says ?? ""));
}

function add() {
  const key = by("add-key").value, value = by("add-value").value.trim();
  if (!key || !value) return;
  for (const row of by("added").children) if (row.dataset.key === key) row.remove();
  const row = make("p", { class: "small", "data-key": key, "data-value": value }, make("code", {}, `${key} = ${harmless(value)}`), " ",
    make("button", { type: "button", class: "plain", "aria-label": `remove ${key}`, onclick: () => row.remove() }, "remove"));
  by("added").append(row);
}

by("new").addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.currentTarget, place = form.parentElement.querySelector(".said");
  const body = { name: form.elements.name.value, config: configuration(form), start: true, when: form.elements.when.value };
  if (!await tell(place, "api/crawls", body, (answer) => `${answer.name} starts${answer.schedule && `, and runs again ${answer.schedule}`}.`)) return;
  form.reset();
  by("added").replaceChildren();
  chosen();
});

function allow() {
  by("hint").hidden = hasToken();
  by("new").querySelector("button.control").disabled = !hasToken();
}

inDialog("scheduling", ({ when }, crawl) => tell(by("said"), pathOf(crawl, "schedule"), { when: when.value },
  (answer) => (answer.schedule ? `${answer.name} runs again ${answer.schedule}.` : `${answer.name} has no schedule.`)));
inDialog("deleting", ({ name }, crawl) => tell(by("said"), pathOf(crawl, "delete"), { name: name.value }, () => `${crawl.name} is deleted.`));
inDialog("continuing", ({ pages }, crawl) => {
  const text = pages.value.trim(), values = text === "" ? {} : { "limits.max_pages": typed(text) };
  return tell(by("said"), pathOf(crawl, "resume"), { values }, () => `${crawl.name}: continues.`);
});
by("delete").addEventListener("input", confirmed);
by("add-key").addEventListener("change", chosen);
by("add").addEventListener("click", add);
by("more-settings").addEventListener("toggle", settings, { once: true });
by("sort").addEventListener("change", () => last && show(last));
whenTokenComes(allow);
compare.begin();
allow();
look();
