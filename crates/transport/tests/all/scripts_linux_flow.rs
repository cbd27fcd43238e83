//! What was measured with Linux 6.18 in `tests/linux`: the ACKs and windows of a flow's first flights, which segments carry PSH, and
//! timers that expire at ticks.

use crate::common::script::{run, run_as};
use crate::common::{Fate, Net};
use fanin_packet::TcpFlags;
use fanin_transport::cc::{CongestionControl, NewReno};
use fanin_transport::*;
use fanin_units::{Bytes, Span};
use std::cell::RefCell;
use std::fmt::Write;

fn linux(growth: WindowGrowth) -> Tcp {
    let mut cfg = Tcp::new(Profile::Linux, CongestionControl::NewReno(NewReno {}));
    // On veth a segment of 1448 bytes takes 2280 bytes of memory.
    cfg.receive_window = ReceiveWindow::Auto(GrowingWindow {
        buffer: Bytes(131_072),
        max_buffer: Bytes(6_291_456),
        share: 0.5,
        frame_share: Some(162.0 / 256.0),
        growth,
    });
    cfg
}

/// Flights of 10, 20 and 40 segments, 120 us apart, at 50 and 66 ms and at `third` \[us\], and the ACKs that are expected: number in segments, window.
fn flights(third: u64, acks: &[(u64, u64)]) -> String {
    let mut text = "
        +0.003 < S 0 win 65535 wscale 7 sackok ts 1,0
        +0 > S. 0 ack 1 win 65160
        +0.002 < . 1 ack 1 ts 3,3
        +0.045 > none
        "
    .to_string();
    let mut acks = acks.iter().peekable();
    let mut now = 50_000;
    for n in 0..70 {
        let (first, at, echo) = match n {
            0..10 => (0, 50_000, 3),
            10..30 => (10, 66_000, 50),
            _ => (30, third, 66),
        };
        let due = at + 120 * (n - first);
        let wait = (due - now) as f64 / 1e6;
        now = due;
        let echo = echo + (n - first) * 60 / 1000; // of the ACK of the segment in the middle
        writeln!(text, "+{wait} < . {}:{} ack 1 ts {},{echo}", 1 + 1448 * n, 1 + 1448 * (n + 1), 1 + now / 1000).unwrap();
        match acks.peek() {
            Some((number, window)) if *number == n + 1 => {
                writeln!(text, "+0 > . 1 ack {} win {window}", 1 + 1448 * number).unwrap();
                acks.next();
            }
            _ => writeln!(text, "+0 > none").unwrap(),
        }
    }
    text
}

/// What the kernel's receiver sent: 22 ACKs one by one (six segments open the window up to its memory, 16 quick ACKs follow), pairs to
/// the end of the second flight, a pair that ends the round, 24 one by one while the window follows the new memory, and pairs.
/// Source: Linux 6.18 tcp_set_window_clamp, tcp_grow_window, tcp_incr_quickack, tcp_rcvbuf_grow.
#[test]
fn acks_and_windows_of_the_first_flights() {
    let mut acks: Vec<(u64, u64)> = [532, 555, 577, 600, 623].into_iter().zip(1..).map(|(window, n)| (n, window)).collect();
    acks.extend((6..=22).map(|n| (n, 637)));
    acks.extend((24..=30).step_by(2).map(|n| (n, 637)));
    let windows = [
        660, 682, 705, 728, 750, 773, 796, 818, 841, 863, 886, 909, 931, 954, 977, 999, 1022, 1044, 1067, 1090, 1112, 1135, 1158,
        1180, 1182,
    ];
    acks.extend((32..=56).zip(windows));
    acks.extend((58..=70).step_by(2).map(|n| (n, 1182)));
    run_as(&linux(WindowGrowth::Linux618), Role::Responder, &flights(99_000, &acks));
}

/// Up to 6.12, room for 16 segments more was made, and then for the growth of that: the whole third flight is acknowledged one by one.
/// It comes later here, since the RTT is smoothed, of which the first sample has the time before the first data in it.
/// Source: Linux 6.12 tcp_rcv_space_adjust, tcp_rcv_rtt_update.
#[test]
fn older_kernels_make_more_room() {
    let mut acks: Vec<(u64, u64)> = [532, 555, 577, 600, 623].into_iter().zip(1..).map(|(window, n)| (n, window)).collect();
    acks.extend((6..=22).map(|n| (n, 637)));
    acks.extend((24..=30).step_by(2).map(|n| (n, 637)));
    acks.extend((32..=70).map(|n| (n, (81_496 + (n - 31) * 2896_u64).div_ceil(128))));
    run_as(&linux(WindowGrowth::Linux515), Role::Responder, &flights(150_000, &acks));
}

