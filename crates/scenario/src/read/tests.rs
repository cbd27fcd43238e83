use super::*;
use crate::render;
use fanin_params::{Node, Value};

fn toml_errors(text: &str) -> String {
    render(&read_toml(text).1, "s.toml")
}

#[test]
fn values_stand_on_their_lines() {
    let (node, problems) = read_toml("a = 1\n[b]\nc = [\n  'x',\n  0x10,\n]\n[[t]]\nz = 1_000.5\n[[t]]\ny = true\n");
    assert_eq!(problems, vec![]);
    let node = node.unwrap();
    assert_eq!((node.line, node.get("a").unwrap().line, node.get("b").unwrap().line), (Some(1), Some(1), Some(2)));
    let Value::List(items) = &node.get("b").unwrap().get("c").unwrap().value else { panic!() };
    assert_eq!((items[0].line, items[1].line, &items[1].value), (Some(4), Some(5), &Value::Int(16)));
    let Value::List(tables) = &node.get("t").unwrap().value else { panic!() };
    assert_eq!((tables[1].line, tables[0].get("z").unwrap()), (Some(9), &Node { value: Value::Float(1000.5), line: Some(8) }));
}

#[test]
fn every_syntax_error_is_found_in_one_go() {
    let text =
        "name = demo\nseed = 1\nseed = 2\nduration = \nrate = 10Gbps\nok = 1\nwhen = 1979-05-27\nbig = 99999999999999999999\n";
    assert_eq!(
        toml_errors(text),
        "s.toml: line 1: \"demo\" is neither a number, true nor false; accepted: text in quotes, for example \"10us\"\n\
         s.toml: line 3: \"seed\" is given twice; accepted: each key once\n\
         s.toml: line 4: a key has no value; accepted: KEY = VALUE\n\
         s.toml: line 5: \"10Gbps\" is neither a number, true nor false; accepted: text in quotes, for example \"10us\"\n\
         s.toml: when, line 7: 1979-05-27 is a date; accepted: a duration or an instant of the run in quotes, for example \"10ms\"\n\
         s.toml: big, line 8: 99999999999999999999 is too large; accepted: integers from -9223372036854775808 to 9223372036854775807\n"
    );
}

#[test]
fn an_open_bracket_hides_what_follows_it() {
    let (node, problems) = read_toml("c = [1,\n[t]\nk = 'x'\n");
    assert!(node.is_none() && !problems.is_empty());
}

#[test]
fn depth_and_size_are_bounded() {
    let list = |depth: usize| format!("a = {}1{}", "[".repeat(depth), "]".repeat(depth));
    assert!(read_toml(&list(MAX_DEPTH - 1)).0.is_some());
    assert!(toml_errors(&list(MAX_DEPTH + 5)).contains("nests too deep; accepted: at most 32 levels"));
    assert!(toml_errors(&list(100_000)).contains("nests too deep"));
    for key in [format!("{}b = 1", "a.".repeat(200_000)), format!("[{}b]", "a.".repeat(200_000))] {
        let found = toml_errors(&format!("c = 1\n# 1.2\n{key}\n"));
        assert!(found.starts_with("s.toml: line 3: nests too deep; accepted: at most 32 levels"), "{found}");
    }
    let json = |depth: usize| format!("{{\"a\": {}1{}}}", "[".repeat(depth), "]".repeat(depth));
    assert!(read_json(&json(MAX_DEPTH - 1)).is_ok());
    assert!(read_json(&json(MAX_DEPTH + 5)).unwrap_err()[0].to_string().contains("nests too deep"));
    let huge = " ".repeat(MAX_DOCUMENT.get() as usize + 1);
    assert!(toml_errors(&huge).contains("the document of 67108865B is too large"));
    assert!(read_json(&huge).unwrap_err()[0].to_string().contains("put long lists of flows into a CSV file"));
}

#[test]
fn json_gives_the_same_tree() {
    let node = read_json("{\"a\": 1, \"b\": null, \"c\": {\"d\": [true, \"x\", 1.5]}}").unwrap();
    assert!(node.get("b").is_none(), "null means not given");
    let Value::List(items) = &node.get("c").unwrap().get("d").unwrap().value else { panic!() };
    let values: Vec<&Value> = items.iter().map(|item| &item.value).collect();
    assert_eq!(values, [&Value::Bool(true), &Value::Text("x".into()), &Value::Float(1.5)]);
}

#[test]
fn json_errors_say_where_and_what() {
    let error = |text: &str| render(&read_json(text).unwrap_err(), "s.json");
    assert_eq!(
        error("{\"a\": 1,\n \"a\": 2}"),
        "s.json: line 2: not valid JSON: the key 'a' is given twice; accepted: each key once\n"
    );
    assert_eq!(error("{\n\"a\" 1}"), "s.json: line 2: not valid JSON: expected `:`\n");
    assert_eq!(error("null"), "s.json: null is no scenario; accepted: an object\n");
    assert_eq!(error("[null]"), "s.json: line 1: not valid JSON: null in a list; accepted: a value\n");
    assert_eq!(
        error("{\"seed\": 18446744073709551615}"),
        "s.json: line 1: not valid JSON: the integer 18446744073709551615 is too large; accepted: at most 9223372036854775807\n"
    );
    assert!(error("{} {}").contains("trailing characters"));
    assert!(error("{\"a\": NaN}").contains("not valid JSON"));
}
