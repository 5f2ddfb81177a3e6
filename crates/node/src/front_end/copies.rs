//! What the front end does for clients that keep copies of what they read: CLIENT TRACKING.

use super::RedisFrontEnd;
use super::subscribers::Pusher;
use super::tracking::{Freshness, Invalidation};
use syros_protocol::message::Message;
use syros_resp::{ProcessAnswer, Submission, TrackingRequest};
use syros_types::{Class, Instant, Now, ReadPolicy, ReplicaId};

use crate::key_events::KeyEvents;

impl RedisFrontEnd {
    /// CLIENT TRACKING: the connection tracks from now on, or in another way, or no more. What it is answered.
    pub(super) fn track(&mut self, address: u64, request: Option<TrackingRequest>) -> ProcessAnswer {
        let Some(request) = request else {
            self.end_tracking(address);
            return ProcessAnswer::Ok;
        };
        if self.is_gateway {
            return ProcessAnswer::Error(
                "ERR a gateway has no replica that could tell of changes: CLIENT TRACKING is for clients of nodes",
            );
        }
        let target = match request.redirect {
            None => None,
            Some(id) => match self.connections.with_id(id) {
                Some(target) => Some((id, target)),
                None => return ProcessAnswer::Error("ERR The client ID you want redirect to does not exist"),
            },
        };
        if !self.tracking.has_room(address, &request) {
            return ProcessAnswer::Error("ERR clients of this node have too many prefixes: 16,384 at most");
        }
        if let Some(connection) = self.connections.get_mut(address) {
            connection.redis.set_tracking(Some(request.clone()));
            self.tracking.begin(address, request, target);
        }
        self.count_tracking();
        ProcessAnswer::Ok
    }

    /// The connection tracks no more.
    pub(super) fn end_tracking(&mut self, address: u64) {
        if let Some(connection) = self.connections.get_mut(address) {
            connection.redis.set_tracking(None);
        }
        if self.tracking.has(address) {
            self.tracking.end(address);
            self.count_tracking();
        }
    }

    /// RESET ends it, too.
    pub(super) fn look_for_reset(&mut self, address: u64) {
        if self.tracking.has(address)
            && self.connections.get(address).is_none_or(|connection| !connection.redis.is_tracking())
        {
            self.end_tracking(address);
        }
    }

    fn count_tracking(&self) {
        self.shared.statistics.set_tracking(self.tracking.counts());
    }

    /// Hears what the replica of this process has done to keys, and whether it tells of all that it does.
    pub(super) fn exchange_copies(&mut self, now: Now, key_events: &mut KeyEvents) {
        let is_state_replaced = key_events.takes_state_replaced();
        // What executes the log may hear before long that nobody listens.
        let is_told = key_events.is_told() && key_events.is_wanted();
        self.tracking.set_told(is_told, key_events.is_exact());
        if self.tracking.is_empty() {
            return;
        }
        if is_state_replaced {
            self.tracking.on_state_replaced();
        }
        key_events.set_wants_origins(self.tracking.spares_own());
        self.tracking.set_keys_max(self.shared.tracking_keys_max());
        self.deliver_invalidations(now.instant);
    }

    /// Has clients told what they are to drop.
    pub(super) fn deliver_invalidations(&mut self, now: Instant) {
        let invalidations = self.tracking.take();
        if invalidations.is_empty() {
            return;
        }
        for Invalidation { address, keys } in invalidations {
            let target = self.tracking.target(address);
            let is_there = |(id, to): (u64, u64)| {
                self.connections.get(to).is_some_and(|connection| connection.redis.id() == id)
            };
            let to = match target {
                None => Some(address),
                Some(target) => is_there(target).then_some(target.1),
            };
            let Some(to) = to else {
                if let Some(connection) = self.connections.get_mut(address) {
                    connection.redis.redirection_broken();
                }
                self.mark_answered(address);
                continue;
            };
            let Self { connections, answered, overrun, .. } = self;
            let mut pusher = Pusher { connections, answered, overrun, now };
            pusher.push_with(to, |redis| {
                // Without a redirection, RESP2 has no place for it.
                let is_heard = target.is_some() || redis.speaks_resp3();
                if is_heard { redis.push_invalidation(keys.as_deref()) } else { 0 }
            });
        }
        self.count_tracking();
    }

    /// A connection is about to submit something.
    pub(super) fn note_submission(
        tracking: &mut super::tracking::Tracking,
        address: u64,
        submission: &Submission,
        (keeps, default_policy): (bool, ReadPolicy),
    ) {
        let policy = submission.read_policy.unwrap_or(default_policy);
        let freshness = match submission.class {
            Class::Read if policy == ReadPolicy::Stale => Freshness::Stale,
            _ => Freshness::Current,
        };
        tracking.on_submit(address, &submission.body, freshness, (keeps, submission.waits));
    }

    /// A reply, or an error if it is not answered, is about to be written to a connection.
    pub(super) fn before_reply(&mut self, now: Instant, address: u64, is_answered: bool) {
        if is_answered && self.tracking.has(address) {
            self.tracking.before_reply(address);
            self.deliver_invalidations(now);
        }
    }

    /// It has been written.
    pub(super) fn after_reply(&mut self, now: Instant, address: u64, is_answered: bool) {
        if self.tracking.has(address) {
            self.tracking.after_reply(address, is_answered);
            self.deliver_invalidations(now);
        }
    }

    /// A message is about to leave: of updates of clients that are not told of their own, it is noted which they are.
    pub(super) fn note_sent(&mut self, message: &Message) {
        let Message::Request { request, .. } = message else { return };
        if self.tracking.spares_own()
            && let Some(token) = self.group.client.token_of_update(request.id)
            && let Some(waiter) = self.group.waiter(token)
        {
            self.tracking.on_sent(waiter.address, request.id);
        }
    }

    /// A replica has answered something: the state that the answer is of may be later than what this process knows.
    pub(super) fn note_answer(&mut self, from: ReplicaId, message: &Message) {
        if self.tracking.is_empty() {
            return;
        }
        let (Message::ReadReply { number, .. } | Message::MemberReply { number, .. }) = message else {
            return;
        };
        if let Some(waiter) = self.group.reader(*number) {
            self.tracking.on_answer(waiter.address, self.own_replica == Some(from));
        }
    }
}
