//! What `fanin check` says of priority flow control, and that it says nothing where there is no reason to.

use crate::common::{edited, folder};
use fanin_scenario::{render, Scenario};
use std::path::Path;

/// A lossless star of 10 Gb/s and 1 us: each port needs 1518 + 2 · 1538 + 84 + 2875 B = 7553 B of headroom for a class.
const SOUND: &str = r#"name = "x"
[topology]
kind = "single_switch"
hosts = 4
link = { rate = "10Gbps", delay = "1us" }
[switch]
latency = "300ns"
buffer = "unlimited"
scheduling = { kind = "strict", classes = 4 }
[switch.mechanisms.pfc]
memory = "1MB"
classes = [3]
[[traffic]]
kind = "cbr"
src = "h0"
dst = "h3"
class = 3
rate = "1Gbps"
size = "1MB"
[[traffic]]
kind = "cbr"
name = "other"
src = "h1"
dst = "h3"
class = CLASS
rate = "1Gbps"
size = "1MB"
[telemetry]
sample = "off"
"#;

/// All that is said of it, errors and warnings.
fn said(changes: &[(&str, &str)]) -> String {
    match Scenario::from_toml(&edited(SOUND, changes, "").replace("CLASS", "0"), Path::new(".")) {
        Ok(scenario) => render(scenario.warnings(), "s.toml"),
        Err(problems) => render(&problems, "s.toml"),
    }
}

/// A buffer of ports beside PFC; and one that holds less than XOFF, which is 1/9 of the pool of 969,788 B.
const BUFFER: &str = ", line 10: loses packets all the same where a port has no room; switch.buffer = { kind = \"unlimited\" }: PFC counts the memory itself, where packets come in";
const NEVER: &str = ".xoff, line 10: can never trigger at one port: that holds 100000 B at most, and XOFF is reached at 107754 B; XOFF of less than 100000 B, or switch.buffer = { kind = \"unlimited\" }";

const AT: &str = "switch.mechanisms.pfc";

/// What is said with a key more.
fn with(key: &str) -> String {
    said(&[("memory =", &format!("{key}\nmemory ="))])
}

fn warning(text: &str) -> String {
    format!("s.toml: warning: {AT}{text}\n")
}

fn error(text: &str) -> String {
    format!("s.toml: {AT}{text}\n")
}

#[test]
fn nothing_is_said_of_a_sound_scenario() {
    assert_eq!(said(&[]), "");
    assert_eq!(with("headroom = \"7553B\""), "");
    assert_eq!(with("lossy = { memory = \"200KB\" }"), "");
}

#[test]
fn classes_that_there_are_not() {
    assert_eq!(said(&[("[3]", "[3, 8]")]), error(".classes[1], line 12: 8 is out of range; accepted: from 0 to 7"));
    assert_eq!(
        said(&[("[3]", "[3, 2, 3]")]),
        error(".classes[2], line 12: 3 names class 3 a second time; accepted: each class once")
    );
    assert_eq!(said(&[("[3]", "[]")]), error(".classes, line 12: names no class; accepted: at least one of 0 to 7"));
    assert_eq!(said(&[("[3]", "[3, 5, 6]")]), warning(".classes, line 12: [3, 5, 6] names classes 5 and 6 that no port has: ports have 4 queues, for classes 0 to 3; headroom is kept free for them all the same; switch.scheduling with more classes, or only classes that there are"));
    assert_eq!(
        said(&[("[3]", "[2]")]),
        warning(".classes, line 12: [2] names no class of the traffic, which is of classes 0 and 3")
    );
}

#[test]
fn headroom_that_does_not_suffice() {
    assert_eq!(with("headroom = \"7552B\""), warning(".headroom, line 11: \"7552B\" may lose packets: what h0 can send to switch0 after XOFF is up to 7553 B, 1 B more; at least 7553 B, or none"));
    assert_eq!(with("headroom = \"0B\""), warning(".headroom, line 11: \"0B\" may lose packets: what h0 can send to switch0 after XOFF is up to 7553 B, 7553 B more; at least 7553 B, or none"));
    assert_eq!(with("headroom = \"2MB\""), error(".memory, line 12: \"1MB\" leaves no pool at switch0: headroom and reservations of 4 ports and one lossless class take 8000000 B; accepted: at least 8001518 B, which is one frame more; or fewer classes, or less headroom"));
}

