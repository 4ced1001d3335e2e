// Dom: elements made of plain values. Text is always text: nothing here, or anywhere in this page, parses markup.

import { harmless, share, target } from "./words.js";

export const by = (id) => document.getElementById(id);

export function make(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key === "class") element.className = value;
    else if (key === "width") element.style.width = value;
    else if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

// A part of a picture: its attributes are numbers and names of classes.
export function draw(name, properties, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(properties)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

export function say(element, text, kind = "") {
  if (element.textContent !== text) element.textContent = text;
  element.classList.toggle("good", kind === "good");
  element.classList.toggle("bad", kind === "bad");
}

// Fill a select with keys, by their sections.
export function choices(select, keys) {
  const groups = new Map();
  for (const key of keys) {
    const section = key.split(".")[0];
    if (!groups.has(section)) groups.set(section, []);
    groups.get(section).push(make("option", { value: key }, key));
  }
  select.replaceChildren(...[...groups].map(([section, options]) => make("optgroup", { label: section }, ...options)));
}

// A link for what a page may link to; else the text alone.
export function link(address, text = address) {
  const href = target(address);
  if (href === null) return document.createTextNode(harmless(text));
  return make("a", { href, rel: "noopener noreferrer", target: "_blank" }, harmless(text));
}

// What the program says: parts between backticks are commands or keys.
export function prose(says) {
  return String(says).split("`").map((part, index) => (index % 2 ? make("code", {}, harmless(part)) : document.createTextNode(harmless(part))));
}

export const cell = (content, kind = "") => make("td", kind ? { class: kind } : {}, content);
export const text = (content) => cell(content, "text");

// Heads: "<" aligns left, "!" is for screen readers alone.
// Fill a table anew, unless somebody is at work in it: what has the focus must not go away under the fingers.
export function fill(table, heads, rows, empty) {
  if (table.contains(document.activeElement)) return;
  const shown = rows.length ? rows : [make("tr", {}, make("td", { class: "empty", colspan: heads.length || 4 }, empty))];
  const parts = [make("tbody", {}, ...shown)];
  if (rows.length && heads.length) {
    const cells = heads.map((name) => {
      if (name.startsWith("!")) return make("th", { scope: "col" }, make("span", { class: "unseen" }, name.slice(1)));
      const [title, kind] = name.startsWith("<") ? [name.slice(1), "text"] : [name, ""];
      return make("th", { scope: "col", ...(kind && { class: kind }) }, title);
    });
    // On a narrow screen each row is a block, and its cells name themselves.
    for (const row of rows) heads.forEach((name, index) => /^[!<]?$|^!/.test(name) || row.cells[index]?.setAttribute("data-head", name.replace("<", "")));
    parts.unshift(make("thead", {}, make("tr", {}, ...cells)));
  }
  table.replaceChildren(...parts);
}

// A table of names with counts, shares and bars. Rows are kept, so that bars move.
export function bars(table, entries, empty) {
  if (!entries.length) {
    fill(table, [], [], empty);
    return;
  }
  if (!table.tBodies.length || table.querySelector(".empty")) table.replaceChildren(make("tbody"));
  const body = table.tBodies[0];
  const whole = entries.reduce((sum, entry) => sum + entry[1], 0) || 1;
  const most = Math.max(...entries.map((entry) => entry[1])) || 1;
  while (body.rows.length > entries.length) body.deleteRow(-1);
  entries.forEach(([name, value, shown], index) => {
    const row = body.rows[index] ?? body.appendChild(
      make("tr", {}, make("th", { scope: "row" }), make("td"), make("td"), make("td", { class: "meter" }, make("i"))),
    );
    const [title, number, part, meter] = row.cells;
    say(title, harmless(name));
    say(number, shown);
    say(part, share(value / whole));
    meter.firstChild.style.width = `${(100 * value) / most}%`;
  });
}
