//! Rendering of problems for people.

use fanin_params::{Problem, Severity};

/// Renders one line per problem, in the order given; a [`Scenario`](crate::Scenario) gives them in the order of its file's
/// lines.
///
/// `scenario.toml: traffic[2].size, line 14: "5" has no unit; accepted: a size such as …`, warnings after the word `warning:`.
pub fn render(problems: &[Problem], file: &str) -> String {
    let mut text = String::new();
    for problem in problems {
        let tag = if problem.severity == Severity::Warning { "warning: " } else { "" };
        text.push_str(&format!("{file}: {tag}{problem}\n"));
    }
    text
}
