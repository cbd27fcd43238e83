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
