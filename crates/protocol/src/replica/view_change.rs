//! View changes (VR 4.2), with recovery of the durability log (Skyros 4.6) and two additions:
//!
//! - a replica that misses its leader says so before it moves, and moves only once `f` others miss
//!   it too; so one replica with a bad link never disturbs a healthy view, and a promise made to the
//!   leader (its lease) is always waited out, because a replica suspects only after it has ended;
//! - a leader that learns of a replica stuck in a newer view, or of one that lost its memory, starts
//!   a new view itself and stays leader.

use super::later_views::WantedView;
use super::patience::BACK_OFF_MAX;
use super::role::{Follower, Leader, Role, Transfer, ViewChange};
use super::timers::{Timer, Timers};
use super::{HandOverReason, PlantedBug, Replica, TraceEvent, ViewChangeCause};
use crate::message::{
    BodyHash, DoViewChange, LogEntry, Message, Payload, Peer, Request, StartView, Update, ViewChangeReason,
};
use crate::record::Record;
use crate::recovery::{Recoverable, recover};
use crate::sessions::OperationStatus;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;
use syros_types::{
    Class, Configuration, FastRule, Footprint, Group, Instant, OpNumber, OperationId, ReplicaId, ReplicaSet,
    SessionId, Timestamp, View,
};

/// The first view, `at_least` this one, that `leader` leads. Who is not in the configuration leads none: that one, then.
pub(super) fn next_view_of(configuration: &Configuration, leader: ReplicaId, at_least: View) -> View {
    let mut views = (at_least.0..).map(View).take(configuration.size());
    views.find(|view| configuration.leader(*view) == leader).unwrap_or(at_least)
}

impl Recoverable for Update {
    fn id(&self) -> OperationId {
        self.request.id
    }

    fn timestamp(&self) -> Timestamp {
        self.request.timestamp()
    }

    fn body_hash(&self) -> BodyHash {
        self.body_hash
    }

    fn overwritten_key(&self) -> Option<u64> {
        match (self.class, &self.footprint) {
            (Class::Overwrite, Footprint::One(key)) => Some(*key),
            _ => None,
        }
    }
}

impl Replica {
    /// Follower: the leader has been silent for too long.
    pub(super) fn suspect(&mut self) {
        let may_forget = self.planted(PlantedBug::EarlierPromiseForgotten);
        let Role::Follower(follower) = &mut self.role else { return };
        assert!(
            self.now.instant >= follower.leader_contact.after(self.config.settings.lease),
            "a promise to the leader is waited out"
        );
        assert!(
            self.now.instant >= self.promised_until || may_forget,
            "a promise of before the start is waited out"
        );
        let silent = self.now.instant.since(follower.leader_contact);
        self.timers.set(Timer::Suspect, self.now.instant.after(self.config.settings.resend));
        if !core::mem::replace(&mut follower.suspecting, true) {
            self.trace(TraceEvent::Suspected { view: self.view, leader: self.leader(), silent });
        }
        let view = View(self.view.0 + 1);
        self.broadcast(&Message::StartViewChange { view, reason: ViewChangeReason::Suspicion });
        self.move_if_others_agree();
    }

    /// Follower: true if it misses its leader.
    fn is_suspecting(&self) -> bool {
        self.role.following().is_some_and(|follower| follower.suspecting)
    }

    /// Members heard lately to want a view that `wanted` accepts.
    fn count_wants(&self, wanted: impl Fn(&WantedView) -> bool) -> usize {
        self.later_views.count_wants(self.now.instant, self.config.settings.resend, wanted)
    }

    /// Moves on if `f` others want a later view than this one. To a replica that misses its leader, members that are
    /// behind it and have no leader count as well: they go along with any later view.
    fn move_if_others_agree(&mut self) {
        if self.is_departing() {
            // It goes where others have gone. In a group of one nobody else has to agree, and it would always be ahead.
            return;
        }
        let view = self.view;
        let misses = self.is_suspecting() && !self.planted(PlantedBug::DeposedLeaderStays);
        // Where somebody is in a later configuration, the majority that would have to agree here may be gone. Those who told of it
        // may be unable to want a view of it: they have lost their memory, or are departing.
        let is_free = self.is_suspecting() || !self.is_normal();
        let is_known = self.next_smaller_configuration().is_some()
            || self.count_wants(|want| want.view.epoch() > view.epoch()) > 0;
        let is_over = is_free && is_known;
        if is_over
            || self.count_wants(|want| misses || want.view > view) >= self.config.configuration.faults()
        {
            self.move_with_others();
        }
    }

    /// Moves to the view that others want.
    fn move_with_others(&mut self) {
        let highest = self.later_views.highest_wanted();
        let next =
            self.next_smaller_configuration().map(|next| View::of_epoch(next.epoch, self.view.number() + 1));
        let highest = highest.max(next.unwrap_or_default());
        let cause = if self.is_normal() { ViewChangeCause::LeaderSilent } else { ViewChangeCause::NotBegun };
        self.move_to(highest.max(View(self.view.0 + 1)), ViewChangeReason::Moved, cause);
    }

