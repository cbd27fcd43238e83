//! Explanation of a flow's completion time, from columns of its tables.

use fanin_analysis::explain::{explain as walk_back, Hop, Pause, Records, Segment};
use pyo3::exceptions::{PyKeyError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

fn column<'py, T: FromPyObjectOwned<'py>>(table: &Bound<'py, PyDict>, name: &str) -> PyResult<Vec<T>> {
    let column = table.get_item(name)?.ok_or_else(|| PyKeyError::new_err(name.to_string()))?;
    column.extract()
}

/// All columns have as many rows as the first.
fn same_length(rows: usize, lengths: &[usize]) -> PyResult<()> {
    if lengths.iter().all(|length| *length == rows) {
        Ok(())
    } else {
        Err(PyValueError::new_err("columns of different lengths"))
    }
}

fn segments(table: &Bound<'_, PyDict>) -> PyResult<Vec<Segment>> {
    let numbers: Vec<u64> = column(table, "packet")?;
    let mut host = column::<String>(table, "host")?;
    let mut dropped_at = column::<Option<String>>(table, "dropped_at")?;
    let mut cause = column::<String>(table, "cause")?;
    let mut limit = column::<String>(table, "limit")?;
    let seq = column::<u64>(table, "seq_bytes")?;
    let payload = column::<u16>(table, "payload_bytes")?;
    let received = column::<Option<u64>>(table, "received_ps")?;
    let trimmed = column::<bool>(table, "trimmed")?;
    let dropped = column::<Option<u64>>(table, "dropped_ps")?;
    let cause_ps = column::<u64>(table, "cause_ps")?;
    let cause_packet = column::<Option<u64>>(table, "cause_packet")?;
    let armed = column::<Option<u64>>(table, "armed_ps")?;
    let armed_packet = column::<Option<u64>>(table, "armed_packet")?;
    let lengths = [host.len(), dropped_at.len(), cause.len(), limit.len(), seq.len(), payload.len(), received.len()];
    same_length(numbers.len(), &lengths)?;
    let lengths = [trimmed.len(), dropped.len(), cause_ps.len(), cause_packet.len(), armed.len(), armed_packet.len()];
    same_length(numbers.len(), &lengths)?;
    let segment = |i: usize| Segment {
        packet: numbers[i],
        host: std::mem::take(&mut host[i]),
        seq_bytes: seq[i],
        payload_bytes: payload[i],
        received_ps: received[i],
        trimmed: trimmed[i],
        dropped_at: dropped_at[i].take(),
        dropped_ps: dropped[i],
        cause: std::mem::take(&mut cause[i]),
        cause_ps: cause_ps[i],
        cause_packet: cause_packet[i],
        armed_ps: armed[i],
        armed_packet: armed_packet[i],
        limit: std::mem::take(&mut limit[i]),
    };
    Ok((0..numbers.len()).map(segment).collect())
}

fn hops(table: &Bound<'_, PyDict>) -> PyResult<Vec<Hop>> {
    let numbers: Vec<u64> = column(table, "packet")?;
    let mut port = column::<String>(table, "port")?;
    let names = ["arrived_ps", "sent_ps", "left_ps", "reached_ps"];
    let mut times = Vec::with_capacity(names.len());
    for name in names {
        times.push(column::<u64>(table, name)?);
    }
    let mut held_by = column::<Option<String>>(table, "held_by")?;
    let held_from = column::<Option<u64>>(table, "held_from_ps")?;
    let held_until = column::<Option<u64>>(table, "held_until_ps")?;
    let lengths = [held_by.len(), held_from.len(), held_until.len(), port.len()];
    same_length(numbers.len(), &lengths)?;
    same_length(numbers.len(), &[times[0].len(), times[1].len(), times[2].len(), times[3].len()])?;
    let hop = |i: usize| Hop {
        packet: numbers[i],
        port: std::mem::take(&mut port[i]),
        arrived_ps: times[0][i],
        sent_ps: times[1][i],
        left_ps: times[2][i],
        reached_ps: times[3][i],
        held_by: held_by[i].take(),
        held_from_ps: held_from[i],
        held_until_ps: held_until[i],
    };
    Ok((0..numbers.len()).map(hop).collect())
}

fn pauses(table: &Bound<'_, PyDict>) -> PyResult<Vec<Pause>> {
    let port = column::<String>(table, "port")?;
    let (start, end) = (column::<u64>(table, "start_ps")?, column::<Option<u64>>(table, "end_ps")?);
    same_length(port.len(), &[start.len(), end.len()])?;
    let pauses = port.into_iter().zip(start).zip(end);
    Ok(pauses.map(|((port, start_ps), end_ps)| Pause { port, start_ps, end_ps }).collect())
}

/// Explains where the time of a flow from `src` went, as JSON. Columns: name → list, of this flow alone, and of pauses of its
/// class.
#[pyfunction]
pub fn explain(
    py: Python<'_>,
    src: &str,
    start_ps: u64,
    finish_ps: Option<u64>,
    segment_columns: &Bound<'_, PyDict>,
    hop_columns: &Bound<'_, PyDict>,
    pause_columns: &Bound<'_, PyDict>,
) -> PyResult<String> {
    let (segments, hops, pauses) = (segments(segment_columns)?, hops(hop_columns)?, pauses(pause_columns)?);
    let records = Records { src, start_ps, finish_ps, segments: &segments, hops: &hops, pauses: &pauses };
    let explanation = py.detach(|| walk_back(&records));
    serde_json::to_string(&explanation).map_err(|e| PyRuntimeError::new_err(e.to_string()))
}
