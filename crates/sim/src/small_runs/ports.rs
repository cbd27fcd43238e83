//! Ports of switches against references of a few lines: what each packet finds, what is refused or marked, and when what is left leaves.

use super::{cbr, ended, flow, star, Changed, DELAY, FULL};
use fanin_telemetry::QueueRow;
use std::collections::VecDeque;

/// Wire time of a frame at 10 Gb/s [ps].
fn tx(row: &QueueRow) -> u64 {
    (u64::from(row.frame_bytes) + 20) * 800
}

/// Bytes, packets, and cells of 200 B.
fn units(rows: &VecDeque<(u64, u64)>) -> [u64; 3] {
    [rows.iter().map(|row| row.1).sum(), rows.len() as u64, rows.iter().map(|row| row.1.div_ceil(200)).sum()]
}

/// First in, first out: what the limit has no room for besides what waits is dropped, and of what can be marked what finds more than the threshold
/// is marked. Recorded packet by packet, and counted by a port of which nothing is recorded.
#[test]
fn a_queue_takes_what_fits_and_marks_what_finds_more_than_k() {
    let sources: String = [(0, 300, 120), (1, 1_472, 40), (2, 800, 90)]
        .map(|(src, packet, n)| {
            cbr(src, 4, packet * n)
                .changed("10Gbps", "4Gbps")
                .changed("size", &format!("packet = \"{packet}B\"\nname = \"s{src}\"\nsize"))
        })
        .concat();
    for (limit, unit, most) in [("12 packets", 1, 12), ("9000B", 0, 9_000), ("60 cells", 2, 60), ("0 packets", 1, 0)] {
        for (marking, counts, k) in [("none", 0, u64::MAX), ("3 packets", 1, 3), ("4000B", 0, 4_000), ("20 cells", 2, 20)] {
            let marking = if marking == "none" {
                String::new()
            } else {
                format!("marking = {{ kind = \"threshold\", k = \"{marking}\" }}\n")
            };
            let cells = if (limit.to_owned() + &marking).contains("cells") { "cell = \"200B\"\n" } else { "" };
            let text = |queues: &str| {
                let tcp = "[transport]\nkind = \"tcp\"\nhandshake = false\ncongestion_control = \"dctcp\"\nect_on = \"all\"\ninitial_window = 30\nrto_initial = \"1ms\"\nrto_min = \"1ms\"\n";
                format!(
                    "{}{tcp}[switch]\n{cells}buffer = {{ kind = \"static\", per_port = \"{limit}\" }}\n{marking}{sources}{}",
                    star(5, "").changed("sample = \"off\"", &format!("sample = \"off\"\nqueues = [{queues}]")),
                    flow(3, 4, 60_000)
                )
            };
            let about = format!("{limit}, {marking}");
            let mut recorded = ended(&text("\"switch0->h4\""));
            let ports = recorded.ports_now();
            let kept = recorded.into_kept().expect("tables");
            let udp = |flow: u32| kept.flows.iter().any(|row| row.flow == flow && row.transport.to_string() == "udp");
            let (mut waiting, mut free) = (VecDeque::<(u64, u64)>::new(), 0);
            let (mut sent, mut drops, mut marks, mut peak) = (0, 0, 0, 0);
            for row in &kept.queues {
                while waiting.front().is_some_and(|(start, _)| *start <= row.time_ps) {
                    waiting.pop_front();
                }
                let found = units(&waiting);
                let frame = u64::from(row.frame_bytes);
                assert_eq!([row.queue_bytes, u64::from(row.queue_packets)], found[..2], "{about}");
                let busy = free > row.time_ps;
                let more = [frame, 1, frame.div_ceil(200)][unit];
                let dropped = busy && found[unit] + more > most;
                let marked = !dropped && found[counts] > k && !udp(row.flow);
                assert_eq!((row.dropped, row.marked), (dropped, marked), "{about}: {row:?} found {found:?}");
                marks += u64::from(marked);
                if dropped {
                    drops += 1;
                    continue;
                }
                free = free.max(row.time_ps);
                if busy {
                    waiting.push_back((free, frame));
                    peak = peak.max(found[0] + frame);
                }
                free += tx(row);
                sent += 1;
            }
            assert!(sent > 100 && drops > 10 && (k == u64::MAX || most == 0 || marks > 0), "{about}: {sent} {drops} {marks}");
            let port = ports.iter().find(|port| port.name == "switch0->h4").expect("a port");
            assert_eq!((port.tx_packets, port.drops, port.marks, port.peak_bytes), (sent, drops, marks, peak), "{about}");
            assert_eq!(kept.drops.len() as u64, drops);
            assert_eq!(ended(&text("")).ports_now(), ports, "{about}: nothing is recorded");
        }
    }
}

