//! Replicas compare digests of what they have executed. One that differs from a majority says so, and answers no reads.

use super::role::Role;
use super::trace_event::{HandOverReason, TraceEvent};
use super::{PlantedBug, Replica};
use crate::digests::{Digests, SegmentDigests};
use crate::message::{DigestOf, Message, Peer};
use alloc::vec::Vec;
use syros_types::{OpNumber, ReplicaId, View};

impl Replica {
    /// A segment has been executed whole.
    pub(super) fn on_segment(&mut self, op_number: OpNumber, digests: SegmentDigests) {
        for (of, digest) in digests.each() {
            if self.is_leader() {
                self.compare(self.config.replica, (op_number, of), digest);
            } else if self.is_normal() {
                let view = self.view;
                self.send(Peer::Replica(self.leader()), Message::Digest { view, op_number, of, digest });
            }
        }
    }

    pub(super) fn on_digest(
        &mut self,
        from: ReplicaId,
        view: View,
        segment: (OpNumber, DigestOf),
        digest: u64,
    ) {
        if self.is_leader() && view == self.view && segment.0 <= self.log.op_number() {
            self.compare(from, segment, digest);
        }
    }

    /// Leader: a member has this digest of the segment that ends with this entry.
    fn compare(&mut self, member: ReplicaId, segment: (OpNumber, DigestOf), digest: u64) {
        let (op_number, of) = segment;
        let mine = self.digests.of(op_number).map(|digests| digests.of(of));
        let me = self.config.replica;
        let Role::Leader(leader) = &mut self.role else { return };
        let reported = leader.comparison.add(segment, (member, digest), (me, mine));
        let known: Vec<(ReplicaId, u64)> =
            self.config.configuration.members().filter_map(|id| Some((id, reported[id.index()]?))).collect();
        if known.iter().all(|(_, other)| *other == digest) {
            return;
        }
        if leader.comparison.differs_first(op_number) {
            self.counters.divergences += 1;
            self.trace(TraceEvent::Differing { op_number });
        }
        let count = |digest| known.iter().filter(|(_, other)| *other == digest).count();
        let Some((_, right)) =
            known.iter().find(|(_, digest)| count(*digest) >= self.config.configuration.majority())
        else {
            return;
        };
        let view = self.view;
        for (other, _) in known.iter().filter(|(_, digest)| digest != right) {
            if *other == me {
                self.diverge(op_number);
            } else {
                self.send(Peer::Replica(*other), Message::Diverged { view, op_number, of, digest: *right });
            }
        }
    }

    /// Leader: lets another member lead if this one's state is not that of the majority.
    pub(super) fn leave_diverged(&mut self) {
        if self.diverged.is_some() && self.has_led_for_long(self.config.settings.heartbeat) {
            self.step_down(HandOverReason::Diverged);
        }
    }

    /// The state of this replica is now the one after this entry, as another member has sent it or the disk has it.
    pub(super) fn restart_digests(&mut self, base: OpNumber) {
        let length = self.config.settings.digest_entries.max(1);
        let is_part = self.planted(PlantedBug::PartOfSegmentReported);
        let base = if is_part { OpNumber(base.0 / length * length) } else { base };
        self.digests = Digests::after(base, length);
        self.diverged = None;
    }

    /// The leader says that a majority has this digest.
    pub(super) fn on_diverged(
        &mut self,
        from: ReplicaId,
        view: View,
        segment: (OpNumber, DigestOf),
        digest: u64,
    ) {
        let (op_number, of) = segment;
        let is_other = self.digests.of(op_number).is_some_and(|mine| mine.of(of) != digest);
        if self.is_normal() && view == self.view && from == self.leader() && is_other {
            self.diverge(op_number);
        }
    }

    /// This replica's state is not that of the majority: it answers no reads from it, and does not lead for longer than it
    /// must.
    fn diverge(&mut self, op_number: OpNumber) {
        if self.diverged.is_none() {
            self.diverged = Some(op_number);
            self.trace(TraceEvent::Diverged { op_number });
        }
    }
}
