//! Ports with classes, shared buffers, RED; and path choice.

use crate::common::*;
use fanin_telemetry::QueueRow;
use std::collections::VecDeque;

/// A source of datagrams of `packet` bytes of payload at `rate` of wire bits from `h{src}` to `h{dst}`, in `class`.
fn cbr(src: u32, dst: u32, class: u8, rate: &str, packet: u32, count: u32) -> String {
    format!(
        "[[traffic]]\nkind = \"cbr\"\nname = \"s{src}\"\nclass = {class}\nsrc = \"h{src}\"\ndst = \"h{dst}\"\nrate = \"{rate}\"\ncounts = \"wire\"\npacket = \"{packet}B\"\nsize = \"{}B\"\n",
        packet * count
    )
}

/// Hosts `h0` … at one switch, the receiver(s) at another, with 10 Gb/s in between, scheduled so, and recorded on both sides.
fn two_switches(left: u32, scheduling: &str, sources: &str) -> Ran {
    run(&format!(
        "[topology]\nkind = \"dumbbell\"\nleft = {left}\nright = 1\nhost_link = {{ rate = \"10Gbps\", delay = \"1us\" }}\nbottleneck = {{ rate = \"10Gbps\", delay = \"2us\" }}\n\
         [switch]\nbuffer = {{ kind = \"unlimited\" }}\nscheduling = {scheduling}\n\
         [telemetry]\nsample = \"off\"\nqueues = [\"left->right\", \"right->h{left}\"]\n{sources}"
    ))
}

fn at<'a>(ran: &'a Ran, port: &str) -> Vec<&'a QueueRow> {
    ran.kept.queues.iter().filter(|r| r.port.to_string() == port).collect()
}

/// Strict priority: when the wire is free, the first packet of the most urgent class that waits goes next; a packet that
/// is being sent is not interrupted.
///
/// Three classes at 130 % of the port, of different sizes. A reference of ten lines (arrivals in, one queue per class, a
/// clock) predicts every departure from the recorded arrivals; the next switch sees them 2 µs after their last bit.
/// Source: IEEE 802.1Q §8.6.8.1. Tolerance: none. Besides: the most urgent class never waits longer than one packet of
/// another class and those of its own take, so its delay is bounded while the lowest class's grows.
#[test]
fn strict_priority_goes_by_class_packet_by_packet() {
    let sources = [cbr(0, 3, 0, "3Gbps", 300, 900), cbr(1, 3, 1, "4Gbps", 1472, 300), cbr(2, 3, 2, "6Gbps", 800, 800)].concat();
    let ran = two_switches(3, "{ kind = \"strict\", classes = 3 }", &sources);
    let (arrivals, seen) = (at(&ran, "left->right"), at(&ran, "right->h3"));
    let tx = |row: &QueueRow| tx_ps(u64::from(row.frame_bytes) + 20, 10);

    let mut queues: [VecDeque<&QueueRow>; 3] = Default::default();
    let (mut free, mut next, mut predicted) = (0u64, 0, Vec::new());
    let mut worst = [0u64; 3];
    while predicted.len() < arrivals.len() {
        // A packet that arrives when the wire becomes free is handled after the departure (ARCHITECTURE.md).
        while next < arrivals.len() && (arrivals[next].time_ps < free || queues.iter().all(VecDeque::is_empty)) {
            free = free.max(if queues.iter().all(VecDeque::is_empty) { arrivals[next].time_ps } else { 0 });
            queues[arrivals[next].flow as usize].push_back(arrivals[next]);
            next += 1;
            if queues.iter().map(VecDeque::len).sum::<usize>() == 1 && arrivals[next - 1].time_ps == free {
                break;
            }
        }
        let class = queues.iter().position(|q| !q.is_empty()).expect("a packet");
        let row = queues[class].pop_front().expect("a packet");
        worst[class] = worst[class].max(free - row.time_ps);
        free += tx(row);
        predicted.push((free + 2_000_000, row.flow, row.frame_bytes));
    }
    assert_eq!(arrivals.len(), 2000);
    for (row, predicted) in seen.iter().zip(&predicted) {
        assert_eq!((row.time_ps, row.flow, row.frame_bytes), *predicted);
    }
    println!("strict priority: longest waits by class {worst:?} ps");
    assert!(worst[0] <= tx_ps(WIRE, 10) && worst[2] > 20 * worst[0]);
}

