//! Context that the readers of one trace share: port and flow numbers, the origin of time, notes.

use crate::bursts::Confirmed;
use crate::checks::Finding;
use crate::input::notices::Notices;
use crate::input::number::{date, NumberError};
use crate::input::problem::Problem;
use crate::{FlowInfo, FlowLookup, Sender, NO_FLOW};
use fanin_units::{BitRate, Span, Time};
use fanin_wire::{Frame, Headers, LinkType, FCS};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Largest number of ports of a trace.
const MAX_PORTS: usize = 4096;

/// Largest number of flows of a trace that have names of their own.
const MAX_FLOWS: usize = 1 << 24;

/// Numbers below this stand for flows of that number; above are flows that go by names.
const FIRST_NAMED: u32 = 1 << 20;

/// Places of names that were asked for lately, by a hash of the name: rows have the same few names again and again. What a place
/// holds must be compared with the name: it may be another's.
#[derive(Debug)]
struct Lately<const N: usize>(Vec<u32>);

impl<const N: usize> Default for Lately<N> {
    fn default() -> Self {
        Lately(vec![u32::MAX; N])
    }
}

impl<const N: usize> Lately<N> {
    /// Index of a name, to be set where it is new.
    #[inline]
    fn entry(&mut self, name: &[u8]) -> &mut u32 {
        let mix = |hash: u64, word: u64| (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut chunks = name.chunks_exact(8);
        let mut hash = name.len() as u64;
        for chunk in &mut chunks {
            hash = mix(hash, u64::from_le_bytes(chunk.try_into().unwrap_or_default()));
        }
        let rest = chunks.remainder().iter().fold(0, |rest, byte| rest << 8 | u64::from(*byte));
        hash = mix(hash, rest);
        &mut self.0[(hash >> 32) as usize % N]
    }
}

/// Names of ports, in order of appearance.
#[derive(Debug, Default)]
pub struct Ports {
    names: Vec<String>,
    index: BTreeMap<Vec<u8>, u32>,
    lately: Lately<1024>,
}

impl Ports {
    /// The index of a port.
    ///
    /// # Errors
    /// There are too many.
    pub fn index(&mut self, name: &[u8]) -> Result<u32, Problem> {
        let lately = self.lately.entry(name);
        let is = |index: u32| self.names.get(index as usize).is_some_and(|known| known.as_bytes() == name);
        if is(*lately) {
            return Ok(*lately);
        }
        if let Some(index) = self.index.get(name) {
            // Bytes that are no text have a name that another port may have as well.
            if is(*index) {
                *lately = *index;
            }
            return Ok(*index);
        }
        if self.names.len() == MAX_PORTS {
            return Err(Problem::new(format!("is one port too many: {MAX_PORTS} are accepted"))
                .value(String::from_utf8_lossy(name))
                .suggestion("is this the column of the ports? --columns says which one is"));
        }
        let index = self.names.len() as u32;
        self.names.push(String::from_utf8_lossy(name).into_owned());
        self.index.insert(name.to_vec(), index);
        Ok(index)
    }

    pub fn names(&self) -> &[String] {
        &self.names
    }
}

/// Facts about a flow in a result.
#[derive(Clone, Debug)]
pub struct Known {
    pub src: Arc<str>,
    pub dst: Arc<str>,
    pub id: Option<Arc<str>>,
    pub start: Time,
    pub base_rtt: Option<Span>,
    pub sender: Sender,
}

/// Facts about a flow in a capture. Everything may be absent.
#[derive(Clone, Debug, Default)]
pub struct Connection {
    pub src: Option<Arc<str>>,
    pub dst: Option<Arc<str>>,
    /// Time at which the flow's SYN passed, if nothing of it passed before.
    pub opened: Option<Time>,
    pub base_rtt: Option<Span>,
    /// Time in which the flow sent about twice what was acknowledged, from and to.
    pub doubled: Option<(Time, Time)>,
}

/// Flows by number.
#[derive(Debug, Default)]
pub struct Flows {
    /// Names of flows, and facts that captures show of them.
    names: Vec<(Arc<str>, Connection)>,
    index: BTreeMap<Box<[u8]>, u32>,
    lately: Lately<{ 1 << 14 }>,
    /// Time at which each flow was opened, if its first packet is a SYN: of flows in tables that show SYNs.
    opened: BTreeMap<u32, Option<Time>>,
    /// Flows of a result's flows.parquet, by number.
    pub known: BTreeMap<u32, Known>,
}

impl Flows {
    /// The number of a flow that goes by a name.
    ///
    /// # Errors
    /// There are too many.
    pub fn named(&mut self, name: &[u8]) -> Result<u32, Problem> {
        self.connected(name, Connection::default)
    }

