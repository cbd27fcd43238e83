//! The result tables. Changing one changes docs/results.md, which a test compares.

use crate::chunk::RowGroup;
use crate::column::{Cell, Name};
use crate::table::{ColumnInfo, Row};
use parquet::errors::ParquetError;

macro_rules! rows {
    ($(
        $(#[doc = $doc:expr])*
        pub struct $name:ident, $table:literal / $version:literal {
            $( $(#[doc = $field_doc:expr])* $unit:literal $field:ident : $ty:ty, )*
        }
    )*) => {$(
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $( $(#[doc = $field_doc])* pub $field: $ty, )*
        }

        impl Row for $name {
            const TABLE: &'static str = $table;
            const VERSION: u32 = $version;
            fn columns() -> Vec<ColumnInfo> {
                vec![$( ColumnInfo {
                    name: stringify!($field),
                    unit: $unit,
                    doc: concat!($($field_doc),*),
                    parquet: <$ty as Cell>::PARQUET,
                    optional: <$ty as Cell>::OPTIONAL,
                }, )*]
            }
            fn encode(rows: &[Self], group: &mut RowGroup<'_, '_>) -> Result<(), ParquetError> {
                $( group.column(|chunk| <$ty as Cell>::encode(rows.iter().map(|row| &row.$field), chunk))?; )*
                Ok(())
            }
        }
    )*};
}

rows! {
    /// One flow.
    pub struct FlowRow, "flows" / 1 {
        /// Number, in order of creation.
        "" flow: u32,
        /// The id given in an explicit or imported flow.
        "" id: Option<Name>,
        /// Name of the traffic entry.
        "" group: Name,
        /// Query that the flow answers.
        "" query: Option<u32>,
        /// Host that sends the data.
        "" src: Name,
        /// Host that receives the data.
        "" dst: Name,
        /// Name of the transport.
        "" transport: Name,
        /// Traffic class.
        "" class: u8,
        /// Application bytes to deliver.
        "B" size_bytes: u64,
        /// Bytes that `dst` sent first on the same connection.
        "B" request_bytes: u64,
        /// Time at which the application asked.
        "ps" start_ps: u64,
        /// Last byte handed to the receiving application.
        "ps" finish_ps: Option<u64>,
        /// Last byte acknowledged at the sender.
        "ps" acked_ps: Option<u64>,
        /// Completion time alone on an idle network.
        "ps" ideal_ps: u64,
        /// Round trip of a full data packet and its acknowledgement on an idle network.
        "ps" base_rtt_ps: u64,
        /// `complete`, `incomplete` or `aborted`.
        "" status: Name,
        /// Bytes in order at the receiver.
        "B" delivered_bytes: u64,
        /// Data packets, retransmissions included.
        "" packets_sent: u64,
        /// Data packets sent again.
        "" retransmits: u64,
        /// Retransmission timeouts.
        "" timeouts: u32,
        /// Fast recoveries entered.
        "" recoveries: u32,
        /// Window reductions caused by ECN.
        "" ecn_reductions: u32,
        /// Data packets that arrived with CE.
        "" marked: u64,
        /// Data packets that arrived after one that was sent later; retransmissions are packets of their own (RFC 4737 §3.3).
        "" reordered: u64,
        /// Reordered packets before which three arrived in a row that were sent later (RFC 4737 §5, n = 3).
        "" reordered_3: u64,
        /// Largest reordering extent, in packets: arrivals since the first that was sent later (RFC 4737 §4.2).
        "" reordering_extent: u32,
        /// Longest time by which a packet came after the first that was sent later (RFC 4737 §4.3).
        "ps" reordering_late_ps: u64,
    }

    /// One query, or one round of an incast.
    pub struct QueryRow, "queries" / 1 {
        /// Number of the query.
        "" query: u32,
        /// Name of the traffic entry.
        "" group: Name,
        /// Host that asks.
        "" client: Name,
        /// Time at which the client asked.
        "ps" start_ps: u64,
        /// Time at which the last response was complete.
        "ps" finish_ps: Option<u64>,
        /// Responses expected.
        "" responses: u32,
        /// Bytes of all responses.
        "B" size_bytes: u64,
    }

    /// A collective operation of one group of ranks, in one iteration of a job.
    pub struct CollectiveRow, "collectives" / 1 {
        /// Name of the traffic entry.
        "" group: Name,
        /// Iteration, from 0.
        "" iteration: u32,
        /// Position among the operations of an iteration, from 0.
        "" operation: u32,
        /// `all_reduce`, `all_gather`, `reduce_scatter` or `all_to_all`.
        "" collective: Name,
        /// `ring`, `tree`, `double_tree`, `direct` or `staggered`.
        "" algorithm: Name,
        /// Number of the group of ranks, from 0.
        "" communicator: u32,
        /// Ranks of the group.
        "" ranks: u32,
        /// Bytes of a rank's buffer.
        "B" size_bytes: u64,
        /// Time at which the first rank entered the operation.
        "ps" start_ps: u64,
        /// Time at which the last rank entered the operation.
        "ps" ready_ps: Option<u64>,
        /// Time at which the last rank was done.
        "ps" finish_ps: Option<u64>,
        /// Algorithm bandwidth: bytes over the time from start to finish.
        "bit/s" algbw_bps: Option<u64>,
        /// Bandwidth as a link of each rank sees it: `algbw_bps` times 2(n − 1)/n for all-reduce, (n − 1)/n for the others.
        "bit/s" busbw_bps: Option<u64>,
    }

    /// A port over one sampling interval. The first and the last sample have a row for every port, those in between only for
    /// ports at which something has happened: a row that is not there would be all zeros.
    pub struct PortRow, "ports" / 2 {
        /// End of the interval.
        "ps" time_ps: u64,
        /// Name of the port.
        "" port: Name,
        /// Frame bytes sent in the interval.
        "B" tx_bytes: u64,
        /// Frames sent in the interval.
        "" tx_packets: u64,
        /// Queue at the end of the interval.
        "B" queue_bytes: u64,
        /// Queue at the end of the interval.
        "" queue_packets: u32,
        /// Largest queue in the interval.
        "B" queue_max_bytes: u64,
        /// Bytes of the queue at the end of the interval that mechanisms held.
        "B" held_bytes: u64,
        /// Packets dropped in the interval.
        "" drops: u32,
        /// Packets marked in the interval.
        "" marks: u32,
    }

    /// A packet that reaches a watched port.
    pub struct QueueRow, "queues" / 2 {
        /// Arrival of the packet.
        "ps" time_ps: u64,
        /// Name of the port.
        "" port: Name,
        /// Queue as the packet found it.
        "B" queue_bytes: u64,
        /// Queue as the packet found it.
        "" queue_packets: u32,
        /// Flow of the packet.
        "" flow: u32,
        /// Size of the packet.
        "B" frame_bytes: u16,
        /// Marked with CE at this port.
        "" marked: bool,
        /// Dropped at this port, or trimmed on its arrival.
        "" dropped: bool,
        /// Took the place of the last packet in the queue, which was trimmed.
        "" replaced: bool,
        /// Dropped at the head of the queue, in which it was until then.
        "" at_head: bool,
    }

    /// A record of an analysed trace, in no result: what `fanin analyze --records` writes.
    pub struct RecordRow, "records" / 1 {
        /// Arrival of the packet, or time of the sample.
        "ps" time_ps: u64,
        /// Name of the port.
        "" port: Name,
        /// Queue as the packet found it; null where it is unknown.
        "B" queue_bytes: Option<u64>,
        /// Size of the packet; 0 where it is unknown.
        "B" frame_bytes: u32,
        /// Flow of the packet, by name.
        "" flow: Option<Name>,
        /// Marked with CE, in captures on both sides of a port: at this port.
        "" marked: bool,
        /// Dropped at this port.
        "" dropped: bool,
        /// Took the place of the last packet in the queue, which was trimmed.
        "" replaced: bool,
        /// Time that the packet waited; null where that is unknown.
        "ps" wait_ps: Option<u64>,
        /// Queue, drop and wait are an estimate.
        "" estimated: bool,
    }

    /// A dropped packet.
    pub struct DropRow, "drops" / 1 {
        /// Time of the drop.
        "ps" time_ps: u64,
        /// Port at which the packet was dropped; where no port was chosen, the switch.
        "" port: Name,
        /// Flow of the packet.
        "" flow: u32,
        /// Size of the packet.
        "B" frame_bytes: u16,
        /// Transport payload of the packet.
        "B" payload_bytes: u16,
        /// TCP sequence number or UDP datagram number.
        "" seq: u32,
        /// Reason of the drop.
        "" reason: Name,
        /// Queue as the packet found it.
        "B" queue_bytes: u64,
    }

    /// A class of a port was paused by its neighbour.
    pub struct PauseRow, "pauses" / 1 {
        /// The port that waited: a switch's, or the NIC of a host.
        "" port: Name,
        /// Traffic class, which is the priority in PFC frames.
        "" class: u8,
        /// Begin of the pause. The frame that was on the wire is sent to its end.
        "ps" start_ps: u64,
        /// End of the pause; null where the run ended before.
        "ps" end_ps: Option<u64>,
        /// Time at which the neighbour decided to ask for the pause, as bytes received from this port reached XOFF.
        "ps" asked_ps: Option<u64>,
        /// Port of the neighbour for which most of the bytes received from this port waited then.
        "" behind: Option<Name>,
        /// True if the class had been paused at `behind` itself since its queue was last empty.
        "" held_up: bool,
        /// Frames that asked for the pause: the first, and those that asked again while it lasted.
        "" frames: u32,
    }

    /// A change of a port's state by a mechanism.
    pub struct StateRow, "states" / 1 {
        /// Time of the change.
        "ps" time_ps: u64,
        /// Name of a switch's port.
        "" port: Name,
        /// Key of the mechanism.
        "" mechanism: Name,
        /// Side of the port that the state is about.
        "" about: Name,
        /// State from now on, a word of the mechanism.
        "" state: Name,
        /// Degree of the state; zero where nothing is the matter.
        "" degree: u32,
    }

    /// A virtual output queue of a combined switch in which packets have waited since the sample before.
    pub struct VoqRow, "voqs" / 1 {
        /// End of the sampling interval.
        "ps" time_ps: u64,
        /// Link that the queue's packets came in by; null: they are the switch's own.
        "" input: Option<Name>,
        /// Port that the queue's packets wait for.
        "" port: Name,
        /// Frame bytes that wait in the queue.
        "B" queue_bytes: u64,
        /// Packets that wait in the queue.
        "" queue_packets: u32,
        /// Largest queue in the interval.
        "B" queue_max_bytes: u64,
        /// Bytes waiting at the end of the interval that mechanisms held.
        "B" held_bytes: u64,
        /// Packets dropped in the interval as they did not fit.
        "" drops: u32,
    }

    /// A packet with a stamp has reached a host.
    pub struct StampRow, "stamps" / 1 {
        /// Time at which the host received the packet.
        "ps" received_ps: u64,
        /// Host that the packet reached.
        "" host: Name,
        /// Port that stamped the packet: the last watched one on its way.
        "" port: Name,
        /// Time register of the stamp [ticks, modulo 2^32]: arrival of the packet at the port.
        "" stamp_time: u32,
        /// Length register of the stamp [units, at most 65535]: queue that the packet found there.
        "" stamp_length: u16,
        /// Flow of the packet.
        "" flow: u32,
        /// Size of the packet, stamp included.
        "B" frame_bytes: u16,
        /// True if the packet arrived with CE.
        "" marked: bool,
    }

    /// The state of a followed flow's sender after something has changed it.
    pub struct HostRow, "hosts" / 2 {
        /// Time of the change.
        "ps" time_ps: u64,
        /// Number of the flow.
        "" flow: u32,
        /// Host that sends the flow's data.
        "" host: Name,
        /// Event that changed the state.
        "" event: Name,
        /// The packet that arrived, by its number in `segments`.
        "" packet: Option<u64>,
        /// `open`, `cwr`, `recovery` or `loss`.
        "" phase: Name,
        /// Congestion window.
        "B" cwnd_bytes: u64,
        /// Slow-start threshold; none before the first reduction.
        "B" ssthresh_bytes: Option<u64>,
        /// Smoothed RTT; none before the first sample.
        "ps" srtt_ps: Option<u64>,
        /// RTT variation.
        "ps" rttvar_ps: Option<u64>,
        /// Retransmission timeout, back-off included.
        "ps" rto_ps: u64,
        /// DCTCP's alpha in millionths.
        "" alpha_ppm: Option<u32>,
        /// Bytes acknowledged.
        "B" acked_bytes: u64,
        /// Bytes sent at least once.
        "B" sent_bytes: u64,
        /// Sent and not cumulatively acknowledged.
        "B" in_flight_bytes: u64,
        /// Believed to be in the network.
        "B" pipe_bytes: u64,
        /// Written by the application and not sent yet.
        "B" unsent_bytes: u64,
        /// Receive window that the other end has offered, from what it has acknowledged on.
        "B" window_bytes: u64,
        /// Rate that it may send at; none where only windows limit it.
        "" rate_bps: Option<u64>,
    }

    /// A message of a followed flow: what its application wrote at once, with RoCEv2 as it is cut into messages.
    pub struct MessageRow, "messages" / 1 {
        /// Number of the flow.
        "" flow: u32,
        /// Number of the message in its flow, from 0.
        "" message: u32,
        /// Host that sends the message.
        "" src: Name,
        /// Host that receives the message.
        "" dst: Name,
        /// Place of the message's first byte in the flow.
        "B" offset_bytes: u64,
        /// Size of the message.
        "B" size_bytes: u64,
        /// Time at which the application wrote the message.
        "ps" posted_ps: u64,
        /// Time at which the first bit of the message's first packet left the host.
        "ps" sent_ps: Option<u64>,
        /// Time at which the receiving application had the message and everything before it.
        "ps" delivered_ps: Option<u64>,
        /// Time at which the sender knew that the receiving application had the message and everything before it: completion.
        "ps" acked_ps: Option<u64>,
        /// Packets sent with bytes of the message, retransmissions included.
        "" packets: u32,
        /// Retransmissions among the packets with bytes of the message.
        "" retransmits: u32,
    }

    /// A packet of a followed flow, in either direction.
    pub struct SegmentRow, "segments" / 1 {
        /// Number of the packet, in order of sending.
        "" packet: u64,
        /// Number of the flow.
        "" flow: u32,
        /// Host that sent the packet.
        "" host: Name,
        /// `data`, `ack`, `nack`, `cnp`, `syn`, `fin`, `rst` or `datagram`.
        "" kind: Name,
        /// Place of the packet's first byte in what its host sends, from 0.
        "B" seq_bytes: u64,
        /// Payload of the packet.
        "B" payload_bytes: u16,
        /// Bytes of the other direction that the packet acknowledges.
        "B" ack_bytes: u64,
        /// Size of the frame at the packet's sender.
        "B" frame_bytes: u16,
        /// Number of earlier transmissions of the packet's first byte.
        "" again: u32,
        /// Time at which the packet was made.
        "ps" made_ps: u64,
        /// Time at which the first bit is on the wire of the sender.
        "ps" sent_ps: u64,
        /// Time at which the packet was seen at the other end: by its transport, or by its host, where the flow had ended; null
        /// where it was dropped or was still on its way.
        "ps" received_ps: Option<u64>,
        /// True if the packet arrived with CE.
        "" marked: bool,
        /// True if a switch has cut off the packet's payload.
        "" trimmed: bool,
        /// Port that dropped the packet.
        "" dropped_at: Option<Name>,
        /// Time of the drop.
        "ps" dropped_ps: Option<u64>,
        /// Event that the sender had waited for.
        "" cause: Name,
        /// Time of the event that the sender had waited for.
        "ps" cause_ps: u64,
        /// Packet whose arrival or loss the sender had waited for.
        "" cause_packet: Option<u64>,
        /// Time at which the timer was set that the sender had waited for, earlier expiries in a row included.
        "ps" armed_ps: Option<u64>,
        /// Packet whose arrival or departure had started the timer that the sender had waited for.
        "" armed_packet: Option<u64>,
        /// Limit that had kept the packet from being sent before.
        "" limit: Name,
    }

    /// A packet of a followed flow has crossed a link.
    pub struct HopRow, "hops" / 1 {
        /// Packet, by its number in `segments`.
        "" packet: u64,
        /// Number of the flow.
        "" flow: u32,
        /// Name of the port.
        "" port: Name,
        /// Time at which the packet came to the port.
        "ps" arrived_ps: u64,
        /// Time at which the packet's first bit left the port.
        "ps" sent_ps: u64,
        /// Time at which the packet's last bit had left the port, and the gap after it.
        "ps" left_ps: u64,
        /// Time at which the packet came to the far end, which may act on it.
        "ps" reached_ps: u64,
        /// Mechanism that held the packet at the port; null: none.
        "" held_by: Option<Name>,
        /// Time since which the mechanism held the packet.
        "ps" held_from_ps: Option<u64>,
        /// Time until which the mechanism held the packet.
        "ps" held_until_ps: Option<u64>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Table;

    /// The contract says what the files hold: every column of every table is named in docs/results.md.
    #[test]
    fn every_column_is_documented() {
        let doc = include_str!("../../../docs/results.md");
        let section = |table: &str| {
            let from = doc.find(&format!("## {table}.parquet")).unwrap();
            let rest = &doc[from + 3..];
            rest[..rest.find("\n## ").unwrap_or(rest.len())].to_string()
        };
        fn check<R: Row>(section: String) {
            for column in R::columns() {
                assert!(section.contains(&format!("`{}`", column.name)), "{}.{}", R::TABLE, column.name);
                let suffix = match column.unit {
                    "ps" => "_ps",
                    "B" => "_bytes",
                    _ => "",
                };
                assert!(column.name.ends_with(suffix), "{} does not end in its unit", column.name);
            }
        }
        check::<FlowRow>(section("flows"));
        check::<QueryRow>(section("queries"));
        check::<PortRow>(section("ports"));
        check::<QueueRow>(section("queues"));
        check::<DropRow>(section("drops"));
        check::<PauseRow>(section("pauses"));
        check::<StateRow>(section("states"));
        check::<VoqRow>(section("voqs"));
        check::<StampRow>(section("stamps"));
        check::<HostRow>(section("hosts"));
        check::<MessageRow>(section("messages"));
        check::<SegmentRow>(section("segments"));
        check::<HopRow>(section("hops"));
    }

    #[test]
    fn rows_come_back_from_the_file() {
        use parquet::file::reader::{FileReader, SerializedFileReader};
        use parquet::record::RowAccessor;
        let folder = tempfile::tempdir().unwrap();
        let mut table = Table::<QueryRow>::file(folder.path()).unwrap();
        let n = (1 << 16) + 5; // more than one row group
        for i in 0..n {
            let row = QueryRow {
                query: i,
                group: "g".into(),
                client: "h1".into(),
                start_ps: u64::from(i) << 33,
                finish_ps: (i % 2 == 0).then_some(7),
                responses: 3,
                size_bytes: 9,
            };
            table.push(row).unwrap();
        }
        assert_eq!(table.finish().unwrap(), u64::from(n));
        let file = std::fs::File::open(folder.path().join("queries.parquet")).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let metadata = reader.metadata().file_metadata().key_value_metadata().unwrap().clone();
        assert!(metadata.iter().any(|kv| kv.key == "fanin.schema" && kv.value.as_deref() == Some("queries/1")));
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), n as usize);
        assert_eq!(rows[65_538].get_uint(0).unwrap(), 65_538);
        assert_eq!(rows[65_538].get_ulong(3).unwrap(), 65_538 << 33);
        assert!(rows[1].is_null(4).unwrap() && !rows[2].is_null(4).unwrap());
    }

    #[test]
    fn an_unwritable_folder_is_named() {
        let error = Table::<DropRow>::file(std::path::Path::new("/nonexistent/x")).err().unwrap();
        assert!(error.to_string().contains("/nonexistent/x/drops.parquet"));
    }
}
