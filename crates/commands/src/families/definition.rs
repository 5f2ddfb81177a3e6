//! What the file of an operation has to say: a [`Definition`], and a [`ReadCommand`] or an [`UpdateCommand`].

use super::specification::CommandSpec;
use crate::access::{Databases, DatabasesMut, Keys, KeysMut, Operand};
use crate::arguments::Arguments;
use crate::encoding::Encoding;
use crate::error::ExecutionError;
use syros_types::{Class, Database, WallTime};

/// What a key takes beside its name and its value, about.
pub(crate) const KEY_BYTES: usize = 64;

/// The longest decimal of a floating point number, about.
pub(crate) const DECIMAL_BYTES: usize = 5_000;

/// The work of adding floating point numbers: what the longest number takes, of some thousand digits, is as long as to
/// fill so many bytes.
pub(crate) const DECIMAL_WORK: usize = 64 << 10;

/// The work of going through collections whose lengths only their keys know: most are short.
pub(crate) const COLLECTION_WORK: usize = 64 << 10;

/// The work of making a collection of others whose lengths only their keys know: so much that it is packed with no other one
/// of its kind. (A pack is executed as a whole. Sixteen ZUNIONSTOREs of some hundred thousand members take ten seconds.)
pub(crate) const RESULT_WORK: usize = 1 << 20;

/// The work of going through a string whose length only its key knows. Most are short; sixteen such commands in a pack keep
/// others waiting for some ten milliseconds if all go through one of the longest.
pub(crate) const VALUE_WORK: usize = 64 << 10;

/// An operation on data: which commands it is, and which keys it touches. [`Encoding`] has its bytes.
pub(crate) trait Definition<'a>: Encoding<'a> {
    /// The rows of the commands that become this operation.
    const SPECS: &'static [CommandSpec];

    /// The keys that it names.
    fn keys(&self) -> KeyNames<'a>;

    /// How many values its reply may hold.
    fn values(&self) -> u32 {
        0
    }

    /// See [`Operation::now_mut`](crate::Operation::now_mut). Only an update has a time.
    fn now_mut(&mut self) -> Option<&mut u64> {
        None
    }
}

/// An operation that changes nothing.
pub(crate) trait ReadCommand {
    /// See [`Operation::work`](crate::Operation::work).
    fn work(&self) -> usize {
        0
    }

    /// Executes it and appends its reply.
    ///
    /// # Errors
    /// [`ExecutionError`]; what was added to `reply` is then to be dropped.
    fn read<K: Keys>(&self, keys: &K, view: View, reply: &mut Vec<u8>) -> ExecutionResult;

    /// Executes it on one of all databases: what concerns more than its keys overrides this.
    ///
    /// # Errors
    /// As [`ReadCommand::read`].
    #[inline]
    fn read_of<D: Databases>(
        &self,
        databases: &D,
        database: Database,
        view: View,
        reply: &mut Vec<u8>,
    ) -> ExecutionResult {
        self.read(databases.database(database), view, reply)
    }

    /// See [`Operation::work_on`](crate::Operation::work_on). Must not take long itself.
    fn work_on<K: Keys>(&self, _keys: &K) -> usize {
        0
    }
}

/// An operation that may change something.
pub(crate) trait UpdateCommand<'a>: Definition<'a> {
    /// See [`Operation::bytes_gone_through`](crate::Operation::bytes_gone_through), of what does not go through whole values.
    fn bytes_gone_through<K: Keys>(&self, _keys: &K) -> usize {
        0
    }

    /// True if its reply is OK whatever the state is.
    fn answers_ok(&self) -> bool {
        false
    }

    /// True if the new state of the one key that it names is known from the operation alone.
    fn overwrites_one_key(&self) -> bool {
        false
    }

    /// See [`Operation::class`](crate::Operation::class). It follows from the two methods above.
    #[inline]
    fn class(&self, blind: bool) -> Class {
        if !blind && !self.answers_ok() {
            Class::Update
        } else if self.overwrites_one_key() {
            Class::Overwrite
        } else {
            Class::Merge
        }
    }

    /// See [`Operation::counts`](crate::Operation::counts).
    fn counts(&self) -> bool {
        false
    }

    /// See [`Operation::confirms`](crate::Operation::confirms).
    fn confirms(&self) -> bool {
        false
    }

