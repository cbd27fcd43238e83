//! Choice of the frames of a capture that are arrivals at one queue: those at one interface in one direction, the busier one.

use crate::capture::connections::{RoundTrips, Talk};
use crate::capture::filter::{port_of, CaptureFilter};
use crate::capture::frame_checks::Sample;
use crate::capture::interface_pair::{Host, Sides};
use crate::capture::links::{name_of_number, Key, Link, Place, NONE};
use crate::capture::selection::{rest, Selection, Stream};
use crate::capture::survey::{outer_receiver, Survey};
use crate::input::problem::{did_you_mean, listed, Problem};
use fanin_wire::{Direction, Frame, Headers, Interface};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Share of the busiest place's bytes below which a place is no port of its own.
const SHARE: f64 = 0.5;
/// Share by which equally busy places differ at most.
const EQUAL: f64 = 0.05;
/// Largest number of hosts that a report names.
const NAMED: usize = 5;
/// Places that a report lists as left out.
const LISTED: usize = 100;
/// A multicast or broadcast MAC address.
const GROUP: u64 = 1 << 40;

/// Side that a frame's flow may go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    /// Incoming, as the capture marks the frame.
    In,
    Out,
    /// To the side of the link to which more bytes go, or to the other.
    Side(bool),
    /// To the receiver that the user asked for.
    Asked,
    /// To any of several receivers that are on no common side.
    Others,
    /// The capture does not show the direction.
    Unknown,
}

/// One interface in one direction, in the making.
#[derive(Clone, Debug)]
struct Point {
    interface: (usize, Option<u32>),
    way: Way,
    packets: u64,
    bytes: u64,
    flows: u64,
    first: i64,
    hosts: BTreeMap<IpAddr, u64>,
    /// Flows of a place, by their numbers in the survey.
    links: Vec<u32>,
    port: Option<usize>,
    why: String,
}

/// Sorting of frames to ports: the point of each flow, and of frames whose flow is not distinguished.
#[derive(Clone, Debug, Default)]
pub struct Sorting {
    /// Port of each flow of the survey.
    ports: Vec<u16>,
    names: Vec<String>,
    /// Port of frames whose direction the capture says, by channel.
    by_channel: Vec<u16>,
    /// Ports of each channel without directions.
    by_side: BTreeMap<u32, TwoSides>,
    filter: CaptureFilter,
}

/// A link whose capture marks no directions: the hosts on each side, and the ports to either side of each group.
#[derive(Clone, Debug)]
struct TwoSides {
    level: Level,
    sides: Sides,
    ports: BTreeMap<(u32, bool), u16>,
}

/// Number that stands for no port.
const OUT: u16 = u16::MAX;

/// Address by which hosts are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Mac,
    Ip,
    Port,
    /// The busiest receiving host is one side, all others the other.
    Receiver(IpAddr),
    /// No frame has a receiver, so there are no sides.
    Nothing,
}

fn hosts(key: &Key, level: Level) -> (Option<Host>, Option<Host>) {
    let addresses = || key.has_ip().then(|| key.addresses());
    match level {
        Level::Mac => {
            let (from, to) = key.macs();
            let mac = |mac: u64| (mac != 0 && mac & GROUP == 0).then_some(Host::Mac(mac));
            (mac(from), mac(to))
        }
        Level::Ip => {
            let ip = |address: IpAddr| (!address.is_multicast() && !address.is_unspecified()).then_some(Host::Ip(address));
            addresses().map_or((None, None), |(from, to)| (ip(from), ip(to)))
        }
        Level::Port => match (addresses(), key.ports()) {
            (Some((from, to)), Some((a, b))) => (Some(Host::Port(from, a)), Some(Host::Port(to, b))),
            _ => (None, None),
        },
        Level::Receiver(_) | Level::Nothing => (None, None),
    }
}

/// The side that a flow goes to.
fn towards(key: &Key, level: Level, sides: &mut Sides) -> Option<(u32, bool)> {
    if let Level::Receiver(host) = level {
        return key.has_ip().then(|| (0, key.addresses().1 != host));
    }
    let (from, to) = hosts(key, level);
    match to.and_then(|to| sides.side(to)) {
        Some(side) => Some(side),
        None => from.and_then(|from| sides.side(from)).map(|(group, side)| (group, !side)),
    }
}

