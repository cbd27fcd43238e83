//! Mapping of a table's columns to their meaning and unit.

mod unit;

pub use unit::Unit;

use crate::checks::Level;
use crate::input::number::{from_date, from_text, DATES};
use crate::input::problem::{did_you_mean, listed, shortened, Problem, Problems};
use unit::{example, units, Said, SECONDS};

/// Role of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Arrival of the packet, or time of the sample.
    Time,
    /// Queue that the packet found.
    Queue,
    /// Name of the port; without it all rows are of one port.
    Port,
    /// The flow of the packet.
    Flow,
    /// The size of the packet.
    Frame,
    /// True if the packet was marked with CE.
    Marked,
    /// True if the packet was dropped.
    Dropped,
    /// True if the packet took the place of the last one in the queue, which was trimmed.
    Replaced,
    /// True if the packet was dropped at the head of the queue.
    AtHead,
    /// Payload of the packet; a packet without any, such as an acknowledgment, begins no round.
    Payload,
    /// True if the packet opens a connection.
    Syn,
    /// Bytes that left the port.
    Bytes,
    /// Bytes that joined the queue of the port.
    Arrived,
    /// Packets that left the port.
    Packets,
    /// Packets that the port dropped.
    Drops,
    /// Packets that the port marked.
    Marks,
    /// Most bytes that waited in the interval.
    Watermark,
    /// Length of the interval that ends at the time of the row.
    Interval,
    /// Speed of the port.
    Speed,
}

impl Role {
    /// All roles, in the order of the documentation.
    pub const ALL: [Role; 19] = [
        Role::Time,
        Role::Queue,
        Role::Port,
        Role::Flow,
        Role::Frame,
        Role::Marked,
        Role::Dropped,
        Role::Replaced,
        Role::AtHead,
        Role::Payload,
        Role::Syn,
        Role::Bytes,
        Role::Arrived,
        Role::Packets,
        Role::Drops,
        Role::Marks,
        Role::Watermark,
        Role::Interval,
        Role::Speed,
    ];

    /// Roles of counters: a row with one is about an interval, not about a packet.
    pub const COUNTERS: [Role; 6] = [Role::Bytes, Role::Arrived, Role::Packets, Role::Drops, Role::Marks, Role::Watermark];

