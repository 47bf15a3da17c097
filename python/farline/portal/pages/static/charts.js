"use strict";
// Charts of a path and of a running transfer, drawn by uPlot from data that the page or its events bring.
(() => {
  const steps = {
    bps: [[1e12, "Tbit/s"], [1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"], [1, "bit/s"]],
    bytes: [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]],
  };
  const figure = (kind, value) => {
    if (value === null || value === undefined) return "–";
    const [factor, unit] = steps[kind].find(([step]) => value >= step) || steps[kind][4];
    return `${Number((value / factor).toPrecision(3))} ${unit}`;
  };
  const span = (s) => {
    if (s === null || s === undefined) return "–";
    if (s < 90) return `${Math.round(s)} s`;
    if (s < 5400) return `${Math.round(s / 60)} min`;
    return s < 172800 ? `${(s / 3600).toFixed(1)} h` : `${(s / 86400).toFixed(1)} days`;
  };
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const axis = (label, more = {}) => ({
    stroke: colour("soft"), grid: { stroke: colour("grid"), width: 1 }, ticks: { stroke: colour("grid") },
    label, labelSize: 22, font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif", ...more,
  });
  const scaled = (values) => {
    const largest = Math.max(1, ...values.filter((v) => v !== null && isFinite(v)));
    return steps.bps.find(([step]) => largest >= step);
  };
  const points = (name, size = 7) => ({ stroke: colour(name), fill: colour(name), paths: () => null, points: { show: true, size, fill: colour(name), stroke: colour(name) } });
  const drawn = (box, options, data) => {
    if (!box) return null;
    box.replaceChildren();
    const plot = new uPlot({ width: box.clientWidth, height: 280, legend: { show: false }, cursor: { drag: { x: false, y: false } }, ...options }, data, box);
    const canvas = box.querySelector("canvas");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", box.dataset.label);
    return plot;
  };
  const redraws = [];
  const keep = (draw) => { draw(); redraws.push(draw); };
  const again = () => redraws.forEach((draw) => draw());
  let timer = 0;
  addEventListener("resize", () => { clearTimeout(timer); timer = setTimeout(again, 150); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);

  const source = document.getElementById("data");
  if (source) {
    const { history, profile } = JSON.parse(source.textContent);
    const box = document.getElementById("history");
    if (history.at.length) keep(() => {
      const known = [...history.files, ...history.memory, history.capacity].filter((v) => v !== null);
      const [factor, unit] = scaled(known);
      const of = (values) => values.map((v) => (v === null ? null : v / factor));
      const top = (Math.max(...known) / factor) * 1.08;
      const [first, last] = [history.at[0], history.at[history.at.length - 1]];
      const margin = Math.max(60, (last - first) * 0.03);
      drawn(box, {
        scales: { x: { range: [first - margin, last + margin] }, y: { range: [0, top] } }, axes: [axis("Ended"), axis(unit, { size: 60 })],
        series: [{}, points("accent"), points("good"), { stroke: colour("soft"), dash: [6, 4], width: 1.5, points: { show: false } }],
      }, [history.at, of(history.files), of(history.memory), history.at.map(() => (history.capacity ? history.capacity / factor : null))]);
    });
    if (profile.rtt_ms.length && document.getElementById("profile")) keep(() => {
      const order = profile.rtt_ms.map((_, i) => i).sort((a, b) => profile.rtt_ms[a] - profile.rtt_ms[b]);
      const [factor, unit] = scaled(profile.rate_bps);
      const of = (here) => order.map((i) => (profile.here[i] === here ? profile.rate_bps[i] / factor : null));
      const top = (Math.max(...profile.rate_bps) / factor) * 1.1;
      const right = Math.max(...profile.rtt_ms) * 1.06;
      drawn(document.getElementById("profile"), {
        scales: { x: { time: false, range: [0, right] }, y: { range: [0, top] } },
        axes: [axis("Round-trip time (ms)"), axis(unit, { size: 60 })], series: [{}, points("accent", 7), points("bad", 11)],
      }, [order.map((i) => profile.rtt_ms[i]), of(false), of(true)]);
    });
  }

  const transfer = document.getElementById("transfer");
  if (transfer) {
    const rates = { at: [], bps: [] }, log = document.getElementById("log");
    const show = (name, text) => { document.querySelector(`[data-live="${name}"]`).textContent = text; };
    const say = (what, text, bad = false) => {
      const line = document.createElement("li"), head = document.createElement("b"), body = document.createElement("span");
      head.textContent = what;
      body.textContent = text;
      if (bad) line.className = "bad";
      line.append(head, body);
      log.prepend(line);
      while (log.children.length > 200) log.lastChild.remove();
    };
    const draw = () => {
      if (rates.at.length < 2) return;
      const [factor, unit] = scaled(rates.bps), top = (Math.max(...rates.bps) / factor) * 1.1 || 1;
      drawn(document.getElementById("rate"), {
        scales: { y: { range: [0, top] } }, axes: [axis("Time"), axis(unit, { size: 60 })],
        series: [{}, { stroke: colour("accent"), width: 2, fill: colour("shade"), points: { show: false } }],
      }, [rates.at, rates.bps.map((v) => v / factor)]);
    };
    redraws.push(draw);
    let waiting = 0;
    const later = () => { if (!waiting) waiting = setTimeout(() => { waiting = 0; draw(); }, 200); };
    const live = !["succeeded", "failed", "cancelled"].includes(transfer.dataset.state);
    const progressed = (one) => {
      rates.at.push(one.at);
      rates.bps.push(one.rate_bps);
      later();
      if (!live) return;
      show("share", one.all_found && one.found_bytes ? `${((100 * one.bytes) / one.found_bytes).toFixed(1)} %` : "–");
      show("bytes", `${figure("bytes", one.bytes)} of ${figure("bytes", one.found_bytes)}${one.all_found ? "" : "+"}`);
      show("rate", figure("bps", one.rate_bps));
      show("streams", one.streams === 1 ? "1 stream" : `${one.streams} streams`);
      show("files", String(one.files));
      show("failed", `${one.failed_files} failed`);
      show("left", span(one.left_s));
      show("limit", one.limit ? `waiting for ${one.limit}` : "");
      const bar = document.querySelector(".wide-progress progress");
      if (bar && one.all_found && one.found_bytes) { bar.max = one.found_bytes; bar.value = one.bytes; }
    };
    const events = new EventSource(transfer.dataset.events);
    const on = (name, act) => events.addEventListener(name, (event) => act(JSON.parse(event.data)));
    on("progress", progressed);
    on("start", (one) => say("Started", `attempt ${one.attempt}`));
    on("session", (one) => say("Session", one.run_id));
    on("notice", (one) => { if (one.kind === "notice" || one.kind === "detail") say("Notice", one.text); });
    on("adjusted", (one) => say("Adjusted", one.refused ? `${one.knob}: ${one.refused}` : `${one.knob}: ${one.before ?? "automatic"} to ${one.after ?? "automatic"}`, Boolean(one.refused)));
    on("file", (one) => say(one.status === "failed" ? "Failed" : "Skipped", `${one.path}: ${one.reason ?? ""}`, one.status === "failed"));
    // EventSource has an event of its own called error, without data.
    events.addEventListener("error", (event) => { if (event.data) { const one = JSON.parse(event.data); say("Fault", `${one.message}; trying again in ${Math.round(one.again_in_s)} s`, true); } });
    on("end", (one) => {
      say("Ended", one.exit_code === 0 ? "complete" : one.stopped ? "stopped" : one.error ? one.error.message : "failed", one.exit_code !== 0 && !one.stopped);
      // The page says what it came to once the service has noted it.
      if (live) setTimeout(() => location.reload(), 1500);
    });
    events.addEventListener("close", () => { events.close(); if (live) location.reload(); });
  }
  document.body.dataset.charts = "";
})();
