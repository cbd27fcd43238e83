//! Settings of the analysis.

use crate::bursts::scale;
use crate::display;
use fanin_units::{BitRate, Bytes, Span, Time};
use std::sync::Arc;

/// Definition of a burst.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Detect {
    /// The queue is above a threshold.
    Queue {
        /// Threshold: a burst begins when an arrival finds more than this. Absent: what the port drains in 100 us, at least 8
        /// full frames (12144 B); 16 full frames where its speed is unknown.
        above: Option<Bytes>,
        /// Queue at which a burst ends: an arrival finds no more. Absent: a quarter of `above`.
        until: Option<Bytes>,
    },
    /// Threshold by rate: the port is offered more than a share of its speed in a window; works for records that know no queue.
    ///
    /// Source: IMC17-microbursts §4 (25 us, 50 %).
    Rate {
        /// Length of a window. Absent: 25 us, at least the time of 20 full frames and a quarter of the round trip that is set.
        window: Option<Span>,
        /// Share of the port's speed, 0 … 1 and above.
        share: f64,
    },
}

/// Settings of one port's analysis.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Speed of the port; absent: estimated from the records where they allow it.
    pub rate: Option<BitRate>,
    /// The speed is given by the trace (a result's manifest), not by the user: for the report only.
    pub rate_of_result: bool,
    /// True if the records are to be held against the speed: others wrote them, and measured what waited.
    pub held_to_rate: bool,
    /// Bytes of wire time that a frame takes beyond its length (preamble and gap; 20 for Ethernet).
    pub overhead: Bytes,
    /// Definition of a burst.
    pub detect: Detect,
    /// Bursts closer than this are one.
    pub merge: Span,
    /// Round trip of a full data packet and its acknowledgement on the idle network, for flows that bring none of their own.
    pub rtt: Option<Span>,
    /// Confidence of intervals, above 0 and below 1.
    pub confidence: f64,
    /// Culprits listed by burst.
    pub top: usize,
    /// Bursts that are listed: the highest. The others are counted and enter the histograms.
    pub max_bursts: usize,
    /// Listed bursts that get phases, rounds and a law: the highest. A fit costs as much as thousands of records.
    pub detailed: usize,
    /// Time from which bursts are sought; earlier records only show which flows were there already, and the queue that stood.
    pub from: Option<Time>,
    /// True if the port was idle before the trace begins: none of its flows was there before.
    pub idle_before: bool,
    /// Tick of the time stamps; zero where they are exact.
    pub tick: Span,
    /// Unit of the queue lengths, rounded down to it; 1 where they are exact.
    pub unit: Bytes,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            rate: None,
            rate_of_result: false,
            held_to_rate: false,
            overhead: Bytes(20),
            detect: Detect::Queue { above: None, until: None },
            merge: Span::ZERO,
            rtt: None,
            confidence: 0.95,
            top: 10,
            max_bursts: 10_000,
            detailed: 200,
            from: None,
            idle_before: false,
            tick: Span::ZERO,
            unit: Bytes(1),
        }
    }
}

/// A setting that cannot be used: its name, and the accepted values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingError {
    /// Name of the setting.
    pub setting: &'static str,
    /// The problem, with the value and with accepted ones.
    pub message: String,
}

impl std::fmt::Display for SettingError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.setting, self.message)
    }
}

impl std::error::Error for SettingError {}

impl Settings {
    /// Everything that cannot be used, all at once.
    pub fn problems(&self) -> Vec<SettingError> {
        let mut found = Vec::new();
        let mut say = |setting, message: String| found.push(SettingError { setting, message });
        if self.rate == Some(BitRate(0)) {
            say("rate", "is 0; a port's speed is above 0".into());
        }
        if !(self.confidence > 0.0 && self.confidence < 1.0) {
            say("confidence", format!("is {}; accepted: above 0 and below 1, for example 0.95", self.confidence));
        }
        if self.max_bursts == 0 {
            say("max_bursts", "is 0; at least 1 burst is kept".into());
        }
        if self.unit == Bytes(0) {
            say("unit", "is 0; exact queue lengths have the unit 1 B".into());
        }
        if self.overhead.0 > 1_000_000 {
            say("overhead", format!("is {}; accepted: up to 1 MB by frame, 20 B for Ethernet", self.overhead));
        }
        match self.detect {
            Detect::Queue { .. } => {
                let (above, until) = self.thresholds();
                if until > above {
                    say("until", format!("is {until}, more than above ({above}): a burst would end before it begins"));
                }
            }
            Detect::Rate { window, share } => {
                if window == Some(Span::ZERO) {
                    say("window", "is 0; for example 25us".into());
                }
                if !(share > 0.0 && share.is_finite()) {
                    say("share", format!("is {share}; accepted: above 0, for example 0.5"));
                }
                if self.rate.is_none() {
                    say(
                        "rate",
                        "is missing: a burst by arrival rate is a share of the port's speed, so the speed is needed".into(),
                    );
                }
            }
        }
        found
    }

