//! What is written in the end: plots, a page, a document with all of them.

use std::fmt::Write as _;
use std::path::Path;

use syros_bench::compare::Facts;
use syros_bench::figure::{Figure as Shown, Verdict, chapter, page, svg};

use super::{Figure, Printer, write};

/// Everything that is asked for.
pub(super) fn write_all(options: &Figure, figures: &[Shown], printer: &Printer<'_>) -> Result<(), String> {
    if let (Some(path), Some(figure)) = (&options.svg, figures.first()) {
        write("--svg", path, &svg(figure, &printer.measurements, &printer.facts))?;
    }
    if let Some(path) = &options.results.html {
        write("--html", path, &page(figures, &printer.measurements, &printer.facts))?;
    }
    options.out.as_ref().map_or(Ok(()), |directory| document(options, directory, figures, printer))
}

/// What there is in all, in a table.
fn summary(figures: &[Shown], printer: &Printer<'_>) -> String {
    let mut out = "| figure | | statements that hold |\n|---|---|---|\n".to_owned();
    for figure in figures {
        let judged = figure.judge(&printer.measurements);
        let holding = judged.iter().filter(|judged| matches!(judged.verdict, Verdict::Holds(_))).count();
        let known = judged.iter().filter(|judged| judged.verdict.ratio().is_some()).count();
        let holds = match (figure.panels.is_empty(), known) {
            (true, _) => "not reproduced".to_owned(),
            (false, 0) => "not measured".to_owned(),
            (false, _) => format!("{holding} of {known}"),
        };
        let _ = writeln!(out, "| {} | {} | {holds} |", figure.name, figure.heading());
    }
    out
}

/// A plot for each figure, and a document with all of them.
fn document(
    options: &Figure,
    directory: &Path,
    figures: &[Shown],
    printer: &Printer<'_>,
) -> Result<(), String> {
    std::fs::create_dir_all(directory)
        .map_err(|error| format!("--out: cannot create {}: {error}", directory.display()))?;
    let Facts { load, commit, machine, command, .. } = &printer.facts;
    let how = if options.is_virtual {
        "in virtual time: the real cores in the simulator, each process on a machine of its own, every history judged for \
         linearizability; the same command gives the same figures to the digit, on any machine"
    } else if options.rtt_ms.is_some() {
        "with real processes. A relay on the same machine delays what is sent, so that round trips are what counts as long as few \
         clients ask; with many it is this machine's cores, which all processes share, and the relay; what is known of single \
         statements that do not hold is about virtual time"
    } else {
        "with real processes. They all share this machine's cores, which are busy all the time: a message costs more than a \
         round trip takes, so that protocols with more messages and fewer round trips are slower here than where each \
         replica has a machine; what is known of single statements that do not hold is about virtual time"
    };
    let mut text = format!(
        "# The papers' figures, {}\n\nWritten by `{command}`, {how}. {load}. Commit {commit}, {machine}. Everything here is \
         this one implementation with the protocols as settings ([BENCHMARKS.md](../BENCHMARKS.md) says how).\n\n\
         Below each figure: what the paper says, the same as a ratio of two of our figures, and whether that holds here. \
         \"About\" is within a tenth.\n\n{}\n",
        if options.is_virtual { "in virtual time" } else { "with real processes" },
        summary(figures, printer)
    );
    for figure in figures {
        let picture = format!("{}.svg", figure.name);
        if !figure.panels.is_empty() {
            write("--out", &directory.join(&picture), &svg(figure, &printer.measurements, &printer.facts))?;
        }
        text.push_str(&chapter(figure, &printer.measurements, &picture));
    }
    write("--out", &directory.join("README.md"), &format!("{}\n", text.trim_end()))
}
