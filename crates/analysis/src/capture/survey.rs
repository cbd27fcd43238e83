//! First reading of a capture: the places that flows passed, and facts that show only when all of it has been seen.

use crate::capture::connections::{see, Missed, Talk};
use crate::capture::frame_checks::{Copies, COPY_WITHOUT_NUMBER};
use crate::capture::links::{Key, LastPlace, Links, Place, NONE};
use crate::capture::transfers::Transfers;
use crate::input::context::bytes_of;

use fanin_wire::{Frame, Headers, Tunnel};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Steps back of the clock that frames of several queues of a NIC explain [ps].
const REORDERED: i64 = 1_000_000_000;
/// Frames in a row that lie before one that came first, by which a clock has stepped back: a queue of a NIC hands over no more at once.
const STAYS: u32 = 300;
/// Silence that is compared with the clocks of senders [ps].
const SILENCE: i64 = 1_000_000_000_000;

/// Largest distance from the first frame that is told apart [ps]: 26 days, so that differences of two have room. The reading of the packets
/// refuses what is further than a trace may be.
const MOST_TIME: i128 = 1 << 61;

/// Receiver of a frame's tunnel, if it is in one.
pub fn outer_receiver(frame: &Frame<'_>, headers: &Headers) -> Option<(IpAddr, Option<u16>)> {
    headers.wrap?;
    frame.outer_headers().map(|outer| (outer.dst, outer.ports.map(|ports| ports.1)))
}

/// Note on frames in tunnels, with their number by kind; `None` where there are none.
pub fn tunnels_note(tunnels: &BTreeMap<Tunnel, u64>) -> Option<String> {
    let all: Vec<String> = tunnels.iter().map(|(kind, frames)| format!("{frames} in {kind}")).collect();
    let mirrored = tunnels.contains_key(&Tunnel::Erspan);
    let bytes = if mirrored { "; sizes are those of mirrored frames, without the mirror's headers" } else { "" };
    (!all.is_empty()).then(|| format!("packets in tunnels were unpacked ({}): flows are those inside{bytes}", all.join(", ")))
}

/// Steps of the capture's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    pub count: u64,
    /// Largest of the steps [ps].
    pub largest: i64,
}

/// Frames of an interface that lie before its latest time.
#[derive(Clone, Copy, Debug, Default)]
struct Behind {
    latest: Option<i64>,
    frames: u32,
    /// Distance from the latest time, of the first frame before it and of the furthest.
    first: Option<i64>,
    furthest: i64,
}

impl Behind {
    /// Counts a step of the clock: the frames stay behind.
    fn stepped(&mut self, back: &mut Steps) {
        back.add(self.first.unwrap_or(0));
        (self.frames, self.first, self.furthest) = (0, None, 0);
    }
}

impl Steps {
    fn add(&mut self, step: i64) {
        self.count += 1;
        self.largest = self.largest.max(step);
    }
}

/// Granularity of a capture's times.
#[derive(Clone, Copy, Debug)]
pub struct Grain {
    /// The largest that all times are multiples of [ps]: 1, 10^6 or 10^9; and how many there are.
    step: i128,
    frames: u64,
}

impl Default for Grain {
    fn default() -> Self {
        Grain { step: 1_000_000_000, frames: 0 }
    }
}

impl Grain {
    /// Takes a time [ps].
    pub fn see(&mut self, time: i128) {
        self.frames += 1;
        while self.step > 1 && time % self.step != 0 {
            self.step = if self.step > 1_000_000 { 1_000_000 } else { 1 };
        }
    }

    /// The step [ps], where it is a microsecond or more and there are enough times to say so.
    pub fn step(&self) -> Option<u64> {
        (self.step > 1 && self.frames >= 16).then_some(self.step as u64)
    }
}

