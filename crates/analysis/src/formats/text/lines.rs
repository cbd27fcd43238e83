//! Text as lines of values between delimiters.
//!
//! A line without quotes is taken apart where it lies, eight bytes at a time; one with quotes by the `csv-core` crate, whose rules hold
//! for both: empty lines and lines that begin with `#` are no records, quotes count at the beginning of a value, and what stands in
//! them may hold delimiters, line feeds and doubled quotes. A quote that nothing closes is an error of its line. Carriage returns are passed over wherever they are.

use crate::input::file::Gauge;
use csv_core::{ReadRecordResult, ReaderBuilder};
use std::io::{BufRead, Error, ErrorKind, Read};
use std::sync::Arc;

/// Longest line, and most text of a record [bytes]: both are held in memory.
const LINE_LIMIT: usize = 1 << 20;

/// Bytes that are read at once.
const CHUNK: usize = 1 << 17;

/// Number of values of a record that are told apart; of a record with more it is only known that it has more.
pub const MAX_VALUES: usize = 10_001;

/// Text that is being read, and the values of its present record.
pub struct Lines {
    input: Box<dyn BufRead + Send>,
    gauge: Arc<Gauge>,
    delimiter: u8,
    /// Bytes that have been read; those still to be used begin at `at`.
    buffer: Vec<u8>,
    at: usize,
    /// True if all has been read, and ends in a line feed.
    ended: bool,
    /// The last byte that has been read.
    last: u8,
    /// True if all that has been read ends without a line feed.
    open: bool,
    /// No quote is before this place, at or after `at`.
    quote: usize,
    /// Begin and end of each value, in `buffer` or in `text`.
    values: Vec<(usize, usize)>,
    /// Values of a line with quotes.
    text: Vec<u8>,
    quoted: bool,
    quotes: csv_core::Reader,
    line: u64,
    /// True where the rest of a line that is too long is still to be passed over.
    skipping: bool,
}

/// The high bit of each byte of `word` that equals the byte that `eight` has eight times.
#[inline(always)]
fn equal(word: u64, eight: u64) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let differ = word ^ eight;
    !(((differ & LOW) + LOW) | differ | LOW)
}

impl Lines {
    /// Lines of an input. Where its gauge says that it was cut, an unfinished last line is left out.
    pub fn new(input: Box<dyn BufRead + Send>, delimiter: u8, gauge: Arc<Gauge>) -> Self {
        let quotes = ReaderBuilder::new().delimiter(delimiter).comment(Some(b'#')).build();
        Lines {
            input,
            gauge,
            delimiter,
            buffer: Vec::new(),
            at: 0,
            ended: false,
            last: b'\n',
            open: false,
            quote: 0,
            values: Vec::new(),
            text: Vec::new(),
            quoted: false,
            quotes,
            line: 0,
            skipping: false,
        }
    }

    /// The number of the line that the present record ends in, from 1; 0 before the first.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// True if the present record is the last, and its line has no end.
    pub fn is_open(&self) -> bool {
        self.open && self.at >= self.buffer.len()
    }

    /// Bytes of the present record's last value.
    #[inline]
    pub fn last_length(&self) -> usize {
        self.values.last().map_or(0, |(begin, end)| end - begin)
    }

