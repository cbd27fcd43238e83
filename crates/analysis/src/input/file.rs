//! Files as streams: as they are, or unpacked from gzip or zstd; of a truncated one the bytes that it has.

use super::at::{ReadAt, Shelf};
use super::manifest::Manifest;
use super::problem::Problem;
use super::zstd;
use flate2::bufread::GzDecoder;
use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

/// Bytes that are read at once.
const CHUNK: usize = 1 << 16;

/// Number of first bytes of a file by which its format is recognised.
const START: u64 = 512;

/// A file of a trace, and its name in messages: standard input is kept in a file without a name.
#[derive(Clone, Debug)]
pub struct Place {
    pub path: PathBuf,
    pub shown: PathBuf,
    pub shelf: Shelf,
    /// Name of its format, where the user says it.
    pub format: Option<&'static str>,
}

impl Place {
    /// A file of this machine that is named by its path.
    pub fn of(path: &Path) -> Self {
        Place { path: path.to_path_buf(), shown: path.to_path_buf(), shelf: Shelf::default(), format: None }
    }

    /// Opens the file.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(&self) -> std::result::Result<Arc<dyn ReadAt>, Problem> {
        self.shelf.0.open(&self.path).map_err(|e| Problem::new(format!("cannot be opened: {e}")).file(&self.shown))
    }
}

/// Compression of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Packing {
    #[default]
    Plain,
    Gzip,
    Zstd,
}

impl Packing {
    /// Packing of a file, by its first bytes.
    pub fn of(magic: &[u8]) -> Self {
        match magic {
            [0x1f, 0x8b, ..] => Packing::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Packing::Zstd,
            _ => Packing::Plain,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Packing::Plain => "plain",
            Packing::Gzip => "gzip",
            Packing::Zstd => "zstd",
        }
    }
}

/// Progress of reading a file, for readers of the unpacked data.
#[derive(Debug, Default)]
pub struct Gauge {
    /// Packed bytes of the file that were used.
    used: AtomicU64,
    /// Unpacked bytes that came out.
    unpacked: AtomicU64,
    cut: AtomicBool,
    /// Bytes behind the packed data.
    behind: AtomicBool,
    /// Number of zeros at the end of a text.
    zeros: AtomicU64,
}

impl Gauge {
    /// Bytes of the file that have been used.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// True if the file ended before its packed data did.
    pub fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Relaxed)
    }

    /// Note for the end of the reading.
    pub fn note(&self, packing: Packing, file: &str) -> Option<String> {
        let (used, unpacked) = (self.used(), self.unpacked.load(Ordering::Relaxed));
        let kind = packing.name();
        let zeros = self.zeros.load(Ordering::Relaxed);
        if zeros > 0 {
            Some(format!(
                "{file}: the file ends in {zeros} zero bytes, as a loss of power leaves it; what is before was read, except for an unfinished last line"
            ))
        } else if self.is_cut() {
            Some(format!(
                "{file}: the file is cut short: its {kind} data end at byte {used}, inside a block; the {unpacked} bytes before were read, except for an unfinished last line"
            ))
        } else if self.behind.load(Ordering::Relaxed) {
            Some(format!("{file}: its {kind} data end at byte {used}; what stands behind them is no {kind} and was passed over"))
        } else {
            None
        }
    }
}

/// A file from its start, whoever else reads it.
pub struct Whole {
    pub file: Arc<dyn ReadAt>,
    pub at: u64,
}

