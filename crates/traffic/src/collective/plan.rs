//! Message plans of collective operations: sender, receiver and dependencies of each message.

use super::tree::Place;
use crate::generate::share;
use fanin_units::Span;

/// One operation of a job, as each rank performs it in every iteration.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Op {
    pub collective: &'static str,
    pub algorithm: &'static str,
    pub shape: Shape,
    /// Bytes of a rank's buffer.
    pub size: u64,
    pub channels: u32,
    /// Number of ranks in a group, and distance between its consecutive ranks.
    pub group: u32,
    pub stride: u32,
    /// Number of messages that a rank sends in one step on one channel.
    pub messages: u32,
    pub compute: Span,
    pub jitter: Span,
    pub work: Span,
    /// Parent and children of each position, per tree.
    pub trees: Vec<Vec<Place>>,
}

/// Message pattern of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Ring of `steps` steps; in step k position p sends block p + `first` − k.
    Ring { steps: u32, first: u32 },
    /// Reduction up to a root and broadcast down again; each tree carries an equal share of the bytes.
    Tree,
    /// All-to-all: step i sends to position p + i, `limit` steps at once; if staggered, each after the data of step i − 1 has
    /// arrived.
    Exchange { limit: u32, staggered: bool },
}

/// Number that distinguishes the connections between two ranks.
pub(super) type Lane = u32;
pub(super) const LANES: u32 = 8;
pub(super) const UP: u32 = 1;
pub(super) const DOWN: u32 = 2;

/// Dataflow rule of a rank: firing f takes message f of each of `ins`, and sends message f + `initial` on each of `outs`, if
/// there is one. The first `initial` messages are sent at once.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Rule {
    pub ins: Vec<u32>,
    pub outs: Vec<u32>,
    pub initial: u32,
    /// Total number of messages on each of `outs`.
    pub sends: u32,
    /// Total number of messages on each of `ins`.
    pub firings: u32,
}

/// One rank's rules and steps in an operation; connections are numbered.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Part {
    pub rules: Vec<Rule>,
    /// Pairs of connection and the rule that takes its messages, sorted by connection.
    pub of_in: Vec<(u32, u32)>,
    /// Steps of an exchange: the connections on each of which it sends one message. Rules take the data that step i receives:
    /// `channels` rules in a row.
    pub steps: Vec<Vec<u32>>,
    /// Pairs of connection and the step that it belongs to, sorted by connection.
    pub of_out: Vec<(u32, u32)>,
}

impl Op {
    /// True if every rank sends directly to each other one.
    pub fn direct(&self) -> bool {
        matches!(self.shape, Shape::Exchange { .. })
    }

    /// Group of `rank`, and its position within the group.
    pub fn place(&self, rank: u32) -> (u32, u32) {
        let span = self.group * self.stride;
        (rank / span * self.stride + rank % self.stride, rank % span / self.stride)
    }

    /// Rank at a position of a group.
    pub fn rank(&self, group: u32, position: u32) -> u32 {
        group / self.stride * self.group * self.stride + position * self.stride + group % self.stride
    }

    /// Size of message `j` that position `from` sends to position `to` in this operation.
    pub fn message(&self, lane: Lane, [from, to]: [u32; 2], j: u32) -> u64 {
        let of = |part: u64, parts: u32, number: u32| share(part, u64::from(parts), u64::from(number));
        let n = self.group;
        match self.shape {
            Shape::Ring { first, .. } => {
                let (step, j) = (j / self.messages, j % self.messages);
                let block = (from + first + n - step % n) % n;
                of(of(of(self.size, self.channels, lane / LANES), n, block), self.messages, j)
            }
            Shape::Tree => {
                let (tree, trees) = (lane % LANES / (UP + DOWN), self.trees.len() as u32);
                of(of(of(self.size, self.channels, lane / LANES), trees, tree), self.messages, j)
            }
            Shape::Exchange { .. } => of(of(self.size, n, to), self.channels, lane / LANES),
        }
    }

