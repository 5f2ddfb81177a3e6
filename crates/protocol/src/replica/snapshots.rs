//! Snapshots, and the transfer of one to a replica that lacks log entries no member keeps (VR 5.1, 5.2).
//!
//! The memory of the log is bounded by dropping entries that are applied. Whoever needs one of those
//! gets a snapshot that is newer. With durability `fsync`, a snapshot also lets the write-ahead log
//! before it go. The file is the driver's business; the core says when to take one and of what, and
//! which parts of a file to ask another member for.
//!
//! A snapshot holds a committed prefix, so it is true in every view. What the receiver's own log holds
//! after it stays if the two agree about the snapshot's last entry: the replica may have vouched for it.

use super::entry_copies::{DiskCopier, EntryCopier};
use super::role::Role;
use super::timers::Timer;
use super::{Action, PlantedBug, Replica, TraceEvent};
use crate::message::{LogEntry, Message, Peer};
use crate::record::{Checkpoint, Record, SnapshotHead, Ticket};
use crate::sessions::Sessions;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;
use syros_types::{Instant, OpNumber, OperationId, ReplicaId, View};

/// A snapshot that could not be written or installed is tried again after this long.
const RETRY: Duration = Duration::from_secs(1);

/// Where the disk is short, a snapshot is tried at most so often: one that has room lets the log go.
const URGENT: Duration = Duration::from_secs(10);

/// Bytes of log entries after a snapshot that a checkpoint may repeat: a record is written in one piece. A
/// replica that has more to execute takes none; it does just after a restart.
const CHECKPOINT_LOG_BYTES_MAX: usize = 128 << 20;

/// A longer one is written where the disk is short at most as often as [`URGENT`] says, then half as often, and so on until a snapshot
/// succeeds: what cannot be committed is not to fill the rest of the disk.
const CHECKPOINT_LOG_BYTES_SHORT: usize = 16 << 10;

/// A replica keeps this share of `log-keep` even of what every member holds: a member whose memory or disk is lost needs no
/// snapshot then where all is small. The leader tells what all hold whenever it has dropped so much.
pub(super) const HELD_SHARE: usize = 64;

/// While somebody reads a snapshot, the log behind it may become so many times as long as it would otherwise.
const READ_SHARE: usize = 4;

/// A member that lacks no more log than goes into so many answers gets that, however short a snapshot is.
const LITTLE_ANSWERS: usize = 16;

/// A member is taken to be reading a snapshot for this many times `resend` after it last asked.
const READER_RESENDS: u32 = 40;

/// A part of a snapshot is asked for this many times before another source is looked for.
const ASKS_MAX: u32 = 5;

/// Clients that copy snapshots of this replica at a time: each keeps the disk busy, and the next snapshot waiting.
const COPIERS_MAX: usize = 4;

/// A client that copies a snapshot.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "model", derive(Hash))]
struct Copier {
    client: u64,
    asked_at: Instant,
    /// It reads one, and has not just asked for one.
    reads: bool,
}

/// What a replica knows of snapshots.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "model", derive(Hash))]
pub(super) struct Snapshots {
    /// The newest file on this disk, and its length in bytes.
    newest: Option<(OpNumber, u64)>,
    /// The record that went with it. While somebody reads it, the log on disk stays from there on.
    newest_ticket: Ticket,
    /// The last checkpoint of an engine that is durable itself.
    checkpoint: OpNumber,
    /// The last checkpoint in the write-ahead log, and its record: it goes with every snapshot of as much as that, because what
    /// has changed since follows it. So a snapshot that fails again and again is not written to the log each time.
    logged: Option<(OpNumber, Ticket)>,
    /// Where the disk is short: long checkpoints written since a snapshot succeeded, and when the next one may be.
    long_checkpoints: u32,
    long_checkpoint_at: Instant,
    /// The one being written.
    taking: Option<SnapshotInProgress>,
    /// Somebody needs one newer than `newest`.
    wanted: bool,
    /// The last one was to be a file, and failed.
    file_failed: bool,
    /// None is taken or asked for before this.
    retry_at: Instant,
    /// Where the disk is short, none is taken for the sake of space before this.
    urgent_at: Instant,
    /// Bytes of log entries applied since the newest one.
    bytes_since: usize,
    /// Bytes of log entries applied since the newest file, which an engine on disk flushes many times over.
    bytes_since_file: usize,
    /// Bytes after which the next one is taken.
    due_after: usize,
    /// When each member last asked for a part.
    readers: Vec<Option<Instant>>,
    /// The file that each member has last waited for.
    awaited: Vec<OpNumber>,
    /// Clients that copy one, for a backup, and when they last asked for it; at most [`COPIERS_MAX`].
    copiers: Vec<Copier>,
    /// Clients that copy the log.
    pub(super) entry_copiers: Vec<EntryCopier>,
    /// Those of them for which the log on disk is read.
    pub(super) disk_copiers: Vec<DiskCopier>,
    /// The log of every member is durable up to here.
    held_by_all: OpNumber,
    /// Leader: bytes of log that it has dropped because all members hold them, since it last told the others.
    dropped_untold: usize,
    /// The one being received.
    pub(super) download: Option<Download>,
}

