/* The index of operations: calls and outcomes of each. */
const choice = chosen({ find: "", outcome: "", sort: "-calls" }), { state } = choice;
const left = (op) => Math.max(op.calls[2], op.left);

const columns = [
  { key: "name", title: "operation", kind: "short", value: (op) => op.name, cell: (op) => anchor(op.name, data.top + op.page, "name") },
  { key: "calls", title: "calls", kind: "count", value: (op) => total(op.calls) },
  { key: "models", title: "models", kind: "count", value: (op) => op.models },
  { key: "variations", title: "variations", kind: "count", help: "different shapes, dtypes and arguments", value: (op) => op.variations },
  { key: "converted", title: "converted", kind: "count", value: (op) => op.calls[0] },
  { key: "removed", title: "removed", kind: "count", help: "no work is left: fused, folded, or an alias", value: (op) => op.calls[1] },
  { key: "host", title: "on the host", kind: "count", value: left, cell: (op) => element("span", count(left(op)), left(op) ? "bad" : "") },
  { key: "strip", title: "outcome", kind: "percent", value: (op) => (total(op.calls) ? 1 - op.calls[2] / total(op.calls) : 0), cell: (op) => outcomeStrip(op.calls) },
  { key: "reason", title: "reason", value: (op) => op.reasons.join("; "), cell: (op) => element("span", op.reasons.slice(0, 2).join("; ") + (op.reasons.length > 2 ? " …" : ""), "clamped") },
];
const all = listOf(columns, choice, "operations", (op) => { location.href = data.top + op.page; });
const filters = filterBar(choice, "filter by name or reason", { outcome: ["outcome", [["host", "some on the host"], ["device", "none on the host"]]] }, draw);
function draw() {
  const wanted = (op) => (!state.outcome || (state.outcome === "host") === left(op) > 0) && matches([op.name, ...op.reasons].join(" ").toLowerCase(), state.find);
  const ops = data.ops.filter(wanted);
  all.show(ops);
  filters.status.textContent = ops.length === data.ops.length ? ops.length + " operations" : ops.length + " of " + data.ops.length + " operations";
}

filters.bar.append(exportButton("operations", all));
byId("main").append(filters.bar, legend(OUTCOMES), all.node);
choice.follow(() => { filters.show(); draw(); });
draw();
startSearch();
