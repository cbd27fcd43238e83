//! Pages that zstd has packed, in a page of the site: the `parquet` crate unpacks them by zstd's library in C, which is not there.

use super::limits::{damaged, PAGE_LIMIT};
use crate::input::zstd;
use parquet::basic::Compression;
use parquet::column::page::Page;
use parquet::errors::Result;
use parquet::file::metadata::ColumnChunkMetaData;
use std::io::Read;

/// The metadata of a column as if its pages were not packed, so that they come as they are.
///
/// # Errors
/// None is known.
pub fn as_plain(chunk: &ColumnChunkMetaData) -> Result<ColumnChunkMetaData> {
    chunk.clone().into_builder().set_compression(Compression::UNCOMPRESSED).build()
}

/// Unpacks a page that came as it is.
///
/// # Errors
/// It is damaged, or too long.
pub fn unpack(page: &mut Page) -> Result<()> {
    let (buf, from) = match page {
        Page::DataPage { buf, .. } | Page::DictionaryPage { buf, .. } => (buf, 0),
        Page::DataPageV2 { is_compressed: false, .. } => return Ok(()),
        Page::DataPageV2 { buf, def_levels_byte_len, rep_levels_byte_len, .. } => {
            (buf, *def_levels_byte_len as usize + *rep_levels_byte_len as usize)
        }
    };
    let (levels, packed) = buf.split_at_checked(from).ok_or_else(|| damaged("a page is shorter than its levels"))?;
    let mut out = levels.to_vec();
    if !packed.is_empty() {
        let unpacked = zstd::decoder(packed, zstd::WINDOW).and_then(|decoder| decoder.take(PAGE_LIMIT + 1).read_to_end(&mut out));
        unpacked.map_err(|error| damaged(format!("a page does not unpack: {error}")))?;
    }
    if out.len() as u64 > PAGE_LIMIT {
        return Err(damaged(format!("a page unpacks to more than {PAGE_LIMIT} bytes")));
    }
    *buf = out.into();
    Ok(())
}
