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

/// Begin and end of a part of a line.
type Part = (usize, usize);

/// A value at the end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaf {
    /// A text, as it stands between its quotes.
    Text(Part),
    /// A number, `true` or `false`.
    Plain(Part),
    Null,
    List,
}

/// Error in the JSON of a line, and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wrong {
    what: &'static str,
    at: usize,
}

/// A walk through one line.
struct Walk<'a> {
    text: &'a [u8],
    at: usize,
    path: Vec<u8>,
}

type Walked<T> = Result<T, Wrong>;

impl<'a> Walk<'a> {
    /// Hands `seen` every value of the object that a line is, and, with `None`, the path of every object in it.
    fn line(text: &'a [u8], path: Vec<u8>, seen: &mut impl FnMut(&[u8], Option<Leaf>)) -> (Walked<()>, Vec<u8>) {
        let mut walk = Walk { text, at: 0, path };
        walk.path.clear();
        let walked = walk.whole(seen);
        (walked, walk.path)
    }

    fn whole(&mut self, seen: &mut impl FnMut(&[u8], Option<Leaf>)) -> Walked<()> {
        if self.peek() != Some(b'{') {
            return Err(self.wrong("an object was expected"));
        }
        self.object(DEPTH, seen)?;
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.wrong("there is more behind the object")),
        }
    }

    fn wrong(&self, what: &'static str) -> Wrong {
        let what = if self.at >= self.text.len() { "it ends too early" } else { what };
        Wrong { what, at: self.at }
    }

    /// The next byte that is no space.
    #[inline]
    fn peek(&mut self) -> Option<u8> {
        loop {
            match self.text.get(self.at) {
                Some(b' ' | b'\t' | b'\r' | b'\n') => self.at += 1,
                other => return other.copied(),
            }
        }
    }

    #[inline]
    fn expect(&mut self, byte: u8, what: &'static str) -> Walked<()> {
        if self.peek() != Some(byte) {
            return Err(self.wrong(what));
        }
        self.at += 1;
        Ok(())
    }

    fn object(&mut self, depth: usize, seen: &mut impl FnMut(&[u8], Option<Leaf>)) -> Walked<()> {
        if depth == 0 {
            return Err(self.wrong("it is nested too deeply"));
        }
        self.expect(b'{', "an object was expected")?;
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        let before = self.path.len();
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.wrong("a key in double quotes was expected"));
            }
            let (begin, end) = self.string()?;
            let key = &self.text[begin..end];
            if before > 0 {
                self.path.push(b'.');
            }
            unescape(key, &mut self.path);
            self.expect(b':', "a colon was expected")?;
            match self.peek() {
                Some(b'{') => {
                    seen(&self.path, None);
                    self.object(depth - 1, seen)?;
                }
                _ => {
                    let leaf = self.leaf(depth - 1)?;
                    seen(&self.path, Some(leaf));
                }
            }
            self.path.truncate(before);
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return Err(self.wrong("a comma or the end of the object was expected")),
            }
        }
    }

    /// A value that is no object.
    #[inline]
    fn leaf(&mut self, depth: usize) -> Walked<Leaf> {
        match self.peek() {
            Some(b'"') => self.string().map(Leaf::Text),
            Some(b'-' | b'0'..=b'9') => self.number().map(Leaf::Plain),
            Some(b'[') => self.list(depth).map(|()| Leaf::List),
            _ => {
                let begin = self.at;
                for word in [&b"true"[..], b"false", b"null"] {
                    if self.text[begin..].starts_with(word) {
                        self.at += word.len();
                        return Ok(if word == b"null" { Leaf::Null } else { Leaf::Plain((begin, self.at)) });
                    }
                }
                Err(self.wrong("a value was expected"))
            }
        }
    }

    fn list(&mut self, depth: usize) -> Walked<()> {
        if depth == 0 {
            return Err(self.wrong("it is nested too deeply"));
        }
        self.at += 1;
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            match self.peek() {
                Some(b'{') => self.object(depth - 1, &mut |_, _| {})?,
                _ => {
                    self.leaf(depth - 1)?;
                }
            }
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return Err(self.wrong("a comma or the end of the list was expected")),
            }
        }
    }

    #[inline]
    fn string(&mut self) -> Walked<Part> {
        self.at += 1;
        let begin = self.at;
        loop {
            let rest = &self.text[self.at..];
            match rest.iter().position(|b| matches!(b, b'"' | b'\\' | 0..0x20)) {
                None => {
                    self.at = self.text.len();
                    return Err(self.wrong("a text does not end"));
                }
                Some(length) => self.at += length,
            }
            match self.text[self.at] {
                b'"' => {
                    self.at += 1;
                    return Ok((begin, self.at - 1));
                }
                b'\\' => {
                    let after = self.text.get(self.at + 1..).unwrap_or_default();
                    let known = match after {
                        [b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => 2,
                        [b'u', a, b, c, d, ..] if [a, b, c, d].iter().all(|h| h.is_ascii_hexdigit()) => 6,
                        _ => return Err(self.wrong("an unknown escape is in a text")),
                    };
                    self.at += known;
                }
                _ => return Err(self.wrong("a control character is in a text")),
            }
        }
    }

    #[inline]
    fn number(&mut self) -> Walked<Part> {
        let begin = self.at;
        self.at += usize::from(self.text[self.at] == b'-');
        let zero = self.text.get(self.at) == Some(&b'0');
        let whole = self.digits();
        if whole == 0 || (zero && whole > 1) {
            return Err(self.wrong("a number was expected"));
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            if self.digits() == 0 {
                return Err(self.wrong("digits were expected behind the point"));
            }
        }
        if matches!(self.text.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.text.get(self.at), Some(b'+' | b'-')));
            if self.digits() == 0 {
                return Err(self.wrong("an exponent was expected"));
            }
        }
        Ok((begin, self.at))
    }

    #[inline]
    fn digits(&mut self) -> usize {
        let length = self.text[self.at..].iter().take_while(|b| b.is_ascii_digit()).count();
        self.at += length;
        length
    }
}

