//! Copying the log: clients that make backups ask for the entries behind those that they have.
//!
//! Only what is executed here is sent. What a replica has executed is committed, and stays at its number in the log of every
//! later view, so two answers, of whichever replicas and views, never contradict each other: each is a piece of one sequence.
//! The client names the last entry that it has, and hears of which view that is, so that it notices if it has another history.
//!
//! Entries that all members hold go from memory soon. Those that a client has not put away for good stay a while longer, up to a
//! quarter of `log_bytes_max`: one that goes on asking misses none, nor does who goes on in its place.

use super::{PlantedBug, Replica};
use crate::message::{Message, Peer};
use alloc::vec::Vec;
use syros_types::{Instant, OpNumber, View};

/// Clients that copy entries of this replica and are remembered: a few programs make backups of a cluster, and how much log
/// stays for them does not grow with their number. One more takes the place of the one that asked longest ago, for which nothing
/// is kept then.
const ENTRY_COPIERS_MAX: usize = 64;

/// A client is taken to copy entries for this many times `resend` after it last asked.
const PATIENCE_RESENDS: u32 = 200;

/// A client that copies entries.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "model", derive(Hash))]
pub(super) struct EntryCopier {
    client: u64,
    asked_at: Instant,
    /// It has put away everything up to here.
    has: OpNumber,
}

impl Replica {
    /// A client asks for executed entries after `after`, of about `bytes_max` bytes, and has put away all up to `held`.
    pub(super) fn on_want_entries(&mut self, client: u64, after: OpNumber, held: OpNumber, bytes_max: u64) {
        // What a replica holds whose state is not that of the majority may be wrong in other ways, too.
        if self.diverged.is_some() || !self.note_entry_copier(client, held.min(after)) {
            return self.counters.refused += 1;
        }
        let bytes_max =
            self.config.settings.transfer_bytes_max.min(usize::try_from(bytes_max).unwrap_or(usize::MAX));
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
        let applied = self.applied;
        self.send(
            Peer::Client(client),
            Message::CommittedEntries { after, after_view, base, applied, entries },
        );
    }

    /// Notes that a client copies entries. False if it has asked at this very moment before: whoever copies waits for the
    /// answer, and a few bytes ask for megabytes.
    fn note_entry_copier(&mut self, client: u64, has: OpNumber) -> bool {
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

    /// The last entry that every client has put away that copies entries; `None` if none does.
    pub(super) fn held_by_copiers(&self) -> Option<OpNumber> {
        let patience = self.config.settings.resend * PATIENCE_RESENDS;
        let is_recent = |copier: &&EntryCopier| self.now.instant < copier.asked_at.after(patience);
        self.snapshots.entry_copiers.iter().filter(is_recent).map(|copier| copier.has).min()
    }
}
