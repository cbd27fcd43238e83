// The tables and the sentence of an analysis, to the character as fanin/analysis/tables.py and answer.py write them.
import { capital, count, duration, general, many, moment, NOTHING, percent, rate, RATES, size, tableApart, unitOf } from "./show.js";

const MOSTLY = 0.5;
const FULL_FRAME = 1518;

function slope(entry) {
  const values = ["slope_bps", "low_bps", "high_bps"].map((key) => entry[key]);
  const [unit, scale] = unitOf(RATES, Math.max(...values.map(Math.abs)));
  const [value, low, high] = values.map((number) => general(Math.abs(number) > 1e-6 * scale ? number / scale : 0, 4));
  return `${value} ${unit} (${low} – ${high})`;
}

function speed(port) {
  const text = rate(port.rate_bps);
  if (port.rate_bps === null) return text;
  return { lower_bound: `≥ ${text}`, estimated: `≈ ${text}` }[port.rate_from] ?? text;
}

const estimated = (port) => port.estimate !== null && Boolean(port.estimate.used);
const guessed = (port, text) => (estimated(port) && text !== NOTHING ? `≈ ${text}` : text);

export function waiting(report, limit) {
  const found = report.pair?.waiting;
  if (!found) return [];
  const spans = ["mean_ps", "p50_ps", "p95_ps", "p99_ps", "max_ps"].map((key) => duration(found[key]));
  const all = [["Packets", "Mean", "Half", "95 %", "99 %", "Longest", "Of one at"], [[count(found.packets), ...spans, moment(found.max_at_ps)]]];
  const rows = found.flows.slice(0, limit).map((row) => [row.name, count(row.packets), count(row.dropped), duration(row.mean_ps), duration(row.max_ps)]);
  const flows = [["Flow", "Packets", "Drops", "Mean wait", "Longest wait"], rows];
  return [["Waiting times", all], ["Flows that waited longest", flows]].filter(([, content]) => content[1].length);
}

export function portRows(report) {
  const head = ["Port", "Records", "Time", "Speed", "Largest queue", "Bursts", "In bursts", "Drops", "Marks"];
  const rows = report.ports.map((port) => {
    const span = port.first_ps !== null && port.last_ps !== null ? port.last_ps - port.first_ps : null;
    return [
      port.port,
      count(port.records),
      duration(span),
      speed(port),
      guessed(port, size(port.peak_bytes)),
      count(port.bursts_found),
      span ? percent(port.burst_ps / span, 2) : NOTHING,
      guessed(port, count(port.dropped)),
      count(port.marked),
    ];
  });
  return [head, rows];
}

/** By what bursts are compared: peaks, or bytes where no queue is known; the higher first. */
export const higher = (a, b) => (b.peak_bytes ?? 0) - (a.peak_bytes ?? 0) || (b.arrived_bytes ?? 0) - (a.arrived_bytes ?? 0);
export const largest = (bursts, limit) => [...bursts].sort(higher).slice(0, limit);

export function burstRows(port, bursts, clock) {
  const dated = clock ? [`Time (${clock.name})`] : [];
  const head = ["Burst", "Start", ...dated, "Duration", "Peak", "Arrived", "Start to peak", "Peak to end", "Drops", "Marks", "Flows", "Law"];
  const shown = largest(bursts, bursts.length);
  const notified = shown.some((burst) => burst.notifications !== null);
  if (notified) head.splice(head.length - 2, 0, "Notices");
  const rows = shown.map((burst) => {
    const { law } = burst;
    const verdict = !law ? "" : law.holds === null ? "undecided" : law.holds ? "holds" : "does not hold";
    return [
      String(burst.index),
      moment(burst.start_ps),
      ...(clock ? [clock.text(burst.start_ps)] : []),
      (burst.open || burst.cut ? "≥ " : "") + duration(burst.duration_ps),
      guessed(port, size(burst.peak_bytes)),
      size(burst.arrived_bytes),
      rate(burst.rise_bps),
      rate(burst.fall_bps),
      guessed(port, count(burst.dropped_packets)),
      count(burst.marked_packets),
      ...(notified ? [count(burst.notifications)] : []),
      count(burst.flows),
      law ? `${law.law} ${verdict}` : NOTHING,
    ];
  });
  return [head, rows];
}

