//! Generator of the typed Python classes of a document: a frozen dataclass for each table.
//!
//! A plain dictionary stands for a table everywhere, since files give those: `{"kind": "leaf_spine", "leaves": 4}` for
//! `LeafSpine(leaves=4)`. Editors complete the class; a dictionary is checked by the scenario, with all its errors at once.
//! `to_dict()` gives the document without the keys that were not set.

use super::catalogue::{bare, required, Catalogue, Kind, Type};
use super::{inline, plain, quantity};
use fanin_params::{ChoiceSchema, Field, NamesSchema, Schema, StructSchema, Value};

const HEADER: &str = r#""""Typed classes of the scenario document.

Generated from the definitions in the Rust crates by `fanin-scenario`; do not edit (docs/scenario.md says how to regenerate).

Every table is a frozen dataclass (`LeafSpine(leaves=4)`), and a plain dictionary may stand for any of them. Keys that are not
given keep the default that their docstring states; `to_dict()` leaves them out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeAlias


def _plain(value: object) -> Any:
    if isinstance(value, Table):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


@dataclasses.dataclass(frozen=True, kw_only=True)
class Table:
    """A table of the document."""

    def to_dict(self) -> dict[str, Any]:
        """The document form, without keys that were not set."""
        result: dict[str, Any] = {}
        kind = getattr(type(self), "kind", None)
        if kind is not None:
            result["kind"] = kind
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value is not None:
                result[field.name.rstrip("_")] = _plain(value)
        return result


"#;

/// Reserved words of Python; a field of such a name gets a trailing underscore.
const KEYWORDS: &[&str] = &[
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else",
    "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise",
    "return", "try", "while", "with", "yield",
];

/// Annotation of a plain dictionary, which may stand for any table.
const DICTIONARY: &str = "Mapping[str, Any]";

/// Text of the Python module.
pub fn python_types_of(schema: &Schema) -> String {
    let catalogue = Catalogue::of(schema);
    let mut module = HEADER.to_string();
    for (name, examples) in quantities(&catalogue) {
        module.push_str(&format!("{name}: TypeAlias = str\n"));
        doc(&mut module, "", &format!("Text with a unit, such as {examples}."));
        module.push_str("\n\n");
    }
    for (name, ty) in catalogue.types() {
        match ty {
            Type::Table { kind, body } => table(&mut module, name, *kind, body, &catalogue),
            Type::Choice(choice) => alias(&mut module, name, choice, &catalogue),
            Type::Names(names) => literals(&mut module, name, names),
        }
    }
    module.push_str("__all__ = [\n    \"Table\",\n");
    for (name, _) in catalogue.types() {
        module.push_str(&format!("    \"{name}\",\n"));
    }
    module.push_str("]\n");
    module
}

