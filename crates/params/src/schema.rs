//! Schema of parameters: the source of the JSON Schema, the Python classes and the reference page.

use crate::Value;
use std::ops::Bound;

/// Type and documentation of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Schema {
    Bool,
    Int,
    Float,
    Text,
    /// A number with a unit, written as a string.
    Quantity {
        what: &'static str,
        examples: &'static str,
    },
    List(Box<Schema>),
    /// A table with free keys, all of whose values have one schema.
    Map(Box<Schema>),
    /// A parameter that may be left out.
    Optional(Box<Schema>),
    Struct(StructSchema),
    Choice(ChoiceSchema),
    Names(NamesSchema),
}

/// A table with a fixed set of keys.
#[derive(Clone, Debug, PartialEq)]
pub struct StructSchema {
    pub name: &'static str,
    pub doc: String,
    pub fields: Vec<Field>,
}

/// One key of a [`StructSchema`].
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub name: &'static str,
    pub doc: String,
    pub schema: Schema,
    /// Default value; `None` if the key is required.
    pub default: Option<Value>,
    /// The accepted range in words, for messages and reference.
    pub range: Option<String>,
    /// Lower and upper bound of the accepted range; for a list, of each entry.
    pub bounds: Option<(Bound<Value>, Bound<Value>)>,
}

/// A choice between tables, distinguished by their key `kind`; an alternative whose keys all have defaults may be written as
/// its bare name.
#[derive(Clone, Debug, PartialEq)]
pub struct ChoiceSchema {
    pub name: &'static str,
    pub doc: String,
    pub variants: Vec<Variant>,
}

/// One alternative of a [`ChoiceSchema`].
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// Value of `kind` that selects this alternative.
    pub kind: &'static str,
    /// True if a table without `kind` selects this alternative.
    pub default: bool,
    pub doc: String,
    pub body: StructSchema,
}

/// An enum whose values are written as names.
#[derive(Clone, Debug, PartialEq)]
pub struct NamesSchema {
    pub name: &'static str,
    pub doc: String,
    /// Each name with its meaning.
    pub values: Vec<(&'static str, String)>,
}

/// Joins the lines of a doc comment; used by the declaration macros.
#[doc(hidden)]
pub fn join_docs(lines: &[&str]) -> String {
    lines.iter().map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n").trim().to_string()
}

/// Puts the keys of `own` in front of the keys of each alternative of `choice`; used by `params! { …, with … }`.
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
