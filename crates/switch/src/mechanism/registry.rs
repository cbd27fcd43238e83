//! Registry: one line for each mechanism makes its table in scenarios, its variant of [`MechanismState`], and all dispatch.

use super::{
    dispatch, Arrival, Claims, Context, Dropped, Effects, Hooks, Mechanism, MechanismState, Mechanisms, Message, Node, PortNo,
    Profile, Refused, Sent, Site, Strays, Verdict,
};
use crate::Pause;
use fanin_packet::{Control, Shim, Signal, Signals, Stack};
use fanin_params::{CounterDef, Counters, Cx, Ground, Trial};
use fanin_units::{Amount, Bytes};

/// Values of a group of counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountGroup {
    /// Name in summary.json.
    pub name: &'static str,
    /// Subject of the group.
    pub doc: &'static str,
    /// Each counter with its value.
    pub counters: Vec<(&'static CounterDef, u64)>,
}

impl CountGroup {
    /// Group of these counters, with their values.
    pub fn of<C: Counters>(counts: &C) -> CountGroup {
        CountGroup { name: C::GROUP, doc: C::DOC, counters: C::defs().iter().zip(counts.values()).collect() }
    }
}

/// Mechanism of the registry, which need not run.
#[derive(Clone, Copy, Debug)]
pub struct MechanismKind {
    /// Key among the scenario's mechanisms.
    pub key: &'static str,
    /// Documentation of the mechanism's key.
    pub(super) doc: &'static [&'static str],
    /// Properties that do not depend on settings.
    pub profile: &'static Profile,
    /// Name of the mechanism's group of counters.
    pub group: &'static str,
    /// Makes the mechanism's counters, all zero.
    pub(super) zero: fn() -> CountGroup,
}

impl MechanismKind {
    /// Counters of the mechanism, all zero.
    pub fn counts(&self) -> CountGroup {
        (self.zero)()
    }

    /// Mechanism whose messages have this EtherType.
    fn that_owns(ether_type: u16) -> Option<&'static MechanismKind> {
        Mechanisms::ALL.iter().find(|kind| kind.profile.owns(ether_type))
    }
}

/// A mechanism with its settings, of whatever type, for set-up.
pub(super) trait Set {
    fn kind(&self) -> &'static MechanismKind;
    fn claims(&self) -> Claims;
    fn memory(&self, site: &Site) -> Option<Bytes>;
    fn sizes(&self, site: &Site) -> Vec<(&'static str, Bytes)>;
    fn runs_at(&self, switch: &str) -> bool;
    fn check(&self, context: &Context<'_>, cx: &mut Cx);
    fn at(&self, site: &Site) -> Option<MechanismState>;
}

/// Implementor of [`Set`] for a mechanism.
pub(super) struct Tuned<'a, M: Mechanism> {
    pub kind: &'static MechanismKind,
    pub params: &'a M::Params,
    pub wrap: fn(Box<M>) -> MechanismState,
}

impl<M: Mechanism> Set for Tuned<'_, M> {
    fn kind(&self) -> &'static MechanismKind {
        self.kind
    }

    fn claims(&self) -> Claims {
        M::claims(self.params)
    }

    fn memory(&self, site: &Site) -> Option<Bytes> {
        M::memory(self.params, site)
    }

    fn sizes(&self, site: &Site) -> Vec<(&'static str, Bytes)> {
        M::sizes(self.params, site)
    }

    fn runs_at(&self, switch: &str) -> bool {
        M::runs_at(self.params, switch)
    }

    fn check(&self, context: &Context<'_>, cx: &mut Cx) {
        M::check(self.params, context, cx);
    }

    fn at(&self, site: &Site) -> Option<MechanismState> {
        M::new(self.params, site).map(|state| (self.wrap)(Box::new(state)))
    }
}

