// Compare: what differs between two crawls of the folder, by the last visit of each to a URL.

import { by, cell, fill, link, make, say, text } from "./dom.js";
import { brief, count, harmless, outcome } from "./words.js";
import { ask } from "./wire.js";

const ROWS = 20;
const CHANGES = ["new", "gone", "changed"];
let asked = null, named = "";

export function begin() {
  by("compare").addEventListener("submit", (event) => {
    event.preventDefault();
    const { earlier, later, change } = event.currentTarget.elements;
    show({ earlier: earlier.value, later: later.value, change: change.value, offset: 0 });
  });
  by("compare-before").addEventListener("click", () => show({ ...asked, offset: Math.max(0, asked.offset - ROWS) }));
  by("compare-after").addEventListener("click", () => show({ ...asked, offset: asked.offset + ROWS }));
}

// Take the names of the crawls; a choice that was made stays.
export function crawls(names) {
  by("compare-section").hidden = names.length < 2;
  // A crawl's page names itself as the later one.
  const later = new URLSearchParams(location.hash.slice(1)).get("compare");
  if (later !== null && names.includes(later)) {
    history.replaceState(null, "", location.pathname);
    named = later;
  }
  ["compare-earlier", "compare-later"].forEach((id, place) => {
    const select = by(id), known = [...select.options].map((option) => option.value);
    if (names.join("\n") === known.join("\n")) return;
    const chosen = names.includes(select.value) ? select.value : names[Math.min(place, names.length - 1)];
    select.replaceChildren(...names.map((name) => make("option", { value: name }, harmless(name))));
    select.value = chosen;
  });
  if (named && names.length > 1) {
    by("compare-later").value = named;
    by("compare-earlier").value = names.find((name) => name !== named);
    by("compare-section").scrollIntoView();
    named = "";
  }
}

async function show(wanted) {
  const place = by("compare-says"), button = by("compare").querySelector("button");
  if (wanted.earlier === wanted.later) {
    say(place, "Choose two different crawls.", "bad");
    return;
  }
  say(place, "Comparing…");
  button.disabled = true;
  try {
    const { earlier, change, offset } = wanted;
    const answer = await ask(`api/crawls/${encodeURIComponent(wanted.later)}/compare?${new URLSearchParams({ earlier, change, offset, n: ROWS })}`);
    asked = wanted;
    shown(answer);
    say(place, "");
  } catch (error) {
    say(place, harmless(error.message), "bad");
  }
  button.disabled = false;
}

function shown(answer) {
  by("compare-answer").hidden = false;
  const { counts } = answer;
  say(by("compare-counts"), `From ${harmless(answer.first)} to ${harmless(answer.second)}: ${CHANGES.map((name) => `${count(counts[name])} ${name}`).join(", ")}, ${count(counts.same)} the same.`);
  const rows = Object.entries(answer.outcomes).map(([name, [before, after]]) =>
    make("tr", {}, make("th", { scope: "row" }, outcome(name)), cell(count(before)), cell(count(after)), cell(difference(after - before))));
  fill(by("compare-outcomes"), ["<outcome", harmless(answer.first), harmless(answer.second), "difference"], rows, "Neither crawl has visited a page.");
  const pages = answer.pages.map((page) => make("tr", {},
    make("th", { scope: "row", class: "url" }, link(page.url),
      make("small", {}, make("br"), harmless(brief(page.title ?? "")), page.title ? " · " : "", make("a", { href: versions(answer.second, page.url) }, "versions"))),
    text(ended(page.before)), text([ended(page.after), page.status].filter(Boolean).join(", "))));
  fill(by("compare-pages"), ["<page", `<${harmless(answer.first)}`, `<${harmless(answer.second)}`], pages, `No ${answer.change} pages.`);
  const whole = counts[answer.change] ?? 0, end = answer.offset + answer.pages.length;
  say(by("compare-part"), answer.pages.length ? `${count(answer.offset + 1)} to ${count(end)} of ${count(whole)} ${answer.change} pages, by URL.` : "");
  by("compare-before").disabled = answer.offset === 0;
  by("compare-after").disabled = end >= whole;
}

// Where the later crawl shows a page.
const versions = (crawl, url) => `crawls/${encodeURIComponent(crawl)}/#url=${encodeURIComponent(url)}`;
const ended = (name) => (name ? outcome(name) : "not visited");
const difference = (value) => (value > 0 ? `+${count(value)}` : value < 0 ? `−${count(-value)}` : "0");
