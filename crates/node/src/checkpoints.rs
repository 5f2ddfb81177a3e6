//! The checkpoint of an engine on disk that is being made.

use syros_protocol::record::Ticket;
use syros_types::OpNumber;

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

    /// True if none is being made.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        self.0.is_none()
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
