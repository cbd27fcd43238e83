//! Messages of followed flows: writes of an application, cut as its transport cuts them, and their fate.

use super::{Tables, Trace};
use fanin_telemetry::{MessageRow, Name, TableError};
use fanin_units::Time;
use std::collections::VecDeque;

/// Messages of one flow that are not known to be acknowledged, in order.
#[derive(Debug)]
pub struct Messages {
    flow: u32,
    hosts: [Name; 2],
    /// Largest message: longer writes are cut into several.
    largest: u64,
    /// Messages and bytes that were written.
    count: u32,
    written: u64,
    open: VecDeque<MessageRow>,
}

impl Messages {
    /// Messages of a flow between two hosts, of which none is written yet.
    pub fn new(flow: u32, hosts: [Name; 2], largest: u64) -> Self {
        Messages { flow, hosts, largest, count: 0, written: 0, open: VecDeque::new() }
    }

    /// Records a write of the application.
    pub fn write(&mut self, now: Time, bytes: u64) {
        let mut left = bytes;
        while left > 0 {
            let size = left.min(self.largest);
            let [src, dst] = self.hosts.clone();
            self.open.push_back(MessageRow {
                flow: self.flow,
                message: self.count,
                src,
                dst,
                offset_bytes: self.written,
                size_bytes: size,
                posted_ps: now.ps(),
                sent_ps: None,
                delivered_ps: None,
                acked_ps: None,
                packets: 0,
                retransmits: 0,
            });
            (self.count, self.written, left) = (self.count + 1, self.written + size, left - size);
        }
    }

    /// Records that a packet with these bytes of the flow leaves at `start`; `again`: it was sent before.
    pub fn sent(&mut self, start: Time, seq: u64, payload: u16, again: bool) {
        let end = seq + u64::from(payload);
        let first = self.open.partition_point(|row| row.offset_bytes + row.size_bytes <= seq);
        for row in self.open.range_mut(first..).take_while(|row| row.offset_bytes < end) {
            row.sent_ps.get_or_insert(start.ps());
            row.packets += 1;
            row.retransmits += u32::from(again);
        }
    }

    /// The receiving application has `total` bytes in order.
    pub fn delivered(&mut self, now: Time, total: u64) {
        for row in self.open.iter_mut().take_while(|row| row.offset_bytes + row.size_bytes <= total) {
            row.delivered_ps.get_or_insert(now.ps());
        }
    }

    /// The sender knows that `total` bytes have arrived: the messages that are complete.
    pub fn acked(&mut self, now: Time, total: u64) -> Vec<MessageRow> {
        let complete = self.open.partition_point(|row| row.offset_bytes + row.size_bytes <= total);
        let done = |mut row: MessageRow| {
            row.acked_ps = Some(now.ps());
            row
        };
        self.open.drain(..complete).map(done).collect()
    }

    /// Ends the messages of a flow: all have arrived, and are acknowledged, where these times say so.
    pub fn end(mut self, finish: Option<Time>, acked: Option<Time>) -> Vec<MessageRow> {
        if let Some(finish) = finish {
            self.delivered(finish, u64::MAX);
        }
        let mut rows = acked.map_or_else(Vec::new, |acked| self.acked(acked, u64::MAX));
        rows.extend(self.open);
        rows
    }
}

impl Trace {
    /// Records a write of the application at the end of a followed flow that sends its data; `largest`: longer writes are cut
    /// into messages of so many bytes.
    pub fn wrote(&mut self, now: Time, (flow, hosts): (u32, [Name; 2]), bytes: u64, largest: Option<u64>) {
        if self.follows(flow) {
            let new = || Messages::new(flow, hosts, largest.unwrap_or(u64::MAX));
            self.messages.entry(flow).or_insert_with(new).write(now, bytes);
        }
    }

    /// Records that the sender of a followed flow knows that so many bytes have arrived; writes the messages that are complete.
    pub fn acked(&mut self, now: Time, flow: u32, total: u64) -> Vec<MessageRow> {
        self.messages.get_mut(&flow).map_or_else(Vec::new, |messages| messages.acked(now, total))
    }
}

impl Tables {
    /// Writes messages that are complete, or will never be.
    pub fn complete(&mut self, messages: Vec<MessageRow>) -> Result<(), TableError> {
        messages.into_iter().try_for_each(|row| self.messages.push(row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: fn(u64) -> Time = Time::from_ps;

    fn written() -> Messages {
        let mut messages = Messages::new(7, ["h0".into(), "h1".into()], 1_000);
        messages.write(AT(5), 2_500);
        messages.write(AT(9), 0);
        messages.write(AT(10), 400);
        messages
    }

    #[test]
    fn writes_are_cut_and_each_message_has_its_times() {
        let mut messages = written();
        messages.sent(AT(20), 0, 600, false);
        messages.sent(AT(30), 600, 600, false); // of the first and the second
        messages.sent(AT(40), 600, 600, true);
        messages.delivered(AT(50), 1_999);
        let done = messages.acked(AT(60), 1_200);
        let row = &done[0];
        assert_eq!((done.len(), row.message, row.offset_bytes, row.size_bytes, row.posted_ps), (1, 0, 0, 1_000, 5));
        assert_eq!((row.sent_ps, row.delivered_ps, row.acked_ps), (Some(20), Some(50), Some(60)));
        assert_eq!((row.packets, row.retransmits), (3, 1));
        let rest = messages.end(Some(AT(70)), None);
        let places: Vec<_> = rest.iter().map(|row| (row.message, row.offset_bytes, row.size_bytes, row.posted_ps)).collect();
        assert_eq!(places, [(1, 1_000, 1_000, 5), (2, 2_000, 500, 5), (3, 2_500, 400, 10)]);
        assert_eq!((rest[0].sent_ps, rest[0].packets, rest[0].retransmits), (Some(30), 2, 1));
        assert!(rest.iter().all(|row| row.delivered_ps == Some(70) && row.acked_ps.is_none()));
        assert_eq!(rest[1].sent_ps, None);
    }

    #[test]
    fn a_message_is_delivered_once() {
        let mut messages = written();
        messages.delivered(AT(50), 1_000);
        messages.delivered(AT(60), 2_000);
        let rows = messages.end(Some(AT(70)), Some(AT(80)));
        let delivered: Vec<_> = rows.iter().map(|row| row.delivered_ps).collect();
        assert_eq!(delivered, [Some(50), Some(60), Some(70), Some(70)]);
        assert!(rows.iter().all(|row| row.acked_ps == Some(80)));
    }
}
