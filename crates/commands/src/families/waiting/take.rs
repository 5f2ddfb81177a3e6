//! BLPOP, BRPOP, BLMOVE, BRPOPLPUSH, BLMPOP, BZPOPMIN, BZPOPMAX and BZMPOP.

use super::action::{TakeAction, length_of};
use super::queue::{Lease, Queue, Standing, WaiterId};
use crate::access::KeysMut;
use crate::arguments::Arguments;
use crate::double::parse_double;
use crate::encoding::{Encoding as _, Flag, List, Unsigned, fields, put_head};
use crate::error::{CommandError, ExecutionError};
use crate::families::ScoreEnd;
use crate::families::counts::parse_pop;
use crate::families::definition::{Definition, ExecutionResult, KEY_BYTES, KeyNames, UpdateCommand};
use crate::families::elements::ELEMENT_BYTES;
use crate::families::indirect::Indirect;
use crate::families::lists::parse_end;
use crate::families::sorted_sets::parse_score_end;
use crate::families::specification::{CommandKind, CommandSpec, KeyPositions};
use crate::limits::WAITED_KEYS_MAX;
use crate::reply::put_waits;
use crate::words::Words;
use std::collections::BTreeSet;
use syros_types::Database;
use syros_values::ListEnd;

/// Takes elements of the first of its keys that has more than those want who wait for them already. If there is none, it
/// waits in the queues of all of them, and answers [`Reply::Waits`](crate::Reply::Waits); submitted again with the same id
/// it keeps its places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakeParts<'a> {
    /// Who waits; [`WaiterId::NONE`] of one that does not, such as in a transaction: it is answered nil at once, and
    /// those who wait do not matter to it.
    pub waiter: WaiterId,
    /// It has been submitted before: a key with a value of another kind is passed over.
    pub is_renewed: bool,
    /// For so many milliseconds it counts as waiting, if it is not submitted again.
    pub lease_ms: u64,
    /// Members, a bit for each, that the node it waits at has lost: who waits there is taken out of the queues of its keys.
    pub absent: u64,
    /// For so many milliseconds its client wants to wait; 0 without end. The client's node sees to that.
    pub timeout_ms: u64,
    /// What is done with the first key that has elements.
    pub action: TakeAction<'a>,
    /// The keys, in the order in which they are looked at.
    pub keys: Arguments<'a>,
}

/// The same, read again where it is needed.
pub type Take<'a> = Indirect<'a, TakeParts<'a>>;

fields!(TakeParts<'a> = 82 {
    waiter: WaiterId, is_renewed: Flag, lease_ms: Lease, absent: Unsigned, timeout_ms: Unsigned,
    action: TakeAction<'a>, keys: List<1>
});

/// What the rows have in common.
const ROW: CommandSpec = CommandSpec {
    kind: CommandKind::UPDATE,
    arity: -3,
    keys: KeyPositions { first: 1, last: -2, step: 1 },
    key_flags: &[&["RW", "access", "delete"]],
    flags: &["write", "noscript", "blocking"],
    categories: &["@write", "@list", "@slow", "@blocking"],
    since: "2.0.0",
    group: "list",
    ..CommandSpec::ROW
};

/// What the rows have in common of commands that move an element.
const MOVE_ROW: CommandSpec = CommandSpec {
    keys: KeyPositions::TWO,
    key_flags: &[&["RW", "access", "delete"], &["RW", "insert"]],
    flags: &["write", "denyoom", "noscript", "blocking"],
    ..ROW
};

/// What the rows have in common of commands whose keys are counted.
const COUNTED_ROW: CommandSpec = CommandSpec {
    arity: -5,
    keys: KeyPositions::NONE,
    key_count: 2,
    flags: &["write", "blocking", "movablekeys"],
    since: "7.0.0",
    ..ROW
};

/// What the rows have in common of commands that take a member of a sorted set.
const MEMBER_ROW: CommandSpec = CommandSpec {
    flags: &["write", "noscript", "blocking", "fast"],
    categories: &["@write", "@sortedset", "@fast", "@blocking"],
    since: "5.0.0",
    group: "sorted-set",
    ..ROW
};

