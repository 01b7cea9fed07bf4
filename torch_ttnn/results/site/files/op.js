/* One operation: every variation with its models and outcome. */
const choice = chosen({ find: "", outcome: "" }), { state } = choice;
const rowLink = (number) => { const [model, mode, path] = data.rows[number]; return modelLink(model, path, mode); };
const MANY = 3;

/* The first few models with a variation; all of them on request. */
function modelsCell(users) {
  const result = element("span", undefined, "names"), links = () => users.flatMap(([number], k) => (k ? [", ", rowLink(number)] : [rowLink(number)]));
  if (users.length <= MANY + 1) { result.append(...links()); return result; }
  const more = element("button", "+ " + (users.length - MANY) + " more", "inline");
  more.onclick = () => result.replaceChildren(...links());
  result.append(...links().slice(0, 2 * MANY - 1), " ", more);
  return result;
}

const names = (users) => users.map(([number]) => data.rows[number][0]).join(" ");
const variations = sortable([
  { title: "inputs", value: ([inputs]) => inputs, cell: ([inputs]) => element("span", inputs, "shapes") },
  { title: "arguments", value: (row) => row[1], cell: (row) => element("span", row[1], "shapes") },
  { title: "outcome", kind: "short", value: (row) => row[2], cell: (row) => outcomeCell(row[2]) },
  { title: "calls", kind: "count", value: (row) => row[4] },
  { title: "models", kind: "wide", value: (row) => row[5].length, plain: (row) => names(row[5]), cell: (row) => modelsCell(row[5]) },
  { title: "reason", value: (row) => row[3] },
], { label: "variations", limit: 100, sorted: 3, down: true });
const texts = new Map();
const textOf = (row) => { if (!texts.has(row)) texts.set(row, (row.slice(0, 4).join(" ") + " " + names(row[5])).toLowerCase()); return texts.get(row); };
const filters = filterBar(choice, "filter by shape, dtype, argument, model, reason", { outcome: ["outcome", occurring(OUTCOMES, data.variations.map((row) => row[2]))] }, draw);

function draw() {
  const rows = data.variations.filter((row) => (!state.outcome || row[2] === state.outcome) && matches(textOf(row), state.find));
  variations.show(rows);
  filters.status.textContent = rows.length === data.variations.length ? count(rows.length) + " variations" : count(rows.length) + " of " + count(data.variations.length) + " variations";
}

const host = tableBlock("On the host", [
  { title: "model", value: ([number]) => data.rows[number][0], cell: ([number]) => rowLink(number) },
  { title: "times", kind: "count", value: (row) => row[3] },
  { title: "reason", kind: "wide", value: (row) => row[1] },
  { title: "line of the model", kind: "wide", value: (row) => row[2], cell: (row) => element("span", row[2] || NONE, "shapes") },
], data.host, { sorted: 1, down: true });
const models = tableBlock("Rows that use it", [
  { title: "model", value: ([model]) => model, cell: ([model, mode, path]) => modelLink(model, path, mode) },
  { title: "calls", kind: "count", value: (row) => total(row.slice(3)) },
  { title: "converted", kind: "count", value: (row) => row[3] },
  { title: "removed", kind: "count", value: (row) => row[4] },
  { title: "on the host", kind: "count", value: (row) => row[5] },
  { title: "", kind: "short", value: (row) => row[5], cell: (row) => outcomeStrip(row.slice(3)) },
], data.rows, { sorted: 1, down: true });

variations.node.classList.add("whole");
byId("main").append(host, element("h2", "Variations"), filters.bar, variations.node, models);
if (!data.variations.length) for (const node of [filters.bar, variations.node, byId("main").querySelector("h2")]) node.remove();
choice.follow(() => { filters.show(); draw(); });
draw();
startSearch();