/// A snapshot that is being written.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "model", derive(Hash))]
struct SnapshotInProgress {
    op_number: OpNumber,
    /// The record that goes with it.
    ticket: Ticket,
    /// It is a file, not only a checkpoint of the engine.
    is_file: bool,
    /// Bytes of log that had been applied since the file before.
    bytes_before: usize,
}

/// A snapshot that is being received.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "model", derive(Hash))]
pub(super) struct Download {
    from: ReplicaId,
    op_number: OpNumber,
    /// Length of the file in bytes.
    bytes: u64,
    /// So much of it is on disk here.
    received: u64,
    /// How often the next part was asked for.
    asks: u32,
    /// When to ask for the next part, once the last one is written.
    resume_at: Instant,
    /// A part is being written to disk: nothing to ask for meanwhile.
    writing: bool,
    /// The file is whole and being loaded; nothing is executed meanwhile.
    installing: bool,
}

impl Snapshots {
    /// A member is another node than before, which holds nothing.
    pub(super) const fn forget_what_all_hold(&mut self) {
        self.held_by_all = OpNumber(0);
    }

    pub(super) fn new(members: usize, config: &super::Config) -> Self {
        Self {
            newest: None,
            newest_ticket: Ticket(0),
            checkpoint: OpNumber(0),
            logged: None,
            long_checkpoints: 0,
            long_checkpoint_at: Instant(0),
            taking: None,
            wanted: false,
            file_failed: false,
            retry_at: Instant(0),
            bytes_since: 0,
            bytes_since_file: 0,
            due_after: config.settings.snapshot_log_bytes,
            readers: vec![None; members],
            awaited: vec![OpNumber(0); members],
            copiers: Vec::new(),
            entry_copiers: Vec::new(),
            disk_copiers: Vec::new(),
            urgent_at: Instant(0),
            held_by_all: OpNumber(0),
            dropped_untold: 0,
            download: None,
        }
    }

    pub(super) fn is_installing(&self) -> bool {
        self.download.as_ref().is_some_and(|download| download.installing)
    }

    /// A member reads a snapshot, or lacks what follows one.
    pub(super) fn hear_reader(&mut self, member: ReplicaId, now: Instant) {
        self.readers[member.index()] = Some(now);
    }

    pub(super) fn count_applied(&mut self, bytes: usize) {
        self.bytes_since = self.bytes_since.saturating_add(bytes);
        self.bytes_since_file = self.bytes_since_file.saturating_add(bytes);
    }
}

impl Replica {
    // ---- SnapshotInProgress.

    /// True if a member reads one: it will need the log after it.
    pub(super) fn has_reading_members(&self) -> bool {
        self.snapshots.readers.iter().flatten().any(|at| self.is_recent_reader(*at))
    }

    /// True if a member reads one, or a client.
    fn has_readers(&self) -> bool {
        let reads = |copier: &Copier| copier.reads && self.is_recent_reader(copier.asked_at);
        self.has_reading_members() || self.snapshots.copiers.iter().any(reads)
    }

    /// True for a reader that has asked for something at this time.
    fn is_recent_reader(&self, at: Instant) -> bool {
        self.now.instant < at.after(self.config.settings.resend * READER_RESENDS)
    }

    /// True if a snapshot of what is applied should be taken.
    fn snapshot_is_due(&self) -> bool {
        let Snapshots { newest, taking, wanted, retry_at, .. } = &self.snapshots;
        let newest = newest.map_or(OpNumber(0), |(op_number, _)| op_number);
        let wanted = *wanted && self.applied > newest;
        (self.checkpoint_is_due() || wanted)
            && taking.is_none()
            && !self.snapshots.is_installing()
            && !self.resources.disk_failed
            && self.now.instant >= *retry_at
            && !self.has_lost_memory()
    }

