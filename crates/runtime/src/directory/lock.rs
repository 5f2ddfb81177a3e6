//! The lock of a data directory: one process uses the directory at a time.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use super::error::{DirectoryError, io_error};

/// The file that is locked.
pub(super) const LOCK_FILE: &str = "lock";

/// A process that was killed holds its lock until the system has taken its memory apart, which takes a second for
/// gigabytes. Whoever starts it again at once waits for that.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);

/// How often a lock is tried.
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// Locks the directory; the lock lasts as long as the file is open.
pub(super) fn lock(path: &Path) -> Result<File, DirectoryError> {
    let name = path.join(LOCK_FILE);
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&name)
        .map_err(io_error("open", &name))?;
    let until = Instant::now() + LOCK_PATIENCE;
    let mut has_told = false;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if Instant::now() >= until {
                    return Err(DirectoryError::Locked(path.to_owned()));
                }
                if !std::mem::replace(&mut has_told, true) {
                    tracing::info!(
                        directory = %path.display(),
                        "the data directory is in use by another process: this one waits for that to end"
                    );
                }
                std::thread::sleep(LOCK_PAUSE);
            }
            Err(error) => return Err(io_error("lock", &name)(error.into())),
        }
    }
}
