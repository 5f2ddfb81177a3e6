//! Requests of clients: sessions, the accept rule (Skyros 4.2, with timestamps), duplicates.

use super::role::{Awaited, Role, Waiter};
use super::{Action, PlantedBug, Replica};
use crate::message::{Body, LogEntry, Message, Path, Payload, Peer, Prepared, Refusal, Request, Update};
use crate::record::{Record, empty_body};
use crate::sessions::OperationStatus;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::time::Duration;
use syros_types::{Admission, Class, Footprint, OpNumber, OperationId, ReplicaSet, SessionId, View};

impl Replica {
    /// True if the replica may act on a client's request of this view; tells the client if not.
    pub(super) fn accepts_view(&mut self, from: Peer, view: View) -> bool {
        if !self.is_normal() {
            self.tell_of_next_view(from);
            return false;
        }
        if view != self.view && !self.planted(PlantedBug::AnyViewAccepted) {
            let view = self.view;
            self.send(from, Message::WrongView { view });
            return false;
        }
        true
    }

    /// A client's request cannot be dealt with before the next view.
    pub(super) fn tell_of_next_view(&mut self, client: Peer) {
        if let Peer::Client(address) = client {
            self.later_views.on_client_abandoned(address);
        }
    }

    fn refuse(&mut self, to: Peer, id: OperationId, refusal: Refusal) {
        let is_remembered = match refusal {
            Refusal::Overloaded | Refusal::LogFull | Refusal::DiskFailed => self.is_leader(),
            // When all who were asked say so, the update is nowhere.
            Refusal::OutOfMemory | Refusal::DiskFull => true,
            _ => false,
        };
        if is_remembered {
            // A copy that was delayed on its way must not be taken when there is room again.
            if let Some(in_view) = self.role.in_view_mut() {
                in_view.refusals.insert(id, refusal, self.now.instant);
            }
        }
        self.refuse_for_now(to, id, refusal);
    }

    /// Refuses an update that was sent to all: others may have taken it, so the refusal promises nothing,
    /// and a copy that comes later is welcome.
    fn refuse_for_now(&mut self, to: Peer, id: OperationId, refusal: Refusal) {
        self.counters.count_refusal(refusal);
        let (view, clock) = (self.view, self.now.wall);
        self.send(to, Message::Refused { view, id, clock, refusal });
    }

    /// Refuses an update that there is no room for. Its client takes the refusal for final only if it has sent the update
    /// once, to this leader alone and to be ordered: of everything else it says, even in a group of one, that it went to
    /// others.
    fn refuse_without_room(
        &mut self,
        from: Peer,
        id: OperationId,
        (path, recipients): (Path, ReplicaSet),
        refusal: Refusal,
    ) {
        let is_shared = self.goes_to_others(recipients);
        let by_recipients = self.planted(PlantedBug::RefusalByRecipients)
            && !self.others().any(|other| recipients.contains(other));
        let is_final = by_recipients || (path == Path::Ordered && !is_shared);
        if is_final || self.planted(PlantedBug::RefusedForGood) {
            self.refuse(from, id, refusal);
        } else {
            self.refuse_for_now(from, id, refusal);
        }
    }

    /// True if a client says of an update that others were sent it, too, or may be.
    fn goes_to_others(&self, recipients: ReplicaSet) -> bool {
        !recipients.without(self.config.replica).is_empty()
    }

    /// Why an update was refused of which another copy has come, unless that copy is welcome.
    fn remembered_refusal(&mut self, id: OperationId, recipients: ReplicaSet) -> Option<Refusal> {
        let refusal = self.role.in_view()?.refusals.get(id)?;
        let is_shared = self.goes_to_others(recipients);
        let is_kept =
            [PlantedBug::CrowdedOutForGood, PlantedBug::RefusedForGood, PlantedBug::RefusalByRecipients]
                .into_iter()
                .any(|bug| self.planted(bug));
        let is_final = match refusal {
            // Its client sends it to others, or says so, only if it did not take the refusal of the first copy for final,
            // and never will: it counts copies.
            Refusal::Overloaded | Refusal::LogFull => !is_shared || is_kept,
            _ => true,
        };
        if is_final {
            return Some(refusal);
        }
        self.role.in_view_mut()?.refusals.remove(id);
        None
    }

