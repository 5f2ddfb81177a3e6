//! Background ordering (Skyros 4.3) on VR's normal operation (VR 4.1): Prepare, PrepareOk, Commit.
//! A Prepare ships ids of what the followers should have in their durability logs, and bodies of the
//! rest; no body is sent or written to disk twice.

use super::api::Returned;
use super::backlog::Backlog;
use super::configurations::reached_by;
use super::role::{Batch, IncompletePrepare, Leader, MissingBodies, Progress, Role};
use super::timers::Timer;
use super::{Action, COMMIT_DELAY, HandOverReason, PlantedBug, Replica, TraceEvent, ViewChangeCause};
use crate::message::{
    BodyHash, LogEntry, Message, Payload, Peer, Prepared, Request, Update, ViewChangeReason,
};
use crate::record::Record;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::time::Duration;
use syros_types::{Class, Instant, OpNumber, OperationId, ReplicaId, ReplicaSet, View, WallTime};

/// A leader that has just begun does not look for something that takes some time to show in its disk or its clock for
/// this many times as long.
const REST: u32 = 20;

/// A leader that `f` followers have not answered for this many times `suspect_after` gives up its view. By then they
/// would have suspected it if they did not hear it.
const UNHEARD_MAX: u32 = 4;

/// Prepares a follower holds back while bodies are missing; later ones come by state transfer.
const PARKED_MAX: usize = 256;

impl Replica {
    /// Leader: what was accepted is ordered soon, or at once when there is a batch of it.
    pub(super) fn schedule_ordering(&mut self) {
        if self.dlog.unordered() >= self.config.settings.batch_max {
            self.order_all();
        } else {
            self.timers.set_earlier(Timer::Order, self.now.instant.after(self.config.settings.order_delay));
        }
    }

    /// Leader: appends everything in the durability log to the log, in order of arrival.
    pub(super) fn order_all(&mut self) {
        self.order_all_with_body_of(None);
    }

    /// As [`Self::order_all`]; followers are sent the body of this update, because some of them are known not to have
    /// taken it.
    pub(super) fn order_all_with_body_of(&mut self, refused: Option<OperationId>) {
        self.timers.stop(Timer::Order);
        while let Some((update, recipients)) = self.dlog.order_next() {
            let id = update.request.id;
            let prepared = if refused == Some(id) {
                Prepared::Full(update.request.clone())
            } else {
                self.attach_body(&update.request, recipients);
                Prepared::Reference { id, body_hash: update.body_hash }
            };
            let payload = Payload::Update(update);
            let entry = LogEntry { view: self.view, time: self.log_time(), payload };
            if self.planted(PlantedBug::DlogDropsOrdered) {
                self.dlog.remove(id);
            }
            self.append_to_batch(entry, prepared);
        }
    }

    /// Leader: the next entry of the batch is this update; those its client has not sent it to get it with the Prepare.
    fn attach_body(&mut self, request: &Request, recipients: ReplicaSet) {
        if self.others().all(|other| recipients.contains(other)) {
            return;
        }
        if let Some(leader) = self.role.leading_mut() {
            leader.batch.attach_body(request, recipients);
        }
    }

    /// Leader: appends an entry that the next Prepare will carry.
    pub(super) fn append_to_batch(&mut self, mut entry: LogEntry, prepared: Prepared) -> OpNumber {
        let Role::Leader(leader) = &mut self.role else { unreachable!("only a leader orders") };
        // A batch has one time.
        if !leader.batch.entries.is_empty() {
            entry.time = self.log.last_time();
        }
        leader.batch.push(prepared);
        let is_full = leader.batch.entries.len() >= self.config.settings.batch_max
            || leader.batch.bytes >= self.config.settings.batch_bytes_max;
        self.backlog.on_ordered(&entry);
        let number = self.append_entry(entry);
        if is_full {
            self.emit_batch();
        }
        number
    }

    /// Leader: sends and persists the entries appended since the last time.
    pub(super) fn emit_batch(&mut self) {
        let Role::Leader(leader) = &mut self.role else { return };
        if leader.batch.entries.is_empty() {
            return;
        }
        let Batch { entries, bodies, bytes: _ } = core::mem::take(&mut leader.batch);
        let first = OpNumber(self.log.op_number().0 + 1 - entries.len() as u64);
        let (view, commit, time) = (self.view, self.announced_commit(), self.log.last_time());
        let sent_at = self.now.instant;
        for replica in self.others() {
            let mut entries = entries.clone();
            for (index, request, _) in bodies.iter().filter(|(_, _, sent)| !sent.contains(replica)) {
                entries[*index] = Prepared::Full(request.clone());
            }
            self.send(
                Peer::Replica(replica),
                Message::Prepare { view, first, commit, sent_at, time, entries },
            );
        }
        self.persist_data(|| Record::Append { first, view, time, commit, entries });
        self.on_append();
        if let Role::Leader(leader) = &mut self.role {
            leader.heartbeat_due = false;
            self.timers.set(Timer::Heartbeat, sent_at.after(self.config.settings.heartbeat));
            leader.contact.on_sign_sent(sent_at, self.config.settings.heartbeat);
        }
        self.tell_of_shortage();
        self.advance_commit();
    }

