//! What ends slow start: the drops of a fan-in with and without HyStart.

use crate::common::*;

/// Drops and the time of the first [ms] where nine CUBIC senders of 1 MB each share a port of 100 Mb/s with 512 KB of buffer, at
/// an RTT of 2 ms; timeouts, and when the last flow completes [ms].
fn nine_to_one(slow_start: &str) -> (usize, f64, u64, f64) {
    let ran = run(&format!(
        "[topology]\nkind = \"dumbbell\"\nleft = 9\nright = 1\nhost_link = {{ rate = \"10Gbps\", delay = \"0ps\" }}\n\
         bottleneck = {{ rate = \"100Mbps\", delay = \"1ms\" }}\n\
         [framing]\nheader = \"14B\"\ngap = \"0B\"\nmin_frame = \"0B\"\n\
         [switch]\nbuffer = {{ kind = \"static\", per_port = \"512KB\" }}\n\
         [transport]\nkind = \"tcp\"\nprofile = \"linux\"\nhandshake = true\nclock_granularity = \"4ms\"\n\
         slow_start = \"{slow_start}\"\n\
         [telemetry]\nsample = \"off\"\n\
         [[traffic]]\nkind = \"incast\"\nreceiver = \"h9\"\nsenders = [\"all\"]\nsize = \"1MB\"\n"
    ));
    let ms = |ps: u64| ps as f64 / 1e9;
    let first = ran.kept.drops.iter().map(|d| d.time_ps).min().map_or(f64::INFINITY, ms);
    let flows = &ran.kept.flows;
    let last = flows.iter().map(|f| ms(f.finish_ps.expect("complete"))).fold(0.0, f64::max);
    (ran.kept.drops.len(), first, flows.iter().map(|f| u64::from(f.timeouts)).sum(), last)
}

#[test]
fn hystart_spares_a_fan_in_its_first_losses() {
    for kind in ["standard", "hystart", "hystart++"] {
        println!("{kind}: {:?}", nine_to_one(kind));
    }
}
