//! The bytes of a capture, one block at a time.

use super::{CaptureError, Trouble};
use std::io::{BufRead, BufReader, ErrorKind, Read};

/// Number of bytes that are read ahead.
const AHEAD: usize = 256 << 10;

/// A reader that knows its place in the file.
pub(super) struct Source<R> {
    reader: BufReader<R>,
    /// Bytes of the present block from its first one.
    buffer: Vec<u8>,
    /// Offset of the present block.
    offset: u64,
    /// Offset of the next block.
    next: u64,
    /// The present block's number, from 1.
    block: u64,
}

impl<R: Read> Source<R> {
    pub fn new(reader: R) -> Self {
        Source { reader: BufReader::with_capacity(AHEAD, reader), buffer: Vec::new(), offset: 0, next: 0, block: 0 }
    }

    /// Begins a block with its first `n` bytes; returns the number of bytes that there are.
    pub fn begin(&mut self, n: usize) -> Result<usize, CaptureError> {
        self.offset = self.next;
        self.block += 1;
        self.buffer.clear();
        self.more(n)
    }

    /// Reads the present block up to its `n`-th byte; returns the number of bytes that there are. Memory grows with what is
    /// really there, not with what a length field claims.
    pub fn more(&mut self, n: usize) -> Result<usize, CaptureError> {
        while self.buffer.len() < n {
            let there = match self.reader.fill_buf() {
                Ok(there) => there,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.error(Trouble::Io, format!("cannot be read: {error}"))),
            };
            let taken = there.len().min(n - self.buffer.len());
            if taken == 0 {
                break;
            }
            self.buffer.extend_from_slice(&there[..taken]);
            self.reader.consume(taken);
            self.next += taken as u64;
        }
        Ok(self.buffer.len())
    }

    /// Fills the buffer with `n` bytes; fewer are an error.
    pub fn all(&mut self, n: usize) -> Result<(), CaptureError> {
        if self.more(n)? < n {
            return Err(self.truncated(n as u64));
        }
        Ok(())
    }

    /// True if zeros follow the present block, which is zeros too, as far as has been read ahead; or nothing does, and it is not the first
    /// behind the file's header.
    pub fn ends_in_zeros(&mut self) -> Result<bool, CaptureError> {
        loop {
            match self.reader.fill_buf() {
                Ok(there) => return Ok(if there.is_empty() { self.block > 2 } else { there.iter().all(|byte| *byte == 0) }),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.error(Trouble::Io, format!("cannot be read: {error}"))),
            }
        }
    }

    /// Passes over the present block's bytes from the last read to the `n`-th.
    pub fn skip(&mut self, n: u64) -> Result<(), CaptureError> {
        let missing = n - (self.next - self.offset);
        match std::io::copy(&mut self.reader.by_ref().take(missing), &mut std::io::sink()) {
            Ok(read) => self.next += read,
            Err(error) => return Err(self.error(Trouble::Io, format!("cannot be read: {error}"))),
        }
        if self.next - self.offset < n {
            return Err(self.truncated(n));
        }
        Ok(())
    }

    /// The present block, as far as it has been read.
    pub fn data(&self) -> &[u8] {
        &self.buffer
    }

    /// Offset of the present block.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// An error of the present block.
    pub fn error(&self, trouble: Trouble, what: impl Into<String>) -> CaptureError {
        CaptureError { trouble, offset: self.offset, block: self.block, what: what.into() }
    }

    /// Error: the file ends within the present block, which should have `n` bytes.
    pub fn truncated(&self, n: u64) -> CaptureError {
        let there = self.next - self.offset;
        self.error(Trouble::Truncated, format!("the file ends after {there} of {n} bytes"))
    }
}
