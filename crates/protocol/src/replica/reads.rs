//! Linearizable reads. At the leader, under a lease or after a round of heartbeats (read index); and what
//! every member contributes to those that are answered elsewhere (IONIA 4.3, Syros 4.3).
//!
//! A lease is made of the followers' promises: each answer to a message the leader sent at `t`
//! promises that the follower will not change views for one lease duration counted from when it
//! received it, which is not before `t`. The leader counts from `t`, less what clocks may drift.
//!
//! A member that is asked for a value says with it what its log and its durability log would still change.
//! A majority of such answers shows everything that was complete when the read began: whatever had
//! completed was in the durability log or in the log of a majority, and stays there until it is applied.
//!
//! That holds key by key. A read of several keys could find one key as it is after an entry, another as it
//! was before an update that completed, on the fast path, before that entry did: nobody could say when such a
//! read took place. The leader answers those, and meanwhile vouches for no update of their keys.

use super::role::{Progress, Role, WaitingRead};
use super::{Action, PlantedBug, Replica};
use crate::history::ChangeHistory;
use crate::message::{Asked, Body, Freshness, Message, Peer, Refusal};
use core::time::Duration;
use syros_types::{Class, Description, Footprint, Group, Instant, Now, OpNumber, ReplicaId, View, WallTime};

/// Whether a replica can read something at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadAtOnce {
    /// It leads, and nothing is pending: the log time by which keys expire.
    Certain(WallTime),
    /// It leads, and an update of the keys is to be executed before.
    Pending,
    /// It does not lead, or is not certain of that; or there is no room for updates; or it is about all keys.
    Uncertain,
}

impl Replica {
    pub(super) fn on_read(&mut self, from: Peer, view: View, number: u64, asked: Asked, body: Body) {
        let leads = matches!(asked, Asked::Answer | Asked::LastChange);
        if leads {
            if !self.accepts_view(from, view) {
                return;
            }
            if !self.is_leader() {
                let view = self.view;
                return self.send(from, Message::WrongView { view });
            }
        }
        if self.diverged.is_some() {
            return self.refuse_read(from, number, Refusal::NotNormal);
        }
        let Some(Description { class: Class::Read, footprint, .. }) = (self.config.describe)(&body) else {
            return self.refuse_read(from, number, Refusal::Malformed);
        };
        let asked = match asked {
            Asked::LastChange if !footprint.is_one_key() => Asked::Answer,
            Asked::Value { .. } if !footprint.is_one_key() => {
                return self.refuse_read(from, number, Refusal::Malformed);
            }
            asked => asked,
        };
        // Reads of all keys show what the log has come to: while keys expire all the time, they would always wait.
        let is_exact = asked == Asked::Answer && footprint != Footprint::All;
        // Without the other rule this one would still keep an expired key from coming back, where keys are named.
        let is_exact = is_exact && !self.planted(PlantedBug::FollowersAhead);
        let time = is_exact.then(|| self.log_time());
        let read = WaitingRead { to: from, number, asked, body, footprint, invoked: self.now.instant, time };
        match asked {
            Asked::Answer | Asked::LastChange => self.read_as_leader(read),
            Asked::Value { after } => self.read_as_member(read, after),
            Asked::StaleValue
                if matches!(self.role, Role::Recovering(_))
                    && !self.planted(PlantedBug::StaleWithoutMemory) =>
            {
                self.refuse_read(from, number, Refusal::NotNormal);
            }
            Asked::StaleValue => self.answer_read(read),
        }
    }

    /// The view that a reader is told of. One that has not begun it must not hear of: it may never begin, and
    /// a client that believed in it would be lost to the view that goes on. Nor of one that a crash undoes.
    fn told_view(&self) -> View {
        if self.is_normal() && self.view_is_durable() { self.view } else { View(0) }
    }

    fn refuse_read(&mut self, to: Peer, number: u64, refusal: Refusal) {
        self.counters.count_refusal(refusal);
        let view = self.told_view();
        self.send(to, Message::ReadRefused { view, number, refusal });
    }

