//! The settings of all ports and switches as the checks need them: what is in use, and where it stands in the document.

use super::Network;
use crate::exceptions::Exceptions;
use fanin_params::Cx;
use fanin_switch::{Buffer, Except, Marking, Mechanisms, Origins, PortSettings, Scheduling, Setting, Switch};
use fanin_units::{Amount, Bytes, LinkId};
use std::collections::BTreeSet;

/// Bytes of a full Ethernet frame.
pub(super) const FRAME: u64 = 1518;

/// Where a port and its switch have their settings from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Kind {
    pub port: Origins,
    pub mechanisms: Option<usize>,
}

/// The switches' settings and their exceptions.
pub(super) struct Settings<'a> {
    pub switch: &'a Switch,
    pub exceptions: &'a Exceptions,
    /// The kinds of ports that there are, each once.
    kinds: Vec<Kind>,
    /// Keys of the switches' own settings that hold nowhere, since entries replace them at every port or switch.
    pub replaced: Vec<&'static str>,
}

impl<'a> Settings<'a> {
    /// Without the network the entries are taken to hold somewhere, each alone, and the switches' own settings elsewhere; so
    /// are entries that by mistake hold nowhere.
    pub fn of(switch: &'a Switch, exceptions: &'a Exceptions, network: Option<&Network>) -> Self {
        let mut replaced = Vec::new();
        let kinds = match network {
            _ if switch.except.is_empty() => vec![Kind::default()],
            Some(network) => {
                let ports = network
                    .switch_ports()
                    .map(|(link, port)| Kind { port: exceptions.port(link), mechanisms: exceptions.switch(port.from) });
                let mut kinds = ports.collect::<BTreeSet<Kind>>();
                let own = [Setting::Buffer, Setting::Marking, Setting::Scheduling];
                replaced.extend(own.into_iter().filter(|s| kinds.iter().all(|k| k.port.of(*s).is_some())).map(Setting::key));
                replaced.extend(kinds.iter().all(|k| k.mechanisms.is_some()).then_some("mechanisms"));
                let holds = |i: usize| {
                    let from = |kind: &Kind, setting| kind.port.of(setting) == Some(i);
                    kinds
                        .iter()
                        .any(|kind| kind.mechanisms == Some(i) || Setting::ALL.into_iter().any(|setting| from(kind, setting)))
                };
                let nowhere: Vec<Kind> = switch.except.iter().enumerate().filter(|(i, _)| !holds(*i)).map(alone).collect();
                kinds.extend(nowhere);
                kinds.into_iter().collect()
            }
            None => std::iter::once(Kind::default()).chain(switch.except.iter().enumerate().map(alone)).collect(),
        };
        Settings { switch, exceptions, kinds, replaced }
    }

