//! Sorted sets against a model that is as simple as can be, and the bytes that they are written as.

mod common;

use common::{decoded, encoded};
use std::collections::BTreeSet;
use syros_types::Prng;
use syros_values::{Edge, InvalidValue, Score, SortedSet, Value, ValueBuilder, ValueParts};

/// Members with scores in their order, and whether that has ever been too much for a packed sorted set.
#[derive(Clone, Debug, Default)]
struct Model {
    elements: Vec<(f64, Vec<u8>)>,
    is_large: bool,
}

impl Model {
    fn score(&self, member: &[u8]) -> Option<f64> {
        self.elements.iter().find(|(_, other)| other == member).map(|(score, _)| *score)
    }

    fn set(&mut self, member: &[u8], score: f64) -> bool {
        let old = self.score(member);
        if old == Some(score) {
            return false;
        }
        self.remove(member);
        self.is_large |= self.elements.len() + 1 > 128 || member.len() > 64;
        let score = if score == 0.0 && !self.is_large { 0.0 } else { score };
        self.elements.push((score, member.to_vec()));
        self.elements.sort_by(|left, right| left.partial_cmp(right).expect("no NaN"));
        old.is_none()
    }

    fn remove(&mut self, member: &[u8]) -> bool {
        let before = self.elements.len();
        self.elements.retain(|(_, other)| other != member);
        self.elements.len() < before
    }
}

fn score(value: f64) -> Score {
    Score::new(value).expect("a number")
}

/// Bits and all: minus zero is another number than zero.
fn seen<'a>(elements: impl Iterator<Item = (&'a [u8], Score)>) -> Vec<(u64, Vec<u8>)> {
    elements.map(|(member, score)| (score.value().to_bits(), member.to_vec())).collect()
}

fn expected(elements: &[(f64, Vec<u8>)]) -> Vec<(u64, Vec<u8>)> {
    elements.iter().map(|(score, member)| (score.to_bits(), member.clone())).collect()
}

fn assert_equal(set: &SortedSet, model: &Model, context: &str) {
    assert_eq!(seen(set.iter()), expected(&model.elements), "{context}");
    assert_eq!((set.len(), set.is_packed()), (model.elements.len() as u64, !model.is_large), "{context}");
}

/// A score of a few, so that many are equal.
fn draw_score(prng: &mut Prng) -> f64 {
    match prng.below(12) {
        0 => -0.0,
        1 => f64::INFINITY,
        2 => f64::NEG_INFINITY,
        3 => 1e-320,
        4..8 => prng.below(4) as f64,
        _ => prng.below(1000) as f64 / 8.0 - 60.0,
    }
}

