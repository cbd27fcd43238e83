//! Admission: the policies by which a port accepts a packet or has no room.

use crate::{cells, DropReason, PortView, Unit};
use fanin_params::{choice, params, Cx};
use fanin_units::{Amount, Bytes};

params! {
    /// Separate buffer of fixed size for each port (drop tail).
    pub struct StaticBuffer {
        /// Buffer of each port: a packet that does not fit beside those that wait is dropped. Source: S-ECN §III-A (512 KB,
        /// the largest of its testbed).
        pub per_port: Amount = Amount::Bytes(512_000);
    }
}

params! {
    /// One buffer shared by all ports, with a dynamic threshold: each queue may grow to α times the free buffer. Source: DT.
    pub struct DynamicBuffer {
        /// Buffer of the whole switch. Source: DCTCP §4 (4 MB: shallow-buffered switches of 48 ports).
        pub total: Amount = Amount::Bytes(4_000_000);
        /// α: limit of a queue, as a multiple of the free buffer. Source: DT (with 1 a single congested queue takes half of
        /// the buffer); chips offer powers of two from 1/128 to 8.
        pub alpha: f64 = 1.0, in ALPHA;
        /// Reserved buffer of each port, besides its share and out of `total`; if absent, none.
        pub reserved: Option<Amount>;
    }
}

impl DynamicBuffer {
    /// Largest queue with this α, including the port's reservation.
    pub(crate) fn most(&self, alpha: f64) -> Amount {
        let most = self.alone(alpha).saturating_add(self.reserved.map_or(0, |reserved| reserved.count()));
        match self.total {
            Amount::Bytes(_) => Amount::Bytes(most),
            Amount::Packets(_) => Amount::Packets(most),
            Amount::Cells(_) => Amount::Cells(most),
        }
    }

    /// Limit of a queue with this α while all others are empty, in the unit of `total`: α/(1 + α) of it. Source: DT.
    pub fn alone(&self, alpha: f64) -> u64 {
        libm::floor(alpha / (1.0 + alpha) * self.total.count() as f64) as u64
    }
}

params! {
    /// An unlimited buffer: no packet is dropped for lack of room.
    pub struct UnlimitedBuffer { }
}

/// Names of buffers at devices and in other simulators.
fn meant(kind: &str) -> Option<&'static str> {
    match kind {
        "shared" | "shared_buffer" | "dt" | "dynamic_threshold" | "alpha" => {
            Some("did you mean 'dynamic'? It is one buffer that all ports share, each up to alpha times what is free")
        }
        "drop_tail" | "droptail" | "tail_drop" | "taildrop" | "fifo" | "fixed" | "per_port" | "dedicated" => {
            Some("did you mean 'static'? It is a fixed amount per port (drop tail)")
        }
        "infinite" | "none" | "lossless" => Some("did you mean 'unlimited'?"),
        _ => None,
    }
}

choice! {
    /// Buffer of waiting packets. A packet that finds its port idle goes onto the wire and needs none.
    pub enum Buffer, meaning meant {
        /// Separate buffer of fixed size for each port (drop tail).
        "static" => Static(StaticBuffer),
        /// One buffer shared by all ports, with a dynamic threshold: each queue may grow to α times the free buffer. Source:
        /// DT.
        "dynamic" => Dynamic(DynamicBuffer),
        /// Unlimited buffer.
        "unlimited" => Unlimited(UnlimitedBuffer),
    }
}

impl Buffer {
    /// True if something is counted in cells.
    pub fn counts_cells(&self) -> bool {
        match self {
            Buffer::Static(b) => Unit::of(b.per_port) == Unit::Cells,
            Buffer::Dynamic(b) => Unit::of(b.total) == Unit::Cells,
            Buffer::Unlimited(_) => false,
        }
    }