impl Read for Whole {
    fn read(&mut self, buf: &mut [u8]) -> Result<usize> {
        let read = self.file.read_at(buf, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// Counts the bytes that are used of a file.
struct Counting {
    inner: BufReader<Whole>,
    gauge: Arc<Gauge>,
}

impl Read for Counting {
    fn read(&mut self, buf: &mut [u8]) -> Result<usize> {
        let read = self.inner.read(buf)?;
        self.gauge.used.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

impl BufRead for Counting {
    fn fill_buf(&mut self) -> Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.gauge.used.fetch_add(amount as u64, Ordering::Relaxed);
        self.inner.consume(amount);
    }
}

/// A text up to the zeros at its end.
struct BeforeZeros {
    inner: Counting,
    left: u64,
}

impl Read for BeforeZeros {
    fn read(&mut self, buf: &mut [u8]) -> Result<usize> {
        let most = buf.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let read = self.inner.read(&mut buf[..most])?;
        self.used(read);
        Ok(read)
    }
}

impl BeforeZeros {
    fn used(&mut self, bytes: usize) {
        self.left -= bytes as u64;
        if self.left == 0 {
            self.inner.gauge.cut.store(true, Ordering::Relaxed);
        }
    }
}

impl BufRead for BeforeZeros {
    fn fill_buf(&mut self) -> Result<&[u8]> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX);
        let there = self.inner.fill_buf()?;
        Ok(&there[..there.len().min(most)])
    }

    fn consume(&mut self, amount: usize) {
        self.inner.consume(amount);
        self.used(amount);
    }
}

/// Bytes of a file before the zeros at its end.
fn before_zeros(file: &dyn ReadAt, size: u64) -> Result<u64> {
    let mut end = size;
    let mut chunk = vec![0; CHUNK];
    while end > 0 {
        let begin = end.saturating_sub(CHUNK as u64);
        let part = &mut chunk[..(end - begin) as usize];
        file.read_exact_at(part, begin)?;
        match part.iter().rposition(|byte| *byte != 0) {
            Some(last) => return Ok(begin + last as u64 + 1),
            None => end = begin,
        }
    }
    Ok(0)
}

/// One gzip member after another.
enum Gunzip {
    Inside(Box<GzDecoder<Counting>>),
    Between(Counting),
    Ended,
}

impl Gunzip {
    fn read(&mut self, buf: &mut [u8], gauge: &Gauge) -> Result<usize> {
        loop {
            match std::mem::replace(self, Gunzip::Ended) {
                Gunzip::Ended => return Ok(0),
                Gunzip::Inside(mut decoder) => {
                    let read = decoder.read(buf);
                    match read {
                        Ok(0) if !buf.is_empty() => *self = Gunzip::Between(decoder.into_inner()),
                        _ => {
                            *self = Gunzip::Inside(decoder);
                            return read;
                        }
                    }
                }
                Gunzip::Between(mut file) => {
                    let next = file.fill_buf()?;
                    if Packing::of(next) == Packing::Gzip {
                        *self = Gunzip::Inside(Box::new(GzDecoder::new(file)));
                    } else {
                        // Blocks of tapes are filled with zeros, which is usual.
                        gauge.behind.store(next.iter().any(|byte| *byte != 0), Ordering::Relaxed);
                        return Ok(0);
                    }
                }
            }
        }
    }
}

enum Decoder {
    Gzip(Gunzip),
    Zstd(zstd::Decoder<Counting>),
}

/// Reader of packed data.
struct Unpacked {
    decoder: Decoder,
    gauge: Arc<Gauge>,
}

impl Read for Unpacked {
    fn read(&mut self, buf: &mut [u8]) -> Result<usize> {
        if self.gauge.is_cut() {
            return Ok(0);
        }
        let read = match &mut self.decoder {
            Decoder::Gzip(gunzip) => gunzip.read(buf, &self.gauge),
            Decoder::Zstd(decoder) => decoder.read(buf),
        };
        match read {
            Ok(read) => {
                self.gauge.unpacked.fetch_add(read as u64, Ordering::Relaxed);
                Ok(read)
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Err(error),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                self.gauge.cut.store(true, Ordering::Relaxed);
                Ok(0)
            }
            Err(error) => {
                let (used, unpacked) = (self.gauge.used(), self.gauge.unpacked.load(Ordering::Relaxed));
                let kind = if matches!(self.decoder, Decoder::Gzip(_)) { "gzip" } else { "zstd" };
                Err(Error::other(format!(
                    "its {kind} data are damaged near byte {used} of the file, {unpacked} unpacked bytes from the start: {error}"
                )))
            }
        }
    }
}

/// A file of a trace, before anything is known about its contents.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// Path as messages show it.
    pub path: PathBuf,
    /// Path as the user gave it: of a result, its folder.
    pub given: PathBuf,
    pub place: Place,
    pub packing: Packing,
    /// Bytes of the file.
    pub size: u64,
}

impl SourceFile {
    pub fn new(place: &Place, size: u64) -> SourceFile {
        let (path, packing) = (place.shown.clone(), Packing::Plain);
        SourceFile { given: path.clone(), path, place: place.clone(), packing, size }
    }

    /// Opens the file at its start, unpacked.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(&self) -> std::result::Result<Input, Problem> {
        open(&self.place, self.packing)
    }

    /// Opens a text at its start, unpacked; without the zeros at its end, where it is not packed.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open_text(&self) -> std::result::Result<Input, Problem> {
        if self.packing != Packing::Plain {
            return self.open();
        }
        let file = self.place.open()?;
        let unreadable = |e: Error| Problem::new(format!("cannot be read: {e}")).file(&self.path);
        let size = file.size().map_err(unreadable)?;
        let left = before_zeros(&*file, size).map_err(unreadable)?;
        if left == size || left == 0 {
            return self.open();
        }
        let gauge = Arc::new(Gauge::default());
        gauge.zeros.store(size - left, Ordering::Relaxed);
        let inner = Counting { inner: BufReader::with_capacity(CHUNK, Whole { file, at: 0 }), gauge: gauge.clone() };
        Ok((Box::new(BeforeZeros { inner, left }), gauge))
    }

    /// The first bytes, unpacked.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn start(&self) -> std::result::Result<Vec<u8>, Problem> {
        let mut start = Vec::new();
        let what = if self.packing == Packing::Plain { "read" } else { "unpacked" };
        let read = self.open()?.0.take(START).read_to_end(&mut start);
        read.map_err(|e| Problem::new(format!("cannot be {what}: {e}")).file(&self.path))?;
        Ok(start)
    }

    /// The manifest of the result folder that the file lies in.
    pub fn manifest(&self) -> Option<Manifest> {
        let folder = self.path.parent()?;
        let shelf = &self.place.shelf;
        shelf.is_file(&folder.join("manifest.json")).then(|| Manifest::read(folder, shelf).ok()).flatten()
    }

    /// Name of the port where no column names it: the name of the file without its ending.
    pub fn port_name(&self) -> String {
        let name = self.name();
        // A number that the shell chose says nothing.
        if self.path.parent().is_some_and(|folder| folder.ends_with("fd")) && name.bytes().all(|b| b.is_ascii_digit()) {
            return "pipe".into();
        }
        name.rsplit_once('.').map_or(name.as_str(), |(stem, _)| stem).to_string()
    }

    /// Name of the file, without the ending of its packing.
    pub fn name(&self) -> String {
        let name = self.path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        [".gz", ".zst"].iter().find_map(|end| name.strip_suffix(end)).map_or(name.clone(), str::to_string)
    }
}

