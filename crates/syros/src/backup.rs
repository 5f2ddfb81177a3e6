//! `syros backup`: all data of a cluster, as of one entry of its log, into a directory.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};
use syros_backup::{Backup, BackupWriter, LastEntry, Manifest, Origin, remove_unfinished};
use syros_cli::tls::TlsOptions;
use syros_client::{
    Access, Client, Credentials, Endpoint, Options as ClientOptions, ReadPolicy, SnapshotCopy, SnapshotFile,
    StatusError, StatusReport,
};
use syros_logging::utc;
use syros_protocol::message::RoleName;
use syros_runtime::{REDIS_ADDRESS, Secret};
use syros_types::{OpNumber, View, WallTime};

use crate::progress::{Progress, mebibytes};
use crate::secret;
use crate::status::{parse_address, query, replicas_of, reports_of};

/// How long a replica may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a replica may take to write its snapshot, and to execute what is to be in it.
const SNAPSHOT_TIMEOUT: Duration = Duration::from_secs(3600);

/// How often a replica is asked whether it has its snapshot.
const SNAPSHOT_PAUSE: Duration = Duration::from_millis(50);

/// When a replica has no snapshot after this long, the cluster is asked anew what has to be in it: an entry that was not committed
/// may have gone with its leader, and none may have come in its place.
const BARRIER_TIMEOUT: Duration = Duration::from_secs(5);

/// A replica whose connection was lost has so long to come back, and its snapshot is then copied on where it was.
const RETURN_TIMEOUT: Duration = Duration::from_secs(15);

/// How often a replica is asked to come back.
const RETURN_PAUSE: Duration = Duration::from_millis(250);

/// Options of `syros backup`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:
  syros backup /backups/2026-11-28                          the cluster of the node at 127.0.0.1:6379
  syros backup /backups/today --addr db1:6379,db2:6379      whichever of them answers tells about all replicas
  syros backup /backups/today --secret-file /etc/syros/secret --rate 20
  syros backup /backups/today --tls ~/syros-admin           where the nodes speak TLS
  syros backup verify /backups/today                        reads all of it, and names what is damaged

The backup holds everything that was acknowledged before the command began, as of one moment. A follower makes it, and clients are
served meanwhile. DIRECTORY is made, or is there and empty: nothing is overwritten. What was written is read back before the
manifest is written, and without a manifest it is no backup. syros restore makes a new cluster of it.

Exit status 0: the backup is whole and on disk; 1: there is none, and a line says why.")]
pub(crate) struct Options {
    #[command(subcommand)]
    command: Option<Command>,
    /// Where the backup goes: a directory that is new or empty
    #[arg(value_name = "DIRECTORY", required = true)]
    target: Option<PathBuf>,
    /// Redis address of any node or gateway of the cluster; further ones are tried if it is down
    #[arg(long, value_name = "H:P,..", value_delimiter = ',', default_values_t = [REDIS_ADDRESS.to_string()], value_parser = parse_address)]
    addr: Vec<String>,
    /// The replica that makes the backup; by default a follower
    #[arg(long, value_name = "ID")]
    replica: Option<u8>,
    /// File with the cluster's secret, if the nodes have one (secret-file in their configuration)
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    #[command(flatten)]
    tls: TlsOptions,
    /// Copy at most so many MiB a second
    #[arg(long, value_name = "MIB", default_value_t = 95, value_parser = clap::value_parser!(u32).range(1..))]
    rate: u32,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Read all of a backup, and name what is damaged
    #[command(after_help = "Examples:
  syros backup verify /backups/today

Exit status 0: all of it is what was written; 1: something is damaged, and a line names file and place.")]
    Verify {
        /// The directory of the backup
        #[arg(value_name = "DIRECTORY")]
        target: PathBuf,
    },
}

/// Makes a backup, or verifies one.
pub(crate) fn run(options: &Options) -> Result<ExitCode, String> {
    match (&options.command, &options.target) {
        (Some(Command::Verify { target }), _) => verify(target),
        (None, Some(target)) => make(options, target),
        (None, None) => Err("name the directory that the backup goes to".to_owned()),
    }
}

fn verify(target: &Path) -> Result<ExitCode, String> {
    let backup = Backup::open(target).map_err(|error| error.to_string())?;
    let mut progress = Progress::new("verified", backup.manifest().data_bytes());
    backup.verify(|bytes| progress.tell(bytes)).map_err(|error| error.to_string())?;
    print_summary(target, "is intact", backup.manifest());
    Ok(ExitCode::SUCCESS)
}

