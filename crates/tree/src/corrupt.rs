//! The check finds what is planted: each kind of damage is done to a tree that has just been found sound.

use crate::block::{Block, Part};
use crate::node::{Child, Inner, Sibling, lowest as lowest_separator};
use crate::{ById, Flaw, List, Log, Map, Order, Tree};
use std::sync::Arc;

/// A tree of three levels.
fn log() -> Log {
    let mut log = Log::new();
    for id in 0..700_u128 {
        log.insert(id * 2, b"0123456789");
    }
    assert_eq!(log.check(), Ok(()));
    log
}

fn root<O: Order>(tree: &mut Tree<O>) -> &mut Inner<O> {
    match &mut tree.root {
        Some(Child::Inner(inner)) => Arc::make_mut(inner),
        _ => panic!("the tree is higher"),
    }
}

/// The node above the leaves that is second to the left.
fn lowest<O: Order>(tree: &mut Tree<O>) -> &mut Inner<O> {
    match &mut root(tree).children[1] {
        Child::Inner(inner) => Arc::make_mut(inner),
        Child::Leaf(_) | Child::Paged(_) => panic!("the tree is higher"),
    }
}

fn leaf<O: Order>(tree: &mut Tree<O>) -> &mut Block<O> {
    match &mut lowest(tree).children[2] {
        Child::Leaf(block) => block,
        Child::Inner(_) | Child::Paged(_) => panic!("the tree is lower"),
    }
}

/// Makes counts and bytes right, so that only what else was damaged is wrong.
fn add_up<O: Order>(tree: &mut Tree<O>) {
    let inner = lowest(tree);
    inner.counts = inner.children.iter().map(Child::count).collect();
    inner.extent = inner.children.iter().map(Child::extent).sum();
    let inner = root(tree);
    inner.counts = inner.children.iter().map(Child::count).collect();
    inner.extent = inner.children.iter().map(Child::extent).sum();
    tree.count = tree.root.as_ref().map_or(0, Child::count);
}

#[track_caller]
fn assert_found(flaw: Flaw, damage: impl FnOnce(&mut Log)) {
    let mut tree = log();
    damage(&mut tree);
    assert_eq!(tree.check(), Err(flaw));
}

#[test]
fn wrong_numbers_are_found() {
    assert_found(Flaw::Count, |tree| tree.count += 1);
    assert_found(Flaw::Count, |tree| root(tree).counts[0] += 1);
    assert_found(Flaw::Count, |tree| lowest(tree).counts[3] -= 1);
    assert_found(Flaw::Count, |tree| tree.root = None);
    assert_found(Flaw::Bytes, |tree| root(tree).extent.memory += 1);
    assert_found(Flaw::Bytes, |tree| lowest(tree).extent.elements -= 1);
}

#[test]
fn elements_out_of_order_are_found() {
    // The first fixed part of a block, an id, becomes that of the next one, or a greater one.
    assert_found(Flaw::Order, |tree| leaf(tree).bytes_mut().copy_within(8 + 16..8 + 32, 8));
    assert_found(Flaw::Order, |tree| leaf(tree).bytes_mut()[8 + 10] = 1);
    // Two leaves change places, and separators with them, as far as they can.
    assert_found(Flaw::Order, |tree| {
        let inner = lowest(tree);
        inner.children.swap(1, 2);
        inner.separators.heads_mut().copy_within(2..4, 1);
        inner.counts.swap(1, 2);
    });
}

#[test]
fn wrong_separators_are_found() {
    assert_found(Flaw::Separator, |tree| lowest(tree).separators.heads_mut()[3] += 1);
    assert_found(Flaw::Separator, |tree| lowest(tree).separators.heads_mut()[3] -= 2);
    assert_found(Flaw::Separator, |tree| root(tree).separators.heads_mut()[1] += 1);
    assert_found(Flaw::Separator, |tree| root(tree).separators.heads_mut()[1] -= 2);
}

#[test]
fn wrong_shapes_are_found() {
    assert_found(Flaw::Depth, |tree| {
        let inner = root(tree);
        let separator = inner.separators.get(1);
        let child = Child::Inner(Arc::new(Inner::above(separator.clone(), inner.remove(1))));
        inner.insert(1, Sibling { separator, child });
    });
    assert_found(Flaw::Size, |tree| {
        let root = tree.root.take().unwrap();
        tree.root = Some(Child::Inner(Arc::new(Inner::above(lowest_separator::<ById>(), root))));
    });
    assert_found(Flaw::Size, |tree| {
        lowest(tree).separators.heads_mut().pop();
    });
    assert_found(Flaw::Size, |tree| {
        let inner = lowest(tree);
        let empty =
            Sibling { separator: lowest_separator::<ById>(), child: Child::Leaf(Block::<ById>::with_room()) };
        inner.insert(0, empty);
        inner.separators.heads_mut()[1] = 0;
        add_up(tree);
    });
}

#[test]
fn neighbours_that_were_not_merged_are_found() {
    assert_found(Flaw::Fill, |tree| {
        // Two leaves lose most of their elements behind the tree's back.
        for child in &mut lowest(tree).children[2..4] {
            let Child::Leaf(block) = child else { panic!("the tree is lower") };
            *block = Block::compose(&[Part::Old(block.elements(), 0..3)]);
        }
        add_up(tree);
    });
}

#[test]
fn malformed_blocks_are_found() {
    // The beginnings of the rests are behind the ids.
    let starts = |tree: &mut Log| 8 + leaf(tree).elements().len() * 16;
    assert_found(Flaw::Format, |tree| {
        let at = starts(tree);
        leaf(tree).bytes_mut()[at] = 1;
    });
    assert_found(Flaw::Format, |tree| {
        let at = starts(tree);
        leaf(tree).bytes_mut()[at + 7] = 0xff;
    });
    assert_found(Flaw::Format, |tree| leaf(tree).bytes_mut()[5] = 0xff);
    assert_found(Flaw::Size, |tree| leaf(tree).bytes_mut()[0] = 0);
    let mut map = <Map>::new();
    for number in 0..400_u64 {
        map.insert(&number.to_le_bytes(), b"value");
    }
    assert_eq!(map.check(), Ok(()));
    // The key of the first element is another one than its hash was made of.
    let block = leaf(&mut map);
    let rest = 8 + block.elements().len() * 6;
    block.bytes_mut()[rest + 1] ^= 1;
    assert_eq!(map.check(), Err(Flaw::Format));
}

#[test]
fn trees_may_be_sent_to_other_threads() {
    fn assert_send_and_sync<T: Send + Sync>() {}
    assert_send_and_sync::<(Map, List, Log)>();
    assert_send_and_sync::<crate::Dismantle<ById>>();
}
