/* The page of a profile: advice, the timeline, the roofline and tables. All times are predicted; arrays are in ns. */
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
const COLOUR = { compute: "compute", DRAM: "dram", NoC: "noc", latency: "latency" };
const programs = data.programs.map((row) => Object.fromEntries(data.columns.map((name, k) => [name, row[k]])));
const hosts = data.hosts.map(([name, at, source]) => ({ name, at, source }));

function duration(ns) {
  const [size, unit] = ns >= 1e9 ? [1e9, "s"] : ns >= 1e6 ? [1e6, "ms"] : ns >= 1e3 ? [1e3, "µs"] : [1, "ns"];
  return +(ns / size).toPrecision(3) + " " + unit;
}

const micro = (ns) => Math.round(ns / 10) / 100;

function details(row) {
  return [["b", row.program], ["div", row.operation + (row.module ? " in " + row.module : "")],
    ["span", duration(row.kernel) + " ± " + Math.round(row.error * 100) + "% (" + row.family + (row.calibrated ? "" : ", uncalibrated") + "), bound by " + row.bound],
    ["div", row.cores + " of " + data.cores + " cores, " + duration(row.gap) + " after the program before"],
    ["div", row.fidelity && "fidelity " + row.fidelity], ["div", row.input && "reads " + row.input],
    ["div", row.output && "writes " + row.output], ["div", row.source]];
}

/* -- advice ------------------------------------------------------------------------------------------------------- */

byId("advice").append(...data.advice.map((each) => {
  const result = element("div", undefined, "advice"), text = element("div");
  text.append(element("p", each.kind), element("p", each.text),
    element("p", each.calls + " calls; " + each.accuracy, each.same ? "quiet" : "rounds"));
  const places = element("div", undefined, "places quiet");
  places.append(...each.places.map((place) => element("div", place)));
  result.append(element("b", duration(each.gain)), text, places);
  return result;
}));
if (!data.advice.length) byId("advice").append(element("p", "No change that was tried is predicted to gain anything.", "quiet"));

/* -- timeline ----------------------------------------------------------------------------------------------------- */

const holder = byId("timeline"), canvas = holder.querySelector("canvas");
const end = programs.reduce((most, row) => Math.max(most, row.start + row.kernel), 1), first = programs.length ? programs[0].host : 0;
const view = { from: first, span: Math.max(end - first, 1), hover: -1, pinned: -1, found: new Set() };
const LANES = { host: [26, 40], chip: [92, 70] };
let waiting = false;

function repaint() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; paint(); });
}

function paint() {
  const ratio = devicePixelRatio || 1, width = holder.clientWidth, height = holder.clientHeight, context = canvas.getContext("2d");
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  const x = (ns) => (ns - view.from) / view.span * width;
  context.font = "11px system-ui, sans-serif";
  context.fillStyle = css("quiet");
  context.fillText("host", 6, 18);
  context.fillText("chip", 6, 84);
  const step = axisStep(view.span / Math.max(width / 110, 1));
  context.strokeStyle = css("line");
  for (let at = first + Math.ceil((view.from - first) / step) * step; at < view.from + view.span; at += step) {
    context.beginPath();
    context.moveTo(x(at), 24);
    context.lineTo(x(at), height - 20);
    context.stroke();
    context.fillText(at > first ? duration(at - first) : "0", x(at) + 3, height - 7);
  }
  programs.forEach((row, index) => {
    if (row.start > view.from + view.span || Math.max(row.start + row.kernel, row.host + row.hosting) < view.from && row.host < view.from) return;
    bar(context, x(row.host), x(row.host + row.hosting), LANES.host, css("line"), 1);
    const strong = index === view.hover || index === view.pinned || view.found.has(index);
    bar(context, x(row.start), x(row.start + row.kernel), LANES.chip, css(COLOUR[row.bound]), strong ? 1 : 0.72);
    if (index === view.pinned || view.found.has(index)) frame(context, x(row.start), x(row.start + row.kernel), LANES.chip);
    const room = x(row.start + row.kernel) - x(row.start);
    if (room > 60) {
      context.fillStyle = css("panel");
      context.fillText(row.program.replace("DeviceOperation", "").slice(0, Math.floor(room / 7)), Math.max(x(row.start), 0) + 5, LANES.chip[0] + 38);
      context.fillStyle = css("quiet");
    }
  });
  context.fillStyle = css("hosted");
  for (const host of hosts) context.fillRect(x(host.at) - 1, LANES.host[0] - 8, 3, LANES.host[1] + 8);
}

