//! Exceptions: ports and switches to which the entries of `switch.except` apply.

use fanin_switch::Origins;
use fanin_units::{LinkId, NodeId};
use std::collections::BTreeMap;

/// Entries that give ports and switches their settings; ports and switches that are not listed use the table of all switches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exceptions {
    pub ports: BTreeMap<LinkId, Origins>,
    pub switches: BTreeMap<NodeId, usize>,
}

impl Exceptions {
    /// Origin of each of a port's settings.
    pub fn port(&self, port: LinkId) -> Origins {
        self.ports.get(&port).copied().unwrap_or_default()
    }

    /// Entry that gives a switch its mechanisms.
    pub fn switch(&self, switch: NodeId) -> Option<usize> {
        self.switches.get(&switch).copied()
    }
}
