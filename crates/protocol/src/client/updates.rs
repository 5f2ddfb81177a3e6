//! Updates: which way they go, and when they are done.
//!
//! - *fast*: to every replica; done when the fast quorum has them (Skyros 4.2);
//! - *thrifty*: the same, to no more replicas than make the fast quorum (as in EPaxos, SOSP '13, 6.2); to the others as
//!   well when one of these does not answer soon;
//! - *leader*: to the leader, which orders them at once; done when they are committed. Where a quorum of the
//!   durability logs is farther than the leader and a majority near it, this is faster (Skyros 6).
//!
//! Which is faster is measured: where the leader alone would answer clearly sooner than the fast quorum does,
//! some updates go both ways, and tell. What it costs the replicas a client does not see: the leader says when cores are
//! what all wait for, and an update then goes to it alone ([`Advice`]).

use super::clocks::WAY_MAX;
use super::session::{Active, Session};
use super::way_times::{TimesOfWay, Way};
use super::{Action, Client, Distance, NEAR, Outcome, Token, patience, smooth};
use crate::message::{Advice, Advised, Body, Message, Path, Refusal, Request};
use crate::replica::PlantedBug;
use alloc::vec::Vec;
use core::time::Duration;
use syros_types::{
    Class, FastQuorum, FastRule, Footprint, Group, Instant, OperationId, ReplicaId, ReplicaSet, SessionId,
    Strength, View, WritePolicy,
};

/// A leader that goes on asking for updates by itself says so again within this time: it tries the other way more often. Its
/// last word may have been lost, where a client was slow to read.
pub(super) const ADVICE_LASTS: Duration = Duration::from_secs(240);

/// No member is farther away than this, in nanoseconds, there and back: what took longer was held up.
const TRIP_MAX: u64 = 2 * WAY_MAX * 1_000;

/// How long an update waits for another leader when the disk of this one has failed: view changes take a
/// fraction of it, and if there is none by then, there is a reason that the user should hear of.
const LEADER_CHANGE: Duration = Duration::from_secs(3);

#[derive(Clone, Debug)]
pub(super) struct Update {
    pub(super) token: Token,
    pub(super) body: Body,
    /// May use the durability logs in a mode that the group may have.
    pub(super) fast: bool,
    /// What makes its fast quorum.
    pub(super) strength: Strength,
    pub(super) invoked: Instant,
    pub(super) sent: Instant,
    /// Timestamp it carries in the current view; a resend within the view must not change it,
    /// because another replica may hold it already.
    pub(super) micros: u64,
    /// What it acknowledges in the current view. Replicas take their own copies for the same: if one
    /// that was sent later acknowledged more, whoever executed that one would take updates for dealt
    /// with that are only in the durability logs yet.
    pub(super) acked_below: u64,
    pub(super) path: Path,
    /// Was sent at least once: it may have been executed.
    pub(super) attempts: u32,
    /// Was sent to followers: one of them may hand it to the leader later.
    pub(super) shared: bool,
    /// To whom it was sent in the current view, if it may be fast.
    pub(super) recipients: ReplicaSet,
    pub(super) oks: ReplicaSet,
    /// Only the leader can say what it returns.
    pub(super) returns: bool,
    /// What the leader of the current view says it returns, once the fast quorum has it.
    pub(super) evaluated: Option<Body>,
    /// Those that will not answer `Ok` in this view.
    pub(super) refusals: ReplicaSet,
    /// Everybody that it was sent to in the current view.
    pub(super) asked: ReplicaSet,
    /// It was sent in an earlier view, too.
    pub(super) is_older: bool,
    /// Those that have refused it for want of room, and take no copy of it in this view while their process lives.
    pub(super) without_room: ReplicaSet,
    /// What the leader among them lacks, or else the first that said so.
    pub(super) lacks: Refusal,
    /// Was sent in the current view to a follower who had been sent it, because an answer may have been lost or a
    /// connection was: a process that was started since knows of no refusal, and may have taken it. (A leader that was
    /// started again has left its view.)
    pub(super) is_resent: bool,
    /// The leader has no room for it: it is sent again a little later, the way it went.
    pub(super) crowded_out: bool,
    /// The way it was sent in the current view.
    pub(super) way: UpdatePath,
    /// When it was sent that way.
    pub(super) began: Instant,
}

impl Update {
    /// True if it may use the durability logs in views of this mode.
    const fn may_be_fast(&self, mode: FastQuorum) -> bool {
        self.fast && (!matches!(mode, FastQuorum::Majority) || matches!(self.strength, Strength::Overwrite))
    }
}

/// The way an update goes at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum UpdatePath {
    /// To all replicas.
    Fast,
    /// To the leader alone.
    Leader,
    /// To all replicas, and the leader orders it at once: whichever is done first.
    Both,
}

/// Updates in a row that a thrifty client sends to the same replicas: what one log syncs together, the other need not
/// sync at all. Sessions begin with different ones.
pub(super) const TURN_UPDATES: u64 = 1024;