    /// Leader: an update of these keys is to be executed before what is asked for is known.
    fn is_pending(&self, footprint: &Footprint, asked: Asked) -> bool {
        let skips_all = self.planted(PlantedBug::AllKeysReadSkipsPending) && *footprint == Footprint::All;
        let skips = skips_all
            || self.planted(PlantedBug::ReadSkipsPending)
            || (self.planted(PlantedBug::MetaSkipsPending) && asked == Asked::LastChange);
        let view_began_at = self.role.leading().map_or(OpNumber(0), |leader| leader.view_began_at);
        !skips
            && (self.dlog.overlaps(footprint)
                || self.backlog.pending.overlaps(footprint)
                // Followers may have executed entries by whose time keys have expired.
                || (*footprint == Footprint::All
                    && self.applied < self.log.op_number()
                    && !self.planted(PlantedBug::FollowersAhead))
                || (self.applied < view_began_at && !self.planted(PlantedBug::FollowersAhead)))
    }

    /// Whether the leader would answer a read of these keys at once from what it has executed. An update that changes
    /// nothing is such a read: whoever has one on the leader's own node, and has sent it to nobody, may take what it would
    /// return for its answer. (An update that others have, too, might yet be executed, when it does change something.)
    #[must_use]
    pub fn reads_at_once(&mut self, now: Now, footprint: &Footprint) -> ReadAtOnce {
        self.now = Now { instant: self.now.instant.max(now.instant), wall: now.wall };
        let by_any = self.planted(PlantedBug::NoOpAnsweredByAny);
        let may = self.is_leader() && self.view_is_durable() && self.diverged.is_none() && !self.lacks_room();
        if *footprint == Footprint::All || !(may && self.leadership_is_certain(self.now.instant) || by_any) {
            ReadAtOnce::Uncertain
        } else if self.is_pending(footprint, Asked::Answer) && !by_any {
            ReadAtOnce::Pending
        } else {
            ReadAtOnce::Certain(self.log_time())
        }
    }

    /// Updates that would make the state grow are refused, whether or not they do.
    fn lacks_room(&self) -> bool {
        self.resources.lacks_memory(|| 1, self.is_leader())
            || self.resources.disk_is_short()
            || !self.majority_has_space()
    }

    fn read_as_leader(&mut self, mut read: WaitingRead) {
        if !self.is_leader() {
            return;
        }
        let pending = self.is_pending(&read.footprint, read.asked);
        if !pending && self.leadership_is_certain(self.now.instant) {
            self.counters.fast_reads += 1;
            return self.answer_read(read);
        }
        if self.role.waiting() >= self.config.settings.waiting_max {
            return self.refuse_read(read.to, read.number, Refusal::Overloaded);
        }
        self.counters.slow_reads += 1;
        if pending {
            self.order_all();
            // Once it is executed here, nobody else need be asked.
            read.asked = Asked::Answer;
        }
        let Role::Leader(leader) = &mut self.role else { return };
        leader.on_read_waits(&read.footprint);
        if pending {
            leader.in_view.reads_unapplied.entry(self.log.op_number()).or_default().push(read);
        } else {
            leader.heartbeat_due = true;
            leader.reads_unconfirmed.push_back(read);
        }
    }

    /// Leader: a read would have shown a key that has expired by the clock, and not yet in the log. It is answered when
    /// the log has come to that time: answered before with the key, it would contradict updates, which find the key
    /// gone; answered before without it, the key might come back at another member, or under another leader.
    pub(super) fn on_not_read(
        &mut self,
        to: Peer,
        number: u64,
        body: Body,
        time: WallTime,
        expiry: WallTime,
    ) {
        let Some(Description { footprint, .. }) = (self.config.describe)(&body) else { return };
        if !self.accepts_view(to, self.view) {
            return;
        }
        if !self.is_leader() {
            let view = self.view;
            return self.send(to, Message::WrongView { view });
        }
        let invoked = self.now.instant;
        let mut read =
            WaitingRead { to, number, asked: Asked::Answer, body, footprint, invoked, time: Some(time) };
        if self.role.waiting() >= self.config.settings.waiting_max {
            return self.refuse_read(to, number, Refusal::Overloaded);
        }
        if self.log.last_time() < expiry && self.log_time() >= expiry && self.append_tick() {
            // What has expired until now is gone with it.
            self.next_expiry = self.next_expiry.filter(|next| *next > self.log_time());
        }
        if self.log.last_time() < expiry {
            // The clock has gone back, or the log has no room: the key is there, as far as anybody can know.
            read.time = None;
            return self.read_as_leader(read);
        }
        if let Role::Leader(leader) = &mut self.role {
            leader.on_read_waits(&read.footprint);
            leader.in_view.reads_unapplied.entry(self.log.op_number()).or_default().push(read);
        }
        self.answer_applied_reads();
    }