fn assert_questions(set: &SortedSet, model: &Model, prng: &mut Prng, context: &str) {
    let length = model.elements.len() as u64;
    let (first, second) = (prng.below(length + 3), prng.below(length + 3));
    let within = |rank: u64| rank.min(length) as usize;
    let range = model.elements.get(within(first)..within(second)).unwrap_or_default();
    assert_eq!(seen(set.range(first..second)), expected(range), "{context}");
    let mut reversed = seen(set.range(first..second).rev());
    reversed.reverse();
    assert_eq!(reversed, expected(range), "{context}");
    let element = model.elements.get(first as usize).map(|(score, member)| (&member[..], *score));
    assert_eq!(set.nth(first).map(|(member, score)| (member, score.value())), element, "{context}");
    let (bound, member) = (draw_score(prng), prng.below(300).to_string().into_bytes());
    let rank = model.elements.iter().position(|(_, other)| *other == member);
    assert_eq!(set.rank(&member), rank.map(|rank| rank as u64), "{context}");
    // What it takes of a member's score and itself to be before the edge.
    type IsBefore = fn((f64, &[u8]), (f64, &[u8])) -> bool;
    let edges: [(Edge<'_>, IsBefore); 4] = [
        (Edge::Before(score(bound)), |found, edge| found.0 < edge.0),
        (Edge::After(score(bound)), |found, edge| found.0 <= edge.0),
        (Edge::At(score(bound), &member), |found, edge| found < edge),
        (Edge::Behind(score(bound), &member), |found, edge| found <= edge),
    ];
    for (edge, is_before) in edges {
        let before =
            model.elements.iter().filter(|(other, found)| is_before((*other, found), (bound, &member)));
        assert_eq!(set.count_before(edge), before.count() as u64, "{context}: {edge:?}");
    }
}

#[test]
fn sorted_sets_do_what_the_model_does() {
    for seed in 0..60 {
        let mut prng = Prng::new(seed);
        let names = [3, 40, 200, 3000][seed as usize % 4];
        let (mut set, mut model) = (SortedSet::default(), Model::default());
        let mut kept: Vec<(SortedSet, Model)> = Vec::new();
        for step in 0..1500 {
            let context = format!("seed {seed}, step {step}");
            let member = match prng.below(400) {
                0 if seed % 3 == 0 => vec![b'm'; prng.below(80) as usize],
                _ => prng.below(names).to_string().into_bytes(),
            };
            if prng.chance(3, 4) {
                let value = draw_score(&mut prng);
                assert_eq!(set.set(&member, score(value)), model.set(&member, value), "{context}");
            } else if prng.chance(1, 30) {
                let start = prng.below(model.elements.len() as u64 + 1);
                let end = (start + prng.below(20)).min(model.elements.len() as u64);
                set.remove_range(start..end);
                model.elements.drain(start as usize..end as usize);
            } else {
                assert_eq!(set.remove(&member), model.remove(&member), "{context}");
            }
            assert_eq!(set.score(&member).map(Score::value), model.score(&member), "{context}");
            if prng.chance(1, 30) {
                assert_equal(&set, &model, &context);
                assert_questions(&set, &model, &mut prng, &context);
                kept.push((set.clone(), model.clone()));
            }
            if prng.chance(1, 50) && !set.is_empty() {
                set = written_and_read(&set, &context);
                assert_equal(&set, &model, &context);
            }
        }
        // What was put aside has not changed since.
        for (set, model) in kept {
            assert_equal(&set, &model, "a clone");
        }
    }
}

/// What is read of what was written is the same in all that it says of itself.
fn written_and_read(set: &SortedSet, context: &str) -> SortedSet {
    let bytes = encoded(&set.clone().into());
    let Ok(Value::SortedSet(again)) = decoded(&bytes) else { panic!("{context}") };
    assert_eq!(&again, set, "{context}");
    assert_eq!(
        (again.fingerprint(), again.element_bytes()),
        (set.fingerprint(), set.element_bytes()),
        "{context}"
    );
    assert_eq!(encoded(&again.clone().into()), bytes, "{context}");
    again
}

#[test]
fn a_sorted_set_becomes_a_tree_at_its_limits_and_stays_one() {
    let mut set = SortedSet::default();
    for number in 0..128_u8 {
        assert!(set.set(&[number; 64], score(-0.0)));
    }
    assert!(set.is_packed());
    assert_eq!(set.score(&[7; 64]).map(|score| score.value().to_bits()), Some(0), "zero has no sign here");
    assert!(!set.set(&[0; 64], score(5.0)), "an old member takes no room");
    assert!(set.is_packed());
    assert!(set.set(b"one more", score(-0.0)));
    assert!(!set.is_packed());
    assert_eq!(set.score(b"one more").map(|score| score.value().to_bits()), Some(1 << 63));
    set.remove_range(0..128);
    assert!(set.len() == 1 && !set.is_packed());
    let mut set = SortedSet::default();
    set.set(b"m", score(1.0));
    set.set(&[0; 65], score(0.0));
    assert!(!set.is_packed() && set.len() == 2);
}

#[test]
fn a_sorted_set_is_made_of_its_members_at_once() {
    for (count, length) in [(0, 4), (5, 4), (128, 60), (129, 4), (3, 61), (5000, 8)] {
        let names: Vec<String> = (0..count).map(|number| format!("{number:0length$}four")).collect();
        let members: Vec<(&[u8], Score)> = names
            .iter()
            .enumerate()
            .map(|(number, name)| (name.as_bytes(), score((number / 3) as f64)))
            .collect();
        let mut one_by_one = SortedSet::default();
        for (member, score) in members.iter().rev() {
            one_by_one.set(member, *score);
        }
        let at_once = SortedSet::from_ascending(&members);
        assert_eq!(at_once, one_by_one, "{count} members of {length} bytes and four");
        assert!(members.iter().all(|(member, score)| at_once.score(member) == Some(*score)));
    }
}

#[test]
fn scans_visit_all_that_is_there() {
    for (members, count) in [(0_u64, 10), (100, 3), (5000, 1), (5000, 10), (5000, 6000)] {
        let mut set = SortedSet::default();
        for number in 0..members {
            set.set(&number.to_be_bytes(), score(number as f64));
        }
        let (mut cursor, mut seen, mut steps) = (0, BTreeSet::new(), 0);
        loop {
            let step = set.scan(cursor, count);
            let found: Vec<(Vec<u8>, Score)> =
                step.items.map(|(member, score)| (member.to_vec(), score)).collect();
            let next = step.cursor;
            for (member, score) in found {
                assert_eq!(set.score(&member), Some(score));
                assert!(seen.insert(member), "without changes every member comes once");
            }
            // What comes and goes in between does not matter.
            if members == 5000 && steps % 3 == 0 {
                set.set(format!("new {steps}").as_bytes(), score(1.0));
                set.remove(format!("new {}", steps / 2).as_bytes());
            }
            (cursor, steps) = (next, steps + 1);
            if cursor == 0 {
                break;
            }
        }
        assert!((0..members).all(|number| seen.contains(&number.to_be_bytes()[..])));
    }
}

/// One and a half, as it is written.
const ONE_AND_A_HALF: [u8; 9] = [8, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f];

const ZERO: [u8; 9] = [8, 0, 0, 0, 0, 0, 0, 0, 0];
const MINUS_ZERO: [u8; 9] = [8, 0, 0, 0, 0, 0, 0, 0, 0x80];
const NAN: [u8; 9] = [8, 0, 0, 0, 0, 0, 0, 0xf8, 0x7f];

#[test]
fn sorted_sets_have_golden_bytes() {
    let mut packed = SortedSet::default();
    packed.set(b"m", score(1.5));
    packed.set(b"", score(0.0));
    let expected = [&[4, 1, 2][..], &ZERO, &[0], &ONE_AND_A_HALF, &[1, b'm']].concat();
    assert_eq!(encoded(&packed.into()), expected);
    let mut tree = SortedSet::default();
    tree.set(&[b'm'; 65], score(1.0));
    tree.set(b"n", score(1.5));
    tree.remove(&[b'm'; 65]);
    assert_eq!(encoded(&tree.clone().into()), [&[4, 2, 1][..], &ONE_AND_A_HALF, &[1, b'n']].concat());
    let mut same = SortedSet::default();
    same.set(b"n", score(1.5));
    assert_ne!(same.fingerprint(), tree.fingerprint(), "the form belongs to the state");
    assert_eq!(tree.fingerprint(), 4_775_389_341_620_872_238, "fixed for ever");
    assert_eq!(same.fingerprint(), 15_921_006_117_321_043_067, "fixed for ever");
}

#[test]
fn bytes_that_are_no_sorted_set_are_refused() {
    use InvalidValue as I;
    let of = |form: u8, elements: &[(&[u8], u8)]| {
        let mut bytes = vec![4, form, elements.len() as u8];
        for (score, member) in elements {
            bytes.extend_from_slice(score);
            bytes.extend_from_slice(&[1, *member]);
        }
        bytes
    };
    for form in [1, 2] {
        let is_tree = form == 2;
        for (elements, result) in [
            (&[(&ZERO[..], b'a'), (&ZERO, b'b'), (&ONE_AND_A_HALF, b'0')][..], Ok(())),
            (&[(&ZERO, b'b'), (&ZERO, b'a')], Err(I::Order)),
            (&[(&ONE_AND_A_HALF, b'a'), (&ZERO, b'b')], Err(I::Order)),
            (&[(&ZERO, b'a'), (&ONE_AND_A_HALF, b'a')], Err(I::Order)),
            (&[(&ZERO, b'a'), (&ZERO, b'a')], Err(I::Order)),
            (&[(&NAN, b'a')], Err(I::Score)),
            (&[(&[1, 7], b'a')], Err(I::Score)),
            (&[(&MINUS_ZERO, b'a')], if is_tree { Ok(()) } else { Err(I::Score) }),
            (&[(&MINUS_ZERO, b'b'), (&ZERO, b'a')], Err(if is_tree { I::Order } else { I::Score })),
        ] {
            assert_eq!(decoded(&of(form, elements)).map(|_| ()), result, "form {form}: {elements:?}");
        }
    }
    for (bytes, error) in [
        (&[4][..], I::Truncated),
        (&[4, 3, 1], I::Form(3)),
        (&[4, 1, 0], I::Count(0)),
        (&[4, 2, 0], I::Count(0)),
        (&[4, 1, 0x81, 1], I::Count(129)),
        (&[6, 1, 1], I::Kind(6)),
    ] {
        assert_eq!(decoded(bytes).map(|_| ()), Err(error), "{bytes:?}");
    }
}

#[test]
fn a_head_and_parts_are_the_encoding_and_make_the_value_again() {
    let mut prng = Prng::new(3);
    for members in [1, 5, 129, 3000] {
        let mut set = SortedSet::default();
        for number in 0..members {
            set.set(format!("member {number}").as_bytes(), score(draw_score(&mut prng)));
        }
        assert_eq!(ValueParts::of(&set.clone().into()).is_none(), members <= 128);
        set.set(&[b'm'; 300], score(-0.0));
        let value = Value::SortedSet(set.clone());
        let mut parts = ValueParts::of(&value).expect("it is a tree");
        // What is done to the original does not matter.
        set.remove(&[b'm'; 300]);
        let mut bytes = Vec::new();
        parts.put_head(&mut bytes);
        let mut builder = ValueBuilder::take_head(&mut &bytes[..]).expect("a head");
        while !parts.is_complete() {
            assert_eq!((builder.rank(), builder.is_complete()), (parts.rank(), false));
            let (limit, mut part) = (prng.below(500) as usize, Vec::new());
            parts.put_part(limit, &mut part);
            builder.part(&part).expect("a part");
            bytes.extend_from_slice(&part);
        }
        assert!(builder.is_complete());
        assert_eq!(bytes, encoded(&value));
        assert_eq!(parts.fingerprint(), value.fingerprint());
        let again = builder.finish();
        assert_eq!(encoded(&again), bytes);
        let Value::SortedSet(mut again) = again else { panic!("a sorted set") };
        assert!(again.remove(b"member 0"), "a member that was read is found");
    }
}

/// Members are put into the tree by hash many at a time, and a name that comes twice is found whenever it comes again.
#[test]
fn a_large_sorted_set_is_read_with_each_member_once() {
    const MEMBERS: usize = 140_000;
    let mut set = SortedSet::default();
    for number in 0..MEMBERS {
        set.set(format!("member {number:06}").as_bytes(), score(number as f64));
    }
    let value = Value::SortedSet(set);
    let mut parts = ValueParts::of(&value).expect("it is a tree");
    let (mut head, mut elements) = (Vec::new(), Vec::new());
    parts.put_head(&mut head);
    while !parts.is_complete() {
        parts.put_part(1 << 20, &mut elements);
    }
    let read = |elements: &[u8]| {
        let mut builder = ValueBuilder::take_head(&mut &head[..])?;
        builder.part(elements)?;
        Ok(builder.finish())
    };
    let Ok(Value::SortedSet(mut again)) = read(&elements) else { panic!("a sorted set") };
    for number in 0..MEMBERS {
        assert!(again.remove(format!("member {number:06}").as_bytes()), "{number}");
    }
    for later in [1, 90_000, 131_071, 131_072, MEMBERS - 1] {
        let mut elements = elements.clone();
        let name = format!("member {later:06}").into_bytes();
        let place = elements.windows(name.len()).position(|window| window == name).expect("the member");
        elements[place..place + name.len()].copy_from_slice(b"member 000000");
        assert_eq!(read(&elements).map(|_| ()), Err(InvalidValue::Order), "{later}");
    }
}
