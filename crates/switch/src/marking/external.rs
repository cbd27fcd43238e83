//! Decisions by a block outside of the simulator: RTL in its simulator, a BPF program, a prototype in any language.
//!
//! The policy asks and does not know how the question travels: whoever runs the pipeline brings an [`Outside`] to each port.

use super::Policy;
use crate::{DropReason, MarkReason, MarkVerdict, PortView};
use fanin_packet::{Ecn, Envelope};
use fanin_params::{params, Cx};
use fanin_units::{Span, Stream};
use std::sync::{Arc, Mutex, PoisonError};

/// The block outside marked the packet.
const MARKED: MarkReason = MarkReason("external");
/// The block outside dropped the packet.
const DROPPED: DropReason = DropReason("external");
/// The block outside wants the packet elsewhere, and no way was found.
const NOWHERE: DropReason = DropReason("external_nowhere");

/// Largest number of bytes of `settings`, which the first frame has room for.
pub const OUTSIDE_SETTINGS: usize = 480;

params! {
    /// External: a block outside of the simulator decides about every packet, over a Unix socket. See docs/cosimulation.md.
    pub struct OutsideParams {
        /// Path of the Unix socket at which the block listens, relative to the working directory.
        pub socket: String = "fanin.sock".to_string();
        /// Settings of the block, passed on as they are written: at most 480 bytes.
        pub settings: String = String::new();
        /// Name and version that the block must have; another is refused. If absent, any block may decide.
        pub block: Option<String> = None;
        /// Departures: the block is also asked about packets that leave the queue, and may mark them.
        pub departures: bool = false;
        /// Refusals: the block is also told of packets that admission has refused.
        pub refusals: bool = false;
        /// Detours: the block may send packets that find no room at their port, and any others, to another port of the
        /// switch.
        pub detours: bool = false;
        /// Longest wait for a byte from the block, in real time.
        pub timeout: Span = Span::from_s(10), in Span::from_ms(1)..=Span::from_s(3600);
    }
}

/// Moment at which an outside block is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Moment {
    /// The packet is about to join the queue: it passes, is marked or dropped.
    Arrival = 0,
    /// The packet has left the queue and is about to be sent: it passes or is marked.
    Departure = 1,
    /// Admission has refused the packet: nothing is left to decide.
    Refusal = 2,
    /// The port does not take the packet: it is dropped, or goes to another port of the switch.
    Way = 3,
}

/// A port of the switch to which a packet may go that its own port does not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// Number of the port.
    pub port: u32,
    /// Frames that wait there \[bytes\].
    pub queue_bytes: u64,
    /// True if the packet has room there now.
    pub room: bool,
    /// True if the port leads to a host.
    pub to_host: bool,
    /// True if the packet came in by this port.
    pub back: bool,
}

/// A packet about which an outside block decides.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    pub moment: Moment,
    /// Number of the port, as the block was told at the start.
    pub port: u32,
    /// Class whose own queue `view` is; `None`: that of the whole port.
    pub class: Option<u8>,
    pub view: &'a PortView,
    pub packet: &'a Envelope,
    /// Other ports of the switch, with [`Moment::Way`].
    pub ways: &'a [Way],
}

/// Decision of an outside block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Pass,
    Mark,
    Drop,
    /// Another port is to have the packet: the block is asked which.
    Elsewhere,
    /// The port of this number is to have the packet.
    Detour(u32),
}

/// A block outside of the simulator, which decides about packets one after the other.
pub trait Outside: Send {
    /// The block's decision; `None` where there is none, for the reason that [`Outside::failure`] gives from then on.
    fn ask(&mut self, question: &Question<'_>) -> Option<Answer>;

    /// Reason for which the block does not decide any more.
    fn failure(&self) -> Option<String>;
}

/// A port's place at an outside block.
#[derive(Clone)]
pub struct OutsidePort {
    /// All ports of a block ask the same one.
    pub block: Arc<Mutex<dyn Outside>>,
    /// Number of the port.
    pub port: u32,
    /// Class of the queue that is watched; `None`: the whole port.
    pub class: Option<u8>,
}

impl std::fmt::Debug for OutsidePort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OutsidePort {{ port: {}, class: {:?} }}", self.port, self.class)
    }
}

/// A port whose marking an outside block decides. It keeps no state: that is the block's.
#[derive(Clone, Debug)]
pub struct External {
    at: Option<OutsidePort>,
    departures: bool,
    refusals: bool,
    detours: bool,
}

impl External {
    fn ask(&self, moment: Moment, view: &PortView, packet: &Envelope, ways: &[Way]) -> Option<Answer> {
        let OutsidePort { block, port, class } = self.at.as_ref()?;
        let question = Question { moment, port: *port, class: *class, view, packet, ways };
        block.lock().unwrap_or_else(PoisonError::into_inner).ask(&question)
    }

