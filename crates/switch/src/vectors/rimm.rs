//! Vectors of RIMM: detector, alert, choice of the neighbour, sequencer and post-detour handler of one switch.

use super::{Column, Role, Sequence, Vectors};
use crate::mechanism::rimm::testing::{Event, Registers, Switch};
use crate::{DrainedParams, FlowletGap, Release, RimmParams};
use fanin_params::{names, params, Node, Param, Value};
use fanin_units::{Amount, Bytes, Purpose, Span, Stream};

names! {
    /// Kind of event sequence in RIMM's test vectors.
    pub enum Case {
        /// Queues that cross α, touch it, and stay around it.
        "detector" => Detector,
        /// Messages in order, overtaken, twice, lost, and with numbers that wrap around.
        "messages" => Messages,
        /// Neighbours' depths that change, equal ones, ports in alert, depths beyond `room`.
        "select" => Select,
        /// Packets that come back in any order after the alert.
        "order" => Order,
        /// Flows of several ports that share pairs.
        "collide" => Collide,
        /// Packets that come back in order and slowly: a pair that moves is not given up.
        "stall" => Stall,
        /// Packets that come back in order while new ones join behind them: the detour outlives its alert, or goes on with alerts until
        /// it is too long.
        "last" => Last,
        /// Packets that do not come back, and others that come late.
        "holes" => Holes,
        /// New packets at distances around χ, while others are out.
        "gaps" => Gaps,
        /// An alert that lasts for longer than `give_up`, and the next one.
        "congestion" => Congestion,
        /// Numbers and clock that wrap around.
        "wrap" => Wrap,
        /// Packets with few hops left, and none of the neighbours heard.
        "hops" => Hops,
        /// Random sequence of all events.
        "random" => Random,
    }
}

params! {
    /// Settings of `fanin vectors rimm`.
    pub struct RimmVectorParams {
        /// Cases to write.
        pub cases: Vec<Case> = vec![Case::Detector, Case::Messages, Case::Select, Case::Order, Case::Collide, Case::Stall, Case::Last, Case::Holes, Case::Gaps, Case::Congestion, Case::Wrap, Case::Hops, Case::Random];
        /// Seed of random events.
        pub seed: u64 = 1;
        /// α: depth of a queue from which on its packets take detours.
        pub alpha: Bytes = Bytes(1_600_000), in Bytes(3)..=Bytes(3_000_000_000);
        /// Ports that lead to neighbours; one more leads to a host.
        pub neighbours: u32 = 3, in 1..=64;
        /// Number of hash bits that select a pair of sequence numbers.
        pub hash_bits: u32 = 12, in 0..=16;
        /// Duration of an alert that is congestion, of a wait without a release, and of a detour after its alert.
        pub give_up: Span = Span::from_ms(1), in Span::from_us(1)..=Span::from_ms(1_000);
        /// Duration of a detour after which its pair is given up.
        pub longest: Span = Span::from_ms(10), in Span::from_us(1)..=Span::from_ms(4_000);
        /// Interval of messages about a queue that stays above α.
        pub repeat: Span = Span::from_us(100), in Span::from_us(1)..=Span::from_ms(1_000);
        /// χ: gap that ends a detour; each case is written with both conditions, Sa = Sf and the gap.
        pub chi: Span = Span::from_us(500), in Span::from_ns(10)..=Span::from_ms(1_000);
        /// Depth from which a neighbour gets no detours.
        pub room: Bytes = Bytes(4_000_000), in Bytes(80)..=Bytes(5_242_800);
    }
}

