//! The thread that reads what is on disk and nobody reads otherwise, to find rot while others still have
//! what it took: all segments of the log but the last, the finished snapshots, and the file of the view.
//!
//! What is damaged is repaired by starting anew, like a process that finds it when it starts: without
//! memory, and with everything from the others. As long as the process runs its memory is whole, so there
//! is no hurry: a node waits until enough others are well, and for its turn (`others`).
//!
//! A file is dropped from the system's cache before it is read. What the device or a file system above the
//! system's cache keeps in a cache of its own may still hide what is on the medium.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant as SystemInstant};

use mio::Waker;
use syros_node::data::{Owner, read_view};
use syros_types::Prng;
use syros_wal::{
    Cause, DiskError, DiskOperation, Flaw, OpenDirectory, ReadError, ReadOnlyDisk, scrub_log, scrub_snapshots,
};

use crate::clock::Clock;
use crate::directory::{SNAPSHOTS, VIEW, WAL};
use crate::other_members::{LOOK_INTERVAL, OtherMembers, Stopped, sleep};
use crate::trace::COMPLAINT_INTERVAL;

/// What is read, and when.
#[derive(Clone, Debug)]
pub(crate) struct ScrubPlan {
    /// The data directory and whose it is. Another directory at its path says nothing of this node's files.
    pub(crate) directory: OpenDirectory,
    pub(crate) owner: Owner,
    pub(crate) others: OtherMembers,
    /// The longest pause between two rounds; the shortest is half of it.
    pub(crate) interval: Duration,
    /// Bytes per second; never 0.
    pub(crate) rate: u64,
    pub(crate) seed: u64,
}

/// What has to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ScrubFinding {
    /// The file of the view is not what was written, for this reason.
    View(String),
    /// Log or snapshots are damaged, and now is the time to start anew.
    Store,
}

/// The event loop's side of the thread.
pub(crate) struct Scrub {
    findings: Receiver<ScrubFinding>,
    /// Ends the thread when it is dropped.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Scrub {
    /// Starts the thread. It uses `waker` when it has found something.
    pub(crate) fn start(plan: ScrubPlan, clock: Clock, waker: Arc<Waker>) -> io::Result<Self> {
        let (stop, stopped) = channel();
        let (report, findings) = channel();
        let prng = Prng::new(plan.seed);
        let thread = thread::Builder::new().name("scrub".to_owned()).spawn(move || {
            let worker = ScrubWorker { plan, clock, prng, stopped, report, waker };
            // It ends when nobody listens any more.
            let _ = worker.run();
        })?;
        Ok(Self { findings, stop: Some(stop), thread: Some(thread) })
    }

    /// The next thing that was found.
    pub(crate) fn next_finding(&self) -> Option<ScrubFinding> {
        self.findings.try_recv().ok()
    }
}

impl Drop for Scrub {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A flaw that was found, and the directory of the file.
struct LocatedFlaw {
    directory: PathBuf,
    flaw: Flaw,
}

impl LocatedFlaw {
    fn path(&self) -> PathBuf {
        self.directory.join(&self.flaw.file)
    }
}

/// The thread.
struct ScrubWorker {
    plan: ScrubPlan,
    clock: Clock,
    prng: Prng,
    stopped: Receiver<()>,
    report: Sender<ScrubFinding>,
    waker: Arc<Waker>,
}

impl ScrubWorker {
    fn run(mut self) -> Result<(), Stopped> {
        loop {
            let half = self.plan.interval / 2;
            let more = self.prng.below(u64::try_from(half.as_nanos()).unwrap_or(u64::MAX).max(1));
            self.sleep(half + Duration::from_nanos(more))?;
            self.read_view()?;
            match self.read_store()? {
                None => {}
                Some(found) if self.plan.others.group.size() == 1 => tracing::error!(
                    node = self.plan.owner.replica.0,
                    file = %found.path().display(),
                    offset = found.flaw.offset,
                    error = found.flaw.reason,
                    "a file of this replica is damaged, there is no other replica from which it could be repaired, and it will \
                     not start again with it: save the data while the process runs, and see syros inspect"
                ),
                Some(found) => self.have_repaired(&found)?,
            }
        }
    }

    fn sleep(&self, time: Duration) -> Result<(), Stopped> {
        sleep(&self.stopped, time)
    }

    fn tell(&self, finding: ScrubFinding) -> Result<(), Stopped> {
        self.report.send(finding).map_err(|_| Stopped)?;
        // Fails only if the loop is gone, and then nobody waits.
        let _ = self.waker.wake();
        Ok(())
    }

