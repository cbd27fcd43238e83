// The page that analyses captures: files are dropped or chosen, a worker reads them, and the answer is the page that the command line writes.
import { Absent, compile } from "../playground/engine.js";
import { settingsOf, commandOf, FIELDS, FLAGS } from "./options.js";

const root = document.getElementById("fanin-analyze");
const folder = new URL(".", import.meta.url);
const json = async (name) => {
  const response = await fetch(new URL(name, folder));
  if (!response.ok) throw new Error(`${name}: the server says ${response.status}`);
  return response.json();
};
// Address of a module of the site in this page's memory, and so are those that it imports: workers can be made of it without a server.
const held = new Map();
function hold(address) {
  if (!held.has(address.href)) held.set(address.href, holding(address));
  return held.get(address.href);
}
async function holding(address) {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`${address.pathname}: the server says ${response.status}`);
  let text = await response.text();
  for (const [line, before, from] of text.matchAll(/^(import .* from )"(\..*)";$/gm)) {
    text = text.replace(line, `${before}"${await hold(new URL(from, address))}";`);
  }
  return URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
}
// All that an analysis needs: fetched once, so that the next one needs no server.
const program = Promise.all([compile(new URL("analyze.wasm", folder)), json("parts.json"), hold(new URL("worker.js", folder))]);

const element = (tag, attributes = {}, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children);
  return made;
};
const megabytes = (bytes) => `${(bytes / 1e6).toLocaleString("en-US", { maximumFractionDigits: 2 })} MB`;

let files = []; // { name, blob, behind }
let running = null; // the analysis that goes on
let worker = null;
let result = null;
let address = null;

const state = element("p", { class: "pg-state", role: "status" });
const bar = element("progress", { max: "1", hidden: true, "aria-label": "How much has been read" });
const problems = element("ul", { class: "pg-problems" });
const list = element("ul", { class: "an-files" });
const chooser = element("input", { type: "file", id: "an-chooser", multiple: true, onchange: () => { add(chooser.files); chooser.value = ""; } });
const drop = element("label", { class: "an-drop", for: "an-chooser" }, element("b", {}, "Drop a capture or a table here"), element("span", {}, "or click to choose: pcap, pcapng, CSV, TSV, JSON lines, Parquet, Arrow"), chooser);
const run = element("button", { class: "pg-run", type: "button", disabled: true, onclick: start }, "Analyse");
const stop = element("button", { type: "button", disabled: true, onclick: () => { end(); halt("stopped"); } }, "Stop");
const command = element("code", { class: "an-command" });
const kept = element("div", { class: "pg-bar", hidden: true },
  element("button", { type: "button", onclick: () => save("html") }, "Save this page"),
  element("button", { type: "button", onclick: () => save("json") }, "Save the report as JSON"),
  element("button", { type: "button", onclick: () => window.open(address) }, "Open in a tab of its own"));
const frame = element("iframe", { class: "an-frame", title: "Analysis", hidden: true });

const inputs = new Map();
function field({ name, label, placeholder, choices, title }) {
  const changed = () => say();
  const input = choices
    ? element("select", { id: `an-${name}`, onchange: changed }, ...choices.map((choice) => element("option", { value: choice }, choice || "both")))
    : element("input", { id: `an-${name}`, placeholder, oninput: changed, autocomplete: "off", spellcheck: "false" });
  inputs.set(name, () => input.value.trim());
  return [element("label", { for: `an-${name}`, title }, label), input];
}
function flag({ name, label, title }) {
  const input = element("input", { type: "checkbox", id: `an-${name}`, onchange: () => say() });
  inputs.set(name, () => input.checked);
  return element("label", { class: "an-flag", title }, input, ` ${label}`);
}

const given = () => Object.fromEntries([...inputs].map(([name, value]) => [name, value()]));

// Names of the files before the port, or alone, and of those behind it.
const sides = () => [false, true].map((side) => files.filter((file) => file.behind === side).map(({ name }) => name));

function say() {
  const [before, behind] = sides();
  command.textContent = files.length ? commandOf(before, behind, given()) : "";
  run.disabled = running !== null || !before.length;
}

function add(chosen) {
  for (const blob of chosen) {
    files = files.filter(({ name }) => name !== blob.name);
    files.push({ name: blob.name, blob, behind: false });
  }
  draw();
  if (files.length === 1) start();
}

