use crate::*;
use fanin_units::{Bytes, Span};
use std::ops::Bound;

params! {
    /// A marker.
    pub struct Threshold {
        /// Threshold.
        pub k: Bytes = Bytes(1000);
        /// Gain.
        pub g: f64 = 0.5, in 0.0..=1.0;
        /// Optional delay; ns-3's mark_late.
        pub delay: Option<Span>;
        /// A required name.
        pub label: String;
        /// Some counts.
        pub counts: Vec<u32> = vec![1, 2], in 1u32..;
    }
}
params! {
    /// Nothing.
    pub struct Nothing { }
}
choice! {
    /// Marking.
    pub enum Marking {
        /// Never.
        "none" => Nothing(Nothing),
        /// Above a threshold.
        "threshold" => Threshold(Threshold),
    }
}
fn meant(kind: &str) -> Option<&'static str> {
    (kind == "shout").then_some("did you mean 'bell'? It is loud")
}
choice! {
    /// What wakes.
    pub enum Alarm, kind "bell", meaning meant {
        /// A bell.
        "bell" => Bell(Nothing),
        /// Above a threshold.
        "threshold" => Threshold(Threshold),
    }
}
names! {
    /// When.
    pub enum When {
        /// On the way in.
        "enqueue" => Enqueue,
        /// On the way out.
        "dequeue" => Dequeue,
    }
}
fn by_profile(node: &Node) -> Stack {
    match node.get("profile").and_then(Node::text) {
        Some("linux") => Stack { profile: "linux".into(), window: 10 },
        _ => Stack { profile: "rfc".into(), window: 3 },
    }
}
params! {
    /// A stack with profiles.
    pub struct Stack over by_profile {
        /// Which defaults.
        pub profile: String = "rfc".to_string();
        /// Initial window.
        pub window: u32 = 3, in 1..;
    }
}

fn text(s: &str) -> Node {
    Value::Text(s.into()).into()
}
fn table(entries: Vec<(&str, Node)>) -> Node {
    Value::Table(entries.into_iter().map(|(k, v)| (k.to_string(), v)).collect()).into()
}
fn problems<T: Param>(node: &Node) -> Vec<String> {
    let mut cx = Cx::new();
    T::parse(node, &mut cx);
    cx.into_problems().iter().map(ToString::to_string).collect()
}

#[test]
fn defaults_fill_in_and_values_round_trip() {
    let node = table(vec![("kind", text("threshold")), ("label", text("x"))]);
    let mut cx = Cx::new();
    let parsed = Marking::parse(&node, &mut cx).unwrap();
    let Marking::Threshold(t) = &parsed else { panic!() };
    assert_eq!((t.k, t.g, t.delay, t.counts.clone()), (Bytes(1000), 0.5, None, vec![1, 2]));
    assert_eq!(parsed.kind(), "threshold");
    assert_eq!(Marking::parse(&parsed.to_value().into(), &mut cx).unwrap(), parsed);
    assert!(!cx.failed());
}

#[test]
fn all_errors_come_at_once_each_with_path_value_and_what_is_accepted() {
    let node = table(vec![
        ("kind", text("threshold")),
        ("k", Value::Int(5).into()),
        ("g", Value::Float(2.0).into()),
        ("dellay", text("1us")),
        ("counts", Value::List(vec![Value::Int(0).into()]).into()),
    ]);
    let found = problems::<Marking>(&node).join("\n");
    for expected in [
        "k: 5 has no unit; accepted: a size such as",
        "g: 2.0 is out of range; accepted: from 0 to 1",
        "dellay: \"dellay\" is not a known key",
        "did you mean 'delay'?",
        "label: is missing",
        "counts[0]: 0 is out of range; accepted: at least 1",
    ] {
        assert!(found.contains(expected), "{expected}\n--\n{found}");
    }
}