/// Deficit round robin: classes that always have packets get rates in the ratio of their quanta, over any span within
/// |s_i/Q_i − s_j/Q_j| ≤ 1 + Max/Q_i + Max/Q_j, s being bytes sent and Max the largest packet.
///
/// Three classes with quanta 1:2:4 that each offer what the port carries, in packets of different sizes. Source: DRR,
/// the analysis of its fairness (after m visits a class is within Max of m quanta). Tolerance: that bound.
#[test]
fn deficit_round_robin_shares_by_quanta_within_a_packet() {
    let quanta = [1518.0, 3036.0, 6072.0];
    let sources =
        [cbr(0, 3, 0, "10Gbps", 1472, 1500), cbr(1, 3, 1, "10Gbps", 300, 6000), cbr(2, 3, 2, "10Gbps", 900, 2500)].concat();
    let ran = two_switches(3, "{ kind = \"drr\", quanta = [\"1518B\", \"3036B\", \"6072B\"] }", &sources);
    let seen = at(&ran, "right->h3");
    // From the time all classes have a queue until the first source ends.
    let window: Vec<_> = seen.iter().filter(|r| r.time_ps > 20_000_000 && r.time_ps < 1_700_000_000).collect();
    assert!(window.len() > 1500, "{}", window.len());
    let frames = [1518.0, 346.0, 946.0];
    let mut worst = 0.0f64;
    for from in (0..window.len()).step_by(97) {
        let mut sent = [0.0f64; 3];
        for row in &window[from..] {
            sent[row.flow as usize] += f64::from(row.frame_bytes);
            for (i, j) in [(0, 1), (0, 2), (1, 2)] {
                let apart = (sent[i] / quanta[i] - sent[j] / quanta[j]).abs();
                let bound = 1.0 + frames[i] / quanta[i] + frames[j] / quanta[j];
                worst = worst.max(apart / bound);
                assert!(apart <= bound, "classes {i} and {j}: {sent:?}");
            }
        }
    }
    let sent: Vec<f64> = (0..3).map(|c| window.iter().filter(|r| r.flow == c).map(|r| f64::from(r.frame_bytes)).sum()).collect();
    println!(
        "DRR: shares {:.4} : {:.4} : {:.4} (1 : 2 : 4), largest deviation {worst:.2} of the bound",
        sent[0] / sent[0],
        sent[1] / sent[0],
        sent[2] / sent[0]
    );
    assert!(worst > 0.3, "the bound is not nearly reached: is the window right?");
}

