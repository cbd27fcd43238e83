//! Combined input- and output-queued switches: virtual output queues, and a crossbar that moves packets as a whole.
//!
//! A packet whose enqueue a port of such a switch attempts joins the virtual output queue of its input, that port and its class. When the
//! arbiter matches input and port, it leaves that queue and crosses in the time that its frame takes at the rate of the crossbar; then
//! it joins the queue of its port, which from there on is a port like any other. A port without room for a largest frame is matched
//! with nobody, so only a virtual output queue drops for want of room. docs/switch/combined.md.

use super::switch::Fabric;
use crate::core::Core;
use fanin_packet::PacketId;
use fanin_switch::{Arbitration, CrossbarArbiter, DropReason, Hooks, Inputs, Match, PortNo, Requests, Scheduler, Scheduling};
use fanin_units::{BitRate, LinkId, QueueClass, Span, SwitchId, Time, WireClock};
use std::collections::{BTreeMap, VecDeque};

/// Slots of the wheel that a crossbar has besides those of its inputs: arbitrations now, and later.
const ARBITRATIONS: usize = 2;
/// The time between two arbitrations that could each match more: the time of a smallest frame on the crossbar.
const SLOT: u16 = 64;

/// Settings of a crossbar, most of them common to a network.
pub struct Settings<'a> {
    pub arbitration: &'a Arbitration,
    /// Rate of each input and output.
    pub rate: BitRate,
    /// Bytes that a virtual output queue may hold, and one class of an output port.
    pub voq: u64,
    pub output: u64,
    /// Bytes of the largest frame in the network.
    pub largest: u64,
    /// First slot of the crossbar in the wheel.
    pub first_slot: usize,
}

/// The queues of an input for an output.
struct Voq {
    /// Queues by class.
    queues: Vec<VecDeque<PacketId>>,
    bytes: Vec<u64>,
    /// Scheduler among classes, where there are several: the discipline of the output port.
    scheduler: Option<Box<Scheduler>>,
    depth: Depth,
}

/// Length of a virtual output queue now, and its peaks.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Depth {
    pub bytes: u64,
    pub packets: u32,
    /// Bytes that mechanisms hold for the queue, besides.
    pub held: u64,
    pub held_packets: u32,
    /// Most bytes since the last sample, and ever, with what was held.
    pub interval_max: u64,
    pub peak: u64,
    /// Packets that did not fit: since the last sample, and ever.
    pub interval_drops: u32,
    pub drops: u64,
}

impl Depth {
    fn join(&mut self, frame: u16) {
        self.bytes += u64::from(frame);
        self.packets += 1;
    }

    /// Bytes that wait, including those that mechanisms hold.
    pub fn standing(&self) -> u64 {
        self.bytes + self.held
    }

    /// Counts the queue into its peaks; a packet that has crossed at once never waited.
    fn note(&mut self) {
        self.interval_max = self.interval_max.max(self.standing());
        self.peak = self.peak.max(self.standing());
    }

    fn hold(&mut self, frame: u16) {
        self.held += u64::from(frame);
        self.held_packets += 1;
        self.note();
    }

    fn let_go(&mut self, frame: u16) {
        self.held -= u64::from(frame);
        self.held_packets -= 1;
    }

    fn refuse(&mut self) {
        self.interval_drops += 1;
        self.drops += 1;
    }

    fn leave(&mut self, frame: u16) {
        self.bytes -= u64::from(frame);
        self.packets -= 1;
    }
}

/// An input of the crossbar: a port, or the switch itself for packets that it makes.
#[derive(Default)]
struct Input {
    /// The packet that crosses from this input, and its output.
    crossing: Option<(PacketId, u16)>,
    depth: Depth,
}

/// State of an output port at the crossbar.
struct Output {
    link: LinkId,
    /// True while a packet crosses to this output.
    busy: bool,
    /// Bytes that wait for the output in inputs or cross to it, and bytes in its queue, by class.
    coming: Vec<u64>,
    queued: Vec<u64>,
    /// Classes without room for a largest frame, a bit for each; and all classes of the output.
    full: u8,
    all: u8,
    /// Inputs with a packet for the output, by class.
    waiting: Vec<Inputs>,
    /// Packets for this output in all inputs.
    packets: u32,
}