/// How updates were answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct WriteCounts {
    /// By the fast quorum, in one round trip.
    pub fast: u64,
    /// By the leader, which was asked at once: they cannot be fast, or the leader was faster.
    pub leader: u64,
    /// By the leader, because the fast quorum was not to be had.
    pub ordered: u64,
}

impl WriteCounts {
    /// Each with its name.
    #[must_use]
    pub const fn named(self) -> [(&'static str, u64); 3] {
        let Self { fast, leader, ordered } = self;
        [("fast", fast), ("leader", leader), ("ordered", ordered)]
    }
}

/// What a client knows of how long updates take, in nanoseconds; 0 for what is not known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct WriteTimes {
    /// Smoothed time to an `Ok` of each replica.
    pub(super) oks: [u64; Group::SIZE_MAX],
    /// How far each is, as its answers to updates tell.
    pub(super) distances: [Distance; Group::SIZE_MAX],
    /// Smoothed time until the leader has an update committed that it is to order at once.
    pub(super) ordered: u64,
    /// The least that the leader has taken of late to have one committed that it is to order at once.
    pub(super) ordered_distance: Distance,
    /// How long the fast quorum took when the leader last asked for updates by itself; 0 if that was not known.
    pub(super) fast_when_advised: u64,
    /// From then on it is known what comes of following the leader's advice; never, if it has not asked yet. The first
    /// updates wait behind what was on its way.
    pub(super) followed_at: Instant,
    /// Smoothed time from sending an update to its end.
    pub(super) latency: u64,
}

impl WriteTimes {
    pub(super) const fn new() -> Self {
        Self {
            oks: [0; Group::SIZE_MAX],
            distances: [Distance::UNKNOWN; Group::SIZE_MAX],
            ordered: 0,
            ordered_distance: Distance::UNKNOWN,
            fast_when_advised: 0,
            followed_at: Instant::NEVER,
            latency: 0,
        }
    }

    /// The longest of what usually takes some time.
    #[cfg(feature = "model")]
    pub(super) fn slowest(&self) -> u64 {
        self.oks.iter().max().copied().unwrap_or_default().max(self.ordered)
    }

    fn on_ok(&mut self, replica: ReplicaId, took: u64, now: Instant) {
        self.distances[replica.index()].on_answer(took, now);
        let old = self.oks[replica.index()];
        self.oks[replica.index()] = smooth(old, took.max(1));
    }

    /// What is known of a leader does not hold for the next.
    pub(super) const fn forget_leader(&mut self) {
        self.ordered = 0;
        self.ordered_distance = Distance::UNKNOWN;
        self.followed_at = Instant::NEVER;
    }

    /// The leader asks for updates by itself, and the fast quorum takes so long just now.
    fn on_asked(&mut self, fast: u64, now: Instant) {
        // Times of it that an update waits for at most, until those before it are done.
        const FIRST: u64 = 8;
        self.fast_when_advised = fast;
        if self.followed_at == Instant::NEVER {
            let first = (fast + NEAR).saturating_mul(FIRST);
            self.followed_at = now.after(Duration::from_nanos(first));
            self.ordered_distance = Distance::UNKNOWN;
        }
    }

    /// An update that the leader was to order at once has ended.
    fn on_ordered(&mut self, took: u64, is_leader: bool, now: Instant) {
        // Where distance is all there is, a follower answers after one and a half round trips, and the leader after two.
        let by_leader = if is_leader { took } else { took + took / 3 };
        self.ordered_distance.on_answer(by_leader, now);
        self.ordered = smooth(self.ordered, took.max(1));
    }

    /// True if this client does as the leader asks. Who does not know how long the fast quorum takes finds out first. It does not if the leader is known to take clearly longer than the fast quorum took when all waited for
    /// cores: what this client waits for is distance, then.
    fn follows_advice(
        &mut self,
        (quorum, leader, usable): (usize, ReplicaId, ReplicaSet),
        now: Instant,
    ) -> bool {
        if self.fast_when_advised == 0 {
            let Some(fast) = self.fast(quorum, leader, usable) else { return false };
            self.on_asked(fast, now);
        }
        let fast = self.fast_when_advised;
        // Where distance is all there is, it is two round trips and not one.
        let is_far = self.ordered_distance.shortest > fast + fast / 2 + NEAR;
        now < self.followed_at || !is_far
    }

    /// The leader and so many of `usable` followers as make the fast quorum: the nearest ones, and those that are about
    /// equally near by turns of [`TURN_UPDATES`]. `None` if not so many have been heard of.
    fn fewest(
        &self,
        quorum: usize,
        leader: ReplicaId,
        (session, sequence): (SessionId, u64),
        usable: ReplicaSet,
    ) -> Option<ReplicaSet> {
        let heard = |follower: ReplicaId| self.oks[follower.index()] > 0;
        let followers = || usable.without(leader).iter().filter(|follower| heard(*follower));
        let mut chosen = ReplicaSet::default().with(leader);
        let mut times = [u64::MAX; Group::SIZE_MAX];
        for (place, follower) in times.iter_mut().zip(followers()) {
            *place = self.oks[follower.index()];
        }
        times.sort_unstable();
        let Some(wanted) = quorum.checked_sub(2) else { return Some(chosen) };
        let farthest = times[wanted];
        if farthest == u64::MAX {
            return None;
        }
        let near: ReplicaSet = followers()
            .filter(|follower| self.oks[follower.index()] <= farthest.saturating_add(farthest / 4 + NEAR))
            .collect();
        let turn = (session.0 + sequence / TURN_UPDATES) as usize;
        let first = turn % near.len();
        chosen = near.iter().cycle().skip(first).take(quorum - 1).fold(chosen, ReplicaSet::with);
        Some(chosen)
    }

