//! The right rules pass, and each wrong one is caught.

use super::*;
use std::cell::Cell;
use std::collections::BTreeSet;

fn run(n: usize, operations: usize, mode: FastQuorum, conflict_check: bool, rule: Rule<'_>) -> Enumeration {
    let group = Group::new(n).unwrap();
    enumerate(Settings { group, operations, mode, conflict_check }, rule, &mut |_| {})
}

/// What at least `threshold` logs hold, by timestamp.
fn counted(logs: &[Vec<Entry>], threshold: usize) -> Vec<u8> {
    let mut entries: Vec<Entry> = logs.iter().flatten().copied().collect();
    entries.sort_by_key(|entry| entry.timestamp);
    entries.dedup();
    entries.retain(|entry| logs.iter().filter(|log| log.contains(entry)).count() >= threshold);
    entries.iter().map(|entry| entry.operation).collect()
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

#[test]
fn the_order_of_arrival_is_no_order() {
    let by_arrival = |_: Group, logs: &[Vec<Entry>]| {
        let mut union: Vec<u8> = Vec::new();
        for entry in logs.iter().flatten() {
            if !union.contains(&entry.operation) {
                union.push(entry.operation);
            }
        }
        union
    };
    for n in [3, 5] {
        assert!(run(n, 2, FastQuorum::Majority, true, &by_arrival).violations > 0);
    }
}

#[test]
fn numbers_are_no_timestamps() {
    // Right whenever updates happen to be numbered in the order of their timestamps.
    let by_number = |group: Group, logs: &[Vec<Entry>]| {
        let mut order = counted(logs, group.recovery_threshold());
        order.sort_unstable();
        order
    };
    assert!(run(3, 2, FastQuorum::Supermajority, true, &by_number).violations > 0);
    let highest_number =
        |_: Group, logs: &[Vec<Entry>]| counted(logs, 1).into_iter().max().into_iter().collect::<Vec<u8>>();
    assert!(run(3, 2, FastQuorum::Majority, true, &highest_number).violations > 0);
}

#[test]
fn the_order_of_the_logs_is_no_order() {
    let first_log = |_: Group, logs: &[Vec<Entry>]| {
        let longest = logs.iter().rev().max_by_key(|log| log.len());
        longest.and_then(|log| log.last()).map(|entry| entry.operation).into_iter().collect::<Vec<u8>>()
    };
    assert!(run(3, 2, FastQuorum::Majority, true, &first_log).violations > 0);
}

#[test]
fn inventions_are_caught() {
    let found = run(3, 1, FastQuorum::Majority, true, &|_, _| vec![9]);
    assert!(found.violations > 0 && found.counterexample.is_some_and(|text| text.contains("in no log")));
}

/// True if Figure 6's edges between the updates it recovers form a cycle of three.
fn is_cyclic(group: Group, logs: &[Vec<Entry>]) -> bool {
    let threshold = group.recovery_threshold();
    let place = |log: &[Entry], wanted: u8| log.iter().position(|entry| entry.operation == wanted);
    let edge = |a: u8, b: u8| {
        let counts = |log: &&Vec<Entry>| match (place(log, a), place(log, b)) {
            (Some(first), Some(second)) => first < second,
            (first, _) => first.is_some(),
        };
        logs.iter().filter(counts).count() >= threshold
    };
    (edge(0, 1) && edge(1, 2) && edge(2, 0)) || (edge(0, 2) && edge(2, 1) && edge(1, 0))
}

#[test]
fn no_way_to_break_the_papers_cycles_is_right() {
    // The order of breaking is given as a preference among the three updates by timestamp; whichever
    // it is, some execution wanted another.
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    for order in orders {
        let met_a_cycle = Cell::new(false);
        let rule = |group: Group, logs: &[Vec<Entry>]| {
            let mut result = paper(group, logs);
            if is_cyclic(group, logs) {
                met_a_cycle.set(true);
                let by_timestamp = counted(logs, 1);
                result = order.map(|rank: usize| by_timestamp[rank]).to_vec();
            }
            result
        };
        assert!(run(5, 3, FastQuorum::Supermajority, false, &rule).violations > 0, "{order:?}");
        assert!(met_a_cycle.get());
    }
}

#[test]
fn with_seven_replicas_the_papers_cycles_take_four_updates() {
    // An edge needs three of four logs, and a log can agree with all edges of a cycle but one: of four
    // logs, eight agreements for three edges, which is too few, or twelve for four, which is enough.
    let settings = Settings {
        group: Group::new(7).unwrap(),
        operations: 4,
        mode: FastQuorum::Supermajority,
        conflict_check: false,
    };
    let (first, turns) = (vec![3], [vec![0, 1, 2, 3], vec![1, 2, 3, 0], vec![2, 3, 0, 1], vec![3, 0, 1, 2]]);
    let held: Vec<&Log> = [&first; 3].into_iter().chain(&turns).collect();
    // The last update completed, with all replicas but the one that has it after the first, and then
    // the first began.
    let before: RealTime = [0, 0, 0, 1];
    assert!(is_possible(settings, &held, &before));
    let answer = ask(settings, &paper, &held[3..], false);
    assert!(
        fault(settings, &held, &before, &answer).is_some_and(|fault| fault.contains("is executed after it"))
    );
}

/// A moment of an execution: who holds what, who was asked, who was told, and what that says about
/// real time.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Moment {
    logs: Vec<Log>,
    invoked: u8,
    completed: u8,
    before: RealTime,
}

