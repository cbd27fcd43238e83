//! Source routes: found when a flow starts, carried by its packets.

use fanin_units::LinkId;

/// Links of a route that a packet keeps.
const LINKS: usize = 8;
/// Link id that stands for none.
const NONE: LinkId = LinkId(u32::MAX);

/// Source route: the links that packets of an end take, from its host's own to the one that leads to the other host, where
/// nothing but tables and the packet decides it; no switch on the way looks into its tables again. By hop limit, modulo
/// [`LINKS`].
///
/// A packet that comes by one of them and was not given another destination leaves by the next, whatever has happened to it before. One that was
/// sent another way comes by another link, and is looked up in tables as all packets are that have no source route.
#[derive(Clone, Copy, Debug)]
#[repr(align(16))]
pub struct Route([LinkId; LINKS]);

impl Default for Route {
    fn default() -> Self {
        Route::NONE
    }
}

impl Route {
    /// Route of packets without a source route: every switch looks into its tables.
    pub const NONE: Route = Route([NONE; LINKS]);

    /// Source route along a path of links, for packets that leave their host over the first with this hop limit. There is none
    /// along a path of more links than it has room for.
    pub fn along(path: &[LinkId], ttl: u8) -> Route {
        let mut route = Route::NONE;
        if path.len() <= LINKS {
            (0..).zip(path).for_each(|(hops, link)| route.0[place(ttl.wrapping_sub(hops))] = *link);
        }
        route
    }

    /// Link by which a packet with this hop limit leaves the switch that it has reached over link `via`, if its source route
    /// contains `via`. The last link of a route leads to a host, not to a switch.
    #[inline(always)]
    pub fn next(&self, via: LinkId, ttl: u8) -> Option<LinkId> {
        let next = self.0[place(ttl.wrapping_sub(1))];
        let settled = self.0[place(ttl)] == via;
        debug_assert!(!settled || next != NONE, "link {via} is the last one of {self:?}");
        settled.then_some(next)
    }
}

#[inline(always)]
fn place(ttl: u8) -> usize {
    usize::from(ttl) % LINKS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_follows_its_path_and_no_other() {
        for ttl in [64u8, 255, 3, 1] {
            let path = [7, 3, 9, 2].map(LinkId);
            let route = Route::along(&path, ttl);
            let mut left = ttl;
            for pair in path.windows(2) {
                assert_eq!(route.next(pair[0], left), Some(pair[1]));
                assert_eq!(route.next(LinkId(5), left), None, "over a link that is not on the path");
                left = left.wrapping_sub(1);
            }
        }
    }

    #[test]
    fn longest_path_is_settled_and_a_longer_one_is_not() {
        let path: Vec<LinkId> = (10..18).map(LinkId).collect();
        let route = Route::along(&path, 64);
        let follow = |at: u32| route.next(LinkId(10 + at), 64 - at as u8);
        assert_eq!((0..7).map(follow).collect::<Vec<_>>(), (11..18).map(|link| Some(LinkId(link))).collect::<Vec<_>>());
        let longer: Vec<LinkId> = (10..19).map(LinkId).collect();
        let route = Route::along(&longer, 64);
        assert!((0..9).all(|at| route.next(LinkId(10 + at), 64 - at as u8).is_none()));
    }
}
