//! The Redis front end's client of the group, and whose operation is whose.

use std::cell::Cell;
use std::sync::Arc;

use syros_protocol::client::{Client, Config, Outcome, Token};
use syros_protocol::message::{Body, Refusal};
use syros_resp::{Completion, Submission};
use syros_types::{Now, Window};
use syros_wire::FrameError;

use crate::reply_room::ReplyRoom;

/// The front end of a process.
pub(crate) struct Front {
    pub(crate) client: Client,
    /// Who waits for each operation, by token.
    waiting: Window<Waiting>,
    in_flight_max: usize,
    /// For replies that have been asked for.
    pub(crate) room: ReplyRoom,
    pub(crate) statistics: Statistics,
}

/// A submission of a Redis connection.
#[derive(Clone, Copy)]
pub(crate) struct Waiting {
    /// The connection's address.
    pub(crate) address: u64,
    /// The connection's name for it.
    pub(crate) slot: u64,
    /// Bytes of room reserved for its reply.
    pub(crate) reserved: usize,
}

/// Counters of INFO. Cells, because whoever asks for them may reset them while the front end is lent out.
#[derive(Default)]
pub(crate) struct Statistics {
    /// Connections accepted since the start.
    connections: Cell<u64>,
    connections_at_reset: Cell<u64>,
    /// Commands received since the last reset.
    pub(crate) commands: Cell<u64>,
    /// What Redis connections have done.
    pub(crate) redis: Arc<syros_resp::Statistics>,
    /// Frames that were damaged on their way, since the last reset.
    pub(crate) damaged_frames: Cell<u64>,
}

impl Statistics {
    /// Counts a connection, and returns its number.
    pub(crate) fn next_connection(&self) -> u64 {
        self.connections.set(self.connections.get() + 1);
        self.connections.get()
    }

    /// Connections accepted since the last reset.
    pub(crate) fn connections_since_reset(&self) -> u64 {
        self.connections.get() - self.connections_at_reset.get()
    }

    /// What came is no frame: counts it if it was damaged on its way.
    pub(crate) fn no_frame(&self, error: FrameError) -> String {
        if matches!(error, FrameError::Checksum { .. }) {
            self.damaged_frames.set(self.damaged_frames.get() + 1);
        }
        error.to_string()
    }

    pub(crate) fn reset(&self) {
        self.damaged_frames.set(0);
        self.connections_at_reset.set(self.connections.get());
        self.commands.set(0);
    }
}

/// Slots of operations, those of ended ones behind one that has not ended included, beyond which new operations wait.
/// They take 32 bytes each.
const SLOTS_PAUSE: usize = 1 << 22;

/// A connection checked below [`SLOTS_PAUSE`] may still hand over all of its commands.
const SLOTS_MAX: usize = SLOTS_PAUSE + syros_resp::limits::COMMANDS_MAX;

impl Front {
    /// `config.settings.in_flight_max` is raised, so that what is accepted below `in_flight_max` never hits it.
    pub(crate) fn new(mut config: Config, room: ReplyRoom, now: Now) -> Self {
        let in_flight_max = config.settings.in_flight_max;
        // A connection checked at the limit may still hand over all of its commands.
        config.settings.in_flight_max = 2 * in_flight_max + syros_resp::limits::COMMANDS_MAX;
        Self {
            client: Client::new(config, now),
            waiting: Window::new(1, SLOTS_MAX),
            in_flight_max,
            room,
            statistics: Statistics::default(),
        }
    }

    /// True if no further operations should be taken for now.
    pub(crate) fn is_full(&self) -> bool {
        self.client.in_flight() >= self.in_flight_max || self.waiting.slots() >= SLOTS_PAUSE
    }

