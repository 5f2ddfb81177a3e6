//! Learners: nodes that copy what a group holds before it grows by them.
//!
//! A group of another size needs majorities of that size. If it grew by nodes that hold nothing, those would have to copy
//! everything before anything could be committed wherever the old members are no such majority: a group that grows from one
//! member to three, or from three to five with one of the three dead. So a node that is to come in learns first. It knows the
//! configuration of the group, is none of its members, and has no vote:
//!
//! 1. It asks the members for the view that they are in, and copies what the leader says to be committed: a snapshot, if the
//!    leader's log does not go back far enough, and entries. It takes over nothing else, so what it holds is the same in every
//!    view.
//! 2. When it has executed what it has asked for, it asks for its place, and says how far it has come. It goes on copying.
//! 3. A leader proposes the larger configuration when both nodes have asked of late and lack no more than a few entries of
//!    what is committed.
//! 4. A learner that hears that a configuration with it is committed acts in it: like a member that was away since the group
//!    began, and has been told what is committed since.
//!
//! Nobody counts a learner, and it promises nothing. So whatever becomes of it, nothing depends on it: one that is started
//! again begins anew, with nothing.

use super::role::{Learning, Newcomer, Recovering, Role, Transfer};
use super::timers::{Timer, Timers};
use super::{PlantedBug, Replica};
use crate::message::{Message, Peer, StartView};
use alloc::boxed::Box;
use core::time::Duration;
use syros_types::{Instant, NodeId, OpNumber, ReplicaId, View};

/// So many entries a learner may lack when the group grows by it: the group may have to wait until it has them, which takes it no
/// longer than an answer or two of the leader's. Under load a learner never has everything.
const LACKS_MAX: u64 = 8192;

/// So many times `transfer_bytes_max` these entries may take.
const LACKS_ANSWERS_MAX: usize = 16;

/// A learner asks for its place for so many times `resend` after it has last had what a leader had just said to be committed: one that
/// hears nothing any more, or falls behind, is not there.
pub(super) const FRESH_RESENDS: u32 = 8;

impl Replica {
    /// True if it has never been a member, and is to become one.
    pub(super) const fn is_learner(&self) -> bool {
        matches!(&self.role, Role::Recovering(Recovering { learning: Some(_), .. }))
    }

    /// True if it was a member, and does not know what it has said as one.
    pub(super) const fn has_lost_memory(&self) -> bool {
        matches!(&self.role, Role::Recovering(Recovering { learning: None, .. }))
    }

    /// It starts, with nothing.
    pub(super) fn boot_learner(&mut self) {
        self.view = View::of_epoch(self.config.configuration.id.epoch, 0);
        let timers = Timers::stopped().with(Timer::Rejoin, self.now.instant);
        let role = Recovering { learning: Some(Learning::default()), ..Recovering::default() };
        self.enter(Role::Recovering(role), timers);
    }

    /// It asks again for what it lacks, and for its place if it lacks nothing that it knows of.
    pub(super) fn on_learner_tick(&mut self) {
        let newest = self.newest_configuration().epoch;
        // Nobody answers questions about views of an earlier configuration.
        let is_left = |transfer: &mut Transfer| transfer.start.view.epoch() < newest;
        if let Some(transfer) = self.role.transfer_mut() {
            transfer.take_if(is_left);
        }
        let teacher = self.role.transfer().map(|transfer| transfer.from);
        if teacher.is_some() {
            self.request_transfer();
        }
        // Of the newest configuration that it knows: leaders of that one do not answer those who ask for views of an earlier one.
        let (view, commit) = (self.view.max(View::of_epoch(newest, 0)), self.commit);
        // Leaders answer. The one that it copies from may be dead, and another one lead by now.
        for other in self.others().filter(|other| Some(*other) != teacher) {
            self.send(Peer::Replica(other), Message::GetStartView { view, commit });
        }
        let fresh = self.freshness();
        let has_copied = self
            .learned()
            .is_some_and(|(learned, at)| learned <= self.applied && self.now.instant < at.after(fresh));
        // The group would need a disk of it that takes nothing.
        let has_disk = !self.resources.disk_failed && !self.resources.disk_is_short();
        if let Some(node) = self.config.node
            && ((has_copied && has_disk) || self.planted(PlantedBug::LearnerCounted))
        {
            self.broadcast(&Message::PlaceWanted { view, node, applied: self.applied });
        }
    }

    /// A leader has answered: what it says to be committed is to be copied.
    pub(super) fn learn_from(&mut self, leader: ReplicaId, start: StartView) {
        let view = start.view;
        let is_under_way = self.role.transfer().is_some_and(|transfer| transfer.start.view >= view);
        // If another node has got its place, it hears of that when it connects.
        let is_taken = self.configuration_of(view).has(self.config.replica);
        if leader != self.leader_of(view) || view < self.view || is_under_way || is_taken {
            return;
        }
        self.adopt_configuration_of(view);
        self.view = view;
        if let Some(transfer) = self.role.transfer_mut() {
            *transfer = Some(Transfer { from: leader, start: Box::new(start) });
        }
        self.try_install();
        if self.awaits_transfer() {
            self.request_transfer();
        }
    }

    /// For how long what is known of a learner holds.
    pub(super) fn freshness(&self) -> Duration {
        self.config.settings.resend * FRESH_RESENDS
    }

