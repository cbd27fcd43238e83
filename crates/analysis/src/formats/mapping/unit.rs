//! Units of columns, and their names.

use super::Role;
use crate::input::problem::Problem;
use fanin_units::{BitRate, Bytes, Quantity, Span};

/// Unit of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A multiple of the base unit: picoseconds of a time, bytes of a size.
    Steps(u64),
    /// A date and time in text.
    Iso,
    /// True or false, 0 or 1.
    Flag,
    /// A running count: each rise is so many. Of counters, the bits that it has, where that is known.
    Total,
    TotalOf(u8),
    /// A count since the row before, or in the interval.
    Since,
    /// A running count in a unit of so many bits.
    TotalIn(u64),
    /// A count since the row before, in a unit of so many bits.
    SinceIn(u64),
    /// A mean rate since the row before, or over the interval: bits each second of its unit. Of packets, 8 are one each second.
    Rate(u64),
    /// The two ECN bits.
    Ecn,
    /// A name or a number that stands for itself.
    Name,
}

/// Units of a role's values by their names, and their base units.
pub(super) const fn units(role: Role) -> &'static [(&'static str, u64)] {
    match role {
        Role::Time | Role::Interval => Span::UNITS,
        Role::Speed => BitRate::UNITS,
        _ => Bytes::UNITS,
    }
}

/// Words for a second that names of columns have.
pub(super) const SECONDS: [&str; 2] = ["sec", "seconds"];

/// Units of counters that are no sizes, and their bits.
const BITS: [(&str, u64); 5] = [("bit", 1), ("bits", 1), ("kbit", 1_000), ("Mbit", 1_000_000), ("Gbit", 1_000_000_000)];

/// Units of counters by their names, and their bits.
fn counted_units() -> impl Iterator<Item = (&'static str, u64)> {
    BITS.into_iter().chain(Bytes::UNITS.iter().map(|(name, bytes)| (*name, 8 * bytes)))
}

/// Bits of a unit of counters.
fn of_counted(text: &str) -> Option<u64> {
    counted_units().find(|(name, _)| *name == text).map(|(_, bits)| bits)
}

/// Largest packet or cell [bytes]: a jumbo frame's length field.
const LARGEST: u64 = 65_535;

impl Unit {
    /// Reads the unit of a role.
    ///
    /// # Errors
    /// A problem without its place.
    pub(super) fn read(role: Role, text: &str) -> Result<Unit, Problem> {
        let text = text.trim();
        let named = if SECONDS.contains(&text) { "s" } else { text };
        let find = || units(role).iter().find(|(name, _)| *name == named).map(|(_, steps)| Unit::Steps(*steps));
        let found = match role {
            Role::Time if text == "iso" => Some(Unit::Iso),
            Role::Time | Role::Interval | Role::Speed => find(),
            Role::Queue | Role::Watermark => match text.split_once('(') {
                Some((kind, size)) => return counted(role, text, kind.trim(), size),
                None => find(),
            },
            Role::Frame | Role::Payload => find().filter(|unit| *unit == Unit::Steps(1)),
            Role::Marked if text == "ecn" => Some(Unit::Ecn),
            Role::Dropped if text == "total" => Some(Unit::Total),
            Role::Marked | Role::Dropped | Role::Replaced | Role::AtHead | Role::Syn => (text == "flag").then_some(Unit::Flag),
            Role::Port | Role::Flow => None,
            Role::Bytes | Role::Arrived | Role::Packets | Role::Drops | Role::Marks => match text {
                "total" => Some(Unit::Total),
                "total(32)" => Some(Unit::TotalOf(32)),
                "total(64)" => Some(Unit::TotalOf(64)),
                "since" => Some(Unit::Since),
                "rate" if !role.is_in_bytes() => Some(Unit::Rate(8)),
                _ if role.is_in_bytes() => return measured(role, text),
                _ => None,
            },
        };
        found.ok_or_else(|| {
            let problem = Problem::new("is no unit of it").column(role.name()).value(text).accepted(role.accepted());
            if matches!(text, "packets" | "cells" | "segments" | "pkts") {
                return problem.suggestion(format!("say how large one is, for example {text}({})", example(text)));
            }
            let meant = units(role).iter().find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|(name, _)| *name);
            problem.maybe(meant.map(|name| format!("did you mean '{name}'?")))
        })
    }

    /// Name of the unit in notes.
    pub fn describe(self, role: Role) -> String {
        match self {
            Unit::Steps(steps) => match units(role).iter().find(|(_, s)| *s == steps) {
                Some((name, _)) => (*name).to_string(),
                None => format!("{steps} B each"),
            },
            Unit::Iso => "date and time".to_string(),
            Unit::Flag => "yes or no".to_string(),
            Unit::Total => "running count".to_string(),
            Unit::TotalOf(bits) => format!("running count of {bits} bits"),
            Unit::Since => "count since the row before".to_string(),
            Unit::TotalIn(bits) => format!("running count in {}", of_bits(bits)),
            Unit::SinceIn(bits) => format!("count since the row before in {}", of_bits(bits)),
            Unit::Rate(8) if !role.is_in_bytes() => "mean number each second since the row before".to_string(),
            Unit::Rate(bits) => format!("mean rate since the row before in {}/s", of_bits(bits)),
            Unit::Ecn => "ECN bits".to_string(),
            Unit::Name => "a name".to_string(),
        }
    }
}

