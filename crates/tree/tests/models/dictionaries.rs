//! Dictionaries against BTreeMap.

use super::common::{assert_equal, bytes, ranks, removal_percent};
use std::collections::BTreeMap;
use syros_tree::{Builder, ByBytes, Dictionary, OutOfOrder};
use syros_types::Prng;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn compare(tree: &Dictionary, model: &Model) {
    let model: Vec<_> = model.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    assert_equal(tree, &model, |(key, value)| (key.to_vec(), value.to_vec()));
}

/// A key of few different bytes, zeros among them, so that many begin alike, and some are as another one with zeros behind it.
fn key(prng: &mut Prng) -> Vec<u8> {
    let common = [0, 3, 15, 16, 17, 40][prng.below(6) as usize];
    let mut key = vec![prng.below(2) as u8; common];
    key.extend((0..prng.below(5)).map(|_| [0, 0, 1, 255][prng.below(4) as usize]));
    key
}

#[test]
fn a_dictionary_is_a_map_in_the_order_of_bytes() {
    for seed in 0..50 {
        let mut prng = Prng::new(seed);
        let (mut tree, mut model) = (Dictionary::new(), Model::new());
        let mut kept = Vec::new();
        for step in 0..1000 {
            let (key, other) = (key(&mut prng), key(&mut prng));
            if prng.chance(removal_percent(step), 100) {
                assert_eq!(tree.remove(&key), model.remove(&key).is_some());
            } else {
                let value = bytes(&mut prng);
                assert_eq!(tree.insert(&key, &value), model.insert(key, value).is_none());
            }
            assert_eq!(tree.get(&other), model.get(&other).map(Vec::as_slice));
            assert_eq!(tree.count_before(&other), model.range(..other).count() as u64);
            assert_eq!(tree.check(), Ok(()));
            match prng.below(60) {
                0 => kept.push((tree.clone(), model.clone())),
                1 => {
                    let end = ranks(&mut prng, tree.len()).start;
                    drop(tree.remove_range(..end));
                    (0..end).for_each(|_| drop(model.pop_first()));
                }
                _ => {}
            }
        }
        compare(&tree, &model);
        for (other, its_model) in kept {
            compare(&other, &its_model);
            let mut builder = Builder::<ByBytes>::new();
            for (key, value) in &other {
                builder.push(&Dictionary::draft(key, value)).unwrap();
                assert_eq!(builder.push(&Dictionary::draft(key, b"again")), Err(OutOfOrder));
            }
            compare(&builder.finish(), &its_model);
        }
    }
}
