//! Active members: in a view of the mixed mode only they keep durability logs, and an update that is not an overwrite of
//! one key is complete when all of them have it. The message that starts a view names them, and nothing changes them
//! before the next view.
//!
//! A leader that has not heard an active member for several times as long as it would take to be suspected itself, or has heard
//! it much later than others for as long, starts a view that it leads again, without that member; and another one with it when
//! it has caught up and is as fast as others. A new leader leaves out
//! the leader before, if that is silent.

use super::role::{Progress, Role};
use super::{PlantedBug, Replica, ViewChangeCause};
use crate::message::ViewChangeReason;
#[cfg(feature = "model")]
use crate::{fingerprint::Clock, replica::Config};
use alloc::vec::Vec;
#[cfg(feature = "model")]
use core::hash::{Hash, Hasher};
use core::time::Duration;
#[cfg(feature = "model")]
use syros_types::Now;
use syros_types::{FastQuorum, FastRule, Group, Instant, OpNumber, ReplicaId, ReplicaSet, View};

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

/// A member is slow if its answers take longer than those of the ones before it by more than the leader takes to have something
/// committed, and this: clocks of that grain and threads that wait for a core are no reason for a view change.
const SLOW_BY: Duration = Duration::from_millis(2);

/// How long a member is active before it is taken for reliable again.
fn reliable_after(suspect_after: Duration, doublings: u32) -> Duration {
    suspect_after * RETURN * (RELIABLE << doublings)
}

/// What this replica knows of which members should be active.
#[derive(Clone, Debug, Default)]
pub(super) struct ActiveMembers {
    /// The rule of a view that this replica is about to begin for its sake.
    wanted: Option<(View, FastRule)>,
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
        let Some(rule) = told else { return true };
        if self.configuration_of(view).is_possible_rule(rule, view) {
            return true;
        }
        // Of an earlier configuration this replica may not know the size any more. Nothing goes on from its views then.
        let configuration = &self.config.configuration;
        let of_size = |size| {
            Group::new(size).is_ok_and(|group| {
                configuration.mode.may_become(rule.mode) && rule.is_possible(group, group.leader(view))
            })
        };
        view.epoch() < configuration.id.epoch && (1..=Group::SIZE_MAX).any(of_size)
    }

    /// New leader: the rule of the view that it begins with what these members have sent, which goes on from `newest`, a
    /// view with this rule.
    pub(super) fn next_rule(&mut self, rule: FastRule, newest: View, senders: ReplicaSet) -> FastRule {
        let wanted =
            self.active.wanted.take().filter(|(view, _)| *view == self.view).map(|(_, wanted)| wanted);
        let configuration = &self.config.configuration;
        let mode = wanted.map_or(rule.mode, |wanted| wanted.mode);
        if !mode.has_active_members() {
            return FastRule::of_all(mode, configuration.group());
        }
        let me = self.config.replica;
        let leader_before = configuration.of_epoch(newest.epoch()).leader(newest);
        let is_wanting =
            self.later_views.is_wanting(leader_before, self.now.instant, self.config.settings.resend);
        let is_gone = !senders.contains(leader_before) && !is_wanting;
        let usual = rule.active.and(senders);
        let usual = if is_gone { usual.without(leader_before) } else { usual };
        // Who was wanted may be gone since; who has sent is there.
        let active = wanted.map_or(usual, |wanted| wanted.active.and(senders)).with(me);
        // Those that the group has shrunk by have been active.
        FastRule { mode, active: active.within(ReplicaSet::of(configuration.group())) }
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
        let absent_after =
            suspect_after.saturating_mul(ABSENT).saturating_add(reviews(self.carrying_of_log()));
        let others = self.others();
        let rule = self.rule;
        let faults = self.config.configuration.faults();
        let keeps_slow = self.planted(PlantedBug::SlowStaysActive);
        let Role::Leader(leader) = &mut self.role else { return };
        let (mut silent, mut late) = (ReplicaSet::default(), ReplicaSet::default());
        let mut taken_back = ReplicaSet::default();
        // Those that have caught up, however short a time they have answered.
        let mut able = ReplicaSet::default();
        for other in others.clone() {
            leader.progress[other.index()].review(absent_after);
        }
        // One that is silent is no measure for those that answer.
        let answering =
            others.clone().filter(|other| leader.progress[other.index()].silent_reviews < suspect_after);
        let slow = slow_members(&leader.progress, answering, rule.active, faults);
        for other in others {
            let progress = &mut leader.progress[other.index()];
            progress.judge(slow.contains(other) && !keeps_slow, suspect_after);
            let Progress { silent_reviews, reviews_present, slow_reviews, prompt_reviews, op_number, .. } =
                *progress;
            if rule.active.contains(other) {
                if silent_reviews >= absent_after {
                    silent = silent.with(other);
                } else if slow_reviews >= absent_after {
                    late = late.with(other);
                }
            } else if silent_reviews < suspect_after && reviews_present > 0 && op_number >= committed {
                able = able.with(other);
                if reviews_present.min(prompt_reviews)
                    >= suspect_after.saturating_mul(RETURN << self.active.doublings[other.index()])
                {
                    taken_back = taken_back.with(other);
                }
            }
        }
        let majority = self.config.configuration.majority();
        let is_enough = |left_out: ReplicaSet, taken_back: ReplicaSet| {
            rule.active.except(left_out).and(taken_back).len() >= majority
        };
        // A slow member is better than one that comes and goes: nobody is taken back early for its sake.
        let left_out = if is_enough(silent.and(late), taken_back) { silent.and(late) } else { silent };
        if !is_enough(left_out, taken_back) {
            taken_back = able;
        }
        let active = rule.active.except(left_out).and(taken_back);
        // Without a majority there is no view to begin.
        if active != rule.active && active.len() >= majority {
            self.change_active_members(active, left_out, taken_back);
        }
    }

    fn change_active_members(&mut self, active: ReplicaSet, left_out: ReplicaSet, taken_back: ReplicaSet) {
        if self.planted(PlantedBug::ActiveWithinView) {
            self.rule.active = active;
            return;
        }
        let now = self.now.instant;
        let suspect_after = self.config.settings.suspect_after;
        let known = &mut self.active;
        for member in left_out.iter().map(ReplicaId::index) {
            let doublings = known.doublings[member];
            let reliable_after = reliable_after(suspect_after, doublings);
            let is_soon = known.taken_back_at[member].is_some_and(|at| now < at.after(reliable_after));
            known.doublings[member] =
                if is_soon { (doublings + 1).min(DOUBLINGS_MAX) } else { doublings.saturating_sub(1) };
        }
        for member in taken_back.iter() {
            known.taken_back_at[member.index()] = Some(now);
        }
        let rule = FastRule { active, ..self.rule };
        self.change_rule(rule, ViewChangeCause::ActiveMembers { left_out, taken_back });
    }

    /// Leader: begins a view that it leads again, with this rule.
    fn change_rule(&mut self, rule: FastRule, cause: ViewChangeCause) {
        let view = self.next_view_of(self.config.replica, self.view.next());
        self.active.wanted = Some((view, rule));
        self.move_to(view, ViewChangeReason::Abdication, cause);
    }

    /// Somebody wants the group to go by this mode. Only a leader does anything.
    pub(super) fn on_change_mode(&mut self, mode: FastQuorum) {
        let is_possible = self.config.configuration.mode.may_become(mode);
        if self.is_leader() && is_possible && mode != self.rule.mode {
            let rule = FastRule::of_all(mode, self.config.configuration.group());
            self.change_rule(rule, ViewChangeCause::Mode(mode));
        }
    }
}