    /// Leader: followers have answered, or have got further with what they fetch. If they are `f`, one of whom may be this
    /// one that has just done it, the leader can commit, or will be able to: another view would only keep them from it.
    fn count_heard_followers(&mut self) {
        // This is asked with every answer, and hardly ever does somebody fetch.
        let Role::Leader(leader) = &self.role else { return };
        let counts_fetching = leader.progress.iter().any(|progress| progress.fetched_at.is_some())
            && !self.planted(PlantedBug::FetchingUnheard)
            && !self.others_may_go_on(leader);
        let Some(heard_at) = self.newest_of_followers(|progress| {
            if counts_fetching { progress.heard.max(progress.fetched_at) } else { progress.heard }
        }) else {
            return;
        };
        if let Role::Leader(leader) = &mut self.role {
            leader.contact.on_heard(heard_at);
        }
    }

    /// Leader: true if it has waited long enough for who fetches, because others may be able to go on without both: those
    /// that have answered of late, and those that it does not hear, are a majority. They may be dead as well, so each view
    /// that commits nothing lets the next one wait twice as long.
    fn others_may_go_on(&self, leader: &Leader) -> bool {
        let is_recent = |at: Option<Instant>| self.is_within_patience(at);
        let others = self.others().filter(|other| {
            let progress = &leader.progress[other.index()];
            is_recent(progress.heard) || !is_recent(progress.fetched_at)
        });
        let committed_in = self.log.view_at(self.commit).unwrap_or_default();
        let fruitless = self.view.number().saturating_sub(committed_in.number()).min(3) as u32;
        let patience = self.config.settings.suspect_after * UNHEARD_MAX * (1 << fruitless);
        let since = self.confirmed_at().max(leader.entered_at).unwrap_or_default();
        others.count() >= self.config.configuration.majority() && self.now.instant >= since.after(patience)
    }

    /// Leader: a member asks for a part of the log, or of a snapshot. One that gets no further is no sign of life.
    pub(super) fn hear_fetching(&mut self, from: ReplicaId, part: (OpNumber, u64)) {
        // What learners fetch says nothing of members.
        let is_member = self.config.configuration.has(from);
        let Role::Leader(leader) = &mut self.role else { return };
        if !is_member {
            return;
        }
        let progress = &mut leader.progress[from.index()];
        if progress.fetched < part {
            progress.fetched = part;
            progress.fetched_at = Some(self.now.instant);
            self.count_heard_followers();
        }
    }

    /// Leader: gives up its view if it has sent signs of life for long and `f` followers have not answered. They may hear
    /// it all the same, and as long as they do no other member can lead. Counted are signs sent, not time: a leader that
    /// was stopped has to send first, and to read the answers.
    pub(super) fn leave_unheard(&mut self) {
        let Role::Leader(leader) = &self.role else { return };
        let silence = self.config.settings.heartbeat * leader.contact.unheard_signs;
        let stays =
            self.planted(PlantedBug::UnheardLeaderStays) || self.planted(PlantedBug::DeposedLeaderStays);
        // A group of one has nobody to hear.
        let is_alone = self.config.configuration.faults() == 0;
        if silence >= self.patience_with_followers() && !stays && !is_alone {
            self.move_to(self.view.next(), ViewChangeReason::Moved, ViewChangeCause::Unheard(silence));
        }
    }

    /// Leader: true of a sign of a follower that it waits for no longer.
    fn is_within_patience(&self, at: Option<Instant>) -> bool {
        at.is_some_and(|at| self.now.instant < at.after(self.config.settings.suspect_after * UNHEARD_MAX))
    }

    /// Leader: how long `f` followers may be silent.
    fn patience_with_followers(&self) -> Duration {
        self.config.settings.suspect_after * UNHEARD_MAX + self.carrying_of_log()
    }

    /// Leader: how long what it has sent may take to arrive. What follows, and answers, wait behind it.
    pub(super) fn carrying_of_log(&self) -> Duration {
        super::patience::carrying_time(self.backlog.uncommitted_bytes) * 2
    }

