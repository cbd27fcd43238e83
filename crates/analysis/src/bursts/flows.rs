//! State of each flow of a port.

use crate::NO_FLOW;
use std::collections::BTreeMap;

/// Slot for bytes whose flow is unknown.
pub const UNKNOWN: u32 = 0;

/// Flows of one port that are distinguished; the packets of further ones count as unattributed.
pub const MAX_FLOWS: usize = 1 << 20;

/// Flow numbers below this are found by index.
const DENSE: u32 = 1 << 22;

/// Number of neighbouring flow numbers whose slots are kept together. The index has only the pages that the port's flows are on:
/// those that go by names have numbers from 2^20 on, and a port sees few of them.
const PAGE: usize = 1 << 8;

/// One flow at one port.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slot {
    /// Number of the flow.
    pub flow: u32,
    /// Idle time of the port between two packets of the flow after which the flow begins anew, in units of 2^16 ps; 0: no payload
    /// came yet.
    pub pause: u32,
    /// Number of the last burst that counted the flow.
    pub epoch: u64,
    /// Bytes since the last new peak.
    pending: u64,
    /// Bytes of the flow from the time when the queue was last empty to the last new peak.
    upto_peak: u64,
    /// Buffer for sums that are made at once.
    scratch: u64,
    /// Begin of the flow's present activity, to which its last packet with payload belongs, ps.
    pub active_since: u64,
    /// Time of the flow's last packet with payload, ps.
    pub last: u64,
    /// Idle time of the port until the flow's last packet with payload, ps.
    pub idle: u64,
}

/// Bytes by flow, and bytes of no known flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// Flow and bytes, most first, then by number; the first `top` of them.
    pub list: Vec<(u32, u64)>,
    /// Bytes of all flows, listed or not.
    pub attributed: u64,
    /// Bytes that no flow can be named for.
    pub unattributed: u64,
}

/// All flows of one port.
#[derive(Debug)]
pub struct Flows {
    slots: Vec<Slot>,
    /// Page of `index` of a flow, by flow number / [`PAGE`]; 0: none.
    pages: Vec<u32>,
    /// Slots by flow number; 0: none. The first page stays empty.
    index: Vec<[u32; PAGE]>,
    sparse: BTreeMap<u32, u32>,
    /// Slots with `pending`.
    touched: Vec<u32>,
    /// Slots with `upto_peak`.
    counted: Vec<u32>,
    /// Bytes by slot that the queue accepted and lost again, since the last new peak and up to it.
    cut: BTreeMap<u32, u64>,
    cut_upto_peak: BTreeMap<u32, u64>,
    /// Packets of flows beyond the limit.
    pub overflow: u64,
}

impl Flows {
    pub fn new() -> Self {
        let unknown = Slot { flow: NO_FLOW, ..Slot::default() };
        Flows {
            slots: vec![unknown],
            pages: Vec::new(),
            index: vec![[UNKNOWN; PAGE]],
            sparse: BTreeMap::new(),
            touched: Vec::new(),
            counted: Vec::new(),
            cut: BTreeMap::new(),
            cut_upto_peak: BTreeMap::new(),
            overflow: 0,
        }
    }

    /// The slot of a flow, made when new at `now`.
    #[inline(always)]
    pub fn slot(&mut self, flow: u32, now: u64) -> u32 {
        let page = self.pages.get(flow as usize / PAGE).copied().unwrap_or(0);
        match self.index[page as usize][flow as usize % PAGE] {
            UNKNOWN => self.slot_slow(flow, now),
            slot => slot,
        }
    }

    #[inline(never)]
    fn slot_slow(&mut self, flow: u32, now: u64) -> u32 {
        if flow == NO_FLOW {
            return UNKNOWN;
        }
        if let Some(&slot) = self.sparse.get(&flow) {
            return slot;
        }
        if self.slots.len() > MAX_FLOWS {
            self.overflow += 1;
            return UNKNOWN;
        }
        let slot = self.slots.len() as u32;
        self.slots.push(Slot { flow, active_since: now, ..Slot::default() });
        if flow < DENSE {
            let at = flow as usize / PAGE;
            if self.pages.len() <= at {
                self.pages.resize(at + 1, 0);
            }
            if self.pages[at] == 0 {
                self.pages[at] = self.index.len() as u32;
                self.index.push([UNKNOWN; PAGE]);
            }
            self.index[self.pages[at] as usize][flow as usize % PAGE] = slot;
        } else {
            self.sparse.insert(flow, slot);
        }
        slot
    }

    /// Number of flows that have a slot.
    pub fn seen(&self) -> usize {
        self.slots.len() - 1
    }

