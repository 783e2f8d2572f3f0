/* The report of a review: draws the charts of the data in the page, all on one time axis, with one zoom for all. */
(function () {
  "use strict";
  const source = document.getElementById("review-data");
  if (source === null) return;
  const data = JSON.parse(source.textContent);
  const charts = new Map();
  const view = document.getElementById("view");
  const stamp = new Intl.DateTimeFormat("en-GB", {
    day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit", timeZone: "UTC",
  });

  /* Shows one stretch in every chart; null for the whole. */
  function zoom(from, to, by) {
    const whole = from === null || to === null || (from <= data.from && to >= data.to);
    for (const [id, chart] of charts) {
      if (id !== by) chart.zoom(whole ? null : from, whole ? null : to);
    }
    view.textContent = whole
      ? "The whole stretch is shown."
      : `Shown: ${stamp.format(new Date(from * 1000))} to ${stamp.format(new Date(to * 1000))} UTC.`;
  }

  for (const place of document.querySelectorAll("[data-chart]")) {
    const id = place.dataset.chart;
    const { marked, ...own } = data.charts[id];
    charts.set(id, window.specbudgetChart.create(place, {
      ...own,
      times: data.times,
      from: data.from,
      to: data.to,
      spans: data.spans.map((span) => ({ ...span, label: marked ? span.label : "" })),
      marks: data.marks.map((mark) => ({ ...mark, label: marked ? mark.label : "" })),
      utc: true,
      zoom: true,
      table: false,
      sync: "review",
      onZoom: (from, to) => zoom(from, to, id),
    }));
  }

  for (const hidden of document.querySelectorAll(".tools, [data-zoom-from]")) hidden.hidden = charts.size === 0;
  document.addEventListener("click", function (event) {
    const button = event.target instanceof Element ? event.target.closest("[data-zoom-from], [data-zoom-whole]") : null;
    if (button === null) return;
    if (button.dataset.zoomFrom === undefined) {
      zoom(null, null);
      return;
    }
    // a little of what was before and after, without which nobody sees that something changed
    const from = Number(button.dataset.zoomFrom);
    const to = Number(button.dataset.zoomTo);
    const room = Math.max((to - from) * 0.15, 60);
    zoom(Math.max(data.from, from - room), Math.min(data.to, to + room));
    document.querySelector(".charts")?.scrollIntoView({ block: "start" });
  });
})();
