"use strict";
// A plugin for Chart.js: the rows' numbers beside the points of a scatter plot, where there is
// room. Its options: color, font.
const rowNumbers = (() => {
  // Points of a scatter plot that lie on each other share one label.
  function spotsOf(chart) {
    const spots = [];
    chart.data.datasets.forEach((dataset, at) => {
      if (!dataset.row) return;
      for (const point of chart.getDatasetMeta(at).data) {
        const near = spots.find((spot) => Math.hypot(spot.x - point.x, spot.y - point.y) < 9);
        if (near) near.numbers.push(dataset.row.number);
        else spots.push({ x: point.x, y: point.y, numbers: [dataset.row.number] });
      }
    });
    return spots;
  }

  // The first place around the spot that is free; else the one that covers least.
  function place(spot, width, taken, area) {
    const height = 12;
    const places = [
      [8, -16], [-8 - width, -16], [8, 4], [-8 - width, 4], [-width / 2, -21], [-width / 2, 9],
      [8, -28], [-8 - width, -28], [8, 16], [-8 - width, 16],
    ].map(([dx, dy]) => ({ x: spot.x + dx, y: spot.y + dy, width, height }));
    const cover = (a, b) =>
      Math.max(0, Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x)) *
      Math.max(0, Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y));
    const cost = (box) =>
      taken.reduce((sum, other) => sum + cover(box, other), 0) +
      (box.x < area.left || box.x + width > area.right + 12 ? 1e6 : 0);
    return places.reduce((best, box) => (cost(box) < cost(best) ? box : best));
  }

  return {
    id: "rowNumbers",
    afterDatasetsDraw(chart, args, options) {
      const context = chart.ctx;
      const spots = spotsOf(chart);
      const taken = spots.map((spot) => ({ x: spot.x - 6, y: spot.y - 6, width: 12, height: 12 }));
      context.save();
      context.font = options.font;
      context.fillStyle = options.color;
      context.textBaseline = "top";
      for (const spot of spots) {
        const text = spot.numbers.join(", ");
        const box = place(spot, context.measureText(text).width, taken, chart.chartArea);
        taken.push(box);
        context.fillText(text, box.x, box.y);
      }
      context.restore();
    },
  };
})();
