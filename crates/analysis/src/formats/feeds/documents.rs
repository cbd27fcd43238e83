//! Documents of JSON in a stream, one after another or as elements of a list, each found without reading a byte twice.

use super::{Decode, Feed};
use crate::input::problem::Problem;
use serde_json::Value as Json;

/// Finder of documents: what it has seen of the one that has not come whole.
#[derive(Debug, Default)]
pub struct Documents {
    /// Bytes from the front that were looked at.
    seen: usize,
    /// Brackets that are open in the document; 0: between documents.
    depth: u32,
    quoted: bool,
    escaped: bool,
    /// True within a list, whose elements are documents.
    listed: bool,
    /// Documents that have come whole.
    count: u64,
}

/// Reader of one document after another.
pub trait Document: Send {
    /// Takes a document.
    ///
    /// # Errors
    /// What is wrong with it.
    fn document(&mut self, document: &Json, feed: &mut Feed<'_>) -> Result<(), Problem>;

    /// Takes the end: nothing more comes.
    ///
    /// # Errors
    /// What is wrong with all of them.
    fn end(&mut self, _feed: &mut Feed<'_>) -> Result<(), Problem> {
        Ok(())
    }

    /// True if the facts of a file need all of it.
    fn is_read_whole(&self) -> bool {
        false
    }

    /// Adds notes for the end of a stream of so many documents.
    fn notes(&mut self, count: u64, notes: &mut Vec<String>);
}

/// Decoder of a stream of documents.
#[derive(Debug, Default)]
pub struct OfDocuments<D> {
    documents: Documents,
    reader: D,
}

impl<D: Document + 'static> OfDocuments<D> {
    /// The decoder of a stream whose documents `reader` takes.
    pub fn made(reader: D) -> Box<dyn Decode> {
        Box::new(OfDocuments { documents: Documents::default(), reader })
    }
}

impl<D: Document> Decode for OfDocuments<D> {
    fn decode(&mut self, bytes: &[u8], end: bool, feed: &mut Feed<'_>) -> Result<usize, Problem> {
        let OfDocuments { documents, reader } = self;
        let used = documents.read(bytes, end, feed, |document, feed| reader.document(&document, feed))?;
        if end {
            reader.end(feed)?;
        }
        Ok(used)
    }

    fn is_read_whole(&self) -> bool {
        self.reader.is_read_whole()
    }

    fn finish(&mut self, notes: &mut Vec<String>) {
        let Documents { count, listed, depth, .. } = self.documents;
        self.reader.notes(count, notes);
        if listed && depth == 0 {
            notes.push("the list does not end, as in a file that was cut: what came of it was read".into());
        }
    }
}

impl Documents {
    /// Hands each document over that has come whole; gives the number of bytes done with.
    ///
    /// # Errors
    /// What is no document, with its place; what `each` says.
    fn read<'a>(
        &mut self,
        bytes: &[u8],
        end: bool,
        feed: &mut Feed<'a>,
        mut each: impl FnMut(Json, &mut Feed<'a>) -> Result<(), Problem>,
    ) -> Result<usize, Problem> {
        let read = self.walk(bytes, end, &mut |document, passed| {
            feed.pass(passed);
            document.map_or(Ok(()), |document| each(document, feed))
        });
        if read.is_err() {
            // What follows begins behind what was wrong.
            (self.seen, self.depth, self.quoted, self.escaped) = (0, 0, false, false);
        }
        read
    }