function slopeOf(phase) {
  const teeth = phase.sawtooth;
  return teeth === null ? slope(phase) : `sawtooth, ${teeth.teeth} times between ${size(teeth.low_bytes)} and ${size(teeth.high_bytes)}`;
}

export function phaseRows(burst) {
  const rows = burst.phases.map((phase, i) => [
    String(i + 1),
    duration(phase.start_ps - burst.start_ps),
    duration(phase.end_ps - phase.start_ps),
    slopeOf(phase),
    size(phase.start_bytes),
    size(phase.end_bytes),
  ]);
  return [["Phase", "After", "Length", "Slope (interval)", "From", "To"], rows];
}

export function culpritRows(burst, limit) {
  const told = (entry) => [entry.name, size(entry.bytes), percent(entry.share, 1)];
  if (!burst.direct.length) return [["Flow", "Arrived", "Share"], burst.indirect.slice(0, limit).map(told)];
  const since = new Map(burst.indirect.map((entry) => [entry.flow, entry.bytes]));
  const shown = burst.direct.slice(0, limit);
  const head = ["Flow", "In the queue at the peak", "Share"];
  if (!shown.every((entry) => since.has(entry.flow))) return [head, shown.map(told)];
  return [[...head, "Since it was empty"], shown.map((entry) => [...told(entry), size(since.get(entry.flow))])];
}

function undefinedOnes(what, but, entries) {
  const odd = entries.filter((entry) => entry.name === null).sort((a, b) => b.count - a.count);
  const lines = odd.slice(0, 3).map((entry) => `${count(entry.count)} ${what} ${entry.value}${but ? `, ${but}` : ""}`);
  if (odd.length > 3) lines.push(`${count(odd.slice(3).reduce((sum, entry) => sum + entry.count, 0))} ${what} of ${odd.length - 3} other values`);
  return lines;
}

export function noticeLines(report) {
  const found = report.notifications;
  if (found === null) return [];
  const when = found.first_ps === null || found.last_ps === null ? "" : `, from ${moment(found.first_ps)} to ${moment(found.last_ps)}`;
  const lines = [`${count(found.frames)} drop notifications (${count(found.alone)} in frames of their own, ${count(found.attached)} behind other frames)${when}.`];
  if (found.read) {
    const asked = found.operations.filter((entry) => entry.name).map((entry) => `${count(entry.count)} ${entry.name}`);
    const requests = asked.length ? `, and request: ${asked.join(", ")}.` : ".";
    const again = ` ${count(found.repeated)} repeat an earlier one: copies that were dropped again, or frames captured twice.`;
    lines.push(`They report ${size(found.told_bytes)} lost by ${many(found.flows, "flow")}${requests}${found.repeated ? again : ""}`);
  }
  const unread = found.cut ? [`${count(found.cut)} cut off by the capture`] : [];
  if (found.short) unread.push(`${count(found.short)} too short`);
  unread.push(...undefinedOnes("of type", "which is not defined", found.types));
  if (unread.length) lines.push(`Not read: ${unread.join("; ")}.`);
  const odd = undefinedOnes("for operation", "", found.operations);
  if (odd.length) lines.push(`Operations that are not defined: ${odd.join(", ")}.`);
  return [...lines, ...found.notes.map((note) => `${capital(note)}.`)];
}

export function noticeRows(report, limit) {
  const found = report.notifications;
  const timed = found !== null && found.first_ps !== null;
  const rows = (found?.top ?? []).slice(0, limit).map((entry) => {
    const known = ["first_ps", "last_ps"].map((key) => (entry[key] === null ? NOTHING : moment(entry[key])));
    return [entry.name, count(entry.count), count(entry.repeated), size(entry.bytes), ...(timed ? known : [])];
  });
  return [["Flow", "Notices", "Repeated", "Bytes", ...(timed ? ["First", "Last"] : [])], rows];
}