/// Strict priority: when the wire is free, the first packet of the most urgent class that waits goes next. The next switch sees each 2 us after its
/// last bit.
#[test]
fn the_most_urgent_class_leaves_first() {
    let sources: String = [(0, 300, 90, "3Gbps"), (1, 1_472, 30, "4Gbps"), (2, 800, 80, "6Gbps")]
        .map(|(src, packet, n, rate)| {
            cbr(src, 3, packet * n)
                .changed("10Gbps", rate)
                .changed("size", &format!("packet = \"{packet}B\"\nname = \"s{src}\"\nclass = {src}\nsize"))
        })
        .concat();
    for buffer in ["\"unlimited\"", "{ kind = \"dynamic\", total = \"900KB\", alpha = 8.0 }"] {
        let kept = ended(&format!(
            "[topology]\nkind = \"dumbbell\"\nleft = 3\nright = 1\nhost_link = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
             bottleneck = {{ rate = \"10Gbps\", delay = \"2us\" }}\n[switch]\nbuffer = {buffer}\n\
             scheduling = {{ kind = \"strict\", classes = 3 }}\n\
             [telemetry]\nsample = \"off\"\nqueues = [\"left->right\", \"right->h3\"]\n{sources}"
        ))
        .into_kept()
        .expect("tables");
        let at = |port: &str| kept.queues.iter().filter(|row| row.port.to_string() == port).collect::<Vec<&QueueRow>>();
        let (arrivals, seen) = (at("left->right"), at("right->h3"));
        let mut queues: [VecDeque<&QueueRow>; 3] = Default::default();
        let (mut free, mut next, mut left) = (0, 0, Vec::new());
        while left.len() < arrivals.len() {
            // What arrives when the wire becomes free is handled after the departure of that instant.
            while next < arrivals.len() && (arrivals[next].time_ps < free || queues.iter().all(VecDeque::is_empty)) {
                let row = arrivals[next];
                let alone = queues.iter().all(VecDeque::is_empty) && row.time_ps >= free;
                queues[kept.flows[row.flow as usize].class as usize].push_back(row);
                next += 1;
                if alone {
                    free = row.time_ps;
                    break;
                }
            }
            let row = queues.iter_mut().find_map(VecDeque::pop_front).expect("a packet");
            free += tx(row);
            left.push((free + 2_000_000, row.flow, row.frame_bytes));
        }
        assert_eq!(arrivals.len(), 200);
        let seen: Vec<_> = seen.iter().map(|row| (row.time_ps, row.flow, row.frame_bytes)).collect();
        assert_eq!(seen, left, "{buffer}");
    }
}

/// A hot port of a switch whose ports share a buffer holds α/(1 + α) of it, each of two α/(1 + 2α), and what one frees the other may take.
#[test]
fn hot_ports_share_the_buffer_of_their_switch() {
    for (alpha, hot) in [(0.5, 1), (0.5, 2), (2.0, 1), (2.0, 2), (8.0, 2)] {
        let sources: String = (0..3 * hot).map(|src| cbr(src, 6 + src % hot, 147_200)).collect();
        let switch = format!("[switch]\nbuffer = {{ kind = \"dynamic\", total = \"150KB\", alpha = {alpha:?} }}\n");
        let mut world = ended(&star(8, &format!("{switch}{sources}")));
        let ports = world.ports_now();
        let mut drops = 0;
        for port in ports.iter().filter(|port| port.drops > 0) {
            let share = 150_000.0 * alpha / (1.0 + f64::from(hot) * alpha);
            let (peak, frame) = (port.peak_bytes as f64, 1_518.0);
            // Three come to a port at one instant, before those for the other: it may be three frames ahead.
            assert!(
                peak <= share + f64::from(hot) * frame && peak > share - f64::from(hot) * frame,
                "α {alpha}, {hot} hot: {peak} of {share}"
            );
            drops += port.drops;
        }
        let t = world.totals();
        assert_eq!(
            (t.dropped, t.sent, t.delivered),
            (drops, 300 * u64::from(hot), 300 * u64::from(hot) - drops),
            "α {alpha}, {hot} hot"
        );
    }
}

fn combined(hosts: u32, set: &str, more: &str) -> String {
    star(hosts, &format!("[switch]\nlatency = \"300ns\"\narchitecture = {{ kind = \"combined\", {set} }}\n{more}"))
}

/// Two inputs of a crossbar have packets for one output at one instant: one crosses after the other, and on the wire there is no gap. To different
/// outputs both cross at once. Of full virtual output queues each loses what does not fit, and all inputs have their turn.
#[test]
fn a_crossbar_serves_its_inputs_in_turn() {
    let arrive = FULL + DELAY + 300_000;
    let finish = |text: &str| {
        let kept = ended(text).into_kept().expect("tables");
        let mut at: Vec<u64> = kept.flows.iter().map(|flow| flow.finish_ps.expect("complete")).collect();
        at.sort_unstable();
        at
    };
    for (speedup, crossing) in [(1.0, 1_214_400), (2.0, 607_200)] {
        let set = format!("speedup = {speedup:?}");
        let first = arrive + crossing + FULL + DELAY;
        assert_eq!(finish(&combined(3, &set, &(cbr(0, 2, 1_472) + &cbr(1, 2, 1_472)))), [first, first + FULL], "{speedup}");
        assert_eq!(finish(&combined(4, &set, &(cbr(0, 2, 1_472) + &cbr(1, 3, 1_472)))), [first, first], "{speedup}");
    }
    let senders: String = (0..4).map(|src| cbr(src, 4, 58_880)).collect();
    let text = combined(5, "voq = \"15KB\", output = \"9KB\"", &senders).changed("sample = \"off\"", "sample = \"10us\"");
    let mut world = ended(&text);
    let (t, ports) = (world.totals(), world.ports_now());
    let port = ports.iter().find(|port| port.name == "switch0->h4").expect("a port");
    assert!((9_000 - 2 * 1_518 + 1..=9_000).contains(&port.peak_bytes), "{}", port.peak_bytes);
    let kept = world.into_kept().expect("tables");
    assert_eq!(kept.summary["drops_by_reason"]["voq_full"].as_u64(), Some(t.dropped));
    // 160 come at four times the rate at which they leave; nine frames stand in each virtual output queue in the end and five behind them.
    assert!(t.dropped.abs_diff(160 - 40 - 4 * 9 - 5) <= 4, "{}", t.dropped);
    let got: Vec<u64> = kept.flows.iter().map(|flow| flow.delivered_bytes / 1_472).collect();
    assert!(got.iter().max().expect("flows") - got.iter().min().expect("flows") <= 1, "{got:?}");
    let inputs = kept.summary["input_ports"].as_array().expect("inputs");
    assert_eq!(inputs.iter().filter_map(|input| input["drops"].as_u64()).sum::<u64>(), t.dropped);
    assert!(inputs[..4].iter().all(|input| input["max_bytes"] == 9 * 1_518), "{inputs:?}");
    // What the samples say of virtual output queues: none held more than it may, each lost what it lost, and all are empty in the end.
    let drops: u64 = kept.voqs.iter().map(|row| u64::from(row.drops)).sum();
    assert_eq!(drops, t.dropped);
    let most = kept.voqs.iter().map(|row| row.queue_max_bytes).max().expect("rows");
    assert_eq!(most, 15_000 / 1_518 * 1_518);
    for input in 0..4 {
        let last = kept
            .voqs
            .iter()
            .rfind(|row| row.input.as_ref().is_some_and(|name| name.to_string() == format!("h{input}->switch0")))
            .expect("rows");
        assert_eq!((last.queue_bytes, last.queue_packets), (0, 0));
    }
}

/// Two inputs send 20 frames each to one output, which takes five beside the one on the wire: the others wait in two virtual output queues, which
/// are sampled with the largest that they were, and no other queue is.
#[test]
fn virtual_output_queues_are_sampled_with_their_peaks() {
    let text = combined(3, "voq = \"150KB\", output = \"9KB\", speedup = 2.0", &(cbr(0, 2, 29_440) + &cbr(1, 2, 29_440)));
    let kept = ended(&text.changed("sample = \"off\"", "sample = \"1ms\"")).into_kept().expect("tables");
    assert!(kept.drops.is_empty());
    let mut rows: Vec<_> =
        kept.voqs.iter().map(|row| (row.input.as_ref().map(ToString::to_string), row.port.to_string())).collect();
    rows.sort();
    let of = |input: &str| (Some(format!("{input}->switch0")), "switch0->h2".to_string());
    assert_eq!(rows, [of("h0"), of("h1")]);
    assert!(kept.voqs.iter().all(|row| (row.queue_bytes, row.queue_packets, row.drops) == (0, 0, 0)));
    // 40 have come when some 19 have left, one is on the wire and five stand at the output.
    let most: u64 = kept.voqs.iter().map(|row| row.queue_max_bytes / 1_518).sum();
    assert!((40_u64 - 20 - 5).abs_diff(most) <= 2, "{most}");
}

/// Headers of trimmed packets go before the data at each further port: they wait for the frame on the wire and for other headers alone.
#[test]
fn headers_overtake_data_at_further_ports() {
    let sends: String = (0..3)
        .map(|src| flow(src, 3, 60_000).changed("kind = \"flows\"", &format!("kind = \"flows\"\nname = \"f{src}\"")))
        .collect();
    let text = format!(
        "[topology]\nkind = \"dumbbell\"\nleft = 3\nright = 2\nhost_link = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
         bottleneck = {{ rate = \"10Gbps\", delay = \"1us\" }}\n[switch]\nbuffer = {{ kind = \"static\", per_port = \"20 packets\" }}\nmechanisms.trimming = {{}}\n\
         [transport]\nkind = \"tcp\"\nhandshake = false\ninitial_window = 1000\ntrim_nack = true\n\
         [telemetry]\nsample = \"off\"\nhosts = [\"f*\"]\n{sends}{}",
        cbr(4, 3, 147_200)
    );
    let kept = ended(&text).into_kept().expect("tables");
    let trimmed: Vec<u64> =
        kept.segments.iter().filter(|row| row.trimmed && row.received_ps.is_some()).map(|row| row.packet).collect();
    let (mut headers, mut data) = (Vec::new(), Vec::new());
    for row in kept.hops.iter().filter(|row| row.port.to_string() == "right->h3") {
        // A frame that is trimmed here is recorded as it came.
        let of = if trimmed.contains(&row.packet) && row.left_ps - row.sent_ps < FULL / 2 { &mut headers } else { &mut data };
        of.push(row.sent_ps - row.arrived_ps);
    }
    assert!(headers.len() > 30 && data.iter().any(|waited| *waited > 10 * FULL), "{} headers", headers.len());
    assert!(headers.iter().all(|waited| *waited <= 3 * FULL), "{headers:?}");
}

/// Heads of a queue are dropped while it is longer than its limit: a queue that grows by two frames while one leaves loses one with each that
/// leaves, and the rest when nothing comes any more.
#[test]
fn heads_are_dropped_while_the_queue_is_too_long() {
    let text = |queues: &str| {
        let set = "[switch]\nbuffer = \"unlimited\"\nmarking = { kind = \"front_drop\", limit = \"6 packets\" }\n";
        star(4, &format!("{set}{}{}{}", cbr(0, 3, 29_440), cbr(1, 3, 29_440), cbr(2, 3, 29_440)))
            .changed("sample = \"off\"", &format!("sample = \"off\"\nqueues = [{queues}]"))
    };
    let mut world = ended(&text("\"*\""));
    let ports = world.ports_now();
    let kept = world.into_kept().expect("tables");
    let rows: Vec<&QueueRow> = kept.queues.iter().filter(|row| row.port.to_string() == "switch0->h3").collect();
    let (mut queue, mut free, mut next) = (VecDeque::<&QueueRow>::new(), 0, 0);
    let mut dropped = Vec::new();
    while next < rows.len() || !queue.is_empty() {
        while next < rows.len() && (queue.is_empty() || rows[next].time_ps < free) {
            let row = rows[next];
            assert_eq!(u64::from(row.queue_packets), queue.len() as u64);
            let idle = queue.is_empty() && row.time_ps >= free;
            queue.push_back(row);
            next += 1;
            if idle {
                free = row.time_ps;
                break;
            }
        }
        let depth = queue.len();
        let row = queue.pop_front().expect("a packet");
        if depth >= 6 {
            dropped.push((free, row.flow, queue.len() as u64 * 1_518));
        } else {
            free += FULL;
        }
        assert_eq!(row.dropped, depth >= 6);
    }
    let drops: Vec<_> = kept.drops.iter().map(|row| (row.time_ps, row.flow, row.queue_bytes)).collect();
    assert_eq!(drops, dropped);
    assert!((30..=40).contains(&drops.len()) && kept.drops.iter().all(|row| row.reason.to_string() == "front_drop"));
    assert_eq!(ended(&text("")).ports_now(), ports);
}
