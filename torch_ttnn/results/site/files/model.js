/* One model in one mode: outcomes of its operations, transfers, memory, times and accuracy. */
const choice = chosen({ mode: data.rows[0].mode, find: "", outcome: "", sort: "-calls" }), { state } = choice;
const modes = element("span", undefined, "switch"), body = element("div");
modes.setAttribute("role", "group");
modes.setAttribute("aria-label", "mode");

function cards(row) {
  const result = element("div", undefined, "cards"), status = card(STATUSES[row.status], "status");
  status.classList.add({ device: "good", host: "move", fails: "host" }[row.status]);
  result.append(status);
  if (row.before[0]) result.append(card(bracketed(row.before), "torch ops before (distinct)"));
  if (row.status !== "fails") {
    result.append(card(bracketed(row.remain), "torch ops remain (distinct)"), card(count(row.deviceOps), "device ops"),
      card(`${count(row.crossings[0])} (${count(row.crossings[1])})`, "to/from device (within)"),
      card(pccText(row.pcc), row.mode === "train" ? "PCC of gradients" : "PCC of outputs"));
  }
  if (row.compiled) result.append(card(seconds(row.original), "torch"), card(seconds(row.compiled), "compiled"));
  if (row.prediction) result.append(card(predicted(row), "predicted on one chip of an " + row.prediction.board));
  if (row.dram) result.append(card(memory(row.dram), "DRAM at the peak"));
  return result;
}

function failure(row) {
  if (row.status !== "fails") return [];
  const note = element("div", undefined, "note failure");
  note.append(element("b", row.reason || "The reason is unknown."));
  if (row.details) {
    const details = element("details");
    details.append(element("summary", "details"), element("pre", row.details));
    note.append(details);
  }
  return [note];
}

const outcomes = (row) => row.slice(1);

function operations(row) {
  return tableBlock("Operations by outcome", [
    column("operation", 0, "short", opLink),
    { title: "calls", kind: "count", value: (each) => total(outcomes(each)) },
    column("converted", 1, "count"), column("removed", 2, "count"), column("on the host", 3, "count"),
    { title: "", kind: "short", value: (each) => each[3], cell: (each) => outcomeStrip(outcomes(each)) },
  ], row.ops, { sorted: 1, down: true });
}

function hostOps(row) {
  return tableBlock("Host ops", [column("operation", 0, "short", opLink), column("times", 1, "count"), column("reason", 2, "wide"),
    column("line of the model", 3, "wide", (line) => element("span", line || NONE, "shapes"))], row.hostOps);
}

/* Operations on the left, all other tables on the right. */
function tables(row) {
  const two = element("div", undefined, "two"), right = element("div");
  right.append(
    tableBlock("Tasks with real data", taskColumns(0), row.tasks),
    tableBlock("Gradients that differ most", [column("parameter", 0, "shapes"), column("PCC", 1, "number", pccCell), column("relative error", 2, "number", small)], row.gradients),
    tableBlock("Losses", [column("step", 0, "count"), column("torch", 1, "number", small), column("device", 2, "number", small)], row.losses),
    tableBlock("Moves", [column("kind", 0, "short"), column("times", 1, "count"), column("bytes", 2, "bytes"), column("why", 3)], row.moves),
    tableBlock("Fusions", [column("fusion", 0), column("times", 1, "count")], row.fusions));
  two.append(operations(row), right);
  return [hostOps(row), two];
}

/* Of the timing model, never beside measured times. */
function predictions(found) {
  const rate = (interval) => (interval ? +(1 / interval).toPrecision(3) + "/s" : NONE);
  return facts("Predicted, not measured", [["one chip of", found.board], ["programs", count(found.programs)], ["programs at work", seconds(found.kernels_seconds)],
    ["gaps between them", seconds(found.gaps_seconds)], ["transfers", seconds(found.transfers_seconds)], ["a call, op by op", seconds(found.as_is_seconds)],
    ["a call, traced", seconds(found.traced_seconds)], ["traced, two queues", rate(found.interval_seconds)],
    ["expected error", "± " + percent(found.error)], ["not calibrated", percent(found.uncalibrated) + " of the time"],
    ["sources", found.sources]]);
}

