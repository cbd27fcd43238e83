//! Checks of TCP's parameters: contradictory values, and values without effect.

use super::{
    DelayedAcks, EcnEcho, PushBit, ReceiveWindow, RttSampling, SlowStart, SpuriousRto, Tcp, TCP_HEADER, TIMESTAMP_BYTES,
};
use crate::cc::CongestionControl;
use crate::transport::{CheckSite, LossTimer, Shape, TransportParams};
use fanin_packet::{IpVersion, Packet, Signals, SynOptions, TcpFlags, Timestamps};
use fanin_params::{shown, Cx, Ground, Trial};
use fanin_units::{Bytes, Span};

/// Smallest MTU of IPv6. Source: RFC 8200 §5.
const LEAST_IPV6_MTU: u16 = 1_280;

impl TransportParams for Tcp {
    fn check(&self, cx: &mut Cx, site: &CheckSite) {
        contradictions(self, cx);
        hystart_without_cubic(self, cx);
        sizes(self, site, cx);
        without_effect(self, site, cx);
    }

    fn mtu(&self, _ip: IpVersion) -> u16 {
        self.mtu
    }

    fn burst(&self) -> Option<(&'static str, Bytes)> {
        self.tso.then_some(("tso_max", self.tso_max))
    }

    fn with_mtu_less(self, bytes: u16) -> Self {
        Tcp { mtu: self.mtu - bytes, ..self }
    }

    fn shape(&self, ip: IpVersion) -> Shape {
        Shape {
            payload: u64::from(self.payload(self.mtu, ip, self.timestamps)),
            header: tcp_header(self),
            first: 0,
            opening: self.handshake.then(|| syn_header(self)),
        }
    }

    fn longest_header(&self, ip: IpVersion) -> u16 {
        ip.header() + tcp_header(self)
    }

    fn first_window(&self, ip: IpVersion) -> u64 {
        self.initial_window_bytes(u32::from(self.payload(self.mtu, ip, self.timestamps)))
    }

    fn keeps_queues_small(&self) -> bool {
        self.small_queues
    }

    fn receive_window(&self) -> Option<(&'static str, Bytes)> {
        let most = match &self.receive_window {
            ReceiveWindow::Fixed(window) => window.size,
            ReceiveWindow::Auto(window) => window.largest(),
        };
        Some(("receive_window", most))
    }

    fn loss_timers(&self) -> Vec<LossTimer> {
        let tail = LossTimer {
            key: "rto_min",
            value: self.rto_min,
            exponent: None,
            fixed: false,
            cost: "each lost tail of a burst costs that much",
        };
        let first = LossTimer {
            key: "rto_initial",
            value: self.rto_initial,
            exponent: None,
            fixed: false,
            cost: "without a handshake no RTT is known when the first window is lost",
        };
        if self.handshake {
            vec![tail]
        } else {
            vec![tail, first]
        }
    }

    fn ecn_remedy(&self) -> Option<&'static str> {
        Some("set ecn = true, or congestion_control = \"dctcp\"")
    }

    fn uses_ecn(&self) -> bool {
        self.ecn
    }

    fn needs_marks(&self) -> Option<&'static str> {
        self.congestion_control.needs_marks().filter(|_| self.ecn)
    }

    fn acts_on(&self) -> Signals {
        let all = [(self.drop_notification, Signals::LOST), (self.trim_nack, Signals::TRIMMED)];
        all.iter().filter(|(on, _)| *on).fold(Signals::NONE, |sum, (_, signal)| sum.with(*signal))
    }

    fn trials(_kind: &'static str, _docs: &[&str], at: &Ground) -> Vec<Trial> {
        CongestionControl::trials(at)
    }

    fn signal_keys(&self) -> &'static [(Signals, &'static str)] {
        &[(Signals::LOST, "drop_notification"), (Signals::TRIMMED, "trim_nack")]
    }
}

/// Length of the TCP header of a data segment, and of an ACK without SACK blocks.
fn tcp_header(tcp: &Tcp) -> u16 {
    TCP_HEADER + if tcp.timestamps { TIMESTAMP_BYTES } else { 0 }
}

/// Length of the TCP header of a SYN with its options.
fn syn_header(tcp: &Tcp) -> u16 {
    let mut packet = Packet::of_tcp(TcpFlags::SYN, 0, 0, 0, 0);
    let syn = packet.segment_mut();
    if tcp.timestamps {
        syn.tcp.set_timestamps(Timestamps::default());
    }
    syn.tcp.set_syn_options(SynOptions { mss: 0, window_scale: Some(tcp.window_scale()), sack_permitted: tcp.sack });
    packet.header_bytes()
}

