// Picture: a status, shown.

import { address, change } from "./host.js";
import { bars, by, cell, fill, make, prose, say, text } from "./dom.js";
import { figures } from "./over.js";
import { bits, brief, clock, count, counted, decimal, duration, harmless, limit, outcome, OVER, seconds, share, size, until } from "./words.js";

const BARS_MAX = 7;
const SHARDS_MAX = 64;
const QUIET_S = 5;
// Waits that are part of any crawl: they are worth a notice when nothing has been fetched for a while.
const USUAL = new Set(["host", "answer", "lookup", "blocked"]);
let attempts = -1, fetchedAt = 0, shown = null;

export function show(status, at, own) {
  state(status);
  notices(status, at, own);
  by("cards").hidden = status.pages === undefined;  // Of a crawl whose state is damaged nothing is known.
  cards(OVER.has(status.state) ? totals(status) : now(status));
  const levels = Object.entries(status.levels ?? {}).map(([level, urls]) => [`level ${level}`, urls, count(urls)]);
  bars(by("levels"), levels, "The queues are empty.");
  ranking("limits", status.hosts?.limits, limit, "No host has work in memory.");
  ranking("outcomes", status.outcomes, outcome, "No fetches so far.");
  ranking("media", status.media_types, (name) => harmless(name || "(none given)"), "No pages so far.");
  hosts(status, at);
  shards(status);
  machines((status.machines ?? []).slice(0, SHARDS_MAX));
  proxies(status, at);
  caches(status.counters ?? {});
  changes(status.changes ?? []);
}

// Say whether the crawl is well.
export function judge(health, status) {
  const place = by("health");
  place.hidden = !health;
  if (!health) return;
  place.className = `wide health ${/^[a-z]+$/.test(health.level) ? health.level : ""}`;
  const sentence = harmless(health.says), ended = `${status.ended_says}; `;
  const next = String(status.waiting_for ?? "").replace(/^nothing runs; /, "");
  const facts = [["rate", health.trend], ["limited by", health.limited_by], ["remaining", health.remaining],
    ["why", OVER.has(status.state) && status.seeds && !status.seeds.any_fetched ? (status.seeds.not_fetched ?? []).slice(0, 3).map((seed) => `${seed.url}: ${seed.reason || outcome(seed.state)}`).join("; ") : ""],
    ["next", OVER.has(status.state) && !status.waiting ? next.slice(sentence.includes(status.ended_says) && next.startsWith(ended) ? ended.length : 0) : ""]].filter(([, value]) => value);
  const parts = prose(sentence.charAt(0).toUpperCase() + sentence.slice(1));
  // Only what changes is read aloud.
  if (by("verdict").textContent !== parts.map((part) => part.textContent).join("")) by("verdict").replaceChildren(...parts);
  by("limits-now").replaceChildren(...facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, ...prose(value)))));
}

// Say whether the crawl answers: the state of one that does not, and had not ended, is not known.
export function answers(isLive) {
  if (!shown || OVER.has(shown.state)) return;
  if (isLive) return state(shown);
  say(by("state"), "no answer");
  by("state").className = "badge";
  judge({ says: "no answer: the figures are the last that were received" }, {});
}

function state(status) {
  shown = status;
  const name = String(status.state ?? "");
  const badge = by("state");
  say(badge, harmless(name));
  badge.className = `badge ${/^[a-z]+$/.test(name) ? name : ""}`;
}

function notices(status, at, own) {
  const notices = (status.alarms ?? []).map((alarm) => ["bad", "Alarm", alarm.says ?? alarm.name]);
  const waiting = status.waiting, quiet = isQuiet(status, at);
  if (own?.search_failures) {
    notices.push(["", "Search", `The search process failed ${count(own.search_failures)}× (last: ${own.search_last_failure}); each failure ended one query`]);
  }
  if (waiting?.kind === "operator") notices.push(["", "Paused", "`gossamer unpause` or the button above resumes the crawl"]);
  else if (status.waiting_for && (waiting || !OVER.has(status.state)) && (quiet || !USUAL.has(waiting?.kind))) {
    const more = waiting?.until ? ` (until ${clock(waiting.until)}${waiting.until > at ? "" : ", now"})` : "";
    notices.push(["", "Waiting for", `${status.waiting_for}${more}`]);
  }
  for (const module of Object.values(status.modules ?? {})) if (module.says) notices.push(["bad", OVER.has(status.state) ? "Failed" : "Failing", module.says]);
  for (const warning of status.warnings ?? []) notices.push(["", "Warning", warning]);
  for (const left of status.awaited ?? []) notices.push(["over", "Not waited for", `${left.host}: ${count(left.queued)} URLs: ${left.reason}`]);
  for (const closing of (status.closings ?? []).slice(-3)) notices.push(["", "Closed", `${closing.host}: ${closing.reason}`]);
  const lines = notices.map(([kind, title, says]) => make("p", { class: `notice ${kind}` }, make("b", {}, title), ...prose(says)));
  const place = by("notices");
  if (place.textContent !== lines.map((line) => line.textContent).join("")) place.replaceChildren(...lines);
}

