//! Declaration of parameters, each written once.
//!
//! A mechanism declares its parameters with [`params!`], [`choice!`] or [`names!`] beside its code. From that one
//! definition come parsing that collects every error, defaults, ranges, the JSON Schema, the typed Python classes and the
//! reference page. A document is a tree of [`Node`]s, whatever it was read from.

mod counters;
mod error;
mod macros;
mod node;
pub mod pattern;
mod range;
mod schema;
mod trial;
mod types;

pub use counters::{CounterDef, CounterKind, Counters};
pub use error::{shown, Cx, Problem, Severity, UNKNOWN_KEY};
pub use node::{Node, Value};
pub use range::{describe_range, range_bounds, report_outside, BoundValue, Outside, RangeCheck};
pub use schema::{join_choice, join_docs, ChoiceSchema, Field, NamesSchema, Schema, StructSchema, Variant};
pub use trial::{Ground, Setting, Trial};
pub use types::{defaults, Param};

#[cfg(test)]
mod tests;