    fn read_as_member(&mut self, read: WaitingRead, after: OpNumber) {
        // Between views its log may be one that the group has left behind. And an entry that is not in the log
        // may never come: a view change may have dropped it.
        if !self.is_normal() || !self.view_is_durable() || after > self.log.op_number() {
            self.refuse_read(read.to, read.number, Refusal::NotNormal);
        } else if after <= self.applied {
            self.answer_read(read);
        } else if self.role.waiting() >= self.config.settings.waiting_max {
            self.refuse_read(read.to, read.number, Refusal::Overloaded);
        } else if let Some(in_view) = self.role.in_view_mut() {
            in_view.waiting += 1;
            in_view.reads_unapplied.entry(after).or_default().push(read);
        }
    }

    /// Gives what was asked for: it is certain that it may be given.
    fn answer_read(&mut self, read: WaitingRead) {
        let WaitingRead { to, number, asked, body, footprint, time, .. } = read;
        let view = self.told_view();
        let freshness = match asked {
            Asked::LastChange => {
                let op_number = self.last_change(&footprint);
                let time = self.log_time();
                return self.send(to, Message::LastChange { view, number, op_number, time });
            }
            Asked::Answer => None,
            Asked::StaleValue => Some(Freshness::default()),
            Asked::Value { .. } => Some(Freshness {
                accepted: self.history.last_change(&footprint),
                unordered: self.holds_unordered(&footprint),
                // A key that is due by the clock is the leader's to answer for, which can let it expire. The reader also
                // learns here which clock the lifetimes in the value count from.
                time: self.log_time(),
            }),
        };
        let (applied, now) = (self.applied, self.log_time());
        self.actions.push_back(Action::Read { to, view, number, applied, body, freshness, time, now });
    }

    fn last_change(&self, footprint: &Footprint) -> OpNumber {
        if self.planted(PlantedBug::HistoryTooLow) {
            return self.history.known_change(footprint);
        }
        let change = self.history.last_change(footprint);
        let executed = |member: ReplicaId| {
            self.role.leading().is_some_and(|leader| leader.progress[member.index()].applied >= change)
        };
        if self.planted(PlantedBug::FreshnessByLeader) && self.others().any(executed) {
            return OpNumber(0);
        }
        change
    }

    /// True if the durability log holds an update of these keys that is not in the log.
    fn holds_unordered(&self, footprint: &Footprint) -> bool {
        self.dlog.overlaps(footprint)
            && !self.planted(PlantedBug::QuorumSkipsDlog)
            && self.dlog.iter().any(|update| {
                !self.backlog.ordered.contains_key(&update.request.id) && update.footprint.overlaps(footprint)
            })
    }

    /// Forgets what every member that matters has executed: no reader is told to wait for it.
    pub(super) fn trim_history(&mut self) {
        let mut executed = self.applied;
        if let Role::Leader(leader) = &self.role {
            for progress in &leader.progress {
                // Whoever has been silent for long may be dead, and must not make the others' readers wait.
                let active =
                    |heard: Instant| self.now.instant < heard.after(self.config.settings.suspect_after);
                if progress.heard.is_some_and(active) {
                    executed = executed.min(progress.applied);
                }
            }
        }
        self.history.trim(executed, self.config.settings.history_bytes_max / ChangeHistory::CHANGE_BYTES);
    }

