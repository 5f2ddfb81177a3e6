//! What the front end does for subscribers and publishers: requests of connections, messages, and clients that are too slow.

use std::time::Duration;

use super::connections::RedisConnections;
use super::messages::{Asked, MessagePeer, SubscriptionCounts};
use super::{FrontEndAction, RedisFrontEnd};
use crate::key_events::KeyEvents;
use syros_resp::PushedMessage;
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
struct Pusher<'a> {
    connections: &'a mut RedisConnections,
    answered: &'a mut Vec<u64>,
    overrun: &'a mut Vec<(u64, usize)>,
    now: Instant,
}

impl Pusher<'_> {
    fn push(&mut self, address: u64, message: &PushedMessage<'_>) {
        let Some(connection) = self.connections.get_mut(address) else { return };
        if connection.is_overrun {
            return;
        }
        let waiting = connection.redis.push(message);
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

impl RedisFrontEnd {
    /// Carries out what a connection asks of the registry of subscriptions. True if it asked something, and has the answer.
    pub(super) fn ask(&mut self, now: Now, address: u64) -> bool {
        let mut has_asked = false;
        while let Some(connection) = self.connections.get_mut(address)
            && let Some(requests) = connection.redis.poll_messages()
        {
            let mut answers = Vec::with_capacity(requests.len());
            for request in requests {
                let Self { messages, connections, answered, overrun, .. } = self;
                let mut pusher = Pusher { connections, answered, overrun, now: now.instant };
                let asked = messages.ask(now.instant, address, request, &mut |to, message| {
                    pusher.push(to, message);
                });
                match asked {
                    Asked::Now(answer) => answers.push(answer),
                    // Only a SUBSCRIBE waits, and it is asked alone.
                    Asked::Later => return has_asked,
                }
            }
            let Some(connection) = self.connections.get_mut(address) else { return false };
            connection.redis.answer_messages(&answers);
            has_asked = true;
        }
        has_asked
    }

    /// Answers each SUBSCRIBE of which all peers know now.
    pub(super) fn answer_confirmed(&mut self) {
        while let Some((address, answer)) = self.messages.next_confirmed() {
            if let Some(connection) = self.connections.get_mut(address) {
                connection.redis.answer_messages(&[answer]);
                self.mark_answered(address);
            }
        }
    }

    /// Another front end can be sent messages, and knows nothing of this one. A gateway makes itself known with its first
    /// message.
    pub fn on_peer_connected(&mut self, now: Now, peer: MessagePeer) {
        self.messages.on_connected(now.instant, peer);
        self.answer_confirmed();
    }

    /// The connection to another front end, if it was one, is gone.
    pub fn on_peer_lost(&mut self, now: Now, peer: MessagePeer) {
        self.messages.on_lost(now.instant, peer);
        self.answer_confirmed();
    }

    /// Takes a message of another front end.
    pub fn on_peer_message(&mut self, now: Now, from: MessagePeer, message: FrontEndMessage) {
        let Self { messages, connections, answered, overrun, shared, .. } = self;
        messages.set_key_events(shared.keyspace_events());
        let mut pusher = Pusher { connections, answered, overrun, now: now.instant };
        messages.on_message(now.instant, from, message, &mut |to, message| pusher.push(to, message));
        self.answer_confirmed();
    }

    /// Tells what executes the log in this process whether anybody listens to events of keys, and tells clients of those that
    /// have happened: to be called before [`poll`](Self::poll) whenever something has been executed.
    pub fn exchange_key_events(&mut self, now: Now, key_events: &mut KeyEvents) {
        self.messages.set_key_events(self.shared.keyspace_events());
        let happened = key_events.take();
        key_events.set_wanted(self.messages.wants_key_events());
        if happened.is_empty() {
            return;
        }
        let Self { messages, connections, answered, overrun, .. } = self;
        let mut pusher = Pusher { connections, answered, overrun, now: now.instant };
        messages.tell_key_events(&happened, &mut |to, message| pusher.push(to, message));
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
