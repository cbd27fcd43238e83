//! Receiver functions beyond RFC 9293: autotuned window, adaptive delay of ACKs, merged SACKs, D-SACK. These are functions of
//! Linux 5.15 to 6.18, which differ by `frame_share` and `growth`.

use crate::config::{fraction, part, GrowingWindow, ReceiveWindow, Tcp, WindowGrowth};
use fanin_units::{Span, Time};

/// Assumed size of full segments before the first one. Source: Linux tcp_initialize_rcv_mss, TCP_MSS_DEFAULT.
const FIRST_MSS: u32 = 536;
/// Smallest segment from which the size of full ones is estimated. Source: Linux TCP_MIN_MSS.
const LEAST_MSS: u32 = 88;
/// Number of ACKs with equal number that are never merged. Source: Linux TCP_FASTRETRANS_THRESH.
const UNMERGED: u8 = 3;
/// Largest adaptive delay on a connection with data in one direction only. Source: Linux tcp_send_delayed_ack (HZ / 2).
const LONGEST_DELAY: Span = Span::from_ms(500);

/// Receiver functions beyond RFC 9293; present only if the configuration asks for one of them.
#[derive(Clone, Debug)]
pub(super) struct Receiver {
    pub window: Option<Autotuning>,
    /// Estimated payload of a full segment. Source: Linux rcv_mss.
    pub mss: u32,
    /// Size of the last segment shorter than that.
    last_size: u32,
    /// Present delay of an ACK; zero before the first data. Source: Linux icsk_ack.ato.
    ato: Span,
    /// End of the last segment that may be the end of a message.
    pushed: u64,
    /// Number of messages that this end answered at once, up to 255. Source: Linux icsk_ack.pingpong.
    interactive: u8,
    ect_seen: bool,
    echoing: bool,
    /// RTT measured by the receiver; zero before the first sample.
    pub rtt: Span,
    rtt_end: u64,
    rtt_at: Time,
    last_echo: u32,
    /// ACKs merged so far, ACKs with the number `same_number` that were not merged, and the time at which the merged one
    /// leaves.
    merged: u32,
    unmerged: u8,
    same_number: u64,
    pub merged_at: Time,
    /// Data that arrived twice, to be reported by the next ACK. Source: RFC 2883.
    pub duplicate: Option<(u64, u64)>,
}

/// Decision about the ACK of an out-of-order segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Merging {
    Now,
    At(Time),
}

impl Receiver {
    /// State for a new connection; `None` if `cfg` asks for none of the functions.
    pub fn new(cfg: &Tcp, now: Time) -> Option<Box<Receiver>> {
        let window = match &cfg.receive_window {
            ReceiveWindow::Auto(params) => Some(Autotuning::new(params, now)),
            ReceiveWindow::Fixed(_) => None,
        };
        if window.is_none() && !cfg.adapts_acks() && !cfg.merges_sacks() && !cfg.dsack {
            return None;
        }
        Some(Box::new(Receiver {
            window,
            mss: FIRST_MSS,
            last_size: 0,
            ato: Span::ZERO,
            pushed: 0,
            interactive: 0,
            ect_seen: false,
            echoing: false,
            rtt: Span::ZERO,
            rtt_end: 0,
            rtt_at: now,
            last_echo: 0,
            merged: 0,
            unmerged: 0,
            same_number: 0,
            merged_at: Time::MAX,
            duplicate: None,
        }))
    }

    /// Notes that the connection is open and offers `window`.
    pub fn open(&mut self, cfg: &Tcp, now: Time, mss: u32, window: u64) {
        self.mss = mss.min(FIRST_MSS).min((window / 2) as u32).max(LEAST_MSS);
        (self.rtt_end, self.rtt_at) = (1 + window, now);
        if let (Some(tuning), ReceiveWindow::Auto(params)) = (&mut self.window, &cfg.receive_window) {
            tuning.open(params, now, mss, window);
        }
    }

    /// Takes an RTT sample by an echoed timestamp, in a full segment of `len` bytes, while `held` bytes are unread; `rtt` is
    /// zero within a tick, `tick`. Source: Linux tcp_rcv_rtt_measure_ts, tcp_rcv_rtt_update.
    pub fn note_echo(&mut self, echo: u32, len: u32, held: u64, tick: Span, rtt: impl FnOnce() -> Option<Span>) {
        if echo == self.last_echo {
            return;
        }
        self.last_echo = echo;
        if len < self.mss {
            return;
        }
        let Some(rtt) = rtt() else { return };
        let first = self.rtt == Span::ZERO;
        let (rtt, at_once) = match self.window.as_ref().map_or(WindowGrowth::Linux618, |w| w.growth) {
            WindowGrowth::Linux515 => (rtt.max(tick), first),
            WindowGrowth::Linux618 if rtt == Span::ZERO || (held > 0 && !first && rtt >= self.rtt) => return,
            WindowGrowth::Linux618 => (rtt, first || rtt < self.rtt),
        };
        self.rtt = if at_once { rtt } else { self.rtt - self.rtt / 8 + rtt / 8 };
    }

