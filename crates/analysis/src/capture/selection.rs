//! Selection of a capture's frames: taken and left out, for the report and in words.

use crate::display::{count, size};
use serde::Serialize;

/// Frames that were captured at one interface in one direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stream {
    /// Name of the port; absent where there is none.
    pub port: Option<String>,
    /// Name of the interface; none where the capture does not say.
    pub interface: Option<String>,
    /// `in` or `out`, seen from the place of capture; absent where the capture does not say.
    pub direction: Option<&'static str>,
    /// Receiving hosts with the most bytes, and their number.
    pub to: Vec<String>,
    pub hosts: usize,
    pub packets: u64,
    pub bytes: u64,
    pub flows: u64,
    /// Idle round trips of its TCP flows, by the handshakes of their hosts: of how many, the shortest and the longest.
    pub round_trips: u64,
    pub rtt_low_ps: Option<u64>,
    pub rtt_high_ps: Option<u64>,
    /// Reason for which the stream was taken, or left out.
    pub why: String,
}

/// Selection of a capture's frames.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Selection {
    /// Streams that were taken, one for each port.
    pub streams: Vec<Stream>,
    /// Streams that were left out, the busiest first.
    pub left_out: Vec<Stream>,
}

/// Frames of several places that are left out.
pub fn rest((packets, bytes, flows): (u64, u64, u64), why: String) -> Stream {
    Stream {
        port: None,
        interface: None,
        direction: None,
        to: Vec::new(),
        hosts: 0,
        packets,
        bytes,
        flows,
        round_trips: 0,
        rtt_low_ps: None,
        rtt_high_ps: None,
        why,
    }
}

/// Name of a stream in words.
fn called(stream: &Stream) -> String {
    if let (None, None, true) = (&stream.interface, stream.direction, stream.to.is_empty()) {
        return "the rest".into();
    }
    let mut text = stream.interface.clone().unwrap_or_default();
    let mut add = |more: &str| {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(more);
    };
    match stream.direction {
        Some(direction) => add(direction),
        None => match (stream.to.first(), stream.hosts) {
            (Some(host), 1) => add(&format!("to {host}")),
            (Some(_), hosts) => add(&format!("to {hosts} hosts")),
            _ => add("frames without a receiver"),
        },
    }
    text
}

fn counted(stream: &Stream) -> String {
    format!("{}, {}, {}", count(stream.packets, "packet"), size(stream.bytes as f64), count(stream.flows, "flow"))
}

impl Selection {
    /// One sentence on the frames that were taken and left out; `None` where all were taken.
    pub fn note(&self) -> Option<String> {
        if self.left_out.is_empty() && self.streams.len() <= 1 {
            return None;
        }
        let taken: Vec<String> = self.streams.iter().map(|s| format!("{} ({}): {}", called(s), counted(s), s.why)).collect();
        let left: Vec<String> =
            self.left_out.iter().take(3).map(|s| format!("{} ({}): {}", called(s), counted(s), s.why)).collect();
        let mut text = format!("taken: {}", taken.join("; "));
        if taken.is_empty() {
            text = "nothing was taken".into();
        }
        if !left.is_empty() {
            text.push_str(&format!("; left out: {}", left.join("; ")));
        }
        let more = self.left_out.len().saturating_sub(3);
        if more > 0 {
            text.push_str(&format!("; and {more} more"));
        }
        text.push_str("; --to, --direction and --interface choose otherwise");
        Some(text)
    }
}
