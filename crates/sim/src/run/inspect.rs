//! Views of a world while it runs and when it has ended, for tests that hold it against identities and closed forms.

use crate::core::faults::LinkCounts;
use crate::core::link::FarEnd;
use crate::core::port::{Owner, Port};
use crate::fabric::combined::Crossbar;
use crate::fabric::SwitchNode;
use crate::hosts::receive::Receivers;
use crate::world::World;
use fanin_packet::{Envelope, Header, Kind, Side};
use fanin_switch::{CountGroup, Express, Hooks};
use fanin_telemetry::{
    CollectiveRow, DropRow, FlowRow, HopRow, HostRow, MessageRow, PauseRow, PortRow, QueryRow, QueueRow, SegmentRow, StampRow,
    StateRow, TableError, VoqRow,
};
use fanin_transport::{SignalCounts, TcpEndpoint};
use fanin_units::{FlowId, LinkId};

/// A port and its link, up to now.
#[derive(Clone, Debug, PartialEq)]
pub struct PortNow {
    pub name: String,
    /// Switch that the port belongs to, by number; `None`: a host's port.
    pub switch: Option<u32>,
    /// Switch that the port's link leads to; `None`: a host.
    pub leads_to: Option<u32>,
    /// Frames whose serialisation has begun.
    pub tx_packets: u64,
    /// Bytes of the frames whose serialisation has begun.
    pub tx_bytes: u64,
    /// Frames that are being serialised or propagate.
    pub on_wire: u64,
    pub queue_packets: u64,
    pub queue_bytes: u64,
    /// Cells that wait; zero unless something counts in cells.
    pub queue_cells: u64,
    /// Bytes that mechanisms hold for the port, which `queue_bytes` does not include.
    pub held_bytes: u64,
    pub held_packets: u64,
    /// Largest queue so far, including what was held.
    pub peak_bytes: u64,
    pub drops: u64,
    pub marks: u64,
}

/// The tables of a world that was made with [`crate::Destination::Memory`], and its fingerprint.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    pub flows: Vec<FlowRow>,
    pub queries: Vec<QueryRow>,
    pub collectives: Vec<CollectiveRow>,
    pub ports: Vec<PortRow>,
    pub queues: Vec<QueueRow>,
    pub drops: Vec<DropRow>,
    pub pauses: Vec<PauseRow>,
    pub states: Vec<StateRow>,
    pub voqs: Vec<VoqRow>,
    pub stamps: Vec<StampRow>,
    pub hosts: Vec<HostRow>,
    pub messages: Vec<MessageRow>,
    pub segments: Vec<SegmentRow>,
    pub hops: Vec<HopRow>,
    /// The content of `packets.pcapng`; empty without `telemetry.capture`.
    pub packets: Vec<u8>,
    /// Summary of the run, as in `summary.json`.
    pub summary: serde_json::Value,
    pub fingerprint: u64,
}

impl World {
    /// All ports, by link.
    pub fn ports_now(&mut self) -> Vec<PortNow> {
        self.core.links.ids().collect::<Vec<_>>().into_iter().map(|l| self.port_now(l)).collect()
    }

    fn port_now(&mut self, l: LinkId) -> PortNow {
        self.core.catch_up(l);
        self.fabric.notify(&mut self.core);
        let (queue_bytes, queue_packets) = self.core.queue(l);
        let (link, port) = (&self.core.links[l], &self.core.ports[l]);
        let [tx_bytes, tx_packets] = port.sent(link);
        PortNow {
            name: port.name.to_string(),
            switch: match port.owner {
                Owner::Switch(s, _) => Some(s.0),
                Owner::Host(_) => None,
            },
            leads_to: match link.far_end() {
                FarEnd::Switch(s) => Some(s.0),
                FarEnd::Host(_) => None,
            },
            tx_packets,
            tx_bytes,
            on_wire: u64::from(link.served.wrapping_sub(link.head)),
            queue_packets: u64::from(queue_packets),
            queue_bytes,
            queue_cells: u64::from(port.queue_cells),
            held_bytes: u64::from(port.held_bytes),
            held_packets: u64::from(port.held_packets),
            peak_bytes: u64::from(port.peak_bytes),
            drops: port.drops,
            marks: port.marks,
        }
    }

