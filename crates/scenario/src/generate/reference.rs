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

/// Sentence about the paths of a type: "At `switch.buffer`." Of paths that end in the same key the first stands for all.
fn places(met: &Met) -> String {
    let mut named: Vec<&str> = Vec::new();
    for place in met.places.iter().filter(|place| !place.is_empty()) {
        if !named.iter().any(|known| last_key(known) == last_key(place)) {
            named.push(place);
        }
    }
    match named.is_empty() {
        true => String::new(),
        false => format!("At {}.\n\n", named.iter().map(|place| format!("`{place}`")).collect::<Vec<_>>().join(", ")),
    }
}

fn last_key(place: &str) -> &str {
    place.rsplit('.').next().unwrap_or(place)
}

/// Largest number of words of a sentence about a type that the row of its key already says.
const SAID_BY_ITS_KEY: usize = 12;

/// Text above the values of a type, unless it is one short sentence: that is what the row of its key says.
fn above(doc: &str) -> String {
    match doc.contains(". ") || doc.contains('\n') || doc.split_whitespace().count() > SAID_BY_ITS_KEY {
        true => format!("{doc}\n\n"),
        false => String::new(),
    }
}

/// Phrases that the page says once, above its tables or in its introduction; schema and Python classes keep them.
const SAID_ABOVE: &[(&str, &str)] = &[
    (", by name, `*` stands for anything", ", [by name](#how-values-are-written)"),
    (": `all`, `rack:N`, a host, `FIRST..LAST`; `!` before any of these excludes", ", [by name](#how-values-are-written)"),
    (", relative to the scenario's folder", ""),
    (" Off if absent.", ""),
];

/// Text of a key for the page.
fn said(doc: &str) -> String {
    SAID_ABOVE.iter().fold(cell(doc), |text, (phrase, link)| text.replace(phrase, link))
}

fn section(page: &mut String, body: &StructSchema, catalogue: &Catalogue) {
    page.push_str(&format!("{}\n\n", body.doc));
    keys(page, &body.fields, catalogue);
}

fn choice_section(page: &mut String, name: &str, choice: &ChoiceSchema, catalogue: &Catalogue) {
    page.push_str(&format!("{}| `kind` | meaning |\n|---|---|\n", above(&choice.doc)));
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
    let common = common_keys(choice, shared);
    if !common.is_empty() {
        page.push_str(&format!(
            "### {name}: keys of several kinds\n| key | kinds | type | default | meaning |\n|---|---|---|---|---|\n"
        ));
        for (field, kinds) in &common {
            let named: Vec<String> = kinds.iter().map(|kind| format!("`{kind}`")).collect();
            let named = if kinds.len() == choice.variants.len() { "all".to_string() } else { named.join(", ") };
            page.push_str(&row(field, Some(&named), catalogue));
        }
        page.push('\n');
    }
    for variant in &choice.variants {
        let (elsewhere, own): (Vec<&Field>, Vec<&Field>) =
            variant.body.fields[shared..].iter().partition(|field| common.iter().any(|(known, _)| known == *field));
        if own.is_empty() && elsewhere.is_empty() {
            continue;
        }
        page.push_str(&format!("### {name}: `kind = \"{}\"`\n", variant.kind));
        if cell(&variant.body.doc) != cell(&variant.doc) {
            page.push_str(&format!("{}\n\n", variant.body.doc));
        }
        if !own.is_empty() {
            keys(page, own.iter().copied(), catalogue);
        }
        if !elsewhere.is_empty() {
            let named: Vec<String> = elsewhere.iter().map(|field| format!("`{}`", field.name)).collect();
            page.push_str(&format!(
                "{} {}: [keys of several kinds](#{}-keys-of-several-kinds).\n\n",
                if own.is_empty() { "Keys" } else { "Also" },
                named.join(", "),
                name.to_lowercase()
            ));
        }
    }
}

/// Smallest number of words of a key's text that is told once for several alternatives.
const WORTH_TELLING_ONCE: usize = 7;

/// Keys that are the same in several alternatives, with the kinds of these; without the first `shared`, which all have.
fn common_keys(choice: &ChoiceSchema, shared: usize) -> Vec<(Field, Vec<&'static str>)> {
    let mut found: Vec<(Field, Vec<&'static str>)> = Vec::new();
    for variant in &choice.variants {
        for field in variant.body.fields[shared..].iter().filter(|f| f.doc.split_whitespace().count() >= WORTH_TELLING_ONCE) {
            match found.iter_mut().find(|(known, _)| known == field) {
                Some((_, kinds)) => kinds.push(variant.kind),
                None => found.push((field.clone(), vec![variant.kind])),
            }
        }
    }
    found.retain(|(_, kinds)| kinds.len() > 1);
    found
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
    page.push_str(&format!("{}| name | meaning |\n|---|---|\n", above(&names.doc)));
    for (value, doc) in &names.values {
        page.push_str(&format!("| `\"{value}\"` | {} |\n", cell(doc)));
    }
    page.push('\n');
}

fn keys<'a>(page: &mut String, fields: impl IntoIterator<Item = &'a Field>, catalogue: &Catalogue) {
    let rows: String = fields.into_iter().map(|field| row(field, None, catalogue)).collect();
    match rows.is_empty() {
        true => page.push_str("No keys.\n\n"),
        false => page.push_str(&format!("| key | type | default | meaning |\n|---|---|---|---|\n{rows}\n")),
    }
}

/// Row of a key, with the kinds that have it where it stands for several.
fn row(field: &Field, kinds: Option<&str>, catalogue: &Catalogue) -> String {
    let range = field.range.as_deref().map(|range| format!(", {}", range_text(range))).unwrap_or_default();
    format!(
        "| `{}` | {}{}{range} | {} | {} |\n",
        field.name,
        kinds.map(|kinds| format!("{kinds} | ")).unwrap_or_default(),
        type_text(&field.schema, catalogue),
        default_text(field),
        said(&field.doc)
    )
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
