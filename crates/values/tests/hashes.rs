//! Hashes against a model that is as simple as can be, and the bytes that they are written as.

mod common;

use common::{decoded, encoded};
use std::collections::BTreeSet;
use syros_types::{Prng, key_hash};
use syros_values::{Hash, InvalidValue, Kind, Value, ValueBuilder, ValueParts};

/// Fields with values in the order of their addition, and whether that has ever been too much for a packed hash.
#[derive(Clone, Debug, Default)]
struct Model {
    pairs: Vec<(Vec<u8>, Vec<u8>)>,
    is_large: bool,
}

impl Model {
    fn set(&mut self, field: &[u8], value: &[u8]) -> bool {
        let found = self.pairs.iter().position(|(other, _)| other == field);
        match found {
            Some(index) => self.pairs[index].1 = value.to_vec(),
            None => self.pairs.push((field.to_vec(), value.to_vec())),
        }
        self.is_large |= self.pairs.len() > 128 || field.len() > 64 || value.len() > 64;
        if self.is_large {
            self.pairs.sort_by_key(|(field, _)| (key_hash(field), field.clone()));
        }
        found.is_none()
    }

    fn remove(&mut self, field: &[u8]) -> bool {
        let before = self.pairs.len();
        self.pairs.retain(|(other, _)| other != field);
        self.pairs.len() < before
    }

    fn get(&self, field: &[u8]) -> Option<&[u8]> {
        self.pairs.iter().find(|(other, _)| other == field).map(|(_, value)| value.as_slice())
    }
}

fn assert_equal(hash: &Hash, model: &Model, context: &str) {
    let pairs = model.pairs.iter().map(|(field, value)| (field.as_slice(), value.as_slice()));
    assert!(hash.iter().eq(pairs), "{context}");
    assert_eq!((hash.len(), hash.is_packed()), (model.pairs.len() as u64, !model.is_large), "{context}");
}

#[test]
fn hashes_do_what_the_model_does() {
    for seed in 0..60 {
        let mut prng = Prng::new(seed);
        let names = [3, 40, 200, 3000][seed as usize % 4];
        let (mut hash, mut model) = (Hash::default(), Model::default());
        let mut kept: Vec<(Hash, Model)> = Vec::new();
        for step in 0..1500 {
            let context = format!("seed {seed}, step {step}");
            let field = match prng.below(400) {
                0 if seed % 3 == 0 => vec![b'f'; prng.below(80) as usize],
                _ => prng.below(names).to_string().into_bytes(),
            };
            if prng.chance(3, 4) {
                let length = if prng.chance(1, 200) && seed % 3 == 1 { 200 } else { 1 + prng.below(64) };
                let value = vec![prng.below(256) as u8; length as usize];
                assert_eq!(hash.set(&field, &value), model.set(&field, &value), "{context}");
            } else {
                assert_eq!(hash.remove(&field), model.remove(&field), "{context}");
            }
            assert_eq!(hash.get(&field), model.get(&field), "{context}");
            if prng.chance(1, 50) {
                assert_equal(&hash, &model, &context);
                let rank = prng.below(model.pairs.len() as u64 + 2);
                let pair = model.pairs.get(rank as usize).map(|(field, value)| (&field[..], &value[..]));
                assert_eq!(hash.nth(rank), pair, "{context}");
                kept.push((hash.clone(), model.clone()));
            }
            if prng.chance(1, 50) && !hash.is_empty() {
                let bytes = encoded(&Value::Hash(hash.clone()));
                let Ok(Value::Hash(again)) = decoded(&bytes) else { panic!("{context}") };
                assert_equal(&again, &model, &context);
                assert_eq!(again, hash);
                assert_eq!(again.fingerprint(), hash.fingerprint());
                assert_eq!(again.at(0).element_bytes(), hash.at(0).element_bytes());
                assert_eq!(encoded(&Value::Hash(again.clone())), bytes, "{context}");
                hash = again;
            }
        }
        // What was put aside has not changed since.
        for (hash, model) in kept {
            assert_equal(&hash, &model, "a clone");
        }
    }
}

#[test]
fn a_hash_becomes_a_tree_at_its_limits_and_stays_one() {
    let mut hash = Hash::default();
    for number in 0..128_u8 {
        assert!(hash.set(&[number; 64], &[number; 64]));
    }
    assert!(hash.is_packed());
    assert!(!hash.set(&[0; 64], b""), "an old field takes no room");
    assert!(hash.is_packed());
    assert!(hash.set(b"one more", b""));
    assert!(!hash.is_packed());
    for number in 0..128_u8 {
        assert!(hash.remove(&[number; 64]));
    }
    assert!(hash.len() == 1 && !hash.is_packed());
    for (field, value) in [(&[0; 65][..], &b""[..]), (b"", &[0; 65])] {
        let mut hash = Hash::default();
        hash.set(b"f", b"v");
        hash.set(field, value);
        assert!(!hash.is_packed() && hash.len() == 2);
    }
}

