//! One port with a known truth and one fault, told by every source of telemetry: what contradicts or is unknown is no burst and no zero,
//! whatever brings it. docs/dev/telemetry-measured.md has the table.

use super::counters::report;
use super::feeds::{config, congestion_at, field, ipfix, sample, template, words};
use super::telemetry::{be, datagram, group, int, ip, pcap, point, request, shorts, tcp};
use super::Folder;
use crate::trace::{Live, Options, Watching};
use serde_json::{json, Value};

/// First second of the series.
const T: u64 = 1_795_219_200;
/// Bytes of a second on a line of 10 Gb/s, in percent.
const PERCENT: u64 = 12_500_000;

/// One look at a port, a second after the one before: running counts, the queue of now, and the largest since the look before.
#[derive(Clone, Copy, PartialEq)]
struct Seen {
    port: u64,
    ms: u64,
    octets: u64,
    drops: u64,
    queue: u64,
    most: u64,
}

/// Forty looks at each of two ports: 10 % of 10 Gb/s, and two bursts of two seconds, each with a queue of 200 KB and 20 drops.
fn truth() -> Vec<Seen> {
    let mut all = Vec::new();
    let (mut octets, mut drops) = (0, 5);
    for i in 0..40 {
        let busy = matches!(i, 20 | 21 | 30 | 31);
        octets += PERCENT * if busy { 90 } else { 10 };
        drops += if matches!(i, 21 | 31) { 20 } else { 0 };
        let queue = if busy { 200_000 } else { 1_000 + 1_000 * (i % 2) };
        all.extend([0, 1].map(|port| Seen { port, ms: 1_000 * i, octets, drops, queue, most: queue }));
    }
    all
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    Nothing,
    AboveLine,
    AboveBuffer,
    NoQueue,
    OtherSpeed,
    Reset,
    Wrap,
    Gap,
    Again,
    Stale,
    Stalled,
    ClockBack,
    TwoSources,
    Garbage,
    Cut,
}
use Fault::{
    AboveBuffer, AboveLine, Again, ClockBack, Cut, Gap, Garbage, NoQueue, Nothing, OtherSpeed, Reset, Stale, Stalled, TwoSources,
    Wrap,
};

const FAULTS: [Fault; 15] = [
    Nothing,
    AboveLine,
    AboveBuffer,
    NoQueue,
    OtherSpeed,
    Reset,
    Wrap,
    Gap,
    Again,
    Stale,
    Stalled,
    ClockBack,
    TwoSources,
    Garbage,
    Cut,
];