macro_rules! registry {
    ($d:tt $( $(#[doc = $doc:expr])* $key:ident => $name:ident($params:ty, $state:ty) : [$($capability:ident),*], )*) => {
        params! {
            /// Mechanisms of switches beyond forwarding, queueing and marking: each is on if its table is present.
            pub struct Mechanisms {
                $( $(#[doc = $doc])* pub $key: Option<$params>; )*
            }
        }

        /// A mechanism's state at one switch.
        #[derive(Debug)]
        pub enum MechanismState {
            $( $(#[doc = $doc])* $name(Box<$state>), )*
        }

        $( impl Provides for $state {
            $( provide!($capability); )*
        } )*

        impl Mechanisms {
            /// The set without any mechanism.
            pub const NONE: Mechanisms = Mechanisms { $( $key: None, )* };

            /// All mechanisms, in order of the registry.
            pub const ALL: &'static [MechanismKind] = &[$( MechanismKind {
                key: stringify!($key),
                doc: &[$($doc),*],
                profile: &<$state as Mechanism>::PROFILE,
                group: <<$state as Mechanism>::Counts as fanin_params::Counters>::GROUP,
                zero: || CountGroup::of(&<<$state as Mechanism>::Counts as Default>::default()),
            }, )*];

            /// Mechanisms with a table in the scenario, in the order of the registry.
            fn set(&self) -> Vec<Box<dyn Set + '_>> {
                let mut kinds = Mechanisms::ALL.iter();
                let mut found: Vec<Box<dyn Set + '_>> = Vec::new();
                $( if let (Some(kind), Some(params)) = (kinds.next(), &self.$key) {
                    found.push(Box::new(Tuned::<$state> { kind, params, wrap: MechanismState::$name }));
                } )*
                found
            }
        }

        impl MechanismState {
            /// Place of the mechanism in the registry.
            fn number(&self) -> usize {
                enum Place { $( $name, )* }
                match self { $( MechanismState::$name(_) => Place::$name as usize, )* }
            }
        }

        /// Runs an expression for the mechanism of a state.
        macro_rules! dispatch {
            ($d state:expr, $d m:ident => $d body:expr) => {
                match $d state { $( MechanismState::$name($d m) => $d body, )* }
            };
        }
        use dispatch;
    };
}
pub(super) use registry;

/// Refuses a second mechanism that puts headers into frames.
fn one_header(first: Option<&str>, second: &str, cx: &mut Cx) {
    if let Some(first) = first {
        let message = format!("puts headers into frames, as {first} does, and a frame has one at most");
        let accepted = format!("either {first} or {second}");
        cx.key(second, |cx| cx.error(None, message, Some(accepted)).severity);
    }
}

fn keys(fits: impl Fn(&Profile) -> bool) -> Vec<&'static str> {
    Mechanisms::ALL.iter().filter(|kind| fits(kind.profile)).map(|kind| kind.key).collect()
}

/// Registry: look-up of mechanisms by key and by EtherType.
impl Mechanisms {
    /// One trial for each mechanism, with the mechanism's signals.
    pub fn trials(at: &Ground) -> Vec<(Trial, Signals)> {
        let trial = |kind: &MechanismKind| {
            let own = (format!("switch.mechanisms.{}", kind.key), "{}".to_string());
            let trial = Trial::new("switch.mechanisms", kind.key, kind.doc, own, (kind.profile.authors)(at));
            (trial, kind.profile.signals)
        };
        Mechanisms::ALL.iter().map(trial).collect()
    }

    /// Keys of the mechanisms that can run at combined input- and output-queued switches.
    pub fn that_run_at_combined() -> Vec<&'static str> {
        keys(|profile| profile.at_combined)
    }

    /// Key of the mechanism that would let ports write telemetry.
    pub fn that_writes_telemetry() -> Option<&'static str> {
        keys(|profile| profile.telemetry).first().copied()
    }

    /// Keys of the mechanisms that can keep packets from being dropped.
    pub fn that_keep_all() -> Vec<&'static str> {
        keys(|profile| profile.keeps_all)
    }

    /// Keys of the mechanisms that send packets to neighbours that send them back.
    pub fn that_send_back() -> Vec<&'static str> {
        keys(|profile| profile.returns)
    }

    /// True if one of these mechanisms sends packets to neighbours that send them back.
    pub(crate) fn sends_back_at(keys: &[&str]) -> bool {
        Self::that_send_back().iter().any(|key| keys.contains(key))
    }

    /// Keys of the mechanisms that would send hosts this signal.
    pub fn that_signal(signal: Signals) -> Vec<&'static str> {
        keys(|profile| profile.signals.has(signal))
    }

    /// Signal in a message to a host, with the name of the mechanism's group of counters; `None` where no mechanism defines its
    /// EtherType.
    pub fn signal(control: &Control, length: u8) -> Option<(&'static str, Signal)> {
        let kind = MechanismKind::that_owns(control.ether_type)?;
        let messages = kind.profile.messages?;
        Some((kind.group, (messages.signal)(control.body(length))))
    }

    /// Pause that a message asks of a host's NIC; `None`: the message is for an endpoint, or for nobody.
    pub fn pause(control: &Control, length: u8) -> Option<Pause> {
        let pauses = MechanismKind::that_owns(control.ether_type)?.profile.pauses()?;
        (pauses.read)(control.body(length))
    }

    /// Message by which a host's NIC asks its switch to pause; `None`: no mechanism has such messages.
    pub fn ask(pause: &Pause) -> Option<Message> {
        let pauses = Mechanisms::ALL.iter().find_map(|kind| kind.profile.pauses())?;
        Some((pauses.write)(pause))
    }
}