function isQuiet(status, at) {
  if (status.attempts !== attempts) {
    fetchedAt = attempts < 0 && !(status.pages_s > 0) ? 0 : at;
    attempts = status.attempts;
  }
  return at - fetchedAt >= QUIET_S;
}

function now(status) {
  const limits = [
    status.max_pages ? `of ${count(status.max_pages)}` : "",
    status.eta_s !== null && status.eta_s !== undefined ? `${duration(status.eta_s)} left` : "",
  ].filter(Boolean).join(", ");
  return [
    ["pages", "pages fetched", count(status.pages), limits || `${count(status.attempts)} attempts`],
    ["rate", "pages a second", decimal(status.pages_s), `${count(status.in_flight)} in flight, ${count(status.concurrency)} at most`],
    ["bits", "received", bits(8 * (status.bytes_s ?? 0)), `${size(status.wire_bytes)} in all`],
    ["queued", "URLs queued", count(status.queued), `${count(status.discovered)} found`],
    ["hosts", "hosts with work", count(status.hosts_left), `${count(status.hosts_active)} active, ${count(status.hosts_known)} known`],
    ["elapsed", "crawling time", duration(status.elapsed_s), `commit ${count(status.epoch)}, run ${count(status.runs)}`],
  ];
}

// Totals and means of a crawl that does not run.
function totals(status) {
  const report = figures(), lasted_s = report?.crawling_s || report?.duration_s || status.elapsed_s || Infinity;
  const ended = Object.entries(status.terminal_outcomes ?? {}), tried = ended.reduce((sum, [, n]) => sum + n, 0);
  const failed = ended.reduce((sum, [name, n]) => (/^(fetched|not_modified|redirected)$/.test(name) ? sum : sum + n), 0);
  const [begun, over] = report?.begun_at ? [instant(report.begun_at), instant(report.ended_at)] : [];
  const times = !begun ? `run ${count(status.runs)}` : begun === over ? begun : `${begun} to ${over}`;
  return [
    ["pages", "pages fetched", count(status.pages), counted(status.attempts ?? 0, "attempt")],
    ["rate", "pages a second", decimal(status.pages / lasted_s || 0), "on average"],
    ["bits", "received", size(status.wire_bytes), `${bits(8 * status.wire_bytes / lasted_s || 0)} on average`],
    ["failed", "URLs failed or refused", count(failed), tried ? `${share(failed / tried)} of ${count(tried)} tried` : "none tried"],
    ["queued", "URLs left", count(status.queued), `${count(status.discovered)} found, on ${counted(status.hosts_known ?? 0, "host")}`],
    ["elapsed", "crawling time", duration(status.elapsed_s), times],
  ];
}

