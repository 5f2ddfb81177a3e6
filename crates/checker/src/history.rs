//! What clients asked for, when, and what they were told.

pub use crate::output::Output;

use crate::collections::CollectionOperation;
use crate::output::Text;
use crate::transfer::Transfer;
use std::fmt;

/// Most operations of one history. Indexes are 32-bit numbers and a search keeps some hundred bytes
/// for every operation; real histories are a hundred times shorter.
pub const OPERATIONS_MAX: usize = 100_000;

/// What an operation does. Semantics are those of Redis: a missing key counts as empty text to an
/// append and as 0 to an increment; an increment of something that is no 64-bit integer fails without
/// effect. Whether an update was blind shows in its [`Output`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// Reads a value (GET). Answer: [`Output::Value`].
    Get(u32),
    /// Reads several values at one moment (MGET). Answer: [`Output::Values`].
    GetMany(Vec<u32>),
    /// Reads the length of a value, 0 if missing (STRLEN). Answer: [`Output::Number`].
    Length(u32),
    /// Counts the values there are (DBSIZE). The recorder lists every key of the history: an operation over all keys
    /// is one over those. Answer: [`Output::Number`].
    Count(Vec<u32>),
    /// Reads which of all keys have a value (KEYS). The recorder lists every key. Answer: [`Output::Keys`].
    List(Vec<u32>),
    /// Removes every value (FLUSHALL). The recorder lists every key. Answer: [`Output::Done`].
    Clear(Vec<u32>),
    /// Writes a value (SET). Answer: [`Output::Done`].
    Set(u32, Vec<u8>),
    /// Writes several values at one moment, from left to right (MSET). Answer: [`Output::Done`].
    SetMany(Vec<(u32, Vec<u8>)>),
    /// Writes a value if there is none (SETNX). Answer: [`Output::Flag`], true if it wrote.
    SetIfAbsent(u32, Vec<u8>),
    /// Writes a value and reads the one before (GETSET). Answer: [`Output::Value`].
    Exchange(u32, Vec<u8>),
    /// Adds to the end of a value (APPEND). Answer: [`Output::Number`], the new length.
    Append(u32, Vec<u8>),
    /// Adds to an integer (INCRBY). Answer: [`Output::Number`], the sum, or [`Output::Error`].
    Increment(u32, i64),
    /// Removes a value (DEL). Answer: [`Output::Flag`], true if there was one.
    Delete(u32),
    /// The lifetime of a value that was written once is over: removes it if it is still there. No client asks for
    /// this. Whoever records a history adds one for every value with a lifetime, invoked when the lifetime may have
    /// ended and completed when it must have. Answer: [`Output::Done`].
    Expire(u32, Vec<u8>),
    /// An operation on the collection of a key.
    Collection(u32, CollectionOperation),
    /// Moves what a key holds, with its lifetime, to another one (RENAME). Answer: [`Output::Flag`], true, or
    /// [`Output::Error`] if there is nothing.
    Rename(u32, u32),
    /// Takes something from the first key and leaves it at the second. Answer: see [`Transfer`].
    Transfer(u32, u32, Transfer),
    /// Gives what a key holds a lifetime (EXPIRE), which whoever records the history names by a number of its own.
    /// Answer: [`Output::Flag`], true if there was something.
    Lifetime(u32, u32),
    /// Takes the lifetime from what a key holds (PERSIST). Answer: [`Output::Flag`], true if it had one.
    Persist(u32),
    /// The lifetime with this number is over: removes what has it from whichever of the keys holds it. No client asks
    /// for this; it is recorded like [`Input::Expire`], with every key that the value may have been moved to. Answer:
    /// [`Output::Done`].
    LifetimeEnds(Vec<u32>, u32),
    /// Several operations as one, in order; one that fails does not stop the others. Answer:
    /// [`Output::Batch`]. Does not nest.
    Batch(Vec<Input>),
    /// Several operations as one if each of these keys holds this text, or nothing; else nothing happens. Whoever records
    /// the history asks for this if nobody knows whether a transaction that watches keys took effect: if it did, the keys
    /// held what its client had seen. Answer: [`Output::Batch`], or [`Output::Flag`], false, if nothing happened. Does not
    /// nest.
    Conditional(Vec<(u32, Option<Vec<u8>>)>, Vec<Input>),
}

