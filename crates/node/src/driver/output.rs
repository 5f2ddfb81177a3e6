//! What a driver wants of the process around it.

use core::time::Duration;
use syros_protocol::message::{LogEntry, Message, Peer};
use syros_protocol::record::{Record, Ticket};
use syros_protocol::replica::{EntriesWanted, TraceEvent};
use syros_storage::execution::Executed;
use syros_storage::{Census, DiskEngine, Store, StoreError};
use syros_types::{Configuration, Database, OpNumber, View};

use crate::disk_executor::DiskExecutor;
use crate::long_reads::LongReply;
use crate::memory_executor::Observer;
use crate::read_job::ReadJob;

/// Something that a [`ReplicaDriver`](super::ReplicaDriver) wants.
#[derive(Debug)]
pub enum Output<S: Store> {
    /// This message leaves.
    Send {
        /// To whom.
        to: Peer,
        /// What.
        message: Message,
    },
    /// This message leaves when a record is durable: see [`ReplicaDriver::hold`](super::ReplicaDriver::hold).
    SendAfter {
        /// The record.
        after: Ticket,
        /// To whom.
        to: Peer,
        /// What.
        message: Message,
    },
    /// The answer to a read leaves.
    Answer {
        /// The client.
        to: Peer,
        /// The answer.
        message: Message,
    },
    /// What an update returns, found before the update is executed, leaves.
    Evaluated {
        /// The client.
        to: Peer,
        /// What it returns.
        message: Message,
    },
    /// The file of the view is to say this view, durably, before anything else is done: see
    /// [`ViewFile`](crate::data::ViewFile).
    NoteView(View),
    /// The replica acts in this configuration from now on: it is to be durable before anything else is done, and connections to
    /// nodes that are not in it end.
    NoteConfiguration(Box<Configuration>),
    /// A record is appended to the log. All records before it are in the log, or the disk has failed.
    Append {
        /// Its number: one more than the last.
        ticket: Ticket,
        /// The record.
        record: Record,
    },
    /// A read may be executed, as soon as there is room for its answer: see [`ReplicaDriver::read`](super::ReplicaDriver::read).
    Read(ReadJob),
    /// Nothing: the driver has done by itself what the core wanted.
    Nothing,
    /// An engine on disk has items for its lanes, or reads.
    Deal,
    /// What was sealed of an engine on disk is made durable.
    Flush(OpNumber),
    /// The worker on snapshots may have jobs.
    SnapshotJobs,
    /// Records before this one are not needed any more, as soon as all that is in the log now is durable.
    RemoveBefore(Ticket),
    /// What is kept beside the log for those who copy it goes: the disk is short.
    DropKept,
    /// Entries are read from the log on disk, by an [`EntriesReader`](crate::EntriesReader), whose report
    /// [`ReplicaDriver::on_entries_read`](super::ReplicaDriver::on_entries_read) takes.
    ReadEntries(EntriesWanted),
    /// A loaded engine has taken the place of the present one: that of an engine on disk, whose threads are to be started,
    /// is here.
    Adopted {
        /// The engine goes up to this entry.
        op_number: OpNumber,
        /// The engine, if it is on disk.
        engine: Option<Box<DiskEngine<S>>>,
    },
    /// The keys of an engine on disk were counted for all requests up to this one; or why not.
    Counted(u64, Result<[Census; Database::COUNT], StoreError>),
    /// Somebody puts together the answer to a long read, and hands it to
    /// [`ReplicaDriver::on_put_together`](super::ReplicaDriver::on_put_together).
    PutTogether(LongReply),
    /// The operator may want to know this.
    Notice(Notice),
    /// The core reports this.
    Trace(TraceEvent),
}

/// Something that operators may want to know. Nothing depends on it.
#[derive(Debug)]
pub enum Notice {
    /// A snapshot is being taken.
    SnapshotBegun {
        /// Its last entry.
        op_number: OpNumber,
        /// It is a file; else a checkpoint of the engine.
        is_file: bool,
    },
    /// The state of an engine in memory has been cut into blocks.
    SnapshotCut {
        /// The snapshot's last entry.
        op_number: OpNumber,
        /// How long that took.
        took: Duration,
    },
    /// The engine's part of a checkpoint is durable.
    Flushed(OpNumber),
    /// A snapshot is durable.
    SnapshotTaken {
        /// Its last entry.
        op_number: OpNumber,
        /// The length of its file; 0 if it is a checkpoint without one.
        bytes: u64,
    },
    /// A snapshot cannot be taken, or received. The replica tries again.
    SnapshotFailed {
        /// Its last entry.
        op_number: OpNumber,
        /// Why.
        problem: String,
    },
    /// The data take more memory than they may.
    MemoryExceeded {
        /// What they take, in bytes.
        data: usize,
        /// What they may take, in bytes.
        limit: u64,
    },
    /// Something failed that is not needed.
    Warning(String),
}

/// Looks on while a replica's log is executed. Nothing that it does changes what is executed.
pub trait DriverObserver<M, S: Store>: Observer<M> {
    /// An entry is about to be dealt out to the threads of an engine on disk.
    fn on_deal(&mut self, number: OpNumber, entry: &LogEntry) {
        let _ = (number, entry);
    }

    /// An entry has been dealt out to the threads of an engine on disk.
    fn on_dealt(&mut self, executor: &mut DiskExecutor<S>) {
        let _ = executor;
    }

    /// An engine on disk has executed a prefix of the log.
    fn on_prefix(&mut self, executed: &Executed) {
        let _ = executed;
    }
}

/// Nobody looks on.
impl<M, S: Store> DriverObserver<M, S> for () {}