    /// Leader: gives up its view if a majority have not got on with its log for long, though `f` followers answer now and then: small
    /// messages may pass where others are lost. Each view that commits nothing lets the next one wait twice as long.
    pub(super) fn leave_fruitless(&mut self) {
        let (me, own) = (self.config.replica, self.log.op_number());
        let majority = self.config.configuration.majority();
        let Role::Leader(leader) = &self.role else { return };
        let is_fetching = leader.progress.iter().any(|progress| self.is_within_patience(progress.fetched_at));
        let patience = self.patience_with_followers();
        let Role::Leader(leader) = &mut self.role else { return };
        let reached = reached_by(&leader.durable(me, own), majority);
        let (before, reviews) = leader.got_to;
        if reached >= own || reached > before || is_fetching {
            leader.got_to = (reached, 0);
            return;
        }
        leader.got_to = (reached, reviews.saturating_add(1));
        let silence = self.config.settings.heartbeat * reviews;
        let committed_in = self.log.view_at(self.commit).unwrap_or_default();
        let fruitless = self.view.number().saturating_sub(committed_in.number()).min(2) as u32;
        if silence >= patience * (2 << fruitless) && !self.planted(PlantedBug::FruitlessLeaderStays) {
            self.move_to(self.view.next(), ViewChangeReason::Moved, ViewChangeCause::Unheard(silence));
        }
    }

    /// Leader: a sign of life, if one is due.
    pub(super) fn emit_heartbeat(&mut self) {
        let Role::Leader(leader) = &mut self.role else { return };
        if !core::mem::take(&mut leader.heartbeat_due) {
            return;
        }
        if self.resources.disk_failed {
            // It can make nothing durable at present: its silence lets the followers choose another leader. It may be that
            // they cannot, and the disk may take records again.
            if self.planted(PlantedBug::SilentForGood) {
                self.timers.stop(Timer::Heartbeat);
            } else {
                self.timers.set(Timer::Heartbeat, self.now.instant.after(self.config.settings.heartbeat));
            }
            return;
        }
        let sent_at = self.now.instant;
        leader.contact.on_sign_sent(sent_at, self.config.settings.heartbeat);
        self.timers.set(Timer::Heartbeat, sent_at.after(self.config.settings.heartbeat));
        let (view, commit, op_number) = (self.view, self.announced_commit(), self.log.op_number());
        self.broadcast(&Message::Commit { view, commit, op_number, sent_at });
        self.tell_of_shortage();
    }

    /// Leader: tells the others if it takes no updates that need space. Those that have space would accept them, and no
    /// client could be told that its update was not executed.
    fn tell_of_shortage(&mut self) {
        if !self.majority_has_space() {
            self.broadcast(&Message::DiskShort { view: self.view });
        }
    }

    /// What a member is told of what is committed: of what a leader has not executed yet it tells nobody, so
    /// that no follower's state is ahead of its leader's (keys that expire are nowhere pending).
    pub(super) fn announced_commit(&self) -> OpNumber {
        if self.is_leader() && !self.planted(PlantedBug::FollowersAhead) {
            self.commit.min(self.applied)
        } else {
            self.commit
        }
    }

    pub(super) fn expiry_deadline(&self) -> Instant {
        match self.next_expiry {
            None => Instant::NEVER,
            Some(moment) => self.now.instant.after(self.time_until(moment)),
        }
    }

    /// Follower: a sign of life of the leader of `view`. True if it leads the view this replica is
    /// normal in; otherwise does what the difference of views asks for.
    pub(super) fn heard_leader(&mut self, from: ReplicaId, view: View) -> bool {
        if view < self.view {
            if self.is_normal() {
                let view = self.view;
                self.send(Peer::Replica(from), Message::WrongView { view });
            }
            return false;
        }
        if view > self.view || !self.is_normal() {
            self.ask_for_start_view(view);
            return false;
        }
        if from != self.leader() {
            return false;
        }
        self.hear_leader();
        true
    }

    /// Starts the time after which the leader is suspected, and with it the promise made to it.
    fn hear_leader(&mut self) {
        let suspect_at = self.next_suspicion();
        let Role::Follower(follower) = &mut self.role else { return };
        follower.leader_contact = self.now.instant;
        self.timers.set(Timer::Suspect, suspect_at);
        if core::mem::take(&mut follower.suspecting) {
            self.trace(TraceEvent::LeaderReturned { view: self.view });
        }
    }

