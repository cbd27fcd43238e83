//! In-band network telemetry: each port that a packet leaves writes its queue, what it has sent, the time and its rate into the
//! packet's frame, where the packet's transport asks for that. Source: HPCC §4.1.

use super::{
    names_it, Arrival, Context, Effects, Headers, Hooks, Mechanism, Node, PortNo, PortSite, Profile, Site, Telemetry, Verdict,
};
use fanin_packet::{rate_code, Shim, Stack, MAX_HOPS};
use fanin_params::{counters, params, Cx, Param};
use fanin_units::Bytes;

params! {
    /// In-band network telemetry: ports write their state into frames whose transport asks for it. Source: HPCC §4.1.
    pub struct IntParams {
        /// Largest number of records in a frame; ports further on write none.
        pub hops: u8 = 5, in 1..=MAX_HOPS as u8;
        /// Switches without telemetry, by name, `*` stands for anything: senders see nothing of their ports.
        pub unaware: Vec<String> = Vec::new();
    }
}

counters! {
    /// Frames with in-band telemetry at switches. At any time such frames = stamped + full.
    pub struct IntCounts in "int" {
        /// Frames that got room for the record of a port, counted at each switch.
        stamped,
        /// Frames that had as many records as they can hold.
        full: failure,
    }
}

/// Telemetry at one switch.
#[derive(Debug)]
pub struct Int {
    hops: usize,
    /// Number of each port in the path of a packet.
    ports: Vec<u16>,
    counts: IntCounts,
}

/// Number of a port in the path: 12 bits by which paths differ. Source: HPCC §4.1.
/// Deviation: HPCC has one number for each switch, so that parallel links cannot be told apart.
fn path_number(port: &PortSite) -> u16 {
    (port.link.0.wrapping_add(1).wrapping_mul(0x9E37_79B1) >> 20) as u16 // by the golden ratio: neighbours differ in many bits
}

impl Mechanism for Int {
    type Params = IntParams;
    type Counts = IntCounts;

    const PROFILE: Profile =
        Profile { headers: Some(Headers { bytes: 0, of_host: None }), at_combined: true, telemetry: true, ..Profile::PLAIN };

    /// Memory: none, as ports write counts that they keep anyway.
    fn memory(_params: &IntParams, _site: &Site) -> Option<Bytes> {
        Some(Bytes(0))
    }

    fn runs_at(params: &IntParams, switch: &str) -> bool {
        !names_it(&params.unaware, switch)
    }

    fn new(params: &IntParams, site: &Site) -> Option<Self> {
        Self::runs_at(params, &site.name).then(|| Int {
            hops: usize::from(params.hops),
            ports: site.ports.iter().map(path_number).collect(),
            counts: IntCounts::default(),
        })
    }

    fn check(params: &IntParams, context: &Context<'_>, cx: &mut Cx) {
        if context.traffic.is_complete && !context.traffic.transports.iter().any(|transport| transport.telemetry > 0) {
            cx.warn(None, "has nothing to write into: no transport in use asks for telemetry", None);
        }
        if u32::from(params.hops) < context.network.longest_path {
            cx.key("hops", |cx| {
                let (value, longest) = (params.hops.to_value().into(), context.network.longest_path);
                let message =
                    format!("is less than the switches on the longest path, {longest}: the ports of the last write nothing");
                let accepted = match longest as usize {
                    longest if longest <= MAX_HOPS => format!("from {longest} to {MAX_HOPS}"),
                    _ => format!("paths over at most {MAX_HOPS} switches"),
                };
                cx.error(Some(&value), message, Some(accepted)).severity
            });
        }
        let ports = context.network.sites.iter().filter(|site| Self::runs_at(params, &site.name));
        let ports = ports.flat_map(|site| site.ports.iter().map(move |port| (site, port)));
        if let Some((site, port)) = ports.into_iter().find(|(_, port)| rate_code(port.rate).is_none()) {
            let message = format!("has no code for {}, the rate from {} to {}", port.rate, site.name, port.peer);
            let accepted = "0.1, 1, 2.5, 5, 10, 20, 25, 40, 50, 100, 200, 400, 800, 1600 or 3200 Gb/s".to_string();
            cx.error(None, message, Some(accepted));
        }
        cx.key("unaware", |cx| context.check_unaware(&params.unaware, false, ("no port writes", "no int"), cx));
    }