    /// Links with events, in each direction, with their losses so far.
    pub fn lossy_links(&self) -> Vec<(String, LinkCounts)> {
        self.core.faults.iter().map(|(l, fault)| (self.core.ports[*l].name.to_string(), fault.counts)).collect()
    }

    /// Names of ports that are known to be down and for which something waits all the same: none, ever.
    pub fn down_ports_with_packets(&self) -> Vec<String> {
        let down = self.core.links.ids().filter(|l| self.core.is_down(*l));
        let waits =
            |l: &LinkId| self.core.standing(*l).1 > 0 || self.core.ports[*l].queues.as_deref().is_some_and(|q| q.may_send());
        down.filter(waits).map(|l| self.core.ports[l].name.to_string()).collect()
    }

    /// Names of ports that are paused now.
    pub fn paused_ports(&self) -> Vec<String> {
        let paused = self.core.gates.iter().filter(|(_, gate)| gate.closed != 0);
        paused.map(|(l, _)| self.core.ports[*l].name.to_string()).collect()
    }

    /// Names of paused ports that wait for each other in a circle now, if there is one.
    pub fn circle_of_pauses(&mut self) -> Option<Vec<String>> {
        let circle = self.fabric.circle_of_pauses(&mut self.core)?;
        Some(circle.into_iter().map(|l| self.core.ports[l].name.to_string()).collect())
    }

    /// Endpoint that sends the data of flow number `flow`, while it lasts.
    pub fn sender(&self, flow: u32) -> Option<&TcpEndpoint> {
        let ends = &self.hosts.ends;
        let of = |side| ends.of(FlowId(flow), side).map(|id| &ends[id]);
        [Side::Initiator, Side::Responder].into_iter().filter_map(of).find(|end| end.sends_data)?.protocol.tcp()
    }

    /// Bytes of flow number `flow` that its receiver has in order, while the flow lasts.
    pub fn received(&self, flow: u32) -> Option<u64> {
        let ends = &self.hosts.ends;
        let of = |side| ends.of(FlowId(flow), side).map(|id| &ends[id]);
        let receiver = [Side::Initiator, Side::Responder].into_iter().filter_map(of).find(|end| !end.sends_data)?;
        Some(receiver.protocol.stats().delivered)
    }

    /// The counts of the mechanisms of all switches, by group.
    pub fn mechanism_counts(&self) -> Vec<CountGroup> {
        let mut groups: Vec<CountGroup> = Vec::new();
        for group in self.fabric.switches.iter().flat_map(|switch| &switch.mechanisms).map(|m| m.counts()) {
            match groups.iter_mut().find(|known| known.name == group.name) {
                None => groups.push(group),
                Some(known) => known.counters.iter_mut().zip(group.counters).for_each(|(sum, (_, n))| sum.1 += n),
            }
        }
        groups
    }

    /// A counter of the mechanisms, summed over switches; zero where none counts it.
    pub fn counter(&self, group: &str, name: &str) -> u64 {
        let groups = self.mechanism_counts();
        let found = groups.iter().find(|g| g.name == group);
        found.and_then(|g| g.counters.iter().find(|(def, _)| def.name == name)).map_or(0, |(_, n)| *n)
    }

    /// The fate of signals at all endpoints so far.
    pub fn signals(&self) -> SignalCounts {
        let mut all = self.hosts.signals;
        self.hosts.ends.ids().into_iter().for_each(|id| all.add(&self.hosts.ends[id].protocol.signals()));
        all
    }

    /// Messages of a group that came to hosts at which their flow had ended.
    pub fn after_end(&self, group: &str) -> u64 {
        self.hosts.after_end.get(group).copied().unwrap_or_default()
    }

    /// Frame bytes that each switch counts by the port that they came in by; `None` where nobody asks for them.
    pub fn input_bytes(&self) -> Vec<Option<u64>> {
        let switches = self.fabric.switches.iter();
        switches.map(|switch| switch.hooks.any(Hooks::INPUTS).then(|| switch.inputs.iter().sum())).collect()
    }

