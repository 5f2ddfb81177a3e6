//! The check of mixed fast quorums finds what is known to be wrong, and nothing else.

use syros_types::Group;

use super::{Enumeration, KnownWrong, MixedSettings, MixedUpdate, enumerate_mixed};

const W: MixedUpdate = MixedUpdate::Overwrite(0);
const M: MixedUpdate = MixedUpdate::Merge(0);
const U: MixedUpdate = MixedUpdate::Evaluate(0);

fn group(size: usize) -> Group {
    Group::new(size).unwrap()
}

fn check(settings: &MixedSettings) -> Enumeration {
    enumerate_mixed(settings, &mut |_| {})
}

fn with(variant: KnownWrong, updates: &[MixedUpdate]) -> MixedSettings {
    MixedSettings { known_wrong: Some(variant), ..MixedSettings::new(group(3), 3, updates.to_vec()) }
}

#[test]
fn two_updates_of_every_kind_are_recovered_rightly() {
    let kinds = [
        W,
        MixedUpdate::Overwrite(1),
        M,
        U,
        MixedUpdate::Copy(0, 1),
        MixedUpdate::OverwriteBoth,
        MixedUpdate::EvaluateBoth,
    ];
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
    let updates = vec![M, MixedUpdate::Copy(0, 1), MixedUpdate::Merge(1)];
    let found = check(&MixedSettings::new(group(3), 3, updates));
    assert_eq!(found.violations, 0, "{:?}", found.counterexample);
}

#[test]
fn every_known_wrong_variant_is_found() {
    let cases: [(KnownWrong, &[MixedUpdate]); 7] = [
        (KnownWrong::StrongWithOneLess, &[M, W]),
        (KnownWrong::StrongByUnion, &[M, W]),
        (KnownWrong::OverwrittenKept, &[W, W]),
        (KnownWrong::NoOrderRule, &[W, M]),
        (KnownWrong::NoAloneRule, &[W, U]),
        (KnownWrong::NoSharedRule, &[W, MixedUpdate::Copy(0, 1), W]),
        (KnownWrong::EvaluatedBeforeExecution, &[W, U]),
    ];
    for (variant, updates) in cases {
        let found = check(&with(variant, updates));
        assert_ne!(found.violations, 0, "{variant:?} with {updates:?}: {} recoveries", found.configurations);
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
    for kind in MixedUpdate::ALL {
        assert_eq!(kind.to_string().parse(), Ok(kind));
    }
    assert!("x0".parse::<MixedUpdate>().unwrap_err().contains("\"x0\" is no update: w0, w1, m0"));
}
