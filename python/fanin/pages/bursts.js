"use strict";
// The bursts of a trace: all of it as a strip, a list, and of one at a time queue, wait, arrivals and drops over one axis.
const Bursts = (() => {
  const source = document.getElementById("explorer");
  if (!source) return null;
  const { low: LOW, high: HIGH, clock, ports, flows, views, keys } = JSON.parse(source.textContent);
  const { css, digits, from } = Charts;
  const [MARKED, DROPPED, REPLACED, ESTIMATED] = [1, 2, 4, 8];
  const TIMES = [["ps", 1], ["ns", 1e3], ["µs", 1e6], ["ms", 1e9], ["s", 1e12]];
  const SIZES = [["B", 1], ["KB", 1e3], ["MB", 1e6], ["GB", 1e9], ["TB", 1e12]];
  const RATES = [["b/s", 1], ["kb/s", 1e3], ["Mb/s", 1e6], ["Gb/s", 1e9], ["Tb/s", 1e12]];
  const AREAS = ["#e69f00", "#56b4e9", "#009e73", "#cc79a7", "#8a6d3b"];
  const [QUEUE, DROP, MARK, FIT, SPEED] = ["#1f6feb", "#cf222e", "#d9730d", "#b3408f", "#59636e"];
  const SHADES = ["#7a5cc7", "#1a9c6b"];
  const BIN = 3; // [px] width of a bar of arrivals, about
  const HEIGHTS = { queue: 236, wait: 92, rate: 104, drops: 126 }; // [px]

  const unitOf = (units, most) => units.reduce((chosen, unit) => (most >= unit[1] ? unit : chosen), units[0]);
  const text = (value, units) => {
    if (!Number.isFinite(value)) return "unknown";
    const [name, size] = unitOf(units, Math.abs(value));
    return `${digits(value / size)} ${name}`;
  };
  const bytes = (value) => text(value, SIZES);
  const two = (value, width = 2) => String(value).padStart(width, "0");

  // A time of the trace on the clock of its network, to the nanosecond; else from its zero.
  function moment(ps, dated = false) {
    if (!clock) {
      const [name, size] = unitOf(TIMES, Math.abs(ps));
      return `${digits(ps / size, 10)} ${name}`;
    }
    const seconds = Math.floor(ps / 1e12);
    const at = new Date((clock.origin_s + clock.offset_s + seconds) * 1000);
    const time = `${two(at.getUTCHours())}:${two(at.getUTCMinutes())}:${two(at.getUTCSeconds())}.${two(Math.floor((ps - seconds * 1e12) / 1e3), 9)}`;
    return dated ? `${at.getUTCFullYear()}-${two(at.getUTCMonth() + 1)}-${two(at.getUTCDate())} ${time} ${clock.name}` : time;
  }

  // -- data ---------------------------------------------------------------------------------------------------------

  const values = (packed) => (packed ? Figures.unpack(packed) : null);
  const counted = (packed) => (packed ? Float64Array.from(values(packed), (value) => (value > 0 ? value - 1 : NaN)) : null);

  // What the page holds of a view, with times in picoseconds: rows of packets or of columns, each from `time` to `until`.
  function rowsOf(view) {
    if (view.rows) return view.rows;
    const { data } = view;
    const rows = { queue: counted(data.queue), wait: counted(data.wait) };
    if (view.kind === "packets") {
      const fate = values(data.fate);
      rows.time = Float64Array.from(values(data.time), (value) => value + view.low);
      rows.until = rows.time;
      rows.bytes = values(data.size);
      rows.n = new Uint8Array(fate.length).fill(1);
      rows.drops = fate.map((bits) => (bits & (DROPPED | REPLACED) ? 1 : 0));
      rows.marks = fate.map((bits) => (bits & MARKED ? 1 : 0));
      rows.fate = fate;
      rows.flow = values(data.flow);
    } else {
      const all = { n: values(data.n), bytes: values(data.bytes), drops: values(data.drops), marks: values(data.marks) };
      const width = (view.high - view.low + 1) / all.n.length;
      rows.time = Float64Array.from(all.n, (_, i) => view.low + i * width);
      rows.until = Float64Array.from(all.n, (_, i) => view.low + (i + 1) * width);
      Object.assign(rows, all);
    }
    view.rows = rows;
    return rows;
  }

  // Sums of rows by bins of the part of the axis that is seen; columns are shared out among the bins that they lie in.
  function binned(rows, [start, end], bins, unit) {
    const width = ((end - start) * unit) / bins;
    const sums = { bytes: new Float64Array(bins), drops: new Float64Array(bins), marks: new Float64Array(bins), width };
    const zero = start * unit;
    const wide = rows.until !== rows.time;
    const first = Math.max(0, from(rows.time, zero) - (wide ? 1 : 0));
    for (let i = first; i < rows.time.length && rows.time[i] < zero + width * bins; i += 1) {
      if (!rows.n[i]) continue;
      const [low, high] = [(rows.time[i] - zero) / width, (rows.until[i] - zero) / width];
      const [begin, narrow] = [Math.floor(low), high - low <= 1];
      const last = Math.min(bins - 1, Math.max(begin, Math.ceil(high) - 1));
      for (let bin = Math.max(0, begin); bin <= last; bin += 1) {
        const part = high > low ? (Math.min(high, bin + 1) - Math.max(low, bin)) / (high - low) : 1;
        sums.bytes[bin] += part * rows.bytes[i];
        // A drop is somewhere in its column: each bin of a wide one shows it, as many as there are in the mean.
        const share = narrow ? Number(bin === begin) : part;
        sums.drops[bin] += share * rows.drops[i];
        sums.marks[bin] += share * rows.marks[i];
      }
    }
    return sums;
  }

  // -- one burst ----------------------------------------------------------------------------------------------------

  let stack = null;
  let place = null;
  let current = null;
  const find = (id) => document.getElementById(id);

  function bars(view, sums, list, unit) {
    const { ctx, px, py, range, ratio } = view;
    const step = sums.width / unit;
    for (const [name, color] of list) {
      ctx.fillStyle = color;
      ctx.beginPath();
      for (let bin = 0; bin < sums[name].length; bin += 1) {
        if (!sums[name][bin]) continue;
        const [left, right] = [px(range[0] + bin * step), px(range[0] + (bin + 1) * step)];
        const foot = py(0);
        const height = Math.max(3 * ratio, foot - py(sums[name][bin])); // one drop among thousands is seen
        ctx.rect(left, foot - height, Math.max(1.5 * ratio, right - left), height);
      }
      ctx.fill();
    }
  }

  function panelsOf(view, rows, unit) {
    const port = ports[view.port];
    const bins = () => Math.max(20, Math.floor(((stack ? stack.width() : place.clientWidth) - 70) / BIN));
    let [kept, key] = [null, ""];
    const sums = (range) => {
      const now = `${range}/${bins()}`;
      if (now !== key) [kept, key] = [binned(rows, range, bins(), unit), now];
      return kept;
    };
    const most = (column) => column.reduce((top, value) => (value > top ? value : top), 0);
    const x = Float64Array.from(rows.time, (value) => value / unit);
    const panels = [];
    if (rows.queue) {
      const [name, size] = unitOf(SIZES, most(rows.queue));
      const level = Float64Array.from(rows.queue, (value) => value / size);
      const traces = [];
      if (view.bands) {
        const at = Float64Array.from(values(view.bands.time), (value) => (value + view.low) / unit);
        let base = null;
        for (const [index, packed] of view.bands.levels.entries()) {
          const own = values(packed);
          const top = Float64Array.from(own, (value, i) => value / size + (base ? base[i] : 0));
          const color = index < view.bands.levels.length - 1 ? AREAS[index] : "#8c959f";
          traces.push(new Charts.Trace({ name: view.bands.names[index], x: at, y: top, base, fill: `${color}99`, color, width: 0, tip: null }));
          base = top;
        }
      }
      const columns = view.kind !== "packets";
      // The burst ended when the queue ran empty: no packet came that found it so.
      const at = from(rows.time, view.end);
      const ran = !columns && view.end !== undefined && rows.time[at] !== view.end;
      const insert = (list, value) => (ran ? [...list.subarray(0, at), value, ...list.subarray(at)] : list);
      const line = { name: columns ? "largest queue" : "queue", x: insert(x, view.end / unit), y: insert(level, 0), color: QUEUE, width: 1.3, shape: columns ? "hv" : "linear", fill: view.bands ? null : `${QUEUE}33` };
      const called = (i) => (rows.flow && rows.flow[i] ? `\n${flows[rows.flow[i] - 1]}` : "");
      const tip = (point) => {
        if (ran && point === at) return `${moment(view.end)}\nthe queue ran empty`;
        const i = ran && point > at ? point - 1 : point;
        return `${moment(rows.time[i])}\n${bytes(rows.queue[i])}${called(i)}${columns ? "" : `\nframe of ${rows.bytes[i]} B`}`;
      };
      traces.push(new Charts.Trace({ ...line, tip }));
      const lost = [...rows.drops.keys()].filter((i) => rows.drops[i] && Number.isFinite(level[i]));
      const marks = [...rows.marks.keys()].filter((i) => rows.marks[i] && Number.isFinite(level[i]));
      for (const [list, word, color, symbol, shown] of [[marks, "marked", MARK, "circle", false], [lost, "dropped", DROP, "x", true]]) {
        if (!list.length) continue;
        const of = rows[word === "dropped" ? "drops" : "marks"];
        const total = list.reduce((sum, i) => sum + of[i], 0);
        const half = columns ? (rows.until[0] - rows.time[0]) / 2 / unit : 0;
        traces.push(new Charts.Trace({ name: `${word} (${total.toLocaleString("en-US")})`, x: list.map((i) => x[i] + half), y: list.map((i) => level[i]), lines: false, marks: true, color, symbol, size: 6, shown, tip: (i) => (columns ? `${of[list[i]]} packets ${word} here` : `${moment(rows.time[list[i]])}\n${word}${called(list[i])}`) }));
      }
      for (const [number, [start, end, foot, head, slope]] of view.phases.entries()) {
        traces.push(new Charts.Trace({ name: number ? "" : "slopes of its phases", group: "fit", x: [start / unit, end / unit], y: [foot / size, head / size], color: FIT, width: 2.5, tip: () => `phase ${number + 1}: ${slope}` }));
      }
      if (view.reference) {
        const [called, start, end, foot, head] = view.reference;
        traces.push(new Charts.Trace({ name: called, x: [start / unit, end / unit], y: [foot / size, head / size], color: SPEED, dash: "dash", width: 1.5, tip: () => called }));
      }
      const bands = view.phases.map(([start, end], index) => ({ x0: start / unit, x1: end / unit, color: SHADES[index % 2], alpha: 0.1 }));
      const labels = view.phases.length > 1 ? view.phases.map(([start, end], index) => ({ x: (start + end) / 2 / unit, text: String(index + 1), share: (end - start) / (view.end - view.start) })).filter((label) => label.share > 0.02) : [];
      panels.push({ y: { title: `Queue [${name}]`, zero: true }, height: HEIGHTS.queue, traces, bands, labels });
    }
    if (rows.wait && rows.wait.some((value) => value >= 0)) {
      const [name, size] = unitOf(TIMES, most(rows.wait));
      const known = [...rows.wait.keys()].filter((i) => rows.wait[i] >= 0); // a packet that was dropped has no wait
      const trace = new Charts.Trace({ name: "", x: known.map((i) => x[i]), y: known.map((i) => rows.wait[i] / size), color: "#7a5cc7", width: 1.2, tip: (i) => `waited ${text(rows.wait[known[i]], TIMES)}` });
      panels.push({ y: { title: `Wait [${name}]`, zero: true }, height: HEIGHTS.wait, traces: [trace] });
    }
    const whole = [view.low / unit, Math.max(view.high, view.low + 1) / unit];
    if (most(rows.bytes) > 0) {
      const all = binned(rows, whole, bins(), unit);
      const [name, size] = unitOf(RATES, Math.max(most(all.bytes) * (8e12 / all.width), port.frames_bps || 0));
      const rate = (range) => ({ bytes: sums(range).bytes.map((value) => (value * 8e12) / sums(range).width / size), width: sums(range).width });
      const traces = port.frames_bps ? [new Charts.Trace({ name: panels.length ? "" : "speed of the port", x: whole, y: [port.frames_bps / size, port.frames_bps / size], color: SPEED, dash: "dash", width: 1.2, tip: () => `the port's speed in frame bytes: ${text(port.frames_bps, RATES)}` })] : [];
      const band = view.start === undefined || panels.length ? [] : [{ x0: view.start / unit, x1: view.end / unit, color: MARK, alpha: 0.12 }];
      panels.push({
        y: { title: `Arrivals [${name}]`, zero: true }, height: panels.length ? HEIGHTS.rate : HEIGHTS.queue, traces, bands: band,
        extent: (range) => [0, most(rate(range).bytes)],
        paint: (at) => bars(at, rate(at.range), [["bytes", "#0e8fa8"]], unit),
      });
    }
    if (rows.drops.some((value) => value) || rows.marks.some((value) => value)) {
      panels.push({
        y: { title: "Drops, marks", zero: true }, height: HEIGHTS.drops, traces: [],
        extent: (range) => [0, Math.max(most(sums(range).drops), most(sums(range).marks))],
        paint: (at) => bars(at, sums(at.range), [["marks", MARK], ["drops", DROP]], unit),
      });
    }
    if (panels.length) panels[panels.length - 1].height = Math.max(panels[panels.length - 1].height, HEIGHTS.drops); // it has the axis
    return { panels, whole, sums };
  }

  function open(index, { scroll = true, range = null, note = true } = {}) {
    const view = views[index];
    if (!view || !place) return;
    current = index;
    const rows = rowsOf(view);
    const [name, unit] = unitOf(TIMES, view.high);
    if (stack) stack.destroy();
    stack = null;
    const { panels, whole, sums } = panelsOf(view, rows, unit);
    if (!panels.length) panels.push({ y: { title: "" }, height: HEIGHTS.queue, traces: [], labels: [{ text: "nothing was recorded", middle: true }] });
    const out = find("readout");
    const read = (x) => {
      if (x === null) {
        out.textContent = `${moment(view.low, true)} and the next ${text(view.high - view.low, TIMES)}. Drag to zoom, double-click for all of it.`;
        return;
      }
      const at = x * unit;
      const i = Math.max(0, from(rows.time, at) - (view.kind === "packets" ? 0 : 1));
      const parts = [moment(at)];
      if (view.start !== undefined) parts.push(`${text(at - view.start, TIMES)} after the start`);
      if (rows.queue && i < rows.time.length && Number.isFinite(rows.queue[i])) parts.push(`queue ${bytes(rows.queue[i])}`);
      if (rows.wait && Number.isFinite(rows.wait[i])) parts.push(`wait ${text(rows.wait[i], TIMES)}`);
      const here = stack && sums(stack.range);
      const bin = here ? Math.floor((at - stack.range[0] * unit) / here.width) : -1;
      if (here && bin >= 0 && bin < here.bytes.length) {
        if (here.bytes[bin]) parts.push(`arrivals ${text((here.bytes[bin] * 8e12) / here.width, RATES)}`);
        const lost = here.drops[bin];
        if (lost) parts.push(`${digits(lost, 3)} dropped in ${text(here.width, TIMES)}`);
      }
      out.textContent = parts.join(" · ");
    };
    stack = new Charts.Stack(place, { x: { title: `Time [${name}]${clock ? ` after ${moment(0, true).replace(/\.0+ /, " ")}` : ""}`, whole, range }, panels, read });
    stack.onzoom = () => strip.paint();
    find("burst-title").textContent = view.title;
    find("burst-note").textContent = view.note;
    place.setAttribute("aria-label", view.title);
    place.dataset.view = index;
    place.dataset.drawn = "done";
    read(null);
    tell(view);
    choose(index, scroll);
    strip.paint();
    if (note) {
      const port = ports.length > 1 ? `&port=${encodeURIComponent(ports[view.port].name)}` : "";
      window.history.replaceState(null, "", view.index === null ? `#all${port}` : `#burst=${view.index}${port}`);
    }
  }

  // What is known of a burst beside its figure.
  function tell(view) {
    const words = find("burst-words");
    words.textContent = view.words;
    words.hidden = !view.words;
    const box = find("burst-tables");
    box.textContent = "";
    box.closest("details").hidden = !view.tables.length;
    for (const { caption, head, rows } of view.tables) {
      const scroll = document.createElement("div");
      scroll.className = "scroll";
      scroll.tabIndex = 0;
      scroll.setAttribute("role", "region");
      scroll.setAttribute("aria-label", caption);
      const table = document.createElement("table");
      const name = document.createElement("span");
      name.textContent = caption;
      table.createCaption().append(name);
      const top = table.createTHead().insertRow();
      for (const cell of head) {
        const th = document.createElement("th");
        th.scope = "col";
        th.textContent = cell;
        top.append(th);
      }
      const body = table.createTBody();
      for (const row of rows) {
        const line = body.insertRow();
        for (const [at, cell] of row.entries()) {
          const td = document.createElement(at ? "td" : "th");
          if (!at) td.scope = "row";
          td.textContent = cell;
          line.append(td);
        }
      }
      scroll.append(table);
      box.append(scroll);
    }
  }

  // -- records as a file --------------------------------------------------------------------------------------------

  const quoted = (value) => (/[",\n]/.test(value) ? `"${value.replace(/"/g, '""')}"` : value);

  function csv(view) {
    const rows = rowsOf(view);
    const port = quoted(ports[view.port].name);
    const cell = (column, i) => (column && Number.isFinite(column[i]) ? column[i] : "");
    const lines = [];
    if (view.kind === "packets") {
      lines.push("time_ps,port,queue_bytes,frame_bytes,flow,marked,dropped,replaced,wait_ps,estimated");
      for (let i = 0; i < rows.time.length; i += 1) {
        const bits = rows.fate[i];
        const flow = rows.flow && rows.flow[i] ? quoted(flows[rows.flow[i] - 1]) : "";
        lines.push([rows.time[i], port, cell(rows.queue, i), rows.bytes[i], flow, ...[MARKED, DROPPED, REPLACED].map((bit) => Boolean(bits & bit)), cell(rows.wait, i), Boolean(bits & ESTIMATED)].join(","));
      }
    } else {
      lines.push("from_ps,to_ps,port,packets,arrived_bytes,largest_queue_bytes,longest_wait_ps,marked,dropped");
      for (let i = 0; i < rows.time.length; i += 1) {
        if (!rows.n[i]) continue;
        lines.push([Math.round(rows.time[i]), Math.round(rows.until[i]), port, rows.n[i], rows.bytes[i], cell(rows.queue, i), cell(rows.wait, i), rows.marks[i], rows.drops[i]].join(","));
      }
    }
    return `${lines.join("\n")}\n`;
  }

  function download() {
    const view = views[current];
    const name = `${ports[view.port].name}-${view.index === null ? "all" : `burst-${view.index}`}.csv`.replace(/[^\w.-]+/g, "_");
    Charts.save(name, new Blob([csv(view)], { type: "text/csv" }));
  }

  // -- all of the trace ---------------------------------------------------------------------------------------------

  const strip = {
    start() {
      this.canvas = find("overview");
      if (!this.canvas) return;
      this.said = find("overview-said");
      this.rows = [...ports.entries()].filter(([, port]) => port.overview).map(([place_, port]) => ({ port: place_, name: port.name, n: values(port.overview.n), queue: counted(port.overview.queue), bytes: values(port.overview.bytes), drops: values(port.overview.drops) }));
      const level = (row, i) => (row.queue ? (Number.isFinite(row.queue[i]) ? row.queue[i] : 0) : row.bytes[i]);
      for (const row of this.rows) row.level = Float64Array.from(row.n, (_, i) => level(row, i));
      this.top = [true, false].map((known) => this.rows.filter((row) => Boolean(row.queue) === known).reduce((top, row) => row.level.reduce((a, b) => Math.max(a, b), top), 1));
      this.canvas.addEventListener("pointermove", (event) => this.hover(event));
      this.canvas.addEventListener("pointerleave", () => { this.held = null; this.said.textContent = this.words; this.paint(); });
      this.canvas.addEventListener("pointerdown", (event) => { this.held = this.at(event); });
      this.canvas.addEventListener("pointerup", (event) => this.release(event));
      this.words = this.said.textContent;
      new ResizeObserver(() => this.paint()).observe(this.canvas.parentElement);
    },

    layout() {
      return Strip.layout(this.canvas.parentElement.clientWidth, this.rows.map((row) => row.name));
    },

    paint() {
      if (!this.canvas) return;
      const { width, row, gutter, height } = this.layout();
      const ratio = window.devicePixelRatio || 1;
      this.canvas.style.height = `${height}px`;
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
      const key = `${width}/${height}/${ratio}/${css("--grid")}`;
      if (this.key !== key) {
        this.layer = document.createElement("canvas");
        [this.layer.width, this.layer.height, this.key] = [this.canvas.width, this.canvas.height, key];
        const behind = this.layer.getContext("2d");
        behind.scale(ratio, ratio);
        Strip.heat(behind, this.layout(), this.rows, this.top);
      }
      const ctx = this.canvas.getContext("2d");
      ctx.drawImage(this.layer, 0, 0);
      ctx.scale(ratio, ratio);
      const wide = width - gutter;
      const view = views[current];
      const shown = (low, high, y, tall) => {
        const [a, b] = [low, high].map((ps) => gutter + ((ps - LOW) / Math.max(1, HIGH - LOW)) * wide);
        ctx.strokeStyle = css("--text");
        ctx.lineWidth = 2;
        const right = Math.min(width - 1.5, Math.max(b + 0.5, a + 2.5)); // all four sides are on the canvas
        const left = Math.min(Math.max(gutter, a - 2) + 0.5, right - 4);
        ctx.strokeRect(left, y + 0.5, right - left, tall - 2);
      };
      const shownAt = view ? this.rows.findIndex((one) => one.port === view.port) : -1;
      if (shownAt >= 0) {
        const unit = unitOf(TIMES, view.high)[1];
        const range = stack ? stack.range.map((x) => x * unit) : [view.low, view.high];
        shown(...range, shownAt * row, row);
      }
      if (this.held && this.now) {
        ctx.fillStyle = css("--text");
        ctx.globalAlpha = 0.18;
        ctx.fillRect(Math.min(this.held.x, this.now.x), 0, Math.abs(this.now.x - this.held.x), height);
        ctx.globalAlpha = 1;
      }
    },

    at(event) {
      const { width, row, gutter } = this.layout();
      const box = this.canvas.getBoundingClientRect();
      const [x, y] = [event.clientX - box.left, event.clientY - box.top];
      const share = Math.max(0, Math.min(1, (x - gutter) / (width - gutter)));
      const index = Math.max(0, Math.min(this.rows.length - 1, Math.floor(y / row)));
      return { x, index, port: this.rows[index].port, ps: LOW + share * (HIGH - LOW), share, pixel: (HIGH - LOW) / (width - gutter) };
    },

    hover(event) {
      const at = this.at(event);
      this.now = at;
      const one = this.rows[at.index];
      const i = Math.min(one.level.length - 1, Math.floor(at.share * one.level.length));
      const what = one.queue ? `largest queue ${bytes(one.queue[i] || 0)}` : `arrived ${bytes(one.bytes[i])}`;
      this.said.textContent = `${one.name} · ${moment(at.ps, true)} · ${what}${one.drops[i] ? ` · ${one.drops[i].toLocaleString("en-US")} dropped` : ""}`;
      if (this.held) this.paint();
    },

    release(event) {
      const [held, at] = [this.held, this.at(event)];
      this.held = null;
      if (!held) return;
      if (Math.abs(at.x - held.x) > 4) {
        show(held.port, Math.min(held.ps, at.ps), Math.max(held.ps, at.ps));
        return;
      }
      let [best, near] = [-1, Infinity];
      for (const [index, view] of views.entries()) {
        if (view.index === null || view.port !== at.port) continue;
        const far = at.ps < view.start ? view.start - at.ps : at.ps > view.end ? at.ps - view.end : 0;
        if (far < near) [best, near] = [index, far];
      }
      if (best >= 0 && near <= 4 * at.pixel) open(best, { scroll: true });
      else show(at.port, at.ps - 20 * at.pixel, at.ps + 20 * at.pixel);
    },
  };

  // A part of a port's time.
  function show(port, low, high) {
    const index = views.findIndex((view) => view.index === null && view.port === port);
    if (index < 0) return;
    const view = views[index];
    const unit = unitOf(TIMES, view.high)[1];
    const range = [Math.max(view.low, low) / unit, Math.min(view.high, high) / unit];
    open(index, { range: range[1] > range[0] ? range : null });
  }

  // -- the list -----------------------------------------------------------------------------------------------------

  const list = { rows: [], order: [] };

  // Names of the flows of a burst in full: a table has what they share in its head.
  function namesOf(view) {
    return view.tables.filter((table) => table.head[0].startsWith("Flow")).flatMap(({ head, rows }) => {
      const shared = head[0].slice("Flow ".length);
      return rows.map(([name]) => (shared ? shared.replace("*", () => name) : name));
    });
  }

  function startList() {
    const table = find("bursts-list");
    if (!table) return;
    list.body = table.tBodies[0];
    list.rows = [...list.body.rows].map((row) => ({ row, view: Number(row.dataset.view), text: `${row.textContent} ${namesOf(views[Number(row.dataset.view)]).join(" ")}`.toLowerCase() }));
    list.order = list.rows;
    for (const { row, view } of list.rows) row.addEventListener("click", () => { if (!String(window.getSelection())) open(view); });
    for (const [column, button] of [...table.querySelectorAll("thead button")].entries()) button.addEventListener("click", () => sort(column, button));
    for (const id of ["filter", "filter-port", "filter-drops"]) find(id)?.addEventListener("input", filter);
  }

  function sort(column, button) {
    const head = button.closest("th");
    const down = head.getAttribute("aria-sort") !== "descending";
    for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const own = keys[column];
    const key = own ? (one) => own[one.view] : (one) => one.row.cells[column].textContent;
    const compare = (a, b) => {
      const [one, two_] = [key(a), key(b)];
      if (one === null || two_ === null) return (one === null) - (two_ === null); // what is unknown is last
      const way = own ? one - two_ : String(one).localeCompare(String(two_), "en", { numeric: true });
      return (down ? -way : way) || a.view - b.view;
    };
    list.order = [...list.rows].sort(compare);
    list.body.append(...list.order.map((one) => one.row));
  }

  function filter() {
    const words = find("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    const port = find("filter-port")?.value ?? "";
    const lost = find("filter-drops")?.checked;
    let count = 0;
    for (const one of list.rows) {
      const view = views[one.view];
      const fits = (port === "" || String(view.port) === port) && (!lost || one.row.dataset.drops === "1") && words.every((word) => one.text.includes(word));
      one.row.hidden = !fits;
      count += fits;
    }
    find("filter-count").textContent = `${count.toLocaleString("en-US")} of ${list.rows.length.toLocaleString("en-US")}`;
  }

  function choose(index, scroll) {
    for (const { row, view } of list.rows) {
      const chosen = view === index;
      if (row.classList.contains("chosen") !== chosen) row.classList.toggle("chosen", chosen);
      row.querySelector("button").setAttribute("aria-pressed", String(chosen));
      if (chosen && scroll) {
        const box = row.closest(".scroll");
        const [top, own] = [row.offsetTop, row.offsetHeight];
        if (top < box.scrollTop + 40 || top + own > box.scrollTop + box.clientHeight) box.scrollTop = top - box.clientHeight / 2;
      }
    }
    if (scroll) place.closest("figure").scrollIntoView({ block: "nearest", behavior: "smooth" });
  }

  // The burst before or after this one in time, at any port.
  function step(way) {
    const order = views.map((view, index) => [view, index]).filter(([view]) => view.index !== null).sort(([a], [b]) => a.start - b.start || a.port - b.port);
    if (!order.length) return;
    const at = order.findIndex(([, index]) => index === current);
    const next = order[Math.max(0, Math.min(order.length - 1, at < 0 ? 0 : at + way))];
    open(next[1], { scroll: true });
  }

  // -- links --------------------------------------------------------------------------------------------------------

  function linked() {
    const found = new URLSearchParams(window.location.hash.slice(1));
    const name = found.get("port");
    const port = name === null ? null : ports.findIndex((one) => one.name === name);
    const fits = (view) => port === null || view.port === port;
    if (found.has("burst")) return views.findIndex((view) => String(view.index) === found.get("burst") && fits(view));
    if (found.has("all")) return views.findIndex((view) => view.index === null && fits(view));
    return -2;
  }

  function follow(scroll) {
    const index = linked();
    const missing = find("burst-missing");
    missing.hidden = index !== -1;
    if (index === -1) missing.textContent = `${window.location.hash}: that burst is not on this page.`;
    if (index >= 0 && index !== current) open(index, { scroll });
    return index >= 0;
  }

  function start(at) {
    if (place) return;
    place = at;
    strip.start();
    startList();
    find("download").addEventListener("click", download);
    for (const [id, way] of [["earlier", -1], ["later", 1]]) find(id)?.addEventListener("click", () => step(way));
    if (!follow(false)) open(0, { scroll: false, note: false });
    window.addEventListener("hashchange", () => follow(true));
  }

  return { start, open, csv: () => csv(views[current]), views, strip, repaint: () => strip.paint(), rows: () => rowsOf(views[current]), current: () => views[current], stack: () => stack };
})();
