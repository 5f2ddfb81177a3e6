//! Lists against vectors.

use super::common::{assert_equal, bytes, ranks, removal_percent};
use std::collections::VecDeque;
use syros_tree::List;
use syros_types::Prng;

type Model = Vec<Vec<u8>>;

fn compare(tree: &List, model: &Model) {
    assert_equal(tree, model, <[u8]>::to_vec);
}

fn remove(tree: &mut List, model: &mut Model, prng: &mut Prng) {
    let length = model.len() as u64;
    let rank = match prng.below(4) {
        0 => 0,
        1 => length.saturating_sub(1),
        _ => prng.below(length + 1),
    };
    let removed = tree.remove_at(rank, <[u8]>::to_vec);
    assert_eq!(removed, (rank < length).then(|| model.remove(rank as usize)));
}

fn add(tree: &mut List, model: &mut Model, prng: &mut Prng) {
    let element = bytes(prng);
    let length = model.len() as u64;
    match prng.below(6) {
        0 => {
            tree.push_front(&element);
            model.insert(0, element);
        }
        1 => {
            tree.push_back(&element);
            model.push(element);
        }
        2 => {
            let position = prng.below(length + 1);
            assert_eq!(tree.set(position, &element), position < length);
            if position < length {
                model[position as usize] = element;
            }
        }
        _ => {
            let position = prng.below(length + 2);
            assert_eq!(tree.insert(position, &element), position <= length);
            if position <= length {
                model.insert(position as usize, element);
            }
        }
    }
}

fn run(seed: u64, steps: u64) {
    let mut prng = Prng::new(seed);
    let (mut tree, mut model) = (List::new(), Model::new());
    let mut kept = Vec::new();
    for step in 0..steps {
        if prng.chance(removal_percent(step), 100) {
            remove(&mut tree, &mut model, &mut prng);
        } else {
            add(&mut tree, &mut model, &mut prng);
        }
        if step % 16 == 0 || model.len() < 20 {
            compare(&tree, &model);
        } else {
            assert_eq!(tree.check(), Ok(()));
        }
        match prng.below(80) {
            0 => kept.push((tree.clone(), model.clone())),
            1 => {
                let range = ranks(&mut prng, tree.len());
                drop(tree.remove_range(range.clone()));
                model.drain((range.start as usize).min(model.len())..(range.end as usize).min(model.len()));
                compare(&tree, &model);
            }
            2 => {
                let at = prng.below(tree.len() + 2);
                let rest = tree.split_off(at);
                let its_model = model.split_off((at as usize).min(model.len()));
                compare(&rest, &its_model);
                compare(&tree, &model);
                if prng.chance(1, 2) {
                    (tree, model) = (rest, its_model);
                }
            }
            _ => {}
        }
        iterate(&tree, &model, &mut prng);
    }
    for (other, its_model) in kept {
        compare(&other, &its_model);
    }
}

/// Takes elements from both ends of a range, and passes over some.
fn iterate(tree: &List, model: &Model, prng: &mut Prng) {
    let range = ranks(prng, tree.len());
    let mut iter = tree.range(range.clone());
    let end = model.len().min(range.end as usize);
    let mut expected = model[end.min(range.start as usize)..end].iter().map(Vec::as_slice);
    assert_eq!(iter.len(), expected.len());
    for _ in 0..20 {
        match prng.below(4) {
            0 => assert_eq!(iter.next_back(), expected.next_back()),
            1 => {
                let count = prng.below(40) as usize;
                assert_eq!(iter.nth(count), expected.nth(count));
            }
            _ => assert_eq!(iter.next(), expected.next()),
        }
        assert_eq!(iter.len(), expected.len());
    }
}

#[test]
fn a_list_is_a_vector() {
    for seed in 0..60 {
        run(seed, 1000);
    }
}

#[test]
fn a_large_list_is_a_queue_at_both_ends() {
    let mut prng = Prng::new(4);
    let (mut tree, mut model) = (List::new(), VecDeque::new());
    for step in 0..200_000_u64 {
        let element = step.to_le_bytes()[..1 + (step % 8) as usize].to_vec();
        let grows = prng.chance(if step < 130_000 { 9 } else { 1 }, 10);
        match (grows, prng.chance(1, 2)) {
            (true, true) => {
                tree.push_front(&element);
                model.push_front(element);
            }
            (true, false) => {
                tree.push_back(&element);
                model.push_back(element);
            }
            (false, true) => assert_eq!(tree.pop_first(<[u8]>::to_vec), model.pop_front()),
            (false, false) => assert_eq!(tree.pop_last(<[u8]>::to_vec), model.pop_back()),
        }
        if step == 130_000 {
            assert!(tree.len() > 90_000);
            compare(&tree, &model.iter().cloned().collect());
        }
    }
    compare(&tree, &model.into_iter().collect());
}

#[test]
fn what_is_appended_in_order_fills_its_blocks() {
    let (mut back, mut front) = (List::new(), List::new());
    for _ in 0..10_000 {
        back.push_back(b"twelve bytes");
        front.push_front(b"twelve bytes");
    }
    for list in [back, front] {
        let blocks = list.blocks(0).count() as u64;
        // A block has a header of 8 bytes, and 14 bytes an element.
        assert_eq!(blocks, 10_000_u64.div_ceil((1000 - 8) / 14));
        assert!(list.bytes() < 10_000 * 16, "{}", list.bytes());
    }
}

#[test]
fn a_dropped_tree_is_given_back_in_steps_and_by_another_thread() {
    let mut tree = List::new();
    for number in 0..100_000_u64 {
        tree.push_back(&number.to_le_bytes());
    }
    let clone = tree.clone();
    let mut dismantle = tree.remove_range(10..99_000);
    let thread = std::thread::spawn(move || {
        let mut steps = 0;
        while dismantle.step(7) {
            steps += 1;
        }
        steps
    });
    // A clone holds the nodes, so their parents are given back and they are not.
    assert!(thread.join().unwrap() < 100);
    assert_eq!((tree.check(), clone.check()), (Ok(()), Ok(())));
    assert_eq!((tree.len(), clone.len()), (1010, 100_000));
    let bytes = clone.bytes();
    let mut dismantle = clone.dismantle();
    assert_eq!(dismantle.bytes(), bytes);
    let mut steps = 0;
    while dismantle.step(7) {
        steps += 1;
    }
    assert!(steps > 100, "{steps}");
    assert_eq!(dismantle.bytes(), 0);
}
