"use strict";
// A stack of panels over one axis of time (or of anything else): axes, crosshair and selection by uPlot, what is in them by this file.
// Of many points each pixel has its smallest and its largest; of marks each pixel has one: nothing is lost, at any zoom.
const Charts = (() => {
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const narrow = window.matchMedia("(max-width: 640px)");
  const PAPER = 660; // [px] fits between the margins of A4 and of Letter
  const NEAR = 30; // [px] how far from the pointer what it shows may be
  const DASHES = { solid: [], dot: [2, 3], dash: [7, 4], dashdot: [7, 3, 2, 3] };
  const drawn = new Set();

  // A number with so many digits that count, as tables have it.
  function digits(value, count = 4) {
    if (!Number.isFinite(value)) return "–";
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-4 || size >= 1e15)) return value.toPrecision(count).replace(/\.?0+(?=e|$)/, "");
    const whole = size < 1 ? 1 : Math.floor(Math.log10(size)) + 1;
    const rounded = Number(value.toPrecision(Math.max(1, count)));
    return rounded.toLocaleString("en-US", { maximumFractionDigits: Math.min(20, Math.max(0, count - whole) + (size < 1 && size > 0 ? Math.ceil(-Math.log10(size)) : 0)) });
  }

  // Index of the first value that is not below `value`.
  function from(values, value) {
    let [low, high] = [0, values.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (values[middle] < value) low = middle + 1; else high = middle;
    }
    return low;
  }

  function rising(values) {
    for (let i = 1; i < values.length; i += 1) if (!(values[i] >= values[i - 1])) return false;
    return true;
  }

  const number = (value) => (value === null || value === undefined ? NaN : Number(value));

  // What is to be drawn: a curve, marks, or both.
  class Trace {
    constructor(look) {
      Object.assign(this, { name: "", lines: true, marks: false, shape: "linear", color: "#59636e", width: 1.5, dash: "solid", fill: null, base: null, symbol: "circle", size: 5, shown: true, listed: true, over: false, error: null, tip: null, group: null }, look);
      this.sorted = rising(this.x);
    }

    // The part of its points that can be seen, with a neighbour on each side.
    part([low, high]) {
      if (!this.sorted) return [0, this.x.length];
      return [Math.max(0, from(this.x, low) - 1), Math.min(this.x.length, from(this.x, high) + 2)];
    }

    extent(range) {
      const [start, end] = this.part(range);
      let [low, high] = [Infinity, -Infinity];
      for (let i = start; i < end; i += 1) {
        const y = number(this.y[i]);
        const [down, up] = this.error ? [this.error.down[i] || 0, this.error.up[i] || 0] : [0, 0];
        if (y - down < low) low = y - down;
        if (y + up > high) high = y + up;
      }
      return [low, high];
    }

    path(view, values, [start, end], backwards = false) {
      const { ctx } = view;
      let open = false;
      let before = null;
      let column = null; // pixel with several points: its first, smallest, largest and last height
      const flush = () => {
        if (!column) return;
        // Its first height comes first: after a pause the line would slant up to the pixel's extreme.
        for (const y of column.low === column.high ? [column.low] : [column.first, column.low, column.high, column.last]) ctx.lineTo(column.x, y);
        column = null;
      };
      const dense = end - start > 3 * view.box.width;
      const step = (at) => {
        const y = number(values[at]);
        const x = number(this.x[at]);
        if (!Number.isFinite(y) || !Number.isFinite(x)) {
          flush();
          [open, before] = [false, null];
          return;
        }
        const [px, py] = [view.px(x), view.py(y)];
        if (!open) {
          if (backwards) ctx.lineTo(px, py); else ctx.moveTo(px, py);
          [open, before] = [true, [px, py]];
          return;
        }
        if (dense && this.shape === "linear") {
          const rounded = Math.round(px);
          if (column && column.x === rounded) {
            column.low = Math.min(column.low, py);
            column.high = Math.max(column.high, py);
            column.last = py;
          } else {
            flush();
            column = { x: rounded, first: py, low: py, high: py, last: py };
          }
        } else {
          if (this.shape === (backwards ? "vh" : "hv")) ctx.lineTo(px, before[1]);
          if (this.shape === (backwards ? "hv" : "vh")) ctx.lineTo(before[0], py);
          ctx.lineTo(px, py);
        }
        before = [px, py];
      };
      if (backwards) for (let i = end - 1; i >= start; i -= 1) step(i);
      else for (let i = start; i < end; i += 1) step(i);
      flush();
    }

    paint(view) {
      const { ctx, ratio } = view;
      const part = this.part(view.range);
      ctx.save();
      if (this.fill) {
        ctx.fillStyle = this.fill;
        ctx.beginPath();
        this.path(view, this.y, part);
        if (this.base) {
          this.path(view, this.base, part, true);
        } else {
          let [first, last] = part;
          const there = (i) => Number.isFinite(number(this.x[i])) && Number.isFinite(number(this.y[i]));
          while (first < last && !there(first)) first += 1;
          while (last > first && !there(last - 1)) last -= 1;
          if (first < last) {
            ctx.lineTo(view.px(this.x[last - 1]), view.py(0));
            ctx.lineTo(view.px(this.x[first]), view.py(0));
          }
        }
        ctx.closePath();
        ctx.fill();
      }
      if (this.lines && this.width > 0) {
        ctx.strokeStyle = this.color;
        ctx.lineWidth = this.width * ratio;
        ctx.lineJoin = "round";
        ctx.setLineDash((DASHES[this.dash] || []).map((length) => length * ratio));
        ctx.beginPath();
        this.path(view, this.y, part);
        ctx.stroke();
        ctx.setLineDash([]);
      }
      if (this.error) this.whiskers(view, part);
      if (this.marks) {
        ctx.fillStyle = this.color;
        ctx.strokeStyle = this.color;
        const points = [];
        for (let i = part[0]; i < part[1]; i += 1) points.push(view.px(number(this.x[i])), view.py(number(this.y[i])));
        marks(view, points, this.symbol, this.size * ratio);
      }
      ctx.restore();
    }

    whiskers({ ctx, px, py, ratio }, [start, end]) {
      ctx.strokeStyle = this.color;
      ctx.lineWidth = 1.2 * ratio;
      ctx.beginPath();
      for (let i = start; i < end; i += 1) {
        const y = number(this.y[i]);
        const [down, up] = [this.error.down[i] || 0, this.error.up[i] || 0];
        if (!Number.isFinite(y) || down + up === 0) continue;
        const x = px(this.x[i]);
        const ends = [py(y - down), py(y + up)];
        ctx.moveTo(x, ends[0]);
        ctx.lineTo(x, ends[1]);
        for (const end_ of ends) {
          ctx.moveTo(x - 4 * ratio, end_);
          ctx.lineTo(x + 4 * ratio, end_);
        }
      }
      ctx.stroke();
    }
  }

  const SHAPES = {
    circle: (ctx, x, y, r) => ctx.arc(x, y, r, 0, 2 * Math.PI),
    square: (ctx, x, y, r) => ctx.rect(x - r, y - r, 2 * r, 2 * r),
    diamond: (ctx, x, y, r) => { ctx.moveTo(x, y - 1.3 * r); ctx.lineTo(x + 1.3 * r, y); ctx.lineTo(x, y + 1.3 * r); ctx.lineTo(x - 1.3 * r, y); ctx.closePath(); },
    "triangle-up": (ctx, x, y, r) => { ctx.moveTo(x, y - 1.2 * r); ctx.lineTo(x + 1.1 * r, y + 0.8 * r); ctx.lineTo(x - 1.1 * r, y + 0.8 * r); ctx.closePath(); },
  };

  // Marks at pixels (x, y, x, y, …), one for each pixel that has any.
  function marks(view, points, symbol, size) {
    const { ctx, box, ratio } = view;
    const taken = points.length > 4000 ? new Uint8Array((box.width + 1) * (box.height + 1)) : null;
    const cross = symbol === "x" || symbol === "cross";
    const r = size / 2;
    if (cross) ctx.lineWidth = 1.6 * ratio;
    ctx.beginPath();
    for (let i = 0; i < points.length; i += 2) {
      const [x, y] = [points[i], points[i + 1]];
      if (!(x >= box.left - r && x <= box.left + box.width + r && Number.isFinite(y))) continue;
      if (taken) {
        const [column, row] = [Math.round(x - box.left), Math.round(y - box.top)];
        if (column >= 0 && row >= 0 && column <= box.width && row <= box.height) {
          const cell = row * (box.width + 1) + column;
          if (taken[cell]) continue;
          taken[cell] = 1;
        }
      }
      if (cross) {
        ctx.moveTo(x - r, y - r);
        ctx.lineTo(x + r, y + r);
        ctx.moveTo(x - r, y + r);
        ctx.lineTo(x + r, y - r);
      } else {
        if (taken && r <= 3 * ratio) {
          ctx.rect(x - r, y - r, 2 * r, 2 * r);
        } else {
          ctx.moveTo(x + r, y);
          (SHAPES[symbol] || SHAPES.circle)(ctx, x, y, r);
        }
      }
    }
    if (cross) ctx.stroke(); else ctx.fill();
  }

  function decades(low, high) {
    const ticks = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
      for (let factor = 1; factor < 10; factor += 1) {
        const value = factor * 10 ** power;
        if (value >= low * 0.9999 && value <= high * 1.0001) ticks.push(value);
      }
    }
    return ticks;
  }

  const isPower = (value) => Math.abs(Math.log10(value) - Math.round(Math.log10(value))) < 1e-9;

  // Text as lines that fit below an axis: a title alone is one.
  function axis(spec, side, size, show) {
    const own = {
      side, size, show,
      stroke: () => css("--soft"),
      font: () => `${narrow.matches ? 11 : 12}px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif`,
      labelFont: `12px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif`,
      grid: { stroke: () => css("--grid"), width: 1 },
      ticks: { stroke: () => css("--soft"), width: 1, size: 5 },
      border: { show: true, stroke: () => css("--soft"), width: 1 },
      gap: 4,
    };
    own.font = own.labelFont;
    if (spec.title) Object.assign(own, { label: spec.title, labelSize: 18, labelGap: 0 });
    if (spec.ticks) {
      own.splits = () => spec.ticks.map((tick) => tick.at);
      own.values = () => spec.ticks.map((tick) => tick.text);
      own.filter = (u, splits) => splits;
    } else if (spec.log) {
      own.splits = (u, index, low, high) => decades(low, high);
      own.values = (u, splits) => {
        const few = splits.filter(isPower).length < 2;
        return splits.map((value) => (isPower(value) || (few && [2, 5].includes(Math.round(value / 10 ** Math.floor(Math.log10(value) + 1e-9)))) ? digits(value, 3) : ""));
      };
      own.filter = (u, splits) => splits;
    } else {
      own.values = (u, splits, index, space, step) => {
        const places = Math.max(0, Math.min(12, -Math.floor(Math.log10(step || 1) + 1e-9)));
        return splits.map((value) => value.toLocaleString("en-US", { maximumFractionDigits: places }));
      };
      if (spec.dtick) own.incrs = [1, 2, 5, 10, 20, 50, 100];
    }
    return own;
  }

  class Stack {
    // spec: {x, panels: [{y, height, traces, bands, labels, paint, extent, read}], read, label}
    constructor(place, spec) {
      Object.assign(this, { place, spec, plots: [], range: null });
      this.whole = this.wholeRange();
      this.range = spec.x.range || this.whole;
      place.textContent = "";
      this.legend = this.makeLegend();
      this.body = document.createElement("div");
      this.body.className = "stack";
      this.tip = document.createElement("div");
      this.tip.className = "tip";
      this.tip.hidden = true;
      place.append(this.legend, this.body, this.tip);
      this.build(this.width());
      place.fanin = this;
      drawn.add(this);
      this.watch = new ResizeObserver(() => this.resize());
      this.watch.observe(place);
    }

    destroy() {
      this.watch.disconnect();
      for (const plot of this.plots) plot.destroy();
      drawn.delete(this);
      delete this.place.fanin;
      this.place.textContent = "";
    }

    width() { return Math.max(160, Math.floor(this.place.clientWidth || 600)); }

    wholeRange() {
      if (this.spec.x.whole) return this.spec.x.whole;
      let [low, high] = [Infinity, -Infinity];
      for (const panel of this.spec.panels) {
        for (const trace of panel.traces) {
          for (let i = 0; i < trace.x.length; i += 1) {
            const x = number(trace.x[i]);
            if (this.spec.x.log && !(x > 0)) continue;
            if (x < low) low = x;
            if (x > high) high = x;
          }
        }
      }
      if (!(low <= high)) return this.spec.x.log ? [1, 10] : [0, 1];
      if (this.spec.x.log) return low === high ? [low / 2, high * 2] : [low / 1.1, high * 1.1];
      if (this.spec.x.zero && low > 0 && low < 0.2 * high) low = 0;
      const margin = low === high ? 0.5 : this.spec.panels.some((panel) => panel.traces.some((trace) => trace.marks)) ? 0.015 * (high - low) : 0;
      return [low - margin, high + margin];
    }

    // Heights of a panel over the part of the axis that is seen.
    heights(panel) {
      if (panel.y.range) return panel.y.range;
      let [low, high] = [Infinity, -Infinity];
      for (const trace of panel.traces) {
        if (!trace.shown || trace.over) continue;
        const [least, most] = trace.extent(this.range);
        if (least < low) low = least;
        if (most > high) high = most;
      }
      if (panel.extent) {
        const [least, most] = panel.extent(this.range);
        if (least < low) low = least;
        if (most > high) high = most;
      }
      if (panel.y.log) {
        if (!(high > 0)) return [1, 10];
        return [Math.max(low, high / 1e9) / 1.15, high * 1.15];
      }
      if (!(low <= high)) return [0, 1];
      if (panel.y.zero && low > 0) low = 0;
      if (low === high) return low === 0 ? [0, 1] : [Math.min(0, low), Math.max(0, high) * 1.06];
      const margin = 0.05 * (high - low);
      return [low === 0 ? 0 : low - margin, high + margin];
    }

    build(width) {
      for (const plot of this.plots) plot.destroy();
      this.body.textContent = "";
      const key = `stack-${this.place.id}`;
      this.plots = this.spec.panels.map((panel, index) => {
        const last = index === this.spec.panels.length - 1;
        const x = axis({ ...this.spec.x, title: last ? this.spec.x.title : "" }, 2, last ? 30 + 14 * (this.spec.x.lines || 0) : 6, !this.spec.x.hidden);
        if (!last) x.values = (u, splits) => splits.map(() => "");
        const wide = panel.y.ticks ? Math.min(0.4 * width, 16 + 6.9 * Math.max(...panel.y.ticks.map((tick) => tick.text.length))) : narrow.matches ? 42 : 52;
        const y = axis(panel.y, 3, wide, !panel.y.hidden);
        if (panel.height < 120) y.space = 22;
        const cell = document.createElement("div");
        this.body.append(cell);
        const options = {
          width, height: panel.height, padding: [8, 14, last ? 0 : 4, panel.y.hidden ? 8 : 0], legend: { show: false }, pxAlign: false,
          cursor: {
            sync: { key, setSeries: false, scales: ["x", null] },
            drag: { x: true, y: false, setScale: false },
            points: { show: false },
            bind: { dblclick: () => () => { this.zoom(null); return null; } },
          },
          select: { show: true },
          scales: { x: { time: false, distr: this.spec.x.log ? 3 : 1, range: () => this.range }, y: { distr: panel.y.log ? 3 : 1, range: () => this.heights(panel), dir: panel.y.reversed ? -1 : 1 } },
          axes: [x, y],
          series: [{}, { paths: () => null, points: { show: false } }],
          hooks: {
            drawClear: [(u) => this.under(u, panel)],
            draw: [(u) => this.paint(u, panel)],
            setSelect: [(u) => this.selected(u)],
            setCursor: [(u) => this.point(u, panel)],
          },
        };
        const plot = new uPlot(options, [[this.range[0], this.range[1]], [0, 1]], cell);
        plot.over.addEventListener("mouseleave", () => { this.tip.hidden = true; this.say(null); });
        return plot;
      });
    }

    view(u) {
      const { left, top, width, height } = u.bbox;
      const box = { left, top, width: Math.round(width), height: Math.round(height) };
      const { min, max } = u.scales.x;
      const scale = width / (max - min);
      const px = this.spec.x.log ? (x) => u.valToPos(x, "x", true) : (x) => left + (x - min) * scale;
      const [low, high] = [u.scales.y.min, u.scales.y.max];
      const turned = u.scales.y.dir === -1;
      const py = u.scales.y.distr === 3 ? (y) => u.valToPos(y, "y", true) : (y) => (turned ? top + ((y - low) / (high - low)) * height : top + height - ((y - low) / (high - low)) * height);
      return { ctx: u.ctx, box, px, py, ratio: uPlot.pxRatio, range: [min, max] };
    }

    clipped(u, paint) {
      const view = this.view(u);
      const { ctx, box, ratio } = view;
      ctx.save();
      ctx.beginPath();
      ctx.rect(box.left, box.top - 2 * ratio, box.width, box.height + 3 * ratio);
      ctx.clip();
      paint(view);
      ctx.restore();
    }

    under(u, panel) {
      this.clipped(u, ({ ctx, box, px }) => {
        for (const band of panel.bands || []) {
          ctx.globalAlpha = band.alpha;
          ctx.fillStyle = band.color;
          const [start, end] = [px(band.x0), px(band.x1)];
          ctx.fillRect(start, box.top, Math.max(1, end - start), box.height);
        }
      });
    }

    paint(u, panel) {
      this.clipped(u, (view) => {
        for (const trace of panel.traces) {
          if (!trace.shown) continue;
          if (trace.over) {
            trace.paint({ ...view, py: (y) => view.box.top + (1 - y) * view.box.height });
          } else {
            trace.paint(view);
          }
        }
        if (panel.paint) panel.paint(view);
        const { ctx, box, px, ratio } = view;
        ctx.fillStyle = css("--text");
        ctx.textAlign = "center";
        ctx.textBaseline = "top";
        ctx.font = `${11 * ratio}px sans-serif`;
        for (const label of panel.labels || []) ctx.fillText(label.text, label.middle ? box.left + box.width / 2 : px(label.x), label.middle ? box.top + box.height / 2 : box.top + 1);
      });
    }

    selected(u) {
      if (!(u.select.width > 2)) return;
      const [low, high] = [u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x")];
      u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
      this.zoom([low, high]);
    }

    // Shows a part of the axis, all of it at null.
    zoom(range) {
      const tiny = 1e-12 * Math.max(1e-3, Math.abs(this.whole[1]));
      this.range = range && range[1] - range[0] > tiny ? range : this.whole;
      for (const [index, plot] of this.plots.entries()) {
        const [low, high] = this.heights(this.spec.panels[index]);
        plot.batch(() => {
          plot.setScale("x", { min: this.range[0], max: this.range[1] });
          plot.setScale("y", { min: low, max: high });
        });
      }
      if (this.onzoom) this.onzoom(this.range);
    }

    // By how much more or less is seen, around the middle.
    scale(factor) {
      const log = this.spec.x.log;
      const [low, high] = log ? this.range.map(Math.log) : this.range;
      const [middle, half] = [(low + high) / 2, ((high - low) / 2) * factor];
      const to = [middle - half, middle + half];
      this.zoom(log ? to.map(Math.exp) : to);
    }

    redraw() { this.zoom(this.range); for (const plot of this.plots) plot.redraw(false, true); }

    resize(width = null) {
      const wide = width || this.width();
      if (!this.place.offsetParent && !width) return;
      for (const [index, plot] of this.plots.entries()) if (plot.width !== wide) plot.setSize({ width: wide, height: this.spec.panels[index].height });
    }

    say(x) { if (this.spec.read) this.spec.read(x); }

    point(u, panel) {
      const { left, top } = u.cursor;
      if (left === undefined || left < 0) return;
      this.say(u.posToVal(left, "x"));
      if (u.cursor.event === undefined && top < 0) return;
      if (!u.over.matches(":hover")) return;
      const view = this.view(u);
      const [x, y] = [view.box.left + left * view.ratio, view.box.top + top * view.ratio];
      let [best, nearest] = [null, NEAR * view.ratio];
      for (const trace of panel.traces) {
        if (!trace.shown || !trace.tip) continue;
        const reach = [u.posToVal(Math.max(0, left - NEAR), "x"), u.posToVal(left + NEAR, "x")];
        const [start, end] = trace.part(reach);
        for (let i = start; i < Math.min(end, start + 20000); i += 1) {
          const far = Math.hypot(view.px(number(trace.x[i])) - x, view.py(number(trace.y[i])) - y);
          if (far < nearest) [best, nearest] = [[trace, i], far];
        }
      }
      this.tip.hidden = !best;
      if (!best) return;
      this.tip.textContent = best[0].tip(best[1]);
      const own = this.place.getBoundingClientRect();
      const at = u.over.getBoundingClientRect();
      const wide = this.tip.offsetWidth;
      const pixels = at.left - own.left + left + 14;
      this.tip.style.left = `${Math.max(0, pixels + wide > own.width ? pixels - wide - 28 : pixels)}px`;
      this.tip.style.top = `${at.top - own.top + top + 12}px`;
    }

    makeLegend() {
      const box = document.createElement("div");
      box.className = "legend";
      const seen = new Map();
      if (this.spec.legend === false) return box;
      for (const trace of this.spec.panels.flatMap((panel) => panel.traces)) {
        if (!trace.listed || !trace.name) continue;
        const name = document.createElement("button");
        name.type = "button";
        name.setAttribute("aria-pressed", String(trace.shown));
        const key = document.createElement("i");
        key.className = trace.marks && !trace.lines ? "dot" : trace.fill && !trace.width ? "area" : "line";
        key.style.setProperty("--key", trace.fill && !trace.width ? trace.fill : trace.color);
        if (trace.dash !== "solid") key.classList.add("dashed");
        name.append(key, trace.name);
        name.addEventListener("click", () => {
          const shown = !trace.shown;
          for (const other of this.spec.panels.flatMap((panel) => panel.traces)) if (other === trace || (trace.group && other.group === trace.group)) other.shown = shown;
          name.setAttribute("aria-pressed", String(shown));
          this.redraw();
        });
        box.append(name);
        seen.set(trace.name, name);
      }
      return box;
    }

    // Name, x, y of each curve, as they were given.
    curves() { return this.spec.panels.flatMap((panel) => panel.traces).filter((trace) => trace.name).map((trace) => [trace.name, Array.from(trace.x), Array.from(trace.y)]); }

    // The chart as a picture.
    picture() {
      const back = css("--card");
      const canvases = this.plots.map((plot) => plot.ctx.canvas);
      const picture = document.createElement("canvas");
      picture.width = Math.max(...canvases.map((canvas) => canvas.width));
      picture.height = canvases.reduce((sum, canvas) => sum + canvas.height, 0);
      const ctx = picture.getContext("2d");
      ctx.fillStyle = back;
      ctx.fillRect(0, 0, picture.width, picture.height);
      let top = 0;
      for (const canvas of canvases) {
        ctx.drawImage(canvas, 0, top);
        top += canvas.height;
      }
      return picture;
    }
  }

  // Hands a file over to whoever reads the page; nothing leaves the machine.
  function save(name, blob) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  return { Stack, Trace, marks, digits, from, css, save, narrow, PAPER, drawn, rising };
})();
