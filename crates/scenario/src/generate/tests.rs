use super::*;
use fanin_params::{choice, names, params, Param, Schema};
use fanin_units::Amount;
use std::collections::BTreeMap;

params! {
    /// Nothing to set.
    pub struct Nothing { }
}
params! {
    /// By size.
    pub struct BySize {
        /// Threshold [bytes | packets].
        pub k: Amount = Amount::Packets(65);
        /// Gain.
        pub g: f64 = 0.5, in 0.0..=1.0;
        /// Longest time that a packet may wait for its mark.
        pub wait: u64 = 5;
    }
}
params! {
    /// To one host.
    pub struct ToOne {
        /// Where to.
        pub to: String;
        /// Traffic class.
        pub class: u8 = 0, in 0..8;
        /// Hosts, by name, `*` stands for anything.
        pub from: Vec<String> = Vec::new();
        /// Longest time that a packet may wait for its mark.
        pub wait: u64 = 5;
    }
}
choice! {
    /// Marking.
    pub enum Marking {
        /// Never.
        "none" => Never(Nothing),
        /// Always.
        "always" => Always(Nothing),
        /// Above a threshold.
        "by_size" => BySize(BySize),
        /// To one host.
        "to_one" => ToOne(ToOne),
    }
}
names! {
    /// When.
    pub enum When {
        /// On the way
        /// in.
        "enqueue" => Enqueue,
        /// On the way "out".
        "dequeue" => Dequeue,
    }
}
params! {
    /// The document.
    pub struct Document {
        /// How marks are set.
        pub marking: Marking = Marking::Never(Nothing {});
        /// More of them.
        pub more: Vec<Marking> = Vec::new();
        /// By name.
        pub named: BTreeMap<String, Marking> = BTreeMap::new();
        /// When.
        pub when: When = When::Enqueue;
        /// How long.
        pub delay: Option<Span>;
        /// Counts.
        pub counts: Vec<u32> = vec![1, 2], in 1u32..;
        /// How it is called.
        pub name: String;
    }
}

#[test]
fn the_json_schema_states_types_ranges_defaults_and_what_is_required() {
    let text = json_schema_of(&Document::schema(), "https://example.org/s.json", "Example");
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["$ref"], "#/$defs/Document");
    let defs = &json["$defs"];
    let document = &defs["Document"];
    assert_eq!(document["required"], serde_json::json!(["name"]));
    assert_eq!(document["additionalProperties"], false);
    assert_eq!(document["properties"]["counts"]["items"]["minimum"], 1);
    assert_eq!(document["properties"]["counts"]["default"], serde_json::json!([1, 2]));
    assert!(document["properties"]["delay"].get("default").is_none());
    assert!(document["properties"]["delay"]["pattern"].as_str().unwrap().contains("|ns|us|"));
    assert_eq!(defs["BySize"]["properties"]["g"]["maximum"], 1.0);
    assert_eq!(defs["ToOne"]["properties"]["class"]["exclusiveMaximum"], 8);
    assert_eq!(defs["ToOne"]["properties"]["kind"]["const"], "to_one");
    assert_eq!(defs["ToOne"]["required"], serde_json::json!(["kind", "to"]));
    let one_of = defs["Marking"]["oneOf"].as_array().unwrap();
    let bare: Vec<&str> = one_of.iter().filter_map(|entry| entry["const"].as_str()).collect();
    assert_eq!(bare, ["none", "always", "by_size"], "a table with a required key has no bare form");
    assert_eq!(defs["When"]["oneOf"][1]["const"], "dequeue");
}

