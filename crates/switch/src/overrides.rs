//! Exceptions: settings of some ports and switches that differ from the rest.

use crate::admission::{warn_of_zero, ALPHA};
use crate::{Buffer, ClassMarking, Marking, Mechanisms, Scheduling, Switch};
use fanin_params::{params, shown, Cx, Param};
use fanin_units::{Amount, BitRate};

params! {
    /// Settings of selected ports or switches: those that meet every given selector of `ports`, `switches`, `rate`, `tier`.
    pub struct Except {
        /// Selector of ports, by name, `*` stands for anything (`tor2->*`).
        pub ports: Option<Vec<String>>;
        /// Selector of the ports of switches, by name, `*` stands for anything.
        pub switches: Option<Vec<String>>;
        /// Selector of ports of this rate.
        pub rate: Option<BitRate>;
        /// Selector of ports of switches of this tier: 0 next to hosts (ToR, leaf, edge), 1 above (spine, aggregation), 2
        /// core.
        pub tier: Option<u8>;
        /// Buffer of each selected port; `switch.buffer` must be static or unlimited.
        pub buffer: Option<Amount>;
        /// α of each selected port; `switch.buffer` must be dynamic.
        pub alpha: Option<f64>, in ALPHA;
        /// Marking policy of the selected ports.
        pub marking: Option<Marking>;
        /// Scheduler of the selected ports.
        pub scheduling: Option<Scheduling>;
        /// Mechanisms of the selected switches, in place of all `switch.mechanisms`; `{}`: none. Not with `ports` or `rate`.
        pub mechanisms: Option<Mechanisms>;
    }
}

/// Setting of a port that an exception can change by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Setting {
    Buffer,
    Alpha,
    Marking,
    Scheduling,
}

impl Setting {
    pub const ALL: [Setting; 4] = [Setting::Buffer, Setting::Alpha, Setting::Marking, Setting::Scheduling];

    /// Key of the setting in [`Except`].
    pub fn key(self) -> &'static str {
        match self {
            Setting::Buffer => "buffer",
            Setting::Alpha => "alpha",
            Setting::Marking => "marking",
            Setting::Scheduling => "scheduling",
        }
    }
}

/// Entries of `switch.except` from which a port takes its settings, one place for each setting; `None`: the switch's own applies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Origins([Option<u32>; 4]);

impl Origins {
    /// Entry from which a port takes this setting.
    pub fn of(self, setting: Setting) -> Option<usize> {
        self.0[setting as usize].map(|entry| entry as usize)
    }

    /// Takes a setting from an entry; gives the entry from which it came before.
    pub fn set(&mut self, setting: Setting, entry: usize) -> Option<usize> {
        self.0[setting as usize].replace(entry as u32).map(|earlier| earlier as usize)
    }
}

/// Settings of a port of a switch.
#[derive(Clone, Copy, Debug)]
pub struct PortSettings<'a> {
    /// Buffer of the port's own; `None`: shared, or without limit.
    pub buffer: Option<Amount>,
    /// α, where the buffer is shared.
    pub alpha: Option<f64>,
    pub marking: &'a Marking,
    /// Classes that are marked otherwise, where the port has queues for several.
    pub class_marking: &'a [ClassMarking],
    pub scheduling: &'a Scheduling,
}

impl PortSettings<'_> {
    /// True if nothing is dropped for want of room.
    pub fn is_unlimited(&self) -> bool {
        self.buffer.is_none() && self.alpha.is_none()
    }
}

impl Except {
    /// True if the entry sets this for ports.
    pub fn sets(&self, setting: Setting) -> bool {
        match setting {
            Setting::Buffer => self.buffer.is_some(),
            Setting::Alpha => self.alpha.is_some(),
            Setting::Marking => self.marking.is_some(),
            Setting::Scheduling => self.scheduling.is_some(),
        }
    }