/// Name of a unit of counters.
fn of_bits(bits: u64) -> &'static str {
    counted_units().find(|(_, of)| *of == bits).map_or("", |(name, _)| name)
}

/// Bits of a unit of rates: `bps`, `Mbps`, `Mbit/s`, `kB/s`.
fn of_rate(text: &str) -> Option<u64> {
    let counted = || text.strip_suffix("/s").and_then(of_counted);
    BitRate::UNITS.iter().find(|(name, _)| *name == text).map(|(_, bits)| *bits).or_else(counted)
}

/// `total(kB)`, `since(Mbit)`, `rate(Mbps)`.
fn measured(role: Role, text: &str) -> Result<Unit, Problem> {
    let wrong = || Problem::new("is no unit of it").column(role.name()).value(text).accepted(role.accepted());
    let Some((kind, unit)) = text.split_once('(').and_then(|(kind, unit)| Some((kind.trim(), unit.strip_suffix(')')?.trim())))
    else {
        // A unit alone leaves open what is counted.
        let found = match (of_rate(text), of_counted(text).is_some()) {
            (Some(_), _) => Some(format!("write rate({text})")),
            (None, true) => {
                Some(format!("write total({text}) of a running count, since({text}) of a count since the row before"))
            }
            (None, false) if text == "rate" => Some("say of what: rate(bps), rate(Mbps), rate(B/s)".to_string()),
            (None, false) => None,
        };
        return Err(wrong().maybe(found));
    };
    let bits = of_counted(unit);
    match (kind, bits, of_rate(unit)) {
        ("total", Some(bits), _) => Ok(Unit::TotalIn(bits)),
        ("since", Some(bits), _) => Ok(Unit::SinceIn(bits)),
        ("rate", _, Some(bits)) => Ok(Unit::Rate(bits)),
        ("rate", Some(_), None) => Err(wrong().suggestion(format!("a rate is by time: rate({unit}/s)"))),
        ("total" | "since", None, Some(_)) => Err(wrong().suggestion(format!("that is a rate: rate({unit})"))),
        _ => {
            let mut names = counted_units().chain(BitRate::UNITS.iter().copied()).map(|(name, _)| name);
            let meant = names.find(|name| name.eq_ignore_ascii_case(unit));
            Err(wrong().maybe(meant.map(|name| format!("did you mean '{name}'?"))))
        }
    }
}

/// Parts of names of counters that say their unit, that unit, and true where it is one of rates.
const PARTS: [(&str, &str, bool); 25] = [
    ("bit", "bit", false),
    ("bits", "bit", false),
    ("kbit", "kbit", false),
    ("kbits", "kbit", false),
    ("mbit", "Mbit", false),
    ("mbits", "Mbit", false),
    ("gbit", "Gbit", false),
    ("gbits", "Gbit", false),
    ("bps", "bit", true),
    ("kbps", "kbit", true),
    ("mbps", "Mbit", true),
    ("gbps", "Gbit", true),
    ("kb", "kB", false),
    ("kib", "KiB", false),
    ("kbyte", "kB", false),
    ("kbytes", "kB", false),
    ("mb", "MB", false),
    ("mib", "MiB", false),
    ("mbyte", "MB", false),
    ("mbytes", "MB", false),
    ("gb", "GB", false),
    ("gib", "GiB", false),
    ("byte", "B", false),
    ("bytes", "B", false),
    ("octets", "B", false),
];

