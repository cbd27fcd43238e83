//! Records per second of processor time of `fanin analyze`, from the file to the report.
//!
//! `cargo run --release -p fanin-analysis --example bench [CASE [SCALE]]` measures all cases, or one of them:
//!
//! * `port`: a result folder with 10 million records of one 10 Gb/s port, fan-in every 4 ms;
//! * `result`: a result folder with 10 million records of all 48 ports of a leaf-spine fabric (web-search and query traffic, DCTCP);
//! * `parquet`: the same as one table of a switch's telemetry: times in ns, ports and flows by name, all columns nullable, snappy;
//! * `csv`: the same as text;
//! * `capture`: a pcap file with 10 million frames of 100 bytes, 64 flows and their acknowledgments.
//! * `json`: the same as JSON lines;
//! * `pair`: two pcap files with 4 million segments of 64 flows before a port of 10 Gb/s, and what of them came out of it.
//!
//! The traces are made once, in `target/analysis-bench` (1 GB). With a SCALE of 0.1 they are a tenth as long. Instructions: `valgrind
//! --tool=callgrind --toggle-collect=fanin_bench_analyze target/release/examples/bench parquet 0.1`, once the trace has been made.
#![allow(clippy::disallowed_methods)] // It measures.

use fanin_analysis::trace::{analyze, Control, Observer, Options, Progress, TraceReport};
use fanin_scenario::Scenario;
use fanin_telemetry::{QueueRow, Table};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::SerializedFileReader;
use parquet::file::writer::SerializedFileWriter;
use parquet::record::{Row, RowAccessor};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

const CASES: [&str; 7] = ["port", "result", "parquet", "csv", "json", "capture", "pair"];

struct Patient;

impl Observer for Patient {
    fn progress(&mut self, _: Progress) -> Control {
        Control::Continue
    }
}

impl fanin_sim::Observer for Patient {
    fn progress(&mut self, _: &fanin_sim::Progress) -> fanin_sim::Control {
        fanin_sim::Control::Continue
    }

    fn cost(&mut self) -> (f64, f64) {
        (0.0, 0.0)
    }
}

/// Fan-in of 40 flows every 4 ms at 20 Gb/s until 200 packets stand, then one flow at 9 Gb/s.
fn make_port(folder: &Path, scale: f64) {
    std::fs::create_dir_all(folder).unwrap();
    let manifest = r#"{"schema": "manifest/1", "status": "complete", "watched":
        [{"port": "tor->h0", "rate_bps": 10000000000, "overhead_bytes": 20, "buffer_bytes": null, "index": 0}]}"#;
    std::fs::write(folder.join("manifest.json"), manifest).unwrap();
    let mut table = Table::<QueueRow>::file(folder).unwrap();
    let name = fanin_telemetry::Name::from("tor->h0");
    let (mut time, mut queue, mut state, mut ramp) = (0_u64, 0_u64, 1_u64, false);
    let mut start = 0;
    for _ in 0..(1e7 * scale) as u64 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if !ramp && time > start + 4_000_000_000 {
            (ramp, start) = (true, time);
        }
        ramp &= queue < 200 * 1518;
        let gap = if ramp { 615_200 } else { 1_367_000 } + (state >> 50);
        time += gap;
        queue = queue.saturating_sub(gap * 1518 / 1_230_400);
        let row = QueueRow {
            time_ps: time,
            port: name.clone(),
            queue_bytes: queue,
            queue_packets: (queue / 1518) as u32,
            flow: if ramp { (state >> 33) as u32 % 40 } else { 40 },
            frame_bytes: 1518,
            marked: queue > 65 * 1518,
            dropped: false,
            replaced: false,
            at_head: false,
        };
        table.push(row).unwrap();
        queue += 1518;
    }
    table.finish().unwrap();
}

/// The demo's network and traffic for a shorter time, every packet at every port of a switch: 4 x (8 + 2) + 2 x 4 = 48.
fn make_result(folder: &Path, scale: f64) {
    const SCENARIO: &str = r#"
        name = "bench"
        seed = 1
        topology = { kind = "leaf_spine", leaves = 4, hosts_per_leaf = 8, spines = 2,
                     host_link = { rate = "10Gbps", delay = "1us" }, uplink = { rate = "40Gbps", delay = "1us" } }
        telemetry.queues = ["leaf*->*", "spine*->*"]
        [switch]
        latency = "500ns"
        buffer = { kind = "static", per_port = "512KB" }
        marking = { kind = "threshold", k = "65 packets" }
        [transport]
        kind = "tcp"
        congestion_control = "dctcp"
        handshake = false
        initial_window = 10
        rto_min = "10ms"
        rto_initial = "10ms"
        delayed_ack_timeout = "1ms"
        [[traffic]]
        name = "background"
        kind = "poisson"
        sizes = "web-search"
        load = 0.45
        stop = "STOP"
        [[traffic]]
        name = "query"
        kind = "query"
        fanout = 20
        size = "20KB"
        request = "50B"
        load = 0.05
        stop = "STOP"
    "#;
    let text = SCENARIO.replace("STOP", &format!("{}us", (200e3 * scale) as u64));
    let scenario = Scenario::from_toml(&text, Path::new(".")).unwrap_or_else(|e| panic!("{e:?}"));
    fanin_sim::run(&scenario, folder, &mut Patient).unwrap_or_else(|e| panic!("{e}"));
}

