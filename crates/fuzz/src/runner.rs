//! Runs a target on seeds and on what mutation makes of them.

use crate::mutation::mutated;
use crate::targets::Target;
use core::fmt;
use std::panic::catch_unwind;
use syros_types::{Prng, key_hash};

/// Most inputs that are kept to be mutated: far more than the seeds, and few megabytes.
const CORPUS_MAX: usize = 4096;

/// What a target has been fed with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Inputs.
    pub runs: u64,
    /// Inputs among them that the target accepted.
    pub accepted: u64,
}

/// An input on which a target panicked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Name of the target.
    pub target: &'static str,
    /// The input.
    pub input: Vec<u8>,
    /// What the panic said.
    pub message: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} panicked: {}; input ", self.target, self.message)?;
        self.input.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::error::Error for Failure {}

/// Runs a target once. True if it accepts the input.
fn run(target: &Target, input: &[u8]) -> Result<bool, Failure> {
    catch_unwind(|| (target.run)(input)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no text");
        Failure { target: target.name, input: input.to_vec(), message: text.to_owned() }
    })
}

/// Feeds a target with its seeds, and then with mutated inputs for as long as `goes_on`, which is told the number of
/// inputs so far. The inputs follow from `seed`.
///
/// # Errors
/// The first input on which the target panics.
pub fn fuzz(target: &Target, seed: u64, mut goes_on: impl FnMut(u64) -> bool) -> Result<Report, Failure> {
    let mut prng = Prng::new(seed ^ key_hash(target.name.as_bytes()));
    let mut report = Report::default();
    let mut corpus = (target.seeds)(&mut prng);
    for input in &corpus {
        report.runs += 1;
        report.accepted += u64::from(run(target, input)?);
    }
    // Something to mutate, if there is no seed.
    corpus.push(Vec::new());
    while goes_on(report.runs) {
        let [one, other] = [(); 2].map(|()| prng.below(corpus.len() as u64) as usize);
        let input = mutated(&mut prng, &corpus[one], &corpus[other]);
        report.runs += 1;
        if run(target, &input)? {
            report.accepted += 1;
            if corpus.len() < CORPUS_MAX {
                corpus.push(input);
            } else {
                corpus[one] = input;
            }
        }
    }
    Ok(report)
}
