//! Between NIC and transport: polls that merge segments, delays that vary.

use crate::common::*;

/// `size` bytes from `h0` to `h1` at 10 Gb/s, with `more` in the transport and `host` about hosts.
fn transfer(size: u64, more: &str, host: &str) -> Ran {
    run(&format!(
        "seed = 7\n[topology]\nkind = \"single_switch\"\nhosts = 2\nlink = {{ rate = \"10Gbps\", delay = \"5us\" }}\n\
         [switch]\nbuffer = {{ kind = \"unlimited\" }}\n{host}\n\
         [transport]\nkind = \"tcp\"\nprofile = \"linux\"\nhandshake = false\n{more}\n\
         [[traffic]]\nkind = \"flows\"\nflows = [{{ src = \"h0\", dst = \"h1\", size = \"{size}B\" }}]\n"
    ))
}

const WINDOW: &str = "receive_window = { kind = \"fixed\", size = \"16MiB\" }\ncongestion_control = \"newreno\"";

/// Packets without data per packet with data.
fn acks_per_segment(ran: &Ran) -> f64 {
    let data = ran.kept.flows[0].packets_sent;
    (ran.totals.sent - data) as f64 / data as f64
}

fn fct(ran: &Ran) -> u64 {
    ran.kept.flows[0].finish_ps.expect("complete")
}

/// A packet reaches its transport `interrupt_delay` after it has arrived, and its ACK another one after that.
///
/// Source: the definition. Tolerance: none.
#[test]
fn a_packet_alone_waits_for_the_interrupt() {
    let plain = transfer(1000, "", "");
    let polled = transfer(1000, "", "[host]\nreceive = { kind = \"napi\", interrupt_delay = \"20us\" }");
    assert_eq!(fct(&polled), fct(&plain) + 20_000_000);
    assert_eq!(polled.kept.flows[0].acked_ps.expect("acked"), plain.kept.flows[0].acked_ps.expect("acked") + 40_000_000);
    assert_eq!(polled.kept.flows[0].ideal_ps, plain.kept.flows[0].ideal_ps);
}

/// At 10 Gb/s a full frame takes 1.23 us: a poll each 20 us takes 17 of them, and one ACK answers, besides those where the timestamp
/// clock ticks or a burst ends. Without merging each second segment is acknowledged.
///
/// Source: Linux GRO; 1538 B at 10 Gb/s. Tolerance: a quarter of the ACKs, for slow start.
#[test]
fn one_ack_answers_a_poll() {
    let size = 1448 * 8000;
    let merged = transfer(size, WINDOW, "[host]\nreceive = { kind = \"napi\", interrupt_delay = \"20us\" }");
    let rate = acks_per_segment(&merged);
    assert!((1.0 / 18.0..1.25 / 16.0).contains(&rate), "{rate}");
    let single = transfer(size, WINDOW, "[host]\nreceive = { kind = \"napi\", interrupt_delay = \"20us\", gro = false }");
    let rate = acks_per_segment(&single);
    assert!((0.49..0.52).contains(&rate), "{rate}");
    let plain = acks_per_segment(&transfer(size, WINDOW, ""));
    assert!((0.49..0.52).contains(&plain), "{plain}");
}

/// What is merged ends at `gro_max` and at the budget of a poll. With two full segments, or polls of two packets, 17 segments are eight
/// pairs, each of them acknowledged, and one alone, which is not yet.
///
/// Source: 8/17. Tolerance: 0.01, for slow start.
#[test]
fn merging_is_bounded() {
    let size = 1448 * 4000;
    for bound in ["gro_max = \"2900B\"", "budget = 2"] {
        let host = format!("[host]\nreceive = {{ kind = \"napi\", interrupt_delay = \"20us\", {bound} }}");
        let rate = acks_per_segment(&transfer(size, WINDOW, &host));
        assert!((rate - 8.0 / 17.0).abs() < 0.01, "{bound}: {rate}");
    }
}

