//! Files in, records out.

mod arrow;
mod captures;
mod counters;
mod feeds;
mod inputs;
mod live_feeds;
mod states;
mod tables;
mod tc;
mod telemetry;
mod text;

use crate::capture::filter::CaptureFilter;
use crate::counters::Reading;
use crate::formats::Mapping;
use crate::input::context::Context;
use crate::input::file::Place;
use crate::input::problem::Problems;
use crate::input::reader::Batch;
use crate::trace::source::{origin, Source};
use crate::{Record, AT_HEAD, DROPPED, MARKED, NO_FLOW, NO_QUEUE, REPLACED};
use fanin_telemetry::{QueueRow, Table};
use fanin_units::Time;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Records, port names, notes.
pub type Everything = (Vec<Record>, Vec<String>, Vec<String>);

/// Everything of a file.
pub fn all(path: &Path, mapping: Option<&str>) -> Result<Everything, Problems> {
    let mapping = mapping.map(|m| Mapping::read(m).unwrap());
    let mut source = Source::find(&Place::of(path), mapping.as_ref())?;
    let mut captures: Vec<_> = source.capture_mut().into_iter().collect();
    assert!(crate::capture::chains::survey(&mut captures, (&CaptureFilter::default(), false, false), &mut |_| true)?);
    let sources = [source];
    let mut context = Context { origin: origin(&sources), ..Context::default() };
    context.notes.extend(context.origin.note());
    let mut reader = sources[0].open(&mut context)?;
    let mut batch = Batch::default();
    let (mut records, mut ports) = (Vec::new(), Vec::new());
    while reader.next(&mut context, &mut batch)? {
        assert_eq!(batch.records.len(), batch.ports.len());
        assert!(batch.rows.is_empty() || batch.rows.len() == batch.records.len());
        records.extend_from_slice(&batch.records);
        ports.extend(batch.ports.iter().map(|p| context.ports.names()[*p as usize].clone()));
    }
    reader.finish(&mut context);
    Ok((records, ports, context.notes))
}

/// Readings with the names of their ports, and notes.
pub type Told = (Vec<(String, Reading)>, Vec<String>);

/// Readings of a file of counters.
pub fn readings(path: &Path, mapping: Option<&str>) -> Result<Told, Problems> {
    let mapping = mapping.map(|m| Mapping::read(m).unwrap());
    let sources = [Source::find(&Place::of(path), mapping.as_ref())?];
    let mut context = Context { origin: origin(&sources), ..Context::default() };
    context.notes.extend(context.origin.note());
    let mut reader = sources[0].open(&mut context)?;
    let mut batch = Batch::default();
    let mut found = Vec::new();
    while reader.next(&mut context, &mut batch)? {
        assert!(batch.records.is_empty());
        found.extend(batch.readings.iter().map(|(port, reading)| (context.ports.names()[*port as usize].clone(), *reading)));
    }
    reader.finish(&mut context);
    Ok((found, context.notes))
}

pub fn message(problems: &Problems) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

pub fn failure(path: &Path, mapping: Option<&str>) -> String {
    message(&all(path, mapping).unwrap_err())
}

pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

fn record(ps: u64, queue: u64, frame: u32, flow: u32, flags: u8) -> Record {
    Record { time: Time::from_ps(ps), queue, frame, flow, flags }
}

pub const CSV: &str = "\u{feff}# switch 7\r\nts;ifname;qlen;five tuple;len;ecn;drop;repl\r\n\
                   1.5;Eth1/1;10;a>b;1518;3;0;1\r\n2;Eth1/1;;a>b;1518;3;0;0\r\n2.5;Eth1/2;11;\"c;d\";;0;1;0\r\n";
pub const CSV_MAP: &str =
    "time=ts:us,port=ifname,queue=qlen:cells(208B),flow=five tuple,frame=len,marked=ecn:ecn,dropped=drop,replaced=repl";

