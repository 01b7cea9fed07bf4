"use strict";
/* Shared by all pages: elements, numbers as text, the tooltip, sortable tables, CSV. */
const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("data").textContent);

/* Text is only set as text, so that no name is interpreted as HTML. */
function element(tag, text, className) {
  const result = document.createElement(tag);
  if (text !== undefined) result.textContent = text;
  if (className) result.className = className;
  return result;
}

function bytes(count) {
  if (count < 1024) return count + " B";
  const step = Math.min(Math.floor(Math.log2(count) / 10), 6);
  return (count / 1024 ** step).toFixed(1) + " " + ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"][step];
}

/* 12,345 or 4.12 G */
function count(number) {
  if (Math.abs(number) < 1e6) return number.toLocaleString("en-US");
  const step = Math.min(Math.floor(Math.log10(Math.abs(number)) / 3 + 1e-9), 6);
  return +(number / 1000 ** step).toPrecision(3) + " " + ["", "k", "M", "G", "T", "P", "E"][step];
}

/* Predicted nanoseconds, with three digits; empty without a prediction. */
function nanoseconds(ns) {
  if (ns < 0) return "";
  const [scale, unit] = ns >= 1e9 ? [1e9, "s"] : ns >= 1e6 ? [1e6, "ms"] : ns >= 1e3 ? [1e3, "µs"] : [1, "ns"], number = ns / scale;
  return (number >= 100 ? Math.round(number).toLocaleString("en-US") : number ? number.toPrecision(3) : "0") + " " + unit;
}

/* Rounded down, so that 100% means all. */
function percent(share) {
  if (share > 0 && share < 0.001) return "<0.1%";
  return Math.floor(share * 1000 + 1e-9) / 10 + "%";
}

const tip = byId("tip");

/* lines: [tag, text]; empty ones are omitted. */
function showTip(lines, x, y) {
  tip.replaceChildren(...lines.filter(([, text]) => text).map(([tag, text]) => element(tag, text)));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - box.width - 8)) + "px";
  tip.style.top = Math.max(4, Math.min(y + 14, innerHeight - box.height - 8)) + "px";
}

/* -- tables ------------------------------------------------------------------------------------------------------- */

/* How a value of each kind of column is shown; columns of these kinds are numeric. */
const NUMBERS = { number: String, bytes, count, percent, nanoseconds };
const compared = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));

/* A table that sorts by its headings and creates rows as they are needed.

   columns: { title, kind, value: (row) => number or text, cell: (row) => element or text,
              plain: (row) => value in CSV, help }
   options: sorted (column), down, sort: (column, down) => …, open: (row) => …, limit. `show(rows)` fills it. */
function sortable(columns, { sorted = -1, down = false, sort, open, limit = 300, label } = {}) {
  const node = element("div", undefined, "table"), result = element("table"), body = element("tbody");
  const thead = element("thead"), headRow = element("tr"), more = element("button", "show more", "more");
  let rows = [], shown = [], drawn = 0;
  node.tabIndex = 0;
  node.setAttribute("role", "region");
  if (label) node.setAttribute("aria-label", label);
  function order() {
    shown = [...rows];
    if (sorted < 0) return;
    const value = columns[sorted].value, sign = down ? -1 : 1;
    shown.sort((a, b) => sign * compared(value(a), value(b)));
  }
  function line(row) {
    const result = element("tr");
    for (const { kind = "", value, cell } of columns) {
      const content = cell ? cell(row) : (NUMBERS[kind] || String)(value(row));
      const td = element("td", undefined, kind in NUMBERS ? "number" : kind);
      td.append(content);
      result.append(td);
    }
    if (open) {
      result.className = "opens";
      result.onclick = (event) => { if (!event.target.closest("a, button")) open(row); };
    }
    return result;
  }
  function draw(upTo) {
    body.append(...shown.slice(drawn, upTo).map(line));
    drawn = Math.min(upTo, shown.length);
    more.hidden = drawn >= shown.length;
    more.textContent = "show more (" + drawn + " of " + shown.length + " shown)";
  }
  function fill() {
    order();
    body.replaceChildren();
    drawn = 0;
    draw(limit);
    [...headRow.children].forEach((cell, k) => {
      if (k === sorted) cell.setAttribute("aria-sort", down ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    });
  }
  columns.forEach(({ title, kind = "", help }, k) => {
    const cell = element("th", undefined, kind in NUMBERS ? "number" : ""), button = element("button", title);
    cell.scope = "col";
    button.setAttribute("aria-label", title); /* without the arrow */
    if (help) cell.title = help;
    button.onclick = () => {
      down = sorted === k ? !down : kind in NUMBERS;
      sorted = k;
      fill();
      if (sort) sort(sorted, down);
    };
    cell.append(button);
    headRow.append(cell);
  });
  more.onclick = () => draw(drawn + 1000);
  node.onscroll = () => { if (!more.hidden && node.scrollTop + 2 * node.clientHeight > node.scrollHeight) draw(drawn + limit); };
  thead.append(headRow);
  result.append(thead, body);
  node.append(result, more);
  return {
    node,
    show: (wanted) => { rows = wanted; fill(); },
    csv: () => csv([columns.map(({ title }) => title), ...shown.map((row) => columns.map(({ value, plain }) => (plain || value)(row)))]),
  };
}

/* A table under its title, with a filter. columns: [title, kind]; a row is an array in their order. */
function table(title, columns, rows, open) {
  const block = element("div"), bar = element("div", undefined, "bar");
  const filter = element("input"), count = element("span", "", "quiet");
  const result = sortable(columns.map(([name, kind], k) => ({ title: name, kind, value: (row) => row[k] })), { open, label: title });
  filter.type = "search";
  filter.placeholder = "filter";
  filter.setAttribute("aria-label", "filter " + title);
  filter.oninput = () => {
    const wanted = filter.value.toLowerCase();
    const shown = rows.filter((row) => !wanted || row.slice(0, columns.length).join(" ").toLowerCase().includes(wanted));
    count.textContent = wanted ? shown.length + " match" : "";
    result.show(shown);
  };
  bar.append(element("h2", title + " (" + rows.length + ")"), filter, count);
  block.append(bar, result.node);
  result.show(rows);
  return block;
}

/* -- CSV ---------------------------------------------------------------------------------------------------------- */

/* As spreadsheets read it: a text that starts like a formula gets an apostrophe before it. */
function csv(rows) {
  const quoted = (value) => {
    const formula = typeof value === "string" && /^[=+\-@\t\r]/.test(value) && Number.isNaN(Number(value));
    const text = formula ? "'" + value : String(value);
    return /[",\n\r]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
  };
  return rows.map((row) => row.map(quoted).join(",") + "\r\n").join("");
}

function download(name, text) {
  const link = element("a");
  link.href = URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv;charset=utf-8" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
