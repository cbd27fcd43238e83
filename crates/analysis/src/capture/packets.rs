//! Captures: with stamps they are queue records, without they show arrivals only.

use crate::bursts::Confirmed;
use crate::capture::acks::Meter;
use crate::capture::connections::{RoundTrips, Talk};
use crate::capture::direction::{sort, Sorting};
use crate::capture::filter::CaptureFilter;
use crate::capture::frame_checks::{look_at, of_survey, Copies, FrameChecks, COPY_WITHOUT_NUMBER};
use crate::capture::links::{Key, LastPlace, Place, NONE};
use crate::capture::selection::Selection;
use crate::capture::sequence::ACK;
use crate::capture::survey::{tunnels_note, Survey};
use crate::checks::Finding;
use crate::display::count;
use crate::input::context::name_of;
use crate::input::context::{bytes_of, Connection, Context, Origin};
use crate::input::number::NumberError;
use crate::input::problem::{Problem, Problems};
use crate::input::reader::TraceReader;
use crate::input::reader::{Batch, BATCH};
use crate::{Record, MARKED, NO_DATA, NO_FLOW, NO_QUEUE};
use fanin_telemetry::{Registers, Unwrap};
use fanin_units::{Span, Time};
use fanin_wire::{Capture, CaptureError, Frame, Headers, Interface, LinkType, Trouble, ZEROS};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// Number of frames that are read to find out if a capture holds stamps.
const LOOK: usize = 20_000;

/// A receiver's clock that is less than this from a switch's is the same clock.
const SAME_CLOCK: u128 = 1_000_000_000_000;

/// Facts that the first frames of a capture show.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Look {
    /// Earliest time [ps].
    pub first: Option<u128>,
    pub stamped: bool,
    /// Speed of the interfaces, where all have the same.
    pub speed: Option<u64>,
    /// Stamps count from the same time as the capture's clock.
    pub same_clock: bool,
    /// Link types and names of the interfaces.
    pub interfaces: Vec<(LinkType, String)>,
}

pub fn unreadable(path: &Path, error: &CaptureError) -> Problem {
    Problem::new(error.what.clone()).file(path).place(format!("block {} at byte {}", error.block, error.offset))
}

/// Note on where a truncated capture ends.
pub fn ends_inside(path: &Path, error: &CaptureError) -> String {
    let place = format!("block {} at byte {}", error.block, error.offset);
    if error.what == ZEROS {
        let from = error.offset;
        return format!(
            "{}: from byte {from} on the file has zeros in the place of packets, as a loss of power leaves it; all packets before were read",
            path.display()
        );
    }
    format!("{}: the file ends inside {place}; all packets before were read", path.display())
}

/// Payload of a small segment, by which outstanding bytes are counted in segments.
const SEGMENT: u64 = 536;

type Input = Box<dyn Read + Send>;

/// Looks at the first frames of a capture.
///
/// # Errors
/// It is no capture, or damaged from the start.
pub fn look(path: &Path, input: Input, registers: Registers) -> Result<Look, Problem> {
    let mut capture = Capture::new(input).map_err(|e| unreadable(path, &e))?;
    let mut found = Look { same_clock: true, ..Look::default() };
    for _ in 0..LOOK {
        let frame = match capture.next_frame() {
            Ok(Some(frame)) => frame,
            Ok(None) => break,
            // Reading the whole capture reports what is wrong.
            Err(_) => break,
        };
        let Ok(time) = u128::try_from(frame.time_ps) else { continue };
        found.first = Some(found.first.map_or(time, |t| t.min(time)));
        let stamp = frame.headers().and_then(|headers| frame.stamp(&headers)).filter(fanin_telemetry::Stamp::is_stamped);
        if let Some(stamp) = stamp {
            found.stamped = true;
            let near = u64::try_from(time).map(|t| registers.time_near(stamp.time, Time::from_ps(t)).ps());
            found.same_clock &= near.is_ok_and(|near| u128::from(near).abs_diff(time) < SAME_CLOCK);
        }
    }
    let speeds: Vec<Option<u64>> = capture.interfaces().iter().map(|i| i.speed.filter(|s| *s > 0)).collect();
    found.interfaces = capture.interfaces().iter().map(|i| (i.link, i.name.clone())).collect();
    found.speed = speeds.first().copied().flatten().filter(|s| speeds.iter().all(|other| *other == Some(*s)));
    Ok(found)
}

