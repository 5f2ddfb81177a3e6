//! What clients asked for and were told, in the order in which it happened.

use crate::clock::VirtualTime;
use crate::workload::{ClientCommand, WaitCommand};
use syros_protocol::client::Outcome;
use syros_types::{OpNumber, OperationId};

/// One operation of one client.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// Number of the client process; a client that crashed and came back is another one.
    pub client: u64,
    /// What it asked for.
    pub steps: Vec<ClientCommand>,
    /// Place of the invocation in the order of all invocations and completions.
    pub invoked: u64,
    /// Virtual time of the invocation.
    pub invoked_at: VirtualTime,
    /// One reply answers all its steps: it is a transaction or a script.
    pub has_one_reply: bool,
    /// The connection of a Redis client that it came on: its operations take effect in their order where their keys
    /// overlap.
    pub connection: Option<u64>,
    /// How it ended; `None` if nobody was left to be told.
    pub finished: Option<Finished>,
    /// Its client or its connection is gone: nobody will be told how it ends.
    pub is_abandoned: bool,
    /// The id under which it travelled, if it is an update and was sent; of a command that waits, which is sent again and again, the
    /// last one.
    pub id: Option<OperationId>,
    /// Ids under which it travelled before and was refused for want of memory.
    pub refused_ids: Vec<OperationId>,
    /// The log entry after which the read was executed whose result the client got.
    pub read_after: Option<OpNumber>,
    /// It was answered that nothing of it has been done.
    pub is_undone: bool,
    /// For a read that any replica may answer as it is: what the judge knows of the answer.
    pub stale: Option<StaleRead>,
}

impl Invocation {
    /// True if it is a command that may wait.
    #[must_use]
    pub const fn is_wait(&self) -> bool {
        matches!(self.steps.as_slice(), [ClientCommand::Wait(_)])
    }

    /// How many replies the group gives to it.
    pub(crate) const fn replies(&self) -> usize {
        if self.has_one_reply { 1 } else { self.steps.len() }
    }
}

/// A stale read: it is no part of a linearizable history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StaleRead {
    /// The replica that answered, and which of its lives.
    pub by: Option<(usize, u64)>,
    /// The entry that the answer names: the replica had executed it before it read.
    pub named: OpNumber,
    /// Entries that some replica had executed when the answer arrived.
    pub entries: usize,
}

/// How an operation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Place of the completion in the order of all invocations and completions.
    pub order: u64,
    /// Virtual time of the completion.
    pub at: VirtualTime,
    /// What the client was told.
    pub outcome: Outcome,
}

/// Name of an operation in a history.
pub type OperationIndex = usize;

/// All operations of a run.
#[derive(Clone, Debug, Default)]
pub struct History {
    operations: Vec<Invocation>,
    moments: u64,
    open: usize,
}

impl History {
    /// A client asks for something.
    pub fn invoke(&mut self, client: u64, steps: Vec<ClientCommand>, at: VirtualTime) -> OperationIndex {
        self.moments += 1;
        let invoked = self.moments;
        self.open += usize::from(!matches!(steps.as_slice(), [ClientCommand::Wait(_)]));
        self.operations.push(Invocation {
            client,
            steps,
            invoked,
            invoked_at: at,
            has_one_reply: false,
            connection: None,
            finished: None,
            is_abandoned: false,
            id: None,
            refused_ids: Vec::new(),
            read_after: None,
            is_undone: false,
            stale: None,
        });
        self.operations.len() - 1
    }

    /// An operation comes on this connection of a Redis client, after all that came on it before. One reply answers all its steps,
    /// or each has one.
    pub fn on_connection(&mut self, index: OperationIndex, connection: u64, has_one_reply: bool) {
        let operation = &mut self.operations[index];
        (operation.connection, operation.has_one_reply) = (Some(connection), has_one_reply);
    }

    /// A client is told the outcome.
    pub fn finish(&mut self, index: OperationIndex, outcome: Outcome, at: VirtualTime) {
        self.moments += 1;
        let finished = Finished { order: self.moments, at, outcome };
        let before = self.operations[index].finished.replace(finished);
        assert!(before.is_none(), "an operation ends once");
        self.close(index);
    }

    /// An update is sent for the first time under this id. If it has had another one, that was refused: the judge sees to it.
    pub fn sent(&mut self, index: OperationIndex, id: OperationId) {
        let operation = &mut self.operations[index];
        let before = operation.id.replace(id).filter(|before| *before != id);
        if !operation.is_wait() {
            operation.refused_ids.extend(before);
        }
    }

    /// Nothing of an operation has been done, though it may have been executed.
    pub(crate) fn undo(&mut self, index: OperationIndex) {
        self.operations[index].is_undone = true;
    }

    /// The read that ended was executed after this log entry.
    pub fn read_after(&mut self, index: OperationIndex, number: OpNumber) {
        self.operations[index].read_after = Some(number);
    }

    /// Any replica may answer this read as it is.
    pub fn read_stale(&mut self, index: OperationIndex, stale: StaleRead) {
        self.operations[index].stale = Some(stale);
    }

    /// The client of an operation is gone: nobody will be told how it ends.
    pub fn abandon(&mut self, index: OperationIndex) {
        assert!(self.operations[index].finished.is_none(), "only what has not ended is abandoned");
        self.operations[index].is_abandoned = true;
        self.close(index);
    }

    fn close(&mut self, index: OperationIndex) {
        self.open -= usize::from(!self.operations[index].is_wait());
    }

    /// Commands that wait, and whose clients are there.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = (OperationIndex, &WaitCommand)> {
        let waits = |it: &Invocation| it.finished.is_none() && !it.is_abandoned;
        let operations = self.operations.iter().enumerate().filter(move |(_, it)| waits(it));
        operations.filter_map(|(number, it)| match it.steps.as_slice() {
            [ClientCommand::Wait(wait)] => Some((number, wait)),
            _ => None,
        })
    }

    /// True if no client waits for anything but elements.
    #[must_use]
    pub const fn all_finished(&self) -> bool {
        self.open == 0
    }

    /// Operations whose clients wait for them, but for commands that wait themselves.
    #[must_use]
    pub const fn open(&self) -> usize {
        self.open
    }

    /// Every operation, in the order of invocation.
    #[must_use]
    pub fn operations(&self) -> &[Invocation] {
        &self.operations
    }

    /// One operation.
    #[must_use]
    pub fn get(&self, index: OperationIndex) -> &Invocation {
        &self.operations[index]
    }
}
