//! Verdicts. Everything that happens to a packet has a reason.

macro_rules! reasons {
    ($(#[$doc:meta])* $name:ident { $( $(#[$case_doc:meta])* $case:ident => $text:literal, )* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum $name { $( $(#[$case_doc])* $case, )* }

        impl $name {
            /// Every reason there is.
            pub const ALL: &'static [$name] = &[$($name::$case),*];

            /// As results write it.
            pub const fn name(self) -> &'static str {
                match self { $( $name::$case => $text, )* }
            }
        }
    };
}

reasons! {
    /// Why a packet was dropped.
    DropReason {
        /// The port's own buffer had no room.
        BufferFull => "buffer_full",
        /// The queue had reached its share of the free shared buffer.
        DynamicThreshold => "dynamic_threshold",
        /// The shared buffer had no room at all.
        SharedBufferFull => "shared_buffer_full",
        /// Random early detection, by chance, of a packet that could not be marked.
        Red => "red",
        /// Random early detection, average queue above the upper limit.
        RedForced => "red_forced",
        /// It had crossed as many switches as it may.
        Ttl => "ttl",
        /// The switch knows no way to the destination.
        NoRoute => "no_route",
    }
}

reasons! {
    /// Why a packet was marked.
    MarkReason {
        /// The queue was above the threshold.
        Threshold => "threshold",
        /// Random early detection, by chance.
        Red => "red",
        /// Random early detection, average queue above the upper limit.
        RedForced => "red_forced",
    }
}

/// What a marking policy says to a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MarkVerdict {
    /// Leave it as it is.
    Pass,
    /// Set CE. Only said of ECN-capable packets.
    Mark(MarkReason),
    /// Drop it. Never said at dequeue.
    Drop(DropReason),
}