fn rows(file: &Path) -> impl Iterator<Item = Row> {
    let reader = SerializedFileReader::new(File::open(file).unwrap()).unwrap();
    reader.into_iter().map(Result::unwrap)
}

/// A record as a switch would export it.
struct Exported {
    ts_ns: i64,
    ifname: ByteArray,
    five_tuple: ByteArray,
    qlen_bytes: i64,
    pkt_len: i32,
    ecn_ce: bool,
    tail_drop: bool,
}

/// The records of a result: ports as `leaf0:Ethernet3`, flows as `10.0.0.5:40017 > 10.0.0.9:80 tcp`.
fn exported(folder: &Path) -> impl Iterator<Item = Exported> {
    let address = |host: &str| format!("10.0.0.{}", host.trim_start_matches('h'));
    let flow = |row: Row| {
        let (number, src, dst) = (row.get_uint(0).unwrap(), row.get_string(4).unwrap(), row.get_string(5).unwrap());
        let name = format!("{}:{} > {}:80 tcp", address(src), 32_768 + number % 28_000, address(dst));
        (number, ByteArray::from(name.into_bytes()))
    };
    let flows: BTreeMap<u32, ByteArray> = rows(&folder.join("flows.parquet")).map(flow).collect();
    let mut ports = BTreeMap::new();
    rows(&folder.join("queues.parquet")).map(move |row| {
        let name = row.get_string(1).unwrap().clone();
        let switch = name.split("->").next().unwrap().to_string();
        let there = ports.len();
        let ifname = ports.entry(name).or_insert_with(|| ByteArray::from(format!("{switch}:Ethernet{there}").into_bytes()));
        Exported {
            ts_ns: (row.get_ulong(0).unwrap() / 1000) as i64,
            ifname: ifname.clone(),
            five_tuple: flows[&row.get_uint(4).unwrap()].clone(),
            qlen_bytes: row.get_ulong(2).unwrap() as i64,
            pkt_len: i32::from(row.get_ushort(5).unwrap()),
            ecn_ce: row.get_bool(6).unwrap(),
            tail_drop: row.get_bool(7).unwrap(),
        }
    })
}

fn make_parquet(records: impl Iterator<Item = Exported>, file: &Path) {
    let schema = "message export { optional int64 ts_ns; optional binary ifname (UTF8); optional int64 qlen_bytes;
        optional int32 pkt_len; optional binary five_tuple (UTF8); optional boolean ecn_ce; optional boolean tail_drop; }";
    let schema = std::sync::Arc::new(parquet::schema::parser::parse_message_type(schema).unwrap());
    let properties = WriterProperties::builder().set_compression(parquet::basic::Compression::SNAPPY).build();
    let mut writer = SerializedFileWriter::new(File::create(file).unwrap(), schema, properties.into()).unwrap();
    let mut records = records.peekable();
    while records.peek().is_some() {
        let part: Vec<Exported> = records.by_ref().take(1 << 20).collect();
        let mut group = writer.next_row_group().unwrap();
        for column in 0.. {
            let Some(mut open) = group.next_column().unwrap() else { break };
            let there = vec![1; part.len()];
            macro_rules! write {
                ($writer:ident, $value:expr) => {
                    $writer.write_batch(&part.iter().map($value).collect::<Vec<_>>(), Some(&there), None).unwrap()
                };
            }
            match open.untyped() {
                ColumnWriter::Int64ColumnWriter(w) if column == 0 => write!(w, |r| r.ts_ns),
                ColumnWriter::Int64ColumnWriter(w) => write!(w, |r| r.qlen_bytes),
                ColumnWriter::Int32ColumnWriter(w) => write!(w, |r| r.pkt_len),
                ColumnWriter::ByteArrayColumnWriter(w) if column == 1 => write!(w, |r| r.ifname.clone()),
                ColumnWriter::ByteArrayColumnWriter(w) => write!(w, |r| r.five_tuple.clone()),
                ColumnWriter::BoolColumnWriter(w) if column == 5 => write!(w, |r| r.ecn_ce),
                ColumnWriter::BoolColumnWriter(w) => write!(w, |r| r.tail_drop),
                _ => unreachable!(),
            };
            open.close().unwrap();
        }
        group.close().unwrap();
    }
    writer.close().unwrap();
}

