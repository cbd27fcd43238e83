//! What a pair says of itself where it is not what it was given as, and that it says nothing where it is.

use super::*;
use crate::checks::{Level, Trust};
use std::io::Read;
use std::path::PathBuf;

/// Codes and levels of what was found.
pub(super) fn codes(report: &TraceReport) -> Vec<(&'static str, Level)> {
    report.plausibility.findings.iter().map(|f| (f.code, f.level)).collect()
}

fn doubts(report: &TraceReport) -> Vec<&'static str> {
    report.plausibility.findings.iter().filter(|f| f.level > Level::Note).map(|f| f.code).collect()
}

/// A real kernel's captures, which come with the project: a port of 100 Mb/s.
fn kept(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/captures").join(format!("{name}.pcap.gz"))
}

fn kernel(before: &Path, behind: Option<&Path>, more: &Value) -> Result<TraceReport, Failure> {
    let mut settings = json!({"paths": [before], "rate": "100Mbps", "fcs": false, "overhead": "0B", "detailed": 0});
    let map = settings.as_object_mut().unwrap();
    map.extend(behind.map(|behind| ("behind".into(), json!([behind]))));
    map.extend(more.as_object().unwrap().clone());
    analyze(&Options::from_json(&settings.to_string()).unwrap(), &mut Quiet)
}

/// Frames of a capture of nanoseconds: time [ns], header and bytes.
fn frames(path: &Path) -> Vec<(u64, Vec<u8>)> {
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
    let (mut at, mut frames) = (24, Vec::new());
    while at < bytes.len() {
        let word = |i: usize| u64::from(u32::from_le_bytes(bytes[at + i..at + i + 4].try_into().unwrap()));
        let end = at + 16 + word(8) as usize;
        frames.push((word(0) * 1_000_000_000 + word(4), bytes[at + 8..end].to_vec()));
        at = end;
    }
    frames
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    /// Writes frames, at most `snap` bytes of each.
    fn write(&self, name: &str, frames: &[(u64, Vec<u8>)], snap: usize) -> PathBuf {
        let mut file = vec![0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0];
        file[16..20].copy_from_slice(&(snap as u32).to_le_bytes());
        for (ns, frame) in frames {
            file.extend(((ns / 1_000_000_000) as u32).to_le_bytes());
            file.extend(((ns % 1_000_000_000) as u32).to_le_bytes());
            file.extend((frame[8..].len().min(snap) as u32).to_le_bytes());
            file.extend(&frame[4..8]);
            file.extend(&frame[8..8 + frame[8..].len().min(snap)]);
        }
        let path = self.0.path().join(name);
        std::fs::write(&path, file).unwrap();
        path
    }
}

/// Numbers below `n`, the same each time.
pub(super) fn random(mut state: u64) -> impl FnMut(u64) -> u64 {
    move |n| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    }
}

/// By the kernel's own counter (facts.txt).
const DROPS: [(&str, u64); 2] = [("drops", 182), ("incast", 345)];

/// The bfifo of each (facts.txt).
fn room(name: &str) -> &'static str {
    if name == "drops" {
        "128KB"
    } else {
        "512KB"
    }
}

#[test]
fn good_captures_raise_no_doubt() {
    for (name, drops) in DROPS {
        let (before, behind) = (kept(&format!("{name}-before")), kept(&format!("{name}-behind")));
        for more in [json!({}), json!({"sort": true}), json!({"buffer": "512KB"})] {
            let report = kernel(&before, Some(&behind), &more).unwrap();
            assert_eq!((report.pair.unwrap().dropped, report.plausibility.trust), (drops, Trust::Good), "{name}");
            assert_eq!(report.plausibility.findings, [], "{name} {more}");
        }
        let alone = kernel(&before, None, &json!({"buffer": room(name)})).unwrap();
        assert_eq!(doubts(&alone), Vec::<&str>::new());
        // A buffer that is too large drops too little for what came again.
        let roomy = kernel(&before, None, &json!({"buffer": "2MB"})).unwrap();
        assert_eq!((doubts(&roomy), roomy.plausibility.trust), (vec!["estimate_doubted"], Trust::Limited));
        // At a tenth of the speed it would drop what TCP never sent again: no drops are claimed.
        let slow = kernel(&before, None, &json!({"buffer": room(name), "rate": "10Mbps"})).unwrap();
        assert_eq!((slow.plausibility.findings[0].code, slow.plausibility.trust), ("estimate_refuted", Trust::Poor), "{name}");
        let port = &slow.ports[0];
        assert!(port.dropped.is_none() && port.estimate.as_ref().is_some_and(|e| e.dropped.is_none()));
        assert!(port.bursts.iter().all(|b| b.dropped_packets.is_none() && b.law.is_none()));
    }
    let (arrivals, port) = plain(4_000, 7);
    for (offset, ppm) in [(3_000, 0.0), (-7_000_000, 0.0), (-7_000_000, 33.0), (-1_700_000_000_000_000_000, 0.0)] {
        let (report, _) = Captures::new(&arrivals, &left(&port, offset, ppm), Changed::default()).report(json!({}));
        assert_eq!((codes(&report), offset), (vec![], offset));
    }
}

