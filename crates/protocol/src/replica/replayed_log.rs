//! The log as records of the write-ahead log tell it: what [`Restored`](super::Restored) and [`LogScan`](super::LogScan) have in
//! common.

use super::invalid_record::InvalidRecord;
use crate::log::Log;
use crate::message::{Describe, LogEntry, Payload, Prepared, Request, Update};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use syros_types::{OpNumber, OperationId, View, WallTime};

/// The log, and the updates whose bodies its entries may refer to.
#[derive(Clone, Debug)]
pub(super) struct ReplayedLog {
    describe: Describe,
    pub(super) log: Log,
    /// Everything up to here is committed.
    pub(super) commit: OpNumber,
    /// Accepted updates that are not in the log, by order of arrival.
    dlog: BTreeMap<u64, Request>,
    arrivals: BTreeMap<OperationId, u64>,
    arrived: u64,
}

impl ReplayedLog {
    pub(super) const fn new(describe: Describe) -> Self {
        Self {
            describe,
            log: Log::new(),
            commit: OpNumber(0),
            dlog: BTreeMap::new(),
            arrivals: BTreeMap::new(),
            arrived: 0,
        }
    }

    /// The log begins behind this entry, and has no more.
    pub(super) fn begin_after(&mut self, base: OpNumber, view: View, time: WallTime) {
        self.log = Log::after(base, view, time);
    }

    pub(super) fn accept(&mut self, request: Request) {
        self.arrived += 1;
        self.arrivals.insert(request.id, self.arrived);
        self.dlog.insert(self.arrived, request);
    }

    pub(super) fn forget(&mut self, id: OperationId) -> Option<Request> {
        self.dlog.remove(&self.arrivals.remove(&id)?)
    }

    /// Nothing is in the durability log.
    pub(super) fn clear_dlog(&mut self) {
        self.dlog.clear();
        self.arrivals.clear();
    }

    /// What is committed, the log, and the durability log.
    pub(super) fn into_parts(self) -> (OpNumber, Log, Vec<Request>) {
        (self.commit, self.log, self.dlog.into_values().collect())
    }

    /// Appends an entry.
    pub(super) fn append(&mut self, entry: LogEntry) -> Result<(), InvalidRecord> {
        let op_number = self.log.op_number();
        if self.log.view_at(op_number) > Some(entry.view) || self.log.last_time() > entry.time {
            return Err(InvalidRecord::Backwards { op_number });
        }
        self.log.append(entry);
        Ok(())
    }

    /// What follows has to be the entry with this number.
    pub(super) const fn check_next(&self, first: OpNumber) -> Result<(), InvalidRecord> {
        if first.0 != self.log.op_number().next().0 {
            return Err(InvalidRecord::Gap { op_number: self.log.op_number(), first });
        }
        Ok(())
    }

    /// Everything that the log holds up to this entry is committed.
    pub(super) fn commit_up_to(&mut self, commit: OpNumber) {
        self.commit = self.commit.max(commit.min(self.log.op_number()));
    }

    /// The entry that a record names.
    pub(super) fn payload(&mut self, prepared: Prepared) -> Result<Payload, InvalidRecord> {
        Ok(match prepared {
            Prepared::Reference { id, body_hash: _ } => {
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
            Prepared::Reconfigure(next) => Payload::Reconfigure(next),
        })
    }

    fn described(&self, request: Request) -> Result<Update, InvalidRecord> {
        let id = request.id;
        Update::describe(self.describe, request).ok_or(InvalidRecord::Malformed(id))
    }

    /// These entries take the place of all that follows `base`.
    pub(super) fn replace(&mut self, base: OpNumber, entries: Vec<LogEntry>) -> Result<(), InvalidRecord> {
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
            self.append(entry)?;
        }
        Ok(())
    }
}
