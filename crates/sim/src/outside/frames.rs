//! Frames of co-simulation: docs/dev/cosimulation-protocol.md. Fixed sizes, little-endian, one request and one reply at a time.

use fanin_packet::Kind;
use fanin_switch::{Answer, Moment, OutsideParams, Question, Way};
use fanin_units::Amount;

/// Version of the protocol.
pub const VERSION: u32 = 2;
const MAGIC: [u8; 8] = *b"fanin-co";

/// Sizes of the frames \[bytes\].
pub const HELLO: usize = 512;
pub const PORT: usize = 96;
pub const WELCOME: usize = 96;
pub const REQUEST: usize = 64;
pub const REPLY: usize = 16;
/// A port to which a packet may go, behind the request; before the first of them their number, in as many bytes as half of one.
pub const WAY: usize = 16;

const NAME: usize = 64;

/// A port whose packets a block decides about.
#[derive(Clone, Debug, PartialEq)]
pub struct PortFacts {
    pub number: u32,
    /// True if the block decides about the port's packets; false: they may go there by its decision.
    pub asked: bool,
    /// Wire bytes of each frame besides the frame's own.
    pub overhead: u16,
    pub classes: u8,
    pub rate_bps: u64,
    /// Buffer of the port's own; `None`: shared, or without limit.
    pub buffer: Option<Amount>,
    pub name: String,
}

fn put<const N: usize>(frame: &mut [u8], at: usize, bytes: [u8; N]) {
    frame[at..at + N].copy_from_slice(&bytes);
}

fn get<const N: usize>(frame: &[u8], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&frame[at..at + N]);
    bytes
}

