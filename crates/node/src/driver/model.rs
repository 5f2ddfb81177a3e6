//! What a model checker needs of a driver: a copy to try each event on, and a fingerprint to know a state again.
//!
//! The driver of a model has an engine in memory and takes no snapshot. Both are looked at between turns, when all outputs
//! have been taken.

use core::hash::{Hash, Hasher};
use std::collections::VecDeque;

use syros_protocol::fingerprint::Moments;
use syros_storage::Store;
use syros_types::{Now, ReplicaSet, Roster};

use super::{Execution, ReplicaDriver};
use crate::evictions::Evictions;

impl<M: Clone, S: Store, H: Clone> Clone for ReplicaDriver<M, S, H>
where
    M: Send + 'static,
{
    /// # Panics
    /// If the engine is on disk, if there is anything of a snapshot, or if not all outputs have been taken.
    fn clone(&self) -> Self {
        let Execution::InMemory(memory) = &self.execution else {
            panic!("the driver of a model has its engine in memory");
        };
        assert!(self.outputs.is_empty() && self.unappended.is_none(), "a turn takes all outputs");
        Self {
            replica: self.replica.clone(),
            execution: Execution::InMemory(memory.clone()),
            snapshots: self.snapshots.idle_copy().expect("the driver of a model takes no snapshot"),
            held: self.held.clone(),
            outputs: VecDeque::new(),
            unappended: None,
            waited: self.waited.clone(),
            key_events: self.key_events.clone(),
            evictions: Evictions::default(),
            ..*self
        }
    }
}

impl<M: Hash, S: Store, H: Hash> ReplicaDriver<M, S, H>
where
    M: crate::InMemory,
{
    /// Two drivers with the same fingerprint behave alike. Tickets only count up: what is still to come decides.
    pub fn fingerprint(&self, moments: Moments, hasher: &mut impl Hasher) {
        // Each field is named, so that none is forgotten. The others are the same whenever a model looks, or never change.
        let Self {
            replica,
            execution,
            snapshots: _,
            taken_bytes: _,
            durable,
            told_durable,
            held,
            outputs: _,
            unappended: _,
            appended,
            is_log_closed,
            lost,
            disk_room: _,
            snapshot_room: _,
            memory_limit: _,
            memory_room,
            evictions: _,
            waited: _,
            key_events: _,
            seen: _,
            #[cfg(feature = "planted-bugs")]
                planted: _,
        } = self;
        replica.fingerprint(moments, hasher);
        if let Execution::InMemory(memory) = execution {
            memory.fingerprint(hasher);
        }
        (durable.0 - told_durable.0).hash(hasher);
        appended.0.saturating_sub(durable.0).hash(hasher);
        lost.0.saturating_sub(appended.0).hash(hasher);
        for (after, held) in held.iter() {
            (after.0.saturating_sub(durable.0), held).hash(hasher);
        }
        (is_log_closed, memory_room).hash(hasher);
    }

    /// True if records are durable of which the core has not been told.
    #[must_use]
    pub fn has_news(&self) -> bool {
        self.durable > self.told_durable
    }

    /// Has these nodes become the members, if this replica leads.
    pub fn replace_members(&mut self, now: Now, roster: Roster) {
        self.replica.replace_members(now, roster);
    }

    /// The core leads, and wants these members to be active.
    pub fn want_active_members(&mut self, now: Now, active: ReplicaSet) {
        self.replica.want_active_members(now, active);
    }
}
