//! Watched ports in the manifest, so that a reader of their records needs no scenario.

use crate::world::World;
use fanin_switch::Admission;
use fanin_telemetry::Keep;
use fanin_units::{Amount, Bytes};
use serde_json::{json, Map, Value};

impl World {
    /// Rows of all tables so far, written or kept.
    pub fn rows(&self) -> u64 {
        self.core.ledger.tables.rows()
    }

    /// Adds `watched` and, where packets carry stamps, `registers` to a manifest.
    pub fn describe_watched(&self, manifest: &mut Map<String, Value>) {
        let triggered = matches!(self.core.ledger.tables.keep(), Keep::Around { .. });
        let port =
            |(index, ((link, _), rows)): (usize, (&(fanin_units::LinkId, fanin_telemetry::Name), fanin_telemetry::KeptRows))| {
                let (port, link) = (&self.core.ports[*link], &self.core.links[*link]);
                let mut facts = json!({
                    "port": port.name.to_string(),
                    "rate_bps": port.rate.bps(),
                    "overhead_bytes": link.gap(),
                    "buffer_bytes": match port.admission {
                        Admission::Static(Amount::Bytes(bytes)) | Admission::Granted(Bytes(bytes)) => Some(bytes),
                        _ => None,
                    },
                    "index": index,
                    "seen": rows.seen,
                    "left_out": rows.seen - rows.kept,
                });
                if triggered {
                    facts["crossings"] = json!(rows.crossings);
                    facts["cut_short"] = json!(rows.cut_short);
                }
                facts
            };
        let ports: Vec<Value> =
            self.core.ledger.watched.iter().zip(self.core.ledger.tables.kept_rows()).enumerate().map(port).collect();
        manifest.insert("watched".into(), Value::Array(ports));
        if let Some(stamps) = &self.core.ledger.stamps {
            let registers = &stamps.registers;
            manifest.insert("registers".into(), json!({"tick_ps": registers.tick.ps(), "unit_bytes": registers.unit.get()}));
        }
    }
}