#[test]
fn csv_with_names_units_and_gaps() {
    let folder = Folder::new();
    let (records, ports, notes) = all(&folder.file("a.txt", CSV), Some(CSV_MAP)).unwrap();
    assert_eq!(records[0].time, Time::from_ps(1_500_000));
    assert_eq!((records[0].queue, records[0].frame, records[0].flags), (2_080, 1518, MARKED | REPLACED));
    assert_eq!((records[1].queue, records[1].frame, records[1].flags), (2_288, 0, DROPPED));
    assert_ne!(records[0].flow, records[1].flow);
    assert_eq!(ports, ["Eth1/1", "Eth1/2"]);
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].ends_with("1 row passed over, for lack of a value that is needed; first 'qlen' in line 4"), "{notes:?}");
}

#[test]
fn csv_inside_gzip_and_without_names() {
    let folder = Folder::new();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(CSV.as_bytes()).unwrap();
    let (records, ..) = all(&folder.file("a.csv.gz", gzip.finish().unwrap()), Some(CSV_MAP)).unwrap();
    assert_eq!(records.len(), 2);
    let bare = folder.file("b.tsv", "10\t1518\n20\t3036\n");
    let (records, ports, _) = all(&bare, Some("time=1:ns,queue=2")).unwrap();
    assert_eq!(records, [record(10_000, 1518, 0, NO_FLOW, 0), record(20_000, 3036, 0, NO_FLOW, 0)]);
    assert_eq!(ports, ["b", "b"], "the file's name stands for the port");
    assert!(failure(&bare, None).contains("has no names of columns in its first line; give the columns by number"));
}

#[test]
fn times_since_1970_keep_their_picoseconds() {
    let folder = Folder::new();
    let path = folder.file("a.csv", "time,queue_bytes\n2026-11-21T08:00:00.020000001Z,1\n2026-11-21T08:00:00.020000003Z,2\n");
    let (records, _, notes) = all(&path, None).unwrap();
    assert_eq!(records[1].time.since(records[0].time).ps(), 2_000);
    assert!(
        notes.iter().any(|n| n.contains("times count from second 1795248000 of the trace's clock (2026-11-21T08:00:00Z)")),
        "{notes:?}"
    );
    // Any zone, and without one, which is said.
    let zones = folder.file(
        "c.csv",
        "time,queue_bytes\n2026-11-21T09:00:00.02+01:00,1\n\"2026-11-21 08:00:00,020000002\",2\n2026-11-21 08:00:00.030Z,2\n",
    );
    let (records, _, notes) = all(&zones, None).unwrap();
    assert_eq!(records[1].time.since(records[0].time).ps(), 2_000);
    assert_eq!(records[2].time.since(records[0].time).ps(), 10_000_000_000);
    assert!(notes.iter().any(|n| n.ends_with("c.csv: its dates have no time zone and are taken as UTC")), "{notes:?}");
    let early = folder.file("b.csv", "time,queue_bytes\n2026-11-21T08:00:00Z,1\n2026-11-20T08:00:00Z,2\n");
    let (records, ..) = all(&early, None).unwrap();
    assert_eq!(records[1].time, Time::from_ps(1_000_000_000_000), "the earliest of the first rows makes the origin");
}

#[test]
fn kinds_are_recognised_by_content() {
    let folder = Folder::new();
    for (name, bytes, part) in [
        ("a.csv", &b"\x28\xb5\x2f\xfdxxxx"[..], "cannot be unpacked: its zstd data are damaged near byte 0"),
        ("b.pcap", b"", "is empty"),
        ("c.parquet", b"time_ns,qlen_B\nx,1\n", "'x' is not a number"),
        ("d.csv", b"ab\0cd", "is of no kind that is known, and no text: it begins with the bytes 61 62 00 63 64; accepted: a result folder of fanin, Parquet"),
        ("e.csv", b"PAR1 and nothing more", "it does not end as a Parquet file does"),
        ("f.csv", b"{\"a\": 1}", "time: is not found: no column has one of its common names"),
        ("h.json", b"[{\"a\": 1}]", "is one JSON list: write each of its objects in a line, for example with jq -c '.[]'"),
        ("i.arrow", b"ARROW1\0\0", "i.arrow: is damaged: it ends before its schema does"),
        ("j.gz", b"\x1f\x8b\x08\0\0\0", "has nothing in its gzip data"),
        ("g.gz", b"\x1f\x8b\x08garbage", "cannot be unpacked"),
    ] {
        let text = failure(&folder.file(name, bytes), None);
        assert!(text.contains(part), "{name}: {text}");
    }
    assert!(failure(&folder.0.path().join("nothing.csv"), None).contains("nothing.csv: there is no such file"));
    let folder = folder.0.path();
    let all =
        format!("is a folder, but not a result folder: it has no manifest.json; give the files in it: {}/*", folder.display());
    assert!(failure(folder, None).ends_with(&all), "{}", failure(folder, None));
}

