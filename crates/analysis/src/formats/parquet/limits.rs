//! Limits that the `parquet` crate lacks on hostile files: lengths that it would allocate and nesting that it would recurse
//! into. Damage that makes it panic is caught where it is called.

use crate::input::at::FileExt;
use bytes::Bytes;
use parquet::basic::{Compression, Encoding};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};
use std::fs::File;
use std::io::Read;
use std::sync::Arc;

/// Largest page, before and after decompression [bytes]; writers make pages of about 1 MiB.
pub const PAGE_LIMIT: u64 = 256 << 20;

/// Deepest nesting of groups in a schema.
const DEPTH: usize = 64;

/// Longest page header; with statistics of long texts they come to some KiB.
const HEADER_LIMIT: usize = 1 << 20;

pub fn damaged(what: impl Into<String>) -> ParquetError {
    ParquetError::General(what.into())
}

/// A walk through compact Thrift that allocates nothing and never leaves its bytes.
struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// The bytes ended, or are no Thrift.
struct Broken;

type Walked<T> = std::result::Result<T, Broken>;

impl Walk<'_> {
    fn byte(&mut self) -> Walked<u8> {
        let byte = *self.bytes.get(self.at).ok_or(Broken)?;
        self.at += 1;
        Ok(byte)
    }

    fn varint(&mut self) -> Walked<u64> {
        let mut value = 0_u64;
        for shift in (0..70).step_by(7) {
            let byte = self.byte()?;
            if shift < 64 {
                value |= u64::from(byte & 0x7f) << shift;
            }
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Broken)
    }

    fn integer(&mut self) -> Walked<i64> {
        let raw = self.varint()?;
        Ok((raw >> 1) as i64 ^ -((raw & 1) as i64))
    }

    fn forward(&mut self, bytes: u64) -> Walked<()> {
        let at = usize::try_from(bytes).ok().and_then(|n| self.at.checked_add(n)).ok_or(Broken)?;
        if at > self.bytes.len() {
            return Err(Broken);
        }
        self.at = at;
        Ok(())
    }

    /// Element type and length of a list, which has at least a byte for each element.
    fn list(&mut self) -> Walked<(u8, u64)> {
        let head = self.byte()?;
        let count = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
        if count > (self.bytes.len() - self.at) as u64 {
            return Err(Broken);
        }
        Ok((head & 15, count))
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Walked<()> {
        if depth == 0 {
            return Err(Broken);
        }
        match kind {
            1 | 2 => Ok(()),
            3 => self.forward(1),
            4..=6 => self.varint().map(|_| ()),
            7 => self.forward(8),
            8 => {
                let length = self.varint()?;
                self.forward(length)
            }
            9 | 10 => {
                let (kind, count) = self.list()?;
                (0..count).try_for_each(|_| self.skip(Self::element(kind)?, depth - 1))
            }
            11 => {
                let count = self.varint()?;
                if count == 0 {
                    return Ok(());
                }
                let kinds = self.byte()?;
                (0..count).try_for_each(|_| {
                    self.skip(Self::element(kinds >> 4)?, depth - 1)?;
                    self.skip(Self::element(kinds & 15)?, depth - 1)
                })
            }
            12 => self.fields(depth - 1, |_, _, _| Ok(false)),
            _ => Err(Broken),
        }
    }

    /// Type of the elements of a list or a map: each takes a byte at least, so that a walk ends with its bytes whatever counts it
    /// is given. Booleans are refused: Parquet has no list of them here, and the `parquet` crate reads such as if they took no
    /// bytes, 2^31 of them out of nothing.
    fn element(kind: u8) -> Walked<u8> {
        if kind <= 2 {
            Err(Broken)
        } else {
            Ok(kind)
        }
    }

    /// Shows each field of a structure to `see`: its number, its type, and the walk, in front of its value; false: the value is
    /// to be skipped.
    fn fields(&mut self, depth: usize, mut seen: impl FnMut(i64, u8, &mut Self) -> Walked<bool>) -> Walked<()> {
        let mut id = 0_i64;
        loop {
            let head = self.byte()?;
            let kind = head & 15;
            if kind == 0 {
                return Ok(());
            }
            id = if head >> 4 == 0 { self.integer()? } else { id.saturating_add(i64::from(head >> 4)) };
            if !seen(id, kind, self)? {
                self.skip(kind, depth)?;
            }
        }
    }
}

