// Numbers, times and names of flows as people read them, to the character as fanin/text and fanin/analysis/clock.py write them.

export const NOTHING = "–";
export const TIMES = [["ps", 1], ["ns", 1e3], ["µs", 1e6], ["ms", 1e9], ["s", 1e12]];
export const SIZES = [["B", 1], ["KB", 1e3], ["MB", 1e6], ["GB", 1e9], ["TB", 1e12]];
export const RATES = [["b/s", 1], ["kb/s", 1e3], ["Mb/s", 1e6], ["Gb/s", 1e9], ["Tb/s", 1e12]];
const COUNTS = [["", 1], ["K", 1e3], ["M", 1e6], ["G", 1e9], ["T", 1e12]];

// The first digits of a number and the power of ten of its first one; halves to even, as Python rounds and JavaScript does not.
function rounded(value, keep) {
  const [mantissa, power] = Math.abs(value).toExponential(80).split("e");
  const digits = mantissa.replace(".", "");
  const exponent = Number(power);
  if (keep < 0) return ["", exponent];
  const [kept, rest] = [digits.slice(0, keep), digits.slice(keep)];
  const half = "5".padEnd(rest.length, "0");
  const up = rest > half || (rest === half && Number(kept.at(-1) ?? 0) % 2 === 1);
  if (!up) return [kept, exponent];
  const next = String(BigInt(kept || "0") + 1n).padStart(keep, "0");
  return next.length > keep ? [next.slice(0, Math.max(keep, 1)), exponent + 1] : [next, exponent];
}

/** With so many digits behind the point. */
export function fixed(value, places) {
  const first = value === 0 ? 0 : Number(Math.abs(value).toExponential(80).split("e")[1]);
  const [digits, exponent] = rounded(value, first + 1 + places);
  const all = digits === "" ? "0".repeat(places + 1) : exponent < 0 ? digits.padStart(places + 1, "0") : digits.padEnd(exponent + 1 + places, "0");
  const text = places ? `${all.slice(0, -places)}.${all.slice(-places)}` : all;
  return value < 0 ? `-${text}` : text;
}

/** With so many digits, without zeros at the end. */
export function general(value, precision) {
  if (value === 0) return "0";
  const [digits, exponent] = rounded(value, precision);
  const sign = value < 0 ? "-" : "";
  const bare = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
  if (exponent < -4 || exponent >= precision) {
    const mantissa = bare(`${digits[0]}.${digits.slice(1)}`);
    return `${sign}${mantissa}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
  }
  if (exponent < 0) return `${sign}${bare(`0.${"0".repeat(-exponent - 1)}${digits}`)}`;
  return `${sign}${bare(`${digits.slice(0, exponent + 1)}.${digits.slice(exponent + 1)}`)}`;
}

export const percent = (share, places) => `${fixed(100 * share, places)}%`;

/** The unit in which the largest value is at least 1. */
export const unitOf = (units, largest) => units.reduce((chosen, unit) => (largest !== null && Math.abs(largest) >= unit[1] ? unit : chosen), units[0]);

function scaled(value, units) {
  if (value === null || value === undefined) return NOTHING;
  const [name, scale] = unitOf(units, value);
  const in_unit = value / scale;
  let digits = scale === 1 && Number.isInteger(value) ? fixed(in_unit, 0) : general(in_unit, 4);
  if (digits.includes("e")) digits = fixed(in_unit, 0);
  return `${digits} ${name}`.trimEnd();
}

export const duration = (ps) => scaled(ps, TIMES);
export const size = (bytes) => scaled(bytes, SIZES);
export const rate = (bps) => scaled(bps, RATES);
export const grouped = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, ",");

export function count(value) {
  if (value === null || value === undefined) return NOTHING;
  return Math.abs(value) < 1e6 && Number.isInteger(value) ? grouped(value) : scaled(value, COUNTS);
}

export const many = (value, one) => `${count(value)} ${value === 1 ? one : `${one}s`}`;

/** A time of the trace to the nanosecond. */
export function moment(ps) {
  const [unit, scale] = unitOf(TIMES, ps);
  return `${general(ps / scale, 10)} ${unit}`;
}

export const capital = (text) => `${text[0].toUpperCase()}${text.slice(1)}`;

const WORTH = 12; // characters that names must have in common for it to be worth saying

/** What names have in common, with * for the rest, and the rest of each; all of each where that is little. */
export function apart(names) {
  if (new Set(names).size < 2) return ["", [...names]];
  const parts = names.map((name) => name.match(/[^.: ]+|[.: ]/g) ?? []);
  const alike = (lists) => {
    let same = 0;
    while (lists.every((own) => same < own.length) && new Set(lists.map((own) => own[same])).size === 1) same += 1;
    return same;
  };
  const first = alike(parts);
  const last = alike(parts.map((own) => own.slice(first).reverse()));
  const before = parts[0].slice(0, first).join("");
  const after = parts[0].slice(parts[0].length - last).join("");
  if (before.length + after.length < WORTH) return ["", [...names]];
  return [`${before}*${after}`, parts.map((own) => own.slice(first, own.length - last).join("") || "(none)")];
}

/** A table whose first column names flows, with what these have in common in its head. */
export function tableApart([head, rows]) {
  const [shared, names] = apart(rows.map((row) => row[0]));
  if (!shared) return [head, rows];
  return [[`${head[0]} ${shared}`, ...head.slice(1)], rows.map((row, i) => [names[i], ...row.slice(1)])];
}

/** The clock of a trace in UTC, or none where its times are no dates: of the years 2001 to 2100. */
export function clockOf(report) {
  const origin = report.origin_s;
  if (!(origin >= 978307200 && origin < 4102444800)) return null;
  const text = (ps) => {
    const seconds = Math.floor(ps / 1e12);
    const date = new Date((origin + seconds) * 1000).toISOString().slice(0, 19);
    return `${date}.${String(Math.floor((ps - seconds * 1e12) / 1000)).padStart(9, "0")}Z`;
  };
  return { origin_s: origin, offset_s: 0, name: "UTC", text };
}