/// Findings of the first reading of a capture: senders and receivers, and the frames that are arrivals at each port.
#[derive(Default)]
pub struct Surveyed {
    survey: Survey,
    sorting: Sorting,
    /// Selection of frames; `None` where stamps say which port it was.
    pub taken: Option<Selection>,
    notes: Vec<String>,
    rtts: RoundTrips,
    findings: Vec<Finding>,
    /// Hosts that sent the selected frames, by port.
    senders: Vec<(String, u64)>,
}

impl Surveyed {
    /// The survey, once the whole capture was read.
    pub fn survey(&self) -> &Survey {
        &self.survey
    }

    /// Step of the times, where all of them are whole microseconds or more.
    pub fn tick(&self) -> Option<Span> {
        self.survey.tick().map(Span::from_ps)
    }

    /// Findings of a first reading, of a capture of that name.
    ///
    /// # Errors
    /// It lacks what is asked for.
    pub fn of(
        reading: Reading,
        path: &Path,
        (stamped, stem): (bool, &str),
        filter: &CaptureFilter,
    ) -> Result<Surveyed, Problems> {
        let Reading { mut survey, interfaces, lost, .. } = reading;
        survey.end();
        let rtts = RoundTrips::of(&survey.links.links);
        let (sorting, taken, notes) = if stamped {
            (Sorting::default(), None, Vec::new())
        } else {
            let sorted = sort((&survey, &rtts), &interfaces, stem, filter);
            let (sorting, taken, mut notes) =
                sorted.map_err(|problems| problems.into_iter().map(|p| p.file(path)).collect::<Problems>())?;
            notes.extend(tunnels_note(&survey.tunnels));
            (sorting, Some(taken), notes)
        };
        let mut senders: BTreeMap<u32, BTreeSet<IpAddr>> = BTreeMap::new();
        let (mut counted, mut flows) = ((0, 0), BTreeSet::new());
        for (entry, link) in survey.links.links.iter().enumerate() {
            let port = sorting.port(entry as u32);
            if !stamped && port == NONE {
                continue;
            }
            counted = (counted.0 + link.packets, counted.1 + link.bytes);
            if link.key.has_ip() {
                senders.entry(port).or_default().insert(link.key.addresses().0);
            }
            if link.more.tcp && link.more.has_data {
                flows.insert(link.first);
            }
        }
        // A flow is there from its start if it was wherever it was captured first.
        let opened = flows.iter().filter(|first| survey.links.links[**first as usize].more.from_start).count();
        let flows = (flows.len() as u64, opened as u64);
        let mut findings = Vec::new();
        of_survey(&survey, &path.display().to_string(), lost, counted, flows, &mut findings);
        let named = senders
            .into_iter()
            .filter_map(|(port, hosts)| Some((sorting.names().get(port as usize)?.clone(), hosts.len() as u64)));
        let senders = named.collect();
        Ok(Surveyed { survey, sorting, taken, notes, rtts, findings, senders })
    }

    /// Evidence of the survey: data that passed a port, and its fate by acknowledgments.
    fn confirmed(&self, port: u32, meter: &Meter) -> Confirmed {
        let links = &self.survey.links.links;
        let there = links.iter().enumerate().filter(|(entry, link)| link.more.tcp && self.sorting.port(*entry as u32) == port);
        let flows: BTreeSet<u32> = there.map(|(_, link)| link.first).collect();
        let talks = || flows.iter().map(|first| &links[*first as usize].more);
        let open: Vec<u64> = talks().filter_map(Talk::outstanding).map(|bytes| u64::from(bytes).div_ceil(SEGMENT)).collect();
        Confirmed {
            rate_bps: meter.rate(),
            again: talks().map(|talk| talk.acks.again).sum(),
            unclear: talks().map(|talk| talk.acks.unclear).sum(),
            outstanding: (!open.is_empty()).then(|| open.iter().sum()),
            data_packets: meter.packets(),
        }
    }

    /// The ports of flows, by the entry where each was captured first.
    fn ports(&self) -> Vec<u32> {
        let links = &self.survey.links.links;
        let mut ports = vec![NONE; links.len()];
        for (entry, link) in links.iter().enumerate() {
            let port = self.sorting.port(entry as u32);
            if port != NONE {
                ports[link.first as usize] = port;
            }
        }
        ports
    }

