//! Captures and tables that a page was given: the report, and the records that it draws.

use fanin_analysis::trace::{
    self, Control, Failure, Files, Found, Name, Observer, Options, Problem, Progress, ReadAt, RecordRow, Shelf,
};
use serde::{Deserialize, Serialize};
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io::{Error, ErrorKind};
use std::path::Path;
use std::sync::Arc;

/// Holder of the files, who is told how far the reading is.
pub trait Host: Debug + Send + Sync {
    /// Reads some bytes of a file by its number.
    ///
    /// # Errors
    /// It cannot be read.
    fn read(&self, file: usize, buf: &mut [u8], offset: u64) -> Result<usize, Error>;

    /// Hears how far it is; false ends the reading.
    fn goes_on(&self, progress: Progress) -> bool;
}

/// A file that the page has: its place in the list is its number.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Given {
    name: String,
    size: u64,
}

#[derive(Debug)]
struct OfHost {
    host: Arc<dyn Host>,
    file: usize,
    size: u64,
}

impl ReadAt for OfHost {
    fn size(&self) -> Result<u64, Error> {
        Ok(self.size)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize, Error> {
        let left = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let most = buf.len().min(left);
        if most == 0 {
            return Ok(0);
        }
        let read = self.host.read(self.file, &mut buf[..most], offset)?;
        if read > most {
            return Err(Error::other("the page gave more bytes than it was asked for"));
        }
        Ok(read)
    }
}

#[derive(Debug)]
struct Desk {
    host: Arc<dyn Host>,
    files: Vec<Given>,
}

impl Desk {
    fn number(&self, path: &Path) -> Result<usize, Error> {
        let found = self.files.iter().position(|file| Path::new(&file.name) == path);
        found.ok_or_else(|| ErrorKind::NotFound.into())
    }
}

impl Files for Desk {
    fn find(&self, path: &Path) -> Result<Found, Error> {
        Ok(Found::File(self.files[self.number(path)?].size))
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn ReadAt>, Error> {
        let file = self.number(path)?;
        Ok(Arc::new(OfHost { host: self.host.clone(), file, size: self.files[file].size }))
    }
}

struct Watch<'a>(&'a dyn Host);

impl Observer for Watch<'_> {
    fn progress(&mut self, progress: Progress) -> Control {
        if self.0.goes_on(progress) {
            Control::Continue
        } else {
            Control::Stop
        }
    }
}

/// A part of a port's time that a page shows; both ends are included.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stretch {
    port: String,
    low: u64,
    high: u64,
    /// Columns of time into which records are added up.
    columns: usize,
    /// True if packets are told one by one.
    keep: bool,
}

/// Columns of a stretch, at most.
const COLUMNS: usize = 10_000;

/// Records of a stretch: sums and largest values by column, -1 where none is known, and packets one by one.
#[derive(Debug, Default, Serialize)]
struct Seen {
    n: Vec<u64>,
    bytes: Vec<u64>,
    drops: Vec<u64>,
    marks: Vec<u64>,
    queue: Vec<i64>,
    wait: Vec<i64>,
    packets: Option<Packets>,
    #[serde(skip)]
    low: u64,
    #[serde(skip)]
    high: u64,
    #[serde(skip)]
    width: f64,
}

/// Packets of a stretch; times count from its start, -1 is unknown, and flows are places in a list of names.
#[derive(Debug, Default, Serialize)]
struct Packets {
    time: Vec<u64>,
    size: Vec<u32>,
    fate: Vec<u8>,
    flow: Vec<i64>,
    queue: Vec<i64>,
    wait: Vec<i64>,
}

/// Bits of a packet's fate.
const FATES: [u8; 4] = [1, 2, 4, 8];

/// A number that a page tells, -1 for none.
fn number(value: Option<u64>) -> i64 {
    value.and_then(|value| i64::try_from(value).ok()).unwrap_or(-1)
}

impl Seen {
    fn of(stretch: &Stretch) -> Self {
        let columns = stretch.columns.clamp(1, COLUMNS);
        let (low, high) = (stretch.low, stretch.high.max(stretch.low));
        Seen {
            n: vec![0; columns],
            bytes: vec![0; columns],
            drops: vec![0; columns],
            marks: vec![0; columns],
            queue: vec![-1; columns],
            wait: vec![-1; columns],
            packets: stretch.keep.then(Packets::default),
            low,
            high,
            width: (high - low + 1) as f64 / columns as f64,
        }
    }

