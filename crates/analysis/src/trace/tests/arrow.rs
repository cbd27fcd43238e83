//! Arrow files of pyarrow and Polars (tests/arrow/make.py says which rows they have), and damaged ones.

use crate::trace::tests::{all, failure, message, Folder};
use crate::{MARKED, NO_FLOW};
use std::path::{Path, PathBuf};

fn kept(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/arrow").join(name)
}

const ROWS: u64 = 100;
const MAP: &str = "time=when,queue=qlen:KB,port=intf,marked=ce,flow=flow,frame=nested.len";

#[test]
fn files_and_streams_of_pyarrow_come_back_row_by_row() {
    for name in ["plain.arrow", "lz4.arrow", "zstd.arrow", "stream.arrows", "stream-zstd.arrows"] {
        let (records, ports, notes) = all(&kept(name), Some(MAP)).unwrap();
        let there: Vec<u64> = (0..ROWS).filter(|i| i % 10 != 9).collect();
        assert_eq!(records.len(), there.len(), "{name}");
        for ((record, port), i) in records.iter().zip(&ports).zip(&there) {
            assert_eq!(record.time.since(records[0].time).ps(), 100_000 * i, "{name} {i}");
            assert_eq!((record.queue, record.flags), (1_000 * i, u8::from(i % 7 == 0) * MARKED), "{name} {i}");
            assert_eq!(port, if i % 3 == 0 { "e0" } else { "ethernet 1/1/25" }, "{name} {i}");
            assert_eq!(record.frame as u64, 64 + i, "{name} {i}: row 49 has no structure, and no queue either");
            assert_eq!(record.flow == NO_FLOW, i % 7 == 6, "{name} {i}");
            let same = records.iter().zip(&there).find(|(_, j)| *j % 5 == i % 5 && *j % 7 != 6).unwrap();
            assert!(i % 7 == 6 || record.flow == same.0.flow, "{name} {i}");
        }
        assert!(notes.iter().any(|n| n.contains("10 rows passed over, for lack of a value that is needed")), "{notes:?}");
        // The same texts and numbers in other types.
        let flows = |column: &str| {
            let map = format!("time=when,queue=depth:KB,flow={column}");
            all(&kept(name), Some(&map)).unwrap().0.iter().map(|r| r.flow).collect::<Vec<_>>()
        };
        assert_eq!(flows("wide"), flows("flow"), "{name}");
        assert_eq!(flows("view"), flows("flow"), "{name}");
        let numbers = flows("flow_id");
        assert!(numbers[4] == 4 && numbers[5] >= 1 << 20 && numbers[99] == 99, "{name}: {numbers:?}");
        let (records, ..) = all(&kept(name), Some("time=since,queue=half:MB,port=short,flow=intf")).unwrap();
        assert_eq!((records[7].time.ps(), records[7].queue), (700_000, 3_500_000), "{name}");
        assert_eq!((records[0].flow, records[1].flow), (records[3].flow, records[2].flow), "{name}");
        let (_, _, notes) = all(&kept(name), Some("time=naive,queue=depth")).unwrap();
        assert!(notes.iter().any(|n| n.contains("its dates have no time zone and are taken as UTC")), "{name}: {notes:?}");
    }
}

#[test]
fn files_of_polars_are_read_and_their_columns_guessed() {
    for name in ["polars.arrow", "polars-lz4.arrow"] {
        let (records, ports, notes) = all(&kept(name), Some("time=when,queue=qlen:B,port=intf,marked=ce,flow=flow")).unwrap();
        assert_eq!(records.len(), 90, "{name}: {notes:?}");
        assert_eq!(records[10].time.since(records[0].time).ps(), 11_000_000);
        assert_eq!((records[10].queue, ports[10].as_str(), ports[9].as_str()), (11, "ethernet 1/1/25", "ethernet 1/1/25"));
        assert_eq!((records[0].flow, records[0].flags), (records[5].flow, MARKED));
        let text = failure(&kept(name), None);
        assert!(text.contains("queue: 'qlen' has no unit") && text.contains("queue=qlen:cells(208B)"), "{text}");
    }
}

#[test]
fn dictionaries_may_grow_and_be_replaced() {
    let (_, ports, _) = all(&kept("delta.arrows"), None).unwrap();
    let wanted: Vec<&str> = "a b a b a b a b c a b c x y x y x y".split(' ').collect();
    assert_eq!(ports, wanted);
}

