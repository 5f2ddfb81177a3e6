//! From commands to submissions and back: what is in flight together, and what is packed into one.
//!
//! # Order
//! Replies come out in the order of the requests. Commands of one connection that touch the same key
//! take effect in the order of the requests too, unless both only read; commands on different keys are
//! in flight together and may take effect in any order, like those of different connections.
//!
//! # Packing
//! Commands that must run one after the other and wait at the same time are *packed*: their operations
//! become one body, which is executed atomically and in order, and whose replies are dealt out to them
//! again. A command is packed with the last group of commands on its keys if that group has not been
//! submitted yet, whether because its turn has not come or because the input received at once is still
//! being read. Thirty SETs of one key that arrive together are one nilext update; thirty INCRs are one
//! update, not thirty round trips.
//!
//! Which classes go together? Count the round trips until the *last* reply of two commands on one key:
//! an overwrite takes one, an update two, a read one, or two if it finds an update that is not ordered
//! yet.
//!
//! | commands   | one after the other | packed |
//! |------------|---------------------|--------|
//! | read, read | 1 (together)        | 1      |
//! | overwrite, overwrite | 2         | 1      |
//! | update, anything     | 3 or more | 2      |
//! | overwrite, read      | 2 to 3    | 2      |
//! | overwrite, update    | 3         | 2      |
//! | read, overwrite      | 2         | 2      |
//! | overwrite, read, overwrite | 3 to 4 | 2   |
//!
//! A pack of any classes takes two round trips at most, so a command joins whatever update waits, even
//! though a read that joins overwrites makes an update of them: their replies come one round trip later
//! than they could, and the last reply, for which a pipeline waits, no later, mostly sooner, and with
//! fewer messages. Only where nothing is to be gained do they stay apart: an update does not join
//! a read that waits. The read's reply then comes after one round trip, and overwrites that follow it
//! stay nilext.
//!
//! Commands whose replies hold values are packed only if the values that the connection got last were short: the replies
//! to a pack are in memory all at once, and how much a client has to take is looked at between packs.

use crate::limits::{
    COMMANDS_MAX, OPERATION_BYTES_MAX, PACK_BYTES_MAX, PACK_REPLY_BYTES_EXPECTED_MAX, PACK_VALUES_MAX,
    PACK_WORK_MAX, REPLY_BYTES_EXPECTED_MAX,
};
use crate::locks::{KeyLocks, LockMode, WholeKeyspaceLock};
use crate::writer::{
    Protocol, write_array, write_error, write_keyed, write_keyed_one, write_map, write_pair, write_pairs,
    write_reply, write_set, write_simple,
};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use syros_commands::limits::{REPLY_BYTES_MAX, UPDATE_WORK_MAX};
use syros_commands::{
    ExecutionError, Head, Malformed, NO_MEMORY, Operation, ReplyRef, describe, put_error, put_ok,
    without_memory,
};
use syros_types::{Class, Description, Footprint, ReadPolicy, Window};

/// Something to be executed by the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submission {
    /// This connection's name for it, unique for its lifetime; goes back with the completion.
    pub slot: u64,
    /// One or more encoded operations.
    pub body: Arc<[u8]>,
    /// The class of the body.
    pub class: Class,
    /// The keys of the body.
    pub footprint: Footprint,
    /// How it is to be read, if the client has said so.
    pub read_policy: Option<ReadPolicy>,
    /// It is one command that may have to wait: see [`Operation::may_wait`]. It is submitted once more under the same name if
    /// it has been [postponed](crate::Connection::postpone).
    pub waits: bool,
    /// It is several commands that were put together, each of which counts by itself.
    pub is_pack: bool,
}

/// How a submission ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Completion {
    /// A nilext update is durable: every command in it is answered with `+OK`.
    Done,
    /// The encoded replies to its operations, one after the other.
    Reply(Arc<[u8]>),
    /// It was not executed and never will be, for this reason.
    Refused(String),
    /// Nobody can tell whether it was, or will be, executed.
    Unknown,
    /// It had no effect: a read without an answer, or an update that was never sent.
    TimedOut,
    /// It had no effect: no majority of the replicas can be reached.
    NoQuorum,
    /// Too much is in flight; it was not sent.
    Overloaded,
    /// It was not executed and never will be: the data may take no more memory.
    OutOfMemory,
    /// It was not executed and never will be: it would go through about so many bytes, and keep the replicas from all else.
    TooMuchWork(usize),
}