    /// True if the state is to get to disk, so that the log can end.
    fn checkpoint_is_due(&self) -> bool {
        let Snapshots { newest, checkpoint, bytes_since, due_after, urgent_at, .. } = &self.snapshots;
        let newest = newest.map_or(OpNumber(0), |(op_number, _)| op_number);
        // While a member reads one, it should not be replaced; but the write-ahead log has to end, and the engine
        // has to get what it keeps in memory to disk. A checkpoint of the engine replaces none.
        let undisturbed = self.config.engine_is_durable || !self.has_readers();
        let has_end = self.config.durability == super::Durability::Fsync || self.config.engine_is_durable;
        // Updates are refused until there is space, so the log does not grow to where one is due.
        let is_urgent = self.resources.disk_is_short() && self.now.instant >= *urgent_at;
        // An engine whose disk refused a flush, say for a file that a member wanted, counts as full until a flush succeeds. Nothing
        // new may be executed before that, so the replica has the engine try again with what it has.
        let may_be_refused = self.config.engine_is_durable && is_urgent && self.applied > OpNumber(0);
        has_end
            && (self.applied > newest.max(*checkpoint) || may_be_refused)
            && (bytes_since >= due_after || is_urgent)
            && (undisturbed || *bytes_since >= due_after.saturating_mul(READ_SHARE))
    }

    /// True if the engine is to have nothing to do, for a snapshot that is due or one that has been received.
    pub(super) fn needs_idle_engine(&self) -> bool {
        let received = |download: &Download| download.received == download.bytes && !download.writing;
        self.snapshots.download.as_ref().is_some_and(received) || self.snapshot_is_due()
    }

    /// Takes a snapshot of what is applied, if one is due and everything asked for is applied.
    pub(super) fn take_due_snapshot(&mut self) {
        if self.apply_requested != self.applied || !self.snapshot_is_due() {
            return;
        }
        let Some(ticket) = self.checkpoint_for_snapshot() else { return };
        if self.resources.disk_is_short() {
            self.snapshots.urgent_at = self.now.instant.after(URGENT);
        }
        // A file that finds no room keeps no checkpoint from being made, which lets the log go and takes none.
        let is_without_file = self.snapshots.file_failed && self.checkpoint_is_due();
        let is_file = !self.config.engine_is_durable || (self.snapshots.wanted && !is_without_file);
        self.snapshots.file_failed = false;
        let op_number = self.applied;
        let bytes_before = self.snapshots.bytes_since_file;
        self.snapshots.taking = Some(SnapshotInProgress { op_number, ticket, is_file, bytes_before });
        if is_file {
            self.snapshots.wanted = false;
            self.snapshots.bytes_since_file = 0;
        }
        self.snapshots.bytes_since = 0;
        let head = SnapshotHead {
            op_number,
            view: self.log.view_at(op_number).unwrap_or_default(),
            time: self.log.time_at(op_number).unwrap_or_default(),
            sessions: self.sessions_of_checkpoint(),
            configuration: self.known_configuration,
        };
        self.actions.push_back(Action::TakeSnapshot { head: Box::new(head), ticket, is_file });
        if self.planted(PlantedBug::LogDroppedBeforeSnapshot) {
            self.keep_from(op_number, ticket);
        }
    }

    /// See [`Event::CheckpointDue`](super::Event::CheckpointDue).
    pub(super) fn on_checkpoint_due(&mut self) {
        // What one that is being taken is of may be all that is in memory.
        if self.snapshots.taking.is_none() {
            self.snapshots.bytes_since = self.snapshots.bytes_since.max(self.snapshots.due_after);
        }
    }

    fn sessions_of_checkpoint(&self) -> Sessions {
        if self.config.engine_is_durable && self.planted(PlantedBug::CheckpointWithoutSessions) {
            return Sessions::default();
        }
        self.sessions.clone()
    }

