//! Traces of simulated scenarios.

use fanin_analysis::Sender;
use fanin_analysis::{FlowInfo, FlowLookup, PortAnalyzer, PortReport, Record, Settings, AT_HEAD, DROPPED, MARKED, REPLACED};
use fanin_scenario::Scenario;
use fanin_sim::{Control, Observer, Progress};
use fanin_units::{BitRate, Span, Time};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

struct Quiet;

impl Observer for Quiet {
    fn progress(&mut self, _: &Progress) -> Control {
        Control::Continue
    }

    fn cost(&mut self) -> (f64, f64) {
        (0.0, 0.0)
    }
}

fn rows(file: &Path, mut each: impl FnMut(BTreeMap<String, Field>)) {
    let file = std::fs::File::open(file).expect("a table");
    let reader = SerializedFileReader::new(file).expect("Parquet");
    for row in reader.get_row_iter(None).expect("rows") {
        each(row.expect("a row").into_columns().into_iter().collect());
    }
}

fn number(field: &Field) -> u64 {
    match field {
        Field::ULong(n) => *n,
        Field::UInt(n) => u64::from(*n),
        Field::UShort(n) => u64::from(*n),
        Field::UByte(n) => u64::from(*n),
        Field::Long(n) => *n as u64,
        Field::Int(n) => *n as u64,
        other => panic!("{other:?} is no number"),
    }
}

fn text(field: &Field) -> &str {
    match field {
        Field::Str(text) => text,
        other => panic!("{other:?} is no text"),
    }
}

/// Records of one port, and its flows.
pub struct Trace {
    pub records: Vec<Record>,
    pub flows: FlowLookup,
}

/// Runs a scenario and reads what it left of `port`.
pub fn simulate(scenario: &str, port: &str) -> Trace {
    let scenario = Scenario::from_toml(scenario, Path::new(".")).unwrap_or_else(|e| panic!("{e:?}"));
    let folder = tempfile::tempdir().expect("a folder");
    fanin_sim::run(&scenario, folder.path(), &mut Quiet).unwrap_or_else(|e| panic!("{e}"));
    let mut records = Vec::new();
    rows(&folder.path().join("queues.parquet"), |row| {
        if text(&row["port"]) != port {
            return;
        }
        let flag = |name: &str, bit: u8| if row[name] == Field::Bool(true) { bit } else { 0 };
        records.push(Record {
            time: Time::from_ps(number(&row["time_ps"])),
            queue: number(&row["queue_bytes"]),
            frame: number(&row["frame_bytes"]) as u32,
            flow: number(&row["flow"]) as u32,
            flags: flag("marked", MARKED) | flag("dropped", DROPPED) | flag("replaced", REPLACED) | flag("at_head", AT_HEAD),
        });
    });
    let mut flows: BTreeMap<u32, FlowInfo> = BTreeMap::new();
    rows(&folder.path().join("flows.parquet"), |row| {
        let info = FlowInfo {
            src: Some(text(&row["src"]).into()),
            dst: Some(text(&row["dst"]).into()),
            start: Some(Time::from_ps(number(&row["start_ps"]))),
            opened: None,
            base_rtt: Some(Span::from_ps(number(&row["base_rtt_ps"]))),
            sender: Sender::SlowStart,
            doubled: None,
            name: format!("{} -> {}", text(&row["src"]), text(&row["dst"])).into(),
        };
        flows.insert(number(&row["flow"]) as u32, info);
    });
    Trace { records, flows: Arc::new(move |flow| flows.get(&flow).cloned().unwrap_or_default()) }
}

pub fn gigabit() -> Settings {
    Settings { rate: Some(BitRate::from_gbps(1)), rate_of_result: true, ..Settings::default() }
}

pub fn analyse(settings: &Settings, records: &[Record], flows: &FlowLookup) -> PortReport {
    let mut analyzer = PortAnalyzer::new(settings, "port", flows.clone());
    for record in records {
        analyzer.push(record).expect("order");
    }
    analyzer.finish()
}
