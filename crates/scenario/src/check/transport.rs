//! Transports: values that contradict one another, and values that do nothing.

use crate::doc::Parts;
use fanin_packet::IpVersion;
use fanin_params::{Cx, Node, Param, Problem};
use fanin_transport::{CongestionControl, EcnEcho, ReceiveWindow, RttSampling, SpuriousRto, Tcp, TransportConfig};
use fanin_units::{Bytes, Span};

/// TCP header without options, and the timestamps option.
pub(super) const TCP_HEADER: u16 = 20;
const TIMESTAMPS: u16 = 12;
/// Source: RFC 8200 §5.
const LEAST_IPV6_MTU: u16 = 1_280;

/// Headers of IP and TCP before the data of a segment.
pub(super) fn headers(tcp: &Tcp, ip: IpVersion) -> u16 {
    ip.header() + TCP_HEADER + if tcp.timestamps { TIMESTAMPS } else { 0 }
}

/// Checks one transport by itself and with what else takes room in its frames; `cx` stands at its table.
pub(super) fn check(config: &TransportConfig, parts: &Parts, cx: &mut Cx) {
    match config {
        TransportConfig::Tcp(tcp) => {
            contradictions(tcp, cx);
            sizes(tcp, (parts.trailer(), parts.ip()), cx);
            without_effect(tcp, cx);
        }
    }
}

/// A value as documents have it: also where it is a default that the document does not mention.
pub(super) fn shown(value: &impl Param) -> Node {
    value.to_value().into()
}

fn error(cx: &mut Cx, key: &str, value: &impl Param, message: &str, accepted: &str) {
    cx.key(key, |cx| cx.error(Some(&shown(value)), message, Some(accepted.to_string())).severity);
}

/// A warning about `value` at `key`.
pub(super) fn warn<'a>(cx: &'a mut Cx, key: &str, value: &impl Param, message: impl Into<String>) -> &'a mut Problem {
    cx.key(key, |cx| cx.warn(Some(&shown(value)), message, None).severity);
    cx.last().expect("just recorded")
}

fn contradictions(tcp: &Tcp, cx: &mut Cx) {
    if tcp.rto_min > tcp.rto_max {
        error(cx, "rto_min", &tcp.rto_min, "is above rto_max", &format!("at most {}", tcp.rto_max));
    }
    if tcp.rto_initial > tcp.rto_max {
        error(cx, "rto_initial", &tcp.rto_initial, "is above rto_max", &format!("at most {}", tcp.rto_max));
    }
    if let ReceiveWindow::Auto(window) = &tcp.receive_window {
        if window.initial > window.max {
            cx.key("receive_window", |cx| {
                error(cx, "initial", &window.initial, "is above max", &format!("at most {}", window.max))
            });
        }
    }
    if tcp.rtt_sampling == RttSampling::Timestamps && !tcp.timestamps {
        error(cx, "rtt_sampling", &tcp.rtt_sampling, "needs timestamps", "\"timed_segment\", or timestamps = true");
    }
    if tcp.spurious_rto == SpuriousRto::Eifel && !tcp.timestamps {
        error(cx, "spurious_rto", &tcp.spurious_rto, "needs timestamps", "\"f_rto\" or \"none\", or timestamps = true");
    }
    let dctcp = matches!(tcp.congestion_control, CongestionControl::Dctcp(_));
    if dctcp && !tcp.ecn {
        error(cx, "ecn", &tcp.ecn, "takes from DCTCP the marks that it works by", "true, or another congestion_control");
    }
    if dctcp && tcp.ecn && tcp.ecn_echo == EcnEcho::Classic {
        warn(cx, "ecn_echo", &tcp.ecn_echo, "repeats each mark until CWR, so that DCTCP overestimates the marked fraction")
            .suggestion = Some("leave it out, or write \"dctcp\"".to_string());
    }
    if tcp.rto_min < tcp.clock_granularity && tcp.rto_min > Span::ZERO {
        let message = format!("is below clock_granularity ({}): no RTO is shorter than that", tcp.clock_granularity);
        warn(cx, "rto_min", &tcp.rto_min, message).suggestion = Some("lower clock_granularity too".to_string());
    }
    if tcp.ack_every > 1 && tcp.delayed_ack_timeout >= tcp.rto_min {
        let message = format!(
            "is not below rto_min ({}): a sender whose last segment waits for its ACK times out for nothing",
            tcp.rto_min
        );
        warn(cx, "delayed_ack_timeout", &tcp.delayed_ack_timeout, message).suggestion =
            Some("lower delayed_ack_timeout, or set ack_every = 1".to_string());
    }
}

