//! Vectors of RCM's detector and windows.

use super::{Column, Role, Sequence, Vectors};
use crate::mechanism::Decrease;
use fanin_dataplane::rcm::{passed_on, Bounds, Detector, Setting, Share, Window, MOST, WEIGHT};
use fanin_params::{names, params, Param};
use fanin_units::{Bytes, Purpose, Stream};

names! {
    /// Kind of event sequence in RCM's test vectors.
    pub enum Case {
        /// A queue that grows to six times Q_eq, and drains twice as fast.
        "growth" => Growth,
        /// Frames of 64, 576, 1518 and 9018 B, and queues at random.
        "sizes" => Sizes,
        /// Each degree of a neighbour beside the queue's own.
        "remote" => Remote,
        /// Windows measured within their bounds and beyond, of harmful flows alone, of none.
        "bounds" => BoundsOf,
        /// Each degree from 0 to 63, twice, with frames between them.
        "degrees" => Degrees,
        /// Frames of both kinds in turn, as a port with enough of both sends them.
        "shares" => Shares,
        /// Random events.
        "random" => Random,
    }
}

params! {
    /// Settings of `fanin vectors rcm`.
    pub struct RcmVectorParams {
        /// Cases to write.
        pub cases: Vec<Case> = vec![Case::Growth, Case::Sizes, Case::Remote, Case::BoundsOf, Case::Degrees, Case::Shares, Case::Random];
        /// Q_eq: queue length in equilibrium.
        pub q_eq: Bytes = Bytes(26_000), in Bytes(1)..=Bytes(100_000_000);
        /// w_q: weight of the queue's growth.
        pub w_q: u32 = 2, in 0..=64;
        /// Bytes between samples.
        pub sample: Bytes = Bytes(30_000), in Bytes(64)..=Bytes(1_000_000_000);
        /// w: weight of the degree received from downstream.
        pub w: f64 = 0.5, in 0.0..=1.0;
        /// Bounds of W, and lower bound of W_c.
        pub window_min: Bytes = Bytes(16_000), in Bytes(128)..=Bytes(1_000_000_000);
        pub window_max: Bytes = Bytes(100_000), in Bytes(128)..=Bytes(1_000_000_000);
        pub max_frame: Bytes = Bytes(1_518), in Bytes(64)..=Bytes(65_535);
        /// Value of W_c that a degree reduces.
        pub decrease: Decrease = Decrease::Each;
        /// Seed of random events.
        pub seed: u64 = 1;
    }
}

const SETTINGS: &[Column] = &[
    Column::new("q_eq", Role::Setting, 32, "B", "Q_eq"),
    Column::new("w_q", Role::Setting, 8, "", "w_q"),
    Column::new("sample", Role::Setting, 32, "B", "bytes between samples without congestion"),
    Column::new("w", Role::Setting, 9, "2^-8", "w, the weight of the neighbour's degree"),
    Column::new("window_min", Role::Setting, 32, "B", "least W"),
    Column::new("window_max", Role::Setting, 32, "B", "most W"),
    Column::new("max_frame", Role::Setting, 16, "B", "least W_c"),
    Column::new("each", Role::Setting, 1, "", "1: a degree reduces W_c as it is; 0: as it was measured"),
];

const COLUMNS: &[Column] = &[
    Column::new("step", Role::Input, 32, "", "number of the event in its sequence"),
    Column::new("event", Role::Input, 3, "", "0 arrival, 1 window measured, 2 degree, 3 frame sent, 4 time of the window over"),
    Column::new("frame", Role::Input, 16, "B", "frame that arrives or is sent"),
    Column::new("queue", Role::Input, 32, "B", "Q_len as an arrival finds it"),
    Column::new("draw", Role::Input, 32, "", "random number of a sample"),
    Column::signed("remote", Role::Input, 7, "", "F_br of the neighbour downstream; -1: none"),
    Column::new("harmful", Role::Input, 32, "B", "measured: of harmful flows"),
    Column::new("others", Role::Input, 32, "B", "measured: of others"),
    Column::new("given", Role::Input, 6, "", "degree that reduces W_c"),
    Column::new("share", Role::Input, 2, "", "who sends: 0 harmful in W_c, 1 harmful beyond it, 2 others"),
    Column::new("sampled", Role::Output, 1, "", "the arrival is sampled"),
    Column::signed("offset", Role::Register, 34, "B", "Q_off"),
    Column::signed("delta", Role::Register, 34, "B", "Q_delta"),
    Column::signed("fb", Role::Register, 42, "B", "F_b"),
    Column::new("degree", Role::Output, 6, "", "F_b quantised"),
    Column::new("next", Role::Register, 32, "B", "bytes until the next sample"),
    Column::new("passed", Role::Output, 6, "", "F_b'"),
    Column::new("whole", Role::Register, 32, "B", "W"),
    Column::new("congested", Role::Register, 32, "B", "W_c"),
    Column::new("used", Role::Register, 32, "B", "sent of W"),
    Column::new("used_c", Role::Register, 32, "B", "sent of W_c"),
    Column::new("turned", Role::Output, 1, "", "a new window begins"),
    Column::new("open", Role::Output, 1, "", "harmful flows may send"),
];

