//! The document tree that parameters are read from.

/// A value and the line that it stands on, where the source has lines.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub value: Value,
    /// 1-based line in the source file.
    pub line: Option<u32>,
}

/// A value as documents have them (TOML, JSON, Python).
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    /// Keys in document order.
    Table(Vec<(String, Node)>),
}

impl Value {
    /// What it is called in a message.
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
    /// The entry of a table, if this is a table that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        match &self.value {
            Value::Table(entries) => entries.iter().find(|(k, _)| k == key).map(|(_, n)| n),
            _ => None,
        }
    }

    /// The text, if this is one.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// Longest list that messages show, in characters.
const SHOWN: usize = 40;

/// A list as it is written, if it is short and has nothing but values.
fn as_written(items: &[Node]) -> Option<String> {
    let values = items.iter().all(|item| !matches!(item.value, Value::List(_) | Value::Table(_)));
    let text = format!("[{}]", items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "));
    (values && text.chars().count() <= SHOWN).then_some(text)
}

/// As a message shows it: one line, long ones shortened.
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