/// Frames of 9,000 B of datagram and 46 B of headers, where the headroom is given and `max_frame` counts for nothing: headroom and
/// pauses are held against them. 9046 + 2 · 9066 + 84 + 2875 B; a pause must outlast one frame and the one that asks again.
#[test]
fn frames_larger_than_max_frame_count_where_headroom_is_given() {
    let large =
        ("rate = \"1Gbps\"\nsize = \"1MB\"\n[[traffic]]", "rate = \"1Gbps\"\npacket = \"9000B\"\nsize = \"1MB\"\n[[traffic]]");
    let with = |key: &str| said(&[large, ("memory =", &format!("{key}\nmemory ="))]);
    assert_eq!(with("headroom = \"30137B\""), "");
    assert_eq!(with("headroom = \"30136B\""), warning(".headroom, line 11: \"30136B\" may lose packets: what h0 can send to switch0 after XOFF is up to 30137 B, 1 B more; at least 30137 B, or none"));
    let least = 2 * (9_046 + 64 + 40) * 8_u64.div_ceil(1) / 512 + 1;
    let quanta = |n: u64| with(&format!("headroom = \"40KB\"\nquanta = {n}"));
    assert_eq!(quanta(least), "");
    assert!(quanta(least - 1).contains(&format!("accepted: from {least} to 65535")), "{}", quanta(least - 1));
    let found = with("xon_gap = \"3KB\"");
    assert!(found.contains(".max_frame") && found.contains("the largest frame of the traffic, 9046 B"), "{found}");
}

/// A burst that reaches XOFF alone is named, with its bytes and its key, whatever transport makes it.
#[test]
fn bursts_beyond_xoff() {
    let flows = |transport: &str| {
        let entry = "[[traffic]]\nkind = \"cbr\"\nsrc = \"h0\"\ndst = \"h3\"\nclass = 3\nrate = \"1Gbps\"\nsize = \"1MB\"";
        let flows = "[[traffic]]\nkind = \"flows\"\nclass = 3\nflows = [{ src = \"h0\", dst = \"h3\", size = \"1MB\" }]";
        let xoff = "xoff = { kind = \"static\", bytes = \"20KB\" }\nmemory =";
        said(&[(entry, &format!("{transport}\n{flows}")[..]), ("memory =", xoff)])
    };
    let named = |name: &str, bytes: u64, key: &str| {
        warning(&format!(".xoff, line 11: is reached within a burst: transport {name} hands the NIC {bytes} B at once ({key}), and XOFF is 20000 B; {key} of at most 20000 B, or a higher XOFF"))
    };
    let roce = |more: &str| format!("[transport]\nkind = \"roce\"\n{more}");
    assert_eq!(flows(&roce("burst = \"32768B\"")), named("default", 32_768, "burst"));
    assert_eq!(flows(&roce("burst = \"16384B\"")), "");
    assert_eq!(flows(&roce("")), "");
    let tcp = flows("[transport]\nkind = \"tcp\"\ntso = true");
    assert!(tcp.contains(&named("default", 65_536, "tso_max")), "{tcp}");
}

#[test]
fn thresholds_that_do_nothing() {
    assert_eq!(with("xoff = { kind = \"static\", bytes = \"2MB\" }"), warning(".xoff.bytes, line 11: \"2MB\" is more than the pool of switch0, 969788 B: XOFF is reached when that is full; at most 969788 B"));
    assert_eq!(with("xoff = { kind = \"static\", bytes = \"2KB\" }"), error(".xon_gap, line 10: \"3KB\" puts XON below zero: XOFF is 2000 B at most, so a pause lasts until nothing is left; accepted: at most 2000 B"));
    assert_eq!(with("xoff = { kind = \"dynamic\", alpha = 0.001 }"), error(".xon_gap, line 10: \"3KB\" puts XON below zero: XOFF is 969 B at most, so a pause lasts until nothing is left; accepted: at most 969 B"));
    let small = "buffer = { kind = \"static\", per_port = \"100KB\" }";
    assert_eq!(said(&[("buffer = \"unlimited\"", small)]), [BUFFER, NEVER].map(warning).concat());
    assert_eq!(said(&[("buffer = \"unlimited\"", &small.replace("100KB", "500KB"))]), warning(BUFFER));
}

