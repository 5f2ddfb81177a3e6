//! What the front end does for subscribers and publishers: requests of connections, messages, and clients that are too slow.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use super::connections::RedisConnections;
use super::messages::{Asked, MessagePeer, SubscriptionCounts};
use super::{FrontEndAction, RedisFrontEnd};
use crate::key_events::KeyEvents;
use syros_resp::{Connection, MessageAnswer, PushedMessage};
use syros_types::{Instant, Now};
use syros_wire::FrontEndMessage;

/// A subscriber with more bytes of messages that it has not taken is closed: Redis's own limit, the hard one of
/// `client-output-buffer-limit pubsub`.
pub const PUSHED_BYTES_MAX: usize = 32 * 1024 * 1024;

/// A subscriber with more bytes than this for [`LAG_MAX`] is closed: Redis's own limit, the soft one.
pub const PUSHED_BYTES_LAG: usize = 8 * 1024 * 1024;

/// See [`PUSHED_BYTES_LAG`].
pub const LAG_MAX: Duration = Duration::from_secs(60);

/// Writes messages for subscribers, and notes who is to be looked at afterwards.
pub(super) struct Pusher<'a> {
    pub(super) connections: &'a mut RedisConnections,
    pub(super) answered: &'a mut Vec<u64>,
    pub(super) overrun: &'a mut Vec<(u64, usize)>,
    pub(super) now: Instant,
}

impl Pusher<'_> {
    fn push(&mut self, address: u64, message: &PushedMessage<'_>) {
        self.push_with(address, |redis| redis.push(message));
    }

    /// Has something written for a client; `write` returns the bytes that wait for it.
    pub(super) fn push_with(&mut self, address: u64, write: impl FnOnce(&mut Connection) -> usize) {
        let Some(connection) = self.connections.get_mut(address) else { return };
        if connection.is_overrun {
            return;
        }
        let waiting = write(&mut connection.redis);
        if !std::mem::replace(&mut connection.is_answered, true) {
            self.answered.push(address);
        }
        if waiting <= PUSHED_BYTES_LAG {
            connection.lags_since = None;
            return;
        }
        let since = *connection.lags_since.get_or_insert(self.now);
        if waiting > PUSHED_BYTES_MAX || self.now.since(since) >= LAG_MAX {
            connection.is_overrun = true;
            self.overrun.push((address, waiting));
        }
    }
}

/// A turn of the loop takes no further requests once those that it has taken may have had so many steps.
const STEPS_PER_TURN: usize = 1 << 24;

/// The messages of one transaction may have so many steps together. Those behind are refused.
const TRANSACTION_STEPS_MAX: usize = 1 << 28;

/// The connections that ask something of the registry of subscriptions, when a turn of the loop has done enough for such.
#[derive(Debug, Default)]
pub(super) struct Asking {
    line: VecDeque<u64>,
    /// The same.
    waiting: BTreeSet<u64>,
    /// Steps of this turn.
    this_turn: usize,
}

impl Asking {
    const fn is_turn_over(&self) -> bool {
        self.this_turn >= STEPS_PER_TURN
    }

    /// Requests that may have had so many steps have been carried out.
    const fn count(&mut self, steps: usize) {
        self.this_turn = self.this_turn.saturating_add(steps);
    }

    /// Another turn of the loop begins.
    pub(super) const fn begin_turn(&mut self) {
        self.this_turn = 0;
    }

    /// True if this turn has done enough: the connection has been put in line.
    fn must_wait(&mut self, address: u64) -> bool {
        let must_wait = self.is_turn_over();
        if must_wait && self.waiting.insert(address) {
            self.line.push_back(address);
        }
        must_wait
    }

    /// The next connection, unless this turn has done enough.
    pub(super) fn pop_next(&mut self) -> Option<u64> {
        if self.is_turn_over() {
            return None;
        }
        let next = self.line.pop_front()?;
        self.waiting.remove(&next);
        Some(next)
    }

    /// True if some connection waits.
    pub(super) fn has_next(&self) -> bool {
        !self.line.is_empty()
    }
}

