//! The manifest of a result folder, as far as its tables and captures need it.

use super::at::Shelf;
use super::file::Whole;
use super::problem::Problem;
use fanin_telemetry::Registers;
use fanin_units::{BitRate, Bytes, Span};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

/// A watched port, as a manifest describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Watched {
    pub rate: Option<BitRate>,
    pub overhead: Option<Bytes>,
    pub index: Option<u8>,
}

/// Facts in a manifest about a trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Manifest {
    pub watched: BTreeMap<String, Watched>,
    pub registers: Option<Registers>,
    pub status: String,
    pub reason: Option<String>,
    /// Kinds of the transports, by the names that flows have them by.
    pub transports: BTreeMap<String, String>,
    /// Rows of each table.
    pub rows: BTreeMap<String, u64>,
}

/// Largest manifest [bytes]: the resolved scenario in it may be long, not endless.
const MANIFEST_LIMIT: u64 = 256 << 20;

impl Manifest {
    /// Reads `manifest.json` of a folder.
    ///
    /// # Errors
    /// It cannot be read, or is none of a result folder.
    pub fn read(folder: &Path, shelf: &Shelf) -> Result<Manifest, Problem> {
        let path = folder.join("manifest.json");
        let wrong = |message: String| Problem::new(message).file(&path);
        let file = shelf.0.open(&path).map_err(|e| wrong(format!("cannot be opened: {e}")))?;
        let mut text = String::new();
        Whole { file, at: 0 }
            .take(MANIFEST_LIMIT)
            .read_to_string(&mut text)
            .map_err(|e| wrong(format!("cannot be read: {e}")))?;
        let document: Value = serde_json::from_str(&text).map_err(|e| wrong(format!("is damaged: {e}")))?;
        let schema = document["schema"].as_str().unwrap_or_default();
        if !schema.starts_with("manifest/") {
            return Err(wrong(format!("is no manifest of a result: its schema is '{schema}'")).accepted("manifest/1"));
        }
        let mut manifest = Manifest {
            status: document["status"].as_str().unwrap_or("running").to_string(),
            reason: document["reason"].as_str().map(str::to_string),
            ..Manifest::default()
        };
        let scenario = &document["scenario"];
        let named = scenario["transports"].as_object().into_iter().flatten().map(|(name, transport)| (name.as_str(), transport));
        for (name, transport) in named.chain([("default", &scenario["transport"])]) {
            manifest.transports.extend(transport["kind"].as_str().map(|kind| (name.to_string(), kind.to_string())));
        }
        for entry in document["watched"].as_array().into_iter().flatten() {
            let Some(port) = entry["port"].as_str() else { continue };
            let watched = Watched {
                rate: entry["rate_bps"].as_u64().filter(|r| *r > 0).map(BitRate),
                overhead: entry["overhead_bytes"].as_u64().filter(|b| *b <= 1_000_000).map(Bytes),
                index: entry["index"].as_u64().and_then(|i| u8::try_from(i).ok()),
            };
            manifest.watched.insert(port.to_string(), watched);
        }
        for (table, rows) in document["files"].as_object().into_iter().flatten() {
            manifest.rows.extend(rows.as_u64().map(|rows| (table.clone(), rows)));
        }
        let registers = &document["registers"];
        if let (Some(tick), Some(unit)) = (registers["tick_ps"].as_u64(), registers["unit_bytes"].as_u64()) {
            if tick > 0 && unit > 0 && unit <= 1 << 20 {
                manifest.registers = Some(Registers { tick: Span::from_ps(tick), unit: Bytes(unit) });
            }
        }
        Ok(manifest)
    }
}