    /// Name of the role in `--columns`.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Time => "time",
            Role::Queue => "queue",
            Role::Port => "port",
            Role::Flow => "flow",
            Role::Frame => "frame",
            Role::Marked => "marked",
            Role::Dropped => "dropped",
            Role::Replaced => "replaced",
            Role::AtHead => "at_head",
            Role::Payload => "payload",
            Role::Syn => "syn",
            Role::Bytes => "bytes",
            Role::Arrived => "arrived",
            Role::Packets => "packets",
            Role::Drops => "drops",
            Role::Marks => "marks",
            Role::Watermark => "watermark",
            Role::Interval => "interval",
            Role::Speed => "speed",
        }
    }

    /// True of counters of bytes.
    const fn is_in_bytes(self) -> bool {
        matches!(self, Role::Bytes | Role::Arrived)
    }

    /// Names by which the column often goes, in order of preference, without units; `.`, `-`
    /// and spaces stand for `_`.
    const fn common(self) -> &'static [&'static str] {
        match self {
            Role::Time => &["time", "timestamp", "ts", "t", "datetime", "frame_time_epoch", "_time"],
            Role::Queue => &[
                "queue",
                "qlen",
                "queue_length",
                "queue_len",
                "queuelength",
                "queue_depth",
                "queuedepth",
                "qdepth",
                "deq_qdepth",
                "enq_qdepth",
                "occupancy",
                "queue_occupancy",
                "buffer",
                "backlog",
                "depth",
                "q",
            ],
            Role::Port => &["port", "ifname", "if_name", "interface", "egress_port", "egress", "queue_id", "device"],
            Role::Flow => &["flow", "flow_id", "flowid", "five_tuple", "5tuple", "5_tuple"],
            Role::Frame => &["frame", "frame_len", "len", "length", "pkt_len", "packet_length", "pkt_size", "size"],
            Role::Marked => &["marked", "ce", "ecn_marked", "mark"],
            Role::Dropped => &["dropped", "drop", "is_drop", "lost"],
            Role::Replaced => &["replaced"],
            Role::AtHead => &["at_head"],
            Role::Payload => &["payload", "payload_len", "payload_length", "tcp_len"],
            Role::Syn => &["syn", "tcp_flags_syn", "is_syn"],
            // Names under which switches and systems keep running totals; in the order in which they are preferred.
            Role::Bytes => &["ifhcoutoctets", "out_octets", "tx_bytes", "tx_octets", "ifoutoctets"],
            Role::Packets => &["ifhcoutucastpkts", "out_pkts", "tx_packets", "out_unicast_pkts"],
            Role::Drops => &["ifoutdiscards", "out_discards", "tx_dropped", "dropped_pkts"],
            Role::Watermark => &["max_queue_len", "watermark", "queue_watermark"],
            // Its name is its unit (RFC 2863).
            Role::Speed => &[HIGH_SPEED],
            Role::Arrived | Role::Marks | Role::Interval => &[],
        }
    }

    /// Accepted units of the role.
    const fn accepted(self) -> &'static str {
        match self {
            Role::Time => "ps, ns, us, ms, s, iso (2026-11-21T08:00:00.5Z)",
            Role::Queue => "B, KB, MB, KiB, MiB, packets(SIZE), cells(SIZE), segments(SIZE), for example cells(208B)",
            Role::Frame | Role::Payload => "B",
            Role::Marked => "flag (0 or 1), ecn (the two bits of the header; 3 is CE)",
            Role::Dropped => "flag (0 or 1), total (a running count of the port's drops)",
            Role::Replaced | Role::AtHead | Role::Syn => "flag (0 or 1)",
            Role::Port | Role::Flow => "none",
            Role::Bytes | Role::Arrived => {
                "total, total(32), total(64) (a running count of bytes), since (bytes since the row before, or in the interval), \
                 rate(bps), rate(B/s) (a mean over that time); in other units total(kB), since(Mbit), rate(Mbps)"
            }
            Role::Packets | Role::Drops | Role::Marks => {
                "total, total(32), total(64) (a running count), since (since the row before, or in the interval), rate (a mean \
                 each second over that time)"
            }
            Role::Watermark => "B, KB, MB, KiB, MiB, packets(SIZE), cells(SIZE), segments(SIZE), for example cells(208B)",
            Role::Interval => "ps, ns, us, ms, s",
            Role::Speed => "bps, kbps, Mbps, Gbps",
        }
    }
}

/// Choice of one column by the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    pub role: Role,
    pub column: String,
    pub unit: Option<Unit>,
    /// Unit as the user wrote it.
    written: String,
}

impl Choice {
    /// The unit as the user wrote it; empty where none was given.
    pub fn unit_as_written(&self) -> &str {
        &self.written
    }

    /// True if the unit is a number of segments, cells or packets of a size that was said.
    pub fn is_counted(&self) -> bool {
        self.written.contains('(') && matches!(self.unit, Some(Unit::Steps(_)))
    }
}

/// Choice of columns by the user: `time=ts:ns,queue=qlen:cells(208B)`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Mapping(pub Vec<Choice>);

const FORM: &str = "ROLE=COLUMN[:UNIT], separated by commas, for example time=ts:ns,queue=qlen:cells(208B),flow=five_tuple";

