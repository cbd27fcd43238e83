//! RCC: harmful flows of a congested port share a window, and wait beyond their share of it. Source: RCM §3.4.

use super::cfr::{Harmful, Tuple};
use crate::PRIORITIES;
use fanin_dataplane::rcm::{Bounds, Share, Window};
use fanin_packet::PacketId;
use fanin_units::{Time, TrafficClass};
use std::collections::{BTreeSet, VecDeque};

/// State of the control of a port.
#[derive(Clone, Debug)]
enum Phase {
    Off,
    /// Measurement of bytes of harmful flows and of others since congestion was detected; `missing`: harmful flows that have not
    /// sent yet.
    Measuring {
        harmful: u32,
        others: u32,
        missing: Vec<Tuple>,
        degree: u8,
    },
    Running(Window),
}

/// A flow with packets that wait here.
#[derive(Clone, Copy, Debug)]
struct HeldFlow {
    tuple: Tuple,
    held: u32,
    /// Packets of the flow in the port's queue, which leave first.
    queued: u32,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    id: PacketId,
    tuple: Tuple,
    frame: u16,
    since: Time,
}

/// Settings of a port's control.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub bounds: Bounds,
    /// True if each degree reduces the remaining W_c, not the one that was measured.
    pub again: bool,
    /// Bytes of held packets above which harmful flows may use W_c as it was measured.
    pub reserved: u64,
}

/// Largest values that the control of a port has seen.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Peaks {
    pub bytes: u64,
    /// Longest that a packet was held.
    pub longest: u64,
    /// Most bytes that the port sent while a held packet was the first and free to go.
    pub head: u64,
}

/// Control of one output port, with its part of the reserved buffer.
#[derive(Clone, Debug)]
pub(super) struct Control {
    phase: Phase,
    held: [VecDeque<Held>; PRIORITIES],
    bytes: u64,
    flows: Vec<HeldFlow>,
    /// True if no held packet may leave until a window, a pause or the queue ahead ends.
    stalled: bool,
    /// The held packet that leaves now, and the share in which it counts.
    leaving: Option<(PacketId, Share)>,
    /// Packets that were counted when they were released, and have not left yet; only at a combined switch.
    counted: BTreeSet<PacketId>,
    /// Start of the present window.
    pub since: Time,
    /// Bytes sent since the first packet that is held became that.
    head: u64,
    pub windows: u64,
    pub peaks: Peaks,
}

impl Control {
    pub(super) fn new() -> Control {
        Control {
            phase: Phase::Off,
            held: Default::default(),
            bytes: 0,
            flows: Vec::new(),
            stalled: false,
            leaving: None,
            counted: BTreeSet::new(),
            since: Time::ZERO,
            head: 0,
            windows: 0,
            peaks: Peaks::default(),
        }
    }

    /// Congestion was detected at the port, or notified: F_b. `harmful`: the harmful flows, where that is news.
    pub(super) fn on_degree(&mut self, degree: u8, again: bool, harmful: Vec<Harmful>) {
        match &mut self.phase {
            Phase::Off => {
                let missing = harmful.into_iter().map(|flow| flow.tuple).collect();
                self.phase = Phase::Measuring { harmful: 0, others: 0, missing, degree };
            }
            Phase::Measuring { degree: last, .. } => *last = degree,
            Phase::Running(window) => window.reduce(degree, again),
        }
    }

    /// Ends the control, as the congestion is over.
    pub(super) fn end(&mut self) {
        self.phase = Phase::Off;
    }

    /// Releases packets of flows that are harmful no longer, in order.
    pub(super) fn let_go(&mut self, is_harmful: impl Fn(&Tuple) -> bool) -> Vec<PacketId> {
        let over: Vec<Tuple> = self.flows.iter().map(|flow| flow.tuple).filter(|tuple| !is_harmful(tuple)).collect();
        if over.is_empty() {
            return Vec::new();
        }
        let mut gone = Vec::new();
        for class in TrafficClass::all(PRIORITIES) {
            let (out, kept) = std::mem::take(&mut self.held[class]).into_iter().partition(|held| over.contains(&held.tuple));
            self.held[class] = kept;
            gone.extend(<VecDeque<Held>>::into_iter(out));
        }
        gone.iter().for_each(|held| self.forget(held));
        (self.stalled, self.head) = (false, 0);
        gone.iter().map(|held| held.id).collect()
    }

