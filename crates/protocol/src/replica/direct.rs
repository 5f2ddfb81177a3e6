//! Direct answers: a follower that executes an entry answers its own process's front end, or another client that has asked for
//! that, without waiting to hear from the leader that the entry is committed.
//!
//! An entry is committed when `f + 1` members have the log up to it on disk in one view (VR 4.1), no matter who counts. So a
//! follower counts, too: itself, and the members whose [`Message::LogDurable`] it has heard in its view. With three
//! replicas, it and the leader are a majority: an update that the leader orders for a client of a follower takes one round
//! trip between the two, not two; for a client elsewhere, which the follower answers, one and a half. With more replicas a
//! follower has to hear from another one, and answers no sooner than the leader does: clients elsewhere do not ask.
//!
//! A follower may then have executed what the leader has not. A read at the leader waits for entries in the log that touch
//! its keys, executed or not. Log time touches every key that expires, and stands in no footprint: so a leader shows no key
//! that has expired by its clock or by its last entry (see `on_not_read`), and a read of all keys waits for the whole log.

use super::role::{LogWatchers, Role, ViewClients};
use super::{Durability, PlantedBug, Replica};
use crate::message::{Body, Message, Peer};
use alloc::vec::Vec;
use syros_types::{Class, OpNumber, OperationId, ReplicaId, SessionId, View};

impl Replica {
    /// A follower wants to hear how far this replica's log is durable, for as long as both are in this view.
    pub(super) fn on_watch_log(&mut self, from: ReplicaId, view: View) {
        if view != self.view {
            return;
        }
        if let Some(in_view) = self.role.in_view_mut() {
            in_view.log_watchers.members = in_view.log_watchers.members.with(from);
            in_view.log_watchers.told = OpNumber(0);
        }
    }

    /// True if a follower goes on when an entry is on its disk: it counts commits by itself, or others do by it.
    pub(super) fn counts_or_is_counted(&self) -> bool {
        let is_watched = |view: &ViewClients| !view.log_watchers.members.is_empty();
        self.attachments.answers_directly(self.now.instant) || self.role.in_view().is_some_and(is_watched)
    }

    /// Tells those that want to hear of it how far the log is durable.
    pub(super) fn tell_log_watchers(&mut self) {
        let durable = match self.planted(PlantedBug::LogToldBeforeDisk) {
            true => self.log.op_number(),
            false => self.persistence.persisted_op(),
        };
        let Some(in_view) = self.role.in_view_mut() else { return };
        let LogWatchers { members, told } = &mut in_view.log_watchers;
        if members.is_empty() || durable <= *told {
            return;
        }
        *told = durable;
        let (members, view) = (*members, self.view);
        for member in members.iter() {
            self.send(Peer::Replica(member), Message::LogDurable { view, op_number: durable });
        }
    }

    /// Follower: a member's log is durable up to here.
    pub(super) fn on_log_durable(&mut self, from: ReplicaId, view: View, op_number: OpNumber) {
        if view != self.view && !self.planted(PlantedBug::LogOfAnyView) {
            return;
        }
        if let Role::Follower(follower) = &mut self.role {
            follower.commits.hear(from, op_number);
            self.count_commit();
        }
    }

    /// Follower: a Prepare has come that ends with this entry. Without fsync the leader's memory is what counts, and the
    /// entries are there.
    pub(super) fn count_prepared(&mut self, last: OpNumber) {
        if self.config.durability == Durability::Replicated
            && self.attachments.answers_directly(self.now.instant)
        {
            let leader = self.leader();
            if let Role::Follower(follower) = &mut self.role {
                follower.commits.hear(leader, last);
            }
        }
    }

    /// Follower: commits what it knows a majority to have, itself among them or not.
    pub(super) fn count_commit(&mut self) {
        let (me, own) = (self.config.replica.index(), self.persistence.persisted_op());
        let Role::Follower(follower) = &self.role else { return };
        let mut durable = follower.commits.durable;
        durable[me] = own;
        let counted = self.committable(&durable).min(self.log.op_number());
        let Role::Follower(follower) = &mut self.role else { return };
        if counted > follower.commits.counted {
            follower.commits.counted = counted;
            self.commit = self.commit.max(counted);
        }
    }

    /// Follower: asks for what it counts by, if somebody wants direct answers and it has not asked in this view.
    pub(super) fn watch_logs(&mut self) {
        if !self.attachments.answers_directly(self.now.instant) {
            return;
        }
        let leader = self.leader();
        let Role::Follower(follower) = &mut self.role else { return };
        if follower.commits.asked_at.is_some() {
            return;
        }
        follower.commits.asked_at = Some(self.now.instant);
        let is_small = self.config.configuration.majority() == 2;
        let by_memory = self.config.durability == Durability::Replicated;
        let view = self.view;
        for member in self.others() {
            // What the leader has in memory, its Prepares say. And of three members, the leader and this one are enough.
            let is_needed = if member == leader { !by_memory } else { !is_small };
            if is_needed {
                self.send(Peer::Replica(member), Message::WatchLog { view });
            }
        }
    }

    /// Follower: somebody waits for this entry, which the follower has committed because its leader said so. Somebody
    /// may not have heard that it wants to count by itself.
    fn watch_logs_again(&mut self, number: OpNumber) {
        let again = self.config.settings.resend;
        let now = self.now.instant;
        if let Role::Follower(follower) = &mut self.role
            && follower.commits.counted < number
        {
            follower.commits.asked_at.take_if(|asked| now >= asked.after(again));
        }
    }

    /// Follower: true if it answers an update of a session directly. Its client hears otherwise of an update that was accepted
    /// and returns nothing. Of one that returns something only the leader knows whether the fast quorum has answered it: then
    /// the answer is one too many.
    pub(super) fn is_answered_directly(&self, session: SessionId, was_accepted: bool, class: Class) -> bool {
        !(was_accepted && class.is_nilext())
            && (self.attachments.is_own(session) || self.attachments.is_direct(session, self.now.instant))
    }

    /// Follower: answers updates that it has executed to those that want direct answers; to a client elsewhere only if the
    /// follower has counted, since the leader's answer has arrived otherwise. `dropped` are the replies that the session table
    /// does not keep.
    pub(super) fn answer_directly(
        &mut self,
        number: OpNumber,
        executed: Vec<OperationId>,
        dropped: &[(OperationId, Body)],
    ) {
        if executed.is_empty() || !self.is_normal() {
            return;
        }
        let (view, clock) = (self.view, self.now.wall);
        let has_counted = self.role.following().is_some_and(|follower| follower.commits.counted >= number);
        for id in executed {
            let nonce = self.sessions.nonce(id.session);
            let own = self.attachments.own_front_end(id.session, nonce);
            let elsewhere = || self.attachments.direct_client(id.session).filter(|_| has_counted);
            let Some(client) = own.or_else(elsewhere) else { continue };
            let Some(reply) = self.reply_of_executed(id, dropped) else { continue };
            self.send(Peer::Client(client), Message::Committed { view, id, clock, reply });
        }
        self.watch_logs_again(number);
    }
}