    pub(super) fn on_register(&mut self, from: Peer, view: View, nonce: u64) {
        if !self.accepts_view(from, view) {
            return;
        }
        if !self.is_leader() {
            let view = self.view;
            self.send(from, Message::WrongView { view });
            return;
        }
        let id = OperationId { session: SessionId(0), sequence: nonce };
        let waiter = Waiter { to: from, what: Awaited::Registration { nonce } };
        let registering = |waiters: &Vec<Waiter>| {
            waiters.iter().any(|other| matches!(other.what, Awaited::Registration { nonce: n } if n == nonce))
        };
        let Role::Leader(leader) = &self.role else { return };
        if let Some(number) = leader.waiters.iter().find(|(_, w)| registering(w)).map(|(number, _)| *number) {
            // Sent again before it was answered.
            return self.wait(number, waiter);
        }
        if !self.may_register(from) {
            return self.refuse_for_now(from, id, Refusal::Overloaded);
        }
        if let Some(refusal) = self.no_room_in_log() {
            return self.refuse_for_now(from, id, refusal);
        }
        let number = self.append_ordered(Payload::Register { nonce }, Prepared::Register { nonce });
        self.wait(number, waiter);
    }

    pub(super) fn on_request(
        &mut self,
        from: Peer,
        view: View,
        (path, recipients): (Path, ReplicaSet),
        request: Request,
    ) {
        if !self.accepts_view(from, view) {
            return;
        }
        let id = request.id;
        let Some(update) = Update::describe(self.config.describe, request) else {
            return self.refuse(from, id, Refusal::Malformed);
        };
        let admission = self.admission(&update);
        // Its client may take the view for one of a mode that the group has had, or has in its next view.
        let is_possible =
            path == Path::Ordered || admission.is_some() || self.config.configuration.mode.is_changeable();
        if update.class == Class::Read || !is_possible {
            return self.refuse(from, id, Refusal::Malformed);
        }
        if path == Path::Durability && !self.is_active() && !self.planted(PlantedBug::PassiveAccepts) {
            return self.refuse_for_now(from, id, Refusal::NotActive);
        }
        if path == Path::Ordered && !self.is_leader() {
            let view = self.view;
            return self.send(from, Message::WrongView { view });
        }
        if let Some(refusal) = self.refusal_of_stranger(from, id.session) {
            return self.refuse_for_now(from, id, refusal);
        }
        if self.answer_duplicate(from, (path, recipients), &update) {
            return;
        }
        let acked_below = self.acknowledged_below(id, update.request.acked_below);
        if !self.sessions.has_room(id, acked_below, self.config.settings.completions_max) {
            // There is when the client has heard answers, as beyond its window.
            return self.refuse_without_room(from, id, (path, recipients), Refusal::Overloaded);
        }
        if self.resources.disk_failed {
            return self.refuse(from, id, Refusal::DiskFailed);
        }
        if let Some(refusal) = self.remembered_refusal(id, recipients) {
            return self.refuse_for_now(from, id, refusal);
        }
        if self.is_expiring(id.session) {
            return self.refuse(from, id, Refusal::UnknownSession);
        }
        if let Some(refusal) = self.lacks_room_for(&update) {
            return self.refuse(from, id, refusal);
        }
        match admission {
            Some(admission) if path == Path::Durability => self.accept(from, recipients, update, admission),
            None if path == Path::Durability => self.decline(from, recipients, update),
            _ => self.order_now(from, path, update, recipients),
        }
    }

