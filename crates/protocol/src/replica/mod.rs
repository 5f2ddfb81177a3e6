//! The replica: Viewstamped Replication with a durability log in front of it (VR 4, Skyros 4).
//!
//! `handle` an event, drain `poll`, come back at `deadline`. Work that several messages share (one
//! Prepare for all that was ordered, one PrepareOk for all that was appended, one heartbeat for all
//! reads that need one) is emitted when `poll` runs dry, so a driver that handles everything its
//! sockets had ready before it drains gets batching without any timer.
//!
//! The fields of [`Replica`] belong to it in every role. What belongs to one role only is in that variant of `Role`: the
//! replica drops it when it enters another role. Every moment at which the replica does something by itself is a `Timer`; entering
//! a role stops the timers of the last one.

mod active;
mod advice;
mod api;
mod attachments;
mod backlog;
mod booting;
mod clocks;
mod config;
mod configurations;
mod direct;
mod divergence;
mod entry_copies;
#[cfg(feature = "model")]
mod fingerprint;
mod invalid_record;
mod later_views;
mod learner;
mod log_scan;
mod message_checks;
mod ordering;
mod patience;
mod persistence;
mod planted;
mod reads;
mod refusals;
mod replayed_log;
mod requests;
mod resources;
mod restore;
mod role;
mod snapshots;
mod state_transfer;
mod timers;
mod trace;
mod trace_event;
mod view_change;
mod wanted_entries;

#[cfg(test)]
mod tests;

pub use api::{Action, Boot, EntryRef, Event, Returned};
pub use config::{Config, Durability, Settings};
pub use configurations::ReconfigurationObjection;
pub use entry_copies::{DISK_COPIERS_MAX, LAGGING_MAX};
pub use invalid_record::InvalidRecord;
pub use log_scan::LogScan;
#[cfg(feature = "planted-bugs")]
pub use planted::PlantedBug;
#[cfg(not(feature = "planted-bugs"))]
pub(crate) use planted::PlantedBug;
pub use reads::ReadAtOnce;
pub use restore::{Remains, Restored};
pub use trace_event::{ClockError, HandOverReason, TraceEvent, ViewChangeCause};
pub use wanted_entries::{EntriesWanted, ScannedEntries};

use crate::digests::Digests;
use crate::durability_log::DurabilityLog;
use crate::history::ChangeHistory;
use crate::log::Log;
use crate::message::{LogEntry, Message, Peer, Refusal, RoleName, StatusReport};
use crate::record::{Record, Ticket};
use crate::sessions::Sessions;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use backlog::Backlog;
use configurations::{concerns_departing, is_of_departing};
use core::time::Duration;
use later_views::LaterViews;
use learner::{is_of_learner, teaches};
use persistence::Persistence;
use resources::Resources;
use role::{Recovering, Role};
use syros_types::room::shrink_queue;
use syros_types::{
    Configuration, ConfigurationEpoch, FastRule, Group, Instant, Now, OpNumber, Prng, Reconfiguration,
    ReplicaId, SessionId, View, WallTime,
};
use timers::{Timer, Timers};

/// A follower that has seen nothing to append hears of a commit within this time.
const COMMIT_DELAY: Duration = Duration::from_millis(2);