/// Full segments of 64 flows to one host, every second one acknowledged, as tcpdump keeps their headers.
fn make_capture(file: &Path, scale: f64) {
    let mut out = BufWriter::new(File::create(file).unwrap());
    let mut put = |words: &[u32], bytes: &[u8]| {
        words.iter().for_each(|word| out.write_all(&word.to_le_bytes()).unwrap());
        out.write_all(bytes).unwrap();
    };
    put(&[0xa1b2_3c4d, 0x0004_0002, 0, 0, 100, 1], &[]);
    for i in 0..(1e7 * scale) as u32 {
        let (flow, answer) = ((i / 3 % 64) as u8, i % 3 == 2);
        let mut frame = [0_u8; 100];
        let hosts = if answer { [flow, 200] } else { [200, flow] };
        frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, hosts[0], 2, 0, 0, 0, 0, hosts[1], 8, 0]);
        let length: u16 = if answer { 52 } else { 1500 };
        frame[14..18].copy_from_slice(&[0x45, 0, (length >> 8) as u8, length as u8]);
        frame[18..24].copy_from_slice(&[(i >> 8) as u8, i as u8, 0x40, 0, 64, 6]);
        frame[26..34].copy_from_slice(&[10, 0, 0, hosts[1], 10, 0, 0, hosts[0]]);
        let ports = if answer { [0, 80, 4, flow] } else { [4, flow, 0, 80] };
        frame[34..38].copy_from_slice(&ports);
        let sent = (i / 192) * 2 * 1448;
        let number = sent + if i % 3 > 0 { 1448 } else { 0 };
        let (seq, ack) = if answer { (1, sent + 2 * 1448) } else { (number, 1) };
        frame[38..42].copy_from_slice(&seq.to_be_bytes());
        frame[42..46].copy_from_slice(&ack.to_be_bytes());
        frame[46..48].copy_from_slice(&[0x80, 0x10]);
        frame[54..58].copy_from_slice(&[1, 1, 8, 10]);
        let kept = if answer { 66 } else { 100 };
        let ns = u64::from(i) * 900;
        let words = [(ns / 1_000_000_000) as u32 + 1_000, (ns % 1_000_000_000) as u32, kept, u32::from(length) + 14];
        put(&words, &frame[..kept as usize]);
    }
}

/// Full segments of 64 flows at twice the speed of a port with 512 KB of buffer, then at a third of it: before it, and behind it.
fn make_pair(folder: &Path, scale: f64) {
    const SEND: u64 = 1_230;
    std::fs::create_dir_all(folder).unwrap();
    let mut files = ["before.pcap", "behind.pcap"].map(|name| BufWriter::new(File::create(folder.join(name)).unwrap()));
    let put = |file: &mut BufWriter<File>, words: &[u32], bytes: &[u8]| {
        words.iter().for_each(|word| file.write_all(&word.to_le_bytes()).unwrap());
        file.write_all(bytes).unwrap();
    };
    files.iter_mut().for_each(|file| put(file, &[0xa1b2_3c4d, 0x0004_0002, 0, 0, 100, 1], &[]));
    let (mut time, mut free, mut state) = (0_u64, 0_u64, 1_u64);
    for i in 0..(4e6 * scale) as u64 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let jitter = (state >> 33) % SEND;
        time += if i % 6_000 < 1_500 { jitter } else { SEND * 5 / 2 + jitter };
        let flow = (state >> 56) as u8 % 64;
        let mut frame = [0_u8; 100];
        frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 200, 2, 0, 0, 0, 0, flow, 8, 0]);
        frame[14..18].copy_from_slice(&[0x45, 0, 5, 220]);
        frame[18..24].copy_from_slice(&[(i >> 14) as u8, (i >> 6) as u8, 0x40, 0, 64, 6]);
        frame[26..34].copy_from_slice(&[10, 0, 0, flow, 10, 0, 0, 200]);
        frame[34..38].copy_from_slice(&[4, flow, 0, 80]);
        frame[38..42].copy_from_slice(&(i as u32).wrapping_mul(1448).to_be_bytes());
        frame[46..48].copy_from_slice(&[0x80, 0x10]);
        frame[54..58].copy_from_slice(&[1, 1, 8, 10]);
        frame[58..62].copy_from_slice(&((time / 1_000_000) as u32).to_be_bytes());
        let words = |ns: u64| [(ns / 1_000_000_000) as u32 + 1_000, (ns % 1_000_000_000) as u32, 100, 1514];
        put(&mut files[0], &words(time), &frame);
        let start = free.max(time);
        if start - time < 512_000 / 1_518 * SEND {
            free = start + SEND;
            put(&mut files[1], &words(start + 3_000), &frame);
        }
    }
}