    /// Before which operation the client of a session is known to have all answers. While the session table is full, that is what
    /// it has said in any request: one that is sent again acknowledges no more than when it was stamped, and the first of a session
    /// without room would wait for the others, and they for it.
    fn acknowledged_below(&mut self, id: OperationId, told: u64) -> u64 {
        let is_full = self.sessions.completions() >= self.config.settings.completions_max;
        if !is_full || self.acknowledged.len() > self.sessions.len() {
            self.acknowledged.clear();
        }
        if !is_full || self.sessions.nonce(id.session).is_none() || self.planted(PlantedBug::RefusedUnheard) {
            return told;
        }
        let acknowledged = self.acknowledged.entry(id.session).or_default();
        // A client never acknowledges what it has just issued.
        *acknowledged = told.min(id.sequence).max(*acknowledged);
        *acknowledged
    }

    /// Why an update is refused that would make the state grow, if there is no room for that.
    fn lacks_room_for(&self, update: &Update) -> Option<Refusal> {
        // What is accepted or ordered and not executed is yet to be added to the state.
        let needed = || self.dlog.growth().max(self.backlog.ordered_growth).saturating_add(update.growth);
        let lacks_memory = self.resources.lacks_memory(needed, self.is_leader());
        let lacks_space = self.resources.disk_is_short() || !self.majority_has_space();
        if update.growth == 0 {
            None
        } else if lacks_memory {
            Some(Refusal::OutOfMemory)
        } else if lacks_space {
            Some(Refusal::DiskFull)
        } else {
            self.role.in_view().and_then(|in_view| in_view.refusals.forgotten(self.now.instant))
        }
    }

    /// Leader: true if the end of the session is in the log. Whoever has executed it takes the session's
    /// updates in the durability logs for dealt with, and would not recover them: vouching for one now
    /// could lose it.
    fn is_expiring(&self, session: SessionId) -> bool {
        !self.backlog.expiring.is_empty()
            && self.is_leader()
            && self.backlog.expiring.contains(&session)
            && !self.planted(PlantedBug::ExpiringSessionAccepted)
    }

    /// Whether an update may enter the durability log, and on what terms: it depends on the mode, because the modes
    /// recover it differently.
    const fn admission(&self, update: &Update) -> Option<Admission> {
        self.rule.mode.admission(update.class, &update.footprint)
    }

    fn ok(&self, id: OperationId) -> Message {
        Message::Ok { view: self.view, rule: self.told_rule(), id, clock: self.now.wall }
    }

    /// Answers an operation this replica knows already, or cannot know. True if it is dealt with.
    fn answer_duplicate(&mut self, from: Peer, sent: (Path, ReplicaSet), update: &Update) -> bool {
        let id = update.request.id;
        if self.answer_from_sessions(from, (id, update.request.acked_below), sent) {
            return true;
        }
        if self.planted(PlantedBug::NoDeduplication) && !self.dlog.contains(id) {
            return false;
        }
        // Most often, and at the cost of two look-ups only.
        if !self.dlog.contains(id) && !self.backlog.ordered.contains_key(&id) {
            return false;
        }
        if self.find_pending(id).is_some_and(|held| held.request.body != update.request.body)
            && !self.planted(PlantedBug::DuplicateById)
        {
            self.refuse_for_now(from, id, Refusal::OtherOperation);
            return true;
        }
        self.answer_pending(from, sent.0, id)
    }

    /// The update with this id in the durability log, or in the part of the log that is not executed.
    pub(super) fn find_pending(&self, id: OperationId) -> Option<&Update> {
        self.dlog.get(id).or_else(|| {
            let entry = self.log.entry(*self.backlog.ordered.get(&id)?)?;
            entry.updates().iter().find(|update| update.request.id == id)
        })
    }

    /// What is known of an operation of a request that acknowledges this.
    fn status_of(&self, id: OperationId, acked_below: u64) -> OperationStatus {
        if self.planted(PlantedBug::WindowOfExecuted) {
            return self.sessions.lookup(id);
        }
        self.sessions.lookup_acknowledging(id, acked_below)
    }

