// The playground: choices or a text, a run in a worker, the queue that came out, and what the analysis says of it.
import { applies, defaults, KNOBS, scenario } from "./scenario.js";
import { Absent, compile } from "./engine.js";
import { Curves, Looks } from "./curves.js";
import { pack, unpack } from "./link.js";
import { suggest } from "./suggest.js";

const root = document.getElementById("fanin-playground");
const folder = new URL(".", import.meta.url);
const engine = compile(new URL("fanin.wasm", folder));
const EVERY = 100; // [ms] between two drawings of a run that goes on

const element = (tag, attributes = {}, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children);
  return made;
};

const digits = (value, count = 4) => (Number.isFinite(value) ? Number(value.toPrecision(count)).toLocaleString("en-US", { maximumSignificantDigits: count }) : "–");
const scaled = (value, units) => {
  const [unit, size] = units.find(([, size]) => Math.abs(value) >= size) || units[units.length - 1];
  return `${digits(value / size)} ${unit}`;
};
const bytes = (value) => scaled(value, [["MB", 1e6], ["KB", 1e3], ["B", 1]]);
const time = (ps) => (!Number.isFinite(ps) ? "–" : scaled(ps, [["s", 1e12], ["ms", 1e9], ["µs", 1e6], ["ns", 1e3], ["ps", 1]]));
const rate = (bps) => scaled(bps, [["Gb/s", 1e9], ["Mb/s", 1e6], ["kb/s", 1e3], ["b/s", 1]]);

/** A scenario: by choices until its text is edited. */
class Variant {
  constructor(text = null) {
    this.values = defaults();
    this.text = text;
    this.result = null;
    this.ran = null; // the text of its last run
    this.looks = null; // at it
  }

  /** One of a link: by its choices, where these still make its text. */
  static of(entry) {
    if (typeof entry === "string") return new Variant(entry === scenario(defaults()) ? null : entry);
    const made = new Variant(entry.text);
    const values = { ...made.values, ...entry.values };
    if (scenario(values) === entry.text) Object.assign(made, { text: null, values });
    return made;
  }

  get linked() {
    return this.text ?? { text: this.toml, values: this.values };
  }

  get toml() {
    return this.text ?? scenario(this.values);
  }
}

let variants = [new Variant()];
let shown = 0;
let turn = 0; // of runs
let running = null; // the turn that goes on
let runner = null;
let checker = null;

const state = element("p", { class: "pg-state", role: "status" });
const chart = element("div", { class: "pg-chart" });
const curves = new Curves(chart, { bytes, time, rate });
const tables = element("div");
const problems = element("ul", { class: "pg-problems" });
const editor = element("textarea", { spellcheck: "false", "aria-label": "Scenario", oninput: edited });
const offered = suggest(editor, new URL("../scenario.schema.json", folder));
const knobs = element("div", { class: "pg-knobs" });
const tabs = element("div", { class: "pg-bar" });
const run = element("button", { class: "pg-run", type: "button", onclick: start }, "Run");
const stop = element("button", { type: "button", disabled: true, onclick: () => halt("stopped") }, "Stop");
const back = element("button", { type: "button", onclick: () => { variants[shown].text = null; draw(); } }, "Back to choices");
const [choices, written] = [element("legend"), element("legend")];
const byHand = element("p", { class: "pg-by-hand" }, "Edited as text: these choices are not in force.");

function worker(onmessage) {
  const made = new Worker(new URL("worker.js", folder), { type: "module" });
  made.onmessage = ({ data }) => onmessage(data);
  made.onerror = (event) => halt(`the engine could not be started: ${event.message || "worker.js is missing"}`);
  engine.then((module) => made.postMessage({ what: "module", module }), () => {}); // begin() says what is wrong
  return made;
}

function draw() {
  const variant = variants[shown];
  tabs.replaceChildren(
    ...variants.map((_, i) => element("button", { type: "button", "aria-pressed": String(i === shown), onclick: () => { shown = i; draw(); } }, "AB"[i])),
    variants.length === 1
      ? element("button", { type: "button", onclick: () => { const b = new Variant(variants[0].text); Object.assign(b.values, variants[0].values); variants.push(b); shown = 1; draw(); } }, "Add B beside it")
      : element("button", { type: "button", onclick: () => { variants = [variants[0]]; shown = 0; draw(); show(); } }, "Remove B"),
  );
  knobs.replaceChildren(...KNOBS.filter((knob) => applies(knob, variant.values)).flatMap((knob) => {
    const changed = (event) => { variant.values[knob.name] = event.target.value; variant.result = null; if (knob.choices) draw(); else text(); };
    const common = { id: `pg-${knob.name}`, title: knob.title || null };
    const input = knob.choices
      ? element("select", { ...common, onchange: changed }, ...knob.choices.map((choice) => element("option", { value: choice, selected: choice === variant.values[knob.name] }, choice)))
      : element("input", { ...common, pattern: knob.pattern || null, value: variant.values[knob.name], oninput: changed });
    return [element("label", { for: `pg-${knob.name}` }, knob.label), input];
  }));
  choices.textContent = variants.length > 1 ? `Choices of ${"AB"[shown]}` : "Choices";
  written.textContent = variants.length > 1 ? `Scenario ${"AB"[shown]}` : "Scenario";
  apart();
  text();
}

