//! WATCH and UNWATCH.
//!
//! WATCH asks for the versions of its keys, a linearizable read, and looks at no further input before it has them: so
//! whatever the client reads afterwards is at least as new, and EXEC knows what to compare. The first WATCH of all finds
//! that no versions are recorded. It has them recorded, which is an update of all keys, and asks again.

use super::transactions::NOT_ALLOWED;
use super::{CommandPipeline, Slot};
use crate::context::Context;
use crate::schedule::{Completion, Load, Written, write_failure};
use crate::watch::{WatchStep, Watched, Watching};
use crate::writer::{write_error, write_simple};
use syros_commands::{CommandError, operations};
use syros_types::ReadPolicy;
use syros_types::limits::{KEY_BYTES_MAX, KEYS_PER_OPERATION_MAX};

impl CommandPipeline {
    /// WATCH.
    pub(super) fn watch(&mut self, number: usize, keys: &[&[u8]], context: &Context<'_>) {
        if self.queue.is_some() {
            return self.refuse(Some(number), NOT_ALLOWED);
        }
        if let Some(unavailable) = context.unavailable {
            return self.reply(|_, out| write_error(out, unavailable.text().as_bytes()));
        }
        if let Some(error) = beyond_limits(keys) {
            return self.reject(Some(number), &error);
        }
        if let Err(too_many) = self.watched.check(keys) {
            return self.refuse(Some(number), too_many.to_string().as_bytes());
        }
        self.session.statistics.on_call(number);
        let keys: Vec<Vec<u8>> = keys.iter().map(|key| key.to_vec()).collect();
        let database = self.session.database;
        let slot = self.ask(Watching::question(database, &keys));
        let (step, is_silent) = (WatchStep::First, self.is_silent);
        self.watching = Some(Watching { slot, database, keys, step, is_silent });
        self.slots.push_back(Slot::Watch);
    }

    /// Submits a body of one operation; the slot of its group.
    fn ask(&mut self, body: Vec<u8>) -> u64 {
        let mut load = Load::default();
        operations(&body).flatten().for_each(|operation| load.add(&operation));
        let policy = match self.session.read_policy {
            // An answer may be out of date by which nothing is decided.
            None | Some(ReadPolicy::Stale) => ReadPolicy::Auto,
            Some(other) => other,
        };
        // The body is within all limits; a group of this slot would never end.
        self.schedule.add_transaction(body, load, Some(policy)).unwrap_or(0)
    }

    /// Goes on with the WATCH that is waited for.
    pub(super) fn answer_watch(&mut self) -> Written {
        let Some(mut watching) = self.watching.take() else { return Written::Whole };
        let Some(completion) = self.schedule.take_end(watching.slot) else {
            self.watching = Some(watching);
            return Written::Nothing;
        };
        let (next, body) = match (watching.step, &completion) {
            (WatchStep::First | WatchStep::Again, Completion::Reply(reply)) => match watching.versions(reply)
            {
                Some(versions) => {
                    let keys = std::mem::take(&mut watching.keys);
                    self.watched.add(watching.database, keys, &versions);
                    return self.end_watch(&watching, |out| write_simple(out, b"OK"));
                }
                None if watching.step == WatchStep::First => (WatchStep::Recording, Watching::recording()),
                None => {
                    let text = b"ERR internal error: the versions of keys are not recorded";
                    return self.end_watch(&watching, |out| write_error(out, text));
                }
            },
            (WatchStep::Recording, Completion::Done | Completion::Reply(_)) => {
                (WatchStep::Again, Watching::question(watching.database, &watching.keys))
            }
            _ => return self.end_watch(&watching, |out| write_failure(&completion, out)),
        };
        watching.slot = self.ask(body);
        watching.step = next;
        self.watching = Some(watching);
        Written::Nothing
    }

    /// Answers the WATCH that was waited for.
    fn end_watch(&mut self, watching: &Watching, write: impl FnOnce(&mut Vec<u8>)) -> Written {
        if !watching.is_silent {
            write(self.output.tail());
        }
        Written::Whole
    }

    /// Watches no key any more.
    pub(super) fn unwatch(&mut self) {
        self.watched = Watched::default();
    }
}

/// Why an operation cannot name these keys, if it cannot.
fn beyond_limits(keys: &[&[u8]]) -> Option<CommandError> {
    let longest = keys.iter().map(|key| key.len()).max().unwrap_or(0);
    if longest > KEY_BYTES_MAX {
        Some(CommandError::KeyTooLong(longest))
    } else if keys.len() > KEYS_PER_OPERATION_MAX {
        Some(CommandError::TooManyKeys(keys.len()))
    } else {
        None
    }
}