function draw() {
  list.replaceChildren(...files.map((file) => element("li", {},
    element("span", {}, `${file.name}, ${megabytes(file.blob.size)}`),
    ...(files.length > 1 ? [element("label", {}, element("input", { type: "checkbox", ...(file.behind ? { checked: true } : {}), onchange: (event) => { file.behind = event.target.checked; say(); } }), " behind the port")] : []),
    element("button", { type: "button", "aria-label": `Remove ${file.name}`, onclick: () => { files = files.filter((other) => other !== file); draw(); } }, "×"))));
  say();
}

function halt(words) {
  running = null;
  stop.disabled = true;
  bar.hidden = true;
  state.textContent = words;
  say();
}

// Ends the worker, with the analysis that it is at.
function end() {
  worker?.terminate();
  worker = null;
}

function made(code) {
  const mine = new Worker(code, { type: "module" });
  mine.onmessage = ({ data }) => mine === worker && heard(data);
  mine.onerror = (event) => { end(); halt(`the program could not be started: ${event.message || "this browser has no modules in workers"}`); };
  return mine;
}

async function start() {
  if (running) end();
  halt("");
  problems.replaceChildren();
  const [paths, behind] = sides();
  const mine = {};
  running = mine;
  stop.disabled = false;
  run.disabled = true;
  bar.hidden = false;
  bar.value = 0;
  state.textContent = "reading";
  const asked = { files: files.map(({ name, blob }) => ({ name, blob })), settings: settingsOf(paths, behind, given()) };
  try {
    const [module, parts, code] = await program;
    if (running !== mine) return;
    worker ??= made(code);
    worker.postMessage({ module, parts, ...asked });
  } catch (error) {
    if (running === mine) halt(unloaded(error));
  }
}

const unloaded = (error) => (error instanceof Absent ? "This copy of the site was built without the program: use fanin analyze." : `the program could not be loaded: ${error.message}`);

function heard({ what, done, records, report, html, text, milliseconds }) {
  if (what === "progress") {
    bar.value = done;
    state.textContent = `${Math.floor(100 * done)} %, ${records.toLocaleString("en-US")} records`;
  }
  if (what === "failed") {
    halt("");
    problems.replaceChildren(...text.split("\n").map((line) => element("li", {}, line)));
  }
  if (what === "finished") {
    const size = files.reduce((sum, { blob }) => sum + blob.size, 0);
    halt(`${megabytes(size)} in ${(milliseconds / 1000).toLocaleString("en-US", { maximumSignificantDigits: 3 })} s, on this machine`);
    if (address) URL.revokeObjectURL(address);
    result = { report, html };
    address = URL.createObjectURL(new Blob([html], { type: "text/html" }));
    frame.hidden = false;
    kept.hidden = false;
    frame.src = address;
  }
}

// The frame is as high as what is in it, so that only the page around it scrolls.
frame.addEventListener("load", () => {
  const inside = frame.contentDocument?.body;
  if (!inside || frame.hidden) return;
  const fit = () => { frame.style.height = `${inside.scrollHeight + 4}px`; };
  new ResizeObserver(fit).observe(inside);
  fit();
});

function save(kind) {
  const text = kind === "html" ? result.html : `${JSON.stringify(result.report)}\n`;
  const link = element("a", { download: `${files[0].name}.${kind}`, href: URL.createObjectURL(new Blob([text])) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

root.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && event.target.matches("input:not([type])") && !run.disabled) start();
});

for (const [name, over] of [["dragenter", true], ["dragover", true], ["dragleave", false], ["drop", false]]) {
  root.addEventListener(name, (event) => {
    event.preventDefault();
    drop.classList.toggle("an-over", over);
    if (name === "drop") add(event.dataTransfer.files);
  });
}

async function begin() {
  root.replaceChildren(
    element("div", {},
      drop,
      list,
      element("fieldset", {}, element("legend", {}, "Of the port"), element("div", { class: "pg-knobs" }, ...FIELDS.slice(0, 3).flatMap(field))),
      element("details", {}, element("summary", {}, "More"), element("div", { class: "pg-knobs" }, ...FIELDS.slice(3).flatMap(field)), ...FLAGS.map(flag)),
      element("div", { class: "pg-bar" }, run, stop)),
    element("div", {}, command, state, bar, problems, kept),
    frame);
  draw();
  await program.catch((error) => halt(unloaded(error)));
}

begin();
