// Questions: why a URL is where it is, and what pages say.

import { versions } from "./archive.js";
import { address } from "./host.js";
import { by, link, make } from "./dom.js";
import { brief, count, harmless, instant } from "./words.js";
import { ask } from "./wire.js";

const HITS_MAX = 10;
const FIRST = new Set(["url", "state", "reason", "recent_visits", "fetched_at", "next_due"]);

export function begin() {
  on("why", async (form, place) => {
    const url = form.elements.url.value.trim(), copies = make("div", { class: "copies" });
    const answer = await ask(`api/why?${new URLSearchParams({ url })}`);
    const rest = Object.entries(answer).filter(([name]) => !FIRST.has(name));
    place.replaceChildren(
      make("p", { class: "verdict" }, harmless([answer.state, answer.reason].filter(Boolean).join(": "))),
      make("p", { class: "small" }, link(String(answer.url ?? "")), ...(answer.host ? [" on ", make("a", { href: address(answer.host) }, harmless(answer.host))] : [])),
      ...timeline(answer), facts(rest), copies);
    if (answer.state !== "unknown") versions(url, copies);
  });
  addEventListener("hashchange", named);
  named();
  on("search", async (form, place) => {
    const asked = new URLSearchParams({ q: form.elements.q.value.trim(), n: HITS_MAX });
    const answer = await ask(`api/search?${asked}`);
    const hits = answer.hits ?? [], again = (words, text) => {
      const button = make("button", { type: "button" }, harmless(text));
      button.addEventListener("click", () => { form.elements.q.value = words; form.requestSubmit(); });
      return button;
    };
    const narrower = ["host", "language"].flatMap((name) => {
      const counts = Object.entries(answer[`${name}s`] ?? {});
      return counts.length > 1 ? counts.map(([value, pages]) => again(`${answer.query} ${name}:${value}`, `${value} ${count(pages)}`)) : [];
    });
    place.replaceChildren(
      make("p", { class: "small" }, `${count(answer.total ?? hits.length)} found.`),
      ...(answer.suggestion ? [make("p", {}, "Did you mean ", again(answer.suggestion, answer.suggestion), "?")] : []),
      ...(narrower.length ? [make("p", { class: "small" }, ...narrower.flatMap((one) => [one, " "]))] : []),
      ...[answer.notice, ...(answer.problems ?? [])].filter(Boolean).map((problem) => make("p", { class: "said bad" }, harmless(problem))), ...hits.map(hit));
  });
}

// The address at which a URL is explained.
export const about = (url) => `#url=${encodeURIComponent(url)}`;

function named() {
  const url = new URLSearchParams(location.hash.slice(1)).get("url");
  if (url) why(url);
}

export function why(url) {
  by("why-url").value = url;
  by("why").requestSubmit();
  by("why").scrollIntoView({ block: "center" });
}

function on(id, answer) {
  const form = by(id), place = by(`${id}-answer`);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    place.replaceChildren(make("p", { class: "small" }, "Searching…"));
    try {
      await answer(form, place);
    } catch (error) {
      place.replaceChildren(make("p", { class: "said bad" }, harmless(error.message)));
    }
  });
}

// What happened to the URL and what comes, in order of time; instants are ISO 8601, which sorts as text.
function timeline(answer) {
  const found = (answer.recent_visits ?? []).map((visit) => String(visit).split(/ (.*)/s).slice(0, 2));
  const last = [answer.outcome, answer.status, answer.attempt > 1 ? `attempt ${answer.attempt}` : "", answer.error].filter(Boolean).join(", ");
  if (answer.fetched_at && !found.some(([at]) => at === answer.fetched_at)) found.push([answer.fetched_at, last || "visited"]);
  if (answer.next_due) found.push([answer.next_due, "due"]);
  found.sort(([a], [b]) => (String(a) < String(b) ? -1 : 1));
  return found.length ? [make("ol", { class: "timeline", "aria-label": "Timeline" }, ...found.map(([at, what]) => make("li", {}, make("time", {}, `${instant(at)} UTC`), ` ${harmless(what)}`)))] : [];
}

function facts(entries) {
  const list = make("dl");
  for (const [name, value] of entries) {
    if (value === null || value === "" || (Array.isArray(value) && !value.length)) continue;
    list.append(make("dt", {}, harmless(name.replaceAll("_", " "))), described(value));
  }
  return list;
}

function described(value) {
  if (Array.isArray(value)) return make("dd", {}, ...value.map((one) => make("div", {}, harmless(typeof one === "object" ? JSON.stringify(one) : one))));
  if (value !== null && typeof value === "object") return make("dd", {}, facts(Object.entries(value)));
  if (typeof value === "string" && /^[a-z]+:\/\//i.test(value)) return make("dd", {}, link(value));
  return make("dd", {}, /^\d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00)$/.test(value) ? `${instant(value)} UTC` : harmless(value));
}

function hit(found) {
  const title = make("p", {}, link(found.url, brief(found.title || found.url)));
  const explain = make("a", { href: about(found.url) }, "versions");
  return make("div", { class: "hit" }, title, make("p", { class: "small" }, harmless(found.url), " · ", explain), make("p", {}, ...marked(found)));
}

// Highlights are places in the snippet's characters, as its server counts them: by code points.
function marked(found) {
  const marks = [...String(found.snippet ?? "")], parts = [];
  let done = 0;
  for (const [from, to] of found.highlights ?? []) {
    parts.push(harmless(marks.slice(done, from).join("")), make("mark", {}, harmless(marks.slice(from, to).join(""))));
    done = to;
  }
  parts.push(harmless(marks.slice(done).join("")));
  return parts;
}