/// One member of the group.
///
/// Invariants, checked after every event: `applied <= commit <= op_number`; normal implies
/// `last_normal == view`; the unemitted batch ends at the end of the log.
#[derive(Clone, Debug)]
pub struct Replica {
    config: Config,
    now: Now,
    prng: Prng,
    role: Role,
    timers: Timers,
    view: View,
    last_normal: View,
    /// That of the last view in which it was normal.
    rule: FastRule,
    active: active::ActiveMembers,
    log: Log,
    commit: OpNumber,
    applied: OpNumber,
    apply_requested: OpNumber,
    dlog: DurabilityLog,
    backlog: Backlog,
    /// What the newest part of the log changes: what is not applied here, and, at the leader, what is not at
    /// every follower.
    history: ChangeHistory,
    sessions: Sessions,
    /// While the session table is full: what clients of its sessions have acknowledged in requests, whether or not those
    /// were taken up. No more entries than sessions.
    acknowledged: BTreeMap<SessionId, u64>,
    attachments: attachments::Attachments,
    digests: Digests,
    /// The end of a segment after which this replica's state is known not to be that of the majority.
    diverged: Option<OpNumber>,
    /// When sessions were last ended because there were too many.
    sessions_ended_at: Instant,
    next_expiry: Option<WallTime>,
    resources: Resources,
    /// The newest configuration that is known to be committed, unless that is the one that the group was made with.
    known_configuration: Option<Reconfiguration>,

    actions: VecDeque<Action>,
    persistence: Persistence,

    /// Until then, what the replica promised before it started.
    promised_until: Instant,
    /// What the members have last told of their wall clocks.
    clocks: [Option<clocks::ClockReading>; Group::SIZE_MAX],
    later_views: LaterViews,
    snapshots: snapshots::Snapshots,

    traced: trace::Traced,
    counters: Counters,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    fast_updates: u64,
    conflicts: u64,
    slow_updates: u64,
    fast_reads: u64,
    slow_reads: u64,
    refused: u64,
    /// Of these, operations, by why they were refused.
    refusals: [u64; Refusal::ALL.len()],
    view_changes: u64,
    divergences: u64,
}

impl Counters {
    /// An operation was refused.
    const fn count_refusal(&mut self, refusal: Refusal) {
        self.refused += 1;
        self.refusals[refusal as usize] += 1;
    }
}

impl Replica {
    /// A replica that has just started.
    ///
    /// # Panics
    /// If the configuration contradicts itself: a replica outside its group, or followers that
    /// suspect their leader before the lease they granted it has ended.
    #[must_use]
    pub fn new(config: Config, boot: Boot, now: Now) -> Self {
        let is_member = |roster: &syros_types::Roster| roster.group().has(config.replica);
        assert!(
            config.node.is_some()
                || is_member(&config.configuration.roster)
                || config.configuration.before.as_ref().is_some_and(is_member),
            "the replica is a member of its group, was one until it shrank, or wants to be one"
        );
        assert!(
            config.settings.suspect_after >= config.settings.lease,
            "a lease ends before its holder is suspected"
        );
        let members = Group::SIZE_MAX;
        let prng = Prng::new(config.seed ^ (u64::from(config.replica.0) << 56));
        let mut replica = Self {
            now,
            prng,
            // What it boots as says what it does.
            role: Role::Recovering(Recovering::default()),
            timers: Timers::stopped(),
            view: View(0),
            last_normal: View(0),
            rule: config.configuration.rule(),
            active: active::ActiveMembers::default(),
            log: Log::new(),
            commit: OpNumber(0),
            applied: OpNumber(0),
            apply_requested: OpNumber(0),
            dlog: DurabilityLog::new(config.settings.dlog_length_max),
            backlog: Backlog::default(),
            history: ChangeHistory::default(),
            sessions: Sessions::default(),
            acknowledged: BTreeMap::new(),
            attachments: attachments::Attachments::default(),
            digests: Digests::after(OpNumber(0), config.settings.digest_entries),
            diverged: None,
            sessions_ended_at: Instant(0),
            next_expiry: None,
            resources: Resources::new(),
            known_configuration: None,
            actions: VecDeque::new(),
            persistence: Persistence::default(),
            promised_until: now.instant.after(config.promised_before),
            clocks: [None; Group::SIZE_MAX],
            later_views: LaterViews::new(members),
            snapshots: snapshots::Snapshots::new(members, &config),
            traced: trace::Traced::new(now.instant),
            counters: Counters::default(),
            config,
        };
        match boot {
            Boot::Fresh if replica.is_departing() && replica.was_member() => replica.boot_departing(),
            Boot::Fresh if replica.is_departing() => replica.boot_learner(),
            // The group has been at work without it.
            Boot::Fresh if replica.is_grown_by() => replica.boot_newcomer(),
            Boot::Fresh
                if replica.config.configuration.id.epoch > ConfigurationEpoch::FIRST
                    && !replica.planted(PlantedBug::NewcomerActs) =>
            {
                replica.boot_amnesiac(View(0));
            }
            Boot::Fresh => {
                replica.view = View::of_epoch(replica.config.configuration.id.epoch, 0);
                replica.last_normal = replica.view;
                replica.take_part(None);
                // On disk before anything depends on it, so that a restart knows this life took place.
                replica.persist_view();
            }
            Boot::Restored(restored) => replica.boot_restored(*restored),
            Boot::Amnesiac { view } => replica.boot_amnesiac(view),
        }
        replica.check_invariants();
        replica
    }

