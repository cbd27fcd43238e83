//! Admission: whether a packet may wait.

use crate::{DropReason, Unit};
use fanin_params::{choice, params, Cx};
use fanin_units::{Amount, Bytes};

params! {
    /// Every port has a buffer of its own.
    pub struct StaticBuffer {
        /// Buffer of each port: a packet is dropped when it does not fit beside what already waits there.
        /// Source: S-ECN §III-A (512 KB, the largest of its testbed).
        pub per_port: Amount = Amount::Bytes(512_000);
        /// Ports with a buffer of another size. Source: S-ECN §III-B(5) (one switch of the testbed).
        pub except: Vec<PortBuffer> = Vec::new();
    }
}

params! {
    /// The buffer of some ports of switches.
    pub struct PortBuffer {
        /// Which: names as in the results (`tor2->root`), `*` stands for anything (`tor2->*`).
        pub ports: Vec<String>;
        /// Buffer of each of them.
        pub per_port: Amount;
    }
}

impl StaticBuffer {
    /// Every port has this much.
    pub fn of(per_port: Amount) -> Self {
        StaticBuffer { per_port, except: Vec::new() }
    }

    /// The sizes of buffers that there are.
    pub fn amounts(&self) -> impl Iterator<Item = Amount> + '_ {
        std::iter::once(self.per_port).chain(self.except.iter().map(|other| other.per_port))
    }
}

params! {
    /// All ports share one buffer; each queue may grow to α times what is free of it. Source: DT.
    pub struct DynamicBuffer {
        /// Buffer of the whole switch. Source: DCTCP §4 (4 MB, its shallow-buffered 48-port switches).
        pub total: Amount = Amount::Bytes(4_000_000);
        /// α: a queue may hold at most α × free. Source: DT (1 lets a single congested queue take
        /// half of the buffer); chips offer powers of two from 1/128 to 8.
        pub alpha: f64 = 1.0, in 0.001..=1024.0;
        /// Buffer that each port has for itself beside its share, taken out of `total`; none when absent.
        pub reserved: Option<Amount>;
    }
}

params! {
    /// Nothing is ever dropped for want of room.
    pub struct UnlimitedBuffer { }
}

choice! {
    /// How much may wait at a port. A packet that finds its port idle goes onto the wire and needs no room.
    pub enum Buffer {
        /// A fixed amount per port (drop tail).
        "static" => Static(StaticBuffer),
        /// Shared by all ports with a dynamic threshold.
        "dynamic" => Dynamic(DynamicBuffer),
        /// No limit.
        "unlimited" => Unlimited(UnlimitedBuffer),
    }
}

impl Buffer {
    /// Whether something is counted in cells.
    pub fn counts_cells(&self) -> bool {
        match self {
            Buffer::Static(b) => b.amounts().any(|amount| Unit::of(amount) == Unit::Cells),
            Buffer::Dynamic(b) => Unit::of(b.total) == Unit::Cells,
            Buffer::Unlimited(_) => false,
        }
    }

    /// Records what single keys cannot show to be wrong.
    pub fn check(&self, cx: &mut Cx) {
        let zero = |cx: &mut Cx, key: &str, amount: Amount| {
            if amount.count() == 0 {
                cx.key(key, |cx| cx.warn(None, "is zero: every packet that finds its port busy is dropped", None).severity);
            }
        };
        match self {
            Buffer::Static(b) => {
                zero(cx, "per_port", b.per_port);
                for (i, other) in b.except.iter().enumerate() {
                    cx.key("except", |cx| cx.index(i, |cx| zero(cx, "per_port", other.per_port)));
                }
            }
            Buffer::Dynamic(b) => {
                zero(cx, "total", b.total);
                let Some(reserved) = b.reserved else { return };
                if Unit::of(reserved) != Unit::of(b.total) {
                    cx.key("reserved", |cx| {
                        cx.error(
                            None,
                            format!("is {reserved}, but `total` is {}", b.total),
                            Some("the same unit for both".into()),
                        )
                        .severity
                    });
                } else if reserved.count() > b.total.count() {
                    cx.key("reserved", |cx| {
                        cx.error(None, format!("is {reserved}: more than all there is"), Some(format!("at most {}", b.total)))
                            .severity
                    });
                }
            }
            Buffer::Unlimited(_) => {}
        }
    }
}