    /// Answers an operation that has been executed, or whose session does not let it be. `sent` says on which path and to
    /// whom its client has sent it. True if it is dealt with.
    fn answer_from_sessions(
        &mut self,
        from: Peer,
        (id, acked_below): (OperationId, u64),
        sent: (Path, ReplicaSet),
    ) -> bool {
        let (view, clock) = (self.view, self.now.wall);
        let known = if self.planted(PlantedBug::NoDeduplication) {
            OperationStatus::New
        } else {
            self.status_of(id, acked_below)
        };
        match known {
            OperationStatus::New => {}
            OperationStatus::Executed(reply) => {
                let reply = reply.unwrap_or_else(empty_body);
                let message = if self.is_leader() {
                    Message::Committed { view, id, clock, reply }
                } else {
                    self.ok(id)
                };
                self.send_durable(from, message);
                return true;
            }
            OperationStatus::ReplyDropped if self.planted(PlantedBug::DroppedReplyRunsAgain) => {}
            OperationStatus::ReplyDropped => {
                let message = match self.is_leader() {
                    true if self.planted(PlantedBug::DroppedReplyIsEmpty) => {
                        Message::Committed { view, id, clock, reply: empty_body() }
                    }
                    true => Message::Refused { view, id, clock, refusal: Refusal::ReplyDropped },
                    false => self.ok(id),
                };
                self.send_durable(from, message);
                return true;
            }
            OperationStatus::Acknowledged => {
                self.refuse(from, id, Refusal::Stale);
                return true;
            }
            // Its client has far more in flight than it may.
            OperationStatus::BeyondWindow => {
                self.refuse_without_room(from, id, sent, Refusal::Overloaded);
                return true;
            }
            OperationStatus::UnknownSession => {
                // A session registered in an entry not applied here yet is not unknown.
                let registered_later = id.session.0 > self.applied.0;
                let possible = !self.is_leader() || id.session.0 <= self.log.op_number().0;
                if !(registered_later && possible) {
                    self.refuse(from, id, Refusal::UnknownSession);
                    return true;
                }
            }
        }
        false
    }

    /// Answers an operation that the durability log or the log holds and that has not been executed. True if it is dealt
    /// with.
    fn answer_pending(&mut self, from: Peer, path: Path, id: OperationId) -> bool {
        // What an update returns is evaluated when it is accepted, and never again: it may have been executed since,
        // unknown to the core. A leader that is asked once more has it executed.
        let held = self.dlog.get(id).map(|update| update.class.is_nilext());
        let is_evaluated = held == Some(false) && self.is_leader();
        if is_evaluated && self.planted(PlantedBug::EvaluatedAgain) {
            let body = self.dlog.get(id).map(|update| update.request.body.clone()).unwrap_or_else(empty_body);
            self.send_durable(from, self.ok(id));
            self.actions.push_back(Action::Evaluate { to: from, view: self.view, id, body });
            return true;
        }
        if path == Path::Durability && held.is_some() && !is_evaluated {
            self.send_durable(from, self.ok(id));
            return true;
        }
        if let Some(number) = self.backlog.ordered.get(&id).copied() {
            // A leader that has ordered an update without accepting it (it met a conflict, or came
            // by the ordered path) vouches for it only once it is committed: its timestamp may be
            // below that of a completed update, and recovery would then drop it.
            if self.is_leader() && !self.planted(PlantedBug::OkForOrdered) {
                if path == Path::Ordered && number > self.commit {
                    self.send_refused_body(id);
                }
                self.wait(number, Waiter { to: from, what: Awaited::Update(id) });
            } else {
                self.send_durable(from, self.ok(id));
            }
            return true;
        }
        if held.is_some() {
            // Its client asks because it cannot have the fast quorum: somebody has refused it.
            self.order_all_with_body_of(Some(id));
            if let Some(number) = self.backlog.ordered.get(&id).copied() {
                self.counters.slow_updates += 1;
                self.wait(number, Waiter { to: from, what: Awaited::Update(id) });
            }
            return true;
        }
        false
    }

    /// Leader: a client cannot have the fast quorum for an update that followers have been sent the id of. Whoever
    /// refused it lacks the body, and would ask for it later.
    fn send_refused_body(&mut self, id: OperationId) {
        if let Some(request) = self.dlog.get(id).map(|update| update.request.clone()) {
            let view = self.view;
            for replica in self.others() {
                let requests = Vec::from([request.clone()]);
                self.send(Peer::Replica(replica), Message::Bodies { view, requests });
            }
        }
    }

