//! Files of columns: facts from their schema and first rows, and their opening.

use super::mapped::{steps, MappedTable};
use super::rows::TableRows;
use super::Table;
use crate::checks::{Finding, Level};
use crate::formats::feeds::hft;
use crate::formats::mapping::{bind, counts, no_bytes, other_units, unused_speed, Binding, Bound, Column, Mapping, Role, Unit};
use crate::formats::samples::SamplesFile;
use crate::formats::stamps::StampsFile;
use crate::formats::{in_file, Inspected, OpenRows, RowsFile, UNZONED};
use crate::input::context::Origin;
use crate::input::facts::{Facts, Shape};
use crate::input::file::{Place, SourceFile};
use crate::input::number::NumberError;
use crate::input::problem::{Problem, Problems};
use crate::input::reader::{TraceReader, BATCH};
use crate::Fates;
use fanin_units::{Bytes, Span};

/// Opens a file of columns.
pub type OpenTable = fn(&Place) -> Result<Table, Problem>;

/// Columns that are bound to roles.
struct ColumnRows {
    table: OpenTable,
    binding: Binding,
    /// Flow numbers stand for themselves, as in a result.
    own_flows: bool,
}

impl OpenRows for ColumnRows {
    fn open(&self, file: &SourceFile) -> Result<Box<dyn TraceReader>, Problems> {
        let table = (self.table)(&file.place)?;
        if counts(&self.binding.columns) || self.binding.columns.iter().any(|bound| bound.unit == Unit::Total) {
            return Ok(TableRows::table(table, &self.binding.columns, file)?.reader());
        }
        Ok(Box::new(MappedTable::new(table, &self.binding, Some(file.port_name()), self.own_flows)?))
    }
}

/// Finds out facts about a file of columns, and binds them.
///
/// # Errors
/// Everything that is wrong with it.
pub fn inspect(file: SourceFile, kind: &'static str, open: OpenTable, mapping: Option<&Mapping>) -> Result<Inspected, Problems> {
    let mut table = open(&file.place)?;
    let schema = table.note("fanin.schema").unwrap_or_default();
    if mapping.is_none() && schema.starts_with("stamps/") {
        return Ok(Inspected::Rows(Box::new(StampsFile::inspect(file, table, open)?)));
    }
    if mapping.is_none() && schema.starts_with("ports/") {
        return Ok(Inspected::Rows(Box::new(SamplesFile::inspect(file, table, open)?)));
    }
    if table.note(hft::VERSION).is_some_and(|version| version.starts_with(hft::NAME)) {
        return Ok(Inspected::Rows(Box::new(hft::HftFile::inspect(file, mapping)?)));
    }
    let mut facts = Facts::of(kind, Shape::Columns);
    let own_flows = mapping.is_none() && schema.starts_with("queues/");
    let mut binding = if own_flows {
        facts.manifest = file.manifest();
        facts.in_order = true;
        let lacks = || Problem::new("says it is a table of queues, and lacks one of its columns").file(&file.path);
        of_queues(&table.columns()).ok_or_else(lacks)?
    } else {
        if !schema.is_empty() && !schema.starts_with("records/") && mapping.is_none() {
            let problem = Problem::new(format!(
                "is the table {schema} of a result, which has neither records of packets nor samples of queues"
            ));
            return Err(problem.file(&file.path).accepted("queues.parquet, stamps.parquet, ports.parquet").into());
        }
        let columns = with_first_values(&table, || open(&file.place))?;
        bind(mapping, &columns).map_err(|problems| in_file(problems, &file))?
    };
    if binding.counts() {
        facts.shape = Shape::Counters;
    }
    learn(&binding.columns, &mut facts);
    if !own_flows {
        let names: Vec<String> = table.columns().into_iter().map(|column| column.name).collect();
        doubt(&binding.columns, &names, &mut facts, &file.path);
    }
    let whole = |role: Role| binding.get(role).filter(|b| table.is_integer(b.index)).map(|b| b.unit);
    step([whole(Role::Time), whole(Role::Queue)], &mut facts);
    if let Some(time) = binding.get(Role::Time) {
        facts.first = first_time(&mut table, time)?;
        if table.is_unzoned(time.index) && facts.first.is_some_and(|first| Origin::of(first).seconds() > 0) {
            binding.notes.push(UNZONED.to_string());
        }
    }
    let notes = std::mem::take(&mut binding.notes);
    Ok(Inspected::Rows(Box::new(RowsFile { file, facts, notes, rows: Box::new(ColumnRows { table: open, binding, own_flows }) })))
}