impl Input {
    /// Calls `visit` with every key the operation touches; a key may come twice.
    pub fn for_each_key(&self, visit: &mut dyn FnMut(u32)) {
        match self {
            Self::Get(key)
            | Self::Length(key)
            | Self::Set(key, _)
            | Self::SetIfAbsent(key, _)
            | Self::Exchange(key, _)
            | Self::Append(key, _)
            | Self::Increment(key, _)
            | Self::Expire(key, _)
            | Self::Collection(key, _)
            | Self::Lifetime(key, _)
            | Self::Persist(key)
            | Self::Delete(key) => visit(*key),
            Self::GetMany(keys)
            | Self::Count(keys)
            | Self::List(keys)
            | Self::Clear(keys)
            | Self::LifetimeEnds(keys, _) => keys.iter().for_each(|key| visit(*key)),
            Self::Rename(from, to) | Self::Transfer(from, to, _) => {
                [from, to].into_iter().for_each(|key| visit(*key));
            }
            Self::SetMany(pairs) => pairs.iter().for_each(|(key, _)| visit(*key)),
            Self::Batch(parts) => parts.iter().for_each(|part| part.for_each_key(visit)),
            Self::Conditional(seen, parts) => {
                seen.iter().for_each(|(key, _)| visit(*key));
                parts.iter().for_each(|part| part.for_each_key(visit));
            }
        }
    }

    /// True if it can change nothing, whatever it finds.
    #[must_use]
    pub fn is_read(&self) -> bool {
        match self {
            Self::Get(_) | Self::GetMany(_) | Self::Length(_) | Self::Count(_) | Self::List(_) => true,
            Self::Collection(_, operation) => operation.is_read(),
            Self::Batch(parts) => parts.iter().all(Self::is_read),
            _ => false,
        }
    }

    /// True if this is the end of a lifetime, which no client asks for.
    #[must_use]
    pub const fn is_end(&self) -> bool {
        matches!(self, Self::Expire(..) | Self::LifetimeEnds(..))
    }

    /// True if `output` may be an answer to this operation, as far as its form goes.
    fn admits(&self, output: &Output) -> bool {
        match (self, output) {
            (Self::Get(_) | Self::Exchange(..), Output::Value(_))
            | (Self::Length(_) | Self::Count(_) | Self::Append(..), Output::Number(_))
            | (Self::List(_), Output::Keys(_))
            | (Self::Increment(..), Output::Number(_) | Output::Error)
            | (Self::Rename(..), Output::Flag(true) | Output::Error)
            | (
                Self::SetIfAbsent(..) | Self::Delete(_) | Self::Lifetime(..) | Self::Persist(_),
                Output::Flag(_),
            )
            | (Self::Conditional(..), Output::Flag(false))
            | (
                Self::Get(_)
                | Self::Exchange(..)
                | Self::Length(_)
                | Self::Append(..)
                | Self::Increment(..)
                | Self::Collection(..),
                Output::WrongType,
            ) => true,
            (Self::GetMany(keys), Output::Values(values)) => keys.len() == values.len(),
            (Self::Batch(parts) | Self::Conditional(_, parts), Output::Batch(outputs)) => {
                parts.len() == outputs.len() && parts.iter().zip(outputs).all(|(part, out)| part.admits(out))
            }
            (Self::Batch(parts), Output::Done) => !parts.iter().any(Self::is_read),
            (input, Output::Done) => !input.is_read(),
            (Self::Collection(_, operation), output) => operation.admits(output),
            (Self::Transfer(_, _, transfer), output) => transfer.admits(output),
            _ => false,
        }
    }

    fn is_nested(&self) -> bool {
        let has_parts = |part: &Self| matches!(part, Self::Batch(_) | Self::Conditional(..));
        matches!(self, Self::Batch(parts) | Self::Conditional(_, parts) if parts.iter().any(has_parts))
    }
}

/// How an operation ended, as far as its client knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The client has its answer: the operation took effect between its invocation and `completed`.
    Acknowledged {
        /// When the answer came.
        completed: u64,
        /// The answer.
        output: Output,
    },
    /// It was refused and never took effect.
    Failed,
    /// Nobody knows: it took effect at some time after its invocation, be it after the end of the
    /// history, or never.
    Unknown,
}

/// One operation of one client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Operation {
    /// Who asked, for the reader of an explanation. A process may have several operations in flight.
    pub process: u64,
    /// When it asked.
    pub invoked: u64,
    /// What it asked for.
    pub input: Input,
    /// What came of it.
    pub outcome: Outcome,
    /// Operations that must have taken effect before it, if both were acknowledged: see [`History::order`].
    pub follows: Vec<OperationIndex>,
}

/// Names an operation of a history: its position in [`History::operations`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationIndex(pub usize);

/// Operations of one run, in the order in which they were recorded.
///
/// Times are plain numbers on one clock. One operation precedes another if it completed at a smaller
/// number than the other was invoked at; equal numbers count as concurrent. A simulation should
/// therefore number its events rather than use a virtual time that stands still between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    operations: Vec<Operation>,
}