    fn read_view(&self) -> Result<(), Stopped> {
        let directory = self.plan.directory.path().join(VIEW);
        let read = self
            .disk(VIEW)
            .map_err(ReadError::Disk)
            .and_then(|mut disk| read_view(&mut disk, self.plan.owner));
        let problem = match read {
            Ok(Ok(Some(_))) => return Ok(()),
            Ok(Ok(None)) => "the file is missing".to_owned(),
            Ok(Err(problem)) => problem,
            Err(ReadError::Disk(error)) => {
                complain_of_disk(&directory, &error);
                return Ok(());
            }
            Err(error) => error.to_string(),
        };
        self.tell(ScrubFinding::View(format!("{}: {problem}", directory.display())))
    }

    /// A directory of the data directory.
    fn disk(&self, name: &str) -> Result<ReadOnlyDisk, DiskError> {
        let opened = self.plan.directory.open_directory(name);
        opened.map(ReadOnlyDisk::of).map_err(|error| DiskError {
            operation: DiskOperation::List,
            file: self.plan.directory.path().join(name).display().to_string(),
            cause: Cause::Other(error.to_string()),
        })
    }

    /// Reads log and snapshots; gives the first thing that is wrong.
    fn read_store(&self) -> Result<Option<LocatedFlaw>, Stopped> {
        let began = SystemInstant::now();
        let mut bytes = 0;
        let mut is_stopped = false;
        let mut pace = |read: u64| {
            bytes += read;
            let nanos = u128::from(read) * 1_000_000_000 / u128::from(self.plan.rate.max(1));
            let pause = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
            is_stopped |= self.sleep(pause).is_err();
            !is_stopped
        };
        let Owner { cluster, replica } = self.plan.owner;
        let path = self.plan.directory.path();
        let (wal, snapshots) = (path.join(WAL), path.join(SNAPSHOTS));
        let mut found = None;
        let read = self.disk(WAL).and_then(|mut disk| scrub_log(&mut disk, cluster, replica, &mut pace));
        match read {
            Ok(flaw) => found = flaw.map(|flaw| LocatedFlaw { directory: wal, flaw }),
            Err(error) => complain_of_disk(&wal, &error),
        }
        if found.is_none() {
            let read =
                self.disk(SNAPSHOTS).and_then(|mut disk| scrub_snapshots(&mut disk, cluster, &mut pace));
            match read {
                Ok(flaw) => found = flaw.map(|flaw| LocatedFlaw { directory: snapshots, flaw }),
                Err(error) => complain_of_disk(&snapshots, &error),
            }
        }
        if is_stopped {
            return Err(Stopped);
        }
        if found.is_none() {
            tracing::debug!(
                node = replica.0,
                bytes,
                duration_ms = began.elapsed().as_millis(),
                "this replica has read its files, and none is damaged"
            );
        }
        Ok(found)
    }

    /// Waits until this node may start anew, and has it do so.
    fn have_repaired(&self, found: &LocatedFlaw) -> Result<(), Stopped> {
        let (node, file) = (self.plan.owner.replica.0, found.path());
        tracing::error!(
            node,
            file = %file.display(),
            offset = found.flaw.offset,
            error = found.flaw.reason,
            "a file of this replica is damaged: it starts anew as soon as it may, to be repaired from the other replicas"
        );
        let existed = file.exists();
        let mut complain_at = SystemInstant::now();
        loop {
            if existed && !file.exists() {
                tracing::info!(node, file = %file.display(), "the damaged file is gone, because nothing needs it any more");
                return Ok(());
            }
            if self.plan.others.is_our_turn(self.clock.now().wall) {
                let well = self.plan.others.well(|| self.sleep(Duration::ZERO))?;
                let needed = self.plan.others.needed();
                if well >= needed {
                    return self.tell(ScrubFinding::Store);
                }
                if SystemInstant::now() >= complain_at {
                    complain_at = SystemInstant::now() + COMPLAINT_INTERVAL;
                    tracing::warn!(
                        node,
                        file = %file.display(),
                        needed,
                        well,
                        "this replica waits with its repair until enough other replicas are well"
                    );
                }
            }
            self.sleep(LOOK_INTERVAL)?;
        }
    }
}

/// A disk that does not give what it holds: starting anew would not get it either.
fn complain_of_disk(directory: &Path, error: &DiskError) {
    tracing::error!(
        directory = %directory.display(),
        error = %error,
        "this replica cannot read its files to verify them; the disk may be failing"
    );
}
