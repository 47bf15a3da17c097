"use strict";
// Throughput over round-trip time, with a choice of profiles, axes and what is drawn with them.
report.profiles = (() => {
  const { data, make } = report;
  const $ = (id) => document.getElementById(id);
  const state = { group: 0, shown: new Set(), focus: null, log: data.log, share: false, points: true };
  const listeners = [], plots = [];

  const group = () => data.groups[state.group];
  const members = () => group().members;
  const look = (index) => report.look(members().indexOf(index), report.palette(members().length, group().ordered));
  const shown = () => members().filter((index) => state.shown.has(index));
  const capacity = (p) => (state.share ? 100 : p.capacity);

  const begin = () => {
    state.shown = new Set(members().slice(0, data.shown_first));
    state.focus = members()[0];
    if (!members().some((index) => data.profiles[index].capacity)) state.share = false;
  };

  // Rates of a profile in what the axis shows: bit/s, or per cent of its capacity.
  const scale = (p) => (state.share ? p.capacity / 100 : 1);
  const scaled = (values, p) => values.map((value) => (value === null ? null : value / scale(p)));
  const figure = (value) => (state.share ? `${report.digits(value)} %` : report.figure("bit/s", value));
  const range = (low, high) => (state.share ? `${report.digits(low)} to ${report.digits(high)} %` : report.range("bit/s", low, high));

  const controls = () => {
    const box = $("profiles-controls"), redo = (change) => (value) => { change(value); controls(); draw(); };
    const parts = [];
    if (data.groups.length > 1) parts.push(report.choice("Show", data.groups.map((g, i) => [i, g.text]), state.group, redo((v) => { state.group = Number(v); begin(); }), "wide"));
    parts.push(report.choice("RTT axis", [["", "linear"], ["log", "logarithmic"]], state.log ? "log" : "", redo((v) => { state.log = v === "log"; })));
    if (members().some((index) => data.profiles[index].capacity)) parts.push(report.choice("Rates as", [["", "bit/s"], ["share", "share of capacity"]], state.share ? "share" : "", redo((v) => { state.share = v === "share"; })));
    const names = shown().map((index) => [index, data.profiles[index].name]);
    if (!shown().includes(state.focus)) state.focus = null;
    parts.push(report.choice("Model and shape of", [["", "none"], ...names], state.focus ?? "", redo((v) => { state.focus = v === "" ? null : Number(v); })));
    if (members().some((index) => data.profiles[index].points.length)) parts.push(report.tick("single measurements", state.points, (on) => { state.points = on; draw(); }));
    const at = [...box.querySelectorAll("select, input")].indexOf(document.activeElement);
    box.replaceChildren(...parts);
    if (at >= 0) box.querySelectorAll("select, input")[at]?.focus();
    chips();
  };

  const chips = () => {
    const box = $("profiles-chips");
    box.hidden = members().length < 2;
    const toggle = (index) => (on) => { if (on) state.shown.add(index); else state.shown.delete(index); controls(); draw(); };
    const at = [...box.querySelectorAll("input, button")].indexOf(document.activeElement);
    const parts = members().map((index) => {
      const { colour, marker } = look(index), chip = report.tick(data.profiles[index].name, state.shown.has(index), toggle(index));
      chip.className = "chip";
      chip.insertBefore(report.keyMark(marker, colour), chip.lastChild);
      return chip;
    });
    const every = shown().length < members().length;
    const all = make("button", { type: "button", onclick: () => { state.shown = new Set(every ? members() : []); controls(); draw(); } }, every ? "all" : "none");
    box.replaceChildren(...parts, all);
    if (at >= 0) box.querySelectorAll("input, button")[at]?.focus();
  };

  const curve = (index) => {
    const p = data.profiles[index];
    return {
      ...look(index), x: p.rtt, y: scaled(p.mean, p), low: scaled(p.low, p), high: scaled(p.high, p),
      points: state.points ? p.points.map(([time, rates]) => [time, scaled(rates, p)]) : null,
    };
  };

  // The model in up to three pieces: dashed, solid where it was measured, dashed.
  const pieces = (p, colour) => {
    const line = p.fitted;
    if (!line) return [];
    const rates = scaled(line.rate, p), ends = [line.left, line.right].filter((t) => t > line.rtt[0] && t < line.rtt[line.rtt.length - 1]);
    const times = [...new Set([...line.rtt, ...ends])].sort((a, b) => a - b);
    const part = (inside, dash) => {
      const x = times.filter(inside);
      return x.length > 1 ? [{ x, y: x.map((time) => report.between(line.rtt, rates, time)), colour, dash, width: 1.5 }] : [];
    };
    return [
      ...part((t) => t >= line.left && t <= line.right, []),
      ...part((t) => t <= line.left, [5, 4]),
      ...part((t) => t >= line.right, [5, 4]),
    ];
  };

  const bounds = (p, colour) => p.bounds.map((line) => ({ x: line.rtt, y: scaled(line.rate, p), colour, dash: [8, 3, 2, 3], width: 1.3 }));

  // What the picture must hold: means, single values, near whiskers, a near capacity.
  const top = (curves, extra, focus) => {
    const means = curves.flatMap((c) => c.y.filter((v) => v !== null)), most = Math.max(0, ...means);
    const whiskers = curves.flatMap((c) => c.high.filter((v) => v !== null)).map((v) => Math.min(v, 1.25 * most));
    const points = curves.flatMap((c) => (c.points ?? []).flatMap(([, values]) => values));
    const lines = extra.flatMap((c) => c.y.filter((v) => v !== null && v <= 2.2 * most));
    const held = Math.max(most, ...whiskers, ...points, ...(focus === null ? [] : lines));
    const near = shown().map((index) => capacity(data.profiles[index])).filter((c) => c && c <= 2.2 * held);
    return 1.07 * Math.max(held, ...near) || 1;
  };

  const under = (u, factor, axis, focused) => {
    const levels = [...new Set(shown().map((index) => capacity(data.profiles[index])).filter(Boolean))];
    if (focused) chord(u, focused, factor, axis);
    for (const level of levels) report.level(u, level / factor, state.share ? "capacity" : `capacity ${String(report.figure("bit/s", level)).replace(/\.0+ /, " ")}`);
    if (focused) regions(u, focused, axis);
  };

  // Above the straight line between the profile's ends it is concave, below convex.
  const chord = (u, p, factor, axis) => {
    if (p.rtt.length < 3) return;
    const values = scaled(p.mean, p).map((v) => v / factor), last = p.rtt.length - 1, span = p.rtt[last] - p.rtt[0];
    const line = (time) => values[0] + ((values[last] - values[0]) * (time - p.rtt[0])) / span;
    const steps = axis.along(Array.from({ length: 241 }, (_, i) => p.rtt[0] + (span * i) / 240).concat(p.rtt).sort((a, b) => a - b));
    const at = (time) => u.valToPos(axis.place(time), "x", true), y = (value) => u.valToPos(value, "y", true);
    for (const [shape, side] of [["concave", 1], ["convex", -1]]) {
      u.ctx.fillStyle = data.shapes[shape];
      u.ctx.globalAlpha = report.dark() ? 0.34 : 0.17;
      u.ctx.beginPath();
      steps.forEach((time, i) => { const v = report.between(p.rtt, values, time), c = line(time); u.ctx[i ? "lineTo" : "moveTo"](at(time), y(side * (v - c) > 0 ? v : c)); });
      [...steps].reverse().forEach((time) => u.ctx.lineTo(at(time), y(line(time))));
      u.ctx.fill();
    }
    u.ctx.globalAlpha = 1;
    u.ctx.strokeStyle = report.theme().soft;
    u.ctx.lineWidth = devicePixelRatio;
    u.ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]);
    u.ctx.beginPath();
    steps.forEach((time, i) => u.ctx[i ? "lineTo" : "moveTo"](at(time), y(line(time))));
    u.ctx.stroke();
    u.ctx.setLineDash([]);
  };

  const regions = (u, p, axis) => {
    for (const [left, right, shape] of p.regions) {
      const from = u.valToPos(axis.place(left), "x", true), to = u.valToPos(axis.place(right), "x", true), height = 5 * devicePixelRatio;
      u.ctx.fillStyle = data.shapes[shape];
      u.ctx.fillRect(from, u.bbox.top + u.bbox.height - height, to - from, height);
    }
  };

  const tip = (time) => [`RTT ${report.digits(time, 4)} ms`, ...shown().map((index) => {
    const p = data.profiles[index], i = p.rtt.indexOf(time), means = scaled(p.mean, p);
    if (i < 0) {
      const value = report.between(p.rtt, means, time);
      return value === null ? null : `${p.name}: about ${figure(value)}, between two RTTs`;
    }
    const low = p.low[i] === null || p.high[i] === null ? "" : ` (${range(p.low[i] / scale(p), p.high[i] / scale(p))})`;
    return `${p.name}: ${figure(means[i])}${low}, n = ${p.n[i]}`;
  }).filter(Boolean)];

  const key = (focused) => {
    const items = [], theme = report.theme();
    if (focused) {
      const swatch = (shape) => { const node = make("span", { class: "swatch", "aria-hidden": "true" }); node.style.backgroundColor = data.shapes[shape]; return node; };
      items.push(make("li", { class: "title" }, focused.name));
      if (focused.fitted) items.push(make("li", {}, report.keyMark(null, theme.ink), `model: ${focused.fitted.name}`));
      focused.bounds.forEach((line) => items.push(make("li", {}, report.keyMark(null, theme.soft, { dashed: true }), line.name)));
      if (focused.rtt.length > 2) items.push(make("li", {}, swatch("concave"), "above its chord: concave"), make("li", {}, swatch("convex"), "below its chord: convex"));
    }
    $("profiles-key").replaceChildren(...items);
  };

  // Profiles shown that share no transfer: the whole has those of all, and two sites those between them.
  const apart = () => {
    const all = shown().map((index) => data.profiles[index]), whole = all.filter((p) => p.group === "");
    if (whole.length) return whole;
    return all.length > 1 && all[0].group === "site" ? [] : all;
  };

  const note = (focused, limit) => {
    const said = [];
    const far = [...new Set(shown().map((index) => data.profiles[index].capacity).filter((c) => c && !state.share && c > limit))];
    if (far.length) said.push(`Capacity ${far.map((c) => report.figure("bit/s", c)).join(" and ")} is above the picture.`);
    const failed = apart().reduce((sum, p) => sum + p.failed, 0);
    if (failed) said.push(`${failed} failed ${failed === 1 ? "transfer" : "transfers"} of the profiles shown ${failed === 1 ? "counts" : "count"} in no mean.`);
    if (focused?.fitted?.words) said.push(`Model: ${focused.fitted.words}.`.replace("..", "."));
    if (focused?.regions.length) said.push("The strip on the axis marks where the profile is concave or convex as far as the measurements tell.");
    $("profiles-note").textContent = said.join(" ");
  };

  const draw = () => {
    plots.splice(0).forEach((plot) => plot.destroy());
    const indices = shown(), box = $("profiles-chart"), theme = report.theme();
    const focused = state.focus === null ? null : data.profiles[state.focus];
    key(focused);
    if (!indices.length) {
      box.replaceChildren(make("p", { class: "empty" }, "No profile is chosen."));
      note(null, Infinity);
    } else {
      const curves = indices.map(curve), extra = focused ? [...bounds(focused, theme.soft), ...pieces(focused, theme.ink)] : [];
      const held = top(curves, extra, state.focus), unit = state.share ? { factor: 1, text: "% of capacity" } : report.unit("bit/s", held);
      const fit = (values) => values && values.map((v) => (v === null ? null : v / unit.factor));
      const all = [...curves, ...extra].map((c) => ({ ...c, y: fit(c.y), low: fit(c.low), high: fit(c.high), points: c.points?.map(([time, values]) => [time, fit(values)]) }));
      const times = [...indices.flatMap((index) => data.profiles[index].rtt), ...(focused?.fitted?.rtt ?? [])], axis = report.rttAxis(times, state.log);
      plots.push(report.curves(box, {
        axis, curves: all, label: `Throughput (${unit.text})`, range: [0, held / unit.factor], height: innerWidth < 640 ? 300 : 420,
        under: (u) => under(u, unit.factor, axis, focused), tip,
        name: `Throughput over round-trip time, ${indices.length} profiles; the table below holds the same figures.`,
      }));
      note(focused, held);
    }
    listeners.forEach((listener) => listener());
  };

  const start = () => {
    if (!data.profiles.length) return;
    begin();
    controls();
    report.keep(() => { chips(); draw(); });
  };
  return { start, state, shown, look, follow: (listener) => listeners.push(listener) };
})();
