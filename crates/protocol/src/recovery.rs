//! Recovery of the durability log in a view change (Skyros 4.6), with rules of our own.
//!
//! Skyros orders the recovered updates by pairwise majorities between the surviving logs. With five
//! replicas those majorities can form a cycle, and no rule that sees only the logs' order can be
//! right: `syros-lab check recovery --rule paper --replicas 5` prints a counterexample. Here timestamps
//! decide; see `docs/PROTOCOL.md` for the argument.

use crate::message::BodyHash;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use syros_types::{FastRule, Group, OperationId, Strength, Timestamp};

/// What recovery needs to know of an update.
pub trait Recoverable {
    /// Its identity.
    fn id(&self) -> OperationId;
    /// Its timestamp.
    fn timestamp(&self) -> Timestamp;
    /// The hash of its body: one id may have come with several.
    fn body_hash(&self) -> BodyHash;
    /// The hash of the key it overwrites, if it is an overwrite of one key.
    fn overwritten_key(&self) -> Option<u64>;
    /// What recovery goes by.
    fn strength(&self) -> Strength {
        if self.overwritten_key().is_some() { Strength::Overwrite } else { Strength::Strong }
    }
}

/// Selects and orders what is to be executed, from the durability logs of those among the `f + 1`
/// senders that were last normal in the newest view and active in it. Updates already in the log must be
/// left out by the caller. `rule` is that of the newest view:
///
/// - majority mode: the union of the logs; of the updates of one key only the newest survives, the
///   others count as overwritten by it;
/// - supermajority mode: the updates that at least `ceil(f/2) + 1` of the logs hold;
/// - mixed mode: of overwrites of one key the union as in majority mode, of other updates those that all of the logs hold.
///
/// Logs that hold different bodies under one id hold different updates, and only one of them is recovered. A client that
/// keeps to the protocol sends one body under one id, so all who accepted a completed update hold the same body. With
/// supermajorities no other body can be in as many of the `f + 1` logs as recovery asks for. With majorities the body
/// that most logs hold is taken; of a client that sent several bodies, any of them may be the one that takes effect.
///
/// The result is sorted by timestamp. `overwrites(newer, older)` says whether nothing is left of
/// `older` once `newer` has run; hashes of keys only narrow down whom to compare.
#[must_use]
pub fn recover<'a, U: Recoverable>(
    rule: FastRule,
    group: Group,
    logs: &[Vec<&'a U>],
    overwrites: impl Fn(&U, &U) -> bool,
) -> Vec<&'a U> {
    let mut held: BTreeMap<(OperationId, BodyHash), (usize, &'a U)> = BTreeMap::new();
    for log in logs {
        // A log holds an update once; counting it twice would forge a quorum.
        let distinct: BTreeMap<(OperationId, BodyHash), &'a U> =
            log.iter().map(|update| ((update.id(), update.body_hash()), *update)).collect();
        for (key, update) in distinct {
            held.entry(key).or_insert((0, update)).0 += 1;
        }
    }
    let needed = |update: &U| rule.recovery_quorum(group, update.strength(), logs.len());
    let survivors = held.into_values().filter(|(logs, update)| *logs >= needed(update));
    let mut survivors = one_body_of_each_id(survivors);
    survivors.sort_by_key(|update| (update.timestamp(), update.id()));
    if rule.mode.drops_overwritten() {
        survivors = newest_of_each_key(survivors, overwrites);
    }
    survivors
}

/// Leaves one update of each id: the one that most logs hold. `held`: updates and how many logs hold each, in the order of
/// their ids.
fn one_body_of_each_id<'a, U: Recoverable>(held: impl Iterator<Item = (usize, &'a U)>) -> Vec<&'a U> {
    let mut kept: Vec<(usize, &'a U)> = Vec::new();
    for (logs, update) in held {
        match kept.last_mut() {
            Some(last) if last.1.id() == update.id() => {
                if last.0 < logs {
                    *last = (logs, update);
                }
            }
            _ => kept.push((logs, update)),
        }
    }
    kept.into_iter().map(|(_, update)| update).collect()
}

