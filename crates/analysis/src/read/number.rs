//! Numbers as traces write them, exactly: decimal text and columns of a file, to whole base steps (ps, bytes).

/// Why a value is no number that can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberError {
    NotANumber,
    NotFinite,
    Negative,
    TooLarge,
}

impl NumberError {
    /// What a message says of the value.
    pub const fn message(self) -> &'static str {
        match self {
            Self::NotANumber => "is not a number",
            Self::NotFinite => "is not finite",
            Self::Negative => "is negative",
            Self::TooLarge => "is too large",
        }
    }
}

/// Base steps of an absolute time: 10^32 ps are beyond any clock.
pub const LIMIT: u128 = 100_000_000_000_000_000_000_000_000_000_000;

/// Reads decimal text times `scale` base steps, rounded down to a step. Digits are exact; only a number with an exponent goes
/// through floating point.
///
/// # Errors
/// See [`NumberError`].
pub fn from_text(text: &[u8], scale: u64) -> Result<u128, NumberError> {
    if let Some(whole) = whole(text) {
        let steps = u128::from(whole) * u128::from(scale);
        return if steps > LIMIT { Err(NumberError::TooLarge) } else { Ok(steps) };
    }
    let text = text.trim_ascii();
    let (negative, digits) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, text),
    };
    if digits.is_empty() {
        return Err(NumberError::NotANumber);
    }
    let mut whole: u128 = 0;
    let mut fraction: u128 = 0;
    let mut tens: u128 = 1;
    let mut seen = false;
    let mut point = false;
    for &byte in digits {
        match byte {
            b'0'..=b'9' if !point => {
                whole = whole * 10 + u128::from(byte - b'0');
                if whole > LIMIT {
                    return Err(if negative { NumberError::Negative } else { NumberError::TooLarge });
                }
                seen = true;
            }
            // Digits beyond 10^-18 are below a picosecond at any scale.
            b'0'..=b'9' => {
                if tens < 1_000_000_000_000_000_000 {
                    fraction = fraction * 10 + u128::from(byte - b'0');
                    tens *= 10;
                }
                seen = true;
            }
            b'.' if !point => point = true,
            _ => return from_exponent(text, scale),
        }
    }
    if !seen {
        return Err(NumberError::NotANumber);
    }
    if negative && (whole > 0 || fraction > 0) {
        return Err(NumberError::Negative);
    }
    let scale = u128::from(scale);
    let steps = whole.checked_mul(scale).ok_or(NumberError::TooLarge)? + fraction * scale / tens;
    if steps > LIMIT {
        return Err(NumberError::TooLarge);
    }
    Ok(steps)
}

/// A whole number of up to 19 digits: what numbers in a trace mostly are.
#[inline]
fn whole(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 19 {
        return None;
    }
    let mut value = 0;
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = 10 * value + u64::from(digit);
    }
    Some(value)
}

/// `1.5e-3`, `NaN`, `inf`: everything that is a number to floating point.
fn from_exponent(text: &[u8], scale: u64) -> Result<u128, NumberError> {
    let value: f64 = std::str::from_utf8(text).ok().and_then(|t| t.parse().ok()).ok_or(NumberError::NotANumber)?;
    from_float(value, scale)
}

/// A floating-point number times `scale` base steps, rounded to the nearest.
///
/// # Errors
/// See [`NumberError`].
pub fn from_float(value: f64, scale: u64) -> Result<u128, NumberError> {
    let steps = libm::round(value * scale as f64);
    if !value.is_finite() {
        Err(NumberError::NotFinite)
    } else if steps < 0.0 {
        Err(NumberError::Negative)
    } else if steps > LIMIT as f64 {
        Err(NumberError::TooLarge)
    } else {
        Ok(steps as u128)
    }
}

/// A whole number times `scale` base steps.
///
/// # Errors
/// See [`NumberError`].
pub fn from_integer(value: i64, scale: u64) -> Result<u128, NumberError> {
    u128::try_from(value).map(|v| v * u128::from(scale)).map_err(|_| NumberError::Negative)
}

