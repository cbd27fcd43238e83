//! Generators of schema, Python classes and reference page, all from the one definition of each parameter.

mod catalogue;
mod json_schema;
mod python;
mod reference;

pub use json_schema::json_schema_of;
pub(crate) use json_schema::{sorted, to_json};
pub use python::python_types_of;
pub use reference::reference_of;

use crate::sections::SAMPLING;
use crate::ScenarioDoc;
use fanin_params::{Node, Param, Value};
use fanin_units::{BitRate, Bytes, Quantity, Span, Time};

/// JSON Schema of scenarios, which `fanin schema` prints and the site has.
pub fn json_schema() -> String {
    json_schema_of(&ScenarioDoc::schema(), "scenario.schema.json", "Fanin scenario")
}

/// Reference page of scenarios, in Markdown: `docs/scenario.md`.
pub fn reference() -> String {
    reference_of(&ScenarioDoc::schema(), include_str!("generate/preface.md"))
}

/// Source of the typed Python classes of scenarios: `python/fanin/_scenario_types.py`.
pub fn python_types() -> String {
    python_types_of(&ScenarioDoc::schema())
}

/// A kind of quantity, for JSON Schema and Python.
struct QuantityKind {
    /// Name of its type: `Size`, `BitRate` …
    name: String,
    /// Regular expression that every accepted text matches; a matching value may still be too fine or too large.
    pattern: String,
}

/// Noun phrase of an amount of buffer, and its units besides those of a size.
const AMOUNT: &str = "an amount of buffer";
const COUNTED: &[&str] = &["packets", "packet", "pkts", "p", "cells", "cell"];

/// The kind of quantity that messages call `what` ("a size").
fn quantity(what: &str) -> QuantityKind {
    let words = what.split_once(' ').map_or(what, |(_, words)| words);
    let name = words.replace('"', "").split(' ').map(capitalised).collect();
    let units: Vec<&str> = [
        (Span::WHAT, Span::UNITS, &[][..]),
        (Time::WHAT, Time::UNITS, &[]),
        (BitRate::WHAT, BitRate::UNITS, &[]),
        (Bytes::WHAT, Bytes::UNITS, &[]),
        (AMOUNT, Bytes::UNITS, COUNTED),
        (SAMPLING, Span::UNITS, &[]),
    ]
    .iter()
    .filter(|(of, ..)| *of == what)
    .flat_map(|(_, units, more)| units.iter().map(|(unit, _)| *unit).chain(more.iter().copied()))
    .collect();
    let unit = if units.is_empty() { "\\S+".to_string() } else { format!("({})", units.join("|")) };
    let off = if what == SAMPLING { "off|" } else { "" };
    QuantityKind { name, pattern: format!("^({off}\\s*([0-9][0-9_]*(\\.[0-9_]*)?|\\.[0-9][0-9_]*)\\s*{unit}\\s*)$") }
}

/// Removes the marks from a doc comment that only rustdoc reads.
fn plain(doc: &str) -> String {
    doc.replace("\\[", "[").replace("\\]", "]")
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Converts a name to camel case: `leaf_spine` to `LeafSpine`.
fn camel(name: &str) -> String {
    name.split(['_', '-']).map(capitalised).collect()
}

/// Prints a value on one line, in TOML syntax.
fn inline(value: &Value) -> String {
    match value {
        Value::Bool(b) => b.to_string(),
        Value::Int(n) => n.to_string(),
        Value::Float(x) => format!("{x:?}"),
        Value::Text(text) => format!("{text:?}"),
        Value::List(items) => format!("[{}]", items.iter().map(|item: &Node| inline(&item.value)).collect::<Vec<_>>().join(", ")),
        Value::Table(entries) if entries.is_empty() => "{}".to_string(),
        Value::Table(entries) => {
            format!(
                "{{ {} }}",
                entries.iter().map(|(key, item)| format!("{key} = {}", inline(&item.value))).collect::<Vec<_>>().join(", ")
            )
        }
    }
}

#[cfg(test)]
mod tests;
