//! Maps and sets against the collections of the standard library.

use super::common::{assert_equal, bytes, ranks, removal_percent};
use std::collections::{BTreeMap, BTreeSet};
use syros_tree::{Builder, ByHash, Hashing, KeyHash, Map, Members, Position, Set};
use syros_types::{Prng, key_hash};

/// All keys collide.
struct One;

impl Hashing for One {
    fn hash(_: &[u8]) -> u64 {
        7
    }
}

/// Keys have few hashes, the least and the greatest among them.
struct Few;

impl Hashing for Few {
    fn hash(key: &[u8]) -> u64 {
        [0, 1, 1 << 32, u64::MAX - 1, u64::MAX][(key_hash(key) % 5) as usize]
    }
}

/// What blocks keep of the hashes is equal, and they differ in the rest.
struct Low;

impl Hashing for Low {
    fn hash(key: &[u8]) -> u64 {
        key_hash(key) >> 40
    }
}

type Model = BTreeMap<(u64, Vec<u8>), Vec<u8>>;

fn key(prng: &mut Prng, model: &Model) -> Vec<u8> {
    if prng.chance(1, 2) && !model.is_empty() {
        return model.keys().nth(prng.below(model.len() as u64) as usize).map(|key| key.1.clone()).unwrap();
    }
    match prng.below(3) {
        0 => bytes(prng),
        1 => format!("field:{}", prng.below(400)).into_bytes(),
        // Keys that are long and alike, so that separators are.
        _ => [vec![b'x'; 300], vec![prng.below(50) as u8]].concat(),
    }
}

fn compare<H: Hashing>(tree: &Map<H>, model: &Model) {
    let model: Vec<_> = model.iter().map(|(key, value)| (key.1.clone(), value.clone())).collect();
    assert_equal(tree, &model, |(key, value)| (key.to_vec(), value.to_vec()));
}

fn run<H: Hashing>(seed: u64, steps: u64) {
    let mut prng = Prng::new(seed);
    let (mut tree, mut model) = (Map::<H>::new(), Model::new());
    let mut kept = Vec::new();
    for step in 0..steps {
        let key = key(&mut prng, &model);
        let place = (H::hash(&key), key.clone());
        if prng.chance(removal_percent(step), 100) {
            let mut seen = None;
            let expected = model.remove(&place);
            assert_eq!(tree.remove_with(&key, |old| seen = Some(old.to_vec())), expected.is_some());
            assert_eq!(seen, expected);
        } else {
            let (value, mut seen) = (bytes(&mut prng), None);
            let expected = model.insert(place, value.clone());
            assert_eq!(tree.insert_with(&key, &value, |old| seen = Some(old.to_vec())), expected.is_none());
            assert_eq!(seen, expected);
        }
        ask(&tree, &model, &mut prng);
        if step % 16 == 0 || model.len() < 20 {
            compare(&tree, &model);
        } else {
            assert_eq!(tree.check(), Ok(()));
        }
        match prng.below(60) {
            0 => kept.push((tree.clone(), model.clone())),
            1 if kept.len() > 2 => {
                let (other, its_model) = kept.swap_remove(prng.below(kept.len() as u64) as usize);
                compare(&other, &its_model);
                let mut dismantle = other.dismantle();
                while dismantle.step(1 + prng.below(5) as usize) {}
            }
            2 => cut(&mut tree, &mut model, &mut prng),
            _ => {}
        }
    }
    for (other, its_model) in kept {
        compare(&other, &its_model);
    }
    compare(&tree, &model);
}

/// Asks what changes nothing.
fn ask<H: Hashing>(tree: &Map<H>, model: &Model, prng: &mut Prng) {
    let key = key(prng, model);
    let place = (H::hash(&key), key.clone());
    assert_eq!(tree.get(&key), model.get(&place).map(Vec::as_slice));
    assert_eq!(tree.contains(&key), model.contains_key(&place));
    let before = model.range(..&place).count() as u64;
    assert_eq!(tree.count_before(Map::<H>::position(&key)), before);
    assert_eq!(tree.rank(Map::<H>::position(&key)).is_ok(), model.contains_key(&place));
    let hash = H::hash(&key).wrapping_add(prng.below(3)).wrapping_sub(1);
    let before = model.keys().filter(|place| place.0 < hash).count() as u64;
    assert_eq!(tree.count_before(Position::first_of(hash)), before);
}

/// Removes a range of ranks, or everything behind one.
fn cut<H: Hashing>(tree: &mut Map<H>, model: &mut Model, prng: &mut Prng) {
    let length = model.len() as u64;
    let range = ranks(prng, length);
    if prng.chance(1, 3) {
        let rest = tree.split_off(range.start);
        let end = model.len().min(range.start as usize);
        let place = model.keys().nth(end).cloned();
        let other = place.map_or_else(Model::new, |place| model.split_off(&place));
        compare(&rest, &other);
    } else {
        let mut removed = tree.remove_range(range.clone());
        while removed.step(1) {}
        let mut rank = 0;
        model.retain(|_, _| {
            rank += 1;
            !range.contains(&(rank - 1))
        });
    }
    compare(tree, model);
}

