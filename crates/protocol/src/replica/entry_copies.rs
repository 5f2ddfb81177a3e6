//! Copying the log: clients that make backups ask for the entries behind those that they have.
//!
//! Only what is executed here is sent. What a replica has executed is committed, and stays at its number in the log of every
//! later view, so two answers, of whichever replicas and views, never contradict each other: each is a piece of one sequence.
//! The client names the last entry that it has, and hears of which view that is, so that it notices if it has another history.
//!
//! Entries that all members hold go from memory soon. Those that a client has not put away for good stay a while longer, up to a
//! quarter of `log_bytes_max`: one that goes on asking misses none, nor does who goes on in its place.
//!
//! Entries that are gone from memory may still be in the log on disk. They are read there by whoever carries out
//! [`Action::ReadEntries`], off the replica's thread, for a few clients at a time; a [`LogScan`](super::LogScan) says which may be told.

use super::wanted_entries::{EntriesWanted, ScannedEntries};
use super::{Action, Durability, PlantedBug, Replica};
use crate::message::{LogEntry, Message, Peer};
use alloc::vec::Vec;
use syros_types::{Instant, OpNumber, View};

/// Clients that copy entries of this replica and are remembered: a few programs make backups of a cluster, and how much log
/// stays for them does not grow with their number. One more takes the place of the one that asked longest ago, for which nothing
/// is kept then.
const ENTRY_COPIERS_MAX: usize = 64;

/// A client is taken to copy entries for this many times `resend` after it last asked.
const PATIENCE_RESENDS: u32 = 200;

/// Clients for which the log on disk is read at a time: each keeps the disk busy, and takes memory for what is read ahead of the
/// entries that may be told.
pub const DISK_COPIERS_MAX: usize = 4;

/// A client for which the log on disk is read leaves its place to another one when it has not asked for this many times `resend`.
const DISK_COPIER_RESENDS: u32 = 60;

/// A client for which the log on disk is read.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "model", derive(Hash))]
pub(super) struct DiskCopier {
    client: u64,
    asked_at: Instant,
    /// It waits for what is being read.
    is_reading: bool,
}

/// A client that copies entries.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntryCopier {
    client: u64,
    asked_at: Instant,
    /// It has put away everything up to here.
    has: OpNumber,
}

/// In models nobody but learners copies, and nothing leaves the log: who has what matters no more than when it asked.
#[cfg(feature = "model")]
impl core::hash::Hash for EntryCopier {
    fn hash<H: core::hash::Hasher>(&self, hasher: &mut H) {
        self.client.hash(hasher);
    }
}

impl Replica {
    /// Who copies the log gets entries from memory that follow this one.
    #[must_use]
    pub const fn log_base(&self) -> OpNumber {
        self.log.base()
    }

    /// A client asks for executed entries after `after`, of about `bytes_max` bytes, and has put away all up to `held`.
    pub(super) fn on_want_entries(&mut self, client: u64, after: OpNumber, held: OpNumber, bytes_max: u64) {
        // What a replica holds whose state is not that of the majority may be wrong in other ways, too.
        if self.diverged.is_some() || !self.note_entry_copier(client, held.min(after)) {
            return self.counters.refused += 1;
        }
        let bytes_max =
            self.config.settings.transfer_bytes_max.min(usize::try_from(bytes_max).unwrap_or(usize::MAX));
        let is_on_disk = after < self.log.base() && self.config.durability == Durability::Fsync;
        if is_on_disk && bytes_max > 0 && !self.planted(PlantedBug::CopySkipsDropped) {
            return self.read_entries(client, after, bytes_max);
        }
        let skips_dropped = self.planted(PlantedBug::CopySkipsDropped) && after < self.log.base();
        let (base, known) = if skips_dropped { (after, self.log.base()) } else { (self.log.base(), after) };
        let last =
            if self.planted(PlantedBug::CopyUncommitted) { self.log.op_number() } else { self.applied };
        let mut entries = Vec::new();
        let mut bytes = 0;
        // Of what is gone from the log there is no first entry, and so none at all.
        let mut number = OpNumber(known.0.saturating_add(1));
        while number <= last
            && bytes < bytes_max
            && (entries.len() as u64) < self.config.settings.transfer_entries_max
        {
            let Some(entry) = self.log.entry(number) else { break };
            bytes += entry.memory_bytes();
            entries.push(entry.clone());
            number = number.next();
        }
        let after_view = self.log.view_at(after).unwrap_or(View(0));
        self.tell_entries(client, after, base, after_view, entries);
    }

