use super::*;
use crate::explain::Part;

const US: u64 = 1_000_000;
const MS: u64 = 1_000 * US;
const SEGMENT: u32 = 1_000;
/// Least times of data and of acknowledgments between both captures, at the receiver, and at the sender.
const FORTH: u64 = 20 * US;
const BACK: u64 = 30 * US;
const RECEIVER: u64 = 5 * US;
const SENDER: u64 = 2 * US;
/// What a segment takes on the slowest link.
const TAKES: u64 = 10 * US;

/// A connection whose packets are given one by one.
#[derive(Default)]
struct Wire(Vec<Passage>);

impl Wire {
    /// A segment of that number passes the near capture and, if it comes there, the far one.
    fn data(&mut self, number: u32, near: u64, far: Option<u64>, sent: Sent) -> &mut Self {
        self.0.push(Passage {
            data: true,
            seq: 1 + number * SEGMENT,
            ack: Some(1),
            payload: SEGMENT,
            bytes: SEGMENT,
            near: Some(near),
            far,
            least: FORTH,
            sent,
            ..Passage::default()
        });
        self
    }

    /// An acknowledgment of all before the segment of that number passes the far capture and then the near one.
    fn ack(&mut self, number: u32, far: u64, near: u64) -> &mut Self {
        let ack = Some(1 + number * SEGMENT);
        self.0.push(Passage { ack, near: Some(near), far: Some(far), bytes: 60, ..Passage::default() });
        self
    }

    /// A handshake from 0 on without any wait; the first data may be sent at its return.
    fn open(&mut self) -> u64 {
        let answered = FORTH + RECEIVER;
        let done = answered + BACK + SENDER;
        let syn = Passage { syn: true, bytes: 60, ..Passage::default() };
        self.0.push(Passage { data: true, near: Some(0), far: Some(FORTH), least: FORTH, ..syn });
        self.0.push(Passage { ack: Some(1), near: Some(answered + BACK), far: Some(answered), ..syn });
        self.0.push(Passage {
            data: true,
            seq: 1,
            ack: Some(1),
            near: Some(done),
            far: Some(done + FORTH),
            least: FORTH,
            syn: false,
            bytes: 0,
            ..syn
        });
        done
    }

    fn explain(&self, end: u64) -> Explanation {
        let places = ["a to b".to_string(), "b to a".to_string()];
        let mut packets = self.0.clone();
        packets.sort_by_key(|p| p.near);
        let talk =
            Talk { packets: &packets, start: 0, end, places, per_byte: (TAKES / u64::from(SEGMENT)) as f64, far: (0, u64::MAX) };
        let found = explain(&talk);
        assert_eq!(found.parts.iter().map(|part| part.time_ps).sum::<u64>(), end, "{:?}", found.parts);
        assert_eq!((found.steps[0].from_ps, found.steps.last().unwrap().to_ps), (0, end));
        assert!(found.steps.windows(2).all(|w| w[0].to_ps == w[1].from_ps));
        found
    }
}

fn time(parts: &[Part], kind: Kind, place: &str) -> u64 {
    parts.iter().filter(|part| part.kind == kind && part.place == place).map(|part| part.time_ps).sum()
}

#[test]
fn a_queue_a_slow_receiver_and_a_slow_sender_are_told_apart() {
    let mut wire = Wire::default();
    let mut at = wire.open();
    let opened = at;
    // Three rounds of one segment: it waits 100 us, then its acknowledgment at the receiver 200 us, then the sender 50 us.
    for round in 0..3 {
        let far = at + FORTH + 100 * US;
        let answered = far + RECEIVER + 200 * US;
        let near = answered + BACK;
        wire.data(round, at, Some(far), Sent::First).ack(round + 1, answered, near);
        at = near + SENDER + if round < 2 { 50 * US } else { 0 };
    }
    let end = at - SENDER;
    let found = wire.explain(end);
    let parts = &found.parts;
    assert_eq!(time(parts, Kind::Queue, "a to b"), 300 * US);
    assert_eq!(time(parts, Kind::ReceiverSide, ""), 600 * US);
    assert_eq!(time(parts, Kind::SenderSide, ""), 100 * US);
    assert_eq!(time(parts, Kind::Handshake, ""), opened);
    let around = FORTH + RECEIVER + BACK;
    assert_eq!(time(parts, Kind::CongestionWindow, "") + time(parts, Kind::Path, ""), 3 * around + 2 * SENDER);
    assert_eq!(time(parts, Kind::Unknown, ""), 0);
}

