//! The packets of one side of a port, in order of time: from one capture, or from several that follow one another.

use super::identity::{Match, Seen};
use crate::capture::frame_checks::{look_at, FrameChecks};
use crate::capture::links::{name_of_number, number_named, number_of};
use crate::capture::survey::Grain;
use crate::capture::{ends_inside, unreadable, CaptureFile, Connections};
use crate::display::count;
use crate::input::problem::{Problem, Problems};
use crate::input::sorter::{unsorted, Sorted, Sorter};
use fanin_units::prefetch;
use fanin_wire::{Capture, Direction, Trouble, Tunnel};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::Read;
use std::sync::Arc;

/// Number of packets that are read ahead: one may overtake so many others.
const AHEAD: usize = 256;
/// Number of packets that are sorted in memory at a time; runs of so many are merged. Tests have few packets, and several runs of
/// them.
const SORTED: usize = if cfg!(test) { 300 } else { 1 << 17 };
/// Number of packets before its turn at which what a packet needs is fetched.
pub const SOONER: usize = 8;
/// Number of places by which copies of a packet are recognised, and their largest distance, in packets and time [ps].
const PLACES: usize = 1 << 13;
const NEAR: u32 = 1 << 14;
const SOON: i64 = 1_000_000_000_000;
/// Time of a place at which no packet was [ps].
const LONG_AGO: i64 = -2 * SOON;
/// Largest time after the first packet that is told apart [ps]: no trace is so long.
const MOST_TIME: i128 = 1 << 62;
/// Share of packets, one in so many, captured at two interfaces from which the capture is of both; and number of interfaces that
/// are named then.
const TWICE: u64 = 10;
const NAMED: usize = 16;

/// A time before all others, and far enough from the edge to be calculated with [ps].
pub const NEVER: i128 = -(1 << 120);

/// Place at which the packets of a side were captured, in a file that holds several: the interface's name, its number on the
/// host, or its place in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub interface: String,
    /// Direction of the frames: the other way at that interface is another port's. None: both are taken.
    pub direction: Option<Direction>,
}

impl Place {
    /// True if a frame was captured here: at the interface of that place in the file, name and number.
    pub fn has(&self, index: usize, name: &str, number: Option<u32>) -> bool {
        number.map_or_else(|| self.is(index, name), |number| self.number() == Some(number))
    }

    /// The number of the interface, `4` or `if4`, or of the mirror's session, `session7`, as ports of captures are called.
    fn number(&self) -> Option<u32> {
        number_named(&self.interface)
    }

    /// True if the place is the interface at that index in the file, which has that name: `#0` is the first.
    fn is(&self, index: usize, name: &str) -> bool {
        self.interface.strip_prefix('#').map_or(self.interface == name, |place| place.parse() == Ok(index))
    }
}

/// Settings of the reading of one side.
#[derive(Clone, Debug)]
pub struct How {
    pub matching: Match,
    pub without_fcs: bool,
    /// The whole side is sorted before anything is handed over.
    pub sorted: bool,
    /// Hosts behind the port, as this side knows them: packets from them go the other way.
    pub behind: Arc<BTreeSet<u64>>,
    pub place: Option<Place>,
}

/// Frames that were passed over.
#[derive(Clone, Debug, Default)]
pub struct Passed {
    pub frames: u64,
    /// Frames at other interfaces, or the other way at this one.
    pub other_place: u64,
    pub not_ip: u64,
    pub undated: u64,
    pub other_way: u64,
    pub copies: u64,
    /// Copies that were captured at another interface, and the packets of each interface by its name.
    pub elsewhere: u64,
    pub interfaces: BTreeMap<String, u64>,
    /// Packets that were captured after later ones by more places than are put in order, and the latest by how much [ps].
    pub late: u64,
    pub late_by: i128,
    /// Packets that the capturing side reports as lost.
    pub lost: u64,
    /// Files that end inside a block, and where.
    pub truncated: Vec<String>,
    /// Bytes that the captures keep of a frame, at least.
    pub snap: Option<u32>,
    /// Granularity of the times.
    pub grain: Grain,
    /// Packets by the outermost tunnel that they were in.
    pub tunnels: BTreeMap<Tunnel, u64>,
    /// True if frames can be packets.
    pub checks: FrameChecks,
}

