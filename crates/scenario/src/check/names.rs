//! Messages about names and patterns that match nothing.

use fanin_params::{Cx, Node, Value};

/// A kind of named object, as messages call it.
pub(super) struct Sort {
    one: &'static str,
    many: &'static str,
    example: &'static str,
}

pub(super) const PORT: Sort = Sort { one: "port", many: "ports", example: "leaf0->*" };
pub(super) const LINK: Sort = Sort { one: "link", many: "links", example: "leaf0->spine*" };
pub(super) const SWITCH: Sort = Sort { one: "switch", many: "switches", example: "leaf*" };
pub(super) const HOST: Sort = Sort { one: "host", many: "hosts", example: "h*" };

pub(super) const FLOW: Sort =
    Sort { one: "flow, traffic entry or host", many: "flows, traffic entries and hosts", example: "h*" };

/// Reports a name or pattern that matches none of `names`.
pub(super) fn unknown(sort: &Sort, wanted: &str, names: &[&str], cx: &mut Cx) {
    let Sort { one, many, example } = sort;
    let node: Node = Value::Text(wanted.to_string()).into();
    cx.unknown(Some(&node), one, wanted, names);
    if let Some(problem) = cx.last() {
        problem.line = None;
        problem.message = if wanted.contains('*') { format!("matches no {one}") } else { format!("is no {one}") };
        let few: Vec<&str> = names.iter().take(4).copied().collect();
        let more = if names.len() > few.len() { format!(", … ({} {many})", names.len()) } else { String::new() };
        problem.accepted = Some(format!("names and patterns such as \"{example}\"; the {many} are {}{more}", few.join(", ")));
    }
}