/// Those of `others` that answer so much later than the ones before them that whoever waits for them waits longer than for
/// the leader, which needs the first `faults` only. Members that are not active must be clearly faster before they count as
/// prompt again.
fn slow_members(
    progress: &[Progress],
    others: impl Iterator<Item = ReplicaId>,
    active: ReplicaSet,
    faults: usize,
) -> ReplicaSet {
    let mut times: Vec<(u64, ReplicaId)> = others
        .map(|other| (progress[other.index()].answer_time, other))
        // Of one that has answered nothing the time is not known.
        .filter(|(time, _)| *time > 0)
        .collect();
    times.sort_unstable();
    let Some((ordered, _)) = faults.checked_sub(1).and_then(|last| times.get(last).copied()) else {
        return ReplicaSet::default();
    };
    let longer = ordered.saturating_add(SLOW_BY.as_nanos() as u64);
    let mut slow = ReplicaSet::default();
    let mut last_prompt = ordered;
    for (time, member) in times.into_iter().skip(faults) {
        let by = if active.contains(member) { longer } else { longer / 2 };
        if time > last_prompt.saturating_add(by) {
            slow = slow.with(member);
        } else {
            last_prompt = last_prompt.max(time);
        }
    }
    slow
}

#[cfg(feature = "model")]
impl Replica {
    /// Leader: wants these members to be active, whatever it has heard of them and for how long: a model tries more than
    /// reviews would come to.
    pub fn want_active_members(&mut self, now: Now, active: ReplicaSet) {
        self.now = Now { instant: self.now.instant.max(now.instant), wall: now.wall };
        let before = self.rule.active;
        self.change_active_members(active, before.except(active), active.except(before));
        self.check_invariants();
    }
}

#[cfg(feature = "model")]
impl ActiveMembers {
    /// What a model checker sees. `mode` is that of the view.
    pub(super) fn fingerprint(
        &self,
        mode: FastQuorum,
        config: &Config,
        clock: Clock,
        hasher: &mut impl Hasher,
    ) {
        let Self { wanted, doublings, taken_back_at, committed } = self;
        (wanted, doublings).hash(hasher);
        if !mode.has_active_members() {
            return;
        }
        committed.hash(hasher);
        for (at, doublings) in taken_back_at.iter().zip(doublings) {
            at.is_some().hash(hasher);
            if let Some(at) = at {
                clock.past(*at, reliable_after(config.settings.suspect_after, *doublings), hasher);
            }
        }
    }
}