function bar(context, from, to, [top, tall], colour, alpha) {
  context.globalAlpha = alpha;
  context.fillStyle = colour;
  context.fillRect(from, top, Math.max(to - from - (to - from > 3 ? 0.6 : 0), 0.7), tall);
  context.globalAlpha = 1;
}

function frame(context, from, to, [top, tall]) {
  context.strokeStyle = css("ink");
  context.lineWidth = 2;
  context.strokeRect(from, top, Math.max(to - from, 2), tall);
  context.lineWidth = 1;
}

function axisStep(rough) {
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  return [1, 2, 5, 10].find((each) => each * power >= rough) * power;
}

function zoom(factor, share) {
  const span = Math.min(Math.max(view.span / factor, 200), (end - first) * 1.5 + 1000);
  view.from += (view.span - span) * share;
  view.span = span;
  repaint();
}

function programAt(event) {
  const box = canvas.getBoundingClientRect(), y = event.clientY - box.top;
  const at = view.from + (event.clientX - box.left) / box.width * view.span, slack = view.span / box.width * 2;
  if (y >= LANES.chip[0]) return programs.findIndex((row) => row.start - slack <= at && at <= row.start + row.kernel + slack);
  return programs.findIndex((row) => row.host <= at && at <= row.host + Math.max(row.hosting, slack));
}

function show(index) {
  const row = programs[index];
  view.pinned = index;
  if (row.start < view.from || row.start + row.kernel > view.from + view.span) view.from = row.start - view.span / 2;
  repaint();
}

{
  let drag = null, moved = false;
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const box = canvas.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY * 0.0015), (event.clientX - box.left) / box.width);
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); drag = event.clientX; moved = false; });
  canvas.addEventListener("pointermove", (event) => {
    if (drag !== null) {
      moved = moved || Math.abs(event.clientX - drag) > 3;
      view.from -= (event.clientX - drag) / canvas.clientWidth * view.span;
      drag = event.clientX;
      return repaint();
    }
    const index = programAt(event);
    if (index >= 0) showTip(details(programs[index]), event.clientX, event.clientY);
    else tip.hidden = true;
    if (index !== view.hover) { view.hover = index; repaint(); }
  });
  canvas.addEventListener("pointerup", (event) => {
    if (!moved) {
      view.pinned = programAt(event);
      if (view.pinned >= 0) filterRows(String(programs[view.pinned].number));
      repaint();
    }
    drag = null;
  });
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; view.hover = -1; repaint(); });
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -0.2, ArrowRight: 0.2 }[event.key];
    if (!step) return;
    event.preventDefault();
    view.from += step * view.span;
    repaint();
  });
  byId("closer").onclick = () => zoom(1.6, 0.5);
  byId("farther").onclick = () => zoom(1 / 1.6, 0.5);
  byId("fit").onclick = () => { view.from = first; view.span = Math.max(end - first, 1); repaint(); };
  let current = -1;
  byId("find").addEventListener("input", (event) => {
    const wanted = event.target.value.toLowerCase();
    const text = (row) => [row.program, row.operation, row.module, row.source].join(" ").toLowerCase();
    view.found = new Set(wanted ? programs.map((_, index) => index).filter((index) => text(programs[index]).includes(wanted)) : []);
    current = -1;
    byId("found").textContent = wanted ? view.found.size + " found" : "";
    repaint();
  });
  byId("find").addEventListener("keydown", (event) => {
    const hits = [...view.found];
    if (event.key !== "Enter" || !hits.length) return;
    current = (current + 1) % hits.length;
    byId("found").textContent = current + 1 + " of " + hits.length;
    show(hits[current]);
  });
  new ResizeObserver(repaint).observe(holder);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
}

/* -- roofline ----------------------------------------------------------------------------------------------------- */

