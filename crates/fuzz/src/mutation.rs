//! Inputs made of other inputs.

use syros_types::Prng;
use syros_types::varint::put_varint;

/// Most bytes of an input: enough for several of any part, and few enough for many runs in a second.
const INPUT_BYTES_MAX: usize = 4096;

fn index(prng: &mut Prng, length: usize) -> usize {
    prng.below(length as u64) as usize
}

/// A part of `bytes`, as its ends.
fn part(prng: &mut Prng, bytes: &[u8]) -> (usize, usize) {
    let (a, b) = (index(prng, bytes.len() + 1), index(prng, bytes.len() + 1));
    (a.min(b), a.max(b))
}

/// A number where decoders have limits.
fn edge(prng: &mut Prng) -> u64 {
    let power = 1_u64.checked_shl(prng.below(65) as u32).unwrap_or(0);
    power.wrapping_add(prng.below(3)).wrapping_sub(1)
}

fn change(prng: &mut Prng, bytes: &mut Vec<u8>, other: &[u8]) {
    let (start, end) = part(prng, bytes);
    let at = index(prng, bytes.len().max(1));
    match prng.below(9) {
        0 => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << prng.below(8)),
        1 => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte = prng.next_u64() as u8),
        2 => bytes
            .iter_mut()
            .skip(at)
            .take(1)
            .for_each(|byte| *byte = byte.wrapping_add(prng.below(5) as u8).wrapping_sub(2)),
        3 => bytes.truncate(at),
        4 => drop(bytes.drain(start..end)),
        5 => {
            let copy = bytes[start..end].to_vec();
            bytes.splice(at..at, copy);
        }
        6 => {
            let (from, to) = part(prng, other);
            bytes.splice(start..end, other[from..to].iter().copied());
        }
        7 => {
            let mut number = Vec::new();
            put_varint(&mut number, edge(prng));
            bytes.splice(start..(start + prng.below(3) as usize).min(bytes.len()), number);
        }
        _ => {
            let number = edge(prng).to_le_bytes();
            let length = 1 << prng.below(4);
            bytes.splice(start..(start + length).min(bytes.len()), number[..length].iter().copied());
        }
    }
}

/// `bytes` with some changes, perhaps by parts of `other`.
pub(crate) fn mutated(prng: &mut Prng, bytes: &[u8], other: &[u8]) -> Vec<u8> {
    let mut input = bytes.to_vec();
    for _ in 0..=prng.below(4) {
        change(prng, &mut input, other);
    }
    input.truncate(INPUT_BYTES_MAX);
    input
}
