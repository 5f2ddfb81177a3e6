//! Operations with many options, as they are written instead of as they are executed.
//!
//! The largest operation decides how many bytes every decoded one has, the short ones of which there are many included. So
//! one with many options keeps the words or the bytes that it came from, and is read again where it is needed.

use super::Command;
use super::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, UpdateCommand, View};
use super::specification::CommandSpec;
use crate::access::{Databases, DatabasesMut, Keys, KeysMut, Operand};
use crate::encoding::{Encoding, Opcode};
use crate::error::CommandError;
use crate::primitive::Malformed;
use crate::words::Words;
use core::fmt;
use syros_types::{Class, Database};

/// An operation that is read again whenever it is asked for.
#[derive(Clone, Copy)]
pub struct Indirect<'a, T> {
    source: Source<'a, T>,
    opcode: Opcode,
    /// Its time, if it has one: whatever it is read from, that is put into it. See
    /// [`Operation::now_mut`](crate::Operation::now_mut).
    now_ms: Option<u64>,
}

/// What it is read from. Either has been read before, without an error.
#[derive(Clone, Copy)]
enum Source<'a, T> {
    Words(Words<'a>, Parse<'a, T>),
    Fields(&'a [u8]),
}

/// Reads the words of a command, the first of them its name.
type Parse<'a, T> = fn(Words<'a>) -> Result<T, CommandError>;

#[expect(private_bounds, reason = "an operation is made by this crate alone")]
impl<'a, T: Definition<'a>> Indirect<'a, T> {
    /// The operation that these words are.
    ///
    /// # Errors
    /// Those of `parse`.
    pub(crate) fn parse(words: Words<'a>, parse: Parse<'a, T>) -> Result<Command<'a>, CommandError>
    where
        Command<'a>: From<Self>,
    {
        Ok(Self::new(parse(words)?, Source::Words(words, parse)).into())
    }

    /// This operation, which has been read from there.
    fn new(mut operation: T, source: Source<'a, T>) -> Self {
        Self { source, opcode: operation.opcode(), now_ms: operation.now_mut().copied() }
    }

    /// The operation.
    ///
    /// # Panics
    /// If what has been read before cannot be read again.
    #[must_use]
    pub fn get(&self) -> T {
        let mut operation = match self.source {
            Source::Words(words, parse) => parse(words).expect("these words have been read before"),
            Source::Fields(mut fields) => {
                T::decode(self.opcode, &mut fields).expect("these bytes have been read before")
            }
        };
        if let (Some(to), Some(now_ms)) = (operation.now_mut(), self.now_ms) {
            *to = now_ms;
        }
        operation
    }
}

impl<'a, T: Definition<'a>> Encoding<'a> for Indirect<'a, T> {
    const OPCODE: Opcode = T::OPCODE;

    fn opcode(&self) -> Opcode {
        self.opcode
    }

    fn encode(&self, out: &mut Vec<u8>) {
        match self.source {
            // Bytes with a time have the one that was there when they were read.
            Source::Fields(fields) if self.now_ms.is_none() => out.extend_from_slice(fields),
            Source::Words(..) | Source::Fields(_) => self.get().encode(out),
        }
    }

    fn decode(opcode: Opcode, input: &mut &'a [u8]) -> Result<Self, Malformed> {
        let start = *input;
        let operation = T::decode(opcode, input)?;
        Ok(Self::new(operation, Source::Fields(&start[..start.len() - input.len()])))
    }
}

impl<'a, T: Definition<'a>> Definition<'a> for Indirect<'a, T> {
    const SPECS: &'static [CommandSpec] = T::SPECS;

    fn keys(&self) -> KeyNames<'a> {
        self.get().keys()
    }

    fn values(&self) -> u32 {
        self.get().values()
    }

    fn now_mut(&mut self) -> Option<&mut u64> {
        self.now_ms.as_mut()
    }
}

impl<'a, T: ReadCommand + Definition<'a>> ReadCommand for Indirect<'a, T> {
    fn work(&self) -> usize {
        self.get().work()
    }

    fn read<K: Keys>(&self, keys: &K, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        self.get().read(keys, view, reply)
    }

    fn read_of<D: Databases>(
        &self,
        databases: &D,
        database: Database,
        view: View,
        reply: &mut Vec<u8>,
    ) -> ExecutionResult {
        self.get().read_of(databases, database, view, reply)
    }

    fn work_on<K: Keys>(&self, keys: &K) -> usize {
        self.get().work_on(keys)
    }
}

impl<'a, T: UpdateCommand<'a>> UpdateCommand<'a> for Indirect<'a, T> {
    fn answers_ok(&self) -> bool {
        self.get().answers_ok()
    }

    fn overwrites_one_key(&self) -> bool {
        self.get().overwrites_one_key()
    }

    fn class(&self, blind: bool) -> Class {
        self.get().class(blind)
    }

    fn counts(&self) -> bool {
        self.get().counts()
    }

    fn confirms(&self) -> bool {
        self.get().confirms()
    }

    fn growth(&self, encoded: usize) -> usize {
        self.get().growth(encoded)
    }

    fn work(&self) -> usize {
        self.get().work()
    }

    fn bytes_gone_through<K: Keys>(&self, keys: &K) -> usize {
        self.get().bytes_gone_through(keys)
    }

    fn operand(&self) -> Option<(&'a [u8], Operand<'a>)> {
        self.get().operand()
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        self.get().apply(keys, now_ms, reply)
    }

    fn apply_to<D: DatabasesMut>(
        &self,
        databases: &mut D,
        database: Database,
        now_ms: u64,
        reply: &mut Vec<u8>,
    ) -> ExecutionResult {
        self.get().apply_to(databases, database, now_ms, reply)
    }
}

impl<'a, T: Definition<'a> + fmt::Debug> fmt::Debug for Indirect<'a, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

impl<'a, T: Definition<'a> + PartialEq> PartialEq for Indirect<'a, T> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl<'a, T: Definition<'a> + Eq> Eq for Indirect<'a, T> {}