const SETTINGS: &[Column] = &[
    Column::new("alpha", Role::Setting, 32, "B", "α"),
    Column::new(
        "give_up",
        Role::Setting,
        32,
        "ns",
        "alerts are given up after so long; pairs after so long without a release, or at a port that has run empty (flowlet = 0)",
    ),
    Column::new("longest", Role::Setting, 32, "ns", "pairs are given up so long after their detour began"),
    Column::new("repeat", Role::Setting, 32, "ns", "messages are repeated after so long at α or above"),
    Column::new("flowlet", Role::Setting, 1, "", "1: a detour ends by a gap of χ; 0: when Sa = Sf"),
    Column::new("chi", Role::Setting, 32, "ns", "χ (flowlet only)"),
    Column::new("hash_bits", Role::Setting, 8, "", "upper bits of the hash that are the index"),
    Column::new(
        "neighbours",
        Role::Setting,
        8,
        "",
        "ports 0 … neighbours − 1 lead to switches with RIMM, the next one to a host",
    ),
    Column::new("room", Role::Setting, 16, "80 B", "neighbours with this depth or more get no detours"),
    Column::new("start", Role::Setting, 32, "", "Sa and Sf of all pairs at the start"),
];

const COLUMNS: &[Column] = &[
    Column::new("step", Role::Input, 32, "", "number of the event in its sequence"),
    Column::new(
        "event",
        Role::Input,
        2,
        "",
        "0: a packet has left port; 1: a message is back; 2: a new packet; 3: a packet is back",
    ),
    Column::new("clock", Role::Input, 32, "ns", "when, modulo 2^32"),
    Column::new(
        "port",
        Role::Input,
        16,
        "",
        "egress port: of the packet that left, that the message is about, that the packet is for",
    ),
    Column::new("depth", Role::Input, 32, "B", "queue that was left behind, or that the message states; 0 of packets"),
    Column::new("crossing", Role::Input, 16, "", "number of the message's crossing (event 1)"),
    Column::new("from", Role::Input, 16, "", "ingress port (events 1 to 3)"),
    Column::new("heard", Role::Input, 16, "80 B", "depth that its sender states (events 1 to 3)"),
    Column::new("hash", Role::Input, 32, "", "hash of the 5-tuple (events 2 and 3)"),
    Column::new("number", Role::Input, 32, "", "its number (event 3)"),
    Column::new("ttl", Role::Input, 8, "", "hops left when it has come in (events 2 and 3)"),
    Column::new("above", Role::Register, 1, "", "detector of the port: the depth was at α or above"),
    Column::new("crossings", Role::Register, 16, "", "detector of the port: crossings so far, modulo 2^16"),
    Column::new("on", Role::Register, 1, "", "alert of the port"),
    Column::new("over", Role::Register, 1, "", "alert of the port: it has lasted for too long"),
    Column::new("index", Role::Register, 16, "", "of the pair (events 2 and 3)"),
    Column::new("sa", Role::Register, 32, "", "Sa of the pair afterwards (events 2 and 3)"),
    Column::new("sf", Role::Register, 32, "", "Sf of the pair afterwards (events 2 and 3)"),
    Column::new("given_up", Role::Output, 1, "", "the pair was given up"),
    Column::new("message", Role::Output, 1, "", "a message about the port leaves (event 0)"),
    Column::new("action", Role::Output, 3, "", "of a packet: 0 goes on, 1 detour, 2 release, 3 late, 4 again, 5 let go, 6 stays"),
    Column::signed("way", Role::Output, 17, "", "port of the message, or of the detour (actions 1 and 4); −1: none"),
    Column::new("attached", Role::Output, 32, "", "number in the header of a detour (actions 1 and 4)"),
];

/// A packet that was sent on a detour.
#[derive(Clone, Copy)]
struct Out {
    number: u32,
    hash: u32,
    port: u16,
    way: u16,
}

/// A sequence in the making.
struct Tape<'a> {
    params: &'a RimmVectorParams,
    switch: Switch,
    rng: Stream,
    /// Present time [ns].
    clock: u64,
    out: Vec<Out>,
    crossing: u16,
    rows: Vec<Vec<i64>>,
}

