//! Output of commands that print counters, with a line for the time before each: `snmpbulkwalk` and `snmpget` of the interfaces table,
//! and `ethtool -S`.
//!
//! Source: RFC 2863 (IF-MIB) for the names, numbers and widths of the columns; net-snmp prints `IF-MIB::ifHCOutOctets.3 = Counter64: 12`, with
//! `-OX` an index in brackets and with `-On` numbers instead of names. ethtool prints `     name: value`; the names are the drivers' own.

use super::{each_line, no_columns, time_of, Decode, Feed, PassedOver, Streamed, Tells};
use crate::counters::{Look, Value};
use crate::formats::mapping::Mapping;
use crate::input::problem::Problem;
use fanin_units::BitRate;
use std::collections::BTreeMap;

/// A series of the interfaces table.
pub const SNMP: Streamed = Streamed { name: "snmp", title: "snmpbulkwalk", recognises: is_snmp, make: snmp, tells: Tells::All };

/// A series of the statistics of a NIC.
pub const ETHTOOL: Streamed =
    Streamed { name: "ethtool", title: "ethtool -S", recognises: is_ethtool, make: ethtool, tells: Tells::All };

/// Interfaces of a switch, at most.
const INTERFACES: usize = 1 << 16;

const HOW: &str = "write the time before each: while sleep 60; do date +%s.%N; for of in ifXTable ifOutDiscards; do snmpbulkwalk -v2c -c public switch7 IF-MIB::$of; done; done > polls.txt";

const HOW_ETHTOOL: &str = "write the time before each: while sleep 1; do date +%s.%N; ethtool -S eth0; done > eth0.txt";

/// Counters of one interface in one block.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    octets: Option<(u64, u8)>,
    packets: Option<(u64, u8)>,
    discards: Option<(u64, u8)>,
    speed: Option<u64>,
}

/// Kind of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Snmp,
    Ethtool,
}

/// Columns of the interfaces table that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Name,
    Descr,
    HighSpeed,
    Speed,
    Octets(u8),
    Packets(u8),
    Discards,
}

/// Columns by name and by number: ifTable is 1.3.6.1.2.1.2.2.1, ifXTable 1.3.6.1.2.1.31.1.1.1.
const COLUMNS: [(&str, &str, Column); 9] = [
    ("ifDescr", "3.6.1.2.1.2.2.1.2", Column::Descr),
    ("ifSpeed", "3.6.1.2.1.2.2.1.5", Column::Speed),
    ("ifOutOctets", "3.6.1.2.1.2.2.1.16", Column::Octets(32)),
    ("ifOutUcastPkts", "3.6.1.2.1.2.2.1.17", Column::Packets(32)),
    ("ifOutDiscards", "3.6.1.2.1.2.2.1.19", Column::Discards),
    ("ifName", "3.6.1.2.1.31.1.1.1.1", Column::Name),
    ("ifHCOutOctets", "3.6.1.2.1.31.1.1.1.10", Column::Octets(64)),
    ("ifHCOutUcastPkts", "3.6.1.2.1.31.1.1.1.11", Column::Packets(64)),
    ("ifHighSpeed", "3.6.1.2.1.31.1.1.1.15", Column::HighSpeed),
];

/// A line of the interfaces table: its column, where that is read, the index, and what stands behind the equals sign.
fn snmp_line(line: &str) -> Option<(Option<Column>, u32, &str)> {
    let (name, value) = line.split_once(" = ")?;
    let name = name.trim();
    let (object, index) = match name.strip_suffix(']') {
        Some(open) => open.rsplit_once('[')?,
        None => name.rsplit_once('.')?,
    };
    let index = index.parse().ok()?;
    let object = object.rsplit_once("::").map_or(object, |(_, object)| object);
    let number = object.strip_prefix(".1.").or_else(|| object.strip_prefix("iso.")).or_else(|| object.strip_prefix("1."));
    let is = |(text, oid, _): &&(&str, &str, Column)| object == *text || number == Some(*oid);
    let is_known = object.starts_with("if") || number.is_some();
    is_known.then(|| (COLUMNS.iter().find(is).map(|(_, _, column)| *column), index, value.trim()))
}

/// A counter as net-snmp prints it: `Counter64: 12`, `12`, `Gauge32: 1000`.
fn counter(value: &str) -> Option<u64> {
    value.rsplit_once(':').map_or(value, |(_, number)| number).trim().parse().ok()
}

