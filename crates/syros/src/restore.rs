//! `syros restore`: the data directory of a node of a new cluster, from a backup.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use syros_backup::Backup;

use crate::config;
use crate::progress::Progress;

/// Options of `syros restore`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  syros restore /backups/today --config /etc/syros/node.toml      on each machine of the new cluster
  syros server --config /etc/syros/node.toml --bootstrap          then start all of them

The command prints the number of the new cluster, which is the same on all machines. Write it into the configuration files (cluster):
without it the nodes start as well, but none of them can be replaced later.

The new cluster may have any number of nodes. Run this once for each of them, with one and the same backup, before its first
start. The cluster is formed when all of them have been started; nodes that were made from another backup, or from none, are
refused, and so are the nodes of the old cluster. The data directory that the configuration names must be new or empty. The
engine must be of the same kind as in the backup: in memory, or on disk.

Exit status 0: the directory is made; 1: it is not, and a line says why.")]
pub(crate) struct Options {
    /// The directory of the backup
    #[arg(value_name = "DIRECTORY")]
    backup: PathBuf,
    /// Configuration file of the node
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

/// Makes the data directory.
pub(crate) fn run(options: &Options) -> Result<ExitCode, String> {
    let config = config::read(&options.config, None)?;
    let backup = Backup::open(&options.backup).map_err(|error| error.to_string())?;
    let manifest = backup.manifest();
    let mut progress = Progress::new("restored", manifest.data_bytes());
    let place = config.node.directory.clone();
    let identity =
        syros_runtime::restore(&config.node, &backup, |bytes| progress.tell(bytes)).map_err(|error| {
            format!("cannot restore {} into {}: {error}", name(&options.backup), name(&place))
        })?;
    println!(
        "{} holds entry {} with {} keys, digest {:016x}, for {identity}",
        name(&place),
        manifest.origin.last.op_number.0,
        manifest.keys,
        manifest.digest,
    );
    println!(
        "when all nodes have been restored from this backup, write cluster = {} into their configuration files, and start all of \
         them with --bootstrap",
        identity.cluster
    );
    Ok(ExitCode::SUCCESS)
}

fn name(path: &Path) -> String {
    path.display().to_string()
}