    /// True if anything is selected by name, rate or tier.
    pub fn selects(&self) -> bool {
        self.ports.is_some() || self.switches.is_some() || self.rate.is_some() || self.tier.is_some()
    }

    /// True if the entry selects whole switches, as mechanisms need it.
    pub fn selects_switches(&self) -> bool {
        self.selects() && self.ports.is_none() && self.rate.is_none()
    }

    /// Runs `body` where a setting stands, from the table of switches on: `marking`, or `except[2].marking`.
    pub fn at<T>(entry: Option<usize>, key: &str, cx: &mut Cx, body: impl FnOnce(&mut Cx) -> T) -> T {
        match entry {
            None => cx.key(key, body),
            Some(i) => cx.key("except", |cx| cx.index(i, |cx| cx.key(key, body))),
        }
    }

    /// Records errors of an entry that show without the network; `cx` is at the entry.
    pub(crate) fn check(&self, switch: &Switch, cx: &mut Cx) {
        self.check_selectors(cx);
        if !Setting::ALL.into_iter().any(|setting| self.sets(setting)) && self.mechanisms.is_none() {
            let accepted = "at least one of buffer, alpha, marking, scheduling, mechanisms";
            cx.error(None, "sets nothing", Some(accepted.to_string()));
        }
        self.check_room(switch, cx);
        if let Some(marking) = &self.marking {
            cx.key("marking", |cx| marking.check(cx));
            no_effect("marking", marking == &switch.marking, cx);
        }
        if let Some(scheduling) = &self.scheduling {
            cx.key("scheduling", |cx| scheduling.check(cx));
            no_effect("scheduling", scheduling == &switch.scheduling, cx);
        }
        if let Some(mechanisms) = &self.mechanisms {
            no_effect("mechanisms", mechanisms == &switch.mechanisms, cx);
        }
    }

    fn check_selectors(&self, cx: &mut Cx) {
        if !self.selects() {
            cx.error(None, "selects nothing", Some("at least one of ports, switches, rate, tier".to_string()));
        }
        for (key, names) in [("ports", &self.ports), ("switches", &self.switches)] {
            if names.as_ref().is_some_and(Vec::is_empty) {
                cx.key(key, |cx| cx.error(None, "is empty: nothing is selected", Some(format!("names of {key}"))).severity);
            }
        }
        if self.mechanisms.is_some() && (self.ports.is_some() || self.rate.is_some()) {
            let key = if self.ports.is_some() { "ports" } else { "rate" };
            let accepted = "switches and tier; or an entry of its own for mechanisms";
            cx.key("mechanisms", |cx| {
                let message = format!("run at switches, and this entry selects ports, by `{key}`");
                cx.error(None, message, Some(accepted.to_string())).severity
            });
        }
    }

    /// Checks an exception's buffer of ports.
    fn check_room(&self, switch: &Switch, cx: &mut Cx) {
        if switch.architecture.combined().is_some() {
            let message = "has no effect: combined switches have the buffers of switch.architecture";
            let accepted = "voq and output of switch.architecture, for all ports";
            if let Some(buffer) = self.buffer {
                cx.error_at("buffer", &buffer, message, accepted);
            }
            if let Some(alpha) = self.alpha {
                cx.error_at("alpha", &alpha, message, accepted);
            }
            return;
        }
        match (&switch.buffer, self.buffer) {
            (_, None) => {}
            (Buffer::Dynamic(_), Some(buffer)) => {
                cx.error_at("buffer", &buffer, "has no effect: switch.buffer is shared by all ports of a switch", "alpha");
            }
            (Buffer::Static(all), Some(buffer)) => {
                warn_of_zero(cx, "buffer", buffer);
                no_effect_of("buffer", &buffer, buffer == all.per_port, "switch.buffer.per_port", cx);
            }
            (Buffer::Unlimited(_), Some(buffer)) => warn_of_zero(cx, "buffer", buffer),
        }
        match (&switch.buffer, self.alpha) {
            (_, None) => {}
            (Buffer::Dynamic(all), Some(alpha)) => {
                no_effect_of("alpha", &alpha, alpha == all.alpha, "switch.buffer.alpha", cx);
            }
            (_, Some(alpha)) => {
                let accepted = "buffer; or switch.buffer of kind \"dynamic\"";
                cx.error_at("alpha", &alpha, "has no effect: switch.buffer is not shared", accepted);
            }
        }
    }
}

