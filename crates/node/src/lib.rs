//! What a Syros process decides between its sockets, its disk and its threads.
//!
//! Each module holds a state machine that owns no thread, no socket, no file and no clock. The server gives it what its
//! threads report, and carries out what it asks for. The simulator does the same in virtual time, so that both run the
//! same decisions.
#![forbid(unsafe_code)]

mod checkpoints;
mod client_addresses;
mod disk_executor;
mod disk_state;
mod driver;
mod durable_queue;
mod entries_reader;
mod evictions;
mod in_memory;
mod key_events;
mod long_reads;
mod memory_executor;
mod no_op_answer;
mod read_job;
mod record_numbering;
mod replay;
mod ticket_queue;
mod waited_keys;

pub use checkpoints::Checkpoints;
pub use client_addresses::{ClientAddresses, ClientSource, TooManyFromAddress};
pub use disk_executor::{
    DiskExecutor, ExecutorEvent, LaneItem, LaneStep, LaneWorker, PressureLimits, ReadWorker, Reading, Report,
};
pub use disk_state::DiskState;
pub use driver::{DriverObserver, Execution, Notice, OnDisk, Output, ReplicaDriver};
pub use durable_queue::DurableQueue;
pub use entries_reader::{EntriesJob, EntriesReader, EntriesReport};
pub use evictions::{Evictions, MemoryLimit};
pub use in_memory::{InMemory, SnapshotState};
pub use key_events::KeyEvents;
pub use long_reads::LongReply;
pub use memory_executor::{ENTRIES_PER_TURN, MemoryExecutor, Observer};
pub use no_op_answer::NoOpAnswer;
pub use read_job::{EvaluateJob, ReadJob, ReadOutcome};
pub use record_numbering::RecordNumbering;
pub use replay::execute_entry;
pub use ticket_queue::TicketQueue;
pub use waited_keys::WaitedKeys;

pub mod data;
pub mod front_end;
pub mod snapshots;
