//! Pauses by priority: the classes of a transmitter that must not send, and the times until which. Source: IEEE 802.1Q §36.

use fanin_units::{BitRate, Bytes, Span, Time};

/// Number of traffic classes, and so of priorities. Source: IEEE 802.1Q §6.9.3.
pub const PRIORITIES: usize = 8;

/// Bits of a quantum, the unit of times to pause. Source: IEEE 802.3 §31B.2.
pub const QUANTUM_BITS: u64 = 512;

/// Request of one PFC frame: by priority the quanta to pause for, zero to send again, absent to leave the class as it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pause(pub [Option<u16>; PRIORITIES]);

impl Pause {
    /// Takes from an earlier request the classes that this one leaves as they are.
    pub fn follows(&mut self, before: &Pause) {
        self.0.iter_mut().zip(before.0).for_each(|(now, before)| *now = now.or(before));
    }

    /// Duration of `quanta` at a rate.
    pub fn lasts(quanta: u16, rate: BitRate) -> Span {
        rate.time_to_send(Bytes(u64::from(quanta) * QUANTUM_BITS / 8))
    }
}

/// The pauses of one transmitter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gate {
    /// Times from which each priority may send again.
    until: [Time; PRIORITIES],
}

impl Default for Gate {
    fn default() -> Self {
        Gate { until: [Time::ZERO; PRIORITIES] }
    }
}

impl Gate {
    /// Starts the times of a frame that has arrived, at the rate of the link.
    pub fn on_pause(&mut self, now: Time, rate: BitRate, pause: &Pause) {
        for (until, quanta) in self.until.iter_mut().zip(pause.0) {
            if let Some(quanta) = quanta {
                *until = now + Pause::lasts(quanta, rate);
            }
        }
    }

    /// The priorities that may not send now, a bit for each.
    pub fn closed(&self, now: Time) -> u8 {
        let bit = |(priority, until): (usize, &Time)| u8::from(*until > now) << priority;
        self.until.iter().enumerate().map(bit).fold(0, |all, bit| all | bit)
    }

    /// Time at which the next paused priority may send again without a further frame.
    pub fn next_end(&self, now: Time) -> Option<Time> {
        self.until.iter().copied().filter(|until| *until > now).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pause(quanta: &[(usize, u16)]) -> Pause {
        let mut pause = Pause::default();
        quanta.iter().for_each(|(priority, quanta)| pause.0[*priority] = Some(*quanta));
        pause
    }

    #[test]
    fn a_request_goes_on_with_what_it_does_not_change() {
        let mut later = pause(&[(3, 0), (5, 20)]);
        later.follows(&pause(&[(3, 10), (4, 7)]));
        assert_eq!(later, pause(&[(3, 0), (4, 7), (5, 20)]));
    }

    #[test]
    fn a_quantum_is_512_bit_times() {
        assert_eq!(Pause::lasts(1, BitRate::from_gbps(10)), Span::from_ns(51) + Span::from_ps(200));
        assert_eq!(Pause::lasts(u16::MAX, BitRate::from_gbps(100)), Span::from_ps(5_120 * 65_535));
    }

    #[test]
    fn a_pause_ends_by_time_by_zero_and_is_set_anew_by_a_further_frame() {
        let (rate, start) = (BitRate::from_gbps(10), Time::from_ps(1_000));
        let mut gate = Gate::default();
        gate.on_pause(start, rate, &pause(&[(3, 10), (5, 20)]));
        assert_eq!(gate.closed(start), 0b10_1000);
        let ten = start + Pause::lasts(10, rate);
        assert_eq!(gate.next_end(start), Some(ten));
        assert_eq!((gate.closed(Time::from_ps(ten.ps() - 1)), gate.closed(ten)), (0b10_1000, 0b10_0000));
        gate.on_pause(ten, rate, &pause(&[(3, 1)]));
        assert_eq!((gate.closed(ten), gate.next_end(ten)), (0b10_1000, Some(ten + Pause::lasts(1, rate))));
        gate.on_pause(ten, rate, &pause(&[(5, 0)]));
        assert_eq!(gate.closed(ten), 0b1000, "what a frame does not name stays as it is");
        assert_eq!(Gate::default().next_end(start), None);
    }
}
