//! The document tree that parameters are read from.

/// A node of a document: a value, and its line if the source has lines.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub value: Value,
    /// Line in the source file, from 1.
    pub line: Option<u32>,
}

/// A document's value (TOML, JSON or Python).
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    /// A table; its keys are in document order.
    Table(Vec<(String, Node)>),
}

impl Value {
    /// The value's type in messages, for example "a list".
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Bool(_) => "a boolean",
            Self::Int(_) => "an integer",
            Self::Float(_) => "a number",
            Self::Text(_) => "a string",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

impl From<Value> for Node {
    fn from(value: Value) -> Self {
        Node { value, line: None }
    }
}

impl Node {
    /// The entry `key`, if this is a table that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        match &self.value {
            Value::Table(entries) => entries.iter().find(|(k, _)| k == key).map(|(_, n)| n),
            _ => None,
        }
    }

    /// The string, if this value is one.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// Longest list that a message shows in full, in characters.
const SHOWN: usize = 40;

/// The list in document syntax, if it is short and contains no lists or tables.
fn as_written(items: &[Node]) -> Option<String> {
    let values = items.iter().all(|item| !matches!(item.value, Value::List(_) | Value::Table(_)));
    let text = format!("[{}]", items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "));
    (values && text.chars().count() <= SHOWN).then_some(text)
}

/// Prints a value for messages: on one line, shortened if long.
impl std::fmt::Display for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.value {
            Value::Bool(b) => write!(f, "{b}"),
            Value::Int(n) => write!(f, "{n}"),
            Value::Float(x) => write!(f, "{x:?}"),
            Value::Text(text) => {
                let short: String = text.chars().take(60).flat_map(char::escape_debug).collect();
                write!(f, "\"{short}{}\"", if text.chars().nth(60).is_some() { "…" } else { "" })
            }
            Value::List(items) => match as_written(items) {
                Some(text) => write!(f, "{text}"),
                None if items.len() == 1 => write!(f, "a list of 1 entry"),
                None => write!(f, "a list of {} entries", items.len()),
            },
            Value::Table(entries) if entries.len() == 1 => write!(f, "a table of 1 key"),
            Value::Table(entries) => write!(f, "a table of {} keys", entries.len()),
        }
    }
}
