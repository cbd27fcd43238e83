//! Options of a TCP header. Source: RFC 9293 §3.1, RFC 7323 §3.2.

/// Options of a TCP header that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TcpOptions {
    /// Largest payload that the sender takes, in a SYN.
    pub mss: Option<u16>,
    /// Sender's clock when it sent the segment.
    pub timestamp: Option<u32>,
}

impl TcpOptions {
    /// Reads options as far as they are there; options behind a damaged one are not read.
    pub fn read(mut bytes: &[u8]) -> TcpOptions {
        let mut found = TcpOptions::default();
        // As nearly all segments have it: two bytes of padding, then the timestamps.
        if let [1, 1, 8, 10, a, b, c, d, ..] = *bytes {
            found.timestamp = Some(u32::from_be_bytes([a, b, c, d]));
            return found;
        }
        loop {
            match *bytes {
                [0, ..] | [] | [_] => return found,
                [1, ..] => bytes = &bytes[1..],
                [kind, length, ..] => {
                    let Some(option) = bytes.get(2..usize::from(length)) else { return found };
                    match (kind, option) {
                        (2, [a, b]) => found.mss = Some(u16::from_be_bytes([*a, *b])),
                        (8, [a, b, c, d, _, _, _, _]) => found.timestamp = Some(u32::from_be_bytes([*a, *b, *c, *d])),
                        _ => {}
                    }
                    bytes = &bytes[usize::from(length)..];
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_found_wherever_they_stand_and_damage_ends_them() {
        let syn = [2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 1, 0, 0, 0, 0, 0, 1, 3, 3, 7];
        assert_eq!(TcpOptions::read(&syn), TcpOptions { mss: Some(1460), timestamp: Some(256) });
        let data = [1, 1, 8, 10, 0, 0, 0, 9, 0, 0, 0, 0];
        assert_eq!(TcpOptions::read(&data), TcpOptions { mss: None, timestamp: Some(9) });
        assert_eq!(TcpOptions::read(&data[..8]).timestamp, Some(9), "cut behind what is needed");
        for damaged in [&[][..], &[2], &[2, 4, 5], &[2, 0, 1], &[2, 1], &[8, 10, 1], &[0, 2, 4, 5, 0xb4], &[2, 200, 5, 0xb4]] {
            assert_eq!(TcpOptions::read(damaged), TcpOptions::default(), "{damaged:?}");
        }
    }
}
