//! The Redis front end's client of the group, and which connection waits for which operation.

use syros_commands::Generation;
use syros_protocol::client::{Client, Config, Outcome, Token};
use syros_protocol::message::{Body, Refusal};
use syros_resp::{Completion, Submission};
use syros_types::{Instant, Now, ReadPolicy, Window};

use super::errand::{Errand, ErrandKind};
use super::reply_room::ReplyRoom;

/// The client core of a process, and the table of the connections that wait for its operations.
#[derive(Debug)]
pub(super) struct GroupClient {
    pub(super) client: Client,
    /// The submission that waits for each operation, by token.
    waiting: Window<Waiter>,
    in_flight_max: usize,
    /// The newest generation of operations that all members know which are connected.
    pub(super) known: Generation,
    /// For replies that have been asked for.
    pub(super) room: ReplyRoom,
    /// What has been submitted, for the judge of a simulation.
    #[cfg(feature = "planted-bugs")]
    pub(super) submitted: std::collections::VecDeque<Submitted>,
}

/// What a front end has submitted for a connection: what the judge of a simulation looks at.
#[cfg(feature = "planted-bugs")]
#[derive(Clone, Debug)]
pub struct Submitted {
    /// The connection.
    pub address: u64,
    /// The connection's name for it, which it keeps if it is submitted again.
    pub slot: u64,
    /// The client core's name for the operation.
    pub token: Token,
    /// The operation.
    pub body: Body,
    /// For a command that waits, which is submitted again and again: the operation as the connection has made it.
    pub made: Option<Body>,
}

/// A submission of a Redis connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    /// The connection's address.
    pub(super) address: u64,
    /// The connection's name for it.
    pub(super) slot: u64,
    /// Bytes of room reserved for its reply.
    pub(super) reserved: usize,
    /// When it came.
    pub(super) since: Instant,
    /// Whether a connection waits for it.
    pub(super) purpose: Purpose,
}

/// What an operation is submitted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A connection waits for it.
    Connection,
    /// It is an errand, which has no connection and no slot.
    Errand(ErrandKind),
}

/// Slots of operations, those of ended ones behind one that has not ended included, beyond which new operations wait.
/// They take 40 bytes each.
const SLOTS_PAUSE: usize = 1 << 22;

/// A connection checked below [`SLOTS_PAUSE`] may still hand over all of its commands.
const SLOTS_MAX: usize = SLOTS_PAUSE + syros_resp::limits::COMMANDS_MAX;

/// Why an operation is not submitted that some member does not know. A leader that orders it could not have it confirmed by
/// such members, and would wait until they are upgraded.
const TOO_OLD: &str =
    "a member of the cluster has an older version, which does not know it; upgrade all members first";

impl GroupClient {
    /// `config.settings.in_flight_max` is raised, so that what is accepted below `in_flight_max` never hits it.
    pub(super) fn new(mut config: Config, room: ReplyRoom, now: Now) -> Self {
        let in_flight_max = config.settings.in_flight_max;
        // A connection checked at the limit may still hand over all of its commands.
        config.settings.in_flight_max = 2 * in_flight_max + syros_resp::limits::COMMANDS_MAX;
        Self {
            client: Client::new(config, now),
            waiting: Window::new(1, SLOTS_MAX),
            in_flight_max,
            known: Generation::NEWEST,
            room,
            #[cfg(feature = "planted-bugs")]
            submitted: std::collections::VecDeque::new(),
        }
    }

    /// True if no further operations should be taken for now: so many others are about to be submitted.
    pub(super) fn is_full(&self, others: usize) -> bool {
        self.client.in_flight() + others >= self.in_flight_max || self.waiting.slots() + others >= SLOTS_PAUSE
    }

