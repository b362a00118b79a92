"use strict";
// Draws the plots. Reads the JSON in #data (see html.cc) and nothing else: no network, no storage.
(() => {
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("data").textContent);
  const rows = data.rows;
  const columns = new Map(data.columns.map((column) => [column.name, column]));
  root.classList.add("js");

  const shownScale = (column) => (column.percent ? 100 : 1);
  const title = (column) => `${column.heading}${column.unit ? ` [${column.unit}]` : ""}`;

  // ---- What distinguishes the rows: colour, dash and marker repeat with periods 8, 3 and 5.

  const kDashes = [[], [7, 4], [2, 3]];
  const kMarkers = ["circle", "rect", "triangle", "rectRot", "crossRot"];

  function ink(name) {
    return getComputedStyle(root).getPropertyValue(`--${name}`).trim();
  }

  const look = (row) => ({
    color: ink(`c${row.index % 8}`),
    dash: kDashes[row.index % 3],
    marker: kMarkers[row.index % 5],
  });

  // ---- The best trade-offs.

  // 1 where less is better, -1 where more is.
  const direction = (column) => (column.better === "more" ? -1 : 1);

  // Rows that no other beats in one column without losing in the other, from left to right.
  function front(xColumn, yColumn) {
    const at = (row, column) => {
      const value = row.values[column.name];
      return value === null || value === undefined ? null : value * direction(column);
    };
    const points = rows.filter((row) => at(row, xColumn) !== null && at(row, yColumn) !== null);
    const beats = (a, b) =>
      at(a, xColumn) <= at(b, xColumn) && at(a, yColumn) <= at(b, yColumn) &&
      (at(a, xColumn) < at(b, xColumn) || at(a, yColumn) < at(b, yColumn));
    return points
      .filter((row) => !points.some((other) => beats(other, row)))
      .sort((a, b) => a.values[xColumn.name] - b.values[xColumn.name]);
  }

  // ---- Which rows the plots show.

  const picked = new Set();
  const axisX = byId("axis-x");
  const axisY = byId("axis-y");

  function offer(select, names) {
    for (const name of names) {
      const column = columns.get(name);
      const count = rows.filter((row) => row.values[name] !== null).length;
      if (column && count > 1) select.add(new Option(title(column), name));
    }
  }

  function currentFront() {
    const x = columns.get(axisX.value);
    const y = columns.get(axisY.value);
    return x && y ? front(x, y) : [];
  }

  const kMostLines = 8;  // more at once can no longer be followed

  function pickAtStart() {
    if (rows.length <= kMostLines) return rows;
    const chosen = new Set(rows.slice(0, 2));
    for (const row of currentFront()) if (chosen.size < kMostLines) chosen.add(row);
    for (const row of rows) if (chosen.size < kMostLines && row.nmse.length) chosen.add(row);
    return [...chosen];
  }

  // ---- Charts.

  const charts = new Map();

  // On a logarithmic axis: powers of ten, and 2 and 5 between them while there is room.
  function logTicks(value) {
    const power = Math.log10(value);
    const exact = value / 10 ** Math.floor(power + 1e-9);
    const lead = Math.round(exact);
    if (Math.abs(exact - lead) > 1e-6) return "";  // the end of the axis
    const decades = Math.log10(this.max / this.min);
    if (lead === 1 && (decades < 8 || Math.round(power) % 2 === 0)) return shortDigits(value);
    return decades < 2.5 && (lead === 2 || lead === 5) ? shortDigits(value) : "";
  }

  // `values`, where given, bound a logarithmic axis, which would else reach to full powers of ten.
  function scale(text, logarithmic, values = []) {
    const bounds = logarithmic && values.length
      ? { min: Math.min(...values) / 1.3, max: Math.max(...values) * 1.3 } : {};
    return {
      ...bounds,
      type: logarithmic ? "logarithmic" : "linear",
      title: { display: true, text, color: ink("muted") },
      grid: { color: ink("grid"), borderColor: ink("line") },
      ticks: {
        color: ink("muted"),
        maxRotation: 0,
        autoSkipPadding: 12,
        callback: logarithmic ? logTicks : shortDigits,
      },
    };
  }

  // A tooltip "7 one_bit: ..."; `value` tells an item's value as text.
  function tooltip(value, heading = () => "") {
    return {
      callbacks: {
        title: heading,
        label: (item) => `${item.dataset.row.number} ${item.dataset.row.name}: ${value(item)}`,
      },
      filter: (item) => Boolean(item.dataset.row),
      backgroundColor: ink("card"),
      borderColor: ink("line"),
      borderWidth: 1,
      titleColor: ink("ink"),
      bodyColor: ink("ink"),
      usePointStyle: true,
    };
  }

  function draw(id, config) {
    charts.get(id)?.destroy();
    charts.delete(id);
    const canvas = byId(id);
    const box = canvas.parentElement;
    box.querySelector(".muted")?.remove();
    const nothing = config === null;
    box.classList.toggle("empty", nothing);
    canvas.hidden = nothing;
    if (nothing) {
      const text = document.createElement("p");
      text.className = "muted";
      text.textContent = "Nothing to show for the chosen compressors.";
      box.append(text);
      return;
    }
    config.options.animation = false;
    config.options.responsive = true;
    config.options.maintainAspectRatio = false;
    charts.set(id, new Chart(canvas, config));
  }

  function frontPoint(row, x, y) {
    const { color, marker } = look(row);
    const chosen = picked.has(row);
    return {
      row,
      data: [{ x: row.values[x.name], y: row.values[y.name] * shownScale(y) }],
      pointStyle: marker,
      backgroundColor: chosen ? color : "transparent",
      borderColor: color,
      borderWidth: 2,
      pointRadius: chosen ? 6 : 5,
      pointHoverRadius: 8,
    };
  }

  function frontLine(best, x, y) {
    return {
      type: "line",
      data: best.map((row) => ({ x: row.values[x.name], y: row.values[y.name] * shownScale(y) })),
      stepped: direction(x) > 0 ? "before" : "after",
      borderColor: ink("muted"),
      borderWidth: 2,
      borderDash: [6, 4],
      pointRadius: 0,
      pointHitRadius: 0,
      order: 1,
    };
  }

  function drawFront() {
    const x = columns.get(axisX.value);
    const y = columns.get(axisY.value);
    const best = currentFront();
    for (const row of rows) row.element.classList.toggle("is-front", best.includes(row));
    byId("front-names").textContent = "";
    if (!x || !y) return draw("chart-front", null);
    // An error of exactly 0 has no place on a logarithmic axis.
    const fits = (row) => !y.logarithmic || row.values[y.name] > 0;
    const known = rows.filter((row) => row.values[x.name] !== null && row.values[y.name] !== null);
    const drawn = known.filter(fits);
    const names = (some) => some.map((row) => `${row.number} ${row.name}`).join("; ");
    const hidden = known.filter((row) => !fits(row));
    byId("front-names").textContent = `Here: ${names(best)}.` +
      (hidden.length ? ` Exact, so beyond this axis: ${names(hidden)}.` : "");
    const sizes = drawn.map((row) => row.values[x.name]);
    const logX = Math.min(...sizes) > 0;
    return draw("chart-front", {
      type: "scatter",
      data: {
        datasets: [...drawn.map((row) => frontPoint(row, x, y)),
          frontLine(best.filter(fits), x, y)],
      },
      plugins: [rowNumbers],
      options: {
        layout: { padding: { top: 18, right: 12 } },
        scales: {
          x: scale(title(x), logX, sizes),
          y: {
            ...scale(title(y), y.logarithmic, drawn.map((row) => row.values[y.name])),
            grace: y.logarithmic ? 0 : "6%",
          },
        },
        plugins: {
          legend: { display: false },
          rowNumbers: {
            color: ink("ink"),
            font: `600 12px ${getComputedStyle(document.body).fontFamily}`,
          },
          tooltip: tooltip((item) =>
            `${threeDigits(item.raw.x)} ${x.unit}, ${threeDigits(item.raw.y)} ${y.unit}`),
        },
      },
    });
  }

  // One line a row; every twelfth point or so carries the row's marker.
  function lineOf(row, values, logarithmic) {
    const { color, dash, marker } = look(row);
    const every = Math.max(1, Math.ceil(values.length / 12));
    const offset = row.index % every;
    return {
      row,
      data: values.map((value, at) => ({
        x: at * data.stride + 1,
        y: value !== null && (!logarithmic || value > 0) ? value : null,
      })),
      borderColor: color,
      backgroundColor: color,
      borderDash: dash,
      borderWidth: 2,
      pointStyle: marker,
      pointRadius: (context) => (context.dataIndex % every === offset ? 4 : 0),
      pointHitRadius: 6,
    };
  }

  function drawLines(id, series, text, logarithmic) {
    const drawable = (value) => value !== null && (!logarithmic || value > 0);
    const lines = rows
      .filter((row) => picked.has(row) && row[series].some(drawable))
      .map((row) => lineOf(row, row[series], logarithmic));
    if (!lines.length) return draw(id, null);
    return draw(id, {
      type: "line",
      data: { datasets: lines },
      options: {
        interaction: { mode: "nearest", axis: "xy", intersect: false },
        scales: {
          x: { ...scale("step", false), min: 1 },
          y: scale(text, logarithmic,
            lines.flatMap((line) => line.data.map((point) => point.y).filter((y) => y !== null))),
        },
        plugins: {
          legend: { display: false },
          tooltip: tooltip((item) => threeDigits(item.raw.y),
            (items) => (items.length ? `step ${items[0].raw.x}` : "")),
        },
      },
    });
  }

  function drawTensors() {
    const shown = rows.filter((row) => picked.has(row) && row.tensors.some((v) => v > 0));
    if (!shown.length) return draw("chart-tensors", null);
    return draw("chart-tensors", {
      type: "bar",
      data: {
        labels: data.tensors,
        datasets: shown.map((row) => ({
          row,
          data: row.tensors.map((value) => (value > 0 ? value : null)),
          backgroundColor: look(row).color,
          borderWidth: 0,
        })),
      },
      options: {
        scales: {
          x: {
            type: "category",
            grid: { display: false, borderColor: ink("line") },
            ticks: { color: ink("muted") },
          },
          y: scale("NMSE", true, shown.flatMap((row) => row.tensors.filter((v) => v > 0))),
        },
        plugins: {
          legend: { display: false },
          tooltip: tooltip((item) => threeDigits(item.raw),
            (items) => (items.length ? items[0].label : "")),
        },
      },
    });
  }

  function drawAll() {
    byId("picked-count").textContent = `${picked.size} of ${rows.length}`;
    for (const row of rows) row.box.checked = picked.has(row);
    drawFront();
    drawLines("chart-nmse", "nmse", "NMSE", true);
    drawLines("chart-residual", "residual", "norm of the residual", false);
    drawLines("chart-train", "train", "training loss [nats]", true);
    drawTensors();
  }

  // ---- The picker.

  // The row's line as it looks in the plots; colours follow the theme by themselves.
  function swatch(row) {
    const color = `var(--c${row.index % 8})`;
    const shapes = {
      circle: '<circle cx="16" cy="8" r="4"/>',
      rect: '<rect x="12.5" y="4.5" width="7" height="7"/>',
      triangle: '<path d="M16 3.5l4.5 8h-9z"/>',
      rectRot: '<path d="M16 3l5 5-5 5-5-5z"/>',
      crossRot: '<path d="M12 4l8 8m0-8l-8 8" fill="none"/>',
    };
    return `<svg width="32" height="16" viewBox="0 0 32 16" aria-hidden="true" ` +
      `style="stroke:${color};fill:${color}"><path d="M0 8h32" stroke-width="2" fill="none" ` +
      `stroke-dasharray="${kDashes[row.index % 3].join(" ")}"/>` +
      `<g stroke-width="1.5">${shapes[kMarkers[row.index % 5]]}</g></svg>`;
  }

  function addChip(row) {
    const item = document.createElement("li");
    const label = document.createElement("label");
    row.box = document.createElement("input");
    row.box.type = "checkbox";
    row.box.addEventListener("change", () => {
      if (row.box.checked) picked.add(row);
      else picked.delete(row);
      drawAll();
    });
    const name = document.createElement("span");
    name.className = "spec";
    for (const part of row.name.split(/(?<=[(,_])|(?=\|)/)) {
      name.append(part, document.createElement("wbr"));
    }
    const number = document.createElement("span");
    number.className = "n";
    number.textContent = row.number;
    label.append(row.box);
    label.insertAdjacentHTML("beforeend", swatch(row));
    label.append(number, name);
    item.append(label);
    byId("picker").append(item);
  }

  function pickMany(which) {
    const sets = {
      all: rows,
      none: [],
      front: currentFront(),
      shown: rows.filter((row) => !row.element.hidden),
    };
    picked.clear();
    for (const row of sets[which]) picked.add(row);
    drawAll();
  }

  // ---- Start.

  rows.forEach((row, index) => {
    row.index = index;
    row.number = index + 1;
    row.element = byId(`row-${index + 1}`);
    addChip(row);
  });
  offer(axisX, ["payload_bits", "sent_bytes", "received_bytes"]);
  offer(axisY, ["closed_eval_accuracy", "closed_eval_loss", "nmse_mean", "cosine_mean",
    "open_eval_accuracy", "open_eval_loss"]);
  for (const row of pickAtStart()) picked.add(row);
  for (const select of [axisX, axisY]) select.addEventListener("change", drawAll);
  for (const button of document.querySelectorAll("button[data-pick]")) {
    button.addEventListener("click", () => pickMany(button.dataset.pick));
  }
  drawAll();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  for (const event of ["beforeprint", "afterprint"]) {
    addEventListener(event, () => {
      root.classList.toggle("printing", event === "beforeprint");
      drawAll();
    });
  }
})();