/// True if a line of the beginning is of the output: the first, or the one behind what stands where a time should.
fn begins(start: &[u8], is_of: impl Fn(&str) -> bool) -> bool {
    behind_time(start).lines().take(2).any(is_of)
}

/// Lines of a beginning, without one that is a time.
pub fn behind_time(start: &[u8]) -> String {
    let text = String::from_utf8_lossy(start);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    match text.split_once('\n') {
        Some((first, rest)) if time_of(first.trim()).is_some() => rest.trim_start().to_string(),
        _ => text.to_string(),
    }
}

fn is_snmp(start: &[u8]) -> bool {
    begins(start, |line| snmp_line(line).is_some())
}

fn is_ethtool(start: &[u8]) -> bool {
    begins(start, |line| line.trim() == "NIC statistics:")
}

fn snmp(mapping: Option<&Mapping>, name: &str) -> Result<Box<dyn Decode>, Problem> {
    no_columns(mapping, "what snmpbulkwalk prints")?;
    Ok(Box::new(Blocks::new(Kind::Snmp, name)))
}

fn ethtool(mapping: Option<&Mapping>, name: &str) -> Result<Box<dyn Decode>, Problem> {
    no_columns(mapping, "what ethtool prints")?;
    Ok(Box::new(Blocks::new(Kind::Ethtool, name)))
}

/// Statistics of drivers that are read, the best first: those of the port before those of its queues.
const OCTETS: [&str; 5] = ["tx_bytes_phy", "port.tx_bytes", "tx_octets", "tx_good_bytes", "tx_bytes"];
const PACKETS: [&str; 4] = ["tx_packets_phy", "port.tx_unicast", "tx_good_packets", "tx_packets"];
const DISCARDS: [&str; 3] = ["tx_discards_phy", "port.tx_dropped_link_down", "tx_dropped"];

/// Blocks of counters, each behind its time.
struct Blocks {
    kind: Kind,
    /// Name of the port where the output has none.
    file: String,
    time: Option<u128>,
    rows: BTreeMap<u32, Row>,
    /// Statistics that a row has, by their place in the lists above.
    ranks: [usize; 3],
    names: BTreeMap<u32, String>,
    line: u64,
    blocks: u64,
    /// True once a counter that is read was there.
    any: bool,
    over: PassedOver,
}

impl Blocks {
    fn new(kind: Kind, name: &str) -> Self {
        let over = PassedOver::default();
        let file = name.to_string();
        Blocks {
            kind,
            file,
            time: None,
            rows: BTreeMap::new(),
            ranks: [usize::MAX; 3],
            names: BTreeMap::new(),
            line: 0,
            blocks: 0,
            any: false,
            over,
        }
    }

