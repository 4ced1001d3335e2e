// Items: what the crawl extracted, by kind, the newest first, a part at a time. The kind is in the address: #items=product

import { by, cell, fill, make, say, text } from "./dom.js";
import { about } from "./questions.js";
import { count, harmless, instant } from "./words.js";
import { ask, save } from "./wire.js";

const ROWS = 20;
let kind = "", offset = 0, total = 0;

export function begin() {
  by("items-show").addEventListener("submit", (event) => {
    event.preventDefault();
    go(by("items-kind").value);
  });
  by("items-kind").addEventListener("change", () => go(by("items-kind").value));
  by("items-newer").addEventListener("click", () => show(kind, Math.max(0, offset - ROWS)));
  by("items-older").addEventListener("click", () => show(kind, offset + ROWS));
  for (const format of ["csv", "jsonl"]) by(`items-${format}`).addEventListener("click", () => file(format));
  addEventListener("hashchange", named);
  named();
}

function go(name) {
  const hash = `#items=${encodeURIComponent(name)}`;
  if (location.hash === hash) show(name, 0);
  else location.hash = hash;
}

function named() {
  const asked = new URLSearchParams(location.hash.slice(1));
  if (!asked.has("items")) return;
  by("items").scrollIntoView({ block: "start" });
  show(asked.get("items"), 0);
}

async function show(name, from) {
  const place = by("items-says");
  say(place, "Searching…");
  try {
    const answer = await ask(`api/items?${new URLSearchParams({ kind: name, n: ROWS, offset: from })}`);
    ({ kind, offset, total } = answer);
    kinds(answer);
    table(answer);
    say(place, answer.kinds.length ? says(answer) : "This crawl has no items: its configuration has no section [extract.NAME].");
  } catch (error) {
    say(place, harmless(error.message), "bad");
  }
}

const says = (answer) => (answer.items.length
  ? `${count(answer.offset + 1)} to ${count(answer.offset + answer.items.length)} of ${count(answer.total)}, newest first.`
  : "No items so far.");

function kinds(answer) {
  by("items-kind").replaceChildren(...answer.kinds.map((one) => {
    const option = make("option", { value: one.name }, `${harmless(one.name)} (${count(one.items)})`);
    option.selected = one.name === answer.kind;
    return option;
  }));
  by("items-fields").hidden = !answer.kinds.length;
  by("items-newer").disabled = offset === 0;
  by("items-older").disabled = offset + ROWS >= total;
}

function table(answer) {
  by("items-list").parentElement.hidden = !answer.items.length;
  const rows = answer.items.map((item) => make("tr", {},
    make("th", { scope: "row", class: "tight" }, instant(item.at)),
    text(make("a", { class: "one-line url", href: about(item.url), title: harmless(item.url) }, harmless(item.url))),
    ...item.values.map((value) => cell(harmless(value ?? "–"), "text value"))));
  fill(by("items-list"), ["<time, UTC", "<page", ...answer.columns.map((name) => `<${harmless(name)}`)], rows, "");
}

async function file(format) {
  const place = by("items-file");
  say(place, "Exporting…");
  try {
    await save(`api/items/export?${new URLSearchParams({ kind, format })}`, `${kind}.${format}`);
    say(place, `${harmless(kind)}.${format} is saved.`, "good");
  } catch (error) {
    say(place, harmless(error.message), "bad");
  }
}
