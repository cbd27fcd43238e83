//! Result folders of the simulator.

use super::{Format, Inspected, Mapping, Start};
use crate::input::facts::Shape;
use crate::input::file::{Place, SourceFile};
use crate::input::manifest::Manifest;
use crate::input::problem::{Problem, Problems};

/// A folder with a manifest, and a table of queues or of stamps.
pub struct ResultFolder;

impl Format for ResultFolder {
    fn name(&self) -> &'static str {
        "result"
    }

    fn title(&self) -> &'static str {
        "a result folder of fanin"
    }

    fn recognises(&self, start: Start<'_>) -> bool {
        matches!(start, Start::Folder)
    }

    fn inspect(&self, file: SourceFile, mapping: Option<&Mapping>) -> Result<Inspected, Problems> {
        let folder = file.path.as_path();
        let shelf = &file.place.shelf;
        if !shelf.is_file(&folder.join("manifest.json")) {
            let problem = Problem::new("is a folder, but not a result folder: it has no manifest.json").file(folder);
            return Err(problem.suggestion(format!("give the files in it: {}/*", folder.display())).into());
        }
        let manifest = Manifest::read(folder, shelf)?;
        if let Some(mapping) = mapping {
            let problem = Problem::new("has no effect: the columns of a result are known").file(folder).column("columns");
            return Err(problem.value(mapping.to_string()).into());
        }
        let there = |name: &str| shelf.is_file(&folder.join(name));
        let table = ["queues.parquet", "stamps.parquet"].into_iter().find(|name| there(name)).ok_or_else(|| {
            let lacks = "has neither queues.parquet nor stamps.parquet";
            let (why, then) = match manifest.status.as_str() {
                "running" => (
                    "the run has not ended, or it was killed (fanin show says which), and tables get their names at its end"
                        .to_string(),
                    "wait for its end; if it was killed, run it again with --force",
                ),
                "partial" => (
                    format!(
                        "the run ended early ({}) or watched no port",
                        manifest.reason.as_deref().unwrap_or("no reason is given")
                    ),
                    "run it again with --force, with ports named in telemetry.queues",
                ),
                _ => ("the run watched no port".into(), "name ports in telemetry.queues and run again"),
            };
            Problem::new(format!("{lacks}: {why}")).file(folder).suggestion(then)
        })?;
        let path = folder.join(table);
        if let Some(expected) = manifest.rows.get(table.trim_end_matches(".parquet")) {
            let found = super::parquet_rows(&path)?;
            if found != *expected {
                let problem = Problem::new(format!("has {found} rows; manifest.json says {expected}: it is of another run"));
                return Err(problem.file(&path).suggestion("run the scenario again, with --force").into());
            }
        }
        let mut inspected = match super::inspect(&Place::of(&path), None) {
            Err(_) if manifest.status == "running" => {
                let what = "is of a run that has not ended, or was killed: its tables are not whole";
                return Err(Problem::new(what)
                    .file(&path)
                    .suggestion("wait for its end; if it was killed, run it again with --force")
                    .into());
            }
            found => found?,
        };
        let (facts, inner) = match &mut inspected {
            Inspected::Rows(rows) => (&mut rows.facts, &mut rows.file),
            Inspected::Capture(capture) => (&mut capture.facts, &mut capture.file),
        };
        if facts.kind == "parquet" {
            facts.kind = self.name();
            (facts.shape, facts.may_hold_totals) = (Shape::Result, false);
        }
        facts.manifest = Some(manifest);
        inner.given = folder.to_path_buf();
        Ok(inspected)
    }
}
