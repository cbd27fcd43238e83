//! Captured frames, as tcpdump would have them: at NICs of hosts, sent when the first bit goes out and received when the last bit
//! has arrived; on links behind switches, when the last bit has left.

use super::Destination;
use fanin_packet::{Control, Envelope, Framing, Header, Kind, Packet};
use fanin_scenario::Scenario;
use fanin_telemetry::{EventClock, Moment, Stamp, TableError};
use fanin_units::{HostId, LinkId, Span, Time};
use fanin_wire::{control, shim, CaptureFile, Direction, Framer};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// A host whose NIC is not captured.
const NONE: u32 = u32::MAX;

/// A frame that is not written yet: a NIC knows beforehand when it will send, and a host sees a packet some time after it
/// has arrived.
pub struct Pending {
    /// Time, and then the order in which frames became known: the event, where worlds of several parts write one file, and a number.
    key: (Time, Moment, u64),
    interface: u32,
    direction: Direction,
    /// Stamp in the frame's last bytes, where frames have room for one.
    stamp: Option<Stamp>,
    /// Copy of the packet at that time: switches change packets.
    packet: Packet,
    /// Headers of switches in the packet's frame, for which `packet` has no room.
    shim: Option<ShimBytes>,
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

/// A control message at the end of a frame, and the bytes of its body.
type CameWith = (Control, u8);

/// The EtherType of a header of switches, and its bytes.
pub type ShimBytes = (u16, Vec<u8>);

/// A capture in progress.
pub struct Capturing {
    file: CaptureFile,
    /// Frames are held for the file of the whole network, each with its event.
    clock: Option<Arc<EventClock>>,
    framer: Framer,
    /// True if frames have room for stamps.
    stamped: bool,
    /// Interface of each host's NIC; [`NONE`]: not captured.
    interfaces: Vec<u32>,
    /// Captured links, in order, with their interfaces.
    links: Vec<(LinkId, u32)>,
    /// Longest time between a packet's presence on a link and the event that reports it.
    longest: Span,
    /// Time from a packet's last bit at a host until it is seen there.
    processing: Span,
    pending: BinaryHeap<Reverse<Pending>>,
    known: u64,
    ended: Option<Time>,
    /// Control message at the end of the next frame that is received.
    came_with: Option<CameWith>,
    bytes: Vec<u8>,
}

impl Capturing {
    /// A capture; `None` where nothing is captured, or tables go nowhere.
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
            // Of a part's own file only the numbers of interfaces are used.
            Destination::Memory | Destination::Held(_) => CaptureFile::keep(application, &comment, snap),
            Destination::Folder(folder) => CaptureFile::create(folder, application, &comment, snap)?,
        };
        let topology = scenario.topology();
        let mut interfaces = vec![NONE; topology.hosts.len()];
        for host in scenario.captured() {
            let nic = topology.link(topology.host_link(topology.hosts[host.index()]));
            interfaces[host.index()] = file.interface((*host, framing.ip), topology.host_name(*host), nic.rate);
        }
        let link = |link: &LinkId| (*link, file.link(&topology.link_name(*link), topology.link(*link).rate));
        let links: Vec<(LinkId, u32)> = scenario.captured_links().iter().map(link).collect();
        let delays = links.iter().map(|(link, _)| scenario.hop_delay(*link));
        Ok(Some(Box::new(Capturing {
            longest: delays.fold(doc.host.processing_delay, Span::max),
            links,
            file,
            clock: match to {
                Destination::Held(clock) => Some(clock.clone()),
                _ => None,
            },
            framer: Framer::new(framing).expect("a framing that validation accepts for captures"),
            stamped: doc.telemetry.trailer() > 0,
            interfaces,
            processing: doc.host.processing_delay,
            pending: BinaryHeap::new(),
            known: 0,
            ended: None,
            came_with: None,
            bytes: Vec::new(),
        })))
    }

    fn push(
        &mut self,
        time: Time,
        mut packet: Packet,
        (shim, stamp): (Option<ShimBytes>, Stamp),
        (interface, direction): (u32, Direction),
    ) {
        packet.envelope.set_shim(None);
        let key = self.key(time);
        let stamp = self.stamped.then_some(stamp);
        let came_with = if direction == Direction::In { self.came_with.take() } else { None };
        self.pending.push(Reverse(Pending { key, interface, direction, stamp, packet, shim, came_with }));
    }

    /// The place of a frame of a time that becomes known now.
    fn key(&mut self, time: Time) -> (Time, Moment, u64) {
        self.known += 1;
        (time, self.clock.as_deref().map(EventClock::now).unwrap_or_default(), self.known)
    }

    /// Takes the frames of events up to a time; `place` gives the place of an event of the wheel.
    pub fn take_held(&mut self, until: u64, place: impl Fn(Moment) -> Moment) -> Vec<Pending> {
        let pending = std::mem::take(&mut self.pending).into_iter();
        let (taken, left): (Vec<_>, Vec<_>) = pending.partition(|Reverse(frame)| frame.key.1.time <= until);
        self.pending = left.into();
        let placed = |Reverse(mut frame): Reverse<Pending>| {
            frame.key.1 = place(frame.key.1);
            frame
        };
        taken.into_iter().map(placed).collect()
    }

    /// Takes frames that parts of the network have held, all of events up to `until`, and writes those before which no other can become
    /// known.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn give_held(&mut self, frames: Vec<Pending>, until: Time) -> Result<(), TableError> {
        self.pending.extend(frames.into_iter().map(Reverse));
        self.release_known(self.ended.map_or(until, |end| end.min(until)))
    }

    /// The interface of a link that is captured.
    pub fn interface_of(&self, link: LinkId) -> Option<u32> {
        let place = self.links.binary_search_by_key(&link, |(link, _)| *link).ok()?;
        Some(self.links[place].1)
    }

    /// A packet has left at `left` over a captured link, with the headers of switches, a stamp, and a message behind it.
    ///
    /// # Errors
    /// When earlier frames cannot be written.
    pub fn crossed(
        &mut self,
        (now, left): (Time, Time),
        interface: u32,
        mut packet: Packet,
        (shim, stamp, message): (Option<ShimBytes>, Stamp, Option<Packet>),
    ) -> Result<(), TableError> {
        let came_with = message.and_then(|message| match message.header {
            Header::Control(control) => Some((control, message.envelope.header)),
            _ => None,
        });
        packet.envelope.frame -= came_with.map_or(0, |(_, bytes)| u16::from(bytes));
        packet.envelope.set_shim(None);
        let key = self.key(left);
        // A message that a switch has made of a packet's headers has no room for a stamp.
        let stamp = (self.stamped && packet.envelope.kind != Kind::Control).then_some(stamp);
        self.pending.push(Reverse(Pending { key, interface, direction: Direction::Out, stamp, packet, shim, came_with }));
        self.release_known(now)
    }

    /// Writes the frames before which no other can become known: a frame seen now was on a link no earlier.
    fn release_known(&mut self, now: Time) -> Result<(), TableError> {
        if self.clock.is_some() {
            return Ok(());
        }
        self.release(Time::from_ps(now.ps().saturating_sub(self.longest.ps())))
    }

    /// Writes the frames up to `time`.
    fn release(&mut self, time: Time) -> Result<(), TableError> {
        while self.pending.peek().is_some_and(|Reverse(next)| next.key.0 <= time) {
            let Some(Reverse(next)) = self.pending.pop() else { break };
            self.framer.write(&next.packet, next.stamp, &mut self.bytes);
            if let Some((ether_type, body)) = next.shim {
                shim::insert(&mut self.bytes, ether_type, &body);
            }
            if let Some((control, length)) = next.came_with {
                control::attach(&mut self.bytes, control.ether_type, control.body(length));
            }
            self.file.frame(next.interface, next.key.0, &self.bytes, next.direction)?;
        }
        Ok(())
    }

    /// Notes that the run has ended at `now`: no later frame becomes known.
    pub fn settle(&mut self, now: Time) {
        self.ended = Some(now);
    }

    /// Writes all waiting frames up to the end of the run; gives the number of frames.
    ///
    /// # Errors
    /// When it cannot be written; may be tried again once there is space.
    pub fn finish(&mut self) -> Result<u64, TableError> {
        if let Some(end) = self.ended {
            self.release(end)?;
        }
        self.file.finish()
    }

    /// Bytes of the file so far ([`CaptureFile::written`]).
    pub fn written(&self) -> u64 {
        self.file.written()
    }

    /// The file in memory ([`CaptureFile::kept`]).
    pub fn kept(&self) -> &[u8] {
        self.file.kept()
    }

    /// Host `host` gives a packet to its NIC, whose first bit goes out at `start`, with telemetry in its frame.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn sent(
        &mut self,
        (now, start): (Time, Time),
        host: HostId,
        packet: &Packet,
        shim: Option<ShimBytes>,
    ) -> Result<(), TableError> {
        let interface = self.interfaces[host.index()];
        if interface == NONE {
            return Ok(());
        }
        self.push(start, *packet, (shim, Stamp::EMPTY), (interface, Direction::Out));
        self.release_known(now)
    }

    /// A control message has reached a host: with the packet that is delivered next, or alone in a frame.
    pub fn message(&mut self, now: Time, host: HostId, (envelope, control): (&Envelope, &Control), alone: bool) {
        let interface = self.interfaces[host.index()];
        if interface == NONE {
            return;
        }
        if alone {
            let packet = Packet { envelope: *envelope, header: Header::Control(*control) };
            self.push(self.arrived(now), packet, (None, Stamp::EMPTY), (interface, Direction::In));
        } else {
            self.came_with = Some((*control, envelope.header));
        }
    }

    /// A packet has reached its host, with telemetry in its frame and a stamp.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn received(
        &mut self,
        now: Time,
        host: HostId,
        packet: &Packet,
        besides: (Option<ShimBytes>, Stamp),
    ) -> Result<(), TableError> {
        let interface = self.interfaces[host.index()];
        if interface != NONE {
            self.push(self.arrived(now), *packet, besides, (interface, Direction::In));
        }
        self.release_known(now)
    }

    /// Time at which the last bit arrived of a packet that a host sees now.
    fn arrived(&self, now: Time) -> Time {
        Time::from_ps(now.ps().saturating_sub(self.processing.ps()))
    }
}
