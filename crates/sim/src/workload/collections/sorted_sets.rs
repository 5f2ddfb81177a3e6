//! Sorted sets: few members and few scores, so that operations meet in them, and scores are equal.

use super::{LONG_BYTES, value, values};
use syros_checker::collections::SortedSetOperation;
use syros_checker::history::Output;
use syros_commands::Reply;
use syros_types::Prng;

/// Members that get scores again and again.
const MEMBERS: u64 = 5;

/// Scores are below.
const SCORES: u64 = 4;

/// Shows a whole sorted set.
pub(super) const READ_ALL: SortedSetOperation = SortedSetOperation::All;

pub(super) fn words(key: &[u8], operation: &SortedSetOperation) -> Vec<Vec<u8>> {
    let command = |name: &str, rest: &mut dyn Iterator<Item = Vec<u8>>| {
        let mut words = vec![name.as_bytes().to_vec(), key.to_vec()];
        words.extend(rest);
        words
    };
    let text = |score: &i64| score.to_string().into_bytes();
    match operation {
        SortedSetOperation::All => {
            command("ZRANGE", &mut ["0", "-1", "WITHSCORES"].into_iter().map(|word| word.as_bytes().to_vec()))
        }
        SortedSetOperation::Length => command("ZCARD", &mut core::iter::empty()),
        SortedSetOperation::Score(member) => command("ZSCORE", &mut core::iter::once(member.clone())),
        SortedSetOperation::Add(pairs) => {
            command("ZADD", &mut pairs.iter().flat_map(|(score, member)| [text(score), member.clone()]))
        }
        SortedSetOperation::Increment(delta, member) => {
            command("ZINCRBY", &mut [text(delta), member.clone()].into_iter())
        }
        SortedSetOperation::Remove(members) => command("ZREM", &mut members.iter().cloned()),
        SortedSetOperation::PopMin => command("ZPOPMIN", &mut core::iter::empty()),
    }
}

pub(super) fn answer(operation: &SortedSetOperation, reply: Reply) -> Option<Output> {
    Some(match (operation, reply) {
        (SortedSetOperation::All | SortedSetOperation::PopMin, reply) => Output::Values(values(reply)?),
        (SortedSetOperation::Score(_) | SortedSetOperation::Increment(..), reply) => {
            Output::Value(value(reply)?)
        }
        (_, Reply::Integer(number)) => Output::Number(number),
        _ => return None,
    })
}

pub(super) fn draw_update(prng: &mut Prng, long_percent: u64) -> SortedSetOperation {
    match prng.below(10) {
        0..=3 => {
            let members = several(prng, long_percent);
            SortedSetOperation::Add(members.into_iter().map(|member| (score(prng), member)).collect())
        }
        4 | 5 => SortedSetOperation::Increment(score(prng), member(prng, long_percent)),
        6 => SortedSetOperation::Remove(several(prng, long_percent)),
        _ => SortedSetOperation::PopMin,
    }
}

pub(super) fn draw_read(prng: &mut Prng) -> SortedSetOperation {
    match prng.below(8) {
        0 | 1 => SortedSetOperation::Score(member(prng, 0)),
        2 => SortedSetOperation::Length,
        _ => SortedSetOperation::All,
    }
}

fn score(prng: &mut Prng) -> i64 {
    1 + prng.below(SCORES) as i64
}

/// Some members, of which each is there once.
fn several(prng: &mut Prng, long_percent: u64) -> Vec<Vec<u8>> {
    let mut members = vec![member(prng, long_percent)];
    for _ in 0..prng.below(3) {
        let member = member(prng, long_percent);
        if !members.contains(&member) {
            members.push(member);
        }
    }
    members
}

fn member(prng: &mut Prng, long_percent: u64) -> Vec<u8> {
    let mut member = format!("z{}", prng.below(MEMBERS)).into_bytes();
    if prng.chance(long_percent, 400) {
        member.resize(LONG_BYTES, b'.');
    }
    member
}