    /// True if what a checkpoint repeats, entries of the log after the applied part and the durability log, fits into one now.
    fn may_write_checkpoint(&mut self) -> bool {
        let Snapshots { long_checkpoints, long_checkpoint_at, .. } = self.snapshots;
        let is_short = self.resources.disk_is_short();
        // It is asked often while it may not: then it looks at little.
        let may_be_long = !is_short || self.now.instant >= long_checkpoint_at;
        let limit = if may_be_long { CHECKPOINT_LOG_BYTES_MAX } else { CHECKPOINT_LOG_BYTES_SHORT };
        let tail = (self.applied.0 + 1..=self.log.op_number().0).map_while(|n| self.log.entry(OpNumber(n)));
        let mut bytes: usize = 0;
        let unordered = self.unordered().map(|request| request.body.len() + 64);
        for more in tail.map(LogEntry::memory_bytes).chain(unordered) {
            bytes = bytes.saturating_add(more);
            if bytes > limit {
                return false;
            }
        }
        if is_short && bytes > CHECKPOINT_LOG_BYTES_SHORT {
            self.snapshots.long_checkpoint_at =
                self.now.instant.after(URGENT * (1 << long_checkpoints.min(16)));
            self.snapshots.long_checkpoints += 1;
        }
        true
    }

    /// The record that goes with a snapshot at `applied`: the last checkpoint, if nothing has been executed since, or a new one,
    /// unless that would be too long.
    fn checkpoint_for_snapshot(&mut self) -> Option<Ticket> {
        if self.config.durability != super::Durability::Fsync {
            return Some(self.persistence.view_ticket());
        }
        let applied = self.applied;
        match self.snapshots.logged.filter(|(base, _)| *base == applied) {
            Some((_, ticket)) => Some(ticket),
            None => self.may_write_checkpoint().then(|| self.persist_checkpoint()),
        }
    }

    /// Puts on disk all that the snapshot at `applied` does not hold.
    fn persist_checkpoint(&mut self) -> Ticket {
        if self.config.durability != super::Durability::Fsync {
            return self.persistence.view_ticket();
        }
        let base = self.applied;
        let checkpoint = Checkpoint {
            view: self.view,
            last_normal: self.last_normal,
            rule: self.told_rule(),
            base,
            base_view: self.log.view_at(base).unwrap_or_default(),
            base_time: self.log.time_at(base).unwrap_or_default(),
            commit: self.commit,
            suffix: self.log.suffix(base),
            dlog: self.unordered_requests(),
            amnesiac: self.has_lost_memory() && !self.planted(PlantedBug::AmnesiaForgotten),
        };
        let ticket = self.persist(Record::Checkpoint(Box::new(checkpoint)));
        self.snapshots.logged = Some((base, ticket));
        ticket
    }

    pub(super) fn on_snapshot_taken(&mut self, op_number: OpNumber, bytes: u64) {
        let Some(taken) = self.snapshots.taking.take_if(|taking| taking.op_number == op_number) else {
            return;
        };
        (self.snapshots.long_checkpoints, self.snapshots.long_checkpoint_at) = (0, Instant(0));
        if taken.is_file {
            self.snapshots.newest_ticket = taken.ticket;
            self.snapshot_is_newest(op_number, bytes);
        }
        if self.config.engine_is_durable {
            self.engine_is_durable_up_to(op_number);
        }
        // A file that nobody reads any more takes space for nothing, and so does the log behind it.
        let is_read = (self.has_readers() && !self.has_old_file()) || self.snapshots.wanted || taken.is_file;
        let oldest = self.snapshots.newest.filter(|_| is_read).map_or(op_number, |(newest, _)| newest);
        // Who has read the file needs what follows it.
        let ticket = if oldest < op_number { self.snapshots.newest_ticket } else { taken.ticket };
        self.keep_from(oldest, ticket);
    }

    /// Neither older files nor older records are needed any more.
    fn keep_from(&mut self, op_number: OpNumber, ticket: Ticket) {
        self.snapshots.newest.take_if(|(newest, _)| *newest < op_number);
        self.actions.push_back(Action::KeepFrom { op_number, ticket });
    }

    /// A file cannot be read: whoever needs one needs another one.
    pub(super) fn on_snapshot_unreadable(&mut self, op_number: OpNumber) {
        self.snapshots.newest.take_if(|(newest, _)| *newest == op_number);
    }

    /// True if the log behind the newest file is longer than any reader may have it.
    fn has_old_file(&self) -> bool {
        let length =
            self.snapshots.newest.map_or(0, |(_, bytes)| usize::try_from(bytes).unwrap_or(usize::MAX));
        let due = length.max(self.config.settings.snapshot_log_bytes);
        self.snapshots.bytes_since_file > due.saturating_mul(READ_SHARE)
    }