    pub(super) fn is_on(&self) -> bool {
        !matches!(self.phase, Phase::Off)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// True if packets of harmful flows are held, and not counted alone.
    pub(super) fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running(_))
    }

    /// True if harmful flows have some of their window left.
    pub(super) fn is_open(&self) -> bool {
        match &self.phase {
            Phase::Running(window) => window.is_open(),
            _ => true,
        }
    }

    /// True if packets of a flow are held, so that its next packets have to be held too.
    pub(super) fn holds(&self, tuple: &Tuple) -> bool {
        self.bytes > 0 && self.flows.iter().any(|flow| flow.tuple == *tuple && flow.held > 0)
    }

    /// True if packets of a class are held.
    pub(super) fn holds_class(&self, class: TrafficClass) -> bool {
        !self.held[class.index().min(PRIORITIES - 1)].is_empty()
    }

    /// Size W of the window, where windows run.
    pub(super) fn window(&self) -> Option<u32> {
        match &self.phase {
            Phase::Running(window) => Some(window.whole()),
            _ => None,
        }
    }

    /// Starts a new window, whatever was sent of the last.
    pub(super) fn restart(&mut self, now: Time) {
        if let Phase::Running(window) = &mut self.phase {
            window.restart();
            self.windows += 1;
        }
        (self.since, self.stalled) = (now, false);
    }

    /// Takes a packet to hold. `queued`: packets of its flow in the port's queue.
    pub(super) fn hold(
        &mut self,
        now: Time,
        (id, class, frame): (PacketId, TrafficClass, u16),
        tuple: Tuple,
        queued: impl FnOnce() -> u32,
    ) {
        match self.flows.iter_mut().find(|flow| flow.tuple == tuple) {
            Some(flow) => flow.held += 1,
            None => self.flows.push(HeldFlow { tuple, held: 1, queued: queued() }),
        }
        if self.bytes == 0 {
            self.head = 0;
        }
        self.held[class.index().min(PRIORITIES - 1)].push_back(Held { id, tuple, frame, since: now });
        self.bytes += u64::from(frame);
        self.peaks.bytes = self.peaks.bytes.max(self.bytes);
    }

    /// Share of the window in which a packet of a harmful flow may leave now; `None`: it has to wait. `data`: others have
    /// something to send. `paces`: what harmful flows may not send nobody sends.
    fn share(&self, settings: &Settings, (data, paces): (bool, bool)) -> Option<Share> {
        let full = self.bytes > settings.reserved;
        match &self.phase {
            Phase::Running(window) if !(window.is_open() || full && window.is_open_in_full()) => {
                (!data && !paces).then_some(Share::Spare)
            }
            _ => Some(Share::Congested),
        }
    }

    /// True if a packet of a harmful flow goes on at once, at a combined switch where nothing is held. It is counted then.
    pub(super) fn passes(
        &mut self,
        now: Time,
        settings: &Settings,
        packet: (PacketId, u16),
        (data, paces): (bool, bool),
    ) -> bool {
        let share = self.share(settings, (data, paces));
        share.into_iter().for_each(|share| self.count(now, packet, share));
        share.is_some()
    }

    /// Releases the next packet to cross at a combined switch, and gives it with its frame bytes; see [`Control::turn`]. It is
    /// counted now, not when it leaves.
    pub(super) fn release(
        &mut self,
        now: Time,
        settings: &Settings,
        (data, paces): (bool, bool),
        is_paused: impl Fn(TrafficClass) -> bool,
    ) -> Option<(PacketId, u16)> {
        let before = self.bytes;
        let Some(id) = self.turn(now, settings, (data, paces), is_paused) else {
            self.stalled = true; // until something leaves
            return None;
        };
        let packet = (id, (before - self.bytes) as u16);
        let share = self.leaving.take().map_or(Share::Congested, |(_, share)| share);
        self.count(now, packet, share);
        Some(packet)
    }

    /// Counts a packet in the window before it has left.
    fn count(&mut self, now: Time, (id, frame): (PacketId, u16), share: Share) {
        let Phase::Running(window) = &mut self.phase else { return };
        self.counted.insert(id);
        if window.sent(frame, share) {
            self.windows += 1;
            self.since = now;
        }
    }

    /// True if packets that were counted before they left are still here.
    pub(super) fn has_counted(&self) -> bool {
        !self.counted.is_empty()
    }

    /// The wire is free: the packet that is to leave. `data`: the queue has one that may. `paces`: what harmful flows may not send
    /// nobody sends.
    pub(super) fn turn(
        &mut self,
        now: Time,
        settings: &Settings,
        (data, paces): (bool, bool),
        is_paused: impl Fn(TrafficClass) -> bool,
    ) -> Option<PacketId> {
        self.stalled = !data;
        for class in TrafficClass::all(PRIORITIES) {
            let Some(head) = self.held[class].front().copied() else { continue };
            let first = self.flows.iter().any(|flow| flow.tuple == head.tuple && flow.queued > 0);
            if first || is_paused(class) {
                continue;
            }
            let share = self.share(settings, (data, paces))?;
            self.stalled = false;
            self.held[class].pop_front();
            self.forget(&head);
            self.peaks.longest = self.peaks.longest.max(now.since(head.since).ps());
            self.peaks.head = self.peaks.head.max(self.head);
            self.head = 0;
            self.leaving = Some((head.id, share));
            return Some(head.id);
        }
        None
    }

    /// Removes a packet that is held no longer.
    fn forget(&mut self, held: &Held) {
        self.bytes -= u64::from(held.frame);
        if let Some(place) = self.flows.iter().position(|flow| flow.tuple == held.tuple) {
            self.flows[place].held -= 1;
            if self.flows[place].held == 0 {
                // Its next packets may join the queue: what of it waits there is counted again when one is held.
                self.flows.swap_remove(place);
            }
        }
    }

    /// A frame has left the port, one that was held or another. True where that began a new window. `joins`: what may go on joins the
    /// queue; then a frame of a harmful flow that came before what is held leaves the window to that, which is asked next. Else such
    /// frames could use one window after the other that has begun by time.
    pub(super) fn sent(
        &mut self,
        now: Time,
        settings: &Settings,
        (id, frame): (PacketId, u16),
        tuple: &Tuple,
        (is_harmful, joins): (bool, bool),
    ) -> bool {
        let own = self.leaving.take().filter(|(leaving, _)| *leaving == id);
        if own.is_none() {
            let queued = self.flows.iter_mut().find(|flow| flow.tuple == *tuple);
            queued.into_iter().for_each(|flow| flow.queued = flow.queued.saturating_sub(1));
        }
        let behind = self.held.iter().filter_map(VecDeque::front).any(|head| {
            self.flows.iter().any(|flow| flow.tuple == head.tuple && flow.queued > 0)
            // of its own flow
        });
        let counted = self.counted.remove(&id);
        self.head = match behind {
            true => 0,
            false if counted => self.head, // in a window before this one
            false => self.head + u64::from(frame),
        };
        match &mut self.phase {
            Phase::Off => false,
            Phase::Measuring { harmful, others, missing, degree } => {
                if is_harmful || counted || own.is_some() {
                    *harmful += u32::from(frame);
                } else {
                    *others += u32::from(frame);
                }
                missing.retain(|other| other != tuple);
                let sum = *harmful + *others;
                if missing.is_empty() && sum >= settings.bounds.least || sum >= settings.bounds.most {
                    let mut window = Window::measured(settings.bounds, *harmful, *others);
                    window.reduce(*degree, settings.again);
                    self.phase = Phase::Running(window);
                    self.since = now;
                }
                false
            }
            Phase::Running(_) if counted => false,
            Phase::Running(window) => {
                let share = match own {
                    Some((_, share)) => share,
                    None if !is_harmful => Share::Other,
                    None if window.is_open() && !(joins && self.bytes > 0) => Share::Congested,
                    None => Share::Spare,
                };
                let turned = window.sent(frame, share);
                if turned {
                    self.windows += 1;
                    (self.since, self.stalled) = (now, false);
                }
                turned
            }
        }
    }

    /// Handles the drop of a packet: one that was held, one of the queue, or one that had not come so far. True where it was
    /// held. `queued`: packets of its flow that are in the port's queue now, before those that are held.
    pub(super) fn dropped(&mut self, id: PacketId, tuple: &Tuple, queued: impl FnOnce() -> u32) -> bool {
        self.counted.remove(&id);
        for class in TrafficClass::all(PRIORITIES) {
            if let Some(place) = self.held[class].iter().position(|held| held.id == id) {
                let held = self.held[class].remove(place);
                held.iter().for_each(|held| self.forget(held));
                return true;
            }
        }
        if let Some(flow) = self.flows.iter_mut().find(|flow| flow.tuple == *tuple) {
            flow.queued = queued();
            self.stalled = false;
        }
        false
    }

    /// True if a turn of the wire is wanted.
    pub(super) fn waits(&self) -> bool {
        self.bytes > 0 && !self.stalled
    }

    /// Stops further releases until a packet has left.
    pub(super) fn stall(&mut self) {
        self.stalled = true;
    }

    /// Ends a stall: the held packets may be able to leave now.
    pub(super) fn wake(&mut self) {
        self.stalled = false;
    }

    /// True if held packets wait for something other than the wire.
    pub(super) fn is_stalled(&self) -> bool {
        self.bytes > 0 && self.stalled
    }

    pub(super) fn packets(&self) -> impl Iterator<Item = PacketId> + '_ {
        self.held.iter().flatten().map(|held| held.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanin_packet::Envelope;
    use fanin_units::{FlowId, Span};

    const SETTINGS: Settings =
        Settings { bounds: Bounds { least: 6_000, most: 12_000, floor: 1_500 }, again: true, reserved: 4_000 };

    fn tuple(flow: u32) -> Tuple {
        Tuple::of(&Envelope { flow: FlowId(flow), ..Envelope::default() })
    }

    fn at(ns: u64) -> Time {
        Time::ZERO + Span::from_ns(ns)
    }

    fn sent(control: &mut Control, id: u32, frame: u16, flow: u32) -> bool {
        control.sent(at(u64::from(id)), &SETTINGS, (PacketId(id), frame), &tuple(flow), (flow == 1, false))
    }

    fn hold(control: &mut Control, id: u32, frame: u16, flow: u32) {
        control.hold(at(u64::from(id)), (PacketId(id), TrafficClass(0), frame), tuple(flow), || 0);
    }

    /// The wire is free while the queue has a packet: what is held and leaves.
    fn turn(control: &mut Control) -> Option<u32> {
        control.turn(at(100), &SETTINGS, (true, false), |_| false).map(|id| id.0)
    }

    /// Flow 1 alone has sent 6 kB, W; the largest degree leaves it 3 kB of them.
    fn running() -> Control {
        let mut control = Control::new();
        control.on_degree(63, true, vec![Harmful { tuple: tuple(1), from: None }]);
        for id in 0..4 {
            assert!(control.is_on() && !control.is_running() && control.is_open() && control.window().is_none());
            assert!(!sent(&mut control, id, 1_500, 1));
        }
        assert_eq!((control.is_running(), control.window(), control.since), (true, Some(6_000), at(3)));
        control
    }

    /// Two frames of the harmful flow use its 3 kB up, and two of another end the window: the next begins open.
    #[test]
    fn a_window_is_used_up_and_begins_anew() {
        let mut control = running();
        assert!(control.is_open());
        assert!(!sent(&mut control, 4, 1_500, 1) && control.is_open());
        assert!(!sent(&mut control, 5, 1_500, 1) && !control.is_open());
        assert!(!sent(&mut control, 6, 1_500, 2) && !control.is_open());
        assert!(sent(&mut control, 7, 1_500, 2) && control.is_open());
        assert_eq!((control.windows, control.since), (1, at(7)));
        control.restart(at(9));
        assert_eq!((control.windows, control.since), (2, at(9)));
        control.end();
        assert!(!control.is_on() && control.is_open() && control.window().is_none());
    }

    /// What is held asks for turns, but not from a stall on until that is ended.
    #[test]
    fn a_stall_lasts_until_it_is_ended() {
        let mut control = running();
        control.stall();
        assert!(!control.waits() && !control.is_stalled(), "nothing is held");
        hold(&mut control, 9, 1_500, 1);
        control.stall();
        assert!(!control.waits() && control.is_stalled());
        control.wake();
        assert!(control.waits() && !control.is_stalled());
    }

    /// Beyond W_c what is held waits for the queue, until more is held than `reserved`: then the measured share counts.
    #[test]
    fn a_full_reserve_has_the_measured_share() {
        for (last, leaves) in [(999, None), (1_000, None), (1_001, Some(10))] {
            let mut control = running();
            (4..6).for_each(|id| assert!(!sent(&mut control, id, 1_500, 1)));
            [(10, 1_500), (11, 1_500), (12, last)].into_iter().for_each(|(id, frame)| hold(&mut control, id, frame, 1));
            assert_eq!((control.bytes(), turn(&mut control)), (3_000 + u64::from(last), leaves), "4,000 B are reserved");
            // Where the queue has nothing it leaves in any case, unless the port paces.
            let idle = |paces| control.clone().turn(at(100), &SETTINGS, (false, paces), |_| false);
            assert!(idle(false).is_some() && idle(true).is_some() == (leaves.is_some() && last > 4_000));
        }
    }

    /// A flow is held as long as one of its packets is, also where another one's are; classes apart.
    #[test]
    fn flows_and_classes_that_are_held() {
        let mut control = running();
        assert!(control.is_empty() && !control.holds(&tuple(1)) && !control.holds_class(TrafficClass(0)));
        hold(&mut control, 10, 1_500, 1);
        hold(&mut control, 11, 500, 2);
        assert!(control.holds(&tuple(1)) && control.holds(&tuple(2)) && !control.holds(&tuple(3)));
        assert!(control.holds_class(TrafficClass(0)) && !control.holds_class(TrafficClass(1)));
        assert_eq!((turn(&mut control), control.holds(&tuple(1)), control.holds(&tuple(2))), (Some(10), false, true));
        assert_eq!((turn(&mut control), control.holds(&tuple(2)), control.is_empty()), (Some(11), false, true));
        assert_eq!(control.peaks.bytes, 2_000);
        assert_eq!(control.peaks.longest, Span::from_ns(90).ps(), "from 10 to 100 ns");
    }

    /// What is sent while a packet is the first of those held, in bytes: of others' frames 2.5 kB here, none of its own flow before it.
    #[test]
    fn bytes_before_the_first_that_is_held() {
        let mut control = running();
        control.hold(at(4), (PacketId(10), TrafficClass(0), 1_500), tuple(1), || 1);
        sent(&mut control, 5, 1_000, 1);
        assert_eq!(control.head, 1_000, "the last of its own that was queued: from here on it is the first");
        sent(&mut control, 6, 1_000, 2);
        sent(&mut control, 7, 500, 2);
        assert_eq!((control.head, turn(&mut control)), (2_500, Some(10)));
        assert_eq!((control.peaks.head, control.head), (2_500, 0));
    }

    /// At a combined switch a packet that is let go counts at once, and not again when it leaves; one that is dropped counts no more.
    #[test]
    fn a_packet_that_crosses_counts_once() {
        let mut control = running();
        assert!(!control.has_counted());
        for id in [10, 11] {
            assert!(control.passes(at(10), &SETTINGS, (PacketId(id), 1_500), (true, false)));
        }
        assert!(control.has_counted() && !control.is_open(), "3 kB of W_c");
        assert!(!control.passes(at(10), &SETTINGS, (PacketId(12), 1_500), (true, false)));
        sent(&mut control, 10, 1_500, 1);
        assert!(control.has_counted());
        assert!(!control.dropped(PacketId(11), &tuple(1), || 0) && !control.has_counted());
        assert!(!sent(&mut control, 13, 1_500, 2) && sent(&mut control, 14, 1_500, 2), "3 of 6 kB were counted");
    }

    /// Dropped is what is held, once; a drop of the queue changes how many leave before it.
    #[test]
    fn drops_of_what_is_held() {
        let mut control = running();
        control.hold(at(4), (PacketId(10), TrafficClass(0), 1_500), tuple(1), || 2);
        control.hold(at(4), (PacketId(11), TrafficClass(1), 1_500), tuple(2), || 0);
        assert_eq!(turn(&mut control), Some(11), "of another class; two frames of flow 1 leave before its own");
        assert!(!control.dropped(PacketId(99), &tuple(1), || 0) && control.bytes() == 1_500);
        assert!(control.dropped(PacketId(10), &tuple(1), || 0));
        assert!(control.is_empty() && !control.dropped(PacketId(10), &tuple(1), || 0));
    }
}