impl Output {
    /// Sets of inputs with packets of the classes for which this output has room.
    fn open(&self) -> impl Iterator<Item = &Inputs> {
        let full = self.full;
        let open = QueueClass::all(self.waiting.len()).filter(move |class| !class.is_in(full));
        open.map(|class| &self.waiting[class])
    }

    /// True if a match would bring this output a packet, as far as is known without the inputs.
    fn wants(&self) -> bool {
        !self.busy && self.packets > 0 && self.full != self.all
    }
}

/// The crossbar of a switch, with its virtual output queues.
pub struct Crossbar {
    arbiter: CrossbarArbiter,
    clock: WireClock,
    voq: u64,
    /// An output class with more than this is full.
    room_below: u64,
    inputs: Vec<Input>,
    outputs: Vec<Output>,
    /// Virtual output queues, by input, then output.
    voqs: Vec<Voq>,
    /// Time at which the packet that crosses from an input has crossed; `Time::MAX`: none crosses.
    ends: Vec<Time>,
    free: Inputs,
    /// Packets that mechanisms hold: input, output and frame.
    held: BTreeMap<PacketId, (u16, PortNo, u16)>,
    first_slot: usize,
    /// The events of an arbitration now and of a later one are set.
    armed: [bool; ARBITRATIONS],
    requests: Requests,
    matches: Vec<Match>,
    started: Vec<(PacketId, Match)>,
}

impl Crossbar {
    /// An empty crossbar. `ports`: output ports by link with their scheduling.
    pub fn new(settings: &Settings<'_>, ports: &[(LinkId, &Scheduling)]) -> Self {
        let (inputs, outputs) = (ports.len() + 1, ports.len());
        let voq = |scheduling: &Scheduling| {
            let classes = scheduling.classes();
            Voq {
                queues: vec![VecDeque::new(); classes],
                bytes: vec![0; classes],
                scheduler: (classes > 1).then(|| Box::new(Scheduler::new(scheduling))),
                depth: Depth::default(),
            }
        };
        let output = |(link, scheduling): &(LinkId, &Scheduling)| Output {
            link: *link,
            busy: false,
            coming: vec![0; scheduling.classes()],
            queued: vec![0; scheduling.classes()],
            full: 0,
            all: u8::MAX >> (8 - scheduling.classes()),
            waiting: vec![Inputs::none(inputs); scheduling.classes()],
            packets: 0,
        };
        let mut free = Inputs::none(inputs);
        (0..inputs).for_each(|input| free.set(input, true));
        Crossbar {
            arbiter: CrossbarArbiter::new(settings.arbitration, inputs, outputs),
            clock: WireClock::new(settings.rate),
            voq: settings.voq,
            room_below: settings.output.saturating_sub(settings.largest),
            inputs: (0..inputs).map(|_| Input::default()).collect(),
            outputs: ports.iter().map(output).collect(),
            voqs: (0..inputs).flat_map(|_| ports.iter().map(|(_, scheduling)| voq(scheduling))).collect(),
            ends: vec![Time::MAX; inputs],
            free,
            held: BTreeMap::new(),
            first_slot: settings.first_slot,
            armed: [false; ARBITRATIONS],
            requests: Requests::new(inputs, outputs),
            matches: Vec::new(),
            started: Vec::new(),
        }
    }

    /// Time that a frame takes to cross.
    fn tx(&self, frame: u16) -> Span {
        self.clock.tx(u32::from(frame))
    }

    /// Time scale of the crossbar: the time that frames take to cross.
    pub fn clock(&self) -> WireClock {
        self.clock
    }

    /// Slots of the wheel that the crossbar of a switch with so many ports has.
    pub fn slots(ports: usize) -> usize {
        ports + 1 + ARBITRATIONS
    }

    /// Input of a packet that came by a port; without a port, the one where it came in before a mechanism held it, or the switch
    /// itself.
    fn input_of(&self, port: Option<u16>, packet: PacketId) -> usize {
        let held = || self.held.get(&packet).map(|(input, ..)| *input);
        port.or_else(held).map_or(self.outputs.len(), usize::from)
    }

    /// Notes that a mechanism holds a packet that came in by a port: the packet waits at its input, before the virtual output
    /// queue that it will join.
    pub fn hold(&mut self, (port, output): (u16, PortNo), packet: PacketId, frame: u16) {
        self.held.insert(packet, (port, output, frame));
        self.inputs[usize::from(port)].depth.hold(frame);
        let place = self.place(usize::from(port), output.index());
        self.voqs[place].depth.hold(frame);
    }

