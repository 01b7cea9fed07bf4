/* What pages of many tables have in common: links, cells, blocks, choices, changes between two runs, and SVG. */

/* A link. Long names may break after a dot, a slash or an underscore. */
function anchor(text, href, className) {
  const made = element("a", undefined, className);
  made.append(...text.split(/(?<=[._/])/).flatMap((part, k) => (k ? [element("wbr"), part] : [part])));
  made.href = href;
  return made;
}

/* A short number, with the exact one where the pointer rests. */
function exact(number, text = count) {
  const made = element("span", text(number));
  if (text(number) !== String(number)) made.title = number.toLocaleString("en-US");
  return made;
}

function shareCell(share) {
  const made = element("span", percent(share), "share");
  made.style.setProperty("--share", share);
  return made;
}

/* A change of a number between two runs. */
function difference(before, after, text = count) {
  if (before === after) return element("span", "·", "quiet");
  const made = element("span", (after > before ? "+" : "−") + text(Math.abs(after - before)), after > before ? "up" : "down");
  if (before && after) made.title = (after / before).toPrecision(3) + " times";
  return made;
}

/* -- blocks and choices --------------------------------------------------------------------------------------------- */

function card(number, name) {
  const made = element("div", undefined, "card");
  made.append(element("b", number), element("span", name));
  return made;
}

function block(title, ...children) {
  const made = element("section", undefined, "block");
  made.append(element("h3", title), ...children);
  return made;
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

/* What became of something between two runs, in the order in which it is shown: what got worse comes first. */
const KINDS = ["regressed", "improved", "added", "gone", "changed", "same"];

function changeCell([kind, ...what]) {
  const made = element("span", kind, "change " + kind);
  if (what.length) made.title = "different: " + what.join(", ");
  return made;
}

function tally(items, of) {
  const made = element("p", undefined, "tally");
  for (const kind of KINDS) {
    const many = items.filter((item) => of(item).change[0] === kind).length;
    if (many) made.append(element("span", many + " " + kind, "change " + kind), " ");
  }
  return made;
}

/* -- charts as inline SVG ------------------------------------------------------------------------------------------- */

const SVG = "http://www.w3.org/2000/svg";

function svg(tag, attributes, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function chart(width, height, label) {
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": label });
}

function tells(shape, lines) {
  shape.addEventListener("pointermove", (event) => showTip(lines(event), event.clientX, event.clientY));
  shape.addEventListener("pointerleave", () => { tip.hidden = true; });
  return shape;
}

/* Round numbers from 0 to at least `most`, at most six of them. */
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