#[test]
fn scans_visit_all_that_is_there() {
    for (fields, count) in [(0_u64, 10), (100, 3), (5000, 1), (5000, 10), (5000, 6000)] {
        let mut hash = Hash::default();
        for number in 0..fields {
            hash.set(&number.to_be_bytes(), b"v");
        }
        let (mut cursor, mut seen, mut steps) = (0, BTreeSet::new(), 0);
        loop {
            let step = hash.scan(cursor, count);
            let found: Vec<Vec<u8>> = step.items.map(|(field, _)| field.to_vec()).collect();
            let next = step.cursor;
            assert!(next < 1 << 53 && (next == 0 || next > cursor));
            assert!(hash.is_packed() || next == 0 || found.len() as u64 >= count);
            for field in found {
                assert!(seen.insert(field), "without changes every field comes once");
            }
            // What comes and goes in between does not matter.
            if fields == 5000 && steps % 3 == 0 {
                hash.set(format!("new {steps}").as_bytes(), b"v");
                hash.remove(format!("new {}", steps / 2).as_bytes());
            }
            (cursor, steps) = (next, steps + 1);
            if cursor == 0 {
                break;
            }
        }
        assert!((0..fields).all(|number| seen.contains(&number.to_be_bytes()[..])));
    }
    let mut hash = Hash::default();
    for number in 0..1000_u64 {
        hash.set(&number.to_be_bytes(), b"v");
    }
    for cursor in [1 << 53, u64::MAX, 1 << 60] {
        let step = hash.scan(cursor, 10);
        assert_eq!((step.items.count(), step.cursor), (0, 0), "there is nothing behind the last cursor");
    }
}

#[test]
fn values_have_golden_bytes() {
    let mut packed = Hash::default();
    packed.set(b"f", b"v");
    packed.set(b"", b"12");
    assert_eq!(encoded(&packed.into()), [1, 1, 2, 1, b'f', 1, b'v', 0, 2, b'1', b'2']);
    let mut tree = Hash::default();
    tree.set(&[b'f'; 65], b"v");
    tree.set(b"g", b"w");
    tree.remove(&[b'f'; 65]);
    assert_eq!(encoded(&tree.clone().into()), [1, 2, 1, 1, b'g', 1, b'w']);
    assert_eq!(encoded(&Value::String(b"v".to_vec())), [0, 1, b'v']);
    let mut same = Hash::default();
    same.set(b"g", b"w");
    assert_ne!(same.fingerprint(), tree.fingerprint(), "the form belongs to the state");
    assert_eq!(tree.fingerprint(), 4_226_914_875_741_784_901, "fixed for ever");
    assert_eq!(same.fingerprint(), 13_740_970_473_686_502_280, "fixed for ever");
    assert_eq!(Value::String(b"v".to_vec()).fingerprint(), key_hash(b"v"));
    for kind in [Kind::String, Kind::Hash, Kind::List, Kind::SortedSet] {
        assert_eq!(Kind::of_tag(kind.tag()), Some(kind));
    }
}

#[test]
fn bytes_that_are_no_value_are_refused() {
    use InvalidValue as I;
    // The fields of a tree in the wrong order.
    let ordered = if key_hash(b"a") < key_hash(b"b") { [b'a', b'b'] } else { [b'b', b'a'] };
    let [first, second] = ordered;
    assert!(decoded(&[1, 2, 2, 1, first, 0, 1, second, 0]).is_ok());
    for (bytes, error) in [
        (&[][..], I::Truncated),
        (&[9, 0], I::Kind(9)),
        (&[0, 2, b'x'], I::Truncated),
        (&[1, 0, 1, 0, 0], I::Form(0)),
        (&[1, 4, 1, 0, 0], I::Form(4)),
        (&[3, 3, 1, 0, 0], I::Form(3)),
        (&[1, 3, 0, 0, 1], I::Expiry),
        (&[1, 3, 1, 0, 0], I::Count(0)),
        (&[1, 3, 1, 1, 1, 0, 0, 0], I::Expiry),
        (&[1, 3, 1, 1, 1, 0, 0, 1, 1], I::Expiry),
        (&[1, 3, 1, 1, 1, 0, 0, 8, 1, 0, 0, 0, 0, 0, 0, 1], I::Expiry),
        (&[1, 1, 0], I::Count(0)),
        (&[1, 2, 0], I::Count(0)),
        (&[1, 1, 0x81, 1], I::Count(129)),
        (&[1, 1, 0x81, 0], I::Number),
        (&[1, 1, 1, 1, b'f'], I::Truncated),
        (&[1, 1, 2, 1, b'f', 0, 1, b'f', 0], I::Order),
        (&[1, 2, 2, 1, b'f', 0, 1, b'f', 0], I::Order),
        (&[1, 2, 2, 1, second, 0, 1, first, 0], I::Order),
        (&[1, 1, 1, 65], I::TooLong { length: 65, limit: 64 }),
        (&[1, 2, 1, 0x81, 0x80, 0x80, 8], I::TooLong { length: (16 << 20) + 1, limit: 16 << 20 }),
        (&[1, 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0, 0], I::Truncated),
    ] {
        assert_eq!(decoded(bytes).map(|_| ()), Err(error), "{bytes:?}");
    }
}

