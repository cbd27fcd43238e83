//! Inspection of a trace's files, which are joined to a pair where they are two captures of one port; and the first reading of
//! captures.

use super::source::Source;
use super::{Control, Observer, Options, Progress};
use crate::capture::{chains, CaptureFile};
use crate::input::problem::{Failure, Problem, Problems};
use crate::pair;
use fanin_units::Time;
use std::path::PathBuf;

/// Files of a trace, at most: each is opened once at a time, but inspected beforehand.
const MAX_FILES: usize = 10_000;

fn find(paths: &[PathBuf], options: &Options) -> Result<Vec<Source>, Problems> {
    if paths.len() > MAX_FILES {
        return Err(Problem::new(format!("{} files are too many", paths.len())).accepted(format!("up to {MAX_FILES}")).into());
    }
    let mut problems = Vec::new();
    let mut sources: Vec<Source> = Vec::new();
    for path in paths {
        match Source::find(&options.place(path), options.columns.as_ref()) {
            Ok(source) => sources.push(source),
            Err(more) => problems.extend(more),
        }
    }
    for (i, path) in paths.iter().enumerate() {
        if paths[..i].contains(path) {
            problems.push(Problem::new("is given twice").file(&options.place(path).shown));
        }
    }
    if paths.len() > 1 {
        if let Some(folder) = paths.iter().find(|p| p.is_dir()) {
            let problem =
                Problem::new("is a result, which is analysed alone: its times have nothing to do with those of other files");
            problems.push(problem.file(folder));
        }
    }
    if problems.is_empty() {
        Ok(sources)
    } else {
        problems.truncate(50);
        Err(problems)
    }
}

/// The files of a trace; those of two captures of one port as one.
pub fn inspected(options: &Options, observer: &mut dyn Observer) -> Result<Vec<Source>, Failure> {
    let sources = find(&options.paths, options)?;
    if options.behind.is_empty() {
        return Ok(sources);
    }
    let behind = find(&options.behind, options)?;
    let mut problems = Problems::new();
    let mut captures = |sources: Vec<Source>| {
        let mut found = Vec::new();
        for source in sources {
            match source {
                Source::Capture(capture) => found.push(*capture),
                other => {
                    let problem = Problem::new("is no capture, in which packets could be found again").file(other.path());
                    problems.push(problem.column("behind").accepted("pcap, pcapng"));
                }
            }
        }
        found
    };
    let (before, behind) = (captures(sources), captures(behind));
    if !problems.is_empty() {
        return Err(problems.into());
    }
    let settings = &options.settings;
    let how = pair::How {
        interfaces: [options.before_interface.clone(), options.behind_interface.clone()],
        without_fcs: options.without_fcs,
        sorted: options.sort,
        transfers: options.transfers,
        rate: settings.rate,
        overhead: settings.overhead,
        top: settings.top,
        window: (settings.from.unwrap_or(Time::ZERO), options.stop.unwrap_or(Time::MAX)),
    };
    let mut tick = |done| observer.progress(Progress { done, records: 0 }) == Control::Continue;
    Ok(vec![Source::of_pair(pair::join(before, behind, how, &mut tick)?)])
}

/// Share of the time that the first reading of captures takes.
const SURVEY: f64 = 0.4;

/// Reads captures for the first time; gives the share of the work that is then done.
pub fn survey(sources: &mut [Source], options: &Options, observer: &mut dyn Observer) -> Result<f64, Failure> {
    let pointless: Problems = sources
        .iter()
        .filter(|s| !options.filter.is_empty() && s.capture().is_none_or(CaptureFile::is_stamped))
        .map(|source| {
            let capture = source.facts().is_capture();
            let why = if source.pair().is_some() {
                "what crosses the port is what is found in both captures; --before-interface and --behind-interface choose of several"
            } else if capture { "stamps in its packets say at which port they were" } else { "it is no capture" };
            Problem::new(format!("have no effect: {why}")).file(source.path()).column("to, direction, interface")
        })
        .collect();
    if !pointless.is_empty() {
        return Err(pointless.into());
    }
    let any = sources.iter().any(|s| s.capture().is_some());
    if options.transfers && !any && sources.iter().all(|source| source.pair().is_none()) {
        let problem =
            Problem::new("has no effect: there is no capture, and nothing else shows acknowledgments").column("transfers");
        return Err(problem.accepted("pcap, pcapng").into());
    }
    let mut seen = |share: f64| {
        let done = SURVEY * share.clamp(0.0, 1.0);
        observer.progress(Progress { done, records: 0 }) == Control::Continue
    };
    let mut problems = Problems::new();
    let mut captures: Vec<&mut CaptureFile> = sources.iter_mut().filter_map(Source::capture_mut).collect();
    match chains::survey(&mut captures, (&options.filter, options.without_fcs, options.transfers), &mut seen) {
        Ok(true) => {}
        Ok(false) => return Err(Failure::Stopped),
        Err(more) => problems = more,
    }
    // One of several files may well have nothing of what is asked for.
    let empty = |source: &Source| {
        let follows = source.capture().is_some_and(|capture| capture.follows);
        follows || source.selection().is_some_and(|selection| selection.streams.is_empty())
    };
    if problems.is_empty() && !options.filter.is_empty() && sources.iter().all(empty) {
        problems.extend(sources.iter().map(|source| {
            Problem::new("leaves no packet")
                .file(source.path())
                .column("to, direction, interface")
                .value(options.filter.to_string())
                .accepted(
                    "receivers, directions and interfaces of the capture; without these options a note says which there are",
                )
        }));
    }
    if problems.is_empty() {
        Ok(if any { SURVEY } else { 0.0 })
    } else {
        problems.truncate(50);
        Err(problems.into())
    }
}