impl Completion {
    /// True if the operation took effect, and the client gets its reply.
    #[must_use]
    pub const fn is_answer(&self) -> bool {
        matches!(self, Self::Done | Self::Reply(_))
    }

    /// True if the last of its replies says that they are too long together.
    fn is_too_long(&self) -> bool {
        let Self::Reply(bytes) = self else { return false };
        let text = ExecutionError::ReplyTooLong.text().as_bytes();
        bytes.ends_with(text)
    }

    /// Bytes it holds.
    fn bytes(&self) -> usize {
        match self {
            Self::Reply(bytes) => bytes.len(),
            Self::Refused(text) => text.len(),
            Self::Done
            | Self::Unknown
            | Self::TimedOut
            | Self::NoQuorum
            | Self::Overloaded
            | Self::OutOfMemory
            | Self::TooMuchWork(_) => 0,
        }
    }
}

/// What operations that are executed together ask for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Load {
    /// How many there are.
    operations: u32,
    /// Some may make the data grow, and are no scripts.
    grows: bool,
    /// Some run scripts or functions, which are tried otherwise if there is no memory.
    runs: bool,
    /// Values that their replies may hold.
    values: u32,
    /// What executing them may take: see [`Operation::work`]. A replica executes a body in one go, and does nothing else
    /// meanwhile.
    pub(crate) work: usize,
}

impl Load {
    fn of(operation: &Operation<'_>) -> Self {
        let runs = operation.terms().is_some();
        Self {
            operations: 1,
            grows: !runs && operation.grows(),
            runs,
            values: operation.values(),
            work: operation.work(),
        }
    }

    /// Takes in another operation.
    pub(crate) fn add(&mut self, operation: &Operation<'_>) {
        let Self { operations, grows, runs, values, work } = Self::of(operation);
        self.operations += operations;
        self.grows |= grows;
        self.runs |= runs;
        self.values = self.values.saturating_add(values);
        self.work = self.work.saturating_add(work);
    }
}

/// How a transaction has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupEnd {
    /// Each of its commands has a reply.
    Replies,
    /// One error is the reply to all of them.
    Failure,
}

/// One or more commands that are one submission.
#[derive(Debug)]
struct Group {
    footprint: Footprint,
    class: Class,
    /// Of its operations: one for each command. Of those packed while room was short, all may make the data grow or none.
    load: Load,
    /// It is a transaction: no other command joins it.
    is_transaction: bool,
    /// It is a command that may have to wait: no other command joins it.
    may_wait: bool,
    /// Of its reads; they all have the same.
    read_policy: Option<ReadPolicy>,
    /// Locks it still waits for.
    waits: u32,
    /// Commands whose replies have been written.
    answered: u32,
    /// Bytes it is charged with.
    charge: usize,
    /// Of each operation, whether it was refused for want of memory, if some were and the others are tried once more.
    refused: Vec<bool>,
    state: State,
}

/// Writes the head of an element of two replies.
type HeadOfTwo = fn(&mut Vec<u8>, Protocol);

#[derive(Debug)]
enum State {
    /// Not submitted yet: its operations so far.
    Waiting(Vec<u8>),
    /// With its operations, if they may have to be submitted once more otherwise.
    InFlight(Option<Arc<[u8]>>),
    /// Over; the replies before `position` have been written. The next `elements` belong to an array, a map, pairs or
    /// a set whose head has been written.
    Ended {
        completion: Completion,
        position: usize,
        elements: usize,
        /// What stands before each element, if it is one of two replies.
        of_two: Option<HeadOfTwo>,
        /// How long it was in flight.
        took: Duration,
    },
}

impl Group {
    /// A group that has not asked for its locks.
    fn new(
        body: Vec<u8>,
        (class, footprint): (Class, Footprint),
        load: Load,
        read_policy: Option<ReadPolicy>,
    ) -> Self {
        Self {
            footprint,
            class,
            load,
            is_transaction: false,
            may_wait: false,
            read_policy,
            waits: 0,
            answered: 0,
            charge: 0,
            refused: Vec::new(),
            state: State::Waiting(body),
        }
    }

    fn mode(&self) -> LockMode {
        match (self.class == Class::Read, &self.footprint) {
            (true, Footprint::All) => LockMode::ReadAll,
            (false, Footprint::All) => LockMode::UpdateAll,
            (true, _) => LockMode::ReadSome,
            (false, _) => LockMode::UpdateSome,
        }
    }
}