    /// See [`Operation::growth`](crate::Operation::growth).
    fn growth(&self, _encoded: usize) -> usize {
        0
    }

    /// See [`Operation::work`](crate::Operation::work).
    fn work(&self) -> usize {
        0
    }

    /// See [`Operation::seed_mut`](crate::Operation::seed_mut).
    fn seed_mut(&mut self) -> Option<&mut u64> {
        None
    }

    /// What it does with which key, if an engine can do that without reading the old value.
    fn operand(&self) -> Option<(&'a [u8], Operand<'a>)> {
        None
    }

    /// Executes it at log time `now_ms` and appends its reply.
    ///
    /// # Errors
    /// [`ExecutionError`]; nothing has changed then, and what was added to `reply` is to be dropped.
    fn apply<K: KeysMut>(&self, keys: &mut K, now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult;

    /// Executes it at log time `now_ms` in this database, and appends its reply: [`UpdateCommand::apply`], unless it
    /// concerns more than that database.
    ///
    /// # Errors
    /// As [`UpdateCommand::apply`].
    #[inline]
    fn apply_to<D: DatabasesMut>(
        &self,
        databases: &mut D,
        database: Database,
        now_ms: u64,
        reply: &mut Vec<u8>,
    ) -> ExecutionResult {
        self.apply(databases.database_mut(database), now_ms, reply)
    }
}

/// What a read sees besides the keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    /// What TTL counts from.
    pub(crate) now: WallTime,
    /// What RANDOMKEY and its like draw from.
    pub(crate) draw: u64,
    /// It is a read, which may show what this member knows: how its keys are used, and how much memory they take. What every
    /// member executes has to answer everywhere the same, and a script may keep the answer.
    pub(crate) is_of_member: bool,
    /// How long the reply buffer may become.
    pub(crate) reply_end: usize,
}

pub(crate) type ExecutionResult = Result<(), ExecutionError>;

/// The keys that an operation names.
#[derive(Clone, Copy)]
pub(crate) enum KeyNames<'a> {
    /// One.
    One(&'a [u8]),
    /// Two, which may be the same.
    Two(&'a [u8], &'a [u8]),
    /// One, and all of a list, which may have it too.
    OneAndAll(&'a [u8], Arguments<'a>),
    /// Every `step`-th string of the list, from the first.
    Every {
        /// At least `step` strings.
        list: Arguments<'a>,
        step: usize,
    },
    /// Two: one in the operation's database, and one in another, which may be the same.
    Across {
        /// In the operation's database.
        from: &'a [u8],
        /// In the other one.
        to: &'a [u8],
        database: Database,
    },
    /// All of a list, which may have none, each looked at any number of times: those that a script declares.
    Declared(Arguments<'a>),
    /// None: it concerns all keys there are.
    All,
}

impl<'a> KeyNames<'a> {
    /// The key, if there is exactly one, once.
    #[inline]
    pub(crate) fn single(&self) -> Option<&'a [u8]> {
        match *self {
            Self::One(key) => Some(key),
            Self::Every { list, step } if list.len() == step => list.iter().next(),
            Self::Every { .. }
            | Self::Two(..)
            | Self::OneAndAll(..)
            | Self::Across { .. }
            | Self::Declared(_)
            | Self::All => None,
        }
    }

    /// How many are named.
    pub(crate) const fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Two(..) | Self::Across { .. } => 2,
            Self::OneAndAll(_, list) => 1 + list.len(),
            Self::Every { list, step } => list.len() / *step,
            Self::Declared(list) => list.len(),
            Self::All => 0,
        }
    }

    /// Visits those that are named, in whichever database.
    #[inline]
    pub(crate) fn each(&self, mut visit: impl FnMut(&'a [u8])) {
        match *self {
            Self::One(key) => visit(key),
            Self::Two(first, second) | Self::Across { from: first, to: second, .. } => {
                visit(first);
                visit(second);
            }
            Self::OneAndAll(key, list) => {
                visit(key);
                list.iter().for_each(visit);
            }
            Self::Every { list, step } => list.iter().step_by(step).for_each(visit),
            Self::Declared(list) => list.iter().for_each(visit),
            Self::All => {}
        }
    }
}
