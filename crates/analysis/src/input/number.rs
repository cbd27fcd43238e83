//! Numbers as traces write them, exactly: decimal text and columns of a file, to whole base steps (ps, bytes).

use jiff::civil::{Date, Time};
use jiff::SignedDuration;

/// The day from which dates count.
const EPOCH: Date = Date::constant(1970, 1, 1);

/// Seconds since 1970 that are dates of a network; others count from when a device was switched on. Years 2001 to 2100.
pub const DATES: std::ops::Range<u64> = 978_307_200..4_102_444_800;

/// Messages about times that a trace cannot have, as its first record has another one.
pub const OUTSIDE: [&str; 2] =
    ["is before the start of the trace, or negative", "is more than 106 days after the start of the trace"];

/// Reason for which a value is no number that can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberError {
    NotANumber,
    NotFinite,
    Negative,
    TooLarge,
}

impl NumberError {
    /// Message about the value.
    pub const fn message(self) -> &'static str {
        match self {
            Self::NotANumber => "is not a number",
            Self::NotFinite => "is not finite",
            Self::Negative => "is negative",
            Self::TooLarge => "is too large",
        }
    }
}

/// Advice on a number with a comma in it: the last separator, if it stands alone, is that of the decimals, or of thousands where it
/// is a comma with three digits behind it.
pub fn decimal_comma(text: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(text).ok()?.trim();
    let parts: Vec<&str> = text.strip_prefix(['-', '+']).unwrap_or(text).split([',', '.']).collect();
    if !text.contains(',') || parts.iter().any(|part| part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit())) {
        return None;
    }
    let last = text.rfind([',', '.'])?;
    let decimals = text.matches(&text[last..=last]).count() == 1;
    let whole: String = text[..last].chars().filter(|c| !matches!(c, ',' | '.')).collect();
    let shown = format!("{whole}{}{}", if decimals { "." } else { "" }, &text[last + 1..]);
    let either = decimals && &text[last..=last] == "," && text.len() - last == 4 && !text[..last].contains('.');
    let either = if either { format!(" for decimals, {whole}{} for thousands", &text[last + 1..]) } else { String::new() };
    Some(format!("numbers have a decimal point, and nothing between thousands: write {shown}{either}"))
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

/// A whole number of up to 19 digits, as most numbers in a trace are.
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