/// Most groups of a connection: those of the commands without a reply, and at most as many between them of which all
/// commands have been answered. (A group takes no further command once one of its commands has been answered. So when
/// the first group's first command has been answered, all of the group's commands are among those without a reply.)
const GROUPS_MAX: usize = 2 * COMMANDS_MAX;

/// What a group costs besides its body, in bytes: itself, its slots and its locks.
const GROUP_COST: usize = 256;
/// What every key beyond the first costs: its place in two footprints and its lock.
const KEY_COST: usize = 96;

/// Bodies kept for later groups, and how long they may be.
const SPARE_BODIES_MAX: usize = 64;
const SPARE_BODY_BYTES_MAX: usize = 4096;

/// The guess at the length of a value before there was any, in bytes: enough to be cautious with (sixteen values
/// are asked for at first, each by itself), and no bother to anybody, for short replies bring it down quickly.
const VALUE_BYTES_GUESS: usize = REPLY_BYTES_EXPECTED_MAX / 16;
/// The guess never falls below this, at which as many values are allowed for as there can be commands.
const VALUE_BYTES_GUESS_MIN: usize = REPLY_BYTES_EXPECTED_MAX / COMMANDS_MAX;

/// Room for a reply longer than this is made for it alone, in bytes.
const LARGE_REPLY_BYTES: usize = 64 * 1024;

/// A reply that is an array is written in parts of about so many bytes, each when the client has taken the one before:
/// millions of keys keep nobody else waiting, and are in memory once.
pub(crate) const PART_BYTES: usize = 256 * 1024;

/// How far a reply has been written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// There is none yet.
    Nothing,
    /// A part of an array, a map, pairs or a set; the next call writes on.
    Part,
    /// All of it.
    Whole,
}

/// The end of operations of which these were refused for want of memory, by the end of the others.
fn with_refusals(refused: &[bool], completion: Completion) -> Completion {
    let mut others: &[u8] = match &completion {
        _ if refused.is_empty() => return completion,
        Completion::Done => &[],
        Completion::Reply(replies) => replies,
        _ => return completion,
    };
    let mut replies = Vec::with_capacity(others.len() + NO_MEMORY.len() * refused.len());
    for is_refused in refused {
        let before = others;
        if *is_refused {
            put_error(&mut replies, NO_MEMORY.as_bytes());
        } else if completion == Completion::Done {
            put_ok(&mut replies);
        } else if ReplyRef::decode(&mut others).is_ok() {
            replies.extend_from_slice(&before[..before.len() - others.len()]);
        }
    }
    Completion::Reply(replies.into())
}

/// The groups of one connection.
#[derive(Debug)]
pub(crate) struct Schedule {
    /// Groups with commands to be answered, in the order of their first commands.
    groups: Window<Group>,
    locks: KeyLocks,
    whole_keyspace: WholeKeyspaceLock,
    /// The newest group on all keys; 0 if there was none.
    last_all: u64,
    /// Groups that hold all their locks, to be submitted.
    ready: VecDeque<u64>,
    /// Empty; kept for its memory.
    granted: Vec<u64>,
    spare_bodies: Vec<Vec<u8>>,
    /// Bytes of all groups that have not ended.
    charged: usize,
    /// Bytes of completions that wait for earlier ones.
    held: usize,
    /// Values that the replies of groups in flight may hold.
    values_in_flight: usize,
    /// A guess at the length of the next value, in bytes.
    value_bytes: usize,
    /// The same, known only from values that came: 0 before there was any.
    known_value_bytes: usize,
    /// The same before there was any, from what others have got: 0 if that is not known either.
    first_value_bytes: usize,
    /// The last operation that would make the data grow was refused for that: what does not, such as a deletion, is
    /// not to be refused along with it.
    lacks_room: bool,
    #[cfg(feature = "planted-bugs")]
    planted: Option<crate::planted::PlantedBug>,
}

impl Schedule {
    pub(crate) fn new() -> Self {
        Self {
            groups: Window::new(1, GROUPS_MAX),
            locks: KeyLocks::default(),
            whole_keyspace: WholeKeyspaceLock::default(),
            last_all: 0,
            ready: VecDeque::new(),
            granted: Vec::new(),
            spare_bodies: Vec::new(),
            charged: 0,
            held: 0,
            values_in_flight: 0,
            value_bytes: VALUE_BYTES_GUESS,
            known_value_bytes: 0,
            first_value_bytes: 0,
            lacks_room: false,
            #[cfg(feature = "planted-bugs")]
            planted: None,
        }
    }

