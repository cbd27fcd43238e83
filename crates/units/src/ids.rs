//! Typed identifiers of nodes, hosts, links and flows: they index tables and compare, and have no arithmetic.

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