/// Leaves out updates that a newer one overwrites. `updates` is sorted by timestamp, and so is the
/// result.
fn newest_of_each_key<'a, U: Recoverable>(
    updates: Vec<&'a U>,
    overwrites: impl Fn(&U, &U) -> bool,
) -> Vec<&'a U> {
    let mut kept: BTreeMap<u64, Vec<&'a U>> = BTreeMap::new();
    let mut newest_first: Vec<&'a U> = updates.into_iter().rev().collect();
    newest_first.retain(|update| {
        let Some(key) = update.overwritten_key() else { return true };
        let same_hash = kept.entry(key).or_default();
        let survives = !same_hash.iter().any(|newer| overwrites(newer, update));
        if survives {
            same_hash.push(update);
        }
        survives
    });
    newest_first.reverse();
    newest_first
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use syros_types::{FastQuorum, ReplicaId, ReplicaSet, SessionId};

    #[derive(Debug, PartialEq)]
    struct Entry(u64, u64, [u64; 2]);

    impl Recoverable for Entry {
        fn id(&self) -> OperationId {
            OperationId { session: SessionId(1), sequence: self.0 }
        }

        fn body_hash(&self) -> BodyHash {
            BodyHash(self.2[1])
        }
        fn timestamp(&self) -> Timestamp {
            Timestamp { micros: self.1, session: 1 }
        }
        fn overwritten_key(&self) -> Option<u64> {
            Some(self.2[0])
        }
    }

    /// The second number tells keys of one hash apart.
    fn same_key(newer: &Entry, older: &Entry) -> bool {
        newer.2 == older.2
    }

    fn of_all(mode: FastQuorum, group: Group) -> FastRule {
        FastRule::of_all(mode, group)
    }

    fn sequences(recovered: &[&Entry]) -> Vec<u64> {
        recovered.iter().map(|e| e.0).collect()
    }

    #[test]
    fn majority_keeps_the_newest_of_each_key() {
        let (a, b, c) = (Entry(1, 10, [1, 0]), Entry(2, 20, [1, 0]), Entry(3, 5, [2, 0]));
        let group = Group::new(3).unwrap();
        let recovered =
            recover(of_all(FastQuorum::Majority, group), group, &[vec![&a, &c], vec![&b]], same_key);
        assert_eq!(sequences(&recovered), [3, 2]);
    }

    #[test]
    fn keys_that_share_a_hash_do_not_overwrite_each_other() {
        let (a, b, newer) = (Entry(1, 10, [1, 0]), Entry(2, 20, [1, 7]), Entry(3, 30, [1, 7]));
        let group = Group::new(3).unwrap();
        let recovered =
            recover(of_all(FastQuorum::Majority, group), group, &[vec![&a, &b], vec![&newer]], same_key);
        assert_eq!(sequences(&recovered), [1, 3]);
    }

    #[test]
    fn supermajority_needs_enough_logs_and_sorts_by_timestamp() {
        let (a, b, c) = (Entry(1, 10, [1, 0]), Entry(2, 20, [1, 0]), Entry(3, 15, [1, 0]));
        let group = Group::new(5).unwrap();
        // The cyclic surviving logs {ab, bc, ca} of the paper's rule.
        let recovered = recover(
            of_all(FastQuorum::Supermajority, group),
            group,
            &[vec![&a, &b], vec![&b, &c], vec![&c, &a]],
            same_key,
        );
        assert_eq!(sequences(&recovered), [1, 3, 2]);
        // Held once, even if twice in one log: not enough.
        let recovered = recover(
            of_all(FastQuorum::Supermajority, group),
            group,
            &[vec![&a, &a], vec![&b], vec![&b]],
            same_key,
        );
        assert_eq!(sequences(&recovered), [2]);
    }

    #[test]
    fn of_several_bodies_under_one_id_one_is_recovered() {
        let group = Group::new(5).unwrap();
        let (a, b) = (Entry(1, 10, [1, 0]), Entry(1, 10, [1, 7]));
        for logs in [[vec![&a], vec![&b], vec![&b]], [vec![&b], vec![&a], vec![&b]]] {
            for mode in [FastQuorum::Majority, FastQuorum::Supermajority] {
                assert_eq!(
                    recover(of_all(mode, group), group, &logs, same_key),
                    [&b],
                    "the one that more logs hold"
                );
            }
        }
        // Logs that hold different bodies do not make the quorum of either.
        let logs = [vec![&a], vec![&b], vec![]];
        assert!(recover(of_all(FastQuorum::Supermajority, group), group, &logs, same_key).is_empty());
        assert_eq!(recover(of_all(FastQuorum::Majority, group), group, &logs, same_key).len(), 1);
    }

    /// Every way in which five replicas of a supermajority may hold two bodies under one id, or none, and every choice of
    /// logs that recovery may see: a body that is complete is recovered, whatever the others hold.
    #[test]
    fn a_complete_body_is_recovered_whatever_others_hold() {
        let group = Group::new(5).unwrap();
        let mode = FastQuorum::Supermajority;
        let bodies = [Entry(1, 10, [1, 0]), Entry(1, 10, [1, 7])];
        let mut complete = 0;
        for held in 0..3_usize.pow(5) {
            let of = |replica: u32| held / 3_usize.pow(replica) % 3;
            for wanted in [1, 2] {
                // The leader is replica 0.
                let holders = (0..5).filter(|replica| of(*replica) == wanted).count();
                if of(0) != wanted || holders < group.supermajority() {
                    continue;
                }
                complete += 1;
                for senders in (0..1_u32 << 5).filter(|set| set.count_ones() as usize == group.majority()) {
                    let logs: Vec<Vec<&Entry>> = (0..5)
                        .filter(|replica| senders >> replica & 1 == 1)
                        .map(|replica| {
                            of(replica).checked_sub(1).map(|body| &bodies[body]).into_iter().collect()
                        })
                        .collect();
                    assert_eq!(recover(of_all(mode, group), group, &logs, same_key), [&bodies[wanted - 1]]);
                }
            }
        }
        assert!(complete > 0);
    }

    /// Key 0 stands for no overwrite.
    #[derive(Debug, PartialEq)]
    struct Mixed(u64, u64, u64);

    impl Recoverable for Mixed {
        fn id(&self) -> OperationId {
            OperationId { session: SessionId(1), sequence: self.0 }
        }
        fn body_hash(&self) -> BodyHash {
            BodyHash(self.0)
        }
        fn timestamp(&self) -> Timestamp {
            Timestamp { micros: self.1, session: 1 }
        }
        fn overwritten_key(&self) -> Option<u64> {
            (self.2 > 0).then_some(self.2)
        }
    }

    #[test]
    fn mixed_mode_unites_overwrites_and_intersects_the_rest() {
        let group = Group::new(5).unwrap();
        let (old, new, strong, late) = (Mixed(1, 10, 1), Mixed(2, 20, 1), Mixed(3, 15, 0), Mixed(4, 30, 0));
        let active = (0..4).map(ReplicaId).collect::<ReplicaSet>();
        let rule = FastRule { mode: FastQuorum::Mixed, active };
        let recovered = |logs: &[Vec<&Mixed>]| -> Vec<u64> {
            recover(rule, group, logs, |newer, older| newer.2 == older.2).iter().map(|u| u.0).collect()
        };
        assert_eq!(recovered(&[vec![&strong, &old], vec![&new, &strong], vec![&strong, &late]]), [3, 2]);
        assert_eq!(recovered(&[vec![&strong, &late]]), [3, 4], "all there are, if there is one");
        assert_eq!(recovered(&[vec![&strong], vec![&old]]), [1]);
        assert!(recovered(&[]).is_empty());
    }
}