#[test]
fn a_shuffled_pair_is_said_and_sorted_when_asked() {
    let folder = Folder::new();
    for (name, drops) in DROPS {
        let paths = ["before", "behind"].map(|side| {
            let mut all = frames(&kept(&format!("{name}-{side}")));
            let mut below = random(5);
            (1..all.len()).rev().for_each(|i| all.swap(i, below(i as u64 + 1) as usize));
            folder.write(&format!("{name}-{side}.pcap"), &all, 65_535)
        });
        let report = kernel(&paths[0], Some(&paths[1]), &json!({})).unwrap();
        assert_eq!(report.plausibility.trust, Trust::Poor);
        let disorder: Vec<_> = report.plausibility.findings.iter().filter(|f| f.code == "disorder").collect();
        assert!(disorder.len() == 2 && disorder[0].hint.starts_with("--sort"), "{disorder:?}");
        let sorted = kernel(&paths[0], Some(&paths[1]), &json!({"sort": true})).unwrap();
        let whole = kernel(&kept(&format!("{name}-before")), Some(&kept(&format!("{name}-behind"))), &json!({})).unwrap();
        assert_eq!(sorted.plausibility.findings, []);
        assert_eq!((sorted.ports[0].peak_bytes, sorted.ports[0].dropped), (whole.ports[0].peak_bytes, Some(drops)));
        assert_eq!(sorted.pair.unwrap().waiting, whole.pair.unwrap().waiting);
    }
    // Packets that overtake a few others, as of a NIC with several queues, are in order.
    let mut all = frames(&kept("incast-before"));
    (0..all.len() - 40).step_by(50).for_each(|i| all[i..i + 40].reverse());
    let path = folder.write("nearly.pcap", &all, 65_535);
    let report = kernel(&path, Some(&kept("incast-behind")), &json!({})).unwrap();
    assert_eq!((codes(&report), report.ports[0].dropped), (vec![], Some(345)));
}

#[test]
fn sides_that_are_swapped_are_recognised() {
    for (name, _) in DROPS {
        let report = kernel(&kept(&format!("{name}-behind")), Some(&kept(&format!("{name}-before"))), &json!({})).unwrap();
        assert_eq!((report.plausibility.trust, codes(&report)[0]), (Trust::Poor, ("swapped", Level::Wrong)), "{name}");
        let words = &report.plausibility.findings[0].words;
        assert!(words.contains("each was captured behind it at least") && words.contains("went in at 10"), "{words}");
        let pair = report.pair.as_ref().unwrap();
        assert!(pair.only_behind > 0);
        assert!(!pair.notes.iter().any(|note| note.contains("another way")), "the sides explain it: {:?}", pair.notes);
    }
    let (mut arrivals, port) = plain(4_000, 7);
    let behind = left(&port, 0, 0.0);
    // Hops only become fewer, whatever the clocks say.
    let folder = Captures::new(&arrivals, &left(&port, 50_000_000_000_000, 0.0), Changed { hops: 1, ..Changed::default() });
    let path = |name| folder.folder.path().join(name);
    let swapped = json!({"paths": [path("out.pcap")], "behind": [path("in.pcap")]});
    let (report, pair) = folder.report(swapped);
    assert_eq!((codes(&report)[0], report.plausibility.findings[0].count), (("swapped", Level::Wrong), pair.matched));
    assert!(report.plausibility.findings[0].words.contains("more hops left (TTL)"));
    assert_eq!(codes(&folder.report(json!({})).0), []);
    // Marks are only set.
    let mut marked = behind.clone();
    marked.iter_mut().for_each(|(_, p)| p.marked = p.seq % 3 == 0);
    let captures = Captures::new(&marked, &arrivals, Changed::default());
    let report = captures.report(json!({})).0;
    assert!(report.plausibility.findings[0].words.contains("are marked (CE) before the port"), "{:?}", codes(&report));
    arrivals.iter_mut().for_each(|(_, p)| p.marked = p.seq % 5 == 0);
    marked.iter_mut().for_each(|(_, p)| p.marked |= p.seq % 5 == 0);
    assert_eq!(codes(&Captures::new(&arrivals, &marked, Changed::default()).report(json!({})).0), []);
}

