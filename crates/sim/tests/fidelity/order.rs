//! The order of events of the same time (ARCHITECTURE.md): departures, arrivals, timeouts, applications, samples. Each test
//! fails when two neighbours are swapped.

use crate::common::*;

/// N senders in lockstep at line rate, 1 µs links at 10 Gb/s: a frame of each reaches the port every T.
fn lockstep(n: u32, frames: u64, ports: &str, switch: &str, telemetry: &str, delay: &str) -> String {
    let senders: String = (0..n)
        .map(|i| {
            format!(
                "[[traffic]]\nkind = \"cbr\"\nname = \"s{i}\"\nsrc = \"h{i}\"\ndst = \"h{n}\"\nrate = \"10Gbps\"\ncounts = \"wire\"\nsize = \"{}B\"\n",
                1472 * frames
            )
        })
        .collect();
    format!(
        "[topology]\nkind = \"single_switch\"\nhosts = {}\nlink = {{ rate = \"10Gbps\", delay = \"{delay}\" }}\n[engine]\nports = \"{ports}\"\n\
         [switch]\n{switch}\n[telemetry]\n{telemetry}\n{senders}",
        n + 1
    )
}

/// A port with room for one frame, reached by two frames at the very time at which the waiting one leaves: with the
/// departure first one of the two finds room and one frame is lost per round; with the arrivals first both would be lost.
#[test]
fn departures_come_before_arrivals() {
    for ports in ["auto", "explicit"] {
        for buffer in ["1 packets", "1518B", "19 cells"] {
            let switch = format!("buffer = {{ kind = \"static\", per_port = \"{buffer}\" }}");
            let ran = run(&lockstep(2, 100, ports, &switch, "queues = [\"*->h2\"]", "1us"));
            // Round 0: one goes onto the wire, one waits. Each of the other 99 rounds loses one.
            assert_eq!(ran.totals.dropped, 99, "{ports}, {buffer}");
            for row in &ran.kept.queues {
                assert_eq!(row.dropped, row.queue_packets == 1, "{ports}, {buffer}");
            }
        }
    }
}

/// A frame that leaves at the instant at which another arrives is not counted by marking either, at enqueue or at dequeue:
/// all frames are sent before the first ACK is back.
#[test]
fn marking_sees_the_queue_after_departures_of_the_same_time() {
    // The first frame of round r finds r − 1 waiting, the second r; those of round 0 none.
    for ports in ["auto", "explicit"] {
        for at in ["enqueue", "dequeue"] {
            let text = format!(
                "[topology]\nkind = \"single_switch\"\nhosts = 3\nlink = {{ rate = \"10Gbps\", delay = \"100us\" }}\n[engine]\nports = \"{ports}\"\n\
                 [switch]\nbuffer = {{ kind = \"unlimited\" }}\nmarking = {{ kind = \"threshold\", k = \"5 packets\", at = \"{at}\" }}\n\
                 [transport]\nkind = \"tcp\"\ncongestion_control = \"dctcp\"\nhandshake = false\ntimestamps = false\ninitial_window = 20\nrto_initial = \"10ms\"\n\
                 [telemetry]\nqueues = [\"*->h2\"]\n\
                 [[traffic]]\nkind = \"incast\"\nreceiver = \"h2\"\nsize = \"{}B\"\n",
                1460 * 20
            );
            let rows = run(&text).kept.queues;
            assert_eq!(rows.len(), 40);
            for (i, row) in rows.iter().enumerate() {
                let found = if i < 2 { 0 } else { i / 2 - 1 + i % 2 };
                assert_eq!(row.queue_packets as usize, found, "frame {i}");
                // At dequeue: frame i starts at round i, after the frames of rounds before i have come and i have gone.
                let left_behind = if i == 0 { 0 } else { (2 * i).min(40) - i - 1 };
                let marked = if at == "enqueue" { found > 5 } else { left_behind > 5 };
                assert_eq!(row.marked, marked, "{ports}, at {at}, frame {i}");
            }
        }
    }
}

/// An ACK that arrives when the timeout is due prevents it; a picosecond later it does not.
#[test]
fn arrivals_come_before_timeouts() {
    // Data of 1000 B and no options: frame 1058, ACK 64 (padded); two links each way.
    let rtt = 4 * 1_000_000 + 2 * tx_ps(1058 + 20, 10) + 2 * tx_ps(64 + 20, 10);
    for (rto, timeouts) in [(rtt, 0), (rtt - 1, 1)] {
        let ran = run(&format!(
            "[topology]\nkind = \"single_switch\"\nhosts = 2\nlink = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
             [transport]\nkind = \"tcp\"\nhandshake = false\ntimestamps = false\nack_every = 1\nrto_initial = \"{rto}ps\"\nrto_min = \"0ps\"\nclock_granularity = \"0ps\"\n\
             [[traffic]]\nkind = \"flows\"\nflows = [{{ src = \"h0\", dst = \"h1\", size = \"1000B\" }}]\n"
        ));
        assert_eq!(ran.kept.flows[0].timeouts, timeouts, "RTO {rto} ps, RTT {rtt} ps");
        assert_eq!(ran.kept.flows[0].acked_ps, Some(rtt));
    }
}

/// A flow that starts when a timeout of the same host is due is handled after it: the retransmission is sent first.
#[test]
fn timeouts_come_before_applications() {
    let ran = run(
        "[topology]\nkind = \"single_switch\"\nhosts = 4\nlink = { rate = \"10Gbps\", delay = \"1us\" }\n\
         [transport]\nkind = \"tcp\"\nhandshake = false\nack_every = 1\nrto_initial = \"5us\"\nrto_min = \"5us\"\nclock_granularity = \"0ps\"\n\
         [telemetry]\nqueues = [\"*->h1\"]\n\
         [[traffic]]\nkind = \"flows\"\nflows = [{ src = \"h0\", dst = \"h1\", size = \"1448B\" }, { src = \"h0\", dst = \"h1\", size = \"1000B\", start = \"5us\" }]\n",
    );
    let sizes: Vec<u16> = ran.kept.queues.iter().map(|r| r.frame_bytes).collect();
    assert_eq!(sizes[..3], [1518, 1518, 1070], "first transmission, its retransmission, the other flow");
}

/// A sample sees the arrivals of its own time.
#[test]
fn samples_come_last() {
    // A link as long as a frame time: arrivals at 2T, 3T, …; samples every T.
    let t = tx_ps(WIRE, 10);
    for ports in ["auto", "explicit"] {
        let telemetry = format!("sample = \"{t}ps\"");
        let ran = run(&lockstep(3, 20, ports, "buffer = { kind = \"unlimited\" }", &telemetry, &format!("{t}ps")));
        let rows: Vec<_> = ran.kept.ports.iter().filter(|r| r.port.to_string() == "switch0->h3").collect();
        for (r, row) in rows.iter().skip(1).take(20).enumerate() {
            assert_eq!((row.time_ps, u64::from(row.queue_packets)), ((r as u64 + 2) * t, 2 * (r as u64 + 1)), "{ports}");
        }
    }
}