/// Looks with a fault at look `at` of port 0, which is the first of a burst for sources that tell of bursts alone.
fn with(fault: Fault, at: u64) -> Vec<Seen> {
    let looks = truth();
    let here = |seen: &Seen| seen.port == 0 && seen.ms == 1_000 * at;
    let behind = |seen: &Seen| seen.port == 0 && seen.ms >= 1_000 * at;
    let change = |what: &dyn Fn(&mut Seen)| {
        let mut looks = looks.clone();
        looks.iter_mut().filter(|seen| seen.port == 0).for_each(what);
        looks
    };
    let before = *looks.iter().rfind(|seen| seen.port == 0 && !behind(seen)).unwrap();
    match fault {
        Nothing | OtherSpeed | Wrap | Garbage | Cut => looks,
        AboveLine => change(&|seen| seen.octets += if behind(seen) { PERCENT * 400 } else { 0 }),
        AboveBuffer => change(&|seen| {
            if here(seen) {
                (seen.queue, seen.most) = (5_000_000, 5_000_000);
            }
        }),
        NoQueue => change(&|seen| {
            seen.drops += if behind(seen) { 7 } else { 0 };
            if here(seen) {
                (seen.queue, seen.most) = (0, 0);
            }
        }),
        // What comes in the first second of the counters that began anew.
        Reset => change(&|seen| {
            if behind(seen) {
                seen.octets -= before.octets;
                seen.drops = seen.drops + 2 - before.drops;
            }
        }),
        Gap => {
            looks.into_iter().filter(|seen| seen.port > 0 || !(1_000 * (at + 1)..1_000 * (at + 7)).contains(&seen.ms)).collect()
        }
        Again => looks.into_iter().flat_map(|seen| vec![seen; 1 + usize::from(here(&seen))]).collect(),
        // For four seconds the look before stands, while the line is nearly full.
        Stale => change(&|seen| {
            let busy = (seen.ms / 1_000 + 1).saturating_sub(at).min(5);
            let of_now = seen.octets + busy * PERCENT * 80;
            seen.octets = if (1..5).contains(&busy) { before.octets } else { of_now };
            if (1..5).contains(&busy) {
                (seen.queue, seen.most) = (before.queue, before.most);
            }
        }),
        Stalled => looks.into_iter().filter(|seen| !(behind(seen) && seen.ms > 1_000 * at)).collect(),
        ClockBack => looks
            .into_iter()
            .map(|seen| Seen { ms: if seen.ms > 1_000 * at { seen.ms - 10_000 } else { seen.ms }, ..seen })
            .collect(),
        // Another source of the name, half a second later, of which nothing but its counts is special.
        TwoSources => {
            let other = |seen: Seen| Seen { ms: seen.ms + 500, octets: seen.octets + 70_000_000_000, drops: 900, ..seen };
            let both = |seen: Seen| if seen.port == 0 { vec![seen, other(seen)] } else { vec![seen] };
            let mut all: Vec<Seen> = looks.into_iter().flat_map(both).collect();
            all.sort_by_key(|seen| seen.ms);
            all
        }
    }
}

/// Bytes that a source brings: its beginning, and messages.
type Messages = (Vec<u8>, Vec<Vec<u8>>);

/// A source of telemetry.
struct Source {
    name: &'static str,
    file: &'static str,
    options: Value,
    /// Letters of what it tells of a port: bytes, queues, the largest queue of an interval, drops, its speed.
    tells: &'static str,
    /// Fault at a look within a burst, as the source tells of nothing else.
    events: bool,
    /// Text or bytes that are no message.
    garbage: Vec<u8>,
    /// Messages of looks; `narrow`: with counters of 32 bits.
    tell: fn(&[Seen], bool) -> Messages,
}

/// A text by look.
fn texts(looks: &[Seen], head: &str, of: impl Fn(&Seen) -> String) -> Messages {
    (head.into(), looks.iter().map(|seen| of(seen).into_bytes()).collect())
}

fn seconds(seen: &Seen) -> String {
    format!("{}.{:03}", T + seen.ms / 1_000, seen.ms % 1_000)
}

fn ns(seen: &Seen) -> u64 {
    T * 1_000_000_000 + seen.ms * 1_000_000
}

fn narrowed(octets: u64, narrow: bool) -> u64 {
    if narrow {
        octets & 0xffff_ffff
    } else {
        octets
    }
}

fn csv(looks: &[Seen], narrow: bool) -> Messages {
    texts(looks, "time_ms,port,tx_bytes,tx_dropped,queue_B,most_B\n", |seen| {
        let Seen { port, ms, drops, queue, most, .. } = seen;
        format!("{ms},e{port},{},{drops},{queue},{most}\n", narrowed(seen.octets, narrow))
    })
}

fn snmp(looks: &[Seen], narrow: bool) -> Messages {
    texts(looks, "", |seen| {
        let (time, port, drops) = (seconds(seen), seen.port + 3, seen.drops);
        let (name, bits, octets) = if narrow { ("Out", 32, seen.octets & 0xffff_ffff) } else { ("HCOut", 64, seen.octets) };
        format!("{time}\nIF-MIB::if{name}Octets.{port} = Counter{bits}: {octets}\nIF-MIB::ifOutDiscards.{port} = Counter32: {drops}\nIF-MIB::ifHighSpeed.{port} = Gauge32: 10000\n")
    })
}