// Greys what is shown where it is of another text than the one that would run.
function old() {
  const changed = variants.some((variant) => variant.ran !== null && variant.ran !== variant.toml);
  [chart, tables].forEach((shown) => shown.classList.toggle("pg-old", changed));
}

// Says that choices are out of force, where the text was edited.
function apart() {
  const byText = variants[shown].text !== null;
  knobs.querySelectorAll("input, select").forEach((input) => { input.disabled = byText; });
  back.hidden = !byText;
  byHand.hidden = !byText;
}

function text() {
  editor.value = variants[shown].toml;
  old();
  check();
}

function edited() {
  const variant = variants[shown];
  Object.assign(variant, { text: editor.value, result: null });
  apart();
  old();
  check();
}

let waiting = null;
function check() {
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    checker ??= worker(({ what, id, answer }) => { if (what === "check" && id === variants[shown].toml) say(answer.problems); });
    checker.postMessage({ id: variants[shown].toml, what: "check", text: variants[shown].toml });
  }, 150);
}

function say(found) {
  problems.replaceChildren(...found.map(({ severity, text: words }) => element("li", { class: severity === "warning" ? "pg-warning" : null }, words)));
}

function halt(words) {
  if (running !== null) runner.postMessage({ what: "stop" });
  running = null;
  run.disabled = false;
  stop.disabled = true;
  state.textContent = words;
}

async function start() {
  run.disabled = true;
  stop.disabled = false;
  const mine = ++turn;
  running = mine;
  history.replaceState(null, "", `#${await pack(variants.map((variant) => variant.linked))}`);
  variants.forEach((variant) => Object.assign(variant, { result: null, ran: variant.toml, looks: new Looks() }));
  old();
  if (running !== mine) return;
  runner ??= worker(heard);
  next();
}

function next() {
  const i = variants.findIndex((variant) => variant.result === null);
  if (i === -1) return halt("");
  state.textContent = variants.length > 1 ? `running ${"AB"[i]}` : "running";
  runner.postMessage({ id: i, turn: running, what: "run", text: variants[i].toml });
}

function heard({ id, turn: heardOf, what, answer, error, milliseconds }) {
  if (heardOf !== running) return; // it was stopped
  const name = variants.length > 1 ? `${"AB"[id]}: ` : "";
  if (what === "failed") halt(`${name}${error}`);
  if (what === "refused") { shown = id; halt(`${name}the scenario cannot be run`); draw(); }
  if (what === "progress") {
    look(variants[id], answer);
    const port = answer.ports[0];
    state.textContent = `${name}${time(answer.now_ps)} simulated, ${digits(answer.packet_hops)} packet-hops${port ? `; ${port.name}: ${bytes(port.queue_bytes)} now, ${digits(port.drops)} dropped, ${digits(port.marks)} marked` : ""}`;
  }
  if (what === "finished") {
    variants[id].result = { ...answer, milliseconds };
    show();
    next();
  }
}

const script = new Promise((resolve, reject) => {
  document.head.append(
    element("link", { rel: "stylesheet", href: new URL("uPlot.min.css", folder).href }),
    element("script", { src: new URL("uPlot.min.js", folder).href, onload: resolve, onerror: () => reject(new Error("uPlot.min.js is missing")) }),
  );
});

async function show() {
  const done = variants.map((variant, i) => ({ i, result: variant.result })).filter(({ result }) => result !== null);
  tables.replaceChildren();
  if (done.length > 0) tables.append(numbers(done), ...done.map(analysis));
  await script;
  draws();
}

function draws() {
  const begun = variants.map(({ looks, result }, i) => ({ i, looks, result })).filter(({ looks }) => looks?.rows.length > 0);
  if (begun.length === 0) return curves.clear();
  curves.draw(begun.map(({ i, looks, result }) => {
    const letter = variants.length > 1 ? `${"AB"[i]}: ` : "";
    return { i, letter, name: `${letter}${looks.port}: `, looks, queue: result?.ports[0]?.queue };
  }));
}

let drawn = 0;
function look(variant, answer) {
  const port = answer.ports[0];
  if (!port) return;
  variant.looks.port = port.name;
  variant.looks.add(answer.now_ps, port, answer.done);
  if (performance.now() - drawn < EVERY || !window.uPlot) return;
  drawn = performance.now();
  draws();
}

