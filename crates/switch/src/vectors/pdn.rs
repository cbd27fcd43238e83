//! Vectors of PDN at one port of a switch.

use super::{Column, Role, Sequence, Vectors};
use crate::mechanism::message_frame;
use crate::mechanism::pdn::{bounds, notice_bytes, raising, Operations, Queue};
use fanin_dataplane::pdn::{fields, hops_left, Bounds, Lost, Raising, DROP_IPV4, DROP_IPV6, FIELDS};
use fanin_packet::{Framing, IpVersion};
use fanin_params::{names, params, Param};
use fanin_units::{Bytes, Purpose, Stream};

names! {
    /// Kind of event sequence in PDN's test vectors.
    pub enum Case {
        /// Drops for each reason, of each part of a packet.
        "drops" => Drops,
        /// Frames around the largest one that has room for a notification.
        "attach" => Attach,
        /// Drops while packets are sent: a packet goes first, and takes a notification with it.
        "priority" => Priority,
        /// Drops at an idle port: each notification leaves at once, in an empty frame.
        "hurry" => Hurry,
        /// Bursts of drops beyond the queue's room and their draining, three times.
        "bounds" => BoundsOf,
        /// Notifications of other switches with each number of hops left.
        "hops" => Hops,
        /// A next hop without PDN.
        "unaware" => Unaware,
        /// Random events.
        "random" => Random,
    }
}

params! {
    /// Settings of `fanin vectors pdn`.
    pub struct PdnVectorParams {
        /// Cases to write; each is written for IPv4 and for IPv6.
        pub cases: Vec<Case> = vec![Case::Drops, Case::Attach, Case::Priority, Case::Hurry, Case::BoundsOf, Case::Hops, Case::Unaware, Case::Random];
        /// Memory of the notification queue.
        pub queue: Bytes = Bytes(200), in Bytes(44)..=Bytes(100_000);
        /// Largest frame, its notification included.
        pub max_frame: Bytes = Bytes(1_518), in Bytes(128)..=Bytes(65_535);
        /// Action asked of the sender.
        pub operation: Operations = Operations::RetransmitAndHalve;
        /// Notification of dropped pure acknowledgments as well.
        pub acks: bool = true;
        /// Switches that a notification may cross.
        pub ttl: u32 = 64, in 2..=255;
        /// Seed of random events.
        pub seed: u64 = 1;
    }
}

const SETTINGS: &[Column] = &[
    Column::new("room", Role::Setting, 32, "B", "memory of the notification queue"),
    Column::new("each", Role::Setting, 8, "B", "a notification: 20 with IPv4, 44 with IPv6"),
    Column::new("type", Role::Setting, 8, "", "its type: 1 with IPv4, 2 with IPv6"),
    Column::new("max_frame", Role::Setting, 16, "B", "largest frame, its notification included"),
    Column::new("empty", Role::Setting, 16, "B", "frame with nothing but a notification"),
    Column::new("acks", Role::Setting, 1, "", "1: drops of acknowledgments without data are notified"),
    Column::new("halve", Role::Setting, 1, "", "1: the operation for data is 1; 0: it is 2"),
    Column::new("first_ttl", Role::Setting, 8, "", "hops of a notification that this switch raises"),
    Column::new("aware", Role::Setting, 1, "", "1: the next hop of the port runs PDN"),
];

const COLUMNS: &[Column] = &[
    Column::new("step", Role::Input, 32, "", "number of the event in its sequence"),
    Column::new("event", Role::Input, 2, "", "0 drop, 1 notification from a neighbour, 2 frame about to leave, 3 wire free"),
    Column::new("congestion", Role::Input, 1, "", "drop: 1 for want of room, 0 for want of a way"),
    Column::new("part", Role::Input, 2, "", "drop: 0 nothing that is repeated, 1 data, 2 acknowledgment without data"),
    Column::new("number", Role::Input, 32, "", "sequence or acknowledgment number"),
    Column::new("length", Role::Input, 16, "B", "payload"),
    Column::new("given", Role::Input, 8, "", "operation of the neighbour's notification"),
    Column::new("ttl", Role::Input, 8, "", "its hops left as it arrives"),
    Column::new("frame", Role::Input, 16, "B", "frame about to leave, FCS included"),
    Column::new("data", Role::Input, 1, "", "wire free: 1 if a packet may be sent"),
    Column::new("fate", Role::Output, 3, "", "0 none, 1 queued, 2 no room, 3 expired, 4 next hop without PDN"),
    Column::new("waiting", Role::Register, 16, "", "notifications in the queue, afterwards"),
    Column::new("peak", Role::Register, 16, "", "the most that there were"),
    Column::new("sends", Role::Output, 2, "", "notification that leaves: 0 none, 1 at the end of the frame, 2 in an empty frame"),
    Column::new("size", Role::Output, 16, "B", "frame that leaves, its notification included; 0: none"),
    Column::new("sent_number", Role::Output, 32, "", "number in the notification that leaves"),
    Column::new("sent_length", Role::Output, 16, "B", "length in it"),
    Column::new("sent_type", Role::Output, 8, "", "type in it"),
    Column::new("sent_operation", Role::Output, 8, "", "operation in it"),
    Column::new("sent_ttl", Role::Output, 8, "", "hops that it has left"),
];