/// Checks the metadata at the end of a file before the `parquet` crate reads it.
fn check_footer(metadata: &[u8]) -> std::result::Result<(), &'static str> {
    let mut children: Vec<i64> = Vec::new();
    let mut walk = Walk { bytes: metadata, at: 0 };
    walk.fields(DEPTH, |id, kind, walk| {
        if (id, kind) != (2, 9) {
            return Ok(false);
        }
        let (kind, count) = walk.list()?;
        if kind != 12 {
            return Err(Broken);
        }
        for _ in 0..count {
            let mut of_this = 0;
            walk.fields(DEPTH, |id, kind, walk| {
                if (id, kind) != (5, 5) {
                    return Ok(false);
                }
                of_this = walk.integer()?;
                Ok(true)
            })?;
            children.push(of_this);
        }
        Ok(true)
    })
    .map_err(|Broken| "its metadata are damaged")?;
    // The schema is a tree in depth-first order: `open` are the children still to come of the groups around.
    let mut open: Vec<i64> = Vec::new();
    for (at, &count) in children.iter().enumerate() {
        if count < 0 || count as usize > children.len() - at {
            return Err("a group of its schema has more columns than there are");
        }
        if let Some(last) = open.last_mut() {
            *last -= 1;
        }
        open.push(count);
        while open.last() == Some(&0) {
            open.pop();
        }
        if open.len() > DEPTH {
            return Err("its schema is nested too deeply");
        }
    }
    Ok(())
}

/// A file from which only existing bytes are read.
#[derive(Clone)]
pub struct Guarded {
    file: Arc<File>,
    len: u64,
    /// True if pages are compressed with gzip, whose decoder does not stop at the size that a page gives.
    gzip: bool,
}

impl Guarded {
    /// Opens a Parquet file and checks its metadata.
    ///
    /// # Errors
    /// It is no Parquet file, or damaged.
    pub fn new(file: File) -> Result<Self> {
        let len = file.metadata().map_err(|e| damaged(e.to_string()))?.len();
        let guarded = Guarded { file: Arc::new(file), len, gzip: false };
        let tail = guarded.get_bytes(len.saturating_sub(8), 8)?;
        if &tail[4..] != b"PAR1" {
            return Err(damaged("it does not end as a Parquet file does: it was cut short, or its writer was not closed"));
        }
        let metadata = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
        let Some(start) = len.checked_sub(8 + metadata) else {
            return Err(damaged("its metadata would be longer than the file"));
        };
        check_footer(&guarded.get_bytes(start, metadata as usize)?).map_err(damaged)?;
        Ok(guarded)
    }

    /// The guard for pages of a column with this compression.
    pub fn for_codec(&self, codec: Compression) -> Guarded {
        Guarded { gzip: matches!(codec, Compression::GZIP(_)), ..self.clone() }
    }
}

/// True if gzip data inflate to no more than the limit. A small input cannot exceed it and is not inflated.
fn inflates_within(data: &[u8], limit: u64) -> bool {
    if data.len() as u64 * 1_100 <= limit {
        return true;
    }
    let mut inflated = flate2::read::MultiGzDecoder::new(data).take(limit + 1);
    // What does not inflate at all is the decoder's to refuse.
    std::io::copy(&mut inflated, &mut std::io::sink()).map_or(true, |bytes| bytes <= limit)
}

impl Length for Guarded {
    fn len(&self) -> u64 {
        self.len
    }
}

/// The part of a file that holds a page header.
pub struct Header {
    bytes: Vec<u8>,
    at: usize,
}

impl Read for Header {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let read = (&self.bytes[self.at..]).read(buf)?;
        self.at += read;
        Ok(read)
    }
}

impl ChunkReader for Guarded {
    type T = Header;