    /// When the fast quorum is likely to have answered: its farthest member, or the leader.
    fn fast(&self, quorum: usize, leader: ReplicaId, usable: ReplicaSet) -> Option<u64> {
        let mut known = [u64::MAX; Group::SIZE_MAX];
        for (index, took) in self.oks.iter().enumerate() {
            if *took > 0 && usable.contains(ReplicaId(index as u8)) {
                known[index] = *took;
            }
        }
        let by_leader = known[leader.index()];
        known.sort_unstable();
        Some(known[quorum - 1].max(by_leader)).filter(|took| *took < u64::MAX)
    }
}

impl Client {
    pub(super) fn new_update(&self, token: Token, body: Body, class: Class, footprint: &Footprint) -> Update {
        let now = self.now.instant;
        let mode = self.config.configuration.mode;
        // The mode may change before the update is sent, or sent again.
        let most = if mode.is_changeable() { FastQuorum::Mixed } else { mode };
        let fast = most.admission(class, footprint).is_some();
        Update {
            token,
            body,
            fast,
            strength: Strength::of(class, footprint),
            invoked: now,
            sent: now,
            micros: 0,
            acked_below: 0,
            path: Path::Ordered,
            attempts: 0,
            shared: false,
            recipients: ReplicaSet(0),
            oks: ReplicaSet(0),
            returns: !class.is_nilext(),
            evaluated: None,
            refusals: ReplicaSet(0),
            asked: ReplicaSet(0),
            is_older: false,
            without_room: ReplicaSet(0),
            lacks: Refusal::OutOfMemory,
            is_resent: false,
            crowded_out: false,
            way: UpdatePath::Leader,
            began: now,
        }
    }

    /// How long operations took from their submission to their answer, of each way in which some were answered.
    #[must_use]
    pub fn way_times(&self) -> Vec<TimesOfWay> {
        self.way_times.told()
    }

    /// How updates were answered so far.
    #[must_use]
    pub const fn write_counts(&self) -> WriteCounts {
        self.write_counts
    }

    /// What completes updates of this strength, as far as is known: so many of these members, the leader among them.
    fn fast_quorum(&self, strength: Strength) -> (usize, ReplicaSet) {
        (self.rule.fast_quorum(self.config.configuration.group(), strength), self.rule.active)
    }

    /// The least that may complete updates of this strength. Before the leader has said who is active in its view, those out
    /// of reach may not be; it says so with its first `Ok`.
    fn least_fast_quorum(&self, strength: Strength) -> (usize, ReplicaSet) {
        let (quorum, active) = self.fast_quorum(strength);
        let may_be_fewer = self.rule.mode.has_active_members() && !self.rule_is_told;
        (if may_be_fewer { self.config.configuration.majority() } else { quorum }, active)
    }

    /// The leader has said by what its view counts. (A fast quorum needs its word in any case; one that another member tells,
    /// whose memory may be damaged, must not complete anything.)
    pub(super) fn on_rule(&mut self, told: Option<FastRule>) {
        let configuration = &self.config.configuration;
        let rule = configuration.known_rule(told);
        if (self.rule_is_told && self.rule == rule) || !configuration.is_possible_rule(rule, self.view) {
            return;
        }
        let is_news = !core::mem::replace(&mut self.rule_is_told, true);
        let is_known =
            self.planted(PlantedBug::ActiveOfOtherView) && self.rule.active.except(rule.active).is_empty();
        if is_known || (self.rule == rule && !is_news) {
            return;
        }
        let is_other = core::mem::replace(&mut self.rule, rule) != rule;
        // Others may be active than those that updates were sent to, or fewer be wanted than were waited for, or more than
        // can be reached.
        self.for_each_update(|client, sequence| {
            if is_other {
                client.widen(sequence);
            }
            client.finish_if_fast(sequence);
            client.order_if_impossible(sequence);
        });
    }

    /// Has the leader order an update that the fast quorum cannot get any more. True if it cannot.
    fn order_if_impossible(&mut self, sequence: u64) -> bool {
        let leader = self.leader();
        let usable = self.usable();
        let absent_awaited = self.planted(PlantedBug::AbsentAwaited);
        let Some(update) = self.updates.get(sequence) else { return false };
        let (quorum, everybody) = self.least_fast_quorum(update.strength);
        // A replica that is not connected will not answer, either, and one that has been silent is not waited for again.
        let reachable = if absent_awaited { everybody } else { update.oks.and(usable).within(everybody) };
        let possible = reachable.except(update.refusals);
        let is_admitted = update.may_be_fast(self.rule.mode);
        let impossible = !is_admitted || possible.len() < quorum || update.refusals.contains(leader);
        if impossible && update.path == Path::Durability {
            self.order(sequence);
        }
        impossible
    }

