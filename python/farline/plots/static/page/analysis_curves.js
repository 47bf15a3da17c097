"use strict";
// Two profiles beside each other, and input and output over processes.
report.compared = (() => {
  const { data, make } = report;
  const $ = (id) => document.getElementById(id);
  const plots = [];
  let chosen = 0;

  const key = (found, colours) => $("compared-key").replaceChildren(...found.both.map((p, i) => make("li", {}, report.keyMark(report.markers[i], colours[i]), p.name)));

  const said = (found) => {
    const score = found.c_uc === null ? "" : ` C_UC ${report.three(found.c_uc)}, mean ${report.three(found.mean)}, C_CC ${report.three(found.c_cc)}.`;
    $("compared-note").replaceChildren(...report.symbols(`${found.words}${score}`.trim()));
  };

  const upper = (found, axis, colours) => {
    const share = found.unit === "share of capacity";
    const spread = (p, side) => p.mean.map((mean, i) => (mean === null || p.sd[i] === null ? null : mean + side * p.sd[i]));
    const curves = found.both.map((p, i) => ({ x: p.rtt, y: p.mean, low: spread(p, -1), high: spread(p, 1), colour: colours[i], marker: report.markers[i] }));
    const most = Math.max(...curves.flatMap((c) => c.y.filter((v) => v !== null)), share ? 1 : 0);
    const figure = (value) => (share ? `${report.digits(100 * value)} %` : `${report.digits(value)} ${found.unit}`);
    const tip = (time) => [`RTT ${report.digits(time, 4)} ms`, ...found.both.map((p) => {
      const value = report.between(p.rtt, p.mean, time);
      return value === null ? null : `${p.name}: ${p.rtt.includes(time) ? "" : "about "}${figure(value)}`;
    }).filter(Boolean)];
    plots.push(report.curves($("compared-both"), {
      axis, curves, label: share ? "Share of capacity" : `Throughput (${found.unit})`, range: [0, 1.08 * most], height: innerWidth < 640 ? 230 : 280,
      tip, name: `${found.name}: both profiles over round-trip time.`, bare: true,
    }));
  };

  const lower = (found, axis, colour) => {
    const ratio = found.kind === "ratio", known = found.values.filter((v) => v !== null);
    const unit = ratio ? { factor: 1, text: "" } : report.unit("bit/s", Math.max(...known.map(Math.abs), 0));
    const side = (sign) => found.deviation && found.values.map((v, i) => (v === null || found.deviation[i] === null ? null : (v + sign * found.deviation[i]) / unit.factor));
    const y = found.values.map((v) => (v === null ? null : v / unit.factor)), low = side(-1), high = side(1);
    const all = [...y, ...(low ?? []), ...(high ?? []), ratio ? 1 : 0].filter((v) => v !== null), most = Math.max(...all), least = Math.min(...all, 0);
    const tip = (time) => {
      const i = found.rtt.indexOf(time);
      return [`RTT ${report.digits(time, 4)} ms`, i < 0 ? "no figure" : ratio ? `ratio ${report.digits(found.values[i])}` : report.figure("bit/s", found.values[i])];
    };
    plots.push(report.curves($("compared-values"), {
      axis, curves: [{ x: found.rtt, y, low, high, band: Boolean(low), colour, marker: "up" }], label: ratio ? "Ratio" : `Difference (${unit.text})`,
      range: [1.08 * least, 1.1 * most || 1], height: innerWidth < 640 ? 200 : 230, under: (u) => report.level(u, ratio ? 1 : 0, ratio ? "alike" : ""), tip,
      name: `${found.name}: ${found.kind} over round-trip time.`,
    }));
  };

  const draw = () => {
    plots.splice(0).forEach((plot) => plot.destroy());
    const found = data.comparisons[chosen], colours = report.palette(3, false);
    const axis = report.rttAxis([...found.both.flatMap((p) => p.rtt), ...found.rtt], report.profiles.state.log);
    key(found, colours);
    said(found);
    upper(found, axis, colours);
    lower(found, axis, colours[2]);
  };

  const start = () => {
    if (!data.comparisons.length) return;
    if (data.comparisons.length > 1) $("compared-controls").append(report.choice("Compare", data.comparisons.map((c, i) => [i, `${c.name} (${c.kind})`]), chosen, (v) => { chosen = Number(v); draw(); }, "wide"));
    // Over the same axis as the profiles above, and drawn again with them.
    if (data.profiles.length) { report.profiles.follow(draw); draw(); } else report.keep(draw);
  };
  return { start };
})();

report.io = (() => {
  const { data, make } = report;
  const $ = (id) => document.getElementById(id);
  const plots = [];

  const draw = () => {
    plots.splice(0).forEach((plot) => plot.destroy());
    const most = Math.max(...data.io.flatMap((c) => c.mean.map((mean, i) => (mean ?? 0) + (c.sd[i] ?? 0)))), unit = report.unit("bit/s", most);
    const colours = report.palette(data.io.length, false), labels = [...new Set(data.io.map((c) => c.x_label))].join(" or ");
    const side = (c, sign) => c.mean.map((mean, i) => (mean === null || c.sd[i] === null ? null : (mean + sign * c.sd[i]) / unit.factor));
    const curves = data.io.map((c, i) => ({ ...report.look(i, colours), x: c.x, y: c.mean.map((v) => (v === null ? null : v / unit.factor)), low: side(c, -1), high: side(c, 1) }));
    const tip = (count) => [`${labels}: ${count}`, ...data.io.filter((c) => c.x.includes(count)).map((c) => { const i = c.x.indexOf(count); return `${c.name}: ${report.figure("bit/s", c.mean[i])}, n = ${c.n[i]}`; })];
    plots.push(report.curves($("io-chart"), {
      axis: report.countAxis(data.io.flatMap((c) => c.x), labels), curves, label: `Throughput (${unit.text})`, range: [0, (1.06 * most) / unit.factor || 1],
      height: innerWidth < 640 ? 260 : 320, tip, name: `Input and output over ${labels}, ${data.io.length} curves.`,
    }));
    $("io-key").replaceChildren(...data.io.map((c, i) => { const { colour, marker } = report.look(i, colours); return make("li", {}, report.keyMark(marker, colour), c.name); }));
  };
  return { start: () => { if (data.io.length) report.keep(draw); } };
})();