    /// Gives up its view, and its role in it, for `view`, which is to begin within `timeout`.
    fn leave_for(&mut self, view: View, timeout: Duration) {
        // What is in the log must be on disk before a record that builds upon it.
        self.emit_batch();
        self.later_views.on_left();
        self.adopt_configuration_of(view);
        self.view = view;
        self.begin_view_change(timeout);
    }

    /// Moves to `view`, which begins when `f` others have moved too.
    pub(super) fn move_to(&mut self, view: View, reason: ViewChangeReason, cause: ViewChangeCause) {
        assert!(view > self.view, "views only grow");
        self.trace_left(view, cause);
        let usual = self.config.settings.view_change_timeout;
        let timeout = self.missed_timeout().map_or(usual, |missed| (missed * 2).min(usual * BACK_OFF_MAX));
        self.leave_for(view, timeout);
        self.persist_view();
        if !self.is_departing() {
            self.tell_voters(&Message::StartViewChange { view, reason });
        }
        self.tell_patience();
        self.send_do_view_change();
    }

    /// Enters a role, with its timers. Those of the last one stop; a snapshot is received on.
    pub(super) fn enter(&mut self, role: Role, timers: Timers) -> Role {
        self.timers = timers.with(Timer::FetchSnapshot, self.timers.get(Timer::FetchSnapshot));
        core::mem::replace(&mut self.role, role)
    }

    /// Gives up its role for a view change that is to end within `timeout`. Those who wait for answers are not told of the
    /// next view before it has begun: it may never, and a client that believed in it would be lost to the view that goes on.
    pub(super) fn begin_view_change(&mut self, timeout: Duration) {
        // Those of models are some nanoseconds long. Nothing is to depend on chance there, which no fingerprint has.
        let spread = if timeout < Duration::from_micros(1) { Duration::ZERO } else { timeout / 4 };
        let jitter = Duration::from_nanos(self.prng.below(spread.as_nanos() as u64));
        let carrying = self.carrying_of_change() * self.attempts(timeout);
        let role = Role::ViewChange(Box::new(ViewChange {
            resend_change_at: self.now.instant.after(self.config.settings.resend.max(carrying)),
            carrying,
            timeout,
            changes: BTreeMap::new(),
            chosen: Vec::new(),
            awaits_others: false,
            senders: ReplicaSet::default(),
            source: None,
            transfer: None,
        }));
        let now = self.now.instant;
        let timers = Timers::stopped()
            .with(Timer::ResendViewChange, now.after(self.config.settings.resend))
            .with(Timer::ViewChangeTimeout, now.after(timeout).after(jitter).after(carrying));
        let last = self.enter(role, timers);
        for client in last.waiting_clients() {
            self.tell_of_next_view(client);
        }
    }

    /// What the durability log holds that the log does not.
    pub(super) fn unordered(&self) -> impl Iterator<Item = &Request> {
        let requests = self.dlog.iter().map(|update| &update.request);
        requests.filter(|request| !self.backlog.ordered.contains_key(&request.id))
    }

    /// A copy of that.
    pub(super) fn unordered_requests(&self) -> Vec<Request> {
        self.unordered().cloned().collect()
    }

    pub(super) fn send_do_view_change(&mut self) {
        let change = DoViewChange {
            view: self.view,
            last_normal: self.last_normal,
            rule: self.told_rule(),
            commit: self.commit,
            commit_view: self.log.view_at(self.commit).unwrap_or_default(),
            suffix: self.log.suffix(self.commit),
            dlog: self.unordered_requests(),
            clock: self.now.wall,
        };
        let leader = self.leader();
        // To lead, one that holds nothing has to fetch everything first. Others lead sooner, unless they have tried for long: it may
        // be the only one that a majority can hear.
        let is_last_resort = matches!(&self.role, Role::ViewChange(change) if change.timeout >= self.config.settings.view_change_timeout * BACK_OFF_MAX);
        let cannot_lead = self.holds_nothing() && leader == self.config.replica && !is_last_resort;
        // One that is departing waits for the view that it is asked for: there is none of number 0.
        if cannot_lead || (self.is_departing() && self.view.number() == 0) {
            return;
        }
        if leader == self.config.replica {
            self.add_change(leader, change);
        } else {
            let message = Message::DoViewChange(Box::new(change));
            if self.planted(PlantedBug::ViewChangeBeforePersist) {
                self.send(Peer::Replica(leader), message);
            } else {
                self.send_durable(Peer::Replica(leader), message);
            }
        }
    }

