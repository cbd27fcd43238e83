//! Queues and links: what arithmetic and queueing theory say exactly.

use crate::common::*;
use fanin_sim::Kept;

/// N hosts send frames at line rate R to one port: the queue grows by N − 1 frames per frame time, (N − 1)·R·1518/1538 in
/// frame bytes.
///
/// Frames of the N senders arrive together every T = 1538·8/R, after the port's own departure of that instant. The i-th of
/// round r (from 0) finds r·(N − 1) + i − 1 waiting: of the rN + i that came before it, r + 1 have begun transmission. The
/// first frame of all finds none. Source: conservation. Tolerance: none, every packet is compared.
#[test]
fn a_ramp_grows_by_n_minus_1_frames_per_frame_time() {
    for (n, gbps) in [(2u64, 1u64), (8, 10), (40, 10), (16, 100)] {
        let rounds = 200;
        let senders: String = (0..n)
            .map(|i| {
                format!(
                    "[[traffic]]\nkind = \"cbr\"\nname = \"s{i}\"\nsrc = \"h{i}\"\ndst = \"h{n}\"\nrate = \"{gbps}Gbps\"\ncounts = \"wire\"\nsize = \"{}B\"\n",
                    1472 * rounds
                )
            })
            .collect();
        let ran = run(&format!(
            "[topology]\nkind = \"single_switch\"\nhosts = {}\nlink = {{ rate = \"{gbps}Gbps\", delay = \"1us\" }}\n\
             [switch]\nbuffer = {{ kind = \"unlimited\" }}\n[telemetry]\nqueues = [\"switch0->h{n}\"]\nsample = \"off\"\n{senders}",
            n + 1
        ));
        let t = tx_ps(WIRE, gbps);
        let rows = &ran.kept.queues;
        assert_eq!(rows.len() as u64, n * rounds);
        for (k, row) in rows.iter().enumerate() {
            let (r, i) = (k as u64 / n, k as u64 % n);
            assert_eq!(row.time_ps, t + 1_000_000 + r * t, "N {n}, round {r}");
            let waiting = (r * (n - 1) + i).saturating_sub(1);
            assert_eq!(
                (u64::from(row.queue_packets), row.queue_bytes),
                (waiting, waiting * FRAME),
                "N {n}, round {r}, frame {i}"
            );
        }
        // The same as a slope, between the first frames of two rounds.
        let at = |r: u64| &rows[(r * n) as usize];
        let slope = (at(rounds - 1).queue_bytes - at(1).queue_bytes) as f64 * 8.0 / ((rounds - 2) * t) as f64 * 1e3;
        let theory = (n - 1) as f64 * gbps as f64 * FRAME as f64 / WIRE as f64;
        near(&format!("ramp, N {n}, {gbps} Gb/s [Gb/s]"), slope, theory, 1e-12);
    }
}

