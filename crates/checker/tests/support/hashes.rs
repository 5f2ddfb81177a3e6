//! Hashes the obvious way, and operations on them, made up.

use super::{small_input as small_text_input, string};
use std::collections::BTreeMap;
use syros_checker::collections::{CollectionOperation, Fields, HashOperation};
use syros_checker::history::{Input, Output};
use syros_types::Prng;

pub(super) fn execute(hash: &mut BTreeMap<String, String>, operation: &HashOperation) -> Output {
    let bytes = |text: &String| text.clone().into_bytes();
    match operation {
        HashOperation::Get(field) => Output::Value(hash.get(&string(field)).map(bytes)),
        HashOperation::GetMany(fields) => {
            Output::Values(fields.iter().map(|field| hash.get(&string(field)).map(bytes)).collect())
        }
        HashOperation::GetAll => {
            Output::Fields(Fields(hash.iter().map(|(field, value)| (bytes(field), bytes(value))).collect()))
        }
        HashOperation::Length => Output::Number(hash.len() as i64),
        HashOperation::Set(pairs) => {
            let mut new = 0;
            for (field, value) in pairs {
                new += i64::from(hash.insert(string(field), string(value)).is_none());
            }
            Output::Number(new)
        }
        HashOperation::SetIfAbsent(field, value) => {
            let is_new = !hash.contains_key(&string(field));
            if is_new {
                hash.insert(string(field), string(value));
            }
            Output::Flag(is_new)
        }
        HashOperation::Remove(fields) => {
            let mut removed = 0;
            for field in fields {
                removed += i64::from(hash.remove(&string(field)).is_some());
            }
            Output::Number(removed)
        }
        HashOperation::Increment(field, delta) => {
            let old = hash.get(&string(field)).cloned().unwrap_or_else(|| "0".to_owned());
            match old.parse::<i64>() {
                Ok(number) if number.to_string() == old => {
                    hash.insert(string(field), (number + delta).to_string());
                    Output::Number(number + delta)
                }
                _ => Output::Error,
            }
        }
    }
}

/// Of three operations, two are of text or concern lifetimes and names.
pub(super) fn small_input(prng: &mut Prng, keys: u64, distinct: Option<u64>) -> Input {
    let (key, other) = (prng.below(keys) as u32, prng.below(keys) as u32);
    match prng.below(24) {
        0..=11 => Input::Collection(key, CollectionOperation::Hash(operation(prng, distinct))),
        12 | 13 => Input::Rename(key, other),
        14 | 15 => Input::Lifetime(key, distinct.unwrap_or_else(|| prng.below(2)) as u32),
        16 => Input::Persist(key),
        17 | 18 => {
            let lifetime = match distinct {
                None => prng.below(2),
                Some(number) => number.saturating_sub(1 + prng.below(3)),
            };
            Input::LifetimeEnds((0..keys as u32).collect(), lifetime as u32)
        }
        19 => {
            let mut part = || Input::Collection(key, CollectionOperation::Hash(operation(prng, distinct)));
            Input::Batch(vec![part(), part(), Input::Delete(key)])
        }
        _ => small_text_input(prng, keys, distinct),
    }
}

fn operation(prng: &mut Prng, distinct: Option<u64>) -> HashOperation {
    let field = |prng: &mut Prng| [&b"f"[..], b"g"][prng.below(2) as usize].to_vec();
    let value = |prng: &mut Prng| match distinct {
        Some(number) if prng.chance(1, 2) => (100 * number).to_string().into_bytes(),
        Some(number) => format!("v{number}.").into_bytes(),
        None => [&b"a"[..], b"1"][prng.below(2) as usize].to_vec(),
    };
    match prng.below(10) {
        0 => HashOperation::Get(field(prng)),
        1 => HashOperation::GetMany(vec![field(prng), field(prng)]),
        2 | 3 => HashOperation::GetAll,
        4 => HashOperation::Length,
        5 => HashOperation::Set(vec![(field(prng), value(prng)), (field(prng), value(prng))]),
        6 => HashOperation::Set(vec![(field(prng), value(prng))]),
        7 => HashOperation::SetIfAbsent(field(prng), value(prng)),
        8 => HashOperation::Remove(vec![field(prng)]),
        _ => HashOperation::Increment(field(prng), 1 + prng.below(2) as i64),
    }
}

/// All fields but perhaps one.
pub(super) fn distort(prng: &mut Prng, fields: Fields) -> Output {
    Output::Fields(Fields(fields.0.into_iter().filter(|_| !prng.chance(1, 4)).collect()))
}
