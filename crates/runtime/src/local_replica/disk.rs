//! What happens when the disk of a replica is full, missing or broken, and when it returns.

use std::sync::Arc;

use syros_node::{DiskState, RecordNumbering};
use syros_protocol::replica::Durability;
use syros_storage::StoreCause;
use syros_types::{Instant, Now};
use syros_wal::{WalError, WriteError};

use super::log::on_progress;
use super::{LocalReplica, PROBE_INTERVAL};
use crate::durable_sender::DurableSender;
use crate::execution::EngineThreads;
use crate::other_members::RestartPermit;
use crate::store::{self, StoreError};
use crate::trace::COMPLAINT_INTERVAL;

/// A disk with more room than this need not be watched update by update: between two looks at it no more can be on its way.
const ROOM_MAX: u64 = 4 << 30;

impl LocalReplica {
    /// Tells the replica how much room the disk has, and the operator whether it is nearly full, if that has changed.
    pub(super) fn tell_space(&mut self, now: Now) {
        let reserve = self.disk_watch.reserve();
        let is_short = reserve.is_short();
        let room = (reserve.bytes() > 0).then(|| reserve.free());
        self.driver.set_snapshot_room(room);
        self.driver.tell_disk_room(now, self.disk_room());
        if std::mem::replace(&mut self.was_short, is_short) == is_short {
            return;
        }
        let (node, directory) = (self.me.0, reserve.directory().display());
        let (free_bytes, limit) = (reserve.free(), reserve.bytes());
        if is_short && reserve.lacks_inodes() {
            let (free_inodes, inodes) = reserve.inodes();
            tracing::error!(
                node,
                directory = %directory,
                free_inodes,
                limit = inodes,
                free_bytes,
                "the file system is nearly out of inodes: this replica takes no updates that make the data grow until files are \
                 deleted"
            );
        } else if is_short {
            tracing::error!(
                node,
                directory = %directory,
                free_bytes,
                limit,
                "the disk is nearly full: fewer bytes are free than disk.reserve says, and this replica takes no updates that \
                 make the data grow until there is space"
            );
        } else {
            tracing::info!(node, directory = %directory, free_bytes, limit, "the disk has space again");
        }
    }

    /// How much room the disk has for updates beside the reserve, which is also kept free beside itself, and beside what the
    /// log has yet to write.
    fn disk_room(&self) -> u64 {
        let reserve = self.disk_watch.reserve();
        if reserve.is_short() {
            return 0;
        }
        if reserve.bytes() == 0 {
            return u64::MAX;
        }
        let room = reserve.free().saturating_sub(reserve.bytes());
        if room >= ROOM_MAX {
            return u64::MAX;
        }
        // A record that does not fit behind the others leaves the rest of its segment empty.
        room.saturating_sub(2 * self.wal.waiting_bytes() as u64)
    }

    /// Space on the disk: bytes free at the last look, the limit, and whether the disk is nearly full.
    pub(crate) fn disk_space(&self) -> (u64, u64, bool) {
        let reserve = self.disk_watch.reserve();
        (reserve.free(), reserve.bytes(), reserve.is_short())
    }

    /// Files that can still be made on the disk; 0 where the file system has no limit.
    pub(crate) fn free_inodes(&self) -> u64 {
        self.disk_watch.reserve().inodes().0
    }

    /// Notices a log that has stopped.
    pub(super) fn on_end_of_log(&mut self, now: Now) {
        let Some(error) = self.wal.error() else { return };
        if let Some(state) = DiskState::after_log(error) {
            let problem = error.to_string();
            if self.disk.may_return() && !state.may_return() {
                self.give_up_disk(&problem);
            }
            self.fail(&problem, state);
        }
        self.driver.end_log(now);
    }

    /// The disk had refused a write, and cannot be relied upon any more either.
    fn give_up_disk(&mut self, problem: &str) {
        self.disk = DiskState::Failed;
        self.probe_at = Instant::NEVER;
        tracing::error!(
            node = self.me.0,
            error = problem,
            "this replica takes no updates until it is started again with a working disk"
        );
    }