export function transferLines(report) {
  const found = report.transfers;
  if (found === null) return [];
  const lines = [];
  if (found.transfers) {
    const { took } = found;
    const times = took === null ? "" : `, in ${duration(took.p50_ps)} (median), ${duration(took.p99_ps)} (99 %), ${duration(took.max_ps)} (longest)`;
    lines.push(`${many(found.transfers, "transfer")} over TCP, ${count(found.complete)} complete${times}.`);
    const causes = [`${count(found.resent)} of ${many(found.segments, "segment")} sent again`];
    if (found.timeouts !== null) causes.push(many(found.timeouts, "timeout"), many(found.probes, "tail loss probe"));
    if (found.syn_resent) causes.push(`${many(found.syn_resent, "SYN")} sent again`);
    lines.push(`${causes.join(", ")}${found.with_timeouts ? `, in ${many(found.with_timeouts, "transfer")}` : ""}.`);
  }
  return [...lines, ...found.notes.map((note) => `${capital(note)}.`)];
}

export function transferRows(report, limit) {
  const rows = (report.transfers?.slowest ?? []).slice(0, limit).map((row) => {
    const start = row.start_ps === null ? NOTHING : moment(row.start_ps);
    return [row.flow, start, `${row.complete ? "" : "> "}${duration(row.took_ps)}`, size(row.bytes), row.words];
  });
  return [["Flow", "Start", "Took", "Bytes", "Why"], rows];
}

export function detectLines(ports, limit) {
  const kinds = new Map();
  for (const port of ports) kinds.set(port.detect.words, [...(kinds.get(port.detect.words) ?? []), port.port]);
  const named = (of) => of.slice(0, 3).join(", ") + (of.length > 3 ? ` and ${of.length - 3} more` : "");
  const lines = [...kinds].map(([words, of]) => (kinds.size === 1 ? `A burst: ${words}.` : `A burst at ${named(of)}: ${words}.`));
  const quiet = !ports.some((port) => port.bursts_found);
  const without = ports.filter((port) => port.nothing && (quiet || port.nothing.option));
  return [...lines, ...without.slice(0, limit).map((port) => `${port.port}: ${port.nothing.words}.`)];
}

export function lawLine(burst) {
  const words = String((burst.law ? burst.law.words : burst.words) ?? "");
  return words ? `${capital(words).replace(/\.+$/, "")}.` : "";
}

export const allNotes = (report) => [...report.notes, ...report.ports.flatMap((port) => port.notes.map((note) => `${port.port}: ${note}`))];

/** Tables of a burst with their captions; what names of flows have in common stands in the head. */
export function details(burst, limit) {
  const made = [];
  if (burst.direct.length || burst.indirect.length) {
    made.push([`${burst.direct.length ? "Flows in the queue at the peak" : "Flows"} of burst ${burst.index}`, tableApart(culpritRows(burst, limit))]);
  }
  if (burst.phases.length) made.push([`Phases of burst ${burst.index}`, phaseRows(burst)]);
  return made;
}

// -- the answer in one sentence ---------------------------------------------------------------------------------------

const STRONG = "\0";
const strong = (text) => `${STRONG}${text}${STRONG}`;
const sizeOf = (port, bytes) => `${estimated(port) ? "≈ " : ""}${size(bytes)}`;

function who(burst) {
  const listed = burst.direct.length ? burst.direct : burst.indirect;
  if (!listed.length) return burst.flows ? strong(many(burst.flows, "flow")) : "Packets of unknown flows";
  const [first] = listed;
  const unknown = burst.direct.length ? burst.direct_unattributed_bytes : burst.indirect_unattributed_bytes;
  const rest = first.bytes ? (unknown * first.share) / first.bytes : 0;
  const of = (burst.direct.length ? "of the queue" : "of the bytes") + (rest >= MOSTLY ? `, ${percent(rest, 1)} of no known flow` : "");
  if (burst.flows === 1 || first.share >= MOSTLY) {
    const others = burst.flows > 1 ? `, with ${many(burst.flows - 1, "other")},` : "";
    return `${strong(first.name)} (${percent(first.share, 1)} ${of})${others}`;
  }
  return `${strong(many(burst.flows, "flow"))}, none with more than ${percent(first.share, 1)} ${of},`;
}

