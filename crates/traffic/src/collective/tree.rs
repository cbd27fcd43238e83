//! Binary trees over the ranks of a group, for all-reduce.

/// Parent and children of a position in a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub parent: Option<u32>,
    pub children: Vec<u32>,
}

/// Builds the in-order binary tree of `n` positions: 0 is the root, and every odd position is a leaf.
///
/// A position whose lowest set bit is b has the children v − b/2 and v + b/2, or where that is beyond the end, the nearest
/// v + b/4, v + b/8, … that is not. Source: SANDERS-TREES §2; NCCL (ncclGetBtree).
fn in_order(n: u32) -> Vec<Place> {
    let mut places = vec![Place::default(); n as usize];
    let mut join = |parent: u32, child: u32| {
        places[parent as usize].children.push(child);
        places[child as usize].parent = Some(parent);
    };
    if n > 1 {
        join(0, 1 << (n - 1).ilog2());
    }
    for v in 1..n {
        let half = (v & v.wrapping_neg()) / 2;
        if half > 0 {
            join(v, v - half);
        }
        let right =
            std::iter::successors(Some(half), |step| Some(step / 2)).take_while(|step| *step > 0).find(|step| v + step < n);
        if let Some(step) = right {
            join(v, v + step);
        }
    }
    places
}

/// Builds one of the two trees of a double binary tree: the second is the first one mirrored, or with an odd number of
/// positions shifted by one, so that a position with children in one is a leaf in the other (all but one). Source:
/// SANDERS-TREES §2; NCCL (ncclGetDtree).
pub(super) fn tree(n: u32, tree: u32) -> Vec<Place> {
    let map = |v: u32| match (tree, n % 2) {
        (0, _) => v,
        (_, 0) => n - 1 - v,
        _ => (v + 1) % n,
    };
    let mut places = vec![Place::default(); n as usize];
    for (v, place) in (0..).zip(in_order(n)) {
        let children = place.children.into_iter().map(map).collect();
        places[map(v) as usize] = Place { parent: place.parent.map(map), children };
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each tree reaches every position once, is binary and as deep as a binary tree must be, or one level more; with an even number no
    /// position has children in both.
    #[test]
    fn two_trees_span_all_positions_and_share_the_work() {
        for n in 2..=130 {
            let trees = [0, 1].map(|number| tree(n, number));
            for tree in &trees {
                let roots: Vec<u32> = (0..n).filter(|v| tree[*v as usize].parent.is_none()).collect();
                let [root] = roots[..] else { panic!("{n}: roots {roots:?}") };
                let (mut seen, mut level, mut depth) = (1, vec![root], 0);
                while !level.is_empty() {
                    let next: Vec<u32> = level.iter().flat_map(|v| tree[*v as usize].children.clone()).collect();
                    assert!(level.iter().all(|v| tree[*v as usize].children.len() <= 2));
                    assert!(next.iter().all(|v| tree[*v as usize].parent.is_some_and(|parent| level.contains(&parent))));
                    seen += next.len() as u32;
                    (level, depth) = (next, depth + 1);
                }
                assert_eq!(seen, n, "{n} positions");
                assert!(depth <= n.ilog2() + 2, "{n} positions, depth {depth}");
            }
            let both = (0..n as usize).filter(|v| trees.iter().all(|tree| !tree[*v].children.is_empty())).count();
            assert!(both <= usize::from(n % 2 == 1), "{n} positions, {both} with children in both trees");
        }
    }

    #[test]
    fn a_tree_of_ten_is_the_known_one() {
        let children = |v: usize| tree(10, 0)[v].children.clone();
        assert_eq!((children(0), children(8), children(4)), (vec![8], vec![4, 9], vec![2, 6]));
        assert_eq!(tree(10, 1)[9], Place { parent: None, children: vec![1] });
    }
}
