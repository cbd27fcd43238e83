//! Blocks outside of the simulator that decide about packets, over Unix sockets: docs/cosimulation.md.

mod frames;

use crate::core::port::Port;
use fanin_engine::Table;
use fanin_params::{Problem, Severity};
use fanin_scenario::Scenario;
use fanin_switch::{Answer, Marking, Moment, Outside, OutsideParams, OutsidePort, Question};
use fanin_units::{LinkId, Span};
use frames::PortFacts;
use serde_json::{json, Value};
use std::sync::{Arc, Mutex, PoisonError};

/// Asked some times a second while a block is silent: true as long as it may be waited for.
pub type KeepWaiting = Arc<dyn Fn() -> bool + Send + Sync>;

/// The outside blocks of a run, each with the ports that it decides about.
#[derive(Default)]
pub struct Blocks(Vec<Block>);

struct Block {
    params: OutsideParams,
    connection: Arc<Mutex<Connection>>,
}

/// Policies of a scenario's ports that ask a block, with the class of each queue that has one of its own.
fn asking(scenario: &Scenario) -> Vec<(LinkId, Option<u8>, &OutsideParams)> {
    let mut all = Vec::new();
    for (id, wire) in (0..).map(LinkId).zip(&scenario.topology().links) {
        if scenario.topology().host_id(wire.from).is_some() {
            continue;
        }
        let port = scenario.port(id);
        let queues: Vec<(Option<u8>, &Marking)> = match port.marking_by_class() {
            None => vec![(None, port.marking)],
            Some(queues) => (0..).map(Some).zip(queues).collect(),
        };
        all.extend(queues.into_iter().filter_map(|(class, marking)| Some((id, class, marking.outside()?))));
    }
    all
}

/// True if an outside block decides about packets of a run.
pub fn asks(scenario: &Scenario) -> bool {
    !asking(scenario).is_empty()
}

