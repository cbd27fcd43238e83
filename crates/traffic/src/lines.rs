//! Text files line by line, with bounded memory and errors that name the line.

use crate::context::Build;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// Longest accepted line \[bytes\], so that memory stays bounded; no valid file has longer ones.
pub(crate) const MAX_LINE: usize = 64 << 10;

/// A problem of a file: its line, the value and the message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FileError {
    pub line: Option<u32>,
    pub value: Option<String>,
    pub message: String,
    pub accepted: Option<String>,
    pub suggestion: Option<String>,
}

impl FileError {
    /// Largest number of errors reported per file.
    pub const MOST: usize = 20;

    pub fn at(line: u32, value: &str, message: &str, accepted: &str) -> Self {
        let shown: String = value.chars().take(60).flat_map(char::escape_debug).collect();
        FileError {
            line: Some(line),
            value: Some(format!("\"{shown}\"")),
            message: message.into(),
            accepted: Some(accepted.into()),
            suggestion: None,
        }
    }

    pub fn whole(message: &str, accepted: &str) -> Self {
        FileError { line: None, value: None, message: message.into(), accepted: Some(accepted.into()), suggestion: None }
    }

    pub fn suggest(mut self, suggestion: String) -> Self {
        self.suggestion = Some(suggestion);
        self
    }
}

/// Opens a file for reading.
pub(crate) fn open(path: &Path) -> Result<BufReader<File>, FileError> {
    let unreadable =
        |error| FileError::whole(&format!("cannot be read: {error} ({})", path.display()), "a file, relative to the scenario");
    // Before it is opened: that waits for ever where nobody writes into a named pipe.
    let kind = std::fs::metadata(path).map_err(unreadable)?;
    if kind.is_dir() {
        return Err(FileError::whole("is a folder", "a file"));
    }
    if !kind.is_file() {
        return Err(FileError::whole(&format!("is not a regular file ({})", path.display()), "a file, not a pipe or a device"));
    }
    File::open(path).map(|file| BufReader::with_capacity(MAX_LINE, file)).map_err(unreadable)
}

/// Records a file's errors at `key` of an entry.
pub(crate) fn report(build: &mut Build, key: &str, path: &str, errors: Vec<FileError>) {
    for error in errors {
        let value = match error.line {
            Some(_) => error.value,
            None => Some(format!("\"{path}\"")),
        };
        let problem = build.error(key, value, error.message, error.accepted.as_deref());
        if error.line.is_some() {
            problem.path.push_str(&format!(" ({path})"));
        }
        problem.line = error.line;
        problem.suggestion = error.suggestion;
    }
}

/// Reader of the lines of a file that are neither empty nor a comment, trimmed.
pub(crate) struct Lines<R> {
    source: R,
    buffer: Vec<u8>,
    text: String,
    number: u32,
}

impl<R: BufRead> Lines<R> {
    pub fn new(source: R) -> Self {
        Lines { source, buffer: Vec::new(), text: String::new(), number: 0 }
    }

    /// Reads the next line; returns it with its number.
    pub fn next(&mut self) -> Result<Option<(u32, &str)>, FileError> {
        loop {
            self.buffer.clear();
            let limit = MAX_LINE as u64 + 1;
            let read = (&mut self.source).take(limit).read_until(b'\n', &mut self.buffer);
            self.number = self.number.saturating_add(1);
            match read {
                Ok(0) => return Ok(None),
                Ok(n) if n as u64 == limit && self.buffer.last() != Some(&b'\n') => {
                    return Err(FileError::at(self.number, "", &format!("is longer than {MAX_LINE} bytes"), "shorter lines"));
                }
                Ok(_) => {}
                Err(error) => return Err(FileError::at(self.number, "", &format!("cannot be read: {error}"), "a readable file")),
            }
            // Text has neither; what follows would be refused line after line.
            let Some(line) = std::str::from_utf8(&self.buffer).ok().filter(|line| !line.contains('\0')) else {
                let error = FileError::at(self.number, "", "is not text in UTF-8", "a text file");
                return Err(FileError { value: None, ..error });
            };
            let content = line.split('#').next().unwrap_or_default().trim().trim_start_matches('\u{feff}');
            if !content.is_empty() {
                self.text = content.to_string();
                break;
            }
        }
        Ok(Some((self.number, &self.text)))
    }
}
