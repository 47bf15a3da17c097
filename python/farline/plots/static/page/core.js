"use strict";
// Shared by all parts of the report: the data, numbers as people read them, colours, small DOM helpers.
const report = { data: JSON.parse(document.getElementById("data").textContent), redraws: [] };

report.digits = (value, significant = 3) => {
  if (value === null || !isFinite(value)) return "–";
  if (value === 0) return "0";
  const places = Math.max(0, significant - 1 - Math.floor(Math.log10(Math.abs(value))));
  return value.toLocaleString("en", { minimumFractionDigits: places, maximumFractionDigits: places, useGrouping: false });
};

// Factor and unit that make the largest figure a readable number; `kind` is a unit of the data.
report.unit = (kind, largest) => {
  const ladder = {
    "bit/s": [[1e12, "Tbit/s"], [1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"], [1, "bit/s"]],
    "µs": [[1e6, "s"], [1e3, "ms"], [1, "µs"]],
    B: [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]],
  }[kind];
  if (!ladder) return { factor: 1, text: kind };
  const [factor, text] = ladder.find(([step]) => largest >= step) || ladder[ladder.length - 1];
  return { factor, text };
};

report.figure = (kind, value) => {
  if (value === null || value === undefined) return "–";
  const unit = report.unit(kind, Math.abs(value));
  return `${report.digits(value / unit.factor)} ${unit.text}`.trim();
};

// Two figures in one unit: "8.42 to 8.86 Gbit/s".
report.range = (kind, low, high) => {
  const unit = report.unit(kind, Math.max(Math.abs(low), Math.abs(high)));
  return `${report.digits(low / unit.factor)} to ${report.digits(high / unit.factor)} ${unit.text}`.trim();
};

report.dark = () =>
  !document.documentElement.hasAttribute("data-print") && matchMedia("(prefers-color-scheme: dark)").matches;

report.theme = () => {
  const style = getComputedStyle(document.documentElement);
  const pick = (name) => style.getPropertyValue(`--${name}`).trim();
  return { ink: pick("ink"), soft: pick("soft"), grid: pick("grid"), shade: pick("shade"), bad: pick("bad"), paper: pick("paper"), accent: pick("accent") };
};

report.palette = (count, ordered) => {
  const colours = report.data.colours[report.dark() ? "dark" : "light"];
  if (!ordered || count < 2) return Array.from({ length: count }, (_, i) => colours.words[i % colours.words.length]);
  const last = colours.steps.length - 1;
  return Array.from({ length: count }, (_, i) => colours.steps[Math.round((i * last) / (count - 1))]);
};

report.make = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") node.className = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
};

report.draw = (tag, attributes, ...children) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
};

// Text as nodes, with the index of the coefficients' names below: C_UC and others.
report.symbols = (text) => text.split(/\b(C_(?:UC|CC|U))\b/).map((part, i) => {
  if (i % 2 === 0) return part;
  const node = report.make("span", {}, "C");
  node.append(report.make("sub", {}, part.slice(2)));
  return node;
});

// A labelled choice; `options` are [value, text] pairs, `change` gets the chosen value.
report.choice = (text, options, chosen, change, kind = "") => {
  const select = report.make("select", { onchange: (event) => change(event.target.value) });
  for (const [value, name] of options) {
    select.append(report.make("option", { value, selected: String(value) === String(chosen) }, name));
  }
  return report.make("label", { class: kind }, text, select);
};

report.tick = (text, checked, change) => {
  const box = report.make("input", { type: "checkbox", onchange: (event) => change(event.target.checked) });
  box.checked = checked;
  return report.make("label", { class: "tick" }, box, text);
};

report.table = (caption, columns, rows) => {
  const head = report.make("tr", {}, ...columns.map((text) => report.make("th", { scope: "col" }, text)));
  const body = rows.map((cells) => report.make("tr", {}, ...cells.map((text) => report.make("td", {}, String(text)))));
  return report.make("table", {}, report.make("caption", {}, caption), report.make("thead", {}, head), report.make("tbody", {}, ...body));
};

// Draws again when colours or widths change; `draw` clears what it drew before.
report.keep = (draw) => {
  report.redraws.push(draw);
  draw();
};

report.redraw = () => report.redraws.forEach((draw) => draw());

report.markers = ["circle", "square", "up", "diamond", "down", "plus", "cross", "star"];