    /// When a leader is suspected that has been heard now. Spread, so that not all followers suspect at one moment; never
    /// before the promise ends.
    pub(super) fn next_suspicion(&mut self) -> Instant {
        let jitter = self.prng.below((self.config.settings.suspect_after / 8).as_nanos() as u64);
        let at =
            self.now.instant.after(self.config.settings.suspect_after).after(Duration::from_nanos(jitter));
        if self.planted(PlantedBug::EarlierPromiseForgotten) { at } else { at.max(self.promised_until) }
    }

    /// Follower: answers the leader, if that is due.
    pub(super) fn emit_prepare_ok(&mut self) {
        let Role::Follower(follower) = &mut self.role else { return };
        let Some(sent_at) = follower.ack_due.take() else { return };
        let to = Peer::Replica(self.leader());
        if self.resources.disk_is_short() {
            let view = self.view;
            self.send(to, Message::DiskShort { view });
        }
        let message = Message::PrepareOk {
            view: self.view,
            op_number: self.log.op_number(),
            applied: self.applied,
            sent_at,
            promise: self.config.settings.lease,
            clock: self.now.wall,
        };
        if self.planted(PlantedBug::PrepareOkBeforePersist) {
            self.send(to, message);
        } else {
            // Waits for no more than the log: updates accepted since need not be on disk for it.
            let after = self.persistence.log_ticket();
            self.actions.push_back(Action::Send { to, message, after });
        }
    }

    /// Follower: entries to append.
    pub(super) fn on_prepare(
        &mut self,
        mut first: OpNumber,
        commit: OpNumber,
        sent_at: Instant,
        time: WallTime,
        mut entries: Vec<Prepared>,
    ) {
        let trusts = self.planted(PlantedBug::PeersNotValidated);
        let Role::Follower(follower) = &mut self.role else { return };
        follower.owe_ack(sent_at);
        follower.hear_commit(commit);
        let parked = &mut follower.missing.parked;
        let expected = parked.back().map_or(self.log.op_number(), IncompletePrepare::last).next();
        if first > expected || parked.len() >= PARKED_MAX {
            self.request_state();
        } else {
            let known = usize::try_from(expected.0 - first.0).unwrap_or(usize::MAX);
            let last_time = parked.back().map_or(self.log.last_time(), |parked| parked.time);
            if known < entries.len() && !self.resources.disk_failed && (last_time <= time || trusts) {
                entries.drain(..known);
                first = expected;
                parked.push_back(IncompletePrepare { first, commit, time, entries, complete: 0 });
                let last = parked.back().map_or(first, IncompletePrepare::last);
                self.count_prepared(last);
                self.append_parked();
            }
        }
        self.follow_commit();
    }

    /// Follower: appends the parked Prepares that are complete.
    pub(super) fn append_parked(&mut self) {
        let mut has_advanced = false;
        while let Role::Follower(follower) = &self.role
            && let Some(parked) = follower.missing.parked.front()
        {
            let known = parked.complete;
            let missing = &follower.missing;
            let is_missing = |entry| !self.is_complete(missing, entry);
            let missing = parked.entries[known..].iter().position(is_missing);
            let complete = known + missing.unwrap_or(parked.entries.len() - known);
            has_advanced |= complete > known;
            if missing.is_some() {
                // What is missing now is another body than the one that may have been asked for.
                let number = OpNumber(parked.first.0 + complete as u64);
                let fetch_at = self.now.instant.after(self.config.settings.fetch_delay);
                let Role::Follower(follower) = &mut self.role else { return };
                return follower.missing.wait_for(
                    number,
                    (complete, has_advanced),
                    (&mut self.timers, fetch_at),
                );
            }
            let Role::Follower(follower) = &mut self.role else { return };
            if let Some(parked) = follower.missing.parked.pop_front() {
                self.append_prepared(parked);
            }
        }
        self.forget_parked();
        self.follow_commit();
    }

    /// Follower: no Prepare waits for bodies any more.
    pub(super) fn forget_parked(&mut self) {
        if let Role::Follower(follower) = &mut self.role {
            follower.missing.clear();
            self.timers.stop(Timer::FetchBodies);
        }
    }

    /// Follower: true if nothing of an entry is missing here.
    fn is_complete(&self, missing: &MissingBodies, entry: &Prepared) -> bool {
        match entry {
            Prepared::Reference { id, body_hash } => self.has_body(missing, *id, *body_hash),
            _ => true,
        }
    }

    /// Follower: true if the body that a reference means is here. Another one under the same id is not.
    fn has_body(&self, missing: &MissingBodies, id: OperationId, body_hash: BodyHash) -> bool {
        if self.planted(PlantedBug::ReferenceById) {
            return self.dlog.contains(id) || missing.fetched.contains_key(&id);
        }
        self.dlog.holds(id, body_hash)
            || missing.fetched.get(&id).is_some_and(|update| update.body_hash == body_hash)
    }

