/* Shared by all pages of results: cells, choices (stored in the address), filters, the search box. */
const STATUSES = { device: "all on device", host: "with host ops", fails: "fails" };
const OUTCOMES = { converted: "converted", removed: "removed", host: "on the host" };
const MODES = { eval: "inference", train: "training" };
const NONE = "–";

/* -- numbers and cells -------------------------------------------------------------------------------------------- */

function seconds(value) {
  if (!value) return NONE;
  const [scale, unit] = value < 1e-3 ? [1e6, "µs"] : value < 1 ? [1e3, "ms"] : [1, "s"], number = value * scale;
  return (number >= 100 ? Math.round(number).toLocaleString("en-US") : number.toPrecision(3)) + " " + unit;
}

const predicted = (row) => (row.predicted === null ? "" : seconds(row.predicted));

/* Rounded down, so that 0.99 is at least 0.99. */
const pccText = (value) => (value === null || value === undefined ? NONE : (Math.floor(value * 1e5 + 1e-9) / 1e5).toFixed(5));
const small = (value) => (value === null ? NONE : String(+value.toPrecision(3)));
const memory = (value) => (value ? bytes(value) : NONE);
const bracketed = ([all, some]) => count(all) + (all ? " (" + count(some) + ")" : "");
/* A value to sort by; in descending order, unknown values come last. */
const known = (value) => (value === null || value === undefined ? -1 : value);

function pill(kind, text) {
  return element("span", text, "pill " + kind);
}

const statusCell = (row) => {
  const result = pill(row.status, STATUSES[row.status]);
  if (row.reason) result.title = row.reason;
  return result;
};
const outcomeCell = (outcome) => pill(Object.hasOwn(OUTCOMES, outcome) ? outcome : "", Object.hasOwn(OUTCOMES, outcome) ? OUTCOMES[outcome] : outcome);

function pccCell(value) {
  return element("span", pccText(value), value !== null && value < 0.99 ? "bad" : "");
}

/* Converted, removed and host calls as a proportional strip. */
function outcomeStrip(calls) {
  const result = element("span", undefined, "strip"), names = Object.keys(OUTCOMES);
  result.title = names.map((name, k) => OUTCOMES[name] + ": " + count(calls[k])).join("\n");
  calls.forEach((many, k) => {
    if (!many) return;
    const part = element("i", undefined, names[k]);
    part.style.flexGrow = many;
    result.append(part);
  });
  return result;
}

/* Colours and their meanings. names: { class: title } */
function legend(names) {
  const result = element("p", undefined, "quiet legend");
  for (const [name, title] of Object.entries(names)) result.append(element("i", undefined, name), title + " ");
  return result;
}

const total = (calls) => calls.reduce((sum, many) => sum + many, 0);
const page = (path, mode) => data.top + path + (mode === "train" ? "#mode=train" : "");

function modelLink(model, path, mode) {
  const result = anchor(model, page(path, mode), "name");
  if (mode === "train") result.append(" (train)");
  return result;
}

/* A link to the page of an operation; `data.pages` knows them. */
function opLink(op) {
  return Object.hasOwn(data.pages, op) ? anchor(op, data.top + data.pages[op], "name") : element("span", op, "name");
}

function facts(title, pairs) {
  const list = element("dl");
  for (const [name, value] of pairs) {
    if (value === undefined || value === "" || value === null) continue;
    const description = element("dd");
    description.append(value);
    list.append(element("dt", name), description);
  }
  return block(title, list);
}

/* A column of rows that are arrays. */
const column = (title, k, kind, cell) => ({ title, kind, value: (row) => row[k] ?? "", cell: cell && ((row) => cell(row[k])) });

/* Columns of tasks: name, metric, items, scores of torch and of the device, from index k. */
function taskColumns(k) {
  const score = (value) => (value === null ? NONE : value.toFixed(2));
  const gain = (row) => (row[k + 3] === null || row[k + 4] === null ? -Infinity : row[k + 4] - row[k + 3]);
  return [column("task", k), column("metric", k + 1), column("items", k + 2, "count"), column("torch", k + 3, "number", score), column("device", k + 4, "number", score),
    { title: "difference", kind: "number", value: gain, cell: (row) => (gain(row) === -Infinity ? NONE : (gain(row) < 0 ? "−" : "+") + Math.abs(gain(row)).toFixed(2)) }];
}

