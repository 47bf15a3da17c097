"use strict";
// Starts every part, and draws again when the width, the colours or the medium changes.
(() => {
  const { data } = report;
  document.querySelectorAll("table.sortable").forEach(report.sortable);
  [report.running, report.profiles, report.use, report.sites, report.compared, report.settings, report.io].forEach((part) => part.start());

  let width = document.documentElement.clientWidth, waiting = 0;
  addEventListener("resize", () => {
    if (document.documentElement.clientWidth === width) return;
    width = document.documentElement.clientWidth;
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(report.redraw);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", report.redraw);
  addEventListener("beforeprint", () => {
    document.documentElement.setAttribute("data-print", "");
    report.redraw();
  });
  addEventListener("afterprint", () => {
    document.documentElement.removeAttribute("data-print");
    report.redraw();
  });
  document.body.dataset.ready = String(data.profiles.length);
})();
