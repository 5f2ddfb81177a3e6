//! Lists against a model that is as simple as can be, and the bytes that they are written as.

mod common;

use common::{decoded, encoded};
use syros_types::Prng;
use syros_values::{InvalidValue, List, ListEnd, Value, ValueBuilder, ValueParts};

/// Elements, and whether they have ever been too much for a packed list.
#[derive(Clone, Debug, Default)]
struct Model {
    elements: Vec<Vec<u8>>,
    is_large: bool,
}

impl Model {
    fn insert(&mut self, rank: u64, element: &[u8]) -> bool {
        let exists = rank as usize <= self.elements.len();
        if exists {
            self.elements.insert(rank as usize, element.to_vec());
            self.is_large |= self.elements.len() > 128 || element.len() > 64;
        }
        exists
    }

    fn set(&mut self, rank: u64, element: &[u8]) -> bool {
        let old = self.elements.get_mut(rank as usize);
        self.is_large |= old.is_some() && element.len() > 64;
        old.map(|old| *old = element.to_vec()).is_some()
    }

    fn remove_range(&mut self, start: u64, end: u64) {
        let end = self.elements.len().min(end as usize);
        self.elements.drain((start as usize).min(end)..end);
    }

    fn remove_equal(&mut self, element: &[u8], end: ListEnd, count_max: u64) -> u64 {
        let find = |elements: &[Vec<u8>]| match end {
            ListEnd::Left => elements.iter().position(|found| found == element),
            ListEnd::Right => elements.iter().rposition(|found| found == element),
        };
        let mut removed = 0;
        while removed < count_max
            && let Some(index) = find(&self.elements)
        {
            self.elements.remove(index);
            removed += 1;
        }
        removed
    }
}

fn assert_equal(list: &List, model: &Model, context: &str) {
    assert!(list.iter().eq(model.elements.iter().map(Vec::as_slice)), "{context}");
    assert!(list.iter().rev().eq(model.elements.iter().rev().map(Vec::as_slice)), "{context}");
    assert_eq!((list.len(), list.is_packed()), (model.elements.len() as u64, !model.is_large), "{context}");
}

fn drawn_end(prng: &mut Prng) -> ListEnd {
    if prng.chance(1, 2) { ListEnd::Left } else { ListEnd::Right }
}

/// One random update of both.
fn update(prng: &mut Prng, list: &mut List, model: &mut Model, longest: u64, context: &str) {
    let length = if prng.chance(1, 200) { prng.below(longest) } else { 1 + prng.below(2) };
    let element = vec![b'a' + prng.below(4) as u8; length as usize];
    let rank = prng.below(model.elements.len() as u64 + 2);
    let end = drawn_end(prng);
    match prng.below(20) {
        0..10 => {
            list.push(end, &element);
            let rank = if end == ListEnd::Left { 0 } else { model.elements.len() as u64 };
            assert!(model.insert(rank, &element), "{context}");
        }
        10..13 => assert_eq!(list.insert(rank, &element), model.insert(rank, &element), "{context}"),
        13..16 => assert_eq!(list.set(rank, &element), model.set(rank, &element), "{context}"),
        16..19 => {
            let end = rank + prng.below(4);
            list.remove_range(rank..end);
            model.remove_range(rank, end);
        }
        _ => {
            let count = [1, 2, 10, u64::MAX][prng.below(4) as usize];
            let removed = model.remove_equal(&element, end, count);
            assert_eq!(list.remove_equal(&element, end, count), removed, "{context}");
        }
    }
}

fn assert_same_answers(prng: &mut Prng, list: &List, model: &Model, context: &str) {
    assert_equal(list, model, context);
    let length = model.elements.len() as u64;
    let rank = prng.below(length + 2);
    assert_eq!(list.nth(rank), model.elements.get(rank as usize).map(Vec::as_slice), "{context}");
    let (start, end) = (rank, prng.below(length + 3));
    let some = model.elements.get(start as usize..(end.min(length)) as usize).unwrap_or_default();
    assert!(list.range(start..end).eq(some.iter().map(Vec::as_slice)), "{context}");
    assert!(list.range(start..end).rev().eq(some.iter().rev().map(Vec::as_slice)), "{context}");
    assert_eq!(list.range(start..end).len(), some.len(), "{context}");
    let ranked = || (0..).zip(model.elements.iter().map(Vec::as_slice));
    assert!(list.ranked_from(ListEnd::Left).eq(ranked().take(length as usize)), "{context}");
    let backwards: Vec<_> = ranked().take(length as usize).collect();
    assert!(list.ranked_from(ListEnd::Right).eq(backwards.into_iter().rev()), "{context}");
}