fn ethtool(looks: &[Seen], narrow: bool) -> Messages {
    let one: Vec<Seen> = looks.iter().filter(|seen| seen.port == 0).copied().collect();
    texts(&one, "", |seen| {
        let octets = narrowed(seen.octets, narrow);
        format!("{}\nNIC statistics:\n     tx_bytes: {octets}\n     tx_dropped: {}\n", seconds(seen), seen.drops)
    })
}

fn tc(looks: &[Seen], narrow: bool) -> Messages {
    texts(looks, "", |seen| {
        let Seen { port, drops, queue, .. } = seen;
        let octets = narrowed(seen.octets, narrow);
        format!(
            "{}\n[{{\"kind\":\"bfifo\",\"handle\":\"2:\",\"dev\":\"e{port}\",\"options\":{{\"limit\":1000000}},\"bytes\":{octets},\"drops\":{drops},\"backlog\":{queue}}}]\n",
            seconds(seen)
        )
    })
}

/// Counters of SAI, by the numbers of type and statistic.
fn sai(seen: &Seen, narrow: bool) -> [((u16, u16), u64); 4] {
    [((1, 9), narrowed(seen.octets, narrow)), ((1, 12), seen.drops), ((1, 95), seen.queue), ((1, 96), seen.most)]
}

fn otlp(looks: &[Seen], narrow: bool) -> Messages {
    let of = |seen: &Seen| {
        let name = format!("Ethernet{}", seen.port);
        request(&sai(seen, narrow).map(|(sai, value)| point(&name, sai, ns(seen), value as i64)))
    };
    (Vec::new(), looks.iter().map(of).collect())
}

fn otlp_json(looks: &[Seen], narrow: bool) -> Messages {
    texts(looks, "", |seen| {
        let points = sai(seen, narrow).map(|((kind, statistic), value)| {
            let attributes = [("object_name", format!("e{}", seen.port)), ("sai_type_id", kind.to_string()), ("sai_stat_id", statistic.to_string())]
                .map(|(key, value)| json!({ "key": key, "value": { "stringValue": value } }));
            json!({ "name": "g", "gauge": { "dataPoints": [{ "timeUnixNano": ns(seen).to_string(), "asInt": value.to_string(), "attributes": attributes }] } })
        });
        format!("{}\n", json!({ "resourceMetrics": [{ "scopeMetrics": [{ "metrics": points }] }] }))
    })
}

fn gnmi(looks: &[Seen], narrow: bool) -> Messages {
    texts(looks, "", |seen| {
        let values = json!({ "/a/out-octets": narrowed(seen.octets, narrow).to_string(), "/a/out-discards": seen.drops, "/a/max-queue-len": seen.most });
        format!(
            "{}\n",
            json!([{ "name": "s", "timestamp": ns(seen), "tags": { "interface_name": format!("e{}", seen.port) }, "values": values }])
        )
    })
}

fn sonic(looks: &[Seen], narrow: bool) -> Messages {
    let length = if narrow { 4 } else { 8 };
    let of_port = |port: u16| {
        let fields = [
            field(325, 8, None),
            field(port, length, Some((1, 9))),
            field(port, 4, Some((1, 12))),
            field(port, 4, Some((1, 95))),
            field(port, 4, Some((1, 96))),
        ];
        template(300 + port, &fields)
    };
    let of = |seen: &Seen| {
        let octets = &seen.octets.to_be_bytes()[usize::from(8 - length)..];
        let rest = be(&[seen.drops as u32, seen.queue as u32, seen.most as u32]);
        ipfix(301 + seen.port as u16, &[&ns(seen).to_be_bytes()[..], octets, &rest].concat())
    };
    ([of_port(1), of_port(2)].concat(), looks.iter().map(of).collect())
}