impl Tape<'_> {
    fn host(&self) -> u16 {
        self.params.neighbours as u16
    }

    fn wait(&mut self, ns: u64) {
        self.clock += ns;
    }

    fn neighbour(&mut self) -> u16 {
        self.rng.below(u64::from(self.params.neighbours)) as u16
    }

    fn row(&mut self, event: &Event, number: u32, of_packet: bool) -> Registers {
        let r = self.switch.step(self.clock, event);
        let (hash, ttl) = (i64::from(event.hash), i64::from(event.ttl));
        let mut row = vec![self.rows.len() as i64, event.kind as i64, i64::from(self.clock as u32)];
        row.extend([i64::from(event.port), i64::from(event.depth), i64::from(event.crossing)]);
        row.extend([i64::from(event.from), i64::from(event.heard)]);
        row.extend([hash, i64::from(number), ttl]);
        row.extend([i64::from(r.above), i64::from(r.crossings), i64::from(r.on), i64::from(r.over)]);
        let (index, pair) = r.pair;
        row.extend(if of_packet { [index as i64, i64::from(pair.attached()), i64::from(pair.freed())] } else { [0; 3] });
        row.extend([i64::from(r.given_up), i64::from(r.message), r.action as i64]);
        row.extend([r.way.map_or(-1, i64::from), i64::from(r.attached)]);
        self.rows.push(row);
        r
    }

    fn egress(&mut self, port: u16, depth: u64) {
        let event = Event { kind: Event::EGRESS, port, depth: depth as u32, ..Event::default() };
        self.row(&event, 0, false);
    }

    fn message(&mut self, port: u16, crossing: u16, depth: u64, heard: u16) {
        let from = self.neighbour();
        let event = Event { kind: Event::MESSAGE, port, depth: depth as u32, crossing, from, heard, ..Event::default() };
        self.row(&event, 0, false);
    }

    /// Adds a row with the next message about a port: above α or below it.
    fn alert(&mut self, port: u16, on: bool) {
        self.crossing = self.crossing.wrapping_add(1);
        let depth = if on { self.params.alpha.get() } else { self.params.alpha.get() - 1 };
        let heard = self.rng.below(50) as u16;
        self.message(port, self.crossing, depth, heard);
    }

    /// The message that a port has run empty.
    fn empty(&mut self, port: u16) {
        self.crossing = self.crossing.wrapping_add(1);
        let heard = self.rng.below(50) as u16;
        self.message(port, self.crossing, 0, heard);
    }

    fn new_packet(&mut self, port: u16, hash: u32, heard: u16, ttl: u8) {
        let from = self.neighbour();
        let event = Event { kind: Event::NEW, port, from, heard, hash, ttl, ..Event::default() };
        let r = self.row(&event, 0, true);
        if let (Some(way), 1) = (r.way, r.action) {
            self.out.push(Out { number: r.attached, hash, port, way });
        }
    }

    /// Brings packet `i` of those that are out back.
    fn back(&mut self, i: usize, heard: u16, ttl: u8) {
        if i >= self.out.len() {
            return; // nobody had room for it
        }
        let Out { number, hash, port, way } = self.out.remove(i);
        let event = Event { kind: Event::BACK, port, from: way, heard, hash, number, ttl, ..Event::default() };
        let r = self.row(&event, number, true);
        if let (Some(way), 4) = (r.way, r.action) {
            self.out.push(Out { number, hash, port, way });
        }
    }

    /// Brings packets back one after the other in any order, until none is out.
    fn all_back(&mut self) {
        let most = 40 * self.out.len();
        for _ in 0..most {
            if self.out.is_empty() {
                return;
            }
            let i = self.rng.below(self.out.len() as u64) as usize;
            let heard = self.rng.below(100) as u16;
            self.wait(100);
            self.back(i, heard, 60);
        }
    }

    fn flow(&mut self) -> u32 {
        // Of four indices: the bits above all indices differ, too.
        let index = self.rng.below(4) as u32;
        (index << (32 - self.params.hash_bits.max(2))) | self.rng.next_u32() >> 16
    }

    fn at_random(&mut self, few_hops: bool) {
        let ports = u64::from(self.params.neighbours) + 1;
        let alpha = self.params.alpha.get();
        let wait = match self.rng.below(60) {
            0 => self.params.chi.ps() / 1_000,
            1 => self.params.give_up.ps() / 5_000,
            2..=20 => 700,
            _ => 50,
        };
        self.wait(wait);
        let port = self.rng.below(ports) as u16;
        let heard = self.rng.below(60_000) as u16;
        let ttl = if few_hops && self.rng.below(4) == 0 { 7 + self.rng.below(2) as u8 } else { 60 };
        match self.rng.below(20) {
            0 | 1 => {
                let depth = alpha - 2 + self.rng.below(4);
                self.egress(port, depth);
            }
            2 => {
                let on = self.rng.below(3) > 0;
                self.alert(port, on);
            }
            3..=9 => {
                let hash = self.flow();
                self.new_packet(port, hash, heard, ttl);
            }
            10 if !self.out.is_empty() && self.rng.below(4) == 0 => {
                let i = self.rng.below(self.out.len() as u64) as usize;
                self.out.remove(i); // lost
            }
            _ if self.out.is_empty() => {}
            _ => {
                // The earliest as often as any other.
                let i = if self.rng.below(2) == 0 { 0 } else { self.rng.below(self.out.len() as u64) as usize };
                self.back(i, heard, ttl);
            }
        }
    }
}

