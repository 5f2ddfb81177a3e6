//! The check of mixed fast quorums finds what is known to be wrong, and nothing else.

use syros_types::Group;

use super::{Enumeration, Kind, Mistake, MixedSettings, enumerate_mixed};

const W: Kind = Kind::Overwrite(0);
const M: Kind = Kind::Merge(0);
const U: Kind = Kind::Evaluate(0);

fn group(size: usize) -> Group {
    Group::new(size).unwrap()
}

fn check(settings: &MixedSettings) -> Enumeration {
    enumerate_mixed(settings, &mut |_| {})
}

fn with(mistake: Mistake, updates: &[Kind]) -> MixedSettings {
    MixedSettings { mistake: Some(mistake), ..MixedSettings::new(group(3), 3, updates.to_vec()) }
}

#[test]
fn two_updates_of_every_kind_are_recovered_rightly() {
    let kinds = [W, Kind::Overwrite(1), M, U, Kind::Copy(0, 1), Kind::OverwriteBoth, Kind::EvaluateBoth];
    for active in [2, 3] {
        for first in kinds {
            for second in kinds {
                let found = check(&MixedSettings::new(group(3), active, vec![first, second]));
                assert_eq!(found.violations, 0, "{:?}", found.counterexample);
                assert!(found.configurations > 1_000, "{found:?}");
            }
        }
    }
}

#[test]
fn what_a_refused_update_waits_for_is_ordered_with_what_that_waits_for() {
    // The leader has accepted the merge of 0 and the copy. The merge of 1 makes it order both.
    let updates = vec![M, Kind::Copy(0, 1), Kind::Merge(1)];
    let found = check(&MixedSettings::new(group(3), 3, updates));
    assert_eq!(found.violations, 0, "{:?}", found.counterexample);
}

#[test]
fn every_mistake_is_found() {
    let cases: [(Mistake, &[Kind]); 7] = [
        (Mistake::StrongWithOneLess, &[M, W]),
        (Mistake::StrongByUnion, &[M, W]),
        (Mistake::OverwrittenKept, &[W, W]),
        (Mistake::NoOrderRule, &[W, M]),
        (Mistake::NoAloneRule, &[W, U]),
        (Mistake::NoSharedRule, &[W, Kind::Copy(0, 1), W]),
        (Mistake::EvaluatedBeforeExecution, &[W, U]),
    ];
    for (mistake, updates) in cases {
        let found = check(&with(mistake, updates));
        assert_ne!(found.violations, 0, "{mistake:?} with {updates:?}: {} recoveries", found.configurations);
        let shown = found.counterexample.unwrap();
        assert!(
            shown.starts_with("a: ") && shown.contains("survives") && shown.contains("recovered: "),
            "{shown}"
        );
    }
}

#[test]
fn quorums_below_the_curve_are_unsafe() {
    for (overwrite_quorum, strong_quorum) in [(2, 2), (3, 2)] {
        let wrong = [[W, M], [M, W], [W, U], [U, W], [M, M]].into_iter().any(|updates| {
            let settings = MixedSettings::new(group(3), 3, updates.to_vec());
            check(&MixedSettings { overwrite_quorum, strong_quorum, ..settings }).violations > 0
        });
        assert!(wrong, "{overwrite_quorum}, {strong_quorum}");
    }
}

#[test]
fn updates_are_named_as_they_are_read() {
    for kind in Kind::ALL {
        assert_eq!(kind.to_string().parse(), Ok(kind));
    }
    assert!("x0".parse::<Kind>().unwrap_err().contains("\"x0\" is no update: w0, w1, m0"));
}
