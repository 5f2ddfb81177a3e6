//! LCS.

use super::string_of;
use crate::access::Keys;
use crate::encoding::{Encoding, Field as _, Key, Opcode};
use crate::error::{CommandError, ExecutionError};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::specification::{CommandKind, CommandSpec, KeyPositions};
use crate::limits::LCS_CELLS_MAX;
use crate::primitive::{Malformed, take_u8};
use crate::reply::{put_array, put_bulk, put_integer, put_map};
use crate::words::{Words, integer, is};
use syros_types::varint::{put_varint, take_varint};

/// LCS: the longest common subsequence of two strings. Keys that do not exist are empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lcs<'a> {
    /// The key of the first string.
    pub first: &'a [u8],
    /// The key of the second string.
    pub second: &'a [u8],
    /// What is answered.
    pub part: LcsPart,
}

/// What LCS answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LcsPart {
    /// The subsequence.
    Text,
    /// LEN: its length.
    Length,
    /// IDX: where in both strings it lies, from the last part to the first, and its length.
    Matches {
        /// Shorter parts are left out.
        length_min: u64,
        /// True to say how long each part is.
        with_length: bool,
    },
}

/// The byte that says what is answered.
mod part_byte {
    pub(super) const TEXT: u8 = 0;
    pub(super) const LENGTH: u8 = 1;
    pub(super) const MATCHES: u8 = 2;
    pub(super) const MATCHES_WITH_LENGTH: u8 = 3;
}

impl<'a> Encoding<'a> for Lcs<'a> {
    const OPCODE: Opcode = 143;

    fn encode(&self, out: &mut Vec<u8>) {
        Key::put(out, self.first);
        Key::put(out, self.second);
        match self.part {
            LcsPart::Text => out.push(part_byte::TEXT),
            LcsPart::Length => out.push(part_byte::LENGTH),
            LcsPart::Matches { length_min, with_length } => {
                out.push(if with_length { part_byte::MATCHES_WITH_LENGTH } else { part_byte::MATCHES });
                put_varint(out, length_min);
            }
        }
    }

    fn decode(_: Opcode, input: &mut &'a [u8]) -> Result<Self, Malformed> {
        let (first, second) = (Key::take(input)?, Key::take(input)?);
        let part = match take_u8(input)? {
            part_byte::TEXT => LcsPart::Text,
            part_byte::LENGTH => LcsPart::Length,
            part_byte::MATCHES => LcsPart::Matches { length_min: take_varint(input)?, with_length: false },
            part_byte::MATCHES_WITH_LENGTH => {
                LcsPart::Matches { length_min: take_varint(input)?, with_length: true }
            }
            other => return Err(Malformed::Options(other)),
        };
        Ok(Self { first, second, part })
    }
}

impl<'a> Definition<'a> for Lcs<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "lcs",
        kind: CommandKind::READ,
        arity: -3,
        keys: KeyPositions::TWO,
        key_flags: &[&["RO", "access"]],
        flags: &["readonly"],
        categories: &["@read", "@string", "@slow"],
        since: "7.0.0",
        summary: "Finds the longest common subsequence of the values of two keys.",
        parser: |_, words| Ok(Lcs { first: words[1], second: words[2], part: part(words)? }.into()),
        ..super::ROW
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::Two(self.first, self.second)
    }
}

fn part(words: Words<'_>) -> Result<LcsPart, CommandError> {
    let (mut wants_length, mut wants_matches) = (false, false);
    let (mut length_min, mut with_length) = (0, false);
    let mut options = words[3..].iter();
    while let Some(option) = options.next() {
        match *option {
            option if is(option, "idx") => wants_matches = true,
            option if is(option, "len") => wants_length = true,
            option if is(option, "withmatchlen") => with_length = true,
            option if is(option, "minmatchlen") => {
                let length = integer(options.next().ok_or(CommandError::Syntax)?)?;
                length_min = u64::try_from(length).unwrap_or_default();
            }
            _ => return Err(CommandError::Syntax),
        }
    }
    match (wants_length, wants_matches) {
        (true, true) => Err(CommandError::LengthAndMatches),
        (true, false) => Ok(LcsPart::Length),
        (false, true) => Ok(LcsPart::Matches { length_min, with_length }),
        (false, false) => Ok(LcsPart::Text),
    }
}