/// Text in a field of zeros; what does not fit is cut off between characters.
fn put_text(field: &mut [u8], text: &str) {
    let mut end = text.len().min(field.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    field[..end].copy_from_slice(&text.as_bytes()[..end]);
}

/// Text in a field of zeros; `None`: what is in it is no such text.
fn get_text(field: &[u8]) -> Option<String> {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    let text = std::str::from_utf8(&field[..end]).ok()?;
    let plain = field[end..].iter().all(|byte| *byte == 0) && !text.chars().any(char::is_control);
    plain.then(|| text.to_string())
}

/// The first frame of a connection and one for each port behind it.
pub fn hello(seed: u64, params: &OutsideParams, ports: &[PortFacts]) -> Vec<u8> {
    let mut all = vec![0; HELLO + PORT * ports.len()];
    put(&mut all, 0, MAGIC);
    put(&mut all, 8, VERSION.to_le_bytes());
    put(&mut all, 12, (ports.len() as u32).to_le_bytes());
    put(&mut all, 16, seed.to_le_bytes());
    all[24] = u8::from(params.departures);
    all[25] = u8::from(params.refusals);
    all[26] = u8::from(params.detours);
    put_text(&mut all[32..HELLO], &params.settings);
    for (port, frame) in ports.iter().zip(all[HELLO..].chunks_exact_mut(PORT)) {
        let (unit, buffer) = match port.buffer {
            None => (0, 0),
            Some(Amount::Bytes(n)) => (1, n),
            Some(Amount::Packets(n)) => (2, n),
            Some(Amount::Cells(n)) => (3, n),
        };
        put(frame, 0, port.number.to_le_bytes());
        put(frame, 4, port.overhead.to_le_bytes());
        frame[6] = port.classes;
        frame[7] = unit;
        put(frame, 8, port.rate_bps.to_le_bytes());
        put(frame, 16, buffer.to_le_bytes());
        frame[24] = u8::from(port.asked);
        put_text(&mut frame[32..32 + NAME], &port.name);
    }
    all
}

/// Name and version of a block, by its answer to [`hello`].
///
/// # Errors
/// When it is no such answer.
pub fn welcome(frame: &[u8; WELCOME]) -> Result<(String, String), String> {
    if frame[..8] != MAGIC {
        return Err(format!("does not speak this protocol: its first bytes are {:02x?}", &frame[..8]));
    }
    let version = u32::from_le_bytes(get(frame, 8));
    if version != VERSION {
        return Err(format!("speaks version {version} of the protocol; accepted: {VERSION}"));
    }
    match (get_text(&frame[16..64]), get_text(&frame[64..96])) {
        (Some(name), Some(version)) if !name.is_empty() => Ok((name, version)),
        _ => Err("gives no name in its first frame, or one that is no text".to_string()),
    }
}

/// The request about a packet.
#[inline]
pub fn request(number: u64, q: &Question<'_>) -> [u8; REQUEST] {
    let (view, p) = (q.view, q.packet);
    let mut frame = [0; REQUEST];
    put(&mut frame, 0, number.to_le_bytes());
    put(&mut frame, 8, view.now.ps().to_le_bytes());
    put(&mut frame, 16, view.free_at.ps().to_le_bytes());
    put(&mut frame, 24, view.queue_bytes.to_le_bytes());
    put(&mut frame, 32, view.queue_packets.to_le_bytes());
    put(&mut frame, 36, q.port.to_le_bytes());
    put(&mut frame, 40, p.flow.0.to_le_bytes());
    put(&mut frame, 44, p.hash.to_le_bytes());
    put(&mut frame, 48, p.src.0.to_le_bytes());
    put(&mut frame, 52, p.dst.0.to_le_bytes());
    put(&mut frame, 56, p.frame.to_le_bytes());
    put(&mut frame, 58, p.payload.to_le_bytes());
    frame[60] = q.moment as u8 | u8::from(q.class.is_some()) << 2 | u8::from(p.kind == Kind::Control) << 3;
    frame[61] = p.ecn as u8;
    frame[62] = q.class.unwrap_or(p.class.0);
    frame[63] = p.ttl;
    frame
}

/// The ways that follow a request about one.
#[cold]
pub fn ways(ways: &[Way]) -> Vec<u8> {
    let mut all = vec![0; WAY / 2 + WAY * ways.len()];
    put(&mut all, 0, (ways.len() as u32).to_le_bytes());
    for (way, frame) in ways.iter().zip(all[WAY / 2..].chunks_exact_mut(WAY)) {
        put(frame, 0, way.port.to_le_bytes());
        frame[4] = u8::from(way.room) | u8::from(way.to_host) << 1 | u8::from(way.back) << 2;
        put(frame, 8, way.queue_bytes.to_le_bytes());
    }
    all
}

/// The port in a reply that names one of the ways.
fn detour(number: u64, ways: &[Way], frame: &[u8; REPLY]) -> Result<Answer, String> {
    let port = u32::from_le_bytes(get(frame, 12));
    if ways.iter().any(|way| way.port == port) {
        return Ok(Answer::Detour(port));
    }
    let accepted: Vec<String> = ways.iter().map(|way| way.port.to_string()).collect();
    Err(format!("sends the packet of request {number} to port {port}; accepted: {}", accepted.join(", ")))
}

/// The decision in a reply to request `number`. `detours`: the block may send packets elsewhere.
///
/// # Errors
/// When it is none.
#[inline]
pub fn reply(number: u64, (moment, ways): (Moment, &[Way]), detours: bool, frame: &[u8; REPLY]) -> Result<Answer, String> {
    let about = u64::from_le_bytes(get(frame, 0));
    if about != number {
        return Err(format!("answered request {about} where {number} was asked"));
    }
    if (frame[8], moment) == (3, Moment::Way) && frame[9..12] == [0; 3] {
        return detour(number, ways, frame);
    }
    if frame[9..].iter().any(|byte| *byte != 0) {
        return Err(format!("answered request {number} with {:02x?} behind the decision, which must be zeros", &frame[9..]));
    }
    match (frame[8], moment) {
        (0, _) => Ok(Answer::Pass),
        (1, Moment::Arrival | Moment::Departure) => Ok(Answer::Mark),
        (2, Moment::Arrival) => Ok(Answer::Drop),
        (3, Moment::Arrival) if detours => Ok(Answer::Elsewhere),
        (3, Moment::Arrival) => Err(format!(
            "detours the packet of request {number}, which it may with detours = true; accepted: 0 (pass), 1 (mark), 2 (drop)"
        )),
        (other, Moment::Way) => {
            Err(format!("answered request {number}, which asks for a way, with decision {other}; accepted: 0 (pass), 3 (detour)"))
        }
        (1, _) => {
            Err(format!("marks in its answer to request {number}, about a packet that is dropped already; accepted: 0 (pass)"))
        }
        (2, Moment::Departure) => {
            Err(format!("drops in its answer to request {number} a packet that is being sent; accepted: 0 (pass), 1 (mark)"))
        }
        (2, _) => Err(format!("drops in its answer to request {number} a packet that is dropped already; accepted: 0 (pass)")),
        (other, _) => Err(format!("answered request {number} with decision {other}; accepted: 0 (pass), 1 (mark), 2 (drop)")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanin_packet::{Ecn, Envelope};
    use fanin_switch::PortView;
    use fanin_units::{BitRate, FlowId, HostId, Span, Time, TrafficClass};

    #[test]
    fn a_request_has_each_field_at_its_place() {
        let view = PortView {
            now: Time::from_ps(0x0102),
            queue_bytes: 0x0304,
            queue_packets: 0x05,
            queue_cells: 0,
            rate: BitRate::from_gbps(100),
            overhead: 20,
            free_at: Time::from_ps(0x0607),
        };
        let packet = Envelope {
            flow: FlowId(0x11),
            src: HostId(0x12),
            dst: HostId(0x13),
            hash: 0x14,
            frame: 1518,
            payload: 1448,
            ecn: Ecn::Ect0,
            class: TrafficClass(3),
            ttl: 62,
            ..Envelope::default()
        };
        let mut q = Question { moment: Moment::Departure, port: 0x21, class: None, view: &view, packet: &packet, ways: &[] };
        let mut expected = Vec::new();
        [0x99u64, 0x0102, 0x0607, 0x0304].iter().for_each(|n| expected.extend(n.to_le_bytes()));
        [5u32, 0x21, 0x11, 0x14, 0x12, 0x13].iter().for_each(|n| expected.extend(n.to_le_bytes()));
        [1518u16, 1448].iter().for_each(|n| expected.extend(n.to_le_bytes()));
        expected.extend([1, 2, 3, 62]);
        assert_eq!(request(0x99, &q).to_vec(), expected);
        q.class = Some(1);
        assert_eq!(request(0x99, &q)[60..], [1 | 4, 2, 1, 62]);
    }

    #[test]
    fn the_first_frame_has_settings_and_ports() {
        let port = PortFacts {
            number: 9,
            asked: true,
            overhead: 20,
            classes: 2,
            rate_bps: 100_000_000_000,
            buffer: Some(Amount::Packets(300)),
            name: "tor0->h1".into(),
        };
        let params = OutsideParams {
            socket: String::new(),
            settings: "k=5".into(),
            block: None,
            departures: true,
            refusals: false,
            detours: true,
            timeout: Span::from_s(1),
        };
        let all = hello(77, &params, std::slice::from_ref(&port));
        assert_eq!(all.len(), 512 + 96);
        assert_eq!(&all[..8], b"fanin-co");
        assert_eq!(all[8..32], [2, 0, 0, 0, 1, 0, 0, 0, 77, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0]);
        assert_eq!(&all[32..36], b"k=5\0");
        let port = &all[512..];
        assert_eq!(port[..8], [9, 0, 0, 0, 20, 0, 2, 2]);
        assert_eq!((u64::from_le_bytes(get(port, 8)), u64::from_le_bytes(get(port, 16))), (100_000_000_000, 300));
        assert_eq!((&port[24..32], &port[32..41]), (&[1, 0, 0, 0, 0, 0, 0, 0][..], &b"tor0->h1\0"[..]));
    }

    #[test]
    fn what_is_no_welcome_is_refused() {
        let mut frame = [0; WELCOME];
        frame[..8].copy_from_slice(&MAGIC);
        frame[8] = 2;
        put_text(&mut frame[16..64], "s-ecn");
        put_text(&mut frame[64..96], "1.0");
        assert_eq!(welcome(&frame), Ok(("s-ecn".into(), "1.0".into())));
        let with = |at: usize, byte: u8| {
            let mut wrong = frame;
            wrong[at] = byte;
            welcome(&wrong).unwrap_err()
        };
        assert!(with(0, b'F').starts_with("does not speak this protocol: its first bytes are [46, 61, "), "{}", with(0, b'F'));
        assert_eq!(with(8, 1), "speaks version 1 of the protocol; accepted: 2");
        for (at, byte) in [(16, 0), (16, 0xFF), (30, b'x'), (17, 7)] {
            assert_eq!(with(at, byte), "gives no name in its first frame, or one that is no text");
        }
    }

    #[test]
    fn replies_decide_or_are_refused() {
        let frame = |number: u64, decision: u8| {
            let mut frame = [0; REPLY];
            put(&mut frame, 0, number.to_le_bytes());
            frame[8] = decision;
            frame
        };
        let decide = |decision, moment| reply(7, (moment, &[]), false, &frame(7, decision)).ok();
        let all = [Answer::Pass, Answer::Mark, Answer::Drop].map(Some);
        assert_eq!([0, 1, 2].map(|d| decide(d, Moment::Arrival)), all);
        assert_eq!([0, 1, 2].map(|d| decide(d, Moment::Departure)), [all[0], all[1], None]);
        assert_eq!([0, 1, 2].map(|d| decide(d, Moment::Refusal)), [all[0], None, None]);
        let error = |number, decision| reply(7, (Moment::Arrival, &[]), false, &frame(number, decision)).unwrap_err();
        assert_eq!(error(6, 0), "answered request 6 where 7 was asked");
        assert_eq!(error(7, 4), "answered request 7 with decision 4; accepted: 0 (pass), 1 (mark), 2 (drop)");
        assert!(error(7, 3).starts_with("detours the packet of request 7, which it may with detours = true; "));
        let mut long = frame(7, 1);
        long[15] = 1;
        assert!(reply(7, (Moment::Arrival, &[]), false, &long).unwrap_err().contains("must be zeros"));
    }

    #[test]
    fn a_way_is_one_of_those_that_follow_the_request() {
        let way = |port, room, back| Way { port, queue_bytes: 0x0708, room, to_host: port == 5, back };
        let all = [way(5, true, false), way(0x0102, false, true)];
        let mut expected = vec![2, 0, 0, 0, 0, 0, 0, 0];
        expected.extend([5, 0, 0, 0, 1 | 2, 0, 0, 0, 8, 7, 0, 0, 0, 0, 0, 0]);
        expected.extend([2, 1, 0, 0, 4, 0, 0, 0, 8, 7, 0, 0, 0, 0, 0, 0]);
        assert_eq!(ways(&all), expected);
        let answer = |decision, port: u32| {
            let mut frame = [0; REPLY];
            put(&mut frame, 0, 7u64.to_le_bytes());
            frame[8] = decision;
            put(&mut frame, 12, port.to_le_bytes());
            reply(7, (Moment::Way, &all), true, &frame)
        };
        assert_eq!(
            [answer(3, 5), answer(3, 0x0102), answer(0, 0)],
            [Ok(Answer::Detour(5)), Ok(Answer::Detour(0x0102)), Ok(Answer::Pass)]
        );
        assert_eq!(answer(3, 9).unwrap_err(), "sends the packet of request 7 to port 9; accepted: 5, 258");
        assert_eq!(
            answer(1, 0).unwrap_err(),
            "answered request 7, which asks for a way, with decision 1; accepted: 0 (pass), 3 (detour)"
        );
        let mut elsewhere = [0; REPLY];
        (elsewhere[0], elsewhere[8]) = (7, 3);
        assert_eq!(reply(7, (Moment::Arrival, &[]), true, &elsewhere), Ok(Answer::Elsewhere));
    }
}
