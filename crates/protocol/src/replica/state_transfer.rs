//! Catching up by log transfer (VR 5.2). Within a view the leader's log is simply continued. Between
//! views only committed entries are taken over in place, because an entry that this replica vouched
//! for in an earlier view may be truncated only where a committed entry proves it never committed,
//! or when the new view's whole log is installed at once.

use super::role::Role;
use super::{PlantedBug, Replica};
use crate::message::{LogEntry, Message, Payload, Peer};
use crate::record::Record;
use alloc::vec::Vec;
use syros_types::{OpNumber, ReplicaId, ReplicaSet, View};

impl Replica {
    /// Follower: asks the leader for what follows the log; not again until `resend` has passed.
    pub(super) fn request_state(&mut self) {
        let Role::Follower(follower) = &self.role else { return };
        let again = follower.state_requested.map(|at| at.after(self.config.settings.resend));
        if again.is_some_and(|again| self.now.instant < again) {
            return;
        }
        self.request_state_from(self.leader(), self.log.op_number().next());
    }

    /// Asks for the log from `first` on.
    pub(super) fn request_state_from(&mut self, source: ReplicaId, first: OpNumber) {
        if self.is_downloading() {
            return;
        }
        if let Role::Follower(follower) = &mut self.role {
            follower.state_requested = Some(self.now.instant);
        }
        let view = self.view;
        self.send(Peer::Replica(source), Message::GetState { view, from: first });
    }

    pub(super) fn on_get_state(&mut self, from: ReplicaId, view: View, first: OpNumber) {
        // What a replica without its memory has fetched may come from later views than its own, which would say otherwise.
        if matches!(self.role, Role::Recovering(_)) && !self.planted(PlantedBug::AmnesiacGivesState) {
            return;
        }
        self.note_learner(from, OpNumber(first.0.saturating_sub(1)));
        let same_view = self.is_normal() && view == self.view;
        if same_view && first <= self.log.op_number().next() {
            self.hear_fetching(from, (first, 0));
        }
        if first.0 > 0 && first <= self.log.base() {
            return self.give_dropped(from, first);
        }
        let last = if same_view { self.log.op_number() } else { self.commit };
        let mut entries = Vec::new();
        let mut bytes = 0;
        let mut number = first;
        while number.0 > 0
            && number <= last
            && bytes < self.config.settings.transfer_bytes_max
            && number.0 - first.0 < self.config.settings.transfer_entries_max
        {
            let Some(entry) = self.log.entry(number) else { break };
            bytes += entry.memory_bytes();
            entries.push(entry.clone());
            number = number.next();
        }
        if !entries.is_empty() {
            let commit = self.announced_commit();
            let view = self.view;
            self.send(Peer::Replica(from), Message::NewState { view, first, commit, entries });
        }
    }

    pub(super) fn on_new_state(
        &mut self,
        view: View,
        first: OpNumber,
        commit: OpNumber,
        entries: Vec<LogEntry>,
    ) {
        let op_number = self.log.op_number();
        if first.0 == 0 || first > op_number.next() || entries.is_empty() {
            return;
        }
        if self.is_normal() {
            if view == self.view && !self.is_leader() {
                self.continue_log(first, commit, entries);
            }
        } else if self.awaits_transfer() {
            if self.is_left_behind(view) {
                return;
            }
            let before = self.commit;
            self.take_committed(first, commit, entries);
            self.try_install();
            // Only progress asks for more: an answer to a question asked twice would otherwise start
            // another chain of questions.
            if self.commit > before && self.awaits_transfer() {
                self.request_transfer();
            }
        }
    }

    /// The view that this replica is in, or about to enter.
    pub(super) fn entering(&self) -> View {
        self.role.transfer().map_or(self.view, |transfer| transfer.start.view)
    }

    /// Between views: true if the sender of a part of the log has left the view behind that this replica
    /// is about to enter. Entries of later views must not get into it; the later view is asked for instead.
    pub(super) fn is_left_behind(&mut self, view: View) -> bool {
        let left_behind = view > self.entering();
        if left_behind {
            if let Some(transfer) = self.role.transfer_mut() {
                *transfer = None;
            }
            self.ask_for_start_view(view);
        }
        left_behind
    }

    /// Normal follower: appends what the leader's log has after this one.
    fn continue_log(&mut self, first: OpNumber, commit: OpNumber, mut entries: Vec<LogEntry>) {
        let Role::Follower(follower) = &mut self.role else { return };
        follower.hear_commit(commit);
        let base = self.log.op_number();
        let known = usize::try_from(base.0 + 1 - first.0).unwrap_or(usize::MAX);
        let fits = entries.get(known).is_some_and(|entry| {
            self.log.view_at(base) <= Some(entry.view) && self.log.last_time() <= entry.time
        });
        let trusts = self.planted(PlantedBug::PeersNotValidated);
        if known < entries.len() && !self.resources.disk_failed && (fits || trusts) {
            // What is parked overlaps; whatever follows is asked for again.
            self.forget_parked();
            let new = entries.split_off(known);
            for entry in &new {
                for update in entry.updates() {
                    self.dlog.order(update.request.id);
                }
                self.append_entry(entry.clone());
            }
            self.persist_data(|| Record::Transfer { base, entries: new });
            self.on_append();
            self.owe_ack();
            self.request_state_from(self.leader(), self.log.op_number().next());
        }
        self.follow_commit();
    }