    pub(super) fn on_view_change_tick(&mut self) {
        let now = self.now.instant;
        let Role::ViewChange(change) = &mut self.role else { return };
        if self.timers.is_due(Timer::AwaitClocks, now) {
            // In the first attempt only: those that wait for the view must not lose patience with each.
            let is_first = change.timeout <= self.config.settings.view_change_timeout;
            let may_wait = is_first && !change.awaits_others;
            if may_wait && !self.clocks_suffice() && self.lacks_clock_of_others() {
                return self.await_others();
            }
            return self.try_start_view();
        }
        let timed_out = self.timers.is_due(Timer::ViewChangeTimeout, now);
        if self.timers.is_due(Timer::ResendViewChange, now) {
            self.timers.set(Timer::ResendViewChange, now.after(self.config.settings.resend));
            let waits = change.transfer.is_some() || change.source.is_some();
            // One that is on its way for long would only be followed by more of the same.
            let is_due = now >= change.resend_change_at;
            if is_due {
                // The link may be slower than it is taken to be.
                change.carrying = (change.carrying * 2).min(change.timeout * BACK_OFF_MAX);
                change.resend_change_at = now.after(self.config.settings.resend.max(change.carrying));
            }
            let view = self.view;
            if self.is_departing() {
                // Whoever knows that it is not needed any more does not take it for a peer, and it learns of that.
                let epoch = self.config.configuration.id.epoch;
                self.broadcast(&Message::GetConfiguration { epoch });
            } else {
                self.tell_voters(&Message::StartViewChange { view, reason: ViewChangeReason::Moved });
                self.tell_patience();
            }
            if waits {
                self.request_transfer_again();
            } else if is_due {
                self.send_do_view_change();
            }
        }
        if timed_out {
            self.on_view_change_timeout();
        }
    }

    /// The view has not started in time: its leader may be dead.
    fn on_view_change_timeout(&mut self) {
        let view = self.view;
        if self.is_departing() {
            // It goes where others go.
            let again = self.now.instant.after(self.config.settings.view_change_timeout);
            return self.timers.set(Timer::ViewChangeTimeout, again);
        }
        let is_over = self.next_smaller_configuration().is_some();
        if is_over
            || self.count_wants(|want| want.view > view || (want.moved && want.view == view))
                >= self.config.configuration.faults()
        {
            return self.move_with_others();
        }
        if !matches!(self.role, Role::ViewChange(_)) {
            // It has begun just now, with what was sent again.
            return;
        }
        // Alone. Others that are normal in this view may miss its leader too: tell them.
        self.timers.set(Timer::ViewChangeTimeout, self.now.instant.after(self.config.settings.resend));
        self.trace_alone();
        let next = View(view.0 + 1);
        self.broadcast(&Message::StartViewChange { view: next, reason: ViewChangeReason::Suspicion });
    }

    pub(super) fn on_recovering_tick(&mut self) {
        let Role::Recovering(recovering) = &self.role else { return };
        if !self.timers.is_due(Timer::Rejoin, self.now.instant) {
            return;
        }
        self.timers.set(Timer::Rejoin, self.now.instant.after(self.config.settings.resend));
        if self.is_learner() {
            return self.on_learner_tick();
        }
        let view = self.view;
        if recovering.transfer.is_some() {
            self.request_transfer();
            // The member that it asks may be gone, and the group have shrunk by this one: then no new leader calls for it.
            let epoch = self.config.configuration.id.epoch;
            self.broadcast(&Message::GetConfiguration { epoch });
        } else {
            self.trace_memory_gone();
            self.broadcast(&Message::Rejoin { view });
        }
    }

    pub(super) fn on_start_view_change(&mut self, from: ReplicaId, view: View, reason: ViewChangeReason) {
        let moved = reason != ViewChangeReason::Suspicion;
        match &self.role {
            Role::Leader(_) | Role::Follower(_) if view <= self.view => {
                let current = self.view;
                self.send(Peer::Replica(from), Message::WrongView { view: current });
                if self.is_suspecting() {
                    // It has no leader either, and may not be able to enter this replica's view: the leader may be dead.
                    self.later_views.on_wanted(from, WantedView { view, moved, at: self.now.instant });
                    self.move_if_others_agree();
                }
            }
            Role::Leader(_) | Role::Follower(_) => {
                self.later_views.on_wanted(from, WantedView { view, moved, at: self.now.instant });
                if moved && from == self.leader() {
                    // The leader has left this view for good, and its lease with it.
                    self.move_to(view, ViewChangeReason::Moved, ViewChangeCause::LeaderLeft);
                } else if self.is_leader() {
                    if moved {
                        // It cannot come back by itself.
                        self.resolve_challenge(from, view, reason);
                    } else {
                        // Who suspects the leader of a view takes part in that view.
                        self.yield_to(from, View(view.0 - 1));
                    }
                } else if self.planted(PlantedBug::PromiseForgotten) {
                    self.move_to(view, ViewChangeReason::Moved, ViewChangeCause::Followed(from));
                } else if self.is_suspecting() {
                    // One that has moved had the agreement of `f` others, or was let go by its leader.
                    if moved && !self.planted(PlantedBug::UnheardLeaderStays) {
                        self.move_to(view, ViewChangeReason::Moved, ViewChangeCause::Followed(from));
                    } else {
                        self.move_if_others_agree();
                    }
                }
            }
            Role::ViewChange(_) if view >= self.view => {
                self.later_views.on_wanted(from, WantedView { view, moved, at: self.now.instant });
                if moved && view > self.view {
                    self.move_to(view, ViewChangeReason::Moved, ViewChangeCause::Followed(from));
                } else {
                    // They have waited long enough for this one, however long this replica would yet.
                    self.move_if_others_agree();
                }
            }
            Role::ViewChange(_) | Role::Recovering(_) => {}
        }
    }

