//! What fuzzing starts from: files that a small simulation writes, and the same by hand where no simulation writes it.

use fanin_scenario::Scenario;
use fanin_sim::{finish, world, Destination, Pause};
use fanin_wire::Capture;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

#[path = "../../../wire/tests/all/wrapping.rs"]
mod wrapping;

/// A segment in Ethernet and IPv4, the same but for its numbers.
fn segment(number: u16) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 152];
    frame.extend((number + 1).to_be_bytes());
    frame.extend([0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 81, 0, 80]);
    frame.extend([(u32::from(number) * 100).to_be_bytes(), [0, 0, 0, 1]].concat());
    frame.extend([0x80, 0x10, 1, 0, 0, 0, 0, 0, 1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0]);
    frame.resize(166, 0);
    frame
}

/// Captures of packets in a tunnel before and behind a port that drops every seventh.
fn tunnelled(wrapping: wrapping::Wrapping) -> [Vec<u8>; 2] {
    let mut files = [(); 2]
        .map(|()| [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 192, 1].into_iter().flat_map(u32::to_le_bytes).collect::<Vec<u8>>());
    for number in 0..12_u16 {
        let (frame, length) = wrapping::wrap(wrapping, &segment(number), 166);
        let kept = frame.len().min(192);
        for (side, file) in files.iter_mut().enumerate().filter(|(side, _)| *side == 0 || number % 7 != 3) {
            let ns = 1_000 * u32::from(number) + 5_000 * side as u32 + 1;
            file.extend([1, ns, kept as u32, length as u32].into_iter().flat_map(u32::to_le_bytes));
            file.extend(&frame[..kept]);
        }
    }
    files
}

/// An incast with losses that are notified or trimmed, marks, stamps, and a capture of two hosts.
fn simulate(ip: &str, snap: &str, repair: [&str; 2], folder: &Path) {
    let [at_switch, at_host] = repair;
    let text = format!(
        r#"
        framing = {{ ip = "{ip}" }}
        [topology]
        kind = "single_switch"
        hosts = 4
        link = {{ rate = "10Gbps", delay = "1us" }}
        [switch]
        buffer = {{ kind = "static", per_port = "2KB" }}
        marking = {{ kind = "threshold", k = "1KB" }}
        {at_switch}
        [transport]
        kind = "tcp"
        congestion_control = "dctcp"
        {at_host}
        handshake = false
        mss = 500
        initial_window = 8
        [telemetry]
        queues = ["*->h3"]
        registers = {{}}
        sample = "off"
        capture = {{ hosts = ["h0", "h3"], snap = "{snap}" }}
        [[traffic]]
        kind = "incast"
        receiver = "h3"
        size = "6KB"
        [[traffic]]
        kind = "cbr"
        src = "h1"
        dst = "h0"
        rate = "1Gbps"
        size = "800B"
        packet = "200B"
        "#
    );
    let scenario = Scenario::from_toml(&text, Path::new(".")).unwrap_or_else(|problems| panic!("{problems:#?}"));
    let mut world = world(&scenario, &Destination::Folder(folder)).expect("a world");
    while world.advance(100_000).expect("tables") == Pause::Budget {}
    finish(&mut world).expect("tables");
}

/// A handshake and some data as `tcpdump -i any` sees them on a bridge: in at one interface, out at another, answers on a third.
fn cooked() -> Vec<u8> {
    let mut file: Vec<u8> = [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 96, 276].into_iter().flat_map(u32::to_le_bytes).collect();
    let mut add = |us: u32, interface: u32, kind: u8, answer: bool, flags: u8, (seq, ack): (u32, u32), payload: u16| {
        let mut frame = vec![8, 0, 0, 0];
        frame.extend(interface.to_be_bytes());
        frame.extend([0, 1, kind, 6, 2, 0, 0, 0, 0, 1, 0, 0, 0x45, 0]);
        frame.extend((52 + payload).to_be_bytes());
        frame.extend([0, us as u8, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1 + u8::from(answer), 10, 0, 0, 2 - u8::from(answer)]);
        frame.extend(if answer { [0, 80, 0, 81] } else { [0, 81, 0, 80] });
        frame.extend([seq.to_be_bytes(), ack.to_be_bytes()].concat());
        frame.extend([0x80, flags, 1, 0, 0, 0, 0, 0, 1, 1, 8, 10]);
        frame.extend([us.to_be_bytes(), [0; 4]].concat());
        let length = frame.len() as u32 + u32::from(payload);
        file.extend([1, us * 1000, frame.len() as u32, length].into_iter().flat_map(u32::to_le_bytes));
        file.extend(frame);
    };
    add(1, 4, 3, false, 2, (0, 0), 0);
    add(2, 6, 4, false, 2, (0, 0), 0);
    add(1_000, 7, 3, true, 0x12, (0, 1), 0);
    add(2_000, 4, 3, false, 0x10, (1, 1), 0);
    for i in [0, 1, 2, 5, 3] {
        add(3_000 + i, 4, 3, false, 0x10, (1 + i * 1_000, 1), 1_000);
        add(3_001 + i, 6, 4, false, 0x10, (1 + i * 1_000, 1), 1_000);
    }
    add(4_000, 7, 3, true, 0x10, (1, 6_001), 0);
    file
}

