//! What a leader knows of what members have executed.

use crate::message::DigestOf;
use alloc::collections::BTreeMap;
use syros_types::{Group, OpNumber, ReplicaId};

/// Segments whose digests the leader collects at a time: a follower that is further behind is not compared.
const COMPARED_MAX: usize = 16;

/// Digests of them: of each segment there are two.
const DIGESTS_MAX: usize = 2 * COMPARED_MAX;

/// What members have reported of one segment of the log.
pub(in crate::replica) type Reported = [Option<u64>; Group::SIZE_MAX];

/// What a leader knows of what members have executed.
#[derive(Clone, Debug, Default)]
pub(in crate::replica) struct Comparison {
    /// Digests of segments of the log, as members report them.
    reported: BTreeMap<(OpNumber, DigestOf), Reported>,
    /// The last segment of which members have different digests.
    differing: Option<OpNumber>,
}

impl Comparison {
    /// A member has this digest of the segment that ends with this entry, of which the leader has the digest `own`. Gives back
    /// all that is known of it.
    pub(in crate::replica) fn add(
        &mut self,
        segment: (OpNumber, DigestOf),
        member: (ReplicaId, u64),
        own: (ReplicaId, Option<u64>),
    ) -> Reported {
        let reported = self.reported.entry(segment).or_default();
        reported[member.0.index()] = Some(member.1);
        if own.1.is_some() {
            reported[own.0.index()] = own.1;
        }
        let reported = *reported;
        while self.reported.len() > DIGESTS_MAX {
            self.reported.pop_first();
        }
        reported
    }

    /// Members differ in this segment: true if they did in none so late.
    pub(in crate::replica) fn differs_first(&mut self, op_number: OpNumber) -> bool {
        let is_first = self.differing.is_none_or(|last| last < op_number);
        if is_first {
            self.differing = Some(op_number);
        }
        is_first
    }
}