/// Writes one column after another.
fn parquet_file(
    path: &Path,
    schema: &str,
    properties: WriterProperties,
    mut column: impl FnMut(usize, &mut SerializedColumnWriter),
) {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer = SerializedFileWriter::new(std::fs::File::create(path).unwrap(), schema, Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut index = 0;
    while let Some(mut writer) = group.next_column().unwrap() {
        column(index, &mut writer);
        writer.close().unwrap();
        index += 1;
    }
    group.close().unwrap();
    writer.close().unwrap();
}

const SWITCH: &str = "message t {
    required int64 when (TIMESTAMP(NANOS,true));
    optional int32 qlen;
    required binary intf (UTF8);
    optional double depth;
    required boolean ce;
    required int64 flow_id (INTEGER(64,false));
}";

fn switch_table(path: &Path, properties: WriterProperties) {
    parquet_file(path, SWITCH, properties, |index, writer| {
        let n = 1_000_i64;
        match index {
            0 => writer.typed::<Int64Type>().write_batch(
                &(0..n).map(|i| 1_795_248_000_000_000_000 + 100 * i).collect::<Vec<_>>(),
                None,
                None,
            ),
            1 => {
                let levels: Vec<i16> = (0..n).map(|i| i16::from(i % 10 != 9)).collect();
                let values: Vec<i32> = (0..n as i32).filter(|i| i % 10 != 9).collect();
                writer.typed::<Int32Type>().write_batch(&values, Some(&levels), None)
            }
            2 => {
                let names: Vec<ByteArray> = (0..n).map(|i| ByteArray::from(if i % 3 == 0 { "e0" } else { "e1" })).collect();
                writer.typed::<ByteArrayType>().write_batch(&names, None, None)
            }
            3 => {
                let levels = vec![1_i16; n as usize];
                let values: Vec<f64> = (0..n).map(|i| i as f64 / 2.0).collect();
                writer.typed::<DoubleType>().write_batch(&values, Some(&levels), None)
            }
            4 => writer.typed::<BoolType>().write_batch(&(0..n).map(|i| i % 7 == 0).collect::<Vec<_>>(), None, None),
            _ => writer.typed::<Int64Type>().write_batch(
                &(0..n).map(|i| if i < 5 { i } else { -i }).collect::<Vec<_>>(),
                None,
                None,
            ),
        }
        .unwrap();
    });
}

#[test]
fn parquet_of_any_shape_by_mapping() {
    let folder = Folder::new();
    let zstd = Compression::ZSTD(ZstdLevel::try_new(3).unwrap());
    for (name, properties) in [
        ("plain", WriterProperties::builder().set_dictionary_enabled(false)),
        ("dictionary", WriterProperties::builder().set_compression(Compression::SNAPPY)),
        ("zstd", WriterProperties::builder().set_compression(zstd)),
        ("gzip", WriterProperties::builder().set_compression(Compression::GZIP(Default::default()))),
        ("lz4", WriterProperties::builder().set_compression(Compression::LZ4_RAW)),
        (
            "delta",
            WriterProperties::builder()
                .set_writer_version(parquet::file::properties::WriterVersion::PARQUET_2_0)
                .set_dictionary_enabled(false)
                .set_column_encoding("intf".into(), Encoding::DELTA_LENGTH_BYTE_ARRAY),
        ),
    ] {
        let path = folder.0.path().join(format!("{name}.parquet"));
        switch_table(&path, properties.build());
        let (records, ports, notes) = all(&path, Some("time=when,queue=qlen:KB,port=intf,marked=ce,flow=flow_id")).unwrap();
        assert_eq!(records.len(), 900, "{name}");
        assert_eq!(records[10].time.since(records[0].time).ps(), 1_100_000, "row 10 is the twelfth: row 9 has no queue");
        assert_eq!((records[10].queue, records[7].flags, records[8].flags), (11_000, MARKED, 0));
        assert_eq!(ports[3], "e0");
        assert_eq!(records[4].flow, 4);
        assert!(records[5].flow >= 1 << 20, "a number beyond what flows are numbered by");
        assert!(notes[2].contains("100 rows passed over, for lack of a value that is needed"), "{notes:?}");
        let (records, ..) = all(&path, Some("time=when,queue=depth:MB")).unwrap();
        assert_eq!((records.len(), records[3].queue), (1_000, 1_500_000));
    }
}