    fn snapshot_is_newest(&mut self, op_number: OpNumber, bytes: u64) {
        self.snapshots.newest = Some((op_number, bytes));
        // As much log as data, so that writing snapshots at most doubles what is written.
        self.next_snapshot_after(usize::try_from(bytes).unwrap_or(usize::MAX));
    }

    fn engine_is_durable_up_to(&mut self, op_number: OpNumber) {
        self.snapshots.checkpoint = op_number;
        // What the engine writes does not depend on how often it does.
        self.next_snapshot_after(0);
    }

    /// The next snapshot is due after so many bytes of log, but not before the least that is set. Spread, so that
    /// the members do not all write theirs at one moment.
    fn next_snapshot_after(&mut self, bytes: usize) {
        let due = bytes.max(self.config.settings.snapshot_log_bytes);
        let jitter = self.prng.below(due as u64 / 4 + 1) as usize;
        self.snapshots.due_after = due.saturating_add(jitter);
    }

    /// The disk did not take a snapshot, whether taken here or received.
    pub(super) fn on_snapshot_failed(&mut self, op_number: OpNumber) {
        self.snapshots.retry_at = self.now.instant.after(RETRY);
        if let Some(taking) = self.snapshots.taking.take_if(|taking| taking.op_number == op_number) {
            // What has been applied since counts on; somebody may still need it.
            self.snapshots.bytes_since = self.snapshots.due_after;
            if taking.is_file {
                self.snapshots.file_failed = true;
                let Snapshots { bytes_since_file, .. } = &mut self.snapshots;
                *bytes_since_file = bytes_since_file.saturating_add(taking.bytes_before);
            }
        }
        if self.is_downloading_to(op_number) {
            self.end_download();
        }
    }

    // ---- Dropping log entries.

    /// Drops applied entries that every member holds, and of others those beyond what the log should keep.
    pub(super) fn trim_log(&mut self) {
        let most = self.config.settings.log_keep_bytes;
        let least = most / HELD_SHARE;
        if self.log.bytes() <= least {
            return;
        }
        if let Some(held) = self.held_by_followers() {
            self.snapshots.held_by_all = self.snapshots.held_by_all.max(held);
        }
        // What a client has still to copy stays, up to as much as the log may take anyway: as if a member did not hold it, and in
        // a group of one, where nobody else is to hold it.
        let (copied, all) = (self.held_by_copiers(), self.snapshots.held_by_all);
        let held = copied.map_or(all, |has| has.min(all));
        let limit = copied.map_or(most, |_| most.max(self.config.settings.log_bytes_max / 4));
        let before = self.log.bytes();
        if before <= most && held <= self.log.base() {
            return;
        }
        // A member that reads a snapshot needs what follows it; but not at the price of refusing updates.
        let reading =
            self.has_reading_members() && self.log.bytes() <= self.config.settings.log_bytes_max / 2;
        let taking = self.snapshots.taking.filter(|taking| taking.is_file);
        let newest = self.snapshots.newest.or(taking.map(|taking| (taking.op_number, 0)));
        let keep_after = newest.filter(|_| reading).map_or(self.applied, |(op_number, _)| op_number);
        let keep_after = keep_after.min(self.applied);
        while self.log.base() < keep_after
            && (self.log.bytes() > limit
                || (self.log.bytes() > most && copied.is_none_or(|has| self.log.base() < has))
                || (self.log.base() < held && self.log.bytes() > least))
        {
            self.log.pop_front();
        }
        self.tell_what_all_hold(before - self.log.bytes(), least);
    }

    /// Leader: the last entry that the logs of all others have on disk.
    fn held_by_followers(&self) -> Option<OpNumber> {
        let Role::Leader(leader) = &self.role else { return None };
        self.others().map(|other| leader.progress[other.index()].op_number).min()
    }

    /// Leader: has dropped so many bytes of log, and tells the others of it now and then.
    fn tell_what_all_hold(&mut self, dropped: usize, least: usize) {
        if !self.is_leader() {
            return;
        }
        self.snapshots.dropped_untold += dropped;
        let op_number = self.snapshots.held_by_all.min(self.log.base());
        if op_number > OpNumber(0) && least > 0 && self.snapshots.dropped_untold >= least {
            self.snapshots.dropped_untold = 0;
            let view = self.view;
            self.broadcast(&Message::HeldByAll { view, op_number });
        }
    }