/// A dynamic threshold gives one hot port α/(1 + α) of the shared buffer, each of two α/(1 + 2α).
///
/// Source: DT: T = α·(B − Q) and Q = n·T give T = αB/(1 + nα). Tolerance: a frame above, since what is free is taken
/// before the packet (q + f ≤ α·(B − q) allows α/(1 + α) of a frame), and a frame for each hot port below.
#[test]
fn a_dynamic_threshold_gives_a_hot_port_alpha_over_one_plus_alpha() {
    for alpha in [0.5, 1.0, 2.0, 8.0] {
        for hot in [1u32, 2] {
            let sources: String = (0..3 * hot).map(|i| cbr(i, 6 + i % hot, 0, "10Gbps", 1472, 600)).collect();
            let ran = run(&format!(
                "[topology]\nkind = \"single_switch\"\nhosts = 8\nlink = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
                 [switch]\nbuffer = {{ kind = \"dynamic\", total = \"600KB\", alpha = {alpha} }}\n{sources}"
            ));
            for port in 6..6 + hot {
                let peak = ran.port(&format!("switch0->h{port}")).peak_bytes as f64;
                let share = 600_000.0 * alpha / (1.0 + f64::from(hot) * alpha);
                println!("dynamic threshold, α {alpha}, {hot} hot: theory {share:.0} B, measured {peak} B");
                let frame = FRAME as f64;
                assert!(
                    peak <= share + frame && peak > share - f64::from(hot) * frame,
                    "α {alpha}, {hot} hot ports: {peak} of {share}"
                );
            }
            assert!(ran.kept.drops.iter().all(|d| d.reason.to_string() == "dynamic_threshold"));
        }
    }
}

/// RED marks ECN-capable packets and drops others, for its own reasons only, and holds the average queue between its
/// thresholds.
///
/// Eight long flows. Source: RED. Tolerance: the mean of the queue that
/// packets find lies between the thresholds.
#[test]
fn red_marks_or_drops_and_holds_the_queue() {
    for (control, ecn) in [("newreno", true), ("newreno", false)] {
        let ran = run(&format!(
            "duration = \"400ms\"\n[topology]\nkind = \"single_switch\"\nhosts = 9\nlink = {{ rate = \"1Gbps\", delay = \"50us\" }}\n\
             [switch]\nbuffer = {{ kind = \"static\", per_port = \"300 packets\" }}\nmarking = {{ kind = \"red\", min = \"20 packets\", max = \"60 packets\", max_p = 0.1 }}\n\
             [transport]\nkind = \"tcp\"\ncongestion_control = \"{control}\"\necn = {ecn}\nrto_min = \"10ms\"\nclock_granularity = \"1ms\"\ninitial_ssthresh = \"20KB\"\n\
             [telemetry]\nqueues = [\"*->h8\"]\n\
             [[traffic]]\nkind = \"incast\"\nreceiver = \"h8\"\nsize = \"1GB\"\n"
        ));
        let port = ran.port("switch0->h8");
        let late: Vec<f64> =
            ran.kept.queues.iter().filter(|r| r.time_ps > 100_000_000_000).map(|r| f64::from(r.queue_packets)).collect();
        println!("RED, ECN {ecn}: {} marks, {} drops, mean queue {:.1} packets (20 to 60)", port.marks, port.drops, mean(&late));
        if ecn {
            assert!(port.marks > 100 && port.drops == 0);
            let marked: u64 = ran.kept.flows.iter().map(|f| f.marked).sum();
            // On their way when the run ends: at most what the wire and the queue hold.
            assert!(port.marks - marked < 70, "{} marked, {marked} seen", port.marks);
        } else {
            assert!(port.drops > 100 && port.marks == 0);
            assert!(ran.kept.drops.iter().all(|d| d.reason.to_string().starts_with("red")));
        }
        assert!((20.0..60.0).contains(&mean(&late)));
    }
}

/// Frames that a leaf has sent up to each of its four spines.
fn up(ran: &Ran) -> Vec<u64> {
    (0..4).map(|s| ran.port(&format!("leaf0->spine{s}")).tx_packets).collect()
}

fn fabric(routing: &str, traffic: &str) -> Ran {
    run(&format!(
        "[topology]\nkind = \"leaf_spine\"\nleaves = 2\nhosts_per_leaf = 8\nspines = 4\nhost_link = {{ rate = \"10Gbps\", delay = \"1us\" }}\nuplink = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
         [switch]\nrouting = {routing}\nbuffer = {{ kind = \"unlimited\" }}\n[transport]\nkind = \"tcp\"\nhandshake = false\n{traffic}"
    ))
}

/// χ² against equal shares.
fn chi_square(counts: &[u64]) -> f64 {
    let expected = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    counts.iter().map(|n| (*n as f64 - expected) * (*n as f64 - expected) / expected).sum()
}

/// ECMP spreads flows evenly and keeps each on a path; spraying spreads packets, in turn exactly so; flowlets move after a
/// pause and only then.
///
/// Tolerance: χ² below its 0.1 % quantile at 3 degrees of freedom, 16.27, for random choices; one packet for round robin;
/// none for what must not move.
#[test]
fn paths_are_chosen_per_flow_flowlet_or_packet() {
    // One packet per flow: packets up are flows.
    let many =
        "[[traffic]]\nkind = \"incast\"\nreceiver = \"h8\"\nsenders = [\"rack:0\"]\nflows_per_sender = 250\nsize = \"100B\"\n";
    let counts = up(&fabric("\"ecmp\"", many));
    println!("ECMP, 2000 flows: {counts:?}, χ² {:.2}", chi_square(&counts));
    assert!(counts.iter().sum::<u64>() == 2000 && chi_square(&counts) < 16.27);

    let one = cbr(0, 8, 0, "5Gbps", 1000, 4000);
    let used = |counts: &[u64]| counts.iter().filter(|n| **n > 0).count();
    let (ecmp, spray, turn) =
        (up(&fabric("\"ecmp\"", &one)), up(&fabric("\"spray\"", &one)), up(&fabric("\"round_robin\"", &one)));
    println!("one flow of 4000 packets: ECMP {ecmp:?}, spray {spray:?} (χ² {:.2}), round robin {turn:?}", chi_square(&spray));
    assert_eq!(used(&ecmp), 1);
    assert!(chi_square(&spray) < 16.27 && used(&spray) == 4);
    assert_eq!(turn, [1000; 4]);

    // Bursts of 10 µs with pauses of 30 µs.
    let bursts = "[[traffic]]\nkind = \"on_off\"\nsrc = \"h0\"\ndst = \"h8\"\nrate = \"5Gbps\"\ncounts = \"wire\"\non = \"10us\"\noff = \"30us\"\npacket = \"1000B\"\nsize = \"2MB\"\n";
    let (short, long) = (
        up(&fabric("{ kind = \"flowlet\", gap = \"20us\" }", bursts)),
        up(&fabric("{ kind = \"flowlet\", gap = \"40us\" }", bursts)),
    );
    println!("flowlets: gap below the pause {short:?}, above it {long:?}");
    assert_eq!((used(&short), used(&long)), (4, 1));
}

/// A queue record says of each packet whether this port marked it, where packets of a class overtake those of another and
/// are marked on their way out too: by flow, records and receivers count the same marks. Tolerance: none.
#[test]
fn records_know_which_packet_was_marked() {
    for (scheduling, at) in [
        ("\"fifo\"", "dequeue"),
        ("{ kind = \"strict\", classes = 3 }", "enqueue"),
        ("{ kind = \"strict\", classes = 3 }", "dequeue"),
        ("{ kind = \"drr\", quanta = [\"1518B\", \"1518B\", \"3036B\"] }", "dequeue"),
    ] {
        let flows: String = (0..6)
            .map(|i| {
                let class = if scheduling == "\"fifo\"" { 0 } else { i % 3 };
                format!("[[traffic]]\nkind = \"flows\"\nname = \"f{i}\"\nclass = {class}\nflows = [{{ src = \"h{i}\", dst = \"h6\", size = \"{}KB\" }}]\n", 300 + 40 * i)
            })
            .collect();
        let ran = run(&format!(
            "[topology]\nkind = \"single_switch\"\nhosts = 7\nlink = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
             [switch]\nbuffer = {{ kind = \"unlimited\" }}\nscheduling = {scheduling}\nmarking = {{ kind = \"threshold\", k = \"12 packets\", at = \"{at}\" }}\n\
             [transport]\nkind = \"tcp\"\ncongestion_control = \"dctcp\"\nhandshake = false\nrto_initial = \"100ms\"\n\
             [telemetry]\nqueues = [\"*->h6\"]\n{flows}"
        ));
        for flow in &ran.kept.flows {
            let recorded = ran.kept.queues.iter().filter(|r| r.flow == flow.flow && r.marked).count() as u64;
            assert_eq!(recorded, flow.marked, "{scheduling}, at {at}, flow {}", flow.flow);
        }
        assert!(ran.kept.flows.iter().filter(|f| f.marked > 0).count() >= 4, "{scheduling}, at {at}: hardly anything is marked");
    }
}
