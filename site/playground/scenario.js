// From a few choices to the text of a scenario.

const OVER_TCP = ["dctcp", "newreno", "cubic", "linux: cubic"];
const DCQCN = "RoCEv2: dcqcn";

/** What can be chosen: name, label, default, and choices or what a value looks like. */
export const KNOBS = [
  { name: "senders", label: "Senders", value: "20", pattern: "[1-9][0-9]{0,2}", title: "1 to 999" },
  { name: "size", label: "Each sends", value: "256KB", title: "a size: 64KB, 1MB" },
  { name: "jitter", label: "Starts spread over", value: "0us", title: "a time: 0us, 500us" },
  { name: "rate", label: "Link rate", value: "10Gbps", choices: ["1Gbps", "10Gbps", "25Gbps", "100Gbps"] },
  { name: "delay", label: "Link delay", value: "10us", title: "a time: 1us, 10us" },
  { name: "buffer", label: "Buffer of the port", value: "400KB", title: "an amount: 300KB, 200 packets", needs: { control: OVER_TCP } },
  { name: "marking", label: "Marking", value: "threshold", choices: ["none", "threshold", "s_ecn", "red", "codel", "front_drop"] },
  { name: "k", label: "Threshold", value: "65 packets", title: "an amount: 65 packets, 30KB", needs: { marking: ["threshold", "front_drop"] } },
  { name: "slope_k", label: "Threshold beside", value: "none", title: "an amount, or none: the slope alone decides", needs: { marking: ["s_ecn"] } },
  { name: "red_min", label: "Marks from", value: "20 packets", title: "average queue: an amount", needs: { marking: ["red"] } },
  { name: "red_max", label: "Full chance at", value: "60 packets", title: "average queue: an amount, in the same unit", needs: { marking: ["red"] } },
  { name: "red_chance", label: "Full chance", value: "0.1", pattern: "0?[.][0-9]+|1", title: "above 0, at most 1", needs: { marking: ["red"] } },
  { name: "target", label: "Target", value: "50us", title: "waiting time that is fine: 50us", needs: { marking: ["codel"] } },
  { name: "interval", label: "Interval", value: "500us", title: "time above the target before the first mark: 500us", needs: { marking: ["codel"] } },
  { name: "control", label: "Congestion control", value: "dctcp", choices: [...OVER_TCP, DCQCN] },
  { name: "increase", label: "Additive increase", value: "40Mbps", title: "DCQCN's R_AI, a rate: 40Mbps", needs: { control: [DCQCN] } },
  { name: "cnp", label: "Notifications every", value: "50us", title: "DCQCN's smallest time between CNPs of a flow: 50us", needs: { control: [DCQCN] } },
  { name: "help", label: "Drops", value: "as they are", choices: ["as they are", "notified (PDN)", "trimmed"], needs: { control: OVER_TCP } },
];

/** The values of all knobs as they are at first. */
export const defaults = () => Object.fromEntries(KNOBS.map(({ name, value }) => [name, value]));

/** True where a knob has an effect beside the others. */
export const applies = (knob, values) => Object.entries(knob.needs || {}).every(([name, among]) => among.includes(values[name]));

const quoted = (text) => JSON.stringify(text);

function marking({ marking: kind, control, ...values }) {
  const [lossless, { k, slope_k }] = [control === DCQCN, values];
  switch (kind) {
    case "threshold": return `{ kind = "threshold", k = ${quoted(k)} }`;
    case "front_drop": return `{ kind = "front_drop", limit = ${quoted(k)} }`;
    case "s_ecn": return slope_k === "none" ? quoted(kind) : `{ kind = "s_ecn", k = ${quoted(slope_k)} }`;
    case "red": return `{ kind = "red", min = ${quoted(values.red_min)}, max = ${quoted(values.red_max)}, max_p = ${values.red_chance || '""'}, weight = 0.02${lossless ? ", hard_drop = false, drop_others = false" : control === "dctcp" ? ", hard_drop = false" : ""} }`;
    case "codel": return `{ kind = "codel", target = ${quoted(values.target)}, interval = ${quoted(values.interval)}, ecn = true }`;
    default: return quoted(kind);
  }
}

function transport({ control, help, marking: kind, increase, cnp }) {
  if (control === DCQCN) {
    return `kind = "roce"
congestion_control = { kind = "dcqcn", additive_increase = ${quoted(increase)}, cnp_interval = ${quoted(cnp)} }
recovery = { kind = "go_back_n", ack_timeout = 10 }`;
  }
  const [name, profile] = control === "linux: cubic" ? ["cubic", true] : [control, false];
  const lines = [`kind = "tcp"`, `congestion_control = ${quoted(name)}`];
  if (profile) lines.splice(1, 0, `profile = "linux"`);
  else lines.push("handshake = false", "initial_window = 10", `rto_min = "10ms"`, `rto_initial = "10ms"`, `delayed_ack_timeout = "1ms"`);
  if (name !== "dctcp" && kind !== "none" && kind !== "front_drop") lines.push("ecn = true");
  if (help === "notified (PDN)") lines.push("drop_notification = true");
  if (help === "trimmed") lines.push("trim_nack = true");
  return lines.join("\n");
}

/** The scenario of these values: fan-in through one switch, whose port to the receiver is watched. */
export function scenario(values) {
  const hosts = Number(values.senders) + 1;
  const lossless = values.control === DCQCN; // then PFC counts the memory
  const helped = { "notified (PDN)": "mechanisms.pdn = {}\n", trimmed: "mechanisms.trimming = {}\n" }[values.help] || "";
  const mechanism = lossless ? "mechanisms.pfc = {}\n" : helped;
  return `name = "fan-in"

[topology]
kind = "single_switch"
hosts = ${Number.isFinite(hosts) ? hosts : quoted(values.senders)}
link = { rate = ${quoted(values.rate)}, delay = ${quoted(values.delay)} }

[switch]
buffer = ${lossless ? `{ kind = "unlimited" }` : `{ kind = "static", per_port = ${quoted(values.buffer)} }`}
marking = ${marking(values)}
${mechanism}
[transport]
${transport(values)}

[[traffic]]
kind = "incast"
receiver = "h${hosts - 1}"
size = ${quoted(values.size)}
jitter = ${quoted(values.jitter)}

[telemetry]
sample = "off"
queues = ["switch0->h${hosts - 1}"]
`;
}
