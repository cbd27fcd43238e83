//! Files of a trace, through the whole analysis.

use fanin_analysis::trace::{
    analyze, explain, export, records, Control, Failure, Level, Observer, Options, Progress, TraceReport, Trust,
};
use fanin_units::Time;
use serde_json::json;
use std::path::Path;

/// Observer that stops an analysis which goes on reading a small file for ever.
struct Patient(u32);

impl Observer for Patient {
    fn progress(&mut self, now: Progress) -> Control {
        self.0 -= 1;
        assert!(self.0 > 0, "still reading after many batches");
        assert!((0.0..=1.0).contains(&now.done));
        Control::Continue
    }
}

const PATIENCE: u32 = 10_000;

/// Mappings of columns by which inputs are read; the first: none.
const COLUMNS: [&str; 5] = [
    "",
    "time=ts:us,port=ifname,queue=qlen:cells(208B),flow=five tuple,frame=len,marked=ecn:ecn,dropped=drop",
    "time=1:ns,queue=2",
    "time=when,queue=qlen:KB,port=intf,marked=ce,flow=flow_id",
    "time=at.ts:us,queue=qlen:B,port=view,flow=flow,frame=nested.len",
];

/// Fuzzes the analysis of a capture; the first byte chooses the options.
pub fn packets(data: &[u8]) {
    let Some((how, file)) = data.split_first() else { return };
    let mut options = json!({"sort": how & 1 > 0, "by": if how & 2 > 0 { Some("rate") } else { None }});
    if how & 4 > 0 {
        options["to"] = json!(["10.0.0.0/8", "fd00::/8"]);
    }
    if how & 8 > 0 {
        options["direction"] = json!(if how & 16 > 0 { "out" } else { "in" });
    }
    if how & 32 > 0 {
        options["interface"] = json!(["if4", "h3"]);
    }
    if how & 64 > 0 {
        options["transfers"] = json!(true);
    }
    run(file, options);
}

/// Fuzzes the analysis of a table; the first byte chooses the options.
pub fn table(data: &[u8]) {
    let Some((how, file)) = data.split_first() else { return };
    let columns = if how & 16 > 0 { COLUMNS[4] } else { COLUMNS[usize::from(how & 3)] };
    let columns = Some(columns).filter(|text| !text.is_empty());
    run(file, json!({"sort": how & 4 > 0, "by": if how & 8 > 0 { Some("rate") } else { None }, "columns": columns}));
}

/// Fuzzes the analysis of telemetry: streams, and tables of counters. The first byte chooses the options.
pub fn feed(data: &[u8]) {
    let Some((how, file)) = data.split_first() else { return };
    let columns =
        ["", "queue=Queue-Length:segments(480B)", COUNTERS, "time=1:s,bytes=2:since,interval=3:s"][usize::from(how & 3)];
    let columns = match how & 24 {
        8 => "queue=queue-occupancy:cells(208B)",
        16 => "watermark=buffer-count:cells(208B)",
        _ => columns,
    };
    let columns = Some(columns).filter(|text| !text.is_empty());
    run(file, json!({"by": if how & 4 > 0 { Some("rate") } else { None }, "columns": columns}));
}

/// Mapping of a table of counters.
const COUNTERS: &str = "time=time_ms:ms,port=ifName,bytes=tx_bytes:total,drops=tx_dropped:total(32),watermark=watermark_bytes:B";

/// Fuzzes the analysis of captures before and behind a port: the first byte chooses the options, the next two the length of the
/// first capture.
pub fn pair(data: &[u8]) {
    let Some(([how, low, high], files)) = data.split_first_chunk::<3>() else { return };
    let (before, behind) = files.split_at(usize::from(u16::from_le_bytes([*low, *high])).min(files.len()));
    let folder = tempfile::tempdir().expect("a folder");
    let paths = ["trace-before", "trace-behind"].map(|name| folder.path().join(name));
    std::fs::write(&paths[0], before).expect("a file");
    std::fs::write(&paths[1], behind).expect("a file");
    let chosen = |bit: u8, value: &str| (how & bit > 0).then(|| value.to_string());
    let same = how & 4 > 0;
    let settings = json!({
        "paths": [&paths[0]],
        "behind": (!same).then(|| [&paths[1]]),
        "before_interface": chosen(4, "h0"),
        "behind_interface": chosen(4, "h3"),
        "buffer": chosen(2, "10KB"),
        "fcs": how & 1 > 0,
        "sort": how & 8 > 0,
        "transfers": how & 16 > 0,
        "rate": "10Gbps",
        "max_bursts": 50,
    });
    let options = Options::from_json(&settings.to_string()).expect("options");
    match analyze(&options, &mut Patient(PATIENCE)) {
        Ok(report) => {
            holds(&report, &options);
            let pair = report.pair.expect("what both have in common");
            // A record that repeats the one before is read, and is no record of its port.
            let records: u64 = report.ports.iter().map(|port| port.records + port.duplicates).sum();
            assert_eq!(records, pair.matched + pair.dropped + pair.only_behind);
            assert!((0.0..=1.0).contains(&pair.share_behind));
            assert_eq!(pair.waiting.map_or(0, |waiting| waiting.packets), pair.matched + pair.only_behind);
            let written = export(&options, folder.path(), &mut Patient(PATIENCE)).expect("it was read before");
            assert_eq!(written, records);
        }
        Err(failure) => is_reported(&failure, &folder.path().join("trace")),
    }
    if how & 16 > 0 {
        explained(&options, &folder.path().join("trace"));
    }
}

