//! Captures: with stamps they are queue records, without they show arrivals only.

use super::context::{Batch, Context, BATCH};
use super::number::NumberError;
use super::problem::{Problem, Problems};
use super::TraceReader;
use crate::{Record, MARKED, NO_FLOW, NO_QUEUE};
use fanin_telemetry::{Registers, Unwrap};
use fanin_units::Time;
use fanin_wire::{Capture, CaptureError, Direction, Headers, Interface, Trouble};
use std::collections::BTreeMap;
use std::io::Read;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// Frames that are read to find out whether a capture holds stamps.
const LOOK: usize = 20_000;

/// A receiver's clock that is less than this from a switch's is the same clock.
const SAME_CLOCK: u128 = 1_000_000_000_000;

/// What a look at a capture found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Look {
    /// Earliest time [ps].
    pub first: Option<u128>,
    pub stamped: bool,
    /// Speed of its interfaces, where they all have the same.
    pub speed: Option<u64>,
    /// Stamps count from the same time as the capture's clock.
    pub same_clock: bool,
}

fn unreadable(path: &Path, error: &CaptureError) -> Problem {
    Problem::new(error.what.clone()).file(path).place(format!("block {} at byte {}", error.block, error.offset))
}

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
    found.speed = speeds.first().copied().flatten().filter(|s| speeds.iter().all(|other| *other == Some(*s)));
    Ok(found)
}

/// A capture that is being read.
pub struct Packets {
    path: PathBuf,
    capture: Capture<Counted>,
    size: u64,
    read: Arc<AtomicU64>,
    look: Look,
    registers: Registers,
    /// Names of the watched ports by the number in stamps, as far as a manifest names them.
    names: BTreeMap<u8, String>,
    /// What the port is called where the capture names no interface.
    port: String,
    unwraps: BTreeMap<u8, Unwrap>,
    frames: u64,
    /// Frames with nothing but a drop notification, which are no packets.
    notices: u64,
    without_stamp: u64,
    undated: u64,
    saturated: u64,
    truncated: Option<String>,
    flow: Option<(Key, u32)>,
}

/// What identifies a flow.
type Key = (IpAddr, IpAddr, u8, Option<(u16, u16)>);

/// Counts what is read of a file.
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
        input: Input,
        size: u64,
        look: Look,
        (registers, names): (Registers, BTreeMap<u8, String>),
        port: String,
    ) -> Result<Self, Problem> {
        let read = Arc::new(AtomicU64::new(0));
        let capture = Capture::new(Counted { inner: input, read: read.clone() }).map_err(|e| unreadable(path, &e))?;
        Ok(Packets {
            path: path.to_path_buf(),
            capture,
            size,
            read,
            look,
            registers,
            names,
            port,
            unwraps: BTreeMap::new(),
            frames: 0,
            notices: 0,
            without_stamp: 0,
            undated: 0,
            saturated: 0,
            truncated: None,
            flow: None,
        })
    }
}

/// `10.0.0.1:80 > 10.0.0.2:5000 tcp`
fn flow_name(headers: &Headers) -> String {
    name_of((headers.src, headers.dst), headers.ports, headers.protocol)
}

/// The same from what makes a flow.
pub fn name_of((src, dst): (IpAddr, IpAddr), ports: Option<(u16, u16)>, protocol: u8) -> String {
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
    format!("{}{from} > {}{to} {protocol}", host(src), host(dst))
}

fn port_name(interface: &Interface, direction: Option<Direction>, otherwise: &str) -> String {
    let name = if interface.name.is_empty() { otherwise } else { &interface.name };
    match direction {
        Some(Direction::In) => format!("{name} in"),
        Some(Direction::Out) => format!("{name} out"),
        None => name.to_string(),
    }
}

