//! The present state of a stream, for those who watch it.

use super::{By, Live, Slot};
use crate::checks::{Finding, Level};
use crate::Fates;
use serde_json::{json, Value};

impl Live {
    /// Contradictions up to now, the first of each kind: code, port or file, words and advice.
    fn contradictions(&self) -> Vec<Value> {
        let watched = self.ports.iter().filter_map(|slot| if let Slot::Watched(port) = slot { Some(port) } else { None });
        let of_ports = watched.flat_map(|port| port.analyzer.contradictions());
        let of_reader = self.reader.iter().flat_map(|reader| reader.findings(&self.context));
        let mut first: Vec<Finding> = Vec::new();
        for found in of_ports.chain(of_reader).chain(self.context.findings.iter().cloned()) {
            if found.level >= Level::Doubt && first.iter().all(|other| other.code != found.code) {
                first.push(found);
            }
        }
        first.into_iter().map(|found| json!([found.code, found.place, found.words, found.hint])).collect()
    }

    /// The present state: of the stream, and of each port.
    pub fn report(&self) -> Value {
        let origin_s = self.context.origin.seconds();
        let known = self.known.as_ref();
        let fates = known.map_or(Fates::ALL, |known| known.facts.fates);
        let port = |(name, slot): (&String, &Slot)| {
            let (latest, cell) = (self.clock.latest, self.watching.cell.ps());
            let (counts, lost, queue, now) = match slot {
                Slot::Ignored => return None,
                Slot::Retired(away) => (away.counts.clone(), away.lost(latest), away.queue, None),
                Slot::Watched(port) => (port.counted(), port.lost(latest, cell), port.queue, Some(port)),
            };
            let counts = counts.with(lost);
            let open = now.and_then(|port| port.analyzer.open_burst());
            let (dropped, at_least) = counts.drops();
            let dropped = dropped.filter(|_| fates.drops && !counts.mixed);
            Some(json!({
                "port": name,
                "retired": now.is_none(),
                "records": counts.records,
                "dropped": dropped,
                "dropped_at_least": dropped.is_some() && at_least,
                "marked": counts.marked.filter(|marked| fates.marks || *marked > 0),
                "peak_bytes": counts.peak_bytes,
                "peak_at_least": counts.peak_at_least,
                "late": counts.late,
                "far": counts.far,
                "set_back": counts.set_back,
                "gaps": counts.gaps,
                "gap_ps": counts.gap_ps,
                "known": counts.known,
                "unknown_ps": counts.unknown_ps,
                "unknown_now": lost.map(|lost| lost.why),
                "bursts": counts.bursts,
                "burst_ps": counts.burst_ps,
                "queue_bytes": queue,
                "cell": now.and_then(|port| port.open_cell()).map(|cell| cell.told()),
                "last_ps": now.map(|port| port.last),
                "open_since_ps": open.map(|open| open.0),
                "open_peak_bytes": open.map(|open| open.1),
            }))
        };
        let refused = self.context.refused.as_ref();
        json!({
            "kind": known.map(|known| known.facts.kind),
            "by": known.map(|known| if known.by == By::Rate { "rate" } else { "queue" }),
            "origin_s": origin_s,
            "latest_ps": self.clock.latest,
            "refused": refused.map_or(0, |refused| refused.rows),
            "problems": refused.map(|refused| refused.latest.iter().map(ToString::to_string).collect::<Vec<_>>()),
            "leaps": self.leaps,
            "contradictions": self.contradictions(),
            "notes": self.context.notes,
            "renewals": self.renewals,
            "ports": self.context.ports.names().iter().zip(&self.ports).filter_map(port).collect::<Vec<_>>(),
        })
    }
}