    /// Which way an update goes that may be fast.
    fn choose_way(&mut self, sequence: u64, strength: Strength) -> UpdatePath {
        let leader = self.leader();
        match self.config.settings.write_policy {
            WritePolicy::Fast | WritePolicy::Thrifty => return UpdatePath::Fast,
            WritePolicy::Leader => return UpdatePath::Leader,
            WritePolicy::Auto => {}
        }
        let now = self.now.instant;
        let (quorum, active) = self.fast_quorum(strength);
        let usable = self.usable().within(active);
        let is_advised = self.is_advised(Advised::Updates);
        let times = &mut self.write_times;
        let Session::Active(session) = &mut self.session else { return UpdatePath::Fast };
        if is_advised && times.follows_advice((quorum, leader, usable), now) {
            return UpdatePath::Leader;
        }
        let is_due = session.comparison_is_due(now);
        let Some(fast) = times.fast(quorum, leader, usable) else {
            if is_due {
                session.followed = Some((sequence, now));
            }
            return UpdatePath::Fast;
        };
        // The leader alone is the least that the other way takes.
        let least = times.oks[leader.index()];
        if fast <= least + least / 4 + NEAR {
            return UpdatePath::Fast;
        }
        if is_due || times.ordered == 0 {
            session.followed = Some((sequence, now));
            return UpdatePath::Both;
        }
        if times.ordered + times.ordered / 8 < fast { UpdatePath::Leader } else { UpdatePath::Fast }
    }

    /// The leader says how updates, or reads, had better come.
    pub(super) fn on_advice(&mut self, of: Advised, advice: Advice) {
        let until = (advice == Advice::Leader).then(|| self.now.instant.after(ADVICE_LASTS));
        let before = core::mem::replace(&mut self.advised[of as usize], until);
        if of == Advised::Updates && before.is_none() && until.is_some() {
            // How long the fast quorum takes just now is seen when the next update is sent.
            self.write_times.fast_when_advised = 0;
        }
    }

    /// True if the leader wants these to itself alone, as far as this client knows.
    pub(super) fn is_advised(&self, of: Advised) -> bool {
        self.advised[of as usize].is_some_and(|until| self.now.instant < until)
    }

    /// To whom an update goes that may be fast.
    fn choose_recipients(&mut self, sequence: u64, way: UpdatePath, strength: Strength) -> ReplicaSet {
        let (quorum, everybody) = self.fast_quorum(strength);
        if self.config.settings.write_policy != WritePolicy::Thrifty || way != UpdatePath::Fast {
            return everybody;
        }
        let now = self.now.instant;
        let (leader, usable) = (self.leader(), self.usable().within(everybody));
        let Session::Active(session) = &mut self.session else { return everybody };
        if session.comparison_is_due(now) {
            session.followed = Some((sequence, now));
            return everybody;
        }
        self.write_times.fewest(quorum, leader, (session.id, sequence), usable).unwrap_or(everybody)
    }

    /// Sends an update to those, too, that it was not sent to for thrift.
    pub(super) fn widen(&mut self, sequence: u64) {
        let Some(session) = self.session.id() else { return };
        let everybody = self.rule.active;
        let Some(update) = self.updates.get_mut(sequence) else { return };
        let others = everybody.except(update.recipients);
        if update.path != Path::Durability || others.is_empty() {
            return;
        }
        update.recipients = everybody;
        for other in others.iter() {
            self.transmit(session, sequence, Some(other));
        }
    }

    pub(super) fn on_ok(&mut self, from: ReplicaId, view: View, rule: Option<FastRule>, sequence: u64) {
        // Only answers of one view make a quorum.
        if view != self.view && !self.planted(PlantedBug::AcksOfOtherViewsCounted) {
            return;
        }
        if from == self.leader() {
            self.on_rule(rule);
        }
        let now = self.now.instant;
        let Some(update) = self.updates.get_mut(sequence) else {
            if let Session::Active(Active { followed: Some((followed, began)), .. }) = self.session
                && followed == sequence
            {
                self.write_times.on_ok(from, now.since(began).as_nanos() as u64, now);
            }
            return;
        };
        update.oks = update.oks.with(from);
        // If it was sent again this may be too much, and never too little.
        self.write_times.on_ok(from, now.since(update.began).as_nanos() as u64, now);
        let lacks_room = !update.without_room.is_empty();
        self.finish_if_fast(sequence);
        self.look_for_stragglers_in_time(sequence);
        if lacks_room {
            self.end_without_room(sequence);
        }
    }

