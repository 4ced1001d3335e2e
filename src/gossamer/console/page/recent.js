// Recent: the last pages and the last errors. At most twenty of each are on the page, however fast they come.

import { by, cell, fill, link, make } from "./dom.js";
import { clock, count, harmless, outcome, seconds, size } from "./words.js";

const SHOWN_MAX = 20;
const REASONS_MAX = 50;
let pages = [], errors = [], asks = () => {};
let reasons = new Map();

export function whenAsked(call) {
  asks = call;
}

export function begin(recent) {
  pages = [...recent.pages].reverse();
  errors = [...recent.errors].reverse();
  reasons = new Map();
  sort(recent.errors);
  draw();
}

export function add(recent) {
  if (!recent) return;
  pages = merged(recent.pages, pages);
  const known = new Set(errors.map((one) => one.number));
  sort(recent.errors.filter((one) => !known.has(one.number)));
  errors = merged(recent.errors, errors);
  const shown = recent.pages.length + recent.errors.length;
  by("pages-more").textContent = recent.left_out > 0
    ? `${count(recent.left_out + shown)} fetches and errors in the last second; ${count(shown)} are shown.`
    : "Newest first.";
  if (reasons.size) by("errors-more").textContent = "Of those that this page has received: Outcomes counts all of them.";
  if (shown) draw();
}

export const of = (host) => [...pages, ...errors].filter((one) => hostOf(one.url) === host).sort((a, b) => b.at - a.at);

function hostOf(url) {
  try {
    return new URL(url).hostname;
  } catch {
    return "";
  }
}

function merged(added, known) {
  const numbers = new Set(known.map((one) => one.number));
  return [...added.filter((one) => !numbers.has(one.number)).reverse(), ...known].slice(0, SHOWN_MAX);
}

// Count errors by their reason, the newest last: numbers differ from page to page where the kind of error does not.
function sort(added) {
  for (const one of added) {
    const key = [one.outcome, one.status ?? "", one.status ? "" : String(one.error ?? "").replace(/[0-9]+/g, "#")].join(" ");
    const n = (reasons.get(key)?.n ?? 0) + 1;
    reasons.delete(key);
    reasons.set(key, { one, n });
  }
  while (reasons.size > REASONS_MAX) reasons.delete(reasons.keys().next().value);
}

function draw() {
  fill(by("pages"), ["<at", "status", "<page", "type, size, time", "!explain"], pages.map((one) =>
    make("tr", {}, cell(clock(one.at)), cell(String(one.status ?? "–")), address(one),
      two(harmless(one.media_type || outcome(one.outcome)), `${size(one.body_bytes)}, ${seconds(one.fetch_s)}`), why(one))), "None so far.");
  fill(by("errors"), ["<last", "count", "<example", "!explain"], [...reasons.values()].reverse().map(({ one, n }) => {
    const line = address(one);
    const tries = one.attempt > 1 ? ` (attempt ${count(one.attempt)})` : "";
    const says = one.error && one.error !== outcome(one.outcome) ? `: ${harmless(one.error)}` : "";
    line.append(make("small", { class: "reason" }, make("span", { class: "bad-text" }, outcome(one.outcome)), says, tries));
    return make("tr", {}, cell(clock(one.at)), cell(count(n)), line, why(one));
  }), "None so far.");
}

const two = (first, second) => make("td", {}, make("span", { class: "tight" }, first), make("br"), make("small", {}, second));

function address(one) {
  const place = make("td", { class: "text clip" });
  if (one.title) place.append(make("span", { class: "one-line title-text", title: harmless(one.title) }, harmless(one.title)));
  place.append(make(one.title ? "small" : "span", { class: "one-line", title: harmless(one.url) }, link(one.url)));
  return place;
}

const why = (one) => cell(make("button", { type: "button", class: "plain", "aria-label": `why ${harmless(one.url)}`, onclick: () => asks(one.url) }, "why"));
