//! Addresses of simulated hosts and flows: MAC, IP and ports. All are synthetic, and encode host and flow number.

use crate::{IpVersion, Side};
use fanin_units::{FlowId, HostId};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Largest number of hosts: as many as 10.0.0.0/8 has addresses, without network and broadcast address; each also has a MAC
/// and an IPv6 address.
pub const MOST_HOSTS: u32 = (1 << 24) - 2;

/// First port of the ends that open connections.
const CLIENT: u16 = 61_000;
/// Number of ports of the ends that open connections.
const CLIENTS: u32 = 4096;
/// First port of the ends that accept connections. No protocol of note has its port in either range, so that Wireshark does
/// not take the flows for something else: up to port 44320, which are the first 9.5 million flows.
const SERVER: u16 = 42_000;
/// Number of ports of the ends that accept connections: up to `CLIENT`.
const SERVERS: u32 = 19_000;

/// IPv6 network of the simulated hosts: a unique local prefix, with zeroes for its random bits.
/// Source: RFC 4193 §3.1.
const ULA: u128 = 0xfd << 120;

/// IPv4 address of a host: 10.0.0.0 plus host number plus one, so that host 0 has 10.0.0.1 and host 255 has 10.0.1.0.
pub fn ipv4(host: HostId) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from_be_bytes([10, 0, 0, 0]) | ((host.0 + 1) & 0x00ff_ffff))
}

/// IPv6 address of a host: fd00:: plus host number plus one, so that host 0 has fd00::1 and host 255 has fd00::100.
pub fn ipv6(host: HostId) -> Ipv6Addr {
    Ipv6Addr::from_bits(ULA | u128::from((host.0 + 1) & 0x00ff_ffff))
}

/// Address of a host in the given version of IP.
pub fn ip(host: HostId, version: IpVersion) -> IpAddr {
    match version {
        IpVersion::V4 => ipv4(host).into(),
        IpVersion::V6 => ipv6(host).into(),
    }
}

/// The simulated host with address `ip`; `None` if no simulated host can have it.
pub fn host(ip: IpAddr) -> Option<HostId> {
    let number = match ip {
        IpAddr::V4(ip) => ip.to_bits().checked_sub(u32::from_be_bytes([10, 0, 0, 0]))?,
        IpAddr::V6(ip) => u32::try_from(ip.to_bits().checked_sub(ULA)?).ok()?,
    };
    (1..=MOST_HOSTS).contains(&number).then(|| HostId(number - 1))
}

/// MAC address of a host: locally administered, 02:00 and the IPv4 address; host 0 has 02:00:0a:00:00:01.
pub fn mac(host: HostId) -> [u8; 6] {
    let [a, b, c, d] = ipv4(host).octets();
    [2, 0, a, b, c, d]
}

/// Source MAC address of frames that a switch originates; no host has it.
pub const SWITCH_MAC: [u8; 6] = [2, 0, 0, 0, 0, 0];

/// Ports of a flow's initiator and responder. Flow n has 61000 + n mod 4096 and 42000 + n div 4096; the pairs repeat after
/// 77,824,000 flows.
pub fn ports(flow: FlowId) -> (u16, u16) {
    (CLIENT + (flow.0 % CLIENTS) as u16, SERVER + (flow.0 / CLIENTS % SERVERS) as u16)
}

/// The flow with these ports, and the end to which the packet travels; the first such flow if port pairs have repeated.
pub fn flow(source: u16, destination: u16) -> Option<(FlowId, Side)> {
    let (client, server, to) =
        if source >= CLIENT { (source, destination, Side::Responder) } else { (destination, source, Side::Initiator) };
    let low = u32::from(client.checked_sub(CLIENT)?);
    let high = u32::from(server.checked_sub(SERVER)?);
    (low < CLIENTS && high < SERVERS).then(|| (FlowId(high * CLIENTS + low), to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_tell_the_host() {
        assert_eq!(ipv4(HostId(0)), Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!(ipv4(HostId(255)), Ipv4Addr::new(10, 0, 1, 0));
        assert_eq!(ipv4(HostId(MOST_HOSTS - 1)), Ipv4Addr::new(10, 255, 255, 254));
        let text = |host| ipv6(HostId(host)).to_string();
        assert_eq!([0, 255, MOST_HOSTS - 1].map(text), ["fd00::1", "fd00::100", "fd00::ff:fffe"]);
        assert_eq!(mac(HostId(8)), [2, 0, 10, 0, 0, 9]);
        for h in [0, 1, 255, 256, 70_000, MOST_HOSTS - 1] {
            for version in [IpVersion::V4, IpVersion::V6] {
                assert_eq!(host(ip(HostId(h), version)), Some(HostId(h)));
            }
        }
        for other in ["10.0.0.0", "10.255.255.255", "11.0.0.1", "192.168.0.1", "9.255.255.255", "fd00::", "fd00::ff:ffff"] {
            assert_eq!(host(other.parse().unwrap()), None, "{other}");
        }
        for other in ["fd00::1:0:0:1", "fd01::1", "::1", "::10.0.0.1", "2001:db8::1", "ff02::1"] {
            assert_eq!(host(other.parse().unwrap()), None, "{other}");
        }
    }

    #[test]
    fn ports_tell_the_flow_and_the_way() {
        assert_eq!(ports(FlowId(0)), (61_000, 42_000));
        assert_eq!(ports(FlowId(4097)), (61_001, 42_001));
        for n in [0, 1, 4095, 4096, 50_000_000, 77_823_999] {
            let (client, server) = ports(FlowId(n));
            assert_eq!(flow(client, server), Some((FlowId(n), Side::Responder)));
            assert_eq!(flow(server, client), Some((FlowId(n), Side::Initiator)));
        }
        assert_eq!(ports(FlowId(77_824_000)), (61_000, 42_000));
        assert_eq!(ports(FlowId(u32::MAX)).0, 61_000 + 4095);
        for (a, b) in [(80, 61_000), (61_000, 61_001), (65_535, 42_000), (0, 0), (65_096, 42_000), (42_000, 42_001)] {
            assert_eq!(flow(a, b), None, "{a} {b}");
        }
    }
}
