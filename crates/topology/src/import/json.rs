//! Parses JSON into a document tree with line numbers.

use fanin_params::{Node, Value};
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

/// A syntax error: message and line.
pub struct SyntaxError {
    pub line: Option<u32>,
    pub message: String,
}

/// Deepest nesting of lists and objects. Every level is scanned once more for each level around it.
const MAX_DEPTH: usize = 16;

/// Largest number of values in a document, nested ones included.
const MAX_VALUES: usize = 4_000_000;

/// Parses a document; every node gets the line on which it starts.
///
/// # Errors
/// Text that is not JSON, nests deeper than [`MAX_DEPTH`], has more than [`MAX_VALUES`] values, repeats a key, or has a null.
pub fn read(text: &str) -> Result<Node, SyntaxError> {
    let raw: &RawValue = serde_json::from_str(text).map_err(|e| at_line(&e, 0))?;
    let mut reader = Reader { text, at: 0, line: 1, values: 0 };
    node(raw, &mut reader, MAX_DEPTH)
}

/// Converts a parser error; `before` is the number of lines in front of the parsed part.
fn at_line(error: &serde_json::Error, before: u32) -> SyntaxError {
    let full = error.to_string();
    let message = full.rsplit_once(" at line ").map_or(full.as_str(), |(message, _)| message).to_string();
    SyntaxError { line: u32::try_from(error.line()).ok().filter(|l| *l > 0).map(|l| l + before), message }
}

/// Parser state that counts values, and lines up to positions that only move forward.
struct Reader<'a> {
    text: &'a str,
    at: usize,
    line: u32,
    values: usize,
}

impl Reader<'_> {
    fn of(&mut self, raw: &RawValue) -> u32 {
        // A raw value borrows from the text, so its address is its place.
        let place = (raw.get().as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize).min(self.text.len());
        if place > self.at {
            self.line += self.text.as_bytes()[self.at..place].iter().filter(|b| **b == b'\n').count() as u32;
            self.at = place;
        }
        self.line
    }
}

fn node(raw: &RawValue, reader: &mut Reader<'_>, depth: usize) -> Result<Node, SyntaxError> {
    let line = reader.of(raw);
    reader.values += 1;
    if reader.values > MAX_VALUES {
        return Err(SyntaxError { line: Some(line), message: format!("it has more than {MAX_VALUES} values") });
    }
    if depth == 0 {
        return Err(SyntaxError { line: Some(line), message: format!("it nests deeper than {MAX_DEPTH} levels") });
    }
    let text = raw.get();
    let wrong = |e: serde_json::Error| at_line(&e, line - 1);
    let value = match text.as_bytes().first() {
        Some(b'{') => {
            let entries: Entries<'_> = serde_json::from_str(text).map_err(wrong)?;
            let mut table: Vec<(String, Node)> = Vec::new();
            for (key, raw) in entries.0 {
                let line = reader.of(raw);
                if table.len() >= 64 {
                    return Err(SyntaxError { line: Some(line), message: "an object with more than 64 keys".into() });
                }
                if table.iter().any(|(k, _)| *k == key) {
                    return Err(SyntaxError { line: Some(line), message: format!("the key {key:?} is given twice") });
                }
                table.push((key, node(raw, reader, depth - 1)?));
            }
            Value::Table(table)
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(text).map_err(wrong)?;
            Value::List(items.into_iter().map(|raw| node(raw, reader, depth - 1)).collect::<Result<_, _>>()?)
        }
        Some(b'"') => Value::Text(serde_json::from_str(text).map_err(wrong)?),
        Some(b't' | b'f') => Value::Bool(serde_json::from_str(text).map_err(wrong)?),
        Some(b'n') => return Err(SyntaxError { line: Some(line), message: "a null".into() }),
        _ => match serde_json::from_str::<i64>(text) {
            Ok(n) => Value::Int(n),
            Err(_) => Value::Float(serde_json::from_str(text).map_err(wrong)?),
        },
    };
    Ok(Node { value, line: Some(line) })
}

/// Entries of an object in document order, repeated keys included.
struct Entries<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> serde::Deserialize<'de> for Entries<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Entries<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(Read)
    }
}
