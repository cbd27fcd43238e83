//! Where the entries of `switch.except` hold.

use fanin_switch::Origins;
use fanin_units::{LinkId, NodeId};
use std::collections::BTreeMap;

/// The entries that ports and switches have their settings from, where that is not the table of all switches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exceptions {
    pub ports: BTreeMap<LinkId, Origins>,
    pub switches: BTreeMap<NodeId, usize>,
}

impl Exceptions {
    /// Where a port has its settings from.
    pub fn port(&self, port: LinkId) -> Origins {
        self.ports.get(&port).copied().unwrap_or_default()
    }

    /// The entry that a switch has its mechanisms from.
    pub fn switch(&self, switch: NodeId) -> Option<usize> {
        self.switches.get(&switch).copied()
    }
}