/// The sides of a link, by whatever tells hosts apart without contradiction.
fn sides_of(links: &[&Link<Talk>]) -> (Level, Sides) {
    // Ports divide a host from itself only: between several hosts they tell clients from servers, not sides.
    let within = links.iter().filter(|l| l.key.has_ip()).all(|l| l.key.addresses().0 == l.key.addresses().1);
    let levels: &[Level] = if within { &[Level::Mac, Level::Ip, Level::Port] } else { &[Level::Mac, Level::Ip] };
    for level in levels.iter().copied() {
        let mut sides = Sides::default();
        let mut all = true;
        for link in links {
            match hosts(&link.key, level) {
                (Some(from), Some(to)) => sides.cross(from, to),
                (Some(from), None) => sides.add(from),
                _ => all &= !link.key.has_ip(),
            }
        }
        if !sides.conflict && all {
            return (level, sides);
        }
    }
    let mut receivers: BTreeMap<IpAddr, u64> = BTreeMap::new();
    for link in links.iter().filter(|link| link.key.has_ip()) {
        *receivers.entry(link.key.addresses().1).or_default() += link.bytes;
    }
    let busiest = receivers.into_iter().max_by_key(|(host, bytes)| (*bytes, std::cmp::Reverse(*host)));
    (busiest.map_or(Level::Nothing, |(host, _)| Level::Receiver(host)), Sides::default())
}

impl Sorting {
    /// The port of a flow of the survey; [`NONE`]: not taken.
    #[inline]
    pub fn port(&self, entry: u32) -> u32 {
        wide(self.ports.get(entry as usize).copied().unwrap_or(OUT))
    }

    /// Port of a frame whose flow the survey did not distinguish.
    pub fn port_of_other(&mut self, channel: u32, key: &Key, frame: &Frame<'_>, headers: Option<&Headers>) -> u32 {
        let asked = match headers {
            Some(headers) => {
                let here = self.filter.takes(headers.dst, headers.ports.map(|ports| ports.1));
                here || self.filter.takes_outer(outer_receiver(frame, headers))
            }
            None => self.filter.to.is_empty(),
        };
        if !asked {
            return NONE;
        }
        if let Some(TwoSides { level, sides, ports }) = self.by_side.get_mut(&channel) {
            let side = towards(key, *level, sides);
            return side.and_then(|side| ports.get(&side)).map_or(NONE, |port| wide(*port));
        }
        wide(self.by_channel.get(channel as usize).copied().unwrap_or(OUT))
    }

    /// Names of the ports.
    pub fn names(&self) -> &[String] {
        &self.names
    }
}

fn wide(port: u16) -> u32 {
    if port == OUT {
        NONE
    } else {
        u32::from(port)
    }
}

/// Sorts the frames of a survey to ports.
///
/// # Errors
/// What is asked for is not in the capture.
pub fn sort(
    (survey, rtts): (&Survey, &RoundTrips),
    interfaces: &[Interface],
    stem: &str,
    filter: &CaptureFilter,
) -> Result<(Sorting, Selection, Vec<String>), Vec<Problem>> {
    let mut choice = Choice {
        survey,
        rtts,
        interfaces,
        stem,
        filter,
        points: Vec::new(),
        index: BTreeMap::new(),
        of_link: vec![None; survey.links.links.len()],
        sorting: Sorting { filter: filter.clone(), ..Sorting::default() },
        notes: Vec::new(),
        not_asked: (0, 0, 0),
    };
    choice.check()?;
    choice.gather();
    choice.choose();
    Ok(choice.finish())
}