/// Under the XOFF of the lossless class another one may hold 1517 B: no frame of 1,500 B of datagram and headers ever waits.
#[test]
fn a_static_xoff_that_leaves_lossy_classes_no_room() {
    let with =
        |bytes: u64, more: &str| with(&format!("{more}xon_gap = \"0B\"\nxoff = {{ kind = \"static\", bytes = \"{bytes}B\" }}"));
    let expected = ".xoff, line 12: leaves class 0 no room for a frame of 1518 B: each that has to wait is dropped; a pool for the other classes (lossy), or a higher XOFF";
    assert_eq!(with(1_517, ""), warning(expected));
    assert_eq!(with(1_518, ""), "");
    assert_eq!(with(1_517, "lossy = { memory = \"200KB\" }\n"), "");
    assert_eq!(with(1_517, "reserved = \"1B\"\n"), "");
}

#[test]
fn memory_that_does_not_suffice() {
    assert_eq!(said(&[("\"1MB\"\nclasses", "\"30KB\"\nclasses")]), error(".memory, line 11: \"30KB\" leaves no pool at switch0: headroom and reservations of 4 ports and one lossless class take 30212 B; accepted: at least 31730 B, which is one frame more; or fewer classes, or less headroom"));
    assert_eq!(with("lossy = { memory = \"970KB\" }"), error(".memory, line 12: \"1MB\" leaves no pool at switch0: headroom and reservations of 4 ports and one lossless class take 30212 B, the pool of other classes 970000 B; accepted: at least 1001730 B, which is one frame more; or fewer classes, or less headroom"));
    assert_eq!(
        said(&[("classes = [3]\n", "lossy = {}\nmemory2 = 1\n"), ("memory2 = 1\n", ""), ("\"1MB\"\nlossy", "\"9MB\"\nlossy")]),
        error(".lossy, line 12: has no class to hold: all eight classes are lossless; accepted: fewer classes, or no lossy")
    );
}

#[test]
fn a_watchdog_may_drop() {
    assert_eq!(with("watchdog = {}"), warning(", line 10: may lose packets: the watchdog drops a class after 200ms of pause; no watchdog, where nothing may be lost"));
    assert_eq!(with("watchdog = { action = \"forward\", detection = \"1ms\" }"), warning(", line 10: may lose packets: the watchdog sends a class, whether the neighbour has room or not, after 1ms of pause; no watchdog, where nothing may be lost"));
    let short = |detection: &str| {
        said(&[
            ("name = \"x\"", "name = \"x\"\nduration = \"20ms\""),
            ("memory =", &format!("watchdog = {{ detection = \"{detection}\" }}\nmemory =")),
        ])
    };
    assert!(short("20ms").ends_with(&warning(".watchdog.detection, line 12: \"20ms\" finds no storm: a run of 20ms is over before a pause has lasted so long; less than 20ms, or a longer run")), "{}", short("20ms"));
    assert!(!short("1ms").contains("finds no storm"));
    assert_eq!(
        with("watchdog = { action = \"alert\" }"),
        error(".watchdog.action, line 11: \"alert\" is not a known name; accepted: drop, forward")
    );
}

#[test]
fn mistakes_come_together() {
    assert_eq!(said(&[("[3]", "[3, 3]"), ("memory = \"1MB\"", "memory = \"1MB\"\nquanta = 40\nxon_gap = \"2MB\"\nheadroom = \"1KB\"")]), [".quanta, line 12: 40 is too short: a frame that asks again comes after the pause has ended, so lossless packets are lost; accepted: from 51 to 65535", ".xon_gap, line 13: \"2MB\" puts XON below zero: XOFF is 124500 B at most, so a pause lasts until nothing is left; accepted: at most 124500 B", ".classes[1], line 15: 3 names class 3 a second time; accepted: each class once"].map(error).concat());
}

/// A class that is not lossless is dropped by PFC itself, so that there is something to notify of.
#[test]
fn notifications_beside_lossy_classes() {
    let pdn = ("[switch.mechanisms.pfc]", "[switch.mechanisms.pdn]\n[switch.mechanisms.pfc]");
    let nothing = "has no drops to notify of: with an unlimited buffer nothing is dropped for want of room";
    let (both, lossless) = (said(&[pdn]), said(&[pdn, ("CLASS", "3")]));
    assert!(!both.contains(nothing) && lossless.contains(nothing), "{both}\n{lossless}");
    let watched = said(&[pdn, ("CLASS", "3"), ("memory =", "watchdog = {}\nmemory =")]);
    assert!(!watched.contains(nothing), "{watched}");
}