/// Policies that ask a block, by their paths in the document, each once: for who cannot have one.
pub fn asked_at(scenario: &Scenario) -> Vec<String> {
    let mut places: Vec<String> = Vec::new();
    for (_, _, params) in asking(scenario) {
        let place = place(scenario, params);
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

impl Blocks {
    /// Connects to the blocks of a scenario. Policies with the same parameters have one. A block that is silent is waited for while
    /// `keep_waiting` says so.
    ///
    /// # Errors
    /// With a problem for each block that cannot be had.
    pub fn connect(scenario: &Scenario, keep_waiting: &KeepWaiting) -> Result<Blocks, Vec<Problem>> {
        let asking = asking(scenario);
        let mut wanted: Vec<&OutsideParams> = Vec::new();
        for (_, _, params) in &asking {
            if !wanted.contains(params) {
                wanted.push(params);
            }
        }
        let (mut blocks, mut problems) = (Vec::new(), Vec::new());
        for params in wanted {
            let mut ports: Vec<PortFacts> = Vec::new();
            for (id, ..) in asking.iter().filter(|(_, _, of)| *of == params) {
                if ports.last().is_none_or(|port| port.number != id.0) {
                    ports.push(facts(scenario, *id, true));
                }
            }
            if params.detours {
                ports = with_ways(scenario, &ports);
            }
            let connected = Connection::new(params, scenario.seed(), &ports, keep_waiting);
            match connected {
                Ok(connection) => {
                    blocks.push(Block { params: params.clone(), connection: Arc::new(Mutex::new(connection)) });
                }
                Err(message) => problems.push(Problem {
                    severity: Severity::Error,
                    path: place(scenario, params) + ".socket",
                    line: None,
                    value: Some(format!("{:?}", params.socket)),
                    message,
                    accepted: None,
                    suggestion: None,
                }),
            }
        }
        if problems.is_empty() {
            Ok(Blocks(blocks))
        } else {
            Err(problems)
        }
    }

    /// Brings the blocks to the policies that ask them.
    pub fn attach(&self, scenario: &Scenario, ports: &mut Table<Port, LinkId>) {
        for (id, class, params) in asking(scenario) {
            let Some(block) = self.0.iter().find(|block| block.params == *params) else { continue };
            let at = OutsidePort { block: block.connection.clone(), port: id.0, class };
            let port = &mut ports[id];
            let markers = port.queues.as_deref_mut().and_then(|queues| queues.markers.as_deref_mut());
            match (class, markers) {
                (Some(class), Some(markers)) => markers[usize::from(class)].attach(at),
                _ => port.marker.attach(at),
            }
        }
    }

    /// The blocks for a manifest; `None` where the run has none.
    pub fn describe(&self) -> Option<Value> {
        let one = |block: &Block| {
            let connection = block.connection.lock().unwrap_or_else(PoisonError::into_inner);
            json!({
                "socket": block.params.socket,
                "settings": block.params.settings,
                "name": connection.name,
                "version": connection.version,
                "protocol": frames::VERSION,
                "requests": connection.requests,
            })
        };
        (!self.0.is_empty()).then(|| self.0.iter().map(one).collect())
    }
}

/// Path of the policy with these parameters in the document.
fn place(scenario: &Scenario, params: &OutsideParams) -> String {
    let switch = &scenario.doc().switch;
    let is = |marking: Option<&Marking>| marking.and_then(Marking::outside) == Some(params);
    let class = switch.class_marking.iter().position(|entry| is(Some(&entry.marking)));
    let except = switch.except.iter().position(|entry| is(entry.marking.as_ref()));
    match (is(Some(&switch.marking)), except, class) {
        (false, Some(i), _) => format!("switch.except[{i}].marking"),
        (false, None, Some(i)) => format!("switch.class_marking[{i}].marking"),
        _ => "switch.marking".to_string(),
    }
}

/// Ports that a block decides about, among all ports of their switches.
fn with_ways(scenario: &Scenario, asked: &[PortFacts]) -> Vec<PortFacts> {
    let (links, nodes) = (&scenario.topology().links, &scenario.topology().nodes);
    let (mut decides, mut at) = (vec![false; links.len()], vec![false; nodes.len()]);
    for port in asked {
        let number = port.number as usize;
        decides[number] = true;
        at[links[number].from.index()] = true;
    }
    let ports = (0..).map(LinkId).zip(links).filter(|(_, link)| at[link.from.index()]);
    ports.map(|(id, _)| facts(scenario, id, decides[id.index()])).collect()
}

fn facts(scenario: &Scenario, id: LinkId, asked: bool) -> PortFacts {
    let (port, wire) = (scenario.port(id), scenario.topology().link(id));
    PortFacts {
        number: id.0,
        asked,
        overhead: scenario.overhead(id),
        classes: port.scheduling.classes() as u8,
        rate_bps: wire.rate.bps(),
        buffer: port.buffer,
        name: scenario.topology().link_name(id),
    }
}

/// A connection to a block.
struct Connection {
    stream: Stream,
    timeout: Span,
    detours: bool,
    /// The block in messages.
    named: String,
    name: String,
    version: String,
    requests: u64,
    failure: Option<String>,
}

impl Connection {
    fn new(params: &OutsideParams, seed: u64, ports: &[PortFacts], keep_waiting: &KeepWaiting) -> Result<Connection, String> {
        let mut stream = Stream::open(params, keep_waiting.clone())?;
        let hello = frames::hello(seed, params, ports);
        let mut answer = [0; frames::WELCOME];
        let exchanged = stream.send(&hello).and_then(|()| stream.receive(&mut answer));
        exchanged.map_err(|fault| {
            format!("the block there {} its first frame", fault.about(params.timeout, "sent", frames::WELCOME))
        })?;
        let (name, version) = frames::welcome(&answer).map_err(|what| format!("the block there {what}"))?;
        let has = format!("{name} {version}").trim_end().to_string();
        if let Some(wanted) = params.block.as_ref().filter(|wanted| **wanted != has) {
            return Err(format!("the block there is \"{has}\"; accepted: \"{wanted}\", by the key block"));
        }
        let named = format!("the block '{has}' at {}", params.socket);
        let (timeout, detours) = (params.timeout, params.detours);
        Ok(Connection { stream, timeout, detours, named, name, version, requests: 0, failure: None })
    }

    fn exchange(&mut self, question: &Question<'_>) -> Result<Answer, String> {
        let number = self.requests;
        let mut answer = [0; frames::REPLY];
        let request = frames::request(number, question);
        let sent = match question.moment {
            Moment::Way => self.stream.send(&[&request[..], &frames::ways(question.ways)].concat()),
            _ => self.stream.send(&request),
        };
        let exchanged = sent.and_then(|()| self.stream.receive(&mut answer));
        exchanged
            .map_err(|fault| format!("{} its answer to request {number}", fault.about(self.timeout, "gave", frames::REPLY)))?;
        self.requests += 1;
        frames::reply(number, (question.moment, question.ways), self.detours, &answer)
    }
}

impl Outside for Connection {
    fn ask(&mut self, question: &Question<'_>) -> Option<Answer> {
        if self.failure.is_some() {
            return None;
        }
        match self.exchange(question) {
            Ok(answer) => Some(answer),
            Err(what) => {
                self.failure = Some(format!("{} {what}", self.named));
                self.stream.close();
                None
            }
        }
    }

    fn failure(&self) -> Option<String> {
        self.failure.clone()
    }
}

/// Fault of a connection.
#[cfg_attr(not(unix), allow(dead_code))]
enum Fault {
    /// The block has closed the connection, after so many bytes of a frame.
    Closed(usize),
    /// The block took too long, after so many bytes of a frame.
    Late(usize),
    /// The run no longer waits for the block.
    Interrupted,
    Other(String),
}

impl Fault {
    /// The fault, up to the name of the frame of `size` bytes that the block should have `sent`.
    fn about(&self, timeout: Span, sent: &str, size: usize) -> String {
        match self {
            Fault::Closed(0) => format!("closed the connection before it {sent}"),
            Fault::Closed(n) => format!("closed the connection after {n} of the {size} bytes of"),
            Fault::Late(n) => format!("took longer than {timeout}, the timeout, after {n} of the {size} bytes of"),
            Fault::Interrupted => format!("was silent, and the run was interrupted before it {sent}"),
            Fault::Other(what) => format!("cannot be spoken to ({what}) about"),
        }
    }
}

#[cfg(unix)]
mod stream {
    use super::{Fault, KeepWaiting, OutsideParams};
    use std::io::{self, ErrorKind, Read, Write};
    use std::net::Shutdown;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    /// Longest time between two questions whether to keep waiting.
    const LOOK_EVERY: Duration = Duration::from_millis(100);

    /// A Unix socket at which each piece is waited for in slices of the timeout.
    pub struct Stream {
        socket: UnixStream,
        keep_waiting: KeepWaiting,
        /// Slices of the timeout.
        slices: u32,
    }

    impl Stream {
        pub fn open(params: &OutsideParams, keep_waiting: KeepWaiting) -> Result<Stream, String> {
            let socket = UnixStream::connect(&params.socket).map_err(|error| match error.kind() {
                ErrorKind::NotFound => "is not there: start the block first, which makes this socket".to_string(),
                ErrorKind::ConnectionRefused => "has no listener: the block that made this socket has ended".to_string(),
                _ => format!("cannot be connected to: {error}"),
            })?;
            let timeout = Duration::from_nanos(params.timeout.ps().div_ceil(1000));
            let slices = timeout.as_nanos().div_ceil(LOOK_EVERY.as_nanos()).max(1) as u32;
            let slice = Some(timeout / slices);
            let set = socket.set_read_timeout(slice).and_then(|()| socket.set_write_timeout(slice));
            set.map_err(|error| format!("takes no timeout: {error}"))?;
            Ok(Stream { socket, keep_waiting, slices })
        }

        pub fn send(&mut self, bytes: &[u8]) -> Result<(), Fault> {
            self.exchange(bytes.len(), |socket, done| socket.write(&bytes[done..]))
        }

        pub fn receive(&mut self, bytes: &mut [u8]) -> Result<(), Fault> {
            self.exchange(bytes.len(), |socket, done| socket.read(&mut bytes[done..]))
        }

        /// Moves `size` bytes by `piece`, which is told how many there were.
        #[inline]
        fn exchange(
            &mut self,
            size: usize,
            mut piece: impl FnMut(&mut UnixStream, usize) -> io::Result<usize>,
        ) -> Result<(), Fault> {
            let (mut done, mut silent) = (0, 0);
            while done < size {
                match piece(&mut self.socket, done) {
                    Ok(0) => return Err(Fault::Closed(done)),
                    Ok(n) => (done, silent) = (done + n, 0),
                    Err(error) => match error.kind() {
                        ErrorKind::Interrupted => self.waits()?,
                        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                            self.waits()?;
                            silent += 1;
                            if silent == self.slices {
                                return Err(Fault::Late(done));
                            }
                        }
                        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => return Err(Fault::Closed(done)),
                        _ => return Err(Fault::Other(error.to_string())),
                    },
                }
            }
            Ok(())
        }

        #[cold]
        fn waits(&self) -> Result<(), Fault> {
            if (self.keep_waiting)() {
                Ok(())
            } else {
                Err(Fault::Interrupted)
            }
        }

        pub fn close(&mut self) {
            let _ = self.socket.shutdown(Shutdown::Both); // it may be closed already
        }
    }
}

#[cfg(not(unix))]
mod stream {
    use super::{Fault, KeepWaiting, OutsideParams};

    /// Stands for Unix sockets where there are none: nothing can be opened.
    pub enum Stream {}

    impl Stream {
        pub fn open(_: &OutsideParams, _: KeepWaiting) -> Result<Stream, String> {
            Err("cannot be connected to: there are no Unix sockets here; run it by the command fanin on Linux or macOS"
                .to_string())
        }

        pub fn send(&mut self, _: &[u8]) -> Result<(), Fault> {
            match *self {}
        }

        pub fn receive(&mut self, _: &mut [u8]) -> Result<(), Fault> {
            match *self {}
        }

        pub fn close(&mut self) {}
    }
}

use stream::Stream;
