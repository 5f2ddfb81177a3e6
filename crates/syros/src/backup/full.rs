//! A backup of all data, as of one entry of the log.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use syros_backup::{BackupWriter, LastEntry, Manifest, Origin, Place, remove_unfinished};
use syros_client::{SnapshotCopy, SnapshotFile};
use syros_types::{OpNumber, View, WallTime};

use super::follow::Tail;
use super::source::{Source, barrier, choose};
use super::{SourceOptions, now, print_summary, random_id};
use crate::place::warn;
use crate::progress::{Progress, mebibytes};

/// Makes a backup; goes on with the log if `interval` says how often.
pub(super) fn make(
    options: &SourceOptions,
    target: &Place,
    interval: Option<Duration>,
) -> Result<ExitCode, String> {
    let keys = Arc::new(options.keys()?);
    let replicas = options.cluster.replicas(keys.credentials.as_deref())?;
    let least = barrier(&replicas, &keys)?;
    let source = Source { address: choose(&replicas, &keys, options.replica)?, keys };
    let copy = source.connect().map_err(|error| source.failed(&error))?;
    let id = random_id()?;
    // Before a node works for it.
    let writer = BackupWriter::create(target).map_err(|error| error.to_string())?;
    warn(target);
    let began = Instant::now();
    let made =
        begin(options, &source, &replicas, (target, id, least), interval).and_then(|(mut tail, first)| {
            let mut meanwhile = || tail.as_mut().map_or(Ok(()), Tail::catch_up);
            let found = source.find(copy, &replicas, (first, least.max(first)), &mut meanwhile)?;
            let (_, file) = &found;
            syros_cli::say!(
                "syros: replica at {} has a snapshot of entry {} with {}, {:.1} s after it was asked",
                source.address,
                file.op_number.0,
                mebibytes(file.bytes),
                began.elapsed().as_secs_f64()
            );
            let manifest = copy_all(&source, found, (id, u64::from(options.rate) << 20), writer, meanwhile)?;
            Ok((tail, manifest))
        });
    let (tail, manifest) = made.map_err(|problem| {
        if remove_unfinished(target) {
            format!("{problem}; the backup in {target} is finished all the same")
        } else {
            format!("{problem}; there is no backup in {target}")
        }
    })?;
    print_summary(target, &format!("was made in {:.1} s", began.elapsed().as_secs_f64()), &manifest);
    match tail {
        Some(tail) => tail.follow(target),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Where the log is to be copied as well: its copy, and the entry that it begins behind. The snapshot must reach that.
fn begin(
    options: &SourceOptions,
    source: &Source,
    replicas: &[String],
    (target, id, least): (&Place, u64, OpNumber),
    interval: Option<Duration>,
) -> Result<(Option<Tail>, OpNumber), String> {
    let Some(interval) = interval else { return Ok((None, OpNumber(0))) };
    let tail = Tail::begin(options, source, replicas, (target, id, least), interval)?;
    let first = tail.op_number();
    Ok((Some(tail), first))
}

/// How often the log is copied on while what was written is read back: members keep it for ten seconds.
const MEANWHILE_INTERVAL: Duration = Duration::from_millis(200);

/// Copies the whole snapshot, not faster than `rate` bytes a second.
fn copy_all(
    source: &Source,
    (mut copy, file): (SnapshotCopy, SnapshotFile),
    (id, rate): (u64, u64),
    mut writer: BackupWriter,
    mut meanwhile: impl FnMut() -> Result<(), String>,
) -> Result<Manifest, String> {
    let began = Instant::now();
    let mut progress = Progress::new("copied", file.bytes);
    let mut offset = 0;
    let mut last = LastEntry { op_number: file.op_number, view: View::default(), time: WallTime(0) };
    let mut kept_up = KeptUp::new();
    while offset < file.bytes {
        let part = source.part(&mut copy, file, offset)?;
        if offset == 0 {
            last = header(&part, file)?;
        }
        let written = writer.write(&part, &mut || kept_up.ask(&mut meanwhile));
        written.map_err(|error| error.to_string())?;
        kept_up.result()?;
        offset += part.len() as u64;
        progress.tell(offset);
        meanwhile()?;
        let due = Duration::from_secs_f64(offset as f64 / rate as f64);
        std::thread::sleep(due.saturating_sub(began.elapsed()));
    }
    let origin = Origin {
        id,
        cluster: copy.cluster(),
        product: syros_cli::VERSION.to_owned(),
        created: now(),
        snapshot: Some((file.op_number, file.bytes)),
        last,
        record_bytes: 0,
    };
    let manifest = writer.finish(origin, || kept_up.ask(&mut meanwhile));
    let manifest = manifest.map_err(|error| error.to_string())?;
    kept_up.result().map(|()| manifest)
}

/// What is done meanwhile, now and then: the members do not keep their log for somebody who says nothing for long.
struct KeptUp {
    asked: Instant,
    result: Result<(), String>,
}

impl KeptUp {
    fn new() -> Self {
        Self { asked: Instant::now(), result: Ok(()) }
    }

    fn ask(&mut self, meanwhile: &mut impl FnMut() -> Result<(), String>) {
        if self.result.is_ok() && self.asked.elapsed() >= MEANWHILE_INTERVAL {
            self.result = meanwhile();
            self.asked = Instant::now();
        }
    }

    /// The first failure, once.
    fn result(&mut self) -> Result<(), String> {
        std::mem::replace(&mut self.result, Ok(()))
    }
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
