//! Is there an intact record behind a bad one?
//!
//! Neither the position nor the number of such a record is known, and trying every number at every
//! position would take years. CRC-32C is linear, so the checksum, the length and the payload at one
//! position can be solved for the low half of the record number instead; checksums of arbitrary ranges
//! come from those of prefixes. The cost per position with a plausible length is six multiplications
//! of polynomials, whatever the length says.

use crate::checksum::{START, extend, finish, multiply, power_of_x};
use crate::format::{
    MARK_BYTES, MARK_LENGTH, Parsed, RECORD_BYTES_MAX, RECORD_HEADER_BYTES, RecordNumber, mark, parse_record,
    read_u32, read_u64,
};

/// The shortest record: a header and one byte.
const RECORD_SPAN_MIN: usize = RECORD_HEADER_BYTES + 1;

/// A match whose number is at most this far ahead counts by itself: rot usually hits one sector, which
/// holds some dozens of records. Every solution hits a range of `r` numbers by accident with a chance of
/// `r / 2^32`, and a torn 16 MiB record can hold a million plausible positions; so a number
/// further ahead must be confirmed by what follows the match (the next record, or the exact end).
const UNCONFIRMED_AHEAD_MAX: u64 = 64;

/// Distance between the prefixes whose register is kept: a sixteenth of the memory that keeping all
/// would take, for at most this many bytes to hash per look-up.
const CHECKPOINT_BYTES: usize = 64;

/// Registers of prefixes, from a register of 0.
struct Prefixes<'a> {
    bytes: &'a [u8],
    checkpoints: Vec<u32>,
}

impl<'a> Prefixes<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        let mut checkpoints = Vec::with_capacity(bytes.len() / CHECKPOINT_BYTES + 1);
        let mut state = 0;
        for chunk in bytes.chunks(CHECKPOINT_BYTES) {
            checkpoints.push(state);
            state = extend(state, chunk);
        }
        checkpoints.push(state);
        Self { bytes, checkpoints }
    }

    /// The register after `bytes[..end]`.
    fn until(&self, end: usize) -> u32 {
        let checkpoint = end / CHECKPOINT_BYTES;
        extend(self.checkpoints[checkpoint], &self.bytes[checkpoint * CHECKPOINT_BYTES..end])
    }
}

/// x^(-8 k) for every k up to a limit, in two digits.
struct Shifts {
    low: Vec<u32>,
    high: Vec<u32>,
}

const SHIFT_DIGIT_BITS: usize = 12;
const SHIFT_DIGIT: usize = 1 << SHIFT_DIGIT_BITS;

impl Shifts {
    fn new(bytes_max: usize) -> Self {
        let powers = |count: usize, factor: u32| {
            let next = |power: &u32| Some(multiply(*power, factor));
            std::iter::successors(Some(power_of_x(0)), next).take(count).collect()
        };
        Self {
            low: powers(SHIFT_DIGIT, power_of_x(-8)),
            high: powers((bytes_max >> SHIFT_DIGIT_BITS) + 1, power_of_x(-8 * SHIFT_DIGIT as i64)),
        }
    }

    fn back(&self, bytes: usize) -> u32 {
        multiply(self.high[bytes >> SHIFT_DIGIT_BITS], self.low[bytes % SHIFT_DIGIT])
    }
}

const BACK_4: u32 = power_of_x(-32);
const BACK_8: u32 = power_of_x(-64);
const BACK_12: u32 = power_of_x(-96);

/// Looks behind the bad record `bad`, which begins at byte 0 of `tail`, for a valid record of a later
/// number; returns its position and number.
pub(crate) fn find_later_record(tail: &[u8], bad: RecordNumber) -> Option<(usize, RecordNumber)> {
    let last_start = tail.len().checked_sub(RECORD_SPAN_MIN)?;
    if last_start < RECORD_SPAN_MIN {
        return None;
    }
    let prefixes = Prefixes::new(tail);
    let shifts = Shifts::new(tail.len().min(RECORD_BYTES_MAX));
    for start in RECORD_SPAN_MIN..=last_start {
        let length = read_u32(tail, start);
        let payload = start + RECORD_HEADER_BYTES;
        let bytes = length as usize;
        if bytes == 0 || bytes > RECORD_BYTES_MAX || bytes > tail.len() - payload {
            continue;
        }
        // `t` is the register before the payload, which began at START, took the 8 bytes of the number
        // (low half, then high half) and the 4 of the length.
        let end_state = finish(read_u32(tail, start + 4));
        let t = multiply(end_state ^ prefixes.until(payload + bytes), shifts.back(bytes))
            ^ prefixes.until(payload);
        let without_high = multiply(t, BACK_12) ^ multiply(length, BACK_8) ^ START;
        // Every record takes its bytes, so a record that starts here cannot be further ahead.
        let most = bad.0 + (start / RECORD_SPAN_MIN) as u64;
        for high in (bad.0 >> 32)..=(most >> 32) {
            let low = without_high ^ multiply(high as u32, BACK_4);
            let number = RecordNumber(high << 32 | u64::from(low));
            if number > bad && number.0 <= most && counts(&tail[start..], number, bad) {
                return Some((start, number));
            }
        }
    }
    None
}

