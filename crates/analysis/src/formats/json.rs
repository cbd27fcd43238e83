//! JSON lines: an object in each line, its values by the paths of their keys (`queue.bytes`).
//!
//! Numbers stay text, so that each digit counts; what is not asked for is checked and passed over.

use super::{in_file, Format, Inspected, Mapping, OpenRows, RowsFile, Start};
use crate::formats::mapping::{bind, unused_speed, Binding, Bound, Column};
use crate::formats::text::{self, inspect, MappedText, Origins, RowError, Rows};
use crate::formats::REPORTED;
use crate::input::facts::Facts;
use crate::input::file::Gauge;
use crate::input::file::SourceFile;
use crate::input::problem::{Problem, Problems};
use crate::input::reader::TraceReader;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde_json::error::Category;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::io::{BufRead, ErrorKind};
use std::path::Path;
use std::sync::Arc;

/// Longest line [bytes]: it is held in memory.
const LINE_LIMIT: usize = 1 << 20;

/// Lines whose keys are the columns of a file.
const LOOK: usize = 1_000;

/// Largest number of columns.
const MAX_COLUMNS: usize = 10_000;

/// Largest depth of objects and lists inside each other.
const DEPTH: usize = 64;

/// A value at the end of a path, as its text stands in the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaf<'a> {
    /// A text between its quotes.
    Text(&'a str),
    /// A number, `true` or `false`.
    Plain(&'a str),
    Null,
    List,
}

impl Leaf<'_> {
    /// The value as text, without quotes and escapes; none where it has no text.
    fn text(&self) -> Option<String> {
        match self {
            Leaf::Text(text) => Some(serde_json::from_str(text).unwrap_or_else(|_| (*text).to_string())),
            Leaf::Plain(text) => Some((*text).to_string()),
            Leaf::Null | Leaf::List => None,
        }
    }
}

/// Error in the JSON of a line, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wrong {
    what: String,
    at: usize,
}

/// Hands `seen` every value of the object that a line is, with its path, and, with `None`, the path of every object in it.
fn walk<'a>(line: &'a [u8], path: &mut Vec<u8>, seen: &mut impl FnMut(&[u8], Option<Leaf<'a>>)) -> Result<(), Wrong> {
    let text = std::str::from_utf8(line).map_err(|e| Wrong { what: "it is no text in UTF-8".into(), at: e.valid_up_to() })?;
    path.clear();
    let mut json = serde_json::Deserializer::from_str(text);
    (Object { path, depth: DEPTH, seen }).deserialize(&mut json).and_then(|()| json.end()).map_err(|error| {
        let what = match error.classify() {
            Category::Eof => "it ends too early".to_string(),
            _ => error.to_string().split(" at line ").next().unwrap_or_default().to_string(),
        };
        Wrong { what, at: if error.is_eof() { line.len() } else { error.column().saturating_sub(1) } }
    })
}

/// An object whose values are at paths that begin with `path`.
struct Object<'a, F> {
    path: &'a mut Vec<u8>,
    depth: usize,
    seen: &'a mut F,
}

impl<'de, F: FnMut(&[u8], Option<Leaf<'de>>)> DeserializeSeed<'de> for Object<'_, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de, F: FnMut(&[u8], Option<Leaf<'de>>)> Visitor<'de> for Object<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let before = self.path.len();
        while map.next_key_seed(Key(self.path))?.is_some() {
            // As text, since a number of 64 bits has no place for all digits of a time; of an object this is a scan more for each level.
            let value = map.next_value::<&'de RawValue>()?.get();
            match value.as_bytes()[0] {
                b'{' => {
                    (self.seen)(self.path, None);
                    let Some(depth) = self.depth.checked_sub(1) else { return Err(A::Error::custom("it is nested too deeply")) };
                    let object = Object { path: &mut *self.path, depth, seen: &mut *self.seen };
                    object.deserialize(&mut serde_json::Deserializer::from_str(value)).map_err(A::Error::custom)?;
                }
                b'"' => (self.seen)(self.path, Some(Leaf::Text(value))),
                b'[' => (self.seen)(self.path, Some(Leaf::List)),
                b'n' => (self.seen)(self.path, Some(Leaf::Null)),
                _ => (self.seen)(self.path, Some(Leaf::Plain(value))),
            }
            self.path.truncate(before);
        }
        Ok(())
    }
}

/// A key, which is put behind a path.
struct Key<'a>(&'a mut Vec<u8>);

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<(), E> {
        if !self.0.is_empty() {
            self.0.push(b'.');
        }
        self.0.extend_from_slice(key.as_bytes());
        Ok(())
    }
}

