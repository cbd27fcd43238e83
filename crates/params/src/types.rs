//! Parsing, printing and schema of each type of parameter.

use crate::{Cx, Node, Schema, Value};
use fanin_units::{Amount, BitRate, Bytes, Quantity, QuantityError, Span, Time};
use std::collections::BTreeMap;

/// A type of parameter: parsed from a document, printed to one, and described by a schema.
pub trait Param: Sized {
    /// Schema of the type: its shape and documentation.
    fn schema() -> Schema;

    /// Parses `node`; on failure records every problem in `cx` and returns `None`.
    fn parse(node: &Node, cx: &mut Cx) -> Option<Self>;

    /// The value as a document writes it; parsing that gives an equal value.
    fn to_value(&self) -> Value;

    /// True if written documents leave the value out (an absent option).
    fn is_absent(&self) -> bool {
        false
    }

    /// Value of a missing key, for types that have one by nature (an option).
    fn absent() -> Option<Self> {
        None
    }
}

/// The value of an empty table: the default of every key.
///
/// # Panics
/// Where a key has no default.
pub fn defaults<T: Param>() -> T {
    let mut cx = Cx::new();
    let found = T::parse(&Value::Table(Vec::new()).into(), &mut cx);
    found.unwrap_or_else(|| panic!("a key without a default: {:?}", cx.into_problems()))
}

fn wrong_type(node: &Node, cx: &mut Cx, accepted: &str) {
    let kind = node.value.kind();
    cx.error(Some(node), format!("is {kind}"), Some(accepted.to_string()));
}

impl Param for bool {
    fn schema() -> Schema {
        Schema::Bool
    }
    fn parse(node: &Node, cx: &mut Cx) -> Option<Self> {
        if let Value::Bool(b) = node.value {
            return Some(b);
        }
        wrong_type(node, cx, "true or false");
        None
    }
    fn to_value(&self) -> Value {
        Value::Bool(*self)
    }
}

impl Param for f64 {
    fn schema() -> Schema {
        Schema::Float
    }
    fn parse(node: &Node, cx: &mut Cx) -> Option<Self> {
        match node.value {
            Value::Float(x) if x.is_finite() => return Some(x),
            Value::Int(n) => return Some(n as f64),
            Value::Float(_) => {
                cx.error(Some(node), "is not finite", Some("a finite number".to_string()));
            }
            _ => wrong_type(node, cx, "a finite number"),
        }
        None
    }
    fn to_value(&self) -> Value {
        Value::Float(*self)
    }
}

macro_rules! integer {
    ($($ty:ty),*) => {$(
        impl Param for $ty {
            fn schema() -> Schema {
                Schema::Int
            }
            fn parse(node: &Node, cx: &mut Cx) -> Option<Self> {
                let accepted = || format!("an integer from 0 to {}", (<$ty>::MAX as u64).min(i64::MAX as u64));
                match node.value {
                    Value::Int(n) => {
                        if let Ok(n) = <$ty>::try_from(n) {
                            return Some(n);
                        }
                        cx.error(Some(node), if n < 0 { "is negative" } else { "is too large" }, Some(accepted()));
                    }
                    _ => wrong_type(node, cx, &accepted()),
                }
                None
            }
            fn to_value(&self) -> Value {
                Value::Int(i64::try_from(*self).unwrap_or(i64::MAX))
            }
        }
    )*};
}
integer!(u8, u16, u32, u64);

impl Param for String {
    fn schema() -> Schema {
        Schema::Text
    }
    fn parse(node: &Node, cx: &mut Cx) -> Option<Self> {
        if let Value::Text(text) = &node.value {
            return Some(text.clone());
        }
        wrong_type(node, cx, "a string");
        None
    }
    fn to_value(&self) -> Value {
        Value::Text(self.clone())
    }
}

/// The unit that differs only in case from `unit`, if there is one; otherwise the list of all units.
fn known_unit(unit: &str, units: &[(&str, u64)]) -> String {
    match units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)) {
        Some((name, _)) => format!("did you mean '{name}'?"),
        None => format!("units: {}", units.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")),
    }
}

/// `number` with the unit of the first example, and with the units of examples that count something else (`20 packets`).
fn with_unit(number: &str, examples: &str) -> String {
    let unit = |example: &&str| example.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').to_string();
    let units: Vec<String> = examples.split('"').skip(1).step_by(2).map(|example| unit(&example)).collect();
    let counts = units.iter().enumerate().filter(|(i, unit)| *i == 0 || unit.starts_with(' '));
    let written: Vec<String> = counts.map(|(_, unit)| format!("\"{number}{unit}\"")).collect();
    let what = if written.len() > 1 { "whichever you mean" } else { "if that is what you mean" };
    format!("write {} {what}", written.join(" or "))
}

