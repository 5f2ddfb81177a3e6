//! Updates that may change nothing: clients poll locks that are held and queues that are empty, and add members that are
//! there. Where the replica of the same process leads and finds that so, the update is a read, and takes no place in the log.
//!
//! One that finds another update of its keys pending cannot be answered at once. To submit it would make it pending for the
//! next one, and clients that poll in turn would never get rid of that. To wait until nothing is pending would cost an update
//! that does change something a round trip more. So it is remembered of keys, by their hashes, what became of the last ones,
//! and where nothing is known one in many waits.

use std::collections::{BTreeMap, VecDeque};

use syros_commands::families::Exists;
use syros_commands::{Arguments, Operation, operations};
use syros_protocol::message::Body;
use syros_resp::Submission;
use syros_types::{Class, Footprint, Instant, mix};

use super::errand::{Errand, ErrandKind};

/// An update of a connection that may change nothing, and has been sent to nobody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    pub(super) address: u64,
    pub(super) submission: Submission,
    /// Bytes of room reserved for its reply.
    pub(super) reserved: usize,
    /// When it came.
    pub(super) since: Instant,
    /// It has waited until what was pending was executed, and does so once.
    pub(super) has_waited: bool,
}

impl Attempt {
    /// The connection.
    #[must_use]
    pub const fn address(&self) -> u64 {
        self.address
    }

    /// What is submitted if it changes something.
    #[must_use]
    pub const fn submission(&self) -> &Submission {
        &self.submission
    }
}

/// How many keys are told apart, by their hashes.
const PLACES: usize = 1024;

/// So many no-ops are remembered, at most, and from so many on the next update is expected to be another.
const SCORE_MAX: u8 = 3;
const EXPECTED_FROM: u8 = 2;

/// Where updates turn out to change something, one of so many is looked at, at last: a look costs a part of a microsecond.
const LOOKS_INTERVAL_MAX: u8 = 8;

/// Of those that are looked at, find another one pending and are not expected to be no-ops, one of so many waits: at first one
/// of two, then ever fewer, as long as they turn out to change something. Such an update takes one round trip more.
const WAITS_INTERVAL_MIN: u8 = 2;
const WAITS_INTERVAL_MAX: u8 = 16;

/// One of so many.
#[derive(Clone, Copy, Debug)]
struct OneOf {
    interval: u8,
    passed: u8,
}

impl OneOf {
    const fn new(interval: u8) -> Self {
        Self { interval, passed: 0 }
    }

    const fn is_next(&mut self) -> bool {
        self.passed += 1;
        let is_next = self.passed >= self.interval;
        if is_next {
            self.passed = 0;
        }
        is_next
    }

    fn rarer(&mut self, interval_max: u8) {
        self.interval = interval_max.min(2 * self.interval);
    }
}

/// What is remembered of updates of some keys.
#[derive(Clone, Copy, Debug)]
struct Expectation {
    /// How many have been no-ops, less those that have not, of the last ones that were looked at.
    score: u8,
    looks: OneOf,
    waits: OneOf,
}

impl Expectation {
    const NONE: Self = Self { score: 0, looks: OneOf::new(1), waits: OneOf::new(WAITS_INTERVAL_MIN) };

    /// True if one is to be looked at.
    const fn is_worth_a_look(&mut self) -> bool {
        self.score > 0 || self.looks.is_next()
    }

    /// True if one that has to wait for that is to do so.
    const fn is_worth_a_wait(&mut self) -> bool {
        self.score >= EXPECTED_FROM || self.waits.is_next()
    }

    /// One that was looked at, at once or after it had waited, turned out to be this.
    fn note(&mut self, is_no_op: bool, has_waited: bool) {
        if is_no_op {
            *self = Self { score: SCORE_MAX.min(self.score + 1), ..Self::NONE };
        } else {
            self.score = self.score.saturating_sub(1);
            self.looks.rarer(LOOKS_INTERVAL_MAX);
            if has_waited {
                self.waits.rarer(WAITS_INTERVAL_MAX);
            }
        }
    }
}

/// Most updates that wait at once; others are submitted. (A connection has no more commands in flight.)
const WAITING_MAX: usize = 1024;

/// Most operations of an update that waits: for each of its keys there is a read.
const WAITED_OPERATIONS_MAX: usize = 16;

/// Updates that may change nothing: what is to be asked, and what is expected.
#[derive(Debug)]
pub(super) struct NoOps {
    /// To be asked about in this turn.
    attempts: VecDeque<Attempt>,
    /// Wait until what is pending has been executed.
    waiting: BTreeMap<u64, Attempt>,
    next_number: u64,
    expectations: Box<[Expectation; PLACES]>,
}

impl Default for NoOps {
    fn default() -> Self {
        Self {
            attempts: VecDeque::new(),
            waiting: BTreeMap::new(),
            next_number: 0,
            expectations: Box::new([Expectation::NONE; PLACES]),
        }
    }
}

impl NoOps {
    /// Operations that have been taken from connections, and not been submitted.
    pub(super) fn len(&self) -> usize {
        self.attempts.len() + self.waiting.len()
    }

    /// True if an update of these keys that may be a no-op is to be looked at, and not to be submitted without that.
    pub(super) fn is_worth_a_look(&mut self, footprint: &Footprint) -> bool {
        self.expectations[place(footprint)].is_worth_a_look()
    }

    pub(super) fn add(&mut self, attempt: Attempt) {
        self.attempts.push_back(attempt);
    }