impl Mapping {
    /// Reads `time=ts:ns,queue=qlen:cells(208B)`. A column whose name holds a comma, a colon or an equals sign stands in
    /// double quotes.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn read(text: &str) -> Result<Mapping, Problems> {
        match Self::read_partly(text) {
            (mapping, problems) if problems.is_empty() => Ok(mapping),
            (_, problems) => Err(problems),
        }
    }

    /// Reads a mapping with problems: gives the columns that are named all the same, in a unit of their role, and the problems.
    pub fn read_partly(text: &str) -> (Mapping, Problems) {
        let mut choices: Vec<Choice> = Vec::new();
        let mut problems = Vec::new();
        for part in split(text, ',') {
            match Self::choice(&part, &mut problems) {
                Ok(choice) if choices.iter().any(|c| c.role == choice.role) => {
                    problems.push(Problem::new("is given twice").column("--columns").value(choice.role.name()));
                }
                Ok(choice) => choices.push(choice),
                Err(mut problem) => {
                    problem.file.get_or_insert_with(|| "--columns".into());
                    problems.push(problem);
                }
            }
        }
        (Mapping(choices), problems)
    }

    fn choice(part: &str, problems: &mut Problems) -> Result<Choice, Problem> {
        let pieces = split(part, '=');
        let [role, rest] = pieces.as_slice() else {
            return Err(Problem::new("is not of the form ROLE=COLUMN[:UNIT]").value(part.trim()).accepted(FORM));
        };
        let role = role.trim();
        let Some(known) = Role::ALL.into_iter().find(|r| r.name() == role) else {
            return Err(Problem::new("is nothing that a column can mean")
                .value(role)
                .accepted(listed(Role::ALL.map(Role::name)))
                .maybe(did_you_mean(role, Role::ALL.map(Role::name))));
        };
        let mut pieces = split(rest, ':').into_iter();
        let column = unquoted(&pieces.next().unwrap_or_default());
        let unit: Vec<String> = pieces.collect();
        if column.is_empty() {
            return Err(Problem::new("names no column").column(known.name()).accepted(FORM));
        }
        let written = unit.join(":").trim().to_string();
        let unit = match Unit::read(known, &written) {
            _ if unit.is_empty() => None,
            Ok(unit) => Some(unit),
            Err(mut problem) => {
                problem.file.get_or_insert_with(|| "--columns".into());
                problems.push(problem);
                Some(Unit::Steps(1))
            }
        };
        Ok(Choice { role: known, column, unit, written })
    }
}

/// Text that [`Mapping::read`] reads back.
impl std::fmt::Display for Mapping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, choice) in self.0.iter().enumerate() {
            let quote = if choice.column.contains([',', ':', '=']) { "\"" } else { "" };
            write!(f, "{}{}={quote}{}{quote}", if i > 0 { "," } else { "" }, choice.role.name(), choice.column)?;
            if !choice.written.is_empty() {
                write!(f, ":{}", choice.written)?;
            }
        }
        Ok(())
    }
}

/// Splits at `at`, but not inside double quotes.
fn split(text: &str, at: char) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quoted = false;
    for c in text.chars() {
        if c == '"' {
            quoted = !quoted;
        }
        match parts.last_mut() {
            Some(part) if c != at || quoted => part.push(c),
            _ => parts.push(String::new()),
        }
    }
    parts
}

fn unquoted(text: &str) -> String {
    let text = text.trim();
    match text.strip_prefix('"').and_then(|t| t.strip_suffix('"')) {
        Some(inner) => inner.to_string(),
        None => text.to_string(),
    }
}

/// Description of a column from the file's own schema, or from its first rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    /// The unit that the file's schema declares for a time, if it does.
    pub declared: Option<Unit>,
    /// The first value, as text.
    pub first: Option<String>,
}

/// A column that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    pub role: Role,
    /// Index of the column in the file.
    pub index: usize,
    pub unit: Unit,
}

/// Columns of a file that are read, and notes on the choice of them.
#[derive(Clone, Debug, Default)]
pub struct Binding {
    pub columns: Vec<Bound>,
    pub notes: Vec<String>,
}

impl Binding {
    pub fn get(&self, role: Role) -> Option<Bound> {
        self.columns.iter().copied().find(|b| b.role == role)
    }

    /// True if a column is a counter or a watermark.
    pub fn counts(&self) -> bool {
        counts(&self.columns)
    }
}

