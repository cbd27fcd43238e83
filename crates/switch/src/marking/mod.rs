//! Marking: the policies by which a port marks packets for congestion.
//!
//! A policy is one file with its parameters, its state and its [`Policy`], one line in the registry below, and one page in
//! docs/switch.

pub(crate) mod by_class;
mod codel;
mod external;
mod front_drop;
mod none;
mod red;
pub(crate) mod s_ecn;
mod threshold;

pub use by_class::ClassMarking;
pub use codel::CodelParams;
pub use external::{Answer, Moment, Outside, OutsideParams, OutsidePort, Question, Way, OUTSIDE_SETTINGS};
pub use front_drop::FrontDropParams;
pub use none::NoMarking;
pub use red::{RedParams, Spacing};
pub use s_ecn::{AfterMark, ByChance, SEcnParams, SlopeForm, SlopeParams, SlopeRegisters, SlopeStep};
pub use threshold::{At, ThresholdParams};

use crate::{DropReason, Head, MarkVerdict, PortView};
use fanin_packet::Envelope;
use fanin_params::{choice, Cx, Ground, Setting, Trial};
use fanin_units::{Amount, Bytes, Stream};

/// A marking policy's state at one port.
pub(crate) trait Policy: Sized {
    /// Parameters of the policy.
    type Params;

    /// True if the policy is one of those that a scenario can be tried with.
    const TRIED: bool = true;

    /// The state at the start of a run.
    fn new(params: &Self::Params) -> Self;

    /// Further settings of a scenario in which the policy is tried: the policy's own table, where not all of it is default, and
    /// settings of its authors.
    fn authors(_at: &Ground) -> Vec<Setting> {
        Vec::new()
    }

    /// Memory of the policy at one port, in registers; `None`: not known.
    fn memory(_params: &Self::Params) -> Option<Bytes> {
        None
    }

    /// Records errors that single keys cannot show.
    fn check(_params: &Self::Params, _cx: &mut Cx) {}

    /// Amounts with which the policy compares queues.
    fn amounts(_params: &Self::Params) -> Vec<Amount> {
        Vec::new()
    }

    /// True if a packet counts in the queue that is compared, and a queue as long as the amount is long enough.
    fn counts_itself(_params: &Self::Params) -> bool {
        false
    }

    /// True if the policy marks ECN-capable packets at all.
    fn marks(_params: &Self::Params) -> bool {
        true
    }

    /// True if the policy drops packets.
    fn drops(_params: &Self::Params) -> bool {
        false
    }

    /// True if the policy does nothing while the queue is below all of its amounts.
    fn idle_below(_params: &Self::Params) -> bool {
        true
    }

    /// Parameters of a policy that asks a block outside of the simulator.
    fn outside(_params: &Self::Params) -> Option<&OutsideParams> {
        None
    }

    /// Brings the outside block to a policy that asks one.
    fn attach(&mut self, _at: OutsidePort) {}

    /// Reason for which the policy has said [`MarkVerdict::Undecided`].
    fn failure(&self) -> Option<String> {
        None
    }

    /// Decides about a packet that admission has accepted and that is about to be queued.
    fn on_enqueue(&mut self, _view: &PortView, _p: &Envelope, _rng: &mut Stream) -> MarkVerdict {
        MarkVerdict::Pass
    }

    /// Learns of a packet that admission has refused.
    fn on_refused(&mut self, _view: &PortView, _p: &Envelope) {}

    /// True if the policy may send elsewhere a packet that its port does not take for this reason. `room`: there was none.
    fn finds_ways(&self, _reason: DropReason, _room: bool) -> bool {
        false
    }

    /// Chooses the port that is to have a packet which its own does not take; none inside: none. `None`: undecided.
    fn way(&mut self, _view: &PortView, _p: &Envelope, _ways: &[Way]) -> Option<Option<u32>> {
        Some(None)
    }

    /// Decides about a packet that has left the queue and is about to be sent: it can be marked, and is not dropped any more.
    /// Ports need no events for that, so it may be asked later than it happens; `view.now` is the time when it did.
    fn on_dequeue(&mut self, _view: &PortView, _p: &Envelope, _rng: &mut Stream) -> MarkVerdict {
        MarkVerdict::Pass
    }

    /// Decides about a packet at the head of its queue when the wire is free: it is sent, marked and sent, or dropped. A drop
    /// takes no time on the wire, and the next packet is asked about at once. Asked of every packet, also where it has not
    /// waited.
    fn on_head(&mut self, _head: &Head, _p: &Envelope) -> MarkVerdict {
        MarkVerdict::Pass
    }

    /// True if `on_enqueue` can say anything but `Pass`.
    fn acts_at_enqueue(&self) -> bool {
        true
    }

    /// True if `on_dequeue` can say anything but `Pass`.
    #[inline(always)]
    fn acts_at_dequeue(&self) -> bool {
        false
    }

    /// True if `on_head` can say anything but `Pass`. The departures of such a port are events.
    fn decides_at_head(&self) -> bool {
        false
    }

    /// True if the policy draws random numbers.
    fn needs_rng(&self) -> bool {
        false
    }