    /// Forgets a packet that is gone, if a mechanism has held it.
    pub fn forget(&mut self, packet: PacketId) {
        let Some((port, output, frame)) = self.held.remove(&packet) else { return };
        self.inputs[usize::from(port)].depth.let_go(frame);
        let place = self.place(usize::from(port), output.index());
        self.voqs[place].depth.let_go(frame);
    }

    /// Frame bytes that came in by a port and have not crossed yet, including those that mechanisms hold.
    pub fn input_bytes(&self, port: PortNo) -> u64 {
        self.inputs[port.index()].depth.standing()
    }

    /// Frame bytes that are to leave by a port and may: classes that are `closed` wait, a bit for each.
    pub fn sendable_bytes(&self, port: PortNo, closed: u8) -> u64 {
        let output = &self.outputs[port.index()];
        let open = QueueClass::all(output.queued.len()).filter(|class| !class.is_in(closed));
        open.map(|class| output.coming[class] + output.queued[class]).sum()
    }

    /// True where the queue of a class at an output port has room.
    pub fn has_room(&self, port: PortNo, class: QueueClass) -> bool {
        !class.is_in(self.outputs[port.index()].full)
    }

    /// Packets in virtual output queues, and packets that cross.
    pub fn packets(&self) -> u64 {
        let waiting: u64 = self.inputs.iter().map(|input| u64::from(input.depth.packets)).sum();
        waiting + self.inputs.iter().filter(|input| input.crossing.is_some()).count() as u64
    }

    fn place(&self, input: usize, output: usize) -> usize {
        input * self.outputs.len() + output
    }

    /// True where a packet of this class has room.
    fn fits(&self, (input, output): (usize, usize), class: QueueClass, frame: u16) -> bool {
        self.voqs[self.place(input, output)].bytes[class] + u64::from(frame) <= self.voq
    }

    /// A packet does not fit; gives the bytes that wait.
    fn refuse(&mut self, (input, output): (usize, usize)) -> u64 {
        self.inputs[input].depth.refuse();
        let place = self.place(input, output);
        self.voqs[place].depth.refuse();
        self.voqs[place].depth.standing()
    }

    fn join(&mut self, (input, output): (usize, usize), class: QueueClass, (packet, frame): (PacketId, u16)) {
        let place = self.place(input, output);
        let voq = &mut self.voqs[place];
        voq.queues[class].push_back(packet);
        voq.bytes[class] += u64::from(frame);
        voq.depth.join(frame);
        if let Some(scheduler) = &mut voq.scheduler {
            scheduler.enqueue(class, frame);
        }
        self.inputs[input].depth.join(frame);
        let output = &mut self.outputs[output];
        output.waiting[class].set(input, true);
        output.coming[class] += u64::from(frame);
        output.packets += 1;
    }

    /// A packet has joined a queue, and has not crossed at once.
    fn note(&mut self, (input, output): (usize, usize)) {
        self.inputs[input].depth.note();
        let place = self.place(input, output);
        self.voqs[place].depth.note();
    }

    /// True where the input could send to the output now.
    fn may_match(&self, input: usize, output: usize) -> bool {
        self.outputs[output].wants() && self.free.has(input)
    }

    /// Matches free inputs with free outputs; the packets that cross from now on are in `started`.
    fn arbitrate(&mut self) {
        self.requests.clear();
        for (i, output) in self.outputs.iter().enumerate().filter(|(_, output)| output.wants()) {
            let free = &self.free;
            self.requests.add(i, |row| row.set_any_of(output.open(), free));
        }
        self.arbiter.arbitrate(&self.requests, &mut self.matches);
    }

    /// True where a free input has a packet for a free output with room.
    fn has_more(&self) -> bool {
        let more = |output: &Output| output.open().any(|inputs| !inputs.is_disjoint(&self.free));
        self.outputs.iter().any(|output| output.wants() && more(output))
    }

    /// Takes the next packet of a match off its queue.
    fn take(&mut self, of: Match) -> Option<(PacketId, QueueClass)> {
        let (input, output) = (usize::from(of.input), usize::from(of.output));
        let place = self.place(input, output);
        let voq = &mut self.voqs[place];
        let class = match &mut voq.scheduler {
            Some(scheduler) => {
                scheduler.gate(self.outputs[output].full);
                scheduler.next()?
            }
            None => QueueClass::FIRST,
        };
        Some((voq.queues[class].pop_front()?, class))
    }