    /// How long those are waited for that an update lacks which a majority has: one member that is silent must not keep what
    /// the others can commit for as long as it takes to be given up. `None` if that is not known.
    pub(super) fn straggler_patience(&self, strength: Strength) -> Option<Duration> {
        if !self.rule.mode.has_active_members() || strength == Strength::Overwrite {
            return None;
        }
        let (quorum, active) = self.fast_quorum(strength);
        let (leader, majority) = (self.leader(), self.config.configuration.majority());
        let fast = self.write_times.fast(quorum, leader, active)?;
        // One member that was cut off for a while has answered late, and its average remembers that for long.
        let usual = self.write_times.fast(majority, leader, active)?;
        let farthest = active.iter().map(|member| self.distance(member).min(TRIP_MAX)).max()?;
        let longest = farthest.max(usual.saturating_mul(2));
        let longest = Duration::from_nanos(longest.saturating_mul(2)).max(self.config.settings.sync_after);
        Some(Duration::from_nanos(fast.saturating_mul(2).saturating_add(NEAR)).min(longest))
    }

    /// True if a majority has an update, the leader among them, so that the leader can commit it.
    fn is_with_majority(&self, update: &Update) -> bool {
        let oks = update.oks.within(self.rule.active);
        oks.contains(self.leader()) && oks.len() >= self.config.configuration.majority()
    }

    /// Looks after an update that a majority has when those that it lacks should have answered.
    fn look_for_stragglers_in_time(&mut self, sequence: u64) {
        let Some(update) = self.updates.get(sequence) else { return };
        if update.path == Path::Durability
            && self.is_with_majority(update)
            && let Some(patience) = self.straggler_patience(update.strength)
        {
            self.scan_at = self.scan_at.min(update.began.after(patience).max(self.now.instant));
        }
    }

    /// The leader has said what an update returns.
    pub(super) fn on_evaluated(&mut self, view: View, sequence: u64, reply: Body) {
        if view == self.view
            && let Some(update) = self.updates.get_mut(sequence)
        {
            update.evaluated = Some(reply);
            self.finish_if_fast(sequence);
        }
    }

    /// Ends an update that the fast quorum has, with what it returns.
    fn finish_if_fast(&mut self, sequence: u64) {
        let leader = self.leader();
        let Some(strength) = self.updates.get(sequence).map(|update| update.strength) else { return };
        let (quorum, active) = self.fast_quorum(strength);
        let is_one_less = self.planted(PlantedBug::StrongWithOneLess) && strength == Strength::Strong;
        let quorum = quorum - usize::from(is_one_less && self.rule.mode.has_active_members());
        let active = if self.planted(PlantedBug::PassiveAccepts) { ReplicaSet::ALL } else { active };
        let leaderless = self.planted(PlantedBug::FastQuorumWithoutLeader);
        let majority =
            self.planted(PlantedBug::EvaluationIsEnough).then(|| self.config.configuration.majority());
        let now = self.now.instant;
        let Some(update) = self.updates.get_mut(sequence) else { return };
        let quorum = majority.filter(|_| update.returns).unwrap_or(quorum);
        let oks = update.oks.within(active);
        let has_quorum = oks.len() >= quorum && (oks.contains(leader) || leaderless);
        if !update.may_be_fast(self.rule.mode)
            || !has_quorum
            || (update.returns && update.evaluated.is_none())
        {
            return;
        }
        self.write_counts.fast += 1;
        self.way_times.record(Way::WriteByQuorum, now.since(update.invoked));
        if update.way == UpdatePath::Both {
            // The leader would have taken at least as long.
            let took = now.since(update.began).as_nanos() as u64;
            self.write_times.ordered = self.write_times.ordered.max(took);
        }
        let reply = update.evaluated.take().filter(|reply| !reply.is_empty());
        let outcome = reply.map_or(Outcome::Done, Outcome::Reply);
        self.end_update(sequence, outcome, Some(Way::WriteByQuorum));
    }

    /// An update that the leader has ordered is executed, there or at a follower.
    pub(super) fn on_committed(&mut self, from: ReplicaId, sequence: u64, reply: Body) {
        let (now, is_leader) = (self.now.instant, from == self.leader());
        let Some(update) = self.updates.get_mut(sequence) else {
            return self.on_later_answer(from, sequence);
        };
        let took = now.since(update.began).as_nanos() as u64;
        if is_leader {
            self.write_times.distances[from.index()].on_answer(took, now);
        }
        let way = match update.way {
            UpdatePath::Fast => {
                self.write_counts.ordered += 1;
                Way::WriteReferred
            }
            UpdatePath::Leader | UpdatePath::Both => {
                self.write_counts.leader += 1;
                self.write_times.on_ordered(took, is_leader, now);
                Way::WriteByLeader
            }
        };
        self.way_times.record(way, now.since(update.invoked));
        let outcome = if reply.is_empty() { Outcome::Done } else { Outcome::Reply(reply) };
        self.end_update(sequence, outcome, Some(way));
        self.on_first_answer(from, sequence, took);
    }

    /// `from` will not answer `Ok`: when that makes the fast quorum impossible, the leader orders.
    pub(super) fn on_no_ok(&mut self, from: ReplicaId, sequence: u64) {
        let leader = self.leader();
        let Some(update) = self.updates.get_mut(sequence) else { return };
        update.refusals = update.refusals.with(from);
        if update.without_room.contains(leader) {
            // Not even the leader takes it.
            return self.end_without_room(sequence);
        }
        if !self.order_if_impossible(sequence) {
            self.widen(sequence);
        }
    }