/// RED drops what is not ECN-capable, lossless or not, unless it is told to mark only.
#[test]
fn marking_that_drops() {
    let red = |keys: &str| {
        said(&[("buffer = \"unlimited\"", &format!("buffer = \"unlimited\"\nmarking = {{ kind = \"red\", {keys} }}"))])
    };
    let drops = "does not keep marking from dropping packets of lossless classes; marking that only marks: threshold, or red with hard_drop = false and drop_others = false";
    assert!(red("hard_drop = false").contains(drops), "{}", red("hard_drop = false"));
    assert!(red("drop_others = false").contains(drops));
    assert_eq!(red("hard_drop = false, drop_others = false"), "");
    let nothing = "s.toml: switch.marking.drop_others, line 9: false leaves nothing to do below the limit: without `ecn` nothing is marked; accepted: true, or ecn = true\n";
    assert_eq!(red("ecn = false, drop_others = false"), format!("{nothing}{}", warning(&format!(", line 11: {drops}"))));
}

/// Warnings come with errors of sense in other tables; not with one beside them, nor where a value could not be read.
#[test]
fn errors_do_not_hide_warnings() {
    let deaf = ("[3]", "[2]");
    let missing = warning(".classes, line 12: [2] names no class of the traffic, which is of classes 0 and 3");
    let class = ("CLASS", "7");
    let found = said(&[deaf, class]);
    assert!(found.contains("traffic[1].class") && found.contains("warning: switch.mechanisms.pfc.classes, line 12"), "{found}");
    assert_eq!(said(&[deaf]), missing);
    let found = said(&[deaf, ("memory = \"1MB\"", "memory = \"1MB\"\nquanta = 40")]);
    assert!(found.contains(".quanta") && !found.contains("warning"), "{found}");
    let found = said(&[deaf, ("sample = \"off\"", "sample = \"often\"")]);
    assert!(found.contains("telemetry.sample") && !found.contains("warning"), "{found}");
}

/// Four ports: a queue is from three inputs at most, each with α of what is free, so 3/11 of the pool of 969,788 B at the first pause.
#[test]
fn pauses_that_come_before_marks() {
    let threshold = |k: &str| {
        said(&[("buffer = \"unlimited\"", &format!("buffer = \"unlimited\"\nmarking = {{ kind = \"threshold\", k = \"{k}\" }}"))])
    };
    let late = ".xoff, line 11: pauses before ports mark: XOFF is reached with 264487 B in a queue at switch0 at most, and marks begin at 264487 B; switch.marking with lower thresholds, or a higher XOFF";
    assert_eq!(threshold("264487B"), warning(late));
    assert_eq!(threshold("264486B"), "");
}

/// The classes of a file's flows are those of the traffic: `class` of its entry is not, where each flow has its own.
#[test]
fn classes_that_a_file_of_flows_gives() {
    let (text, _) = SOUND.split_once("[[traffic]]").expect("traffic");
    let text = text.replace("[switch]\n", "[transport]\nkind = \"roce\"\n[switch]\n");
    let said = |lossless: &str, pg: bool| {
        let format = format!("kind = \"hpcc_flow\", path = \"class3.flow.txt\", origin = \"2s\", pg_as_class = {pg}");
        let text = edited(&text, &[("classes = [3]", lossless)], "");
        let text = format!("{text}[[traffic]]\nkind = \"file\"\nformat = {{ {format} }}\n[telemetry]\nsample = \"off\"\n");
        match Scenario::from_toml(&text, &folder()) {
            Ok(scenario) => render(scenario.warnings(), "s.toml"),
            Err(problems) => render(&problems, "s.toml"),
        }
    };
    let names_none = |list: &str, of: &str| {
        warning(&format!(".classes, line 14: {list} names no class of the traffic, which is of class {of}"))
    };
    let lossy = |class: &str| {
        format!("s.toml: warning: transport, line 6: is in class {class}, which may drop packets: after each loss all packets behind it are retransmitted; switch.mechanisms.pfc with class {class}, or recovery = \"selective_repeat\"\n")
    };
    assert_eq!(said("classes = [3]", true), "");
    assert_eq!(said("classes = [0]", true), lossy("3") + &names_none("[0]", "3"));
    assert_eq!(said("classes = [3]", false), lossy("0") + &names_none("[3]", "0"));
    assert_eq!(said("classes = [0]", false), "");
}

