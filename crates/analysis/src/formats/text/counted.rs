//! Tables in text whose rows are looks at counters: from the texts of a row to the interval that it ends.

use super::{Bad, Cell, MappedText, RowError, Rows};
use crate::counters::{Look, Reading, Series, Value};
use crate::formats::columns::mapped::{queue, steps};
use crate::formats::mapping::{counts, Bound, Role, Unit};
use crate::formats::UNZONED;
use crate::input::context::Context;
use crate::input::number::NumberError;
use crate::input::problem::{Problem, Problems};
use crate::input::reader::{Batch, TraceReader, BATCH};
use fanin_units::{BitRate, Span};

/// Longest interval [ps]: a day.
const LONGEST: u128 = 86_400_000_000_000_000;

/// A table of counters.
pub struct CountedText<R> {
    table: MappedText<R>,
    /// Looks at each port, and the speed that the table says it has.
    ports: Vec<(Series, Option<BitRate>)>,
}

impl<R: Rows + 'static> MappedText<R> {
    /// The table as a reader: of counters where a column is one.
    pub fn reader(self) -> Box<dyn TraceReader> {
        if counts(&self.bound) {
            Box::new(CountedText { table: self, ports: Vec::new() })
        } else {
            Box::new(self)
        }
    }
}

/// A whole number of 64 bits.
#[inline]
fn whole(cell: Cell<'_>, scale: u64) -> Result<u64, NumberError> {
    cell.number(scale).and_then(|n| u64::try_from(n).map_err(|_| NumberError::TooLarge))
}

/// A number of a unit in larger ones, `scale` and `of` smaller ones, rounded down.
fn whole_of(cell: Cell<'_>, scale: u64, of: u128) -> Result<u64, NumberError> {
    cell.number(scale).and_then(|n| u64::try_from(n / of).map_err(|_| NumberError::TooLarge))
}

/// True for what exporters write where there is no value.
fn is_unknown(cell: Cell<'_>) -> bool {
    let Cell::Text(text) = cell else { return false };
    ["nan", "-nan", "null", "none", "undefined", "n/a", "-"].iter().any(|word| text.eq_ignore_ascii_case(word.as_bytes()))
}

impl<R: Rows> CountedText<R> {
    /// Reads the present row: its port, the look, and the speed of the port.
    fn look(&mut self, context: &mut Context) -> Result<Option<(u32, Look, Option<BitRate>)>, Problem> {
        let table = &mut self.table;
        let line = table.rows.line();
        let (mut look, mut port, mut speed) = (Look::default(), None, None);
        let mut complete = true;
        for bound in &table.bound {
            let Bound { role, unit, index } = *bound;
            let cell = table.rows.cell(index);
            if cell.is_empty() || (role != Role::Port && is_unknown(cell)) {
                // A counter without a value is unknown; without a time or a port a row is nothing.
                if matches!(role, Role::Time | Role::Port) && complete {
                    table.missing.add(|| table.names[index].clone(), || format!("{} {line}", R::PLACE));
                    complete = false;
                }
                continue;
            }
            let placed = |problem: Problem| {
                problem.file(&table.path).place(format!("{} {line}", R::PLACE)).column(table.names[index].clone())
            };
            let value = |cell: Cell<'_>| {
                let in_bits = |bits: u64| whole_of(cell, bits, 8);
                Ok(match unit {
                    Unit::TotalOf(bits) => Value::Total(whole(cell, 1)?, Some(bits)),
                    Unit::Since => Value::Since(whole(cell, 1)?),
                    // In its own unit it has another range than the switch's counter: where it falls it begins anew.
                    Unit::TotalIn(bits) => Value::Total(in_bits(bits)?, Some(64)),
                    Unit::SinceIn(bits) => Value::Since(in_bits(bits)?),
                    Unit::Rate(bits) => Value::Rate(whole(cell, bits * 1_000)?),
                    _ => Value::Total(whole(cell, 1)?, None),
                })
            };
            let done: Result<(), NumberError> = match role {
                Role::Time => cell.time(unit).and_then(|(ps, zoned)| {
                    table.unzoned |= !zoned;
                    context.origin.time(ps).map(|time| look.time = time)
                }),
                Role::Port => {
                    port = Some((cell, index));
                    Ok(())
                }
                Role::Queue => cell.number(steps(unit)).and_then(queue).map(|bytes| look.queue = Some(bytes)),
                Role::Watermark => cell.number(steps(unit)).and_then(queue).map(|bytes| look.watermark = Some(bytes)),
                Role::Bytes => value(cell).map(|value| look.sent = Some(value)),
                Role::Arrived => value(cell).map(|value| look.arrived = Some(value)),
                Role::Packets => value(cell).map(|value| look.packets = Some(value)),
                Role::Drops | Role::Dropped => value(cell).map(|value| look.dropped = Some(value)),
                Role::Marks => value(cell).map(|value| look.marked = Some(value)),
                Role::Interval => cell.number(steps(unit)).and_then(|ps| match ps {
                    0 => Err(NumberError::Negative),
                    1..=LONGEST => {
                        look.span = Some(Span::from_ps(ps as u64));
                        Ok(())
                    }
                    _ => Err(NumberError::TooLarge),
                }),
                Role::Speed => whole(cell, steps(unit)).map(|bps| speed = (bps > 0).then_some(BitRate(bps))),
                // Packets and flows have no meaning beside counters.
                Role::Flow | Role::Frame | Role::Payload | Role::Marked | Role::Replaced | Role::AtHead | Role::Syn => Ok(()),
            };
            if let Err(error) = done {
                let problem = || placed(cell.wrong(role, unit, error));
                table.bad.add(problem, line);
                complete = false;
            }
        }
        if !complete {
            return Ok(None);
        }
        let port = match port {
            Some((cell, index)) => context.ports.index(&cell.text()).map_err(|problem| {
                problem.file(&table.path).place(format!("{} {line}", R::PLACE)).column(table.names[index].clone())
            })?,
            None => context.ports.index(table.port.as_bytes())?,
        };
        Ok(Some((port, look, speed)))
    }

    /// Adds the intervals that a look ends.
    fn take(&mut self, port: u32, look: &Look, speed: Option<BitRate>, context: &Context, batch: &mut Batch) {
        let place = port as usize;
        if self.ports.len() <= place {
            self.ports.resize(place + 1, (Series::new(context.is_live()), None));
        }
        let (series, known) = &mut self.ports[place];
        if speed.is_some() && speed != *known {
            *known = speed;
            batch.readings.extend(speed.map(|speed| (port, Reading::Speed(speed))));
        }
        let intervals = series.look(look, context.rate.or(*known));
        batch.readings.extend(intervals.into_iter().flatten().map(|interval| (port, Reading::Interval(interval))));
    }
}

