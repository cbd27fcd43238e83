// From a few choices to the text of a scenario.

/** What can be chosen: name, label, default, and choices or what a value looks like. */
export const KNOBS = [
  { name: "senders", label: "Senders", value: "20", pattern: "[1-9][0-9]{0,2}", title: "1 to 999" },
  { name: "size", label: "Each sends", value: "256KB", title: "a size: 64KB, 1MB" },
  { name: "jitter", label: "Starts spread over", value: "0us", title: "a time: 0us, 500us" },
  { name: "rate", label: "Link rate", value: "10Gbps", choices: ["1Gbps", "10Gbps", "25Gbps", "100Gbps"] },
  { name: "delay", label: "Link delay", value: "10us", title: "a time: 1us, 10us" },
  { name: "buffer", label: "Buffer of the port", value: "400KB", title: "an amount: 300KB, 200 packets" },
  { name: "marking", label: "Marking", value: "threshold", choices: ["none", "threshold", "s_ecn", "red", "codel", "front_drop"] },
  { name: "k", label: "Threshold", value: "65 packets", title: "an amount: 65 packets, 30KB", needs: { marking: ["threshold", "front_drop"] } },
  { name: "control", label: "Congestion control", value: "dctcp", choices: ["dctcp", "newreno", "cubic", "linux: cubic"] },
  { name: "help", label: "Drops", value: "as they are", choices: ["as they are", "notified (PDN)", "trimmed"] },
];

/** The values of all knobs as they are at first. */
export const defaults = () => Object.fromEntries(KNOBS.map(({ name, value }) => [name, value]));

/** True where a knob has an effect beside the others. */
export const applies = (knob, values) => Object.entries(knob.needs || {}).every(([name, among]) => among.includes(values[name]));

const quoted = (text) => JSON.stringify(text);

function marking({ marking: kind, k }) {
  switch (kind) {
    case "threshold": return `{ kind = "threshold", k = ${quoted(k)} }`;
    case "front_drop": return `{ kind = "front_drop", limit = ${quoted(k)} }`;
    case "red": return `{ kind = "red", min = "20 packets", max = "60 packets", weight = 0.02 }`;
    case "codel": return `{ kind = "codel", target = "50us", interval = "500us", ecn = true }`;
    default: return quoted(kind);
  }
}

function transport({ control, help, marking: kind }) {
  const [name, profile] = control === "linux: cubic" ? ["cubic", true] : [control, false];
  const lines = [`congestion_control = ${quoted(name)}`];
  if (profile) lines.unshift(`profile = "linux"`);
  else lines.push("handshake = false", "initial_window = 10", `rto_min = "10ms"`, `rto_initial = "10ms"`, `delayed_ack_timeout = "1ms"`);
  if (name !== "dctcp" && kind !== "none" && kind !== "front_drop") lines.push("ecn = true");
  if (help === "notified (PDN)") lines.push("drop_notification = true");
  if (help === "trimmed") lines.push("trim_nack = true");
  return lines.join("\n");
}

/** The scenario of these values: fan-in through one switch, whose port to the receiver is watched. */
export function scenario(values) {
  const hosts = Number(values.senders) + 1;
  const mechanism = { "notified (PDN)": "mechanisms.pdn = {}\n", trimmed: "mechanisms.trimming = {}\n" }[values.help] || "";
  return `name = "fan-in"

[topology]
kind = "single_switch"
hosts = ${Number.isFinite(hosts) ? hosts : quoted(values.senders)}
link = { rate = ${quoted(values.rate)}, delay = ${quoted(values.delay)} }

[switch]
buffer = { kind = "static", per_port = ${quoted(values.buffer)} }
marking = ${marking(values)}
${mechanism}
[transport]
kind = "tcp"
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
