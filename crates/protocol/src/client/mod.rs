//! The client: it counts the fast quorums, so it is as much a part of the protocol as the replicas.
//!
//! A nilext update goes to every replica; it is done when enough of one view, the leader among them,
//! have answered `Ok`. Everything else, and every update that cannot be fast, goes to the leader.
//! What is not answered is sent again under the same id; a new view makes the client send everything
//! outstanding again, with new timestamps.

mod api;
mod clocks;
mod direct;
mod direct_answers;
#[cfg(feature = "model")]
mod fingerprint;
mod members;
mod reads;
mod session;
#[cfg(test)]
mod tests;
mod updates;
mod way_times;

pub use api::{Action, Busy, Config, Event, Outcome, Settings, Token};
pub use reads::ReadCounts;
pub use updates::WriteCounts;
pub use way_times::{TimesOfWay, Way};

use crate::message::{Asked, Body, Message, Refusal};
use crate::replica::PlantedBug;
use alloc::collections::VecDeque;
use clocks::Clocks;
use core::time::Duration;
use members::Members;
use reads::{Latencies, Read};
use session::{Active, Session};
use syros_types::room::shrink_queue;
use syros_types::{
    Class, Configuration, ConfigurationEpoch, FastRule, Footprint, Group, Instant, Now, OperationId, Prng,
    ReadPolicy, Reconfiguration, ReplicaId, ReplicaSet, View, WallTime, Window, WritePolicy,
};
use updates::{Update, WriteTimes};
use way_times::WayTimes;

/// What usually takes long makes a client wait for no more than this part of the time after which it gives up, before it
/// tries again. A single operation that took long, because a disk stood still or a value was huge, must not keep the
/// client from what has happened since.
const PATIENCE_PART: u32 = 4;

/// A timeout that a cluster under load, or a distant one, does not run into: answers that usually take so many
/// nanoseconds are not lost, and sending everything again would only add to the load.
fn patience(timeout: Duration, usual: u64, settings: &Settings) -> Duration {
    let longest = settings.give_up_after / PATIENCE_PART;
    timeout.max(Duration::from_nanos(usual.saturating_mul(4)).min(longest))
}

/// The shortest time of late that a replica took to answer, in nanoseconds: how far it is, whatever waits there. 0 if that
/// is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Distance {
    shortest: u64,
    /// When it was last taken to be a little farther.
    raised: Instant,
}

impl Distance {
    /// A replica is taken to be a little farther away if it has not been as near for so long.
    const RAISE_INTERVAL: Duration = Duration::from_secs(1);

    const UNKNOWN: Self = Self { shortest: 0, raised: Instant(0) };

    /// An answer took so long.
    fn on_answer(&mut self, took: u64, now: Instant) {
        if self.shortest == 0 || took < self.shortest {
            self.shortest = took.max(1);
        } else if self.raised.after(Self::RAISE_INTERVAL) <= now {
            // Lest what was near once be taken for near for ever.
            self.shortest += self.shortest / 8 + 1;
            self.raised = now;
        }
    }
}

/// The smoothed value of what is measured again and again; 0 is none.
const fn smooth(old: u64, new: u64) -> u64 {
    if old == 0 { new } else { old - old / 4 + new / 4 }
}

/// Times that differ by less than this, in nanoseconds, are about equal.
const NEAR: u64 = 200_000;

/// One client of a cluster, with one session.
#[derive(Clone, Debug)]
pub struct Client {
    config: Config,
    now: Now,
    prng: Prng,
    view: View,
    /// By what the view counts: what a replica has said of it, or else as in the view before with everybody active.
    rule: FastRule,
    /// The leader of the view has said so.
    rule_is_told: bool,
    session: Session,
    last_update: Instant,
    updates: Window<Update>,
    reads: Window<Read>,
    last_token: Token,
    members: Members,
    clocks: Clocks,
    /// Updates that wait for another session, because this one's timestamps are too far ahead.
    held: VecDeque<Update>,
    scan_at: Instant,
    write_times: WriteTimes,
    /// Until when the leader of the view wants updates, and reads, to itself alone, if it has said so last.
    advised: [Option<Instant>; 2],
    write_counts: WriteCounts,
    latencies: Latencies,
    read_counts: ReadCounts,
    way_times: WayTimes,
    actions: VecDeque<Action>,
}

