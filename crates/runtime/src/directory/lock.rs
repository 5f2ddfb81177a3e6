//! The lock of a data directory: one process uses the directory at a time.

use std::path::Path;
use std::time::{Duration, Instant};

use syros_wal::{FileDisk, FileDiskError};

use super::error::{DirectoryError, io_error};

/// A process that was killed holds its lock until the system has taken its memory apart, which takes a second for
/// gigabytes. Whoever starts it again at once waits for that.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// How often a lock is tried.
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// Opens and locks the directory; the lock lasts as long as the disk is open.
pub(super) fn open_locked(path: &Path) -> Result<FileDisk, DirectoryError> {
    let until = Instant::now() + LOCK_TIMEOUT;
    let mut has_told = false;
    loop {
        match FileDisk::open(path) {
            Ok(disk) => return Ok(disk),
            Err(FileDiskError::Io { path, error }) => return Err(io_error("use", &path)(error)),
            Err(FileDiskError::Locked { path, process }) if Instant::now() >= until => {
                return Err(DirectoryError::Locked { path, process });
            }
            Err(FileDiskError::Locked { process, .. }) => {
                if !std::mem::replace(&mut has_told, true) {
                    tracing::info!(
                        directory = %path.display(),
                        process,
                        "the data directory is in use by another process: this one waits for that to end"
                    );
                }
                std::thread::sleep(LOCK_PAUSE);
            }
        }
    }
}