/// `1.5e-3`, `1.795372415311008235e9`: the point is moved, so that the digits stay exact. `NaN`, `inf` are numbers to floating point only.
#[cold]
fn from_exponent(text: &[u8], scale: u64) -> Result<u128, NumberError> {
    let Some(at) = text.iter().position(|b| matches!(b, b'e' | b'E')).filter(|_| text.iter().any(u8::is_ascii_digit)) else {
        let value: f64 = std::str::from_utf8(text).ok().and_then(|t| t.parse().ok()).ok_or(NumberError::NotANumber)?;
        return from_float(value, scale);
    };
    let (digits, power) = (&text[..at], std::str::from_utf8(&text[at + 1..]).map_err(|_| NumberError::NotANumber)?);
    let (sign, digits) = match digits.split_first() {
        Some((sign @ (b'-' | b'+'), rest)) => (Some(*sign), rest),
        _ => (None, digits),
    };
    let (whole, fraction) = match digits.iter().position(|b| *b == b'.') {
        Some(point) => (&digits[..point], &digits[point + 1..]),
        None => (digits, &digits[..0]),
    };
    let all = [whole, fraction].concat();
    let power: i32 = power.parse().map_err(|_| NumberError::NotANumber)?;
    if all.is_empty() || !all.iter().all(u8::is_ascii_digit) {
        return Err(NumberError::NotANumber);
    }
    // Further than this everything is zero, or too large.
    let point = whole.len() as i64 + i64::from(power.clamp(-400, 400));
    let mut moved: Vec<u8> = sign.into_iter().collect();
    moved.extend((0..point).map(|i| all.get(i as usize).copied().unwrap_or(b'0')));
    moved.push(b'.');
    moved.extend((point..0).map(|_| b'0'));
    moved.extend(all.iter().skip(usize::try_from(point).unwrap_or(0)));
    from_text(&moved, scale)
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

/// A date and time: `2026-11-21T08:00:00.000000001Z`, with a space in place of the T, a comma in place of the point, an offset
/// (`+01:00`, `+0100`, `+01`), or without one, which is taken as UTC.
///
/// Gives picoseconds since 1970, and whether a zone was given.
///
/// Source: RFC 3339 §5.6. Deviation: a comma, a missing zone, and offsets without a colon, as ISO 8601 has them.
///
/// # Errors
/// `NotANumber` where it is none; `Negative` before 1970.
pub fn from_date(text: &[u8]) -> Result<(u128, bool), NumberError> {
    let mut rest = text.trim_ascii();
    let year = digits::<4>(&mut rest)?;
    let between = one_of(&mut rest, b"-/")?;
    let month = digits::<2>(&mut rest)?;
    one_of(&mut rest, &[between])?;
    let day = digits::<2>(&mut rest)?;
    one_of(&mut rest, b"Tt ")?;
    rest = rest.trim_ascii_start();
    let hour = digits::<2>(&mut rest)?;
    one_of(&mut rest, b":")?;
    let minute = digits::<2>(&mut rest)?;
    one_of(&mut rest, b":")?;
    let second = digits::<2>(&mut rest)?;
    let mut ps = 0;
    if one_of(&mut rest, b".,").is_ok() {
        let length = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        if length == 0 {
            return Err(NumberError::NotANumber);
        }
        let (fraction, behind) = rest.split_at(length);
        ps = (0..12).fold(0, |ps, i| 10 * ps + u128::from(fraction.get(i).map_or(0, |b| b - b'0')));
        rest = behind;
    }
    let offset = zone(rest.trim_ascii_start())?;
    let date = Date::new(year as i16, month as i8, day as i8).map_err(|_| NumberError::NotANumber)?;
    // A minute may have a leap second.
    if hour > 23 || minute > 59 || second > 60 {
        return Err(NumberError::NotANumber);
    }
    let days = date.duration_since(EPOCH).as_secs();
    let seconds = days + 3_600 * hour + 60 * minute + second - offset.unwrap_or(0);
    let seconds = u128::try_from(seconds).map_err(|_| NumberError::Negative)?;
    Ok((seconds * 1_000_000_000_000 + ps, offset.is_some()))
}

fn digits<const N: usize>(rest: &mut &[u8]) -> Result<i64, NumberError> {
    let (digits, behind) = rest.split_first_chunk::<N>().ok_or(NumberError::NotANumber)?;
    *rest = behind;
    digits
        .iter()
        .try_fold(0, |value, b| b.is_ascii_digit().then(|| 10 * value + i64::from(b - b'0')))
        .ok_or(NumberError::NotANumber)
}

fn one_of(rest: &mut &[u8], accepted: &[u8]) -> Result<u8, NumberError> {
    let (first, behind) = rest.split_first().filter(|(b, _)| accepted.contains(b)).ok_or(NumberError::NotANumber)?;
    *rest = behind;
    Ok(*first)
}

/// `Z`, `UTC`, `+01:00`, `-0530`, `+01` as seconds east of Greenwich; None where there is none.
fn zone(mut rest: &[u8]) -> Result<Option<i64>, NumberError> {
    if rest.is_empty() {
        return Ok(None);
    }
    if [&b"z"[..], b"utc", b"gmt"].iter().any(|name| rest.eq_ignore_ascii_case(name)) {
        return Ok(Some(0));
    }
    let sign = if one_of(&mut rest, b"+-")? == b'-' { -1 } else { 1 };
    let hours = digits::<2>(&mut rest)?;
    let minutes = if rest.is_empty() {
        0
    } else {
        let _ = one_of(&mut rest, b":");
        digits::<2>(&mut rest)?
    };
    if !rest.is_empty() || hours > 23 || minutes > 59 {
        return Err(NumberError::NotANumber);
    }
    Ok(Some(sign * 60 * (60 * hours + minutes)))
}

/// Seconds since 1970 as `2026-11-21T07:15:30Z`.
pub fn date(seconds: u64) -> String {
    let date = i64::try_from(seconds).ok().map(SignedDuration::from_secs);
    // Beyond the year 9999 there is no such form.
    match date.and_then(|since| EPOCH.to_datetime(Time::midnight()).checked_add(since).ok()) {
        Some(date) => format!("{date}Z"),
        None => format!("{seconds} s"),
    }
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
    fn exponents_keep_all_digits() {
        let ps = 1_000_000_000_000;
        assert_eq!(from_text(b"1.795372415311008235e9", ps), Ok(1_795_372_415_311_008_235_000));
        assert_eq!(from_text(b"1795372415311008235E-9", ps), Ok(1_795_372_415_311_008_235_000));
        assert_eq!(from_text(b"+12.5e+1", 1), Ok(125));
        assert_eq!(from_text(b"1.25e1", 10), Ok(125));
        assert_eq!(from_text(b".5e0", 10), Ok(5));
        assert_eq!(from_text(b"5e-1", 10), Ok(5));
        assert_eq!(from_text(b"5e-400", 10), Ok(0));
        assert_eq!(from_text(b"0e999999", 10), Ok(0));
        assert_eq!(from_text(b"-0e5", 10), Ok(0));
        for text in ["e5", "1e", "1e+", "1e5.5", "1.2.3e4", "--1e4", "1e99999999999", "1 e5", ".e5"] {
            assert_eq!(from_text(text.as_bytes(), 1), Err(NumberError::NotANumber), "{text}");
        }
    }

    #[test]
    fn dates_are_read_and_written() {
        let second = 1_000_000_000_000;
        let read = |text: &str| from_date(text.as_bytes());
        assert_eq!(read("1970-01-01T00:00:00Z"), Ok((0, true)));
        assert_eq!(read("2000-03-01T00:00:00Z"), Ok((951_868_800 * second, true)));
        assert_eq!(read("2026-11-21 08:15:30.000000001+01:00"), Ok((1_795_245_330 * second + 1_000, true)));
        for same in [
            "2026-11-22T18:30:00.123456789+01:00",
            "2026-11-22T17:30:00.123456789Z",
            "2026-11-22 17:30:00,123456789 UTC",
            "2026/11/22  17:30:00.1234567890009",
            " 2026-11-22t17:30:00.123456789 ",
            "2026-11-22T12:00:00.123456789-0530",
            "2026-11-22T18:30:00.123456789 +01",
        ] {
            let (ps, zoned) = read(same).unwrap();
            assert_eq!(ps, 1_795_368_600 * second + 123_456_789_000, "{same}");
            assert_eq!(zoned, same.contains(['+', 'Z', 'U']) || same.ends_with("-0530"), "{same}");
        }
        assert_eq!(read("2026-11-22T17:30:00.000000000001Z").unwrap().0 % second, 1, "picoseconds");
        assert_eq!(read("2016-12-31T23:59:60Z"), Ok((1_483_228_800 * second, true)), "a leap second");
        assert_eq!(date(1_795_245_330), "2026-11-21T07:15:30Z");
        assert_eq!(date(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(date(4_102_444_799), "2099-12-31T23:59:59Z");
        assert_eq!(date(253_402_300_799), "9999-12-31T23:59:59Z");
        assert_eq!(date(u64::MAX), "18446744073709551615 s");
        for text in [
            "",
            "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-02-30T00:00:00Z",
            "2100-02-29T00:00:00Z",
            "2026-02-00T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:60:00Z",
            "2026-01-01",
            "2026-01/01T00:00:00",
            "2026-01-01T00:00",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00+1",
            "2026-01-01T00:00:00+24:00",
            "2026-01-01T00:00:00+01:00x",
            "2026-01-01T00:00:00 CET",
            "2026-01-01 CE 00:00:00",
            "é",
        ] {
            assert_eq!(read(text), Err(NumberError::NotANumber), "{text}");
        }
        assert_eq!(read("1969-12-31T23:59:59Z"), Err(NumberError::Negative));
        assert_eq!(read("1970-01-01T00:30:00+01:00"), Err(NumberError::Negative));
        for seconds in (0..253_402_300_800_u64).step_by(86_399 * 3_701) {
            assert_eq!(read(&date(seconds)), Ok((u128::from(seconds) * second, true)));
        }
    }
}