    /// Leader: another member takes part in `view`. If that is a later view than this leader's own, this leader has been
    /// deposed. It gives up its view and its lease, and takes part in the change to the other's: the leader of that one
    /// may be dead by now, and the member may need this one's agreement to go on.
    pub(super) fn yield_to(&mut self, member: ReplicaId, view: View) {
        let deposed = self.is_leader() && view > self.view;
        let possible = self.leader_of(view) != self.config.replica;
        if deposed && possible && !self.planted(PlantedBug::DeposedLeaderStays) {
            self.move_to(view, ViewChangeReason::Moved, ViewChangeCause::Deposed(member));
        }
    }

    /// Leader: a member has moved to `view`. A leader that has been one for some time starts a view that it
    /// leads again; but two that answered each other so would go on for ever. So a leader that another
    /// one challenges, or that has hardly begun, follows. So does one that has not heard a majority of late: it was
    /// stopped, say, the others have another leader by now, and what it hears first is how they came to that.
    fn resolve_challenge(&mut self, to: ReplicaId, view: View, reason: ViewChangeReason) {
        let soon =
            |entered: Instant| self.now.instant < entered.after(self.config.settings.view_change_timeout);
        let heard = self.hears_majority();
        let entered_at = self.role.leading().and_then(|leader| leader.entered_at);
        let established = heard && !entered_at.is_some_and(soon);
        // The group may have shrunk by this member: it leads no view of that configuration.
        let may_lead = self.configuration_of(view).has(self.config.replica);
        if established && may_lead && reason != ViewChangeReason::Abdication {
            self.restart_leadership(view, ViewChangeCause::Challenged(to));
        } else {
            self.move_to(view, ViewChangeReason::Moved, ViewChangeCause::Yielded(to));
        }
    }

    /// Leader: true if `f` followers have answered of late.
    fn hears_majority(&self) -> bool {
        self.confirmed_at().is_some_and(|at| self.is_recent(at))
    }

    /// Leader: starts a view, `at_least` this one, that it leads again.
    fn restart_leadership(&mut self, at_least: View, cause: ViewChangeCause) {
        self.move_to(self.next_view_of(self.config.replica, at_least), ViewChangeReason::Abdication, cause);
    }

    /// The first view after this one, `at_least` that one, that `leader` leads.
    pub(super) fn next_view_of(&self, leader: ReplicaId, at_least: View) -> View {
        let at_least = at_least.max(self.view.next());
        next_view_of(&self.configuration_of(at_least), leader, at_least)
    }

    /// Leader: lets `to` lead. Leaving the view ends the lease, so the others follow at once, and what was
    /// under way is recovered as in any view change.
    pub(super) fn on_hand_over(&mut self, to: ReplicaId, reason: HandOverReason) {
        // One that has not answered of late may be dead, and the view that it leads would not begin.
        let Role::Leader(leader) = &self.role else { return };
        let heard = leader.progress.get(to.index()).and_then(|progress| progress.heard);
        let alive =
            heard.is_some_and(|heard| self.now.instant < heard.after(self.config.settings.suspect_after));
        if to == self.config.replica || !alive {
            return;
        }
        let cause = ViewChangeCause::HandedOver(to, reason);
        self.move_to(self.next_view_of(to, self.view), ViewChangeReason::Moved, cause);
    }

    /// Leader: hands over to the member with the longest log.
    pub(super) fn step_down(&mut self, reason: HandOverReason) {
        self.hand_over_to_longest_log(ReplicaSet::ALL, reason);
    }

    /// Leader: hands over to the member with the longest log among those that suit.
    pub(super) fn hand_over_to_longest_log(&mut self, suitable: ReplicaSet, reason: HandOverReason) {
        let Role::Leader(leader) = &self.role else { return };
        let members = leader.progress.iter().zip(self.config.configuration.members());
        let heard =
            members.filter(|(progress, member)| progress.heard.is_some() && suitable.contains(*member));
        let best = heard.max_by_key(|(progress, _)| (progress.op_number, progress.heard));
        if let Some((_, to)) = best {
            self.on_hand_over(to, reason);
        }
    }

    /// A replica that lost its memory may enter only a view in whose making it took no part.
    pub(super) fn on_rejoin(&mut self, from: ReplicaId, view: View) {
        if matches!(self.role, Role::Recovering(_)) {
            self.on_without_memory(from);
        }
        if !self.is_leader() {
            return;
        }
        if self.view > view {
            // It never acted in this view: it would have known of it.
            self.send_start_view(from);
        } else if self.hears_majority() || self.planted(PlantedBug::RestartsUnheard) {
            self.restart_leadership(View(view.0 + 1), ViewChangeCause::MemoryLost(from));
        } else {
            // If it led again it would count anew who answers, and a member that ends again and again would keep it leading.
            let next = View(view.0 + 1).max(self.view.next());
            self.move_to(next, ViewChangeReason::Moved, ViewChangeCause::MemoryLost(from));
        }
    }

    pub(super) fn on_do_view_change(&mut self, from: ReplicaId, change: DoViewChange) {
        let view = change.view;
        if matches!(self.role, Role::Recovering(_)) {
            return;
        }
        if view < self.view || (view == self.view && self.is_normal()) {
            if !self.config.configuration.has(from) {
                self.tell_configuration(from);
            } else if self.is_leader() {
                self.send_start_view(from);
            } else if self.is_normal() {
                let view = self.view;
                self.send(Peer::Replica(from), Message::WrongView { view });
            }
            return;
        }
        if self.configuration_of(view).has(from) {
            self.on_start_view_change(from, view, ViewChangeReason::Moved);
        }
        if view == self.view && self.leader() == self.config.replica && !self.is_normal() {
            self.hear_late_clock(from, change.clock);
            self.add_change(from, change);
        }
    }

