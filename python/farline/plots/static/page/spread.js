"use strict";
// Repetitions as strips, verdicts as stacked bars.
report.spread = (() => {
  const { data, make, draw: shape } = report;
  const $ = (id) => document.getElementById(id);
  const few = 16;
  let all = false;

  const order = () => data.points.map((_, i) => i).sort((a, b) => mean(b) - mean(a));
  const mean = (i) => (data.points[i].q.total_bps ? data.points[i].q.total_bps.m : -1);

  const strip = (point, x, span, width, theme, colours) => {
    const height = 30, y = height / 2;
    const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": describe(point) });
    const line = (x1, x2, y1, y2, colour, w) => svg.append(shape("line", { x1, x2, y1, y2, stroke: colour, "stroke-width": w }));
    for (const at of span.places) line(x(at), x(at), 0, height, theme.grid, 1);
    const f = point.q.total_bps;
    if (!f) {
      const node = shape("text", { x: 4, y: y + 4 }, "no run completed");
      node.style.fill = theme.bad;
      svg.append(node);
      return svg;
    }
    if (f.b) {
      const [low, q1, q2, q3, high] = f.b.map(x);
      line(low, high, y, y, theme.soft, 1);
      svg.append(shape("rect", { x: q1, y: y - 9, width: Math.max(1, q3 - q1), height: 18, fill: "none", stroke: theme.soft }));
      line(q2, q2, y - 9, y + 9, theme.ink, 1.6);
    }
    f.v.forEach((value, i) => svg.append(shape("circle", { cx: x(value), cy: y + (f.v.length > 1 ? 5 * (((i * 7) % f.v.length) / (f.v.length - 1) * 2 - 1) : 0), r: 3, fill: colours[0], "fill-opacity": 0.55 })));
    if (f.l !== null) {
      line(x(f.l), x(f.h), y, y, colours[1], 2.2);
      svg.append(shape("path", { d: `M${x(f.m) - 5} ${y}l5-5 5 5-5 5z`, fill: colours[1] }));
    }
    return svg;
  };

  const describe = (point) => {
    const f = point.q.total_bps;
    if (!f) return "no run completed";
    const between = f.l === null ? "" : `, interval ${report.figure("bit/s", f.l)} to ${report.figure("bit/s", f.h)}`;
    return `${f.v.length} runs, mean ${report.figure("bit/s", f.m)}${between}`;
  };

  const scale = (x, span, width) => {
    const svg = shape("svg", { viewBox: `0 0 ${width} 20`, height: 20, "aria-hidden": "true" });
    for (const at of span.places) {
      const left = Math.min(width - 14, Math.max(14, x(at)));
      svg.append(shape("text", { x: left, y: 14, "text-anchor": "middle" }, String(Number((at / span.unit.factor).toPrecision(6)))));
    }
    return svg;
  };

  // What is to be seen of a setting: a bar that reaches far beyond its runs leaves the strip.
  const ends = (f) => (f ? [f.l ?? f.m, Math.min(f.h ?? f.m, 1.5 * Math.max(f.m, ...f.v)), f.m, ...f.v] : []);

  // The range of all runs, with round places in it; it need not start at zero, for dots are no bars.
  const range = (points, width) => {
    const values = points.flatMap((p) => ends(p.q.total_bps));
    if (!values.length) return { low: 0, high: 1, places: [], unit: report.unit("bit/s", 1) };
    const least = Math.min(...values), most = Math.max(...values), margin = 0.04 * (most - least || most);
    const low = Math.max(0, least - margin), high = most + margin, unit = report.unit("bit/s", most);
    const places = report.places(low / unit.factor, high / unit.factor, Math.max(2, Math.floor(width / 110)));
    return { low, high, unit, places: places.map((at) => at * unit.factor) };
  };

  const draw = () => {
    const box = $("spread-strips"), theme = report.theme(), colours = report.palette(2, false);
    const found = order(), shown = all ? found : found.slice(0, few);
    box.replaceChildren();
    const probe = make("div");
    box.append(make("div"), probe);
    const width = Math.max(200, Math.floor(probe.clientWidth));
    const span = range(shown.map((i) => data.points[i]), width);
    const x = (value) => 6 + ((value - span.low) / (span.high - span.low)) * (width - 12);
    box.replaceChildren();
    for (const i of shown) {
      const point = data.points[i], lost = point.failed + point.partial;
      const text = make("div", { class: "text" }, data.settings[i], make("span", { class: "note" }, ` n = ${point.n}`));
      if (lost) text.append(make("span", { class: "badge bad" }, `${lost} not complete`));
      box.append(text, make("div", {}, strip(point, x, span, width, theme, colours)));
    }
    box.append(make("div", { class: "note" }, `Throughput (${span.unit.text})`), make("div", {}, scale(x, span, width)));
    const more = $("spread-more");
    more.hidden = all || found.length <= few;
    more.textContent = `Show all ${found.length} settings`;
  };

  const start = () => {
    $("spread-more").addEventListener("click", () => { all = true; draw(); });
    report.keep(draw);
  };
  return { start, showAll: (on) => { all = on; } };
})();