    /// Takes a row that lies in it.
    fn take(&mut self, row: &Row, flow: i64) {
        let after = row.time - self.low;
        let column = (whole(after as f64, self.width) as usize).min(self.n.len() - 1);
        self.n[column] += 1;
        self.bytes[column] += u64::from(row.size);
        self.drops[column] += u64::from(row.fate & (FATES[1] | FATES[2]) != 0);
        self.marks[column] += u64::from(row.fate & FATES[0] != 0);
        self.queue[column] = self.queue[column].max(row.queue);
        self.wait[column] = self.wait[column].max(row.wait);
        if let Some(packets) = &mut self.packets {
            packets.time.push(after);
            packets.size.push(row.size);
            packets.fate.push(row.fate);
            packets.flow.push(flow);
            packets.queue.push(row.queue);
            packets.wait.push(row.wait);
        }
    }
}

/// The stretches of a port; its records come in order of time.
struct Lane<'a> {
    port: &'a str,
    /// Stretches by their starts, and how many of them have begun.
    waiting: Vec<usize>,
    begun: usize,
    /// Stretches that the present time lies in.
    open: Vec<usize>,
}

impl Lane<'_> {
    /// The stretches that a time lies in.
    fn at(&mut self, time: u64, seen: &[Seen]) -> &[usize] {
        while self.waiting.get(self.begun).is_some_and(|next| seen[*next].low <= time) {
            self.open.push(self.waiting[self.begun]);
            self.begun += 1;
        }
        self.open.retain(|stretch| seen[*stretch].high >= time);
        &self.open
    }
}

/// The stretches by their ports.
fn lanes<'a>(stretches: &'a [Stretch]) -> Vec<Lane<'a>> {
    let mut by_port: BTreeMap<&'a str, Vec<usize>> = BTreeMap::new();
    for (place, stretch) in stretches.iter().enumerate() {
        by_port.entry(&stretch.port).or_default().push(place);
    }
    let lane = |(port, mut waiting): (&'a str, Vec<usize>)| {
        waiting.sort_by_key(|place| stretches[*place].low);
        Lane { port, waiting, begun: 0, open: Vec::new() }
    };
    by_port.into_iter().map(lane).collect()
}

/// Number of times that a width goes into a length, exactly: a quotient that is rounded up to a whole number is not that number.
fn whole(length: f64, width: f64) -> f64 {
    let quotient = (length - length % width) / width;
    let floor = quotient.floor();
    if quotient - floor > 0.5 {
        floor + 1.0
    } else {
        floor
    }
}

struct Row {
    time: u64,
    size: u32,
    fate: u8,
    queue: i64,
    wait: i64,
}

/// The analyses of a page.
#[derive(Debug)]
pub struct Analyses {
    host: Arc<dyn Host>,
}

impl Default for Analyses {
    fn default() -> Self {
        Analyses { host: Arc::new(host::OfPage) }
    }
}

impl Analyses {
    pub fn with(host: Arc<dyn Host>) -> Self {
        Analyses { host }
    }

    /// The report of files, as the command line gives it, or what is wrong with them.
    ///
    /// # Errors
    /// It was ended.
    pub fn analyze(&self, files: Vec<Given>, settings: Value) -> Result<String, String> {
        let found = self.options(files, settings).and_then(|options| trace::analyze(&options, &mut Watch(&*self.host)));
        match found {
            Ok(report) => {
                let report = serde_json::to_string(&report).map_err(|error| error.to_string())?;
                Ok(format!("{{\"report\":{report}}}"))
            }
            Err(failure) => told(failure),
        }
    }