    /// Follower: the updates that parked Prepares refer to and that are not here, with their op numbers and the hashes of
    /// their bodies.
    fn missing_bodies(&self) -> impl Iterator<Item = (OpNumber, OperationId, BodyHash)> {
        let missing = self.role.following().map(|follower| &follower.missing);
        missing.into_iter().flat_map(|missing| {
            let entries = missing.parked.iter().flat_map(|parked| {
                let numbers = parked.first.0..;
                numbers.zip(&parked.entries)
            });
            entries.filter_map(|(number, entry)| match entry {
                Prepared::Reference { id, body_hash } if !self.has_body(missing, *id, *body_hash) => {
                    Some((OpNumber(number), *id, *body_hash))
                }
                _ => None,
            })
        })
    }

    /// Follower: appends one Prepare whose bodies are all here.
    fn append_prepared(&mut self, parked: IncompletePrepare) {
        let IncompletePrepare { first, commit, time, entries, .. } = parked;
        assert!(first == self.log.op_number().next(), "parked Prepares continue the log");
        let view = self.view;
        let mut record_entries = Vec::with_capacity(entries.len());
        for prepared in entries {
            let (payload, kept) = match prepared {
                Prepared::Reference { id, body_hash } => self.resolve(id, body_hash),
                Prepared::Full(request) => match Update::describe(self.config.describe, request) {
                    Some(update) => {
                        self.dlog.order(update.request.id);
                        let request = update.request.clone();
                        (Payload::Update(update), Prepared::Full(request))
                    }
                    None => unreachable!("Prepares that hold no operations are refused"),
                },
                Prepared::Register { nonce } => (Payload::Register { nonce }, Prepared::Register { nonce }),
                Prepared::Expire(ids) => (Payload::Expire(ids.clone()), Prepared::Expire(ids)),
                Prepared::Tick => (Payload::Tick, Prepared::Tick),
                Prepared::Reconfigure(next) => {
                    (Payload::Reconfigure(next.clone()), Prepared::Reconfigure(next))
                }
            };
            record_entries.push(kept);
            let is_lost = self.planted(PlantedBug::UpdateLost)
                && self.config.replica.index() + 1 == self.config.configuration.size()
                && self.log.op_number().next().0.is_multiple_of(7)
                && matches!(&payload, Payload::Update(update) if update.class.is_nilext());
            let payload = if is_lost { Payload::Tick } else { payload };
            self.append_entry(LogEntry { view, time, payload });
        }
        self.persist_data(|| Record::Append { first, view, time, commit, entries: record_entries });
        self.on_append();
    }

    /// Follower: the update behind a reference, and how the write-ahead log may refer to it.
    fn resolve(&mut self, id: OperationId, body_hash: BodyHash) -> (Payload, Prepared) {
        let held = match self.planted(PlantedBug::ReferenceById) {
            true => self.dlog.order(id),
            false => self.dlog.order_body(id, body_hash),
        };
        let fetched = self.role.following_mut().and_then(|follower| follower.missing.fetched.remove(&id));
        if let Some(update) = held {
            return (Payload::Update(update), Prepared::Reference { id, body_hash });
        }
        let update = fetched.expect("complete Prepares have every body");
        let request = update.request.clone();
        (Payload::Update(update), Prepared::Full(request))
    }

    /// Follower: asks for bodies that have not come by themselves.
    pub(super) fn fetch_missing_bodies(&mut self) {
        // The leader gives no more at a time.
        let missing = self.missing_bodies().take(self.config.settings.batch_max);
        let (numbers, ids): (Vec<OpNumber>, Vec<OperationId>) =
            missing.map(|(number, id, _)| (number, id)).unzip();
        let again =
            if ids.is_empty() { Instant::NEVER } else { self.now.instant.after(self.config.settings.resend) };
        if let Role::Follower(follower) = &mut self.role {
            follower.missing.fetch_asked = numbers.last().copied().unwrap_or_default();
            self.timers.set(Timer::FetchBodies, again);
        }
        if !ids.is_empty() {
            let message = Message::FetchBodies { view: self.view, ids };
            self.send(Peer::Replica(self.leader()), message);
        }
    }

    pub(super) fn on_fetch_bodies(&mut self, from: ReplicaId, view: View, ids: &[OperationId]) {
        if !self.is_leader() || view != self.view || ids.len() > self.config.settings.batch_max {
            return;
        }
        let mut requests = Vec::with_capacity(ids.len());
        for id in ids {
            // What is neither here nor unapplied has been committed; state transfer brings it.
            if let Some(update) = self.find_pending(*id) {
                requests.push(update.request.clone());
            }
        }
        if requests.len() == ids.len() {
            self.send(Peer::Replica(from), Message::Bodies { view, requests });
        } else {
            self.send_state_after_parked(from);
        }
    }