/// True if a column is a counter or a watermark.
pub fn counts(bound: &[Bound]) -> bool {
    bound.iter().any(|bound| Role::COUNTERS.contains(&bound.role))
}

/// Finds the columns of a file: those of the mapping, or without one those with common names.
///
/// # Errors
/// Everything that is wrong: columns that are not there, units that are not known, no time, neither queue nor frame.
pub fn bind(mapping: Option<&Mapping>, columns: &[Column]) -> Result<Binding, Problems> {
    let mut binding = Binding::default();
    let mut problems = Vec::new();
    let names = || columns.iter().map(|c| c.name.as_str());
    match mapping {
        Some(mapping) => {
            for choice in &mapping.0 {
                let numbered = || choice.column.parse::<usize>().ok().filter(|n| (1..=columns.len()).contains(n)).map(|n| n - 1);
                let Some(index) = columns.iter().position(|c| c.name == choice.column).or_else(numbered) else {
                    let there = format!("the columns are: {}", listed(names()));
                    let meant = did_you_mean(&choice.column, names());
                    let suggestion = meant.map_or(there.clone(), |m| format!("{m} {there}"));
                    problems.push(
                        Problem::new("is no column of this file")
                            .column(choice.role.name())
                            .value(&choice.column)
                            .suggestion(suggestion),
                    );
                    continue;
                };
                add(&mut binding, &mut problems, choice.role, index, choice.unit, &columns[index]);
            }
            let unused = unused(&binding, columns);
            if !unused.is_empty() {
                binding.notes.push(format!("columns that --columns leaves unused: {unused}"));
            }
        }
        None => {
            let of_tc = of_tc(columns);
            // Counters beside queues or packets are left alone.
            let packets = guess(Role::Queue, columns).is_some() || guess(Role::Frame, columns).is_some() || !of_tc.is_empty();
            for role in Role::ALL {
                if packets && (Role::COUNTERS.contains(&role) || matches!(role, Role::Interval | Role::Speed)) {
                    continue;
                }
                let known = of_tc.iter().find(|(known, ..)| *known == role).map(|(_, index, unit)| (*index, Some(*unit)));
                if let Some((index, unit)) = known.or_else(|| guess(role, columns)) {
                    add(&mut binding, &mut problems, role, index, unit, &columns[index]);
                }
            }
            if binding.get(Role::Queue).is_none() {
                problems.extend(counted_queue(columns));
            }
            if !binding.columns.is_empty() {
                let said = binding.columns.iter().map(|b| {
                    let unit = match b.unit {
                        Unit::Flag | Unit::Name => String::new(),
                        _ => {
                            format!(" [{}]", b.unit.describe(b.role))
                        }
                    };
                    format!("{} = '{}'{unit}", b.role.name(), shortened(&columns[b.index].name))
                });
                let said = said.collect::<Vec<_>>().join(", ");
                let unused = unused(&binding, columns);
                let unused = if unused.is_empty() { unused } else { format!("; not used: {unused}") };
                binding.notes.push(format!("columns were guessed by their names: {said}{unused}; --columns says otherwise"));
            }
        }
    }
    for bound in binding.columns.iter().filter(|bound| matches!(bound.unit, Unit::Rate(_))) {
        let own = if binding.columns.iter().any(|bound| bound.role == Role::Interval) {
            "its interval"
        } else {
            "the time since the row before"
        };
        binding.notes.push(format!(
            "each rate in '{}' is taken as the mean over {own}: one over a longer window smears bursts",
            shortened(&columns[bound.index].name)
        ));
    }
    // What is missing is only worth saying where nothing else explains it.
    if problems.is_empty() {
        let lacks = |role: Role| {
            Problem::new(match mapping {
                Some(_) => "is not among --columns",
                None => "is not found: no column has one of its common names",
            })
            .column(role.name())
            .accepted(FORM)
            .suggestion(format!("the columns are: {}", listed(names())))
        };
        if binding.get(Role::Time).is_none() {
            problems.push(lacks(Role::Time));
        }
        if binding.get(Role::Queue).is_none() && binding.get(Role::Frame).is_none() && !binding.counts() {
            let problem = lacks(Role::Queue);
            problems.push(match (counter(columns), &problem.suggestion) {
                (Some(counter), Some(columns)) => Problem { suggestion: Some(format!("{counter}; {columns}").into()), ..problem },
                _ => problem,
            });
        }
    }
    if problems.is_empty() {
        Ok(binding)
    } else {
        Err(problems)
    }
}

