// Wire: how the page speaks with its server. All addresses are relative: the page may lie below any prefix.

import { harmless } from "./words.js";

const KEY = "gossamer-token";
export const SILENCE_MS = 12_000;
const RETRY_MS = [500, 1_000, 2_000, 4_000];
const ANSWER_MS = 60_000;

// The token comes in the fragment, which no server sees; it does not stay in the address bar, or in the history.
function found() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem(KEY, given);
    history.replaceState(null, "", location.pathname + location.search);
  }
  return sessionStorage.getItem(KEY) ?? "";
}

let token = found();
export const hasToken = () => token !== "";
export function whenTokenComes(call) {
  addEventListener("hashchange", () => {
    token = found();
    call();
  });
}

const headers = (more = {}) => (token ? { Authorization: `Bearer ${token}`, ...more } : more);

// Return what is answered; throw an Error whose message is for people.
export async function ask(path, body, wait = ANSWER_MS) {
  const request = { headers: headers(), cache: "no-store", signal: AbortSignal.timeout(wait) };
  if (body !== undefined) {
    request.method = "POST";
    request.headers = headers({ "Content-Type": "application/json" });
    request.body = JSON.stringify(body);
  }
  let answer;
  try {
    answer = await fetch(path, request);
  } catch (error) {
    throw new Error(error.name === "TimeoutError" ? `No answer within ${wait / 1000} s.` : "The server does not answer.");
  }
  const text = await answer.text();
  let value = null;
  try {
    value = JSON.parse(text);
  } catch {
    // An error may be plain text.
  }
  if (!answer.ok) throw new Error(value?.error ?? (text.trim() || `HTTP ${answer.status}`));
  return value;
}

// Save what is answered as a file. What cannot be had is an Error whose message is for people.
export async function save(path, name) {
  const answer = await fetch(path, { headers: headers(), cache: "no-store" }).catch(() => null);
  if (!answer) throw new Error("The server does not answer.");
  if (!answer.ok) throw new Error((await answer.json().catch(() => null))?.error ?? `HTTP ${answer.status}`);
  const content = await answer.blob().catch(() => null);
  if (!content) throw new Error("The file broke off; gossamer export writes it without a browser.");
  const address = URL.createObjectURL(content), anchor = document.createElement("a");
  anchor.href = address;
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

// Listen until the page goes away. `hear(name, value)` gets events, `stand(state, why)` how the connection is.
export async function listen(hear, stand) {
  for (let failures = 0; ; ) {
    await shown();
    const control = new AbortController();
    const hidden = () => document.hidden && control.abort();
    document.addEventListener("visibilitychange", hidden);
    let why = "the connection ended";
    try {
      const answer = await fetch("api/events", { headers: headers(), cache: "no-store", signal: control.signal });
      if (answer.ok) {
        stand("live");
        await read(answer.body, (name, value) => {
          failures = 0;
          hear(name, value);
        }, control);
      } else {
        why = (await answer.json().catch(() => null))?.error ?? `HTTP ${answer.status}`;
      }
    } catch {
      why = "no answer";
    }
    document.removeEventListener("visibilitychange", hidden);
    if (document.hidden) continue;
    stand("lost", why, failures);
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS[Math.min(failures, RETRY_MS.length - 1)]));
    failures += 1;
  }
}

// What the page says while nothing answers: soon also what to do.
export function lost(why, failures) {
  const moved = failures >= RETRY_MS.length ? "; if the server was started again, open the address that it printed" : "";
  return `${harmless(why).replace(/\.$/, "")}; trying again${moved}`;
}

// Nobody is sent what nobody sees.
function shown() {
  if (!document.hidden) return Promise.resolve();
  return new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
}

async function read(stream, hear, control) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const silence = setTimeout(() => control.abort(), SILENCE_MS);
    const { value, done } = await reader.read().finally(() => clearTimeout(silence));
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const lines = Object.fromEntries(part.split("\n").map((line) => line.split(/: (.*)/s)));
      if (lines.data !== undefined) hear(lines.event, JSON.parse(lines.data));
    }
  }
}
