//! Hint for a port without a burst: the distance to one, and the value of an option that shows the largest queue or busiest
//! window.

use crate::bursts::by_rate::ALIKE;
use crate::bursts::port::{PortAnalyzer, Totals};
use crate::bursts::unseen::nothing_seen;
use crate::display::{percent, rate, size, span};
use crate::{Detect, Nothing, Settings};
use fanin_units::{Bytes, Span, BPS};

/// The value rounded down to its first two digits.
pub(crate) fn two_digits(value: u64) -> u64 {
    let mut unit = 1;
    while value / unit >= 100 {
        unit *= 10;
    }
    value / unit * unit
}

impl PortAnalyzer {
    /// The largest queue or the busiest window of a port without bursts.
    pub(crate) fn nothing(&self, t: &Totals) -> Option<Nothing> {
        match self.settings.detect {
            Detect::Queue { .. } => self.no_queue_burst(t),
            Detect::Rate { share, .. } => self.no_hot_window(share),
        }
    }

    fn no_queue_burst(&self, t: &Totals) -> Option<Nothing> {
        let (queue, at) = t.peak?;
        let found = Nothing {
            at_ps: at,
            queue_bytes: Some(queue),
            window_bytes: None,
            share: None,
            option: None,
            value: None,
            words: String::new(),
        };
        let largest = format!("the largest queue was {} at {}", size(queue as f64), span(at));
        if t.unseen.drops > 0 {
            return Some(Nothing { words: nothing_seen(&t.unseen, &largest), ..found });
        }
        if queue == 0 {
            return Some(Nothing { words: "no burst: every packet found the queue empty".into(), ..found });
        }
        if self.settings.from.is_some_and(|from| at < from.ps()) {
            return Some(Nothing { words: format!("no burst from the time asked for on; before it, {largest}"), ..found });
        }
        if queue > self.above {
            // It stands above from the beginning, or began before the records that count.
            return Some(Nothing { words: format!("no burst, though {largest}"), ..found });
        }
        let value = Bytes(two_digits(queue / 2)).to_string();
        let words =
            format!("no burst: {largest}, and a burst begins above {}; --above {value} shows it", size(self.above as f64));
        Some(Nothing { option: Some("above"), value: Some(value), words, ..found })
    }

    fn no_hot_window(&self, share: f64) -> Option<Nothing> {
        let speed = self.settings.rate?.bps() as f64;
        let window = self.by_rate.as_ref()?;
        let (wire, at) = window.busiest;
        let could = speed / BPS * window.width as f64;
        let busiest = wire as f64 / could;
        let mut found = Nothing {
            at_ps: at,
            queue_bytes: None,
            window_bytes: Some(wire),
            share: Some(busiest),
            option: None,
            value: None,
            words: String::new(),
        };
        // No share makes a burst of it.
        if let Some(steady) = window.steady_load(speed, true).filter(|steady| busiest < steady.share + ALIKE) {
            return Some(Nothing { words: format!("no burst: {}", steady.words), ..found });
        }
        found.words = format!(
            "no burst: the busiest {} (from {} on) brought {}, {} of {}, and a burst needs more than {}",
            span(window.width),
            span(at),
            size(wire as f64),
            percent(busiest),
            rate(speed),
            percent(share)
        );
        // A little less than it, in two digits.
        let value = f64::from((busiest * 95.0) as u32) / 100.0;
        if value > 0.0 {
            found.words.push_str(&format!("; --share {value} shows it"));
            (found.option, found.value) = (Some("share"), Some(value.to_string()));
        }
        Some(found)
    }
}

/// Note on frames so large that a window holds only a few of them.
pub(crate) fn frames_in_window(settings: &Settings, largest: u64) -> Option<String> {
    const FEW: u64 = 4;
    let ((window, _), speed) = settings.window().zip(settings.rate)?;
    let frame = speed.time_to_send(Bytes(largest + settings.overhead.0));
    (largest > 0 && frame.saturating_mul(FEW) > window).then(|| {
        let least = Span::from_ps(frame.ps().saturating_mul(20).div_ceil(10_000_000) * 10_000_000);
        let millisecond = Span::from_ms(1).ps();
        let least = if least.ps() < millisecond { least.to_string() } else { format!("{}ms", least.ps() as f64 / millisecond as f64) };
        format!(
            "a window of {} holds less than {FEW} of the largest frames ({largest} B), so single frames make bursts: --window {least} \
             holds 20 of them",
            span(window.ps())
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_digits_are_kept() {
        assert_eq!([0, 9, 99, 100, 128_561, 1_999_999].map(two_digits), [0, 9, 99, 100, 120_000, 1_900_000]);
    }
}