// Adds the outline of a marker to a canvas path, centred at x, y with radius r.
report.marker = (context, kind, x, y, r) => {
  const polygon = (...turns) => turns.forEach(([dx, dy], i) => context[i ? "lineTo" : "moveTo"](x + dx * r, y + dy * r));
  const shapes = {
    circle: () => context.arc(x, y, r, 0, 2 * Math.PI),
    square: () => polygon([-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]),
    up: () => polygon([0, -1.2], [1.1, 0.9], [-1.1, 0.9]),
    down: () => polygon([0, 1.2], [1.1, -0.9], [-1.1, -0.9]),
    diamond: () => polygon([0, -1.25], [1.25, 0], [0, 1.25], [-1.25, 0]),
    plus: () => polygon([-0.4, -1.2], [0.4, -1.2], [0.4, -0.4], [1.2, -0.4], [1.2, 0.4], [0.4, 0.4], [0.4, 1.2], [-0.4, 1.2], [-0.4, 0.4], [-1.2, 0.4], [-1.2, -0.4], [-0.4, -0.4]),
    cross: () => polygon([-1.1, -0.7], [-0.7, -1.1], [0, -0.4], [0.7, -1.1], [1.1, -0.7], [0.4, 0], [1.1, 0.7], [0.7, 1.1], [0, 0.4], [-0.7, 1.1], [-1.1, 0.7], [-0.4, 0]),
    star: () => polygon(...Array.from({ length: 10 }, (_, i) => { const a = (i * Math.PI) / 5 - Math.PI / 2, s = i % 2 ? 0.6 : 1.4; return [s * Math.cos(a), s * Math.sin(a)]; })),
  };
  context.beginPath();
  shapes[kind]();
  context.closePath();
};

// The same marker as a small picture for a key.
report.keyMark = (kind, colour, { dashed = false, line = true } = {}) => {
  const canvas = report.make("canvas", { width: 52, height: 28, "aria-hidden": "true" });
  canvas.style.width = "26px";
  canvas.style.height = "14px";
  const context = canvas.getContext("2d");
  context.strokeStyle = context.fillStyle = colour;
  context.lineWidth = 4;
  if (dashed) context.setLineDash([8, 5]);
  context.beginPath();
  context.moveTo(2, 14);
  context.lineTo(50, 14);
  if (line) context.stroke();
  if (kind) { report.marker(context, kind, 26, 14, 8); context.fill(); }
  return canvas;
};

// Options that every curve chart shares: axes in the page's colours, no built-in legend.
report.axes = (theme, xLabel, yLabel) => {
  const font = `12px ${getComputedStyle(document.body).fontFamily}`;
  const axis = { stroke: theme.soft, font, labelFont: font, labelSize: 20, ticks: { stroke: theme.grid, width: 1, size: 5 } };
  return [
    { ...axis, grid: { show: false }, ...(xLabel ? { label: xLabel } : {}), size: 30 },
    { ...axis, grid: { stroke: theme.grid, width: 1 }, label: yLabel, size: 54, labelGap: 2 },
  ];
};

// Round places between low and high to write numbers at.
report.places = (low, high, count) => {
  const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((s) => s * power >= rough) * power, found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step) found.push(at);
  return found;
};

// Black or white, whichever reads better on a colour given as hue, saturation and lightness.
report.inkOn = (hue, saturation, lightness) => {
  const a = saturation * Math.min(lightness, 1 - lightness);
  const part = (n) => {
    const k = (n + hue / 30) % 12, value = lightness - a * Math.max(-1, Math.min(k - 3, 9 - k, 1));
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * part(0) + 0.7152 * part(8) + 0.0722 * part(4) > 0.179 ? "#000000" : "#ffffff";
};

report.width = (box) => Math.max(240, Math.floor(box.clientWidth));

// Lets the headings of a table sort its rows; rows without a figure stay last.
report.sortable = (table) => {
  const body = table.tBodies[0], headings = [...table.tHead.rows[0].cells];
  const value = (row, column) => row.cells[column].dataset.sort;
  const compare = (a, b) => {
    if (a === "" || b === "") return (a === "") - (b === "");
    const difference = Number(a) - Number(b);
    return Number.isNaN(difference) ? a.localeCompare(b) : difference;
  };
  headings.forEach((heading, column) => {
    const button = report.make("button", { type: "button" }, ...heading.childNodes);
    heading.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = heading.getAttribute("aria-sort") === "ascending";
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", down ? "descending" : "ascending");
      const known = [...body.rows].filter((row) => value(row, column) !== "");
      const open = [...body.rows].filter((row) => value(row, column) === "");
      known.sort((a, b) => compare(value(a, column), value(b, column)) * (down ? -1 : 1));
      body.append(...known, ...open);
    });
  });
};
