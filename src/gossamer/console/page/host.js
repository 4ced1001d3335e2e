// Host: what is known of one host, and what became of its last requests. Its name is in the address: #host=example.org

import { by, cell, draw, fill, link, make, prose } from "./dom.js";
import * as recent from "./recent.js";
import { clock, count, duration, harmless, limit, outcome, OVER, seconds, until } from "./words.js";
import { ask } from "./wire.js";

let latest = {}, now = 0;

// Take the newest status.
export function stands(status, at) {
  latest = status;
  now = at;
}

export const address = (host) => `#host=${encodeURIComponent(host)}`;

export function begin() {
  by("host-show").addEventListener("submit", (event) => {
    event.preventDefault();
    const hash = address(by("host-shown").value.trim());
    if (location.hash === hash) show();
    else location.hash = hash;
  });
  addEventListener("hashchange", show);
  show();
}

// Take a host over to where it can be changed or excluded.
export function change(host, field = "host-name") {
  by("host-name").value = host;
  by("exclude-hosts").value = host;
  by(field).scrollIntoView({ block: "center" });
  by(field).focus();
}

async function show() {
  const asked = new URLSearchParams(location.hash.slice(1)).get("host");
  if (!asked) return;
  const place = by("host-answer"), { hostname: host, host: named } = placeOf(asked);
  by("host-shown").value = asked;
  by("host-shown").scrollIntoView({ block: "center" });
  try {
    if (!host) throw new Error("That is not the name of a host.");
    place.replaceChildren(make("p", { class: "small" }, "Searching…"));
    const [state, secure] = await Promise.all(["http", "https"].map((scheme) => stateOf(`${scheme}://${named}/`)));
    state.origin ??= secure.origin;
    const over = make("div");
    place.replaceChildren(...shown(host, state, over));
    const requested = await history(host, over);
    if (!requested && !state.queued && !state.requests && !state.closed && !state.origin && !recent.of(host).length) {
      const soFar = OVER.has(latest.state) ? "" : " so far";
      place.replaceChildren(make("p", { class: "verdict" }, `${harmless(host)} is not part of this crawl: no URL of it was queued or requested${soFar}.`));
    }
  } catch (error) {
    place.replaceChildren(make("p", { class: "said bad" }, harmless(error.message)));
  }
}

// The host as a crawl names it, in ASCII and small letters, of a name or an address.
function placeOf(text) {
  try {
    const url = new URL(text.includes("://") ? text : `http://${text}/`);
    return /[%\s]/.test(url.hostname) ? {} : url;
  } catch {
    return {};
  }
}

async function stateOf(url) {
  return (await ask(`api/why?${new URLSearchParams({ url })}`)).host_state ?? {};
}

function shown(host, state, over) {
  const hosts = latest.hosts ?? {};
  const one = [...(hosts.active ?? []), ...(hosts.failing ?? []), ...(hosts.slowest ?? [])].find((found) => found.host === host) ?? {};
  const failures = state.failures_in_a_row || state.origin?.failures;
  const rests = state.delay_until ? Date.parse(state.delay_until) / 1000 : 0;
  const facts = [
    ["limited by", state.closed ? `closed: ${state.closed}` : one.limit ? [limit(one.limit), until(one.delay_until ?? 0, now)].filter(Boolean).join(", ") : ""],
    ["queued", `${count(state.queued)} URLs`],
    ["requests", count(state.requests)],
    ["mean time", one.fetch_s === null || one.fetch_s === undefined ? "" : seconds(one.fetch_s)],
    ["next request", rests > now ? `not before ${clock(rests)}` : ""],
    ["Crawl-delay", state.crawl_delay_s ? `${state.crawl_delay_s} s` : "none in robots.txt"],
    ["failures", failures ? `${count(failures)} in a row` : "none"],
    ["reason", state.reason],
    ["origin", state.origin ? `${state.origin.origin}: ${state.origin.state}: ${state.origin.reason}` : ""],
    ["budget", state.budget ? withValues(state.budget) : ""],
  ].filter(([, value]) => value);
  return [
    make("dl", {}, ...facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, harmless(value))])),
    make("div", { class: "controls runs" },
      make("button", { type: "button", onclick: () => change(host) }, "Change settings…"),
      make("button", { type: "button", onclick: () => change(host, "exclude-hosts") }, "Exclude…")),
    over,
    ...attempts(recent.of(host)),
    make("p", { class: "small" }, ...prose(`\`gossamer robots DIR ${host}\` shows its robots.txt and what changed in it.`)),
  ];
}

