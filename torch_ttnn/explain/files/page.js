/* The page of compiled programs: their graph, memory, operations and moves. */
const programs = data.programs;
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
const WIDTH = 170, HEIGHT = 40;
let program = programs[0];

function showNodeTip(node, x, y) {
  showTip([["b", node.op], ["div", node.name], ["span", node.spec], ["div", node.module && "in " + node.module],
    ["div", node.time],
    ["div", node.note && "on the host, without a predicted time: " + node.note], ...node.weights.map((weight) => ["div", "with " + weight]),
    ["div", node.source]], x, y);
}

/* A canvas with the resolution of the screen, drawn at most once per frame. */
function surface(holder, draw) {
  const canvas = holder.querySelector("canvas"), context = canvas.getContext("2d");
  let waiting = false;
  function paint() {
    waiting = false;
    const ratio = devicePixelRatio || 1, width = holder.clientWidth, height = holder.clientHeight;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    draw(context, width, height);
  }
  const again = () => { if (!waiting) { waiting = true; requestAnimationFrame(paint); } };
  new ResizeObserver(again).observe(holder);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  return { canvas, again };
}

/* -- the graph ---------------------------------------------------------------------------------------------------- */

const view = { x: 0, y: 0, scale: 1, hover: -1, pinned: -1, found: new Set(), current: -1 };
const STRIP = 16;
let order = [], edges = [], top_ = 0, bottom_ = 1, left_ = 0, right_ = 1;

function loadGraph() {
  const nodes = program.nodes;
  order = nodes.map((_, index) => index).sort((a, b) => nodes[a].y - nodes[b].y);
  edges = [];
  nodes.forEach((node, index) => node.in.forEach((producer) => edges.push([producer, index])));
  top_ = nodes.reduce((least, node) => Math.min(least, node.y), Infinity) - 60;
  bottom_ = nodes.reduce((most, node) => Math.max(most, node.y), -Infinity) + 60;
  left_ = nodes.reduce((least, node) => Math.min(least, node.x), Infinity) - WIDTH;
  right_ = nodes.reduce((most, node) => Math.max(most, node.x), -Infinity) + WIDTH;
  Object.assign(view, { hover: -1, pinned: -1, found: new Set(), current: -1 });
  const width = byId("graph").clientWidth;
  view.scale = Math.min(1, Math.max(0.45, (width - 40) / (right_ - left_)));
  view.x = (left_ + right_) / 2 - width / 2 / view.scale;
  view.y = top_;
  graph.again();
}

function drawGraph(context, width, height) {
  const nodes = program.nodes, colour = {};
  for (const kind of ["input", "device", "move", "host", "output", "ink", "quiet", "line", "panel", "mark"]) colour[kind] = css(kind);
  const low = view.y - HEIGHT, high = view.y + height / view.scale + HEIGHT;
  const chosen = view.pinned >= 0 ? view.pinned : view.hover;
  context.save();
  context.scale(view.scale, view.scale);
  context.translate(-view.x, -view.y);
  context.lineWidth = Math.max(1, 0.6 / view.scale);
  for (const pass of [false, true]) {
    context.strokeStyle = pass ? colour.ink : colour.quiet;
    context.globalAlpha = pass ? 1 : 0.6;
    context.beginPath();
    for (const [producer, consumer] of edges) {
      if ((producer === chosen || consumer === chosen) !== pass) continue;
      const from = nodes[producer], to = nodes[consumer];
      if (Math.max(from.y, to.y) < low || Math.min(from.y, to.y) > high) continue;
      edge(context, from, to);
    }
    context.stroke();
  }
  context.globalAlpha = 1;
  const text = view.scale > 0.42;
  context.textBaseline = "middle";
  for (const index of order) {
    const node = nodes[index];
    if (node.y < low) continue;
    if (node.y > high) break;
    const x = node.x - WIDTH / 2, y = node.y - HEIGHT / 2;
    context.fillStyle = colour.panel;
    context.strokeStyle = colour[node.kind];
    context.lineWidth = (index === chosen ? 3 : 1.5) / Math.min(1, view.scale);
    context.beginPath();
    context.roundRect(x, y, WIDTH, HEIGHT, 7);
    context.fill();
    context.globalAlpha = text ? 0.16 : 0.75;
    context.fillStyle = colour[node.kind];
    context.fill();
    context.globalAlpha = 1;
    context.stroke();
    if (view.found.has(index)) {
      context.strokeStyle = colour.mark;
      context.lineWidth = (index === view.current ? 6 : 3) / view.scale;
      context.stroke();
    }
    if (!text) continue;
    context.fillStyle = colour.ink;
    context.font = "600 13px ui-monospace, monospace";
    context.fillText(clipped(node.op.replace(/^ttnn\./, "").replace(/^transformer\./, ""), 20), x + 8, y + 13);
    context.fillStyle = colour.quiet;
    context.font = "11px system-ui, sans-serif";
    context.fillText(clipped(node.spec, 26), x + 8, y + 28);
  }
  context.restore();
  if (text) drawModules(context, colour, low, high);
  drawStrip(context, width, height, colour);
}

