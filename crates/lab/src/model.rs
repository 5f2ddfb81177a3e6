//! `syros-lab check model`: runs models, right ones and known-wrong ones, and tells what came of it.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use syros_model::{Model, PlantedBug, Report, models};

/// Transitions after which `--quick` gives up on a model as it is. All of them together take about half
/// a minute on one slow core.
const QUICK_TRANSITIONS_MAX: usize = 400_000;

/// Options of `syros-lab check model`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  syros-lab check model --list                 the models there are
  syros-lab check model majority               one, and its known-wrong variants with their traces
  syros-lab check model majority --plant recover-nothing      one variant only
  syros-lab check model --all                  every one
  syros-lab check model --all --quick          every one, the right ones only in part: what CI runs

Each line tells the states explored, the time, and what came of it. A search that stopped at its bound
says so, and how far it went; the others visited every state within the bounds that docs/MODEL.md
lists. The last line reads `N models, N variants, N failures`. Exit status 1: a right model fails or a
known-wrong variant passes.")]
pub(crate) struct Options {
    /// Name of a model
    #[arg(value_name = "NAME", value_parser = parse_model, required_unless_present_any = ["all", "list"])]
    name: Option<String>,
    /// Every model
    #[arg(long, conflicts_with = "name")]
    all: bool,
    /// Only as much of the right models as CI has time for
    #[arg(long)]
    quick: bool,
    /// Only this known-wrong variant
    #[arg(long, value_name = "BUG", value_parser = parse_planted, requires = "name")]
    plant: Option<PlantedBug>,
    /// List the models and their known-wrong variants
    #[arg(long, conflicts_with_all = ["name", "all"])]
    list: bool,
}

fn parse_model(text: &str) -> Result<String, String> {
    let known = models().iter().any(|model| model.name() == text);
    known.then(|| text.to_owned()).ok_or_else(|| "there is none of this name; --list shows all".to_owned())
}

fn parse_planted(text: &str) -> Result<PlantedBug, String> {
    let found = PlantedBug::ALL.iter().find(|bug| bug.name() == text);
    found.copied().ok_or_else(|| "there is none of this name; --list shows those that models find".to_owned())
}

#[derive(Default)]
struct Tally {
    models: usize,
    variants: usize,
    failures: usize,
}

/// Runs what was asked for.
pub(crate) fn run(options: &Options) -> Result<ExitCode, String> {
    if options.list {
        list();
        return Ok(ExitCode::SUCCESS);
    }
    println!("{:<44} {:>9} {:>8}  result", "model", "states", "seconds");
    let mut tally = Tally::default();
    for model in models() {
        if options.name.as_deref().is_none_or(|name| name == model.name()) {
            run_model(&model, options, &mut tally);
        }
    }
    let Tally { models, variants, failures } = tally;
    println!("{models} models, {variants} variants, {failures} failures");
    Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn list() {
    for model in models() {
        let wrong: Vec<&str> = model.wrong().iter().map(|bug| bug.name()).collect();
        println!("{:<16}{}\n{:16}wrong: {}", model.name(), model.about(), "", wrong.join(", "));
    }
}

fn run_model(model: &Model, options: &Options, tally: &mut Tally) {
    if options.plant.is_none() {
        announce(model.name());
        let report = model.check(None, options.quick.then_some(QUICK_TRANSITIONS_MAX));
        tally.models += 1;
        let result = match &report.counterexample {
            None if report.exhausted => format!("holds in every state; {} steps at most", report.depth),
            None => format!("holds; stopped at its bound, every path of {} steps done", report.depth - 1),
            Some(found) => {
                tally.failures += 1;
                format!("FAILS after {} steps:\n{}", found.steps, found.text)
            }
        };
        tell(&report, &result);
    }
    let asked = |bug: &PlantedBug| options.plant.is_none_or(|plant| plant == *bug);
    let mut wrong: Vec<PlantedBug> = model.wrong().iter().copied().filter(asked).collect();
    wrong.extend(options.plant.filter(|plant| !model.wrong().contains(plant)));
    for bug in wrong {
        announce(&format!("{} / {}", model.name(), bug.name()));
        let report = model.check(Some(bug), None);
        tally.variants += 1;
        let result = match &report.counterexample {
            Some(found) if options.all => format!("counterexample of {} steps", found.steps),
            Some(found) => format!("counterexample of {} steps:\n{}", found.steps, found.text),
            None => {
                tally.failures += 1;
                let how_far = if report.exhausted { "every state" } else { "stopped at its bound" };
                format!("PASSES, and should not ({how_far})")
            }
        };
        tell(&report, &result);
    }
}

/// A search may take minutes: its name appears first.
fn announce(name: &str) {
    print!("{name:<44} ");
    // Nothing is lost if it appears later.
    let _ = std::io::stdout().flush();
}

fn tell(report: &Report, result: &str) {
    println!("{:>9} {:>8.1}  {result}", report.states, report.time.as_secs_f64());
}