/// Reader of lines that are not empty.
struct Lines {
    input: Box<dyn BufRead + Send>,
    gauge: Arc<Gauge>,
    line: Vec<u8>,
    number: u64,
    /// True if the present line is the last, and has no end.
    open: bool,
}

/// Kind of a line.
enum Line {
    There,
    TooLong,
    End,
}

impl Lines {
    fn next(&mut self) -> std::io::Result<Line> {
        loop {
            self.line.clear();
            let (mut ends, mut long) = (false, false);
            while !ends {
                let part = match self.input.fill_buf() {
                    Ok(part) => part,
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    Err(error) => return Err(error),
                };
                if part.is_empty() {
                    // The last line of a file that was cut short is not whole.
                    if self.gauge.is_cut() || (self.line.is_empty() && !long) {
                        return Ok(Line::End);
                    }
                    self.open = true;
                    break;
                }
                let length = match memchr::memchr(b'\n', part) {
                    Some(at) => {
                        ends = true;
                        at + 1
                    }
                    None => part.len(),
                };
                long |= self.line.len() + length > LINE_LIMIT;
                if !long {
                    self.line.extend_from_slice(&part[..length]);
                }
                self.input.consume(length);
            }
            self.number += 1;
            if self.number == 1 && self.line.starts_with(b"\xef\xbb\xbf") {
                self.line.drain(..3);
            }
            if long {
                return Ok(Line::TooLong);
            }
            if !self.line.trim_ascii().is_empty() {
                return Ok(Line::There);
            }
        }
    }
}

/// Place of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Nowhere,
    /// A place in the line.
    Line(usize, usize),
    /// A place among the texts with escapes.
    Text(usize, usize),
}

/// Format of JSON lines.
pub struct JsonLines;

impl Format for JsonLines {
    fn name(&self) -> &'static str {
        "jsonl"
    }

    fn title(&self) -> &'static str {
        "JSON lines"
    }

    fn recognises(&self, start: Start<'_>) -> bool {
        let bytes = start.bytes();
        bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start().starts_with(b"{")
    }

    fn inspect(&self, file: SourceFile, mapping: Option<&Mapping>) -> Result<Inspected, Problems> {
        let (input, from) = Origins::open(&file)?;
        let columns = columns(input, from.gauge, &file.path)?;
        let Binding { columns: bound, notes } = bind(mapping, &columns).map_err(|problems| in_file(problems, &file))?;
        let rows = JsonFile { keys: columns.into_iter().map(|column| column.name).collect(), bound };
        let speed_choice = unused_speed(rows.keys.iter().map(String::as_str), &rows.bound);
        let facts = Facts { speed_choice, ..inspect(self.name(), rows.table(&file)?) };
        Ok(Inspected::Rows(Box::new(RowsFile { file, facts, notes, rows: Box::new(rows) })))
    }
}

/// Paths of the values, and the roles that they are bound to.
struct JsonFile {
    keys: Vec<String>,
    bound: Vec<Bound>,
}

impl JsonFile {
    fn table(&self, file: &SourceFile) -> Result<MappedText<JsonRows>, Problems> {
        let (input, from) = Origins::open(file)?;
        let mut bound = self.bound.clone();
        let rows = JsonRows::new(input, from.gauge.clone(), &self.keys, &mut bound);
        let names = rows.names();
        Ok(MappedText::new(from, rows, names, (bound, Vec::new()), false))
    }
}

impl OpenRows for JsonFile {
    fn open(&self, file: &SourceFile) -> Result<Box<dyn TraceReader>, Problems> {
        Ok(self.table(file)?.reader())
    }
}

/// The values of chosen paths, line by line.
struct JsonRows {
    lines: Lines,
    wanted: Vec<String>,
    found: Vec<Found>,
    text: Vec<u8>,
    path: Vec<u8>,
    /// True once a row was read.
    begun: bool,
    /// True if the last line was cut, and is left out.
    cut: bool,
}

impl JsonRows {
    /// The columns that `bound` has, which then go by their places in it.
    pub fn new(input: Box<dyn BufRead + Send>, gauge: Arc<Gauge>, columns: &[String], bound: &mut [Bound]) -> Self {
        let wanted: Vec<String> = bound.iter().map(|b| columns[b.index].clone()).collect();
        bound.iter_mut().enumerate().for_each(|(place, b)| b.index = place);
        let lines = Lines { input, gauge, line: Vec::new(), number: 0, open: false };
        JsonRows {
            lines,
            found: vec![Found::Nowhere; wanted.len()],
            wanted,
            text: Vec::new(),
            path: Vec::new(),
            begun: false,
            cut: false,
        }
    }

