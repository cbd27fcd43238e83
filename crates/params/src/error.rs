//! Problems of a document as values with a path; parsing collects all of them instead of stopping at the first.

use crate::{Node, Param};

/// Severity of a [`Problem`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The document is refused.
    Error,
    /// The document is accepted, but probably does not do what its author meant.
    Warning,
    /// The setting has no effect beside the others: refused if the document gives it, ignored if it is a default.
    Unused,
}

/// One problem of a document, with its place, the offending value, and a suggestion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub severity: Severity,
    /// Path of the offending key, for example `traffic[2].size`; empty for the document itself.
    pub path: String,
    /// Line in the source, from 1, if the source has lines.
    pub line: Option<u32>,
    /// The offending value as written, if any.
    pub value: Option<String>,
    /// Description of the problem, read after the path: "is out of range".
    pub message: String,
    /// Description of the values that would be accepted.
    pub accepted: Option<String>,
    /// The correction that the author probably meant.
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

/// Message for a key that the table does not have.
pub const UNKNOWN_KEY: &str = "is not a known key";

/// Parser state: path of the current node, and all problems recorded so far.
#[derive(Default)]
pub struct Cx {
    steps: Vec<Step>,
    problems: Vec<Problem>,
}

impl Cx {
    /// Starts a parser at the root of a document.
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs `body` with `key` appended to the current path.
    pub fn key<T>(&mut self, key: &str, body: impl FnOnce(&mut Self) -> T) -> T {
        self.steps.push(Step::Key(key.to_string()));
        let result = body(self);
        self.steps.pop();
        result
    }

    /// Runs `body` with `[index]` appended to the current path.
    pub fn index<T>(&mut self, index: usize, body: impl FnOnce(&mut Self) -> T) -> T {
        self.steps.push(Step::Index(index));
        let result = body(self);
        self.steps.pop();
        result
    }

    /// The current path, for example `traffic[2].size`.
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

    /// Records an error at the current path; value and line are those of `node`.
    pub fn error(&mut self, node: Option<&Node>, message: impl Into<String>, accepted: Option<String>) -> &mut Problem {
        self.report(Severity::Error, node, message.into(), accepted)
    }

    /// Records a warning at the current path; value and line are those of `node`.
    pub fn warn(&mut self, node: Option<&Node>, message: impl Into<String>, accepted: Option<String>) -> &mut Problem {
        self.report(Severity::Warning, node, message.into(), accepted)
    }

    /// Records that the setting at the current path has no effect.
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

    /// Records an error about `value` at `key`, also where `value` is a default that the document does not mention.
    pub fn error_at(&mut self, key: &str, value: &impl Param, message: impl Into<String>, accepted: &str) -> &mut Problem {
        self.key(key, |cx| cx.error(Some(&shown(value)), message, Some(accepted.to_string())).severity);
        self.problems.last_mut().expect("just pushed")
    }

    /// Records that `key` has no effect at any value; `value` is its present one.
    pub fn unused_at(&mut self, key: &str, value: &impl Param, message: impl Into<String>, accepted: &str) -> &mut Problem {
        let accepted = Some(accepted.to_string());
        self.key(key, |cx| cx.report(Severity::Unused, Some(&shown(value)), message.into(), accepted).severity);
        self.problems.last_mut().expect("just pushed")
    }

    /// Records a warning about `value` at `key`.
    pub fn warn_at(&mut self, key: &str, value: &impl Param, message: impl Into<String>) -> &mut Problem {
        self.key(key, |cx| cx.warn(Some(&shown(value)), message, None).severity);
        self.problems.last_mut().expect("just pushed")
    }

    /// Records an unknown key or name, lists the known ones and suggests the nearest.
    pub fn unknown(&mut self, node: Option<&Node>, what: &str, given: &str, known: &[&str]) {
        let nearest = nearest(given, known);
        let problem = self.error(
            node,
            format!("is not a known {what}"),
            Some(if known.is_empty() { "none".into() } else { known.join(", ") }),
        );
        problem.suggestion = nearest.map(|n| format!("did you mean '{n}'?"));
    }

    /// Suggests a field for the unknown key `given`, recorded last, if that field's documentation mentions `given`, as a name
    /// that drivers or other programs use.
    pub fn meant_by(&mut self, given: &str, fields: &[crate::Field]) {
        let given = given.to_lowercase();
        let is_name = |word: &str| given.contains('_') && word.to_lowercase() == given;
        let says = |doc: &str| doc.split(|c: char| !c.is_alphanumeric() && c != '_').any(is_name);
        let Some(field) = fields.iter().find(|field| says(&field.doc)) else { return };
        if let Some(problem) = self.last() {
            problem.suggestion = Some(format!("did you mean '{}'?", field.name));
        }
    }

    /// Completes the unknown keys of the current table that were recorded after the first `count` problems: names the table's
    /// `kind`, and the kinds that have such a key. `kinds`: each kind with its keys.
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

    /// Replaces "an integer …" in the accepted values of the current path by the narrower `range` of the key; looks at the
    /// problems after the first `count`.
    pub fn narrow(&mut self, count: usize, range: &str) {
        let path = self.path();
        for problem in self.problems[count..].iter_mut().filter(|problem| problem.path == path) {
            if problem.accepted.as_ref().is_some_and(|accepted| accepted.starts_with("an integer")) {
                problem.accepted = Some(format!("an integer {range}"));
            }
        }
    }

    /// The problem recorded last, for adding details.
    pub fn last(&mut self) -> Option<&mut Problem> {
        self.problems.last_mut()
    }

    /// The problems recorded after the first `count`, for adding details.
    pub fn since(&mut self, count: usize) -> &mut [Problem] {
        &mut self.problems[count..]
    }

    /// True if an error was recorded; warnings do not count.
    pub fn failed(&self) -> bool {
        self.problems.iter().any(|p| p.severity == Severity::Error)
    }

    /// Number of problems recorded so far.
    pub fn count(&self) -> usize {
        self.problems.len()
    }

    /// All recorded problems, in the order of discovery.
    pub fn into_problems(self) -> Vec<Problem> {
        self.problems
    }
}

/// `value` as a document node, for messages.
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

/// Edit distance between two names; 1 if they consist of equal words in another order, as `p_max` and `max_p`.
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
