//! Frames of captures that cannot be what they seem, and what a survey shows besides.

use super::plausibility::{Finding, Level};
use super::survey::Survey;
use crate::say::{count as number_of, size, span};
use fanin_wire::{Frame, Headers};

fn share(part: u64, all: u64) -> f64 {
    part as f64 / all.max(1) as f64
}

/// Above this share a finding is a doubt.
const GRAVE: f64 = 0.001;

/// Largest frame that Ethernet has with an MTU of 1500, and with the largest jumbo frames that switches forward.
const FULL: u32 = 1522;
const JUMBO: u32 = 9216 + 22;
/// Payloads of full segments at an MTU of 1500: IPv4 and IPv6, each with timestamps and without.
const SEGMENTS: [u32; 4] = [1448, 1460, 1428, 1440];

/// Frames that are remembered to find copies.
const REMEMBERED: usize = 1 << 12;
/// Longest time between copies of a datagram that has a number [ps]; of one that has none, which hosts may send again soon.
const COPY: u64 = 100_000_000_000;
const COPY_WITHOUT_NUMBER: u64 = 10_000_000;

/// Packets that were seen lately, to find those that were captured twice at one place.
#[derive(Clone, Debug, Default)]
pub struct Copies(Vec<(u64, i64)>);

impl Copies {
    /// Whether the same packet was seen before at that place; `numbered`: only if its datagram has a number, for others may have been
    /// sent again. `time` [ps].
    #[inline]
    pub fn is_copy(
        &mut self,
        frame: &Frame<'_>,
        headers: &Headers,
        (flow, place): (u32, u32),
        time: i64,
        numbered: bool,
    ) -> bool {
        let tcp = headers.tcp.as_ref();
        let within = match (headers.id, tcp) {
            (0, Some(_)) if headers.payload > 0 && !numbered => COPY_WITHOUT_NUMBER,
            (0, _) => return false,
            _ => COPY,
        };
        if self.0.is_empty() {
            self.0 = vec![(0, 0); REMEMBERED];
        }
        let word = |at: usize| {
            let bytes = frame.data.get(at..at + 8).and_then(<[u8]>::first_chunk::<8>);
            bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
        };
        let mix = |hash: u64, word: u64| (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut hash = mix(u64::from(flow) << 32 | u64::from(place), u64::from(headers.id) << 32 | u64::from(headers.payload));
        if let Some(tcp) = tcp {
            hash = mix(hash, u64::from(tcp.seq) << 32 | u64::from(tcp.ack));
            hash = mix(hash, u64::from(tcp.flags) << 16 | u64::from(tcp.window));
            // The timestamps, as nearly all have them.
            hash = mix(hash, word(headers.transport_at + 24));
        }
        let slot = &mut self.0[(hash >> 40) as usize % REMEMBERED];
        let (known, at) = std::mem::replace(slot, (hash, time));
        known == hash && at.abs_diff(time) <= within
    }
}

/// Checks of the frames of one capture that are taken.
#[derive(Debug)]
pub struct FrameChecks {
    frames: u64,
    bytes: u64,
    long: (u64, u64, u32),
    cut: u64,
    copies: (u64, u64),
}

impl FrameChecks {
    pub fn new() -> Self {
        FrameChecks { frames: 0, bytes: 0, long: (0, 0, 0), cut: 0, copies: (0, 0) }
    }

    /// Takes a frame of `bytes`; `mss` gives the largest payload that its receiver takes, 0 if unknown.
    #[inline]
    pub fn see(&mut self, frame: &Frame<'_>, headers: Option<&Headers>, bytes: u32, mss: impl FnOnce() -> u32) {
        self.frames += 1;
        self.bytes += u64::from(bytes);
        if bytes > FULL && is_aggregate(headers, bytes, mss()) {
            self.long = (self.long.0 + 1, self.long.1 + u64::from(bytes), self.long.2.max(bytes));
        }
        self.cut += u64::from(frame.is_cut() && is_cut_short(frame, headers));
    }

    /// A packet was taken before.
    pub fn copy(&mut self, bytes: u32) {
        self.copies = (self.copies.0 + 1, self.copies.1 + u64::from(bytes));
    }

    /// What was found.
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
        if self.cut > 0 {
            let level = if share(self.cut, self.frames) > GRAVE { Level::Doubt } else { Level::Note };
            let kept = snap.map_or(String::new(), |snap| format!(" (the capture keeps {snap} B of each frame)"));
            let words = format!(
                "{} of {} lack ports or payload length, which were cut off{kept}: their flows are mixed up",
                self.cut,
                number_of(self.frames, "frame")
            );
            say("cut_headers", level, (self.cut, None), words, "keep at least 128 B of each frame: tcpdump -s 128");
        }
        let (count, bytes) = self.copies;
        if count > 0 {
            let words =
                format!("{} were captured twice ({}); the copies are left out", number_of(count, "packet"), size(bytes as f64));
            let hint = "capture at one place, or mirror one direction only";
            say("duplicates", Level::Note, (count, Some(bytes)), words, hint);
        }
    }
}

/// Whether a long frame is several packets of the wire.
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

/// Whether what identifies a flow, or says whether there is payload, is not among the bytes that were kept.
fn is_cut_short(frame: &Frame<'_>, headers: Option<&Headers>) -> bool {
    match headers {
        None => frame.data.len() < 60,
        Some(headers) => match headers.protocol {
            // A later fragment has no ports, however long it is.
            6 => headers.tcp.is_none() && frame.data.len() < headers.transport_at + 16,
            17 => headers.ports.is_none() && frame.data.len() < headers.transport_at + 4,
            _ => false,
        },
    }
}

/// What a survey of a capture found. `lost`: packets that the capturing side lost; `counted`: packets and bytes that were taken;
/// `flows`: TCP flows with data that were taken, and how many of them were there from their start.
pub fn of_survey(
    survey: &Survey,
    place: &str,
    lost: u64,
    (packets, bytes): (u64, u64),
    (flows, opened): (u64, u64),
    findings: &mut Vec<Finding>,
) {
    let mut say = |code, level, (count, bytes): (u64, Option<u64>), words: String, hint: &str| {
        findings.push(Finding { code, level, place: place.to_string(), count, bytes, words, hint: hint.to_string() });
    };
    let step = |ps: i64| span(u64::try_from(ps).unwrap_or(0));
    if lost > 0 {
        let level = if share(lost, packets) > GRAVE { Level::Doubt } else { Level::Note };
        let words = format!("the capturing side lost {}", number_of(lost, "packet"));
        say(
            "lost",
            level,
            (lost, None),
            words,
            "capture with a larger buffer and fewer bytes of each frame: tcpdump -B 65536 -s 128",
        );
    }
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
