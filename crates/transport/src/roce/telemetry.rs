//! In-band telemetry of one end of a queue pair: reports about its own data, and stacks to return to the peer.

use fanin_packet::{HopSample, RoceOp, Stack};
use fanin_units::Time;

/// Telemetry state of one end of a queue pair.
#[derive(Clone, Debug, Default)]
pub(super) struct InBand {
    /// Stack of the packet that is passed in next.
    arrived: Option<Stack>,
    /// Stack of the latest data packet, which acknowledgments return.
    echo: Option<Stack>,
    /// Stack of the packet made last.
    sent: Option<Stack>,
    /// Samples of the last acknowledgment, one per port of the path.
    samples: Vec<HopSample>,
}

impl InBand {
    /// Stores the stack of the packet that is passed in next.
    pub(super) fn arrived(&mut self, stack: &Stack) {
        self.arrived = Some(*stack);
    }

    /// Processes a packet; for an acknowledgment, returns samples of the ports that its data has passed, and their hash.
    pub(super) fn on_packet(&mut self, now: Time, op: RoceOp) -> (&[HopSample], u16) {
        self.samples.clear();
        let mut path = 0;
        match self.arrived.take() {
            Some(stack) if op.is_data() && !stack.echo => self.echo = Some(stack.echoed()),
            Some(stack) if op == RoceOp::Acknowledge && stack.echo => {
                self.samples.extend(stack.records().iter().map(|record| record.sample(now)));
                path = stack.path;
            }
            _ => {}
        }
        (&self.samples, path)
    }

    /// Prepares the stack of a packet that was made.
    pub(super) fn sent(&mut self, op: RoceOp) {
        self.sent = match op {
            RoceOp::Acknowledge => self.echo,
            RoceOp::Notification => None,
            _ => Some(Stack::EMPTY),
        };
    }

    /// Takes the stack of the packet made last.
    pub(super) fn of_sent(&mut self) -> Option<Stack> {
        self.sent.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanin_packet::{Departure, Record};
    use fanin_units::BitRate;

    #[test]
    fn acknowledgments_send_back_what_the_latest_data_brought() {
        let (mut ours, mut theirs) = (InBand::default(), InBand::default());
        ours.sent(RoceOp::WriteFirst);
        assert_eq!((ours.of_sent(), ours.of_sent()), (Some(Stack::EMPTY), None));
        theirs.sent(RoceOp::Acknowledge);
        assert_eq!(theirs.of_sent(), None, "nothing to send back yet");
        let mut shim = Stack::EMPTY.shim();
        shim.add_hop(0x123);
        let mut records = Stack::EMPTY.places();
        records[0] =
            Record::of(&Departure { at: Time::from_ps(5_000), queue_bytes: 80, sent_bytes: 128, rate: BitRate::from_gbps(100) });
        let stack = Stack::of(&shim, records).expect("telemetry");
        theirs.arrived(&stack);
        assert_eq!(theirs.on_packet(Time::from_ps(9_000), RoceOp::WriteLast), (&[][..], 0));
        theirs.sent(RoceOp::Notification);
        assert_eq!(theirs.of_sent(), None);
        theirs.sent(RoceOp::Acknowledge);
        let echo = theirs.of_sent().expect("it is sent back");
        ours.arrived(&echo);
        let (samples, path) = ours.on_packet(Time::from_ps(20_000), RoceOp::Acknowledge);
        assert_eq!((samples.len(), samples[0].queue_bytes, samples[0].at.ps(), path), (1, 80, 5_000, 0x123));
        assert_eq!(ours.on_packet(Time::from_ps(30_000), RoceOp::Acknowledge), (&[][..], 0), "that one brought none");
    }
}