// A value within a value is in brackets; an empty one is left out.
function withValues(values) {
  const shown = ([name, value]) => `${name.replaceAll("_", " ")} ${value instanceof Object ? `(${withValues(value)})` : value}`;
  return Object.entries(values).map(shown).filter((one) => !one.endsWith(" ()")).join(", ");
}

function attempts(found) {
  if (!found.length) return [make("p", { class: "small" }, "No recent requests.")];
  const table = make("table", { class: "hosts" });
  const rows = found.map((one) => make("tr", {}, make("th", { scope: "row" }, clock(one.at)), cell(link(one.url), "text"),
    cell([outcome(one.outcome), one.error].filter(Boolean).map(harmless).join(": "), "text"), cell(seconds(one.fetch_s))));
  fill(table, ["<at", "<page", "<outcome", "time"], rows, "");
  return [make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Recent requests of the host" }, table)];
}

// How requests ended over time, read from the tables: the last commits of a crawl that runs are not in it yet. Return
// whether there are any, or may be.
async function history(host, place) {
  const title = make("h3", {}, "Requests over time");
  place.replaceChildren(title, make("p", { class: "small" }, "Searching…"));
  try {
    const answer = await ask(`api/history?${new URLSearchParams({ host })}`);
    place.replaceChildren(title, ...past(answer));
    return answer.periods.length > 0;
  } catch (error) {
    place.replaceChildren(title, make("p", { class: "said bad" }, harmless(error.message)));
    return true;
  }
}

function past({ periods, step_s: step, outcomes }) {
  if (!periods.length) return [make("p", { class: "small" }, "No requests so far.")];
  const ended = Object.entries(outcomes).map(([name, n]) => `${outcome(name)} ${count(n)}`).join(", ");
  const rows = periods.map((one) => make("tr", {}, make("th", { scope: "row" }, when(one.at, step)), cell(count(one.answered)), cell(count(one.failed))));
  const heads = ["from", "answered", "failed"].map((name) => make("th", { scope: "col" }, name));
  return [
    make("p", { class: "small" }, make("span", { class: "key answered" }, "answered"), " ", make("span", { class: "key failed" }, "failed"), ` · in steps of ${duration(step)} · ${ended}`),
    columns(periods, step),
    make("details", {}, make("summary", {}, "The same as a table"),
      make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Requests over time" },
        make("table", { class: "list" }, make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...rows)))),
  ];
}

const when = (at, step) => new Date(1000 * at).toLocaleString("en-GB", step >= 86400
  ? { day: "numeric", month: "short", year: "numeric" }
  : { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", ...(step < 60 && { second: "2-digit" }) });

const WIDTH = 480, HEIGHT = 90;

function columns(periods, step) {
  const begin = periods[0].at, steps = Math.round((periods.at(-1).at - begin) / step) + 1;
  const most = Math.max(...periods.map((one) => one.answered + one.failed));
  const failed = periods.reduce((sum, one) => sum + one.failed, 0), all = periods.reduce((sum, one) => sum + one.answered, failed);
  const wide = WIDTH / Math.max(steps, 12), parts = [];
  for (const one of periods) {
    const x = Math.round((one.at - begin) / step) * wide + 0.5, width = Math.max(1, wide - 1), high = (n) => (HEIGHT * n) / most;
    const bar = (kind, n, y) => n && parts.push(draw("rect", { class: kind, x, y, width, height: Math.max(1, high(n)) }));
    bar("answered", one.answered, HEIGHT - high(one.answered));
    bar("failed", one.failed, HEIGHT - high(one.answered + one.failed));
  }
  const says = `${count(failed)} of ${count(all)} requests failed, from ${when(begin, step)} to ${when(periods.at(-1).at + step, step)}; at most ${count(most)} in one step`;
  return make("figure", {},
    draw("svg", { class: "columns", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": says }, ...parts),
    make("figcaption", { class: "ends" }, make("span", {}, when(begin, step)), make("span", {}, when(periods.at(-1).at + step, step))));
}