/// Entries while a queue is above 100 KB or drops: kind (1: start, 2: update, 3: end), segments of 512 B, drops since the entry before.
fn congestions(looks: &[Seen]) -> Vec<(Seen, u64, u64, u64)> {
    let (mut before, mut all) = ([(false, 5); 2], Vec::new());
    for (place, seen) in looks.iter().enumerate() {
        let (inside, drops) = before[seen.port as usize];
        let more = seen.drops.saturating_sub(drops);
        let again = place > 0 && looks[place - 1] == *seen;
        let is = seen.queue > 100_000 || more > 0;
        if again {
            all.extend(all.last().copied());
        } else if is || inside {
            let kind = if !inside {
                1
            } else if is {
                2
            } else {
                3
            };
            all.push((*seen, kind, seen.queue.div_ceil(512), more));
        }
        before[seen.port as usize] = (is, seen.drops);
    }
    all
}

fn lanz(looks: &[Seen], _: bool) -> Messages {
    let of = |(seen, kind, segments, drops): (Seen, u64, u64, u64)| {
        let name: &[u8] = if seen.port == 0 { b"Et1" } else { b"Et2" };
        congestion_at(name, T * 1_000_000 + seen.ms * 1_000, segments, kind, &[(10, drops)])
    };
    (config(), congestions(looks).into_iter().map(of).collect())
}

/// Date and time of a look, to the millisecond.
fn date(seen: &Seen) -> String {
    format!("08:00:{:02}.{:03}", seen.ms / 1_000, seen.ms % 1_000)
}

fn lanz_csv(looks: &[Seen], _: bool) -> Messages {
    let of = |(seen, kind, segments, drops): (Seen, u64, u64, u64)| {
        let kind = ["S", "U", "E"][kind as usize - 1];
        format!("{kind},2026-11-21 {},Et{}(1),{segments},{drops}\n", date(&seen), seen.port + 1).into_bytes()
    };
    (b"Type,Time,Interface,Queue-Length,Tx-Drops\n".to_vec(), congestions(looks).into_iter().map(of).collect())
}

/// A record for each time above 100 KB.
fn nxos(looks: &[Seen], _: bool) -> Messages {
    let mut rows = Vec::new();
    for port in 0..2 {
        let mut open: Option<(Seen, Seen)> = None;
        for seen in looks.iter().filter(|seen| seen.port == port) {
            if seen.queue > 100_000 {
                let (first, most) = open.unwrap_or((*seen, *seen));
                open = Some((first, if seen.queue > most.queue { *seen } else { most }));
            } else if let Some((first, most)) = open.take() {
                let at = |seen: &Seen| format!("2026/11/21 {}", date(seen));
                rows.push(json!({ "if-str": format!("Eth1/{port}"), "threshold": "100000", "start-time": at(&first), "peak": most.queue.to_string(),
                    "peak-time": at(&most), "end-depth": seen.queue.to_string(), "end-time": at(seen) }));
            }
        }
    }
    (
        Vec::new(),
        rows.into_iter().map(|row| format!("{}\n", json!({ "TABLE_instance": { "ROW_instance": row } })).into_bytes()).collect(),
    )
}

fn bst(looks: &[Seen], _: bool) -> Messages {
    texts(looks, "", |seen| {
        let row = json!({ "realm": "egress-uc-queue", "data": [[6, seen.port.to_string(), seen.most]] });
        let time = format!("2026-11-21 - {}", date(seen));
        format!("{}\n", json!({ "method": "get-bst-report", "asic-id": "20", "time-stamp": time, "report": [row] }))
    })
}

/// A capture of datagrams of looks.
fn captured(looks: &[Seen], port: u16, of: impl Fn(u32, &Seen) -> Vec<u8>) -> Messages {
    let frame = |(number, seen): (u32, &Seen)| {
        let frames = pcap(&[(seen.ms as u32 * 1_000, datagram((9_000, port), &of(number, seen)))]);
        frames[24..].to_vec()
    };
    (pcap(&[]), (1..).zip(looks).map(frame).collect())
}

