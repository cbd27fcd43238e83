//! Reads at an offset of a file, whichever system it is on; other reads of the same file are not disturbed.

#[cfg(unix)]
pub use std::os::unix::fs::FileExt;

/// Reads at offsets, which Windows does by moving the file's own place: all reads of these files name theirs.
#[cfg(windows)]
pub trait FileExt {
    /// Reads some bytes at an offset.
    ///
    /// # Errors
    /// Errors of the system.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> std::io::Result<usize>;

    /// Fills a buffer from an offset on.
    ///
    /// # Errors
    /// Errors of the system, and an end of the file before that.
    fn read_exact_at(&self, mut buf: &mut [u8], mut offset: u64) -> std::io::Result<()> {
        while !buf.is_empty() {
            match self.read_at(buf, offset) {
                Ok(0) => return Err(std::io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    buf = &mut buf[read..];
                    offset += read as u64;
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(windows)]
impl FileExt for std::fs::File {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> std::io::Result<usize> {
        std::os::windows::fs::FileExt::seek_read(self, buf, offset)
    }
}
