//! Scenarios as text, and networks to run them on.

use fanin_params::{Cx, Node, Param, Value};
use fanin_traffic::{Entry, FlowSpec, HostInfo, Traffic, TrafficContext, MAX_FLOWS};
use fanin_units::{BitRate, Time};
use std::path::Path;

pub fn node(value: toml::Value) -> Node {
    match value {
        toml::Value::Boolean(b) => Value::Bool(b),
        toml::Value::Integer(n) => Value::Int(n),
        toml::Value::Float(x) => Value::Float(x),
        toml::Value::String(s) => Value::Text(s),
        toml::Value::Array(items) => Value::List(items.into_iter().map(node).collect()),
        toml::Value::Table(table) => Value::Table(table.into_iter().map(|(k, v)| (k, node(v))).collect()),
        toml::Value::Datetime(_) => panic!("no dates here"),
    }
    .into()
}

/// `[[traffic]]` tables.
pub fn parse(text: &str) -> Result<Vec<Entry>, Vec<String>> {
    let table: toml::Table = text.parse().expect("sound TOML");
    let list = node(table["traffic"].clone());
    let mut cx = Cx::new();
    let entries = cx.key("traffic", |cx| Vec::<Entry>::parse(&list, cx));
    entries.ok_or_else(|| cx.into_problems().iter().map(ToString::to_string).collect())
}

/// `racks` racks of `per_rack` hosts `h0`, `h1`, … at 10 Gb/s.
pub struct Net {
    pub names: Vec<String>,
    pub per_rack: u32,
    pub transports: Vec<String>,
    pub seed: u64,
    pub duration: Option<Time>,
    pub core: Option<BitRate>,
    pub max_flows: u64,
    pub dir: std::path::PathBuf,
}

pub fn net(racks: u32, per_rack: u32) -> Net {
    Net {
        names: (0..racks * per_rack).map(|i| format!("h{i}")).collect(),
        per_rack,
        transports: vec!["dctcp".into(), "cubic".into()],
        seed: 1,
        duration: None,
        core: (racks > 1).then(|| BitRate::from_gbps(u64::from(racks) * 40)),
        max_flows: MAX_FLOWS,
        dir: Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data"),
    }
}

impl Net {
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    pub fn until_ms(mut self, ms: u64) -> Self {
        self.duration = Some(Time::ZERO + fanin_units::Span::from_ms(ms));
        self
    }

    pub fn dir(mut self, dir: &Path) -> Self {
        self.dir = dir.to_path_buf();
        self
    }

    pub fn context(&self) -> TrafficContext<'_> {
        let rate = BitRate::from_gbps(10);
        let rack = |i: usize| i as u32 / self.per_rack;
        TrafficContext {
            hosts: self.names.iter().enumerate().map(|(i, name)| HostInfo { name, rate, rack: rack(i) }).collect(),
            transports: &self.transports,
            core_rate: self.core,
            seed: self.seed,
            duration: self.duration,
            base_dir: &self.dir,
            max_flows: self.max_flows,
        }
    }

    pub fn try_build(&self, text: &str) -> Result<Traffic, Vec<String>> {
        Traffic::new(&parse(text)?, &self.context()).map_err(|problems| problems.iter().map(ToString::to_string).collect())
    }

    pub fn build(&self, text: &str) -> Traffic {
        self.try_build(text).unwrap_or_else(|problems| panic!("{problems:#?}"))
    }

    /// Every flow, where none waits for another.
    pub fn flows(&self, text: &str) -> Vec<FlowSpec> {
        drain(&mut self.build(text))
    }

    pub fn problems(&self, text: &str) -> Vec<String> {
        self.try_build(text).err().unwrap_or_default()
    }
}

/// Pops what is ready, checking the order.
pub fn drain(traffic: &mut Traffic) -> Vec<FlowSpec> {
    let mut flows: Vec<FlowSpec> = Vec::new();
    while let Some(start) = traffic.next_start() {
        let flow = traffic.pop().expect("announced");
        assert_eq!(flow.start, start);
        if let Some(last) = flows.last() {
            let key = |f: &FlowSpec| (f.start, f.entry, f.index);
            assert!(key(last) < key(&flow), "{last:?} then {flow:?}");
        }
        flows.push(flow);
    }
    assert!(traffic.pop().is_none());
    flows
}

/// Runs on a network that completes each flow `latency` after its start, in order of completion.
pub fn run(traffic: &mut Traffic, latency: fanin_units::Span) -> Vec<FlowSpec> {
    let mut open: Vec<FlowSpec> = Vec::new();
    let mut all: Vec<FlowSpec> = Vec::new();
    loop {
        let finish = open.first().map(|flow| flow.start + latency);
        match (traffic.next_start(), finish) {
            (Some(start), finish) if finish.is_none_or(|finish| start <= finish) => {
                let flow = traffic.pop().expect("announced");
                assert!(all.last().is_none_or(|last| last.start <= flow.start), "starts never fall");
                all.push(flow.clone());
                open.push(flow);
            }
            (_, Some(finish)) => {
                let flow = open.remove(0);
                traffic.on_complete(flow.completion(finish));
            }
            (None, None) => return all,
            (Some(_), None) => unreachable!("taken by the first arm"),
        }
    }
}

#[track_caller]
pub fn assert_problem(problems: &[String], expected: &str) {
    assert!(problems.iter().any(|problem| problem.contains(expected)), "expected: {expected}\nfound: {problems:#?}");
}