    /// The group has shrunk by it before it acted: its vote may be needed, and it has nothing to vote for but what it holds.
    pub(super) fn boot_departing(&mut self) {
        self.view = View::of_epoch(self.config.configuration.id.epoch, 0);
        self.begin_view_change(self.config.settings.view_change_timeout);
        self.persist_view();
    }

    /// True if the group has shrunk by this node.
    pub(super) fn was_member(&self) -> bool {
        let (me, before) = (self.config.replica, self.config.configuration.before);
        self.config.node.is_some_and(|node| before.is_some_and(|before| before.node(me) == Some(node)))
    }

    /// It has in its log what its leader had said to be committed.
    pub(super) fn on_learned(&mut self, through: OpNumber) {
        let at = self.now.instant;
        if let Role::Recovering(Recovering { learning: Some(learning), .. }) = &mut self.role {
            learning.learned = Some((through, at));
        }
    }

    /// It has taken over a snapshot.
    pub(super) fn count_learned_snapshot(&mut self) {
        if let Role::Recovering(Recovering { learning: Some(learning), .. }) = &mut self.role {
            learning.snapshots = learning.snapshots.saturating_add(1);
        }
    }

    /// A learner has taken over so many snapshots: with every one but the first it has begun anew, because the leader's log did not
    /// go back to the one before any more.
    #[must_use]
    pub const fn learned_snapshots(&self) -> u32 {
        match &self.role {
            Role::Recovering(Recovering { learning: Some(learning), .. }) => learning.snapshots,
            _ => 0,
        }
    }

    /// A learner is not connected any more: it would not hear that it has come in.
    pub(super) fn forget_newcomer(&mut self, member: ReplicaId) {
        if let Role::Leader(leader) = &mut self.role {
            for newcomer in &mut leader.newcomers {
                newcomer.take_if(|newcomer| newcomer.has_copied && newcomer.member == member);
            }
        }
    }

    /// Up to where it has had everything, and when.
    const fn learned(&self) -> Option<(OpNumber, Instant)> {
        match &self.role {
            Role::Recovering(Recovering { learning: Some(learning), .. }) => learning.learned,
            _ => None,
        }
    }

    /// True if it is no learner, or has had everything once that its leader had said to be committed: what the judge of a
    /// simulation looks at.
    #[cfg(feature = "planted-bugs")]
    #[must_use]
    pub fn has_learned(&self) -> bool {
        !self.is_learner() || self.learned().is_some()
    }

    /// It acts as a member if it knows of a configuration in which it is one. If the group has shrunk by it again before it heard
    /// that it was in, its vote may be needed as well.
    pub(super) fn become_member(&mut self) {
        if !self.is_learner() {
            return;
        }
        let Some(next) = self.next_configuration() else { return };
        if self.is_in(&next) {
            self.adopt_configuration_of(View::of_epoch(next.epoch, 0));
            self.boot_newcomer();
        } else if self.is_leaving_by(&next) {
            self.adopt_configuration_of(View::of_epoch(next.epoch, 0));
            self.boot_departing();
        }
    }

    /// A learner asks for its place, and has executed the log up to `applied`.
    pub(super) fn on_learner_wants_place(&mut self, from: ReplicaId, node: NodeId, applied: OpNumber) {
        // Whose place it is, is for another rule.
        if self.config.configuration.has(from) {
            return self.counters.refused += 1;
        }
        if self.lacks_few(applied) || self.planted(PlantedBug::LearnerCounted) {
            self.on_place_wanted(from, node, true);
        }
    }

    /// True if the log has all that is committed after this entry, and that is not much.
    fn lacks_few(&self, applied: OpNumber) -> bool {
        if applied < self.log.base() || self.commit.0.saturating_sub(applied.0) > LACKS_MAX {
            return false;
        }
        let mut left = self.config.settings.transfer_bytes_max.saturating_mul(LACKS_ANSWERS_MAX);
        let mut lacking =
            (applied.0 + 1..=self.commit.0).filter_map(|number| self.log.entry(OpNumber(number)));
        lacking.all(|entry| match left.checked_sub(entry.memory_bytes()) {
            Some(rest) => {
                left = rest;
                true
            }
            None => false,
        })
    }

    /// A learner has asked for what follows this entry, or for a part of the snapshot at it: what it has yet to fetch stays in the log,
    /// as it would for a client that copies the log.
    pub(super) fn note_learner(&mut self, from: ReplicaId, has: OpNumber) {
        if !self.config.configuration.has(from) {
            self.note_entry_copier(Peer::Replica(from), has);
        }
    }

    /// A node has asked for one of the two places by which the group would grow.
    pub(super) fn remember_newcomer(&mut self, newcomer: Newcomer) {
        let is_second = newcomer.member.index() != self.config.configuration.size();
        if let Role::Leader(leader) = &mut self.role {
            leader.newcomers[usize::from(is_second)] = Some(newcomer);
        }
    }
}

/// What learners say to members.
pub(super) const fn is_of_learner(message: &Message) -> bool {
    matches!(
        message,
        Message::GetStartView { .. }
            | Message::GetState { .. }
            | Message::GetSnapshot { .. }
            | Message::PlaceWanted { .. }
    )
}

/// What members say to learners.
pub(super) const fn teaches(message: &Message) -> bool {
    matches!(
        message,
        Message::StartView(_)
            | Message::NewState { .. }
            | Message::SnapshotOffer { .. }
            | Message::SnapshotPart { .. }
            | Message::Configuration(_)
    )
}
