//! Trials: every policy applied to a scenario.

use crate::read::read_toml;
use crate::Scenario;
use fanin_packet::Signals;
use fanin_params::{Cx, Ground, Param, Trial};
use fanin_switch::{Buffer, Marking, Mechanisms, PathChoice};
use fanin_transport::{TransportConfig, TransportParams};
use fanin_units::{Amount, BitRate, Bytes};

impl Scenario {
    /// Properties of this scenario's network that the settings of policies depend on.
    fn ground(&self) -> Ground {
        let host_rates = self.topology().hosts.iter().map(|host| self.topology().link(self.topology().host_link(*host)).rate);
        let buffer = match &self.doc().switch.buffer {
            Buffer::Static(own) => Some(own.per_port),
            Buffer::Dynamic(shared) => Some(match shared.total {
                Amount::Bytes(_) => Amount::Bytes(shared.alone(shared.alpha)),
                Amount::Packets(_) => Amount::Packets(shared.alone(shared.alpha)),
                Amount::Cells(_) => Amount::Cells(shared.alone(shared.alpha)),
            }),
            Buffer::Unlimited(_) => None,
        };
        let (_, config) = &self.transports()[0];
        let marks = self.doc().switch.marking.marks_all_from().filter(|_| config.uses_ecn());
        Ground { marks, rate: host_rates.max().unwrap_or(BitRate(0)), rtt: self.base_rtts().1, buffer }
    }

    /// One trial for each registered policy, in registry order: the policy's own setting, its authors' settings, and those it
    /// cannot do without. Checks of the changed scenario tell if it makes sense here.
    pub fn trials(&self) -> Vec<Trial> {
        let at = self.ground();
        let mechanisms = Mechanisms::trials(&at);
        let signalled = mechanisms.iter().map(|(trial, signals)| self.with_signal_keys(trial.clone(), *signals));
        let transports =
            TransportConfig::trials(&at).into_iter().map(|trial| self.at_own_transport(with_fabric(trial, &mechanisms)));
        let paths = PathChoice::trials(&at).into_iter();
        signalled.chain(Marking::trials(&at)).chain(paths).chain(transports).collect()
    }

    /// Moves a trial of a transport to the scenario's transport of the same kind, if that is not the default one.
    fn at_own_transport(&self, mut trial: Trial) -> Trial {
        let kind = transport_of(&trial.settings).map(|config| config.kind());
        let same = self.transports().iter().skip(1).find(|(_, config)| Some(config.kind()) == kind);
        let of_default = self.transports().first().map(|(_, config)| config.kind());
        if let (Some((name, _)), true) = (same, of_default != kind) {
            trial.settings[0].0 = format!("transports.{name}");
        }
        trial
    }

    /// Adds the settings that make transports act on a mechanism's signals.
    fn with_signal_keys(&self, mut trial: Trial, signals: Signals) -> Trial {
        let (_, config) = &self.transports()[0];
        let keys = config.signal_keys().iter().filter(|(signal, _)| signals.has(*signal));
        trial.settings.extend(keys.map(|(_, key)| (format!("transport.{key}"), "true".to_string())));
        trial
    }

    /// Memory of marking, path choice and mechanisms at the switch where they take most, buffers excluded; `None` if the
    /// memory of one is not known.
    pub fn switch_memory(&self) -> Option<Bytes> {
        let switches = self.topology().nodes.iter().zip(0u32..).skip(self.topology().hosts.len());
        let mut most = Bytes(0);
        for (_, number) in switches {
            let node = fanin_units::NodeId(number);
            let mut here = self.mechanisms(node).memory(&self.site(node))? + self.doc().switch.routing.memory()?;
            for link in self.topology().out_links(node) {
                for (_, marking) in self.port(*link).markings() {
                    here += marking.memory()?;
                }
            }
            most = most.max(here);
        }
        Some(most)
    }

    /// Largest number of header bytes that mechanisms add to a frame, and that transports request of switches.
    pub fn header_bytes(&self) -> u64 {
        let mechanisms = [&self.doc().switch.mechanisms].into_iter();
        let elsewhere = self.doc().switch.except.iter().filter_map(|entry| entry.mechanisms.as_ref());
        let headers = mechanisms.chain(elsewhere).map(|mechanisms| u64::from(mechanisms.header_bytes())).max().unwrap_or(0);
        let records = (self.routes().longest() as usize).min(fanin_packet::MAX_HOPS);
        let asks = self.transports().iter().any(|(_, config)| config.needs_telemetry().is_some());
        headers + if asks { u64::from(fanin_packet::Stack::bytes(records)) } else { 0 }
    }
}

/// Adds the mechanisms that a transport cannot do without: those that prevent losses, and those that write the telemetry it
/// reads.
fn with_fabric(mut trial: Trial, mechanisms: &[(Trial, Signals)]) -> Trial {
    let Some(config) = transport_of(&trial.settings) else { return trial };
    let keepers = if config.wants_lossless().is_some() { Mechanisms::that_keep_all() } else { Vec::new() };
    let writer = Mechanisms::that_writes_telemetry().filter(|_| config.needs_telemetry().is_some());
    let needed: Vec<(String, String)> = mechanisms
        .iter()
        .filter(|(mechanism, _)| keepers.contains(&mechanism.kind) || writer == Some(mechanism.kind))
        .flat_map(|(mechanism, _)| mechanism.settings.iter().cloned())
        .collect();
    trial.settings.splice(1..1, needed);
    trial
}

/// Transport given by the first of some settings.
fn transport_of(settings: &[(String, String)]) -> Option<TransportConfig> {
    let (_, value) = settings.first()?;
    let (document, _) = read_toml(&format!("transport = {value}"));
    TransportConfig::parse(document?.get("transport")?, &mut Cx::new())
}
