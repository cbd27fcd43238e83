//! TCP's flags, and the order of its sequence numbers. Source: RFC 9293 §3.1, §3.4.

pub const FIN: u8 = 0x01;
pub const SYN: u8 = 0x02;
pub const RST: u8 = 0x04;
pub const ACK: u8 = 0x10;

/// A SYN that comes again within this is one SYN that was captured twice: hosts wait longer for an answer [ps].
pub const SAME_SYN: i64 = 1_000_000_000;

/// True if `a` is after `b` in the sequence space, by less than half of it.
#[inline]
pub fn after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}