    /// Notes that RCV.NXT has come to `next`, and `window` further bytes are offered: the time in which a window arrives
    /// bounds the RTT.
    /// Source: Linux tcp_rcv_rtt_measure.
    pub fn note_window(&mut self, now: Time, next: u64, window: u64) {
        if next < self.rtt_end {
            return;
        }
        let took = now.since(self.rtt_at).max(Span::from_us(1));
        if self.rtt == Span::ZERO || took < self.rtt {
            self.rtt = took;
        }
        (self.rtt_end, self.rtt_at) = (next + window, now);
    }

    /// Estimates segment size and ends of messages by a segment with `len` payload bytes and a TCP header of `header` bytes
    /// that ends at `end`; `push`: it carries PSH or FIN. `acked`: number of the last ACK, which offered `offered`; `most`:
    /// the largest segment. True if it is the second end of a message since that ACK. Source: Linux tcp_measure_rcv_mss.
    pub fn note_size(
        &mut self,
        (len, header): (u32, u32),
        end: u64,
        push: bool,
        (acked, offered): (u64, u64),
        most: u32,
    ) -> bool {
        let last = std::mem::take(&mut self.last_size);
        if len >= self.mss {
            if len != self.mss {
                if let Some(window) = &mut self.window {
                    window.note_frame(offered);
                }
            }
            self.mss = len.min(most);
            if push {
                self.pushed = end;
            }
            return false;
        }
        if len + header >= FIRST_MSS + 20 || (len + header >= LEAST_MSS + 20 && !push) {
            self.last_size = len;
            if len == last {
                self.mss = len;
                return false;
            }
        }
        let again = self.pushed > acked;
        self.pushed = end;
        again
    }

    /// True if a message may have ended since the last ACK, with number `acked`, and the application has read it. `again`:
    /// two have. Source: Linux __tcp_cleanup_rbuf.
    pub fn ends_message(&self, acked: u64, again: bool) -> bool {
        self.pushed > acked && (again || self.interactive == 0)
    }

    /// Adapts the delay of ACKs to in-order data that arrives `gap` after the last. Returns the least number of quick ACKs to
    /// follow. Source: Linux tcp_event_data_recv.
    pub fn note_gap(&mut self, cfg: &Tcp, gap: Span, rto: Span, window: u64) -> u8 {
        let least = cfg.delayed_ack_timeout;
        if self.ato == Span::ZERO {
            self.ato = least;
            return self.quick_acks(cfg.quick_acks, window);
        }
        if gap <= least / 2 {
            self.ato = self.ato / 2 + least / 2;
        } else if gap < self.ato {
            self.ato = (self.ato / 2 + gap).min(rto);
        } else if gap > rto {
            return self.quick_acks(cfg.quick_acks, window);
        }
        0
    }

    /// Limits quick ACKs to half as many as segments fit into the window. Source: Linux tcp_incr_quickack.
    fn quick_acks(&self, most: u32, window: u64) -> u8 {
        match window / (2 * u64::from(self.mss)) {
            0 => most.min(2) as u8,
            n => n.min(u64::from(most)) as u8,
        }
    }

    /// Disables delays of ACKs; returns the least number of quick ACKs. Source: Linux tcp_enter_quickack_mode.
    pub fn start_quick_acks(&mut self, cfg: &Tcp, most: u32, window: u64) -> u8 {
        self.interactive = 0;
        self.ato = cfg.delayed_ack_timeout;
        self.quick_acks(most.min(cfg.quick_acks), window)
    }

    /// True if a mark is to be acknowledged at once: the first of a series, or a packet that is not ECN-capable on a
    /// connection whose others are (likely a retransmission). `echo`: ECE is being sent, from this segment on too.
    /// Source: Linux __tcp_ecn_check_ce.
    pub fn is_urgent_for_ecn(&mut self, capable: bool, ce: bool, echo: bool) -> bool {
        let first = ce && !self.echoing;
        let odd = !capable && self.ect_seen;
        self.ect_seen |= capable;
        self.echoing = echo;
        first || odd
    }

    /// True if quick ACKs apply: not on a connection that answers each message.
    pub fn may_ack_quickly(&self) -> bool {
        self.interactive == 0
    }

    /// Notes that the application writes, `gap` after the last data arrived. Source: Linux tcp_event_data_sent.
    pub fn note_write(&mut self, gap: Span) {
        if gap < self.ato {
            self.interactive = self.interactive.saturating_add(1);
        }
    }