/// A file that is read from its start, and the progress in it.
pub type Input = (Box<dyn BufRead + Send>, Arc<Gauge>);

/// Opens a file.
///
/// # Errors
/// It cannot be opened.
pub fn open(place: &Place, packing: Packing) -> std::result::Result<Input, Problem> {
    let gauge = Arc::new(Gauge::default());
    let inner = BufReader::with_capacity(CHUNK, Whole { file: place.open()?, at: 0 });
    let file = Counting { inner, gauge: gauge.clone() };
    let decoder = match packing {
        Packing::Plain => return Ok((Box::new(file), gauge)),
        Packing::Gzip => Decoder::Gzip(Gunzip::Between(file)),
        Packing::Zstd => {
            let made = zstd::decoder(file, zstd::WINDOW);
            Decoder::Zstd(made.map_err(|e| Problem::new(format!("cannot be unpacked: {e}")).file(&place.shown))?)
        }
    };
    let unpacked = Unpacked { decoder, gauge: gauge.clone() };
    Ok((Box::new(BufReader::with_capacity(CHUNK, unpacked)), gauge))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn text() -> Vec<u8> {
        (0..40_000_u32).flat_map(|i| format!("{},{}\n", i, i.wrapping_mul(2_654_435_761)).into_bytes()).collect()
    }

    fn packed(packing: Packing) -> Vec<u8> {
        match packing {
            Packing::Plain => text(),
            Packing::Gzip => {
                let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
                gzip.write_all(&text()).unwrap();
                gzip.finish().unwrap()
            }
            Packing::Zstd => ::zstd::stream::encode_all(&text()[..], 3).unwrap(),
        }
    }

    /// What comes out, what is said, what went wrong.
    fn read(bytes: &[u8]) -> (Vec<u8>, Option<String>, Option<String>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, bytes).unwrap();
        let packing = Packing::of(bytes);
        let (mut input, gauge) = open(&Place::of(&path), packing).unwrap();
        let mut out = Vec::new();
        let error = input.read_to_end(&mut out).err().map(|e| e.to_string());
        (out, gauge.note(packing, "a"), error)
    }

    #[test]
    fn packed_files_come_out_whole_and_several_in_one_too() {
        for packing in [Packing::Plain, Packing::Gzip, Packing::Zstd] {
            assert_eq!(read(&packed(packing)), (text(), None, None), "{packing:?}");
            let twice = packed(packing).repeat(2);
            assert_eq!(read(&twice), (text().repeat(2), None, None), "{packing:?}");
        }
    }

    #[test]
    fn a_truncated_file_keeps_what_it_has_and_says_where_it_ends() {
        for packing in [Packing::Gzip, Packing::Zstd] {
            let all = packed(packing);
            for end in [5, 11, 1_000, all.len() / 2, all.len() - 9, all.len() - 1] {
                let (out, note, error) = read(&all[..end]);
                assert_eq!(error, None, "{packing:?} {end}");
                assert!(text().starts_with(&out));
                // Blocks of zstd are up to 128 KiB.
                assert!(out.len() + 200_000 > text().len() * end / all.len(), "{packing:?} {end}: {}", out.len());
                let note = note.unwrap();
                assert!(note.contains(&format!("data end at byte {end}, inside a block; the {} bytes", out.len())), "{note}");
            }
        }
    }

    #[test]
    fn damage_inside_is_an_error_that_names_the_place() {
        for packing in [Packing::Gzip, Packing::Zstd] {
            let mut bad = packed(packing);
            let at = bad.len() / 2;
            bad[at..at + 64].fill(0xff);
            let (_, _, error) = read(&bad);
            let error = error.expect("an error");
            assert!(error.contains("data are damaged near byte "), "{error}");
            let place: usize = error.split("byte ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
            // Damage that still decodes is noticed by the check at the end.
            assert!(place + CHUNK >= at, "{error}");
        }
    }

    #[test]
    fn what_stands_behind_gzip_data_is_passed_over_and_said() {
        let zeros = [&packed(Packing::Gzip)[..], &[0; 512]].concat();
        assert_eq!(read(&zeros), (text(), None, None));
        let (out, note, error) = read(&[&packed(Packing::Gzip)[..], b"trailing"].concat());
        assert_eq!((out, error), (text(), None));
        assert!(note.unwrap().contains("what stands behind them is no gzip and was passed over"));
    }
}
