/* The state of the page. It is stored in the address, so that views can be linked and the browser can go back. */
const PHASES = Object.entries(data.phases).filter(([, phase]) => phase.ops.length).map(([name]) => name);
const DEFAULTS = { view: "ops", phase: PHASES[0] || "fw", find: "", in: "name", lowering: "", change: "", sort: "", op: "", model: "", rank: "models" };
const views = {}; /* name → { title, draw: (main) => … } */
let state = { ...DEFAULTS }, list = "", written = null;
const scrolled = new Map();

function read() {
  const given = Object.fromEntries([...new URLSearchParams(location.hash.slice(1))].filter(([name]) => Object.hasOwn(DEFAULTS, name)));
  state = { ...DEFAULTS, ...given };
  if (!Object.hasOwn(views, state.view)) state.view = DEFAULTS.view;
  if (!Object.hasOwn(data.phases, state.phase)) state.phase = DEFAULTS.phase;
}

/* The address of a view: the state that differs from the defaults. */
function address(wanted) {
  return "#" + new URLSearchParams(Object.entries(wanted).filter(([name, value]) => value !== DEFAULTS[name]));
}

const here = () => location.hash || "#";
const linkTo = (changes) => address({ ...DEFAULTS, phase: state.phase, ...changes });
const goTo = (changes) => { location.hash = linkTo(changes); };

/* A change without a step in the history: typing, sorting. `silently` if the page already shows it. */
function adjust(changes, silently) {
  Object.assign(state, changes);
  const wanted = address(state);
  if (wanted === here()) return;
  if (silently) written = wanted;
  if (!inDetail()) list = wanted;
  location.replace(wanted);
}

const link = (text, changes, className) => anchor(text, linkTo(changes), className);

const inDetail = () => Boolean(state.op || state.model);
const ops = () => data.phases[state.phase].ops;
const modelsOf = (phase) => data.models.filter((model) => model[phase]);

/* -- the bar ------------------------------------------------------------------------------------------------------ */

function drawBar() {
  const view = views[state.view];
  choices(byId("views"), Object.entries(views).map(([name, { title }]) => [name, title]), state.view, (name) => goTo({ view: name }));
  choices(byId("phases"), PHASES.map((name) => [name, data.phases[name].title]), state.phase,
    (phase) => { location.hash = address({ ...state, phase }); });
  byId("phases").hidden = PHASES.length < 2;
  byId("filters").hidden = inDetail() || !view.scopes;
  if (byId("find").value !== state.find) byId("find").value = state.find;
  options(byId("scope"), Object.entries(view.scopes || {}).map(([name, title]) => [name, "in " + title]), state.in);
  options(byId("lowering"), Object.entries(view.statuses || {}), state.lowering);
  options(byId("change"), Object.entries(view.changes || {}), state.change);
}

/* The table that a view returns; it is shown and exported. */
let shownTable = null;

function draw() {
  tip.hidden = true;
  drawBar();
  byId("count").textContent = "";
  const main = byId("main");
  main.replaceChildren();
  const view = views[state.view];
  shownTable = state.op ? drawOp(main) : state.model ? drawModel(main) : view.draw(main);
  byId("export").hidden = !shownTable;
}

function moved(event) {
  const known = here() === written;
  written = null;
  document.body.dataset.shown = here(); /* lets tests wait for the address */
  if (known) return;
  const before = new URL(event.oldURL).hash || "#", main = byId("main");
  if (!inDetail()) scrolled.set(before, main.querySelector(".table")?.scrollTop);
  read();
  if (!inDetail()) list = address(state);
  draw();
  const holder = main.querySelector(".table");
  if (holder && !inDetail()) holder.scrollTop = scrolled.get(here()) || 0;
  if (inDetail()) scrollTo(0, Math.min(scrollY, main.offsetTop - byId("bar").offsetHeight));
}

function start() {
  read();
  list = inDetail() ? linkTo({ view: state.view }) : address(state);
  draw();
  document.body.dataset.shown = here();
  addEventListener("hashchange", moved);
  byId("find").oninput = (event) => adjust({ find: event.target.value });
  byId("scope").onchange = (event) => adjust({ in: event.target.value });
  byId("lowering").onchange = (event) => adjust({ lowering: event.target.value });
  byId("change").onchange = (event) => adjust({ change: event.target.value });
  byId("export").onclick = () => download([state.phase, state.op || state.model || state.view].join("_").replace(/[^\w.-]+/g, "_") + ".csv", shownTable.csv());
  addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, select, textarea");
    if (event.key === "/" && !typing && !byId("filters").hidden) { event.preventDefault(); byId("find").focus(); }
    if (event.key === "Escape" && !typing && inDetail()) location.hash = list;
  });
}