fn contradictions(tcp: &Tcp, cx: &mut Cx) {
    if tcp.rto_min > tcp.rto_max {
        cx.error_at("rto_min", &tcp.rto_min, "is above rto_max", &format!("at most {}", tcp.rto_max));
    }
    if tcp.rto_initial > tcp.rto_max {
        cx.error_at("rto_initial", &tcp.rto_initial, "is above rto_max", &format!("at most {}", tcp.rto_max));
    }
    if let ReceiveWindow::Auto(window) = &tcp.receive_window {
        if window.buffer > window.max_buffer {
            cx.key("receive_window", |cx| {
                let accepted = format!("at most {}", window.max_buffer);
                cx.error_at("buffer", &window.buffer, "is above max_buffer", &accepted).severity
            });
        }
    }
    if let PushBit::HalfWindow(push) = &tcp.push {
        for (i, bytes) in push.writes.iter().enumerate().filter(|(_, bytes)| bytes.get() == 0) {
            let message = "writes nothing".to_string();
            cx.key("push", |cx| {
                cx.key("writes", |cx| {
                    cx.index(i, |cx| cx.error(Some(&shown(bytes)), message, Some("at least 1B".to_string())).severity)
                })
            });
        }
    }
    if tcp.delayed_acks == DelayedAcks::Adaptive && tcp.delayed_ack_timeout > tcp.delayed_ack_max {
        let accepted = format!("at most {}", tcp.delayed_ack_max);
        cx.error_at("delayed_ack_timeout", &tcp.delayed_ack_timeout, "is above delayed_ack_max", &accepted);
    }
    if tcp.rtt_sampling == RttSampling::Timestamps && !tcp.timestamps {
        cx.error_at("rtt_sampling", &tcp.rtt_sampling, "needs timestamps", "\"timed_segment\", or timestamps = true");
    }
    if tcp.spurious_rto == SpuriousRto::Eifel && !tcp.timestamps {
        cx.error_at("spurious_rto", &tcp.spurious_rto, "needs timestamps", "\"f_rto\" or \"none\", or timestamps = true");
    }
    if let Some(name) = tcp.congestion_control.needs_marks() {
        if !tcp.ecn {
            let message = format!("disables ECN, which {name} requires");
            cx.error_at("ecn", &tcp.ecn, message, "true, or another congestion_control");
        } else if tcp.ecn_echo == EcnEcho::Classic {
            let message = format!("repeats each mark until CWR, so that {name} overestimates the marked fraction");
            cx.warn_at("ecn_echo", &tcp.ecn_echo, message).suggestion = Some("leave it out, or write \"dctcp\"".to_string());
        }
    }
    if tcp.rto_min < tcp.clock_granularity && tcp.rto_min > Span::ZERO {
        let message = format!("is below clock_granularity ({}): no RTO is shorter than that", tcp.clock_granularity);
        cx.warn_at("rto_min", &tcp.rto_min, message).suggestion = Some("lower clock_granularity too".to_string());
    }
    if tcp.ack_every > 1 && tcp.delayed_ack_timeout >= tcp.rto_min {
        let message = format!(
            "is not below rto_min ({}): a sender whose last segment waits for its ACK times out for nothing",
            tcp.rto_min
        );
        cx.warn_at("delayed_ack_timeout", &tcp.delayed_ack_timeout, message).suggestion =
            Some("lower delayed_ack_timeout, or set ack_every = 1".to_string());
    }
}

/// Refuses HyStart without CUBIC, in whose state it lives.
fn hystart_without_cubic(tcp: &Tcp, cx: &mut Cx) {
    let control = tcp.congestion_control.kind();
    if tcp.slow_start == SlowStart::HyStart && control != "cubic" {
        let message = format!("is a part of CUBIC, and has no effect with {control}");
        cx.error_at("slow_start", &tcp.slow_start, message, "\"hystart++\" or \"standard\", or congestion_control = \"cubic\"");
    }
}