/// Observations of a capture's first pass: its flows, clocks, copies and gaps.
#[derive(Clone, Debug)]
pub struct Survey {
    /// Frames count without check sequence and padding.
    without_fcs: bool,
    pub links: Links<Talk>,
    last_place: LastPlace,
    /// Time of the first frame [ps].
    pub first: Option<i128>,
    /// The latest time [ps].
    pub last: Option<i128>,
    /// Packets and bytes of flows that are not distinguished, by channel.
    pub others: Vec<(u64, u64)>,
    /// Frames of places of capture that are not distinguished.
    pub elsewhere: u64,
    pub missed: Missed,
    /// Latest time of each interface, and the frames since that lie before it.
    times: Vec<Behind>,
    latest: i64,
    pub back: Steps,
    /// Frames that lie before earlier ones of the file, while the clock went on.
    pub late: Steps,
    pub forth: Steps,
    /// True if a silence is over, and no sender's clock has told yet if it was one.
    silent: bool,
    grain: Grain,
    copies: Copies,
    /// Frames by the outermost tunnel that they were in.
    pub tunnels: BTreeMap<Tunnel, u64>,
    /// Data packets without a number, the number of them that came twice at once, and later, and the latest by how much [ps].
    unnumbered: (u64, u64, u64, u64),
    /// Transfers over TCP, if they are asked for.
    pub transfers: Option<Box<Transfers>>,
}

impl Default for Survey {
    fn default() -> Self {
        Survey {
            without_fcs: false,
            links: Links::new(),
            last_place: LastPlace::default(),
            first: None,
            last: None,
            others: Vec::new(),
            elsewhere: 0,
            missed: Missed::default(),
            times: Vec::new(),
            latest: 0,
            back: Steps::default(),
            late: Steps::default(),
            forth: Steps::default(),
            silent: false,
            grain: Grain::default(),
            copies: Copies::default(),
            tunnels: BTreeMap::new(),
            unnumbered: (0, 0, 0, 0),
            transfers: None,
        }
    }
}

impl Survey {
    /// A survey that counts frames without check sequence and padding, or with them; with the transfers over TCP, if asked for.
    pub fn new(without_fcs: bool, transfers: bool) -> Survey {
        Survey { without_fcs, transfers: transfers.then(Box::default), ..Survey::default() }
    }

    /// Step of all times [ps].
    pub fn tick(&self) -> Option<u64> {
        self.grain.step()
    }

    /// True if equal packets without a number are copies: so many are not sent again at once.
    pub fn copies_unnumbered(&self) -> bool {
        self.unnumbered.1 * 3 >= self.unnumbered.0
    }

    /// Data packets without a number, the number of them that came again later than copies do, and the latest by how much [ps].
    pub fn unnumbered_again(&self) -> (u64, u64, u64) {
        (self.unnumbered.0, self.unnumbered.2, self.unnumbered.3)
    }

    /// Ends the survey: frames that stayed behind until here did so because the clock was set.
    pub fn end(&mut self) {
        for behind in self.times.iter_mut().filter(|behind| behind.frames > 0) {
            behind.stepped(&mut self.back);
        }
    }

    /// Takes a frame, with its headers.
    pub fn see(&mut self, frame: &Frame<'_>, headers: Option<&Headers>) {
        let first = *self.first.get_or_insert(frame.time_ps);
        let at = (frame.time_ps - first).clamp(-MOST_TIME, MOST_TIME) as i64;
        self.grain.see(frame.time_ps);
        self.last = self.last.max(Some(frame.time_ps));
        self.clock(frame.interface, at);
        if let Some(wrap) = headers.and_then(|headers| headers.wrap.as_ref()) {
            *self.tunnels.entry(wrap.kind).or_default() += 1;
        }
        let place = Place::of(frame, headers);
        let Some(channel) = self.links.new_channel(place, &mut self.last_place) else {
            self.elsewhere += 1;
            return;
        };
        let bytes = u64::from(bytes_of(frame, headers, self.without_fcs));
        let Some(entry) = self.links.entry(&Key::of(channel, place, frame, headers)) else {
            let needed = channel as usize + 1;
            self.others.resize(self.others.len().max(needed), (0, 0));
            let others = &mut self.others[channel as usize];
            *others = (others.0 + 1, others.1 + bytes);
            return;
        };
        let link = &mut self.links.links[entry as usize];
        let new = link.packets == 0;
        link.packets += 1;
        link.bytes += bytes;
        if new {
            link.more.first = at;
        }
        if let Some(headers) = headers {
            if new {
                link.more.outer = outer_receiver(frame, headers);
            }
            link.more.sample.see(frame, headers);
            if headers.id == 0 && headers.tcp.is_some() && headers.payload > 0 {
                let (all, soon, late, longest) = &mut self.unnumbered;
                *all += 1;
                match self.copies.since(frame, headers, (entry, channel), at, false) {
                    Some(since) if since <= COPY_WITHOUT_NUMBER => *soon += 1,
                    Some(since) => (*late, *longest) = (*late + 1, since.max(*longest)),
                    None => {}
                }
            }
            self.tcp(entry, (at, new), frame, headers);
        }
    }

