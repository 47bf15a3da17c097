"use strict";
// Sites with sites, settings with settings, and what is used, as tables and bars with colours.

// Colours a cell by a share from 0 to 1; darker is more on paper, lighter is more in the dark.
report.tint = (node, share) => {
  const [saturation, lightness] = report.dark() ? [0.55, 0.16 + 0.44 * share] : [0.62, 0.94 - 0.62 * share];
  node.style.backgroundColor = `hsl(206 ${100 * saturation}% ${100 * lightness}%)`;
  node.style.color = report.inkOn(206, saturation, lightness);
};

report.sites = (() => {
  const { data, make } = report;
  const $ = (id) => document.getElementById(id);
  const state = { matrix: 0, what: "mean" };
  const kinds = {
    mean: { text: "mean throughput", of: (c) => c.mean, show: (v) => report.digits(v / unit().factor) },
    share: { text: "share of capacity", of: (c) => c.share, show: (v) => `${report.digits(100 * v)} %` },
    rtt: { text: "round-trip time", of: (c) => c.rtt, show: (v) => report.digits(v) },
    n: { text: "number of measurements", of: (c) => c.n, show: String },
  };

  const matrix = () => data.matrices[state.matrix];
  const unit = () => report.unit("bit/s", Math.max(0, ...matrix().cells.map((c) => c.mean ?? 0)));

  const controls = () => {
    const parts = [];
    const redo = (change) => (value) => { change(value); draw(); };
    if (data.matrices.length > 1) parts.push(report.choice("Show", data.matrices.map((m, i) => [i, m.what]), state.matrix, redo((v) => { state.matrix = Number(v); })));
    const known = Object.entries(kinds).filter(([, kind]) => data.matrices.some((m) => m.cells.some((c) => kind.of(c) !== null)));
    if (!known.some(([name]) => name === state.what)) state.what = known[0][0];
    parts.push(report.choice("as", known.map(([name, kind]) => [name, kind.text]), state.what, redo((v) => { state.what = v; })));
    $("sites-controls").replaceChildren(...parts);
  };

  const sentence = (m, c) => {
    const parts = [`${m.names[c.f]} to ${m.names[c.t]}`];
    if (c.mean !== null) parts.push(`${report.figure("bit/s", c.mean)}${c.sd === null ? "" : ` ± ${report.figure("bit/s", c.sd)}`}`);
    if (c.share !== null) parts.push(`${report.digits(100 * c.share)} % of ${report.figure("bit/s", c.capacity)}`);
    if (c.rtt !== null) parts.push(`RTT ${report.digits(c.rtt, 4)} ms`);
    parts.push(`n = ${c.n}`);
    if (c.failed) parts.push(`${c.failed} failed`);
    return parts.join(", ");
  };

  const cell = (m, c, low, high) => {
    if (!c) return make("td", {});
    const value = kinds[state.what].of(c);
    if (value === null || (state.what !== "rtt" && !c.n)) return make("td", { class: c.failed ? "bad" : "", title: sentence(m, c) }, c.failed ? "failed" : "–");
    const node = make("td", { title: sentence(m, c) }, kinds[state.what].show(value));
    if (c.failed && state.what === "n") node.append(make("span", { class: "bad note" }, ` +${c.failed} failed`));
    report.tint(node, high > low ? (value - low) / (high - low) : 1);
    return node;
  };

  const draw = () => {
    const m = matrix(), kind = kinds[state.what], at = new Map(m.cells.map((c) => [`${c.f} ${c.t}`, c]));
    const values = m.cells.map(kind.of).filter((v) => v !== null), low = Math.min(...values), high = Math.max(...values);
    const head = make("tr", {}, make("th", { class: "corner", scope: "col" }, "from \\ to"), ...m.names.map((name) => make("th", { scope: "col" }, name)));
    const rows = m.names.map((name, f) => make("tr", {}, make("th", { scope: "row" }, name), ...m.names.map((_, t) => cell(m, at.get(`${f} ${t}`), low, high))));
    const unitText = { mean: unit().text, share: "per cent", rtt: "ms", n: "" }[state.what];
    const name = `${kind.text[0].toUpperCase()}${kind.text.slice(1)}${unitText ? ` (${unitText})` : ""}, ${m.what}; darker is ${report.dark() ? "less" : "more"}`;
    $("sites-matrix").replaceChildren(make("p", { class: "note" }, name), make("table", { class: m.names.length > 8 ? "heat many" : "heat", "aria-label": name }, make("thead", {}, head), make("tbody", {}, ...rows)));
  };

  const start = () => {
    if (!data.matrices.length) return;
    controls();
    report.keep(draw);
  };
  return { start };
})();

