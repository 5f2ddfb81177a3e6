//! `syros server`: one node.

use std::io::Read;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use syros_cli::signals;
use syros_runtime::{FirstStart, Node, NodeConfig, NotWanted, read_identity};

use crate::{config, logger};

/// Options of `syros server`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  syros server --config /etc/syros/node.toml --bootstrap    the very first start: makes the data directory
  syros server --config /etc/syros/node.toml                every later start
  syros server --config /etc/syros/node.toml --bootstrap --if-empty    every start, where nobody can say which is the first
  syros server --config /etc/syros/node.toml --replace      the disk of this node is lost: a new one takes its place
  syros server --config /etc/syros/node.toml --join         one of the two nodes that a cluster becomes larger by

docs/syros.sample.toml describes every key of the file. SIGTERM and SIGINT end the node cleanly.")]
pub(crate) struct Options {
    /// Configuration file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// First start of this replica in a new cluster: makes its data directory
    #[arg(long)]
    bootstrap: bool,
    /// First start of a new node in the place of one that has lost its disk: makes its data directory, and has the other
    /// nodes take it for the one that the configuration file is of. The lost one never comes back
    #[arg(long, conflicts_with = "bootstrap")]
    replace: bool,
    /// First start of a node that a cluster becomes larger by: makes its data directory, and has the other nodes take it in. Two
    /// such nodes come in at once
    #[arg(long, conflicts_with_all = ["bootstrap", "replace"])]
    join: bool,
    /// With --bootstrap, --replace or --join: only if there is no node in the data directory, and else a later start. For
    /// whatever starts nodes again and again by one command. (The other nodes refuse a node whose disk was wiped,
    /// with --bootstrap too; so this is not for a cluster of one node.)
    #[arg(long)]
    if_empty: bool,
    /// End when standard input is closed: for parents that must not leave nodes behind
    #[arg(long)]
    until_stdin_closes: bool,
    #[command(flatten)]
    log: logger::LogOptions,
}

/// Makes a first start a later one if there is a node in the data directory.
fn decide_by_directory(node: &mut NodeConfig) -> Result<(), String> {
    if node.first_start.is_none() {
        return Err(
            "--if-empty says when a start is the first: give it with --bootstrap, --replace or --join"
                .to_owned(),
        );
    }
    if read_identity(&node.directory).map_err(|error| error.to_string())?.is_some() {
        node.first_start = None;
    } else if node.replicas.len() == 1 {
        return Err("--if-empty is for clusters of three nodes and more: there is nobody to notice that the disk of a single \
                    node was wiped, and it would start empty. Start it with --bootstrap, once"
            .to_owned());
    }
    Ok(())
}

/// Why a node of another user must not be run by the superuser: what it writes, that user's process could not read any more.
fn runs_as_another(directory: &Path) -> Option<String> {
    let owner = std::fs::metadata(directory.join("identity")).ok()?.uid();
    let is_foreign = rustix::process::geteuid().is_root() && owner != 0;
    is_foreign.then(|| {
        format!(
            "the node in {} is of user {owner}, and this process is root: that user could not use what it writes. Run it as that \
             user, such as with runuser -u syros -- syros server ..",
            directory.display()
        )
    })
}

/// The problem, and what it comes of most often.
fn explained(problem: String) -> String {
    let user = rustix::process::geteuid().as_raw();
    if problem.contains("(os error 13)") {
        format!("{problem}; this process is of user {user}: have what it uses belong to that user (chown -R)")
    } else if problem.contains("(os error 30)") {
        format!("{problem}; a unit of systemd lets its process write in few places (ReadWritePaths)")
    } else {
        problem
    }
}

/// Runs the node until it is asked to end.
pub(crate) fn run(options: &Options) -> Result<ExitCode, String> {
    let first_start = match (options.bootstrap, options.replace, options.join) {
        (true, _, _) => Some(FirstStart::Bootstrap),
        (_, true, _) => Some(FirstStart::Replace),
        (_, _, true) => Some(FirstStart::Join),
        _ => None,
    };
    let config = config::read(&options.config, first_start).and_then(|mut config| {
        if options.if_empty {
            decide_by_directory(&mut config.node)?;
        }
        syros_logging::install(&options.log.or(config.log))?;
        Ok(config.node)
    });
    let config = match config {
        Ok(node) => node,
        Err(problem) => return Ok(logger::fail_for_good(&explained(problem))),
    };
    if let Some(problem) = runs_as_another(&config.directory) {
        return Ok(logger::fail_for_good(&problem));
    }
    let node = match Node::start(config) {
        Ok(node) => node,
        Err(error) if error.may_pass() => return Err(explained(error.to_string())),
        Err(error) => return Ok(logger::fail_for_good(&explained(error.to_string()))),
    };
    let stopper = node.stopper();
    if options.until_stdin_closes {
        let stopper = stopper.clone();
        std::thread::spawn(move || {
            // Whatever comes is ignored; an error is an end too.
            let mut buffer = [0; 1024];
            while std::io::stdin().read(&mut buffer).is_ok_and(|count| count > 0) {}
            stopper.stop("standard input was closed");
        });
    }
    signals::watch_as_service(move |signal| stopper.stop(signals::name(signal)))?;
    match node.run() {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => match error.get_ref().and_then(|inner| inner.downcast_ref::<NotWanted>()) {
            Some(NotWanted(problem)) => Ok(logger::fail_for_good(problem)),
            None => Err(error.to_string()),
        },
    }
}