    /// Takes a frame, with its headers, for what it says of its connection alone: opening, round trip, data and acknowledgments.
    #[inline]
    pub fn see_connection(&mut self, frame: &Frame<'_>, headers: Option<&Headers>) {
        let first = *self.first.get_or_insert(frame.time_ps);
        let Some((headers, tcp)) = headers.and_then(|headers| Some((headers, headers.tcp.as_ref()?))) else { return };
        let at = (frame.time_ps - first).clamp(-MOST_TIME, MOST_TIME) as i64;
        let place = Place::of(frame, Some(headers));
        let Some(channel) = self.links.new_channel(place, &mut self.last_place) else { return };
        let Some(entry) = self.links.entry(&Key::of(channel, place, frame, Some(headers))) else { return };
        let link = &mut self.links.links[entry as usize];
        link.packets += 1;
        let new = link.packets == 1;
        see(&mut self.links.links, entry, (at, new), (tcp, headers.payload, None), &mut self.missed);
    }

    fn tcp(&mut self, entry: u32, (at, new): (i64, bool), frame: &Frame<'_>, headers: &Headers) {
        let Some(tcp) = &headers.tcp else { return };
        let options = headers.tcp_options(frame.data);
        let talk = &mut self.links.links[entry as usize].more;
        if self.silent && !new {
            if let Some(step) = talk.jumped(at, options.timestamp) {
                self.forth.add(step);
                self.silent = false;
            } else if options.timestamp.is_some() {
                self.silent = false;
            }
        }
        talk.note_clock(at, options.timestamp);
        talk.mss = options.mss.unwrap_or(talk.mss);
        see(&mut self.links.links, entry, (at, new), (tcp, headers.payload, options.timestamp), &mut self.missed);
        let Some(transfers) = &mut self.transfers else { return };
        let link = &self.links.links[entry as usize];
        if link.first == entry {
            let back = (link.reverse != NONE).then(|| self.links.links[link.reverse as usize].more.rtt()).flatten();
            transfers.see((entry, link), (at, link.more.rtt().or(back)), frame, (headers, tcp));
        }
    }

    fn clock(&mut self, interface: usize, at: i64) {
        if interface >= self.times.len() {
            self.times.resize(interface + 1, Behind::default());
        }
        let behind = &mut self.times[interface];
        match behind.latest {
            Some(latest) if latest - at > REORDERED => {
                behind.frames += 1;
                behind.furthest = behind.furthest.max(latest - at);
                behind.first.get_or_insert(latest - at);
                if behind.frames == STAYS {
                    behind.stepped(&mut self.back);
                    behind.latest = Some(at);
                }
            }
            Some(latest) if at < latest => {}
            _ => {
                // The clock has gone on: those before were only late.
                if behind.frames > 0 {
                    self.late.count += u64::from(behind.frames);
                    self.late.largest = self.late.largest.max(behind.furthest);
                }
                *behind = Behind { latest: Some(at), ..Behind::default() };
            }
        }
        self.silent |= at - self.latest > SILENCE;
        self.latest = at;
    }
}
