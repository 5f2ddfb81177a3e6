//! The write-ahead log of a replica: what is appended to it, and what waits for it.

use std::sync::Arc;
use std::time::Duration;

use mio::Waker;
use syros_net::Outlet;
use syros_node::DiskState;
use syros_protocol::message::{Message, Peer};
use syros_protocol::record::{Record, Ticket};
use syros_wal::{AppendError, RecordNumber, WalError};

use super::LocalReplica;
use crate::durable_sender::DurableSender;
use crate::execution::EngineThreads;
use crate::traces::ReplicaTraces;

/// Clients are not read from while more bytes than this wait for the disk: half of what the log takes,
/// so that what other replicas send in the meantime still fits.
const WAITING_BYTES_PAUSE: usize = syros_wal::WAITING_BYTES_DEFAULT / 2;

/// How long to wait for room in a log that is full.
const FULL_LOG_PAUSE: Duration = Duration::from_millis(1);

/// Something to be sent when its record is on disk.
#[derive(Debug)]
pub(crate) enum DelayedSend {
    /// A message.
    Message(Peer, Message),
    /// Frames for the connection with this address.
    Frames(u64, Vec<u8>),
}

impl LocalReplica {
    /// Appends a record to the log.
    pub(super) fn append(&mut self, ticket: Ticket, record: &Record) {
        loop {
            let configuration = self.configuration;
            match self.wal.append_with(|out| syros_wire::encode_record_of(configuration, record, out)) {
                Ok(number) => {
                    assert_eq!(number, self.record(ticket), "records are numbered like tickets");
                    return;
                }
                // Reading from clients stops long before this, so it is other replicas that are too fast
                // for this disk; everything has to wait for it.
                Err(AppendError::Full { .. }) => {
                    self.wal.submit();
                    std::thread::sleep(FULL_LOG_PAUSE);
                }
                // Reported by `on_progress`: nothing will ever be persisted again.
                Err(AppendError::Failed(_)) => return,
                // A record is bounded like the message it came with; if one is not, this is not the
                // moment to find out by falling over.
                Err(error @ (AppendError::Empty | AppendError::TooLong { .. })) => {
                    return self.fail(&error.to_string(), DiskState::Failed);
                }
            }
        }
    }

    /// Ends a turn of the event loop: lets the other threads do what it has come to. True if the log's thread has got
    /// something to do.
    pub(crate) fn submit(&mut self) -> bool {
        let has_appended = self.wal.appended() > self.wal.submitted();
        self.wal.submit();
        if let (EngineThreads::OnDisk(disk), Some(executor)) =
            (&self.engine_threads, self.driver.executor_mut())
        {
            disk.threads.end_turn(executor);
        }
        has_appended
    }

    /// True if everything appended is on disk, or never will be.
    pub(crate) fn is_drained(&self) -> bool {
        let is_persisted = self.wal.persisted() == self.wal.appended();
        self.has_failed() || (is_persisted && self.driver.holds_nothing() && self.durable_sender.is_empty())
    }

    /// True if clients should wait until the disk has caught up.
    pub(crate) fn is_behind(&self) -> bool {
        (self.wal.waiting_bytes() > WAITING_BYTES_PAUSE && !self.has_failed()) || self.driver.is_behind()
    }

    /// Keeps something until it may leave.
    pub(crate) fn hold(&mut self, after: Ticket, delayed: DelayedSend) {
        self.driver.hold(after, delayed);
    }

    /// Has the log's thread send frames when they may leave.
    pub(crate) fn send_when_durable(&mut self, after: Ticket, outlet: Outlet, frames: Vec<u8>) {
        self.durable_sender.add(self.record(after), outlet, frames);
    }

    /// True if this record is with the log's thread already.
    pub(crate) fn is_submitted(&self, ticket: Ticket) -> bool {
        self.record(ticket) <= self.wal.submitted()
    }

    /// Has the log's thread wake the event loop for the first record that is waited for here, or for any.
    pub(crate) fn ask_to_be_woken(&mut self, for_any: bool) {
        let first = self.driver.awaited();
        let first = if for_any { Some(RecordNumber(0)) } else { first.map(|ticket| self.record(ticket)) };
        self.durable_sender.wake_at(first);
        // The thread may have looked just before, for that or for what was left with it.
        let persisted = self.wal.persisted();
        if self.numbering.ticket(persisted) > self.driver.durable() {
            self.is_overdue |= self.durable_sender.send(persisted);
        }
    }

    pub(super) const fn record(&self, ticket: Ticket) -> RecordNumber {
        self.numbering.record(ticket)
    }

    /// The next that was held and may leave now.
    pub(crate) fn pop_held(&mut self) -> Option<DelayedSend> {
        self.driver.pop_held()
    }

    /// Puts on disk what has been appended, and ends the log's thread.
    pub(crate) fn close(self) -> Result<(), WalError> {
        self.wal.close().map(|_| ())
    }
}

/// What the log's thread does when records are durable, or never will be.
pub(super) fn on_progress(
    durable_sender: &Arc<DurableSender>,
    waker: &Arc<Waker>,
    traces: Option<&ReplicaTraces>,
) -> impl FnMut(Result<RecordNumber, &WalError>) + Send + use<> {
    let (durable_sender, waker) = (Arc::clone(durable_sender), Arc::clone(waker));
    let syncs = traces.map(|traces| Arc::clone(traces.syncs()));
    move |progress: Result<RecordNumber, &WalError>| {
        if let (Some(syncs), Ok(persisted)) = (&syncs, progress) {
            syncs.on_durable(persisted);
        }
        if progress.map_or(true, |persisted| durable_sender.send(persisted)) {
            // Fails only if the loop is gone, and then nobody waits.
            let _ = waker.wake();
        }
    }
}