fn no_effect(key: &str, same: bool, cx: &mut Cx) {
    if same {
        cx.key(key, |cx| cx.warn(None, format!("has no effect: it equals switch.{key}"), None).severity);
    }
}

fn no_effect_of(key: &str, value: &impl Param, same: bool, default: &str, cx: &mut Cx) {
    if same {
        cx.key(key, |cx| cx.warn(Some(&shown(value)), format!("has no effect: it equals {default}"), None).severity);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanin_params::{Node, Value};

    fn table(entries: &[(&str, Value)]) -> Value {
        Value::Table(entries.iter().map(|(key, value)| (key.to_string(), Node::from(value.clone()))).collect())
    }

    fn text(text: &str) -> Value {
        Value::Text(text.to_string())
    }

    fn names(names: &[&str]) -> Value {
        Value::List(names.iter().map(|name| text(name).into()).collect())
    }

    fn parse(buffer: Value, entries: &[Value]) -> Switch {
        let except = Value::List(entries.iter().cloned().map(Node::from).collect());
        let mut cx = Cx::new();
        let switch = Switch::parse(&table(&[("buffer", buffer), ("except", except)]).into(), &mut cx);
        switch.unwrap_or_else(|| panic!("{:?}", cx.into_problems()))
    }

    fn found(switch: &Switch) -> Vec<String> {
        let mut cx = Cx::new();
        switch.check(&mut cx);
        cx.into_problems().iter().map(|problem| format!("{:?} {problem}", problem.severity)).collect()
    }

    fn strict(classes: i64) -> Value {
        table(&[("kind", text("strict")), ("classes", Value::Int(classes))])
    }

    fn threshold(k: &str) -> Value {
        table(&[("kind", text("threshold")), ("k", text(k))])
    }

    #[test]
    fn a_port_has_its_own_settings_and_the_switchs_others() {
        let slow = table(&[("rate", text("1Gbps")), ("marking", threshold("20 packets")), ("buffer", text("100 packets"))]);
        let edge = table(&[("tier", Value::Int(0)), ("scheduling", strict(2))]);
        let switch = parse(text("static"), &[slow, edge]);
        assert_eq!(found(&switch), [] as [&str; 0]);
        let mut from = Origins::default();
        assert_eq!(from.set(Setting::Marking, 0), None);
        assert_eq!((switch.port(from).marking.kind(), switch.port(from).scheduling.kind()), ("threshold", "fifo"));
        assert_eq!(switch.port(from).buffer, Some(Amount::Bytes(512_000)));
        assert_eq!(from.set(Setting::Buffer, 0), None);
        assert_eq!(from.set(Setting::Scheduling, 1), None);
        let port = switch.port(from);
        assert_eq!((port.marking.kind(), port.scheduling.classes(), port.buffer), ("threshold", 2, Some(Amount::Packets(100))));
        assert!(port.alpha.is_none() && !port.is_unlimited());
        assert_eq!(from.set(Setting::Buffer, 1), Some(0), "the entry that it came from before");
    }

    #[test]
    fn a_port_may_have_its_own_alpha_of_a_shared_buffer() {
        let entry = |alpha| table(&[("ports", names(&["*"])), ("alpha", Value::Float(alpha))]);
        let switch = parse(text("dynamic"), &[entry(0.5), entry(1.0)]);
        let mut from = Origins::default();
        assert_eq!(switch.port(from).alpha, Some(1.0));
        from.set(Setting::Alpha, 0);
        assert_eq!((switch.port(from).alpha, switch.port(from).buffer), (Some(0.5), None));
        assert_eq!(found(&switch), ["Warning except[1].alpha: 1.0 has no effect: it equals switch.buffer.alpha"]);
    }

    #[test]
    fn a_port_may_have_a_limit_where_others_have_none() {
        let one = table(&[("ports", names(&["*"])), ("buffer", text("0B"))]);
        let switch = parse(text("unlimited"), &[one]);
        assert!(switch.port(Origins::default()).is_unlimited());
        let mut from = Origins::default();
        from.set(Setting::Buffer, 0);
        assert_eq!(switch.port(from).buffer, Some(Amount::Bytes(0)));
        let zero = "Warning except[0].buffer: is zero: every packet that finds its port busy is dropped";
        assert_eq!(found(&switch), [zero]);
    }

    #[test]
    fn mechanisms_are_replaced_as_a_whole() {
        let entry = |mechanisms| table(&[("tier", Value::Int(1)), ("mechanisms", mechanisms)]);
        let trimming = table(&[("trimming", table(&[]))]);
        let mut switch = parse(text("static"), &[entry(trimming), entry(table(&[]))]);
        assert_eq!(found(&switch), ["Warning except[1].mechanisms: has no effect: it equals switch.mechanisms"]);
        switch.mechanisms = switch.mechanisms_of(Some(0)).clone();
        assert!(switch.mechanisms_of(None).trimming.is_some() && switch.mechanisms_of(Some(1)).trimming.is_none());
    }

    #[test]
    fn entries_that_select_or_set_nothing_are_refused() {
        let k = threshold("20 packets");
        let entries = [
            table(&[("marking", k.clone())]),
            table(&[("rate", text("1Gbps"))]),
            table(&[("ports", names(&[])), ("switches", names(&[])), ("marking", k)]),
            table(&[]),
        ];
        let selectors = "accepted: at least one of ports, switches, rate, tier";
        let settings = "accepted: at least one of buffer, alpha, marking, scheduling, mechanisms";
        assert_eq!(
            found(&parse(text("static"), &entries)),
            [
                format!("Error except[0]: selects nothing; {selectors}"),
                format!("Error except[1]: sets nothing; {settings}"),
                "Error except[2].ports: is empty: nothing is selected; accepted: names of ports".to_string(),
                "Error except[2].switches: is empty: nothing is selected; accepted: names of switches".to_string(),
                format!("Error except[3]: selects nothing; {selectors}"),
                format!("Error except[3]: sets nothing; {settings}"),
            ]
        );
    }

    #[test]
    fn settings_that_the_buffer_or_the_selector_excludes_are_refused() {
        let room = table(&[("tier", Value::Int(0)), ("buffer", text("1KB")), ("alpha", Value::Float(0.5))]);
        let at_ports = |key: &str, value: Value| table(&[(key, value), ("mechanisms", table(&[("pdn", table(&[]))]))]);
        let entries = [room, at_ports("rate", text("1Gbps")), at_ports("ports", names(&["*"]))];
        let switches = "accepted: switches and tier; or an entry of its own for mechanisms";
        let mechanisms = [
            format!("Error except[1].mechanisms: run at switches, and this entry selects ports, by `rate`; {switches}"),
            format!("Error except[2].mechanisms: run at switches, and this entry selects ports, by `ports`; {switches}"),
        ];
        let expect = |first: &str| [&[first.to_string()], mechanisms.as_slice()].concat();
        let dynamic =
            "Error except[0].buffer: \"1KB\" has no effect: switch.buffer is shared by all ports of a switch; accepted: alpha";
        assert_eq!(found(&parse(text("dynamic"), &entries)), expect(dynamic));
        let own =
            "Error except[0].alpha: 0.5 has no effect: switch.buffer is not shared; accepted: buffer; or switch.buffer of kind \"dynamic\"";
        assert_eq!(found(&parse(text("static"), &entries)), expect(own));
    }

    #[test]
    fn settings_equal_to_the_switchs_own_are_warned_of() {
        let entry = table(&[
            ("tier", Value::Int(0)),
            ("buffer", text("512KB")),
            ("marking", text("none")),
            ("scheduling", text("fifo")),
            ("mechanisms", table(&[])),
        ]);
        assert_eq!(
            found(&parse(text("static"), &[entry])),
            [
                "Warning except[0].buffer: \"512KB\" has no effect: it equals switch.buffer.per_port",
                "Warning except[0].marking: has no effect: it equals switch.marking",
                "Warning except[0].scheduling: has no effect: it equals switch.scheduling",
                "Warning except[0].mechanisms: has no effect: it equals switch.mechanisms",
            ]
        );
    }

    #[test]
    fn thresholds_are_held_against_the_buffer_of_the_port() {
        let entries = [
            table(&[("rate", text("1Gbps")), ("marking", threshold("64KB"))]),
            table(&[("tier", Value::Int(0)), ("buffer", text("64KB"))]),
            table(&[("tier", Value::Int(1)), ("buffer", text("32KB")), ("marking", threshold("32KB"))]),
        ];
        let mut switch = parse(text("static"), &entries);
        let origins = |marking: Option<usize>, room: (Setting, Option<usize>)| {
            let mut from = Origins::default();
            marking.and_then(|i| from.set(Setting::Marking, i));
            room.1.and_then(|i| from.set(room.0, i));
            from
        };
        let said = |switch: &Switch, from: Origins| {
            let mut cx = Cx::new();
            switch.check_thresholds(from, &mut cx);
            cx.into_problems().iter().map(ToString::to_string).collect::<Vec<String>>()
        };
        let never = "never acts: its threshold";
        assert_eq!(said(&switch, origins(Some(0), (Setting::Buffer, None))), [] as [&str; 0]);
        assert_eq!(
            said(&switch, origins(Some(0), (Setting::Buffer, Some(1)))),
            [format!("except[0].marking: {never}, 64KB, is not below the buffer of switch.except[1], 64KB")]
        );
        assert_eq!(
            said(&switch, origins(Some(2), (Setting::Buffer, Some(2)))),
            [format!("except[2].marking: {never}, 32KB, is not below the buffer, 32KB")]
        );
        switch.marking = switch.except[0].marking.clone().expect("a threshold");
        assert_eq!(
            said(&switch, origins(None, (Setting::Buffer, Some(1)))),
            [format!("marking: {never}, 64KB, is not below the buffer of switch.except[1], 64KB")]
        );
        let half = table(&[("rate", text("1Gbps")), ("alpha", Value::Float(0.5))]);
        let mut switch = parse(table(&[("kind", text("dynamic")), ("total", text("90KB"))]), &[half]);
        let k = |k: &str| Marking::parse(&threshold(k).into(), &mut Cx::new()).expect("a threshold");
        switch.marking = k("30KB");
        assert_eq!(said(&switch, Origins::default()), [] as [&str; 0], "45 KB alone");
        assert_eq!(
            said(&switch, origins(None, (Setting::Alpha, Some(0)))),
            [format!("marking: {never}, 30KB, is not below what one queue may hold with the alpha of switch.except[0], alpha/(1 + alpha) of the buffer")]
        );
        switch.marking = k("90KB");
        let whole = format!("marking: {never}, 90KB, is not below the buffer, 90KB");
        assert_eq!(said(&switch, origins(None, (Setting::Alpha, Some(0)))), [whole]);
    }

    #[test]
    fn an_exception_may_count_in_cells() {
        let entry = |key: &str, value: Value| parse(text("static"), &[table(&[("tier", Value::Int(0)), (key, value)])]);
        assert!(!entry("marking", threshold("20 packets")).counts_cells());
        assert!(entry("marking", threshold("20 cells")).counts_cells());
        assert!(entry("buffer", text("20 cells")).counts_cells());
    }
}
