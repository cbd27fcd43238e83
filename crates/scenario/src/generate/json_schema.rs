//! Generator of the JSON Schema, draft 2020-12.

use super::catalogue::{bare, required, Catalogue, Kind, Type};
use super::{plain, quantity};
use fanin_params::{ChoiceSchema, Field, NamesSchema, Schema, StructSchema, Value};
use serde_json::{json, Map, Value as Json};
use std::ops::Bound;

/// JSON Schema of a document, pretty-printed, with keys in a fixed order.
pub fn json_schema_of(schema: &Schema, id: &str, title: &str) -> String {
    let catalogue = Catalogue::of(schema);
    let mut definitions = Map::new();
    for (name, ty) in catalogue.types() {
        definitions.insert(name.to_string(), definition(ty, &catalogue));
    }
    let mut root = Map::new();
    root.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
    root.insert("$id".into(), json!(id));
    root.insert("title".into(), json!(title));
    root.extend(shape(schema, &catalogue));
    root.insert("$defs".into(), Json::Object(definitions));
    let mut text = serde_json::to_string_pretty(&sorted(Json::Object(root))).expect("a tree of strings and numbers");
    text.push('\n');
    text
}

fn definition(ty: &Type, catalogue: &Catalogue) -> Json {
    match ty {
        Type::Table { kind, body } => table(*kind, body, catalogue),
        Type::Choice(choice) => alternatives(choice, catalogue),
        Type::Names(names) => named(names),
    }
}

fn reference(name: &str) -> Map<String, Json> {
    Map::from_iter([("$ref".to_string(), json!(format!("#/$defs/{name}")))])
}

fn shape(schema: &Schema, catalogue: &Catalogue) -> Map<String, Json> {
    let simple = |name: &str| Map::from_iter([("type".to_string(), json!(name))]);
    match schema {
        Schema::Bool => simple("boolean"),
        Schema::Int => Map::from_iter([("type".to_string(), json!("integer")), ("minimum".to_string(), json!(0))]),
        Schema::Float => simple("number"),
        Schema::Text => simple("string"),
        Schema::Quantity { what, examples } => {
            let mut map = simple("string");
            map.insert("pattern".into(), json!(quantity(what).pattern));
            map.insert("$comment".into(), json!(format!("{what} such as {examples}")));
            map
        }
        Schema::List(inner) => {
            Map::from_iter([("type".to_string(), json!("array")), ("items".to_string(), Json::Object(shape(inner, catalogue)))])
        }
        Schema::Map(inner) => Map::from_iter([
            ("type".to_string(), json!("object")),
            ("additionalProperties".to_string(), Json::Object(shape(inner, catalogue))),
        ]),
        Schema::Optional(inner) => shape(inner, catalogue),
        Schema::Struct(body) => reference(catalogue.table_name(None, body)),
        Schema::Choice(choice) => reference(catalogue.choice_name(choice)),
        Schema::Names(names) => reference(catalogue.names_name(names)),
    }
}

fn table(kind: Option<Kind>, body: &StructSchema, catalogue: &Catalogue) -> Json {
    let mut properties = Map::new();
    let mut needed: Vec<&str> = Vec::new();
    if let Some(kind) = kind {
        properties.insert("kind".into(), json!({ "const": kind.name }));
        if kind.needed {
            needed.push("kind");
        }
    }
    for field in &body.fields {
        properties.insert(field.name.into(), property(field, catalogue));
        if required(field) {
            needed.push(field.name);
        }
    }
    json!({
        "type": "object",
        "description": plain(&body.doc),
        "properties": properties,
        "required": needed,
        "additionalProperties": false,
    })
}

fn property(field: &Field, catalogue: &Catalogue) -> Json {
    let mut map = shape(&field.schema, catalogue);
    let mut description = plain(&field.doc);
    if let Some(range) = &field.range {
        description.push_str(&format!("\n\nAccepted: {range}."));
    }
    if let Some(Json::String(units)) = map.remove("$comment") {
        description.push_str(&format!("\n\nWritten as {units}."));
    }
    if let Some(bounds) = &field.bounds {
        let target = match map.get_mut("items") {
            Some(Json::Object(items)) => items,
            _ => &mut map,
        };
        bound(target, "minimum", "exclusiveMinimum", &bounds.0);
        bound(target, "maximum", "exclusiveMaximum", &bounds.1);
    }
    map.insert("description".into(), json!(description));
    if let Some(default) = &field.default {
        if !matches!(field.schema, Schema::Optional(_)) {
            map.insert("default".into(), to_json(default));
        }
    }
    Json::Object(map)
}

/// Writes a bound of a numeric range. Strings with units have no order in JSON Schema.
fn bound(map: &mut Map<String, Json>, inclusive: &str, exclusive: &str, end: &Bound<Value>) {
    let (key, value) = match end {
        Bound::Included(value) => (inclusive, value),
        Bound::Excluded(value) => (exclusive, value),
        Bound::Unbounded => return,
    };
    if matches!(value, Value::Int(_) | Value::Float(_)) {
        map.insert(key.to_string(), to_json(value));
    }
}

fn alternatives(choice: &ChoiceSchema, catalogue: &Catalogue) -> Json {
    let mut one_of = Vec::new();
    for variant in &choice.variants {
        one_of.push(Json::Object(reference(catalogue.table_name(Some(Kind::of(variant)), &variant.body))));
        if bare(&variant.body) {
            one_of.push(json!({ "const": variant.kind, "description": plain(&variant.doc) }));
        }
    }
    json!({ "description": plain(&choice.doc), "oneOf": one_of })
}

fn named(names: &NamesSchema) -> Json {
    let one_of: Vec<Json> = names.values.iter().map(|(name, doc)| json!({ "const": name, "description": plain(doc) })).collect();
    json!({ "description": plain(&names.doc), "oneOf": one_of })
}

/// Sorts the keys of all objects, whichever map serde_json was built with.
pub(crate) fn sorted(json: Json) -> Json {
    match json {
        Json::Array(items) => Json::Array(items.into_iter().map(sorted).collect()),
        Json::Object(map) => {
            let by_key: std::collections::BTreeMap<String, Json> =
                map.into_iter().map(|(key, item)| (key, sorted(item))).collect();
            Json::Object(by_key.into_iter().collect())
        }
        other => other,
    }
}

/// Converts a document value to JSON; infinities and NaN become null.
pub(crate) fn to_json(value: &Value) -> Json {
    match value {
        Value::Bool(b) => json!(b),
        Value::Int(n) => json!(n),
        Value::Float(x) => json!(x),
        Value::Text(text) => json!(text),
        Value::List(items) => Json::Array(items.iter().map(|item| to_json(&item.value)).collect()),
        Value::Table(entries) => Json::Object(entries.iter().map(|(key, item)| (key.clone(), to_json(&item.value))).collect()),
    }
}