/// Noise delays by what its law says, keeps packets in order, and is the same for the same seed.
#[test]
fn noise_keeps_the_order_and_follows_the_seed() {
    let one = |host: &str| fct(&transfer(1000, "", host)) as f64 - fct(&transfer(1000, "", "")) as f64;
    let late = one("[host]\nnoise = { kind = \"uniform\", max = \"10us\" }");
    assert!((0.0..=10e6).contains(&late), "{late}");
    let size = 1448 * 4000;
    for noise in ["{ kind = \"uniform\", max = \"10us\" }", "{ kind = \"exponential\", mean = \"5us\" }"] {
        let host = format!("[host]\nnoise = {noise}");
        let noisy = transfer(size, WINDOW, &host);
        assert_eq!(noisy, transfer(size, WINDOW, &host));
        assert_ne!(fct(&noisy), fct(&transfer(size, WINDOW, "")));
        assert_eq!((noisy.kept.flows[0].retransmits, noisy.totals.dropped), (0, 0));
        let both = transfer(size, WINDOW, &format!("{host}\nreceive = {{ kind = \"napi\" }}"));
        assert_eq!((both.kept.flows[0].retransmits, both.kept.flows[0].delivered_bytes), (0, size));
    }
}

/// The mean of the exponential law: 2000 messages of one packet, each alone on the network, are late by 5 us on average.
///
/// Source: the definition. Tolerance: 4 standard errors, 4 · 5 us / √2000.
#[test]
fn the_noise_of_messages_has_its_mean() {
    let mean = |host: &str| {
        let ran = run(&format!(
            "seed = 3\n[topology]\nkind = \"single_switch\"\nhosts = 2\nlink = {{ rate = \"10Gbps\", delay = \"1us\" }}\n{host}\n\
             [transport]\nkind = \"tcp\"\nhandshake = false\n\
             [[traffic]]\nkind = \"flows\"\nflows = [{}]\n",
            (0..2000).map(|i| format!("{{ src = \"h0\", dst = \"h1\", size = \"100B\", start = \"{}us\" }}", 1000 * i)).collect::<Vec<_>>().join(", ")
        ));
        ran.kept.flows.iter().map(|f| (f.finish_ps.expect("complete") - f.start_ps) as f64).sum::<f64>() / 2000.0
    };
    let late = mean("[host]\nnoise = { kind = \"exponential\", mean = \"5us\" }") - mean("");
    assert!((late - 5e6).abs() < 4.0 * 5e6 / 2000_f64.sqrt(), "{late}");
}

/// Packets that wait in a host are in flight: at any moment sent = delivered + stray + dropped + in flight.
#[test]
fn packets_that_wait_are_in_flight() {
    let text = "[topology]\nkind = \"single_switch\"\nhosts = 5\nlink = { rate = \"10Gbps\", delay = \"1us\" }\n\
         [switch]\nbuffer = { kind = \"static\", per_port = \"50KB\" }\n\
         [host]\nreceive = { kind = \"napi\" }\nnoise = { kind = \"exponential\", mean = \"3us\" }\n\
         [transport]\nkind = \"tcp\"\nprofile = \"linux\"\nrto_min = \"1ms\"\nclock_granularity = \"1us\"\n\
         delayed_ack_timeout = \"500us\"\n\
         [[traffic]]\nkind = \"incast\"\nreceiver = \"h4\"\nsize = \"200KB\"\n";
    let world = run_in_steps(text, |world| {
        let t = world.totals();
        assert_eq!(t.sent, t.delivered + t.stray + t.dropped + world.in_flight());
    });
    assert!(world.totals().dropped > 0);
    let ran = finish(world);
    assert!(ran.kept.flows.iter().all(|flow| flow.delivered_bytes == 200_000 && flow.finish_ps.is_some()));
}

/// Datagrams are not merged, and those that wait in a host when all have been sent are still received.
#[test]
fn datagrams_that_wait_are_received() {
    for host in ["receive = { kind = \"napi\", interrupt_delay = \"5ms\" }", "noise = { kind = \"uniform\", max = \"5ms\" }"] {
        let ran = run(&format!(
            "[topology]\nkind = \"single_switch\"\nhosts = 2\n[host]\n{host}\n\
             [[traffic]]\nkind = \"cbr\"\nsrc = \"h0\"\ndst = \"h1\"\nrate = \"1Gbps\"\npacket = \"1000B\"\nsize = \"50KB\"\n"
        ));
        assert_eq!((ran.totals.sent, ran.totals.delivered), (50, 50), "{host}");
        assert!(ran.now.ps() > 1_000_000_000, "{host}: {}", ran.now);
    }
}
