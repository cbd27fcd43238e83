//! Generator of the reference page, in Markdown.

use super::catalogue::{required, Catalogue, Type};
use super::inline;
use fanin_params::{ChoiceSchema, Field, NamesSchema, Schema, StructSchema, Value};

/// Text of the page: `preface`, then one section per type, the document itself first and the others in order of use.
pub fn reference_of(schema: &Schema, preface: &str) -> String {
    let catalogue = Catalogue::of(schema);
    let mut page = preface.trim_end().to_string();
    page.push_str("\n\n");
    for met in ordered(schema, &catalogue) {
        page.push_str(&format!("## {}\n{}", met.name, places(&met)));
        match &met.ty {
            Type::Table { body, .. } => section(&mut page, body, &catalogue),
            Type::Choice(choice) => choice_section(&mut page, &met.name, choice, &catalogue),
            Type::Names(names) => names_section(&mut page, names),
        }
    }
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

/// A type, and the paths at which it may occur.
struct Met {
    name: String,
    ty: Type,
    places: Vec<String>,
}

/// Types in reading order: each table is followed by the types of its keys.
fn ordered(schema: &Schema, catalogue: &Catalogue) -> Vec<Met> {
    let mut met = Vec::new();
    walk(schema, "", catalogue, &mut met);
    met
}

fn walk(schema: &Schema, place: &str, catalogue: &Catalogue, met: &mut Vec<Met>) {
    let (name, ty) = match schema {
        Schema::List(inner) => return walk(inner, &format!("{place}[]"), catalogue, met),
        Schema::Map(inner) => return walk(inner, &format!("{place}.NAME"), catalogue, met),
        Schema::Optional(inner) => return walk(inner, place, catalogue, met),
        Schema::Struct(body) => (catalogue.table_name(None, body), Type::Table { kind: None, body: body.clone() }),
        Schema::Choice(choice) => (catalogue.choice_name(choice), Type::Choice(choice.clone())),
        Schema::Names(names) => (catalogue.names_name(names), Type::Names(names.clone())),
        _ => return,
    };
    match met.iter_mut().find(|known| known.name == name) {
        Some(known) if known.places.iter().any(|known| known == place) => {}
        Some(known) => known.places.push(place.to_string()),
        None => met.push(Met { name: name.to_string(), ty, places: vec![place.to_string()] }),
    }
    let bodies: Vec<&StructSchema> = match schema {
        Schema::Struct(body) => vec![body],
        Schema::Choice(choice) => choice.variants.iter().map(|v| &v.body).collect(),
        _ => Vec::new(),
    };
    for field in bodies.iter().flat_map(|body| &body.fields) {
        let there = if place.is_empty() { field.name.to_string() } else { format!("{place}.{}", field.name) };
        walk(&field.schema, &there, catalogue, met);
    }
}

/// Largest number of paths of a type that are listed one by one.
const PLACES: usize = 6;

/// Sentence about the paths of a type: "At `switch.buffer`."
fn places(met: &Met) -> String {
    let named: Vec<String> =
        met.places.iter().filter(|place| !place.is_empty()).take(PLACES).map(|place| format!("`{place}`")).collect();
    match (named.is_empty(), met.places.len() > PLACES) {
        (true, _) => String::new(),
        (false, true) => format!("At {} and others.\n\n", named.join(", ")),
        (false, false) => format!("At {}.\n\n", named.join(", ")),
    }
}

fn section(page: &mut String, body: &StructSchema, catalogue: &Catalogue) {
    page.push_str(&format!("{}\n\n", body.doc));
    keys(page, &body.fields, catalogue);
}

fn choice_section(page: &mut String, name: &str, choice: &ChoiceSchema, catalogue: &Catalogue) {
    page.push_str(&format!("{}\n\n| `kind` | meaning |\n|---|---|\n", choice.doc));
    for variant in &choice.variants {
        let default = if variant.default { " Where no `kind` is given." } else { "" };
        page.push_str(&format!("| `\"{}\"` | {}{default} |\n", variant.kind, cell(&variant.doc)));
    }
    page.push('\n');
    let shared = shared_keys(choice);
    if shared > 0 {
        page.push_str(&format!("### {name}: keys of every kind\n"));
        keys(page, &choice.variants[0].body.fields[..shared], catalogue);
    }
    for variant in &choice.variants {
        let own = &variant.body.fields[shared..];
        if own.is_empty() {
            continue;
        }
        page.push_str(&format!("### {name}: `kind = \"{}\"`\n{}\n\n", variant.kind, variant.body.doc));
        keys(page, own, catalogue);
    }
}

/// Number of leading keys that all alternatives share.
fn shared_keys(choice: &ChoiceSchema) -> usize {
    let Some((first, rest)) = choice.variants.split_first() else { return 0 };
    if rest.is_empty() {
        return 0;
    }
    let same = |i: &usize| rest.iter().all(|v| v.body.fields.get(*i) == first.body.fields.get(*i));
    (0..first.body.fields.len()).take_while(same).count()
}

fn names_section(page: &mut String, names: &NamesSchema) {
    page.push_str(&format!("{}\n\n| name | meaning |\n|---|---|\n", names.doc));
    for (value, doc) in &names.values {
        page.push_str(&format!("| `\"{value}\"` | {} |\n", cell(doc)));
    }
    page.push('\n');
}

fn keys(page: &mut String, fields: &[Field], catalogue: &Catalogue) {
    if fields.is_empty() {
        page.push_str("No keys.\n\n");
        return;
    }
    page.push_str("| key | type | default | meaning |\n|---|---|---|---|\n");
    for field in fields {
        let range = field.range.as_deref().map(|range| format!(", {}", range_text(range))).unwrap_or_default();
        page.push_str(&format!(
            "| `{}` | {}{range} | {} | {} |\n",
            field.name,
            type_text(&field.schema, catalogue),
            default_text(field),
            cell(&field.doc)
        ));
    }
    page.push('\n');
}

/// Shortens a range: "from 0 to 10" to "0 … 10", "at least 2" to "≥ 2".
fn range_text(range: &str) -> String {
    match range.strip_prefix("from ").and_then(|ends| ends.split_once(" to ")) {
        Some((low, high)) => format!("{low} … {}", high.replace("below ", "< ")),
        None => range.replace("at least ", "≥ ").replace("at most ", "≤ ").replace("above ", "> "),
    }
}

fn default_text(field: &Field) -> String {
    if required(field) {
        return "**required**".to_string();
    }
    match &field.default {
        None => "–".to_string(),
        Some(_) if matches!(field.schema, Schema::Optional(_)) => "–".to_string(),
        // A table of defaults repeats what its own section says.
        Some(Value::Table(entries)) => match entries.iter().find(|(key, _)| key == "kind") {
            Some((_, kind)) => format!("`{}`", inline(&kind.value)),
            None => "`{}`".to_string(),
        },
        Some(value) => format!("`{}`", cell(&inline(value))),
    }
}

fn type_text(schema: &Schema, catalogue: &Catalogue) -> String {
    let link = |name: &str| format!("[{name}](#{})", name.to_lowercase());
    match schema {
        Schema::Bool => "boolean".to_string(),
        Schema::Int => "integer".to_string(),
        Schema::Float => "number".to_string(),
        Schema::Text => "string".to_string(),
        Schema::Quantity { what, .. } => what.split_once(' ').map_or(*what, |(_, words)| words).to_string(),
        Schema::List(inner) => format!("list of {}", type_text(inner, catalogue)),
        Schema::Map(inner) => format!("name → {}", type_text(inner, catalogue)),
        Schema::Optional(inner) => type_text(inner, catalogue),
        Schema::Struct(body) => link(catalogue.table_name(None, body)),
        Schema::Choice(choice) => link(catalogue.choice_name(choice)),
        Schema::Names(names) => link(catalogue.names_name(names)),
    }
}

/// Formats text for a table cell: one line, bars escaped.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}
