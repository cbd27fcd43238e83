//! Declaration of counters: each once, beside the code that counts; tables, summary, report and reference page use that
//! declaration.

/// Meaning of a counter that is not zero: a step, a success or a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterKind {
    /// The counter counts one step of a mechanism, neither success nor failure.
    Step,
    /// The counter counts cases in which the mechanism did what it is for.
    Success,
    /// The counter counts cases in which the mechanism could not do what it is for.
    Failure,
}

impl CounterKind {
    /// Name of the kind in JSON documents.
    pub const fn name(self) -> &'static str {
        match self {
            CounterKind::Step => "step",
            CounterKind::Success => "success",
            CounterKind::Failure => "failure",
        }
    }
}

/// Definition of one counter: name, description, kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterDef {
    /// Key of the counter in summary.json.
    pub name: &'static str,
    /// One-sentence description for the reference page and the report.
    pub doc: &'static str,
    /// Kind of the counter; a one-line summary shows successes and failures only.
    pub kind: CounterKind,
}

impl CounterDef {
    /// Defines a counter that is neither success nor failure.
    pub const fn step(name: &'static str, doc: &'static str) -> CounterDef {
        CounterDef { name, doc, kind: CounterKind::Step }
    }

    /// Defines a counter of failures.
    pub const fn failure(name: &'static str, doc: &'static str) -> CounterDef {
        CounterDef { name, doc, kind: CounterKind::Failure }
    }
}

/// A group of counters that summary.json shows under one key.
pub trait Counters: Copy + Default {
    /// Key of the group in summary.json; groups with equal keys are added up.
    const GROUP: &'static str;

    /// One-sentence description of the group.
    const DOC: &'static str;

    /// Definitions of the group's counters, in display order.
    fn defs() -> &'static [CounterDef];

    /// Values of the group's counters, in the order of [`Counters::defs`].
    fn values(&self) -> Vec<u64>;

    /// Adds the counts of `other`, for example of another port, to these.
    fn add(&mut self, other: &Self);
}

/// Declares a group of counters; `: success` or `: failure` behind a counter gives its [`CounterKind`],
/// [`Step`](CounterKind::Step) if absent.
///
/// ```
/// use fanin_params::{CounterKind, Counters};
/// fanin_params::counters! {
///     /// What became of detours.
///     pub struct Detours in "detours" {
///         /// Packets that took one.
///         taken,
///         /// Packets whose detour was full.
///         refused: failure,
///     }
/// }
/// let mut all = Detours::default();
/// all.add(&Detours { taken: 2, refused: 1 });
/// assert_eq!((Detours::GROUP, all.values()), ("detours", vec![2, 1]));
/// assert_eq!(Detours::DOC, "What became of detours.");
/// let refused = Detours::defs()[1];
/// assert_eq!((refused.doc, refused.kind), ("Packets whose detour was full.", CounterKind::Failure));
/// ```
#[macro_export]
macro_rules! counters {
    (@kind) => { $crate::CounterKind::Step };
    (@kind success) => { $crate::CounterKind::Success };
    (@kind failure) => { $crate::CounterKind::Failure };
    (
        $(#[doc = $doc:expr])*
        pub struct $name:ident in $group:literal {
            $( $(#[doc = $field_doc:expr])* $field:ident $(: $kind:ident)?, )*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $( $(#[doc = $field_doc])* pub $field: u64, )*
        }

        impl $crate::Counters for $name {
            const GROUP: &'static str = $group;
            const DOC: &'static str = ::core::concat!($($doc),*).trim_ascii();

            fn defs() -> &'static [$crate::CounterDef] {
                const DEFS: &[$crate::CounterDef] = &[$(
                    $crate::CounterDef {
                        name: stringify!($field),
                        doc: ::core::concat!($($field_doc),*).trim_ascii(),
                        kind: $crate::counters!(@kind $($kind)?),
                    },
                )*];
                DEFS
            }

            fn values(&self) -> Vec<u64> {
                vec![$( self.$field, )*]
            }

            fn add(&mut self, other: &Self) {
                $( self.$field += other.$field; )*
            }
        }
    };
}
