// What the page of an analysis holds of a trace's records, as fanin/analysis/explorer.py makes it: all ports over all of the time, and each
// burst, by packet or by column of time. The records themselves are read and added up in the WebAssembly module.
import { apart, clockOf, grouped, many, NOTHING, percent, rate } from "./show.js";
import { burstRows, details, higher, largest, lawLine } from "./tables.js";

export const MAX_PORTS = 6;
export const CULPRITS = 10;
const PORTS = 128;
const COLUMNS = 480;
const LISTED = 1000;
const PACKETS = 16_000;
const PAGE_PACKETS = 30_000;
const OUTLINE = 400;
const OUTLINES = 60_000;
const WHOLE = 1500;
const READ = 50_000;
const MARGIN = 0.15;
const BANDS = 5;
const BAND_POINTS = 200;
const FULL_FRAME = 1518;
const ABOVE = 1.1;
const KEYS = {
  Burst: "index",
  Start: "start_ps",
  Time: "start_ps",
  Duration: "duration_ps",
  Peak: "peak_bytes",
  Arrived: "arrived_bytes",
  "Start to peak": "rise_bps",
  "Peak to end": "fall_bps",
  Drops: "dropped_packets",
  Marks: "marked_packets",
  Notices: "notifications",
  Flows: "flows",
};

const TYPES = [["u1", 2 ** 8, Uint8Array], ["u2", 2 ** 16, Uint16Array], ["u4", 2 ** 32, Uint32Array], ["f8", Infinity, Float64Array]];

/** Numbers as bytes in base 64, in the narrowest type that holds them all. */
function packed(values) {
  const whole = values.every((value) => value >= 0 && Number.isInteger(value));
  const top = values.reduce((a, b) => Math.max(a, b), 0);
  const [dtype, , Made] = whole ? TYPES.find(([, end]) => top < end) : TYPES[3];
  const bytes = new Uint8Array(Made.from(values).buffer);
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return { dtype, bdata: btoa(text) };
}

const roundEven = (value) => {
  const floor = Math.floor(value);
  const rest = value - floor;
  return rest === 0.5 ? floor + (floor % 2 === 0 ? 0 : 1) : Math.round(value);
};

/** The stretches of time that are read for a page. */
function stretches(ports, chosen) {
  const seen = new Set();
  const found = [];
  let left = PAGE_PACKETS;
  const each = Math.max(16, Math.min(OUTLINE, Math.floor(OUTLINES / Math.max(1, chosen.length))));
  for (const [place, burst] of chosen) {
    const margin = Math.trunc(MARGIN * burst.duration_ps) + 1;
    const low = Math.max(ports[place].first_ps ?? 0, burst.start_ps - margin);
    const high = Math.min(burst.end_ps + margin, Math.max(ports[place].last_ps ?? 0, burst.end_ps));
    const top = !seen.has(place) && seen.size < MAX_PORTS;
    seen.add(place);
    const keep = burst.records <= (top ? READ : left);
    if (keep && !top) left -= burst.records;
    found.push({ place, burst, low, high, columns: top ? OUTLINE : each, keep });
  }
  ports.slice(0, MAX_PORTS).forEach((port, place) => {
    if (!port.records || port.first_ps === null) return;
    const keep = !port.bursts.length && port.records <= PACKETS;
    found.push({ place, burst: null, low: port.first_ps, high: port.last_ps, columns: WHOLE, keep });
  });
  return found;
}

const any = (values) => values.some((value) => value >= 0);
const counted = (values) => packed(values.map((value) => value + 1));

function outline(seen) {
  const out = { n: packed(seen.n), bytes: packed(seen.bytes), drops: packed(seen.drops), marks: packed(seen.marks) };
  for (const name of ["queue", "wait"]) if (any(seen[name])) out[name] = counted(seen[name]);
  return out;
}

function packetsOf(packets, listed, names) {
  const number = new Map();
  for (const flow of packets.flow) {
    if (flow < 0 || number.has(flow)) continue;
    const name = listed[flow];
    if (!names.has(name)) names.set(name, names.size);
    number.set(flow, names.get(name) + 1);
  }
  const out = { time: packed(packets.time), size: packed(packets.size), fate: packed(packets.fate) };
  if (any(packets.flow)) out.flow = packed(packets.flow.map((flow) => (flow < 0 ? 0 : number.get(flow))));
  for (const name of ["queue", "wait"]) if (any(packets[name])) out[name] = counted(packets[name]);
  return out;
}