#[test]
fn a_map_is_one_whatever_its_hashes() {
    for seed in 0..30 {
        run::<KeyHash>(seed, 1000);
    }
    for seed in 100..110 {
        run::<One>(seed, 800);
        run::<Few>(seed, 800);
        run::<Low>(seed, 800);
    }
}

#[test]
fn a_set_is_one() {
    for seed in 0..20 {
        let mut prng = Prng::new(seed);
        let (mut tree, mut model) = (<Set>::new(), BTreeSet::new());
        let mut kept = Vec::new();
        for step in 0..1200 {
            let member = match prng.chance(1, 3) {
                true => bytes(&mut prng),
                false => prng.below(200).to_string().into_bytes(),
            };
            let place = (key_hash(&member), member.clone());
            if prng.chance(removal_percent(step), 100) {
                assert_eq!(tree.remove(&member), model.remove(&place));
            } else {
                assert_eq!(tree.insert(&member), model.insert(place));
            }
            assert_eq!(tree.check(), Ok(()));
            if step % 100 == 0 {
                kept.push((tree.clone(), model.clone()));
            }
        }
        kept.push((tree, model));
        for (tree, model) in kept {
            let model: Vec<_> = model.into_iter().map(|(_, member)| member).collect();
            let mut builder = Builder::<ByHash<Members>>::new();
            for member in &tree {
                builder.push(&<Set>::draft(member)).unwrap();
            }
            assert_equal(&builder.finish(), &model, <[u8]>::to_vec);
            assert_equal(&tree, &model, <[u8]>::to_vec);
        }
    }
}

/// Scans while elements come and go, and returns how often each element was in a step.
fn scan<H: Hashing>(seed: u64) {
    let mut prng = Prng::new(seed);
    let mut tree = Set::<H>::new();
    for number in 0..400_u64 {
        tree.insert(number.to_string().as_bytes());
    }
    let mut seen = BTreeMap::<Vec<u8>, u32>::new();
    let mut cursor = 0;
    loop {
        let step = tree.scan(cursor, prng.below(30));
        cursor = step.cursor;
        for member in step.items {
            *seen.entry(member.to_vec()).or_default() += 1;
        }
        if cursor == 0 {
            break;
        }
        for _ in 0..prng.below(20) {
            let other = format!("other:{}", prng.below(200));
            if prng.chance(1, 2) {
                tree.insert(other.as_bytes());
            } else {
                tree.remove(other.as_bytes());
            }
        }
    }
    for number in 0..400_u64 {
        assert_eq!(seen.get(number.to_string().as_bytes()), Some(&1), "seed {seed}: {number}");
    }
}

#[test]
fn a_scan_sees_once_whatever_is_there_throughout() {
    for seed in 0..50 {
        scan::<KeyHash>(seed);
        scan::<Few>(seed);
        scan::<Low>(seed);
    }
    scan::<One>(1);
}

#[test]
fn answers_do_not_depend_on_what_was_done_before() {
    // The same elements, inserted in two orders, one of them with others that are removed again.
    let mut prng = Prng::new(3);
    let (mut one, mut other) = (<Map>::new(), <Map>::new());
    let mut keys: Vec<Vec<u8>> = (0..3000_u64).map(|number| number.to_string().into_bytes()).collect();
    for key in &keys {
        one.insert(key, b"value");
        other.insert(&[key, &b"+"[..]].concat(), key);
    }
    for index in (1..keys.len()).rev() {
        keys.swap(index, prng.below(index as u64 + 1) as usize);
    }
    for key in &keys {
        other.insert(key, b"another value");
    }
    for key in &keys {
        other.insert(key, b"value");
        assert!(other.remove(&[key, &b"+"[..]].concat()));
    }
    assert_eq!((one.check(), other.check()), (Ok(()), Ok(())));
    assert!(one.iter().eq(other.iter()));
    for cursor in [0, 1, u64::MAX / 3, u64::MAX] {
        let (one, other) = (one.scan(cursor, 10), other.scan(cursor, 10));
        assert_eq!(one.cursor, other.cursor);
        assert!(one.items.eq(other.items));
    }
}

#[test]
fn a_large_map_is_one() {
    let mut prng = Prng::new(5);
    let (mut tree, mut model) = (<Map>::new(), BTreeMap::new());
    for step in 0..100_000_u64 {
        let (key, value) = (prng.below(200_000).to_string().into_bytes(), step.to_string().into_bytes());
        assert_eq!(tree.insert(&key, &value), model.insert((key_hash(&key), key), value).is_none());
        if step % 20_000 == 0 {
            assert_eq!(tree.check(), Ok(()));
        }
    }
    let (whole, its_model) = (tree.clone(), model.clone());
    compare(&whole, &its_model);
    for step in 0..150_000_u64 {
        let key = prng.below(200_000).to_string().into_bytes();
        assert_eq!(tree.remove(&key), model.remove(&(key_hash(&key), key)).is_some());
        if step % 30_000 == 0 {
            assert_eq!(tree.check(), Ok(()));
        }
    }
    compare(&tree, &model);
    compare(&whole, &its_model);
    let mut dismantle = whole.dismantle();
    let mut steps = 0;
    while dismantle.step(100) {
        steps += 1;
    }
    assert!(steps > 10, "{steps}");
    compare(&tree, &model);
}
