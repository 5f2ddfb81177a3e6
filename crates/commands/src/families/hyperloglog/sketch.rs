//! HyperLogLogs as strings, in the format of Redis.
//!
//! A header of 16 bytes says which of two forms follows. The *dense* one has six bits for each register. The *sparse* one
//! has runs of equal registers, and is used as long as it is short and its ranks are low; what was dense once stays dense,
//! as in Redis.
//!
//! Redis keeps the last estimate in the header. Here no read changes a key, and the estimate is always computed: the header
//! of what is written says that there is none, and what it says in a string that a client has written is not looked at.
//! A sparse form is always the shortest that its registers have, so that it does not depend on the order in which elements
//! were added.

use super::registers::{REGISTERS, Rank, Registers};
use crate::error::ExecutionError;

const MAGIC: &[u8] = b"HYLL";
const HEADER_BYTES: usize = 16;

/// Where the header says which form it is, and what it says.
const FORM_INDEX: usize = 4;
const DENSE: u8 = 0;
const SPARSE: u8 = 1;

/// What the header says of the estimate: that it is not known.
const NO_ESTIMATE: [u8; 8] = [0, 0, 0, 0, 0, 0, 0, 0x80];
const ESTIMATE_INDEX: usize = 8;

/// Length of a dense one.
pub(super) const DENSE_BYTES: usize = HEADER_BYTES + REGISTERS * 6 / 8;

/// Longest sparse one: Redis's `hll-sparse-max-bytes` if it is not configured otherwise.
const SPARSE_BYTES_MAX: usize = 3000;

/// Highest rank in a sparse one.
const SPARSE_RANK_MAX: u8 = 32;

/// Most registers in one run of a rank, in a short run of zeros and in a long one.
const RUN_MAX: usize = 4;
const ZEROS_MAX: usize = 64;

/// True if this is dense, false if it is sparse.
///
/// # Errors
/// If it is no HyperLogLog.
pub(super) fn is_dense(bytes: &[u8]) -> Result<bool, ExecutionError> {
    match bytes.get(FORM_INDEX) {
        _ if bytes.len() < HEADER_BYTES || !bytes.starts_with(MAGIC) => {}
        Some(&DENSE) if bytes.len() == DENSE_BYTES => return Ok(true),
        Some(&SPARSE) => return Ok(false),
        _ => {}
    }
    Err(ExecutionError::NotHyperLogLog)
}

/// Its registers.
///
/// # Errors
/// If it is no HyperLogLog, or a damaged one.
pub(super) fn registers(bytes: &[u8]) -> Result<Registers, ExecutionError> {
    let mut registers = Registers::new();
    if is_dense(bytes)? {
        let (groups, _) = bytes[HEADER_BYTES..].as_chunks();
        let (ranks, _) = registers.all_mut().as_chunks_mut();
        groups.iter().zip(ranks).for_each(|(group, ranks)| *ranks = unpacked(*group));
    } else {
        read_runs(&bytes[HEADER_BYTES..], registers.all_mut())?;
    }
    Ok(registers)
}

/// Which of these ranks would change it.
///
/// # Errors
/// If it is no HyperLogLog, or a damaged one.
pub(super) fn raising(bytes: &[u8], ranks: impl Iterator<Item = Rank>) -> Result<Vec<Rank>, ExecutionError> {
    if is_dense(bytes)? {
        return Ok(ranks.filter(|rank| dense_rank(bytes, rank.index) < rank.rank).collect());
    }
    let registers = registers(bytes)?;
    Ok(ranks.filter(|rank| registers.is_below(*rank)).collect())
}

/// Raises registers, of a dense one in their place.
///
/// # Errors
/// If it is no HyperLogLog, or a damaged one; it stays as it was.
pub(super) fn raise(bytes: &mut Vec<u8>, ranks: &[Rank]) -> Result<(), ExecutionError> {
    if is_dense(bytes)? {
        ranks.iter().for_each(|rank| raise_dense(bytes, *rank));
        bytes[ESTIMATE_INDEX..HEADER_BYTES].copy_from_slice(&NO_ESTIMATE);
        return Ok(());
    }
    let mut registers = registers(bytes)?;
    ranks.iter().for_each(|rank| registers.raise(*rank));
    *bytes = encoded(&registers, false);
    Ok(())
}