/// From a dictionary, from pages behind one that became too large, from pages without any, over several batches; ports by number.
#[test]
fn parquet_names_are_those_of_their_rows() {
    use parquet::file::properties::WriterVersion::{PARQUET_1_0, PARQUET_2_0};
    let schema = "message t { required int64 time_ns; required int32 queue_bytes; required int32 port;
        optional binary flow (UTF8); }";
    let n = 40_000;
    let flow = |i: i32| (i % 7 != 0).then(|| format!("{:05} > x", i / 5 * 31 % 3_000));
    let mut numbers: BTreeMap<String, u32> = BTreeMap::new();
    let expected: Vec<u32> = (0..n)
        .map(|i| {
            let next = (1 << 20) + numbers.len() as u32;
            flow(i).map_or(NO_FLOW, |name| *numbers.entry(name).or_insert(next))
        })
        .collect();
    let folder = Folder::new();
    let path = folder.0.path().join("t.parquet");
    for (version, dictionary) in
        [(PARQUET_1_0, 1 << 20), (PARQUET_1_0, 9_000), (PARQUET_1_0, 0), (PARQUET_2_0, 1 << 20), (PARQUET_2_0, 9_000)]
    {
        let properties = WriterProperties::builder()
            .set_writer_version(version)
            .set_dictionary_enabled(dictionary > 0)
            .set_dictionary_page_size_limit(dictionary)
            .set_data_page_row_count_limit(700)
            .set_write_batch_size(100)
            .set_column_encoding("flow".into(), Encoding::PLAIN);
        parquet_file(&path, schema, properties.build(), |index, writer| {
            let all: Vec<i32> = (0..n).collect();
            match index {
                0 => writer.typed::<Int64Type>().write_batch(&all.iter().map(|i| i64::from(*i)).collect::<Vec<_>>(), None, None),
                1 => writer.typed::<Int32Type>().write_batch(&all, None, None),
                2 => writer.typed::<Int32Type>().write_batch(&all.iter().map(|i| i % 5).collect::<Vec<_>>(), None, None),
                _ => {
                    let there: Vec<i16> = all.iter().map(|i| i16::from(flow(*i).is_some())).collect();
                    let names: Vec<ByteArray> = all.iter().filter_map(|i| flow(*i)).map(|name| name.as_str().into()).collect();
                    writer.typed::<ByteArrayType>().write_batch(&names, Some(&there), None)
                }
            }
            .unwrap();
        });
        let (records, ports, _) = all(&path, None).unwrap();
        assert!(records.iter().map(|r| r.flow).eq(expected.iter().copied()), "{version:?}, {dictionary}");
        assert!(
            ports.iter().map(String::as_str).eq((0..n).map(|i| ["0", "1", "2", "3", "4"][i as usize % 5])),
            "{:?}",
            &ports[..9]
        );
    }
}