    /// Begin and end thresholds in force, by the queue.
    pub fn thresholds(&self) -> (Bytes, Bytes) {
        let (above, until) = match self.detect {
            Detect::Queue { above, until } => (above, until),
            Detect::Rate { .. } => (None, None),
        };
        let above = above.unwrap_or_else(|| scale::threshold(self.rate).0);
        (above, until.unwrap_or(Bytes(above.0 / 4)))
    }

    /// Window in force and share, by the rate; none where bursts are found by the queue, or the speed is missing.
    pub fn window(&self) -> Option<(Span, f64)> {
        let Detect::Rate { window, share } = self.detect else { return None };
        let rate = self.rate?;
        Some((window.unwrap_or_else(|| scale::window(rate, self.overhead, self.rtt).0), share))
    }

    /// Time for which a flow must have been active to be background, where it brings no round trip of its own.
    pub(crate) fn background(&self) -> Span {
        match self.rtt {
            Some(rtt) => rtt.saturating_mul(crate::bursts::background::BACKGROUND_RTTS),
            None => scale::background(self.rate, self.overhead),
        }
    }

    /// Definition of a burst, in words.
    pub(crate) fn detect_words(&self) -> String {
        if let (Some((window, share)), Some(rate)) = (self.window(), self.rate) {
            let speed = display::rate(rate.bps() as f64);
            let why = match (self.detect, scale::window(rate, self.overhead, self.rtt).1) {
                (Detect::Rate { window: Some(_), .. }, _) | (_, scale::Why::Time(_)) => String::new(),
                (_, why @ scale::Why::Frames(_)) => format!(" ({why} at {speed})"),
                (_, why) => format!(" ({why})"),
            };
            return format!("window {}{why}, more than {} of {speed}", display::span(window.ps()), display::percent(share));
        }
        let (above, until) = self.thresholds();
        let why = match (self.detect, scale::threshold(self.rate).1) {
            (Detect::Queue { above: Some(_), .. }, _) => String::new(),
            (_, scale::Why::Time(drain)) => format!(" (drains in {})", display::span(drain.ps())),
            (_, why) => format!(" ({why})"),
        };
        format!("queue above {}{why}, until {} or less", display::size(above.0 as f64), display::size(until.0 as f64))
    }
}

/// Beginning of a flow's sender, as far as its protocol or a result says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Sender {
    /// Neither the protocol nor a result says how the sender began.
    #[default]
    Unknown,
    /// Sender of TCP, which may be in slow start, or long past it.
    Tcp,
    /// A result names the sender's transport, which begins in slow start.
    SlowStart,
    /// Sender of another transport, by its name.
    Other(Arc<str>),
}

impl Sender {
    /// Sender by the protocol at the end of a flow's name, as captures and tables have it: `10.0.0.1:80 > 10.0.0.2:5000 tcp`, and
    /// ` vni 7` after it in a tunnel.
    pub fn of_name(name: &str) -> Sender {
        let Some((_, flow)) = name.split_once(" > ") else { return Sender::Unknown };
        match flow.split_once(' ').and_then(|(_, protocol)| protocol.split(" vni ").next()).map(str::trim) {
            Some("tcp" | "TCP" | "protocol 6") => Sender::Tcp,
            Some(other) if !other.is_empty() => Sender::Other(other.into()),
            _ => Sender::Unknown,
        }
    }
}

/// Facts about a flow. Everything may be absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowInfo {
    /// Sending host.
    pub src: Option<Arc<str>>,
    /// Receiving host.
    pub dst: Option<Arc<str>>,
    /// Time at which the flow's application asked.
    pub start: Option<Time>,
    /// Time at which the flow's SYN passed, in captures: it sent nothing before.
    pub opened: Option<Time>,
    /// Round trip of the flow on the idle network: a full data packet and its acknowledgement.
    pub base_rtt: Option<Span>,
    /// Beginning of the flow's sender.
    pub sender: Sender,
    /// Time in which the flow sent about twice what was acknowledged, from and to, where a capture shows both.
    pub doubled: Option<(Time, Time)>,
    /// Name of the flow, for example `h3 -> h9` or `10.0.0.1:80 > 10.0.0.2:5000`; empty: its number.
    pub name: Arc<str>,
}

/// Lookup of a flow, called when a burst in which it took part ends, and when the report is made. May learn flows while records
/// are read.
pub type FlowLookup = Arc<dyn Fn(u32) -> FlowInfo + Send + Sync>;

/// A lookup that knows nothing.
pub fn unknown_flows() -> FlowLookup {
    Arc::new(|_| FlowInfo::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senders_are_known_by_the_protocol_in_a_tunnel_too() {
        let of = |protocol: &str| Sender::of_name(&format!("10.0.0.1:80 > 10.0.0.2:5000{protocol}"));
        assert_eq!([of(" tcp"), of(" tcp vni 5001"), of(" protocol 6")], [Sender::Tcp, Sender::Tcp, Sender::Tcp]);
        assert_eq!([of(" udp"), of(" udp vni 5001")], [Sender::Other("udp".into()), Sender::Other("udp".into())]);
        assert_eq!([of(""), of(" "), Sender::of_name("tcp")], [Sender::Unknown, Sender::Unknown, Sender::Unknown]);
    }
}
