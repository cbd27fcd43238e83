//! Schema of an Arrow file or stream: its columns, and the buffers that each record batch has for them.
//!
//! The format: Arrow columnar format 1.5, "Buffer Listing for Each Layout"; Schema.fbs.

use crate::formats::arrow::buffers::Kind;
use crate::formats::arrow::flat::{Broken, Flat, Walked};
use crate::formats::columns::MAX_COLUMNS;
use crate::formats::mapping::Unit;
use std::collections::BTreeMap;

/// Largest depth of fields inside each other.
const DEPTH: usize = 64;

/// Largest number of fields of a schema, including those of lists and structures.
const FIELDS: usize = 4 * MAX_COLUMNS;

/// Buffers of a field in each record batch.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    pub buffers: usize,
    /// True if a number of further ones follows, which the batch says.
    pub variadic: bool,
}

/// A column of the schema.
#[derive(Clone, Debug)]
pub struct Leaf {
    pub name: String,
    /// Kind of the values; where there is a dictionary, of the numbers that point into it.
    pub kind: Kind,
    pub node: usize,
    /// Structures around the field: where one of them is missing, the field's value is missing too.
    pub above: Vec<usize>,
    pub dictionary: Option<i64>,
    pub declared: Option<Unit>,
    pub unzoned: bool,
    /// Reason for which the column cannot be read.
    pub refused: Option<String>,
}

/// Schema of a file or stream.
#[derive(Default)]
pub struct Schema {
    /// Fields in the order in which record batches have their buffers.
    pub nodes: Vec<Node>,
    pub leaves: Vec<Leaf>,
    /// Notes of the writer.
    pub notes: BTreeMap<String, String>,
    /// Kind of the texts of each dictionary, by its id.
    pub texts: BTreeMap<i64, Kind>,
    pub big_endian: bool,
}

impl Schema {
    /// Reads a Schema table in metadata of this version.
    pub fn of(schema: &Flat<'_>, version: i16) -> Walked<Self> {
        let mut this = Schema { big_endian: schema.short(0, 0)? != 0, ..Schema::default() };
        for note in schema.tables(2)? {
            let note = note?;
            this.notes.insert(note.text(0)?, note.text(1)?);
        }
        for field in schema.tables(1)? {
            // Version 4 is the fifth.
            this.field(&field?, &[], &[], version < 4, DEPTH)?;
        }
        Ok(this)
    }

    /// Notes the buffers of a field and of those inside it, and its column.
    fn field(&mut self, field: &Flat<'_>, path: &[&str], above: &[usize], old: bool, depth: usize) -> Walked<()> {
        if depth == 0 || self.nodes.len() > FIELDS {
            return Err(Broken);
        }
        let own = field.text(0)?;
        let path = [path, &[&own]].concat();
        let node = self.nodes.len();
        let id = field.byte(2, 0)?;
        let dictionary = field.table(4)?;
        let kind = field.table(3)?;
        let mut leaf = Leaf {
            name: path.join("."),
            kind: Kind::None,
            node,
            above: above.to_vec(),
            dictionary: None,
            declared: None,
            unzoned: false,
            refused: None,
        };
        if let Some(dictionary) = dictionary {
            let texts = of_type(id, kind.as_ref(), &mut leaf)?;
            let number = dictionary.long(0)?;
            (leaf.declared, leaf.unzoned) = (None, false);
            if matches!(texts, Kind::Text { .. } | Kind::Views) {
                self.texts.insert(number, texts);
            } else {
                leaf.refused = Some(format!("is a dictionary of {}", name_of(id)));
            }
            let (bits, signed) = match dictionary.table(1)? {
                Some(index) => (index.int(0, 0)?, index.byte(1, 0)? != 0),
                None => (32, true),
            };
            leaf.kind = number_of(bits, signed).ok_or(Broken)?;
            leaf.dictionary = Some(number);
            self.nodes.push(Node { buffers: 2, variadic: false });
            self.leaves.push(leaf);
            return Ok(());
        }
        let dense = id == 14 && kind.map_or(Ok(0), |kind| kind.short(0, 0))? == 1;
        let buffers = match id {
            1 | 22 => 0,
            13 | 16 => 1,
            14 => 1 + usize::from(dense) + usize::from(old),
            4 | 5 | 19 | 20 | 25 | 26 => 3,
            2..=26 => 2,
            _ => return Err(Broken),
        };
        self.nodes.push(Node { buffers, variadic: matches!(id, 23 | 24) });
        if id == 13 {
            let above = [above, &[node]].concat();
            for child in field.tables(5)? {
                self.field(&child?, &path, &above, old, depth - 1)?;
            }
            return Ok(());
        }
        leaf.kind = of_type(id, kind.as_ref(), &mut leaf)?;
        if matches!(leaf.kind, Kind::None) && leaf.refused.is_none() {
            leaf.refused = Some(format!("is of type {}", name_of(id)));
        }
        self.leaves.push(leaf);
        // What is inside a list has buffers, but no value by row.
        let there = self.leaves.len();
        for child in field.tables(5)? {
            self.field(&child?, &path, above, old, depth - 1)?;
        }
        self.leaves.truncate(there);
        Ok(())
    }
}