fn add(binding: &mut Binding, problems: &mut Problems, role: Role, index: usize, unit: Option<Unit>, column: &Column) {
    if let Some(other) = binding.columns.iter().find(|b| b.index == index) {
        problems.push(
            Problem::new(format!("is already the column of '{}'", other.role.name())).column(role.name()).value(&column.name),
        );
        return;
    }
    let unit = match (role, unit) {
        (_, Some(unit)) if unit != Unit::Total => unit,
        (Role::Time, None) => match column.declared.or_else(|| time_unit(column)) {
            Some(unit) => unit,
            None => {
                if let Some(date) = column.first.as_deref().filter(|first| is_other_date(first)) {
                    let problem = Problem::new("is no date of a form that is read").column("time").value(date);
                    let problem =
                        problem.accepted("2026-11-21 08:00:00.5, with the year first, in text; or a number and its unit");
                    let why = "whether 03/04 is of March or of April is not guessed";
                    problems.push(problem.suggestion(format!("{why}: write year, month and day, in this order")));
                    return;
                }
                let accepted = Role::Time.accepted();
                let problem =
                    Problem::new("has no unit, and neither its name nor its values show one").column("time").value(&column.name);
                let suggestion = format!("write time={}:UNIT, for example time={}:ns", column.name, column.name);
                problems.push(problem.accepted(accepted).suggestion(suggestion));
                return;
            }
        },
        (Role::Queue, None) => match suffix_unit(role, &column.name).1 {
            Some(unit) => unit,
            // By this name Linux counts packets, and switches bytes or cells.
            None if column.name.trim().eq_ignore_ascii_case(QLEN) => {
                let problem = Problem::new("has no unit: by this name tc counts packets, and switches cells or bytes");
                let problem = problem.column(role.name()).value(&column.name).accepted(Role::Queue.accepted());
                let suggestion = format!("write queue={0}:packets(1514B), queue={0}:cells(208B) or queue={0}:B", column.name);
                problems.push(problem.suggestion(suggestion));
                return;
            }
            None if column.name.trim().eq_ignore_ascii_case(BACKLOG) => Unit::Steps(1),
            None => {
                binding.notes.push(format!(
                    "the queue in '{}' is taken as bytes: nothing says its unit; --columns queue={}:UNIT says otherwise",
                    shortened(&column.name),
                    shortened(&column.name)
                ));
                Unit::Steps(1)
            }
        },
        (Role::Watermark, None) => match suffix_unit(role, &column.name).1 {
            Some(unit) => unit,
            None => {
                problems.push(no_unit(role, column, "B", "watermark=COLUMN:cells(208B) or watermark=COLUMN:B"));
                return;
            }
        },
        (Role::Bytes | Role::Arrived | Role::Packets | Role::Drops | Role::Marks, None | Some(Unit::Total)) => {
            if unit.is_none() && !role.common().contains(&plain_name(&column.name).as_str()) {
                problems.push(no_unit(role, column, "total", "a running count or a count of the interval"));
                return;
            }
            // The names of these say their width.
            match plain_name(&column.name).as_str() {
                "ifoutoctets" | "ifoutdiscards" => Unit::TotalOf(32),
                "ifhcoutoctets" | "ifhcoutucastpkts" => Unit::TotalOf(64),
                _ => Unit::Total,
            }
        }
        (_, Some(unit)) => unit,
        (Role::Interval, None) => match suffix_unit(role, &column.name).1 {
            Some(unit) => unit,
            None => {
                problems.push(no_unit(role, column, "us", "a length of time in ps, ns, us, ms or s"));
                return;
            }
        },
        (Role::Speed, None) => match suffix_unit(role, &column.name).1 {
            Some(unit) => unit,
            None => {
                problems.push(no_unit(role, column, "Mbps", "bits each second, or a multiple of them"));
                return;
            }
        },
        (Role::Frame | Role::Payload, None) => Unit::Steps(1),
        (Role::Marked | Role::Dropped | Role::Replaced | Role::AtHead | Role::Syn, None) => Unit::Flag,
        (Role::Port | Role::Flow, None) => Unit::Name,
    };
    binding.columns.push(Bound { role, index, unit });
}

