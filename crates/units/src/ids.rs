//! Identifiers. They index tables and compare; they have no arithmetic.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        pub struct $name(pub u32);

        impl $name {
            /// The position in a table indexed by this id.
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
    /// A host or a switch.
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