    /// Why the leader can order nothing more at present.
    pub(super) fn no_room_in_log(&self) -> Option<Refusal> {
        if self.resources.disk_failed {
            Some(Refusal::DiskFailed)
        } else if self.memory_bytes() >= self.config.settings.log_bytes_max {
            Some(Refusal::LogFull)
        } else if self.backlog.uncommitted_bytes >= self.config.settings.uncommitted_bytes_max
            || (self.config.engine_is_durable
                && self.backlog.unexecuted_bytes >= self.config.settings.unexecuted_bytes_max)
            || self.role.waiting() >= self.config.settings.waiting_max
        {
            Some(Refusal::Overloaded)
        } else {
            None
        }
    }

    /// Leader: orders everything accepted so far, then this, and answers when it is executed.
    fn order_now(&mut self, from: Peer, path: Path, update: Update, recipients: ReplicaSet) {
        let id = update.request.id;
        if let Some(refusal) = self.no_room_in_log() {
            return self.refuse_without_room(from, id, (path, recipients), refusal);
        }
        self.counters.slow_updates += 1;
        if !self.planted(PlantedBug::AcceptedLeftBehind) {
            self.order_all();
        }
        let number = self.append_full(update);
        self.wait(number, Waiter { to: from, what: Awaited::Update(id) });
    }

    /// Appends an update that is not in the durability log.
    pub(super) fn append_full(&mut self, update: Update) -> OpNumber {
        self.resources.take_disk_room(update.growth as u64);
        let prepared = Prepared::Full(update.request.clone());
        self.append_ordered(Payload::Update(update), prepared)
    }

    pub(super) fn append_ordered(&mut self, payload: Payload, prepared: Prepared) -> OpNumber {
        let entry = LogEntry { view: self.view, time: self.log_time(), payload };
        self.append_to_batch(entry, prepared)
    }

    /// Leader: has time pass for the state. False if the log has no room for that.
    pub(super) fn append_tick(&mut self) -> bool {
        let has_room = self.no_room_in_log().is_none();
        if has_room {
            self.append_ordered(Payload::Tick, Prepared::Tick);
        }
        has_room
    }

    /// Leader: ends idle sessions through the log.
    pub(super) fn expire_sessions(&mut self) {
        // One entry's worth; the rest goes with a later scan.
        const EXPIRED_AT_ONCE_MAX: usize = 1024;
        let mut idle =
            self.sessions.idle(self.log_time(), self.config.settings.session_timeout, EXPIRED_AT_ONCE_MAX);
        idle.retain(|id| !self.backlog.expiring.contains(id));
        if !idle.is_empty() && self.dlog.is_empty() && self.no_room_in_log().is_none() {
            let idle = idle.into_boxed_slice();
            self.append_ordered(Payload::Expire(idle.clone()), Prepared::Expire(idle));
        }
    }

    /// Leader: whether a connection may register another session: neither too many in a second, nor beyond the limit of
    /// all, for which idle sessions make room.
    fn may_register(&mut self, from: Peer) -> bool {
        let Peer::Client(client) = from else { return false };
        let is_member = self.attachments.is_member(client);
        if !self.attachments.may_register(
            client,
            self.now.instant,
            self.config.settings.registration_interval,
        ) {
            return false;
        }
        // Every member may come back and register anew while the session that it had is not idle yet.
        let reserve = if is_member { 4 * self.config.configuration.size() } else { 0 };
        let limit = self.config.settings.sessions_max + reserve;
        if self.sessions_to_come() < limit {
            return true;
        }
        self.end_least_recently_used();
        self.sessions_to_come() < limit
    }