impl Client {
    /// A client that knows no replica to be reachable yet.
    #[must_use]
    pub const fn new(config: Config, now: Now) -> Self {
        Self {
            prng: Prng::new(config.seed),
            now,
            view: View::of_epoch(config.configuration.id.epoch, 0),
            rule: config.configuration.rule(),
            rule_is_told: false,
            session: Session::None,
            last_update: now.instant,
            updates: Window::new(1, config.settings.in_flight_max),
            reads: Window::new(1, config.settings.in_flight_max),
            config,
            last_token: Token(0),
            members: Members::new(now.instant),
            clocks: Clocks::new(),
            held: VecDeque::new(),
            scan_at: Instant::NEVER,
            write_times: WriteTimes::new(),
            advised: [None; 2],
            write_counts: WriteCounts { fast: 0, leader: 0, ordered: 0 },
            latencies: Latencies::new(),
            read_counts: ReadCounts {
                leader: 0,
                meta: 0,
                quorum: 0,
                rinsed: 0,
                referred: 0,
                several: 0,
                stale: 0,
            },
            way_times: WayTimes::new(),
            actions: VecDeque::new(),
        }
    }

    /// Takes on an operation. `class` and `footprint` are what the state machine says of `body`. Reads follow
    /// the policy of the configuration.
    ///
    /// # Errors
    /// [`Busy`] if `in_flight_max` operations are in flight.
    pub fn submit(
        &mut self,
        now: Now,
        body: Body,
        class: Class,
        footprint: &Footprint,
    ) -> Result<Token, Busy> {
        self.submit_with(now, body, class, footprint, None)
    }

    /// As [`Self::submit`]; a read follows this policy, if one is given.
    ///
    /// # Errors
    /// [`Busy`] if `in_flight_max` operations are in flight.
    pub fn submit_with(
        &mut self,
        now: Now,
        body: Body,
        class: Class,
        footprint: &Footprint,
        policy: Option<ReadPolicy>,
    ) -> Result<Token, Busy> {
        self.now = now;
        let policy = policy.unwrap_or(self.config.settings.read_policy);
        // The slots count, not the live ones: one stuck operation must not let the window grow on.
        if self.updates.slots() + self.held.len() + self.reads.slots() >= self.config.settings.in_flight_max {
            return Err(Busy { in_flight_max: self.config.settings.in_flight_max });
        }
        self.last_token.0 += 1;
        let token = self.last_token;
        if self.members.quorum_lost && !(class == Class::Read && self.may_answer(policy)) {
            let outcome = Outcome::NoQuorum;
            self.actions.push_back(Action::Completed { token, outcome, applied: None, way: None });
            return Ok(token);
        }
        if class == Class::Read {
            let number = self.reads.push(self.new_read(token, body, policy, footprint));
            self.send_read(number);
        } else {
            self.refresh_session();
            self.last_update = now.instant;
            let update = self.new_update(token, body, class, footprint);
            if self.is_ahead() {
                self.held.push_back(update);
            } else {
                self.begin_update(update);
            }
        }
        self.schedule_scan();
        Ok(token)
    }

