/* The first page: charts and a table of all rows. */
const choice = chosen({ find: "", family: "", status: "", mode: "", source: "", sort: "model" }), { state } = choice;
const values = (key) => data.rows.map((row) => row[key]);
const ratio = (row) => (row.original && row.compiled ? row.compiled / row.original : -1);

function nameCell(row) {
  const result = modelLink(row.model, row.page, row.mode), holder = element("span");
  holder.append(result);
  if (row.reduced) {
    const mark = element("span", " †", "quiet");
    mark.title = row.reduced;
    holder.append(mark);
  }
  return holder;
}

const VERDICTS = ["worse", "equal", "better"];
const peer = { key: "peer", title: "vs older", kind: "short", help: "compared with the older compiler's published row, by host ops and transfers", value: (row) => VERDICTS.indexOf(row.peer?.[0]), plain: (row) => row.peer?.[0] ?? "",
  cell: (row) => { const result = row.peer ? pill(row.peer[0], row.peer[0]) : element("span", NONE, "quiet"); if (row.peer) result.title = row.peer[1]; return result; } };

const ran = (row) => row.status !== "fails";
/* The zeros of failed rows would look like good numbers. */
const counted = (key, title, help, value, text) => ({ key, title, kind: "count", help, value: (row) => (ran(row) ? value(row) : -1), cell: (row) => (ran(row) ? text(row) : NONE) });
const timed = (key, title, help) => ({ key, title, kind: "number", help, value: (row) => known(row[key]), cell: (row) => seconds(row[key]) });

const columns = [
  { key: "model", title: "model", value: (row) => row.model + (row.mode === "train" ? " (train)" : ""), cell: nameCell },
  { key: "status", title: "status", kind: "short", value: (row) => Object.keys(STATUSES).indexOf(row.status), plain: (row) => STATUSES[row.status], cell: statusCell },
  { key: "pcc", title: "PCC", kind: "number", help: "with torch in float32: the worst output, in training the worst gradient", value: (row) => known(row.pcc), cell: (row) => pccCell(row.pcc) },
  { key: "before", title: "torch ops before", kind: "count", help: "ATen operations of the graphs (distinct ones)", value: (row) => row.before[0] || -1, cell: (row) => (row.before[0] ? bracketed(row.before) : NONE) },
  counted("remain", "torch ops remain", "those of them that the host runs (distinct ones)", (row) => row.remain[0], (row) => bracketed(row.remain)),
  counted("crossings", "to/from device", "tensors transferred in a warm call (those that are neither inputs nor outputs of a graph)", (row) => row.crossings[0], (row) => `${count(row.crossings[0])} (${count(row.crossings[1])})`),
  counted("conversions", "conversions", "to_layout, typecast and to_memory_config on the device", (row) => row.conversions, (row) => count(row.conversions)),
  timed("original", "torch", "a warm call of the model by torch"),
  timed("compiled", "compiled", "a warm call of the compiled model"),
  { key: "ratio", title: "compiled ÷ torch", kind: "number", value: ratio, cell: (row) => (ratio(row) < 0 ? NONE : String(+ratio(row).toPrecision(3))) },
  timed("first", "first run", "compiling, preparing weights, running"),
  { key: "predicted", title: "predicted on the device", kind: "number", help: "predicted by the timing model for one chip of the board, not measured: programs and the gaps between them in a trace, without transfers and operations on the host",
    value: (row) => known(row.predicted), plain: (row) => row.predicted ?? "", cell: predicted },
  { key: "family", title: "family", kind: "short", value: (row) => row.family },
  { key: "batch", title: "batch", kind: "count", value: (row) => row.batch },
  { key: "dram", title: "DRAM peak", kind: "bytes", value: (row) => row.dram, cell: (row) => memory(row.dram) },
  ...(data.rows.some((row) => row.peer) ? [peer] : []),
];

const all = listOf(columns, choice, "models", (row) => { location.href = page(row.page, row.mode); });
const texts = new Map(data.rows.map((row) => [row, [row.model, row.family, row.source, row.task, row.reason, ...row.host.map(([op]) => op)].join(" ").toLowerCase()]));
const filters = filterBar(choice, "filter by name, family, task, host op", {
  family: ["family", distinct(values("family"))],
  status: ["status", occurring(STATUSES, values("status"))],
  mode: ["mode", occurring(MODES, values("mode"))],
  source: ["source", distinct(values("source"))],
}, draw);
const charts = element("div", undefined, "grid charts"), list = element("section", undefined, "list"), empty = element("p", "No row matches.", "quiet");

function draw() {
  const wanted = (row) => ["family", "status", "mode", "source"].every((key) => !state[key] || row[key] === state[key]) && matches(texts.get(row), state.find);
  const rows = data.rows.filter(wanted);
  all.show(rows);
  filters.status.textContent = rows.length === data.rows.length ? rows.length + " rows" : rows.length + " of " + data.rows.length + " rows";
  empty.hidden = rows.length > 0;
  charts.replaceChildren(
    figure("Run time, compiled against torch", timesPlot(rows, "compiled against original run time"), "No row has times.", legend({ "dot device": STATUSES.device, "dot host": STATUSES.host }), data.device),
    figure("Agreement with torch", pccPlot(rows, "rows by PCC"), "No row has a PCC."),
    figure("Host operations", hostPlot(rows, "host operations by name"), rows.length ? "None: every operation runs on the device." : "No row matches."));
}

filters.bar.append(exportButton("results", all));
list.append(filters.bar, all.node, empty);
const done = data.rows.flatMap((row) => row.tasks.map((task) => [row, ...task]));
byId("main").append(charts, list, tableBlock("Tasks with real data", [{ title: "model", value: ([row]) => row.model, cell: ([row]) => modelLink(row.model, row.page, row.mode) }, ...taskColumns(1)], done));
choice.follow(() => { filters.show(); draw(); });
draw();
startSearch();
