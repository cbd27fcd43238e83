//! Scheduling: the disciplines that choose the class of the next packet. State machines over classes and sizes; the caller holds
//! the packets.

mod drr;
mod express;
mod fifo;
mod strict;
mod strict_drr;

pub use drr::DrrParams;
pub use express::{Express, ExpressParams};
pub use fifo::FifoParams;
pub use strict::StrictParams;
pub use strict_drr::StrictDrrParams;

use fanin_params::{choice, Cx};
use fanin_units::{QueueClass, TrafficClass};

/// The most classes that a port has. Source: IEEE 802.1Q §6.9.3 (eight priorities).
pub const MAX_CLASSES: usize = 8;

/// A scheduling discipline among classes. The order within a class is up to the caller, who keeps its packets.
pub(crate) trait Discipline: Sized {
    /// Parameters of the discipline.
    type Params;

    /// The state of a port without packets.
    fn new(params: &Self::Params) -> Self;

    /// Records errors that single keys cannot show.
    fn check(_params: &Self::Params, _cx: &mut Cx) {}

    /// Number of classes that the discipline distinguishes.
    fn classes(params: &Self::Params) -> usize;

    /// Number of classes that the discipline has at this port.
    fn queues(&self) -> usize;

    /// A packet has joined the queue of `class`.
    fn enqueue(&mut self, class: QueueClass, frame: u16);

    /// Moves the packet that has joined the queue of `class` last to a place before its end.
    fn moved(&mut self, _class: QueueClass, _place: usize) {}

    /// Removes the packet of `frame` bytes at a place of the queue of `class`, which has left it out of order.
    fn removed(&mut self, class: QueueClass, place: usize, frame: u16);

    /// Class whose first packet is next.
    fn next(&self) -> Option<QueueClass>;

    /// Closes these classes: they send nothing, as if nothing of them waited, and the others send. A bit for each class.
    fn gate(&mut self, closed: u8);

    /// Removes the first packet of `class`, which `next` gave, as it has been sent.
    fn dequeued(&mut self, class: QueueClass, frame: u16);

    /// Records that the first packet of `class` was dropped instead of sent: nothing is charged to the class.
    fn dropped(&mut self, class: QueueClass, frame: u16) {
        self.dequeued(class, frame);
    }

    /// Records that all packets of `class`, which is closed ([`Discipline::gate`]), have left otherwise.
    fn flush(&mut self, class: QueueClass);

    /// Takes over a port at which only `class` has had packets since it was last empty: `sent` bytes of them have left, these
    /// frames wait. The same as by `enqueue` and `dequeued` of each.
    fn resume(&mut self, class: QueueClass, _sent: u64, frames: &[u16]) {
        frames.iter().for_each(|frame| self.enqueue(class, *frame));
    }
}

