/* Details of one operation or one model, in one run or in two side by side. */
const RUNS = data.titles.map((_, run) => run);
const ONE = RUNS.length === 1;
const pair = (values, text = count) => (ONE || values[0] === values[1] ? text(values[0]) : values.map(text).join(" → "));

function heading(main, title, text) {
  const back = element("a", "← back to the list", "back"), head = element("h2", title, "name");
  back.href = list;
  main.append(back, head);
  if (text) main.append(element("p", text, "quiet"));
}

/* Columns of calls: with their share if there is one run, with the change if there are two. */
function callColumns(totals, calls) {
  const columns = RUNS.map((run) => ({ title: ONE ? "calls" : data.titles[run], kind: "count", value: (row) => calls(row)[run] }));
  if (ONE) {
    const share = (row) => calls(row)[0] / (totals[0] || 1);
    return [...columns, { title: "share", kind: "percent", value: share, cell: (row) => shareCell(share(row)) }];
  }
  const change = (row) => calls(row)[1] - calls(row)[0];
  return [...columns, { title: "change", kind: "count", value: change, cell: (row) => difference(...calls(row)) }];
}

/* Values and how often they occur. */
function frequencies(title, { rows, more }, totals, first = [{ title: "value", value: (row) => row[0] }]) {
  const table = sortable([...first, ...callColumns(totals, (row) => row.slice(1))], { label: title });
  table.show(rows);
  const result = block(title, table.node);
  if (more) result.append(element("p", `… and ${count(more[0])} more, with ${pair(more.slice(1))} calls`, "quiet"));
  return result;
}

function sizesBlock(title, sizes) {
  const figure = element("figure"), caption = element("figcaption");
  for (const run of RUNS.filter((each) => sizes.spread[each].length)) {
    const [least, middle, most] = sizes.spread[run].map(count);
    if (!ONE) caption.append(element("i", undefined, "key run" + run), data.titles[run] + ": ");
    caption.append(least === most ? "always " + least : `${least} to ${most}, median ${middle}`, " ");
  }
  figure.append(histogram(sizes, data.titles, title), caption);
  return block(title, figure);
}

function argumentBlocks(op) {
  const isTensor = ({ rows, more }) => !more && rows.length === 1 && rows[0][0] === "not_jsonable";
  const tensors = op.arguments.filter(([, values]) => isTensor(values)).map(([name]) => name);
  const shown = op.arguments.filter(([, values]) => !isTensor(values));
  const result = element("div", undefined, "grid arguments");
  result.append(...shown.map(([name, values]) => frequencies(name, values, op.calls)));
  const line = element("p", tensors.length ? "Tensors, and other values that JSON cannot represent (not_jsonable): " + tensors.join(", ") : "", "quiet");
  return [result, line];
}

function drawOp(main) {
  const op = ops().find(({ name }) => name === state.op);
  if (!op) {
    heading(main, state.op, `It is not called in the ${data.phases[state.phase].title} phase.`);
    return null;
  }
  heading(main, op.name, op.source && "for example at " + op.source);
  const cards = element("div", undefined, "cards"), charts = element("div", undefined, "grid wide"), tables = element("div", undefined, "grid wide");
  const used = RUNS.map((run) => op.models.filter((row) => row[run + 1]).length);
  cards.append(card(pair(op.calls), "calls"), card(pair(used), "models"), card(pair(op.flops), "FLOPs"),
    card(pair(op.in, bytes), "bytes in"), card(pair(op.out, bytes), "bytes out"), card(pair(RUNS.map((run) => intensity(op, run)), ratio), "FLOPs per byte"));
  if (op.change) cards.prepend(card(op.change[0], op.change.slice(1).join(", ") || "overall"));
  charts.append(sizesBlock("Elements of all inputs", op.inputs), sizesBlock("Elements of all outputs", op.outputs));
  const models = sortable([
    { title: "model", value: ([model]) => data.models[model].name, cell: ([model]) => link(data.models[model].name, { view: "models", model: data.models[model].name }) },
    ...callColumns(op.calls, (row) => row.slice(1)),
  ], { label: "models" });
  models.show(op.models);
  const lowering = element("div", undefined, "grid wide");
  lowering.append(
    frequencies("Lowering", op.lowering, op.calls, [
      { title: "where", value: ([[status, reason]]) => PLACES[status === "decomposed" && reason ? "partly" : status] || PLACES.unknown },
      { title: "reason", value: ([[, reason]]) => reason }]),
    frequencies("Dtypes of the inputs", op.dtypes, op.calls));
  tables.append(frequencies("Input shapes", op.shapes, op.calls), block(`Models (${op.models.length})`, models.node));
  main.append(cards, charts, lowering, element("h2", "Arguments"), ...argumentBlocks(op), element("h2", "Shapes and models"), tables);
  return models;
}

const intensity = (item, run = 0) => item.flops[run] / (item.in[run] + item.out[run] || 1);
const ratio = (number) => (number >= 100 ? count(Math.round(number)) : String(+number.toPrecision(3)));

function drawModel(main) {
  const model = data.models.find(({ name }) => name === state.model), facts = model && model[state.phase];
  if (!facts) {
    heading(main, state.model, `It has no graph in the ${data.phases[state.phase].title} phase.`);
    return null;
  }
  heading(main, model.name);
  const cards = element("div", undefined, "cards");
  cards.append(card(pair(facts.graphs), "graphs"), card(pair(facts.ops), "calls"), card(pair(facts.distinct), "distinct operations"),
    card(pair(facts.flops), "FLOPs"), card(pair(facts.in, bytes), "bytes in"), card(pair(facts.out, bytes), "bytes out"));
  if (RUNS.some((run) => loweredShare(facts, run) >= 0)) {
    cards.append(card(pair(RUNS.map((run) => loweredShare(facts, run)), (share) => (share < 0 ? "?" : percent(share))), "of calls lowered"));
  }
  if (facts.change) cards.prepend(card(facts.change[0], facts.change.slice(1).join(", ") || "overall"));
  const found = opsOf(model);
  const result = sortable([
    { title: "operation", kind: "short", value: ({ op }) => op.name, cell: ({ op }) => link(op.name, { op: op.name }, "name") },
    ...callColumns(facts.ops, ({ calls }) => calls),
    { title: "models that use it", kind: "count", value: ({ op }) => op.models.length },
    { title: "lowering in all models", kind: "short", value: ({ op }) => loweredShare(op, RUNS.length - 1), cell: ({ op }) => loweringCell(op, RUNS.length - 1) },
  ], { label: "operations", open: ({ op }) => goTo({ op: op.name }) });
  result.node.classList.add("whole");
  result.show(found);
  main.append(cards, legend(), result.node);
  return result;
}
