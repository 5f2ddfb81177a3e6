//! Seeds that once told something, run again: see `corpus` beside `src`.

use std::collections::BTreeSet;
use syros_sim::{Options, run_seed};

const CORPUS: &str = include_str!("../corpus");

#[test]
fn nothing_is_wrong_with_the_seeds_that_are_kept() {
    let mut seen = BTreeSet::new();
    let lines = CORPUS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    for line in lines {
        let (seed, why) = line.split_once(' ').expect("a seed and why it is kept");
        let seed: u64 = seed.parse().expect("a seed is a number");
        assert!(seen.insert(seed), "seed {seed} is there twice");
        let report = run_seed(seed, &Options::default());
        assert!(report.violation.is_none(), "seed {seed}, kept because {why}: {:?}", report.violation);
    }
    assert!(!seen.is_empty());
}
