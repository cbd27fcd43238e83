//! The analysis of a port: of its packets and samples of its queue, or of its counters.

use crate::checks::records::{missing_records, other_speed, unseen_drops};
use crate::checks::Finding;
use crate::counters::{CounterReport, Reading};
use crate::trace::order::Sink;
use crate::{Burst, Disorder, Fates, FlowLookup, PortAnalyzer, PortReport, Record, Settings};
use fanin_units::Bytes;

/// Takes what is known of one port; each analysis begins with the first thing that it is of.
pub struct PortSink {
    settings: Settings,
    buffer: Option<Bytes>,
    name: String,
    lookup: FlowLookup,
    /// True if the reader found that several sources are mixed under the name.
    mixed: bool,
    packets: Option<PortAnalyzer>,
    counters: Option<Box<CounterReport>>,
}

impl PortSink {
    /// `buffer`: bytes that can wait at the port, where that is known.
    pub fn new(settings: &Settings, buffer: Option<Bytes>, name: &str, lookup: FlowLookup) -> Self {
        PortSink {
            settings: settings.clone(),
            buffer,
            name: name.to_string(),
            lookup,
            mixed: false,
            packets: None,
            counters: None,
        }
    }

    fn analyzer(&self) -> PortAnalyzer {
        PortAnalyzer::new(&self.settings, &self.name, self.lookup.clone())
    }

    #[cold]
    #[inline(never)]
    fn begin(&mut self) -> &mut PortAnalyzer {
        let analyzer = self.analyzer();
        self.packets.insert(analyzer)
    }

    /// Takes the next record.
    ///
    /// # Errors
    /// A record earlier than the one before: it is not taken.
    #[inline]
    pub fn push(&mut self, record: &Record) -> Result<(), Disorder> {
        match &mut self.packets {
            Some(packets) => packets.push(record),
            None => self.begin().push(record),
        }
    }

    /// Sees the step to a look at the queue that comes next: where looks are missing, what was between is unknown.
    #[inline]
    pub fn see_look(&mut self, record: &Record) {
        self.packets.iter_mut().for_each(|packets| packets.see_look(record));
    }

    /// Takes the step to a look at the queue that comes next, however long it is.
    #[inline]
    pub fn step_to(&mut self, record: &Record) {
        self.packets.iter_mut().for_each(|packets| packets.step_to(record));
    }

    /// Time between records, or between looks of a counter, in which others are missing, up to now [ps].
    #[inline]
    pub fn unseen_ps(&self) -> u64 {
        self.packets.as_ref().map_or(0, PortAnalyzer::unseen_ps) + self.counters.as_ref().map_or(0, |counters| counters.gap_ps())
    }

    /// True once there was a record.
    pub fn has_packets(&self) -> bool {
        self.packets.is_some()
    }

    /// True if looks at the queue are missing by now, so long after the last one [ps].
    pub fn is_overdue(&self, since: u64) -> bool {
        self.packets.as_ref().is_some_and(|packets| packets.patience.is_over(since))
    }

    /// Intervals of counters that contradict something, and queues among them that contradict the buffer or a watermark.
    #[inline]
    pub fn doubted(&self) -> (u64, u64) {
        self.counters.as_ref().map_or((0, 0), |counters| counters.doubted())
    }

    /// True if several sources are mixed under the port's name: what is told of drops is of none of them.
    pub fn is_mixed(&self) -> bool {
        self.mixed || self.counters.as_ref().is_some_and(|counters| counters.is_mixed())
    }

    /// Notes that several sources are mixed under the port's name, as its reader found.
    pub fn mix(&mut self) {
        self.mixed = true;
        self.packets.iter_mut().for_each(PortAnalyzer::forget_unseen_drops);
    }

    /// True once something is known of the port.
    pub fn is_known(&self) -> bool {
        self.packets.is_some() || self.counters.as_ref().is_some_and(|counters| counters.is_known())
    }

    /// Contradictions up to now; once sources turn out to be mixed, drops that no burst explains are none.
    pub fn contradictions(&self) -> Vec<Finding> {
        let unseen = self.packets.as_ref().and_then(PortAnalyzer::unseen_drops).filter(|_| !self.mixed);
        let mut found: Vec<Finding> = unseen.into_iter().map(|unseen| unseen_drops(unseen, &self.name)).collect();
        found.extend(self.counters.iter().flat_map(|counters| counters.findings()));
        found
    }

