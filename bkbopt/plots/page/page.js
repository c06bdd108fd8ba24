"use strict";
// Sorts, searches and pages through tables. Without it they are whole, in the order in which they were written.
for (const table of document.querySelectorAll("table.sortable")) {
  const SHOWN = 100;
  const body = table.tBodies[0];
  const all = Array.from(body.rows, (row) => ({ row, cells: Array.from(row.cells, (cell) => cell.textContent) }));
  let found = all;
  let first = 0;

  const make = (name, properties) => Object.assign(document.createElement(name), properties);
  const search = make("input", { type: "search", placeholder: "Search in all columns" });
  search.setAttribute("aria-label", "Search in the table");
  const back = make("button", { type: "button", textContent: "\u2190 Previous" });
  const on = make("button", { type: "button", textContent: "Next \u2192" });
  const where = make("span", {});
  where.setAttribute("role", "status");
  const controls = make("div", { className: "controls" });
  controls.append(search, back, on, where);
  table.closest(".scroll").before(controls);

  const show = () => {
    body.replaceChildren(...found.slice(first, first + SHOWN).map((entry) => entry.row));
    const last = Math.min(first + SHOWN, found.length);
    const some = found.length < all.length ? ` found, of ${all.length}` : "";
    where.textContent = `${found.length ? first + 1 : 0} to ${last} of ${found.length}${some}`;
    back.disabled = first === 0;
    on.disabled = last === found.length;
    back.hidden = on.hidden = found.length <= SHOWN;
  };
  const turn = (by) => {
    first += by;
    show();
    table.closest(".scroll").scrollTop = 0;
  };
  back.addEventListener("click", () => turn(-SHOWN));
  on.addEventListener("click", () => turn(SHOWN));

  const select = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    found = all.filter((entry) => {
      const text = entry.cells.join("\n").toLowerCase();
      return words.every((word) => text.includes(word));
    });
    first = 0;
    show();
  };
  search.addEventListener("input", select);

  const heads = Array.from(table.tHead.rows[0].cells);
  const sort = (column, sign) => {
    const keys = new Map(all.map((entry) => [entry, entry.cells[column]]));
    const isNumeric = all.every((entry) => keys.get(entry) === "" || !Number.isNaN(Number(keys.get(entry))));
    all.sort((a, b) => {
      const [one, other] = [keys.get(a), keys.get(b)];
      if (one === "" || other === "") return (one === "") - (other === ""); // what is not there comes last
      return sign * (isNumeric ? Number(one) - Number(other) : one < other ? -1 : Number(one > other));
    });
    heads.forEach((head, i) => head.removeAttribute("aria-sort"));
    heads[column].setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
    select();
  };
  heads.forEach((head, column) => {
    const button = make("button", { type: "button", textContent: head.textContent });
    head.replaceChildren(button);
    button.addEventListener("click", () => sort(column, head.getAttribute("aria-sort") === "ascending" ? -1 : 1));
  });
  show();
}
