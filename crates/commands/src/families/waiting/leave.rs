//! The end of waiting.

use super::queue::{Queue, WaiterId};
use crate::access::KeysMut;
use crate::arguments::Arguments;
use crate::encoding::{Flag, List, fields};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, UpdateCommand};
use crate::families::specification::CommandSpec;
use crate::reply::put_ok;

/// Takes one out of the queues of these keys. No client can send it: its node does, when the client has gone or does not want
/// to wait any longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leave<'a> {
    /// Who waited.
    pub waiter: WaiterId,
    /// True if it waited for elements of lists, false if for members of sorted sets.
    pub is_list: bool,
    /// The keys that it waited for.
    pub keys: Arguments<'a>,
}

fields!(Leave<'a> = 83 { waiter: WaiterId, is_list: Flag, keys: List<1> });

impl<'a> Definition<'a> for Leave<'a> {
    const SPECS: &'static [CommandSpec] = &[];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::Every { list: self.keys, step: 1 }
    }
}

impl<'a> UpdateCommand<'a> for Leave<'a> {
    fn answers_ok(&self) -> bool {
        true
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        for key in self.keys {
            let mut queue =
                Queue::read(keys, (key, self.is_list), self.waiter, |one| one.has_gone(now_ms, 0, 0));
            queue.leave();
            queue.store(keys);
        }
        put_ok(reply);
        Ok(())
    }
}
