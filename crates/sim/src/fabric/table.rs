//! Forwarding tables, flattened for the inner loop.

use fanin_engine::Table;
use fanin_units::{HostId, LinkId, SwitchId};

/// Set in an entry that is a group.
const GROUP: u32 = 1 << 31;
/// Bound of link ids in entries: a smaller entry is a link.
const LINKS: u32 = 1 << 30;
/// Entry of a table: the destination cannot be reached.
const UNREACHABLE: u32 = LINKS;
/// Entry of a table: the host is attached to this switch, and has a port of its own.
const LOCAL: u32 = LINKS + 1;

/// Forwarding tables: destination host → attachment (the switch that it hangs on) → group of equal-cost links.
///
/// One entry per (switch, attachment), as a switch aggregates the prefix of a rack; at the attachment itself the host's own
/// port. 320 switches × 128 attachments of a 1024-host fat tree take 160 KiB.
#[derive(Clone)]
pub struct Fib {
    attachments: usize,
    attachment_of: Table<u16, HostId>,
    /// Link to each host from the switch to which it is attached.
    host_port: Table<LinkId, HostId>,
    entries: Table<u32>,
    /// Groups, one after the other: length, then links.
    groups: Table<LinkId>,
}

/// Result of a look-up in the forwarding table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NextHop<'a> {
    One(LinkId),
    Several(&'a [LinkId]),
    None,
}

impl Fib {
    /// A table for `switches` switches; filled by [`Fib::set`]. `hosts` gives attachment and final link of each host, `groups`
    /// all groups, one after the other: length, then links.
    pub fn new(switches: usize, attachments: usize, hosts: &[(u16, LinkId)], groups: &[LinkId]) -> Self {
        assert!(groups.len() < GROUP as usize, "{} links in all groups", groups.len());
        Fib {
            attachments,
            attachment_of: hosts.iter().map(|(a, _)| *a).collect::<Vec<_>>().into(),
            host_port: hosts.iter().map(|(_, link)| *link).collect::<Vec<_>>().into(),
            entries: vec![UNREACHABLE; switches * attachments].into(),
            groups: groups.to_vec().into(),
        }
    }

    /// Declares `switch` to be `attachment`: its hosts are reached by their own ports.
    pub fn set_local(&mut self, switch: usize, attachment: usize) {
        self.entries[switch * self.attachments + attachment] = LOCAL;
    }

    /// Sets the links that `switch` may use towards `attachment`: the group that begins at `group`.
    pub fn set(&mut self, switch: usize, attachment: usize, group: usize) {
        self.entries[switch * self.attachments + attachment] = match self.group(group) {
            [] => UNREACHABLE,
            [one] => one.0,
            _ => group as u32 | GROUP,
        };
    }

    /// Adds a group of equal-cost links; gives its index.
    pub fn add_group(&mut self, links: &[LinkId]) -> usize {
        let at = self.groups.len();
        assert!(at < GROUP as usize, "{at} links in all groups");
        self.groups.push(LinkId(links.len() as u32));
        links.iter().for_each(|link| self.groups.push(*link));
        at
    }

    #[inline(always)]
    fn group(&self, at: usize) -> &[LinkId] {
        self.groups.slice(at + 1, self.groups[at].index())
    }

    /// The way from `switch` to `host`.
    #[inline(always)]
    pub fn lookup(&self, switch: SwitchId, host: HostId) -> NextHop<'_> {
        let attachment = self.attachment_of[host];
        let entry = self.entries[switch.index() * self.attachments + usize::from(attachment)];
        if entry < LINKS {
            NextHop::One(LinkId(entry))
        } else if entry >= GROUP {
            NextHop::Several(self.group((entry & !GROUP) as usize))
        } else if entry == LOCAL {
            NextHop::One(self.host_port[host])
        } else {
            NextHop::None
        }
    }

    /// Bytes of memory that the tables take.
    pub fn bytes(&self) -> usize {
        (self.entries.len() + self.groups.len() + self.host_port.len()) * 4 + self.attachment_of.len() * 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two switches with two hosts each at links 10 to 13, and a third between, at which nothing is attached: `0` has one link there, `2` two to
    /// each attachment.
    #[test]
    fn each_kind_of_entry_is_looked_up_as_it_was_set() {
        let hosts: Vec<(u16, LinkId)> = (0..4).map(|host| (host / 2, LinkId(10 + u32::from(host)))).collect();
        let mut fib = Fib::new(3, 2, &hosts, &[LinkId(0), LinkId(1), LinkId(20), LinkId(2), LinkId(30), LinkId(31)]);
        let way = |fib: &Fib, switch, host| match fib.lookup(SwitchId(switch), HostId(host)) {
            NextHop::One(link) => vec![link.0],
            NextHop::Several(links) => links.iter().map(|link| link.0).collect(),
            NextHop::None => vec![],
        };
        assert!((0..3).all(|switch| (0..4).all(|host| way(&fib, switch, host).is_empty())), "nothing is set");
        fib.set_local(0, 0);
        fib.set_local(1, 1);
        fib.set(0, 1, 1);
        fib.set(2, 1, 3);
        let more = fib.add_group(&[LinkId(40), LinkId(41), LinkId(42)]);
        fib.set(2, 0, more);
        for (switch, ways) in [
            (0, [vec![10], vec![11], vec![20], vec![20]]),
            (1, [vec![], vec![], vec![12], vec![13]]),
            (2, [vec![40, 41, 42], vec![40, 41, 42], vec![30, 31], vec![30, 31]]),
        ] {
            assert_eq!([0, 1, 2, 3].map(|host| way(&fib, switch, host)), ways, "switch {switch}");
        }
        // Without a link the destination cannot be reached any more.
        fib.set(0, 1, 0);
        assert_eq!(way(&fib, 0, 2), [0_u32; 0]);
        // Four bytes for each of 6 entries, 10 places of groups and 4 links to hosts, two for each attachment.
        assert_eq!(fib.bytes(), (6 + 10 + 4) * 4 + 4 * 2);
    }
}