/// A buffer shared by the queues of one switch, with a dynamic threshold per queue.
///
/// T(t) = α · (B − Q(t)): a packet is admitted when its queue, with it, is at most T. Source: DT, for
/// packets of any size: with the arriving packet counted, as a static limit does. Amounts are in the unit of `total`.
/// With `reserved`, a queue's first `reserved` are its own and neither counted in Q nor measured against T.
///
/// Deviation: none for α; the paper has no reservation.
///
/// ```
/// use fanin_switch::{DynamicBuffer, DropReason, SharedBuffer};
/// use fanin_units::Amount;
/// let mut buffer = SharedBuffer::new(&DynamicBuffer { total: Amount::Packets(8), alpha: 1.0, reserved: None }, 4, 80);
/// let mut queue = 0;
/// while buffer.check(queue, 1518).is_ok() {
///     buffer.commit(queue, 1518);
///     queue += 1;
/// }
/// assert_eq!((queue, buffer.free()), (4, 4)); // α/(1 + α) of the buffer
/// assert_eq!(buffer.check(queue, 1518), Err(DropReason::DYNAMIC_THRESHOLD));
/// ```
#[derive(Clone, Debug)]
pub struct SharedBuffer {
    /// B: what is shared, reservations taken out.
    total: u64,
    /// Q: what is used of it.
    used: u64,
    reserved: u64,
    alpha: f64,
    unit: Unit,
    cell: u32,
}

impl SharedBuffer {
    /// The buffer of a switch with `queues` queues and cells of `cell` bytes. Reservations beyond `total` leave nothing to
    /// share.
    pub fn new(params: &DynamicBuffer, queues: u32, cell: u32) -> Self {
        let reserved = params.reserved.map_or(0, Amount::count);
        SharedBuffer {
            total: params.total.count().saturating_sub(reserved.saturating_mul(u64::from(queues))),
            used: 0,
            reserved,
            alpha: params.alpha,
            unit: Unit::of(params.total),
            cell,
        }
    }

    /// What it counts in: the unit of every `queued` argument.
    pub fn unit(&self) -> Unit {
        self.unit
    }

    /// What a frame takes.
    #[inline]
    pub fn size(&self, frame: u16) -> u64 {
        self.unit.size(frame, self.cell)
    }

    /// What is shared and not used.
    #[inline]
    pub fn free(&self) -> u64 {
        self.total - self.used
    }

    /// What is shared and used.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// The most that a queue may hold now, reservation included.
    #[inline]
    pub fn limit(&self) -> u64 {
        self.reserved.saturating_add((self.alpha * self.free() as f64) as u64)
    }

    /// The part of a queue that is taken from what is shared.
    #[inline]
    fn shared_part(&self, queued: u64) -> u64 {
        queued.saturating_sub(self.reserved)
    }

    /// Whether a frame may join a queue that holds `queued`.
    ///
    /// # Errors
    /// With the reason when it may not.
    #[inline]
    pub fn check(&self, queued: u64, frame: u16) -> Result<(), DropReason> {
        let would = queued + self.size(frame);
        let more = self.shared_part(would) - self.shared_part(queued);
        if more > self.free() {
            Err(DropReason::SHARED_BUFFER_FULL)
        } else if more > 0 && would > self.limit() {
            Err(DropReason::DYNAMIC_THRESHOLD)
        } else {
            Ok(())
        }
    }

    /// Takes the room of a frame that joins a queue which held `queued`.
    #[inline]
    pub fn commit(&mut self, queued: u64, frame: u16) {
        self.used += self.shared_part(queued + self.size(frame)) - self.shared_part(queued);
        debug_assert!(self.used <= self.total, "a packet that `check` refused was committed");
    }

    /// Gives back the room of a frame that leaves a queue which holds `queued`, the frame included.
    ///
    /// # Panics
    /// When the queue holds less than the frame: the caller's books are wrong.
    #[inline]
    pub fn release(&mut self, queued: u64, frame: u16) {
        self.used -= self.shared_part(queued) - self.shared_part(queued - self.size(frame));
    }
}

/// Cells are counted in `u32` arithmetic; zero would divide by zero.
pub(crate) const CELL: std::ops::RangeInclusive<Bytes> = Bytes(1)..=Bytes(65_536);
