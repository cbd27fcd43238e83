//! The memory of a switch: for each port and class a reservation, a share of a pool, and headroom. Counted where packets come in.

use super::held::Held;
use super::{PfcParams, Xoff};
use crate::mechanism::PortNo;
use crate::{DropReason, PRIORITIES};
use fanin_units::TrafficClass;

/// Memory that packets of one class from one neighbour take.
#[derive(Clone, Debug, Default)]
struct Ingress {
    /// Bytes of reservation and pool.
    used: u64,
    headroom: u64,
    /// Frame bytes by the port that they wait for, up to the last port that has any.
    outputs: Vec<u64>,
}

/// A pool that classes share.
#[derive(Clone, Copy, Debug, Default)]
struct Pool {
    bytes: u64,
    used: u64,
    /// α, where a share of the free memory is the threshold; else `None`, and it is fixed.
    alpha: Option<f64>,
    fixed: u64,
}

impl Pool {
    /// Limit of one port and class in the pool now.
    fn threshold(&self) -> u64 {
        let free = self.bytes - self.used.min(self.bytes);
        self.alpha.map_or(self.fixed.min(self.bytes), |alpha| (alpha * free as f64) as u64)
    }
}

/// Bounds below which no class is to be paused and every packet is accepted: bytes taken of the common pool, and bytes of each
/// lossless class of a port.
#[derive(Clone, Copy, Debug, Default)]
struct Calm {
    used: u64,
    each: u64,
}

/// Notes the first packet that waits for an output port.
#[cold]
fn waits_first(outputs: &mut Vec<u64>, output: PortNo, bytes: u64) {
    outputs.resize(output.index() + 1, 0);
    outputs[output.index()] = bytes;
}

/// Memory of one switch.
#[derive(Debug)]
pub(super) struct Memory {
    /// A bit for each lossless class.
    lossless: u8,
    reserved: u64,
    xon_gap: u64,
    /// Headroom of each lossless class, by port.
    headroom: Vec<u64>,
    ingress: Vec<[Ingress; PRIORITIES]>,
    /// The common pool, and the pool of other classes, where they have one of their own.
    pools: [Pool; 2],
    split: bool,
    used: u64,
    headroom_peak: u64,
    used_peak: u64,
    calm: Calm,
}

/// Bytes of headroom and reservations of a switch; `headroom`: of one class at each port.
pub(super) fn fixed(params: &PfcParams, headroom: impl Iterator<Item = u64>) -> u64 {
    let (ports, headroom) = headroom.fold((0, 0), |(ports, sum), bytes| (ports + 1, sum + bytes));
    headroom * params.lossless().count_ones() as u64 + params.reserved.get() * ports * PRIORITIES as u64
}

/// Rest of the memory, for the common pool.
pub(super) fn common(params: &PfcParams, fixed: u64) -> u64 {
    let lossy = params.lossy.as_ref().map_or(0, |lossy| lossy.memory.get());
    params.memory.get().saturating_sub(fixed + lossy)
}

impl Memory {
    pub(super) fn new(params: &PfcParams, headroom: Vec<u64>) -> Memory {
        let bytes = common(params, fixed(params, headroom.iter().copied()));
        let common = match &params.xoff {
            Xoff::Static(xoff) => Pool { bytes, fixed: xoff.bytes.get(), ..Pool::default() },
            Xoff::Dynamic(xoff) => Pool { bytes, alpha: Some(xoff.alpha), ..Pool::default() },
        };
        let own = params.lossy.as_ref();
        let own = own.map(|lossy| Pool { bytes: lossy.memory.get(), alpha: Some(lossy.alpha), ..Pool::default() });
        Memory {
            lossless: params.lossless(),
            reserved: params.reserved.get(),
            xon_gap: params.xon_gap.get(),
            ingress: headroom.iter().map(|_| Default::default()).collect(),
            headroom,
            pools: [common, own.unwrap_or_default()],
            split: own.is_some(),
            used: 0,
            headroom_peak: 0,
            used_peak: 0,
            calm: Calm::default(),
        }
    }

    /// Place of the first class of a port.
    #[inline]
    pub(super) fn address(&self, port: PortNo) -> *const u8 {
        self.ingress.as_ptr().wrapping_add(port.index()).cast()
    }

    pub(super) fn is_lossless(&self, class: TrafficClass) -> bool {
        class.is_in(self.lossless)
    }

    /// Number of the pool of a class.
    fn pool(&self, class: TrafficClass) -> usize {
        usize::from(self.split && !self.is_lossless(class))
    }

