//! What a parameter looks like: the source of the JSON Schema, the Python classes and the reference page.

use crate::Value;
use std::ops::Bound;

/// The shape of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Schema {
    Bool,
    Int,
    Float,
    Text,
    /// A string with a unit.
    Quantity {
        what: &'static str,
        examples: &'static str,
    },
    List(Box<Schema>),
    /// Name → value.
    Map(Box<Schema>),
    /// May be left out.
    Optional(Box<Schema>),
    Struct(StructSchema),
    Choice(ChoiceSchema),
    Names(NamesSchema),
}

/// A table with known keys.
#[derive(Clone, Debug, PartialEq)]
pub struct StructSchema {
    pub name: &'static str,
    pub doc: String,
    pub fields: Vec<Field>,
}

/// One key of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub name: &'static str,
    pub doc: String,
    pub schema: Schema,
    /// `None` when the key must be given.
    pub default: Option<Value>,
    /// The accepted range in words.
    pub range: Option<String>,
    /// Both ends of the accepted range; of a list, the range of its entries.
    pub bounds: Option<(Bound<Value>, Bound<Value>)>,
}

/// One of several tables, distinguished by their `kind`. Where all keys have defaults, the bare name will do.
#[derive(Clone, Debug, PartialEq)]
pub struct ChoiceSchema {
    pub name: &'static str,
    pub doc: String,
    pub variants: Vec<Variant>,
}

/// One alternative of a choice.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// The value of `kind`.
    pub kind: &'static str,
    /// Whether a table without `kind` is this.
    pub default: bool,
    pub doc: String,
    pub body: StructSchema,
}

/// One of several names.
#[derive(Clone, Debug, PartialEq)]
pub struct NamesSchema {
    pub name: &'static str,
    pub doc: String,
    /// Name and what it means.
    pub values: Vec<(&'static str, String)>,
}

/// Joins the lines of a doc comment; used by the macros.
#[doc(hidden)]
pub fn join_docs(lines: &[&str]) -> String {
    lines.iter().map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n").trim().to_string()
}

/// A choice with the keys of `own` in front of each alternative's; used by `params! { …, with … }`.
#[doc(hidden)]
pub fn join_choice(own: StructSchema, choice: Schema) -> Schema {
    let Schema::Choice(mut choice) = choice else { return Schema::Struct(own) };
    choice.name = own.name;
    choice.doc = own.doc;
    for variant in &mut choice.variants {
        variant.body.fields.splice(0..0, own.fields.iter().cloned());
    }
    Schema::Choice(choice)
}