/// A port at 10 Gb/s fed by Poisson arrivals of full frames from 64 hosts over links of 400 Gb/s, which hardly space them.
fn poisson_port(rho: f64, packets: u64) -> Kept {
    let per_second = rho * 10e9 / (8.0 * WIRE as f64);
    run(&format!(
        "seed = 7\n[topology]\nkind = \"dumbbell\"\nleft = 64\nright = 8\nhost_link = {{ rate = \"400Gbps\", delay = \"0ps\" }}\n\
         bottleneck = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
         [switch]\nbuffer = {{ kind = \"unlimited\" }}\n\
         [transport]\nkind = \"tcp\"\nhandshake = false\ntimestamps = false\nack_every = 1\n\
         [telemetry]\nqueues = [\"left->right\"]\nsample = \"off\"\ndrops = false\n\
         [[traffic]]\nkind = \"poisson\"\nsources = [\"h0..h63\"]\ndestinations = [\"h64..h71\"]\nsizes = {{ kind = \"fixed\", size = \"1460B\" }}\n\
         per_second = {per_second}\ncount = {packets}\n"
    ))
    .kept
}

/// M/D/1: the mean number waiting is ρ²/(2(1 − ρ)), the mean wait ρT/(2(1 − ρ)), T the service time.
///
/// Poisson arrivals see time averages, so the mean of the queues that packets find is the mean number waiting, and each
/// packet's wait follows from the arrivals by Lindley's recursion W' = max(0, W + T − gap); both are compared. Source:
/// Pollaczek (1930), Khinchine (1932); Kleinrock, Queueing Systems I, §5.6.
///
/// Tolerance: 3.9 standard errors of 20 batch means (two-sided 99.9 % of Student's t with 19 degrees of freedom). Successive
/// waits are correlated over about 1/(1 − ρ)² services; batches are at least 10 times that, so that their means are nearly
/// independent. A standard error may be at most 1.5 %, 2 %, 6 % of the mean, so that the test keeps its teeth. What the input links
/// space out, at most ρ/64·(10/400) of the packets by less than T/40, is far below that.
#[test]
fn m_d_1_waits_as_pollaczek_and_khinchine_say() {
    const BATCHES: usize = 20;
    for (rho, packets, sharp) in [(0.5, 300_000usize, 0.015), (0.8, 400_000, 0.02), (0.95, 600_000, 0.06)] {
        let kept = poisson_port(rho, packets as u64);
        let t = tx_ps(WIRE, 10) as f64;
        let rows = &kept.queues;
        assert_eq!(rows.len(), packets);
        let (mut wait, mut last) = (0u64, 0u64);
        let mut waits = Vec::new();
        for row in rows {
            wait = wait.saturating_sub(row.time_ps - last);
            last = row.time_ps;
            // Work of W picoseconds is the rest of one frame and the whole of those that wait.
            let waiting = wait.div_ceil(t as u64).saturating_sub(1);
            assert_eq!(u64::from(row.queue_packets), waiting, "at {} ps", row.time_ps);
            waits.push(wait as f64);
            wait += t as u64;
        }
        let found: Vec<f64> = rows.iter().map(|r| f64::from(r.queue_packets)).collect();
        let theory = rho / (2.0 * (1.0 - rho));
        for (what, values, theory) in
            [("number waiting", &found, rho * theory), ("wait / T", &waits.iter().map(|w| w / t).collect(), theory)]
        {
            let batches: Vec<f64> = values.chunks(packets / BATCHES).map(mean).collect();
            let m = mean(&batches);
            let variance = batches.iter().map(|b| (b - m) * (b - m)).sum::<f64>() / (BATCHES - 1) as f64;
            let error = (variance / BATCHES as f64).sqrt();
            println!(
                "M/D/1 ρ {rho}, {what}: theory {theory:.4}, measured {m:.4} ± {error:.4} (standard error {:.2} %)",
                100.0 * error / m
            );
            assert!(error < sharp * theory, "ρ {rho}: the test is blunt, {error} of {theory}");
            assert!((m - theory).abs() < 3.9 * error, "ρ {rho}, {what}: theory {theory}, measured {m} ± {error}");
        }
    }
}

/// A long flow delivers 1448 of 1538 wire bytes with timestamps, 1460 without.
///
/// Once the window exceeds the path's, every further full segment costs one frame time: between flows of two sizes the
/// completion times differ by exactly that. Source: IEEE 802.3 framing (38 bytes), RFC 791, RFC 9293, RFC 7323. Tolerance:
/// none after the start-up that the difference takes away (the issue asks for 0.1 %).
#[test]
fn a_long_flow_gets_its_share_of_the_line_rate_to_the_bit() {
    for (timestamps, mss) in [(true, 1448u64), (false, 1460)] {
        for gbps in [1, 10, 100] {
            let fct = |segments: u64| {
                let ran = run(&format!(
                    "[topology]\nkind = \"single_switch\"\nhosts = 2\nlink = {{ rate = \"{gbps}Gbps\", delay = \"1us\" }}\n\
                     [transport]\nkind = \"tcp\"\ntimestamps = {timestamps}\n[telemetry]\nsample = \"off\"\n\
                     [[traffic]]\nkind = \"flows\"\nflows = [{{ src = \"h0\", dst = \"h1\", size = \"{}B\" }}]\n",
                    segments * mss
                ));
                let flow = &ran.kept.flows[0];
                assert_eq!((flow.packets_sent, flow.retransmits), (segments, 0));
                flow.finish_ps.expect("complete") - flow.start_ps
            };
            let (short, long) = (fct(4_000), fct(10_000));
            assert_eq!(long - short, 6_000 * tx_ps(WIRE, gbps));
            let goodput = (6_000 * mss * 8) as f64 / (long - short) as f64 * 1e3;
            near(&format!("goodput, {gbps} Gb/s, MSS {mss}"), goodput, gbps as f64 * mss as f64 / WIRE as f64, 1e-12);
        }
    }
}