    /// Takes in one event.
    pub fn handle(&mut self, now: Now, event: Event) {
        self.now = now;
        match event {
            Event::Message { from, message } => {
                if let Message::Configuration(known) = &message {
                    self.on_configuration(**known);
                }
                // One that takes part in no view names none, of no epoch, when it refuses a read: it says no more than that.
                let names_no_view = matches!(message, Message::ReadRefused { view: View(0), .. });
                // A stale read is of whatever state a replica has, also of one that takes part in no view.
                let counts = message.view().is_none_or(|view| {
                    view.epoch() == self.view.epoch()
                        || names_no_view
                        || self.answers_stale_read(&message)
                        || self.counts_epoch(from, view.epoch())
                });
                if self.config.configuration.has(from) && counts {
                    let is_behind = matches!(message, Message::WrongView { view } if view < self.view);
                    let may_enter = self.members.on_heard(from, is_behind);
                    if may_enter && !self.planted(PlantedBug::AttachmentKept) {
                        // When it enters the view, it forgets what it has been shown.
                        self.session.forget_shown(ReplicaSet::default().with(from));
                    }
                    if from == self.leader() {
                        self.members.leader_heard = now.instant;
                    }
                    self.on_message(from, message);
                }
            }
            Event::Connected(replica) => {
                self.members.on_connected(replica);
                self.session.forget_shown(ReplicaSet::default().with(replica));
                self.send_outstanding_to(replica);
                if self.in_flight() > 0 && replica != self.leader() {
                    // It may know of a later view.
                    self.ask_view(replica);
                }
                let is_first = matches!(self.session, Session::None);
                if is_first && replica == self.leader() && self.config.registers_early {
                    self.last_update = now.instant;
                    self.register();
                }
            }
            Event::TellsNoConfiguration(replica) => {
                self.members.tell_none = self.members.tell_none.with(replica);
            }
            Event::Disconnected(replica) => {
                self.members.connected = self.members.connected.without(replica);
                if replica == self.leader() {
                    // It tells those that are connected, and tells this client again when it is.
                    self.advised = [None; 2];
                }
                if self.members.quorum_lost {
                    self.give_up_all();
                }
                self.for_each_update(|client, sequence| {
                    let awaited = |update: &mut Update| {
                        update.recipients.contains(replica) && !update.oks.contains(replica)
                    };
                    if client.updates.get_mut(sequence).is_some_and(awaited) {
                        client.on_no_ok(replica, sequence);
                    }
                });
            }
            Event::QuorumReachable(reachable) => {
                self.members.quorum_lost = !reachable;
                if !reachable {
                    self.give_up_all();
                }
            }
            Event::Tick => {}
        }
        if now.instant >= self.scan_at {
            self.scan();
        }
        if !self.held.is_empty() && self.updates.live() == 0 {
            self.refresh_session();
            while let Some(update) = self.held.pop_front() {
                self.begin_update(update);
            }
            shrink_queue(&mut self.held);
        }
    }

    /// An update becomes one of the session, and goes out as soon as there is one.
    fn begin_update(&mut self, update: Update) {
        let sequence = self.updates.push(update);
        match self.session {
            Session::Active(Active { id, .. }) => self.send_update(id, sequence),
            // Nobody has waited for it so far: it, or its answer, may have been lost long ago.
            Session::Registering { sent, .. } => {
                if self.now.instant.since(sent) >= self.config.settings.resend {
                    self.register();
                }
            }
            Session::None | Session::Abandoned { .. } => self.register(),
        }
    }

    /// True if the session's timestamps are further ahead of the replicas' clocks than replicas accept: one of them was
    /// wrong for a moment, or this process's own clock was. Timestamps of a session only grow, so its updates would
    /// take the longer way until the clocks have caught up. Another session begins anew.
    fn is_ahead(&self) -> bool {
        let Session::Active(session) = &self.session else { return false };
        self.clocks.is_ahead(session.last_micros, self.now) && !self.planted(PlantedBug::ClockOfAnybody)
    }

    /// The next thing to do; `None` when there is nothing.
    pub fn poll(&mut self) -> Option<Action> {
        if self.actions.is_empty() {
            shrink_queue(&mut self.actions);
        }
        self.actions.pop_front()
    }

    /// When to call `handle` with [`Event::Tick`] if nothing else happens before.
    #[must_use]
    pub const fn deadline(&self) -> Instant {
        self.scan_at
    }