/** What stood in a FIFO queue when packets arrived, by flow; that of all others last. */
function content(packets, flows) {
  const places = new Map(flows.map((flow, i) => [flow, i]));
  const rest = flows.length;
  const standing = [];
  let gone = 0; // of `standing`, from its begin
  let held = Array(rest + 1).fill(0);
  let total = 0;
  const rows = [];
  packets.queue.forEach((found, i) => {
    if (found < 0) return;
    while (total > found) {
      const first = standing[gone];
      const leaves = Math.min(first[1], total - found);
      held[first[0]] -= leaves;
      total -= leaves;
      if (leaves < first[1]) standing[gone] = [first[0], first[1] - leaves];
      else gone += 1;
    }
    if (total < found) {
      const unknown = [rest, found - total];
      if (gone > 0) standing[(gone -= 1)] = unknown;
      else standing.unshift(unknown);
      held[rest] += found - total;
      total = found;
    }
    rows.push({ time: packets.time[i], level: found, held: [...held] });
    const fate = packets.fate[i];
    let bytes = packets.size[i];
    if (fate & 4 && standing.length > gone) {
      const [other, its] = standing.pop();
      held[other] -= its;
      total -= its;
      bytes = its;
    } else if (fate & 2) return;
    const place = places.get(packets.flow[i]) ?? rest;
    standing.push([place, bytes]);
    held[place] += bytes;
    total += bytes;
  });
  return rows;
}

function reduced(rows, buckets) {
  const start = rows[0].time;
  const span = rows.at(-1).time - start + 1;
  const kept = new Map();
  rows.forEach((row, i) => {
    const bucket = Math.floor(((row.time - start) * buckets) / span);
    const ends = kept.get(bucket) ?? [i, i];
    if (row.level < rows[ends[0]].level) ends[0] = i;
    if (row.level > rows[ends[1]].level) ends[1] = i;
    kept.set(bucket, ends);
  });
  return [...new Set([...kept.values()].flat())].sort((a, b) => a - b).map((i) => rows[i]);
}

function bands(burst, packets, listed) {
  const entries = burst.direct.slice(0, BANDS);
  if (!entries.length) return null;
  const numbers = new Map(listed.map((name, i) => [name, i]));
  let rows = content(packets, entries.map((entry) => numbers.get(entry.name) ?? null));
  if (rows.length > BAND_POINTS) rows = reduced(rows, BAND_POINTS / 2);
  const [shared, names] = apart(entries.map((entry) => entry.name));
  return [{
    names: [...names.map((name, i) => `${name} (${percent(entries[i].share, 1)})`), "all other flows"],
    time: packed(rows.map((row) => row.time)),
    levels: [...entries, null].map((_, flow) => packed(rows.map((row) => row.held[flow]))),
  }, shared];
}

const frameRate = (port) => (port.rate_bps === null ? null : (port.rate_bps * FULL_FRAME) / (FULL_FRAME + port.overhead_bytes));

/** The slope to compare with, as a line: its name, from and to [ps], from and to [bytes]. */
function reference(port, burst) {
  const { law } = burst;
  const line = (name, bps, phase) => {
    const room = Math.max(0, ABOVE * (burst.peak_bytes ?? 0) - phase.start_bytes);
    const span = Math.min(phase.end_ps - phase.start_ps, (8e12 * room) / bps);
    return [name, phase.start_ps, phase.start_ps + span, phase.start_bytes, phase.start_bytes + (bps * span) / 8e12];
  };
  if (law !== null) {
    const stretch = { ...burst.phases[law.phase], end_ps: burst.phases[law.last_phase].end_ps };
    return line(`${law.law === 3 ? "bound 2aR/(a+R)" : "R"}: ${rate(law.bound_bps)}`, law.bound_bps, stretch);
  }
  const rising = burst.phases.filter((phase) => phase.slope_bps > 0);
  const frames = frameRate(port);
  if (frames === null || !rising.length) return null;
  const length = (phase) => phase.end_ps - phase.start_ps;
  return line(`R: ${rate(frames)}`, frames, rising.reduce((a, b) => (length(b) > length(a) ? b : a)));
}