#[test]
fn a_port_that_pauses_is_not_taken_for_a_swapped_one() {
    // Packets arrive evenly at a third of the speed, and leave together after pauses: behind they are faster than before.
    let arrivals: Vec<_> =
        plain(4_000, 7).0.into_iter().enumerate().map(|(i, (_, p))| (1_795_000_000_000_000_000 + i as i64 * 36_000, p)).collect();
    let mut behind = Vec::new();
    let mut free = 0_i64;
    for (ns, packet) in &arrivals {
        // It sends in the last third of every 30 ms.
        let open = |ns: i64| if ns % 30_000_000 < 20_000_000 { ns - ns % 30_000_000 + 20_000_000 } else { ns };
        let start = open(free.max(*ns));
        free = start + 8 * i64::from(packet.length());
        behind.push((start, *packet));
    }
    let (report, pair) = Captures::new(&arrivals, &behind, Changed::default()).report(json!({"rate": "1Gbps"}));
    assert_eq!((codes(&report), pair.dropped), (vec![], 0));
}

#[test]
fn packets_that_were_lost_behind_the_port_are_no_drops() {
    let folder = Folder::new();
    for (name, drops) in DROPS {
        for percent in [5, 30] {
            let mut below = random(percent);
            let behind: Vec<_> = frames(&kept(&format!("{name}-behind"))).into_iter().filter(|_| below(100) >= percent).collect();
            let all = frames(&kept(&format!("{name}-behind"))).len() as u64;
            let lost = all - behind.len() as u64;
            let path = folder.write("behind.pcap", &behind, 65_535);
            let report = kernel(&kept(&format!("{name}-before")), Some(&path), &json!({})).unwrap();
            let pair = report.pair.as_ref().unwrap();
            assert_eq!(pair.dropped + pair.left_out.at_start + pair.left_out.at_end, drops + lost);
            let found = &report.plausibility.findings[0];
            assert_eq!((found.code, report.plausibility.trust != Trust::Good), ("lost_behind", true), "{name} {percent}");
            assert!(found.count.abs_diff(lost) * 8 <= lost, "{name} {percent}: {} instead of {lost}", found.count);
            assert_eq!(found.level, if lost > drops { Level::Wrong } else { Level::Doubt }, "{name} {percent}");
        }
    }
    // At a port that hardly has a queue.
    let arrivals: Vec<_> =
        arrivals(3_000, 3, |_, _| {}).into_iter().enumerate().map(|(i, (ns, p))| (ns + i as i64 * 20_000, p)).collect();
    let port = port(&arrivals, 60_000);
    let mut below = random(1);
    let behind: Vec<_> = left(&port, 0, 0.0).into_iter().filter(|_| below(10) > 0).collect();
    let (report, pair) = Captures::new(&arrivals, &behind, Changed::default()).report(json!({}));
    assert!(pair.dropped > 200, "{}", pair.dropped);
    assert_eq!(codes(&report)[0], ("lost_behind", Level::Wrong));
    assert!(report.plausibility.findings[0].words.contains("found nothing waiting"));
}

