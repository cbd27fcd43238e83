//! Counters of all mechanisms: those that mechanisms and transports declare, and those that only the whole network knows.

use crate::core::faults::LinkCounts;
use fanin_packet::Signals;
use fanin_params::{CounterDef, Counters};
use fanin_switch::{MechanismKind, Mechanisms};
use fanin_transport::SignalCounts;
use std::fmt::Write;

/// Messages that no endpoint got: what each mechanism that sends messages has besides.
pub(crate) const MESSAGES: [CounterDef; 2] = [
    CounterDef::step("flow_ended", "Messages that reached a host at which their flow had ended."),
    CounterDef::step("on_the_way", "Messages that were on the way when the run ended."),
];

/// Trimmed packets and NACKs that no endpoint got: what each mechanism that trims has besides.
pub(crate) const TRIMMED: [CounterDef; 5] = [
    CounterDef::step("flow_ended", "Trimmed packets that reached a host at which their flow had ended."),
    CounterDef::step("on_the_way", "Trimmed packets that were on the way when the run ended."),
    CounterDef::failure("nacks_lost", "NACKs that were dropped."),
    CounterDef::step("nacks_flow_ended", "NACKs that reached a host at which their flow had ended."),
    CounterDef::step("nacks_on_the_way", "NACKs that were on the way when the run ended."),
];

/// Pauses that NICs obeyed and asked for: what each mechanism by which switches pause hosts has besides.
pub(crate) const NICS: [CounterDef; 3] = [
    CounterDef::step(
        "nic_frames_sent",
        "Frames by which NICs asked switches for pauses (storms of the scenario), or let them go on.",
    ),
    CounterDef::failure("nic_storms", "Times that the watchdog of a NIC found a class paused for too long."),
    CounterDef::step("nic_storms_over", "Storms at NICs that were over."),
];

/// A group of counters, under its key in summary.json's `mechanisms`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterGroup {
    pub name: &'static str,
    /// The subject of the group.
    pub doc: String,
    /// Counters of the group: the first counts everything, the others divide it.
    pub counters: Vec<CounterDef>,
    /// Largest values, of all switches.
    pub peaks: &'static [CounterDef],
}

impl CounterGroup {
    fn of(kind: &MechanismKind, ends: &SignalCounts) -> CounterGroup {
        let counts = kind.counts();
        let mut group = CounterGroup { name: counts.name, doc: counts.doc.to_string(), counters: Vec::new(), peaks: &[] };
        group.add(counts.counters.iter().map(|(def, _)| **def));
        for (name, doc, counters) in ends.groups() {
            if name == group.name {
                let _ = write!(group.doc, " {doc}");
                group.add(counters.into_iter().map(|(def, _)| *def));
            }
        }
        group.peaks = kind.profile.peaks;
        if kind.profile.pauses().is_some() {
            group.add(NICS);
        }
        if kind.profile.messages.is_some() {
            group.add(MESSAGES);
        }
        if kind.profile.signals.has(Signals::TRIMMED) {
            group.add(TRIMMED);
        }
        group
    }

    /// Adds counters that the group lacks.
    fn add(&mut self, more: impl IntoIterator<Item = CounterDef>) {
        for def in more {
            if !self.counters.iter().any(|known| known.name == def.name) {
                self.counters.push(def);
            }
        }
    }
}

/// The groups of all mechanisms, in order of the registry, with their counters in the order in which they are shown.
pub fn counters() -> Vec<CounterGroup> {
    let mut groups: Vec<CounterGroup> = Vec::new();
    for kind in Mechanisms::ALL {
        let group = CounterGroup::of(kind, &SignalCounts::default());
        match groups.iter_mut().find(|known| known.name == group.name) {
            Some(known) => known.add(group.counters),
            None => groups.push(group),
        }
    }
    groups
}

/// The reference page of counters, in Markdown: `docs/counters.md`.
pub fn counters_page() -> String {
    let mut page = include_str!("counters.md").to_string();
    for group in counters() {
        let counted_by = Mechanisms::ALL.iter().filter(|kind| kind.group == group.name);
        let keys: Vec<String> = counted_by.map(|kind| format!("`[switch.mechanisms.{}]`", kind.key)).collect();
        let (name, of, doc) = (group.name, keys.join(", "), group.doc);
        let _ = write!(page, "\n## `{name}`\n\nOf {of}. {doc}\n\n| counter | counts |\n|---|---|\n");
        for def in group.counters {
            let kind = match def.kind {
                fanin_params::CounterKind::Step => "",
                fanin_params::CounterKind::Success => " (success)",
                fanin_params::CounterKind::Failure => " (failure)",
            };
            let _ = writeln!(page, "| `{}`{kind} | {} |", def.name, def.doc);
        }
        if !group.peaks.is_empty() {
            let _ = write!(page, "\n| largest value | of |\n|---|---|\n");
        }
        for def in group.peaks {
            let _ = writeln!(page, "| `{}` | {} |", def.name, def.doc);
        }
    }
    let _ = write!(page, "\n# Counters of links\n\n{}\n\n| counter | counts |\n|---|---|\n", LinkCounts::DOC);
    for def in LinkCounts::defs() {
        let _ = writeln!(page, "| `{}` | {} |", def.name, def.doc);
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_counter_is_declared_once_and_says_what_it_counts() {
        let groups = counters();
        let known: Vec<_> = groups.iter().map(|group| group.name).collect();
        assert!(Mechanisms::ALL.iter().all(|kind| known.contains(&kind.group)), "{known:?}");
        for group in &groups {
            let mut names: Vec<_> = group.counters.iter().map(|def| def.name).collect();
            names.sort_unstable();
            assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
            assert!(!group.doc.is_empty() && group.counters.iter().all(|def| def.doc.ends_with('.')), "{}", group.name);
        }
    }

    #[test]
    fn endpoints_count_for_mechanisms_that_there_are() {
        let known: Vec<_> = counters().iter().map(|group| group.name).collect();
        for (name, ..) in SignalCounts::default().groups() {
            assert!(known.contains(&name), "{name}");
        }
    }
}