#[derive(Clone, Copy)]
enum Event {
    Drop { congestion: bool, lost: Option<Lost>, number: u32, length: u16 },
    Notice { number: u32, length: u16, operation: u8, ttl: u8 },
    Departs { frame: u16 },
    Free { data: bool },
}

const SIZES: [u16; 4] = [64, 576, 1474, 1518];

struct Pattern {
    events: Vec<Event>,
    rng: Stream,
    bounds: Bounds,
}

impl Pattern {
    fn below(&mut self, n: u32) -> u32 {
        self.rng.below(u64::from(n)) as u32
    }

    fn dropped(&mut self, congestion: bool, lost: Option<Lost>) {
        let (number, length) = (self.rng.next_u32(), if lost == Some(Lost::Data) { self.below(9_000) as u16 } else { 0 });
        self.events.push(Event::Drop { congestion, lost, number, length });
    }

    fn data(&mut self, n: u32) {
        (0..n).for_each(|_| self.dropped(true, Some(Lost::Data)));
    }

    fn free(&mut self, data: bool) {
        self.events.push(Event::Free { data });
    }

    fn departs(&mut self, frame: u16) {
        self.events.push(Event::Departs { frame });
    }

    fn drops(&mut self) {
        for _ in 0..8 {
            for congestion in [true, false] {
                for lost in [Some(Lost::Data), Some(Lost::Acknowledgment), None] {
                    self.dropped(congestion, lost);
                    self.free(false);
                }
            }
        }
    }

    fn attach(&mut self) {
        let last = self.bounds.largest - u16::from(self.bounds.each);
        for frame in [last - 1, last, last + 1, self.bounds.largest, 64, u16::MAX] {
            self.departs(frame);
            self.data(2);
            (0..3).for_each(|_| self.departs(frame));
            (0..2).for_each(|_| self.departs(64));
        }
    }

    /// Sends as a port does: asks for the transmission opportunity; a packet that gets it departs.
    fn priority(&mut self) {
        for i in 0..120_u32 {
            if i % 3 < 2 {
                self.data(1 + i % 2);
            }
            let data = i % 4 != 3;
            self.free(data);
            if data {
                let frame = SIZES[self.below(4) as usize];
                self.departs(frame);
            }
        }
    }

    fn filled(&mut self) {
        let most = self.bounds.room / u32::from(self.bounds.each);
        for alone in [true, false, true] {
            self.data(most + 3);
            (0..most + 2).for_each(|_| if alone { self.free(false) } else { self.departs(64) });
        }
    }

    fn notice(&mut self, ttl: u8) {
        let (number, length) = (self.rng.next_u32(), self.below(9_000) as u16);
        let operation = 1 + self.below(3) as u8;
        self.events.push(Event::Notice { number, length, operation, ttl });
    }

    fn random(&mut self) {
        for _ in 0..600 {
            match self.below(10) {
                0..=2 => {
                    let (congestion, lost) = (self.below(8) > 0, [Some(Lost::Data), Some(Lost::Acknowledgment), None]);
                    let lost = lost[self.below(5).saturating_sub(2) as usize];
                    self.dropped(congestion, lost);
                }
                3 | 4 => {
                    let ttl = self.below(6) as u8;
                    self.notice(ttl);
                }
                5..=7 => {
                    let frame = SIZES[self.below(4) as usize];
                    self.departs(frame);
                }
                _ => {
                    let data = self.below(2) == 0;
                    self.free(data);
                }
            }
        }
    }
}

fn events(case: Case, params: &PdnVectorParams, bounds: Bounds) -> Vec<Event> {
    let rng = Stream::new(params.seed, Purpose::Mechanism, case as u64);
    let mut p = Pattern { events: Vec::new(), rng, bounds };
    match case {
        Case::Drops => p.drops(),
        Case::Attach => p.attach(),
        Case::Priority => p.priority(),
        Case::Hurry => (0..60).for_each(|_| {
            p.data(1);
            p.free(false);
            p.free(false);
        }),
        Case::BoundsOf => p.filled(),
        Case::Hops => (0..=255).for_each(|ttl| {
            p.notice(ttl);
            p.free(false);
        }),
        Case::Unaware => (0..20).for_each(|i| {
            p.data(1);
            p.notice(i);
            p.departs(64);
            p.free(false);
        }),
        Case::Random => p.random(),
    }
    p.events
}

/// Notification in the queue of a port: the bytes behind addresses and ports, and its hops left.
type Notice = ([u8; FIELDS], u8);

