//! What every driver of an engine on disk does: the server with threads, the simulator step by step.

use std::sync::Arc;

use syros_protocol::message::{Body, LogEntry, Message, Payload, Peer, Standing};
use syros_protocol::record::{SnapshotHead, Ticket};
use syros_protocol::replica::Event;
use syros_storage::execution::{Dispatcher, Task};
use syros_storage::{Cut, Reader, Shared, Store, StoreError};
use syros_types::{OpNumber, OperationId, View, WallTime};

/// Deals out one log entry, the one after the last.
pub fn deal_out<J>(dispatcher: &mut Dispatcher<Body, J>, number: OpNumber, entry: &LogEntry) {
    let task =
        |body: &Body, wants_reply| Task { number, time: entry.time, body: Arc::clone(body), wants_reply };
    match &entry.payload {
        Payload::Update(update) => {
            let task = task(&update.request.body, !update.class.is_nilext());
            dispatcher.task(&update.footprint, task);
        }
        Payload::Recovered(updates) => {
            let footprints = updates.iter().map(|update| &update.footprint);
            let tasks =
                updates.iter().map(|update| task(&update.request.body, !update.class.is_nilext())).collect();
            dispatcher.indivisible(footprints, tasks);
        }
        Payload::Register { .. } | Payload::Expire(_) | Payload::Tick => {}
    }
}

/// A read that the core has asked for ([`Action::Read`](syros_protocol::replica::Action::Read)).
#[derive(Debug)]
pub struct ReadJob {
    /// Who asked.
    pub to: Peer,
    /// The view in which it is answered.
    pub view: View,
    /// The client's number for it.
    pub number: u64,
    /// The operation.
    pub body: Body,
    /// What the member knows beyond the value, if that goes with it.
    pub standing: Option<Standing>,
    /// All up to here had been executed when the core asked.
    pub applied: OpNumber,
    /// What is left of lifetimes counts from this time.
    pub now: WallTime,
    /// What expires at this time or before must not be in the result.
    pub time: Option<WallTime>,
}

/// What becomes of a read.
#[derive(Debug)]
pub enum ReadOutcome {
    /// This is sent to the client.
    Answer(Peer, Message),
    /// The core hears that it is not answered: [`Event::NotRead`].
    NotRead(Event),
}

impl ReadJob {
    /// What becomes of it: `expiry` is the first of what it has seen.
    #[must_use]
    pub fn answer(self, reply: &[u8], expiry: Option<WallTime>) -> ReadOutcome {
        let Self { to, view, number, standing, applied, body, time, .. } = self;
        if let (Some(time), Some(expiry)) = (time, expiry)
            && expiry <= time
        {
            return ReadOutcome::NotRead(Event::NotRead { to, number, body, time, expiry });
        }
        let reply = Body::from(reply);
        let message = match standing {
            None => Message::ReadReply { view, number, reply },
            Some(standing) => {
                let expiry = expiry.unwrap_or_default();
                Message::MemberReply { view, number, applied, standing, expiry, reply }
            }
        };
        ReadOutcome::Answer(to, message)
    }
}

/// An update whose answer the core has asked for before it is executed
/// ([`Action::Evaluate`](syros_protocol::replica::Action::Evaluate)).
#[derive(Debug)]
pub struct EvaluateJob {
    /// The client.
    pub to: Peer,
    /// The view in which it was accepted.
    pub view: View,
    /// The update.
    pub id: OperationId,
    /// The operation.
    pub body: Body,
    /// Log time of the last entry that was dealt out before it.
    pub time: WallTime,
}

impl EvaluateJob {
    /// Finds it out. The lanes of its keys must have executed and committed all that was dealt out before it, and
    /// nothing else. What to send to the client; or `None`, if it cannot be known before the update is executed.
    #[must_use]
    pub fn perform<S: Store>(&self, shared: &Arc<Shared<S>>) -> Option<Message> {
        let mut reply = Vec::new();
        let is_certain = Reader::new(Arc::clone(shared)).evaluate(self.time, &self.body, &mut reply);
        let Self { view, id, .. } = *self;
        is_certain.then(|| Message::Evaluated { view, id, reply: Body::from(reply) })
    }
}