    /// Number of a flow that a capture shows.
    ///
    /// # Errors
    /// There are too many.
    pub fn connected(&mut self, name: &[u8], connection: impl FnOnce() -> Connection) -> Result<u32, Problem> {
        if name.is_empty() {
            return Ok(NO_FLOW);
        }
        let lately = self.lately.entry(name);
        let is = |flow: u32| {
            let known = flow.checked_sub(FIRST_NAMED).and_then(|i| self.names.get(i as usize));
            known.is_some_and(|known| known.0.as_bytes() == name)
        };
        if is(*lately) {
            return Ok(*lately);
        }
        if let Some(index) = self.index.get(name) {
            if is(*index) {
                *lately = *index;
            }
            return Ok(*index);
        }
        if self.names.len() == MAX_FLOWS {
            return Err(Problem::new(format!("is one flow too many: {MAX_FLOWS} are accepted"))
                .value(String::from_utf8_lossy(name))
                .suggestion("leave the flow out of --columns"));
        }
        let index = FIRST_NAMED + self.names.len() as u32;
        self.names.push((String::from_utf8_lossy(name).into(), connection()));
        self.index.insert(name.into(), index);
        Ok(index)
    }

    /// The number of a flow that goes by a number.
    ///
    /// # Errors
    /// There are too many.
    pub fn numbered(&mut self, number: u64) -> Result<u32, Problem> {
        match u32::try_from(number) {
            Ok(small) if small < FIRST_NAMED => Ok(small),
            _ => self.named(number.to_string().as_bytes()),
        }
    }

    /// Notes a packet of a flow in a table that shows SYNs; `opened`: its time, if it is a SYN.
    pub fn saw(&mut self, flow: u32, opened: Option<Time>) {
        if flow != NO_FLOW {
            self.opened.entry(flow).or_insert(opened);
        }
    }

    /// Number of flows that are remembered by name, or with their first packet.
    pub fn remembered(&self) -> usize {
        self.names.len().max(self.opened.len())
    }

    fn info(&self, flow: u32) -> FlowInfo {
        if let Some(known) = self.known.get(&flow) {
            let name = match &known.id {
                Some(id) => format!("{id}: {} → {}", known.src, known.dst),
                None => format!("{flow}: {} → {}", known.src, known.dst),
            };
            return FlowInfo {
                src: Some(known.src.clone()),
                dst: Some(known.dst.clone()),
                start: Some(known.start),
                opened: None,
                base_rtt: known.base_rtt,
                sender: known.sender.clone(),
                doubled: None,
                name: name.into(),
            };
        }
        let shown = self.opened.get(&flow).copied().flatten();
        match flow.checked_sub(FIRST_NAMED).and_then(|i| self.names.get(i as usize)).cloned() {
            Some((name, Connection { src, dst, opened, base_rtt, doubled })) => {
                let sender = Sender::of_name(&name);
                FlowInfo { src, dst, start: None, opened: opened.or(shown), base_rtt, sender, doubled, name }
            }
            None => FlowInfo { name: flow.to_string().into(), opened: shown, ..FlowInfo::default() },
        }
    }
}

/// `10.0.0.1:80 > 10.0.0.2:5000 tcp`
pub fn name_of((src, dst): (IpAddr, IpAddr), ports: Option<(u16, u16)>, protocol: u8, tenant: Option<u32>) -> String {
    let (from, to) = match ports {
        Some((from, to)) => (format!(":{from}"), format!(":{to}")),
        None => (String::new(), String::new()),
    };
    let host = |address: IpAddr| match address {
        IpAddr::V6(v6) if ports.is_some() => format!("[{v6}]"),
        other => other.to_string(),
    };
    let protocol = match protocol {
        6 => "tcp".to_string(),
        17 => "udp".to_string(),
        other => format!("protocol {other}"),
    };
    let network = tenant.map_or_else(String::new, |network| format!(" vni {network}"));
    format!("{}{from} > {}{to} {protocol}{network}", host(src), host(dst))
}

/// Flows that the analysis asks for while they are still being learnt.
#[derive(Clone, Debug, Default)]
pub struct SharedFlows(Arc<Mutex<Flows>>);

impl SharedFlows {
    pub fn lock(&self) -> MutexGuard<'_, Flows> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn lookup(&self) -> FlowLookup {
        let flows = self.clone();
        Arc::new(move |flow| flows.lock().info(flow))
    }
}

