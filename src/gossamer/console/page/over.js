// Over: a crawl that does not run is shown by what came of it: its totals, what failed and why, and what can be made of it.

import { address } from "./host.js";
import { by, cell, fill, link, make, say, text } from "./dom.js";
import { count, harmless, outcome, OVER } from "./words.js";
import { ask } from "./wire.js";

const WELL = new Set(["fetched", "not_modified", "redirected"]);
const REASONS_MAX = 20;
let state = "", report = null, asks = () => {}, hasLine = () => true;

export const isOver = () => OVER.has(state);
export const figures = () => report;

// Whether there are rates at two times at least: one makes no line.
export function whenDrawn(call) {
  hasLine = call;
}

export function whenAsked(call) {
  asks = call;
}

// Take up how the crawl stands. Return whether it has just ended, or did not run when the page was opened.
export function stands(status) {
  const before = state;
  state = status.state;
  document.body.classList.remove("unknown");
  document.body.classList.toggle("over", isOver());
  document.body.classList.toggle("no-pages", !status.pages);
  if (before === state) return false;
  report = null;
  return isOver();
}

// Read what the tables tell.
export async function read() {
  const of = state;
  ask("api/items?n=1").then(({ kinds }) => document.body.classList.toggle("items", kinds.length > 0), () => {});
  try {
    const answer = await ask("api/report");
    if (state !== of) return;
    report = answer;
    failures(answer);
  } catch (error) {
    say(by("failures-says"), `The report could not be read: ${harmless(error.message)}`);
  }
}

// Hide the parts that have nothing to show.
export function trim() {
  for (const id of ["outcomes", "media", "pages", "failed-hosts"]) {
    by(id).closest("section").hidden = isOver() && !by(id).querySelector("td:not(.empty)");
  }
  by("charts").hidden = isOver() && (by("media").closest("section").hidden || !hasLine());
  by("to-charts").hidden = by("charts").hidden;
  by("to-lately").hidden = by("lately").hidden;
}

function failures({ outcomes, troubles: found, attempts, seeds_not_fetched: lost }) {
  // A seed whose host never answered was not requested itself.
  const silent = lost.filter((seed) => !found.some((one) => [one.url, ...one.more].includes(seed.url)));
  const troubles = [...silent.map(({ url, state: name, reason: error }) => ({ url, outcome: name, error, kind: "", count: 0, more: [] })), ...found];
  const failed = outcomes.filter((one) => !WELL.has(one.name)).reduce((sum, one) => sum + one.count, 0);
  const kinds = found.length >= REASONS_MAX ? `The ${REASONS_MAX} most frequent reasons` : "By reason";
  say(by("failures-says"), failed
    ? `${count(failed)} of ${count(attempts)} attempts failed or were refused. ${kinds}, with examples.`
    : attempts ? `Nothing: none of ${count(attempts)} attempts failed.` : lost.length ? "No seed could be fetched." : "No page was requested.");
  by("reasons").parentElement.hidden = !troubles.length;
  by("failures-all").hidden = !found.length;
  fill(by("reasons"), ["<reason", "attempts", "<examples", "!explain"], troubles.map((one) => make("tr", {},
    make("th", { scope: "row" }, reason(one)), cell(count(one.count)), example(one),
    cell(make("button", { type: "button", class: "plain", "aria-label": `why ${harmless(one.url)}`, onclick: () => asks(one.url) }, "why")))), "");
}

const isStatus = (one) => /^\d+$/.test(one.kind);
const reason = (one) => (isStatus(one) ? `HTTP ${one.kind}` : outcome(one.outcome));

function example(one) {
  const place = text(make("div", {}, ...[one.url, ...one.more].map((url) => make("div", { class: "url" }, link(url)))));
  const host = hostOf(one.url), says = isStatus(one) ? "" : harmless(one.error);
  const more = [...(says ? [says] : []), ...(host ? [make("a", { href: address(host) }, `host ${harmless(host)}`)] : [])];
  place.append(make("small", {}, ...more.flatMap((part, index) => (index ? [" · ", part] : [part]))));
  return place;
}

function hostOf(url) {
  try {
    return new URL(url).hostname;
  } catch {
    return "";
  }
}
