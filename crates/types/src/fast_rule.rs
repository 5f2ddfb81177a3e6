//! By what a view counts its fast quorums.

use crate::{FastQuorum, Group, ReplicaId, ReplicaSet, Strength};

/// By what the fast quorums of one view are counted, and the durability logs of that view recovered. All of one view go by
/// the same: the message that starts the view says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FastRule {
    /// Which updates may be fast.
    pub mode: FastQuorum,
    /// The members that keep durability logs, the leader among them: at least `f + 1`, and everybody in all modes but
    /// [`FastQuorum::Mixed`].
    pub active: ReplicaSet,
}

impl FastRule {
    /// The rule of this mode with everybody active.
    #[must_use]
    pub const fn of_all(mode: FastQuorum, group: Group) -> Self {
        Self { mode, active: ReplicaSet::of(group) }
    }

    /// True if a view may go by it that `leader` leads.
    #[must_use]
    pub fn is_possible(self, group: Group, leader: ReplicaId) -> bool {
        let everybody = ReplicaSet::of(group);
        let is_within = self.active.except(everybody).is_empty();
        let suffices = if self.mode.has_active_members() {
            self.active.len() >= group.majority() && self.active.contains(leader)
        } else {
            self.active == everybody
        };
        is_within && suffices
    }

    /// Acknowledgements of active members, the leader's among them, that complete an update.
    #[must_use]
    pub const fn fast_quorum(self, group: Group, strength: Strength) -> usize {
        match (self.mode, strength) {
            (FastQuorum::Majority, _) | (FastQuorum::Mixed, Strength::Overwrite) => group.majority(),
            (FastQuorum::Mixed, Strength::Strong) => self.active.len(),
            _ => group.supermajority(),
        }
    }

    /// How many of `logs` surviving durability logs of active members must hold an update for it to be recovered.
    #[must_use]
    pub const fn recovery_quorum(self, group: Group, strength: Strength, logs: usize) -> usize {
        match (self.mode, strength) {
            (FastQuorum::Majority, _) | (FastQuorum::Mixed, Strength::Overwrite) => 1,
            (FastQuorum::Mixed, Strength::Strong) => logs,
            _ => group.recovery_threshold(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quorums_of_a_rule() {
        let group = Group::new(5).unwrap();
        let active = |members: &[u8]| members.iter().map(|member| ReplicaId(*member)).collect::<ReplicaSet>();
        let rule = FastRule { mode: FastQuorum::Mixed, active: active(&[0, 1, 2, 4]) };
        assert_eq!(rule.fast_quorum(group, Strength::Overwrite), 3);
        assert_eq!(rule.fast_quorum(group, Strength::Strong), 4);
        assert_eq!(rule.recovery_quorum(group, Strength::Overwrite, 2), 1);
        assert_eq!(rule.recovery_quorum(group, Strength::Strong, 2), 2, "every log there is");
        assert!(rule.is_possible(group, ReplicaId(4)));
        assert!(!rule.is_possible(group, ReplicaId(3)), "a leader is active");
        assert!(!FastRule { active: active(&[0, 1]), ..rule }.is_possible(group, ReplicaId(0)));
        assert!(!FastRule { active: active(&[0, 1, 5]), ..rule }.is_possible(group, ReplicaId(0)));
        let majority = FastRule { mode: FastQuorum::Majority, ..rule };
        assert!(!majority.is_possible(group, ReplicaId(0)), "only the mixed mode leaves members out");
        let supermajority = FastRule::of_all(FastQuorum::Supermajority, group);
        assert!(supermajority.is_possible(group, ReplicaId(3)));
        for strength in [Strength::Overwrite, Strength::Strong] {
            assert_eq!(supermajority.fast_quorum(group, strength), 4);
            assert_eq!(supermajority.recovery_quorum(group, strength, 3), 2);
        }
    }
}
