"use strict";
// The live page: shows each state that the watch sends. All that comes is put in as text.
const Watch = (() => {
  const find = (id) => document.getElementById(id);
  let state = null;
  let chosen = null;
  let heard = 0;
  const SILENT = 15e3; // [ms] without a sign of life

  function element(name, text, className) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  }

  // Rows of a table: only cells that have changed are touched, so that what is selected stays so.
  function fill(table, head, rows, each) {
    const top = table.tHead.rows[0];
    while (top.cells.length > head.length) top.deleteCell(-1);
    for (const [at, cell] of head.entries()) {
      if (!top.cells[at]) top.append(Object.assign(element("th"), { scope: "col" }));
      if (top.cells[at].textContent !== cell) top.cells[at].textContent = cell;
    }
    const body = table.tBodies[0];
    while (body.rows.length > rows.length) body.deleteRow(-1);
    for (const [at, row] of rows.entries()) {
      const line = body.rows[at] || body.insertRow();
      for (const [place, cell] of row.entries()) {
        if (!line.cells[place]) line.append(place ? element("td") : Object.assign(element("th"), { scope: "row" }));
        if (line.cells[place].textContent !== cell) line.cells[place].textContent = cell;
      }
      each?.(line, at);
    }
  }

  const ago = (since) => {
    const seconds = Math.max(0, Math.round(Date.now() / 1000 - since));
    return seconds < 120 ? `${seconds} s` : seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
  };

  function sources() {
    const list = find("source-list");
    list.replaceChildren(...state.sources.map((source) => {
      const box = element("p", undefined, source.state === "alive" || source.state === "ended" ? "source" : "source notice");
      box.dataset.state = source.state;
      box.append(element("b", source.name), element("span", `${source.state}: ${source.words}${source.state === "stalled" ? "" : ", since"} ${ago(source.since)}${source.state === "stalled" ? " ago" : ""}`), element("span", [source.kind, source.said].filter(Boolean).join(", ")));
      for (const problem of source.problems) box.append(element("small", problem));
      return box;
    }), ...state.troubles.map((trouble) => element("p", trouble, "source notice")));
  }

  function paint() {
    const canvas = find("heat");
    if (!canvas || !state) return;
    const rows = state.strips;
    const layout = Strip.layout(canvas.parentElement.clientWidth, rows.map((row) => row.name));
    const ratio = window.devicePixelRatio || 1;
    canvas.style.height = `${layout.height}px`;
    canvas.width = Math.round(layout.width * ratio);
    canvas.height = Math.round(layout.height * ratio);
    const top = [true, false].map((queue) => rows.filter((row) => row.queue === queue).reduce((most, row) => row.level.reduce((a, b) => Math.max(a, b), most), 1));
    const ctx = canvas.getContext("2d");
    ctx.scale(ratio, ratio);
    Strip.heat(ctx, layout, rows, top);
    const width = state.columns * state.cell_s;
    const time = width >= 120 ? `${Math.round(width / 60)} minutes` : `${Charts.digits(width, 3)} s`;
    const more = state.ports.length - rows.length;
    find("heat-said").textContent = rows.length
      ? `The last ${time} of the records${more > 0 ? `, the worst ${rows.length} of ${state.ports.length} ports` : ""}: the darker, the longer the queue; red: drops; hatched: nothing is known.`
      : "Nothing has come yet.";
  }

  function tell() {
    const burst = state.bursts.find((one) => one.number === chosen);
    if (!burst) {
      if (chosen !== null && find("chosen").hidden) chosen = null; // else what was read stays
      return;
    }
    find("chosen").hidden = false;
    find("chosen-title").textContent = `Burst ${burst.cells[0]} at ${burst.cells[2]}, ${burst.cells[1]}`;
    find("chosen-words").textContent = burst.words;
    const key = JSON.stringify(burst.tables);
    const box = find("chosen-tables");
    if (box.dataset.key === key) return;
    box.dataset.key = key;
    box.replaceChildren(...burst.tables.map(({ caption, head, rows }) => {
      const scroll = element("div", undefined, "scroll");
      scroll.tabIndex = 0;
      scroll.setAttribute("role", "region");
      scroll.setAttribute("aria-label", caption);
      const table = document.createElement("table");
      table.createCaption().append(element("span", caption));
      table.createTHead().insertRow();
      table.createTBody();
      fill(table, head, rows);
      scroll.append(table);
      return scroll;
    }));
  }

  function bursts() {
    const count = state.found.toLocaleString("en-US");
    find("found").textContent = `${count} burst${state.found === 1 ? "" : "s"}`;
    find("bursts-said").textContent = state.found ? `The latest ${state.bursts.length} of ${count}; a row shows who was in the queue` : "None has ended yet.";
    fill(find("bursts-list"), state.burst_head, state.bursts.map((burst) => burst.cells), (line, at) => {
      const burst = state.bursts[at];
      line.dataset.number = burst.number;
      line.classList.toggle("chosen", burst.number === chosen);
      line.tabIndex = 0;
    });
    tell();
  }

  function show() {
    sources();
    bursts();
    fill(find("ports-list"), state.head, state.ports.map((port) => port.cells), (line, at) => { line.dataset.state = state.ports[at].state; });
    find("ports-said").textContent = `${state.ports.length} port${state.ports.length === 1 ? "" : "s"}; lately: the last minutes that the strip shows`;
    find("alerts").hidden = !state.alerts.length;
    find("alerts-list").replaceChildren(...state.alerts.map((alert) => element("li", alert)));
    paint();
    document.documentElement.dataset.turn = state.turn;
  }

  function link(alive) {
    const pill = find("link");
    pill.textContent = alive ? "live" : "lost";
    pill.className = `pill ${alive ? "good" : "poor"}`;
    find("gone").hidden = alive;
  }

  function choose(line) {
    if (!line?.dataset.number) return;
    chosen = Number(line.dataset.number);
    bursts();
  }
  find("bursts-list").tBodies[0].addEventListener("click", (event) => choose(event.target.closest("tr")));
  find("bursts-list").tBodies[0].addEventListener("keydown", (event) => { if (event.key === "Enter") choose(event.target.closest("tr")); });

  const events = new EventSource("/events");
  events.addEventListener("message", (event) => {
    heard = Date.now();
    state = JSON.parse(event.data);
    link(true);
    show();
  });
  events.addEventListener("open", () => { heard = Date.now(); link(true); });
  events.addEventListener("error", () => link(false));
  setInterval(() => { if (state && Date.now() - heard > SILENT) link(false); }, 1000);
  new ResizeObserver(paint).observe(find("heat").parentElement);
  return { paint };
})();