type Input = Box<dyn Read + Send>;

/// Packets that were captured lately, by their names.
struct Copies {
    /// Time of the first packet [ps].
    zero: Option<i128>,
    /// Name, time after the first packet [ps], number (its last bits), and interface.
    places: Vec<(u64, i64, u32, u32)>,
}

impl Copies {
    /// True if the packet, number `at`, was captured here a moment ago; counts it if that was `elsewhere`.
    #[inline]
    fn has(&mut self, seen: &Seen, at: u64, elsewhere: &mut u64) -> bool {
        if !seen.unique {
            return false;
        }
        let name = seen.name();
        let place = &mut self.places[name as usize % PLACES];
        let time = (seen.time - *self.zero.get_or_insert(seen.time)).min(MOST_TIME) as i64;
        let copy = place.0 == name && (at as u32).wrapping_sub(place.2) < NEAR && time - place.1 < SOON;
        if !copy {
            *place = (name, time, at as u32, seen.interface);
        } else if seen.interface != place.3 {
            *elsewhere += 1;
        }
        copy
    }

    /// Hints that a packet is looked for soon.
    #[inline]
    fn soon(&self, seen: &Seen) {
        prefetch(&self.places[seen.name() as usize % PLACES]);
    }
}

/// One side, being read.
pub struct Side {
    files: Arc<[CaptureFile]>,
    how: How,
    /// The file that is read next, and the one that is open.
    file: usize,
    capture: Option<Capture<Input>>,
    read: u64,
    /// Packets read ahead in order of time, of equal times as they came. Packets stay in their places until they are handed over:
    /// a copy that was just written costs more than to read it.
    ahead: VecDeque<Seen>,
    /// True if the first of them is the next one.
    ready: bool,
    sorted: Option<Sorted<Seen>>,
    /// Packets that were handed over.
    count: u64,
    latest: i128,
    copies: Copies,
    /// Packets by interface, until the file ends; and of the one that the last packets were captured at.
    packets: BTreeMap<(usize, Option<u32>), u64>,
    here: ((usize, Option<u32>), u64),
    pub passed: Passed,
    /// Connections of the captures, if they are to be found as well.
    pub connections: Option<Connections>,
}

impl Side {
    pub fn new(files: Arc<[CaptureFile]>, how: How) -> Side {
        Side {
            files,
            how,
            file: 0,
            capture: None,
            read: 0,
            ahead: VecDeque::with_capacity(AHEAD + 1),
            ready: false,
            sorted: None,
            count: 0,
            latest: NEVER,
            copies: Copies { zero: None, places: vec![(0, LONG_AGO, 0, 0); PLACES] },
            packets: BTreeMap::new(),
            here: ((0, None), 0),
            passed: Passed::default(),
            connections: None,
        }
    }

    /// Problem with a side, once it has been read, that holds packets of several places, and none of them was asked for.
    pub fn ambiguous(&self, option: &'static str) -> Option<Problem> {
        let all = self.passed.checks.frames();
        if self.how.place.is_some() || self.passed.elsewhere * TWICE <= all {
            return None;
        }
        let interfaces = self.passed.interfaces.iter().map(|(name, packets)| format!("{name} ({})", count(*packets, "packet")));
        let places: Vec<String> = interfaces.take(NAMED).collect();
        let problem = Problem::new(format!(
            "has {} of {all} packets at a second interface too, so it holds both sides of a queue",
            self.passed.elsewhere
        ));
        let problem = problem.file(&self.files[0].file.path).column(option).accepted(places.join(", "));
        Some(problem.suggestion("say which of its interfaces: --before-interface, --behind-interface"))
    }

