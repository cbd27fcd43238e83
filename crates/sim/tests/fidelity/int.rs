//! In-band telemetry and what is controlled by it: records say what ports were like, and HPCC and PowerTCP do with them what their
//! papers say.

use crate::common::*;
use fanin_sim::Kept;
use fanin_telemetry::{PortRow, QueueRow};
use fanin_wire::Capture;

/// Hosts on one switch: 100 Gb/s and 1 us each.
fn star(hosts: u32, control: &str, more: &str) -> String {
    format!(
        "[topology]\nkind = \"single_switch\"\nhosts = {hosts}\nlink = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
         [transport]\nkind = \"roce\"\ncongestion_control = {control}\n[switch]\nbuffer = \"unlimited\"\nmechanisms.int = {{}}\n{more}\n"
    )
}

fn flow(src: u32, dst: u32, size: &str, start: &str) -> String {
    format!("{{ src = \"h{src}\", dst = \"h{dst}\", size = \"{size}\", start = \"{start}\" }}")
}

fn flows(all: &[String]) -> String {
    format!("[[traffic]]\nkind = \"flows\"\nflows = [{}]\n", all.join(", "))
}

/// Two leaves and a spine; four hosts of the first send to one of the second, and its neighbour answers another.
fn fabric(ports: &str) -> String {
    let to_h4 =
        (0..4).map(|h| flow(h, 4, "300KB", &format!("{h}us"))).chain([flow(5, 0, "200KB", "0us"), flow(5, 1, "3KB", "7us")]);
    format!(
        "[topology]\nkind = \"leaf_spine\"\nleaves = 2\nspines = 1\nhosts_per_leaf = 4\nhost_link = {{ rate = \"25Gbps\", delay = \"1us\" }}\n\
         uplink = {{ rate = \"50Gbps\", delay = \"2us\" }}\n[engine]\nports = \"{ports}\"\n\
         [transport]\nkind = \"roce\"\ncongestion_control = \"hpcc\"\n[switch]\nbuffer = \"unlimited\"\nmechanisms.int = {{}}\n\
         [telemetry]\nqueues = [\"leaf*\", \"spine*\"]\ncapture = {{ links = [\"leaf*\", \"spine*\"] }}\n{}",
        flows(&to_h4.collect::<Vec<_>>())
    )
}

/// A record by its bytes: rate code, nanoseconds, units of 128 B sent, units of 80 B in the queue.
fn fields(record: &[u8]) -> [u64; 4] {
    let all = u64::from_be_bytes(record.try_into().expect("eight bytes"));
    [all >> 60, all >> 36 & 0xFF_FFFF, all >> 16 & 0xF_FFFF, all & 0xFFFF]
}

/// What the record of each frame of a FIFO port must be, from nothing but when frames arrived and how long they were.
fn recomputed(rows: &[&QueueRow], ps_per_byte: u64, code: u64) -> Vec<[u64; 4]> {
    let mut free = 0;
    let starts: Vec<u64> = rows
        .iter()
        .map(|row| {
            let start = row.time_ps.max(free);
            free = start + (u64::from(row.frame_bytes) + 20) * ps_per_byte;
            start
        })
        .collect();
    let mut sent = 0;
    (0..rows.len())
        .map(|i| {
            let behind = rows[i + 1..].iter().take_while(|row| row.time_ps < starts[i]);
            let queue: u64 = behind.map(|row| u64::from(row.frame_bytes)).sum();
            let said = [code, (starts[i] / 1_000) & 0xFF_FFFF, (sent / 128) & 0xF_FFFF, queue.div_ceil(80)];
            sent += u64::from(rows[i].frame_bytes);
            said
        })
        .collect()
}

/// Frames that a link has carried: EtherType and what is behind it.
fn frames(kept: &Kept, link: &str) -> Vec<(u16, Vec<u8>)> {
    let mut capture = Capture::new(&kept.packets[..]).expect("a capture");
    let mut found = Vec::new();
    while let Some(frame) = capture.next_frame().expect("frames") {
        let (interface, data) = (frame.interface, frame.data.to_vec());
        if capture.interfaces()[interface].name == link {
            found.push((u16::from_be_bytes([data[12], data[13]]), data[14..].to_vec()));
        }
    }
    found
}

