//! Checks of pauses at hosts: storms of unknown hosts or unpaused classes, watchdogs that never act.

use super::names::{unknown, HOST};
use super::settings::Settings;
use super::Network;
use crate::doc::Parts;
use crate::pauses::Storm;
use crate::sections::{Host, Nic};
use fanin_params::{pattern, Cx, Param};
use fanin_switch::Mechanisms;
use fanin_units::{Span, Time};

/// Checks the pause storms of hosts, and their reactions to pauses that do not end.
pub(super) fn check(parts: &Parts, settings: &Settings, network: Option<&Network>, cx: &mut Cx) {
    let Some(host) = &parts.host else { return };
    let paused = settings.mechanisms().into_iter().fold(0, |all, (_, mechanisms)| all | mechanisms.lossless());
    cx.key("host", |cx| {
        watchdog(host, paused, parts.duration, cx);
        if let Some(prevention) = host.stall_prevention.filter(|_| host.storms.is_empty()) {
            let message = "has no effect: no NIC asks for pauses";
            cx.unused_at("stall_prevention", &prevention, message, "host.storms, or no stall_prevention");
        }
        for (i, storm) in host.storms.iter().enumerate() {
            cx.key("storms", |cx| cx.index(i, |cx| check_storm(storm, (parts, paused), network, cx)));
        }
    });
}

/// Keys of the mechanisms that prevent losses by pauses, for messages.
pub(super) fn pausing() -> String {
    let keys: Vec<String> = Mechanisms::that_keep_all().iter().map(|key| format!("switch.mechanisms.{key}")).collect();
    keys.join(", ")
}

fn watchdog(host: &Host, paused: u8, duration: Option<Span>, cx: &mut Cx) {
    let Some(watchdog) = &host.pause_watchdog else { return };
    cx.key("pause_watchdog", |cx| {
        if paused == 0 {
            let accepted = format!("{}, or no pause_watchdog", pausing());
            cx.error(None, "has no effect: no switch pauses hosts", Some(accepted));
        } else if matches!(host.nic, Nic::Fifo(_)) {
            let message = "has no effect: NICs that are one queue, first in, first out, ignore pauses";
            cx.error(None, message, Some("host.nic = \"fair\", or no pause_watchdog".to_string()));
        } else if let Some(duration) = duration.filter(|duration| watchdog.detection >= *duration) {
            let message = format!("finds no storm: a run of {duration} is over before a pause has lasted so long");
            let problem = cx.warn_at("detection", &watchdog.detection, message);
            problem.suggestion = Some(format!("less than {duration}, or a longer run"));
        } else {
            let message = format!(
                "may lose packets: a NIC sends a class, whether the switch has room or not, after {} of pause",
                watchdog.detection
            );
            cx.warn(None, message, None).suggestion = Some("no pause_watchdog, where nothing may be lost".to_string());
        }
    });
}

fn check_storm(storm: &Storm, (parts, paused): (&Parts, u8), network: Option<&Network>, cx: &mut Cx) {
    for (key, empty) in [("hosts", storm.hosts.is_empty()), ("classes", storm.classes.is_empty())] {
        if empty {
            cx.key(key, |cx| cx.error(None, "is empty: the storm does nothing", Some("at least one".to_string())).severity);
        }
    }
    if let Some(network) = network {
        let hosts = network.host_infos();
        let names: Vec<&str> = hosts.iter().map(|host| host.name).collect();
        for (i, wanted) in storm.hosts.iter().enumerate() {
            if !names.iter().any(|name| pattern::fits(wanted, name)) {
                cx.key("hosts", |cx| cx.index(i, |cx| unknown(&HOST, wanted, &names, cx)));
            }
        }
    }
    let lossless: Vec<String> = (0..8).filter(|class| paused >> class & 1 != 0).map(|class: u8| class.to_string()).collect();
    for (i, class) in storm.classes.iter().enumerate().filter(|(_, class)| paused >> (**class & 7) & 1 == 0) {
        let (message, accepted) = if lossless.is_empty() {
            ("has no effect: no switch obeys pauses", pausing())
        } else {
            ("has no effect: no switch pauses this class", format!("of {}.classes: {}", pausing(), lossless.join(", ")))
        };
        let node = class.to_value().into();
        cx.key("classes", |cx| cx.index(i, |cx| cx.error(Some(&node), message, Some(accepted)).severity));
    }
    if let Some(end) = storm.end.filter(|end| *end <= storm.start) {
        let accepted = format!("after {}", storm.start);
        cx.error_at("end", &end, "is not after the start", &accepted);
    }
    let over = parts.duration.is_some_and(|duration| storm.start >= Time::ZERO + duration);
    if over {
        cx.error_at("start", &storm.start, "is after the end of the run", "before the end of the run: duration");
    }
    if storm.end.is_none() && parts.duration.is_none() {
        let message = "never ends, so a run with a flow that waits for it never ends either";
        cx.error(None, message, Some("an end, or the scenario's duration".to_string()));
    }
}
