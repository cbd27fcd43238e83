//! Checks of combined input- and output-queued switches: buffers without effect, queues too small for a frame, missing
//! mechanisms.

use super::largest_frame;
use super::settings::{at_setting, Settings};
use crate::doc::Parts;
use fanin_params::Cx;
use fanin_switch::{Combined, Mechanisms};

pub(super) fn check(parts: &Parts, settings: &Settings, cx: &mut Cx) {
    let Some(combined) = settings.switch.architecture.combined() else { return };
    cx.key("switch", |cx| {
        cx.key("buffer", |cx| {
            let message = "has no effect: combined switches have the buffers of switch.architecture";
            cx.unused(message, Some("no buffer, but voq and output of switch.architecture".into())).severity
        });
        cx.key("architecture", |cx| sizes(parts, combined, cx));
    });
    for (entry, mechanisms) in settings.mechanisms() {
        for key in mechanisms.not_at_combined() {
            at_setting(entry, "mechanisms", cx, |cx| {
                cx.key(key, |cx| {
                    let message =
                        "acts where an output port refuses packets or they join its queue, which a combined switch does not do";
                    let others = Mechanisms::that_run_at_combined().join(", ");
                    let accepted = format!("switch.architecture = \"output_queued\"; or of the mechanisms {others}");
                    cx.error(None, message, Some(accepted)).severity
                });
            });
        }
    }
}

fn sizes(parts: &Parts, combined: &Combined, cx: &mut Cx) {
    let largest = largest_frame(parts);
    let accepted = format!("at least {largest}");
    if combined.voq < largest {
        let message = format!("does not hold the largest frame of the traffic, {largest}");
        cx.error_at("voq", &combined.voq, message, &accepted);
    }
    if combined.output < largest {
        let message = format!("has no room for the largest frame of the traffic, {largest}: nothing ever crosses");
        cx.error_at("output", &combined.output, message, &accepted);
    }
}