report.settings = (() => {
  const { data, make } = report;

  const table = (grid) => {
    const known = grid.values.flat().filter((v) => v !== null), low = Math.min(...known), high = Math.max(...known);
    const failed = new Set(grid.failed.map(([row, column]) => `${row} ${column}`));
    const cell = (value, r, c) => {
      if (value === null) return make("td", { class: failed.has(`${r} ${c}`) ? "bad" : "" }, failed.has(`${r} ${c}`) ? "failed" : "");
      const node = make("td", { title: grid.n ? `n = ${grid.n[r][c]}` : null }, grid.unit ? report.digits(value) : report.three(value));
      report.tint(node, high > low ? (value - low) / (high - low) : 1);
      return node;
    };
    const rows = grid.rows.map((text, r) => make("tr", {}, make("th", { scope: "row" }, text), ...grid.values[r].map((value, c) => cell(value, r, c)))).reverse();
    const head = make("tr", {}, make("th", { class: "corner", scope: "col" }, `${grid.row_label} \\ ${grid.column_label}`), ...grid.columns.map((text) => make("th", { scope: "col" }, text)));
    const name = `${grid.title}${grid.unit ? ` (${grid.unit})` : ""}; darker is ${report.dark() ? "less" : "more"}`;
    return make("div", { class: "scroll" }, make("p", { class: "note" }, ...report.symbols(name)), make("table", { class: "heat", "aria-label": name }, make("thead", {}, head), make("tbody", {}, ...rows)));
  };
  return { start: () => { if (data.heat.length) report.keep(() => document.getElementById("heat").replaceChildren(...data.heat.map(table))); } };
})();

report.use = (() => {
  const { data, make } = report;
  const $ = (id) => document.getElementById(id);

  const score = (kind, c) => (c ? `${kind}: C_UC ${report.three(c.c_uc)}, mean ${report.digits(100 * c.mean)} % of capacity, C_CC ${report.three(c.c_cc)}, ${report.digits(c.left)} to ${report.digits(c.right)} ms` : null);
  const said = (bar) => [score("file to file", bar.file), score("memory to memory", bar.network), bar.odd ? "memory to memory is below file to file: these measurements do not fit together" : null].filter(Boolean);

  const segment = (bar, kind, value) => {
    const height = bar.parts[kind], look = data.parts[kind], node = make("span", { title: `${look.text}: ${report.three(height)}` }, height > 0.07 && kind !== "unused" ? value : "");
    node.style.flex = `${height} 0 0`;
    node.style.backgroundColor = look.colour;
    node.style.color = look.on;
    return node;
  };

  const draw = () => {
    const kinds = Object.keys(data.parts).filter((kind) => data.bars.some((bar) => bar.parts[kind] > 0));
    $("use-key").replaceChildren(...kinds.map((kind) => { const swatch = make("span", { class: "swatch", "aria-hidden": "true" }); swatch.style.backgroundColor = data.parts[kind].colour; return make("li", {}, swatch, data.parts[kind].text); }));
    $("use-bars").replaceChildren(...data.bars.flatMap((bar) => {
      const values = { file: report.three(bar.file?.c_uc), network: report.three(bar.network?.c_uc), unused: "" };
      const line = make("div", { class: "bar", role: "img", "aria-label": `${bar.name}: ${said(bar).join("; ")}` });
      kinds.filter((kind) => bar.parts[kind] > 0).forEach((kind) => line.append(segment(bar, kind, values[kind])));
      const name = make("div", {}, bar.name, bar.note ? make("span", { class: "note" }, ` ${bar.note}`) : null);
      return [name, make("div", {}, line, ...said(bar).map((text) => make("div", { class: text.startsWith("memory to memory is") ? "bad note" : "note" }, ...report.symbols(text))))];
    }));
  };
  return { start: () => { if (data.bars.length) report.keep(draw); } };
})();