/// Speed of a port in Mb/s, as the interfaces table names it.
const HIGH_SPEED: &str = "ifhighspeed";
/// Speed of a port in bits each second, as the interfaces table names it (RFC 2863).
const SPEED: &str = "ifspeed";

/// Choice of a column that says the speed of each port, where there is one and it is not bound.
pub fn unused_speed<'a>(names: impl IntoIterator<Item = &'a str>, bound: &[Bound]) -> Option<String> {
    let bound = bound.iter().any(|bound| bound.role == Role::Speed);
    let name = names.into_iter().find(|name| plain_name(name) == HIGH_SPEED).filter(|_| !bound)?;
    Some(format!("speed={name}:Mbps"))
}

/// Columns whose names say another unit than they are read in: their place among the columns, and both units.
pub fn other_units<'a>(
    bound: &'a [Bound],
    name: impl Fn(usize) -> &'a str + 'a,
) -> impl Iterator<Item = (usize, Role, [Unit; 2])> + 'a {
    bound.iter().filter_map(move |bound| {
        let (Some(Unit::Steps(said)), Unit::Steps(read)) = (suffix_unit(bound.role, name(bound.index)).1, bound.unit) else {
            return None;
        };
        // Thousands and powers of two have the same names.
        let near = said.abs_diff(read) * 8 <= said.max(read);
        (!near).then_some((bound.index, bound.role, [Unit::Steps(said), bound.unit]))
    })
}