/// Refuses packets too small for their version of IP, and segments too large for their packets.
fn sizes(tcp: &Tcp, &CheckSite { trailer, ip, .. }: &CheckSite, cx: &mut Cx) {
    let least = LEAST_IPV6_MTU + trailer;
    if ip == IpVersion::V6 && tcp.mtu < least {
        let stamp = if trailer > 0 { format!(" and {trailer} B for stamps") } else { String::new() };
        let accepted = format!("at least {least}: the {LEAST_IPV6_MTU} B that every link of IPv6 carries (RFC 8200){stamp}");
        cx.key("mtu", |cx| {
            let problem = cx.error(Some(&shown(&tcp.mtu)), "is too small for IPv6", Some(accepted));
            problem.suggestion = Some(format!("mtu = {least}, with mss for smaller segments; or framing.ip = \"v4\""));
        });
    }
    let notification = tcp.notification_room(ip);
    let room = tcp.mtu - trailer - notification - tcp.longest_header(ip);
    if tcp.mss.is_some_and(|mss| mss > room) {
        let accepted = format!(
            "at most {room}: the MTU of {} less {} of {}",
            tcp.mtu,
            Bytes(u64::from(tcp.mtu - room)),
            match (trailer > 0, notification > 0) {
                (false, false) => "headers",
                (true, false) => "headers and stamp",
                (false, true) => "headers and drop notification",
                (true, true) => "headers, stamp and drop notification",
            }
        );
        cx.error_at("mss", &tcp.mss, "does not fit the MTU", &accepted);
    }
}

/// Reports values that have no effect beside the others.
fn without_effect(tcp: &Tcp, site: &CheckSite, cx: &mut Cx) {
    macro_rules! idle {
        ($key:ident, $why:literal, $remedy:expr) => {
            cx.unused_at(stringify!($key), &tcp.$key, concat!("has no effect ", $why), $remedy)
        };
    }
    if !tcp.tso {
        idle!(tso_max, "while tso is off", "tso = true, or no tso_max");
        idle!(tso_rtt_log, "while tso is off", "tso = true, or no tso_rtt_log");
    }
    if !site.queues_at_hosts {
        idle!(small_queues, "where the NIC takes packets from sockets", "host.nic = \"fifo\", or no small_queues");
    }
    if !tcp.timestamps {
        idle!(timestamp_tick, "while timestamps are off", "timestamps = true, or no timestamp_tick");
        idle!(paws, "while timestamps are off", "timestamps = true, or no paws");
    } else if !reads_timestamps(tcp) {
        let remedy = "rtt_sampling = \"timestamps\", spurious_rto = \"eifel\", paws = true, or no timestamp_tick";
        idle!(timestamp_tick, "where nothing reads timestamps", remedy);
    }
    if !tcp.sack {
        idle!(loss_detection, "without sack", "sack = true, or no loss_detection");
    }
    if !tcp.uses_rack() && !tcp.adapts_acks() {
        idle!(timer_ticks, "without RACK and adaptive delayed ACKs", "profile = \"linux\", or no timer_ticks");
    } else if tcp.timer_ticks && tcp.clock_granularity == Span::ZERO {
        let remedy = "clock_granularity above 0, or no timer_ticks";
        cx.error_at("timer_ticks", &tcp.timer_ticks, "has no effect where clock_granularity is 0", remedy);
    }
    if !tcp.uses_rack() {
        let remedy = "loss_detection = \"rack\" with sack = true, or leave it out";
        idle!(tail_loss_probe, "without RACK", remedy);
        idle!(undo, "without RACK", remedy);
        idle!(timer_slack, "without RACK", remedy);
    }
    if !tcp.ecn {
        idle!(ecn_echo, "while ecn is off", "ecn = true, or no ecn_echo");
        idle!(ect_on, "while ecn is off", "ecn = true, or no ect_on");
    }
    if tcp.ack_every == 1 {
        idle!(delayed_ack_timeout, "without delayed ACKs", "ack_every above 1, or no delayed_ack_timeout");
        idle!(quick_acks, "without delayed ACKs", "ack_every above 1, or no quick_acks");
        idle!(delayed_acks, "without delayed ACKs", "ack_every above 1, or no delayed_acks");
        idle!(delayed_ack_max, "without delayed ACKs", "ack_every above 1, or no delayed_ack_max");
    } else if tcp.delayed_acks == DelayedAcks::Fixed {
        idle!(delayed_ack_max, "where delayed ACKs are fixed", "delayed_acks = \"adaptive\", or no delayed_ack_max");
    }
    if !tcp.sack {
        idle!(dsack, "without sack", "sack = true, or no dsack");
        let (kind, remedy) = (tcp.sack_compression.kind().to_string(), "sack = true, or no sack_compression");
        cx.unused_at("sack_compression", &kind, "has no effect without sack", remedy);
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
    if !tcp.sack && !tcp.ecn && !site.queues_at_hosts {
        idle!(prr, "without sack and without ecn", "sack = true, or no prr");
    }
}

/// True if the values in timestamps have an effect.
fn reads_timestamps(tcp: &Tcp) -> bool {
    let grows = matches!(tcp.receive_window, ReceiveWindow::Auto(_));
    tcp.rtt_sampling == RttSampling::Timestamps || tcp.spurious_rto == SpuriousRto::Eifel || tcp.paws || grows
}
