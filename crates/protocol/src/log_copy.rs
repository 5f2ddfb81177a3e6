//! Somebody outside the group copies its log, entry after entry, from whichever member answers.

use crate::message::{LogEntry, Message};
use alloc::vec::Vec;
use core::fmt;
use syros_types::{OpNumber, View, WallTime};

/// A copy of the log of a group, as far as it has come. It holds no entries: whoever copies puts them away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogCopy {
    op_number: OpNumber,
    /// `None` if nobody knows.
    view: Option<View>,
    time: WallTime,
}

/// Why a copy cannot go on from what a member says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyError {
    /// The member keeps the log only from a later entry on.
    Gone {
        /// The copy ends with this entry.
        after: OpNumber,
        /// The member's log begins after this one.
        base: OpNumber,
    },
    /// The last entry of the copy is not the member's entry of this number: the copy is of another history.
    OtherHistory {
        /// The entry.
        op_number: OpNumber,
        /// Its view in the copy.
        view: View,
        /// Its view at the member.
        theirs: View,
    },
    /// What the member sends is no log: views or times go back.
    Backwards {
        /// The entry with an earlier view or time than the one before it.
        op_number: OpNumber,
    },
}

impl fmt::Display for CopyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone { after, base } => write!(
                f,
                "the entries behind {} are not in its log any more, which begins behind entry {}",
                after.0, base.0
            ),
            Self::OtherHistory { op_number, view, theirs } => write!(
                f,
                "its entry {} is of view {theirs}, and the one that was copied is of view {view}: it has another history",
                op_number.0
            ),
            Self::Backwards { op_number } => {
                write!(
                    f,
                    "it sends entry {}, which has an earlier view or time than the one before",
                    op_number.0
                )
            }
        }
    }
}

impl core::error::Error for CopyError {}

impl LogCopy {
    /// A copy that ends with this entry; all 0 for one that is to begin with the first.
    #[must_use]
    pub const fn after(op_number: OpNumber, view: View, time: WallTime) -> Self {
        Self { op_number, view: Some(view), time }
    }

    /// A copy that is to begin behind this entry, of which no more is known.
    #[must_use]
    pub const fn behind(op_number: OpNumber) -> Self {
        Self { op_number, view: None, time: WallTime(0) }
    }

    /// The last entry that was copied.
    #[must_use]
    pub const fn op_number(&self) -> OpNumber {
        self.op_number
    }

    /// What to ask a member for, to get about so many bytes of entries, and to have it keep those behind `held`: what is up to there is
    /// put away for good.
    #[must_use]
    pub const fn want(&self, held: OpNumber, bytes_max: u64) -> Message {
        Message::WantEntries { after: self.op_number, held, bytes_max }
    }

    /// Takes an answer of a member: the entries that follow, none if there are none yet. `None` if it is no answer to what was
    /// asked last.
    ///
    /// # Errors
    /// [`CopyError`]; the copy is then as it was.
    pub fn take(&mut self, answer: Message) -> Result<Option<Vec<LogEntry>>, CopyError> {
        let Message::CommittedEntries { after, after_view, base, entries, .. } = answer else {
            return Ok(None);
        };
        if after != self.op_number {
            return Ok(None);
        }
        if base > after {
            return Err(CopyError::Gone { after, base });
        }
        if let Some(view) = self.view.filter(|view| !entries.is_empty() && *view != after_view) {
            return Err(CopyError::OtherHistory { op_number: after, view, theirs: after_view });
        }
        let mut next = *self;
        for entry in &entries {
            next.op_number = next.op_number.next();
            if Some(entry.view) < next.view || entry.time < next.time {
                return Err(CopyError::Backwards { op_number: next.op_number });
            }
            (next.view, next.time) = (Some(entry.view), entry.time);
        }
        *self = next;
        Ok(Some(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Payload;
    use alloc::vec;

    fn entry(view: u64, time: u64) -> LogEntry {
        LogEntry { view: View(view), time: WallTime(time), payload: Payload::Tick }
    }

    fn answer(after: u64, after_view: u64, base: u64, entries: Vec<LogEntry>) -> Message {
        let (after, base, applied) = (OpNumber(after), OpNumber(base), OpNumber(90));
        Message::CommittedEntries { after, after_view: View(after_view), base, applied, entries }
    }

    #[test]
    fn a_copy_goes_on_where_it_was() {
        let mut copy = LogCopy::after(OpNumber(4), View(2), WallTime(10));
        let held = OpNumber(3);
        assert_eq!(copy.want(held, 7), Message::WantEntries { after: OpNumber(4), held, bytes_max: 7 });
        let two = vec![entry(2, 10), entry(3, 11)];
        assert_eq!(copy.take(answer(4, 2, 1, two.clone())), Ok(Some(two.clone())));
        assert_eq!(copy, LogCopy::after(OpNumber(6), View(3), WallTime(11)));
        assert_eq!(copy.take(answer(4, 2, 1, two)), Ok(None), "it came twice");
        assert_eq!(copy.take(Message::StatusRequest), Ok(None));
        assert_eq!(copy.take(answer(6, 0, 1, vec![])), Ok(Some(vec![])), "nothing follows yet");
    }

    #[test]
    fn what_does_not_follow_is_refused_and_the_copy_stays() {
        let mut copy = LogCopy::after(OpNumber(6), View(3), WallTime(11));
        let before = copy;
        let gone = CopyError::Gone { after: OpNumber(6), base: OpNumber(7) };
        assert_eq!(copy.take(answer(6, 0, 7, vec![])), Err(gone));
        let other = CopyError::OtherHistory { op_number: OpNumber(6), view: View(3), theirs: View(2) };
        assert_eq!(copy.take(answer(6, 2, 6, vec![entry(3, 11)])), Err(other));
        for wrong in [entry(2, 11), entry(3, 10)] {
            let back = CopyError::Backwards { op_number: OpNumber(8) };
            assert_eq!(copy.take(answer(6, 3, 6, vec![entry(3, 11), wrong])), Err(back));
        }
        assert_eq!(copy, before);
    }
}
