//! PSH on segments other than the last one of the application's written data. Source: Linux tcp_sendmsg_locked, forced_push.

use crate::config::{HalfWindowPush, PushBit, Tcp};

/// Position of the last PSH, in the stream and in the application's writes.
#[derive(Clone, Debug, Default)]
pub(super) struct Push {
    /// End of the segment that last carried PSH, or would have. Source: Linux pushed_seq.
    pushed: u64,
    /// Half of the largest window that the peer had offered when the application wrote; zero: not known yet.
    half: u64,
    /// End of the application's present call, and the number of calls before.
    call_end: u64,
    calls: usize,
}

impl Push {
    /// State at the start of a connection; `None` if `cfg` does not ask for it.
    pub fn new(cfg: &Tcp) -> Option<Push> {
        matches!(cfg.push, PushBit::HalfWindow(_)).then(Push::default)
    }

    /// Notes that the application writes from offset `from` on. `sent`: all data written before has left, so that calls are
    /// counted anew; otherwise the writes count as one.
    pub fn written(&mut self, from: u64, sent: bool) {
        if sent {
            *self = Push { pushed: from, half: 0, call_end: from, calls: 0 };
        }
    }

    /// Notes that a segment that ends at `to` has left for the first time; `full`: it ends a socket buffer; `largest`: the
    /// largest window that was offered. True if it carries PSH: it ends more than half a window beyond the last one, or with
    /// a call.
    ///
    /// A call that ends within a socket buffer sets PSH there, and the next one takes it back, since it fills that buffer up.
    pub fn sent(&mut self, params: &HalfWindowPush, to: u64, full: bool, largest: u64) -> bool {
        if self.half == 0 {
            self.half = (largest / 2).max(1);
            self.next_call(params);
        }
        while to > self.call_end {
            self.next_call(params);
        }
        let due = full && (to > self.pushed + self.half || to == self.call_end);
        if due {
            self.pushed = to;
        }
        due
    }

    fn next_call(&mut self, params: &HalfWindowPush) {
        self.pushed = self.call_end;
        let size = params.writes.get(self.calls).or(params.writes.last()).map_or(u64::MAX / 2, |bytes| bytes.get());
        self.calls = self.calls.saturating_add(1);
        self.call_end = self.call_end.saturating_add(size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanin_units::Bytes;

    /// Which of the first `n` segments of 1448 bytes carry PSH, where the window is 65,160 bytes; `goal`: segments of a socket buffer.
    fn pushed(writes: &[u64], n: u64, goal: u64) -> Vec<u64> {
        let params = HalfWindowPush { writes: writes.iter().map(|w| Bytes(*w)).collect() };
        let mut push = Push::default();
        push.written(1, true);
        (1..=n).filter(|i| push.sent(&params, 1 + i * 1448, i % goal == 0, 65_160)).collect()
    }

    /// 32,580 bytes are 22.5 segments.
    #[test]
    fn one_call_pushes_every_half_window() {
        assert_eq!(pushed(&[], 100, 1), [23, 46, 69, 92]);
    }

    /// As measured with Linux 6.18, an application that wrote 14,480 bytes and then on to multiples of 64 KiB: 10, 33, 68, 114, 159,
    /// 204, 249, 295, 340. Calls end within segments 46, 91, … but the next call takes their PSH back.
    #[test]
    fn calls_are_counted_one_by_one() {
        assert_eq!(pushed(&[14_480, 51_056, 65_536], 345, 1), [10, 33, 68, 114, 159, 204, 249, 295, 340]);
    }

    /// With bursts, a PSH waits for the end of a socket buffer, here of 22 segments.
    #[test]
    fn bursts_are_pushed_as_a_whole() {
        assert_eq!(pushed(&[], 200, 22), [44, 88, 132, 176]);
    }

    /// Half a window is counted from where the application wrote again.
    #[test]
    fn a_new_message_begins_anew() {
        let params = HalfWindowPush { writes: Vec::new() };
        let mut push = Push::default();
        push.written(1, true);
        assert!(!push.sent(&params, 1 + 20_000, true, 65_160));
        push.written(20_001, true);
        assert!(!push.sent(&params, 20_001 + 32_580, true, 65_160));
        assert!(push.sent(&params, 20_001 + 34_000, true, 65_160));
        push.written(100_000, false);
        assert!(push.sent(&params, 20_001 + 68_000, true, 65_160));
    }
}