fn write(case: Case, tape: &mut Tape<'_>) {
    let (host, alpha) = (tape.host(), tape.params.alpha.get());
    let (chi, give_up) = (tape.params.chi.ps() / 1_000, tape.params.give_up.ps() / 1_000);
    match case {
        Case::Detector => {
            for depth in [0, alpha - 1, alpha, alpha + 1, alpha, alpha - 1, alpha - 1, 0, alpha * 6 / 5, alpha / 2] {
                tape.wait(1_230);
                tape.egress(host, depth);
            }
            // With a neighbour there is somebody to send messages to; never by the port itself.
            tape.new_packet(host, 1, 7, 60);
            for i in 0..60 {
                let depth = alpha - 3 + tape.rng.below(6);
                tape.wait(1_230);
                tape.egress(if i % 5 == 0 { 0 } else { host }, depth);
            }
            // It stays above α: repetitions, each after a whole interval.
            let repeat = tape.params.repeat.ps() / 1_000;
            for wait in [1, repeat - 1, 1, repeat / 2, repeat - repeat / 2, repeat + 7, 1] {
                tape.wait(wait);
                tape.egress(host, alpha + 1);
            }
        }
        Case::Messages => {
            for (crossing, above) in [
                (1, true),
                (2, false),
                (4, false),
                (3, true),
                (4, true),
                (5, true),
                (5, false),
                (6, true),
                (7, false),
                (9, true),
                (11, true),
            ] {
                tape.wait(900);
                tape.message(host, crossing, alpha - u64::from(!above), 3);
                tape.new_packet(host, 1, 4, 60);
            }
            for crossing in [32_000, 65_000, 65_535, 0, 65_535, 1, 32_768, 32_769, 0] {
                tape.wait(900);
                tape.message(host, crossing, alpha - u64::from(crossing % 2 == 0), 3);
            }
            // An alert, and another after a message that was lost: its time counts from the second.
            for crossing in [1, 3] {
                tape.wait(900);
                tape.message(host, crossing, alpha, 3);
            }
            for wait in [give_up - 1, 1] {
                tape.wait(wait);
                tape.new_packet(host, 1, 4, 60);
            }
        }
        Case::Select => {
            tape.alert(host, true);
            for i in 0..120 {
                let heard = [0, 1, 1, 7, 49_999, 50_000, 65_535, 3][tape.rng.below(8) as usize];
                tape.wait(50);
                tape.new_packet(host, i << 20, heard, 60);
                if i % 17 == 5 {
                    let port = tape.neighbour();
                    tape.alert(port, i % 2 == 0);
                }
            }
        }
        Case::Order => {
            for _ in 0..4 {
                tape.alert(host, true);
                for hash in [0, 1 << 31, 0, 0, 1 << 31, 0, 0, 0, 0, 1 << 31] {
                    tape.wait(300);
                    tape.new_packet(host, hash, 9, 60);
                }
                tape.back(0, 9, 60);
                tape.alert(host, false);
                tape.new_packet(host, 0, 9, 60);
                tape.all_back();
                tape.new_packet(host, 0, 9, 60);
                tape.wait(chi);
                tape.new_packet(host, 0, 9, 60);
                tape.wait(give_up);
                tape.new_packet(host, 0, 9, 60);
                tape.all_back();
            }
        }
        Case::Collide => {
            tape.alert(host, true);
            for _ in 0..80 {
                let (hash, port) = (tape.flow(), if tape.rng.below(2) == 0 { host } else { 0 });
                tape.wait(200);
                tape.new_packet(port, hash, 2, 60);
            }
            tape.alert(host, false);
            tape.all_back();
            // Both ports in alert, then neither: new packets for any port wait for those of both.
            tape.alert(host, true);
            tape.alert(0, true);
            for i in 0..60 {
                let (hash, port) = (tape.flow(), [host, 0][tape.rng.below(2) as usize]);
                tape.wait(200);
                tape.new_packet(port, hash, 2, 60);
                if i == 30 {
                    tape.alert(host, false);
                    tape.alert(0, false);
                }
            }
            tape.all_back();
        }
        Case::Stall => {
            for waits in [[give_up / 2; 5], [give_up - 1; 5], [1, give_up - 1, give_up, 1, 1]] {
                tape.alert(host, true);
                (0..6).for_each(|_| tape.new_packet(host, 5, 1, 60));
                tape.alert(host, false);
                for wait in waits {
                    tape.wait(wait);
                    tape.back(0, 1, 60);
                }
                tape.all_back();
            }
        }
        Case::Last => {
            let longest = tape.params.longest.ps() / 1_000;
            for with_alerts in [false, true] {
                tape.alert(host, true);
                (0..4).for_each(|_| tape.new_packet(host, 5, 1, 60));
                tape.alert(host, false);
                if !with_alerts {
                    tape.empty(host);
                }
                let (step, bound) = if with_alerts { (longest / 30, longest) } else { (give_up / 8, give_up) };
                for i in 0..=bound / step.max(1) + 2 {
                    tape.wait(step.max(1));
                    if with_alerts && i % 3 == 0 {
                        tape.alert(host, true);
                        tape.new_packet(host, 5, 1, 60);
                        tape.alert(host, false);
                    }
                    tape.new_packet(host, 5, 1, 60);
                    tape.back(0, 1, 60);
                }
                tape.alert(host, true);
                tape.back(0, 1, 60);
                tape.new_packet(host, 5, 1, 60);
                tape.alert(host, false);
                tape.all_back();
            }
        }
        Case::Holes => {
            for lost in [0, 3, 9] {
                tape.alert(host, true);
                (0..10).for_each(|_| tape.new_packet(host, 5, 1, 60));
                tape.alert(host, false);
                if lost < tape.out.len() {
                    tape.out.remove(lost);
                }
                tape.all_back();
                tape.wait(give_up);
                tape.all_back();
                tape.new_packet(host, 5, 1, 60);
            }
            // A number that is yet to be attached, while others are out: no hole, and late.
            tape.alert(host, true);
            (0..3).for_each(|_| tape.new_packet(host, 5, 1, 60));
            tape.alert(host, false);
            if let Some(Out { number, hash, port, way }) = tape.out.last().copied() {
                tape.out.push(Out { number: number.wrapping_add(1), hash, port, way });
                tape.back(tape.out.len() - 1, 1, 60);
            }
            tape.all_back();
        }
        Case::Gaps => {
            for gap in [1, chi - 1, chi, chi + 1, chi / 2] {
                tape.alert(host, true);
                (0..3).for_each(|_| tape.new_packet(host, 5, 1, 60));
                tape.alert(host, false);
                for _ in 0..3 {
                    tape.wait(gap);
                    tape.new_packet(host, 5, 1, 60);
                }
                tape.all_back();
                tape.wait(chi);
                tape.new_packet(host, 5, 1, 60);
            }
        }
        Case::Congestion => {
            for _ in 0..2 {
                tape.alert(host, true);
                for wait in [0, give_up / 2, give_up - give_up / 2 - 1, 1, 1] {
                    tape.wait(wait);
                    tape.new_packet(host, 5, 1, 60);
                }
                tape.alert(host, true);
                tape.new_packet(host, 6, 1, 60);
                tape.all_back();
                tape.alert(host, false);
            }
        }
        Case::Wrap => {
            tape.alert(host, true);
            (0..12).for_each(|_| {
                tape.wait(400);
                tape.new_packet(host, 5, 1, 60);
            });
            tape.alert(host, false);
            tape.all_back();
            tape.wait(give_up);
            tape.new_packet(host, 5, 1, 60);
            tape.all_back();
        }
        Case::Hops => {
            tape.switch.forget();
            tape.alert(host, true);
            for ttl in [60, 7, 9, 8, 7, 60] {
                tape.new_packet(host, 5, 50_000, ttl);
                tape.new_packet(host, 5, 1, ttl);
            }
            while !tape.out.is_empty() {
                let ttl = [60, 7][tape.rng.below(2) as usize];
                tape.wait(100);
                tape.back(0, 1, ttl);
                if tape.rows.len() == 30 {
                    tape.alert(host, false);
                }
                if tape.rows.len() > 200 {
                    break;
                }
            }
        }
        Case::Random => (0..600).for_each(|_| tape.at_random(true)),
    }
}