    /// The follower waits for bodies that are no longer at hand by id: it gets the entries.
    fn send_state_after_parked(&mut self, to: ReplicaId) {
        let Role::Leader(leader) = &self.role else { return };
        let known = leader.progress[to.index()].op_number;
        self.on_get_state(to, self.view, known.next());
    }

    pub(super) fn on_bodies(&mut self, view: View, requests: Vec<Request>) {
        if view != self.view || !self.has_parked() {
            return;
        }
        // Clients' own copies may have come meanwhile.
        let missing: BTreeSet<(OperationId, BodyHash)> =
            self.missing_bodies().map(|(_, id, body_hash)| (id, body_hash)).collect();
        let mut fetched = Vec::new();
        for request in requests {
            if let Some(update) = Update::describe(self.config.describe, request)
                && missing.contains(&(update.request.id, update.body_hash))
            {
                fetched.push(update);
            }
        }
        if let Role::Follower(follower) = &mut self.role {
            follower.missing.fetched.extend(fetched.into_iter().map(|update| (update.request.id, update)));
            follower.owe_ack(Instant(0));
        }
        self.append_parked();
    }

    /// Follower: true if Prepares wait for bodies.
    pub(super) fn has_parked(&self) -> bool {
        self.role.following().is_some_and(|follower| !follower.missing.parked.is_empty())
    }

    /// Follower: heartbeat and commit number.
    pub(super) fn on_commit(&mut self, commit: OpNumber, op_number: OpNumber, sent_at: Instant) {
        let Role::Follower(follower) = &mut self.role else { return };
        follower.owe_ack(sent_at);
        follower.hear_commit(commit);
        let expected = follower.missing.parked.back().map_or(self.log.op_number(), IncompletePrepare::last);
        if op_number > expected {
            self.request_state();
        }
        self.follow_commit();
    }

    /// Follower: commits what the leader has committed and this log holds.
    pub(super) fn follow_commit(&mut self) {
        if let Role::Follower(follower) = &self.role {
            self.commit = self.commit.max(follower.leader_commit.min(self.log.op_number()));
            if self.attachments.answers_directly(self.now.instant) {
                self.count_commit();
            }
        }
    }

    /// Leader: a follower's log is durable up to here.
    pub(super) fn on_prepare_ok(
        &mut self,
        from: ReplicaId,
        view: View,
        (op_number, applied): (OpNumber, OpNumber),
        (sent_at, promise, clock): (Instant, Duration, WallTime),
    ) {
        let lease = self.lease_of(promise);
        let Role::Leader(leader) = &mut self.role else { return };
        if view != self.view || op_number > self.log.op_number() {
            return;
        }
        let progress = &mut leader.progress[from.index()];
        progress.op_number = progress.op_number.max(op_number);
        progress.applied = progress.applied.max(applied);
        // Zero answers no heartbeat and promises nothing.
        if sent_at.0 > 0 && sent_at <= self.now.instant && progress.heard.is_none_or(|heard| heard < sent_at)
        {
            progress.heard = Some(sent_at);
            if self.rule.mode.has_active_members() {
                progress.on_answer(self.now.instant.since(sent_at));
            }
            progress.promised_until = sent_at.after(lease);
            self.hear_clock(from, clock, sent_at);
            self.count_heard_followers();
            self.answer_confirmed_reads();
        }
        self.advance_commit();
        self.watch_disk();
    }

    /// Leader: takes note of an entry that `f` followers have on disk and this replica has not. Updates
    /// are not answered before their leader has them on disk.
    pub(super) fn watch_disk(&mut self) {
        let persisted_op = self.persistence.persisted_op();
        let Role::Leader(leader) = &mut self.role else { return };
        leader.overtaken.take_if(|(number, _)| persisted_op >= *number);
        let faults = self.config.configuration.faults();
        if faults == 0 || leader.overtaken.is_some() {
            return;
        }
        // Beyond what this disk has, those are all followers.
        let number = reached_by(&leader.durable(self.config.replica, persisted_op), faults);
        if number > persisted_op {
            leader.overtaken = Some((number, self.now.instant));
        }
    }

