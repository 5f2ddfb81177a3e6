//! What members tell each other of how far their logs are durable, apart from PrepareOk: see `direct`.

use syros_types::{Group, Instant, OpNumber, ReplicaId, ReplicaSet};

/// Those that a member tells how far its log is durable.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "model", derive(Hash))]
pub(in crate::replica) struct LogWatchers {
    pub(in crate::replica) members: ReplicaSet,
    /// What they have been told.
    pub(in crate::replica) told: OpNumber,
}

/// What a follower counts commits by.
#[derive(Clone, Debug, Default)]
pub(in crate::replica) struct CommitCount {
    /// The logs of other members are durable up to here, in this view.
    pub(in crate::replica) durable: [OpNumber; Group::SIZE_MAX],
    /// Committed up to here, as this follower has counted by itself.
    pub(in crate::replica) counted: OpNumber,
    /// When it last asked others to tell it how far their logs are durable.
    pub(in crate::replica) asked_at: Option<Instant>,
}

impl CommitCount {
    /// A member's log is durable up to here.
    pub(in crate::replica) fn hear(&mut self, member: ReplicaId, op_number: OpNumber) {
        if let Some(durable) = self.durable.get_mut(member.index()) {
            *durable = op_number.max(*durable);
        }
    }

    /// What a model checker sees.
    #[cfg(feature = "model")]
    pub(in crate::replica) fn fingerprint(&self, hasher: &mut impl core::hash::Hasher) {
        use core::hash::Hash;
        let Self { durable, counted, asked_at } = self;
        (durable, counted, asked_at.is_some()).hash(hasher);
    }
}