/// The string with these registers: a dense one if `is_dense`, or if there is no sparse one.
pub(super) fn encoded(registers: &Registers, is_dense: bool) -> Vec<u8> {
    let sparse = if is_dense { None } else { encoded_sparse(registers.all()) };
    sparse.unwrap_or_else(|| encoded_dense(registers.all()))
}

fn header(form: u8) -> Vec<u8> {
    [MAGIC, &[form, 0, 0, 0], &NO_ESTIMATE].concat()
}

fn encoded_dense(registers: &[u8]) -> Vec<u8> {
    let mut bytes = header(DENSE);
    let (groups, _) = registers.as_chunks();
    groups.iter().for_each(|ranks| bytes.extend_from_slice(&packed(*ranks)));
    bytes
}

/// `None` if it would be too long, or a rank is too high.
fn encoded_sparse(registers: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = header(SPARSE);
    for run in registers.chunk_by(|one, next| one == next) {
        match run[0] {
            0 => put_zeros(&mut bytes, run.len()),
            rank @ 1..=SPARSE_RANK_MAX => {
                run.chunks(RUN_MAX)
                    .for_each(|part| bytes.push(0x80 | (rank - 1) << 2 | (part.len() - 1) as u8));
            }
            _ => return None,
        }
        if bytes.len() > SPARSE_BYTES_MAX {
            return None;
        }
    }
    Some(bytes)
}

fn put_zeros(bytes: &mut Vec<u8>, count: usize) {
    let last = count - 1;
    if count <= ZEROS_MAX {
        bytes.push(last as u8);
    } else {
        // All registers fit into the 14 bits of a long run.
        bytes.extend_from_slice(&[0x40 | (last >> 8) as u8, last as u8]);
    }
}

/// Gives registers, which are 0, the ranks of runs.
fn read_runs(mut runs: &[u8], registers: &mut [u8]) -> Result<(), ExecutionError> {
    let mut rest = registers;
    while let [first, others @ ..] = runs {
        let (length, rank, next) = match (first >> 6, others) {
            (0, _) => (usize::from(*first) + 1, 0, others),
            (1, [second, others @ ..]) => {
                ((usize::from(first & 0x3f) << 8 | usize::from(*second)) + 1, 0, others)
            }
            (1, []) => return Err(ExecutionError::CorruptHyperLogLog),
            _ => (usize::from(first & 3) + 1, (first >> 2 & 0x1f) + 1, others),
        };
        runs = next;
        let (run, behind) = rest.split_at_mut_checked(length).ok_or(ExecutionError::CorruptHyperLogLog)?;
        run.fill(rank);
        rest = behind;
    }
    if rest.is_empty() { Ok(()) } else { Err(ExecutionError::CorruptHyperLogLog) }
}

/// Four registers in three bytes, the first one in the lowest bits.
fn packed(ranks: [u8; 4]) -> [u8; 3] {
    let [low, middle, high, _] =
        ranks.iter().rev().fold(0, |group: u32, rank| group << 6 | u32::from(rank & 63)).to_le_bytes();
    [low, middle, high]
}

fn unpacked([low, middle, high]: [u8; 3]) -> [u8; 4] {
    let group = u32::from_le_bytes([low, middle, high, 0]);
    [0, 6, 12, 18].map(|shift| (group >> shift & 63) as u8)
}

/// The bytes of a dense one in which a register lies with three others.
const fn group_start(index: usize) -> usize {
    HEADER_BYTES + index / 4 * 3
}

fn dense_rank(bytes: &[u8], index: usize) -> u8 {
    let start = group_start(index);
    unpacked([bytes[start], bytes[start + 1], bytes[start + 2]])[index % 4]
}