    /// Sessions that there will be once the log is executed; when there are few, those that it ends count, too.
    fn sessions_to_come(&self) -> usize {
        let unexecuted = (self.log.op_number().0 - self.applied.0) as usize;
        if self.sessions.len() + unexecuted < self.config.settings.sessions_max {
            return self.sessions.len();
        }
        let entries =
            (self.applied.0 + 1..=self.log.op_number().0).filter_map(|n| self.log.entry(OpNumber(n)));
        let registered = entries.filter(|entry| matches!(entry.payload, Payload::Register { .. })).count();
        (self.sessions.len() + registered).saturating_sub(self.backlog.expiring.len())
    }

    /// Leader: all sessions are taken. Ends some through the log: first those that were never used, then those that have
    /// been idle for longest. Their clients register anew with their next update; one that is on its way ends as unknown.
    fn end_least_recently_used(&mut self) {
        // Enough for all who register before this is executed, and one modest entry.
        const ENDED_AT_ONCE_MAX: usize = 1024;
        // A client that has just been told of its session sends its first update at once.
        const UNUSED_MIN: Duration = Duration::from_millis(500);
        // A client in use sends an update every few round trips; its operations end after 10 seconds at the latest, but
        // those in flight are looked at below.
        const IDLE_MIN: Duration = Duration::from_secs(5);
        // Looking through all sessions takes a millisecond.
        const PAUSE: Duration = Duration::from_millis(20);
        if self.now.instant < self.sessions_ended_at.after(PAUSE) || self.no_room_in_log().is_some() {
            return;
        }
        self.sessions_ended_at = self.now.instant;
        // What the leader has accepted must come before the end of its session, wherever that takes effect.
        self.order_all();
        let unexecuted =
            (self.applied.0 + 1..=self.log.op_number().0).filter_map(|n| self.log.entry(OpNumber(n)));
        let busy: BTreeSet<SessionId> =
            unexecuted.flat_map(LogEntry::updates).map(|update| update.request.id.session).collect();
        // A client registers when it connects, and may have no update to send for a while.
        let held = self.attachments.newest_sessions();
        let may_end = |id| !busy.contains(&id) && !self.backlog.expiring.contains(&id);
        let is_held = |id| held.contains(&id);
        let time = self.log_time();
        let mut ended = self.sessions.least_recently_used(time, UNUSED_MIN, IDLE_MIN, is_held, may_end);
        ended.truncate(ENDED_AT_ONCE_MAX);
        if !ended.is_empty() {
            let ended = ended.into_boxed_slice();
            self.append_ordered(Payload::Expire(ended.clone()), Prepared::Expire(ended));
        }
    }

    /// True if the update would be ordered after one, still pending, that touches other keys too. Were it
    /// complete before that is, so would that be, as everybody may conclude from the key they share; but
    /// whoever reads one of the other keys need not have heard of it. A read of several keys that waits at the
    /// leader concludes as much from what it sees and does not see.
    ///
    /// Followers refuse as well: the leader may not have received the other one, and a view change would put it
    /// before this one all the same, as its timestamp says. Refused by all who hold it, this one does not
    /// complete in one round trip if so many hold the other that it can be recovered.
    fn completes_another(&self, update: &Update) -> bool {
        let footprint = &update.footprint;
        let ignored = self.planted(PlantedBug::SharedKeysIgnored)
            || (self.planted(PlantedBug::SharedKeysAtLeaderOnly) && !self.is_leader());
        !ignored
            && (self.dlog.overlaps_shared(footprint)
                || self.backlog.pending.overlaps_shared(footprint)
                || self.role.leading().is_some_and(|leader| leader.reading.overlaps_shared(footprint)))
    }