    /// Bytes of completions that wait for earlier ones.
    pub(crate) const fn reply_bytes(&self) -> usize {
        self.held
    }

    /// Bytes of memory that operations and completions take.
    pub(crate) const fn memory_bytes(&self) -> usize {
        self.charged + self.held
    }

    /// True if there is room for another operation.
    pub(crate) const fn has_room(&self) -> bool {
        self.charged < OPERATION_BYTES_MAX
    }

    /// Takes an operation that was received in `request_bytes` bytes; returns the slot of its group.
    pub(crate) fn add(
        &mut self,
        operation: &Operation<'_>,
        request_bytes: usize,
        read_policy: Option<ReadPolicy>,
    ) -> u64 {
        #[cfg(feature = "planted-bugs")]
        let operation = &self.in_database_of_name(operation);
        let footprint = operation.footprint();
        let class = operation.class();
        let load = Load::of(operation);
        if let Some(slot) = self.last_on(&footprint)
            && self.joins(slot, (class, read_policy), load, request_bytes)
        {
            if let Some(group) = self.groups.get_mut(slot)
                && let State::Waiting(body) = &mut group.state
            {
                let before = body.len();
                operation.encode(body);
                let bytes = body.len() - before;
                group.class = group.class.join(class);
                group.load.add(operation);
                group.charge += bytes;
                self.charged += bytes;
            }
            return slot;
        }
        let mut body = self.spare_bodies.pop().unwrap_or_default();
        operation.encode(&mut body);
        self.push(Group::new(body, (class, footprint), load, read_policy))
    }

    /// Takes the operations of a transaction, all of one body, which ask for so much; returns the slot of its group.
    ///
    /// # Errors
    /// If the body is malformed.
    pub(crate) fn add_transaction(
        &mut self,
        body: Vec<u8>,
        load: Load,
        read_policy: Option<ReadPolicy>,
    ) -> Result<u64, Malformed> {
        let Description { class, footprint, .. } = describe(&body)?;
        // Together with an update a read is executed where that is.
        let read_policy = read_policy.filter(|_| class == Class::Read);
        let group = Group::new(body, (class, footprint), load, read_policy);
        Ok(self.push(Group { is_transaction: true, ..group }))
    }

    /// Takes a command that may have to wait; returns the slot of its group. What it will be answered may come late: no
    /// room is kept for that.
    pub(crate) fn add_waiting(&mut self, operation: &Operation<'_>, read_policy: Option<ReadPolicy>) -> u64 {
        let mut body = self.spare_bodies.pop().unwrap_or_default();
        operation.encode_to_wait(&mut body);
        let load = Load { values: 0, ..Load::of(operation) };
        let class = operation.class();
        let read_policy = read_policy.filter(|_| class == Class::Read);
        let group = Group::new(body, (class, operation.footprint()), load, read_policy);
        self.push(Group { may_wait: true, ..group })
    }

    /// The group that is the last one on every key of a footprint.
    fn last_on(&self, footprint: &Footprint) -> Option<u64> {
        // An operation on all keys is always a body of its own.
        let (first, others) = footprint.keys()?.split_first()?;
        let last = self.locks.last(*first)?;
        let common = others.iter().all(|key| self.locks.last(*key) == Some(last));
        // A group on all keys locks none of them, but comes after those that did before it.
        (common && last > self.last_all).then_some(last)
    }

    /// True if an operation may join a group: see the notes at the top.
    fn joins(
        &self,
        slot: u64,
        (class, read_policy): (Class, Option<ReadPolicy>),
        load: Load,
        request_bytes: usize,
    ) -> bool {
        let Some(group) = self.groups.get(slot).filter(|group| !group.is_transaction && !group.may_wait)
        else {
            return false;
        };
        let State::Waiting(body) = &group.state else { return false };
        // In the company of an update a read is as good as the leader's.
        let suits = if group.class == Class::Read {
            class == Class::Read && group.read_policy == read_policy
        } else {
            class != Class::Read || read_policy != Some(ReadPolicy::Stale)
        };
        suits
            && (!self.lacks_room || group.load.grows == load.grows)
            && self.values_fit(group.load.values, load.values)
            && group.load.work.saturating_add(load.work) <= PACK_WORK_MAX
            && body.len() + request_bytes <= PACK_BYTES_MAX
    }