#[test]
fn coarse_stamps_and_cut_headers_are_said_of_pairs_and_estimates() {
    let folder = Folder::new();
    let changed = |name: &str, step: u64, snap: usize| {
        let all: Vec<_> = frames(&kept(name)).into_iter().map(|(ns, frame)| (ns - ns % step, frame)).collect();
        folder.write(&format!("{name}.pcap"), &all, snap)
    };
    let (before, behind) = (changed("incast-before", 1_000_000, 100), changed("incast-behind", 1_000_000, 100));
    let alone = kernel(&before, None, &json!({"buffer": "512KB"})).unwrap();
    assert_eq!((doubts(&alone), alone.plausibility.trust), (vec!["coarse_stamps"], Trust::Limited));
    let pair = kernel(&before, Some(&behind), &json!({})).unwrap();
    assert_eq!(doubts(&pair), ["coarse_stamps"; 2]);
    // A microsecond is fine at 100 Mb/s.
    let (before, behind) = (changed("incast-before", 1_000, 100), changed("incast-behind", 1_000, 100));
    assert_eq!(codes(&kernel(&before, Some(&behind), &json!({})).unwrap()), []);
    let (before, behind) = (changed("incast-before", 1, 34), changed("incast-behind", 1, 34));
    let cut = kernel(&before, Some(&behind), &json!({})).unwrap();
    assert_eq!(doubts(&cut), ["cut_headers"; 2]);
    assert_eq!(cut.plausibility.findings.iter().map(|f| f.count).collect::<Vec<_>>(), [2001, 1656]);
    assert!(cut.plausibility.findings[0].words.contains("keeps 34 B"));
}

#[test]
fn an_estimate_from_behind_the_port_has_not_seen_its_queue() {
    for (name, _) in DROPS {
        let report = kernel(&kept(&format!("{name}-behind")), None, &json!({"buffer": "512KB"})).unwrap();
        assert!(doubts(&report).contains(&"behind_port") && report.plausibility.trust == Trust::Limited, "{name}");
    }
}

#[test]
fn start_and_stop_hold_for_waits_flows_and_drops() {
    let (arrivals, port) = plain(4_000, 7);
    let captures = Captures::new(&arrivals, &left(&port, 3_000, 0.0), Changed::default());
    let zero = 1_795_000_000_000_000_000_i64;
    let (from, to) = (arrivals[1_000].0, arrivals[2_500].0);
    let ns = |t: i64| format!("{}ns", t - zero);
    let inside: Vec<_> = port.all.iter().filter(|p| p.0 >= from && p.0 <= to).collect();
    let waits: Vec<i64> = inside.iter().filter_map(|p| Some(p.3? - p.0)).collect();
    let dropped = inside.len() - waits.len();
    let all = port.all.iter().filter(|p| p.3.is_none()).count();
    assert!(dropped > 5 && dropped < all, "{dropped} of {all}");
    let (report, pair) = captures.report(json!({"start": ns(from), "stop": ns(to), "top": 100, "rate": "1Gbps"}));
    assert_eq!((pair.matched, pair.dropped), (waits.len() as u64, dropped as u64));
    assert_eq!(report.ports[0].dropped, Some(dropped as u64));
    let waiting = pair.waiting.unwrap();
    assert_eq!((waiting.packets, waiting.max_ps), (pair.matched, *waits.iter().max().unwrap() as u64 * 1_000));
    let mean = waits.iter().sum::<i64>() as f64 / waits.len() as f64;
    assert!((waiting.mean_ps / 1e3 - mean).abs() < 1e-6);
    let of = |flow: u16, dropped: bool| inside.iter().filter(|p| p.1.flow == flow && p.3.is_none() == dropped).count() as u64;
    for flow in waiting.flows {
        let number = flow.name.split(':').nth(1).and_then(|p| p.split(' ').next()).unwrap().parse::<u16>().unwrap() - 10_000;
        assert_eq!((flow.packets, flow.dropped), (of(number, false), of(number, true)), "{}", flow.name);
    }
    assert!((pair.busy_bps.unwrap() - 1e9).abs() < 1e3, "{:?}", pair.busy_bps);
    assert_eq!(report.plausibility.findings, []);
}

#[test]
fn what_comes_out_when_the_capture_before_does_not_run_is_left_out() {
    let (arrivals, port) = plain(4_000, 13);
    let all = left(&port, 0, 0.0);
    // It ends early: what comes out later had not arrived.
    let short = &arrivals[..2_500];
    let captures = Captures::new(short, &all, Changed::default());
    let (report, pair) = captures.report(json!({"rate": "1Gbps"}));
    let came = |i: usize| port.all[i].3.is_some();
    let known = (0..2_500).filter(|i| came(*i)).count() as u64;
    let late = port.all[2_500..].iter().filter(|p| p.3.is_some_and(|start| start > short[2_499].0)).count() as u64;
    assert_eq!((pair.matched, pair.only_behind, pair.left_out.behind_at_end), (known, all.len() as u64 - known - late, late));
    assert!(late > 800 && pair.only_behind == 0, "{late} {}", pair.only_behind);
    let sentence = format!("{late} packets left out: captured behind the port when the capture before it had ended");
    assert!(report.notes.contains(&sentence), "{:?}", report.notes);
    holds(&captures.records(), &Port { all: port.all[..2_500].to_vec() }, 0);
    // It begins late.
    let captures = Captures::new(&arrivals[1_500..], &all, Changed::default());
    let (_, pair) = captures.report(json!({"rate": "1Gbps"}));
    let early = (0..1_500).filter(|i| came(*i)).count() as u64;
    assert_eq!((pair.only_behind, pair.left_out.behind_at_start), (0, early));
    holds(&captures.records(), &Port { all: port.all[1_500..].to_vec() }, 0);
}