    fn add_change(&mut self, from: ReplicaId, change: DoViewChange) {
        let Role::ViewChange(state) = &mut self.role else { return };
        if !state.chosen.is_empty() {
            // It has brought a clock, if nothing else.
            return self.try_start_view();
        }
        state.changes.insert(from, change);
        let Some((chosen, senders)) = self.choose_changes() else { return };
        let patience = self.patience_with_clocks();
        if let Role::ViewChange(state) = &mut self.role {
            (state.chosen, state.senders) = (chosen, senders);
            self.timers.set(Timer::AwaitClocks, self.now.instant.after(patience));
            self.try_start_view();
        }
    }

    /// How long a new leader waits for the clocks of members that know that the leader has gone. It does in every attempt, so that must
    /// be over before those who wait for the view lose patience.
    fn patience_with_clocks(&self) -> Duration {
        self.config.settings.resend.min(self.config.settings.view_change_timeout / 2)
    }

    /// New leader: waits longer for the clocks of members that need not have noticed yet that the leader has gone. Whoever of them
    /// lives has missed it when this has passed, joins, and tells its clock.
    fn await_others(&mut self) {
        let (settings, waited) = (&self.config.settings, self.patience_with_clocks());
        let suspect_after = settings.suspect_after;
        if let Role::ViewChange(state) = &mut self.role {
            state.awaits_others = true;
            let patience = (suspect_after + suspect_after / 8).min(settings.view_change_timeout * 7 / 8);
            self.timers.set(Timer::AwaitClocks, self.now.instant.after(patience.saturating_sub(waited)));
        }
    }

    /// New leader: whose DoViewChanges the view goes on from, and all that make it a view, if they do.
    fn choose_changes(&self) -> Option<(Vec<ReplicaId>, ReplicaSet)> {
        let Role::ViewChange(state) = &self.role else { return None };
        let configuration = &self.config.configuration;
        let (me, ours) = (self.config.replica, configuration.id.epoch);
        let is_of_before = |sender: &ReplicaId| state.changes[sender].last_normal.epoch() < ours;
        let mut members: Vec<ReplicaId> = state.changes.keys().copied().collect();
        members.retain(|sender| *sender != me && configuration.has(*sender));
        // Those that have been in a view of this configuration first: what they say is all that is needed.
        members.sort_by_key(is_of_before);
        // Exactly f + 1: with more, two recovered updates need not share a log.
        let others = members.into_iter().take(configuration.majority() - 1);
        let quorum: Vec<ReplicaId> = core::iter::once(me).chain(others).collect();
        if !state.changes.contains_key(&me) || quorum.len() < configuration.majority() {
            return None;
        }
        let senders: ReplicaSet = quorum.iter().copied().collect();
        let Some(before) = &configuration.before else { return Some((quorum, senders)) };
        if !quorum.iter().all(is_of_before) || self.planted(PlantedBug::OldQuorumSkipped) {
            return Some((quorum, senders));
        }
        // Nobody here has been in a view of this configuration: what was completed in the one before is known to a majority
        // of that, and to nobody else.
        let mut voters: Vec<ReplicaId> = state.changes.keys().copied().collect();
        voters.retain(|sender| before.group().has(*sender));
        voters.sort_by_key(|sender| *sender != me);
        voters.truncate(before.group().majority());
        // One that the group has grown by has none of that itself.
        let may_begin = !before.group().has(me) && !self.planted(PlantedBug::NewMembersNeverBegin);
        let has_own = voters.first() == Some(&me) || may_begin;
        let suffice = voters.len() == before.group().majority() && has_own;
        suffice.then_some((voters, senders))
    }