/// Looks behind byte 0 of `tail`, where the record `bad` or the mark before it should be, for another mark: before a later
/// record, or before that one again. (Where a log has been closed or cut behind a mark, the next batch begins with one
/// more.) Returns its position and the number of that record.
pub(crate) fn find_later_mark(tail: &[u8], bad: RecordNumber) -> Option<(usize, RecordNumber)> {
    tail.windows(MARK_BYTES).enumerate().skip(RECORD_SPAN_MIN).find_map(|(start, bytes)| {
        if read_u32(bytes, 0) != MARK_LENGTH {
            return None;
        }
        let number = RecordNumber(read_u64(bytes, 8));
        // Every record takes its bytes, so a mark that stands here cannot be further ahead; and so does a mark.
        let is_later = number > bad || (number == bad && start >= MARK_BYTES);
        let possible = is_later && number.0 <= bad.0 + (start / RECORD_SPAN_MIN) as u64;
        (possible && bytes == mark(number)).then_some((start, number))
    })
}

/// Whether the match at the beginning of `bytes` is evidence.
fn counts(bytes: &[u8], number: RecordNumber, bad: RecordNumber) -> bool {
    let Parsed::Record(payload) = parse_record(bytes, number) else { return false };
    let rest = &bytes[RECORD_HEADER_BYTES + payload.len()..];
    number.0 - bad.0 <= UNCONFIRMED_AHEAD_MAX
        || rest.is_empty()
        || matches!(parse_record(rest, number.next()), Parsed::Record(_))
}

#[cfg(test)]
mod tests {
    use super::{UNCONFIRMED_AHEAD_MAX, counts, find_later_record};
    use crate::format::{Batch, Parsed, RecordNumber, parse_record};
    use syros_types::Prng;

    /// The same question, asked of every number at every position.
    fn brute_force(tail: &[u8], bad: RecordNumber) -> Option<(usize, RecordNumber)> {
        (1..tail.len()).find_map(|start| {
            (bad.0 + 1..=bad.0 + (start / 9) as u64)
                .map(RecordNumber)
                .find(|&number| {
                    matches!(parse_record(&tail[start..], number), Parsed::Record(_))
                        && counts(&tail[start..], number, bad)
                })
                .map(|number| (start, number))
        })
    }

    fn push(batch: &mut Batch, number: u64, payload: &[u8]) {
        batch.push(RecordNumber(number), |out| out.extend_from_slice(payload)).unwrap();
    }

    #[test]
    fn agrees_with_brute_force() {
        let mut prng = Prng::new(11);
        let mut found = 0;
        for round in 0..300 {
            // Around 2^32 the high half of the number changes within the search.
            let first = if round % 2 == 0 { 1 + prng.below(1 << 40) } else { (1 << 32) - prng.below(6) };
            let mut batch = Batch::default();
            for number in first..first + 6 {
                let payload: Vec<u8> = (0..1 + prng.below(150)).map(|_| prng.below(3) as u8).collect();
                push(&mut batch, number, &payload);
            }
            let mut tail = batch.bytes;
            for _ in 0..=prng.below(8) {
                let at = prng.below(tail.len() as u64) as usize;
                tail[at] ^= 1 << prng.below(8);
            }
            tail.truncate(tail.len() - prng.below(100) as usize);
            let answer = find_later_record(&tail, RecordNumber(first));
            assert_eq!(answer, brute_force(&tail, RecordNumber(first)), "round {round}");
            found += u32::from(answer.is_some());
        }
        assert!((100..300).contains(&found), "both answers occur: {found}");
    }

    #[test]
    fn long_records_are_found() {
        let mut batch = Batch::default();
        push(&mut batch, 1, &[7; 100]);
        let second = batch.bytes.len();
        push(&mut batch, 2, &vec![9; 300_000]);
        batch.bytes[3] = 1;
        assert_eq!(find_later_record(&batch.bytes, RecordNumber(1)), Some((second, RecordNumber(2))));
    }

    #[test]
    fn far_ahead_needs_confirmation() {
        let far = 1 + UNCONFIRMED_AHEAD_MAX + 1;
        let mut tail = vec![0; 9 * far as usize];
        let start = tail.len();
        let mut batch = Batch::default();
        push(&mut batch, far, b"far");
        tail.extend_from_slice(&batch.bytes);
        let found = Some((start, RecordNumber(far)));
        assert_eq!(find_later_record(&tail, RecordNumber(1)), found, "ends exactly at the end");
        tail.push(0);
        assert_eq!(find_later_record(&tail, RecordNumber(1)), None, "nothing confirms it");
        assert_eq!(find_later_record(&tail, RecordNumber(2)), found, "near enough");
        tail.pop();
        batch.clear();
        push(&mut batch, far + 1, b"next");
        tail.extend_from_slice(&batch.bytes);
        tail.push(0);
        assert_eq!(find_later_record(&tail, RecordNumber(1)), found, "the next record confirms it");
    }

    #[test]
    fn impossible_numbers_are_not_found() {
        let mut tail = vec![0; 18];
        let mut batch = Batch::default();
        push(&mut batch, 4, b"too far for 18 bytes");
        tail.extend_from_slice(&batch.bytes);
        assert_eq!(find_later_record(&tail, RecordNumber(1)), None);
        assert!(find_later_record(&tail, RecordNumber(2)).is_some());
        assert_eq!(find_later_record(&tail, RecordNumber(4)), None, "not later");
    }
}
