"use strict";
// Makes the table sort, filter and show some of its columns. Without it the table is complete.
(() => {
  const byId = (id) => document.getElementById(id);
  const table = byId("results");
  const body = table.tBodies[0];

  function cellKey(element, at) {
    const cell = element.cells[at];
    const value = cell.dataset.value;
    if (value === undefined) return cell.textContent;
    return value === "" ? null : Number(value);
  }

  // Rows without a value stay at the end in both directions.
  function compare(a, b, sign) {
    if (a === null || b === null) return (a === null) - (b === null);
    return sign * (typeof a === "string" ? a.localeCompare(b) : a - b);
  }

  function sortBy(head) {
    const at = head.cellIndex;
    const better = head.dataset.better === "more" ? "descending" : "ascending";
    const other = better === "ascending" ? "descending" : "ascending";
    const now = head.getAttribute("aria-sort") === better ? other : better;
    for (const each of table.tHead.rows[0].cells) each.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", now);
    const sign = now === "ascending" ? 1 : -1;
    const sorted = [...body.rows].sort((a, b) =>
      compare(cellKey(a, at), cellKey(b, at), sign) || a.dataset.row - b.dataset.row);
    body.append(...sorted);
  }

  // Every word must occur somewhere in the row's names.
  function filterTable() {
    const words = byId("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of body.rows) {
      const text = row.cells[0].textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      shown += row.hidden ? 0 : 1;
    }
    byId("table-status").textContent =
      words.length ? `${shown} of ${body.rows.length} compressors` : "";
  }

  function showColumns() {
    for (const box of document.querySelectorAll("#groups input[data-group]")) {
      table.classList.toggle(`hide-${box.dataset.group}`, !box.checked);
    }
    table.classList.toggle("only-key", !byId("every-column").checked);
  }

  for (const head of table.tHead.rows[0].cells) {
    head.setAttribute("aria-sort", "none");
    head.querySelector("button").addEventListener("click", () => sortBy(head));
  }
  byId("filter").addEventListener("input", filterTable);
  byId("groups").addEventListener("change", showColumns);
  showColumns();
})();
