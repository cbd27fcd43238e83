//! Room for what does not stay in memory: a file without a name; in a page, which has none, memory all the same.

pub use room::Spill;

#[cfg(not(target_family = "wasm"))]
mod room {
    use crate::input::at::ReadAt;
    use std::fs::File;
    use std::io::{Error, ErrorKind, Result, Write};

    /// A file without a name, in the folder for temporary ones: its space is free again when the process is gone, however it went.
    #[derive(Debug)]
    pub struct Spill(File);

    impl Spill {
        /// # Errors
        /// There is no room for it.
        pub fn new() -> Result<Self> {
            let folder = std::env::temp_dir();
            let mut number = 0u64;
            loop {
                let path = folder.join(format!("fanin-sort-{}-{number}", std::process::id()));
                match File::options().read(true).write(true).create_new(true).open(&path) {
                    Ok(file) => {
                        std::fs::remove_file(&path)?;
                        return Ok(Spill(file));
                    }
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
                    Err(error) => return Err(error),
                }
            }
        }

        /// Words on an error: the place of the file, and a way to more room.
        pub fn said(error: &Error) -> [String; 2] {
            let folder = std::env::temp_dir();
            [
                format!("for which parts of it are kept in {}: {error}", folder.display()),
                "set TMPDIR to a folder with more room, or sort the trace beforehand".into(),
            ]
        }

        /// # Errors
        /// There is no room for it.
        pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
            self.0.write_all(bytes)
        }

        /// # Errors
        /// It cannot be read.
        pub fn read(&self, bytes: &mut [u8], at: u64) -> Result<()> {
            self.0.read_exact_at(bytes, at)
        }
    }
}

#[cfg(target_family = "wasm")]
mod room {
    use std::io::{Error, ErrorKind, Result};

    #[derive(Debug)]
    pub struct Spill(Vec<u8>);

    impl Spill {
        /// # Errors
        /// None.
        pub fn new() -> Result<Self> {
            Ok(Spill(Vec::new()))
        }

        /// Words on an error: the reason, and a way to more room.
        pub fn said(error: &Error) -> [String; 2] {
            [
                format!("for which a page has no more memory: {error}"),
                "sort the trace beforehand, or use fanin analyze --sort".into(),
            ]
        }

        /// # Errors
        /// There is no room for it.
        pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
            self.0.try_reserve(bytes.len()).map_err(|_| Error::from(ErrorKind::OutOfMemory))?;
            self.0.extend_from_slice(bytes);
            Ok(())
        }

        /// # Errors
        /// It has not as many bytes.
        pub fn read(&self, bytes: &mut [u8], at: u64) -> Result<()> {
            let from = usize::try_from(at).unwrap_or(usize::MAX);
            let there = self.0.get(from..).and_then(|rest| rest.get(..bytes.len())).ok_or(ErrorKind::UnexpectedEof)?;
            bytes.copy_from_slice(there);
            Ok(())
        }
    }
}