    /// The settings of a port.
    pub fn port(&self, link: LinkId) -> PortSettings<'a> {
        self.switch.port(self.exceptions.port(link))
    }

    /// Where ports have their settings from, each combination once.
    pub fn origins(&self) -> BTreeSet<Origins> {
        self.kinds.iter().map(|kind| kind.port).collect()
    }

    /// The entries that a setting comes from, `None` for the switch's own, each with a port that has it from there.
    fn by(&self, setting: Setting) -> Vec<(Option<usize>, PortSettings<'a>)> {
        let mut found: Vec<(Option<usize>, PortSettings<'a>)> = Vec::new();
        for origins in self.origins() {
            let entry = origins.of(setting);
            if !found.iter().any(|(known, _)| *known == entry) {
                found.push((entry, self.switch.port(origins)));
            }
        }
        found
    }

    /// The ways of marking in use, with the places that they come from.
    pub fn markings(&self) -> impl Iterator<Item = (MarkingAt, &'a Marking)> + use<'_, 'a> {
        let classes = self.schedulings().any(|(_, scheduling)| scheduling.classes() > 1);
        let by_class = self.switch.class_marking.iter().enumerate().filter(move |_| classes);
        let of_ports = self.by(Setting::Marking).into_iter().filter(|(entry, _)| self.marks_ports(*entry));
        let of_ports = of_ports.map(|(entry, port)| (MarkingAt::Ports(entry), port.marking));
        of_ports.chain(by_class.map(|(i, entry)| (MarkingAt::Classes(i), &entry.marking)))
    }

    /// Whether some port with the marking of this entry marks by it: not where `class_marking` has an entry for each of its queues.
    fn marks_ports(&self, entry: Option<usize>) -> bool {
        let here = |origins: &Origins| origins.of(Setting::Marking) == entry;
        self.origins().into_iter().filter(here).any(|origins| self.switch.port(origins).marks_as_a_port())
    }

    /// The ways of marking of whole ports by which no port marks, since each of their queues has an entry of `class_marking`.
    pub fn unused_markings(&self) -> Vec<(Option<usize>, &'a Marking)> {
        let all = self.by(Setting::Marking).into_iter();
        all.filter(|(entry, _)| !self.marks_ports(*entry)).map(|(entry, port)| (entry, port.marking)).collect()
    }

    /// Whether packets of a class are marked at some port.
    pub fn marks_class(&self, class: u8) -> bool {
        self.origins().into_iter().any(|origins| self.switch.port(origins).marking_of(class).marks())
    }

    /// The same of scheduling.
    pub fn schedulings(&self) -> impl Iterator<Item = (Option<usize>, &'a Scheduling)> {
        self.by(Setting::Scheduling).into_iter().map(|(entry, port)| (entry, port.scheduling))
    }

    /// The same of α, where the buffer is shared.
    pub fn alphas(&self) -> impl Iterator<Item = (Option<usize>, f64)> + use<'a> {
        self.by(Setting::Alpha).into_iter().filter_map(|(entry, port)| Some((entry, port.alpha?)))
    }

    /// The sets of mechanisms in use, with the entries that they come from.
    pub fn mechanisms(&self) -> Vec<(Option<usize>, &'a Mechanisms)> {
        let entries: BTreeSet<Option<usize>> = self.kinds.iter().map(|kind| kind.mechanisms).collect();
        entries.into_iter().map(|entry| (entry, self.switch.mechanisms_of(entry))).collect()
    }

    /// The settings of ports at switches that have their mechanisms from this entry, each combination once.
    pub fn ports_with(&self, mechanisms: Option<usize>) -> impl Iterator<Item = PortSettings<'a>> + use<'_, 'a> {
        self.kinds.iter().filter(move |kind| kind.mechanisms == mechanisms).map(|kind| self.switch.port(kind.port))
    }

    /// The scheduling with the most classes and the one with the fewest.
    pub fn most_and_fewest_classes(&self) -> [(Option<usize>, &'a Scheduling); 2] {
        let own = (None, &self.switch.scheduling);
        let all = || self.schedulings();
        [all().max_by_key(|(_, s)| s.classes()).unwrap_or(own), all().min_by_key(|(_, s)| s.classes()).unwrap_or(own)]
    }

    /// Whether no port drops for want of room.
    pub fn unlimited(&self) -> bool {
        self.origins().into_iter().all(|origins| self.switch.port(origins).is_unlimited())
    }

    /// Classes that mechanisms at all switches keep from being dropped, a bit for each.
    pub fn lossless(&self) -> u8 {
        self.mechanisms().into_iter().fold(u8::MAX, |all, (_, mechanisms)| all & mechanisms.lossless())
    }

    /// Whether packets of a class may be dropped for want of room, at a port or in a virtual output queue.
    pub fn fills_up(&self, class: u8) -> bool {
        match self.switch.architecture.combined() {
            Some(_) => self.lossless() >> (class & 7) & 1 == 0,
            None => !self.unlimited(),
        }
    }

    /// The most that a port can hold by itself; `None` where there is no limit.
    pub fn most(&self, link: LinkId) -> Option<Bytes> {
        if let Some(combined) = self.switch.architecture.combined() {
            return Some(combined.output);
        }
        let port = self.port(link);
        match (port.buffer, port.alpha, &self.switch.buffer) {
            (Some(own), _, _) => in_bytes(own, self.switch).map(Bytes),
            (None, Some(alpha), Buffer::Dynamic(shared)) => {
                let share = alpha / (1.0 + alpha);
                in_bytes(shared.total, self.switch).map(|total| Bytes(libm::floor(share * total as f64) as u64))
            }
            _ => None,
        }
    }
}

/// Where a way of marking stands in the document.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MarkingAt {
    /// Of whole ports: the switches' own, or that of an entry of `except`.
    Ports(Option<usize>),
    /// An entry of `class_marking`.
    Classes(usize),
}

/// Runs `body` at a way of marking.
pub(super) fn at_marking<T>(at: MarkingAt, cx: &mut Cx, body: impl FnOnce(&mut Cx) -> T) -> T {
    match at {
        MarkingAt::Ports(entry) => at_setting(entry, "marking", cx, body),
        MarkingAt::Classes(i) => cx.key("switch", |cx| cx.key("class_marking", |cx| cx.index(i, |cx| cx.key("marking", body)))),
    }
}

/// A port and switch that have everything from one entry that it sets.
fn alone((i, entry): (usize, &Except)) -> Kind {
    let mut port = Origins::default();
    for setting in Setting::ALL.into_iter().filter(|setting| entry.sets(*setting)) {
        port.set(setting, i);
    }
    Kind { port, mechanisms: entry.mechanisms.is_some().then_some(i) }
}

/// An amount in bytes, packets counted as full frames.
pub(super) fn in_bytes(amount: Amount, switch: &Switch) -> Option<u64> {
    match amount {
        Amount::Bytes(n) => Some(n),
        Amount::Packets(n) => n.checked_mul(FRAME),
        Amount::Cells(n) => n.checked_mul(u64::from(switch.cell_bytes())),
    }
}

/// Runs `body` where a setting of this key stands in the document: `switch.marking`, or `switch.except[2].marking`.
pub(super) fn at_setting<T>(entry: Option<usize>, key: &str, cx: &mut Cx, body: impl FnOnce(&mut Cx) -> T) -> T {
    cx.key("switch", |cx| Except::at(entry, key, cx, body))
}

/// The same place as text.
pub(super) fn path(entry: Option<usize>, key: &str) -> String {
    match entry {
        None => format!("switch.{key}"),
        Some(i) => format!("switch.except[{i}].{key}"),
    }
}
