//! What a connection has queued since MULTI: the operations of one body, and what the connection answers by itself.

use crate::limits::{
    TRANSACTION_COMMANDS_MAX, TRANSACTION_KEYS_MAX, TRANSACTION_NODE_COMMANDS_MAX, TRANSACTION_WORK_MAX,
};
use crate::schedule::Load;
use core::fmt;
use syros_commands::limits::{
    SCRIPT_FUEL, SCRIPTS_FUEL_MAX, SCRIPTS_PER_BODY_MAX, WHOLE_KEYSPACE_OPERATIONS_MAX,
};
use syros_commands::{ConnectionCommand, Operation, parse_database};
use syros_types::Database;
use syros_types::limits::BODY_BYTES_MAX;

/// One command of a transaction.
#[derive(Debug)]
pub(crate) struct Queued {
    /// Its number in the table of commands.
    pub(crate) number: usize,
    pub(crate) kind: QueuedKind,
}

/// Who answers a command of a transaction.
#[derive(Debug)]
pub(crate) enum QueuedKind {
    /// Whoever executes the body. The client has given up the count that it would be told.
    Operation { gives_up_count: bool },
    /// The connection, when the transaction is executed: its words.
    Local(ConnectionCommand, Vec<Vec<u8>>),
    /// The connection, with this error: Redis finds it out only when it executes the transaction.
    Error(Vec<u8>),
}

/// The commands of a transaction, so far.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// Its operations, encoded.
    pub(crate) body: Vec<u8>,
    pub(crate) commands: Vec<Queued>,
    pub(crate) load: Load,
    /// The database that the next operation is executed in.
    pub(crate) database: Database,
    /// Keys that its operations name, and keys that are watched.
    keys: usize,
    /// Bytes that the watched keys take.
    watched_bytes: usize,
    /// Operations on all keys, without scripts.
    of_all_keys: usize,
    /// Scripts and functions.
    scripts: usize,
    /// Commands that the connection answers by itself, and not at once.
    pub(crate) of_node: usize,
    /// Bytes of what the connection answers by itself.
    local_bytes: usize,
    /// What the users were when it was begun.
    pub(crate) users_epoch: u64,
    /// The words of those commands that the user had to have a right for, which it is asked for once more at EXEC.
    pub(crate) checked: Vec<Vec<Vec<u8>>>,
    /// Bytes that those words take.
    checked_bytes: usize,
    /// One of them changes users.
    pub(crate) changes_users: bool,
    /// A command was refused: EXEC will execute none of them.
    pub(crate) is_doomed: bool,
}

/// Why a command does not fit into a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransactionTooLarge {
    Commands,
    Bytes(usize),
    Keys,
    WholeKeyspace,
    Scripts,
    NodeCommands,
    Work,
}

impl fmt::Display for TransactionTooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Commands => {
                write!(f, "ERR a transaction has at most {TRANSACTION_COMMANDS_MAX} commands")
            }
            Self::Bytes(bytes) => {
                write!(f, "ERR transaction of {bytes} bytes exceeds the maximum of {BODY_BYTES_MAX}")
            }
            Self::Keys => write!(f, "ERR a transaction names at most {TRANSACTION_KEYS_MAX} keys"),
            Self::WholeKeyspace => {
                let max = WHOLE_KEYSPACE_OPERATIONS_MAX;
                write!(f, "ERR a transaction has at most {max} commands on all keys")
            }
            Self::Scripts => write!(f, "ERR a transaction has at most {SCRIPTS_PER_BODY_MAX} scripts"),
            Self::NodeCommands => {
                let max = TRANSACTION_NODE_COMMANDS_MAX;
                write!(f, "ERR a transaction has at most {max} commands about its node, such as INFO")
            }
            Self::Work => f.write_str("ERR the transaction would take too long to execute"),
        }
    }
}

impl Queue {
    /// Bytes of memory that it takes.
    pub(crate) const fn memory_bytes(&self) -> usize {
        self.body.capacity()
            + self.local_bytes
            + self.checked_bytes
            + self.commands.capacity() * size_of::<Queued>()
    }

    /// A transaction that begins in this database and depends on so many keys, which take so many bytes.
    pub(crate) fn watching(database: Database, keys: usize, bytes: usize) -> Self {
        Self { database, keys, watched_bytes: bytes, ..Self::default() }
    }

    /// Keeps the words of the next command until EXEC.
    pub(crate) fn keep_words(&mut self, words: &[&[u8]]) {
        let words: Vec<Vec<u8>> = words.iter().map(|word| word.to_vec()).collect();
        self.checked_bytes += words.iter().map(|word| word.len() + size_of::<Vec<u8>>()).sum::<usize>();
        self.checked.push(words);
    }