struct Choice<'a> {
    survey: &'a Survey,
    rtts: &'a RoundTrips,
    interfaces: &'a [Interface],
    stem: &'a str,
    filter: &'a CaptureFilter,
    points: Vec<Point>,
    /// Points by the name of their interface.
    index: BTreeMap<(String, Way), usize>,
    /// Point of each flow.
    of_link: Vec<Option<usize>>,
    sorting: Sorting,
    notes: Vec<String>,
    /// Packets, bytes and flows that are not asked for.
    not_asked: (u64, u64, u64),
}

impl Choice<'_> {
    fn name(&self, interface: (usize, Option<u32>)) -> Option<String> {
        let known = self.interfaces.get(interface.0).map(|i| i.name.as_str()).filter(|name| !name.is_empty());
        match (interface.1, known) {
            (Some(number), _) => Some(name_of_number(number)),
            (None, Some(name)) => Some(name.to_string()),
            // By its place in the file, as merged captures have them.
            (None, None) => (self.interfaces.len() > 1).then(|| format!("#{}", interface.0)),
        }
    }

    /// Checks that the wanted frames are in the capture.
    fn check(&self) -> Result<(), Vec<Problem>> {
        let mut problems = Vec::new();
        let places = &self.survey.links.places;
        let there: BTreeSet<String> = places.iter().filter_map(|place| self.name(place.anyway())).collect();
        let ways = |place: &Place| Some(port_of(&self.name(place.anyway())?, place.direction()?));
        let ports: BTreeSet<String> = places.iter().filter_map(ways).collect();
        for interface in &self.filter.interfaces {
            if !there.contains(interface) && !ports.contains(interface) && !places.is_empty() {
                let problem = Problem::new("is no interface of this capture").column("interface").value(interface);
                let names = || there.iter().map(String::as_str);
                problems.push(if there.is_empty() {
                    problem.suggestion("it names none, and was taken at one interface: leave --interface out")
                } else {
                    problem.accepted(listed(names())).maybe(did_you_mean(interface, names()))
                });
            }
        }
        if self.filter.direction.is_some() && !places.is_empty() && places.iter().all(|place| place.direction().is_none()) {
            let problem = Problem::new("cannot be told: this capture does not say which way frames went").column("direction");
            problems.push(problem.suggestion("name the receiver: --to HOST; captures of 'tcpdump -i any' say the direction"));
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems)
        }
    }

    fn point(&mut self, interface: (usize, Option<u32>), way: Way) -> usize {
        // A name stands for one interface, in however many sections it is described.
        let name = self.name(interface).unwrap_or_else(|| format!("\0{}", interface.0));
        let points = &mut self.points;
        *self.index.entry((name, way)).or_insert_with(|| {
            let hosts = BTreeMap::new();
            let (links, why) = (Vec::new(), String::new());
            points.push(Point { interface, way, packets: 0, bytes: 0, flows: 0, first: i64::MAX, hosts, links, port: None, why });
            points.len() - 1
        })
    }

    fn wanted(&self, place: Place) -> bool {
        let named = self.name(place.anyway());
        self.filter.takes_interface(named.as_deref(), place.direction())
            && (self.filter.direction.is_none() || place.direction() == self.filter.direction)
    }

    /// Puts each flow to its point.
    fn gather(&mut self) {
        let links = &self.survey.links;
        let mut undirected: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        let mut points: Vec<Option<usize>> = vec![None; links.places.len()];
        for (index, link) in links.links.iter().enumerate() {
            let channel = link.key.channel();
            let place = links.places[channel as usize];
            let receiver = link.key.has_ip().then(|| link.key.addresses().1);
            let asked = match receiver {
                Some(receiver) => {
                    self.filter.takes(receiver, link.key.ports().map(|ports| ports.1)) || self.filter.takes_outer(link.more.outer)
                }
                None => self.filter.to.is_empty(),
            };
            if !asked || !self.wanted(place) {
                self.not_asked.0 += link.packets;
                self.not_asked.1 += link.bytes;
                self.not_asked.2 += u64::from(link.key.has_ip());
                continue;
            }
            let way = match place.direction() {
                Some(Direction::In) => Way::In,
                Some(Direction::Out) => Way::Out,
                None if !self.filter.to.is_empty() => Way::Asked,
                None => {
                    undirected.entry(channel).or_default().push(index);
                    continue;
                }
            };
            let point = match points[channel as usize] {
                Some(point) => point,
                None => self.point(place.anyway(), way),
            };
            points[channel as usize] = Some(point);
            self.of_link[index] = Some(point);
        }
        for (channel, members) in undirected {
            self.two_sides(channel, &members);
        }
        for (index, link) in links.links.iter().enumerate() {
            let Some(point) = self.of_link[index] else { continue };
            let point = &mut self.points[point];
            point.packets += link.packets;
            point.bytes += link.bytes;
            point.first = point.first.min(link.more.first);
            point.links.push(index as u32);
            if link.key.has_ip() {
                point.flows += 1;
                *point.hosts.entry(link.key.addresses().1).or_default() += link.bytes;
            }
        }
        for (channel, (packets, bytes)) in self.survey.others.iter().enumerate() {
            if let Some(point) = points.get(channel).copied().flatten().filter(|_| self.filter.to.is_empty()) {
                self.points[point].packets += packets;
                self.points[point].bytes += bytes;
            }
        }
        self.sorting.by_channel = vec![OUT; links.places.len()];
        for (channel, point) in points.into_iter().enumerate() {
            // For now the point; its port when it is known.
            self.sorting.by_channel[channel] = point.map_or(OUT, |point| point as u16);
        }
    }

    /// Finds the direction of frames at an interface whose capture does not mark it.
    fn two_sides(&mut self, channel: u32, members: &[usize]) {
        let links = &self.survey.links;
        let interface = links.places[channel as usize].anyway();
        let of: Vec<&Link<Talk>> = members.iter().map(|index| &links.links[*index]).collect();
        let (level, mut sides) = sides_of(&of);
        // By group of hosts: bytes to either side.
        let mut groups: BTreeMap<u32, [u64; 2]> = BTreeMap::new();
        for link in &of {
            if let Some((group, side)) = towards(&link.key, level, &mut sides) {
                groups.entry(group).or_default()[usize::from(side)] += link.bytes;
            }
        }
        let busier = |group: u32| groups.get(&group).is_some_and(|bytes| bytes[1] > bytes[0]);
        let (mut ports, mut points) = (BTreeMap::new(), BTreeMap::new());
        for (link, index) in of.iter().zip(members) {
            let way = match towards(&link.key, level, &mut sides) {
                Some((_, true)) if matches!(level, Level::Receiver(_)) => Way::Others,
                Some((_, false)) if matches!(level, Level::Receiver(_)) => Way::Side(true),
                Some((group, side)) => Way::Side(side == busier(group)),
                None => Way::Unknown,
            };
            let point = *points.entry(way).or_insert_with(|| self.point(interface, way));
            self.of_link[*index] = Some(point);
            if let Some(side) = towards(&link.key, level, &mut sides) {
                ports.insert(side, point as u16);
            }
        }
        let place = self.name(interface).map_or(String::new(), |name| format!("{name}: "));
        if let Level::Receiver(host) = level {
            self.notes.push(format!(
                "{place}frames between its hosts do not pass from one side to another, as on a mirror of several ports: only what goes to the busiest receiver, {host}, is taken as one queue; --to names another"
            ));
        }
        let both = groups.values().filter(|bytes| bytes[0] > 0 && bytes[1] > 0).count();
        if both > 1 {
            self.notes.push(format!(
                "{place}{both} groups of hosts exchange nothing with each other, and the capture does not say on which side they are: the busier direction of each is taken as one queue; --to names the receivers"
            ));
        }
        self.sorting.by_side.insert(channel, TwoSides { level, sides, ports });
    }

    /// The flows of a point.
    fn links_of(&self, point: usize) -> impl Iterator<Item = &Link<Talk>> + '_ {
        self.points[point].links.iter().map(|index| &self.survey.links.links[*index as usize])
    }

    /// Share of a point's bytes in flows whose packets were taken elsewhere. A flow that is spread over several interfaces has
    /// other packets at each.
    fn shared(&self, point: usize, taken: &BTreeMap<Key, Vec<Sample>>) -> f64 {
        let is_same = |link: &&Link<Talk>| {
            let there = taken.get(&link.key.unwrapped());
            there.is_some_and(|samples| samples.iter().any(|sample| sample.shares(&link.more.sample)))
        };
        let same: u64 = self.links_of(point).filter(is_same).map(|link| link.bytes).sum();
        same as f64 / self.points[point].bytes.max(1) as f64
    }

    /// True if most of a point's bytes are in the other direction of flows that were taken.
    fn answers(&self, point: usize, taken: &BTreeMap<Key, Vec<Sample>>) -> bool {
        let answers = self.links_of(point).filter(|link| taken.contains_key(&link.key.reverse().unwrapped()));
        let bytes: u64 = answers.map(|link| link.bytes).sum();
        bytes as f64 > self.points[point].bytes as f64 * SHARE
    }

    /// Decides which points are ports.
    fn choose(&mut self) {
        let all = self.points.len();
        let known = self.points.iter().any(|p| !matches!(p.way, Way::Unknown | Way::Others));
        // Where nothing is known of any frame, all are taken.
        let may = |p: &Point| !matches!(p.way, Way::Unknown | Way::Others) || !known;
        let most = self.points.iter().filter(|p| may(p)).map(|p| p.bytes).max().unwrap_or(0);
        let preference = |p: &Point| match p.way {
            Way::In | Way::Asked => 0,
            Way::Side(true) => 1,
            Way::Out => 2,
            Way::Side(false) | Way::Others | Way::Unknown => 3,
        };
        let near = |p: &Point| may(p) && p.bytes as f64 >= most as f64 * (1.0 - EQUAL);
        let rank = |i: &usize| (preference(&self.points[*i]), self.points[*i].first, *i);
        let Some(first) = (0..all).filter(|i| near(&self.points[*i])).min_by_key(rank) else { return };
        let (way, interface) = (self.points[first].way, self.points[first].interface);
        let mut order: Vec<usize> = (0..all).filter(|i| *i != first && may(&self.points[*i])).collect();
        // Where frames go the same way as at the busiest, first.
        order.sort_by_key(|i| (self.points[*i].way != way, std::cmp::Reverse(self.points[*i].bytes), *i));
        order.insert(0, first);
        let total: u64 = self.points.iter().map(|p| p.bytes).sum();
        let mut taken: BTreeMap<Key, Vec<Sample>> = BTreeMap::new();
        let mut ports = 0;
        for index in order {
            let Point { bytes, interface: at, .. } = self.points[index];
            let rank = |p: &Point| (p.bytes, p.way == way);
            let mut here = self.points.iter().filter(|p| p.interface == at);
            let asked = !self.filter.interfaces.is_empty() && !here.any(|p| rank(p) > rank(&self.points[index]));
            let enough = bytes as f64 >= most as f64 * SHARE;
            let shared = if index == first { 0.0 } else { self.shared(index, &taken) };
            let mine = index == first || asked || (enough && shared < SHARE);
            let percent = 100.0 * bytes as f64 / total.max(1) as f64;
            self.points[index].why = match (mine, shared >= SHARE, at == interface) {
                (true, ..) if all == 1 && self.not_asked.0 == 0 => "everything".into(),
                (true, ..) if index == first => format!("the busiest, {percent:.0} % of the bytes"),
                (true, ..) if asked => "asked for".into(),
                (true, _, true) => "the other direction, with at least half as many bytes: a queue of its own".into(),
                (true, _, false) => "other packets, with at least half as many bytes: a queue of its own".into(),
                (false, true, _) => "the same packets at another interface".into(),
                (false, _, true) => "the other direction".into(),
                (false, ..) if self.answers(index, &taken) => "the other direction".into(),
                (false, _, false) => "less than half as many bytes".into(),
            };
            if mine {
                self.points[index].port = Some(ports);
                ports += 1;
                for link in self.links_of(index) {
                    taken.entry(link.key.unwrapped()).or_default().push(link.more.sample);
                }
            }
        }
    }

    fn stream(&self, point: &Point, port: Option<String>) -> Stream {
        let mut hosts: Vec<(&IpAddr, &u64)> = point.hosts.iter().collect();
        hosts.sort_by_key(|(host, bytes)| (std::cmp::Reverse(**bytes), **host));
        let direction = match point.way {
            Way::In => Some("in"),
            Way::Out => Some("out"),
            _ => None,
        };
        let links = point.links.iter().map(|index| &self.survey.links.links[*index as usize]).filter(|link| link.more.tcp);
        let rtts: Vec<u64> = links.filter_map(|link| self.rtts.between(link.key.addresses())).collect();
        Stream {
            port,
            interface: self.name(point.interface),
            direction,
            to: hosts.iter().take(NAMED).map(|(host, _)| host.to_string()).collect(),
            hosts: hosts.len(),
            packets: point.packets,
            bytes: point.bytes,
            flows: point.flows,
            round_trips: rtts.len() as u64,
            rtt_low_ps: rtts.iter().min().copied(),
            rtt_high_ps: rtts.iter().max().copied(),
            why: match point.way {
                Way::Unknown if point.why.is_empty() => "frames without a receiver".into(),
                Way::Others => "to other receivers".into(),
                _ => point.why.clone(),
            },
        }
    }

    fn finish(mut self) -> (Sorting, Selection, Vec<String>) {
        let whole = self.points.len() == 1 && self.not_asked.0 == 0;
        let mut streams = Vec::new();
        let mut left_out = Vec::new();
        let mut names = vec![String::new(); self.points.iter().filter(|p| p.port.is_some()).count()];
        for point in &self.points {
            let Some(port) = point.port else {
                left_out.push(self.stream(point, None));
                continue;
            };
            let place = self.name(point.interface).unwrap_or_else(|| self.stem.to_string());
            let name = match point.way {
                Way::In => port_of(&place, Direction::In),
                Way::Out => port_of(&place, Direction::Out),
                Way::Asked => {
                    let to: Vec<String> = self.filter.to.iter().map(ToString::to_string).collect();
                    format!("{place} to {}", listed(to.iter().map(String::as_str)))
                }
                _ if whole => place,
                _ => match (point.hosts.keys().next(), point.hosts.len()) {
                    (Some(host), 1) => format!("{place} to {host}"),
                    (_, hosts) => format!("{place} to {hosts} hosts"),
                },
            };
            names[port] = name.clone();
            streams.push((port, self.stream(point, Some(name))));
        }
        // Two sides of as many hosts have the same name.
        for index in 1..names.len() {
            if names[..index].contains(&names[index]) {
                names[index].push_str(" on the other side");
                if let Some((_, stream)) = streams.iter_mut().find(|(port, _)| *port == index) {
                    stream.port = Some(names[index].clone());
                }
            }
        }
        streams.sort_by_key(|(port, _)| *port);
        let (packets, bytes, flows) = self.not_asked;
        if packets > 0 {
            left_out.push(rest((packets, bytes, flows), "not asked for".into()));
        }
        left_out.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.interface.cmp(&b.interface)));
        if left_out.len() > LISTED {
            let more = left_out.split_off(LISTED - 1);
            let sum = |of: fn(&Stream) -> u64| more.iter().map(of).sum();
            let counts = (sum(|s| s.packets), sum(|s| s.bytes), sum(|s| s.flows));
            left_out.push(rest(counts, format!("{} more interfaces and directions", more.len())));
        }
        let port_of = |point: usize| self.points.get(point).and_then(|p| p.port).map_or(OUT, |port| port as u16);
        self.sorting.ports = self.of_link.iter().map(|point| point.map_or(OUT, port_of)).collect();
        for port in &mut self.sorting.by_channel {
            *port = port_of(usize::from(*port));
        }
        for link in self.sorting.by_side.values_mut() {
            link.ports.values_mut().for_each(|port| *port = port_of(usize::from(*port)));
        }
        self.sorting.names = names;
        (self.sorting, Selection { streams: streams.into_iter().map(|(_, stream)| stream).collect(), left_out }, self.notes)
    }
}
