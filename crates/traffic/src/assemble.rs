//! Assembly of the traffic from its entries: everything is checked and built before the first flow is taken.

use crate::context::{text, Build, Directory, TrafficContext, HORIZON, LONGEST};
use crate::depend::{Dependencies, Names, Node};
use crate::entry::{build, Built, Entry, TrafficKind};
use fanin_params::{Cx, Problem};
use fanin_units::Span;
use std::collections::BTreeMap;

/// Names of flows that have an id, by entry and index.
type FlowNames = BTreeMap<(u16, u32), Box<str>>;

/// Checked entries, built, with the dependencies between them.
pub(crate) struct Assembled {
    /// Effective name of each entry.
    pub names: Vec<String>,
    /// Generator of each entry, and the index of its transport.
    pub made: Vec<(Built, u16)>,
    pub dependencies: Dependencies,
    pub flow_names: FlowNames,
    pub warnings: Vec<Problem>,
    /// Notes about decisions taken from the content of files.
    pub notes: Vec<String>,
}

/// Assembles the traffic.
///
/// # Errors
/// All problems of all entries, at once.
pub(crate) fn assemble(entries: &[Entry], ctx: &TrafficContext) -> Result<Assembled, Vec<Problem>> {
    let names = effective_names(entries);
    let mut a = Assembly { ctx, cx: Cx::new(), known: Names::default(), flow_names: FlowNames::new(), notes: Vec::new() };
    if entries.len() > usize::from(u16::MAX) {
        a.refuse(format!("has {} entries", entries.len()), format!("at most {}", u16::MAX));
        return Err(a.cx.into_problems());
    }
    let directory = Directory::new(&ctx.hosts);
    let mut spread = Span::ZERO;
    let made: Vec<Option<(Built, u16)>> = (0u16..)
        .zip(entries.iter().zip(&names))
        .map(|(i, (entry, name))| {
            spread = Span::from_ps(spread.ps().saturating_add(a.spread_of(entry).ps()));
            a.entry(i, entry, name, &directory)
        })
        .collect();
    a.name_flows(&made);
    let dependencies = a.dependencies(entries, &names, &made);
    a.check_sums(spread, &made);
    if a.cx.failed() {
        return Err(a.cx.into_problems());
    }
    let made = made.into_iter().flatten().collect();
    Ok(Assembled { names, made, dependencies, flow_names: a.flow_names, warnings: a.cx.into_problems(), notes: a.notes })
}

/// State of the assembly: problems, notes, and the names known so far.
struct Assembly<'a> {
    ctx: &'a TrafficContext<'a>,
    cx: Cx,
    known: Names,
    flow_names: FlowNames,
    notes: Vec<String>,
}

