// Curves of the watched port: its queue, and below it how fast it sends, with what was dropped and marked so far. They are drawn while a run
// goes on, from looks at it; when it has ended the queue is that of every packet.
const COLORS = ["#1f6feb", "#d9822b"];
const LOOKS = 1_000; // of a run, at most

/** What was seen of a port, look by look. */
export class Looks {
  constructor() {
    this.rows = []; // [time in ps, queue in bytes, bytes sent, packets dropped, packets marked]
    this.every = 1;
    this.seen = 0;
  }

  /** Adds a look; of many looks some are left out, evenly, but never the `last`. */
  add(ps, port, last = false) {
    if (this.seen++ % this.every && !last) return;
    if (this.rows.at(-1)?.[0] >= ps) this.rows.pop();
    this.rows.push([ps, port.queue_bytes, port.tx_bytes, port.drops, port.marks]);
    if (this.rows.length < LOOKS || last) return;
    this.rows = this.rows.filter((_, n) => n % 2 === 0);
    this.every *= 2;
  }

  column(n) {
    return this.rows.map((row) => row[n]);
  }

  /** Bits per second, each over a hundredth of the run at least: a shorter time holds few packets, and one of them more or less would show. */
  get rate() {
    const rows = [[0, 0, 0, 0, 0], ...this.rows];
    const least = rows.at(-1)[0] / 100;
    let from = 0;
    return this.rows.map(([ps, , sent], n) => {
      while (from < n && rows[from + 1][0] <= ps - least) from += 1;
      const [before, , had] = rows[from];
      return ps > before ? ((sent - had) * 8e12) / Math.max(ps - before, least) : 0;
    });
  }
}

/** Draws runs into a place: `{ i, letter, name, looks, queue }` each, where `queue` is what every packet met, once the run has ended. */
export class Curves {
  constructor(place, words) {
    Object.assign(this, { place, words, plots: [] });
    window.addEventListener("resize", () => this.plots.forEach((plot) => plot.setSize(this.size(plot.height))));
  }

  size(height) {
    return { width: Math.max(280, this.place.clientWidth), height };
  }

  clear() {
    this.plots.forEach((plot) => plot.destroy());
    this.plots = [];
    this.place.textContent = "";
  }

  draw(runs) {
    const { bytes, time, rate } = this.words;
    const ink = getComputedStyle(this.place).color;
    const axis = { stroke: ink, grid: { stroke: "#8884", width: 1 }, ticks: { stroke: "#8884", width: 1 } };
    const x = { label: "time", value: (_, us) => (us === null ? "–" : time(us * 1e6)) };
    const us = (list) => list.map((ps) => ps / 1e6);
    const plot = (height, axes, series, tables) => new uPlot({ ...this.size(height), series: [x, ...series], scales: { x: { time: false, range } }, cursor: { sync: { key: "curves" } }, axes: [{ ...axis, label: "time, µs" }, ...axes.map((own) => ({ ...axis, ...own }))] }, uPlot.join(tables), this.place);
    const shown = (of) => (_, value) => (value === null || value === undefined ? "–" : of(value));

    const queues = runs.map(({ looks, queue }) => (queue
      ? [us(queue.time_ps), queue.queue_bytes.map((b) => b / 1e3), queue.queue_bytes.map((b, n) => (queue.dropped[n] > 0 ? b / 1e3 : null))]
      : [us(looks.column(0)), looks.column(1).map((b) => b / 1e3), looks.column(1).map(() => null)]));
    const ofQueue = runs.flatMap(({ i, name }) => [
      { label: `${name}queue`, stroke: COLORS[i], width: 1.2, spanGaps: true, value: shown((kb) => bytes(kb * 1e3)) },
      { label: "dropped", stroke: "#c62828", paths: () => null, points: { show: true, size: 4, fill: "#c62828", width: 0 }, value: () => "" },
    ]);
    const sent = runs.map(({ looks }) => [us(looks.column(0)), looks.rate.map((bps) => bps / 1e9), looks.column(4), looks.column(3)]);
    const ofRate = runs.flatMap(({ i, name, letter }) => [
      { label: `${name}sent`, stroke: COLORS[i], width: 1.2, spanGaps: true, value: shown((gbps) => rate(gbps * 1e9)) },
      { label: `${letter}marked`, scale: "packets", stroke: COLORS[i], dash: [6, 4], width: 1, spanGaps: true, value: shown(String) },
      { label: `${letter}dropped`, scale: "packets", stroke: "#c62828", dash: i ? [2, 3] : [], width: 1, spanGaps: true, value: shown(String) },
    ]);
    // Both charts have the same part of the time: all of it, or what was dragged in one of them.
    const ends = [...queues, ...sent].flatMap(([times]) => [times[0], times.at(-1)]);
    const whole = [Math.min(...ends), Math.max(...ends)];
    const range = ({ data: [times] }, from, to) => (from === times[0] && to === times.at(-1) ? whole : [from, to]);
    const right = { scale: "packets", side: 1, size: 60, label: "packets so far", grid: { show: false } };
    this.clear();
    this.plots = [
      plot(300, [{ label: "queue, KB", size: 60 }], ofQueue, queues),
      plot(200, [{ label: "sent, Gb/s", size: 60 }, right], ofRate, sent),
    ];
    this.place.plots = this.plots; // for tests
  }
}