/// Columns that are read as counters of bytes in another unit than their names say: their place among the columns, how they are read, what
/// their names say, the choice that reads them so, and how grave it is.
pub fn no_bytes<'a>(
    bound: &'a [Bound],
    name: impl Fn(usize) -> &'a str + 'a,
) -> impl Iterator<Item = (usize, String, &'static str, String, Level)> + 'a {
    let counts = |bound: &&Bound| bound.role.is_in_bytes() || matches!(bound.role, Role::Packets | Role::Drops | Role::Marks);
    bound.iter().filter(counts).filter_map(move |bound| {
        let said = Said::of(&plain_name(name(bound.index)))?;
        if !bound.role.is_in_bytes() {
            let counted = matches!(bound.unit, Unit::Total | Unit::TotalOf(_) | Unit::Since);
            let choice = format!("{}={}:rate", bound.role.name(), name(bound.index));
            return (said.is_rate() && counted).then(|| (bound.index, "a count".into(), "a rate", choice, Level::Doubt));
        }
        let (choice, near) = said.instead_of(bound.unit)?;
        let read = match bound.unit {
            Unit::Total | Unit::TotalOf(_) | Unit::Since => "bytes".into(),
            unit => unit.describe(bound.role),
        };
        let level = if near { Level::Note } else { Level::Doubt };
        // `octets_rate` says bytes, and that they are those of a second.
        let is_counted = said.is_rate() && !matches!(bound.unit, Unit::Rate(_));
        let part = said.part.filter(|part| !is_counted || part.ends_with("bps")).unwrap_or("a rate");
        Some((bound.index, read, part, format!("{}={}:{choice}", bound.role.name(), name(bound.index)), level))
    })
}

/// Parts of names that counters of what left a port go by.
const TRAFFIC: [&str; 10] = ["octets", "bytes", "out", "tx", "transmit", "sent", "traffic", "throughput", "bandwidth", "egress"];
/// Parts of names that counters of what came in go by.
const CAME_IN: [&str; 6] = ["rx", "in", "receive", "received", "ingress", "input"];

/// Suggestion of choices for a column that seems to count what left a port, of which nothing is guessed.
fn counter(columns: &[Column]) -> Option<String> {
    let parts = |name: &str, known: &[&str]| name.split(['_', '(', ')', '[', ']', '/']).any(|part| known.contains(&part));
    let plain = || {
        let all = columns.iter().map(|column| (column, plain_name(&column.name)));
        all.filter(|(_, name)| !parts(name, &CAME_IN))
    };
    let is_traffic = |name: &String| parts(name, &TRAFFIC);
    let said = |(column, name): (_, String)| Some((column, Said::of(&name)?.choices()));
    let (column, choices): (&Column, _) = plain()
        .filter(|(_, name)| is_traffic(name))
        .find_map(said)
        .or_else(|| plain().find_map(said))
        .or_else(|| plain().find(|(_, name)| is_traffic(name)).map(|(column, _)| (column, Vec::new())))?;
    let name = &column.name;
    let quote = if name.contains([',', ':', '=']) { "\"" } else { "" };
    let given = |unit: &str| format!("bytes={quote}{name}{quote}:{unit}");
    Some(match choices.as_slice() {
        [total, since, rate] => format!(
            "'{name}' may be a counter: {} if it is a running count, {since} if each row has its own, {rate} if it is a rate",
            given(total)
        ),
        [rate] => format!("'{name}' may be a counter: {}", given(rate)),
        [] => format!(
            "'{name}' may be a counter: {} of a running count of bytes, or rate(Mbps), since(kB), total(Mbit) …",
            given("total")
        ),
        rates => format!("'{name}' may be a counter: {} or {}", given(&rates[0]), rates[1..].join(" or ")),
    })
}

/// The problem of a column that is bound without a unit, and whose name does not say it.
fn no_unit(role: Role, column: &Column, unit: &str, what: &str) -> Problem {
    let problem = Problem::new(format!("has no unit, and its name does not say it: {what}"));
    let problem = problem.column(role.name()).value(&column.name).accepted(role.accepted());
    problem.suggestion(format!("write {0}={1}:UNIT, for example {0}={1}:{unit}", role.name(), column.name))
}

/// A name in lower case with `_` between its parts.
fn plain_name(name: &str) -> String {
    name.trim().to_lowercase().replace(['.', '-', ' '], "_")
}

/// Names in tc's output of waiting packets, of their bytes, and of packets that were dropped since the qdisc was made.
const QLEN: &str = "qlen";
const BACKLOG: &str = "backlog";
const DROPS: &str = "drops";

/// The columns of a table whose counters go by tc's names: roles, indices and units.
fn of_tc(columns: &[Column]) -> Vec<(Role, usize, Unit)> {
    let find = |name: &str| columns.iter().position(|c| c.name.trim().eq_ignore_ascii_case(name));
    let (Some(backlog), Some(_)) = (find(BACKLOG), find(QLEN)) else { return Vec::new() };
    let drops = find(DROPS).map(|index| (Role::Dropped, index, Unit::Total));
    [(Role::Queue, backlog, Unit::Steps(1))].into_iter().chain(drops).collect()
}

/// Columns that nothing is read from.
fn unused(binding: &Binding, columns: &[Column]) -> String {
    let is_used = |index: usize| binding.columns.iter().any(|b| b.index == index);
    listed(columns.iter().enumerate().filter(|(index, _)| !is_used(*index)).map(|(_, c)| c.name.as_str()))
}

/// Column with the first of a role's common names, and the unit in its name.
fn guess(role: Role, columns: &[Column]) -> Option<(usize, Option<Unit>)> {
    let bare: Vec<_> = columns.iter().map(|c| suffix_unit(role, &c.name)).collect();
    role.common().iter().find_map(|name| {
        let index = bare.iter().position(|(stem, _)| stem.replace(['.', '-', ' '], "_") == *name)?;
        Some((index, bare[index].1))
    })
}

/// Column whose name says that it is a queue in cells or packets, of unknown size.
fn counted_queue(columns: &[Column]) -> Option<Problem> {
    columns.iter().find_map(|column| {
        let lower = column.name.to_lowercase();
        let (stem, kind) = ["cells", "packets", "pkts"].iter().find_map(|kind| {
            let stem = lower.trim_end_matches([')', ']']).strip_suffix(kind)?;
            Some((stem.trim_end_matches(['_', '.', '-', ' ', '(', '[']), *kind))
        })?;
        let kind = if kind == "pkts" { "packets" } else { kind };
        Role::Queue.common().contains(&stem).then(|| {
            Problem::new(format!("counts {kind}, it seems, and nothing says how large they are"))
                .column(Role::Queue.name())
                .value(&column.name)
                .suggestion(format!("name the columns, among them queue={}:{kind}({})", column.name, example(kind)))
        })
    })
}

/// A name in lower case without its unit, and that unit: `Queue_Bytes`, `time_ns`, `qlen (KB)`, `depth[cells]`.
fn suffix_unit(role: Role, name: &str) -> (String, Option<Unit>) {
    let name = name.trim();
    let lower = name.to_lowercase();
    if let Some((stem, rest)) = name.split_once(['(', '[']) {
        let inner = rest.trim_end().trim_end_matches([')', ']']);
        if let Ok(unit) = Unit::read(role, inner) {
            return (stem.trim().trim_end_matches('_').to_lowercase(), Some(unit));
        }
    }
    let seconds = SECONDS.map(|name| (name, 1_000_000_000_000));
    let more = match role {
        Role::Time | Role::Interval => &seconds[..],
        Role::Speed if plain_name(name) == HIGH_SPEED => return (lower, Some(Unit::Steps(1_000_000))),
        Role::Speed if plain_name(name) == SPEED => return (lower, Some(Unit::Steps(1))),
        Role::Queue | Role::Frame | Role::Watermark | Role::Speed => &[],
        _ => return (lower, None),
    };
    // What ends with `min` is the smallest of something.
    for (unit, steps) in units(role).iter().chain(more).filter(|(unit, _)| *unit != "min") {
        for separator in ['_', '.', '-', ' '] {
            let ending = format!("{separator}{}", unit.to_lowercase());
            if let Some(stem) = lower.strip_suffix(&ending) {
                return (stem.to_string(), Some(Unit::Steps(*steps)));
            }
        }
    }
    (lower, None)
}

/// True for a text that seems to be a date or a time of day, and no number.
fn is_other_date(text: &str) -> bool {
    let parts = text.split(['/', '-', '.', ':', ' ']).filter(|part| part.bytes().any(|byte| byte.is_ascii_digit()));
    parts.count() >= 3 && from_text(text.as_bytes(), 1).is_err()
}

/// Unit of a time column for which none is given: by its name, or because only one unit makes its first value a time of the years
/// from 2001 to 2100.
fn time_unit(column: &Column) -> Option<Unit> {
    if let Some(unit) = suffix_unit(Role::Time, &column.name).1 {
        return Some(unit);
    }
    let first = column.first.as_deref()?;
    if from_date(first.as_bytes()).is_ok() {
        return Some(Unit::Iso);
    }
    let digits = from_text(first.as_bytes(), 1).ok()?;
    [("s", 1), ("ms", 1_000), ("us", 1_000_000), ("ns", 1_000_000_000), ("ps", 1_000_000_000_000_u128)]
        .into_iter()
        .find(|(_, per_second)| u64::try_from(digits / per_second).is_ok_and(|seconds| DATES.contains(&seconds)))
        .and_then(|(name, _)| units(Role::Time).iter().find(|(n, _)| *n == name))
        .map(|(_, steps)| Unit::Steps(*steps))
}

#[cfg(test)]
mod tests;
