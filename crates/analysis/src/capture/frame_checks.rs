//! Checks of frames that cannot be what they seem, and further findings of a survey.

use crate::capture::survey::Survey;
use crate::checks::{Finding, Level};
use crate::display::{count as number_of, size, span};
use fanin_wire::{Frame, Headers};

fn share(part: u64, all: u64) -> f64 {
    part as f64 / all.max(1) as f64
}

/// Above this share a finding is a doubt.
pub const GRAVE: f64 = 0.001;

/// Largest frame that Ethernet has with an MTU of 1500, and with the largest jumbo frames that switches forward.
const FULL: u32 = 1522;
const JUMBO: u32 = 9216 + 22;
/// Payloads of full segments at an MTU of 1500: IPv4 and IPv6, each with timestamps and without.
const SEGMENTS: [u32; 4] = [1448, 1460, 1428, 1440];

/// Sets of frames that are remembered to find copies, and frames of a set.
const SETS: usize = 1 << 14;
const WAYS: usize = 4;
/// Longest time between copies of a datagram that has a number [ps]; of one that has none, which hosts may send again soon.
const COPY: u64 = 100_000_000_000;
pub const COPY_WITHOUT_NUMBER: u64 = 10_000_000;
/// Hops that a router between two places of capture takes, at most.
const HOPS: u8 = 1;
/// Copies that come later than this after the first have waited between two places of capture [ps]; and the share of packets that are such.
const WAITED: u64 = 100_000_000;
const TAPPED: f64 = 0.1;

/// Identity of a packet, equal wherever it was captured: by the datagram's number, TCP's fields, or else the first payload.
pub fn identity(frame: &Frame<'_>, headers: &Headers) -> u64 {
    let word = |at: usize| {
        let bytes = frame.data.get(at..at + 8).and_then(<[u8]>::first_chunk::<8>);
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    };
    let hash = mix(0, u64::from(headers.id) << 32 | u64::from(headers.payload));
    match &headers.tcp {
        Some(tcp) => {
            let hash = mix(hash, u64::from(tcp.seq) << 32 | u64::from(tcp.ack));
            let hash = mix(hash, u64::from(tcp.flags) << 16 | u64::from(tcp.window));
            // The timestamps, as nearly all have them.
            mix(hash, word(headers.transport_at + 24))
        }
        None => mix(hash, word(headers.payload_at)),
    }
}