    /// Adds a note to the report.
    pub fn note(&mut self, note: String) {
        self.notes.push(note);
    }
}

/// Tells title and name of the format that a frame with these headers looks like, if that is one of telemetry.
pub type Telemetry = fn(&Headers, &[u8]) -> Option<(&'static str, &'static str)>;

/// The first reading of a capture, or of several that follow one another.
pub struct Reading {
    survey: Survey,
    interfaces: Vec<Interface>,
    /// Packets that the capturing side lost.
    lost: u64,
    /// Recogniser of datagrams that look like telemetry, and the number of those by title and name of its format.
    is_telemetry: Telemetry,
    telemetry: BTreeMap<(&'static str, &'static str), u64>,
}

/// Datagrams that look like telemetry from which on that is told: few bytes look like a message.
const TOLD: u64 = 3;

impl Reading {
    /// `without_fcs`: frames count without check sequence and padding; `transfers`: those over TCP are told apart.
    pub fn new(without_fcs: bool, transfers: bool, is_telemetry: Telemetry) -> Reading {
        Reading {
            is_telemetry,
            survey: Survey::new(without_fcs, transfers),
            interfaces: Vec::new(),
            lost: 0,
            telemetry: BTreeMap::new(),
        }
    }

    /// Notes on datagrams that look like telemetry.
    pub fn looks(&self) -> Vec<String> {
        let told = self.telemetry.iter().filter(|(_, count)| **count >= TOLD);
        let note = |((title, name), count): (&(&str, &str), &u64)| {
            format!("{count} of its packets look like {title}, and count as traffic like the others: --format {name} reads what they say")
        };
        told.map(note).collect()
    }

    /// Time of the latest frame [ps].
    pub fn last(&self) -> Option<i128> {
        self.survey.last
    }

    /// Reads all frames of a capture; false: it was stopped.
    ///
    /// # Errors
    /// It is no capture.
    pub fn read(&mut self, path: &Path, (input, size): (Input, u64), seen: &mut dyn FnMut(f64) -> bool) -> Result<bool, Problem> {
        let read = Arc::new(AtomicU64::new(0));
        let mut capture = Capture::new(Counted { inner: input, read: read.clone() }).map_err(|e| unreadable(path, &e))?;
        let mut frames = 0_usize;
        // What is damaged is reported when the capture is read again.
        while let Ok(Some(frame)) = capture.next_frame() {
            if frame.time_ps >= 0 && !frame.is_notice_only() {
                let headers = frame.headers();
                if let Some(found) = headers.as_ref().and_then(|headers| (self.is_telemetry)(headers, frame.data)) {
                    *self.telemetry.entry(found).or_default() += 1;
                }
                self.survey.see(&frame, headers.as_ref());
            }
            frames += 1;
            if frames % BATCH == 0 && !seen(read.load(Ordering::Relaxed) as f64 / size.max(1) as f64) {
                return Ok(false);
            }
        }
        self.lost += capture.interfaces().iter().map(|i| i.lost).sum::<u64>();
        self.interfaces = capture.interfaces().to_vec();
        Ok(true)
    }
}

/// A stretch [ps after the capture's first frame] as times of the trace.
fn stretch((from, until): (i64, i64), first: i128, origin: Origin) -> Option<(Time, Time)> {
    let time = |at: i64| u128::try_from(first + i128::from(at)).ok().and_then(|at| origin.time(at).ok());
    time(from).zip(time(until))
}

/// A flow: its hosts, protocol and ports, and the VNI of packets in tunnels, whose tenants may have equal addresses.
pub type FlowKey = (IpAddr, IpAddr, u8, Option<(u16, u16)>, Option<u32>);

/// Connections that cross a port, as captures before it show them.
#[derive(Default)]
pub struct Connections {
    /// Time at which each connection opened [ps on the captures' clock]; `None`: it was there before.
    opened: BTreeMap<FlowKey, Option<u128>>,
    /// Time in which each sent about twice what was acknowledged [ps after the first frame of its capture, which is at ps of the captures' clock].
    doubled: BTreeMap<FlowKey, ((i64, i64), i128)>,
    /// Bytes of each that came again, where all that was sent is acknowledged.
    again: BTreeMap<FlowKey, u64>,
    rtts: RoundTrips,
    /// True if transfers are asked for.
    transfers: bool,
    /// Survey of the capture that is being read.
    present: Option<Survey>,
    /// Surveys with the transfers of each capture, if they are asked for.
    pub with_transfers: Vec<Survey>,
}