    /// A command was refused. What was queued is never executed, so it need not be kept.
    pub(crate) fn doom(&mut self) {
        *self = Self { is_doomed: true, ..Self::default() };
    }

    /// Adds a command on data.
    ///
    /// # Errors
    /// If the transaction would exceed a limit; it must not be executed any more then.
    pub(crate) fn add(
        &mut self,
        number: usize,
        operation: &Operation<'_>,
        gives_up_count: bool,
    ) -> Result<(), TransactionTooLarge> {
        let blind = operation.blind || gives_up_count;
        let operation = Operation { blind, ..*operation }.in_database(self.database);
        operation.encode(&mut self.body);
        self.changes_users |= operation.changes_users();
        self.load.add(&operation);
        operation.each_key(|_| self.keys += 1);
        if operation.fuel().is_some() {
            self.scripts += 1;
        } else {
            self.of_all_keys += usize::from(operation.concerns_all_keys());
        }
        self.push(number, QueuedKind::Operation { gives_up_count })?;
        if self.keys > TRANSACTION_KEYS_MAX {
            Err(TransactionTooLarge::Keys)
        } else if self.of_all_keys > WHOLE_KEYSPACE_OPERATIONS_MAX {
            Err(TransactionTooLarge::WholeKeyspace)
        } else if self.scripts > SCRIPTS_PER_BODY_MAX {
            Err(TransactionTooLarge::Scripts)
        } else if self.load.work > TRANSACTION_WORK_MAX {
            Err(TransactionTooLarge::Work)
        } else {
            Ok(())
        }
    }

    /// Nothing more comes: scripts that together could use more fuel than one body may get equal shares of it.
    pub(crate) fn share_fuel(&mut self) {
        let share = SCRIPTS_FUEL_MAX / self.scripts.max(1) as u64;
        if share >= SCRIPT_FUEL {
            return;
        }
        let mut body = Vec::with_capacity(self.body.len());
        // The limit of all scripts does not hold yet, so operations are decoded one by one.
        let mut rest = self.body.as_slice();
        while let Ok(mut operation) = Operation::decode(&mut rest) {
            operation.limit_fuel(share);
            operation.encode(&mut body);
        }
        debug_assert!(rest.is_empty(), "what was encoded here is decoded");
        self.body = body;
    }

    /// Adds a command that the connection answers by itself.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub(crate) fn add_local(
        &mut self,
        number: usize,
        command: ConnectionCommand,
        words: &[&[u8]],
    ) -> Result<(), TransactionTooLarge> {
        if command == ConnectionCommand::Select
            && let Some(Ok(database)) = words.get(1).map(|word| parse_database(word))
        {
            self.database = database;
        }
        let words: Vec<Vec<u8>> = words.iter().map(|word| word.to_vec()).collect();
        self.local_bytes += words.iter().map(|word| word.len() + size_of::<Vec<u8>>()).sum::<usize>();
        self.of_node += usize::from(is_about_node(command));
        self.push(number, QueuedKind::Local(command, words))?;
        if self.of_node > TRANSACTION_NODE_COMMANDS_MAX {
            Err(TransactionTooLarge::NodeCommands)
        } else {
            Ok(())
        }
    }

    /// Adds a command that will be answered with this error.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub(crate) fn add_error(&mut self, number: usize, text: Vec<u8>) -> Result<(), TransactionTooLarge> {
        self.local_bytes += text.len();
        self.push(number, QueuedKind::Error(text))
    }

    fn push(&mut self, number: usize, kind: QueuedKind) -> Result<(), TransactionTooLarge> {
        self.commands.push(Queued { number, kind });
        let bytes = self.watched_bytes + self.body.len() + self.local_bytes;
        if self.commands.len() > TRANSACTION_COMMANDS_MAX {
            Err(TransactionTooLarge::Commands)
        } else if bytes > BODY_BYTES_MAX {
            Err(TransactionTooLarge::Bytes(bytes))
        } else {
            Ok(())
        }
    }
}

/// True for commands whose answers have to be put together from what the node knows of itself, its settings or its commands.
/// The others take a microsecond or a few.
pub(crate) const fn is_about_node(command: ConnectionCommand) -> bool {
    use ConnectionCommand::{
        Auth, Client, Echo, Hello, Ping, Publish, SPublish, Select, Time, Unwatch, Wait, WaitAof,
    };
    !matches!(
        command,
        Auth | Client | Echo | Hello | Ping | Publish | SPublish | Select | Time | Unwatch | Wait | WaitAof
    )
}
