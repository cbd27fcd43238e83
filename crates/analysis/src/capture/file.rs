//! A capture file that has been inspected, and surveyed before it is read.

use super::packets::{look, Look, Packets, Surveyed, Telemetry};
use super::selection::Selection;
use super::survey::Survey;
use crate::input::facts::{Facts, Shape};
use crate::input::file::SourceFile;
use crate::input::problem::{Problem, Problems};
use crate::input::reader::TraceReader;
use crate::Fates;
use fanin_units::BitRate;
use std::sync::Arc;

/// A capture, and the facts that are known of it.
#[derive(Clone)]
pub struct CaptureFile {
    pub file: SourceFile,
    pub facts: Facts,
    look: Look,
    /// Findings of the first reading.
    surveyed: Option<Arc<Surveyed>>,
    /// The capture goes on where another one ends.
    pub follows: bool,
    /// Recogniser of datagrams that carry telemetry.
    pub(super) telemetry: Telemetry,
}

impl CaptureFile {
    /// Looks at the first packets of a capture.
    ///
    /// # Errors
    /// It is no capture, or damaged from the start.
    pub fn inspect(file: SourceFile, kind: &'static str, telemetry: Telemetry) -> Result<CaptureFile, Problem> {
        let manifest = file.manifest();
        let registers = manifest.as_ref().and_then(|m| m.registers).unwrap_or_default();
        let look = look(&file.path, Box::new(file.open()?.0), registers)?;
        let facts = Facts {
            has_queue: look.stamped,
            // A dropped packet is in no capture behind the port, and is like any other in one before it.
            fates: Fates { drops: false, marks: look.stamped },
            registers: look.stamped.then_some(registers),
            first: if look.stamped && !look.same_clock { Some(0) } else { look.first },
            speed: look.speed.map(BitRate),
            manifest,
            ..Facts::of(kind, Shape::Capture)
        };
        Ok(CaptureFile { file, facts, look, surveyed: None, follows: false, telemetry })
    }

    /// True if stamps in the packets say where they queued.
    pub fn is_stamped(&self) -> bool {
        self.look.stamped
    }

    /// True if another capture may be the next file of this one: of the same name but for digits, at the same interfaces.
    pub fn is_like(&self, next: &CaptureFile) -> bool {
        let name = |capture: &CaptureFile| capture.file.name().chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
        let plain = |capture: &CaptureFile| !capture.is_stamped() && capture.file.path == capture.file.place.path;
        plain(self) && plain(next) && name(self) == name(next) && self.look.interfaces == next.look.interfaces
    }

    /// Takes the findings of the first reading; `follows`: of this capture and of those before it, the first of which reports them.
    pub(super) fn know(&mut self, found: Arc<Surveyed>, follows: bool) {
        self.facts.tick = if self.look.stamped { self.facts.tick } else { found.tick().unwrap_or(self.facts.tick) };
        (self.surveyed, self.follows) = (Some(found), follows);
    }

    /// Survey of this capture and of those that continue it; `None` where it continues another itself.
    pub fn survey(&self) -> Option<&Survey> {
        self.surveyed.as_ref().filter(|_| !self.follows).map(|surveyed| surveyed.survey())
    }

    /// True if times are those of the trace; where only stamps are, they are not.
    pub fn is_on_the_traces_clock(&self) -> bool {
        !self.look.stamped || self.look.same_clock
    }

    /// The selection of packets that is analysed.
    pub fn selection(&self) -> Option<Selection> {
        self.surveyed.as_ref().filter(|_| !self.follows).and_then(|surveyed| surveyed.taken.clone())
    }

    /// Opens the packets for reading from the start.
    ///
    /// # Errors
    /// It cannot be opened any more.
    pub fn open(&self) -> Result<Box<dyn TraceReader>, Problems> {
        let registers = self.facts.registers.unwrap_or_default();
        let watched = self.facts.manifest.iter().flat_map(|m| &m.watched);
        let names = watched.filter_map(|(name, w)| Some((w.index?, name.clone()))).collect();
        let input = Box::new(self.file.open()?.0);
        let seen = (self.look.clone(), self.surveyed.clone().unwrap_or_default(), self.follows);
        Ok(Box::new(Packets::new(&self.file.path, (input, self.file.size), seen, (registers, names))?))
    }
}
