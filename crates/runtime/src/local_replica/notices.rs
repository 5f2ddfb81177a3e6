//! What the log tells of a replica.

use syros_node::Notice;
use syros_protocol::message::RoleName;
use syros_types::Now;

use super::LocalReplica;
use crate::trace::COMPLAINT_INTERVAL;

impl LocalReplica {
    /// Logs what the driver has noticed.
    pub(super) fn log_notice(&mut self, notice: &Notice, now: Now) {
        let node = self.me.0;
        match notice {
            Notice::SnapshotTaken { op_number, bytes: 0 } if self.driver.executor().is_some() => {
                tracing::debug!(node, entry = op_number.0, "this replica has a checkpoint");
            }
            Notice::SnapshotTaken { op_number, bytes } => {
                tracing::info!(node, entry = op_number.0, bytes, "this replica has a snapshot");
            }
            Notice::SnapshotCut { op_number, took } => {
                let duration_us = took.as_micros();
                tracing::debug!(
                    node,
                    entry = op_number.0,
                    duration_us,
                    "this replica has cut its state for a snapshot"
                );
            }
            Notice::SnapshotFailed { op_number, problem } => {
                // It is tried again every second.
                if now.instant >= self.warning_at {
                    self.warning_at = now.instant.after(COMPLAINT_INTERVAL);
                    tracing::error!(
                        node,
                        entry = op_number.0,
                        error = problem,
                        "this replica cannot make a snapshot; it tries again"
                    );
                }
            }
            Notice::MemoryExceeded { data, limit } => {
                if now.instant >= self.memory_warning_at {
                    self.memory_warning_at = now.instant.after(COMPLAINT_INTERVAL);
                    tracing::warn!(
                        node,
                        bytes = data,
                        limit,
                        "the data takes more memory than memory.maxmemory allows: this replica refuses updates that make it \
                         grow, and takes those that delete"
                    );
                }
            }
            Notice::Warning(warning) => tracing::warn!(node, "{warning}"),
            Notice::SnapshotBegun { .. } | Notice::Flushed(_) => {}
        }
    }

    /// Logs what the replica has become.
    pub(crate) fn log_role(&mut self) {
        let now = (self.replica().view(), self.replica().role());
        if self.logged_role == Some(now) {
            return;
        }
        self.logged_role = Some(now);
        let (node, (view, role)) = (self.me.0, now);
        match role {
            RoleName::Leader => tracing::info!(node, view = view.number(), "this replica leads"),
            RoleName::Follower => tracing::info!(node, view = view.number(), "this replica follows"),
            // The trace of the core says why.
            RoleName::ViewChange => {}
            // A learner says itself how it gets on.
            RoleName::Recovering if !self.replica().configuration().has(self.me) => {}
            RoleName::Recovering => {
                tracing::info!(
                    node,
                    view = view.number(),
                    "this replica has no memory, and waits for a later view"
                );
            }
        }
    }
}