    /// An analysis that goes on after another one of the port: with what was usual between its looks.
    pub fn after(mut self, before: &PortSink) -> Self {
        self.mixed = before.mixed;
        if let Some(before) = &before.packets {
            self.begin().patience = before.patience;
        }
        self
    }

    /// Takes out the bursts that have ended: of packets, then of counters.
    pub fn take_bursts(&mut self) -> Vec<Burst> {
        let mut bursts = self.packets.as_mut().map(PortAnalyzer::take_bursts).unwrap_or_default();
        bursts.extend(self.counters.iter_mut().flat_map(|counters| counters.take_bursts()));
        bursts
    }

    /// Ends bursts that are open, as nothing is known from here on.
    pub fn interrupt(&mut self) {
        self.packets.iter_mut().for_each(PortAnalyzer::interrupt);
        self.counters.iter_mut().for_each(|counters| counters.interrupt());
    }

    /// Beginning of the burst that is open [ps], and its largest queue so far; none outside.
    pub fn open_burst(&self) -> Option<(u64, Option<u64>)> {
        let of_packets = self.packets.as_ref().and_then(PortAnalyzer::open_burst).map(|(start, peak)| (start, Some(peak)));
        of_packets.or_else(|| self.counters.as_ref()?.open_burst())
    }

    /// Number of bursts that have ended, and time in them [ps].
    pub fn burst_totals(&self) -> (u64, u64) {
        let (bursts, ps) = self.packets.as_ref().map(PortAnalyzer::burst_totals).unwrap_or_default();
        let (more, more_ps) = self.counters.as_ref().map(|counters| counters.burst_totals()).unwrap_or_default();
        (bursts + more, u64::try_from(ps).unwrap_or(u64::MAX).saturating_add(more_ps))
    }

    /// Number of flows that the port has seen, each of which takes memory.
    pub fn flows_seen(&self) -> usize {
        self.packets.as_ref().map_or(0, PortAnalyzer::flows_seen)
    }

    /// Time that is unknown by the counters [ps], by the reason.
    pub fn unknown_time(&self) -> Vec<(&'static str, u64)> {
        self.counters.as_ref().map(|counters| counters.unknown_time().collect()).unwrap_or_default()
    }

    /// Ends the port; gives its report, and one more of its counters where it has packets too. Adds what the counters contradict.
    pub fn finish(mut self, findings: &mut Vec<Finding>) -> (PortReport, Option<PortReport>) {
        let counted = self.counters.take().map(|counters| {
            let (report, found) = counters.finish();
            findings.extend(found);
            report
        });
        match (self.packets.take(), counted) {
            (None, Some(counted)) => (counted, None),
            (packets, mut counted) => {
                if let Some(counted) = &mut counted {
                    counted.port.push_str(" (counters)");
                }
                let packets = packets.unwrap_or_else(|| self.analyzer());
                findings.extend(missing_records(packets.missing(), &self.name));
                findings.extend(packets.unseen_drops().map(|unseen| unseen_drops(unseen, &self.name)));
                findings.extend(packets.speeds().and_then(|speeds| other_speed(speeds, &self.name)));
                let mut report = packets.finish();
                if self.mixed {
                    report.telling(Fates { drops: false, marks: true });
                }
                (report, counted)
            }
        }
    }
}

impl Sink for PortSink {
    #[inline]
    fn take(&mut self, record: &Record) {
        self.take_measured(record, None);
    }

    #[inline]
    fn take_measured(&mut self, record: &Record, wait: Option<u64>) {
        let packets = match &mut self.packets {
            Some(packets) => packets,
            None => self.begin(),
        };
        if record.frame == 0 {
            packets.see_look(record);
        }
        packets.take_measured(record, wait);
    }

    #[inline]
    fn take_estimated(&mut self, record: &Record, wait: Option<u64>) {
        self.take_measured(record, wait);
    }

    fn take_reading(&mut self, reading: &Reading) {
        let new = || CounterReport::new(&self.settings, self.buffer, &self.name, self.lookup.clone());
        self.counters.get_or_insert_with(|| Box::new(new())).take(reading);
    }
}