    /// Hands an operation of a connection, which has waited since a moment, to the client, with so many bytes of room reserved
    /// for its reply. Gives back how it ended if it did so at once.
    pub(super) fn submit(
        &mut self,
        now: Now,
        (address, since): (u64, Instant),
        submission: Submission,
        reserved: usize,
    ) -> Option<(u64, Completion)> {
        let Submission { slot, body, class, footprint, read_policy, waits: _, is_pack: _ } = submission;
        if !self.knows(&body) {
            self.room.release(reserved);
            return Some((slot, Completion::Refused(TOO_OLD.to_string())));
        }
        #[cfg(feature = "planted-bugs")]
        let seen = body.clone();
        if !self.waiting.is_full()
            && let Ok(Token(token)) = self.client.submit_with(now, body, class, &footprint, read_policy)
        {
            let purpose = Purpose::Connection;
            let waiter = Waiter { address, slot, reserved, purpose, since };
            let number = self.waiting.push(waiter);
            debug_assert_eq!(token, number, "tokens count up");
            #[cfg(feature = "planted-bugs")]
            self.submitted.push_back(Submitted {
                address,
                slot,
                token: Token(token),
                body: seen,
                made: None,
            });
            return None;
        }
        self.room.release(reserved);
        Some((slot, Completion::Overloaded))
    }

    /// True if all members that are connected know the operations of a body.
    pub(super) fn knows(&self, body: &[u8]) -> bool {
        self.known >= Generation::NEWEST || Generation::of_body(body) <= self.known
    }

    /// Hands something to the client that is for commands which wait; the client core's name for it, unless it takes nothing now.
    pub(super) fn submit_errand(&mut self, now: Now, errand: Errand) -> Option<Token> {
        let Errand { kind, body, class, footprint } = errand;
        if self.waiting.is_full() {
            return None;
        }
        // Who waits for what is pending at the leader asks the leader.
        let policy = match kind {
            // What the leader does not know it refuses, and that says something: see `RedisFrontEnd::on_users_read`.
            ErrandKind::Settle(_) | ErrandKind::Users | ErrandKind::OldLeader => Some(ReadPolicy::Leader),
            _ => None,
        };
        let Token(token) = self.client.submit_with(now, body, class, &footprint, policy).ok()?;
        let purpose = Purpose::Errand(kind);
        let number =
            self.waiting.push(Waiter { address: 0, slot: 0, reserved: 0, purpose, since: now.instant });
        debug_assert_eq!(token, number, "tokens count up");
        Some(Token(token))
    }

    /// Who waits for the read with this number, if it has not ended.
    pub(super) fn reader(&self, number: u64) -> Option<Waiter> {
        self.waiter(self.client.token_of_read(number)?)
    }

    /// Who waits for this operation, if it has not ended.
    pub(super) fn waiter(&self, Token(token): Token) -> Option<Waiter> {
        self.waiting.get(token).copied()
    }

    /// So many bytes of room are reserved for the reply to the read with this number.
    pub(super) fn set_reserved(&mut self, number: u64, bytes: usize) {
        let Some(Token(token)) = self.client.token_of_read(number) else { return };
        if let Some(waiting) = self.waiting.get_mut(token) {
            waiting.reserved = bytes;
        }
    }

    /// Nobody waits for the read with this number any more. Gives back its body if it had not ended.
    pub(super) fn abandon_read(&mut self, number: u64) -> Option<Body> {
        let token = self.client.token_of_read(number)?;
        self.take(token);
        self.client.abandon_read(number)
    }

    /// Who waits for this operation, which has ended.
    pub(super) fn take(&mut self, token: Token) -> Option<Waiter> {
        let waiting = self.waiting.remove(token.0)?;
        self.room.release(waiting.reserved);
        Some(waiting)
    }
}