    /// Hands each document over, or none where one is wrong, with the number of bytes up to its end.
    fn walk(
        &mut self,
        bytes: &[u8],
        end: bool,
        each: &mut dyn FnMut(Option<Json>, usize) -> Result<(), Problem>,
    ) -> Result<usize, Problem> {
        let mut begin = 0;
        while let Some(byte) = bytes.get(self.seen) {
            self.seen += 1;
            if self.depth == 0 {
                match byte {
                    b'{' => (self.depth, begin) = (1, self.seen - 1),
                    b'[' if !self.listed => (self.listed, begin) = (true, self.seen),
                    b']' if self.listed => (self.listed, begin) = (false, self.seen),
                    b',' if self.listed => begin = self.seen,
                    // Space, and the mark of UTF-8.
                    b' ' | b'\t' | b'\r' | b'\n' | 0xef | 0xbb | 0xbf => begin = self.seen,
                    _ => {
                        let line = memchr::memchr(b'\n', &bytes[self.seen..]).map_or(bytes.len(), |line| self.seen + line + 1);
                        each(None, line)?;
                        return Err(self.wrong("it begins with no '{'", &bytes[self.seen - 1..]));
                    }
                }
                continue;
            }
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.quoted => self.escaped = true,
                b'"' => self.quoted = !self.quoted,
                b'{' | b'[' if !self.quoted => self.depth += 1,
                b'}' | b']' if !self.quoted => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        let document = &bytes[begin..self.seen];
                        each(None, self.seen)?;
                        let read = serde_json::from_slice(document).map_err(|error| self.wrong(&error.to_string(), &[]))?;
                        self.count += 1;
                        each(Some(read), self.seen).map_err(|problem| {
                            let within = problem.place.as_ref().map_or(String::new(), |place| format!(", {place}"));
                            let place = format!("document {}{within}", self.count);
                            problem.place(place)
                        })?;
                        begin = self.seen;
                    }
                }
                _ => {}
            }
        }
        // What was cut is told with the bytes that are not read.
        if end && self.depth > 0 && self.count == 0 {
            each(None, bytes.len())?;
            let error = serde_json::from_slice::<Json>(&bytes[begin..]).err().filter(|error| !error.is_eof());
            return Err(match error {
                Some(error) => self.wrong(&error.to_string(), &[]),
                None => Problem::new("ends within its only document: it was cut, and nothing in it is whole")
                    .place("document 1")
                    .accepted("whole documents, one after another or in a list"),
            });
        }
        self.seen -= begin;
        Ok(begin)
    }

    fn wrong(&self, what: &str, value: &[u8]) -> Problem {
        let problem = Problem::new(format!("is no JSON: {what}"))
            .place(format!("document {}", self.count + 1))
            .accepted("objects, one after another or in a list");
        let shown = String::from_utf8_lossy(&value[..value.len().min(40)]).into_owned();
        if shown.is_empty() {
            problem
        } else {
            problem.value(shown)
        }
    }
}

/// True for a text that begins with a document, or with a list of them.
pub fn begins(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '['])
}

/// A whole number that stands for itself, or in quotes, as JSON has those of 64 bits.
pub fn whole(value: &Json) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Documents of bytes that come in pieces of `step`.
    fn of(text: &str, step: usize) -> Result<Vec<String>, String> {
        let (mut documents, mut held, mut found) = (Documents::default(), Vec::new(), Vec::new());
        let pieces: Vec<&[u8]> = text.as_bytes().chunks(step).collect();
        for place in 0..=pieces.len() {
            held.extend_from_slice(pieces.get(place).copied().unwrap_or_default());
            let mut each = |document: Option<Json>, _: usize| {
                found.extend(document.map(|document| document.to_string()));
                Ok(())
            };
            let used = documents.walk(&held, place == pieces.len(), &mut each).map_err(|problem| problem.to_string())?;
            held.drain(..used);
            // What is held is not looked at again.
            assert_eq!(documents.seen, held.len());
        }
        Ok(found)
    }

    #[test]
    fn documents_are_the_same_whatever_bytes_come_at_a_time() {
        let text = "\u{feff}{\"a\":\"}{\\\"\"}\n[{\"b\":[1,{}]}, {\"c\":2}]\r\n[] {\"d\":null}";
        let all = ["{\"a\":\"}{\\\"\"}", "{\"b\":[1,{}]}", "{\"c\":2}", "{\"d\":null}"];
        for step in 1..=text.len() {
            assert_eq!(of(text, step).unwrap(), all, "{step} bytes at a time");
        }
    }

    #[test]
    fn of_what_was_cut_whole_documents_are_read() {
        for (text, whole) in [("{} {\"a\":", 1), ("[{}, {}, {\"a\": 12", 2), ("[{}, {}, ", 2), ("[{}", 1)] {
            assert_eq!(of(text, 3).unwrap().len(), whole, "{text}");
        }
        let said = of("{\"a\": [1, 2", 100).unwrap_err();
        assert!(said.starts_with("document 1: ends within its only document: it was cut"), "{said}");
        // A mistake before the end is no cut.
        assert!(of("{\"a\" 1, [", 100).unwrap_err().starts_with("document 1: is no JSON: expected `:`"));
    }

    #[test]
    fn what_is_no_document_is_told_with_its_place() {
        let said = of("[{}, 5]", 100).unwrap_err();
        let accepted = "accepted: objects, one after another or in a list";
        assert_eq!(said, format!("document 2: '5]' is no JSON: it begins with no '{{'; {accepted}"));
        assert!(of("{\"a\" 1}", 3).unwrap_err().starts_with("document 1: is no JSON: expected `:`"));
    }
}
