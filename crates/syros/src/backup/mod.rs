//! `syros backup`: all data of a cluster, as of one entry of its log, into a directory or a bucket, and the log behind that.

mod follow;
mod full;
mod source;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};
use syros_backup::{Backup, Manifest, Place, rfc3339};
use syros_logging::utc;
use syros_types::WallTime;

use crate::cluster::ClusterOptions;
use crate::place::{PlaceOptions, is_bucket};
use crate::progress::{Progress, mebibytes};
use source::Keys;

/// Options of `syros backup`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:
  syros backup /backups/2026-11-28                          the cluster of the node at 127.0.0.1:6379
  syros backup /backups/today --addr db1:6379,db2:6379      whichever of them answers tells about all replicas
  syros backup /backups/today --secret-file /etc/syros/secret --rate 20
  syros backup /backups/today --tls ~/syros-admin           where the nodes speak TLS
  syros backup /backups/live --follow                       all data, and then whatever is committed, until Ctrl-C
  syros backup continue /backups/today                      adds what was committed since
  syros backup verify /backups/today                        reads all of it, and names what is damaged
  syros backup s3://backups/2026-11-28                      into a bucket at AWS: keys are in the environment, as for other programs
  syros backup s3://backups/today --s3-endpoint http://127.0.0.1:9000       into a store that is compatible with S3

The backup holds everything that was acknowledged before the command began, as of one moment. A follower makes it, and clients are
served meanwhile. TARGET is a directory that is made, or is there and empty, or a prefix in a bucket with nothing behind it: nothing
is overwritten. What was written is read back before the manifest is written, and without a manifest it is no backup. syros restore makes a new cluster of it.

A backup can be continued with the log: then syros restore makes a new cluster as of any entry in it, or any moment. With --follow
the members keep the part of their log that is still to be copied, and a crash of this program loses at most --interval.

Exit status 0: the backup is whole and on disk; 1: there is none, and a line says why.")]
pub(crate) struct Options {
    #[command(subcommand)]
    command: Option<Command>,
    /// Where the backup goes: a directory or s3://BUCKET/PREFIX, new or empty
    #[arg(value_name = "TARGET", required = true)]
    target: Option<PathBuf>,
    #[command(flatten)]
    source: SourceOptions,
    #[command(flatten)]
    follow: FollowOptions,
    #[command(flatten)]
    place: PlaceOptions,
}

/// Whether to go on.
#[derive(Args, Clone, Debug)]
pub(crate) struct FollowOptions {
    /// Go on copying what is committed, until SIGINT or SIGTERM
    #[arg(long)]
    follow: bool,
    /// With --follow: write what has come at least every so many seconds, a file each time [5; into a bucket 30]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=3600), requires = "follow")]
    interval: Option<u32>,
}

/// How often what has come is written to a directory, in seconds.
const DIRECTORY_INTERVAL: u32 = 5;

/// The same for a bucket, where each file is an object that is paid for, and that a restoration asks for.
const BUCKET_INTERVAL: u32 = 30;

impl FollowOptions {
    fn interval(&self, target: &Path) -> Option<Duration> {
        let usual = if is_bucket(target) { BUCKET_INTERVAL } else { DIRECTORY_INTERVAL };
        self.follow.then(|| Duration::from_secs(u64::from(self.interval.unwrap_or(usual))))
    }
}

/// Which cluster, and how.
#[derive(Args, Clone, Debug)]
pub(crate) struct SourceOptions {
    #[command(flatten)]
    cluster: ClusterOptions,
    /// The replica that makes the backup; by default a follower
    #[arg(long, value_name = "ID")]
    replica: Option<u8>,
    /// Copy at most so many MiB a second
    #[arg(long, value_name = "MIB", default_value_t = 95, value_parser = clap::value_parser!(u32).range(1..))]
    rate: u32,
}