    /// The names of the values.
    pub fn names(&self) -> Vec<String> {
        self.wanted.clone()
    }
}

fn unreadable(error: &std::io::Error) -> Problem {
    Problem::new(format!("cannot be read: {error}"))
}

fn too_long() -> Problem {
    Problem::new(format!("is longer than {LINE_LIMIT} bytes"))
}

fn no_json(line: &[u8], Wrong { what, at }: Wrong) -> Problem {
    let problem = Problem::new(format!("is no JSON object: {what}, at byte {}", at + 1));
    let problem = problem.value(String::from_utf8_lossy(line.trim_ascii()));
    if at >= line.len() || line.trim_ascii_start().first() != Some(&b'{') {
        problem.accepted("an object in each line").suggestion("jq -c writes it so")
    } else {
        problem
    }
}

impl Rows for JsonRows {
    fn read(&mut self) -> Result<bool, RowError> {
        match self.lines.next().map_err(|e| text::unreadable(&e))? {
            Line::End => return Ok(false),
            Line::TooLong => return Err(RowError::Row(too_long())),
            Line::There => {}
        }
        let JsonRows { lines, wanted, found, text, path, begun, cut } = self;
        found.fill(Found::Nowhere);
        text.clear();
        let line = lines.line.trim_ascii_end();
        let mut odd = None;
        let place_of = |part: &str| part.as_ptr() as usize - line.as_ptr() as usize;
        let mut seen = |path: &[u8], leaf: Option<Leaf<'_>>| {
            let Some(place) = wanted.iter().position(|name| name.as_bytes() == path) else { return };
            found[place] = match leaf {
                Some(Leaf::Text(part)) if part.contains('\\') => {
                    let from = text.len();
                    match serde_json::from_str::<String>(part) {
                        Ok(value) => text.extend_from_slice(value.as_bytes()),
                        Err(_) => odd = Some((place, "has an escape that is no character")),
                    }
                    Found::Text(from, text.len())
                }
                Some(Leaf::Text(part)) => Found::Line(place_of(part) + 1, place_of(part) + part.len() - 1),
                Some(Leaf::Plain(part)) => Found::Line(place_of(part), place_of(part) + part.len()),
                Some(Leaf::Null) => Found::Nowhere,
                Some(Leaf::List) => {
                    odd = Some((place, "is a list"));
                    Found::Nowhere
                }
                None => {
                    odd = Some((place, "is an object: its values go by the paths of their keys, with dots between"));
                    Found::Nowhere
                }
            };
        };
        if let Err(wrong) = walk(line, path, &mut seen) {
            // An object without its end, where the file has none either.
            if *begun && lines.open && wrong.at >= line.len() {
                *cut = true;
                return Ok(false);
            }
            return Err(RowError::Row(no_json(line, wrong)));
        }
        match odd {
            Some((place, what)) => {
                Err(RowError::Row(Problem::new(what).column(wanted[place].clone()).accepted("one value by row")))
            }
            None => {
                *begun = true;
                Ok(true)
            }
        }
    }

    #[inline]
    fn get(&self, index: usize) -> Option<&[u8]> {
        match *self.found.get(index)? {
            Found::Nowhere => None,
            Found::Line(begin, end) => self.lines.line.get(begin..end),
            Found::Text(begin, end) => self.text.get(begin..end),
        }
    }

    #[inline]
    fn line(&self) -> u64 {
        self.lines.number
    }

    fn ended(&self) -> Option<String> {
        self.cut.then(|| format!("the file ends within line {}: that row was left out", self.lines.number))
    }
}