    fn at(&mut self, port: PortNo, class: TrafficClass) -> &mut Ingress {
        &mut self.ingress[port.index()][class]
    }

    /// Part of an amount that comes from the pool, not from its reservation.
    fn shared(&self, used: u64) -> u64 {
        used.saturating_sub(self.reserved)
    }

    fn set_used(&mut self, port: PortNo, class: TrafficClass, used: u64) {
        let before = std::mem::replace(&mut self.at(port, class).used, used);
        let (more, less) = (self.shared(used), self.shared(before));
        let pool = self.pool(class);
        self.pools[pool].used = self.pools[pool].used + more - less;
        self.used = self.used + used - before;
    }

    /// Takes room for a packet that is about to wait where it plainly is accepted, no neighbour is to pause, now or as packets
    /// leave, and the memory is no fuller than ever before. Packets that have left and are not known of only make that truer.
    /// Else nothing changes.
    #[inline]
    pub(super) fn take_calmly(&mut self, held: Held) -> bool {
        self.take_up_to(held, self.used_peak)
    }

    /// [`Memory::take_calmly`] where all packets that have left are known: the memory may be fuller than ever before.
    pub(super) fn take_at_peak(&mut self, held: Held) -> bool {
        let taken = self.take_up_to(held, u64::MAX);
        self.used_peak = self.used_peak.max(self.used);
        taken
    }

    /// Takes room for a packet where nothing but that follows, and no more than `most` bytes are in use then.
    #[inline(always)]
    fn take_up_to(&mut self, held: Held, most: u64) -> bool {
        let Held { port, output, class, bytes, .. } = held;
        let bytes = u64::from(bytes);
        let own = self.pool(class);
        // Nearly every packet that waits comes here: places are looked up once.
        let (at, pool) = (&mut self.ingress[port.index()][class], &mut self.pools[own]);
        let (before, more) = (at.used.saturating_sub(self.reserved), (at.used + bytes).saturating_sub(self.reserved));
        let used = pool.used + more - before;
        let fits = match own {
            0 => more <= self.calm.each && used <= self.calm.used,
            _ => used <= pool.bytes && (more == 0 || more <= pool.threshold()),
        };
        let plain = fits && at.headroom == 0 && self.used + bytes <= most;
        if plain {
            at.used += bytes;
            pool.used = used;
            self.used += bytes;
            match at.outputs.get_mut(output.index()) {
                Some(waiting) => *waiting += bytes,
                None => waits_first(&mut at.outputs, output, bytes),
            }
        }
        plain
    }

    /// True if nobody is to pause by far, a packet that is about to wait counted; all that have left are known. From then on
    /// [`Memory::take_calmly`] has room.
    pub(super) fn becomes_calm(&mut self, held: Held) -> bool {
        let Held { port, class, bytes, .. } = held;
        let at = &self.ingress[port.index()][class];
        let (before, more) = (self.shared(at.used), self.shared(at.used + u64::from(bytes)));
        let (own, headroom) = (self.pool(class), at.headroom);
        let pool = self.pools[own];
        let fits = headroom == 0 && pool.used + more - before <= pool.bytes && (more == 0 || more <= pool.threshold());
        let of_common = if own == 0 { more - before } else { 0 };
        let largest = self.largest().max(if self.is_lossless(class) { more } else { 0 });
        fits && self.find_calm(self.pools[0].used + of_common, largest)
    }

    /// Finds how much more may be taken before a neighbour may have to pause, where `used` is taken of the common pool and
    /// `largest` by one lossless class of a port at most. False where somebody may have to soon.
    fn find_calm(&mut self, used: u64, largest: u64) -> bool {
        let pool = self.pools[0];
        let most = used + (pool.bytes - pool.bytes.min(used)) / 8;
        let each = Pool { used: most, ..pool }.threshold().saturating_sub(1);
        let calm = used <= pool.bytes && largest <= each;
        self.calm = if calm { Calm { used: most, each } } else { Calm::default() };
        calm
    }

    /// The most that one lossless class of a port takes of the pool.
    fn largest(&self) -> u64 {
        let lossless = TrafficClass::all(PRIORITIES).filter(|class| class.is_in(self.lossless));
        let used = lossless.flat_map(|class| self.ingress.iter().map(move |port| port[class].used));
        used.map(|used| self.shared(used)).max().unwrap_or(0)
    }