    /// A client asks for entries that are gone from memory: they are read from the log on disk. If that is done for too many others,
    /// it gets no entries, as if none followed, and asks again.
    fn read_entries(&mut self, client: u64, after: OpNumber, bytes_max: usize) {
        let now = self.now.instant;
        let patience = self.config.settings.resend * DISK_COPIER_RESENDS;
        let copiers = &mut self.snapshots.disk_copiers;
        if let Some(copier) = copiers.iter_mut().find(|copier| copier.client == client) {
            copier.asked_at = now;
            if core::mem::replace(&mut copier.is_reading, true) {
                return self.counters.refused += 1;
            }
        } else {
            if copiers.len() >= DISK_COPIERS_MAX {
                copiers.retain(|other| other.is_reading || now < other.asked_at.after(patience));
            }
            if copiers.len() >= DISK_COPIERS_MAX {
                return self.tell_entries(client, after, after, View(0), Vec::new());
            }
            copiers.push(DiskCopier { client, asked_at: now, is_reading: true });
        }
        let (applied, ticket) = (self.applied, self.persistence.last_ticket());
        let entries_max = self.config.settings.transfer_entries_max;
        self.actions.push_back(Action::ReadEntries(EntriesWanted {
            client,
            after,
            applied,
            ticket,
            bytes_max,
            entries_max,
        }));
    }

    /// What the log on disk holds of what a client wants; `None` if it cannot be read.
    pub(super) fn on_entries_read(&mut self, client: u64, after: OpNumber, found: Option<ScannedEntries>) {
        let copiers = &mut self.snapshots.disk_copiers;
        let Some(copier) = copiers.iter_mut().find(|copier| copier.client == client) else { return };
        copier.is_reading = false;
        if self.diverged.is_some() {
            return self.counters.refused += 1;
        }
        match found {
            Some(ScannedEntries::Entries { after_view, entries }) => {
                self.tell_entries(client, after, after, after_view, entries);
            }
            Some(ScannedEntries::Gone { base, .. }) => {
                let base = base.min(self.log.base()).max(after.next());
                self.tell_entries(client, after, base, View(0), Vec::new());
            }
            // Those in memory are left.
            None => {
                let base = self.log.base().max(after.next());
                self.tell_entries(client, after, base, View(0), Vec::new());
            }
        }
    }

    /// Sends a client entries behind `after`, which is of this view, from a log that begins behind `base`.
    fn tell_entries(
        &mut self,
        client: u64,
        after: OpNumber,
        base: OpNumber,
        after_view: View,
        entries: Vec<LogEntry>,
    ) {
        let applied = self.applied;
        let message = Message::CommittedEntries { after, after_view, base, applied, entries };
        self.send(Peer::Client(client), message);
    }

    /// Nothing more is told to this client. What is being read for it takes its place until that has ended.
    pub(super) fn forget_disk_copier(&mut self, client: u64) {
        self.snapshots.disk_copiers.retain(|copier| copier.client != client || copier.is_reading);
    }

    /// Notes that a client copies entries. False if it has asked at this very moment before: whoever copies waits for the
    /// answer, and a few bytes ask for megabytes.
    pub(super) fn note_entry_copier(&mut self, client: u64, has: OpNumber) -> bool {
        let now = self.now.instant;
        let patience = self.config.settings.resend * PATIENCE_RESENDS;
        let copiers = &mut self.snapshots.entry_copiers;
        if copiers.iter().any(|other| other.client == client && other.asked_at == now) {
            return false;
        }
        copiers.retain(|other| other.client != client && now < other.asked_at.after(patience));
        if copiers.len() >= ENTRY_COPIERS_MAX {
            let longest = copiers.iter().enumerate().min_by_key(|(_, other)| other.asked_at);
            if let Some((at, _)) = longest {
                copiers.remove(at);
            }
        }
        copiers.push(EntryCopier { client, asked_at: now, has });
        true
    }

    /// The last entry that every client has put away that copies entries from memory; `None` if none does. For one that needs what
    /// is gone from memory nothing more is kept there.
    pub(super) fn held_by_copiers(&self) -> Option<OpNumber> {
        let patience = self.config.settings.resend * PATIENCE_RESENDS;
        let base = self.log.base();
        let is_recent =
            |copier: &&EntryCopier| self.now.instant < copier.asked_at.after(patience) && copier.has >= base;
        self.snapshots.entry_copiers.iter().filter(is_recent).map(|copier| copier.has).min()
    }
}
