//! Flows of a result: their names, hosts and round trips, from its flows.parquet.

use super::columns::Table;
use crate::input::context::{Context, Known};
use crate::input::file::Place;
use crate::input::manifest::Manifest;
use crate::input::number::NumberError;
use crate::input::problem::{Problem, Problems};
use crate::input::reader::BATCH;
use crate::{Sender, NO_FLOW};
use fanin_units::{Span, Time};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Adds the flows of a result to the context; a table that cannot be read makes a note and is not fatal.
pub fn learn_flows(folder: &Path, manifest: &Manifest, context: &mut Context) {
    let path = folder.join("flows.parquet");
    if !path.is_file() {
        return;
    }
    if let Err(problems) = flows_of(&path, manifest, context) {
        context.know(BTreeMap::new());
        context.notes.extend(problems.iter().map(|p| format!("flows go by their numbers: {p}")));
    }
}

/// Beginning of a transport's senders, by its name in the scenario.
fn sender_of(name: &[u8], manifest: &Manifest) -> Sender {
    let name = String::from_utf8_lossy(name);
    match manifest.transports.get(&*name).map(String::as_str) {
        Some("tcp") => Sender::SlowStart,
        Some(kind) => Sender::Other(kind.into()),
        // Datagrams are of no transport that a scenario defines.
        None if name == "udp" => Sender::Other("udp".into()),
        None => Sender::Unknown,
    }
}

fn flows_of(path: &Path, manifest: &Manifest, context: &mut Context) -> Result<(), Problems> {
    let mut table = Table::open(&Place::of(path))?;
    let columns = table.columns();
    let find = |name: &str| columns.iter().position(|c| c.name == name);
    let lacks = || Problem::new("lacks one of its columns").file(path);
    let mut indices = Vec::new();
    for name in ["flow", "src", "dst", "id", "start_ps"] {
        indices.push(find(name).ok_or_else(lacks)?);
    }
    let rtt = find("base_rtt_ps");
    indices.extend(rtt);
    let transport = find("transport");
    indices.extend(transport);
    table.choose(&indices)?;
    let mut known: BTreeMap<u32, Known> = BTreeMap::new();
    let mut names: BTreeMap<Vec<u8>, Arc<str>> = BTreeMap::new();
    let blank: Arc<str> = "".into();
    loop {
        let rows = table.next(BATCH)?;
        if rows == 0 {
            break;
        }
        let mut intern = |text: Option<&[u8]>| -> Arc<str> {
            let text = text.unwrap_or_default();
            if let Some(name) = names.get(text) {
                return name.clone();
            }
            let name: Arc<str> = String::from_utf8_lossy(text).into();
            names.insert(text.to_vec(), name.clone());
            name
        };
        let mut numbers = vec![NO_FLOW; rows];
        let nobody = Known {
            src: blank.clone(),
            dst: blank.clone(),
            id: None,
            start: Time::ZERO,
            base_rtt: None,
            sender: Sender::Unknown,
        };
        let mut batch = vec![nobody; rows];
        let ps = |v: Option<Result<u128, NumberError>>| v.and_then(Result::ok).and_then(|v| u64::try_from(v).ok());
        table.numbers(0, 1, |row, v| numbers[row] = ps(v).and_then(|v| u32::try_from(v).ok()).unwrap_or(NO_FLOW));
        table.texts(1, |row, text| batch[row].src = intern(text));
        table.texts(2, |row, text| batch[row].dst = intern(text));
        table.texts(3, |row, text| batch[row].id = text.map(|t| String::from_utf8_lossy(t).into()));
        table.numbers(4, 1, |row, v| batch[row].start = Time::from_ps(ps(v).unwrap_or(0)));
        if rtt.is_some() {
            table.numbers(5, 1, |row, v| batch[row].base_rtt = ps(v).map(Span::from_ps));
        }
        if transport.is_some() {
            let place = indices.len() - 1;
            table.texts(place, |row, name| batch[row].sender = sender_of(name.unwrap_or_default(), manifest));
        }
        known.extend(numbers.into_iter().zip(batch).filter(|(number, _)| *number != NO_FLOW));
    }
    context.know(known);
    Ok(())
}
