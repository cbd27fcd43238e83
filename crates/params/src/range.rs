//! Range checks of parameters.

use crate::{Cx, Node, Param, Value};
use fanin_units::{BitRate, Bytes, Span, Time};
use std::fmt::Display;
use std::ops::{Bound, RangeBounds};

/// The part of a value that lies outside a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outside {
    /// A single value; `true` if it lies outside.
    Value(bool),
    /// Indices of the list entries that lie outside.
    Entries(Vec<usize>),
}

/// Range check of a value, an optional value or each entry of a list against a range of `B`.
pub trait RangeCheck<B> {
    /// Finds the part of this value that `range` does not contain.
    fn outside(&self, range: &dyn Fn(&B) -> bool) -> Outside;
}

impl<B> RangeCheck<B> for B {
    fn outside(&self, range: &dyn Fn(&B) -> bool) -> Outside {
        Outside::Value(!range(self))
    }
}

impl<B> RangeCheck<B> for Option<B> {
    fn outside(&self, range: &dyn Fn(&B) -> bool) -> Outside {
        Outside::Value(self.as_ref().is_some_and(|value| !range(value)))
    }
}

impl<B> RangeCheck<B> for Vec<B> {
    fn outside(&self, range: &dyn Fn(&B) -> bool) -> Outside {
        let entries = self.iter().enumerate();
        Outside::Entries(entries.filter(|(_, value)| !range(value)).map(|(i, _)| i).collect())
    }
}

/// Reports the values outside the range, one problem per list entry; true if there are any.
pub fn report_outside(node: &Node, outside: &Outside, accepted: &str, cx: &mut Cx) -> bool {
    const MESSAGE: &str = "is out of range";
    match outside {
        Outside::Value(false) => false,
        Outside::Value(true) => {
            cx.error(Some(node), MESSAGE, Some(accepted.to_string()));
            true
        }
        Outside::Entries(places) => {
            for place in places {
                let entry = match &node.value {
                    Value::List(entries) => entries.get(*place),
                    _ => None,
                };
                cx.index(*place, |cx| cx.error(entry.or(Some(node)), MESSAGE, Some(accepted.to_string())).severity);
            }
            !places.is_empty()
        }
    }
}

/// Describes a range in words: "from 1 to 10", "at least 1ns", "below 1".
pub fn describe_range<T: Display, R: RangeBounds<T>>(range: &R) -> String {
    match (range.start_bound(), range.end_bound()) {
        (Bound::Included(a), Bound::Included(b)) => format!("from {a} to {b}"),
        (Bound::Included(a), Bound::Excluded(b)) => format!("from {a} to below {b}"),
        (Bound::Included(a), Bound::Unbounded) => format!("at least {a}"),
        (Bound::Unbounded, Bound::Included(b)) => format!("at most {b}"),
        (Bound::Unbounded, Bound::Excluded(b)) => format!("below {b}"),
        (Bound::Excluded(a), Bound::Included(b)) => format!("above {a}, at most {b}"),
        (Bound::Excluded(a), Bound::Excluded(b)) => format!("above {a}, below {b}"),
        (Bound::Excluded(a), Bound::Unbounded) => format!("above {a}"),
        (Bound::Unbounded, Bound::Unbounded) => "anything".to_string(),
    }
}

/// A type of range bound that can be converted to a document value.
pub trait BoundValue {
    /// The bound as a document value.
    fn bound_value(&self) -> Value;
}

macro_rules! bound_value {
    ($($ty:ty),*) => {$(
        impl BoundValue for $ty {
            fn bound_value(&self) -> Value {
                Param::to_value(self)
            }
        }
    )*};
}
bound_value!(u8, u16, u32, u64, f64, Span, Time, Bytes, BitRate);

/// Integer literals default to `i32` where nothing else fixes their type.
impl BoundValue for i32 {
    fn bound_value(&self) -> Value {
        Value::Int(i64::from(*self))
    }
}

/// Lower and upper bound of a range as document values.
pub fn range_bounds<T: BoundValue, R: RangeBounds<T>>(range: &R) -> (Bound<Value>, Bound<Value>) {
    (range.start_bound().map(T::bound_value), range.end_bound().map(T::bound_value))
}