    /// Takes in one event.
    pub fn handle(&mut self, now: Now, event: Event) {
        // Clocks may jump; monotonic time as told to this replica may not go back.
        self.now = Now { instant: self.now.instant.max(now.instant), wall: now.wall };
        match event {
            Event::Message { from, message } => self.on_message(from, message),
            Event::Persisted(ticket) => self.on_persisted(ticket),
            Event::PersistFailed => self.on_persist_failed(),
            Event::LogReopened => self.on_log_reopened(),
            Event::Applied { through, replies } => self.on_applied(through, replies),
            Event::SnapshotTaken { op_number, bytes } => self.on_snapshot_taken(op_number, bytes),
            Event::SnapshotPartWritten { op_number, received } => {
                self.on_snapshot_part_written(op_number, received);
            }
            Event::SnapshotLoaded { head, bytes } => self.on_snapshot_loaded(*head, bytes),
            Event::SnapshotFailed { op_number } => self.on_snapshot_failed(op_number),
            Event::SnapshotUnreadable { op_number } => self.on_snapshot_unreadable(op_number),
            Event::EntriesRead { copier, after, found } => self.on_entries_read(copier, after, found),
            Event::NotEvaluated { to, id } => self.on_not_evaluated(to, id),
            Event::NotRead { to, number, body, time, expiry } => {
                self.on_not_read(to, number, body, time, expiry);
            }
            Event::NextExpiry(moment) => self.next_expiry = moment,
            Event::MemoryRoom { bytes, leader_margin } => {
                (self.resources.memory_room, self.resources.leader_margin) = (bytes, leader_margin);
            }
            Event::CheckpointDue => self.on_checkpoint_due(),
            Event::DiskRoom(bytes) => self.on_disk_room(bytes),
            Event::ClientGone(client) => self.on_client_gone(client),
            Event::MemberConnected(client) => self.attachments.set_member(client),
            Event::OwnFrontEnd(client) => self.attachments.set_own_front_end(client),
            Event::Load(share) => self.on_load(share),
            Event::StepDown => self.step_down(HandOverReason::Stopping),
            Event::PlaceWanted { member, node } => self.on_place_wanted(member, node, false),
            Event::LearnerGone(member) => self.forget_newcomer(member),
            Event::Tick => self.on_tick(),
        }
        self.check_invariants();
    }

    /// The next thing to do; `None` when there is nothing. Drain it after one or several `handle`s.
    pub fn poll(&mut self) -> Option<Action> {
        if self.actions.is_empty() {
            shrink_queue(&mut self.actions);
            self.flush_deferred();
        }
        self.actions.pop_front()
    }