const instant = (at) => new Date(1000 * at).toLocaleString("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });

function cards(facts) {
  const place = by("cards"), keys = facts.map(([key]) => key).join(" ");
  if (place.dataset.keys !== keys) {
    place.dataset.keys = keys;
    place.replaceChildren(...facts.map(([key, name]) =>
      make("div", { class: "card", id: `card-${key}` }, make("b"), make("span", {}, name), make("small"))));
  }
  facts.forEach(([, , value, more], index) => {
    const [number, , small] = place.children[index].children;
    say(number, value);
    say(small, more);
  });
}

function ranking(id, counts, named, empty) {
  const found = Object.entries(counts ?? {}).filter(([, n]) => n > 0).sort((a, b) => b[1] - a[1]);
  const shown = found.slice(0, BARS_MAX).map(([name, n]) => [named(name), n, count(n)]);
  const rest = found.slice(BARS_MAX).reduce((sum, [, n]) => sum + n, 0);
  if (rest) shown.push([found.length === BARS_MAX + 1 ? "1 other" : `${found.length - BARS_MAX} others`, rest, count(rest)]);
  bars(by(id), shown, empty);
}

function hosts(status, at) {
  const hosts = status.hosts ?? {};
  const mean = (host) => (host.fetch_s === null || host.fetch_s === undefined ? "–" : seconds(host.fetch_s));
  const number = (value) => (value === null || value === undefined ? "–" : count(value));
  fill(by("active"), ["<host", "<limited by", "queued", "requests", "mean time", "!change"], (hosts.active ?? []).map((host) =>
    make("tr", {}, name(host), limited(host, at), cell(number(host.queued)), cell(number(host.requests)), cell(mean(host)), act(host))),
  "No host has work in memory.");
  const lasting = status.lasting ?? [];
  by("outlasting").hidden = !lasting.length;
  fill(by("lasting"), ["<host", "<time", "!change"], lasting.map((host) =>
    make("tr", {}, name(host), cell(make("span", {}, ...prose(host.says)), "text reason"), act(host))), "");
  fill(by("slowest"), ["<host", "mean time", "requests", "!change"], (hosts.slowest ?? []).map((host) =>
    make("tr", {}, name(host), cell(mean(host)), cell(number(host.requests)), act(host))), "No host has answered so far.");
  const failures = (host) => (host.sleeps ? `${count(host.failures)}, paused ${count(host.sleeps)}×` : number(host.failures));
  const failing = [...(hosts.failing ?? [])];
  for (const closing of status.closings ?? []) {
    if (!failing.some((host) => host.host === closing.host)) failing.push({ host: closing.host, limit: "closed", failures: null, reason: closing.reason });
  }
  fill(by("failing"), ["<host", "failures", "<reason", "!change"], failing.slice(0, 10).map((host) =>
    make("tr", {}, name(host), cell(failures(host)),
      cell(make("span", {}, ...why(host, at)), "text reason bad-text"), act(host))), "No host is failing as a whole.");
  fill(by("failed-hosts"), ["<host", "failures", "<reason"], failing.slice(0, 10).map((host) =>
    make("tr", {}, name(host), cell(failures(host)), cell(make("span", {}, ...why(host, at)), "text bad-text"))), "None.");
}

// Why a host fails: of its origins (scheme, host, port) where those are known, which repeat the reason.
function why(host, at) {
  const found = host.origins ?? [];
  if (!found.length) return [[host.limit === "closed" ? "closed" : "", harmless(host.reason)].filter(Boolean).join(": ")];
  return found.map((origin) => {
    const again = origin.next_at > at ? `, next request in ${duration(Math.ceil(origin.next_at - at))}` : "";
    const state = `${origin.state === "closed" ? "given up" : "waiting"}${again}, ${count(origin.queued)} URLs queued`;
    return make("span", { class: "origin" }, harmless(`${origin.origin}: ${state}: ${origin.reason}`));
  });
}

function limited(host, at) {
  const doing = [limit(host.limit ?? ""), until(host.delay_until ?? 0, at)].filter(Boolean).join(", ");
  return cell(make("span", {}, doing, ...(host.reason ? [make("br"), make("small", {}, harmless(host.reason))] : [])), "text reason");
}

const name = (host) => make("th", { scope: "row" }, make("a", { href: address(host.host) }, harmless(host.host)));

const act = (host) => cell(make("button", { type: "button", class: "plain", "aria-label": `change ${harmless(host.host)}`, onclick: () => change(host.host) }, "change"));

function shards(status) {
  const watch = status.watch ?? {};
  const machine = [
    watch.memory_budget_bytes ? `${size(watch.memory_bytes)} of ${size(watch.memory_budget_bytes)} memory` : "",
    watch.open_files_max ? `${count(watch.open_files)} of ${count(watch.open_files_max)} open files` : "",
    ...(watch.disks ?? []).map((disk) => `${size(disk.free_bytes)} free on ${harmless(disk.path)}`),
  ].filter(Boolean);
  say(by("machine"), machine.join(" · ") || "State of each shard.");
  const shards = (status.shards ?? []).slice(0, SHARDS_MAX);
  const places = Object.fromEntries((status.machines ?? []).map((one) => [one.machine, one.address]));
  const has = (key) => shards.some((shard) => shard[key] !== undefined);
  const columns = [
    ["shard", "<shard", (s) => make("th", { scope: "row" }, count(s.shard))],
    ["state", "<state", (s) => s.failure ? cell(`failing: ${harmless(s.failure)}`, "text bad-text") : text(s.idle ? `${harmless(s.state)}, idle (no URLs)` : harmless(s.state))],
    ["pages", "pages", (s) => cell(count(s.pages))],
    ["pages_s", "pages/s", (s) => cell(decimal(s.pages_s))],
    ["queued", "queued", (s) => cell(count(s.queued))],
    ["in_flight", "in flight", (s) => cell(count(s.in_flight))],
    ["epoch", "commit", (s) => cell(count(s.epoch))],
    ["commit_s", "duration", (s) => cell(seconds(s.commit_s ?? 0))],
    ["loop_lag_s", "loop lag", (s) => cell(seconds(s.loop_lag_s ?? 0))],
    ["memory_bytes", "memory", (s) => cell(size(s.memory_bytes))],
    ["open_files", "open files", (s) => cell(count(s.open_files))],
    ["deaths", "deaths", (s) => cell(count(s.deaths))],
    ["node", "<machine", (s) => text(harmless(places[s.node] || s.node))],
    ["commit_stage", "<stage", (s) => text(harmless(s.commit_stage || "–"))],
    ["alarms", "<alarms", (s) => cell(harmless((s.alarms ?? []).join(", ") || "none"), (s.alarms ?? []).length ? "text bad-text" : "text")],
  ].filter(([key]) => has(key));
  fill(by("shards"), columns.map(([, title]) => title), shards.map((shard) => make("tr", {}, ...columns.map(([, , made]) => made(shard)))), "The crawl is not running.");
}

function machines(found) {
  by("machines").parentElement.hidden = found.length < 2;
  const columns = ["<machine", "<shards", "pages/s", "memory", "free disk", "silent for"];
  fill(by("machines"), columns, found.map((one) => make("tr", {},
    make("th", { scope: "row" }, harmless(one.address || one.machine)),
    text(one.shards.join(", ") || "none"),
    cell(decimal(one.pages_s)),
    cell(size(one.memory_bytes)),
    cell(one.disk_free_bytes === null ? "–" : size(one.disk_free_bytes)),
    cell(one.heard_s ? seconds(one.heard_s) : "–", one.heard_s ? "bad-text" : ""),
  )), "");
}

// How each proxy of a pool works; several shards may leave out the same one.
function proxies(status, at) {
  const rows = Object.entries(status.proxy_answers ?? {});
  by("proxies-section").hidden = !rows.length;
  fill(by("proxies"), ["<proxy", "<label", "answered", "failed", "<state"], rows.map(([proxy, answered]) => {
    const [label, place] = [proxy.slice(0, proxy.lastIndexOf(" ")), proxy.slice(proxy.lastIndexOf(" ") + 1)];
    const out = (status.proxies_failing ?? []).filter((one) => one.proxy === proxy).at(-1);
    const says = out ? `left out since ${clock(out.since)}, ${until(out.until, at) || "tried again now"}: ${out.reason}` : OVER.has(status.state) ? "" : answered ? "in use" : "not used yet";
    return make("tr", {}, make("th", { scope: "row" }, harmless(place)), text(harmless(label)), cell(count(answered)),
      cell(count(status.proxy_failures?.[proxy] ?? 0)), cell(harmless(says), out ? "text reason bad-text" : "text reason"));
  }), "");
}

function caches(counted) {
  const lookups = counted.dns_lookups ?? 0, spent = (counted.dns_s ?? 0) + (counted.requests_s ?? 0);
  const part = spent ? ` · ${share(counted.dns_s / spent)} of the time of lookups and requests` : "";
  say(by("dns"), lookups ? `${count(lookups)} DNS lookups, ${count(counted.dns_failures)} failed, ${seconds(counted.dns_s / lookups)} each${part}` : "No DNS lookups in this process.");
  const asked = (counted.admitted_hits ?? 0) + (counted.urls_hits ?? 0) + (counted.urls_misses ?? 0), onDisk = counted.urls_on_disk ?? 0;
  const found = [
    ["DNS answers", counted.dns_hits, counted.dns_misses],
    ["robots.txt rules", counted.robots_hits, counted.robots_misses],
    ["host records", counted.records_hits, counted.records_misses],
    ["recently admitted links", counted.admitted_hits, (counted.urls_hits ?? 0) + (counted.urls_misses ?? 0)],
    ["popular URLs", counted.urls_hits, counted.urls_misses],
    ["seen URLs (misses reach the disk)", asked - onDisk, onDisk],
  ].filter(([, hits, misses]) => hits || misses);
  const rows = found.map(([name, hits, misses]) => make("tr", {}, make("th", { scope: "row" }, name), cell(count(hits)), cell(count(misses)), cell(share(hits / (hits + misses)))));
  fill(by("caches"), ["<cache", "hits", "misses", "found in memory"], rows, "Nothing was looked up in this process.");
}

function changes(found) {
  const rows = found.slice(-5).reverse().map((one) =>
    make("tr", {}, make("th", { scope: "row" }, harmless(one.key)), text(`${brief(harmless(one.before || "none"))} → ${brief(harmless(one.after || "none"))}`), cell(clock(one.at))));
  by("changes").hidden = !rows.length;
  fill(by("changes"), ["<changed", "<from and to", "at"], rows, "");
}
