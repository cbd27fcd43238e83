//! JSON reader, by serde_json, for scenarios that come from Python: duplicate keys are refused, `null` means "not given".

use super::{depth_accepted, oversize, syntax, MAX_DEPTH, TOO_DEEP};
use fanin_params::{Node, Problem, Value};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Reads a JSON document; keys whose value is `null` are left out.
///
/// # Errors
/// Malformed text, a duplicate key, an integer beyond 64 bits, too deep nesting, a document that is too large.
pub fn read_json(text: &str) -> Result<Node, Vec<Problem>> {
    if let Some(problem) = oversize(text) {
        return Err(vec![problem]);
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let read = Tree { depth: 0 }.deserialize(&mut deserializer).and_then(|node| deserializer.end().map(|()| node));
    match read {
        Ok(Some(node)) => Ok(node),
        Ok(None) => Err(vec![syntax(None, Some("null".to_string()), "is no scenario", Some("an object".to_string()))]),
        Err(error) => Err(vec![describe(&error)]),
    }
}

fn describe(error: &serde_json::Error) -> Problem {
    let full = error.to_string();
    let message = full.rsplit_once(" at line ").map_or(full.as_str(), |(message, _)| message);
    let (message, accepted) = match message {
        TOO_DEEP | "recursion limit exceeded" => (TOO_DEEP, Some(depth_accepted())),
        _ => message.split_once(", expected ").map_or((message, None), |(m, e)| (m, Some(e.to_string()))),
    };
    let line = u32::try_from(error.line()).ok().filter(|line| *line > 0);
    syntax(line, None, &format!("not valid JSON: {message}"), accepted)
}

/// Reads one value; `null` becomes `None`.
struct Tree {
    depth: usize,
}

impl Tree {
    fn deeper<E: Error>(&self) -> Result<Tree, E> {
        if self.depth >= MAX_DEPTH {
            return Err(E::custom(TOO_DEEP));
        }
        Ok(Tree { depth: self.depth + 1 })
    }
}

impl<'de> DeserializeSeed<'de> for Tree {
    type Value = Option<Node>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree {
    type Value = Option<Node>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a value")
    }
    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_bool<E: Error>(self, b: bool) -> Result<Self::Value, E> {
        Ok(Some(Value::Bool(b).into()))
    }
    fn visit_i64<E: Error>(self, n: i64) -> Result<Self::Value, E> {
        Ok(Some(Value::Int(n).into()))
    }
    fn visit_u64<E: Error>(self, n: u64) -> Result<Self::Value, E> {
        let n =
            i64::try_from(n).map_err(|_| E::custom(format!("the integer {n} is too large, expected at most {}", i64::MAX)))?;
        Ok(Some(Value::Int(n).into()))
    }
    fn visit_f64<E: Error>(self, x: f64) -> Result<Self::Value, E> {
        Ok(Some(Value::Float(x).into()))
    }
    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(Value::Text(text.to_string()).into()))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut nodes = Vec::new();
        while let Some(item) = items.next_element_seed(self.deeper()?)? {
            nodes.push(item.ok_or_else(|| A::Error::custom("null in a list, expected a value"))?);
        }
        Ok(Some(Value::List(nodes).into()))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries: Vec<(String, Node)> = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        while let Some(key) = map.next_key::<String>()? {
            if !seen.insert(key.clone()) {
                return Err(A::Error::custom(format!("the key '{key}' is given twice, expected each key once")));
            }
            if let Some(node) = map.next_value_seed(self.deeper()?)? {
                entries.push((key, node));
            }
        }
        Ok(Some(Value::Table(entries).into()))
    }
}