/// A timeout that is given as an exponent is said as one, with the time that it means.
#[test]
fn timeouts_of_queue_pairs_are_said_as_they_are_given() {
    let text = |recovery: &str| {
        format!("[topology]\nkind = \"single_switch\"\nhosts = 9\n[switch]\nbuffer = {{ kind = \"static\", per_port = \"60KB\" }}\n[transport]\nkind = \"roce\"\nrecovery = {{ kind = \"go_back_n\", {recovery} }}\n[[traffic]]\nkind = \"incast\"\nreceiver = \"h8\"\nsize = \"1MB\"\n[telemetry]\nsample = \"off\"\n")
    };
    let said = |recovery: &str| {
        let scenario = Scenario::from_toml(&text(recovery), Path::new(".")).expect("sound");
        render(scenario.warnings(), "s.toml")
    };
    let long = said("ack_timeout = 15");
    assert!(long.contains("recovery.ack_timeout, line 8: 15 means 134ms, and is "), "{long}");
    assert!(long.contains("; data centers use 8 (1.05 ms) to 11 (8.4 ms)\n"), "{long}");
    assert!(!said("ack_timeout = 9").contains("ack_timeout"));
}

/// Timeouts that expire while all that switches can hold drains: 1 MB at 10 Gb/s there and back take 1.6 ms, and eight times 100 us are
/// half of that.
#[test]
fn timeouts_that_pauses_outlast() {
    let said = |recovery: &str| {
        let entry = "[[traffic]]\nkind = \"cbr\"\nsrc = \"h0\"\ndst = \"h3\"\nclass = 3\nrate = \"1Gbps\"\nsize = \"1MB\"";
        let flows = "[[traffic]]\nkind = \"flows\"\nclass = 3\nflows = [{ src = \"h0\", dst = \"h3\", size = \"1MB\" }]";
        said(&[(entry, &format!("[transport]\nkind = \"roce\"\nrecovery = {{ {recovery} }}\n{flows}")[..])])
    };
    let wait = "may keep a packet and its acknowledgment waiting for 1600us without a loss (1 switches of 1MB both ways, at 10Gbps), and flows of transport default fail after 8 timeouts of";
    assert_eq!(
        said("kind = \"selective_repeat\""),
        warning(&format!(".memory, line 11: {wait} 100us (recovery.rto_low); recovery.rto_low and rto_high of at least 200us at transport default, or less memory"))
    );
    assert_eq!(said("kind = \"selective_repeat\", rto_low = \"200us\""), "");
    let go_back_n = said("kind = \"go_back_n\", ack_timeout = 4");
    assert!(
        go_back_n.contains(&format!("{wait} 65536ns (recovery.ack_timeout); recovery.ack_timeout = 6 at transport default")),
        "{go_back_n}"
    );
    assert_eq!(said("kind = \"go_back_n\", ack_timeout = 6"), "");
}

/// R_AI of 40 Gb/s at faster NICs: DCQCN's way back takes ten times as long at 400 Gb/s. In proportion it is as it was.
#[test]
fn steps_of_dcqcn_that_are_small_beside_the_line() {
    let said = |rate: &str, control: &str| {
        let text = format!("[topology]\nkind = \"single_switch\"\nhosts = 4\nlink = {{ rate = \"{rate}\", delay = \"1us\" }}\n[switch]\nbuffer = \"unlimited\"\nmarking = {{ kind = \"threshold\", k = \"200KB\" }}\nmechanisms.pfc = {{ memory = \"20MB\", classes = [0] }}\n[transport]\nkind = \"roce\"\ncongestion_control = {{ kind = \"dcqcn\"{control} }}\n[[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\n[telemetry]\nsample = \"off\"\n");
        render(Scenario::from_toml(&text, Path::new(".")).expect("sound").warnings(), "s.toml")
    };
    assert_eq!((said("100Gbps", ""), said("400Gbps", ", profile = \"mlx5\"")), (String::new(), String::new()));
    assert_eq!(
        said("400Gbps", ""),
        "s.toml: warning: transport.congestion_control.additive_increase, line 11: \"40Mbps\" is small compared with 400Gbps: one of 16 queue pairs takes 30 ms to reach its share; with the paper's values at 40 Gb/s, 3 ms; additive_increase = \"400Mbps\", hyper_increase = \"4Gbps\": line rate / 1000, and ten times that\n"
    );
    assert_eq!(said("400Gbps", ", additive_increase = \"400Mbps\", hyper_increase = \"4Gbps\""), "");
}