impl Connections {
    /// No connections yet; with the transfers of each capture, if asked for.
    pub fn new(transfers: bool) -> Connections {
        Connections { transfers, ..Connections::default() }
    }

    /// Takes a frame of the present capture that carries a packet and has a time, with its headers.
    #[inline]
    pub fn see(&mut self, frame: &Frame<'_>, headers: Option<&Headers>) {
        let transfers = self.transfers;
        let survey = self.present.get_or_insert_with(|| Survey::new(false, transfers));
        if transfers {
            survey.see(frame, headers);
        } else {
            survey.see_connection(frame, headers);
        }
    }

    /// Adds the connections of the present capture.
    pub fn end_of_file(&mut self) {
        let survey = self.present.take().unwrap_or_else(|| Survey::new(false, self.transfers));
        for link in survey.links.links.iter().filter(|link| link.key.has_ip()) {
            let (src, dst) = link.key.addresses();
            let key = (src, dst, link.key.protocol(), link.key.ports(), link.key.tenant());
            match link.more.outstanding() {
                Some(0) => *self.again.entry(key).or_default() += link.more.acks.again_bytes,
                // What is missing may yet come again.
                _ if link.more.has_data => drop(self.again.remove(&key)),
                _ => {}
            }
            self.doubled.extend(link.more.acks.doubled.zip(survey.first).map(|doubled| (key, doubled)));
            let at = link.more.opened().zip(survey.first).and_then(|(at, first)| u128::try_from(first + i128::from(at)).ok());
            let known = self.opened.entry(key).or_insert(at);
            *known = known.zip(at).map(|(a, b)| a.min(b));
        }
        self.rtts.join(&RoundTrips::of(&survey.links.links));
        self.with_transfers.extend(self.transfers.then_some(survey));
    }

    /// True if there are acknowledgments of all that some flow has sent.
    pub fn acknowledged(&self) -> bool {
        !self.again.is_empty()
    }

    /// Bytes of a flow that came again, where all that it sent was acknowledged.
    pub fn again(&self, key: &FlowKey) -> Option<u64> {
        self.again.get(key).copied()
    }

    /// Facts about a flow.
    pub fn of(&self, key: &FlowKey, origin: Origin) -> Connection {
        let hosts = (key.0, key.1);
        Connection {
            src: Some(hosts.0.to_string().into()),
            dst: Some(hosts.1.to_string().into()),
            doubled: self.doubled.get(key).and_then(|(range, first)| stretch(*range, *first, origin)),
            opened: self.opened.get(key).copied().flatten().and_then(|at| origin.time(at).ok()),
            base_rtt: if key.2 == 6 { self.rtts.between(hosts).map(Span::from_ps) } else { None },
        }
    }
}

/// A flow of the survey, or a port, that has no number in the trace yet.
const UNNUMBERED: u32 = NO_FLOW - 1;

/// Numbers in the trace of the flows and ports of a survey.
struct Numbers {
    surveyed: Arc<Surveyed>,
    /// True if times of the capture are times of the trace.
    same_clock: bool,
    flows: Vec<u32>,
    ports: Vec<u32>,
}