    /// Hands an operation to the client, with so many bytes of room reserved for its reply. Gives back how it ended if it
    /// did so at once.
    pub(crate) fn submit(
        &mut self,
        now: Now,
        address: u64,
        submission: Submission,
        reserved: usize,
    ) -> Option<(u64, Completion)> {
        let Submission { slot, body, class, footprint, read_policy } = submission;
        if !self.waiting.is_full()
            && let Ok(Token(token)) = self.client.submit_with(now, body, class, &footprint, read_policy)
        {
            let number = self.waiting.push(Waiting { address, slot, reserved });
            debug_assert_eq!(token, number, "tokens count up");
            return None;
        }
        self.room.release(reserved);
        Some((slot, Completion::Overloaded))
    }

    /// Who waits for the read with this number, if it has not ended.
    pub(crate) fn reader(&self, number: u64) -> Option<Waiting> {
        let Token(token) = self.client.token_of_read(number)?;
        self.waiting.get(token).copied()
    }

    /// So many bytes of room are reserved for the reply to the read with this number.
    pub(crate) fn set_reserved(&mut self, number: u64, bytes: usize) {
        let Some(Token(token)) = self.client.token_of_read(number) else { return };
        if let Some(waiting) = self.waiting.get_mut(token) {
            waiting.reserved = bytes;
        }
    }

    /// Nobody waits for the read with this number any more. Gives back its body if it had not ended.
    pub(crate) fn abandon_read(&mut self, number: u64) -> Option<Body> {
        let token = self.client.token_of_read(number)?;
        self.take(token);
        self.client.abandon_read(number)
    }

    /// Who waits for this operation, which has ended.
    pub(crate) fn take(&mut self, token: Token) -> Option<Waiting> {
        let waiting = self.waiting.remove(token.0)?;
        self.room.release(waiting.reserved);
        Some(waiting)
    }
}

/// The end of an operation, as a connection wants to hear of it.
pub(crate) fn completion(outcome: Outcome) -> Completion {
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
    use syros_types::{Class, FastQuorum, Footprint, Group, Instant, WallTime};

    fn submission(slot: u64) -> Submission {
        Submission {
            slot,
            body: Arc::from([1_u8]),
            class: Class::Read,
            footprint: Footprint::One(slot),
            read_policy: None,
        }
    }

    #[test]
    fn operations_end_in_any_order() {
        let config = Config::new(Group::new(1).unwrap(), FastQuorum::Majority, 1);
        let now = Now { instant: Instant(1), wall: WallTime(1) };
        let mut front = Front::new(config, ReplyRoom::new(1 << 20), now);
        for slot in 1..=4 {
            assert!(front.submit(now, 10 * slot, submission(slot), 0).is_none());
        }
        let mut take = |token| front.take(Token(token)).map(|waiting| (waiting.address, waiting.slot));
        assert_eq!(take(3), Some((30, 3)));
        assert_eq!(take(3), None, "it has ended already");
        assert_eq!((take(1), take(2)), (Some((10, 1)), Some((20, 2))));
        assert_eq!((take(0), take(1), take(9)), (None, None, None));
        assert_eq!((front.waiting.first(), front.waiting.slots()), (4, 1));
        assert!(front.submit(now, 50, submission(5), 0).is_none());
        assert_eq!(front.take(Token(5)).map(|waiting| waiting.address), Some(50));
    }

    #[test]
    fn beyond_the_limits_nothing_is_lost_silently() {
        let mut config = Config::new(Group::new(1).unwrap(), FastQuorum::Majority, 1);
        config.settings.in_flight_max = 2;
        let now = Now { instant: Instant(1), wall: WallTime(1) };
        let mut front = Front::new(config, ReplyRoom::new(1 << 20), now);
        let most = 4 + syros_resp::limits::COMMANDS_MAX as u64;
        for slot in 1..=most {
            assert_eq!(front.is_full(), slot > 2);
            assert!(front.submit(now, 1, submission(slot), 0).is_none());
        }
        let refused = front.submit(now, 1, submission(most + 1), 0);
        assert_eq!(refused, Some((most + 1, Completion::Overloaded)));
    }
}