function wait(port, bytes) {
  if (port.rate_bps === null || ["lower_bound", "unknown"].includes(port.rate_from)) return "";
  const wire = (bytes * (FULL_FRAME + port.overhead_bytes)) / FULL_FRAME;
  return `, ${duration((8e12 * wire) / port.rate_bps)} of waiting,`;
}

function when(ps, clock) {
  if (!clock) return `at ${moment(ps)}`;
  const [date, time] = clock.text(ps).slice(0, 26).split("T");
  return `at ${time} ${clock.name} on ${date}`;
}

function drops(port, burst, ports) {
  const lost = burst.dropped_packets;
  if (lost === null) return "whether packets were dropped, the trace does not tell";
  const total = ports.reduce((sum, entry) => sum + (entry.dropped ?? 0), 0);
  const more = total > lost ? `, ${count(total)} in the whole trace` : "";
  if (!lost) return `${strong("no packet of it was dropped")}${more}`;
  const guess = estimated(port) ? "≈ " : "";
  // Samples of a queue: records are no packets.
  if (burst.arrived_bytes === null) return `${strong(`${guess}${many(lost, "packet")} ${lost === 1 ? "was" : "were"} dropped`)}${more}`;
  return `${strong(`${guess}${count(lost)} of its ${many(burst.records, "packet")} were dropped`)}${more}`;
}

function quiet(report, clock) {
  const { ports } = report;
  if (!ports.length) return `${strong("Nothing was read")}.`;
  const known = ports.filter((port) => port.peak_bytes !== null && port.peak_ps !== null);
  const lost = ports.filter((port) => port.dropped !== null).map((port) => port.dropped);
  let text = `${strong("No burst")} at ${many(ports.length, "port")}`;
  if (known.length) {
    const top = known.reduce((a, b) => (b.peak_bytes > a.peak_bytes ? b : a));
    text += `: the largest queue was ${strong(sizeOf(top, top.peak_bytes))} at ${strong(top.port)} ${when(top.peak_ps, clock)}`;
  }
  if (lost.length) {
    const sum = lost.reduce((a, b) => a + b, 0);
    const dropped = strong(`${ports.some(estimated) ? "≈ " : ""}${many(sum, "packet")}`);
    text += sum ? `; ${dropped} ${sum === 1 ? "was" : "were"} dropped` : "; no packet was dropped";
  }
  return `${text}.`;
}

const sure = ({ plausibility }) => `Trust in this: ${strong(plausibility.trust)} (${withoutLast(plausibility.words)}).`;

/** Words without what stands in parentheses at their end. */
export function withoutLast(words) {
  const at = words.lastIndexOf(" (");
  return at < 0 ? words : words.slice(0, at);
}

/** One sentence with what matters most; parts between zeros stand out. */
export function answer(report, clock) {
  const { ports } = report;
  const busy = ports.filter((port) => port.bursts.length).map((port) => [port, largest(port.bursts, 1)[0]]);
  if (!busy.length) return `${quiet(report, clock)} ${sure(report)}`;
  const [port, burst] = busy.sort((a, b) => higher(a[1], b[1]))[0];
  const number = ports.reduce((sum, entry) => sum + entry.bursts_found, 0);
  const which = number > 1 ? `the highest of ${count(number)} bursts at ${many(ports.length, "port")}` : "the only burst";
  let what;
  let at;
  if (burst.peak_bytes === null) {
    const load = burst.busiest_bps === null ? "" : `, up to ${strong(rate(burst.busiest_bps))}`;
    what = `sent ${strong(size(burst.arrived_bytes))} in ${duration(burst.duration_ps)} to ${strong(port.port)}${load}`;
    at = when(burst.start_ps, clock);
  } else {
    what = `filled ${strong(port.port)} to ${strong(sizeOf(port, burst.peak_bytes))}${wait(port, burst.peak_bytes)}`;
    at = when(burst.peak_ps, clock);
  }
  return `${who(burst)} ${what} ${at} (${which}); ${drops(port, burst, ports)}. ${sure(report)}`;
}