impl ReadCommand for Lcs<'_> {
    fn work(&self) -> usize {
        // Nobody else's command is to wait for it in the same pack.
        LCS_CELLS_MAX
    }

    fn read<K: Keys>(&self, keys: &K, _view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let (first, second) = (keys.get(self.first), keys.get(self.second));
        let strings = (string_of(first.as_ref()), string_of(second.as_ref()));
        let (Ok(first), Ok(second)) = strings else { return Err(ExecutionError::NotStrings) };
        let table = Table::new(first.unwrap_or_default(), second.unwrap_or_default())?;
        match self.part {
            LcsPart::Text => put_bulk(reply, &table.text()),
            LcsPart::Length => put_integer(reply, table.length() as i64),
            LcsPart::Matches { length_min, with_length } => {
                put_matches(reply, &table, length_min, with_length);
            }
        }
        Ok(())
    }
}

fn put_matches(reply: &mut Vec<u8>, table: &Table<'_>, length_min: u64, with_length: bool) {
    let mut runs = table.runs();
    runs.retain(|run| run.length as u64 >= length_min);
    put_map(reply, 2);
    put_bulk(reply, b"matches");
    put_array(reply, runs.len());
    for Run { first, second, length } in runs {
        put_array(reply, if with_length { 3 } else { 2 });
        for start in [first, second] {
            put_array(reply, 2);
            put_integer(reply, start as i64);
            put_integer(reply, (start + length - 1) as i64);
        }
        if with_length {
            put_integer(reply, length as i64);
        }
    }
    put_bulk(reply, b"len");
    put_integer(reply, table.length() as i64);
}

/// How long the longest common subsequences of all beginnings of two strings are.
struct Table<'a> {
    first: &'a [u8],
    second: &'a [u8],
    /// A row for each beginning of the first string, the empty one included.
    lengths: Vec<u16>,
}

/// A subsequence is no longer than the shorter string, whose length has a square below the number of cells.
const _: () = assert!(LCS_CELLS_MAX <= 1 << 32, "16 bits count any subsequence");

/// Bytes that both strings have behind each other.
#[derive(Clone, Copy)]
struct Run {
    /// Where it begins in the first string.
    first: usize,
    /// Where it begins in the second string.
    second: usize,
    length: usize,
}

impl<'a> Table<'a> {
    fn new(first: &'a [u8], second: &'a [u8]) -> Result<Self, ExecutionError> {
        let width = second.len() + 1;
        // Neither factor has more than 25 bits.
        let cells = (first.len() as u64 + 1) * width as u64;
        if cells > LCS_CELLS_MAX as u64 {
            return Err(ExecutionError::StringsTooLong);
        }
        let mut table = Self { first, second, lengths: vec![0; cells as usize] };
        for (row, byte) in first.iter().enumerate() {
            let (before, rest) = table.lengths.split_at_mut((row + 1) * width);
            let (above, current) = (&before[row * width..], &mut rest[..width]);
            for (column, other) in second.iter().enumerate() {
                current[column + 1] =
                    if byte == other { above[column] + 1 } else { above[column + 1].max(current[column]) };
            }
        }
        Ok(table)
    }

    /// For the beginnings of so many bytes.
    fn at(&self, first: usize, second: usize) -> u16 {
        self.lengths[first * (self.second.len() + 1) + second]
    }

    fn length(&self) -> usize {
        usize::from(self.at(self.first.len(), self.second.len()))
    }

    /// The runs of the subsequence that Redis finds among the longest ones, the last one first.
    fn runs(&self) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        let (mut first, mut second) = (self.first.len(), self.second.len());
        while first > 0 && second > 0 {
            if self.first[first - 1] == self.second[second - 1] {
                match runs.last_mut() {
                    Some(run) if (run.first, run.second) == (first, second) => {
                        *run = Run { first: first - 1, second: second - 1, length: run.length + 1 };
                    }
                    _ => runs.push(Run { first: first - 1, second: second - 1, length: 1 }),
                }
                (first, second) = (first - 1, second - 1);
            } else if self.at(first - 1, second) > self.at(first, second - 1) {
                first -= 1;
            } else {
                second -= 1;
            }
        }
        runs
    }

    fn text(&self) -> Vec<u8> {
        let runs = self.runs();
        runs.iter().rev().flat_map(|run| &self.first[run.first..run.first + run.length]).copied().collect()
    }
}