    /// Operations in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.updates.live() + self.held.len() + self.reads.live()
    }

    /// The token of the read with this number ([`Message::Read`]), if it has not ended.
    #[must_use]
    pub fn token_of_read(&self, number: u64) -> Option<Token> {
        self.reads.get(number).map(|read| read.token)
    }

    /// The token of the update with this id, if it is of the present session and has not ended.
    #[must_use]
    pub fn token_of_update(&self, id: OperationId) -> Option<Token> {
        let Session::Active(session) = &self.session else { return None };
        let update = self.updates.get(id.sequence).filter(|_| session.id == id.session)?;
        Some(update.token)
    }

    /// Forgets the read with this number, which nobody waits for any more. Gives back its body if it had not ended.
    pub fn abandon_read(&mut self, number: u64) -> Option<Body> {
        self.remove_read(number).map(|read| read.body)
    }

    /// By what the view counts fast quorums, as far as is known.
    #[must_use]
    pub const fn rule(&self) -> FastRule {
        self.rule
    }

    /// The newest view this client has heard of.
    #[must_use]
    pub const fn view(&self) -> View {
        self.view
    }

    /// All members of the group.
    pub fn members(&self) -> impl Iterator<Item = ReplicaId> + use<> {
        self.config.configuration.members()
    }

    /// The members that are connected.
    #[must_use]
    pub const fn connected(&self) -> ReplicaSet {
        self.members.connected
    }

    /// The members that are connected, and that have answered in time of late.
    #[must_use]
    pub const fn reachable(&self) -> ReplicaSet {
        self.members.usable()
    }

    /// Whether an answer given in this other epoch counts. What replicas say in a newer epoch counts alone: everything that was
    /// counted before it begins again, because a quorum of one configuration need not meet a quorum of another. Nothing said
    /// in it counts before its configuration is known: the group may have another size.
    fn counts_epoch(&mut self, from: ReplicaId, epoch: ConfigurationEpoch) -> bool {
        if self.planted(PlantedBug::MixedEpochAnswers) {
            return true;
        }
        let ours = self.view.epoch();
        if epoch < ours {
            return false;
        }
        if !self.members.tell_none.contains(from) && !self.planted(PlantedBug::SizeOfBefore) {
            self.ask_configuration(from);
            return false;
        }
        // Of a build with which no group has another size.
        self.begin_epoch(epoch);
        true
    }

    /// Asks for the configuration of the newer epoch that a replica has answered in.
    fn ask_configuration(&mut self, from: ReplicaId) {
        let now = self.now.instant;
        let asked = &mut self.members.asked_configuration[from.index()];
        if asked.is_none_or(|asked| now.since(asked) >= self.config.settings.resend) {
            *asked = Some(now);
            let epoch = self.view.epoch();
            self.send(from, Message::GetConfiguration { epoch });
        }
    }

    /// A replica acts in this configuration.
    fn on_configuration(&mut self, known: Reconfiguration) {
        if known.epoch <= self.view.epoch() {
            return;
        }
        let Reconfiguration { epoch, roster, .. } = known;
        self.config.configuration = self.config.configuration.after(known);
        let members = ReplicaSet::of(roster.group());
        self.members.connected = self.members.connected.within(members);
        self.members.asked_configuration = [None; Group::SIZE_MAX];
        self.begin_epoch(epoch);
        self.actions.push_back(Action::Reconfigured(known));
    }

    fn begin_epoch(&mut self, epoch: ConfigurationEpoch) {
        // What has not left yet was meant for the old configuration, and is sent again.
        self.actions.retain(|action| !matches!(action, Action::Send { .. }));
        self.begin_view(View::of_epoch(epoch, 0));
    }

    /// The newest configuration that this client has heard of.
    #[must_use]
    pub const fn configuration(&self) -> &Configuration {
        &self.config.configuration
    }

    fn leader(&self) -> ReplicaId {
        self.config.configuration.leader(self.view)
    }

    fn on_message(&mut self, from: ReplicaId, message: Message) {
        match message {
            Message::Ok { view, rule, id, clock } => {
                self.on_clock(from, clock);
                if let Some(sequence) = self.own(id) {
                    self.on_ok(from, view, rule, sequence);
                }
                self.observe_view(view);
            }
            Message::Conflict { view, id, clock } => {
                self.on_clock(from, clock);
                if let Some(sequence) = self.own(id)
                    && view == self.view
                {
                    self.on_no_ok(from, sequence);
                }
                self.observe_view(view);
            }
            Message::Committed { view, id, clock, reply } => {
                // How far a follower is that answers directly may not be known.
                if from == self.leader() {
                    self.on_clock(from, clock);
                }
                if let Some(sequence) = self.own(id) {
                    self.on_committed(from, sequence, reply);
                }
                self.observe_view(view);
            }
            Message::Evaluated { view, id, reply } => {
                if let Some(sequence) = self.own(id) {
                    self.on_evaluated(view, sequence, reply);
                }
                self.observe_view(view);
            }
            Message::FastRule { view, rule } => {
                self.observe_view(view);
                if view == self.view && from == self.leader() {
                    self.on_rule(Some(rule));
                }
            }
            Message::Advise { view, of, advice } => {
                self.observe_view(view);
                if view == self.view && from == self.leader() {
                    self.on_advice(of, advice);
                }
            }
            Message::ReadReply { view, number, reply } => {
                self.on_read_reply(from, number, reply);
                self.observe_view(view);
            }
            Message::MemberReply { view, number, applied, freshness, expiry, reply } => {
                self.on_member_reply(from, view, number, (applied, expiry, reply), freshness);
                self.observe_view(view);
            }
            Message::LastChange { view, number, op_number, time } => {
                self.on_last_change(number, op_number, time);
                self.observe_view(view);
            }
            Message::Refused { view, id, clock, refusal } => {
                self.on_clock(from, clock);
                if refusal == Refusal::ClockSkew {
                    self.clocks.on_refused();
                }
                self.on_refused(from, view, id, refusal);
                self.observe_view(view);
            }
            Message::ReadRefused { view, number, refusal } => {
                self.on_read_refused(from, view, number, refusal);
                self.observe_view(view);
            }
            Message::Registered { view, nonce, session } => {
                // One that was given up because nobody waited for it is as good.
                let is_ours = matches!(
                    self.session,
                    Session::Registering { nonce: mine, .. } | Session::Abandoned { nonce: mine } if mine == nonce
                );
                if is_ours {
                    self.session = Session::Active(Active::new(session, nonce));
                    self.for_each_update(|client, sequence| client.send_update(session, sequence));
                }
                self.observe_view(view);
            }
            Message::WrongView { view } => self.observe_view(view),
            // Messages between replicas are not for a client.
            _ => {}
        }
    }

    /// The sequence number of an operation of this session.
    fn own(&self, id: OperationId) -> Option<u64> {
        (self.session.id() == Some(id.session)).then_some(id.sequence)
    }

    /// No session is to be had: what was never sent ends here.
    fn abandon_unsent(&mut self, refusal: Refusal) {
        self.session = match self.session {
            Session::Registering { nonce, .. } => Session::Abandoned { nonce },
            _ => Session::None,
        };
        self.for_each_update(|client, sequence| {
            client.finish_update(sequence, Outcome::Refused(refusal));
        });
    }

    /// True if a read may be answered though nobody is known to lead: any replica's state will do, or so many replicas
    /// are connected that they may answer it as a quorum.
    fn may_answer(&self, policy: ReadPolicy) -> bool {
        policy == ReadPolicy::Stale || self.members.connected.len() >= self.config.configuration.majority()
    }

    /// No majority can be reached: what is in flight ends now, and tells what is known of it.
    fn give_up_all(&mut self) {
        self.for_each_update(|client, sequence| {
            // How long it took says nothing of how long updates take.
            if let Some(update) = client.updates.remove(sequence) {
                let outcome = if update.attempts == 0 { Outcome::NoQuorum } else { Outcome::Unknown };
                let (token, applied, way) = (update.token, None, None);
                client.actions.push_back(Action::Completed { token, outcome, applied, way });
            }
        });
        self.for_each_read(|client, number| {
            let policy = client.reads.get_mut(number).map(|read| read.policy);
            if policy.is_some_and(|policy| !client.may_answer(policy)) {
                client.finish_read(number, Outcome::NoQuorum);
            }
        });
    }

    /// The session has expired. What was sent under it may have been executed before that.
    fn end_session(&mut self) {
        self.for_each_update(|client, sequence| client.finish_update(sequence, Outcome::Unknown));
        self.leave_session();
    }

    /// Sequence numbers begin anew, with another session.
    fn leave_session(&mut self) {
        self.session = Session::None;
        self.updates = Window::new(1, self.config.settings.in_flight_max);
    }

    /// Replaces a session that the cluster may be about to expire, while nothing depends on it.
    fn refresh_session(&mut self) {
        let idle = self.now.instant.since(self.last_update) >= self.config.settings.session_idle_max;
        let is_outdated = idle || self.is_ahead();
        if is_outdated && self.updates.live() == 0 && matches!(self.session, Session::Active(_)) {
            self.leave_session();
        }
    }

    fn register(&mut self) {
        let nonce = match self.session {
            // The same registration, sent again.
            Session::Registering { nonce, .. } => nonce,
            Session::Abandoned { nonce } if !self.planted(PlantedBug::RegistrationAbandoned) => nonce,
            // Never 0, and never that of a session that this client has had: an answer to an older registration must not be
            // taken.
            _ => self.prng.next_u64() | 1,
        };
        self.session = Session::Registering { nonce, sent: self.now.instant };
        let view = self.view;
        self.send(self.leader(), Message::Register { view, nonce });
    }

    fn send(&mut self, to: ReplicaId, message: Message) {
        if self.members.connected.contains(to) {
            self.actions.push_back(Action::Send { to: ReplicaSet::default().with(to), message });
        }
    }

    fn for_each_update(&mut self, mut visit: impl FnMut(&mut Self, u64)) {
        let (mut number, end) = (self.updates.first(), self.updates.end());
        while let Some(live) = self.updates.next_live(number).filter(|live| *live < end) {
            visit(self, live);
            number = live + 1;
        }
    }

    fn for_each_read(&mut self, mut visit: impl FnMut(&mut Self, u64)) {
        let (mut number, end) = (self.reads.first(), self.reads.end());
        while let Some(live) = self.reads.next_live(number).filter(|live| *live < end) {
            visit(self, live);
            number = live + 1;
        }
    }

    /// A replica can be reached again: whatever concerns it goes there.
    fn send_outstanding_to(&mut self, replica: ReplicaId) {
        let leads = replica == self.leader();
        match self.session {
            Session::Active(Active { id: session, .. }) => self.for_each_update(|client, sequence| {
                let unsent = client.updates.get_mut(sequence).is_some_and(|u| u.attempts == 0);
                if unsent {
                    client.send_update(session, sequence);
                } else {
                    client.transmit_again(session, sequence, Some(replica));
                }
            }),
            Session::Registering { .. } if leads => self.register(),
            _ => {}
        }
        if leads {
            self.for_each_read(Self::send_read);
        }
    }

    /// A replica has told its clock.
    fn on_clock(&mut self, from: ReplicaId, clock: WallTime) {
        let distance = self.distance(from);
        self.clocks.on_clock(from, clock, distance, self.now.instant);
    }

    /// A newer view: everything outstanding starts anew in it. One of a newer epoch is known when its configuration is.
    fn observe_view(&mut self, view: View) {
        let is_known = view.epoch() == self.view.epoch() || self.planted(PlantedBug::MixedEpochAnswers);
        if view > self.view && is_known {
            self.begin_view(view);
        }
    }

    /// Everything outstanding starts anew.
    fn begin_view(&mut self, view: View) {
        self.view = view;
        self.rule_is_told = false;
        if !self.planted(PlantedBug::ActiveOfOtherView) {
            self.rule = self.config.configuration.rule();
        }
        // Replicas forget it with the view that they leave.
        self.session.forget_shown(ReplicaSet::ALL);
        self.members.leader_heard = self.now.instant;
        self.write_times.forget_leader();
        self.advised = [None; 2];
        self.latencies.forget_leader();
        match self.session {
            Session::Active(Active { id, .. }) => {
                self.for_each_update(|client, sequence| client.send_update(id, sequence));
            }
            Session::Registering { .. } => self.register(),
            Session::None | Session::Abandoned { .. } => {}
        }
        self.for_each_read(Self::restart_read);
    }

    /// Has everything outstanding looked after before long. A client that waits for stragglers may have set a time for that; if it
    /// is later, the client must not keep still until then: it would give up nothing, send nothing again, and find no other
    /// leader.
    fn schedule_scan(&mut self) {
        // Those that wait for no more than a fast quorum look around for others sooner.
        let Settings { sync_after, resend, session_idle_max, write_policy, .. } = self.config.settings;
        let parts = if write_policy == WritePolicy::Thrifty { 8 } else { 2 };
        let soonest = sync_after.min(resend).min(session_idle_max);
        self.scan_at = self.scan_at.min(self.now.instant.after(soonest / parts));
    }

    /// Looks after everything outstanding: gives up, has the leader order, sends again, probes.
    fn scan(&mut self) {
        self.scan_at = Instant::NEVER;
        self.for_each_update(Self::look_after_update);
        self.for_each_read(Self::look_after_read);
        if let Session::Registering { sent, nonce } = self.session
            && self.now.instant.since(sent) >= self.config.settings.resend
        {
            if self.updates.live() == 0 {
                self.session = Session::Abandoned { nonce };
            } else {
                self.register();
            }
        }
        if self.in_flight() > 0 {
            self.probe();
            self.schedule_scan();
        }
    }

    /// The shortest time lately from a message to a replica until its answer, as far as the client has had one from it.
    #[must_use]
    pub fn round_trip(&self, replica: ReplicaId) -> Option<Duration> {
        Some(self.distance(replica)).filter(|nanoseconds| *nanoseconds > 0).map(Duration::from_nanos)
    }

    /// How far a replica is, in nanoseconds, whatever it was that it answered; 0 if that is not known.
    fn distance(&self, replica: ReplicaId) -> u64 {
        let known = [self.latencies.floor(replica), self.write_times.distances[replica.index()].shortest];
        known.into_iter().filter(|shortest| *shortest > 0).min().unwrap_or_default()
    }

    /// The leader is silent: asks everybody whether there is a newer view, with a request that only
    /// the leader of its view would act on.
    fn probe(&mut self) {
        let now = self.now.instant;
        let leader = self.leader();
        // How far the leader is, and not how long it takes to do what it is asked for: of the kinds of operations that took
        // long there may be none any more. One that cannot be reached is not waited for at all.
        let usual = if self.members.connected.contains(leader) { self.distance(leader) } else { 0 };
        let patience = if self.planted(PlantedBug::PatienceByAverages) {
            let averages = [self.latencies.value(leader), self.write_times.oks[leader.index()]];
            let others = self.write_times.ordered.max(self.write_times.latency);
            let usual = averages.into_iter().fold(others, u64::max);
            self.config.settings.sync_after.max(Duration::from_nanos(usual.saturating_mul(4)))
        } else {
            patience(self.config.settings.sync_after, usual, &self.config.settings)
        };
        if now.since(self.members.leader_heard) < patience || now.since(self.members.probed) < patience {
            return;
        }
        self.members.probed = now;
        for to in self.config.configuration.members() {
            self.ask_view(to);
        }
    }

    /// Asks a replica that has not answered in time for its view: whatever it answers, it answers.
    pub fn ask_whether_it_answers(&mut self, now: Now, replica: ReplicaId) {
        self.now = now;
        self.ask_view(replica);
    }

    /// Asks a replica for its view.
    fn ask_view(&mut self, to: ReplicaId) {
        // An empty body is no operation; a follower answers with its view all the same.
        let (view, asked) = (self.view, Asked::Answer);
        self.send(to, Message::Read { view, number: 0, asked, body: Body::from([]) });
    }

    #[cfg(feature = "planted-bugs")]
    fn planted(&self, bug: PlantedBug) -> bool {
        self.config.planted == Some(bug)
    }

    #[cfg(not(feature = "planted-bugs"))]
    #[expect(clippy::unused_self, reason = "same signature as with planted bugs")]
    const fn planted(&self, _bug: PlantedBug) -> bool {
        false
    }
}