    #[inline(always)]
    pub fn get(&mut self, slot: u32) -> &mut Slot {
        &mut self.slots[slot as usize]
    }

    /// Bytes of a packet that the queue took.
    #[inline(always)]
    pub fn add(&mut self, slot: u32, bytes: u64) {
        let s = &mut self.slots[slot as usize];
        if s.pending == 0 && bytes > 0 {
            self.touched.push(slot);
        }
        s.pending = s.pending.saturating_add(bytes);
    }

    /// Bytes of a packet that the queue took and gave up again.
    pub fn cut(&mut self, slot: u32, bytes: u64) {
        *self.cut.entry(slot).or_default() += bytes;
    }

    /// Counts bytes up to a new peak.
    #[inline(always)]
    pub fn peak(&mut self) {
        while let Some(slot) = self.touched.pop() {
            let s = &mut self.slots[slot as usize];
            if s.upto_peak == 0 {
                self.counted.push(slot);
            }
            s.upto_peak = s.upto_peak.saturating_add(s.pending);
            s.pending = 0;
        }
        if !self.cut.is_empty() {
            while let Some((slot, bytes)) = self.cut.pop_first() {
                *self.cut_upto_peak.entry(slot).or_default() += bytes;
            }
        }
    }

    /// Forgets bytes as the queue is empty.
    #[inline(always)]
    pub fn empty(&mut self) {
        while let Some(slot) = self.touched.pop() {
            self.slots[slot as usize].pending = 0;
        }
        while let Some(slot) = self.counted.pop() {
            self.slots[slot as usize].upto_peak = 0;
        }
        if !self.cut.is_empty() || !self.cut_upto_peak.is_empty() {
            self.cut.clear();
            self.cut_upto_peak.clear();
        }
    }

    /// Bytes by flow up to the last peak.
    pub fn upto_peak(&self, top: usize) -> Shares {
        let part = |&slot: &u32| {
            let (s, cut) = (&self.slots[slot as usize], self.cut_upto_peak.get(&slot).copied().unwrap_or(0));
            (s.flow, s.upto_peak.saturating_sub(cut))
        };
        shares(self.counted.iter().map(part).filter(|part| part.1 > 0).collect(), top)
    }

    /// Sums of bytes by slot.
    pub fn sum(&mut self, parts: impl Iterator<Item = (u32, u64)>, top: usize) -> Shares {
        let mut seen = Vec::new();
        for (slot, bytes) in parts.filter(|p| p.1 > 0) {
            let s = &mut self.slots[slot as usize];
            if s.scratch == 0 {
                seen.push(slot);
            }
            s.scratch = s.scratch.saturating_add(bytes);
        }
        let list = seen
            .into_iter()
            .map(|slot| {
                let s = &mut self.slots[slot as usize];
                (s.flow, std::mem::take(&mut s.scratch))
            })
            .collect();
        shares(list, top)
    }
}

fn shares(mut list: Vec<(u32, u64)>, top: usize) -> Shares {
    let total = |list: &[(u32, u64)]| list.iter().fold(0u64, |sum, part| sum.saturating_add(part.1));
    let all = total(&list);
    list.retain(|part| part.0 != NO_FLOW);
    let attributed = total(&list);
    let order = |part: &(u32, u64)| (std::cmp::Reverse(part.1), part.0);
    if top < list.len() {
        if top > 0 {
            list.select_nth_unstable_by_key(top - 1, order);
        }
        list.truncate(top);
    }
    list.sort_unstable_by_key(order);
    Shares { list, attributed, unattributed: all - attributed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_keep_their_slots_wherever_their_numbers_are_and_the_index_has_only_their_pages() {
        let mut flows = Flows::new();
        let edge = PAGE as u32;
        let numbers = [0, 1, edge - 1, edge, (1 << 20) + 5, DENSE - 1, DENSE, u32::MAX - 1];
        let slots: Vec<u32> = numbers.iter().map(|number| flows.slot(*number, 7)).collect();
        assert_eq!(slots, (1..=numbers.len() as u32).collect::<Vec<_>>());
        assert_eq!(numbers.map(|number| flows.slot(number, 8)).to_vec(), slots);
        assert_eq!(slots.iter().map(|slot| flows.get(*slot).flow).collect::<Vec<_>>(), numbers);
        assert_eq!(flows.slot(NO_FLOW, 9), UNKNOWN);
        assert_eq!(flows.index.len(), 1 + 4, "flows on four pages, and the empty one");
        assert!(flows.index[0].iter().all(|slot| *slot == UNKNOWN));
    }
}
