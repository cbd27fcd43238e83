//! Ranges that parameters must lie in.

use crate::{Param, Value};
use fanin_units::{BitRate, Bytes, Span, Time};
use std::fmt::Display;
use std::ops::{Bound, RangeBounds};

/// Whether a value, or each value inside an option or list, lies in a range of `B`.
pub trait RangeCheck<B> {
    /// True when every contained value lies in `range`.
    fn in_range(&self, range: &dyn Fn(&B) -> bool) -> bool;
}

impl<B> RangeCheck<B> for B {
    fn in_range(&self, range: &dyn Fn(&B) -> bool) -> bool {
        range(self)
    }
}

impl<B> RangeCheck<B> for Option<B> {
    fn in_range(&self, range: &dyn Fn(&B) -> bool) -> bool {
        self.as_ref().is_none_or(range)
    }
}

impl<B> RangeCheck<B> for Vec<B> {
    fn in_range(&self, range: &dyn Fn(&B) -> bool) -> bool {
        self.iter().all(range)
    }
}

/// A range in words: "from 1 to 10", "at least 1ns", "below 1".
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

/// A number at the end of a range, as documents write it.
pub trait BoundValue {
    /// The number.
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

/// An integer literal whose type nothing else fixes.
impl BoundValue for i32 {
    fn bound_value(&self) -> Value {
        Value::Int(i64::from(*self))
    }
}

/// Both ends of a range.
pub fn range_bounds<T: BoundValue, R: RangeBounds<T>>(range: &R) -> (Bound<Value>, Bound<Value>) {
    (range.start_bound().map(T::bound_value), range.end_bound().map(T::bound_value))
}
