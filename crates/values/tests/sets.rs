//! Sets against a model that is as simple as can be, and the bytes that they are written as.

mod common;

use common::{decoded, encoded};
use std::collections::BTreeSet;
use syros_types::{Prng, key_hash};
use syros_values::{InvalidValue, Kind, Set, Value, ValueBuilder, ValueParts};

/// Members in the order of their addition, and whether that has ever been too much for a packed set.
#[derive(Clone, Debug, Default)]
struct Model {
    members: Vec<Vec<u8>>,
    is_large: bool,
}

impl Model {
    fn insert(&mut self, member: &[u8]) -> bool {
        let is_new = !self.contains(member);
        if is_new {
            self.members.push(member.to_vec());
        }
        self.is_large |= self.members.len() > 128 || member.len() > 64;
        if self.is_large {
            self.members.sort_by_key(|member| (key_hash(member), member.clone()));
        }
        is_new
    }

    fn remove(&mut self, member: &[u8]) -> bool {
        let before = self.members.len();
        self.members.retain(|other| other != member);
        self.members.len() < before
    }

    fn remove_at(&mut self, rank: u64) -> bool {
        let exists = (rank as usize) < self.members.len();
        if exists {
            self.members.remove(rank as usize);
        }
        exists
    }

    fn contains(&self, member: &[u8]) -> bool {
        self.members.iter().any(|other| other == member)
    }
}

fn assert_equal(set: &Set, model: &Model, context: &str) {
    assert!(set.iter().eq(model.members.iter().map(Vec::as_slice)), "{context}");
    assert_eq!((set.len(), set.is_packed()), (model.members.len() as u64, !model.is_large), "{context}");
}

/// Does one thing to both.
fn change(prng: &mut Prng, seed: u64, set: &mut Set, model: &mut Model, context: &str) {
    let names = [3, 40, 200, 3000][seed as usize % 4];
    let member = match prng.below(400) {
        0 if seed.is_multiple_of(3) => vec![b'm'; prng.below(80) as usize],
        _ => prng.below(names).to_string().into_bytes(),
    };
    match prng.below(8) {
        0 => {
            let rank = prng.below(model.members.len() as u64 + 2);
            assert_eq!(set.nth(rank), model.members.get(rank as usize).map(Vec::as_slice), "{context}");
            assert_eq!(set.remove_at(rank), model.remove_at(rank), "{context}");
        }
        1 | 2 => assert_eq!(set.remove(&member), model.remove(&member), "{context}"),
        _ => assert_eq!(set.insert(&member), model.insert(&member), "{context}"),
    }
    assert_eq!(set.contains(&member), model.contains(&member), "{context}");
}

#[test]
fn sets_do_what_the_model_does() {
    for seed in 0..60 {
        let mut prng = Prng::new(seed);
        let (mut set, mut model) = (Set::default(), Model::default());
        let mut kept: Vec<(Set, Model)> = Vec::new();
        for step in 0..1500 {
            let context = format!("seed {seed}, step {step}");
            change(&mut prng, seed, &mut set, &mut model, &context);
            if prng.chance(1, 50) {
                assert_equal(&set, &model, &context);
                kept.push((set.clone(), model.clone()));
            }
            if prng.chance(1, 50) && !set.is_empty() {
                let bytes = encoded(&Value::Set(set.clone()));
                let Ok(Value::Set(again)) = decoded(&bytes) else { panic!("{context}") };
                assert_equal(&again, &model, &context);
                assert_eq!(again, set);
                assert_eq!(again.fingerprint(), set.fingerprint());
                assert_eq!(again.element_bytes(), set.element_bytes());
                assert_eq!(encoded(&Value::Set(again.clone())), bytes, "{context}");
                set = again;
            }
        }
        // What was put aside has not changed since.
        for (set, model) in kept {
            assert_equal(&set, &model, "a clone");
        }
    }
}

#[test]
fn a_set_becomes_a_tree_at_its_limits_and_stays_one() {
    let members: Vec<[u8; 64]> = (0..128).map(|number| [number; 64]).collect();
    let mut set: Set = members.iter().map(<[u8; 64]>::as_slice).collect();
    assert!(set.is_packed() && set.len() == 128);
    assert!(!set.insert(&members[5]), "a member that is there takes no room");
    assert!(set.is_packed());
    assert!(set.insert(b"one more"));
    assert!(!set.is_packed());
    assert!(members.iter().all(|member| set.remove(member)));
    assert!(set.len() == 1 && !set.is_packed());
    let set: Set = [&b"m"[..], &[0; 65]].into_iter().collect();
    assert!(!set.is_packed() && set.len() == 2);
    // What is built anew has room again.
    let set: Set = set.iter().filter(|member| member.len() == 1).collect();
    assert!(set.is_packed());
}

#[test]
fn scans_visit_all_that_is_there() {
    for (members, count) in [(0_u64, 10), (100, 3), (5000, 1), (5000, 10), (5000, 6000)] {
        let mut set = Set::default();
        for number in 0..members {
            set.insert(&number.to_be_bytes());
        }
        let (mut cursor, mut seen) = (0, BTreeSet::new());
        loop {
            let step = set.scan(cursor, count);
            for member in step.items {
                assert!(seen.insert(member.to_vec()), "without changes every member comes once");
            }
            cursor = step.cursor;
            assert!(cursor < 1 << 53);
            if cursor == 0 {
                break;
            }
        }
        assert!(seen.into_iter().eq((0..members).map(|number| number.to_be_bytes().to_vec())));
    }
}