    /// Values of the present record.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// A value of the present record.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let (begin, end) = *self.values.get(index)?;
        Some(if self.quoted { &self.text[begin..end] } else { &self.buffer[begin..end] })
    }

    /// All values of the present record.
    pub fn values(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// Reads the next record; false at the end.
    ///
    /// # Errors
    /// It cannot be read, or a line does not end. What is read next begins behind that line.
    pub fn read(&mut self) -> std::io::Result<bool> {
        while self.skipping {
            self.skip()?;
        }
        loop {
            match self.buffer.get(self.at) {
                None if self.ended => {
                    self.values.clear();
                    return Ok(false);
                }
                None => self.more()?,
                Some(b'\n') => self.pass(self.at + 1),
                Some(b'#') => match memchr::memchr(b'\n', &self.buffer[self.at..]) {
                    Some(length) => self.pass(self.at + length + 1),
                    None => self.more()?,
                },
                Some(_) => match self.split() {
                    // Wherever what has been read ends.
                    Some(end) if end - self.at > LINE_LIMIT => {
                        self.pass(end + 1);
                        return Err(too_long());
                    }
                    Some(end) if end <= self.quote => {
                        self.quoted = false;
                        self.pass(end + 1);
                        return Ok(true);
                    }
                    Some(_) => return self.read_quoted(),
                    None => self.more()?,
                },
            }
        }
    }

    /// Passes over a line that has been used.
    #[inline(always)]
    fn pass(&mut self, to: usize) {
        self.at = to;
        self.line += 1;
    }

    /// Finds the values of the line at `at` as if there were no quotes; gives its end, if that has been read.
    #[inline]
    fn split(&mut self) -> Option<usize> {
        if self.quote < self.at {
            let next = memchr::memchr(b'"', &self.buffer[self.at..]);
            self.quote = next.map_or(self.buffer.len(), |next| self.at + next);
        }
        let eight = |byte: u8| u64::from_ne_bytes([byte; 8]);
        let (delimiters, feeds) = (eight(self.delimiter), eight(b'\n'));
        self.values.clear();
        let mut begin = self.at;
        let mut at = self.at;
        let mut chunks = self.buffer[at..].chunks_exact(8);
        for chunk in &mut chunks {
            let word = u64::from_le_bytes(chunk.try_into().unwrap_or_default());
            let feed = equal(word, feeds);
            let mut found = equal(word, delimiters) | feed;
            while found != 0 {
                let end = at + found.trailing_zeros() as usize / 8;
                // More values are no table; they need not be held.
                if self.values.len() < MAX_VALUES {
                    self.values.push((begin, end));
                }
                if found & found.wrapping_neg() & feed != 0 {
                    return Some(end);
                }
                begin = end + 1;
                found &= found - 1;
            }
            at += 8;
        }
        for (offset, byte) in chunks.remainder().iter().enumerate() {
            if *byte == self.delimiter || *byte == b'\n' {
                if self.values.len() < MAX_VALUES {
                    self.values.push((begin, at + offset));
                }
                if *byte == b'\n' {
                    return Some(at + offset);
                }
                begin = at + offset + 1;
            }
        }
        None
    }

    /// Reads on behind the bytes that are still to be used, until there is more or all has been read.
    #[cold]
    fn more(&mut self) -> std::io::Result<()> {
        if self.buffer.len() - self.at > LINE_LIMIT {
            return Err(self.give_up());
        }
        self.buffer.drain(..self.at);
        self.at = 0;
        let begin = self.buffer.len();
        while self.buffer.len() == begin && !self.ended {
            self.buffer.resize(begin + CHUNK, 0);
            let read = self.input.read(&mut self.buffer[begin..]);
            self.buffer.truncate(begin + *read.as_ref().unwrap_or(&0));
            match read {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(0) => {
                    self.ended = true;
                    if self.gauge.is_cut() {
                        let whole = memchr::memrchr(b'\n', &self.buffer).map_or(0, |feed| feed + 1);
                        self.buffer.truncate(whole);
                    } else if self.last != b'\n' {
                        self.open = true;
                        self.buffer.push(b'\n');
                    }
                }
                Ok(_) => self.drop_returns(begin),
            }
        }
        self.last = self.buffer.last().copied().unwrap_or(self.last);
        // Quotes are sought anew: from `at` on.
        self.quote = memchr::memchr(b'"', &self.buffer).unwrap_or(self.buffer.len());
        Ok(())
    }

    /// Gives up a line that is too long; the rest of it is passed over when the next one is asked for.
    fn give_up(&mut self) -> Error {
        self.skipping = true;
        self.quotes.reset();
        too_long()
    }

    /// Gives up a line with a quote that nothing closes, since all lines end in a line feed; what follows is read as lines of its own.
    #[cold]
    fn unclosed(&mut self) -> Error {
        self.quotes.reset();
        let end = memchr::memchr(b'\n', &self.buffer[self.at..]).map_or(self.buffer.len(), |length| self.at + length + 1);
        self.pass(end);
        Error::other("a quoted value begins in this line and does not end")
    }

    /// Passes over bytes of a line that is too long, up to its end.
    fn skip(&mut self) -> std::io::Result<()> {
        match memchr::memchr(b'\n', &self.buffer[self.at..]) {
            Some(length) => {
                self.skipping = false;
                self.pass(self.at + length + 1);
            }
            None => {
                self.at = self.buffer.len();
                self.skipping = !self.ended;
                if self.skipping {
                    self.more()?;
                }
            }
        }
        Ok(())
    }

    /// Takes carriage returns out of the bytes that have been read.
    fn drop_returns(&mut self, begin: usize) {
        let Some(first) = memchr::memchr(b'\r', &self.buffer[begin..]) else { return };
        let mut kept = begin + first;
        let mut from = kept + 1;
        while from < self.buffer.len() {
            let end = memchr::memchr(b'\r', &self.buffer[from..]).map_or(self.buffer.len(), |length| from + length);
            self.buffer.copy_within(from..end, kept);
            kept += end - from;
            from = end + 1;
        }
        self.buffer.truncate(kept);
    }

    /// Reads a record that begins at `at` and may have quotes.
    fn read_quoted(&mut self) -> std::io::Result<bool> {
        self.quotes.set_line(self.line);
        self.quoted = true;
        let mut ends = vec![0; 64];
        let (mut length, mut written, mut count) = (0, 0, 0);
        self.text.resize(1 << 10, 0);
        loop {
            let input = &self.buffer[self.at + length..];
            if input.is_empty() {
                if self.ended {
                    return Err(self.unclosed());
                }
                if let Err(error) = self.more() {
                    // A stream has given whole lines so far, and nobody knows when the next ones come.
                    let waits = error.kind() == ErrorKind::WouldBlock && memchr::memchr(b'\n', &self.buffer[self.at..]).is_some();
                    self.quotes.reset();
                    return Err(if waits { self.unclosed() } else { error });
                }
                continue;
            }
            let (result, used, new, values) = self.quotes.read_record(input, &mut self.text[written..], &mut ends[count..]);
            (length, written, count) = (length + used, written + new, count + values);
            match result {
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull if written >= LINE_LIMIT => return Err(self.give_up()),
                ReadRecordResult::OutputFull => self.text.resize(2 * self.text.len(), 0),
                ReadRecordResult::OutputEndsFull if count >= LINE_LIMIT => return Err(self.give_up()),
                ReadRecordResult::OutputEndsFull => ends.resize(2 * ends.len(), 0),
                ReadRecordResult::Record | ReadRecordResult::End => break,
            }
        }
        self.at += length;
        self.line = self.quotes.line();
        self.values.clear();
        let mut begin = 0;
        for end in &ends[..count.min(MAX_VALUES)] {
            self.values.push((begin, *end));
            begin = *end;
        }
        Ok(count > 0)
    }
}