    /// True if so many values more go into a pack with these: all of a pack's replies are in memory at once, and none of
    /// it can be taken back, so values are packed only where those that came before were short.
    const fn values_fit(&self, values: u32, more: u32) -> bool {
        let all = values.saturating_add(more) as usize;
        let is_one_of_them = values == 0 || more == 0;
        all <= PACK_VALUES_MAX && (is_one_of_them || all * self.value_bytes <= PACK_REPLY_BYTES_EXPECTED_MAX)
    }

    /// Adds a group, which asks for its locks; returns its slot.
    fn push(&mut self, mut group: Group) -> u64 {
        let slot = self.groups.end();
        let is_read = group.class == Class::Read;
        let body_bytes = if let State::Waiting(body) = &group.state { body.len() } else { 0 };
        let keys = group.footprint.keys().map_or(0, <[u64]>::len);
        group.charge = GROUP_COST + body_bytes + keys.saturating_sub(1) * KEY_COST;
        self.charged += group.charge;
        match group.footprint.keys() {
            Some(keys) => {
                for key in keys {
                    group.waits += u32::from(!self.locks.acquire(*key, slot, is_read));
                }
            }
            None => self.last_all = slot,
        }
        group.waits += u32::from(!self.whole_keyspace.enter(slot, group.mode()));
        if group.waits == 0 {
            self.ready.push_back(slot);
        }
        self.groups.push(group);
        slot
    }

    /// The next group whose turn has come, given that replies of `unsent` bytes wait for the client, if `admits` says
    /// that there is room for the bytes of values that it is expected to get.
    pub(crate) fn poll(&mut self, unsent: usize, admits: impl FnOnce(usize) -> bool) -> Option<Submission> {
        // Replies that wait for earlier ones: nothing that would add to them.
        let place = if self.held > REPLY_BYTES_EXPECTED_MAX {
            self.ready.iter().position(|slot| *slot == self.groups.first())?
        } else {
            0
        };
        let slot = *self.ready.get(place)?;
        let values = self.groups.get(slot)?.load.values as usize;
        let (value_bytes, known) = self.expected_value_bytes();
        let expected = (self.values_in_flight + values) * value_bytes + self.held + unsent;
        // The only one in flight must be let through, or nothing would ever change.
        if values > 0 && self.values_in_flight > 0 && expected > REPLY_BYTES_EXPECTED_MAX {
            return None;
        }
        // However many values: a reply has a limit.
        if !admits((values * known).min(REPLY_BYTES_MAX)) {
            return None;
        }
        self.ready.remove(place);
        self.values_in_flight += values;
        let group = self.groups.get_mut(slot)?;
        let State::Waiting(mut body) = std::mem::replace(&mut group.state, State::InFlight(None)) else {
            unreachable!("a group becomes ready once, before it is submitted");
        };
        let encoded: Arc<[u8]> = Arc::from(body.as_slice());
        let is_pack = group.load.operations > 1 && !group.is_transaction;
        if is_pack || group.load.runs {
            group.state = State::InFlight(Some(Arc::clone(&encoded)));
        }
        let described = if is_pack { describe(&body).ok() } else { None };
        let (class, footprint) = match described {
            Some(Description { class, footprint, .. }) => (class, footprint),
            None => (group.class, group.footprint.clone()),
        };
        // Keys that share a hash, and several keys, make a difference to the class of a pack. Of one that is tried once more, it
        // is that of a part.
        if group.refused.is_empty() {
            debug_assert_eq!(footprint, group.footprint);
            group.class = class;
        }
        let submission = Submission {
            slot,
            body: encoded,
            class,
            footprint,
            read_policy: group.read_policy,
            waits: group.may_wait,
            is_pack,
        };
        #[cfg(feature = "planted-bugs")]
        if self.releases_early(slot) {
            self.release(slot);
        }
        if self.spare_bodies.len() < SPARE_BODIES_MAX && body.capacity() <= SPARE_BODY_BYTES_MAX {
            body.clear();
            self.spare_bodies.push(body);
        }
        Some(submission)
    }

