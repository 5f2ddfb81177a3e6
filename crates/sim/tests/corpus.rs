//! Seeds that once told something, run again: see `corpus` beside `src`.

use std::collections::BTreeSet;
use syros_sim::{Options, run_seed};
use syros_types::Group;

const CORPUS: &str = include_str!("../corpus");

/// So begins why a seed is kept whose world told something in the mixed mode.
const MIXED: &str = "--mixed ";

#[test]
fn nothing_is_wrong_with_the_seeds_that_are_kept() {
    let mut seen = BTreeSet::new();
    let lines = CORPUS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    for line in lines {
        let (seed, why) = line.split_once(' ').expect("a seed and why it is kept");
        let seed: u64 = seed.parse().expect("a seed is a number");
        assert!(seen.insert(seed), "seed {seed} is there twice");
        let mixed = why.starts_with(MIXED);
        let report = run_seed(seed, &Options { mixed, service: !mixed, ..Options::default() });
        assert!(report.violation.is_none(), "seed {seed}, kept because {why}: {:?}", report.violation);
    }
    assert!(!seen.is_empty());
}

#[test]
fn nothing_is_wrong_with_the_largest_group() {
    let largest = Group::new(Group::SIZE_MAX).expect("it is a size");
    let options = Options { replicas: Some(largest), ..Options::default() };
    for seed in 1..=60 {
        let report = run_seed(seed, &options);
        assert!(report.violation.is_none(), "seed {seed}, nine replicas: {:?}", report.violation);
    }
}