fn raise_dense(bytes: &mut [u8], Rank { index, rank }: Rank) {
    let start = group_start(index);
    let mut ranks = unpacked([bytes[start], bytes[start + 1], bytes[start + 2]]);
    ranks[index % 4] = ranks[index % 4].max(rank);
    bytes[start..start + 3].copy_from_slice(&packed(ranks));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sketch(ranks: &[(usize, u8)], is_dense: bool) -> Vec<u8> {
        let mut registers = Registers::new();
        ranks.iter().for_each(|(index, rank)| registers.raise(Rank { index: *index, rank: *rank }));
        encoded(&registers, is_dense)
    }

    #[test]
    fn sparse_forms_have_golden_bytes() {
        let head = |runs: &[u8]| [&b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\x80"[..], runs].concat();
        for (ranks, runs) in [
            (&[][..], &[0x7f, 0xff][..]),
            (&[(0, 1)], &[0x80, 0x7f, 0xfe]),
            (&[(REGISTERS - 1, 32)], &[0x7f, 0xfe, 0xfc]),
            (&[(64, 2), (65, 2), (66, 3)], &[0x3f, 0x85, 0x88, 0x7f, 0xbc]),
            (&[(65, 5), (66, 5), (67, 5), (68, 5), (69, 5)], &[0x40, 0x40, 0x93, 0x90, 0x7f, 0xb9]),
        ] {
            let bytes = sketch(ranks, false);
            assert_eq!(bytes, head(runs), "{ranks:?}");
            assert_eq!(encoded(&registers(&bytes).unwrap(), false), bytes, "{ranks:?}");
        }
    }

    #[test]
    fn dense_forms_hold_every_register() {
        let ranks: Vec<(usize, u8)> = (0..REGISTERS).map(|index| (index, (index * 7 % 52) as u8)).collect();
        let bytes = sketch(&ranks, true);
        assert_eq!((bytes.len(), is_dense(&bytes)), (DENSE_BYTES, Ok(true)));
        let found = registers(&bytes).unwrap();
        assert!(ranks.iter().all(|(index, rank)| found.all()[*index] == *rank));
        assert!(ranks.iter().all(|(index, rank)| dense_rank(&bytes, *index) == *rank));
        let mut raised = bytes.clone();
        raise(&mut raised, &[Rank { index: 16_383, rank: 51 }, Rank { index: 0, rank: 1 }]).unwrap();
        let changed: Vec<usize> = (0..DENSE_BYTES).filter(|index| raised[*index] != bytes[*index]).collect();
        assert_eq!(changed, [HEADER_BYTES, DENSE_BYTES - 1]);
    }

    #[test]
    fn what_is_long_or_has_high_ranks_is_dense() {
        assert_eq!(is_dense(&sketch(&[(3, 33)], false)), Ok(true));
        let ranks = |count: usize| (0..count).map(|number| (2 * number, 1)).collect::<Vec<_>>();
        // A rank and a zero each, and a long run of zeros at the end.
        let fits = (SPARSE_BYTES_MAX - HEADER_BYTES - 3) / 2;
        assert_eq!(is_dense(&sketch(&ranks(fits), false)), Ok(false));
        assert_eq!(is_dense(&sketch(&ranks(fits + 2), false)), Ok(true));
    }

    #[test]
    fn what_is_damaged_is_refused() {
        let good = sketch(&[(3, 4)], false);
        let with = |index: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[index] = byte;
            bytes
        };
        for bytes in [vec![], good[..15].to_vec(), with(0, b'h'), with(4, 0), with(4, 2)] {
            assert_eq!(registers(&bytes), Err(ExecutionError::NotHyperLogLog), "{bytes:?}");
        }
        let longer = [&good[..], &[0]].concat();
        let shorter = &good[..good.len() - 1];
        for bytes in [longer, shorter.to_vec(), with(16, 1), with(16, 0xff), good[..16].to_vec()] {
            assert_eq!(registers(&bytes), Err(ExecutionError::CorruptHyperLogLog), "{bytes:?}");
        }
    }
}