/// Packets that are too small for their version of IP, segments that are too large for them. `trailer`: bytes that telemetry takes of
/// the MTU.
fn sizes(tcp: &Tcp, (trailer, ip): (u16, IpVersion), cx: &mut Cx) {
    let least = LEAST_IPV6_MTU + trailer;
    if ip == IpVersion::V6 && tcp.mtu < least {
        let stamp = if trailer > 0 { format!(" and {trailer} B for stamps") } else { String::new() };
        let accepted = format!("at least {least}: the {LEAST_IPV6_MTU} B that every link of IPv6 carries (RFC 8200){stamp}");
        cx.key("mtu", |cx| {
            let problem = cx.error(Some(&shown(&tcp.mtu)), "is too small for IPv6", Some(accepted));
            problem.suggestion = Some(format!("mtu = {least}, with mss for smaller segments; or framing.ip = \"v4\""));
        });
    }
    let notice = tcp.notice_room(ip);
    let room = tcp.mtu - trailer - notice - headers(tcp, ip);
    if tcp.mss.is_some_and(|mss| mss > room) {
        let accepted = format!(
            "at most {room}: the MTU of {} less {} of {}",
            tcp.mtu,
            Bytes(u64::from(tcp.mtu - room)),
            match (trailer > 0, notice > 0) {
                (false, false) => "headers",
                (true, false) => "headers and stamp",
                (false, true) => "headers and drop notification",
                (true, true) => "headers, stamp and drop notification",
            }
        );
        error(cx, "mss", &tcp.mss, "does not fit the MTU", &accepted);
    }
}

/// A value that differs from its default and changes nothing beside the others is an error: it was meant to do something.
fn without_effect(tcp: &Tcp, cx: &mut Cx) {
    let default = Tcp::new(tcp.profile, tcp.congestion_control.clone());
    macro_rules! idle {
        ($key:ident, $why:literal, $remedy:expr) => {
            if tcp.$key != default.$key {
                error(cx, stringify!($key), &tcp.$key, concat!("has no effect ", $why), $remedy);
            }
        };
    }
    if !tcp.tso {
        idle!(tso_max, "while tso is off", "tso = true, or no tso_max");
    }
    if !tcp.timestamps {
        idle!(timestamp_tick, "while timestamps are off", "timestamps = true, or no timestamp_tick");
    } else if tcp.rtt_sampling != RttSampling::Timestamps && tcp.spurious_rto != SpuriousRto::Eifel {
        let remedy = "rtt_sampling = \"timestamps\", spurious_rto = \"eifel\", or no timestamp_tick";
        idle!(timestamp_tick, "where nothing reads timestamps", remedy);
    }
    if !tcp.ecn {
        idle!(ecn_echo, "while ecn is off", "ecn = true, or no ecn_echo");
        idle!(ect_on, "while ecn is off", "ecn = true, or no ect_on");
    }
    if tcp.ack_every == 1 {
        idle!(delayed_ack_timeout, "without delayed ACKs", "ack_every above 1, or no delayed_ack_timeout");
        idle!(quick_acks, "without delayed ACKs", "ack_every above 1, or no quick_acks");
    }
    if tcp.initial_window.is_some() {
        idle!(initial_window_rule, "beside initial_window", "either initial_window or initial_window_rule");
    }
    if !tcp.handshake {
        idle!(time_wait, "on connections that never close", "handshake = true, or no time_wait");
        idle!(syn_retries, "on connections that are open already", "handshake = true, or no syn_retries");
    }
    if !tcp.drop_notification && !tcp.trim_nack {
        let remedy = "drop_notification = true, trim_nack = true, or no drop_resend";
        idle!(drop_resend, "while drop_notification and trim_nack are off", remedy);
    }
    if !tcp.sack && !tcp.ecn && tcp.prr {
        idle!(prr, "without sack and without ecn", "sack = true, or prr = false");
    }
}

/// Whether it sends ECN-capable packets.
pub(super) fn uses_ecn(config: &TransportConfig) -> bool {
    match config {
        TransportConfig::Tcp(tcp) => tcp.ecn,
    }
}