/* An edge over several rows is routed around the nodes between. */
function edge(context, from, to) {
  const x0 = from.x, y0 = from.y + HEIGHT / 2, x1 = to.x, y1 = to.y - HEIGHT / 2;
  context.moveTo(x0, y0);
  if (y1 - y0 > 60 && Math.abs(x1 - x0) < WIDTH) {
    const aside = Math.max(x0, x1) + WIDTH * 0.62 + Math.min(40, (y1 - y0) / 60);
    context.bezierCurveTo(x0, y0 + 22, aside, y0 + 8, aside, y0 + 42);
    context.lineTo(aside, y1 - 42);
    context.bezierCurveTo(aside, y1 - 8, x1, y1 - 22, x1, y1);
  } else {
    const half = (y1 - y0) / 2;
    context.bezierCurveTo(x0, y0 + half, x1, y1 - half, x1, y1);
  }
}

function drawModules(context, colour, low, high) {
  let module = null, row = null;
  context.font = "11px ui-monospace, monospace";
  context.textBaseline = "middle";
  for (const index of order) {
    const node = program.nodes[index];
    if (node.y > high) break;
    if (!node.module || node.module === module) continue;
    module = node.module;
    if (node.y < low || node.y === row) continue;
    row = node.y;
    const y = (node.y - view.y) * view.scale;
    context.fillStyle = colour.panel;
    context.fillRect(6, y - 8, context.measureText(module).width + 6, 16);
    context.fillStyle = colour.quiet;
    context.fillText(module, 8, y);
  }
}

/* The whole program at the right edge: moves, host operations, and the visible part. */
function drawStrip(context, width, height, colour) {
  const at = (y) => (y - top_) / (bottom_ - top_) * height;
  context.fillStyle = colour.panel;
  context.fillRect(width - STRIP, 0, STRIP, height);
  for (const kind of ["device", "move", "host"]) {
    context.fillStyle = colour[kind];
    context.globalAlpha = kind === "device" ? 0.25 : 1;
    for (const node of program.nodes) if (node.kind === kind) context.fillRect(width - STRIP + 3, at(node.y) - 1, STRIP - 6, 2);
  }
  context.globalAlpha = 1;
  context.strokeStyle = colour.ink;
  context.lineWidth = 1;
  context.strokeRect(width - STRIP + 0.5, at(view.y) + 0.5, STRIP - 1, Math.max(6, at(view.y + height / view.scale) - at(view.y)));
}

const clipped = (text, limit) => text.length > limit ? text.slice(0, limit - 1) + "…" : text;

function nodeAt(event) {
  const box = graph.canvas.getBoundingClientRect();
  const x = (event.clientX - box.left) / view.scale + view.x, y = (event.clientY - box.top) / view.scale + view.y;
  return program.nodes.findIndex((node) => Math.abs(node.x - x) <= WIDTH / 2 && Math.abs(node.y - y) <= HEIGHT / 2);
}