report.limits = (() => {
  const { data, make } = report;
  const $ = (id) => document.getElementById(id);
  let by = "";

  const add = (counts, point) => {
    for (const [limit, n] of Object.entries(point.limits)) counts[limit] = (counts[limit] || 0) + n;
    const lost = point.failed + point.partial;
    if (lost) counts["not complete"] = (counts["not complete"] || 0) + lost;
    return counts;
  };

  const bars = () => {
    const all = ["all runs", data.points.reduce(add, {})];
    const index = data.parameters.findIndex((p) => p.name === by);
    if (index < 0) return [all];
    const values = data.parameters[index].texts.map((text, i) => [text, data.points.filter((p) => p.s[index] === i).reduce(add, {})]);
    return [all, ...values.filter(([, counts]) => Object.keys(counts).length)];
  };

  const segment = (limit, n, total) => {
    const look = data.limits[limit];
    const node = make("span", { class: look.colour ? "" : "lost", title: `${look.text}: ${n} of ${total} runs` }, String(n));
    node.style.flex = `${n} 0 0`;
    if (look.colour) { node.style.backgroundColor = look.colour; node.style.color = look.on; }
    return node;
  };

  const draw = () => {
    const found = bars(), box = $("limits-bars"), names = Object.keys(data.limits).filter((name) => found[0][1][name]);
    box.replaceChildren();
    for (const [text, counts] of found) {
      const total = Object.values(counts).reduce((a, b) => a + b, 0);
      const line = names.filter((name) => counts[name]).map((name) => `${counts[name]} ${data.limits[name].text}`).join(", ");
      const bar = make("div", { class: "bar", role: "img", "aria-label": `${text}: ${line}` });
      names.filter((name) => counts[name]).forEach((name) => bar.append(segment(name, counts[name], total)));
      box.append(make("div", {}, text), bar);
    }
    $("limits-key").replaceChildren(...names.map((name) => {
      const swatch = make("canvas", { width: 28, height: 28, "aria-hidden": "true" }), context = swatch.getContext("2d");
      swatch.style.width = swatch.style.height = "14px";
      context.fillStyle = data.limits[name].colour || report.theme().bad;
      if (data.limits[name].colour) context.fillRect(0, 0, 28, 28);
      else for (let i = -28; i < 28; i += 9) { context.beginPath(); context.moveTo(i, 28); context.lineTo(i + 28, 0); context.lineTo(i + 31, 0); context.lineTo(i + 3, 28); context.fill(); }
      return make("li", {}, swatch, data.limits[name].text);
    }));
  };

  const start = () => {
    if (data.parameters.length) {
      by = data.view.x;
      const options = [["", "nothing: all runs together"], ...data.parameters.map((p) => [p.name, p.label])];
      $("limits-controls").append(report.choice("One bar per", options, by, (value) => { by = value; draw(); }));
    }
    report.keep(draw);
  };
  return { start };
})();
