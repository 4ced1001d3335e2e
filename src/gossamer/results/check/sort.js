"use strict";
// A cell that begins with one of these would be a formula of a spreadsheet.
const plain = (text) => (/^[=+\-@\t\r]/.test(text) ? `'${text}` : text);
const quoted = (text) => `"${plain(text.trim()).replaceAll('"', '""')}"`;
const texts = (cell) => {
  const items = [...cell.querySelectorAll("li")].map((item) => item.textContent);
  return items.length ? items.join("\n") : cell.textContent;
};
for (const table of document.querySelectorAll("table[data-sort]")) {
  const heads = [...table.tHead.rows[0].cells];
  const names = heads.map((head) => head.textContent);
  const save = document.createElement("button");
  save.type = "button";
  save.className = "save";
  save.textContent = "Save as CSV";
  save.addEventListener("click", () => {
    const rows = [...table.tBodies[0].rows].map((row) => [...row.cells].map(texts));
    const lines = [names, ...rows].map((row) => row.map(quoted).join(","));
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([`\ufeff${lines.join("\r\n")}\r\n`], { type: "text/csv" }));
    link.download = `${table.closest("section").id}.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  });
  table.closest("section").querySelector("h2").after(save);
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const value = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
      const order = new Intl.Collator(undefined, { numeric: true }).compare;
      const rows = [...table.tBodies[0].rows].sort((one, other) => order(value(one), value(other)));
      table.tBodies[0].append(...(down ? rows.reverse() : rows));
    });
  });
}