#[derive(Clone, Copy)]
enum Event {
    Arrival { frame: u16, queue: u32, draw: u32, remote: Option<u8> },
    Measured { harmful: u32, others: u32 },
    Degree(u8),
    Sent { frame: u16, share: Share },
    Over,
}

const SIZES: [u16; 4] = [64, 576, 1518, 9018];
const FULL: u16 = 1518;

struct Pattern {
    events: Vec<Event>,
    rng: Stream,
    bounds: Bounds,
    q_eq: u32,
}

impl Pattern {
    fn arrival(&mut self, frame: u16, queue: u32, remote: Option<u8>) {
        let draw = self.rng.next_u32();
        self.events.push(Event::Arrival { frame, queue, draw, remote });
    }

    fn below(&mut self, n: u32) -> u32 {
        self.rng.below(u64::from(n.max(1))) as u32
    }

    fn growth(&mut self) {
        let q_eq = u64::from(self.q_eq);
        (0..400).for_each(|i| self.arrival(FULL, (q_eq * 6 * i / 400) as u32, None));
        (0..200).rev().for_each(|i| self.arrival(FULL, (q_eq * 6 * i / 200) as u32, None));
    }

    fn remote(&mut self) {
        for degree in 0..=MOST {
            for queue in [0, self.q_eq, self.q_eq * 2] {
                self.arrival(9018, queue, Some(degree));
            }
            self.arrival(9018, self.q_eq, None);
        }
    }

    fn bounds(&mut self) {
        let Bounds { least, most, floor } = self.bounds;
        for sum in [1, least / 2, least, least + 1, (least + most) / 2, most, most * 2] {
            for harmful in [0, 1, sum / 3, sum / 2, sum] {
                self.events.push(Event::Measured { harmful: harmful.min(sum), others: sum - harmful.min(sum) });
                self.events.push(Event::Degree(MOST));
                self.events.push(Event::Sent { frame: floor.min(u32::from(FULL)) as u16, share: Share::Congested });
            }
        }
    }

    fn degrees(&mut self) {
        let half = self.bounds.most / 2;
        self.events.push(Event::Measured { harmful: half, others: half });
        for degree in (0..=MOST).chain(0..=MOST) {
            self.events.push(Event::Degree(degree));
            let share = if degree % 2 == 0 { Share::Congested } else { Share::Other };
            self.events.push(Event::Sent { frame: FULL, share });
        }
    }

    fn shares(&mut self) {
        for part in [4, 2, 1] {
            let harmful = self.bounds.least / part;
            self.events.push(Event::Measured { harmful, others: self.bounds.least - harmful });
            self.events.push(Event::Degree(MOST));
            for i in 0..120_u32 {
                let frame = SIZES[self.below(3) as usize];
                let share = [Share::Congested, Share::Other, Share::Other, Share::Spare][(i % 4) as usize];
                self.events.push(Event::Sent { frame, share });
                if i % 40 == 39 {
                    self.events.push(Event::Over);
                }
            }
        }
    }

    fn random(&mut self) {
        for _ in 0..400 {
            let event = match self.below(40) {
                0 => {
                    let (harmful, others) = (self.below(self.bounds.least), self.below(self.bounds.least));
                    Event::Measured { harmful, others }
                }
                1..=4 => Event::Degree(self.below(64) as u8),
                5 => Event::Over,
                6..=25 => {
                    let share = [Share::Congested, Share::Spare, Share::Other][self.below(3) as usize];
                    Event::Sent { frame: SIZES[self.below(4) as usize], share }
                }
                _ => {
                    let remote = self.below(2).eq(&1).then_some(0);
                    let remote = remote.map(|_| self.below(64) as u8);
                    let queue = self.below(self.q_eq * 4);
                    let frame = SIZES[self.below(4) as usize];
                    Event::Arrival { frame, queue, draw: self.rng.next_u32(), remote }
                }
            };
            self.events.push(event);
        }
    }
}