/// Ends a checkpoint; the state as it is now comes back if a file is to be made of it. No lane may be at work, and
/// nothing uncommitted.
///
/// # Errors
/// What the disk says.
pub fn seal<S: Store>(
    shared: &Arc<Shared<S>>,
    head: &SnapshotHead,
    is_file: bool,
) -> Result<Option<Cut<S>>, StoreError> {
    let mut bytes = Vec::new();
    syros_wire::encode_snapshot_head(head, &mut bytes);
    shared.seal(&bytes)?;
    Ok(is_file.then(|| Cut::new(shared)))
}

/// How far the checkpoint has come that is being made, if one is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checkpoints(Option<Checkpoint>);

#[derive(Clone, Copy, Debug)]
struct Checkpoint {
    op_number: OpNumber,
    /// It may not be durable before this record is: the log must never end before it.
    ticket: Ticket,
    is_sealed: bool,
    is_flushing: bool,
    is_flushed: bool,
    /// A file goes with it.
    is_file: bool,
    /// Length of the file, once it is there.
    file_bytes: Option<u64>,
}

impl Checkpoints {
    /// Begins one; what was left of another is void. For the arguments see
    /// [`Action::TakeSnapshot`](syros_protocol::replica::Action::TakeSnapshot).
    pub const fn begin(&mut self, op_number: OpNumber, ticket: Ticket, is_file: bool) {
        self.0 = Some(Checkpoint {
            op_number,
            ticket,
            is_sealed: false,
            is_flushing: false,
            is_flushed: false,
            is_file,
            file_bytes: None,
        });
    }

    /// It is sealed: all that is executed from now on belongs to the next.
    pub fn sealed(&mut self, op_number: OpNumber) {
        if let Some(checkpoint) = self.at(op_number) {
            checkpoint.is_sealed = true;
        }
    }

    /// The one that is to be made durable now, if it is time: told once.
    pub fn flush_if_due(&mut self, persisted: Ticket) -> Option<OpNumber> {
        let due = |checkpoint: &&mut Checkpoint| {
            checkpoint.is_sealed && !checkpoint.is_flushing && checkpoint.ticket <= persisted
        };
        let checkpoint = self.0.as_mut().filter(due)?;
        checkpoint.is_flushing = true;
        Some(checkpoint.op_number)
    }

    /// The record that has to be on disk before one can be made durable, if one waits.
    #[must_use]
    pub fn awaited(&self) -> Option<Ticket> {
        self.0.filter(|checkpoint| !checkpoint.is_flushing).map(|checkpoint| checkpoint.ticket)
    }

    /// The one that is being made durable.
    #[must_use]
    pub fn flushing(&self) -> Option<OpNumber> {
        self.0.filter(|checkpoint| checkpoint.is_flushing).map(|checkpoint| checkpoint.op_number)
    }

    /// It is durable. Its file's length (0 if there is none), if all of it is.
    pub fn flushed(&mut self, op_number: OpNumber) -> Option<u64> {
        self.at(op_number)?.is_flushed = true;
        self.finish()
    }

    /// Its file is written. The length, if all of it is durable.
    pub fn written(&mut self, op_number: OpNumber, bytes: u64) -> Option<u64> {
        self.at(op_number)?.file_bytes = Some(bytes);
        self.finish()
    }

    /// There will be no such checkpoint; false if there was none.
    pub fn failed(&mut self, op_number: OpNumber) -> bool {
        self.0.take_if(|checkpoint| checkpoint.op_number == op_number).is_some()
    }

    fn at(&mut self, op_number: OpNumber) -> Option<&mut Checkpoint> {
        self.0.as_mut().filter(|checkpoint| checkpoint.op_number == op_number)
    }

    fn finish(&mut self) -> Option<u64> {
        let is_complete = |checkpoint: &mut Checkpoint| {
            checkpoint.is_flushed && (!checkpoint.is_file || checkpoint.file_bytes.is_some())
        };
        self.0.take_if(is_complete).map(|checkpoint| checkpoint.file_bytes.unwrap_or(0))
    }
}
