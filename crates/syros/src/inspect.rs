//! `syros inspect`: what a data directory holds, and what is wrong with it.

use std::fmt::{Display, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use syros_runtime::{Inspection, Records, Usage, durability_name};

use crate::status::json_text;
use syros_logging::utc;

/// Options of `syros inspect`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  syros inspect /var/lib/syros            whose it is, its log, its snapshots
  syros inspect ./data-0 --json           the same as one JSON object, for programs

Nothing is written, and the node may be running: then the end of its log may be in the middle of being
written. A torn end of the log is told and is no problem: it is what a crash in the middle of a write
leaves, and the next start cuts it. (Rot in the last record looks the same.) A store that was damaged is
set aside as damaged-N when the others have what it held; it can be deleted, and is no problem either.

The last line reads `intact` or `N problems`.
Exit status 0: intact; 1: something is wrong; 2: DIR is no directory.")]
pub(crate) struct Options {
    /// Data directory of a node
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// One JSON object on one line
    #[arg(long)]
    json: bool,
}

/// Prints what the directory holds.
pub(crate) fn run(options: &Options) -> ExitCode {
    let name = options.directory.display().to_string();
    let wrong = match std::fs::metadata(&options.directory) {
        Ok(metadata) if metadata.is_dir() => None,
        Ok(_) => Some("it is no directory".to_owned()),
        Err(error) => Some(error.to_string()),
    };
    if let Some(reason) = wrong {
        syros_cli::say!("syros: cannot inspect {name}: {reason}");
        return ExitCode::from(2);
    }
    let found = syros_runtime::inspect(&options.directory);
    let problems = problems(&found);
    let text = if options.json { json(&name, &found, &problems) } else { plain(&name, &found, &problems) };
    syros_cli::tell!("{}", text.trim_end());
    if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Something wrong.
struct Problem {
    /// The file, if it is one file.
    file: Option<String>,
    /// The place in it, in bytes from its beginning.
    offset: Option<u64>,
    text: String,
}

impl Problem {
    fn new(text: &dyn Display) -> Self {
        Self { file: None, offset: None, text: text.to_string() }
    }

    fn of(file: &str, offset: Option<u64>, text: &dyn Display) -> Self {
        Self { file: Some(file.to_owned()), offset, text: text.to_string() }
    }
}

/// All that is wrong.
fn problems(found: &Inspection) -> Vec<Problem> {
    let mut problems = Vec::new();
    match &found.identity {
        Ok(Some(_)) => {}
        Ok(None) => problems.push(Problem::new(&"there is no identity: this is no replica's directory")),
        Err(error) => problems.push(Problem::new(error)),
    }
    log_problems(found, &mut problems);
    record_problems(&found.records, &mut problems);
    match &found.snapshots {
        Ok(Some(snapshots)) => {
            for snapshot in &snapshots.snapshots {
                problems.extend(match (snapshot.damage(), &snapshot.problem) {
                    (Some((offset, reason)), _) => Some(Problem::of(&snapshot.file, Some(offset), &reason)),
                    (None, Some(error)) => Some(Problem::new(error)),
                    (None, None) => None,
                });
            }
        }
        Ok(None) => {}
        Err(error) => problems.push(Problem::new(error)),
    }
    if let Err(error) = &found.damaged {
        problems.push(Problem::new(error));
    }
    problems
}

fn log_problems(found: &Inspection, problems: &mut Vec<Problem>) {
    let log = match &found.log {
        Ok(Some(log)) => log,
        Ok(None) => return problems.push(Problem::new(&"there is no write-ahead log")),
        Err(error) => return problems.push(Problem::new(error)),
    };
    if log.segments.is_empty() {
        problems.push(Problem::new(&"there is no write-ahead log"));
    }
    for segment in &log.segments {
        for fault in &segment.faults {
            problems.push(Problem::of(&segment.file, Some(fault.offset), &fault.reason));
        }
        if let Some(error) = &segment.failure {
            problems.push(Problem::new(error));
        }
    }
    for file in &log.foreign {
        problems.push(Problem::of(file, None, &"not a file of this log, which refuses to open beside it"));
    }
}

fn record_problems(records: &Records, problems: &mut Vec<Problem>) {
    let further = |count: u64, told: usize| {
        let untold = count - told as u64;
        (untold > 0).then(|| Problem::new(&format_args!("so are {untold} further records")))
    };
    for (record, other) in &records.other_configuration_told {
        problems
            .push(Problem::new(&format_args!("{record} is intact and of another configuration: {other}")));
    }
    problems.extend(further(records.other_configuration, records.other_configuration_told.len()));
    for (record, reason) in &records.malformed_told {
        problems.push(Problem::new(&format_args!("{record} is intact and says nothing sensible: {reason}")));
    }
    problems.extend(further(records.malformed, records.malformed_told.len()));
}

/// The kinds of records, by name.
fn kinds(records: &Records) -> [(&'static str, u64); 9] {
    [
        ("view", records.view),
        ("accept", records.accept),
        ("append", records.append),
        ("transfer", records.transfer),
        ("enter_view", records.enter_view),
        ("checkpoint", records.checkpoint),
        ("forgot", records.forgot),
        ("other_configuration", records.other_configuration),
        ("malformed", records.malformed),
    ]
}

fn plain(name: &str, found: &Inspection, problems: &[Problem]) -> String {
    let mut out = format!("directory   {name}\n");
    if let Ok(Some(identity)) = &found.identity {
        let _ = writeln!(out, "identity    {identity}");
    }
    match &found.usage {
        Usage::Unused => {}
        Usage::Used { process } => {
            let by = process.map_or("another process".to_owned(), |process| format!("process {process}"));
            let _ = writeln!(
                out,
                "in use      by {by}: the end of the log may be in the middle of being written"
            );
        }
        Usage::Unknown(reason) => {
            let _ = writeln!(out, "in use      unknown: {reason}");
        }
    }
    plain_log(found, &mut out);
    plain_snapshots(found, &mut out);
    if let Some(bytes) = found.engine_bytes {
        let _ = writeln!(out, "engine      bytes {bytes}  not read: a node verifies what it reads of it");
    }
    for damaged in found.damaged.iter().flatten() {
        let _ = writeln!(
            out,
            "set aside   {}  bytes {}  (it was damaged and has been replaced; it can be deleted)",
            damaged.name, damaged.bytes
        );
    }
    for problem in problems {
        let _ = match (&problem.file, problem.offset) {
            (Some(file), Some(offset)) => writeln!(out, "problem     {file} at {offset}: {}", problem.text),
            (Some(file), None) => writeln!(out, "problem     {file}: {}", problem.text),
            (None, _) => writeln!(out, "problem     {}", problem.text),
        };
    }
    let _ = match problems.len() {
        0 => writeln!(out, "intact"),
        1 => writeln!(out, "1 problem"),
        count => writeln!(out, "{count} problems"),
    };
    out
}

fn plain_log(found: &Inspection, out: &mut String) {
    let Ok(Some(log)) = &found.log else { return };
    for segment in &log.segments {
        let _ =
            write!(out, "segment     {}  bytes {}  records {}", segment.file, segment.bytes, segment.records);
        if let Some((first, last)) = segment.range {
            let _ = write!(out, " ({} to {})", first.0, last.0);
        }
        if segment.room > 0 {
            let _ = write!(out, "  room {}", segment.room);
        }
        out.push_str(if segment.faults.is_empty() && segment.failure.is_none() {
            "\n"
        } else {
            "  DAMAGED\n"
        });
        if let Some(torn) = &segment.torn {
            let why = match found.usage {
                Usage::Used { .. } => "it is being written, or a crash cut it short",
                Usage::Unused | Usage::Unknown(_) => "a crash cut it short, and the next start cuts it off",
            };
            let _ = writeln!(out, "torn end    {}: {torn}; {why}", segment.file);
        }
    }
    for file in &log.unfinished {
        let _ = writeln!(out, "unfinished  {file}");
    }
    out.push_str("records    ");
    for (kind, count) in kinds(&found.records) {
        let _ = write!(out, " {kind} {count} ");
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    if let Some(view) = found.records.newest_view {
        let _ = writeln!(out, "newest view {view}");
    }
    if let Some((first, last)) = found.records.op_numbers {
        let _ = writeln!(out, "ops         {} to {}", first.0, last.0);
    }
}

fn plain_snapshots(found: &Inspection, out: &mut String) {
    let Ok(Some(snapshots)) = &found.snapshots else { return };
    for snapshot in &snapshots.snapshots {
        let _ = write!(
            out,
            "snapshot    {}  op {}  bytes {}  blocks {}",
            snapshot.file, snapshot.op_number.0, snapshot.bytes, snapshot.blocks
        );
        if let Some(header) = &snapshot.header {
            let _ = write!(out, "  view {}  time {}", header.view, time(header.time.0));
        }
        out.push_str(if snapshot.problem.is_none() { "  ok\n" } else { "  DAMAGED\n" });
    }
    for file in &snapshots.unfinished {
        let _ = writeln!(out, "unfinished  {file}");
    }
    for file in &snapshots.foreign {
        let _ = writeln!(out, "foreign     {file}  (nobody reads it)");
    }
}

/// A moment in microseconds since the Unix epoch.
fn time(micros: u64) -> String {
    format!("{}.{:06}Z", utc(micros / 1_000_000), micros % 1_000_000)
}

fn json(name: &str, found: &Inspection, problems: &[Problem]) -> String {
    let mut out = format!("{{\"directory\":{}", json_text(name));
    if let Ok(Some(identity)) = &found.identity {
        let _ = write!(
            out,
            ",\"identity\":{{\"cluster\":\"{:016x}\",\"replica\":{},\"replicas\":{},\"fast_quorum\":\"{}\",\"durability\":\"{}\",\
             \"engine\":\"{}\"}}",
            identity.cluster,
            identity.replica.0,
            identity.group.size(),
            identity.fast_quorum,
            durability_name(identity.durability),
            identity.engine
        );
    }
    match &found.usage {
        Usage::Unused => out.push_str(",\"in_use\":false"),
        Usage::Used { process: None } => out.push_str(",\"in_use\":true"),
        Usage::Used { process: Some(process) } => {
            let _ = write!(out, ",\"in_use\":true,\"process\":{process}");
        }
        // Neither true nor false.
        Usage::Unknown(_) => out.push_str(",\"in_use\":null"),
    }
    json_log(found, &mut out);
    json_snapshots(found, &mut out);
    if let Some(bytes) = found.engine_bytes {
        let _ = write!(out, ",\"engine_bytes\":{bytes}");
    }
    out.push_str(",\"set_aside\":");
    json_list(&mut out, found.damaged.as_deref().unwrap_or_default(), |out, damaged| {
        let _ = write!(out, "{{\"name\":{},\"bytes\":{}}}", json_text(&damaged.name), damaged.bytes);
    });
    out.push_str(",\"problems\":");
    json_list(&mut out, problems, |out, problem| {
        let _ = write!(out, "{{\"problem\":{}", json_text(&problem.text));
        if let Some(file) = &problem.file {
            let _ = write!(out, ",\"file\":{}", json_text(file));
        }
        if let Some(offset) = problem.offset {
            let _ = write!(out, ",\"offset\":{offset}");
        }
        out.push('}');
    });
    let _ = writeln!(out, ",\"intact\":{}}}", problems.is_empty());
    out
}

fn json_log(found: &Inspection, out: &mut String) {
    let Ok(Some(log)) = &found.log else { return };
    out.push_str(",\"segments\":");
    json_list(out, &log.segments, |out, segment| {
        let file = json_text(&segment.file);
        let (bytes, room, records) = (segment.bytes, segment.room, segment.records);
        let _ = write!(out, "{{\"file\":{file},\"bytes\":{bytes},\"room\":{room},\"records\":{records}");
        if let Some((first, last)) = segment.range {
            let _ = write!(out, ",\"first\":{},\"last\":{}", first.0, last.0);
        }
        if let Some(torn) = &segment.torn {
            let _ = write!(out, ",\"torn\":{{\"offset\":{},\"bytes\":{}}}", torn.offset, torn.bytes);
        }
        out.push('}');
    });
    out.push_str(",\"records\":{");
    for (kind, count) in kinds(&found.records) {
        let _ = write!(out, "\"{kind}\":{count},");
    }
    out.pop();
    out.push('}');
    if let Some(view) = found.records.newest_view {
        let _ = write!(out, ",\"newest_view\":{},\"newest_epoch\":{}", view.number(), view.epoch().0);
    }
    if let Some((first, last)) = found.records.op_numbers {
        let _ = write!(out, ",\"first_op\":{},\"last_op\":{}", first.0, last.0);
    }
}

fn json_snapshots(found: &Inspection, out: &mut String) {
    let Ok(Some(snapshots)) = &found.snapshots else { return };
    out.push_str(",\"snapshots\":");
    json_list(out, &snapshots.snapshots, |out, snapshot| {
        let _ = write!(
            out,
            "{{\"file\":{},\"op\":{},\"bytes\":{},\"blocks\":{},\"ok\":{}",
            json_text(&snapshot.file),
            snapshot.op_number.0,
            snapshot.bytes,
            snapshot.blocks,
            snapshot.problem.is_none()
        );
        if let Some(header) = &snapshot.header {
            let (view, epoch) = (header.view.number(), header.view.epoch().0);
            let _ = write!(out, ",\"view\":{view},\"epoch\":{epoch},\"time_us\":{}", header.time.0);
        }
        out.push('}');
    });
}

fn json_list<T>(out: &mut String, items: &[T], mut one: impl FnMut(&mut String, &T)) {
    out.push('[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        one(out, item);
    }
    out.push(']');
}