/// The columns with their first values, which show units that names do not.
fn with_first_values(table: &Table, open: impl Fn() -> Result<Table, Problem>) -> Result<Vec<Column>, Problems> {
    let mut columns = table.columns();
    for (index, column) in columns.iter_mut().enumerate().take(256) {
        if column.declared.is_none() && table.can_read(index) {
            let mut once = open()?;
            once.choose(&[index])?;
            if once.next(1).is_ok_and(|rows| rows > 0) {
                column.first = Some(once.shown(0, 0)).filter(|v| !v.is_empty());
            }
        }
    }
    Ok(columns)
}

/// The earliest time of the first batch, on the clock of the file [ps].
fn first_time(table: &mut Table, time: Bound) -> Result<Option<u128>, Problems> {
    table.choose(&[time.index])?;
    let mut first: Option<u128> = None;
    if table.next(BATCH)? > 0 {
        let mut see = |_: usize, v: Option<Result<u128, NumberError>>| {
            if let Some(Ok(v)) = v {
                first = Some(first.map_or(v, |f: u128| f.min(v)));
            }
        };
        match time.unit {
            Unit::Iso => table.dates(0, |row, v| see(row, v.map(|v| v.map(|(ps, _)| ps)))),
            other => table.numbers(0, steps(other), &mut see),
        }
    }
    Ok(first)
}

/// Notes the fates that bound columns tell of each packet.
pub fn learn(bound: &[Bound], facts: &mut Facts) {
    let has = |roles: &[Role]| bound.iter().any(|b| roles.contains(&b.role));
    facts.has_queue = has(&[Role::Queue, Role::Watermark]);
    let drops = has(&[Role::Dropped, Role::Replaced, Role::AtHead, Role::Drops]);
    facts.fates = Fates { drops, marks: has(&[Role::Marked, Role::Marks]) };
}

/// Notes what names of columns say against the units that they are read in, and a column that says the speed.
pub fn doubt(bound: &[Bound], names: &[String], facts: &mut Facts, file: &std::path::Path) {
    facts.speed_choice = unused_speed(names.iter().map(String::as_str), bound);
    let name = |index: usize| names.get(index).map_or("", String::as_str);
    facts.doubts.extend(no_bytes(bound, name).map(|(index, read, said, choice, level)| Finding {
        code: "unit_contradicts_name",
        level,
        place: file.display().to_string(),
        count: 1,
        bytes: None,
        words: format!("'{}' is read as {read}, and its name says {said}", name(index)),
        hint: format!("{choice} reads it as its name says"),
    }));
    facts.doubts.extend(other_units(bound, name).map(|(index, role, [said, read])| {
        let (said, read) = (said.describe(role), read.describe(role));
        Finding {
            code: "unit_contradicts_name",
            level: Level::Doubt,
            place: file.display().to_string(),
            count: 1,
            bytes: None,
            words: format!("'{}' is read as {read}, and its name says {said}", name(index)),
            hint: format!("{}={}:{said} reads it as its name says", role.name(), name(index)),
        }
    }));
}

/// Notes the steps in which times and queues are counted, if they are whole numbers of a unit.
pub fn step([time, queue]: [Option<Unit>; 2], facts: &mut Facts) {
    if let Some(Unit::Steps(ps)) = time.filter(|u| matches!(u, Unit::Steps(ps) if *ps >= 1_000_000)) {
        facts.tick = Span::from_ps(ps);
    }
    if let Some(Unit::Steps(bytes)) = queue {
        facts.unit = Bytes(bytes);
    }
}

/// The columns of a result's own table; older results do not report places that were taken, nor drops at the head.
fn of_queues(columns: &[Column]) -> Option<Binding> {
    let roles = [
        ("time_ps", Role::Time, Unit::Steps(1)),
        ("queue_bytes", Role::Queue, Unit::Steps(1)),
        ("port", Role::Port, Unit::Name),
        ("flow", Role::Flow, Unit::Name),
        ("frame_bytes", Role::Frame, Unit::Steps(1)),
        ("marked", Role::Marked, Unit::Flag),
        ("dropped", Role::Dropped, Unit::Flag),
    ];
    let bound = |(name, role, unit): (&str, Role, Unit)| {
        let index = columns.iter().position(|c| c.name == name)?;
        Some(Bound { role, index, unit })
    };
    let mut columns: Vec<Bound> = roles.into_iter().map(bound).collect::<Option<_>>()?;
    columns.extend(bound(("replaced", Role::Replaced, Unit::Flag)));
    columns.extend(bound(("at_head", Role::AtHead, Unit::Flag)));
    Some(Binding { columns, notes: Vec::new() })
}
