//! Checks of `telemetry.capture`: unknown hosts, frames that Ethernet cannot carry, cuts that lose the interesting bytes.

use super::names::{unknown, HOST};
use super::settings::Settings;
use super::telemetry::ports_of_switches;
use super::transport::warn;
use super::{datagrams, ip_and_udp, used_transports, Network};
use crate::doc::Parts;
use crate::sections::{CaptureFrames, Framing, STAMP_BYTES};
use fanin_params::pattern;
use fanin_params::Cx;
use fanin_transport::TransportParams;
use fanin_units::{Bytes, HostId, LinkId};

/// Length of the frame check sequence, which counts as frame bytes but is not captured.
const FCS: u64 = 4;
/// Number of hosts for which 10.0.0.0/8 has addresses.
const MOST_HOSTS: usize = (1 << 24) - 2;

/// Hosts and links that `telemetry.capture` selects, in order of ids.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Captured {
    pub hosts: Vec<HostId>,
    /// Links behind switch ports.
    pub links: Vec<LinkId>,
}

/// Checks `telemetry.capture` and resolves its patterns.
pub(super) fn check(parts: &Parts, settings: Option<&Settings>, network: &Network, cx: &mut Cx) -> Captured {
    let Some(capture) = parts.telemetry.as_ref().and_then(|telemetry| telemetry.capture.as_ref()) else {
        return Captured::default();
    };
    let mut links = Vec::new();
    let hosts = network.host_infos();
    let names: Vec<&str> = hosts.iter().map(|host| host.name).collect();
    let mut chosen = vec![false; names.len()];
    cx.key("telemetry", |cx| {
        cx.key("capture", |cx| {
            if capture.hosts.is_empty() && capture.links.is_empty() {
                let accepted = "names of hosts, or of ports in links, or no capture".to_string();
                cx.key("hosts", |cx| cx.error(None, "is empty: nothing is captured", Some(accepted)).severity);
            }
            for (i, wanted) in capture.hosts.iter().enumerate() {
                let mut any = false;
                for (chosen, _) in chosen.iter_mut().zip(&names).filter(|(_, name)| pattern::fits(wanted, name)) {
                    (any, *chosen) = (true, true);
                }
                if !any {
                    cx.key("hosts", |cx| cx.index(i, |cx| unknown(&HOST, wanted, &names, cx)));
                }
            }
            links = ports_of_switches("links", &capture.links, "frames are captured by hosts", network, cx);
            if names.len() > MOST_HOSTS {
                let message = format!("has no addresses for {} hosts in 10.0.0.0/8", names.len());
                cx.error(None, message, Some(format!("networks of at most {MOST_HOSTS} hosts")));
            }
            if let Some(framing) = &parts.framing {
                ethernet(framing, cx);
            }
            snap(capture, parts, settings, cx);
        });
    });
    Captured { hosts: (0u32..).zip(chosen).filter(|(_, chosen)| *chosen).map(|(i, _)| HostId(i)).collect(), links }
}

/// Refuses captures of frames with other lengths than Ethernet's, which have no byte representation. A test compares the rule
/// with that of `fanin_wire::Framer`.
fn ethernet(framing: &Framing, cx: &mut Cx) {
    let (header, smallest) = (framing.header.get(), framing.min_frame.get());
    if !matches!((header, smallest), (18, 64) | (22, 64 | 68)) {
        let message = format!(
            "holds Ethernet frames, but in this scenario framing.header is {} and framing.min_frame is {}",
            framing.header, framing.min_frame
        );
        let accepted =
            "header = \"18B\" with min_frame = \"64B\", or \"22B\" (a priority tag) with \"64B\" or \"68B\"; or no capture";
        cx.error(None, message, Some(accepted.to_string()));
    }
}

/// Warns of a `snap` that cuts off stamps, which end their frames, or the control messages behind them.
fn snap(capture: &CaptureFrames, parts: &Parts, settings: Option<&Settings>, cx: &mut Cx) {
    let (Some(snap), Some(framing)) = (capture.snap, &parts.framing) else { return };
    let sets = settings.map(Settings::mechanisms).unwrap_or_default();
    if let Some(largest) = sets.iter().filter_map(|(_, mechanisms)| mechanisms.largest_frame()).max() {
        let longest = largest.get() - FCS;
        if snap.get() < longest {
            let message =
                format!("cuts control messages off: they are the end of a frame, and frames with one are up to {longest} B long");
            warn(cx, "snap", &snap, message).suggestion = Some(format!("\"{}\", or no snap", Bytes(longest)));
        }
    }
    if parts.trailer() == 0 {
        return;
    }
    let segments = used_transports(parts).into_iter().map(|(_, config)| u64::from(config.mtu(parts.ip())));
    let headers = ip_and_udp(parts) + u64::from(STAMP_BYTES);
    let datagrams = datagrams(parts).map(|(_, packet)| packet.get() + headers);
    let longest = segments.chain(datagrams).max().unwrap_or(0) + framing.header.get() - FCS.min(framing.header.get());
    if snap.get() < longest {
        let message = format!("cuts the stamps of telemetry.registers off: they are the last {STAMP_BYTES} B of a frame, and frames are up to {longest} B long here");
        warn(cx, "snap", &snap, message).suggestion = Some(format!("\"{}\", or no snap", Bytes(longest)));
    }
}
