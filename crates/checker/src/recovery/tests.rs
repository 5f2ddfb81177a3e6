//! The right rules pass, and each wrong one is caught.

use super::*;

fn run(n: usize, operations: usize, mode: FastQuorum, conflict_check: bool, rule: Rule<'_>) -> Enumeration {
    let group = Group::new(n).unwrap();
    enumerate(Settings { group, operations, mode, conflict_check }, rule, &mut |_| {})
}

fn counted(logs: &[Vec<Entry>], threshold: usize) -> Vec<u8> {
    let held = |op: u8| logs.iter().filter(|log| log.iter().any(|e| e.operation == op)).count();
    (0..OPERATIONS_MAX as u8).filter(|op| held(*op) >= threshold).collect()
}

#[test]
fn partial_orders_and_logs_are_all_there() {
    // Labelled interval orders on 1 to 4 points (OEIS A079144), ordered subsets of 3.
    assert_eq!((1..=4).map(|k| real_time_orders(k).len()).collect::<Vec<_>>(), [1, 3, 19, 207]);
    assert_eq!(possible_logs(3, false).len(), 16);
    assert_eq!(possible_logs(3, true).len(), 8);
    let mut multisets = 0;
    for_each_multiset(16, 4, &mut |_| multisets += 1);
    assert_eq!(multisets, 3876);
}

#[test]
fn the_rules_used_are_right() {
    for (n, operations) in [(3, 4), (5, 3), (7, 3)] {
        let found = run(n, operations, FastQuorum::Majority, true, &majority);
        assert_eq!((found.violations, found.counterexample), (0, None), "majority, n={n}");
        assert!(found.configurations > 1000);
        let found = run(n, operations, FastQuorum::Supermajority, true, &supermajority);
        assert_eq!((found.violations, found.counterexample), (0, None), "supermajority, n={n}");
        assert!(found.configurations > 1000);
    }
}

#[test]
fn the_papers_rule_fails_with_five_replicas_and_not_with_three() {
    let found = run(3, 3, FastQuorum::Supermajority, false, &paper);
    assert_eq!((found.violations, found.counterexample), (0, None));
    let found = run(5, 3, FastQuorum::Supermajority, false, &paper);
    assert!(found.violations > 0);
    assert!(found.counterexample.is_some_and(|text| text.contains("is executed after it")));
}

#[test]
fn without_the_conflict_check_timestamps_decide_wrongly() {
    for n in [3, 5] {
        assert!(run(n, 2, FastQuorum::Supermajority, false, &supermajority).violations > 0);
        assert!(run(n, 2, FastQuorum::Majority, false, &majority).violations > 0);
    }
}

#[test]
fn wrong_thresholds_are_caught() {
    for n in [3, 5, 7] {
        let higher = |group: Group, logs: &[Vec<Entry>]| counted(logs, group.recovery_threshold() + 1);
        assert!(run(n, 2, FastQuorum::Supermajority, true, &higher).violations > 0, "one higher, n={n}");
    }
    // One lower recovers, ahead of a completed update, one that began after it and has an earlier
    // timestamp. It takes a replica outside the completed one's quorum for each log the lower
    // threshold asks for: with 5 replicas there is one and one is enough, with 3 there is none, with
    // 7 there is one and two would be needed.
    let lower = |group: Group, logs: &[Vec<Entry>]| counted(logs, group.recovery_threshold() - 1);
    let violations = |n| run(n, 2, FastQuorum::Supermajority, true, &lower).violations;
    assert!(violations(5) > 0);
    assert_eq!((violations(3), violations(7)), (0, 0));
}

#[test]
fn majority_must_drop_and_must_not_forget() {
    for n in [3, 5] {
        // The whole union, by timestamp: an overwritten update that never completed runs before one
        // that completed before it began.
        let union = |_: Group, logs: &[Vec<Entry>]| counted(logs, 1);
        assert!(run(n, 2, FastQuorum::Majority, true, &union).violations > 0);
        let nothing = |_: Group, _: &[Vec<Entry>]| Vec::new();
        assert!(run(n, 1, FastQuorum::Majority, true, &nothing).violations > 0);
        let oldest =
            |_: Group, logs: &[Vec<Entry>]| counted(logs, 1).into_iter().take(1).collect::<Vec<u8>>();
        assert!(run(n, 2, FastQuorum::Majority, true, &oldest).violations > 0);
    }
}
