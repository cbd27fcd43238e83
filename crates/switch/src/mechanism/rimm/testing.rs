//! RIMM at one switch without a network, with its registers in view: for test vectors.

use super::header::{ANSWER, DEPTH, DETOUR, RETURN};
use super::{index, Arrival, Effect, Effects, Mechanism, Node, Pair, PortNo, PortView, Rimm, RimmParams, Site, Verdict};
use crate::mechanism::{PortSite, Watches};
use fanin_packet::{Envelope, Framing, PacketId, Shim};
use fanin_units::{BitRate, LinkId, Time};

/// Event at the switch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Event {
    pub kind: u8,
    pub port: u16,
    pub depth: u32,
    pub crossing: u16,
    pub from: u16,
    pub heard: u16,
    pub hash: u32,
    pub number: u32,
    pub ttl: u8,
}

impl Event {
    pub const EGRESS: u8 = 0;
    pub const MESSAGE: u8 = 1;
    pub const NEW: u8 = 2;
    pub const BACK: u8 = 3;
}

/// Registers of the switch after an event.
#[derive(Clone, Copy, Debug)]
pub struct Registers {
    pub above: bool,
    pub crossings: u16,
    pub on: bool,
    pub over: bool,
    /// Index of the packet's register pair, and its content.
    pub pair: (usize, Pair),
    pub given_up: bool,
    pub message: bool,
    /// Fate of a packet: 0 goes on, 1 detour, 2 release, 3 late, 4 again, 5 let go, 6 stays.
    pub action: u8,
    pub way: Option<u16>,
    pub attached: u32,
}

/// The queue of the port that an event is about.
struct Queue {
    now: Time,
    bytes: u64,
}

impl Node for Queue {
    fn now(&self) -> Time {
        self.now
    }

    fn view(&mut self, _port: PortNo) -> PortView {
        let rate = BitRate::from_gbps(10);
        let (queue_bytes, queue_packets) = (self.bytes, self.bytes.div_ceil(1518) as u32);
        PortView { now: self.now, queue_bytes, queue_packets, queue_cells: 0, rate, overhead: 20, free_at: self.now }
    }

    fn route(&mut self, _envelope: &Envelope) -> Option<PortNo> {
        None
    }
}

/// RIMM at a switch with so many neighbours that run it, and a host behind its last port.
pub struct Switch(Rimm);

impl Switch {
    pub fn new(params: &RimmParams, neighbours: u32, start: u32) -> Self {
        let port = |i: u32| PortSite {
            link: LinkId(i),
            rate: BitRate::from_gbps(10),
            overhead: 20,
            peer: format!("n{i}"),
            to_host: i == neighbours,
            round_trip: fanin_units::Span::from_us(2),
            back: (0..neighbours as u16).map(PortNo).filter(|port| u32::from(port.0) != i).collect(),
            peer_runs: if i == neighbours { Vec::new() } else { vec!["rimm"] },
        };
        let site = Site {
            name: "s".to_string(),
            ports: (0..=neighbours).map(port).collect(),
            framing: Framing::ETHERNET,
            trailer: 0,
            ttl: 64,
            cell: 80,
            largest_frame: fanin_units::Bytes(1_518),
            attached_frame: fanin_units::Bytes(0),
            growth: 0,
            combined: false,
            seed: 0,
        };
        let mut rimm = Rimm::new(params, &site).expect("a switch that is not unaware");
        rimm.pairs = vec![Pair::at(start); 1 << rimm.hash_bits];
        Switch(rimm)
    }

    /// Forgets the depths of all neighbours.
    pub fn forget(&mut self) {
        self.0.qdm.fill(None);
    }

    pub fn step(&mut self, clock: u64, event: &Event) -> Registers {
        let rimm = &mut self.0;
        let before = rimm.counts;
        let mut node = Queue { now: Time::from_ps(clock * 1_000), bytes: u64::from(event.depth) };
        let mut fx = Effects::default();
        let (port, number) = (PortNo(event.port), event.number.to_be_bytes());
        let heard = event.heard.to_be_bytes();
        let mut r = Registers {
            above: false,
            crossings: 0,
            on: false,
            over: false,
            pair: (index(event.hash, rimm.hash_bits), Pair::default()),
            given_up: false,
            message: false,
            action: 0,
            way: None,
            attached: 0,
        };
        let shim = match event.kind {
            Event::EGRESS => {
                rimm.on_egress(&mut node, PacketId(0), port, &mut fx);
                None
            }
            Event::MESSAGE => {
                let crossing = event.crossing.to_be_bytes();
                let rest = [&heard[..], &event.port.to_be_bytes(), &crossing, &event.depth.to_be_bytes()].concat();
                Some(Shim::new(ANSWER, &rest, 80))
            }
            Event::NEW => Some(Shim::new(DEPTH, &heard, 80)),
            _ => Some(Shim::new(RETURN, &[&heard[..], &number].concat(), 80)),
        };
        if let Some(shim) = shim {
            let mut envelope = Envelope { frame: 1_000, hash: event.hash, ttl: event.ttl, ..Envelope::default() };
            envelope.set_shim(Some(&shim));
            let mut shim = Some(shim);
            let from = Some(PortNo(event.from));
            let mut p = Arrival { id: PacketId(0), envelope: &mut envelope, from, shim: &mut shim };
            let verdict = rimm.on_route(&mut node, &mut p, port, &mut fx);
            if let (Verdict::Detour(way), Some(shim)) = (verdict, shim) {
                debug_assert_eq!(shim.ether_type, DETOUR);
                r.way = Some(way.0);
                let number = shim.body().last_chunk::<4>().copied();
                r.attached = number.map_or(0, u32::from_be_bytes);
            }
        }
        if let Some((_, Effect::Clone { port: way, .. })) = fx.list.first() {
            (r.message, r.way) = (true, Some(way.0));
        }
        let after = rimm.counts;
        let counted = [
            after.detoured - before.detoured,
            after.released - before.released,
            after.late - before.late,
            after.redetoured - before.redetoured,
            after.let_go - before.let_go,
            after.stayed - before.stayed,
        ];
        r.action = counted.iter().position(|n| *n > 0).map_or(0, |i| i as u8 + 1);
        r.given_up = after.given_up > before.given_up;
        let registers = &rimm.ports[port.index()];
        (r.above, r.crossings) = (registers.detector.is_above(), registers.detector.crossings());
        (r.on, r.over) = (registers.alert.is_on(), registers.alert.is_over());
        r.pair.1 = rimm.pairs[r.pair.0];
        r
    }
}