    /// Leader: lets another member lead if this one's disk has been much slower.
    pub(super) fn leave_with_slow_disk(&mut self) {
        let Role::Leader(leader) = &self.role else { return };
        let behind = leader.overtaken.map(|(_, since)| self.now.instant.since(since));
        // Where all disks are slow by turns, leadership should not go round.
        let has_rested = self.has_led_for_long(self.config.settings.slow_disk_after);
        if let Some(behind) =
            behind.filter(|behind| has_rested && *behind >= self.config.settings.slow_disk_after)
        {
            if let Role::Leader(leader) = &mut self.role {
                leader.overtaken = None;
            }
            self.step_down(HandOverReason::SlowDisk(behind));
        }
    }

    /// Leader: true if it has led its view for much longer than what it may be left for takes to show. Where all members
    /// are as bad, leadership should not go round.
    pub(super) fn has_led_for_long(&self, shows_after: Duration) -> bool {
        let entered_at = self.role.leading().and_then(|leader| leader.entered_at);
        entered_at.is_none_or(|entered| self.now.instant >= entered.after(shows_after * REST))
    }

    /// Leader: a member's disk is nearly full. Follower: the leader says that those of a majority are.
    pub(super) fn on_disk_short(&mut self, from: ReplicaId, view: View) {
        if view != self.view {
            return;
        }
        let (had_space, is_from_leader) = (self.majority_has_space(), from == self.leader());
        match &mut self.role {
            Role::Leader(leader) => {
                if let Some(progress) = leader.progress.get_mut(from.index()) {
                    progress.disk_short = Some(self.now.instant);
                }
                if had_space {
                    self.tell_of_shortage();
                }
            }
            Role::Follower(follower) if is_from_leader => follower.majority_short = Some(self.now.instant),
            _ => {}
        }
    }

    /// This replica's own disk has room for so many bytes.
    pub(super) fn on_disk_room(&mut self, bytes: u64) {
        let had_space = self.majority_has_space();
        self.resources.set_disk_room(bytes, self.dlog.growth() as u64);
        if had_space {
            self.tell_of_shortage();
        }
    }

    /// True if a follower that goes on saying what it said then would not have been silent until now.
    pub(super) fn is_recent(&self, at: Instant) -> bool {
        self.now.instant < at.after(self.config.settings.suspect_after)
    }

    /// False if the disks of a majority are known to be nearly full: to a leader, and to followers that it tells. What one of
    /// them was told counts for as long as it takes to suspect a leader, because nobody says when there is space again.
    #[must_use]
    pub fn majority_has_space(&self) -> bool {
        let is_short = |progress: &&Progress| progress.disk_short.is_some_and(|at| self.is_recent(at));
        let leader = match &self.role {
            Role::Leader(leader) => leader,
            Role::Follower(follower) => return !follower.majority_short.is_some_and(|at| self.is_recent(at)),
            _ => return true,
        };
        let short =
            leader.progress.iter().filter(is_short).count() + usize::from(self.resources.disk_is_short());
        self.config.configuration.size() - short >= self.config.configuration.majority()
    }

    /// Leader: the others whose disks are not known to be nearly full.
    fn members_with_space(&self, leader: &Leader) -> ReplicaSet {
        let members = leader.progress.iter().zip(self.config.configuration.members());
        let has_space = |progress: &Progress| !progress.disk_short.is_some_and(|at| self.is_recent(at));
        members.filter(|(progress, _)| has_space(progress)).map(|(_, member)| member).collect()
    }

    /// Leader: lets another member lead if this one's disk is nearly full, and those of a majority are not. By then it
    /// has heard what all say of theirs.
    pub(super) fn leave_with_full_disk(&mut self) {
        let Role::Leader(leader) = &self.role else { return };
        let has_heard = leader
            .entered_at
            .is_none_or(|entered| self.now.instant >= entered.after(self.config.settings.suspect_after));
        if self.resources.disk_is_short() && has_heard && self.majority_has_space() {
            let suitable = self.members_with_space(leader);
            self.hand_over_to_longest_log(suitable, HandOverReason::FullDisk);
        }
    }

    /// Leader: commits what a majority, counting durable copies only, has.
    pub(super) fn advance_commit(&mut self) {
        let Role::Leader(leader) = &self.role else { return };
        let durable = leader.durable(self.config.replica, self.persistence.persisted_op());
        let candidate = self.committable(&durable);
        if candidate <= self.commit {
            return;
        }
        for number in self.commit.0 + 1..=candidate.0 {
            let bytes = self.log.entry(OpNumber(number)).map_or(0, LogEntry::memory_bytes);
            self.backlog.on_committed(bytes);
        }
        self.commit = candidate;
        self.timers.set_earlier(Timer::Heartbeat, self.now.instant.after(COMMIT_DELAY));
    }