#[test]
fn a_capture_that_was_cut_short_is_named_with_the_place() {
    let (arrivals, port) = plain(500, 7);
    let captures = Captures::new(&arrivals, &left(&port, 0, 0.0), Changed::default());
    let path = captures.folder.path().join("out.pcap");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 7]).unwrap();
    let (report, _) = captures.report(json!({}));
    let last = report.notes.iter().find(|note| note.contains("ends inside")).unwrap();
    let kept = |at: usize| u32::from_le_bytes(bytes[at + 8..at + 12].try_into().unwrap()) as usize;
    let start = std::iter::successors(Some(24), |at| Some(at + 16 + kept(*at)).filter(|at| *at < bytes.len())).last().unwrap();
    assert!(last.starts_with(&path.display().to_string()), "{last}");
    assert!(last.contains(&format!("at byte {start}; all packets before were read")), "{last} {start}");
}

#[test]
fn both_sides_of_a_queue_in_one_file_are_recognised() {
    let folder = Folder::new();
    for (name, _) in DROPS {
        let (before, behind) = (frames(&kept(&format!("{name}-before"))), frames(&kept(&format!("{name}-behind"))));
        let mut both = [before.clone(), behind.clone()].concat();
        both.sort_by_key(|(ns, _)| *ns);
        let path = folder.write("both.pcap", &both, 65_535);
        let report = kernel(&path, None, &json!({"buffer": room(name)})).unwrap();
        // What comes twice says nothing of what came again, so that nothing confirms the estimate.
        let of_file = report.plausibility.findings.iter().filter(|f| !f.code.starts_with("estimate_"));
        let found: Vec<_> = of_file.map(|f| (f.code, f.count)).collect();
        let tapped = found[0].1;
        assert_eq!(found, [("two_taps", tapped), ("duplicates", behind.len() as u64)], "{name}: every copy");
        assert!(tapped * 10 > behind.len() as u64 * 8 && report.plausibility.trust == Trust::Limited);
        let alone = kernel(&kept(&format!("{name}-before")), None, &json!({"buffer": room(name)})).unwrap();
        let estimated = |report: &TraceReport| report.ports[0].estimate.as_ref().map(|e| (e.peak_bytes, e.dropped, e.range));
        assert_eq!(estimated(&report), estimated(&alone), "what is left is the capture before");
        // A mirror gives each frame twice, one right behind the other.
        let mut twice = [before.clone(), before.iter().map(|(ns, frame)| (ns + 800, frame.clone())).collect()].concat();
        twice.sort_by_key(|(ns, _)| *ns);
        let report = kernel(&folder.write("twice.pcap", &twice, 65_535), None, &json!({"buffer": room(name)})).unwrap();
        let of_file: Vec<_> = codes(&report).into_iter().filter(|(code, _)| !code.starts_with("estimate_")).collect();
        assert_eq!(of_file, [("duplicates", Level::Note)]);
        assert_eq!(estimated(&report), estimated(&alone));
    }
    // Without numbers of datagrams, nothing tells copies from what was sent again; so many were not.
    let sent = arrivals(3_000, 7, |_, p| p.v6 = true);
    let mut both = [sent.clone(), left(&port(&sent, 60_000), 0, 0.0)].concat();
    both.sort_by_key(|(ns, _)| *ns);
    for (packets, expected) in [(both, vec!["two_taps"]), (sent, vec![])] {
        let path = folder.0.path().join("v6.pcap");
        write(&path, &packets, Changed::default());
        let mut found = doubts(&kernel(&path, None, &json!({"rate": "1Gbps", "buffer": "60KB"})).unwrap());
        found.retain(|code| !code.starts_with("estimate_"));
        assert_eq!(found, expected);
    }
}
