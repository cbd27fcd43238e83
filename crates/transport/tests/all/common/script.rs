//! Timed scripts in the manner of packetdrill: what one endpoint is given, and exactly what it must do and when.
//!
//! A line is `+SECONDS what`, the time counted from the line before:
//! ```text
//! +0    write 3000            application calls: write N, close, hold (stop reading), read N
//! +0    > . 1:1001 ack 1      a packet that leaves at this time: flags, [from:to) or a bare number, ack, sack, win, ecn, ts, nack
//! +0.1  < . 1 ack 1001        a packet that arrives: `win` is 65535 unless given; `trimmed`: without its payload; `nots`: without a timestamp
//! +0    > none                nothing has left that was not expected, and nothing can leave now
//! +0    drop 1:1001 op 2      a switch notifies of its drop; operation 1 (retransmit and halve) unless given
//! +0    drop ack 1001         it dropped an acknowledgment of ours without data
//! +0    busy                the NIC takes nothing, until `free`
//! +0    = cwnd 4000           cwnd, ssthresh, phase, state, rto, srtt, timeouts … are so
//! +0    ! Delivered 1000      the next event
//! ```
//! Sequence numbers are relative: SYN is 0, the first byte 1. Flags: S F R P . (ACK) E (ECE) W (CWR); P is not compared.
//! Timers run at their own times; packets that leave before they are expected fail the script.

use fanin_packet::{Ecn, Lost, Nack, Packet, Part, Reference, SackBlock, Signal, SynOptions, TcpFlags, Timestamps};
use fanin_params::Counters;
use fanin_transport::{Connection, Kinds, NotificationCounts, Role, Tcp, TcpEndpoint, Transport};
use fanin_units::{Span, Time};
use std::collections::VecDeque;

/// Initial sequence numbers: both streams wrap within the first kilobytes.
const ISS: u32 = u32::MAX - 2_500;
const IRS: u32 = u32::MAX - 1_000;

pub struct Script<'a> {
    cfg: &'a Tcp,
    pub tcp: TcpEndpoint,
    now: Time,
    left: VecDeque<(Time, Packet)>,
    line: String,
    /// True if the NIC takes nothing.
    busy: bool,
    /// What the last drop notification was counted as.
    outcome: Option<&'static str>,
}

/// Runs `text` against an initiator of a connection that is open (or not, with `handshake`).
pub fn run(cfg: &Tcp, text: &str) -> TcpEndpoint {
    run_as(cfg, Role::Initiator, text)
}

pub fn run_as(cfg: &Tcp, role: Role, text: &str) -> TcpEndpoint {
    let conn = Connection {
        role,
        open: !cfg.handshake,
        iss: ISS,
        irs: IRS,
        ts_offset: 0,
        mtu: cfg.mtu,
        ip: fanin_packet::IpVersion::V4,
    };
    let tcp = TcpEndpoint::new(cfg, conn, Time::ZERO);
    let mut script = Script { cfg, tcp, now: Time::ZERO, left: VecDeque::new(), line: String::new(), busy: false, outcome: None };
    script.drain();
    for line in text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')) {
        script.line = line.to_string();
        script.step(line);
    }
    assert!(script.left.is_empty(), "left at the end: {}", script.describe_all());
    script.tcp
}

