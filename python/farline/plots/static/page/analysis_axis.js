"use strict";
// Axes as rtt_axis.py places them, and the chart that all curves over round-trip time share.

// An axis from places to numbers and back; with an RTT of 0 a log axis is log(1 + RTT / knee).
report.rttAxis = (times, log) => {
  const all = [...new Set(times)].sort((a, b) => a - b), above = all.filter((time) => time > 0);
  const low = all[0] ?? 0, high = all[all.length - 1] ?? 1, on = log && above.length > 0;
  const knee = on && low <= 0 ? above[0] : 0;
  const place = (time) => (!on ? time : knee ? Math.log10(1 + time / knee) : Math.log10(time));
  const back = (at) => (!on ? at : knee ? knee * (10 ** at - 1) : 10 ** at);
  const ends = [place(low), place(high)];
  const margin = ends[1] > ends[0] ? 0.03 * (ends[1] - ends[0]) : Math.max(0.5, 0.5 * Math.abs(ends[0]));
  const limits = [ends[0] - margin, ends[1] + margin];
  const inside = (time) => time >= (low || knee) * 0.999 && time <= high * 1.001;
  const round = (room) => (high > low ? report.places(Math.max(0, on ? low : limits[0]), on ? high : limits[1], room) : [low]);
  const ticks = (room) => {
    if (!on || (low > 0 && high <= 4 * low)) return round(room);
    const powers = [];
    for (let p = Math.floor(Math.log10(low || knee)); p <= Math.ceil(Math.log10(high)); p += 1) powers.push(10 ** p);
    const sets = [[1], [1, 3], [1, 2, 5]].map((steps) => powers.flatMap((power) => steps.map((step) => step * power)).filter(inside));
    const fitting = sets.filter((set, i) => i === 0 || set.length + (knee ? 1 : 0) <= room);
    const kept = [];
    for (const time of [...(knee ? [0] : []), ...fitting[fitting.length - 1]]) {
      if (!kept.length || place(time) - place(kept[kept.length - 1]) > 0.5 * (limits[1] - limits[0]) / room) kept.push(time);
    }
    return kept;
  };
  // Times at which to draw a curve with these knots: what is straight in RTT bends on a log axis.
  const along = (knots) => {
    if (!on || knots.length < 2) return knots;
    const from = place(knots[0]), to = place(knots[knots.length - 1]), between = [];
    for (let i = 1; i < 300; i += 1) between.push(back(from + ((to - from) * i) / 300));
    return [...new Set([...knots, ...between])].sort((a, b) => a - b);
  };
  const text = (time) => String(Number(time.toPrecision(6)));
  return { place, back, limits, ticks, along, text, label: `Round-trip time (ms${on ? ", log scale" : ""})` };
};

// Numbers of processes or streams: doubled from each to the next, they stand at even distances.
report.countAxis = (counts, label) => {
  const all = [...new Set(counts)].sort((a, b) => a - b), doubling = all.length > 2 && all[0] > 0 && all[all.length - 1] / all[0] >= 8;
  const place = (count) => (doubling ? Math.log2(count) : count), back = (at) => (doubling ? 2 ** at : at);
  const ends = [place(all[0]), place(all[all.length - 1])], margin = 0.04 * (ends[1] - ends[0]) || 0.5;
  const ticks = (room) => all.filter((_, i) => i % Math.max(1, Math.ceil(all.length / room)) === 0);
  return { place, back, limits: [ends[0] - margin, ends[1] + margin], ticks, along: (knots) => knots, text: String, label: doubling ? `${label}, log scale` : label };
};

// A coefficient with three decimals, as the tables have it.
report.three = (value) => (value === null || value === undefined ? "–" : value.toFixed(3).replace("-", "−"));

// The value at a time of what runs straight between knots; null outside them.
report.between = (times, values, at) => {
  const i = times.findIndex((time) => time >= at);
  if (i < 0 || at < times[0]) return null;
  if (times[i] === at) return values[i];
  if (values[i] === null || values[i - 1] === null) return null;
  return values[i - 1] + ((values[i] - values[i - 1]) * (at - times[i - 1])) / (times[i] - times[i - 1]);
};

// Marks of so many curves: colour and shape are a pair that comes once in sixty-four.
report.look = (index, colours) => ({ colour: colours[index], marker: report.markers[(index + Math.floor(index / 8)) % 8] });

