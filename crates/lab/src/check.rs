//! `syros-lab check`: exhaustive checks of parts of the protocol.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use syros_checker::recovery::{
    self, Entry, Enumeration, MIXED_REPLICAS_MAX, MixedSettings, MixedUpdate, OPERATIONS_MAX, Settings,
    enumerate, enumerate_mixed,
};
use syros_protocol::message::BodyHash;
use syros_protocol::recovery::{Recoverable, recover};
use syros_types::{FastQuorum, FastRule, Group, OperationId, SessionId, Timestamp};

/// Options of `syros-lab check`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  syros-lab check recovery --replicas 5 --ops 3 --rule paper       finds violations
  syros-lab check recovery --replicas 5 --ops 3 --rule majority    finds none
  syros-lab check model --all --quick                              what CI runs of the models

Exit status 1: a violation was found, or something known to be wrong passed.")]
pub(crate) struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Try every durability log that replicas can hold when a view change recovers them
    Recovery(RecoveryOptions),
    /// Run the replicas' and clients' own code in every order of events, within bounds
    Model(crate::model::Options),
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  syros-lab check recovery --replicas 5 --ops 3 --rule paper
  syros-lab check recovery --replicas 7 --ops 3 --rule supermajority
  syros-lab check recovery --replicas 3 --ops 3 --rule mixed
  syros-lab check recovery --replicas 3 --rule mixed --updates w0,c01,u1 --active 2

