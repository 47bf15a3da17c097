"use strict";
// One run over time: throughput and what else is known of it, with a shared cursor.
report.series = (() => {
  const { data, make } = report;
  const $ = (id) => document.getElementById(id);
  const state = { point: 0, run: null, streams: true };
  const plots = [];
  const ways = { forward: "client to server", reverse: "server to client" };

  const runsOf = (point) => data.runs.filter((run) => run.point === point);

  const controls = () => {
    const settings = data.settings.map((text, i) => [i, text]);
    const runs = runsOf(state.point).map((run) => [run.id, `${run.name}: ${run.result}`]);
    const redo = () => { controls(); draw(); };
    $("time-controls").replaceChildren(
      report.choice("Setting", settings, state.point, (v) => { state.point = Number(v); state.run = first(state.point); redo(); }, "wide"),
      report.choice("Run", runs, state.run, (v) => { state.run = v; redo(); }, "wide"),
      report.tick("each stream", state.streams, (on) => { state.streams = on; draw(); }),
    );
  };

  // The run in the middle of its setting, not the prettiest one.
  const first = (point) => {
    const runs = runsOf(point), done = runs.filter((run) => run.status === "complete").sort((a, b) => a.total - b.total);
    return (done[Math.floor((done.length - 1) / 2)] || runs[0] || {}).id ?? null;
  };

  const colour = (way) => report.palette(2, false)[way === "forward" ? 0 : 1];

  const chart = (box, series, columns, label, kind, run, stepped, height, xLabel) => {
    const theme = report.theme();
    const top = Math.max(0, ...columns.flatMap((c) => c.values.filter((v) => v !== null)));
    const unit = report.unit(kind, top);
    const xs = stepped ? series.e : series.e.slice(0, -1).map((edge, i) => (edge + series.e[i + 1]) / 2);
    const values = columns.map((c) => {
      const scaled = c.values.map((v) => (v === null ? null : v / unit.factor));
      return stepped ? [...scaled, scaled[scaled.length - 1]] : scaled;
    });
    const [xAxis, yAxis] = report.axes(theme, xLabel, `${label} (${unit.text})`);
    const options = {
      width: report.width(box), height, padding: [8, 10, 0, 0], legend: { show: false },
      cursor: { drag: { x: false, y: false }, y: false, sync: { key: "time" }, points: { size: 6 } },
      scales: { x: { time: false, range: [0, series.e[series.e.length - 1]] }, y: { range: [0, (top / unit.factor) * 1.08 || 1] } },
      axes: [xAxis, yAxis],
      series: [{}, ...columns.map((c) => ({
        stroke: c.colour, width: c.width, alpha: c.alpha, points: { show: false },
        paths: stepped ? uPlot.paths.stepped({ align: 1 }) : undefined,
      }))],
      hooks: {
        drawClear: [(u) => shade(u, Math.max(0, ...Object.values(run.omitted)), theme)],
        setCursor: [(u) => tip(u, box, columns, series, kind)],
      },
    };
    plots.push(new uPlot(options, [xs, ...values], box));
    box.append(make("div", { class: "tip", hidden: true }));
    const canvas = box.querySelector("canvas");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `${label} over time; the table below holds the same figures.`);
  };

  const shade = (u, until, theme) => {
    if (!(until > 0)) return;
    const right = u.valToPos(until, "x", true);
    u.ctx.save();
    u.ctx.fillStyle = theme.shade;
    u.ctx.fillRect(u.bbox.left, u.bbox.top, right - u.bbox.left, u.bbox.height);
    u.ctx.restore();
  };

  const tip = (u, box, columns, series, kind) => {
    const node = box.querySelector(".tip");
    if (!node) return;
    const at = u.posToVal(u.cursor.left, "x"), i = series.e.findLastIndex((edge) => edge <= at);
    if (u.cursor.left < 0 || i < 0 || i > series.e.length - 2) { node.hidden = true; return; }
    const lines = columns.filter((c) => c.named).map((c) => `${c.named}: ${report.figure(kind, c.values[i])}`);
    node.replaceChildren(make("b", {}, `${report.digits(series.e[i])} to ${report.digits(series.e[i + 1])} s`));
    for (const text of [...lines, ...spans(columns, i, kind)]) node.append(make("div", {}, text));
    node.hidden = false;
    const place = u.over.offsetLeft + u.cursor.left + 14;
    node.style.left = `${Math.max(0, place + node.offsetWidth > box.clientWidth ? place - node.offsetWidth - 28 : place)}px`;
    node.style.top = "10px";
  };

  // One line per direction on what its streams reach from and to in interval i.
  const spans = (columns, i, kind) => Object.keys(ways).flatMap((way) => {
    const known = columns.filter((c) => !c.named && c.way === way).map((c) => c.values[i]).filter((v) => v !== null);
    if (!known.length) return [];
    const text = known.length > 1 ? report.range(kind, Math.min(...known), Math.max(...known)) : report.figure(kind, known[0]);
    return [`${known.length > 1 ? `${known.length} streams` : "stream"}, ${ways[way]}: ${text}`];
  });

  const rates = (series) => series.d.flatMap((d) => {
    const total = { values: d.total, colour: colour(d.way), width: 2.2, alpha: 1, named: `${ways[d.way]}${d.seen === "sender" ? " (as sent)" : ""}` };
    const many = state.streams && d.streams.length > 1;
    return [...(many ? d.streams.map((values) => ({ values, colour: colour(d.way), width: 1, alpha: 0.45, way: d.way })) : []), total];
  });

  const gauges = (series, name) => series.d.flatMap((d) => d[name].map((values) => ({
    values, colour: colour(d.way), width: 1.3, alpha: 0.8, way: d.way,
  })));

  const key = (series, run) => {
    const items = series.d.map((d) => make("li", {}, report.keyMark(null, colour(d.way)), `${ways[d.way]}, all streams`));
    const omitted = Math.max(0, ...Object.values(run.omitted));
    if (omitted > 0) items.push(make("li", { class: "title" }, `shaded: ${report.digits(omitted)} s of warm-up`));
    items.push(make("li", { class: "title" }, `one value per ${report.digits(series.e[1] - series.e[0])} s`));
    for (const d of series.d.filter((d) => d.streams.length && d.streams.length < d.count)) {
      items.push(make("li", { class: "title" }, `${d.streams.length} of ${d.count} streams drawn, all in the total`));
    }
    $("time-key").replaceChildren(...items);
  };

  const draw = () => {
    plots.splice(0).forEach((plot) => plot.destroy());
    const top = $("time-rate"), boxes = data.panels.map((panel) => $(`time-${panel.key}`));
    [top, ...boxes].forEach((box) => box.replaceChildren());
    $("time-table").replaceChildren();
    $("time-key").replaceChildren();
    const run = data.runs.find((r) => r.id === state.run);
    if (!run) { top.append(make("p", { class: "empty" }, "There is no run here.")); return; }
    $("time-note").replaceChildren(make("span", { class: run.status === "complete" ? "" : "bad" }, run.note));
    const series = data.series[run.id];
    if (!series) { top.append(make("p", { class: "empty" }, run.missing)); return; }
    key(series, run);
    const panels = data.panels.map((panel, i) => ({ ...panel, box: boxes[i], columns: gauges(series, panel.key) })).filter((panel) => panel.columns.length);
    const under = "Time since the start of the run (s)", small = innerWidth < 640 ? 150 : 170;
    chart(top, series, rates(series), "Throughput", "bit/s", run, true, innerWidth < 640 ? 230 : 290, panels.length ? "" : under);
    panels.forEach(({ box, columns, label, unit }, i) => chart(box, series, columns, label, unit, run, false, small, i === panels.length - 1 ? under : ""));
    table(series);
  };

  const table = (series) => {
    const columns = ["From (s)", "To (s)", ...series.d.flatMap((d) => [`Throughput, ${ways[d.way]}`, ...(d.rtt.length ? ["RTT, mean of streams"] : [])])];
    const mean = (arrays, i) => {
      const known = arrays.map((a) => a[i]).filter((v) => v !== null);
      return known.length ? known.reduce((a, b) => a + b, 0) / known.length : null;
    };
    const rows = series.e.slice(0, -1).map((edge, i) => [report.digits(edge), report.digits(series.e[i + 1]), ...series.d.flatMap((d) => [report.figure("bit/s", d.total[i]), ...(d.rtt.length ? [report.figure("µs", mean(d.rtt, i))] : [])])]);
    $("time-table").replaceChildren(report.table("Throughput per interval", columns, rows));
  };

  return {
    start: () => {
      state.point = data.best ?? 0;
      state.run = first(state.point);
      controls();
      report.keep(draw);
    },
    show: (point) => {
      state.point = point;
      state.run = first(point);
      controls();
      draw();
      document.getElementById("time").scrollIntoView();
    },
  };
})();
