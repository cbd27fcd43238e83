//! Settings of all ports and switches, as the checks need them: those in use, and their place in the document.

use super::Network;
use crate::exceptions::Exceptions;
use fanin_params::Cx;
use fanin_switch::{Buffer, Except, Marking, Mechanisms, Origins, PortSettings, Scheduling, Setting, Switch};
use fanin_units::{Amount, Bytes, LinkId};
use std::collections::BTreeSet;

/// Length of a full Ethernet frame \[bytes\].
pub(super) const FRAME: u64 = 1518;

/// Origin of the settings of a port and its switch: entries of `switch.except` or the table of all switches.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Kind {
    pub port: Origins,
    pub mechanisms: Option<usize>,
}

/// Settings of all switches, with their exceptions.
pub(super) struct Settings<'a> {
    pub switch: &'a Switch,
    pub exceptions: &'a Exceptions,
    /// Distinct combinations of origins among the ports.
    kinds: Vec<Kind>,
    /// Keys of `[switch]` without effect, since entries of `except` replace them at every port or switch.
    pub replaced: Vec<&'static str>,
}

impl<'a> Settings<'a> {
    /// Collects the settings in use. Without the network, each entry is assumed to apply somewhere, by itself, and the
    /// settings of `[switch]` elsewhere; so is each entry that by mistake applies nowhere.
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
                let nowhere: Vec<Kind> = switch.except.iter().enumerate().filter(|(i, _)| !holds(*i)).map(from_entry).collect();
                kinds.extend(nowhere);
                kinds.into_iter().collect()
            }
            None => std::iter::once(Kind::default()).chain(switch.except.iter().enumerate().map(from_entry)).collect(),
        };
        Settings { switch, exceptions, kinds, replaced }
    }

    /// Settings of a port.
    pub fn port(&self, link: LinkId) -> PortSettings<'a> {
        self.switch.port(self.exceptions.port(link))
    }

    /// Origins of ports' settings, each combination once.
    pub fn origins(&self) -> BTreeSet<Origins> {
        self.kinds.iter().map(|kind| kind.port).collect()
    }

    /// Entries that give a setting (`None`: the table of all switches), each with the settings of a port that has it from
    /// there.
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

    /// Marking policies in use, with their place in the document.
    pub fn markings(&self) -> impl Iterator<Item = (MarkingAt, &'a Marking)> + use<'_, 'a> {
        let classes = self.schedulings().any(|(_, scheduling)| scheduling.classes() > 1);
        let by_class = self.switch.class_marking.iter().enumerate().filter(move |_| classes);
        let of_ports = self.by(Setting::Marking).into_iter().filter(|(entry, _)| self.marks_ports(*entry));
        let of_ports = of_ports.map(|(entry, port)| (MarkingAt::Ports(entry), port.marking));
        of_ports.chain(by_class.map(|(i, entry)| (MarkingAt::Classes(i), &entry.marking)))
    }

    /// True if some port uses the marking that `entry` gives: not if `class_marking` covers each of its queues.
    fn marks_ports(&self, entry: Option<usize>) -> bool {
        let here = |origins: &Origins| origins.of(Setting::Marking) == entry;
        self.origins().into_iter().filter(here).any(|origins| self.switch.port(origins).marks_as_a_port())
    }

    /// Marking policies of ports that no port uses, since `class_marking` covers each of their queues.
    pub fn unused_markings(&self) -> Vec<(Option<usize>, &'a Marking)> {
        let all = self.by(Setting::Marking).into_iter();
        all.filter(|(entry, _)| !self.marks_ports(*entry)).map(|(entry, port)| (entry, port.marking)).collect()
    }

    /// True if some port marks packets of the class.
    pub fn marks_class(&self, class: u8) -> bool {
        self.origins().into_iter().any(|origins| self.switch.port(origins).marking_of(class).marks())
    }

    /// Schedulers in use, with the entries that give them.
    pub fn schedulings(&self) -> impl Iterator<Item = (Option<usize>, &'a Scheduling)> {
        self.by(Setting::Scheduling).into_iter().map(|(entry, port)| (entry, port.scheduling))
    }

    /// Values of α in use, with the entries that give them, if the buffer is shared.
    pub fn alphas(&self) -> impl Iterator<Item = (Option<usize>, f64)> + use<'a> {
        self.by(Setting::Alpha).into_iter().filter_map(|(entry, port)| Some((entry, port.alpha?)))
    }

    /// Sets of mechanisms in use, with the entries that give them.
    pub fn mechanisms(&self) -> Vec<(Option<usize>, &'a Mechanisms)> {
        let entries: BTreeSet<Option<usize>> = self.kinds.iter().map(|kind| kind.mechanisms).collect();
        entries.into_iter().map(|entry| (entry, self.switch.mechanisms_of(entry))).collect()
    }

    /// Settings of the ports at switches whose mechanisms `mechanisms` gives, each combination once.
    pub fn ports_with(&self, mechanisms: Option<usize>) -> impl Iterator<Item = PortSettings<'a>> + use<'_, 'a> {
        self.kinds.iter().filter(move |kind| kind.mechanisms == mechanisms).map(|kind| self.switch.port(kind.port))
    }

    /// The schedulers with the most and with the fewest classes.
    pub fn most_and_fewest_classes(&self) -> [(Option<usize>, &'a Scheduling); 2] {
        let own = (None, &self.switch.scheduling);
        let all = || self.schedulings();
        [all().max_by_key(|(_, s)| s.classes()).unwrap_or(own), all().min_by_key(|(_, s)| s.classes()).unwrap_or(own)]
    }

    /// True if no port ever drops for lack of buffer.
    pub fn unlimited(&self) -> bool {
        self.origins().into_iter().all(|origins| self.switch.port(origins).is_unlimited())
    }

    /// Classes that mechanisms protect from drops at all switches, one bit per class.
    pub fn lossless(&self) -> u8 {
        self.mechanisms().into_iter().fold(u8::MAX, |all, (_, mechanisms)| all & mechanisms.lossless())
    }

    /// True if packets of a class may be dropped for lack of buffer, at a port or in a virtual output queue.
    pub fn fills_up(&self, class: u8) -> bool {
        match self.switch.architecture.combined() {
            Some(_) => self.lossless() >> (class & 7) & 1 == 0,
            None => !self.unlimited(),
        }
    }

    /// Largest buffer that a port can occupy by itself; `None` if unlimited.
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

/// Place of a marking policy in the document.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MarkingAt {
    /// Marking of whole ports: of all switches, or of an entry of `except`.
    Ports(Option<usize>),
    /// Marking of an entry of `class_marking`.
    Classes(usize),
}