    /// When to call `handle` with [`Event::Tick`] if nothing else happens before.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        let next = self.timers.next();
        if self.is_leader() { next.min(self.expiry_deadline()) } else { next }
    }

    /// The first record that this replica itself waits for, if it does: something goes on when it hears
    /// ([`Event::Persisted`]) that this one is on disk. Of others it may hear later, with the next event, though messages
    /// that wait for them may be on their way already.
    #[must_use]
    pub fn awaited(&self) -> Option<Ticket> {
        let view = (!self.persistence.has_view()).then_some(self.persistence.view_ticket());
        // It counts itself among those that have an entry on disk, or others count it.
        let append =
            self.persistence.first_append().filter(|_| self.is_leader() || self.counts_or_is_counted());
        [view, append].into_iter().flatten().min()
    }

    /// The last record that this replica has emitted.
    #[must_use]
    pub const fn last_ticket(&self) -> Ticket {
        self.persistence.last_ticket()
    }

    /// True if a restart loses what this replica knows, but for its view.
    #[must_use]
    pub const fn is_forgetful(&self) -> bool {
        matches!(self.config.durability, Durability::Replicated)
    }

    /// The log entry with this number.
    ///
    /// # Panics
    /// If the log has no such entry. Every entry that an [`Action::Apply`] covers is there.
    #[must_use]
    pub fn entry(&self, number: OpNumber) -> EntryRef<'_> {
        self.log.entry(number).expect("the log holds every entry that is to be applied")
    }

    /// The number of the last log entry that this replica has.
    #[must_use]
    pub const fn last_entry(&self) -> OpNumber {
        self.log.op_number()
    }

    /// The last applied op number.
    #[must_use]
    pub const fn applied(&self) -> OpNumber {
        self.applied
    }

    /// The commit number.
    #[must_use]
    pub const fn commit(&self) -> OpNumber {
        self.commit
    }

    /// The disk has room for so many bytes: what [`Event::DiskRoom`] told last, less what updates have taken since.
    #[must_use]
    pub const fn disk_room(&self) -> u64 {
        self.resources.disk_room()
    }

    /// The current view.
    #[must_use]
    pub const fn view(&self) -> View {
        self.view
    }

    /// The configuration that it acts in.
    #[must_use]
    pub const fn configuration(&self) -> &Configuration {
        &self.config.configuration
    }

    /// By what its view counts.
    #[must_use]
    pub const fn rule(&self) -> FastRule {
        self.rule
    }

    /// How long a leader is silent before it is suspected.
    #[must_use]
    pub const fn suspect_after(&self) -> Duration {
        self.config.settings.suspect_after
    }

    /// True if the replica is normal and leads its view.
    #[must_use]
    pub const fn is_leader(&self) -> bool {
        matches!(self.role, Role::Leader(_))
    }

    /// True if the replica takes part in its view.
    #[must_use]
    pub const fn is_normal(&self) -> bool {
        self.role.is_normal()
    }

    /// What the replica is doing.
    #[must_use]
    pub const fn role(&self) -> RoleName {
        self.role.name()
    }

    /// How many operations it has refused since it started, by why.
    pub fn refusals(&self) -> impl Iterator<Item = (Refusal, u64)> {
        Refusal::ALL.into_iter().zip(self.counters.refusals)
    }

    /// As a leader: up to which entry of the log this member has said that its log is durable, in this view. `None` for a
    /// replica that does not lead, and for what is no other member.
    #[must_use]
    pub fn acknowledged_by(&self, member: ReplicaId) -> Option<OpNumber> {
        let Role::Leader(leader) = &self.role else { return None };
        let is_other = member != self.config.replica && self.config.configuration.has(member);
        leader.progress.get(member.index()).filter(|_| is_other).map(|progress| progress.op_number)
    }

    /// What there is to tell.
    #[must_use]
    pub fn status(&self) -> StatusReport {
        let silent = self.now.instant.since(self.quorum_contact());
        StatusReport {
            replica: self.config.replica.0,
            replicas: self.config.configuration.size() as u8,
            role: self.role(),
            fast_quorum: self.rule.mode,
            view: self.view.0,
            op_number: self.log.op_number().0,
            commit: self.commit.0,
            applied: self.applied.0,
            dlog_length: self.dlog.len() as u64,
            sessions: self.sessions.len() as u64,
            log_bytes: (self.log.bytes() + self.dlog.bytes()) as u64,
            fast_updates: self.counters.fast_updates,
            conflicts: self.counters.conflicts,
            slow_updates: self.counters.slow_updates,
            fast_reads: self.counters.fast_reads,
            slow_reads: self.counters.slow_reads,
            refused: self.counters.refused,
            view_changes: self.counters.view_changes,
            divergences: self.counters.divergences,
            diverged: self.diverged.is_some(),
            silent_ms: u64::try_from(silent.as_millis()).unwrap_or(u64::MAX),
            no_quorum: silent >= self.config.settings.suspect_after,
            disk_failed: self.resources.disk_failed || self.resources.disk_is_short(),
        }
    }

    fn on_message(&mut self, from: Peer, message: Message) {
        match (from, message) {
            (_, Message::StatusRequest) => {
                let report = Box::new(self.status());
                // Whoever asks wants to know what is wrong with this replica: a disk that does not take its view, too.
                let message = Message::Status(report);
                self.actions.push_back(Action::Send { to: from, message, after: Ticket(0) });
            }
            (_, Message::ChangeMode { mode }) => self.on_change_mode(mode),
            (_, Message::Shrink { to }) => self.on_shrink(to),
            (Peer::Client(client), Message::GetConfiguration { epoch }) => {
                self.tell_client_configuration(client, epoch);
            }
            (Peer::Client(client), Message::WantSnapshot { op_number }) => {
                self.on_want_snapshot(client, op_number);
            }
            (Peer::Client(client), Message::GetSnapshot { op_number, offset }) => {
                self.on_get_snapshot_for_backup(client, op_number, offset);
            }
            (Peer::Client(client), Message::WantEntries { after, held, bytes_max }) => {
                self.on_want_entries(client, after, held, bytes_max);
            }
            (_, Message::HandOver { to }) => self.on_hand_over(to, HandOverReason::Requested),
            (_, Message::Register { view, nonce }) => self.on_register(from, view, nonce),
            (_, Message::Attach { session, nonce }) => self.on_attach(from, session, nonce),
            (_, Message::AnswerDirectly { session, nonce, lasting }) => {
                self.on_answer_directly(from, session, nonce, lasting);
            }
            (_, Message::Request { view, path, recipients, request }) => {
                self.on_request(from, view, (path, recipients), request);
            }
            (_, Message::Read { view, number, asked, body }) => {
                self.on_read(from, view, number, asked, body);
            }
            (Peer::Replica(replica), message) if self.is_other_member(replica) => {
                if !self.is_departing() || concerns_departing(&message) {
                    self.on_replica_message(replica, message);
                }
            }
            (Peer::Replica(replica), message) if self.may_be_of_another_size(replica, &message) => {
                self.on_replica_message(replica, message);
            }
            // Whatever else a client sends is not for a replica.
            _ => self.counters.refused += 1,
        }
    }

    fn is_other_member(&self, replica: ReplicaId) -> bool {
        replica != self.config.replica && replica.index() < self.config.configuration.size()
    }

    /// True if this is for this replica though its configuration has no such member: the sender is of a group that has grown,
    /// or is needed until the group has shrunk.
    fn may_be_of_another_size(&self, from: ReplicaId, message: &Message) -> bool {
        if from == self.config.replica || from.index() >= Group::SIZE_MAX {
            return false;
        }
        let ours = self.config.configuration.id.epoch;
        let is_departing = self.departing_voters().any(|member| member == from);
        let is_later = message.view().is_some_and(|view| view.epoch() > ours);
        let asks = matches!(message, Message::Configuration(_) | Message::GetConfiguration { .. });
        let is_earlier = message.view().is_some_and(|view| view.epoch() < ours);
        let is_learner = !self.config.configuration.has(from) && is_of_learner(message);
        is_later || is_earlier || asks || is_learner || (is_departing && is_of_departing(message))
    }

    fn on_replica_message(&mut self, from: ReplicaId, message: Message) {
        self.become_member();
        if !self.is_plausible(&message) {
            return self.trace_implausible(from, message.name());
        }
        if let Some(view) = message.view()
            && !self.is_of_known_configuration(from, view, &message)
        {
            return;
        }
        // It has become a member if it knows of a configuration that it is in.
        if self.is_learner() && !teaches(&message) {
            return;
        }
        match message {
            Message::Prepare { view, first, commit, sent_at, time, entries } => {
                if self.heard_leader(from, view) {
                    self.on_prepare(first, commit, sent_at, time, entries);
                }
            }
            Message::Commit { view, commit, op_number, sent_at } => {
                if self.heard_leader(from, view) {
                    self.on_commit(commit, op_number, sent_at);
                }
            }
            Message::PrepareOk { view, op_number, applied, sent_at, promise, clock } => {
                self.on_prepare_ok(from, view, (op_number, applied), (sent_at, promise, clock));
            }
            Message::Digest { view, op_number, of, digest } => {
                self.on_digest(from, view, (op_number, of), digest);
            }
            Message::Diverged { view, op_number, of, digest } => {
                self.on_diverged(from, view, (op_number, of), digest);
            }
            Message::FetchBodies { view, ids } => self.on_fetch_bodies(from, view, &ids),
            Message::Bodies { view, requests } => self.on_bodies(view, requests),
            Message::Forward { view, requests } => self.on_forward(view, requests),
            Message::GetState { view, from: first } => self.on_get_state(from, view, first),
            Message::NewState { view, first, commit, entries } => {
                self.on_new_state(view, first, commit, entries);
            }
            Message::StartViewChange { view, reason } => self.on_start_view_change(from, view, reason),
            Message::Patience { view, times } => self.on_patience(view, times),
            Message::DoViewChange(change) => self.on_do_view_change(from, *change),
            Message::StartView(start) => self.on_start_view(from, *start),
            Message::GetStartView { view, commit: _ } => self.on_get_start_view(from, view),
            Message::Rejoin { view } => self.on_rejoin(from, view),
            Message::PlaceWanted { view: _, node, applied } => {
                self.on_learner_wants_place(from, node, applied);
            }
            Message::DiskShort { view } => self.on_disk_short(from, view),
            Message::GetConfiguration { epoch } => self.on_get_configuration(from, epoch),
            Message::Configuration(known) => self.learn_configuration(*known),
            Message::HeldByAll { view, op_number } => self.on_held_by_all(from, view, op_number),
            Message::WatchLog { view } => self.on_watch_log(from, view),
            Message::LogDurable { view, op_number } => self.on_log_durable(from, view, op_number),
            Message::SnapshotOffer { view, op_number, bytes } => {
                self.on_snapshot_offer(from, view, op_number, bytes);
            }
            Message::GetSnapshot { op_number, offset } => self.on_get_snapshot(from, op_number, offset),
            Message::SnapshotPart { op_number, offset, part } => {
                self.on_snapshot_part(from, op_number, offset, part);
            }
            Message::WrongView { view } => {
                // Only a member that takes part in its view says so.
                self.yield_to(from, view);
                self.ask_for_start_view(view);
            }
            // Answers to clients: not for a replica.
            _ => self.counters.refused += 1,
        }
    }

    fn on_tick(&mut self) {
        self.on_download_tick();
        match self.role {
            Role::Leader(_) => self.on_leader_tick(),
            Role::Follower(_) => self.on_follower_tick(),
            Role::ViewChange(_) => self.on_view_change_tick(),
            Role::Recovering(_) => self.on_recovering_tick(),
        }
    }

    fn on_leader_tick(&mut self) {
        let now = self.now.instant;
        if self.timers.is_due(Timer::Order, now) {
            self.order_all();
        }
        if let Some(leader) = self.role.leading_mut()
            && self.timers.is_due(Timer::Heartbeat, now)
        {
            leader.heartbeat_due = true;
        }
        if self.timers.is_due(Timer::Review, now) {
            self.timers.set(Timer::Review, now.after(self.config.settings.heartbeat));
            self.review();
        }
        if !self.is_leader() {
            return;
        }
        if now >= self.expiry_deadline() {
            // A log that is full now has room in a while.
            const AGAIN: Duration = Duration::from_millis(100);
            let again = WallTime(self.log_time().0 + AGAIN.as_micros() as u64);
            self.next_expiry = if self.append_tick() { None } else { Some(again) };
        }
        if self.timers.is_due(Timer::Sessions, now) {
            self.timers.set(Timer::Sessions, now.after(self.config.settings.session_timeout / 8));
            self.expire_sessions();
        }
        self.trace_quorum();
    }

    /// Leader: asks whether it should lead on, and with which active members. Load does not put this off, as it does signs
    /// of life.
    fn review(&mut self) {
        self.leave_diverged();
        self.leave_with_slow_disk();
        self.leave_with_full_disk();
        self.leave_with_wrong_clock();
        self.leave_unheard();
        self.leave_fruitless();
        self.review_active_members();
    }

    fn on_follower_tick(&mut self) {
        let now = self.now.instant;
        if self.timers.is_due(Timer::FetchBodies, now) {
            self.fetch_missing_bodies();
        }
        if self.timers.is_due(Timer::Forward, now) {
            self.timers.set(Timer::Forward, now.after(self.config.settings.forward_after / 2));
            self.forward_old_updates();
        }
        if self.timers.is_due(Timer::Suspect, now) {
            self.suspect();
        }
    }

    /// Emits what several events may share.
    fn flush_deferred(&mut self) {
        self.become_member();
        self.begin_committed_configuration();
        self.emit_batch();
        self.emit_heartbeat();
        self.emit_prepare_ok();
        self.watch_logs();
        self.tell_log_watchers();
        self.take_due_snapshot();
        self.install_when_idle();
        self.ask_for_execution();
    }

    /// Has what is committed executed, as far as the engine may go ahead.
    fn ask_for_execution(&mut self) {
        let is_idle = self.apply_requested == self.applied;
        let ahead = self.config.apply_ahead;
        if self.snapshots.is_installing() || (!is_idle && (ahead == 0 || self.needs_idle_engine())) {
            return;
        }
        let end = self.apply_requested.0 + self.config.settings.apply_chunk;
        let end = if ahead == 0 { end } else { end.min(self.applied.0 + ahead) };
        let through = self.commit.min(OpNumber(end));
        if through > self.apply_requested {
            self.apply_requested = through;
            self.actions.push_back(Action::Apply { through });
        }
    }

    fn leader(&self) -> ReplicaId {
        self.config.configuration.leader(self.view)
    }

    /// The leader of a view, which may be of the next configuration.
    fn leader_of(&self, view: View) -> ReplicaId {
        self.configuration_of(view).leader(view)
    }

    fn others(&self) -> impl Iterator<Item = ReplicaId> + Clone + use<> {
        let me = self.config.replica;
        self.config.configuration.members().filter(move |member| *member != me)
    }

    /// Sends once the current view is on disk.
    fn send(&mut self, to: Peer, message: Message) {
        let after = self.persistence.view_ticket();
        self.actions.push_back(Action::Send { to, message, after });
    }

    /// Sends once everything emitted so far is on disk.
    fn send_durable(&mut self, to: Peer, message: Message) {
        let after = self.persistence.last_ticket();
        self.actions.push_back(Action::Send { to, message, after });
    }

    fn broadcast(&mut self, message: &Message) {
        for replica in self.others() {
            self.send(Peer::Replica(replica), message.clone());
        }
    }

    /// Tells all whose votes a view of this configuration may need.
    fn tell_voters(&mut self, message: &Message) {
        for replica in self.others().chain(self.departing_voters()) {
            self.send(Peer::Replica(replica), message.clone());
        }
    }

    fn persist(&mut self, record: Record) -> Ticket {
        let ticket = self.persistence.next_ticket();
        self.actions.push_back(Action::Persist { ticket, record });
        ticket
    }

    /// Persists what only `fsync` durability keeps.
    fn persist_data(&mut self, record: impl FnOnce() -> Record) {
        if self.config.durability == Durability::Fsync {
            self.persist(record());
        }
    }

    fn persist_view(&mut self) {
        if self.planted(PlantedBug::ViewChangeBeforePersist) {
            return;
        }
        let ticket = self.persist(Record::View { view: self.view, last_normal: self.last_normal });
        self.persistence.set_view_ticket(ticket);
    }

    /// Whether a crash leaves this replica in its view. Messages wait for that; what the engine is asked for on
    /// behalf of clients does not, and must not be asked for before. A leader that has told a client what an update
    /// returns, crashes, and leads the same view again with another log would be believed.
    fn view_is_durable(&self) -> bool {
        self.persistence.has_view() || self.planted(PlantedBug::ToldBeforePersist)
    }

    fn on_persisted(&mut self, ticket: Ticket) {
        self.persistence.on_persisted(ticket);
        if self.is_leader() {
            self.advance_commit();
            self.watch_disk();
        } else if self.attachments.answers_directly(self.now.instant) {
            self.count_commit();
        }
    }

    fn on_persist_failed(&mut self) {
        self.resources.disk_failed = true;
    }

    /// The view that this replica has reached covers every view in a record that is lost.
    fn on_log_reopened(&mut self) {
        assert!(self.config.durability == Durability::Replicated, "a log with entries is not done without");
        self.resources.disk_failed = false;
        if self.planted(PlantedBug::ViewNotRenewed) {
            return self.persistence.set_view_ticket(Ticket(0));
        }
        self.persist_view();
    }

    /// The log ends with entries that the record just emitted holds.
    fn on_append(&mut self) {
        self.persistence.on_append(self.log.op_number(), self.config.durability);
    }

    const fn memory_bytes(&self) -> usize {
        self.log.bytes() + self.dlog.bytes()
    }

    fn append_entry(&mut self, entry: LogEntry) -> OpNumber {
        let number = self.log.op_number().next();
        for update in entry.updates() {
            let id = update.request.id;
            self.backlog.ordered.insert(id, number);
            let held = self.dlog.get(id);
            if held.is_some_and(|held| held.contradicts(update)) && !self.planted(PlantedBug::ReferenceById) {
                // What the log has under an id is what takes effect under it.
                self.dlog.remove(id);
                self.backlog.pending.add(&update.footprint, update.request.timestamp());
            } else if held.is_none() {
                self.backlog.pending.add(&update.footprint, update.request.timestamp());
            }
            self.history.record(number, &update.footprint);
        }
        self.backlog.on_appended(number, &entry);
        self.log.append(entry)
    }

    /// What the replies in the session table count for: the same after one entry on every replica.
    #[must_use]
    pub const fn reply_bytes(&self) -> usize {
        self.sessions.reply_bytes()
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

    fn check_invariants(&self) {
        assert!(self.applied <= self.commit, "applied {:?} > commit {:?}", self.applied, self.commit);
        assert!(self.commit <= self.log.op_number(), "commit beyond the log");
        assert!(self.log.base() <= self.applied, "what is not applied stays in the log");
        assert!(self.persistence.persisted_op() <= self.log.op_number(), "persisted beyond the log");
        assert!(self.last_normal <= self.view, "normal in a view not reached");
        assert!(
            self.view.epoch() == self.config.configuration.id.epoch,
            "a configuration is that of its view"
        );
        if self.is_normal() {
            assert!(self.last_normal == self.view, "a normal replica is normal in its view");
        }
    }
}