    /// A mark of a packet that is not ECN-capable is none: it passes, as behind any threshold.
    fn verdict(answer: Option<Answer>, p: &Envelope) -> MarkVerdict {
        match answer {
            Some(Answer::Mark) if p.ecn != Ecn::NotEct => MarkVerdict::Mark(MARKED),
            Some(Answer::Drop) => MarkVerdict::Drop(DROPPED),
            Some(Answer::Elsewhere) => MarkVerdict::Drop(NOWHERE),
            Some(Answer::Pass | Answer::Mark | Answer::Detour(_)) => MarkVerdict::Pass,
            None => MarkVerdict::Undecided,
        }
    }
}

impl Policy for External {
    type Params = OutsideParams;

    /// No trial: a block has to be there first.
    const TRIED: bool = false;

    fn new(params: &OutsideParams) -> Self {
        External { at: None, departures: params.departures, refusals: params.refusals, detours: params.detours }
    }

    fn check(params: &OutsideParams, cx: &mut Cx) {
        if params.socket.is_empty() {
            cx.error_at("socket", &params.socket, "is empty", "the path of a Unix socket, such as \"block.sock\"");
        }
        if params.settings.len() > OUTSIDE_SETTINGS || params.settings.contains('\0') {
            let accepted = format!("at most {OUTSIDE_SETTINGS} bytes, none of them zero");
            cx.error_at("settings", &params.settings, format!("has {} bytes", params.settings.len()), &accepted);
        }
    }

    fn drops(_params: &OutsideParams) -> bool {
        true
    }

    fn idle_below(_params: &OutsideParams) -> bool {
        false
    }

    fn outside(params: &OutsideParams) -> Option<&OutsideParams> {
        Some(params)
    }

    fn attach(&mut self, at: OutsidePort) {
        self.at = Some(at);
    }

    fn failure(&self) -> Option<String> {
        let block = &self.at.as_ref()?.block;
        block.lock().unwrap_or_else(PoisonError::into_inner).failure()
    }

    fn on_enqueue(&mut self, view: &PortView, p: &Envelope, _rng: &mut Stream) -> MarkVerdict {
        Self::verdict(self.ask(Moment::Arrival, view, p, &[]), p)
    }

    fn on_refused(&mut self, view: &PortView, p: &Envelope) {
        if self.refusals {
            self.ask(Moment::Refusal, view, p, &[]);
        }
    }

    fn finds_ways(&self, reason: DropReason, room: bool) -> bool {
        self.detours && (room || reason == NOWHERE)
    }

    fn way(&mut self, view: &PortView, p: &Envelope, ways: &[Way]) -> Option<Option<u32>> {
        self.ask(Moment::Way, view, p, ways).map(|answer| match answer {
            Answer::Detour(port) => Some(port),
            _ => None,
        })
    }

    fn on_dequeue(&mut self, view: &PortView, p: &Envelope, _rng: &mut Stream) -> MarkVerdict {
        match self.departures {
            true => Self::verdict(self.ask(Moment::Departure, view, p, &[]), p),
            false => MarkVerdict::Pass,
        }
    }