#[test]
fn a_choice_may_have_a_default_and_know_other_names() {
    let mut cx = Cx::new();
    assert_eq!(Alarm::parse_within(&table(vec![("hour", text("7"))]), &mut cx), Some(Alarm::Bell(Nothing {})));
    assert_eq!(
        problems::<Alarm>(&table(vec![("k", text("x"))])),
        ["k: \"k\" is not a known key of kind \"bell\"; accepted: none; kind \"threshold\" has it"]
    );
    assert!(problems::<Alarm>(&text("Shout"))[0].ends_with("did you mean 'bell'? It is loud"));
    assert!(problems::<Alarm>(&text("bel"))[0].ends_with("did you mean 'bell'?"));
    assert_eq!((Alarm::Bell(Nothing {}).kind(), Alarm::keys_of(&table(vec![]))), ("bell", vec!["kind"]));
    let Schema::Choice(choice) = Alarm::schema() else { panic!("no choice") };
    assert_eq!(choice.variants.iter().map(|v| v.default).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn unknown_kinds_and_names_are_suggested() {
    assert!(problems::<Marking>(&text("treshold"))[0].contains("did you mean 'threshold'?"));
    assert!(problems::<When>(&text("dequeu"))[0].contains("did you mean 'dequeue'?"));
    assert!(problems::<Marking>(&table(vec![]))[0].contains("kind: is missing"));
    assert!(problems::<Marking>(&Value::Int(3).into())[0].contains("3 is an integer"));
}

#[test]
fn keys_are_known_by_their_names_elsewhere() {
    let given = |key: &str| problems::<Threshold>(&table(vec![("label", text("x")), (key, text("1us"))])).remove(0);
    assert!(given("MARK_LATE").ends_with("; did you mean 'delay'?"), "{}", given("MARK_LATE"));
    assert!(!given("mark_early").contains("did you mean"), "{}", given("mark_early"));
    assert!(!given("optional").contains("did you mean"), "a word is no name: {}", given("optional"));
}

#[test]
fn a_bare_name_chooses_with_all_defaults() {
    assert_eq!(Marking::parse(&text("none"), &mut Cx::new()), Some(Marking::Nothing(Nothing {})));
}

#[test]
fn a_profile_changes_defaults_and_explicit_keys_win() {
    let linux = table(vec![("profile", text("linux"))]);
    assert_eq!(Stack::parse(&linux, &mut Cx::new()).unwrap().window, 10);
    let own = table(vec![("profile", text("linux")), ("window", Value::Int(4).into())]);
    assert_eq!(Stack::parse(&own, &mut Cx::new()).unwrap().window, 4);
    assert_eq!(Stack::parse(&table(vec![]), &mut Cx::new()).unwrap().window, 3);
}

#[test]
fn the_schema_carries_docs_defaults_and_ranges() {
    let Schema::Choice(choice) = Marking::schema() else { panic!() };
    let field = &choice.variants[1].body.fields[1];
    assert_eq!((field.name, field.doc.as_str(), field.range.as_deref()), ("g", "Gain.", Some("from 0 to 1")));
    assert_eq!(field.default, Some(Value::Float(0.5)));
    assert_eq!(field.bounds, Some((Bound::Included(Value::Float(0.0)), Bound::Included(Value::Float(1.0)))));
    assert_eq!(choice.variants[1].body.fields[3].default, None);
}

#[test]
fn quantities_say_what_is_wrong_with_them() {
    let message = |value: Value| problems::<Bytes>(&value.into()).remove(0);
    let accepted = "; accepted: a size such as \"1500B\", \"512KB\" (1000), \"64KiB\" (1024)";
    assert_eq!(message(Value::Text("-5KB".into())), format!("\"-5KB\" is negative{accepted}"));
    assert_eq!(message(Value::Int(-5)), format!("-5 is negative{accepted}"));
    assert_eq!(message(Value::Text("5".into())), format!("\"5\" has no unit{accepted}; write \"5B\" if that is what you mean"));
    assert_eq!(
        message(Value::Text("5kib".into())),
        format!("\"5kib\" has the unknown unit 'kib'{accepted}; did you mean 'KiB'?")
    );
    assert!(problems::<Span>(&Value::Int(5).into())[0].ends_with("; write \"5us\" if that is what you mean"));
    assert!(message(Value::Text("5 parsecs".into())).contains("; units: B, KB, MB"));
    assert_eq!(problems::<f64>(&Value::Float(f64::NAN).into()), ["NaN is not finite; accepted: a finite number"]);
}

params! {
    /// One marker of a list.
    pub struct Entry, with marking: Marking {
        /// Who.
        pub owner: String;
        /// When.
        pub start: Span = Span::ZERO;
    }
}

#[test]
fn a_table_holds_its_own_keys_and_those_of_its_kind() {
    let node = table(vec![("owner", text("me")), ("kind", text("threshold")), ("label", text("x")), ("k", text("5B"))]);
    let mut cx = Cx::new();
    let entry = Entry::parse(&node, &mut cx).unwrap();
    assert!(cx.into_problems().is_empty());
    assert_eq!((entry.owner.as_str(), entry.start), ("me", Span::ZERO));
    assert!(matches!(&entry.marking, Marking::Threshold(t) if t.k == Bytes(5)));
    let written: Node = entry.to_value().into();
    assert_eq!(written.get("kind").and_then(Node::text), Some("threshold"));
    assert_eq!(Entry::parse(&written, &mut Cx::new()), Some(entry));
}

#[test]
fn a_table_of_a_kind_reports_each_unknown_key_once_with_all_that_is_known() {
    let node = table(vec![("ownr", text("me")), ("kind", text("threshold")), ("k", Value::Int(1).into()), ("lable", text("x"))]);
    let found = problems::<Entry>(&node);
    assert_eq!(found.len(), 5, "{found:#?}");
    for (expected, which) in [
        ("ownr: \"ownr\" is not a known key of kind \"threshold\"; accepted: owner, start, kind, k, g, delay, label, counts; did you mean 'owner'?", 0),
        ("lable: \"lable\" is not a known key", 1),
        ("owner: is missing", 2),
        ("k: 1 has no unit", 3),
        ("label: is missing", 4),
    ] {
        assert!(found[which].starts_with(expected), "{}", found[which]);
    }
    let other_kind = table(vec![("owner", text("me")), ("kind", text("none")), ("k", text("5B"))]);
    assert_eq!(
        problems::<Entry>(&other_kind),
        ["k: \"k\" is not a known key of kind \"none\"; accepted: owner, start, kind; kind \"threshold\" has it"]
    );
    let no_kind = table(vec![("owner", text("me")), ("k", text("5B"))]);
    assert_eq!(problems::<Entry>(&no_kind), ["kind: is missing; accepted: none, threshold"]);
}

#[test]
fn the_schema_of_a_table_of_a_kind_is_a_choice_with_all_keys() {
    let Schema::Choice(choice) = Entry::schema() else { panic!() };
    assert_eq!((choice.name, choice.doc.as_str()), ("Entry", "One marker of a list."));
    let names: Vec<_> = choice.variants[1].body.fields.iter().map(|f| f.name).collect();
    assert_eq!(names, ["owner", "start", "k", "g", "delay", "label", "counts"]);
}