impl<R: Rows> TraceReader for CountedText<R> {
    /// Reads the next readings. After the first wrong value there are no more: the rest is read for further errors.
    fn next(&mut self, context: &mut Context, batch: &mut Batch) -> Result<bool, Problems> {
        batch.clear();
        let path = self.table.path.display().to_string();
        std::mem::take(&mut self.table.notes).into_iter().for_each(|note| context.note(format!("{path}: {note}")));
        let (mut rows, mut paused, mut ended) = (0, false, false);
        while rows < BATCH {
            if !std::mem::take(&mut self.table.ahead) {
                match self.table.rows.read() {
                    Ok(true) => {}
                    Ok(false) => {
                        ended = true;
                        break;
                    }
                    // The last row of a file that was cut short.
                    Err(_) if self.table.gauge.is_cut() => {
                        ended = true;
                        break;
                    }
                    Err(RowError::Pause) => {
                        paused = true;
                        break;
                    }
                    Err(RowError::End(problem)) => {
                        let line = self.table.rows.line().max(1);
                        let mut bad = std::mem::take(&mut self.table.bad);
                        bad.problems.insert(0, problem.file(&self.table.path).place(format!("{} {line}", R::PLACE)));
                        return Err(bad.finish(&self.table.path));
                    }
                    Err(RowError::Row(problem)) => {
                        let line = self.table.rows.line().max(1);
                        self.table.is_wrong(problem, line);
                        rows += 1;
                        continue;
                    }
                }
            }
            rows += 1;
            if let Some((port, look, speed)) = self.look(context)? {
                self.take(port, &look, speed, context, batch);
            }
        }
        if ended {
            for (port, (series, speed)) in self.ports.iter_mut().enumerate() {
                let intervals = series.finish(context.rate.or(*speed));
                batch.readings.extend(intervals.into_iter().flatten().map(|i| (port as u32, Reading::Interval(i))));
            }
            // They are of the last rows.
            rows += usize::from(!batch.readings.is_empty());
        }
        if self.table.bad.is_empty() {
            return Ok(rows > 0 || paused);
        }
        if let Some(refused) = &mut context.refused {
            let bad = std::mem::take(&mut self.table.bad);
            refused.add(bad.count(), bad.problems);
            return Ok(rows > 0 || paused);
        }
        batch.clear();
        if rows > 0 {
            return Ok(true);
        }
        let bad: Bad = std::mem::take(&mut self.table.bad);
        Err(bad.finish(&self.table.path))
    }

    fn place(&self, row: u64) -> String {
        self.table.place(row)
    }

    fn progress(&self) -> f64 {
        self.table.progress()
    }

    fn finish(&mut self, context: &mut Context) {
        let file = self.table.path.display().to_string();
        if self.table.unzoned {
            context.note(format!("{file}: {UNZONED}"));
        }
        context.notes.extend(self.table.missing.note(&file));
        context.notes.extend(self.table.rows.ended().map(|ended| format!("{file}: {ended}")));
        context.notes.extend(self.table.gauge.note(self.table.packing, &file));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_64_bits_are_exact() {
        let text = |text: &'static str| Cell::Text(text.as_bytes());
        assert_eq!(whole(text("18446744073709551615"), 1), Ok(u64::MAX));
        assert_eq!(whole(text("18446744073709551616"), 1), Err(NumberError::TooLarge));
        assert_eq!(whole(text("400"), 1_000_000_000), Ok(400_000_000_000));
    }

    #[test]
    fn a_number_is_what_its_text_is() {
        let wide = [0, 1, 3, 255, 1 << 31, 1 << 53, i64::MAX as u64, i64::MAX as u64 + 1, u64::MAX];
        let signed = [i64::MIN, -1, 0, 7, i64::MAX];
        let numbers = wide.into_iter().map(Cell::Unsigned).chain(signed.into_iter().map(Cell::Signed));
        for number in numbers {
            let shown = number.text().into_owned();
            let text = Cell::Text(&shown);
            for scale in [0, 1, 8, 1_000, 1_000_000_000_000, u64::MAX] {
                assert_eq!(number.number(scale), text.number(scale), "{number:?} times {scale}");
            }
            for unit in [Unit::Iso, Unit::Steps(1), Unit::Steps(1_000_000_000_000)] {
                assert_eq!(number.time(unit), text.time(unit), "{number:?} {unit:?}");
            }
            for unit in [Unit::Flag, Unit::Ecn] {
                assert_eq!(number.flag(unit).ok(), text.flag(unit).ok(), "{number:?} {unit:?}");
            }
        }
    }
}