    /// Makes the schedule a known-wrong one.
    #[cfg(feature = "planted-bugs")]
    pub(crate) const fn plant(&mut self, bug: Option<crate::planted::PlantedBug>) {
        self.planted = bug;
    }

    /// The operation, in a database in which another waits on keys of the same names.
    #[cfg(feature = "planted-bugs")]
    fn in_database_of_name<'a>(&self, operation: &Operation<'a>) -> Operation<'a> {
        if self.planted != Some(crate::planted::PlantedBug::DatabaseForgotten) {
            return *operation;
        }
        let waits = |there: &Operation<'_>| {
            let group = self.last_on(&there.footprint()).and_then(|slot| self.groups.get(slot));
            group.is_some_and(|group| matches!(group.state, State::Waiting(_)))
        };
        let mut elsewhere = syros_types::Database::all().map(|database| operation.in_database(database));
        elsewhere.find(waits).unwrap_or(*operation)
    }

    /// True if the group with this slot is an update whose keys are free as soon as it is submitted.
    #[cfg(feature = "planted-bugs")]
    fn releases_early(&self, slot: u64) -> bool {
        self.planted == Some(crate::planted::PlantedBug::LockReleasedEarly)
            && self.groups.get(slot).is_some_and(|group| group.class != Class::Read)
    }

    /// True if the group with this slot has ended.
    #[cfg(feature = "planted-bugs")]
    pub(crate) fn has_ended(&self, slot: u64) -> bool {
        self.groups.get(slot).is_some_and(|group| matches!(group.state, State::Ended { .. }))
    }

    /// True if the replies of the group with this slot may be added to those in memory.
    pub(crate) fn has_room_for(&self, slot: u64) -> bool {
        self.held <= REPLY_BYTES_EXPECTED_MAX || slot == self.groups.first()
    }

    /// True if values are on their way: when they have come, or been postponed, more may be asked for.
    pub(crate) const fn has_values_in_flight(&self) -> bool {
        self.values_in_flight > 0
    }

    /// Takes back a submission that has changed nothing and has not been answered: this body is submitted in its place. False
    /// if there is no such submission in flight.
    pub(crate) fn postpone(&mut self, slot: u64, body: &[u8]) -> bool {
        let Some(group) = self.groups.get_mut(slot) else { return false };
        if !matches!(group.state, State::InFlight(_)) {
            return false;
        }
        group.state = State::Waiting(body.to_vec());
        self.values_in_flight -= group.load.values as usize;
        // Before those that came later.
        let place = self.ready.partition_point(|other| *other < slot);
        self.ready.insert(place, slot);
        true
    }

    /// The values of a submission that has been [postponed](Self::postpone) have so many bytes.
    pub(crate) fn expect(&mut self, slot: u64, bytes: usize) {
        if let Some(group) = self.groups.get(slot) {
            self.record_value_sizes(group.load.values as usize, bytes);
        }
    }

    /// As long as nothing is known of the values that this client reads, they may have as many bytes as this.
    pub(crate) const fn expect_first(&mut self, bytes: usize) {
        self.first_value_bytes = bytes;
    }

    /// How many bytes the next value may have, and how many of them are known of, from values that came.
    fn expected_value_bytes(&self) -> (usize, usize) {
        match self.known_value_bytes {
            0 => (self.value_bytes.max(self.first_value_bytes), self.first_value_bytes),
            known => (self.value_bytes, known),
        }
    }

    /// So many values have so many bytes together: the next ones may be like them.
    fn record_value_sizes(&mut self, values: usize, bytes: usize) {
        if let Some(bytes_each) = bytes.checked_div(values) {
            let decayed = |guess: usize| guess - guess / 8;
            self.value_bytes = decayed(self.value_bytes).max(bytes_each).max(VALUE_BYTES_GUESS_MIN);
            self.known_value_bytes = decayed(self.known_value_bytes).max(bytes_each);
        }
    }

    /// Notes the end of a submission and lets those go that waited for it. False if there is no such
    /// submission in flight.
    pub(crate) fn complete(&mut self, slot: u64, completion: Completion, took: Duration) -> bool {
        let Some(group) = self.groups.get_mut(slot) else { return false };
        let State::InFlight(body) = &group.state else { return false };
        let is_refused = completion == Completion::OutOfMemory;
        #[cfg(feature = "planted-bugs")]
        let is_refused = is_refused
            || (completion == Completion::Unknown
                && self.planted == Some(crate::planted::PlantedBug::UnknownTriedAgain));
        if is_refused
            && let Some(left) = body.as_deref().and_then(without_memory)
            && (left.is_whole() || !group.is_transaction)
        {
            self.lacks_room |= !left.is_whole();
            group.refused = if left.is_whole() { Vec::new() } else { left.refused };
            return self.postpone(slot, &left.body);
        }
        let has_refusals = !group.refused.is_empty();
        let completion = with_refusals(&std::mem::take(&mut group.refused), completion);
        let (bytes, values) = (completion.bytes(), group.load.values as usize);
        // What was refused for its length has been gone through all the same.
        let gone_through = if completion.is_too_long() { REPLY_BYTES_MAX } else { bytes };
        match completion {
            Completion::OutOfMemory | Completion::Refused(_) => self.lacks_room = true,
            Completion::Done | Completion::Reply(_) if group.load.grows && !has_refusals => {
                self.lacks_room = false;
            }
            _ => {}
        }
        group.state = State::Ended { completion, position: 0, elements: 0, of_two: None, took };
        self.charged -= group.charge;
        self.held += bytes;
        self.values_in_flight -= values;
        #[cfg(feature = "planted-bugs")]
        let is_released = self.releases_early(slot);
        #[cfg(not(feature = "planted-bugs"))]
        let is_released = false;
        if !is_released {
            self.release(slot);
        }
        self.record_value_sizes(values, gone_through);
        true
    }

    /// Lets the groups go that waited for this one.
    fn release(&mut self, slot: u64) {
        let Some(group) = self.groups.get(slot) else { return };
        let mode = group.mode();
        let mut granted = std::mem::take(&mut self.granted);
        for key in group.footprint.keys().unwrap_or_default() {
            self.locks.release(*key, &mut granted);
        }
        self.whole_keyspace.leave(mode, &mut granted);
        self.locks.shrink();
        for slot in granted.drain(..) {
            let Some(group) = self.groups.get_mut(slot) else { continue };
            group.waits -= 1;
            if group.waits == 0 {
                self.ready.push_back(slot);
            }
        }
        self.granted = granted;
    }

    /// Writes the reply to the next command of a group that has ended, or a part of it.
    pub(crate) fn answer(&mut self, slot: u64, protocol: Protocol, out: &mut Vec<u8>) -> Written {
        let Some(group) = self.groups.get_mut(slot) else { return Written::Nothing };
        let State::Ended { completion, position, elements, of_two, .. } = &mut group.state else {
            return Written::Nothing;
        };
        match completion {
            Completion::Done if group.class.is_nilext() => write_simple(out, b"OK"),
            Completion::Done => write_error(out, b"ERR internal error: a result was expected"),
            Completion::Reply(bytes) => {
                let rest = bytes.len().saturating_sub(*position);
                let is_last = group.answered + 1 == group.load.operations;
                if *elements > 0 || rest > LARGE_REPLY_BYTES {
                    let mut input = bytes.get(*position..).unwrap_or_default();
                    let begun = if *elements > 0 { None } else { ReplyRef::take_head(&mut input) };
                    if let Some(head) = begun {
                        *elements = write_head(out, protocol, head);
                        *of_two = match head {
                            Head::Pairs(_) => Some(write_pair),
                            Head::Keyed(_) => Some(write_keyed_one),
                            Head::Array(_) | Head::Map(_) | Head::Set(_) => None,
                        };
                        *position = bytes.len() - input.len();
                    }
                    if begun.is_some() || *elements > 0 {
                        let end = out.len() + PART_BYTES;
                        while *elements > 0 && out.len() < end {
                            if let Some(write_head_of_two) = of_two {
                                write_head_of_two(out, protocol);
                                write_next(out, protocol, bytes, position);
                            }
                            write_next(out, protocol, bytes, position);
                            *elements -= 1;
                        }
                        if *elements > 0 {
                            return Written::Part;
                        }
                        return self.answered(slot);
                    }
                    if is_last {
                        // Twice as much as is needed, which growing by itself would take, is too much here.
                        out.reserve_exact(rest + LARGE_REPLY_BYTES);
                    }
                }
                write_next(out, protocol, bytes, position);
            }
            failure => write_failure(failure, out),
        }
        self.answered(slot)
    }

    /// How long a group that has ended was in flight; `None` for a transaction, whose commands are answered as one.
    pub(crate) fn took(&self, slot: u64) -> Option<Duration> {
        let group = self.groups.get(slot).filter(|group| !group.is_transaction)?;
        if let State::Ended { took, .. } = &group.state { Some(*took) } else { None }
    }

    /// How long the transaction with this slot was in flight, if it has ended.
    pub(crate) fn transaction_took(&self, slot: u64) -> Option<Duration> {
        if let State::Ended { took, .. } = &self.groups.get(slot)?.state { Some(*took) } else { None }
    }

    /// How the transaction with this slot has ended, if it has.
    pub(crate) fn end_of(&self, slot: u64) -> Option<GroupEnd> {
        let State::Ended { completion, .. } = &self.groups.get(slot)?.state else { return None };
        Some(match completion {
            Completion::Done | Completion::Reply(_) => GroupEnd::Replies,
            _ => GroupEnd::Failure,
        })
    }

    /// Takes the end of a transaction, if it has ended: none of its commands will be answered by itself.
    pub(crate) fn take_end(&mut self, slot: u64) -> Option<Completion> {
        let group = self.groups.get_mut(slot)?;
        let State::Ended { completion, .. } = &group.state else { return None };
        let completion = completion.clone();
        group.answered = group.load.operations - 1;
        self.answered(slot);
        Some(completion)
    }

    /// The reply to one command more of a group has been written.
    fn answered(&mut self, slot: u64) -> Written {
        if let Some(group) = self.groups.get_mut(slot) {
            group.answered += 1;
            if group.answered == group.load.operations
                && let State::Ended { completion, .. } = &group.state
            {
                self.held -= completion.bytes();
                self.groups.remove(slot);
            }
        }
        Written::Whole
    }

    /// Forgets everything; completions of what was in flight will be refused.
    pub(crate) fn abandon(&mut self) {
        *self = Self { groups: Window::new(self.groups.end(), GROUPS_MAX), ..Self::new() };
    }
}