    /// Records of stretches of time.
    ///
    /// # Errors
    /// It was ended.
    pub fn explore(&self, files: Vec<Given>, settings: Value, stretches: Vec<Stretch>) -> Result<String, String> {
        let mut seen: Vec<Seen> = stretches.iter().map(Seen::of).collect();
        let mut lanes = lanes(&stretches);
        // The port of the row before, mostly that of this one.
        let mut last: Option<(Name, Option<usize>)> = None;
        let mut names: BTreeMap<String, i64> = BTreeMap::new();
        let options = self.options(files, settings);
        let mut take = |row: RecordRow| {
            let lane = match &last {
                Some((port, lane)) if *port == row.port => *lane,
                _ => {
                    let name = row.port.to_string();
                    let lane = lanes.binary_search_by_key(&name.as_str(), |lane| lane.port).ok();
                    last = Some((row.port.clone(), lane));
                    lane
                }
            };
            let Some(lane) = lane else { return Ok(()) };
            let open = lanes[lane].at(row.time_ps, &seen);
            if open.is_empty() {
                return Ok(());
            }
            let bits = [row.marked, row.dropped, row.replaced, row.estimated];
            let told = Row {
                time: row.time_ps,
                size: row.frame_bytes,
                fate: bits.iter().zip(FATES).map(|(on, bit)| if *on { bit } else { 0 }).sum(),
                queue: number(row.queue_bytes),
                wait: number(row.wait_ps),
            };
            let kept = open.iter().any(|place| seen[*place].packets.is_some());
            let flow = row.flow.filter(|_| kept).map_or(-1, |name| {
                let next = names.len() as i64;
                *names.entry(name.to_string()).or_insert(next)
            });
            open.iter().for_each(|place| seen[*place].take(&told, flow));
            Ok(())
        };
        let read = options.and_then(|options| trace::each_record(&options, &mut take, &mut Watch(&*self.host)));
        if let Err(failure) = read {
            return told(failure);
        }
        let mut listed: Vec<(&String, &i64)> = names.iter().collect();
        listed.sort_by_key(|(_, place)| **place);
        let listed: Vec<&String> = listed.into_iter().map(|(name, _)| name).collect();
        serde_json::to_string(&json!({ "stretches": seen, "names": listed })).map_err(|error| error.to_string())
    }

    fn options(&self, files: Vec<Given>, settings: Value) -> Result<Options, Failure> {
        let shelf = Shelf(Arc::new(Desk { host: self.host.clone(), files }));
        Ok(Options::of(&settings.to_string(), shelf)?)
    }
}

/// Problems of files or settings as an answer.
fn told(failure: Failure) -> Result<String, String> {
    match failure {
        Failure::Stopped => Err("stopped".into()),
        Failure::Problems(problems) => Ok(json!({ "problems": problems.iter().map(problem).collect::<Vec<_>>() }).to_string()),
    }
}

fn problem(problem: &Problem) -> Value {
    json!({ "message": &*problem.message, "text": problem.to_string() })
}

/// The page around the module.
#[cfg(target_family = "wasm")]
mod host {
    use super::Host;
    use fanin_analysis::trace::Progress;
    use std::io::Error;

    #[link(wasm_import_module = "page")]
    extern "C" {
        fn fanin_read(file: u32, at: f64, to: *mut u8, bytes: usize) -> i32;
        fn fanin_progress(done: f64, records: f64) -> i32;
    }

    #[derive(Debug)]
    pub struct OfPage;

    impl Host for OfPage {
        fn read(&self, file: usize, buf: &mut [u8], offset: u64) -> Result<usize, Error> {
            // SAFETY: the page writes no more bytes than it is asked for into the buffer, which nobody else uses meanwhile.
            let read = unsafe { fanin_read(file as u32, offset as f64, buf.as_mut_ptr(), buf.len()) };
            usize::try_from(read).map_err(|_| Error::other("the browser does not give its bytes: was it moved or changed?"))
        }

        fn goes_on(&self, progress: Progress) -> bool {
            // SAFETY: numbers go in and come out.
            unsafe { fanin_progress(progress.done, progress.records as f64) == 0 }
        }
    }
}

/// No page is around: nothing can be read.
#[cfg(not(target_family = "wasm"))]
mod host {
    use super::Host;
    use fanin_analysis::trace::Progress;
    use std::io::{Error, ErrorKind};

    #[derive(Debug)]
    pub struct OfPage;

    impl Host for OfPage {
        fn read(&self, _: usize, _: &mut [u8], _: u64) -> Result<usize, Error> {
            Err(ErrorKind::Unsupported.into())
        }

        fn goes_on(&self, _: Progress) -> bool {
            true
        }
    }
}
