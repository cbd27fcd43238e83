//! A timeout after a long recovery: found by comparing with ns-3 (docs/ns3.md).

use fanin_packet::{Packet, SackBlock, TcpFlags};
use fanin_transport::cc::{CongestionControl, Cubic, NewReno};
use fanin_transport::*;
use fanin_units::{Bytes, Span, Time};

const MSS: u64 = 1000;
const RTT: Span = Span::from_ms(10);

struct Run {
    tcp: TcpEndpoint,
    cfg: Tcp,
    now: Time,
}

impl Run {
    /// Sends all that may be sent; gives the sequence numbers of the segments.
    fn send(&mut self) -> Vec<u32> {
        let mut p = Packet::default();
        let mut sent = Vec::new();
        while self.tcp.poll(&self.cfg, self.now, Kinds::DATA, &mut p.envelope, &mut p.header) {
            sent.push(p.header.number());
        }
        sent
    }

    fn ack(&mut self, ack: u32, sacked_to: Option<u32>) {
        let mut p = Packet::of_tcp(TcpFlags::ACK, 0, ack, u16::MAX, 0);
        if let Some(end) = sacked_to {
            p.segment_mut().push_sack(SackBlock { start: ack + MSS as u32, end });
        }
        self.tcp.on_packet(&self.cfg, self.now, &p.envelope, &p.header);
    }
}

/// The first segment is lost twice; the window goes round `rounds` times above it and is SACKed. Gives ssthresh in recovery,
/// FlightSize at the timeout, ssthresh after it, and the segments that leave when the hole is filled at last.
fn lost_twice(control: CongestionControl, rounds: u32) -> (u64, u64, u64, usize) {
    let mut cfg = Tcp::new(Profile::Rfc, control);
    cfg.handshake = false;
    cfg.mss = Some(MSS as u16);
    cfg.timestamps = false;
    cfg.initial_window = Some(10);
    cfg.rto_min = Span::from_ms(200);
    cfg.rto_initial = Span::from_ms(200);
    cfg.slow_start_limit = 65_535;
    cfg.receive_window = ReceiveWindow::Fixed(FixedWindow { size: Bytes(16 << 20) });
    let conn = Connection {
        role: Role::Initiator,
        open: true,
        iss: 0,
        irs: 0,
        ts_offset: 0,
        mtu: 1500,
        ip: fanin_packet::IpVersion::V4,
    };
    let tcp = TcpEndpoint::new(&cfg, conn, Time::ZERO);
    let mut run = Run { tcp, cfg, now: Time::ZERO };
    run.tcp.write(&run.cfg, run.now, 10_000_000);
    let mut flying = run.send();
    let lost = flying.remove(0);
    let mut recovery = 0;
    for _ in 0..rounds {
        run.now += RTT;
        for seq in std::mem::take(&mut flying) {
            run.ack(lost, Some(seq + MSS as u32));
            flying.extend(run.send().into_iter().filter(|s| *s != lost));
        }
        recovery = run.tcp.ssthresh();
    }
    let flight = run.tcp.inflight();
    assert_eq!(run.tcp.stats().timeouts, 0);
    run.now = run.tcp.next_timeout();
    run.tcp.on_timer(&run.cfg, run.now);
    assert_eq!((run.tcp.stats().timeouts, run.send()), (1, vec![lost]));
    let after = run.tcp.ssthresh();
    run.now += RTT;
    let top = flying.iter().copied().max().unwrap_or(lost);
    run.ack(top, None);
    (recovery, flight, after, run.send().len())
}

#[test]
fn newreno_halves_cwnd_not_what_was_sacked_meanwhile() {
    let (recovery, flight, after, burst) = lost_twice(CongestionControl::NewReno(NewReno {}), 12);
    assert!(flight > 40 * MSS, "{flight}: the test wants a FlightSize far above cwnd");
    assert_eq!((recovery, after), (5 * MSS, 5 * MSS / 2));
    assert!(burst <= 4, "{burst} segments at once");
}

#[test]
fn cubic_takes_seven_tenths_of_cwnd_not_of_what_was_sacked_meanwhile() {
    let cubic = Cubic { c: 0.4, beta: 0.7, fast_convergence: true, reno_friendly: false };
    let (recovery, flight, after, burst) = lost_twice(CongestionControl::Cubic(cubic), 12);
    assert!(flight > 40 * MSS, "{flight}: the test wants a FlightSize far above cwnd");
    assert_eq!((recovery, after), (7 * MSS, 49 * MSS / 10));
    assert!(burst <= 6, "{burst} segments at once");
}