/// Writes the error that says why there is no result.
pub(crate) fn write_failure(completion: &Completion, out: &mut Vec<u8>) {
    let text = match completion {
        Completion::Done | Completion::Reply(_) => "ERR internal error: a failure was expected",
        Completion::Refused(text) => {
            return write_error(out, format!("TRYAGAIN the command was not executed: {text}").as_bytes());
        }
        Completion::Unknown => {
            "UNKNOWN the update may or may not have been executed: it was not confirmed in time"
        }
        Completion::TimedOut => "TIMEOUT the command was not executed: there was no answer in time",
        Completion::NoQuorum => {
            "NOQUORUM the command was not executed: this node cannot reach a majority of the replicas"
        }
        Completion::OutOfMemory => NO_MEMORY,
        Completion::TooMuchWork(work) => {
            let text = format!(
                "ERR this would go through {} MiB of values in one go; a command, or a transaction, may go through {} MiB",
                work >> 20,
                UPDATE_WORK_MAX >> 20
            );
            return write_error(out, text.as_bytes());
        }
        Completion::Overloaded => {
            "OVERLOADED the command was not executed: too many operations are in flight"
        }
    };
    write_error(out, text.as_bytes());
}

/// Writes the head of a reply of many parts. How many elements follow, each of pairs being one.
fn write_head(out: &mut Vec<u8>, protocol: Protocol, head: Head) -> usize {
    match head {
        Head::Array(count) => {
            write_array(out, count);
            count
        }
        Head::Map(count) => {
            write_map(out, protocol, count);
            count.saturating_mul(2)
        }
        Head::Pairs(count) => {
            write_pairs(out, protocol, count);
            count
        }
        Head::Keyed(count) => {
            write_keyed(out, protocol, count);
            count
        }
        Head::Set(count) => {
            write_set(out, protocol, count);
            count
        }
    }
}

/// Writes the encoded reply at `position` and moves on behind it.
fn write_next(out: &mut Vec<u8>, protocol: Protocol, bytes: &[u8], position: &mut usize) {
    let mut rest = bytes.get(*position..).unwrap_or_default();
    match ReplyRef::decode(&mut rest) {
        Ok(reply) => {
            *position = bytes.len() - rest.len();
            write_reply(out, protocol, reply);
        }
        Err(malformed) => {
            write_error(out, format!("ERR internal error: malformed reply: {malformed}").as_bytes());
        }
    }
}
