"use strict";
// C_UC over round-trip time of the profiles that are chosen above.
report.running = (() => {
  const { data, make } = report;
  const plots = [];

  const tip = (indices) => (time) => [`Up to ${report.digits(time, 4)} ms`, ...indices.map((index) => {
    const { rtt, v, l, h } = data.profiles[index].running, i = rtt.indexOf(time);
    if (i < 0 || v[i] === null) return null;
    const between = l && l[i] !== null ? ` (${report.three(l[i])} to ${report.three(h[i])})` : "";
    return `${data.profiles[index].name}: ${report.three(v[i])}${between}`;
  }).filter(Boolean)];

  const draw = () => {
    const box = document.getElementById("running-chart");
    if (!box) return;
    plots.splice(0).forEach((plot) => plot.destroy());
    const indices = report.profiles.shown().filter((index) => data.profiles[index].running);
    if (!indices.length) { box.replaceChildren(make("p", { class: "empty" }, "None of the chosen profiles has a capacity, so there is no C_UC.")); return; }
    const curves = indices.map((index) => {
      const { rtt, v, l, h } = data.profiles[index].running;
      return { ...report.profiles.look(index), x: rtt, y: v, low: l, high: h, band: Boolean(l && h) };
    });
    const values = curves.flatMap((c) => c.y.filter((v) => v !== null)), axis = report.rttAxis(curves.flatMap((c) => c.x), report.profiles.state.log);
    plots.push(report.curves(box, {
      axis, curves, label: "C_UC up to this RTT", range: [Math.min(0, ...values.map((v) => v - 0.05)), Math.max(1, ...values.map((v) => v + 0.05))],
      height: innerWidth < 640 ? 260 : 320, under: (u) => report.level(u, 0.75, "at capacity"), tip: tip(indices),
      name: `C_UC over round-trip time, ${indices.length} profiles.`,
    }));
  };
  return { start: () => report.profiles.follow(draw) };
})();