fn make_csv(records: impl Iterator<Item = Exported>, file: &Path) {
    let mut out = BufWriter::new(File::create(file).unwrap());
    writeln!(out, "ts_ns,ifname,qlen_bytes,pkt_len,five_tuple,ecn_ce,tail_drop").unwrap();
    for r in records {
        let (port, flow) = (r.ifname.as_utf8().unwrap(), r.five_tuple.as_utf8().unwrap());
        let (marked, dropped) = (u8::from(r.ecn_ce), u8::from(r.tail_drop));
        writeln!(out, "{},{port},{},{},{flow},{marked},{dropped}", r.ts_ns, r.qlen_bytes, r.pkt_len).unwrap();
    }
    out.flush().unwrap();
}

fn make_json(records: impl Iterator<Item = Exported>, file: &Path) {
    let mut out = BufWriter::new(File::create(file).unwrap());
    for r in records {
        let (port, flow) = (r.ifname.as_utf8().unwrap(), r.five_tuple.as_utf8().unwrap());
        let (time, queue, frame, marked, dropped) = (r.ts_ns, r.qlen_bytes, r.pkt_len, r.ecn_ce, r.tail_drop);
        write!(out, "{{\"ts_ns\":{time},\"ifname\":\"{port}\",\"qlen_bytes\":{queue},\"pkt_len\":{frame},").unwrap();
        writeln!(out, "\"five_tuple\":\"{flow}\",\"ecn_ce\":{marked},\"tail_drop\":{dropped}}}").unwrap();
    }
    out.flush().unwrap();
}

/// The trace of a case, made where it is not there yet.
fn trace(case: &str, folder: &Path, scale: f64) -> PathBuf {
    let path = folder.join(match case {
        "parquet" => "ports.parquet",
        "csv" => "ports.csv",
        "capture" => "both.pcap",
        "json" => "ports.jsonl",
        "pair" => "sides",
        other => other,
    });
    if !path.exists() {
        eprintln!("making {}", path.display());
        std::fs::create_dir_all(folder).unwrap();
        // Whoever stops it leaves no half of one.
        let part = path.with_extension("part");
        match case {
            "port" => make_port(&part, scale),
            "result" => make_result(&part, scale),
            "parquet" => make_parquet(exported(&trace("result", folder, scale)), &part),
            "capture" => make_capture(&part, scale),
            "pair" => make_pair(&part, scale),
            "json" => make_json(exported(&trace("result", folder, scale)), &part),
            _ => make_csv(exported(&trace("result", folder, scale)), &part),
        }
        std::fs::rename(part, &path).unwrap();
    }
    path
}

/// What is measured.
#[no_mangle]
#[inline(never)]
pub extern "Rust" fn fanin_bench_analyze(options: &Options) -> TraceReport {
    analyze(options, &mut Patient).unwrap_or_else(|failure| panic!("{failure}"))
}

/// Seconds of processor time so far: the machine may have other work.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).expect("nanoseconds") / 1e9
}

fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmHWM")).unwrap_or_default();
    line.trim_start_matches("VmHWM:").trim().to_string()
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let case = arguments.next();
    let scale = arguments.next().and_then(|scale| scale.parse().ok()).unwrap_or(1.0);
    let folder = PathBuf::from(format!("target/analysis-bench/{scale}"));
    if let Some(case) = case.as_ref().filter(|case| !CASES.contains(&case.as_str())) {
        eprintln!("'{case}' is no case; there are {}", CASES.join(", "));
        std::process::exit(2);
    }
    for case in CASES.into_iter().filter(|name| case.as_ref().is_none_or(|case| case == name)) {
        let mut options = Options { paths: vec![trace(case, &folder, scale)], ..Options::default() };
        if case == "pair" {
            let sides = options.paths.remove(0);
            (options.paths, options.behind) = (vec![sides.join("before.pcap")], vec![sides.join("behind.pcap")]);
            options.sort = std::env::var_os("FANIN_SORT").is_some();
        }
        if matches!(case, "capture" | "pair") {
            options.settings.rate = Some(fanin_units::BitRate::from_gbps(10));
        }
        let begin = cpu_seconds();
        let report = fanin_bench_analyze(&options);
        let seconds = cpu_seconds() - begin;
        let read = report.sources.iter().filter_map(|s| s.records).sum::<u64>();
        let bursts = report.ports.iter().map(|p| p.bursts_found).sum::<u64>();
        println!(
            "{case:8} {:6.2} M records per CPU second: {read} records of {} ports, {bursts} bursts, {seconds:.2} s, peak memory {}",
            read as f64 / seconds / 1e6,
            report.ports.len(),
            peak_memory()
        );
    }
}