    /// Threshold of a policy that does nothing but mark above it.
    fn simple_threshold(&self) -> Option<(Amount, At)> {
        None
    }
}

/// Names of marking at devices and in other simulators.
fn meant(kind: &str) -> Option<&'static str> {
    match kind {
        "ecn" => Some("did you mean 'threshold', a step at k as DCTCP has it, or 'red', by chance from the average queue?"),
        "dctcp" | "step" | "ecn_threshold" | "k" => Some("did you mean 'threshold'? It marks above k, as DCTCP has it"),
        "wred" | "red_ecn" | "ecn_red" | "dcqcn" => {
            Some("did you mean 'red'? It marks ECN-capable packets by chance, from the average queue")
        }
        "fq_codel" | "cobalt" => Some("did you mean 'codel'?"),
        "cosim" | "cosimulation" | "socket" | "outside" => Some("did you mean 'external'? A block at a socket decides then"),
        "off" | "drop_tail" | "droptail" => Some("did you mean 'none'?"),
        _ => None,
    }
}

macro_rules! registry {
    ($( $(#[doc = $doc:expr])* $kind:literal => $name:ident($params:ty, $state:ty), )*) => {
        choice! {
            /// Marking policy: the congestion signal of a port. The whole port has one state; with `codel`, and with any
            /// `switch.class_marking`, each class has its own.
            pub enum Marking, meaning meant {
                $( $(#[doc = $doc])* $kind => $name($params), )*
            }
        }

        /// The state of a marking policy at one port.
        // A tag of its own: with one hidden in a value that a policy does not use, each question costs an instruction more.
        #[derive(Clone, Debug)]
        #[repr(u8)]
        pub enum Marker {
            $( $(#[doc = $doc])* $name($state), )*
        }

        impl Marker {
            /// The state at the start of a run.
            pub fn new(marking: &Marking) -> Self {
                match marking { $( Marking::$name(params) => Marker::$name(<$state as Policy>::new(params)), )* }
            }

            /// Decides about a packet that admission has accepted; `view` is the queue that it finds.
            #[inline(always)]
            pub fn on_enqueue(&mut self, view: &PortView, p: &Envelope, rng: &mut Stream) -> MarkVerdict {
                match self { $( Marker::$name(state) => state.on_enqueue(view, p, rng), )* }
            }

            /// Learns of a packet that admission has refused; `view` is the queue that it found. Policies that average over
            /// arrivals see it too.
            #[inline]
            pub fn on_refused(&mut self, view: &PortView, p: &Envelope) {
                match self { $( Marker::$name(state) => state.on_refused(view, p), )* }
            }

            /// True if [`Marker::way`] has to be called for a packet that the port does not take for this reason. `room`: there was none.
            #[inline]
            pub fn finds_ways(&self, reason: DropReason, room: bool) -> bool {
                match self { $( Marker::$name(state) => state.finds_ways(reason, room), )* }
            }

            /// Chooses the port that is to have a packet which its own does not take, out of `ways`; none inside: it is dropped.
            /// `None`: undecided.
            pub fn way(&mut self, view: &PortView, p: &Envelope, ways: &[Way]) -> Option<Option<u32>> {
                match self { $( Marker::$name(state) => state.way(view, p, ways), )* }
            }

            /// Decides about a packet that has left the queue and is about to be sent; `view` is the queue that it leaves behind.
            /// Never a drop.
            #[inline(always)]
            pub fn on_dequeue(&mut self, view: &PortView, p: &Envelope, rng: &mut Stream) -> MarkVerdict {
                match self { $( Marker::$name(state) => state.on_dequeue(view, p, rng), )* }
            }

            /// Decides about a packet at the head of its queue when the wire is free: it is sent, marked and sent, or dropped.
            #[inline]
            pub fn on_head(&mut self, head: &Head, p: &Envelope) -> MarkVerdict {
                match self { $( Marker::$name(state) => state.on_head(head, p), )* }
            }

            /// Brings the outside block to a policy that asks one ([`Marking::outside`]).
            pub fn attach(&mut self, at: OutsidePort) {
                match self { $( Marker::$name(state) => state.attach(at), )* }
            }

            /// Reason for which the policy has said [`MarkVerdict::Undecided`].
            pub fn failure(&self) -> Option<String> {
                match self { $( Marker::$name(state) => state.failure(), )* }
            }

            /// True if [`Marker::on_enqueue`] has to be called.
            pub fn acts_at_enqueue(&self) -> bool {
                match self { $( Marker::$name(state) => state.acts_at_enqueue(), )* }
            }

            /// True if [`Marker::on_dequeue`] has to be called.
            #[inline(always)]
            pub fn acts_at_dequeue(&self) -> bool {
                match self { $( Marker::$name(state) => state.acts_at_dequeue(), )* }
            }

            /// True if [`Marker::on_head`] has to be called.
            pub fn decides_at_head(&self) -> bool {
                match self { $( Marker::$name(state) => state.decides_at_head(), )* }
            }

            /// True if the policy draws random numbers.
            pub fn needs_rng(&self) -> bool {
                match self { $( Marker::$name(state) => state.needs_rng(), )* }
            }

            /// Threshold K of a policy that does nothing but mark ECN-capable packets when the queue is above K: the caller may
            /// then compare by itself.
            pub fn simple_threshold(&self) -> Option<(Amount, At)> {
                match self { $( Marker::$name(state) => state.simple_threshold(), )* }
            }
        }

        impl Marking {
            /// One trial for each marking policy that can be tried.
            pub fn trials(at: &Ground) -> Vec<Trial> {
                let trials = [$( <$state as Policy>::TRIED.then(|| {
                    let own = ("switch.marking".to_string(), format!("{:?}", $kind));
                    Trial::new("switch.marking", $kind, &[$($doc),*], own, <$state as Policy>::authors(at))
                }), )*];
                trials.into_iter().flatten().collect()
            }

            /// Parameters of a policy that asks a block outside of the simulator: whoever runs the pipeline brings it
            /// ([`Marker::attach`]).
            pub fn outside(&self) -> Option<&OutsideParams> {
                match self { $( Marking::$name(params) => <$state as Policy>::outside(params), )* }
            }

            /// Memory of the policy at one port; `None`: not known.
            pub fn memory(&self) -> Option<Bytes> {
                match self { $( Marking::$name(params) => <$state as Policy>::memory(params), )* }
            }

            /// Records errors that single keys cannot show.
            pub fn check(&self, cx: &mut Cx) {
                match self { $( Marking::$name(params) => <$state as Policy>::check(params, cx), )* }
            }

            /// True if the packet itself counts in the queue that is compared, and a queue as long as the threshold is long
            /// enough.
            pub(crate) fn counts_itself(&self) -> bool {
                match self { $( Marking::$name(params) => <$state as Policy>::counts_itself(params), )* }
            }

            /// True if the policy marks ECN-capable packets at all.
            pub fn marks(&self) -> bool {
                match self { $( Marking::$name(params) => <$state as Policy>::marks(params), )* }
            }

            /// True if the policy drops packets.
            pub fn drops(&self) -> bool {
                match self { $( Marking::$name(params) => <$state as Policy>::drops(params), )* }
            }

            /// Text for messages: the consequence of a threshold of this policy that no queue reaches.
            pub fn out_of_reach(&self, threshold: Amount) -> String {
                let idle = match self { $( Marking::$name(params) => <$state as Policy>::idle_below(params), )* };
                let place = if self.counts_itself() { "above" } else { "not below" };
                format!("{}: its threshold, {threshold}, is {place}", if idle { "never acts" } else { "acts without it" })
            }

            /// Shortest queue at which the policy marks, if it does nothing below one.
            pub fn marks_from(&self) -> Option<Amount> {
                let idle = match self { $( Marking::$name(params) => <$state as Policy>::idle_below(params), )* };
                self.amounts().into_iter().filter(|_| idle && self.marks()).min_by_key(|amount| amount.count())
            }

            /// Queue from which the policy marks every packet, if it does nothing below a shortest one.
            pub fn marks_all_from(&self) -> Option<Amount> {
                let idle = match self { $( Marking::$name(params) => <$state as Policy>::idle_below(params), )* };
                self.amounts().into_iter().filter(|_| idle && self.marks()).max_by_key(|amount| amount.count())
            }

            /// Amounts without which the policy does not act: the shortest of a policy that does nothing below one, else each.
            pub(crate) fn needs(&self) -> Vec<Amount> {
                let idle = match self { $( Marking::$name(params) => <$state as Policy>::idle_below(params), )* };
                let mut amounts = self.amounts();
                if idle {
                    amounts.sort_unstable_by_key(|amount| amount.count());
                    amounts.truncate(1);
                }
                amounts
            }

            /// The amounts that queues are compared with.
            pub fn amounts(&self) -> Vec<Amount> {
                match self { $( Marking::$name(params) => <$state as Policy>::amounts(params), )* }
            }
        }
    };
}

registry! {
    /// No marking.
    "none" => None(NoMarking, none::Never),
    /// Threshold: an ECN-capable packet is marked when the queue is above K.
    "threshold" => Threshold(ThresholdParams, threshold::Threshold),
    /// Random early detection (RED): marks or drops with a probability that grows with the average queue.
    "red" => Red(RedParams, red::Red),
    /// S-ECN: marks by the slope s of the queue at a port of rate R: no packet for s ≤ 0, a share of s/R for 0 < s < R,
    /// every packet for s ≥ R; and every packet once K waits. Source: S-ECN §IV-B.
    "s_ecn" => SEcn(SEcnParams, s_ecn::SEcn),
    /// Controlled delay (CoDel): drops or marks at the head of a queue whose packets have all waited too long for an
    /// interval.
    "codel" => Codel(CodelParams, codel::Codel),
    /// Front drop: no marks; the packet at the head of a queue that has reached a limit is dropped instead of sent.
    "front_drop" => FrontDrop(FrontDropParams, front_drop::FrontDrop),
    /// External: a block outside of the simulator decides about every packet, over a Unix socket. See docs/cosimulation.md.
    "external" => External(OutsideParams, external::External),
}
