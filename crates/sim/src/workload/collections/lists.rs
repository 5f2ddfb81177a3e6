//! Lists: short ones, so that operations at both ends meet.

use super::{value, values};
use syros_checker::collections::{End, ListOperation};
use syros_checker::history::Output;
use syros_checker::transfer::Transfer;
use syros_commands::Reply;
use syros_types::Prng;

/// Shows a whole list.
pub(super) const READ_ALL: ListOperation = ListOperation::All;

pub(super) fn words(key: &[u8], operation: &ListOperation) -> Vec<Vec<u8>> {
    let command = |name: &str, rest: &[&[u8]]| {
        let mut words = vec![name.as_bytes().to_vec(), key.to_vec()];
        words.extend(rest.iter().map(|word| word.to_vec()));
        words
    };
    match operation {
        ListOperation::All => command("LRANGE", &[b"0", b"-1"]),
        ListOperation::Length => command("LLEN", &[]),
        ListOperation::Push(end, values) => {
            let values: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
            command(if *end == End::Left { "LPUSH" } else { "RPUSH" }, &values)
        }
        ListOperation::PopSome(end, count) => {
            let name = if *end == End::Left { "LPOP" } else { "RPOP" };
            command(name, &[count.to_string().as_bytes()])
        }
        ListOperation::Pop(End::Left) => command("LPOP", &[]),
        ListOperation::Pop(End::Right) => command("RPOP", &[]),
        ListOperation::Rotate(End::Left) => command("LMOVE", &[key, b"LEFT", b"RIGHT"]),
        ListOperation::Rotate(End::Right) => command("LMOVE", &[key, b"RIGHT", b"LEFT"]),
    }
}

pub(super) fn answer(operation: &ListOperation, reply: Reply) -> Option<Output> {
    Some(match (operation, reply) {
        (ListOperation::PopSome(..), Reply::Nil | Reply::NilArray) => Output::Values(Vec::new()),
        (ListOperation::All | ListOperation::PopSome(..), reply) => Output::Values(values(reply)?),
        (ListOperation::Pop(_) | ListOperation::Rotate(_), reply) => Output::Value(value(reply)?),
        (_, Reply::Integer(number)) => Output::Number(number),
        _ => return None,
    })
}

pub(super) fn draw_update(prng: &mut Prng, value: &mut dyn FnMut(&mut Prng) -> Vec<u8>) -> ListOperation {
    let end = if prng.chance(1, 2) { End::Left } else { End::Right };
    match prng.below(10) {
        0..=4 => ListOperation::Push(end, (0..=prng.below(3)).map(|_| value(prng)).collect()),
        5 => ListOperation::PopSome(end, 1 + prng.below(3) as usize),
        6..=8 => ListOperation::Pop(end),
        _ => ListOperation::Rotate(end),
    }
}

pub(super) fn draw_read(prng: &mut Prng) -> ListOperation {
    if prng.chance(1, 4) { ListOperation::Length } else { ListOperation::All }
}

pub(super) fn draw_transfer(prng: &mut Prng) -> Transfer {
    let end = |prng: &mut Prng| if prng.chance(1, 2) { End::Left } else { End::Right };
    Transfer::Element(end(prng), end(prng))
}