struct Port {
    bounds: Bounds,
    raising: Raising,
    kind: u8,
    empty: u16,
    first_ttl: u8,
    /// Queue of notifications; `None` where the next hop runs no PDN.
    queue: Option<Queue<Notice>>,
}

const NONE: i64 = 0;
const EXPIRED: i64 = 3;

impl Port {
    fn queued(&mut self, notice: Notice) -> i64 {
        match self.queue.as_mut().map(|queue| queue.push(&self.bounds, notice)) {
            Some(true) => 1,
            Some(false) => 2,
            None => 4,
        }
    }

    /// Row of an event, without its step.
    fn row(&mut self, event: Event) -> Vec<i64> {
        let mut inputs = [0_i64; 9];
        let (mut fate, mut sends, mut size, mut sent) = (NONE, 0, 0, None);
        match event {
            Event::Drop { congestion, lost, number, length } => {
                let part = lost.map_or(0, |lost| if lost == Lost::Data { 1 } else { 2 });
                inputs = [0, i64::from(congestion), part, i64::from(number), i64::from(length), 0, 0, 0, 0];
                if let Some(operation) = self.raising.operation(congestion, lost) {
                    fate = self.queued((fields(number, length, self.kind, operation), self.first_ttl));
                }
            }
            Event::Notice { number, length, operation, ttl } => {
                inputs = [1, 0, 0, i64::from(number), i64::from(length), i64::from(operation), i64::from(ttl), 0, 0];
                fate = match hops_left(ttl) {
                    Some(left) => self.queued((fields(number, length, self.kind, operation), left)),
                    None => EXPIRED,
                };
            }
            Event::Departs { frame } => {
                (inputs[0], inputs[7]) = (2, i64::from(frame));
                sent = self.queue.as_mut().and_then(|queue| queue.attach(&self.bounds, frame));
                (sends, size) = (i64::from(sent.is_some()), i64::from(frame));
                size += if sent.is_some() { i64::from(self.bounds.each) } else { 0 };
            }
            Event::Free { data } => {
                (inputs[0], inputs[8]) = (3, i64::from(data));
                sent = self.queue.as_mut().and_then(|queue| queue.alone(&self.bounds, data));
                (sends, size) = if sent.is_some() { (2, i64::from(self.empty)) } else { (0, 0) };
            }
        }
        let (waiting, peak) = self.queue.as_ref().map_or((0, 0), |queue| (queue.len(), queue.peak()));
        let mut row = inputs.to_vec();
        row.extend([fate, i64::from(waiting), i64::from(peak), sends, size]);
        row.extend(sent.map_or([0; 5], |([a, b, c, d, high, low, kind, operation], ttl)| {
            let (number, length) = (u32::from_be_bytes([a, b, c, d]), u16::from_be_bytes([high, low]));
            [i64::from(number), i64::from(length), i64::from(kind), i64::from(operation), i64::from(ttl)]
        }));
        row
    }
}

fn sequence(case: Case, params: &PdnVectorParams, ip: IpVersion) -> Sequence {
    let bounds = bounds(params.queue, params.max_frame, ip);
    let empty = message_frame(&Framing { ip, ..Framing::ETHERNET }, notice_bytes(ip) as u8);
    let mut port = Port {
        bounds,
        raising: raising(params.acks, params.operation),
        kind: if ip == IpVersion::V4 { DROP_IPV4 } else { DROP_IPV6 },
        empty,
        first_ttl: params.ttl as u8,
        queue: (case != Case::Unaware).then(Queue::new),
    };
    let settings = [
        i64::from(bounds.room),
        i64::from(bounds.each),
        i64::from(port.kind),
        i64::from(bounds.largest),
        i64::from(empty),
        i64::from(port.raising.acks),
        i64::from(port.raising.halve),
        i64::from(port.first_ttl),
        i64::from(port.queue.is_some()),
    ];
    let rows = (0..).zip(events(case, params, bounds));
    let rows = rows.map(|(step, event)| [vec![step], port.row(event)].concat()).collect();
    Sequence { case: case.name(), settings: settings.to_vec(), rows }
}

/// Every case, with IPv4 and with IPv6.
pub(super) fn vectors(params: &PdnVectorParams) -> Vectors {
    let fanin_params::Schema::Names(names) = Case::schema() else { unreachable!("`names!` gives names") };
    let about = |case: &Case| names.values.iter().find(|(name, _)| *name == case.name()).map(|(_, doc)| doc.clone());
    let cases = params.cases.iter().map(|case| (case.name(), about(case).unwrap_or_default())).collect();
    let both = |case: &Case| [IpVersion::V4, IpVersion::V6].map(|ip| sequence(*case, params, ip));
    let sequences = params.cases.iter().flat_map(both).collect();
    Vectors { mechanism: "pdn", cases, settings: SETTINGS, columns: COLUMNS, sequences }
}