impl SourceOptions {
    fn keys(&self) -> Result<Keys, String> {
        let (secret, credentials) = self.cluster.keys()?;
        Ok(Keys { secret, credentials: credentials.map(Arc::new) })
    }
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Read all of a backup, and name what is damaged
    #[command(after_help = "Examples:
  syros backup verify /backups/today
  syros backup verify s3://backups/today

Exit status 0: all of it is what was written; 1: something is damaged, and a line names file and place.")]
    Verify {
        /// Where the backup is: a directory or s3://BUCKET/PREFIX
        #[arg(value_name = "TARGET")]
        target: PathBuf,
        #[command(flatten)]
        place: PlaceOptions,
    },
    /// Add to a backup what was committed since it was made or continued
    #[command(after_help = "Examples:
  syros backup continue /backups/today --addr db1:6379,db2:6379
  syros backup continue /backups/today --follow --interval 2      and whatever is committed, until Ctrl-C
  17 * * * * syros backup continue /backups/today --addr db1:6379 --secret-file /etc/syros/secret      each hour, by cron
  syros backup continue s3://backups/today --follow               in a bucket, with an object every 30 s

The members of a cluster keep the end of their log on disk: what a restart needs, and disk.keep-log (1GiB) of what was written before.
If a backup ends before that, it cannot be continued, and the command says so: make a new one. log_oldest_entry in INFO says which entry
a backup has to end with, or a later one, to be continued from that node. With durability = replicated only what is in memory can be
copied: of what all members hold, a 64th of log-keep. With --follow members keep what is still to be copied.

Exit status 0: the backup holds everything that was acknowledged before the command began (with --follow: before it was ended); 1: a
line says why it does not. What was copied by then is kept, and the backup is whole.")]
    Continue {
        /// Where the backup is: a directory or s3://BUCKET/PREFIX
        #[arg(value_name = "TARGET")]
        target: PathBuf,
        #[command(flatten)]
        source: SourceOptions,
        #[command(flatten)]
        follow: FollowOptions,
        #[command(flatten)]
        place: PlaceOptions,
    },
    /// Show what a backup says that it holds, without reading all of it
    #[command(after_help = "Examples:
  syros backup show /backups/today
  syros backup show s3://backups/today")]
    Show {
        /// Where the backup is: a directory or s3://BUCKET/PREFIX
        #[arg(value_name = "TARGET")]
        target: PathBuf,
        #[command(flatten)]
        place: PlaceOptions,
    },
}

/// Makes a backup, continues one, shows or verifies one.
pub(crate) fn run(options: &Options) -> Result<ExitCode, String> {
    match (&options.command, &options.target) {
        (Some(Command::Verify { target, place }), _) => verify(&place.open(target)?),
        (Some(Command::Show { target, place }), _) => show(&place.open(target)?),
        (Some(Command::Continue { target, source, follow, place }), _) => {
            follow::go_on(source, &place.open(target)?, follow.interval(target))
        }
        (None, Some(target)) => {
            full::make(&options.source, &options.place.open(target)?, options.follow.interval(target))
        }
        (None, None) => Err("name the directory or the bucket that the backup goes to".to_owned()),
    }
}

fn verify(target: &Place) -> Result<ExitCode, String> {
    let backup = Backup::open(target).map_err(|error| error.to_string())?;
    let mut progress = Progress::new("verified", backup.manifest().data_bytes());
    backup.verify(|bytes| progress.tell(bytes)).map_err(|error| error.to_string())?;
    print_summary(target, "is intact", backup.manifest());
    print_range(&backup);
    Ok(ExitCode::SUCCESS)
}

fn show(target: &Place) -> Result<ExitCode, String> {
    let backup = Backup::open(target).map_err(|error| error.to_string())?;
    print_summary(target, "says that it holds this", backup.manifest());
    print_range(&backup);
    Ok(ExitCode::SUCCESS)
}

/// The moments that can be restored.
pub(crate) fn print_range(backup: &Backup) {
    let (base, end) = (backup.manifest().origin.last, backup.end());
    let files = backup.log_files();
    let stored: u64 = files.iter().map(|file| file.stored_bytes).sum();
    syros_cli::tell!(
        "  covers      entry {} of {} to entry {} of {}",
        base.op_number.0,
        rfc3339(base.time),
        end.op_number.0,
        rfc3339(end.time)
    );
    syros_cli::tell!("  log         {} in {} files", mebibytes(stored), files.len());
}

/// What there is to say of a backup.
pub(crate) fn print_summary(target: &Place, what: &str, manifest: &Manifest) {
    let Manifest { origin, keys, digest, .. } = manifest;
    syros_cli::tell!("the backup in {target} {what}");
    syros_cli::tell!("  cluster     {:016x}, engine {}", origin.cluster, manifest.engine());
    syros_cli::tell!("  last entry  {}, of {}", origin.last.op_number.0, utc(origin.last.time.0 / 1_000_000));
    syros_cli::tell!("  keys        {keys}, digest {digest:016x}");
    if origin.record_bytes > 0 {
        syros_cli::tell!(
            "  records     {} behind that, which new nodes execute",
            mebibytes(origin.record_bytes)
        );
    }
    syros_cli::tell!(
        "  size        {} of data in {} stored",
        mebibytes(manifest.data_bytes()),
        mebibytes(manifest.stored_bytes())
    );
}

/// The number of a new backup.
pub(crate) fn random_id() -> Result<u64, String> {
    loop {
        let id = getrandom::u64().map_err(|error| format!("cannot draw a random number: {error}"))?;
        if id != 0 {
            return Ok(id);
        }
    }
}

/// The time of this machine.
pub(crate) fn now() -> WallTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    WallTime(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}