fn sequence(case: Case, params: &RimmVectorParams, flowlet: bool) -> Sequence {
    let release = if flowlet { Release::Flowlet(FlowletGap { chi: params.chi }) } else { Release::Drained(DrainedParams {}) };
    let mut cx = fanin_params::Cx::new();
    let defaults = RimmParams::parse(&Node::from(Value::Table(Default::default())), &mut cx).expect("all have defaults");
    let rimm = RimmParams {
        alpha: Amount::Bytes(params.alpha.get()),
        release,
        give_up: params.give_up,
        longest: params.longest,
        repeat: params.repeat,
        room: params.room,
        hash_bits: params.hash_bits,
        ..defaults
    };
    let (start, clock) = if case == Case::Wrap { (u32::MAX - 4, (1 << 32) - 3_000) } else { (0, 1_000) };
    let mut tape = Tape {
        params,
        switch: Switch::new(&rimm, params.neighbours, start),
        rng: Stream::new(params.seed, Purpose::Arrivals, case as u64),
        clock,
        out: Vec::new(),
        crossing: 0,
        rows: Vec::new(),
    };
    write(case, &mut tape);
    let ns = |span: Span| (span.ps() / 1_000) as i64;
    let settings = vec![
        params.alpha.get() as i64,
        ns(params.give_up),
        ns(params.longest),
        ns(params.repeat),
        i64::from(flowlet),
        if flowlet { ns(params.chi) } else { 0 },
        i64::from(params.hash_bits),
        i64::from(params.neighbours),
        params.room.get().div_ceil(80) as i64,
        i64::from(start),
    ];
    Sequence { case: case.name(), settings, rows: tape.rows }
}

/// Vectors of every case, each with detours that end when drained and with detours that end by a flowlet gap.
pub(super) fn vectors(params: &RimmVectorParams) -> Vectors {
    let fanin_params::Schema::Names(names) = Case::schema() else { unreachable!("`names!` gives names") };
    let about = |case: &Case| names.values.iter().find(|(name, _)| *name == case.name()).map(|(_, doc)| doc.clone());
    let cases = params.cases.iter().map(|case| (case.name(), about(case).unwrap_or_default())).collect();
    let sequences = params.cases.iter().flat_map(|case| [false, true].map(|flowlet| sequence(*case, params, flowlet))).collect();
    Vectors { mechanism: "rimm", cases, settings: SETTINGS, columns: COLUMNS, sequences }
}