impl<'a> Definition<'a> for TakeParts<'a> {
    const SPECS: &'static [CommandSpec] = &[
        CommandSpec {
            name: "blpop",
            summary: "Removes the first element of the first of several lists that has one and returns it, or waits.",
            parser: |_, words| {
                Indirect::parse(words, |words| parse_pop_one(words, TakeAction::Pop(ListEnd::Left)))
            },
            ..ROW
        },
        CommandSpec {
            name: "brpop",
            summary: "Removes the last element of the first of several lists that has one and returns it, or waits.",
            parser: |_, words| {
                Indirect::parse(words, |words| parse_pop_one(words, TakeAction::Pop(ListEnd::Right)))
            },
            ..ROW
        },
        CommandSpec {
            name: "blmove",
            arity: 6,
            since: "6.2.0",
            summary: "Moves an element from an end of a list to an end of another one and returns it, or waits.",
            parser: |_, words| {
                Indirect::parse(words, |words| {
                    let (from_end, to_end) = (parse_end(words[3])?, parse_end(words[4])?);
                    parse_move(words, (from_end, to_end), words[5])
                })
            },
            ..MOVE_ROW
        },
        CommandSpec {
            name: "brpoplpush",
            arity: 4,
            since: "2.2.0",
            summary: "Moves the last element of a list to the left of another one and returns it, or waits.",
            parser: |_, words| {
                Indirect::parse(words, |words| parse_move(words, (ListEnd::Right, ListEnd::Left), words[3]))
            },
            ..MOVE_ROW
        },
        CommandSpec {
            name: "blmpop",
            summary: "Removes elements of the first of several lists that exists and returns them, or waits.",
            parser: |_, words| {
                Indirect::parse(words, |words| {
                    let timeout_ms = parse_timeout(words[1])?;
                    let (keys, end, count) = parse_pop(&words[1..], parse_end)?;
                    Ok(TakeParts::new(keys, TakeAction::PopSome(end, count), timeout_ms))
                })
            },
            ..COUNTED_ROW
        },
        CommandSpec {
            name: "bzpopmax",
            summary: "Removes the member with the highest score of the first of several sorted sets and returns it, or waits.",
            parser: |_, words| {
                Indirect::parse(words, |words| parse_pop_one(words, TakeAction::PopMember(ScoreEnd::Max)))
            },
            ..MEMBER_ROW
        },
        CommandSpec {
            name: "bzpopmin",
            summary: "Removes the member with the lowest score of the first of several sorted sets and returns it, or waits.",
            parser: |_, words| {
                Indirect::parse(words, |words| parse_pop_one(words, TakeAction::PopMember(ScoreEnd::Min)))
            },
            ..MEMBER_ROW
        },
        CommandSpec {
            name: "bzmpop",
            summary: "Removes members of the first of several sorted sets that exists and returns them, or waits.",
            categories: &["@write", "@sortedset", "@slow", "@blocking"],
            group: "sorted-set",
            parser: |_, words| {
                Indirect::parse(words, |words| {
                    let timeout_ms = parse_timeout(words[1])?;
                    let (keys, end, count) = parse_pop(&words[1..], parse_score_end)?;
                    Ok(TakeParts::new(keys, TakeAction::PopMembers(end, count), timeout_ms))
                })
            },
            ..COUNTED_ROW
        },
    ];

    fn keys(&self) -> KeyNames<'a> {
        match self.action {
            TakeAction::Move { to, .. } => KeyNames::OneAndAll(to, self.keys),
            _ => KeyNames::Every { list: self.keys, step: 1 },
        }
    }

    /// All together are not longer than one may be.
    fn values(&self) -> u32 {
        1
    }
}

impl<'a> TakeParts<'a> {
    /// One that does not wait: whoever submits it for a client gives it an id.
    #[must_use]
    pub const fn new(keys: Arguments<'a>, action: TakeAction<'a>, timeout_ms: u64) -> Self {
        let (waiter, is_renewed, lease_ms, absent) = (WaiterId::NONE, false, 0, 0);
        Self { waiter, is_renewed, lease_ms, absent, timeout_ms, action, keys }
    }

    /// Appends the encoding of the operation on keys of this database.
    pub fn encode_in(&self, database: Database, out: &mut Vec<u8>) {
        put_head(out, database, Self::OPCODE, false);
        self.encode(out);
    }

    /// The queue of one of its keys, without those who have gone.
    fn queue<K: KeysMut>(&self, keys: &K, key: &[u8], now_ms: u64) -> Queue {
        let (absent, owner) = (self.absent, self.waiter.owner);
        let key = (key, self.action.is_of_lists());
        Queue::read(keys, key, self.waiter, |one| {
            one.id != self.waiter && one.has_gone(now_ms, absent, owner)
        })
    }

