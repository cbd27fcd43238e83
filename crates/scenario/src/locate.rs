//! Location of problems: from a path to the line and value in the document.

use fanin_params::{Node, Problem, Severity, Value};

/// Sorts problems by line, and adds the line to those that have only a path.
///
/// A problem in another file has that file in brackets after its path (`traffic[1].sizes.path (sizes.csv)`), and the line is
/// that file's; its place in the order is that of the path.
pub(crate) fn locate(document: &Node, problems: &mut Vec<Problem>) {
    let mut placed: Vec<(u32, Problem)> = problems
        .drain(..)
        .map(|mut problem| {
            let (path, elsewhere) =
                problem.path.split_once(" (").map_or((problem.path.as_str(), false), |(path, _)| (path, true));
            let here = nearest(document, path).line;
            let place = if elsewhere { here } else { problem.line.or(here) };
            problem.line = problem.line.or(here.filter(|_| !elsewhere));
            (place.unwrap_or(u32::MAX), problem)
        })
        .collect();
    placed.sort_by_key(|(place, _)| *place);
    problems.extend(placed.into_iter().map(|(_, problem)| problem));
}

/// Line numbers of `paths`: of the node itself or the nearest table around it; none for the whole document.
pub fn lines(document: &Node, paths: &[String]) -> Vec<Option<u32>> {
    let there = paths.iter().map(|path| nearest(document, path));
    there.map(|node| node.line.filter(|_| !std::ptr::eq(node, document))).collect()
}

/// Turns settings without effect into errors if the document gives them; removes those that are defaults, and returns their
/// paths.
pub(crate) fn unused(document: &Node, problems: &mut Vec<Problem>) -> Vec<String> {
    let mut defaults = Vec::new();
    problems.retain_mut(|problem| {
        if problem.severity != Severity::Unused {
            return true;
        }
        problem.severity = Severity::Error;
        let Some(given) = exact(document, &problem.path) else {
            defaults.push(std::mem::take(&mut problem.path));
            return false;
        };
        problem.value = Some(given.to_string());
        true
    });
    defaults
}

/// The node at exactly this path.
pub(crate) fn exact<'a>(document: &'a Node, path: &str) -> Option<&'a Node> {
    steps(path).try_fold(document, |node, step| match (&node.value, step) {
        (Value::Table(_), Step::Key(key)) => node.get(key),
        (Value::List(items), Step::Index(index)) => items.get(index),
        _ => None,
    })
}

/// Removes the entry at `path` from its table.
pub(crate) fn remove(document: &mut Node, path: &str) {
    let mut node = document;
    let mut steps = steps(path).peekable();
    while let Some(step) = steps.next() {
        node = match (&mut node.value, step) {
            (Value::Table(entries), Step::Key(key)) if steps.peek().is_none() => {
                entries.retain(|(name, _)| name != key);
                return;
            }
            (Value::Table(entries), Step::Key(key)) => match entries.iter_mut().find(|(name, _)| name == key) {
                Some((_, next)) => next,
                None => return,
            },
            (Value::List(items), Step::Index(index)) => match items.get_mut(index) {
                Some(next) => next,
                None => return,
            },
            _ => return,
        };
    }
}

/// The node at `path`, or the deepest existing node on the way there.
fn nearest<'a>(document: &'a Node, path: &str) -> &'a Node {
    let mut node = document;
    for step in steps(path) {
        let next = match (&node.value, step) {
            (Value::Table(_), Step::Key(key)) => node.get(key),
            (Value::List(items), Step::Index(index)) => items.get(index),
            _ => None,
        };
        match next {
            Some(next) => node = next,
            None => break,
        }
    }
    node
}

enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

/// Splits a path into steps: `traffic[2].size` into `traffic`, 2, `size`.
fn steps(path: &str) -> impl Iterator<Item = Step<'_>> {
    path.split('.').filter(|part| !part.is_empty()).flat_map(|part| {
        let mut pieces = part.split('[');
        let key = pieces.next().filter(|key| !key.is_empty()).map(Step::Key);
        key.into_iter().chain(pieces.filter_map(|piece| piece.strip_suffix(']')?.parse().ok().map(Step::Index)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read_toml;
    use fanin_params::Cx;

    #[test]
    fn what_is_not_in_a_document_has_no_line_of_it() {
        let (node, _) = read_toml("a = 1\n[t]\nb = 2\n");
        let paths = ["t.b", "t.c", "gone.deep"].map(String::from);
        assert_eq!(lines(&node.unwrap(), &paths), [Some(3), Some(2), None]);
    }

    #[test]
    fn a_problem_finds_its_line_or_that_of_the_table_around_it() {
        let (node, _) = read_toml("a = 1\n[[t]]\nsize = '5B'\n[[t]]\nlist = [\n1,\n2]\n");
        let node = node.unwrap();
        let mut cx = Cx::new();
        for (path, line) in [
            ("t[1].list[1]", None),
            ("t[1].rate", None),
            ("t[0].size (x.csv)", Some(900)),
            ("t[0].size", None),
            ("gone.deep", None),
        ] {
            let problem = cx.error(None, "is wrong", None);
            (problem.path, problem.line) = (path.to_string(), line);
        }
        let mut problems = cx.into_problems();
        locate(&node, &mut problems);
        let shown: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "gone.deep, line 1: is wrong",
                "t[0].size (x.csv), line 900: is wrong",
                "t[0].size, line 3: is wrong",
                "t[1].rate, line 4: is wrong",
                "t[1].list[1], line 7: is wrong"
            ]
        );
    }
}
