//! Copying the log: clients that make backups ask for the entries behind those that they have, and members and learners for those that
//! they lack.
//!
//! Only what is executed here is sent. What a replica has executed is committed, and stays at its number in the log of every
//! later view, so two answers, of whichever replicas and views, never contradict each other: each is a piece of one sequence.
//! The client names the last entry that it has, and hears of which view that is, so that it notices if it has another history.
//!
//! Entries that all members hold go from memory soon. Those that a client has not put away for good stay a while longer, up to a
//! quarter of `log_bytes_max`: one that goes on asking misses none, nor does who goes on in its place.
//!
//! Entries that are gone from memory may still be in the log on disk. They are read there by whoever carries out
//! [`Action::ReadEntries`], off the replica's thread, for a few at a time; a [`LogScan`](super::LogScan) says which may be told.
//!
//! A member or a learner that lacks what is gone from memory gets it from the disk, until it has come so far that memory holds the rest,
//! or a snapshot would have been much shorter. What follows that it gets from the disk again: however much clients write meanwhile, it
//! need not begin anew with another one.

use super::wanted_entries::{EntriesWanted, ScannedEntries};
use super::{Action, Durability, PlantedBug, Replica, TraceEvent};
use crate::message::{LogEntry, Message, Peer};
use alloc::vec::Vec;
use syros_types::{Instant, OpNumber, ReplicaId, View};

/// Clients that copy entries of this replica and are remembered: a few programs make backups of a cluster, and how much log
/// stays for them does not grow with their number. One more takes the place of the one that asked longest ago, for which nothing
/// is kept then.
const ENTRY_COPIERS_MAX: usize = 64;

/// A client is taken to copy entries for this many times `resend` after it last asked.
const PATIENCE_RESENDS: u32 = 200;

/// Clients for which the log on disk is read at a time: each keeps the disk busy, and takes memory for what is read ahead of the
/// entries that may be told.
pub const DISK_COPIERS_MAX: usize = 4;

/// Members and learners for which it is read at a time, beside clients: backups must not keep the group from becoming whole, and two
/// nodes come in together. Others wait.
pub const LAGGING_MAX: usize = 2;

/// Who has the log on disk read leaves its place to another one when it has not asked for this many times `resend`. A member that has
/// waited as long for an answer gets a snapshot.
const DISK_COPIER_RESENDS: u32 = 60;

/// So many answers in a row may hold no entries before a member gets a snapshot: reading goes on where it was with the next one.
const MISSES_MAX: u32 = 5;

/// A member that has asked for the same entries so many times more does not take them, because its disk has failed or nothing reaches it.
/// It gets them again every [`STUCK_RESENDS`] times `resend`, gives its place to others, and nothing is kept for it.
const REPEATS_MAX: u32 = 5;
const STUCK_RESENDS: u32 = 20;

/// For whom the log on disk is read.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "model", derive(Hash))]
pub(super) struct DiskCopier {
    copier: Peer,
    asked_at: Instant,
    /// When reading for it began last.
    read_at: Instant,
    /// It waits for what is being read.
    is_reading: bool,
    /// It has asked for what follows this entry, and so many times again.
    after: OpNumber,
    repeats: u32,
    /// Bytes that it has got since it was last told of a snapshot.
    given: usize,
    /// So many answers in a row have held no entries.
    misses: u32,
    /// There was nothing behind this entry: it is not looked for again before this.
    gone: Option<(OpNumber, Instant)>,
}

impl DiskCopier {
    /// True if it does not take what it gets.
    const fn is_stuck(&self) -> bool {
        self.repeats > REPEATS_MAX
    }
}

/// What becomes of a wish for entries that are on disk only.
enum DiskRead {
    Begun,
    /// The last one has not been answered yet.
    UnderWay,
    /// It is done for too many others.
    NoPlace,
}

/// Who copies entries.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntryCopier {
    copier: Peer,
    asked_at: Instant,
    /// It has put away everything up to here.
    has: OpNumber,
}

