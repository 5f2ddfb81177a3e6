//! Logs against BTreeMap, and builders of trees.

use super::common::{assert_equal, bytes, ranks, removal_percent};
use std::collections::BTreeMap;
use syros_tree::{Builder, ById, ByPosition, List, Log, OutOfOrder};
use syros_types::Prng;

type Model = BTreeMap<u128, Vec<u8>>;

fn compare(tree: &Log, model: &Model) {
    let model: Vec<_> = model.iter().map(|(id, value)| (*id, value.clone())).collect();
    assert_equal(tree, &model, |(id, value)| (id, value.to_vec()));
}

fn run(seed: u64, steps: u64) {
    let mut prng = Prng::new(seed);
    let (mut tree, mut model) = (Log::new(), Model::new());
    let mut kept = Vec::new();
    let mut last = 0;
    for step in 0..steps {
        let known = match model.is_empty() {
            true => 0,
            false => *model.keys().nth(prng.below(model.len() as u64) as usize).unwrap(),
        };
        if prng.chance(removal_percent(step), 100) {
            let id = known.saturating_add(u128::from(prng.chance(1, 4)));
            assert_eq!(tree.remove(id), model.remove(&id).is_some());
        } else {
            let id = match prng.below(8) {
                0 => known,
                1 => u128::from(prng.next_u64()) << 64 | u128::from(prng.next_u64()),
                2 => u128::MAX - u128::from(prng.below(3)),
                3 => known.saturating_add(1),
                _ => {
                    last += u128::from(prng.below(3)) << 64 | 1;
                    last
                }
            };
            let value = bytes(&mut prng);
            assert_eq!(tree.insert(id, &value), model.insert(id, value).is_none());
        }
        let id = known.saturating_add(u128::from(prng.below(3)));
        assert_eq!(tree.get(id), model.get(&id).map(Vec::as_slice));
        assert_eq!(tree.count_before(id), model.range(..id).count() as u64);
        if step % 16 == 0 || model.len() < 20 {
            compare(&tree, &model);
        } else {
            assert_eq!(tree.check(), Ok(()));
        }
        match prng.below(60) {
            0 => kept.push((tree.clone(), model.clone())),
            1 => {
                let end = ranks(&mut prng, tree.len()).start;
                drop(tree.remove_range(..end));
                for _ in 0..end {
                    model.pop_first();
                }
            }
            _ => {}
        }
    }
    for (other, its_model) in kept {
        compare(&other, &its_model);
        compare(&rebuilt(&other), &its_model);
    }
}

/// The same elements in a tree that is built at once.
fn rebuilt(tree: &Log) -> Log {
    let mut builder = Builder::<ById>::new();
    for (id, value) in tree {
        builder.push(&Log::draft(id, value)).unwrap();
        assert_eq!(builder.push(&Log::draft(id, b"again")), Err(OutOfOrder));
    }
    builder.finish()
}

#[test]
fn a_log_is_a_map_of_ids() {
    for seed in 0..50 {
        run(seed, 1000);
    }
}

#[test]
fn a_tree_that_is_built_is_one_that_was_filled() {
    let mut prng = Prng::new(1);
    for length in (0..200).chain([1000, 2000, 4001, 50_000, 100_000]) {
        let mut builder = Builder::<ByPosition>::default();
        let mut model = Vec::new();
        for _ in 0..length {
            let element = bytes(&mut prng);
            let element = if length > 2000 { element[..element.len().min(20)].to_vec() } else { element };
            builder.push(&List::draft(&element)).unwrap();
            model.push(element);
        }
        assert_eq!(builder.len(), length);
        let mut tree: List = builder.finish();
        assert_equal(&tree, &model, <[u8]>::to_vec);
        for _ in 0..100 {
            let position = prng.below(model.len() as u64 + 1);
            tree.insert(position, b"more");
            model.insert(position as usize, b"more".to_vec());
        }
        assert_equal(&tree, &model, <[u8]>::to_vec);
    }
}

#[test]
fn an_element_may_have_sixteen_mebibytes() {
    let large = vec![7; 16 << 20];
    let mut tree = Log::new();
    for id in 0..100 {
        tree.insert(id, b"small");
    }
    tree.insert(50, &large);
    assert_eq!(tree.check(), Ok(()));
    assert_eq!(tree.get(50), Some(&large[..]));
    tree.insert(50, &large[1..]);
    assert_eq!(tree.get(50), Some(&large[1..]));
    tree.insert(50, b"");
    assert_eq!(tree.check(), Ok(()));
    assert!(tree.bytes() < 10_000);
}