/// The results are what they would be if members were added to a new set one by one.
#[test]
fn intersections_unions_and_differences_have_the_order_of_additions() {
    for seed in 0..300 {
        let mut prng = Prng::new(seed);
        let sets: Vec<Set> = (0..prng.below(5)).map(|_| random_set(&mut prng)).collect();
        let sets: Vec<&Set> = sets.iter().collect();
        let of = |members: &mut dyn Iterator<Item = &[u8]>| {
            let mut set = Set::default();
            for member in members {
                set.insert(member);
            }
            set
        };
        let smallest = sets.iter().min_by_key(|set| set.len()).map(|set| set.iter());
        let is_in_all = |member: &&[u8]| sets.iter().all(|set| set.contains(member));
        let expected = of(&mut smallest.into_iter().flatten().filter(is_in_all));
        assert_eq!(Set::intersection(&sets).collect::<Set>(), expected, "seed {seed}");
        assert!(Set::intersection(&sets).eq(expected.iter()), "seed {seed}");
        let expected = of(&mut sets.iter().flat_map(|set| set.iter()));
        assert_eq!(Set::union(&sets), expected, "seed {seed}");
        let (first, others) = sets.split_at(sets.len().min(1));
        let is_in_none = |member: &&[u8]| !others.iter().any(|set| set.contains(member));
        let expected = of(&mut first.iter().flat_map(|set| set.iter()).filter(is_in_none));
        assert_eq!(Set::difference(&sets), expected, "seed {seed}");
    }
}

/// A set of some numbers, of one form or the other.
fn random_set(prng: &mut Prng) -> Set {
    let members = [0, 3, 100, 250, 1000][prng.below(5) as usize];
    let mut set = Set::default();
    for _ in 0..members {
        set.insert(prng.below(members + 10).to_string().as_bytes());
    }
    if prng.chance(1, 3) {
        set.insert(&[b'm'; 65]);
        if prng.chance(1, 2) {
            set.remove(&[b'm'; 65]);
        }
    }
    set
}

#[test]
fn sets_have_golden_bytes() {
    let packed: Set = [&b"m"[..], b"", b"12"].into_iter().collect();
    assert_eq!(encoded(&packed.into()), [3, 1, 3, 1, b'm', 0, 2, b'1', b'2']);
    let mut tree: Set = [&[b'm'; 65][..], b"g"].into_iter().collect();
    tree.remove(&[b'm'; 65]);
    assert_eq!(encoded(&tree.clone().into()), [3, 2, 1, 1, b'g']);
    let same: Set = [&b"g"[..]].into_iter().collect();
    assert_ne!(same.fingerprint(), tree.fingerprint(), "the form belongs to the state");
    assert_eq!(tree.fingerprint(), 2_170_935_009_271_761_937, "fixed for ever");
    assert_eq!(same.fingerprint(), 10_836_148_076_667_125_125, "fixed for ever");
    assert_eq!(Kind::of_tag(Kind::Set.tag()), Some(Kind::Set));
}

#[test]
fn bytes_that_are_no_set_are_refused() {
    use InvalidValue as I;
    // The members of a tree in the wrong order.
    let [first, second] = if key_hash(b"a") < key_hash(b"b") { [b'a', b'b'] } else { [b'b', b'a'] };
    assert!(decoded(&[3, 2, 2, 1, first, 1, second]).is_ok());
    for (bytes, error) in [
        (&[3][..], I::Truncated),
        (&[3, 0, 1, 0], I::Form(0)),
        (&[3, 1, 0], I::Count(0)),
        (&[3, 2, 0], I::Count(0)),
        (&[3, 1, 0x81, 1], I::Count(129)),
        (&[3, 1, 2, 1, b'm'], I::Truncated),
        (&[3, 1, 2, 1, b'm', 1, b'm'], I::Order),
        (&[3, 2, 2, 1, b'm', 1, b'm'], I::Order),
        (&[3, 2, 2, 1, second, 1, first], I::Order),
        (&[3, 1, 1, 65], I::TooLong { length: 65, limit: 64 }),
        (&[3, 2, 1, 0x81, 0x80, 0x80, 8], I::TooLong { length: (16 << 20) + 1, limit: 16 << 20 }),
    ] {
        assert_eq!(decoded(bytes).map(|_| ()), Err(error), "{bytes:?}");
    }
}

#[test]
fn a_head_and_parts_are_the_encoding_and_make_the_set_again() {
    let mut prng = Prng::new(3);
    for members in [5, 129, 3000] {
        let mut set = Set::default();
        for number in 0..members {
            set.insert(format!("{number} {}", "m".repeat(prng.below(40) as usize)).as_bytes());
        }
        assert_eq!(ValueParts::of(&set.clone().into()).is_none(), members <= 128);
        set.insert(&[b'm'; 300]);
        let value = Value::Set(set.clone());
        let mut parts = ValueParts::of(&value).expect("it is a tree");
        // What is done to the original does not matter.
        set.remove(&[b'm'; 300]);
        let mut bytes = Vec::new();
        parts.put_head(&mut bytes);
        let mut builder = ValueBuilder::take_head(&mut &bytes[..]).expect("a head");
        while !parts.is_complete() {
            let mut part = Vec::new();
            parts.put_part(prng.below(500) as usize, &mut part);
            builder.part(&part).expect("a part");
            bytes.extend_from_slice(&part);
        }
        assert!(builder.is_complete());
        assert_eq!(bytes, encoded(&value));
        assert_eq!(parts.fingerprint(), value.fingerprint());
        assert_eq!(encoded(&builder.finish()), bytes);
    }
}
