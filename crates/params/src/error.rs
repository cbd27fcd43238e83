//! Errors as values with a path: collected, never thrown at the first.

use crate::{Node, Param};

/// How bad a [`Problem`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The document cannot be used.
    Error,
    /// It can be used, and will probably not do what was meant.
    Warning,
    /// The value changes nothing beside the others: an error where the document has it, nothing where it is a default.
    Unused,
}

/// One thing wrong with a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub severity: Severity,
    /// Where, for example `traffic[2].size`; empty for the document itself.
    pub path: String,
    /// 1-based line, where the source has lines.
    pub line: Option<u32>,
    /// The offending value as written, if there is one.
    pub value: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What would be accepted.
    pub accepted: Option<String>,
    /// What was probably meant.
    pub suggestion: Option<String>,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}", self.path)?;
        }
        if let Some(line) = self.line {
            write!(f, "{}line {line}", if self.path.is_empty() { "" } else { ", " })?;
        }
        if !self.path.is_empty() || self.line.is_some() {
            write!(f, ": ")?;
        }
        if let Some(value) = &self.value {
            write!(f, "{value} ")?;
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

enum Step {
    Key(String),
    Index(usize),
}

/// What is said of a key that there is not.
pub const UNKNOWN_KEY: &str = "is not a known key";

/// Where the parser stands, and what it has found wrong so far.
#[derive(Default)]
pub struct Cx {
    steps: Vec<Step>,
    problems: Vec<Problem>,
}

impl Cx {
    /// A parser at the root of a document.
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs `body` one key deeper.
    pub fn key<T>(&mut self, key: &str, body: impl FnOnce(&mut Self) -> T) -> T {
        self.steps.push(Step::Key(key.to_string()));
        let result = body(self);
        self.steps.pop();
        result
    }

    /// Runs `body` one list entry deeper.
    pub fn index<T>(&mut self, index: usize, body: impl FnOnce(&mut Self) -> T) -> T {
        self.steps.push(Step::Index(index));
        let result = body(self);
        self.steps.pop();
        result
    }

    /// The path, for example `traffic[2].size`.
    pub fn path(&self) -> String {
        let mut path = String::new();
        for step in &self.steps {
            match step {
                Step::Key(key) => {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(key);
                }
                Step::Index(index) => path.push_str(&format!("[{index}]")),
            }
        }
        path
    }

    /// Records an error at the present path. `node` gives value and line.
    pub fn error(&mut self, node: Option<&Node>, message: impl Into<String>, accepted: Option<String>) -> &mut Problem {
        self.report(Severity::Error, node, message.into(), accepted)
    }

    /// Records a warning at the present path.
    pub fn warn(&mut self, node: Option<&Node>, message: impl Into<String>, accepted: Option<String>) -> &mut Problem {
        self.report(Severity::Warning, node, message.into(), accepted)
    }

    /// Records that what stands at the present path changes nothing.
    pub fn unused(&mut self, message: impl Into<String>, accepted: Option<String>) -> &mut Problem {
        self.report(Severity::Unused, None, message.into(), accepted)
    }

    fn report(&mut self, severity: Severity, node: Option<&Node>, message: String, accepted: Option<String>) -> &mut Problem {
        self.problems.push(Problem {
            severity,
            path: self.path(),
            line: node.and_then(|n| n.line),
            value: node.map(|n| n.to_string()),
            message,
            accepted,
            suggestion: None,
        });
        self.problems.last_mut().expect("just pushed")
    }

    /// An error about `value` at `key`, also where it is a default that the document does not mention.
    pub fn error_at(&mut self, key: &str, value: &impl Param, message: impl Into<String>, accepted: &str) -> &mut Problem {
        self.key(key, |cx| cx.error(Some(&shown(value)), message, Some(accepted.to_string())).severity);
        self.problems.last_mut().expect("just pushed")
    }

    /// `value` at `key` changes nothing, whatever it is.
    pub fn unused_at(&mut self, key: &str, value: &impl Param, message: impl Into<String>, accepted: &str) -> &mut Problem {
        let accepted = Some(accepted.to_string());
        self.key(key, |cx| cx.report(Severity::Unused, Some(&shown(value)), message.into(), accepted).severity);
        self.problems.last_mut().expect("just pushed")
    }

    /// A warning about `value` at `key`.
    pub fn warn_at(&mut self, key: &str, value: &impl Param, message: impl Into<String>) -> &mut Problem {
        self.key(key, |cx| cx.warn(Some(&shown(value)), message, None).severity);
        self.problems.last_mut().expect("just pushed")
    }

    /// An unknown key or name: lists what there is and suggests the nearest.
    pub fn unknown(&mut self, node: Option<&Node>, what: &str, given: &str, known: &[&str]) {
        let nearest = nearest(given, known);
        let problem = self.error(
            node,
            format!("is not a known {what}"),
            Some(if known.is_empty() { "none".into() } else { known.join(", ") }),
        );
        problem.suggestion = nearest.map(|n| format!("did you mean '{n}'?"));
    }

    /// Of an unknown key, recorded last: which one it is, where the documentation of that has it as the name elsewhere, as of a driver.
    pub fn meant_by(&mut self, given: &str, fields: &[crate::Field]) {
        let given = given.to_lowercase();
        let is_name = |word: &str| given.contains('_') && word.to_lowercase() == given;
        let says = |doc: &str| doc.split(|c: char| !c.is_alphanumeric() && c != '_').any(is_name);
        let Some(field) = fields.iter().find(|field| says(&field.doc)) else { return };
        if let Some(problem) = self.last() {
            problem.suggestion = Some(format!("did you mean '{}'?", field.name));
        }
    }

    /// Of unknown keys of the present table that were recorded after the first `count`: of which kind they are not, and which kinds
    /// have them. `kinds`: each kind with its keys.
    pub fn name_kinds(&mut self, count: usize, kind: &str, kinds: &[(&str, Vec<&str>)]) {
        let table = self.path();
        for problem in &mut self.problems[count..] {
            let Some(key) = problem.path.strip_prefix(&table).map(|rest| rest.trim_start_matches('.')) else { continue };
            if problem.message != UNKNOWN_KEY {
                continue;
            }
            problem.message = format!("{UNKNOWN_KEY} of kind \"{kind}\"");
            let owners: Vec<String> =
                kinds.iter().filter(|(_, keys)| keys.contains(&key)).map(|(kind, _)| format!("\"{kind}\"")).collect();
            if !owners.is_empty() {
                problem.suggestion = Some(format!("kind {} has it", owners.join(", ")));
            }
        }
    }

    /// Of a value that is no integer in the range of its key, which is narrower than that of its type.
    pub fn narrow(&mut self, count: usize, range: &str) {
        let path = self.path();
        for problem in self.problems[count..].iter_mut().filter(|problem| problem.path == path) {
            if problem.accepted.as_ref().is_some_and(|accepted| accepted.starts_with("an integer")) {
                problem.accepted = Some(format!("an integer {range}"));
            }
        }
    }

    /// The problem recorded last, to add to it.
    pub fn last(&mut self) -> Option<&mut Problem> {
        self.problems.last_mut()
    }

    /// The problems recorded after the first `count`, to add to them.
    pub fn since(&mut self, count: usize) -> &mut [Problem] {
        &mut self.problems[count..]
    }

    /// Whether any error (not warning) was recorded.
    pub fn failed(&self) -> bool {
        self.problems.iter().any(|p| p.severity == Severity::Error)
    }

    /// How many problems there are so far.
    pub fn count(&self) -> usize {
        self.problems.len()
    }

    /// Everything found, in document order of discovery.
    pub fn into_problems(self) -> Vec<Problem> {
        self.problems
    }
}

/// A value as documents have it.
pub fn shown(value: &impl Param) -> Node {
    value.to_value().into()
}

fn nearest<'a>(given: &str, known: &[&'a str]) -> Option<&'a str> {
    known
        .iter()
        .map(|k| (distance(&given.to_lowercase(), &k.to_lowercase()), *k))
        .filter(|(distance, k)| *distance <= 1 + k.len().min(given.len()) / 3)
        .min()
        .map(|(_, k)| k)
}

/// Edits between two names; one where the same words are in another order, as in `p_max` and `max_p`.
fn distance(a: &str, b: &str) -> usize {
    fn words(name: &str) -> Vec<&str> {
        let mut words: Vec<&str> = name.split(['_', '-']).collect();
        words.sort_unstable();
        words
    }
    let edits = strsim::damerau_levenshtein(a, b);
    if edits > 1 && words(a) == words(b) {
        1
    } else {
        edits
    }
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn the_same_words_in_another_order_are_near() {
        assert_eq!(nearest("p_max", &["max", "max_p", "min"]), Some("max_p"));
        assert_eq!(nearest("maxx", &["max", "max_p", "min"]), Some("max"));
        assert_eq!(nearest("min_k", &["max", "max_p"]), None);
    }
}