    fn hooks(&self) -> Hooks {
        Hooks::ROUTE.with(Hooks::SHIMS)
    }

    fn counts(&self) -> IntCounts {
        self.counts
    }

    fn on_route(&mut self, _node: &mut dyn Node, p: &mut Arrival<'_>, to: PortNo, _fx: &mut Effects) -> Verdict {
        if let Some(mut shim) = *p.shim {
            if self.stamp(&mut shim, to) {
                p.set_shim(Some(shim));
            }
        }
        Verdict::Pass
    }
}

impl Telemetry for Int {
    fn records(&self) -> usize {
        self.hops
    }

    #[inline(always)]
    fn stamp(&mut self, shim: &mut Shim, to: PortNo) -> bool {
        if !Stack::is_written(shim) {
            return false;
        }
        let room = shim.records() < self.hops;
        self.counts.full += u64::from(!room);
        self.counts.stamped += u64::from(room);
        if room {
            shim.add_hop(self.ports[to.index()]);
        }
        room
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{bench, site};
    use super::*;
    use fanin_packet::{Envelope, PacketId};

    /// A packet crosses switches with telemetry.
    fn cross(switches: &mut [Int], ways: &[u16], mut shim: Option<Shim>) -> (u16, Option<Shim>) {
        let mut envelope = Envelope { frame: 1000, ..Envelope::default() };
        envelope.set_shim(shim.as_ref());
        for (int, way) in switches.iter_mut().zip(ways) {
            let mut p = Arrival { id: PacketId(1), envelope: &mut envelope, from: Some(PortNo(0)), shim: &mut shim };
            assert_eq!(int.on_route(&mut bench(3), &mut p, PortNo(*way), &mut Effects::default()), Verdict::Pass);
        }
        (envelope.frame, shim)
    }

    fn three(hops: u8) -> Vec<Int> {
        let params = IntParams { hops, unaware: Vec::new() };
        (0..3).map(|_| Int::new(&params, &site(&["h0", "s1", "s2"])).expect("it runs")).collect()
    }

    #[test]
    fn a_frame_grows_by_a_record_at_each_switch_until_it_is_full() {
        let mut switches = three(2);
        let (frame, shim) = cross(&mut switches, &[1, 2, 1], Some(Stack::EMPTY.shim()));
        assert_eq!((frame, shim.map(|shim| shim.records())), (1000 + Stack::bytes(2), Some(2)));
        let counts: Vec<_> = switches.iter().map(|int| (int.counts.stamped, int.counts.full)).collect();
        assert_eq!(counts, [(1, 0), (1, 0), (0, 1)]);
    }

    #[test]
    fn paths_differ_by_their_ports() {
        let path = |ways: &[u16]| {
            let (_, shim) = cross(&mut three(5), ways, Some(Stack::EMPTY.shim()));
            Stack::of(&shim.expect("telemetry"), Stack::EMPTY.places()).map(|stack| stack.path)
        };
        assert_eq!(path(&[1, 2, 1]), path(&[1, 2, 1]));
        assert!(path(&[1, 2, 1]) != path(&[1, 1, 1]) && path(&[1, 2, 1]) != path(&[1, 2, 0]));
    }

    #[test]
    fn nothing_is_written_where_nobody_asks_or_it_goes_back() {
        let echo = Stack::EMPTY.echoed().shim();
        for shim in [None, Some(echo), Some(Shim::new(0xA8F0, &[0, 0], 80))] {
            let (frame, after) = cross(&mut three(5), &[1, 1, 1], shim);
            assert_eq!((frame, after), (1000 + shim.map_or(0, |shim| shim.bytes()), shim));
        }
    }

    #[test]
    fn frames_have_as_many_records_as_it_says() {
        assert_eq!([1, 5].map(|hops| three(hops)[0].records()), [1, 5]);
    }

    #[test]
    fn a_switch_that_is_unaware_has_none() {
        let params = IntParams { hops: 5, unaware: vec!["s*".to_string()] };
        assert!(Int::new(&params, &site(&["s1"])).is_none());
    }
}