    pub(super) fn next(&mut self) -> Option<Attempt> {
        self.attempts.pop_front()
    }

    /// An update was looked at, and is a no-op or not.
    pub(super) fn note(&mut self, attempt: &Attempt, is_no_op: bool) {
        self.expectations[place(&attempt.submission.footprint)].note(is_no_op, attempt.has_waited);
    }

    /// Something is pending on the keys of an update: has it wait for that, if it is likely enough to be a no-op, by reading
    /// them. Otherwise it is given back, to be submitted.
    pub(super) fn wait(&mut self, attempt: Attempt) -> Result<Errand, Attempt> {
        if attempt.has_waited || self.waiting.len() >= WAITING_MAX {
            return Err(attempt);
        }
        let footprint = &attempt.submission.footprint;
        if !self.expectations[place(footprint)].is_worth_a_wait() {
            return Err(attempt);
        }
        let Some(body) = reads_of(&attempt.submission.body) else { return Err(attempt) };
        let number = self.next_number;
        self.next_number += 1;
        let footprint = footprint.clone();
        self.waiting.insert(number, Attempt { has_waited: true, ..attempt });
        Ok(Errand { kind: ErrandKind::Settle(number), body, class: Class::Read, footprint })
    }

    /// What was pending has been executed; `None` if nobody waits for that.
    pub(super) fn waited(&mut self, number: u64) -> Option<Attempt> {
        self.waiting.remove(&number)
    }
}

/// Where it is kept what is expected of updates of these keys.
fn place(footprint: &Footprint) -> usize {
    let hashes = footprint.keys().unwrap_or_default();
    let hash = hashes.iter().fold(0, |hash, key| mix(hash ^ key));
    hash as usize % PLACES
}

/// A read of each key of a body; `None` if there are many.
fn reads_of(body: &[u8]) -> Option<Body> {
    let mut reads = Vec::new();
    for (count, operation) in operations(body).flatten().enumerate() {
        if count == WAITED_OPERATIONS_MAX {
            return None;
        }
        operation.each_key(|key| {
            let names = [key.name];
            Operation::new(Exists { keys: Arguments::new(&names) })
                .in_database(key.database)
                .encode(&mut reads);
        });
    }
    Some(reads.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn attempt(key: u64, has_waited: bool) -> Attempt {
        let mut body = Vec::new();
        let names: [&[u8]; 1] = [b"key"];
        Operation::new(Exists { keys: Arguments::new(&names) }).encode(&mut body);
        let submission = Submission {
            slot: 1,
            body: Arc::from(body),
            class: Class::Update,
            footprint: Footprint::One(key),
            read_policy: None,
            waits: false,
            is_pack: false,
        };
        Attempt { address: 1, submission, reserved: 0, since: Instant(0), has_waited }
    }

    /// How many of so many updates of a key wait, that turn out to be no-ops or not.
    fn waits(no_ops: &mut NoOps, key: u64, count: usize, is_no_op: bool) -> usize {
        let mut waits = 0;
        for _ in 0..count {
            let Ok(errand) = no_ops.wait(attempt(key, false)) else { continue };
            let ErrandKind::Settle(number) = errand.kind else { panic!("{errand:?}") };
            let waited = no_ops.waited(number).expect("it waits");
            assert!(waited.has_waited && no_ops.wait(waited.clone()).is_err(), "once");
            no_ops.note(&waited, is_no_op);
            waits += 1;
        }
        assert_eq!(no_ops.len(), 0);
        waits
    }

    #[test]
    fn updates_wait_where_others_of_their_keys_were_no_ops() {
        let mut no_ops = NoOps::default();
        // One of 2, 4, 8, and then of 16.
        assert_eq!(waits(&mut no_ops, 1, 14, false), 3);
        assert_eq!(waits(&mut no_ops, 1, 160, false), 10);
        // The second, the fourth, and from then on all of them.
        assert_eq!(waits(&mut no_ops, 2, 100, true), 98);
        // That of one key says nothing of another.
        assert_eq!(waits(&mut no_ops, 3, 2, false), 1);
        // And it ends as it began.
        assert_eq!(waits(&mut no_ops, 2, 2, false), 2);
        assert_eq!(waits(&mut no_ops, 2, 16, false), 1);
    }

    #[test]
    fn updates_that_change_something_are_looked_at_rarely_and_no_ops_always() {
        let mut no_ops = NoOps::default();
        let mut looks = |count: usize, is_no_op: bool| {
            let footprint = Footprint::One(1);
            let looked_at = (0..count).filter(|_| {
                let is_looked_at = no_ops.is_worth_a_look(&footprint);
                if is_looked_at {
                    no_ops.note(&attempt(1, false), is_no_op);
                }
                is_looked_at
            });
            looked_at.count()
        };
        // The first, one of 2, of 4, and then of 8.
        assert_eq!(looks(7, false), 3);
        assert_eq!(looks(80, false), 10);
        assert_eq!(looks(100, true), 93);
        assert_eq!(looks(3, false), 3);
    }

    #[test]
    fn no_more_wait_than_the_limit() {
        let mut no_ops = NoOps::default();
        (0..SCORE_MAX).for_each(|_| no_ops.note(&attempt(1, false), true));
        (0..WAITING_MAX).for_each(|_| drop(no_ops.wait(attempt(1, false)).expect("there is room")));
        assert!(no_ops.wait(attempt(1, false)).is_err());
        assert_eq!(no_ops.len(), WAITING_MAX);
    }
}
