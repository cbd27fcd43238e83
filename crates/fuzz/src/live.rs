//! Streams that come in pieces.

use fanin_analysis::trace::{Live, Options, Watching};
use serde_json::{json, Value};

/// Mappings of columns by which streams are read; the first: none.
const COLUMNS: [&str; 4] = [
    "",
    "queue=Queue-Length:segments(480B)",
    "time=ts:us,port=ifname,queue=qlen:cells(208B),flow=five tuple,frame=len,marked=ecn:ecn,dropped=drop",
    "time=time_ms:ms,port=ifName,bytes=tx_bytes:total,drops=tx_dropped:total(32),watermark=watermark_bytes:B",
];

/// Mapping by which INT reports are read.
const INT: &str = "queue=queue-occupancy:cells(208B)";

/// Fuzzes a stream that comes in pieces: it has the bursts and the counts that it has when it comes at once. The first byte chooses the
/// options, the next two how many bytes are there when it begins, the fourth the length of the pieces.
pub fn stream(data: &[u8]) {
    let Some(([how, low, high, piece], bytes)) = data.split_first_chunk::<4>() else { return };
    let (first, rest) = bytes.split_at(usize::from(u16::from_le_bytes([*low, *high])).min(bytes.len()));
    let piece = usize::from(*piece).max(1);
    let columns = if how & 32 > 0 { INT } else { COLUMNS[usize::from(how & 3)] };
    let columns = Some(columns).filter(|text| !text.is_empty());
    let by = (how & 4 > 0).then_some("rate");
    let settings = json!({ "paths": ["stream"], "rate": "10Gbps", "columns": columns, "by": by });
    let options = Options::from_json(&settings.to_string()).expect("options");
    if how & 8 > 0 {
        datagrams(&options, bytes, piece);
        return;
    }
    let at_once = watched(&options, first, [rest]);
    let in_pieces = watched(&options, first, rest.chunks(piece));
    assert_eq!(at_once, in_pieces, "pieces of {piece} after {} bytes", first.len());
    if how & 16 > 0 && Live::needs_beginning(bytes) {
        // What was counted before is counted no more, and is no error.
        let mut live = Live::new("stream", &options, Watching::default());
        let replayed = first.chunks(piece).try_for_each(|part| live.replay(part));
        if replayed.is_ok() {
            assert!(live.report()["ports"].as_array().is_some_and(|ports| ports.iter().all(|port| port["records"] == 0)));
        }
        let _ = live.push(rest).and_then(|()| live.end());
        holds(&mut live);
    }
}

/// Bursts, gaps and counts of a stream, and whether it could be read to its end.
fn watched<'a>(options: &Options, first: &[u8], parts: impl IntoIterator<Item = &'a [u8]>) -> (Value, Value, bool) {
    let mut live = Live::new("stream", options, Watching::default());
    let mut whole = live.push(first).is_ok();
    // What has come by now decides what the stream is, however the rest comes.
    whole &= (0..10).fold(true, |whole, _| live.settle().is_ok() && whole);
    for part in parts {
        whole &= live.push(part).is_ok();
    }
    whole &= live.end().is_ok();
    let (mut taken, mut report) = holds(&mut live);
    // Where a batch ends, order between ports may be another one; errors of one piece come together.
    for list in ["bursts", "gaps", "cells"] {
        let mut texts: Vec<String> = taken[list].as_array().expect("a list").iter().map(Value::to_string).collect();
        texts.sort_unstable();
        taken[list] = json!(texts);
    }
    for name in ["problems", "notes"] {
        report[name] = Value::Null;
    }
    (taken, report, whole)
}

fn datagrams(options: &Options, bytes: &[u8], piece: usize) {
    let mut live = Live::new("stream", options, Watching::default());
    for (i, part) in bytes.chunks(4 * piece).enumerate() {
        if live.push_datagram(part, 1_700_000_000_000_000_000 + 1_000_000 * i as u64).is_err() {
            let _ = live.reopen();
        }
        if i % 4 == 3 && live.settle().is_err() {
            let _ = live.reopen();
        }
    }
    let _ = live.end();
    holds(&mut live);
}

/// Checks what came out of a stream.
fn holds(live: &mut Live) -> (Value, Value) {
    let (taken, report) = (serde_json::to_value(live.take()).expect("JSON"), live.report());
    for one in taken["bursts"].as_array().expect("bursts") {
        let at = |name: &str| one["burst"][name].as_u64().expect(name);
        assert!(at("start_ps") <= at("peak_ps") && at("peak_ps") <= at("end_ps"), "{one}");
    }
    let ports = report["ports"].as_array().expect("ports");
    let bursts: u64 = ports.iter().map(|port| port["bursts"].as_u64().expect("bursts")).sum();
    assert!(taken["bursts"].as_array().map(Vec::len).unwrap_or_default() as u64 <= bursts);
    assert!(report["problems"].as_array().is_none_or(|problems| problems.len() <= 8));
    (taken, report)
}
