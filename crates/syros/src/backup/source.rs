//! The cluster that a backup is made of: what it has to hold, and which replica gives it.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::{Duration, Instant};

use syros_client::{
    Access, Client, Credentials, Endpoint, Options as ClientOptions, ReadPolicy, SnapshotCopy, SnapshotFile,
    StatusError, StatusReport,
};
use syros_protocol::message::RoleName;
use syros_runtime::Secret;
use syros_types::OpNumber;

use crate::progress::mebibytes;
use crate::status::{query, reports_of};

/// How long a replica may take to answer.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// So many commands at a time may copy the snapshot of one replica; the replica does not answer others.
const COPIERS_MAX: usize = 4;

/// How long a replica may take to write its snapshot, and to execute what is to be in it.
const SNAPSHOT_TIMEOUT: Duration = Duration::from_secs(3600);

/// How often a replica is asked whether it has its snapshot.
const SNAPSHOT_PAUSE: Duration = Duration::from_millis(50);

/// How often it is said that a replica has no snapshot yet.
const SNAPSHOT_NEWS: Duration = Duration::from_secs(10);

/// When a replica has no snapshot after this long, the cluster is asked anew what has to be in it: an entry that was not committed
/// may have gone with its leader, and none may have come in its place.
pub(super) const BARRIER_TIMEOUT: Duration = Duration::from_secs(5);

/// A replica whose connection was lost has so long to come back, and its snapshot is then copied on where it was.
pub(super) const RETURN_TIMEOUT: Duration = Duration::from_secs(15);

/// How often a replica is asked to come back.
pub(super) const RETURN_PAUSE: Duration = Duration::from_millis(250);

/// An entry of the log such that everything that was acknowledged before is in the log up to there.
///
/// A read of all keys is answered when what it must see has been executed, and what has been executed is in the logs of a
/// majority. So the longest log of any majority has it.
pub(super) fn barrier(replicas: &[String], keys: &Keys) -> Result<OpNumber, String> {
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
pub(super) fn choose(replicas: &[String], keys: &Keys, wanted: Option<u8>) -> Result<String, String> {
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
pub(super) struct Keys {
    pub(super) secret: Option<Secret>,
    pub(super) credentials: Option<Arc<Credentials>>,
}

impl Keys {
    pub(super) fn access(&self) -> Access<'_> {
        Access { secret: self.secret.as_ref(), credentials: self.credentials.as_deref() }
    }
}

/// The replica that makes the backup.
pub(super) struct Source {
    pub(super) address: String,
    pub(super) keys: Arc<Keys>,
}

impl Source {
    pub(super) fn connect(&self) -> Result<SnapshotCopy, StatusError> {
        let connect = |address| SnapshotCopy::connect(address, self.keys.access(), ANSWER_TIMEOUT);
        Endpoint::resolve(&self.address)?.ask(connect)
    }

    pub(super) fn failed(&self, error: &StatusError) -> String {
        match error {
            StatusError::SecretNeeded => {
                format!("the replica at {}: {error}: give it with --secret-file FILE", self.address)
            }
            error => format!("the replica at {}: {error}", self.address),
        }
    }

    /// Why the replica does not give its snapshot, as far as that can be told: it does not answer those whom it lets wait.
    fn gives_none(&self, error: &StatusError) -> String {
        let is_late = matches!(error, StatusError::Io(error) if error.kind() == ErrorKind::TimedOut);
        if is_late && query(&self.address, self.keys.access()).is_ok() {
            return format!(
                "the replica at {} answers other questions, and has not given its snapshot for {} s: it lets {COPIERS_MAX} commands \
                 copy it at a time, and as many do. Run this one again when one of them has ended, or name another replica with \
                 --replica",
                self.address,
                ANSWER_TIMEOUT.as_secs()
            );
        }
        self.failed(error)
    }

    /// Waits until the replica has a snapshot that goes at least up to `at_least`, and up to an entry that has everything which was
    /// acknowledged before: `least`, unless it turns out to be one that was never committed.
    pub(super) fn find(
        &self,
        mut copy: SnapshotCopy,
        replicas: &[String],
        (at_least, mut least): (OpNumber, OpNumber),
        mut meanwhile: impl FnMut() -> Result<(), String>,
    ) -> Result<(SnapshotCopy, SnapshotFile), String> {
        let began = Instant::now();
        let (mut asked, mut told) = (began, began);
        loop {
            if let Some(file) = copy.find(least).map_err(|error| self.gives_none(&error))? {
                return Ok((copy, file));
            }
            if began.elapsed() > SNAPSHOT_TIMEOUT {
                return Err(format!(
                    "the replica at {} has not written a snapshot for {} s; its log says why",
                    self.address,
                    SNAPSHOT_TIMEOUT.as_secs()
                ));
            }
            if told.elapsed() > SNAPSHOT_NEWS {
                told = Instant::now();
                syros_cli::say!(
                    "syros: the replica at {} has written no snapshot for {} s; if it has no room for one, its log says so, and \
                     --replica N takes another",
                    self.address,
                    began.elapsed().as_secs()
                );
            }
            if asked.elapsed() > BARRIER_TIMEOUT {
                asked = Instant::now();
                let report = query(&self.address, self.keys.access());
                let report = report.map_err(|problem| format!("{}: {problem}", self.address))?;
                if report.disk_failed {
                    return Err(format!("the disk of the replica at {} is full or has failed", self.address));
                }
                if report.applied < least.0 {
                    least = at_least.max(barrier(replicas, &self.keys)?);
                }
            }
            meanwhile()?;
            std::thread::sleep(SNAPSHOT_PAUSE);
        }
    }

    /// The next part of the snapshot. A connection that is lost is made anew.
    pub(super) fn part(
        &self,
        copy: &mut SnapshotCopy,
        file: SnapshotFile,
        offset: u64,
    ) -> Result<Vec<u8>, String> {
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
                return Err(format!("{}, after {bytes} were copied", self.gives_none(&error)));
            }
            syros_cli::say!("syros: {}; trying again", self.failed(&error));
            std::thread::sleep(RETURN_PAUSE);
            // If that fails, the next part fails at once.
            if let Ok(again) = self.connect() {
                *copy = again;
            }
        }
    }
}
