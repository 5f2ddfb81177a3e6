//! The checker against an obvious one, against planted bugs, and against the clock.

mod support;

use std::time::{Duration, Instant};
use support::{
    Bug, Shape, has_an_order, make_up, make_up_small, make_up_small_with_hashes,
    make_up_small_with_other_collections,
};
use syros_checker::history::{History, Input, Operation, OperationIndex, Outcome, Output};
use syros_checker::linearizability::{STEPS_DEFAULT, Verdict, check, check_within};
use syros_types::Prng;

fn value(text: &str) -> Output {
    Output::Value(Some(text.as_bytes().to_vec()))
}

/// Records an acknowledged operation.
fn told(history: &mut History, process: u64, times: (u64, u64), input: Input, output: Output) {
    let index = history.invoke(process, times.0, input).unwrap();
    history.acknowledge(index, times.1, output).unwrap();
}

#[test]
fn agrees_with_trying_every_order() {
    agree(&mut Prng::new(1), make_up_small);
}

#[test]
fn agrees_with_trying_every_order_where_there_are_hashes() {
    agree(&mut Prng::new(3), make_up_small_with_hashes);
}

#[test]
fn agrees_with_trying_every_order_where_there_are_other_collections() {
    agree(&mut Prng::new(4), make_up_small_with_other_collections);
}

fn agree(prng: &mut Prng, make_up: fn(&mut Prng) -> History) {
    let histories = 100_000;
    let (mut linearizable, mut violations) = (0, 0);
    for number in 0..histories {
        let history = make_up(prng);
        let expected = has_an_order(&history);
        let verdict = check(&history);
        match &verdict {
            Verdict::Linearizable => linearizable += 1,
            Verdict::Violation { .. } => violations += 1,
            Verdict::Undecided { .. } => panic!("history {number} is small: {history:#?}"),
        }
        let lines: Vec<String> = history.operations().iter().map(ToString::to_string).collect();
        let lines = lines.join("\n");
        assert_eq!(verdict == Verdict::Linearizable, expected, "history {number}: {verdict:?}\n{lines}");
    }
    assert!(linearizable > 10_000 && violations > 10_000, "{linearizable} and {violations}");
}

/// Demands an order of some pairs of operations whose invocations and answers come in that order.
fn demand_orders(history: &mut History, prng: &mut Prng) {
    let times = |operation: &Operation| match operation.outcome {
        Outcome::Acknowledged { completed, .. } => Some((operation.invoked, completed)),
        _ => None,
    };
    let times: Vec<Option<(u64, u64)>> = history.operations().iter().map(times).collect();
    for (first, earlier) in times.iter().enumerate() {
        for (then, later) in times.iter().enumerate() {
            if let (Some(earlier), Some(later)) = (earlier, later)
                && earlier.0 < later.0
                && earlier.1 < later.1
                && prng.chance(1, 3)
            {
                history.order(OperationIndex(first), OperationIndex(then)).unwrap();
            }
        }
    }
}

#[test]
fn agrees_with_trying_every_order_that_clients_demand() {
    let prng = &mut Prng::new(2);
    let (mut linearizable, mut only_without) = (0, 0);
    for number in 0..60_000 {
        let mut history = make_up_small(prng);
        let before = has_an_order(&history);
        demand_orders(&mut history, prng);
        let expected = has_an_order(&history);
        assert_eq!(check(&history) == Verdict::Linearizable, expected, "history {number}: {history:#?}");
        linearizable += u32::from(expected);
        only_without += u32::from(before && !expected);
    }
    assert!(linearizable > 5_000 && only_without > 500, "{linearizable} and {only_without}");
}

const SHAPE: Shape = Shape {
    operations: 600,
    clients: 12,
    keys: 6,
    unknown_percent: 3,
    hot_percent: 20,
    joined: true,
    bug: Bug::None,
    bug_rarity: 1,
};

#[test]
fn correct_histories_pass_quickly() {
    let mut slowest = Duration::ZERO;
    let start = Instant::now();
    let mut judged = 0;
    // Operations, clients, keys, percentage unknown. Operations on several keys join all keys, and an
    // unknown one may be the reason for the answers of all others: fewer can be afforded then.
    let alone = [(200, 20, 3, 5), (600, 12, 6, 3), (1000, 20, 10, 2), (2000, 20, 10, 0)].map(|s| (s, false));
    let joined = [(200, 12, 3, 2), (600, 12, 6, 1), (1000, 16, 10, 0), (2000, 12, 10, 0)].map(|s| (s, true));
    for ((operations, clients, keys, unknown_percent), joined) in alone.into_iter().chain(joined) {
        for seed in 0..10 {
            let shape = Shape { operations, clients, keys, unknown_percent, joined, ..SHAPE };
            let history = make_up(shape, seed);
            let began = Instant::now();
            assert_eq!(check(&history), Verdict::Linearizable, "seed {seed}: {shape:?}");
            slowest = slowest.max(began.elapsed());
            judged += 1;
        }
    }
    println!("{judged} histories in {:?}, the slowest in {slowest:?}", start.elapsed());
}

/// Of `seeds` histories by a store with this bug, how many are found out.
fn found_out(bug: Bug, unknown_percent: u64, seeds: u64) -> u64 {
    let bug_rarity = match bug {
        Bug::SplitSetMany | Bug::ReorderedWrites => 1,
        Bug::DuplicateIncrement => 3,
        _ => 10,
    };
    let shape = Shape { bug, bug_rarity, unknown_percent, ..SHAPE };
    let mut count = 0;
    for seed in 0..seeds {
        match check(&make_up(shape, seed)) {
            Verdict::Violation { .. } => count += 1,
            Verdict::Undecided { steps, .. } => println!("{bug:?}, seed {seed}: undecided after {steps}"),
            Verdict::Linearizable => println!("{bug:?}, seed {seed}: not noticed"),
        }
    }
    count
}

