//! A switch for tests of mechanisms: every packet leaves by port `host number mod ports`.

use super::{Node, PortNo, PortSite, Site};
use crate::PortView;
use fanin_packet::{Envelope, Framing, PacketId, Shim};
use fanin_units::{BitRate, LinkId, Span, Time, TrafficClass};
use std::collections::BTreeMap;

pub struct Bench {
    pub now: Time,
    pub ports: u16,
    /// Time at which the wires are free.
    pub free_at: Time,
    /// Packets that wait at each port.
    pub queue: u32,
    /// Ports without room.
    pub full: Vec<PortNo>,
    /// Ports with queues of other lengths.
    pub queues: Vec<(PortNo, u32)>,
    /// Bytes that express queues have room for.
    pub express_room: u16,
    /// Packets that wait at the port that refuses, in order.
    pub waiting: Vec<(Envelope, Option<Shim>)>,
    pub notes: BTreeMap<PacketId, u64>,
}

impl Node for Bench {
    fn now(&self) -> Time {
        self.now
    }

    fn view(&mut self, port: PortNo) -> PortView {
        let queue = self.queues.iter().find(|(other, _)| *other == port).map_or(self.queue, |(_, queue)| *queue);
        PortView { now: self.now, free_at: self.free_at, ..crate::tests::view(queue) }
    }

    fn has_room(&mut self, port: PortNo, _envelope: &Envelope) -> bool {
        !self.full.contains(&port)
    }

    fn has_express_room(&mut self, _port: PortNo, frame: u16) -> bool {
        frame <= self.express_room
    }

    fn route(&mut self, envelope: &Envelope) -> Option<PortNo> {
        (self.ports > 0).then(|| PortNo((envelope.dst.0 % u32::from(self.ports)) as u16))
    }

    fn note(&self, packet: PacketId) -> u64 {
        self.notes.get(&packet).copied().unwrap_or(0)
    }

    fn set_note(&mut self, packet: PacketId, note: u64) {
        self.notes.insert(packet, note);
    }

    fn waiting(&self, _port: PortNo, _class: TrafficClass) -> usize {
        self.waiting.len()
    }

    fn waiting_at(&self, _port: PortNo, _class: TrafficClass, place: usize) -> Option<(Envelope, Option<Shim>)> {
        self.waiting.get(place).copied()
    }

    /// True: the bench's full port has room once others leave.
    fn has_room_without(&mut self, _port: PortNo, envelope: &Envelope, frames: &[u16]) -> bool {
        frames.iter().map(|frame| u32::from(*frame)).sum::<u32>() >= u32::from(envelope.frame)
    }
}

pub fn bench(ports: u16) -> Bench {
    Bench {
        now: Time::from_ps(1_000),
        ports,
        free_at: Time::ZERO,
        queue: 0,
        full: Vec::new(),
        queues: Vec::new(),
        express_room: u16::MAX,
        waiting: Vec::new(),
        notes: BTreeMap::new(),
    }
}

pub fn site(peers: &[&str]) -> Site {
    let switches = || (0..).map(PortNo).zip(peers).filter(|(_, peer)| peer.starts_with('s'));
    let port = |(i, peer): (u32, &&str)| PortSite {
        back: switches().map(|(port, _)| port).filter(|port| port.index() != i as usize).collect(),
        link: LinkId(i),
        rate: BitRate::from_gbps(10),
        overhead: 20,
        peer: (*peer).to_string(),
        to_host: peer.starts_with('h'),
        peer_runs: if peer.starts_with('h') { Vec::new() } else { vec!["pdn", "pabo", "trimming"] },
        round_trip: Span::from_us(2),
    };
    let ports = (0..).zip(peers).map(port).collect();
    Site {
        name: "s0".to_string(),
        ports,
        framing: Framing::ETHERNET,
        trailer: 0,
        ttl: 64,
        cell: 80,
        largest_frame: fanin_units::Bytes(1_518),
        attached_frame: fanin_units::Bytes(0),
        growth: 0,
        combined: false,
        seed: 1,
    }
}
