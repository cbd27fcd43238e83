//! Vectors of S-ECN's register form.

use super::{Column, Role, Sequence, Vectors};
use crate::marking::s_ecn::SEcn;
use crate::marking::Policy;
use crate::{AfterMark, At, MarkVerdict, PortView, SEcnParams, SlopeForm, SlopeParams, SlopeRegisters};
use fanin_packet::{Ecn, Envelope};
use fanin_params::{names, params, Param};
use fanin_units::{Amount, BitRate, Bytes, Purpose, Span, Stream, Time};
use std::collections::VecDeque;

names! {
    /// Kind of packet sequence in S-ECN's test vectors.
    pub enum Case {
        /// Full frames at equal distances, by steps from half of the rate to four times the rate.
        "slopes" => Slopes,
        /// Pauses from one packet's time to an hour, each followed by a burst at twelve times the rate.
        "idle" => Idle,
        /// Two and three packets in the same clock, at loads of 1 and 1.5.
        "pairs" => Pairs,
        /// Frames of 64, 128, 576, 1518 and 9018 B at random distances, mean load 1.2.
        "sizes" => Sizes,
        /// Intervals around the largest that the register holds.
        "saturation" => Saturation,
        /// All four ECN codepoints in turn, at 1.2, 1.5 and 3 times the rate.
        "ecn" => Codepoints,
        /// Bursts beyond K and their draining, twice.
        "threshold" => Threshold,
        /// Random sizes, distances and codepoints.
        "random" => Random,
        /// Growth of exactly zero beside a mark that waits, and a queue of exactly K.
        "exact" => Exact,
    }
}

params! {
    /// Settings of `fanin vectors s-ecn`.
    pub struct SEcnVectorParams {
        /// Cases to write.
        pub cases: Vec<Case> = vec![Case::Slopes, Case::Idle, Case::Pairs, Case::Sizes, Case::Saturation, Case::Codepoints, Case::Threshold, Case::Random, Case::Exact];
        /// Rates of the port; each case is written for every rate.
        pub rates: Vec<BitRate> = [10, 100, 1_000, 10_000, 25_000, 40_000, 50_000, 100_000, 200_000, 400_000].map(BitRate::from_mbps).to_vec(), in BitRate::from_mbps(10)..=BitRate::from_gbps(1600);
        /// Seed of random sizes and distances.
        pub seed: u64 = 1;
        /// K: threshold, in addition to the slope.
        pub k: Bytes = Bytes(32_000), in Bytes(1)..=Bytes(1_000_000);
        /// Packet that gets the mark.
        pub at: At = At::Enqueue;
        /// Settings of the registers.
        pub registers: SlopeParams = SlopeParams { clock: Span::from_ns(8), credit: Bytes(1538), after_mark: AfterMark::Subtract };
    }
}

const SETTINGS: &[Column] = &[
    Column::new("rate_bps", Role::Setting, 64, "bit/s", "rate of the port"),
    Column::new("clock_ps", Role::Setting, 64, "ps", "the clock in which intervals are counted"),
    Column::new("rate", Role::Setting, 32, "2^-20 B per clock", "R"),
    Column::new("credit", Role::Setting, 16, "B", "the sum is never below minus this"),
    Column::new("k", Role::Setting, 32, "B", "the threshold K"),
    Column::new("reset", Role::Setting, 1, "", "1: a mark takes the whole sum; 0: it takes R·I"),
    Column::new("at_dequeue", Role::Setting, 1, "", "1: marks are given to packets that leave"),
];

