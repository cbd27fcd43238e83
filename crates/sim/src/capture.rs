//! Frames at the NICs of hosts, as a capture there would have them: sent when the first bit goes out, received when the last
//! bit has arrived.

use crate::pool::PacketId;
use crate::port::Owner;
use crate::record::Destination;
use crate::world::World;
use fanin_packet::{Framing, IpVersion, Notification, Packet, Side};
use fanin_scenario::Scenario;
use fanin_telemetry::{Stamp, TableError};
use fanin_units::{HostId, Span, Time};
use fanin_wire::notification::{self, Notice};
use fanin_wire::{address, CaptureFile, Direction, Framer};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// A host whose NIC is not captured.
const NONE: u32 = u32::MAX;

/// A frame whose turn has not come: a NIC knows beforehand when it will send, and a host sees a packet some time after it
/// has arrived.
struct Pending {
    /// Time, and a number in the order in which frames became known.
    key: (Time, u64),
    interface: u32,
    direction: Direction,
    src: HostId,
    /// What its last bytes hold, where frames have room for stamps.
    stamp: Option<Stamp>,
    /// As it was then: switches change packets.
    packet: Packet,
    came_with: Option<CameWith>,
}

impl PartialEq for Pending {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Pending {}

impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Pending {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

/// A drop notification at the end of a frame that a host receives.
#[derive(Clone, Copy)]
struct CameWith {
    notice: Notice,
    /// There is nothing else in the frame.
    alone: bool,
}

/// A capture in progress.
pub struct Capturing {
    file: CaptureFile,
    framer: Framer,
    ip: IpVersion,
    /// Whether frames have room for stamps.
    stamped: bool,
    /// By host.
    interfaces: Vec<u32>,
    /// From a packet's last bit at a host until it is seen there.
    processing: Span,
    /// The hosts of captured flows, initiator first: a packet may arrive after its flow has ended.
    flows: BTreeMap<u32, [u32; 2]>,
    pending: BinaryHeap<Reverse<Pending>>,
    known: u64,
    ended: Option<Time>,
    /// What the next frame that is received came with.
    came_with: Option<CameWith>,
    bytes: Vec<u8>,
}

impl Capturing {
    /// None where nothing is captured, or tables go nowhere.
    ///
    /// # Errors
    /// When the file cannot be created.
    ///
    /// # Panics
    /// When frames are not Ethernet's, which validation refuses.
    pub fn new(scenario: &Scenario, framing: &Framing, to: &Destination<'_>) -> Result<Option<Box<Self>>, TableError> {
        let doc = scenario.doc();
        let Some(capture) = &doc.telemetry.capture else { return Ok(None) };
        let snap = capture.snap.map(|bytes| u32::try_from(bytes.get()).unwrap_or(u32::MAX));
        let application = concat!("fanin ", env!("CARGO_PKG_VERSION"));
        let comment = format!(
            "Simulated, not captured: scenario {}, seed {}, scenario_hash {}. Times count from the start of the simulation.",
            scenario.name(),
            scenario.seed(),
            scenario.hash()
        );
        let mut file = match to {
            Destination::Nowhere => return Ok(None),
            Destination::Memory => CaptureFile::keep(application, &comment, snap),
            Destination::Folder(folder) => CaptureFile::create(folder, application, &comment, snap)?,
        };
        let topology = scenario.topology();
        let mut interfaces = vec![NONE; topology.hosts.len()];
        for host in scenario.captured() {
            let nic = topology.link(topology.host_link(topology.hosts[host.index()]));
            interfaces[host.index()] = file.interface((*host, framing.ip), topology.host_name(*host), nic.rate);
        }
        Ok(Some(Box::new(Capturing {
            file,
            framer: Framer::new(framing).expect("a framing that validation accepts for captures"),
            ip: framing.ip,
            stamped: doc.telemetry.trailer() > 0,
            interfaces,
            processing: doc.host.processing_delay,
            flows: BTreeMap::new(),
            pending: BinaryHeap::new(),
            known: 0,
            ended: None,
            came_with: None,
            bytes: Vec::new(),
        })))
    }

    fn push(&mut self, time: Time, packet: &Packet, src: HostId, stamp: Stamp, (interface, direction): (u32, Direction)) {
        let key = (time, self.known);
        self.known += 1;
        let stamp = self.stamped.then_some(stamp);
        let came_with = if direction == Direction::In { self.came_with.take() } else { None };
        self.pending.push(Reverse(Pending { key, interface, direction, src, stamp, packet: *packet, came_with }));
    }

    /// Writes the frames before which no other becomes known: what a host sees now has arrived no earlier.
    fn release_known(&mut self, now: Time) -> Result<(), TableError> {
        self.release(Time::from_ps(now.ps().saturating_sub(self.processing.ps())))
    }

    /// Writes the frames up to `time`.
    fn release(&mut self, time: Time) -> Result<(), TableError> {
        while self.pending.peek().is_some_and(|Reverse(next)| next.key.0 <= time) {
            let Some(Reverse(next)) = self.pending.pop() else { break };
            match next.came_with {
                Some(CameWith { notice, alone: true }) => {
                    self.bytes = notice.alone(address::mac(next.packet.dst), address::SWITCH_MAC);
                }
                Some(CameWith { notice, alone: false }) => {
                    self.framer.write(&next.packet, next.src, next.stamp, &mut self.bytes);
                    notification::attach(&mut self.bytes, &notice).expect("an IP packet and nothing behind it");
                }
                None => self.framer.write(&next.packet, next.src, next.stamp, &mut self.bytes),
            }
            self.file.frame(next.interface, next.key.0, &self.bytes, next.direction)?;
        }
        Ok(())
    }

    /// Nothing more becomes known: the run has ended at `now`.
    pub fn settle(&mut self, now: Time) {
        self.ended = Some(now);
    }

    /// Writes what waits, up to the end of the run; gives the number of frames.
    ///
    /// # Errors
    /// When it cannot be written; may be tried again once there is space.
    pub fn finish(&mut self) -> Result<u64, TableError> {
        if let Some(end) = self.ended {
            self.release(end)?;
        }
        self.file.finish()
    }

    /// See [`CaptureFile::written`].
    pub fn written(&self) -> u64 {
        self.file.written()
    }

    /// See [`CaptureFile::kept`].
    pub fn kept(&self) -> &[u8] {
        self.file.kept()
    }
}

impl World {
    /// A host gives a packet to its NIC, which sends it once all before it is sent.
    #[cold]
    #[inline(never)]
    pub(crate) fn capture_sent(&mut self, nic: usize, packet: PacketId) {
        let Some(capturing) = self.recorder.capture.as_deref_mut() else { return };
        let Owner::Host(host) = self.ports[nic].owner else { return };
        let interface = capturing.interfaces[host as usize];
        if interface == NONE {
            return;
        }
        let p = &self.pool[packet];
        capturing.flows.entry(p.flow.0).or_insert_with(|| ends(p, host));
        let start = Time::from_ps(self.links[nic].free_at.max(self.now.ps()));
        capturing.push(start, p, HostId(host), Stamp::EMPTY, (interface, Direction::Out));
        let result = capturing.release_known(self.now);
        self.check(result);
    }

    /// A notification has reached a host: with the packet that is delivered next, or alone in the frame `p`.
    #[cold]
    #[inline(never)]
    pub(crate) fn capture_notice(&mut self, host: u32, notification: &Notification, alone: Option<&Packet>) {
        let Some(capturing) = self.recorder.capture.as_deref_mut() else { return };
        let interface = capturing.interfaces[host as usize];
        if interface == NONE {
            return;
        }
        capturing.came_with = Some(CameWith { notice: Notice::of(notification, capturing.ip), alone: alone.is_some() });
        if let Some(p) = alone {
            let arrived = Time::from_ps(self.now.ps().saturating_sub(capturing.processing.ps()));
            capturing.push(arrived, p, notification.receiver, Stamp::EMPTY, (interface, Direction::In));
        }
    }

    /// A packet has reached its host, with `stamp`.
    pub(crate) fn capture_received(&mut self, host: u32, packet: PacketId, stamp: Stamp) {
        let Some(capturing) = self.recorder.capture.as_deref_mut() else { return };
        let interface = capturing.interfaces[host as usize];
        let p = &self.pool[packet];
        if interface != NONE {
            let ends = match self.conns.of(p.flow) {
                Some(id) => {
                    let flow = &self.conns[id].flow;
                    *capturing.flows.entry(p.flow.0).or_insert([flow.host(Side::Initiator), flow.host(Side::Responder)])
                }
                // A flow that has ended had packets here before.
                None => capturing.flows.get(&p.flow.0).copied().unwrap_or([host; 2]),
            };
            let arrived = Time::from_ps(self.now.ps().saturating_sub(capturing.processing.ps()));
            capturing.push(arrived, p, HostId(ends[p.to.other() as usize]), stamp, (interface, Direction::In));
        }
        let result = capturing.release_known(self.now);
        self.check(result);
    }
}

/// The hosts of a packet that `src` sends, initiator first.
fn ends(p: &Packet, src: u32) -> [u32; 2] {
    match p.to {
        Side::Responder => [src, p.dst.0],
        Side::Initiator => [p.dst.0, src],
    }
}