impl Numbers {
    fn flow(&mut self, entry: Option<u32>, headers: Option<&Headers>, context: &Context) -> Result<u32, Problem> {
        let Some(headers) = headers else { return Ok(NO_FLOW) };
        if let Some(known) = entry.map(|entry| self.flows[entry as usize]).filter(|known| *known != UNNUMBERED) {
            return Ok(known);
        }
        let hosts = (headers.src, headers.dst);
        let Surveyed { survey, rtts, .. } = &*self.surveyed;
        let talk = entry.map(|entry| &survey.links.first(entry).more);
        let opened = talk.and_then(Talk::opened).zip(survey.first).filter(|_| self.same_clock);
        let doubled = talk.and_then(|talk| talk.acks.doubled).zip(survey.first).filter(|_| self.same_clock);
        let connection = Connection {
            doubled: doubled.and_then(|(range, first)| stretch(range, first, context.origin)),
            src: Some(hosts.0.to_string().into()),
            dst: Some(hosts.1.to_string().into()),
            opened: opened.and_then(|(at, first)| context.origin.time(u128::try_from(first + i128::from(at)).ok()?).ok()),
            base_rtt: if headers.protocol == 6 && !context.rtt_given { rtts.between(hosts).map(Span::from_ps) } else { None },
        };
        let name = name_of(hosts, headers.ports, headers.protocol, headers.wrap.and_then(|wrap| wrap.tenant));
        let flow = context.flows.lock().connected(name.as_bytes(), || connection)?;
        if let Some(entry) = entry {
            self.flows[entry as usize] = flow;
        }
        Ok(flow)
    }

    fn port(&mut self, number: u32, name: impl FnOnce() -> String, context: &mut Context) -> Result<u32, Problem> {
        let number = number as usize;
        if number >= self.ports.len() {
            self.ports.resize(number + 1, UNNUMBERED);
        }
        if self.ports[number] == UNNUMBERED {
            self.ports[number] = context.ports.index(name().as_bytes())?;
        }
        Ok(self.ports[number])
    }

    /// Largest payload that the receiver of a flow takes; 0: unknown.
    fn mss(&self, entry: Option<u32>) -> u32 {
        let links = &self.surveyed.survey.links.links;
        let reverse = entry.map_or(NONE, |entry| self.surveyed.survey.links.first(entry).reverse);
        links.get(reverse as usize).map_or(0, |link| u32::from(link.more.mss))
    }
}

/// Data that passed each port, as far as acknowledgments confirm them.
struct Confirmations {
    /// Ports of flows by the entry where each was captured first; the latest acknowledgment of each, and meters by port.
    ports: Vec<u32>,
    latest: Vec<Option<u32>>,
    meters: Vec<Meter>,
}

impl Confirmations {
    fn of(surveyed: &Surveyed) -> Self {
        let ports = if surveyed.taken.is_some() { surveyed.ports() } else { Vec::new() };
        let meters = vec![Meter::default(); if ports.is_empty() { 0 } else { surveyed.sorting.names().len() }];
        Confirmations { latest: vec![None; ports.len()], ports, meters }
    }

    /// Takes a TCP frame at `time` [ps], whose acknowledgment is of the flow that was captured first at entry `of`.
    #[inline]
    fn see(&mut self, of: u32, ack: u32, time: u64) {
        let port = self.ports.get(of as usize).copied().unwrap_or(NONE);
        let Some(meter) = self.meters.get_mut(port as usize) else { return };
        let latest = &mut self.latest[of as usize];
        let new = latest.map_or(0, |latest| ack.wrapping_sub(latest));
        if latest.is_none() {
            *latest = Some(ack);
        } else if (new as i32) > 0 {
            *latest = Some(ack);
            meter.acknowledged(time, new);
        }
    }

    /// A packet with data was taken.
    #[inline]
    fn data(&mut self, port: u32, wire: u64, payload: u32) {
        if let Some(meter) = self.meters.get_mut(port as usize) {
            meter.data(wire, payload);
        }
    }
}

/// A capture that is being read.
pub struct Packets {
    path: PathBuf,
    capture: Capture<Counted>,
    size: u64,
    read: Arc<AtomicU64>,
    look: Look,
    numbers: Numbers,
    sorting: Sorting,
    registers: Registers,
    /// Names of the watched ports by the number in stamps, as far as a manifest names them.
    names: BTreeMap<u8, String>,
    unwraps: BTreeMap<u8, Unwrap>,
    last_place: LastPlace,
    frames: u64,
    /// Frames with nothing but a drop notification, which are no packets.
    notices: u64,
    without_stamp: u64,
    undated: u64,
    saturated: u64,
    truncated: Option<String>,
    /// The capture goes on where another one ends, which reports the findings of both.
    follows: bool,
    checks: FrameChecks,
    copies: Copies,
    confirmations: Confirmations,
}