#[test]
fn columns_that_cannot_be_read_are_named() {
    let path = kept("plain.arrow");
    let text = failure(&path, Some("time=when,queue=fixed,frame=lists,port=nested.more"));
    for part in ["fixed: is of type Decimal", "lists: is of type List", "nested.more: is of type List"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(text.contains("accepted: Bool, whole numbers, Float32, Float64, text, times, dictionaries of text"), "{text}");
    let text = failure(&path, Some("time=when,queue=intf"));
    assert!(text.contains("plain.arrow: row 1: intf: 'e0' is not a number"), "{text}");
    let text = failure(&path, Some("time=whn,queue=qlen"));
    assert!(text.contains("'whn' is no column of this file; did you mean 'when'?"), "{text}");
}

#[test]
fn a_column_without_any_value_is_unknown_as_in_parquet() {
    for name in ["plain.arrow", "lz4.arrow", "stream-zstd.arrows"] {
        let (records, ..) = all(&kept(name), Some("time=when,queue=depth:KB,flow=nothing,port=intf")).unwrap();
        assert_eq!(records.iter().filter(|record| record.flow == NO_FLOW).count() as u64, ROWS, "{name}");
        let (_, _, notes) = all(&kept(name), Some("time=when,queue=nothing:B")).unwrap();
        assert!(
            notes.iter().any(|n| n.contains("100 rows passed over, for lack of a value that is needed")),
            "{name}: {notes:?}"
        );
    }
}

#[test]
fn a_truncated_file_keeps_its_whole_batches() {
    let folder = Folder::new();
    for (name, map) in [("plain.arrow", MAP), ("stream-zstd.arrows", MAP), ("delta.arrows", "time=time_ns,queue=queue_bytes")] {
        let bytes = std::fs::read(kept(name)).unwrap();
        let whole = all(&kept(name), Some(map)).unwrap().0;
        let mut seen = 0;
        for end in (0..bytes.len()).step_by(97) {
            match all(&folder.file(name, &bytes[..end]), Some(map)) {
                Ok((records, _, notes)) => {
                    assert!(whole.starts_with(&records), "{name} {end}");
                    seen += usize::from(!records.is_empty());
                    // A stream may end between two messages, a file behind its last one.
                    let said = notes.iter().any(|n| n.contains("the file is cut short inside the message at byte "));
                    assert!(said || records == whole || !name.starts_with("plain"), "{name} {end}: {notes:?}");
                }
                Err(problems) => {
                    let text = message(&problems);
                    assert!(text.contains(&format!("{name}: ")), "{text}");
                }
            }
        }
        assert!(seen > 3, "{name}");
    }
}

/// Damage of any byte never panics, hangs or allocates without bound; where it is not noticed the records are still records.
#[test]
fn damaged_files_are_errors_or_other_records() {
    let folder = Folder::new();
    let mut refused = 0;
    for name in ["plain.arrow", "lz4.arrow", "zstd.arrow", "delta.arrows", "polars-lz4.arrow"] {
        let good = std::fs::read(kept(name)).unwrap();
        let mut state = 5_u64;
        for turn in 0..150_usize {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let mut bad = good.clone();
            for k in 0..1 + turn % 4 {
                let at = (state >> (8 * k)) as usize % if turn % 2 == 0 { bad.len() } else { bad.len().min(4_000) };
                bad[at] = (state >> 40) as u8;
            }
            for map in
                [Some(MAP), None, Some("time=when,queue=depth,flow=view"), Some("time=time_ns,queue=queue_bytes,port=port")]
            {
                match all(&folder.file(name, &bad), map) {
                    Ok((records, ports, _)) => assert_eq!(records.len(), ports.len()),
                    Err(problems) => {
                        refused += 1;
                        assert!(message(&problems).contains(&format!("{name}: ")), "{problems:?}");
                    }
                }
            }
        }
    }
    assert!(refused > 250, "only {refused} were refused");
}

#[test]
fn counters_in_arrow_are_intervals_as_in_text() {
    // Every value is a count of an interval, or a running count of which a tenth is missing: those are unknown.
    let columns = Some("time=when,port=intf,bytes=flow_id:since,watermark=qlen:KB");
    let (found, _) = super::readings(&kept("zstd.arrow"), columns).unwrap();
    let of = |port: &str| {
        let interval = |(name, reading): &(String, crate::counters::Reading)| match reading {
            crate::counters::Reading::Interval(interval) if name == port => Some(*interval),
            _ => None,
        };
        found.iter().filter_map(interval).collect::<Vec<_>>()
    };
    let told: Vec<_> = of("e0").iter().take(3).map(|i| (i.length(), i.sent, i.watermark)).collect();
    assert_eq!(told, [(300_000, Some(3), Some(3_000)), (300_000, Some(6), Some(6_000)), (300_000, Some(9), None)]);
    assert_eq!(of("e0").len() + of("ethernet 1/1/25").len(), 98);
    let said = failure(&kept("zstd.arrow"), Some("time=when,port=intf,bytes=flow:since"));
    assert!(said.contains("row 1: flow: '10.0.0.0:40000"), "{said}");
}
