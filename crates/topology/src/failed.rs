//! Failed links, which are removed from a network before routes are computed.

use crate::draft::Draft;
use fanin_params::{pattern, Cx, Node, Param, Problem};
use std::collections::BTreeMap;

/// Number of names that a message lists.
const LISTED: usize = 4;

impl Draft {
    /// Names of all links, both directions of each, as in the intact network.
    fn link_names(&self) -> Vec<[String; 2]> {
        let mut seen: BTreeMap<(usize, usize), u32> = BTreeMap::new();
        let mut named = |a: usize, b: usize| {
            let count = seen.entry((a, b)).or_default();
            let parallel = if *count == 0 { String::new() } else { format!("#{count}") };
            *count += 1;
            format!("{}->{}{parallel}", self.nodes[a].name, self.nodes[b].name)
        };
        self.links.iter().map(|link| [named(link.a, link.b), named(link.b, link.a)]).collect()
    }

    /// Removes the links that match a pattern, in either direction.
    ///
    /// # Errors
    /// Patterns without a match, at `topology.failed`.
    pub fn without(mut self, failed: &[String]) -> Result<Draft, Vec<Problem>> {
        if failed.is_empty() {
            return Ok(self);
        }
        let names = self.link_names();
        let fits = |wanted: &String, link: &[String; 2]| link.iter().any(|name| pattern::fits(wanted, name));
        let mut cx = Cx::new();
        cx.key("topology", |cx| {
            cx.key("failed", |cx| {
                for (i, wanted) in failed.iter().enumerate().filter(|(_, wanted)| !names.iter().any(|link| fits(wanted, link))) {
                    cx.index(i, |cx| unknown(wanted, &names, cx));
                }
            });
        });
        if cx.failed() {
            return Err(cx.into_problems());
        }
        let mut kept = names.iter().map(|link| !failed.iter().any(|wanted| fits(wanted, link)));
        self.links.retain(|_| kept.next().unwrap_or(true));
        Ok(self)
    }
}

fn unknown(wanted: &str, names: &[[String; 2]], cx: &mut Cx) {
    let all: Vec<&str> = names.iter().flatten().map(String::as_str).collect();
    let value: Node = wanted.to_string().to_value().into();
    cx.unknown(Some(&value), "link", wanted, &all);
    if let Some(problem) = cx.last() {
        problem.line = None;
        problem.message = format!("{} no link", if wanted.contains('*') { "matches" } else { "is" });
        let few: Vec<&str> = names.iter().rev().take(LISTED).map(|link| link[0].as_str()).collect();
        let more = if names.len() > LISTED { format!(", … ({} in all)", names.len()) } else { String::new() };
        problem.accepted = Some(format!("names of ports and patterns such as \"*->core0\"; there are {}{more}", few.join(", ")));
    }
}