    /// New leader: starts the view once it has `f + 1` DoViewChanges and the best log's beginning.
    pub(super) fn try_start_view(&mut self) {
        let (suffice, lacks_others) = (self.clocks_suffice(), self.lacks_clock_of_others());
        let Role::ViewChange(state) = &mut self.role else { return };
        let may_hear_more = lacks_others || !state.awaits_others;
        let waits = !suffice && may_hear_more && self.timers.is_running(Timer::AwaitClocks, self.now.instant);
        if state.chosen.is_empty() || waits {
            return;
        }
        self.timers.stop(Timer::AwaitClocks);
        let chosen: Vec<(ReplicaId, &DoViewChange)> =
            state.chosen.iter().map(|sender| (*sender, &state.changes[sender])).collect();
        #[cfg(feature = "planted-bugs")]
        let by_length = self.config.planted == Some(PlantedBug::StaleLogChosen);
        #[cfg(not(feature = "planted-bugs"))]
        let by_length = false;
        let rank = |change: &DoViewChange| {
            if by_length { (View(0), change.op_number()) } else { (change.last_normal, change.op_number()) }
        };
        // Among equals this replica's own, which comes first: nothing to transfer.
        let mut best = chosen[0];
        for candidate in &chosen[1..] {
            if rank(candidate.1) > rank(best.1) {
                best = *candidate;
            }
        }
        let (source, base, base_view) = (best.0, best.1.commit, best.1.commit_view);
        let own = source == self.config.replica;
        let agrees = self.commit >= base || self.log.view_at(base) == Some(base_view);
        if !own && !agrees {
            // Each part that arrives asks for the next one.
            if state.source.replace(source) != Some(source) {
                let (view, first) = (self.view, self.commit.next());
                self.trace(TraceEvent::TransferBegan { view, from: source, first });
                self.request_transfer();
            }
            return;
        }
        let mut all = core::mem::take(&mut state.changes);
        let senders = core::mem::take(&mut state.chosen);
        let counted = core::mem::take(&mut state.senders);
        // The newest log has all that is committed.
        let is_right = |change: &DoViewChange| {
            let has_committed =
                change.op_number() >= self.commit || self.planted(PlantedBug::PeersNotValidated);
            has_committed && self.continues(base, &change.suffix)
        };
        if !own && all.get(&source).is_some_and(|change| !is_right(change)) {
            // No right member has such a log. There may be others to go by.
            all.remove(&source);
            self.counters.refused += 1;
            if let Role::ViewChange(state) = &mut self.role {
                state.changes = all;
            }
            return;
        }
        let changes =
            senders.into_iter().filter_map(|sender| all.remove(&sender).map(|change| (sender, change)));
        let changes = changes.collect();
        self.start_view(source, changes, counted);
    }

    /// New leader: takes the best log, recovers the durability logs into it, and opens the view.
    fn start_view(
        &mut self,
        source: ReplicaId,
        changes: Vec<(ReplicaId, DoViewChange)>,
        senders: ReplicaSet,
    ) {
        let commit = changes.iter().map(|(_, change)| change.commit).max().unwrap_or_default();
        let newest = changes.iter().map(|(_, change)| change.last_normal).max().unwrap_or_default();
        let rule = changes.iter().find(|(_, change)| change.last_normal == newest);
        let rule = self.config.configuration.known_rule(rule.and_then(|(_, change)| change.rule));
        let rule = if self.planted(PlantedBug::RuleOfOwnView) { self.rule } else { rule };
        let next_rule = self.next_rule(rule, newest, senders);
        let as_made = self.planted(PlantedBug::ModeOfConfiguration);
        let rule = if as_made { FastRule { mode: self.config.configuration.mode, ..rule } } else { rule };
        let mut dlogs = Vec::new();
        let mut unchanged = self.log.op_number();
        for (sender, change) in changes {
            let end = change.op_number();
            if sender == source && sender != self.config.replica {
                unchanged = self.reconcile(change.commit, change.suffix).0;
                self.truncate(end);
                unchanged = unchanged.min(end);
            }
            let is_active = rule.active.contains(sender) || self.planted(PlantedBug::PassiveRecovered);
            if change.last_normal == newest && is_active {
                dlogs.push(change.dlog);
            }
        }
        let recovered = self.recover_updates(rule, newest, dlogs);
        self.dlog.clear();
        if !recovered.is_empty() {
            let payload = Payload::Recovered(recovered.into_boxed_slice());
            self.append_entry(LogEntry { view: self.view, time: self.log_time(), payload });
        }
        if newest.epoch() < self.view.epoch() && self.config.configuration.before.is_some() {
            // When this is committed, the configuration before is not needed any more.
            let payload = Payload::Tick;
            self.append_entry(LogEntry { view: self.view, time: self.log_time(), payload });
        }
        self.commit = self.commit.max(commit.min(self.log.op_number()));
        self.become_normal(next_rule, unchanged);
        self.send_start_view_to_all();
        self.advance_commit();
    }

    /// What the durability logs hold that is not in the log, selected and ordered.
    fn recover_updates(&self, rule: FastRule, newest: View, dlogs: Vec<Vec<Request>>) -> Vec<Update> {
        if self.planted(PlantedBug::RecoverNothing) {
            return Vec::new();
        }
        let dlogs: Vec<Vec<Update>> = dlogs.into_iter().map(|dlog| self.describe_all(dlog)).collect();
        let acknowledged = self.acknowledged_in_log();
        let may_recover = |id: OperationId| {
            let is_acknowledged = acknowledged.get(&id.session).is_some_and(|below| id.sequence < *below);
            self.may_recover(id) && !is_acknowledged
        };
        let logs: Vec<Vec<&Update>> = dlogs
            .iter()
            .map(|dlog| dlog.iter().filter(|update| may_recover(update.request.id)).collect())
            .collect();
        #[cfg(feature = "planted-bugs")]
        if let Some(wrong) = self.recover_wrongly(rule, &logs) {
            return wrong;
        }
        let group = if self.planted(PlantedBug::FaultsOfOtherSize) {
            self.config.configuration.group()
        } else {
            self.configuration_of(newest).group()
        };
        let recovered = self.recover_rightly(rule, group, &logs);
        recovered.into_iter().cloned().collect()
    }

