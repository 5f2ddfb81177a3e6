//! Sets: few members, so that operations meet in them.

use super::{LONG_BYTES, values};
use syros_checker::collections::SetOperation;
use syros_checker::history::Output;
use syros_checker::transfer::Transfer;
use syros_commands::Reply;
use syros_types::Prng;

/// Members that are added again and again.
const MEMBERS: u64 = 6;

/// More members than any set has here.
const TAKEN: &[u8] = b"10000";

/// Shows a whole set.
pub(super) const READ_ALL: SetOperation = SetOperation::All;

pub(super) fn words(key: &[u8], operation: &SetOperation) -> Vec<Vec<u8>> {
    let command = |name: &str, rest: &[Vec<u8>]| {
        let mut words = vec![name.as_bytes().to_vec(), key.to_vec()];
        words.extend(rest.iter().cloned());
        words
    };
    match operation {
        SetOperation::All => command("SMEMBERS", &[]),
        SetOperation::Length => command("SCARD", &[]),
        SetOperation::Contains(member) => command("SISMEMBER", core::slice::from_ref(member)),
        SetOperation::Add(members) => command("SADD", members),
        SetOperation::Remove(members) => command("SREM", members),
        SetOperation::Take => command("SPOP", &[TAKEN.to_vec()]),
    }
}

pub(super) fn answer(operation: &SetOperation, reply: Reply) -> Option<Output> {
    Some(match (operation, reply) {
        (SetOperation::All | SetOperation::Take, reply) => {
            let mut members = values(reply)?;
            members.sort_unstable();
            Output::Values(members)
        }
        (SetOperation::Contains(_), Reply::Integer(flag @ (0 | 1))) => Output::Flag(flag == 1),
        (_, Reply::Integer(number)) => Output::Number(number),
        _ => return None,
    })
}

pub(super) fn draw_update(prng: &mut Prng, long_percent: u64) -> SetOperation {
    match prng.below(10) {
        0..=5 => SetOperation::Add(several(prng, long_percent)),
        6..=8 => SetOperation::Remove(several(prng, long_percent)),
        _ => SetOperation::Take,
    }
}

pub(super) fn draw_read(prng: &mut Prng) -> SetOperation {
    match prng.below(8) {
        0 | 1 => SetOperation::Contains(member(prng, 0)),
        2 => SetOperation::Length,
        _ => SetOperation::All,
    }
}

pub(super) fn draw_transfer(prng: &mut Prng) -> Transfer {
    if prng.chance(1, 3) { Transfer::Union } else { Transfer::Member(member(prng, 0)) }
}

/// Some members, of which each is there once.
fn several(prng: &mut Prng, long_percent: u64) -> Vec<Vec<u8>> {
    let mut members = vec![member(prng, long_percent)];
    for _ in 0..prng.below(4) {
        let member = member(prng, long_percent);
        if !members.contains(&member) {
            members.push(member);
        }
    }
    members
}

fn member(prng: &mut Prng, long_percent: u64) -> Vec<u8> {
    let mut member = format!("m{}", prng.below(MEMBERS)).into_bytes();
    if prng.chance(long_percent, 400) {
        member.resize(LONG_BYTES, b'.');
    }
    member
}