    /// Share of the side's bytes that have been read, 0 … 1.
    pub fn progress(&self) -> f64 {
        let size: u64 = self.files.iter().map(|c| c.file.size).sum();
        (self.read as f64 / size.max(1) as f64).min(1.0)
    }

    /// The time of the next packet.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn peek(&mut self) -> Result<Option<i128>, Problems> {
        Ok(self.first()?.map(|seen| seen.time))
    }

    /// A reference to the next packet, which stays the next one.
    ///
    /// # Errors
    /// The file cannot be read.
    #[inline]
    pub fn first(&mut self) -> Result<Option<&Seen>, Problems> {
        if !self.ready {
            self.ready = self.find()?;
        }
        Ok(self.ahead.front().filter(|_| self.ready))
    }

    /// Packet that was read ahead, by so many after the next one: it may be a copy.
    #[inline]
    pub fn ahead(&self, by: usize) -> Option<&Seen> {
        self.ahead.get(by)
    }

    /// Goes on to the packet after the next one.
    #[inline]
    pub fn skip(&mut self) {
        if std::mem::take(&mut self.ready) {
            self.ahead.pop_front();
        }
    }

    /// The next packet.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn next(&mut self) -> Result<Option<Seen>, Problems> {
        let next = self.first()?.copied();
        self.skip();
        Ok(next)
    }

    /// Brings the next packet to the front; false if there is none.
    fn find(&mut self) -> Result<bool, Problems> {
        loop {
            if self.how.sorted {
                self.in_order()?;
            } else {
                self.nearly_in_order()?;
            }
            if let Some(seen) = self.ahead.get(SOONER) {
                self.copies.soon(seen);
            }
            let Some(seen) = self.ahead.front_mut() else { return Ok(false) };
            let at = self.count;
            self.count += 1;
            if seen.time < self.latest {
                self.passed.late += 1;
                self.passed.late_by = self.passed.late_by.max(self.latest - seen.time);
                seen.time = self.latest;
            }
            self.latest = seen.time;
            if !self.copies.has(seen, at, &mut self.passed.elsewhere) {
                return Ok(true);
            }
            self.ahead.pop_front();
            self.passed.copies += 1;
        }
    }

    /// Reads ahead, so that the earliest packet is the first.
    fn nearly_in_order(&mut self) -> Result<(), Problems> {
        while self.ahead.len() < AHEAD && self.read()? {
            // Nearly all come in order.
            let mut at = self.ahead.len() - 1;
            while at > 0 && self.ahead[at - 1].time > self.ahead[at].time {
                self.ahead.swap(at - 1, at);
                at -= 1;
            }
        }
        Ok(())
    }

    /// Takes the next of all packets, which were sorted before.
    fn in_order(&mut self) -> Result<(), Problems> {
        let first = self.files[0].file.path.clone();
        let unsorted = |error: std::io::Error| unsorted(&error).file(&first);
        if self.sorted.is_none() {
            let mut sorter = Sorter::new(SORTED);
            while self.read()? {
                if let Some(seen) = self.ahead.pop_front() {
                    sorter.push(seen).map_err(unsorted)?;
                }
            }
            self.sorted = Some(sorter.finish().map_err(unsorted)?);
        }
        if let Some(sorted) = self.sorted.as_mut().filter(|_| self.ahead.is_empty()) {
            self.ahead.extend(sorted.next().map_err(unsorted)?);
        }
        Ok(())
    }

    /// Appends the next packet of the file that goes towards the port; false at the end.
    fn read(&mut self) -> Result<bool, Problems> {
        let ahead = self.ahead.len();
        loop {
            self.ahead.truncate(ahead);
            let Some(capture) = &mut self.capture else {
                let Some(CaptureFile { file, .. }) = self.files.get(self.file) else { return Ok(false) };
                let input: Input = Box::new(file.open()?.0);
                self.capture = Some(Capture::new(input).map_err(|e| unreadable(&file.path, &e))?);
                continue;
            };
            let frame = match capture.next_frame() {
                Ok(Some(frame)) => frame,
                Ok(None) => {
                    self.close();
                    continue;
                }
                Err(error) if error.trouble == Trouble::Truncated => {
                    self.passed.truncated.push(ends_inside(&self.files[self.file].file.path, &error));
                    self.close();
                    continue;
                }
                Err(error) => return Err(unreadable(&self.files[self.file].file.path, &error).into()),
            };
            self.passed.frames += 1;
            self.read += frame.data.len() as u64 + 16;
            let (interface, time) = (frame.interface, frame.time_ps);
            let headers = frame.headers();
            let only_notice = (headers.is_some() || self.connections.is_some()) && frame.is_notice_only();
            if let Some(connections) = self.connections.as_mut().filter(|_| time >= 0 && !only_notice) {
                connections.see(&frame, headers.as_ref());
            }
            let headers = headers.as_ref().filter(|_| !only_notice);
            let wrap = headers.and_then(|headers| headers.wrap.as_ref());
            let mirror = wrap.and_then(|wrap| wrap.mirror.as_ref());
            let number = number_of(&frame, mirror);
            let direction = mirror.map_or(frame.direction, |mirror| mirror.direction);
            let wrapped = wrap.map(|wrap| wrap.kind);
            let looked = headers.map(|headers| {
                self.ahead.push_back(Seen::of(&frame, headers, number, self.how.matching, self.how.without_fcs));
                look_at(&frame, Some(headers), self.ahead[ahead].bytes, || 0)
            });
            if let Some(place) = &self.how.place {
                let name = &capture.interfaces()[interface].name;
                if !place.has(interface, name, number)
                    || direction.zip(place.direction).is_some_and(|(direction, asked)| direction != asked)
                {
                    self.passed.other_place += 1;
                    continue;
                }
            }
            if time < 0 {
                self.passed.undated += 1;
                continue;
            }
            let Some(looked) = looked else {
                self.passed.not_ip += 1;
                continue;
            };
            let (behind, (from, to)) = (&self.how.behind, self.ahead[ahead].hosts);
            if !behind.is_empty() && behind.contains(&from) && !behind.contains(&to) {
                self.passed.other_way += 1;
                continue;
            }
            match &mut self.here {
                (place, packets) if *place == (interface, number) => *packets += 1,
                here => {
                    let (place, packets) = std::mem::replace(here, ((interface, number), 1));
                    *self.packets.entry(place).or_default() += packets;
                }
            }
            self.passed.grain.see(time);
            self.passed.checks.see(looked);
            if let Some(kind) = wrapped {
                *self.passed.tunnels.entry(kind).or_default() += 1;
            }
            return Ok(true);
        }
    }

    fn close(&mut self) {
        if let Some(capture) = self.capture.take() {
            let (place, packets) = std::mem::take(&mut self.here);
            if packets > 0 {
                *self.packets.entry(place).or_default() += packets;
            }
            for ((interface, number), packets) in std::mem::take(&mut self.packets) {
                let name = &capture.interfaces()[interface].name;
                let alone = || capture.interfaces().iter().filter(|other| other.name == *name).count() == 1;
                let named = || Some(name.clone()).filter(|name| !name.is_empty() && alone());
                let name = number.map(name_of_number).or_else(named).unwrap_or_else(|| format!("#{interface}"));
                *self.passed.interfaces.entry(name).or_default() += packets;
            }
            self.passed.lost += capture.interfaces().iter().map(|i| i.lost).sum::<u64>();
            let snaps = capture.interfaces().iter().filter_map(|i| i.snap);
            self.passed.snap = snaps.chain(self.passed.snap).min();
            self.passed.undated += capture.skipped().untimed;
        }
        if let Some(connections) = &mut self.connections {
            connections.end_of_file();
        }
        self.file += 1;
    }
}