#[test]
fn parquet_columns_that_cannot_be_read_are_named() {
    let folder = Folder::new();
    let path = folder.0.path().join("t.parquet");
    switch_table(&path, WriterProperties::builder().build());
    assert!(failure(&path, Some("time=when,queue=intf")).contains("t.parquet: row 1: intf: 'e0' is not a number"));
    assert!(failure(&path, Some("time=when,queue=flow_id")).contains("row 6: flow_id: '18446744073709551611' is too large"));
    let text = failure(&path, Some("time=whn,queue=qlen"));
    assert!(text.contains("t.parquet: time: 'whn' is no column of this file; did you mean 'when'?"), "{text}");
    let lists = folder.0.path().join("l.parquet");
    let schema =
        "message t { required int64 time_ns; repeated int32 queue_bytes; optional int96 ts; required int32 d (DECIMAL(9,2)); }";
    parquet_file(&lists, schema, WriterProperties::builder().build(), |_, _| {});
    let text = failure(&lists, Some("time=time_ns,queue=queue_bytes,frame=d,flow=ts"));
    for part in ["queue_bytes: is a list; accepted: one value by row", "d: is a decimal", "ts: is of type INT96"] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

fn queues(folder: &Path, rows: u32) -> PathBuf {
    let mut table = Table::<QueueRow>::file(folder).unwrap();
    for i in 0..rows {
        let row = QueueRow {
            time_ps: u64::from(i) * 1_230_400,
            port: if i % 5 == 0 { "leaf0->h1".into() } else { "leaf0->h0".into() },
            queue_bytes: u64::from(i % 100) * 1518,
            queue_packets: i % 100,
            flow: i % 3,
            frame_bytes: 1518,
            marked: i % 2 == 0,
            dropped: i % 11 == 0,
            replaced: i % 5 == 0,
            at_head: i % 22 == 0,
        };
        table.push(row).unwrap();
    }
    table.finish().unwrap();
    folder.join("queues.parquet")
}

#[test]
fn a_results_queues_come_back_row_by_row() {
    let folder = Folder::new();
    let path = queues(folder.0.path(), 70_000);
    let source = Source::find(&Place::of(&path), None).unwrap();
    let facts = source.facts();
    assert_eq!((facts.kind, facts.in_order, facts.has_queue), ("parquet", true, true));
    let (records, ports, notes) = all(&path, None).unwrap();
    assert!(notes.is_empty(), "{notes:?}");
    assert_eq!(records.len(), 70_000);
    let flags = |i: u32| {
        let of = |n: u32, flag: u8| u8::from(i % n == 0) * flag;
        of(2, MARKED) | of(11, DROPPED) | of(5, REPLACED) | of(22, AT_HEAD)
    };
    for i in [0_u32, 1, 5, 11, 22, 65_535, 65_536, 69_999] {
        let expected = record(u64::from(i) * 1_230_400, u64::from(i % 100) * 1518, 1518, i % 3, flags(i));
        assert_eq!(records[i as usize], expected, "{i}");
        assert_eq!(ports[i as usize], if i % 5 == 0 { "leaf0->h1" } else { "leaf0->h0" });
    }
}

/// Damage of any byte never panics, hangs or allocates without bound; where it is not noticed the records are still records.
#[test]
fn damaged_parquet_is_an_error_or_other_records() {
    let folder = Folder::new();
    let mut seen = 0;
    let tables = [
        WriterProperties::builder().set_compression(Compression::SNAPPY).build(),
        WriterProperties::builder()
            .set_writer_version(parquet::file::properties::WriterVersion::PARQUET_2_0)
            .set_dictionary_enabled(false)
            .set_column_encoding("intf".into(), Encoding::DELTA_LENGTH_BYTE_ARRAY)
            .build(),
        WriterProperties::builder().set_compression(Compression::GZIP(Default::default())).build(),
    ];
    let silent = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    for properties in tables {
        let path = folder.0.path().join("t.parquet");
        switch_table(&path, properties);
        let good = std::fs::read(&path).unwrap();
        let mut state = 1_u64;
        for turn in 0..1_500_usize {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let mut bad = good.clone();
            // Half of the damage goes where lengths are: into the metadata at the end.
            let from = if turn % 2 == 0 { 0 } else { good.len().saturating_sub(1_200) };
            for k in 0..=turn % 3 {
                let at = from + ((state >> (8 * k)) as usize) % (good.len() - from);
                bad[at] = (state >> 40) as u8;
            }
            if turn % 17 == 0 {
                bad.truncate((state >> 20) as usize % good.len());
            }
            std::fs::write(&path, &bad).unwrap();
            match all(&path, Some("time=when,queue=qlen:KB,port=intf,marked=ce,flow=flow_id")) {
                Ok((records, ports, _)) => assert_eq!(records.len(), ports.len()),
                Err(problems) => {
                    seen += 1;
                    assert!(message(&problems).contains("t.parquet: "), "{problems:?}");
                }
            }
        }
    }
    std::panic::set_hook(silent);
    assert!(seen > 1_000, "only {seen} damaged files were refused");
}

#[test]
fn damaged_csv_is_an_error_or_other_records() {
    let folder = Folder::new();
    let good = CSV.as_bytes();
    let mut state = 7_u64;
    for turn in 0..3_000_usize {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut bad = good.to_vec();
        for k in 0..1 + turn % 4 {
            let at = (state >> (8 * k)) as usize % bad.len();
            bad[at] = (state >> 40) as u8;
        }
        let path = folder.file("a.csv", &bad);
        for mapping in [Some(CSV_MAP), None] {
            if let Err(problems) = all(&path, mapping) {
                assert!(message(&problems).contains("a.csv: "), "{problems:?}");
            }
        }
    }
    let endless = folder.file("e.csv", format!("time_ns,queue_bytes\n1,{}", "9".repeat(3 << 20)));
    assert!(failure(&endless, None).contains("a line is longer than 1048576 bytes"), "{}", failure(&endless, None));
}

/// pcap by hand: Ethernet, IPv4, UDP, in nanoseconds.
fn capture(frames: u32) -> Vec<u8> {
    let mut out = Vec::new();
    for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 65_535, 1] {
        out.extend(word.to_le_bytes());
    }
    for i in 0..frames {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, if i % 2 == 0 { 3 } else { 0 }];
        frame.extend(1_000_u16.to_be_bytes());
        frame.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend(5_000_u16.to_be_bytes());
        frame.extend((6_000 + (i % 2) as u16).to_be_bytes());
        frame.extend(980_u16.to_be_bytes());
        frame.resize(1_014, 0);
        for word in [1_795_248_000_u32, 1_000 * i, frame.len() as u32, frame.len() as u32] {
            out.extend(word.to_le_bytes());
        }
        out.extend(frame);
    }
    out
}