    /// Delay of the ACK that becomes due now. `acked`: number of the last one. Source: Linux tcp_send_delayed_ack.
    ///
    /// Deviation: an end without an RTT of its own, as its connection was open from the start, takes the one that it has measured as a
    /// receiver.
    pub fn delay(&self, cfg: &Tcp, srtt: Span, acked: u64) -> Span {
        let least = cfg.delayed_ack_timeout;
        let mut ato = self.ato;
        if ato > least {
            let mut most = if self.interactive > 0 || self.pushed > acked { cfg.delayed_ack_max } else { LONGEST_DELAY };
            let rtt = if srtt > Span::ZERO { srtt } else { self.rtt };
            most = most.min(rtt.max(least));
            ato = ato.min(most);
        }
        ato.min(cfg.delayed_ack_max)
    }

    /// Handles the expiry of the ACK timer. A delayed ACK that nothing overtook was delayed for nothing.
    /// Source: Linux tcp_delack_timer_handler, tcp_compressed_ack_kick.
    pub fn on_ack_timer(&mut self, cfg: &Tcp, now: Time, rto: Span) {
        if self.merged_at <= now {
            self.forget_merged();
        } else if self.interactive > 0 {
            self.interactive = 0;
            self.ato = cfg.delayed_ack_timeout;
        } else {
            self.ato = (self.ato * 2).min(rto);
        }
    }

    /// Notes that an ACK has been sent.
    pub fn forget_merged(&mut self) {
        self.merged = 0;
        self.merged_at = Time::MAX;
    }

    /// True if ACKs are waiting to be merged.
    pub fn is_merging(&self) -> bool {
        self.merged > 0
    }

    /// Decides about the ACK with number `next` that an out-of-order segment asks for. Source: Linux __tcp_ack_snd_check.
    pub fn merge(&mut self, cfg: &Tcp, now: Time, next: u64, srtt: Span) -> Merging {
        let crate::SackCompression::Timer(timer) = &cfg.sack_compression else { return Merging::Now };
        if self.merged >= timer.most {
            return Merging::Now;
        }
        if self.same_number != next {
            (self.same_number, self.unmerged) = (next, 0);
        }
        if self.unmerged < UNMERGED {
            self.unmerged += 1;
            return Merging::Now;
        }
        self.merged += 1;
        if self.merged_at == Time::MAX {
            let rtt = if srtt > Span::ZERO { self.rtt.min(srtt) } else { self.rtt };
            self.merged_at = now + timer.delay.min(rtt / 20) + timer.slack;
        }
        Merging::At(self.merged_at)
    }

    /// Records data that arrived twice, in a part of a segment; adjacent parts become one. Source: Linux tcp_dsack_set,
    /// tcp_dsack_extend.
    pub fn note_duplicate(&mut self, part: (u64, u64)) {
        self.duplicate = Some(match self.duplicate {
            Some(had) if part.0 <= had.1 && had.0 <= part.1 => (had.0.min(part.0), had.1.max(part.1)),
            _ => part,
        });
    }
}

/// Receive buffer autotuning: a window that grows with the rate. Source: DRS; Linux tcp_rcv_space_adjust, tcp_grow_window.
#[derive(Clone, Debug)]
pub(super) struct Autotuning {
    /// Present and largest memory, and the 256ths of it that are window, before and after the first full segment.
    /// Source: Linux sk_rcvbuf, tcp_rmem\[2\], scaling_ratio.
    memory: u64,
    max: u64,
    share: u64,
    frame_share: u64,
    /// Largest window that the memory allows, and the one earned by arrivals. Source: Linux window_clamp, rcv_ssthresh.
    clamp: u64,
    earned: u64,
    growth: WindowGrowth,
    /// Most bytes that the application has read in an RTT, and offset and time at which the present RTT began. Source: Linux
    /// rcvq_space.
    most: u64,
    round_from: u64,
    round_at: Time,
}

impl Autotuning {
    fn new(params: &GrowingWindow, now: Time) -> Self {
        let share = fraction(params.share);
        Autotuning {
            memory: params.buffer.get(),
            max: params.max_buffer.get(),
            share,
            frame_share: params.frame_share.map_or(share, fraction),
            clamp: 0,
            earned: 0,
            growth: params.growth,
            most: 0,
            round_from: 1,
            round_at: now,
        }
    }

    fn open(&mut self, params: &GrowingWindow, now: Time, mss: u32, window: u64) {
        self.earned = params.opening(mss);
        self.clamp = self.earned.max(part(self.memory, self.share).saturating_sub(u64::from(mss)));
        self.most = self.earned.min(window).min(10 * u64::from(mss));
        self.round_at = now;
    }

