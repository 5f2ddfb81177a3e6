//! Linearizable reads at the leader, under a lease or after a round of heartbeats (read index).
//!
//! A lease is made of the followers' promises: each answer to a message the leader sent at `t`
//! promises that the follower will not change views for one lease duration counted from when it
//! received it, which is not before `t`. The leader counts from `t`, less what clocks may drift.

#[cfg(feature = "model")]
mod fingerprint;

use super::{PlantedBug, Replica};
use crate::message::{Body, Message, Peer, Refusal};
use core::time::Duration;
use syros_types::{Class, Group, Instant, OpNumber, View};

/// A read that cannot be answered yet.
#[derive(Clone, Debug)]
pub(super) struct WaitingRead {
    to: Peer,
    number: u64,
    body: Body,
    /// Leadership must be confirmed as of this moment, unless there is a lease.
    invoked: Instant,
}

impl Replica {
    pub(super) fn on_read(&mut self, from: Peer, view: View, number: u64, body: Body) {
        if !self.accepts_view(from, view) {
            return;
        }
        let view = self.view;
        if !self.is_leader() {
            return self.send(from, Message::WrongView { view });
        }
        let footprint = match (self.config.describe)(&body) {
            Some((Class::Read, footprint)) => footprint,
            _ => {
                self.counters.refused += 1;
                return self.send(from, Message::ReadRefused { view, number, refusal: Refusal::Malformed });
            }
        };
        let pending = !self.planted(PlantedBug::ReadSkipsPending)
            && (self.dlog.overlaps(&footprint) || self.pending.overlaps(&footprint));
        if !pending && self.leadership_is_certain(self.now.instant) {
            self.counters.fast_reads += 1;
            return self.emit_read(from, number, body);
        }
        if self.waiting >= self.config.waiting_max {
            self.counters.refused += 1;
            return self.send(from, Message::ReadRefused { view, number, refusal: Refusal::Overloaded });
        }
        self.counters.slow_reads += 1;
        self.waiting += 1;
        let read = WaitingRead { to: from, number, body, invoked: self.now.instant };
        if pending {
            self.order_all();
            let after = self.log.op_number();
            self.reads_unapplied.entry(after).or_default().push(read);
        } else {
            self.heartbeat_due = true;
            self.reads_unconfirmed.push_back(read);
        }
    }

    /// Leader: the newest moment at which `f` followers had not left the view. `None`: never heard.
    fn confirmed_at(&self) -> Option<Instant> {
        let faults = self.config.group.faults();
        if faults == 0 {
            return Some(Instant::NEVER);
        }
        let mut heard = [None; Group::SIZE_MAX];
        for (index, progress) in self.progress.iter().enumerate() {
            if index != self.config.replica.index() {
                heard[index] = progress.heard;
            }
        }
        heard.sort_unstable_by(|a, b| b.cmp(a));
        heard[faults - 1]
    }

    /// The part of a lease that the leader relies upon.
    fn lease(&self) -> Duration {
        let drift = self.config.lease.as_nanos() as u64 / 1_000_000 * u64::from(self.config.clock_drift_ppm);
        self.config.lease.saturating_sub(Duration::from_nanos(drift))
    }

    /// Leader: nobody else can have become leader before now (with a lease), or had when a read
    /// invoked at `invoked` arrived (by heartbeats answered since).
    fn leadership_is_certain(&self, invoked: Instant) -> bool {
        if self.planted(PlantedBug::ReadWithoutLease) {
            return true;
        }
        self.confirmed_at().is_some_and(|at| at.after(self.lease()) > self.now.instant || at >= invoked)
    }

    /// Entries have been applied: reads that waited for them go on.
    pub(super) fn answer_applied_reads(&mut self) {
        while let Some(entry) = self.reads_unapplied.first_entry()
            && *entry.key() <= self.applied
        {
            for read in entry.remove() {
                if self.leadership_is_certain(read.invoked) {
                    self.waiting -= 1;
                    self.emit_read(read.to, read.number, read.body);
                } else {
                    self.heartbeat_due = true;
                    let place = self.reads_unconfirmed.partition_point(|other| other.invoked <= read.invoked);
                    self.reads_unconfirmed.insert(place, read);
                }
            }
        }
    }

    /// A heartbeat was answered: reads that waited for leadership to be confirmed go on.
    pub(super) fn answer_confirmed_reads(&mut self) {
        while let Some(read) = self.reads_unconfirmed.front()
            && self.leadership_is_certain(read.invoked)
        {
            let Some(read) = self.reads_unconfirmed.pop_front() else { return };
            self.waiting -= 1;
            self.emit_read(read.to, read.number, read.body);
        }
    }

    pub(super) fn forget_reads_of(&mut self, client: Peer) {
        self.reads_unapplied.retain(|_: &OpNumber, reads| {
            reads.retain(|read| read.to != client);
            !reads.is_empty()
        });
        self.reads_unconfirmed.retain(|read| read.to != client);
        self.waiting += self.reads_unconfirmed.len();
        self.waiting += self.reads_unapplied.values().map(alloc::vec::Vec::len).sum::<usize>();
    }

    pub(super) fn forget_all_reads(&mut self) {
        let unapplied = core::mem::take(&mut self.reads_unapplied).into_values().flatten();
        let unconfirmed = core::mem::take(&mut self.reads_unconfirmed);
        for read in unapplied.chain(unconfirmed) {
            self.tell_of_next_view(read.to);
        }
    }
}
