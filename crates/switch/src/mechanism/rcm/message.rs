//! Notifications between switches: the degree of congestion, the port that it is about, and harmful flows.

use super::cfr::Tuple;
use crate::mechanism::{Message, PortNo};
use fanin_packet::{address, Control, Envelope, IpVersion, Kind, Side, CONTROL_BODY};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// EtherType of a notification; the paper names none.
pub(super) const NOTIFICATION: u16 = 0xA8F9;
/// Bytes before the flows of a notification: kind of frame (1 B), degree (1 B), port (2 B).
const HEAD: usize = 4;
/// Kind of frame: the last of a notification, mostly the only one; `MORE`: another follows, with flows that did not fit.
const LAST: u8 = 1;
const MORE: u8 = 2;

/// Number of flows that one frame has room for: each two addresses and two ports.
const fn room(ip: IpVersion) -> usize {
    (CONTROL_BODY - HEAD) / ip.tuple() as usize
}

/// Content of a notification.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Notification {
    /// True if another frame with flows of the notification follows.
    pub more: bool,
    /// F_b'; zero: the congestion is over.
    pub degree: u8,
    /// The input port that holds packets of the flows.
    pub port: PortNo,
    pub flows: Vec<Tuple>,
}

fn write(ip: IpVersion, tuple: &Tuple, bytes: &mut Vec<u8>) {
    for host in [tuple.src, tuple.dst] {
        match ip {
            IpVersion::V4 => bytes.extend(address::ipv4(host).octets()),
            IpVersion::V6 => bytes.extend(address::ipv6(host).octets()),
        }
    }
    let (client, server) = address::ports(tuple.flow);
    let ports = if tuple.to == Side::Responder { [client, server] } else { [server, client] };
    ports.iter().for_each(|port| bytes.extend(port.to_be_bytes()));
}

fn read_tuple(bytes: &[u8]) -> Option<Tuple> {
    let half = (bytes.len() - 4) / 2;
    let host = |bytes: &[u8]| {
        let ip = match bytes.len() {
            4 => IpAddr::from(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?)),
            _ => IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?)),
        };
        address::host(ip)
    };
    let port = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    let (flow, to) = address::flow(port(2 * half), port(2 * half + 2))?;
    Some(Tuple { src: host(&bytes[..half])?, dst: host(&bytes[half..2 * half])?, flow, to })
}

/// The frames of a notification: as many as its flows need, at least one.
pub(super) fn messages(ip: IpVersion, degree: u8, port: PortNo, flows: &[Tuple]) -> Vec<Message> {
    let frame = |what: u8, flows: &[Tuple]| {
        let mut bytes = vec![what, degree];
        bytes.extend(port.0.to_be_bytes());
        flows.iter().for_each(|tuple| write(ip, tuple, &mut bytes));
        let envelope = Envelope { header: bytes.len() as u8, ttl: 1, kind: Kind::Control, ..Envelope::default() };
        Message { envelope, control: Control::new(NOTIFICATION, &bytes) }
    };
    if flows.is_empty() {
        return vec![frame(LAST, &[])];
    }
    let frames = flows.len().div_ceil(room(ip));
    let parts = flows.chunks(room(ip)).zip(1..);
    parts.map(|(part, number)| frame(if number == frames { LAST } else { MORE }, part)).collect()
}

/// Notification in a frame; `None`: there is none, or the frame is damaged.
pub(super) fn read(ip: IpVersion, body: &[u8]) -> Option<Notification> {
    let (head, rest) = body.split_first_chunk::<HEAD>()?;
    let each = ip.tuple() as usize;
    if ![LAST, MORE].contains(&head[0]) || head[1] > fanin_dataplane::rcm::MOST || rest.len() % each != 0 {
        return None;
    }
    let flows = rest.chunks(each).map(read_tuple).collect::<Option<Vec<_>>>()?;
    let port = PortNo(u16::from_be_bytes([head[2], head[3]]));
    Some(Notification { more: head[0] == MORE, degree: head[1], port, flows })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanin_units::{FlowId, HostId};

    fn tuple(n: u32) -> Tuple {
        let to = if n % 2 == 0 { Side::Initiator } else { Side::Responder };
        Tuple { src: HostId(n), dst: HostId(n + 7), flow: FlowId(n * 5_000), to }
    }

    #[test]
    fn what_is_written_is_read() {
        for (ip, frames) in [(IpVersion::V4, 2), (IpVersion::V6, 4)] {
            let flows: Vec<Tuple> = (1..=4).map(tuple).collect();
            let all = messages(ip, 63, PortNo(258), &flows);
            assert_eq!(all.len(), frames);
            let read: Vec<Notification> = all.iter().map(|message| read(ip, message.body()).unwrap()).collect();
            assert!(read.iter().enumerate().all(|(i, n)| n.more == (i + 1 < frames) && n.degree == 63 && n.port == PortNo(258)));
            assert_eq!(read.iter().flat_map(|n| n.flows.clone()).collect::<Vec<_>>(), flows);
        }
    }

    /// 10.0.0.2 to 10.0.0.9, ports 61000 + 5000 mod 4096 and 42001.
    #[test]
    fn bytes_on_the_wire() {
        let message = &messages(IpVersion::V4, 17, PortNo(3), &[tuple(1)])[0];
        assert_eq!(message.body(), [1, 17, 0, 3, 10, 0, 0, 2, 10, 0, 0, 9, 0xF1, 0xD0, 0xA4, 0x11]);
        assert_eq!(messages(IpVersion::V4, 0, PortNo(3), &[])[0].body(), [1, 0, 0, 3]);
    }

    #[test]
    fn damaged_frames_say_nothing() {
        let good = [1, 17, 0, 3, 10, 0, 0, 2, 10, 0, 0, 9, 0xF1, 0xD0, 0xA4, 0x11];
        assert!(read(IpVersion::V4, &good).is_some());
        for (at, value) in [(0, 0), (0, 3), (1, 64), (4, 11), (12, 0)] {
            let mut bad = good;
            bad[at] = value;
            assert_eq!(read(IpVersion::V4, &bad), None, "{at}");
        }
        assert_eq!((read(IpVersion::V4, &good[..15]), read(IpVersion::V4, &good[..3])), (None, None));
    }
}
