/* The page of two runs: added, removed and changed items; those with fewer lowered calls first. */
const CHANGES = { "": "all changes", regressed: "lowered less", improved: "lowered more", added: "added", gone: "gone", changed: "other changes", same: "unchanged", all: "all" };

const NOTHING = "No change matches; unchanged items can be shown as well.";

function changed(items, of) {
  if (state.change === "all") return items;
  if (!KINDS.includes(state.change)) return items.filter((item) => of(item).change[0] !== "same");
  return items.filter((item) => of(item).change[0] === state.change);
}

/* Before, after and the change of one number. */
function three(key, title, values, text = count, kind = "count") {
  return [
    { key: key + "0", title: title + " " + data.titles[0], kind, value: (item) => values(item)[0], cell: (item) => exact(values(item)[0], text) },
    { key: key + "1", title: title + " " + data.titles[1], kind, value: (item) => values(item)[1], cell: (item) => exact(values(item)[1], text) },
    { key: key + "d", title: "change of " + title, kind, value: (item) => values(item)[1] - values(item)[0], cell: (item) => difference(...values(item), text) },
  ];
}

function columns(first, of, middle) {
  const rank = (item) => KINDS.indexOf(of(item).change[0]);
  const lowered = RUNS.map((run) => ({
    key: "lowered" + run, title: "lowered " + data.titles[run], kind: "percent", value: (item) => loweredShare(of(item), run), cell: (item) => loweringCell(of(item), run),
  }));
  return [
    first,
    { key: "change", title: "change", help: "items with fewer lowered calls come first", kind: "short", value: rank, plain: (item) => of(item).change[0], cell: (item) => changeCell(of(item).change) },
    ...lowered, ...middle, ...three("flops", "FLOPs", (item) => of(item).flops),
  ];
}

const usedBy = (op) => RUNS.map((run) => op.models.filter((row) => row[run + 1]).length);

/* Most severe first: by kind of change, then by number of calls. */
function severeFirst(items, of, calls) {
  const weight = (item) => Math.max(...calls(item), Math.abs(calls(item)[1] - calls(item)[0]));
  return [...items].sort((a, b) => KINDS.indexOf(of(a).change[0]) - KINDS.indexOf(of(b).change[0]) || weight(b) - weight(a));
}

views.ops = {
  title: "Operations", scopes: SCOPES.ops, statuses: STATUSES, changes: CHANGES,
  draw(main) {
    const of = (op) => op, shown = withStatus(searched(changed(ops(), of), SCOPES.ops), of);
    const name = { key: "name", title: "operation", kind: "short", value: (op) => op.name, cell: (op) => link(op.name, { op: op.name }, "name") };
    const middle = [...three("calls", "calls", (op) => op.calls), ...three("models", "models", usedBy).slice(0, 2)];
    main.append(tally(ops(), of), legend());
    return listOf(main, columns(name, of, middle), severeFirst(shown, of, (op) => op.calls), ops().length,
      { open: (op) => goTo({ op: op.name }), label: "operations", sort: "change", nothing: NOTHING });
  },
};

views.models = {
  title: "Models", scopes: SCOPES.models, statuses: STATUSES, changes: CHANGES,
  draw(main) {
    const all = modelsOf(state.phase), of = (model) => model[state.phase];
    const shown = withStatus(searched(changed(all, of), SCOPES.models), of);
    const name = { key: "name", title: "model", value: (model) => model.name, cell: (model) => link(model.name, { view: "models", model: model.name }) };
    const middle = [...three("calls", "calls", (model) => of(model).ops), ...three("distinct", "distinct operations", (model) => of(model).distinct).slice(0, 2)];
    main.append(tally(all, of), legend());
    return listOf(main, columns(name, of, middle), severeFirst(shown, of, (model) => of(model).ops), all.length,
      { open: (model) => goTo({ view: "models", model: model.name }), label: "models", sort: "change", nothing: NOTHING });
  },
};

start();
