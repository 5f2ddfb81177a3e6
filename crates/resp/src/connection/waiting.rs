//! Commands that wait for elements or entries, and CLIENT UNBLOCK.
//!
//! A command that waits is a submission of its own ([`Submission::waits`](crate::Submission::waits)), and no further input is
//! looked at before it has ended, as in Redis. Who submits it decides how long it waits.

use super::{Answer, CommandPipeline, Shown, Slot};
use crate::writer::{write_error, write_integer};
use syros_commands::{CommandError, ExecutionError, Operation, parse_integer};
use syros_types::ReadPolicy;

/// A client whose command is to wait no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unblocking {
    /// The client, by the number that CLIENT ID answers.
    pub client: u64,
    /// Its command is answered with an error, and not as if its time had passed.
    pub with_error: bool,
}

impl CommandPipeline {
    /// Takes a command that may have to wait.
    pub(super) fn wait(&mut self, (number, operation): (usize, &Operation<'_>), policy: Option<ReadPolicy>) {
        if !operation.has_room_to_wait() {
            return self
                .reply(|_, out| write_error(out, ExecutionError::TooManyWaitedKeys.text().as_bytes()));
        }
        let slot = self.schedule.add_waiting(operation, policy);
        let shown = if self.is_silent { Shown::Nothing } else { Shown::Reply(self.session.protocol) };
        let command = u16::try_from(number).unwrap_or(u16::MAX);
        self.slots.push_back(Slot::Command(Answer::Group { slot, shown, command, kept: 0 }));
        self.waiting = Some(slot);
    }

    /// CLIENT UNBLOCK, with as many words as it has to have. No further input is looked at before it is answered.
    pub(super) fn unblock(&mut self, number: Option<usize>, words: &[&[u8]]) {
        self.session.statistics.on_call(number.unwrap_or_default());
        let is = |known: &[u8]| words.get(3).is_some_and(|reason| reason.eq_ignore_ascii_case(known));
        let with_error = is(b"error");
        let (text, client) = match parse_integer(words[2]) {
            _ if words.len() == 4 && !with_error && !is(b"timeout") => {
                (b"ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR".to_vec(), 0)
            }
            None => (CommandError::NotInteger.text(), 0),
            Some(client) => (Vec::new(), client.cast_unsigned()),
        };
        if !text.is_empty() {
            return self.reply(|_, out| write_error(out, &text));
        }
        self.unblocking = Some(Unblocking { client, with_error });
        self.wants_unblocking = true;
    }

    /// Answers CLIENT UNBLOCK.
    pub(super) fn unblocked(&mut self, found: bool) {
        if self.unblocking.take().is_some() {
            self.reply(|_, out| write_integer(out, i64::from(found)));
        }
    }
}

/// True for CLIENT UNBLOCK with as many words as it may have.
pub(super) fn is_unblock(words: &[&[u8]]) -> bool {
    matches!(words.len(), 3 | 4)
        && words[0].eq_ignore_ascii_case(b"client")
        && words[1].eq_ignore_ascii_case(b"unblock")
}
