//! Context of traffic: the properties of network and run that entries use, and names of hosts.

use fanin_params::{Cx, Node, Problem, Severity, Value};
use fanin_units::{BitRate, HostId, Span, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// Properties of a host that traffic uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostInfo<'a> {
    /// Unique name of the host.
    pub name: &'a str,
    /// Rate of the host's link in one direction.
    pub rate: BitRate,
    /// Index of the host's rack (its ToR switch).
    pub rack: u32,
}

/// Properties of network and run that traffic uses.
#[derive(Clone, Debug)]
pub struct TrafficContext<'a> {
    /// Hosts, indexed by [`HostId`].
    pub hosts: Vec<HostInfo<'a>>,
    /// Names of the scenario's transports, indexed by [`crate::FlowSpec::transport`].
    pub transports: &'a [String],
    /// Sum of the rates of all links from ToRs into the fabric, in one direction: the capacity of `load_of = "core"`. `None`
    /// if there is no such fabric (a single switch).
    pub core_rate: Option<BitRate>,
    /// Seed of the run.
    pub seed: u64,
    /// End of the run, at and after which no generated flow starts. `None`: the run ends when the traffic does.
    pub duration: Option<Time>,
    /// Folder in which relative paths start.
    pub base_dir: &'a Path,
    /// Largest number of flows ([`MAX_FLOWS`] unless there is a reason).
    pub max_flows: u64,
}

/// Default limit on the number of flows: each costs a row in the results.
pub const MAX_FLOWS: u64 = 50_000_000;

/// Longest time that a scenario may state: 10 days. The simulated clock itself overflows after 213.
pub const LONGEST: Span = Span::from_s(864_000);

/// Latest instant that a scenario may state.
pub const LATEST: Time = Time::from_ps(LONGEST.ps());

/// Largest sum of the times of all entries, so that no start exceeds the simulated clock: 100 days.
pub(crate) const HORIZON: Span = Span::from_s(8_640_000);

/// Host names, for readers that outlive the context.
#[derive(Debug)]
pub(crate) struct HostNames {
    by_name: BTreeMap<Box<str>, HostId>,
    numeric: bool,
}

impl HostNames {
    pub fn new<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let by_name: BTreeMap<Box<str>, HostId> = names.zip(0u32..).map(|(name, i)| (name.into(), HostId(i))).collect();
        let numeric = by_name.keys().any(|name| name.bytes().all(|b| b.is_ascii_digit()));
        HostNames { by_name, numeric }
    }

    pub fn find(&self, name: &str) -> Option<HostId> {
        self.by_name.get(name).copied()
    }

    /// Finds a host by name, or by index if no host's name is a number: HPCC and htsim files use either.
    pub fn find_number(&self, text: &str) -> Option<HostId> {
        self.find(text).or_else(|| {
            let index: u32 = text.parse().ok()?;
            (!self.numeric && (index as usize) < self.by_name.len()).then_some(HostId(index))
        })
    }

    pub fn len(&self) -> usize {
        self.by_name.len()
    }
}

/// Index of the hosts by name and rack.
pub(crate) struct Directory<'a> {
    hosts: &'a [HostInfo<'a>],
    pub by_name: Arc<HostNames>,
}

impl<'a> Directory<'a> {
    pub fn new(hosts: &'a [HostInfo<'a>]) -> Self {
        Directory { hosts, by_name: Arc::new(HostNames::new(hosts.iter().map(|host| host.name))) }
    }

    pub fn find(&self, name: &str) -> Option<HostId> {
        self.by_name.find(name)
    }

    pub fn len(&self) -> usize {
        self.hosts.len()
    }

    pub fn info(&self, host: HostId) -> &HostInfo<'a> {
        &self.hosts[host.index()]
    }

    pub fn names(&self) -> Vec<&'a str> {
        self.hosts.iter().map(|host| host.name).collect()
    }

    /// Describes the hosts for messages: the first names and their number.
    pub fn summary(&self) -> String {
        let first: Vec<&str> = self.hosts.iter().take(4).map(|host| host.name).collect();
        match self.hosts.len() {
            n if n <= 4 => first.join(", "),
            n => format!("{}, … {} ({n} hosts)", first.join(", "), self.hosts[n - 1].name),
        }
    }
}