function zoom(factor, x, y) {
  const scale = Math.min(3, Math.max(0.01, view.scale * factor));
  view.x += x / view.scale - x / scale;
  view.y += y / view.scale - y / scale;
  view.scale = scale;
  graph.again();
}

function focusNode(index) {
  const node = program.nodes[index], holder = byId("graph");
  view.scale = Math.max(view.scale, 0.8);
  view.x = node.x - holder.clientWidth / 2 / view.scale;
  view.y = node.y - holder.clientHeight / 2 / view.scale;
  view.pinned = index;
  graph.again();
}

const graph = surface(byId("graph"), drawGraph);
{
  const canvas = graph.canvas;
  let drag = null, moved = false;
  const local = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  const jump = (y) => {
    view.y = top_ + y / canvas.clientHeight * (bottom_ - top_) - canvas.clientHeight / 2 / view.scale;
    graph.again();
  };
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(-event.deltaY * 0.0015), ...local(event));
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    const [x, y] = local(event);
    drag = { x: event.clientX, y: event.clientY, strip: x > canvas.clientWidth - STRIP };
    moved = false;
    if (drag.strip) jump(y);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (drag && drag.strip) return jump(local(event)[1]);
    if (drag) {
      moved = moved || Math.abs(event.clientX - drag.x) + Math.abs(event.clientY - drag.y) > 3;
      view.x -= (event.clientX - drag.x) / view.scale;
      view.y -= (event.clientY - drag.y) / view.scale;
      drag.x = event.clientX;
      drag.y = event.clientY;
      return graph.again();
    }
    const index = nodeAt(event);
    if (index >= 0) showNodeTip(program.nodes[index], event.clientX, event.clientY);
    else tip.hidden = true;
    if (index !== view.hover) { view.hover = index; graph.again(); }
  });
  canvas.addEventListener("pointerup", (event) => {
    if (drag && !drag.strip && !moved) { view.pinned = nodeAt(event); graph.again(); }
    drag = null;
  });
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; view.hover = -1; graph.again(); });
  canvas.addEventListener("keydown", (event) => {
    const step = 80 / view.scale, by = { ArrowUp: [0, -step], ArrowDown: [0, step], ArrowLeft: [-step, 0], ArrowRight: [step, 0] }[event.key];
    if (!by) return;
    event.preventDefault();
    view.x += by[0];
    view.y += by[1];
    graph.again();
  });
  const middle = () => [canvas.clientWidth / 2, canvas.clientHeight / 2];
  byId("closer").onclick = () => zoom(1.4, ...middle());
  byId("farther").onclick = () => zoom(1 / 1.4, ...middle());
  byId("fit").onclick = () => {
    view.scale = Math.min((canvas.clientWidth - STRIP) / (right_ - left_), canvas.clientHeight / (bottom_ - top_), 1);
    view.x = (left_ + right_) / 2 - canvas.clientWidth / 2 / view.scale;
    view.y = (top_ + bottom_) / 2 - canvas.clientHeight / 2 / view.scale;
    graph.again();
  };
  byId("find").addEventListener("input", (event) => {
    const wanted = event.target.value.toLowerCase();
    const hits = wanted ? order.filter((index) => {
      const node = program.nodes[index];
      return (node.op + " " + node.name + " " + node.module + " " + node.source + " " + node.kind).toLowerCase().includes(wanted);
    }) : [];
    view.found = new Set(hits);
    view.current = -1;
    byId("found").textContent = wanted ? hits.length + " found" : "";
    graph.again();
  });
  byId("find").addEventListener("keydown", (event) => {
    const hits = [...view.found];
    if (event.key !== "Enter" || !hits.length) return;
    view.current = hits[(hits.indexOf(view.current) + 1) % hits.length];
    byId("found").textContent = hits.indexOf(view.current) + 1 + " of " + hits.length;
    focusNode(view.current);
  });
}