/// Numbers of so many bits.
fn number_of(bits: i32, signed: bool) -> Option<Kind> {
    let width = match bits {
        8 => 1,
        16 => 2,
        32 => 4,
        64 => 8,
        _ => return None,
    };
    Some(Kind::Number { width, signed, float: false })
}

/// The values of a type of Schema.fbs; a time's unit goes into the column.
fn of_type(id: u8, kind: Option<&Flat<'_>>, leaf: &mut Leaf) -> Walked<Kind> {
    if id == 1 {
        return Ok(Kind::Null);
    }
    let Some(kind) = kind else { return Err(Broken) };
    let mut timed = |unit: i16, width: usize| {
        let steps = [1_000_000_000_000, 1_000_000_000, 1_000_000, 1_000].get(usize::try_from(unit).map_err(|_| Broken)?);
        leaf.declared = Some(Unit::Steps(*steps.ok_or(Broken)?));
        Ok(Kind::Number { width, signed: true, float: false })
    };
    match id {
        2 => number_of(kind.int(0, 0)?, kind.byte(1, 0)? != 0).ok_or(Broken),
        3 => Ok(match kind.short(0, 0)? {
            1 => Kind::Number { width: 4, signed: true, float: true },
            2 => Kind::Number { width: 8, signed: true, float: true },
            _ => Kind::None,
        }),
        4 | 5 => Ok(Kind::Text { wide: false }),
        6 => Ok(Kind::Bool),
        // Days are no times of packets.
        8 if kind.short(0, 1)? == 1 => timed(1, 8),
        9 => {
            let width = if kind.int(1, 32)? == 64 { 8 } else { 4 };
            timed(kind.short(0, 1)?, width)
        }
        10 => {
            let made = timed(kind.short(0, 0)?, 8)?;
            leaf.unzoned = kind.text(1)?.is_empty();
            Ok(made)
        }
        18 => timed(kind.short(0, 1)?, 8),
        19 | 20 => Ok(Kind::Text { wide: true }),
        23 | 24 => Ok(Kind::Views),
        _ => Ok(Kind::None),
    }
}

/// Arrow's name of a type.
fn name_of(id: u8) -> &'static str {
    const NAMES: [&str; 27] = [
        "None",
        "Null",
        "Int",
        "FloatingPoint of 16 bits",
        "Binary",
        "Utf8",
        "Bool",
        "Decimal",
        "Date",
        "Time",
        "Timestamp",
        "Interval",
        "List",
        "Struct",
        "Union",
        "FixedSizeBinary",
        "FixedSizeList",
        "Map",
        "Duration",
        "LargeBinary",
        "LargeUtf8",
        "LargeList",
        "RunEndEncoded",
        "BinaryView",
        "Utf8View",
        "ListView",
        "LargeListView",
    ];
    NAMES.get(usize::from(id)).copied().unwrap_or("unknown")
}