    /// True if no neighbour is close to a pause: no class of a port takes half of what it may.
    pub(super) fn is_low(&mut self) -> bool {
        let largest = self.largest();
        2 * largest < self.pools[0].threshold() && self.find_calm(self.pools[0].used, largest)
    }

    /// Takes room for a packet that is about to wait.
    ///
    /// # Errors
    /// There is no room for it.
    pub(super) fn take(&mut self, held: Held) -> Result<(), DropReason> {
        let Held { port, output, class, bytes, .. } = held;
        let bytes = u64::from(bytes);
        let at = self.at(port, class);
        let (used, headroom) = (at.used, at.headroom);
        let more = self.shared(used + bytes);
        let pool = &self.pools[self.pool(class)];
        let fits = pool.used + more - self.shared(used) <= pool.bytes;
        if headroom == 0 && (more == 0 || more <= pool.threshold() && fits) {
            self.set_used(port, class, used + bytes);
        } else if !self.is_lossless(class) {
            return Err(DropReason::DYNAMIC_THRESHOLD);
        } else if headroom + bytes <= self.headroom[port.index()] {
            self.at(port, class).headroom += bytes;
            self.headroom_peak = self.headroom_peak.max(headroom + bytes);
            self.used += bytes;
        } else {
            return Err(DropReason::HEADROOM_FULL);
        }
        self.used_peak = self.used_peak.max(self.used);
        self.note_output(port, class, output, bytes);
        Ok(())
    }

    fn note_output(&mut self, port: PortNo, class: TrafficClass, output: PortNo, bytes: u64) {
        let outputs = &mut self.at(port, class).outputs;
        match outputs.get_mut(output.index()) {
            Some(waiting) => *waiting += bytes,
            None => waits_first(outputs, output, bytes),
        }
    }

    /// Gives back the room of a packet that has left.
    pub(super) fn release(&mut self, held: Held) {
        let Held { port, output, class, bytes, .. } = held;
        let bytes = u64::from(bytes);
        let own = self.pool(class);
        let (at, pool) = (&mut self.ingress[port.index()][class], &mut self.pools[own]);
        let from_headroom = at.headroom.min(bytes);
        let before = at.used.saturating_sub(self.reserved);
        at.headroom -= from_headroom;
        at.used -= bytes - from_headroom;
        if let Some(waiting) = at.outputs.get_mut(output.index()) {
            *waiting -= bytes;
        }
        self.used -= bytes;
        pool.used -= before - at.used.saturating_sub(self.reserved);
    }

    /// True if a neighbour that was asked to pause, or was not, has to.
    pub(super) fn wants_pause(&self, port: PortNo, class: TrafficClass, paused: bool) -> bool {
        let at = &self.ingress[port.index()][class];
        let shared = self.shared(at.used);
        if at.headroom > 0 || shared == 0 {
            return at.headroom > 0;
        }
        let threshold = self.pools[0].threshold();
        if paused {
            shared + self.xon_gap > threshold
        } else {
            shared >= threshold
        }
    }

    /// Ports for which packets wait that came in by `port`, with their bytes.
    pub(super) fn outputs(&self, port: PortNo, class: TrafficClass) -> impl Iterator<Item = (PortNo, u64)> + '_ {
        let outputs = &self.ingress[port.index()][class].outputs;
        (0..).map(PortNo).zip(outputs.iter().copied()).filter(|(_, bytes)| *bytes > 0)
    }

    /// Output port for which most packets of an input's class wait; the first of several.
    pub(super) fn mostly_for(&self, port: PortNo, class: TrafficClass) -> Option<PortNo> {
        self.outputs(port, class).max_by_key(|(to, bytes)| (*bytes, std::cmp::Reverse(*to))).map(|(to, _)| to)
    }

    /// Largest headroom of one port and class, and memory in use.
    pub(super) fn peaks(&self) -> Vec<u64> {
        vec![self.headroom_peak, self.used_peak]
    }
}

#[cfg(test)]
impl Memory {
    /// Size of the common pool, bytes taken of it, and bytes taken in all.
    pub(super) fn in_use(&self) -> (u64, u64, u64) {
        (self.pools[0].bytes, self.pools[0].used, self.used)
    }

    /// Used of the pool of classes that are not lossless.
    pub(super) fn lossy_in_use(&self) -> u64 {
        self.pools[1].used
    }

    pub(super) fn threshold(&self) -> fanin_units::Bytes {
        fanin_units::Bytes(self.pools[0].threshold())
    }
}