fn too_long() -> Error {
    Error::other(format!("a line is longer than {LINE_LIMIT} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    /// Records with the lines they end in; what ended the reading.
    type Read = (Vec<(u64, Vec<Vec<u8>>)>, Option<String>);

    fn read(text: &[u8], capacity: usize) -> Read {
        let input = BufReader::with_capacity(capacity, std::io::Cursor::new(text.to_vec()));
        // No more than its buffer at once.
        struct Little(BufReader<std::io::Cursor<Vec<u8>>>);
        impl std::io::Read for Little {
            fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
                let most = buf.len().min(self.0.capacity());
                self.0.read(&mut buf[..most])
            }
        }
        impl BufRead for Little {
            fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
                self.0.fill_buf()
            }
            fn consume(&mut self, amount: usize) {
                self.0.consume(amount);
            }
        }
        let mut lines = Lines::new(Box::new(Little(input)), b',', Arc::default());
        let mut records = Vec::new();
        loop {
            match lines.read() {
                Ok(true) => records.push((lines.line(), lines.values().map(<[u8]>::to_vec).collect())),
                Ok(false) => return (records, None),
                Err(error) => return (records, Some(error.to_string())),
            }
        }
    }

    /// What the `csv` crate reads.
    fn plain(text: &[u8]) -> Read {
        let mut text: Vec<u8> = text.iter().copied().filter(|byte| *byte != b'\r').collect();
        if text.last().is_some_and(|last| *last != b'\n') {
            text.push(b'\n');
        }
        let mut reader =
            csv::ReaderBuilder::new().comment(Some(b'#')).has_headers(false).flexible(true).from_reader(text.as_slice());
        let mut record = csv::ByteRecord::new();
        let mut records = Vec::new();
        while reader.read_byte_record(&mut record).unwrap() {
            records.push((reader.position().line() - 1, record.iter().map(<[u8]>::to_vec).collect()));
        }
        (records, None)
    }

    #[test]
    fn records_are_those_of_the_csv_crate_whatever_the_text_and_however_it_comes() {
        const PIECES: [&str; 14] =
            [",", ",", "\n", "\n", "\r\n", "\"", "\"\"", "#", "1234567890", "a", "x y", "\r", "é", "12345.678"];
        let mut state = 3_u64;
        let (mut quoted, mut open) = (0, 0);
        for turn in 0..20_000 {
            let mut text = String::new();
            for _ in 0..turn % 40 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let piece = PIECES[(state >> 33) as usize % PIECES.len()];
                // Most lines have no quotes.
                if turn % 3 == 0 || !piece.contains('"') {
                    text.push_str(piece);
                }
            }
            let mut wanted = plain(text.as_bytes());
            // An open quote is closed by one more; else that one opens another.
            let feed = if text.trim_end_matches('\r').ends_with('\n') || text.is_empty() { "" } else { "\n" };
            let closed = plain(format!("{text}{feed}\"\nz\n").as_bytes());
            if closed.0.last().is_some_and(|(_, values)| values == &[b"z"]) {
                wanted.0.pop();
                wanted.1 = Some("a quoted value begins in this line and does not end".into());
                open += 1;
            }
            quoted += usize::from(text.contains('"') && wanted.0.len() > 1);
            for capacity in [1, 7, 1000] {
                assert_eq!(read(text.as_bytes(), capacity), wanted, "{text:?}, {capacity} bytes at once");
            }
        }
        assert!(quoted > 1_000 && open > 1_000, "only {quoted} texts had quotes and several records, {open} open quotes");
    }

    #[test]
    fn lines_across_chunks_are_whole_and_what_does_not_end_is_refused() {
        let text: String = (0..60_000).map(|i| format!("{i},eth{},{}\n", i % 48, "9".repeat(i % 23))).collect();
        assert!(text.len() > 4 * CHUNK);
        let (records, error) = read(text.as_bytes(), 1 << 16);
        assert_eq!((records.len(), error), (60_000, None));
        for (i, (line, values)) in records.iter().enumerate() {
            let wanted = [i.to_string(), format!("eth{}", i % 48), "9".repeat(i % 23)];
            assert_eq!((*line, values.as_slice()), (i as u64 + 1, wanted.map(String::into_bytes).as_slice()));
        }
        let endless = |begin: &str, part: &str| format!("x,y\n{begin}{}", part.repeat(3 * LINE_LIMIT / part.len()));
        for (begin, part) in [("", "a"), ("", ","), ("#", "a"), ("\"\"", ","), ("\"", "a\n"), ("\"\n\"", ",")] {
            let (records, error) = read(endless(begin, part).as_bytes(), 1 << 16);
            assert_eq!((records.len(), error.as_deref()), (1, Some("a line is longer than 1048576 bytes")), "{begin:?} {part:?}");
        }
        // What comes behind it is read.
        for long in ["a".repeat(LINE_LIMIT + 5), ",".repeat(3 * LINE_LIMIT), format!("\"{}\"", "a,".repeat(LINE_LIMIT))] {
            let text = format!("x\n{long}\ny\n");
            let mut lines = Lines::new(Box::new(std::io::Cursor::new(text.into_bytes())), b',', Arc::default());
            assert!(lines.read().unwrap());
            assert!(lines.read().is_err());
            assert!(lines.read().unwrap());
            assert_eq!((lines.values().collect::<Vec<_>>(), lines.line()), (vec![&b"y"[..]], 3));
            assert!(!lines.read().unwrap());
        }
        // A stray quote costs its line and no more.
        let text = b"x,y\n1,\"a\nb\"\n2,\"b\n3,c\n4,d\n";
        let mut lines = Lines::new(Box::new(std::io::Cursor::new(text.to_vec())), b',', Arc::default());
        let mut first = || lines.read().map(|_| lines.get(0).unwrap_or_default().to_vec()).map_err(|_| lines.line());
        let row = |text: &str| Ok(text.as_bytes().to_vec());
        assert_eq!([(); 5].map(|()| first()), [row("x"), row("1"), Err(4), row("3"), row("4")]);
        // A line at the limit is read and one beyond it is not, wherever chunks end.
        for before in [0, CHUNK / 2, CHUNK - 10] {
            let line = |length| format!("{}\n{}\nx\n", "b".repeat(before), "a".repeat(length));
            assert_eq!(read(line(LINE_LIMIT).as_bytes(), 1 << 16).1, None, "{before}");
            assert!(read(line(LINE_LIMIT + 1).as_bytes(), 1 << 16).1.is_some(), "{before}");
        }
        let many = format!("{}\n1\n", ",".repeat(20_000));
        let (records, error) = read(many.as_bytes(), 1 << 16);
        assert_eq!((records[0].1.len(), records[1].1.len(), error), (MAX_VALUES, 1, None), "no more than are told apart");
    }
}