    /// Between views: takes over those of the entries that are committed.
    fn take_committed(&mut self, first: OpNumber, commit: OpNumber, mut entries: Vec<LogEntry>) {
        // Only what continues the committed part: between it and a later part lie entries of this
        // log that nobody has vouched for.
        if first > self.commit.next() {
            return;
        }
        let committed = commit.0.saturating_sub(first.0 - 1);
        if self.planted(PlantedBug::LearnerActsEarly) && self.is_learner() {
            let found = entries.iter().find_map(|entry| match &entry.payload {
                Payload::Reconfigure(next) => Some(**next),
                _ => None,
            });
            found.into_iter().for_each(|next| self.learn_configuration(next));
        }
        if !(self.planted(PlantedBug::LearnerTakesAll) && self.is_learner()) {
            entries.truncate(usize::try_from(committed).unwrap_or(usize::MAX));
        }
        let last = OpNumber(first.0 - 1 + entries.len() as u64);
        if !self.continues(OpNumber(first.0 - 1), &entries) {
            self.counters.refused += 1;
            return;
        }
        let (unchanged, changed) = self.reconcile(OpNumber(first.0 - 1), entries);
        if changed {
            let suffix = self.log.suffix(unchanged);
            self.persist_data(|| Record::Transfer { base: unchanged, entries: suffix });
            self.on_append();
        }
        self.commit = self.commit.max(last);
    }

    /// How far `entries` after `base` are in this log already: the last op number, and how many of them that are.
    pub(super) fn agreement(&self, base: OpNumber, entries: &[LogEntry]) -> (OpNumber, usize) {
        // What is committed here is the same everywhere, and need not be here any more.
        let committed = usize::try_from(self.commit.0.saturating_sub(base.0)).unwrap_or(usize::MAX);
        let mut last = base.max(self.commit);
        let mut known = committed.min(entries.len());
        while let Some(entry) = entries.get(known)
            && self.log.view_at(last.next()) == Some(entry.view)
        {
            last = last.next();
            known += 1;
        }
        (last, known)
    }

    /// Makes the log agree with `entries` after `base`, keeping what agrees already. Returns the last
    /// op number left as it was, and whether anything changed.
    pub(super) fn reconcile(&mut self, base: OpNumber, entries: Vec<LogEntry>) -> (OpNumber, bool) {
        assert!(base <= self.log.op_number(), "entries must connect to the log");
        let (unchanged, known) = self.agreement(base, &entries);
        let changed = known < entries.len();
        if changed {
            self.truncate(unchanged);
            for entry in entries.into_iter().skip(known) {
                self.append_entry(entry);
            }
        }
        (unchanged, changed)
    }

    /// Removes the entries after `last`.
    pub(super) fn truncate(&mut self, last: OpNumber) {
        while self.log.op_number() > last {
            self.pop_entry();
        }
        self.persistence.truncate(last);
    }

    /// True if everything up to `base` is in the log and agrees with whoever names it.
    pub(super) fn agrees_up_to(&self, base: OpNumber, base_view: View) -> bool {
        self.commit >= base || self.log.view_at(base) == Some(base_view)
    }

    pub(super) fn awaits_transfer(&self) -> bool {
        match &self.role {
            Role::ViewChange(change) => change.transfer.is_some() || change.source.is_some(),
            Role::Recovering(recovering) => recovering.transfer.is_some(),
            Role::Leader(_) | Role::Follower(_) => false,
        }
    }

    /// Asks for the next part of what keeps this replica from entering the view.
    pub(super) fn request_transfer(&mut self) {
        let source = match (self.role.transfer(), &self.role) {
            (Some(transfer), _) => Some(transfer.from),
            (None, Role::ViewChange(change)) => change.source,
            _ => None,
        };
        if let Some(source) = source {
            self.request_state_from(source, self.commit.next());
        }
    }

    /// As [`request_transfer`](Self::request_transfer), once more. The member whose log a new leader goes by may never hear it, where
    /// links work in one direction only. What is missing is committed, so others who know it to be can give it as well.
    pub(super) fn request_transfer_again(&mut self) {
        self.request_transfer();
        let Role::ViewChange(change) = &self.role else { return };
        if change.transfer.is_some() || self.planted(PlantedBug::SourceAskedAlone) {
            return;
        }
        let others = change.changes.iter().filter(|(sender, told)| {
            change.source.is_some_and(|source| source != **sender) && told.commit > self.commit
        });
        let others: ReplicaSet = others.map(|(sender, _)| *sender).collect();
        for other in others.without(self.config.replica).iter() {
            self.request_state_from(other, self.commit.next());
        }
    }

    /// Enters the view if nothing is missing any more.
    pub(super) fn try_install(&mut self) {
        if let Some(transfer) = self.role.transfer_mut().and_then(Option::take) {
            if self.agrees_up_to(transfer.start.base, transfer.start.base_view) {
                if self.is_learner() {
                    self.on_learned(transfer.start.base);
                } else if self.continues(transfer.start.base, &transfer.start.suffix) {
                    self.enter_as_follower(*transfer.start);
                } else {
                    self.counters.refused += 1;
                }
            } else if let Some(place) = self.role.transfer_mut() {
                *place = Some(transfer);
            }
        } else if matches!(self.role, Role::ViewChange(_)) {
            self.try_start_view();
        }
    }
}
