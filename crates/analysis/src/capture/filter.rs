//! Filter of a capture's frames by the options `--to`, `--direction` and `--interface`.

use crate::input::problem::Problem;
use fanin_units::{Quantity, Span};
use fanin_wire::Direction;
use std::net::{IpAddr, SocketAddr};

/// Filter of a capture's frames; empty: the busiest queue is taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaptureFilter {
    /// Receivers: frames to any of these only.
    pub to: Vec<Target>,
    pub direction: Option<Direction>,
    /// Interfaces: frames at these only.
    pub interfaces: Vec<String>,
}

impl CaptureFilter {
    pub fn is_empty(&self) -> bool {
        *self == CaptureFilter::default()
    }

    /// True if an interface is asked for, by its name or by the port's, as reports have it: `eth0`, `eth0 in`.
    pub fn takes_interface(&self, name: Option<&str>, direction: Option<Direction>) -> bool {
        let asked = |text: &String| {
            name.is_some_and(|name| text == name || Some(text.as_str()) == direction.map(|way| port_of(name, way)).as_deref())
        };
        self.interfaces.is_empty() || self.interfaces.iter().any(asked)
    }

    /// True if frames to an address are asked for.
    pub fn takes(&self, address: IpAddr, port: Option<u16>) -> bool {
        self.to.is_empty() || self.to.iter().any(|target| target.holds(address, port))
    }

    /// True if frames through a tunnel to this receiver are wanted.
    pub fn takes_outer(&self, receiver: Option<(IpAddr, Option<u16>)>) -> bool {
        !self.to.is_empty() && receiver.is_some_and(|(address, port)| self.takes(address, port))
    }
}

/// Name of the port of one direction of an interface: `eth0 in`.
pub fn port_of(interface: &str, direction: Direction) -> String {
    format!("{interface} {}", if direction == Direction::Out { "out" } else { "in" })
}

impl std::fmt::Display for CaptureFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let direction = self.direction.map(|direction| if direction == Direction::Out { "out" } else { "in" });
        let asked: Vec<String> = self.to.iter().map(ToString::to_string).chain(direction.map(str::to_string)).collect();
        write!(f, "{}", [asked, self.interfaces.clone()].concat().join(", "))
    }
}

/// A host, a network, or a port of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    address: IpAddr,
    /// Leading bits that count.
    prefix: u8,
    port: Option<u16>,
}

const ACCEPTED: &str =
    "an address, a network or an address with a port: 10.0.0.5, 10.0.0.0/24, 10.0.0.5:80, fd00::5, [fd00::5]:80";

fn bits(address: IpAddr) -> (u128, u8) {
    match address {
        IpAddr::V4(v4) => (u128::from(v4.to_bits()) << 96, 32),
        IpAddr::V6(v6) => (v6.to_bits(), 128),
    }
}

impl Target {
    /// Reads a receiver as the user gave it.
    ///
    /// # Errors
    /// It is none of what is accepted.
    pub fn read(text: &str) -> Result<Target, Problem> {
        let wrong = |what: &str| Problem::new(what).column("to").value(text).accepted(ACCEPTED);
        let trimmed = text.trim();
        if let Some((address, prefix)) = trimmed.split_once('/') {
            let address: IpAddr = address.parse().map_err(|_| wrong("is no network"))?;
            let (value, most) = bits(address);
            let prefix: u8 = prefix.parse().ok().filter(|p| *p <= most).ok_or_else(|| wrong("is no network"))?;
            if value.checked_shl(u32::from(prefix)).unwrap_or(0) != 0 {
                return Err(wrong("has bits set behind its prefix"));
            }
            return Ok(Target { address, prefix, port: None });
        }
        if let Ok(address) = trimmed.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            return Ok(Target { address, prefix: bits(address).1, port: None });
        }
        if let Ok(socket) = trimmed.parse::<SocketAddr>() {
            return Ok(Target { address: socket.ip(), prefix: bits(socket.ip()).1, port: Some(socket.port()) });
        }
        if Span::read(trimmed).is_ok() {
            return Err(wrong("is a time").suggestion("--stop TIME ends what is read (in Python stop=)"));
        }
        Err(wrong("is no address").suggestion("names are not looked up: give the address"))
    }

    fn holds(&self, address: IpAddr, port: Option<u16>) -> bool {
        let ((own, _), (other, _)) = (bits(self.address), bits(address));
        let different = (own ^ other).leading_zeros() < u32::from(self.prefix);
        self.address.is_ipv4() == address.is_ipv4() && !different && (self.port.is_none() || self.port == port)
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.port {
            Some(port) => write!(f, "{}", SocketAddr::new(self.address, port)),
            None if self.prefix == bits(self.address).1 => write!(f, "{}", self.address),
            None => write!(f, "{}/{}", self.address, self.prefix),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_networks_and_ports_are_read() {
        for (text, address, port, holds) in [
            ("10.0.0.5", "10.0.0.5", None, true),
            ("10.0.0.5", "10.0.0.4", None, false),
            ("10.0.0.0/24", "10.0.0.255", Some(80), true),
            ("10.0.0.0/24", "10.0.1.0", Some(80), false),
            ("10.0.0.5:80", "10.0.0.5", Some(80), true),
            ("10.0.0.5:80", "10.0.0.5", Some(81), false),
            ("10.0.0.5:80", "10.0.0.5", None, false),
            ("0.0.0.0/0", "9.9.9.9", None, true),
            ("0.0.0.0/0", "fd00::1", None, false),
            ("fd00::/8", "fd12::1", None, true),
            ("::/0", "::1", None, true),
            ("[fd00::5]:80", "fd00::5", Some(80), true),
            ("fd00::5", "fd00::5", None, true),
        ] {
            let target = Target::read(text).unwrap();
            assert_eq!(target.holds(address.parse().unwrap(), port), holds, "{text} {address}");
            assert_eq!(target.to_string(), text);
        }
    }

    #[test]
    fn what_is_no_host_is_named_and_a_time_is_for_another_option() {
        let wrong = |text: &str| Target::read(text).unwrap_err().to_string();
        assert!(wrong("3ms").contains("to: '3ms' is a time; accepted: an address, a network or"), "{}", wrong("3ms"));
        assert!(wrong("3ms").contains("--stop TIME"));
        assert!(wrong("10.0.0.5/24").contains("has bits set behind its prefix"));
        assert!(wrong("10.0.0.0/33").contains("is no network") && wrong("x/8").contains("is no network"));
        assert!(wrong("server7").contains("is no address") && wrong("server7").contains("names are not looked up"));
        assert!(wrong("10.0.0.5:99999").contains("is no address") && wrong("").contains("is no address"));
    }
}
