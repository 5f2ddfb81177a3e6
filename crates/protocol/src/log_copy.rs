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
    /// The member that is asked is known to have the last entry of the copy. Until then it is asked for that entry again: a number and
    /// a view do not tell the logs of two groups apart that have one name, and the time of an entry does.
    is_joined: bool,
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
        /// Its view and time in the copy.
        ours: (View, WallTime),
        /// Its view and time at the member.
        theirs: (View, WallTime),
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
            Self::OtherHistory { op_number, ours, theirs } => write!(
                f,
                "its entry {} is of view {} and time {}, and the one that was copied is of view {} and time {}: it has another \
                 history, as a new cluster of the same number has",
                op_number.0, theirs.0, theirs.1.0, ours.0, ours.1.0
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
        Self { op_number, view: Some(view), time, is_joined: op_number.0 == 0 }
    }

    /// A copy that is to begin behind this entry, of which no more is known.
    #[must_use]
    pub const fn behind(op_number: OpNumber) -> Self {
        Self { op_number, view: None, time: WallTime(0), is_joined: true }
    }

    /// True if the member that was asked last has the last entry of the copy.
    #[must_use]
    pub const fn is_joined(&self) -> bool {
        self.is_joined
    }

    /// Another member is asked from now on, or the same one after it was away.
    pub const fn join_again(&mut self) {
        self.is_joined = self.view.is_none() || self.op_number.0 == 0;
    }

    /// The entry behind which a member is asked for entries.
    const fn asked_after(&self) -> OpNumber {
        OpNumber(self.op_number.0 - !self.is_joined as u64)
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
        // The last entry is asked for whenever a member is joined.
        let last = OpNumber(self.op_number.0.saturating_sub(1));
        let held = if held.0 > last.0 { last } else { held };
        Message::WantEntries { after: self.asked_after(), held, bytes_max }
    }

    /// Takes an answer of a member: the entries that follow, none if there are none yet. `None` if it is no answer to what was
    /// asked last.
    ///
    /// # Errors
    /// [`CopyError`]; the copy is then as it was.
    pub fn take(&mut self, answer: Message) -> Result<Option<Vec<LogEntry>>, CopyError> {
        let Message::CommittedEntries { after, after_view, base, mut entries, .. } = answer else {
            return Ok(None);
        };
        if after != self.asked_after() {
            return Ok(None);
        }
        if base > after {
            return Err(CopyError::Gone { after: self.op_number, base });
        }
        if entries.is_empty() {
            return Ok(Some(entries));
        }
        let (op_number, time) = (self.op_number, self.time);
        let mut next = *self;
        if self.is_joined {
            if let Some(view) = self.view.filter(|view| *view != after_view) {
                return Err(CopyError::OtherHistory {
                    op_number,
                    ours: (view, time),
                    theirs: (after_view, time),
                });
            }
        } else {
            let last = entries.remove(0);
            let theirs = (last.view, last.time);
            if let Some(ours) = self.view.map(|view| (view, time)).filter(|ours| *ours != theirs) {
                return Err(CopyError::OtherHistory { op_number, ours, theirs });
            }
            next.is_joined = true;
        }
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
        assert_eq!(copy.want(held, 7), Message::WantEntries { after: OpNumber(3), held, bytes_max: 7 });
        assert_eq!(copy.take(answer(3, 2, 1, vec![])), Ok(Some(vec![])), "it does not have so many yet");
        assert!(!copy.is_joined());
        assert_eq!(
            copy.take(answer(3, 2, 1, vec![entry(2, 10)])),
            Ok(Some(vec![])),
            "it has the copy's last entry"
        );
        assert!(copy.is_joined());
        assert_eq!(copy.want(held, 7), Message::WantEntries { after: OpNumber(4), held, bytes_max: 7 });
        let two = vec![entry(2, 10), entry(3, 11)];
        assert_eq!(copy.take(answer(4, 2, 1, two.clone())), Ok(Some(two.clone())));
        assert_eq!((copy.op_number, copy.view, copy.time), (OpNumber(6), Some(View(3)), WallTime(11)));
        assert_eq!(copy.take(answer(4, 2, 1, two)), Ok(None), "it came twice");
        assert_eq!(copy.take(Message::StatusRequest), Ok(None));
        assert_eq!(copy.take(answer(6, 0, 1, vec![])), Ok(Some(vec![])), "nothing follows yet");
    }

    #[test]
    fn what_does_not_follow_is_refused_and_the_copy_stays() {
        let mut copy = LogCopy::after(OpNumber(6), View(3), WallTime(11));
        copy.is_joined = true;
        let before = copy;
        let gone = CopyError::Gone { after: OpNumber(6), base: OpNumber(7) };
        assert_eq!(copy.take(answer(6, 0, 7, vec![])), Err(gone));
        let time = WallTime(11);
        let other = CopyError::OtherHistory {
            op_number: OpNumber(6),
            ours: (View(3), time),
            theirs: (View(2), time),
        };
        assert_eq!(copy.take(answer(6, 2, 6, vec![entry(3, 11)])), Err(other));
        for wrong in [entry(2, 11), entry(3, 10)] {
            let back = CopyError::Backwards { op_number: OpNumber(8) };
            assert_eq!(copy.take(answer(6, 3, 6, vec![entry(3, 11), wrong])), Err(back));
        }
        assert_eq!(copy, before);
    }

    /// A cluster that was made anew under the same number has a log that begins with the same view.
    #[test]
    fn the_last_entry_has_to_be_the_members_to_the_microsecond() {
        let mut copy = LogCopy::after(OpNumber(6), View(0), WallTime(11));
        let ours = (View(0), WallTime(11));
        for theirs in [(View(0), WallTime(12)), (View(1), WallTime(11))] {
            let entries = vec![entry(theirs.0.0, theirs.1.0), entry(theirs.0.0, 13)];
            let other = CopyError::OtherHistory { op_number: OpNumber(6), ours, theirs };
            assert_eq!(copy.take(answer(5, 0, 1, entries)), Err(other));
        }
        let right = vec![entry(0, 11), entry(0, 13)];
        assert_eq!(copy.take(answer(5, 0, 1, right)), Ok(Some(vec![entry(0, 13)])));
        copy.join_again();
        let gone = CopyError::Gone { after: OpNumber(7), base: OpNumber(7) };
        assert_eq!(copy.take(answer(6, 0, 7, vec![])), Err(gone), "it cannot show that it has the last one");
        assert_eq!(copy.take(answer(6, 0, 6, vec![entry(0, 13)])), Ok(Some(vec![])));
        // Nobody has anything before the first entry.
        assert!(LogCopy::after(OpNumber(0), View(0), WallTime(0)).is_joined());
    }
}