/// Quantities that the types use: alias and examples.
fn quantities(catalogue: &Catalogue) -> Vec<(String, &'static str)> {
    fn find(schema: &Schema, found: &mut Vec<(String, &'static str)>) {
        match schema {
            Schema::Quantity { what, examples } => {
                let name = quantity(what).name;
                if !found.iter().any(|(known, _)| *known == name) {
                    found.push((name, examples));
                }
            }
            Schema::List(inner) | Schema::Map(inner) | Schema::Optional(inner) => find(inner, found),
            _ => {}
        }
    }
    let mut found = Vec::new();
    for (_, ty) in catalogue.types() {
        if let Type::Table { body, .. } = ty {
            body.fields.iter().for_each(|field| find(&field.schema, &mut found));
        }
    }
    found
}

/// Writes a docstring.
fn doc(module: &mut String, indent: &str, text: &str) {
    let safe = plain(text).replace('\\', "\\\\").replace("\"\"\"", "'''");
    let mut lines = safe.lines();
    let first = lines.next().unwrap_or_default();
    let rest: Vec<&str> = lines.collect();
    // A quote right before the closing ones would end the string early.
    let close = |line: &str| if line.ends_with('"') { " \"\"\"" } else { "\"\"\"" };
    if rest.is_empty() {
        module.push_str(&format!("{indent}\"\"\"{first}{}\n", close(first)));
        return;
    }
    module.push_str(&format!("{indent}\"\"\"{first}\n"));
    for line in rest {
        let line = line.trim_end();
        module.push_str(&if line.is_empty() { "\n".to_string() } else { format!("{indent}{line}\n") });
    }
    module.push_str(&format!("{indent}\"\"\"\n"));
}

fn table(module: &mut String, name: &str, kind: Option<Kind>, body: &StructSchema, catalogue: &Catalogue) {
    module.push_str(&format!("@dataclasses.dataclass(frozen=True, kw_only=True)\nclass {name}(Table):\n"));
    let about = if body.doc.is_empty() { name } else { &body.doc };
    doc(module, "    ", about);
    if let Some(kind) = kind {
        let kind = kind.name;
        module.push_str(&format!("\n    kind: ClassVar[Literal[\"{kind}\"]] = \"{kind}\"\n"));
    }
    for field in &body.fields {
        let key = if KEYWORDS.contains(&field.name) { format!("{}_", field.name) } else { field.name.to_string() };
        let ty = type_text(&field.schema, catalogue);
        let annotation = if required(field) { ty } else { format!("{ty} | None = None") };
        module.push_str(&format!("\n    {key}: {annotation}\n"));
        doc(module, "    ", &field_doc(field));
    }
    module.push_str("\n\n");
}

fn field_doc(field: &Field) -> String {
    let text = field.doc.clone();
    let default = match &field.default {
        _ if matches!(field.schema, Schema::Optional(_)) => None,
        Some(Value::Table(entries)) if entries.iter().all(|(key, _)| key != "kind") => None,
        Some(value) => Some(inline(value)),
        None => Some("must be given".to_string()),
    };
    let facts: Vec<String> = [
        default.map(|value| if required(field) { "Must be given.".to_string() } else { format!("Default: {value}.") }),
        field.range.as_ref().map(|range| format!("Accepted: {range}.")),
    ]
    .into_iter()
    .flatten()
    .collect();
    if facts.is_empty() {
        return text;
    }
    let facts = facts.join(" ");
    // One line where all of it fits between quotes, behind the indent of a class.
    let line = format!("{text} {facts}");
    match text.lines().count() == 1 && 4 + line.chars().count() + 7 <= COLUMNS {
        true => line,
        false => format!("{text}\n\n{facts}"),
    }
}

/// A value and all lines of its meaning, as an item of a list.
fn item(value: &str, meaning: &str) -> String {
    format!("- `{value}`: {}", meaning.replace('\n', "\n  "))
}

fn alias(module: &mut String, name: &str, choice: &ChoiceSchema, catalogue: &Catalogue) {
    let class = |variant| catalogue.table_name(Some(Kind::of(variant)), &variant.body).to_string();
    let mut parts: Vec<String> = choice.variants.iter().map(class).collect();
    parts.push(DICTIONARY.to_string());
    let bare: Vec<String> = choice.variants.iter().filter(|v| bare(&v.body)).map(|v| format!("\"{}\"", v.kind)).collect();
    if !bare.is_empty() {
        parts.push(format!("Literal[{}]", bare.join(", ")));
    }
    module.push_str(&union(name, &parts));
    let kinds: Vec<String> = choice.variants.iter().map(|v| item(v.kind, &v.doc)).collect();
    doc(module, "", &format!("{}\n\n{}", choice.doc, kinds.join("\n")));
    module.push_str("\n\n");
}

/// Longest line, as `ruff format` is configured in pyproject.toml.
const COLUMNS: usize = 132;

/// Alias of a union, laid out as `ruff format` does: on one line, in parentheses on one line, or with one line for each part.
fn union(name: &str, parts: &[String]) -> String {
    let line = parts.join(" | ");
    let head = format!("{name}: TypeAlias = ");
    match line.len() {
        n if head.len() + n <= COLUMNS => format!("{head}{line}\n"),
        n if 4 + n <= COLUMNS => format!("{head}(\n    {line}\n)\n"),
        _ => format!("{head}(\n    {}\n)\n", parts.join("\n    | ")),
    }
}

fn literals(module: &mut String, name: &str, names: &NamesSchema) {
    let values: Vec<String> = names.values.iter().map(|(value, _)| format!("\"{value}\"")).collect();
    module.push_str(&format!("{name}: TypeAlias = Literal[{}]\n", values.join(", ")));
    let meanings: Vec<String> = names.values.iter().map(|(value, doc)| item(value, doc)).collect();
    doc(module, "", &format!("{}\n\n{}", names.doc, meanings.join("\n")));
    module.push_str("\n\n");
}

fn type_text(schema: &Schema, catalogue: &Catalogue) -> String {
    match schema {
        Schema::Bool => "bool".to_string(),
        Schema::Int => "int".to_string(),
        Schema::Float => "float".to_string(),
        Schema::Text => "str".to_string(),
        Schema::Quantity { what, .. } => quantity(what).name,
        Schema::List(inner) => format!("Sequence[{}]", type_text(inner, catalogue)),
        Schema::Map(inner) => format!("Mapping[str, {}]", type_text(inner, catalogue)),
        Schema::Optional(inner) => type_text(inner, catalogue),
        Schema::Struct(body) => format!("{} | {DICTIONARY}", catalogue.table_name(None, body)),
        Schema::Choice(choice) => catalogue.choice_name(choice).to_string(),
        Schema::Names(names) => catalogue.names_name(names).to_string(),
    }
}
