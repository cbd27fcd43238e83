//! In-band telemetry of one end of a queue pair: reports about its own data, and stacks to return to the peer.

use fanin_packet::{HopSample, RoceOp, Stack, MAX_HOPS};
use fanin_units::{BitRate, Time};

/// Telemetry state of one end of a queue pair: of what it sends, and of what it receives.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub(super) struct InBand {
    /// Stack that the peer has sent back with the packet that is passed in next.
    returned: Option<Stack>,
    /// Stack of the latest data packet, which acknowledgments return.
    echo: Option<Stack>,
}

/// Sample of no port.
const NOTHING: HopSample = HopSample { queue_bytes: 0, tx_bytes: 0, at: Time::ZERO, rate: BitRate(0) };

/// Samples of the ports that acknowledged data has passed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Samples {
    hops: usize,
    places: [HopSample; MAX_HOPS],
    /// Hash of the ports.
    pub path: u16,
}

impl Samples {
    /// No samples.
    pub(super) const NONE: Samples = Samples { hops: 0, places: [NOTHING; MAX_HOPS], path: 0 };

    /// Samples of a stack that has come back, as of `now`.
    fn of(stack: &Stack, now: Time) -> Samples {
        let mut samples = Samples { hops: stack.records().len(), path: stack.path, ..Samples::NONE };
        for (place, record) in samples.places.iter_mut().zip(stack.records()) {
            *place = record.sample(now);
        }
        samples
    }

    /// One sample per port, in the order of the path.
    pub(super) fn as_slice(&self) -> &[HopSample] {
        &self.places[..self.hops]
    }
}

impl InBand {
    /// Shows `fetch` the memory that an end uses: two cache lines each for one that sends and for one that receives.
    #[inline(always)]
    pub(super) fn apart(&self, sends: bool, fetch: &impl Fn(*const u8)) {
        let stack = if sends { &self.returned } else { &self.echo };
        let first = std::ptr::from_ref(stack).cast::<u8>();
        fetch(first);
        fetch(first.wrapping_add(64));
    }

    /// Stores the stack of the packet that is passed in next.
    pub(super) fn arrived(&mut self, stack: &Stack) {
        if stack.echo {
            self.returned = Some(*stack);
        } else {
            self.echo = Some(stack.echoed());
        }
    }

    /// Takes the samples that an acknowledgment has brought.
    pub(super) fn take_samples(&mut self, now: Time) -> Samples {
        self.returned.take().map_or(Samples::NONE, |stack| Samples::of(&stack, now))
    }

    /// Stack of a packet that was made.
    pub(super) fn of_sent(&self, op: RoceOp) -> Option<Stack> {
        match op {
            RoceOp::Acknowledge => self.echo,
            RoceOp::Notification => None,
            _ => Some(Stack::EMPTY),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanin_packet::{Departure, Record};

    #[test]
    fn acknowledgments_send_back_what_the_latest_data_brought() {
        let (mut ours, mut theirs) = (InBand::default(), InBand::default());
        assert_eq!(ours.of_sent(RoceOp::WriteFirst), Some(Stack::EMPTY));
        assert_eq!(theirs.of_sent(RoceOp::Acknowledge), None, "nothing to send back yet");
        let mut shim = Stack::EMPTY.shim();
        shim.add_hop(0x123);
        let mut records = Stack::EMPTY.places();
        records[0] = Record::of(&Departure { at: Time::from_ps(5_000), queue_bytes: 80, sent_bytes: 128, code: 10 });
        let stack = Stack::of(&shim, records).expect("telemetry");
        theirs.arrived(&stack);
        let samples = theirs.take_samples(Time::from_ps(9_000));
        assert_eq!((samples.as_slice(), samples.path), (&[][..], 0), "of its own data nothing came back");
        assert_eq!(theirs.of_sent(RoceOp::Notification), None);
        let echo = theirs.of_sent(RoceOp::Acknowledge).expect("it is sent back");
        ours.arrived(&echo);
        let samples = ours.take_samples(Time::from_ps(20_000));
        let [sample] = samples.as_slice() else { panic!("{} samples of one port", samples.as_slice().len()) };
        assert_eq!((sample.queue_bytes, sample.at.ps(), samples.path), (80, 5_000, 0x123));
        let again = ours.take_samples(Time::from_ps(30_000));
        assert_eq!((again.as_slice(), again.path), (&[][..], 0), "that one brought none");
    }
}
