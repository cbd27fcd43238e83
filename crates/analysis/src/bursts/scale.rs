//! Defaults that scale with the port's speed and the round trip.
//!
//! What is a burst at 10 Gb/s is less than a frame at 100 Mb/s: 25 us carry 20 full frames there and a fifth of one here. So a window or a
//! threshold is the larger of a time and a number of frames.

use fanin_units::{BitRate, Bytes, Span};

/// A full frame of Ethernet, where frames are unknown.
pub(crate) const FULL_FRAME: u64 = 1518;

/// Shortest window for detection by rate. Source: IMC17-microbursts §4.
const WINDOW: Span = Span::from_us(25);
/// Share of the port's speed above which a window is hot. Source: IMC17-microbursts §4.
#[cfg(feature = "files")]
pub(crate) const SHARE: f64 = 0.5;
/// Full frames that the port sends in a window, at least.
///
/// An evenly paced stream of load ρ brings ρ·N frames to a window of N frame times, one more or one less. Around a share of 0.5 its
/// windows are all of one kind when |ρ − 0.5|·N > 1: from 55 % of the speed on it is one burst, up to 45 % it is none.
const WINDOW_FRAMES: u64 = 20;
/// Part of a round trip that a window lasts, at least: what a sender's window makes of one round trip, groups of packets and the gaps
/// between them, is not told apart further.
const WINDOW_RTT: u64 = 4;

/// Time in which a port drains the threshold of its queue.
const DRAIN: Span = Span::from_us(100);
/// Least threshold of a queue, in full frames: evenly paced streams that happen to meet leave a few frames waiting at any speed.
const QUEUE_FRAMES: u64 = 8;
/// Full frames of the threshold where the port's speed is unknown.
const UNKNOWN_RATE_FRAMES: u64 = 16;

/// Time for which a flow must have been active to be background where no round trip is known.
const BACKGROUND: Span = Span::from_ms(1);
/// Least time of activity that makes a background flow, in full frames.
const BACKGROUND_FRAMES: u64 = 80;

/// Time that the port takes for `count` full frames.
fn frames(count: u64, rate: BitRate, overhead: Bytes) -> Span {
    rate.time_to_send(Bytes(count * (FULL_FRAME + overhead.0)))
}

/// Origin of a default value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// A time.
    Time(Span),
    /// A number of full frames.
    Frames(u64),
    /// A part of the round trip.
    Rtt(Span),
}

impl std::fmt::Display for Why {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Why::Time(span) => write!(f, "{span}"),
            Why::Frames(count) => write!(f, "{count} frames of {FULL_FRAME} B"),
            Why::Rtt(rtt) => write!(f, "1/{WINDOW_RTT} of the round trip of {rtt}"),
        }
    }
}

/// The window of detection by rate.
pub(crate) fn window(rate: BitRate, overhead: Bytes, rtt: Option<Span>) -> (Span, Why) {
    let by_frames = (frames(WINDOW_FRAMES, rate, overhead), Why::Frames(WINDOW_FRAMES));
    let by_rtt = rtt.map(|rtt| (Span::from_ps(rtt.ps() / WINDOW_RTT), Why::Rtt(rtt)));
    [Some(by_frames), by_rtt].into_iter().flatten().fold((WINDOW, Why::Time(WINDOW)), |longest, other| {
        if other.0 > longest.0 {
            other
        } else {
            longest
        }
    })
}

/// The queue above which a burst begins.
pub(crate) fn threshold(rate: Option<BitRate>) -> (Bytes, Why) {
    let Some(rate) = rate else { return (Bytes(UNKNOWN_RATE_FRAMES * FULL_FRAME), Why::Frames(UNKNOWN_RATE_FRAMES)) };
    let (drained, least) = (rate.bytes_in(DRAIN), Bytes(QUEUE_FRAMES * FULL_FRAME));
    if drained >= least {
        (drained, Why::Time(DRAIN))
    } else {
        (least, Why::Frames(QUEUE_FRAMES))
    }
}

/// Time for which a flow of an unknown round trip must have been active to be background.
pub(crate) fn background(rate: Option<BitRate>, overhead: Bytes) -> Span {
    rate.map_or(BACKGROUND, |rate| frames(BACKGROUND_FRAMES, rate, overhead).max(BACKGROUND))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEEDS_MBPS: [u64; 10] = [10, 100, 1_000, 2_500, 10_000, 25_000, 40_000, 100_000, 200_000, 400_000];

    #[test]
    fn windows_hold_frames_at_every_speed_and_are_those_of_the_paper_from_10_gbps_on() {
        for mbps in SPEEDS_MBPS {
            let rate = BitRate::from_mbps(mbps);
            let (window, _) = window(rate, Bytes(20), None);
            let held = window.ps() as f64 / rate.time_to_send(Bytes(1538)).ps() as f64;
            assert!(held >= 20.0, "{mbps} Mb/s: {held} frames");
            assert_eq!(window == WINDOW, mbps >= 10_000, "{mbps} Mb/s: {window}");
        }
        let (slow, from) = window(BitRate::from_mbps(100), Bytes(0), None);
        assert_eq!((slow, from.to_string().as_str()), (Span::from_ps(2_428_800_000), "20 frames of 1518 B"));
        let (far, from) = window(BitRate::from_gbps(10), Bytes(20), Some(Span::from_ms(20)));
        assert_eq!((far, from.to_string().as_str()), (Span::from_ms(5), "1/4 of the round trip of 20ms"));
    }

    #[test]
    fn thresholds_hold_frames_at_every_speed_and_are_100_us_from_1_gbps_on() {
        for mbps in SPEEDS_MBPS {
            let rate = BitRate::from_mbps(mbps);
            let (above, from) = threshold(Some(rate));
            assert!(above.0 >= 8 * FULL_FRAME, "{mbps} Mb/s: {above}");
            assert_eq!(from == Why::Time(DRAIN), mbps >= 1_000, "{mbps} Mb/s: {above}");
            assert_eq!(background(Some(rate), Bytes(20)) == BACKGROUND, mbps >= 1_000, "{mbps} Mb/s");
        }
        assert_eq!(threshold(None), (Bytes(24_288), Why::Frames(16)));
    }
}
