//! Parsing and printing of numbers with units, exactly (no floating point).

/// Reason why a string with a unit was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuantityError {
    /// The text does not have the form `NUMBER UNIT`.
    Syntax,
    /// The number has no unit.
    MissingUnit,
    /// The unit is none of this quantity's units.
    UnknownUnit(String),
    /// The value is finer than the quantity's base step.
    TooFine,
    /// The value exceeds the largest that the quantity can represent.
    TooLarge,
}

impl std::fmt::Display for QuantityError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Syntax => write!(f, "is not a number followed by a unit"),
            Self::MissingUnit => write!(f, "has no unit"),
            Self::UnknownUnit(unit) => write!(f, "has the unknown unit '{unit}'"),
            Self::TooFine => write!(f, "is finer than the smallest step that can be represented"),
            Self::TooLarge => write!(f, "is too large"),
        }
    }
}

impl std::error::Error for QuantityError {}

/// A number with a unit that is written as a string in scenarios.
pub trait Quantity: Sized {
    /// Noun phrase for this quantity in messages, for example "a duration".
    const WHAT: &'static str;
    /// Example values for messages, for example `"10us"`.
    const EXAMPLES: &'static str;
    /// Names of the units, each with its size in base steps; aliases allowed.
    const UNITS: &'static [(&'static str, u64)];

    /// The quantity of `steps` base steps.
    fn from_base(steps: u64) -> Self;

    /// Parses a string such as `1.5us` or `10 Gb/s` exactly, without floating point.
    ///
    /// # Errors
    /// Every malformed, unit-less, over-fine or over-large text.
    fn read(text: &str) -> Result<Self, QuantityError> {
        read_scaled(text, Self::UNITS).map(Self::from_base)
    }
}

fn read_scaled(text: &str, units: &[(&str, u64)]) -> Result<u64, QuantityError> {
    let text = text.trim();
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    let (number, unit) = (text[..split].replace('_', ""), text[split..].trim());
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return Err(QuantityError::Syntax);
    }
    if unit.is_empty() {
        return Err(QuantityError::MissingUnit);
    }
    let scale = units
        .iter()
        .find(|(name, _)| *name == unit)
        .map(|(_, scale)| *scale)
        .ok_or_else(|| QuantityError::UnknownUnit(unit.to_string()))?;
    if whole.len() > 20 || fraction.len() > 15 {
        return Err(if whole.len() > 20 { QuantityError::TooLarge } else { QuantityError::TooFine });
    }
    let parse = |digits: &str| -> Result<u128, QuantityError> {
        if digits.is_empty() {
            Ok(0)
        } else {
            digits.parse().map_err(|_| QuantityError::Syntax)
        }
    };
    let tens = 10u128.pow(fraction.len() as u32);
    let part = parse(fraction)? * u128::from(scale);
    if part % tens != 0 {
        return Err(QuantityError::TooFine);
    }
    let steps =
        parse(whole)?.checked_mul(u128::from(scale)).and_then(|w| w.checked_add(part / tens)).ok_or(QuantityError::TooLarge)?;
    u64::try_from(steps).map_err(|_| QuantityError::TooLarge)
}

/// Prints `steps` in the largest of `units` that divides it, so that [`Quantity::read`] returns the same value.
pub(crate) fn write_scaled(f: &mut std::fmt::Formatter<'_>, steps: u64, units: &[(&str, u64)]) -> std::fmt::Result {
    let (name, scale) = units
        .iter()
        .filter(|(_, scale)| steps % scale == 0)
        .max_by_key(|(_, scale)| if steps == 0 { u64::MAX - scale } else { *scale })
        .unwrap_or(&units[0]);
    write!(f, "{}{}", steps / scale, name)
}