    /// Follower: all members hold the log up to this entry, so nobody needs it of this one.
    pub(super) fn on_held_by_all(&mut self, from: ReplicaId, view: View, op_number: OpNumber) {
        if view != self.view || from != self.leader() || !self.is_normal() {
            return;
        }
        self.snapshots.held_by_all = self.snapshots.held_by_all.max(op_number.min(self.applied));
        self.trim_log();
    }

    // ---- Sending.

    /// True if one is to be taken that a member or a client needs.
    #[cfg(test)]
    pub(super) const fn wants_snapshot(&self) -> bool {
        self.snapshots.wanted || self.snapshots.taking.is_some()
    }

    /// True if the newest file brings somebody further who has everything up to `after`, and had better be sent than more log, of which
    /// so many bytes have been sent.
    pub(super) fn is_snapshot_shorter(&self, after: OpNumber, given: usize) -> bool {
        let little = self.config.settings.transfer_bytes_max.saturating_mul(LITTLE_ANSWERS) as u64;
        let newest = self.snapshots.newest.filter(|(newest, _)| *newest > after);
        newest.is_some_and(|(_, bytes)| given as u64 / 2 >= bytes.max(little))
    }

    /// A member has everything up to `after`, and needs entries that are gone from memory: it is told of a snapshot, once there is
    /// one. What follows that has to be in memory, or on disk.
    pub(super) fn offer_snapshot(&mut self, to: ReplicaId, after: OpNumber) {
        let (base, has_disk) = (self.log.base(), self.has_log_on_disk());
        let helps = |op_number: OpNumber| op_number >= base || (has_disk && op_number > after);
        let coming = self.snapshots.taking.filter(|taking| taking.is_file).map(|taking| taking.op_number);
        let coming = coming.filter(|op_number| helps(*op_number));
        let newest = self.snapshots.newest.filter(|(op_number, _)| helps(*op_number));
        // One that is coming takes the place of the newest, whoever would read that. Who has waited for the newest gets it.
        let awaited = &mut self.snapshots.awaited[to.index()];
        let has_waited = newest.is_some_and(|(op_number, _)| *awaited == op_number);
        if let Some((op_number, bytes)) = newest.filter(|_| coming.is_none() || has_waited) {
            let view = self.view;
            return self.send(Peer::Replica(to), Message::SnapshotOffer { view, op_number, bytes });
        }
        match coming {
            Some(op_number) => *awaited = op_number,
            None => self.snapshots.wanted = true,
        }
        // What follows the snapshot must still be there when it has been received.
        self.snapshots.hear_reader(to, self.now.instant);
    }

    pub(super) fn on_get_snapshot(&mut self, from: ReplicaId, op_number: OpNumber, offset: u64) {
        let Some((newest, bytes)) = self.snapshots.newest else { return };
        if newest == op_number {
            self.snapshots.hear_reader(from, self.now.instant);
            self.note_learner(from, op_number);
            if offset < bytes {
                self.hear_fetching(from, (op_number, offset));
                let to = Peer::Replica(from);
                self.actions.push_back(Action::SendSnapshotPart { to, op_number, offset });
            }
        }
    }

    // ---- Backups.

    /// A client wants to copy a snapshot file that goes at least up to `at_least`. One is taken for it if there is none, and
    /// nobody reads the one that there is.
    pub(super) fn on_want_snapshot(&mut self, client: u64, at_least: OpNumber) {
        if !self.note_copier(client, false) {
            return self.counters.refused += 1;
        }
        let view = self.view;
        let newest = self.snapshots.newest.filter(|(op_number, _)| *op_number >= at_least);
        let (op_number, bytes) = newest.unwrap_or((self.applied, 0));
        self.send(Peer::Client(client), Message::SnapshotOffer { view, op_number, bytes });
        let is_coming = self.snapshots.taking.is_some_and(|taking| taking.is_file);
        if newest.is_none() && !is_coming && !self.has_readers() && self.applied >= at_least {
            self.snapshots.wanted = true;
        }
    }

    /// A client asks for a part of the snapshot that it copies; if that is gone, it is told which one there is.
    pub(super) fn on_get_snapshot_for_backup(&mut self, client: u64, op_number: OpNumber, offset: u64) {
        if !self.note_copier(client, true) {
            return self.counters.refused += 1;
        }
        let to = Peer::Client(client);
        match self.snapshots.newest {
            Some((newest, bytes)) if newest == op_number && offset < bytes => {
                self.actions.push_back(Action::SendSnapshotPart { to, op_number, offset });
            }
            newest => {
                let (op_number, bytes) = newest.unwrap_or((self.applied, 0));
                let view = self.view;
                self.send(to, Message::SnapshotOffer { view, op_number, bytes });
            }
        }
    }

