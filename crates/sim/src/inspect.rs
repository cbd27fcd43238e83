//! What a world shows while it runs and when it has ended, for tests that hold it against identities and closed forms.

use crate::host::Protocol;
use crate::link::FarEnd;
use crate::port::Owner;
use crate::world::World;
use fanin_telemetry::{DropRow, FlowRow, PortRow, QueryRow, QueueRow, StampRow, TableError};
use fanin_transport::TcpEndpoint;
use fanin_units::FlowId;

/// A port and its link, up to now.
#[derive(Clone, Debug, PartialEq)]
pub struct PortNow {
    pub name: String,
    /// The switch that it belongs to, by number; `None`: a host's.
    pub switch: Option<u32>,
    /// The switch that its link leads to; `None`: a host.
    pub leads_to: Option<u32>,
    /// Frames whose serialisation has begun.
    pub tx_packets: u64,
    /// Bytes of them.
    pub tx_bytes: u64,
    /// Frames that are being serialised or propagate.
    pub on_wire: u64,
    pub queue_packets: u64,
    pub queue_bytes: u64,
    /// Cells that wait; zero unless something counts in cells.
    pub queue_cells: u64,
    /// Largest queue so far.
    pub peak_bytes: u64,
    pub drops: u64,
    pub marks: u64,
}

/// The tables of a world that was made with [`crate::Destination::Memory`], and its fingerprint.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    pub flows: Vec<FlowRow>,
    pub queries: Vec<QueryRow>,
    pub ports: Vec<PortRow>,
    pub queues: Vec<QueueRow>,
    pub drops: Vec<DropRow>,
    pub stamps: Vec<StampRow>,
    /// The content of `packets.pcapng`; empty without `telemetry.capture`.
    pub packets: Vec<u8>,
    pub fingerprint: u64,
}

impl World {
    /// All ports, by link.
    pub fn ports_now(&mut self) -> Vec<PortNow> {
        (0..self.ports.len()).map(|l| self.port_now(l)).collect()
    }

    fn port_now(&mut self, l: usize) -> PortNow {
        self.catch_up(l);
        let (queue_bytes, queue_packets) = self.queue(l);
        let (link, port) = (&self.links[l], &self.ports[l]);
        PortNow {
            name: port.name.to_string(),
            switch: match port.owner {
                Owner::Switch(s) => Some(s),
                Owner::Host(_) => None,
            },
            leads_to: match link.far_end() {
                FarEnd::Switch(s) => Some(s),
                FarEnd::Host(_) => None,
            },
            tx_packets: port.tx_packets,
            tx_bytes: port.tx_bytes,
            on_wire: u64::from(link.served.wrapping_sub(link.head)),
            queue_packets: u64::from(queue_packets),
            queue_bytes,
            queue_cells: u64::from(port.queue_cells),
            peak_bytes: u64::from(port.peak_bytes),
            drops: port.drops,
            marks: port.marks,
        }
    }

    /// The endpoint that sends the data of flow number `flow`, while the flow lasts.
    pub fn sender(&self, flow: u32) -> Option<&TcpEndpoint> {
        let conn = &self.conns[self.conns.of(FlowId(flow))?];
        match &conn.ends[conn.flow.data_side as usize].protocol {
            Protocol::Tcp(endpoint) => Some(endpoint),
            _ => None,
        }
    }

    /// Winds the world up and gives what its tables kept.
    ///
    /// # Errors
    /// As for [`crate::finish`].
    pub fn into_kept(mut self) -> Result<Kept, TableError> {
        self.wind_up();
        if let Some(error) = self.failure.take() {
            return Err(error);
        }
        self.recorder.finish_queries(self.traffic.queries().iter(), &self.host_names)?;
        self.recorder.settle()?;
        if let Some(capture) = &mut self.recorder.capture {
            capture.finish()?;
        }
        let recorder = &self.recorder;
        Ok(Kept {
            flows: recorder.flows.kept().to_vec(),
            queries: recorder.queries.kept().to_vec(),
            ports: recorder.ports.kept().to_vec(),
            queues: recorder.queues.kept().to_vec(),
            drops: recorder.drops.kept().to_vec(),
            stamps: recorder.stamps.kept().to_vec(),
            packets: recorder.capture.as_ref().map_or(Vec::new(), |capture| capture.kept().to_vec()),
            fingerprint: recorder.fingerprint(),
        })
    }
}
