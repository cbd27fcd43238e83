//! Problems as people read them.

use fanin_params::{Problem, Severity};

/// One line for each problem, in order of the file's lines; those without a line come last.
///
/// `scenario.toml: traffic[2].size, line 14: "5" has no unit; accepted: a size such as …`, warnings after the word `warning:`.
pub fn render(problems: &[Problem], file: &str) -> String {
    let mut sorted: Vec<&Problem> = problems.iter().collect();
    sorted.sort_by_key(|p| (p.line.is_none(), p.line));
    let mut text = String::new();
    for problem in sorted {
        let tag = if problem.severity == Severity::Warning { "warning: " } else { "" };
        text.push_str(&format!("{file}: {tag}{problem}\n"));
    }
    text
}