#[test]
fn planted_bugs_are_found() {
    for bug in
        [Bug::StaleRead, Bug::LostUpdate, Bug::ReorderedWrites, Bug::DuplicateIncrement, Bug::SplitSetMany]
    {
        for unknown_percent in [0, 3] {
            let began = Instant::now();
            let found = found_out(bug, unknown_percent, 10);
            println!("{bug:?}, {unknown_percent}% unknown: {found} of 10 in {:?}", began.elapsed());
            // What a lost or doubled update left may be the work of one that nobody knows about, or
            // take too long to tell from it.
            let wanted = if unknown_percent == 0 { 9 } else { 7 };
            assert!(found >= wanted, "{bug:?} was found in {found} of 10 histories only");
        }
    }
}

#[test]
fn a_stale_read_is_explained() {
    let mut history = History::new();
    told(&mut history, 1, (0, 1), Input::Set(1, b"old".to_vec()), Output::Done);
    told(&mut history, 1, (2, 3), Input::Set(1, b"new".to_vec()), Output::Done);
    told(&mut history, 3, (2, 9), Input::Set(2, b"else".to_vec()), Output::Done);
    told(&mut history, 2, (4, 5), Input::Get(1), value("old"));
    let Verdict::Violation { keys, explanation } = check(&history) else { panic!("stale read not found") };
    assert_eq!(keys, [1]);
    assert_eq!(
        explanation,
        "no order of the operations on k1 explains their answers\n\
         the farthest any order goes is these 2 operations:\n  \
           process 1 [0, 1] set k1 \"old\" -> done\n  \
           process 1 [2, 3] set k1 \"new\" -> done\n\
         which leaves:\n  \
           k1 = \"new\"\n\
         where this one, the first of the others to complete, cannot be placed:\n  \
           process 2 [4, 5] get k1 -> \"old\", but here it would be \"new\"\n"
    );
}

#[test]
fn an_unknown_operation_may_happen_late_or_never_but_only_once() {
    let mut history = History::new();
    history.invoke(1, 0, Input::Increment(1, 1)).unwrap();
    told(&mut history, 2, (10, 11), Input::Get(1), Output::Value(None));
    told(&mut history, 2, (12, 13), Input::Get(1), Output::Value(None));
    assert_eq!(check(&history), Verdict::Linearizable, "never");
    told(&mut history, 2, (20, 21), Input::Get(1), value("1"));
    assert_eq!(check(&history), Verdict::Linearizable, "late");
    told(&mut history, 2, (30, 31), Input::Get(1), value("2"));
    assert!(matches!(check(&history), Verdict::Violation { .. }), "twice");
}

#[test]
fn an_unknown_operation_does_not_happen_before_it_was_asked_for() {
    let mut history = History::new();
    told(&mut history, 2, (1, 2), Input::Get(1), value("x"));
    history.invoke(1, 3, Input::Set(1, b"x".to_vec())).unwrap();
    assert!(matches!(check(&history), Verdict::Violation { .. }));
}

#[test]
fn a_refused_operation_never_happened() {
    let mut history = History::new();
    let set = history.invoke(1, 0, Input::Set(1, b"x".to_vec())).unwrap();
    told(&mut history, 2, (1, 2), Input::Get(1), value("x"));
    assert_eq!(check(&history), Verdict::Linearizable);
    history.fail(set).unwrap();
    assert!(matches!(check(&history), Verdict::Violation { .. }));
}

#[test]
fn equal_times_are_concurrent() {
    let mut history = History::new();
    told(&mut history, 1, (0, 5), Input::Set(1, b"x".to_vec()), Output::Done);
    told(&mut history, 2, (5, 6), Input::Get(1), Output::Value(None));
    assert_eq!(check(&history), Verdict::Linearizable);
}

#[test]
fn a_pile_of_unknown_operations_does_not_blow_up() {
    // Thirty appends and thirty increments that nobody knows about, in the way of a violation.
    let mut history = History::new();
    for process in 0..30 {
        history.invoke(process, 0, Input::Append(1, format!("a{process}.").into_bytes())).unwrap();
        history.invoke(process, 0, Input::Increment(2, 1 + process as i64 % 3)).unwrap();
    }
    told(&mut history, 50, (1, 2), Input::Get(1), value("a3.a20.a7."));
    told(&mut history, 50, (3, 4), Input::Append(1, b"z".to_vec()), Output::Done);
    told(&mut history, 50, (5, 6), Input::Get(1), value("a3.a20.a7.z"));
    told(&mut history, 50, (7, 8), Input::Get(2), value("17"));
    assert_eq!(check(&history), Verdict::Linearizable);
    told(&mut history, 50, (9, 10), Input::Get(1), value("a3.a20.z"));
    let verdict = check(&history);
    assert!(matches!(verdict, Verdict::Violation { .. }), "{verdict:?}");
}

#[test]
fn a_spent_budget_is_no_verdict() {
    let history = make_up(SHAPE, 1);
    let Verdict::Undecided { steps, .. } = check_within(&history, 50) else {
        panic!("600 operations took 50 steps")
    };
    assert!((50..=52).contains(&steps), "{steps}");
    assert_eq!(check_within(&history, STEPS_DEFAULT), Verdict::Linearizable);
}