    /// Per session: the operations before this one are acknowledged by entries of the log that are not executed here. What
    /// of them was completed comes before those entries in the log, as with entries that are executed; what their client
    /// has given up it would be surprised to see take effect after its later updates.
    fn acknowledged_in_log(&self) -> BTreeMap<SessionId, u64> {
        let mut acknowledged = BTreeMap::new();
        if self.planted(PlantedBug::AcknowledgedInLogRecovered) {
            return acknowledged;
        }
        let unexecuted =
            (self.applied.0 + 1..=self.log.op_number().0).filter_map(|n| self.log.entry(OpNumber(n)));
        for request in unexecuted.flat_map(LogEntry::updates).map(|update| &update.request) {
            let below = acknowledged.entry(request.id.session).or_insert(0);
            // A client never acknowledges what it has just issued.
            *below = request.acked_below.min(request.id.sequence).max(*below);
        }
        acknowledged
    }

    fn recover_rightly<'a>(&self, rule: FastRule, group: Group, logs: &[Vec<&'a Update>]) -> Vec<&'a Update> {
        let overwrites = self.config.overwrites;
        recover(rule, group, logs, |newer, older| overwrites(&newer.request.body, &older.request.body))
    }

    pub(super) fn may_recover(&self, id: OperationId) -> bool {
        !self.backlog.ordered.contains_key(&id) && !self.is_dealt_with(id)
    }

    /// True if what was executed here includes the update, or the end of its session.
    pub(super) fn is_dealt_with(&self, id: OperationId) -> bool {
        match self.sessions.lookup(id) {
            // Beyond the window is beyond that of what has been executed here, which may be long ago.
            OperationStatus::New | OperationStatus::BeyondWindow => false,
            OperationStatus::UnknownSession => id.session.0 <= self.applied.0,
            OperationStatus::Executed(_) | OperationStatus::ReplyDropped | OperationStatus::Acknowledged => {
                !self.planted(PlantedBug::NoDeduplication)
            }
        }
    }

    #[cfg(feature = "planted-bugs")]
    fn recover_wrongly(&self, rule: FastRule, logs: &[Vec<&Update>]) -> Option<Vec<Update>> {
        let count = |id| logs.iter().filter(|log| log.iter().any(|update| update.request.id == id)).count();
        let mut union: Vec<Update> = Vec::new();
        for update in logs.iter().flatten() {
            if union.iter().all(|other| other.request.id != update.request.id) {
                union.push((*update).clone());
            }
        }
        let group = self.config.configuration.group();
        let threshold = |update: &Update| rule.recovery_quorum(group, update.strength(), logs.len());
        match self.config.planted? {
            PlantedBug::RecoverEverything => {
                union.retain(|update| count(update.request.id) >= threshold(update));
                union.sort_by_key(|update| update.request.timestamp());
            }
            PlantedBug::RecoverInArrivalOrder => {
                union.retain(|update| count(update.request.id) >= threshold(update));
                let right = self.recover_rightly(rule, group, logs);
                union.retain(|update| right.iter().any(|kept| kept.request.id == update.request.id));
            }
            PlantedBug::RecoveryThresholdTooHigh => {
                union.retain(|update| count(update.request.id) > threshold(update));
                union.sort_by_key(|update| update.request.timestamp());
            }
            PlantedBug::StrongByUnion => {
                let right = self.recover_rightly(rule, group, logs);
                let is_right =
                    |update: &Update| right.iter().any(|kept| kept.request.id == update.request.id);
                union.retain(|update| update.strength() == syros_types::Strength::Strong || is_right(update));
                union.sort_by_key(|update| update.request.timestamp());
            }
            _ => return None,
        }
        Some(union)
    }

    /// Normal in the current view, with a log that was left as it was up to `unchanged`.
    fn become_normal(&mut self, rule: FastRule, unchanged: OpNumber) {
        self.rule = rule;
        self.take_part(Some(self.now.instant));
        self.last_normal = self.view;
        self.counters.view_changes += 1;
        self.rebuild_pending();
        if !self.planted(PlantedBug::AnyViewAccepted) {
            self.attachments.forget_sessions();
        }
        match self.config.durability {
            super::Durability::Fsync => {
                let (view, commit) = (self.view, self.commit);
                let suffix = self.log.suffix(unchanged);
                let rule = self.told_rule();
                let ticket = self.persist(Record::EnterView { view, rule, base: unchanged, commit, suffix });
                self.persistence.set_view_ticket(ticket);
            }
            super::Durability::Replicated => self.persist_view(),
        }
        self.on_append();
        self.trace_entered();
        let view = self.view;
        for address in self.later_views.take_clients() {
            self.send(Peer::Client(address), Message::WrongView { view });
        }
    }

    /// Takes part in its view, as it has since `entered_at`; `None` if it starts with it.
    pub(super) fn take_part(&mut self, entered_at: Option<Instant>) {
        let now = self.now.instant;
        let suspect_at = self.next_suspicion();
        if self.leader() == self.config.replica {
            let mut leader =
                Leader::new(self.config.configuration.size(), now, entered_at, self.log.op_number());
            leader.began_within = self.missed_timeout();
            let timers = Timers::stopped()
                .with(Timer::Heartbeat, now)
                .with(Timer::Review, now.after(self.config.settings.heartbeat))
                .with(Timer::Sessions, now.after(self.config.settings.session_timeout / 8));
            self.enter(Role::Leader(leader), timers);
        } else {
            let timers = Timers::stopped()
                .with(Timer::Suspect, suspect_at)
                .with(Timer::Forward, now.after(self.config.settings.forward_after));
            self.enter(Role::Follower(Follower::new(now)), timers);
        }
    }

    /// Follower: the leader is to be told how far this replica's log is, in answer to nothing that it has sent.
    pub(super) fn owe_ack(&mut self) {
        if let Role::Follower(follower) = &mut self.role {
            follower.owe_ack(Instant(0));
        }
    }

    pub(super) fn start_view_message(&self) -> Message {
        self.start_view_of(self.log.suffix(self.commit))
    }

    fn start_view_of(&self, suffix: Vec<LogEntry>) -> Message {
        let base = self.commit;
        Message::StartView(Box::new(StartView {
            view: self.view,
            rule: self.told_rule(),
            base,
            base_view: self.log.view_at(base).unwrap_or_default(),
            commit: self.announced_commit(),
            suffix,
        }))
    }

    fn send_start_view_to_all(&mut self) {
        let message = self.start_view_message();
        self.broadcast(&message);
    }

    fn send_start_view(&mut self, to: ReplicaId) {
        let message = self.start_view_message();
        self.send(Peer::Replica(to), message);
    }

    /// Asks to be let into a view that has started without this replica.
    pub(super) fn ask_for_start_view(&mut self, view: View) {
        let entered = view == self.view && self.is_normal();
        let forbidden = view == self.view && matches!(self.role, Role::Recovering(_));
        let leader = self.leader_of(view);
        // While one view's log is on its way that view is not asked for again. The source may have died since, so a later
        // view is.
        let is_coming = self.role.transfer().is_some_and(|transfer| {
            transfer.start.view >= view || self.planted(PlantedBug::DeadSourceAskedOn)
        });
        if view < self.view || entered || forbidden || leader == self.config.replica || is_coming {
            return;
        }
        if !self.later_views.may_ask(self.now.instant, self.config.settings.resend) {
            return;
        }
        let commit = self.commit;
        self.send(Peer::Replica(leader), Message::GetStartView { view, commit });
    }

    pub(super) fn on_get_start_view(&mut self, from: ReplicaId, view: View) {
        if !self.is_leader() || view > self.view {
            return;
        }
        if self.config.configuration.has(from) {
            return self.send_start_view(from);
        }
        // A learner asks again and again, and wants to know how far the log is committed.
        let message = self.start_view_of(Vec::new());
        self.send(Peer::Replica(from), message);
    }

    pub(super) fn on_start_view(&mut self, from: ReplicaId, start: StartView) {
        if self.is_learner() {
            return self.learn_from(from, start);
        }
        let view = start.view;
        let entered = view == self.view && self.is_normal();
        let forbidden = view == self.view && matches!(self.role, Role::Recovering(_));
        let is_older = self.role.transfer().is_some_and(|transfer| transfer.start.view > view);
        if from != self.leader_of(view) || view < self.view || entered || forbidden || is_older {
            return;
        }
        if self.agrees_up_to(start.base, start.base_view) {
            if self.continues(start.base, &start.suffix) {
                self.enter_as_follower(start);
            } else {
                self.counters.refused += 1;
            }
            return;
        }
        if !matches!(self.role, Role::Recovering(_)) && view > self.view {
            // The group has moved on: this replica stops acting in its view before it takes over
            // entries of later ones.
            self.trace_left(view, ViewChangeCause::Followed(from));
            self.leave_for(view, self.config.settings.view_change_timeout);
            self.persist_view();
        }
        if matches!(self.role, Role::Recovering(_)) && !self.planted(PlantedBug::AmnesiacGoesBack) {
            // Entries of this view must not get into the log of an earlier one. What this replica loses when it is started
            // again is only what it fetches now.
            self.adopt_configuration_of(view);
            self.view = self.view.max(View(view.0.saturating_sub(1)));
        }
        if self.role.transfer().is_none_or(|transfer| transfer.start.view != view) {
            self.trace(TraceEvent::TransferBegan { view, from, first: self.commit.next() });
        }
        if let Some(transfer) = self.role.transfer_mut() {
            *transfer = Some(Transfer { from, start: Box::new(start) });
        }
        self.request_transfer();
    }

    /// Follower: the new view's log replaces this one's, and the durability log is cleared.
    pub(super) fn enter_as_follower(&mut self, start: StartView) {
        let StartView { view, rule, base, commit, suffix, .. } = start;
        if self.is_normal() {
            self.trace_left(view, ViewChangeCause::Followed(self.leader_of(view)));
        }
        // Not normal while the log changes hands.
        self.leave_for(view, self.config.settings.view_change_timeout);
        let end = OpNumber(base.0 + suffix.len() as u64);
        let (unchanged, _) = self.reconcile(base, suffix);
        // A transfer may have brought entries that were committed after this StartView was sent.
        self.truncate(end.max(self.commit));
        if !self.planted(PlantedBug::DlogNotCleared) {
            self.dlog.clear();
        }
        self.commit = self.commit.max(commit.min(self.log.op_number()));
        self.become_normal(self.config.configuration.known_rule(rule), unchanged);
        if let Role::Follower(follower) = &mut self.role {
            follower.leader_commit = commit;
            follower.owe_ack(Instant(0));
        }
    }
}
