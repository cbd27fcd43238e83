//! Control frames: messages that nodes send each other, alone in a frame or at the end of another.

/// Bytes of a control message at most.
pub const CONTROL_BODY: usize = 44;

/// A control message as bytes on the wire. Whoever defines the EtherType defines the body; its length stands in the
/// envelope's `header`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Control {
    /// By which a node knows whose message it is.
    pub ether_type: u16,
    body: [u8; CONTROL_BODY],
}

impl Control {
    /// A message of these bytes.
    ///
    /// # Panics
    /// When there are more than [`CONTROL_BODY`]: who defines a message knows its length.
    pub fn new(ether_type: u16, bytes: &[u8]) -> Control {
        let mut body = [0; CONTROL_BODY];
        body[..bytes.len()].copy_from_slice(bytes);
        Control { ether_type, body }
    }

    /// The first `length` bytes of the message: all of it, with the `header` of its envelope.
    pub fn body(&self, length: u8) -> &[u8] {
        &self.body[..usize::from(length).min(CONTROL_BODY)]
    }
}
