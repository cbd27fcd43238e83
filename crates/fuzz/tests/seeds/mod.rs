//! What fuzzing starts from: files that a small simulation writes, and the same by hand where no simulation writes it.

use fanin_scenario::Scenario;
use fanin_sim::{finish, world, Destination, Pause};
use fanin_wire::Capture;
use std::collections::BTreeMap;
use std::path::Path;

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
            for how in 0..4 {
                add("packets", &[how], &file);
            }
            for how in [0, 4, 8] {
                add("parquet", &[how], &read("queues.parquet"));
                add("parquet", &[how], &read("stamps.parquet"));
            }
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
    let rows = "ts;ifname;qlen;five tuple;len;ecn;drop\r\n";
    let switch: String =
        (0..40).map(|i| format!("{}.5;Eth1/{};{};a>b;1518;{};{}\r\n", i * 2, i % 2, i * i, i % 4, i % 3 / 2)).collect();
    add("csv", &[1], format!("\u{feff}# switch 7\r\n{rows}{switch}").as_bytes());
    add("csv", &[0], b"time_ns,queue_bytes,marked\n1,5,0\n2,7,1\n900,70000,1\n1000,3,no\n");
    add("csv", &[0], b"time,port,qlen\n2026-11-21T08:00:00.020000001Z,\"a\"\"b\",1\n2026-11-21T08:00:00.020000003Z,c,2\n");
    add("csv", &[2], b"10\t1518\n20\t3036\n30\t1e3\n");
    seeds
}
