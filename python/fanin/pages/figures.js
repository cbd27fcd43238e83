"use strict";
// Draws the figures that Python describes in Plotly's format: the parts of it that they use, see fanin/figures.
const Figures = (() => {
  const TYPES = { f8: Float64Array, f4: Float32Array, u4: Uint32Array, i4: Int32Array, u2: Uint16Array, i2: Int16Array, u1: Uint8Array, i1: Int8Array };

  // Numbers as they stand on the page: a list, or bytes (little-endian) in base 64.
  function unpack(values) {
    if (values === null || values === undefined) return [];
    if (Array.isArray(values)) return values;
    const text = atob(values.bdata);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i += 1) bytes[i] = text.charCodeAt(i);
    const flat = new TYPES[values.dtype](bytes.buffer);
    if (!values.shape) return flat;
    const [rows, columns] = String(values.shape).split(",").map(Number);
    return Array.from({ length: rows }, (_, row) => flat.subarray(row * columns, (row + 1) * columns));
  }

  // Text of Plotly's little markup: line breaks and escaped characters.
  function plain(text) {
    return String(text ?? "").replace(/<br>/g, "\n").replace(/<\/?(b|i|extra)>/g, "").replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&");
  }

  // The formats of d3 that figures use: ".4g", ".2%", ",".
  function formatted(value, format) {
    if (typeof value !== "number") return plain(value);
    const found = /^(,)?(?:\.(\d+))?([gf%]?)$/.exec(format || ",");
    if (!found) return String(value);
    const places = found[2] === undefined ? 6 : Number(found[2]);
    if (found[3] === "%") return `${(100 * value).toFixed(places)} %`;
    if (found[3] === "f") return value.toLocaleString("en-US", { minimumFractionDigits: places, maximumFractionDigits: places });
    return Charts.digits(value, found[3] === "g" ? places : 12);
  }

  function hint(trace, x, y, more) {
    if (trace.hoverinfo === "skip" || !trace.hovertemplate) return null;
    const [shown, name] = trace.hovertemplate.split("<extra>");
    return (i) => {
      const parts = { x: x[i], y: y[i], text: trace.text ? trace.text[i] : "" };
      const filled = shown.replace(/%\{(\w+)(?:\[(\d+)\])?(?::([^}]*))?\}/g, (_, key, index, format) => {
        const value = key === "customdata" ? more[i][Number(index)] : parts[key];
        return formatted(value, format);
      });
      const called = plain((name || "").replace("</extra>", ""));
      return plain(filled).trim() + (called ? `\n${called}` : "");
    };
  }

  function axisOf(layout = {}) {
    const ticks = layout.tickvals ? layout.tickvals.map((at, i) => ({ at, text: plain(layout.ticktext[i]) })) : null;
    const log = layout.type === "log";
    const range = layout.range ? (log ? layout.range.map((end) => 10 ** end) : layout.range) : null;
    return {
      title: plain(layout.title && layout.title.text), log, ticks, hidden: layout.visible === false, zero: layout.rangemode === "tozero", dtick: !log && layout.dtick,
      range: range && [Math.min(...range), Math.max(...range)], reversed: Boolean(range && range[0] > range[1]),
    };
  }

  function specOf(figure) {
    const { layout } = figure;
    const x = axisOf(layout.xaxis);
    const y = axisOf(layout.yaxis);
    const categories = layout.xaxis && layout.xaxis.type === "category" ? [...new Set(figure.data.flatMap((trace) => unpack(trace.x)))] : null;
    if (categories) {
      x.ticks = categories.map((name, at) => ({ at, text: plain(name) }));
      x.lines = Math.max(...x.ticks.map((tick) => tick.text.split("\n").length)) - 1;
      x.whole = [-0.3, categories.length - 0.7];
    } else if (layout.xaxis && layout.xaxis.visible === false) {
      x.whole = [-0.02, 1.02];
      y.range = [-0.05, 1.05];
    } else if (x.log && x.range) {
      x.whole = x.range;
      x.range = null;
    } else if (/^Time \[/.test(x.title)) {
      x.zero = true;
    }
    const stacks = new Map();
    let color = 0;
    const traces = figure.data.map((trace) => {
      const own = figure.colorway[color % figure.colorway.length];
      color += 1;
      const xs = categories ? unpack(trace.x).map((name) => categories.indexOf(name)) : unpack(trace.x);
      let ys = unpack(trace.y);
      const mode = trace.mode || "lines";
      const line = trace.line || {};
      const marker = trace.marker || {};
      const look = {
        name: plain(trace.name), x: xs, y: ys, lines: mode.includes("lines"), marks: mode.includes("markers"), shape: line.shape || "linear",
        color: (mode.includes("lines") ? line.color : null) || marker.color || line.color || own, width: line.width ?? 2, dash: line.dash || "solid",
        symbol: marker.symbol || "circle", size: marker.size || 6, listed: layout.showlegend !== false && trace.showlegend !== false, group: trace.legendgroup || null,
        over: trace.yaxis === "y2", tip: hint(trace, xs, ys, unpack(trace.customdata)),
      };
      if (trace.stackgroup) {
        const base = stacks.get(trace.stackgroup);
        if (base) ys = Float64Array.from(ys, (value, i) => value + base[i]);
        stacks.set(trace.stackgroup, ys);
        Object.assign(look, { y: ys, base: base || null, fill: trace.fillcolor });
      } else if (trace.fill === "tozeroy") {
        look.fill = trace.fillcolor || `${look.color}55`;
      }
      if (trace.error_y && trace.error_y.array) look.error = { up: unpack(trace.error_y.array), down: unpack(trace.error_y.arrayminus || trace.error_y.array) };
      return new Charts.Trace(look);
    });
    const bands = (layout.shapes || []).map((shape) => ({ x0: shape.x0, x1: shape.x1, color: shape.fillcolor, alpha: shape.opacity ?? 0.15 }));
    const labels = (layout.annotations || []).map((note) => ({ x: note.x, text: plain(note.text), middle: note.xref === "paper" }));
    if (y.ticks) y.range = y.range || [-0.5, y.ticks.length - 0.5];
    const height = y.ticks ? Math.max(200, Math.min(900, 70 + 22 * y.ticks.length)) : 330;
    return { x, panels: [{ y, height, traces, bands, labels }] };
  }

  // Puts a figure into its place, with the slider that goes through its times, where it has one.
  function draw(place, figure) {
    const spec = specOf(figure);
    const stack = new Charts.Stack(place, spec);
    const slider = (figure.layout.sliders || [])[0];
    if (!slider) return stack;
    const box = document.createElement("label");
    box.className = "slider";
    const input = document.createElement("input");
    Object.assign(input, { type: "range", min: 0, max: slider.steps.length - 1, value: slider.active || 0 });
    const told = document.createElement("span");
    const go = () => {
      const step = slider.steps[Number(input.value)];
      told.textContent = `${slider.currentvalue.prefix || ""}${plain(step.label)}`;
      const [change, places] = step.args;
      for (const [index, at] of places.entries()) {
        const trace = spec.panels[0].traces[at];
        const [xs, ys] = [unpack(change.x[index]), unpack(change.y[index])];
        const text = change.text ? change.text[index] : [];
        Object.assign(trace, { x: xs, y: ys, sorted: Charts.rising(xs), tip: text.length ? (i) => `${plain(text[i])}\n${trace.name}` : null });
      }
      stack.redraw();
    };
    input.addEventListener("input", go);
    told.textContent = `${slider.currentvalue.prefix || ""}${plain((slider.steps[Number(input.value)] || {}).label)}`;
    box.append(input, told);
    place.append(box);
    return stack;
  }

  return { draw, unpack, plain };
})();