/// Text between quotes without its escapes, which were checked before.
fn unescape(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        let unit = |text: &[u8]| match text {
            [b'\\', b'u', hex @ ..] => {
                let hex = std::str::from_utf8(hex.get(..4)?).ok()?;
                u16::from_str_radix(hex, 16).ok()
            }
            _ => None,
        };
        let escape = &rest[at..];
        let (length, c) = match unit(escape) {
            Some(high @ 0xd800..0xdc00) => match escape.get(6..).and_then(unit) {
                Some(low @ 0xdc00..0xe000) => (12, char::decode_utf16([high, low]).next().and_then(Result::ok)),
                _ => (6, None),
            },
            Some(unit) => (6, char::from_u32(u32::from(unit))),
            None => {
                let c = match escape.get(1) {
                    Some(b'n') => '\n',
                    Some(b't') => '\t',
                    Some(b'r') => '\r',
                    Some(b'b') => '\u{8}',
                    Some(b'f') => '\u{c}',
                    other => char::from(*other.unwrap_or(&b'\\')),
                };
                (2, Some(c))
            }
        };
        let c = c.unwrap_or(char::REPLACEMENT_CHARACTER);
        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        rest = escape.get(length..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
}

/// Reader of lines that are not empty.
struct Lines {
    input: Box<dyn BufRead + Send>,
    gauge: Arc<Gauge>,
    line: Vec<u8>,
    number: u64,
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
}

impl JsonRows {
    /// The columns that `bound` has, which then go by their places in it.
    pub fn new(input: Box<dyn BufRead + Send>, gauge: Arc<Gauge>, columns: &[String], bound: &mut [Bound]) -> Self {
        let wanted: Vec<String> = bound.iter().map(|b| columns[b.index].clone()).collect();
        bound.iter_mut().enumerate().for_each(|(place, b)| b.index = place);
        let lines = Lines { input, gauge, line: Vec::new(), number: 0 };
        JsonRows { lines, found: vec![Found::Nowhere; wanted.len()], wanted, text: Vec::new(), path: Vec::new() }
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
        let JsonRows { lines, wanted, found, text, path } = self;
        found.fill(Found::Nowhere);
        text.clear();
        let line = lines.line.trim_ascii_end();
        let mut odd = None;
        let mut seen = |path: &[u8], leaf: Option<Leaf>| {
            let Some(place) = wanted.iter().position(|name| name.as_bytes() == path) else { return };
            found[place] = match leaf {
                Some(Leaf::Text((begin, end))) if memchr::memchr(b'\\', &line[begin..end]).is_some() => {
                    let from = text.len();
                    unescape(&line[begin..end], text);
                    Found::Text(from, text.len())
                }
                Some(Leaf::Text((begin, end)) | Leaf::Plain((begin, end))) => Found::Line(begin, end),
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
        let (walked, path_again) = Walk::line(line, std::mem::take(path), &mut seen);
        *path = path_again;
        if let Err(wrong) = walked {
            return Err(RowError::Row(no_json(line, wrong)));
        }
        match odd {
            Some((place, what)) => {
                Err(RowError::Row(Problem::new(what).column(wanted[place].clone()).accepted("one value by row")))
            }
            None => Ok(true),
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
}

/// Columns of a file: paths of the values in its first lines.
///
/// # Errors
/// None of these lines is an object; there are too many columns.
fn columns(input: Box<dyn BufRead + Send>, gauge: Arc<Gauge>, path: &Path) -> Result<Vec<Column>, Problems> {
    let mut lines = Lines { input, gauge, line: Vec::new(), number: 0 };
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
        let mut seen = |key: &[u8], leaf: Option<Leaf>| {
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
            let mut text = Vec::new();
            match leaf {
                Leaf::Text((begin, end)) => unescape(&line[begin..end], &mut text),
                Leaf::Plain((begin, end)) => text.extend_from_slice(&line[begin..end]),
                Leaf::Null | Leaf::List => {}
            }
            let text = String::from_utf8_lossy(text.trim_ascii()).into_owned();
            columns[at].first = Some(text).filter(|text| !text.is_empty());
        };
        let (walked, path) = Walk::line(line, std::mem::take(&mut keys), &mut seen);
        keys = path;
        match walked {
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
        let mut seen = |path: &[u8], leaf: Option<Leaf>| {
            let mut text = Vec::new();
            match leaf {
                Some(Leaf::Text((begin, end))) => unescape(&line.as_bytes()[begin..end], &mut text),
                Some(Leaf::Plain((begin, end))) => text.extend_from_slice(&line.as_bytes()[begin..end]),
                Some(Leaf::Null) => text.extend(b"null"),
                Some(Leaf::List) => text.extend(b"[]"),
                None => text.extend(b"{}"),
            }
            found.push((String::from_utf8_lossy(path).into_owned(), String::from_utf8_lossy(&text).into_owned()));
        };
        Walk::line(line.as_bytes(), Vec::new(), &mut seen).0.map(|()| found)
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
            values(r#"{"a\u002eb":"x\ty\u00e9\ud83d\ude00\ud800z","t":true,"f":false,"e":-1.5E-3}"#),
            pairs(&[("a.b", "x\tyé😀\u{fffd}z"), ("t", "true"), ("f", "false"), ("e", "-1.5E-3")])
        );
        assert_eq!(values("{}"), pairs(&[]));
    }

    #[test]
    fn what_is_no_object_says_where() {
        for (line, what, at) in [
            ("5", "an object was expected", 0),
            ("[1]", "an object was expected", 0),
            ("{", "it ends too early", 1),
            ("{\"a\": 1", "it ends too early", 7),
            ("{\"a\": 1}}", "there is more behind the object", 8),
            ("{\"a\": 1,}", "a key in double quotes was expected", 8),
            ("{a: 1}", "a key in double quotes was expected", 1),
            ("{\"a\" 1}", "a colon was expected", 5),
            ("{\"a\": 01}", "a number was expected", 8),
            ("{\"a\": 1.}", "digits were expected behind the point", 8),
            ("{\"a\": NaN}", "a value was expected", 6),
            ("{\"a\": \"x", "it ends too early", 8),
            ("{\"a\": \"\\x\"}", "an unknown escape is in a text", 7),
            ("{\"a\": \"\t\"}", "a control character is in a text", 7),
            ("{\"a\": 1 \"b\": 2}", "a comma or the end of the object was expected", 8),
        ] {
            assert_eq!(values(line), Err(Wrong { what, at }), "{line}");
        }
        let deep = format!("{}{}", "{\"a\":".repeat(100_000), "1");
        assert_eq!(values(&deep).unwrap_err().what, "it is nested too deeply");
        let lists = format!("{{\"a\": {}", "[".repeat(100_000));
        assert_eq!(values(&lists).unwrap_err().what, "it is nested too deeply");
    }

    /// True if a line is an object, and the values at the ends of its paths, are what serde_json says.
    #[test]
    fn lines_are_those_of_serde_json_whatever_the_text() {
        const PIECES: [&str; 24] = [
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"a\"",
            "\"b\\n\"",
            "\"\\u00e9\"",
            "1",
            "-",
            "0",
            ".5",
            "e3",
            "true",
            "null",
            " ",
            "\"",
            "\\",
            "{\"a\":",
            "\"c\":1",
            "x",
            "-0.0",
            "\"q\":\"v\"",
        ];
        let mut state = 9_u64;
        let mut next = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let mut right = 0;
        for _ in 0..60_000 {
            let text: String =
                std::iter::once("{").chain((0..next(7)).map(|_| PIECES[next(PIECES.len())])).chain(["}"]).collect();
            let theirs: Result<serde_json::Value, _> = serde_json::from_str(&text);
            let ours = values(&text);
            assert_eq!(ours.is_ok(), theirs.is_ok(), "{text}: {ours:?} {theirs:?}");
            let Ok(theirs) = theirs else { continue };
            right += 1;
            for (path, value) in ours.unwrap() {
                // A key may hold what separates paths.
                let Some(pointed) = theirs.pointer(&format!("/{}", path.replace('.', "/"))) else { continue };
                // Of equal keys the last one counts, there and here.
                match pointed {
                    serde_json::Value::String(text) if value.len() == text.len() => assert_eq!(*text, value),
                    _ => {}
                }
            }
        }
        assert!(right > 600, "only {right} were objects");
    }
}
