/* The page of one run: its operations, its models, and charts of the largest shares. */
const sum = (items, value) => items.reduce((total, item) => total + value(item), 0) || 1;

function opColumns() {
  const calls = sum(ops(), (op) => op.calls[0]), flops = sum(ops(), (op) => op.flops[0]), models = modelsOf(state.phase).length || 1;
  const shareOf = (key, title, help, value) => ({ key, title, kind: "percent", help, value, cell: (op) => shareCell(value(op)) });
  return [
    { key: "name", title: "operation", kind: "short", value: (op) => op.name, cell: (op) => link(op.name, { op: op.name }, "name") },
    { key: "calls", title: "calls", kind: "count", value: (op) => op.calls[0] },
    shareOf("share", "share", "of all calls", (op) => op.calls[0] / calls),
    { key: "models", title: "models", kind: "count", value: (op) => op.models.length },
    shareOf("ofmodels", "of models", "share of the models that use it", (op) => op.models.length / models),
    { key: "flops", title: "FLOPs", kind: "count", value: (op) => op.flops[0], cell: (op) => exact(op.flops[0]) },
    shareOf("offlops", "of FLOPs", "share of all FLOPs", (op) => op.flops[0] / flops),
    { key: "in", title: "bytes in", kind: "bytes", value: (op) => op.in[0] },
    { key: "out", title: "bytes out", kind: "bytes", value: (op) => op.out[0] },
    { key: "intensity", title: "FLOPs/byte", kind: "number", help: "arithmetic intensity: FLOPs per byte read or written", value: (op) => intensity(op), cell: (op) => ratio(intensity(op)) },
    { key: "lowered", title: "lowered", kind: "percent", help: "share of calls that the compiler does not leave to the host", value: (op) => loweredShare(op), cell: (op) => loweringCell(op) },
  ];
}

function modelColumns() {
  const phase = state.phase, of = (name) => (model) => model[phase][name][0];
  return [
    { key: "name", title: "model", value: (model) => model.name, cell: (model) => link(model.name, { view: "models", model: model.name }) },
    { key: "graphs", title: "graphs", kind: "count", value: of("graphs") },
    { key: "calls", title: "calls", kind: "count", value: of("ops") },
    { key: "distinct", title: "distinct operations", kind: "count", value: of("distinct") },
    { key: "flops", title: "FLOPs", kind: "count", value: of("flops"), cell: (model) => exact(of("flops")(model)) },
    { key: "in", title: "bytes in", kind: "bytes", value: of("in") },
    { key: "out", title: "bytes out", kind: "bytes", value: of("out") },
    { key: "intensity", title: "FLOPs/byte", kind: "number", value: (model) => intensity(model[phase]), cell: (model) => ratio(intensity(model[phase])) },
    { key: "lowered", title: "lowered", kind: "percent", value: (model) => loweredShare(model[phase]), cell: (model) => loweringCell(model[phase]) },
  ];
}

views.ops = {
  title: "Operations", scopes: SCOPES.ops, statuses: STATUSES,
  draw(main) {
    const shown = withStatus(searched(ops(), SCOPES.ops), (op) => op);
    main.append(legend());
    return listOf(main, opColumns(), shown, ops().length, { open: (op) => goTo({ op: op.name }), label: "operations", sort: "-calls" });
  },
};

views.models = {
  title: "Models", scopes: SCOPES.models, statuses: STATUSES,
  draw(main) {
    const all = modelsOf(state.phase), shown = withStatus(searched(all, SCOPES.models), (model) => model[state.phase]);
    main.append(legend());
    return listOf(main, modelColumns(), shown, all.length, { open: (model) => goTo({ view: "models", model: model.name }), label: "models", sort: "-calls" });
  },
};

/* -- charts ------------------------------------------------------------------------------------------------------- */

const RANKS = {
  models: ["models that use them", (op) => op.models.length],
  calls: ["calls", (op) => op.calls[0]],
  flops: ["FLOPs", (op) => op.flops[0]],
};

/* Operations by weight, and after each the models that need no others. */
function coverageSteps(rank) {
  const weight = RANKS[rank][1];
  const order = [...ops()].sort((a, b) => weight(b) - weight(a) || b.calls[0] - a.calls[0]);
  const last = new Map();
  order.forEach((op, k) => op.models.forEach(([model]) => last.set(model, k)));
  const complete = new Array(order.length).fill(0);
  for (const k of last.values()) complete[k]++;
  let covered = 0;
  return { steps: order.map((op, k) => ({ name: op.name, covered: (covered += complete[k]) })), models: last.size };
}

function coverageBlock() {
  const rank = Object.hasOwn(RANKS, state.rank) ? state.rank : "models", { steps, models } = coverageSteps(rank);
  const select = element("select"), label = element("label", "most important first, by ");
  options(select, Object.entries(RANKS).map(([name, [title]]) => [name, title]), rank);
  select.id = "rank";
  select.onchange = () => adjust({ rank: select.value });
  label.append(select);
  const known = modelsOf(state.phase).filter((model) => loweredShare(model[state.phase]) >= 0);
  const today = known.length ? known.filter((model) => { const found = statuses(model[state.phase]); return found.lowered === found.all; }).length : undefined;
  const needed = [0.5, 0.9, 1].map((share) => [share, steps.findIndex(({ covered }) => covered >= share * models) + 1]);
  const text = needed.map(([share, k]) => `${k} operations cover ${percent(share)} of the models`).join(", ");
  const figure = element("figure"), rows = element("details"), table = sortable([
    { title: "operations supported", kind: "count", value: ({ k }) => k },
    { title: "the last of them", kind: "short", value: ({ name }) => name, cell: ({ name }) => link(name, { op: name }, "name") },
    { title: "models covered", kind: "count", value: ({ covered }) => covered },
    { title: "share", kind: "percent", value: ({ covered }) => covered / models, cell: ({ covered }) => shareCell(covered / models) },
  ], { label: "coverage" });
  table.show(steps.map((step, k) => ({ ...step, k: k + 1 })));
  rows.append(element("summary", "as a table"), table.node);
  figure.append(coverage(steps, models, today, "models covered by the first k operations", byId("main").clientWidth - 40), element("figcaption", text));
  return [block("Models fully covered by the k most frequent operations", label, figure, rows), table];
}

views.charts = {
  title: "Charts",
  draw(main) {
    if (!ops().length) { main.append(element("p", "This phase has no operations.", "quiet")); return null; }
    const both = element("div", undefined, "grid wide");
    const rows = (value) => ops().map((op) => ({ name: op.name, value: value(op), href: linkTo({ op: op.name }) }));
    both.append(block("Share of calls", pareto(rows((op) => op.calls[0]), "calls", "share of calls by operation")),
      block("Share of FLOPs", pareto(rows((op) => op.flops[0]), "FLOPs", "share of FLOPs by operation")));
    const [result, table] = coverageBlock();
    main.append(both, result);
    return table;
  },
};

start();