/// Questions to the set of mechanisms that a scenario enables.
impl Mechanisms {
    fn profiles(&self) -> impl Iterator<Item = &'static MechanismKind> {
        self.set().into_iter().map(|set| set.kind()).collect::<Vec<_>>().into_iter()
    }

    fn claims(&self) -> impl Iterator<Item = Claims> {
        self.set().into_iter().map(|set| set.claims()).collect::<Vec<_>>().into_iter()
    }

    /// Memory of the mechanisms that run at a switch; `None`: that of one of them is not known.
    pub fn memory(&self, site: &Site) -> Option<Bytes> {
        let mut sum = Bytes(0);
        for set in self.set().into_iter().filter(|set| set.runs_at(&site.name)) {
            sum += set.memory(site)?;
        }
        Some(sum)
    }

    /// Sizes of the mechanisms that run at a switch, with the key of each ([`Mechanism::sizes`]).
    pub fn sizes(&self, site: &Site) -> Vec<(&'static str, &'static str, Bytes)> {
        let at = self.set().into_iter().filter(|set| set.runs_at(&site.name));
        at.flat_map(|set| set.sizes(site).into_iter().map(move |(name, bytes)| (set.kind().key, name, bytes))).collect()
    }

    /// States of the mechanisms that run at a switch.
    pub fn at(&self, site: &Site) -> Vec<MechanismState> {
        self.set().into_iter().filter_map(|set| set.at(site)).collect()
    }

    /// Keys of the mechanisms that run at a switch of this name.
    pub fn keys_at(&self, switch: &str) -> Vec<&'static str> {
        self.set().into_iter().filter(|set| set.runs_at(switch)).map(|set| set.kind().key).collect()
    }

    /// Reports problems that show only beside the rest of the scenario.
    pub fn check(&self, context: &Context<'_>, cx: &mut Cx) {
        let mut with_headers = None;
        for kind in self.profiles().filter(|kind| kind.profile.headers.is_some()) {
            one_header(with_headers, kind.key, cx);
            with_headers = Some(kind.key);
        }
        for set in self.set() {
            cx.key(set.kind().key, |cx| set.check(context, cx));
        }
    }

    /// True if a mechanism may drop packets of one of these classes for want of room or by design, or of any class.
    pub fn drop_any_of(&self, classes: &[u8]) -> bool {
        let mask = classes.iter().fold(0, |mask, class| mask | 1 << (*class).min(7));
        self.claims().any(|claims| claims.drops == u8::MAX || claims.drops & mask != 0)
    }

    /// Keys of the mechanisms that send packets by ports that do not lead to their destination. `refuse`: ports refuse packets
    /// for want of room.
    pub(crate) fn that_stray(&self, refuse: bool) -> Vec<&'static str> {
        let strays = |strays| strays == Strays::Queued || refuse && strays == Strays::Refused;
        self.set().into_iter().filter(|set| strays(set.claims().strays)).map(|set| set.kind().key).collect()
    }

    /// Largest frame that may have a message at its end; `None` where no frame has.
    pub fn largest_frame(&self) -> Option<Bytes> {
        self.claims().filter_map(|claims| claims.largest_frame).max()
    }

    /// Bytes that headers add to a frame at most.
    pub fn header_bytes(&self) -> u16 {
        self.profiles().map(|kind| kind.profile.header_bytes()).max().unwrap_or(0)
    }

    /// Bytes that a frame may grow by at a switch: a header, or a record of telemetry.
    pub fn growth(&self) -> u16 {
        let record = if self.telemetry() { Stack::bytes(1) - Stack::bytes(0) } else { 0 };
        self.header_bytes().max(record)
    }

    /// Key of the one that puts headers into frames; `None` where none does.
    pub fn with_headers(&self) -> Option<&'static str> {
        self.profiles().find(|kind| kind.profile.headers.is_some()).map(|kind| kind.key)
    }

    /// Maker of the header that hosts put into each frame that they send.
    pub fn host_header(&self) -> Option<fn(&Sent) -> Shim> {
        self.profiles().find_map(|kind| kind.profile.headers?.of_host)
    }

    /// Amounts among the settings of all mechanisms, for the unit that they are in.
    pub fn amounts(&self) -> Vec<Amount> {
        self.claims().flat_map(|claims| claims.amounts).collect()
    }

    /// Keys of the mechanisms that cannot run at combined input- and output-queued switches.
    pub fn not_at_combined(&self) -> Vec<&'static str> {
        self.profiles().filter(|kind| !kind.profile.at_combined).map(|kind| kind.key).collect()
    }

    /// True if ports write telemetry into frames.
    pub fn telemetry(&self) -> bool {
        self.profiles().any(|kind| kind.profile.telemetry)
    }

    /// True if a mechanism records states of ports.
    pub fn states(&self) -> bool {
        self.profiles().any(|kind| kind.profile.states)
    }

    /// Classes whose packets mechanisms keep from being dropped for want of room, a bit each.
    pub fn lossless(&self) -> u8 {
        self.claims().fold(0, |all, claims| all | claims.lossless)
    }

    /// Memory of a switch in which packets are counted; `None` where no mechanism counts them.
    pub fn packet_memory(&self) -> Option<Bytes> {
        self.claims().filter_map(|claims| claims.packet_memory).min()
    }

    /// Signals that the mechanisms send to hosts.
    pub fn signals(&self) -> Signals {
        self.profiles().fold(Signals::NONE, |all, kind| all.with(kind.profile.signals))
    }
}