const table = (caption, head, rows) => element("div", { class: "pg-scroll" }, element("table", {},
  element("caption", {}, caption),
  element("thead", {}, element("tr", {}, ...head.map((words) => element("th", {}, words)))),
  element("tbody", {}, ...rows.map(([first, ...rest]) => element("tr", {}, element("th", {}, first), ...rest.map((words) => element("td", {}, words)))))));

function numbers(done) {
  const of = (value) => done.map(({ result }) => value(result));
  const fct = (result) => result.flows.fct_ps;
  const rows = [
    ["largest queue", ...of(({ summary }) => (summary.largest_queue ? `${bytes(summary.largest_queue.bytes)} at ${summary.largest_queue.port}` : "–"))],
    ["packets dropped", ...of(({ summary }) => digits(summary.drops, 12))],
    ["packets marked", ...of(({ summary }) => digits(summary.marks, 12))],
    ["retransmissions", ...of(({ summary }) => digits(summary.retransmits, 12))],
    ["timeouts", ...of(({ summary }) => digits(summary.timeouts, 12))],
    ["mean completion time", ...of((result) => time(fct(result).reduce((a, b) => a + b, 0) / (fct(result).length || NaN)))],
    ["last completion", ...of((result) => time(Math.max(...fct(result))))],
    ["unfinished flows", ...of((result) => digits(result.flows.unfinished, 12))],
    ["fingerprint", ...of(({ fingerprint }) => fingerprint)],
    ["simulated in", ...of(({ milliseconds }) => `${digits(milliseconds.run, 3)} ms`)],
  ];
  return table("", ["", ...done.map(({ i }) => (variants.length > 1 ? "AB"[i] : ""))], rows);
}

function analysis({ i, result }) {
  const name = variants.length > 1 ? `${"AB"[i]}: ` : "";
  return element("div", {}, ...result.ports.flatMap(({ report }) => {
    const [burst] = [...report.bursts].sort((a, b) => b.peak_bytes - a.peak_bytes);
    if (!burst) return [element("p", {}, `${name}${report.port}: no burst.`)];
    const rows = burst.phases.map((phase, n) => [String(n + 1), time(phase.start_ps), time(phase.end_ps - phase.start_ps), bytes(phase.start_bytes), bytes(phase.end_bytes), `${rate(phase.slope_bps)}`, phase.sawtooth ? `${phase.sawtooth.teeth} teeth` : ""]);
    const caption = `${name}${report.port}: the highest of ${report.bursts_found} burst${report.bursts_found === 1 ? "" : "s"}, ${bytes(burst.peak_bytes)} at ${time(burst.peak_ps)}, ${burst.flows} flows, ${burst.dropped_packets} dropped`;
    const words = burst.law?.words ?? burst.words;
    return [table(caption, ["phase", "from", "lasts", "queue at first", "at last", "slope", ""], rows), ...(words ? [element("p", { class: "pg-law" }, words)] : [])];
  }));
}

async function copy(what) {
  const toml = variants[shown].toml;
  const words = {
    link: async () => `${location.origin}${location.pathname}#${await pack(variants.map((variant) => variant.linked))}`,
    TOML: async () => toml,
    command: async () => `cat > fan-in.toml <<'END'\n${toml}END\nfanin run fan-in.toml -o out/fan-in --report`,
    Python: async () => `import fanin\n\nresult = fanin.run(fanin.Scenario.from_toml(r'''\n${toml}'''))\nprint(result.fingerprint, result.summary["drops"])`,
  };
  const copied = await words[what]();
  try {
    await navigator.clipboard.writeText(copied);
    state.textContent = `${what} copied`;
  } catch {
    state.textContent = `${what} not copied: browsers let a page do that only over https or from this machine`;
  }
}

async function begin() {
  const linked = location.hash.length > 1 ? await unpack(location.hash) : null;
  if (linked) variants = linked.map(Variant.of);
  root.replaceChildren(
    element("div", {},
      tabs,
      element("fieldset", {}, choices, byHand, knobs),
      element("fieldset", {}, written, element("div", { class: "pg-editor" }, editor, offered), problems, back)),
    element("div", {},
      element("div", { class: "pg-bar" }, run, stop, "Copy as", ...["link", "TOML", "command", "Python"].map((what) => element("button", { type: "button", onclick: () => copy(what) }, what))),
      state, chart, tables),
  );
  draw();
  try {
    await engine;
  } catch (error) {
    run.disabled = true;
    state.textContent = error instanceof Absent ? "This copy of the site was built without the engine." : `the engine could not be loaded: ${error.message}`;
    return;
  }
  start();
}

begin();
