//! Captures: pcap and pcapng.

use super::feeds::{int_reports, netflow, sflow};
use super::{Format, Inspected, Mapping, Start};
use crate::capture::CaptureFile;
use crate::input::file::SourceFile;
use crate::input::problem::{Problem, Problems};
use fanin_wire::Headers;

/// Format of pcap files, with times in microseconds or nanoseconds, of either order of bytes.
pub struct Pcap;

/// Format of pcapng files.
pub struct PcapNg;

fn inspect(file: SourceFile, kind: &'static str, mapping: Option<&Mapping>) -> Result<Inspected, Problems> {
    if let Some(mapping) = mapping.filter(|m| !m.0.is_empty()) {
        let problem = Problem::new("has no effect: a capture has no columns").file(&file.path).column("columns");
        return Err(problem.value(mapping.to_string()).into());
    }
    Ok(Inspected::Capture(Box::new(CaptureFile::inspect(file, kind, telemetry)?)))
}

/// Title and name of the format whose datagrams a frame with these headers looks like, if it is one of telemetry.
fn telemetry(headers: &Headers, frame: &[u8]) -> Option<(&'static str, &'static str)> {
    if headers.protocol != 17 {
        return None;
    }
    let is = [sflow::is_datagram_of, netflow::is_datagram_of, int_reports::is_datagram_of];
    let formats = [sflow::SFLOW, netflow::NETFLOW, int_reports::REPORTS];
    let found = is.iter().position(|is| is(headers, frame))?;
    Some((formats[found].title, formats[found].name))
}

impl Format for Pcap {
    fn name(&self) -> &'static str {
        "pcap"
    }

    fn title(&self) -> &'static str {
        "pcap"
    }

    fn recognises(&self, start: Start<'_>) -> bool {
        matches!(
            start.bytes(),
            [0xa1, 0xb2, 0xc3, 0xd4, ..]
                | [0xd4, 0xc3, 0xb2, 0xa1, ..]
                | [0xa1, 0xb2, 0x3c, 0x4d, ..]
                | [0x4d, 0x3c, 0xb2, 0xa1, ..]
        )
    }

    fn inspect(&self, file: SourceFile, mapping: Option<&Mapping>) -> Result<Inspected, Problems> {
        inspect(file, self.name(), mapping)
    }
}

impl Format for PcapNg {
    fn name(&self) -> &'static str {
        "pcapng"
    }

    fn title(&self) -> &'static str {
        "pcapng"
    }

    fn recognises(&self, start: Start<'_>) -> bool {
        matches!(start.bytes(), [0x0a, 0x0d, 0x0d, 0x0a, ..])
    }

    fn inspect(&self, file: SourceFile, mapping: Option<&Mapping>) -> Result<Inspected, Problems> {
        inspect(file, self.name(), mapping)
    }
}
