//! RIMM's headers as bytes. Source: RIMM §III, §V for the sizes of a depth (2 B) and a number (4 B).
//!
//! A header is its EtherType, the depth that its sender leaves behind (2 B), and what it says besides: nothing; the number of a
//! detoured packet (4 B); of a message the port (2 B), the number of the crossing (2 B) and the depth (4 B).

use fanin_packet::Shim;

/// EtherTypes of frames with RIMM's headers; none is registered, and the paper names none.
pub(super) const DEPTH: u16 = 0xA8F0;
pub(super) const DETOUR: u16 = 0xA8F1;
pub(super) const RETURN: u16 = 0xA8F2;
pub(super) const MESSAGE: u16 = 0xA8F3;
pub(super) const ANSWER: u16 = 0xA8F4;
/// Bytes of a depth, EtherType included, and with a number.
pub(super) const DEPTH_BYTES: u16 = 4;
pub(super) const NUMBER_BYTES: u16 = 8;

/// Content of a RIMM header besides the depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Nothing,
    /// Number of a packet that its sender detours; that is back.
    Detour(u32),
    Return(u32),
    Message,
    /// A message that is back: port, number of the crossing, depth.
    Answer(u16, u16, u32),
}

/// Depth of the sender, and the rest of the header; `None` where it is none of RIMM's.
pub(super) fn read(shim: &Shim) -> Option<(u16, Said)> {
    let (depth, rest) = shim.body().split_first_chunk::<2>()?;
    let said = match (shim.ether_type, rest) {
        (DEPTH, []) => Said::Nothing,
        (DETOUR, [a, b, c, d]) => Said::Detour(u32::from_be_bytes([*a, *b, *c, *d])),
        (RETURN, [a, b, c, d]) => Said::Return(u32::from_be_bytes([*a, *b, *c, *d])),
        (MESSAGE, _) => Said::Message,
        (ANSWER, [a, b, c, d, depth @ ..]) => {
            Said::Answer(u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d]), u32::from_be_bytes(depth.try_into().ok()?))
        }
        _ => return None,
    };
    Some((u16::from_be_bytes(*depth), said))
}