/* -- memory ------------------------------------------------------------------------------------------------------- */

const PLOTS = [{ title: "DRAM", after: 1, high: 2, colour: "device" }, { title: "L1 per core", after: 3, high: 4, colour: "move" }];
let at = -1;

function drawMemory(context, width, height) {
  const steps = program.steps, margin = 82, room = width - margin - 14, each = height / 2;
  context.font = "11px system-ui, sans-serif";
  if (!steps.length) { context.fillStyle = css("quiet"); context.fillText("nothing runs on the device", 20, 30); return; }
  const x = (step) => margin + step / steps.length * room;
  PLOTS.forEach((plot, number) => {
    const base = each * (number + 1) - 20, tall = each - 44;
    const peak = steps.reduce((most, step) => Math.max(most, step[plot.high]), 1);
    /* If weights are most of the memory, only the rest is plotted. */
    const floor = number === 0 && program.weights > 0.7 * peak ? program.weights : 0;
    const most = Math.max(peak - floor, 1);
    const y = (value) => base - Math.max(value - floor, 0) / most * tall;
    context.fillStyle = css("ink");
    context.fillText(plot.title + ": " + bytes(peak) + " at the peak" + (floor ? "; plotted above " + bytes(floor) + " of weights" : ""),
      margin, base - tall - 10);
    context.strokeStyle = css("line");
    context.lineWidth = 1;
    for (const share of [0, 0.5, 1]) {
      context.beginPath();
      const line = Math.round(base - share * tall) + 0.5;
      context.moveTo(margin, line);
      context.lineTo(width - 14, line);
      context.stroke();
      context.fillStyle = css("quiet");
      context.textAlign = "right";
      context.fillText(bytes(Math.round(most * share)), margin - 8, base - share * tall + 4);
      context.textAlign = "left";
    }
    area(context, steps.map((step) => step[plot.high]), margin, room, y, base, css(plot.colour), 0.35);
    area(context, steps.map((step) => step[plot.after]), margin, room, y, base, css(plot.colour), 0.55);
    if (number === 0 && program.weights && !floor) {
      area(context, [program.weights], margin, room, y, base, css("weights"), 1);
      context.fillStyle = css("ink");
      if (base - y(program.weights) > 14) context.fillText("weights " + bytes(program.weights), margin + 8, base - 6);
    }
    if (at >= 0) {
      context.strokeStyle = css("ink");
      context.beginPath();
      context.moveTo(x(at + 0.5), base - tall);
      context.lineTo(x(at + 0.5), base);
      context.stroke();
    }
  });
}

/* With more steps than pixels, every pixel shows the maximum of its steps, so that no peak is lost. */
function area(context, values, left, room, y, base, colour, alpha) {
  const columns = Math.min(values.length, Math.floor(room)), each = room / columns;
  context.globalAlpha = alpha;
  context.fillStyle = colour;
  context.beginPath();
  context.moveTo(left, base);
  for (let column = 0; column < columns; column++) {
    const from = Math.floor(column * values.length / columns), to = Math.max(from + 1, Math.floor((column + 1) * values.length / columns));
    let most = 0;
    for (let step = from; step < to; step++) most = Math.max(most, values[step]);
    context.lineTo(left + column * each, y(most));
    context.lineTo(left + (column + 1) * each, y(most));
  }
  context.lineTo(left + room, base);
  context.fill();
  context.globalAlpha = 1;
}

