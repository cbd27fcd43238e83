//! Texts of a Parquet column by their place: a dictionary's text is parsed once, not once for each row that has it.
//!
//! Before the `parquet` crate decodes a page of texts, they are replaced by whole numbers: each by its place in the texts of the column
//! chunk so far. What is decoded then are numbers, without a reference count for each row.

use crate::formats::parquet::limits::{damaged, levels, Checked};
use bytes::Bytes;
use parquet::basic::{Encoding, Type};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::Result;
use parquet::schema::types::{ColumnDescriptor, Type as SchemaType};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Largest size of a page with texts: it bounds the memory for their places.
const MOST: usize = 1 << 23;

/// The name of a text that has not been asked for.
const UNKNOWN: u32 = u32::MAX - 1;

/// Texts of a column chunk: of its dictionary, and of the pages that have texts of their own.
#[derive(Default)]
pub struct Texts {
    /// Begin of each page, and its bytes: texts behind their lengths, as Parquet writes them. The dictionary comes first.
    pages: Vec<(i64, Bytes)>,
    /// True if the first page is a dictionary.
    dictionary: bool,
    /// Names of the dictionary's texts, by their places in words of 4 B: a text takes one at least, for its length.
    names: Vec<u32>,
    end: i64,
}

impl Texts {
    /// Text at a place; empty where there is none.
    pub fn get(&self, place: i64) -> &[u8] {
        let page = self.pages.iter().rev().find(|(begin, _)| *begin <= place);
        let text = page.and_then(|(begin, bytes)| {
            let (length, rest) = bytes.get(usize::try_from(place - begin).ok()?..)?.split_first_chunk::<4>()?;
            rest.get(..u32::from_le_bytes(*length) as usize)
        });
        text.unwrap_or_default()
    }

    /// Result of `look_up` for the text at a place; for a dictionary's text it is called once.
    #[inline(always)]
    pub fn name(&mut self, place: i64, look_up: impl FnOnce(&[u8]) -> u32) -> u32 {
        let word = place as usize / 4;
        match self.names.get(word) {
            Some(name) if *name != UNKNOWN => *name,
            _ => self.ask(place, word, look_up),
        }
    }

    #[inline(never)]
    fn ask(&mut self, place: i64, word: usize, look_up: impl FnOnce(&[u8]) -> u32) -> u32 {
        let name = look_up(self.get(place));
        if let Some(known) = self.names.get_mut(word) {
            *known = name;
        }
        name
    }

    /// A batch begins: of pages before the last nothing is left to be read.
    pub fn forget(&mut self) {
        let (first, last) = (usize::from(self.dictionary), self.pages.len().saturating_sub(1));
        if first < last {
            self.pages.drain(first..last);
        }
    }

    /// Takes texts behind their lengths, `count` at most; gives their places.
    fn take(&mut self, texts: Bytes, count: usize) -> Result<Vec<u8>> {
        let count = count.min(texts.len() / 4);
        if count > MOST {
            return Err(damaged(format!("a page has more than {MOST} texts")));
        }
        let mut places = Vec::with_capacity(8 * count);
        let mut at = 0;
        while at < texts.len() && places.len() < 8 * count {
            let length = texts[at..].first_chunk::<4>().map(|length| u32::from_le_bytes(*length) as usize);
            let next = length.and_then(|length| (at + 4).checked_add(length)).filter(|next| *next <= texts.len());
            places.extend((self.end + at as i64).to_le_bytes());
            at = next.ok_or_else(|| damaged("a text is longer than its page"))?;
        }
        self.pages.push((self.end, texts));
        self.end += at as i64;
        Ok(places)
    }
}

/// Texts that a page reader fills and a column looks into.
#[derive(Clone, Default)]
pub struct Shared(Arc<Mutex<Texts>>);

impl Shared {
    pub fn lock(&self) -> MutexGuard<'_, Texts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Texts that rows have by number: those of an Arrow dictionary.
#[derive(Default)]
pub struct Dictionary {
    /// Texts behind their lengths.
    bytes: Vec<u8>,
    places: Vec<i64>,
    texts: Shared,
}

impl Dictionary {
    /// Adds a text, which can be had after [`Dictionary::finish`].
    pub fn push(&mut self, text: &[u8]) {
        self.places.push(self.bytes.len() as i64);
        self.bytes.extend((text.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(text);
    }

    /// Makes the texts known.
    pub fn finish(&mut self) {
        let bytes = Bytes::from(self.bytes.clone());
        let names = vec![UNKNOWN; bytes.len() / 4];
        let end = bytes.len() as i64;
        self.texts = Shared(Arc::new(Mutex::new(Texts { pages: vec![(0, bytes)], dictionary: true, names, end })));
    }

    /// Place of the text of a number.
    pub fn place(&self, number: usize) -> Option<i64> {
        self.places.get(number).copied()
    }

    pub fn texts(&self) -> &Shared {
        &self.texts
    }
}

/// The column with places instead of texts.
///
/// # Errors
/// None that is known: the types are right.
pub fn placed(column: &ColumnDescriptor) -> Result<ColumnDescriptor> {
    let kind = SchemaType::primitive_type_builder(column.name(), Type::INT64)
        .with_repetition(column.self_type().get_basic_info().repetition());
    Ok(ColumnDescriptor::new(Arc::new(kind.build()?), column.max_def_level(), column.max_rep_level(), column.path().clone()))
}

/// Pages with places instead of texts.
pub struct Placed {
    pub pages: Checked,
    pub texts: Shared,
    pub max_definition: i16,
}

impl PageReader for Placed {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let Some(mut page) = self.pages.get_next_page()? else { return Ok(None) };
        let from = levels(&page, self.max_definition);
        match &mut page {
            Page::DictionaryPage { buf, num_values, .. } => {
                let mut texts = self.texts.lock();
                if !texts.pages.is_empty() {
                    return Err(damaged("a column has a dictionary behind its data"));
                }
                texts.names = vec![UNKNOWN; buf.len() / 4];
                texts.dictionary = true;
                *buf = texts.take(buf.clone(), *num_values as usize)?.into();
            }
            Page::DataPage { buf, num_values, encoding, .. } | Page::DataPageV2 { buf, num_values, encoding, .. } => {
                match encoding {
                    Encoding::PLAIN if from <= buf.len() => {
                        let places = self.texts.lock().take(buf.slice(from..), *num_values as usize)?;
                        *buf = [&buf[..from], &places].concat().into();
                    }
                    Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY => {}
                    other => return Err(damaged(format!("a page is encoded as {other}, which its column does not say"))),
                }
            }
        }
        Ok(Some(page))
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }
}

impl Iterator for Placed {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}
