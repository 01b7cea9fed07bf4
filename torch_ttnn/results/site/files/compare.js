/* Two runs compared row by row, regressions first. */
const choice = chosen({ find: "", change: "differs", mode: "", sort: "" }), { state } = choice;
const TITLES = { ops_remaining: "host ops", crossings_within: "crossings within", gradient_pcc: "gradient PCC", pcc: "PCC" };
const rank = (row) => data.changes.indexOf(row);

function fieldsCell(row) {
  const result = element("ul", undefined, "changes");
  for (const [kind, list] of [["regressed", row.worse], ["improved", row.better], ["changed", row.conditions]]) {
    for (const [field, before, after] of list) {
      const line = element("li", undefined, kind);
      line.append(element("b", TITLES[field] || field.replaceAll("_", " ")), " " + before + " → " + after);
      result.append(line);
    }
  }
  return result;
}

/* Before and after in one cell; equal values are shown once. */
function two(row, text, isWorse) {
  const [before, after] = row.runs.map((run) => (run ? text(run) : NONE));
  const result = element("span", before === after ? after : before + " → " + after);
  if (before === after) result.className = "quiet";
  else if (isWorse && row.runs.every(Boolean) && isWorse(...row.runs)) result.className = "bad";
  return result;
}
const counted = (run, many) => (run.status === "fails" ? NONE : count(many));
const last = (row, value) => { const run = row.runs[1] || row.runs[0]; return known(value(run)); };
const ratio = (row) => (row.runs.every((run) => run?.compiled) ? row.runs[1].compiled / row.runs[0].compiled : -1);

const columns = [
  { key: "model", title: "row", value: (row) => row.key, cell: (row) => (row.page ? anchor(row.key, page(row.page, row.mode), "name") : element("span", row.key, "name")) },
  { key: "change", title: "change", kind: "short", value: rank, plain: (row) => row.change[0], cell: (row) => changeCell(row.change) },
  { key: "what", title: "fields", kind: "widest", value: (row) => [...row.worse, ...row.better].map(([field]) => field).join(" "), plain: (row) => [...row.worse, ...row.better].map((each) => each.join(" ")).join("; "), cell: fieldsCell },
  { key: "status", title: "status", kind: "short", value: (row) => last(row, (run) => Object.keys(STATUSES).indexOf(run.status)), plain: (row) => row.runs.map((run) => run?.status ?? "").join(" → "), cell: (row) => two(row, (run) => STATUSES[run.status]) },
  { key: "remain", title: "torch ops remain", kind: "count", value: (row) => last(row, (run) => run.remain), cell: (row) => two(row, (run) => counted(run, run.remain), (a, b) => b.remain > a.remain) },
  { key: "crossings", title: "to/from device", kind: "count", value: (row) => last(row, (run) => run.crossings), cell: (row) => two(row, (run) => counted(run, run.crossings), (a, b) => b.crossings > a.crossings) },
  { key: "pcc", title: "PCC", kind: "number", value: (row) => last(row, (run) => run.pcc), cell: (row) => two(row, (run) => pccText(run.pcc)) },
  { key: "compiled", title: "compiled", kind: "number", value: (row) => last(row, (run) => run.compiled), cell: (row) => two(row, (run) => seconds(run.compiled)) },
  { key: "ratio", title: "after ÷ before", kind: "number", help: "of compiled run times", value: ratio, cell: (row) => (ratio(row) < 0 ? NONE : String(+ratio(row).toPrecision(3))) },
];
const all = listOf(columns, choice, "rows", (row) => { if (row.page) location.href = page(row.page, row.mode); });
const filters = filterBar(choice, "filter by name or field", {
  change: ["change", [["differs", "all changes"], ...KINDS.filter((kind) => data.changes.some((row) => row.change[0] === kind)).map((kind) => [kind, kind])]],
  mode: ["mode", occurring(MODES, data.changes.map((row) => row.mode))],
}, draw);
const empty = element("p", "", "quiet");

function draw() {
  const wanted = (row) => (!state.change || (state.change === "differs" ? row.change[0] !== "same" : row.change[0] === state.change)) && (!state.mode || row.mode === state.mode)
    && matches([row.key, ...[...row.worse, ...row.better].map(([field]) => (TITLES[field] || "") + " " + field)].join(" ").toLowerCase(), state.find);
  const rows = data.changes.filter(wanted);
  all.show(rows);
  empty.hidden = rows.length > 0;
  empty.textContent = state.change === "differs" && !state.find && !state.mode ? "Nothing changed." : "No row matches.";
  filters.status.textContent = rows.length === data.changes.length ? rows.length + " rows" : rows.length + " of " + data.changes.length + " rows";
}

filters.bar.append(exportButton("compare", all));
byId("main").append(filters.bar, all.node, empty);
choice.follow(() => { filters.show(); draw(); });
draw();
startSearch();