    pub(super) fn on_refused(&mut self, from: ReplicaId, view: View, id: OperationId, refusal: Refusal) {
        let registering = matches!(self.session, Session::Registering { nonce, .. } if nonce == id.sequence);
        if registering && id.session == SessionId(0) {
            return self.abandon_unsent(refusal);
        }
        if view != self.view {
            return;
        }
        let Some(sequence) = self.own(id) else { return };
        let leader = self.leader();
        let Some(update) = self.updates.get_mut(sequence) else { return };
        // Sent once, to the leader alone, and refused there for good: it is nowhere. A leader without room in
        // its durability log refuses only what it has just received, and may take a copy that the network
        // has made of it.
        let for_good = update.path == Path::Ordered || refusal == Refusal::DiskFailed;
        let nowhere = update.attempts == 1 && !update.shared && from == leader && for_good;
        let waited = self.now.instant.since(update.invoked);
        let leader_may_change = self.config.configuration.faults() > 0 && waited < LEADER_CHANGE;
        match refusal {
            // A duplicate of something answered long ago.
            Refusal::Stale => {}
            // The leader has executed it, and knows no more what it returned. What the same leader said that it would
            // return when it accepted it is what it has returned.
            Refusal::ReplyDropped => match update.evaluated.take() {
                Some(reply) => self.on_committed(from, sequence, reply),
                None => self.finish_update(sequence, Outcome::Unknown),
            },
            // Every replica says so of these bytes.
            Refusal::Malformed => self.finish_update(sequence, Outcome::Refused(refusal)),
            Refusal::ClockSkew | Refusal::NotNormal => self.on_no_ok(from, sequence),
            // It takes no copy in this view, not even when it has been started again: it keeps the rule of the view, or what
            // it does not keep it may not come back to.
            Refusal::NotActive => {
                update.asked = update.asked.without(from);
                self.on_no_ok(from, sequence);
            }
            // What was to show that the session is this client's is lost, or came too early.
            Refusal::NotAttached => {
                self.session.forget_shown(ReplicaSet::default().with(from));
                let was_resent = update.is_resent;
                self.transmit_again(id.session, sequence, Some(from));
                // It has not taken the copy before this one.
                if let Some(update) = self.updates.get_mut(sequence) {
                    update.is_resent = was_resent;
                    if update.path == Path::Ordered && from != leader {
                        // Nor is it sent another one. But it remembers nothing, and takes a copy that comes again.
                        self.on_no_ok(from, sequence);
                    }
                }
            }
            // The leader goes on with another operation under this id, so this client does not have the session to
            // itself. What it sent may be in the durability logs of others.
            Refusal::UnknownSession | Refusal::OtherOperation => {
                if from == leader {
                    self.end_session();
                } else {
                    self.on_no_ok(from, sequence);
                }
            }
            Refusal::OutOfMemory | Refusal::DiskFull => {
                if from == leader || update.without_room.is_empty() {
                    update.lacks = refusal;
                }
                update.without_room = update.without_room.with(from);
                self.end_without_room(sequence);
                if from != leader {
                    self.on_no_ok(from, sequence);
                }
            }
            // The leader is about to lose its followers; the next one will take it.
            Refusal::DiskFailed if from == leader && leader_may_change => {}
            Refusal::LogFull | Refusal::Overloaded | Refusal::DiskFailed => {
                if from != leader {
                    self.on_no_ok(from, sequence);
                } else if nowhere {
                    self.finish_update(sequence, Outcome::Refused(refusal));
                } else if update.way == UpdatePath::Both && !update.refusals.contains(from) {
                    // It has no room to accept it; that it was to be ordered it has yet to read.
                    update.refusals = update.refusals.with(from);
                } else if refusal != Refusal::DiskFailed {
                    update.crowded_out = true;
                } else {
                    self.finish_update(sequence, Outcome::Unknown);
                }
            }
        }
    }

    /// Ends an update that has been refused for want of room, if it is certain that it will not be executed, or that this
    /// will not be known soon.
    fn end_without_room(&mut self, sequence: u64) {
        let (leader, connected, now) = (self.leader(), self.members.connected, self.now.instant);
        let (size, majority) = (self.config.configuration.size(), self.config.configuration.majority());
        let is_enough = self.planted(PlantedBug::LeaderRefusalIsEnough);
        let forgets_copies = self.planted(PlantedBug::RefusalOutlivesProcess);
        let Some(update) = self.updates.get_mut(sequence) else { return };
        if !update.without_room.contains(leader) {
            // It may order the update.
            return;
        }
        let others = update.asked.except(update.without_room);
        let is_certain = !update.is_older && (!update.is_resent || forgets_copies);
        // A leader whose disk is full lets another member lead while those of a majority are not, and that one takes over what
        // others have accepted. Nobody with more memory is to be found.
        let leader_gives_way = update.lacks == Refusal::DiskFull
            && size - update.without_room.len() >= majority
            && now.since(update.invoked) < LEADER_CHANGE;
        if is_enough || (others.is_empty() && is_certain) {
            let refusal = update.lacks;
            self.finish_update(sequence, Outcome::Refused(refusal));
        } else if leader_gives_way {
            // It is sent again meanwhile, and refused again.
        } else if others.within(connected).except(update.oks).except(update.refusals).is_empty() {
            // Somebody has it, or may have it, and may hand it over when there is room.
            self.finish_update(sequence, Outcome::Unknown);
        }
    }