    /// Notes that a client copies a snapshot, and whether it `reads` one: those who wait for one must not keep each other from
    /// it. False if too many others do.
    fn note_copier(&mut self, client: u64, reads: bool) -> bool {
        let now = self.now.instant;
        let patience = self.config.settings.resend * READER_RESENDS;
        self.snapshots.copiers.retain(|other| other.client != client && now < other.asked_at.after(patience));
        let has_room = self.snapshots.copiers.len() < COPIERS_MAX;
        if has_room {
            self.snapshots.copiers.push(Copier { client, asked_at: now, reads });
        }
        has_room
    }

    // ---- Receiving.

    /// True if what this replica lacks is on its way as a snapshot.
    pub(super) fn is_downloading(&self) -> bool {
        self.snapshots.download.is_some()
    }

    /// True if it is the snapshot at this entry.
    fn is_downloading_to(&self, op_number: OpNumber) -> bool {
        self.snapshots.download.as_ref().is_some_and(|download| download.op_number == op_number)
    }

    /// So many bytes of a snapshot have come of so many, if this replica receives one.
    #[must_use]
    pub fn download_progress(&self) -> Option<(u64, u64)> {
        self.snapshots.download.as_ref().map(|download| (download.received, download.bytes))
    }

    /// Nothing more is asked for of the snapshot that was being received.
    fn end_download(&mut self) -> Option<Download> {
        self.timers.stop(Timer::FetchSnapshot);
        self.snapshots.download.take()
    }

    pub(super) fn on_snapshot_offer(&mut self, from: ReplicaId, view: View, op_number: OpNumber, bytes: u64) {
        let awaits = match self.role {
            Role::Leader(_) => false,
            Role::Follower(_) => view == self.view,
            Role::ViewChange(_) | Role::Recovering(_) => self.awaits_transfer() && !self.is_left_behind(view),
        };
        if !awaits
            || op_number <= self.applied
            || bytes == 0
            || self.resources.disk_failed
            || self.is_downloading()
            || self.now.instant < self.snapshots.retry_at
        {
            return;
        }
        self.snapshots.download = Some(Download {
            from,
            op_number,
            bytes,
            received: 0,
            asks: 0,
            resume_at: self.now.instant,
            writing: false,
            installing: false,
        });
        self.trace(TraceEvent::SnapshotBegan { from, op_number, bytes });
        self.ask_for_part();
    }

    fn ask_for_part(&mut self) {
        let resend = self.config.settings.resend;
        let Some(download) = &mut self.snapshots.download else { return };
        download.asks += 1;
        // Parts are large and may take their time.
        self.timers.set(Timer::FetchSnapshot, self.now.instant.after(resend * 2 * download.asks));
        let (to, op_number, offset) = (download.from, download.op_number, download.received);
        self.send(Peer::Replica(to), Message::GetSnapshot { op_number, offset });
    }

    pub(super) fn on_download_tick(&mut self) {
        if !self.timers.is_due(Timer::FetchSnapshot, self.now.instant) {
            return;
        }
        let Some(download) = &mut self.snapshots.download else { return };
        if download.installing {
            // The source has to keep what follows the snapshot.
            download.asks = 0;
        } else if download.asks >= ASKS_MAX {
            // The source is gone, or has another snapshot by now. The next GetState finds out.
            self.end_download();
            return;
        }
        self.ask_for_part();
    }

    pub(super) fn on_snapshot_part(
        &mut self,
        from: ReplicaId,
        op_number: OpNumber,
        offset: u64,
        part: crate::message::Body,
    ) {
        let Some(download) = &mut self.snapshots.download else { return };
        let length = part.len() as u64;
        let fits = length > 0 && offset.checked_add(length).is_some_and(|end| end <= download.bytes);
        if download.from != from
            || download.op_number != op_number
            || download.received != offset
            || download.writing
            || download.installing
            || !fits
        {
            return;
        }
        download.asks = 0;
        download.writing = true;
        // What the transfer takes of the network and of the disks it must not take from clients.
        let nanos =
            u128::from(length) * 1_000_000_000 / u128::from(self.config.settings.transfer_rate.max(1));
        let pause = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        download.resume_at = self.now.instant.after(pause);
        self.timers.stop(Timer::FetchSnapshot);
        self.actions.push_back(Action::WriteSnapshotPart { op_number, offset, part });
    }