/// Plays every execution, step by step, and returns the distinct configurations they lead to.
fn played(settings: Settings) -> BTreeSet<(Log, Vec<Log>, RealTime)> {
    let (n, all) = (settings.group.size(), (1_u8 << settings.operations) - 1);
    let start = Moment { logs: vec![Vec::new(); n], invoked: 0, completed: 0, before: [0; OPERATIONS_MAX] };
    let mut seen = BTreeSet::from([start.clone()]);
    let mut waiting = vec![start];
    let mut reached = BTreeSet::new();
    while let Some(moment) = waiting.pop() {
        if moment.invoked == all {
            let mut followers = moment.logs[1..].to_vec();
            followers.sort();
            reached.insert((moment.logs[0].clone(), followers, moment.before));
        }
        for operation in 0..settings.operations as u8 {
            for next in steps(settings, &moment, operation) {
                if seen.insert(next.clone()) {
                    waiting.push(next);
                }
            }
        }
    }
    reached
}

/// What can happen next to one update: it is invoked, it arrives at a replica, it completes.
fn steps(settings: Settings, moment: &Moment, operation: u8) -> Vec<Moment> {
    let bit = 1 << operation;
    let mut next = Vec::new();
    if moment.invoked & bit == 0 {
        let mut invoked = moment.clone();
        invoked.invoked |= bit;
        for other in 0..settings.operations {
            if moment.completed & 1 << other != 0 {
                invoked.before[other] |= bit;
            }
        }
        return vec![invoked];
    }
    for replica in 0..settings.group.size() {
        let log = &moment.logs[replica];
        let refused = settings.conflict_check && log.iter().any(|held| *held > operation);
        if !log.contains(&operation) && !refused {
            let mut arrived = moment.clone();
            arrived.logs[replica].push(operation);
            next.push(arrived);
        }
    }
    let holders = moment.logs.iter().filter(|log| log.contains(&operation)).count();
    let acknowledged = holders >= fast_quorum(settings) && moment.logs[0].contains(&operation);
    if moment.completed & bit == 0 && acknowledged {
        let mut completed = moment.clone();
        completed.completed |= bit;
        next.push(completed);
    }
    next
}

#[test]
fn the_configurations_are_those_that_executions_lead_to() {
    for (n, operations, mode, conflict_check) in [
        (3, 2, FastQuorum::Majority, true),
        (3, 2, FastQuorum::Majority, false),
        (3, 3, FastQuorum::Majority, true),
        (3, 3, FastQuorum::Supermajority, true),
        (5, 2, FastQuorum::Majority, true),
        (5, 2, FastQuorum::Supermajority, false),
    ] {
        let settings = Settings { group: Group::new(n).unwrap(), operations, mode, conflict_check };
        let played = played(settings);
        let found = enumerate(settings, &|_, _| Vec::new(), &mut |_| {});
        assert_eq!(found.configurations, played.len() as u64, "{settings:?}");
        for (leader, followers, before) in &played {
            let held: Vec<&Log> = std::iter::once(leader).chain(followers).collect();
            assert!(
                is_possible(settings, &held, before),
                "{settings:?}: {leader:?} {followers:?} {before:?}"
            );
        }
    }
}
