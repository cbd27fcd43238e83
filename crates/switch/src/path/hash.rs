//! Hashes of flows, by which path choices and tables spread them. They stand for the hash units of switches, of which vendors say
//! little but that they spread well.

/// Mixes 32 bits: a bijection in which every input bit moves every output bit about half of the time.
/// Source: lowbias32.
#[inline(always)]
pub(crate) const fn mix32(mut x: u32) -> u32 {
    x = (x ^ (x >> 16)).wrapping_mul(0x7feb_352d);
    x = (x ^ (x >> 15)).wrapping_mul(0x846c_a68b);
    x ^ (x >> 16)
}

/// A 32-bit number to `0..n` without division. Source: Lemire, without its rejection step: at most n/2^32 off.
#[inline(always)]
pub(crate) const fn reduce(x: u32, n: usize) -> usize {
    ((x as u64 * n as u64) >> 32) as usize
}

/// Hash of the 5-tuple, computed once per connection and direction and carried in [`Envelope::hash`].
///
/// [`Envelope::hash`]: fanin_packet::Envelope::hash
pub fn five_tuple_hash(src: u32, dst: u32, sport: u16, dport: u16, proto: u8) -> u32 {
    let ports = (sport as u32) << 16 | dport as u32;
    let mut h = mix32(src ^ 0x9e37_79b9);
    h = mix32(h.wrapping_add(dst));
    h = mix32(h.wrapping_add(ports));
    mix32(h.wrapping_add(proto as u32))
}