    /// True if an update must not enter the durability log because of what is there, or in the log.
    ///
    /// One that returns state is refused for anything pending at all (Skyros 5.7, CURP 3.2.1): then nothing can come
    /// between what the leader has executed and this update, whichever way both are recovered. That it also has to
    /// be executed at the leader matters there alone: what is in the log comes before what is in a durability log.
    fn conflicts(&self, update: &Update, admission: Admission) -> bool {
        if self.planted(PlantedBug::AllKeysAsOne) && update.footprint == Footprint::All {
            return false;
        }
        let footprint = &update.footprint;
        let is_refused = match admission {
            Admission::InTimestampOrder => {
                self.dlog.newest(footprint).is_some_and(|newest| newest > update.request.timestamp())
            }
            Admission::IfNothingOverlaps => {
                let is_evaluated = self.is_leader() && !update.class.is_nilext();
                let ignored = self.planted(PlantedBug::OverlapIgnored) && !self.is_leader();
                let is_executed = !self.backlog.pending.overlaps(footprint)
                    || self.planted(PlantedBug::EvaluatedBeforeExecuted);
                (self.dlog.overlaps(footprint) && !ignored)
                    || (is_evaluated && !(is_executed && self.view_is_durable()))
            }
        };
        (is_refused || self.completes_another(update)) && !self.planted(PlantedBug::NoConflictCheck)
    }

    /// An update that was to enter the durability log does not: the leader orders it, and a follower says that the leader has
    /// to be asked.
    fn decline(&mut self, from: Peer, recipients: ReplicaSet, update: Update) {
        if self.is_leader() {
            return self.order_now(from, Path::Durability, update, recipients);
        }
        let (view, clock, id) = (self.view, self.now.wall, update.request.id);
        self.send(from, Message::Conflict { view, id, clock });
    }

    /// The accept rule: conflict, or into the durability log.
    fn accept(&mut self, from: Peer, recipients: ReplicaSet, update: Update, admission: Admission) {
        let (view, clock, id) = (self.view, self.now.wall, update.request.id);
        if update.request.micros > clock.after(self.config.settings.clock_skew_max).0 {
            return self.refuse(from, id, Refusal::ClockSkew);
        }
        if self.memory_bytes() >= self.config.settings.log_bytes_max {
            return self.refuse_for_now(from, id, Refusal::LogFull);
        }
        if self.dlog.is_full() || self.dlog.bytes() >= self.config.settings.dlog_bytes_max {
            return self.refuse_for_now(from, id, Refusal::Overloaded);
        }
        if self.conflicts(&update, admission) {
            self.counters.conflicts += 1;
            return self.decline(from, recipients, update);
        }
        let is_evaluated = !update.class.is_nilext() && self.is_leader();
        let request = update.request.clone();
        self.resources.take_disk_room(update.growth as u64);
        let evaluated = is_evaluated.then(|| request.body.clone());
        // Who is not active has not kept it.
        let recipients = recipients.within(self.rule.active);
        self.dlog.insert(recipients, update, self.now.instant);
        self.persist_data(|| Record::Accept(request));
        self.counters.fast_updates += 1;
        if self.planted(PlantedBug::OkBeforePersist) {
            self.send(from, self.ok(id));
        } else {
            self.send_durable(from, self.ok(id));
        }
        if let Some(body) = evaluated {
            self.actions.push_back(Action::Evaluate { to: from, view, id, body });
        }
        if self.is_leader() {
            self.schedule_ordering();
        } else if self.has_parked() {
            self.append_parked();
        }
    }

    /// The engine could not say what an update returns without executing it: so it is executed.
    pub(super) fn on_not_evaluated(&mut self, to: Peer, id: OperationId) {
        // Otherwise it belongs to a view that has ended, and its client asks again.
        if self.is_normal() && self.is_leader() {
            self.order_all();
            let acked_below = self.find_pending(id).map_or(0, |update| update.request.acked_below);
            if !self.answer_from_sessions(to, (id, acked_below), (Path::Durability, ReplicaSet::ALL)) {
                self.answer_pending(to, Path::Ordered, id);
            }
        }
    }

    pub(super) fn wait(&mut self, number: OpNumber, waiter: Waiter) {
        let Role::Leader(leader) = &mut self.role else { return };
        leader.in_view.waiting += 1;
        leader.waiters.entry(number).or_default().push(waiter);
    }