fn parse_quantity<T>(
    node: &Node,
    cx: &mut Cx,
    (what, examples): (&str, &str),
    read: impl Fn(&str) -> Result<T, QuantityError>,
    units: &[(&str, u64)],
) -> Option<T> {
    let accepted = format!("{what} such as {examples}");
    match &node.value {
        Value::Text(text) => match read(text) {
            Ok(value) => return Some(value),
            Err(_) if text.trim_start().starts_with('-') => {
                cx.error(Some(node), "is negative", Some(accepted));
            }
            Err(error) => {
                let problem = cx.error(Some(node), error.to_string(), Some(accepted));
                problem.suggestion = match error {
                    QuantityError::UnknownUnit(unit) => Some(known_unit(&unit, units)),
                    QuantityError::MissingUnit => Some(with_unit(text.trim(), examples)),
                    _ => None,
                };
            }
        },
        Value::Int(n) if *n < 0 => {
            cx.error(Some(node), "is negative", Some(accepted));
        }
        Value::Int(n) => {
            cx.error(Some(node), "has no unit", Some(accepted)).suggestion = Some(with_unit(&n.to_string(), examples));
        }
        _ => wrong_type(node, cx, &accepted),
    }
    None
}

macro_rules! quantity {
    ($($ty:ty),*) => {$(
        impl Param for $ty {
            fn schema() -> Schema {
                Schema::Quantity { what: <$ty as Quantity>::WHAT, examples: <$ty as Quantity>::EXAMPLES }
            }
            fn parse(node: &Node, cx: &mut Cx) -> Option<Self> {
                parse_quantity(node, cx, (<$ty as Quantity>::WHAT, <$ty as Quantity>::EXAMPLES), <$ty as Quantity>::read, <$ty as Quantity>::UNITS)
            }
            fn to_value(&self) -> Value {
                Value::Text(self.to_string())
            }
        }
    )*};
}
quantity!(Span, Time, Bytes, BitRate);

const AMOUNT: (&str, &str) = ("an amount of buffer", "\"512KB\", \"65 packets\", \"20000 cells\"");

impl Param for Amount {
    fn schema() -> Schema {
        Schema::Quantity { what: AMOUNT.0, examples: AMOUNT.1 }
    }
    fn parse(node: &Node, cx: &mut Cx) -> Option<Self> {
        parse_quantity(
            node,
            cx,
            AMOUNT,
            Amount::read,
            &[("B", 1), ("KB", 0), ("KiB", 0), ("MB", 0), ("MiB", 0), ("packets", 0), ("cells", 0)],
        )
    }
    fn to_value(&self) -> Value {
        Value::Text(self.to_string())
    }
}

impl<T: Param> Param for Option<T> {
    fn schema() -> Schema {
        Schema::Optional(Box::new(T::schema()))
    }
    fn parse(node: &Node, cx: &mut Cx) -> Option<Self> {
        T::parse(node, cx).map(Some)
    }
    fn to_value(&self) -> Value {
        self.as_ref().map_or(Value::Table(Vec::new()), Param::to_value)
    }
    fn is_absent(&self) -> bool {
        self.is_none()
    }
    fn absent() -> Option<Self> {
        Some(None)
    }
}

impl<T: Param> Param for Vec<T> {
    fn schema() -> Schema {
        Schema::List(Box::new(T::schema()))
    }
    fn parse(node: &Node, cx: &mut Cx) -> Option<Self> {
        let Value::List(items) = &node.value else {
            wrong_type(node, cx, "a list");
            return None;
        };
        let parsed: Vec<Option<T>> = items.iter().enumerate().map(|(i, item)| cx.index(i, |cx| T::parse(item, cx))).collect();
        parsed.into_iter().collect()
    }
    fn to_value(&self) -> Value {
        Value::List(self.iter().map(|item| item.to_value().into()).collect())
    }
}

impl<T: Param> Param for BTreeMap<String, T> {
    fn schema() -> Schema {
        Schema::Map(Box::new(T::schema()))
    }
    fn parse(node: &Node, cx: &mut Cx) -> Option<Self> {
        let Value::Table(entries) = &node.value else {
            wrong_type(node, cx, "a table");
            return None;
        };
        let parsed: Vec<Option<(String, T)>> =
            entries.iter().map(|(key, item)| cx.key(key, |cx| T::parse(item, cx).map(|v| (key.clone(), v)))).collect();
        parsed.into_iter().collect()
    }
    fn to_value(&self) -> Value {
        Value::Table(self.iter().map(|(key, item)| (key.clone(), item.to_value().into())).collect())
    }
}