    /// What the disk does, for INFO.
    pub(crate) const fn disk_state(&self) -> &'static str {
        match self.disk {
            DiskState::Works => "ok",
            DiskState::Full => "full",
            DiskState::Missing => "missing",
            DiskState::Refusing => "refusing",
            DiskState::Failed => "failed",
        }
    }

    pub(super) const fn has_failed(&self) -> bool {
        !matches!(self.disk, DiskState::Works)
    }

    /// Takes note of a data directory that is not there any more: what the log's thread still writes, no restart finds.
    pub(super) fn on_directory_loss(&mut self) {
        if self.has_logged_loss {
            return;
        }
        let Some(problem) = self.disk_watch.loss() else { return };
        self.has_logged_loss = true;
        if self.has_failed() {
            tracing::error!(node = self.me.0, error = problem, "the data directory of this replica is lost");
            if self.disk.may_return() {
                self.disk = DiskState::Missing;
            }
        } else {
            self.fail(&problem, DiskState::Missing);
        }
    }

    /// The disk cannot be relied upon any more, at least for now.
    pub(super) fn fail(&mut self, problem: &str, state: DiskState) {
        if self.has_failed() {
            return;
        }
        // A write may fail before the watch has noticed that the directory is gone.
        let may_be_news = state.may_return() && !self.has_logged_loss;
        let loss = may_be_news.then(|| self.disk_watch.look_for_loss()).flatten();
        let state = if loss.is_some() { DiskState::Missing } else { state };
        self.has_logged_loss |= loss.is_some();
        self.disk = state;
        let now = self.clock.now();
        let node = self.me.0;
        let until = match state {
            DiskState::Missing => "it is back",
            DiskState::Full | DiskState::Refusing => "the disk takes writes again",
            DiskState::Works | DiskState::Failed => "it is started again with a working disk",
        };
        if state.may_return() {
            self.probe_at = now.instant.after(PROBE_INTERVAL);
        }
        match loss {
            Some(loss) => {
                tracing::error!(
                    node,
                    error = problem,
                    cause = loss,
                    "this replica takes no updates until {until}"
                );
            }
            None if state == DiskState::Full && self.disk_watch.reserve().lacks_inodes() => tracing::error!(
                node,
                error = problem,
                free_bytes = self.disk_watch.reserve().free(),
                "no inodes are left: this replica takes no updates until files are deleted"
            ),
            None => tracing::error!(node, error = problem, "this replica takes no updates until {until}"),
        }
        self.driver.fail(now);
    }

    /// The engine cannot go on.
    pub(super) fn fail_with_engine(&mut self, problem: &str, cause: StoreCause) {
        if cause == StoreCause::Damaged
            && let EngineThreads::OnDisk(disk) = &self.engine_threads
        {
            match disk.mark_damaged(problem) {
                // The others have what this one lost.
                Ok(()) => {
                    let node = self.me.0;
                    tracing::error!(
                        node,
                        error = problem,
                        "this replica starts anew, to be repaired from the others"
                    );
                    self.disk = DiskState::Failed;
                    self.driver.fail(self.clock.now());
                    self.is_damaged = true;
                    return;
                }
                Err(error) => {
                    tracing::error!(node = self.me.0, error = %error, "this replica cannot mark its store as damaged");
                }
            }
        }
        self.fail(problem, if cause == StoreCause::Full { DiskState::Full } else { DiskState::Failed });
    }

    /// The file of the view cannot be written.
    pub(super) fn on_view_write_error(&mut self, error: &WriteError) {
        let state = match error {
            WriteError::Disk(error) => DiskState::after(error),
            _ => DiskState::Failed,
        };
        self.fail(&format!("cannot note the view: {error}"), state);
    }

    /// Looks now and then whether a disk that refused a write takes writes again. The replica then goes on with its memory
    /// if it can; true if it should start anew from what the disk and the other replicas hold.
    pub(crate) fn disk_has_returned(&mut self, now: Now) -> bool {
        if now.instant < self.probe_at {
            return false;
        }
        self.probe_at = now.instant.after(PROBE_INTERVAL);
        // With a few of them, it would soon be out of inodes again.
        if self.disk_watch.reserve().lacks_inodes() || self.directory.try_writing().is_err() {
            // The others may fare as this one does: they are asked again when it returns.
            self.restart_permit = None;
            return false;
        }
        if !self.driver.outlives_log() || self.is_log_damaged {
            return self.may_start_anew(self.is_log_damaged);
        }
        // The watch may not have seen yet that the directory is back.
        if self.disk_watch.loss().is_none() {
            self.reopen_log(now);
        }
        false
    }

    /// Has the replica go on with a log that takes records again.
    pub(super) fn reopen_log(&mut self, now: Now) {
        let durable_sender = Arc::<DurableSender>::default();
        let on_progress = on_progress(&durable_sender, &self.waker, self.traces.as_deref());
        let Self { wal, view, directory, disk_watch, log_options, .. } = self;
        let open = |why: Option<&WalError>| match why {
            // The thread may have found out when it ended.
            Some(error) if DiskState::after_log(error).is_some_and(|state| !state.may_return()) => {
                Err(StoreError::LogInDoubt(error.clone()))
            }
            _ => store::reopen_log(directory, log_options, disk_watch.reserve(), view),
        };
        let node = self.me.0;
        if let Err(error) = wal.reopen(open, on_progress) {
            self.is_log_damaged = error.is_damage();
            if now.instant >= self.warning_at || self.is_log_damaged {
                self.warning_at = now.instant.after(COMPLAINT_INTERVAL);
                let next = if self.is_log_damaged {
                    "starts anew when enough others are well"
                } else {
                    "tries again"
                };
                tracing::error!(
                    node,
                    error = %error,
                    "the disk takes writes again, and the log cannot be opened; this replica {next}"
                );
            }
            return;
        }
        // What waited for records of the log before may be lost, as messages may.
        self.durable_sender = durable_sender;
        self.traces.iter_mut().for_each(|traces| traces.on_log_reopened());
        self.numbering = RecordNumbering::new(self.wal.appended(), self.driver.reopen_log(now));
        self.disk = DiskState::Works;
        self.probe_at = Instant::NEVER;
        self.has_logged_loss = false;
        tracing::info!(node, "the disk takes writes again: this replica goes on with the data in its memory");
    }

    /// An engine that cannot go on, or a disk that `is_damaged`: true if a restart loses nothing, or nothing that enough other
    /// replicas do not have. What is damaged is set aside at the restart, the log with the engine.
    pub(super) fn may_start_anew(&mut self, is_damaged: bool) -> bool {
        if self.durability == Durability::Fsync && !is_damaged {
            return true;
        }
        if self.restart_permit.is_none() {
            let permit = RestartPermit::request(self.others.clone(), self.clock, Arc::clone(&self.waker));
            let node = self.me.0;
            let warn = |error: &std::io::Error| tracing::warn!(node, error = %error, "cannot start the thread restart");
            self.restart_permit = permit.inspect_err(warn).ok();
        }
        self.restart_permit.as_ref().is_some_and(RestartPermit::is_granted)
    }
}
