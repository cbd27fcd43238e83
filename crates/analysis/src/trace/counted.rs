//! The analysis of a port: of its packets and samples of its queue, or of its counters.

use crate::checks::Finding;
use crate::counters::{CounterReport, Reading};
use crate::trace::order::Sink;
use crate::{FlowLookup, PortAnalyzer, PortReport, Record, Settings};
use fanin_units::Bytes;

/// Takes what is known of one port; each analysis begins with the first thing that it is of.
pub struct PortSink {
    settings: Settings,
    buffer: Option<Bytes>,
    name: String,
    lookup: FlowLookup,
    packets: Option<PortAnalyzer>,
    counters: Option<Box<CounterReport>>,
}

impl PortSink {
    /// `buffer`: bytes that can wait at the port, where that is known.
    pub fn new(settings: &Settings, buffer: Option<Bytes>, name: &str, lookup: FlowLookup) -> Self {
        PortSink { settings: settings.clone(), buffer, name: name.to_string(), lookup, packets: None, counters: None }
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
                (packets.unwrap_or_else(|| self.analyzer()).finish(), counted)
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