/// Picoseconds in a second.
pub const SECOND: u128 = 1_000_000_000_000;

/// Latest time of a trace after its origin [ps]: 106 days.
const LATEST: u128 = 1 << 63;

/// Time zero of the analysis: zero of the trace's own clock, or a whole second of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    seconds: u64,
}

impl Origin {
    /// Origin for a trace whose first record has this time on its own clock [ps]: zero, unless that is more than 106 days ago;
    /// then the whole second at least 10 ms before.
    pub fn of(first: u128) -> Self {
        if first < LATEST {
            return Origin::default();
        }
        Origin { seconds: u64::try_from((first - SECOND / 100) / SECOND).unwrap_or(u64::MAX) }
    }

    /// The times on the trace's own clock that the analysis can take [ps]: from the first to below the second.
    pub fn range(self) -> (u128, u128) {
        let zero = u128::from(self.seconds) * SECOND;
        (zero, zero + LATEST)
    }

    /// Seconds of the trace's own clock.
    pub fn seconds(self) -> u64 {
        self.seconds
    }

    /// A time of the trace's own clock as time of the analysis.
    ///
    /// # Errors
    /// It is before the origin, or too long after.
    #[inline]
    pub fn time(self, ps: u128) -> Result<Time, NumberError> {
        let (from, to) = self.range();
        let after = ps.checked_sub(from).ok_or(NumberError::Negative)?;
        if ps >= to {
            return Err(NumberError::TooLarge);
        }
        Ok(Time::from_ps(after as u64))
    }

    /// A stretch of the analysis as times of the trace's own clock [ps], its ends included.
    pub fn window(self, (from, to): (Time, Time)) -> (i128, i128) {
        let zero = i128::from(self.seconds) * SECOND as i128;
        (zero + i128::from(from.ps()), zero + i128::from(to.ps()))
    }

    /// Note on the origin, where it is not zero.
    pub fn note(self) -> Option<String> {
        (self.seconds > 0).then(|| {
            let seconds = self.seconds;
            let calendar = if seconds < 32_503_680_000 { format!(" ({})", date(seconds)) } else { String::new() };
            format!("times count from second {seconds} of the trace's clock{calendar}")
        })
    }
}

/// Context that the readers of one trace share.
#[derive(Debug, Default)]
pub struct Context {
    pub ports: Ports,
    pub flows: SharedFlows,
    pub origin: Origin,
    pub notes: Vec<String>,
    pub notices: Notices,
    /// Frames count without check sequence and padding.
    pub without_fcs: bool,
    /// Bytes by frame that take time on the wire and no room in the queue.
    pub overhead: u64,
    /// Speed of the ports, where the user gave it.
    pub rate: Option<BitRate>,
    /// True if the user gave a round trip, which overrides those of captures.
    pub rtt_given: bool,
    /// Findings that contradict the trace.
    pub findings: Vec<Finding>,
    /// Ports under whose names several sources are mixed, as their readers found: what was dropped there is unknown.
    pub mixed: BTreeSet<u32>,
    /// Hosts that sent to ports of captures.
    pub senders: Vec<(String, u64)>,
    /// Evidence of captures about frames that passed their ports.
    pub confirmed: Vec<(String, Confirmed)>,
    /// Rows that were passed over as they are wrong; `None`: one is enough to refuse the whole file.
    pub refused: Option<Refused>,
}

impl Context {
    /// True for a stream that is analysed as it comes.
    pub fn is_live(&self) -> bool {
        self.refused.is_some()
    }
}

/// Problems that are kept of rows that were passed over.
const REFUSED: usize = 8;

/// Rows of a stream that were passed over, and the latest problems with them.
#[derive(Debug, Default)]
pub struct Refused {
    pub rows: u64,
    pub latest: std::collections::VecDeque<Problem>,
}

impl Refused {
    /// Adds wrong rows, of which some are described.
    pub fn add(&mut self, rows: u64, problems: Vec<Problem>) {
        self.rows += rows;
        self.latest.extend(problems);
        self.latest.drain(..self.latest.len().saturating_sub(REFUSED));
    }
}

/// Largest frame that is believed [bytes].
const MOST_BYTES: u32 = 1 << 24;
/// Smallest frame of Ethernet [bytes].
const SHORTEST: u32 = 64;