/// A date and time with an offset, such as `2026-11-21T08:00:00.000000001Z`: picoseconds since 1970.
///
/// # Errors
/// `NotANumber` where it is none; `Negative` before 1970.
pub fn from_date(text: &[u8]) -> Result<u128, NumberError> {
    let text = std::str::from_utf8(text.trim_ascii()).map_err(|_| NumberError::NotANumber)?;
    let time = chrono::DateTime::parse_from_rfc3339(text).map_err(|_| NumberError::NotANumber)?;
    let seconds = u128::try_from(time.timestamp()).map_err(|_| NumberError::Negative)?;
    Ok(seconds * 1_000_000_000_000 + u128::from(time.timestamp_subsec_nanos()) * 1_000)
}

/// Whole seconds since 1970 as `2026-11-21T08:00:00Z`.
pub fn date(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|s| chrono::DateTime::from_timestamp(s, 0));
    time.map_or_else(|| format!("{seconds} s"), |t| t.format("%Y-%m-%dT%H:%M:%SZ").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_text_is_exact() {
        let ps = 1_000_000_000_000;
        assert_eq!(from_text(b"1763725651.123456789012", ps), Ok(1_763_725_651_123_456_789_012));
        assert_eq!(from_text(b" 12.5 ", 1_000), Ok(12_500));
        for nines in ["9999999999999999999", "99999999999999999999"] {
            assert_eq!(from_text(nines.as_bytes(), 1_000), Ok(nines.parse::<u128>().unwrap() * 1_000), "{nines}");
        }
        assert_eq!(from_text(b"9999999999999999999", u64::MAX), Err(NumberError::TooLarge));
        assert_eq!(from_text(b"0.0000000000019", ps), Ok(1), "rounded down");
        assert_eq!(from_text(b"+.5", 10), Ok(5));
        assert_eq!(from_text(b"7.", 1), Ok(7));
        assert_eq!(from_text(b"1e-3", ps), Ok(1_000_000_000));
        assert_eq!(from_text(b"-0.0", 1), Ok(0));
    }

    #[test]
    fn what_is_no_number_is_refused_by_kind() {
        use NumberError::{Negative, NotANumber, NotFinite, TooLarge};
        for (text, error) in [
            ("", NotANumber),
            ("-", NotANumber),
            (".", NotANumber),
            ("abc", NotANumber),
            ("1,5", NotANumber),
            ("1.2.3", NotANumber),
            ("0x10", NotANumber),
            ("NaN", NotFinite),
            ("-inf", NotFinite),
            ("-3", Negative),
            ("-1e3", Negative),
            ("1e300", TooLarge),
            ("99999999999999999999999999999999999999999999", TooLarge),
        ] {
            assert_eq!(from_text(text.as_bytes(), 1_000), Err(error), "{text}");
        }
        assert_eq!(from_text(b"99999999999999999999999999999999", u64::MAX), Err(TooLarge));
        assert_eq!(from_float(f64::NAN, 1), Err(NotFinite));
        assert_eq!(from_integer(-1, 1), Err(Negative));
        assert_eq!(from_integer(i64::MAX, u64::MAX), Ok(i64::MAX as u128 * u128::from(u64::MAX)));
    }

    #[test]
    fn dates_are_read_and_written() {
        let second = 1_000_000_000_000;
        assert_eq!(from_date(b"1970-01-01T00:00:00Z"), Ok(0));
        assert_eq!(from_date(b"2000-03-01T00:00:00Z"), Ok(951_868_800 * second));
        assert_eq!(from_date(b"2026-11-21 08:15:30.000000001+01:00"), Ok(1_795_245_330 * second + 1_000));
        assert_eq!(date(1_795_245_330), "2026-11-21T07:15:30Z");
        assert_eq!(date(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(date(4_102_444_799), "2099-12-31T23:59:59Z");
        for text in [
            "",
            "2026-13-01T00:00:00Z",
            "2026-02-30T00:00:00Z",
            "2026-01-01",
            "2026-01-01T00:00:00",
            "2026-01-01T00:00:00.Z",
            "é",
        ] {
            assert_eq!(from_date(text.as_bytes()), Err(NumberError::NotANumber), "{text}");
        }
        assert_eq!(from_date(b"1969-12-31T23:59:59Z"), Err(NumberError::Negative));
        for seconds in (0..4_000_000_000).step_by(86_399 * 37) {
            assert_eq!(from_date(date(seconds).as_bytes()), Ok(u128::from(seconds) * second));
        }
    }
}