impl TraceReader for Packets {
    fn next(&mut self, context: &mut Context, batch: &mut Batch) -> Result<bool, Problems> {
        batch.clear();
        batch.first_row = self.frames;
        let mut looked = 0_usize;
        let mut names: BTreeMap<(usize, u8), u32> = BTreeMap::new();
        while looked < BATCH {
            let frame = match self.capture.next_frame() {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(error) if error.trouble == Trouble::Truncated => {
                    self.truncated = Some(format!("block {} at byte {}", error.block, error.offset));
                    break;
                }
                Err(error) => return Err(unreadable(&self.path, &error).into()),
            };
            let row = looked as u32;
            looked += 1;
            let Ok(ps) = u128::try_from(frame.time_ps) else {
                self.undated += 1;
                continue;
            };
            // Where queues have the switch's clock, the capture's own clock is of no use.
            let clock = !self.look.stamped || self.look.same_clock;
            context.notices.see(&frame, clock.then(|| context.origin.time(ps).ok()).flatten());
            if frame.is_notice_only() {
                self.notices += 1;
                continue;
            }
            let headers = frame.headers();
            let bytes = frame.frame_bytes().min(1 << 24);
            let stamp = match &headers {
                Some(headers) if self.look.stamped => frame.stamp(headers).filter(fanin_telemetry::Stamp::is_stamped),
                _ => None,
            };
            let (interface, direction) = (frame.interface, frame.direction);
            let late = |error: NumberError| {
                let what = match error {
                    NumberError::Negative => "is before the start of the trace",
                    _ => "is more than 106 days after the start of the trace",
                };
                Problem::new(what)
                    .file(&self.path)
                    .place(format!("packet {}", self.frames + looked as u64))
                    .value(format!("{ps} ps"))
            };
            let (time, queue, port) = match stamp {
                Some(stamp) => {
                    let time = if self.look.same_clock {
                        self.registers.time_near(stamp.time, Time::from_ps(u64::try_from(ps).unwrap_or(u64::MAX)))
                    } else {
                        let unwrap = self.unwraps.entry(stamp.port).or_insert_with(|| Unwrap::after(1));
                        self.registers.time(unwrap.ticks(stamp.time))
                    };
                    self.saturated += u64::from(stamp.length == u16::MAX);
                    let port = match names.get(&(usize::MAX, stamp.port)) {
                        Some(port) => *port,
                        None => {
                            let name = self.names.get(&stamp.port).cloned().unwrap_or_else(|| format!("port {}", stamp.port));
                            let port = context.ports.index(name.as_bytes())?;
                            names.insert((usize::MAX, stamp.port), port);
                            port
                        }
                    };
                    (time, self.registers.queue(stamp.length).get(), port)
                }
                None if self.look.stamped => {
                    self.without_stamp += 1;
                    continue;
                }
                None => {
                    let time = context.origin.time(ps).map_err(late)?;
                    let way = direction.map_or(0, |d| if d == Direction::In { 1 } else { 2 });
                    let port = match names.get(&(interface, way)) {
                        Some(port) => *port,
                        None => {
                            let name = port_name(&self.capture.interfaces()[interface], direction, &self.port);
                            let port = context.ports.index(name.as_bytes())?;
                            names.insert((interface, way), port);
                            port
                        }
                    };
                    (time, NO_QUEUE, port)
                }
            };
            let flow = match &headers {
                None => NO_FLOW,
                Some(headers) => {
                    let key = (headers.src, headers.dst, headers.protocol, headers.ports);
                    match self.flow {
                        Some((last, flow)) if last == key => flow,
                        _ => {
                            let src = || Some(headers.src.to_string().into());
                            let flow = context.flows.lock().named_from(flow_name(headers).as_bytes(), src)?;
                            self.flow = Some((key, flow));
                            flow
                        }
                    }
                }
            };
            let flags = if headers.is_some_and(|h| h.ecn == 3) { MARKED } else { 0 };
            batch.records.push(Record { time, queue, frame: bytes, flow, flags });
            batch.ports.push(port);
            batch.rows.push(row);
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
        let notes = &mut context.notes;
        if let Some(place) = &self.truncated {
            notes.push(format!("{file}: the file ends inside {place}; all packets before were read"));
        }
        if self.without_stamp > 0 {
            let packets = self.frames - self.notices;
            notes.push(format!("{file}: {} of {packets} packets carry no stamp and were passed over", self.without_stamp));
        }
        if self.undated > 0 || self.capture.skipped().untimed > 0 {
            let packets = self.undated + self.capture.skipped().untimed;
            notes.push(format!("{file}: {packets} packets have no time, or one before 1970, and were passed over"));
        }
        let lost: u64 = self.capture.interfaces().iter().map(|i| i.lost).sum();
        if lost > 0 {
            notes.push(format!("{file}: the capturing side lost {lost} packets"));
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