#[test]
fn a_capture_without_stamps_has_arrivals_and_no_queue() {
    let folder = Folder::new();
    let path = folder.file("uplink.pcap", capture(10));
    let source = Source::find(&Place::of(&path), None).unwrap();
    let facts = source.facts();
    assert_eq!((facts.kind, facts.has_queue, facts.in_order), ("pcap", false, false));
    let (records, ports, _) = all(&path, None).unwrap();
    assert_eq!(records.len(), 10);
    assert_eq!((records[1].queue, records[1].frame), (NO_QUEUE, 1_018), "the check sequence counts");
    assert_eq!(records[1].time.since(records[0].time).ps(), 1_000_000);
    assert_eq!((records[0].flags, records[1].flags), (MARKED, 0));
    assert_eq!((records[0].flow, records[1].flow), (records[2].flow, records[3].flow));
    assert_ne!(records[0].flow, records[1].flow);
    assert_eq!(ports[0], "uplink");
    let cut = folder.file("cut.pcap", &capture(10)[..5_000]);
    let (records, _, notes) = all(&cut, None).unwrap();
    assert_eq!(records.len(), 4);
    assert!(notes.iter().any(|n| n.contains("the file ends inside block")), "{notes:?}");
    assert!(failure(&path, Some("time=ts:ns")).contains("columns: 'time=ts:ns' has no effect: a capture has no columns"));
}