`majority` and `supermajority` run the code that replicas run. `mixed` is the rule of the default mode; its
check states the rule once more, and tries every execution of a view, with `w`: an overwrite, `m`: a change without an answer, `u`: a change with
one, `c`: a copy; and the keys 0, 1. Without --updates it tries w0, m0 and u0 in every arrangement of
--ops timestamps. The last line reads
`N configurations, N violations`; the first violation is printed before it.")]
struct RecoveryOptions {
    /// Size of the group: 1, 3, 5, 7 or 9
    #[arg(long, value_name = "N", default_value = "5", value_parser = syros_cli::parse_group)]
    replicas: Group,
    /// Number of updates, all of one key
    #[arg(long, value_name = "K", default_value = "3", value_parser = clap::value_parser!(u8).range(1..=OPERATIONS_MAX as i64))]
    ops: u8,
    /// How the new leader selects and orders what the durability logs hold
    #[arg(long, value_name = "RULE")]
    rule: Rule,
    /// The updates in the order of their timestamps, for the rule `mixed` [default: every arrangement]
    #[arg(long, value_name = "U,..", value_delimiter = ',')]
    updates: Vec<MixedUpdate>,
    /// Members that accept updates, the leader among them, for the rule `mixed` [default: all]
    #[arg(long, value_name = "N")]
    active: Option<usize>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Rule {
    /// Skyros Figure 6: pairwise majorities of the logs, sorted topologically
    Paper,
    /// The union, and of updates of one key the one with the latest timestamp
    Majority,
    /// What ceil(f/2) + 1 logs hold, by timestamp
    Supermajority,
    /// The union of overwrites, and of other updates what all active survivors hold, by timestamp
    Mixed,
}

/// Runs the check asked for.
pub(crate) fn run(options: &Options) -> Result<ExitCode, String> {
    match &options.what {
        What::Recovery(options) => run_recovery(options),
        What::Model(options) => crate::model::run(options),
    }
}

fn run_recovery(options: &RecoveryOptions) -> Result<ExitCode, String> {
    options.check()?;
    let found = check_recovery(options);
    if let Some(counterexample) = &found.counterexample {
        println!("{counterexample}");
    }
    println!("{} configurations, {} violations", found.configurations, found.violations);
    Ok(if found.violations == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl RecoveryOptions {
    /// Says what of the options cannot be.
    fn check(&self) -> Result<(), String> {
        let (least, most) = (self.replicas.majority(), self.replicas.size());
        let is_mixed = matches!(self.rule, Rule::Mixed);
        if !is_mixed && (self.active.is_some() || !self.updates.is_empty()) {
            return Err("--active and --updates are for --rule mixed".to_owned());
        }
        if let Some(active) = self.active.filter(|active| !(least..=most).contains(active)) {
            return Err(format!("--active {active}: of {most} replicas {least} to {most} are active"));
        }
        if is_mixed && most > MIXED_REPLICAS_MAX {
            return Err(format!(
                "--replicas {most}: the rule mixed is checked for {MIXED_REPLICAS_MAX} at most"
            ));
        }
        let updates = self.updates.len();
        if updates > OPERATIONS_MAX {
            return Err(format!("--updates names {updates}: the most is {OPERATIONS_MAX}"));
        }
        Ok(())
    }

    /// The arrangements of updates to try under the rule `mixed`.
    fn arrangements(&self) -> Vec<Vec<MixedUpdate>> {
        if !self.updates.is_empty() {
            return vec![self.updates.clone()];
        }
        let mut arrangements = vec![Vec::new()];
        for _ in 0..self.ops {
            let longer = |updates: Vec<MixedUpdate>| {
                [MixedUpdate::Overwrite(0), MixedUpdate::Merge(0), MixedUpdate::Evaluate(0)]
                    .map(|kind| updates.iter().copied().chain([kind]).collect::<Vec<_>>())
            };
            arrangements = arrangements.into_iter().flat_map(longer).collect();
        }
        arrangements
    }

    fn check_mixed(&self, progress: &mut dyn FnMut(u64)) -> Enumeration {
        let mut all = Enumeration::default();
        for updates in self.arrangements() {
            let active = self.active.unwrap_or(self.replicas.size());
            let before = all.configurations;
            let settings = MixedSettings::new(self.replicas, active, updates);
            let found = enumerate_mixed(&settings, &mut |count| progress(before + count));
            all.configurations += found.configurations;
            all.violations += found.violations;
            all.counterexample = all.counterexample.or(found.counterexample);
        }
        all
    }
}

fn check_recovery(options: &RecoveryOptions) -> Enumeration {
    let shows_progress = std::io::stderr().is_terminal();
    let mut progress = |configurations: u64| {
        if shows_progress {
            eprint!("\r{configurations} configurations");
            // Progress that cannot be shown is no reason to stop.
            let _ = std::io::stderr().flush();
        }
    };
    let settings = |mode, conflict_check| Settings {
        group: options.replicas,
        operations: usize::from(options.ops),
        mode,
        conflict_check,
    };
    let found = match options.rule {
        // The papers know no timestamps, and so no conflicts.
        Rule::Paper => enumerate(settings(FastQuorum::Supermajority, false), &recovery::paper, &mut progress),
        Rule::Majority => {
            let rule =
                |group: Group, logs: &[Vec<Entry>]| recover_as_replicas_do(FastQuorum::Majority, group, logs);
            enumerate(settings(FastQuorum::Majority, true), &rule, &mut progress)
        }
        Rule::Supermajority => {
            let rule = |group: Group, logs: &[Vec<Entry>]| {
                recover_as_replicas_do(FastQuorum::Supermajority, group, logs)
            };
            enumerate(settings(FastQuorum::Supermajority, true), &rule, &mut progress)
        }
        Rule::Mixed => options.check_mixed(&mut progress),
    };
    if shows_progress {
        eprint!("\r\x1b[K");
    }
    found
}

/// An update as the replicas' own rule sees it. All overwrite the same key.
struct Update(Entry);

impl Recoverable for Update {
    fn id(&self) -> OperationId {
        OperationId { session: SessionId(1), sequence: u64::from(self.0.operation) }
    }

    fn timestamp(&self) -> Timestamp {
        Timestamp { micros: self.0.timestamp, session: 1 }
    }

    fn body_hash(&self) -> BodyHash {
        BodyHash::default()
    }

    fn overwritten_key(&self) -> Option<u64> {
        Some(1)
    }
}

fn recover_as_replicas_do(mode: FastQuorum, group: Group, logs: &[Vec<Entry>]) -> Vec<u8> {
    let updates: Vec<Vec<Update>> =
        logs.iter().map(|log| log.iter().copied().map(Update).collect()).collect();
    let logs: Vec<Vec<&Update>> = updates.iter().map(|log| log.iter().collect()).collect();
    recover(FastRule::of_all(mode, group), group, &logs, |_, _| true)
        .into_iter()
        .map(|update| update.0.operation)
        .collect()
}