impl History {
    /// A history of nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { operations: Vec::new() }
    }

    /// Records that `process` asked for `input` at time `at`. Until told otherwise, the outcome is
    /// unknown.
    ///
    /// # Errors
    /// [`HistoryError::TooManyOperations`], [`HistoryError::NestedBatch`].
    pub fn invoke(&mut self, process: u64, at: u64, input: Input) -> Result<OperationIndex, HistoryError> {
        if self.operations.len() >= OPERATIONS_MAX {
            return Err(HistoryError::TooManyOperations);
        }
        if input.is_nested() {
            return Err(HistoryError::NestedBatch);
        }
        let outcome = Outcome::Unknown;
        self.operations.push(Operation { process, invoked: at, input, outcome, follows: Vec::new() });
        Ok(OperationIndex(self.operations.len() - 1))
    }

    /// Records that the client got the answer `output` at time `at`.
    ///
    /// # Errors
    /// [`HistoryError`] if the operation is not there, has ended already or was invoked later, or if
    /// this is no answer to it.
    pub fn acknowledge(
        &mut self,
        index: OperationIndex,
        at: u64,
        output: Output,
    ) -> Result<(), HistoryError> {
        let operation = self.open(index)?;
        if at < operation.invoked {
            return Err(HistoryError::CompletedBeforeInvoked {
                index,
                invoked: operation.invoked,
                completed: at,
            });
        }
        if !operation.input.admits(&output) {
            return Err(HistoryError::NoAnswerToThis { index, output });
        }
        operation.outcome = Outcome::Acknowledged { completed: at, output };
        Ok(())
    }

    /// Records that the operation was refused and will never take effect.
    ///
    /// # Errors
    /// [`HistoryError::NoSuchOperation`], [`HistoryError::AlreadyEnded`].
    pub fn fail(&mut self, index: OperationIndex) -> Result<(), HistoryError> {
        self.open(index)?.outcome = Outcome::Failed;
        Ok(())
    }

    /// Demands that `first` takes effect before `then`, though both may have been under way at one time: a client sent them
    /// in this order. It counts only if both are acknowledged and share a key.
    ///
    /// # Errors
    /// [`HistoryError::NoSuchOperation`].
    pub fn order(&mut self, first: OperationIndex, then: OperationIndex) -> Result<(), HistoryError> {
        if first.0 >= self.operations.len() {
            return Err(HistoryError::NoSuchOperation(first));
        }
        let operation = self.operations.get_mut(then.0).ok_or(HistoryError::NoSuchOperation(then))?;
        operation.follows.push(first);
        Ok(())
    }

    /// Every operation, in the order of invocation calls.
    #[must_use]
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    fn open(&mut self, index: OperationIndex) -> Result<&mut Operation, HistoryError> {
        let operation = self.operations.get_mut(index.0).ok_or(HistoryError::NoSuchOperation(index))?;
        match operation.outcome {
            Outcome::Unknown => Ok(operation),
            _ => Err(HistoryError::AlreadyEnded(index)),
        }
    }
}

/// Why something cannot be recorded: a mistake of whoever records, never of the system under test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HistoryError {
    /// More than [`OPERATIONS_MAX`] operations.
    TooManyOperations,
    /// A batch inside a batch.
    NestedBatch,
    /// There is no such operation.
    NoSuchOperation(OperationIndex),
    /// The operation was acknowledged or failed before.
    AlreadyEnded(OperationIndex),
    /// The answer came before the question.
    CompletedBeforeInvoked {
        /// Which operation.
        index: OperationIndex,
        /// When it was invoked.
        invoked: u64,
        /// When it is said to have completed.
        completed: u64,
    },
    /// The answer has a form that the operation never gives.
    NoAnswerToThis {
        /// Which operation.
        index: OperationIndex,
        /// The answer.
        output: Output,
    },
}

impl fmt::Display for HistoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyOperations => write!(f, "a history holds at most {OPERATIONS_MAX} operations"),
            Self::NestedBatch => f.write_str("a batch holds plain operations, no batches"),
            Self::NoSuchOperation(index) => write!(f, "there is no operation {}", index.0),
            Self::AlreadyEnded(index) => write!(f, "operation {} has ended already", index.0),
            Self::CompletedBeforeInvoked { index, invoked, completed } => {
                write!(f, "operation {} was invoked at {invoked}, after its end at {completed}", index.0)
            }
            Self::NoAnswerToThis { index, output } => {
                write!(f, "\"{output}\" is no answer to operation {}", index.0)
            }
        }
    }
}

