//! A replica's state as its write-ahead log tells it.

use super::Config;
use crate::log::Log;
use crate::message::{Describe, LogEntry, Payload, Prepared, Request, Update};
use crate::record::{Record, describe};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt;
use syros_types::{OpNumber, OperationId, View};

/// A record that cannot follow those before it: the write-ahead log is not this replica's, or damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidRecord {
    /// Entries that do not connect to the log.
    Gap {
        /// The log ends here.
        op_number: OpNumber,
        /// The record's entries begin here.
        first: OpNumber,
    },
    /// A reference to an update that no record holds.
    MissingBody(OperationId),
    /// The bytes of an update are no operation.
    Malformed(OperationId),
    /// A view before the one already reached.
    ViewWentBack {
        /// Reached before.
        view: View,
        /// In the record.
        record: View,
    },
}

impl fmt::Display for InvalidRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gap { op_number, first } => {
                write!(f, "entries from {} cannot follow a log that ends at {}", first.0, op_number.0)
            }
            Self::MissingBody(id) => write!(f, "update {id} is referred to and not there"),
            Self::Malformed(id) => write!(f, "update {id} is no operation"),
            Self::ViewWentBack { view, record } => {
                write!(f, "view {} after view {}", record.0, view.0)
            }
        }
    }
}

impl core::error::Error for InvalidRecord {}

/// State rebuilt record by record; boots a replica through [`Boot::Restored`](super::Boot::Restored).
#[derive(Clone, Debug)]
pub struct Restored {
    describe: Describe,
    view: View,
    last_normal: View,
    commit: OpNumber,
    log: Log,
    /// Accepted updates that are not in the log, by order of arrival.
    dlog: BTreeMap<u64, Request>,
    arrivals: BTreeMap<OperationId, u64>,
    arrived: u64,
    records: u64,
}

impl Restored {
    /// Nothing yet.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self {
            describe: config.describe,
            view: View(0),
            last_normal: View(0),
            commit: OpNumber(0),
            log: Log::new(),
            dlog: BTreeMap::new(),
            arrivals: BTreeMap::new(),
            arrived: 0,
            records: 0,
        }
    }

    /// The newest view the replica may have acted in.
    #[must_use]
    pub const fn view(&self) -> View {
        self.view
    }

    /// The last op number in the log.
    #[must_use]
    pub const fn op_number(&self) -> OpNumber {
        self.log.op_number()
    }

    /// True if there was no record: the replica never acted.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Takes in the next record.
    ///
    /// # Errors
    /// [`InvalidRecord`] if it cannot follow those before it.
    pub fn replay(&mut self, record: Record) -> Result<(), InvalidRecord> {
        self.records += 1;
        match record {
            Record::View { view, last_normal } => {
                self.reach(view)?;
                self.last_normal = self.last_normal.max(last_normal);
            }
            Record::Accept(request) => self.accept(request),
            Record::Append { first, view, time, commit, entries } => {
                if first != self.log.op_number().next() {
                    return Err(InvalidRecord::Gap { op_number: self.log.op_number(), first });
                }
                for prepared in entries {
                    let payload = self.payload(prepared)?;
                    self.log.append(LogEntry { view, time, payload });
                }
                self.commit = self.commit.max(commit.min(self.log.op_number()));
            }
            Record::Transfer { base, entries } => self.replace(base, entries)?,
            Record::EnterView { view, base, commit, suffix } => {
                self.reach(view)?;
                self.replace(base, suffix)?;
                self.last_normal = view;
                self.commit = self.commit.max(commit.min(self.log.op_number()));
                self.dlog.clear();
                self.arrivals.clear();
            }
        }
        Ok(())
    }

    fn reach(&mut self, record: View) -> Result<(), InvalidRecord> {
        if record < self.view {
            return Err(InvalidRecord::ViewWentBack { view: self.view, record });
        }
        self.view = record;
        Ok(())
    }

    fn accept(&mut self, request: Request) {
        self.arrived += 1;
        self.arrivals.insert(request.id, self.arrived);
        self.dlog.insert(self.arrived, request);
    }

    fn forget(&mut self, id: OperationId) -> Option<Request> {
        self.dlog.remove(&self.arrivals.remove(&id)?)
    }

    fn payload(&mut self, prepared: Prepared) -> Result<Payload, InvalidRecord> {
        Ok(match prepared {
            Prepared::Reference(id) => {
                let request = self.forget(id).ok_or(InvalidRecord::MissingBody(id))?;
                Payload::Update(self.described(request)?)
            }
            Prepared::Full(request) => {
                self.forget(request.id);
                Payload::Update(self.described(request)?)
            }
            Prepared::Register { nonce } => Payload::Register { nonce },
            Prepared::Expire(ids) => Payload::Expire(ids),
            Prepared::Tick => Payload::Tick,
        })
    }

    fn described(&self, request: Request) -> Result<Update, InvalidRecord> {
        let id = request.id;
        describe(self.describe, request).ok_or(InvalidRecord::Malformed(id))
    }

    fn replace(&mut self, base: OpNumber, entries: Vec<LogEntry>) -> Result<(), InvalidRecord> {
        if base > self.log.op_number() || base < self.commit {
            return Err(InvalidRecord::Gap { op_number: self.log.op_number(), first: base.next() });
        }
        while self.log.op_number() > base {
            self.log.pop();
        }
        for entry in entries {
            for update in entry.updates() {
                self.forget(update.request.id);
            }
            self.log.append(entry);
        }
        Ok(())
    }

    pub(super) fn into_parts(self) -> (View, View, OpNumber, Log, Vec<Request>) {
        (self.view, self.last_normal, self.commit, self.log, self.dlog.into_values().collect())
    }
}