/// The end of an operation, as a connection wants to hear of it.
pub(super) fn completion(outcome: Outcome) -> Completion {
    match outcome {
        Outcome::Done => Completion::Done,
        Outcome::Reply(reply) => Completion::Reply(reply),
        Outcome::Refused(Refusal::OutOfMemory) => Completion::OutOfMemory,
        Outcome::Refused(refusal) => Completion::Refused(refusal.to_string()),
        Outcome::Unknown => Completion::Unknown,
        Outcome::TimedOut => Completion::TimedOut,
        Outcome::NoQuorum => Completion::NoQuorum,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use syros_types::{Class, Configuration, FastQuorum, Footprint, Group, WallTime};

    fn submission(slot: u64) -> Submission {
        Submission {
            slot,
            body: Arc::from([1_u8]),
            class: Class::Read,
            footprint: Footprint::One(slot),
            read_policy: None,
            waits: false,
            is_pack: false,
        }
    }

    #[test]
    fn nothing_is_submitted_that_a_member_does_not_know() {
        let now = Now { instant: Instant(0), wall: WallTime(0) };
        let configuration = Configuration::first(Group::new(3).unwrap(), FastQuorum::Majority);
        let mut group = GroupClient::new(Config::new(configuration, 1), ReplyRoom::new(1 << 20), now);
        let body = |words: &[&[u8]]| match syros_commands::parse(words) {
            Ok(syros_commands::Parsed::Data(operation)) => {
                let mut body = Vec::new();
                operation.encode(&mut body);
                Arc::from(body)
            }
            other => panic!("{other:?}"),
        };
        let mut submit = |known, words: &[&[u8]]| {
            group.known = known;
            group.submit(now, (1, now.instant), Submission { body: body(words), ..submission(1) }, 0)
        };
        let refused = Some((1, Completion::Refused(TOO_OLD.to_string())));
        assert_eq!(submit(Generation::Strings, &[b"HGET", b"k", b"f"]), refused);
        assert_eq!(submit(Generation::Strings, &[b"GET", b"k"]), None);
        assert_eq!(submit(Generation::Collections, &[b"HGET", b"k", b"f"]), None);
    }

    #[test]
    fn operations_end_in_any_order() {
        let config = Config::new(Configuration::first(Group::new(1).unwrap(), FastQuorum::Majority), 1);
        let now = Now { instant: Instant(1), wall: WallTime(1) };
        let mut group = GroupClient::new(config, ReplyRoom::new(1 << 20), now);
        for slot in 1..=4 {
            assert!(group.submit(now, (10 * slot, now.instant), submission(slot), 0).is_none());
        }
        let mut take = |token| group.take(Token(token)).map(|waiting| (waiting.address, waiting.slot));
        assert_eq!(take(3), Some((30, 3)));
        assert_eq!(take(3), None, "it has ended already");
        assert_eq!((take(1), take(2)), (Some((10, 1)), Some((20, 2))));
        assert_eq!((take(0), take(1), take(9)), (None, None, None));
        assert_eq!((group.waiting.first(), group.waiting.slots()), (4, 1));
        assert!(group.submit(now, (50, now.instant), submission(5), 0).is_none());
        assert_eq!(group.take(Token(5)).map(|waiting| waiting.address), Some(50));
    }

    #[test]
    fn beyond_the_limits_nothing_is_lost_silently() {
        let mut config = Config::new(Configuration::first(Group::new(1).unwrap(), FastQuorum::Majority), 1);
        config.settings.in_flight_max = 2;
        let now = Now { instant: Instant(1), wall: WallTime(1) };
        let mut group = GroupClient::new(config, ReplyRoom::new(1 << 20), now);
        let most = 4 + syros_resp::limits::COMMANDS_MAX as u64;
        for slot in 1..=most {
            assert_eq!((group.is_full(0), group.is_full(1)), (slot > 2, slot > 1));
            assert!(group.submit(now, (1, now.instant), submission(slot), 0).is_none());
        }
        let refused = group.submit(now, (1, now.instant), submission(most + 1), 0);
        assert_eq!(refused, Some((most + 1, Completion::Overloaded)));
    }
}