impl RedisFrontEnd {
    /// Carries out what a connection asks of the registry of subscriptions.
    pub(super) fn ask(&mut self, now: Now, address: u64) {
        while !self.asking.must_wait(address)
            && let Some(connection) = self.connections.get_mut(address)
            && let Some(requests) = connection.redis.poll_messages()
        {
            let mut answers = Vec::with_capacity(requests.len());
            let mut steps = 0_usize;
            for request in requests {
                steps = steps.saturating_add(self.messages.steps_of(&request));
                if steps > TRANSACTION_STEPS_MAX && !answers.is_empty() {
                    let text = "ERR the messages of this transaction have too many patterns of subscribers to be compared with";
                    answers.push(MessageAnswer::Refused(text.to_owned()));
                    continue;
                }
                let Self { messages, connections, answered, overrun, .. } = self;
                let mut pusher = Pusher { connections, answered, overrun, now: now.instant };
                let asked = messages.ask(now.instant, address, request, &mut |to, message| {
                    pusher.push(to, message);
                });
                match asked {
                    Asked::Now(answer) => answers.push(answer),
                    // Only a SUBSCRIBE waits, and it is asked alone.
                    Asked::Later => return,
                }
            }
            let Some(connection) = self.connections.get_mut(address) else { return };
            connection.redis.answer_messages(&answers);
            self.asking.count(steps);
        }
    }

    /// Answers each SUBSCRIBE of which all peers know now, and hands it what has been published meanwhile.
    pub(super) fn answer_confirmed(&mut self, now: Now) {
        while let Some((address, answer, early)) = self.messages.next_confirmed() {
            let Some(connection) = self.connections.get_mut(address) else { continue };
            connection.redis.answer_messages(&[answer]);
            self.mark_answered(address);
            let Self { connections, answered, overrun, .. } = self;
            let mut pusher = Pusher { connections, answered, overrun, now: now.instant };
            early.iter().for_each(|message| pusher.push(address, &message.pushed()));
        }
    }

    /// Another front end can be sent messages, and knows nothing of this one. A gateway makes itself known with its first
    /// message.
    pub fn on_peer_connected(&mut self, now: Now, peer: MessagePeer) {
        self.messages.on_connected(now.instant, peer);
        self.answer_confirmed(now);
    }

    /// The connection to another front end, if it was one, is gone.
    pub fn on_peer_lost(&mut self, now: Now, peer: MessagePeer) {
        self.messages.on_lost(now.instant, peer);
        self.answer_confirmed(now);
    }

    /// Takes a message of another front end.
    pub fn on_peer_message(&mut self, now: Now, from: MessagePeer, message: FrontEndMessage) {
        let Self { messages, connections, answered, overrun, shared, .. } = self;
        messages.set_key_events(shared.keyspace_events());
        let mut pusher = Pusher { connections, answered, overrun, now: now.instant };
        messages.on_message(now.instant, from, message, &mut |to, message| pusher.push(to, message));
        self.answer_confirmed(now);
    }

    /// Tells what executes the log in this process whether anybody listens to events of keys, and tells clients of those that
    /// have happened, and of what scripts have published: to be called before [`poll`](Self::poll) whenever something has been
    /// executed.
    pub fn exchange_key_events(&mut self, now: Now, key_events: &mut KeyEvents) {
        self.messages.set_key_events(self.shared.keyspace_events());
        let mut happened = key_events.take();
        key_events.set_wanted(self.messages.wants_key_events() || !self.tracking.is_empty());
        self.tracking.on_changes(&happened, &key_events.take_origins());
        self.exchange_copies(now, key_events);
        let replayed = key_events.replayed().0;
        happened.retain(|announcement| announcement.entry() > replayed && !announcement.is_silent());
        if happened.is_empty() {
            return;
        }
        let Self { messages, connections, answered, overrun, .. } = self;
        let mut pusher = Pusher { connections, answered, overrun, now: now.instant };
        messages.announce(&happened, &mut |to, message| pusher.push(to, message));
    }

    /// Names that clients of this process subscribe to.
    #[must_use]
    pub fn subscriptions(&self) -> SubscriptionCounts {
        self.messages.counts()
    }

    /// What is to be done for subscribers and peers, if anything is.
    pub(super) fn poll_messages(&mut self, now: Now) -> Option<FrontEndAction> {
        if let Some((address, bytes)) = self.overrun.pop() {
            return Some(FrontEndAction::CloseSubscriber { address, bytes });
        }
        let (to, message) = self.messages.poll(now.instant)?;
        Some(FrontEndAction::SendToPeer { to, message })
    }
}
