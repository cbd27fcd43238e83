//! Data of a flow against its acknowledgments, where a capture shows both: slow start of the sender, confirmed bytes, bytes that
//! came again.
//!
//! After a moment at which all was acknowledged a sender has sent its first window W and then, for A acknowledged bytes, 2·A more in slow start,
//! and A more where its window stays. The ratio is of sums since that moment, so it does not depend on how long acknowledgments take.
//! Source: RFC 5681 §3.1. At a receiver each segment is acknowledged at once, and the ratio is 1 whatever the sender does.

use crate::capture::sequence::after;

/// Bytes sent for each acknowledged one, without the first window, from which it is slow start. Between one and two, nearer to
/// two, since what the last acknowledgments release is still to come.
const TWICE: f64 = 1.6;
/// Full segments that must be acknowledged before a ratio says something.
const SEGMENTS: u32 = 4;
/// Payload of a full segment, as it matters here [bytes].
const SEGMENT: u32 = 1448;

/// Reason for which a segment comes below what was sent before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// The segment was sent again.
    Again,
    /// Later segments overtook it, in the network or in the capture.
    Overtaken,
    /// The segment fills a gap, and nothing tells which.
    Unclear,
}

/// One direction of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Acks {
    /// Sequence number at which all had been acknowledged; none where that was not seen yet.
    base: Option<u32>,
    /// Bytes sent beyond `base` before the first acknowledgment.
    window: u32,
    /// Latest acknowledgment.
    acked: Option<u32>,
    /// A segment came again since: slow start is over.
    lost: bool,
    /// Time in which twice as much was sent as acknowledged, from and to [ps after the capture's first frame].
    pub doubled: Option<(i64, i64)>,
    /// Segments that came again, in whole or in part, and bytes that did.
    pub again: u64,
    pub again_bytes: u64,
    /// Segments among these that may only have been overtaken.
    pub unclear: u64,
    /// Bytes that were acknowledged.
    pub confirmed: u64,
}

impl Acks {
    /// A connection begins with this sequence number, which no data has.
    pub fn begin(&mut self) {
        let Acks { doubled, again, again_bytes, unclear, confirmed, .. } = *self;
        *self = Acks { doubled, again, again_bytes, unclear, confirmed, ..Acks::default() };
    }

    /// Takes a segment of `payload` bytes; `next`: the sequence number behind all that was sent before.
    #[inline]
    pub fn sent(&mut self, at: i64, (seq, payload): (u32, u32), next: Option<u32>) {
        if payload == 0 {
            return;
        }
        let end = seq.wrapping_add(payload);
        if let Some(next) = next.filter(|next| after(*next, seq)) {
            self.again_bytes += u64::from(payload.min(next.wrapping_sub(seq)));
            if !after(end, next) {
                return self.late(Late::Again);
            }
        }
        if self.acked.is_some() && self.acked == next {
            (self.base, self.window, self.lost) = (next, 0, false);
        }
        let Some(base) = self.base.filter(|_| !self.lost) else { return };
        let acked = self.acked.map_or(0, |acked| acked.wrapping_sub(base));
        let sent = end.wrapping_sub(base);
        if acked == 0 {
            self.window = sent;
        } else if acked >= (SEGMENTS * SEGMENT).max(self.window / 2)
            && f64::from(sent.saturating_sub(self.window)) >= TWICE * f64::from(acked)
        {
            let from = self.doubled.map_or(at, |(from, _)| from);
            self.doubled = Some((from, at));
        }
    }

    /// Takes a segment below what was sent before.
    pub fn late(&mut self, late: Late) {
        if late != Late::Overtaken {
            self.again += 1;
            self.unclear += u64::from(late == Late::Unclear);
            self.lost = true;
        }
    }

    /// Takes an acknowledgment; `next`: the sequence number behind all that was sent.
    #[inline]
    pub fn acknowledged(&mut self, ack: u32, next: Option<u32>) {
        let Some(before) = self.acked else {
            // A capture may begin anywhere.
            self.acked = next.map(|next| if after(ack, next) { next } else { ack });
            return;
        };
        if after(ack, before) {
            self.confirmed += u64::from(ack.wrapping_sub(before));
            self.acked = Some(ack);
        }
    }

    /// Bytes sent up to `next` that no acknowledgment confirms; `None` where no acknowledgment was seen.
    pub fn outstanding(&self, next: Option<u32>) -> Option<u32> {
        let (acked, next) = (self.acked?, next?);
        Some(if after(next, acked) { next.wrapping_sub(acked) } else { 0 })
    }
}

/// Shortest time over which acknowledgments make a rate, and time without any that ends it [ps].
const LEAST_TIME: u64 = 50_000_000_000;
const SILENCE: u64 = 200_000_000_000;

/// Acknowledgments of data that passed one port, and the frames that brought the data.
///
/// An acknowledgment that closes a gap confirms at once what arrived over the time that the gap was open. So the rate is that of whole stretches
/// between silences, without the acknowledgment that each begins with.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    /// The present stretch: its begin, its end, and the bytes after the first acknowledgment.
    stretch: Option<(u64, u64, u64)>,
    /// The fastest stretch [bytes/ps].
    fastest: f64,
    /// Wire bytes and payload of packets with data, and their number.
    wire: u64,
    payload: u64,
    packets: u64,
}