/// What there is to say of a backup.
pub(crate) fn print_summary(target: &Path, what: &str, manifest: &Manifest) {
    let Manifest { origin, keys, digest, .. } = manifest;
    println!("the backup in {} {what}", target.display());
    println!("  cluster     {:016x}, engine {}", origin.cluster, manifest.engine());
    println!("  last entry  {}, of {}", origin.last.op_number.0, utc(origin.last.time.0 / 1_000_000));
    println!("  keys        {keys}, digest {digest:016x}");
    if origin.record_bytes > 0 {
        println!("  log         {} behind that, which new nodes execute", mebibytes(origin.record_bytes));
    }
    println!(
        "  size        {} of data in {} on disk",
        mebibytes(manifest.data_bytes()),
        mebibytes(manifest.stored_bytes())
    );
}

fn make(options: &Options, target: &Path) -> Result<ExitCode, String> {
    let secret = options.secret_file.as_deref().map(secret::read).transpose()?;
    let keys = Keys { secret, credentials: options.tls.credentials()?.map(Arc::new) };
    let replicas = replicas_of(&options.addr, keys.credentials.as_deref())?;
    let least = barrier(&replicas, &keys)?;
    let source = Source { address: choose(&replicas, &keys, options.replica)?, keys };
    let copy = source.connect().map_err(|error| source.failed(&error))?;
    // Before a node works for it.
    let writer = BackupWriter::create(target).map_err(|error| error.to_string())?;
    let began = Instant::now();
    let made = source.find(copy, &replicas, least).and_then(|(copy, file)| {
        eprintln!(
            "syros: replica at {} has a snapshot of entry {} with {}, {:.1} s after it was asked",
            source.address,
            file.op_number.0,
            mebibytes(file.bytes),
            began.elapsed().as_secs_f64()
        );
        copy_all(&source, copy, file, u64::from(options.rate) << 20, writer)
    });
    let manifest = made.map_err(|problem| {
        remove_unfinished(target);
        format!("{problem}; there is no backup in {}", target.display())
    })?;
    print_summary(target, &format!("was made in {:.1} s", began.elapsed().as_secs_f64()), &manifest);
    Ok(ExitCode::SUCCESS)
}

/// An entry of the log such that everything that was acknowledged before is in the log up to there.
///
/// A read of all keys is answered when what it must see has been executed, and what has been executed is in the logs of a
/// majority. So the longest log of any majority has it.
fn barrier(replicas: &[String], keys: &Keys) -> Result<OpNumber, String> {
    let failed = |problem: String| format!("the cluster does not answer a read: {problem}");
    let options = ClientOptions { credentials: keys.credentials.clone(), ..ClientOptions::default() };
    let client = Client::connect(replicas, options).map_err(|error| failed(error.to_string()))?;
    let client = client.wait().map_err(|error| failed(error.to_string()))?;
    let scan: [&[u8]; 4] = [b"SCAN", b"0", b"COUNT", b"1"];
    client.reading(ReadPolicy::Leader).command(&scan).wait().map_err(|error| failed(error.to_string()))?;
    let ends: Vec<u64> =
        reports_with_log(replicas, keys).iter().map(|(_, report)| report.op_number).collect();
    if ends.len() <= replicas.len() / 2 {
        return Err(format!(
            "only {} of {} replicas answer: a majority is needed",
            ends.len(),
            replicas.len()
        ));
    }
    Ok(OpNumber(ends.into_iter().max().unwrap_or_default()))
}

/// What the replicas say that have a log.
fn reports_with_log<'a>(replicas: &'a [String], keys: &Keys) -> Vec<(&'a String, StatusReport)> {
    let mut reports = reports_of(replicas, keys.access());
    reports.retain(|(_, report)| report.role != RoleName::Recovering);
    reports
}

/// The replica that makes the backup: the one that was asked for, or the follower that is furthest, or the leader.
fn choose(replicas: &[String], keys: &Keys, wanted: Option<u8>) -> Result<String, String> {
    if let Some(id) = wanted {
        return replicas.get(usize::from(id)).cloned().ok_or_else(|| {
            format!("there is no replica {id}: the cluster has replicas 0 to {}", replicas.len() - 1)
        });
    }
    let reports = reports_with_log(replicas, keys);
    let suits = |(_, report): &&(&String, StatusReport)| {
        !report.disk_failed && matches!(report.role, RoleName::Leader | RoleName::Follower)
    };
    let follows = |report: &StatusReport| report.role == RoleName::Follower;
    let best = reports.iter().filter(suits).max_by_key(|(_, report)| (follows(report), report.applied));
    best.map(|(address, _)| (*address).clone()).ok_or_else(|| {
        "no replica can make a backup: all are down, between views, or have a disk that is full or failed"
            .to_owned()
    })
}

/// With what the command shows nodes that it may ask.
struct Keys {
    secret: Option<Secret>,
    credentials: Option<Arc<Credentials>>,
}

impl Keys {
    fn access(&self) -> Access<'_> {
        Access { secret: self.secret.as_ref(), credentials: self.credentials.as_deref() }
    }
}