fn sflow(looks: &[Seen], _: bool) -> Messages {
    captured(looks, 6_343, |number, seen| {
        let speed = 10_000_000_000_u64;
        let port = 7 + seen.port as u32;
        let before = words(&[port, 6, (speed >> 32) as u32, speed as u32, 1, 3, 0, 0, 0, 0, 0, 0, 0, 0]);
        let after = words(&[(seen.octets >> 32) as u32, seen.octets as u32, 100, 0, 0, seen.drops as u32, 0, 0]);
        let counters = sample(2, &[words(&[1, port, 1]), sample(1, &[before, after].concat())].concat());
        let depth =
            sample(1, &[words(&[1, 3, 1_000, 5_000, 0, 3, port, 1]), sample(1_040, &words(&[seen.queue as u32]))].concat());
        let samples = if seen.queue > 1_000_000 { vec![counters, depth] } else { vec![counters] };
        [words(&[5, 1, 0x0a00_0001, 0, number, 1_000, samples.len() as u32]), samples.concat()].concat()
    })
}

/// A report for each look, and one for each drop.
fn int_reports(looks: &[Seen], _: bool) -> Messages {
    let inner = ip(6, 0, 1_500, &tcp((40_000, 80)));
    let mut before = [5; 2];
    let reports = looks.iter().map(|seen| {
        let port = shorts(&[1, 2 + seen.port as u16]);
        let last = std::mem::replace(&mut before[seen.port as usize], seen.drops);
        let lost = int(0x80, 0x4001, &[&port[..], &[3, 71, 0, 0]].concat(), &inner);
        let queue = int(0x20, 0x5000, &[&port[..], &be(&[3 << 24 | seen.queue as u32])].concat(), &inner);
        [vec![queue], vec![lost; seen.drops.saturating_sub(last) as usize]].concat()
    });
    let reports: Vec<_> = reports.collect();
    let places: Vec<Seen> = looks.iter().zip(0..).map(|(seen, octets)| Seen { octets, ..*seen }).collect();
    captured(&places, 32_766, |number, seen| {
        let again = seen.octets > 0 && looks[seen.octets as usize] == looks[seen.octets as usize - 1];
        // A report that comes again has its number again.
        group(number - u32::from(again), &reports[seen.octets as usize - usize::from(again)])
    })
}

fn sources() -> Vec<Source> {
    let by_rate = json!({ "rate": "10Gbps", "by": "rate" });
    let by_queue = json!({ "rate": "10Gbps", "above": "100KB", "buffer": "1MB" });
    let given = |columns: &str| {
        let mut options = by_queue.clone();
        options["columns"] = columns.into();
        options
    };
    let source = |(name, tells), file, options: &Value, garbage: &[u8], tell| Source {
        name,
        file,
        tells,
        options: options.clone(),
        events: false,
        garbage: garbage.to_vec(),
        tell,
    };
    let events = |source: Source| Source { events: true, ..source };
    let broken = b"{\"a\" 1}\n";
    let datagram_of = |port: u16, bytes: &[u8]| pcap(&[(10_500_000, datagram((9_000, port), bytes))])[24..].to_vec();
    let columns = "time=time_ms:ms,port=port,bytes=tx_bytes:total,drops=tx_dropped:total,queue=queue_B:B,watermark=most_B:B";
    vec![
        source(("CSV", "bqwd"), "a.csv", &given(columns), b"garbage\n", csv),
        source(("SNMP", "bds"), "a.txt", &by_rate, b"IF-MIB::ifOutOctets.3 = Counter32: x\n", snmp),
        source(("ethtool -S", "bd"), "a.txt", &by_rate, b"     tx_bytes: five\n", ethtool),
        source(("tc", "bqd"), "a.json", &json!({ "rate": "10Gbps", "above": "100KB" }), b"garbage\n", tc),
        source(("OTLP", "bqwd"), "a.bin", &by_queue, &[0x0a, 3, 0x12, 5, 8], otlp),
        source(("OTLP JSON", "bqwd"), "a.json", &by_queue, broken, otlp_json),
        source(("gNMI", "bqwd"), "a.json", &by_queue, broken, gnmi),
        source(
            ("SONiC IPFIX", "bqwd"),
            "a.bin",
            &by_queue,
            &ipfix(9, &[0; 4])[..20].iter().enumerate().map(|(at, b)| if at == 3 { 20 } else { *b }).collect::<Vec<u8>>(),
            sonic,
        ),
        events(source(("LANZ", "qd"), "a.bin", &by_queue, &[3, 0x12, 5, 8], lanz)),
        events(source(("LANZ CSV", "qd"), "a.csv", &given("queue=Queue-Length:segments(512B)"), b"garbage\n", lanz_csv)),
        source(
            ("sFlow", "bqds"),
            "a.pcap",
            &json!({ "rate": "10Gbps", "by": "rate", "buffer": "1MB" }),
            &datagram_of(6_343, &words(&[5, 1, 7, 0, 1])),
            sflow,
        ),
        source(("BST", "qw"), "a.json", &given("watermark=buffer-count:B"), broken, bst),
        events(source(("NX-OS", "q"), "a.json", &by_queue, broken, nxos)),
        source(
            ("INT", "qd"),
            "a.pcap",
            &given("queue=queue-occupancy:B"),
            &datagram_of(32_766, &group(1, &[int(0x20, 0x5000, &[0; 8], &[])])[..18]),
            int_reports,
        ),
    ]
}