impl Meter {
    /// Counts a packet with data that arrived at the port.
    #[inline]
    pub fn data(&mut self, wire: u64, payload: u32) {
        self.wire += wire;
        self.payload += u64::from(payload);
        self.packets += 1;
    }

    /// Adds bytes that were newly acknowledged at `time`.
    #[inline]
    pub fn acknowledged(&mut self, time: u64, bytes: u32) {
        match &mut self.stretch {
            Some((_, end, sum)) if time.saturating_sub(*end) < SILENCE => {
                *end = time.max(*end);
                *sum += u64::from(bytes);
            }
            _ => {
                self.fastest = self.fastest.max(self.present());
                self.stretch = Some((time, time, 0));
            }
        }
    }

    fn present(&self) -> f64 {
        let long = self.stretch.filter(|(begin, end, _)| end - begin >= LEAST_TIME);
        long.map_or(0.0, |(begin, end, bytes)| bytes as f64 / (end - begin) as f64)
    }

    /// Packets of TCP with data.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Rate of acknowledged data on the wire of the port [bit/s]; `None` where there were no acknowledgments for long enough.
    pub fn rate(&self) -> Option<f64> {
        let frames = self.wire as f64 / self.payload.max(1) as f64;
        let fastest = self.fastest.max(self.present());
        (fastest > 0.0 && self.payload > 0).then_some(fastest * frames * fanin_units::BPS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sender whose acknowledgments release `each` segments, but for the first `window`, for so many; from `lossy` on it repeats one.
    fn run(window: u32, each: u32, acks: u32, lossy: u32) -> Acks {
        let mut a = Acks::default();
        let (isn, mut next) = (u32::MAX - 20_000, u32::MAX - 20_000 + 1);
        a.acknowledged(isn.wrapping_add(1), Some(next));
        let mut at = 0;
        let mut send = |a: &mut Acks, next: &mut u32| {
            at += 1;
            a.sent(at, (*next, 1448), Some(*next));
            *next = next.wrapping_add(1448);
        };
        (0..window).for_each(|_| send(&mut a, &mut next));
        let mut ack = isn.wrapping_add(1);
        for i in 0..acks {
            ack = ack.wrapping_add(1448);
            a.acknowledged(ack, Some(next));
            if i == lossy {
                a.sent(i64::MAX, (ack, 1448), Some(next));
            }
            (0..each).for_each(|_| send(&mut a, &mut next));
        }
        a
    }

    #[test]
    fn slow_start_sends_two_for_each_that_is_acknowledged_and_a_window_that_stays_one() {
        let a = run(10, 2, 100, u32::MAX);
        let (from, until) = a.doubled.expect("slow start");
        assert!((15..30).contains(&from) && until == 210, "{from} {until}");
        assert_eq!((a.confirmed, a.again, a.outstanding(None)), (100 * 1448, 0, None));
        assert_eq!(run(10, 1, 100, u32::MAX).doubled, None);
        assert_eq!(run(40, 1, 400, u32::MAX).doubled, None);
    }

    #[test]
    fn after_a_loss_slow_start_is_over_until_all_is_acknowledged() {
        let a = run(10, 2, 100, 40);
        assert_eq!((a.again, a.doubled.map(|d| d.1)), (1, Some(90)));
        let mut idle = a;
        let next = 5_000_000_u32;
        idle.acked = Some(next);
        idle.sent(1_000, (next, 1448), Some(next));
        assert_eq!((idle.base, idle.window, idle.lost), (Some(next), 1448, false));
    }

    #[test]
    fn acknowledged_rates_are_those_of_frames_on_the_wire() {
        let mut meter = Meter::default();
        assert_eq!(meter.rate(), None);
        // 1448 B acknowledged each 116 us, as a port of 100 Mb/s sends frames of 1450 B on the wire.
        for i in 0..1_000_u64 {
            meter.data(1450, 1448);
            meter.acknowledged(i * 116_000_000, 1448);
        }
        let rate = meter.rate().unwrap();
        assert!((rate / 100e6 - 1.0).abs() < 0.01, "{rate}");
        assert_eq!(meter.packets(), 1_000);
        // A gap that is closed after a silence confirms what came before it.
        meter.acknowledged(400_000_000_000, 50_000_000);
        assert_eq!(meter.rate(), Some(rate));
    }

    #[test]
    fn at_a_receiver_each_segment_is_acknowledged_at_once_which_says_nothing() {
        let mut a = Acks::default();
        a.acknowledged(1, Some(1));
        for i in 0..1_000_u32 {
            let seq = 1 + i * 1448;
            a.sent(i64::from(i), (seq, 1448), Some(seq));
            a.acknowledged(seq + 1448, Some(seq + 1448));
        }
        assert_eq!((a.doubled, a.confirmed), (None, 1_448_000));
    }
}