    /// Leader: the newest moment at which `f` followers had not left the view. `None`: never heard.
    pub(super) fn confirmed_at(&self) -> Option<Instant> {
        if self.config.configuration.faults() == 0 {
            return Some(Instant::NEVER);
        }
        self.newest_of_followers(|progress| progress.heard)
    }

    /// Leader: the latest moment that `f` followers, of whom there are some, have reached.
    pub(super) fn newest_of_followers(
        &self,
        moment: impl Fn(&Progress) -> Option<Instant>,
    ) -> Option<Instant> {
        let Role::Leader(leader) = &self.role else { return None };
        let faults = self.config.configuration.faults();
        let mut heard = [None; Group::SIZE_MAX];
        for (index, progress) in leader.progress.iter().enumerate() {
            if index != self.config.replica.index() {
                heard[index] = moment(progress);
            }
        }
        heard.sort_unstable_by(|a, b| b.cmp(a));
        heard[faults - 1]
    }

    /// The part of a follower's promise that the leader relies upon: no more than its own lease, less what clocks may
    /// drift.
    pub(super) fn lease_of(&self, promise: Duration) -> Duration {
        let by_own = self.planted(PlantedBug::PromiseByOwnLease);
        let promise =
            if by_own { self.config.settings.lease } else { promise.min(self.config.settings.lease) };
        let drift = promise.as_nanos() as u64 / 1_000_000 * u64::from(self.config.settings.clock_drift_ppm);
        promise.saturating_sub(Duration::from_nanos(drift))
    }

    /// Leader: `f` followers have promised not to leave the view until then.
    fn lease_until(&self) -> Instant {
        let faults = self.config.configuration.faults();
        if faults == 0 {
            return Instant::NEVER;
        }
        let mut promised = [Instant(0); Group::SIZE_MAX];
        let progress = self.role.leading().map_or(&[][..], |leader| &leader.progress);
        for (index, progress) in progress.iter().enumerate() {
            if index != self.config.replica.index() {
                promised[index] = progress.promised_until;
            }
        }
        promised.sort_unstable_by(|a, b| b.cmp(a));
        promised[faults - 1]
    }

    /// Leader: nobody else can have become leader before now (with a lease), or had when a read
    /// invoked at `invoked` arrived (by heartbeats answered since).
    fn leadership_is_certain(&self, invoked: Instant) -> bool {
        if self.planted(PlantedBug::ReadWithoutLease) {
            return true;
        }
        self.lease_until() > self.now.instant || self.confirmed_at().is_some_and(|at| at >= invoked)
    }

    /// Entries have been applied: reads that waited for them go on.
    pub(super) fn answer_applied_reads(&mut self) {
        while let Some(in_view) = self.role.in_view_mut()
            && let Some(entry) = in_view.reads_unapplied.first_entry()
            && *entry.key() <= self.applied
        {
            for read in entry.remove() {
                if matches!(read.asked, Asked::Value { .. }) || self.leadership_is_certain(read.invoked) {
                    self.end_waiting(&read.footprint);
                    self.answer_read(read);
                } else if let Role::Leader(leader) = &mut self.role {
                    leader.heartbeat_due = true;
                    let unconfirmed = &mut leader.reads_unconfirmed;
                    let place = unconfirmed.partition_point(|other| other.invoked <= read.invoked);
                    unconfirmed.insert(place, read);
                }
            }
        }
    }

    /// A heartbeat was answered: reads that waited for leadership to be confirmed go on.
    pub(super) fn answer_confirmed_reads(&mut self) {
        while let Role::Leader(leader) = &self.role
            && let Some(invoked) = leader.reads_unconfirmed.front().map(|read| read.invoked)
            && self.leadership_is_certain(invoked)
        {
            let Role::Leader(leader) = &mut self.role else { return };
            let Some(read) = leader.reads_unconfirmed.pop_front() else { return };
            leader.on_read_ends(&read.footprint);
            self.answer_read(read);
        }
    }

    fn end_waiting(&mut self, footprint: &Footprint) {
        match &mut self.role {
            Role::Leader(leader) => leader.on_read_ends(footprint),
            Role::Follower(follower) => follower.in_view.waiting -= 1,
            Role::ViewChange(_) | Role::Recovering(_) => {}
        }
    }
}
