//! Transports: values that contradict one another, and values that do nothing.

use fanin_params::Cx;
use fanin_transport::{CongestionControl, EcnEcho, ReceiveWindow, RttSampling, SpuriousRto, Tcp, TransportConfig};
use fanin_units::Bytes;

/// IPv4 and TCP header without options, and the timestamps option.
const HEADERS: u16 = 40;
const TIMESTAMPS: u16 = 12;

/// Checks one transport by itself; `cx` stands at its table.
pub(super) fn check(config: &TransportConfig, cx: &mut Cx) {
    match config {
        TransportConfig::Tcp(tcp) => {
            contradictions(tcp, cx);
            without_effect(tcp, cx);
        }
    }
}

fn error(cx: &mut Cx, key: &str, message: &str, accepted: &str) {
    cx.key(key, |cx| cx.error(None, message, Some(accepted.to_string())).severity);
}

fn contradictions(tcp: &Tcp, cx: &mut Cx) {
    if tcp.rto_min > tcp.rto_max {
        error(cx, "rto_min", "is above rto_max", &format!("at most {}", tcp.rto_max));
    }
    if tcp.rto_initial > tcp.rto_max {
        error(cx, "rto_initial", "is above rto_max", &format!("at most {}", tcp.rto_max));
    }
    if let ReceiveWindow::Auto(window) = &tcp.receive_window {
        if window.initial > window.max {
            cx.key("receive_window", |cx| error(cx, "initial", "is above max", &format!("at most {}", window.max)));
        }
    }
    let room = tcp.mtu - HEADERS - if tcp.timestamps { TIMESTAMPS } else { 0 };
    if tcp.mss.is_some_and(|mss| mss > room) {
        let accepted = format!("at most {room}: the MTU of {} less {} of headers", tcp.mtu, Bytes(u64::from(tcp.mtu - room)));
        error(cx, "mss", "does not fit the MTU", &accepted);
    }
    if tcp.rtt_sampling == RttSampling::Timestamps && !tcp.timestamps {
        error(cx, "rtt_sampling", "needs timestamps", "\"timed_segment\", or timestamps = true");
    }
    if tcp.spurious_rto == SpuriousRto::Eifel && !tcp.timestamps {
        error(cx, "spurious_rto", "needs timestamps", "\"f_rto\" or \"none\", or timestamps = true");
    }
    let dctcp = matches!(tcp.congestion_control, CongestionControl::Dctcp(_));
    if dctcp && !tcp.ecn {
        error(cx, "ecn", "takes from DCTCP the marks that it works by", "true, or another congestion_control");
    }
    if dctcp && tcp.ecn && tcp.ecn_echo == EcnEcho::Classic {
        cx.key("ecn_echo", |cx| {
            cx.warn(None, "repeats each mark until CWR, so that DCTCP overestimates the marked fraction", None).suggestion =
                Some("leave it out, or write \"dctcp\"".to_string());
        });
    }
    if tcp.ack_every > 1 && tcp.delayed_ack_timeout >= tcp.rto_min {
        cx.key("delayed_ack_timeout", |cx| {
            let message = format!("{} is not below rto_min ({}): a sender whose last segment waits for its ACK times out for nothing", tcp.delayed_ack_timeout, tcp.rto_min);
            cx.warn(None, message, None).suggestion = Some("lower delayed_ack_timeout, or set ack_every = 1".to_string());
        });
    }
}

/// A value that differs from its default and changes nothing beside the others is an error: it was meant to do something.
fn without_effect(tcp: &Tcp, cx: &mut Cx) {
    let default = Tcp::new(tcp.profile, tcp.congestion_control.clone());
    let mut idle = |key: &str, changed: bool, why: &str, remedy: &str| {
        if changed {
            error(cx, key, &format!("has no effect {why}"), remedy);
        }
    };
    if !tcp.tso {
        idle("tso_max", tcp.tso_max != default.tso_max, "while tso is off", "tso = true, or no tso_max");
    }
    if !tcp.timestamps {
        idle("timestamp_tick", tcp.timestamp_tick != default.timestamp_tick, "while timestamps are off", "timestamps = true, or no timestamp_tick");
    }
    if !tcp.ecn {
        idle("ecn_echo", tcp.ecn_echo != default.ecn_echo, "while ecn is off", "ecn = true, or no ecn_echo");
        idle("ect_on", tcp.ect_on != default.ect_on, "while ecn is off", "ecn = true, or no ect_on");
    }
    if tcp.ack_every == 1 {
        let remedy = "ack_every above 1, or leave it out";
        idle("delayed_ack_timeout", tcp.delayed_ack_timeout != default.delayed_ack_timeout, "without delayed ACKs", remedy);
        idle("quick_acks", tcp.quick_acks != default.quick_acks, "without delayed ACKs", remedy);
    }
    if tcp.initial_window.is_some() {
        let changed = tcp.initial_window_rule != default.initial_window_rule;
        idle("initial_window_rule", changed, "beside initial_window", "either initial_window or initial_window_rule");
    }
    if !tcp.handshake {
        let remedy = "handshake = true, or leave it out";
        idle("time_wait", tcp.time_wait != default.time_wait, "on connections that never close", remedy);
        idle("syn_retries", tcp.syn_retries != default.syn_retries, "on connections that are open already", remedy);
    }
    if !tcp.sack && !tcp.ecn {
        idle("prr", tcp.prr != default.prr && tcp.prr, "without sack and without ecn", "sack = true, or prr = false");
    }
}

/// Whether it sends ECN-capable packets.
pub(super) fn uses_ecn(config: &TransportConfig) -> bool {
    match config {
        TransportConfig::Tcp(tcp) => tcp.ecn,
    }
}