    /// Records errors that single keys cannot show.
    pub fn check(&self, cx: &mut Cx) {
        match self {
            Buffer::Static(b) => warn_of_zero(cx, "per_port", b.per_port),
            Buffer::Dynamic(b) => {
                warn_of_zero(cx, "total", b.total);
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

/// Warns of a buffer that holds nothing.
pub(crate) fn warn_of_zero(cx: &mut Cx, key: &str, amount: Amount) {
    if amount.count() == 0 {
        cx.key(key, |cx| cx.warn(None, "is zero: every packet that finds its port busy is dropped", None).severity);
    }
}

/// A buffer shared by the queues of one switch, with a dynamic threshold per queue.
///
/// T(t) = α · (B − Q(t)): a packet is admitted when its queue, with it, is at most T. Source: DT, for
/// packets of any size: with the arriving packet counted, as a static limit does. Amounts are in the unit of `total`.
/// With `reserved`, a queue's first `reserved` are its own and neither counted in Q nor measured against T. Each port has its
/// own α; `alpha` of the parameters is that of the ports without exception, and of no meaning here.
///
/// Deviation: none for α; the paper has no reservation.
///
/// ```
/// use fanin_switch::{DynamicBuffer, DropReason, SharedBuffer};
/// use fanin_units::Amount;
/// let mut buffer = SharedBuffer::new(&DynamicBuffer { total: Amount::Packets(8), alpha: 1.0, reserved: None }, 4, 80);
/// let mut queue = 0;
/// while buffer.check(1.0, queue, 1518).is_ok() {
///     buffer.commit(&mut queue, 1518);
/// }
/// assert_eq!((queue, buffer.free()), (4, 4)); // α/(1 + α) of the buffer
/// assert_eq!(buffer.check(1.0, queue, 1518), Err(DropReason::DYNAMIC_THRESHOLD));
/// ```
#[derive(Clone, Debug)]
pub struct SharedBuffer {
    /// B: size of the shared buffer, without reservations.
    total: u64,
    /// Q: part of the shared buffer that is in use.
    used: u64,
    reserved: u64,
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
            unit: Unit::of(params.total),
            cell,
        }
    }

    /// Unit of the buffer: that of every `queued` argument.
    pub fn unit(&self) -> Unit {
        self.unit
    }

    /// Amount that a frame takes, in the buffer's unit.
    #[inline]
    pub fn size(&self, frame: u16) -> u64 {
        self.unit.size(frame, self.cell)
    }

    /// Shared amount that is not used.
    #[inline]
    pub fn free(&self) -> u64 {
        self.total - self.used
    }

    /// Part of the shared buffer that is in use.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// The most that a queue with this α may hold now, reservation included.
    #[inline]
    pub fn limit(&self, alpha: f64) -> u64 {
        self.reserved.saturating_add((alpha * self.free() as f64) as u64)
    }

    /// Part of a queue that is taken from the shared buffer.
    #[inline]
    fn shared_part(&self, queued: u64) -> u64 {
        queued.saturating_sub(self.reserved)
    }

    /// Checks that a frame may join a queue with this α that holds `queued`.
    ///
    /// # Errors
    /// With the reason when it may not.
    #[inline]
    pub fn check(&self, alpha: f64, queued: u64, frame: u16) -> Result<(), DropReason> {
        let would = queued + self.size(frame);
        let more = self.shared_part(would) - self.shared_part(queued);
        if more > self.free() {
            Err(DropReason::SHARED_BUFFER_FULL)
        } else if more > 0 && would > self.limit(alpha) {
            Err(DropReason::DYNAMIC_THRESHOLD)
        } else {
            Ok(())
        }
    }

    /// Takes the room of a frame that joins a queue which held `queued`; adds the frame to that.
    #[inline]
    pub fn commit(&mut self, queued: &mut u64, frame: u16) {
        let would = *queued + self.size(frame);
        self.used += self.shared_part(would) - self.shared_part(*queued);
        *queued = would;
        debug_assert!(self.used <= self.total, "a packet that `check` refused was committed");
    }

    /// Gives back the room of a frame that leaves a queue which held `queued`, the frame included; subtracts the frame from that.
    ///
    /// # Panics
    /// When the queue holds less than the frame: the caller's books are wrong.
    #[inline]
    pub fn release(&mut self, queued: &mut u64, frame: u16) {
        let left = *queued - self.size(frame);
        self.used -= self.shared_part(*queued) - self.shared_part(left);
        *queued = left;
    }
}

/// Bound on the queues of one port: its own limit, or its share of the switch's buffer.
#[derive(Clone, Debug, PartialEq)]
pub enum Admission {
    Unlimited,
    /// A fixed buffer for all classes together.
    Static(Amount),
    /// A bound of these bytes, for which the crossbar of a combined switch leaves room: every packet that comes is accepted.
    Granted(Bytes),
    /// The shared buffer decides, by the port's α. `queued`: by class, what waits in the buffer's unit.
    Shared {
        alpha: f64,
        queued: Vec<u64>,
    },
}

impl Admission {
    /// The limit, where admission is nothing but that: the caller may then compare by itself, `u64::MAX` standing for no limit.
    pub fn simple_limit(&self) -> Option<Amount> {
        match self {
            Admission::Unlimited | Admission::Granted(_) => Some(Amount::Bytes(u64::MAX)),
            Admission::Static(limit) => Some(*limit),
            Admission::Shared { .. } => None,
        }
    }

    /// True for a share of the switch's buffer.
    pub fn is_shared(&self) -> bool {
        matches!(self, Admission::Shared { .. })
    }

    /// Checks that the port's own limit, if it has one, lets a frame join the queue of `view`; `cell`: bytes of a cell.
    ///
    /// # Errors
    /// With the reason when it does not.
    #[inline]
    pub fn check(&self, view: &PortView, frame: u16, cell: u32) -> Result<(), DropReason> {
        let Admission::Static(limit) = self else { return Ok(()) };
        let would = match limit {
            Amount::Bytes(_) => view.queue_bytes + u64::from(frame),
            Amount::Packets(_) => u64::from(view.queue_packets) + 1,
            Amount::Cells(_) => u64::from(view.queue_cells + cells(frame, cell)),
        };
        if would > limit.count() {
            Err(DropReason::BUFFER_FULL)
        } else {
            Ok(())
        }
    }
}

/// Cells are counted in `u32` arithmetic; zero would divide by zero.
pub(crate) const CELL: std::ops::RangeInclusive<Bytes> = Bytes(1)..=Bytes(65_536);
/// Accepted range of α, for shared buffers.
pub(crate) const ALPHA: std::ops::RangeInclusive<f64> = 0.001..=1024.0;