/// Outcome of a fault at the port that has it.
#[derive(Debug, Default, PartialEq)]
struct Told {
    bursts: u64,
    dropped: Option<u64>,
    at_least: bool,
    peak: Option<u64>,
    unknown: Vec<String>,
    codes: Vec<String>,
    /// Reason for which a file was refused, or nothing is known of the port now.
    why: Option<String>,
    refused: u64,
}

/// Bytes of a source with a fault, and the options that it is read with.
fn stream(source: &Source, fault: Fault) -> (Vec<u8>, Value) {
    let at = match fault {
        Stalled => 25,
        _ if source.events => 20,
        _ => 10,
    };
    let (mut bytes, messages) = (source.tell)(&with(fault, at), fault == Wrap);
    let count = messages.len();
    for (place, message) in messages.into_iter().enumerate() {
        if fault == Garbage && place == count / 2 {
            bytes.extend(&source.garbage);
        }
        let end = if fault == Cut && place == count - 1 { message.len() - 5 } else { message.len() };
        bytes.extend(&message[..end]);
    }
    let mut options = source.options.clone();
    if fault == OtherSpeed {
        options["rate"] = "500Mbps".into();
    }
    (bytes, options)
}

fn of_file(source: &Source, fault: Fault, folder: &Folder) -> Told {
    let (bytes, options) = stream(source, fault);
    match report(&folder.file(source.file, &bytes), &options.to_string()) {
        Ok(told) => {
            let port = told.ports.iter().min_by_key(|port| &port.port).unwrap();
            let mut codes: Vec<String> = told.plausibility.findings.iter().map(|found| found.code.to_string()).collect();
            codes.sort();
            codes.dedup();
            let unknown = port.counted.iter().flat_map(|counted| &counted.unknown);
            Told {
                bursts: port.bursts_found,
                dropped: port.dropped,
                at_least: port.dropped_at_least,
                peak: port.peak_bytes,
                unknown: unknown.map(|unknown| unknown.state.to_string()).collect(),
                codes,
                ..Told::default()
            }
        }
        Err(said) => Told { why: Some(said), ..Told::default() },
    }
}