impl Script<'_> {
    fn drain(&mut self) {
        let mut p = Packet::default();
        while !self.busy {
            let wanted = self.tcp.due(self.cfg, self.now, Kinds::DATA);
            if self.tcp.poll(self.cfg, self.now, Kinds::CONTROL, &mut p.envelope, &mut p.header) {
                self.left.push_back((self.now, p));
                continue;
            }
            let got = self.tcp.poll(self.cfg, self.now, Kinds::DATA, &mut p.envelope, &mut p.header);
            assert_eq!(wanted, got);
            if !got {
                break;
            }
            self.left.push_back((self.now, p));
        }
    }

    fn advance(&mut self, to: Time) {
        while self.tcp.next_timeout() <= to {
            self.now = self.tcp.next_timeout();
            self.tcp.on_timer(self.cfg, self.now);
            self.drain();
            assert!(self.tcp.next_timeout() > self.now, "{}: a timeout that stays", self.line);
        }
        self.now = to;
    }

    fn step(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        let wait: f64 = words.next().unwrap().strip_prefix('+').expect(line).parse().expect(line);
        let to = self.now + Span::from_secs_f64(wait);
        let words: Vec<&str> = words.collect();
        self.advance(to);
        let number = |i: usize| -> u64 { words[i].parse().expect(line) };
        match words[0] {
            "write" => self.tcp.write(self.cfg, self.now, number(1)),
            "close" => self.tcp.close(self.cfg, self.now),
            "busy" | "free" => self.busy = words[0] == "busy",
            "hold" => self.tcp.hold_reads(true),
            "read" => self.tcp.read(self.cfg, self.now, number(1)),
            "<" => {
                let p = self.arriving(&words[1..]);
                self.tcp.on_packet(self.cfg, self.now, &p.envelope, &p.header);
            }
            "drop" if words[1] == "ack" => {
                let number = IRS.wrapping_add(number(2) as u32);
                let packet = Reference { number, length: 0, part: Part::Acknowledgment };
                self.signal(Signal::Lost(Lost { packet, reduce: false }));
            }
            "drop" => {
                let (from, to) = Self::range(words[1]);
                let operation = words.iter().position(|w| *w == "op").map_or(1, |i| words[i + 1].parse().expect(line));
                let packet = Reference { number: ISS.wrapping_add(from), length: (to - from) as u16, part: Part::Data };
                self.signal(match operation {
                    1 | 2 => Signal::Lost(Lost { packet, reduce: operation == 1 }),
                    _ => Signal::Undefined,
                });
            }
            ">" => return self.expect(&words[1..]),
            "=" => return self.compare(words[1], words[2]),
            "!" => {
                let event = self.tcp.poll_event();
                let shown = event.map_or("none".to_string(), |e| format!("{e:?}"));
                let wanted = words[1..].join(" ");
                let plain: String = shown.replace("{ total: ", "").replace(" }", "").replace(['(', ')'], " ").trim().to_string();
                assert_eq!(plain, wanted, "{line}");
                return;
            }
            other => panic!("{other}: {line}"),
        }
        self.drain();
    }

    fn signal(&mut self, signal: Signal) {
        let before = self.tcp.signals().notifications.values();
        self.tcp.on_signal(self.cfg, self.now, &signal);
        let after = self.tcp.signals().notifications.values();
        let counted = |i: &usize| after[*i] == before[*i] + 1;
        let at: Vec<usize> = (0..after.len()).filter(counted).collect();
        assert_eq!(at.len(), 1, "{}: counted once", self.line);
        self.outcome = Some(NotificationCounts::defs()[at[0]].name);
    }

    fn flags(word: &str) -> TcpFlags {
        word.chars().fold(TcpFlags::NONE, |flags, c| {
            flags.with(match c {
                'S' => TcpFlags::SYN,
                'F' => TcpFlags::FIN,
                'R' => TcpFlags::RST,
                'P' => TcpFlags::PSH,
                '.' => TcpFlags::ACK,
                'E' => TcpFlags::ECE,
                'W' => TcpFlags::CWR,
                '-' => TcpFlags::NONE,
                _ => panic!("flag {c}"),
            })
        })
    }

    fn range(word: &str) -> (u32, u32) {
        let (from, to) = word.split_once(':').unwrap_or((word, word));
        (from.parse().expect(word), to.parse().expect(word))
    }

    fn blocks(word: &str) -> Vec<(u32, u32)> {
        word.split(',').map(Self::range).collect()
    }

    fn arriving(&self, words: &[&str]) -> Packet {
        let mut p = Packet::default();
        let flags = Self::flags(words[0]);
        let (from, to) = Self::range(words[1]);
        let get = |key: &str| words.iter().position(|w| *w == key).map(|i| words[i + 1]);
        let num = |key: &str, default: u32| get(key).map_or(default, |w| w.parse().expect(&self.line));
        let ack = if flags.has(TcpFlags::ACK) { ISS.wrapping_add(num("ack", 1)) } else { 0 };
        let window = num("win", 65_535) as u16;
        let mut s = p.segment_mut();
        s.set(flags, IRS.wrapping_add(from), ack, window, (to - from) as u16);
        if self.cfg.timestamps && !words.contains(&"nots") {
            let (value, echo) = get("ts").map_or((0, 0), |w| {
                let (a, b) = w.split_once(',').expect(&self.line);
                (a.parse().unwrap(), b.parse().unwrap())
            });
            s.set_timestamps(Timestamps { value, echo });
        }
        if flags.has(TcpFlags::SYN) {
            s.set_syn_options(SynOptions {
                mss: num("mss", 1460) as u16,
                window_scale: get("wscale").map(|w| w.parse().unwrap()),
                sack_permitted: words.contains(&"sackok"),
            });
        }
        if let Some((from, to)) = get("nack").map(Self::range) {
            s.set_nack(Nack { seq: ISS.wrapping_add(from), length: (to - from) as u16 });
        }
        if words.contains(&"trimmed") {
            s.envelope.trim(64);
        }
        for (start, end) in get("sack").map(Self::blocks).unwrap_or_default() {
            s.push_sack(SackBlock { start: ISS.wrapping_add(start), end: ISS.wrapping_add(end) });
        }
        s.envelope.ecn = match get("ecn") {
            None => Ecn::NotEct,
            Some("ect") => Ecn::Ect0,
            Some("ce") => Ecn::Ce,
            Some(other) => panic!("{other}"),
        };
        p
    }

    fn expect(&mut self, words: &[&str]) {
        if words == ["none"] {
            assert!(self.left.is_empty(), "{}: {}", self.line, self.describe_all());
            return;
        }
        let (at, p) =
            self.left.pop_front().unwrap_or_else(|| panic!("{} s, {}: nothing left", self.now.as_secs_f64(), self.line));
        let shown = Self::describe(at, &p);
        let (envelope, p) = (p.envelope, *p.header.tcp());
        let say = |what: &str| format!("{} s, {}: {what} differs: {shown}", self.now.as_secs_f64(), self.line);
        assert_eq!(at, self.now, "{}", say("time"));
        let without_push = |f: TcpFlags| f.0 & !TcpFlags::PSH.0;
        assert_eq!(without_push(p.flags), without_push(Self::flags(words[0])), "{}", say("flags"));
        let (from, to) = Self::range(words[1]);
        assert_eq!((p.seq.wrapping_sub(ISS), u32::from(envelope.payload)), (from, to - from), "{}", say("range"));
        let get = |key: &str| words.iter().position(|w| *w == key).map(|i| words[i + 1]);
        if let Some(ack) = get("ack") {
            assert_eq!(p.ack.wrapping_sub(IRS), ack.parse::<u32>().unwrap(), "{}", say("ack"));
        }
        if let Some(win) = get("win") {
            assert_eq!(p.window, win.parse::<u16>().unwrap(), "{}", say("win"));
        }
        if let Some(mss) = get("mss") {
            assert_eq!(p.syn_options().unwrap().mss, mss.parse::<u16>().unwrap(), "{}", say("mss"));
        }
        if let Some(ts) = get("ts") {
            let has = p.timestamps().map_or("none".to_string(), |t| format!("{},{}", t.value, t.echo));
            assert_eq!(has, ts, "{}", say("ts"));
        }
        let sack: Vec<(u32, u32)> =
            p.sack().map(|b| (b.start.wrapping_sub(ISS_OF_PEER), b.end.wrapping_sub(ISS_OF_PEER))).collect();
        assert_eq!(sack, get("sack").map(Self::blocks).unwrap_or_default(), "{}", say("sack"));
        let nack = p.nack().map(|nack| (nack.seq.wrapping_sub(ISS_OF_PEER), u32::from(nack.length)));
        assert_eq!(nack, get("nack").map(Self::range).map(|(from, to)| (from, to - from)), "{}", say("nack"));
        if let Some(ecn) = get("ecn") {
            let has = match envelope.ecn {
                Ecn::NotEct => "not",
                Ecn::Ect0 | Ecn::Ect1 => "ect",
                Ecn::Ce => "ce",
            };
            assert_eq!(has, ecn, "{}", say("ecn"));
        }
    }

    fn describe(at: Time, p: &Packet) -> String {
        let (envelope, p) = (p.envelope, p.header.tcp());
        let from = p.seq.wrapping_sub(ISS);
        format!(
            "[{} s: flags {:#04x} {}:{} ack {} win {} {:?}]",
            at.as_secs_f64(),
            p.flags.0,
            from,
            from + u32::from(envelope.payload),
            p.ack.wrapping_sub(IRS),
            p.window,
            envelope.ecn
        )
    }

    fn describe_all(&self) -> String {
        self.left.iter().map(|(at, p)| Self::describe(*at, p)).collect::<Vec<_>>().join(" ")
    }

    fn compare(&self, what: &str, wanted: &str) {
        let t = &self.tcp;
        let stats = t.stats();
        let seconds = |s: Span| format!("{}", s.as_secs_f64());
        let is = match what {
            "cwnd" => t.cwnd().to_string(),
            "ssthresh" => t.ssthresh().to_string(),
            "inflight" => t.inflight().to_string(),
            "pipe" => t.pipe().to_string(),
            "mss" => t.mss().to_string(),
            "phase" => format!("{:?}", t.phase()),
            "state" => format!("{:?}", t.state()),
            "rto" => seconds(t.rto()),
            "srtt" => seconds(t.srtt()),
            "alpha" => format!("{}", t.alpha().unwrap()),
            "timeouts" => stats.timeouts.to_string(),
            "retransmits" => stats.retransmits.to_string(),
            "recoveries" => stats.recoveries.to_string(),
            "spurious" => stats.spurious_rtos.to_string(),
            "reductions" => stats.ecn_reductions.to_string(),
            "outcome" => self.outcome.unwrap().to_string(),
            "notices" => stats.notices.to_string(),
            "cuts" => stats.notice_reductions.to_string(),
            "dupacks" => stats.dup_acks.to_string(),
            "marked" => stats.marked.to_string(),
            "probes" => stats.window_probes.to_string(),
            "tail_probes" => t.rack_counts().tail_probes.to_string(),
            "undos" => t.rack_counts().undos.to_string(),
            "lost_retransmits" => t.rack_counts().lost_retransmits.to_string(),
            "acked" => stats.acked.to_string(),
            "delivered" => stats.delivered.to_string(),
            other => panic!("{other}"),
        };
        assert_eq!(is, wanted, "{} s, {}", self.now.as_secs_f64(), self.line);
    }
}

/// SACK blocks that leave speak of the other end's stream.
const ISS_OF_PEER: u32 = IRS;