/// Bytes of a frame as the port's queue counts them.
///
/// Of a frame that a switch mirrored to where it was captured, its own: that is what the port saw, and the headers of the mirror are
/// not. All other tunnels crossed the port as they are.
pub fn bytes_of(frame: &Frame<'_>, headers: Option<&Headers>, without_fcs: bool) -> u32 {
    if let Some(mirror) = headers.and_then(|headers| headers.wrap?.mirror) {
        let bytes = if without_fcs { mirror.length.max(1) } else { mirror.length.saturating_add(FCS.into()).max(SHORTEST) };
        return bytes.min(MOST_BYTES);
    }
    let notice = || frame.notice().map_or(0, |notice| notice.size() as u32);
    // Of a cooked frame without the header that stands for Ethernet's.
    let bytes = match (without_fcs, frame.link) {
        (true, LinkType::Ethernet) => frame.length.saturating_sub(notice() + u32::from(frame.check_sequence())).max(1),
        (true, LinkType::LinuxSll) => frame.length.saturating_sub(2),
        (true, LinkType::LinuxSll2) => frame.length.saturating_sub(6),
        _ => frame.frame_bytes(),
    };
    bytes.min(MOST_BYTES)
}

impl Context {
    /// Adds the flows of a result.
    pub fn know(&mut self, known: BTreeMap<u32, Known>) {
        self.flows.lock().known = known;
    }

    /// Adds a note to the report, once.
    pub fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_a_simulation_stay_and_times_since_1970_count_from_a_second_before_the_first() {
        assert_eq!(Origin::of(5), Origin::default());
        let first = 1_763_725_651 * SECOND + 20_000_000_000;
        let origin = Origin::of(first);
        assert_eq!(origin.seconds(), 1_763_725_651);
        assert_eq!(origin.time(first).unwrap(), Time::from_ps(20_000_000_000));
        assert_eq!(Origin::of(1_763_725_651 * SECOND + 5).seconds(), 1_763_725_650, "room for records that come late");
        assert_eq!(origin.time(5), Err(NumberError::Negative));
        assert_eq!(origin.time(first + LATEST), Err(NumberError::TooLarge));
        assert_eq!(origin.note().unwrap(), "times count from second 1763725651 of the trace's clock (2025-11-21T11:47:31Z)");
    }

    #[test]
    fn flows_keep_small_numbers_and_get_small_numbers_for_names() {
        let shared = SharedFlows::default();
        let lookup = shared.lookup();
        let (a, big, b) = {
            let mut flows = shared.lock();
            assert_eq!(flows.numbered(7).unwrap(), 7);
            (flows.named(b"10.0.0.1:80 > x").unwrap(), flows.numbered(1 << 40).unwrap(), flows.named(b"y").unwrap())
        };
        assert_eq!((big - a, b - a), (1, 2));
        assert_eq!(&*lookup(7).name, "7");
        assert_eq!(&*lookup(a).name, "10.0.0.1:80 > x");
        assert_eq!(&*lookup(big).name, "1099511627776");
        assert_eq!(shared.lock().named(b"y").unwrap(), b);
        assert_eq!(shared.lock().named(b"").unwrap(), NO_FLOW);
        let seen = || Connection { src: Some("10.0.0.2".into()), opened: Some(Time::from_ps(5)), ..Connection::default() };
        let c = shared.lock().connected(b"10.0.0.2 > x", seen).unwrap();
        assert_eq!((lookup(c).src.as_deref(), lookup(c).opened, lookup(a).src), (Some("10.0.0.2"), Some(Time::from_ps(5)), None));
    }

    #[test]
    fn bytes_that_are_no_text_are_no_name_of_another() {
        // Shown alike, they are three ports and three flows, however often they are asked for.
        let names: [&[u8]; 3] = [b"\xff", "\u{fffd}".as_bytes(), b"\xfe"];
        let (mut ports, mut flows) = (Ports::default(), Flows::default());
        for _ in 0..3 {
            for (index, name) in names.iter().enumerate() {
                assert_eq!(ports.index(name).unwrap(), index as u32);
                assert_eq!(flows.named(name).unwrap(), FIRST_NAMED + index as u32);
            }
        }
        // Many more than are remembered.
        for turn in 0..2 {
            for i in 0..40_000_u32 {
                assert_eq!(flows.named(format!("10.0.{i}.1:80").as_bytes()).unwrap(), FIRST_NAMED + 3 + i, "turn {turn}");
            }
        }
    }

    #[test]
    fn too_many_ports_are_an_error() {
        let mut ports = Ports::default();
        for i in 0..MAX_PORTS {
            assert_eq!(ports.index(format!("p{i}").as_bytes()).unwrap(), i as u32);
        }
        assert_eq!(ports.index(b"p17").unwrap(), 17);
        assert!(ports.index(b"one more").unwrap_err().to_string().contains("4096 are accepted"));
    }
}