#[test]
fn bytes_at_random_never_panic_and_are_written_back_as_they_were() {
    let mut prng = Prng::new(8);
    let mut accepted = 0;
    for round in 0..20_000 {
        let mut hash = Hash::default();
        for _ in 0..1 + prng.below(6) {
            hash.set(&[prng.below(256) as u8], &[7; 3]);
        }
        if round % 2 == 0 {
            hash.set(&[1; 65], b"");
        }
        if round % 4 == 0 {
            hash.set_expiry(&[1; 65], core::num::NonZeroU64::new(1 + prng.below(1000)));
        }
        let mut bytes = encoded(&hash.into());
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
    assert!(ValueParts::of(&Value::String(vec![7; 100])).is_none());
    for fields in [1, 5, 129, 3000] {
        let mut hash = Hash::default();
        for number in 0..fields {
            hash.set(format!("field {number}").as_bytes(), &vec![b'v'; prng.below(40) as usize]);
        }
        assert_eq!(ValueParts::of(&hash.clone().into()).is_none(), fields <= 128);
        hash.set(b"long", &[b'v'; 300]);
        let value = Value::Hash(hash.clone());
        let mut parts = ValueParts::of(&value).expect("it is a tree");
        // What is done to the original does not matter.
        hash.remove(b"long");
        let mut bytes = Vec::new();
        parts.put_head(&mut bytes);
        let mut rest = &bytes[..];
        let mut builder = ValueBuilder::take_head(&mut rest).expect("a head");
        assert!(rest.is_empty());
        while !parts.is_complete() {
            assert_eq!((builder.rank(), builder.is_complete()), (parts.rank(), false));
            let (limit, mut part) = (prng.below(500) as usize, b"x".to_vec());
            parts.put_part(limit, &mut part);
            assert!(part.len() > 1 && part.len() <= 1 + limit + 320);
            builder.part(&part[1..]).expect("a part");
            bytes.extend_from_slice(&part[1..]);
        }
        assert!(builder.is_complete());
        assert_eq!(builder.part(&[0, 0]), Err(InvalidValue::Count(fields + 2)));
        assert_eq!(bytes, encoded(&value));
        assert_eq!(parts.fingerprint(), value.fingerprint());
        assert_eq!(encoded(&builder.finish()), bytes);
    }
}

/// Fields with values and the first milliseconds in which they are gone, 0 if they stay.
type Expiring = std::collections::BTreeMap<Vec<u8>, (Vec<u8>, u64)>;

fn assert_live(hash: &Hash, model: &Expiring, now_ms: u64, context: &str) {
    let live = hash.at(now_ms);
    let there: Expiring = model
        .iter()
        .filter(|(_, (_, gone))| *gone == 0 || *gone > now_ms)
        .map(|(field, entry)| (field.clone(), entry.clone()))
        .collect();
    let shown = |pairs: &mut dyn Iterator<Item = (&[u8], &[u8])>| -> Expiring {
        pairs
            .map(|(field, value)| {
                let expiry = live.expiry(field).map_or(0, core::num::NonZeroU64::get);
                (field.to_vec(), (value.to_vec(), expiry))
            })
            .collect()
    };
    assert_eq!(live.len(), there.len() as u64, "{context}");
    assert_eq!(shown(&mut live.iter()), there, "{context}");
    assert!(live.iter().eq((0..live.len()).filter_map(|rank| live.nth(rank))), "{context}");
    assert_eq!(live.nth(live.len()), None, "{context}");
    assert!(live.iter().all(|(field, value)| live.get(field) == Some(value)), "{context}");
    let (mut scanned, mut cursor) = (Expiring::new(), 0);
    loop {
        let mut step = live.scan(cursor, 3);
        scanned.extend(shown(&mut step.items));
        cursor = step.cursor;
        if cursor == 0 {
            break;
        }
    }
    assert_eq!(scanned, there, "{context}");
}

/// Whatever is done to it, a hash shows the fields that are there at a time, whether those that are gone were dropped or not.
#[test]
fn fields_expire() {
    for seed in 0..40 {
        let mut prng = Prng::new(seed);
        let names = [3, 20, 300][seed as usize % 3];
        let (mut hash, mut model, mut now_ms) = (Hash::default(), Expiring::new(), 100);
        let mut kept: Vec<(Hash, Expiring, u64)> = Vec::new();
        for step in 0..600 {
            let context = format!("seed {seed}, step {step}");
            let field = prng.below(names).to_string().into_bytes();
            let value = prng.below(1000).to_string().into_bytes();
            let there =
                |model: &Expiring| model.get(&field).is_some_and(|(_, gone)| *gone == 0 || *gone > now_ms);
            let is_there = there(&model);
            match prng.below(10) {
                0..3 => {
                    assert_eq!(hash.set_at(&field, &value, now_ms), !is_there, "{context}");
                    model.insert(field, (value, 0));
                }
                3 => {
                    hash.replace_at(&field, &value, now_ms);
                    let gone = if is_there { model[&field].1 } else { 0 };
                    model.insert(field, (value, gone));
                }
                4 => {
                    assert_eq!(hash.remove_at(&field, now_ms), is_there, "{context}");
                    model.remove(&field);
                }
                5..8 if is_there => {
                    let gone = now_ms + 1 + prng.below(60);
                    hash.set_expiry(&field, core::num::NonZeroU64::new(gone));
                    model.get_mut(&field).expect("it is there").1 = gone;
                    assert!(hash.is_expiring() && !hash.is_packed(), "{context}");
                }
                8 if is_there => {
                    hash.set_expiry(&field, None);
                    model.get_mut(&field).expect("it is there").1 = 0;
                }
                _ => now_ms += prng.below(10),
            }
            assert_live(&hash, &model, now_ms, &context);
            let value = Value::from(hash.clone());
            if !hash.is_empty() {
                let bytes = encoded(&value);
                assert_eq!(decoded(&bytes).map(|value| encoded(&value)), Ok(bytes), "{context}");
            }
            let (before, next) = (value.fingerprint_at(now_ms), hash.next_expiry(now_ms));
            let gone = |of: &Expiring| of.values().map(|(_, gone)| *gone).filter(|gone| *gone > now_ms).min();
            assert_eq!(next.map(core::num::NonZeroU64::get), gone(&model), "{context}");
            if prng.chance(1, 4) {
                hash.drop_due(now_ms, prng.below(3));
                assert_eq!(hash.fingerprint_at(now_ms), before, "{context}");
                assert_live(&hash, &model, now_ms, &context);
            }
            if prng.chance(1, 20) {
                hash.drop_due(now_ms, u64::MAX);
                model.retain(|_, (_, gone)| *gone == 0 || *gone > now_ms);
                assert_eq!(hash.fingerprint(), before, "{context}");
                let all_go = !model.is_empty() && model.values().all(|(_, gone)| *gone > 0);
                let last = model.values().map(|(_, gone)| *gone).max().filter(|_| all_go);
                assert_eq!(hash.moments().gone.map(core::num::NonZeroU64::get), last, "{context}");
            }
            if prng.chance(1, 50) {
                kept.push((hash.clone(), model.clone(), now_ms));
            }
        }
        for (hash, model, now_ms) in &kept {
            assert_live(hash, model, *now_ms, "a clone does not see what is done to the original");
        }
    }
}

/// Snapshots and stores on disk have these bytes.
#[test]
fn fields_that_expire_have_golden_bytes() {
    let mut hash = Hash::default();
    for (field, value) in [(b"f", b"v"), (b"g", b"w")] {
        hash.set(field, value);
    }
    hash.set_expiry(b"f", core::num::NonZeroU64::new(300));
    let pair = |field: u8, value: u8| [1, field, 1, value];
    let mut elements = vec![
        (key_hash(b"f"), [&pair(b'f', b'v')[..], &[8, 0x2c, 1, 0, 0, 0, 0, 0, 0]].concat()),
        (key_hash(b"g"), [&pair(b'g', b'w')[..], &[0]].concat()),
    ];
    elements.sort();
    let fields: Vec<u8> = elements.into_iter().flat_map(|(_, bytes)| bytes).collect();
    let bytes = [&[1, 3, 0xac, 2, 0, 2][..], &fields].concat();
    assert_eq!(encoded(&hash.clone().into()), bytes);
    assert!(decoded(&bytes).is_ok());
    // When the first one goes, and the last, is what the fields say.
    for head in [[0xad, 2, 0, 2], [0xac, 2, 1, 2]] {
        let wrong = [&[1, 3][..], &head, &bytes[6..]].concat();
        assert_eq!(decoded(&wrong).map(|value| encoded(&value)), Err(InvalidValue::Expiry));
    }
    hash.set_expiry(b"f", None);
    assert_eq!(encoded(&hash.into())[..2], [1, 2], "as if none had ever expired");
}