/// The same packets over IPv6, every other one with a drop notification of 44 bytes at the end: the packet is what it would be without.
#[test]
fn ipv6_is_read_with_and_without_notifications() {
    let v4 = capture(10);
    let (mut v6, mut rest) = (v4[..24].to_vec(), &v4[24..]);
    let mut with_notice = [true, false].into_iter().cycle();
    let address = |last: u8| [&[0xfd][..], &[0; 14], &[last]].concat();
    while !rest.is_empty() {
        let (record, tail) = rest.split_at(16 + 1_014);
        rest = tail;
        let (head, frame) = record.split_at(16);
        let notified = with_notice.next() == Some(true);
        let mut ours = frame[..12].to_vec();
        ours.extend(if notified { [0xA6, 0xDD] } else { [0x86, 0xDD] });
        ours.extend([0x60, (frame[15] & 3) << 4, 0, 7]);
        ours.extend(980_u16.to_be_bytes());
        ours.extend([17, 64]);
        ours.extend([address(1), address(2)].concat());
        ours.extend(&frame[34..]);
        if notified {
            ours.extend([address(2), address(1)].concat());
            ours.extend([0, 80, 0, 81, 0, 0, 0, 9, 3, 0xe8, 2, 1]);
        }
        v6.extend(&head[..8]);
        v6.extend([(ours.len() as u32).to_le_bytes(); 2].concat());
        v6.extend(ours);
    }
    let folder = Folder::new();
    let (records, _, _) = all(&folder.file("v4.pcap", &v4), None).unwrap();
    let (ours, _, _) = all(&folder.file("v6.pcap", &v6), None).unwrap();
    assert_eq!(ours.len(), 10);
    for (one, other) in records.iter().zip(&ours) {
        assert_eq!(*other, Record { frame: one.frame + 20, ..*one });
    }
}

#[test]
fn damaged_captures_are_errors_or_other_records() {
    let folder = Folder::new();
    let good = capture(20);
    let mut state = 3_u64;
    for turn in 0..2_000_usize {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut bad = good.clone();
        for k in 0..1 + turn % 4 {
            let at = (state >> (8 * k)) as usize % bad.len();
            bad[at] = (state >> 40) as u8;
        }
        let path = folder.file("a.pcap", &bad);
        if let Err(problems) = all(&path, None) {
            assert!(message(&problems).contains("a.pcap: "), "{problems:?}");
        }
    }
}

/// The report of a table with these rows, without the name of the file.
fn report(folder: &Folder, name: &str, rows: &[String]) -> Result<serde_json::Value, String> {
    struct Patient;
    impl crate::trace::Observer for Patient {
        fn progress(&mut self, _: crate::trace::Progress) -> crate::trace::Control {
            crate::trace::Control::Continue
        }
    }
    let path = folder.file(name, format!("time_ns,port,queue_bytes,flow,frame_bytes\n{}\n", rows.join("\n")));
    let options = crate::trace::Options { paths: vec![path], ..crate::trace::Options::default() };
    let report = crate::trace::analyze(&options, &mut Patient).map_err(|failure| failure.to_string())?;
    Ok(serde_json::to_value(report.ports).unwrap())
}

#[test]
fn a_late_record_changes_nothing_but_the_note_however_late_it_shows() {
    let folder = Folder::new();
    // Two ports whose queues rise and fall; flows by number, since names are numbered as they come.
    let row = |i: u64| format!("{},p{},{},{},1500", 1_000 * i, i % 2, 1_500 * (i / 2 % 400).min(400 - i / 2 % 400), i % 7);
    let mut rows: Vec<String> = (0..3_000).map(row).collect();
    let sorted = report(&folder, "a.csv", &rows).unwrap();
    assert!(sorted[0]["bursts_found"].as_u64().unwrap() > 2, "{}", sorted[0]);
    for late in [2, 2_998] {
        rows = (0..3_000).map(row).collect();
        rows.swap(late - 2, late);
        let mut swapped = report(&folder, "b.csv", &rows).unwrap();
        let note = "1 record came after a later one, by 2us at most, and were put in order";
        let notes = swapped[0]["notes"].as_array_mut().unwrap();
        assert_eq!(notes.remove(0), note);
        assert!(swapped == sorted, "row {late}: {swapped}");
    }
    // Far more than may be overtaken.
    rows = (0..300_000).map(row).collect();
    let last = rows.remove(0);
    rows.push(last);
    let message = report(&folder, "c.csv", &rows).unwrap_err();
    assert!(message.contains("c.csv: line 300001: is at 0"), "{message}");
    assert!(message.contains("--sort sorts the whole trace first"), "{message}");
}