fn counts_of<M: Mechanism>(state: &M) -> CountGroup {
    CountGroup::of(&state.counts())
}

/// Hooks that each mechanism has.
impl MechanismState {
    /// Entry of the mechanism in the registry.
    pub fn kind(&self) -> &'static MechanismKind {
        &Mechanisms::ALL[self.number()]
    }

    /// Largest frame about which a port has to ask the mechanism before enqueueing; zero where it wants to know of none.
    pub fn offered_up_to(&self) -> u16 {
        match self.hooks().any(Hooks::BEFORE_PORTS) {
            true => self.overtakes(|m| m.largest()).unwrap_or(u16::MAX),
            false => 0,
        }
    }

    /// Largest values so far, each with its definition.
    pub fn largest_values(&self) -> Vec<(&'static CounterDef, u64)> {
        let values = self.peaks(|m| m.peaks()).unwrap_or_default();
        self.kind().profile.peaks.iter().zip(values).collect()
    }

    /// Hooks of the mechanism that the switch has to run.
    pub fn hooks(&self) -> Hooks {
        dispatch!(self, m => m.hooks())
    }

    /// Counters of the mechanism so far.
    pub fn counts(&self) -> CountGroup {
        dispatch!(self, m => counts_of(&**m))
    }

    /// Reasons for which the mechanism acted, each with its count.
    pub fn by_reason(&self) -> Vec<(&'static str, u64)> {
        dispatch!(self, m => m.by_reason())
    }

    /// Runs [`Mechanism::on_route`].
    pub fn on_route(&mut self, node: &mut dyn Node, p: &mut Arrival<'_>, to: PortNo, fx: &mut Effects) -> Verdict {
        dispatch!(self, m => m.on_route(node, p, to, fx))
    }

    /// Runs [`Mechanism::on_offer`].
    pub fn on_offer(&mut self, node: &mut dyn Node, p: &mut Arrival<'_>, port: PortNo, fx: &mut Effects) -> Verdict {
        dispatch!(self, m => m.on_offer(node, p, port, fx))
    }

    /// Runs [`Mechanism::on_refusal`].
    pub fn on_refusal(&mut self, node: &mut dyn Node, refused: &mut Refused<'_>, fx: &mut Effects) -> Verdict {
        dispatch!(self, m => m.on_refusal(node, refused, fx))
    }

    /// Runs [`Mechanism::on_drop`].
    pub fn on_drop(&mut self, node: &mut dyn Node, dropped: &Dropped<'_>, fx: &mut Effects) {
        dispatch!(self, m => m.on_drop(node, dropped, fx))
    }

    /// Runs [`Mechanism::on_link`].
    pub fn on_link(&mut self, node: &mut dyn Node, port: PortNo, up: bool, fx: &mut Effects) {
        dispatch!(self, m => m.on_link(node, port, up, fx))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{bench, site};
    use super::*;
    use crate::DropReason;
    use fanin_packet::{Envelope, PacketId};
    use fanin_params::{Param, Value};
    use fanin_units::{BitRate, Span};

    /// Crates that do not know the mechanisms ask for them by what they can do.
    #[test]
    fn mechanisms_are_found_by_capability() {
        assert_eq!(Mechanisms::that_keep_all(), ["pfc"]);
        assert_eq!(Mechanisms::that_send_back(), ["rimm"]);
        assert_eq!(Mechanisms::that_run_at_combined().len(), 4);
        assert_eq!(Mechanisms::that_writes_telemetry(), Some("int"));
    }

    fn parsed(key: &str, table: Vec<(String, Value)>) -> Mechanisms {
        let table = table.into_iter().map(|(name, value)| (name, value.into())).collect();
        let all = Value::Table([(key.to_string(), Value::Table(table).into())].into());
        Mechanisms::parse(&all.into(), &mut Cx::new()).expect(key)
    }

    fn with(keys: &[&str]) -> Mechanisms {
        let table = |key: &&str| ((*key).to_string(), Value::Table(Vec::new()).into());
        Mechanisms::parse(&Value::Table(keys.iter().map(table).collect()).into(), &mut Cx::new()).expect("defaults")
    }

    /// What a set is asked is the sum, the largest or any of what its members say; without a member it is nothing.
    #[test]
    fn a_set_says_what_its_members_say() {
        let site = site(&["h0", "s1", "s2"]);
        let none = Mechanisms::NONE;
        assert_eq!((none.memory(&site), none.largest_frame(), none.packet_memory()), (Some(Bytes(0)), None, None));
        assert_eq!((none.header_bytes(), none.growth(), none.with_headers(), none.lossless()), (0, 0, None, 0));
        assert!(!none.telemetry() && !none.states() && none.host_header().is_none() && !none.drop_any_of(&[0, 7]));
        assert_eq!((none.signals(), none.amounts(), none.sizes(&site)), (Signals::NONE, vec![], vec![]));
        assert_eq!(
            (with(&["pdn"]).memory(&site), with(&["trimming"]).memory(&site)),
            (Some(Bytes(3 * 2_000)), Some(Bytes(3 * 72_000)))
        );
        assert_eq!(with(&["pdn", "trimming"]).memory(&site), Some(Bytes(3 * 74_000)));
        assert_eq!(with(&["vertigo", "trimming"]).memory(&site), None);
        assert_eq!(with(&["dibs", "int", "pabo"]).memory(&site), Some(Bytes(0)));
        let both = with(&["pdn", "trimming"]).signals();
        assert!(both.has(Signals::LOST) && both.has(Signals::TRIMMED) && !with(&["pdn"]).signals().has(Signals::TRIMMED));
        let int = with(&["int"]);
        assert_eq!((int.growth(), int.header_bytes(), int.with_headers()), (Stack::bytes(1) - Stack::bytes(0), 0, Some("int")));
        assert!(int.telemetry() && !int.states() && with(&["rcm"]).states() && int.host_header().is_none());
        let pabo = with(&["pabo"]);
        assert_eq!((pabo.growth(), pabo.header_bytes(), with(&["pabo", "vertigo"]).header_bytes()), (4, 4, 8));
        assert_eq!(pabo.amounts(), [Amount::Packets(50), Amount::Packets(100)]);
        assert!(!pabo.telemetry() && with(&["vertigo"]).host_header().is_some());
        assert_eq!(with(&["dibs", "trimming", "pfc"]).not_at_combined(), ["dibs", "trimming"]);
        assert_eq!(
            [true, false].map(|refuse| with(&["dibs", "pabo", "vertigo", "pdn"]).that_stray(refuse)),
            [vec!["pabo", "dibs", "vertigo"], vec!["pabo"]]
        );
        let still = parsed("vertigo", vec![("choices".to_string(), Value::Int(0))]);
        assert!(still.that_stray(true).is_empty(), "it deflects nothing");
    }

    /// Hosts understand messages by their EtherTypes alone.
    #[test]
    fn messages_are_known_by_their_ether_types() {
        for (i, kind) in Mechanisms::ALL.iter().enumerate() {
            for ether_type in kind.profile.messages.map_or(&[][..], |messages| messages.ether_types) {
                let control = Control::new(*ether_type, &[0; 4]);
                assert_eq!(Mechanisms::signal(&control, 4).map(|(group, _)| group), Some(kind.group));
                assert!(Mechanisms::ALL.iter().enumerate().all(|(j, other)| other.profile.owns(*ether_type) == (i == j)));
            }
        }
        assert!(Mechanisms::signal(&Control::new(0x0800, &[0; 4]), 4).is_none());
        let mut pause = Pause::default();
        pause.0[3] = Some(7);
        let asked = Mechanisms::ask(&pause).expect("pfc has such messages");
        assert_eq!(Mechanisms::pause(&asked.control, asked.envelope.header), Some(pause));
        assert_eq!(Mechanisms::pause(&Control::new(0x0800, &[0; 4]), 4), None);
    }

    /// What a state is asked, its mechanism answers.
    #[test]
    fn a_state_asks_its_mechanism() {
        let mut states = with(&["dibs"]).at(&site(&["h0", "s1"]));
        let (mut node, mut fx, mut e) = (bench(2), Effects::default(), Envelope::default());
        let packet = Arrival { id: PacketId(1), envelope: &mut e, from: None, shim: &mut None };
        let (port, reason) = (PortNo(0), DropReason::BUFFER_FULL);
        let mut refused = Refused { packet, port, view: node.view(port), reason, room: true, detoured: false };
        assert_eq!(states[0].on_refusal(&mut node, &mut refused, &mut fx), Verdict::Detour(PortNo(1)));
        let dropped = Dropped { packet: PacketId(1), envelope: &Envelope::default(), reference: None, reason: DropReason::TTL };
        states[0].on_drop(&mut node, &dropped, &mut fx);
        let counts: Vec<u64> = states[0].counts().counters.iter().map(|(_, count)| *count).collect();
        assert_eq!((states[0].by_reason(), counts), (vec![("buffer_full", 1)], vec![1, 0, 0, 1]));
    }

    /// A mechanism is tried with a table of its own, and with what its authors set besides.
    #[test]
    fn each_mechanism_has_a_trial() {
        let marks = Some(Amount::Packets(60));
        let ground = Ground { rate: BitRate::from_gbps(10), rtt: Span::from_us(8), buffer: None, marks };
        let trials = Mechanisms::trials(&ground);
        assert_eq!(trials.len(), Mechanisms::ALL.len());
        let of = |key: &str| trials.iter().find(|(trial, _)| trial.kind == key).expect(key);
        let settings = |key: &str| {
            let all = of(key).0.settings.iter().map(|(path, value)| format!("{path} = {value}"));
            let mut all: Vec<String> = all.collect();
            assert_eq!(all.remove(0), format!("switch.mechanisms.{key} = {{}}"));
            all
        };
        assert_eq!((settings("trimming"), settings("pfc")), (vec![], vec!["switch.buffer = \"unlimited\"".to_string()]));
        let detours = ["switch.mechanisms.rimm.alpha = \"50 packets\"", "switch.routing = \"by_destination\""];
        assert_eq!(
            (settings("rimm"), settings("dibs").len(), settings("vertigo").len()),
            (detours.map(String::from).to_vec(), 3, 3)
        );
        assert_eq!((of("pdn").1, of("trimming").1), (Signals::LOST, Signals::TRIMMED));
    }

    /// A switch that `unaware` names has no state of those mechanisms that have this setting, others have one.
    #[test]
    fn unaware_switches_run_nothing() {
        let at = Site { name: "s9".to_string(), ..site(&["h0", "s1"]) };
        for key in ["dibs", "int", "pabo", "pdn", "rcm", "rimm", "trimming", "vertigo"] {
            let unaware = |name: &str| {
                let names = Value::List(vec![Value::Text(name.to_string()).into()]);
                parsed(key, vec![("unaware".to_string(), names)])
            };
            assert_eq!(
                (unaware("s9").keys_at("s9"), unaware("s9").at(&at).len(), unaware("s9").memory(&at)),
                (vec![], 0, Some(Bytes(0)))
            );
            assert_eq!((unaware("s8").keys_at("s9"), unaware("s8").at(&at).len()), (vec![key], 1));
        }
    }

    /// A line of the registry that forgets a capability would make its hooks do nothing.
    #[test]
    fn hooks_and_profiles_have_their_capabilities() {
        for kind in Mechanisms::ALL {
            let table = Value::Table([(kind.key.to_string(), Value::Table(Vec::new()).into())].into());
            let mechanisms = Mechanisms::parse(&table.into(), &mut Cx::new()).expect(kind.key);
            let states = mechanisms.at(&site(&["h0", "s1", "s2"]));
            let [m] = &states[..] else { panic!("{} of {}", states.len(), kind.key) };
            assert_eq!((m.kind().key, m.counts()), (kind.key, kind.counts()));
            assert_eq!(mechanisms.keys_at("s9"), [kind.key]);
            let capabilities = [
                (Hooks::TURN, m.sends(|_| ())),
                (Hooks::EGRESS, m.watches(|_| ())),
                (Hooks::DEPARTED, m.packet_memory(|_| ())),
                (Hooks::CROSSING, m.packet_memory(|_| ())),
                (Hooks::RANKS, m.ranks(|_| ())),
            ];
            for (hook, capability) in capabilities {
                assert!(!m.hooks().any(hook) || capability.is_some(), "{}: {hook:?}", kind.key);
            }
            assert_eq!(m.telemetry(|_| ()).is_some(), kind.profile.telemetry, "{}", kind.key);
            assert_eq!(m.largest_values().len(), kind.profile.peaks.len(), "{}", kind.key);
            assert!(m.hooks() != Hooks::NONE, "{}: it does nothing", kind.key);
            let largest = m.overtakes(|m| m.largest());
            assert_eq!(m.offered_up_to(), if m.hooks().any(Hooks::BEFORE_PORTS) { largest.unwrap_or(u16::MAX) } else { 0 });
        }
    }
}
