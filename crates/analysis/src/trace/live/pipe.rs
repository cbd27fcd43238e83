//! A stream as a file of which more comes: at first its beginning, to be inspected, then each whole line once.

use crate::formats::message_length;
use crate::input::at::{Files, Found, ReadAt};
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Beginning of an Arrow stream.
const ARROW: [u8; 4] = [0xff; 4];

/// Units in which a stream is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Units {
    /// Whole lines.
    #[default]
    Lines,
    /// Messages of Arrow, which the reader lets go.
    Arrow,
    /// Bytes as they come: the reader keeps those of a message that is not whole.
    Bytes,
}

/// Bytes that have come and have not been used.
#[derive(Debug, Default)]
struct Held {
    bytes: Vec<u8>,
    /// Bytes at the beginning of `bytes` that have been used.
    used: usize,
    /// Bytes of the stream before `bytes`.
    before: u64,
    /// Bytes up to the end of the last line or message, in `bytes`.
    whole: usize,
    units: Units,
    /// True while the beginning is inspected: what is read stays.
    inspecting: bool,
    ended: bool,
    /// True if a reader asked for bytes that have not come.
    blocked: bool,
}

impl Held {
    fn is_arrow(&self) -> bool {
        self.units == Units::Arrow
    }
}

/// The bytes of one stream.
#[derive(Clone, Debug, Default)]
pub struct Pipe(Arc<Mutex<Held>>);

impl Pipe {
    /// A stream of which nothing has come.
    pub fn new() -> Self {
        let pipe = Pipe::default();
        pipe.held().inspecting = true;
        pipe
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes bytes in.
    pub fn push(&self, bytes: &[u8]) {
        let mut held = self.held();
        if held.used > 0 {
            let used = std::mem::take(&mut held.used);
            held.bytes.drain(..used);
            held.whole -= used;
            held.before += used as u64;
        }
        match held.units {
            Units::Arrow => {}
            Units::Bytes => held.whole = held.bytes.len() + bytes.len(),
            Units::Lines => {
                if let Some(feed) = memchr::memrchr(b'\n', bytes) {
                    held.whole = held.bytes.len() + feed + 1;
                }
            }
        }
        held.bytes.extend_from_slice(bytes);
        if held.before == 0 && held.bytes.starts_with(&ARROW) && held.units == Units::Lines {
            (held.units, held.whole) = (Units::Arrow, 0);
        }
        while held.is_arrow() {
            let Some(length) = message_length(&held.bytes[held.whole..]) else { break };
            held.whole += length;
        }
    }

    /// True for an Arrow stream.
    pub fn is_arrow(&self) -> bool {
        self.held().is_arrow()
    }

    /// True for a stream of messages that only its reader can tell apart.
    pub fn is_bytes(&self) -> bool {
        self.held().units == Units::Bytes
    }

    /// Reads the stream as bytes from its beginning.
    pub fn take_bytes(&self) {
        let mut held = self.held();
        (held.units, held.whole) = (Units::Bytes, held.bytes.len());
    }

    /// The first bytes that wait, `most` of them at most.
    pub fn start(&self, most: usize) -> Vec<u8> {
        let held = self.held();
        held.bytes[held.used..].iter().take(most).copied().collect()
    }

    /// Puts a line in front of all bytes; nothing of the stream may have been used.
    pub fn put_first(&self, line: &[u8]) {
        let mut held = self.held();
        held.bytes.splice(0..0, line.iter().copied());
        held.whole += line.len();
    }

    /// Ends the stream: a last line without a line feed is one too.
    pub fn end(&self) {
        let mut held = self.held();
        held.ended = true;
        if !held.is_arrow() {
            held.whole = held.bytes.len();
        }
    }

    /// Ends the inspection: from now on each byte is read once.
    pub fn go_on(&self) {
        self.held().inspecting = false;
    }

    /// True if a reader had to stop since this was last asked.
    pub fn was_blocked(&self) -> bool {
        std::mem::take(&mut self.held().blocked)
    }

    /// Bytes of the stream that were read.
    pub fn read(&self) -> u64 {
        let held = self.held();
        held.before + held.used as u64
    }

    /// Bytes that wait, those of the unfinished last line included.
    pub fn waiting(&self) -> usize {
        let held = self.held();
        held.bytes.len() - held.used
    }

    /// True if the bytes that wait begin so.
    pub fn starts_with(&self, start: &[u8]) -> bool {
        let held = self.held();
        held.bytes[held.used..].starts_with(start)
    }

    /// Whole lines or messages that wait, counted up to `most`, and the first of them.
    pub fn units(&self, most: usize) -> (usize, Vec<u8>) {
        let held = self.held();
        let bytes = &held.bytes[held.used..held.whole.max(held.used)];
        if held.is_arrow() {
            let (mut count, mut at) = (0, 0);
            while let Some(length) = message_length(&bytes[at..]).filter(|_| count < most) {
                (count, at) = (count + 1, at + length);
            }
            return (count, bytes[..message_length(bytes).unwrap_or(0)].to_vec());
        }
        let first = memchr::memchr(b'\n', bytes).map_or(bytes, |feed| &bytes[..=feed]);
        (memchr::memchr_iter(b'\n', bytes).take(most).count(), first.to_vec())
    }
}

impl ReadAt for Pipe {
    fn size(&self) -> Result<u64> {
        let held = self.held();
        // Texts are not asked how long they are: they end where no more comes.
        Ok(if held.inspecting || held.is_arrow() { held.before + held.whole as u64 } else { 0 })
    }