/// Data beyond a gap takes room in the buffer, and since 6.16 it makes some for what is missing. Source: Linux 6.18
/// tcp_data_queue_ofo, tcp_rcvbuf_grow.
#[test]
fn data_beyond_a_gap_makes_room() {
    let cfg = |growth| {
        let auto = GrowingWindow { buffer: Bytes(40_000), max_buffer: Bytes(60_000), share: 0.5, frame_share: None, growth };
        Tcp {
            handshake: false,
            mss: Some(1000),
            timestamps: false,
            sack_compression: SackCompression::None(Uncompressed {}),
            receive_window: ReceiveWindow::Auto(auto),
            ..linux(growth)
        }
    };
    let script = |windows: [u64; 4]| {
        let mut text = "+0 < . 1:1001\n+0 > . 1 ack 1001 win 19000\n".to_string();
        for (n, window) in (2..).zip(windows) {
            writeln!(text, "+0 < . {n}001:{}001\n+0 > . 1 ack 1001 sack 2001:{}001 win {window}", n + 1, n + 1).unwrap();
        }
        text
    };
    // Half of 40,000 bytes less a segment.
    run(&cfg(WindowGrowth::Linux515), &script([19_000; 4]));
    // Twice ten segments, and 2,000, 3,000, … bytes of which the last has come: 22,000, 23,000, … bytes less what waits. The next
    // segment opens the window as far.
    run(&cfg(WindowGrowth::Linux618), &script([19_000, 21_000, 21_000, 21_000]));
}

/// Timers expire at the first tick after they are due. Source: Linux timer wheel (calc_index).
#[test]
fn timers_expire_at_ticks() {
    let cfg = Tcp {
        handshake: false,
        mss: Some(1000),
        timestamps: false,
        quick_acks: 1,
        receive_window: ReceiveWindow::Fixed(FixedWindow { size: Bytes(65_535) }),
        timer_ticks: true,
        clock_granularity: Span::from_ms(4),
        ..linux(WindowGrowth::Linux618)
    };
    // A delayed ACK is due at 41.5 ms.
    run(&cfg, "+0.0015 < . 1:1001\n+0 > . 1 ack 1001\n+0 < . 1001:2001\n+0.0425 > . 1 ack 2001");
    // A probe: with an RTT of 2 ms, two of them and 2 ms are 8 ms in ticks, due at 11.5 ms.
    run(
        &cfg,
        "
        +0.0015 write 1000
        +0 > . 1:1001
        +0.002 < . 1 ack 1001
        +0 write 2000
        +0 > . 1001:2001
        +0 > . 2001:3001
        +0.0085 > . 2001:3001
        +0 = tail_probes 1
        ",
    );
}

/// tcp_sendmsg_locked, forced_push: of a stream that was written in one call, every 23rd segment carries PSH, since 32,580 bytes
/// are half of the window of 65,160 that the SYN/ACK offered; and the last one.
#[test]
fn a_push_after_each_half_window() {
    let pushed = |push: PushBit| {
        let cfg = Tcp { push, ..linux(WindowGrowth::Linux618) };
        let seen = RefCell::new(Vec::new());
        let mut net = Net::new(cfg, [1000, 2000], Span::from_us(1), |_, from, packet| {
            let tcp = packet.header.tcp();
            if from == 0 && packet.envelope.payload > 0 && tcp.flags.has(TcpFlags::PSH) {
                seen.borrow_mut().push((tcp.seq.wrapping_sub(1001) + u32::from(packet.envelope.payload)).div_ceil(1448));
            }
            Fate { delay: Span::from_ms(1), ..Fate::default() }
        });
        net.write(0, 100_000);
        net.run(Span::from_s(1), 10_000);
        drop(net);
        seen.into_inner()
    };
    assert_eq!(pushed(PushBit::Last(LastPush {})), [70]);
    assert_eq!(pushed(PushBit::HalfWindow(HalfWindowPush { writes: Vec::new() })), [23, 46, 69, 70]);
    assert_eq!(pushed(PushBit::HalfWindow(HalfWindowPush { writes: vec![Bytes(14_480), Bytes(50_000)] })), [10, 33, 68, 70]);
}