/// In models nobody but learners copies, and nothing leaves the log: who has what matters no more than when it asked.
#[cfg(feature = "model")]
impl core::hash::Hash for EntryCopier {
    fn hash<H: core::hash::Hasher>(&self, hasher: &mut H) {
        self.copier.hash(hasher);
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
        if self.diverged.is_some() || !self.note_entry_copier(Peer::Client(client), held.min(after)) {
            return self.counters.refused += 1;
        }
        let bytes_max =
            self.config.settings.transfer_bytes_max.min(usize::try_from(bytes_max).unwrap_or(usize::MAX));
        let is_on_disk = after < self.log.base() && self.config.durability == Durability::Fsync;
        if is_on_disk && bytes_max > 0 && !self.planted(PlantedBug::CopySkipsDropped) {
            return match self.read_from_disk(Peer::Client(client), after, bytes_max) {
                DiskRead::Begun => {}
                DiskRead::UnderWay => self.counters.refused += 1,
                // As if none followed: it asks again.
                DiskRead::NoPlace => self.tell_entries(client, after, after, View(0), Vec::new()),
            };
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

    /// A member or a learner asks for the log from `first` on, which is gone from memory: it gets what the log on disk holds, or a
    /// snapshot. How much log it lacks nobody knows. It gets log until that was twice as much as a snapshot would be, so it never gets
    /// more than three times what it needs.
    pub(super) fn give_dropped(&mut self, to: ReplicaId, first: OpNumber) {
        let after = OpNumber(first.0.saturating_sub(1));
        let (now, resend) = (self.now.instant, self.config.settings.resend);
        let known = self.disk_copier(Peer::Replica(to)).copied();
        let is_gone =
            known.and_then(|known| known.gone).is_some_and(|(behind, again)| behind == after && now < again);
        // Who has nothing had better get the state than its history.
        let had_better =
            after == OpNumber(0) || self.is_snapshot_shorter(after, known.map_or(0, |known| known.given));
        if !self.has_log_on_disk() || had_better || is_gone || self.diverged.is_some() {
            if let Some(known) = self.disk_copier(Peer::Replica(to)) {
                known.given = 0;
            }
            return self.offer_snapshot(to, after);
        }
        let stuck = known.filter(|known| known.after == after && known.is_stuck());
        if stuck.is_some_and(|stuck| now < stuck.read_at.after(resend * STUCK_RESENDS)) {
            return;
        }
        let bytes_max = self.config.settings.transfer_bytes_max;
        let is_late = known.is_some_and(|known| now >= known.read_at.after(resend * DISK_COPIER_RESENDS));
        match self.read_from_disk(Peer::Replica(to), after, bytes_max) {
            DiskRead::UnderWay if is_late => self.offer_snapshot(to, after),
            // What follows the snapshot that it had must stay until it has come so far.
            DiskRead::Begun | DiskRead::UnderWay if stuck.is_none() => self.snapshots.hear_reader(to, now),
            // It asks again. Those that have the places come to an end.
            DiskRead::Begun | DiskRead::UnderWay | DiskRead::NoPlace => {}
        }
    }

    /// True if what is gone from memory may be on disk.
    pub(super) fn has_log_on_disk(&self) -> bool {
        self.config.durability == Durability::Fsync && !self.resources.disk_failed
    }

    /// Somebody asks for entries that are gone from memory: they are read from the log on disk.
    fn read_from_disk(&mut self, copier: Peer, after: OpNumber, bytes_max: usize) -> DiskRead {
        let now = self.now.instant;
        if let Some(known) = self.disk_copier(copier) {
            known.asked_at = now;
            if core::mem::replace(&mut known.is_reading, true) {
                return DiskRead::UnderWay;
            }
            known.read_at = now;
            known.repeats = if known.after == after { known.repeats.saturating_add(1) } else { 0 };
            known.after = after;
        } else {
            let patience = self.config.settings.resend * DISK_COPIER_RESENDS;
            let is_client = |copier: Peer| matches!(copier, Peer::Client(_));
            let is_alike = |other: &DiskCopier| is_client(other.copier) == is_client(copier);
            let (most, is_member) =
                if is_client(copier) { (DISK_COPIERS_MAX, false) } else { (LAGGING_MAX, true) };
            let copiers = &mut self.snapshots.disk_copiers;
            if copiers.iter().filter(|other| is_alike(other)).count() >= most {
                copiers.retain(|other| {
                    // What is read for a member may never be answered: others would wait for its place for ever.
                    let is_held = other.is_reading && !(is_member && now >= other.read_at.after(patience));
                    let is_wanted = now < other.asked_at.after(patience) && !(is_member && other.is_stuck());
                    !is_alike(other) || is_held || (is_wanted && !other.is_reading)
                });
            }
            if copiers.iter().filter(|other| is_alike(other)).count() >= most {
                return DiskRead::NoPlace;
            }
            copiers.push(DiskCopier {
                copier,
                asked_at: now,
                read_at: now,
                is_reading: true,
                after,
                repeats: 0,
                given: 0,
                misses: 0,
                gone: None,
            });
        }
        let (mut applied, ticket) = (self.applied, self.persistence.last_ticket());
        if self.planted(PlantedBug::DroppedUncommitted) {
            applied = self.log.op_number();
        }
        let entries_max = self.config.settings.transfer_entries_max;
        self.actions.push_back(Action::ReadEntries(EntriesWanted {
            copier,
            after,
            applied,
            ticket,
            bytes_max,
            entries_max,
        }));
        DiskRead::Begun
    }

    fn disk_copier(&mut self, copier: Peer) -> Option<&mut DiskCopier> {
        self.snapshots.disk_copiers.iter_mut().find(|known| known.copier == copier)
    }

    /// What the log on disk holds of what somebody wants; `None` if it cannot be read.
    pub(super) fn on_entries_read(&mut self, copier: Peer, after: OpNumber, found: Option<ScannedEntries>) {
        let Some(known) = self.disk_copier(copier) else { return };
        known.is_reading = false;
        match copier {
            Peer::Client(client) => self.tell_entries_read(client, after, found),
            Peer::Replica(member) => self.give_entries_read(member, after, found),
        }
    }

    fn tell_entries_read(&mut self, client: u64, after: OpNumber, found: Option<ScannedEntries>) {
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

    /// A member or a learner gets what was found for it. All of it was executed here, and so is committed. If there is nothing it
    /// needs a snapshot.
    fn give_entries_read(&mut self, to: ReplicaId, after: OpNumber, found: Option<ScannedEntries>) {
        let again = self.now.instant.after(self.config.settings.resend * DISK_COPIER_RESENDS);
        let Some(known) = self.disk_copier(Peer::Replica(to)) else { return };
        let misses = core::mem::take(&mut known.misses);
        let entries = match found {
            Some(ScannedEntries::Entries { entries, .. }) if !entries.is_empty() => entries,
            Some(ScannedEntries::Entries { .. }) if misses < MISSES_MAX => return known.misses = misses + 1,
            _ => {
                known.gone = Some((after, again));
                return self.offer_snapshot(to, after);
            }
        };
        let bytes: usize = entries.iter().map(LogEntry::memory_bytes).sum();
        known.given = known.given.saturating_add(bytes);
        if self.diverged.is_some() {
            return self.counters.refused += 1;
        }
        let (view, first, mut commit) = (self.view, after.next(), self.announced_commit());
        if self.planted(PlantedBug::DroppedUncommitted) {
            commit = commit.max(OpNumber(after.0 + entries.len() as u64));
        }
        self.trace(TraceEvent::DroppedEntriesGiven { to, first, entries: entries.len() as u64 });
        self.send(Peer::Replica(to), Message::NewState { view, first, commit, entries });
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
        let client = Peer::Client(client);
        self.snapshots.disk_copiers.retain(|known| known.copier != client || known.is_reading);
    }

    /// Notes that somebody copies entries. False if it has asked at this very moment before: whoever copies waits for the
    /// answer, and a few bytes ask for megabytes.
    pub(super) fn note_entry_copier(&mut self, copier: Peer, has: OpNumber) -> bool {
        let now = self.now.instant;
        let patience = self.config.settings.resend * PATIENCE_RESENDS;
        let copiers = &mut self.snapshots.entry_copiers;
        if copiers.iter().any(|other| other.copier == copier && other.asked_at == now) {
            return false;
        }
        copiers.retain(|other| other.copier != copier && now < other.asked_at.after(patience));
        if copiers.len() >= ENTRY_COPIERS_MAX {
            let longest = copiers.iter().enumerate().min_by_key(|(_, other)| other.asked_at);
            if let Some((at, _)) = longest {
                copiers.remove(at);
            }
        }
        copiers.push(EntryCopier { copier, asked_at: now, has });
        true
    }

    /// The last entry that everybody has put away who copies entries from memory; `None` if nobody does. For a client that needs what
    /// is gone from memory nothing more is kept there. A learner is to come in, and so all that memory still holds stays for it.
    pub(super) fn held_by_copiers(&self) -> Option<OpNumber> {
        let patience = self.config.settings.resend * PATIENCE_RESENDS;
        let base = self.log.base();
        let is_recent = |it: &&EntryCopier| self.now.instant < it.asked_at.after(patience);
        let needed = |it: &EntryCopier| match it.copier {
            Peer::Client(_) => (it.has >= base).then_some(it.has),
            Peer::Replica(_) => Some(it.has.max(base)),
        };
        self.snapshots.entry_copiers.iter().filter(is_recent).filter_map(needed).min()
    }
}