/* A sortable table in a block; empty without rows. */
function tableBlock(title, columns, rows, settings = {}) {
  if (!rows.length) return "";
  const result = sortable(columns, { label: title, ...settings });
  result.show(rows);
  return block(title + " (" + count(rows.length) + ")", result.node);
}

/* -- choices ------------------------------------------------------------------------------------------------------ */

/* Choices of a page, stored in the address, so that views can be linked. */
function chosen(defaults) {
  const read = () => Object.fromEntries([...new URLSearchParams(location.hash.slice(1))].filter(([name]) => Object.hasOwn(defaults, name)));
  const state = { ...defaults, ...read() };
  return {
    state,
    set(changes) {
      Object.assign(state, changes);
      const wanted = "#" + new URLSearchParams(Object.entries(state).filter(([name, value]) => value !== defaults[name]));
      if (wanted !== (location.hash || "#")) history.replaceState(null, "", wanted);
    },
    follow(draw) {
      addEventListener("hashchange", () => { Object.assign(state, defaults, read()); draw(); });
    },
  };
}

/* A bar of filters above a table. selects: { key: [label, [[value, title], …]] } */
function filterBar(choice, placeholder, selects, changed) {
  const bar = element("div", undefined, "bar filters"), find = element("input"), status = element("span", "", "quiet count");
  const { state } = choice, result = [];
  find.type = "search";
  find.placeholder = placeholder;
  find.setAttribute("aria-label", placeholder);
  find.oninput = () => { choice.set({ find: find.value }); changed(); };
  status.setAttribute("role", "status");
  bar.append(find);
  for (const [key, [label, pairs]] of Object.entries(selects)) {
    const select = element("select");
    select.setAttribute("aria-label", label);
    select.name = key;
    options(select, [["", label + ": all"], ...pairs], state[key]);
    select.onchange = () => { choice.set({ [key]: select.value }); changed(); };
    result.push([key, select]);
    if (pairs.length > 1) bar.append(select);
  }
  const show = () => { find.value = state.find; for (const [key, select] of result) select.value = state[key]; };
  show();
  bar.append(status);
  return { bar, status, show, find };
}

const distinct = (values) => [...new Set(values)].sort((a, b) => a.localeCompare(b)).map((value) => [value, value || "(none)"]);
/* The pairs of a table of names that occur among values. */
const occurring = (names, values) => Object.entries(names).filter(([name]) => values.includes(name));

function matches(text, wanted) {
  return wanted.toLowerCase().split(/\s+/).filter(Boolean).every((word) => text.includes(word));
}

/* The large table of a page. The address has the key of the column to sort by. */
function listOf(columns, choice, label, open) {
  const key = choice.state.sort.replace(/^-/, "");
  const result = sortable(columns, {
    open, label, limit: 100,
    sorted: columns.findIndex((column) => column.key === key),
    down: choice.state.sort.startsWith("-"),
    sort: (column, down) => choice.set({ sort: (down ? "-" : "") + columns[column].key }),
  });
  result.node.classList.add("whole");
  return result;
}

function exportButton(name, table) {
  const button = element("button", "Export CSV");
  button.title = "the rows that are shown, in their order";
  button.onclick = () => download(name + ".csv", table.csv());
  return button;
}

/* -- search from everywhere --------------------------------------------------------------------------------------- */

function startSearch(live) {
  const box = byId("anywhere");
  byId("search").onsubmit = (event) => {
    event.preventDefault();
    if (!live && box.value.trim()) location.href = data.top + "search.html#" + new URLSearchParams({ find: box.value.trim() });
  };
  addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target.closest("input, select, textarea")) return;
    event.preventDefault();
    box.focus();
  });
}