function drawRoofline() {
  const { peaks, dram, points } = data.roofline;
  if (!points.length) return byId("roofline").append(element("p", "No program computes matrix products.", "quiet"));
  const width = 1000, height = 360, left = 70, right = 90, top = 14, bottom = 40;
  const most = Math.max(...Object.values(peaks)) * 1.6;
  const low = Math.min(0.1, ...points.map((point) => point.intensity)) / 1.5, high = Math.max(2000, ...points.map((point) => point.intensity)) * 1.5;
  const least = Math.min(10, ...points.map((point) => point.gflops)) / 1.5;
  const place = (value, from, to, a, b) => a + Math.log(value / from) / Math.log(to / from) * (b - a);
  const x = (value) => place(value, low, high, left, width - right), y = (value) => place(value, least, most, height - bottom, top);
  const picture = svg("svg", { viewBox: "0 0 " + width + " " + height, class: "chart", role: "img", "aria-label": "roofline" });
  for (let power = Math.ceil(Math.log10(low)); 10 ** power <= high; power++) {
    picture.append(svg("line", { x1: x(10 ** power), x2: x(10 ** power), y1: top, y2: height - bottom, class: "level" }),
      svg("text", { x: x(10 ** power), y: height - bottom + 16, "text-anchor": "middle" }, count(10 ** power)));
  }
  for (let power = Math.ceil(Math.log10(least)); 10 ** power <= most; power++) {
    picture.append(svg("line", { x1: left, x2: width - right, y1: y(10 ** power), y2: y(10 ** power), class: "level" }),
      svg("text", { x: left - 6, y: y(10 ** power) + 4, "text-anchor": "end" }, count(10 ** power)));
  }
  picture.append(svg("text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, "FLOP per byte of DRAM"),
    svg("text", { x: left, y: 10, "text-anchor": "start" }, "GFLOP/s"));
  for (const [name, peak] of Object.entries(peaks)) {
    const ridge = peak / dram;
    picture.append(svg("polyline", { class: "limit", points: [[Math.max(low, least / dram), Math.max(low, least / dram) * dram], [ridge, peak], [high, peak]]
      .map(([a, b]) => x(a) + "," + y(b)).join(" ") }), svg("text", { x: width - right + 6, y: y(peak) + 4 }, name));
  }
  const total = points.reduce((sum, point) => sum + point.kernel, 0);
  for (const point of [...points].sort((a, b) => b.kernel - a.kernel)) {
    const circle = svg("circle", { cx: x(Math.max(point.intensity, low)), cy: y(Math.max(point.gflops, least)), r: 4 + 22 * Math.sqrt(point.kernel / total), class: "dot " + point.bound });
    picture.append(withTip(circle, () => [["b", point.program + " × " + point.times], ["div", point.operation], ["span", point.shape],
      ["div", duration(point.kernel) + ", " + count(Math.round(point.gflops)) + " GFLOP/s, " + point.intensity.toPrecision(3) + " FLOP per byte"]]));
  }
  byId("roofline").append(picture);
}

drawRoofline();

/* -- tables ------------------------------------------------------------------------------------------------------- */

const share = (ns) => ns / Math.max(data.kernels, 1);
const grouped = (title, heading, rows) => table(title, [[heading, ""], ["programs", "number"], ["time µs", "number"], ["share", "percent"],
  ["gaps µs", "number"], ["cores", "number"], ["bound", "short"]],
  rows.map((row) => [row.name || "(unknown)", row.count, micro(row.kernel_ns), share(row.kernel_ns), micro(row.gap_ns), row.cores, row.bound]));
const all = table("All programs", [["id", "number"], ["program", "short"], ["operation", "short"], ["time µs", "number"], ["± %", "number"],
  ["gap µs", "number"], ["cores", "number"], ["bound", "short"], ["DRAM %", "number"], ["utilization %", "number"], ["fidelity", "short"],
  ["input", "short"], ["output", "short"], ["module", "short"], ["source", "short"]],
  programs.map((row) => [row.number, row.program, row.operation, micro(row.kernel), Math.round(row.error * 100), micro(row.gap), row.cores,
    row.bound, row.dram, row.utilization === null ? "" : row.utilization, row.fidelity, row.input, row.output, row.module, row.source]),
  (row) => show(programs.findIndex((each) => each.number === row[0])));

function filterRows(text) {
  const filter = all.querySelector("input");
  filter.value = text;
  filter.dispatchEvent(new Event("input"));
}

byId("tables").append(grouped("By program", "program", data.by_program), grouped("By operation", "operation", data.by_operation));
if (data.by_module.some((row) => row.name)) byId("tables").append(grouped("By module", "module", data.by_module));
if (data.by_source.some((row) => row.name)) byId("tables").append(grouped("By source line", "source", data.by_source));
byId("tables").append(all);
if (hosts.length) byId("tables").append(table("On the host, time not predicted", [["operation", ""], ["source", "short"]], hosts.map((host) => [host.name, host.source])));
