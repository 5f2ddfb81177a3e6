//! `syros restore`: the data directory of a node of a new cluster, from a backup.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use syros_backup::{Backup, Until, parse_moment, rfc3339};
use syros_runtime::Restored;
use syros_types::OpNumber;

use crate::config;
use crate::place::PlaceOptions;
use crate::progress::Progress;

/// Options of `syros restore`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  syros restore /backups/today --config /etc/syros/node.toml      on each machine of the new cluster
  syros restore /backups/live --config node.toml --until 48211                  up to this entry of the log, it included
  syros restore /backups/live --config node.toml --until 2026-11-29T10:00:00Z   up to this moment of the log's time
  syros restore /backups/live --config node.toml --until 1796032800000ms        the same in milliseconds since 1970
  syros restore s3://backups/today --config node.toml             straight from a bucket; keys are in the environment
  syros server --config /etc/syros/node.toml --bootstrap          then start all of them

The command prints the number of the new cluster, which is the same on all machines. Write it into the configuration files (cluster):
without it the nodes start as well, but none of them can be replaced later.

A backup that was continued is restored up to its end, or up to --until: syros backup show tells what it covers. Everything is
executed that the old cluster has committed up to there, and nothing else. Give the same --until on all machines: nodes with
different ones refuse each other.

The new cluster may have any number of nodes. Run this once for each of them, with one and the same backup, before its first
start. The cluster is formed when all of them have been started; nodes that were made from another backup, or from none, are
refused, and so are the nodes of the old cluster. The data directory that the configuration names must be new or empty. The
engine must be of the same kind as in the backup: in memory, or on disk.

Exit status 0: the directory is made; 1: it is not, and a line says why.")]
pub(crate) struct Options {
    /// Where the backup is: a directory or s3://BUCKET/PREFIX
    #[arg(value_name = "BACKUP")]
    backup: PathBuf,
    /// Configuration file of the node
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Restore up to this entry, or up to the last entry whose log time is not after this moment
    #[arg(long, value_name = "ENTRY|TIME", value_parser = parse_until)]
    until: Option<Until>,
    #[command(flatten)]
    place: PlaceOptions,
}

/// An entry's number, a moment in RFC 3339, or one in milliseconds since 1970 with `ms` behind.
fn parse_until(text: &str) -> Result<Until, String> {
    if let Ok(number) = text.parse() {
        return Ok(Until::Entry(OpNumber(number)));
    }
    let moment = text.strip_suffix("ms").filter(|millis| millis.parse::<u64>().is_ok()).unwrap_or(text);
    parse_moment(moment).map(Until::Time).ok_or_else(|| {
        "neither the number of an entry, nor a moment as 2026-11-29T10:00:00.5Z or 1796032800500ms".to_owned()
    })
}

/// Makes the data directory.
pub(crate) fn run(options: &Options) -> Result<ExitCode, String> {
    let config = config::read(&options.config, None)?;
    let backup = Backup::open(&options.place.open(&options.backup)?).map_err(|error| error.to_string())?;
    let manifest = backup.manifest();
    let mut progress = Progress::new("restored", manifest.data_bytes());
    let has_tls = config.node.tls.is_some();
    let (place, until) = (config.node.directory.clone(), options.until.unwrap_or_default());
    let restored = syros_runtime::restore(&config.node, &backup, until, |bytes| progress.tell(bytes));
    let Restored { identity, last, keys, digest } = restored.map_err(|error| {
        format!("cannot restore {} into {}: {error}", name(&options.backup), name(&place))
    })?;
    syros_cli::tell!(
        "{} holds entry {} of {} with {keys} keys, digest {digest:016x}, for {identity}",
        name(&place),
        last.op_number.0,
        rfc3339(last.time),
    );
    syros_cli::tell!(
        "when all nodes have been restored from this backup, write cluster = {} into their configuration files, and start all of \
         them with --bootstrap",
        identity.cluster
    );
    if has_tls {
        syros_cli::tell!(
            "certificates of the old cluster name its number: make new ones with syros certificate .. --cluster {}",
            identity.cluster
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn name(path: &Path) -> String {
    path.display().to_string()
}
