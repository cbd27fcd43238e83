//! Datagram sources: constant bit rate and on–off.

use crate::context::{Build, LATEST, LONGEST};
use crate::generate::{Draft, Generate};
use crate::spec::{DatagramSpec, FlowKind, RateCounts};
use fanin_params::params;
use fanin_units::{BitRate, Bytes, Span, Time};

params! {
    /// Datagrams at a constant rate, without any congestion control.
    pub struct Cbr {
        /// Sending host.
        pub src: String;
        /// Receiving host.
        pub dst: String;
        /// Sending rate.
        pub rate: BitRate, in BitRate(1)..;
        /// Bytes that `rate` counts.
        pub counts: RateCounts = RateCounts::Payload;
        /// Application bytes of a datagram. Source: RFC 791 (20 B of header) and RFC 768 (8 B), out of 1500 B; over IPv6
        /// 1452B fill a frame (RFC 8200, 40 B).
        pub packet: Bytes = Bytes(1472), in Bytes(1)..=Bytes(65_507);
        /// Application bytes in total; if absent, the source sends until `stop`.
        pub size: Option<Bytes>, in Bytes(1)..;
        /// End of the source: no datagram leaves at or after this instant; if absent, the end of the run.
        pub stop: Option<Time>, in Time::ZERO..=LATEST;
    }
}

params! {
    /// Datagrams at a constant rate during on periods, none during off periods; the first period is on.
    pub struct OnOff {
        /// Sending host.
        pub src: String;
        /// Receiving host.
        pub dst: String;
        /// Rate during on periods; the mean rate is rate · on / (on + off).
        pub rate: BitRate, in BitRate(1)..;
        /// Bytes that `rate` counts.
        pub counts: RateCounts = RateCounts::Payload;
        /// Length of on periods, or their mean.
        pub on: Span, in Span::from_ns(100)..=LONGEST;
        /// Length of off periods, or their mean.
        pub off: Span, in Span::from_ns(100)..=LONGEST;
        /// Exponentially distributed periods; if false, constant ones.
        pub exponential: bool = false;
        /// Application bytes of a datagram. Source: RFC 791 (20 B of header) and RFC 768 (8 B), out of 1500 B; over IPv6
        /// 1452B fill a frame (RFC 8200, 40 B).
        pub packet: Bytes = Bytes(1472), in Bytes(1)..=Bytes(65_507);
        /// Application bytes in total; if absent, the source sends until `stop`.
        pub size: Option<Bytes>, in Bytes(1)..;
        /// End of the source: no datagram leaves at or after this instant; if absent, the end of the run.
        pub stop: Option<Time>, in Time::ZERO..=LATEST;
    }
}

/// Generator of a single datagram flow.
pub(crate) struct OneFlow {
    draft: Draft,
    until: Time,
    begun: bool,
    given: bool,
}

struct Ends<'a> {
    src: &'a str,
    dst: &'a str,
    size: Option<Bytes>,
    stop: Option<Time>,
}

impl OneFlow {
    pub fn cbr(build: &mut Build, params: &Cbr) -> Option<OneFlow> {
        let spec = DatagramSpec {
            rate: params.rate,
            counts: params.counts,
            packet: params.packet,
            on: None,
            off: None,
            exponential: false,
            until: Time::MAX,
            entity: build.entity(&params.src),
        };
        Self::build(build, &Ends { src: &params.src, dst: &params.dst, size: params.size, stop: params.stop }, spec)
    }

    pub fn on_off(build: &mut Build, params: &OnOff) -> Option<OneFlow> {
        let spec = DatagramSpec {
            rate: params.rate,
            counts: params.counts,
            packet: params.packet,
            on: Some(params.on),
            off: Some(params.off),
            exponential: params.exponential,
            until: Time::MAX,
            entity: build.entity(&params.src),
        };
        Self::build(build, &Ends { src: &params.src, dst: &params.dst, size: params.size, stop: params.stop }, spec)
    }

    fn build(build: &mut Build, ends: &Ends, mut spec: DatagramSpec) -> Option<OneFlow> {
        let (src, dst) = build.ends("", ends.src, ends.dst)?;
        let link = build.hosts.info(src).rate;
        if spec.rate > link {
            build.warn("rate", Some(spec.rate.to_string()), format!("is more than the {link} of the link of \"{}\"", ends.src));
        }
        let until = build.end(ends.stop, ends.size.is_some(), ["this", "size"])?;
        if let (None, Some(size)) = (until, ends.size) {
            let (on, off) = (spec.on.map_or(1, Span::ps), spec.off.map_or(0, Span::ps));
            let lasts = u128::from(spec.rate.time_to_send(size).ps()) * (u128::from(on) + u128::from(off)) / u128::from(on);
            if lasts > u128::from(LONGEST.ps()) {
                let accepted = format!("what takes at most {LONGEST}, or a `stop`");
                build.error("size", Some(size.to_string()), format!("takes too long at {}", spec.rate), Some(&accepted));
                return None;
            }
        }
        let until = until.unwrap_or(Time::MAX);
        spec.until = until;
        let draft = Draft {
            kind: FlowKind::Datagrams(spec),
            ..Draft::transfer(src, dst, ends.size.map_or(0, Bytes::get), Time::ZERO, 0)
        };
        Some(OneFlow { draft, until, begun: false, given: false })
    }
}

impl Generate for OneFlow {
    fn begin(&mut self, at: Time) {
        self.draft.start = at;
        self.begun = true;
        self.given = at >= self.until;
    }

    fn next_start(&self) -> Option<Time> {
        (self.begun && !self.given).then_some(self.draft.start)
    }

    fn pop(&mut self) -> Option<Draft> {
        self.next_start()?;
        self.given = true;
        Some(self.draft.clone())
    }

    fn exhausted(&self) -> bool {
        self.given
    }

    fn total(&self) -> Option<u64> {
        Some(1)
    }
}
