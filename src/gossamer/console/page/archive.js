// Archive: what a crawl has of a page, version by version, and such a version as a browser shows it, apart from this page.

import { by, cell, fill, make, prose } from "./dom.js";
import { count, harmless, instant, outcome, size } from "./words.js";
import { ask } from "./wire.js";

const CONTENT = { first: "first version", same: "same as before", changed: "changed" };

export function begin() {
  const dialog = by("replay");
  by("replay-close").addEventListener("click", () => dialog.close());
  // The page that was shown goes away with its frame.
  dialog.addEventListener("close", () => by("replay-frame").replaceChildren());
}

// Fill a place with the versions of a page.
export async function versions(url, place) {
  const title = make("h3", {}, "Archived versions");
  place.replaceChildren(title, make("p", { class: "small" }, "Searching…"));
  try {
    place.replaceChildren(title, ...listed(await ask(`api/versions?${new URLSearchParams({ url })}`)));
  } catch (error) {
    place.replaceChildren(title, make("p", { class: "said bad" }, harmless(error.message)));
  }
}

function listed(answer) {
  if (!answer.versions.length) return [make("p", { class: "small" }, "None: this page has not been fetched.")];
  const rows = answer.versions.map((one) => make("tr", {},
    make("th", { scope: "row", class: "tight" }, instant(one.at)),
    cell(harmless([outcome(one.outcome), one.status].filter(Boolean).join(", ")), "text"),
    cell(make("span", { title: harmless(one.digest) }, CONTENT[one.content] ?? "–"), "text"),
    cell(one.content ? size(one.body_bytes) : "–"),
    cell(one.replay && base(answer) ? shows(answer, one) : "–", "text")));
  const more = answer.total > answer.versions.length ? [make("p", { class: "small" }, `The newest ${count(answer.versions.length)} of ${count(answer.total)}.`)] : [];
  const table = make("table", { class: "hosts" });
  fill(table, ["<time, UTC", "<outcome", "<content", "size", "<copy"], rows, "");
  if (isPublic(answer) && !answer.replay_url && answer.versions.some((one) => one.replay)) {
    more.push(make("p", { class: "small" }, ...prose("Archived pages need a name of their own here: lead one to the port after this server’s, and set `console.replay_url` to its address. `gossamer export DIR --to wacz -o crawl.wacz` makes a file for ReplayWeb.page.")));
  }
  return [...more, make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Archived versions" }, table)];
}

const shows = (answer, one) => make("button", { type: "button", class: "plain", "aria-label": `show the version of ${instant(one.at)}`, onclick: () => show(answer, one) }, "show");

// Through a proxy this page has the host of `console.public_url`, and archived pages that of `console.replay_url`.
const isPublic = (answer) => location.host === answer.public_host;
const base = (answer) => (isPublic(answer) ? answer.replay_url : answer.replay_port && `http://${location.hostname}:${Number(answer.replay_port)}`);

// The frame has another origin, runs no script, and may show nothing but what its port has.
function show(answer, one) {
  by("replay-says").textContent = `${harmless(answer.url)}, fetched ${instant(one.at)} UTC`;
  const address = `${base(answer)}/${encodeURIComponent(one.replay)}`;
  by("replay-frame").replaceChildren(make("iframe", { sandbox: "", src: address, referrerpolicy: "no-referrer", title: "Archived page" }));
  by("replay").showModal();
}
