/* Charts of many rows: times, PCC, host operations. */
const power = (value) => (value >= 1 ? count(value) + " s" : seconds(value).replace(/\.0+ /, " "));

/* Whole powers of ten that enclose the values. */
function decades(values) {
  const logs = values.map(Math.log10);
  const first = Math.floor(Math.min(...logs)), last = Math.max(first + 1, Math.ceil(Math.max(...logs)));
  return [first, last];
}

/* Compiled against original run time, both logarithmic; rows below the line are faster than torch. */
function timesPlot(rows, label) {
  const WIDTH = 460, HEIGHT = 280, left = 76, right = WIDTH - 14, base = HEIGHT - 38, top = 10;
  const picture = chart(WIDTH, HEIGHT, label), timed = rows.filter((row) => row.original && row.compiled);
  if (!timed.length) return null;
  const [first, last] = decades(timed.flatMap((row) => [row.original, row.compiled]));
  const along = (value) => (Math.log10(value) - first) / (last - first);
  const x = (value) => left + along(value) * (right - left), y = (value) => base - along(value) * (base - top);
  for (let exponent = first; exponent <= last; exponent++) {
    const value = 10 ** exponent, at = x(value);
    picture.append(svg("line", { x1: at, x2: at, y1: top, y2: base, class: "level" }),
      svg("text", { x: at, y: base + 16, "text-anchor": exponent === last ? "end" : "middle" }, power(value)));
  }
  levels(picture, Array.from({ length: last - first + 1 }, (_, k) => 10 ** (first + k)), y, left, right, power);
  picture.append(svg("line", { x1: x(10 ** first), y1: y(10 ** first), x2: x(10 ** last), y2: y(10 ** last), class: "equal" }),
    svg("text", { x: (left + right) / 2, y: HEIGHT - 3, "text-anchor": "middle" }, "torch"),
    svg("text", { x: 12, y: (top + base) / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${(top + base) / 2})` }, "compiled"));
  for (const row of timed) {
    const name = row.model + (row.mode === "train" ? " (train)" : "");
    const dot = svg("circle", { cx: x(row.original), cy: y(row.compiled), r: 3.5, class: "dot " + row.status });
    const link = svg("a", { href: page(row.page, row.mode), "aria-label": name }, dot);
    picture.append(withTip(link, () => [["b", name], ["span", `torch ${seconds(row.original)}, compiled ${seconds(row.compiled)}`], ["div", ratioText(row)]]));
  }
  return picture;
}

function ratioText(row) {
  const ratio = row.compiled / row.original;
  return ratio >= 1 ? ratio.toPrecision(3) + " times as long as torch" : (1 / ratio).toPrecision(3) + " times as fast as torch";
}

const PCC_STEPS = [[-Infinity, "< 0.9"], [0.9, "0.9"], [0.99, "0.99"], [0.999, "0.999"], [0.9999, "0.9999"], [0.99999, "0.99999"]];

/* Number of rows by PCC, one bar per nine. */
function pccPlot(rows, label) {
  const WIDTH = 460, HEIGHT = 280, left = 46, right = WIDTH - 10, base = HEIGHT - 38, top = 18;
  const picture = chart(WIDTH, HEIGHT, label), measured = rows.filter((row) => row.pcc !== null && row.status !== "fails");
  if (!measured.length) return null;
  const bins = PCC_STEPS.map(([from], k) => measured.filter((row) => row.pcc >= from && (k + 1 === PCC_STEPS.length || row.pcc < PCC_STEPS[k + 1][0])));
  const most = Math.max(...bins.map((bin) => bin.length)), each = (right - left) / bins.length, y = (many) => base - many / most * (base - top);
  levels(picture, ticks(most), y, left, right, count);
  bins.forEach((bin, k) => {
    const [from, title] = PCC_STEPS[k], tall = bin.length ? Math.max(1.5, base - y(bin.length)) : 0;
    const bar = svg("rect", { x: left + k * each + 4, y: base - tall, width: each - 8, height: tall, class: "column " + (from < 0.9 ? "wrong" : from < 0.99 ? "bad" : "near") });
    const names = bin.slice(0, 6).map((row) => row.model).join(", ") + (bin.length > 6 ? " …" : "");
    picture.append(withTip(bar, () => [["b", k ? "PCC from " + title : "PCC below 0.9"], ["span", bin.length + " rows"], ["div", names]]),
      svg("text", { x: left + (k + 0.5) * each, y: base + 16, "text-anchor": "middle" }, k ? "≥ " + title : title));
    if (bin.length) picture.append(svg("text", { x: left + (k + 0.5) * each, y: base - tall - 4, "text-anchor": "middle" }, count(bin.length)));
  });
  picture.append(svg("text", { x: (left + right) / 2, y: HEIGHT - 3, "text-anchor": "middle" }, "PCC with torch"));
  return picture;
}

/* Operations left to the host, most frequent first; each bar links to its operation. */
function hostPlot(rows, label) {
  const SHOWN = 11, WIDTH = 460, HEIGHT = 280, left = 210, right = WIDTH - 48, top = 4, sums = new Map();
  for (const row of rows) for (const [op, many] of row.host) {
    const found = sums.get(op) || { op, many: 0, models: new Set() };
    found.many += many;
    found.models.add(row.model);
    sums.set(op, found);
  }
  if (!sums.size) return null;
  const sorted = [...sums.values()].sort((a, b) => b.many - a.many || a.op.localeCompare(b.op)), shown = sorted.slice(0, SHOWN);
  const rest = sorted.slice(SHOWN).reduce((sum, { many }) => sum + many, 0), many = Math.min(sorted.length, SHOWN), picture = chart(WIDTH, HEIGHT, label);
  /* The same height as the other charts, for any number of bars. */
  const each = (HEIGHT - top - (rest ? 24 : 4)) / many, thick = Math.min(each - 6, 40);
  shown.forEach(({ op, many: times, models }, k) => {
    const middle = top + (k + 0.5) * each, text = op.length > 32 ? op.slice(0, 31) + "…" : op, wide = Math.max(1.5, times / sorted[0].many * (right - left));
    const line = svg("a", { href: Object.hasOwn(data.pages, op) ? data.top + data.pages[op] : "#", "aria-label": op },
      svg("text", { x: left - 6, y: middle + 4, "text-anchor": "end" }, text),
      svg("rect", { x: left, y: middle - thick / 2, width: wide, height: thick, class: "column bad" }));
    picture.append(withTip(line, () => [["b", op], ["span", count(times) + " times"], ["div", "in " + [...models].slice(0, 6).join(", ") + (models.size > 6 ? " …" : "")]]),
      svg("text", { x: left + wide + 5, y: middle + 4 }, count(times)));
  });
  if (rest) picture.append(svg("text", { x: left - 6, y: HEIGHT - 6, "text-anchor": "end" }, `and ${sorted.length - SHOWN} more, ${count(rest)} times`));
  return picture;
}

/* A chart under its title, or a sentence that says why there is none. */
function figure(title, picture, nothing, ...captions) {
  const result = element("figure"), caption = element("figcaption");
  caption.append(...captions);
  result.append(picture || element("p", nothing, "quiet"));
  if (picture && captions.length) result.append(caption);
  return block(title, result);
}