    /// True if enough replicas, the leader among them, can be expected to answer.
    fn fast_quorum_in_reach(&self, strength: Strength) -> bool {
        let (quorum, active) = self.least_fast_quorum(strength);
        let usable = self.usable().within(active);
        usable.contains(self.leader()) && usable.len() >= quorum
    }

    pub(super) fn next_micros(&mut self) -> u64 {
        let clock = if self.planted(PlantedBug::ClockOfAnybody) {
            self.clocks.latest(self.now)
        } else {
            self.clocks.time(self.now)
        };
        match &mut self.session {
            Session::Active(session) => session.next_micros(clock),
            Session::None | Session::Abandoned { .. } | Session::Registering { .. } => clock,
        }
    }

    /// Sends an update for the first time in this view.
    pub(super) fn send_update(&mut self, session: SessionId, sequence: u64) {
        if self.updates.live() == 1 && !self.planted(PlantedBug::BehindForGood) {
            // What replicas said of earlier updates is no answer to this one: they may have entered the view since.
            if !self.planted(PlantedBug::AttachmentKept) {
                self.session.forget_shown(self.members.behind);
            }
            self.members.behind = ReplicaSet(0);
        }
        let micros = self.next_micros();
        let (acked_below, now) = (self.updates.first(), self.now.instant);
        let Some(update) = self.updates.get_mut(sequence) else { return };
        let (fast, strength) = (update.may_be_fast(self.rule.mode), update.strength);
        let may_be_fast = fast && self.fast_quorum_in_reach(strength);
        let way = if may_be_fast { self.choose_way(sequence, strength) } else { UpdatePath::Leader };
        let recipients = self.choose_recipients(sequence, way, strength);
        let keeps_evaluation = self.planted(PlantedBug::EvaluationOfOtherViewKept);
        let Some(update) = self.updates.get_mut(sequence) else { return };
        if !keeps_evaluation {
            update.evaluated = None;
        }
        update.way = way;
        update.began = now;
        update.micros = micros;
        update.acked_below = acked_below;
        update.recipients = recipients;
        update.oks = ReplicaSet(0);
        update.refusals = ReplicaSet(0);
        update.asked = ReplicaSet(0);
        update.is_older = update.attempts > 0;
        update.without_room = ReplicaSet(0);
        update.is_resent = false;
        update.crowded_out = false;
        update.path = if way == UpdatePath::Leader { Path::Ordered } else { Path::Durability };
        self.transmit(session, sequence, None);
        if way == UpdatePath::Both {
            self.order(sequence);
        }
    }

    /// Has the leader order an update, which it may have in its durability log already.
    pub(super) fn order(&mut self, sequence: u64) {
        let Some(session) = self.session.id() else { return };
        if let Some(update) = self.updates.get_mut(sequence) {
            update.path = Path::Ordered;
            self.transmit(session, sequence, None);
        }
    }

    /// Sends an update again that may have been lost.
    pub(super) fn transmit_again(&mut self, session: SessionId, sequence: u64, only: Option<ReplicaId>) {
        let leader = self.leader();
        let recipients = only.map_or(ReplicaSet::ALL, |only| ReplicaSet::default().with(only));
        if let Some(update) = self.updates.get_mut(sequence) {
            update.recipients = update.recipients.and(recipients);
            if update.way == UpdatePath::Both {
                // There may be only one copy left that the leader has yet to read.
                update.refusals = update.refusals.with(leader);
            }
        }
        self.transmit(session, sequence, only);
    }

    /// Puts an update on the wire, as its path says: to its recipients, or to the leader; or to `only`.
    pub(super) fn transmit(&mut self, session: SessionId, sequence: u64, only: Option<ReplicaId>) {
        let (view, leader, now) = (self.view, self.leader(), self.now.instant);
        let members = self.config.configuration.members();
        let connected = self.members.connected;
        let acknowledges_more = self.planted(PlantedBug::ResentAcknowledgesMore);
        let newly_acked_below = self.updates.first();
        let Some(update) = self.updates.get_mut(sequence) else { return };
        // What goes to one follower alone must not put off what the leader is to be asked.
        if only.is_none_or(|only| only == leader) {
            update.sent = now;
        }
        if acknowledges_more {
            update.acked_below = newly_acked_below;
        }
        let id = OperationId { session, sequence };
        let Update { micros, acked_below, .. } = *update;
        let request = Request { id, micros, acked_below, body: update.body.clone() };
        let (path, recipients) = (update.path, update.recipients);
        let is_first = update.attempts == 0;
        let wanted = |to: ReplicaId| {
            connected.contains(to)
                && only.is_none_or(|only| only == to)
                && match path {
                    Path::Durability => recipients.contains(to),
                    Path::Ordered => to == leader,
                }
        };
        let to: ReplicaSet = members.filter(|to| wanted(*to)).collect();
        if to.is_empty() {
            return;
        }
        update.is_resent |= !update.asked.within(to.without(leader)).is_empty();
        update.asked = update.asked.and(to);
        update.attempts = update.attempts.saturating_add(to.len() as u32);
        update.shared |= !to.without(leader).is_empty();
        let own = self.config.own_replica.map_or(ReplicaSet(0), |own| ReplicaSet(0).with(own));
        if let Some((strangers, nonce)) = self.session.show(to.and(own)) {
            let message = Message::Attach { session, nonce };
            self.actions.push_back(Action::Send { to: strangers, message });
        }
        // A leader that has no room for what nobody else has been sent refuses it for good: it cannot come to it by another
        // way. Anything else it is asked for again.
        let recipients = match path {
            Path::Ordered if is_first && !update.shared => to,
            Path::Ordered => ReplicaSet::ALL,
            Path::Durability => recipients,
        };
        let message = Message::Request { view, path, recipients, request };
        self.actions.push_back(Action::Send { to, message });
    }