    /// Builds the part of `rank`; `connect` numbers connections by ranks and lane.
    pub fn part(&self, rank: u32, connect: &mut impl FnMut([u32; 2], Lane) -> u32) -> Part {
        let (group, position) = self.place(rank);
        let n = self.group;
        let mut connect = |from: u32, to: u32, lane: Lane| connect([self.rank(group, from), self.rank(group, to)], lane);
        let mut part = Part::default();
        match self.shape {
            Shape::Ring { steps, .. } => {
                let all = steps * self.messages;
                for channel in 0..self.channels {
                    part.rules.push(Rule {
                        ins: vec![connect((position + n - 1) % n, position, channel * LANES)],
                        outs: vec![connect(position, (position + 1) % n, channel * LANES)],
                        initial: self.messages,
                        sends: all,
                        firings: all,
                    });
                }
            }
            Shape::Tree => {
                for channel in 0..self.channels {
                    for (tree, places) in (0..).zip(&self.trees) {
                        let lane = channel * LANES + tree * (UP + DOWN);
                        let place = &places[position as usize];
                        part.rules.extend(self.tree_rules(position, place, |from, to, way| connect(from, to, lane + way)));
                    }
                }
            }
            Shape::Exchange { .. } => {
                for step in 1..n {
                    let (to, from) = ((position + step) % n, (position + n - step) % n);
                    let lanes = || (0..self.channels).map(|channel| channel * LANES);
                    part.steps.push(lanes().map(|lane| connect(position, to, lane)).collect());
                    let take = |lane| Rule { ins: vec![connect(from, position, lane)], firings: 1, ..Rule::default() };
                    part.rules.extend(lanes().map(take));
                }
            }
        }
        let ins = (0..).zip(&part.rules).flat_map(|(rule, r)| r.ins.iter().map(move |conn| (*conn, rule)));
        part.of_in = ins.collect();
        part.of_in.sort_unstable();
        let outs = (0..).zip(&part.steps).flat_map(|(step, conns)| conns.iter().map(move |conn| (*conn, step)));
        part.of_out = outs.collect();
        part.of_out.sort_unstable();
        part
    }

    /// Rules of one position in one tree; way 0 leads up to the parent, the others down to the children.
    fn tree_rules(&self, position: u32, place: &Place, mut connect: impl FnMut(u32, u32, u32) -> u32) -> Vec<Rule> {
        let all = self.messages;
        let from: Vec<u32> = place.children.iter().map(|child| connect(*child, position, UP)).collect();
        let to: Vec<u32> = place.children.iter().map(|child| connect(position, *child, DOWN)).collect();
        let up = Rule { sends: all, firings: all, ..Rule::default() };
        let Some(parent) = place.parent else { return vec![Rule { ins: from, outs: to, ..up }] };
        let [to_parent, from_parent] = [vec![connect(position, parent, UP)], vec![connect(parent, position, DOWN)]];
        let leaf = from.is_empty();
        let down = Rule { ins: from_parent, outs: to, ..up.clone() };
        // A leaf has nothing to wait for.
        let up =
            Rule { ins: from, outs: to_parent, initial: if leaf { all } else { 0 }, firings: if leaf { 0 } else { all }, ..up };
        vec![up, Rule { sends: if leaf { 0 } else { all }, ..down }]
    }
}

impl Part {
    /// Connections that this part sends on, each with its number of messages.
    pub fn outs(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let rules = self.rules.iter().flat_map(|rule| rule.outs.iter().map(|out| (*out, rule.sends)));
        rules.chain(self.steps.iter().flatten().map(|out| (*out, 1)))
    }

    /// Connections that this part receives on, each with its number of messages.
    pub fn ins(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.rules.iter().flat_map(|rule| rule.ins.iter().map(|conn| (*conn, rule.firings)))
    }

    /// Number of firings and steps of this part.
    pub fn length(&self) -> u64 {
        self.rules.iter().map(|rule| u64::from(rule.firings)).sum::<u64>() + self.steps.len() as u64
    }
}