/// Each record is what the port was like when the frame left it, to the unit; and it is carried back unchanged.
#[test]
fn records_are_what_ports_were_like_at_departure() {
    let ran = run(&fabric("auto"));
    for (port, ps_per_byte, code, hop) in
        [("leaf0->spine0", 160, 9, 0), ("spine0->leaf1", 160, 9, 1), ("leaf1->h4", 320, 7, 2), ("leaf0->h0", 320, 7, 2)]
    {
        let rows: Vec<&QueueRow> = ran.kept.queues.iter().filter(|row| row.port.to_string() == port).collect();
        let expected = recomputed(&rows, ps_per_byte, code);
        let seen = frames(&ran.kept, port);
        assert_eq!(seen.len(), rows.len());
        let mut compared = 0;
        for (((kind, bytes), expected), row) in seen.iter().zip(&expected).zip(&rows) {
            assert_eq!(bytes.len() + 14 + 4, usize::from(row.frame_bytes));
            if *kind == 0xA8F6 {
                assert_eq!(usize::from(bytes[0] >> 4), hop + 1);
                assert_eq!(fields(&bytes[2 + 8 * hop..10 + 8 * hop]), *expected, "{port}");
                compared += 1;
            } else {
                assert_eq!((*kind, bytes[0] >> 4), (0xA8F7, 3), "acknowledgments bring all of it back");
            }
        }
        assert!(compared > 190 && expected.iter().any(|said| said[3] > 0), "{port}: {compared}");
    }
    let stacks = |link: &str, wanted: u16| -> Vec<Vec<u8>> {
        let all = frames(&ran.kept, link).into_iter().filter(|(kind, _)| *kind == wanted);
        all.map(|(_, bytes)| bytes[..26].to_vec()).collect()
    };
    assert_eq!(stacks("leaf1->h4", 0xA8F6), stacks("leaf1->spine0", 0xA8F7), "as it arrived, in the order in which it arrived");
}

/// FIFO ports whose departures are caught up with, and ports whose departures are events: the same bits.
#[test]
fn records_do_not_depend_on_how_ports_are_simulated() {
    let [auto, explicit] = ["auto", "explicit"].map(|ports| run(&fabric(ports)));
    assert_eq!(auto.outcome(), explicit.outcome());
    assert!(auto.kept.flows == explicit.kept.flows && auto.kept.queues == explicit.kept.queues);
    // The captures themselves name their scenarios.
    assert!(["leaf0->spine0", "leaf1->h4", "leaf1->spine0"].iter().all(|l| frames(&auto.kept, l) == frames(&explicit.kept, l)));
}

/// A flow that fits its window takes what its frames take, which grow on the way.
#[test]
fn telemetry_takes_time_on_the_wire() {
    let text = |control: &str, int: &str| {
        let one = flows(&[flow(0, 1, "20KB", "0us")]);
        star(2, &format!("\"{control}\""), &one).replace("mechanisms.int = {}\n", int)
    };
    let [with, without] = [text("hpcc", "mechanisms.int = {}\n"), text("none", "")].map(|text| run(&text).kept.flows[0].clone());
    assert_eq!(with.finish_ps.map(|at| at - with.start_ps), Some(with.ideal_ps));
    assert_eq!(without.finish_ps.map(|at| at - without.start_ps), Some(without.ideal_ps));
    // 20 packets with 12 B more on the last link, and one of them with 4 B more on the first.
    assert_eq!(with.ideal_ps - without.ideal_ps, (20 * 12 + 4) * 80);
}

/// The queue of the port to the receiver, by sample.
fn queue(kept: &Kept, port: &str) -> Vec<(u64, u64, u64)> {
    let of = |row: &&PortRow| row.port.to_string() == port;
    kept.ports.iter().filter(of).map(|row| (row.time_ps / 1_000_000, row.queue_max_bytes, row.tx_bytes)).collect()
}