/// The replica that makes the backup.
struct Source {
    address: String,
    keys: Keys,
}

impl Source {
    fn connect(&self) -> Result<SnapshotCopy, StatusError> {
        let address: SocketAddr = Endpoint::resolve(&self.address)?.current();
        SnapshotCopy::connect(address, self.keys.access(), ANSWER_TIMEOUT)
    }

    fn failed(&self, error: &StatusError) -> String {
        match error {
            StatusError::SecretNeeded => {
                format!("the replica at {}: {error}: give it with --secret-file FILE", self.address)
            }
            error => format!("the replica at {}: {error}", self.address),
        }
    }

    /// Waits until the replica has a snapshot that goes at least up to this entry.
    fn find(
        &self,
        mut copy: SnapshotCopy,
        replicas: &[String],
        mut least: OpNumber,
    ) -> Result<(SnapshotCopy, SnapshotFile), String> {
        let began = Instant::now();
        let mut asked = began;
        loop {
            if let Some(file) = copy.find(least).map_err(|error| self.failed(&error))? {
                return Ok((copy, file));
            }
            if began.elapsed() > SNAPSHOT_TIMEOUT {
                return Err(format!(
                    "the replica at {} has not written a snapshot for {} s; its log says why",
                    self.address,
                    SNAPSHOT_TIMEOUT.as_secs()
                ));
            }
            if asked.elapsed() > BARRIER_TIMEOUT {
                asked = Instant::now();
                let report = query(&self.address, self.keys.access());
                let report = report.map_err(|problem| format!("{}: {problem}", self.address))?;
                if report.disk_failed {
                    return Err(format!("the disk of the replica at {} is full or has failed", self.address));
                }
                if report.applied < least.0 {
                    least = barrier(replicas, &self.keys)?;
                }
            }
            std::thread::sleep(SNAPSHOT_PAUSE);
        }
    }

    /// The next part of the snapshot. A connection that is lost is made anew.
    fn part(&self, copy: &mut SnapshotCopy, file: SnapshotFile, offset: u64) -> Result<Vec<u8>, String> {
        let began = Instant::now();
        loop {
            let error = match copy.part(file, offset) {
                Ok(Some(part)) => return Ok(part.to_vec()),
                Ok(None) => {
                    return Err(format!(
                        "the replica at {} has dropped its snapshot of entry {} after {} of it were copied: run the command \
                         again, with a higher --rate if the cluster is busy",
                        self.address,
                        file.op_number.0,
                        mebibytes(offset)
                    ));
                }
                Err(error) => error,
            };
            if began.elapsed() > RETURN_TIMEOUT {
                let bytes = mebibytes(offset);
                return Err(format!("{}, after {bytes} were copied", self.failed(&error)));
            }
            eprintln!("syros: {}; trying again", self.failed(&error));
            std::thread::sleep(RETURN_PAUSE);
            // If that fails, the next part fails at once.
            if let Ok(again) = self.connect() {
                *copy = again;
            }
        }
    }
}

/// Copies the whole snapshot, not faster than `rate` bytes a second.
fn copy_all(
    source: &Source,
    mut copy: SnapshotCopy,
    file: SnapshotFile,
    rate: u64,
    mut writer: BackupWriter,
) -> Result<Manifest, String> {
    let began = Instant::now();
    let mut progress = Progress::new("copied", file.bytes);
    let mut offset = 0;
    let mut last = LastEntry { op_number: file.op_number, view: View::default(), time: WallTime(0) };
    while offset < file.bytes {
        let part = source.part(&mut copy, file, offset)?;
        if offset == 0 {
            last = header(&part, file)?;
        }
        writer.write(&part).map_err(|error| error.to_string())?;
        offset += part.len() as u64;
        progress.tell(offset);
        let due = Duration::from_secs_f64(offset as f64 / rate as f64);
        std::thread::sleep(due.saturating_sub(began.elapsed()));
    }
    let origin = Origin {
        id: random_id()?,
        cluster: copy.cluster(),
        product: syros_cli::VERSION.to_owned(),
        created: now(),
        snapshot: Some((file.op_number, file.bytes)),
        last,
        record_bytes: 0,
    };
    writer.finish(origin).map_err(|error| error.to_string())
}

/// What the first part of a snapshot file says of its last entry.
fn header(part: &[u8], file: SnapshotFile) -> Result<LastEntry, String> {
    let header = syros_backup::snapshot_header(part).ok_or("what the replica sends is no snapshot")?;
    let (op_number, view, time) = (header.op_number, header.view, header.time);
    if op_number == file.op_number {
        return Ok(LastEntry { op_number, view, time });
    }
    Err(format!("the replica sends a snapshot of entry {} instead of {}", op_number.0, file.op_number.0))
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