/// Inputs by target.
pub fn seeds() -> BTreeMap<&'static str, Vec<Vec<u8>>> {
    let mut seeds: BTreeMap<&'static str, Vec<Vec<u8>>> = BTreeMap::new();
    let mut add = |target, head: &[u8], rest: &[u8]| seeds.entry(target).or_default().push([head, rest].concat());
    let pdn = ["mechanisms.pdn = {}", "drop_notification = true"];
    let trimming = ["mechanisms.trimming = {}", "trim_nack = true"];
    for (ip, snap, repair) in [("v4", "64B", pdn), ("v4", "1518B", pdn), ("v6", "1518B", pdn), ("v4", "1518B", trimming)] {
        let folder = tempfile::tempdir().expect("a folder");
        simulate(ip, snap, repair, folder.path());
        let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
        let file = read("packets.pcapng");
        if snap == "64B" {
            add("capture", &[], &file);
            for how in [0, 1, 2, 3, 6, 10, 26, 34] {
                add("packets", &[how], &file);
            }
            for how in [0, 4, 8] {
                add("parquet", &[how], &read("queues.parquet"));
                add("parquet", &[how], &read("stamps.parquet"));
            }
            let (kept, part) = (&file[..file.len().min(9_000)], &file[..file.len().min(7_000)]);
            for how in [0, 3, 16] {
                let [low, high] = (kept.len() as u16).to_le_bytes();
                add("pair", &[how, low, high], &[kept, part].concat());
            }
            let [low, high] = (file.len().min(16_000) as u16).to_le_bytes();
            add("pair", &[6, low, high], &file[..file.len().min(16_000)]);
        } else {
            // The first frames; a file may end anywhere.
            add("capture", &[], &file[..8_000]);
            add("packets", &[0], &file[..8_000]);
        }
        let mut capture = Capture::new(&file[..]).expect("a capture");
        let mut stamps = vec![16; 10];
        let mut special = 0;
        while let Some(frame) = capture.next_frame().expect("a frame") {
            let trimmed = frame.headers().is_some_and(|headers| frame.is_trimmed(&headers));
            special += usize::from(frame.notice().is_some() || trimmed);
            if frame.notice().is_some() {
                add("notification", &[], frame.data);
            }
            add("frame", &[0, 1, 0], frame.data);
            if let Some(stamp) = frame.headers().and_then(|headers| frame.stamp(&headers)) {
                stamps.extend(stamp.to_bytes());
            }
        }
        assert!(special > 0, "{ip} {repair:?}: no notification and no trimmed frame");
        stamps.truncate(1_024);
        add("stamp", &[], &stamps);
    }
    for how in [0, 2, 6, 10, 34] {
        add("packets", &[how], &cooked());
    }
    let example = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces").join(name);
        std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    };
    for (how, name, length) in [
        (4, "sflow.pcap", 6_000),
        (1, "lanz.csv", 8_000),
        (2, "counters.csv", 8_000),
        (4, "minutes.csv", 8_000),
        (8, "int.pcap", 6_000),
        (4, "flows.pcap", 8_000),
        (0, "bursts.json", 8_000),
        (16, "bst.json", 8_000),
        (0, "otlp.json", 8_000),
    ] {
        let file = example(name);
        add("feed", &[how], &file[..file.len().min(length)]);
    }
    // A configuration of LANZ with segments of 512 B, then a congestion of 70 segments (lanz.proto).
    let config = b"\x0e\x0a\x0c\x08\x01\x10\x01\x18\x02\x20\x80\x04\x28\x90\x03";
    let congestion = b"\x15\x12\x13\x08\xda\xf4\xa1\xd0\xb0\xaa\x21\x12\x01\x78\x18\x00\x20\x01\x28\x46\x30\x01";
    add("feed", &[0], &[&config[..], congestion].concat());
    add(
        "feed",
        &[4],
        b"1700000000\nIF-MIB::ifHCOutOctets.3 = Counter64: 5\n1700000060\nIF-MIB::ifHCOutOctets.3 = Counter64: 95000000000\n",
    );
    add(
        "feed",
        &[4],
        b"1700000000.5\nNIC statistics:\n     tx_bytes: 5\n1700000001\nNIC statistics:\n     tx_bytes: 900000000\n",
    );
    add("feed", &[0], br#"[{"name":"s","timestamp":1700000000000000000,"tags":{"interface_name":"e1"},"values":{"/x/out-octets":"1","/x/max-queue-len":5}}]
[{"name":"s","timestamp":1700000001000000000,"tags":{"interface_name":"e1"},"values":{"/x/out-octets":"900","/x/max-queue-len":9}}]"#);
    // SONiC: a template with a time of two elements and the bytes of a port, a placeholder of 4 bytes, then two records (RFC 7011).
    let template = b"\x00\x0a\x00\x30\0\0\0\0\0\0\0\0\0\0\0\x07\x00\x02\x00\x20\x01\x00\x00\x04\
        \x01\x42\x00\x04\x01\x45\x00\x04\x80\x00\x00\x04\0\0\0\0\x80\x01\x00\x08\x00\x01\x00\x09";
    let record = |ms: u32, bytes: u64| {
        let time = [1_700_000_000_u32.to_be_bytes(), (ms * 1_000_000).to_be_bytes(), [0xde, 0xad, 0xbe, 0xef]].concat();
        [time, bytes.to_be_bytes().to_vec()].concat()
    };
    let data = b"\x00\x0a\x00\x3c\0\0\0\0\0\0\0\0\0\0\0\x07\x01\x00\x00\x2c";
    add("feed", &[4], &[&template[..], data, &record(1, 5), &record(2, 900_000)].concat());
    add(
        "feed",
        &[4],
        br#"{"rack_id": 1156, "server_hostname": 106088, "sampling_freq": 1000, "egressBytes": [1, 1, 1, 1],
"burst_result": {"ingress": {"1650000000123456": [{"Position": 1, "Length": 2}]}}, "ingressBytes": [100000, 1500000, null, 9]}"#,
    );
    // Streams in pieces: all of telemetry, and tables whose names of columns come alone.
    let lanz = [&config[..], congestion].concat();
    for (how, first, piece, bytes) in [
        (0, 0, 7, &lanz[..]),
        (16, config.len() as u16, 3, &lanz[..]),
        (20, 100, 5, &[&template[..], data, &record(1, 5), &record(2, 900_000)].concat()[..]),
        (12, 0, 12, &[&template[..], data, &record(1, 5), &record(2, 900_000)].concat()[..]),
        (4, 4_000, 200, &example("sflow.pcap")[..6_000]),
        (1, 400, 50, &example("lanz.csv")[..]),
        (3, 900, 30, &example("counters.csv")[..]),
        (0, 40, 9, b"time_us,port,queue_bytes,frame_bytes,flow\n1,a,0,1500,f\n2,b,90000,1500,g\n9999999999,a,5,9,f\n3,a,90000,1500,f\n4,a,0,1500,f\n"),
        (8, 0, 15, b"{\"time_us\": 1, \"queue_bytes\": 90000}\n{\"time_us\": 2, \"queue_bytes\": 0}\n\n{\"time_us\": 9, \"queue_bytes\": 1}\n"),
    ] {
        let [low, high] = u16::to_le_bytes(first);
        add("live", &[how, low, high, piece], bytes);
    }
    let table = "Microburst Statistics\nEth1/1|U0|310128|2026/11/21 08:00:00:081725|832000|2026/11/21 08:00:00:081825|9000|2026/11/21 08:00:00:081925|200.00 us\n";
    // Flows of NetFlow 9 (RFC 3954): addresses, bytes, the interface, begin and end by uptime, a datagram of 80 bytes; twice.
    let flows = |number: u8| {
        let header = [0, 9, 0, 2, 0, 0, 0xea, 0x60, 0x65, 0x53, 0xf1, 0, 0, 0, 0, number, 0, 0, 0, 8];
        let template = [0, 0, 0, 32, 1, 0x2c, 0, 6, 0, 8, 0, 4, 0, 12, 0, 4, 0, 1, 0, 4, 0, 14, 0, 4, 0, 22, 0, 4, 0, 21, 0, 4];
        let record = [1, 0x2c, 0, 28, 10, 0, 0, 1, 10, 0, 0, 2, 0, 0, 0x40, 0, 0, 0, 0, 5, 0, 0, 0x27, 0x10, 0, 0, 0x4e, 0x20];
        [&header[..], &template, &record].concat()
    };
    let flows = [flows(1), flows(2)].concat();
    for (how, first, piece, bytes) in [
        (0, 0, 40, table.as_bytes()),
        (0, 3_000, 90, &example("bursts.json")[..]),
        (32, 1_000, 60, &example("int.pcap")[..6_000]),
        (4, 1_000, 120, &example("flows.pcap")[..]),
        (4, 70, 9, &flows[..]),
        (12, 0, 20, &flows[..]),
    ] {
        let [low, high] = u16::to_le_bytes(first);
        add("live", &[how, low, high, piece], bytes);
    }
    // OTLP: metrics of a resource with one attribute, and a gauge of SONiC with one point (metrics.proto), twice.
    let field = |tag: u8, body: &[u8]| [&[tag << 3 | 2, body.len() as u8][..], body].concat();
    let label = |tag: u8, key: &[u8], value: &[u8]| field(tag, &[field(1, key), field(2, &field(1, value))].concat());
    let point = |ms: u64, value: u64| {
        let time =
            [&[0x19][..], &(1_700_000_000_000_000_000 + ms * 1_000_000).to_le_bytes(), &[0x31], &value.to_le_bytes()].concat();
        let sai = [label(7, b"sai_type_id", b"1"), label(7, b"sai_stat_id", b"9")].concat();
        let gauge = field(5, &field(1, &[time, sai].concat()));
        let scope = field(2, &field(2, &[field(1, b"m"), gauge].concat()));
        field(1, &[field(1, &label(1, b"host.name", b"h")), scope].concat())
    };
    add("feed", &[4], &[point(0, 5), point(1, 900_000)].concat());
    add("feed", &[0], table.as_bytes());
    // Flows of IPFIX (RFC 7011): addresses, a text of variable length, bytes, the interface, a time in seconds.
    let template = b"\x00\x0a\x00\x4c\x65\x53\xf1\x00\0\0\0\0\0\0\0\x08\x00\x02\x00\x20\x01\x2c\x00\x06\
        \x00\x08\x00\x04\x00\x0c\x00\x04\x00\x52\xff\xff\x00\x01\x00\x04\x00\x0e\x00\x04\x00\x97\x00\x04";
    let record = b"\x01\x2c\x00\x1c\x0a\0\0\x01\x0a\0\0\x02\x03abc\0\0\x40\0\0\0\0\x05\x65\x53\xf0\xf0";
    add("feed", &[4], &[&template[..], record].concat());
    for wrapping in wrapping::ALL {
        add("frame", &[0, 1, 0], &wrapping::wrap(wrapping, &segment(1), 166).0);
        let [before, behind] = tunnelled(wrapping);
        add("packets", &[0], &before);
        let [low, high] = (before.len() as u16).to_le_bytes();
        for how in [1, 9, 17] {
            add("pair", &[how, low, high], &[&before[..], &behind].concat());
        }
    }
    let rows = "ts;ifname;qlen;five tuple;len;ecn;drop\r\n";
    let switch: String =
        (0..40).map(|i| format!("{}.5;Eth1/{};{};a>b;1518;{};{}\r\n", i * 2, i % 2, i * i, i % 4, i % 3 / 2)).collect();
    add("csv", &[1], format!("\u{feff}# switch 7\r\n{rows}{switch}").as_bytes());
    add("csv", &[0], b"time_ns,queue_bytes,marked\n1,5,0\n2,7,1\n900,70000,1\n1000,3,no\n");
    add("csv", &[0], b"time,port,qlen\n2026-11-21T08:00:00.020000001Z,\"a\"\"b\",1\n2026-11-21T08:00:00.020000003Z,c,2\n");
    add("csv", &[2], b"10\t1518\n20\t3036\n30\t1e3\n");
    add("csv", &[0], b"time,qlen\n\"2026-11-22 18:30:00,123456789\",1\n2026-11-22T18:30:00.5+01:00,2\n");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(format!("{rows}{switch}").as_bytes()).expect("memory");
    add("csv", &[1], &gzip.finish().expect("memory"));
    let line = |i: u32| {
        let name = if i % 2 == 0 { "a>b" } else { "a\\u003eb \\ud83d\\ude00" };
        format!(
            "{{\"at\": {{\"ts\": {i}.5}}, \"view\": \"e{}\", \"qlen\": {}e1, \"flow\": \"{name}\", \"x\": [1, null, {{}}]}}\n",
            i % 3,
            i * i
        )
    };
    let lines: String = (0..40).map(line).collect();
    add("json", &[16], lines.as_bytes());
    add(
        "json",
        &[0],
        b"\xef\xbb\xbf{\"time_ns\":1,\"queue_bytes\":5,\"marked\":true}\n\n{\"time_ns\":2,\"queue_bytes\":null}\n{\"a\"",
    );
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../analysis/tests/arrow");
    for (name, how) in [
        ("plain.arrow", 16),
        ("lz4.arrow", 3),
        ("zstd.arrow", 16),
        ("stream-zstd.arrows", 3),
        ("delta.arrows", 0),
        ("polars-lz4.arrow", 3),
        ("hft.arrows", 0),
    ] {
        add("arrow", &[how], &std::fs::read(kept.join(name)).unwrap_or_else(|e| panic!("{name}: {e}")));
    }
    seeds
}