/// Sixteen at once into one port. All of them start at the rate of the line, so that sixteen windows are on the way before anybody
/// can know; with the first acknowledgments they stop, the queue drains at the rate of the line, and stays away.
#[test]
fn an_incast_leaves_no_queue_once_its_first_round_trip_has_drained() {
    // A part of a packet more than its window for each of sixteen. With 1 us PowerTCP's fair windows are of three packets, and it oscillates: see docs/transports/powertcp.md.
    for (control, delay, most) in [("\"hpcc\"", "1us", 17_400), ("\"powertcp\"", "2us", 40_000)] {
        let all: Vec<String> = (0..16).map(|h| flow(h, 16, "2MB", "0us")).collect();
        let text = star(17, control, &format!("[telemetry]\nsample = \"1us\"\n{}", flows(&all)));
        let ran = run(&text.replace("delay = \"1us\"", &format!("delay = \"{delay}\"")));
        let bdp = 100e9 / 8.0 * ran.kept.flows[0].base_rtt_ps as f64 * 1e-12;
        let rows = queue(&ran.kept, "switch0->h16");
        let peak = rows.iter().map(|(_, queue, _)| *queue).max().unwrap_or(0);
        let drained = (2.0 * 16.0 * bdp / 12_500.0) as u64; // us, twice as long: what arrives meanwhile was sent by old windows, too
        let end = rows.last().map_or(0, |(time, ..)| *time);
        let later: Vec<_> = rows.iter().filter(|(time, ..)| (drained..end - 20).contains(time)).collect();
        let worst = later.iter().map(|(_, queue, _)| *queue).max().unwrap_or(u64::MAX);
        let sent: u64 = later.iter().map(|(.., sent)| *sent).sum();
        let used = sent as f64 * 1108.0 / 1088.0 / (later.len() as f64 * 12_500.0);
        println!("{control}: BDP {bdp:.0} B, peak {peak} B, after {drained} us at most {worst} B, {used:.3} of the line");
        assert!(peak as f64 > 14.0 * bdp && (peak as f64) < 16.5 * bdp, "{control}: {peak} of {bdp}");
        assert!(worst <= most, "{control}: {worst}");
        assert!(used > 0.9, "{control}: {used}");
    }
}

/// What each of the first `n` hosts sent in an interval, as shares of the line; the gap behind each frame is counted.
fn shares(kept: &Kept, n: u32, [from, to]: [u64; 2]) -> Vec<f64> {
    let sent = |h: u32| -> u64 {
        let rows = queue(kept, &format!("h{h}->switch0"));
        rows.iter().filter(|(time, ..)| (from..to).contains(time)).map(|(.., sent)| *sent).sum()
    };
    (0..n).map(|h| sent(h) as f64 * 1_110.0 / 1_090.0 / ((to - from) as f64 * 12_500.0)).collect()
}

/// Flows that come one after the other share the line in the end, use what they aim at of it, and keep no queue.
#[test]
fn flows_converge_to_fair_shares_of_what_they_aim_at() {
    for (control, least, most_queue) in [
        ("{ kind = \"hpcc\", increase = \"160B\" }", 0.93, 10_000),
        ("{ kind = \"powertcp\", flows = 64 }", 0.97, 15_000),
        ("{ kind = \"theta_powertcp\", flows = 64 }", 0.93, 60_000),
    ] {
        let all: Vec<String> = (0..4).map(|h| flow(h, 4, "100MB", &format!("{}us", 200 * h))).collect();
        let text = star(5, control, &format!("[telemetry]\nsample = \"1us\"\n{}", flows(&all)));
        let ran = run(&format!("duration = \"5ms\"\n{text}"));
        let shares = shares(&ran.kept, 4, [4_000, 5_000]);
        let (sum, squares) = (shares.iter().sum::<f64>(), shares.iter().map(|share| share * share).sum::<f64>());
        let jain = sum * sum / (4.0 * squares);
        let rows = queue(&ran.kept, "switch0->h4");
        let worst = rows.iter().filter(|(time, ..)| *time >= 4_000).map(|(_, queue, _)| *queue).max().unwrap_or(0);
        println!("{control}: shares {shares:.3?}, {sum:.3} of the line, Jain {jain:.4}, queue at most {worst} B");
        assert!(sum > least && sum <= 1.0, "{control}: {sum}");
        assert!(jain > 0.95, "{control}: {shares:?}");
        assert!(worst < most_queue, "{control}: {worst}");
    }
}

/// A long flow makes room for an incast, and takes the line again when that is over.
#[test]
fn a_long_flow_makes_room_for_an_incast_and_comes_back() {
    for control in ["\"hpcc\"", "\"powertcp\""] {
        let burst = (1..9).map(|h| flow(h, 9, "60KB", "500us"));
        let all: Vec<String> = [flow(0, 9, "100MB", "0us")].into_iter().chain(burst).collect();
        let text = star(10, control, &format!("[telemetry]\nsample = \"1us\"\n{}", flows(&all)));
        let ran = run(&format!("duration = \"1ms\"\n{text}"));
        let of_burst = ran.kept.flows.iter().filter(|flow| flow.size_bytes == 60_000);
        let last = of_burst.filter_map(|flow| flow.finish_ps).max().expect("it is over") / 1_000_000;
        let [before, during, after] = [[300, 500], [510, 530], [last + 60, last + 160]].map(|when| shares(&ran.kept, 1, when)[0]);
        println!("{control}: {before:.3} before, {during:.3} during, over at {last} us, {after:.3} after");
        assert_eq!(ran.kept.flows.iter().filter(|flow| flow.finish_ps.is_some()).count(), 8);
        assert!(before > 0.93 && during < 0.3 && after > 0.9, "{control}: {before} {during} {after}");
        assert!(last < 500 + 65, "{control}: {last}"); // 480 KB and what was on the way take 45 us
    }
}

