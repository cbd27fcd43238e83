//! What a switch tells the sender of a packet that it dropped. Source: PDN §IV.

use crate::Side;
use fanin_units::{FlowId, HostId};

/// The part of a notification that a transport acts on; addresses and ports have found the connection by then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DropNotice {
    /// Sequence number of the packet that was dropped; of an acknowledgment without data, its acknowledgment number.
    pub seq: u32,
    /// Its payload bytes; zero for a packet without data.
    pub length: u16,
    /// What the sender shall do.
    pub operation: Operation,
}

/// What a notification asks of its receiver: one byte on the wire.
///
/// The paper names the field and one action and leaves values open; zero stays unused, so that an empty byte is no order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Operation(pub u8);

impl Operation {
    /// Send the packet again and halve the window. Source: PDN §IV.
    pub const RETRANSMIT_AND_HALVE: Operation = Operation(1);
    /// Send the packet again; the window stays.
    pub const RETRANSMIT: Operation = Operation(2);
    /// Acknowledge again, if this was the newest acknowledgment: for one without data, which has nothing to be retransmitted.
    pub const ACKNOWLEDGE: Operation = Operation(3);
}

/// A notification on its way. Addresses and ports of the paper are flow, side and hosts here, as in a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Notification {
    /// The connection of the packet that was dropped.
    pub flow: FlowId,
    /// Its end that sent the packet.
    pub to: Side,
    /// The host of that end: where the notification goes.
    pub sender: HostId,
    /// The host that the packet was going to.
    pub receiver: HostId,
    /// Hash of the 5-tuple of what the receiver sends back: a notification goes the way of an acknowledgment.
    pub hash: u32,
    pub notice: DropNotice,
    /// Switches that it may still cross.
    pub ttl: u8,
}