impl Assembly<'_> {
    /// Records an error about the traffic as a whole.
    fn refuse(&mut self, message: String, accepted: String) {
        self.cx.key("traffic", |cx| cx.error(None, message, Some(accepted)).severity);
    }

    /// Time over which an entry's delay and spread can move its starts.
    fn spread_of(&self, entry: &Entry) -> Span {
        let spread = entry.kind.spread(self.ctx.hosts.len() as u64).map_or(Span::ZERO, |(_, spread)| spread);
        Span::from_ps(entry.delay.ps().saturating_add(spread.ps()))
    }

    /// Checks an entry and builds its generator; also finds its transport.
    fn entry(&mut self, i: u16, entry: &Entry, name: &str, directory: &Directory) -> Option<(Built, u16)> {
        let Assembly { ctx, cx, known, notes, .. } = self;
        let ctx = *ctx;
        at(cx, i, |cx| {
            if !known.add(name, Node::Entry(i)) {
                let accepted = Some("names that differ".to_string());
                cx.key("name", |cx| cx.error(Some(&text(name)), NAME_TAKEN, accepted).severity);
            }
            if entry.after.is_empty() && entry.delay != Span::ZERO {
                let (value, accepted) = (text(&entry.delay.to_string()), "`start`, or `after` and `delay`".to_string());
                cx.key("delay", |cx| cx.error(Some(&value), "has no effect without `after`", Some(accepted)).severity);
            }
            let transport = transport(cx, ctx, entry);
            let mut state = Build { ctx, hosts: directory, cx, notes, name, start: entry.start, stop: ctx.duration };
            let made = build(&mut state, &entry.kind);
            let spread = entry.kind.spread(ctx.hosts.len() as u64);
            if let Some((key, spread)) = spread.filter(|(_, spread)| *spread > LONGEST) {
                let accepted = format!("times that make at most {LONGEST}");
                state.error(key, None, format!("spreads the starts over {spread}"), Some(&accepted));
            }
            if let Some(duration) = ctx.duration.filter(|duration| entry.start >= *duration) {
                state.warn("start", Some(entry.start.to_string()), format!("is not before the end of the run, {duration}"));
            }
            Some((made?, transport?))
        })
    }

    /// Collects the ids of flows; each must differ from all other names.
    fn name_flows(&mut self, made: &[Option<(Built, u16)>]) {
        let Assembly { cx, known, flow_names, .. } = self;
        for (i, made) in (0u16..).zip(made) {
            let Some((made, _)) = made else { continue };
            at(cx, i, |cx| {
                for (id, flow) in &made.ids {
                    if !known.add(id, Node::Flow(i, *flow)) {
                        let key = made.file.as_ref().map_or(format!("flows[{flow}].id"), |path| format!("format.path ({path})"));
                        let accepted = Some("ids that differ".to_string());
                        cx.key(&key, |cx| cx.error(Some(&text(id)), NAME_TAKEN, accepted).severity);
                    }
                    flow_names.insert((i, *flow), id.clone());
                }
            });
        }
    }

    /// Builds the dependencies between entries and flows, and reports cycles.
    fn dependencies(&mut self, entries: &[Entry], names: &[String], made: &[Option<(Built, u16)>]) -> Dependencies {
        let mut dependencies = Dependencies::default();
        for (i, (entry, made)) in (0u16..).zip(entries.iter().zip(made)) {
            at(&mut self.cx, i, |cx| {
                dependencies.entry(cx, &self.known, i, &entry.after);
                for wait in made.iter().flat_map(|(made, _)| &made.waits) {
                    dependencies.flows(cx, &self.known, i, wait);
                }
            });
        }
        let stuck = dependencies.circular(entries.len() as u16);
        if let Some(first) = stuck.first() {
            let shown: Vec<String> = stuck.iter().take(8).map(|node| describe(*node, names, &self.flow_names)).collect();
            let more = if stuck.len() > shown.len() { format!(" and {} more", stuck.len() - shown.len()) } else { String::new() };
            let (Node::Entry(i) | Node::Flow(i, _)) = *first;
            let message = format!("makes a dependency cycle: {}{more} could never start", shown.join(", "));
            at(&mut self.cx, i, |cx| cx.key("after", |cx| cx.error(None, message, Some("no cycles".into())).severity));
        }
        dependencies
    }

    /// Checks sums over all entries, unless there are errors already: times within the simulated clock, flows within the limit.
    fn check_sums(&mut self, spread: Span, made: &[Option<(Built, u16)>]) {
        if spread > HORIZON && !self.cx.failed() {
            self.refuse(format!("has delays and intervals of {spread} in all"), format!("at most {HORIZON}"));
        }
        let total: u64 = made.iter().flatten().filter_map(|(made, _)| made.generate.total()).fold(0, u64::saturating_add);
        if total > self.ctx.max_flows && !self.cx.failed() {
            self.refuse(format!("asks for {total} flows in all"), format!("at most {} in a run", self.ctx.max_flows));
        }
    }
}

const NAME_TAKEN: &str = "is also the name of another entry or flow";

fn at<T>(cx: &mut Cx, entry: u16, body: impl FnOnce(&mut Cx) -> T) -> T {
    cx.key("traffic", |cx| cx.index(usize::from(entry), body))
}

fn transport(cx: &mut Cx, ctx: &TrafficContext, entry: &Entry) -> Option<u16> {
    let Some(name) = &entry.transport else { return Some(0) };
    if matches!(entry.kind, TrafficKind::Cbr(_) | TrafficKind::OnOff(_)) {
        cx.key("transport", |cx| {
            cx.error(Some(&text(name)), "has no effect: datagrams use no transport", Some("no `transport` here".into())).severity
        });
        return None;
    }
    let found = ctx.transports.iter().position(|known| known == name).and_then(|i| u16::try_from(i).ok());
    if found.is_none() {
        let known: Vec<&str> = ctx.transports.iter().map(String::as_str).collect();
        cx.key("transport", |cx| cx.unknown(Some(&text(name)), "transport", name, &known));
    }
    found
}

/// Names of the entries: the given ones, or the kind, numbered from the second entry of a kind on.
fn effective_names(entries: &[Entry]) -> Vec<String> {
    let mut of_kind: BTreeMap<&str, u32> = BTreeMap::new();
    let mut name = |entry: &Entry| {
        entry.name.clone().unwrap_or_else(|| {
            let number = of_kind.entry(entry.kind.kind()).or_default();
            *number += 1;
            if *number == 1 {
                entry.kind.kind().to_string()
            } else {
                format!("{}-{number}", entry.kind.kind())
            }
        })
    };
    entries.iter().map(&mut name).collect()
}

/// Describes an entry or flow in words.
pub(crate) fn describe<S: AsRef<str>>(node: Node, names: &[S], flows: &BTreeMap<(u16, u32), Box<str>>) -> String {
    match node {
        Node::Entry(entry) => format!("entry '{}'", names[usize::from(entry)].as_ref()),
        Node::Flow(entry, flow) => match flows.get(&(entry, flow)) {
            Some(id) => format!("flow '{id}'"),
            None => format!("flow {flow} of '{}'", names[usize::from(entry)].as_ref()),
        },
    }
}
