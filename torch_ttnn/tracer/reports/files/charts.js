/* Charts as inline SVG: distribution of sizes, shares of operations, models that the first k operations cover. */
const binText = (exponent) => (exponent < 0 ? "no elements"
  : exponent === 0 ? "1 element" : count(2 ** exponent) + " to " + count(2 ** (exponent + 1) - 1) + " elements");

/* Calls by number of elements: one bar per power of two on a logarithmic axis; several runs side by side. */
function histogram(sizes, titles, label) {
  const WIDTH = 560, HEIGHT = 210, left = 58, right = WIDTH - 10, base = HEIGHT - 34, top = 12;
  const picture = chart(WIDTH, HEIGHT, label), bins = sizes.bins;
  if (!bins.length) return picture;
  const first = bins[0][0], last = Math.max(bins[bins.length - 1][0], first + 5), each = (right - left) / (last - first + 1);
  const most = Math.max(...bins.flatMap(([, ...calls]) => calls));
  const x = (exponent) => left + (exponent - first) * each, y = (calls) => base - calls / most * (base - top);
  levels(picture, ticks(most), y, left, right, count);
  for (let power = 0; power <= 18; power++) {
    const at = x(Math.log2(10 ** power));
    if (at < left - 1 || at > right) continue;
    picture.append(svg("line", { x1: at, x2: at, y1: base, y2: base + 4, class: "tick" }));
    if (each * Math.log2(10) > 34 || power % 3 === 0) {
      const text = power < 6 ? (10 ** power).toLocaleString("en-US") : count(10 ** power);
      picture.append(svg("text", { x: at, y: base + 16, "text-anchor": "middle" }, text));
    }
  }
  if (first < 0) picture.append(svg("text", { x: x(-0.5), y: base + 16, "text-anchor": "middle" }, "none"));
  picture.append(svg("text", { x: (left + right) / 2, y: HEIGHT - 3, "text-anchor": "middle" }, "elements"));
  for (const [exponent, ...calls] of bins) {
    const thick = (each - 2) / calls.length;
    calls.forEach((many, run) => {
      const tall = many ? Math.max(1.5, base - y(many)) : 0;
      const bar = svg("rect", { x: x(exponent) + 1 + run * thick, y: base - tall, width: Math.max(1, thick), height: tall, class: "column run" + run });
      picture.append(withTip(bar, () => [["b", binText(exponent)], ["span", count(many) + " calls"], ["div", titles[run]]]));
    });
  }
  return picture;
}

/* Shares of a whole, largest first, with the cumulative sum; rows: { name, value, href }. */
function pareto(rows, unit, label) {
  const SHOWN = 20, WIDTH = 600, EACH = 20, left = 220, right = WIDTH - 52, top = 22;
  const total = rows.reduce((sum, { value }) => sum + value, 0);
  const sorted = rows.filter(({ value }) => value > 0).sort((a, b) => b.value - a.value);
  const shown = sorted.slice(0, SHOWN), rest = sorted.slice(SHOWN);
  if (rest.length) shown.push({ name: "… and " + rest.length + " more", value: rest.reduce((sum, { value }) => sum + value, 0) });
  const picture = chart(WIDTH, top + shown.length * EACH + 8, label), points = [];
  const x = (share) => left + share * (right - left), bottom = top + shown.length * EACH;
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    picture.append(svg("line", { x1: x(share), x2: x(share), y1: top - 4, y2: bottom, class: "level" }),
      svg("text", { x: x(share), y: top - 8, "text-anchor": "middle" }, percent(share)));
  }
  let sum = 0;
  shown.forEach(({ name, value, href }, k) => {
    const at = top + k * EACH, share = value / total, text = name.length > 32 ? name.slice(0, 31) + "…" : name;
    const title = svg("text", { x: left - 6, y: at + 14, "text-anchor": "end" }, text);
    sum += value;
    if (k < SHOWN) points.push([x(sum / total), at + EACH / 2]); /* the rest always completes 100% */
    const bar = svg("rect", { x: left, y: at + 3, width: Math.max(1, x(share) - left), height: EACH - 6, class: "column run0" });
    const together = percent(sum / total) + " including all above";
    const line = svg(href ? "a" : "g", href ? { href, "aria-label": `${name}: ${percent(share)}` } : {}, title, bar);
    picture.append(withTip(line, () => [["b", name], ["span", count(value) + " " + unit + ", " + percent(share)], ["div", together]]));
  });
  picture.append(svg("polyline", { points: points.map((point) => point.join(",")).join(" "), class: "sum" }));
  points.forEach(([cx, cy], k) => {
    picture.append(svg("circle", { cx, cy, r: 2.5, class: "sum" }));
    if (k === 0 || k % 5 === 4 || k === points.length - 1) {
      const so = shown.slice(0, k + 1).reduce((part, { value }) => part + value, 0) / total;
      picture.append(svg("text", { x: cx + 7, y: cy + 4, class: "sum" }, percent(so)));
    }
  });
  return picture;
}

/* Models that the first k operations cover completely; steps: { name, covered } in the order of k. */
function coverage(steps, models, today, label, room) {
  const WIDTH = Math.min(Math.max(room, 420), 1000), HEIGHT = 300, left = 50, right = WIDTH - 16, base = HEIGHT - 36, top = 14;
  const picture = chart(WIDTH, HEIGHT, label);
  const x = (k) => left + k / steps.length * (right - left), y = (covered) => base - covered / models * (base - top);
  levels(picture, ticks(models), y, left, right, count);
  for (const k of ticks(steps.length)) {
    picture.append(svg("line", { x1: x(k), x2: x(k), y1: base, y2: base + 4, class: "tick" }),
      svg("text", { x: x(k), y: base + 17, "text-anchor": "middle" }, k));
  }
  picture.append(svg("text", { x: (left + right) / 2, y: HEIGHT - 3, "text-anchor": "middle" }, "operations supported"));
  let path = `M${x(0)},${y(0)}`;
  steps.forEach(({ covered }, k) => { path += `H${x(k + 1).toFixed(1)}V${y(covered).toFixed(1)}`; });
  picture.append(svg("path", { d: `${path}V${base}H${left}Z`, class: "area" }), svg("path", { d: path, class: "line" }));
  if (today !== undefined) {
    picture.append(svg("line", { x1: left, x2: right, y1: y(today), y2: y(today), class: "today" }),
      svg("text", { x: right - 4, y: y(today) < top + 14 ? y(today) + 14 : y(today) - 5, "text-anchor": "end", class: "today" }, today + " lowered today"));
  }
  const cursor = svg("line", { y1: top, y2: base, x1: left, x2: left, class: "cursor" });
  const whole = svg("rect", { x: left, y: top, width: right - left, height: base - top, fill: "transparent" });
  picture.append(cursor, withTip(whole, (event) => {
    const box = whole.getBoundingClientRect(), share = (event.clientX - box.left) / box.width;
    const k = Math.min(steps.length - 1, Math.max(0, Math.ceil(share * steps.length) - 1));
    cursor.setAttribute("x1", x(k + 1));
    cursor.setAttribute("x2", x(k + 1));
    return [["b", steps[k].name], ["span", `the first ${k + 1} operations cover ${steps[k].covered} of ${models} models`]];
  }));
  return picture;
}
