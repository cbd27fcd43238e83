//! Control frames: messages between nodes, alone in a frame or appended to another packet's frame.

/// Largest body of a control message \[bytes\].
pub const CONTROL_BODY: usize = 44;

/// A control message as bytes on the wire. The owner of the EtherType defines the body; its length is the envelope's
/// `header`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Control {
    /// EtherType, by which a node recognises whose message it is.
    pub ether_type: u16,
    body: [u8; CONTROL_BODY],
}

impl Control {
    /// A control message with body `bytes`.
    ///
    /// # Panics
    /// When there are more than [`CONTROL_BODY`] bytes: the mechanism that defines a message knows its length.
    pub fn new(ether_type: u16, bytes: &[u8]) -> Control {
        let mut body = [0; CONTROL_BODY];
        body[..bytes.len()].copy_from_slice(bytes);
        Control { ether_type, body }
    }

    /// The first `length` bytes of the body: all of it, if `length` is the envelope's `header`.
    pub fn body(&self, length: u8) -> &[u8] {
        &self.body[..usize::from(length).min(CONTROL_BODY)]
    }
}