#[test]
fn a_burst_is_its_own_bytes_and_what_others_put_between_them() {
    let mut wire = Wire::default();
    let at = wire.open();
    // Five segments at once, 1 us apart; the fourth comes 70 us after the third, 60 of them of others.
    let mut far = at + FORTH;
    for number in 0..5 {
        wire.data(number, at + u64::from(number) * US, Some(far), Sent::First);
        far += if number == 2 { 70 * US } else { TAKES };
    }
    let last = far - TAKES;
    wire.ack(5, last + RECEIVER, last + RECEIVER + BACK);
    let found = wire.explain(last + RECEIVER + BACK);
    assert_eq!(time(&found.parts, Kind::Serialisation, ""), 4 * TAKES);
    assert_eq!(time(&found.parts, Kind::Queue, "a to b"), 60 * US);
    assert_eq!(time(&found.parts, Kind::Handshake, ""), at);
}

#[test]
fn a_timer_runs_from_the_acknowledgment_that_started_it_and_names_what_was_lost() {
    let mut wire = Wire::default();
    let at = wire.open();
    wire.data(0, at, Some(at + FORTH), Sent::First).data(1, at + US, None, Sent::First).data(2, at + 2 * US, None, Sent::First);
    let acked = at + FORTH + RECEIVER + BACK;
    wire.ack(1, at + FORTH + RECEIVER, acked);
    let again = acked + 200 * MS;
    wire.data(1, again, Some(again + FORTH), Sent::Timeout);
    let then = again + FORTH + RECEIVER + BACK;
    wire.ack(2, again + FORTH + RECEIVER, then);
    wire.data(2, then + SENDER, Some(then + SENDER + FORTH), Sent::Again);
    let end = then + SENDER + FORTH + RECEIVER + BACK;
    wire.ack(3, end - BACK, end);
    let found = wire.explain(end);
    assert_eq!(time(&found.parts, Kind::Rto, ""), 200 * MS);
    let around = FORTH + RECEIVER + BACK;
    assert_eq!(time(&found.parts, Kind::Loss, ""), around + SENDER, "the round that the third was waited for");
    assert_eq!(time(&found.parts, Kind::Path, ""), around);
    let [waited] = &found.waited[..] else { panic!("{:?}", found.waited) };
    assert_eq!((waited.lost_packets, waited.seq_bytes, waited.sent_again), (2, u64::from(SEGMENT), false));
    assert_eq!((waited.dropped_at.as_deref(), waited.dropped_ps), (Some("a to b"), Some(at + US)));
}

#[test]
fn without_acknowledgments_what_the_sender_waited_for_is_unknown() {
    let mut wire = Wire::default();
    wire.data(0, 0, Some(FORTH), Sent::First).data(1, 3 * MS, Some(3 * MS + FORTH + 40 * US), Sent::First);
    let found = wire.explain(3 * MS);
    assert_eq!(found.parts.len(), 2, "{:?}", found.parts);
    assert_eq!(time(&found.parts, Kind::Unknown, ""), 3 * MS - TAKES);
    assert_eq!(time(&found.parts, Kind::Serialisation, ""), TAKES);
}

#[test]
fn numbers_that_turn_over_and_packets_without_sense_end() {
    let mut wire = Wire::default();
    let first = u32::MAX - 1_500;
    for (i, seq) in [first, first.wrapping_add(1_000), first.wrapping_add(2_000)].into_iter().enumerate() {
        wire.data(0, i as u64 * MS, Some(i as u64 * MS + FORTH), Sent::First);
        wire.0.last_mut().unwrap().seq = seq;
    }
    wire.ack(0, 2 * MS + 100 * US, 2 * MS + 200 * US);
    wire.0.last_mut().unwrap().ack = Some(first.wrapping_add(3_000));
    let found = wire.explain(2 * MS + 200 * US);
    assert_eq!(time(&found.parts, Kind::Queue, "a to b"), 0);
    // Times that contradict each other: the far capture is before the near one, acknowledgments answer what comes later.
    let mut state = 7_u64;
    let mut below = move |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    for _ in 0..300 {
        let mut wire = Wire::default();
        for _ in 0..below(40) {
            let (near, far) = (below(2_000), below(2_000));
            let sent = [Sent::First, Sent::Again, Sent::Timeout, Sent::Probe][below(4) as usize];
            if below(2) == 0 {
                wire.data(below(6) as u32, near, (below(4) > 0).then_some(far), sent);
            } else {
                wire.ack(below(7) as u32, far, near);
            }
            let last = wire.0.last_mut().unwrap();
            last.syn = below(9) == 0;
            last.near = last.near.filter(|_| below(6) > 0);
        }
        wire.explain(1 + below(2_000));
    }
}
