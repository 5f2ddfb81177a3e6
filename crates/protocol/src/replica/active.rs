//! Active members: in a view of the mixed mode only they keep durability logs, and an update that is not an overwrite of
//! one key is complete when all of them have it. The message that starts a view names them, and nothing changes them
//! before the next view.
//!
//! A leader that has not heard an active member for several times as long as it would take to be suspected itself starts a
//! view that it leads again, without that member; and another one with it when it has caught up. A new leader leaves out
//! the leader before, if that is silent.

use super::role::{Progress, Role};
use super::{PlantedBug, Replica, ViewChangeCause};
use crate::message::ViewChangeReason;
use core::time::Duration;
use syros_types::{FastRule, Group, Instant, OpNumber, ReplicaId, ReplicaSet, View};

/// A member is left out after this many times as long as it takes to suspect a leader. Meanwhile what it lacks is ordered,
/// which takes two round trips; a view change takes more, and a disk or a link may stand still for a moment.
const ABSENT: u32 = 4;

/// A member that has been left out comes back when it has answered for this many times as long as it takes to suspect a
/// leader.
const RETURN: u32 = 4;

/// Each time that a member is left out soon after it came back, it answers twice as long before it comes back, but no more
/// often than this: two minutes, if a leader is suspected after half a second.
const DOUBLINGS_MAX: u32 = 6;

/// A member that was active for this many times as long as it took it to come back is taken for reliable again.
const RELIABLE: u32 = 8;

/// What this replica knows of which members should be active.
#[derive(Clone, Debug, Default)]
pub(super) struct ActiveMembers {
    /// Those of a view that this replica is about to begin for their sake.
    wanted: Option<(View, ReplicaSet)>,
    /// How often what each member answers for before it comes back has been doubled.
    doublings: [u32; Group::SIZE_MAX],
    /// When each member was last taken back.
    taken_back_at: [Option<Instant>; Group::SIZE_MAX],
    /// What was committed when the members were last reviewed: who has that has caught up.
    committed: OpNumber,
}

impl Replica {
    /// True if this replica keeps a durability log in its view.
    pub(super) fn is_active(&self) -> bool {
        self.rule.active.contains(self.config.replica)
    }

    /// The rule of its last normal view as messages and records tell it.
    pub(super) fn told_rule(&self) -> Option<FastRule> {
        self.config.configuration.told_rule(self.rule)
    }

    /// True if a right member may tell this rule of this view.
    pub(super) fn is_possible_rule(&self, told: Option<FastRule>, view: View) -> bool {
        told.is_none_or(|rule| self.config.configuration.is_possible_rule(rule, view))
    }

    /// New leader: the rule of the view that it begins with what these members have sent, which goes on from `newest`, a
    /// view with this rule.
    pub(super) fn next_rule(&mut self, rule: FastRule, newest: View, senders: ReplicaSet) -> FastRule {
        let wanted = self.active.wanted.take().filter(|(view, _)| *view == self.view);
        let configuration = &self.config.configuration;
        if !rule.mode.has_active_members() {
            return FastRule::of_all(rule.mode, configuration.group());
        }
        let me = self.config.replica;
        let leader_before = configuration.leader(newest);
        let is_wanting =
            self.later_views.is_wanting(leader_before, self.now.instant, self.config.settings.resend);
        let is_gone = !senders.contains(leader_before) && !is_wanting;
        let usual = rule.active.and(senders);
        let usual = if is_gone { usual.without(leader_before) } else { usual };
        // Who was wanted may be gone since; who has sent is there.
        let active = wanted.map_or(usual, |(_, wanted)| wanted.and(senders));
        FastRule { active: active.with(me), ..rule }
    }

    /// Leader: leaves out active members that it has not heard for long, and takes back those that have answered for long.
    /// Asked as often as it sends signs of life. Counted are reviews and not time: a leader that was stopped has to send
    /// first, and to read the answers.
    pub(super) fn review_active_members(&mut self) {
        let committed = core::mem::replace(&mut self.active.committed, self.commit);
        if !self.rule.mode.has_active_members() || self.planted(PlantedBug::AbsentStaysActive) {
            return;
        }
        if self.resources.disk_failed {
            // It sends no signs of life.
            return;
        }
        let heartbeat = self.config.settings.heartbeat.as_nanos().max(1);
        let reviews = |time: Duration| u32::try_from(time.as_nanos().div_ceil(heartbeat)).unwrap_or(u32::MAX);
        let suspect_after = reviews(self.config.settings.suspect_after);
        // What is on its way may take long to arrive, and answers wait behind it.
        let carrying = super::view_change::carrying_time(self.backlog.uncommitted_bytes) * 2;
        let absent_after = suspect_after.saturating_mul(ABSENT).saturating_add(reviews(carrying));
        let others = self.others();
        let rule = self.rule;
        let Role::Leader(leader) = &mut self.role else { return };
        let (mut left_out, mut taken_back) = (ReplicaSet::default(), ReplicaSet::default());
        // Those that have caught up, however short a time they have answered.
        let mut able = ReplicaSet::default();
        for other in others {
            let progress = &mut leader.progress[other.index()];
            progress.review(absent_after);
            let Progress { silent_reviews, reviews_present, op_number, .. } = *progress;
            if rule.active.contains(other) {
                if silent_reviews >= absent_after {
                    left_out = left_out.with(other);
                }
            } else if silent_reviews < suspect_after && reviews_present > 0 && op_number >= committed {
                able = able.with(other);
                if reviews_present
                    >= suspect_after.saturating_mul(RETURN << self.active.doublings[other.index()])
                {
                    taken_back = taken_back.with(other);
                }
            }
        }
        let majority = self.config.configuration.majority();
        if rule.active.except(left_out).and(taken_back).len() < majority {
            taken_back = able;
        }
        let active = rule.active.except(left_out).and(taken_back);
        // Without a majority there is no view to begin.
        if active != rule.active && active.len() >= majority {
            self.change_active_members(active, left_out, taken_back);
        }
    }

    fn change_active_members(&mut self, active: ReplicaSet, left_out: ReplicaSet, taken_back: ReplicaSet) {
        let now = self.now.instant;
        let unit = self.config.settings.suspect_after * RETURN;
        let known = &mut self.active;
        for member in left_out.iter().map(ReplicaId::index) {
            let doublings = known.doublings[member];
            let reliable = unit * (RELIABLE << doublings);
            let is_soon = known.taken_back_at[member].is_some_and(|at| now < at.after(reliable));
            known.doublings[member] = if is_soon { (doublings + 1).min(DOUBLINGS_MAX) } else { 0 };
        }
        for member in taken_back.iter() {
            known.taken_back_at[member.index()] = Some(now);
        }
        let view = self.next_view_of(self.config.replica, self.view.next());
        self.active.wanted = Some((view, active));
        let cause = ViewChangeCause::ActiveMembers { left_out, taken_back };
        self.move_to(view, ViewChangeReason::Abdication, cause);
    }
}

#[cfg(feature = "model")]
impl ActiveMembers {
    /// What a model checker sees. No model has the mixed mode yet.
    pub(super) fn fingerprint(&self, hasher: &mut impl core::hash::Hasher) {
        use core::hash::Hash;
        let Self { wanted, doublings, taken_back_at: _, committed: _ } = self;
        (wanted, doublings).hash(hasher);
    }
}
