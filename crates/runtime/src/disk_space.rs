//! The thread that looks at the disk of a node several times a second: whether there is space ([`Reserve`]), and whether the
//! data directory is still there.

use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use mio::Waker;

use crate::directory::PresenceCheck;
use crate::reserve::Reserve;

/// How often the file system is looked at: for what others take and give. What the log takes, it tells itself.
const INTERVAL: Duration = Duration::from_millis(100);

/// The thread that looks.
#[derive(Debug)]
pub(crate) struct DiskWatch {
    reserve: Arc<Reserve>,
    presence: PresenceCheck,
    /// What is wrong with the directory, if it is not there any more.
    loss: Arc<Mutex<Option<String>>>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl DiskWatch {
    /// Keeps `bytes` of the file system of a directory in reserve, and uses the waker when the disk becomes short, or
    /// does not count as that any more, and when the directory is gone, or back.
    pub(crate) fn start(presence: PresenceCheck, bytes: u64, waker: Arc<Waker>) -> io::Result<Self> {
        let reserve = Arc::new(Reserve::new(presence.directory().clone(), bytes)?);
        if bytes == 0 {
            reserve.remove();
        }
        reserve.look();
        let theirs = Arc::clone(&reserve);
        let loss = Arc::<Mutex<Option<String>>>::default();
        let found = Arc::clone(&loss);
        let ours = presence.clone();
        let (stop, stopped) = channel::<()>();
        let thread = std::thread::Builder::new().name("disk-space".to_owned()).spawn(move || {
            let mut was_short = theirs.is_short();
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                let problem = presence.problem();
                // Nothing is made in a directory that is not ours.
                if problem.is_none() {
                    theirs.look();
                }
                let has_changed = {
                    let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                    std::mem::replace(&mut *found, problem) != *found
                };
                // The log's thread may have said so first.
                if theirs.is_short() != was_short || has_changed {
                    was_short = theirs.is_short();
                    // Fails only if the loop is gone.
                    let _ = waker.wake();
                }
            }
        })?;
        Ok(Self { reserve, presence: ours, loss, stop: Some(stop), thread: Some(thread) })
    }

    /// What is wrong with the directory, if it was not there at the last look.
    pub(crate) fn loss(&self) -> Option<String> {
        self.loss.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What is wrong with the directory now, if it is not there.
    pub(crate) fn look_for_loss(&self) -> Option<String> {
        self.presence.problem()
    }

    /// What it keeps.
    pub(crate) const fn reserve(&self) -> &Arc<Reserve> {
        &self.reserve
    }
}

impl Drop for DiskWatch {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
