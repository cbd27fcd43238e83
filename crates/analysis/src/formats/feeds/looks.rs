//! Looks at ports that are put together of single counters, whatever brings these.

use super::Feed;
use crate::counters::{Look, Value};
use crate::input::problem::Problem;
use std::collections::BTreeMap;

/// Ports that are followed, at most: queues of interfaces are ports of their own.
const PORTS: usize = 1 << 16;

/// Largest queue so far, as a switch tells it, and true once it has fallen: then it is of each interval.
#[derive(Clone, Copy, Debug, Default)]
pub struct Most {
    last: Option<u64>,
    falls: bool,
}

impl Most {
    /// The largest queue of the interval that ends: a value that stays is no news, unless the switch begins each interval anew.
    pub fn of_interval(&mut self, value: u64) -> Option<u64> {
        let last = self.last.replace(value);
        self.falls |= last.is_some_and(|last| value < last);
        match last {
            // Nothing has waited since it was cleared, whenever that was.
            _ if value == 0 => Some(0),
            // It may be of any time before.
            None => None,
            Some(last) if value == last && !self.falls => None,
            Some(_) => Some(value),
        }
    }
}

/// Note on watermarks that stay the same.
pub const HELD: &str = "watermarks that stay the same say nothing of the last interval, unless the switch begins each anew";

/// Meaning of a counter that a source tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    Bytes,
    Packets,
    Dropped,
    Marked,
    Queue,
    Watermark,
}

/// Number of kinds of counters.
pub const COUNTERS: usize = 6;

impl Counter {
    /// Puts a value into a look; true if it is a watermark that says nothing of the last interval.
    pub fn put(self, value: Value, most: &mut Most, look: &mut Look) -> bool {
        let (Value::Total(number, _) | Value::Since(number) | Value::Rate(number)) = value;
        match self {
            Counter::Bytes => look.sent = Some(value),
            Counter::Packets => look.packets = Some(value),
            Counter::Dropped => look.dropped = Some(value),
            Counter::Marked => look.marked = Some(value),
            Counter::Queue => look.queue = Some(number),
            Counter::Watermark => {
                look.watermark = most.of_interval(number);
                return look.watermark.is_none();
            }
        }
        false
    }
}

/// Statistics of SAI that are read: object type (1: port, 21: queue), number, name, meaning.
///
/// Source: SAI inc/saiport.h and inc/saiqueue.h; names as SONiC's countersyncd writes them.
const STATISTICS: [(u16, u16, &str, Counter); 12] = [
    (1, 9, "SAI_PORT_STAT_IF_OUT_OCTETS", Counter::Bytes),
    (1, 10, "SAI_PORT_STAT_IF_OUT_UCAST_PKTS", Counter::Packets),
    (1, 12, "SAI_PORT_STAT_IF_OUT_DISCARDS", Counter::Dropped),
    (1, 70, "SAI_PORT_STAT_ECN_MARKED_PACKETS", Counter::Marked),
    (1, 95, "SAI_PORT_STAT_OUT_CURR_OCCUPANCY_BYTES", Counter::Queue),
    (1, 96, "SAI_PORT_STAT_OUT_WATERMARK_BYTES", Counter::Watermark),
    (21, 1, "SAI_QUEUE_STAT_BYTES", Counter::Bytes),
    (21, 0, "SAI_QUEUE_STAT_PACKETS", Counter::Packets),
    (21, 2, "SAI_QUEUE_STAT_DROPPED_PACKETS", Counter::Dropped),
    (21, 0x22, "SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS", Counter::Marked),
    (21, 0x18, "SAI_QUEUE_STAT_CURR_OCCUPANCY_BYTES", Counter::Queue),
    (21, 0x19, "SAI_QUEUE_STAT_WATERMARK_BYTES", Counter::Watermark),
];

/// Meaning of a statistic of SAI by the numbers of the object's type and its own.
pub fn of_sai(kind: u16, statistic: u16) -> Option<Counter> {
    STATISTICS.iter().find(|known| (known.0, known.1) == (kind, statistic)).map(|known| known.3)
}

/// Meaning of a statistic of SAI by its name.
pub fn of_sai_name(name: &str) -> Option<Counter> {
    STATISTICS.iter().find(|known| known.2 == name).map(|known| known.3)
}

/// The look that is being collected of a port: its parts may come in several messages of one time.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    time: u128,
    look: Look,
    most: Most,
    any: bool,
}

/// Looks at ports that are being put together.
#[derive(Debug, Default)]
pub struct Looks {
    pending: BTreeMap<String, Pending>,
    /// True once a watermark said nothing of its interval.
    pub held: bool,
}

impl Looks {
    /// Takes a counter of a port at a time [ps]; a later time ends the look before.
    ///
    /// # Errors
    /// There are too many ports; it is no time of the trace.
    pub fn take(
        &mut self,
        port: &str,
        time: u128,
        (counter, value): (Counter, Value),
        feed: &mut Feed<'_>,
    ) -> Result<(), Problem> {
        if !self.pending.contains_key(port) {
            if self.pending.len() >= PORTS {
                return Err(Problem::new(format!("is one port too many: {PORTS} are accepted")).value(port));
            }
            self.pending.insert(port.to_string(), Pending { time, ..Pending::default() });
        }
        let Some(pending) = self.pending.get_mut(port) else { return Ok(()) };
        if pending.any && pending.time != time {
            flush(port, pending, feed)?;
        }
        (pending.time, pending.any) = (time, true);
        self.held |= counter.put(value, &mut pending.most, &mut pending.look);
        Ok(())
    }

    /// Note on watermarks that said nothing of their interval.
    pub fn note(&self) -> Option<String> {
        self.held.then(|| HELD.into())
    }

    /// Ends all looks.
    ///
    /// # Errors
    /// One is at no time of the trace.
    pub fn finish(&mut self, feed: &mut Feed<'_>) -> Result<(), Problem> {
        self.pending.iter_mut().filter(|(_, pending)| pending.any).try_for_each(|(port, pending)| flush(port, pending, feed))
    }
}

fn flush(port: &str, pending: &mut Pending, feed: &mut Feed<'_>) -> Result<(), Problem> {
    let look = Look { time: feed.time(pending.time)?, ..std::mem::take(&mut pending.look) };
    pending.any = false;
    let index = feed.port(port.as_bytes())?;
    feed.look(index, &look);
    Ok(())
}
