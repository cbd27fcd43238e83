//! Moments of a trace that a user names: as the time after its time 0, or as a date on its clock.

use super::source::{origin, Source};
use crate::input::number::{date, from_date, DATES};
use crate::input::problem::Failure;
use crate::input::problem::Problem;
use crate::trace::options::Options;
use fanin_units::{Span, Time};
use std::borrow::Cow;

/// Accepted times, for messages.
pub const ACCEPTED: &str = "a time such as 1.5ms, or a date such as 2026-11-21T08:00:00.001Z";

/// A date that the user gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dated {
    /// Picoseconds since 1970.
    ps: u128,
    text: String,
}

impl Dated {
    /// Reads an ISO date; seconds may be left out, and without a zone it is in UTC. None where it is none.
    pub fn read(text: &str) -> Option<Dated> {
        let minutes = || {
            let (minute, rest) = text.trim().split_at_checked(16)?;
            from_date(format!("{minute}:00{rest}").as_bytes()).ok()
        };
        let (ps, _) = from_date(text.as_bytes()).ok().or_else(minutes)?;
        Some(Dated { ps, text: text.to_string() })
    }
}

/// True if a text is meant as a date: `2026-1`, not `2026ms`.
pub fn looks_like_a_date(text: &str) -> bool {
    let text = text.trim().as_bytes();
    text.len() > 5 && text[..4].iter().all(u8::is_ascii_digit) && matches!(text[4], b'-' | b'/') && text[5].is_ascii_digit()
}

/// Problem if the trace is to be read only up to a moment before the search for bursts begins.
pub fn in_order(start: Option<Time>, stop: Option<Time>) -> Option<Problem> {
    let (start, stop) = start.zip(stop).filter(|(start, stop)| stop <= start)?;
    let problem = Problem::new("is not after 'start'").column("stop").value(Span::from_ps(stop.ps()).to_string());
    Some(problem.accepted(format!("more than {}", Span::from_ps(start.ps()))))
}

impl Options {
    /// The options with dates replaced by times of the trace, for which its files are opened.
    pub(super) fn dated(&self) -> Result<Cow<'_, Options>, Failure> {
        let [start, stop] = &self.dates;
        if start.is_none() && stop.is_none() {
            return Ok(Cow::Borrowed(self));
        }
        let sources = self.paths.iter().map(|path| Source::find(&self.place(path), self.columns.as_ref()));
        let Ok(sources) = sources.collect::<Result<Vec<_>, _>>() else {
            // What is wrong with the files is said by those who read them.
            return Ok(Cow::Borrowed(self));
        };
        let origin = origin(&sources);
        let mut problems = Vec::new();
        let mut moment = |key: &str, given: &Option<Dated>| {
            let given = given.as_ref()?;
            let wrong = |message: String, accepted: &str| Problem::new(message).column(key).value(&given.text).accepted(accepted);
            if !DATES.contains(&origin.seconds()) {
                let message = "is a date, and the times of this trace are none";
                problems.push(wrong(message.into(), "a time such as 1.5ms, after time 0 of the trace"));
                return None;
            }
            let zero = origin.range().0;
            if key == "stop" && given.ps <= zero {
                problems.push(wrong("is before the trace begins".into(), &format!("dates after {}", date(origin.seconds()))));
            }
            // Earlier than all of it, or 106 days later: at its beginning, at its end.
            Some(if given.ps <= zero { Time::ZERO } else { origin.time(given.ps).unwrap_or(Time::MAX) })
        };
        let times = (moment("start", start), moment("stop", stop));
        let mut options = self.clone();
        options.settings.from = times.0.or(options.settings.from);
        options.stop = times.1.or(options.stop);
        if problems.is_empty() {
            problems.extend(in_order(options.settings.from, options.stop));
        }
        if problems.is_empty() {
            Ok(Cow::Owned(options))
        } else {
            Err(problems.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_as_the_output_shows_them() {
        let ps = |text: &str| Dated::read(text).map(|dated| dated.ps);
        let noon = 1_795_262_400 * 1_000_000_000_000;
        for text in [
            "2026-11-21T12:00:00Z",
            "2026-11-21T12:00:00.000000000Z",
            "2026-11-21T13:00:00+01:00",
            "2026-11-21 12:00:00",
            "2026-11-21T12:00Z",
            "2026-11-21 07:00-0500",
        ] {
            assert_eq!(ps(text), Some(noon), "{text}");
        }
        assert_eq!(ps("2026-11-21T12:00:00.001511576Z"), Some(noon + 1_511_576_000));
        for text in ["2026-11-31T12:00:00Z", "2026-11-21", "noon", "12:00:00", "", "2026-11-21T12", "2026-11-21T12:00é"] {
            assert_eq!(ps(text), None, "{text}");
        }
        assert!(looks_like_a_date("2026-11-31T12:00:00Z") && looks_like_a_date(" 2026/1"));
        assert!(!looks_like_a_date("2026ms") && !looks_like_a_date("1.5ms") && !looks_like_a_date("-1ms"));
    }
}
