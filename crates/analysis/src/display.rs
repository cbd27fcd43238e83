//! Text for numbers, with units and few digits.

/// A bit rate, for example `9.853 Gb/s`.
pub fn rate(bps: f64) -> String {
    let a = bps.abs();
    match a {
        _ if a >= 1e9 => format!("{} Gb/s", digits(bps / 1e9)),
        _ if a >= 1e6 => format!("{} Mb/s", digits(bps / 1e6)),
        _ => format!("{} kb/s", digits(bps / 1e3)),
    }
}

/// A number of bytes, for example `257.1 KB`.
pub fn size(bytes: f64) -> String {
    match bytes {
        _ if bytes >= 1e9 => format!("{} GB", digits(bytes / 1e9)),
        _ if bytes >= 1e6 => format!("{} MB", digits(bytes / 1e6)),
        _ if bytes >= 1e3 => format!("{} KB", digits(bytes / 1e3)),
        _ => format!("{bytes:.0} B"),
    }
}

/// A time in ps, for example `276.4 us`.
pub fn span(ps: u64) -> String {
    let ps = ps as f64;
    match ps {
        _ if ps >= 1e12 => format!("{} s", digits(ps / 1e12)),
        _ if ps >= 1e9 => format!("{} ms", digits(ps / 1e9)),
        _ if ps >= 1e6 => format!("{} us", digits(ps / 1e6)),
        _ => format!("{} ns", digits(ps / 1e3)),
    }
}

/// A share, for example `50 %`.
pub fn percent(share: f64) -> String {
    format!("{} %", digits(share * 100.0))
}

/// A number with its noun: `1 packet`, `24 packets`.
pub fn count(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// `was` or `were`, for a number of things.
#[cfg(feature = "files")]
pub fn was(n: u64) -> &'static str {
    if n == 1 {
        "was"
    } else {
        "were"
    }
}

/// Four significant digits, without zeros at the end.
fn digits(value: f64) -> String {
    let a = value.abs();
    let text = match a {
        _ if a >= 1000.0 => format!("{value:.0}"),
        _ if a >= 100.0 => format!("{value:.1}"),
        _ if a >= 10.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    };
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if text == "-0" {
        "0".into()
    } else {
        text.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_digits_and_a_unit() {
        assert_eq!([rate(9.8529e9), rate(-1e8), rate(-0.01)], ["9.853 Gb/s", "-100 Mb/s", "0 kb/s"]);
        assert_eq!([size(257_123.0), size(1_250_000.0), size(999.6)], ["257.1 KB", "1.25 MB", "1000 B"]);
        assert_eq!(
            [span(276_440_000), span(25_000_000), span(2_460_800_000), span(500)],
            ["276.4 us", "25 us", "2.461 ms", "0.5 ns"]
        );
        assert_eq!([percent(0.5), percent(1.234)], ["50 %", "123.4 %"]);
        assert_eq!([count(1, "packet"), count(24, "packet")], ["1 packet", "24 packets"]);
    }
}