const COLUMNS: &[Column] = &[
    Column::new("packet", Role::Input, 32, "", "number of the packet in its sequence"),
    Column::new("departure", Role::Input, 1, "", "0: it arrives; 1: it leaves the queue (at_dequeue only)"),
    Column::new("time_ps", Role::Input, 64, "ps", "when"),
    Column::new("clocks", Role::Input, 64, "clocks", "the same, floor (time_ps / clock_ps)"),
    Column::new("frame", Role::Input, 16, "B", "frame, FCS included"),
    Column::new("wire", Role::Input, 16, "B", "P: frame, preamble and gap"),
    Column::new("ecn", Role::Input, 2, "", "codepoint: 0 not ECT, 1 ECT(1), 2 ECT(0), 3 CE"),
    Column::new("queue", Role::Input, 32, "B", "frames that wait: as found by an arrival, as left behind by a departure"),
    Column::new("interval", Role::Register, 24, "clocks", "I, saturating"),
    Column::new("sendable", Role::Register, 56, "2^-20 B", "R·I"),
    Column::signed("growth", Role::Register, 57, "2^-20 B", "P − R·I"),
    Column::signed("added", Role::Register, 38, "2^-20 B", "max (sum + P − R·I, −credit)"),
    Column::signed("sum", Role::Register, 37, "2^-20 B", "the sum afterwards"),
    Column::new("by_slope", Role::Output, 1, "", "the slope asks for a mark: growth > 0 and added > sendable"),
    Column::new("owed", Role::Register, 32, "", "marks earned on arrival that no departure has taken yet (at_dequeue only)"),
    Column::new("by_k", Role::Output, 1, "", "queue >= K"),
    Column::new("mark", Role::Output, 1, "", "the packet gets CE"),
];

/// Frames of Ethernet's sizes: smallest, two in between, full, jumbo.
const SIZES: [u16; 5] = [64, 128, 576, FULL, 9018];
const FULL: u16 = 1518;
/// Preamble and gap.
const OVERHEAD: u16 = 20;

struct Arrival {
    /// Time since the arrival before.
    gap: Span,
    frame: u16,
    ecn: Ecn,
}

/// Arrivals, being listed.
struct Pattern {
    rate: BitRate,
    arrivals: Vec<Arrival>,
}

impl Pattern {
    /// Time that a frame takes on the wire.
    fn time(&self, frame: u16) -> u64 {
        self.rate.time_to_send(Bytes(u64::from(frame + OVERHEAD))).ps()
    }

    fn push(&mut self, gap: u64, frame: u16, ecn: Ecn) {
        self.arrivals.push(Arrival { gap: Span::from_ps(gap), frame, ecn });
    }

    /// Adds `n` full frames at equal distances, at so many tenths of the rate.
    fn even(&mut self, n: usize, tenths: u64) {
        let gap = self.time(FULL) * 10 / tenths;
        (0..n).for_each(|_| self.push(gap, FULL, Ecn::Ect0));
    }
}

