//! From the path of a problem to the line and the value that it is about.

use fanin_params::{Node, Problem, Value};

/// Gives problems that know only their path the line, and the value as written.
pub(crate) fn locate(document: &Node, problems: &mut [Problem]) {
    for problem in problems {
        if problem.line.is_some() {
            continue;
        }
        let (nearest, whole) = descend(document, &problem.path);
        problem.line = nearest.line;
        let scalar = !matches!(nearest.value, Value::List(_) | Value::Table(_));
        if whole && scalar && problem.value.is_none() {
            problem.value = Some(nearest.to_string());
        }
    }
}

/// The node at `path`, or the last one on the way that exists; and whether it is the one.
fn descend<'a>(document: &'a Node, path: &str) -> (&'a Node, bool) {
    let mut node = document;
    for step in steps(path) {
        let next = match (&node.value, step) {
            (Value::Table(_), Step::Key(key)) => node.get(key),
            (Value::List(items), Step::Index(index)) => items.get(index),
            _ => None,
        };
        match next {
            Some(next) => node = next,
            None => return (node, false),
        }
    }
    (node, true)
}

enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

/// `traffic[2].size` → `traffic`, 2, `size`.
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
    fn a_problem_finds_its_line_or_that_of_the_table_around_it() {
        let (node, _) = read_toml("a = 1\n[[t]]\nsize = '5B'\n[[t]]\nlist = [\n1,\n2]\n");
        let node = node.unwrap();
        let located = |path: &str| {
            let mut cx = Cx::new();
            cx.error(None, "is wrong", None).path = path.to_string();
            let mut problems = cx.into_problems();
            locate(&node, &mut problems);
            problems.remove(0).to_string()
        };
        assert_eq!(located("t[0].size"), "t[0].size, line 3: \"5B\" is wrong");
        assert_eq!(located("t[1].list[1]"), "t[1].list[1], line 7: 2 is wrong");
        assert_eq!(located("t[1].rate"), "t[1].rate, line 4: is wrong");
        assert_eq!(located("t[1]"), "t[1], line 4: is wrong");
        assert_eq!(located("gone.deep"), "gone.deep, line 1: is wrong");
    }
}
