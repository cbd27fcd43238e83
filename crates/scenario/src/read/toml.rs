//! TOML reader, by the `toml` crate, whose recovering parser reports every syntax error and gives byte spans.

use super::{depth_accepted, oversize, syntax, MAX_DEPTH, MAX_SYNTAX_ERRORS, TOO_DEEP};
use fanin_params::{Cx, Node, Problem, Value};
use std::ops::Range;
use toml::de::{DeTable, DeValue};
use toml::Spanned;

/// Reads a TOML document: the tree with line numbers from 1, and the syntax errors in order of lines.
///
/// The tree is `None` if an error leaves open where the values around it end, since checking them would report problems that
/// nobody wrote.
pub fn read_toml(text: &str) -> (Option<Node>, Vec<Problem>) {
    if let Some(problem) = oversize(text) {
        return (None, vec![problem]);
    }
    let lines = Lines::of(text);
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut found: Vec<(Range<usize>, String)> =
        errors.iter().map(|e| (e.span().unwrap_or(0..0), e.message().to_string())).collect();
    found.sort_by_key(|(span, _)| span.start);
    let contained = !found.iter().any(|(_, message)| runs_on(message));
    let mut problems: Vec<Problem> = Vec::new();
    for (span, message) in found {
        // A key with too many dots has no place of its own.
        let line = if message == LONG_KEY { most_dots(text) } else { lines.at(span.start) };
        // What follows the first error of a line is mostly its consequence.
        if problems.last().is_some_and(|p| p.line == Some(line)) {
            continue;
        }
        problems.push(describe(text, span, line, &message));
        if problems.len() == MAX_SYNTAX_ERRORS {
            break;
        }
    }
    let mut cx = Cx::new();
    let node = convert_table(table.get_ref(), 1, &mut Reader { lines: &lines, cx: &mut cx, depth: 0 });
    problems.extend(cx.into_problems());
    (contained.then_some(node).flatten(), problems)
}

/// Part of the parser's message about a key with too many dots.
const LONG_KEY: &str = "recursion limit";

/// Number of the line with the most dots.
fn most_dots(text: &str) -> u32 {
    let dots = text.lines().zip(1u32..).map(|(line, number)| (line.bytes().filter(|b| *b == b'.').count(), number));
    dots.max_by_key(|(dots, number)| (*dots, u32::MAX - number)).map_or(1, |(_, number)| number)
}

/// True if an error may have swallowed the text that follows it.
fn runs_on(message: &str) -> bool {
    ["array", "inline table", "multi-line", "recurse", LONG_KEY, "table header"].iter().any(|part| message.contains(part))
}

fn describe(text: &str, span: Range<usize>, line: u32, message: &str) -> Problem {
    let given = text.get(span.clone()).map(str::trim).filter(|part| !part.is_empty());
    if given.is_none() && message.starts_with("string values must be quoted") {
        return syntax(Some(line), None, "a key has no value", Some("KEY = VALUE".to_string()));
    }
    let (what, expected) = message.split_once(", expected ").unwrap_or((message, ""));
    let value = given.map(|part| Node::from(Value::Text(part.to_string())).to_string());
    let (what, accepted) = match what {
        "duplicate key" => ("is given twice", Some("each key once")),
        "string values must be quoted" => ("is neither a number, true nor false", Some("text in quotes, for example \"10us\"")),
        "cannot recurse further; max recursion depth met" | LONG_KEY => {
            return syntax(Some(line), None, TOO_DEEP, Some(depth_accepted()))
        }
        _ => (what, (!expected.is_empty()).then_some(expected)),
    };
    let what =
        if value.is_some() && !what.starts_with("is ") { format!("is not valid TOML here: {what}") } else { what.to_string() };
    syntax(Some(line), value, &what, accepted.map(str::to_string))
}

/// Byte offsets of the beginnings of lines.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        Lines(std::iter::once(0).chain(text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i + 1)).collect())
    }

    /// Line number, from 1, of a byte offset.
    fn at(&self, offset: usize) -> u32 {
        u32::try_from(self.0.partition_point(|start| *start <= offset)).unwrap_or(u32::MAX)
    }
}

struct Reader<'a> {
    lines: &'a Lines,
    cx: &'a mut Cx,
    depth: usize,
}

fn convert_table(table: &DeTable, line: u32, reader: &mut Reader) -> Option<Node> {
    let mut entries = Vec::with_capacity(table.len());
    let mut whole = true;
    for (key, value) in table {
        let name: &str = key.get_ref();
        // A table made by a header stands where its header does, a value on the line where it begins.
        match reader.inside_key(name, |reader| convert(value, reader)) {
            Some(node) => entries.push((name.to_string(), node)),
            None => whole = false,
        }
    }
    whole.then_some(Node { value: Value::Table(entries), line: Some(line) })
}

fn convert(value: &Spanned<DeValue>, reader: &mut Reader) -> Option<Node> {
    let line = reader.lines.at(value.span().start);
    if reader.depth > MAX_DEPTH {
        reader.problem(line, None, TOO_DEEP, depth_accepted());
        return None;
    }
    let value = match value.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Boolean(b) => Value::Bool(*b),
        DeValue::Integer(n) => match i64::from_str_radix(n.as_str(), n.radix()) {
            Ok(n) => Value::Int(n),
            Err(_) => {
                reader.problem(line, Some(n.as_str()), "is too large", format!("integers from {} to {}", i64::MIN, i64::MAX));
                return None;
            }
        },
        DeValue::Float(x) => match x.as_str().parse::<f64>() {
            Ok(x) => Value::Float(x),
            Err(_) => {
                reader.problem(line, Some(x.as_str()), "is not a number", "for example 0.5".to_string());
                return None;
            }
        },
        DeValue::Datetime(date) => {
            let written = date.to_string();
            reader.problem(
                line,
                Some(&written),
                "is a date",
                "a duration or an instant of the run in quotes, for example \"10ms\"".to_string(),
            );
            return None;
        }
        DeValue::Array(items) => {
            let nodes: Vec<Option<Node>> =
                items.iter().enumerate().map(|(i, item)| reader.inside_index(i, |reader| convert(item, reader))).collect();
            Value::List(nodes.into_iter().collect::<Option<Vec<Node>>>()?)
        }
        DeValue::Table(table) => return convert_table(table, line, reader),
    };
    Some(Node { value, line: Some(line) })
}

impl Reader<'_> {
    fn inside_key<T>(&mut self, key: &str, body: impl FnOnce(&mut Reader) -> T) -> T {
        let (lines, depth) = (self.lines, self.depth + 1);
        self.cx.key(key, |cx| body(&mut Reader { lines, cx, depth }))
    }

    fn inside_index<T>(&mut self, index: usize, body: impl FnOnce(&mut Reader) -> T) -> T {
        let (lines, depth) = (self.lines, self.depth + 1);
        self.cx.index(index, |cx| body(&mut Reader { lines, cx, depth }))
    }

    fn problem(&mut self, line: u32, value: Option<&str>, message: &str, accepted: String) {
        let problem = self.cx.error(None, message, Some(accepted));
        problem.line = Some(line);
        problem.value = value.map(str::to_string);
    }
}
