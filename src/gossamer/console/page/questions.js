// Questions: why a URL is where it is, and what pages say.

import { by, link, make } from "./dom.js";
import { count, harmless } from "./words.js";
import { ask } from "./wire.js";

const HITS_MAX = 10;
const FIRST = new Set(["url", "state", "reason"]);

export function begin() {
  on("why", async (form, place) => {
    const told = await ask(`api/why?${new URLSearchParams({ url: form.elements.url.value.trim() })}`);
    const rest = Object.entries(told).filter(([name]) => !FIRST.has(name));
    place.replaceChildren(
      make("p", { class: "verdict" }, harmless([told.state, told.reason].filter(Boolean).join(": "))),
      make("p", { class: "small" }, link(String(told.url ?? ""))), facts(rest));
  });
  on("search", async (form, place) => {
    const asked = new URLSearchParams({ q: form.elements.q.value.trim(), n: HITS_MAX });
    const told = await ask(`api/search?${asked}`);
    const hits = told.hits ?? [];
    place.replaceChildren(
      make("p", { class: "small" }, `${count(told.total ?? hits.length)} found.`),
      ...(told.problems ?? []).map((problem) => make("p", { class: "said bad" }, harmless(problem))), ...hits.map(hit));
  });
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
  return make("dd", {}, harmless(value));
}

function hit(found) {
  const title = make("p", {}, link(found.url, found.title || found.url));
  return make("div", { class: "hit" }, title, make("p", { class: "small" }, harmless(found.url)), make("p", {}, ...marked(found)));
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
