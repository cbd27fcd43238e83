//! Counters: each is declared once, beside the code that counts, with what it means; tables, summary, report and the
//! reference page come from that.

/// What it means that a counter is not zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterKind {
    /// One step of many.
    Step,
    /// The mechanism did what it is for.
    Success,
    /// It could not.
    Failure,
}

impl CounterKind {
    /// As documents write it.
    pub const fn name(self) -> &'static str {
        match self {
            CounterKind::Step => "step",
            CounterKind::Success => "success",
            CounterKind::Failure => "failure",
        }
    }
}

/// What a counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterDef {
    /// As summary.json has it.
    pub name: &'static str,
    /// One sentence, as the reference and the report have it.
    pub doc: &'static str,
    /// Successes and failures are what a one-line summary shows.
    pub kind: CounterKind,
}

impl CounterDef {
    /// A counter that is neither success nor failure.
    pub const fn step(name: &'static str, doc: &'static str) -> CounterDef {
        CounterDef { name, doc, kind: CounterKind::Step }
    }

    /// A counter of failures.
    pub const fn failure(name: &'static str, doc: &'static str) -> CounterDef {
        CounterDef { name, doc, kind: CounterKind::Failure }
    }
}

/// A group of counters.
pub trait Counters: Copy + Default {
    /// The key under which summary.json has the group. Groups of the same name are one.
    const GROUP: &'static str;

    /// What the group is about.
    const DOC: &'static str;

    /// Their definitions, in the order in which they are shown.
    fn defs() -> &'static [CounterDef];

    /// Their values, in the same order.
    fn values(&self) -> Vec<u64>;

    /// Adds those of another place.
    fn add(&mut self, other: &Self);
}

/// Declares a group of counters; `success` or `failure` behind one says what it means that it is not zero.
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