fn arrivals(case: Case, params: &SEcnVectorParams, rate: BitRate) -> Vec<Arrival> {
    let mut p = Pattern { rate, arrivals: Vec::new() };
    let full = p.time(FULL);
    let mut rng = Stream::new(params.seed, Purpose::Arrivals, case as u64);
    match case {
        Case::Slopes => [5, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 25, 40].into_iter().for_each(|tenths| {
            p.even(24, tenths);
            p.push(full * 60, FULL, Ecn::Ect0);
        }),
        Case::Idle => {
            let second = 1_000_000_000_000;
            for pause in [full, full * 3, second / 100_000, second / 1000, second / 7, second * 3600] {
                p.push(pause, FULL, Ecn::Ect0);
                (0..11).for_each(|_| p.push(full / 12, FULL, Ecn::Ect0));
                p.even(4, 8);
            }
        }
        Case::Pairs => [(2, 10), (3, 10), (2, 15), (3, 15)].into_iter().for_each(|(together, tenths)| {
            for i in 0..60 {
                p.push(if i % together == 0 { full * together * 10 / tenths } else { 0 }, FULL, Ecn::Ect0);
            }
            p.push(full * 60, FULL, Ecn::Ect0);
        }),
        Case::Sizes => (0..300).for_each(|_| {
            let frame = SIZES[rng.below(5) as usize];
            let gap = rng.below(p.time(frame) * 2 * 10 / 12);
            p.push(gap, frame, Ecn::Ect0);
        }),
        Case::Saturation => {
            let (clock, longest) = (params.registers.clock.ps(), SlopeRegisters::LONGEST);
            for clocks in [longest - 1, longest, longest + 1, longest * 2, 1 << 32, longest - 1] {
                p.push(clock * clocks, FULL, Ecn::Ect0);
                (0..3).for_each(|_| p.push(full / 3, FULL, Ecn::Ect0));
            }
        }
        Case::Codepoints => [12, 15, 30].into_iter().for_each(|tenths| {
            let gap = full * 10 / tenths;
            for i in 0..48 {
                p.push(gap, FULL, [Ecn::Ect0, Ecn::NotEct, Ecn::NotEct, Ecn::Ect1, Ecn::Ce][i % 5]);
            }
            p.push(full * 60, FULL, Ecn::NotEct);
        }),
        Case::Threshold => (0..2).for_each(|_| {
            let burst = params.k.get() as usize / usize::from(FULL) + 4;
            p.even(burst * 3 / 2, 30);
            p.even(8, 10);
            p.even(burst, 5);
        }),
        Case::Exact => {
            (0..6).for_each(|_| {
                // 400 B on the wire take whole clocks of 8 ns at 1, 10, 25, 40, 50, 100, 200 and 400 Gb/s.
                let (jumbo, exact) = (p.time(9018) * 10 / 15, p.time(380));
                (0..4).for_each(|_| p.push(jumbo, 9018, Ecn::NotEct));
                (0..6).for_each(|_| p.push(exact, 380, Ecn::Ect0));
                (0..2).for_each(|_| p.push(jumbo, 9018, Ecn::Ect0));
                p.push(full * 60, FULL, Ecn::Ect0);
            });
            // K waits behind a frame that is being sent, and a packet comes that the slope does not mark.
            p.push(full * 60, 9018, Ecn::Ect0);
            let mut left = params.k.get();
            while left >= 64 {
                let two = u64::from(FULL) * 2;
                let frame = if left >= two { u64::from(FULL) } else { left.div_ceil(1 + left / u64::from(FULL + 1)) };
                p.push(0, frame as u16, Ecn::Ect0);
                left -= frame;
            }
            p.push(p.time(4000), FULL, Ecn::Ect0);
        }
        Case::Random => (0..400).for_each(|_| {
            let frame = 64 + rng.below(9018 - 63) as u16;
            let ecn = [Ecn::Ect0, Ecn::Ect0, Ecn::Ect1, Ecn::NotEct, Ecn::Ce][rng.below(5) as usize];
            let gap = rng.below(p.time(frame) * 2);
            p.push(gap, frame, ecn);
        }),
    }
    p.arrivals
}

/// A FIFO port with an unlimited buffer, its marking policy, and the rows of its events.
struct Port {
    now: Time,
    rate: BitRate,
    marking: SEcn,
    /// R, I, … of [`SlopeRegisters`] before the first packet.
    fresh: SlopeRegisters,
    free_at: Time,
    /// Waiting packets: start of transmission, number, headers.
    waiting: VecDeque<(Time, u32, Envelope)>,
    queue: u64,
    k: u64,
    clock: Span,
    dequeue: bool,
    rng: Stream,
    rows: Vec<Vec<i64>>,
}

impl Port {
    fn view(&self, now: Time) -> PortView {
        PortView {
            now,
            queue_bytes: self.queue,
            queue_packets: self.waiting.len() as u32,
            queue_cells: 0,
            rate: self.rate,
            overhead: OVERHEAD,
            free_at: self.free_at,
        }
    }

    /// Lets everything leave that starts at `now` or before.
    fn depart(&mut self, now: Time) {
        while self.waiting.front().is_some_and(|(start, ..)| *start <= now) {
            let Some((start, number, p)) = self.waiting.pop_front() else { return };
            self.queue -= u64::from(p.frame);
            if self.dequeue {
                let view = self.view(start);
                let verdict = self.marking.on_dequeue(&view, &p, &mut self.rng);
                self.row(number, true, &view, &p, verdict, [0; 6]);
            }
        }
    }

