//! What the log holds that the state machine has not executed.

use crate::durability_log::{DurabilityLog, KeyIndex};
use crate::hash::{HashMap, shrink_table};
use crate::log::Log;
use crate::message::{LogEntry, Payload};
use alloc::collections::BTreeSet;
use syros_types::{OpNumber, OperationId, Reconfiguration, SessionId};

/// The entries of the log that are not executed, by operation, by key and by size.
#[derive(Clone, Debug, Default)]
pub(super) struct Backlog {
    /// Updates in the log and not yet applied.
    pub(super) ordered: HashMap<OperationId, OpNumber>,
    /// Keys of the updates in the log that are neither applied nor in the durability log.
    pub(super) pending: KeyIndex,
    /// Sessions that entries of the log end which are not yet applied.
    pub(super) expiring: BTreeSet<SessionId>,
    /// The next configuration, if an entry of the log that is not applied says it: there is one at a time.
    pub(super) reconfiguration: Option<(OpNumber, Reconfiguration)>,
    /// Bytes of log entries that are not committed, as this replica counted when it entered the view; a leader goes on
    /// counting.
    pub(super) uncommitted_bytes: usize,
    /// Bytes of log entries that are committed and not executed.
    pub(super) unexecuted_bytes: usize,
    /// Bytes by which what is ordered and not executed may make the state grow.
    pub(super) ordered_growth: usize,
}

impl Backlog {
    /// That of a log whose entries are applied up to `applied`, and committed up to `commit`.
    pub(super) fn of_log(log: &Log, applied: OpNumber, commit: OpNumber, dlog: &DurabilityLog) -> Self {
        let mut backlog = Self::default();
        for number in (applied.0 + 1..=log.op_number().0).map(OpNumber) {
            let Some(entry) = log.entry(number) else { continue };
            backlog.ordered_growth += entry.growth();
            if number > commit {
                backlog.uncommitted_bytes += entry.memory_bytes();
            } else {
                backlog.unexecuted_bytes += entry.memory_bytes();
            }
            backlog.on_appended(number, entry);
            for update in entry.updates() {
                backlog.ordered.insert(update.request.id, number);
                if !dlog.contains(update.request.id) {
                    backlog.pending.add(&update.footprint, update.request.timestamp());
                }
            }
        }
        backlog
    }

    /// An entry has been appended to the log: takes note of what is in it besides updates.
    pub(super) fn on_appended(&mut self, number: OpNumber, entry: &LogEntry) {
        match &entry.payload {
            Payload::Expire(ids) => self.expiring.extend(ids),
            Payload::Reconfigure(next) => self.reconfiguration = Some((number, **next)),
            Payload::Register { .. } | Payload::Tick | Payload::Update(_) | Payload::Recovered(_) => {}
        }
    }

    /// The leader of the view has appended an entry.
    pub(super) fn on_ordered(&mut self, entry: &LogEntry) {
        self.uncommitted_bytes += entry.memory_bytes();
        self.ordered_growth += entry.growth();
    }

    /// An entry of so many bytes that a leader has ordered is committed.
    pub(super) const fn on_committed(&mut self, bytes: usize) {
        self.uncommitted_bytes = self.uncommitted_bytes.saturating_sub(bytes);
        self.unexecuted_bytes += bytes;
    }

    /// An entry of so many bytes has been executed.
    pub(super) fn on_executed(&mut self, entry: &LogEntry, bytes: usize) {
        self.ordered_growth = self.ordered_growth.saturating_sub(entry.growth());
        self.unexecuted_bytes = self.unexecuted_bytes.saturating_sub(bytes);
    }

    /// An entry that is not committed has been removed from the end of the log.
    pub(super) fn on_removed(&mut self, number: OpNumber, entry: &LogEntry, dlog: &DurabilityLog) {
        self.reconfiguration.take_if(|(ordered, _)| *ordered == number);
        if let Payload::Expire(ids) = &entry.payload {
            for id in ids {
                self.expiring.remove(id);
            }
        }
        for update in entry.updates() {
            self.ordered.remove(&update.request.id);
            if !dlog.contains(update.request.id) {
                self.pending.remove(&update.footprint);
            }
        }
    }

    /// Gives back memory that many entries took.
    pub(super) fn shrink(&mut self) {
        shrink_table(&mut self.ordered);
    }

    /// What a model checker sees.
    #[cfg(feature = "model")]
    pub(super) fn fingerprint(&self, hasher: &mut impl core::hash::Hasher) {
        use alloc::vec::Vec;
        use core::hash::Hash;
        let Self {
            ordered,
            pending,
            expiring,
            reconfiguration,
            uncommitted_bytes,
            unexecuted_bytes,
            ordered_growth,
        } = self;
        let mut ordered: Vec<_> = ordered.iter().collect();
        ordered.sort_unstable();
        ordered.hash(hasher);
        pending.fingerprint(hasher);
        (expiring, reconfiguration, uncommitted_bytes, unexecuted_bytes, ordered_growth).hash(hasher);
    }
}
