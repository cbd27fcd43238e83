//! Readers: text to a tree of nodes, with all syntax errors.

mod json;
mod toml;

pub use json::read_json;
pub use toml::read_toml;

use fanin_params::{Problem, Severity};
use fanin_units::Bytes;

/// Largest document that is read; longer lists of flows belong into a CSV file of their own.
pub const MAX_DOCUMENT: Bytes = Bytes(64 << 20);

/// Deepest nesting of tables and lists.
pub const MAX_DEPTH: usize = 32;

/// Largest number of syntax errors reported for one document.
const MAX_SYNTAX_ERRORS: usize = 20;

fn syntax(line: Option<u32>, value: Option<String>, message: &str, accepted: Option<String>) -> Problem {
    Problem {
        severity: Severity::Error,
        path: String::new(),
        line,
        value,
        message: message.to_string(),
        accepted,
        suggestion: None,
    }
}

/// Problem to report if `text` is too large to be read.
fn oversize(text: &str) -> Option<Problem> {
    let size = Bytes(text.len() as u64);
    (size > MAX_DOCUMENT).then(|| {
        let mut problem =
            syntax(None, None, &format!("the document of {size} is too large"), Some(format!("at most {MAX_DOCUMENT}")));
        problem.suggestion = Some("put long lists of flows into a CSV file".to_string());
        problem
    })
}

const TOO_DEEP: &str = "nests too deep";

fn depth_accepted() -> String {
    format!("at most {MAX_DEPTH} levels of tables and lists")
}

#[cfg(test)]
mod tests;