function view(port, { place, burst, low, high, columns }, seen, listed, names) {
  const { packets } = seen;
  const kept = packets !== null && packets.time.length > 0;
  const one = kept && packets.time.length <= PACKETS;
  const records = seen.n.reduce((a, b) => a + b, 0);
  const what = seen.bytes.some((bytes) => bytes > 0) ? "packet" : "record";
  let how = one ? "each as it found the queue" : `the largest queue of each of ${grouped(columns)} columns of time`;
  if (port.peak_bytes === null) how = one ? "one by one" : `added up by ${grouped(columns)} columns of time`;
  if (what === "record") how = how.replace("each as it found the queue", "one by one");
  let note = `${many(records, what)}, ${how}.`;
  const made = { port: place, low, high, kind: one ? "packets" : "columns", data: one ? packetsOf(packets, listed, names) : outline(seen) };
  if (burst === null) return { ...made, index: null, title: `All of ${port.port}`, note, words: "", tables: [], phases: [] };
  const found = kept && port.peak_bytes !== null ? bands(burst, packets, listed) : null;
  if (found) {
    const [drawn, shared] = found;
    made.bands = drawn;
    note += ` Coloured: the flows${shared ? ` (${shared})` : ""} with the most bytes at the peak, and their shares of it.`;
  }
  return {
    ...made,
    index: burst.index,
    start: burst.start_ps,
    end: burst.end_ps,
    title: `Burst ${burst.index} at ${port.port}`,
    note,
    words: lawLine(burst),
    tables: details(burst, CULPRITS).map(([caption, [head, rows]]) => ({ caption, head, rows })),
    phases: burst.phases.map((p) => [p.start_ps, p.end_ps, roundEven(p.start_bytes), roundEven(p.end_bytes), rate(p.slope_bps)]),
    reference: reference(port, burst),
  };
}

function list(ports, chosen, clock) {
  const ofPort = new Map();
  for (const [place, burst] of chosen) ofPort.set(place, [...(ofPort.get(place) ?? []), burst]);
  const lines = new Map();
  let head = [];
  for (const [place, bursts] of ofPort) {
    const [names, rows] = burstRows(ports[place], bursts, clock);
    if (names.length > head.length) head = names;
    largest(bursts, bursts.length).forEach((burst, i) => lines.set(`${place} ${burst.index}`, new Map(names.map((name, j) => [name, rows[i][j]]))));
  }
  const shown = head.length ? [head[0], ...(ports.length > 1 ? ["Port"] : []), ...head.slice(1)] : [];
  const rows = chosen.map(([place, burst]) => {
    const line = lines.get(`${place} ${burst.index}`).set("Port", ports[place].port);
    return shown.map((name) => line.get(name) ?? NOTHING);
  });
  const keys = shown.map((name) => {
    const key = KEYS[name.split(" (")[0]];
    return key === undefined ? null : chosen.map(([, burst]) => burst[key]);
  });
  return [shown, rows, keys];
}

/** The bursts of a page; `read` gives the records of stretches of time. */
export function explore(report, read) {
  const { ports } = report;
  const clock = clockOf(report);
  const chosen = ports.flatMap((port, place) => port.bursts.map((burst) => [place, burst])).sort((a, b) => higher(a[1], b[1])).slice(0, LISTED);
  const known = ports.filter((port) => port.first_ps !== null);
  const low = known.length ? known.reduce((least, port) => Math.min(least, port.first_ps), Infinity) : 0;
  const high = known.length ? known.reduce((most, port) => Math.max(most, port.last_ps), 0) : 1;
  const busy = ports.map((_, place) => place).filter((place) => ports[place].peak_bytes !== 0 || ports.length === 1).slice(0, PORTS);
  const views = stretches(ports, chosen);
  const over = busy.map((place) => ({ place, low, high, columns: COLUMNS, keep: false }));
  const asked = [...over, ...views].map((one) => ({ port: ports[one.place].port, low: one.low, high: one.high, columns: one.columns, keep: one.keep }));
  const { stretches: seen, names: listed } = asked.length ? read(asked) : { stretches: [], names: [] };
  const names = new Map();
  const drawn = views.map((stretch, i) => view(ports[stretch.place], stretch, seen[over.length + i], listed, names));
  const [head, rows, keys] = list(ports, chosen, clock);
  const overview = new Map(busy.map((place, i) => [place, outline(seen[i])]));
  return {
    document: {
      low,
      high,
      clock: clock && { origin_s: clock.origin_s, offset_s: clock.offset_s, name: clock.name },
      ports: ports.map((port, place) => ({
        name: port.port,
        frames_bps: frameRate(port),
        queue: port.peak_bytes !== null,
        ...(overview.has(place) ? { overview: overview.get(place) } : {}),
      })),
      flows: [...names.keys()],
      views: drawn,
      keys,
    },
    head,
    rows,
    first: drawn.length ? drawn[0] : null,
    lost: chosen.map(([, burst]) => Boolean(burst.dropped_packets)),
    queues: ports.some((port) => port.peak_bytes !== null),
    left_out: ports.reduce((sum, port) => sum + port.bursts_found, 0) - chosen.length,
    ports_left_out: ports.length - busy.length,
  };
}
