"use strict";
for (const table of document.querySelectorAll("table[data-sort]")) {
  const heads = [...table.tHead.rows[0].cells];
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
