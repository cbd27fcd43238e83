//! Dependencies between flows and entries: completions that release others.

use crate::context::text;
use crate::list::{On, Place, Wait};
use fanin_params::Cx;
use fanin_units::{HostId, Time};
use std::collections::{BTreeMap, VecDeque};

/// Flow or entry whose completion others may wait for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Node {
    /// All flows of an entry, complete when the last one is.
    Entry(u16),
    /// Flow `index` of an entry.
    Flow(u16, u32),
}

/// Flow or entry that waits for completions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    Entry(u16),
    Flow(u16, u32),
}

/// Dependency that releases its targets when enough flows and entries have completed.
#[derive(Clone, Debug)]
pub(crate) struct Trigger {
    one_by_one: bool,
    missing: u32,
    targets: Vec<Target>,
    released: usize,
    /// Flows and entries that are waited for.
    on: Vec<Node>,
    /// Hosts that know of the completions so far, and the time of the latest.
    known: Known,
    latest: Time,
}

/// Knowledge of completions: for each host whose application saw one, the time of the latest. No other host knows of them
/// yet.
pub(crate) type Known = BTreeMap<HostId, Time>;

/// All dependencies of a scenario's traffic.
#[derive(Default)]
pub(crate) struct Dependencies {
    triggers: Vec<Trigger>,
    of: BTreeMap<Node, Vec<u32>>,
}

/// Names of flows and entries that can be waited for.
#[derive(Default)]
pub(crate) struct Names {
    by_name: BTreeMap<Box<str>, Node>,
}

impl Names {
    /// Adds a name; false if it is taken.
    pub fn add(&mut self, name: &str, node: Node) -> bool {
        self.by_name.insert(name.into(), node).is_none()
    }

    pub fn get(&self, name: &str) -> Option<Node> {
        self.by_name.get(name).copied()
    }
}

impl Dependencies {
    /// Makes entry `entry` begin after `names`.
    pub fn entry(&mut self, cx: &mut Cx, known: &Names, entry: u16, names: &[String]) {
        let on = cx.key("after", |cx| resolve(cx, known, names, Some(Node::Entry(entry))));
        if !names.is_empty() {
            self.push(Trigger {
                one_by_one: false,
                missing: 0,
                targets: vec![Target::Entry(entry)],
                released: 0,
                on,
                known: Known::new(),
                latest: Time::ZERO,
            });
        }
    }

    /// Makes flows of `entry` wait as `wait` says.
    pub fn flows(&mut self, cx: &mut Cx, known: &Names, entry: u16, wait: &Wait) {
        // A flow can neither wait for itself nor for its entry, but for the other flows of it.
        let own = |wait: &Wait| wait.targets.first().map(|flow| Node::Flow(entry, *flow));
        let on = match &wait.on {
            On::Names(names) => match &wait.place {
                Place::Key(key) => cx.key(key, |cx| resolve(cx, known, names, own(wait))),
                Place::Line(path, line) => cx.key(&format!("format.path ({path})"), |cx| {
                    let before = cx.count();
                    let nodes = resolve(cx, known, names, own(wait));
                    cx.since(before).iter_mut().for_each(|problem| problem.line = Some(*line));
                    nodes
                }),
            },
            On::Flows(flows) => flows.iter().map(|flow| Node::Flow(entry, *flow)).collect(),
        };
        let targets = wait.targets.iter().map(|flow| Target::Flow(entry, *flow)).collect();
        let (known, latest) = (Known::new(), Time::ZERO);
        self.push(Trigger { one_by_one: wait.one_by_one, missing: 0, targets, released: 0, on, known, latest });
    }

    fn push(&mut self, mut trigger: Trigger) {
        trigger.missing = trigger.on.len() as u32;
        let number = self.triggers.len() as u32;
        for node in &trigger.on {
            self.of.entry(*node).or_default().push(number);
        }
        self.triggers.push(trigger);
    }

    /// True if something waits for `node`.
    pub fn is_awaited(&self, node: Node) -> bool {
        self.of.contains_key(&node)
    }

    /// True if any dependency releases its targets one by one, in the order of completions.
    pub fn any_one_by_one(&self) -> bool {
        self.triggers.iter().any(|trigger| trigger.one_by_one)
    }

    /// Completes `node` at a time, whose completion the hosts of `known` know of; returns the targets that this releases, each
    /// with the hosts that know of the completions behind it, and the time of the latest of these.
    pub fn complete(&mut self, node: Node, known: &Known, at: Time) -> Vec<(Target, Known, Time)> {
        let mut released = Vec::new();
        for number in self.of.remove(&node).unwrap_or_default() {
            let trigger = &mut self.triggers[number as usize];
            trigger.missing = trigger.missing.saturating_sub(1);
            if trigger.one_by_one {
                released.extend(trigger.targets.get(trigger.released).map(|target| (*target, known.clone(), at)));
                trigger.released += 1;
                continue;
            }
            for (host, since) in known {
                let latest = trigger.known.entry(*host).or_default();
                *latest = *since.max(latest);
            }
            trigger.latest = trigger.latest.max(at);
            if trigger.missing == 0 {
                released.extend(trigger.targets.drain(..).map(|target| (target, trigger.known.clone(), trigger.latest)));
            }
        }
        released
    }

