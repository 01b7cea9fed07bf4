/* Search over all models and operations. */
const choice = chosen({ find: "" }), { state } = choice, box = byId("anywhere");
const SHOWN = 200;
const texts = new Map([...data.models, ...data.ops].map((item) => [item, item.join(" ").toLowerCase()]));

/* Names that begin with the query come first, then those that contain it, then the rest. */
function found(items) {
  const wanted = state.find.trim().toLowerCase();
  const rank = ([name]) => (name.toLowerCase().startsWith(wanted) ? 0 : name.toLowerCase().includes(wanted) ? 1 : 2);
  return items.filter((item) => matches(texts.get(item), wanted)).sort((a, b) => rank(a) - rank(b));
}

function listing(title, items) {
  const result = element("ul", undefined, "found");
  for (const [name, path, about] of items.slice(0, SHOWN)) {
    const line = element("li");
    line.append(anchor(name, data.top + path, "name"), element("span", about, "quiet"));
    result.append(line);
  }
  if (!items.length) result.append(element("li", "No match.", "quiet"));
  const rest = items.length > SHOWN ? [element("p", "… and " + count(items.length - SHOWN) + " more", "quiet")] : [];
  return block(title + " (" + count(items.length) + ")", result, ...rest);
}

function draw() {
  const models = found(data.models), ops = found(data.ops), both = element("div", undefined, "grid wide");
  both.append(listing("Models", models), listing("Operations", ops));
  byId("main").replaceChildren(both);
}

box.oninput = () => { choice.set({ find: box.value }); draw(); };
choice.follow(() => { box.value = state.find; draw(); });
box.value = state.find;
box.focus();
draw();
startSearch(true);