    /// Reads a page header, for that is what is read this way, and checks it.
    fn get_read(&self, start: u64) -> Result<Header> {
        let there = usize::try_from(self.len.saturating_sub(start)).unwrap_or(usize::MAX);
        for size in [256, 16 << 10, HEADER_LIMIT] {
            let bytes = self.get_bytes(start, size.min(there))?.to_vec();
            let mut size_after = 0;
            let mut walk = Walk { bytes: &bytes, at: 0 };
            let walked = walk.fields(DEPTH, |id, kind, walk| {
                if (id, kind) != (2, 5) {
                    return Ok(false);
                }
                size_after = walk.integer()?;
                Ok(true)
            });
            if walked.is_ok() {
                if u64::try_from(size_after).map_or(true, |size| size > PAGE_LIMIT) {
                    return Err(damaged(format!("a page would have {size_after} bytes; accepted: up to {PAGE_LIMIT}")));
                }
                return Ok(Header { bytes, at: 0 });
            }
        }
        Err(damaged("a page header is damaged"))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        if start.checked_add(length as u64).is_none_or(|end| end > self.len) {
            return Err(damaged("it ends before its data do"));
        }
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, start).map_err(|e| damaged(e.to_string()))?;
        if self.gzip && !inflates_within(&bytes, PAGE_LIMIT) {
            return Err(damaged(format!("a page inflates to more than {PAGE_LIMIT} bytes")));
        }
        Ok(Bytes::from(bytes))
    }
}

/// Pages of one column, checked before they are decoded.
pub struct Checked {
    inner: Box<dyn PageReader>,
    max_definition: i16,
}

impl Checked {
    /// Takes the pages of a column chunk.
    ///
    /// # Errors
    /// They are compressed in a way that cannot be undone safely.
    pub fn new(inner: Box<dyn PageReader>, codec: Compression, max_definition: i16) -> Result<Self> {
        match codec {
            Compression::BROTLI(_) | Compression::LZO | Compression::LZ4 => {
                Err(damaged(format!("it is compressed with {codec}; accepted: snappy, zstd, gzip, lz4_raw, uncompressed")))
            }
            _ => Ok(Checked { inner, max_definition }),
        }
    }

    fn check(&self, page: &Page) -> Result<()> {
        match page {
            // A text takes at least the four bytes of its length, a number four or eight.
            Page::DictionaryPage { buf, num_values, .. } => {
                if *num_values as usize > buf.len() / 4 {
                    return Err(damaged(format!("a dictionary of {num_values} values has only {} bytes", buf.len())));
                }
                Ok(())
            }
            Page::DataPage { buf, num_values, encoding, .. } | Page::DataPageV2 { buf, num_values, encoding, .. } => {
                check_delta(buf, levels(page, self.max_definition), *num_values, *encoding)
            }
        }
    }
}

/// Bytes of a page in front of its values, as the page gives them: they may be more than it has.
#[allow(deprecated)] // Old files have such levels.
pub fn levels(page: &Page, max_definition: i16) -> usize {
    match page {
        Page::DataPage { num_values, def_level_encoding: Encoding::BIT_PACKED, .. } if max_definition > 0 => {
            let bits = (16 - max_definition.leading_zeros()) as usize;
            (*num_values as usize * bits).div_ceil(8)
        }
        Page::DataPage { buf, .. } if max_definition > 0 => {
            4 + buf.first_chunk::<4>().map_or(0, |length| u32::from_le_bytes(*length) as usize)
        }
        Page::DataPageV2 { def_levels_byte_len, rep_levels_byte_len, .. } => {
            *def_levels_byte_len as usize + *rep_levels_byte_len as usize
        }
        _ => 0,
    }
}

/// Checks the number of values that a delta encoding gives itself: the decoder of texts allocates for them.
fn check_delta(buf: &[u8], from: usize, num_values: u32, encoding: Encoding) -> Result<()> {
    match encoding {
        Encoding::DELTA_BYTE_ARRAY => {
            Err(damaged("a column is encoded as DELTA_BYTE_ARRAY; accepted: PLAIN, RLE_DICTIONARY, the other DELTA encodings"))
        }
        Encoding::DELTA_BINARY_PACKED | Encoding::DELTA_LENGTH_BYTE_ARRAY => {
            let mut walk = Walk { bytes: buf.get(from..).unwrap_or_default(), at: 0 };
            let count = walk.varint().and_then(|_| walk.varint()).and_then(|_| walk.varint());
            match count {
                Ok(count) if count <= u64::from(num_values) => Ok(()),
                _ => Err(damaged("a delta-encoded page has more values than its header says")),
            }
        }
        _ => Ok(()),
    }
}