/// Unit that the name of a counter says, and whether it is a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Said {
    /// The part of the name; none where it only says that it is a rate.
    pub part: Option<&'static str>,
    unit: &'static str,
    rate: bool,
}

impl Said {
    /// The unit that a name says; the name in lower case with `_` between its parts.
    pub(super) fn of(name: &str) -> Option<Said> {
        let parts = || name.split(['_', '(', ')', '[', ']', '/']);
        let found = PARTS.iter().find(|(part, ..)| parts().any(|of| of == *part));
        let rate = name.contains("/s") || name.contains("per_s") || parts().any(|of| matches!(of, "rate" | "persec"));
        match found {
            Some((part, unit, of_rate)) => Some(Said { part: Some(part), unit, rate: rate || *of_rate }),
            None => rate.then_some(Said { part: None, unit: "B", rate }),
        }
    }

    /// True if the name says that it is a rate.
    pub(super) fn is_rate(self) -> bool {
        self.rate
    }

    /// Ways to read a column as its name says: as a running count, as counts, as a rate; of a rate only that.
    pub(super) fn choices(self) -> Vec<String> {
        let of = |kind: &str, per: &str| match (self.unit, per) {
            ("B", "") => kind.to_string(),
            (unit, per) => format!("{kind}({unit}{per})"),
        };
        if self.part.is_none() {
            return vec!["rate(bps)".into(), "rate(B/s)".into()];
        }
        let rate = of("rate", "/s");
        if self.rate {
            vec![rate]
        } else {
            vec![of("total", ""), of("since", ""), rate]
        }
    }

    /// The choice that differs from a unit in what the name says alone, and true if thousands differ from powers of two there, which have the
    /// same names; none where the unit is that of the name.
    pub(super) fn instead_of(self, unit: Unit) -> Option<(String, bool)> {
        let bits = of_counted(self.unit).unwrap_or(8);
        let (kind, read) = match unit {
            Unit::Total | Unit::TotalOf(_) => (0, 8),
            Unit::TotalIn(bits) => (0, bits),
            Unit::Since => (1, 8),
            Unit::SinceIn(bits) => (1, bits),
            Unit::Rate(bits) => (2, bits),
            _ => return None,
        };
        let is_kind = !self.rate || kind == 2;
        if is_kind && (self.part.is_none() || bits == read) {
            return None;
        }
        // KiB says which it is.
        let near = bits.abs_diff(read) * 8 <= bits.max(read) && !self.part.is_some_and(|part| part.ends_with("ib"));
        let choices = self.choices();
        Some((choices.get(kind).or(choices.last())?.clone(), is_kind && near))
    }
}

pub(super) fn example(kind: &str) -> &'static str {
    match kind {
        "cells" => "208B",
        "segments" => "512B",
        _ => "1518B",
    }
}

/// `packets(1518B)`, `cells(208)`, `segments(512B)`.
fn counted(role: Role, text: &str, kind: &str, size: &str) -> Result<Unit, Problem> {
    let wrong = |message: &str| Problem::new(message).column(role.name()).value(text).accepted(role.accepted());
    if !matches!(kind, "packets" | "packet" | "pkts" | "cells" | "cell" | "segments" | "segment") {
        return Err(wrong("is no unit of it"));
    }
    let digits = size.strip_suffix(')').map(|s| s.trim().trim_end_matches('B').trim()).ok_or_else(|| wrong("lacks its ')'"))?;
    match digits.parse::<u64>() {
        Ok(bytes) if (1..=LARGEST).contains(&bytes) => Ok(Unit::Steps(bytes)),
        _ => Err(wrong("does not say a size from 1 B to 65535 B")),
    }
}