    /// Waits in the queues of all keys, or fails and changes nothing.
    fn wait<K: KeysMut>(&self, keys: &mut K, now_ms: u64) -> ExecutionResult {
        if self.keys.len() > WAITED_KEYS_MAX {
            return Err(ExecutionError::TooManyWaitedKeys);
        }
        let standing = Standing { id: self.waiter, until: now_ms.saturating_add(self.lease_ms) };
        let mut queues = Vec::with_capacity(self.keys.len());
        // It waits once for a key that is named twice.
        let mut known = BTreeSet::new();
        for key in self.keys.into_iter().filter(|key| known.insert(*key)) {
            let mut queue = self.queue(keys, key, now_ms);
            queue.enter(standing)?;
            queues.push(queue);
        }
        queues.into_iter().for_each(|queue| queue.store(keys));
        Ok(())
    }

    /// Waits no longer.
    fn leave<K: KeysMut>(&self, keys: &mut K, now_ms: u64) {
        for key in self.keys {
            let mut queue = self.queue(keys, key, now_ms);
            queue.leave();
            queue.store(keys);
        }
    }
}

impl<'a> UpdateCommand<'a> for TakeParts<'a> {
    /// What waits is bounded by itself, and elements are to be taken when there is no room for more.
    fn growth(&self, _encoded: usize) -> usize {
        match self.action {
            TakeAction::Move { to, .. } => to.len() + KEY_BYTES + ELEMENT_BYTES,
            _ => 0,
        }
    }

    fn work(&self) -> usize {
        const QUEUE_BYTES: usize = 1024;
        self.keys.len() * QUEUE_BYTES
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let waits = self.waiter != WaiterId::NONE;
        for key in self.keys {
            let length = match length_of(keys, key, self.action.is_of_lists()) {
                Ok(length) => length,
                Err(_) if self.is_renewed => 0,
                Err(error) => return Err(error),
            };
            let before = if waits && length > 0 { self.queue(keys, key, now_ms).before() } else { 0 };
            if length > before {
                self.action.carry_out(keys, key, length - before, now_ms, reply)?;
                if waits {
                    self.leave(keys, now_ms);
                }
                return Ok(());
            }
        }
        if waits {
            self.wait(keys, now_ms)?;
            put_waits(reply);
        } else {
            self.action.put_nothing(reply);
        }
        Ok(())
    }
}

/// The words of BLPOP and its like: keys, and a timeout.
fn parse_pop_one<'a>(words: Words<'a>, action: TakeAction<'a>) -> Result<TakeParts<'a>, CommandError> {
    let (timeout, keys) = words[1..].split_last().ok_or(CommandError::Syntax)?;
    Ok(TakeParts::new(Arguments::new(keys), action, parse_timeout(timeout)?))
}

/// The words of BLMOVE and BRPOPLPUSH.
fn parse_move<'a>(
    words: Words<'a>,
    (from_end, to_end): (ListEnd, ListEnd),
    timeout: &[u8],
) -> Result<TakeParts<'a>, CommandError> {
    let action = TakeAction::Move { to: words[2], from_end, to_end };
    Ok(TakeParts::new(Arguments::new(&words[1..2]), action, parse_timeout(timeout)?))
}

/// A timeout in seconds, as milliseconds, rounded up as Redis does.
fn parse_timeout(word: &[u8]) -> Result<u64, CommandError> {
    /// Later than that, and the sum with the time of day would overflow.
    const MILLIS_MAX: f64 = (i64::MAX - (1 << 42)) as f64;
    let seconds = parse_double(word).ok_or(CommandError::TimeoutNotFloat)?;
    let millis = (seconds * 1000.0).ceil();
    if millis > MILLIS_MAX {
        Err(CommandError::TimeoutOutOfRange)
    } else if millis < 0.0 {
        Err(CommandError::TimeoutNegative)
    } else {
        Ok(millis as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_rounded_up_to_milliseconds() {
        for (word, expected) in [
            ("0", Ok(0)),
            ("-0.0001", Ok(0)),
            ("0.0001", Ok(1)),
            ("1.5", Ok(1500)),
            ("0x10", Ok(16_000)),
            ("-1", Err(CommandError::TimeoutNegative)),
            ("-inf", Err(CommandError::TimeoutNegative)),
            ("inf", Err(CommandError::TimeoutOutOfRange)),
            ("0x7FFFFFFFFFFFFFFF", Err(CommandError::TimeoutOutOfRange)),
            ("nan", Err(CommandError::TimeoutNotFloat)),
            ("abc", Err(CommandError::TimeoutNotFloat)),
            ("", Err(CommandError::TimeoutNotFloat)),
            (" 1", Err(CommandError::TimeoutNotFloat)),
        ] {
            assert_eq!(parse_timeout(word.as_bytes()), expected, "{word}");
        }
    }
}
