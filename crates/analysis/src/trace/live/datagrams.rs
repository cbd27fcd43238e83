//! Datagrams as a stream: each is checked by itself, so that a wrong one costs no other.

use crate::formats::{is_ipfix, is_netflow, is_sflow, is_text, received, NETFLOW_PORT, RECEIVED, SFLOW_PORT};
use crate::input::problem::Problem;

/// Kind of what datagrams hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Sflow,
    Ipfix,
    Netflow,
    Text,
}

impl Kind {
    fn of(datagram: &[u8]) -> Option<Kind> {
        if is_sflow(datagram) {
            Some(Kind::Sflow)
        } else if is_ipfix(datagram) {
            Some(Kind::Ipfix)
        } else if is_netflow(datagram) {
            Some(Kind::Netflow)
        } else {
            is_text(datagram).then_some(Kind::Text)
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Kind::Sflow => "sFlow",
            Kind::Ipfix => "IPFIX",
            Kind::Netflow => "NetFlow 9",
            Kind::Text => "text",
        }
    }
}

/// Datagrams one after another of another kind, after which the kind was wrong.
const OTHERS: u32 = 16;

/// Datagrams of one socket: all of the kind of the first, unless that was a stray one.
#[derive(Debug, Default)]
pub struct Datagrams {
    kind: Option<Kind>,
    /// Datagrams of another kind since the last of this one.
    others: u32,
}

impl Datagrams {
    /// Decides whether a datagram shows that those before were strays; `read`: something of them was read.
    pub fn begin_anew_with(&mut self, datagram: &[u8], read: bool) -> Option<Problem> {
        let (Some(before), Some(kind)) = (self.kind, Kind::of(datagram)) else { return None };
        if kind == before {
            self.others = 0;
            return None;
        }
        self.others += 1;
        // Any text is text, and few bytes look like a message.
        let stray = before == Kind::Text && !read;
        let wrong = Problem::new("is no datagram that can be read").value(before.name());
        (stray || self.others >= OTHERS).then(|| wrong.accepted(format!("{}, as those after it are", kind.name())))
    }

    /// Gives the bytes that a datagram adds to the stream; `ns`: when it came, since 1970.
    ///
    /// # Errors
    /// It is of another kind than those before, or of none.
    pub fn take(&mut self, datagram: &[u8], ns: u64) -> Result<Vec<u8>, Problem> {
        let wrong = |found: &str| Problem::new("is no datagram that can be read").value(found);
        let Some(kind) = Kind::of(datagram) else {
            let start: String = datagram.iter().take(8).map(|byte| format!(" {byte:02x}")).collect();
            return Err(wrong(&format!("{} bytes:{start}", datagram.len())).accepted("sFlow 5, IPFIX, NetFlow 9, lines of text"));
        };
        let first = self.kind.is_none();
        let before = *self.kind.get_or_insert(kind);
        if kind != before {
            return Err(wrong(kind.name()).accepted(format!("{}, as the first one was", before.name())));
        }
        Ok(match kind {
            // Datagrams of sFlow do not say when they were sent, those of NetFlow 9 not where they end: as a capture they have both.
            Kind::Sflow | Kind::Netflow => {
                let port = if kind == Kind::Sflow { SFLOW_PORT } else { NETFLOW_PORT };
                [&RECEIVED[if first { 0 } else { RECEIVED.len() }..], &received(datagram, port, ns)].concat()
            }
            Kind::Ipfix => datagram.to_vec(),
            Kind::Text => [datagram, if datagram.ends_with(b"\n") { b"" } else { b"\n" }].concat(),
        })
    }
}
