//! A capture that is being written: whole blocks at a time, so that a disk that is full leaves a capture that can be read.

use crate::capture::Direction;
use crate::write::Encoder;
use fanin_packet::IpVersion;
use fanin_telemetry::TableError;
use fanin_units::{BitRate, HostId, Time};
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Bytes that wait to be written together.
const WAITING: usize = 1 << 20;

/// Storage of the blocks.
trait Storage: Send {
    /// Adds `bytes` at `offset`, the file's end, whole or not at all.
    fn append(&mut self, offset: u64, bytes: &[u8]) -> std::io::Result<()>;
}

impl Storage for File {
    fn append(&mut self, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
        self.seek(SeekFrom::Start(offset))?;
        self.write_all(bytes).inspect_err(|_| {
            // Half a block is of no use, and its space may be what another file needs.
            let _ = self.set_len(offset);
        })
    }
}

/// Frames on their way into a pcapng file.
pub struct CaptureFile {
    path: PathBuf,
    /// Storage of the file; `None`: everything is kept in memory.
    storage: Option<Box<dyn Storage>>,
    /// End of the file [bytes].
    end: u64,
    /// Blocks that are not in the file yet, and the number of frames among them.
    waiting: Vec<u8>,
    frames_waiting: u64,
    /// Frames in the file.
    frames: u64,
    interfaces: u32,
    snap: Option<u32>,
}

impl CaptureFile {
    /// The file's name in a result folder.
    pub const NAME: &'static str = "packets.pcapng";