    pub(super) fn look_after_update(&mut self, sequence: u64) {
        let (now, leader) = (self.now.instant, self.leader());
        let Some(update) = self.updates.get(sequence) else { return };
        let (strength, is_with_majority) = (update.strength, self.is_with_majority(update));
        let (quorum, active) = self.fast_quorum(strength);
        let fast = self.write_times.fast(quorum, leader, self.usable().within(active)).unwrap_or_default();
        let settings = &self.config.settings;
        let (give_up_after, session_idle_max) = (settings.give_up_after, settings.session_idle_max);
        let widen_after = (settings.sync_after / 4).max(Duration::from_nanos(fast.saturating_mul(2)));
        let latency = self.write_times.latency;
        let sync_after = patience(settings.sync_after, fast.max(latency), settings);
        let for_stragglers = if is_with_majority { self.straggler_patience(strength) } else { None };
        let sync_after = for_stragglers.map_or(sync_after, |patience| patience.min(sync_after));
        // The leader has to be asked before the session ends.
        let sync_after = sync_after.min(session_idle_max);
        let resend = patience(settings.resend, self.write_times.ordered.max(latency), settings);
        let Some(update) = self.updates.get_mut(sequence) else { return };
        if now.since(update.invoked) >= give_up_after {
            let outcome = if update.attempts == 0 { Outcome::TimedOut } else { Outcome::Unknown };
            return self.finish_update(sequence, outcome);
        }
        if update.without_room.contains(leader) && now.since(update.invoked) >= LEADER_CHANGE {
            // It has waited for another leader, and perhaps this one cannot be asked again.
            return self.end_without_room(sequence);
        }
        let Some(session) = self.session.id() else { return };
        let refusing = self.members.behind.within(update.recipients);
        let refusing = refusing.except(update.oks).except(update.refusals);
        if update.path == Path::Durability && !refusing.is_empty() {
            refusing.iter().for_each(|replica| self.on_no_ok(replica, sequence));
        }
        // No later than what may be lost, and while the session lasts: the refusal keeps no session alive.
        let longest = resend.min(session_idle_max);
        let outlasts = self.planted(PlantedBug::BackoffOutlastsSession);
        let backoff = if outlasts { sync_after * 2 } else { longest.min(sync_after * 2) };
        let Some(update) = self.updates.get_mut(sequence) else { return };
        let silent = now.since(update.sent);
        if update.crowded_out {
            if silent >= backoff {
                update.crowded_out = false;
                self.transmit_again(session, sequence, None);
            }
        } else if update.path == Path::Durability && now.since(update.began) >= sync_after {
            // However often it was sent again meanwhile.
            let missing = self.members.connected.within(update.recipients);
            let missing = missing.except(update.oks).except(update.refusals);
            self.members.on_silent(missing);
            self.order(sequence);
        } else if silent >= resend {
            self.transmit_again(session, sequence, None);
        } else if silent >= widen_after && update.path == Path::Durability {
            // The next updates go to others at once.
            let missing = self.members.connected.within(update.recipients);
            let missing = missing.except(update.oks).except(update.refusals).without(leader);
            let is_thrifty = !self.rule.active.except(update.recipients).is_empty();
            if is_thrifty {
                self.members.on_silent(missing);
                self.widen(sequence);
            }
        } else {
            self.look_for_stragglers_in_time(sequence);
        }
    }

    /// An update ends that was not answered.
    pub(super) fn finish_update(&mut self, sequence: u64, outcome: Outcome) {
        self.end_update(sequence, outcome, None);
    }

    fn end_update(&mut self, sequence: u64, outcome: Outcome, way: Option<Way>) {
        if let Some(update) = self.updates.remove(sequence) {
            // An update that failed tells for how long the client waited, and not how long the cluster takes.
            let is_done = matches!(outcome, Outcome::Done | Outcome::Reply(_));
            if update.attempts > 0 && (is_done || self.planted(PlantedBug::FailuresMeasured)) {
                let took = self.now.instant.since(update.sent).as_nanos() as u64;
                self.write_times.latency = smooth(self.write_times.latency, took);
            }
            let (token, applied) = (update.token, None);
            self.actions.push_back(Action::Completed { token, outcome, applied, way });
        }
    }
}