fn mix(hash: u64, word: u64) -> u64 {
    let mixed = (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}

/// A packet that was captured: its identity, with its hops left in the last byte.
type Known = u64;

fn known(identity: u64, ttl: u8) -> Known {
    identity & !0xff | u64::from(ttl)
}

/// True if two captured packets are one on its way through one device. One that comes back after more hops is on its way again.
fn is_same(a: Known, b: Known) -> bool {
    a >> 8 == b >> 8 && (a as u8).abs_diff(b as u8) <= HOPS
}

/// A few packets of a flow at a place, the same ones at every place: those of the smallest identities (min-wise sampling of a set,
/// Broder 1997).
#[derive(Clone, Copy, Debug)]
pub struct Sample([Known; 4]);

impl Default for Sample {
    fn default() -> Self {
        Sample([Known::MAX; 4])
    }
}

impl Sample {
    #[inline]
    pub fn see(&mut self, frame: &Frame<'_>, headers: &Headers) {
        let new = known(identity(frame, headers), headers.ttl);
        let [.., last] = self.0;
        if new < last && self.0.iter().all(|known| known >> 8 != new >> 8) {
            self.0[3] = new;
            self.0.sort_unstable();
        }
    }

    /// True if packets of one sample are among those of the other, or neither has any.
    pub fn shares(&self, other: &Sample) -> bool {
        let there = |sample: &Sample| sample.0.into_iter().filter(|known| *known != Known::MAX).collect::<Vec<_>>();
        let (a, b) = (there(self), there(other));
        (a.is_empty() && b.is_empty()) || a.iter().any(|a| b.iter().any(|b| is_same(*a, *b)))
    }
}

/// Packets that were seen lately, to find those that were captured twice at one place.
#[derive(Clone, Debug, Default)]
pub struct Copies(Vec<[(Known, i64); WAYS]>);

impl Copies {
    /// Time [ps] since the packet was seen at that place before; `numbered`: only if its datagram has a number, as others may
    /// have been sent again. `time` [ps].
    #[inline]
    pub fn since(
        &mut self,
        frame: &Frame<'_>,
        headers: &Headers,
        (flow, place): (u32, u32),
        time: i64,
        numbered: bool,
    ) -> Option<u64> {
        if headers.id == 0 && (numbered || headers.tcp.is_none() || headers.payload == 0) {
            return None;
        }
        if self.0.is_empty() {
            self.0 = vec![[(0, i64::MIN); WAYS]; SETS];
        }
        let new = known(mix(identity(frame, headers), u64::from(flow) << 32 | u64::from(place)), headers.ttl);
        let set = &mut self.0[(new >> 40) as usize % SETS];
        let same = set.iter().position(|(known, at)| is_same(*known, new) && at.abs_diff(time) <= COPY);
        let oldest = || (0..WAYS).min_by_key(|way| set[*way].1).unwrap_or(0);
        let way = same.unwrap_or_else(oldest);
        let (_, before) = std::mem::replace(&mut set[way], (new, time));
        same.map(|_| before.abs_diff(time))
    }
}

/// Facts about a frame.
#[derive(Clone, Copy, Debug)]
pub struct Looked {
    bytes: u32,
    /// The frame is longer than a packet.
    long: bool,
    /// Bytes that were kept of the frame, where the fields that identify it are not among them.
    cut: Option<u32>,
}

/// Looks at a frame of `bytes`; `mss` gives the largest payload that its receiver takes, 0 if unknown.
#[inline]
pub fn look_at(frame: &Frame<'_>, headers: Option<&Headers>, bytes: u32, mss: impl FnOnce() -> u32) -> Looked {
    let long = bytes > FULL && is_aggregate(headers, bytes, mss());
    let cut = (frame.is_cut() && is_cut_short(frame, headers)).then_some(frame.data.len() as u32);
    Looked { bytes, long, cut }
}

/// Checks of the frames of one capture that are taken.
#[derive(Clone, Debug, Default)]
pub struct FrameChecks {
    frames: u64,
    bytes: u64,
    long: (u64, u64, u32),
    /// Frames that were cut short, and the most bytes that were kept of one.
    cut: (u64, u32),
    copies: (u64, u64),
    /// Copies that have waited in between, and the longest [ps].
    waited: (u64, u64),
}

impl FrameChecks {
    /// Takes a frame that was looked at.
    #[inline]
    pub fn see(&mut self, Looked { bytes, long, cut }: Looked) {
        self.frames += 1;
        self.bytes += u64::from(bytes);
        if long {
            self.long = (self.long.0 + 1, self.long.1 + u64::from(bytes), self.long.2.max(bytes));
        }
        if let Some(kept) = cut {
            self.cut = (self.cut.0 + 1, self.cut.1.max(kept));
        }
    }

    /// Frames that were taken.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Counts a packet that was captured before, so long ago [ps].
    pub fn copy(&mut self, bytes: u32, since: u64) {
        self.copies = (self.copies.0 + 1, self.copies.1 + u64::from(bytes));
        if since > WAITED {
            self.waited = (self.waited.0 + 1, self.waited.1.max(since));
        }
    }

    /// Packets that were captured twice.
    pub fn copied(&self) -> u64 {
        self.copies.0
    }

    /// Findings of the checks.
    pub fn findings(&self, place: &str, snap: Option<u32>, findings: &mut Vec<Finding>) {
        let mut say = |code, level, (count, bytes): (u64, Option<u64>), words: String, hint: &str| {
            findings.push(Finding { code, level, place: place.to_string(), count, bytes, words, hint: hint.to_string() });
        };
        let (count, bytes, largest) = self.long;
        if count > 0 {
            let level = if share(bytes, self.bytes) > GRAVE { Level::Doubt } else { Level::Note };
            let words = format!(
                "{count} of {} are longer than a packet on the wire (up to {}): segments that the host has put together (TSO, GSO, GRO, LRO), so that the times within are lost",
                number_of(self.frames, "frame"),
                size(largest.into())
            );
            let hint =
                "capture with 'ethtool -K DEV gro off lro off' on a receiver, 'tso off gso off' on a sender, or at the switch";
            say("super_frames", level, (count, Some(bytes)), words, hint);
        }
        let (count, kept) = self.cut;
        if count > 0 {
            let level = if share(count, self.frames) > GRAVE { Level::Doubt } else { Level::Note };
            // What cuts a file later may leave the length in its header.
            let said =
                snap.filter(|snap| *snap != kept).map_or(String::new(), |snap| format!(", though its header says {snap} B"));
            let words = format!(
                "{count} of {} lack ports or payload length, their own or those of the packet inside, which were cut off (the capture keeps {kept} B of each frame{said}): their flows are mixed up",
                number_of(self.frames, "frame")
            );
            say(
                "cut_headers",
                level,
                (count, None),
                words,
                "keep at least 128 B of each frame, 192 B of packets in tunnels: tcpdump -s 192",
            );
        }
        let (count, bytes) = self.copies;
        if count > 0 {
            let words =
                format!("{} were captured twice ({}); the copies are left out", number_of(count, "packet"), size(bytes as f64));
            let hint = "capture at one place, or mirror one direction only";
            say("duplicates", Level::Note, (count, Some(bytes)), words, hint);
        }
        let (count, longest) = self.waited;
        findings.extend(two_taps(place, count, self.frames - self.copies.0, longest));
    }
}

/// Finding about packets that come again after having waited: the capture is of two places.
fn two_taps(place: &str, again: u64, packets: u64, longest: u64) -> Option<Finding> {
    (share(again, packets) > TAPPED).then(|| Finding {
        code: "two_taps",
        level: Level::Doubt,
        place: place.to_string(),
        count: again,
        bytes: None,
        words: format!(
            "{again} of {} come a second time, up to {} later: the file holds both sides of a queue, in which they waited",
            number_of(packets, "packet"),
            span(longest)
        ),
        hint: "give the capture before the port and the one behind it apart: fanin analyze BEFORE --behind BEHIND".into(),
    })
}

/// True if a long frame is several packets of the wire.
fn is_aggregate(headers: Option<&Headers>, bytes: u32, mss: u32) -> bool {
    if bytes > JUMBO {
        return true;
    }
    let Some(headers) = headers.filter(|h| h.tcp.is_some()) else { return false };
    match mss {
        0 => SEGMENTS.iter().any(|segment| headers.payload > *segment && headers.payload % segment == 0),
        mss => headers.payload > mss,
    }
}

/// True if the fields that identify a flow, or tell if there is payload, are not among the bytes that were kept.
fn is_cut_short(frame: &Frame<'_>, headers: Option<&Headers>) -> bool {
    match headers {
        None => frame.data.len() < 60,
        Some(headers) if headers.inner_cut => true,
        Some(headers) => match headers.protocol {
            // A later fragment has no ports, however long it is.
            6 => headers.tcp.is_none() && frame.data.len() < headers.transport_at + 16,
            17 => headers.ports.is_none() && frame.data.len() < headers.transport_at + 4,
            _ => false,
        },
    }
}

/// Finding about packets that the capturing side reports as lost.
pub fn lost(place: &str, lost: u64, packets: u64) -> Option<Finding> {
    (lost > 0).then(|| Finding {
        code: "lost",
        level: if share(lost, packets) > GRAVE { Level::Doubt } else { Level::Note },
        place: place.to_string(),
        count: lost,
        bytes: None,
        words: format!("the capturing side lost {}", number_of(lost, "packet")),
        hint: "capture with a larger buffer and fewer bytes of each frame: tcpdump -B 65536 -s 128".into(),
    })
}

/// Findings of a survey of a capture. `missed`: packets that the capturing side lost; `counted`: packets and bytes that were taken;
/// `flows`: TCP flows with data that were taken, and how many of them were there from their start.
pub fn of_survey(
    survey: &Survey,
    place: &str,
    missed: u64,
    (packets, bytes): (u64, u64),
    (flows, opened): (u64, u64),
    findings: &mut Vec<Finding>,
) {
    findings.extend(lost(place, missed, packets));
    let step = |ps: i64| span(u64::try_from(ps).unwrap_or(0));
    let (unnumbered, again, longest) = survey.unnumbered_again();
    // Of every two that come once, one comes twice: so many are not sent again.
    if again * 3 >= unnumbered {
        findings.extend(two_taps(place, again, unnumbered - again, longest));
    }
    let mut say = |code, level, (count, bytes): (u64, Option<u64>), words: String, hint: &str| {
        findings.push(Finding { code, level, place: place.to_string(), count, bytes, words, hint: hint.to_string() });
    };
    if survey.missed.times > 0 {
        let level = if share(survey.missed.bytes, bytes) > GRAVE { Level::Doubt } else { Level::Note };
        let words = format!(
            "{} of payload were acknowledged and are not in the capture ({})",
            size(survey.missed.bytes as f64),
            number_of(survey.missed.times, "gap")
        );
        let hint = "the capture missed packets (tcpdump -B 65536 -s 128), or they pass elsewhere too";
        say("acked_unseen", level, (survey.missed.times, Some(survey.missed.bytes)), words, hint);
    }
    if survey.back.count > 0 {
        let words =
            format!("the clock steps back {}, by {} at most", number_of(survey.back.count, "time"), step(survey.back.largest));
        let hint = "let the clock be slewed, not set, while capturing; give captures of several times one by one";
        say("clock_back", Level::Doubt, (survey.back.count, None), words, hint);
    }
    if survey.late.count > 0 {
        let words = format!(
            "{} in the file behind later ones, by {} at most, and the clock goes on all the same: they are put in order",
            match survey.late.count {
                1 => "1 frame stands".into(),
                many => format!("{many} frames stand"),
            },
            step(survey.late.largest)
        );
        let hint = "several queues of a network card, or files put together (reordercap sorts one; --sort in memory)";
        say("disorder", Level::Note, (survey.late.count, None), words, hint);
    }
    if survey.forth.count > 0 {
        let words = format!(
            "the clock steps forward {}: {} pass between packets whose TCP timestamps say that they were sent one after another",
            number_of(survey.forth.count, "time"),
            step(survey.forth.largest)
        );
        say("clock_forth", Level::Doubt, (survey.forth.count, None), words, "let the clock be slewed, not set, while capturing");
    }
    if flows > opened {
        let count = flows - opened;
        let words = format!(
            "{count} of {flows} TCP flows with data show no SYN: they were open before the capture began, sending or not"
        );
        let hint = "start the capture before the traffic; --rtt gives the round trip that handshakes would show";
        say("no_syn", Level::Note, (count, None), words, hint);
    }
    if survey.elsewhere > 0 {
        let words = format!("{} are of interfaces beyond the first 4096 and were left out", number_of(survey.elsewhere, "frame"));
        say("many_interfaces", Level::Doubt, (survey.elsewhere, None), words, "capture at fewer interfaces");
    }
}
