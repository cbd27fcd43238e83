//! Instructions of one round trip: a data segment in order in, its ACK out, the ACK in, the next data segment out.
//!
//! `cargo build --release -p fanin-transport --example loop`, then
//! `valgrind --tool=callgrind --toggle-collect='*round_trips*' target/release/examples/loop newreno 100000`, and divide. Further arguments:
//! every how many segments one is marked (0: none), and the profile.

use fanin_packet::{Ecn, IpVersion, Packet};
use fanin_transport::cc::{CongestionControl, Cubic, Dctcp, NewReno};
use fanin_transport::{Connection, Kinds, Profile, Tcp, TcpEndpoint, Transport};
use fanin_units::{Bytes, Span, Time};

/// Packets under way at most, and places for them.
const FLYING: u64 = 40;
const POOL: u64 = 64;

/// A packet arrives: the events that follow.
#[inline(never)]
fn receive(cfg: &Tcp, now: Time, end: &mut TcpEndpoint, p: &Packet) -> u64 {
    end.on_packet(cfg, now, &p.envelope, &p.header);
    let mut events = 0;
    while end.poll_event().is_some() {
        events += 1;
    }
    events
}

#[inline(never)]
fn send_data(cfg: &Tcp, now: Time, end: &mut TcpEndpoint, p: &mut Packet) -> bool {
    end.poll(cfg, now, Kinds::DATA, &mut p.envelope, &mut p.header)
}

#[inline(never)]
fn send_control(cfg: &Tcp, now: Time, end: &mut TcpEndpoint, p: &mut Packet) -> bool {
    end.poll(cfg, now, Kinds::CONTROL, &mut p.envelope, &mut p.header)
}

#[inline(never)]
fn round_trips(cfg: &Tcp, ends: &mut [TcpEndpoint; 2], n: u64, mark_every: u64) -> u64 {
    let [sender, receiver] = ends;
    // Packets lie in a pool, as in the simulator.
    let mut pool = vec![Packet::default(); POOL as usize];
    let (mut data, mut ack) = (Packet::default(), Packet::default());
    let mut now = Time::from_ps(1_000_000);
    let (mut events, mut sent) = (0, 0);
    for i in 0..n {
        now += Span::from_ns(1_200);
        while sent - i < FLYING && send_data(cfg, now, sender, &mut pool[(sent % POOL) as usize]) {
            sent += 1;
        }
        if sent == i {
            break;
        }
        let p = &mut pool[(i % POOL) as usize];
        if mark_every > 0 && i % mark_every == 0 {
            p.envelope.ecn = Ecn::Ce;
        }
        events += receive(cfg, now, receiver, p);
        while send_control(cfg, now, receiver, &mut ack) {
            events += receive(cfg, now, sender, &ack);
            events += u64::from(send_control(cfg, now, sender, &mut data));
        }
        std::hint::black_box((sender.next_timeout(), receiver.next_timeout()));
    }
    events
}

fn main() {
    let mut args = std::env::args().skip(1);
    let name = args.next().unwrap_or_else(|| "newreno".to_string());
    let n: u64 = args.next().and_then(|n| n.parse().ok()).unwrap_or(100_000);
    let mark_every = args.next().and_then(|n| n.parse().ok()).unwrap_or(0);
    let control = match name.as_str() {
        "cubic" => CongestionControl::Cubic(Cubic { c: 0.4, beta: 0.7, fast_convergence: true, reno_friendly: true }),
        "dctcp" => CongestionControl::Dctcp(Dctcp { g: 0.0625, initial_alpha: 0.0, ..fanin_params::defaults() }),
        _ => CongestionControl::NewReno(NewReno {}),
    };
    let profile = if args.next().as_deref() == Some("linux") { Profile::Linux } else { Profile::Rfc };
    let mut cfg = Tcp::new(profile, control);
    cfg.handshake = false;
    cfg.ack_every = 1;
    cfg.initial_ssthresh = Some(Bytes(40 * 1448));
    let mut ends = Connection::pair(&cfg, IpVersion::V4, [1, 2], [3, 4]).map(|c| TcpEndpoint::new(&cfg, c, Time::ZERO));
    ends[0].write(&cfg, Time::ZERO, n * 1448);
    round_trips(&cfg, &mut ends, n, mark_every);
    let stats = ends[0].stats();
    println!(
        "{name}: {n} rounds, {} segments, {} ECN reductions, endpoint {} bytes",
        stats.packets_sent,
        stats.ecn_reductions,
        std::mem::size_of::<TcpEndpoint>()
    );
}
