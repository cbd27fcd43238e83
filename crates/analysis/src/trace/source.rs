//! Sources of a trace: files of rows, captures, and two captures of one port as one.

use crate::capture::selection::Selection;
use crate::capture::CaptureFile;
use crate::formats::{inspect, Inspected, Mapping, RowsFile};
use crate::input::context::{Context, Origin};
use crate::input::facts::Facts;
use crate::input::file::{Place, SourceFile};
use crate::input::problem::Problems;
use crate::input::reader::TraceReader;
use crate::pair::{Pair, PairReader};
use fanin_units::Span;
use std::path::Path;
use std::sync::Arc;

/// A source that has been inspected.
pub enum Source {
    Rows(Box<RowsFile>),
    Capture(Box<CaptureFile>),
    Pair(Box<PairSource>),
}

/// Captures before and behind a port, of which the first gives the name.
pub struct PairSource {
    pub pair: Arc<Pair>,
    facts: Facts,
}

impl Source {
    /// Finds out the format of a path, and binds its columns.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn find(place: &Place, mapping: Option<&Mapping>) -> Result<Source, Problems> {
        Ok(match inspect(place, mapping)? {
            Inspected::Rows(rows) => Source::Rows(rows),
            Inspected::Capture(capture) => Source::Capture(capture),
        })
    }

    /// Two captures of one port as one source.
    pub fn of_pair(pair: Arc<Pair>) -> Source {
        let before = &pair.before().facts;
        let facts = Facts {
            first: pair.first(),
            in_order: true,
            tick: pair.tick().map_or(Span::ZERO, Span::from_ps),
            ..Facts::of(before.kind, before.shape)
        };
        Source::Pair(Box::new(PairSource { pair, facts }))
    }

    pub fn facts(&self) -> &Facts {
        match self {
            Source::Rows(rows) => &rows.facts,
            Source::Capture(capture) => &capture.facts,
            Source::Pair(pair) => &pair.facts,
        }
    }

    pub fn file(&self) -> &SourceFile {
        match self {
            Source::Rows(rows) => &rows.file,
            Source::Capture(capture) => &capture.file,
            Source::Pair(pair) => &pair.pair.before().file,
        }
    }

    /// Path as messages show it.
    pub fn path(&self) -> &Path {
        &self.file().path
    }

    pub fn pair(&self) -> Option<&Pair> {
        match self {
            Source::Pair(pair) => Some(&pair.pair),
            _ => None,
        }
    }

    /// A single capture, which is read twice.
    pub fn capture(&self) -> Option<&CaptureFile> {
        match self {
            Source::Capture(capture) => Some(capture),
            _ => None,
        }
    }

    /// A single capture, for taking the findings of its first reading.
    pub fn capture_mut(&mut self) -> Option<&mut CaptureFile> {
        match self {
            Source::Capture(capture) => Some(capture),
            _ => None,
        }
    }

    /// The selection of a capture's packets that is analysed.
    pub fn selection(&self) -> Option<Selection> {
        self.capture().and_then(CaptureFile::selection)
    }

    /// Opens the source for reading from the start.
    ///
    /// # Errors
    /// It cannot be opened any more.
    pub fn open(&self, context: &mut Context) -> Result<Box<dyn TraceReader>, Problems> {
        match self {
            Source::Rows(rows) => rows.open(context),
            Source::Capture(capture) => capture.open(),
            Source::Pair(pair) => Ok(Box::new(PairReader::new(pair.pair.clone()))),
        }
    }
}

/// Time zero of a trace, given all its sources.
pub fn origin(sources: &[Source]) -> Origin {
    sources.iter().filter_map(|s| s.facts().first).min().map_or(Origin::default(), Origin::of)
}
