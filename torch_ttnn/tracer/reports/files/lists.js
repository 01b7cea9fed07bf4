/* Parts of the tables of operations and models: cells, searching, filtering, the list itself. */
const SCOPES = {
  ops: { name: "operations", model: "models", argument: "arguments", reason: "reasons", all: "everything" },
  models: { name: "models", op: "operations", all: "everything" },
};
const PLACES = { device: "on the device", decomposed: "decomposed first", partly: "decomposed, partly on the host", host: "on the host", unknown: "unknown" };
const STATUSES = {
  "": "any lowering", lowered: "all lowered", device: "all on the device", decomposed: "some decomposed",
  left: "some left to the host", unknown: "some unknown",
};

/* -- lowering ----------------------------------------------------------------------------------------------------- */

/* Calls of an operation or a model by place; `lowered` leave nothing to the host, `left` leave something. */
function statuses(item, run = 0) {
  const result = { device: 0, decomposed: 0, partly: 0, host: 0, unknown: 0 };
  for (const [place, ...calls] of item.statuses) result[Object.hasOwn(PLACES, place) ? place : "unknown"] += calls[run];
  result.lowered = result.device + result.decomposed;
  result.left = result.partly + result.host;
  result.all = result.lowered + result.left + result.unknown;
  return result;
}

/* The share of lowered calls among those with a known place; −1 if there are none. */
function loweredShare(item, run = 0) {
  const { lowered, left } = statuses(item, run);
  return lowered + left ? lowered / (lowered + left) : -1;
}

function loweringCell(item, run = 0) {
  const found = statuses(item, run), result = element("span", undefined, "lowering"), share = loweredShare(item, run);
  if (!found.all) return result;
  const strip = element("span", undefined, "strip");
  for (const name of Object.keys(PLACES)) {
    if (!found[name]) continue;
    const part = element("i", undefined, name);
    part.style.flexGrow = found[name] / found.all;
    strip.append(part);
  }
  const reasons = (item.lowering?.rows || []).filter(([[, reason], ...calls]) => reason && calls[run]).slice(0, 5);
  result.title = [...Object.keys(PLACES).filter((name) => found[name]).map((name) => `${PLACES[name]}: ${count(found[name])} calls`),
    ...reasons.map(([[, reason], ...calls]) => `${count(calls[run])} × ${reason}`)].join("\n");
  result.append(strip, element("span", share < 0 ? "?" : percent(share)));
  return result;
}

function legend() {
  const result = element("p", undefined, "quiet legend");
  for (const [name, title] of Object.entries(PLACES)) {
    result.append(element("i", undefined, name), title + " ");
  }
  return result;
}

/* -- searching and filtering -------------------------------------------------------------------------------------- */

const TEXTS = {
  name: (item) => item.name,
  model: (op) => op.models.map(([model]) => data.models[model].name).join("\n"),
  argument: (op) => op.arguments.flatMap(([name, values]) => values.rows.map(([value]) => name + "=" + value)).join("\n"),
  reason: (op) => op.lowering.rows.map(([[, reason]]) => reason).join("\n"),
  op: (model) => opsOf(model).map(({ op }) => op.name).join("\n"),
};
const cached = new Map();

/* The searched text, computed once per item. */
function textOf(item, scope) {
  const key = state.phase + scope;
  if (!cached.has(key)) cached.set(key, new Map());
  const texts = cached.get(key);
  if (!texts.has(item)) texts.set(item, TEXTS[scope](item).toLowerCase());
  return texts.get(item);
}

function searched(items, scopes) {
  const wanted = state.find.trim().toLowerCase();
  if (!wanted) return items;
  const given = Object.hasOwn(scopes, state.in) ? state.in : "name";
  const within = given === "all" ? Object.keys(scopes).filter((each) => each !== "all") : [given];
  return items.filter((item) => within.some((scope) => textOf(item, scope).includes(wanted)));
}

/* of: item → the object with the statuses; the last run counts. */
function withStatus(items, of) {
  const run = data.titles.length - 1;
  const tests = { lowered: (found) => found.lowered === found.all, device: (found) => found.device === found.all };
  if (!state.lowering || !Object.hasOwn(STATUSES, state.lowering)) return items;
  const test = tests[state.lowering] || ((found) => found[state.lowering] > 0);
  return items.filter((item) => { const found = statuses(of(item), run); return found.all && test(found); });
}

/* Operations by model with their calls, most frequent first; computed once per phase. */
const usedByModel = new Map();

function opsOf(model) {
  if (!usedByModel.has(state.phase)) {
    const found = new Map(data.models.map((each) => [each, []]));
    for (const op of ops()) for (const [index, ...calls] of op.models) found.get(data.models[index]).push({ op, calls });
    for (const each of found.values()) each.sort((a, b) => Math.max(...b.calls) - Math.max(...a.calls));
    usedByModel.set(state.phase, found);
  }
  return usedByModel.get(state.phase).get(model);
}

/* -- lists -------------------------------------------------------------------------------------------------------- */

/* The large table of a view. The address has the key of the column to sort by. */
function listOf(main, columns, items, all, { open, label, sort, nothing = "Nothing matches." }) {
  const by = state.sort || sort, key = by.replace(/^-/, "");
  const result = sortable(columns, {
    open, label, limit: 100,
    sorted: columns.findIndex((column) => column.key === key),
    down: by.startsWith("-"),
    sort: (column, down) => adjust({ sort: (down ? "-" : "") + columns[column].key }, true),
  });
  result.node.classList.add("whole");
  result.show(items);
  byId("count").textContent = items.length === all ? all + " " + label : items.length + " of " + all + " " + label;
  main.append(result.node);
  if (!items.length) main.append(element("p", all ? nothing : "This phase has no operations.", "quiet"));
  return result;
}
