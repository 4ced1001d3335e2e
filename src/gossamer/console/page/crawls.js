// Crawls: the list of a server of many crawls, and their controls.

import * as compare from "./compare.js";
import { by, cell, fill, make, prose, say, text } from "./dom.js";
import { count, decimal, harmless } from "./words.js";
import { ask, hasToken, whenTokenComes } from "./wire.js";

const LOOK_MS = 2_000;
const WITHOUT_REASON = { created: "not started yet", stopped: "ended unexpectedly; everything up to its last commit is saved" };
// The actions in each state, with the text of the button.
const VERBS = {
  created: [["start", "Start"]], running: [["pause", "Pause"], ["stop", "Stop"]], paused: [["unpause", "Resume"], ["stop", "Stop"]],
  stopped: [["resume", "Start again"]], finished: [["resume", "Start again"]], failed: [["resume", "Start again"]],
};

async function look() {
  try {
    if (!document.hidden) show(await ask("api/crawls"));
    stand("live", "live");
  } catch (error) {
    stand("lost", `${harmless(error.message)} Trying again.`);
  }
  setTimeout(look, LOOK_MS);
}

function stand(state, says) {
  by("link").className = `link ${state}`;
  say(by("link"), says);
}

function show(answer) {
  say(by("counts"), `${count(answer.crawls.length)} crawls, ${count(answer.running)} running. At most ${count(answer.crawls_max)} run at once.`);
  const rows = answer.crawls.map((crawl) => {
    const isOver = crawl.state === "finished" || crawl.state === "stopped";
    const says = crawl.problem || (isOver ? crawl.ended : !(crawl.pages_s > 0) && crawl.waiting_for && `waiting for ${crawl.waiting_for}`) || WITHOUT_REASON[crawl.state] || "";
    return make("tr", {},
      make("th", { scope: "row" }, make("a", { href: `crawls/${encodeURIComponent(crawl.name)}/` }, harmless(crawl.name))),
      text(make("span", { class: `badge ${/^[a-z]+$/.test(crawl.state) ? crawl.state : ""}` }, harmless(crawl.state))),
      cell(count(crawl.pages)), cell(decimal(crawl.pages_s)), cell(count(crawl.queued)),
      cell(make("span", {}, ...prose(says)), crawl.problem ? "text bad-text" : "text"), cell(buttons(crawl)));
  });
  fill(by("crawls"), ["<crawl", "<state", "pages", "pages/s", "queued", "<details", "!actions"], rows, "None so far.");
  compare.crawls(answer.crawls.filter((crawl) => crawl.state !== "created").map((crawl) => crawl.name));
}

function buttons(crawl) {
  const made = (VERBS[crawl.state] ?? []).map(([verb, title]) =>
    make("button", { type: "button", class: "plain", "aria-label": `${title} ${harmless(crawl.name)}`, ...(hasToken() ? {} : { disabled: "" }),
      onclick: (event) => {
        event.currentTarget.blur();
        tell(by("said"), `api/crawls/${encodeURIComponent(crawl.name)}/${verb}`, {}, () => `${crawl.name}: ${title.toLowerCase()}.`);
      } }, title));
  return make("span", {}, ...made);
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
  const { seeds, contact, pages, more } = form.elements;
  const config = more.value.trim() ? JSON.parse(more.value) : {};
  config.seeds = { ...config.seeds, urls: seeds.value.split(/\s+/).filter(Boolean) };
  if (contact.value.trim()) config.operator = { ...config.operator, contact: contact.value.trim() };
  if (pages.value.trim()) config.limits = { ...config.limits, max_pages: Number(pages.value) };
  return config;
}

by("new").addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.currentTarget, place = form.parentElement.querySelector(".said");
  let config;
  try {
    config = configuration(form);
  } catch (error) {
    say(place, `Further keys: not JSON: ${harmless(error.message)}`, "bad");
    return;
  }
  if (await tell(place, "api/crawls", { name: form.elements.name.value, config, start: true }, (answer) => `${answer.name} starts.`)) form.reset();
});

function allow() {
  by("hint").hidden = hasToken();
  by("new").querySelector("button").disabled = !hasToken();
}

whenTokenComes(allow);
compare.begin();
allow();
look();