/// Outcome of a stream that is read as it comes; none where it cannot be.
fn of_stream(source: &Source, fault: Fault) -> Option<Told> {
    let (bytes, mut options) = stream(source, fault);
    options["paths"] = json!(["a"]);
    let mut live = Live::new("a", &Options::from_json(&options.to_string()).unwrap(), Watching::default());
    live.push(&bytes).ok()?;
    (0..3).try_for_each(|_| live.settle()).ok()?;
    let before = live.report();
    live.end().ok()?;
    let told = live.report();
    let port = |of: &Value| of["ports"].as_array().unwrap().iter().min_by_key(|port| port["port"].to_string()).unwrap().clone();
    let (now, port) = (port(&before)["unknown_now"].as_str().map(str::to_string), port(&told));
    let contradictions = told["contradictions"].as_array().unwrap().iter();
    let mut codes: Vec<String> = contradictions.map(|found| found[0].as_str().unwrap().to_string()).collect();
    codes.sort();
    Some(Told {
        bursts: port["bursts"].as_u64().unwrap(),
        dropped: port["dropped"].as_u64(),
        at_least: port["dropped_at_least"] == json!(true),
        peak: port["peak_bytes"].as_u64(),
        unknown: port["unknown_ps"].as_object().unwrap().keys().cloned().collect(),
        codes,
        why: now,
        refused: told["refused"].as_u64().unwrap(),
    })
}

/// Codes that a fault must raise by what its source tells; none where it cannot be seen.
fn codes(source: &Source, fault: Fault) -> Vec<&'static str> {
    let tells = |what: char| source.tells.contains(what);
    let has = |name: &str| source.name == name;
    match fault {
        AboveLine if tells('b') => vec!["counters_above_line"],
        OtherSpeed if tells('s') => vec!["counters_above_line", "speed_contradicts"],
        OtherSpeed if tells('b') => vec!["counters_above_line"],
        AboveBuffer if tells('q') => vec!["queue_above_buffer"],
        NoQueue if tells('w') && tells('d') => vec!["drops_without_queue"],
        // Of samples no largest queue is known: a look before and one behind saw none.
        NoQueue | Reset if has("tc") => vec!["drops_unseen"],
        // A width that is said, and one that is not, wrap; a count of 64 bits does not.
        Wrap if matches!(source.name, "OTLP" | "OTLP JSON" | "gNMI") => vec!["narrow_counter"],
        // Messages of gNMI, OTLP and BST that say one time are one look; INT's numbers show what came twice.
        Again if !matches!(source.name, "OTLP" | "OTLP JSON" | "gNMI" | "BST" | "NX-OS" | "INT") => vec!["repeated_looks"],
        Stale if has("tc") => vec!["counters_above_line"],
        Stale if tells('b') => vec!["stale_counters"],
        // A table is put in order, where two entries are the same by now; NX-OS holds all records until the end.
        ClockBack if has("LANZ CSV") => vec!["repeated_looks"],
        ClockBack if !has("NX-OS") => vec!["clock_back"],
        TwoSources if tells('b') => vec!["counters_above_line", "mixed_sources"],
        _ => vec![],
    }
}

/// True if a source cannot have a fault, or cannot show it.
fn has_none(source: &Source, fault: Fault) -> bool {
    match fault {
        // What these tell of is each congestion, packet or record alone: none of them counts on.
        TwoSources | Gap | Reset | Stale => !source.tells.contains('b'),
        NoQueue => source.events,
        Stalled => source.name == "NX-OS",
        _ => false,
    }
}

