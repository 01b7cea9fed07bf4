/* Shared by pages with many tables: links, cells, blocks, choices, changes between two runs, and SVG. */

/* A link. Long names may break after a dot, a slash or an underscore. */
function anchor(text, href, className) {
  const result = element("a", undefined, className);
  result.append(...text.split(/(?<=[._/])/).flatMap((part, k) => (k ? [element("wbr"), part] : [part])));
  result.href = href;
  return result;
}

/* A short number, with the exact one as a tooltip. */
function exact(number, text = count) {
  const result = element("span", text(number));
  if (text(number) !== String(number)) result.title = number.toLocaleString("en-US");
  return result;
}

function shareCell(share) {
  const result = element("span", percent(share), "share");
  result.style.setProperty("--share", share);
  return result;
}

/* A change of a number between two runs. */
function difference(before, after, text = count) {
  if (before === after) return element("span", "·", "quiet");
  const result = element("span", (after > before ? "+" : "−") + text(Math.abs(after - before)), after > before ? "up" : "down");
  if (before && after) result.title = (after / before).toPrecision(3) + " times";
  return result;
}

/* -- blocks and choices --------------------------------------------------------------------------------------------- */

function card(number, name) {
  const result = element("div", undefined, "card");
  result.append(element("b", number), element("span", name));
  return result;
}

function block(title, ...children) {
  const result = element("section", undefined, "block");
  result.append(element("h3", title), ...children);
  return result;
}

function choices(holder, options, chosen, pick) {
  holder.replaceChildren(...options.map(([name, title]) => {
    const button = element("button", title);
    button.setAttribute("aria-pressed", name === chosen);
    button.onclick = () => pick(name);
    return button;
  }));
}

function options(select, pairs, chosen) {
  select.hidden = !pairs.length;
  select.replaceChildren(...pairs.map(([value, title]) => new Option(title, value, false, value === chosen)));
}

/* -- changes between two runs --------------------------------------------------------------------------------------- */

/* Kinds of changes between two runs in display order: regressions first. */
const KINDS = ["regressed", "improved", "added", "gone", "changed", "same"];

function changeCell([kind, ...what]) {
  const result = element("span", kind, "change " + kind);
  if (what.length) result.title = "different: " + what.join(", ");
  return result;
}

function tally(items, of) {
  const result = element("p", undefined, "tally");
  for (const kind of KINDS) {
    const many = items.filter((item) => of(item).change[0] === kind).length;
    if (many) result.append(element("span", many + " " + kind, "change " + kind), " ");
  }
  return result;
}

/* -- charts as inline SVG ------------------------------------------------------------------------------------------- */

const SVG = "http://www.w3.org/2000/svg";

function svg(tag, attributes, ...children) {
  const result = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) result.setAttribute(name, value);
  result.append(...children);
  return result;
}

function chart(width, height, label) {
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": label });
}

function withTip(shape, lines) {
  shape.addEventListener("pointermove", (event) => showTip(lines(event), event.clientX, event.clientY));
  shape.addEventListener("pointerleave", () => { tip.hidden = true; });
  return shape;
}

/* At most six round numbers from 0 to `most`. */
function ticks(most) {
  const rough = Math.max(most, 1) / 5, power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 5, 10].find((each) => each * power >= rough) * power);
  return Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, k) => k * step);
}

/* Horizontal lines with their numbers, for a plot from x0 to x1. */
function levels(picture, values, y, x0, x1, text) {
  for (const value of values) {
    picture.append(svg("line", { x1: x0, x2: x1, y1: y(value), y2: y(value), class: "level" }),
      svg("text", { x: x0 - 6, y: y(value) + 4, "text-anchor": "end" }, text(value)));
  }
}
