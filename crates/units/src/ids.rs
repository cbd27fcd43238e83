//! Typed identifiers of nodes, hosts, links, flows and queues: they index tables and compare, and have no arithmetic.

use std::ops::{Index, IndexMut};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        pub struct $name(pub u32);

        impl $name {
            /// This id as an index into a table that has one entry per id.
            #[inline(always)]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

id!(
    /// A node of the network, host or switch.
    NodeId
);
id!(
    /// A host, numbered from 0 among hosts only.
    HostId
);
id!(
    /// A switch, numbered from 0 among switches only.
    SwitchId
);
id!(
    /// A directed link together with the output port that feeds it.
    LinkId
);
id!(
    /// A flow: one transfer, numbered in order of creation.
    FlowId
);

macro_rules! class {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        pub struct $name(pub u8);

        impl $name {
            /// The class with the number 0.
            pub const FIRST: $name = $name(0);

            /// The first `count` classes, in the order of their numbers.
            pub fn all(count: usize) -> impl Iterator<Item = $name> + Clone {
                (0..count as u8).map($name)
            }

            /// Index of the class in a table that has one entry per class.
            #[inline(always)]
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// The set of this class alone: a bit for each class.
            #[inline(always)]
            pub const fn bit(self) -> u8 {
                1 << self.0
            }

            /// True if a set, a bit for each class, has this one.
            #[inline(always)]
            pub const fn is_in(self, set: u8) -> bool {
                set >> self.0 & 1 != 0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}", self.0)
            }
        }

        impl<T> Index<$name> for [T] {
            type Output = T;

            #[inline(always)]
            fn index(&self, class: $name) -> &T {
                &self[class.index()]
            }
        }

        impl<T> IndexMut<$name> for [T] {
            #[inline(always)]
            fn index_mut(&mut self, class: $name) -> &mut T {
                &mut self[class.index()]
            }
        }

        impl<T> Index<$name> for Vec<T> {
            type Output = T;

            #[inline(always)]
            fn index(&self, class: $name) -> &T {
                &self[class.index()]
            }
        }

        impl<T> IndexMut<$name> for Vec<T> {
            #[inline(always)]
            fn index_mut(&mut self, class: $name) -> &mut T {
                &mut self[class.index()]
            }
        }
    };
}

class!(
    /// The traffic class of a packet, and what a pause names. Source: IEEE 802.1Q §6.9.3 (eight priorities); here 0 is served first.
    TrafficClass
);
class!(
    /// A class of a port's scheduler, and with it one of the port's queues. The scheduler says in which queue packets of a traffic
    /// class wait, so the two numbers may differ.
    QueueClass
);