    fn grows(&self) -> bool {
        let held = self.held();
        !held.inspecting && !held.ended
    }

    fn let_go(&self, before: u64) {
        let mut held = self.held();
        if held.is_arrow() && !held.inspecting {
            held.used =
                usize::try_from(before.saturating_sub(held.before)).map_or(held.used, |used| used.clamp(held.used, held.whole));
        }
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        let mut held = self.held();
        let Some(from) = offset.checked_sub(held.before).and_then(|from| usize::try_from(from).ok()) else {
            return Err(Error::other("bytes of a stream can be read once"));
        };
        let there = held.bytes.get(from..held.whole).unwrap_or_default();
        if there.is_empty() && !held.is_arrow() && !held.inspecting && !held.ended {
            held.blocked = true;
            return Err(ErrorKind::WouldBlock.into());
        }
        let count = there.len().min(buf.len());
        buf[..count].copy_from_slice(&there[..count]);
        if !held.inspecting && !held.is_arrow() {
            held.used = held.used.max(from + count);
        }
        Ok(count)
    }
}

/// The only file of a place, which is a stream.
#[derive(Debug)]
pub struct OneStream {
    pub path: PathBuf,
    pub pipe: Pipe,
}

impl Files for OneStream {
    fn find(&self, path: &Path) -> Result<Found> {
        if path == self.path {
            Ok(Found::File(self.pipe.size()?))
        } else {
            Err(ErrorKind::NotFound.into())
        }
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn ReadAt>> {
        self.find(path)?;
        Ok(Arc::new(self.pipe.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pipe: &Pipe, offset: u64) -> std::result::Result<Vec<u8>, ErrorKind> {
        let mut buf = [0; 64];
        pipe.read_at(&mut buf, offset).map(|count| buf[..count].to_vec()).map_err(|error| error.kind())
    }

    #[test]
    fn whole_lines_are_read_once_and_the_rest_is_waited_for() {
        let pipe = Pipe::new();
        pipe.push(b"a\nb");
        assert_eq!((read(&pipe, 0), read(&pipe, 0), read(&pipe, 2)), (Ok(b"a\n".to_vec()), Ok(b"a\n".to_vec()), Ok(vec![])));
        pipe.put_first(b"names\n");
        assert_eq!(pipe.units(9), (2, b"names\n".to_vec()));
        pipe.go_on();
        assert_eq!(read(&pipe, 0), Ok(b"names\na\n".to_vec()));
        assert_eq!((read(&pipe, 8), pipe.was_blocked(), pipe.was_blocked()), (Err(ErrorKind::WouldBlock), true, false));
        pipe.push(b"b\nc");
        assert_eq!((read(&pipe, 8), pipe.read(), pipe.waiting()), (Ok(b"bb\n".to_vec()), 11, 1));
        pipe.end();
        assert_eq!((read(&pipe, 11), read(&pipe, 12)), (Ok(b"c".to_vec()), Ok(vec![])));
    }
}
