//! What the translations of packetdrill's scripts start from: google/packetdrill, `gtests/net/common/defaults.sh`, as far as it is
//! about TCP: CUBIC, SACK, F-RTO, RACK and TLP, no ECN, no slow start after idle; peers without timestamps.
//!
//! Differences that all scripts share: a burst leaves as segments here, which packetdrill shows as one packet; sequence numbers
//! and options are the same. Times that packetdrill takes with a tolerance of 4 ms and more stand here exactly.

use super::script::run_as;
use fanin_params::{Cx, Param, Value};
use fanin_transport::cc::CongestionControl;
use fanin_transport::*;

/// The `linux` profile as those defaults have it.
pub fn linux() -> Tcp {
    let cubic = cc::Cubic::parse(&Value::Table(Vec::new()).into(), &mut Cx::new()).expect("all keys have defaults");
    Tcp { timestamps: false, idle_restart: IdleRestart::None, ..Tcp::new(Profile::Linux, CongestionControl::Cubic(cubic)) }
}

/// Runs `text` at a server whose client has opened the connection with an MSS of 1000, SACK, and this RTT \[s\].
///
/// Besides the language of scripts, `> A:B` with more than `mss` bytes stands for the segments of a burst.
pub fn server(cfg: &Tcp, rtt: f64, text: &str) -> TcpEndpoint {
    server_with(cfg, rtt, "mss 1000 sackok wscale 7", 1000, text)
}

/// The same with these options in the SYN, and their MSS.
pub fn server_with(cfg: &Tcp, rtt: f64, options: &str, mss: u32, text: &str) -> TcpEndpoint {
    let open = format!("+0 < S 0 win 32792 {options}\n+0 > S. 0 ack 1 mss 1460\n+{rtt} < . 1 ack 1\n");
    run_as(cfg, Role::Responder, &(open + &segments(text, mss)))
}

/// With each burst as its segments.
pub fn segments(text: &str, mss: u32) -> String {
    let mut lines = String::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let range = match words[..] {
            [_, ">", _, range, ..] => range.split_once(':'),
            _ => None,
        };
        let Some((from, to)) = range.map(|(from, to)| (from.parse::<u32>().expect(line), to.parse::<u32>().expect(line))) else {
            lines.push_str(line);
            lines.push('\n');
            continue;
        };
        let rest = words[4..].join(" ");
        let mut time = words[0];
        for start in (from..to).step_by(mss as usize) {
            lines.push_str(&format!("{time} > {} {start}:{} {rest}\n", words[2], to.min(start + mss)));
            time = "+0";
        }
    }
    lines
}