#[test]
fn the_reference_lists_every_key_once_with_its_type_default_and_range() {
    let page = reference_of(&Document::schema(), "# Preface\n");
    for expected in [
        "# Preface\n\n## Document\nThe document.\n\n| key | type | default | meaning |",
        "| `marking` | [Marking](#marking) | `\"none\"` | How marks are set. |",
        "| `more` | list of [Marking](#marking) | `[]` | More of them. |",
        "| `named` | name → [Marking](#marking) | `{}` | By name. |",
        "| `delay` | duration | – | How long. |",
        "| `name` | string | **required** | How it is called. |",
        "| `k` | amount of buffer | `\"65 packets\"` | Threshold [bytes \\| packets]. |",
        "## Marking\nAt `marking`, `more[]`, `named.NAME`.\n\n| `kind` | meaning |",
        "| `g` | number, 0 … 1 | `0.5` | Gain. |\n\nAlso `wait`: [keys of several kinds](#marking-keys-of-several-kinds).\n",
        "### Marking: keys of several kinds\n| key | kinds | type | default | meaning |\n|---|---|---|---|---|\n| `wait` | `by_size`, `to_one` | integer",
        "### Marking: `kind = \"by_size\"`\nBy size.\n\n| key |",
        "### Marking: `kind = \"to_one\"`\n| key |",
        "| `from` | list of string | `[]` | Hosts, [by name](#how-values-are-written). |",
        "## When\nAt `when`.\n\n| name | meaning |\n|---|---|\n| `\"enqueue\"` | On the way in. |",
    ] {
        assert!(page.contains(expected), "{expected}\n--\n{page}");
    }
    assert_eq!(page.matches("## Marking\n").count(), 1);
    assert_eq!(page.matches("| `wait` |").count(), 1, "what several kinds have alike is told once");
}

#[test]
fn the_python_module_has_a_class_for_each_table_and_takes_dictionaries() {
    let module = python_types_of(&Document::schema());
    for expected in [
        "class BySize(Table):\n    \"\"\"By size.\"\"\"\n\n    kind: ClassVar[Literal[\"by_size\"]] = \"by_size\"\n",
        "    g: float | None = None\n    \"\"\"Gain. Default: 0.5. Accepted: from 0 to 1.\"\"\"\n",
        "    to: str\n    \"\"\"Where to. Must be given.\"\"\"\n",
        "    class_: int | None = None\n",
        "Marking: TypeAlias = NoneMarking | AlwaysMarking | BySize | ToOne | Mapping[str, Any] | Literal[",
        "class NoneMarking(Table):",
        "When: TypeAlias = Literal[\"enqueue\", \"dequeue\"]\n",
        "- `enqueue`: On the way\n  in.\n- `dequeue`: On the way",
        "    named: Mapping[str, Marking] | None = None\n",
        " | Literal[\"none\", \"always\", \"by_size\"]\n",
        "Duration: TypeAlias = str\n",
    ] {
        assert!(module.contains(expected), "{expected}\n--\n{module}");
    }
    if let Some(path) = std::env::var_os("FANIN_SAMPLE_TYPES") {
        std::fs::write(path, module).unwrap();
    }
}

#[test]
fn patterns_name_exactly_the_units_that_are_read() {
    let Schema::Quantity { what, .. } = Amount::schema() else { panic!("an amount is a quantity") };
    assert_eq!(what, AMOUNT);
    for unit in COUNTED {
        assert!(Amount::read(&format!("5 {unit}")).is_ok(), "{unit}");
    }
    assert!(quantity(AMOUNT).pattern.contains("|MiB|") && quantity(AMOUNT).pattern.contains("|cells|"));
    assert_eq!(quantity(AMOUNT).name, "AmountOfBuffer");
    assert_eq!(quantity(Span::WHAT).pattern, "^(\\s*([0-9][0-9_]*(\\.[0-9_]*)?|\\.[0-9][0-9_]*)\\s*(ps|ns|us|ms|s|µs|min)\\s*)$");
}

#[test]
fn values_are_shown_as_toml_writes_them() {
    let table = Value::Table(vec![
        ("k".into(), Value::Text("65 packets".into()).into()),
        ("x".into(), Value::List(vec![Value::Float(1.0).into()]).into()),
    ]);
    assert_eq!(inline(&table), "{ k = \"65 packets\", x = [1.0] }");
    assert_eq!(camel("leaf_spine"), "LeafSpine");
}