macro_rules! registry {
    ($( $(#[doc = $doc:expr])* $kind:literal => $name:ident($params:ty, $state:ty), )*) => {
        choice! {
            /// Scheduler: order in which packets of a port leave. Class 0 is the most urgent; classes beyond the last share
            /// the last.
            pub enum Scheduling {
                $( $(#[doc = $doc])* $kind => $name($params), )*
            }
        }

        /// The state of a scheduling discipline at one port.
        #[derive(Clone, Debug)]
        pub enum Scheduler {
            $( $(#[doc = $doc])* $name($state), )*
        }

        impl Scheduler {
            /// The state of a port without packets.
            pub fn new(scheduling: &Scheduling) -> Self {
                match scheduling { $( Scheduling::$name(params) => Scheduler::$name(<$state as Discipline>::new(params)), )* }
            }

            /// Number of classes of the scheduler.
            #[inline]
            pub fn classes(&self) -> usize {
                match self { $( Scheduler::$name(state) => state.queues(), )* }
            }

            /// The queue for a packet of traffic class `class`.
            #[inline]
            pub fn class_of(&self, class: TrafficClass) -> QueueClass {
                QueueClass(class.0.min((self.classes() - 1) as u8))
            }

            /// Adds a packet of `frame` bytes that has joined the queue of `class`.
            ///
            /// # Panics
            /// When there is no such class; see [`Scheduler::class_of`].
            #[inline(always)]
            pub fn enqueue(&mut self, class: QueueClass, frame: u16) {
                match self { $( Scheduler::$name(state) => state.enqueue(class, frame), )* }
            }

            /// Moves the packet that has joined the queue of `class` last to a place before its end.
            pub fn moved(&mut self, class: QueueClass, place: usize) {
                match self { $( Scheduler::$name(state) => state.moved(class, place), )* }
            }

            /// Removes the packet of `frame` bytes at a place of the queue of `class`, which has left it out of order.
            pub fn removed(&mut self, class: QueueClass, place: usize, frame: u16) {
                match self { $( Scheduler::$name(state) => state.removed(class, place, frame), )* }
            }

            /// Closes these classes, a bit for each: they send nothing, and all others do.
            pub fn gate(&mut self, closed: u8) {
                match self { $( Scheduler::$name(state) => state.gate(closed), )* }
            }

            /// Class whose first packet is next; `None` when nothing waits that may be sent.
            #[inline]
            pub fn next(&self) -> Option<QueueClass> {
                match self { $( Scheduler::$name(state) => state.next(), )* }
            }

            /// Removes the first packet of `class`, which [`Scheduler::next`] gave and which was dropped at the head of its
            /// queue.
            pub fn dropped(&mut self, class: QueueClass, frame: u16) {
                match self { $( Scheduler::$name(state) => state.dropped(class, frame), )* }
            }

            /// Removes all packets of `class`, which were dropped; the class is closed ([`Scheduler::gate`]).
            pub fn flush(&mut self, class: QueueClass) {
                match self { $( Scheduler::$name(state) => state.flush(class), )* }
            }

            /// Removes the first packet of `class`, which [`Scheduler::next`] gave and which has been sent; `frame`: its size.
            #[inline]
            pub fn dequeued(&mut self, class: QueueClass, frame: u16) {
                match self { $( Scheduler::$name(state) => state.dequeued(class, frame), )* }
            }

            /// Takes over a port at which only `class` has had packets since it was last empty: `sent` bytes of them have left,
            /// these frames wait.
            pub fn resume(&mut self, class: QueueClass, sent: u64, frames: &[u16]) {
                match self { $( Scheduler::$name(state) => state.resume(class, sent, frames), )* }
            }
        }

        impl Scheduling {
            /// Number of classes of the scheduler.
            pub fn classes(&self) -> usize {
                match self { $( Scheduling::$name(params) => <$state as Discipline>::classes(params), )* }
            }

            /// Records errors that single keys cannot show.
            pub fn check(&self, cx: &mut Cx) {
                match self { $( Scheduling::$name(params) => <$state as Discipline>::check(params, cx), )* }
            }
        }
    };
}

registry! {
    /// First in, first out.
    "fifo" => Fifo(FifoParams, fifo::Fifo),
    /// Strict priority: a class is served only when every more urgent one is empty.
    "strict" => Strict(StrictParams, strict::Strict),
    /// Deficit round robin: classes with packets are visited in turn, and may send their quantum per visit; unused credit is
    /// kept.
    "drr" => Drr(DrrParams, drr::Drr),
    /// Strict priority for classes 0 … `strict` − 1; when they are empty, deficit round robin for the others.
    "strict_drr" => StrictDrr(StrictDrrParams, strict_drr::StrictDrr),
}

/// Refuses more classes than a port can have, and none at all.
pub(crate) fn check_classes(classes: usize, key: &str, cx: &mut Cx) {
    if classes == 0 || classes > MAX_CLASSES {
        let message = format!("makes {classes} classes");
        cx.key(key, |cx| cx.error(None, message, Some(format!("from 1 to {MAX_CLASSES} classes in all"))).severity);
    }
}

#[cfg(test)]
mod tests;