    fn left(&mut self, of: Match, class: QueueClass, frame: u16) {
        let (input, output) = (usize::from(of.input), usize::from(of.output));
        let place = self.place(input, output);
        let voq = &mut self.voqs[place];
        voq.bytes[class] -= u64::from(frame);
        voq.depth.leave(frame);
        let empty = voq.queues[class].is_empty();
        self.inputs[input].depth.leave(frame);
        let output = &mut self.outputs[output];
        output.packets -= 1;
        output.waiting[class].set(input, !empty);
    }

    /// True where another packet has crossed at this very instant, and is not handled yet.
    fn ends_now(&self, now: Time) -> bool {
        self.ends.contains(&now)
    }
}

/// A sample of a virtual output queue: input (none: the switch itself), link of the output, and depth.
pub struct Sampled {
    pub input: Option<PortNo>,
    pub output: LinkId,
    pub depth: Depth,
}

impl Crossbar {
    /// Queues in which something has happened since this was last called.
    pub fn sample(&mut self) -> Vec<Sampled> {
        let outputs = self.outputs.len();
        let mut rows = Vec::new();
        for (place, voq) in self.voqs.iter_mut().enumerate() {
            let depth = &mut voq.depth;
            if depth.interval_max == 0 && depth.interval_drops == 0 {
                continue;
            }
            let (input, output) = (place / outputs, place % outputs);
            let input = (input < outputs).then_some(PortNo(input as u16));
            rows.push(Sampled { input, output: self.outputs[output].link, depth: *depth });
            (depth.interval_max, depth.interval_drops) = (depth.standing(), 0);
        }
        rows
    }

    /// The depth of each input over all outputs, and its peaks.
    pub fn depths(&self) -> impl Iterator<Item = (PortNo, Depth)> + '_ {
        (0..).map(PortNo).zip(self.inputs[..self.outputs.len()].iter().map(|input| input.depth))
    }
}

impl Fabric {
    /// A packet has joined the queue of an output port of a combined switch.
    fn joined_output(&mut self, core: &Core, l: LinkId, class: QueueClass, frame: u16) {
        let (s, port) = core.switch_port(l);
        let x = &mut self.crossbars[s];
        let output = &mut x.outputs[port.index()];
        output.queued[class] += u64::from(frame);
        output.full |= if output.queued[class] > x.room_below { class.bit() } else { 0 };
    }

    /// Lets inputs use the room that a packet leaves in the queue of a port, at a combined switch.
    pub fn left_output(&mut self, core: &mut Core, l: LinkId, packet: PacketId, frame: u16) {
        let (s, port) = core.switch_port(l);
        let class = core.class_of(l, &core.pool[packet]);
        let Some(x) = self.crossbars.get_mut(s.index()) else { return };
        let output = &mut x.outputs[port.index()];
        output.queued[class] -= u64::from(frame);
        if class.is_in(output.full) && output.queued[class] <= x.room_below {
            output.full &= !class.bit();
            if output.wants() {
                self.arbitrate_at(core, s, core.now);
            }
        }
    }

    /// Sets the event of an arbitration: at this instant, after all that crosses until now, or later.
    fn arbitrate_at(&mut self, core: &mut Core, s: SwitchId, at: Time) {
        let x = &mut self.crossbars[s];
        let later = usize::from(at > core.now);
        if !std::mem::replace(&mut x.armed[later], true) {
            core.wheel.set((x.first_slot + x.inputs.len() + later) as u32, at);
        }
    }

    /// Starts the crossings that the arbiter has matched.
    fn start_crossings(&mut self, core: &mut Core, s: SwitchId) {
        let now = core.now;
        let x = &mut self.crossbars[s];
        x.started.clear();
        for i in 0..x.matches.len() {
            let of = x.matches[i];
            let Some((packet, class)) = x.take(of) else { continue };
            let frame = core.pool[packet].frame;
            if let Some(scheduler) = &mut x.voqs[usize::from(of.input) * x.outputs.len() + usize::from(of.output)].scheduler {
                scheduler.dequeued(class, frame);
            }
            x.left(of, class, frame);
            let (input, end) = (usize::from(of.input), now + x.tx(frame));
            x.inputs[input].crossing = Some((packet, of.output));
            x.outputs[usize::from(of.output)].busy = true;
            x.free.set(input, false);
            x.ends[input] = end;
            x.started.push((packet, of));
            core.wheel.set((x.first_slot + input) as u32, end);
        }
        if x.has_more() {
            let at = now + x.tx(SLOT);
            self.arbitrate_at(core, s, at);
        }
    }
}