impl std::error::Error for HistoryError {}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Get(key) => write!(f, "get k{key}"),
            Self::GetMany(keys) => {
                f.write_str("get")?;
                keys.iter().try_for_each(|key| write!(f, " k{key}"))
            }
            Self::Length(key) => write!(f, "length k{key}"),
            Self::Count(_) => f.write_str("count all keys"),
            Self::List(_) => f.write_str("list all keys"),
            Self::Clear(_) => f.write_str("clear all keys"),
            Self::Set(key, value) => write!(f, "set k{key} {}", Text(value)),
            Self::SetMany(pairs) => {
                f.write_str("set")?;
                pairs.iter().try_for_each(|(key, value)| write!(f, " k{key} {}", Text(value)))
            }
            Self::SetIfAbsent(key, value) => write!(f, "set-if-absent k{key} {}", Text(value)),
            Self::Exchange(key, value) => write!(f, "exchange k{key} {}", Text(value)),
            Self::Append(key, value) => write!(f, "append k{key} {}", Text(value)),
            Self::Increment(key, delta) => write!(f, "increment k{key} {delta}"),
            Self::Delete(key) => write!(f, "delete k{key}"),
            Self::Expire(key, value) => write!(f, "expire k{key} {}", Text(value)),
            Self::Collection(key, operation) => write!(f, "k{key}: {operation}"),
            Self::Rename(from, to) => write!(f, "move k{from} to k{to}"),
            Self::Transfer(from, to, transfer) => write!(f, "from k{from} to k{to}: {transfer}"),
            Self::Lifetime(key, lifetime) => write!(f, "give k{key} lifetime {lifetime}"),
            Self::Persist(key) => write!(f, "take the lifetime from k{key}"),
            Self::LifetimeEnds(_, lifetime) => write!(f, "end lifetime {lifetime}"),
            Self::Batch(parts) => {
                let parts: Vec<String> = parts.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", parts.join("; "))
            }
            Self::Conditional(seen, parts) => {
                f.write_str("if")?;
                for (key, value) in seen {
                    write!(f, " k{key} {}", Output::Value(value.clone()))?;
                }
                let parts: Vec<String> = parts.iter().map(ToString::to_string).collect();
                write!(f, ": [{}]", parts.join("; "))
            }
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { process, invoked, input, outcome, follows: _ } = self;
        match outcome {
            Outcome::Acknowledged { completed, output } => {
                write!(f, "process {process} [{invoked}, {completed}] {input} -> {output}")
            }
            Outcome::Failed => write!(f, "process {process} [{invoked}, -] {input} -> refused"),
            Outcome::Unknown => write!(f, "process {process} [{invoked}, ?] {input} -> unknown"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_ends_once_and_after_it_began() {
        let mut history = History::new();
        let get = history.invoke(1, 10, Input::Get(7)).unwrap();
        let early = history.acknowledge(get, 9, Output::Value(None));
        assert_eq!(
            early,
            Err(HistoryError::CompletedBeforeInvoked { index: get, invoked: 10, completed: 9 })
        );
        history.acknowledge(get, 10, Output::Value(None)).unwrap();
        assert_eq!(history.fail(get), Err(HistoryError::AlreadyEnded(get)));
        let absent = OperationIndex(5);
        assert_eq!(history.fail(absent), Err(HistoryError::NoSuchOperation(absent)));
    }

    #[test]
    fn answers_fit_their_questions() {
        let mut history = History::new();
        let mut fits = |input: Input, output: Output| {
            let index = history.invoke(0, 0, input).unwrap();
            history.acknowledge(index, 1, output).is_ok()
        };
        assert!(fits(Input::Append(1, vec![]), Output::Done));
        assert!(fits(Input::Increment(1, 2), Output::Error));
        assert!(!fits(Input::Get(1), Output::Done));
        assert!(!fits(Input::Get(1), Output::Number(1)));
        assert!(!fits(Input::GetMany(vec![1, 2]), Output::Values(vec![None])));
        let batch = Input::Batch(vec![Input::Delete(1), Input::Get(1)]);
        assert!(fits(batch.clone(), Output::Batch(vec![Output::Done, Output::Value(None)])));
        assert!(!fits(batch.clone(), Output::Done));
        assert!(!fits(batch.clone(), Output::Batch(vec![Output::Done])));
        assert_eq!(history.invoke(0, 0, Input::Batch(vec![batch])), Err(HistoryError::NestedBatch));
    }

    #[test]
    fn long_and_odd_values_are_printed_safely() {
        assert_eq!(Text(b"a\n\xff").to_string(), "\"a\\n\\xff\"");
        assert!(Text(&[b'x'; 500]).to_string().ends_with("\".. (500 bytes)"));
    }
}