fn events(case: Case, params: &RcmVectorParams, bounds: Bounds) -> Vec<Event> {
    let rng = Stream::new(params.seed, Purpose::Mechanism, case as u64);
    let mut p = Pattern { events: Vec::new(), rng, bounds, q_eq: params.q_eq.get() as u32 };
    match case {
        Case::Growth => p.growth(),
        Case::Sizes => (0..400).for_each(|_| {
            let (frame, queue) = (SIZES[p.below(4) as usize], p.below(p.q_eq * 4));
            p.arrival(frame, queue, None);
        }),
        Case::Remote => p.remote(),
        Case::BoundsOf => p.bounds(),
        Case::Degrees => p.degrees(),
        Case::Shares => p.shares(),
        Case::Random => p.random(),
    }
    p.events
}

/// The registers of one port.
struct Port {
    setting: Setting,
    weight: u32,
    again: bool,
    bounds: Bounds,
    detector: Detector,
    window: Option<Window>,
}

impl Port {
    /// Row of an event, without its step.
    fn row(&mut self, event: Event) -> Vec<i64> {
        let (mut inputs, mut sample, mut turned) = ([0_i64; 9], [0_i64; 7], false);
        inputs[4] = -1;
        match event {
            Event::Arrival { frame, queue, draw, remote } => {
                let heard = remote.map_or(-1, i64::from);
                inputs = [0, i64::from(frame), i64::from(queue), i64::from(draw), heard, 0, 0, 0, 0];
                if self.detector.is_due(frame) {
                    let s = self.detector.sample(&self.setting, queue, draw);
                    let passed = passed_on(s.degree, remote, self.weight);
                    sample = [1, s.offset, s.delta, s.fb, i64::from(s.degree), i64::from(s.next), i64::from(passed)];
                }
            }
            Event::Measured { harmful, others } => {
                (inputs[0], inputs[5], inputs[6]) = (1, i64::from(harmful), i64::from(others));
                self.window = Some(Window::measured(self.bounds, harmful, others));
            }
            Event::Degree(degree) => {
                (inputs[0], inputs[7]) = (2, i64::from(degree));
                self.window.iter_mut().for_each(|window| window.reduce(degree, self.again));
            }
            Event::Sent { frame, share } => {
                (inputs[0], inputs[1], inputs[8]) = (3, i64::from(frame), share as i64);
                turned = self.window.as_mut().is_some_and(|window| window.sent(frame, share));
            }
            Event::Over => {
                inputs[0] = 4;
                self.window.iter_mut().for_each(Window::restart);
            }
        }
        let state = self.window.as_ref().map_or([0, 0, 0, 0, i64::from(turned), 1], |window| {
            let (used, used_c) = window.used();
            let [w, c, used, used_c] = [window.whole(), window.congested(), used, used_c].map(i64::from);
            [w, c, used, used_c, i64::from(turned), i64::from(window.is_open())]
        });
        [&inputs[..], &sample, &state].concat()
    }
}

fn sequence(case: Case, params: &RcmVectorParams) -> Sequence {
    let register = |bytes: Bytes| u32::try_from(bytes.get()).unwrap_or(u32::MAX);
    let bounds = Bounds {
        least: register(params.window_min),
        most: register(params.window_max.max(params.window_min)),
        floor: register(params.max_frame),
    };
    let setting = Setting { q_eq: register(params.q_eq), w_q: params.w_q, base: register(params.sample) };
    let weight = libm::round(params.w * f64::from(1 << WEIGHT)) as u32;
    let again = params.decrease == Decrease::Each;
    let settings = [setting.q_eq, setting.w_q, setting.base, weight, bounds.least, bounds.most, bounds.floor, u32::from(again)];
    let mut port = Port { setting, weight, again, bounds, detector: Detector::new(setting.base), window: None };
    let rows = (0..).zip(events(case, params, bounds));
    let rows = rows.map(|(step, event)| [vec![step], port.row(event)].concat()).collect();
    Sequence { case: case.name(), settings: settings.map(i64::from).to_vec(), rows }
}

/// Every case.
pub(super) fn vectors(params: &RcmVectorParams) -> Vectors {
    let fanin_params::Schema::Names(names) = Case::schema() else { unreachable!("`names!` gives names") };
    let about = |case: &Case| names.values.iter().find(|(name, _)| *name == case.name()).map(|(_, doc)| doc.clone());
    let cases = params.cases.iter().map(|case| (case.name(), about(case).unwrap_or_default())).collect();
    let sequences = params.cases.iter().map(|case| sequence(*case, params)).collect();
    Vectors { mechanism: "rcm", cases, settings: SETTINGS, columns: COLUMNS, sequences }
}
