// What may be said of a trace: the options of `fanin analyze` that a page has, as settings and as a command.

export const FIELDS = [
  { name: "rate", label: "Speed", placeholder: "10Gbps", title: "Speed of the port; a result says it itself." },
  { name: "buffer", label: "Buffer", placeholder: "512KB", title: "Room of the port: estimates a queue that is not recorded." },
  { name: "rtt", label: "Idle round trip", placeholder: "20us", title: "Separates rounds; a result knows it." },
  { name: "columns", label: "Columns", placeholder: "time=ts:ns,queue=qlen:KB", title: "Meaning of a table's columns, where their names do not say it." },
  { name: "above", label: "Burst above", placeholder: "50KB", title: "A burst begins above this queue; what drains in 100 us if not given." },
  { name: "to", label: "Only frames to", placeholder: "10.0.0.0/24", title: "Of captures, only frames to this address, network or address:port." },
  { name: "direction", label: "Direction", choices: ["", "in", "out"], title: "Of captures, only frames that came in or went out." },
  { name: "interface", label: "Interface", placeholder: "eth0", title: "Of captures, only frames at this interface." },
  { name: "before_interface", label: "Interface before", placeholder: "eth0", title: "Before the port, in a capture of several interfaces." },
  { name: "behind_interface", label: "Interface behind", placeholder: "eth1", title: "Behind the port, in a capture of several interfaces." },
  { name: "start", label: "From", placeholder: "1.5ms", title: "Ignore bursts before this time, or date." },
  { name: "stop", label: "To", placeholder: "3ms", title: "Ignore records after this time, or date." },
];

export const FLAGS = [
  { name: "transfers", label: "list transfers over TCP", title: "Requests and responses in captures, the slowest first." },
  { name: "no_fcs", label: "the queue is one of Linux", title: "It counts frames without check sequence and padding." },
  { name: "idle_before", label: "the port was idle before", title: "No flow was there before the trace begins." },
  { name: "sort", label: "sort first", title: "For files with more disorder than receivers bring about." },
];

const LISTS = ["to", "interface"];

/** Settings of an analysis, as the module takes them. */
export function settingsOf(paths, behind, { no_fcs, ...given }) {
  const settings = { paths };
  if (behind.length) settings.behind = behind;
  for (const [name, value] of Object.entries(given)) {
    if (value) settings[name] = LISTS.includes(name) ? value.split(/[\s,]+/) : value;
  }
  if (no_fcs) settings.fcs = false;
  return settings;
}

const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** The command that does the same. */
export function commandOf(paths, behind, given) {
  const words = ["fanin", "analyze", ...paths];
  for (const [name, value] of Object.entries(given)) {
    if (!value) continue;
    const flag = `--${name.replaceAll("_", "-")}`;
    if (value === true) words.push(flag);
    else for (const one of LISTS.includes(name) ? value.split(/[\s,]+/) : [value]) words.push(flag, one);
  }
  for (const path of behind) words.push("--behind", path);
  return words.map(quoted).join(" ");
}
