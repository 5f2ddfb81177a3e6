//! Whether a node ends because others say that it is not of their cluster.

use syros_types::{Group, ReplicaSet};

/// Who says that this node is not of the cluster, and who takes it for a member.
#[derive(Clone, Copy)]
pub(super) struct Witnesses {
    /// Members that know another node in the position of this one, or none.
    pub(super) disowned_by: ReplicaSet,
    /// Those of them that act in a later configuration than this node knows.
    pub(super) left_out_by: ReplicaSet,
    /// Members that are connected.
    pub(super) connected: ReplicaSet,
}

impl Witnesses {
    /// True if this node is of no use any more, in a group of the size `ours` as far as it knows, after what a member has said
    /// that acts in a later configuration of the size `later`, or in one that is not later.
    pub(super) fn are_enough(self, ours: Group, later: Option<Group>) -> bool {
        // With the others there is no majority of the group that this node knows.
        if self.disowned_by.len() > ours.faults() {
            return true;
        }
        // The group may have shrunk to fewer members than that. Then a majority of those that it has now say so; nobody else is
        // left to. But a node that reaches a majority of its group is of use, whoever says something else: what a member says that
        // refuses this node, it does not prove.
        let reaches_majority = self.connected.len() + 1 >= ours.majority();
        !reaches_majority
            && later
                .is_some_and(|later| self.left_out_by.within(ReplicaSet::of(later)).len() >= later.majority())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syros_types::ReplicaId;

    fn group(size: usize) -> Group {
        Group::new(size).unwrap()
    }

    fn set(members: &[u8]) -> ReplicaSet {
        members.iter().map(|member| ReplicaId(*member)).fold(ReplicaSet::default(), ReplicaSet::with)
    }

    /// What these say who act in a later configuration, while those are connected.
    fn said(left_out_by: &[u8], connected: &[u8]) -> Witnesses {
        let left_out_by = set(left_out_by);
        Witnesses { disowned_by: left_out_by, left_out_by, connected: set(connected) }
    }

    #[test]
    fn a_majority_of_those_that_a_group_has_shrunk_to_is_enough() {
        assert!(said(&[0], &[]).are_enough(group(3), Some(group(1))), "there is nobody else to say so");
        assert!(!said(&[0], &[]).are_enough(group(5), Some(group(3))));
        assert!(said(&[0, 2], &[]).are_enough(group(5), Some(group(3))));
        assert!(!said(&[0, 3], &[]).are_enough(group(5), Some(group(3))), "one of them is none of the three");
        assert!(said(&[0], &[4]).are_enough(group(5), Some(group(1))), "two of five are of no use");
    }

    #[test]
    fn a_node_that_reaches_a_majority_does_not_believe_a_few() {
        assert!(!said(&[0], &[1]).are_enough(group(3), Some(group(1))));
        assert!(!said(&[0, 1], &[2, 3]).are_enough(group(5), Some(group(3))));
        // With the others there is no majority.
        assert!(said(&[0, 1], &[2]).are_enough(group(3), Some(group(3))));
    }

    #[test]
    fn those_that_act_in_no_later_configuration_have_to_be_more_than_may_fail() {
        let known_otherwise = |by: &[u8]| Witnesses {
            disowned_by: set(by),
            left_out_by: ReplicaSet::default(),
            connected: ReplicaSet::default(),
        };
        assert!(!known_otherwise(&[0]).are_enough(group(3), None));
        assert!(known_otherwise(&[0, 1]).are_enough(group(3), None));
        // That one knows another node here does not help one that says that there is none.
        let mixed =
            Witnesses { disowned_by: set(&[0, 1]), left_out_by: set(&[1]), connected: ReplicaSet::default() };
        assert!(!mixed.are_enough(group(5), Some(group(3))));
    }
}