    /// Control messages that wait at switches or travel, those that were lost on a link left out.
    pub fn messages_on_the_way(&self) -> u64 {
        let waiting: u64 =
            self.fabric.switches.iter().flat_map(|switch| &switch.mechanisms).filter_map(|m| m.attaches(|m| m.messages())).sum();
        waiting + self.existing(|envelope, _| envelope.kind == Kind::Control && envelope.ttl > 0)
    }

    /// Trimmed packets, and packets with a signal for their receiver, that are on the way.
    pub fn trimmed_and_signals_on_the_way(&self) -> (u64, u64) {
        let signals = |envelope: &Envelope, header: &Header| header.carries_signal() && envelope.kind != Kind::Control;
        (self.existing(|envelope, _| envelope.trimmed), self.existing(signals))
    }

    /// Packets on the way whose frames have headers of switches of so many bytes; messages do not count.
    pub fn with_shim(&self, bytes: u16) -> u64 {
        self.existing(|envelope, _| envelope.extra.shim() == bytes && envelope.kind != Kind::Control)
    }

    /// Packets that exist and fit; each is visited.
    pub(crate) fn existing(&self, fits: impl Fn(&Envelope, &Header) -> bool) -> u64 {
        let pool = &self.core.pool;
        pool.existing().filter(|id| fits(&pool[*id], pool.header(*id))).count() as u64
    }

    /// Frames on links with nothing but a control message in them.
    pub fn control_frames_on_wire(&self) -> u64 {
        // At the end of another frame a message has no frame of its own.
        self.existing(|envelope, header| matches!(header, Header::Control(_)) && envelope.frame > 0)
            - self.control_frames_waiting()
    }

    /// Frames with nothing but a control message in them that wait for the wire.
    pub fn control_frames_waiting(&self) -> u64 {
        self.core.ports.iter().filter_map(|port| port.queues.as_deref()).map(|queues| queues.control.len() as u64).sum()
    }

    /// Packets in virtual output queues and on crossbars, by switch; empty where switches are output queued.
    pub fn crossbar_packets(&self) -> Vec<u64> {
        self.fabric.crossbars.iter().map(Crossbar::packets).collect()
    }

    /// Packets that mechanisms hold, those in express queues, those in virtual output queues or on crossbars, those that wait in hosts behind the NIC, and messages that are about to be offered to ports.
    pub fn held(&self) -> u64 {
        let of = |s: &SwitchNode| s.mechanisms.iter().filter_map(|m| m.holds(|m| m.held().len())).sum::<usize>() + s.outbox.len();
        let express =
            |port: &Port| port.queues.as_deref().and_then(|queues| queues.express.as_deref()).map_or(0, Express::packets);
        let express: u64 = self.core.ports.iter().map(|port| u64::from(express(port))).sum();
        let in_hosts = self.hosts.receivers.as_deref().map_or(0, Receivers::packets);
        self.fabric.switches.iter().map(|switch| of(switch) as u64).sum::<u64>()
            + in_hosts
            + express
            + self.crossbar_packets().iter().sum::<u64>()
    }

    /// Winds the world up and gives what its tables kept.
    ///
    /// # Errors
    /// As for [`crate::finish`].
    pub fn into_kept(mut self) -> Result<Kept, TableError> {
        let (summary, _) = crate::finish(&mut self)?;
        let ledger = &self.core.ledger;
        let recorder = &ledger.tables;
        Ok(Kept {
            flows: recorder.flows.kept().to_vec(),
            queries: recorder.queries.kept().to_vec(),
            collectives: recorder.collectives.kept().to_vec(),
            ports: recorder.ports.kept().to_vec(),
            queues: recorder.queues.kept().to_vec(),
            drops: recorder.drops.kept().to_vec(),
            pauses: recorder.pauses.kept().to_vec(),
            states: recorder.states.kept().to_vec(),
            voqs: recorder.voqs.kept().to_vec(),
            stamps: recorder.stamps.kept().to_vec(),
            hosts: recorder.hosts.kept().to_vec(),
            messages: recorder.messages.kept().to_vec(),
            segments: recorder.segments.kept().to_vec(),
            hops: recorder.hops.kept().to_vec(),
            packets: recorder.capture.as_ref().map_or(Vec::new(), |capture| capture.kept().to_vec()),
            summary,
            fingerprint: ledger.fingerprint(),
        })
    }
}