/// Columns of a file: paths of the values in its first lines.
///
/// # Errors
/// None of these lines is an object; there are too many columns.
fn columns(input: Box<dyn BufRead + Send>, gauge: Arc<Gauge>, path: &Path) -> Result<Vec<Column>, Problems> {
    let mut lines = Lines { input, gauge, line: Vec::new(), number: 0, open: false };
    let mut index: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    let mut columns: Vec<Column> = Vec::new();
    let mut wrong: Problems = Vec::new();
    let (mut right, mut keys) = (false, Vec::new());
    for _ in 0..LOOK {
        let place = |problem: Problem, line: u64| problem.file(path).place(format!("line {line}"));
        match lines.next() {
            Ok(Line::There) => {}
            Ok(Line::End) => break,
            Ok(Line::TooLong) => {
                wrong.push(place(too_long(), lines.number));
                continue;
            }
            Err(error) => return Err(place(unreadable(&error), lines.number.max(1)).into()),
        }
        let line = lines.line.trim_ascii_end();
        let mut seen = |key: &[u8], leaf: Option<Leaf<'_>>| {
            let Some(leaf) = leaf else { return };
            let at = match index.get(key) {
                Some(at) => *at,
                None if columns.len() > MAX_COLUMNS => return,
                None => {
                    index.insert(key.to_vec(), columns.len());
                    let name = String::from_utf8_lossy(key).into_owned();
                    columns.push(Column { name, declared: None, first: None });
                    columns.len() - 1
                }
            };
            if columns[at].first.is_some() {
                return;
            }
            columns[at].first = leaf.text().map(|text| text.trim().to_string()).filter(|text| !text.is_empty());
        };
        match walk(line, &mut keys, &mut seen) {
            Ok(()) => right = true,
            Err(error) if wrong.len() < REPORTED => wrong.push(place(no_json(line, error), lines.number)),
            Err(_) => {}
        }
    }
    if columns.len() > MAX_COLUMNS {
        return Err(Problem::new(format!("has more than {MAX_COLUMNS} columns")).file(path).into());
    }
    if right || wrong.is_empty() {
        Ok(columns)
    } else {
        // One object over many lines is wrong in each of them.
        wrong.truncate(1);
        Err(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(line: &str) -> Result<Vec<(String, String)>, Wrong> {
        let mut found = Vec::new();
        let mut seen = |path: &[u8], leaf: Option<Leaf<'_>>| {
            let text = match leaf {
                Some(Leaf::Null) => "null".to_string(),
                Some(Leaf::List) => "[]".to_string(),
                Some(leaf) => leaf.text().unwrap_or_default(),
                None => "{}".to_string(),
            };
            found.push((String::from_utf8_lossy(path).into_owned(), text));
        };
        walk(line.as_bytes(), &mut Vec::new(), &mut seen).map(|()| found)
    }

    fn pairs(list: &[(&str, &str)]) -> Result<Vec<(String, String)>, Wrong> {
        Ok(list.iter().map(|(path, value)| ((*path).to_string(), (*value).to_string())).collect())
    }

    #[test]
    fn values_go_by_the_paths_of_their_keys_and_numbers_keep_their_digits() {
        let line =
            r#" {"ts": 1795372415.311008235, "q": {"bytes": 18446744073709551617, "x": {}}, "a": [1, {"b": 2}], "n": null} "#;
        let wanted = [("ts", "1795372415.311008235"), ("q", "{}"), ("q.bytes", "18446744073709551617"), ("q.x", "{}")];
        assert_eq!(values(line), pairs(&[&wanted[..], &[("a", "[]"), ("n", "null")]].concat()));
        assert_eq!(
            values(r#"{"a\u002eb":"x\ty\u00e9\ud83d\ude00z","t":true,"f":false,"e":-1.5E-3}"#),
            pairs(&[("a.b", "x\tyé😀z"), ("t", "true"), ("f", "false"), ("e", "-1.5E-3")])
        );
        assert_eq!(values("{}"), pairs(&[]));
    }

    #[test]
    fn what_is_no_object_says_where() {
        for (line, what, at) in [
            ("5", "invalid type: integer `5`, expected an object", 0),
            ("[1]", "invalid type: sequence, expected an object", 0),
            ("{", "it ends too early", 1),
            ("{\"a\": 1", "it ends too early", 7),
            ("{\"a\": 1}}", "trailing characters", 8),
            ("{\"a\": 1,}", "trailing comma", 8),
            ("{a: 1}", "key must be a string", 1),
            ("{\"a\" 1}", "expected `:`", 5),
            ("{\"a\": 01}", "invalid number", 7),
            ("{\"a\": NaN}", "expected value", 6),
            ("{\"a\": \"x", "it ends too early", 8),
            ("{\"a\": 1 \"b\": 2}", "expected `,` or `}`", 8),
        ] {
            assert_eq!(values(line), Err(Wrong { what: what.to_string(), at }), "{line}");
        }
        let not_utf8 = walk(b"{\"a\": \"\xff\"}", &mut Vec::new(), &mut |_, _| {});
        assert_eq!(not_utf8, Err(Wrong { what: "it is no text in UTF-8".into(), at: 7 }));
        let deep = format!("{}1{}", "{\"a\":".repeat(10_000), "}".repeat(10_000));
        assert_eq!(values(&deep).unwrap_err().what, "it is nested too deeply");
        let lists = format!("{{\"a\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(values(&lists), pairs(&[("a", "[]")]));
        assert_eq!(values(&lists[..60_000]).unwrap_err().what, "it ends too early");
    }
}