impl Fabric {
    /// Attempts to enqueue a packet at a port of a combined switch: it joins a virtual output queue. `via`: the link that it came
    /// by.
    #[inline(never)]
    pub fn join_virtual_queue(&mut self, core: &mut Core, l: LinkId, via: Option<LinkId>, packet: PacketId) {
        let (s, port) = core.switch_port(l);
        if self.run_mechanisms_offer(core, (l, via), s, packet) {
            return;
        }
        let (class, frame) = (core.class_of(l, &core.pool[packet]), core.pool[packet].frame);
        let x = &mut self.crossbars[s];
        let pair = (x.input_of(via.map(|via| self.ingress[via]), packet), port.index());
        x.forget(packet);
        if !x.fits(pair, class, frame) {
            let queue_bytes = x.refuse(pair);
            return self.drop_dequeued(core, l, packet, DropReason::VOQ_FULL, queue_bytes);
        }
        x.join(pair, class, (packet, frame));
        if x.may_match(pair.0, pair.1) {
            self.arbitrate(core, s);
        }
        self.crossbars[s].note(pair);
    }

    /// An event of a crossbar: a packet has crossed, or an arbitration is due.
    #[inline(never)]
    pub fn crossbar_event(&mut self, core: &mut Core, slot: usize) {
        let (s, which) = self.crossbar_slots[slot];
        let x = &mut self.crossbars[s];
        let which = usize::from(which);
        if let Some(later) = which.checked_sub(x.inputs.len()) {
            x.armed[later] = false;
            return self.arbitrate(core, s);
        }
        let Some((packet, output)) = x.inputs[which].crossing.take() else { return };
        x.ends[which] = Time::MAX;
        x.free.set(which, true);
        let at = &mut x.outputs[usize::from(output)];
        at.busy = false;
        let l = at.link;
        let (class, frame) = (core.class_of(l, &core.pool[packet]), core.pool[packet].frame);
        self.crossbars[s].outputs[usize::from(output)].coming[class] -= u64::from(frame);
        let (_, waiting) = core.queue(l);
        if core.is_down(l) {
            self.refuse_at_dead_port(core, l, packet);
        } else {
            self.enqueue_crossed(core, l, packet);
        }
        if core.queue(l).1 > waiting {
            self.joined_output(core, l, class, frame);
        }
        if !self.crossbars[s].ends_now(core.now) {
            self.arbitrate(core, s);
        }
    }

    /// Matches inputs and outputs, and starts the crossings.
    fn arbitrate(&mut self, core: &mut Core, s: SwitchId) {
        self.crossbars[s].arbitrate();
        if self.crossbars[s].matches.is_empty() {
            return;
        }
        self.start_crossings(core, s);
        if self.switches[s].hooks.any(Hooks::CROSSING) {
            let started = std::mem::take(&mut self.crossbars[s].started);
            for (packet, of) in &started {
                self.run_crossing_hooks(core, s, *packet, [of.input, of.output].map(PortNo));
            }
            self.crossbars[s].started = started;
        }
    }

    /// Drops packets for a port in the virtual output queues of these classes.
    pub fn flush_inputs(&mut self, core: &mut Core, l: LinkId, class: QueueClass, reason: DropReason) {
        let (s, port) = core.switch_port(l);
        let inputs = self.crossbars[s].inputs.len();
        for input in 0..inputs {
            let of = Match { input: input as u16, output: port.0 };
            let x = &mut self.crossbars[s];
            let place = x.place(input, port.index());
            let voq = &mut x.voqs[place];
            if let Some(scheduler) = &mut voq.scheduler {
                scheduler.gate(class.bit());
                scheduler.flush(class);
            }
            let packets = std::mem::take(&mut voq.queues[class]);
            for packet in packets {
                let frame = core.pool[packet].frame;
                let x = &mut self.crossbars[s];
                x.left(of, class, frame);
                x.outputs[port.index()].coming[class] -= u64::from(frame);
                let left = self.crossbars[s].voqs[place].depth.standing();
                self.drop_dequeued(core, l, packet, reason, left);
            }
        }
    }
}