    /// Answers those who waited for an entry. `dropped` are the replies of its updates that the session table does not
    /// keep.
    pub(super) fn answer_waiters(&mut self, number: OpNumber, dropped: &[(OperationId, Body)]) {
        let Role::Leader(leader) = &mut self.role else { return };
        let Some(waiters) = leader.waiters.remove(&number) else { return };
        leader.in_view.waiting -= waiters.len();
        let (view, clock) = (self.view, self.now.wall);
        for Waiter { to, what } in waiters {
            let message = match what {
                Awaited::Registration { nonce } => {
                    let session = SessionId(number.0);
                    self.attachments.on_registered(to, session);
                    Message::Registered { view, nonce, session }
                }
                Awaited::Update(id) => {
                    let Some(reply) = self.reply_of_executed(id, dropped) else { continue };
                    Message::Committed { view, id, clock, reply }
                }
            };
            self.send(to, message);
        }
    }

    /// What an update has returned that has just been executed. `dropped` are the replies that the session table does not
    /// keep. `None` if its client has acknowledged it meanwhile, or its session has ended.
    pub(super) fn reply_of_executed(&self, id: OperationId, dropped: &[(OperationId, Body)]) -> Option<Body> {
        match self.sessions.lookup(id) {
            OperationStatus::Executed(reply) => Some(reply.unwrap_or_else(empty_body)),
            OperationStatus::ReplyDropped => {
                let reply = dropped.iter().find(|(dropped, _)| *dropped == id);
                Some(reply.map_or_else(empty_body, |(_, reply)| reply.clone()))
            }
            _ => None,
        }
    }

    /// Followers' old updates: order those that are not known. This replica may have refused one of them for want of
    /// room: its client has not been told that it is nowhere then, because a follower has it.
    pub(super) fn on_forward(&mut self, view: View, requests: Vec<Request>) {
        if !self.is_leader() || view != self.view {
            return;
        }
        for request in requests {
            let id = request.id;
            let Some(update) = Update::describe(self.config.describe, request) else { continue };
            let refusals = self.role.in_view().map(|in_view| &in_view.refusals);
            let is_remembered = self.planted(PlantedBug::RefusalIsForGood)
                && refusals.is_some_and(|refusals| refusals.get(id).is_some());
            let new = self.status_of(id, update.request.acked_below) == OperationStatus::New
                && !self.dlog.contains(id)
                && !self.backlog.ordered.contains_key(&id)
                && !is_remembered
                && self.lacks_room_for(&update).is_none()
                && !self.is_expiring(id.session)
                && self.admission(&update).is_some();
            if new && self.no_room_in_log().is_none() {
                self.order_all();
                self.append_full(update);
            }
        }
    }

    /// Follower: updates that have been here for long were not accepted by the leader, or not seen.
    /// Their client may be gone. The leader orders them, so that the durability log stays short;
    /// those that their client has acknowledged (it was told they were refused) are dropped.
    pub(super) fn forward_old_updates(&mut self) {
        // Enough to drain any backlog in seconds, and one modest message.
        const FORWARDED_AT_ONCE_MAX: usize = 256;
        let age = self.config.settings.forward_after;
        let Some(moment) = self.now.instant.0.checked_sub(age.as_nanos() as u64) else { return };
        let mut forward = Vec::new();
        let mut drop = Vec::new();
        for update in self.dlog.unordered_since(syros_types::Instant(moment)).take(FORWARDED_AT_ONCE_MAX) {
            match self.sessions.lookup(update.request.id) {
                OperationStatus::Acknowledged
                | OperationStatus::Executed(_)
                | OperationStatus::ReplyDropped => {
                    drop.push(update.request.id);
                }
                // Its session has ended; the leader would refuse it.
                OperationStatus::UnknownSession if update.request.id.session.0 <= self.applied.0 => {
                    drop.push(update.request.id);
                }
                _ => forward.push(update.request.clone()),
            }
        }
        for id in drop {
            self.dlog.remove(id);
        }
        if !forward.is_empty() {
            let message = Message::Forward { view: self.view, requests: forward };
            self.send(Peer::Replica(self.leader()), message);
        }
    }

    pub(super) fn on_client_gone(&mut self, client: u64) {
        self.later_views.on_client_gone(client);
        self.attachments.remove(client);
        self.forget_disk_copier(client);
        self.role.forget_client(Peer::Client(client));
    }
}