const memory = surface(byId("memory"), drawMemory);
{
  const canvas = memory.canvas;
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect(), share = (event.clientX - box.left - 82) / (box.width - 96);
    at = share < 0 || share >= 1 ? -1 : Math.floor(share * program.steps.length);
    memory.again();
    if (at < 0) { tip.hidden = true; return; }
    const [index, dram, dramHigh, l1, l1High] = program.steps[at], node = program.nodes[index];
    showTip([["b", node.op], ["div", "step " + (at + 1) + " of " + program.steps.length + ", " + node.name],
      ["span", "DRAM " + bytes(dramHigh) + " during, " + bytes(dram) + " after"],
      ["div", "L1 per core " + bytes(l1High) + " during, " + bytes(l1) + " after"], ["div", node.source]], event.clientX, event.clientY);
  });
  canvas.addEventListener("pointerleave", () => { at = -1; tip.hidden = true; memory.again(); });
  canvas.addEventListener("click", () => {
    if (at < 0) return;
    focusNode(program.steps[at][0]);
    byId("graph").scrollIntoView({ behavior: "smooth", block: "center" });
  });
}

/* -- tables ------------------------------------------------------------------------------------------------------- */

const toNode = (index) => { focusNode(index); byId("graph").scrollIntoView({ behavior: "smooth", block: "center" }); };

/* Predicted times by board and by operation; of one program, or of all. */
function timeTables(found) {
  if (!found.boards.length) return [];
  const times = ["gaps", "transfers", "a call as is", "a call traced", "interval with two queues"].map((name) => [name, "nanoseconds"]);
  const boards = table("Predicted time by board", [["board", "short"], ["programs", "count"], ["kernels", "nanoseconds"], ["expected error", "percent"], ["uncalibrated", "percent"], ...times], found.boards);
  const operations = table("Where the predicted time goes", [["operation", "short"], ["times", "number"], ["share", "percent"], ...found.columns.map((name) => [name, "nanoseconds"])], found.operations);
  return [boards, operations];
}

function loadTables() {
  const nodes = program.nodes, result = [];
  const memoryOf = new Map(program.steps.map(([index, , dramHigh, , l1High]) => [index, [dramHigh, l1High]]));
  if (program.host.length) result.push(table("Host operations", [["operation", "short"], ["reason", ""], ["source", ""]], program.host));
  if (data.missed.length) result.push(table("Left to Python by torch.compile, so in no program", [["what", "short"], ["reason", ""], ["source", ""]], data.missed));
  result.push(...timeTables(program.predicted));
  result.push(table("Device operations", [["operation", "short"], ["times", "number"]], program.counts));
  result.push(table("Moves", [["kind", "short"], ["bytes", "bytes"], ["reason", ""], ["source", ""]], program.moves));
  if (program.border.length) result.push(table("Views and copies by the host around moves", [["operation", "short"], ["bytes", "bytes"], ["reason", ""], ["source", ""]], program.border));
  if (program.fusions.length) result.push(table("Fusions", [["fusion", "short"], ["replaces", ""], ["source", ""]], program.fusions));
  const calls = nodes.map((node, index) => [node, index]).filter(([node]) => !["input", "output"].includes(node.kind));
  result.push(table("Steps",
    [["step", "number"], ["operation", "short"], ["kind", "short"], ["result", ""], ["module", ""], ["DRAM", "bytes"], ["L1 per core", "bytes"], ["predicted", "nanoseconds"], ["source", ""]],
    calls.map(([node, index], step) => [step + 1, node.op, node.kind, node.spec, node.module, ...(memoryOf.get(index) || [0, 0]), node.ns, node.source, index]), (row) => toNode(row[9])));
  byId("tables").replaceChildren(...result);
}

/* -- programs ----------------------------------------------------------------------------------------------------- */

function load() {
  const device = program.counts.reduce((sum, [, count]) => sum + count, 0);
  byId("program-line").textContent = program.before + " ATen operations became " + device + " device operations, " +
    program.host.length + " host operations and " + program.moves.length + " moves";
  byId("code").textContent = program.code;
  byId("find").value = byId("found").textContent = "";
  loadTables();
  loadGraph();
  memory.again();
}

byId("predicted").textContent = data.predicted.head;
if (programs.length > 1) byId("all-times").append(...timeTables(data.predicted));
programs.forEach((each, index) => byId("program").append(new Option(each.name + " (" + each.nodes.length + " nodes)", index)));
byId("program").onchange = (event) => { program = programs[event.target.value]; load(); };
load();