/// Explains the slowest transfer of two captures: the parts are the whole.
fn explained(options: &Options, path: &Path) {
    match explain(options, None, &mut Patient(PATIENCE)) {
        Ok(found) => {
            let (explanation, took) = (found.explanation, found.transfer.took_ps);
            assert_eq!(explanation.end_ps - explanation.start_ps, took);
            assert_eq!(explanation.parts.iter().map(|part| part.time_ps).sum::<u64>(), took);
            assert_eq!(explanation.steps.iter().map(|step| step.to_ps - step.from_ps).sum::<u64>(), took);
            assert!(explanation.steps.windows(2).all(|steps| steps[0].to_ps == steps[1].from_ps));
            assert!(found.arrived + found.lost <= found.packets);
        }
        Err(failure) => is_reported(&failure, path),
    }
}

fn run(file: &[u8], mut settings: serde_json::Value) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace");
    std::fs::write(&path, file).expect("a file");
    settings["paths"] = json!([path]);
    settings["rate"] = json!("10Gbps");
    settings["max_bursts"] = json!(50);
    let options = Options::from_json(&settings.to_string()).expect("options");
    match analyze(&options, &mut Patient(PATIENCE)) {
        Ok(report) => holds(&report, &options),
        Err(failure) => is_reported(&failure, &path),
    }
}

/// Checks that a failure is reported for this file, in a few lines.
fn is_reported(failure: &Failure, path: &Path) {
    let Failure::Problems(problems) = failure else { panic!("nobody stopped it") };
    assert!(!problems.is_empty() && problems.len() <= 60);
    let text = failure.to_string();
    assert!(text.len() < 100_000, "{} bytes of message", text.len());
    let name = path.display().to_string();
    assert!(problems.iter().all(|problem| !problem.to_string().is_empty()));
    assert!(text.contains(&name) || text.contains("columns") || text.contains("port") || text.contains("sort"), "{text}");
}

fn holds(report: &TraceReport, options: &Options) {
    serde_json::to_string(report).expect("JSON");
    for port in &report.ports {
        assert!(port.bursts.len() as u64 + port.bursts_left_out == port.bursts_found);
        assert!(port.first_ps <= port.last_ps && port.first_ps.is_some() == (port.records > 0));
        for burst in &port.bursts {
            assert!(burst.start_ps <= burst.peak_ps && burst.peak_ps <= burst.end_ps);
            assert!(burst.peak_bytes <= port.peak_bytes);
            let shares = burst.direct.iter().chain(&burst.indirect).map(|culprit| culprit.share);
            assert!(shares.clone().all(|share| (0.0..=1.0).contains(&share)), "{:?}", shares.collect::<Vec<_>>());
        }
    }
    for source in &report.sources {
        let Some(taken) = &source.taken else { continue };
        // Copies are left out, and what has no time.
        let packets: u64 = taken.streams.iter().map(|stream| stream.packets).sum();
        assert!(source.records.is_none_or(|records| records <= packets), "{:?} of {packets}", source.records);
        assert!(taken.streams.iter().all(|stream| stream.port.is_some() && stream.rtt_low_ps <= stream.rtt_high_ps));
        assert!(taken.left_out.len() <= 100 && taken.left_out.iter().all(|stream| stream.port.is_none()));
    }
    let grave = report.plausibility.findings.iter().filter(|f| f.level > Level::Note).count();
    assert_eq!(grave == 0, report.plausibility.trust == Trust::Good);
    if let Some(notices) = &report.notifications {
        let undefined: u64 = notices.types.iter().filter(|kind| kind.name.is_none()).map(|kind| kind.count).sum();
        assert_eq!(notices.frames, notices.read + notices.cut + notices.short + undefined);
        assert_eq!(notices.frames, notices.alone + notices.attached);
    }
    if let Some(port) = report.ports.first() {
        let read = records(options, &port.port, &[(Time::ZERO, Time::MAX)], 100, &mut Patient(PATIENCE));
        if let Err(error) = read {
            panic!("it was read before: {error}");
        }
    }
}