    /// Entries have been executed: record completions, finalize, answer.
    pub(super) fn on_applied(&mut self, through: OpNumber, replies: Vec<Returned>) {
        assert!(through <= self.apply_requested, "only what was asked for is applied");
        let mut replies = replies.into_iter();
        let reply_bytes_max = self.reply_bytes_max();
        let mut dropped = Vec::new();
        let answers = self.role.following().is_some()
            && self.diverged.is_none()
            && self.attachments.answers_directly(self.now.instant);
        let mut direct = Vec::new();
        let mut configuration = None;
        for number in self.applied.0 + 1..=through.0 {
            let number = OpNumber(number);
            let entry = self.log.entry(number).expect("applied entries are in the log");
            match &entry.payload {
                Payload::Register { nonce } => {
                    self.sessions.register(syros_types::SessionId(number.0), *nonce, entry.time);
                }
                Payload::Expire(ids) => {
                    self.sessions.expire(ids);
                    for id in ids {
                        self.backlog.expiring.remove(id);
                    }
                }
                Payload::Reconfigure(next) => {
                    let next = **next;
                    self.backlog.reconfiguration.take_if(|(ordered, _)| *ordered == number);
                    configuration = Some(next);
                }
                Payload::Tick | Payload::Update(_) | Payload::Recovered(_) => {}
            }
            for update in entry.updates() {
                let request = &update.request;
                let reply = if update.class.is_nilext() {
                    None
                } else {
                    let returned = replies.next().expect("every update that returns state has a reply");
                    assert!(returned.number == number, "replies come in log order");
                    self.digests.returned(returned.effects);
                    Some(returned.reply)
                };
                let (id, acked_below, time) = (request.id, request.acked_below, entry.time);
                let unkept = self.sessions.complete(id, acked_below, reply, time, reply_bytes_max);
                dropped.extend(unkept.map(|reply| (id, reply)));
                self.backlog.ordered.remove(&request.id);
                let dropped_early = self.planted(PlantedBug::DlogDropsOrdered);
                let was_accepted = self.dlog.remove(id).is_some();
                if !was_accepted && !dropped_early {
                    self.backlog.pending.remove(&update.footprint);
                }
                if answers && self.is_answered_directly(id.session, was_accepted, update.class) {
                    direct.push(id);
                }
            }
            let segment = self.digests.executed(number, entry);
            let bytes = entry.memory_bytes();
            self.backlog.on_executed(entry, bytes);
            self.snapshots.count_applied(bytes);
            self.applied = number;
            if self.role.leading().is_some_and(|leader| !leader.waiters.is_empty()) {
                self.answer_waiters(number, &dropped);
            }
            self.answer_directly(number, core::mem::take(&mut direct), &dropped);
            dropped.clear();
            if let Some(digests) = segment {
                self.on_segment(number, digests);
            }
        }
        if let Some(next) = configuration {
            self.learn_configuration(next);
        }
        self.backlog.shrink();
        self.trim_history();
        self.answer_applied_reads();
        self.trim_log();
    }

    /// Most bytes of replies that the session table keeps.
    fn reply_bytes_max(&self) -> usize {
        let is_first = self.config.replica == ReplicaId(0);
        let keeps_all = is_first && self.planted(PlantedBug::RepliesKeptByOne);
        if keeps_all { usize::MAX } else { self.config.settings.reply_bytes_max }
    }

    /// Recomputes what is derived from the unapplied part of the log, after a view was entered.
    pub(super) fn rebuild_pending(&mut self) {
        self.backlog = Backlog::of_log(&self.log, self.applied, self.commit, &self.dlog);
        self.history.restart(self.applied);
        for number in (self.applied.0 + 1..=self.log.op_number().0).map(OpNumber) {
            let updates = self.log.entry(number).map_or(&[][..], LogEntry::updates);
            for update in updates {
                self.history.record(number, &update.footprint);
            }
        }
        if self.planted(PlantedBug::AcceptedForgotten) {
            self.history.restart(self.applied);
        }
    }

    /// Removes the last log entry, which is not committed.
    pub(super) fn pop_entry(&mut self) {
        assert!(self.log.op_number() > self.commit, "committed entries stay");
        let number = self.log.op_number();
        let Some(entry) = self.log.pop() else { return };
        self.backlog.on_removed(number, &entry, &self.dlog);
    }

    /// Describes what travelled, for entries that came as requests.
    pub(super) fn describe_all(&self, requests: Vec<Request>) -> Vec<Update> {
        let updates =
            requests.into_iter().filter_map(|request| Update::describe(self.config.describe, request));
        updates.filter(|update| update.class != Class::Read).collect()
    }
}
