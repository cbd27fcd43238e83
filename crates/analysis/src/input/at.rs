//! Files that are read at offsets, wherever they lie: on the disks of this machine, or with a page that has no disks.

use std::fmt::Debug;
use std::fs::File;
use std::io::{ErrorKind, Result};
use std::path::Path;
use std::sync::Arc;

/// Contents of a file. A read at an offset disturbs no other one.
pub trait ReadAt: Debug + Send + Sync {
    /// Bytes of it.
    ///
    /// # Errors
    /// Errors of the system.
    fn size(&self) -> Result<u64>;

    /// Reads some bytes at an offset; none at its end.
    ///
    /// # Errors
    /// Errors of the system.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize>;

    /// True for a stream of which more will come.
    fn grows(&self) -> bool {
        false
    }

    /// Lets go of the bytes before an offset: they will not be read again.
    fn let_go(&self, _before: u64) {}

    /// Fills a buffer from an offset on.
    ///
    /// # Errors
    /// Errors of the system, and an end of the file before that.
    fn read_exact_at(&self, mut buf: &mut [u8], mut offset: u64) -> Result<()> {
        while !buf.is_empty() {
            match self.read_at(buf, offset) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    buf = &mut buf[read..];
                    offset += read as u64;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl ReadAt for File {
    fn size(&self) -> Result<u64> {
        Ok(self.metadata()?.len())
    }

    #[cfg(unix)]
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, buf, offset)
    }

    /// Windows moves the file's own place with it: all reads of these files name theirs.
    #[cfg(windows)]
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        std::os::windows::fs::FileExt::seek_read(self, buf, offset)
    }

    #[cfg(not(any(unix, windows)))]
    fn read_at(&self, _: &mut [u8], _: u64) -> Result<usize> {
        Err(ErrorKind::Unsupported.into())
    }
}

/// Kind of thing that a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A file of so many bytes.
    File(u64),
    Folder,
    /// A device, a socket and the like.
    Other,
}

/// Place where the files of a trace lie.
pub trait Files: Debug + Send + Sync {
    /// Tells the kind of thing at a path.
    ///
    /// # Errors
    /// Nothing, or it cannot be told.
    fn find(&self, path: &Path) -> Result<Found>;

    /// Opens a file.
    ///
    /// # Errors
    /// It cannot be opened.
    fn open(&self, path: &Path) -> Result<Arc<dyn ReadAt>>;
}

/// Files of this machine.
#[derive(Debug)]
struct Disks;

impl Files for Disks {
    fn find(&self, path: &Path) -> Result<Found> {
        let there = std::fs::metadata(path)?;
        Ok(match (there.is_file(), there.is_dir()) {
            (true, _) => Found::File(there.len()),
            (_, true) => Found::Folder,
            _ => Found::Other,
        })
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn ReadAt>> {
        Ok(Arc::new(File::open(path)?))
    }
}

/// The files that an analysis reads: those of this machine, unless it is given others.
#[derive(Clone, Debug)]
pub struct Shelf(pub Arc<dyn Files>);

impl Default for Shelf {
    fn default() -> Self {
        Shelf(Arc::new(Disks))
    }
}

impl Shelf {
    pub fn is_file(&self, path: &Path) -> bool {
        self.0.find(path).is_ok_and(|found| matches!(found, Found::File(_)))
    }

    pub fn is_folder(&self, path: &Path) -> bool {
        self.0.find(path).is_ok_and(|found| found == Found::Folder)
    }
}
