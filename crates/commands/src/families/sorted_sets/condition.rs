//! What has to be true of a member to be given a score: options of ZADD.

use crate::encoding::Field;
use crate::error::CommandError;
use crate::primitive::{Malformed, take_u8};
use crate::words::{Words, is};
use syros_values::Score;

/// When a member gets a new score.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScoreCondition {
    /// In any case.
    #[default]
    Always,
    /// NX: if it has none.
    IfNew,
    /// XX: if it has one.
    IfOld,
    /// GT: if it has none that is not less.
    IfGreater,
    /// LT: if it has none that is not greater.
    IfLess,
    /// XX and GT.
    IfOldAndGreater,
    /// XX and LT.
    IfOldAndLess,
}

/// All, in the order of their numbers.
const CONDITIONS: [ScoreCondition; 7] = [
    ScoreCondition::Always,
    ScoreCondition::IfNew,
    ScoreCondition::IfOld,
    ScoreCondition::IfGreater,
    ScoreCondition::IfLess,
    ScoreCondition::IfOldAndGreater,
    ScoreCondition::IfOldAndLess,
];

impl ScoreCondition {
    /// True if a member may be added.
    pub(super) const fn allows_new(self) -> bool {
        matches!(self, Self::Always | Self::IfNew | Self::IfGreater | Self::IfLess)
    }

    /// True if a member may get another score in place of an old one.
    pub(super) fn allows_change(self, old: Score, new: Score) -> bool {
        match self {
            Self::Always | Self::IfOld => true,
            Self::IfNew => false,
            Self::IfGreater | Self::IfOldAndGreater => new > old,
            Self::IfLess | Self::IfOldAndLess => new < old,
        }
    }
}

impl Field<'_> for ScoreCondition {
    type Content = Self;

    fn put(out: &mut Vec<u8>, condition: Self) {
        out.push(condition as u8);
    }

    fn take(input: &mut &[u8]) -> Result<Self, Malformed> {
        let number = take_u8(input)?;
        CONDITIONS.get(usize::from(number)).copied().ok_or(Malformed::Options(number))
    }
}

/// The options in front of scores and members.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::families) struct AddOptions {
    pub(in crate::families) condition: ScoreCondition,
    /// CH.
    pub(in crate::families) counts_changes: bool,
    /// INCR.
    pub(in crate::families) increments: bool,
}

/// The options that these words begin with, and the words behind them: groups of `step` words each.
pub(in crate::families) fn parse_options(
    words: Words<'_>,
    step: usize,
) -> Result<(AddOptions, Words<'_>), CommandError> {
    let option_count = words.iter().take_while(|word| is_option(word)).count();
    let (option_words, rest) = words.split_at(option_count);
    if rest.is_empty() || !rest.len().is_multiple_of(step) {
        return Err(CommandError::Syntax);
    }
    let has = |name| option_words.iter().any(|word| is(word, name));
    let condition = match (has("nx"), has("xx"), has("gt"), has("lt")) {
        (true, true, ..) => return Err(CommandError::AddNxWithXx),
        (true, _, true, _) | (true, _, _, true) | (_, _, true, true) => {
            return Err(CommandError::AddWithSeveralComparisons);
        }
        (true, ..) => ScoreCondition::IfNew,
        (_, true, true, _) => ScoreCondition::IfOldAndGreater,
        (_, true, _, true) => ScoreCondition::IfOldAndLess,
        (_, true, ..) => ScoreCondition::IfOld,
        (_, _, true, _) => ScoreCondition::IfGreater,
        (_, _, _, true) => ScoreCondition::IfLess,
        _ => ScoreCondition::Always,
    };
    Ok((AddOptions { condition, counts_changes: has("ch"), increments: has("incr") }, rest))
}

fn is_option(word: &[u8]) -> bool {
    ["nx", "xx", "gt", "lt", "ch", "incr"].iter().any(|name| is(word, name))
}