    /// Unreleased targets, each with the nodes that it still waits for.
    pub fn waiting(&self) -> impl Iterator<Item = (Target, Vec<Node>)> + '_ {
        let open = |number: u32, node: &Node| self.of.get(node).is_some_and(|triggers| triggers.contains(&number));
        (0u32..).zip(&self.triggers).flat_map(move |(number, trigger)| {
            let skip = if trigger.one_by_one { trigger.released.min(trigger.targets.len()) } else { 0 };
            let missing: Vec<Node> = trigger.on.iter().copied().filter(|node| open(number, node)).collect();
            trigger.targets[skip..].iter().map(move |target| (*target, missing.clone()))
        })
    }

    /// Finds targets on or behind a dependency cycle, which could never be released.
    ///
    /// An entry is complete when its flows are; `flows_of` says which of its flows wait for something of their own.
    pub fn circular(&self, entries: u16) -> Vec<Node> {
        // Steps are: an entry's beginning, its flows that take part in any dependency, and its completion.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        enum Step {
            Begin(u16),
            Flow(u16, u32),
            Done(u16),
        }
        let step_of = |node: Node| match node {
            Node::Entry(entry) => Step::Done(entry),
            Node::Flow(entry, flow) => Step::Flow(entry, flow),
        };
        let mut next: BTreeMap<Step, Vec<Step>> = BTreeMap::new();
        let mut needs: BTreeMap<Step, u32> = BTreeMap::new();
        let mut edge = |from: Step, to: Step| {
            next.entry(from).or_default().push(to);
            needs.entry(from).or_default();
            *needs.entry(to).or_default() += 1;
        };
        for entry in 0..entries {
            edge(Step::Begin(entry), Step::Done(entry));
        }
        let mut flows: Vec<(u16, u32)> = Vec::new();
        for trigger in &self.triggers {
            for node in &trigger.on {
                if let Node::Flow(entry, flow) = node {
                    flows.push((*entry, *flow));
                }
            }
            for target in &trigger.targets {
                if let Target::Flow(entry, flow) = target {
                    flows.push((*entry, *flow));
                }
            }
        }
        flows.sort_unstable();
        flows.dedup();
        for (entry, flow) in flows {
            edge(Step::Begin(entry), Step::Flow(entry, flow));
            edge(Step::Flow(entry, flow), Step::Done(entry));
        }
        for trigger in &self.triggers {
            for (position, target) in trigger.targets.iter().enumerate() {
                let to = match target {
                    Target::Entry(entry) => Step::Begin(*entry),
                    Target::Flow(entry, flow) => Step::Flow(*entry, *flow),
                };
                // One by one, target k needs any k + 1 completions; at worst the first ones of the file.
                let on = if trigger.one_by_one { &trigger.on[..trigger.on.len().min(position + 1)] } else { &trigger.on[..] };
                for node in on {
                    edge(step_of(*node), to);
                }
            }
        }
        let mut free: VecDeque<Step> = needs.iter().filter(|(_, needed)| **needed == 0).map(|(step, _)| *step).collect();
        while let Some(step) = free.pop_front() {
            needs.remove(&step);
            for to in next.remove(&step).unwrap_or_default() {
                if let Some(needed) = needs.get_mut(&to) {
                    *needed -= 1;
                    if *needed == 0 {
                        free.push_back(to);
                    }
                }
            }
        }
        let stuck = needs.keys().filter_map(|step| match step {
            Step::Begin(entry) => Some(Node::Entry(*entry)),
            Step::Flow(entry, flow) => Some(Node::Flow(*entry, *flow)),
            Step::Done(_) => None,
        });
        stuck.collect()
    }
}

/// Finds the nodes called `names`; suggestions for unknown names leave out `own`, the node that would wait.
fn resolve(cx: &mut Cx, known: &Names, names: &[String], own: Option<Node>) -> Vec<Node> {
    let mut nodes = Vec::new();
    for (i, name) in names.iter().enumerate() {
        match known.get(name) {
            Some(node) if nodes.contains(&node) => {
                cx.index(i, |cx| cx.error(Some(&text(name)), "is listed twice", Some("each name once".to_string())).severity);
            }
            Some(node) => nodes.push(node),
            None => {
                let offered = |node: &Node| match own {
                    Some(Node::Flow(entry, _)) => Some(*node) != own && *node != Node::Entry(entry),
                    Some(Node::Entry(entry)) => !matches!(node, Node::Entry(e) | Node::Flow(e, _) if *e == entry),
                    None => true,
                };
                let others = known.by_name.iter().filter(|(_, node)| offered(node));
                let all: Vec<&str> = others.map(|(key, _)| &**key).take(1000).collect();
                if all.is_empty() {
                    let message = "is not a known flow id or entry name";
                    cx.index(i, |cx| cx.error(Some(&text(name)), message, Some("nothing: there is no other".into())).severity);
                    continue;
                }
                cx.index(i, |cx| cx.unknown(Some(&text(name)), "flow id or entry name", name, &all));
                if let Some(problem) = cx.last() {
                    if all.len() > 20 {
                        problem.accepted = Some(format!("one of {} names, such as {}", known.by_name.len(), all[..5].join(", ")));
                    }
                }
            }
        }
    }
    nodes
}
