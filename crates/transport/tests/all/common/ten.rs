//! What the scripts of loss and of timeouts start from: ten segments in flight.

use super::script::run;
use fanin_transport::cc::{CongestionControl, NewReno};
use fanin_transport::*;
use fanin_units::{Bytes, Span};

/// NewReno with segments of 1000 bytes, no timestamps, an initial window of 10, RTO_min 200 ms, an ACK for each segment.
pub fn base() -> Tcp {
    let mut cfg = Tcp::new(Profile::Rfc, CongestionControl::NewReno(NewReno {}));
    cfg.handshake = false;
    cfg.mss = Some(1000);
    cfg.timestamps = false;
    cfg.initial_window = Some(10);
    cfg.rto_min = Span::from_ms(200);
    cfg.ack_every = 1;
    cfg.receive_window = ReceiveWindow::Fixed(FixedWindow { size: Bytes(65_535) });
    cfg
}

/// The same without SACK.
pub fn no_sack() -> Tcp {
    Tcp { sack: false, ..base() }
}

/// Recovery as the `linux` profile has it.
pub fn rack() -> Tcp {
    Tcp {
        loss_detection: LossDetection::Rack,
        window_rules: WindowRules::Linux,
        rtt_sampling: RttSampling::EveryAck,
        rto_floor: RtoFloor::Variance,
        backoff_reset: BackoffReset::Ack,
        spurious_rto: SpuriousRto::FRto,
        slow_start_limit: 65_535,
        timer_slack: Span::from_ms(2),
        prr: true,
        ..base()
    }
}

const TEN: &str = "
    +0 > . 1:1001
    +0 > . 1001:2001
    +0 > . 2001:3001
    +0 > . 3001:4001
    +0 > . 4001:5001
    +0 > . 5001:6001
    +0 > . 6001:7001
    +0 > . 7001:8001
    +0 > . 8001:9001
    +0 > . 9001:10001
";

/// Writes `write` bytes, sees ten segments leave and no more, then runs `rest`.
pub fn after_ten(cfg: &Tcp, write: u64, rest: &str) -> TcpEndpoint {
    run(cfg, &format!("+0 write {write}\n{TEN}\n+0 > none\n{rest}"))
}