/// State of building one entry: the context, and the collector of problems.
pub(crate) struct Build<'a> {
    pub ctx: &'a TrafficContext<'a>,
    pub hosts: &'a Directory<'a>,
    pub cx: &'a mut Cx,
    pub notes: &'a mut Vec<String>,
    /// Effective name of the entry, which seeds its random streams.
    pub name: &'a str,
    /// Earliest time at which the entry begins.
    pub start: Time,
    /// End of the run: no generated flow starts at or after it.
    pub stop: Option<Time>,
}

impl Build<'_> {
    /// Entity number of a random stream of this entry and a host, hashed from both names (FNV-1a 64).
    pub fn entity(&self, of: &str) -> u64 {
        self.name
            .bytes()
            .chain([0xff])
            .chain(of.bytes())
            .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
    }

    pub fn host_entity(&self, host: HostId) -> u64 {
        self.entity(self.hosts.info(host).name)
    }

    /// End of an open-ended entry: its `stop` or the end of the run, whichever is earlier; `Some(None)` if only a count
    /// bounds it. Reports an error if nothing does; `what` names the thing that would never end, `key` the key that would
    /// bound it.
    pub fn end(&mut self, stop: Option<Time>, bounded: bool, [what, key]: [&str; 2]) -> Option<Option<Time>> {
        if let Some(early) = stop.filter(|stop| *stop <= self.start) {
            let accepted = format!("after {}", self.start);
            self.error("stop", Some(early.to_string()), "is not after the entry's `start`", Some(&accepted));
            return None;
        }
        let end = stop.into_iter().chain(self.stop).min();
        if end.is_none() && !bounded {
            let message = format!("is missing: the run has no duration, so {what} would never end");
            self.error("stop", None, message, Some(&format!("`stop`, `{key}`, or a duration of the run")));
            return None;
        }
        Some(end)
    }

    /// Records an error at `key` of the entry.
    pub fn error(
        &mut self,
        key: &str,
        value: Option<String>,
        message: impl Into<String>,
        accepted: Option<&str>,
    ) -> &mut Problem {
        self.report(Severity::Error, key, value, message.into(), accepted)
    }

    /// Records that the setting `key` of the entry has no effect.
    pub fn unused(&mut self, key: &str, value: Option<String>, message: impl Into<String>, accepted: &str) {
        self.report(Severity::Unused, key, value, message.into(), Some(accepted));
    }

    /// Records a warning at `key` of the entry.
    pub fn warn(&mut self, key: &str, value: Option<String>, message: impl Into<String>) -> &mut Problem {
        self.report(Severity::Warning, key, value, message.into(), None)
    }

    fn report(
        &mut self,
        severity: Severity,
        key: &str,
        value: Option<String>,
        message: String,
        accepted: Option<&str>,
    ) -> &mut Problem {
        let accepted = accepted.map(str::to_string);
        self.cx.key(key, |cx| {
            let problem = match severity {
                Severity::Error => cx.error(None, message, accepted),
                Severity::Warning => cx.warn(None, message, accepted),
                Severity::Unused => cx.unused(message, accepted),
            };
            problem.value = value;
        });
        self.cx.last().expect("just recorded")
    }

    /// Finds the host called `name`, or reports that there is none.
    pub fn host(&mut self, key: &str, name: &str) -> Option<HostId> {
        let found = self.hosts.find(name);
        if found.is_none() {
            self.unknown_host(key, name);
        }
        found
    }

    pub fn unknown_host(&mut self, key: &str, name: &str) {
        let (known, summary) = (self.hosts.names(), self.hosts.summary());
        let node = text(name);
        self.cx.key(key, |cx| cx.unknown(Some(&node), "host", name, &known));
        self.cx.last().expect("just recorded").accepted = Some(summary);
    }

    /// Resolves host patterns to hosts, ascending: `all`, `rack:2`, a name, `h0..h7` (both included), or any of these after
    /// `!`, which excludes.
    pub fn host_set(&mut self, key: &str, patterns: &[String]) -> Option<Vec<HostId>> {
        let mut set = BTreeSet::new();
        let mut sound = true;
        if patterns.first().is_some_and(|first| first.starts_with('!')) {
            set.extend((0..self.hosts.len() as u32).map(HostId));
        }
        for (i, pattern) in patterns.iter().enumerate() {
            let key = format!("{key}[{i}]");
            let (remove, rest) = pattern.strip_prefix('!').map_or((false, pattern.as_str()), |rest| (true, rest));
            match self.pattern(&key, rest) {
                Some(named) if remove => named.iter().for_each(|host| {
                    set.remove(host);
                }),
                Some(named) => set.extend(named),
                None => sound = false,
            }
        }
        if sound && set.is_empty() {
            self.error(
                key,
                Some(format!("{patterns:?}")),
                "names no host",
                Some("\"all\", \"rack:N\", a host, \"FIRST..LAST\"; \"!\" takes away"),
            );
            return None;
        }
        sound.then(|| set.into_iter().collect())
    }

    fn pattern(&mut self, key: &str, pattern: &str) -> Option<Vec<HostId>> {
        if let Some(host) = self.hosts.find(pattern) {
            return Some(vec![host]);
        }
        if pattern == "all" {
            return Some((0..self.hosts.len() as u32).map(HostId).collect());
        }
        if let Some(number) = pattern.strip_prefix("rack:") {
            let rack: Option<u32> = number.parse().ok();
            let in_rack: Vec<HostId> =
                (0..self.hosts.len() as u32).map(HostId).filter(|host| Some(self.hosts.info(*host).rack) == rack).collect();
            if in_rack.is_empty() {
                let last = self.ctx.hosts.iter().map(|host| host.rack).max().unwrap_or(0);
                self.error(
                    key,
                    Some(format!("\"{pattern}\"")),
                    "is a rack that does not exist",
                    Some(&format!("rack:0 to rack:{last}")),
                );
                return None;
            }
            return Some(in_rack);
        }
        if let Some((first, last)) = pattern.split_once("..") {
            let (first, last) = (self.host(key, first), self.host(key, last));
            let (first, last) = (first?, last?);
            if first > last {
                self.error(
                    key,
                    Some(format!("\"{pattern}\"")),
                    "runs backwards",
                    Some("FIRST..LAST in the order of the topology"),
                );
                return None;
            }
            return Some((first.0..=last.0).map(HostId).collect());
        }
        self.unknown_host(key, pattern);
        None
    }

    /// True if the entry's `flows` exceed the limit of the run, which is reported.
    pub fn too_many(&mut self, key: &str, flows: f64) -> bool {
        let limit = self.ctx.max_flows;
        let excess = flows > limit as f64;
        if excess {
            let value = if flows < 1e15 { format!("{}", flows as u64) } else { format!("{flows:.3e}") };
            let problem = self.error(key, Some(value), "flows exceed the limit", Some(&format!("at most {limit} in a run")));
            problem.suggestion =
                Some("ask for fewer flows, a shorter run or a lower load, or raise the limit on flows".to_string());
        }
        excess
    }

    /// Resolves source and destination; reports hosts that do not exist or are equal.
    pub fn ends(&mut self, prefix: &str, src: &str, dst: &str) -> Option<(HostId, HostId)> {
        let (from, to) = (self.host(&format!("{prefix}src"), src), self.host(&format!("{prefix}dst"), dst));
        let (from, to) = (from?, to?);
        if from == to {
            self.error(&format!("{prefix}dst"), Some(format!("\"{dst}\"")), "is the source itself", Some("another host"));
            return None;
        }
        Some((from, to))
    }

    /// Offset from the start of the entry at which the run ends.
    pub fn too_late(&self) -> Span {
        self.ctx.duration.map_or(Span::MAX, |duration| duration.since(self.start))
    }

    /// Draws a start delay, uniform in [0, `jitter`), from `stream`.
    pub fn jitter(stream: &mut fanin_units::Stream, jitter: Span) -> Span {
        if jitter == Span::ZERO {
            jitter
        } else {
            Span::from_ps(stream.below(jitter.ps()))
        }
    }
}

pub(crate) fn text(value: &str) -> Node {
    Value::Text(value.to_string()).into()
}