#[test]
fn lists_do_what_the_model_does() {
    for seed in 0..60 {
        let mut prng = Prng::new(seed);
        let longest = if seed % 3 == 0 { 200 } else { 65 };
        let (mut list, mut model) = (List::default(), Model::default());
        let mut kept: Vec<(List, Model)> = Vec::new();
        for step in 0..1500 {
            let context = format!("seed {seed}, step {step}");
            if model.elements.len() > [20, 200, 1000][seed as usize % 3] {
                let rest = prng.below(10);
                list.remove_range(rest..u64::MAX);
                model.remove_range(rest, u64::MAX);
            }
            update(&mut prng, &mut list, &mut model, longest, &context);
            if prng.chance(1, 50) {
                assert_same_answers(&mut prng, &list, &model, &context);
                kept.push((list.clone(), model.clone()));
            }
            if prng.chance(1, 50) && !list.is_empty() {
                let bytes = encoded(&Value::List(list.clone()));
                let Ok(Value::List(again)) = decoded(&bytes) else { panic!("{context}") };
                assert_equal(&again, &model, &context);
                assert_eq!(again, list);
                assert_eq!(again.fingerprint(), list.fingerprint());
                assert_eq!(again.element_bytes(), list.element_bytes());
                assert_eq!(encoded(&Value::List(again.clone())), bytes, "{context}");
                list = again;
            }
        }
        // What was put aside has not changed since.
        for (list, model) in kept {
            assert_equal(&list, &model, "a clone");
        }
    }
}

#[test]
fn a_list_becomes_a_tree_at_its_limits_and_stays_one() {
    let mut list = List::default();
    for number in 0..128_u8 {
        list.push(if number % 2 == 0 { ListEnd::Left } else { ListEnd::Right }, &[number; 64]);
    }
    assert!(list.set(5, &[7; 64]) && list.is_packed());
    list.push(ListEnd::Right, b"");
    assert!(!list.is_packed());
    list.remove_range(1..129);
    assert!(list.len() == 1 && !list.is_packed());
    assert_eq!(list.remove_equal(&[126; 64], ListEnd::Left, u64::MAX), 1);
    assert!(list.is_empty() && !list.is_packed());
    let changes: [fn(&mut List); 3] = [
        |list| list.push(ListEnd::Left, &[0; 65]),
        |list| assert!(list.insert(1, &[0; 65])),
        |list| assert!(list.set(0, &[0; 65])),
    ];
    for change in changes {
        let mut list = List::default();
        list.push(ListEnd::Left, b"a");
        change(&mut list);
        assert!(!list.is_packed());
    }
    let mut list = List::default();
    assert!(!list.insert(1, &[0; 65]) && !list.set(0, &[0; 65]) && list.is_packed(), "nothing was done");
}

/// Equal elements of a long list, of which few and many are removed, from either end.
#[test]
fn equal_elements_are_removed_from_either_end() {
    for (one_in, count) in [(500, 3), (500, u64::MAX), (2, 10), (2, 700), (2, u64::MAX), (1, 1999), (1, 2000)]
    {
        for end in [ListEnd::Left, ListEnd::Right] {
            let (mut list, mut model) = (List::default(), Model::default());
            for rank in 0..2000 {
                let element =
                    if rank % one_in == 0 { b"equal".to_vec() } else { rank.to_string().into_bytes() };
                list.push(ListEnd::Right, &element);
                assert!(model.insert(rank, &element));
            }
            let removed = model.remove_equal(b"equal", end, count);
            assert_eq!(list.remove_equal(b"equal", end, count), removed);
            assert_equal(&list, &model, &format!("{count} of one in {one_in}, from the {end:?}"));
        }
    }
}