    /// Begins a capture in `folder`. `application` and `comment` say whose it is; of each frame at most `snap` bytes are kept.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn create(folder: &Path, application: &str, comment: &str, snap: Option<u32>) -> Result<Self, TableError> {
        let path = folder.join(Self::NAME);
        let file = File::create(&path).map_err(|e| TableError { path: path.clone(), cause: e.to_string() })?;
        Ok(Self::new(path, Some(Box::new(file)), (application, comment), snap))
    }

    /// A capture that stays in memory, for tests and small runs.
    pub fn keep(application: &str, comment: &str, snap: Option<u32>) -> Self {
        Self::new(Self::NAME.into(), None, (application, comment), snap)
    }

    fn new(path: PathBuf, storage: Option<Box<dyn Storage>>, words: (&str, &str), snap: Option<u32>) -> Self {
        let mut waiting = Vec::new();
        Encoder(&mut waiting).section(words.0, words.1);
        CaptureFile { path, storage, end: 0, waiting, frames_waiting: 0, frames: 0, interfaces: 0, snap }
    }

    /// Adds the NIC of a host with its address of `ip`, before any frame is there; gives its number.
    pub fn interface(&mut self, (host, ip): (HostId, IpVersion), name: &str, rate: BitRate) -> u32 {
        Encoder(&mut self.waiting).interface((host, ip), name, rate, self.snap);
        self.interfaces += 1;
        self.interfaces - 1
    }

    /// Adds a link, before any frame is there; gives its number.
    pub fn link(&mut self, name: &str, rate: BitRate) -> u32 {
        Encoder(&mut self.waiting).link(name, rate, self.snap);
        self.interfaces += 1;
        self.interfaces - 1
    }

    /// Adds a frame.
    ///
    /// # Errors
    /// When frames that waited cannot be written; they wait on.
    pub fn frame(&mut self, interface: u32, time: Time, frame: &[u8], direction: Direction) -> Result<(), TableError> {
        Encoder(&mut self.waiting).packet(interface, time, frame, self.snap, direction);
        self.frames_waiting += 1;
        if self.storage.is_some() && self.waiting.len() >= WAITING {
            self.write()?;
        }
        Ok(())
    }

    /// Writes all waiting blocks.
    fn write(&mut self) -> Result<(), TableError> {
        let Some(storage) = &mut self.storage else { return Ok(()) };
        let written = storage.append(self.end, &self.waiting);
        written.map_err(|e| TableError { path: self.path.clone(), cause: e.to_string() })?;
        self.end += self.waiting.len() as u64;
        self.waiting.clear();
        self.frames += std::mem::take(&mut self.frames_waiting);
        Ok(())
    }

    /// Writes all waiting blocks; gives the number of frames.
    ///
    /// # Errors
    /// When it cannot be written; what is in the file is a capture, and this may be tried again once there is space.
    pub fn finish(&mut self) -> Result<u64, TableError> {
        self.write()?;
        Ok(self.frames + self.frames_waiting)
    }

    /// Number of frames in the file, which is a capture at any moment once its header is in it.
    pub fn written(&self) -> u64 {
        self.frames
    }

    /// Content so far of a capture that stays in memory.
    pub fn kept(&self) -> &[u8] {
        match self.storage {
            None => &self.waiting,
            Some(_) => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Capture;
    use std::sync::{Arc, Mutex};

    /// A disk with so many bytes of space.
    #[derive(Default)]
    struct Disk {
        bytes: Vec<u8>,
        space: usize,
    }

    impl Storage for Arc<Mutex<Disk>> {
        fn append(&mut self, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
            let mut disk = self.lock().unwrap();
            assert_eq!(offset, disk.bytes.len() as u64);
            if disk.bytes.len() + bytes.len() > disk.space {
                return Err(std::io::Error::from(std::io::ErrorKind::StorageFull));
            }
            disk.bytes.extend_from_slice(bytes);
            Ok(())
        }
    }

    fn frames(bytes: &[u8]) -> Vec<(i128, u8)> {
        let mut capture = Capture::new(bytes).unwrap();
        let mut frames = Vec::new();
        while let Some(frame) = capture.next_frame().unwrap() {
            frames.push((frame.time_ps, frame.data[0]));
        }
        frames
    }

    #[test]
    fn what_did_not_fit_waits_until_there_is_space() {
        let disk = Arc::new(Mutex::new(Disk { space: 3 << 20, ..Disk::default() }));
        let mut file = CaptureFile::new("p".into(), Some(Box::new(disk.clone())), ("fanin", "test"), None);
        assert_eq!(file.interface((HostId(0), IpVersion::V4), "h0", BitRate::from_gbps(10)), 0);
        let push = |file: &mut CaptureFile, i: u64| file.frame(0, Time::from_ps(i * 1_000_000), &[i as u8; 1000], Direction::Out);
        let mut i = 0;
        while push(&mut file, i).is_ok() {
            i += 1;
        }
        let error = file.finish().unwrap_err().to_string();
        assert!(error.starts_with("p: cannot be written: "), "{error}");
        let there = frames(&disk.lock().unwrap().bytes);
        assert_eq!((there.len() as u64, file.written()), (file.written(), file.written()));
        assert!((1900..=i).contains(&file.written()), "{}", file.written());
        disk.lock().unwrap().space = 100 << 20;
        assert_eq!(file.finish().unwrap(), i + 1);
        let all: Vec<(i128, u8)> = (0..=i).map(|i| (i128::from(i) * 1_000_000, i as u8)).collect();
        assert_eq!(frames(&disk.lock().unwrap().bytes), all);
    }

    #[test]
    fn a_real_disk_that_refuses_leaves_the_file_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = CaptureFile::create(folder.path(), "fanin", "test", None).unwrap();
        file.interface((HostId(0), IpVersion::V4), "h0", BitRate::from_gbps(10));
        file.frame(0, Time::ZERO, &[7], Direction::In).unwrap();
        assert_eq!(file.finish().unwrap(), 1);
        let path = folder.path().join(CaptureFile::NAME);
        assert_eq!(frames(&std::fs::read(&path).unwrap()), [(0, 7)]);
        // Everything is refused through a handle that may only read.
        file.storage = Some(Box::new(File::open(&path).unwrap()));
        file.frame(0, Time::ZERO, &[8], Direction::In).unwrap();
        assert!(file.finish().is_err());
        assert_eq!((file.written(), frames(&std::fs::read(&path).unwrap())), (1, vec![(0, 7)]));
    }

    #[test]
    fn in_memory_nothing_is_written() {
        let mut file = CaptureFile::keep("fanin", "test", None);
        file.interface((HostId(0), IpVersion::V4), "h0", BitRate::from_gbps(10));
        for i in 0..2000 {
            file.frame(0, Time::from_ps(i * 1_000_000), &[1; 1000], Direction::In).unwrap();
        }
        assert_eq!((file.finish().unwrap(), frames(file.kept()).len()), (2000, 2000));
    }
}
