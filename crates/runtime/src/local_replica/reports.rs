//! What the threads of a replica report, and what follows.

use syros_types::Now;

use super::{LocalReplica, PROBE_INTERVAL};
use crate::execution::EngineThreads;
use crate::scrub::{Scrub, ScrubFinding};
use crate::trace::COMPLAINT_INTERVAL;

impl LocalReplica {
    /// Takes note of reads whose answers have been put together.
    pub(super) fn on_finished_reads(&mut self, now: Now) {
        while let EngineThreads::InMemory(long_replies) = &self.engine_threads
            && let Some(outcome) = long_replies.next_finished()
        {
            self.driver.on_put_together(now, Some(outcome));
        }
    }

    /// Tells the replica what has reached the disk since the last call, or that the disk has failed. True if something
    /// has reached it.
    pub(crate) fn on_progress(&mut self, now: Now) -> bool {
        self.is_overdue = false;
        self.driver.on_durable(self.numbering.ticket(self.wal.persisted()));
        self.trace_durable();
        let has_advanced = self.driver.tell_durable(now);
        self.on_execution_reports(now);
        self.trace_progress();
        self.on_finished_reads(now);
        self.on_snapshot_reports(now);
        self.log_copies.set_durable(self.wal.persisted());
        while let Some(report) = self.log_copies.next_report() {
            self.driver.on_entries_read(now, report);
        }
        self.on_scrub_findings();
        self.tell_space(now);
        self.on_directory_loss();
        self.on_end_of_log(now);
        has_advanced
    }

    /// Takes note of what was found to be damaged on disk.
    pub(super) fn on_scrub_findings(&mut self) {
        while let Some(finding) = self.scrub.as_ref().and_then(Scrub::next_finding) {
            match finding {
                ScrubFinding::View(problem) => {
                    let node = self.me.0;
                    tracing::error!(
                        node,
                        error = problem,
                        "the file of the view is damaged; it is written anew"
                    );
                    if let Err(error) = self.view.renew() {
                        self.on_view_write_error(&error);
                    }
                }
                // If it takes part in no view now, or its disk fails, there is another round.
                ScrubFinding::Store => self.is_damaged |= self.replica().is_normal() && !self.has_failed(),
            }
        }
    }

    /// True if what is on disk is damaged, and the replica should start anew to be repaired by the others.
    pub(crate) fn is_damaged(&mut self, now: Now) -> bool {
        if !self.is_damaged || now.instant < self.renew_at {
            return false;
        }
        // Scrubbing has waited for this replica's turn. A reader or a merge that finds damage has not: another replica may be
        // without its memory at this moment, and two would be a majority of three.
        if self.driver.engine_failure().is_some() && !self.may_start_anew(true) {
            self.renew_at = now.instant.after(PROBE_INTERVAL);
            return false;
        }
        // Without the view it would never start again.
        let Err(error) = self.view.renew() else { return true };
        if self.driver.engine_failure().is_none() {
            // The replica can do without what is damaged for now.
            self.is_damaged = false;
            self.on_view_write_error(&error);
            return false;
        }
        self.renew_at = now.instant.after(PROBE_INTERVAL);
        if now.instant >= self.warning_at {
            self.warning_at = now.instant.after(COMPLAINT_INTERVAL);
            tracing::error!(
                node = self.me.0,
                error = %error,
                "this replica cannot note its view; it starts anew when it can"
            );
        }
        false
    }

    /// Lets the work on snapshots go on, and tells the replica of it.
    pub(super) fn on_snapshot_reports(&mut self, now: Now) {
        self.driver.begin_reports();
        while self.driver.takes_reports()
            && let Some(report) = self.snapshots.next_report()
        {
            self.driver.on_snapshot_report(now, report);
        }
        // What comes of a snapshot that is loaded has to be carried out before the rest is looked at.
        self.has_more_reports = !self.driver.takes_reports();
        self.driver.look_at_records();
        if self.driver.cut_at() <= now.instant {
            let clock = self.clock;
            self.driver.cut_snapshot(clock.now().instant, || clock.now().instant);
        }
    }

    /// Tells the replica what an engine on disk has done.
    pub(super) fn on_execution_reports(&mut self, now: Now) {
        let EngineThreads::OnDisk(disk) = &self.engine_threads else { return };
        disk.threads.begin();
        if self.driver.look_at_engine(now) {
            disk.threads.compact();
        }
        self.driver.on_execution(now, None, &mut ());
        while let Some(report) = disk.threads.next_report() {
            self.driver.on_execution(now, Some(report), &mut ());
        }
        self.driver.tell_expiry(now);
        // What had expired may have to be removed.
        self.hand_out();
        if !self.has_failed()
            && let Some(error) = self.driver.engine_failure()
        {
            let (problem, cause) = (error.to_string(), error.cause);
            self.fail_with_engine(&problem, cause);
        }
    }
}