/// Files in the form of HPCC's simulator run as they are: `topology.txt`, `flow.txt` with priority groups as classes, starts from 2 s on.
#[test]
fn hpccs_topology_and_flow_files_run_unchanged() {
    let folder = tempfile::tempdir().expect("a folder");
    let topology = "6 2 5\n4 5\n0 4 100Gbps 0.001ms 0.000000\n1 4 100Gbps 0.001ms 0\n2 5 100Gbps 1000ns 0\n3 5 100Gbps 1us 0\n4 5 400Gbps 1us 0\n";
    let flow = "3\n0 2 3 100 200000 2.000000000\n1 2 3 100 200000 2.000001\n3 2 3 100 50000 2.000002\n\nFirst line: flow #\n";
    std::fs::write(folder.path().join("topology.txt"), topology).expect("written");
    std::fs::write(folder.path().join("flow.txt"), flow).expect("written");
    let text = "[topology]\nkind = \"file\"\npath = \"topology.txt\"\nformat = \"hpcc\"\n\
        [switch]\nbuffer = \"unlimited\"\nscheduling = { kind = \"strict\", classes = 8 }\nmechanisms.int = {}\n\
        mechanisms.pfc = { memory = \"32MB\", classes = [3], max_frame = \"1200B\" }\n\
        [transport]\nkind = \"roce\"\ncongestion_control = \"hpcc\"\n\
        [[traffic]]\nkind = \"file\"\nformat = { kind = \"hpcc_flow\", path = \"flow.txt\", origin = \"2s\", pg_as_class = true }\n";
    let scenario = fanin_scenario::Scenario::from_toml(text, folder.path()).unwrap_or_else(|problems| panic!("{problems:#?}"));
    let ran = finish(fanin_sim::world(&scenario, &fanin_sim::Destination::Memory).expect("a world"));
    let mut flows: Vec<_> =
        ran.kept.flows.iter().map(|f| (f.start_ps / 1_000_000, f.size_bytes, f.class, f.retransmits)).collect();
    flows.sort_unstable();
    assert_eq!(flows, [(0, 200_000, 3, 0), (1, 200_000, 3, 0), (2, 50_000, 3, 0)]);
    let last = ran.kept.flows.iter().map(|flow| flow.finish_ps.expect("complete")).max().expect("three") / 1_000_000;
    // 450 KB at 100 Gb/s are 38 us with headers; all start blind, then HPCC shares the line.
    assert!(ran.totals.dropped == 0 && (38..60).contains(&last), "{last}");
}

/// Windows of one and a half packets: HPCC's simulator sends while less than W is in flight, so that the line is used as far as flows aim
/// at. Sent only while a whole packet fits, two flows used 86 % of it.
#[test]
fn windows_of_a_few_packets_fill_the_line() {
    for (n, delay) in [(2_u32, "100ns"), (3, "100ns"), (3, "300ns"), (4, "300ns")] {
        let senders: Vec<String> = (0..n).map(|h| flow(h, 4, "100MB", "0us")).collect();
        let text =
            star(5, "{ kind = \"hpcc\", min_rate = \"1Mbps\" }", &format!("[telemetry]\nsample = \"10us\"\n{}", flows(&senders)));
        let text = text
            .replace("delay = \"1us\"", &format!("delay = \"{delay}\""))
            .replace("kind = \"roce\"", "kind = \"roce\"\nmtu = 4096");
        let ran = run(&format!("duration = \"3ms\"\n{text}"));
        let sent: u64 = queue(&ran.kept, "switch0->h4").iter().filter(|(time, ..)| *time > 1_000).map(|(.., sent)| *sent).sum();
        let used = sent as f64 * 4_250.0 / 4_230.0 / (2_000.0 * 12_500.0);
        println!("{n} flows, {delay}: {used:.3} of the line");
        assert!(used > 0.92, "{n} flows, {delay}: {used}");
    }
}