#[test]
fn values_have_golden_bytes() {
    let mut packed = List::default();
    packed.push(ListEnd::Right, b"a");
    packed.push(ListEnd::Right, b"");
    packed.push(ListEnd::Right, b"12");
    assert_eq!(encoded(&packed.into()), [2, 1, 3, 1, b'a', 0, 2, b'1', b'2']);
    let mut tree = List::default();
    tree.push(ListEnd::Left, &[b'x'; 65]);
    tree.push(ListEnd::Left, b"a");
    tree.remove_range(1..2);
    assert_eq!(encoded(&tree.clone().into()), [2, 2, 1, 1, b'a']);
    let mut same = List::default();
    same.push(ListEnd::Left, b"a");
    assert_ne!(same.fingerprint(), tree.fingerprint(), "the form belongs to the state");
    assert_eq!(tree.fingerprint(), 10_116_736_310_767_065_555, "fixed for ever");
    assert_eq!(same.fingerprint(), 12_135_694_451_661_870_296, "fixed for ever");
}

#[test]
fn bytes_that_are_no_list_are_refused() {
    use InvalidValue as I;
    for (bytes, error) in [
        (&[2][..], I::Truncated),
        (&[2, 0, 1, 0], I::Form(0)),
        (&[2, 3, 1, 0], I::Form(3)),
        (&[2, 1, 0], I::Count(0)),
        (&[2, 2, 0], I::Count(0)),
        (&[2, 1, 0x81, 1], I::Count(129)),
        (&[2, 1, 0x81, 0], I::Number),
        (&[2, 1, 2, 1, b'a'], I::Truncated),
        (&[2, 1, 1, 65], I::TooLong { length: 65, limit: 64 }),
        (&[2, 2, 1, 0x81, 0x80, 0x80, 8], I::TooLong { length: (16 << 20) + 1, limit: 16 << 20 }),
        (&[2, 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0], I::Truncated),
    ] {
        assert_eq!(decoded(bytes).map(|_| ()), Err(error), "{bytes:?}");
    }
}

#[test]
fn bytes_at_random_never_panic_and_are_written_back_as_they_were() {
    let mut prng = Prng::new(8);
    let mut accepted = 0;
    for round in 0..20_000 {
        let mut list = List::default();
        for _ in 0..1 + prng.below(6) {
            list.push(ListEnd::Left, &[prng.below(256) as u8; 3]);
        }
        if round % 2 == 0 {
            list.push(ListEnd::Left, &[1; 65]);
        }
        let mut bytes = encoded(&list.into());
        for _ in 0..prng.below(3) {
            let index = prng.below(bytes.len() as u64) as usize;
            bytes[index] = prng.below(256) as u8;
        }
        let mut rest = &bytes[..];
        if let Ok(value) = Value::take(&mut rest) {
            accepted += 1;
            assert_eq!(encoded(&value), bytes[..bytes.len() - rest.len()]);
        }
    }
    assert!(accepted > 5_000, "{accepted}");
}

#[test]
fn a_head_and_parts_are_the_encoding_and_make_the_value_again() {
    let mut prng = Prng::new(3);
    for elements in [1, 5, 129, 3000] {
        let mut list = List::default();
        for _ in 0..elements {
            list.push(drawn_end(&mut prng), &vec![b'e'; prng.below(40) as usize]);
        }
        assert_eq!(ValueParts::of(&list.clone().into()).is_none(), elements <= 128);
        list.push(ListEnd::Right, &[b'e'; 300]);
        let value = Value::List(list.clone());
        let mut parts = ValueParts::of(&value).expect("it is a tree");
        // What is done to the original does not matter.
        list.remove_range(0..2);
        let mut bytes = Vec::new();
        parts.put_head(&mut bytes);
        let mut builder = ValueBuilder::take_head(&mut &bytes[..]).expect("a head");
        while !parts.is_complete() {
            assert_eq!((builder.rank(), builder.is_complete()), (parts.rank(), false));
            let mut part = Vec::new();
            parts.put_part(prng.below(500) as usize, &mut part);
            builder.part(&part).expect("a part");
            bytes.extend_from_slice(&part);
        }
        assert!(builder.is_complete());
        assert_eq!(builder.part(&[0]), Err(InvalidValue::Count(elements + 2)));
        assert_eq!(bytes, encoded(&value));
        assert_eq!(parts.fingerprint(), value.fingerprint());
        assert_eq!(encoded(&builder.finish()), bytes);
    }
}
