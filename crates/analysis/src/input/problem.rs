//! Problems with a trace or with its options.

use std::path::Path;

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Problem {
    /// File that the problem is about, if any.
    pub file: Option<Box<str>>,
    /// Place in the file, for example `line 17`, `row 5` or `packet 3`; counted from 1.
    pub place: Option<Box<str>>,
    /// Column or option that the problem is about.
    pub column: Option<Box<str>>,
    /// The value that was found.
    pub value: Option<Box<str>>,
    /// Description of the problem.
    pub message: Box<str>,
    /// Accepted values.
    pub accepted: Option<Box<str>>,
    /// Suggestion of a correction.
    pub suggestion: Option<Box<str>>,
    /// True where it asks for a setting, without which no other row can be read either.
    pub asks: bool,
}

/// Longest value that a message repeats [characters].
const SHOWN: usize = 60;

impl Problem {
    /// About a file as a whole, or about nothing but the message.
    pub fn new(message: impl Into<String>) -> Self {
        Problem { message: message.into().into(), ..Problem::default() }
    }

    #[must_use]
    pub fn file(mut self, file: &Path) -> Self {
        self.file = Some(file.display().to_string().into());
        self
    }

    #[must_use]
    pub fn place(mut self, place: impl Into<String>) -> Self {
        self.place = Some(place.into().into());
        self
    }

    #[must_use]
    pub fn column(mut self, column: impl Into<String>) -> Self {
        self.column = Some(column.into().into());
        self
    }

    #[must_use]
    pub fn value(mut self, value: impl Into<String>) -> Self {
        self.value = Some(shortened(&value.into()).into());
        self
    }

    #[must_use]
    pub fn accepted(mut self, accepted: impl Into<String>) -> Self {
        self.accepted = Some(accepted.into().into());
        self
    }

    #[must_use]
    pub fn suggestion(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into().into());
        self
    }

    /// Asks for a setting, which the suggestion names: without it no other row can be read either.
    #[must_use]
    pub fn asks(mut self, suggestion: impl Into<String>) -> Self {
        self.asks = true;
        self.suggestion(suggestion)
    }

    /// Adds a suggestion, if there is one.
    #[must_use]
    pub fn maybe(self, suggestion: Option<String>) -> Self {
        Problem { suggestion: suggestion.map(Into::into), ..self }
    }
}

/// A value for messages: one line, not endless.
pub fn shortened(value: &str) -> String {
    let mut text: String = value.chars().take(SHOWN).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if value.chars().nth(SHOWN).is_some() {
        text.push('…');
    }
    text
}

/// `FILE: PLACE: COLUMN: 'VALUE' MESSAGE; accepted: …; SUGGESTION`, as far as known.
impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for part in [&self.file, &self.place, &self.column].into_iter().flatten() {
            write!(f, "{part}: ")?;
        }
        if let Some(value) = &self.value {
            write!(f, "'{value}' ")?;
        }
        write!(f, "{}", self.message)?;
        if let Some(accepted) = &self.accepted {
            write!(f, "; accepted: {accepted}")?;
        }
        if let Some(suggestion) = &self.suggestion {
            write!(f, "; {suggestion}")?;
        }
        Ok(())
    }
}

/// Everything that is wrong; never empty.
pub type Problems = Vec<Problem>;

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        vec![problem]
    }
}

/// Reason for which there is no report.
#[derive(Clone, Debug)]
pub enum Failure {
    /// Errors in the trace or in the options.
    Problems(Problems),
    /// The observer stopped the analysis.
    Stopped,
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Self {
        Failure::Problems(problems)
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Failure::Problems(vec![problem])
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Problems(problems) => {
                problems.iter().enumerate().try_for_each(|(i, p)| write!(f, "{}{p}", if i > 0 { "\n" } else { "" }))
            }
            Failure::Stopped => write!(f, "stopped"),
        }
    }
}

impl std::error::Error for Failure {}

/// Known name that is nearest to the given one, if one is near.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = given.to_lowercase();
    known
        .into_iter()
        .map(|k| (strsim::damerau_levenshtein(&lower, &k.to_lowercase()), k))
        .filter(|(distance, k)| *distance <= 1 + k.chars().count().min(given.chars().count()) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, k)| k)
}

/// `did you mean 'x'?` for the nearest known name.
pub fn did_you_mean<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(given, known).map(|name| format!("did you mean '{name}'?"))
}

/// Names in one line, the first twenty of them.
pub fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.into_iter().map(shortened).collect();
    let rest = names.len().saturating_sub(20);
    let shown = names[..names.len() - rest].join(", ");
    if rest > 0 {
        format!("{shown} and {rest} more")
    } else {
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_says_where_what_and_what_is_accepted() {
        let problem = Problem::new("is negative")
            .file(Path::new("a.csv"))
            .place("line 3")
            .column("qlen")
            .value("-1")
            .accepted("a number of bytes")
            .suggestion("leave it out");
        assert_eq!(problem.to_string(), "a.csv: line 3: qlen: '-1' is negative; accepted: a number of bytes; leave it out");
    }

    #[test]
    fn values_are_shown_on_one_line_and_not_endlessly() {
        assert_eq!(shortened("a\nb"), "a\u{fffd}b");
        assert_eq!(shortened(&"x".repeat(61)).chars().count(), 61);
        assert_eq!(shortened(&"é".repeat(60)), "é".repeat(60));
    }

    #[test]
    fn the_nearest_name_is_suggested_and_a_far_one_is_not() {
        assert_eq!(nearest("qlne", ["time", "qlen", "port"]), Some("qlen"));
        assert_eq!(nearest("zebra", ["time", "qlen"]), None);
    }
}