/// Counts the bytes that are read of a file.
struct Counted {
    inner: Input,
    read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(buf)?;
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

impl Packets {
    /// Begins to read a capture of `size` bytes that was inspected before.
    ///
    /// # Errors
    /// It is no capture.
    pub fn new(
        path: &Path,
        (input, size): (Input, u64),
        (look, surveyed, follows): (Look, Arc<Surveyed>, bool),
        (registers, names): (Registers, BTreeMap<u8, String>),
    ) -> Result<Self, Problem> {
        let read = Arc::new(AtomicU64::new(0));
        let capture = Capture::new(Counted { inner: input, read: read.clone() }).map_err(|e| unreadable(path, &e))?;
        let numbers = Numbers {
            flows: vec![UNNUMBERED; surveyed.survey.links.links.len()],
            ports: Vec::new(),
            same_clock: !look.stamped || look.same_clock,
            surveyed: surveyed.clone(),
        };
        Ok(Packets {
            path: path.to_path_buf(),
            capture,
            size,
            read,
            look,
            numbers,
            sorting: surveyed.sorting.clone(),
            registers,
            names,
            unwraps: BTreeMap::new(),
            last_place: LastPlace::default(),
            frames: 0,
            notices: 0,
            without_stamp: 0,
            undated: 0,
            saturated: 0,
            truncated: None,
            follows,
            checks: FrameChecks::default(),
            copies: Copies::default(),
            confirmations: Confirmations::of(&surveyed),
        })
    }
}

impl TraceReader for Packets {
    fn next(&mut self, context: &mut Context, batch: &mut Batch) -> Result<bool, Problems> {
        batch.clear();
        batch.first_row = self.frames;
        let surveyed = self.numbers.surveyed.clone();
        let Packets { path, capture, look, numbers, sorting, registers, names, unwraps, last_place, checks, copies, .. } = self;
        let (confirmations, overhead) = (&mut self.confirmations, context.overhead);
        let numbered = !surveyed.survey.copies_unnumbered();
        let mut looked = 0_usize;
        while looked < BATCH {
            let frame = match capture.next_frame() {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(error) if error.trouble == Trouble::Truncated => {
                    self.truncated = Some(ends_inside(path, &error));
                    break;
                }
                Err(error) => return Err(unreadable(path, &error).into()),
            };
            let row = looked as u32;
            looked += 1;
            let Ok(ps) = u128::try_from(frame.time_ps) else {
                self.undated += 1;
                continue;
            };
            // Where queues have the switch's clock, the capture's own clock is of no use.
            context.notices.see(&frame, numbers.same_clock.then(|| context.origin.time(ps).ok()).flatten());
            if frame.is_notice_only() {
                self.notices += 1;
                continue;
            }
            let headers = frame.headers();
            let place = Place::of(&frame, headers.as_ref());
            let Some(channel) = surveyed.survey.links.channel(place, last_place) else { continue };
            let key = Key::of(channel, place, &frame, headers.as_ref());
            let entry = surveyed.survey.links.find(&key);
            let mut taken = NONE;
            let (time, queue, port) = if look.stamped {
                let stamp = headers.as_ref().and_then(|headers| frame.stamp(headers));
                let Some(stamp) = stamp.filter(fanin_telemetry::Stamp::is_stamped) else {
                    self.without_stamp += 1;
                    continue;
                };
                let time = if look.same_clock {
                    registers.time_near(stamp.time, Time::from_ps(u64::try_from(ps).unwrap_or(u64::MAX)))
                } else {
                    let unwrap = unwraps.entry(stamp.port).or_insert_with(|| Unwrap::after(1));
                    registers.time(unwrap.ticks(stamp.time))
                };
                self.saturated += u64::from(stamp.length == u16::MAX);
                let name = || names.get(&stamp.port).cloned().unwrap_or_else(|| format!("port {}", stamp.port));
                (time, registers.queue(stamp.length).get(), numbers.port(u32::from(stamp.port), name, context)?)
            } else {
                let port = match entry {
                    Some(entry) => sorting.port(entry),
                    None => sorting.port_of_other(channel, &key, &frame, headers.as_ref()),
                };
                if let (Some(entry), Some(tcp)) = (entry, headers.as_ref().and_then(|headers| headers.tcp.as_ref())) {
                    let of = surveyed.survey.links.first(entry).reverse;
                    if let (true, Ok(at)) = (tcp.flags & ACK != 0 && of != NONE, context.origin.time(ps)) {
                        confirmations.see(of, tcp.ack, at.ps());
                    }
                }
                if port == NONE {
                    continue;
                }
                let time = context.origin.time(ps).map_err(|error| {
                    let what = match error {
                        NumberError::Negative => "is before the start of the trace",
                        _ => "is more than 106 days after the start of the trace",
                    };
                    let place = format!("packet {}", self.frames + looked as u64);
                    Problem::new(what).file(path).place(place).value(format!("{ps} ps"))
                })?;
                let name = || sorting.names()[port as usize].clone();
                taken = port;
                (time, NO_QUEUE, numbers.port(port, name, context)?)
            };
            let bytes = bytes_of(&frame, headers.as_ref(), context.without_fcs);
            let flow = numbers.flow(entry, headers.as_ref(), context)?;
            checks.see(look_at(&frame, headers.as_ref(), bytes, || numbers.mss(entry)));
            let mut flags = 0;
            if let Some(headers) = &headers {
                let at = time.ps() as i64;
                let copy = if look.stamped { None } else { copies.since(&frame, headers, (flow, port), at, numbered) };
                if let Some(since) = copy.filter(|since| headers.id != 0 || *since <= COPY_WITHOUT_NUMBER) {
                    checks.copy(bytes, since);
                    continue;
                }
                flags |= if headers.ecn == 3 { MARKED } else { 0 };
                flags |= if headers.tcp.is_some() && headers.payload == 0 { NO_DATA } else { 0 };
                if headers.tcp.is_some() && headers.payload > 0 {
                    confirmations.data(taken, u64::from(bytes) + overhead, headers.payload);
                }
            }
            batch.packet(Record { time, queue, frame: bytes, flow, flags }, port, row);
        }
        self.frames += looked as u64;
        Ok(looked > 0)
    }