// Draws curves over an axis into `box`: each has times `x`, values `y` and, as it likes, whiskers
// `low` and `high`, a `band`, single `points`, `dash`, `marker`, `colour`. `under` draws below all.
report.curves = (box, { axis, curves, label, range, height, under, tip, name, bare = false }) => {
  const theme = report.theme(), { make } = report, px = devicePixelRatio;
  box.replaceChildren();
  const times = [...new Set(curves.filter((c) => c.marker).flatMap((c) => c.x))].sort((a, b) => a - b);
  const [xAxis, yAxis] = report.axes(theme, bare ? "" : axis.label, label);
  const width = report.width(box), room = Math.max(2, Math.floor((width - 70) / 75));
  const plot = new uPlot({
    width, height, padding: [10, 12, 0, 0], legend: { show: false },
    cursor: { drag: { x: false, y: false }, points: { show: false }, y: false },
    scales: { x: { time: false, range: axis.limits }, y: { range } },
    axes: [{ ...xAxis, splits: () => axis.ticks(room).map(axis.place), values: (_, splits) => splits.map((at) => axis.text(Number(axis.back(at).toPrecision(9)))) }, yAxis],
    series: [{}, { paths: () => null, points: { show: false } }],
    hooks: {
      drawClear: [(u) => under && clipped(u, () => under(u))],
      draw: [(u) => clipped(u, () => curves.forEach((c) => one(u, c)))],
      setCursor: [(u) => point(u)],
    },
  }, [times.map(axis.place), times.map(() => null)], box);
  box.append(make("div", { class: "tip", hidden: true }));
  const canvas = box.querySelector("canvas");
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", name);

  function clipped(u, draw) {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top - 6 * px, bbox.width, bbox.height + 6 * px);
    ctx.clip();
    draw();
    ctx.restore();
  }

  function one(u, c) {
    const { ctx } = u, at = (time) => u.valToPos(axis.place(time), "x", true), y = (value) => u.valToPos(value, "y", true);
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = c.colour;
    if (c.band) band(ctx, c, at, y);
    ctx.lineWidth = (c.width ?? 2) * px;
    ctx.setLineDash((c.dash ?? []).map((length) => length * px));
    trace(ctx, c, at, y);
    ctx.setLineDash([]);
    if (c.points) dots(ctx, c.points, at, y);
    if (c.marker) c.x.forEach((time, i) => c.y[i] !== null && mark(ctx, c, i, at(time), y));
    ctx.restore();
  }

  function trace(ctx, c, at, y) {
    const known = c.x.filter((_, i) => c.y[i] !== null), values = c.y.filter((value) => value !== null);
    ctx.beginPath();
    axis.along(known).forEach((time, i) => ctx[i ? "lineTo" : "moveTo"](at(time), y(report.between(known, values, time))));
    ctx.stroke();
  }

  function band(ctx, c, at, y) {
    const known = c.x.map((_, i) => i).filter((i) => c.low[i] !== null && c.high[i] !== null);
    ctx.globalAlpha = 0.15;
    ctx.beginPath();
    known.forEach((i, k) => ctx[k ? "lineTo" : "moveTo"](at(c.x[i]), y(c.high[i])));
    [...known].reverse().forEach((i) => ctx.lineTo(at(c.x[i]), y(c.low[i])));
    ctx.fill();
    ctx.globalAlpha = 1;
  }

  function dots(ctx, points, at, y) {
    ctx.globalAlpha = 0.35;
    for (const [time, values] of points) for (const value of values) { ctx.beginPath(); ctx.arc(at(time), y(value), 2.2 * px, 0, 2 * Math.PI); ctx.fill(); }
    ctx.globalAlpha = 1;
  }

  function mark(ctx, c, i, x, y) {
    const low = c.low && !c.band ? c.low[i] : null;
    if (low !== null && low !== undefined && c.high[i] !== null) {
      ctx.lineWidth = 1.2 * px;
      ctx.beginPath();
      ctx.moveTo(x, y(low)); ctx.lineTo(x, y(c.high[i]));
      for (const end of [low, c.high[i]]) { ctx.moveTo(x - 3 * px, y(end)); ctx.lineTo(x + 3 * px, y(end)); }
      ctx.stroke();
    }
    report.marker(ctx, c.marker, x, y(c.y[i]), (c.x.length > 14 ? 3.2 : 4) * px);
    ctx.fill();
  }

  function point(u) {
    const node = box.querySelector(".tip"), { idx, left } = u.cursor;
    if (!node || !tip) return;
    if (idx === null || idx === undefined || left < 0) { node.hidden = true; return; }
    const [head, ...lines] = tip(times[idx]);
    node.replaceChildren(make("b", {}, head), ...lines.map((text) => make("div", {}, text)));
    node.hidden = false;
    const at = u.over.offsetLeft + left + 14, space = box.clientWidth - node.offsetWidth;
    node.style.left = `${Math.max(0, at > space ? at - node.offsetWidth - 28 : at)}px`;
    node.style.top = "12px";
  }
  return plot;
};

// A horizontal line with words at its right end.
report.level = (u, value, text, dash = [2, 3]) => {
  const { ctx, bbox } = u, theme = report.theme(), px = devicePixelRatio, y = u.valToPos(value, "y", true);
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = theme.soft;
  ctx.lineWidth = px;
  ctx.setLineDash(dash.map((length) => length * px));
  ctx.beginPath();
  ctx.moveTo(bbox.left, y);
  ctx.lineTo(bbox.left + bbox.width, y);
  ctx.stroke();
  ctx.font = `${11 * px}px ${getComputedStyle(document.body).fontFamily}`;
  ctx.textAlign = "right";
  ctx.textBaseline = "bottom";
  ctx.fillText(text, bbox.left + bbox.width - 4 * px, y - 2 * px);
  ctx.restore();
};
