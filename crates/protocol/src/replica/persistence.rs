//! Which of a replica's records are on disk, and how far its log is.

use super::Durability;
use crate::record::Ticket;
use alloc::collections::VecDeque;
use syros_types::OpNumber;
use syros_types::room::shrink_queue;

/// The records that a replica has emitted, and what of them is on disk.
#[derive(Clone, Debug, Default)]
pub(super) struct Persistence {
    /// The last record that was emitted.
    emitted: Ticket,
    /// Every record up to this one is on disk.
    persisted: Ticket,
    /// The record that makes the current view durable.
    view_ticket: Ticket,
    /// (record, last op number it holds), oldest first, not yet on disk.
    appends: VecDeque<(Ticket, OpNumber)>,
    /// The log is on disk up to here.
    persisted_op: OpNumber,
}

impl Persistence {
    /// The ticket of the next record, which is about to be emitted.
    pub(super) const fn next_ticket(&mut self) -> Ticket {
        self.emitted.0 += 1;
        self.emitted
    }

    /// The last record that was emitted.
    pub(super) const fn last_ticket(&self) -> Ticket {
        self.emitted
    }

    /// The record that makes the current view durable.
    pub(super) const fn view_ticket(&self) -> Ticket {
        self.view_ticket
    }

    /// This record makes the current view durable.
    pub(super) const fn set_view_ticket(&mut self, ticket: Ticket) {
        self.view_ticket = ticket;
    }

    /// True if the current view is on disk.
    pub(super) fn has_view(&self) -> bool {
        self.view_ticket <= self.persisted
    }

    /// The record after which the log and the current view are on disk.
    pub(super) fn log_ticket(&self) -> Ticket {
        self.appends.back().map_or(self.view_ticket, |(ticket, _)| self.view_ticket.max(*ticket))
    }

    /// The first record that holds entries of the log and is not yet on disk.
    pub(super) fn first_append(&self) -> Option<Ticket> {
        self.appends.front().map(|(ticket, _)| *ticket)
    }

    /// The log is on disk up to here.
    pub(super) const fn persisted_op(&self) -> OpNumber {
        self.persisted_op
    }

    /// The last record emitted holds the end of the log.
    pub(super) fn on_append(&mut self, op_number: OpNumber, durability: Durability) {
        match durability {
            Durability::Fsync => self.appends.push_back((self.emitted, op_number)),
            Durability::Replicated => self.persisted_op = op_number,
        }
    }

    /// Every record up to this one is on disk.
    pub(super) fn on_persisted(&mut self, ticket: Ticket) {
        assert!(ticket <= self.emitted, "only what was emitted can be on disk");
        self.persisted = self.persisted.max(ticket);
        while let Some((appended, op_number)) = self.appends.front().copied()
            && appended <= self.persisted
        {
            self.appends.pop_front();
            self.persisted_op = self.persisted_op.max(op_number);
        }
        shrink_queue(&mut self.appends);
    }

    /// The replica starts with a log that is on disk up to here.
    pub(super) const fn restore(&mut self, op_number: OpNumber) {
        self.persisted_op = op_number;
    }

    /// Entries after this one have been removed from the log.
    pub(super) fn truncate(&mut self, last: OpNumber) {
        self.persisted_op = self.persisted_op.min(last);
        for (_, op_number) in &mut self.appends {
            *op_number = (*op_number).min(last);
        }
    }

    /// A snapshot has replaced the log up to `base`; the log ends at `end`.
    pub(super) fn replace(&mut self, base: OpNumber, end: OpNumber) {
        self.persisted_op = self.persisted_op.clamp(base, end);
        for (_, op_number) in &mut self.appends {
            *op_number = (*op_number).clamp(base, end);
        }
    }

    #[cfg(test)]
    pub(super) const fn persisted(&self) -> Ticket {
        self.persisted
    }

    /// What a model checker sees. Tickets only count up: what is still to come decides.
    #[cfg(feature = "model")]
    pub(super) fn fingerprint(&self, hasher: &mut impl core::hash::Hasher) {
        use core::hash::Hash;
        let Self { emitted, persisted, view_ticket, appends, persisted_op } = self;
        (emitted.0 - persisted.0).hash(hasher);
        view_ticket.0.saturating_sub(persisted.0).hash(hasher);
        for (appended, op_number) in appends {
            (appended.0 - persisted.0, op_number).hash(hasher);
        }
        persisted_op.hash(hasher);
    }
}
