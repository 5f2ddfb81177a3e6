//! `syros check`: exhaustive checks of rules on small configurations.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Instant;

use clap::{Args, Subcommand, ValueEnum};
use syros_checker::recovery::{self, OPERATIONS_MAX, Settings};
use syros_types::{FastQuorum, Group};

/// Options of `syros check`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  syros check recovery --replicas 5 --ops 3 --rule paper           finds what is wrong with the published rule
  syros check recovery --replicas 5 --ops 3 --rule supermajority   finds nothing")]
pub(crate) struct Options {
    #[command(subcommand)]
    check: Check,
}

#[derive(Subcommand, Debug)]
enum Check {
    /// Give a recovery rule every set of durability logs that can arise, and check what it makes of them
    Recovery(RecoveryOptions),
}

/// Options of `syros check recovery`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  syros check recovery --replicas 3 --ops 4 --rule majority
  syros check recovery --replicas 5 --ops 3 --rule paper

Exit status 1: a violation was found; the first is shown.")]
struct RecoveryOptions {
    /// Number of replicas: 1, 3, 5 or 7
    #[arg(long, value_name = "N", default_value_t = 5)]
    replicas: usize,
    /// Number of updates of one key
    #[arg(long, value_name = "K", default_value_t = 3, value_parser = parse_operations)]
    ops: usize,
    /// The rule
    #[arg(long, value_enum)]
    rule: RuleName,
}

/// A recovery rule.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum RuleName {
    /// Skyros, Figure 6: by pairwise majorities between the logs
    Paper,
    /// This system's, with fast quorums of f + 1: the update with the highest timestamp
    Majority,
    /// This system's, with fast quorums of f + ceil(f/2) + 1: by timestamp
    Supermajority,
}

fn parse_operations(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=OPERATIONS_MAX).contains(number));
    number.ok_or_else(|| format!("a number from 1 to {OPERATIONS_MAX} is expected"))
}

/// Runs the check.
pub(crate) fn run(options: &Options) -> Result<ExitCode, String> {
    let Check::Recovery(RecoveryOptions { replicas, ops, rule }) = options.check;
    let group = Group::new(replicas).map_err(|error| format!("--replicas: {error}"))?;
    let (rule, mode, conflict_check): (recovery::Rule<'_>, _, _) = match rule {
        RuleName::Paper => (&recovery::paper, FastQuorum::Supermajority, false),
        RuleName::Majority => (&recovery::majority, FastQuorum::Majority, true),
        RuleName::Supermajority => (&recovery::supermajority, FastQuorum::Supermajority, true),
    };
    let started = Instant::now();
    let shows_progress = std::io::stderr().is_terminal();
    let settings = Settings { group, operations: ops, mode, conflict_check };
    let found = recovery::enumerate(settings, rule, &mut |examined| {
        if shows_progress {
            // A line that is written over; nobody needs it if it cannot be written.
            let _ = write!(std::io::stderr(), "\r{examined} configurations ");
        }
    });
    if shows_progress {
        eprintln!();
    }
    println!(
        "{replicas} replicas, {ops} updates: {} configurations, {} violations in {:.1} s",
        found.configurations,
        found.violations,
        started.elapsed().as_secs_f64()
    );
    if let Some(counterexample) = &found.counterexample {
        println!("{counterexample}");
    }
    Ok(if found.violations == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