    fn acts_at_dequeue(&self) -> bool {
        self.departures
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{packet, view};
    use crate::{Marker, Marking};
    use fanin_units::Purpose;

    /// Answers in turn, and remembers what it was asked.
    struct Script(Vec<Option<Answer>>, Vec<(Moment, u32, Option<u8>, u64, u16)>);

    impl Outside for Script {
        fn ask(&mut self, q: &Question<'_>) -> Option<Answer> {
            self.1.push((q.moment, q.port, q.class, q.view.queue_bytes, q.packet.frame));
            self.0.remove(0)
        }

        fn failure(&self) -> Option<String> {
            self.0.is_empty().then(|| "it has nothing more to say".to_string())
        }
    }

    fn params(departures: bool, refusals: bool) -> OutsideParams {
        OutsideParams {
            socket: "x".into(),
            settings: String::new(),
            block: None,
            departures,
            refusals,
            detours: false,
            timeout: Span::from_s(1),
        }
    }

    fn attached(script: &[Option<Answer>], departures: bool, refusals: bool) -> (Marker, Arc<Mutex<Script>>) {
        let block = Arc::new(Mutex::new(Script(script.to_vec(), Vec::new())));
        let mut marker = Marker::new(&Marking::External(params(departures, refusals)));
        marker.attach(OutsidePort { block: block.clone(), port: 7, class: Some(2) });
        (marker, block)
    }

    #[test]
    fn the_block_decides_and_packets_that_cannot_be_marked_pass() {
        let answers = [Answer::Pass, Answer::Mark, Answer::Mark, Answer::Drop].map(Some);
        let (mut marker, block) = attached(&answers, false, false);
        let mut rng = Stream::new(1, Purpose::Marking, 0);
        let mut ask = |queue, ecn| marker.on_enqueue(&view(queue), &packet(700, ecn), &mut rng);
        let got = [ask(1, Ecn::Ect0), ask(2, Ecn::Ect1), ask(3, Ecn::NotEct), ask(4, Ecn::Ect0)];
        assert_eq!(got, [MarkVerdict::Pass, MarkVerdict::Mark(MARKED), MarkVerdict::Pass, MarkVerdict::Drop(DROPPED)]);
        let asked = &block.lock().unwrap().1;
        let expected: Vec<_> = (1..5).map(|n| (Moment::Arrival, 7, Some(2), view(n).queue_bytes, 700)).collect();
        assert_eq!(asked, &expected);
    }

    #[test]
    fn departures_and_refusals_are_asked_about_where_the_settings_say_so() {
        for (departures, refusals) in [(false, false), (true, false), (false, true), (true, true)] {
            let (mut marker, block) = attached(&[Some(Answer::Mark); 2], departures, refusals);
            let mut rng = Stream::new(1, Purpose::Marking, 0);
            assert_eq!(marker.acts_at_dequeue(), departures);
            marker.on_refused(&view(9), &packet(64, Ecn::Ect0));
            let left = marker.on_dequeue(&view(3), &packet(64, Ecn::Ect0), &mut rng);
            assert_eq!(left == MarkVerdict::Mark(MARKED), departures);
            let asked: Vec<Moment> = block.lock().unwrap().1.iter().map(|asked| asked.0).collect();
            let expected = [refusals.then_some(Moment::Refusal), departures.then_some(Moment::Departure)];
            assert_eq!(asked, expected.into_iter().flatten().collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_finds_no_room_or_is_wanted_elsewhere_gets_a_way_where_the_settings_say_so() {
        let ways = [Way { port: 3, queue_bytes: 9, room: true, to_host: false, back: false }];
        for detours in [false, true] {
            let block =
                Arc::new(Mutex::new(Script([Answer::Elsewhere, Answer::Detour(3), Answer::Pass].map(Some).to_vec(), Vec::new())));
            let mut marker = Marker::new(&Marking::External(OutsideParams { detours, ..params(false, false) }));
            marker.attach(OutsidePort { block: block.clone(), port: 7, class: None });
            let mut rng = Stream::new(1, Purpose::Marking, 0);
            assert_eq!(marker.on_enqueue(&view(5), &packet(64, Ecn::Ect0), &mut rng), MarkVerdict::Drop(NOWHERE));
            assert_eq!([true, false].map(|room| marker.finds_ways(DropReason::BUFFER_FULL, room)), [detours, false]);
            assert_eq!((marker.finds_ways(NOWHERE, false), marker.finds_ways(DROPPED, false)), (detours, false));
            assert_eq!([0, 1].map(|_| marker.way(&view(6), &packet(64, Ecn::Ect0), &ways)), [Some(Some(3)), Some(None)]);
            let asked: Vec<_> = block.lock().unwrap().1.iter().map(|asked| (asked.0, asked.3)).collect();
            let queues = [5, 6, 6].map(|n| view(n).queue_bytes);
            assert_eq!(asked, [(Moment::Arrival, queues[0]), (Moment::Way, queues[1]), (Moment::Way, queues[2])]);
        }
    }

    #[test]
    fn without_an_answer_nothing_is_decided_and_the_reason_is_known() {
        let (mut marker, _) = attached(&[None], false, false);
        let mut rng = Stream::new(1, Purpose::Marking, 0);
        assert_eq!(marker.on_enqueue(&view(0), &packet(64, Ecn::Ect0), &mut rng), MarkVerdict::Undecided);
        assert_eq!(marker.failure().as_deref(), Some("it has nothing more to say"));
        let mut alone = Marker::new(&Marking::External(params(false, false)));
        assert_eq!(alone.on_enqueue(&view(0), &packet(64, Ecn::Ect0), &mut rng), MarkVerdict::Undecided);
        assert_eq!(alone.failure(), None);
    }

    #[test]
    fn settings_that_do_not_fit_are_refused() {
        let found = |settings: String, socket: &str| {
            let mut cx = Cx::new();
            Marking::External(OutsideParams { settings, socket: socket.into(), ..params(false, false) }).check(&mut cx);
            cx.into_problems().into_iter().map(|p| format!("{}: {}", p.path, p.message)).collect::<Vec<_>>()
        };
        assert!(found("x".repeat(480), "s").is_empty());
        assert_eq!(found("x".repeat(481), ""), ["socket: is empty", "settings: has 481 bytes"]);
        assert_eq!(found("a\0".into(), "s"), ["settings: has 2 bytes"]);
    }
}