function more(row) {
  const { dram, weights, l1, process } = row.memory;
  return [
    facts("Memory", [["DRAM at the peak", memory(dram)], ["of which weights", memory(weights)], ["L1 at the peak", memory(l1)], ["peak memory of the process", memory(process)]]),
    facts("Times", [["first run", seconds(row.first)], ["torch", seconds(row.original)], ["compiled", seconds(row.compiled)],
      ["compiled ÷ torch", row.original && row.compiled ? String(+(row.compiled / row.original).toPrecision(3)) : ""], ["medians of", row.calls ? row.calls + (row.calls === 1 ? " warm call" : " warm calls") : ""], ["device", row.device]]),
    ...(row.prediction ? [predictions(row.prediction)] : []),
    facts("Accuracy", [["PCC of outputs", pccText(row.outputPcc)], ["relative error", row.error === null ? "" : small(row.error)],
      ["PCC of gradients", row.mode === "train" ? pccText(row.pcc) : ""], ["PCC of torch in bfloat16", row.torchPcc === null ? "" : pccText(row.torchPcc)]]),
    ...(row.peer ? [facts("The older compiler", [["verdict", pill(row.peer[0], row.peer[0])], ["in numbers", row.peer[1]]])] : []),
    facts("How it was measured", [["inputs", element("span", row.inputs, "shapes")], ["batch", String(row.batch)], ["parameters", row.parameters ? row.parameters.toLocaleString("en-US") : ""], ["programs", row.programs ? String(row.programs) : ""],
      ["seed", String(row.seed)], ...row.versions]),
  ];
}

/* Every variation of the row, with a filter. */
function variations(row) {
  if (!row.variations.length) return [];
  const all = listOf([
    { key: "op", title: "operation", value: ([op]) => op, cell: ([op]) => opLink(op) },
    { key: "inputs", title: "inputs", kind: "shapes", value: (each) => each[1] },
    { key: "arguments", title: "arguments", kind: "shapes", value: (each) => each[2] },
    { key: "outcome", title: "outcome", kind: "short", value: (each) => each[3], cell: (each) => outcomeCell(each[3]) },
    { key: "calls", title: "calls", kind: "count", value: (each) => each[4] },
    { key: "reason", title: "reason", value: (each) => each[5] },
  ], choice, "variations");
  const filters = filterBar(choice, "filter by operation, shape, argument, reason", { outcome: ["outcome", occurring(OUTCOMES, row.variations.map((each) => each[3]))] }, show);
  function show() {
    const wanted = row.variations.filter((each) => (!state.outcome || each[3] === state.outcome) && matches(each.join(" ").toLowerCase(), state.find));
    all.show(wanted);
    filters.status.textContent = wanted.length === row.variations.length ? wanted.length + " variations" : wanted.length + " of " + row.variations.length + " variations";
  }
  filters.bar.append(exportButton("variations", all));
  show();
  return [element("h2", "Variations"), filters.bar, all.node];
}

function draw() {
  const row = data.rows.find(({ mode }) => mode === state.mode) || data.rows[0], rest = element("div", undefined, "facts");
  choices(modes, data.rows.map(({ mode }) => [mode, MODES[mode]]), row.mode, (mode) => { choice.set({ mode }); draw(); });
  rest.append(...more(row));
  const changed = row.reduced ? [element("p", "Differences from the published model: " + row.reduced, "note")] : [];
  body.replaceChildren(...failure(row), ...changed, cards(row), ...tables(row), rest, ...variations(row));
}

if (data.rows.length > 1) byId("main").append(modes);
byId("main").append(body);
choice.follow(draw);
draw();
startSearch();