fn check(source: &Source, fault: Fault, folder: &Folder) {
    let case = format!("{}, {fault:?}", source.name);
    let (file, stream) = (of_file(source, fault, folder), of_stream(source, fault));
    let tells = |what: char| source.tells.contains(what);
    let samples = source.name == "tc";
    if fault == Garbage && file.why.is_some() {
        let said = file.why.as_deref().unwrap_or_default();
        assert!(["line ", "message ", "document "].iter().any(|place| said.contains(place)), "{case}: {said}");
    } else {
        assert_eq!(file.why, None, "{case}");
        let expected = codes(source, fault);
        if (source.name, fault) == ("LANZ", ClockBack) {
            // The start of the second congestion is that of the first once more.
            assert_eq!(file.codes, ["clock_back", "repeated_looks"]);
        } else {
            assert_eq!(file.codes, expected, "{case}");
        }
        // What is unknown or contradicts is no burst, and drops count once.
        let bursts = match fault {
            OtherSpeed | TwoSources if !samples && tells('b') => 0..=0,
            // The queue is looked at, and the bytes contradict it.
            OtherSpeed | TwoSources => 2..=2,
            // Counters that stand still are a mean over that time, which was busy.
            Stale => {
                if file.codes == ["stale_counters"] && source.options["by"] == "rate" {
                    3..=3
                } else {
                    2..=2
                }
            }
            NoQueue if !tells('w') && !samples && tells('d') => 3..=3,
            AboveBuffer if source.name == "NX-OS" => 1..=1,
            ClockBack => 0..=2,
            Stalled => 1..=1,
            _ => 2..=2,
        };
        assert!(bursts.contains(&file.bursts), "{case}: {file:?}");
        assert!(file.peak.is_none_or(|peak| peak < 201_000), "{case}: {file:?}");
        let dropped = match fault {
            TwoSources => None,
            NoQueue if tells('d') => Some(47),
            Reset => Some(42),
            Stalled => Some(20),
            _ => Some(40),
        };
        assert_eq!(file.dropped, dropped.filter(|_| tells('d')), "{case}");
        let least = fault == Reset || (fault == Wrap && file.codes == ["narrow_counter"]);
        assert_eq!(file.at_least, least && tells('d'), "{case}");
        let unknown: &[&str] = match fault {
            _ if samples => &[],
            AboveLine | OtherSpeed if tells('b') => &["contradicting"],
            AboveBuffer if tells('q') => &["contradicting"],
            NoQueue if tells('w') && tells('d') => &["contradicting"],
            Reset => &["reset"],
            Wrap if !file.codes.is_empty() => &["reset"],
            Gap => &["gap"],
            Again if !file.codes.is_empty() => &["repeated"],
            _ => &[],
        };
        if !matches!(fault, ClockBack | TwoSources) {
            assert_eq!(file.unknown, unknown, "{case}");
        }
    }
    let Some(stream) = stream else {
        assert_eq!(source.name, "NX-OS", "{case}");
        return;
    };
    // What an analysis doubts is told as it comes; a clock of intervals that was set back is one of a stream.
    let clock = fault == ClockBack && !samples;
    let doubts = codes(source, fault).into_iter().filter(|code| !clock && *code != "repeated_looks");
    assert_eq!(stream.codes, doubts.collect::<Vec<_>>(), "{case}");
    // As it comes the same is known, and what is wrong costs itself alone.
    assert_eq!(stream.refused, u64::from(fault == Garbage), "{case}: {stream:?}");
    assert!(stream.peak.is_none_or(|peak| peak < 201_000), "{case}: {stream:?}");
    match fault {
        Garbage => assert_eq!((stream.bursts, stream.dropped), (2, Some(40).filter(|_| tells('d'))), "{case}"),
        // Of a source with one port nothing comes: that it stalls shows by the time of day.
        Stalled => {
            let others = !source.events && source.name != "ethtool -S";
            assert_eq!(stream.why.as_deref(), Some("gap").filter(|_| others), "{case}: {stream:?}");
        }
        ClockBack => assert!(stream.bursts <= 2, "{case}: {stream:?}"),
        TwoSources => {
            assert_eq!((stream.bursts, stream.dropped, stream.at_least), (if samples { 2 } else { 0 }, None, false), "{case}");
        }
        _ => {
            assert_eq!((stream.bursts, stream.dropped, stream.at_least), (file.bursts, file.dropped, file.at_least), "{case}");
            assert_eq!(stream.unknown, file.unknown, "{case}");
        }
    }
}

#[test]
fn what_contradicts_or_is_unknown_is_no_burst_whatever_brings_it() {
    let folder = Folder::new();
    for source in sources() {
        for fault in FAULTS.into_iter().filter(|fault| !has_none(&source, *fault)) {
            check(&source, fault, &folder);
        }
    }
}