    /// Derives the share of window in memory from the first full segment; the window offered already, `offered`, counts as
    /// earned.
    /// Source: Linux 6.12 tcp_measure_rcv_mss, tcp_set_window_clamp.
    fn note_frame(&mut self, offered: u64) {
        if self.share == self.frame_share {
            return;
        }
        self.share = self.frame_share;
        let before = self.clamp;
        self.clamp = part(self.memory, self.share);
        self.earned = if self.clamp < before { self.earned.min(self.clamp) } else { self.earned.max(offered.min(self.clamp)) };
        self.most = self.most.min(self.clamp);
    }

    /// Opens the window for a segment of `len` bytes by two full segments of `mss`. `held`: bytes in memory, its own
    /// included. True if the window was opened. Source: Linux tcp_grow_window, __tcp_grow_window.
    ///
    /// Deviation: a short segment is taken to occupy as much memory as a full one.
    pub fn grow(&mut self, len: u32, mss: u32, held: u64) -> bool {
        let room = self.clamp.min(part(self.memory, self.share).saturating_sub(held)).saturating_sub(self.earned);
        if len < 128 || room == 0 {
            return false;
        }
        if len < mss {
            let (mut memory, mut window) = (mss / 2, part(self.max, self.share) / 2);
            while memory > len {
                memory /= 2;
                window /= 2;
            }
            if self.earned > window {
                return false;
            }
        }
        self.earned += room.min(2 * u64::from(len.max(mss)));
        true
    }

    /// Notes that the application has read up to offset `read` while `held` bytes are unread and data beyond a gap reaches
    /// `ahead` bytes further.
    /// Source: Linux tcp_rcv_space_adjust, tcp_rcvbuf_grow.
    pub fn on_read(&mut self, now: Time, (read, held, ahead): (u64, u64, u64), rtt: Span, mss: u32) {
        if rtt == Span::ZERO || now.since(self.round_at) < rtt {
            return;
        }
        let (unread, spare) = match self.growth {
            WindowGrowth::Linux515 => (0, 16 * u64::from(mss)),
            WindowGrowth::Linux618 => (held, 0),
        };
        let copied = (read - self.round_from).saturating_sub(unread);
        if copied > self.most {
            // Twice what came against losses, and twice the growth on top for a sender in slow start, one round on.
            let steady = u128::from(2 * copied + spare);
            let growth = steady * u128::from(copied - self.most) / u128::from(self.most.max(1));
            self.make_room(steady + 2 * growth, ahead);
            self.most = copied;
        }
        (self.round_from, self.round_at) = (read, now);
    }

    /// Notes data beyond a gap, which reaches `ahead` bytes further than the in-order data. Source: Linux 6.18
    /// tcp_data_queue_ofo, tcp_rcvbuf_grow.
    pub fn on_gap(&mut self, ahead: u64) {
        if self.growth == WindowGrowth::Linux618 {
            self.make_room(u128::from(2 * self.most), ahead);
        }
    }

    /// Grows the memory for a window of `wanted` bytes, and of `ahead` more if data beyond a gap counts.
    fn make_room(&mut self, wanted: u128, ahead: u64) {
        let ahead = if self.growth == WindowGrowth::Linux618 { ahead } else { 0 };
        let memory = ((wanted + u128::from(ahead)) * 256 / u128::from(self.share)).min(u128::from(self.max)) as u64;
        if memory > self.memory {
            self.memory = memory;
            self.clamp = part(memory, self.share);
        }
    }

    /// Selects the window to offer beside `held` unread bytes, while `offered` is offered already; `mss`: a full segment. The
    /// second value is true if less than half of the memory is free. Source: Linux __tcp_select_window.
    pub fn select(&self, held: u64, scale: u8, mss: u32, offered: u64) -> (u64, bool) {
        let all = part(self.memory, self.share);
        let (free, full) = (all.saturating_sub(held), self.clamp.min(all));
        let (mss, rest) = (u64::from(mss).min(full), (1 << scale) - 1);
        let short = free < full / 2;
        let free = if short { free & !rest } else { free };
        if short && (free < all >> 4 || free < mss) {
            return (0, true);
        }
        let free = free.min(self.earned);
        let window = if scale > 0 {
            (free + rest) & !rest
        } else if offered + mss <= free || offered > free {
            free - free % mss.max(1)
        } else if mss == full && free > offered + full / 2 {
            free
        } else {
            offered
        };
        (window, short)
    }

    /// True if a slow reader has freed so much memory that the peer should learn of it: the window would at least
    /// double, and `offered` is no more than half of the largest. Source: Linux __tcp_cleanup_rbuf.
    pub fn should_announce(&self, window: u64, offered: u64) -> bool {
        2 * offered <= self.clamp && window > 0 && window >= 2 * offered
    }
}
