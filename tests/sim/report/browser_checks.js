"use strict";
// Runs inside the report (browser_test.py adds it at the end of the page): uses every control as a
// reader would and posts what it saw to the page around.
(() => {
  const byId = (id) => document.getElementById(id);
  const table = byId("results");
  const kCharts = ["chart-front", "chart-nmse", "chart-residual", "chart-train", "chart-tensors"];

  // The number of different colours on a canvas: a blank one has a single one, nothing.
  function colors(id) {
    const canvas = byId(id);
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return new Set(new Uint32Array(data.buffer)).size;
  }

  const shownRows = () => [...table.tBodies[0].rows].filter((row) => row.offsetParent !== null);
  const head = (column) => table.querySelector(`th[data-column="${column}"]`);

  function columnValues(column) {
    const at = head(column).cellIndex;
    return shownRows().map((row) => row.cells[at].dataset.value);
  }

  function fire(element, type) {
    element.dispatchEvent(new Event(type, { bubbles: true }));
  }

  function sorted(column) {
    head(column).querySelector("button").click();
    const first = { order: head(column).getAttribute("aria-sort"), values: columnValues(column) };
    head(column).querySelector("button").click();
    return [first, { order: head(column).getAttribute("aria-sort"), values: columnValues(column) }];
  }

  function filtered(text) {
    byId("filter").value = text;
    fire(byId("filter"), "input");
    const found = shownRows().map((row) => Number(row.dataset.row));
    const status = byId("table-status").textContent;
    byId("filter").value = "";
    fire(byId("filter"), "input");
    return { found, status, after: shownRows().length };
  }

  // The table's columns that can be seen, before and after a click on the group's box.
  function toggled(selector) {
    const heads = [...table.tHead.rows[0].cells];
    const count = () => heads.filter((cell) => cell.offsetParent !== null).length;
    const before = count();
    document.querySelector(selector).click();
    const after = count();
    document.querySelector(selector).click();
    return [before, after, count()];
  }

  function picked(which) {
    document.querySelector(`button[data-pick="${which}"]`).click();
    return {
      boxes: [...document.querySelectorAll("#picker input")].filter((box) => box.checked).length,
      drawn: kCharts.filter((id) => !byId(id).hidden),
    };
  }

  // Every pair of axes draws something.
  function axes() {
    const seen = [];
    for (const x of byId("axis-x").options) {
      for (const y of byId("axis-y").options) {
        byId("axis-x").value = x.value;
        byId("axis-y").value = y.value;
        fire(byId("axis-x"), "change");
        seen.push([x.value, y.value, colors("chart-front")]);
      }
    }
    byId("axis-x").selectedIndex = 0;
    byId("axis-y").selectedIndex = 0;
    fire(byId("axis-y"), "change");
    return seen;
  }

  // What the chart says about row 9's first point. Without a mouse: headless browsers that skip
  // idle time do not deliver its frames.
  function pointedAt(id) {
    const chart = Chart.getChart(id);
    const at = chart.data.datasets.findIndex((set) => set.row && set.row.number === 9);
    chart.tooltip.setActiveElements([{ datasetIndex: at, index: 0 }], { x: 0, y: 0 });
    chart.update();
    return chart.tooltip.body.flatMap((part) => part.lines);
  }

  function check() {
    const root = document.documentElement;
    const result = {
      overflow: root.scrollWidth - root.clientWidth,
      background: getComputedStyle(document.body).backgroundColor,
      front: [...table.querySelectorAll("tr.is-front")].map((row) => Number(row.dataset.row)),
      colors: Object.fromEntries(kCharts.map((id) => [id, colors(id)])),
      sent: sorted("sent_bytes"),
      accuracy: sorted("closed_eval_accuracy"),
      filter: filtered("Power_SGD feedback"),
      nothing: filtered("no such thing"),
      speed: toggled('input[data-group="speed"]'),
      details: toggled("#every-column"),
      none: picked("none"),
      all: picked("all"),
      best: picked("front"),
      axes: axes(),
    };
    picked("front");
    result.tooltips = Object.fromEntries(kCharts.map((id) => [id, pointedAt(id)]));
    fire(window, "beforeprint");
    result.printing = root.classList.contains("printing");
    fire(window, "afterprint");
    result.wide = [...document.querySelectorAll("main *")].filter((element) =>
      !element.closest(".scroll") && element.getBoundingClientRect().right > root.clientWidth + 1
    ).map((element) => element.outerHTML.slice(0, 80));
    result.errors = window.collectedErrors;
    return result;
  }

  setTimeout(() => {
    let result;
    try {
      result = check();
    } catch (error) {
      result = { errors: [String(error.stack)] };
    }
    parent.postMessage({ width: innerWidth, result }, "*");
  }, 500);
})();