    /// A way to write the time before each block.
    fn how(&self) -> &'static str {
        if self.kind == Kind::Snmp {
            HOW
        } else {
            HOW_ETHTOOL
        }
    }

    /// Takes the block that is over.
    fn flush(&mut self, feed: &mut Feed<'_>) -> Result<(), Problem> {
        let rows = std::mem::take(&mut self.rows);
        self.ranks = [usize::MAX; 3];
        if rows.is_empty() {
            return Ok(());
        }
        if self.time.is_none() && self.blocks > 0 {
            return Err(Problem::new("has no time before it, and it is not the only block").suggestion(self.how()));
        }
        self.blocks += 1;
        let time = feed.time(self.time.unwrap_or(0))?;
        for (index, row) in rows {
            let total =
                |value: Option<(u64, u8)>| value.map(|(count, bits)| Value::Total(count, Some(bits).filter(|bits| *bits > 0)));
            let look = Look {
                time,
                sent: total(row.octets),
                packets: total(row.packets),
                dropped: total(row.discards),
                ..Look::default()
            };
            if row.octets.is_none() && row.discards.is_none() {
                continue;
            }
            let name = match self.kind {
                Kind::Ethtool => self.file.clone(),
                Kind::Snmp => self.names.get(&index).cloned().unwrap_or_else(|| format!("if {index}")),
            };
            self.any = true;
            let port = feed.port(name.as_bytes())?;
            if let Some(bps) = row.speed.filter(|bps| *bps > 0) {
                feed.speed(port, BitRate(bps));
            }
            feed.look(port, &look);
        }
        Ok(())
    }

    fn row(&mut self, index: u32) -> Result<&mut Row, Problem> {
        if self.rows.len() >= INTERFACES && !self.rows.contains_key(&index) {
            return Err(Problem::new(format!("is one interface too many: {INTERFACES} are accepted")).value(index.to_string()));
        }
        Ok(self.rows.entry(index).or_default())
    }

    fn snmp(&mut self, line: &str) -> Result<(), Problem> {
        let Some((column, index, value)) = snmp_line(line) else {
            self.over.add(|| "lines that are no columns of IF-MIB".into());
            return Ok(());
        };
        let Some(column) = column else { return Ok(()) };
        if value.starts_with("No Such") {
            return Ok(());
        }
        if matches!(column, Column::Name | Column::Descr) {
            let name = value.strip_prefix("STRING:").unwrap_or(value).trim().trim_matches('"');
            let known = self.names.contains_key(&index);
            if !name.is_empty() && (column == Column::Name || !known) && (known || self.names.len() < INTERFACES) {
                self.names.insert(index, name.to_string());
            }
            return Ok(());
        }
        let Some(count) = counter(value) else {
            return Err(Problem::new("is no counter").value(value).accepted("for example Counter64: 12345"));
        };
        let row = self.row(index)?;
        // Of two columns for one thing that with more bits.
        let wider = |old: &mut Option<(u64, u8)>, bits: u8| {
            if old.is_none_or(|(_, known)| bits >= known) {
                *old = Some((count, bits));
            }
        };
        match column {
            Column::Octets(bits) => wider(&mut row.octets, bits),
            Column::Packets(bits) => wider(&mut row.packets, bits),
            Column::Discards => row.discards = Some((count, 32)),
            Column::HighSpeed => row.speed = count.checked_mul(1_000_000),
            // It ends at 4.3 Gb/s; ifHighSpeed goes before it.
            Column::Speed => row.speed = row.speed.or(Some(count).filter(|bps| *bps < u64::from(u32::MAX))),
            Column::Name | Column::Descr => {}
        }
        Ok(())
    }

    fn ethtool(&mut self, line: &str) -> Result<(), Problem> {
        let Some((name, value)) = line.rsplit_once(':') else {
            self.over.add(|| "lines that are no statistics".into());
            return Ok(());
        };
        let (name, value) = (name.trim(), value.trim());
        if value.is_empty() {
            return Ok(());
        }
        for (place, known) in [&OCTETS[..], &PACKETS[..], &DISCARDS[..]].into_iter().enumerate() {
            let Some(rank) = known.iter().position(|known| *known == name) else { continue };
            let Ok(count) = value.parse::<u64>() else {
                return Err(Problem::new("is no counter").column(name).value(value).accepted("a whole number"));
            };
            if rank > self.ranks[place] {
                continue;
            }
            self.ranks[place] = rank;
            let row = self.row(0)?;
            // Drivers do not say how wide their counters are.
            let value = Some((count, 0));
            match place {
                0 => row.octets = value,
                1 => row.packets = value,
                _ => row.discards = value,
            }
        }
        Ok(())
    }
}

impl Decode for Blocks {
    fn decode(&mut self, bytes: &[u8], end: bool, feed: &mut Feed<'_>) -> Result<usize, Problem> {
        let mut line = self.line;
        let at = each_line(bytes, &mut line, feed, |line, feed| {
            if line == "NIC statistics:" && !self.rows.is_empty() {
                let problem = Problem::new("begins statistics behind others under one time: they would be mixed up");
                Err(problem
                    .value(line)
                    .accepted("one NIC in a file, and a time before each of its outputs")
                    .suggestion(HOW_ETHTOOL))
            } else if line.is_empty() || line == "NIC statistics:" {
                Ok(())
            } else if let Some(time) = time_of(line) {
                self.flush(feed).map(|()| self.time = Some(time))
            } else if self.kind == Kind::Snmp {
                self.snmp(line)
            } else {
                self.ethtool(line)
            }
        });
        self.line = line;
        let at = at?;
        if end {
            self.flush(feed).map_err(|problem| problem.place(format!("line {}", self.line.max(1))))?;
        }
        Ok(at)
    }

    fn finish(&mut self, notes: &mut Vec<String>) {
        if self.blocks == 1 {
            notes.push(format!("one look at the counters, which shows nothing: a series has a time before each; {}", self.how()));
        }
        if !self.any {
            let read = match self.kind {
                Kind::Snmp => "ifHCOutOctets, ifOutOctets, ifOutDiscards",
                Kind::Ethtool => "tx_bytes_phy, tx_bytes, tx_octets, tx_dropped, tx_discards_phy …",
            };
            notes.push(format!("none of the counters of what left a port is in it that are read: {read}"));
        }
        self.over.notes(notes);
    }
}