    fn place(&self, row: u64) -> String {
        format!("packet {row}")
    }

    fn progress(&self) -> f64 {
        self.read.load(Ordering::Relaxed) as f64 / self.size.max(1) as f64
    }

    fn finish(&mut self, context: &mut Context) {
        let file = self.path.display();
        let surveyed = &self.numbers.surveyed;
        if !self.follows {
            context.findings.extend(surveyed.findings.iter().cloned());
            context.senders.extend(surveyed.senders.iter().cloned());
            let taken = surveyed.taken.as_ref().and_then(Selection::note);
            context.notes.extend(surveyed.notes.iter().cloned().chain(taken).map(|note| format!("{file}: {note}")));
        }
        for (port, meter) in self.confirmations.meters.iter().enumerate() {
            let mut confirmed = surveyed.confirmed(port as u32, meter);
            // What was captured twice was not sent twice.
            confirmed.again = confirmed.again.saturating_sub(self.checks.copied());
            confirmed.unclear = confirmed.unclear.min(confirmed.again);
            if self.follows {
                // Of the whole capture, which the first file reports.
                (confirmed.again, confirmed.unclear, confirmed.outstanding) = (0, 0, None);
            }
            context.confirmed.push((surveyed.sorting.names()[port].clone(), confirmed));
        }
        let snap = self.capture.interfaces().iter().filter_map(|i| i.snap).min();
        self.checks.findings(&file.to_string(), snap, &mut context.findings);
        let notes = &mut context.notes;
        notes.extend(self.truncated.clone());
        if self.without_stamp > 0 {
            let packets = count(self.frames - self.notices, "packet");
            notes.push(format!("{file}: {} of {packets} passed over, for lack of a stamp", self.without_stamp));
        }
        if self.undated > 0 || self.capture.skipped().untimed > 0 {
            let packets = count(self.undated + self.capture.skipped().untimed, "packet");
            notes.push(format!("{file}: {packets} passed over, for lack of a time after 1970"));
        }
        if self.saturated > 0 {
            let longest = self.registers.queue(u16::MAX);
            notes.push(format!(
                "{file}: {} stamps have the largest length that the register holds ({longest}); those queues were that or longer",
                self.saturated
            ));
        }
        if self.look.stamped && !self.look.same_clock {
            let wrap = self.registers.wrap().as_secs_f64();
            notes.push(format!(
                "{file}: times are those of the switch's clock, which starts again every {wrap:.0} s; only differences count"
            ));
        }
    }
}