/// Runs `body` at the path of a marking policy.
pub(super) fn at_marking<T>(at: MarkingAt, cx: &mut Cx, body: impl FnOnce(&mut Cx) -> T) -> T {
    match at {
        MarkingAt::Ports(entry) => at_setting(entry, "marking", cx, body),
        MarkingAt::Classes(i) => cx.key("switch", |cx| cx.key("class_marking", |cx| cx.index(i, |cx| cx.key("marking", body)))),
    }
}

/// Origins of a port and switch to which a single entry gives all that it sets.
fn from_entry((i, entry): (usize, &Except)) -> Kind {
    let mut port = Origins::default();
    for setting in Setting::ALL.into_iter().filter(|setting| entry.sets(*setting)) {
        port.set(setting, i);
    }
    Kind { port, mechanisms: entry.mechanisms.is_some().then_some(i) }
}

/// An amount of buffer in bytes, counting a packet as a full frame.
pub(super) fn in_bytes(amount: Amount, switch: &Switch) -> Option<u64> {
    match amount {
        Amount::Bytes(n) => Some(n),
        Amount::Packets(n) => n.checked_mul(FRAME),
        Amount::Cells(n) => n.checked_mul(u64::from(switch.cell_bytes())),
    }
}

/// Runs `body` at the path of a setting: `switch.marking`, or `switch.except[2].marking`.
pub(super) fn at_setting<T>(entry: Option<usize>, key: &str, cx: &mut Cx, body: impl FnOnce(&mut Cx) -> T) -> T {
    cx.key("switch", |cx| Except::at(entry, key, cx, body))
}

/// Path of a setting as text: `switch.marking`, or `switch.except[2].marking`.
pub(super) fn path(entry: Option<usize>, key: &str) -> String {
    match entry {
        None => format!("switch.{key}"),
        Some(i) => format!("switch.except[{i}].{key}"),
    }
}