impl Iterator for Checked {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Checked {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.inner.get_next_page()?;
        if let Some(page) = &page {
            self.check(page)?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.inner.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.inner.skip_next_page()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A footer: version, then a schema of groups with so many children each.
    fn footer(children: &[i32]) -> Vec<u8> {
        let mut out = vec![0x15, 2, 0x19];
        assert!(children.len() < 1 << 14);
        out.push(0xfc);
        out.extend([(children.len() & 0x7f) as u8 | 0x80, (children.len() >> 7) as u8]);
        for &count in children {
            let mut zigzag = ((count << 1) ^ (count >> 31)) as u32;
            out.extend([0x48, 1, b'x', 0x15]);
            while zigzag > 0x7f {
                out.push(zigzag as u8 | 0x80);
                zigzag >>= 7;
            }
            out.extend([zigzag as u8, 0]);
        }
        out.push(0);
        out
    }

    /// Elements without bytes would be skipped for hours: of a map, which has no length to be checked, 2^63 booleans.
    #[test]
    fn counts_of_nothing_are_refused() {
        let endless = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
        for kinds in [0x11, 0x12, 0x15, 0x51, 0x22] {
            let map = [&[0x0b, 30][..], &endless, &[kinds, 1, 1, 1, 1, 0]].concat();
            assert_eq!(check_footer(&map), Err("its metadata are damaged"), "{kinds:#x}");
        }
        let integers = [&[0x0b, 30][..], &endless, &[0x55, 1, 1, 1, 1, 0]].concat();
        assert_eq!(check_footer(&integers), Err("its metadata are damaged"));
        assert_eq!(check_footer(&[0x09, 30, 0x21, 1, 1, 0]), Err("its metadata are damaged"));
        assert_eq!(check_footer(&[0x0b, 30, 2, 0x55, 1, 1, 1, 1, 0]), Ok(()));
        assert_eq!(check_footer(&[0x0b, 30, 0, 0]), Ok(()));
    }

    #[test]
    fn a_schema_is_checked_before_it_is_believed() {
        assert_eq!(check_footer(&footer(&[2, 0, 0])), Ok(()));
        assert_eq!(check_footer(&footer(&[1, 2, 0, 0])), Ok(()));
        assert_eq!(check_footer(&footer(&[i32::MAX, 0])), Err("a group of its schema has more columns than there are"));
        assert_eq!(check_footer(&footer(&[-1, 0])), Err("a group of its schema has more columns than there are"));
        assert_eq!(check_footer(&footer(&[1; 10_000])), Err("its schema is nested too deeply"));
        let good = footer(&[2, 0, 0]);
        for end in 0..good.len() {
            assert!(check_footer(&good[..end]).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn lists_that_are_longer_than_their_bytes_are_refused() {
        assert!(check_footer(&[0x29, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07]).is_err());
        // A list in a list in a list …
        let mut nested = vec![0x39];
        nested.extend([0x19; 100_000]);
        assert!(check_footer(&nested).is_err());
    }

    #[test]
    fn a_delta_page_has_no_more_values_than_it_says() {
        let page = [128, 1, 4, 200, 1, 0];
        assert!(check_delta(&page, 0, 200, Encoding::DELTA_LENGTH_BYTE_ARRAY).is_ok());
        assert!(check_delta(&page, 0, 199, Encoding::DELTA_LENGTH_BYTE_ARRAY).is_err());
        assert!(check_delta(&page, 9, 200, Encoding::DELTA_BINARY_PACKED).is_err());
        assert!(check_delta(&page, 0, 200, Encoding::DELTA_BYTE_ARRAY).is_err());
        assert!(check_delta(&[], 0, 0, Encoding::PLAIN).is_ok());
    }
}