    fn arrive(&mut self, number: u32, gap: Span, frame: u16, ecn: Ecn) {
        self.now += gap;
        let now = self.now;
        self.depart(now);
        let view = self.view(now);
        let mut p = Envelope::default();
        (p.frame, p.ecn) = (frame, ecn);
        // The policy keeps no intermediate values: the same step on a copy of its registers shows them.
        let mut shown = self.marking.registers().cloned().unwrap_or_else(|| self.fresh.clone());
        let wire = u32::from(frame) + u32::from(OVERHEAD);
        let step = shown.on_arrival(now, wire, ecn != Ecn::NotEct);
        let verdict = self.marking.on_enqueue(&view, &p, &mut self.rng);
        let growth = (i64::from(wire) << SlopeRegisters::FRACTION) - step.sendable;
        let registers = [step.interval as i64, step.sendable, growth, step.added, step.sum, i64::from(step.mark)];
        self.row(number, false, &view, &p, verdict, registers);
        let start = self.free_at.max(now);
        self.free_at = start + self.rate.time_to_send(Bytes(u64::from(wire)));
        self.queue += u64::from(frame);
        self.waiting.push_back((start, number, p));
        self.depart(now);
    }

    fn row(&mut self, number: u32, leaves: bool, view: &PortView, p: &Envelope, verdict: MarkVerdict, registers: [i64; 6]) {
        let time = view.now.ps();
        let mut row = vec![i64::from(number), i64::from(leaves), time as i64, (time / self.clock.ps()) as i64];
        row.extend([i64::from(p.frame), i64::from(p.frame + OVERHEAD), p.ecn as i64, view.queue_bytes as i64]);
        row.extend(registers);
        let by_k = leaves == self.dequeue && view.queue_bytes >= self.k;
        row.extend([i64::from(self.marking.owed()), i64::from(by_k), i64::from(verdict != MarkVerdict::Pass)]);
        self.rows.push(row);
    }
}

fn sequence(case: Case, params: &SEcnVectorParams, rate: BitRate) -> Sequence {
    let fresh = SlopeRegisters::new(&params.registers, rate);
    let form = SlopeForm::Registers(params.registers.clone());
    let policy = SEcnParams { k: Some(Amount::Bytes(params.k.get())), form, at: params.at };
    let dequeue = params.at == At::Dequeue;
    let reset = params.registers.after_mark == AfterMark::Reset;
    let settings = vec![
        rate.bps() as i64,
        params.registers.clock.ps() as i64,
        fresh.rate() as i64,
        params.registers.credit.get() as i64,
        params.k.get() as i64,
        i64::from(reset),
        i64::from(dequeue),
    ];
    let mut port = Port {
        now: Time::from_ps(0),
        rate,
        marking: SEcn::new(&policy),
        fresh,
        free_at: Time::from_ps(0),
        waiting: VecDeque::new(),
        queue: 0,
        k: params.k.get(),
        clock: params.registers.clock,
        dequeue,
        // The register form draws nothing.
        rng: Stream::new(params.seed, Purpose::Marking, 0),
        rows: Vec::new(),
    };
    for (i, arrival) in arrivals(case, params, rate).into_iter().enumerate() {
        port.arrive(i as u32, arrival.gap, arrival.frame, arrival.ecn);
    }
    let last = port.free_at;
    port.depart(last);
    Sequence { case: case.name(), settings, rows: port.rows }
}

/// Every case at every rate.
pub(super) fn vectors(params: &SEcnVectorParams) -> Vectors {
    let fanin_params::Schema::Names(names) = Case::schema() else { unreachable!("`names!` gives names") };
    let about = |case: &Case| names.values.iter().find(|(name, _)| *name == case.name()).map(|(_, doc)| doc.clone());
    let cases = params.cases.iter().map(|case| (case.name(), about(case).unwrap_or_default())).collect();
    let sequences = params.cases.iter().flat_map(|case| params.rates.iter().map(|rate| sequence(*case, params, *rate))).collect();
    Vectors { mechanism: "s-ecn", cases, settings: SETTINGS, columns: COLUMNS, sequences }
}
