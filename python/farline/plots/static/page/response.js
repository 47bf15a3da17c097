"use strict";
// Control-response curves with their selectors, the CPU panel below them, and the heat map.
report.response = (() => {
  const { data, make } = report;
  const view = { ...data.view, quantity: 0, runs: data.points_shown };
  const $ = (id) => document.getElementById(id);
  const plots = [];

  const parameter = (name) => data.parameters.findIndex((p) => p.name === name);
  const text = (index, value) => data.parameters[index].texts[value];

  const held = () => data.parameters.filter((p) => p.name !== view.x && p.name !== view.curve);

  // Points that stand where the selectors hold the other parameters, as curves in axis order.
  const curves = () => {
    const x = parameter(view.x), c = view.curve ? parameter(view.curve) : -1;
    const shown = data.points.filter((p) => held().every((h) => p.s[parameter(h.name)] === view.fixed[h.name]));
    const groups = new Map();
    for (const point of shown) {
      const key = c < 0 ? 0 : point.s[c];
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(point);
    }
    return [...groups.entries()].sort((a, b) => a[0] - b[0]).map(([value, points]) => ({
      value, text: c < 0 ? "" : text(c, value), points: points.sort((a, b) => a.s[x] - b.s[x]),
    }));
  };

  const controls = () => {
    const box = $("response-controls");
    const names = data.parameters.map((p) => [p.name, p.label]);
    const redo = (change) => (value) => { change(value); settle(); controls(); report.redraw(); };
    const quantities = data.quantities.map((q, i) => [i, q.label]);
    const parts = [report.choice("Show", quantities, view.quantity, redo((v) => { view.quantity = Number(v); }))];
    if (names.length > 1) {
      parts.push(report.choice("over", names, view.x, redo((v) => { if (v === view.curve) view.curve = view.x; view.x = v; })));
      const others = [["", "nothing"], ...names.filter(([name]) => name !== view.x)];
      parts.push(report.choice("one curve per", others, view.curve || "", redo((v) => { view.curve = v || null; })));
    }
    for (const p of held()) {
      const values = p.texts.map((t, i) => [i, t]);
      parts.push(report.choice(`${p.label} at`, values, view.fixed[p.name], redo((v) => { view.fixed[p.name] = Number(v); })));
    }
    if (data.points_shown) parts.push(report.tick("single runs", view.runs, (on) => { view.runs = on; report.redraw(); }));
    const at = [...box.querySelectorAll("select, input")].indexOf(document.activeElement);
    box.replaceChildren(...parts);
    if (at >= 0) box.querySelectorAll("select, input")[at]?.focus();
  };

  // Gives every parameter that is held a value that exists.
  const settle = () => {
    const best = data.points[data.best ?? 0];
    for (const p of held()) if (view.fixed[p.name] === undefined) view.fixed[p.name] = best.s[parameter(p.name)];
  };

  const largest = (groups, q) => Math.max(0, ...groups.flatMap((g) => g.points.flatMap((p) => {
    const f = p.q[q.column];
    // A bar that reaches far beyond every run leaves the axis, so that the runs can be seen.
    return f ? [Math.min(f.h ?? f.m, 1.5 * Math.max(f.m, ...f.v)), f.m, ...f.v] : [];
  })));

  const ordered = () => Boolean(view.curve) && data.parameters[parameter(view.curve)].ordered;

  const key = (groups, colours) => {
    const items = view.curve ? [make("li", { class: "title" }, data.parameters[parameter(view.curve)].label)] : [];
    if (view.curve) groups.forEach((g, i) => items.push(make("li", {}, report.keyMark(report.markers[i % 8], colours[i], { line: data.parameters[parameter(view.x)].ordered }), g.text)));
    if (reference(data.quantities[view.quantity])) items.push(make("li", {}, report.keyMark(null, report.theme().soft, { dashed: true }), "reference"));
    $("response-key").replaceChildren(...items);
  };

  const reference = (q) => (data.reference && data.reference.q[q.column]) || null;

  const chart = (box, groups, q, height, xLabel) => {
    box.replaceChildren();
    const theme = report.theme(), axis = data.parameters[parameter(view.x)];
    const ref = reference(q);
    const top = Math.max(largest(groups, q), ref ? Math.min(ref.h ?? ref.m, 1.5 * ref.m) : 0);
    if (!(top > 0) && !groups.some((g) => g.points.some((p) => p.q[q.column]))) {
      box.append(make("p", { class: "empty" }, `No run here has a figure for: ${q.label.toLowerCase()}.`));
      return;
    }
    const unit = report.unit(q.unit, top), used = [...new Set(groups.flatMap((g) => g.points.map((p) => p.s[parameter(view.x)])))].sort((a, b) => a - b);
    const xs = used.map((i) => axis.positions[i]);
    const colours = report.palette(groups.length, ordered());
    const columns = groups.map((g) => used.map((i) => {
      const found = g.points.find((p) => p.s[parameter(view.x)] === i);
      return found && found.q[q.column] ? found.q[q.column].m / unit.factor : null;
    }));
    const [xAxis, yAxis] = report.axes(theme, xLabel, unit.text ? `${q.label} (${unit.text})` : q.label);
    const options = {
      width: report.width(box), height, padding: [8, 10, 0, 0], legend: { show: false },
      cursor: { drag: { x: false, y: false }, points: { show: false }, y: false },
      scales: {
        x: { time: false, range: axis.limits },
        y: { range: [0, (top / unit.factor) * 1.06 || 1] },
      },
      axes: [{ ...xAxis, splits: () => ticks(axis, used, box), values: (_, splits) => splits.map((at) => axis.texts[axis.positions.indexOf(at)]) }, yAxis],
      series: [{}, ...groups.map(() => ({ paths: () => null, points: { show: false } }))],
      hooks: {
        drawClear: [(u) => ref && band(u, ref, unit.factor, theme)],
        draw: [(u) => groups.forEach((g, i) => curve(u, g, q, unit.factor, colours[i], i, groups.length))],
        setCursor: [(u) => tip(u, box, groups, q, used)],
      },
    };
    const plot = new uPlot(options, [xs, ...columns], box);
    plots.push(plot);
    box.append(make("div", { class: "tip", hidden: true }));
    plot.over.addEventListener("click", () => pick(plot, groups, q, used));
    const canvas = box.querySelector("canvas");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `${q.label} over ${axis.label}, ${groups.length} curves; the table below holds the same figures.`);
  };

  // As many labels as there is room for, both ends always among them.
  const ticks = (axis, used, box) => {
    const longest = Math.max(...used.map((i) => axis.texts[i].length));
    const room = Math.max(2, Math.floor((report.width(box) - 70) / (longest * 7.5 + 14)));
    const step = Math.ceil((used.length - 1) / Math.max(1, room - 1)) || 1;
    return used.filter((_, i) => i % step === 0).map((i) => axis.positions[i]);
  };

  // Nothing that leaves the axis is drawn over its labels.
  const inside = (ctx, { left, top, width, height }) => {
    ctx.beginPath();
    ctx.rect(left, top, width, height);
    ctx.clip();
  };

  const band = (u, ref, factor, theme) => {
    const { ctx, bbox } = u;
    ctx.save();
    inside(ctx, bbox);
    if (ref.l !== null) {
      const high = u.valToPos(ref.h / factor, "y", true), low = u.valToPos(ref.l / factor, "y", true);
      ctx.fillStyle = theme.shade;
      ctx.fillRect(bbox.left, high, bbox.width, low - high);
    }
    const y = u.valToPos(ref.m / factor, "y", true);
    ctx.strokeStyle = theme.soft;
    ctx.lineWidth = devicePixelRatio * 1.5;
    ctx.setLineDash([8 * devicePixelRatio, 5 * devicePixelRatio]);
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
    ctx.restore();
  };

  const curve = (u, group, q, factor, colour, index, count) => {
    const { ctx, bbox } = u, px = devicePixelRatio, x = parameter(view.x);
    const ordered = data.parameters[x].ordered;
    const shift = (index - (count - 1) / 2) * Math.min(ordered ? 5 : 18, (ordered ? 24 : 90) / count) * px;
    const at = (p) => u.valToPos(data.parameters[x].positions[p.s[x]], "x", true) + shift;
    const y = (value) => u.valToPos(value / factor, "y", true);
    ctx.save();
    inside(ctx, bbox);
    ctx.strokeStyle = ctx.fillStyle = colour;
    ctx.lineWidth = 2 * px;
    ctx.beginPath();
    group.points.filter((p) => p.q[q.column]).forEach((p, i) => ctx[i ? "lineTo" : "moveTo"](at(p), y(p.q[q.column].m)));
    if (ordered) ctx.stroke();
    for (const point of group.points) mark(ctx, point, q, colour, index, px, at(point), y, bbox);
    ctx.restore();
  };

  const mark = (ctx, point, q, colour, index, px, x, y, bbox) => {
    const f = point.q[q.column];
    if (!f) {
      if (point.n) return;
      ctx.fillStyle = report.theme().bad;
      report.marker(ctx, "cross", x, bbox.top + bbox.height - 7 * px, 5 * px);
      ctx.fill();
      ctx.fillStyle = colour;
      return;
    }
    if (view.runs && f.v.length > 1 && f.v.length <= data.points_up_to) {
      ctx.globalAlpha = 0.45;
      for (const value of f.v) { ctx.beginPath(); ctx.arc(x, y(value), 2.4 * px, 0, 2 * Math.PI); ctx.fill(); }
      ctx.globalAlpha = 1;
    }
    if (f.l !== null) {
      ctx.lineWidth = 1.3 * px;
      ctx.beginPath();
      ctx.moveTo(x, y(f.l)); ctx.lineTo(x, y(f.h));
      for (const end of [f.l, f.h]) { ctx.moveTo(x - 3 * px, y(end)); ctx.lineTo(x + 3 * px, y(end)); }
      ctx.stroke();
    }
    report.marker(ctx, report.markers[index % 8], x, y(f.m), 4 * px);
    ctx.fill();
  };

  const tip = (u, box, groups, q, used) => {
    const node = box.querySelector(".tip");
    if (!node) return;
    const at = u.cursor.idx, left = u.cursor.left;
    if (at === null || at === undefined || left < 0) { node.hidden = true; return; }
    const axis = data.parameters[parameter(view.x)];
    node.replaceChildren(make("b", {}, `${axis.label}: ${axis.texts[used[at]]}`));
    for (const group of groups) {
      const point = group.points.find((p) => p.s[parameter(view.x)] === used[at]);
      if (point) node.append(make("div", {}, [group.text, sentence(point, q)].filter(Boolean).join(": ")));
    }
    node.hidden = false;
    const room = box.clientWidth - node.offsetWidth;
    const plotLeft = u.over.offsetLeft + left + 14;
    node.style.left = `${Math.max(0, plotLeft > room ? u.over.offsetLeft + left - node.offsetWidth - 14 : plotLeft)}px`;
    node.style.top = "12px";
  };

  const sentence = (point, q) => {
    const f = point.q[q.column];
    const lost = point.failed + point.partial;
    const not = lost ? `, ${lost} not complete` : "";
    if (!f) return point.n ? "no figure" : `no run completed (${lost} tried)`;
    const between = f.l === null ? "" : ` (${report.range(q.unit, f.l, f.h)})`;
    return `${report.figure(q.unit, f.m)}${between}, n = ${f.v.length}${not}`;
  };

  const pick = (u, groups, q, used) => {
    if (u.cursor.idx === null || u.cursor.idx === undefined) return;
    const near = groups.map((g) => g.points.find((p) => p.s[parameter(view.x)] === used[u.cursor.idx])).filter((p) => p && p.q[q.column]);
    const distance = (p) => Math.abs(u.valToPos(p.q[q.column].m / report.unit(q.unit, largest(groups, q)).factor, "y") - u.cursor.top);
    near.sort((a, b) => distance(a) - distance(b));
    if (near.length) report.series.show(data.points.indexOf(near[0]));
  };

  const heat = (groups, q) => {
    const box = $("heat");
    box.replaceChildren();
    if (!view.curve || groups.length < 2) return;
    const x = parameter(view.x), axis = data.parameters[x];
    const used = [...new Set(groups.flatMap((g) => g.points.map((p) => p.s[x])))].sort((a, b) => a - b);
    if (used.length < 2) return;
    const means = groups.flatMap((g) => g.points.filter((p) => p.q[q.column]).map((p) => p.q[q.column].m));
    const low = Math.min(...means), high = Math.max(...means), unit = report.unit(q.unit, high);
    const head = make("tr", {}, make("th", { class: "corner", scope: "col" }, data.parameters[parameter(view.curve)].label), ...used.map((i) => make("th", { scope: "col" }, axis.texts[i])));
    const rows = groups.map((g) => make("tr", {}, make("th", { scope: "row" }, g.text), ...used.map((i) => cell(g.points.find((p) => p.s[x] === i), q, low, high, unit))));
    const name = `${q.label}${unit.text ? ` (${unit.text})` : ""} over ${axis.label.toLowerCase()}, darker is ${report.dark() ? "lower" : "higher"}`;
    box.append(make("h3", {}, "The same as a heat map"), make("p", { class: "note" }, name), make("div", { class: "scroll" }, make("table", { class: "heat", "aria-label": name }, make("thead", {}, head), make("tbody", {}, ...rows))));
  };

  const cell = (point, q, low, high, unit) => {
    const f = point && point.q[q.column];
    if (!f) return make("td", { class: point && !point.n ? "bad" : "" }, point ? (point.n ? "–" : "failed") : "");
    const share = high > low ? (f.m - low) / (high - low) : 1;
    const node = make("td", { title: sentence(point, q) }, report.digits(f.m / unit.factor));
    const [saturation, lightness] = report.dark() ? [0.55, 0.16 + 0.44 * share] : [0.62, 0.94 - 0.62 * share];
    node.style.backgroundColor = `hsl(206 ${100 * saturation}% ${100 * lightness}%)`;
    node.style.color = report.inkOn(206, saturation, lightness);
    return node;
  };

  const draw = () => {
    plots.splice(0).forEach((plot) => plot.destroy());
    const groups = curves(), q = data.quantities[view.quantity];
    const cpu = data.quantities.find((other) => other.column === "cpu_s_per_gb");
    const axis = data.parameters[parameter(view.x)];
    const label = axis.label + (axis.scale.startsWith("log") ? ", log scale" : "");
    const both = q.unit === "bit/s" && cpu !== undefined;
    key(groups, report.palette(groups.length, ordered()));
    chart($("response-chart"), groups, q, innerWidth < 640 ? 280 : 380, both ? "" : label);
    $("cpu-chart").replaceChildren();
    if (both) chart($("cpu-chart"), groups, cpu, innerWidth < 640 ? 190 : 220, label);
    const lost = groups.flatMap((g) => g.points).filter((p) => !p.n).length;
    $("response-note").textContent = lost ? `${lost} of the settings shown have no complete run: they are crosses, not zeros.` : "";
    heat(groups, q);
    const rows = groups.flatMap((g) => g.points.map((p) => [g.text || "all", axis.texts[p.s[parameter(view.x)]], sentence(p, q)]));
    const name = view.curve ? data.parameters[parameter(view.curve)].label : "Curve";
    $("response-table").replaceChildren(report.table(q.label, [name, axis.label, "Mean, confidence interval, runs"], rows));
  };

  return { start: () => { settle(); controls(); report.keep(draw); }, view };
})();
