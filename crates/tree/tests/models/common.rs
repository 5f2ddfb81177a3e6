//! What the model-based tests of all orders share.

use std::fmt::Debug;
use syros_tree::{Order, Tree};
use syros_types::Prng;

/// Bytes of a length that is mostly small, and sometimes near to where a block is half full, full, or too small.
pub(super) fn bytes(prng: &mut Prng) -> Vec<u8> {
    let length = match prng.below(100) {
        0..4 => 0,
        4..70 => 1 + prng.below(16),
        70..85 => prng.below(130),
        85..90 => 120 + prng.below(140),
        90..94 => 470 + prng.below(60),
        94..97 => 940 + prng.below(80),
        97..99 => 300 + prng.below(500),
        _ => 1000 + prng.below(4000),
    };
    let mut bytes = vec![0; length as usize];
    bytes.fill_with(|| prng.next_u64() as u8);
    bytes
}

/// How likely, in percent, a step of a run removes something: runs grow, stay, shrink and empty their trees.
pub(super) fn removal_percent(step: u64) -> u64 {
    [20, 50, 30, 70, 45, 85][(step / 150 % 6) as usize]
}

/// Looks at the tree's own invariants and at all elements, from both ends and by rank.
pub(super) fn assert_equal<O, T>(tree: &Tree<O>, model: &[T], item: impl Fn(O::Item<'_>) -> T)
where
    O: Order,
    T: PartialEq + Debug,
{
    assert_eq!(tree.check(), Ok(()));
    assert_eq!(tree.len(), model.len() as u64);
    assert_eq!(tree.is_empty(), model.is_empty());
    assert!(are_equal(tree.iter().map(&item), model.iter()), "forwards");
    assert!(are_equal(tree.iter().rev().map(&item), model.iter().rev()), "backwards");
    assert_eq!(tree.first().map(&item).as_ref(), model.first());
    assert_eq!(tree.last().map(&item).as_ref(), model.last());
    let step = model.len() / 50 + 1;
    for rank in (0..model.len()).step_by(step) {
        assert_eq!(tree.nth(rank as u64).map(&item).as_ref(), model.get(rank));
    }
    assert!(tree.nth(model.len() as u64).is_none());
    let mut rank = 0;
    for leaf in tree.blocks(0) {
        assert_eq!(leaf.rank(), rank);
        assert!(are_equal(leaf.items().map(&item), model[rank as usize..][..leaf.len()].iter()));
        rank += leaf.len() as u64;
    }
    assert_eq!(rank, tree.len());
}

fn are_equal<'a, T: PartialEq + 'a>(
    mut left: impl Iterator<Item = T>,
    mut right: impl Iterator<Item = &'a T>,
) -> bool {
    left.by_ref().all(|item| right.next() == Some(&item)) && right.next().is_none()
}

/// A range of ranks, often an edge or empty, sometimes beyond the end.
pub(super) fn ranks(prng: &mut Prng, length: u64) -> std::ops::Range<u64> {
    let edge = |prng: &mut Prng| match prng.below(6) {
        0 => 0,
        1 => length,
        2 => length + 3,
        _ => prng.below(length + 1),
    };
    let (a, b) = (edge(prng), edge(prng));
    a.min(b)..a.max(b)
}
