//! Hashes: few fields, so that operations meet in them.

use super::{value, values};
use syros_checker::collections::{Fields, HashOperation};
use syros_checker::history::Output;
use syros_commands::Reply;
use syros_types::Prng;

/// Fields that mostly hold text.
const TEXTS: u64 = 4;

/// Fields that mostly hold integers.
const INTEGERS: u64 = 2;

/// Shows a whole hash.
pub(super) const READ_ALL: HashOperation = HashOperation::GetAll;

pub(super) fn words(key: &[u8], operation: &HashOperation) -> Vec<Vec<u8>> {
    let command = |name: &str, rest: &mut dyn Iterator<Item = &Vec<u8>>| {
        let mut words = vec![name.as_bytes().to_vec(), key.to_vec()];
        words.extend(rest.cloned());
        words
    };
    match operation {
        HashOperation::Get(field) => command("HGET", &mut [field].into_iter()),
        HashOperation::GetMany(fields) => command("HMGET", &mut fields.iter()),
        HashOperation::GetAll => command("HGETALL", &mut [].iter()),
        HashOperation::Length => command("HLEN", &mut [].iter()),
        HashOperation::Set(pairs) => {
            command("HSET", &mut pairs.iter().flat_map(|(field, value)| [field, value]))
        }
        HashOperation::SetIfAbsent(field, value) => command("HSETNX", &mut [field, value].into_iter()),
        HashOperation::Remove(fields) => command("HDEL", &mut fields.iter()),
        HashOperation::Increment(field, delta) => {
            command("HINCRBY", &mut [field, &delta.to_string().into_bytes()].into_iter())
        }
    }
}

/// HINCRBY of a field that holds no integer.
pub(super) const fn may_fail(operation: &HashOperation) -> bool {
    matches!(operation, HashOperation::Increment(..))
}

pub(super) fn answer(operation: &HashOperation, reply: Reply) -> Option<Output> {
    Some(match (operation, reply) {
        (HashOperation::Get(_), reply) => Output::Value(value(reply)?),
        (HashOperation::GetMany(_), reply) => Output::Values(values(reply)?),
        (HashOperation::GetAll, reply) => Output::Fields(fields(values(reply)?)?),
        (HashOperation::SetIfAbsent(..), Reply::Integer(flag @ (0 | 1))) => Output::Flag(flag == 1),
        (HashOperation::Increment(..), Reply::Error(_)) => Output::Error,
        (_, Reply::Integer(number)) => Output::Number(number),
        _ => return None,
    })
}

/// Fields and values, which stand in turn; `None` if a field is there twice, or something is missing.
fn fields(words: Vec<Option<Vec<u8>>>) -> Option<Fields> {
    let mut fields = Fields::default();
    let mut words = words.into_iter();
    while let Some(field) = words.next() {
        if fields.0.insert(field?, words.next()??).is_some() {
            return None;
        }
    }
    Some(fields)
}

pub(super) fn draw_update(prng: &mut Prng, value: &mut dyn FnMut(&mut Prng) -> Vec<u8>) -> HashOperation {
    match prng.below(12) {
        0..=4 => HashOperation::Set(pairs(prng, value)),
        5 | 6 => HashOperation::SetIfAbsent(field(prng), value(prng)),
        7 | 8 => HashOperation::Remove(several(prng)),
        _ => {
            // One of eight may find text.
            let field = if prng.chance(1, 8) { field(prng) } else { integer(prng.below(INTEGERS)) };
            HashOperation::Increment(field, 1 + prng.below(3) as i64)
        }
    }
}

pub(super) fn draw_read(prng: &mut Prng) -> HashOperation {
    match prng.below(8) {
        0..=2 => HashOperation::Get(field(prng)),
        3 => HashOperation::GetMany(several(prng)),
        4 => HashOperation::Length,
        _ => HashOperation::GetAll,
    }
}

/// Fields with new values; the integers among them begin anew.
fn pairs(prng: &mut Prng, value: &mut dyn FnMut(&mut Prng) -> Vec<u8>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let fields = several(prng);
    fields.into_iter().map(|field| (field, value(prng))).collect()
}

/// Some fields, of which each is there once.
fn several(prng: &mut Prng) -> Vec<Vec<u8>> {
    let mut fields = vec![field(prng)];
    for _ in 0..prng.below(4) {
        let field = field(prng);
        if !fields.contains(&field) {
            fields.push(field);
        }
    }
    fields
}

fn field(prng: &mut Prng) -> Vec<u8> {
    match prng.below(TEXTS + INTEGERS) {
        number if number < TEXTS => format!("f{number}").into_bytes(),
        number => integer(number - TEXTS),
    }
}

fn integer(number: u64) -> Vec<u8> {
    format!("n{number}").into_bytes()
}