    /// Everything of the file before `received` is written.
    pub(super) fn on_snapshot_part_written(&mut self, op_number: OpNumber, received: u64) {
        let Some(download) = &mut self.snapshots.download else { return };
        if download.op_number != op_number || !download.writing {
            return;
        }
        download.writing = false;
        download.received = received;
        self.timers.set(Timer::FetchSnapshot, download.resume_at);
        if received < download.bytes {
            if self.now.instant >= download.resume_at {
                self.ask_for_part();
            }
        } else {
            self.install_when_idle();
        }
    }

    /// Has the file loaded once nothing is being executed any more: the engine is about to be replaced.
    pub(super) fn install_when_idle(&mut self) {
        let Some(download) = &mut self.snapshots.download else { return };
        if download.received == download.bytes
            && !download.writing
            && !download.installing
            && self.apply_requested == self.applied
        {
            download.installing = true;
            self.timers.set(Timer::FetchSnapshot, self.now.instant.after(self.config.settings.resend));
            let op_number = download.op_number;
            self.actions.push_back(Action::LoadSnapshot { op_number });
        }
    }

    /// A received snapshot is whole, durable and loaded. Takes it over, unless it has become useless.
    pub(super) fn on_snapshot_loaded(&mut self, head: SnapshotHead, bytes: u64) {
        if !self.is_downloading_to(head.op_number) {
            return;
        }
        let Some(download) = self.end_download() else { return };
        assert!(download.installing && self.apply_requested == self.applied, "nothing is executed meanwhile");
        // A leader has promised answers about what it executes; a log may not get ahead of its view.
        if head.op_number <= self.applied
            || head.view > self.entering()
            || self.is_leader()
            || !self.is_plausible_snapshot(&head)
        {
            return;
        }
        let SnapshotHead { op_number, view, time, sessions, configuration } = head;
        if let Some(known) = configuration {
            self.learn_configuration(known);
        }
        self.forget_parked();
        if self.planted(PlantedBug::SuffixDroppedForSnapshot) {
            self.log = crate::log::Log::after(op_number, view, time);
        } else {
            self.log.begin_after(op_number, view, time);
        }
        self.sessions =
            if self.planted(PlantedBug::SnapshotWithoutSessions) { Sessions::default() } else { sessions };
        self.applied = op_number;
        self.restart_digests(op_number);
        self.apply_requested = op_number;
        self.commit = self.commit.max(op_number);
        let end = self.log.op_number();
        self.persistence.replace(op_number, end);
        self.forget_executed();
        self.rebuild_pending();
        self.snapshots.taking = None;
        self.snapshots.bytes_since = self.log.bytes();
        self.has_snapshot(op_number, bytes);
        self.actions.push_back(Action::AdoptSnapshot { op_number });
        self.count_learned_snapshot();
        let ticket = self.persist_checkpoint();
        self.on_append();
        // That it lost its memory a restart has to know, until the replica has entered a view.
        if !self.has_lost_memory() || self.planted(PlantedBug::AmnesiaForgotten) {
            self.keep_from(op_number, ticket);
        }
        match &mut self.role {
            Role::Leader(_) => {}
            Role::Follower(follower) => {
                follower.state_requested = None;
                self.follow_commit();
                self.owe_ack();
                self.request_state();
            }
            Role::ViewChange(_) | Role::Recovering(_) => {
                self.try_install();
                if self.awaits_transfer() {
                    self.request_transfer();
                }
            }
        }
    }

    /// Removes from the durability log what the session table says is dealt with.
    fn forget_executed(&mut self) {
        let ids = self.dlog.iter().map(|update| update.request.id);
        let dealt_with: Vec<OperationId> = ids.filter(|id| self.is_dealt_with(*id)).collect();
        for id in dealt_with {
            self.dlog.remove(id);
        }
    }

    /// The snapshot that the replica was restored from.
    pub(super) fn restored_from(&mut self, op_number: OpNumber, bytes: u64) {
        self.snapshots.bytes_since = self.log.bytes();
        self.has_snapshot(op_number, bytes);
    }

    /// All up to here is on disk in the form in which the engine keeps it.
    fn has_snapshot(&mut self, op_number: OpNumber, bytes: u64) {
        if self.config.engine_is_durable {
            self.engine_is_durable_up_to(op_number);
        } else {
            self.snapshot_is_newest(op_number, bytes);
        }
    }
}
