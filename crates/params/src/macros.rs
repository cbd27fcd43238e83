//! The three declaration macros of parameters: `params!`, `choice!` and `names!`.

/// Declares a table of parameters.
///
/// ```
/// fanin_params::params! {
///     /// A leaky bucket.
///     pub struct Bucket {
///         /// Depth. Made up for this example.
///         pub depth: u32 = 8, in 1..=64;
///         /// Where it leaks to; must be given.
///         pub target: String;
///     }
/// }
/// ```
/// `= value` is the default, without it the key must be given (an `Option` is absent by default); `in range` bounds it.
/// `pub struct Name over function { … }`: `function(&Node) -> Name` gives the defaults instead, chosen by the document
/// itself (a profile).
/// `pub struct Name, with field: Choice { … }`: the table also holds the keys of one alternative of a [`choice!`], named by
/// `kind` in the same table; the schema is that choice with these keys in front of each alternative's own.
/// ```
/// fanin_params::params! { /// Sounds once.
///     pub struct Bell { /// How loud.
///         pub volume: u32 = 3; } }
/// fanin_params::choice! {
///     /// What wakes.
///     pub enum Alarm {
///         /// A bell.
///         "bell" => Bell(Bell),
///     }
/// }
/// fanin_params::params! {
///     /// `[[alarm]]` with `kind = "bell"`, `hour = 7`, `volume = 5`.
///     pub struct Entry, with alarm: Alarm {
///         /// When, for every kind.
///         pub hour: u32;
///     }
/// }
/// ```
#[macro_export]
macro_rules! params {
    (
        $(#[doc = $doc:expr])*
        pub struct $name:ident $(over $base:path)? $(, with $rest:ident : $choice:ty)? {
            $(
                $(#[doc = $field_doc:expr])*
                pub $field:ident : $ty:ty $(= $default:expr)? $(, in $range:expr)? ;
            )*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $( $(#[doc = $field_doc])* pub $field: $ty, )*
            $(
                /// The settings that depend on `kind`.
                pub $rest: $choice,
            )?
        }

        impl $name {
            /// Schema of this table: its keys and their documentation.
            pub fn struct_schema() -> $crate::StructSchema {
                $crate::StructSchema {
                    name: stringify!($name),
                    doc: $crate::join_docs(&[$($doc),*]),
                    fields: vec![$(
                        $crate::Field {
                            name: stringify!($field),
                            doc: $crate::join_docs(&[$($field_doc),*]),
                            schema: <$ty as $crate::Param>::schema(),
                            default: $crate::params!(@default_value $ty $(, $default)?),
                            range: $crate::params!(@range_text $($range)?),
                            bounds: $crate::params!(@range_bounds $($range)?),
                        },
                    )*],
                }
            }

            /// Parses a table; the keys in `reserved` are left to the caller.
            pub fn parse_table(node: &$crate::Node, cx: &mut $crate::Cx, reserved: &[&str]) -> Option<Self> {
                let known: &[&str] = &[$(stringify!($field)),*];
                $(
                    let keys_of_kind = <$choice>::keys_of(node);
                    let all_known: Vec<&str> = known.iter().copied().chain(keys_of_kind.iter().copied()).collect();
                    let known = all_known.as_slice();
                )?
                let $crate::Value::Table(entries) = &node.value else {
                    let kind = node.value.kind();
                    cx.error(Some(node), format!("is {kind}"), Some(format!("a table with the keys {}", known.join(", "))));
                    return None;
                };
                #[allow(unused_variables)]
                let before = cx.count();
                for (key, entry) in entries {
                    if !known.contains(&key.as_str()) && !reserved.contains(&key.as_str()) {
                        let named = $crate::Node { value: $crate::Value::Text(key.clone()), line: entry.line };
                        let given = key.clone();
                        cx.key(key, |cx| {
                            cx.unknown(Some(&named), "key", &given, known);
                            cx.meant_by(&given, &Self::struct_schema().fields);
                        });
                    }
                }
                $( <$choice>::name_kinds(node, before, cx); )?
                #[allow(unused_variables)]
                let base: Option<Self> = $crate::params!(@base node $(, $base)?);
                $(
                    let $field: Option<$ty> = match node.get(stringify!($field)) {
                        Some(entry) => cx.key(stringify!($field), |cx| {
                            let value = $crate::params!(@parse $ty, entry, cx $(, $range)?)?;
                            $crate::params!(@check value, entry, cx $(, $range)?);
                            Some(value)
                        }),
                        None => {
                            let from_base = base.as_ref().map(|b| b.$field.clone());
                            let fallback: Option<$ty> = from_base.or_else(|| $crate::params!(@default $ty $(, $default)?));
                            if fallback.is_none() {
                                cx.key(stringify!($field), |cx| cx.error(None, "is missing", None).line = node.line);
                            }
                            fallback
                        }
                    };
                )*
                $( let $rest = <$choice>::parse_within(node, cx); )?
                Some(Self { $($field: $field?,)* $($rest: $rest?)? })
            }

            /// The table's entries as a document writes them; absent options are left out.
            pub fn table_value(&self) -> Vec<(String, $crate::Node)> {
                #[allow(unused_mut)]
                let mut entries = Vec::new();
                $(
                    if !$crate::Param::is_absent(&self.$field) {
                        entries.push((stringify!($field).to_string(), $crate::Param::to_value(&self.$field).into()));
                    }
                )*
                $(
                    if let $crate::Value::Table(rest) = $crate::Param::to_value(&self.$rest) {
                        entries.extend(rest);
                    }
                )?
                entries
            }
        }

        impl $crate::Param for $name {
            fn schema() -> $crate::Schema {
                $crate::params!(@schema Self::struct_schema() $(, $choice)?)
            }
            fn parse(node: &$crate::Node, cx: &mut $crate::Cx) -> Option<Self> {
                Self::parse_table(node, cx, &[])
            }
            fn to_value(&self) -> $crate::Value {
                $crate::Value::Table(self.table_value())
            }
        }
    };

    (@schema $own:expr) => { $crate::Schema::Struct($own) };
    (@schema $own:expr, $choice:ty) => { $crate::join_choice($own, <$choice as $crate::Param>::schema()) };
    (@default_value $ty:ty) => {
        <$ty as $crate::Param>::absent().map(|v| $crate::Param::to_value(&v))
    };
    (@default_value $ty:ty, $default:expr) => {{
        let value: $ty = $default;
        Some($crate::Param::to_value(&value))
    }};
    (@range_text) => { None };
    (@range_text $range:expr) => { Some($crate::describe_range(&$range)) };
    (@range_bounds) => { None };
    (@range_bounds $range:expr) => { Some($crate::range_bounds(&$range)) };
    (@check $value:ident, $entry:ident, $cx:ident) => {};
    (@check $value:ident, $entry:ident, $cx:ident, $range:expr) => {
        let range = $range;
        let outside = $crate::RangeCheck::outside(&$value, &|v| ::std::ops::RangeBounds::contains(&range, v));
        if $crate::report_outside($entry, &outside, &$crate::describe_range(&range), $cx) {
            return None;
        }
    };
    (@parse $ty:ty, $entry:ident, $cx:ident) => { <$ty as $crate::Param>::parse($entry, $cx) };
    (@parse $ty:ty, $entry:ident, $cx:ident, $range:expr) => {{
        let before = $cx.count();
        let read = <$ty as $crate::Param>::parse($entry, $cx);
        if read.is_none() {
            $cx.narrow(before, &$crate::describe_range(&$range));
        }
        read
    }};
    (@base $node:ident) => { None };
    (@base $node:ident, $base:path) => { Some($base($node)) };
    (@default $ty:ty) => { <$ty as $crate::Param>::absent() };
    (@default $ty:ty, $default:expr) => { Some($default) };
}

/// Declares a choice between tables, distinguished by `kind`; a bare string chooses with all defaults.
///
/// `pub enum Name, kind "red"`: a table without `kind` is that. `pub enum Name, meaning function`: `function(&str)` says what is probably
/// meant by a kind that there is not, where its letters do not: names that other simulators and devices use.
///
/// ```
/// fanin_params::params! { /// No parameters.
///     pub struct DropTail { } }
/// fanin_params::params! { /// Random early detection.
///     pub struct Red { /// Lower threshold.
///         pub min: u32 = 5; } }
/// fanin_params::choice! {
///     /// How packets are refused.
///     pub enum Admission {
///         /// When the buffer is full.
///         "drop_tail" => DropTail(DropTail),
///         /// Early and at random.
///         "red" => Red(Red),
///     }
/// }
/// ```
#[macro_export]
macro_rules! choice {
    (
        $(#[doc = $doc:expr])*
        pub enum $name:ident $(, kind $default:literal)? $(, meaning $meaning:path)? {
            $( $(#[doc = $variant_doc:expr])* $kind:literal => $variant:ident($body:ty), )*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $name {
            $( $(#[doc = $variant_doc])* $variant($body), )*
        }

        impl $name {
            /// Every `kind` of this choice.
            pub const KINDS: &'static [&'static str] = &[$($kind),*];

            /// The `kind` of a table that names none; empty if `kind` is required.
            const DEFAULT_KIND: &'static [&'static str] = &[$($default)?];

            /// The `kind` by which documents name this alternative.
            pub fn kind(&self) -> &'static str {
                match self { $( Self::$variant(_) => $kind, )* }
            }

            /// Keys that `node` may have given its `kind`, `kind` included; the keys of all kinds if it names none.
            pub fn keys_of(node: &$crate::Node) -> Vec<&'static str> {
                let chosen = Self::kind_of(node);
                let mut keys = vec!["kind"];
                $(
                    if chosen.is_none_or(|kind| kind == $kind) {
                        let own = <$body>::struct_schema().fields;
                        let new: Vec<&str> = own.iter().map(|field| field.name).filter(|name| !keys.contains(name)).collect();
                        keys.extend(new);
                    }
                )*
                keys
            }

            /// The valid `kind` that `node` names or has by default.
            fn kind_of(node: &$crate::Node) -> Option<&str> {
                let given = node.get("kind").map_or(Self::DEFAULT_KIND.first().copied(), $crate::Node::text);
                given.filter(|kind| Self::KINDS.contains(kind))
            }

            /// Completes the unknown keys of `node` among the problems after the first `before`: names the kinds that have
            /// such a key.
            pub fn name_kinds(node: &$crate::Node, before: usize, cx: &mut $crate::Cx) {
                if let Some(kind) = Self::kind_of(node).filter(|_| cx.count() > before) {
                    let kinds =
                        [$(($kind, <$body>::struct_schema().fields.iter().map(|field| field.name).collect())),*];
                    cx.name_kinds(before, kind, &kinds);
                }
            }

            /// Parses a table that also holds keys of the surrounding table, which the caller checks.
            pub fn parse_within(node: &$crate::Node, cx: &mut $crate::Cx) -> Option<Self> {
                let others: Vec<&str> = match &node.value {
                    $crate::Value::Table(entries) => entries.iter().map(|(key, _)| key.as_str()).collect(),
                    _ => Vec::new(),
                };
                Self::parse_reserving(node, cx, &others)
            }

            fn parse_reserving(node: &$crate::Node, cx: &mut $crate::Cx, reserved: &[&str]) -> Option<Self> {
                let (kind, table) = match &node.value {
                    $crate::Value::Text(kind) => (kind.clone(), $crate::Node { value: $crate::Value::Table(Vec::new()), line: node.line }),
                    $crate::Value::Table(_) => match node.get("kind") {
                        Some(entry) => match entry.text() {
                            Some(kind) => (kind.to_string(), node.clone()),
                            None => {
                                cx.key("kind", |cx| cx.error(Some(entry), "is not a string", Some(Self::KINDS.join(", "))).severity);
                                return None;
                            }
                        },
                        None if !Self::DEFAULT_KIND.is_empty() => (Self::DEFAULT_KIND[0].to_string(), node.clone()),
                        None => {
                            let line = node.line;
                            cx.key("kind", |cx| cx.error(None, "is missing", Some(Self::KINDS.join(", "))).line = line);
                            return None;
                        }
                    },
                    other => {
                        let message = format!("is {}", other.kind());
                        cx.error(Some(node), message, Some(format!("one of {}, or a table with that `kind`", Self::KINDS.join(", "))));
                        return None;
                    }
                };
                match kind.as_str() {
                    $(
                        $kind => {
                            let before = cx.count();
                            let read = <$body>::parse_table(&table, cx, reserved).map(Self::$variant);
                            Self::name_kinds(&table, before, cx);
                            read
                        }
                    )*
                    _ => {
                        let given = node.get("kind").unwrap_or(node).clone();
                        cx.unknown(Some(&given), "kind", &kind, Self::KINDS);
                        $(
                            if let (Some(problem), Some(meant)) = (cx.last(), $meaning(&kind.to_lowercase())) {
                                problem.suggestion = Some(meant.to_string());
                            }
                        )?
                        None
                    }
                }
            }
        }

        impl $crate::Param for $name {
            fn schema() -> $crate::Schema {
                $crate::Schema::Choice($crate::ChoiceSchema {
                    name: stringify!($name),
                    doc: $crate::join_docs(&[$($doc),*]),
                    variants: vec![$(
                        $crate::Variant {
                            kind: $kind,
                            default: Self::DEFAULT_KIND.contains(&$kind),
                            doc: $crate::join_docs(&[$($variant_doc),*]),
                            body: <$body>::struct_schema(),
                        },
                    )*],
                })
            }

            fn parse(node: &$crate::Node, cx: &mut $crate::Cx) -> Option<Self> {
                Self::parse_reserving(node, cx, &["kind"])
            }

            fn to_value(&self) -> $crate::Value {
                match self { $(
                    Self::$variant(body) => {
                        let mut entries = vec![("kind".to_string(), $crate::Value::Text($kind.to_string()).into())];
                        entries.extend(body.table_value());
                        $crate::Value::Table(entries)
                    }
                )* }
            }
        }
    };
}

/// Declares an enum whose values documents write as names.
#[macro_export]
macro_rules! names {
    (
        $(#[doc = $doc:expr])*
        pub enum $name:ident {
            $( $(#[doc = $value_doc:expr])* $text:literal => $value:ident, )*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $( $(#[doc = $value_doc])* $value, )*
        }

        impl $name {
            /// Every name of this enum.
            pub const NAMES: &'static [&'static str] = &[$($text),*];

            /// The name of this value in documents.
            pub fn name(self) -> &'static str {
                match self { $( Self::$value => $text, )* }
            }
        }

        impl $crate::Param for $name {
            fn schema() -> $crate::Schema {
                $crate::Schema::Names($crate::NamesSchema {
                    name: stringify!($name),
                    doc: $crate::join_docs(&[$($doc),*]),
                    values: vec![$( ($text, $crate::join_docs(&[$($value_doc),*])), )*],
                })
            }
            fn parse(node: &$crate::Node, cx: &mut $crate::Cx) -> Option<Self> {
                match node.text() {
                    $( Some($text) => Some(Self::$value), )*
                    Some(other) => {
                        let other = other.to_string();
                        cx.unknown(Some(node), "name", &other, Self::NAMES);
                        None
                    }
                    None => {
                        let message = format!("is {}", node.value.kind());
                        cx.error(Some(node), message, Some(Self::NAMES.join(", ")));
                        None
                    }
                }
            }
            fn to_value(&self) -> $crate::Value {
                $crate::Value::Text(self.name().to_string())
            }
        }
    };
}
